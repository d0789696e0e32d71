/* Backward analysis: values that compiled consumers need as constants, and what these are computed from
 * (BackwardsConstAnalysis). Nodes are visited in reverse post-order from its end, so consumers come before
 * producers: a node that is marked marks all of its inputs, one that is not marks those that its op wants constant
 * (const_args of the op table) and those whose function arguments are found constant, recursively. The marks of a
 * function's arguments are computed once for each call key and kept in tf_bodies. */
#include "../graph/functions.h"

/* Lies in the graph's arena, at the value of tf_bodies.constants. */
typedef struct tf_const_marks {
  uint32_t n;
  uint8_t v[]; /* by argument of the function */
} tf_const_marks;

/* One analysis of one graph or of one body. `marks` is by node, 1 for a node whose value must be known. */
typedef struct tf_constness {
  tf_bodies *bodies;
  const tf_graph *g;
  bool (*keep)(const void *ctx, const tf_edge *e);
  const void *ctx;
  uint8_t *marks;
  uint32_t depth;
  xlac_error *err;
} tf_constness;

/* Functions within functions; more than tf_check_compilable follows, so nothing that can be a candidate is cut
 * off. */
enum { TF_CONST_DEPTH = 60 };

static int tf_argument_marks(const tf_constness *from, const tf_callee *callee, const tf_const_marks **out);

/* --- which inputs of a node must be constants: bits by input --- */

/* Which of a node's data inputs must be constant; the bytes are borrowed from the analysis. */
typedef struct tf_input_marks {
  base_alloc alloc;
  uint8_t *v;
  uint32_t n;
  bool any;
} tf_input_marks;

/* Out of range is possible: a function may take more arguments than the node that calls it has inputs, when the
 * graph is malformed in a way that import accepts. */
static void tf_mark_input(tf_input_marks *m, uint32_t i) {
  if (i >= m->n) return;
  m->v[i] = 1;
  m->any = true;
}

static bool tf_word_in(const tf_word *words, base_slice word) {
  assert(words != NULL);
  while (*words) {
    base_slice one = tf_next_word(&words);
    if (one.n == word.n && memcmp(one.p, word.p, one.n) == 0) return true;
  }
  return false;
}

/* The op's argument k stands for several inputs where it is a list; all of them are marked then. */
static void tf_mark_const_args(const tf_node *n, tf_input_marks *m) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < n->op->n_inputs; i++) {
    const tf_arg_def *a = &n->op->inputs[i];
    int64_t count = tf_arg_values(n, a);
    bool marked = tf_word_in(n->op->const_args, a->name);
    for (int64_t k = 0; k < count; k++, at++)
      if (marked) tf_mark_input(m, at);
  }
}

/* Ops each of whose results TensorFlow takes for the input of the same number, loops included. */
static bool tf_passes_on(const tf_node *n) {
  return tf_node_is(n, "Identity") || tf_node_is(n, "IdentityN") || tf_node_is(n, "While") ||
         tf_node_is(n, "StatelessWhile");
}

/* Whether result i of a loop's body is its argument i, passed on or not at all. Results are nodes of role RETVAL
 * in the order of the signature: the i-th of them is looked for. The walk back through what only passes on is
 * bounded by the number of nodes, since a loop of Identities is possible in a malformed body. */
static bool tf_is_invariant(const tf_graph *body, const tf_op_def *signature, uint32_t i) {
  assert(body->nodes.n > TF_SINK);
  uint32_t seen = 0, arg = TF_SINK + 1 + i;
  if (i >= signature->n_inputs) return false;
  for (uint32_t id = TF_SINK + 1; id < body->nodes.n; id++) {
    if (body->nodes.items[id].role != TF_ROLE_RETVAL || body->nodes.items[id].op == NULL || seen++ != i) continue;
    int32_t output = 0;
    uint32_t from = tf_producer(body, &body->nodes.items[id], 0, &output);
    for (uint32_t steps = 0; steps < body->nodes.n && tf_passes_on(&body->nodes.items[from]); steps++)
      from = tf_producer(body, &body->nodes.items[from], output, &output);
    return from == arg;
  }
  return false;
}

/* An input of a While must be constant where cond or body need it so and the body passes it on unchanged:
 * otherwise it would be constant in the first iteration only. */
static int tf_mark_while(const tf_constness *c, const tf_callees *callees, tf_input_marks *m) {
  const tf_const_marks *cond = NULL, *body = NULL;
  const tf_graph *graph = NULL;
  if (callees->n < 2 || !callees->list[0].function || !callees->list[1].function) return 0;
  TRY(tf_argument_marks(c, &callees->list[0], &cond));
  TRY(tf_argument_marks(c, &callees->list[1], &body));
  TRY(tf_body_of(c->bodies, callees->list[1].function, callees->list[1].attrs, &graph, c->err));
  for (uint32_t i = 0; i < m->n && graph; i++) {
    bool wanted = (cond && i < cond->n && cond->v[i]) || (body && i < body->n && body->v[i]);
    if (wanted && tf_is_invariant(graph, callees->list[1].function->signature, i)) tf_mark_input(m, i);
  }
  return 0;
}

/* Inputs of a call, of If (whose input 0 is the condition) and of Case (input 0 the index). */
static int tf_mark_callees(const tf_constness *c, const tf_callees *callees, tf_input_marks *m) {
  uint32_t first = callees->kind == TF_CALL_IF || callees->kind == TF_CALL_CASE;
  for (uint32_t k = 0; k < callees->n; k++) {
    const tf_const_marks *args = NULL;
    if (!callees->list[k].function) continue;
    TRY(tf_argument_marks(c, &callees->list[k], &args));
    for (uint32_t i = 0; args && i < args->n; i++)
      if (args->v[i]) tf_mark_input(m, i + first);
  }
  return 0;
}

/* What compiled code calls must be there and well formed, or the pass fails. */
static int tf_check_callees_exist(const tf_constness *c, const tf_node *n, const tf_callees *callees) {
  if (callees->n == 0)
    return base_fail(c->err, XLAC_E_BAD_ARGUMENT, "node '%.120s' (op %.60s) has no branches", n->name->s,
                     n->op->name->s);
  for (uint32_t i = 0; i < callees->n; i++) {
    const tf_callee *f = &callees->list[i];
    const tf_graph *body = NULL;
    if (!f->function)
      return base_fail(c->err, XLAC_E_UNKNOWN_NAME,
                       "node '%.120s' (op %.60s) calls function '%.*s', which is not defined", n->name->s,
                       n->op->name->s, (int)(f->name.n < 80 ? f->name.n : 80), f->name.p);
    TRY(tf_body_of(c->bodies, f->function, f->attrs, &body, c->err));
    if (!body) return tf_body_fails(c->bodies, f->function, f->attrs, c->err);
  }
  return 0;
}

/* Fills m by what kind of call the node is; a plain op by its table row. */
static int tf_mark_inputs(const tf_constness *c, const tf_node *n, tf_input_marks *m) {
  tf_callees callees;
  if (n->op->function || tf_node_is(n, "SymbolicGradient")) return 0; /* TensorFlow does not look into these */
  TRY(tf_find_callees(c->bodies, n, &callees, c->err));
  if (callees.kind != TF_CALL_NONE) TRY(tf_check_callees_exist(c, n, &callees));
  if (callees.kind == TF_CALL_WHILE) return tf_mark_while(c, &callees, m);
  if (callees.kind != TF_CALL_NONE) return tf_mark_callees(c, &callees, m);
  tf_mark_const_args(n, m);
  return 0;
}

/* --- over the graph --- */

static bool tf_keeps(const tf_constness *c, const tf_edge *e) {
  return !c->keep || c->keep(c->ctx, e);
}

/* Marks the producer behind a data edge, and behind what only passes on. Follows Identity, IdentityN and While to
 * the producer behind them: those need not be compiled for their input to be known. Marking through a While is
 * TensorFlow's simplification and is kept. */
static void tf_mark_producer(const tf_constness *c, const tf_edge *e) {
  for (uint32_t steps = 0; steps < c->g->nodes.n && tf_keeps(c, e); steps++) {
    const tf_node *src = &c->g->nodes.items[e->src];
    if (!tf_passes_on(src)) {
      c->marks[e->src] = 1;
      return;
    }
    uint32_t edge = TF_NO_EDGE;
    TF_EACH_IN(c->g, src, k) if (c->g->edges.items[k].dst_input == e->src_output) edge = k;
    if (edge == TF_NO_EDGE) return;
    e = &c->g->edges.items[edge];
  }
}

/* Marks the producers of one node's inputs. An argument that is marked is the end of the way: its caller decides. */
static int tf_visit_constness(tf_constness *c, uint32_t id, uint8_t *inputs) {
  assert(id < c->g->nodes.n);
  const tf_node *n = &c->g->nodes.items[id];
  if (!tf_is_op(n) || !n->op || (n->op->flags & TF_OP_METADATA)) return 0;
  bool all = c->marks[id];
  if (all && n->role == TF_ROLE_ARG) return 0;
  tf_input_marks m = {.v = inputs, .n = n->n_inputs};
  if (!all) {
    memset(inputs, 0, n->n_inputs);
    TRY(tf_mark_inputs(c, n, &m));
    if (!m.any) return 0;
  }
  TF_EACH_IN(c->g, n, k) {
    const tf_edge *e = &c->g->edges.items[k];
    if (e->dst_input == TF_CONTROL || !(all || inputs[e->dst_input])) continue;
    tf_mark_producer(c, e);
  }
  return 0;
}

/* c->marks has room for every node and is cleared first. `inputs` is one buffer for all nodes, as wide as the
 * widest. */
static int tf_run_constness(tf_constness *c) {
  assert(c->marks != NULL);
  uint32_t n = 0, widest = 0;
  for (uint32_t i = 0; i < c->g->nodes.n; i++)
    if (c->g->nodes.items[i].n_inputs > widest) widest = c->g->nodes.items[i].n_inputs;
  uint32_t *order = base_malloc(c->g->alloc, (size_t)c->g->nodes.n * sizeof *order);
  uint8_t *inputs = base_malloc(c->g->alloc, (size_t)widest + 1);
  int status = order && inputs ? 0 : base_oom(c->err, "finding constants");
  memset(c->marks, 0, c->g->nodes.n);
  if (status == 0) status = tf_reverse_post_order(c->g, order, &n, c->err);
  for (uint32_t i = n; i > 0 && status == 0; i--) status = tf_visit_constness(c, order[i - 1], inputs);
  base_free(c->g->alloc, order);
  base_free(c->g->alloc, inputs);
  return status;
}

int tf_must_be_constant(tf_bodies *b, const tf_graph *g, bool (*keep)(const void *ctx, const tf_edge *e),
                        const void *ctx, uint8_t *marks, xlac_error *err) {
  assert(marks != NULL);
  tf_constness c = {.bodies = b, .g = g, .keep = keep, .ctx = ctx, .marks = marks, .err = err};
  return tf_run_constness(&c);
}

/* --- functions --- */

/* Runs the analysis on the body and keeps the marks of its arguments, which are the nodes right after the sink. */
static int tf_find_argument_marks(const tf_constness *from, const tf_callee *callee, const tf_const_marks **out) {
  const tf_graph *body = NULL;
  *out = NULL;
  TRY(tf_body_of(from->bodies, callee->function, callee->attrs, &body, from->err));
  if (!body) return 0;
  uint32_t n = callee->function->signature->n_inputs;
  tf_const_marks *args = base_arena_zalloc(&from->bodies->def->arena, sizeof *args + n);
  tf_constness c = {.bodies = from->bodies, .g = body, .depth = from->depth + 1, .err = from->err};
  c.marks = base_malloc(body->alloc, body->nodes.n);
  int status = args && c.marks ? tf_run_constness(&c) : base_oom(from->err, "finding constants");
  for (uint32_t i = 0; i < n && status == 0; i++) args->v[i] = c.marks[TF_SINK + 1 + i];
  base_free(body->alloc, c.marks);
  if (args) args->n = n;
  *out = args;
  return status;
}

/* NULL for a function that calls itself, or nests too deep: it is not compiled anyway. The entry is set to NULL
 * before the body is analysed, so that recursion finds it and ends. */
static int tf_argument_marks(const tf_constness *from, const tf_callee *callee, const tf_const_marks **out) {
  uint64_t key = tf_call_key(callee->function, callee->attrs), known = 0;
  *out = NULL;
  if (from->depth >= TF_CONST_DEPTH) return 0;
  if (base_map_get(&from->bodies->constants, key, &known)) {
    *out = (const tf_const_marks *)(uintptr_t)known;
    return 0;
  }
  if (!base_map_set(&from->bodies->constants, key, 0)) return base_oom(from->err, "finding constants");
  TRY(tf_find_argument_marks(from, callee, out));
  return base_map_set(&from->bodies->constants, key, base_key(*out)) ? 0 : base_oom(from->err, "finding constants");
}
