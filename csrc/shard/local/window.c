/* What a device needs of a dimension that is sharded, when that is not its own shard: slices, paddings, windows and
 * the like. Devices send each other the edges of their shards, or whole shards, where every device needs parts of a few
 * that follow one another; else they gather the dimension. On 4 devices, 8 elements, windows of 3 around each:
 *    shards    [0 1] [2 3] [4 5] [6 7]
 *    fetched   [. 0 1 2] [1 2 3 4] [3 4 5 6] [5 6 7 .]     two permutations, of one element each
 * A dimension's places count its shards. Elements are counted over the whole dimension. */
#include "local.h"

/* What each place gets: `width` elements from starts[place] on, of which the first counts[place] matter. */
typedef struct locwin {
  local_pass *p;
  ir_op *op;
  const sdy_mesh *mesh;
  sdy_axes axes;
  uint32_t dim;
  int64_t size, shard, n; /* elements of the dimension, of a shard; places */
  int64_t width, *starts, *counts;
  int64_t *low, *offsets; /* the first shard of those that a place looks at; where its elements begin in them */
  int64_t most;           /* so many shards at the most */
} locwin;

static int64_t locwin_floor(int64_t a, int64_t b) {
  assert(b > 0);
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* For dimension d of a value that was f, whose shards are of `shard` elements now. false: out of memory. */
static bool locwin_begin(locwin *x, local_pass *p, ir_op *op, const local_fact *f, uint32_t d, int64_t shard) {
  *x = (locwin){.p = p, .op = op, .mesh = sdy_mesh_of(p->rw.m, f->s), .axes = local_axes(f->s, d), .dim = d};
  x->size = f->type->dims[d];
  x->shard = shard;
  x->n = sdy_axes_size(x->axes, x->mesh);
  int64_t *room = BASE_ARRAY(&p->rw.arena, int64_t, 4 * (size_t)x->n);
  p->rw.failed = p->rw.failed || !room;
  if (!room) return false;
  memset(room, 0, 4 * (size_t)x->n * sizeof *room);
  x->starts = room, x->counts = room + x->n, x->low = room + 2 * x->n, x->offsets = room + 3 * x->n;
  return true;
}

/* Leaves a mark for who wants to know what moves: along which axes, and for which op. */
static ir_value locwin_mark(locwin *x, ir_value v) {
  ir_module *m = x->p->rw.m;
  const char *name = ir_opcode_info(x->op->opcode)->mlir->name;
  sdy_axes *axes = base_arena_memdup(&m->arena, &x->axes, sizeof x->axes);
  opt_set(&x->p->rw, v, LOCAL_WITHIN, ir_m_string(m, name, (uint32_t)strlen(name)));
  opt_set(&x->p->rw, v, LOCAL_ALONG, axes ? sdy_attr(m, SDY_AXES, axes) : NULL);
  return v;
}

/* By device what `table` says by place. */
static ir_value locwin_look_up(locwin *x, const int64_t *table) {
  local_pass *p = x->p;
  uint32_t n = 0;
  const int64_t *places = local_shard_indices(p, x->op, x->mesh, x->axes, &n);
  int64_t *v = places ? BASE_ARRAY(&p->rw.arena, int64_t, (size_t)n + 1) : NULL;
  p->rw.failed = p->rw.failed || !v;
  if (!v) return (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) v[i] = table[places[i]];
  return local_look_up(p, local_device(p), n, v);
}

static ir_value locwin_part(locwin *x, ir_value v, int64_t from, int64_t to) {
  const ir_type *t = opt_type(v);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK];
  if (!t || (from == 0 && to == t->dims[x->dim])) return v;
  for (uint32_t d = 0; d < t->rank; d++) strides[d] = 1, limits[d] = t->dims[d];
  starts[x->dim] = from;
  limits[x->dim] = to;
  return opt_slice(&x->p->rw, v, starts, limits, strides);
}

/* v's elements from offsets[place] on, where the first and last ones may be out of it. */
static ir_value locwin_cut(locwin *x, ir_value v) {
  opt_rewriter *rw = &x->p->rw;
  const ir_type *t = opt_type(v);
  if (!t) return v;
  int64_t least = INT64_MAX, most = INT64_MIN, edges[3][IR_MAX_RANK] = {{0}}, dims[IR_MAX_RANK] = {0};
  for (int64_t i = 0; i < x->n; i++) {
    if (x->counts[i] == 0) continue;
    if (x->offsets[i] < least) least = x->offsets[i];
    if (x->offsets[i] > most) most = x->offsets[i];
  }
  if (least > most) least = most = 0;
  local_copy(dims, t->dims, t->rank);
  edges[0][x->dim] = least < 0 ? -least : 0;
  edges[1][x->dim] = most + x->width > t->dims[x->dim] ? most + x->width - t->dims[x->dim] : 0;
  dims[x->dim] += edges[0][x->dim] + edges[1][x->dim];
  if (dims[x->dim] != t->dims[x->dim]) {
    ir_value both[] = {v, opt_splat(rw, opt_tensor(rw, (base_dtype)t->dtype, 0, NULL), 0)};
    v = opt_make(rw, IR_OP_PAD, local_shape(x->p, t, t->rank, dims), 2, both);
    opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, t->rank, edges[0]));
    opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, t->rank, edges[1]));
    opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, t->rank, edges[2]));
  }
  if (least == most) return locwin_part(x, v, least + edges[0][x->dim], least + edges[0][x->dim] + x->width);
  for (int64_t i = 0; i < x->n; i++) x->offsets[i] = x->counts[i] ? x->offsets[i] + edges[0][x->dim] : 0;
  ir_value all[IR_MAX_RANK + 1] = {v};
  for (uint32_t d = 0; d < t->rank; d++)
    all[d + 1] = d == x->dim ? locwin_look_up(x, x->offsets) : local_scalar(x->p, XLAC_S64, 0);
  dims[x->dim] = x->width;
  v = opt_make(rw, IR_OP_DYNAMIC_SLICE, local_shape(x->p, t, t->rank, dims), t->rank + 1, all);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, t->rank, dims));
  return v;
}

/* --- from other devices --- */

/* Whether place i has a use for shard low + k, and there is one. */
static bool locwin_takes(const locwin *x, int64_t i, int64_t k) {
  int64_t from = x->low[i] + k;
  return x->counts[i] && from >= 0 && from < x->n && from * x->shard < x->starts[i] + x->counts[i];
}

/* Whether no shard k is to go to two places, which a permutation can't do; *moves: it goes anywhere at all. */
static bool locwin_is_permutation(const locwin *x, int64_t k, bool *moves) {
  *moves = false;
  for (int64_t i = 0; i < x->n; i++) {
    if (!locwin_takes(x, i, k)) continue;
    *moves = *moves || x->low[i] + k != i;
    for (int64_t j = 0; j < i; j++)
      if (locwin_takes(x, j, k) && x->low[j] == x->low[i]) return false;
  }
  return true;
}

/* Which elements of shard k any place needs: the first place's need not begin at its beginning, the last one's end at
 * its end. */
static void locwin_edges(const locwin *x, int64_t k, int64_t *from, int64_t *to) {
  *from = x->shard, *to = 0;
  for (int64_t i = 0; i < x->n; i++) {
    if (x->counts[i] == 0) continue;
    int64_t begin = x->starts[i] - (x->low[i] + k) * x->shard, end = begin + x->counts[i];
    if (begin < *from) *from = begin;
    if (end > *to) *to = end;
  }
  if (*from < 0 || k > 0) *from = 0;
  if (*to > x->shard || k + 1 < x->most) *to = x->shard;
}

/* Shard low + k of the dimension, or its part. */
static ir_value locwin_receive(locwin *x, ir_value v, int64_t k) {
  opt_rewriter *rw = &x->p->rw;
  uint32_t n = 0;
  const int64_t *ranks = local_ranks(x->p, x->op, x->mesh, x->axes, &n);
  int64_t *device = ranks ? BASE_ARRAY(&rw->arena, int64_t, 3 * (size_t)n + 1) : NULL, others = n / x->n, pairs = 0;
  rw->failed = rw->failed || !device;
  if (!device) return (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) device[ranks[i]] = i;
  int64_t *list = device + n;
  for (uint32_t i = 0; i < n; i++) {
    int64_t place = ranks[i] / others;
    if (!locwin_takes(x, place, k)) continue;
    list[2 * pairs] = device[(x->low[place] + k) * others + ranks[i] % others];
    list[2 * pairs++ + 1] = i;
  }
  int64_t dims[] = {pairs, 2};
  ir_value made = opt_make(rw, IR_OP_COLLECTIVE_PERMUTE, opt_type(v), 1, &v);
  opt_set(rw, made, "source_target_pairs", ir_m_dense_i64(rw->m, 2, dims, list));
  opt_set(rw, made, "channel_handle", local_channel(x->p));
  return locwin_mark(x, made);
}

/* How many elements the permutations send; -1: there are none that do it. */
static int64_t locwin_sent(const locwin *x) {
  int64_t sent = 0;
  for (int64_t k = 0; k < x->most; k++) {
    int64_t from, to;
    bool moves;
    if (k > x->n || !locwin_is_permutation(x, k, &moves)) return -1;
    locwin_edges(x, k, &from, &to);
    if (moves) sent += to - from;
  }
  return sent;
}

/* Which shards places look at, as many each: from that of their first element on, or, where two places would have the
 * same one, all as far from their own. What locwin_sent says of that. */
static int64_t locwin_plan(locwin *x) {
  int64_t sent = -1, least = x->n;
  for (int round = 0; round < 2 && sent < 0; round++) {
    x->most = 0;
    for (int64_t i = 0; i < x->n; i++) {
      if (x->counts[i] == 0) continue;
      x->low[i] = round ? i + least : locwin_floor(x->starts[i], x->shard);
      int64_t last = locwin_floor(x->starts[i] + x->counts[i] - 1, x->shard);
      if (last - x->low[i] + 1 > x->most) x->most = last - x->low[i] + 1;
    }
    for (int64_t i = 0; i < x->n; i++)
      if (x->counts[i] && x->low[i] - i < least) least = x->low[i] - i;
    sent = locwin_sent(x);
  }
  return sent;
}

/* Whether some place has a use for elements from past either end of the dimension, among the n from `at` on of what it
 * gets; without those that the permutation of shards k leaves zero, where k is not negative. */
static bool locwin_is_past(const locwin *x, int64_t at, int64_t n, int64_t k) {
  for (int64_t i = 0; i < x->n; i++) {
    int64_t end = at + n < x->counts[i] ? at + n : x->counts[i], from = x->low[i] + k;
    bool zero = k >= 0 && (from < 0 || from >= x->n);
    if (at < end && !zero && (x->starts[i] + at < 0 || x->starts[i] + end > x->size)) return true;
  }
  return false;
}

static bool locwin_is_zero(ir_value v) {
  static const char zero[16] = {0};
  const void *element = opt_uniform(v);
  size_t bytes = element ? base_dtype_bytes((base_dtype)opt_type(v)->dtype) : 0;
  return bytes > 0 && bytes <= sizeof zero && memcmp(element, zero, bytes) == 0;
}

/* Part k, the n elements from `at` on of what places get, with `fill` past the ends of the dimension. */
static ir_value locwin_fill(locwin *x, ir_value part, int64_t at, int64_t n, int64_t k, bool moves, ir_value fill) {
  bool zeros = moves && locwin_is_zero(fill);
  int64_t *table = BASE_ARRAY(&x->p->rw.arena, int64_t, (size_t)x->n);
  x->p->rw.failed = x->p->rw.failed || !table;
  if (!table || !locwin_is_past(x, at, n, zeros ? k : -1)) return part;
  for (int64_t i = 0; i < x->n; i++) table[i] = x->starts[i] + at;
  return local_mask(x->p, part, x->dim, locwin_look_up(x, table), 0, x->size, fill);
}

/* Whether the parts, which begin with element `first` of places' first shards, are just what places get. */
static bool locwin_fits(locwin *x, int64_t first, int64_t size) {
  bool fits = size == x->width;
  for (int64_t i = 0; i < x->n; i++) {
    x->offsets[i] = x->starts[i] - x->low[i] * x->shard - first;
    fits = fits && (x->counts[i] == 0 || x->offsets[i] == 0);
  }
  return fits;
}

/* v, with what else places look at on both sides. *filled: what is past the ends has been, too, in the parts that were
 * received: a mask of all would go through the shard again. */
static ir_value locwin_exchange(locwin *x, ir_value v, ir_value fill, bool *filled) {
  opt_rewriter *rw = &x->p->rw;
  const ir_type *t = opt_type(v);
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)x->most + 1);
  int64_t dims[IR_MAX_RANK] = {0}, first = 0;
  uint32_t n = 0;
  rw->failed = rw->failed || !parts;
  if (!parts || !t) return (ir_value){NULL, 0};
  local_copy(dims, t->dims, t->rank);
  dims[x->dim] = 0;
  for (int64_t k = 0; k < x->most; k++) {
    int64_t from, to;
    locwin_edges(x, k, &from, &to);
    assert(from <= to);
    if (k == 0) first = from;
    dims[x->dim] += to - from;
  }
  *filled = locwin_fits(x, first, dims[x->dim]);
  for (int64_t k = 0, at = 0; k < x->most; k++) {
    int64_t from, to;
    bool moves;
    (void)locwin_is_permutation(x, k, &moves);
    locwin_edges(x, k, &from, &to);
    moves = moves && from < to;
    parts[n] = locwin_part(x, v, from, to);
    if (moves) parts[n] = locwin_receive(x, parts[n], k);
    if (*filled && fill.op) parts[n] = locwin_fill(x, parts[n], at, to - from, k, moves, fill);
    n++;
    at += to - from;
  }
  if (n == 0) return v;
  return n == 1 ? parts[0] : opt_concatenate(rw, n, parts, x->dim, local_shape(x->p, t, t->rank, dims));
}

/* fill: a scalar for what matters past either end of the dimension; its op is NULL where nothing there matters. */
static ir_value locwin_fetch(locwin *x, ir_value v, ir_value fill) {
  bool filled = false;
  int64_t sent = locwin_plan(x);
  assert(x->width > 0 && x->shard > 0);
  if (sent < 0 || (sent > 0 && sent >= (x->n - 1) * x->shard)) {
    sdy_axes lists[IR_MAX_RANK] = {{0, NULL}};
    lists[x->dim] = x->axes;
    v = locwin_mark(x, local_gathered(x->p, x->op, x->mesh, lists, v));
    for (int64_t i = 0; i < x->n; i++) x->offsets[i] = x->starts[i];
  } else {
    v = locwin_exchange(x, v, fill, &filled);
  }
  v = locwin_cut(x, v);
  return !filled && fill.op ? locwin_fill(x, v, 0, x->width, 0, false, fill) : v;
}

/* --- ops --- */

/* How many elements of a result of `size` in shards of `shard` place i has. */
static int64_t locwin_own(int64_t size, int64_t shard, int64_t i) {
  int64_t left = size - i * shard;
  return left < 0 ? 0 : left < shard ? left : shard;
}

/* Each of `own` elements of a result looks at `window` elements, `step` after those of the one before. */
static void locwin_windows(locwin *x, int64_t first, int64_t step, int64_t window, int64_t size, int64_t own) {
  x->width = (own - 1) * step + window;
  for (int64_t i = 0; i < x->n; i++) {
    int64_t n = locwin_own(size, own, i);
    x->starts[i] = first + i * own * step;
    x->counts[i] = n ? (n - 1) * step + window : 0;
  }
}

int local_slide(local_pass *p, ir_op *op, uint32_t operand, const local_slides *s, ir_value fill) {
  locwin x;
  ir_value v = opt_operand(op, operand);
  const local_fact *f = local_operand(p, op, operand);
  if (!locwin_begin(&x, p, op, f, s->dim, opt_type(v)->dims[s->dim])) return local_status(p);
  int64_t own = (s->size + x.n - 1) / x.n;
  locwin_windows(&x, s->first, s->step, s->window, s->size, own);
  v = locwin_fetch(&x, v, fill);
  if (!v.op) return local_status(p);
  ir_set_operand(op, operand, v);
  return opt_rewriter_status(&p->rw);
}

/* What the last device has is what the first one gets. */
int local_reverse(local_pass *p, ir_op *op) {
  const local_fact *f = local_operand(p, op, 0);
  uint32_t n = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "dimensions"), &p->rw.arena, &n);
  for (uint32_t i = 0; dims && p->uneven && i < n; i++) {
    uint32_t d = (uint32_t)dims[i];
    ir_value v = opt_operand(op, 0);
    locwin x;
    if (local_axes(f->s, d).n == 0) continue;
    if (!locwin_begin(&x, p, op, f, d, opt_type(v)->dims[d])) return local_status(p);
    x.width = x.shard;
    for (int64_t k = 0; k < x.n; k++) {
      x.starts[k] = x.size - (k + 1) * x.shard;
      x.counts[k] = locwin_own(x.size, x.shard, k) ? x.shard : 0;
    }
    v = locwin_fetch(&x, v, (ir_value){NULL, 0});
    if (!v.op) return local_status(p);
    ir_set_operand(op, 0, v);
  }
  return local_retype(p, op);
}

/* Element q of the result is element (q - low) / step of the operand, where that is even: a device's begin with one
 * that is `ahead` of its first. */
int local_spread(local_pass *p, ir_op *op, uint32_t d, int64_t low, int64_t gaps, int64_t size) {
  opt_rewriter *rw = &p->rw;
  ir_value v = opt_operand(op, 0), fill = opt_operand(op, 1);
  int64_t step = gaps + 1, most = 0, least = INT64_MAX, edges[3][IR_MAX_RANK] = {{0}}, dims[IR_MAX_RANK] = {0};
  locwin x, after;
  if (!locwin_begin(&x, p, op, local_operand(p, op, 0), d, opt_type(v)->dims[d]) ||
      !locwin_begin(&after, p, op, local_operand(p, op, 0), d, 0))
    return local_status(p);
  int64_t own = (size + x.n - 1) / x.n;
  x.width = 1;
  for (int64_t i = 0; i < x.n; i++) {
    x.starts[i] = -locwin_floor(low - i * own, step);
    int64_t ahead = x.starts[i] * step + low - i * own, n = locwin_own(size, own, i);
    assert(ahead >= 0 && ahead < step);
    x.counts[i] = n > ahead ? (n - ahead + step - 1) / step : 0;
    if (x.counts[i] > x.width) x.width = x.counts[i];
    if (ahead > most) most = ahead;
    if (ahead < least) least = ahead;
    after.offsets[i] = -ahead;
    after.counts[i] = n > 0;
  }
  for (int64_t i = 0; i < x.n; i++) after.offsets[i] += most;
  after.width = own;
  v = locwin_fetch(&x, v, fill);
  const ir_type *t = opt_type(v);
  if (!t) return local_status(p);
  local_copy(dims, t->dims, t->rank);
  int64_t spread = (x.width - 1) * step + 1, end = own - least - spread;
  edges[0][d] = most, edges[1][d] = end > 0 ? end : 0, edges[2][d] = gaps;
  dims[d] = most + spread + edges[1][d];
  if (dims[d] != t->dims[d]) {
    ir_value both[] = {v, fill};
    v = opt_make(rw, IR_OP_PAD, local_shape(p, t, t->rank, dims), 2, both);
    opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, t->rank, edges[0]));
    opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, t->rank, edges[1]));
    opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, t->rank, edges[2]));
  }
  v = locwin_cut(&after, v);
  if (!v.op) return local_status(p);
  ir_set_operand(op, 0, v);
  return opt_rewriter_status(rw);
}

/* Each device looks for its part of the result in every operand, and takes each element of the one that has it. */
int local_join(local_pass *p, ir_op *op, uint32_t d) {
  const local_fact *out = local_result(p, op, 0);
  const ir_type *type = NULL;
  ir_value made = {NULL, 0}, first = {NULL, 0};
  int64_t end = out->type->dims[d];
  TRY(local_type(p, op, out, &type));
  for (uint32_t k = op->n_operands; k-- > 0;) {
    ir_value v = opt_operand(op, k);
    locwin x;
    int64_t own = type->dims[d], begin = end - local_operand(p, op, k)->type->dims[d];
    if (begin == end) continue;
    if (!locwin_begin(&x, p, op, local_operand(p, op, k), d, opt_type(v)->dims[d])) return local_status(p);
    x.width = own;
    for (int64_t i = 0; i < x.n; i++) {
      int64_t last = (i + 1) * own < end ? (i + 1) * own : end;
      x.starts[i] = i * own - begin;
      x.counts[i] = last > i * own && last > begin ? last - i * own : 0;
    }
    v = locwin_fetch(&x, v, (ir_value){NULL, 0});
    if (made.op && !first.op) first = local_offset(p, op, x.mesh, x.axes, own);
    made = made.op ? local_mask(p, v, d, first, INT64_MIN, end, made) : v;
    if (!made.op) return local_status(p);
    end = begin;
  }
  return local_done(p, op, made);
}
