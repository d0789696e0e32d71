/* Contraction: edges between clusters, in the post-order of the cycle graph, until nothing changes. */
#include "pass.h"

const char *tf_obstacle_text(tf_obstacle o) {
  static const char *const texts[] = {
#define OBSTACLE(name, text) text,
#include "obstacles.def"
#undef OBSTACLE
  };
  assert(o < sizeof texts / sizeof *texts);
  return texts[o];
}

/* --- what stands in the way --- */

static int tf_devices_fit(tf_pass *p, const tf_cluster *a, const tf_cluster *b, bool *out, xlac_error *err) {
  const tf_device_set *joined = NULL;
  TRY(tf_join_devices(p, a->devices, b->devices, &joined, err));
  uint32_t chosen = joined->chosen;
  *out = chosen != TF_NO_DEVICE && (a->resource_device == TF_NO_DEVICE || a->resource_device == chosen) &&
         (b->resource_device == TF_NO_DEVICE || b->resource_device == chosen);
  return 0;
}

/* A cluster that feeds `to` will feed the joined one: it must be of a kind that may. */
static int tf_neighbours_fit(tf_pass *p, const tf_cluster *from, const tf_cluster *to, bool *fit, xlac_error *err) {
  const tf_vertex_set *in = &p->cycles.v.items[to->vertex].in;
  *fit = true;
  for (uint32_t i = 0; i < in->n && *fit; i++) {
    const tf_cluster *before = tf_cluster_of(p, in->items[i]);
    if (!before) continue;
    TRY(tf_devices_fit(p, from, before, fit, err));
    if (*fit) TRY(tf_devices_fit(p, to, before, fit, err));
  }
  return 0;
}

static int tf_obstacle_before_cycle(tf_pass *p, const tf_cluster *from, const tf_cluster *to, tf_obstacle *why,
                                    xlac_error *err) {
  bool fit = true;
  *why = TF_OBSTACLE_DEADNESS;
  if (from->deadness != to->deadness) return 0;
  *why = TF_OBSTACLE_DEVICE;
  if (!p->one_device) TRY(tf_devices_fit(p, from, to, &fit, err));
  if (!fit) return 0;
  *why = TF_OBSTACLE_SCOPE;
  if (from->scope && to->scope && from->scope != to->scope) return 0;
  *why = TF_OBSTACLE_SIZE;
  if ((int64_t)from->size + to->size > p->flags.max_cluster_size) return 0;
  *why = TF_OBSTACLE_NEIGHBOUR_DEVICE;
  if (!p->one_device) TRY(tf_neighbours_fit(p, from, to, &fit, err));
  if (!fit) return 0;
  *why = tf_resources_conflict(p, from, to) ? TF_OBSTACLE_RESOURCE : TF_OBSTACLE_NONE;
  return 0;
}

int tf_find_obstacle(tf_pass *p, tf_cluster *from, tf_cluster *to, tf_obstacle *why, xlac_error *err) {
  uint32_t n = 0;
  TRY(tf_obstacle_before_cycle(p, from, to, why, err));
  if (*why != TF_OBSTACLE_NONE) return 0;
  TRY(tf_cycles_path(&p->cycles, from->vertex, to->vertex, NULL, 0, &n, err));
  if (n > 0) *why = TF_OBSTACLE_CYCLE;
  return 0;
}

/* --- one edge --- */

static void tf_merge_clusters(tf_pass *p, tf_cluster *from, tf_cluster *to, uint32_t vertex) {
  uint32_t root = (uint32_t)(from - p->clusters);
  p->cluster_of[to - p->clusters] = root;
  p->next_node[from->last] = to->first;
  from->last = to->last;
  from->vertex = vertex;
  from->size += to->size;
  from->effective += to->effective;
  if (from->resource_device == TF_NO_DEVICE) from->resource_device = to->resource_device;
  if (!from->scope) from->scope = to->scope;
  from->functional |= to->functional;
  from->forced |= to->forced;
  from->resources |= to->resources;
}

static int tf_try_contract(tf_pass *p, tf_cluster *from, tf_cluster *to, bool *done, xlac_error *err) {
  uint32_t survivor = 0;
  tf_obstacle why = TF_OBSTACLE_NONE;
  *done = false;
  TRY(tf_obstacle_before_cycle(p, from, to, &why, err));
  if (why != TF_OBSTACLE_NONE) return 0;
  TRY(tf_cycles_contract(&p->cycles, from->vertex, to->vertex, done, &survivor, err));
  if (!*done) return 0;
  TRY(tf_resources_merged(p, from, to, err));
  TRY(tf_join_devices(p, from->devices, to->devices, &from->devices, err));
  tf_merge_clusters(p, from, to, survivor);
  return 0;
}

/* --- the phases --- */

typedef bool tf_wanted_fn(const tf_pass *p, const tf_cluster *from, const tf_cluster *to);

static const tf_node *tf_single(const tf_pass *p, const tf_cluster *c) {
  return c->size == 1 ? &p->graph.nodes.items[c->first] : NULL;
}

/* First the ops that look at a tensor's shape only: that keeps the tensor from leaving the cluster for them. */
static bool tf_wants_shapes(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  const tf_node *n = tf_single(p, to);
  (void)from;
  return n && (tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size"));
}

static bool tf_is_sink_like(const tf_pass *p, const tf_node *n) {
  return tf_node_is(n, "NoOp") && n->n_out == 1 && p->graph.edges.items[n->first_out].dst == TF_SINK;
}

static bool tf_is_scalar_const(const tf_node *n) {
  base_slice tensor;
  tf_raw_field shape, part;
  if (!tf_attr_tensor(tf_attr_find(n->def->attrs, "value"), &tensor)) return false;
  if (!tf_raw_find(tensor, 2, &shape)) return true;
  if (tf_raw_find(shape.bytes, 2, &part)) return false;
  return !(tf_raw_find(shape.bytes, 3, &part) && part.value);
}

static bool tf_is_integer(unsigned type) {
  static const tf_type_set integers =
      (tf_type_set)1 << TF_INT32 | (tf_type_set)1 << TF_UINT8 | (tf_type_set)1 << TF_INT16 | (tf_type_set)1 << TF_INT8 |
      (tf_type_set)1 << TF_INT64 | (tf_type_set)1 << TF_UINT16 | (tf_type_set)1 << TF_UINT32 |
      (tf_type_set)1 << TF_UINT64 | (tf_type_set)1 << TF_INT4 | (tf_type_set)1 << TF_UINT4;
  return (tf_type_bit(type) & integers) != 0;
}

/* "i += 1": a counter, which would tie everything after it to everything before. */
static bool tf_is_counter(const tf_pass *p, const tf_node *n) {
  unsigned type = 0;
  if (!tf_node_is(n, "AssignAddVariableOp") && !tf_node_is(n, "AssignSubVariableOp")) return false;
  if (!tf_attr_type(tf_attr_find(n->def->attrs, "dtype"), &type) || !tf_is_integer(type)) return false;
  TF_EACH_IN(&p->graph, n, k) {
    const tf_edge *e = &p->graph.edges.items[k];
    const tf_node *src = &p->graph.nodes.items[e->src];
    if (e->dst_input != TF_CONTROL && src->role == TF_ROLE_CONST) return tf_is_scalar_const(src);
  }
  return false;
}

static bool tf_wants_most(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  const tf_node *a = tf_single(p, from), *b = tf_single(p, to);
  return !(b && tf_is_sink_like(p, b)) && !(a && tf_is_counter(p, a));
}

static bool tf_wants_all(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  (void)p, (void)from, (void)to;
  return true;
}

static int tf_contract_from(tf_pass *p, tf_cluster *from, tf_wanted_fn *wanted, bool *changed, xlac_error *err) {
  const tf_vertex_set *out = &p->cycles.v.items[from->vertex].out;
  uint32_t n = out->n;
  if (n == 0) return 0;
  uint32_t *copy = base_malloc(p->graph.alloc, n * sizeof *copy);
  if (!copy) return base_oom(err, "clustering");
  memcpy(copy, out->items, n * sizeof *copy);
  int status = 0;
  for (uint32_t i = 0; i < n && status == 0; i++) {
    tf_cluster *to = tf_cluster_of(p, copy[i]);
    bool done = false;
    if (!to || to == from || !wanted(p, from, to)) continue;
    status = tf_try_contract(p, from, to, &done, err);
    *changed |= done;
  }
  base_free(p->graph.alloc, copy);
  return status;
}

static int tf_run_phase(tf_pass *p, uint32_t *order, tf_wanted_fn *wanted, bool *changed, xlac_error *err) {
  uint32_t n = 0;
  *changed = false;
  TRY(tf_cycles_post_order(&p->cycles, order, &n, err));
  for (uint32_t i = 0; i < n; i++) {
    tf_cluster *from = tf_cluster_of(p, order[i]);
    if (from) TRY(tf_contract_from(p, from, wanted, changed, err));
  }
  return 0;
}

int tf_contract_all(tf_pass *p, xlac_error *err) {
  static tf_wanted_fn *const phases[] = {tf_wants_shapes, tf_wants_most, tf_wants_all};
  uint32_t *order = base_malloc(p->graph.alloc, ((size_t)p->cycles.v.n + 1) * sizeof *order);
  int status = order ? 0 : base_oom(err, "clustering");
  bool changed = false;
  for (size_t i = 0; i < sizeof phases / sizeof *phases && status == 0; i++)
    status = tf_run_phase(p, order, phases[i], &changed, err);
  base_free(p->graph.alloc, order);
  return status;
}
