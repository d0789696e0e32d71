/* Writes NodeDefs as they were read, with attributes added. A graph that no pass has edited is copied field by
 * field, so that it differs from what was read by the marks alone; nodes that were edited are written anew. */
#include "graph_write.h"

#include "../../text/proto/wire.h"

/* A map entry: a string attribute, or `true` where text is NULL. */
static void tf_put_attr(base_text *out, const char *key, const base_istr *text) {
  size_t entry = proto_begin(out, 5);
  proto_put_bytes(out, 1, key, strlen(key));
  size_t value = proto_begin(out, 2);
  if (text)
    proto_put_bytes(out, 2, text->s, text->n);
  else
    proto_put_int_always(out, 5, 1);
  proto_end(out, value);
  proto_end(out, entry);
}

/* A map's later entry wins, so marks of an earlier clustering need not be taken out. */
static int tf_put_marked(const tf_pass *p, uint32_t id, const base_istr *const *names, base_text *out,
                         xlac_error *err) {
  const tf_node_def *n = p->graph.nodes.items[id].def;
  if (p->left[id] == TF_LEFT_NOTHING) return 0;
  size_t node = proto_begin(out, 1);
  if (p->graph.edited || names)
    TRY(tf_graph_put_node(&p->graph, id, names, out, err));
  else
    base_put(out, n->bytes.p, n->bytes.n);
  if (p->result[id]) {
    tf_put_attr(out, "_XlaAlreadyClustered", NULL);
    tf_put_attr(out, "_XlaCluster", p->result[id]);
  }
  proto_end(out, node);
  return 0;
}

/* All fields as they were; after the last node those that passes have added. */
static int tf_put_graph(const tf_pass *p, const uint32_t *by_place, const base_istr *const *names, base_text *out,
                        xlac_error *err) {
  const tf_graph_def *def = p->def;
  const char *at = def->bytes, *end = def->bytes + def->n_bytes, *from = at;
  uint32_t place = 0;
  for (tf_raw_field f; tf_raw_next(&at, end, &f); from = at) {
    if (f.number == 1 && f.wire == 2 && place < def->n_nodes)
      TRY(tf_put_marked(p, by_place[place++], names, out, err));
    else
      base_put(out, from, (size_t)(at - from));
  }
  for (uint32_t id = TF_SINK + 1 + def->n_nodes; id < p->graph.nodes.n; id++)
    TRY(tf_put_marked(p, id, names, out, err));
  return 0;
}

/* `names` by node id, NULL for their own. by_place finds the node of each NodeDef, since ids follow import's
 * order. */
static int tf_write_named(const tf_pass *p, const base_istr *const *names, base_text *out, xlac_error *err) {
  assert(p->graph.nodes.n > TF_SINK + p->def->n_nodes);
  const tf_graph_def *def = p->def;
  uint32_t *by_place = base_malloc(p->graph.alloc, (def->n_nodes + (size_t)1) * sizeof *by_place);
  if (!by_place) return base_oom(err, "writing a graph");
  for (uint32_t id = TF_SINK + 1; id < TF_SINK + 1 + def->n_nodes; id++)
    by_place[p->graph.nodes.items[id].def - def->nodes] = id;
  int status = tf_put_graph(p, by_place, names, out, err);
  base_free(p->graph.alloc, by_place);
  if (status != 0) return status;
  return out->failed ? base_oom(err, "writing a graph") : 0;
}

int tf_write_clustered(const tf_pass *p, base_text *out, xlac_error *err) {
  return tf_write_named(p, NULL, out, err);
}

/* --- annotated --- */

/* NULL when out of memory. VarHandleOps keep together, apart from other nodes outside of clusters. */
static const base_istr *tf_annotated_name(const tf_pass *p, uint32_t id, base_text *text) {
  const tf_node *n = &p->graph.nodes.items[id];
  const char *room = tf_node_is(n, "VarHandleOp") ? "varhandle" : "unclustered";
  text->n = 0;
  base_putf(text, "%s/%s", p->result[id] ? p->result[id]->s : room, n->name->s);
  return text->failed ? NULL : base_intern(&p->def->strings, text->s, text->n);
}

/* Names of all nodes first: inputs are written with them, too. */
int tf_write_annotated(const tf_pass *p, base_text *out, xlac_error *err) {
  uint32_t n = p->graph.nodes.n;
  const base_istr **names = base_malloc(p->graph.alloc, n * sizeof *names);
  base_text text = {.alloc = p->graph.alloc};
  int status = names ? 0 : base_oom(err, "writing a graph");
  for (uint32_t id = TF_SINK + 1; id < n && status == 0; id++) {
    names[id] = tf_annotated_name(p, id, &text);
    if (!names[id]) status = base_oom(err, "writing a graph");
  }
  if (status == 0) status = tf_write_named(p, names, out, err);
  base_text_free(&text);
  base_free(p->graph.alloc, names);
  return status;
}
