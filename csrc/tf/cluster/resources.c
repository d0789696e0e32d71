/* Which ops on resources may not be in one cluster: the pairs of a graph that are unsafe, and whether two clusters
 * have one. */
#include "resources.h"

#include <stdlib.h>

/* --- unsafe pairs --- */

/* Whether the node's op is a function or an attribute names one. */
bool tf_may_call_function(const tf_node *n) {
  base_slice name, message;
  if (!tf_is_op(n)) return false;
  if (n->op->function) return true;
  for (uint32_t i = 0; i < n->def->attrs.n; i++) /* one function; TensorFlow does not look into lists, so not Case's */
    if (tf_attr_func(n->def->attrs.v[i].value, &name, &message)) return true;
  return false;
}

tf_resource_use tf_resource_use_of(const tf_node *n) {
  if (!tf_is_op(n)) return TF_RESOURCE_NONE;
  if (n->op->resource != TF_RESOURCE_NONE) return (tf_resource_use)n->op->resource;
  return tf_may_call_function(n) ? TF_RESOURCE_READ_WRITE : TF_RESOURCE_NONE;
}

/* A set of node ids, sorted. Immutable once it is some node's: nodes share sets, most have the set of their first
 * input. */
typedef struct tf_op_set {
  uint32_t n, ids[];
} tf_op_set;

/* Forward dataflow (ComputeIncompatibleResourceOperationPairs): for each node the ops that may have written before
 * it. */
typedef struct tf_flow {
  const tf_graph *g;
  const uint8_t *ignore;
  base_arena arena;
  const tf_op_set **reach; /* by node */
  tf_unsafe_list *out;
  xlac_error *err;
} tf_flow;

static int tf_flow_oom(tf_flow *f) {
  return base_oom(f->err, "checking the order of resource ops");
}

/* One of the two themselves where it has everything, so that sharing survives joins. */
static const tf_op_set *tf_union(tf_flow *f, const tf_op_set *a, const tf_op_set *b) {
  tf_op_set *u = base_arena_alloc(&f->arena, sizeof *u + ((size_t)a->n + b->n) * sizeof *u->ids);
  uint32_t i = 0, k = 0;
  if (!u) return NULL;
  u->n = 0;
  while (i < a->n || k < b->n) {
    uint32_t x = i < a->n ? a->ids[i] : UINT32_MAX, y = k < b->n ? b->ids[k] : UINT32_MAX;
    u->ids[u->n++] = x < y ? x : y;
    i += x <= y;
    k += y <= x;
  }
  if (u->n == a->n) return a;
  return u->n == b->n ? b : u;
}

static const tf_op_set *tf_with(tf_flow *f, const tf_op_set *a, uint32_t id) {
  assert(id > TF_SINK);
  tf_op_set *one = base_arena_alloc(&f->arena, sizeof *one + sizeof *one->ids);
  if (!one) return NULL;
  one->n = 1;
  one->ids[0] = id;
  return a->n ? tf_union(f, a, one) : one;
}

/* Back edges are left out, as everywhere in this analysis. A write may follow anything, so it makes no pair; it is
 * the later reads that do. */
static int tf_flow_into(tf_flow *f, uint32_t id) {
  const tf_node *n = &f->g->nodes.items[id];
  const tf_op_set *set = f->reach[TF_SOURCE];
  TF_EACH_IN(f->g, n, k) {
    uint32_t src = f->g->edges.items[k].src;
    const tf_op_set *more = f->reach[src];
    if (f->g->nodes.items[src].role == TF_ROLE_NEXT_ITERATION || !more || more == set || more->n == 0) continue;
    set = set->n ? tf_union(f, set, more) : more;
    if (!set) return tf_flow_oom(f);
  }
  tf_resource_use use = f->ignore && f->ignore[id] ? TF_RESOURCE_NONE : tf_resource_use_of(n);
  for (uint32_t i = 0; i < set->n && use != TF_RESOURCE_NONE && use != TF_RESOURCE_WRITE; i++) {
    tf_unsafe_pair pair = {set->ids[i], id};
    if (!BASE_VEC_PUSH(f->g->alloc, f->out, pair)) return tf_flow_oom(f);
  }
  if (use == TF_RESOURCE_WRITE || use == TF_RESOURCE_READ_WRITE) set = tf_with(f, set, id);
  f->reach[id] = set;
  return set ? 0 : tf_flow_oom(f);
}

/* The order that users of tf_find_unsafe_pairs rely on: by the earlier op, then by the later one. */
static int tf_compare_pairs(const void *a, const void *b) {
  const tf_unsafe_pair *x = a, *y = b;
  if (x->before != y->before) return x->before < y->before ? -1 : 1;
  return (x->after > y->after) - (x->after < y->after);
}

static int tf_run_flow(tf_flow *f, uint32_t *order) {
  assert(f->reach != NULL);
  uint32_t n = 0;
  tf_op_set *empty = BASE_NEW(&f->arena, tf_op_set);
  if (!empty) return tf_flow_oom(f);
  TRY(tf_reverse_post_order(f->g, order, &n, f->err));
  f->reach[TF_SOURCE] = empty;
  for (uint32_t i = 0; i < n; i++)
    if (order[i] != TF_SOURCE) TRY(tf_flow_into(f, order[i]));
  if (f->out->n > 1) qsort(f->out->items, f->out->n, sizeof *f->out->items, tf_compare_pairs);
  return 0;
}

int tf_find_unsafe_pairs(const tf_graph *g, const uint8_t *ignore, tf_unsafe_list *out, xlac_error *err) {
  assert(out->n == 0);
  tf_flow f = {.g = g, .ignore = ignore, .out = out, .err = err};
  base_arena_init(&f.arena, g->alloc);
  uint32_t *order = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *order);
  f.reach = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *f.reach);
  int status = order && f.reach ? 0 : tf_flow_oom(&f);
  if (status == 0) {
    memset(f.reach, 0, (size_t)g->nodes.n * sizeof *f.reach);
    status = tf_run_flow(&f, order);
  }
  base_free(g->alloc, order);
  base_free(g->alloc, f.reach);
  base_arena_free(&f.arena);
  return status;
}

/* --- pairs of clusters --- */

/* Whether two clusters may be one as far as resources go.
 *
 * TensorFlow keeps all unsafe pairs, of which a training graph has a number that grows with its square. Here a cluster
 * knows of each of its nodes whether a write of the cluster reaches it (tainted) and whether it reaches a read
 * (sensitive). An unsafe path between two clusters that runs through others would close a cycle and is refused for
 * that; one that runs within the two crosses an edge from a tainted node to a sensitive one. Each node changes its
 * marks once, so all merges together take time linear in the edges. Paths through loops leave the cycle graph, so
 * graphs with v1 loops have pairs. */

/* A write of the cluster reaches the node; the node reaches a read of the cluster. */
enum { TF_TAINTED = 1, TF_SENSITIVE = 2 };

static uint64_t tf_pair_key(uint32_t before, uint32_t after) {
  return (uint64_t)before << 32 | after;
}

/* Devices that cluster resource ops "unsafely" are trusted to keep the order themselves; so is, as in TensorFlow,
 * what has no device that XLA knows. */
static bool tf_is_ignored(const tf_pass *p, uint32_t id) {
  const tf_device_registration *r =
      p->device_of[id] == TF_NO_DEVICE ? NULL : p->devices.items[p->device_of[id]].registration;
  return !r || r->cluster_resource_variable_ops_unsafely;
}

/* The way for graphs with v1 loops: all pairs, and a set of them to ask. */
static int tf_prepare_pairs(tf_pass *p, xlac_error *err) {
  assert(p->has_loops);
  uint8_t *ignore = base_malloc(p->graph.alloc, p->graph.nodes.n);
  if (!ignore) return base_oom(err, "clustering");
  for (uint32_t i = 0; i < p->graph.nodes.n; i++) ignore[i] = tf_is_ignored(p, i);
  int status = tf_find_unsafe_pairs(&p->graph, ignore, &p->unsafe, err);
  base_free(p->graph.alloc, ignore);
  for (uint32_t i = 0; i < p->unsafe.n && status == 0; i++)
    if (!base_map_set(&p->unsafe_set, tf_pair_key(p->unsafe.items[i].before, p->unsafe.items[i].after), 1))
      status = base_oom(err, "clustering");
  return status;
}

/* Marks of single nodes: each candidate is a cluster of its own now. */
int tf_prepare_resources(tf_pass *p, xlac_error *err) {
  memset(p->taint, 0, p->graph.nodes.n);
  if (p->flags.disable_resource_variable_safety_checks_for_debugging) return 0;
  for (uint32_t i = 0; i < p->graph.nodes.n; i++) TRY(tf_check_device(p, i, err));
  if (p->has_loops) return tf_prepare_pairs(p, err);
  for (uint32_t i = 0; i < p->graph.nodes.n; i++) {
    if (!p->candidate[i] || tf_is_ignored(p, i)) continue;
    tf_resource_use use = tf_resource_use_of(&p->graph.nodes.items[i]);
    if (use == TF_RESOURCE_WRITE || use == TF_RESOURCE_READ_WRITE) p->taint[i] |= TF_TAINTED;
    if (use == TF_RESOURCE_READ || use == TF_RESOURCE_READ_WRITE) p->taint[i] |= TF_SENSITIVE;
  }
  return 0;
}

/* Asks the set for each pair of resource ops of the two clusters. */
static bool tf_pairs_conflict(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  uint64_t unused = 0;
  if (p->unsafe.n == 0 || !from->resources || !to->resources) return false;
  for (uint32_t a = from->first; a != TF_NO_EDGE; a = p->next_node[a]) {
    if (tf_resource_use_of(&p->graph.nodes.items[a]) == TF_RESOURCE_NONE) continue;
    for (uint32_t b = to->first; b != TF_NO_EDGE; b = p->next_node[b])
      if (base_map_get(&p->unsafe_set, tf_pair_key(a, b), &unused)) return true;
  }
  return false;
}

static bool tf_in_cluster(tf_pass *p, uint32_t node, const tf_cluster *c) {
  assert(c != NULL);
  return tf_cluster_of(p, node) == c;
}

/* An edge from a tainted node of one to a sensitive one of the other, looked for from the smaller side. */
bool tf_resources_conflict(tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  if (p->has_loops) return tf_pairs_conflict(p, from, to);
  if (!from->resources || !to->resources) return false;
  const tf_graph *g = &p->graph;
  if (from->size <= to->size) {
    for (uint32_t a = from->first; a != TF_NO_EDGE; a = p->next_node[a])
      if (p->taint[a] & TF_TAINTED) TF_EACH_OUT(g, &g->nodes.items[a], e) {
          uint32_t b = g->edges.items[e].dst;
          if ((p->taint[b] & TF_SENSITIVE) && tf_in_cluster(p, b, to)) return true;
        }
    return false;
  }
  for (uint32_t b = to->first; b != TF_NO_EDGE; b = p->next_node[b])
    if (p->taint[b] & TF_SENSITIVE) TF_EACH_IN(g, &g->nodes.items[b], e) {
        uint32_t a = g->edges.items[e].src;
        if ((p->taint[a] & TF_TAINTED) && tf_in_cluster(p, a, from)) return true;
      }
  return false;
}

/* Marks `id` and what follows from it within the two clusters. The stack is the cycle graph's, idle here. */
static bool tf_spread(tf_pass *p, uint32_t id, uint8_t mark, const tf_cluster *a, const tf_cluster *b) {
  assert(mark == TF_TAINTED || mark == TF_SENSITIVE);
  const tf_graph *g = &p->graph;
  tf_vertex_ids *stack = &p->cycles.stack;
  stack->n = 0;
  if (!BASE_VEC_PUSH(g->alloc, stack, id)) return false;
  while (stack->n > 0) {
    const tf_node *n = &g->nodes.items[stack->items[--stack->n]];
    uint32_t e = mark == TF_TAINTED ? n->first_out : n->first_in;
    while (e != TF_NO_EDGE) {
      const tf_edge *edge = &g->edges.items[e];
      uint32_t next = mark == TF_TAINTED ? edge->dst : edge->src;
      e = mark == TF_TAINTED ? edge->next_out : edge->next_in;
      if ((p->taint[next] & mark) || !(tf_in_cluster(p, next, a) || tf_in_cluster(p, next, b))) continue;
      p->taint[next] |= mark;
      if (!BASE_VEC_PUSH(g->alloc, stack, next)) return false;
    }
  }
  return true;
}

/* Marks cross from one to the other over the edges between them, found from the smaller side. */
int tf_resources_merged(tf_pass *p, const tf_cluster *from, const tf_cluster *to, xlac_error *err) {
  assert(from != to);
  const tf_graph *g = &p->graph;
  if (p->has_loops || (!from->resources && !to->resources)) return 0;
  const tf_cluster *small = from->size <= to->size ? from : to, *large = small == from ? to : from;
  for (uint32_t a = small->first; a != TF_NO_EDGE; a = p->next_node[a]) {
    TF_EACH_OUT(g, &g->nodes.items[a], e) {
      uint32_t b = g->edges.items[e].dst;
      if (!tf_in_cluster(p, b, large)) continue;
      if ((p->taint[a] & TF_TAINTED) && !tf_spread(p, a, TF_TAINTED, from, to)) return base_oom(err, "clustering");
      if ((p->taint[b] & TF_SENSITIVE) && !tf_spread(p, b, TF_SENSITIVE, from, to)) return base_oom(err, "clustering");
    }
    TF_EACH_IN(g, &g->nodes.items[a], e) {
      uint32_t b = g->edges.items[e].src;
      if (!tf_in_cluster(p, b, large)) continue;
      if ((p->taint[b] & TF_TAINTED) && !tf_spread(p, b, TF_TAINTED, from, to)) return base_oom(err, "clustering");
      if ((p->taint[a] & TF_SENSITIVE) && !tf_spread(p, a, TF_SENSITIVE, from, to)) return base_oom(err, "clustering");
    }
  }
  return 0;
}
