/* The two passes that TensorFlow runs before it looks for clusters: CloneConstantsForBetterClusteringPass and
 * ClusterScopingPass. */
#include <stdio.h>

#include "../graph/graph.h"
#include "pass.h"

/* --- CloneConstantsForBetterClusteringPass --- */

/* Constants below this many elements are cheaper copied than sent from one cluster to another. */
enum { TF_SMALL_CONSTANT = 16 }; /* elements */

/* CloneConstantsForBetterClusteringPass: each consumer of a small constant gets one of its own, so that a constant
 * that two clusters need is part of both. Ids, names and the order of edges are TensorFlow's; so is that the
 * control edge out of a constant stays beside the one out of its copy. */
typedef struct tf_cloner {
  tf_graph *g;
  base_map names; /* interned names of the nodes there were */
  uint8_t *gone;  /* by edge there was */
  uint32_t n_edges;
  uint32_t *n_out; /* by node there was: edges out of it that are left */
  uint32_t n_nodes;
  uint64_t counter;
  xlac_error *err;
} tf_cloner;

/* Fields of TensorProto: 2 is the shape, in it 2 a dimension, in that 1 its size. Products stop at `most`, but a
 * dimension of 0 makes the count 0 wherever it stands. */
bool tf_count_elements(base_slice tensor, int64_t most, int64_t *count) {
  assert(most > 0);
  tf_raw_field shape, dim, size;
  *count = 1;
  if (!tf_raw_find(tensor, 2, &shape)) return true;
  const char *at = shape.bytes.p, *end = at + shape.bytes.n;
  while (tf_raw_next(&at, end, &dim)) {
    if (dim.number != 2 || dim.wire != 2) continue;
    int64_t n = tf_raw_find(dim.bytes, 1, &size) ? (int64_t)size.value : 0;
    if (n < 0) return false;
    *count = n < most && *count < most && *count * n < most ? *count * n : n == 0 ? 0 : *count == 0 ? 0 : most;
  }
  return true;
}

/* An error, not "no", for a size below 0: TensorFlow's pass fails there. */
static int tf_is_small_constant(const tf_cloner *c, const tf_node *n, bool *small) {
  base_slice tensor;
  int64_t count = 0;
  *small = false;
  if (n->role != TF_ROLE_CONST || !tf_attr_tensor(tf_attr_find(n->def->attrs, "value"), &tensor)) return 0;
  if (!tf_count_elements(tensor, TF_SMALL_CONSTANT, &count))
    return base_fail(c->err, XLAC_E_BAD_ATTRIBUTE, "node '%.120s': its constant has a dimension of unknown size",
                     n->name->s);
  *small = count < TF_SMALL_CONSTANT;
  return 0;
}

/* "name/clone_0": one counter for the whole graph, past names that are taken. */
static int tf_clone_name(tf_cloner *c, const base_istr *of, const base_istr **out) {
  base_text text = {.alloc = c->g->alloc};
  uint64_t unused;
  do {
    text.n = 0;
    base_put(&text, of->s, of->n);
    base_putf(&text, "/clone_%llu", (unsigned long long)c->counter++);
    *out = text.failed ? NULL : base_intern(&c->g->def->strings, text.s, text.n);
  } while (*out && base_map_get(&c->names, base_key(*out), &unused));
  base_text_free(&text);
  return *out ? 0 : base_oom(c->err, "cloning constants");
}

/* The copy waits for what the constant waits for: its inputs are control edges. */
static int tf_clone_constant(tf_cloner *c, uint32_t id, uint32_t *out) {
  const base_istr *name = NULL;
  TRY(tf_clone_name(c, c->g->nodes.items[id].name, &name));
  TRY(tf_graph_copy_node(c->g, id, name, out, c->err));
  TF_EACH_IN(c->g, &c->g->nodes.items[id], e) {
    tf_edge edge = c->g->edges.items[e];
    TRY(tf_graph_add_edge(c->g, edge.src, edge.src_output, *out, edge.dst_input, c->err));
    if (edge.src < c->n_nodes) c->n_out[edge.src]++;
  }
  return 0;
}

/* Walks the edges that were there before; the ones of copies are put behind them. The last consumer keeps the
 * original. */
static int tf_clone_inputs(tf_cloner *c, uint32_t id) {
  assert(id < c->n_nodes);
  for (uint32_t e = c->g->nodes.items[id].first_in; e < c->n_edges; e = c->g->edges.items[e].next_in) {
    tf_edge edge = c->g->edges.items[e];
    bool small;
    uint32_t clone;
    TRY(tf_is_small_constant(c, &c->g->nodes.items[edge.src], &small));
    if (!small || c->n_out[edge.src] == 1) continue;
    TRY(tf_clone_constant(c, edge.src, &clone));
    TRY(tf_graph_add_edge(c->g, clone, edge.src_output, id, edge.dst_input, c->err));
    if (edge.dst_input == TF_CONTROL) continue;
    c->gone[e] = 1;
    c->n_out[edge.src]--;
  }
  return 0;
}

/* A graph with one of these is left alone: copies of a constant that is written to would be different values. */
static bool tf_writes_in_place(const tf_node *n) {
  return tf_node_is(n, "InplaceUpdate") || tf_node_is(n, "InplaceAdd") || tf_node_is(n, "InplaceSub");
}

static int tf_clone_all(tf_cloner *c) {
  assert(c->n_nodes > TF_SINK);
  for (uint32_t i = 0; i < c->n_nodes; i++) {
    if (tf_writes_in_place(&c->g->nodes.items[i])) return 0;
    c->n_out[i] = c->g->nodes.items[i].n_out;
    if (!base_map_set(&c->names, base_key(c->g->nodes.items[i].name), 1)) return base_oom(c->err, "cloning constants");
  }
  for (uint32_t i = 0; i < c->n_nodes; i++) TRY(tf_clone_inputs(c, i));
  return tf_graph_drop_edges(c->g, c->gone, c->n_edges, c->err);
}

int tf_clone_constants(tf_graph *g, xlac_error *err) {
  tf_cloner c = {.g = g, .n_edges = g->edges.n, .n_nodes = g->nodes.n, .err = err};
  base_map_init(&c.names, g->alloc);
  c.gone = base_malloc(g->alloc, g->edges.n + (size_t)1);
  c.n_out = base_malloc(g->alloc, g->nodes.n * sizeof *c.n_out);
  int status = c.gone && c.n_out ? 0 : base_oom(err, "cloning constants");
  if (status == 0) {
    memset(c.gone, 0, g->edges.n + (size_t)1);
    status = tf_clone_all(&c);
  }
  base_map_free(&c.names);
  base_free(g->alloc, c.gone);
  base_free(g->alloc, c.n_out);
  return status;
}

/* --- ClusterScopingPass --- */

/* ClusterScopingPass: what feeds a Stage and what an Unstage feeds get scopes of their own, so that stages of a
 * pipeline, which are meant to run at the same time, do not become one cluster. Scopes add up, "a&_0&_1": nodes
 * between two stages belong to both. */
static int tf_append_scope(tf_pass *p, uint32_t id, const char *suffix, xlac_error *err) {
  char joined[512];
  const tf_node *n = &p->graph.nodes.items[id];
  base_slice own = {"", 0};
  if (p->scopes[id])
    own = (base_slice){p->scopes[id]->s, p->scopes[id]->n};
  else if (tf_is_op(n))
    (void)tf_attr_string(tf_attr_find(n->def->attrs, "_XlaInternalScope"), &own);
  int size = own.n ? snprintf(joined, sizeof joined, "%.*s&%s", (int)(own.n < 480 ? own.n : 480), own.p, suffix)
                   : snprintf(joined, sizeof joined, "%s", suffix);
  p->scopes[id] = base_intern(&p->def->strings, joined, (size_t)size);
  return p->scopes[id] ? 0 : base_oom(err, "scoping stages");
}

/* Depth first over edges of all kinds; `seen` has a byte for each node. The stack is the cycle graph's, which is
 * built later. */
static int tf_scope_from(tf_pass *p, uint32_t start, bool forward, const char *suffix, uint8_t *seen, xlac_error *err) {
  assert(start < p->graph.nodes.n);
  tf_vertex_ids *stack = &p->cycles.stack;
  const tf_graph *g = &p->graph;
  memset(seen, 0, g->nodes.n);
  stack->n = 0;
  seen[start] = 1;
  if (!BASE_VEC_PUSH(g->alloc, stack, start)) return base_oom(err, "scoping stages");
  while (stack->n > 0) {
    uint32_t id = stack->items[--stack->n];
    const tf_node *n = &g->nodes.items[id];
    TRY(tf_append_scope(p, id, suffix, err));
    for (uint32_t e = forward ? n->first_out : n->first_in; e != TF_NO_EDGE;) {
      const tf_edge *edge = &g->edges.items[e];
      uint32_t next = forward ? edge->dst : edge->src;
      e = forward ? edge->next_out : edge->next_in;
      if (seen[next]) continue;
      seen[next] = 1;
      if (!BASE_VEC_PUSH(g->alloc, stack, next)) return base_oom(err, "scoping stages");
    }
  }
  return 0;
}

/* Numbers are given in the order of ids to Stages and Unstages alike. */
int tf_scope_stages(tf_pass *p, xlac_error *err) {
  uint32_t number = 0;
  char suffix[16];
  int status = 0;
  uint8_t *seen = base_malloc(p->graph.alloc, p->graph.nodes.n);
  if (!seen) return base_oom(err, "scoping stages");
  for (uint32_t id = 0; id < p->graph.nodes.n && status == 0; id++) {
    const tf_node *n = &p->graph.nodes.items[id];
    bool stage = tf_node_is(n, "Stage"), unstage = tf_node_is(n, "Unstage");
    if (!stage && !unstage) continue;
    snprintf(suffix, sizeof suffix, "_%u", number++);
    status = tf_scope_from(p, id, unstage, suffix, seen, err);
  }
  base_free(p->graph.alloc, seen);
  return status;
}
