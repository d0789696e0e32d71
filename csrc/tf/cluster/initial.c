/* The clusters contraction begins with: one for each candidate. */
#include "../graph/callees.h"
#include "resources.h"

/* The cluster of a node by union-find over nodes, halving paths. */
tf_cluster *tf_cluster_of(tf_pass *p, uint32_t node) {
  if (node >= p->graph.nodes.n || p->cluster_of[node] == TF_NO_EDGE) return NULL;
  while (p->cluster_of[node] != node) {
    p->cluster_of[node] = p->cluster_of[p->cluster_of[node]];
    node = p->cluster_of[node];
  }
  return &p->clusters[node];
}

static const base_istr *tf_scope_of(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  base_slice s;
  if (p->scopes[id] && p->jit_level > 0) return p->scopes[id];
  const char *key = p->jit_level > 0 ? "_XlaInternalScope" : "_XlaScope";
  if (!tf_attr_string(tf_attr_find(n->def->attrs, key), &s) || s.n == 0) return NULL;
  return base_intern(&p->def->strings, s.p, s.n);
}

static bool tf_counts_nothing(const tf_node *n) {
  return n->role == TF_ROLE_IDENTITY || n->role == TF_ROLE_CONST;
}

static int tf_begin_cluster(tf_pass *p, uint32_t id, xlac_error *err) {
  const tf_node *n = &p->graph.nodes.items[id];
  bool resource = tf_has_type(n, TF_RESOURCE);
  p->cluster_of[id] = id;
  p->next_node[id] = TF_NO_EDGE;
  p->clusters[id] = (tf_cluster){
      .size = 1,
      .effective = !tf_counts_nothing(n),
      .vertex = id,
      .resource_device = resource ? p->device_of[id] : TF_NO_DEVICE,
      .scope = tf_scope_of(p, id),
      .deadness = p->has_deadness ? p->deadness.control[id] : NULL,
      .first = id,
      .last = id,
      .functional = tf_is_functional_control_flow(n),
      .forced = tf_is_forced(p, n),
      .resources = resource || tf_may_call_function(n),
  };
  return tf_device_set_of(p, p->device_of[id], &p->clusters[id].devices, err);
}

int tf_build_clusters(tf_pass *p, xlac_error *err) {
  uint32_t device = TF_NO_DEVICE;
  p->one_device = true;
  for (uint32_t id = 0; id < p->graph.nodes.n; id++) {
    p->cluster_of[id] = TF_NO_EDGE;
    if (!p->candidate[id]) continue;
    TRY(tf_begin_cluster(p, id, err));
    if (device == TF_NO_DEVICE) device = p->device_of[id];
    p->one_device = p->one_device && p->device_of[id] == device;
  }
  return 0;
}
