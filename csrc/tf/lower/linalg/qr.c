/* Qr: Householder's reflections, one loop over the columns. */
#include "../orthogonal.h"

typedef struct qr_step {
  ir_value u, scale; /* [batch, m]; [batch]: what is taken away is scale u u' */
} qr_step;

static ir_value qr_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* Column k of r, [batch, m]. */
static ir_value qr_column(tfl_op *x, ir_value r, ir_value k) {
  if (!r.op) return r;
  int64_t batch = opt_type(r)->dims[0], m = opt_type(r)->dims[1], sizes[] = {batch, m, 1}, dims[] = {batch, m};
  ir_value zero = tfl_scalar(x, XLAC_S64, 0), starts[] = {zero, zero, k};
  return tfl_reshape(x, tfl_dynamic_slice(x, r, starts, sizes), 2, dims);
}

static ir_value qr_masked_sum(tfl_op *x, ir_value mask, ir_value v) {
  int64_t rows = 1;
  if (!mask.op || !v.op) return v;
  return tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, mask, v, tfl_like(x, v, 0)), 0, 1, &rows);
}

/* The reflection that clears column k below place k. None where it is clear already, as LAPACK has it. */
static qr_step qr_reflection(tfl_op *x, ir_value r, ir_value k) {
  int64_t batch = 0;
  qr_step s = {{NULL, 0}, {NULL, 0}};
  ir_value v = qr_column(x, r, k);
  if (!v.op) return s;
  ir_value place = tfl_iota(x, XLAC_S64, 2, opt_type(v)->dims, 1);
  ir_value here = tfl_compare(x, "EQ", place, k), below = tfl_compare(x, "GT", place, k);
  ir_value tail = qr_masked_sum(x, below, qr_op(x, IR_OP_MULTIPLY, v, v)), head = qr_masked_sum(x, here, v);
  ir_value size = opt_unary(x->rw, IR_OP_SQRT, qr_op(x, IR_OP_ADD, tail, qr_op(x, IR_OP_MULTIPLY, head, head)));
  if (!size.op) return s;
  ir_value zero = tfl_like(x, size, 0);
  ir_value turned = opt_select(x->rw, tfl_compare(x, "LT", head, zero), opt_unary(x->rw, IR_OP_NEGATE, size), size);
  ir_value first = qr_op(x, IR_OP_ADD, head, turned);
  ir_value square = qr_op(x, IR_OP_ADD, tail, qr_op(x, IR_OP_MULTIPLY, first, first));
  ir_value none = tfl_compare(x, "EQ", tail, zero);
  ir_value safe = opt_select(x->rw, none, tfl_like(x, square, 1), square);
  s.scale = opt_select(x->rw, none, zero, qr_op(x, IR_OP_DIVIDE, tfl_like(x, size, 2), safe));
  first = first.op ? opt_broadcast_in_dim(x->rw, first, opt_type(v), &batch) : first;
  s.u = opt_select(x->rw, here, first, opt_select(x->rw, below, v, tfl_like(x, v, 0)));
  return s;
}

/* v - scale u (u' v), or with `right` v - scale (v u) u': u goes along v's dimension 1 or 2. */
static ir_value qr_reflect(tfl_op *x, ir_value v, qr_step s, bool right) {
  int64_t along[] = {0, right ? 2 : 1}, across[] = {0, right ? 1 : 2}, gone = right ? 2 : 1, batch = 0;
  if (!v.op || !s.u.op || !s.scale.op) return v;
  ir_value u = opt_broadcast_in_dim(x->rw, s.u, opt_type(v), along);
  ir_value dot = tfl_reduce(x, IR_OP_ADD, qr_op(x, IR_OP_MULTIPLY, u, v), 0, 1, &gone);
  if (!dot.op) return v;
  dot = qr_op(x, IR_OP_MULTIPLY, dot, opt_broadcast_in_dim(x->rw, s.scale, opt_type(dot), &batch));
  if (!dot.op) return v;
  return qr_op(x, IR_OP_SUBTRACT, v,
               qr_op(x, IR_OP_MULTIPLY, u, opt_broadcast_in_dim(x->rw, dot, opt_type(v), across)));
}

/* What is below the diagonal is rounding: zero. */
static ir_value qr_upper(tfl_op *x, ir_value r) {
  if (!r.op) return r;
  const int64_t *dims = opt_type(r)->dims;
  ir_value in = tfl_compare(x, "LE", tfl_iota(x, XLAC_S32, 3, dims, 1), tfl_iota(x, XLAC_S32, 3, dims, 2));
  return opt_select(x->rw, in, r, tfl_like(x, r, 0));
}

int tfl_qr(tfl_op *x, ir_value a, bool thin, ir_value *q, ir_value *r) {
  if (!a.op) return x->status;
  const ir_type *t = opt_type(a);
  int64_t m = t->dims[1], n = t->dims[2], least = m < n ? m : n;
  ir_value state[] = {tfl_identity(x, (base_dtype)t->dtype, t->dims[0], m), a}, out[2];
  ir_value limit = opt_splat_int(x->rw, tfl_type(x, XLAC_S64, 0, NULL), least);
  if (x->status || !state[0].op) return x->status;
  opt_loop loop;
  opt_loop_begin(x->rw, &loop, limit, 2, state);
  if (x->rw->failed) return x->status = base_oom(x->err, "lowering");
  qr_step s = qr_reflection(x, loop.state[1], loop.index);
  ir_value next[] = {qr_reflect(x, loop.state[0], s, true), qr_reflect(x, loop.state[1], s, false)};
  opt_loop_end(x->rw, &loop, next, out);
  *q = thin ? tfl_slice(x, out[0], 2, 0, least) : out[0];
  *r = qr_upper(x, thin ? tfl_slice(x, out[1], 1, 0, least) : out[1]);
  return x->status;
}

int tfl_row_qr(tfl_op *x) {
  int64_t dims[3];
  ir_value a = {NULL, 0}, q = {NULL, 0}, r = {NULL, 0};
  TRY(tfl_matrices(x, dims, &a));
  TRY(tfl_qr(x, a, !tfl_attr_bool(x, "full_matrices"), &q, &r));
  tfl_out_batch(x, 0, q);
  tfl_out_batch(x, 1, r);
  return x->status;
}
