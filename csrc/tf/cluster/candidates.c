/* Candidates: nodes in the order of their ids, through the filters in TensorFlow's order. */
#include "allow_list.h"
#include "pass.h"

tf_attrs tf_callee_attrs(const tf_node *n) {
  return n->op && n->op->function ? n->op->function->attrs : (tf_attrs){0, NULL};
}

/* The node's own attribute wins over its callee's. */
static bool tf_find_bool(const tf_node *n, const char *key, bool *value, bool *on_callee) {
  *on_callee = false;
  if (tf_attr_bool(tf_attr_find(n->def->attrs, key), value)) return true;
  *on_callee = true;
  return tf_attr_bool(tf_attr_find(tf_callee_attrs(n), key), value);
}

static bool tf_is_set(const tf_node *n, const char *key) {
  return tf_attr_is_true(n->def->attrs, key) || tf_attr_is_true(tf_callee_attrs(n), key);
}

bool tf_is_forced(const tf_pass *p, const tf_node *n) {
  bool value = false, on_callee = false;
  if (tf_find_bool(n, "_XlaCompile", &value, &on_callee) && value) return true;
  return p->jit_level > 0 && tf_is_set(n, "_XlaMustCompile");
}

bool tf_should_compile(const tf_pass *p, bool forced, uint32_t device) {
  const tf_device_registration *r = p->devices.items[device].registration;
  if (!r) return false;
  if (forced || r->autoclustering_policy == XLAC_CLUSTER_ALWAYS) return true;
  if (r->autoclustering_policy == XLAC_CLUSTER_IF_ENABLED_GLOBALLY) return p->jit_level > 0;
  return p->flags.session_cpu_global_jit && base_slice_is(p->devices.items[device].type, "CPU");
}

static int tf_check_candidate(tf_pass *p, uint32_t id, tf_verdict *v, xlac_error *err) {
  const tf_node *n = &p->graph.nodes.items[id];
  bool value = false, on_callee = false;
  v->why = TF_REFUSED_NOT_AN_OP;
  if (!tf_is_op(n)) return 0;
  v->why = TF_REFUSED_XLA_COMPILE_FALSE;
  if (tf_find_bool(n, "_XlaCompile", &value, &on_callee) && !value) {
    if (on_callee) v->why = TF_REFUSED_FUNCTION_XLA_COMPILE_FALSE;
    return 0;
  }
  uint32_t device = p->device_of[id];
  const tf_device_registration *r = device == TF_NO_EDGE ? NULL : p->devices.items[device].registration;
  v->why = TF_REFUSED_UNKNOWN_DEVICE;
  if (!r) return 0;
  v->why = TF_REFUSED_NOT_ENABLED;
  if (!tf_should_compile(p, tf_is_forced(p, n), device)) return 0;
  tf_compile_filter filter = {r, p->exclude_where};
  TRY(tf_check_compilable(&p->bodies, &filter, &p->graph, n, v, err));
  if (v->why != TF_REFUSED_NONE) return 0;
  if (!tf_allow_list_has(p->flags.ops_to_cluster, n->op->name->s)) v->why = TF_REFUSED_NOT_LISTED;
  return 0;
}

/* The Identity that keeps a loop's condition alive in its body: compiled with the loop's condition it would make a
 * cycle. */
static bool tf_is_loop_identity(const tf_graph *g, const tf_node *n) {
  int32_t output = 0;
  if (n->role != TF_ROLE_IDENTITY || n->n_inputs != 1) return false;
  const tf_node *sw = &g->nodes.items[tf_producer(g, n, 0, &output)];
  if (sw->role != TF_ROLE_SWITCH || output != 1) return false;
  int32_t unused = 0;
  if (g->nodes.items[tf_producer(g, sw, 1, &unused)].role != TF_ROLE_LOOP_COND) return false;
  TF_EACH_OUT(g, n, e)
  if (g->edges.items[e].src_output == TF_CONTROL && g->nodes.items[g->edges.items[e].dst].role == TF_ROLE_CONST)
    return true;
  return false;
}

static bool tf_is_stateful_constant(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  return p->must_be_constant[id] && (n->op->flags & TF_OP_STATEFUL) && !tf_is_stack_op(n) && !tf_is_tensor_array_op(n);
}

int tf_check_device(const tf_pass *p, uint32_t id, xlac_error *err) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (p->device_of[id] == TF_NO_DEVICE || !p->devices.items[p->device_of[id]].malformed) return 0;
  return base_hint(
      err,
      base_fail(err, XLAC_E_BAD_ARGUMENT, "node '%.120s' has a malformed device '%.120s'", n->name->s, n->device->s),
      "devices look like /job:name/replica:0/task:0/device:CPU:0, of which parts may be left out");
}

int tf_find_candidates(tf_pass *p, xlac_error *err) {
  int64_t fuel = p->flags.clustering_fuel;
  TRY(tf_allow_list_check(p->flags.ops_to_cluster, err));
  TRY(tf_exclude_list_check(p->flags.cluster_exclude_ops, &p->exclude_where, err));
  TRY(tf_must_be_constant(&p->bodies, &p->graph, NULL, NULL, p->must_be_constant, err));
  for (uint32_t id = 0; id < p->graph.nodes.n; id++) {
    const tf_node *n = &p->graph.nodes.items[id];
    tf_verdict *v = &p->verdicts[id];
    if (fuel > 0) TRY(tf_check_device(p, id, err));
    *v = (tf_verdict){.why = TF_REFUSED_NONE};
    TRY(tf_check_candidate(p, id, v, err));
    if (v->why == TF_REFUSED_NONE && tf_is_stateful_constant(p, id)) v->why = TF_REFUSED_STATEFUL_CONSTANT;
    if (v->why == TF_REFUSED_NONE && tf_is_loop_identity(&p->graph, n)) v->why = TF_REFUSED_LOOP_IDENTITY;
    if (v->why == TF_REFUSED_NONE && fuel <= 0) v->why = TF_REFUSED_FUEL;
    if (v->why != TF_REFUSED_NONE) continue;
    p->candidate[id] = 1;
    p->n_candidates++;
    fuel--;
  }
  return 0;
}
