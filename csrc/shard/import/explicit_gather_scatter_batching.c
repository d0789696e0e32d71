/* sdy-explicit-gather-scatter-batching: where the indices of a gather or scatter say "row i of dimension 0 for place
 * i", which is what indexing by an iota lowers to, dimension 0 becomes a batching dimension, along which all can be
 * sharded without communication. Requires: nothing. Preserves: what the program computes. Source: Shardy's answers;
 * which index computations count as the place itself is decided here, and stricter where Shardy's would change a
 * result. */
#include "../../passes/simplify/mlir_simplify.h"
#include "../common/common.h"
#include "../rules/rule.h"
#include "../../base/list.h"

/* The lists that a gather and a scatter call by different names, in the order of the attribute.
 * Example: indices = concatenate(iota dim=0 : 8x1, j : 8x1) dim 1, start_index_map = [0, 1], collapsed_slice_dims =
 * [0, 1] on an operand of 8x4 becomes indices = j, start_index_map = [1], collapsed_slice_dims = [1] and batching
 * dimension 0 on both sides. */
typedef struct shbatch_names {
  const char *dims, *struct_name, *window, *collapsed, *batching, *indices_batching, *map;
} shbatch_names;
static const shbatch_names shbatch_gather = {.dims = "dimension_numbers",
                                             .struct_name = "gather",
                                             .window = "offset_dims",
                                             .collapsed = "collapsed_slice_dims",
                                             .batching = "operand_batching_dims",
                                             .indices_batching = "start_indices_batching_dims",
                                             .map = "start_index_map"};
static const shbatch_names shbatch_scatter = {.dims = "scatter_dimension_numbers",
                                              .struct_name = "scatter",
                                              .window = "update_window_dims",
                                              .collapsed = "inserted_window_dims",
                                              .batching = "input_batching_dims",
                                              .indices_batching = "scatter_indices_batching_dims",
                                              .map = "scatter_dims_to_operand_dims"};

/* --- values that are their own place along dimension 0 --- */

/* Whether all of v is one integer, in *out. */
static bool shbatch_uniform(ir_value v, int64_t *out) {
  if (v.op->opcode == IR_OP_BROADCAST) v = opt_operand(v.op, 0);
  const ir_type *t = opt_type(v);
  bool constant = v.op->opcode == IR_OP_CONSTANT || v.op->opcode == IR_OP_SDY_CONSTANT;
  const ir_mattr *a = constant ? ir_mattr_of(v.op, "value") : NULL;
  const ir_literal *l = a && a->kind == IR_M_DENSE ? a->v.literal : NULL;
  if (!l || !l->data || !ir_is_tensor(t) || t->quant || !base_dtype_is_integer((base_dtype)t->dtype)) return false;
  if (!a->splat && t->count != 1) return false;
  *out = base_load_i64((base_dtype)t->dtype, l->data);
  return true;
}

/* The guard of numpy-style indexing: select(i < 0, i + n, i). An iota is never negative, so it is i. */
static bool shbatch_is_below_zero(ir_value pred, ir_value *compared) {
  int64_t bound = 1;
  if (pred.op->opcode != IR_OP_COMPARE || ir_m_get_word(pred.op, "comparison_direction") != IR_DIRECTION_LT)
    return false;
  *compared = opt_operand(pred.op, 0);
  return shbatch_uniform(opt_operand(pred.op, 1), &bound) && bound <= 0;
}

/* What v is a copy of, along dimension 0, if it is its own place; `n` is the size of that dimension. NULL op: no
 * further.
 * Reshapes that keep dimension 0, and clamps to [0, n - 1], change no place. */
static ir_value shbatch_source(ir_value v, int64_t n) {
  static const ir_value none = {NULL, 0};
  const ir_op *op = v.op;
  const ir_type *t = op->n_operands ? opt_type(opt_operand(op, 0)) : NULL;
  int64_t low = 0, high = 0;
  switch (op->opcode) {
    case IR_OP_RESHAPE:
      return shc_is_static(t) && t->rank && t->dims[0] == n ? opt_operand(op, 0) : none;
    case IR_OP_CLAMP:
      return shbatch_uniform(opt_operand(op, 0), &low) && shbatch_uniform(opt_operand(op, 2), &high) && low <= 0 &&
                     high >= n - 1
                 ? opt_operand(op, 1)
                 : none;
    default:
      return none;
  }
}

/* Broadcasts that keep dimension 0 where it is and add others. */
static ir_value shbatch_broadcast_source(opt_rewriter *rw, ir_value v, int64_t n) {
  static const ir_value none = {NULL, 0};
  uint32_t n_dims = 0;
  const ir_type *t = opt_type(opt_operand(v.op, 0));
  const int64_t *dims = opt_ints(rw, v.op, "broadcast_dimensions", &n_dims);
  return dims && n_dims && dims[0] == 0 && shc_is_static(t) && t->rank && t->dims[0] == n ? opt_operand(v.op, 0) : none;
}

/* How far the computation of an index is followed; halved at each branch, so that the whole search is bounded. */
enum { SHBATCH_STEPS = 64 };

/* The iota's type must hold n - 1: an i8 iota of 300 elements wraps around. (n <= 2^(bits - 1).) */
static bool shbatch_is_place(opt_rewriter *rw, ir_value v, int64_t n, uint32_t steps) {
  for (; steps && v.op; steps--) {
    const ir_op *op = v.op;
    ir_value compared = {NULL, 0};
    if (op->opcode == IR_OP_IOTA) {
      const ir_type *t = opt_type(v);
      uint32_t bits = ir_is_tensor(t) ? base_dtype_of((base_dtype)t->dtype)->bits : 0;
      return ir_m_get_int(op, "iota_dimension", -1) == 0 && (bits >= 32 || (bits > 1 && n <= 1 << (bits - 1)));
    }
    if (op->opcode == IR_OP_SELECT) { /* of what counts from the end where it is negative, which it is not */
      if (!shbatch_is_below_zero(opt_operand(op, 0), &compared) || !shbatch_is_place(rw, compared, n, steps / 2))
        return false;
      v = opt_operand(op, 2);
      continue;
    }
    v = op->opcode == IR_OP_BROADCAST ? shbatch_broadcast_source(rw, v, n) : shbatch_source(v, n);
  }
  return false;
}

/* Component `at` of the indices is the place along dimension 0. */
static bool shbatch_component(opt_rewriter *rw, ir_value indices, int64_t vector_dim, uint32_t at) {
  assert(vector_dim > 0);
  const ir_op *op = indices.op;
  int64_t n = opt_type(indices)->dims[0];
  if (op->opcode != IR_OP_CONCATENATE) return shbatch_is_place(rw, indices, n, SHBATCH_STEPS);
  if (ir_m_get_int(op, "dimension", -1) != vector_dim || at >= op->n_operands) return false;
  for (uint32_t i = 0; i <= at; i++)
    if (opt_type(opt_operand(op, i))->dims[vector_dim] != 1) return false;
  return shbatch_is_place(rw, opt_operand(op, at), n, SHBATCH_STEPS);
}

/* --- indices without the component --- */

/* Elements from .. to (exclusive) of one dimension, all of the others. */
static ir_value shbatch_part(opt_rewriter *rw, ir_value v, int64_t dim, int64_t from, int64_t to) {
  assert(dim >= 0 && from < to);
  const ir_type *t = opt_type(v);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < t->rank; d++) {
    starts[d] = (int64_t)d == dim ? from : 0;
    limits[d] = (int64_t)d == dim ? to : t->dims[d];
    strides[d] = 1;
  }
  return opt_slice(rw, v, starts, limits, strides);
}

/* The type has one element less along `dim` than `t`. */
static ir_value shbatch_joined(opt_rewriter *rw, const ir_type *t, uint32_t n, const ir_value *parts, int64_t dim) {
  assert(n >= 1);
  int64_t dims[IR_MAX_RANK] = {0};
  if (n == 1) return parts[0];
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[dim]--;
  return opt_concatenate(rw, n, parts, dim, opt_tensor(rw, (base_dtype)t->dtype, t->rank, dims));
}

/* A concatenation of single columns loses one of its operands; anything else is sliced before and after the column. */
static ir_value shbatch_without(opt_rewriter *rw, ir_value indices, int64_t dim, uint32_t at) {
  const ir_type *t = opt_type(indices);
  const ir_op *op = indices.op;
  uint32_t n = 0;
  if (op->opcode == IR_OP_CONCATENATE && ir_m_get_int(op, "dimension", -1) == dim && op->n_operands == t->dims[dim]) {
    ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, op->n_operands);
    rw->failed = rw->failed || !parts;
    for (uint32_t i = 0; parts && i < op->n_operands; i++)
      if (i != at) parts[n++] = opt_operand(op, i);
    return parts ? shbatch_joined(rw, t, n, parts, dim) : (ir_value){NULL, 0};
  }
  ir_value two[2];
  if (at > 0) two[n++] = shbatch_part(rw, indices, dim, 0, at);
  if (at + 1 < t->dims[dim]) two[n++] = shbatch_part(rw, indices, dim, (int64_t)at + 1, t->dims[dim]);
  return shbatch_joined(rw, t, n, two, dim);
}

/* --- the op --- */

typedef struct shbatch_lists {
  const shbatch_names *names;
  const ir_mattr *dims;
  const int64_t *collapsed, *map;
  uint32_t n_collapsed, n_map;
  int64_t vector_dim;
} shbatch_lists;

/* false: the op has batching dimensions already, and is left alone. */
static bool shbatch_read(opt_rewriter *rw, const ir_op *op, shbatch_lists *x) {
  x->dims = ir_mattr_of(op, x->names->dims);
  if (!x->dims || x->dims->kind != IR_M_STRUCT) return false;
  uint32_t n_batching = 0;
  ir_m_ints(ir_m_field(x->dims, x->names->batching), &rw->arena, &n_batching);
  x->collapsed = ir_m_ints(ir_m_field(x->dims, x->names->collapsed), &rw->arena, &x->n_collapsed);
  x->map = ir_m_ints(ir_m_field(x->dims, x->names->map), &rw->arena, &x->n_map);
  const ir_mattr *vector = ir_m_field(x->dims, "index_vector_dim");
  x->vector_dim = vector && vector->kind == IR_M_INTEGER ? vector->v.i : 0;
  return n_batching == 0;
}

/* The list without dimension 0. */
static const ir_mattr *shbatch_less_zero(ir_module *m, const int64_t *v, uint32_t n) {
  assert(n <= IR_MAX_RANK);
  int64_t rest[IR_MAX_RANK];
  uint32_t k = 0;
  for (uint32_t i = 0; i < n && k < IR_MAX_RANK; i++)
    if (v[i] != 0) rest[k++] = v[i];
  return ir_m_i64s(m, k, rest);
}

static const ir_mattr *shbatch_dims(ir_module *m, const shbatch_lists *x) {
  static const int64_t zero = 0;
  const shbatch_names *names = x->names;
  const struct {
    const char *key;
    const ir_mattr *value;
  } made[] = {{names->window, ir_m_field(x->dims, names->window)},
              {names->collapsed, shbatch_less_zero(m, x->collapsed, x->n_collapsed)},
              {names->batching, ir_m_i64s(m, 1, &zero)},
              {names->indices_batching, ir_m_i64s(m, 1, &zero)},
              {names->map, shbatch_less_zero(m, x->map, x->n_map)},
              {"index_vector_dim", ir_m_i64(m, x->vector_dim)}};
  ir_mentry fields[sizeof made / sizeof *made];
  uint32_t n = 0;
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    if (i == 0 && !made[i].value) continue; /* not written: empty */
    fields[n] = (ir_mentry){ir_intern(m, made[i].key, strlen(made[i].key)), made[i].value};
    if (!fields[n].key || !fields[n].value) return NULL;
    n++;
  }
  return ir_m_struct(m, "stablehlo", names->struct_name, n, fields);
}

/* Conditions: dimension 0 of operand and indices are equally long, it is indexed and collapsed, there are other
 * components, and this one is the place itself. */
static int shbatch_op(opt_rewriter *rw, ir_op *op, bool *changed) {
  bool scatter = op->opcode == IR_OP_SCATTER;
  uint32_t slot = scatter ? op->n_operands / 2 : 1;
  shbatch_lists x = {.names = scatter ? &shbatch_scatter : &shbatch_gather};
  ir_value indices = opt_operand(op, slot);
  const ir_type *input = opt_type(opt_operand(op, 0)), *t = opt_type(indices);
  if (!shc_is_static(input) || !shc_is_static(t) || !input->rank || !t->rank || !shbatch_read(rw, op, &x)) return 0;
  if (x.vector_dim <= 0 || x.vector_dim >= t->rank || t->dims[x.vector_dim] <= 1) return 0;
  int64_t at = base_list_at(x.map, x.n_map, 0);
  if (t->dims[0] != input->dims[0] || at < 0) return 0;
  if (!base_list_has(x.collapsed, x.n_collapsed, 0)) return 0;
  if (!shbatch_component(rw, indices, x.vector_dim, (uint32_t)at)) return 0;
  ir_value rest = shbatch_without(rw, indices, x.vector_dim, (uint32_t)at);
  const ir_mattr *dims = shbatch_dims(rw->m, &x);
  if (!rest.op || !dims || !ir_m_set(op, x.names->dims, dims)) {
    rw->failed = true;
    return 0;
  }
  ir_set_operand(op, slot, rest);
  opt_enqueue(rw, indices.op);
  *changed = true;
  return 0;
}

int shard_explicit_batching(ir_module *m, const opt_args *args, xlac_error *err) {
  static const opt_pattern patterns[] = {{IR_OP_GATHER, shbatch_op}, {IR_OP_SCATTER, shbatch_op}};
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_hoist_constants(&rw);
  if (status == 0) status = opt_rewrite(&rw, 2, patterns);
  opt_rewriter_free(&rw);
  return status;
}
