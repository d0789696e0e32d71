/* sort by comparators that are keys; others are for sort_body.c. Many rows: threads share the rows. Few long ones: each
 * is cut into parts that are sorted and then merged, piece by piece. The order of equal elements stays, so nothing
 * depends on how that is cut.
 *
 * Where nothing but slices near one end of the sorted rows is used, only these are made: the rest of the result's
 * memory is left as it was. Elements that may be among them are selected by the first key, then sorted. */
#include "sort.h"

#include "../../interp/algorithm/sort_keys.h"
#include "sort_body.h"

enum { SORT_LONG = 1 << 17, SORT_SLOTS = 16, SORT_PART = 1 << 15, SORT_RANGE = 1 << 15, SORT_PART_MOST = 1 << 22 };
/* What is worth a selection: one of this many elements in a row, in a long row, in rows of at least so many. */
enum { SORT_KEPT = 4, SORT_KEPT_LONG = 32, SORT_KEPT_ROW = 64 };

typedef struct sort_data {
  const cpu_sort_kind *kind;
  uint32_t n, n_keys;
  cpu_sort_key keys[CPU_SORT_KEYS];
  bool may_fail;                      /* where a NaN is met, `by` sorts */
  bool by_body;                       /* there are no keys */
  cpu_sort_body by;                   /* by the comparator itself */
  int64_t length, rows, inner, grain; /* inner: elements from one of a row to the next */
  int64_t kept;                       /* of a sorted row, so many are made: length, or fewer */
  bool kept_last;                     /* from its end */
  const uint8_t *bytes;               /* of each operand's elements */
} sort_data;

typedef struct sort_work {
  const sort_data *x;
  const cpu_routine_run *r;
  /* A long row: */
  int64_t at; /* its first element */
  const cpu_sort_key *key;
  char *from, *to;
  int64_t width, pieces; /* of the runs to merge; pieces a merge */
  int64_t *taken;        /* by part of `width`, for what is kept */
} sort_work;

static int64_t sort_row_at(const sort_data *x, int64_t row) {
  return row / x->inner * x->inner * x->length + row % x->inner;
}

static const char *sort_key_data(const sort_work *w, const cpu_sort_key *k, int64_t at, int64_t *stride) {
  int64_t bytes = w->x->bytes[k->operand];
  *stride = bytes * w->x->inner;
  return (const char *)w->r->in[k->operand] + at * bytes;
}

static uint32_t sort_width(const cpu_sort_key *k) {
  return 8 * (uint32_t)base_dtype_bytes((base_dtype)k->dtype);
}

/* --- many rows --- */

/* n of the row's elements that are at v, with their places, in order of all keys. */
static void sort_taken(const sort_work *w, int64_t at, int64_t n, bool encoded, char *v, char *spare) {
  const sort_data *x = w->x;
  int64_t stride = 0;
  for (uint32_t i = x->n_keys; i-- > 0; encoded = false) {
    const cpu_sort_key *k = &x->keys[i];
    const char *data = sort_key_data(w, k, at, &stride);
    if (!encoded) x->kind->encode_again(k, data, stride, n, v);
    x->kind->sort(v, spare, n, sort_width(k));
  }
}

/* What is kept of a row: the first or the last of the n sorted elements at v. */
static void sort_pick_kept(const sort_work *w, int64_t at, int64_t n, const char *v) {
  const sort_data *x = w->x;
  int64_t skipped = x->kept_last ? n - x->kept : 0, to = x->kept_last ? x->length - x->kept : 0;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t bytes = x->bytes[i], stride = bytes * x->inner;
    x->kind->pick(v + skipped * (int64_t)x->kind->bytes, x->kept, (size_t)bytes, (const char *)w->r->in[i] + at * bytes,
                  (char *)w->r->out[i] + at * bytes + to * stride, stride);
  }
}

/* Elements of the row from `first` on, of n, that may be kept: those whose first key is among the first or last. */
static int64_t sort_select(const sort_work *w, int64_t at, int64_t first, int64_t n, char *v) {
  const sort_data *x = w->x;
  cpu_sort_key key = x->keys[0];
  int64_t stride = 0;
  const char *data = sort_key_data(w, &key, at, &stride);
  key.descending ^= x->kept_last;
  return x->kind->select(&key, interp_min(x->kept, n), x->n_keys > 1 || x->kept_last, data, stride, first, n, v);
}

static void sort_row(const sort_work *w, int64_t at, char *v, char *spare) {
  const sort_data *x = w->x;
  int64_t n = x->length, stride = 0;
  if (x->kept < n) {
    n = sort_select(w, at, 0, n, v);
    sort_taken(w, at, n, x->n_keys == 1 && !x->kept_last, v, spare);
  } else {
    const cpu_sort_key *last = &x->keys[x->n_keys - 1];
    const char *data = sort_key_data(w, last, at, &stride);
    x->kind->encode(last, data, stride, 0, n, v);
    sort_taken(w, at, n, true, v, spare);
  }
  sort_pick_kept(w, at, n, v);
}

static void sort_rows(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  int64_t room = w->x->length * (int64_t)w->x->kind->bytes, slot = (int64_t)begin / w->x->grain;
  char *v = (char *)w->r->scratch + slot * 2 * room;
  for (size_t row = begin; row < end; row++) sort_row(w, sort_row_at(w->x, (int64_t)row), v, v + room);
}

/* --- one long row --- */

static void sort_encode_range(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  int64_t stride = 0;
  const char *data = sort_key_data(w, w->key, w->at, &stride);
  if (w->key == &w->x->keys[w->x->n_keys - 1])
    w->x->kind->encode(w->key, data, stride, (int64_t)begin, (int64_t)(end - begin),
                       w->from + begin * w->x->kind->bytes);
  else
    w->x->kind->encode_again(w->key, data, stride, (int64_t)(end - begin), w->from + begin * w->x->kind->bytes);
}

static void sort_part_range(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  for (size_t i = begin; i < end; i++) {
    int64_t first = (int64_t)i * w->width, n = interp_min(w->width, w->x->length - first);
    int64_t offset = first * (int64_t)w->x->kind->bytes;
    if (n > 0) w->x->kind->sort(w->from + offset, w->to + offset, n, sort_width(w->key));
  }
}

/* Merges of runs of `width`, each cut into pieces. */
static void sort_merge_range(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  int64_t bytes = (int64_t)w->x->kind->bytes;
  for (size_t i = begin; i < end; i++) {
    int64_t first = (int64_t)i / w->pieces * 2 * w->width, piece = (int64_t)i % w->pieces;
    int64_t na = interp_min(w->width, w->x->length - first), nb = interp_min(w->width, w->x->length - first - na);
    int64_t each = (na + nb + w->pieces - 1) / w->pieces;
    const char *a = w->from + first * bytes;
    w->x->kind->merge(a, na, a + na * bytes, nb, interp_min(piece * each, na + nb),
                      interp_min((piece + 1) * each, na + nb), w->to + first * bytes);
  }
}

static void sort_pick_range(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  const sort_data *x = w->x;
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t bytes = x->bytes[i], stride = bytes * x->inner;
    x->kind->pick(w->from + begin * x->kind->bytes, (int64_t)(end - begin), (size_t)bytes,
                  (const char *)w->r->in[i] + w->at * bytes,
                  (char *)w->r->out[i] + w->at * bytes + (int64_t)begin * stride, stride);
  }
}

static void sort_swap(sort_work *w) {
  char *swap = w->from;
  w->from = w->to;
  w->to = swap;
}

/* As many parts as threads: a part more is a merge more. Of very long rows some more, so that none takes long. */
static void sort_long_row(sort_work *w, rt_pool *pool) {
  const sort_data *x = w->x;
  int64_t parts = 1, threads = rt_pool_size(pool);
  while (x->length / parts > SORT_PART_MOST || (parts < threads && x->length / (2 * parts) >= SORT_PART)) parts *= 2;
  for (uint32_t i = x->n_keys; i-- > 0;) {
    w->key = &x->keys[i];
    rt_parallel_for(pool, (size_t)x->length, SORT_RANGE, sort_encode_range, w);
    w->width = (x->length + parts - 1) / parts;
    rt_parallel_for(pool, (size_t)parts, 1, sort_part_range, w);
    for (; w->width < x->length; w->width *= 2) {
      int64_t merges = (x->length + 2 * w->width - 1) / (2 * w->width);
      w->pieces = (4 * parts + merges - 1) / merges;
      rt_parallel_for(pool, (size_t)(merges * w->pieces), 1, sort_merge_range, w);
      sort_swap(w);
    }
  }
  rt_parallel_for(pool, (size_t)x->length, SORT_RANGE, sort_pick_range, w);
}

/* --- what is kept of a long row --- */

static void sort_select_range(void *ctx, size_t begin, size_t end) {
  const sort_work *w = ctx;
  for (size_t i = begin; i < end; i++) {
    int64_t first = (int64_t)i * w->width, n = interp_min(w->width, w->x->length - first);
    w->taken[i] = n > 0 ? sort_select(w, w->at, first, n, w->from + first * (int64_t)w->x->kind->bytes) : 0;
  }
}

/* Parts are selected from by themselves. What is taken from them stands one behind the other then, in order of place.
 */
static void sort_long_row_kept(sort_work *w, rt_pool *pool) {
  const sort_data *x = w->x;
  int64_t bytes = (int64_t)x->kind->bytes, taken[SORT_SLOTS], n = 0;
  int64_t parts = interp_clamp(rt_pool_size(pool), 1, SORT_SLOTS);
  w->taken = taken;
  w->width = (x->length + parts - 1) / parts;
  memset(taken, 0, sizeof taken); /* where the call is to stop, parts may be left out */
  rt_parallel_for(pool, (size_t)parts, 1, sort_select_range, w);
  if (rt_pool_stopping(pool)) return;
  for (int64_t i = 0; i < parts; n += taken[i++])
    memmove(w->from + n * bytes, w->from + i * w->width * bytes, (size_t)(taken[i] * bytes));
  sort_taken(w, w->at, n, false, w->from, w->to);
  sort_pick_kept(w, w->at, n, w->from);
}

/* --- the step --- */

static bool sort_meets_nan(const sort_data *x, const cpu_routine_run *r) {
  for (uint32_t i = 0; i < x->n_keys; i++)
    if (x->keys[i].no_nan &&
        interp_has_nan((base_dtype)x->keys[i].dtype, r->in[x->keys[i].operand], x->rows * x->length))
      return true;
  return false;
}

static int sort_run_step(const cpu_routine_run *r) {
  const sort_data *x = r->data;
  rt_pool *pool = r->run->exe->pool;
  if (x->by_body || (x->may_fail && sort_meets_nan(x, r))) {
    cpu_sort_body_run(&x->by, r);
    return 0;
  }
  sort_work w = {.x = x, .r = r};
  if (x->rows == 0 || x->length == 0 || x->kept == 0) return 0;
  if (x->length < SORT_LONG) {
    rt_parallel_for(pool, (size_t)x->rows, (size_t)x->grain, sort_rows, &w);
    return 0;
  }
  for (int64_t row = 0; row < x->rows; row++) {
    w.at = sort_row_at(x, row);
    w.from = r->scratch;
    w.to = w.from + x->length * (int64_t)x->kind->bytes;
    (x->kept < x->length ? sort_long_row_kept : sort_long_row)(&w, pool);
    if (rt_pool_stopping(pool)) break;
  }
  return 0;
}

/* --- preparing --- */

/* Widens [*low, *high) by what is used of the sorted dimension through the uses of op, which are slices, or results of
 * a tuple. False: something else uses it. */
static bool sort_used(const ir_op *op, int64_t dimension, int64_t *low, int64_t *high) {
  if (ir_root(op->parent) == op) return false;
  IR_FOR_USES(use, op) {
    const ir_op *user = use->user;
    const ir_attr *slice = user->opcode == IR_OP_SLICE ? ir_attr_find(user, IR_ATTR_SLICE) : NULL;
    if (slice) {
      const ir_slice_dim *d = &slice->v.slice->v[dimension];
      *low = interp_min(*low, d->start);
      *high = interp_max(*high, d->limit);
    } else if (user->opcode != IR_OP_GET_TUPLE_ELEMENT || !sort_used(user, dimension, low, high)) {
      return false;
    }
  }
  return true;
}

/* How much of each sorted row is to be made. */
static void sort_keep(const ir_op *op, sort_data *data) {
  int64_t low = data->length, high = 0;
  data->kept = data->length;
  if (!sort_used(op, ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0], &low, &high) || data->length < SORT_KEPT_ROW) return;
  int64_t first = high, last = low < high ? data->length - low : 0;
  int64_t kept = interp_min(first, last);
  if (kept > data->length / (data->length < SORT_LONG ? SORT_KEPT : SORT_KEPT_LONG)) return;
  data->kept = kept;
  data->kept_last = last < first;
}

static bool sort_is_plain(const ir_op *op, sort_data *data) {
  const ir_computation *c = op->called[0];
  const ir_type *t = ir_operand_type(op, 0);
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  if (c->n_params != 2 * op->n_operands || t->rank == 0 || list->n != 1) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *result = ir_is_tuple(op->type) ? op->type->elements[i] : op->type;
    uint8_t own = ir_operand_type(op, i)->dtype;
    if (c->params[2 * i]->type->dtype != own || c->params[2 * i + 1]->type->dtype != own || result->dtype != own)
      return false;
  }
  data->length = t->dims[list->v[0]];
  data->inner = 1;
  for (uint32_t d = (uint32_t)list->v[0] + 1; d < t->rank; d++) data->inner *= t->dims[d];
  data->rows = data->length ? t->count / data->length : 0;
  data->n = op->n_operands;
  data->n_keys = cpu_sort_keys_of(c, data->keys);
  return data->length < UINT32_MAX && ir_is_scalar(ir_root(c)->type) && ir_root(c)->type->dtype == XLAC_PRED;
}

static void sort_choose(sort_data *x, plan_routine *out) {
  x->kind = &cpu_sort_narrow;
  for (uint32_t i = 0; i < x->n_keys; i++) {
    if (sort_width(&x->keys[i]) > 32) x->kind = &cpu_sort_wide;
    x->may_fail = x->may_fail || x->keys[i].no_nan;
  }
  int64_t slots = 1;
  x->grain = 1;
  if (x->length < SORT_LONG && x->rows > 0) {
    x->grain = interp_max((x->rows + SORT_SLOTS - 1) / SORT_SLOTS, SORT_PART / 8 / interp_max(1, x->length));
    slots = (x->rows + x->grain - 1) / x->grain;
  }
  out->scratch_bytes = slots * 2 * x->length * (int64_t)x->kind->bytes;
}

/* Where the comparator is needed: *known is false if it can't be run. */
static int sort_prepare_body(cpu_prepare_run *x, sort_data *data, bool *known) {
  TRY(cpu_body_make(x->op->called[0], x->arena, &data->by.body, x->err));
  *known = data->by.body != NULL;
  if (!*known) return 0;
  data->by.n = data->n;
  data->by.bytes = data->bytes;
  data->by.kept = data->kept_last ? data->length : data->kept;
  int64_t bytes = cpu_sort_body_make(&data->by, data->length, data->rows, data->inner);
  if (bytes > x->out->scratch_bytes) x->out->scratch_bytes = bytes;
  return 0;
}

int cpu_prepare_sort(cpu_prepare_run *x) {
  sort_data *data = BASE_NEW(x->arena, sort_data);
  uint8_t *bytes = BASE_ARRAY(x->arena, uint8_t, (size_t)x->op->n_operands + 1);
  if (!data || !bytes) return base_oom(x->err, "a sort");
  if (!sort_is_plain(x->op, data)) return 0;
  for (uint32_t i = 0; i < data->n; i++) bytes[i] = (uint8_t)base_dtype_bytes(ir_operand_type(x->op, i)->dtype);
  data->bytes = bytes;
  bool known = true;
  data->by_body = data->n_keys == 0;
  sort_keep(x->op, data);
  if (!data->by_body) sort_choose(data, x->out);
  if (data->by_body || data->may_fail) TRY(sort_prepare_body(x, data, &known));
  if (!known) return 0;
  bool part = data->by_body ? data->by.kept < data->length : data->kept < data->length;
  x->out->name = part ? "partial-sort" : data->by_body ? "merge-sort" : "radix";
  x->data = data;
  x->out->work = (uint64_t)(data->rows * data->length) * 16;
  x->out->stoppable = true;
  x->code = sort_run_step;
  return 0;
}
