/* A step: the graph pruned to what the fetches and targets need, with feeds in place of what they give.
 *
 * Feeds become arguments of the pruned graph and fetches its results, so that it runs like a function's body.
 * Clusters keep their names, and those that lose nodes are compiled without them. */
#include <stdlib.h>
#include <time.h>

#include "../cluster/explain.h"
#include "../lower/tensor.h"
#include "run.h"
#include "strings.h"

/* Values of feeds and fetches are of the session's graph, which the step's own copies nodes from. */
struct tfs_step {
  tfs_session *session;
  tf_graph graph;
  tfs_program program;
  bool built;
  base_arena arena;
  uint32_t n_feeds, n_fetches;
  tf_value_id *feeds, *fetches; /* of the session's graph */
  tfs_feed_info *feed_infos;
  const char **fetch_names;
  uint64_t runs, failures;
  double seconds;
};

/* What is needed only while a step is made; arrays are by node of the session's graph, but group_of by node of the
 * new one. */
typedef struct tfs_pruner {
  tfs_step *step;
  const tf_graph *g;
  base_map feed_of; /* a value -> which feed */
  uint8_t *live;
  uint32_t *stack, n_stack;
  uint32_t *new_id, *group_of, *old_group_of, n_groups;
  const base_istr **names;
  xlac_error *err;
} tfs_pruner;

static int tfs_step_oom(xlac_error *err) {
  return base_oom(err, "preparing a step");
}

/* --- names --- */

/* "node", "node:1". A target may be "^node", and has output TF_CONTROL. Fails for names that are not values. A node
 * that clustering has replaced stands for what is in its place. `what` begins the message. */
static int tfs_find_value(const tfs_session *s, const char *what, const char *name, bool target, tf_value_id *out,
                          xlac_error *err) {
  assert(what && name);
  const char *colon = strrchr(name, ':');
  char node[1024];
  size_t n = colon ? (size_t)(colon - name) : strlen(name), skip = target && name[0] == '^';
  char *end = NULL;
  long output = colon ? strtol(colon + 1, &end, 10) : 0;
  if (n >= sizeof node || (colon && (*end || end == colon + 1 || output < 0 || output > INT32_MAX)))
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "%s '%.200s' is not the name of a value: node or node:output", what,
                     name);
  memcpy(node, name + skip, n - skip);
  node[n - skip] = 0;
  *out = (tf_value_id){tf_find_node(s->pass, node), target ? TF_CONTROL : (int32_t)output};
  if (out->node == TF_NO_EDGE || out->node <= TF_SINK)
    return base_hint(err, base_fail(err, XLAC_E_UNKNOWN_NAME, "%s '%.200s': the graph has no such node", what, name),
                     "names are case sensitive");
  out->node = tf_standing_node(s->pass, out->node);
  uint32_t n_outputs = s->pass->graph.nodes.items[out->node].n_outputs;
  if (!target && (uint32_t)output >= n_outputs)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "%s '%.200s': the node has %u outputs", what, name, n_outputs);
  return 0;
}

/* --- which nodes --- */

/* One number for a value, as the map of feeds has it. */
static uint64_t tfs_key_of(uint32_t node, int32_t output) {
  return (uint64_t)node << 32 | (uint32_t)output;
}

/* Whether a feed gives this value. */
static bool tfs_is_fed(const tfs_pruner *p, uint32_t node, int32_t output) {
  uint64_t feed = 0;
  return base_map_get(&p->feed_of, tfs_key_of(node, output), &feed);
}

/* Nobody waits for a placeholder that is fed. */
static bool tfs_edge_counts(const tfs_pruner *p, const tf_edge *e) {
  if (e->src <= TF_SINK) return false;
  if (e->src_output != TF_CONTROL) return true;
  const tf_node *src = &p->g->nodes.items[e->src];
  bool placeholder = tf_node_is(src, "Placeholder") || tf_node_is(src, "PlaceholderV2");
  return !(placeholder && tfs_is_fed(p, e->src, 0));
}

/* The stack has room for every node, since each is put on it once. */
static void tfs_need(tfs_pruner *p, uint32_t node) {
  assert(node < p->g->nodes.n);
  if (p->live[node]) return;
  p->live[node] = 1;
  p->stack[p->n_stack++] = node;
}

/* All that the needed nodes take, but nothing behind a value that is fed. */
static void tfs_mark_live(tfs_pruner *p) {
  while (p->n_stack > 0) {
    const tf_node *n = &p->g->nodes.items[p->stack[--p->n_stack]];
    TF_EACH_IN(p->g, n, k) {
      const tf_edge *e = &p->g->edges.items[k];
      if (tfs_edge_counts(p, e) && !tfs_is_fed(p, e->src, e->src_output)) tfs_need(p, e->src);
    }
  }
}

/* --- the pruned graph --- */

/* An argument or a result of the new graph, of the value's type and its node's name. */
static int tfs_add_end(tfs_pruner *p, const tf_value_id *v, bool arg) {
  assert(v->output >= 0);
  const tf_node *from = &p->g->nodes.items[v->node];
  unsigned type = tf_output_type(from, (uint32_t)v->output);
  return tf_graph_add_end(&p->step->graph, &p->step->arena, from->name, type, arg, p->err);
}

/* In the order of the old graph, so that programs are the same whatever the fetches' order. */
static int tfs_copy_live_nodes(tfs_pruner *p) {
  for (uint32_t i = TF_SINK + 1; i < p->g->nodes.n; i++) {
    if (!p->live[i]) continue;
    TRY(tf_graph_add_node(&p->step->graph, &p->g->nodes.items[i], &p->new_id[i], p->err));
    p->group_of[p->new_id[i]] = p->old_group_of[i];
  }
  return 0;
}

/* Where a value comes from in the pruned graph. Feeds are the first nodes of the new graph, in order. */
static tf_value_id tfs_new_value(const tfs_pruner *p, uint32_t node, int32_t output) {
  uint64_t feed = 0;
  if (base_map_get(&p->feed_of, tfs_key_of(node, output), &feed)) return (tf_value_id){TF_SINK + 1 + (uint32_t)feed, 0};
  return (tf_value_id){p->new_id[node], output};
}

/* Then the fetches', which are its last nodes. */
static int tfs_copy_live_edges(tfs_pruner *p) {
  tf_graph *into = &p->step->graph;
  for (uint32_t k = 0; k < p->g->edges.n; k++) {
    const tf_edge *e = &p->g->edges.items[k];
    if (e->dst <= TF_SINK || !p->live[e->dst] || !tfs_edge_counts(p, e)) continue;
    tf_value_id v = tfs_new_value(p, e->src, e->src_output);
    TRY(tf_graph_add_edge(into, v.node, v.output, p->new_id[e->dst], e->dst_input, p->err));
  }
  uint32_t first = into->nodes.n - p->step->n_fetches;
  for (uint32_t i = 0; i < p->step->n_fetches; i++) {
    tf_value_id v = tfs_new_value(p, p->step->fetches[i].node, p->step->fetches[i].output);
    TRY(tf_graph_add_edge(into, v.node, v.output, first + i, 0, p->err));
  }
  return tf_graph_connect_ends(into, p->err);
}

/* Feeds, nodes, fetches, in this order: their places among the nodes are relied on. */
static int tfs_prune(tfs_pruner *p) {
  assert(p->step->graph.def == NULL);
  tfs_step *s = p->step;
  TRY(tf_graph_begin(&s->graph, p->g->def, p->err));
  for (uint32_t i = 0; i < s->n_feeds; i++) TRY(tfs_add_end(p, &s->feeds[i], true));
  TRY(tfs_number_clusters(s->session->pass, p->old_group_of, &p->n_groups, p->names, p->err));
  TRY(tfs_copy_live_nodes(p));
  for (uint32_t i = 0; i < s->n_fetches; i++) TRY(tfs_add_end(p, &s->fetches[i], false));
  TRY(tfs_copy_live_edges(p));
  s->built = true;
  return tfs_program_build(&s->program, s->session, &s->graph, NULL, p->group_of, p->n_groups, p->names, p->err);
}

/* --- making a step --- */

/* What an array for it must be; and notes it as fed. Strings come as bytes. */
static int tfs_describe_feed(tfs_pruner *p, uint32_t i, const char *name) {
  assert(i < p->step->n_feeds);
  tfs_step *s = p->step;
  const tf_node *n = &p->g->nodes.items[s->feeds[i].node];
  unsigned type = tf_base_type(tf_output_type(n, (uint32_t)s->feeds[i].output));
  tfs_feed_info *f = &s->feed_infos[i];
  base_slice shape;
  *f = (tfs_feed_info){.name = base_arena_strndup(&s->arena, name, strlen(name)), .dtype = tfl_dtype_of(type)};
  f->strings = type == TF_STRING;
  if (f->strings) f->dtype = XLAC_U8;
  if (!f->name) return tfs_step_oom(p->err);
  if (f->dtype == BASE_DTYPE_INVALID)
    return base_fail(p->err, XLAC_E_ARGUMENT_TYPE, "feed '%.200s' is a %s, which no array can hold", name,
                     tf_type_word(type));
  if (tf_node_is(n, "Placeholder") && tf_attr_shape(tf_attr_find(n->def->attrs, "shape"), &shape))
    TRY(tfl_read_shape(shape, &f->rank_known, &f->rank, f->dims, p->err));
  if (f->rank == 0) f->rank_known = false; /* old graphs write unknown shapes so */
  uint64_t other = 0, key = tfs_key_of(s->feeds[i].node, s->feeds[i].output);
  if (base_map_get(&p->feed_of, key, &other))
    return base_fail(p->err, XLAC_E_DUPLICATE_NAME, "feed '%.200s' is there twice", name);
  return base_map_set(&p->feed_of, key, i) ? 0 : tfs_step_oom(p->err);
}

/* Feeds first: what is needed for the fetches depends on them. */
static int tfs_resolve(tfs_pruner *p, const char *const *feeds, const char *const *fetches, uint32_t n_targets,
                       const char *const *targets) {
  tfs_step *s = p->step;
  for (uint32_t i = 0; i < s->n_feeds; i++) {
    TRY(tfs_find_value(s->session, "feed", feeds[i], false, &s->feeds[i], p->err));
    TRY(tfs_describe_feed(p, i, feeds[i]));
  }
  for (uint32_t i = 0; i < s->n_fetches; i++) {
    TRY(tfs_find_value(s->session, "fetch", fetches[i], false, &s->fetches[i], p->err));
    s->fetch_names[i] = base_arena_strndup(&s->arena, fetches[i], strlen(fetches[i]));
    if (!s->fetch_names[i]) return tfs_step_oom(p->err);
    if (!tfs_is_fed(p, s->fetches[i].node, s->fetches[i].output)) tfs_need(p, s->fetches[i].node);
  }
  for (uint32_t i = 0; i < n_targets; i++) {
    tf_value_id v = {0, 0};
    TRY(tfs_find_value(s->session, "target", targets[i], true, &v, p->err));
    tfs_need(p, v.node);
  }
  tfs_mark_live(p);
  return tfs_prune(p);
}

/* The step's own are the arena's; the rest is freed by tfs_step_create. */
static int tfs_step_rooms(tfs_pruner *p) {
  tfs_step *s = p->step;
  size_t n = p->g->nodes.n, all = n + s->n_feeds + s->n_fetches;
  s->feeds = BASE_ARRAY(&s->arena, tf_value_id, s->n_feeds + (size_t)1);
  s->fetches = BASE_ARRAY(&s->arena, tf_value_id, s->n_fetches + (size_t)1);
  s->feed_infos = BASE_ARRAY(&s->arena, tfs_feed_info, s->n_feeds + (size_t)1);
  s->fetch_names = BASE_ARRAY(&s->arena, const char *, s->n_fetches + (size_t)1);
  p->live = base_malloc(p->g->alloc, n);
  p->stack = base_malloc(p->g->alloc, n * sizeof *p->stack);
  p->new_id = base_malloc(p->g->alloc, n * sizeof *p->new_id);
  p->group_of = base_malloc(p->g->alloc, all * sizeof *p->group_of);
  p->old_group_of = base_malloc(p->g->alloc, n * sizeof *p->old_group_of);
  p->names = base_malloc(p->g->alloc, n * sizeof *p->names);
  if (!s->feeds || !s->fetches || !s->feed_infos || !s->fetch_names || !p->live || !p->stack || !p->new_id ||
      !p->group_of || !p->old_group_of || !p->names)
    return tfs_step_oom(p->err);
  memset(p->live, 0, n);
  memset(p->group_of, 0xFF, all * sizeof *p->group_of);
  return 0;
}

/* A failure leaves nothing behind. */
int tfs_step_create(tfs_step **out, tfs_session *s, uint32_t n_feeds, const char *const *feeds, uint32_t n_fetches,
                    const char *const *fetches, uint32_t n_targets, const char *const *targets, xlac_error *err) {
  assert(s->pass);
  tfs_step *step = base_malloc(s->alloc, sizeof *step);
  if (!step) return tfs_step_oom(err);
  *step = (tfs_step){.session = s, .n_feeds = n_feeds, .n_fetches = n_fetches};
  base_arena_init(&step->arena, s->alloc);
  tfs_pruner p = {.step = step, .g = &s->pass->graph, .err = err};
  base_map_init(&p.feed_of, s->alloc);
  int status = tfs_step_rooms(&p);
  if (status == 0) status = tfs_resolve(&p, feeds, fetches, n_targets, targets);
  base_map_free(&p.feed_of);
  void *lists[] = {p.live, p.stack, p.new_id, p.group_of, p.old_group_of, (void *)p.names};
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) base_free(s->alloc, lists[i]);
  if (status) {
    tfs_step_free(step);
    return status;
  }
  *out = step;
  return 0;
}

/* The program goes before the graph that it refers to. */
void tfs_step_free(tfs_step *step) {
  if (!step) return;
  if (step->built) tfs_program_free(&step->program);
  if (step->graph.def) tf_graph_free(&step->graph);
  base_arena_free(&step->arena);
  base_free(step->session->alloc, step);
}

const tfs_feed_info *tfs_step_feed(const tfs_step *step, uint32_t i) {
  return i < step->n_feeds ? &step->feed_infos[i] : NULL;
}

/* Borrowed: for the report. */
tfs_step_view tfs_step_look(const tfs_step *step) {
  return (tfs_step_view){&step->program, step->runs, step->failures, step->seconds};
}

/* --- running --- */

/* Sizes that the placeholder leaves open fit anything. Of strings the last dimension is their bytes. */
static int tfs_check_feed(const tfs_feed_info *f, const interp_value *v, xlac_error *err) {
  assert(f->rank <= IR_MAX_RANK);
  if (v->kind != INTERP_ARRAY || v->dtype != f->dtype)
    return base_fail(err, XLAC_E_ARGUMENT_TYPE, "feed '%.200s' needs an array of %s, not of %s", f->name,
                     base_dtype_of(f->dtype)->text,
                     v->kind == INTERP_ARRAY ? base_dtype_of((base_dtype)v->dtype)->text : "another kind");
  uint32_t rank = f->strings && v->rank ? v->rank - 1 : v->rank;
  if (!f->rank_known) return 0;
  if (rank != f->rank)
    return base_fail(err, XLAC_E_ARGUMENT_SHAPE, "feed '%.200s' needs rank %u, not %u", f->name, f->rank, rank);
  for (uint32_t d = 0; d < f->rank; d++)
    if (f->dims[d] >= 0 && f->dims[d] != v->dims[d])
      return base_fail(err, XLAC_E_ARGUMENT_SHAPE, "feed '%.200s' needs size %lld in dimension %u, not %lld", f->name,
                       (long long)f->dims[d], d, (long long)v->dims[d]);
  return 0;
}

/* An array that is the caller's alone. Moved where nobody else holds it; else copied, because the caller may write
 * to it. */
static int tfs_give_result(const tfs_step *step, uint32_t i, tfs_value *v, interp_value **out, xlac_error *err) {
  interp_value *t = v->kind == TFS_TENSOR ? v->tensor : tfs_is_object(v, TFS_VARIABLE) ? v->object->value : NULL;
  if (tfs_is_object(v, TFS_STRINGS)) {
    *out = tfs_strings_to_array(step->session->alloc, v->object);
    return *out ? 0 : base_oom(err, "giving a result");
  }
  if (v->kind == TFS_NONE)
    return base_hint(err, base_fail(err, XLAC_E_EVAL, "fetch '%.200s' has no value", step->fetch_names[i]),
                     "it lies on a branch that was not taken");
  if (!t)
    return base_fail(err, XLAC_E_ARGUMENT_TYPE, "fetch '%.200s' is not a tensor of numbers, which an array could hold",
                     step->fetch_names[i]);
  if (v->kind == TFS_TENSOR && tfs_is_sole(t)) {
    *out = t;
    v->kind = TFS_NONE;
    return 0;
  }
  *out = tfs_copy_tensor(step->session->alloc, t);
  return *out ? 0 : base_oom(err, "giving a result");
}

/* By the type that the graph says, before anything runs. */
bool tfs_step_gives_strings(const tfs_step *step, uint32_t i, bool *past) {
  *past = i >= step->n_fetches;
  if (*past) return false;
  const tf_node *n = &step->session->pass->graph.nodes.items[step->fetches[i].node];
  return tf_base_type(tf_output_type(n, (uint32_t)step->fetches[i].output)) == TF_STRING;
}

/* Arrays are borrowed; strings are made of them. values: nothing at first, one for each feed. */
static int tfs_give_feeds(const tfs_step *step, interp_value *const *args, tfs_value *values, xlac_error *err) {
  for (uint32_t i = 0; i < step->n_feeds; i++) {
    tfs_object *strings = NULL;
    values[i] = tfs_of_tensor(args[i]);
    if (!step->feed_infos[i].strings) continue;
    values[i].kind = TFS_NONE;
    TRY(tfs_strings_from_array(step->session->alloc, args[i], &strings, err));
    values[i] = tfs_of_object(strings);
  }
  return 0;
}

/* Runs with the step's own allocator, so that results outlive the call. */
static int tfs_run_step(tfs_step *step, const rt_call_options *options, const tfs_value *args, tfs_value *values,
                        interp_value **results, xlac_error *err) {
  tfs_context ctx = {.session = step->session, .options = *options, .err = err};
  TRY(tfs_run_program(&ctx, &step->program, args, values));
  for (uint32_t i = 0; i < step->n_fetches; i++) TRY(tfs_give_result(step, i, &values[i], &results[i], err));
  return 0;
}

/* Between begin and end of a call, changes of variables are noted, and undone where it fails. */
int tfs_step_run(tfs_step *step, const rt_call_options *options, interp_value *const *args, interp_value **results,
                 xlac_error *err) {
  assert(args || step->n_feeds == 0);
  struct timespec from, to;
  size_t n = (size_t)step->n_feeds + step->n_fetches + 1;
  for (uint32_t i = 0; i < step->n_feeds; i++) TRY(tfs_check_feed(&step->feed_infos[i], args[i], err));
  tfs_value *values = base_malloc(step->session->alloc, n * sizeof *values);
  if (!values) return base_oom(err, "running a step");
  memset(values, 0, n * sizeof *values);
  for (uint32_t i = 0; i < step->n_fetches; i++) results[i] = NULL;
  clock_gettime(CLOCK_MONOTONIC, &from);
  tfs_begin_call(step->session);
  int status = tfs_give_feeds(step, args, values, err);
  if (status == 0) status = tfs_run_step(step, options, values, values + step->n_feeds, results, err);
  tfs_end_call(step->session, status != 0);
  clock_gettime(CLOCK_MONOTONIC, &to);
  step->seconds += (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  step->runs++;
  step->failures += status != 0;
  for (uint32_t i = 0; i < step->n_feeds; i++)
    if (values[i].kind == TFS_OBJECT) tfs_drop(&values[i]);
  for (uint32_t i = 0; i < step->n_fetches; i++) {
    tfs_drop(&values[step->n_feeds + i]);
    if (status) interp_release(results[i]);
    if (status) results[i] = NULL;
  }
  base_free(step->session->alloc, values);
  return status;
}
