/* Tiles as axes: where the sizes of the tiles and those of the device order are cut into the same pieces, each piece is
 * an axis. Device lists count as an order when they are one: sizes and strides that fill the devices. */
#include "round_trip.h"

uint32_t rt_common_cut(uint32_t n, const int64_t *a, uint32_t k, const int64_t *b, int64_t *out) {
  uint32_t i = 0, j = 0, cut = 0;
  int64_t x = 1, y = 1;
  for (;;) {
    while (x == 1 && i < n) x = a[i++];
    while (y == 1 && j < k) y = b[j++];
    if (x == 1 && y == 1) return cut;
    int64_t common = x < y ? x : y;
    if (common <= 1 || x % common || y % common || cut == RT_MAX_AXES) return 0;
    out[cut++] = common;
    x /= common;
    y /= common;
  }
}

/* A device order: sizes major first, each with its place in the order of devices. */
typedef struct rt_order {
  uint32_t n;
  int64_t sizes[RT_MAX_AXES];
  int64_t strides[RT_MAX_AXES];
  uint32_t group[RT_MAX_AXES]; /* the dimension of the iota */
} rt_order;

static void rt_order_from_iota(const ir_sharding *s, rt_order *o) {
  o->n = s->n_reshape;
  for (uint32_t i = 0; i < o->n; i++) {
    o->group[i] = s->perm ? (uint32_t)s->perm[i] : i;
    o->sizes[i] = s->reshape[o->group[i]];
  }
}

/* The list's runs of equal steps, minor first; false: it has others. */
static bool rt_order_runs(const ir_sharding *s, rt_order *o) {
  uint32_t span = 1; /* of what is known: the first `span` entries */
  o->n = 0;
  if (s->devices[0] != 0) return false;
  while (span < s->n_devices) {
    int64_t step = s->devices[span], count = 1;
    while (span * (uint64_t)count < s->n_devices && s->devices[span * (uint64_t)count] == step * count) count++;
    while (count > 1 && s->n_devices % (span * (uint64_t)count)) count--;
    if (step <= 0 || count < 2 || o->n == RT_MAX_AXES) return false;
    o->sizes[o->n] = count;
    o->strides[o->n++] = step;
    span *= (uint32_t)count;
  }
  for (uint32_t i = 0; i < s->n_devices; i++) { /* every entry is what the runs say */
    int64_t expected = 0;
    uint32_t rest = i;
    for (uint32_t k = 0; k < o->n; rest /= (uint32_t)o->sizes[k++]) expected += rest % o->sizes[k] * o->strides[k];
    if (s->devices[i] != expected) return false;
  }
  return true;
}

/* The runs by their strides, the largest first, must fill all devices. */
static bool rt_order_from_list(const ir_sharding *s, rt_order *o) {
  if (s->n_devices == 0 || !rt_order_runs(s, o)) return false;
  for (uint32_t i = 0; i < o->n / 2; i++) {
    uint32_t j = o->n - 1 - i;
    int64_t size = o->sizes[i], stride = o->strides[i];
    o->sizes[i] = o->sizes[j];
    o->strides[i] = o->strides[j];
    o->sizes[j] = size;
    o->strides[j] = stride;
  }
  for (uint32_t i = 0; i < o->n; i++) {
    int64_t below = 1;
    o->group[i] = 0;
    for (uint32_t j = 0; j < o->n; j++) {
      if (o->strides[j] > o->strides[i]) o->group[i]++;
      if (o->strides[j] < o->strides[i]) below *= o->sizes[j];
    }
    if (o->strides[i] != below) return false;
  }
  return true;
}

/* In the order of devices. Few: insertion. */
static void rt_tiles_sort(rt_tiles *t) {
  for (uint32_t i = 1; i < t->n; i++)
    for (uint32_t j = i; j > 0; j--) {
      bool before =
          t->v[j].group != t->v[j - 1].group ? t->v[j].group < t->v[j - 1].group : t->v[j].dim < t->v[j - 1].dim;
      if (!before) break;
      rt_tiles one = {.n = 1};
      one.v[0] = t->v[j];
      t->v[j] = t->v[j - 1];
      t->v[j - 1] = one.v[0];
    }
}

bool rt_analyze(const ir_sharding *s, rt_tiles *out) {
  rt_order order = {.n = 0};
  int64_t cut[RT_MAX_AXES];
  if (s->n_dims == 0 || s->n_dims > RT_MAX_AXES || s->n_reshape > RT_MAX_AXES) return false;
  if (s->iota)
    rt_order_from_iota(s, &order);
  else if (!rt_order_from_list(s, &order))
    return false;
  uint32_t n = rt_common_cut(s->n_dims, s->dims, order.n, order.sizes, cut);
  uint32_t dim = s->n_dims - 1, part = 0, place = order.n;
  int64_t tile = 1, devices = 1;
  out->n = n;
  for (uint32_t i = n; i-- > 0;) {
    while (dim > 0 && s->dims[dim] == 1) dim--;
    while (place > 1 && order.sizes[place - 1] == 1) place--;
    out->v[i].dim = dim;
    out->v[i].part = part++;
    out->v[i].group = order.group[place - 1];
    out->v[i].size = cut[i];
    tile *= cut[i];
    devices *= cut[i];
    if (s->dims[dim] == tile) {
      dim -= dim > 0;
      tile = 1;
      part = 0;
    }
    if (order.sizes[place - 1] == devices) {
      place -= place > 1;
      devices = 1;
    }
  }
  /* Within a dimension of the iota, a piece that is more minor there comes later. */
  rt_tiles_sort(out);
  return n > 0;
}
