/* Sparse tensors: indices [n, rank] in order, values [n], a shape. */
#include "host_kernel.h"

/* The three tensors that a sparse tensor is. */
typedef struct sparse_in {
  interp_value *indices, *values;
  uint32_t rank;
  int64_t n, dims[IR_MAX_RANK];
} sparse_in;

static int sparse_indices(tfs_call *c, uint32_t i, uint32_t rank, interp_value **out) {
  assert(rank <= IR_MAX_RANK);
  TRY(tfs_tensor_in(c, i, out));
  const interp_value *v = *out;
  if (v->rank == 2 && v->dims[1] == rank && base_dtype_is_integer((base_dtype)v->dtype)) return 0;
  return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u is not a table of indices for %u dimensions", i, rank);
}

/* Inputs 0 to 2: indices, values, shape. Indices may be anything. */
static int sparse_of(tfs_call *c, sparse_in *s) {
  TRY(tfs_dims_in(c, 2, &s->rank, s->dims));
  TRY(tfs_check_dims(c, s->rank, s->dims));
  TRY(sparse_indices(c, 0, s->rank, &s->indices));
  TRY(tfs_tensor_in(c, 1, &s->values));
  s->n = s->indices->dims[0];
  if (s->values->rank == 1 && s->values->count == s->n) return 0;
  return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "%lld values for %lld indices", (long long)s->values->count,
                  (long long)s->n);
}

/* Coordinate d of row `row`, within its size. */
static int sparse_index(tfs_call *c, const sparse_in *s, int64_t row, uint32_t d, int64_t *out) {
  assert(row >= 0 && row < s->n && d < s->rank);
  *out = tfs_int_at(s->indices, row * s->rank + d);
  if (*out >= 0 && *out < s->dims[d]) return 0;
  return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld in dimension %u of size %lld", (long long)*out, d,
                  (long long)s->dims[d]);
}

/* --- SparseReshape(indices, shape, new shape) --- */

/* The new sizes: one may be open, and the number of places stays. */
static int sparse_new_dims(tfs_call *c, uint32_t rank, const int64_t *dims, uint32_t *to_rank, int64_t *to) {
  int64_t count = 1, known = 1, open = -1;
  TRY(tfs_dims_in(c, 2, to_rank, to));
  for (uint32_t d = 0; d < rank; d++) count *= dims[d]; /* tfs_check_dims has seen that it fits */
  for (uint32_t d = 0; d < *to_rank; d++) {
    if (to[d] < 0 && open >= 0) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "two sizes of the new shape are open");
    if (to[d] < 0)
      open = d;
    else if (!base_mul_i64(known, to[d], &known))
      return tfs_fail(c, XLAC_E_TOO_LARGE, "the new shape is too large");
  }
  if (open >= 0 && known > 0) to[open] = count / known;
  if (open >= 0) known *= to[open] < 0 ? 0 : to[open];
  if (open >= 0 && to[open] < 0) to[open] = 0;
  if (known == count) return 0;
  return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "%lld elements can't get a shape of %lld", (long long)count,
                  (long long)known);
}

/* The place in row-major order of a row's coordinates. As in TensorFlow, those that are out of range give places that
 * are, and no more; but such a place must be a number. */
static int sparse_place(tfs_call *c, const interp_value *from, int64_t row, uint32_t rank, const int64_t *dims,
                        int64_t *flat) {
  *flat = 0;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t at = tfs_int_at(from, row * rank + d);
    if (!base_mul_i64(*flat, dims[d], flat) || !base_add_i64(*flat, at, flat))
      return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of row %lld is out of range: dimension %u has %lld",
                      (long long)at, (long long)row, d, (long long)dims[d]);
  }
  return 0;
}

/* Coordinates to a place in row-major order, and back to coordinates. */
int tfs_host_sparse_reshape(tfs_call *c) {
  int64_t dims[IR_MAX_RANK], to[IR_MAX_RANK];
  uint32_t rank = 0, n_to = 0;
  interp_value *from = NULL;
  TRY(tfs_dims_in(c, 1, &rank, dims));
  TRY(tfs_check_dims(c, rank, dims));
  TRY(sparse_indices(c, 0, rank, &from));
  TRY(sparse_new_dims(c, rank, dims, &n_to, to));
  int64_t n = from->dims[0], shape[] = {n, n_to}, list = n_to;
  interp_value *out = tfs_new_tensor(c->alloc, XLAC_S64, 2, shape);
  for (int64_t i = 0; out && i < n; i++) {
    int64_t flat;
    int status = sparse_place(c, from, i, rank, dims, &flat);
    if (status) interp_release(out);
    if (status) return status;
    for (uint32_t d = n_to; d-- > 0; flat = to[d] ? flat / to[d] : 0)
      tfs_put_int(out, i * n_to + d, to[d] ? flat % to[d] : 0);
  }
  TRY(tfs_give_tensor(c, 0, out));
  interp_value *sizes = tfs_new_tensor(c->alloc, XLAC_S64, 1, &list);
  for (uint32_t d = 0; sizes && d < n_to; d++) tfs_put_int(sizes, d, to[d]);
  return tfs_give_tensor(c, 1, sizes);
}

/* --- SparseFillEmptyRows(indices, values, shape, default) --- */

/* The results on their way. */
typedef struct sparse_filled {
  interp_value *indices, *values, *empty, *back;
  int64_t *start; /* of each row in the result */
} sparse_filled;

/* NULLs are fine: a failure may have left some. */
static void sparse_release(tfs_call *c, sparse_filled *f) {
  interp_release(f->indices);
  interp_release(f->values);
  interp_release(f->empty);
  interp_release(f->back);
  base_free(c->alloc, f->start);
}

/* Counts what each row will have, and where it begins. start[i] is a count at first, then where row i begins. */
static int sparse_count_rows(tfs_call *c, const sparse_in *s, sparse_filled *f, int64_t *total) {
  assert(s->rank > 0);
  int64_t rows = s->dims[0], row = 0;
  f->start = base_malloc(c->alloc, (size_t)(rows + 1) * sizeof *f->start);
  f->empty = tfs_new_tensor(c->alloc, XLAC_PRED, 1, &rows);
  f->back = tfs_new_tensor(c->alloc, XLAC_S64, 1, &s->n);
  if (!f->start || !f->empty || !f->back) return tfs_oom(c);
  for (int64_t i = 0; i <= rows; i++) f->start[i] = 0;
  for (int64_t i = 0; i < s->n; i++) {
    TRY(sparse_index(c, s, i, 0, &row));
    f->start[row]++;
  }
  *total = 0;
  for (int64_t i = 0; i < rows; i++) {
    int64_t count = f->start[i];
    tfs_put_int(f->empty, i, count == 0);
    f->start[i] = *total;
    *total += count ? count : 1;
  }
  return 0;
}

/* Empty rows get the default in column 0; start[i] moves on as row i is filled. */
static int sparse_fill(tfs_call *c, const sparse_in *s, const interp_value *otherwise, sparse_filled *f) {
  assert(otherwise->count == 1);
  int64_t total = 0;
  TRY(sparse_count_rows(c, s, f, &total));
  f->indices = tfs_new_tensor(c->alloc, XLAC_S64, 2, (int64_t[]){total, s->rank});
  f->values = tfs_new_tensor(c->alloc, (base_dtype)s->values->dtype, 1, &total);
  if (!f->indices || !f->values) return tfs_oom(c);
  size_t size = base_dtype_bytes((base_dtype)s->values->dtype);
  for (int64_t i = 0; i < s->dims[0]; i++) {
    if (!tfs_int_at(f->empty, i)) continue;
    for (uint32_t d = 0; d < s->rank; d++) tfs_put_int(f->indices, f->start[i] * s->rank + d, d ? 0 : i);
    memcpy(tfs_at(f->values, f->start[i]), otherwise->data, size);
  }
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = f->start[tfs_int_at(s->indices, i * s->rank)]++;
    for (uint32_t d = 0; d < s->rank; d++)
      tfs_put_int(f->indices, at * s->rank + d, tfs_int_at(s->indices, i * s->rank + d));
    memcpy(tfs_at(f->values, at), tfs_at(s->values, i), size);
    tfs_put_int(f->back, i, at);
  }
  return 0;
}

/* What was made is released in any case: the outputs have holders of their own. */
int tfs_host_sparse_fill(tfs_call *c) {
  sparse_in s = {.n = 0};
  sparse_filled f = {.start = NULL};
  interp_value *otherwise = NULL;
  TRY(sparse_of(c, &s));
  TRY(tfs_tensor_in(c, 3, &otherwise));
  if (s.rank == 0 || otherwise->count != 1 || otherwise->dtype != s.values->dtype)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "it takes a sparse tensor with rows, and one default like its values");
  int status = sparse_fill(c, &s, otherwise, &f);
  interp_value *all[] = {f.indices, f.values, f.empty, f.back};
  for (uint32_t i = 0; i < 4 && status == 0; i++) status = tfs_give_tensor(c, i, interp_retain(all[i]));
  sparse_release(c, &f);
  return status;
}

/* SparseFillEmptyRowsGrad(places that values went to, gradient): of the values; of the default, the rest. What
 * went to no place of the values went to defaults. */
int tfs_host_sparse_fill_gradient(tfs_call *c) {
  interp_value *back = NULL, *g = NULL;
  double rest = 0;
  TRY(tfs_tensor_in(c, 0, &back));
  TRY(tfs_tensor_in(c, 1, &g));
  if (back->rank != 1 || g->rank != 1) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "it takes two lists");
  interp_value *values = tfs_new_tensor(c->alloc, (base_dtype)g->dtype, 1, back->dims);
  interp_value *one = tfs_new_tensor(c->alloc, (base_dtype)g->dtype, 0, NULL);
  TRY(tfs_give_tensor(c, 1, one));
  for (int64_t i = 0; i < g->count; i++) rest += tfs_real_at(g, i);
  for (int64_t i = 0; values && i < back->count; i++) {
    int64_t at = tfs_int_at(back, i);
    if (at < 0 || at >= g->count) {
      interp_release(values);
      return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "place %lld of %lld", (long long)at, (long long)g->count);
    }
    tfs_put_real(values, i, tfs_real_at(g, at));
    rest -= tfs_real_at(g, at);
  }
  if (c->n_out > 1) tfs_put_real(c->out[1].tensor, 0, rest);
  return tfs_give_tensor(c, 0, values);
}

/* --- products and sums --- */

/* SparseTensorDenseMatMul(indices, values, shape, dense), each maybe transposed. Sums in the result's own type,
 * one product at a time, in the order of the indices. */
int tfs_host_sparse_mat_mul(tfs_call *c) {
  sparse_in s = {.n = 0};
  interp_value *b = NULL;
  TRY(sparse_of(c, &s));
  TRY(tfs_tensor_in(c, 3, &b));
  uint32_t turned = tfs_attr_bool(c, "adjoint_a"), across = tfs_attr_bool(c, "adjoint_b");
  if (s.rank != 2 || b->rank != 2 || s.dims[!turned] != b->dims[across] || b->dtype != s.values->dtype ||
      base_dtype_is_complex((base_dtype)b->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "its matrices of real numbers do not fit together");
  int64_t n = b->dims[!across], dims[] = {s.dims[turned], n};
  interp_value *out = tfs_new_tensor(c->alloc, (base_dtype)b->dtype, 2, dims);
  if (!out) return tfs_oom(c);
  memset(out->data, 0, out->count ? interp_bytes(out) : 0);
  int status = 0;
  for (int64_t i = 0; i < s.n && status == 0; i++) {
    int64_t at[2] = {0, 0};
    status = sparse_index(c, &s, i, 0, &at[0]);
    if (status == 0) status = sparse_index(c, &s, i, 1, &at[1]);
    double v = tfs_real_at(s.values, i);
    for (int64_t k = 0; k < n && status == 0; k++) {
      int64_t from = across ? k * b->dims[1] + at[!turned] : at[!turned] * n + k, to = at[turned] * n + k;
      tfs_put_real(out, to, tfs_real_at(out, to) + v * tfs_real_at(b, from));
    }
  }
  if (status == 0) return tfs_give_tensor(c, 0, out);
  interp_release(out);
  return status;
}

/* Which dimensions a list of axes, maybe negative, names. All of them where the list is empty. */
static int sparse_axes(tfs_call *c, uint32_t i, uint32_t rank, bool *on) {
  assert(rank <= IR_MAX_RANK);
  interp_value *axes = NULL;
  TRY(tfs_tensor_in(c, i, &axes));
  for (uint32_t d = 0; d < rank; d++) on[d] = axes->count == 0;
  for (int64_t k = 0; k < axes->count; k++) {
    int64_t axis = tfs_int_at(axes, k);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "no axis %lld", (long long)axis);
    on[axis] = true;
  }
  return 0;
}

/* SparseReduceSum and SparseReduceMax (arg 1) (indices, values, shape, axes): dense. `seen` tells the first value
 * of a place from a later one; places that have none are 0. */
int tfs_host_sparse_reduce(tfs_call *c) {
  sparse_in s = {.n = 0};
  bool gone[IR_MAX_RANK], keep = tfs_attr_bool(c, "keep_dims"), most = c->unit->host->arg == 1;
  int64_t dims[IR_MAX_RANK], at = 0;
  uint32_t rank = 0;
  TRY(sparse_of(c, &s));
  TRY(sparse_axes(c, 3, s.rank, gone));
  for (uint32_t d = 0; d < s.rank; d++)
    if (!gone[d] || keep) dims[rank++] = gone[d] ? 1 : s.dims[d];
  interp_value *out = tfs_new_tensor(c->alloc, (base_dtype)s.values->dtype, rank, dims);
  uint8_t *seen = base_malloc(c->alloc, out ? (size_t)out->count + 1 : 1);
  int status = out && seen ? 0 : tfs_oom(c);
  if (status == 0) memset(seen, 0, (size_t)out->count + 1);
  if (status == 0 && out->count) memset(out->data, 0, interp_bytes(out));
  for (int64_t i = 0; i < s.n && status == 0; i++) {
    int64_t place = 0;
    for (uint32_t d = 0; d < s.rank && status == 0; d++) {
      status = sparse_index(c, &s, i, d, &at);
      if (!gone[d]) place = place * s.dims[d] + at;
    }
    if (status) break;
    double v = tfs_real_at(s.values, i), old = tfs_real_at(out, place);
    tfs_put_real(out, place, !seen[place] ? v : most ? (v > old ? v : old) : old + v);
    seen[place] = 1;
  }
  base_free(c->alloc, seen);
  if (status == 0) return tfs_give_tensor(c, 0, out);
  interp_release(out);
  return status;
}
