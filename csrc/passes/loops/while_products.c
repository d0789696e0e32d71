/* Products in a loop's body of a row of an array, taken at a place that changes, with what never changes: all rows are
 * multiplied at once, and the body takes a row of that. In recurrent layers these are the inputs' products, which do
 * not wait for the state.
 *
 *    before: body: x = dynamic-slice(xs, i, 0); y = dot(x, w)
 *    after:  body: ys = dot(xs, w); y = dynamic-slice(ys, i, 0)
 *
 * ys then is invariant, and is moved out of the loop. Each element of a result is the same sum of the same products in
 * the same order, whatever i is: a place out of range is clamped in ys as it was in xs. It pays where the loop turns
 * about as often as there are rows. */
#include "while_products.h"

enum {
  WPROD_ROWS = 4,        /* of a product in a trip: from here on it is as fast as that of all rows */
  WPROD_LEAST = 256,     /* products of numbers in a trip: fewer are done in registers (cpu/loop) */
  WPROD_MOST = 32 << 20, /* bytes of all rows' products */
  WPROD_TRIPS = 2        /* rows for each trip of the loop, at most */
};

/* A scalar constant that is an integer. */
static bool wprod_number(const ir_op *op, int64_t *n) {
  bool is = op->opcode == IR_OP_CONSTANT && ir_is_tensor(op->type) && op->type->count == 1 && op->u.literal;
  if (!is || op->u.literal->elided || !base_dtype_is_integer((base_dtype)op->type->dtype)) return false;
  *n = base_load_i64((base_dtype)op->type->dtype, op->u.literal->data);
  return true;
}

/* Of loops that count up by one to a constant; 0 of others. */
static int64_t wprod_trips(const while_state *w) {
  const ir_op *root = ir_root(w->condition->parent);
  int64_t start = 0, end = 0, step = 0;
  if (root->opcode != IR_OP_COMPARE || ir_get_word(root, IR_ATTR_DIRECTION) != IR_DIRECTION_LT) return 0;
  int64_t i = while_element_of(ir_operand(root, 0), w->condition);
  if (i < 0 || !wprod_number(ir_operand(root, 1), &end) || !wprod_number(ir_operand(w->init, (uint32_t)i), &start))
    return 0;
  const ir_op *next = ir_operand(w->root, (uint32_t)i);
  if (next->opcode != IR_OP_ADD || while_element_of(ir_operand(next, 0), w->inside) != i) return 0;
  return wprod_number(ir_operand(next, 1), &step) && step == 1 && end > start ? end - start : 0;
}

/* The dynamic-slice that gives one row along the first dimension of what never changes, at a place that does; NULL
 * where op is none, or has another shape than a row's. */
static const ir_op *wprod_row(const ir_op *op, const uint8_t *fixed) {
  const ir_op *slice = op->opcode == IR_OP_RESHAPE ? ir_operand(op, 0) : op;
  if (slice->opcode != IR_OP_DYNAMIC_SLICE || !fixed[ir_operand(slice, 0)->id]) return NULL;
  const ir_type *array = ir_operand_type(slice, 0), *row = slice->type;
  if (!hlo_is_plain(array) || !hlo_is_plain(op->type) || array->rank == 0) return NULL;
  if (slice->n_operands != array->rank + 1u || row->dims[0] != 1 || fixed[ir_operand(slice, 1)->id]) return NULL;
  for (uint32_t d = 1; d < array->rank; d++)
    if (row->dims[d] != array->dims[d]) return NULL;
  if (op == slice) return slice;
  if (op->type->rank != array->rank - 1u) return NULL;
  for (uint32_t d = 1; d < array->rank; d++)
    if (op->type->dims[d - 1] != array->dims[d]) return NULL;
  return slice;
}

/* Dimensions of a dot's operand that it sums over. */
static const ir_ints *wprod_summed(const ir_op *dot, uint32_t side) {
  return ir_get_ints(dot, side ? IR_ATTR_RHS_CONTRACTING_DIMS : IR_ATTR_LHS_CONTRACTING_DIMS);
}

/* Sides of one type, without a batch. */
static bool wprod_is_plain(const ir_op *dot) {
  if (dot->opcode != IR_OP_DOT || dot->n_operands != 2 || ir_attr_find(dot, IR_ATTR_SPARSITY_CONFIG)) return false;
  if (ir_get_word(dot, IR_ATTR_ALGORITHM) != IR_DOT_UNSET) return false;
  const ir_ints *batch = ir_get_ints(dot, IR_ATTR_LHS_BATCH_DIMS);
  if ((batch && batch->n) || !wprod_summed(dot, 0) || !wprod_summed(dot, 1)) return false;
  return ir_operand_type(dot, 0)->dtype == ir_operand_type(dot, 1)->dtype && hlo_is_plain(dot->type);
}

/* The dimensions of the product of all rows: rows, what is left of a row, what is left of the other side. */
static uint32_t wprod_dims(const ir_op *dot, uint32_t side, const ir_op *slice, int64_t *dims) {
  const ir_type *array = ir_operand_type(slice, 0), *other = ir_operand_type(dot, !side);
  uint32_t n = 0, gone = array->rank - ir_operand_type(dot, side)->rank;
  dims[n++] = array->dims[0];
  for (uint32_t d = 1; d < array->rank && n < IR_MAX_RANK; d++)
    if (!ir_ints_has(wprod_summed(dot, side), (int64_t)d - gone)) dims[n++] = array->dims[d];
  for (uint32_t d = 0; d < other->rank && n < IR_MAX_RANK; d++)
    if (!ir_ints_has(wprod_summed(dot, !side), d)) dims[n++] = other->dims[d];
  return n;
}

/* Whether operand `side` of the dot is such a row, and all rows together are worth their memory. */
static const ir_op *wprod_of(const ir_op *dot, uint32_t side, const uint8_t *fixed, int64_t trips) {
  const ir_op *op = ir_operand(dot, side), *other = ir_operand(dot, !side), *slice = wprod_row(op, fixed);
  if (!slice || !fixed[other->id] || !hlo_is_plain(other->type)) return NULL;
  const ir_type *array = ir_operand_type(slice, 0);
  const ir_ints *summed = wprod_summed(dot, side);
  int64_t terms = 1, bytes = 0;
  for (uint32_t i = 0; i < summed->n; i++) terms *= op->type->dims[summed->v[i]];
  if (array->rank == op->type->rank && ir_ints_has(summed, 0)) return NULL;
  if (terms == 0 || op->type->count >= WPROD_ROWS * terms) return NULL;
  if (op->type->rank + other->type->rank >= IR_MAX_RANK) return NULL;
  /* what is left of both sides changes places where the row is on the right */
  if (side == 1 && op->type->count > terms && other->type->count > terms) return NULL;
  if (dot->type->count * terms < WPROD_LEAST || array->dims[0] > WPROD_TRIPS * trips) return NULL;
  if (!base_mul_i64(ir_type_bytes(dot->type), array->dims[0], &bytes) || bytes > WPROD_MOST) return NULL;
  return slice;
}

/* Precisions are said by operand. */
static void wprod_set_precision(hlo_maker *x, ir_op *made, const ir_op *dot, uint32_t side) {
  const ir_attr *a = ir_attr_find(dot, IR_ATTR_OPERAND_PRECISION);
  if (!a || a->v.ints->n != 2) return;
  ir_attr attr = ir_attr_make(IR_ATTR_OPERAND_PRECISION);
  attr.v.ints = ir_ints_make(x->m, 2, (int64_t[]){a->v.ints->v[side], a->v.ints->v[!side]});
  if (!attr.v.ints || !ir_attr_set(made, attr)) x->failed = true;
}

/* All rows by the other side. */
static ir_op *wprod_all(hlo_maker *x, const ir_op *dot, uint32_t side, const ir_op *slice, const ir_type *type) {
  const ir_ints *summed = wprod_summed(dot, side), *other = wprod_summed(dot, !side);
  uint32_t gone = ir_operand_type(slice, 0)->rank - ir_operand_type(dot, side)->rank;
  int64_t moved[IR_MAX_RANK];
  for (uint32_t i = 0; i < summed->n; i++) moved[i] = summed->v[i] + gone;
  ir_op *made = hlo_make(x, IR_OP_DOT, type, 2, (ir_op *[]){ir_operand(slice, 0), ir_operand(dot, !side)});
  if (made && (!ir_set_ints(made, IR_ATTR_LHS_CONTRACTING_DIMS, summed->n, moved) ||
               !ir_set_ints(made, IR_ATTR_RHS_CONTRACTING_DIMS, other->n, other->v)))
    x->failed = true;
  if (made) wprod_set_precision(x, made, dot, side);
  return made;
}

/* Puts a row of all rows' product in the dot's place; gives that product. */
static ir_op *wprod_replace(hlo_maker *x, ir_op *dot, uint32_t side, const ir_op *slice) {
  int64_t dims[IR_MAX_RANK];
  uint32_t n = wprod_dims(dot, side, slice, dims);
  ir_op *operands[IR_MAX_RANK + 1];
  base_dtype t = (base_dtype)dot->type->dtype;
  x->before = dot;
  ir_op *all = wprod_all(x, dot, side, slice, ir_tensor_default(x->m, t, n, dims, NULL));
  ir_op *zero = hlo_scalar(x, (base_dtype)ir_operand_type(slice, 1)->dtype, 0);
  operands[0] = all, operands[1] = ir_operand(slice, 1);
  for (uint32_t d = 1; d < n; d++) operands[d + 1] = zero;
  dims[0] = 1;
  ir_op *row = hlo_make(x, IR_OP_DYNAMIC_SLICE, ir_tensor_default(x->m, t, n, dims, NULL), n + 1, operands);
  if (row && !ir_set_ints(row, IR_ATTR_DYNAMIC_SLICE_SIZES, n, dims)) x->failed = true;
  if (row && row->type != dot->type) row = hlo_make(x, IR_OP_RESHAPE, dot->type, 1, &row);
  if (!row || x->failed || !ir_replace_uses(dot, row)) return x->failed = true, NULL;
  ir_op_remove(dot);
  return all;
}

uint32_t while_batch_products(const while_state *w, hlo_maker *x, const opt_facts *facts, const uint8_t *fixed,
                              ir_op *const *order, uint32_t n, const ir_op **made) {
  uint32_t count = 0;
  int64_t trips = wprod_trips(w);
  assert(w->inside && order);
  for (uint32_t i = 0; i < n && count < WHILE_PRODUCTS && trips > 0 && !x->failed; i++) {
    if (!wprod_is_plain(order[i]) || fixed[order[i]->id] || opt_in_edge(facts, order[i])) continue;
    for (uint32_t side = 0; side < 2; side++) {
      const ir_op *slice = wprod_of(order[i], side, fixed, trips);
      if (!slice) continue;
      made[count++] = wprod_replace(x, order[i], side, slice);
      break;
    }
  }
  return count;
}
