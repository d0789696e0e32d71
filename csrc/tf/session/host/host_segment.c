/* Sums, means and others of runs of rows; of rows picked by indices, as lookups in tables of embeddings have them; and
 * gradients of these. How many results there are depends on the ids. */
#include <math.h>

#include "host_kernel.h"

/* How the rows of a segment become one: the row's arg, in its low bits. */
enum { SEG_SUM, SEG_MEAN, SEG_SQRT_N, SEG_PROD, SEG_MIN, SEG_MAX, SEG_HOW = 15, SEG_SPARSE = 16, SEG_COUNTED = 32 };

/* What is combined how; filled from the inputs by seg_plan_of. */
typedef struct seg_plan {
  interp_value *data, *ids, *indices; /* indices: NULL where every row is meant */
  int64_t n, width, n_rows;           /* rows that are combined; elements of a row; rows of data */
  unsigned how;
} seg_plan;

static int seg_list_in(tfs_call *c, uint32_t i, interp_value **out) {
  assert(out);
  TRY(tfs_tensor_in(c, i, out));
  if ((*out)->rank == 1 && base_dtype_is_integer((base_dtype)(*out)->dtype)) return 0;
  return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u is not a list of integers", i);
}

/* Fails unless there is an id for each row that is combined. */
static int seg_plan_of(tfs_call *c, bool sparse, seg_plan *p) {
  TRY(tfs_tensor_in(c, 0, &p->data));
  if (sparse) TRY(seg_list_in(c, 1, &p->indices));
  TRY(seg_list_in(c, sparse ? 2 : 1, &p->ids));
  const interp_value *v = p->data;
  if (v->rank == 0 || base_dtype_is_complex((base_dtype)v->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "data has no rows of real numbers");
  p->n_rows = v->dims[0];
  p->n = p->ids->count;
  p->width = 1;
  for (uint32_t d = 1; d < v->rank; d++) p->width *= v->dims[d];
  if (p->n == (sparse ? p->indices->count : p->n_rows)) return 0;
  return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "there are %lld segment ids for %lld rows", (long long)p->n,
                  (long long)(sparse ? p->indices->count : p->n_rows));
}

/* Not a number wins, on either side. */
static double seg_combine(unsigned how, double a, double b) {
  switch (how) {
    case SEG_PROD:
      return a * b;
    case SEG_MIN:
      return b < a || isnan(b) ? b : a;
    case SEG_MAX:
      return b > a || isnan(b) ? b : a;
    default:
      return a + b;
  }
}

/* What the sum of n rows is multiplied by. */
static double seg_scale(unsigned how, int64_t n) {
  assert(n >= 0);
  return how == SEG_MEAN ? 1.0 / (double)n : how == SEG_SQRT_N ? 1.0 / sqrt((double)n) : 1.0;
}

/* Which row of the data is meant by place i. */
static int seg_row_of(tfs_call *c, const seg_plan *p, int64_t i, int64_t *row) {
  assert(i >= 0 && i < p->n);
  *row = p->indices ? tfs_int_at(p->indices, i) : i;
  if (*row >= 0 && *row < p->n_rows) return 0;
  return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of %lld rows", (long long)*row, (long long)p->n_rows);
}

/* Rows from..to, all of one segment. Sums are computed in double; the first row of a segment begins them, since 0
 * is not a starting value for the least of numbers. */
static int seg_one(tfs_call *c, const seg_plan *p, int64_t from, int64_t to, double *sum, interp_value *out,
                   int64_t segment) {
  assert(from < to);
  for (int64_t i = from; i < to; i++) {
    int64_t row = 0;
    TRY(seg_row_of(c, p, i, &row));
    for (int64_t k = 0; k < p->width; k++) {
      double v = tfs_real_at(p->data, row * p->width + k);
      sum[k] = i == from ? v : seg_combine(p->how, sum[k], v);
    }
  }
  double scale = seg_scale(p->how, to - from);
  for (int64_t k = 0; k < p->width; k++) tfs_put_real(out, segment * p->width + k, sum[k] * scale);
  return 0;
}

/* Ids come in order; ids that are left out keep what seg_result put there. */
static int seg_all(tfs_call *c, const seg_plan *p, double *sum, interp_value *out) {
  for (int64_t i = 0, to = 0; i < p->n; i = to) {
    int64_t id = tfs_int_at(p->ids, i);
    for (to = i + 1; to < p->n && tfs_int_at(p->ids, to) == id;) to++;
    if (id < 0 || id >= out->dims[0] || (i > 0 && tfs_int_at(p->ids, i - 1) > id))
      return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "segment id %lld is out of order or out of range", (long long)id);
    TRY(seg_one(c, p, i, to, sum, out, id));
  }
  return 0;
}

/* A result of `rows` rows like those of v, all `start`. */
static int seg_result(tfs_call *c, const interp_value *v, int64_t rows, double start, interp_value **out) {
  assert(v->rank > 0);
  int64_t dims[IR_MAX_RANK];
  memcpy(dims, v->dims, v->rank * sizeof *dims);
  dims[0] = rows;
  TRY(tfs_check_dims(c, v->rank, dims));
  *out = tfs_new_tensor(c->alloc, (base_dtype)v->dtype, v->rank, dims);
  if (!*out) return tfs_oom(c);
  for (int64_t i = 0; i < (*out)->count; i++) tfs_put_real(*out, i, start);
  return 0;
}

/* Segment<How>(data, ids), SparseSegment<How>(data, indices, ids[, number of segments]). Without a number of
 * segments, the last id says how many there are. */
int tfs_host_segment(tfs_call *c) {
  unsigned arg = (unsigned)c->unit->host->arg;
  seg_plan p = {.how = arg & SEG_HOW};
  interp_value *out = NULL;
  int64_t rows = 0;
  TRY(seg_plan_of(c, arg & SEG_SPARSE, &p));
  if (p.n && !base_add_i64(tfs_int_at(p.ids, p.n - 1), 1, &rows))
    return tfs_fail(c, XLAC_E_TOO_LARGE, "the last segment id, %lld, is too large",
                    (long long)tfs_int_at(p.ids, p.n - 1));
  if (arg & SEG_COUNTED) TRY(tfs_int_in(c, 3, &rows));
  if (rows < 0) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "the last segment id is negative");
  TRY(seg_result(c, p.data, rows, p.how == SEG_PROD, &out));
  double *sum = base_malloc(c->alloc, (size_t)(p.width + 1) * sizeof *sum);
  int status = sum ? seg_all(c, &p, sum, out) : tfs_oom(c);
  base_free(c->alloc, sum);
  if (status == 0) return tfs_give_tensor(c, 0, out);
  interp_release(out);
  return status;
}

/* Rows of the gradient go back to where the sum had its rows from, each with its share. */
static int seg_scatter(tfs_call *c, const seg_plan *p, const double *counts, interp_value *out) {
  for (int64_t i = 0; i < p->n; i++) {
    int64_t id = tfs_int_at(p->ids, i), row = tfs_int_at(p->indices, i);
    if (row < 0 || row >= out->dims[0] || id < 0 || id >= p->n_rows)
      return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "index %lld of segment %lld is out of range", (long long)row,
                      (long long)id);
    double scale = seg_scale(p->how, (int64_t)counts[id]);
    for (int64_t k = 0; k < p->width; k++) {
      double g = tfs_real_at(p->data, id * p->width + k);
      tfs_put_real(out, row * p->width + k, tfs_real_at(out, row * p->width + k) + g * scale);
    }
  }
  return 0;
}

/* SparseSegment<How>Grad(gradient, indices, ids, rows of the result). counts: rows in each segment, which the
 * shares follow from. */
int tfs_host_segment_gradient(tfs_call *c) {
  seg_plan p = {.how = (unsigned)c->unit->host->arg};
  interp_value *out = NULL;
  int64_t rows = 0;
  TRY(tfs_tensor_in(c, 0, &p.data));
  TRY(seg_list_in(c, 1, &p.indices));
  TRY(seg_list_in(c, 2, &p.ids));
  TRY(tfs_int_in(c, 3, &rows));
  if (p.data->rank == 0 || p.ids->count != p.indices->count || rows < 0)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "the gradient, the indices and the ids do not fit together");
  p.n_rows = p.data->dims[0];
  p.n = p.ids->count;
  p.width = 1;
  for (uint32_t d = 1; d < p.data->rank; d++) p.width *= p.data->dims[d];
  TRY(seg_result(c, p.data, rows, 0, &out));
  double *counts = base_malloc(c->alloc, (size_t)(p.n_rows + 1) * sizeof *counts);
  int status = counts ? 0 : tfs_oom(c);
  for (int64_t i = 0; i < p.n_rows && status == 0; i++) counts[i] = 0;
  for (int64_t i = 0; i < p.n && status == 0; i++) {
    int64_t id = tfs_int_at(p.ids, i);
    if (id >= 0 && id < p.n_rows) counts[id]++;
  }
  if (status == 0) status = seg_scatter(c, &p, counts, out);
  base_free(c->alloc, counts);
  if (status == 0) return tfs_give_tensor(c, 0, out);
  interp_release(out);
  return status;
}
