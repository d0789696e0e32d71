/* Diagonals and bands of matrices. Places are known when lowering, so the diagonals are gathers with constant indices.
 * Source: TensorFlow's documentation of MatrixDiagV3 and its kin. */
#include "../windows.h"

/* Diagonals low to high of rows x cols matrices; the one above the main one is 1. */
typedef struct diag_plan {
  int64_t low, high, rows, cols, longest;
  bool left_upper, left_lower; /* how diagonals shorter than the longest lie in its row */
} diag_plan;

/* Elements of diagonal k; at most 0 for one outside. */
static int64_t diag_length(const diag_plan *p, int64_t k) {
  int64_t below = p->rows + (k < 0 ? k : 0), beside = p->cols - (k > 0 ? k : 0);
  return below < beside ? below : beside;
}

/* Where element i of diagonal k's row is: its row of the matrix; -1 for padding. */
static int64_t diag_row(const diag_plan *p, int64_t k, int64_t i) {
  bool left = k >= 0 ? p->left_upper : p->left_lower;
  int64_t n = diag_length(p, k), at = left ? i : i - (p->longest - n);
  return at < 0 || at >= n ? -1 : at + (k < 0 ? -k : 0);
}

/* Ops of version 1 have the main diagonal; 2 and 3 have k as input `i`, and 3 attribute align. */
static int diag_band(tfl_op *x, uint32_t i, diag_plan *p) {
  const int64_t *k = NULL;
  uint32_t n = 0;
  p->left_upper = p->left_lower = true;
  if (x->row->arg == 1) return 0;
  TRY(tfl_ints(x, i, &k, &n));
  if (n != 1 && n != 2) return tfl_fail(x, "k has %u elements: expected 1 or 2", n);
  p->low = k[0];
  p->high = k[n - 1];
  if (p->low > p->high) return tfl_fail(x, "diagonals %lld to %lld", (long long)p->low, (long long)p->high);
  if (x->row->arg == 2) return 0;
  base_slice align = tfl_attr_str(x, "align");
  p->left_upper = base_slice_is(align, "LEFT_LEFT") || base_slice_is(align, "LEFT_RIGHT");
  p->left_lower = base_slice_is(align, "LEFT_LEFT") || base_slice_is(align, "RIGHT_LEFT");
  return x->status;
}

/* Sizes stay below 2^31, since places are i32. */
static int diag_check(tfl_op *x, diag_plan *p) {
  if (p->rows < 1 || p->cols < 1 || p->rows > INT32_MAX / p->cols)
    return tfl_fail(x, "matrices of %lld x %lld", (long long)p->rows, (long long)p->cols);
  bool inside = (p->low > -p->rows && p->high < p->cols) || (p->low == 0 && p->high == 0);
  if (!inside)
    return tfl_fail(x, "diagonals %lld to %lld of a %lld x %lld matrix", (long long)p->low, (long long)p->high,
                    (long long)p->rows, (long long)p->cols);
  p->longest = 0;
  for (int64_t k = p->low; k <= p->high; k++)
    if (diag_length(p, k) > p->longest) p->longest = diag_length(p, k);
  return 0;
}

/* n places of -1; NULL when out of memory. */
static int32_t *diag_places(tfl_op *x, int64_t n) {
  assert(n >= 0);
  int32_t *place = BASE_ARRAY(x->arena, int32_t, (size_t)n + 1);
  if (!place) x->status = base_oom(x->err, "lowering");
  for (int64_t i = 0; place && i < n; i++) place[i] = -1;
  return place;
}

/* input, k, padding -> the diagonals, the highest first. A single diagonal has no dimension for its number. */
int tfl_row_diag_part(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2) return tfl_fail(x, "a value of rank %u: expected matrices", t->rank);
  diag_plan p = {.rows = t->dims[t->rank - 2], .cols = t->dims[t->rank - 1]};
  TRY(diag_band(x, 1, &p));
  TRY(diag_check(x, &p));
  int64_t n = p.high - p.low + 1, dims[] = {n, p.longest};
  int32_t *place = diag_places(x, n * p.longest);
  if (!place) return x->status;
  for (int64_t d = 0; d < n; d++)
    for (int64_t i = 0; i < p.longest; i++) {
      int64_t row = diag_row(&p, p.high - d, i);
      if (row >= 0) place[d * p.longest + i] = (int32_t)(row * p.cols + row + p.high - d);
    }
  ir_value otherwise = x->row->arg == 1 ? tfl_scalar(x, (base_dtype)t->dtype, 0) : tfl_in(x, 2);
  tfl_out(x, 0, tfl_rearrange(x, tfl_in(x, 0), 2, n == 1 ? 1 : 2, n == 1 ? dims + 1 : dims, place, otherwise));
  return x->status;
}

/* What every element of the matrices is of [diagonals, longest]; -1 outside the band. */
static int32_t *diag_spread(tfl_op *x, const diag_plan *p) {
  assert(p->longest > 0);
  int32_t *place = diag_places(x, p->rows * p->cols);
  for (int64_t k = p->high; place && k >= p->low; k--)
    for (int64_t i = 0; i < p->longest; i++) {
      int64_t row = diag_row(p, k, i);
      if (row >= 0) place[row * p->cols + row + k] = (int32_t)((p->high - k) * p->longest + i);
    }
  return place;
}

/* The number of rows and columns: given, or as few as the diagonals need. -1 stands for "not given". */
static int diag_sizes(tfl_op *x, int64_t longest, diag_plan *p) {
  p->rows = p->cols = -1;
  if (x->row->arg > 1) {
    TRY(tfl_int(x, 2, &p->rows));
    TRY(tfl_int(x, 3, &p->cols));
  }
  int64_t least_rows = longest - (p->high < 0 ? p->high : 0), least_cols = longest + (p->low > 0 ? p->low : 0);
  if (p->rows == -1 && p->cols == -1) {
    p->rows = p->cols = least_rows > least_cols ? least_rows : least_cols;
  } else if (p->rows == -1) {
    p->rows = least_rows;
  } else if (p->cols == -1) {
    p->cols = least_cols;
  }
  TRY(diag_check(x, p));
  return p->longest == longest ? 0
                               : tfl_fail(x, "diagonals of %lld elements for a %lld x %lld matrix", (long long)longest,
                                          (long long)p->rows, (long long)p->cols);
}

/* diagonals, k, rows, columns, padding */
int tfl_row_diag(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  diag_plan p = {.low = 0};
  TRY(diag_band(x, 1, &p));
  uint32_t n = p.high > p.low ? 2 : 1;
  if (t->rank < n || (n == 2 && t->dims[t->rank - 2] != p.high - p.low + 1))
    return tfl_fail(x, "diagonals of rank %u for k of %lld to %lld", t->rank, (long long)p.low, (long long)p.high);
  TRY(diag_sizes(x, t->dims[t->rank - 1], &p));
  int32_t *place = diag_spread(x, &p);
  if (!place) return x->status;
  int64_t dims[] = {p.rows, p.cols};
  ir_value otherwise = x->row->arg == 1 ? tfl_scalar(x, (base_dtype)t->dtype, 0) : tfl_in(x, 4);
  tfl_out(x, 0, tfl_rearrange(x, tfl_in(x, 0), n, 2, dims, place, otherwise));
  return x->status;
}

/* input, diagonals, k. The diagonals are spread over the matrix and selected by a constant mask. */
int tfl_row_set_diag(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0), *u = tfl_in_type(x, 1);
  if (t->rank < 2) return tfl_fail(x, "a value of rank %u: expected matrices", t->rank);
  diag_plan p = {.rows = t->dims[t->rank - 2], .cols = t->dims[t->rank - 1]};
  TRY(diag_band(x, 2, &p));
  TRY(diag_check(x, &p));
  uint32_t n = p.high > p.low ? 2 : 1;
  bool fits = u->rank == t->rank - 2 + n && u->dims[u->rank - 1] == p.longest && u->dtype == t->dtype;
  for (uint32_t d = 0; fits && d + 2 < t->rank; d++) fits = u->dims[d] == t->dims[d];
  if (!fits || (n == 2 && u->dims[u->rank - 2] != p.high - p.low + 1))
    return tfl_fail(x, "diagonals have not the shape that the matrices and k ask for");
  int32_t *place = diag_spread(x, &p);
  if (!place) return x->status;
  int64_t dims[] = {p.rows, p.cols}, count = p.rows * p.cols;
  ir_value set = tfl_rearrange(x, tfl_in(x, 1), n, 2, dims, place, tfl_scalar(x, (base_dtype)t->dtype, 0));
  uint8_t *band = BASE_ARRAY(x->arena, uint8_t, (size_t)count);
  if (!band) return x->status = base_oom(x->err, "lowering");
  for (int64_t i = 0; i < count; i++) band[i] = place[i] >= 0;
  ir_value mask = opt_constant_data(x->rw, tfl_type(x, XLAC_PRED, 2, dims), band, false);
  tfl_out(x, 0, opt_select(x->rw, tfl_broadcast(x, mask, t->rank, t->dims), set, tfl_in(x, 0)));
  return x->status;
}

/* input, num_lower, num_upper: within the band where 0 <= row - column <= lower and column - row <= upper; negative
 * numbers keep all. They need not be known. */
int tfl_row_band_part(tfl_op *x) {
  assert(x->n_in == 3);
  const ir_type *t = tfl_in_type(x, 0);
  if (t->rank < 2) return tfl_fail(x, "a value of rank %u: expected matrices", t->rank);
  base_dtype index = (base_dtype)tfl_in_type(x, 1)->dtype;
  const int64_t *dims = t->dims + t->rank - 2;
  ir_value row = tfl_iota(x, index, 2, dims, 0), col = tfl_iota(x, index, 2, dims, 1), keep = {NULL, 0};
  for (uint32_t i = 1; i < 3; i++) {
    ir_value limit = tfl_in(x, i), off = opt_binary(x->rw, IR_OP_SUBTRACT, i == 1 ? row : col, i == 1 ? col : row);
    if (!limit.op) return x->status;
    ir_value all = tfl_compare(x, IR_DIRECTION_LT, limit, tfl_like(x, limit, 0));
    ir_value in = tfl_binary(x, IR_OP_OR, tfl_compare(x, IR_DIRECTION_LE, off, limit), all);
    keep = i == 1 ? in : opt_binary(x->rw, IR_OP_AND, keep, in);
  }
  ir_value v = tfl_in(x, 0);
  if (v.op) tfl_out(x, 0, opt_select(x->rw, tfl_broadcast(x, keep, t->rank, t->dims), v, tfl_like(x, v, 0)));
  return x->status;
}

/* --- Diag, DiagPart: of tensors of any rank, whose shape is there twice --- */

/* [n] of all elements to [n, n], zeros beside them. */
int tfl_row_tensor_diag(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  int64_t dims[2 * TFL_MOST_DIMS], n = t->count, square[] = {n, n};
  if (2 * t->rank > TFL_MOST_DIMS || n > (1 << 20))
    return tfl_fail(x, "a diagonal of %lld elements is too large", (long long)n);
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = dims[t->rank + d] = t->dims[d];
  ir_value here =
      tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S32, 2, square, 0), tfl_iota(x, XLAC_S32, 2, square, 1));
  ir_value v = tfl_broadcast(x, tfl_reshape(x, tfl_in(x, 0), 1, &n), 2, square);
  if (!v.op) return x->status;
  tfl_out(x, 0, tfl_reshape(x, opt_select(x->rw, here, v, tfl_like(x, v, 0)), 2 * t->rank, dims));
  return x->status;
}

/* The elements whose two halves of the index are equal. */
int tfl_row_tensor_diag_part(tfl_op *x) {
  const ir_type *t = tfl_in_type(x, 0);
  uint32_t half = t->rank / 2;
  int64_t n = tfl_count(half, t->dims);
  for (uint32_t d = 0; d < half; d++)
    if (t->dims[d] != t->dims[half + d]) return tfl_fail(x, "a shape whose halves differ");
  if (t->rank % 2 || n * n > INT32_MAX) return tfl_fail(x, "a value of rank %u: expected an even number", t->rank);
  int32_t *place = diag_places(x, n);
  if (!place) return x->status;
  for (int64_t i = 0; i < n; i++) place[i] = (int32_t)(i * n + i);
  tfl_out(x, 0, tfl_rearrange(x, tfl_in(x, 0), t->rank, half, t->dims, place, (ir_value){NULL, 0}));
  return x->status;
}
