/* Elementwise ops on one operand, and on two of any shapes that broadcast. Most rows share tfl_row_unary or
 * tfl_row_binary with the opcode as their arg; those with a function of their own differ from StableHLO's op in a
 * corner, which the comment names. */
#include "../build.h"
#include "../windows.h"
#include "../row.h"

/* --- one operand --- */

/* arg: the opcode, of StableHLO or CHLO. */
int tfl_row_unary(tfl_op *x) {
  tfl_out(x, 0, opt_unary(x->rw, (ir_opcode)x->row->arg, tfl_in(x, 0)));
  return x->status;
}

/* CHLO's predicates give another type than they take. */
int tfl_row_is(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  if (x->row->arg == IR_OP_COMPARE) /* a NaN is not itself */
    tfl_out(x, 0, opt_compare(x->rw, IR_DIRECTION_NE, IR_COMPARISON_FLOAT, v, v));
  else
    tfl_out(x, 0, opt_make(x->rw, (ir_opcode)x->row->arg, opt_with_dtype(x->rw, opt_type(v), XLAC_PRED), 1, &v));
  return x->status;
}

/* Integers are round already; round_nearest_even takes floats only. */
int tfl_row_round(tfl_op *x) {
  if (base_dtype_is_integer((base_dtype)tfl_in_type(x, 0)->dtype)) return tfl_out_same(x, 0, 0), x->status;
  return tfl_row_unary(x);
}

/* 1 / v */
int tfl_row_reciprocal(tfl_op *x) {
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_DIVIDE, tfl_like(x, v, 1), v));
  return x->status;
}

/* v v, also of complex numbers */
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

/* The result is u8 whatever the operand. */
int tfl_row_popcount(tfl_op *x) {
  tfl_out(x, 0, tfl_cast(x, opt_unary(x->rw, IR_OP_POPCNT, tfl_in(x, 0)), XLAC_U8));
  return x->status;
}

/* --- complex numbers --- */

/* Real, Imag, ComplexAbs; Angle is atan2 of both parts. */
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

/* Real numbers are their own. */
int tfl_row_conj(tfl_op *x) {
  if (!base_dtype_is_complex((base_dtype)tfl_in_type(x, 0)->dtype)) return tfl_out_same(x, 0, 0), x->status;
  return tfl_row_unary(x);
}

/* Both parts are broadcast. */
int tfl_row_complex(tfl_op *x) {
  ir_value both[] = {tfl_in(x, 0), tfl_in(x, 1)};
  tfl_broadcast_pair(x, &both[0], &both[1]);
  tfl_out(x, 0, opt_make(x->rw, IR_OP_COMPLEX, opt_with_dtype(x->rw, opt_type(both[0]), tfl_out_dtype(x, 0)), 2, both));
  return x->status;
}

/* --- other types --- */

/* To a truth value: not 0, which a plain conversion would truncate first. */
int tfl_row_cast(tfl_op *x) {
  base_dtype to = tfl_attr_dtype(x, "DstT");
  const ir_type *from = tfl_in_type(x, 0);
  if (x->status) return x->status;
  if (from->dtype == to) return tfl_out_same(x, 0, 0), x->status;
  ir_value v = tfl_in(x, 0);
  tfl_out(x, 0, to == XLAC_PRED ? tfl_compare(x, IR_DIRECTION_NE, v, tfl_like(x, v, 0)) : tfl_cast(x, v, to));
  return x->status;
}

/* To a narrower type a dimension more, to a wider one a dimension less, as bitcast_convert has it. */
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

/* A constant in each place of the input: ZerosLike, OnesLike. The value does not depend on the input's, so it is
 * fixed though the input is not. */
int tfl_row_like(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (x->status) return x->status;
  x->fixed = true;
  tfl_out(x, 0, tfl_full(x, (base_dtype)t->dtype, t->rank, t->dims, x->row->arg));
  return x->status;
}

/* --- chains --- */

/* _UnaryOpsComposition: each name's row lowers what the one before gave. Each row reads input 0, so input 0 is the
 * last result meanwhile. Rows that read attributes can't be in a chain: it has the composition's only. */
int tfl_row_unary_chain(tfl_op *x) {
  const base_slice *names = NULL;
  uint32_t n = 0;
  TRY(tfl_attr_strings(x, "op_names", &names, &n));
  tfl_value *own = x->in[0], now = *own;
  const tfl_row *row = x->row;
  if (n == 0) tfl_out_same(x, 0, 0);
  for (uint32_t i = 0; i < n && !x->status; i++) {
    char name[64];
    if (names[i].n >= sizeof name) return tfl_fail(x, "op_names has a name of %zu letters", names[i].n);
    memcpy(name, names[i].p, names[i].n);
    name[names[i].n] = 0;
    const tfl_row *one = tfl_row_of(name);
    bool fits = one && (one->fn == tfl_row_unary || one->fn == tfl_row_square || one->fn == tfl_row_reciprocal ||
                        one->fn == tfl_row_relu || one->fn == tfl_row_relu6 || one->fn == tfl_row_elu ||
                        one->fn == tfl_row_selu || one->fn == tfl_row_softplus || one->fn == tfl_row_softsign ||
                        one->fn == tfl_row_round);
    if (!fits) return tfl_fail(x, "op_names has '%s', which no chain can have", name);
    x->in[0] = &now;
    x->row = one;
    int status = one->fn(x);
    now = x->out[0];
    x->in[0] = own;
    x->row = row;
    TRY(status);
  }
  return x->status;
}

/* --- two operands --- */

/* Both inputs in one shape. */
static void binary_in(tfl_op *x, ir_value *a, ir_value *b) {
  *a = tfl_in(x, 0);
  *b = tfl_in(x, 1);
  tfl_broadcast_pair(x, a, b);
}

/* arg: the opcode. */
int tfl_row_binary(tfl_op *x) {
  tfl_out(x, 0, tfl_binary(x, (ir_opcode)x->row->arg, tfl_in(x, 0), tfl_in(x, 1)));
  return x->status;
}

/* The words of comparisons by the row's number. */
int tfl_row_compare(tfl_op *x) {
  static const uint8_t words[] = {IR_DIRECTION_EQ, IR_DIRECTION_NE, IR_DIRECTION_LT,
                                  IR_DIRECTION_LE, IR_DIRECTION_GT, IR_DIRECTION_GE};
  assert(x->row->arg >= 0 && x->row->arg < 6);
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  int64_t dims[TFL_MOST_DIMS];
  uint32_t rank = 0;
  bool fits = true;
  if (x->status) return x->status;
  /* Equal and NotEqual may be asked to give one answer for shapes that do not fit. */
  if (x->row->arg < 2 && !tfl_attr_bool(x, "incompatible_shape_error")) {
    for (uint32_t d = 0; d < a->rank && d < b->rank; d++) {
      int64_t m = a->dims[a->rank - 1 - d], n = b->dims[b->rank - 1 - d];
      fits = fits && (m == n || m == 1 || n == 1);
    }
    const bool answer = x->row->arg == 1;
    if (!fits) return tfl_out_data(x, 0, XLAC_PRED, 0, NULL, &answer), x->status;
  }
  TRY(tfl_broadcast_dims(x, a->rank, a->dims, b->rank, b->dims, &rank, dims));
  tfl_out(x, 0, tfl_compare(x, words[x->row->arg], tfl_in(x, 0), tfl_in(x, 1)));
  return x->status;
}

/* Of complex numbers (a - b) conj(a - b). */
int tfl_row_squared_difference(tfl_op *x) {
  ir_value d = tfl_binary(x, IR_OP_SUBTRACT, tfl_in(x, 0), tfl_in(x, 1)), e = d;
  if (d.op && base_dtype_is_complex((base_dtype)opt_type(d)->dtype)) e = opt_unary(x->rw, IR_OP_CONJ, d);
  tfl_out(x, 0, opt_binary(x->rw, IR_OP_MULTIPLY, d, e));
  return x->status;
}

/* What is 0 where an operand is: DivNoNan and MulNoNan look at the second, Xlogy and the like at the first. */
int tfl_row_no_nan(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value zero = tfl_like(x, b, 0), v = opt_binary(x->rw, (ir_opcode)x->row->arg, a, b);
  tfl_out(x, 0, opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, b, zero), zero, v));
  return x->status;
}

/* Xlogy, Xlog1py, Xdivy: 0 where the first operand is 0, even if the second gives infinity. */
int tfl_row_x_times(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value zero = tfl_like(x, a, 0);
  ir_value v = x->row->arg == IR_OP_DIVIDE
                   ? opt_binary(x->rw, IR_OP_DIVIDE, a, b)
                   : opt_binary(x->rw, IR_OP_MULTIPLY, a, opt_unary(x->rw, (ir_opcode)x->row->arg, b));
  tfl_out(x, 0, opt_select(x->rw, tfl_compare(x, IR_DIRECTION_EQ, a, zero), zero, v));
  return x->status;
}

/* --- division that rounds down, and what it leaves --- */

/* False after a failure. */
static bool binary_is_integer(const ir_value v) {
  return v.op && base_dtype_is_integer((base_dtype)opt_type(v)->dtype);
}

/* Whether the remainder is not 0 and has the other sign than the divisor. */
static ir_value binary_needs_step(tfl_op *x, ir_value rest, ir_value b) {
  ir_value zero = tfl_like(x, b, 0);
  ir_value signs = tfl_compare(x, IR_DIRECTION_NE, tfl_compare(x, IR_DIRECTION_LT, rest, zero),
                               tfl_compare(x, IR_DIRECTION_LT, b, zero));
  return opt_binary(x->rw, IR_OP_AND, tfl_compare(x, IR_DIRECTION_NE, rest, zero), signs);
}

/* StableHLO's division truncates: one less where a remainder is left and the signs differ. */
int tfl_row_floor_div(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value q = opt_binary(x->rw, IR_OP_DIVIDE, a, b);
  if (!q.op) return x->status;
  base_dtype t = (base_dtype)opt_type(q)->dtype;
  if (base_dtype_is_float(t)) q = opt_unary(x->rw, IR_OP_FLOOR, q);
  if (base_dtype_is_signed(t)) {
    ir_value rest = opt_binary(x->rw, IR_OP_REMAINDER, a, b);
    q = opt_select(x->rw, binary_needs_step(x, rest, b), tfl_with(x, IR_OP_SUBTRACT, q, 1), q);
  }
  tfl_out(x, 0, q);
  return x->status;
}

/* The remainder has the divisor's sign. */
int tfl_row_floor_mod(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value rest = opt_binary(x->rw, IR_OP_REMAINDER, a, b);
  if (rest.op && !base_dtype_is_unsigned((base_dtype)opt_type(rest)->dtype))
    rest = opt_select(x->rw, binary_needs_step(x, rest, b), opt_binary(x->rw, IR_OP_ADD, rest, b), rest);
  tfl_out(x, 0, rest);
  return x->status;
}

/* Only floats need rounding. */
int tfl_row_truncate_div(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value q = opt_binary(x->rw, IR_OP_DIVIDE, a, b);
  if (q.op && !binary_is_integer(q)) { /* towards zero */
    ir_value down = opt_unary(x->rw, IR_OP_FLOOR, q), up = opt_unary(x->rw, IR_OP_CEIL, q);
    q = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, q, tfl_like(x, q, 0)), up, down);
  }
  tfl_out(x, 0, q);
  return x->status;
}

/* --- bits --- */

/* Shifting by as many bits as there are, or more, gives what shifting by one less gives, as TensorFlow has it. */
int tfl_row_shift(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  if (!a.op || !b.op) return x->status;
  base_dtype t = (base_dtype)opt_type(a)->dtype;
  ir_value least = tfl_like(x, b, 0), most = tfl_like(x, b, base_dtype_of(t)->bits - 1);
  b = opt_binary(x->rw, IR_OP_MINIMUM, opt_binary(x->rw, IR_OP_MAXIMUM, b, least), most);
  ir_opcode right = base_dtype_is_signed(t) ? IR_OP_SHIFT_RIGHT_ARITHMETIC : IR_OP_SHIFT_RIGHT_LOGICAL;
  tfl_out(x, 0, opt_binary(x->rw, x->row->arg ? right : IR_OP_SHIFT_LEFT, a, b));
  return x->status;
}

/* --- choices --- */

/* a - b| < tolerance */
int tfl_row_approximate_equal(tfl_op *x) {
  ir_value a, b;
  binary_in(x, &a, &b);
  ir_value d = opt_unary(x->rw, IR_OP_ABS, opt_binary(x->rw, IR_OP_SUBTRACT, a, b));
  tfl_out(x, 0, tfl_compare(x, IR_DIRECTION_LT, d, tfl_like(x, d, tfl_attr_float(x, "tolerance"))));
  return x->status;
}

/* Select: the condition has the shape of both, or is a scalar, or chooses along the first dimension. */
int tfl_row_select(tfl_op *x) {
  ir_value p = tfl_in(x, 0), a = tfl_in(x, 1), b = tfl_in(x, 2);
  if (!p.op || !a.op || !b.op) return x->status;
  const ir_type *t = opt_type(a);
  if (t != opt_type(b)) return tfl_fail(x, "what it chooses from has two shapes");
  if (opt_type(p)->rank == 1 && t->rank > 1)
    p = tfl_along(x, p, a, 0);
  else
    p = tfl_broadcast(x, p, t->rank, t->dims);
  tfl_out(x, 0, opt_select(x->rw, p, a, b));
  return x->status;
}

/* All three are broadcast. */
int tfl_row_select_v2(tfl_op *x) {
  ir_value p = tfl_in(x, 0), a = tfl_in(x, 1), b = tfl_in(x, 2);
  tfl_broadcast_pair(x, &a, &b);
  tfl_broadcast_pair(x, &p, &a);
  if (!p.op) return x->status;
  b = tfl_broadcast(x, b, opt_type(p)->rank, opt_type(p)->dims);
  tfl_out(x, 0, opt_select(x->rw, p, a, b));
  return x->status;
}

/* ClipByValue: value, low, high; low and high may be scalars. */
int tfl_row_clip(tfl_op *x) {
  ir_value low = tfl_binary(x, IR_OP_MAXIMUM, tfl_in(x, 0), tfl_in(x, 1));
  tfl_out(x, 0, tfl_binary(x, IR_OP_MINIMUM, low, tfl_in(x, 2)));
  return x->status;
}

/* Of one type, added from the first on. */
int tfl_row_add_n(tfl_op *x) {
  ir_value sum = tfl_in(x, 0);
  for (uint32_t i = 1; i < x->n_in; i++) {
    ir_value v = tfl_in(x, i);
    if (sum.op && v.op && opt_type(sum) != opt_type(v))
      return tfl_fail(x, "input %u has another shape than input 0", i);
    sum = opt_binary(x->rw, IR_OP_ADD, sum, v);
  }
  tfl_out(x, 0, sum);
  return x->status;
}
