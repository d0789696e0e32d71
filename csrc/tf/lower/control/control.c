/* If, Case and While, the loops that rows make, and what branches and loops share. Functions of a node become
 * regions of one StableHLO op, which see the values around them, so that constants stay constants inside; what a
 * region changes is a result of the op: its outputs, the new values of variables, the parts of lists. */
#include "../control.h"
#include "../repeat.h"

/* --- values of several tensors --- */

/* A tensor is one leaf, a list as many as it has parts that are tensors, anything else none. */
uint32_t tfl_count_leaves(const tfl_value *v) {
  uint32_t n = v->kind == TFL_TENSOR;
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++) n += v->parts[i].kind == TFL_TENSOR;
  return n;
}

/* v's tensors as values at the cursor. */
uint32_t tfl_put_leaves(tfl_op *x, tfl_value *v, ir_value *out) {
  uint32_t n = 0;
  if (v->kind == TFL_TENSOR) out[n++] = tfl_use(x, v);
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++) {
    tfl_value part = v->parts[i];
    if (part.kind == TFL_TENSOR) out[n++] = tfl_use(x, &part);
  }
  return n;
}

uint32_t tfl_leaf_types(const tfl_value *v, const ir_type **out) {
  assert(v != NULL);
  uint32_t n = 0;
  if (v->kind == TFL_TENSOR) out[n++] = v->type;
  for (uint32_t i = 0; v->kind == TFL_LIST && i < v->n_parts; i++)
    if (v->parts[i].kind == TFL_TENSOR) out[n++] = v->parts[i].type;
  return n;
}

/* Neither fixed nor an input: what comes out of a region is known only when it runs. */
static tfl_value control_tensor(const ir_type *type, ir_value v) {
  return (tfl_value){.kind = TFL_TENSOR, .type = type, .v = v, .input = -1};
}

/* What v becomes where its tensors are `from`: of an op's results or a region's arguments. */
int tfl_take_leaves(tfl_op *x, tfl_value *v, const ir_value *from, uint32_t *used) {
  assert(used != NULL);
  *used = tfl_count_leaves(v);
  if (v->kind == TFL_TENSOR) *v = control_tensor(v->type, from[0]);
  if (v->kind != TFL_LIST) return 0;
  tfl_value *parts = BASE_ARRAY(x->arena, tfl_value, (size_t)v->n_parts + 1);
  if (!parts) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0, k = 0; i < v->n_parts; i++) {
    parts[i] = v->parts[i];
    if (parts[i].kind == TFL_TENSOR) parts[i] = control_tensor(parts[i].type, from[k++]);
  }
  v->parts = parts;
  return 0;
}

/* Whether both have the same form: kinds, types, handles. Types are interned, so they are compared by address. */
bool tfl_values_alike(const tfl_value *a, const tfl_value *b) {
  if (a->kind != b->kind || (a->kind == TFL_HANDLE && a->number != b->number)) return false;
  if (a->kind == TFL_TENSOR) return a->type == b->type;
  if (a->kind != TFL_LIST) return true;
  if (a->n_parts != b->n_parts) return false;
  for (uint32_t i = 0; i < a->n_parts; i++)
    if (a->parts[i].kind != b->parts[i].kind || a->parts[i].type != b->parts[i].type) return false;
  return true;
}

/* `what` and i say whose values they are: "the loop's value 2 is f32[3] and then f32[4]". */
int tfl_misfit(tfl_op *x, const char *what, uint32_t i, const tfl_value *a, const tfl_value *b) {
  char one[80] = "something else than a tensor", other[80] = "something else than a tensor";
  if (a->kind == TFL_TENSOR) ir_type_text(a->type, one, sizeof one);
  if (b->kind == TFL_TENSOR) ir_type_text(b->type, other, sizeof other);
  return tfl_fail(x, "%s %u is %s and then %s", what, i, one, other);
}

/* --- resources --- */

/* NULL when out of memory, with x->status set. */
tfl_resource *tfl_save_resources(tfl_op *x) {
  const tfl_resource_list *all = &x->b->resources;
  tfl_resource *saved = BASE_ARRAY(x->arena, tfl_resource, (size_t)all->n + 1);
  if (!saved) x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; saved && i < all->n; i++) saved[i] = *all->items[i];
  return saved;
}

void tfl_restore_resources(tfl_op *x, const tfl_resource *saved, uint32_t n) {
  assert(n <= x->b->resources.n);
  for (uint32_t i = 0; i < n; i++) *x->b->resources.items[i] = saved[i];
}

/* --- nodes that name functions --- */

int tfl_named_callee(tfl_op *x, const char *attr, tf_callee *out) {
  base_slice name = {attr, 0}, message = {attr, 0};
  (void)tf_attr_func(tf_attr_find(x->node->def->attrs, attr), &name, &message);
  *out = (tf_callee){.name = name, .function = tf_bodies_find(x->b->bodies, name)};
  if (out->function) return 0;
  return tfl_fail(x, "attribute '%s' names no function of the library", attr);
}

/* XlaWhile and XlaIf, which clustering does not look into. */
static int control_xla_callees(tfl_op *x, tf_callees *callees) {
  bool loop = tf_node_is(x->node, "XlaWhile");
  if (!loop && !tf_node_is(x->node, "XlaIf")) return 0;
  callees->n = 2;
  TRY(tfl_named_callee(x, loop ? "cond" : "then_branch", &callees->list[0]));
  return tfl_named_callee(x, loop ? "body" : "else_branch", &callees->list[1]);
}

/* x->n_in counts the condition, or the index, or the loop's values. */
int tfl_callees(tfl_op *x, tf_callees *callees, uint32_t least) {
  x->status = tf_find_callees(x->b->bodies, x->node, callees, x->err);
  if (x->status) return x->status;
  if (callees->kind == TF_CALL_NONE) TRY(control_xla_callees(x, callees));
  if (callees->cut) return tfl_fail(x, "it has more than %d branches", TF_MOST_CALLEES);
  if (callees->n < least || x->n_in < 1) return tfl_fail(x, "it names %u functions", callees->n);
  return 0;
}

/* What counts as true: a scalar that is not 0, another tensor that is not empty. */
ir_value tfl_truth(tfl_op *x, tfl_value *v) {
  assert(v != NULL);
  const ir_type *t = v->kind == TFL_TENSOR ? v->type : NULL;
  if (t && t->rank > 0) return tfl_scalar(x, XLAC_PRED, t->count > 0);
  ir_value p = tfl_use(x, v);
  return !p.op || t->dtype == XLAC_PRED ? p : tfl_compare(x, IR_DIRECTION_NE, p, tfl_like(x, p, 0));
}

/* --- If and Case --- */

/* Whether two branches leave the very same value, so that it need not be a result. */
static bool control_same_value(const tfl_value *a, const tfl_value *b) {
  return a->kind == b->kind && a->v.op == b->v.op && a->v.index == b->v.index && a->data == b->data &&
         a->parts == b->parts && a->number == b->number;
}

/* If and Case while they are lowered. Branches are lowered into regions of `holder`, an op that is thrown away;
 * what differs between branches is a result, what they do to variables, too. Only then is the op itself made,
 * since the types of its results are known. */
typedef struct control_branches {
  const tf_callees *callees;
  uint32_t n, n_values, n_resources; /* values: outputs, then all resources */
  ir_op *holder;                     /* of the regions, until the results are known */
  tfl_value **values;                /* by branch */
  tfl_resource *before;
  bool *differs; /* by value: needs to be a result */
} control_branches;

static int control_prepare(tfl_op *x, control_branches *c) {
  assert(c->callees->n > 0);
  c->n = c->callees->n;
  c->n_resources = x->b->resources.n;
  c->n_values = x->n_out + c->n_resources;
  c->holder = opt_make_n(x->rw, IR_OP_OPT_BARRIER, 0, NULL, 0, NULL, c->n);
  c->values = BASE_ARRAY(x->arena, tfl_value *, (size_t)c->n + 1);
  c->before = tfl_save_resources(x);
  c->differs = base_arena_zalloc(x->arena, (size_t)c->n_values + 1);
  if (!c->values || !c->differs) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < c->n; i++) {
    c->values[i] = BASE_ARRAY(x->arena, tfl_value, (size_t)c->n_values + 1);
    if (!c->values[i]) return x->status = base_oom(x->err, "lowering");
  }
  return x->status ? x->status : opt_rewriter_status(x->rw);
}

/* The inputs from `from` on, copied: lowering a body may fill in data of its arguments. */
static tfl_value *control_args(tfl_op *x, uint32_t from) {
  tfl_value *args = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_in + 1);
  if (!args) x->status = base_oom(x->err, "lowering");
  for (uint32_t i = from; args && i < x->n_in; i++) args[i - from] = *x->in[i];
  return args;
}

/* Lowers branch i into its region, notes the state that it leaves, and puts the state back for the next branch. */
static int control_branch(tfl_op *x, control_branches *c, uint32_t i) {
  assert(i < c->n);
  tfl_value *args = control_args(x, 1);
  if (!args) return x->status;
  ir_computation *region = opt_region(x->rw, c->holder, i);
  TRY(opt_rewriter_status(x->rw));
  tfl_cursor back = tfl_enter(x, region);
  int status = tfl_lower_body(x, &c->callees->list[i], x->n_in - 1, args, x->n_out, c->values[i]);
  tfl_leave(x, back);
  TRY(status);
  for (uint32_t k = 0; k < c->n_resources; k++) {
    c->values[i][x->n_out + k] = x->b->resources.items[k]->value;
    c->before[k].written = c->before[k].written || x->b->resources.items[k]->written;
  }
  tfl_restore_resources(x, c->before, c->n_resources);
  return 0;
}

/* Zeros of the form of `like`, known data for tensors. */
static int control_zeros(tfl_op *x, const tfl_value *like, tfl_value *out) {
  *out = *like;
  out->input = -1;
  if (like->kind == TFL_TENSOR) {
    size_t size = (size_t)like->type->count * base_dtype_bytes((base_dtype)like->type->dtype);
    out->v = (ir_value){NULL, 0};
    out->constant = NULL;
    out->fixed = true;
    out->data = base_arena_zalloc(x->arena, size + 1);
    return out->data ? 0 : (x->status = base_oom(x->err, "lowering"));
  }
  tfl_value *parts = BASE_ARRAY(x->arena, tfl_value, (size_t)like->n_parts + 1);
  if (!parts) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < like->n_parts && like->kind == TFL_LIST; i++) {
    parts[i] = like->parts[i];
    if (parts[i].kind == TFL_TENSOR) TRY(control_zeros(x, &like->parts[i], &parts[i]));
  }
  out->parts = parts;
  return 0;
}

/* A branch that does not compute an output of the other ones (FakeParam) gives zeros for it. */
static int control_fill(tfl_op *x, control_branches *c) {
  for (uint32_t v = 0; v < x->n_out; v++) {
    const tfl_value *real = NULL;
    for (uint32_t i = 0; i < c->n && !real; i++)
      if (c->values[i][v].kind != TFL_NONE) real = &c->values[i][v];
    for (uint32_t i = 0; real && i < c->n; i++)
      if (c->values[i][v].kind == TFL_NONE && c->values[i][v].input < 0) TRY(control_zeros(x, real, &c->values[i][v]));
  }
  return 0;
}

/* Which values are results of the op, and how many tensors these are. */
static int control_compare(tfl_op *x, control_branches *c, uint32_t *n_leaves) {
  assert(c->n > 0);
  *n_leaves = 0;
  for (uint32_t v = 0; v < c->n_values; v++) {
    for (uint32_t i = 1; i < c->n; i++) c->differs[v] |= !control_same_value(&c->values[0][v], &c->values[i][v]);
    for (uint32_t i = 1; i < c->n && c->differs[v]; i++)
      if (!tfl_values_alike(&c->values[0][v], &c->values[i][v]))
        return tfl_misfit(x, v < x->n_out ? "in two branches, result" : "in two branches, the new value of variable",
                          v < x->n_out ? v : v - x->n_out, &c->values[0][v], &c->values[i][v]);
    if (c->differs[v]) *n_leaves += tfl_count_leaves(&c->values[0][v]);
  }
  return 0;
}

/* The op with the regions, now that its results are known. */
static int control_op(tfl_op *x, control_branches *c, ir_opcode opcode, ir_value chooser, uint32_t n, ir_op **out) {
  const ir_type **types = BASE_ARRAY(x->arena, const ir_type *, (size_t)n + 1);
  ir_value *leaves = BASE_ARRAY(x->arena, ir_value, (size_t)n + 1);
  if (!types || !leaves) return x->status = base_oom(x->err, "lowering");
  for (uint32_t v = 0, k = 0; v < c->n_values; v++)
    if (c->differs[v]) k += tfl_leaf_types(&c->values[0][v], types + k);
  ir_op *op = *out = opt_make_n(x->rw, opcode, n, types, 1, &chooser, c->n);
  for (uint32_t i = 0; op && i < c->n; i++) {
    op->called[i] = c->holder->called[i];
    op->called[i]->owner = op;
    tfl_cursor back = tfl_enter(x, op->called[i]);
    for (uint32_t v = 0, k = 0; v < c->n_values; v++)
      if (c->differs[v]) k += tfl_put_leaves(x, &c->values[i][v], leaves + k);
    opt_set_results(x->rw, op->called[i], n, leaves);
    tfl_leave(x, back);
  }
  c->holder->n_called = 0;
  ir_op_remove(c->holder);
  return x->status ? x->status : opt_rewriter_status(x->rw);
}

/* Outputs and variables take the op's results, or what every branch agrees on. */
static int control_give(tfl_op *x, control_branches *c, ir_op *op, uint32_t n) {
  ir_value *results = BASE_ARRAY(x->arena, ir_value, (size_t)n + 1);
  if (!results) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < n; i++) results[i] = opt_result(op, i);
  for (uint32_t v = 0, k = 0, used = 0; v < c->n_values; v++) {
    tfl_value value = c->values[0][v];
    if (c->differs[v]) {
      TRY(tfl_take_leaves(x, &value, results + k, &used));
      k += used;
    }
    if (v < x->n_out) tfl_out_value(x, v, &value);
    if (v >= x->n_out) x->b->resources.items[v - x->n_out]->value = value;
  }
  return 0;
}

/* `chooser` is the predicate of an If or the index of a Case; StableHLO's case takes the last branch for an index
 * out of range, as TensorFlow does. */
static int control_branches_of(tfl_op *x, const tf_callees *callees, ir_opcode opcode, ir_value chooser) {
  control_branches c = {.callees = callees};
  uint32_t n = 0;
  ir_op *op = NULL;
  TRY(control_prepare(x, &c));
  for (uint32_t i = 0; i < c.n; i++) TRY(control_branch(x, &c, i));
  TRY(control_fill(x, &c));
  TRY(control_compare(x, &c, &n));
  TRY(control_op(x, &c, opcode, chooser, n, &op));
  return control_give(x, &c, op, n);
}

/* The one branch that is known to run, in place. */
static int control_inline(tfl_op *x, const tf_callee *callee) {
  tfl_value *args = control_args(x, 1), *rets = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_out + 1);
  if (!args || !rets) return x->status = base_oom(x->err, "lowering");
  TRY(tfl_lower_body(x, callee, x->n_in - 1, args, x->n_out, rets));
  for (uint32_t i = 0; i < x->n_out; i++) tfl_out_value(x, i, &rets[i]);
  return 0;
}

/* A predicate of known shape or data is decided here; the other branch is not even looked at. */
int tfl_row_if(tfl_op *x) {
  tf_callees callees;
  const void *data = NULL;
  TRY(tfl_callees(x, &callees, 2));
  const ir_type *t = tfl_in_type(x, 0);
  TRY(x->status);
  if (t->rank > 0) return control_inline(x, &callees.list[t->count > 0 ? 0 : 1]);
  x->status = tfl_evaluate(x->b, x->in[0], &data);
  TRY(x->status);
  if (data) return control_inline(x, &callees.list[base_load_f64((base_dtype)t->dtype, data) != 0 ? 0 : 1]);
  x->fixed = false;
  return control_branches_of(x, &callees, IR_OP_IF, tfl_truth(x, x->in[0]));
}

/* One branch needs no index. */
int tfl_row_case(tfl_op *x) {
  tf_callees callees;
  const void *data = NULL;
  TRY(tfl_callees(x, &callees, 1));
  const ir_type *t = tfl_in_type(x, 0);
  TRY(x->status);
  if (t->rank > 0) return tfl_fail(x, "its index has %u dimensions, expected a scalar", t->rank);
  x->status = tfl_evaluate(x->b, x->in[0], &data);
  TRY(x->status);
  if (data || callees.n == 1) {
    int64_t i = data ? base_load_i64((base_dtype)t->dtype, data) : 0;
    return control_inline(x, &callees.list[i < 0 || i >= callees.n ? callees.n - 1 : (uint32_t)i]);
  }
  x->fixed = false;
  return control_branches_of(x, &callees, IR_OP_CONDITIONAL, tfl_in(x, 0));
}

/* --- While --- */

enum { CONTROL_MOST_SCANNED = 1 << 20 }; /* nodes; beyond that a body may write */

static bool control_graph_writes(tfl_op *x, const tf_callee *callee, uint32_t depth, uint32_t *scanned);

/* A node may write if it takes a resource and is neither known to read only nor a call of functions that do not
 * write. */
static bool control_node_writes(tfl_op *x, const tf_node *n, uint32_t depth, uint32_t *scanned) {
  tf_callees callees;
  bool takes = false;
  for (uint32_t i = 0; i < n->n_inputs; i++) takes = takes || tf_base_type(tf_input_type(n, i)) == TF_RESOURCE;
  if (!takes || n->role == TF_ROLE_IDENTITY || n->role == TF_ROLE_RETVAL || n->op->resource == TF_RESOURCE_READ)
    return false;
  if (tf_find_callees(x->b->bodies, n, &callees, NULL) != 0 || callees.kind == TF_CALL_NONE) return true;
  for (uint32_t i = 0; i < callees.n; i++)
    if (control_graph_writes(x, &callees.list[i], depth + 1, scanned)) return true;
  return callees.cut;
}

/* What can't be looked into is taken to write. *scanned bounds the work over all bodies. */
static bool control_graph_writes(tfl_op *x, const tf_callee *callee, uint32_t depth, uint32_t *scanned) {
  const tf_graph *g = NULL;
  if (!callee->function || depth > TFL_MOST_DEPTH) return true;
  if (tf_body_of(x->b->bodies, callee->function, callee->attrs, &g, NULL) != 0 || !g) return true;
  for (uint32_t id = 0; id < g->nodes.n; id++) {
    if (++*scanned > CONTROL_MOST_SCANNED) return true;
    if (tf_is_op(&g->nodes.items[id]) && control_node_writes(x, &g->nodes.items[id], depth, scanned)) return true;
  }
  return false;
}

/* Marks the results that are the argument of the same number, as it is. Looks through Identities from each result
 * to the argument it comes from. */
static int control_find_invariants(tfl_op *x, const tf_graph *g, bool *invariant) {
  uint32_t *numbers = NULL;
  x->status = tfl_number_ends(g, x->arena, &numbers, x->err);
  TRY(x->status);
  for (uint32_t id = 0; id < g->nodes.n; id++) {
    if (g->nodes.items[id].role != TF_ROLE_RETVAL || numbers[id] >= x->n_in) continue;
    uint32_t at = id, steps = 0;
    do {
      int32_t output = 0;
      at = tf_producer(g, &g->nodes.items[at], 0, &output);
    } while (g->nodes.items[at].role == TF_ROLE_IDENTITY && ++steps < g->nodes.n);
    invariant[numbers[id]] = g->nodes.items[at].role == TF_ROLE_ARG && numbers[at] == numbers[id];
  }
  return 0;
}

/* A While while it is lowered: the loop carries the values of its inputs that the body changes, and the variables
 * whose handles it takes if the body may write. What is not carried is seen from outside, so constants stay known
 * in the body. */
typedef struct control_loop {
  const tf_callees *callees;
  uint32_t n_values, n_leaves; /* values: inputs, then all resources */
  tfl_value *init;
  bool *carried;
  ir_op *op;
  tfl_resource *before;
} control_loop;

static bool control_has_handle(const tfl_op *x, uint32_t resource) {
  assert(resource < x->b->resources.n);
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i]->kind == TFL_HANDLE && x->in[i]->number == resource) return true;
  return false;
}

/* Decides what is carried. */
static int control_loop_state(tfl_op *x, control_loop *l) {
  const tf_graph *body = NULL;
  uint32_t scanned = 0;
  bool writes = control_graph_writes(x, &l->callees->list[1], 0, &scanned);
  l->n_values = x->n_in + x->b->resources.n;
  l->init = BASE_ARRAY(x->arena, tfl_value, (size_t)l->n_values + 1);
  l->carried = base_arena_zalloc(x->arena, (size_t)l->n_values + 1);
  if (!l->init || !l->carried) return x->status = base_oom(x->err, "lowering");
  const tf_callee *callee = &l->callees->list[1];
  if (callee->function) x->status = tf_body_of(x->b->bodies, callee->function, callee->attrs, &body, x->err);
  TRY(x->status);
  bool *invariant = base_arena_zalloc(x->arena, (size_t)x->n_in + 1);
  if (!invariant) return x->status = base_oom(x->err, "lowering");
  if (body) TRY(control_find_invariants(x, body, invariant));
  for (uint32_t i = 0; i < l->n_values; i++) {
    bool is_input = i < x->n_in;
    l->init[i] = is_input ? *x->in[i] : x->b->resources.items[i - x->n_in]->value;
    l->carried[i] = is_input ? !invariant[i] : writes && control_has_handle(x, i - x->n_in);
    if (l->carried[i]) l->n_leaves += tfl_count_leaves(&l->init[i]);
  }
  return 0;
}

/* The values of a region: its arguments where they are carried, else those from outside. Resources get theirs. */
static int control_loop_bind(tfl_op *x, control_loop *l, ir_computation *region, tfl_value *values) {
  assert(l->op != NULL);
  const ir_type **types = BASE_ARRAY(x->arena, const ir_type *, (size_t)l->n_leaves + 1);
  ir_value *args = BASE_ARRAY(x->arena, ir_value, (size_t)l->n_leaves + 1);
  if (!types || !args) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0, used = 0; i < l->n_values; i++) {
    values[i] = l->init[i];
    if (l->carried[i]) {
      uint32_t n = tfl_leaf_types(&values[i], types);
      for (uint32_t k = 0; k < n; k++) args[k] = opt_region_argument(x->rw, region, types[k]);
      TRY(opt_rewriter_status(x->rw));
      TRY(tfl_take_leaves(x, &values[i], args, &used));
    }
    if (i >= x->n_in) x->b->resources.items[i - x->n_in]->value = values[i];
  }
  return 0;
}

/* Region 0. A condition may be a tensor of any type (tfl_truth). What it does to variables is undone: TensorFlow's
 * conditions do not write. */
static int control_loop_cond(tfl_op *x, control_loop *l) {
  tfl_value *values = BASE_ARRAY(x->arena, tfl_value, (size_t)l->n_values + 1), ret;
  if (!values) return x->status = base_oom(x->err, "lowering");
  ir_computation *region = opt_region(x->rw, l->op, 0);
  TRY(opt_rewriter_status(x->rw));
  TRY(control_loop_bind(x, l, region, values));
  tfl_cursor back = tfl_enter(x, region);
  int status = tfl_lower_body(x, &l->callees->list[0], x->n_in, values, 1, &ret);
  ir_value more = status ? (ir_value){NULL, 0} : tfl_truth(x, &ret);
  if (!status && !x->status) opt_set_results(x->rw, region, 1, &more);
  tfl_leave(x, back);
  tfl_restore_resources(x, l->before, l->n_values - x->n_in);
  return status ? status : x->status;
}

static int control_loop_results(tfl_op *x, control_loop *l, ir_computation *region, tfl_value *rets) {
  assert(l->n_leaves == 0 || l->op != NULL);
  ir_value *leaves = BASE_ARRAY(x->arena, ir_value, (size_t)l->n_leaves + 1);
  if (!leaves) return x->status = base_oom(x->err, "lowering");
  uint32_t n = 0;
  for (uint32_t i = 0; i < l->n_values; i++) {
    tfl_value *next = i < x->n_in ? &rets[i] : &x->b->resources.items[i - x->n_in]->value;
    if (!l->carried[i]) continue;
    if (!tfl_values_alike(&l->init[i], next)) return tfl_misfit(x, "the loop's value", i, &l->init[i], next);
    n += tfl_put_leaves(x, next, leaves + n);
  }
  opt_set_results(x->rw, region, n, leaves);
  return x->status;
}

/* Region 1. After it the variables are put back; control_loop_give sets what the loop leaves in them. */
static int control_loop_body(tfl_op *x, control_loop *l) {
  tfl_value *values = BASE_ARRAY(x->arena, tfl_value, (size_t)l->n_values + 1);
  tfl_value *rets = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_in + 1);
  if (!values || !rets) return x->status = base_oom(x->err, "lowering");
  ir_computation *region = opt_region(x->rw, l->op, 1);
  TRY(opt_rewriter_status(x->rw));
  TRY(control_loop_bind(x, l, region, values));
  tfl_cursor back = tfl_enter(x, region);
  int status = tfl_lower_body(x, &l->callees->list[1], x->n_in, values, x->n_in, rets);
  if (!status) status = control_loop_results(x, l, region, rets);
  tfl_leave(x, back);
  tfl_restore_resources(x, l->before, l->n_values - x->n_in);
  return status ? status : opt_rewriter_status(x->rw);
}

/* The op with its initial values, which are made before it, at the cursor outside. */
static int control_loop_op(tfl_op *x, control_loop *l) {
  const ir_type **types = BASE_ARRAY(x->arena, const ir_type *, (size_t)l->n_leaves + 1);
  ir_value *leaves = BASE_ARRAY(x->arena, ir_value, (size_t)l->n_leaves + 1);
  if (!types || !leaves) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0, n = 0; i < l->n_values; i++) {
    if (!l->carried[i]) continue;
    (void)tfl_leaf_types(&l->init[i], types + n);
    n += tfl_put_leaves(x, &l->init[i], leaves + n);
  }
  TRY(x->status);
  l->op = opt_make_n(x->rw, IR_OP_WHILE, l->n_leaves, types, l->n_leaves, leaves, 2);
  return opt_rewriter_status(x->rw);
}

/* Outputs: results for what is carried, the inputs themselves for the rest. */
static int control_loop_give(tfl_op *x, control_loop *l) {
  ir_value *results = BASE_ARRAY(x->arena, ir_value, (size_t)l->n_leaves + 1);
  if (!results) return x->status = base_oom(x->err, "lowering");
  for (uint32_t i = 0; i < l->n_leaves; i++) results[i] = opt_result(l->op, i);
  for (uint32_t i = 0, n = 0, used = 0; i < l->n_values; i++) {
    tfl_value value = l->init[i];
    if (l->carried[i]) {
      TRY(tfl_take_leaves(x, &value, results + n, &used));
      n += used;
    }
    if (i < x->n_in) {
      tfl_out_value(x, i, &value);
    } else if (l->carried[i]) {
      x->b->resources.items[i - x->n_in]->value = value;
      x->b->resources.items[i - x->n_in]->written = true;
    }
  }
  return 0;
}

int tfl_row_while(tfl_op *x) {
  assert(x->out != NULL);
  tf_callees callees;
  control_loop l = {.callees = &callees};
  TRY(tfl_callees(x, &callees, 2));
  if (x->n_out != x->n_in) return tfl_fail(x, "it has %u inputs and %u outputs", x->n_in, x->n_out);
  x->fixed = false;
  TRY(control_loop_state(x, &l));
  l.before = tfl_save_resources(x);
  if (!l.before) return x->status;
  TRY(control_loop_op(x, &l));
  TRY(control_loop_cond(x, &l));
  TRY(control_loop_body(x, &l));
  return control_loop_give(x, &l);
}

/* --- loops of rows --- */

static ir_computation *repeat_region(tfl_op *x, tfl_repeat *r, uint32_t which) {
  assert(which < 2);
  ir_computation *c = opt_region(x->rw, r->op, which);
  for (uint32_t i = 0; c && i < r->n; i++) r->state[i] = opt_region_argument(x->rw, c, r->op->types[i]);
  return c;
}

int tfl_repeat_begin(tfl_op *x, tfl_repeat *r, uint32_t n, const ir_value *inits) {
  const ir_type *types[TFL_MOST_STATE];
  assert(n > 0 && n <= TFL_MOST_STATE);
  *r = (tfl_repeat){.n = n};
  for (uint32_t i = 0; i < n; i++) {
    if (!inits[i].op) return x->status ? x->status : (x->status = base_oom(x->err, "lowering"));
    types[i] = opt_type(inits[i]);
  }
  r->op = opt_make_n(x->rw, IR_OP_WHILE, n, types, n, inits, 2);
  ir_computation *condition = r->op ? repeat_region(x, r, 0) : NULL;
  if (!condition) return x->status = base_oom(x->err, "lowering");
  opt_set_results(x->rw, condition, 1, &r->state[0]);
  r->body = repeat_region(x, r, 1);
  if (!r->body) return x->status = base_oom(x->err, "lowering");
  r->back = tfl_enter(x, r->body);
  return 0;
}

/* next[0] says whether to go on. */
void tfl_repeat_end(tfl_op *x, tfl_repeat *r, const ir_value *next, ir_value *results) {
  assert(r->body != NULL && r->n > 0);
  opt_set_results(x->rw, r->body, r->n, next);
  tfl_leave(x, r->back);
  for (uint32_t i = 0; i < r->n; i++) results[i] = opt_result(r->op, i);
}

ir_value tfl_any(tfl_op *x, ir_value v) {
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  uint32_t rank = opt_type(v)->rank;
  for (uint32_t d = 0; d < rank; d++) dims[d] = d;
  return tfl_reduce(x, IR_OP_OR, v, 0, rank, dims);
}
