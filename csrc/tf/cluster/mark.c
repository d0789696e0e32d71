/* Names for the clusters that are worth compiling, and marks on their nodes. */
#include <stdio.h>

#include "pass.h"

/* A constant-filled tensor that only others use is cheaper made by them. It still counts in the size of its cluster. */
static bool tf_is_fill_for_others(tf_pass *p, uint32_t id, const tf_cluster *c) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (!tf_node_is(n, "Fill") || n->n_out == 0) return false;
  TF_EACH_OUT(&p->graph, n, e)
  if (tf_cluster_of(p, p->graph.edges.items[e].dst) == c) return false;
  return true;
}

enum { TF_LARGE_CONSTANT = 16384 }; /* elements */

/* A large constant that somebody outside uses, too: there would be two of it. */
static bool tf_is_large_for_others(tf_pass *p, uint32_t id, const tf_cluster *c) {
  const tf_node *n = &p->graph.nodes.items[id];
  int64_t elements = 0;
  base_slice tensor;
  if (n->role != TF_ROLE_CONST || !tf_attr_tensor(tf_attr_find(n->def->attrs, "value"), &tensor)) return false;
  if (!tf_count_elements(tensor, TF_LARGE_CONSTANT + 1, &elements) || elements <= TF_LARGE_CONSTANT) return false;
  TF_EACH_OUT(&p->graph, n, e)
  if (tf_cluster_of(p, p->graph.edges.items[e].dst) != c) return true;
  return false;
}

static bool tf_is_worth_it(const tf_pass *p, const tf_cluster *c) {
  if (!tf_should_compile(p, c->forced, c->devices->chosen)) return false;
  return c->effective >= p->flags.min_cluster_size || c->functional || c->forced;
}

/* A number for the graph as it stands: names stay the same for the same graph. Not TensorFlow's number, which depends
 * on how it serialises. */
static uint64_t tf_fingerprint(const tf_graph_def *def) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = 0; i < def->n_bytes; i++) hash = (hash ^ (uint8_t)def->bytes[i]) * 0x100000001B3u;
  return hash;
}

static const base_istr *tf_next_cluster_name(tf_pass *p, uint32_t number) {
  char name[400], fingerprint[32] = "";
  const char *session = p->flags.session_name[0] ? p->flags.session_name : "cluster";
  if (p->flags.deterministic_cluster_names)
    snprintf(fingerprint, sizeof fingerprint, "%llu_", (unsigned long long)tf_fingerprint(p->def));
  int n = snprintf(name, sizeof name, "%.300s_%s%u", session, fingerprint, number);
  return base_intern(&p->def->strings, name, (size_t)n);
}

int tf_mark_clusters(tf_pass *p, xlac_error *err) {
  const base_istr **names = base_malloc(p->graph.alloc, (size_t)p->graph.nodes.n * sizeof *names);
  uint32_t number = 0;
  int status = names ? 0 : base_oom(err, "clustering");
  if (names) memset(names, 0, (size_t)p->graph.nodes.n * sizeof *names);
  for (uint32_t id = 0; id < p->graph.nodes.n && status == 0; id++) {
    tf_cluster *c = tf_cluster_of(p, id);
    if (!c || !tf_is_worth_it(p, c) || tf_is_fill_for_others(p, id, c) || tf_is_large_for_others(p, id, c)) continue;
    const base_istr **name = &names[c - p->clusters];
    if (!*name) *name = tf_next_cluster_name(p, number++);
    if (!*name) status = base_oom(err, "clustering");
    p->result[id] = *name;
  }
  base_free(p->graph.alloc, names);
  return status;
}
