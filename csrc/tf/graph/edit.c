/* Changes of an imported graph, and NodeDefs of what it then is. */
#include "../../text/proto/wire.h"
#include "graph.h"

int tf_graph_copy_node(tf_graph *g, uint32_t id, const base_istr *name, uint32_t *out, xlac_error *err) {
  tf_node_def *def = base_arena_alloc(&g->def->arena, sizeof *def);
  if (!def) return base_oom(err, "copying a node");
  *def = *g->nodes.items[id].def;
  def->name = name;
  tf_node node = g->nodes.items[id];
  node.def = def;
  node.name = name;
  g->edited = true;
  return tf_graph_add_node(g, &node, out, err);
}

int tf_graph_drop_edges(tf_graph *g, const uint8_t *gone, uint32_t n, xlac_error *err) {
  tf_edge_list old = g->edges;
  int status = 0;
  g->edges = (tf_edge_list){.n = 0};
  for (uint32_t i = 0; i < g->nodes.n; i++) {
    tf_node *node = &g->nodes.items[i];
    node->first_in = node->last_in = node->first_out = node->last_out = TF_NO_EDGE;
    node->n_in = node->n_out = 0;
  }
  for (uint32_t i = 0; i < old.n && status == 0; i++) {
    const tf_edge *e = &old.items[i];
    if (i >= n || !gone[i]) status = tf_graph_add_edge(g, e->src, e->src_output, e->dst, e->dst_input, err);
  }
  BASE_VEC_FREE(g->alloc, &old);
  g->edited = true;
  return status;
}

/* --- NodeDefs --- */

static const base_istr *tf_written_name(const tf_graph *g, uint32_t id, const base_istr *const *names) {
  return names ? names[id] : g->nodes.items[id].name;
}

static void tf_put_edge_input(const tf_graph *g, const tf_edge *e, const base_istr *const *names, base_text *out) {
  base_text text = {.alloc = g->alloc};
  const base_istr *name = tf_written_name(g, e->src, names);
  if (e->dst_input == TF_CONTROL) base_putc(&text, '^');
  base_put(&text, name->s, name->n);
  if (e->src_output > 0) base_putf(&text, ":%d", e->src_output);
  proto_put_bytes(out, 3, text.s, text.n);
  out->failed = out->failed || text.failed;
  base_text_free(&text);
}

static int tf_put_inputs(const tf_graph *g, const tf_node *n, const base_istr *const *names, base_text *out,
                         xlac_error *err) {
  uint32_t *data = base_malloc(g->alloc, (n->n_inputs + (size_t)1) * sizeof *data);
  if (!data) return base_oom(err, "writing a graph");
  for (uint32_t i = 0; i < n->n_inputs; i++) data[i] = TF_NO_EDGE;
  TF_EACH_IN(g, n, e) if (g->edges.items[e].dst_input >= 0) data[g->edges.items[e].dst_input] = e;
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (data[i] != TF_NO_EDGE) tf_put_edge_input(g, &g->edges.items[data[i]], names, out);
  TF_EACH_IN(g, n, e) {
    const tf_edge *edge = &g->edges.items[e];
    if (edge->dst_input == TF_CONTROL && edge->src != TF_SOURCE) tf_put_edge_input(g, edge, names, out);
  }
  base_free(g->alloc, data);
  return 0;
}

int tf_graph_put_node(const tf_graph *g, uint32_t id, const base_istr *const *names, base_text *out, xlac_error *err) {
  const tf_node *n = &g->nodes.items[id];
  const char *at = n->def->bytes.p, *end = at + n->def->bytes.n, *from = at;
  const base_istr *name = tf_written_name(g, id, names);
  proto_put_bytes(out, 1, name->s, name->n);
  TRY(tf_put_inputs(g, n, names, out, err));
  for (tf_raw_field f; tf_raw_next(&at, end, &f); from = at)
    if (f.number != 1 && f.number != 3) base_put(out, from, (size_t)(at - from));
  return out->failed ? base_oom(err, "writing a graph") : 0;
}
