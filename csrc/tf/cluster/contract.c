/* Contraction: every candidate begins as a cluster of its own; edges between clusters are contracted where nothing
 * stands in the way, in the post-order of the cycle graph, in three phases with growing appetite
 * (MarkForCompilationPassImpl::RunEdgeContractionLoop). The result depends on the order of every list here, which
 * is therefore TensorFlow's. */
#include "pass.h"
#include "../graph/functions.h"
#include "resources.h"

/* --- the cycle graph --- */

/* The graph in which clusters must not make cycles: the nodes, and one more vertex for each loop's frame, which takes
 * the place of its Enters for what goes in and of its Exits for what comes out. */

/* Building of the cycle graph (CreateCycleDetectionGraph). */
typedef struct tf_lift {
  tf_pass *p;
  base_map frames; /* frame -> vertex */
  xlac_error *err;
} tf_lift;

/* The vertex of a frame, added after those of the nodes when the frame is first met. */
static int tf_frame_vertex(tf_lift *l, const base_istr *frame, uint32_t *out) {
  assert(frame != NULL);
  uint64_t known = 0;
  if (base_map_get(&l->frames, base_key(frame), &known)) {
    *out = (uint32_t)known;
    return 0;
  }
  TRY(tf_cycles_add(&l->p->cycles, out, l->err));
  return base_map_set(&l->frames, base_key(frame), *out) ? 0 : base_oom(l->err, "clustering");
}

/* Edges out of NextIteration are the loops themselves and are left out. A cycle that remains after lifting a
 * loop's edges means that two loops feed one another: TensorFlow then clusters nothing. */
static int tf_lift_edge(tf_lift *l, const tf_edge *e, bool *gave_up) {
  tf_pass *p = l->p;
  const tf_node *src = &p->graph.nodes.items[e->src], *dst = &p->graph.nodes.items[e->dst];
  uint32_t from = e->src, to = e->dst;
  bool exit = src->role == TF_ROLE_EXIT, enter = dst->role == TF_ROLE_ENTER, cycle = false;
  if (src->role == TF_ROLE_NEXT_ITERATION) return 0;
  if (exit && p->frames[e->src].frame) TRY(tf_frame_vertex(l, p->frames[e->src].frame, &from));
  if (enter && p->frames[e->dst].frame) TRY(tf_frame_vertex(l, p->frames[e->dst].frame, &to));
  TRY(tf_cycles_insert(&p->cycles, from, to, &cycle, l->err));
  if (!cycle) return 0;
  *gave_up = enter || exit;
  if (*gave_up) return 0;
  return base_fail(l->err, XLAC_E_BAD_ARGUMENT, "the edge from '%.100s' to '%.100s' closes a cycle outside of any loop",
                   src->name->s, dst->name->s);
}

/* Vertices 0 to nodes.n - 1 are the nodes, by id; tf_cluster_of relies on that. */
int tf_build_cycles(tf_pass *p, xlac_error *err) {
  assert(p->cycles.v.n == 0);
  tf_lift l = {.p = p, .err = err};
  int status = 0;
  uint32_t vertex = 0;
  base_map_init(&l.frames, p->graph.alloc);
  for (uint32_t i = 0; i < p->graph.nodes.n && status == 0; i++) status = tf_cycles_add(&p->cycles, &vertex, err);
  for (uint32_t i = 0; i < p->graph.edges.n && status == 0 && !p->gave_up; i++)
    status = tf_lift_edge(&l, &p->graph.edges.items[i], &p->gave_up);
  base_map_free(&l.frames);
  return status;
}

/* --- clusters to begin with --- */

/* The clusters contraction begins with: one for each candidate. */

/* The cluster of a node by union-find over nodes, halving paths. */
tf_cluster *tf_cluster_of(tf_pass *p, uint32_t node) {
  if (node >= p->graph.nodes.n || p->cluster_of[node] == TF_NO_EDGE) return NULL;
  while (p->cluster_of[node] != node) {
    p->cluster_of[node] = p->cluster_of[p->cluster_of[node]];
    node = p->cluster_of[node];
  }
  return &p->clusters[node];
}

/* _XlaScope counts when clustering is off and only what asks for it is compiled; _XlaInternalScope when it is on,
 * where ClusterScopingPass may have given the node another one. */
static const base_istr *tf_scope_of(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  base_slice s;
  if (p->scopes[id] && p->jit_level > 0) return p->scopes[id];
  const char *key = p->jit_level > 0 ? "_XlaInternalScope" : "_XlaScope";
  if (!tf_attr_string(tf_attr_find(n->def->attrs, key), &s) || s.n == 0) return NULL;
  return base_intern(&p->def->strings, s.p, s.n);
}

/* Nodes that do not count toward min_cluster_size: they cost nothing to run. */
static bool tf_counts_nothing(const tf_node *n) {
  return n->role == TF_ROLE_IDENTITY || n->role == TF_ROLE_CONST;
}

static int tf_begin_cluster(tf_pass *p, uint32_t id, xlac_error *err) {
  assert(p->candidate[id] && p->device_of[id] < p->devices.n);
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

/* p->one_device is found out on the way: with a single device the tests of devices can be left out. */
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

/* --- contraction --- */

/* One text a row of obstacles.def, as users read it. */
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

/* Whether a cluster of both sets has a device to be compiled for, and ops on resources of either lie on that
 * device: a variable can't be reached from another one. */
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

/* All tests but the one for cycles, in the order of TryToContractEdge; that one is made by the contraction itself,
 * which costs less than asking first. *why is set to what is being tested, so a return leaves the reason. */
static int tf_obstacle_before_cycle(tf_pass *p, const tf_cluster *from, const tf_cluster *to, tf_obstacle *why,
                                    xlac_error *err) {
  assert(from != to);
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

/* For explanations: the same tests, and a search for a second path instead of the contraction. */
int tf_find_obstacle(tf_pass *p, tf_cluster *from, tf_cluster *to, tf_obstacle *why, xlac_error *err) {
  uint32_t n = 0;
  TRY(tf_obstacle_before_cycle(p, from, to, why, err));
  if (*why != TF_OBSTACLE_NONE) return 0;
  TRY(tf_cycles_path(&p->cycles, from->vertex, to->vertex, NULL, 0, &n, err));
  if (n > 0) *why = TF_OBSTACLE_CYCLE;
  return 0;
}

/* --- one edge --- */

/* `from` stays the root of the union and takes over what `to` has; the vertex is the survivor of the contraction,
 * which may have been either's. Node lists are joined in constant time. */
static void tf_merge_clusters(tf_pass *p, tf_cluster *from, tf_cluster *to, uint32_t vertex) {
  assert(from != to && p->cluster_of[to - p->clusters] == (uint32_t)(to - p->clusters));
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

/* Marks of resources are spread before the clusters are merged: tf_resources_merged needs both lists of nodes. */
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

/* Which edges a phase looks at. */
typedef bool tf_wanted_fn(const tf_pass *p, const tf_cluster *from, const tf_cluster *to);

/* The node of a cluster that has not grown yet; NULL for others, which the first two phases do not care about. */
static const tf_node *tf_single(const tf_pass *p, const tf_cluster *c) {
  return c->size == 1 ? &p->graph.nodes.items[c->first] : NULL;
}

/* First the ops that look at a tensor's shape only: that keeps the tensor from leaving the cluster for them. */
static bool tf_wants_shapes(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  const tf_node *n = tf_single(p, to);
  (void)from;
  return n && (tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size"));
}

/* A NoOp that only waits (control edges to the sink): joining it would tie together whatever it waits for. */
static bool tf_is_sink_like(const tf_pass *p, const tf_node *n) {
  return tf_node_is(n, "NoOp") && n->n_out == 1 && p->graph.edges.items[n->first_out].dst == TF_SINK;
}

/* Fields of TensorProto and TensorShapeProto: 2 is the shape, in it 2 a dimension and 3 "unknown rank". */
static bool tf_is_scalar_const(const tf_node *n) {
  base_slice tensor;
  tf_raw_field shape, part;
  if (!tf_attr_tensor(tf_attr_find(n->def->attrs, "value"), &tensor)) return false;
  if (!tf_raw_find(tensor, 2, &shape)) return true;
  if (tf_raw_find(shape.bytes, 2, &part)) return false;
  return !(tf_raw_find(shape.bytes, 3, &part) && part.value);
}

/* All integer types of TensorFlow, signed or not (DataTypeIsInteger). */
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

/* The second phase leaves out what would make clusters grow along paths that carry no work; the third takes the
 * rest. */
static bool tf_wants_most(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  const tf_node *a = tf_single(p, from), *b = tf_single(p, to);
  return !(b && tf_is_sink_like(p, b)) && !(a && tf_is_counter(p, a));
}

static bool tf_wants_all(const tf_pass *p, const tf_cluster *from, const tf_cluster *to) {
  (void)p, (void)from, (void)to;
  return true;
}

/* Tries each successor of a cluster once. The list is copied first: contracting changes the vertex's own. */
static int tf_contract_from(tf_pass *p, tf_cluster *from, tf_wanted_fn *wanted, bool *changed, xlac_error *err) {
  assert(from->vertex < p->cycles.v.n);
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

/* Clusters in post-order of the cycle graph as it is when the phase begins: consumers before producers. A vertex
 * that has been contracted away since then leads to its new cluster, which is tried again; that does no harm. */
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
  assert(p->cycles.v.n >= p->graph.nodes.n);
  static tf_wanted_fn *const phases[] = {tf_wants_shapes, tf_wants_most, tf_wants_all};
  uint32_t *order = base_malloc(p->graph.alloc, ((size_t)p->cycles.v.n + 1) * sizeof *order);
  int status = order ? 0 : base_oom(err, "clustering");
  bool changed = false;
  for (size_t i = 0; i < sizeof phases / sizeof *phases && status == 0; i++)
    status = tf_run_phase(p, order, phases[i], &changed, err);
  base_free(p->graph.alloc, order);
  return status;
}
