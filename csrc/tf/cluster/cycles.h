/* A directed graph without cycles that keeps a topological order while edges come and go, and contracts edges.
 * The order in which it lists successors and vertices decides what is clustered, so it is TensorFlow's GraphCycles':
 * lists in order of insertion, where removal moves the last element into the hole. Ranks after Pearce and Kelly, "A
 * dynamic topological sort algorithm for directed acyclic graphs" (2007). */
#ifndef XLAC_TF_CLUSTER_CYCLES_H
#define XLAC_TF_CLUSTER_CYCLES_H

#include "../../base/status.h"
#include "../../base/memory.h"

/* Vertices in order of insertion. The order of `items` is part of the result; `slots` only finds places in it. */
typedef struct tf_vertex_set {
  uint32_t *items, n, cap;
  uint32_t *slots, n_slots; /* a hash table of places + 1, once there are many */
} tf_vertex_set;

/* rank: its place in the topological order, unlike any other's. visited: by the search in progress. dead:
 * contracted into another vertex. */
typedef struct tf_vertex {
  tf_vertex_set in, out;
  uint32_t rank;
  bool visited, dead;
} tf_vertex;

BASE_VEC(tf_vertices, tf_vertex);
BASE_VEC(tf_vertex_ids, uint32_t);

/* Used by one thread at a time. `stack` may be borrowed by others between calls (resources.c, prepare_graph.c). */
typedef struct tf_cycles {
  base_alloc alloc;
  tf_vertices v;
  tf_vertex_ids forward, backward, stack;
} tf_cycles;

/* Freed by tf_cycles_free, which takes one that is empty, too. */
void tf_cycles_init(tf_cycles *c, base_alloc alloc);
void tf_cycles_free(tf_cycles *c);
/* Adds a vertex; numbers count up from 0. Fails when out of memory, as all that may add edges. */
XLAC_MUST_USE int tf_cycles_add(tf_cycles *c, uint32_t *vertex, xlac_error *err);
/* *cycle: the edge would close one, and is not there. */
XLAC_MUST_USE int tf_cycles_insert(tf_cycles *c, uint32_t from, uint32_t to, bool *cycle, xlac_error *err);
bool tf_cycles_has(const tf_cycles *c, uint32_t from, uint32_t to);
void tf_cycles_remove(tf_cycles *c, uint32_t from, uint32_t to);
/* Makes one vertex of the two ends of an edge; *survivor is it. *done is false where another path leads from one to the
 * other: nothing is contracted then. */
XLAC_MUST_USE int tf_cycles_contract(tf_cycles *c, uint32_t from, uint32_t to, bool *done, uint32_t *survivor,
                                     xlac_error *err);
/* The shortest path from `from` to `to` but for the edge between them: *n vertices with both ends, 0 where there is
 * none. Written to `path` where it has room. */
XLAC_MUST_USE int tf_cycles_path(tf_cycles *c, uint32_t from, uint32_t to, uint32_t *path, uint32_t room, uint32_t *n,
                                 xlac_error *err);
/* All vertices by decreasing rank; out has room for all. Returns how many. */
XLAC_MUST_USE int tf_cycles_post_order(tf_cycles *c, uint32_t *out, uint32_t *n, xlac_error *err);

#endif
