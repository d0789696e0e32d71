/* PartiallyDeclusterPass: nodes that are better run outside of their cluster, and which values of a node lie in the
 * host's memory, which decides most of it. */
#include <string.h>

#include "../graph/op_def.h"
#include "pass.h"

/* --- MemoryTypesForNode --- */

/* The texts of alternatives, each once. host_words.def is made of host_memory.def and host_memory_xla.def, which say
 * what they mean. */
#define HOST_MEMORY(op, cpu, gpu)
#define HOST_MEMORY_XLA(op, other)
#define TEXT(number, text) char text_##number[sizeof(text)];
typedef struct tf_host_texts {
#include "host_words.def"
} tf_host_texts;
#undef TEXT
#define TEXT(number, text) text,
static const tf_host_texts tf_all_host_texts = {
#include "host_words.def"
};
#undef TEXT
#define TEXT(number, text)
_Static_assert(sizeof(tf_host_texts) <= UINT16_MAX, "a text is an offset");

/* A row: the op's number, and where its texts begin: on CPUs, on GPUs; on devices that are neither. */
typedef struct tf_host_row {
  uint16_t op, on[2];
} tf_host_row;
#define TEXT_AT(number) offsetof(tf_host_texts, text_##number)
#undef HOST_MEMORY
#define HOST_MEMORY(op, cpu, gpu) {op, {TEXT_AT(cpu), TEXT_AT(gpu)}},
static const tf_host_row tf_host_rows[] = {
#include "host_words.def"
};
#undef HOST_MEMORY
#define HOST_MEMORY(op, cpu, gpu)
#undef HOST_MEMORY_XLA
#define HOST_MEMORY_XLA(op, other) {op, {TEXT_AT(other)}},
static const tf_host_row tf_host_xla_rows[] = {
#include "host_words.def"
};
#undef HOST_MEMORY
#undef HOST_MEMORY_XLA
#undef TEXT
#undef TEXT_AT

static const char *tf_host_text(uint16_t at) {
  return (const char *)&tf_all_host_texts + at;
}

/* The op's row; NULL where there is none. Rows are sorted by op, so this is a binary search. */
static const tf_host_row *tf_host_row_of(const tf_host_row *rows, size_t n, base_slice op) {
  assert(n > 0);
  tf_op_row named;
  if (!tf_op_row_find(op, &named)) return NULL;
  size_t from = 0, to = n;
  while (from < to) {
    size_t middle = from + (to - from) / 2;
    if (rows[middle].op == named.number) return &rows[middle];
    if (named.number < rows[middle].op)
      to = middle;
    else
      from = middle + 1;
  }
  return NULL;
}

/* On CPUs and GPUs. CPU kernels that take everything in host memory (which on CPUs all is) need no row: "". */
static const char *tf_host_alternatives_of(base_slice op, bool gpu) {
  const tf_host_row *row = tf_host_row_of(tf_host_rows, sizeof tf_host_rows / sizeof *tf_host_rows, op);
  if (!row) return gpu ? "-" : "";
  const char *on_gpu = tf_host_text(row->on[1]);
  return gpu && strcmp(on_gpu, "=") != 0 ? on_gpu : tf_host_text(row->on[0]);
}

/* On devices that are neither. */
static const char *tf_host_xla_alternatives_of(base_slice op) {
  const tf_host_row *row = tf_host_row_of(tf_host_xla_rows, sizeof tf_host_xla_rows / sizeof *tf_host_xla_rows, op);
  return row ? tf_host_text(row->on[0]) : "-";
}

/* Up to the next `stop`, which is passed over. Takes the part before `stop` off the text; the whole text where
 * there is no `stop`. */
static base_slice tf_host_cut(base_slice *text, char stop) {
  const char *end = text->n ? memchr(text->p, stop, text->n) : NULL;
  base_slice part = {text->p, end ? (size_t)(end - text->p) : text->n};
  text->p += part.n + (end != NULL);
  text->n -= part.n + (end != NULL);
  return part;
}

/* "T:int32 Tidx:int32|int64". Whether each attribute has one of the types listed for it; no condition always fits. */
static bool tf_host_fits(const tf_node *n, base_slice conditions) {
  while (conditions.n > 0) {
    base_slice types = tf_host_cut(&conditions, ' '), attr = tf_host_cut(&types, ':');
    unsigned type = 0;
    if (!tf_attr_type(tf_attr_or_default(n->op, n->def->attrs, attr), &type)) return false;
    if (!(tf_type_set_of(types) & tf_type_bit(tf_base_type(type)))) return false;
  }
  return true;
}

/* Whether an argument's name is in "x,y". */
static bool tf_host_listed(base_slice args, base_slice name) {
  while (args.n > 0) {
    base_slice arg = tf_host_cut(&args, ',');
    if (arg.n == name.n && memcmp(arg.p, name.p, arg.n) == 0) return true;
  }
  return false;
}

/* Marks the inputs, or outputs, that belong to a listed argument; an argument may stand for several. */
static void tf_host_mark(const tf_node *n, const tf_arg_def *list, uint32_t count, base_slice args, uint8_t *host) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t values = tf_arg_values(n, &list[i]);
    uint8_t listed = tf_host_listed(args, list[i].name);
    for (int64_t k = 0; k < values; k++) host[at++] |= listed;
  }
}

/* Ops that call functions have kernels that MemoryTypesForNode does not ask: like ops without one. */
static bool tf_calls_function(const tf_node *n) {
  return n->op->function || tf_node_is(n, "PartitionedCall") || tf_node_is(n, "StatefulPartitionedCall") ||
         tf_node_is(n, "While") || tf_node_is(n, "SymbolicGradient");
}

/* The cell of the tables for the node, on that type of device; "-" for no kernel. */
static const char *tf_host_alternatives(const tf_node *n, base_slice device_type) {
  assert(n->op != NULL);
  bool cpu = base_slice_is(device_type, "CPU"), gpu = base_slice_is(device_type, "GPU");
  base_slice label;
  bool labelled = tf_attr_string(tf_attr_find(n->def->attrs, "_kernel"), &label) && label.n > 0;
  if (labelled || tf_calls_function(n) || (cpu && !(n->op->flags & TF_OP_HOST))) return "-";
  base_slice op = {n->op->name->s, n->op->name->n};
  return cpu || gpu ? tf_host_alternatives_of(op, gpu) : tf_host_xla_alternatives_of(op);
}

/* The arguments that the row says; *no_kernel: there is none for the node. */
static base_slice tf_host_args(const tf_node *n, base_slice device_type, bool *no_kernel) {
  base_slice rest = base_slice_of(tf_host_alternatives(n, device_type));
  *no_kernel = base_slice_is(rest, "-");
  while (rest.n > 0 && !*no_kernel) {
    base_slice args = tf_host_cut(&rest, ';'), conditions = tf_host_cut(&args, '>');
    if (!tf_host_fits(n, conditions)) continue;
    *no_kernel = base_slice_is(args, "*");
    return args;
  }
  return (base_slice){"", 0};
}

/* What attributes of the node itself say: numbers of its inputs or of its outputs. Numbers out of range are a
 * user's mistake that TensorFlow passes over. */
static void tf_host_mark_listed(const tf_node *n, const char *attr, uint8_t *host, uint32_t count) {
  const char *at = NULL;
  for (int64_t i; tf_attr_next_int(tf_attr_find(n->def->attrs, attr), &at, &i);)
    if (i >= 0 && i < (int64_t)count) host[i] = 1;
}

/* Sets host[i] for each input of n, then for each output, for its kernel on a device of that type, and what the
 * node's attributes _input_hostmem and _output_hostmem say. Without a kernel every int32 lies in host memory, but
 * for code that must be compiled. */
static void tf_host_memory(const tf_node *n, base_slice device_type, uint8_t *host) {
  assert(n->op != NULL);
  bool no_kernel;
  base_slice args = tf_host_args(n, device_type, &no_kernel);
  bool int32s = no_kernel && !tf_attr_is_true(n->def->attrs, "_XlaMustCompile");
  for (uint32_t i = 0; i < n->n_inputs + n->n_outputs; i++) {
    unsigned type = tf_base_type(n->types[i]);
    host[i] = type == TF_STRING || type == TF_RESOURCE || (int32s && type == TF_INT32);
  }
  tf_host_mark(n, n->op->inputs, n->op->n_inputs, args, host);
  tf_host_mark(n, n->op->outputs, n->op->n_outputs, args, host + n->n_inputs);
  tf_host_mark_listed(n, "_input_hostmem", host, n->n_inputs);
  tf_host_mark_listed(n, "_output_hostmem", host + n->n_inputs, n->n_outputs);
}

/* --- values wanted in the host's memory --- */

BASE_VEC(tf_marks, uint8_t);

/* The first part of PartiallyDeclusterPass: a clustered node that gives a value in the host's memory to somebody
 * outside its cluster who wants it there gets a copy outside the cluster, which spares the way over the device. */
typedef struct tf_host_pass {
  tf_pass *p;
  uint8_t *chosen; /* by node */
  uint8_t *memory; /* of two nodes */
  tf_marks gone;   /* by edge */
  xlac_error *err;
} tf_host_pass;

/* A consumer that is itself chosen counts as outside: it will have a copy there. The walk is from consumers to
 * producers, so that is known. */
static bool tf_has_host_edge(tf_host_pass *h, uint32_t id) {
  const tf_graph *g = &h->p->graph;
  const tf_node *n = &g->nodes.items[id];
  base_slice device =
      h->p->device_of[id] == TF_NO_DEVICE ? BASE_SLICE("") : h->p->devices.items[h->p->device_of[id]].type;
  uint8_t *own = h->memory, *other = own + n->n_inputs + n->n_outputs;
  tf_host_memory(n, device, own);
  TF_EACH_OUT(g, n, e) {
    const tf_edge *edge = &g->edges.items[e];
    const tf_node *dst = &g->nodes.items[edge->dst];
    if (edge->src_output == TF_CONTROL || !own[n->n_inputs + (uint32_t)edge->src_output]) continue;
    tf_host_memory(dst, device, other); /* the producer's device, as TensorFlow asks */
    bool inside = !h->chosen[edge->dst] && h->p->result[edge->dst] == h->p->result[id];
    if (other[edge->dst_input] && !inside) return true;
  }
  return false;
}

/* Compiled, these need the shape of their input only, so they do not keep its value waiting. */
static bool tf_only_shape_counts(const tf_node *n) {
  return tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size");
}

/* Marks nodes, consumers first. Those that use resources stay: a copy would use the resource twice. */
static void tf_choose_for_host(tf_host_pass *h, const uint32_t *order, uint32_t n) {
  for (uint32_t i = n; i-- > 0;) {
    const tf_node *node = &h->p->graph.nodes.items[order[i]];
    if (!h->p->result[order[i]] || tf_only_shape_counts(node) || tf_has_type(node, TF_RESOURCE)) continue;
    h->chosen[order[i]] = tf_has_host_edge(h, order[i]);
  }
}

/* --- copies --- */

/* "name/declustered", interned where `make`; else NULL where nobody has made it. */
static const base_istr *tf_copy_name(const tf_pass *p, uint32_t id, bool make) {
  base_text name = {.alloc = p->graph.alloc};
  base_putf(&name, "%s/declustered", p->graph.nodes.items[id].name->s);
  const base_istr *known = name.failed ? NULL
                           : make      ? base_intern(&p->def->strings, name.s, name.n)
                                       : base_intern_find(&p->def->strings, name.s, name.n);
  base_text_free(&name);
  return known;
}

uint32_t tf_standing_node(const tf_pass *p, uint32_t id) {
  assert(id < p->graph.nodes.n);
  if (p->left[id] != TF_LEFT_NOTHING) return id;
  const base_istr *name = tf_copy_name(p, id, false);
  for (uint32_t i = p->n_clustered; i < p->graph.nodes.n; i++)
    if (p->graph.nodes.items[i].name == name) return i;
  return id;
}

/* Adds an edge and its place in `gone`, which must stay as long as the list of edges. */
static int tf_host_edge(tf_host_pass *h, uint32_t src, int32_t output, uint32_t dst, int32_t input) {
  assert(h->gone.n == h->p->graph.edges.n);
  TRY(tf_graph_add_edge(&h->p->graph, src, output, dst, input, h->err));
  return BASE_VEC_PUSH(h->p->graph.alloc, &h->gone, 0) ? 0 : base_oom(h->err, "declustering");
}

/* The copy takes the inputs that the node still has. There is room for it in the lists by node (tf_make_room). */
static int tf_copy_outside(tf_host_pass *h, uint32_t id, uint32_t *out) {
  tf_pass *p = h->p;
  const base_istr *name = tf_copy_name(p, id, true);
  if (!name) return base_oom(h->err, "declustering");
  TRY(tf_graph_copy_node(&p->graph, id, name, out, h->err));
  p->device_of[*out] = p->device_of[id];
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e) {
    tf_edge edge = p->graph.edges.items[e];
    if (!h->gone.items[e]) TRY(tf_host_edge(h, edge.src, edge.src_output, *out, edge.dst_input));
  }
  return 0;
}

/* Users outside take the copy; a node without users left goes. `end` keeps the walk to edges there were before the
 * copy got its own. p->graph's arrays may move while edges are added, so edges are copied before use. */
static int tf_move_users(tf_host_pass *h, uint32_t id) {
  tf_pass *p = h->p;
  uint32_t copy = 0, users = 0, end = p->graph.edges.n;
  TRY(tf_copy_outside(h, id, &copy));
  for (uint32_t e = p->graph.nodes.items[id].first_out; e < end; e = p->graph.edges.items[e].next_out) {
    tf_edge edge = p->graph.edges.items[e];
    if (h->gone.items[e]) continue;
    bool moves = edge.src_output != TF_CONTROL && p->result[edge.dst] != p->result[id];
    users += !moves;
    if (!moves) continue;
    TRY(tf_host_edge(h, copy, edge.src_output, edge.dst, edge.dst_input));
    h->gone.items[e] = 1;
  }
  if (users > 0) return 0;
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e) h->gone.items[e] = 1;
  p->result[id] = NULL;
  p->left[id] = TF_LEFT_NOTHING;
  return 0;
}

/* Consumers first again, so that the copy of a consumer takes its value from the node and then from the node's
 * copy. */
static int tf_decluster_in(tf_host_pass *h, uint32_t *order) {
  tf_graph *g = &h->p->graph;
  uint32_t n = 0;
  bool any = false;
  TRY(tf_reverse_post_order(g, order, &n, h->err));
  tf_choose_for_host(h, order, n);
  for (uint32_t i = 0; i < n; i++) any |= h->chosen[order[i]] != 0;
  if (!any) return 0;
  for (uint32_t i = 0; i < g->edges.n; i++)
    if (!BASE_VEC_PUSH(g->alloc, &h->gone, 0)) return base_oom(h->err, "declustering");
  for (uint32_t i = n; i-- > 0;)
    if (h->chosen[order[i]]) TRY(tf_move_users(h, order[i]));
  return tf_graph_drop_edges(g, h->gone.items, h->gone.n, h->err);
}

/* Room for the memory kinds of any one node. */
static uint32_t tf_most_values(const tf_graph *g) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < g->nodes.n; i++) {
    uint32_t values = g->nodes.items[i].n_inputs + g->nodes.items[i].n_outputs;
    if (values > most) most = values;
  }
  return most;
}

int tf_decluster_for_host(tf_pass *p, uint32_t *order, xlac_error *err) {
  assert(p->flags.partially_decluster);
  base_alloc alloc = p->graph.alloc;
  tf_host_pass h = {.p = p, .err = err};
  h.chosen = base_malloc(alloc, p->graph.nodes.n);
  h.memory = base_malloc(alloc, 2 * (size_t)tf_most_values(&p->graph) + 1);
  int status = h.chosen && h.memory ? 0 : base_oom(err, "declustering");
  if (status == 0) {
    memset(h.chosen, 0, p->graph.nodes.n);
    status = tf_decluster_in(&h, order);
  }
  BASE_VEC_FREE(alloc, &h.gone);
  base_free(alloc, h.chosen);
  base_free(alloc, h.memory);
  return status;
}

/* --- the pass --- */

/* Edges that count for constness here: within one cluster. */
static bool tf_same_cluster(const void *ctx, const tf_edge *e) {
  const tf_pass *p = ctx;
  return p->result[e->src] && p->result[e->src] == p->result[e->dst];
}

/* Whether something of its own cluster feeds it; a node without is at the cluster's border. */
static bool tf_has_neighbour(const tf_pass *p, uint32_t id) {
  TF_EACH_IN(&p->graph, &p->graph.nodes.items[id], e)
  if (p->result[p->graph.edges.items[e].src] == p->result[id]) return true;
  return false;
}

/* Whether nothing but compiled code can run it. */
static bool tf_must_stay(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  const tf_device_registration *r =
      p->device_of[id] == TF_NO_DEVICE ? NULL : p->devices.items[p->device_of[id]].registration;
  return (r && r->autoclustering_policy == XLAC_CLUSTER_ALWAYS) || !(n->op->flags & TF_OP_HOST);
}

/* Of constants, those that wait for another device: they may be part of how loops on two devices keep in step. */
static bool tf_is_local_const(const tf_pass *p, uint32_t id) {
  const tf_node *n = &p->graph.nodes.items[id];
  if (n->role != TF_ROLE_CONST) return false;
  TF_EACH_IN(&p->graph, n, e) {
    uint32_t device = p->device_of[p->graph.edges.items[e].src];
    if (device != TF_NO_DEVICE && device != p->device_of[id]) return false;
  }
  return true;
}

/* Outside they cost nothing, inside they make the cluster wait for the whole tensor. */
static bool tf_looks_at_shape(const tf_node *n) {
  return tf_node_is(n, "Shape") || tf_node_is(n, "Rank") || tf_node_is(n, "Size");
}

static void tf_leave(tf_pass *p, uint32_t id, tf_left why) {
  assert(p->result[id] != NULL && why != TF_LEFT_NOT);
  p->result[id] = NULL;
  p->left[id] = (uint8_t)why;
}

/* Producers first: a node that leaves makes a border of those it feeds. */
static int tf_decluster_in_order(tf_pass *p, uint32_t *order, uint8_t *constant, xlac_error *err) {
  uint32_t n = 0;
  TRY(tf_decluster_for_host(p, order, err));
  TRY(tf_must_be_constant(&p->bodies, &p->graph, tf_same_cluster, p, constant, err));
  TRY(tf_reverse_post_order(&p->graph, order, &n, err));
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    if (!p->result[id] || !constant[id] || tf_is_local_const(p, id)) continue;
    if (!tf_has_neighbour(p, id) && !tf_must_stay(p, id)) tf_leave(p, id, TF_LEFT_CONSTANT);
  }
  for (uint32_t i = 0; i < n; i++) {
    uint32_t id = order[i];
    if (p->result[id] && tf_looks_at_shape(&p->graph.nodes.items[id]) && !tf_has_neighbour(p, id))
      tf_leave(p, id, TF_LEFT_SHAPE);
  }
  return 0;
}

/* Three steps, as TensorFlow has them: values wanted in the host's memory are computed outside; then nodes at a
 * cluster's border that would make it compile again for each value they give (of constants only those that wait
 * for no other device); then ops that only look at the shape of what comes from outside. */
int tf_partially_decluster(tf_pass *p, xlac_error *err) {
  size_t room = 2 * (size_t)p->graph.nodes.n; /* each node may get a copy */
  uint32_t *order = base_malloc(p->graph.alloc, room * sizeof *order);
  uint8_t *constant = base_malloc(p->graph.alloc, room);
  int status = order && constant ? tf_decluster_in_order(p, order, constant, err) : base_oom(err, "declustering");
  base_free(p->graph.alloc, order);
  base_free(p->graph.alloc, constant);
  return status;
}
