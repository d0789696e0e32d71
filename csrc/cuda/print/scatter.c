/* Scatters, the same bits in each run and on the interpreter. Sums of integers and the like, which no order changes,
 * are atomic, with a thread for each update. Few windows are gone through in the order of the indices, with a thread
 * for each place of a window, where no two places can meet. Else windows are sorted by where they go, in their order
 * where that is the same, and a thread goes through those of one target; windows that may meet are taken apart, as if
 * each element had an index. */
#include <stdio.h>

#include "routine.h"

enum {
  CU_SCATTER_FEW = 32,       /* windows that are gone through in a row */
  CU_SCATTER_BUSY = 1 << 14, /* places that keep a GPU busy */
  CU_SCATTER_OPERANDS = 4
};

/* What the attributes say. */
typedef struct cu_scatter {
  const ir_type *operand, *indices, *updates; /* operands and updates are of one shape each */
  uint32_t n;                                 /* operands */
  const ir_ints *window, *inserted, *map, *batching, *indices_batching;
  uint32_t vector;                 /* the indices' dimension that has the parts of an index */
  uint32_t batch_dim[IR_MAX_RANK]; /* by dimension of the indices: the updates' */
  bool serial[IR_MAX_RANK];        /* by dimension of the updates: its windows are gone through in order */
  int64_t threads, steps;
} cu_scatter;

static void cu_scatter_make(const ir_op *op, cu_scatter *x) {
  const ir_attr *vector = ir_attr_find(op, IR_ATTR_INDEX_VECTOR_DIM);
  uint32_t used = 0;
  *x = (cu_scatter){.operand = ir_operand_type(op, 0),
                    .indices = ir_operand_type(op, op->n_operands / 2),
                    .updates = ir_operand_type(op, op->n_operands / 2 + 1),
                    .n = op->n_operands / 2,
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
    while (used < x->updates->rank && ir_ints_has(x->window, used)) used++;
    x->batch_dim[d] = used++;
    x->serial[x->batch_dim[d]] = !ir_ints_has(x->indices_batching, d);
  }
}

/* The updates' dimension along the operand's dimension d of a window; false where that has none. */
static bool cu_scatter_window(const cu_scatter *x, uint32_t d, uint32_t *out) {
  uint32_t before = 0;
  if (ir_ints_has(x->inserted, d) || ir_ints_has(x->batching, d)) return false;
  for (uint32_t i = 0; i < d; i++) before += !ir_ints_has(x->inserted, i) && !ir_ints_has(x->batching, i);
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
  uint32_t u = 0;
  cuda_routine_strides(x->indices, index);
  cuda_routine_strides(x->operand, own);
  BASE_PUT(out, "  const idx first = 0");
  for (uint32_t d = 0; d < x->indices->rank; d++)
    if (d != x->vector) base_putf(out, " + u%u * %lld", (unsigned)x->batch_dim[d], (long long)index[d]);
  BASE_PUT(out, ";\n  bool fits = true;\n  idx to = 0;\n");
  for (uint32_t d = 0; d < x->operand->rank; d++) {
    if (cu_scatter_window(x, d, &u)) base_putf(out, "  to += u%u * %lld;\n", (unsigned)u, (long long)own[d]);
    int64_t batch = ir_ints_at(x->batching, d), entry = ir_ints_at(x->map, d);
    if (batch >= 0)
      base_putf(out, "  to += u%u * %lld;\n", (unsigned)x->batch_dim[x->indices_batching->v[batch]], (long long)own[d]);
    if (entry < 0) continue;
    base_putf(out, "  { const uint64_t at = (uint64_t)((const %s *)in%u)[first + %lld];\n",
              cuda_type((base_dtype)x->indices->dtype), (unsigned)x->n,
              (long long)(x->vector < x->indices->rank ? entry * index[x->vector] : 0));
    base_putf(out, "  fits = fits && at <= %lldull;\n  to += (idx)at * %lld; }\n",
              (long long)(x->operand->dims[d] - cu_scatter_extent(x, d)), (long long)own[d]);
  }
}

static void cu_scatter_put_update(cuda_routine *r, const cu_scatter *x, const scalar_program *p, const char *atomic) {
  int64_t strides[IR_MAX_RANK];
  char parameters[2 * CU_SCATTER_OPERANDS][64];
  cuda_routine_strides(x->updates, strides);
  BASE_PUT(r->print.out, "  if (fits) {\n  const idx from = 0");
  for (uint32_t d = 0; d < x->updates->rank; d++)
    base_putf(r->print.out, " + u%u * %lld", (unsigned)d, (long long)strides[d]);
  BASE_PUT(r->print.out, ";\n");
  for (uint32_t i = 0; i < x->n; i++) {
    const char *c = cuda_type((base_dtype)p->values[i].dtype);
    snprintf(parameters[i], sizeof parameters[i], "((%s *)out%u)[to]", c, (unsigned)i);
    snprintf(parameters[x->n + i], sizeof parameters[i], "((const %s *)in%u)[from]", c, (unsigned)(x->n + 1 + i));
  }
  if (atomic) { /* CUDA's 64-bit functions take unsigned numbers, with the same bits but for minimum and maximum */
    base_dtype t = (base_dtype)x->operand->dtype;
    const char *kind = cuda_type(t == XLAC_S64 && atomic[6] != 'M' ? XLAC_U64 : t);
    base_putf(r->print.out, "  %s(&((%s *)out0)[to], (%s)%s);\n  }\n", atomic, kind, kind, parameters[1]);
    return;
  }
  cuda_body_put(&r->print, p, "b", parameters);
  for (uint32_t i = 0; i < x->n; i++)
    base_putf(r->print.out, "  ((%s *)out%u)[to] = b%u;\n", cuda_type((base_dtype)p->values[i].dtype), (unsigned)i,
              (unsigned)p->outs[i]);
  BASE_PUT(r->print.out, "  }\n");
}

static void cu_scatter_put(cuda_routine *r, const cu_scatter *x, const scalar_program *p, const char *atomic) {
  cuda_routine_open(r, 2 * x->n + 1, x->n, x->threads);
  cu_scatter_put_indexes(r, x, false, "n");
  base_putf(r->print.out, "  for (idx s = 0; s < %lld; s++) {\n", (long long)x->steps);
  cu_scatter_put_indexes(r, x, true, "s");
  cu_scatter_put_place(r, x);
  cu_scatter_put_update(r, x, p, atomic);
  BASE_PUT(r->print.out, "  }\n");
  cuda_routine_close(r, atomic ? "a thread for each update" : "a thread for each place of a window");
}

/* --- sorted --- */

/* The first round says where each window goes, as "keys"; what does not fit goes to -1. */
static void cu_scatter_put_keys(cuda_routine *r, const cu_scatter *x) {
  BASE_PUT(r->print.out, "  if (round == 0) {\n");
  for (uint32_t d = 0; d < x->updates->rank; d++)
    if (!x->serial[d]) base_putf(r->print.out, "  const idx u%u = 0;\n", (unsigned)d);
  cu_scatter_put_indexes(r, x, true, "n");
  cu_scatter_put_place(r, x);
  BASE_PUT(r->print.out, "  keys[n] = fits ? to : -1;\n  return;\n  }\n");
}

/* The last one: a thread for each place of each window that is the first of those at its target. Neighbouring threads
 * have neighbouring places, so that they read and write whole pieces of memory, of one run of windows. */
static void cu_scatter_put_runs(cuda_routine *r, const cu_scatter *x, const scalar_program *p) {
  base_putf(r->print.out, "  const idx key = keys[from[p]], place = n %% %lld;\n", (long long)x->threads);
  BASE_PUT(r->print.out, "  if (key < 0 || (p && keys[from[p - 1]] == key)) return;\n");
  cu_scatter_put_indexes(r, x, false, "place");
  base_putf(r->print.out, "  for (idx q = p; q < %lld && keys[from[q]] == key; q++) {\n  const idx s = from[q];\n",
            (long long)x->steps);
  cu_scatter_put_indexes(r, x, true, "s");
  cu_scatter_put_place(r, x);
  cu_scatter_put_update(r, x, p, NULL);
  BASE_PUT(r->print.out, "  }\n");
}

static void cu_scatter_put_sorted(cuda_routine *r, const cu_scatter *x, const scalar_program *p) {
  base_text *out = r->print.out;
  long long n = (long long)x->steps;
  r->launch->rounds = cuda_sort_levels(n) + 2;
  r->launch->scratch = 16 * x->steps;
  cuda_routine_open(r, 2 * x->n + 1, x->n, x->steps * x->threads);
  base_putf(out, "  idx *keys = (idx *)scratch;\n  const idx p = round <= %u ? n : n / %lld;\n",
            (unsigned)cuda_sort_levels(n), (long long)x->threads);
  base_putf(out, "  int *to = (int *)(keys + %lld) + (round & 1) * %lld;\n", n, n);
  base_putf(out, "  const int *from = (int *)(keys + %lld) + (~round & 1) * %lld;\n", n, n);
  BASE_PUT(out, "  const int level = round - 1;\n  auto less = [&](idx a, idx b) { return keys[a] < keys[b]; };\n");
  base_putf(out, "  if (round <= %u) {\n  if (n >= %lld) return;\n", (unsigned)cuda_sort_levels(n), n);
  cu_scatter_put_keys(r, x);
  cuda_sort_put_merge(out, n);
  BASE_PUT(out, "  to[at] = (int)self;\n  return;\n  }\n");
  cu_scatter_put_runs(r, x, p);
  cuda_routine_close(r, "windows sorted by where they go");
}

/* --- which --- */

static bool cu_scatter_is_known(const cuda_routine *r, const scalar_program *p, uint32_t n) {
  if (!p || n > CU_SCATTER_OPERANDS || p->n_params != 2 * n || p->n_outs != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    uint8_t t = ir_operand_type(r->op, i)->dtype;
    if (ir_operand_type(r->op, n + 1 + i)->dtype != t || p->values[i].dtype != t || p->values[n + i].dtype != t ||
        scalar_out_dtype(p, i) != t)
      return false;
  }
  return true;
}

static void cu_scatter_count(cu_scatter *x) {
  x->threads = x->steps = 1;
  for (uint32_t d = 0; d < x->updates->rank; d++) *(x->serial[d] ? &x->steps : &x->threads) *= x->updates->dims[d];
}

bool cuda_print_scatter(cuda_routine *r) {
  cu_scatter x;
  const scalar_program *p = cuda_body_program(r);
  if (!cu_scatter_is_known(r, p, r->op->n_operands / 2)) return false;
  cu_scatter_make(r->op, &x);
  bool apart = cu_scatter_is_apart(&x);
  const char *atomic = x.n == 1 ? cu_scatter_atomic(scalar_program_single(p), (base_dtype)x.operand->dtype) : NULL;
  if (x.updates->count == 0 || x.operand->count == 0) return false;
  for (uint32_t i = 0; i < x.n; i++)
    if (base_dtype_is_complex((base_dtype)p->values[i].dtype))
      cuda_print_needs(&r->print, cuda_type((base_dtype)p->values[i].dtype));
  cu_scatter_count(&x);
  r->launch->changes = true;
  bool few = !atomic && apart && (x.steps <= CU_SCATTER_FEW || x.threads >= CU_SCATTER_BUSY);
  bool whole = atomic || !apart || (x.batching && x.batching->n > 0);
  for (uint32_t d = 0; d < x.updates->rank && !few && whole; d++) x.serial[d] = !atomic;
  cu_scatter_count(&x);
  if (few || atomic) {
    cu_scatter_put(r, &x, p, atomic);
    return true;
  }
  if (x.steps >= INT32_MAX) return false;
  cu_scatter_put_sorted(r, &x, p);
  return true;
}
