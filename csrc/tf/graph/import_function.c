/* The body of a function as a graph: arguments, nodes, results. */
#include <stdio.h>

#include "frames.h"

typedef struct tf_body {
  tf_graph *g;
  tf_graph_def *def;
  const tf_function *fn;
  tf_attrs call;
  base_map ids; /* interned name of a node or an argument -> id */
  xlac_error *err;
} tf_body;

static int tf_body_fail(tf_body *b, const char *node, const char *format, ...) BASE_PRINTF(3, 4);
static int tf_body_fail(tf_body *b, const char *node, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail(b->err, XLAC_E_BAD_ARGUMENT, "function '%.100s', node '%.100s': %s", b->fn->name->s, node, what);
}

/* --- attributes that the call decides --- */

static bool tf_has_placeholder(tf_attrs attrs) {
  base_slice name;
  for (uint32_t i = 0; i < attrs.n; i++)
    if (tf_attr_placeholder(attrs.v[i].value, &name)) return true;
  return false;
}

static int tf_fill_placeholders(tf_body *b, tf_attrs *attrs) {
  base_slice name;
  if (!tf_has_placeholder(*attrs)) return 0;
  tf_attr *filled = BASE_ARRAY(&b->def->arena, tf_attr, attrs->n);
  if (!filled) return base_oom(b->err, "reading a function");
  for (uint32_t i = 0; i < attrs->n; i++) {
    filled[i] = attrs->v[i];
    if (!tf_attr_placeholder(attrs->v[i].value, &name)) continue;
    for (uint32_t k = 0; k < b->call.n; k++)
      if (b->call.v[k].key->n == name.n && memcmp(b->call.v[k].key->s, name.p, name.n) == 0)
        filled[i].value = b->call.v[k].value;
  }
  attrs->v = filled;
  return 0;
}

/* --- nodes --- */

static int tf_body_add(tf_body *b, tf_node *node, const base_istr *key, uint32_t *id) {
  uint64_t other = 0;
  TRY(tf_graph_add_node(b->g, node, id, b->err));
  if (key && base_map_get(&b->ids, base_key(key), &other))
    return tf_body_fail(b, key->s, "another node or argument has the same name");
  if (key && !base_map_set(&b->ids, base_key(key), *id)) return base_oom(b->err, "reading a function");
  return 0;
}

static int tf_arg_type(tf_body *b, const tf_arg_def *a, unsigned *type) {
  *type = a->type;
  if (a->type_attr.n > 0) {
    base_slice value = {NULL, 0};
    for (uint32_t k = 0; k < b->call.n; k++)
      if (b->call.v[k].key->n == a->type_attr.n && memcmp(b->call.v[k].key->s, a->type_attr.p, a->type_attr.n) == 0)
        value = b->call.v[k].value;
    if (!tf_attr_type(value, type)) *type = 0;
  }
  if (*type != 0) return 0;
  return tf_body_fail(b, "_Arg", "the type of argument '%.*s' is unknown", (int)(a->name.n < 60 ? a->name.n : 60),
                      a->name.p);
}

/* A node that stands for an argument (one output) or a result (one input). */
static int tf_body_end(tf_body *b, const char *op, base_slice name, unsigned type, uint32_t *id) {
  const base_istr *op_name = base_intern(&b->def->strings, op, strlen(op));
  const base_istr *key = base_intern(&b->def->strings, name.p, name.n);
  tf_node_def *def = BASE_NEW(&b->def->arena, tf_node_def);
  uint8_t *types = base_arena_alloc(&b->def->arena, 1);
  if (!op_name || !key || !def || !types) return base_oom(b->err, "reading a function");
  bool arg = op[1] == 'A';
  *types = (uint8_t)type;
  *def = (tf_node_def){.name = key, .op = op_name};
  tf_node node = {.def = def,
                  .name = key,
                  .types = types,
                  .n_inputs = !arg,
                  .n_outputs = arg,
                  .role = arg ? TF_ROLE_ARG : TF_ROLE_RETVAL};
  TRY(tf_op_def_of(b->def, op_name, &node.op, b->err));
  return tf_body_add(b, &node, arg ? key : NULL, id);
}

static int tf_body_args(tf_body *b) {
  const tf_op_def *s = b->fn->signature;
  for (uint32_t i = 0; i < s->n_inputs; i++) {
    unsigned type = 0;
    uint32_t id = 0;
    TRY(tf_arg_type(b, &s->inputs[i], &type));
    TRY(tf_body_end(b, "_Arg", s->inputs[i].name, type, &id));
  }
  return 0;
}

static int tf_body_nodes(tf_body *b) {
  for (uint32_t i = 0; i < b->fn->n_nodes; i++) {
    const tf_node_def *n = &b->fn->nodes[i];
    tf_node_def *def = base_arena_memdup(&b->def->arena, n, sizeof *n);
    if (!def) return base_oom(b->err, "reading a function");
    TRY(tf_fill_placeholders(b, &def->attrs));
    tf_node node = {.def = def, .name = n->name, .device = n->device, .role = (uint8_t)tf_role_of(n->op)};
    uint32_t id = 0;
    TRY(tf_op_def_of(b->def, n->op, &node.op, b->err));
    if (!node.op) return tf_body_fail(b, n->name->s, "op '%.60s' is unknown", n->op->s);
    TRY(tf_node_types(b->g, &node, def->attrs, b->err));
    TRY(tf_body_add(b, &node, n->name, &id));
  }
  return 0;
}

/* --- edges --- */

/* Where the outputs of argument `name` begin among the node's. */
static bool tf_output_of_argument(const tf_node *n, const base_istr *name, int32_t *out) {
  int64_t at = 0;
  for (uint32_t i = 0; i < n->op->n_outputs; i++) {
    const tf_arg_def *a = &n->op->outputs[i];
    if (a->name.n == name->n && memcmp(a->name.p, name->s, name->n) == 0) {
      *out += (int32_t)at;
      return true;
    }
    int64_t count = 1;
    if (a->type_list_attr.n > 0)
      count = tf_attr_count_types(tf_attr_or_default(n->op, n->def->attrs, a->type_list_attr));
    else if (a->number_attr.n > 0 && !tf_attr_int(tf_attr_or_default(n->op, n->def->attrs, a->number_attr), &count))
      return false;
    at += count;
  }
  return false;
}

static int tf_body_connect(tf_body *b, const tf_input *in, uint32_t dst, int32_t input) {
  uint64_t src = 0;
  const char *user = b->g->nodes.items[dst].name->s;
  if (!base_map_get(&b->ids, base_key(in->node), &src))
    return tf_body_fail(b, user, "its input '%.100s' is no node of the function", in->node->s);
  const tf_node *from = &b->g->nodes.items[src];
  int32_t output = in->output;
  if (input == TF_CONTROL) return tf_graph_add_edge(b->g, (uint32_t)src, TF_CONTROL, dst, TF_CONTROL, b->err);
  if (in->argument && !tf_output_of_argument(from, in->argument, &output))
    return tf_body_fail(b, user, "'%.80s' has no output '%.80s'", in->node->s, in->argument->s);
  if (output < 0 || (uint32_t)output >= from->n_outputs)
    return tf_body_fail(b, user, "'%.80s' has no output %d", in->node->s, output);
  const tf_node *to = &b->g->nodes.items[dst];
  unsigned has = tf_output_type(from, (uint32_t)output), wants = tf_input_type(to, (uint32_t)input);
  if (to->role != TF_ROLE_RETVAL && tf_base_type(has) != tf_base_type(wants))
    return tf_body_fail(b, user, "its input %d is %s, but '%.80s' gives %s", input, tf_type_word(wants), in->node->s,
                        tf_type_word(has));
  return tf_graph_add_edge(b->g, (uint32_t)src, output, dst, input, b->err);
}

static int tf_body_edges(tf_body *b) {
  uint32_t first = 2 + b->fn->signature->n_inputs;
  for (uint32_t i = 0; i < b->fn->n_nodes; i++) {
    const tf_node_def *n = &b->fn->nodes[i];
    if (b->g->nodes.items[first + i].n_inputs != n->n_data)
      return tf_body_fail(b, n->name->s, "op '%.60s' takes %u inputs here, the node has %u", n->op->s,
                          b->g->nodes.items[first + i].n_inputs, n->n_data);
    for (uint32_t k = 0; k < n->n_inputs; k++)
      TRY(tf_body_connect(b, &n->inputs[k], first + i, k < n->n_data ? (int32_t)k : TF_CONTROL));
  }
  return 0;
}

static int tf_body_results(tf_body *b) {
  if (b->fn->n_rets != b->fn->signature->n_outputs)
    return tf_body_fail(b, "_Retval", "%u of the %u results are not given", b->fn->signature->n_outputs - b->fn->n_rets,
                        b->fn->signature->n_outputs);
  for (uint32_t i = 0; i < b->fn->n_rets; i++) {
    const tf_ret *ret = &b->fn->rets[i];
    uint32_t id = 0;
    char name[160];
    snprintf(name, sizeof name, "%.120s_retval", ret->name->s);
    TRY(tf_body_end(b, "_Retval", base_slice_of(name), TF_FLOAT, &id));
    TRY(tf_body_connect(b, &ret->from, id, 0));
    int32_t output = 0;
    uint32_t src = tf_producer(b->g, &b->g->nodes.items[id], 0, &output);
    uint8_t *type = base_arena_alloc(&b->def->arena, 1);
    if (!type) return base_oom(b->err, "reading a function");
    *type = (uint8_t)tf_output_type(&b->g->nodes.items[src], (uint32_t)output);
    b->g->nodes.items[id].types = type;
  }
  return tf_graph_connect_ends(b->g, b->err);
}

static int tf_check_body_loops(const tf_graph *g, xlac_error *err) {
  bool loops = false;
  for (uint32_t i = 0; i < g->nodes.n; i++)
    loops |= g->nodes.items[i].role == TF_ROLE_ENTER || g->nodes.items[i].role == TF_ROLE_LOOP_COND;
  if (!loops) return 0;
  tf_frame_info *info = base_malloc(g->alloc, (size_t)g->nodes.n * sizeof *info);
  int status = info ? tf_find_frames(g, info, err) : base_oom(err, "reading a function");
  base_free(g->alloc, info);
  return status;
}

int tf_graph_import_function(tf_graph *out, tf_graph_def *g, const tf_function *fn, tf_attrs call, xlac_error *err) {
  tf_body b = {.g = out, .def = g, .fn = fn, .call = call, .err = err};
  int status = tf_graph_begin(out, g, err);
  base_map_init(&b.ids, g->arena.alloc);
  if (status == 0) status = tf_body_args(&b);
  if (status == 0) status = tf_body_nodes(&b);
  if (status == 0) status = tf_body_edges(&b);
  if (status == 0) status = tf_body_results(&b);
  if (status == 0) status = tf_check_body_loops(out, err);
  base_map_free(&b.ids);
  if (status != 0) tf_graph_free(out);
  return status;
}
