/* Simplification of slices, concatenations, pads, updates and gathers: ops that only move elements. Dynamic
 * dimensions are left alone wherever a size is needed. */
#include "../../base/list.h"
#include "mlir_simplify.h"

/* --- slice --- */

/* The parts [*first, *last) of a concatenation that a slice from start to limit reads, and where the first begins. */
static bool movement_parts(const ir_op *concat, int64_t dim, int64_t start, int64_t limit, uint32_t *first,
                           uint32_t *last, int64_t *offset) {
  int64_t at = 0;
  *first = *last = concat->n_operands;
  for (uint32_t i = 0; i < concat->n_operands; i++) {
    const ir_type *t = ir_operand_type(concat, i);
    assert(dim >= 0 && dim < t->rank);
    if (ir_dim_is_dynamic(t, (uint32_t)dim)) return false;
    if (at + t->dims[dim] > start && *first == concat->n_operands) {
      *first = i;
      *offset = at;
    }
    if (at < limit) *last = i + 1;
    at += t->dims[dim];
  }
  return *first < *last;
}

/* The parts [first, last) as one value; a single part is itself. */
static ir_value movement_join(opt_rewriter *rw, const ir_op *concat, uint32_t first, uint32_t last, int64_t dim) {
  assert(first < last && last <= concat->n_operands);
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)(last - first));
  int64_t dims[IR_MAX_RANK];
  if (!parts) return (rw->failed = true), (ir_value){NULL, 0};
  if (last - first == 1) return opt_operand(concat, first);
  const ir_type *t = concat->type;
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[dim] = 0;
  for (uint32_t i = first; i < last; i++) {
    parts[i - first] = opt_operand(concat, i);
    dims[dim] += ir_operand_type(concat, i)->dims[dim];
  }
  const ir_type *type =
      ir_tensor_mlir(rw->m, (base_dtype)t->dtype, t->quant, t->text, t->rank, dims, t->dynamic, NULL, NULL);
  return opt_concatenate(rw, last - first, parts, dim, type);
}

/* A slice of a concatenation needs only the parts it reads. */
static int movement_slice_concat(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_op *concat = ir_operand(op, 0);
  uint32_t n = 0, first = 0, last = 0;
  if (concat->opcode != IR_OP_CONCATENATE || !opt_is_static(op->type) || concat->type->has_dynamic) return 0;
  int64_t dim = ir_m_get_int(concat, "dimension", 0), offset = 0;
  const int64_t *start = opt_ints(rw, op, "start_indices", &n), *limit = opt_ints(rw, op, "limit_indices", &n);
  int64_t from[IR_MAX_RANK] = {0}, to[IR_MAX_RANK] = {0};
  if (!start || !limit || n != op->type->rank || dim < 0 || dim >= n) return 0;
  if (!movement_parts(concat, dim, start[dim], limit[dim], &first, &last, &offset)) return 0;
  /* Several parts are worth a new concatenation only where the old one goes. */
  if (last - first == concat->n_operands || (last - first > 1 && !opt_has_one_use(rw, concat))) return 0;
  memcpy(from, start, n * sizeof *from);
  memcpy(to, limit, n * sizeof *to);
  from[dim] -= offset;
  to[dim] -= offset;
  ir_value a = movement_join(rw, concat, first, last, dim), v = opt_make(rw, IR_OP_SLICE, op->type, 1, &a);
  opt_set(rw, v, "start_indices", ir_m_i64s(rw->m, n, from));
  opt_set(rw, v, "limit_indices", ir_m_i64s(rw->m, n, to));
  opt_set(rw, v, "strides", ir_mattr_of(op, "strides"));
  return opt_simplify_to_new(rw, op, v, changed);
}

/* A slice of everything has the operand's type. */
static int movement_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (opt_is_static(op->type)) TRY(opt_simplify_into(rw, op, opt_operand(op, 0), changed));
  return *changed ? 0 : movement_slice_concat(rw, op, changed);
}

/* An index is what its type says; one beyond i64 is beyond any size. */
static int64_t movement_index(const ir_type *t, const void *p) {
  int64_t v = base_load_i64((base_dtype)t->dtype, p);
  return v < 0 && base_dtype_is_unsigned((base_dtype)t->dtype) ? INT64_MAX : v;
}

/* dynamic_slice and gather move a start that would reach beyond the end back, and a negative one to 0. */
static int64_t movement_clamp(int64_t v, int64_t most) {
  return v < 0 ? 0 : v > most ? most : v;
}

/* A slice at a known place.
 * With constant starts, clamped as the op would. */
static int movement_dynamic_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t n = 0;
  const int64_t *sizes = opt_ints(rw, op, "slice_sizes", &n);
  int64_t start[IR_MAX_RANK] = {0}, limit[IR_MAX_RANK] = {0}, one[IR_MAX_RANK];
  if (!opt_is_static(t) || n != t->rank || op->n_operands != n + 1 || (n && !sizes)) return 0;
  for (uint32_t d = 0; d < n; d++) {
    const void *p = opt_uniform(opt_operand(op, d + 1));
    if (!p) return 0;
    start[d] = movement_clamp(movement_index(ir_operand_type(op, d + 1), p), t->dims[d] - sizes[d]);
    limit[d] = start[d] + sizes[d];
    one[d] = 1;
  }
  return opt_simplify_to_new(rw, op, opt_slice(rw, opt_operand(op, 0), start, limit, one), changed);
}

/* --- concatenate --- */

/* Operands without elements along the dimension add nothing; one is kept if all are so. */
static int movement_concat_empty(opt_rewriter *rw, ir_op *op, int64_t dim, bool *changed) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *t = ir_operand_type(op, i);
    kept += ir_dim_is_dynamic(t, (uint32_t)dim) || t->dims[dim] != 0;
  }
  if (kept == 0 || kept == op->n_operands) return 0;
  for (uint32_t i = op->n_operands; i-- > 0;) {
    const ir_type *t = ir_operand_type(op, i);
    if (ir_dim_is_dynamic(t, (uint32_t)dim) || t->dims[dim] != 0) continue;
    opt_enqueue(rw, ir_operand(op, i));
    ir_operand_remove(op, i);
  }
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Part i is a concatenation along the same dimension that nobody else reads. */
static bool movement_is_inner(const opt_rewriter *rw, const ir_op *op, uint32_t i, int64_t dim) {
  const ir_op *inner = ir_operand(op, i);
  return inner->opcode == IR_OP_CONCATENATE && opt_has_one_use(rw, inner) && ir_m_get_int(inner, "dimension", 0) == dim;
}

/* The parts of a part that nobody else uses are parts. */
static int movement_concat_flatten(opt_rewriter *rw, ir_op *op, int64_t dim, bool *changed) {
  uint32_t n = 0, at = 0;
  bool some = false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    bool inner = movement_is_inner(rw, op, i, dim);
    n += inner ? ir_operand(op, i)->n_operands : 1;
    some = some || inner;
  }
  if (!some) return 0;
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)n + 1);
  if (!parts) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *inner = ir_operand(op, i);
    bool take = movement_is_inner(rw, op, i, dim);
    for (uint32_t k = 0; k < (take ? inner->n_operands : 1); k++)
      parts[at++] = opt_operand(take ? inner : op, take ? k : i);
  }
  return opt_simplify_to_new(rw, op, opt_concatenate(rw, n, parts, dim, op->type), changed);
}

/* One simplification at a time: the driver comes back. */
static int movement_concatenate(opt_rewriter *rw, ir_op *op, bool *changed) {
  int64_t dim = ir_m_get_int(op, "dimension", 0);
  if (op->n_operands == 1) return opt_simplify_to(rw, op, opt_operand(op, 0), changed);
  if (dim < 0 || dim >= op->type->rank) return 0;
  TRY(movement_concat_empty(rw, op, dim, changed));
  return *changed ? 0 : movement_concat_flatten(rw, op, dim, changed);
}

/* --- pad, dynamic_update_slice --- */

/* No padding at all; or padding of nothing, which is the padding value everywhere. */
static int movement_pad(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const names[] = {"edge_padding_low", "edge_padding_high", "interior_padding"};
  const ir_type *t = ir_operand_type(op, 0);
  bool none = true;
  for (uint32_t k = 0; k < 3; k++) {
    uint32_t n = 0;
    const int64_t *v = opt_ints(rw, op, names[k], &n);
    for (uint32_t i = 0; i < n; i++) none = none && v[i] == 0;
  }
  if (none) return opt_simplify_to(rw, op, opt_operand(op, 0), changed);
  if (!opt_is_static(t) || t->count || !opt_is_static(op->type) || t->quant) return 0;
  return opt_simplify_to_new(rw, op, opt_broadcast_in_dim(rw, opt_operand(op, 1), op->type, NULL), changed);
}

/* Of nothing the operand stays; of everything (all starts 0, same type) the update does. */
static int movement_update(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(op->n_operands >= 2);
  ir_value a = opt_operand(op, 0), update = opt_operand(op, 1);
  if (!opt_is_static(opt_type(update))) return 0;
  if (opt_type(update)->count == 0) return opt_simplify_into(rw, op, a, changed);
  for (uint32_t i = 2; i < op->n_operands; i++)
    if (!opt_is_int(opt_operand(op, i), 0)) return 0;
  return opt_type(a) == opt_type(update) ? opt_simplify_into(rw, op, update, changed) : 0;
}

/* --- gather --- */

/* The starts of the one window, by dimension; the others begin at 0. */
static bool movement_gather_offsets(const ir_op *op, const int64_t *map, uint32_t n_map, int64_t *start) {
  bool splat = false;
  const ir_type *t = ir_operand_type(op, 1);
  const ir_literal *l = opt_constant_of(opt_operand(op, 1), &splat);
  if (!l || !l->data || t->rank > 1 || t->count != n_map) return false;
  size_t size = base_dtype_bytes((base_dtype)t->dtype);
  assert(n_map <= IR_MAX_RANK);
  for (uint32_t i = 0; i < n_map; i++)
    start[map[i]] = movement_index(t, (const char *)l->data + (splat ? 0 : i * size));
  return true;
}

/* One window at a known place is a slice, without the dimensions that are collapsed. */
static int movement_gather(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_mattr *numbers = ir_mattr_of(op, "dimension_numbers"), *vector = ir_m_field(numbers, "index_vector_dim");
  const ir_type *t = ir_operand_type(op, 0);
  uint32_t n = 0, n_map = 0, n_collapsed = 0, n_batch = 0;
  const int64_t *sizes = opt_ints(rw, op, "slice_sizes", &n);
  const int64_t *map = ir_m_ints(ir_m_field(numbers, "start_index_map"), &rw->arena, &n_map);
  const int64_t *collapsed = ir_m_ints(ir_m_field(numbers, "collapsed_slice_dims"), &rw->arena, &n_collapsed);
  ir_m_ints(ir_m_field(numbers, "operand_batching_dims"), &rw->arena, &n_batch);
  int64_t start[IR_MAX_RANK] = {0}, limit[IR_MAX_RANK], one[IR_MAX_RANK];
  if ((vector && vector->v.i != 0) || !opt_is_static(t) || !opt_is_static(op->type) || n_batch || n != t->rank)
    return 0;
  if ((n && !sizes) || !movement_gather_offsets(op, map, n_map, start)) return 0;
  for (uint32_t d = 0; d < n; d++) {
    start[d] = movement_clamp(start[d], t->dims[d] - sizes[d]);
    limit[d] = start[d] + sizes[d];
    one[d] = 1;
  }
  for (uint32_t d = 0, kept = 0; d < n; d++) {
    if (base_list_has(collapsed, n_collapsed, d)) continue;
    if (kept >= op->type->rank || op->type->dims[kept++] != sizes[d]) return 0;
  }
  ir_value v = opt_slice(rw, opt_operand(op, 0), start, limit, one);
  if (n_collapsed) v = opt_reshape(rw, v, op->type);
  return opt_simplify_to_new(rw, op, v, changed);
}

const opt_pattern opt_movement_patterns[] = {
    {IR_OP_SLICE, movement_slice},
    {IR_OP_DYNAMIC_SLICE, movement_dynamic_slice},
    {IR_OP_CONCATENATE, movement_concatenate},
    {IR_OP_PAD, movement_pad},
    {IR_OP_DYNAMIC_UPDATE_SLICE, movement_update},
    {IR_OP_GATHER, movement_gather},
    {IR_OP_INVALID, NULL},
};
