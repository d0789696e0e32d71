/* The first part of PartiallyDeclusterPass: a clustered node that gives a value in the host's memory to somebody
 * outside its cluster who wants it there gets a copy outside the cluster, which spares the way over the device. */
#include "host_memory.h"
#include "pass.h"

BASE_VEC(tf_marks, uint8_t);

typedef struct tf_host_pass {
  tf_pass *p;
  uint8_t *chosen; /* by node */
  uint8_t *memory; /* of two nodes */
  tf_marks gone;   /* by edge */
  xlac_error *err;
} tf_host_pass;

static bool tf_has_host_edge(tf_host_pass *h, uint32_t id) {
  const tf_graph *g = &h->p->graph;
  const tf_node *n = &g->nodes.items[id];
  base_slice device =
      h->p->device_of[id] == TF_NO_DEVICE ? BASE_SLICE("") : h->p->devices.items[h->p->device_of[id]].type;
  uint8_t *own = h->memory, *other = own + n->n_inputs + n->n_outputs;
  tf_host_memory(n, device, own);
  TF_EACH_OUT(g, n, e) {
    const tf_edge *edge = &g->edges.items[e];
    const tf_node *dst = &g->nodes.items[edge->dst];
    if (edge->src_output == TF_CONTROL || !own[n->n_inputs + (uint32_t)edge->src_output]) continue;
    tf_host_memory(dst, device, other); /* the producer's device, as TensorFlow asks */
    bool inside = !h->chosen[edge->dst] && h->p->result[edge->dst] == h->p->result[id];
    if (other[edge->dst_input] && !inside) return true;
  }
  return false;
}

static bool tf_only_shape_counts(const tf_node *n) {
  return tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size");
}

static void tf_choose_for_host(tf_host_pass *h, const uint32_t *order, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    const tf_node *node = &h->p->graph.nodes.items[order[i]];
    if (!h->p->result[order[i]] || tf_only_shape_counts(node) || tf_has_type(node, TF_RESOURCE)) continue;
    h->chosen[order[i]] = tf_has_host_edge(h, order[i]);
  }
}

/* --- copies --- */

static const base_istr *tf_copy_name(const tf_pass *p, uint32_t id, bool make) {
  base_text name = {.alloc = p->graph.alloc};
  base_putf(&name, "%s/declustered", p->graph.nodes.items[id].name->s);
  const base_istr *known = name.failed ? NULL
                           : make      ? base_intern(&p->def->strings, name.s, name.n)
                                       : base_intern_find(&p->def->strings, name.s, name.n);
  base_text_free(&name);
  return known;
}

uint32_t tf_standing_node(const tf_pass *p, uint32_t id) {
  if (p->left[id] != TF_LEFT_NOTHING) return id;
  const base_istr *name = tf_copy_name(p, id, false);
  for (uint32_t i = p->n_clustered; i < p->graph.nodes.n; i++)
    if (p->graph.nodes.items[i].name == name) return i;
  return id;
}

static int tf_host_edge(tf_host_pass *h, uint32_t src, int32_t output, uint32_t dst, int32_t input) {
  TRY(tf_graph_add_edge(&h->p->graph, src, output, dst, input, h->err));
  return BASE_VEC_PUSH(h->p->graph.alloc, &h->gone, 0) ? 0 : base_oom(h->err, "declustering");
}

static int tf_copy_outside(tf_host_pass *h, uint32_t id, uint32_t *out) {
  tf_pass *p = h->p;
  const base_istr *name = tf_copy_name(p, id, true);
  if (!name) return base_oom(h->err, "declustering");
  TRY(tf_graph_copy_node(&p->graph, id, name, out, h->err));
  p->device_of[*out] = p->device_of[id];
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e) {
    tf_edge edge = p->graph.edges.items[e];
    if (!h->gone.items[e]) TRY(tf_host_edge(h, edge.src, edge.src_output, *out, edge.dst_input));
  }
  return 0;
}

/* Users outside take the copy; a node without users left goes. */
static int tf_move_users(tf_host_pass *h, uint32_t id) {
  tf_pass *p = h->p;
  uint32_t copy = 0, users = 0, end = p->graph.edges.n;
  TRY(tf_copy_outside(h, id, &copy));
  for (uint32_t e = p->graph.nodes.items[id].first_out; e < end; e = p->graph.edges.items[e].next_out) {
    tf_edge edge = p->graph.edges.items[e];
    if (h->gone.items[e]) continue;
    bool moves = edge.src_output != TF_CONTROL && p->result[edge.dst] != p->result[id];
    users += !moves;
    if (!moves) continue;
    TRY(tf_host_edge(h, copy, edge.src_output, edge.dst, edge.dst_input));
    h->gone.items[e] = 1;
  }
  if (users > 0) return 0;
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e) h->gone.items[e] = 1;
  p->result[id] = NULL;
  p->left[id] = TF_LEFT_NOTHING;
  return 0;
}

static int tf_decluster_in(tf_host_pass *h, uint32_t *order) {
  tf_graph *g = &h->p->graph;
  uint32_t n = 0;
  bool any = false;
  TRY(tf_reverse_post_order(g, order, &n, h->err));
  tf_choose_for_host(h, order, n);
  for (uint32_t i = 0; i < n; i++) any |= h->chosen[order[i]] != 0;
  if (!any) return 0;
  for (uint32_t i = 0; i < g->edges.n; i++)
    if (!BASE_VEC_PUSH(g->alloc, &h->gone, 0)) return base_oom(h->err, "declustering");
  for (uint32_t i = n; i-- > 0;)
    if (h->chosen[order[i]]) TRY(tf_move_users(h, order[i]));
  return tf_graph_drop_edges(g, h->gone.items, h->gone.n, h->err);
}

static uint32_t tf_most_values(const tf_graph *g) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < g->nodes.n; i++) {
    uint32_t values = g->nodes.items[i].n_inputs + g->nodes.items[i].n_outputs;
    if (values > most) most = values;
  }
  return most;
}

int tf_decluster_for_host(tf_pass *p, uint32_t *order, xlac_error *err) {
  base_alloc alloc = p->graph.alloc;
  tf_host_pass h = {.p = p, .err = err};
  h.chosen = base_malloc(alloc, p->graph.nodes.n);
  h.memory = base_malloc(alloc, 2 * (size_t)tf_most_values(&p->graph) + 1);
  int status = h.chosen && h.memory ? 0 : base_oom(err, "declustering");
  if (status == 0) {
    memset(h.chosen, 0, p->graph.nodes.n);
    status = tf_decluster_in(&h, order);
  }
  BASE_VEC_FREE(alloc, &h.gone);
  base_free(alloc, h.chosen);
  base_free(alloc, h.memory);
  return status;
}
