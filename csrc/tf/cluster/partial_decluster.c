/* PartiallyDeclusterPass: values that users outside want in the host's memory are computed outside (decluster_host.c);
 * then nodes at a cluster's border that would make it compile again for each value they give (of constants only those
 * that wait for another device), and ops that only look at
 * the shape of what comes from outside, leave the cluster. */
#include "pass.h"

static bool tf_same_cluster(const void *ctx, const tf_edge *e) {
  const tf_pass *p = ctx;
  return p->result[e->src] && p->result[e->src] == p->result[e->dst];
}

static bool tf_has_neighbour(const tf_pass *p, uint32_t id) {
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e)
  if (p->result[p->graph.edges.items[e].src] == p->result[id]) return true;
  return false;
}

/* Whether nothing but compiled code can run it. */
static bool tf_must_stay(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  const tf_device_registration *r =
      p->device_of[id] == TF_NO_DEVICE ? NULL : p->devices.items[p->device_of[id]].registration;
  return (r && r->autoclustering_policy == XLAC_CLUSTER_ALWAYS) || !(n->op->flags & TF_OP_HOST);
}

/* Of constants, those that wait for another device: they may be part of how loops on two devices keep in step. */
static bool tf_is_local_const(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (n->role != TF_ROLE_CONST) return false;
  TF_EACH_IN(&p->graph, n, e) {
    uint32_t device = p->device_of[p->graph.edges.items[e].src];
    if (device != TF_NO_DEVICE && device != p->device_of[id]) return false;
  }
  return true;
}

static bool tf_looks_at_shape(const tf_node *n) {
  return tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size");
}

static void tf_leave(tf_pass *p, uint32_t id, tf_left why) {
  p->result[id] = NULL;
  p->left[id] = (uint8_t)why;
}

static int tf_decluster_in_order(tf_pass *p, uint32_t *order, uint8_t *constant, xlac_error *err) {
  uint32_t n = 0;
  TRY(tf_decluster_for_host(p, order, err));
  TRY(tf_must_be_constant(&p->bodies, &p->graph, tf_same_cluster, p, constant, err));
  TRY(tf_reverse_post_order(&p->graph, order, &n, err));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    if (!p->result[id] || !constant[id] || tf_is_local_const(p, id)) continue;
    if (!tf_has_neighbour(p, id) && !tf_must_stay(p, id)) tf_leave(p, id, TF_LEFT_CONSTANT);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    if (p->result[id] && tf_looks_at_shape(&p->graph.nodes.items[id]) && !tf_has_neighbour(p, id))
      tf_leave(p, id, TF_LEFT_SHAPE);
  }
  return 0;
}

int tf_partially_decluster(tf_pass *p, xlac_error *err) {
  size_t room = 2 * (size_t)p->graph.nodes.n; /* each node may get a copy */
  uint32_t *order = base_malloc(p->graph.alloc, room * sizeof *order);
  uint8_t *constant = base_malloc(p->graph.alloc, room);
  int status = order && constant ? tf_decluster_in_order(p, order, constant, err) : base_oom(err, "declustering");
  base_free(p->graph.alloc, order);
  base_free(p->graph.alloc, constant);
  return status;
}
