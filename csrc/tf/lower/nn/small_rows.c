/* Rows that fit nowhere else: second derivatives of max pooling, products of tridiagonal matrices, Dequantize, chains
 * of elementwise ops that Grappler makes. */
#include "../build.h"
#include "../windows.h"

/* --- products --- */

/* SparseMatMul: two matrices of f32 or bf16, the product f32. */
int tfl_row_sparse_mat_mul(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  bool turn_a = tfl_attr_bool(x, "transpose_a"), turn_b = tfl_attr_bool(x, "transpose_b");
  const tfl_dot d = {.n_contract = 1, .a_contract = {!turn_a}, .b_contract = {turn_b}};
  if (a->rank != 2 || b->rank != 2 || a->dims[!turn_a] != b->dims[turn_b])
    return tfl_fail(x, "its matrices do not fit together");
  tfl_out(x, 0,
          tfl_dot_general(x, tfl_cast(x, tfl_in(x, 0), XLAC_F32), tfl_cast(x, tfl_in(x, 1), XLAC_F32), &d, XLAC_F32));
  return x->status;
}

/* A diagonal, [..., 1, m], along the rows of the right side; its rows moved by `by`, zeros where none come from. */
static ir_value small_diagonal(tfl_op *x, uint32_t i, int64_t by) {
  const ir_type *t = tfl_in_type(x, i), *right = tfl_in_type(x, 3);
  int64_t dims[TFL_MOST_DIMS], low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0};
  uint32_t rank = right->rank;
  bool fits = t->rank == rank && rank >= 2 && t->dims[rank - 2] == 1 && t->dims[rank - 1] == right->dims[rank - 2];
  for (uint32_t d = 0; fits && d + 2 < rank; d++) fits = t->dims[d] == right->dims[d];
  if (!fits) return tfl_fail(x, "diagonal %u has not the shape that the right side asks for", i), (ir_value){NULL, 0};
  for (uint32_t d = 0; d < rank; d++) dims[d] = d + 1 == rank ? 1 : right->dims[d];
  low[rank - 2] = -by;
  high[rank - 2] = by;
  ir_value v = tfl_in(x, 3);
  if (by) v = tfl_pad(x, v, tfl_scalar(x, (base_dtype)right->dtype, 0), low, high, NULL);
  return tfl_binary(x, IR_OP_MULTIPLY, tfl_reshape(x, tfl_in(x, i), rank, dims), v);
}

/* superdiagonal, main diagonal, subdiagonal, right side */
int tfl_row_tridiagonal_mat_mul(tfl_op *x) {
  if (tfl_in_type(x, 3)->rank >= 2 && tfl_in_type(x, 3)->dims[tfl_in_type(x, 3)->rank - 2] == 0)
    return tfl_fail(x, "matrices without rows");
  ir_value sum = tfl_binary(x, IR_OP_ADD, small_diagonal(x, 0, 1), small_diagonal(x, 1, 0));
  tfl_out(x, 0, tfl_binary(x, IR_OP_ADD, sum, small_diagonal(x, 2, -1)));
  return x->status;
}

/* --- numbers of 8 bits --- */

/* The ends of the range are scalars; modes MIN_COMBINED, MIN_FIRST, SCALED. */
int tfl_row_dequantize(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  bool is_signed = base_dtype_is_signed((base_dtype)t->dtype), narrow = tfl_attr_bool(x, "narrow_range");
  if (base_dtype_bytes((base_dtype)t->dtype) != 1 || tfl_attr_int(x, "axis") != -1)
    return tfl_fail(x, "it takes numbers of 8 bits with one range for all");
  ir_value v = tfl_cast(x, tfl_in(x, 0), XLAC_F32), low = tfl_in(x, 1), high = tfl_in(x, 2), out = {NULL, 0};
  ir_value range = tfl_binary(x, IR_OP_SUBTRACT, high, low);
  if (tfl_attr_is(x, "mode", "SCALED")) {
    double least = is_signed ? (narrow ? -127 : -128) : 0, most = is_signed ? 127 : 255;
    ir_value scale = tfl_with(x, IR_OP_DIVIDE, high, most);
    if (least != 0) scale = tfl_binary(x, IR_OP_MAXIMUM, scale, tfl_with(x, IR_OP_DIVIDE, low, least));
    out = tfl_binary(x, IR_OP_MULTIPLY, v, scale);
  } else if (tfl_attr_is(x, "mode", "MIN_FIRST")) {
    ir_value step = tfl_with(x, IR_OP_DIVIDE, range, 255), first = tfl_binary(x, IR_OP_DIVIDE, low, step);
    first = tfl_binary(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ROUND_NEAREST_AFZ, first), step);
    if (is_signed) v = tfl_with(x, IR_OP_ADD, v, 128);
    out = tfl_binary(x, IR_OP_ADD, tfl_binary(x, IR_OP_MULTIPLY, v, step), first);
  } else {
    if (is_signed) v = tfl_with(x, IR_OP_ADD, v, 128);
    out = tfl_binary(x, IR_OP_ADD, tfl_binary(x, IR_OP_MULTIPLY, v, tfl_with(x, IR_OP_DIVIDE, range, 255)), low);
  }
  tfl_out(x, 0, tfl_cast(x, out, tfl_out_dtype(x, 0)));
  return x->status;
}

/* --- chains --- */

/* _UnaryOpsComposition: each name's row lowers what the one before gave. */
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
