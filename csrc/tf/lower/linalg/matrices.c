/* Matrix products, Cholesky's factors, triangular systems, cross products, Fourier transforms: ops that StableHLO
 * has, with TensorFlow's shapes and attributes. */
#include "../row.h"
#include "../windows.h"

/* --- products --- */

/* adj_x of real matrices is a transposition only. */
static ir_value product_conj(tfl_op *x, ir_value v, bool wanted) {
  if (!wanted || !v.op || !base_dtype_is_complex((base_dtype)opt_type(v)->dtype)) return v;
  return opt_unary(x->rw, IR_OP_CONJ, v);
}

/* The product of matrices in the last two dimensions; batch dimensions are equal. */
static ir_value product_matrices(tfl_op *x, ir_value a, ir_value b, bool transpose_a, bool transpose_b,
                                 base_dtype out) {
  if (!a.op || !b.op) return a.op ? b : a;
  uint32_t rank = opt_type(a)->rank;
  assert(rank >= 2 && opt_type(b)->rank == rank);
  tfl_dot d = {.n_batch = rank - 2, .n_contract = 1};
  for (uint32_t i = 0; i < d.n_batch; i++) d.a_batch[i] = d.b_batch[i] = i;
  d.a_contract[0] = transpose_a ? rank - 2 : rank - 1;
  d.b_contract[0] = transpose_b ? rank - 1 : rank - 2;
  int64_t m = opt_type(a)->dims[d.a_contract[0]], n = opt_type(b)->dims[d.b_contract[0]];
  if (m != n) {
    tfl_fail(x, "matrices of %lld columns and %lld rows can't be multiplied", (long long)m, (long long)n);
    return (ir_value){NULL, 0};
  }
  base_dtype wide = tfl_sum_dtype(out);
  return tfl_cast(x, tfl_dot_general(x, a, b, &d, wide), out);
}

/* MatMul: two matrices, each perhaps transposed. */
int tfl_row_mat_mul(tfl_op *x) {
  const ir_type *s = tfl_in_type(x, 0), *t = tfl_in_type(x, 1);
  if (x->status) return x->status;
  if (s->rank != 2 || t->rank != 2)
    return tfl_fail(x, "it multiplies matrices, its inputs have %u and %u dimensions", s->rank, t->rank);
  tfl_out(x, 0,
          product_matrices(x, tfl_in(x, 0), tfl_in(x, 1), tfl_attr_bool(x, "transpose_a"),
                           tfl_attr_bool(x, "transpose_b"), tfl_out_dtype(x, 0)));
  return x->status;
}

/* All but the last two dimensions of v become those of the other operand as well. */
static ir_value product_broadcast(tfl_op *x, ir_value v, uint32_t rank, const int64_t *batch) {
  assert(rank >= 2);
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  memcpy(dims, batch, (rank - 2) * sizeof *dims);
  for (uint32_t i = 0; i < 2; i++) dims[rank - 2 + i] = t->dims[t->rank - 2 + i];
  return tfl_broadcast(x, v, rank, dims);
}

/* arg 1: BatchMatMulV2 and V3 broadcast batch dimensions; 0: both have the same rank. */
int tfl_row_batch_mat_mul(tfl_op *x) {
  const ir_type *s = tfl_in_type(x, 0), *t = tfl_in_type(x, 1);
  int64_t batch[TFL_MOST_DIMS];
  uint32_t rank = 0;
  if (x->status) return x->status;
  if (s->rank < 2 || t->rank < 2)
    return tfl_fail(x, "it multiplies matrices, its inputs have %u and %u dimensions", s->rank, t->rank);
  if (!x->row->arg && s->rank != t->rank) return tfl_fail(x, "its inputs have %u and %u dimensions", s->rank, t->rank);
  TRY(tfl_broadcast_dims(x, s->rank - 2, s->dims, t->rank - 2, t->dims, &rank, batch));
  bool adj_a = tfl_attr_bool(x, "adj_x"), adj_b = tfl_attr_bool(x, "adj_y");
  ir_value a = product_broadcast(x, product_conj(x, tfl_in(x, 0), adj_a), rank + 2, batch);
  ir_value b = product_broadcast(x, product_conj(x, tfl_in(x, 1), adj_b), rank + 2, batch);
  tfl_out(x, 0, product_matrices(x, a, b, adj_a, adj_b, tfl_out_dtype(x, 0)));
  return x->status;
}

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

/* A diagonal, [..., 1, m], along the rows of the right side; its rows moved by `by`, zeros where none come from.
 * For TridiagonalMatMul, which keeps its diagonals as rows. */
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

/* --- matrices, Fourier transforms --- */

static ir_value matrices_nothing(void) {
  return (ir_value){NULL, 0};
}

/* Input i holds matrices in its last two dimensions. */
static int matrices_check(tfl_op *x, uint32_t i) {
  const ir_type *t = tfl_in_type(x, i);
  if (x->status || t->rank < 2) return tfl_fail(x, "input %u has rank %u: expected matrices", i, t->rank);
  return 0;
}

/* On and below the diagonal. */
static ir_value matrices_lower(tfl_op *x, ir_value v) {
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  const int64_t *dims = t->dims + t->rank - 2;
  ir_value keep = tfl_compare(x, IR_DIRECTION_GE, tfl_iota(x, XLAC_S32, 2, dims, 0), tfl_iota(x, XLAC_S32, 2, dims, 1));
  return opt_select(x->rw, tfl_broadcast(x, keep, t->rank, t->dims), v, tfl_like(x, v, 0));
}

/* The op leaves what is above the diagonal open; TensorFlow's result has zeros there. */
int tfl_row_cholesky(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  TRY(matrices_check(x, 0));
  if (t->dims[t->rank - 1] != t->dims[t->rank - 2]) return tfl_fail(x, "the matrices are not square");
  ir_value v = opt_unary(x->rw, IR_OP_CHOLESKY, tfl_in(x, 0));
  opt_set(x->rw, v, "lower", ir_m_bool(x->rw->m, true));
  tfl_out(x, 0, matrices_lower(x, v));
  return x->status;
}

/* The batch dimensions of both are broadcast; attributes lower and adjoint. */
int tfl_row_triangular_solve(tfl_op *x) {
  const ir_type *a = tfl_in_type(x, 0), *b = tfl_in_type(x, 1);
  int64_t dims[TFL_MOST_DIMS], left[TFL_MOST_DIMS], right[TFL_MOST_DIMS];
  uint32_t rank = 0;
  TRY(matrices_check(x, 0));
  TRY(matrices_check(x, 1));
  int64_t n = a->dims[a->rank - 1];
  if (a->dims[a->rank - 2] != n || b->dims[b->rank - 2] != n) return tfl_fail(x, "matrices that do not fit");
  TRY(tfl_broadcast_dims(x, a->rank - 2, a->dims, b->rank - 2, b->dims, &rank, dims));
  if (rank + 2 > TFL_MOST_DIMS) return tfl_fail(x, "%u dimensions", rank + 2);
  for (uint32_t d = 0; d < rank; d++) left[d] = right[d] = dims[d];
  left[rank] = left[rank + 1] = right[rank] = n;
  right[rank + 1] = b->dims[b->rank - 1];
  ir_value both[] = {tfl_broadcast(x, tfl_in(x, 0), rank + 2, left), tfl_broadcast(x, tfl_in(x, 1), rank + 2, right)};
  ir_value v = opt_make(x->rw, IR_OP_TRIANGULAR_SOLVE, opt_type(both[1]), 2, both);
  ir_module *m = x->rw->m;
  opt_set(x->rw, v, "left_side", ir_m_bool(m, true));
  opt_set(x->rw, v, "lower", ir_m_bool(m, tfl_attr_bool(x, "lower")));
  opt_set(x->rw, v, "unit_diagonal", ir_m_bool(m, false));
  opt_set(x->rw, v, "transpose_a",
          ir_m_enum(m, "stablehlo", "transpose", tfl_attr_bool(x, "adjoint") ? IR_TRANSPOSE_ADJOINT : IR_TRANSPOSE_NO));
  tfl_out(x, 0, v);
  return x->status;
}

/* Of vectors of three elements: (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0). */
int tfl_row_cross(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank == 0 || t->dims[t->rank - 1] != 3 || tfl_in_type(x, 1) != t)
    return tfl_fail(x, "two inputs of vectors of 3 elements are expected");
  ir_value a[3], b[3], parts[3];
  for (int i = 0; i < 3; i++) {
    a[i] = tfl_slice(x, tfl_in(x, 0), t->rank - 1, i, i + 1);
    b[i] = tfl_slice(x, tfl_in(x, 1), t->rank - 1, i, i + 1);
  }
  for (int i = 0; i < 3; i++) {
    int j = (i + 1) % 3, k = (i + 2) % 3;
    parts[i] = opt_binary(x->rw, IR_OP_SUBTRACT, opt_binary(x->rw, IR_OP_MULTIPLY, a[j], b[k]),
                          opt_binary(x->rw, IR_OP_MULTIPLY, a[k], b[j]));
  }
  tfl_out(x, 0, tfl_concat(x, 3, parts, t->rank - 1));
  return x->status;
}

/* --- Fourier transforms of the last dimensions --- */

static base_dtype matrices_complex_of(base_dtype t) {
  assert(base_dtype_is_float(t));
  return t == XLAC_F64 ? XLAC_C128 : XLAC_C64;
}
static base_dtype matrices_real_of(base_dtype t) {
  return t == XLAC_C128 ? XLAC_F64 : XLAC_F32;
}

/* `last` is the last size of the result, which real transforms change. */
static ir_value matrices_fft(tfl_op *x, ir_value v, ir_fft kind, base_dtype dtype, const int64_t *length,
                             int64_t last) {
  int64_t dims[TFL_MOST_DIMS];
  uint32_t n = (uint32_t)x->row->arg;
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  if (t->rank < n)
    return tfl_fail(x, "a value of rank %u: expected %u dimensions or more", t->rank, n), matrices_nothing();
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = d + 1 == t->rank ? last : t->dims[d];
  ir_value r = opt_make(x->rw, IR_OP_FFT, tfl_type(x, dtype, t->rank, dims), 1, &v);
  opt_set(x->rw, r, "fft_type", ir_m_enum(x->rw->m, "stablehlo", "fft_type", kind));
  opt_set(x->rw, r, "fft_length", ir_m_i64s(x->rw->m, n, length));
  return r;
}

/* arg: the number of dimensions that are transformed. */
static int matrices_complex_fft(tfl_op *x, ir_fft kind) {
  const ir_type *t = tfl_in_type(x, 0);
  uint32_t n = (uint32_t)x->row->arg;
  if (t->rank < n) return tfl_fail(x, "a value of rank %u: expected %u dimensions or more", t->rank, n);
  tfl_out(x, 0, matrices_fft(x, tfl_in(x, 0), kind, (base_dtype)t->dtype, t->dims + t->rank - n, t->dims[t->rank - 1]));
  return x->status;
}

int tfl_row_fft(tfl_op *x) {
  return matrices_complex_fft(x, IR_FFT_FFT);
}

int tfl_row_inverse_fft(tfl_op *x) {
  return matrices_complex_fft(x, IR_FFT_IFFT);
}

/* v with these as its last sizes, cut or filled with zeros. */
static ir_value matrices_fit(tfl_op *x, ir_value v, uint32_t n, const int64_t *sizes) {
  assert(n <= 3);
  int64_t low[TFL_MOST_DIMS] = {0}, high[TFL_MOST_DIMS] = {0};
  const ir_type *t = opt_type(v);
  bool same = true;
  if (!t) return v;
  for (uint32_t i = 0; i < n; i++) {
    high[t->rank - n + i] = sizes[i] - t->dims[t->rank - n + i];
    same = same && high[t->rank - n + i] == 0;
  }
  return same ? v : tfl_pad(x, v, tfl_scalar(x, (base_dtype)t->dtype, 0), low, high, NULL);
}

/* The transform's sizes, input 1; half: the last of them as half a spectrum. */
static int matrices_length(tfl_op *x, const int64_t **length, int64_t *half) {
  uint32_t n = 0;
  TRY(tfl_ints(x, 1, length, &n));
  if (n != (uint32_t)x->row->arg || tfl_in_type(x, 0)->rank < n)
    return tfl_fail(x, "%u lengths for a value of rank %u", n, tfl_in_type(x, 0)->rank);
  for (uint32_t i = 0; i < n; i++)
    if ((*length)[i] < 1) return tfl_fail(x, "a length of %lld", (long long)(*length)[i]);
  for (uint32_t i = 0; i < n; i++) half[i] = i + 1 < n ? (*length)[i] : (*length)[i] / 2 + 1;
  return 0;
}

/* The input is cut or filled to fft_length first. */
int tfl_row_real_fft(tfl_op *x) {
  const int64_t *length = NULL;
  int64_t half[3];
  TRY(matrices_length(x, &length, half));
  uint32_t n = (uint32_t)x->row->arg;
  base_dtype dtype = matrices_complex_of((base_dtype)tfl_in_type(x, 0)->dtype);
  tfl_out(x, 0, matrices_fft(x, matrices_fit(x, tfl_in(x, 0), n, length), IR_FFT_RFFT, dtype, length, half[n - 1]));
  return x->status;
}

/* The spectrum is cut or filled to its half length. */
int tfl_row_inverse_real_fft(tfl_op *x) {
  const int64_t *length = NULL;
  int64_t half[3];
  TRY(matrices_length(x, &length, half));
  uint32_t n = (uint32_t)x->row->arg;
  base_dtype dtype = matrices_real_of((base_dtype)tfl_in_type(x, 0)->dtype);
  tfl_out(x, 0, matrices_fft(x, matrices_fit(x, tfl_in(x, 0), n, half), IR_FFT_IRFFT, dtype, length, length[n - 1]));
  return x->status;
}
