/* Lowers graphs node by node: which nodes count, in which order, what their rows get. A graph is a frame with one
 * tfl_value for each output of each node; nodes are visited producers first, each by the function of its op's row,
 * which makes StableHLO at the cursor and says what the outputs are. Calls of functions lower the body in place,
 * with a frame of its own, so the module has one function, main. */
#include "build.h"

/* A scan of lower.def's rows; build_row remembers what it finds for the graph at hand. */
const tfl_row *tfl_row_of(const char *op) {
  assert(op != NULL);
  static const tfl_row rows[] = {
#define TFL_OP(name, fn, arg) {#name, fn, arg},
#include "lower.def"
#undef TFL_OP
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].op, op) == 0) return &rows[i];
  return NULL;
}

/* What users ask for (xlac.has_lowering). */
bool tfl_has_op(const char *op) {
  return tfl_row_of(op) != NULL;
}

/* A call of a function by its name as the op. Functions have no row of their own: all share this one. */
static const tfl_row *build_call_row(void) {
  static const tfl_row row = {"", tfl_row_call, 0};
  return &row;
}

/* NULL where there is no lowering. Running out of memory is noted and found by opt_rewriter_status after the row. */
static const tfl_row *build_row(tfl_build *b, const tf_node *node) {
  assert(node->op != NULL);
  if (node->op->function) return build_call_row();
  const tfl_row *row = base_map_ptr(&b->rows, node->op->name);
  if (row) return row;
  row = tfl_row_of(node->op->name->s);
  if (row && !base_map_set(&b->rows, base_key(node->op->name), base_key(row))) b->rw.failed = true;
  return row;
}

/* --- which nodes count --- */

/* References to resources count, too. */
static bool build_takes_resource(const tf_node *n) {
  for (uint32_t i = 0; i < n->n_inputs; i++)
    if (tf_base_type(tf_input_type(n, i)) == TF_RESOURCE) return true;
  return false;
}

/* A node that something is left of besides its outputs: what it does to a resource. What the table does not know
 * is taken for a write if it has a resource; an Identity of a handle passes it on only. */
static bool build_has_effect(const tf_node *n) {
  if (!tf_is_op(n) || !n->op || n->role == TF_ROLE_ARG) return false;
  if (n->op->resource == TF_RESOURCE_WRITE || n->op->resource == TF_RESOURCE_READ_WRITE) return true;
  return n->op->resource == TF_RESOURCE_NONE && build_takes_resource(n) && n->role != TF_ROLE_IDENTITY;
}

/* Marks what results and effects are computed from. Control edges do not count: what must only run before has
 * either an effect, and is marked for it, or none. `needed` is by node, all zero before. A graph may be deep, so
 * the nodes to look at lie on a stack in memory. */
static int build_mark(const tfl_build *b, const tf_graph *g, uint8_t *needed) {
  struct {
    uint32_t *items;
    uint32_t n, cap;
  } stack = {NULL, 0, 0};
  base_alloc alloc = b->out->arena.alloc;
  bool fine = true;
  for (uint32_t id = 0; id < g->nodes.n && fine; id++) {
    if (g->nodes.items[id].role != TF_ROLE_RETVAL && !build_has_effect(&g->nodes.items[id])) continue;
    needed[id] = 1;
    fine = BASE_VEC_PUSH(alloc, &stack, id);
  }
  while (stack.n > 0 && fine) {
    const tf_node *n = &g->nodes.items[stack.items[--stack.n]];
    TF_EACH_IN(g, n, e) {
      const tf_edge *edge = &g->edges.items[e];
      if (edge->dst_input == TF_CONTROL || needed[edge->src]) continue;
      needed[edge->src] = 1;
      fine = fine && BASE_VEC_PUSH(alloc, &stack, edge->src);
    }
  }
  base_free(alloc, stack.items);
  return fine ? 0 : base_oom(b->err, "lowering");
}

/* By node: which argument or result it is. Its attribute says so, or else the order of the nodes. */
int tfl_number_ends(const tf_graph *g, base_arena *arena, uint32_t **numbers, xlac_error *err) {
  assert(numbers);
  uint32_t args = 0, rets = 0;
  *numbers = BASE_ARRAY(arena, uint32_t, (size_t)g->nodes.n + 1);
  if (!*numbers) return base_oom(err, "lowering");
  for (uint32_t id = 0; id < g->nodes.n; id++) {
    const tf_node *n = &g->nodes.items[id];
    int64_t number = 0;
    (*numbers)[id] = n->role == TF_ROLE_ARG ? args++ : n->role == TF_ROLE_RETVAL ? rets++ : 0;
    if ((n->role == TF_ROLE_ARG || n->role == TF_ROLE_RETVAL) &&
        tf_attr_int(tf_attr_find(n->def->attrs, "index"), &number) && number >= 0 && number < UINT32_MAX)
      (*numbers)[id] = (uint32_t)number;
  }
  return 0;
}

/* --- one node --- */

/* Functions are taken for stateful as a whole; within them each op is looked at. */
static bool build_is_stateful(const tf_op_def *op) {
  return (op->flags & TF_OP_STATEFUL) != 0 || op->function != NULL;
}

/* x->in points into the frame's values, so a row that evaluates an input's data keeps it for later users. */
static int build_inputs(tfl_op *x) {
  assert(x->in == NULL);
  x->in = BASE_ARRAY(x->arena, tfl_value *, (size_t)x->n_in + 1);
  if (!x->in) return base_oom(x->err, "lowering");
  x->fixed = !build_is_stateful(x->node->op);
  for (uint32_t i = 0; i < x->n_in; i++) {
    int32_t output = 0;
    uint32_t src = tf_producer(x->frame->graph, x->node, (int32_t)i, &output);
    const tf_node *from = &x->frame->graph->nodes.items[src];
    if (src == TF_SOURCE || (uint32_t)output >= from->n_outputs) return tfl_fail(x, "input %u comes from nowhere", i);
    x->in[i] = &x->frame->values[x->frame->first[src] + (uint32_t)output];
    x->fixed = x->fixed && x->in[i]->kind == TFL_TENSOR && x->in[i]->fixed;
  }
  return 0;
}

/* What a row said its outputs are fits what the node's types say. A difference would be a fault of a row, or an
 * attribute that contradicts the node's types. */
static int build_check_outputs(tfl_op *x) {
  for (uint32_t i = 0; i < x->n_out; i++) {
    const tfl_value *v = &x->out[i];
    base_dtype expected = tfl_out_dtype(x, i);
    if (v->kind == TFL_TENSOR && expected != BASE_DTYPE_INVALID && v->type->dtype != expected)
      return tfl_fail(x, "output %u has elements of %s, the node's are of %s", i,
                      base_dtype_of((base_dtype)v->type->dtype)->text, base_dtype_of(expected)->text);
  }
  return 0;
}

/* Its value is the caller's, and must be of the type that the node has. */
static int build_arg(tfl_op *x, uint32_t id) {
  assert(x->n_out == 1);
  uint32_t number = x->frame->numbers[id];
  if (number >= x->frame->n_args) return tfl_fail(x, "argument %u of %u does not exist", number, x->frame->n_args);
  x->out[0] = x->frame->args[number];
  return build_check_outputs(x);
}

/* A result of a node that was not lowered stays TFL_NONE; the caller says what that means. */
static int build_retval(tfl_op *x, uint32_t id) {
  uint32_t number = x->frame->numbers[id];
  TRY(build_inputs(x));
  if (number >= x->frame->n_rets) return tfl_fail(x, "result %u of %u does not exist", number, x->frame->n_rets);
  if (x->n_in == 1) x->frame->rets[number] = *x->in[0];
  return 0;
}

/* Ops that a node makes have its name as their location (NameLoc), which errors and profiles show. */
static void build_place(tfl_build *b, const tf_node *node) {
  ir_module *m = b->rw.m;
  const ir_mloc loc = {.kind = IR_LOC_NAME, .name = ir_intern(m, node->name->s, node->name->n)};
  b->place.loc = loc.name ? ir_m_loc(m, &loc) : NULL;
  b->rw.failed = b->rw.failed || !b->place.loc;
  b->rw.origin = &b->place;
}

/* Sets up the row's view of one node and calls it. After a body the location is the caller's again. */
static int build_node(tfl_build *b, tfl_frame *f, uint32_t id) {
  assert(id > TF_SINK && tf_is_op(&f->graph->nodes.items[id]));
  const tf_node *node = &f->graph->nodes.items[id];
  tfl_op x = {.b = b,
              .rw = &b->rw,
              .arena = &b->out->arena,
              .frame = f,
              .node = node,
              .n_in = node->n_inputs,
              .n_out = node->n_outputs,
              .out = &f->values[f->first[id]],
              .err = b->err};
  if (node->role == TF_ROLE_ARG) return build_arg(&x, id);
  if (node->role == TF_ROLE_RETVAL) return build_retval(&x, id);
  if (f->depth > 0 && ++b->n_nodes > TFL_MOST_NODES)
    return tfl_fail(&x, "with all calls of functions written out there are more than %d nodes", TFL_MOST_NODES);
  x.row = build_row(b, node);
  if (!x.row)
    return base_hint(b->err, tfl_fail(&x, "there is no lowering of this op"),
                     "xlac cluster --list-ops lists the ops that have one");
  const ir_mattr *before = b->place.loc;
  build_place(b, node);
  TRY(build_inputs(&x));
  TRY(x.row->fn(&x));
  if (x.status) return x.status;
  TRY(opt_rewriter_status(&b->rw));
  b->place.loc = before;
  return build_check_outputs(&x);
}

/* --- a graph --- */

/* Values of node `id` are values[first[id]] and on; all begin as TFL_NONE. */
static int build_values(tfl_build *b, tfl_frame *f) {
  assert(f->values == NULL);
  uint32_t n = 0;
  TRY(tfl_number_ends(f->graph, &b->out->arena, &f->numbers, b->err));
  f->first = BASE_ARRAY(&b->out->arena, uint32_t, (size_t)f->graph->nodes.n + 1);
  if (!f->first) return base_oom(b->err, "lowering");
  for (uint32_t id = 0; id < f->graph->nodes.n; id++) {
    f->first[id] = n;
    if (__builtin_add_overflow(n, f->graph->nodes.items[id].n_outputs, &n)) return base_oom(b->err, "lowering");
  }
  f->values = BASE_ARRAY(&b->out->arena, tfl_value, (size_t)n + 1);
  if (!f->values) return base_oom(b->err, "lowering");
  for (uint32_t i = 0; i < n; i++) f->values[i] = (tfl_value){.kind = TFL_NONE, .input = -1};
  return 0;
}

/* `needed` is cleared and has a byte for each node; `order` has room for all. Reverse post order: producers first. An
 * input that a cycle leaves for later is TFL_NONE. */
static int build_nodes(tfl_build *b, tfl_frame *f, uint32_t *order, uint8_t *needed) {
  assert(order && needed);
  uint32_t n = 0;
  TRY(build_mark(b, f->graph, needed));
  TRY(tf_reverse_post_order(f->graph, order, &n, b->err));
  for (uint32_t i = 0; i < n; i++)
    if (needed[order[i]] && tf_is_op(&f->graph->nodes.items[order[i]])) TRY(build_node(b, f, order[i]));
  return 0;
}

/* Frames lie on the C stack: their depth is bounded by TFL_MOST_DEPTH. */
int tfl_lower_graph(tfl_build *b, const tf_graph *graph, const base_istr *function, uint32_t depth, uint32_t n_args,
                    const tfl_value *args, uint32_t n_rets, tfl_value *rets) {
  assert(depth <= TFL_MOST_DEPTH && (n_args == 0 || args != NULL) && (n_rets == 0 || rets != NULL));
  base_alloc alloc = b->out->arena.alloc;
  tfl_frame f = {.graph = graph,
                 .function = function,
                 .n_args = n_args,
                 .args = args,
                 .n_rets = n_rets,
                 .rets = rets,
                 .depth = depth};
  for (uint32_t i = 0; i < n_rets; i++) rets[i] = (tfl_value){.kind = TFL_NONE, .input = -1};
  TRY(build_values(b, &f));
  uint32_t *order = base_malloc(alloc, graph->nodes.n * sizeof *order);
  uint8_t *needed = base_malloc(alloc, graph->nodes.n);
  int status = order && needed ? 0 : base_oom(b->err, "lowering");
  if (status == 0) memset(needed, 0, graph->nodes.n);
  if (status == 0) status = build_nodes(b, &f, order, needed);
  base_free(alloc, order);
  base_free(alloc, needed);
  return status;
}

/* The body in place of a call: its frame ends with it. The function must take as many arguments as are given, but
 * may give more results than are wanted. */
int tfl_lower_body(tfl_op *x, const tf_callee *callee, uint32_t n_args, const tfl_value *args, uint32_t n_rets,
                   tfl_value *rets) {
  assert(callee && x->frame);
  const tf_graph *body = NULL;
  int shown = callee->name.n < 100 ? (int)callee->name.n : 100;
  if (!callee->function) return tfl_fail(x, "the function '%.*s' does not exist", shown, callee->name.p);
  if (x->frame->depth >= TFL_MOST_DEPTH)
    return tfl_fail(x, "calls of functions are nested deeper than %d", TFL_MOST_DEPTH);
  if (callee->function->signature->n_inputs != n_args)
    return tfl_fail(x, "the function '%.*s' takes %u arguments, is given %u", shown, callee->name.p,
                    callee->function->signature->n_inputs, n_args);
  if (callee->function->n_rets < n_rets)
    return tfl_fail(x, "the function '%.*s' gives %u results, %u are expected", shown, callee->name.p,
                    callee->function->n_rets, n_rets);
  x->status = tf_body_of(x->b->bodies, callee->function, callee->attrs, &body, x->err);
  if (x->status) return x->status;
  if (!body) return tfl_fail(x, "the function '%.*s' is malformed", shown, callee->name.p);
  return x->status =
             tfl_lower_graph(x->b, body, callee->function->name, x->frame->depth + 1, n_args, args, n_rets, rets);
}
