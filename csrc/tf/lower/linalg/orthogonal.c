/* What decompositions share: pairs of columns, rotations, order. */
#include "../orthogonal.h"

#include "../windows.h"

static ir_value orth_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

int tfl_matrices(tfl_op *x, int64_t dims[3], ir_value *out) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2 || !base_dtype_is_float((base_dtype)t->dtype))
    return tfl_fail(x, "it takes matrices of real numbers, found rank %u", t->rank);
  dims[0] = tfl_count(t->rank - 2, t->dims);
  dims[1] = t->dims[t->rank - 2];
  dims[2] = t->dims[t->rank - 1];
  if (dims[1] == 0 || dims[2] == 0) return tfl_fail(x, "the matrices have no elements");
  base_dtype wide = t->dtype == XLAC_F64 ? XLAC_F64 : XLAC_F32;
  *out = tfl_cast(x, tfl_reshape(x, tfl_in(x, 0), 3, dims), wide);
  return x->status;
}

void tfl_out_batch(tfl_op *x, uint32_t i, ir_value v) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t dims[TFL_MOST_DIMS + 2];
  if (!v.op) return;
  uint32_t lead = t->rank - 2, rest = opt_type(v)->rank - 1;
  for (uint32_t d = 0; d < lead; d++) dims[d] = t->dims[d];
  for (uint32_t d = 0; d < rest; d++) dims[lead + d] = opt_type(v)->dims[d + 1];
  tfl_out(x, i, tfl_cast(x, tfl_reshape(x, v, lead + rest, dims), tfl_out_dtype(x, i)));
}

ir_value tfl_identity(tfl_op *x, base_dtype dtype, int64_t batch, int64_t n) {
  int64_t dims[] = {batch, n, n};
  return tfl_cast(x, tfl_compare(x, "EQ", tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2)), dtype);
}

ir_value tfl_batch_dot(tfl_op *x, ir_value a, ir_value b) {
  const tfl_dot d = {
      .n_batch = 1, .n_contract = 1, .a_batch = {0}, .b_batch = {0}, .a_contract = {2}, .b_contract = {1}};
  if (!a.op || !b.op) return a;
  return tfl_dot_general(x, a, b, &d, (base_dtype)opt_type(a)->dtype);
}

/* --- pairs --- */

int tfl_pairs_of(tfl_op *x, int64_t n, tfl_pairs *p) {
  *p = (tfl_pairs){.n = n + n % 2, .half = (n + 1) / 2};
  if (p->n > (1 << 15)) return tfl_fail(x, "matrices of %lld rows or columns are too large", (long long)n);
  p->next = BASE_ARRAY(x->arena, int32_t, (size_t)p->n);
  if (!p->next) return x->status = base_oom(x->err, "lowering");
  int32_t half = (int32_t)p->half, last = (int32_t)p->n - 1;
  p->next[0] = 0;
  if (half == 1) p->next[1] = 1;
  for (int32_t i = 1; i < half; i++) p->next[i] = i == 1 ? half : i - 1;
  for (int32_t i = half; i <= last && half > 1; i++) p->next[i] = i == last ? half - 1 : i + 1;
  return 0;
}

/* [batch, half] along v's dimensions 0 and d. */
static ir_value orth_spread(tfl_op *x, ir_value v, ir_value like, uint32_t d) {
  int64_t map[] = {0, d};
  return v.op && like.op ? opt_broadcast_in_dim(x->rw, v, opt_type(like), map) : (ir_value){NULL, 0};
}

ir_value tfl_rotate(tfl_op *x, const tfl_pairs *p, ir_value v, uint32_t d, ir_value cosine, ir_value sine) {
  if (!v.op) return v;
  ir_value top = tfl_slice(x, v, d, 0, p->half), low = tfl_slice(x, v, d, p->half, p->n);
  ir_value c = orth_spread(x, cosine, top, d), s = orth_spread(x, sine, top, d);
  ir_value both[] = {orth_op(x, IR_OP_SUBTRACT, orth_op(x, IR_OP_MULTIPLY, c, top), orth_op(x, IR_OP_MULTIPLY, s, low)),
                     orth_op(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, s, top), orth_op(x, IR_OP_MULTIPLY, c, low))};
  return tfl_take(x, tfl_concat(x, 2, both, d), tfl_constant_i32(x, 1, &p->n, p->next), d, 0);
}

void tfl_angle(tfl_op *x, ir_value first, ir_value second, ir_value off, ir_value *cosine, ir_value *sine) {
  if (!off.op) return;
  ir_value zero = tfl_like(x, off, 0), one = tfl_like(x, off, 1), none = tfl_compare(x, "EQ", off, zero);
  ir_value twice = tfl_with(x, IR_OP_MULTIPLY, opt_select(x->rw, none, one, off), 2);
  ir_value z = orth_op(x, IR_OP_DIVIDE, orth_op(x, IR_OP_SUBTRACT, second, first), twice);
  ir_value root = opt_unary(x->rw, IR_OP_SQRT, tfl_with(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, z, z), 1));
  ir_value t = orth_op(x, IR_OP_DIVIDE, one, orth_op(x, IR_OP_ADD, opt_unary(x->rw, IR_OP_ABS, z), root));
  t = opt_select(x->rw, tfl_compare(x, "LT", z, zero), opt_unary(x->rw, IR_OP_NEGATE, t), t);
  t = opt_select(x->rw, none, zero, t);
  *cosine = opt_unary(x->rw, IR_OP_RSQRT, tfl_with(x, IR_OP_ADD, orth_op(x, IR_OP_MULTIPLY, t, t), 1));
  *sine = orth_op(x, IR_OP_MULTIPLY, t, *cosine);
}

/* --- order --- */

/* For each key how many come before it: [batch, n]. */
static ir_value orth_ranks(tfl_op *x, bool descending, ir_value keys) {
  const ir_type *t = opt_type(keys);
  int64_t n = t->dims[1], dims[] = {t->dims[0], n, n}, own[] = {0, 1}, other[] = {0, 2}, last = 2;
  const ir_type *square = tfl_type(x, (base_dtype)t->dtype, 3, dims);
  ir_value a = opt_broadcast_in_dim(x->rw, keys, square, own), b = opt_broadcast_in_dim(x->rw, keys, square, other);
  ir_value before = tfl_compare(x, descending ? "GT" : "LT", b, a), same = tfl_compare(x, "EQ", b, a);
  ir_value earlier = tfl_compare(x, "LT", tfl_iota(x, XLAC_S32, 3, dims, 2), tfl_iota(x, XLAC_S32, 3, dims, 1));
  before = orth_op(x, IR_OP_OR, before, orth_op(x, IR_OP_AND, same, earlier));
  return tfl_reduce(x, IR_OP_ADD, tfl_cast(x, before, XLAC_S32), 0, 1, &last);
}

void tfl_order_columns(tfl_op *x, bool descending, ir_value *keys, ir_value *v, uint32_t n_more, ir_value *more) {
  if (!keys->op) return;
  const ir_type *t = opt_type(*keys);
  int64_t n = t->dims[1], dims[] = {t->dims[0], n, n}, map[] = {0, 1}, from = 1;
  ir_value ranks = orth_ranks(x, descending, *keys);
  if (!ranks.op) return;
  ranks = opt_broadcast_in_dim(x->rw, ranks, tfl_type(x, XLAC_S32, 3, dims), map);
  ir_value hot = tfl_compare(x, "EQ", ranks, tfl_iota(x, XLAC_S32, 3, dims, 2));
  const ir_type *square = tfl_type(x, (base_dtype)t->dtype, 3, dims);
  ir_value spread = opt_broadcast_in_dim(x->rw, *keys, square, map);
  if (!spread.op || !hot.op) return;
  *keys = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, hot, spread, tfl_like(x, spread, 0)), 0, 1, &from);
  ir_value moves = tfl_cast(x, hot, (base_dtype)t->dtype);
  *v = tfl_batch_dot(x, *v, moves);
  for (uint32_t i = 0; i < n_more; i++) more[i] = tfl_batch_dot(x, more[i], moves);
}
