/* If and Case: branches are lowered into regions, which see the values around them. What differs between branches is a
 * result, what they do to variables, too. A condition that is known leaves one branch, in place. */
#include "../control.h"

static bool control_same_value(const tfl_value *a, const tfl_value *b) {
  return a->kind == b->kind && a->v.op == b->v.op && a->v.index == b->v.index && a->data == b->data &&
         a->parts == b->parts && a->number == b->number;
}

typedef struct control_branches {
  const tf_callees *callees;
  uint32_t n, n_values, n_resources; /* values: outputs, then all resources */
  ir_op *holder;                     /* of the regions, until the results are known */
  tfl_value **values;                /* by branch */
  tfl_resource *before;
  bool *differs; /* by value: needs to be a result */
} control_branches;

static int control_prepare(tfl_op *x, control_branches *c) {
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

static tfl_value *control_args(tfl_op *x, uint32_t from) {
  tfl_value *args = BASE_ARRAY(x->arena, tfl_value, (size_t)x->n_in + 1);
  if (!args) x->status = base_oom(x->err, "lowering");
  for (uint32_t i = from; args && i < x->n_in; i++) args[i - from] = *x->in[i];
  return args;
}

static int control_branch(tfl_op *x, control_branches *c, uint32_t i) {
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
