/* While: a loop carries the variables that its body may write, and no value that its body passes on as it is, so that
 * constants stay constants inside. */
#include "../control.h"

enum { CONTROL_MOST_SCANNED = 1 << 20 }; /* nodes; beyond that a body may write */

static bool control_graph_writes(tfl_op *x, const tf_callee *callee, uint32_t depth, uint32_t *scanned);

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

/* Marks the results that are the argument of the same number, as it is. */
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

typedef struct control_loop {
  const tf_callees *callees;
  uint32_t n_values, n_leaves; /* values: inputs, then all resources */
  tfl_value *init;
  bool *carried;
  ir_op *op;
  tfl_resource *before;
} control_loop;

static bool control_has_handle(const tfl_op *x, uint32_t resource) {
  for (uint32_t i = 0; i < x->n_in; i++)
    if (x->in[i]->kind == TFL_HANDLE && x->in[i]->number == resource) return true;
  return false;
}

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
