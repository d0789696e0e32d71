/* The best boxes: those kept do not overlap more than a limit. And what else picks by looking at values. */
#include <float.h>
#include <stdlib.h>

#include "host_kernel.h"

/* A box by its number, with what it is sorted by. */
typedef struct box_candidate {
  float score;
  int64_t box;
} box_candidate;

/* For qsort: best first, and of equal ones the first. */
static int box_order(const void *a, const void *b) {
  const box_candidate *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return x->box < y->box ? -1 : x->box > y->box;
}

/* What two boxes share, divided by what both cover. Corners come in any order. Boxes without an area overlap
 * nothing. */
static float box_overlap(const interp_value *boxes, int64_t i, int64_t j) {
  assert(i >= 0 && j >= 0);
  float low[2][2], high[2][2], area[2], common = 1;
  for (int k = 0; k < 2; k++) {
    for (int d = 0; d < 2; d++) {
      float a = (float)tfs_real_at(boxes, (k ? j : i) * 4 + d), b = (float)tfs_real_at(boxes, (k ? j : i) * 4 + 2 + d);
      low[k][d] = a < b ? a : b;
      high[k][d] = a < b ? b : a;
    }
    area[k] = (high[k][0] - low[k][0]) * (high[k][1] - low[k][1]);
  }
  if (area[0] <= 0 || area[1] <= 0) return 0;
  for (int d = 0; d < 2; d++) {
    float from = low[0][d] > low[1][d] ? low[0][d] : low[1][d], to = high[0][d] < high[1][d] ? high[0][d] : high[1][d];
    common *= to > from ? to - from : 0;
  }
  return common / (area[0] + area[1] - common);
}

/* Input i, a single real number. */
static int box_number_in(tfs_call *c, uint32_t i, float *out) {
  assert(out);
  interp_value *v = NULL;
  TRY(tfs_tensor_in(c, i, &v));
  if (v->count != 1 || !base_dtype_is_float((base_dtype)v->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "input %u is not a single number", i);
  *out = (float)tfs_real_at(v, 0);
  return 0;
}

/* What the op says, in all its versions. */
typedef struct box_plan {
  interp_value *boxes, *scores;
  int64_t most, n; /* to keep; kept */
  float overlap, least;
  box_candidate *kept; /* n of them, and behind them the candidates */
} box_plan;

/* Later versions take as inputs what earlier ones have as attributes, and more. */
static int box_plan_of(tfs_call *c, box_plan *p) {
  int version = c->unit->host->arg;
  p->least = -FLT_MAX;
  TRY(tfs_tensor_in(c, 0, &p->boxes));
  TRY(tfs_tensor_in(c, 1, &p->scores));
  TRY(tfs_int_in(c, 2, &p->most));
  p->overlap = 0.5f;
  if (version == 1)
    (void)tf_attr_float(tf_attr_or_default(c->node->op, c->node->def->attrs, BASE_SLICE("iou_threshold")), &p->overlap);
  if (version >= 2) TRY(box_number_in(c, 3, &p->overlap));
  if (version >= 3) TRY(box_number_in(c, 4, &p->least));
  if (version == 5) {
    float sigma = 0;
    TRY(box_number_in(c, 5, &sigma));
    if (sigma != 0) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "soft_nms_sigma %g: only 0 works", (double)sigma);
  }
  if (p->boxes->rank != 2 || p->boxes->dims[1] != 4 || p->scores->rank != 1 || p->scores->count != p->boxes->dims[0])
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "boxes and scores are not [n, 4] and [n]");
  return p->most < 0 ? tfs_fail(c, XLAC_E_BAD_ARGUMENT, "%lld boxes can't be kept", (long long)p->most) : 0;
}

/* Each is compared with those kept so far, the last one first: neighbours in order are likely neighbours in space. */
static int box_choose(tfs_call *c, box_plan *p) {
  assert(!p->kept && p->n == 0);
  int64_t total = p->scores->count, n = 0;
  p->kept = base_malloc(c->alloc, (size_t)(total + 1) * sizeof *p->kept);
  if (!p->kept) return tfs_oom(c);
  for (int64_t i = 0; i < total; i++) {
    float score = (float)tfs_real_at(p->scores, i);
    if (score > p->least) p->kept[n++] = (box_candidate){score, i};
  }
  qsort(p->kept, (size_t)n, sizeof *p->kept, box_order);
  for (int64_t i = 0; i < n && p->n < p->most; i++) {
    bool free = true;
    for (int64_t k = p->n; k-- > 0 && free;) free = box_overlap(p->boxes, p->kept[i].box, p->kept[k].box) <= p->overlap;
    if (free) p->kept[p->n++] = p->kept[i];
  }
  return 0;
}

/* Outputs: places; from version 5 on scores; from version 4 on how many. */
static int box_give(tfs_call *c, const box_plan *p) {
  uint32_t version = (uint32_t)c->unit->host->arg, k = 1;
  int64_t size = version >= 4 && tfs_attr_bool(c, "pad_to_max_output_size") ? p->most : p->n;
  TRY(tfs_check_dims(c, 1, &size));
  interp_value *places = tfs_new_tensor(c->alloc, XLAC_S32, 1, &size);
  for (int64_t i = 0; places && i < size; i++) tfs_put_int(places, i, i < p->n ? p->kept[i].box : 0);
  TRY(tfs_give_tensor(c, 0, places));
  if (version == 5) {
    interp_value *scores = tfs_new_tensor(c->alloc, (base_dtype)p->scores->dtype, 1, &size);
    for (int64_t i = 0; scores && i < size; i++) tfs_put_real(scores, i, i < p->n ? (double)p->kept[i].score : 0);
    TRY(tfs_give_tensor(c, k++, scores));
  }
  return version >= 4 ? tfs_give_int(c, k, p->n) : 0;
}

/* NonMaxSuppression, arg: its version. */
int tfs_host_best_boxes(tfs_call *c) {
  box_plan p = {.n = 0};
  TRY(box_plan_of(c, &p));
  int status = box_choose(c, &p);
  if (status == 0) status = box_give(c, &p);
  base_free(c->alloc, p.kept);
  return status;
}

/* --- other picks --- */

/* DynamicPartition(data, partitions): the rows of each partition. Once over the ids for each partition: there are
 * few. */
int tfs_host_partition(tfs_call *c) {
  interp_value *v = NULL, *which = NULL;
  TRY(tfs_tensor_in(c, 0, &v));
  TRY(tfs_tensor_in(c, 1, &which));
  bool fits = which->rank <= v->rank && base_dtype_is_integer((base_dtype)which->dtype);
  for (uint32_t d = 0; fits && d < which->rank; d++) fits = which->dims[d] == v->dims[d];
  if (!fits) return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "the partitions' shape is not how the data's begins");
  int64_t dims[IR_MAX_RANK] = {0}, width = 1;
  uint32_t rank = v->rank - which->rank + 1;
  for (uint32_t d = 1; d < rank; d++) width *= dims[d] = v->dims[which->rank + d - 1];
  size_t bytes = (size_t)width * base_dtype_bytes((base_dtype)v->dtype);
  for (uint32_t k = 0; k < c->n_out; k++) {
    int64_t row = 0;
    dims[0] = 0;
    for (int64_t i = 0; i < which->count; i++) {
      int64_t id = tfs_int_at(which, i);
      if (id < 0 || id >= c->n_out) return tfs_fail(c, XLAC_E_BAD_ARGUMENT, "no partition %lld", (long long)id);
      dims[0] += id == k;
    }
    interp_value *out = tfs_new_tensor(c->alloc, (base_dtype)v->dtype, rank, dims);
    for (int64_t i = 0; out && i < which->count && bytes; i++)
      if (tfs_int_at(which, i) == k)
        memcpy((char *)out->data + (size_t)row++ * bytes, (char *)v->data + (size_t)i * bytes, bytes);
    TRY(tfs_give_tensor(c, k, out));
  }
  return 0;
}

/* Counts first, then writes. On failure what was made is the caller's to release. */
static int pick_hits(tfs_call *c, const interp_value *wanted, base_map *place, interp_value **rows,
                     interp_value **ids) {
  assert(wanted->rank == 2);
  int64_t width = wanted->dims[1], n = 0;
  uint64_t at = 0;
  for (int64_t i = 0; i < wanted->count; i++) n += base_map_get(place, (uint64_t)tfs_int_at(wanted, i), &at);
  *rows = tfs_new_tensor(c->alloc, XLAC_S32, 1, &n);
  *ids = tfs_new_tensor(c->alloc, XLAC_S64, 1, &n);
  if (!*rows || !*ids) return tfs_oom(c);
  n = 0;
  for (int64_t i = 0; i < wanted->count; i++) {
    if (!base_map_get(place, (uint64_t)tfs_int_at(wanted, i), &at)) continue;
    tfs_put_int(*rows, n, i / width);
    tfs_put_int(*ids, n++, (int64_t)at);
  }
  return 0;
}

/* ComputeAccidentalHits(true classes [batch, n], sampled candidates): where a sampled one is a true one. */
int tfs_host_accidental_hits(tfs_call *c) {
  interp_value *wanted = NULL, *sampled = NULL, *rows = NULL, *ids = NULL;
  base_map place;
  TRY(tfs_tensor_in(c, 0, &wanted));
  TRY(tfs_tensor_in(c, 1, &sampled));
  if (wanted->rank != 2 || sampled->rank != 1 || wanted->dtype != XLAC_S64 || sampled->dtype != XLAC_S64)
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "it takes a table and a list of 64-bit integers");
  base_map_init(&place, c->alloc);
  int status = 0;
  for (int64_t i = 0; i < sampled->count && status == 0; i++)
    if (!base_map_set(&place, (uint64_t)tfs_int_at(sampled, i), (uint64_t)i)) status = tfs_oom(c);
  if (status == 0) status = pick_hits(c, wanted, &place, &rows, &ids);
  base_map_free(&place);
  interp_value *weights = rows ? tfs_new_tensor(c->alloc, XLAC_F32, 1, rows->dims) : NULL;
  for (int64_t i = 0; weights && i < weights->count; i++) tfs_put_real(weights, i, -(double)FLT_MAX);
  if (status) {
    interp_release(rows);
    interp_release(ids);
    interp_release(weights);
    return status;
  }
  TRY(tfs_give_tensor(c, 0, rows));
  TRY(tfs_give_tensor(c, 1, ids));
  return tfs_give_tensor(c, 2, weights);
}

/* ListDiff(x, y): what of x is not in y, and where it was. A map of y's values; of x all that is not there, as
 * often as it is. */
int tfs_host_list_diff(tfs_call *c) {
  interp_value *x = NULL, *y = NULL;
  int64_t n = 0;
  uint64_t found = 0;
  base_map seen;
  base_dtype index = BASE_DTYPE_INVALID;
  TRY(tfs_tensor_in(c, 0, &x));
  TRY(tfs_tensor_in(c, 1, &y));
  TRY(tfs_index_type(c, 1, &index));
  if (x->rank != 1 || y->rank != 1 || x->dtype != y->dtype || !base_dtype_is_integer((base_dtype)x->dtype))
    return tfs_fail(c, XLAC_E_ARGUMENT_SHAPE, "it takes two lists of integers of one type");
  base_map_init(&seen, c->alloc);
  int status = 0;
  for (int64_t i = 0; i < y->count && status == 0; i++)
    if (!base_map_set(&seen, (uint64_t)tfs_int_at(y, i), 1)) status = tfs_oom(c);
  for (int64_t i = 0; i < x->count; i++) n += !base_map_get(&seen, (uint64_t)tfs_int_at(x, i), &found);
  interp_value *values = tfs_new_tensor(c->alloc, (base_dtype)x->dtype, 1, &n);
  interp_value *places = tfs_new_tensor(c->alloc, index, 1, &n);
  n = 0;
  for (int64_t i = 0; values && places && i < x->count; i++) {
    if (base_map_get(&seen, (uint64_t)tfs_int_at(x, i), &found)) continue;
    tfs_put_int(values, n, tfs_int_at(x, i));
    tfs_put_int(places, n++, i);
  }
  base_map_free(&seen);
  if (status) interp_release(values), interp_release(places);
  if (status) return status;
  TRY(tfs_give_tensor(c, 0, values));
  return tfs_give_tensor(c, 1, places);
}
