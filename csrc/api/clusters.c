/* Clustered TensorFlow graphs.
 *
 * A clustered graph is the TensorFlow GraphDef, the pass that marked it, and what the pass found out: all
 * in the memory of `def`, freed at once. Graphs come and go as protocol buffers in wire or text form;
 * XLAC_GRAPH_AUTO looks at the first bytes. Everything after xlac_cluster_graph reads, except sessions,
 * which take the lock. */
#include <time.h>
#include "../tf/cluster/cluster.h"
#include "../tf/encapsulate/encapsulate.h"
#include "../tf/cluster/explain.h"
#include "../tf/cluster/graph_write.h"
#include "../tf/cluster/resources.h"
#include "../tf/graph/tf_schema.h"
#include "api.h"
#include "../tf/lower/whole.h"

struct xlac_clusters {
  tf_graph_def *def;
  tf_pass pass;
  xlac_cluster_times times;
  pthread_mutex_t lock; /* of its sessions, which make strings and bodies of functions in its memory */
};

/* TensorFlow's defaults (tf_xla_flags of the real system), not zeros: zero fuel would cluster nothing. */
void xlac_cluster_flags_init(xlac_cluster_flags *f) {
  tf_flags d = tf_flags_default();
  *f = (xlac_cluster_flags){.min_cluster_size = d.min_cluster_size,
                            .max_cluster_size = d.max_cluster_size,
                            .clustering_fuel = d.clustering_fuel,
                            .global_jit_level = d.global_jit_level,
                            .ops_to_cluster = d.ops_to_cluster,
                            .cluster_exclude_ops = d.cluster_exclude_ops,
                            .session_name = d.session_name,
                            .default_device = d.default_device,
                            .cpu_global_jit = d.cpu_global_jit};
}

/* Field by field, since the public struct is frozen and the inner one is not. NULL texts mean empty. */
static tf_flags inner_cluster_flags(const xlac_cluster_flags *f) {
  if (!f) return tf_flags_default();
  return (tf_flags){
      .min_cluster_size = f->min_cluster_size,
      .max_cluster_size = f->max_cluster_size,
      .clustering_fuel = f->clustering_fuel,
      .auto_jit = f->auto_jit,
      .auto_jit_single_gpu = f->auto_jit_single_gpu,
      .global_jit_level = f->global_jit_level,
      .ops_to_cluster = f->ops_to_cluster ? f->ops_to_cluster : "",
      .cluster_exclude_ops = f->cluster_exclude_ops ? f->cluster_exclude_ops : "",
      .session_name = f->session_name ? f->session_name : "",
      .default_device = f->default_device ? f->default_device : "",
      .cpu_global_jit = f->cpu_global_jit,
      .session_cpu_global_jit = f->session_cpu_global_jit,
      .deterministic_cluster_names = f->deterministic_cluster_names,
      .disable_deadness_safety_checks_for_debugging = f->disable_deadness_safety_checks_for_debugging,
      .disable_resource_variable_safety_checks_for_debugging = f->disable_resource_variable_safety_checks_for_debugging,
      .clone_constants = f->clone_constants,
      .cluster_scoping = f->cluster_scoping,
      .partially_decluster = f->partially_decluster,
  };
}

/* As XlaOpRegistry::RegisterCompilationDevice has it: a device type, the JIT device whose kernels decide
 * what compiles, and a policy. Strings are interned because the caller's may be gone when the session
 * asks. */
static int copy_registration(tf_graph_def *def, const xlac_device_registration *d, tf_device_registration *out,
                             xlac_error *err) {
  if (!d->type || !d->compilation_device || (unsigned)d->autoclustering_policy > XLAC_CLUSTER_ALWAYS)
    return base_fail(err, XLAC_E_BAD_ARGUMENT,
                     "the registration of device '%.60s' needs a type, a compilation device and a known policy",
                     d->type ? d->type : "");
  const base_istr *type = base_intern(&def->strings, d->type, strlen(d->type));
  const base_istr *compiles = base_intern(&def->strings, d->compilation_device, strlen(d->compilation_device));
  if (!type || !compiles) return base_oom(err, "registering a device");
  *out = *d;
  out->type = type->s;
  out->compilation_device = compiles->s;
  if (tf_compilation_kernels(out) >= 0) return 0;
  return base_hint(err,
                   base_fail(err, XLAC_E_BAD_ARGUMENT, "device '%.60s': compilation device '%.60s' is unknown", d->type,
                             d->compilation_device),
                   "there are XLA_CPU_JIT and XLA_GPU_JIT");
}

/* The built-in registrations, by number; false past the end. */
bool xlac_cluster_device(uint32_t index, xlac_device_registration *out) {
  uint32_t n = 0;
  while (tf_device_table[n].type) n++;
  if (index >= n) return false;
  *out = tf_device_table[index];
  return true;
}

/* The registrations, in the graph's memory, which lives as long as what was decided by them. Without any,
 * the built-in table is used. The list ends with a row whose type is NULL. */
static int copy_registrations(tf_graph_def *def, const xlac_cluster_flags *f, tf_flags *inner, xlac_error *err) {
  if (!f || f->n_devices == 0) return 0;
  tf_device_registration *list =
      f->n_devices < 10000 ? BASE_ARRAY(&def->arena, tf_device_registration, f->n_devices + 1) : NULL;
  if (!list) return base_oom(err, "registering devices");
  for (size_t i = 0; i < f->n_devices; i++) TRY(copy_registration(def, &f->devices[i], &list[i], err));
  list[f->n_devices] = (tf_device_registration){.type = NULL};
  inner->devices = list;
  return 0;
}

static int check_graph_format(xlac_graph_format format, xlac_error *err) {
  if ((unsigned)format <= XLAC_GRAPH_TEXT) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "%d is not a format of graphs", (int)format);
}

/* Only AUTO looks into the bytes. */
static bool graph_is_text(const void *bytes, size_t n, xlac_graph_format format) {
  assert(bytes || n == 0);
  return format == XLAC_GRAPH_TEXT || (format == XLAC_GRAPH_AUTO && tf_graph_def_is_text(bytes, n));
}

static double cluster_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The two times are for people: import builds the graph from the def, clustering is the pass itself. */
static int cluster_read_graph(xlac_clusters *c, tf_flags *inner, const xlac_cluster_flags *flags, xlac_error *err) {
  TRY(copy_registrations(c->def, flags, inner, err));
  double start = cluster_now();
  int status = tf_cluster_import(&c->pass, c->def, inner, err);
  c->times.import_seconds = cluster_now() - start;
  if (status == 0) status = tf_cluster_run(&c->pass, err);
  c->times.cluster_seconds = cluster_now() - start - c->times.import_seconds;
  return status;
}

/* On failure nothing is left. `c` owns def, and the pass points into it; hence xlac_clusters_destroy copes
 * with either being missing. */
int xlac_cluster_graph(xlac_clusters **out, const void *bytes, size_t n, xlac_graph_format format,
                       const xlac_cluster_flags *flags, xlac_error *err) {
  tf_flags inner = inner_cluster_flags(flags);
  TRY(check_graph_format(format, err));
  xlac_clusters *c = base_malloc(base_alloc_libc, sizeof *c);
  if (!c) return base_oom(err, "clustering");
  *c = (xlac_clusters){.def = NULL};
  pthread_mutex_init(&c->lock, NULL);
  double start = cluster_now();
  int status = tf_graph_def_read(&c->def, base_alloc_libc, bytes, n, graph_is_text(bytes, n, format), err);
  c->times.read_seconds = cluster_now() - start;
  if (status == 0) status = cluster_read_graph(c, &inner, flags, err);
  if (status != 0) {
    xlac_clusters_destroy(c);
    return status;
  }
  *out = c;
  return 0;
}

/* Sessions of it must be gone: they work in its memory. */
void xlac_clusters_destroy(xlac_clusters *c) {
  if (!c) return;
  if (c->pass.def) tf_pass_free(&c->pass);
  if (c->def) tf_graph_def_free(c->def);
  pthread_mutex_destroy(&c->lock);
  base_free(base_alloc_libc, c);
}

/* Borrowed, for sessions; under the lock. */
struct tf_pass *api_clusters_pass(xlac_clusters *c) {
  return &c->pass;
}

pthread_mutex_t *api_clusters_lock(xlac_clusters *c) {
  return &c->lock;
}

static const char *text_or_null(const base_istr *s) {
  return s ? s->s : NULL;
}

void xlac_clusters_times(const xlac_clusters *c, xlac_cluster_times *out) {
  *out = c->times;
}

/* NULL where it was not looked at. The predicate under which the node is alive, from the deadness
 * analysis, where it has run. Nodes that were added after clustering have
 * none. */
static const tf_pred *tf_deadness_of(const tf_pass *p, uint32_t id) {
  return p->has_deadness && id < p->n_clustered ? p->deadness.control[id] : NULL;
}

/* Strings are the graph's. deadness is 0 where it is unknown, else one more than the predicate's id, so
 * equal numbers mean equal predicates. */
bool xlac_clusters_node(const xlac_clusters *c, uint32_t number, xlac_clustered_node *out) {
  assert(c && out);
  const tf_pass *p = &c->pass;
  if (number >= p->graph.nodes.n) return false;
  const tf_node *n = &p->graph.nodes.items[number];
  *out = (xlac_clustered_node){.name = n->name->s,
                               .op = n->op ? n->op->name->s : "",
                               .device = text_or_null(n->device),
                               .cluster = text_or_null(p->result[number]),
                               .scope = text_or_null(p->scopes[number]),
                               .candidate = p->candidate[number] != 0};
  const tf_pred *alive = tf_deadness_of(p, number);
  if (alive) out->deadness = (uint64_t)alive->id + 1;
  return true;
}

/* Control edges have TensorFlow's slot -1 on both ends. */
bool xlac_clusters_edge(const xlac_clusters *c, uint32_t number, xlac_graph_edge *out) {
  assert(c && out);
  const tf_graph *g = &c->pass.graph;
  if (number >= g->edges.n) return false;
  const tf_edge *e = &g->edges.items[number];
  *out = (xlac_graph_edge){e->src, e->dst, e->src_output, e->dst_input};
  return true;
}

/* The predicate in words; an empty text where it is unknown. */
int xlac_clusters_deadness(const xlac_clusters *c, uint32_t number, char **text, size_t *n, xlac_error *err) {
  const tf_pass *p = &c->pass;
  base_text t;
  if (number >= p->graph.nodes.n) return base_fail(err, XLAC_E_BAD_ARGUMENT, "the graph has no node %u", number);
  base_text_init(&t, base_alloc_libc);
  const tf_pred *alive = tf_deadness_of(p, number);
  if (alive) tf_put_pred(&t, alive);
  return api_give_text(&t, text, n, err);
}

/* Pairs of resource operations that one cluster must not hold, since its order inside may differ from the
 * graph's (TensorFlow's ResourceOperationSafetyAnalysis). *n is the number of pairs; the list has twice as
 * many numbers and is freed with xlac_free. */
int xlac_clusters_unsafe_pairs(const xlac_clusters *c, uint32_t **pairs, size_t *n, xlac_error *err) {
  tf_unsafe_list list = {.n = 0};
  int status = tf_find_unsafe_pairs(&c->pass.graph, NULL, &list, err);
  uint32_t *numbers = status == 0 ? base_malloc(base_alloc_libc, ((size_t)list.n * 2 + 1) * sizeof *numbers) : NULL;
  if (status == 0 && !numbers) status = base_oom(err, "listing pairs");
  for (uint32_t i = 0; i < list.n && status == 0; i++) {
    numbers[2 * (size_t)i] = list.items[i].before;
    numbers[2 * (size_t)i + 1] = list.items[i].after;
  }
  if (status == 0) {
    *pairs = numbers;
    *n = list.n;
  }
  BASE_VEC_FREE(c->pass.graph.alloc, &list);
  return status;
}

/* By the name in the def; TF_NO_EDGE is the number of nothing. */
static int find_named(const xlac_clusters *c, const char *name, uint32_t *out, xlac_error *err) {
  *out = tf_find_node(&c->pass, name);
  if (*out != TF_NO_EDGE) return 0;
  return base_hint(err, base_fail(err, XLAC_E_UNKNOWN_NAME, "the graph has no node '%.200s'", name),
                   "names are case sensitive");
}

/* Ends a text either way: handed to the caller, or freed where `status` is an error. */
static int give_or_free(base_text *t, int status, char **text, size_t *n, xlac_error *err) {
  if (status == 0) return api_give_text(t, text, n, err);
  base_text_free(t);
  return status;
}

/* Why the node is in its cluster, or in none. */
int xlac_clusters_why(xlac_clusters *c, const char *node, char **text, size_t *n, xlac_error *err) {
  uint32_t id = 0;
  base_text t;
  TRY(api_check_text(node, "the node's name", err));
  TRY(find_named(c, node, &id, err));
  base_text_init(&t, base_alloc_libc);
  return give_or_free(&t, tf_explain_node(&c->pass, id, &t, err), text, n, err);
}

/* Why two nodes did not end up in one cluster. */
int xlac_clusters_why_not(xlac_clusters *c, const char *a, const char *b, char **text, size_t *n, xlac_error *err) {
  uint32_t first = 0, second = 0;
  base_text t;
  TRY(api_check_texts(2, (const char *const[]){a, b}, "node", err));
  TRY(find_named(c, a, &first, err));
  TRY(find_named(c, b, &second, err));
  base_text_init(&t, base_alloc_libc);
  return give_or_free(&t, tf_explain_pair(&c->pass, first, second, &t, err), text, n, err);
}

/* Takes `wire`, whose bytes are the result unless text is asked for. */
static int give_graph(base_text *wire, xlac_graph_format format, char **bytes, size_t *n, xlac_error *err) {
  base_text t;
  if (format != XLAC_GRAPH_TEXT) return api_give_text(wire, bytes, n, err);
  base_text_init(&t, base_alloc_libc);
  int status = tf_wire_to_text(&t, TF_MSG_GRAPH_DEF, wire->s ? wire->s : "", wire->n, err);
  base_text_free(wire);
  return give_or_free(&t, status, bytes, n, err);
}

/* Writes a GraphDef in wire form; does not change the pass. */
typedef int graph_writer(const tf_pass *p, base_text *out, xlac_error *err);

static int write_clusters(const xlac_clusters *c, graph_writer *writer, xlac_graph_format format, char **bytes,
                          size_t *n, xlac_error *err) {
  base_text wire;
  TRY(check_graph_format(format, err));
  base_text_init(&wire, base_alloc_libc);
  int status = writer(&c->pass, &wire, err);
  if (status == 0) return give_graph(&wire, format, bytes, n, err);
  base_text_free(&wire);
  return status;
}

int xlac_clusters_write(const xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n, xlac_error *err) {
  return write_clusters(c, tf_write_clustered, format, bytes, n, err);
}

int xlac_clusters_write_annotated(const xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n,
                                  xlac_error *err) {
  return write_clusters(c, tf_write_annotated, format, bytes, n, err);
}

/* Not through write_clusters: encapsulating adds functions to the graph's memory, so the pass is not const
 * here. */
int xlac_clusters_write_encapsulated(xlac_clusters *c, xlac_graph_format format, char **bytes, size_t *n,
                                     xlac_error *err) {
  base_text wire;
  TRY(check_graph_format(format, err));
  base_text_init(&wire, base_alloc_libc);
  int status = tf_write_encapsulated(&c->pass, &wire, err);
  if (status == 0) return give_graph(&wire, format, bytes, n, err);
  base_text_free(&wire);
  return status;
}

/* Between wire and text form, with no look at what the graph means: unknown ops pass. */
int xlac_graph_convert(const void *bytes, size_t n, xlac_graph_format from, xlac_graph_format to, char **out,
                       size_t *n_out, xlac_error *err) {
  base_text wire;
  int status = 0;
  TRY(check_graph_format(from, err));
  TRY(check_graph_format(to, err));
  base_text_init(&wire, base_alloc_libc);
  if (graph_is_text(bytes, n, from))
    status = tf_text_to_wire(&wire, TF_MSG_GRAPH_DEF, bytes, n, err);
  else
    base_put(&wire, bytes, n);
  if (status == 0) return give_graph(&wire, to, out, n_out, err);
  base_text_free(&wire);
  return status;
}

int xlac_cluster_op_list(char **text, size_t *n, xlac_error *err) {
  base_text t;
  base_text_init(&t, base_alloc_libc);
  tf_put_op_list(&t);
  return api_give_text(&t, text, n, err);
}

/* --- TensorFlow graphs as StableHLO. --- */

/* `unset` is a variable without a value, so it has no type either. */
static int lower_check_input(const xlac_graph_input *in, tfl_named *out, xlac_error *err) {
  *out = (tfl_named){.tensor = in->tensor, .input = {.data = in->data, .resource = in->variable, .unset = in->unset}};
  if (in->unset) return 0;
  if (in->rank > TFL_MOST_DIMS)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "'%.200s' has %u dimensions, at most %d work", in->tensor, in->rank,
                     TFL_MOST_DIMS);
  size_t bytes = 0;
  TRY(api_array_bytes(in->dtype, in->rank, in->dims, &bytes, err));
  out->input.shape = (tfl_shape){.dtype = (base_dtype)in->dtype, .rank = in->rank};
  if (in->rank) memcpy(out->input.shape.dims, in->dims, in->rank * sizeof *in->dims);
  return 0;
}

/* The graph points into def; the module that comes out doesn't. */
static int lower_graph_in(xlac_module **out, base_text *report, tf_graph_def *def, uint32_t n_inputs,
                          const xlac_graph_input *inputs, uint32_t n_fetches, const char *const *fetches,
                          xlac_error *err) {
  tf_graph graph;
  ir_module *ir = NULL;
  tfl_named *named = BASE_ARRAY(&def->arena, tfl_named, (size_t)n_inputs + 1);
  if (!named) return base_oom(err, "lowering");
  for (uint32_t i = 0; i < n_inputs; i++) TRY(lower_check_input(&inputs[i], &named[i], err));
  TRY(tf_graph_import(&graph, def, NULL, err));
  int status = tfl_lower_whole(&ir, report, &graph, n_inputs, named, n_fetches, fetches, err);
  tf_graph_free(&graph);
  return status ? status : api_wrap(out, ir, err);
}

/* A whole graph, unclustered, as one StableHLO function from the inputs to the fetches. The
 * report (JSON) names parameters, results and updates in the function's order. */
int xlac_graph_lower(xlac_module **out, const void *bytes, size_t n, xlac_graph_format format, uint32_t n_inputs,
                     const xlac_graph_input *inputs, uint32_t n_fetches, const char *const *fetches, char **report,
                     size_t *n_report, xlac_error *err) {
  assert(n_inputs == 0 || inputs);
  tf_graph_def *def = NULL;
  base_text t;
  TRY(check_graph_format(format, err));
  for (uint32_t i = 0; i < n_inputs; i++) TRY(api_check_text(inputs[i].tensor, "an input's tensor", err));
  TRY(api_check_texts(n_fetches, fetches, "fetch", err));
  bool text = format == XLAC_GRAPH_TEXT || (format == XLAC_GRAPH_AUTO && tf_graph_def_is_text(bytes, n));
  TRY(tf_graph_def_read(&def, base_alloc_libc, bytes, n, text, err));
  base_text_init(&t, base_alloc_libc);
  int status = lower_graph_in(out, &t, def, n_inputs, inputs, n_fetches, fetches, err);
  tf_graph_def_free(def);
  if (status == 0) return api_give_text(&t, report, n_report, err);
  base_text_free(&t);
  return status;
}

/* Whether there is a lowering at all; attributes and types may still be refused. */
bool xlac_graph_has_lowering(const char *op) {
  return op && tfl_has_op(op);
}
