/* Fake quantisation: values rounded to the steps that a quantised number would have. The range is moved a little so
 * that 0 is a step. Source: TensorFlow's documentation, its CPU kernels' behaviour. */
#include "../windows.h"

typedef struct fq_range {
  ir_value low, high, scale, inverse; /* scalars, or one for each feature */
  ir_value empty;                     /* the range is [0, 0]: everything is 0 */
} fq_range;

static ir_value fq_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return tfl_binary(x, opcode, a, b);
}

/* arg 0: attributes; else inputs `i` and i + 1. */
static int fq_range_of(tfl_op *x, uint32_t i, fq_range *r) {
  int64_t bits = tfl_attr_int(x, "num_bits");
  if (bits < 2 || bits > 16) return tfl_fail(x, "num_bits %lld: expected 2 to 16", (long long)bits);
  double first = tfl_attr_bool(x, "narrow_range") ? 1 : 0, last = (double)((1 << bits) - 1);
  bool given = x->row->arg == 0;
  ir_value low = given ? tfl_scalar(x, XLAC_F32, tfl_attr_float(x, "min")) : tfl_in(x, i);
  ir_value high = given ? tfl_scalar(x, XLAC_F32, tfl_attr_float(x, "max")) : tfl_in(x, i + 1);
  if (!low.op || !high.op) return x->status;
  if (opt_type(low) != opt_type(high)) return tfl_fail(x, "the ends of the range have not the same type");
  ir_value zero = tfl_like(x, low, 0), start = tfl_like(x, low, first), end = tfl_like(x, low, last);
  r->empty = opt_binary(x->rw, IR_OP_AND, tfl_compare(x, "EQ", low, zero), tfl_compare(x, "EQ", high, zero));
  r->scale = fq_op(x, IR_OP_DIVIDE, fq_op(x, IR_OP_SUBTRACT, high, low), tfl_like(x, low, last - first));
  r->inverse = fq_op(x, IR_OP_DIVIDE, tfl_like(x, low, last - first), fq_op(x, IR_OP_SUBTRACT, high, low));
  ir_value point = fq_op(x, IR_OP_SUBTRACT, start, fq_op(x, IR_OP_DIVIDE, low, r->scale));
  ir_value half = tfl_like(x, low, 0.5), whole = opt_unary(x->rw, IR_OP_FLOOR, fq_op(x, IR_OP_ADD, point, half));
  whole = fq_op(x, IR_OP_MINIMUM, fq_op(x, IR_OP_MAXIMUM, whole, start), end);
  r->low = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, start, whole), r->scale);
  r->high = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, end, whole), r->scale);
  return x->status;
}

int tfl_row_fake_quant(tfl_op *x) {
  fq_range r;
  TRY(fq_range_of(x, 1, &r));
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  ir_value held = fq_op(x, IR_OP_MINIMUM, fq_op(x, IR_OP_MAXIMUM, v, r.low), r.high);
  ir_value steps = fq_op(x, IR_OP_MULTIPLY, fq_op(x, IR_OP_SUBTRACT, held, r.low), r.inverse);
  steps = opt_unary(x->rw, IR_OP_FLOOR, tfl_with(x, IR_OP_ADD, steps, 0.5));
  ir_value out = fq_op(x, IR_OP_ADD, fq_op(x, IR_OP_MULTIPLY, steps, r.scale), r.low);
  if (!out.op) return x->status;
  ir_value empty = tfl_broadcast(x, r.empty, opt_type(out)->rank, opt_type(out)->dims);
  tfl_out(x, 0, opt_select(x->rw, empty, tfl_like(x, out, 0), out));
  return x->status;
}

/* The sum over all dimensions, but for one range a feature over all but the last. */
static ir_value fq_sum(tfl_op *x, ir_value v) {
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  uint32_t rank = opt_type(v)->rank, n = x->row->arg == 2 ? rank - 1 : rank;
  for (uint32_t d = 0; d < n; d++) dims[d] = d;
  return tfl_reduce(x, IR_OP_ADD, v, 0, n, dims);
}

/* Inputs: the gradient, the value, the range. Within the range gradients go through; below they count for its low end,
 * above for its high end. */
int tfl_row_fake_quant_gradient(tfl_op *x) {
  fq_range r;
  TRY(fq_range_of(x, 2, &r));
  ir_value g = tfl_in(x, 0), v = tfl_in(x, 1);
  if (!g.op || !v.op) return x->status;
  if (opt_type(g) != opt_type(v) || (x->row->arg == 2 && opt_type(v)->rank == 0))
    return tfl_fail(x, "the gradient has not the value's type");
  ir_value empty = tfl_broadcast(x, r.empty, opt_type(v)->rank, opt_type(v)->dims), zero = tfl_like(x, g, 0);
  ir_value below = tfl_compare(x, "LT", v, r.low), above = tfl_compare(x, "GT", v, r.high);
  ir_value outside = opt_binary(x->rw, IR_OP_OR, below, above);
  tfl_out(x, 0, opt_select(x->rw, empty, g, opt_select(x->rw, outside, zero, g)));
  if (x->row->arg == 0) return x->status;
  ir_value none = opt_unary(x->rw, IR_OP_NOT, empty);
  tfl_out(x, 1, fq_sum(x, opt_select(x->rw, opt_binary(x->rw, IR_OP_AND, below, none), g, zero)));
  tfl_out(x, 2, fq_sum(x, opt_select(x->rw, opt_binary(x->rw, IR_OP_AND, above, none), g, zero)));
  return x->status;
}
