/* Incremental topological order, and contraction. Ranks are a topological order at all times: an edge that points
 * backward makes the vertices between its two ends share their ranks out anew (Pearce and Kelly), in time that
 * depends on that region only. Searches use the lists and the stack of tf_cycles, which keep their memory. */
#include "cycles.h"

#include <stdlib.h>

/* --- sets in order of insertion --- */

/* Sets of up to that many are searched one by one; larger ones get a hash table beside the list. */
enum { TF_SET_HASHED = 16 };

static uint32_t tf_vertex_hash(uint32_t v) {
  return (v * 0x9E3779B1u) ^ (v >> 15);
}

/* The slot that has v, or the empty one where it belongs (linear probing). The table is at most half full, so the
 * search ends. */
static uint32_t *tf_set_slot(const tf_vertex_set *s, uint32_t v) {
  assert(s->n_slots != 0 && (s->n_slots & (s->n_slots - 1)) == 0);
  uint32_t mask = s->n_slots - 1, at = tf_vertex_hash(v) & mask;
  while (s->slots[at] && s->items[s->slots[at] - 1] != v) at = (at + 1) & mask;
  return &s->slots[at];
}

/* The place of v, or n. */
static uint32_t tf_vertex_place(const tf_vertex_set *s, uint32_t v) {
  if (s->n_slots) {
    uint32_t slot = *tf_set_slot(s, v);
    return slot ? slot - 1 : s->n;
  }
  uint32_t i = 0;
  while (i < s->n && s->items[i] != v) i++;
  return i;
}

/* A larger table of the same items; false and nothing changed when out of memory. */
static bool tf_vertex_rehash(base_alloc alloc, tf_vertex_set *s, uint32_t size) {
  assert(size > s->n);
  uint32_t *slots = base_malloc(alloc, size * sizeof *slots);
  if (!slots) return false;
  memset(slots, 0, size * sizeof *slots);
  base_free(alloc, s->slots);
  s->slots = slots;
  s->n_slots = size;
  for (uint32_t i = 0; i < s->n; i++) *tf_set_slot(s, s->items[i]) = i + 1;
  return true;
}

/* *added is false where it is there already; false when out of memory. */
static bool tf_vertex_insert(base_alloc alloc, tf_vertex_set *s, uint32_t v, bool *added) {
  *added = tf_vertex_place(s, v) == s->n;
  if (!*added) return true;
  if (!BASE_VEC_RESERVE(alloc, s, (size_t)s->n + 1)) return false;
  s->items[s->n++] = v;
  if (s->n_slots ? s->n * 2 > s->n_slots : s->n > TF_SET_HASHED) {
    if (!tf_vertex_rehash(alloc, s, s->n_slots ? s->n_slots * 2 : 64)) return s->n--, false;
  } else if (s->n_slots) {
    *tf_set_slot(s, v) = s->n;
  }
  return true;
}

/* Empties the slot of v and moves later ones of its run up. Deletion without tombstones: an entry may move into
 * the hole unless its home lies behind the hole. */
static void tf_slot_erase(tf_vertex_set *s, uint32_t v) {
  uint32_t mask = s->n_slots - 1, hole = (uint32_t)(tf_set_slot(s, v) - s->slots), at = hole;
  for (;;) {
    at = (at + 1) & mask;
    if (!s->slots[at]) break;
    uint32_t home = tf_vertex_hash(s->items[s->slots[at] - 1]) & mask;
    if (((at - home) & mask) < ((at - hole) & mask)) continue;
    s->slots[hole] = s->slots[at];
    hole = at;
  }
  s->slots[hole] = 0;
}

/* The last item takes the place of the one that goes, which is TensorFlow's OrderedSet::Erase: the order matters. */
static void tf_vertex_erase(tf_vertex_set *s, uint32_t v) {
  uint32_t at = tf_vertex_place(s, v);
  if (at == s->n) return;
  uint32_t last = s->items[s->n - 1];
  if (s->n_slots) {
    tf_slot_erase(s, v);
    if (last != v) *tf_set_slot(s, last) = at + 1;
  }
  s->items[at] = last;
  s->n--;
}

static void tf_vertex_set_free(base_alloc alloc, tf_vertex_set *s) {
  base_free(alloc, s->items);
  base_free(alloc, s->slots);
  *s = (tf_vertex_set){.items = NULL};
}

/* --- the graph --- */

/* Nothing is allocated before the first vertex. */
void tf_cycles_init(tf_cycles *c, base_alloc alloc) {
  *c = (tf_cycles){.alloc = alloc};
}

void tf_cycles_free(tf_cycles *c) {
  for (uint32_t i = 0; i < c->v.n; i++) {
    tf_vertex_set_free(c->alloc, &c->v.items[i].in);
    tf_vertex_set_free(c->alloc, &c->v.items[i].out);
  }
  BASE_VEC_FREE(c->alloc, &c->v);
  BASE_VEC_FREE(c->alloc, &c->forward);
  BASE_VEC_FREE(c->alloc, &c->backward);
  BASE_VEC_FREE(c->alloc, &c->stack);
}

/* A vertex without edges may have any rank: the next one. */
int tf_cycles_add(tf_cycles *c, uint32_t *vertex, xlac_error *err) {
  *vertex = c->v.n;
  tf_vertex v = {.rank = c->v.n};
  return BASE_VEC_PUSH(c->alloc, &c->v, v) ? 0 : base_oom(err, "clustering");
}

bool tf_cycles_has(const tf_cycles *c, uint32_t from, uint32_t to) {
  assert(from < c->v.n && to < c->v.n);
  return tf_vertex_place(&c->v.items[from].out, to) < c->v.items[from].out.n;
}

void tf_cycles_remove(tf_cycles *c, uint32_t from, uint32_t to) {
  assert(from < c->v.n && to < c->v.n);
  tf_vertex_erase(&c->v.items[from].out, to);
  tf_vertex_erase(&c->v.items[to].in, from);
}

/* Undoes the marks of one search by the list it has made, not by going over all vertices. */
static void tf_clear_visited(tf_cycles *c, const tf_vertex_ids *list) {
  for (uint32_t i = 0; i < list->n; i++) c->v.items[list->items[i]].visited = false;
}

/* Visits from n on, along edges, vertices on the near side of rank `bound`, into `list`; *met where the vertex of that
 * rank itself is reached. Visited marks stay. */
static bool tf_search(tf_cycles *c, uint32_t n, uint32_t bound, bool forward, tf_vertex_ids *list, bool *met) {
  list->n = c->stack.n = 0;
  *met = false;
  if (!BASE_VEC_PUSH(c->alloc, &c->stack, n)) return false;
  while (c->stack.n > 0) {
    uint32_t at = c->stack.items[--c->stack.n];
    if (c->v.items[at].visited) continue;
    c->v.items[at].visited = true;
    if (!BASE_VEC_PUSH(c->alloc, list, at)) return false;
    const tf_vertex_set *next = forward ? &c->v.items[at].out : &c->v.items[at].in;
    for (uint32_t i = 0; i < next->n; i++) {
      const tf_vertex *w = &c->v.items[next->items[i]];
      if (forward && w->rank == bound) {
        *met = true;
        return true;
      }
      bool near = forward ? w->rank < bound : w->rank > bound;
      if (!w->visited && near && !BASE_VEC_PUSH(c->alloc, &c->stack, next->items[i])) return false;
    }
  }
  return true;
}

/* A vertex with its rank, to sort by. */
typedef struct tf_ranked {
  uint32_t rank, vertex;
} tf_ranked;

static int tf_compare_ranked(const void *a, const void *b) {
  const tf_ranked *x = a, *y = b;
  return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool tf_sort_by_rank(tf_cycles *c, const tf_vertex_ids *list, tf_ranked *out) {
  for (uint32_t i = 0; i < list->n; i++) out[i] = (tf_ranked){c->v.items[list->items[i]].rank, list->items[i]};
  if (list->n > 1) qsort(out, list->n, sizeof *out, tf_compare_ranked);
  return true;
}

/* The vertices before and those after share their ranks out anew: all before first. */
static bool tf_reorder(tf_cycles *c) {
  uint32_t n = c->backward.n + c->forward.n;
  tf_ranked *order = base_malloc(c->alloc, 2 * (size_t)n * sizeof *order), *pool = order + n;
  if (!order) return false;
  tf_sort_by_rank(c, &c->backward, order);
  tf_sort_by_rank(c, &c->forward, order + c->backward.n);
  memcpy(pool, order, n * sizeof *order);
  qsort(pool, n, sizeof *pool, tf_compare_ranked);
  for (uint32_t i = 0; i < n; i++) c->v.items[order[i].vertex].rank = pool[i].rank;
  base_free(c->alloc, order);
  return true;
}

/* The new edge runs from a higher rank to a lower one. Whatever `to` reaches below the rank of `from` must come
 * after whatever reaches `from` above the rank of `to`; if `to` reaches `from` itself there is a cycle. */
static bool tf_restore_order(tf_cycles *c, uint32_t from, uint32_t to, bool *cycle) {
  assert(c->v.items[from].rank > c->v.items[to].rank);
  bool met = false, fine = tf_search(c, to, c->v.items[from].rank, true, &c->forward, cycle);
  tf_clear_visited(c, &c->forward);
  if (!fine || *cycle) return fine;
  fine = tf_search(c, from, c->v.items[to].rank, false, &c->backward, &met);
  tf_clear_visited(c, &c->backward);
  return fine && tf_reorder(c);
}

/* The edge is put into both sets first and taken out again where it closes a cycle, so that its place in the order
 * of insertion is the one it would have. An edge that is there already is left alone. */
int tf_cycles_insert(tf_cycles *c, uint32_t from, uint32_t to, bool *cycle, xlac_error *err) {
  assert(from < c->v.n && to < c->v.n);
  bool added = false, mirrored = false;
  *cycle = from == to;
  if (*cycle) return 0;
  if (!tf_vertex_insert(c->alloc, &c->v.items[from].out, to, &added)) return base_oom(err, "clustering");
  if (!added) return 0;
  bool fine = tf_vertex_insert(c->alloc, &c->v.items[to].in, from, &mirrored);
  if (fine && c->v.items[from].rank > c->v.items[to].rank) fine = tf_restore_order(c, from, to, cycle);
  if (!fine || *cycle) tf_cycles_remove(c, from, to);
  return fine ? 0 : base_oom(err, "clustering");
}

/* Only vertices with ranks between the two can lie on a path, which bounds the search. */
static int tf_is_reachable(tf_cycles *c, uint32_t from, uint32_t to, bool *out, xlac_error *err) {
  *out = from == to;
  if (*out || c->v.items[from].rank >= c->v.items[to].rank) return 0;
  bool fine = tf_search(c, from, c->v.items[to].rank, true, &c->forward, out);
  tf_clear_visited(c, &c->forward);
  return fine ? 0 : base_oom(err, "clustering");
}

/* Moves the edges of `gone` over to `stays`. The sets are taken out of the vertex first, since inserting may let
 * the list of vertices' sets grow while they are read. The vertex that goes keeps its rank, is dead and has no
 * edges; its number is not used again. */
static int tf_move_edges(tf_cycles *c, uint32_t gone, uint32_t stays, xlac_error *err) {
  assert(gone != stays && !c->v.items[gone].dead);
  tf_vertex_set out = c->v.items[gone].out, in = c->v.items[gone].in;
  bool cycle = false;
  int status = 0;
  c->v.items[gone] = (tf_vertex){.rank = c->v.items[gone].rank, .dead = true};
  for (uint32_t i = 0; i < out.n; i++) tf_vertex_erase(&c->v.items[out.items[i]].in, gone);
  for (uint32_t i = 0; i < in.n; i++) tf_vertex_erase(&c->v.items[in.items[i]].out, gone);
  for (uint32_t i = 0; i < out.n && status == 0; i++) status = tf_cycles_insert(c, stays, out.items[i], &cycle, err);
  for (uint32_t i = 0; i < in.n && status == 0; i++) status = tf_cycles_insert(c, in.items[i], stays, &cycle, err);
  assert(!cycle);
  tf_vertex_set_free(c->alloc, &out);
  tf_vertex_set_free(c->alloc, &in);
  return status;
}

/* The vertex with fewer edges is moved to the other (TensorFlow's ContractEdge): which one survives decides the
 * order of later lists. Where another path exists the edge comes back, at the end of the order of insertion. */
int tf_cycles_contract(tf_cycles *c, uint32_t from, uint32_t to, bool *done, uint32_t *survivor, xlac_error *err) {
  assert(from != to);
  bool other_path = false, cycle = false;
  *done = false;
  assert(tf_cycles_has(c, from, to));
  tf_cycles_remove(c, from, to);
  TRY(tf_is_reachable(c, from, to, &other_path, err));
  if (other_path) return tf_cycles_insert(c, from, to, &cycle, err);
  const tf_vertex *a = &c->v.items[from], *b = &c->v.items[to];
  bool swap = b->in.n + b->out.n > a->in.n + a->out.n;
  *survivor = swap ? to : from;
  *done = true;
  return tf_move_edges(c, swap ? from : to, *survivor, err);
}

/* Breadth first, so the path is a shortest one; the stack serves as the queue. For explanations only. */
int tf_cycles_path(tf_cycles *c, uint32_t from, uint32_t to, uint32_t *path, uint32_t room, uint32_t *n,
                   xlac_error *err) {
  assert(from < c->v.n && to < c->v.n && from != to);
  uint32_t *parent = base_malloc(c->alloc, c->v.n * sizeof *parent);
  *n = 0;
  if (!parent) return base_oom(err, "looking for a path");
  for (uint32_t i = 0; i < c->v.n; i++) parent[i] = UINT32_MAX;
  c->stack.n = 0;
  bool fine = BASE_VEC_PUSH(c->alloc, &c->stack, from);
  parent[from] = from;
  for (uint32_t head = 0; head < c->stack.n && fine && parent[to] == UINT32_MAX; head++) {
    uint32_t at = c->stack.items[head];
    const tf_vertex_set *next = &c->v.items[at].out;
    for (uint32_t i = 0; i < next->n && fine; i++) {
      uint32_t w = next->items[i];
      if (parent[w] != UINT32_MAX || (at == from && w == to)) continue;
      parent[w] = at;
      fine = BASE_VEC_PUSH(c->alloc, &c->stack, w);
    }
  }
  uint32_t length = 1;
  for (uint32_t at = to; parent[to] != UINT32_MAX && at != from; at = parent[at]) length++;
  if (parent[to] != UINT32_MAX) *n = length;
  if (*n > 0 && length <= room)
    for (uint32_t at = to, i = length; i > 0; at = parent[at]) path[--i] = at;
  base_free(c->alloc, parent);
  return fine ? 0 : base_oom(err, "looking for a path");
}

/* Decreasing rank is a post-order of the graph: each vertex comes after all that it reaches. Dead ones are left
 * out. */
int tf_cycles_post_order(tf_cycles *c, uint32_t *out, uint32_t *n, xlac_error *err) {
  tf_ranked *order = base_malloc(c->alloc, ((size_t)c->v.n + 1) * sizeof *order);
  *n = 0;
  if (!order) return base_oom(err, "clustering");
  for (uint32_t i = 0; i < c->v.n; i++)
    if (!c->v.items[i].dead) order[(*n)++] = (tf_ranked){c->v.items[i].rank, i};
  qsort(order, *n, sizeof *order, tf_compare_ranked);
  for (uint32_t i = 0; i < *n; i++) out[i] = order[*n - 1 - i].vertex;
  base_free(c->alloc, order);
  return 0;
}
