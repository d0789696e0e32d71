/* A whole graph as one module: feeds become _Arg nodes, fetches get _Retval nodes, and what tfl_lower leaves out
 * of the module (known data, inputs passed through) is put back as constants and parameters, so that main gives
 * every fetch. */
#include "whole.h"

#include "../../text/proto/wire.h"
#include "build.h"

/* Fails for a name that is none of the graph's. */
static int whole_unknown(const char *tensor, xlac_error *err) {
  return base_hint(err, base_fail(err, XLAC_E_UNKNOWN_NAME, "the graph has no tensor '%.200s'", tensor),
                   "a tensor is the name of a node, with a colon and the number of the output unless that is 0");
}

/* "x:1" -> the node and its output. Nodes 0 and 1 are the graph's ends, which have no names of the user's. A
 * search, since there are few names to find. */
static int whole_find(const tf_graph *g, const char *tensor, uint32_t *id, int32_t *output, xlac_error *err) {
  assert(tensor != NULL);
  size_t n = strlen(tensor);
  const char *colon = strrchr(tensor, ':');
  int64_t number = 0;
  if (colon) {
    n = (size_t)(colon - tensor);
    if (colon[1] == 0) return whole_unknown(tensor, err);
    for (const char *p = colon + 1; *p; p++) {
      if (*p < '0' || *p > '9' || number > INT32_MAX / 16) return whole_unknown(tensor, err);
      number = number * 10 + (*p - '0');
    }
  }
  for (*id = 2; *id < g->nodes.n; ++*id) {
    const tf_node *node = &g->nodes.items[*id];
    if (node->name->n != n || memcmp(node->name->s, tensor, n) != 0) continue;
    *output = (int32_t)number;
    return number < node->n_outputs ? 0 : whole_unknown(tensor, err);
  }
  return whole_unknown(tensor, err);
}

/* A node definition of that op with the attribute "index". NULL when out of memory. The attribute says which
 * argument, or result, the node is. */
static tf_node_def *whole_def(tf_graph *g, const base_istr *name, const char *op, uint32_t number) {
  base_arena *a = &g->def->arena;
  tf_node_def *def = BASE_NEW(a, tf_node_def);
  tf_attr *attr = BASE_NEW(a, tf_attr);
  base_text value;
  base_text_init(&value, a->alloc);
  proto_put_int_always(&value, 3, number);
  char *kept = value.failed ? NULL : base_arena_memdup(a, value.s, value.n);
  if (def && attr && kept) {
    *attr = (tf_attr){base_intern(&g->def->strings, "index", 5), {kept, value.n}};
    *def = (tf_node_def){.name = name, .op = base_intern(&g->def->strings, op, strlen(op)), .attrs = {1, attr}};
  }
  base_text_free(&value);
  return kept && def && attr && attr->key && def->op ? def : NULL;
}

/* The node itself is turned into an _Arg; whatever op it had (Placeholder, mostly) is forgotten. Only a node
 * without inputs and with one output can become an argument: what takes inputs would leave its producers without
 * use, and who reads another output would read nothing. */
static int whole_feed(tf_graph *g, const char *tensor, uint32_t number, xlac_error *err) {
  uint32_t id = 0;
  int32_t output = 0;
  TRY(whole_find(g, tensor, &id, &output, err));
  tf_node *node = &g->nodes.items[id];
  if (node->n_inputs != 0 || node->n_outputs != 1)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "'%.200s' can't be an input: its node takes inputs or has other outputs",
                     tensor);
  node->def = whole_def(g, node->name, "_Arg", number);
  if (!node->def) return base_oom(err, "lowering");
  TRY(tf_op_def_of(g->def, node->def->op, &node->op, err));
  node->role = TF_ROLE_ARG;
  return 0;
}

/* The new node is named as the user wrote the fetch, so that the report can repeat it. _Retval takes the type of
 * what it returns, and lies in the graph's own memory as the other nodes do. */
static int whole_fetch(tf_graph *g, const char *tensor, uint32_t number, xlac_error *err) {
  uint32_t id = 0, at = 0;
  int32_t output = 0;
  TRY(whole_find(g, tensor, &id, &output, err));
  uint8_t *types = base_arena_alloc(&g->def->arena, 1);
  const base_istr *name = base_intern(&g->def->strings, tensor, strlen(tensor));
  tf_node_def *def = name ? whole_def(g, name, "_Retval", number) : NULL;
  if (!types || !def) return base_oom(err, "lowering");
  types[0] = (uint8_t)tf_output_type(&g->nodes.items[id], (uint32_t)output);
  tf_node node = {.def = def, .name = name, .types = types, .n_inputs = 1, .role = TF_ROLE_RETVAL};
  TRY(tf_op_def_of(g->def, def->op, &node.op, err));
  TRY(tf_graph_add_node(g, &node, &at, err));
  TRY(tf_graph_add_edge(g, id, output, at, 0, err));
  return 0;
}

/* --- all results in main, known ones too --- */

/* Completing main. `params` has, by parameter of main, which input it is; there is room for every input once. */
typedef struct whole_ends {
  opt_rewriter rw;
  tfl_lowered *l;
  uint32_t n_inputs;
  const tfl_named *inputs;
  uint32_t *params; /* of main */
  uint32_t n_params;
} whole_ends;

/* The parameter for an input, made where main has none yet. An input that is an output as it is has no parameter
 * so far: nothing was computed from it. */
static ir_value whole_input(whole_ends *w, uint32_t input, const tfl_shape *s) {
  assert(input < w->n_inputs);
  ir_computation *main = w->l->module->entry;
  for (uint32_t i = 0; i < w->n_params; i++)
    if (w->params[i] == input) return (ir_value){main->params[i], 0};
  w->params[w->n_params++] = input;
  return opt_region_argument(&w->rw, main, opt_tensor(&w->rw, s->dtype, s->rank, s->dims));
}

/* Gives main its results: the outputs in the order of the fetches, and behind them the new values of variables. An
 * output is one of four things: a result that main has already, data known from the graph, data of an input that
 * was given with values, or an input's own parameter. */
static int whole_results(whole_ends *w, xlac_error *err) {
  assert(w->l->module->entry != NULL);
  tfl_lowered *l = w->l;
  ir_computation *main = l->module->entry;
  ir_value *results = BASE_ARRAY(&l->arena, ir_value, (size_t)l->n_outputs + l->n_updates + 1);
  w->params = BASE_ARRAY(&l->arena, uint32_t, (size_t)w->n_inputs + 1);
  if (!results || !w->params) return base_oom(err, "lowering");
  for (; w->n_params < l->n_params; w->n_params++) w->params[w->n_params] = l->params[w->n_params];
  opt_at_end(&w->rw, main, NULL);
  for (uint32_t i = 0; i < l->n_outputs; i++) {
    const tfl_output *o = &l->outputs[i];
    if (o->shape.dtype == BASE_DTYPE_INVALID)
      return base_fail(err, XLAC_E_LOWER, "result %u is not a tensor of numbers", i);
    if (o->result >= 0)
      results[i] = main->results[o->result];
    else if (o->data)
      results[i] =
          opt_constant_data(&w->rw, opt_tensor(&w->rw, o->shape.dtype, o->shape.rank, o->shape.dims), o->data, false);
    else if (w->inputs[o->input].input.data)
      results[i] = opt_constant_data(&w->rw, opt_tensor(&w->rw, o->shape.dtype, o->shape.rank, o->shape.dims),
                                     w->inputs[o->input].input.data, false);
    else
      results[i] = whole_input(w, (uint32_t)o->input, &o->shape);
  }
  for (uint32_t i = 0; i < l->n_updates; i++) results[l->n_outputs + i] = main->results[l->updates[i].result];
  opt_set_results(&w->rw, main, l->n_outputs + l->n_updates, results);
  return opt_rewriter_status(&w->rw);
}

/* Begins a list of names in the report, and ends the one before. */
static void whole_list(base_text *t, const char *key, bool first) {
  assert(key);
  if (!first) BASE_PUT(t, "], ");
  base_putf(t, "\"%s\": [", key);
}

/* One name, with its comma. */
static void whole_item(base_text *t, const char *name, bool first) {
  assert(name);
  if (!first) BASE_PUT(t, ", ");
  base_put_json(t, name, strlen(name));
}

/* JSON; names are escaped. Which inputs became parameters, which fetches results, and which variables get new
 * values, each in main's order. */
static void whole_report(const whole_ends *w, base_text *t, uint32_t n_fetches, const char *const *fetches) {
  base_putc(t, '{');
  whole_list(t, "parameters", true);
  for (uint32_t i = 0; i < w->n_params; i++) whole_item(t, w->inputs[w->params[i]].tensor, i == 0);
  whole_list(t, "results", false);
  for (uint32_t i = 0; i < n_fetches; i++) whole_item(t, fetches[i], i == 0);
  whole_list(t, "updates", false);
  for (uint32_t i = 0; i < w->l->n_updates; i++) whole_item(t, w->inputs[w->l->updates[i].input].tensor, i == 0);
  BASE_PUT(t, "]}");
}

/* The module is the caller's on success, and is freed with *l otherwise. `l` must have its arena; everything in it
 * is freed by the caller, also after a failure. */
static int whole_lower(ir_module **out, base_text *report, tf_graph *graph, tf_bodies *bodies, tfl_lowered *l,
                       uint32_t n_inputs, const tfl_named *inputs, uint32_t n_fetches, const char *const *fetches,
                       xlac_error *err) {
  assert(graph && bodies && l->module == NULL);
  whole_ends w = {.l = l, .n_inputs = n_inputs, .inputs = inputs};
  tfl_input *plain = BASE_ARRAY(&graph->def->arena, tfl_input, (size_t)n_inputs + 1);
  if (!plain) return base_oom(err, "lowering");
  for (uint32_t i = 0; i < n_inputs; i++) plain[i] = inputs[i].input;
  TRY(tfl_lower(l, bodies, graph, n_inputs, plain, err));
  TRY(opt_rewriter_init(&w.rw, l->module, err));
  int status = whole_results(&w, err);
  opt_rewriter_free(&w.rw);
  TRY(status);
  whole_report(&w, report, n_fetches, fetches);
  if (report->failed) return base_oom(err, "lowering");
  *out = l->module;
  l->module = NULL;
  return 0;
}

/* The graph has been changed after a failure, too. Feeds and fetches are written into the graph, so it can't be
 * lowered twice. */
int tfl_lower_whole(ir_module **out, base_text *report, tf_graph *graph, uint32_t n_inputs, const tfl_named *inputs,
                    uint32_t n_fetches, const char *const *fetches, xlac_error *err) {
  assert(out && report);
  tf_bodies bodies;
  tfl_lowered l = {.module = NULL};
  for (uint32_t i = 0; i < n_inputs; i++) TRY(whole_feed(graph, inputs[i].tensor, i, err));
  for (uint32_t i = 0; i < n_fetches; i++) TRY(whole_fetch(graph, fetches[i], i, err));
  tf_bodies_init(&bodies, graph->def);
  base_arena_init(&l.arena, bodies.alloc);
  int status = whole_lower(out, report, graph, &bodies, &l, n_inputs, inputs, n_fetches, fetches, err);
  tfl_lowered_free(&l);
  tf_bodies_free(&bodies);
  return status;
}
