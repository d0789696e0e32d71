/* Writes NodeDefs as they were read, with attributes added. */
#include "graph_write.h"

#include "../text/proto_wire.h"

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
static void tf_put_marked(const tf_node_def *n, const base_istr *cluster, base_text *out) {
  size_t node = proto_begin(out, 1);
  base_put(out, n->bytes.p, n->bytes.n);
  if (cluster) {
    tf_put_attr(out, "_XlaAlreadyClustered", NULL);
    tf_put_attr(out, "_XlaCluster", cluster);
  }
  proto_end(out, node);
}

int tf_write_clustered(const tf_pass *p, base_text *out, xlac_error *err) {
  const tf_graph_def *def = p->def;
  const base_istr **by_place = base_malloc(p->graph.alloc, (def->n_nodes + (size_t)1) * sizeof *by_place);
  if (!by_place) return base_oom(err, "writing a graph");
  memset(by_place, 0, (def->n_nodes + (size_t)1) * sizeof *by_place);
  for (uint32_t i = TF_SINK + 1; i < p->graph.nodes.n; i++)
    by_place[p->graph.nodes.items[i].def - def->nodes] = p->result[i];
  const char *at = def->bytes, *end = def->bytes + def->n_bytes, *from = at;
  uint32_t place = 0;
  for (tf_raw_field f; tf_raw_next(&at, end, &f); from = at) {
    if (f.number == 1 && f.wire == 2 && place < def->n_nodes) {
      tf_put_marked(&def->nodes[place], by_place[place], out);
      place++;
    } else {
      base_put(out, from, (size_t)(at - from));
    }
  }
  base_free(p->graph.alloc, by_place);
  return out->failed ? base_oom(err, "writing a graph") : 0;
}
