/* GraphDefs and bodies of functions as graphs, with TensorFlow's ids: every later decision depends on them. A
 * GraphDef's nodes are made as soon as their inputs are there, the first in the GraphDef first; a body's are made
 * in the order they are written, after its arguments. */
#include <stdio.h>
#include <stdlib.h>

#include "graph.h"
#include "frames.h"

/* --- a GraphDef --- */

/* An edge from a NextIteration to its Merge: made last, when both ends are there. */
typedef struct tf_back_edge {
  uint32_t src_def, dst; /* a node of the GraphDef, an id */
  int32_t output, input;
} tf_back_edge;
BASE_VEC(tf_back_edges, tf_back_edge);

/* GraphConstructor's work (common_runtime/graph_constructor.cc): a topological order that takes the ready node
 * that stands first in the GraphDef. */
typedef struct tf_importer {
  tf_graph *g;
  tf_graph_def *def;
  const base_istr *default_device;
  base_map by_name;          /* interned name -> place in the GraphDef */
  uint32_t *users, *user_at; /* users[user_at[i] .. user_at[i + 1]]: who waits for node i, once for each input */
  int64_t *waiting;          /* inputs still missing */
  uint32_t *id;              /* of each node; 0 as long as it has none */
  uint32_t *heap, n_heap;    /* ready nodes */
  tf_back_edges back;
  xlac_error *err;
} tf_importer;

static int tf_node_fail(tf_importer *im, const tf_node_def *n, base_code code, const char *format, ...)
    BASE_PRINTF(4, 5);
/* Errors of import name the node and its op. */
static int tf_node_fail(tf_importer *im, const tf_node_def *n, base_code code, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail(im->err, code, "node '%.120s' (op %.60s): %s", n->name->s, n->op->s, what);
}

/* --- names --- */

/* NodeDef's regular expression: [A-Za-z0-9.][A-Za-z0-9_>./-]*, parts with '>' between. A '_' in front is
 * TensorFlow's own nodes'. */
static bool tf_name_char(char c, bool first) {
  bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
  return plain || (!first && (c == '-' || c == '/' || c == '>'));
}

/* Each part after a '>' begins anew. */
static bool tf_name_valid(const base_istr *name) {
  for (uint32_t i = 0; i < name->n; i++)
    if (!tf_name_char(name->s[i], i == 0 || name->s[i - 1] == '>')) return false;
  return name->n > 0 && name->s[name->n - 1] != '>';
}

/* Names to places in the GraphDef, each once. */
static int tf_index_names(tf_importer *im) {
  for (uint32_t i = 0; i < im->def->n_nodes; i++) {
    const tf_node_def *n = &im->def->nodes[i];
    uint64_t other = 0;
    if (!tf_name_valid(n->name))
      return tf_node_fail(im, n, XLAC_E_BAD_ARGUMENT, "the node's name contains invalid characters");
    if (base_map_get(&im->by_name, base_key(n->name), &other))
      return base_hint(im->err, tf_node_fail(im, n, XLAC_E_DUPLICATE_NAME, "another node has the same name"),
                       "rename one of the two; the other has op %s", im->def->nodes[other].op->s);
    if (!base_map_set(&im->by_name, base_key(n->name), i)) return base_oom(im->err, "importing a graph");
  }
  return 0;
}

/* The node that an input names. "node:argument" occurs in functions only. */
static int tf_find_def(tf_importer *im, const tf_node_def *n, const tf_input *in, uint32_t *out) {
  uint64_t at = 0;
  if (in->argument)
    return base_hint(im->err,
                     tf_node_fail(im, n, XLAC_E_UNKNOWN_NAME, "its input '%.100s:%.60s' is not a node of the graph",
                                  in->node->s, in->argument->s),
                     "an input is a node's name, or that and ':' and the number of an output");
  if (!base_map_get(&im->by_name, base_key(in->node), &at))
    return tf_node_fail(im, n, XLAC_E_UNKNOWN_NAME, "its input '%.100s' is not a node of the graph", in->node->s);
  *out = (uint32_t)at;
  return 0;
}

/* --- who waits for whom --- */

static bool tf_is_merge(const tf_importer *im, uint32_t place) {
  return tf_role_of(im->def->nodes[place].op) == TF_ROLE_MERGE;
}

/* A loop's edge back, for which a Merge does not wait. */
static bool tf_is_back_input(const tf_importer *im, const tf_node_def *n, uint32_t from) {
  return tf_role_of(n->op) == TF_ROLE_MERGE && tf_role_of(im->def->nodes[from].op) == TF_ROLE_NEXT_ITERATION;
}

/* A Merge of a loop is ready when its control inputs and one data input are there: the entry into the loop.
 * user_at[i + 1] counts first, and is summed up at the end, so users of node i begin at user_at[i]. */
static int tf_count_users(tf_importer *im) {
  for (uint32_t i = 0; i < im->def->n_nodes; i++) {
    const tf_node_def *n = &im->def->nodes[i];
    bool loop = false;
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      uint32_t from = 0;
      TRY(tf_find_def(im, n, &n->inputs[k], &from));
      im->user_at[from + 1]++;
      loop = loop || (k < n->n_data && tf_is_back_input(im, n, from));
    }
    im->waiting[i] = loop ? (int64_t)(n->n_inputs - n->n_data) + 1 : (int64_t)n->n_inputs;
  }
  for (uint32_t i = 0; i < im->def->n_nodes; i++) im->user_at[i + 1] += im->user_at[i];
  return 0;
}

/* Counting sort: `at` is where the next user of each node goes. */
static int tf_list_users(tf_importer *im) {
  assert(im->users == NULL);
  uint32_t total = im->user_at[im->def->n_nodes];
  uint32_t *at = base_malloc(im->g->alloc, (im->def->n_nodes + (size_t)1) * sizeof *at);
  im->users = base_malloc(im->g->alloc, ((size_t)total + 1) * sizeof *im->users);
  if (!at || !im->users) {
    base_free(im->g->alloc, at);
    return base_oom(im->err, "importing a graph");
  }
  memcpy(at, im->user_at, im->def->n_nodes * sizeof *at);
  for (uint32_t i = 0; i < im->def->n_nodes; i++) {
    const tf_node_def *n = &im->def->nodes[i];
    for (uint32_t k = 0; k < n->n_inputs; k++) {
      uint64_t from = 0;
      (void)base_map_get(&im->by_name, base_key(n->inputs[k].node), &from);
      im->users[at[from]++] = i;
    }
  }
  base_free(im->g->alloc, at);
  return 0;
}

/* --- the ready nodes: a heap, the smallest place on top --- */

/* The heap gives the node with the least number first, which fixes the order among nodes that are ready. */
static void tf_heap_push(tf_importer *im, uint32_t v) {
  assert(im->n_heap < im->def->n_nodes);
  uint32_t at = im->n_heap++;
  for (; at > 0 && im->heap[(at - 1) / 2] > v; at = (at - 1) / 2) im->heap[at] = im->heap[(at - 1) / 2];
  im->heap[at] = v;
}

static uint32_t tf_heap_pop(tf_importer *im) {
  assert(im->n_heap > 0);
  uint32_t top = im->heap[0], v = im->heap[--im->n_heap], at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= im->n_heap) break;
    if (child + 1 < im->n_heap && im->heap[child + 1] < im->heap[child]) child++;
    if (im->heap[child] >= v) break;
    im->heap[at] = im->heap[child];
    at = child;
  }
  if (im->n_heap) im->heap[at] = v;
  return top;
}

/* --- creating --- */

/* A reference may be read as a value, not the other way round. */
static int tf_check_input(tf_importer *im, const tf_node_def *n, uint32_t src, int32_t output, uint32_t dst,
                          int32_t input) {
  const tf_node *from = &im->g->nodes.items[src], *to = &im->g->nodes.items[dst];
  if (output < 0 || (uint32_t)output >= from->n_outputs)
    return tf_node_fail(im, n, XLAC_E_BAD_ARGUMENT, "input %d is output %d of '%.80s', which has %u outputs", input,
                        output, from->name->s, from->n_outputs);
  unsigned has = tf_output_type(from, (uint32_t)output), wants = tf_input_type(to, (uint32_t)input);
  bool fits = wants >= TF_REF ? has == wants : tf_base_type(has) == wants;
  if (fits) return 0;
  return tf_node_fail(im, n, XLAC_E_BAD_ARGUMENT, "input %d expects %s, but '%.80s' gives %s", input,
                      tf_type_word(wants), from->name->s, tf_type_word(has));
}

/* A producer without an id is the back edge of a loop and is noted for later. */
static int tf_connect_data(tf_importer *im, const tf_node_def *n, uint32_t id) {
  for (uint32_t k = 0; k < n->n_data; k++) {
    uint32_t from = 0;
    TRY(tf_find_def(im, n, &n->inputs[k], &from));
    if (im->id[from] == 0) {
      tf_back_edge b = {from, id, n->inputs[k].output, (int32_t)k};
      if (!BASE_VEC_PUSH(im->g->alloc, &im->back, b)) return base_oom(im->err, "importing a graph");
      continue;
    }
    TRY(tf_check_input(im, n, im->id[from], n->inputs[k].output, id, (int32_t)k));
    TRY(tf_graph_add_edge(im->g, im->id[from], n->inputs[k].output, id, (int32_t)k, im->err));
  }
  return 0;
}

/* By name; equal names are one interned string and stand side by side then. */
static int tf_compare_control(const void *a, const void *b) {
  const base_istr *x = *(const base_istr *const *)a, *y = *(const base_istr *const *)b;
  uint32_t n = x->n < y->n ? x->n : y->n;
  int order = memcmp(x->s, y->s, n);
  return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* By name, each once. */
static int tf_connect_control(tf_importer *im, const tf_node_def *n, uint32_t id) {
  uint32_t count = n->n_inputs - n->n_data;
  const base_istr **names = base_malloc(im->g->alloc, (count + (size_t)1) * sizeof *names);
  if (!names) return base_oom(im->err, "importing a graph");
  for (uint32_t k = 0; k < count; k++) names[k] = n->inputs[n->n_data + k].node;
  if (count > 1) qsort(names, count, sizeof *names, tf_compare_control);
  int status = 0;
  for (uint32_t k = 0; k < count && status == 0; k++) {
    uint64_t from = 0;
    if (k > 0 && names[k] == names[k - 1]) continue;
    (void)base_map_get(&im->by_name, base_key(names[k]), &from);
    if (im->id[from] == 0)
      status = tf_node_fail(im, n, XLAC_E_BAD_ARGUMENT, "its control input '%.80s' is part of a cycle", names[k]->s);
    else
      status = tf_graph_add_edge(im->g, im->id[from], TF_CONTROL, id, TF_CONTROL, im->err);
  }
  base_free(im->g->alloc, names);
  return status;
}

/* The node is complete here but for its back edges; then those that wait for it are told. */
static int tf_create_node(tf_importer *im, uint32_t place) {
  assert(im->id[place] == 0);
  const tf_node_def *n = &im->def->nodes[place];
  tf_node node = {.def = n, .name = n->name, .role = (uint8_t)tf_role_of(n->op)};
  node.device = n->device ? n->device : im->default_device;
  TRY(tf_op_def_of(im->def, n->op, &node.op, im->err));
  if (!node.op)
    return base_hint(im->err, tf_node_fail(im, n, XLAC_E_UNKNOWN_OPCODE, "the op is unknown"),
                     "it is neither an op of TensorFlow 2.21 nor a function of the graph's library");
  TRY(tf_node_types(im->g, &node, n->attrs, im->err));
  if (node.n_inputs != n->n_data)
    return tf_node_fail(im, n, XLAC_E_ARGUMENT_COUNT, "the op takes %u inputs here, the node has %u", node.n_inputs,
                        n->n_data);
  uint32_t id;
  TRY(tf_graph_add_node(im->g, &node, &id, im->err));
  im->id[place] = id;
  TRY(tf_connect_data(im, n, id));
  TRY(tf_connect_control(im, n, id));
  bool next = node.role == TF_ROLE_NEXT_ITERATION; /* a Merge never waits for one, nor is it told, not by control */
  for (uint32_t k = im->user_at[place]; k < im->user_at[place + 1]; k++)
    if (!(next && tf_is_merge(im, im->users[k])) && --im->waiting[im->users[k]] == 0) tf_heap_push(im, im->users[k]);
  return 0;
}

/* Nodes that are left when nothing is ready are in a cycle, or behind one. */
static int tf_create_nodes(tf_importer *im) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < im->def->n_nodes; i++)
    if (im->waiting[i] == 0) tf_heap_push(im, i);
  for (; im->n_heap > 0; done++) TRY(tf_create_node(im, tf_heap_pop(im)));
  for (uint32_t i = 0; i < im->def->n_nodes && done < im->def->n_nodes; i++)
    if (im->id[i] == 0)
      return base_hint(
          im->err,
          tf_node_fail(im, &im->def->nodes[i], XLAC_E_BAD_ARGUMENT, "the node is part of a cycle or depends on one"),
          "only a NextIteration that feeds a Merge may go back");
  for (uint32_t i = 0; i < im->back.n; i++) {
    const tf_back_edge *b = &im->back.items[i];
    TRY(tf_check_input(im, im->g->nodes.items[b->dst].def, im->id[b->src_def], b->output, b->dst, b->input));
    TRY(tf_graph_add_edge(im->g, im->id[b->src_def], b->output, b->dst, b->input, im->err));
  }
  return 0;
}

/* --- the whole --- */

/* The source and the sink have neither a NodeDef nor an op. */
static int tf_add_end(tf_graph *g, const char *name, xlac_error *err) {
  tf_node n = {.name = base_intern(&g->def->strings, name, strlen(name))};
  return n.name ? tf_graph_add_node(g, &n, NULL, err) : base_oom(err, "building a graph");
}

/* Edge 0 is the one from source to sink, as in every graph of TensorFlow's. */
int tf_graph_begin(tf_graph *g, tf_graph_def *def, xlac_error *err) {
  *g = (tf_graph){.def = def, .alloc = def->arena.alloc};
  TRY(tf_add_end(g, "_SOURCE", err));
  TRY(tf_add_end(g, "_SINK", err));
  return tf_graph_add_edge(g, TF_SOURCE, TF_CONTROL, TF_SINK, TF_CONTROL, err);
}

/* All lists by node of the GraphDef; tf_graph_import frees them. */
static int tf_import(tf_importer *im) {
  size_t n = im->def->n_nodes;
  base_alloc alloc = im->g->alloc;
  im->user_at = base_malloc(alloc, (n + 1) * sizeof *im->user_at);
  im->waiting = base_malloc(alloc, (n + 1) * sizeof *im->waiting);
  im->id = base_malloc(alloc, (n + 1) * sizeof *im->id);
  im->heap = base_malloc(alloc, (n + 1) * sizeof *im->heap);
  if (!im->user_at || !im->waiting || !im->id || !im->heap) return base_oom(im->err, "importing a graph");
  memset(im->user_at, 0, (n + 1) * sizeof *im->user_at);
  memset(im->id, 0, (n + 1) * sizeof *im->id);
  TRY(tf_index_names(im));
  TRY(tf_count_users(im));
  TRY(tf_list_users(im));
  TRY(tf_create_nodes(im));
  return tf_graph_connect_ends(im->g, im->err);
}

/* After a failure nothing is left to free but the arena's part, which goes with the GraphDef. */
int tf_graph_import(tf_graph *out, tf_graph_def *g, const base_istr *default_device, xlac_error *err) {
  int status = tf_graph_begin(out, g, err);
  if (status == 0) {
    tf_importer im = {.g = out, .def = g, .default_device = default_device, .err = err};
    base_map_init(&im.by_name, out->alloc);
    status = tf_import(&im);
    base_map_free(&im.by_name);
    base_free(out->alloc, im.users);
    base_free(out->alloc, im.user_at);
    base_free(out->alloc, im.waiting);
    base_free(out->alloc, im.id);
    base_free(out->alloc, im.heap);
    BASE_VEC_FREE(out->alloc, &im.back);
  }
  if (status != 0) tf_graph_free(out);
  return status;
}

/* --- the body of a function --- */

/* The body of a function as a graph: arguments, nodes, results. */
typedef struct tf_body {
  tf_graph *g;
  tf_graph_def *def;
  const tf_function *fn;
  tf_attrs call;
  base_map ids; /* interned name of a node or an argument -> id */
  xlac_error *err;
} tf_body;

static int tf_body_fail(tf_body *b, const char *node, const char *format, ...) BASE_PRINTF(3, 4);
/* Errors name the function and the node. */
static int tf_body_fail(tf_body *b, const char *node, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail(b->err, XLAC_E_BAD_ARGUMENT, "function '%.100s', node '%.100s': %s", b->fn->name->s, node, what);
}

/* --- attributes that the call decides --- */

/* Most nodes have none, and keep the list as it was read. */
static bool tf_has_placeholder(tf_attrs attrs) {
  base_slice name;
  for (uint32_t i = 0; i < attrs.n; i++)
    if (tf_attr_placeholder(attrs.v[i].value, &name)) return true;
  return false;
}

/* Attributes that are placeholders get the call's value ("$T" in text form); one that the call lacks stays a
 * placeholder and fails where a type is needed. */
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

/* `key` is the name under which inputs find the node; results have none. */
static int tf_body_add(tf_body *b, tf_node *node, const base_istr *key, uint32_t *id) {
  uint64_t other = 0;
  TRY(tf_graph_add_node(b->g, node, id, b->err));
  if (key && base_map_get(&b->ids, base_key(key), &other))
    return tf_body_fail(b, key->s, "another node or argument has the same name");
  if (key && !base_map_set(&b->ids, base_key(key), *id)) return base_oom(b->err, "reading a function");
  return 0;
}

/* The type of an argument, which may be an attribute of the call. */
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

/* Argument i becomes node TF_SINK + 1 + i. */
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

/* NodeDefs are copied, since their attributes may be filled in for this call. */
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

/* Where the outputs of argument `name` begin among the node's. *out counts within the argument and is made to
 * count over all outputs. Attributes decide how many outputs a list has. */
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

/* Types are compared without references. The results' own type is not known yet and is not compared. */
static int tf_body_connect(tf_body *b, const tf_input *in, uint32_t dst, int32_t input) {
  assert(dst < b->g->nodes.n);
  uint64_t src = 0;
  const char *user = b->g->nodes.items[dst].name->s;
  if (!base_map_get(&b->ids, base_key(in->node), &src))
    return tf_body_fail(b, user, "its input '%.100s' is not a node of the function", in->node->s);
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

/* Node i of the function is the graph's node first + i. */
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

/* A result has the type of the value that it gives; it is set when the value is known. */
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

/* Bodies with v1 loops are checked at once, since nobody asks for their frames later. */
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

/* Ids: source, sink, arguments, nodes as written, results. */
int tf_graph_import_function(tf_graph *out, tf_graph_def *g, const tf_function *fn, tf_attrs call, xlac_error *err) {
  assert(fn->signature != NULL);
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
