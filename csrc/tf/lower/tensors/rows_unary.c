/* Elementwise ops on one operand. */
#include "../row.h"

int tfl_row_unary(tfl_op *x) {
  tfl_out(x, 0, opt_unary(x->rw, (ir_opcode)x->row->arg, tfl_in(x, 0)));
  return x->status;
}

/* CHLO's predicates give another type than they take. */
int tfl_row_is(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  if (x->row->arg == IR_OP_COMPARE) /* a NaN is not itself */
    tfl_out(x, 0, opt_compare(x->rw, "NE", "FLOAT", v, v));
  else
    tfl_out(x, 0, opt_make(x->rw, (ir_opcode)x->row->arg, opt_with_dtype(x->rw, opt_type(v), XLAC_PRED), 1, &v));
  return x->status;
}

int tfl_row_round(tfl_op *x) {
  if (base_dtype_is_integer((base_dtype)tfl_in_type(x, 0)->dtype)) return tfl_out_same(x, 0, 0), x->status;
  return tfl_row_unary(x);
}

int tfl_row_reciprocal(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, tfl_like(x, v, 1), v));
  return x->status;
}

int tfl_row_square(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_MULTIPLY, v, v));
  return x->status;
}

/* The quantile function of the normal distribution. */
int tfl_row_ndtri(tfl_op *x) {
  ir_value v = tfl_with(x, IR_OP_SUBTRACT, tfl_with(x, IR_OP_MULTIPLY, tfl_in(x, 0), 2), 1);
  tfl_out(x, 0, tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ERF_INV, v), 1.4142135623730950488));
  return x->status;
}

int tfl_row_popcount(tfl_op *x) {
  tfl_out(x, 0, tfl_cast(x, opt_unary(x->rw, IR_OP_POPCNT, tfl_in(x, 0)), XLAC_U8));
  return x->status;
}

/* --- complex numbers --- */

int tfl_row_part(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  if (!v.op) return x->status;
  base_dtype part = base_dtype_real_part((base_dtype)opt_type(v)->dtype);
  ir_value both[2];
  if (x->row->arg != IR_OP_ATAN2) {
    tfl_out(x, 0, opt_make(x->rw, (ir_opcode)x->row->arg, opt_with_dtype(x->rw, opt_type(v), part), 1, &v));
    return x->status;
  }
  both[0] = opt_make(x->rw, IR_OP_IMAG, opt_with_dtype(x->rw, opt_type(v), part), 1, &v);
  both[1] = opt_make(x->rw, IR_OP_REAL, opt_with_dtype(x->rw, opt_type(v), part), 1, &v);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_ATAN2, both[0], both[1]));
  return x->status;
}

int tfl_row_conj(tfl_op *x) {
  if (!base_dtype_is_complex((base_dtype)tfl_in_type(x, 0)->dtype)) return tfl_out_same(x, 0, 0), x->status;
  return tfl_row_unary(x);
}

int tfl_row_complex(tfl_op *x) {
  ir_value both[] = {tfl_in(x, 0), tfl_in(x, 1)};
  tfl_broadcast_pair(x, &both[0], &both[1]);
  tfl_out(x, 0, opt_make(x->rw, IR_OP_COMPLEX, opt_with_dtype(x->rw, opt_type(both[0]), tfl_out_dtype(x, 0)), 2, both));
  return x->status;
}

/* --- other types --- */

int tfl_row_cast(tfl_op *x) {
  base_dtype to = tfl_attr_dtype(x, "DstT");
  const ir_type *from = tfl_in_type(x, 0);
  if (x->status) return x->status;
  if (from->dtype == to) return tfl_out_same(x, 0, 0), x->status;
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, to == XLAC_PRED ? tfl_compare(x, "NE", v, tfl_like(x, v, 0)) : tfl_cast(x, v, to));
  return x->status;
}

int tfl_row_bitcast(tfl_op *x) {
  base_dtype to = tfl_attr_dtype(x, "type");
  const ir_type *from = tfl_in_type(x, 0);
  int64_t dims[TFL_MOST_DIMS + 1];
  uint32_t rank = from->rank;
  if (x->status || rank >= TFL_MOST_DIMS) return x->status ? x->status : tfl_fail(x, "it has too many dimensions");
  unsigned a = base_dtype_of((base_dtype)from->dtype)->bits, b = base_dtype_of(to)->bits;
  if (rank) memcpy(dims, from->dims, rank * sizeof *dims);
  if (a > b) dims[rank++] = a / b;
  if (a < b && (rank == 0 || dims[--rank] != b / a))
    return tfl_fail(x, "the last dimension of its input must be %u", b / a);
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_make(x->rw, IR_OP_BITCAST_CONVERT, tfl_type(x, to, rank, dims), 1, &v));
  return x->status;
}

/* A constant in each place of the input: ZerosLike, OnesLike. */
int tfl_row_like(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (x->status) return x->status;
  x->fixed = true;
  tfl_out(x, 0, tfl_full(x, (base_dtype)t->dtype, t->rank, t->dims, x->row->arg));
  return x->status;
}
