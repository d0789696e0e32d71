/* Scatter of one array, the same bits in each run and on the interpreter: a thread for each place of a window, where no
 * two places can meet, goes through the windows in the order of the indices; sums of integers and the like, which no
 * order changes, are atomic, with a thread for each update. */
#include <stdio.h>

#include "routine.h"

enum { CU_SCATTER_LONG = 4096, CU_SCATTER_EACH = 256 /* windows in a row that are few, for so many by thread */ };

/* What the attributes say. */
typedef struct cu_scatter {
  const ir_type *operand, *indices, *updates;
  const ir_ints *window, *inserted, *map, *batching, *indices_batching;
  uint32_t vector;                 /* the indices' dimension that has the parts of an index */
  uint32_t batch_dim[IR_MAX_RANK]; /* by dimension of the indices: the updates' */
  bool serial[IR_MAX_RANK];        /* by dimension of the updates: its windows are gone through in order */
  int64_t threads, steps;
} cu_scatter;

static bool cu_scatter_has(const ir_ints *list, uint32_t d, uint32_t *at) {
  for (uint32_t i = 0; list && i < list->n; i++)
    if (list->v[i] == d) return *at = i, true;
  return false;
}

static void cu_scatter_make(const ir_op *op, cu_scatter *x) {
  const ir_attr *vector = ir_attr_find(op, IR_ATTR_INDEX_VECTOR_DIM);
  uint32_t at = 0, used = 0;
  *x = (cu_scatter){.operand = ir_operand_type(op, 0),
                    .indices = ir_operand_type(op, 1),
                    .updates = ir_operand_type(op, 2),
                    .window = ir_get_ints(op, IR_ATTR_UPDATE_WINDOW_DIMS),
                    .inserted = ir_get_ints(op, IR_ATTR_INSERTED_WINDOW_DIMS),
                    .map = ir_get_ints(op, IR_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
                    .batching = ir_get_ints(op, IR_ATTR_INPUT_BATCHING_DIMS),
                    .indices_batching = ir_get_ints(op, IR_ATTR_SCATTER_INDICES_BATCHING_DIMS),
                    .threads = 1,
                    .steps = 1};
  x->vector = vector ? (uint32_t)vector->v.i : x->indices->rank;
  for (uint32_t d = 0; d < x->indices->rank; d++) {
    if (d == x->vector) continue;
    while (used < x->updates->rank && cu_scatter_has(x->window, used, &at)) used++;
    x->batch_dim[d] = used++;
    x->serial[x->batch_dim[d]] = !cu_scatter_has(x->indices_batching, d, &at);
  }
}

/* The updates' dimension along the operand's dimension d of a window; false where that has none. */
static bool cu_scatter_window(const cu_scatter *x, uint32_t d, uint32_t *out) {
  uint32_t at = 0, before = 0;
  if (cu_scatter_has(x->inserted, d, &at) || cu_scatter_has(x->batching, d, &at)) return false;
  for (uint32_t i = 0; i < d; i++)
    before += !cu_scatter_has(x->inserted, i, &at) && !cu_scatter_has(x->batching, i, &at);
  assert(before < x->window->n);
  *out = (uint32_t)x->window->v[before];
  return true;
}

static int64_t cu_scatter_extent(const cu_scatter *x, uint32_t d) {
  uint32_t u = 0;
  return cu_scatter_window(x, d, &u) ? x->updates->dims[u] : 1;
}

/* Whether two places of windows are never the same element: windows move along dimensions where they are one wide. */
static bool cu_scatter_is_apart(const cu_scatter *x) {
  bool apart = true;
  for (uint32_t i = 0; i < x->map->n; i++) apart = apart && cu_scatter_extent(x, (uint32_t)x->map->v[i]) == 1;
  return apart;
}

/* CUDA's function for integers that any order adds up to the same; NULL: there is none. */
static const char *cu_scatter_atomic(scalar_code code, base_dtype t) {
  bool known = t == XLAC_S32 || t == XLAC_U32 || t == XLAC_S64 || t == XLAC_U64;
  if (!known) return NULL;
  switch (code) {
    case SCALAR_ADD:
      return "atomicAdd";
    case SCALAR_MINIMUM:
      return "atomicMin";
    case SCALAR_MAXIMUM:
      return "atomicMax";
    case SCALAR_AND:
      return "atomicAnd";
    case SCALAR_OR:
      return "atomicOr";
    case SCALAR_XOR:
      return "atomicXor";
    default:
      return NULL;
  }
}

/* --- text --- */

/* "const idx u<d> = ...;" of the updates' dimensions that are serial, or not, from the number `name`. */
static void cu_scatter_put_indexes(cuda_routine *r, const cu_scatter *x, bool serial, const char *name) {
  int64_t inside = 1;
  for (uint32_t d = x->updates->rank; d-- > 0;) {
    if (x->serial[d] != serial) continue;
    base_putf(r->print.out, "  const idx u%u = %s / %lld %% %lld;\n", (unsigned)d, name, (long long)inside,
              (long long)x->updates->dims[d]);
    inside *= x->updates->dims[d];
  }
}

/* "fits", and the place "to" in the operand. Negative indices are large unsigned ones. */
static void cu_scatter_put_place(cuda_routine *r, const cu_scatter *x) {
  int64_t own[IR_MAX_RANK], index[IR_MAX_RANK];
  base_text *out = r->print.out;
  uint32_t i = 0, u = 0;
  cuda_routine_strides(x->indices, index);
  cuda_routine_strides(x->operand, own);
  BASE_PUT(out, "  const idx first = 0");
  for (uint32_t d = 0; d < x->indices->rank; d++)
    if (d != x->vector) base_putf(out, " + u%u * %lld", (unsigned)x->batch_dim[d], (long long)index[d]);
  BASE_PUT(out, ";\n  bool fits = true;\n  idx to = 0;\n");
  for (uint32_t d = 0; d < x->operand->rank; d++) {
    if (cu_scatter_window(x, d, &u)) base_putf(out, "  to += u%u * %lld;\n", (unsigned)u, (long long)own[d]);
    if (cu_scatter_has(x->batching, d, &i))
      base_putf(out, "  to += u%u * %lld;\n", (unsigned)x->batch_dim[x->indices_batching->v[i]], (long long)own[d]);
    if (!cu_scatter_has(x->map, d, &i)) continue;
    base_putf(out, "  { const uint64_t at = (uint64_t)((const %s *)in1)[first + %lld];\n",
              cuda_type((base_dtype)x->indices->dtype),
              (long long)(x->vector < x->indices->rank ? (int64_t)i * index[x->vector] : 0));
    base_putf(out, "  fits = fits && at <= %lldull;\n  to += (idx)at * %lld; }\n",
              (long long)(x->operand->dims[d] - cu_scatter_extent(x, d)), (long long)own[d]);
  }
}

static void cu_scatter_put_update(cuda_routine *r, const cu_scatter *x, const scalar_program *p, const char *atomic) {
  int64_t strides[IR_MAX_RANK];
  base_dtype t = (base_dtype)x->operand->dtype;
  const char *c = cuda_type(t);
  char parameters[2][64];
  cuda_routine_strides(x->updates, strides);
  BASE_PUT(r->print.out, "  if (fits) {\n  const idx from = 0");
  for (uint32_t d = 0; d < x->updates->rank; d++)
    base_putf(r->print.out, " + u%u * %lld", (unsigned)d, (long long)strides[d]);
  BASE_PUT(r->print.out, ";\n");
  snprintf(parameters[0], sizeof parameters[0], "((%s *)out0)[to]", c);
  snprintf(parameters[1], sizeof parameters[1], "((const %s *)in2)[from]", c);
  if (atomic) { /* but for the least and the most, CUDA's functions of 64 bits take unsigned numbers, which is the same
                 */
    const char *kind = t == XLAC_S64 && atomic[6] != 'M' ? cuda_type(XLAC_U64) : c;
    base_putf(r->print.out, "  %s(&((%s *)out0)[to], (%s)%s);\n  }\n", atomic, kind, kind, parameters[1]);
    return;
  }
  cuda_body_put(&r->print, p, "b", parameters);
  base_putf(r->print.out, "  ((%s *)out0)[to] = b%u;\n  }\n", c, (unsigned)p->outs[0]);
}

static void cu_scatter_put(cuda_routine *r, const cu_scatter *x, const scalar_program *p, const char *atomic) {
  cuda_routine_open(r, 3, 1, x->threads);
  cu_scatter_put_indexes(r, x, false, "n");
  base_putf(r->print.out, "  for (idx s = 0; s < %lld; s++) {\n", (long long)x->steps);
  cu_scatter_put_indexes(r, x, true, "s");
  cu_scatter_put_place(r, x);
  cu_scatter_put_update(r, x, p, atomic);
  BASE_PUT(r->print.out, "  }\n");
  r->launch->changes = true;
  cuda_routine_close(r, atomic ? "a thread for each update" : "a thread for each place of a window");
}

/* Long rows of windows for few threads are the host's. */
bool cuda_print_scatter(cuda_routine *r) {
  cu_scatter x;
  const ir_op *op = r->op;
  const scalar_program *p = op->n_operands == 3 ? cuda_body_program(r) : NULL;
  if (!p || p->n_params != 2 || p->n_outs != 1) return false;
  cu_scatter_make(op, &x);
  uint8_t t = x.operand->dtype;
  if (x.updates->dtype != t || p->values[0].dtype != t || p->values[1].dtype != t || scalar_out_dtype(p, 0) != t)
    return false;
  if (x.updates->count == 0 || !cu_scatter_is_apart(&x)) return false;
  const char *atomic = cu_scatter_atomic(scalar_program_single(p), (base_dtype)t);
  for (uint32_t d = 0; d < x.updates->rank; d++) {
    x.serial[d] = x.serial[d] && !atomic;
    *(x.serial[d] ? &x.steps : &x.threads) *= x.updates->dims[d];
  }
  if (x.steps > CU_SCATTER_LONG && x.steps / CU_SCATTER_EACH > x.threads) return false;
  if (base_dtype_is_complex((base_dtype)t)) cuda_print_needs(&r->print, cuda_type((base_dtype)t));
  cu_scatter_put(r, &x, p, atomic);
  return true;
}
