/* Shardings of sdy as XLA's, and the axes that XLA's tiles stand for. XLA says how many tiles each dimension has and
 * which devices have them: {devices=[2,4]<=[2,4]T(1,0)} or a list of devices. On <["x"=4, "y"=2]>, [{"y"}, {"x"}] is
 * {devices=[2,4]<=[4,2]T(1,0)}: the mesh in its own order, transposed into the order of the tiles. */
#include "../../text/text.h"
#include "round_trip.h"

/* Tiles as axes: where the sizes of the tiles and those of the device order are cut into the same pieces, each piece is
 * an axis. Device lists count as an order when they are one: sizes and strides that fill the devices. */

/* [8, 3] and [4, 6] have the common cut [4, 2, 3]; [2, 3] and [3, 2] have none, since 2 and 3 do not divide each
 * other. */
uint32_t trip_common_cut(uint32_t n, const int64_t *a, uint32_t k, const int64_t *b, int64_t *out) {
  uint32_t i = 0, j = 0, cut = 0;
  int64_t x = 1, y = 1;
  for (;;) {
    while (x == 1 && i < n) x = a[i++];
    while (y == 1 && j < k) y = b[j++];
    if (x == 1 && y == 1) return cut;
    int64_t common = x < y ? x : y;
    if (common <= 1 || x % common || y % common || cut == TRIP_MAX_AXES) return 0;
    out[cut++] = common;
    assert(x % common == 0 && y % common == 0);
    x /= common;
    y /= common;
  }
}

/* A device order: sizes major first, each with its place in the order of devices. */
typedef struct trip_order {
  uint32_t n;
  int64_t sizes[TRIP_MAX_AXES];
  int64_t strides[TRIP_MAX_AXES];
  uint32_t group[TRIP_MAX_AXES]; /* the dimension of the iota */
} trip_order;

/* <=[reshape]T(perm): dimension i of the tiles is dimension perm[i] of the iota. */
static void trip_order_from_iota(const ir_sharding *s, trip_order *o) {
  assert(s->n_reshape <= TRIP_MAX_AXES);
  o->n = s->n_reshape;
  for (uint32_t i = 0; i < o->n; i++) {
    o->group[i] = s->perm ? (uint32_t)s->perm[i] : i;
    o->sizes[i] = s->reshape[o->group[i]];
  }
}

/* The list's runs of equal steps, minor first; false: it has others. */
static bool trip_order_runs(const ir_sharding *s, trip_order *o) {
  uint32_t span = 1; /* of what is known: the first `span` entries */
  o->n = 0;
  if (s->devices[0] != 0) return false;
  while (span < s->n_devices) {
    int64_t step = s->devices[span], count = 1;
    while (span * (uint64_t)count < s->n_devices && s->devices[span * (uint64_t)count] == step * count) count++;
    while (count > 1 && s->n_devices % (span * (uint64_t)count)) count--;
    if (step <= 0 || count < 2 || o->n == TRIP_MAX_AXES) return false;
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
static bool trip_order_from_list(const ir_sharding *s, trip_order *o) {
  if (s->n_devices == 0 || !trip_order_runs(s, o)) return false;
  for (uint32_t i = 0; i < o->n / 2; i++) {
    uint32_t j = o->n - 1 - i;
    /* From minor-first to major-first. */
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
static void trip_tiles_sort(trip_tiles *t) {
  for (uint32_t i = 1; i < t->n; i++)
    for (uint32_t j = i; j > 0; j--) {
      bool before =
          t->v[j].group != t->v[j - 1].group ? t->v[j].group < t->v[j - 1].group : t->v[j].dim < t->v[j - 1].dim;
      if (!before) break;
      trip_tiles one = {.n = 1};
      one.v[0] = t->v[j];
      t->v[j] = t->v[j - 1];
      t->v[j - 1] = one.v[0];
    }
}

/* {devices=[4,1,2]<=[2,4]T(1,0)}: pieces of size 4 and 2 in the order of tiles, and group says from which dimension
 * of the iota each comes: the 4 from dimension 1, the 2 from dimension 0. */
bool trip_analyze(const ir_sharding *s, trip_tiles *out) {
  /* V2 strings name the order of devices as an iota that is reshaped and transposed; V1 lists are recognised as such.
   */
  trip_order order = {.n = 0};
  int64_t cut[TRIP_MAX_AXES];
  if (s->n_dims == 0 || s->n_dims > TRIP_MAX_AXES || s->n_reshape > TRIP_MAX_AXES) return false;
  if (s->iota)
    trip_order_from_iota(s, &order);
  else if (!trip_order_from_list(s, &order))
    return false;
  uint32_t n = trip_common_cut(s->n_dims, s->dims, order.n, order.sizes, cut);
  /* From the minor end: which dimension and which device run each piece belongs to, moving on where one is used up. */
  uint32_t dim = s->n_dims - 1, part = 0, place = order.n;
  int64_t tile = 1, devices = 1;
  out->n = n;
  for (uint32_t i = n; i-- > 0;) {
    while (dim > 0 && s->dims[dim] == 1) dim--;
    assert(place > 0 && dim < s->n_dims);
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
  trip_tiles_sort(out);
  return n > 0;
}

/* Shardings in XLA's words. */

/* The mesh's axes, cut wherever an axis that the sharding names begins or ends. */
typedef struct trip_pieces {
  uint32_t n;
  struct {
    sdy_axis axis; /* its part, as pre and size */
    uint8_t kind;  /* 0: replicated, else what it does */
  } v[TRIP_MAX_AXES];
  uint32_t order[TRIP_MAX_AXES]; /* places in v, as the tiles have them */
  uint32_t n_order;
} trip_pieces;
enum { TRIP_REPLICATED, TRIP_DIM, TRIP_MANUAL, TRIP_UNREDUCED };

/* Inserts a cut into the ascending list. false: too many. */
static bool trip_cut_at(int64_t *cuts, uint32_t *n, int64_t at) {
  uint32_t i = *n;
  for (uint32_t k = 0; k < *n; k++)
    if (cuts[k] == at) return true;
  if (*n == TRIP_MAX_AXES) return false;
  for (; i > 0 && cuts[i - 1] > at; i--) cuts[i] = cuts[i - 1];
  cuts[i] = at;
  ++*n;
  return true;
}

/* Cuts at both ends of the parts of `axis` that the list names. */
static bool trip_cut_list(sdy_axes list, const sdy_mesh_axis *axis, const sdy_mesh *mesh, int64_t *cuts, uint32_t *n) {
  for (uint32_t i = 0; i < list.n; i++) {
    if (!sdy_name_equal(list.v[i].name, axis->name)) continue;
    if (!trip_cut_at(cuts, n, sdy_axis_pre(list.v[i])) || !trip_cut_at(cuts, n, sdy_axis_end(list.v[i], mesh)))
      return false;
  }
  return true;
}

/* The mesh's axes, cut wherever an axis that the sharding names begins or ends; all replicated at first. */
static bool trip_cut_mesh(const sdy_sharding *s, const sdy_mesh *mesh, trip_pieces *p) {
  p->n = 0;
  for (uint32_t a = 0; a < mesh->n_axes; a++) {
    const sdy_mesh_axis *axis = &mesh->axes[a];
    int64_t cuts[TRIP_MAX_AXES] = {1};
    uint32_t n = 1;
    bool ok = trip_cut_at(cuts, &n, axis->size) && trip_cut_list(s->unreduced, axis, mesh, cuts, &n);
    for (uint32_t d = 0; ok && d < s->n_dims; d++) ok = trip_cut_list(s->dims[d].axes, axis, mesh, cuts, &n);
    if (!ok || p->n + n > TRIP_MAX_AXES) return false;
    for (uint32_t i = 0; i + 1 < n; i++) {
      p->v[p->n].axis = (sdy_axis){axis->name, cuts[i], cuts[i + 1] / cuts[i]};
      assert(cuts[i + 1] > cuts[i]);
      p->v[p->n++].kind = TRIP_REPLICATED;
    }
  }
  return true;
}

/* Takes the pieces of an axis; their product. */
static int64_t trip_take(trip_pieces *p, const base_istr *name, int64_t pre, int64_t end, uint8_t kind) {
  int64_t size = 1;
  for (uint32_t i = 0; i < p->n; i++) {
    sdy_axis a = p->v[i].axis;
    if (!sdy_name_equal(a.name, name) || a.pre < pre || a.pre * a.size > end || p->v[i].kind != TRIP_REPLICATED)
      continue;
    p->v[i].kind = kind;
    assert(p->n_order < TRIP_MAX_AXES);
    p->order[p->n_order++] = i;
    size *= a.size;
  }
  return size;
}

/* The pieces of all axes of a list, in its order; their product. */
static int64_t trip_take_list(trip_pieces *p, sdy_axes list, const sdy_mesh *mesh, uint8_t kind) {
  int64_t size = 1;
  for (uint32_t i = 0; i < list.n; i++)
    size *= trip_take(p, list.v[i].name, sdy_axis_pre(list.v[i]), sdy_axis_end(list.v[i], mesh), kind);
  return size;
}

/* What is left is replicated. */
static int64_t trip_take_rest(trip_pieces *p) {
  int64_t size = 1;
  for (uint32_t i = 0; i < p->n; i++) {
    if (p->v[i].kind != TRIP_REPLICATED) continue;
    p->order[p->n_order++] = i;
    size *= p->v[i].axis.size;
  }
  return size;
}

/* --- text --- */

/* Numbers with commas. */
static void trip_put_i64s(base_text *o, const int64_t *v, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) base_putf(o, i ? ",%lld" : "%lld", (long long)v[i]);
}

/* <=[sizes]T(order), or the devices one by one. */
static void trip_put_devices(base_text *o, const sdy_mesh *mesh, const trip_pieces *p) {
  int64_t sizes[TRIP_MAX_AXES], order[TRIP_MAX_AXES], strides[TRIP_MAX_AXES], at[TRIP_MAX_AXES] = {0};
  int64_t stride = 1, total = 1;
  for (uint32_t i = p->n; i-- > 0; stride *= sizes[i]) {
    sizes[i] = p->v[i].axis.size;
    strides[i] = stride;
    total *= sizes[i];
  }
  for (uint32_t i = 0; i < p->n; i++) order[i] = p->order[i];
  if (mesh->n_ids == 0) {
    BASE_PUT(o, "<=[");
    trip_put_i64s(o, sizes, p->n);
    base_putc(o, ']');
    if (p->n == 1) return;
    BASE_PUT(o, "T(");
    trip_put_i64s(o, order, p->n);
    base_putc(o, ')');
    return;
  }
  for (int64_t k = 0; k < total; k++) {
    int64_t place = 0;
    for (uint32_t i = 0; i < p->n; i++) place += at[i] * strides[order[i]];
    base_putf(o, k ? ",%lld" : "%lld", (long long)mesh->ids[place]);
    for (uint32_t i = p->n; i-- > 0;) {
      if (++at[i] < sizes[order[i]]) break;
      at[i] = 0;
    }
  }
}

/* sizes: of the manual, unreduced and replicated parts, which are the last tile dimensions. */
static void trip_put_kinds(base_text *o, const int64_t *sizes) {
  static const char *const words[] = {"manual", "unreduced", "replicated"};
  bool first = true;
  for (uint32_t i = 0; i < 3; i++) {
    if (sizes[i] == 1) continue;
    base_puts(o, first ? " last_tile_dims={" : ", ");
    base_puts(o, words[i]);
    first = false;
  }
  if (!first) base_putc(o, '}');
}

/* Tiles by dimension, then the sizes of what is manual, unreduced and replicated. Where one of these is all devices a
 * word says it. */
static void trip_put_tiled(base_text *o, const sdy_sharding *s, const sdy_mesh *mesh, const sdy_names *manual,
                           trip_pieces *p) {
  static const char *const whole[] = {"{manual}", "{unreduced}", "{replicated}"};
  int64_t kinds[3] = {1, 1, 1}, all = sdy_mesh_size(mesh);
  p->n_order = 0;
  BASE_PUT(o, "{devices=[");
  size_t start = o->n;
  for (uint32_t d = 0; d < s->n_dims; d++)
    base_putf(o, d ? ",%lld" : "%lld", (long long)trip_take_list(p, s->dims[d].axes, mesh, TRIP_DIM));
  for (uint32_t i = 0; manual && i < manual->n; i++) kinds[0] *= trip_take(p, manual->v[i], 1, INT64_MAX, TRIP_MANUAL);
  kinds[1] = trip_take_list(p, s->unreduced, mesh, TRIP_UNREDUCED);
  kinds[2] = trip_take_rest(p);
  for (uint32_t i = 0; i < 3; i++) {
    if (kinds[i] == all || (i == 2 && all == 1)) {
      o->n = start - strlen("{devices=[");
      base_puts(o, whole[i]);
      return;
    }
    if (kinds[i] > 1) base_putf(o, o->n > start ? ",%lld" : "%lld", (long long)kinds[i]);
  }
  base_putc(o, ']');
  trip_put_devices(o, mesh, p);
  trip_put_kinds(o, kinds);
  base_putc(o, '}');
}

/* A maximal mesh is one device; a mesh without axes, or none, shards nothing. false: more pieces than there is room
 * for. */
static bool trip_put_sharding(base_text *o, const ir_module *m, const sdy_sharding *s, const sdy_names *manual) {
  const sdy_mesh *mesh = sdy_mesh_of(m, s);
  trip_pieces pieces;
  if (!mesh || mesh->n_axes == 0) {
    if (mesh && mesh->n_ids)
      base_putf(o, "{maximal device=%lld}", (long long)mesh->ids[0]);
    else
      BASE_PUT(o, "{replicated}");
    return true;
  }
  if (manual && manual->n == mesh->n_axes) {
    BASE_PUT(o, "{manual}");
    return true;
  }
  if (!trip_cut_mesh(s, mesh, &pieces)) return false;
  trip_put_tiled(o, s, mesh, manual, &pieces);
  return true;
}

/* XLA's normal form of a text.
 * Parsed and printed again, so that equal shardings have equal text (iota forms are preferred to lists). */
static const ir_mattr *trip_normal(ir_module *m, const base_text *text) {
  const ir_sharding *s = NULL;
  xlac_error ignored = {0};
  if (text->failed || text_parse_sharding(m, text->s, text->n, &s, &ignored) != 0) return NULL;
  base_text out;
  base_text_init(&out, m->alloc);
  text_put_sharding(&out, s, false);
  const ir_mattr *made = out.failed ? NULL : ir_m_string(m, out.s, out.n);
  base_text_free(&out);
  return made;
}

const ir_mattr *trip_to_hlo(ir_module *m, const sdy_sharding *s, const sdy_names *manual) {
  base_text text;
  base_text_init(&text, m->alloc);
  const ir_mattr *made = trip_put_sharding(&text, m, s, manual) ? trip_normal(m, &text) : NULL;
  base_text_free(&text);
  return made;
}

/* Several results are a tuple sharding, {{...}, {...}}. */
const ir_mattr *trip_list_to_hlo(ir_module *m, const sdy_shardings *list, const sdy_names *manual) {
  base_text text;
  bool ok = true;
  if (list->n == 1) return trip_to_hlo(m, list->v[0], manual);
  base_text_init(&text, m->alloc);
  base_putc(&text, '{');
  for (uint32_t i = 0; ok && i < list->n; i++) {
    if (i) BASE_PUT(&text, ", ");
    ok = trip_put_sharding(&text, m, list->v[i], manual);
  }
  base_putc(&text, '}');
  const ir_mattr *made = ok ? trip_normal(m, &text) : NULL;
  base_text_free(&text);
  return made;
}
