/* Collectives between processes. One thread of each process does the work of all its members.
 *
 * What goes from one process to another is one message of pieces: for each member there, each array, and each member
 * here, in the order of the group, what that one has for this one. The receiver walks the pieces in the same order and
 * puts each where it goes, or adds it up; so sums are those of one process, element by element in the order of the
 * group. Of a large all-reduce each member sums a share, as within a process, and a second message has the sums. */
#include "../network.h"

enum {
  ACROSS_LITTLE = 1 << 14,
  ACROSS_CHUNK = 4 << 20 /* bytes that are summed at once; of less all sum everything */
};

/* A step of a collective: all arrays, or of an all-reduce in shares elements [begin, end) of array `only`. */
typedef struct across_step {
  const rt_across *a;
  const rt_participant *us;
  const rt_exchange *x;
  const uint32_t *members;
  base_alloc alloc;
  uint64_t tag;
  bool shares;
  uint32_t only;
  int64_t begin, end;
} across_step;

typedef struct across_inbox {
  rt_receipt receipt;
  char *at; /* what has not been looked at */
} across_inbox;

/* What a member has for another one: rows of bytes. rows 0: nothing. */
typedef struct across_piece {
  const char *from;
  int64_t rows, row, stride;
} across_piece;

static uint32_t across_process(const across_step *s, uint32_t place) {
  return s->a->process[s->members[place]];
}

static bool across_here(const across_step *s, uint32_t place) {
  return rt_is_here(s->a, s->members[place]);
}

/* Whether nobody before it in the group is in its process. */
static bool across_is_first(const across_step *s, uint32_t place) {
  for (uint32_t i = 0; i < place; i++)
    if (across_process(s, i) == across_process(s, place)) return false;
  return true;
}

/* Elements that a member sums, in cache lines. */
static void across_share(const across_step *s, uint32_t place, int64_t *begin, int64_t *end) {
  int64_t n = s->end - s->begin, lines = (n + 63) / 64, members = s->x->members;
  *begin = lines * place / members * 64;
  *end = lines * (place + 1) / members * 64;
  if (*begin > n) *begin = n;
  if (*end > n) *end = n;
  *begin += s->begin;
  *end += s->begin;
}

/* Of array k, from member i for member `to`. What all members of a process get alike goes to the first. */
static across_piece across_piece_of(const across_step *s, uint32_t i, uint32_t to, uint32_t k) {
  const rt_exchange *x = s->x;
  const rt_extent *e = &x->what->extents[k];
  int64_t row = e->inner * e->bytes, begin = 0, end = 0;
  const char *from = x->in[i] ? x->in[i][k] : NULL; /* not here: only sizes are asked for */
  const across_piece whole = {from, 1, e->outer * row, 0}, nothing = {NULL, 0, 0, 0};
  switch (x->what->kind) {
    case RT_REDUCE_SCATTER:
    case RT_ALL_TO_ALL:
      return (across_piece){from ? from + to * row : NULL, e->outer, row, x->members * row};
    case RT_ALL_TO_ALL_EACH:
      return k == to ? whole : nothing;
    case RT_PERMUTE:
      return x->sources[to] == i ? whole : nothing;
    case RT_BROADCAST:
      return i == 0 && across_is_first(s, to) ? whole : nothing;
    case RT_ALL_GATHER:
      return across_is_first(s, to) ? whole : nothing;
    case RT_ALL_REDUCE:
      break;
  }
  if (!s->shares) return across_is_first(s, to) ? whole : nothing;
  if (k != s->only) return nothing;
  across_share(s, to, &begin, &end);
  return (across_piece){from ? from + begin * e->bytes : NULL, 1, (end - begin) * e->bytes, 0};
}

/* Bytes from one process to another. */
static size_t across_bytes(const across_step *s, uint32_t from, uint32_t to) {
  size_t n = 0;
  for (uint32_t j = 0; j < s->x->members; j++) {
    if (across_process(s, j) != to) continue;
    for (uint32_t i = 0; i < s->x->members; i++) {
      if (across_process(s, i) != from) continue;
      for (uint32_t k = 0; k < s->x->what->n; k++) {
        across_piece p = across_piece_of(s, i, j, k);
        n += (size_t)(p.rows * p.row);
      }
    }
  }
  return n;
}

/* --- sending --- */

static int across_send_piece(const across_step *s, uint32_t peer, const across_piece *p, xlac_error *err) {
  for (int64_t r = 0; r < p->rows; r++)
    TRY(rt_network_send_some(s->a->net, peer, s->us, p->from + r * p->stride, (size_t)p->row, err));
  return 0;
}

static int across_send_pieces(const across_step *s, uint32_t peer, xlac_error *err) {
  for (uint32_t j = 0; j < s->x->members; j++) {
    if (across_process(s, j) != peer) continue;
    for (uint32_t k = 0; k < s->x->what->n; k++)
      for (uint32_t i = 0; i < s->x->members; i++) {
        if (!across_here(s, i)) continue;
        across_piece p = across_piece_of(s, i, j, k);
        TRY(across_send_piece(s, peer, &p, err));
      }
  }
  return 0;
}

static int across_send(const across_step *s, uint32_t peer, xlac_error *err) {
  rt_network *net = s->a->net;
  size_t n = across_bytes(s, rt_network_rank(net), peer);
  if (n == 0) return 0;
  int status = rt_network_send_begin(net, peer, s->us, s->a->run, s->tag, n, err);
  if (status == 0) status = across_send_pieces(s, peer, err);
  return rt_network_send_end(net, peer, s->us, status, err);
}

/* --- receiving --- */

/* Memory for what each process sends; all of it is expected from now on. */
static int across_open(const across_step *s, size_t (*bytes)(const across_step *s, uint32_t from, uint32_t to),
                       across_inbox **out, xlac_error *err) {
  rt_network *net = s->a->net;
  uint32_t n = rt_network_size(net), own = rt_network_rank(net);
  across_inbox *boxes = base_malloc(s->alloc, n * sizeof *boxes);
  if (!boxes) return base_oom(err, "a collective");
  memset(boxes, 0, n * sizeof *boxes);
  *out = boxes;
  for (uint32_t p = 0; p < n; p++) {
    size_t size = p == own ? 0 : bytes(s, p, own);
    if (size == 0) continue;
    char *to = base_malloc(s->alloc, size);
    if (!to) return base_oom(err, "what other ranks send in a collective");
    boxes[p].at = to;
    boxes[p].receipt = (rt_receipt){.peer = p, .run = s->a->run, .tag = s->tag, .to = to, .bytes = size};
    rt_network_expect(net, &boxes[p].receipt);
  }
  return 0;
}

static int across_await(const across_step *s, across_inbox *boxes, xlac_error *err) {
  for (uint32_t p = 0; p < rt_network_size(s->a->net); p++)
    if (boxes[p].receipt.to) TRY(rt_network_await(s->a->net, s->us, &boxes[p].receipt, s->x->what->name, err));
  return 0;
}

static void across_close(const across_step *s, across_inbox *boxes) {
  for (uint32_t p = 0; boxes && p < rt_network_size(s->a->net); p++) {
    if (!boxes[p].receipt.to) continue;
    rt_network_forget(s->a->net, &boxes[p].receipt);
    base_free(s->alloc, boxes[p].receipt.to);
  }
  base_free(s->alloc, boxes);
}

/* --- what becomes of a piece --- */

static void across_copy(char *to, int64_t stride, const across_piece *p) {
  for (int64_t r = 0; r < p->rows && p->row; r++) memcpy(to + r * stride, p->from + r * p->stride, (size_t)p->row);
}

static int across_add(const across_step *s, uint32_t k, char *into, const across_piece *p, bool begins,
                      xlac_error *err) {
  const rt_exchange *x = s->x;
  assert(x->combine);
  if (begins) return across_copy(into, p->row, p), 0;
  for (int64_t r = 0; r < p->rows && p->row; r++) {
    const void *both[] = {into + r * p->row, p->from + r * p->stride};
    TRY(x->combine(x->ctx, k, p->row / x->what->extents[k].bytes, into + r * p->row, 2, both, err));
  }
  return 0;
}

/* To all members here. */
static void across_copy_to_all(const across_step *s, uint32_t k, size_t at, int64_t stride, const across_piece *p) {
  for (uint32_t j = 0; j < s->x->members; j++)
    if (across_here(s, j)) across_copy((char *)s->x->out[j][k] + at, stride, p);
}

static int across_put(const across_step *s, uint32_t i, uint32_t to, uint32_t k, const across_piece *p,
                      xlac_error *err) {
  const rt_exchange *x = s->x;
  const rt_extent *e = &x->what->extents[k];
  int64_t row = e->inner * e->bytes, begin = 0, end = 0;
  char *out = x->out[to][k];
  switch (x->what->kind) {
    case RT_ALL_TO_ALL:
      across_copy(out + i * row, x->members * row, p);
      return 0;
    case RT_ALL_TO_ALL_EACH:
      across_copy(x->out[to][i], 0, p);
      return 0;
    case RT_PERMUTE:
      across_copy(out, 0, p);
      return 0;
    case RT_BROADCAST:
      across_copy_to_all(s, k, 0, 0, p);
      return 0;
    case RT_ALL_GATHER: {
      const across_piece rows = {p->from, e->outer, row, row};
      across_copy_to_all(s, k, (size_t)(i * row), x->members * row, &rows);
      return 0;
    }
    case RT_REDUCE_SCATTER:
      return across_add(s, k, out, p, i == 0, err);
    case RT_ALL_REDUCE:
      if (s->shares) across_share(s, to, &begin, &end);
      return across_add(s, k, out + begin * e->bytes, p, i == 0, err);
  }
  return 0;
}

/* In the order in which pieces were sent. */
static int across_take(const across_step *s, across_inbox *boxes, xlac_error *err) {
  for (uint32_t j = 0; j < s->x->members; j++) {
    if (!across_here(s, j)) continue;
    for (uint32_t k = 0; k < s->x->what->n; k++)
      for (uint32_t i = 0; i < s->x->members; i++) {
        across_piece p = across_piece_of(s, i, j, k);
        if (p.rows == 0) continue;
        if (!across_here(s, i)) {
          char **at = &boxes[across_process(s, i)].at;
          p.from = *at;
          p.stride = p.row;
          *at += p.rows * p.row;
        }
        TRY(across_put(s, i, j, k, &p, err));
      }
  }
  return 0;
}

static int across_exchange(const across_step *s, xlac_error *err) {
  across_inbox *boxes = NULL;
  int status = across_open(s, across_bytes, &boxes, err);
  for (uint32_t p = 0; p < rt_network_size(s->a->net) && status == 0; p++)
    if (p != rt_network_rank(s->a->net)) status = across_send(s, p, err);
  if (status == 0) status = across_await(s, boxes, err);
  if (status == 0) status = across_take(s, boxes, err);
  across_close(s, boxes);
  return status;
}

/* --- sums for everybody --- */

/* Bytes of sums that a process has. */
static size_t across_sum_bytes(const across_step *s, uint32_t from, uint32_t to) {
  size_t n = 0;
  bool asks = false;
  for (uint32_t j = 0; j < s->x->members; j++) {
    int64_t begin, end;
    across_share(s, j, &begin, &end);
    asks = asks || across_process(s, j) == to;
    if (across_process(s, j) == from) n += (size_t)(end - begin) * s->x->what->extents[s->only].bytes;
  }
  return asks ? n : 0;
}

static int across_send_sums(const across_step *s, uint32_t peer, xlac_error *err) {
  rt_network *net = s->a->net;
  const uint32_t bytes = s->x->what->extents[s->only].bytes;
  size_t n = across_sum_bytes(s, rt_network_rank(net), peer);
  if (n == 0) return 0;
  int status = rt_network_send_begin(net, peer, s->us, s->a->run, s->tag, n, err);
  for (uint32_t j = 0; j < s->x->members && status == 0; j++) {
    int64_t begin, end;
    across_share(s, j, &begin, &end);
    if (across_here(s, j))
      status = rt_network_send_some(net, peer, s->us, (const char *)s->x->out[j][s->only] + begin * bytes,
                                    (size_t)(end - begin) * bytes, err);
  }
  return rt_network_send_end(net, peer, s->us, status, err);
}

static void across_take_sums(const across_step *s, across_inbox *boxes) {
  const uint32_t bytes = s->x->what->extents[s->only].bytes;
  for (uint32_t j = 0; j < s->x->members; j++) {
    int64_t begin, end;
    across_share(s, j, &begin, &end);
    across_piece p = {(char *)NULL, 1, (end - begin) * bytes, 0};
    char **at = &boxes[across_process(s, j)].at;
    if (across_here(s, j))
      p.from = (const char *)s->x->out[j][s->only] + begin * bytes;
    else
      p.from = *at, *at += p.row;
    for (uint32_t i = 0; i < s->x->members; i++)
      if (across_here(s, i) && i != j) across_copy((char *)s->x->out[i][s->only] + begin * bytes, 0, &p);
  }
}

static int across_spread(const across_step *s, xlac_error *err) {
  across_inbox *boxes = NULL;
  int status = across_open(s, across_sum_bytes, &boxes, err);
  for (uint32_t p = 0; p < rt_network_size(s->a->net) && status == 0; p++)
    if (p != rt_network_rank(s->a->net)) status = across_send_sums(s, p, err);
  if (status == 0) status = across_await(s, boxes, err);
  if (status == 0) across_take_sums(s, boxes);
  across_close(s, boxes);
  return status;
}

static int across_sum_in_shares(across_step *s, xlac_error *err) {
  s->shares = true;
  for (s->only = 0; s->only < s->x->what->n; s->only++) {
    const rt_extent *e = &s->x->what->extents[s->only];
    int64_t all = e->outer * e->inner, some = ACROSS_CHUNK / e->bytes;
    for (s->begin = 0; s->begin < all; s->begin += some) {
      s->end = all - s->begin < some ? all : s->begin + some;
      TRY(across_exchange(s, err));
      TRY(across_spread(s, err));
    }
  }
  return 0;
}

/* Little is summed by the first member of each process, and copied to the others there. */
static int across_sum(across_step *s, xlac_error *err) {
  uint32_t first = 0;
  TRY(across_exchange(s, err));
  while (!across_here(s, first)) first++;
  for (uint32_t k = 0; k < s->x->what->n; k++) {
    const rt_extent *e = &s->x->what->extents[k];
    const across_piece sum = {s->x->out[first][k], 1, e->outer * e->inner * e->bytes, 0};
    for (uint32_t j = first + 1; j < s->x->members; j++)
      if (across_here(s, j)) across_copy(s->x->out[j][k], 0, &sum);
  }
  return 0;
}

/* --- */

static uint64_t across_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 29;
}

static uint64_t across_tag(const rt_exchange *x, const uint32_t *members) {
  uint64_t h = across_mix(across_mix(x->what->kind, (uint64_t)x->what->channel), x->what->n);
  for (uint32_t i = 0; i < x->members; i++) h = across_mix(h, members[i] + 1u);
  return h;
}

/* Nobody sends to some: zeros. */
static void across_clear(const across_step *s) {
  for (uint32_t j = 0; j < s->x->members; j++)
    for (uint32_t k = 0; k < s->x->what->n; k++) {
      const rt_extent *e = &s->x->what->extents[k];
      size_t bytes = (size_t)(e->outer * e->inner * e->bytes);
      if (across_here(s, j) && s->x->sources[j] == UINT32_MAX && bytes) memset(s->x->out[j][k], 0, bytes);
    }
}

int rt_across_run(const rt_across *a, const rt_participant *us, const rt_exchange *x, const uint32_t *members,
                  base_alloc alloc, xlac_error *err) {
  across_step s = {.a = a, .us = us, .x = x, .members = members, .alloc = alloc, .tag = across_tag(x, members)};
  assert(a->net && a->here > 0);
  if (x->what->kind == RT_PERMUTE) across_clear(&s);
  if (x->what->kind != RT_ALL_REDUCE) return across_exchange(&s, err);
  bool little = rt_exchange_bytes(x->what, 1) <= ACROSS_LITTLE;
  return little ? across_sum(&s, err) : across_sum_in_shares(&s, err);
}
