/* Nodes, edges, the order to visit them in, and changes of an imported graph. Ids are places in the lists; edges
 * are linked per node in order of insertion, which decides the order of everything that walks them. */
#include "graph.h"

#include <stdlib.h>

#include "../../text/proto/wire.h"

/* --- nodes and edges --- */

/* References have the role of the plain op: control flow does not depend on it. */
tf_role tf_role_of(const base_istr *op) {
  assert(op != NULL);
  static const struct {
    const char *op;
    tf_role role;
  } rows[] = {
      {"Switch", TF_ROLE_SWITCH},
      {"RefSwitch", TF_ROLE_SWITCH},
      {"_SwitchN", TF_ROLE_SWITCH_N},
      {"Merge", TF_ROLE_MERGE},
      {"RefMerge", TF_ROLE_MERGE},
      {"_XlaMerge", TF_ROLE_MERGE},
      {"Enter", TF_ROLE_ENTER},
      {"RefEnter", TF_ROLE_ENTER},
      {"Exit", TF_ROLE_EXIT},
      {"RefExit", TF_ROLE_EXIT},
      {"NextIteration", TF_ROLE_NEXT_ITERATION},
      {"RefNextIteration", TF_ROLE_NEXT_ITERATION},
      {"LoopCond", TF_ROLE_LOOP_COND},
      {"ControlTrigger", TF_ROLE_CONTROL_TRIGGER},
      {"_Recv", TF_ROLE_RECV},
      {"_HostRecv", TF_ROLE_RECV},
      {"Const", TF_ROLE_CONST},
      {"HostConst", TF_ROLE_CONST},
      {"Identity", TF_ROLE_IDENTITY},
      {"RefIdentity", TF_ROLE_IDENTITY},
      {"_Arg", TF_ROLE_ARG},
      {"_DeviceArg", TF_ROLE_ARG},
      {"_Retval", TF_ROLE_RETVAL},
      {"_DeviceRetval", TF_ROLE_RETVAL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(op->s, rows[i].op) == 0) return rows[i].role;
  return TF_ROLE_OTHER;
}

/* Nodes and edges only: names and attributes belong to the graph's definition. */
void tf_graph_free(tf_graph *g) {
  BASE_VEC_FREE(g->alloc, &g->nodes);
  BASE_VEC_FREE(g->alloc, &g->edges);
}

/* The links of the copy are cleared: `node` may be one of another graph. */
int tf_graph_add_node(tf_graph *g, const tf_node *node, uint32_t *out, xlac_error *err) {
  tf_node n = *node;
  n.first_in = n.last_in = n.first_out = n.last_out = TF_NO_EDGE;
  n.n_in = n.n_out = 0;
  if (out) *out = g->nodes.n;
  return BASE_VEC_PUSH(g->alloc, &g->nodes, n) ? 0 : base_oom(err, "building a graph");
}

/* The node lives in `arena`, its op's name in the graph's strings: a part's ends go with the part. */
int tf_graph_add_end(tf_graph *g, base_arena *arena, const base_istr *name, unsigned type, bool arg, xlac_error *err) {
  const base_istr *op = base_intern(&g->def->strings, arg ? "_Arg" : "_Retval", arg ? 4 : 7);
  tf_node_def *def = BASE_NEW(arena, tf_node_def);
  uint8_t *types = base_arena_alloc(arena, 1);
  if (!op || !def || !types) return base_oom(err, "building a graph");
  *types = (uint8_t)type;
  *def = (tf_node_def){.name = name, .op = op};
  tf_node node = {.def = def, .name = name, .types = types, .n_inputs = !arg, .n_outputs = arg};
  node.role = arg ? TF_ROLE_ARG : TF_ROLE_RETVAL;
  TRY(tf_op_def_of(g->def, op, &node.op, err));
  return tf_graph_add_node(g, &node, NULL, err);
}

/* The list may move, so `from` and `to` are read from the list of nodes, which does not grow here. */
int tf_graph_add_edge(tf_graph *g, uint32_t src, int32_t output, uint32_t dst, int32_t input, xlac_error *err) {
  assert(src < g->nodes.n && dst < g->nodes.n && (output == TF_CONTROL) == (input == TF_CONTROL));
  tf_edge e = {src, dst, output, input, TF_NO_EDGE, TF_NO_EDGE};
  uint32_t id = g->edges.n;
  tf_node *from = &g->nodes.items[src], *to = &g->nodes.items[dst];
  if (!BASE_VEC_PUSH(g->alloc, &g->edges, e)) return base_oom(err, "building a graph");
  if (from->n_out++ == 0)
    from->first_out = id;
  else
    g->edges.items[from->last_out].next_out = id;
  from->last_out = id;
  if (to->n_in++ == 0)
    to->first_in = id;
  else
    g->edges.items[to->last_in].next_in = id;
  to->last_in = id;
  return 0;
}

/* FixupSourceAndSinkEdges: after this every node can be reached from the source. */
int tf_graph_connect_ends(tf_graph *g, xlac_error *err) {
  for (uint32_t i = 0; i < g->nodes.n; i++) {
    if (i != TF_SOURCE && g->nodes.items[i].n_in == 0)
      TRY(tf_graph_add_edge(g, TF_SOURCE, TF_CONTROL, i, TF_CONTROL, err));
    if (i != TF_SINK && g->nodes.items[i].n_out == 0)
      TRY(tf_graph_add_edge(g, i, TF_CONTROL, TF_SINK, TF_CONTROL, err));
  }
  return 0;
}

/* `type` is a base type. */
bool tf_has_type(const tf_node *n, unsigned type) {
  assert(type < TF_REF);
  for (uint32_t i = 0; i < n->n_inputs + n->n_outputs; i++)
    if (tf_base_type(n->types[i]) == type) return true;
  return false;
}

/* A scan of the edges: nodes have few. */
uint32_t tf_producer(const tf_graph *g, const tf_node *n, int32_t i, int32_t *output) {
  TF_EACH_IN(g, n, e) {
    if (g->edges.items[e].dst_input != i) continue;
    *output = g->edges.items[e].src_output;
    return g->edges.items[e].src;
  }
  *output = 0;
  return TF_SOURCE;
}

/* --- order: depth first from the source, consumers in the order of their names --- */

/* A node on the stack of the search. */
typedef struct tf_order_frame {
  uint32_t node, next, end; /* consumers still to visit, in the list */
} tf_order_frame;
BASE_VEC(tf_order_frames, tf_order_frame);
BASE_VEC(tf_pending, uint64_t);

/* The stack is explicit; `pending` holds the consumers of all nodes on it, one run each. */
typedef struct tf_order_state {
  const tf_graph *g;
  tf_order_frames stack;
  tf_pending pending; /* a node's rank above its id */
  uint8_t *seen;
  uint32_t *rank; /* of each node, by name */
} tf_order_state;

/* A node by its name, to sort by. */
typedef struct tf_named {
  const base_istr *name;
  uint32_t id;
} tf_named;

/* std::string's order: bytes, then length. */
static int tf_compare_names(const void *a, const void *b) {
  const base_istr *x = ((const tf_named *)a)->name, *y = ((const tf_named *)b)->name;
  uint32_t n = x->n < y->n ? x->n : y->n;
  int order = memcmp(x->s, y->s, n);
  return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Names are compared once, here; afterwards by rank. */
static bool tf_rank_names(const tf_graph *g, uint32_t *rank) {
  tf_named *named = base_malloc(g->alloc, g->nodes.n * sizeof *named);
  if (!named) return false;
  for (uint32_t i = 0; i < g->nodes.n; i++) named[i] = (tf_named){g->nodes.items[i].name, i};
  qsort(named, g->nodes.n, sizeof *named, tf_compare_names);
  for (uint32_t i = 0; i < g->nodes.n; i++) rank[named[i].id] = i;
  base_free(g->alloc, named);
  return true;
}

/* By rank, which is in the upper half. */
static int tf_compare_pending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Lists the consumers of a node that are not seen yet, in order of their names. */
static bool tf_enter_node(tf_order_state *s, uint32_t node) {
  assert(node < s->g->nodes.n);
  const tf_node *n = &s->g->nodes.items[node];
  uint32_t from = s->pending.n;
  s->seen[node] = 1;
  if (n->role != TF_ROLE_NEXT_ITERATION) TF_EACH_OUT(s->g, n, e) {
      uint32_t dst = s->g->edges.items[e].dst;
      if (!s->seen[dst] && !BASE_VEC_PUSH(s->g->alloc, &s->pending, (uint64_t)s->rank[dst] << 32 | dst)) return false;
    }
  if (s->pending.n - from > 1)
    qsort(s->pending.items + from, s->pending.n - from, sizeof(uint64_t), tf_compare_pending);
  tf_order_frame f = {node, from, s->pending.n};
  return BASE_VEC_PUSH(s->g->alloc, &s->stack, f);
}

/* Iterative, since graphs are deep. Nodes are written from the end of `order`, in post-order, then moved to its
 * front. */
static bool tf_walk(tf_order_state *s, uint32_t *order, uint32_t *n) {
  if (!tf_enter_node(s, TF_SOURCE)) return false;
  uint32_t at = s->g->nodes.n;
  while (s->stack.n > 0) {
    tf_order_frame *f = &s->stack.items[s->stack.n - 1];
    if (f->next < f->end) {
      uint32_t node = (uint32_t)s->pending.items[f->next++];
      if (!s->seen[node] && !tf_enter_node(s, node)) return false;
      continue;
    }
    order[--at] = f->node;
    s->stack.n--;
    s->pending.n = s->stack.n ? s->stack.items[s->stack.n - 1].end : 0;
  }
  *n = s->g->nodes.n - at;
  memmove(order, order + at, *n * sizeof *order);
  return true;
}

/* TensorFlow's GetReversePostOrder with NodeComparatorName and edges out of NextIteration left out. */
int tf_reverse_post_order(const tf_graph *g, uint32_t *order, uint32_t *n, xlac_error *err) {
  assert(order != NULL && g->nodes.n > TF_SINK);
  tf_order_state s = {.g = g};
  s.seen = base_malloc(g->alloc, g->nodes.n);
  s.rank = base_malloc(g->alloc, g->nodes.n * sizeof *s.rank);
  bool fine = s.seen && s.rank && tf_rank_names(g, s.rank);
  if (fine) {
    memset(s.seen, 0, g->nodes.n);
    fine = tf_walk(&s, order, n);
  }
  BASE_VEC_FREE(g->alloc, &s.stack);
  BASE_VEC_FREE(g->alloc, &s.pending);
  base_free(g->alloc, s.seen);
  base_free(g->alloc, s.rank);
  return fine ? 0 : base_oom(err, "ordering a graph");
}

/* --- changes --- */

/* The copy shares types and op with the original; its NodeDef is a copy under another name. */
int tf_graph_copy_node(tf_graph *g, uint32_t id, const base_istr *name, uint32_t *out, xlac_error *err) {
  assert(id > TF_SINK && id < g->nodes.n);
  tf_node_def *def = base_arena_alloc(&g->def->arena, sizeof *def);
  if (!def) return base_oom(err, "copying a node");
  *def = *g->nodes.items[id].def;
  def->name = name;
  tf_node node = g->nodes.items[id];
  node.def = def;
  node.name = name;
  g->edited = true;
  return tf_graph_add_node(g, &node, out, err);
}

/* Builds the lists anew from the edges that stay. When out of memory the graph is left with the edges so far. */
int tf_graph_drop_edges(tf_graph *g, const uint8_t *gone, uint32_t n, xlac_error *err) {
  assert(n <= g->edges.n);
  tf_edge_list old = g->edges;
  int status = 0;
  g->edges = (tf_edge_list){.n = 0};
  for (uint32_t i = 0; i < g->nodes.n; i++) {
    tf_node *node = &g->nodes.items[i];
    node->first_in = node->last_in = node->first_out = node->last_out = TF_NO_EDGE;
    node->n_in = node->n_out = 0;
  }
  for (uint32_t i = 0; i < old.n && status == 0; i++) {
    const tf_edge *e = &old.items[i];
    if (i >= n || !gone[i]) status = tf_graph_add_edge(g, e->src, e->src_output, e->dst, e->dst_input, err);
  }
  BASE_VEC_FREE(g->alloc, &old);
  g->edited = true;
  return status;
}

/* --- NodeDefs --- */

static const base_istr *tf_written_name(const tf_graph *g, uint32_t id, const base_istr *const *names) {
  return names ? names[id] : g->nodes.items[id].name;
}

/* "name", "name:1" or "^name", as field 3 of a NodeDef. */
static void tf_put_edge_input(const tf_graph *g, const tf_edge *e, const base_istr *const *names, base_text *out) {
  base_text text = {.alloc = g->alloc};
  const base_istr *name = tf_written_name(g, e->src, names);
  if (e->dst_input == TF_CONTROL) base_putc(&text, '^');
  base_put(&text, name->s, name->n);
  if (e->src_output > 0) base_putf(&text, ":%d", e->src_output);
  proto_put_bytes(out, 3, text.s, text.n);
  out->failed = out->failed || text.failed;
  base_text_free(&text);
}

/* Data inputs by number, then control inputs in the order of the edges; the one from the source is not written. */
static int tf_put_inputs(const tf_graph *g, const tf_node *n, const base_istr *const *names, base_text *out,
                         xlac_error *err) {
  uint32_t *data = base_malloc(g->alloc, (n->n_inputs + (size_t)1) * sizeof *data);
  if (!data) return base_oom(err, "writing a graph");
  for (uint32_t i = 0; i < n->n_inputs; i++) data[i] = TF_NO_EDGE;
  TF_EACH_IN(g, n, e) if (g->edges.items[e].dst_input >= 0) data[g->edges.items[e].dst_input] = e;
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (data[i] != TF_NO_EDGE) tf_put_edge_input(g, &g->edges.items[data[i]], names, out);
  TF_EACH_IN(g, n, e) {
    const tf_edge *edge = &g->edges.items[e];
    if (edge->dst_input == TF_CONTROL && edge->src != TF_SOURCE) tf_put_edge_input(g, edge, names, out);
  }
  base_free(g->alloc, data);
  return 0;
}

/* All fields but name and inputs are copied as bytes, so whatever this version does not know is kept. */
int tf_graph_put_node(const tf_graph *g, uint32_t id, const base_istr *const *names, base_text *out, xlac_error *err) {
  assert(id > TF_SINK && id < g->nodes.n);
  const tf_node *n = &g->nodes.items[id];
  const char *at = n->def->bytes.p, *end = at + n->def->bytes.n, *from = at;
  const base_istr *name = tf_written_name(g, id, names);
  proto_put_bytes(out, 1, name->s, name->n);
  TRY(tf_put_inputs(g, n, names, out, err));
  for (tf_raw_field f; tf_raw_next(&at, end, &f); from = at)
    if (f.number != 1 && f.number != 3) base_put(out, from, (size_t)(at - from));
  return out->failed ? base_oom(err, "writing a graph") : 0;
}
