/* The graph with each cluster as a function of the library and a node that calls it, as a GraphDef: for reading
 * and for other tools. Nodes outside are written as they were but for inputs that now come from a call:
 *   a = MatMul(x, y)     [cluster_0]        cluster_0 = cluster_0(x, y)
 *   b = Relu(a)          [cluster_0]   =>   c = Print(cluster_0)
 *   c = Print(b) */
#include "../../text/proto/wire.h"
#include "encapsulate.h"

/* A cluster, and what was cut out for it. */
typedef struct tf_caller {
  const base_istr *name;
  uint32_t first, n; /* its nodes, in tf_encapsulator.nodes */
  tf_part part;
} tf_caller;
BASE_VEC(tf_callers, tf_caller);

/* One writing. Lists by node of the graph lie in `arena`. */
typedef struct tf_encapsulator {
  tf_pass *p;
  base_text *out;
  base_alloc alloc;
  tf_callers clusters;
  tf_vertex_ids nodes;
  uint32_t *cluster_of; /* by node: which cluster; TF_NO_EDGE for none */
  base_map output_of;   /* node and output -> its number among the call's results */
  base_arena arena;
  base_interner names; /* that the function being written has used */
  xlac_error *err;
} tf_encapsulator;

static int tf_encapsulate_oom(const tf_encapsulator *w) {
  return base_oom(w->err, "writing a graph");
}

/* --- which nodes --- */

/* Clusters in the order of their first nodes; nodes of each in rising order, which tf_cut_out wants. A counting
 * sort. */
static int tf_list_clusters(tf_encapsulator *w) {
  const tf_pass *p = w->p;
  uint32_t n = p->graph.nodes.n, *next = base_malloc(w->alloc, n * sizeof *next);
  base_map known;
  base_map_init(&known, w->alloc);
  bool fine = next != NULL && BASE_VEC_RESERVE(w->alloc, &w->nodes, n);
  for (uint32_t i = 0; i < n && fine; i++) {
    uint64_t at = w->clusters.n;
    w->cluster_of[i] = TF_NO_EDGE;
    if (!p->result[i]) continue;
    if (!base_map_get(&known, base_key(p->result[i]), &at)) {
      tf_caller c = {.name = p->result[i]};
      fine = base_map_set(&known, base_key(c.name), at) && BASE_VEC_PUSH(w->alloc, &w->clusters, c);
    }
    if (!fine) break;
    w->cluster_of[i] = (uint32_t)at;
    w->clusters.items[at].n++;
  }
  uint32_t total = 0;
  for (uint32_t c = 0; c < w->clusters.n && fine; c++) {
    next[c] = w->clusters.items[c].first = total;
    total += w->clusters.items[c].n;
  }
  for (uint32_t i = 0; i < n && fine; i++)
    if (w->cluster_of[i] != TF_NO_EDGE) w->nodes.items[next[w->cluster_of[i]]++] = i;
  w->nodes.n = total;
  base_free(w->alloc, next);
  base_map_free(&known);
  return fine ? 0 : tf_encapsulate_oom(w);
}

/* Finds which result of its call each value is that nodes outside take. */
static int tf_cut_clusters(tf_encapsulator *w) {
  for (uint32_t c = 0; c < w->clusters.n; c++) {
    tf_caller *k = &w->clusters.items[c];
    TRY(tf_cut_out(&k->part, &w->arena, &w->p->bodies, &w->p->graph, k->n, w->nodes.items + k->first, w->err));
    for (uint32_t i = 0; i < k->part.n_outputs; i++) {
      uint64_t key = (uint64_t)k->part.outputs[i].node << 32 | (uint32_t)k->part.outputs[i].output;
      if (!base_map_set(&w->output_of, key, i)) return tf_encapsulate_oom(w);
    }
  }
  return 0;
}

/* --- attributes --- */

/* A map entry whose AttrValue has a number: field 3 is i, 5 is b. */
static void tf_put_entry(base_text *out, const char *key, uint32_t field, int64_t value) {
  size_t entry = proto_begin(out, 5);
  proto_put_bytes(out, 1, key, strlen(key));
  size_t attr = proto_begin(out, 2);
  proto_put_int_always(out, field, value);
  proto_end(out, attr);
  proto_end(out, entry);
}

/* A node as it was read, but with other inputs; copies have names of their own. */
static void tf_put_all_but_inputs(base_text *out, const tf_node_def *n) {
  proto_put_bytes(out, 1, n->name->s, n->name->n);
  const char *at = n->bytes.p, *end = n->bytes.p + n->bytes.n, *from = at;
  for (tf_raw_field f; at && tf_raw_next(&at, end, &f); from = at)
    if (f.number != 1 && f.number != 3) base_put(out, from, (size_t)(at - from));
}

/* One input: `format` before the name ("" or "^"), output 0 without a number. */
static void tf_put_input(base_text *out, const char *format, const char *name, int64_t number) {
  base_text t;
  base_text_init(&t, out->alloc);
  base_puts(&t, format);
  base_puts(&t, name);
  if (number > 0) base_putf(&t, ":%lld", (long long)number);
  proto_put_bytes(out, 3, t.s, t.n);
  out->failed |= t.failed;
  base_text_free(&t);
}

/* --- the nodes outside --- */

/* A value as nodes outside see it. Values of a cluster are results of its call. */
static void tf_put_outer_value(tf_encapsulator *w, tf_value_id v) {
  uint32_t c = w->cluster_of[v.node];
  uint64_t number = 0;
  if (c == TF_NO_EDGE) {
    tf_put_input(w->out, "", w->p->graph.nodes.items[v.node].name->s, v.output);
    return;
  }
  bool found = base_map_get(&w->output_of, (uint64_t)v.node << 32 | (uint32_t)v.output, &number);
  assert(found);
  (void)found;
  tf_put_input(w->out, "", w->clusters.items[c].name->s, (int64_t)number);
}

/* Who is waited for, each once: `seen` is marked with the waiter's number. */
static void tf_put_outer_control(tf_encapsulator *w, uint32_t node, uint32_t *seen, uint32_t mark) {
  uint32_t c = w->cluster_of[node];
  if (node <= TF_SINK) return;
  if (c == TF_NO_EDGE) {
    tf_put_input(w->out, "^", w->p->graph.nodes.items[node].name->s, 0);
  } else if (seen[c] != mark) {
    seen[c] = mark;
    tf_put_input(w->out, "^", w->clusters.items[c].name->s, 0);
  }
}

/* Nodes that left the graph for their copies (TF_LEFT_NOTHING) are not written. */
static int tf_put_outer_node(tf_encapsulator *w, uint32_t id, uint32_t *seen) {
  const tf_graph *g = &w->p->graph;
  const tf_node *n = &g->nodes.items[id];
  tf_value_id *inputs = BASE_ARRAY(&w->arena, tf_value_id, n->n_inputs + (size_t)1);
  if (!inputs) return tf_encapsulate_oom(w);
  if (w->p->left[id] == TF_LEFT_NOTHING) return 0;
  TF_EACH_IN(g, n, k) {
    const tf_edge *e = &g->edges.items[k];
    if (e->dst_input != TF_CONTROL) inputs[e->dst_input] = (tf_value_id){e->src, e->src_output};
  }
  size_t node = proto_begin(w->out, 1);
  tf_put_all_but_inputs(w->out, n->def);
  for (uint32_t i = 0; i < n->n_inputs; i++) tf_put_outer_value(w, inputs[i]);
  TF_EACH_IN(g, n, k)
  if (g->edges.items[k].dst_input == TF_CONTROL) tf_put_outer_control(w, g->edges.items[k].src, seen, id);
  proto_end(w->out, node);
  return 0;
}

/* For _XlaHasReferenceVars: whether some argument is a reference. */
static bool tf_part_has_refs(const tf_part *part) {
  for (uint32_t i = 0; i < part->n_inputs; i++)
    if (tf_output_type(&part->graph.nodes.items[TF_SINK + 1 + i], 0) >= TF_REF) return true;
  return false;
}

/* The call has the function's name, stands at the place of the cluster's first node, and has its device. It does
 * not wait for itself: `seen` is marked with it first. */
static void tf_put_call(tf_encapsulator *w, uint32_t number, uint32_t *seen, uint32_t mark) {
  const tf_caller *c = &w->clusters.items[number];
  const tf_node *first = &w->p->graph.nodes.items[w->nodes.items[c->first]];
  size_t node = proto_begin(w->out, 1);
  proto_put_str(w->out, 1, c->name);
  proto_put_str(w->out, 2, c->name);
  for (uint32_t i = 0; i < c->part.n_inputs; i++) tf_put_outer_value(w, c->part.inputs[i]);
  seen[number] = mark;
  for (uint32_t i = 0; i < c->part.n_control_in; i++) tf_put_outer_control(w, c->part.control_in[i], seen, mark);
  proto_put_str(w->out, 4, first->device);
  tf_put_entry(w->out, "_XlaCompiledKernel", 5, 1);
  tf_put_entry(w->out, "_XlaHasReferenceVars", 5, tf_part_has_refs(&c->part));
  tf_put_entry(w->out, "_XlaNumConstantArgs", 3, c->part.n_constants);
  tf_put_entry(w->out, "_XlaNumResourceArgs", 3, c->part.n_resources);
  proto_end(w->out, node);
}

/* --- functions --- */

/* A name for an argument: letters, digits and '_', small, unlike any other of the function. */
static const base_istr *tf_arg_name(tf_encapsulator *w, const base_istr *wish) {
  base_text t;
  base_text_init(&t, w->alloc);
  for (uint32_t i = 0; i < wish->n; i++) {
    char c = wish->s[i];
    if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
    bool letter = c >= 'a' && c <= 'z', fits = letter || (c >= '0' && c <= '9') || c == '_';
    if (i == 0 && !letter) BASE_PUT(&t, "arg_");
    base_putc(&t, fits ? c : '_');
  }
  size_t n = t.n;
  for (unsigned k = 0; !t.failed && base_intern_find(&w->names, t.s, t.n); k++) {
    t.n = n;
    base_putf(&t, "_%u", k);
  }
  const base_istr *name = t.failed ? NULL : base_intern(&w->names, t.s, t.n);
  base_text_free(&t);
  return name;
}

/* "node:argument:index" of an output, or the name of an argument. */
static int tf_put_inner_value(tf_encapsulator *w, const tf_part *part, const base_istr *const *args, uint32_t src,
                              int32_t output, base_text *t) {
  const tf_node *n = &part->graph.nodes.items[src];
  int64_t at = 0, count = 1;
  t->n = 0;
  if (n->role == TF_ROLE_ARG) {
    base_put(t, args[src - TF_SINK - 1]->s, args[src - TF_SINK - 1]->n);
    return 0;
  }
  for (uint32_t i = 0; i < n->op->n_outputs; i++, at += count) {
    const tf_arg_def *a = &n->op->outputs[i];
    count = 1;
    if (a->type_list_attr.n > 0)
      count = tf_attr_count_types(tf_attr_or_default(n->op, n->def->attrs, a->type_list_attr));
    else if (a->number_attr.n > 0)
      (void)tf_attr_int(tf_attr_or_default(n->op, n->def->attrs, a->number_attr), &count);
    if (output >= at + count) continue;
    base_putf(t, "%s:%.*s:%lld", n->name->s, (int)a->name.n, a->name.p, (long long)(output - at));
    return t->failed ? tf_encapsulate_oom(w) : 0;
  }
  return base_fail(w->err, XLAC_E_INTERNAL, "node '%.120s' has no output %d", n->name->s, output);
}

/* A node of a part as a NodeDef of a function: inputs by argument names, control inputs within the part only. */
static int tf_put_inner_node(tf_encapsulator *w, const tf_part *part, const base_istr *const *args, uint32_t id,
                             base_text *t) {
  const tf_graph *g = &part->graph;
  const tf_node *n = &g->nodes.items[id];
  tf_value_id *inputs = BASE_ARRAY(&w->arena, tf_value_id, n->n_inputs + (size_t)1);
  if (!inputs) return tf_encapsulate_oom(w);
  TF_EACH_IN(g, n, k) {
    const tf_edge *e = &g->edges.items[k];
    if (e->dst_input != TF_CONTROL) inputs[e->dst_input] = (tf_value_id){e->src, e->src_output};
  }
  size_t node = proto_begin(w->out, 3);
  tf_put_all_but_inputs(w->out, n->def);
  for (uint32_t i = 0; i < n->n_inputs; i++) {
    TRY(tf_put_inner_value(w, part, args, inputs[i].node, inputs[i].output, t));
    proto_put_bytes(w->out, 3, t->s, t->n);
  }
  TF_EACH_IN(g, n, k) {
    const tf_edge *e = &g->edges.items[k];
    if (e->dst_input == TF_CONTROL && e->src > TF_SINK) tf_put_input(w->out, "^", g->nodes.items[e->src].name->s, 0);
  }
  proto_end(w->out, node);
  return 0;
}

/* Arguments are values, never references. */
static void tf_put_arg_def(base_text *out, uint32_t field, const base_istr *name, unsigned type) {
  size_t arg = proto_begin(out, field);
  proto_put_str(out, 1, name);
  proto_put_int(out, 3, tf_base_type(type));
  proto_end(out, arg);
}

/* Names of nodes are taken first, so that no argument gets one; args has inputs, then outputs. */
static int tf_name_args(tf_encapsulator *w, const tf_part *part, const base_istr **args) {
  uint32_t first = TF_SINK + 1 + part->n_inputs, last = part->graph.nodes.n - part->n_outputs;
  for (uint32_t i = first; i < last; i++) {
    const base_istr *name = part->graph.nodes.items[i].name;
    if (!base_intern(&w->names, name->s, name->n)) return tf_encapsulate_oom(w);
  }
  for (uint32_t i = 0; i < part->n_inputs + part->n_outputs; i++) {
    uint32_t node = i < part->n_inputs ? TF_SINK + 1 + i : last + i - part->n_inputs;
    args[i] = tf_arg_name(w, part->graph.nodes.items[node].name);
    if (!args[i]) return tf_encapsulate_oom(w);
  }
  return 0;
}

/* Field 4 of FunctionDef: the map from results to values. */
static int tf_put_results(tf_encapsulator *w, const tf_part *part, const base_istr *const *args, base_text *t) {
  uint32_t last = part->graph.nodes.n - part->n_outputs;
  for (uint32_t i = 0; i < part->n_outputs; i++) {
    int32_t output = 0;
    uint32_t src = tf_producer(&part->graph, &part->graph.nodes.items[last + i], 0, &output);
    TRY(tf_put_inner_value(w, part, args, src, output, t));
    size_t entry = proto_begin(w->out, 4);
    proto_put_str(w->out, 1, args[part->n_inputs + i]);
    proto_put_bytes(w->out, 2, t->s, t->n);
    proto_end(w->out, entry);
  }
  return 0;
}

/* Fields of FunctionDef: 1 signature, 3 nodes, 4 results; of its OpDef: 2 and 3 arguments. */
static int tf_put_function_body(tf_encapsulator *w, const tf_caller *c, const base_istr **args, base_text *t) {
  const tf_part *part = &c->part;
  uint32_t first = TF_SINK + 1 + part->n_inputs, last = part->graph.nodes.n - part->n_outputs;
  TRY(tf_name_args(w, part, args));
  size_t function = proto_begin(w->out, 1), signature = proto_begin(w->out, 1);
  proto_put_str(w->out, 1, c->name);
  for (uint32_t i = 0; i < part->n_inputs; i++)
    tf_put_arg_def(w->out, 2, args[i], tf_output_type(&part->graph.nodes.items[TF_SINK + 1 + i], 0));
  for (uint32_t i = 0; i < part->n_outputs; i++)
    tf_put_arg_def(w->out, 3, args[part->n_inputs + i], tf_input_type(&part->graph.nodes.items[last + i], 0));
  proto_end(w->out, signature);
  for (uint32_t i = first; i < last; i++) TRY(tf_put_inner_node(w, part, args, i, t));
  TRY(tf_put_results(w, part, args, t));
  proto_end(w->out, function);
  return 0;
}

/* `names` is cleared for each function: arguments need be unlike within one only. `args` has room for the names of
 * both, arguments first. */
static int tf_put_function(tf_encapsulator *w, const tf_caller *c) {
  size_t n = c->part.n_inputs + (size_t)c->part.n_outputs + 1;
  const base_istr **args = base_malloc(w->alloc, n * sizeof *args);
  if (!args) return tf_encapsulate_oom(w);
  base_text t;
  base_text_init(&t, w->alloc);
  base_interner_init(&w->names, &w->arena);
  int status = tf_put_function_body(w, c, args, &t);
  base_interner_free(&w->names);
  base_text_free(&t);
  base_free(w->alloc, args);
  return status;
}

/* --- the whole --- */

/* All but the nodes, as it was read; a second library is merged with the first by who reads it. */
static void tf_put_rest(tf_encapsulator *w) {
  const tf_graph_def *def = w->p->def;
  const char *at = def->bytes, *end = def->bytes + def->n_bytes, *from = at;
  for (tf_raw_field f; tf_raw_next(&at, end, &f); from = at)
    if (f.number != 1) base_put(w->out, from, (size_t)(at - from));
}

/* Nodes first, with a cluster's call where its first node was; then what else the graph has; then the clusters as
 * functions, in a library of their own. */
static int tf_put_encapsulated(tf_encapsulator *w) {
  assert(w->clusters.n <= w->nodes.n);
  uint32_t n = w->p->graph.nodes.n, *seen = BASE_ARRAY(&w->arena, uint32_t, w->clusters.n + (size_t)1);
  if (!seen) return tf_encapsulate_oom(w);
  for (uint32_t c = 0; c < w->clusters.n; c++) seen[c] = TF_NO_EDGE;
  for (uint32_t i = TF_SINK + 1; i < n; i++) {
    uint32_t c = w->cluster_of[i];
    if (c == TF_NO_EDGE)
      TRY(tf_put_outer_node(w, i, seen));
    else if (w->nodes.items[w->clusters.items[c].first] == i)
      tf_put_call(w, c, seen, i);
  }
  tf_put_rest(w);
  size_t library = proto_begin(w->out, 2);
  for (uint32_t c = 0; c < w->clusters.n; c++) TRY(tf_put_function(w, &w->clusters.items[c]));
  proto_end(w->out, library);
  return w->out->failed ? tf_encapsulate_oom(w) : 0;
}

/* Works for a pass without clusters, too: the graph is then as it was. */
int tf_write_encapsulated(tf_pass *p, base_text *out, xlac_error *err) {
  tf_encapsulator w = {.p = p, .out = out, .alloc = p->graph.alloc, .err = err};
  base_map_init(&w.output_of, w.alloc);
  base_arena_init(&w.arena, w.alloc);
  w.cluster_of = BASE_ARRAY(&w.arena, uint32_t, p->graph.nodes.n);
  int status = w.cluster_of ? tf_list_clusters(&w) : tf_encapsulate_oom(&w);
  if (status == 0) status = tf_cut_clusters(&w);
  if (status == 0) status = tf_put_encapsulated(&w);
  for (uint32_t c = 0; c < w.clusters.n; c++) tf_part_free(&w.clusters.items[c].part);
  BASE_VEC_FREE(w.alloc, &w.clusters);
  BASE_VEC_FREE(w.alloc, &w.nodes);
  base_map_free(&w.output_of);
  base_arena_free(&w.arena);
  return status;
}
