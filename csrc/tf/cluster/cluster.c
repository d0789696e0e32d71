/* The pass as a whole: import, candidates, contraction, and the names of the clusters that are worth compiling. */
#include "cluster.h"

#include <stdio.h>

#include "pass.h"
#include "resources.h"

/* --- marks --- */

/* A constant-filled tensor that only others use is cheaper made by them. It still counts in the size of its
 * cluster. Such a node is left out of its cluster when names are given out; tf_explain_node says so (TF_LEFT_NOT). */
static bool tf_is_fill_for_others(tf_pass *p, uint32_t id, const tf_cluster *c) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (!tf_node_is(n, "Fill") || n->n_out == 0) return false;
  TF_EACH_OUT(&p->graph, n, e)
  if (tf_cluster_of(p, p->graph.edges.items[e].dst) == c) return false;
  return true;
}

/* From this size on a second copy costs more than what compiling it in could save. */
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

/* --- the pass --- */

/* The pass as a whole: import, candidates, contraction, marks. */

/* The defaults of MarkForCompilationPassFlags, but for what cluster.h says. Texts are literals: the pass interns
 * copies before it keeps them (tf_keep_flags). */
tf_flags tf_flags_default(void) {
  return (tf_flags){.min_cluster_size = 4,
                    .max_cluster_size = INT32_MAX,
                    .clustering_fuel = INT64_MAX,
                    .ops_to_cluster = "",
                    .cluster_exclude_ops = "",
                    .session_name = "",
                    .default_device = "/job:localhost/replica:0/task:0/device:CPU:0",
                    .global_jit_level = 1,
                    .cpu_global_jit = true};
}

/* TensorFlow skips a graph whose nodes say that they were clustered, and graphs for TPUs, which have a pass of
 * their own. */
static bool tf_is_clustered_already(const tf_graph *g) {
  for (uint32_t i = TF_SINK + 1; i < g->nodes.n; i++) {
    const tf_node *n = &g->nodes.items[i];
    if (tf_attr_has(n->def->attrs, "_XlaAlreadyClustered")) return true;
    if (tf_node_is(n, "TPUExecute") || tf_node_is(n, "TPUExecuteAndUpdateVariables")) return true;
  }
  return false;
}

/* Whether exactly one GPU is in use. */
static bool tf_has_single_gpu(const tf_pass *p) {
  uint32_t gpus = 0;
  for (uint32_t i = 0; i < p->devices.n; i++) gpus += base_slice_is(p->devices.items[i].type, "GPU");
  return gpus == 1;
}

/* GetGlobalJitLevelForGraph: the flag tf_xla_auto_jit wins over the session's level; "single-gpu(N)" gives graphs
 * on one GPU a level of their own. 0 in the session means "default", which is off (-1). */
static int64_t tf_effective_level(const tf_pass *p) {
  int64_t session = p->flags.global_jit_level == 0 ? -1 : p->flags.global_jit_level;
  int64_t general = p->flags.auto_jit ? p->flags.auto_jit : session;
  int64_t single = p->flags.auto_jit_single_gpu ? p->flags.auto_jit_single_gpu : session;
  return general != single && tf_has_single_gpu(p) ? single : general;
}

/* The device of every op, as a place in p->devices. Runs again after constants were cloned, since it goes by node. */
static int tf_find_devices(tf_pass *p, xlac_error *err) {
  for (uint32_t i = 0; i < p->graph.nodes.n; i++) {
    p->device_of[i] = TF_NO_DEVICE;
    if (tf_is_op(&p->graph.nodes.items[i]))
      TRY(tf_find_device(p, p->graph.nodes.items[i].device, &p->device_of[i], err));
  }
  return 0;
}

/* All lists by node at once, so that there is one place to run out of memory; tf_pass_free frees them, however
 * many there are. */
static int tf_make_room(tf_pass *p, xlac_error *err) {
  assert(!p->candidate && p->graph.nodes.n > TF_SINK);
  size_t n = (size_t)p->graph.nodes.n << p->flags.partially_decluster; /* room for the copies it makes */
  base_alloc alloc = p->graph.alloc;
  p->n_clustered = p->graph.nodes.n;
  p->frames = base_malloc(alloc, n * sizeof *p->frames);
  p->must_be_constant = base_malloc(alloc, n);
  p->candidate = base_malloc(alloc, n);
  p->verdicts = base_malloc(alloc, n * sizeof *p->verdicts);
  p->device_of = base_malloc(alloc, n * sizeof *p->device_of);
  p->cluster_of = base_malloc(alloc, n * sizeof *p->cluster_of);
  p->next_node = base_malloc(alloc, n * sizeof *p->next_node);
  p->taint = base_malloc(alloc, n);
  p->clusters = base_malloc(alloc, n * sizeof *p->clusters);
  p->result = base_malloc(alloc, n * sizeof *p->result);
  p->scopes = base_malloc(alloc, n * sizeof *p->scopes);
  p->left = base_malloc(alloc, n);
  bool all = p->frames && p->must_be_constant && p->candidate && p->verdicts && p->device_of && p->cluster_of &&
             p->next_node && p->taint && p->clusters && p->result && p->scopes && p->left;
  if (!all) return base_oom(err, "clustering");
  memset(p->candidate, 0, n);
  memset(p->left, 0, n);
  memset(p->verdicts, 0, n * sizeof *p->verdicts);
  memset(p->result, 0, n * sizeof *p->result);
  memset(p->scopes, 0, n * sizeof *p->scopes);
  for (size_t i = 0; i < n; i++) p->cluster_of[i] = p->next_node[i] = TF_NO_EDGE;
  return 0;
}

/* From candidates to names, or to nothing where the graph's loops can't be lifted into the cycle graph (gave_up). */
static int tf_contract_graph(tf_pass *p, xlac_error *err) {
  assert(p->n_candidates > 0);
  TRY(tf_build_cycles(p, err));
  if (p->gave_up) return 0;
  if (!p->flags.disable_deadness_safety_checks_for_debugging) {
    p->has_deadness = true;
    TRY(tf_find_deadness(&p->deadness, &p->graph, p->frames, err));
  }
  TRY(tf_build_clusters(p, err));
  TRY(tf_prepare_resources(p, err));
  TRY(tf_contract_all(p, err));
  return tf_mark_clusters(p, err);
}

/* All devices of the graph, which the level depends on. */
static int tf_find_level(tf_pass *p, xlac_error *err) {
  assert(p->devices.n == 0);
  uint32_t unused;
  for (uint32_t i = TF_SINK + 1; i < p->graph.nodes.n; i++)
    TRY(tf_find_device(p, p->graph.nodes.items[i].device, &unused, err));
  p->jit_level = tf_effective_level(p);
  return 0;
}

/* MarkForCompilationPassImpl::Run, with the two passes that TensorFlow has before it. What was found so far stays
 * in *p when it ends early: explanations read it. */
static int tf_run_pass(tf_pass *p, xlac_error *err) {
  TRY(tf_find_level(p, err));
  if (p->flags.clone_constants && p->jit_level > 0) TRY(tf_clone_constants(&p->graph, err));
  TRY(tf_make_room(p, err));
  TRY(tf_find_devices(p, err));
  for (uint32_t i = 0; i < p->graph.nodes.n; i++) p->has_loops |= p->graph.nodes.items[i].role == TF_ROLE_ENTER;
  if (p->flags.cluster_scoping && p->jit_level > 0) TRY(tf_scope_stages(p, err));
  p->already_clustered = tf_is_clustered_already(&p->graph);
  if (p->already_clustered) return 0;
  TRY(tf_find_candidates(p, err));
  if (p->n_candidates == 0) return 0;
  TRY(tf_find_frames(&p->graph, p->frames, err));
  return tf_contract_graph(p, err);
}

/* Texts of the flags are kept, for who clusters more of the graph later. *device is left the interned default
 * device, the last of the texts. */
static int tf_keep_flags(tf_pass *p, const base_istr **device, xlac_error *err) {
  const char **texts[] = {&p->flags.ops_to_cluster, &p->flags.cluster_exclude_ops, &p->flags.session_name,
                          &p->flags.default_device};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const base_istr *kept = base_intern(&p->def->strings, *texts[i], strlen(*texts[i]));
    if (!kept) return base_oom(err, "clustering");
    *texts[i] = kept->s;
    *device = kept;
  }
  return 0;
}

/* A pass with nothing in it yet. From here on tf_pass_free may be called. */
static int tf_begin_pass(tf_pass *out, tf_graph_def *def, const tf_flags *flags, const base_istr **device,
                         xlac_error *err) {
  *out = (tf_pass){.def = def, .flags = *flags};
  tf_bodies_init(&out->bodies, def);
  tf_cycles_init(&out->cycles, def->arena.alloc);
  base_map_init(&out->unsafe_set, def->arena.alloc);
  base_map_init(&out->joins, def->arena.alloc);
  out->cpu = tf_device_table[0];
  out->cpu.autoclustering_policy =
      flags->cpu_global_jit ? XLAC_CLUSTER_IF_ENABLED_GLOBALLY : XLAC_CLUSTER_IF_EXPLICITLY_REQUESTED;
  return tf_keep_flags(out, device, err);
}

int tf_cluster_import(tf_pass *out, tf_graph_def *def, const tf_flags *flags, xlac_error *err) {
  const base_istr *device = NULL;
  TRY(tf_begin_pass(out, def, flags, &device, err));
  return tf_graph_import(&out->graph, def, device, err);
}

int tf_cluster_run(tf_pass *p, xlac_error *err) {
  assert(p->graph.nodes.n > TF_SINK && p->n_clustered == 0);
  TRY(tf_run_pass(p, err));
  return p->flags.partially_decluster ? tf_partially_decluster(p, err) : 0;
}

/* Nodes of a body that ask for no device get the caller's default, as placement would give it to them. */
int tf_cluster_function(tf_pass *out, const tf_pass *caller, const tf_function *fn, tf_attrs call, xlac_error *err) {
  const base_istr *device = NULL;
  tf_flags flags = caller->flags;
  flags.session_name = fn->name->s;
  TRY(tf_begin_pass(out, caller->def, &flags, &device, err));
  TRY(tf_graph_import_function(&out->graph, caller->def, fn, call, err));
  for (uint32_t i = TF_SINK + 1; i < out->graph.nodes.n; i++)
    if (!out->graph.nodes.items[i].device) out->graph.nodes.items[i].device = device;
  return tf_cluster_run(out, err);
}

/* Free of what any prefix of the steps above has made: lists that were not are NULL, which base_free takes. */
void tf_pass_free(tf_pass *p) {
  base_alloc alloc = p->def->arena.alloc;
  tf_graph_free(&p->graph);
  tf_bodies_free(&p->bodies);
  tf_cycles_free(&p->cycles);
  base_map_free(&p->unsafe_set);
  base_map_free(&p->joins);
  if (p->has_deadness) tf_deadness_free(&p->deadness, alloc);
  BASE_VEC_FREE(alloc, &p->devices);
  BASE_VEC_FREE(alloc, &p->unsafe);
  void *lists[] = {p->frames,    p->must_be_constant, p->candidate,      p->verdicts,
                   p->device_of, p->cluster_of,       p->next_node,      p->taint,
                   p->clusters,  (void *)p->result,   (void *)p->scopes, p->left};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) base_free(alloc, lists[i]);
}
