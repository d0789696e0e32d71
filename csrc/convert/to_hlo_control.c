/* From MLIR form to HLO form: while, if and case, whose regions may use what is outside of them; and futures.
 *
 *   %r = stablehlo.while(%i = %zero) cond { compare %i, %n } do { add %i, %one }      uses %n and %one from outside
 *
 *   %t = (s32[], s32[], s32[]) tuple(%zero, %n, %one)
 *   %w = (s32[], s32[], s32[]) while(%t), condition=%region.1, body=%region.2     passes %n and %one on as they are
 *
 * What a region captures travels with the state, or as a branch's argument. */
#include "to_hlo.h"

/* Captured values, each once, in the order in which they are first used. */
BASE_VEC(to_hlo_captures, ir_value);

/* Regions are within the computation that their owner stands in. */
static bool defined_inside(const ir_op *op, const ir_computation *region) {
  for (const ir_computation *c = op->parent; c; c = c->owner ? c->owner->parent : NULL)
    if (c == region) return true;
  return false;
}

static int note_capture(to_hlo *t, to_hlo_captures *list, ir_value v, const ir_computation *region) {
  if (defined_inside(v.op, region)) return 0;
  for (uint32_t i = 0; i < list->n; i++)
    if (list->items[i].op == v.op && list->items[i].index == v.index) return 0;
  return BASE_VEC_PUSH(t->to->alloc, list, v) ? 0 : to_hlo_no_memory(t);
}

/* What `here`, which is `region` or lies in it, uses from outside of `region`. */
static int find_captures(to_hlo *t, const ir_computation *here, const ir_computation *region, to_hlo_captures *list) {
  IR_FOR_OPS(op, here) {
    for (uint32_t i = 0; i < op->n_operands; i++)
      TRY(note_capture(t, list, (ir_value){op->operands[i].op, op->operands[i].index}, region));
    for (uint32_t i = 0; i < op->n_called; i++) TRY(find_captures(t, op->called[i], region, list));
  }
  for (uint32_t i = 0; i < here->n_results; i++) TRY(note_capture(t, list, here->results[i], region));
  return 0;
}

/* Binds a captured value to `made`, remembering what it stood for. */
static int rebind(to_hlo *t, ir_value v, ir_op *made, ir_op **old) {
  assert(v.index < v.op->n_results);
  ir_op **results = base_map_ptr(&t->values, v.op);
  assert(results);
  (void)t;
  *old = results[v.index];
  results[v.index] = made;
  return 0;
}

/* Of the state, in a region's computation or after the loop. */
static ir_op *take_element(to_hlo_op *x, ir_op *tuple, uint32_t i) {
  assert(ir_is_tuple(tuple->type) && i < tuple->type->n_elements);
  ir_op *e = to_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, tuple->type->elements[i], 1, &tuple, 0);
  return e && ir_set_int(e, IR_ATTR_INDEX, i) ? e : NULL;
}

/* A computation of one parameter of type `state`, whose first elements are the region's arguments and whose rest are
 * the captured values; `carry` passes the captures on in the result. A state that is not a tuple is the one value
 * itself.
 *
 * The captured values are bound to the parts of the parameter while the body is translated, and to what they stood
 * for when it is done. */
static int control_computation(to_hlo_op *x, const ir_computation *region, const ir_type *state, bool bare,
                               const to_hlo_captures *captures, bool carry, bool tuple, ir_computation **out) {
  assert(!bare || region->n_params + captures->n == 1);
  to_hlo *t = x->t;
  const base_istr *name = ir_fresh_name(t->to, "region");
  ir_computation *c = name ? ir_computation_new(t->to, name->s, name->n) : NULL;
  if (!c) return to_hlo_no_memory(t);
  to_hlo_op inner = {.t = t, .op = NULL, .into = c};
  ir_op *p = to_hlo_emit(&inner, IR_OP_PARAMETER, state, 0, NULL, 0);
  if (!p || !ir_set_parameter(p, 0)) return to_hlo_no_memory(t);
  uint32_t n = region->n_params, total = n + captures->n;
  ir_op **parts = BASE_ARRAY(&t->to->arena, ir_op *, total + 1u),
        **old = BASE_ARRAY(&t->to->arena, ir_op *, captures->n + 1u);
  if (!parts || !old) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < total; i++)
    if (!(parts[i] = bare ? p : take_element(&inner, p, i))) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < n; i++) TRY(to_hlo_bind(t, region->params[i], &parts[i]));
  for (uint32_t i = 0; i < captures->n; i++) TRY(rebind(t, captures->items[i], parts[n + i], &old[i]));
  TRY(to_hlo_body(t, region, c));
  uint32_t n_results = region->n_results + (carry ? captures->n : 0);
  ir_op **results = BASE_ARRAY(&t->to->arena, ir_op *, n_results + 1u);
  if (!results) return to_hlo_no_memory(t);
  for (uint32_t i = 0; i < region->n_results; i++) results[i] = to_hlo_value(t, region->results[i]);
  for (uint32_t i = region->n_results; i < n_results; i++) results[i] = parts[n + i - region->n_results];
  TRY(to_hlo_finish(t, c, n_results, results, tuple));
  for (uint32_t i = 0; i < captures->n; i++) TRY(rebind(t, captures->items[i], old[i], &parts[0]));
  *out = c;
  return 0;
}

/* The values as one op: the only one itself if `bare`, else a tuple. */
static ir_op *pack(to_hlo_op *x, uint32_t n, ir_op *const *values, bool bare) {
  assert(!bare || n == 1);
  if (bare) return values[0];
  const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, n + 1u);
  for (uint32_t i = 0; types && i < n; i++) types[i] = values[i]->type;
  return types ? to_hlo_emit(x, IR_OP_TUPLE, ir_tuple(x->t->to, n, types), n, values, 0) : NULL;
}

/* `first` (the loop's initial values) and then the captures, as one op. A capture must have been translated by now,
 * else the region uses what comes later. */
static int pack_captures(to_hlo_op *x, uint32_t n, ir_op *const *first, const to_hlo_captures *captures, bool bare,
                         ir_op **out) {
  uint32_t total = n + captures->n;
  ir_op **values = BASE_ARRAY(&x->t->to->arena, ir_op *, total + 1u);
  if (!values) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) values[i] = first[i];
  for (uint32_t i = 0; i < captures->n; i++)
    if (!(values[n + i] = to_hlo_value(x->t, captures->items[i])))
      return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_STRUCTURE, "a region uses a value that is not defined before");
  *out = pack(x, total, values, bare);
  return *out ? 0 : to_hlo_no_memory(x->t);
}

/* Condition and body get the same state, so captures of either are in it. The results are the first n elements. */
static int while_with(to_hlo_op *x, const to_hlo_captures *captures) {
  assert(x->op->n_called == 2);
  uint32_t n = x->op->n_operands;
  bool bare = n == 1 && captures->n == 0;
  ir_op *init;
  ir_computation *condition, *body;
  TRY(pack_captures(x, n, x->operands, captures, bare, &init));
  TRY(control_computation(x, x->op->called[0], init->type, bare, captures, false, false, &condition));
  TRY(control_computation(x, x->op->called[1], init->type, bare, captures, true, !bare, &body));
  ir_op *made = to_hlo_emit(x, IR_OP_WHILE, init->type, 1, &init, 2);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = condition;
  made->called[1] = body;
  if (bare) {
    x->results[0] = made;
    return 0;
  }
  for (uint32_t i = 0; i < n; i++)
    if (!(x->results[i] = take_element(x, made, i))) return to_hlo_no_memory(x->t);
  return 0;
}

/* Captures of the body that the condition has too are there once. */
int to_hlo_while(to_hlo_op *x) {
  to_hlo_captures captures = {0};
  int status = find_captures(x->t, x->op->called[0], x->op->called[0], &captures);
  if (status == 0) status = find_captures(x->t, x->op->called[1], x->op->called[1], &captures);
  if (status == 0) status = while_with(x, &captures);
  BASE_VEC_FREE(x->t->to->alloc, &captures);
  return status;
}

/* Each branch has captures of its own. A branch without any gets an empty tuple. */
static int one_branch(to_hlo_op *x, uint32_t i, ir_op **argument, ir_computation **branch) {
  to_hlo_captures captures = {0};
  const ir_computation *region = x->op->called[i];
  int status = find_captures(x->t, region, region, &captures);
  bool bare = captures.n == 1;
  if (status == 0) status = pack_captures(x, 0, NULL, &captures, bare, argument);
  if (status == 0) status = control_computation(x, region, (*argument)->type, bare, &captures, false, false, branch);
  BASE_VEC_FREE(x->t->to->alloc, &captures);
  return status;
}

/*   "stablehlo.if"(%p) ({ ... }, { ... })    conditional(%p, %a, %b), true_computation=..., false_computation=... */
int to_hlo_branches(to_hlo_op *x) {
  uint32_t n = x->op->n_called;
  ir_op **operands = BASE_ARRAY(&x->t->to->arena, ir_op *, n + 1u);
  ir_computation **branches = BASE_ARRAY(&x->t->to->arena, ir_computation *, n + 1u);
  if (!operands || !branches) return to_hlo_no_memory(x->t);
  operands[0] = x->operands[0];
  for (uint32_t i = 0; i < n; i++) TRY(one_branch(x, i, &operands[i + 1], &branches[i]));
  ir_op *made = to_hlo_emit(x, IR_OP_CONDITIONAL, to_hlo_result_type(x), n + 1, operands, n);
  if (!made) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) made->called[i] = branches[i];
  return to_hlo_results(x, made);
}

/* ---- From MLIR form to HLO form: futures. A future that one async_done of the same block waits for becomes a chain;
 * any other, which HLO can't carry about, is the op itself where it starts. */

/* A chain in HLO is a line within one computation. What is given besides is no use, but needs the value. */
static bool future_waited_for_once(const ir_op *start) {
  const ir_use *use = start->uses;
  return !ir_is_result(start) && use && !use->next && use->user->opcode == IR_OP_ASYNC_DONE &&
         use->user->parent == start->parent;
}

/* Nothing but one op on the parameters in order. */
static bool future_is_one_op(const ir_computation *c) {
  const ir_op *root = ir_root(c);
  if (c->n_ops != c->n_params + 1 || root->n_operands != c->n_params) return false;
  for (uint32_t i = 0; i < c->n_params; i++)
    if (ir_operand(root, i) != c->params[i]) return false;
  return true;
}

/* A copy that changes more than where its operand lies is not a copy-start.
 *   all_gather    all-gather-start ... all-gather-done
 *   slice         async-start, calls={slice} ... async-done */
static ir_opcode future_own_start(const ir_op *root) {
  ir_opcode own = ir_opcode_pair_start(root->opcode);
  if (own == IR_OP_COPY_START && root->type != ir_operand_type(root, 0)) own = IR_OP_INVALID;
  return own == IR_OP_INVALID ? IR_OP_ASYNC_START : own;
}

/* (operands, outcome, contexts): a bundle of one operand holds it bare, but for async-start, whose first part is
 * always a tuple. */
static const ir_type *future_start_type(to_hlo_op *x, ir_opcode start, const ir_op *root) {
  ir_module *m = x->t->to;
  if (start == IR_OP_ALL_REDUCE_START) return root->type;
  const ir_type **types = BASE_ARRAY(&m->arena, const ir_type *, root->n_operands + 1u);
  for (uint32_t i = 0; types && i < root->n_operands; i++) types[i] = ir_operand_type(root, i);
  const ir_type *operands = types ? ir_tuple(m, root->n_operands, types) : NULL, *word = ir_scalar(m, XLAC_U32);
  if (!operands || !word) return NULL;
  const ir_type *parts[4] = {operands, root->type, word, word};
  if (start != IR_OP_ASYNC_START && root->n_operands == 1) parts[0] = types[0];
  bool word_too = start == IR_OP_ASYNC_START || start == IR_OP_COPY_START;
  uint32_t n = word_too ? 3 : start == IR_OP_COLLECTIVE_PERMUTE_START ? 4 : 2;
  return ir_tuple(m, n, parts);
}

/* A pair of the op's own needs no computation. Its attributes and what it calls go to the start; its computation is
 * not needed. */
static int future_take_root(to_hlo_op *x, ir_op *start, ir_computation *c) {
  assert(start->n_called == ir_root(c)->n_called);
  const ir_op *root = ir_root(c);
  for (uint32_t i = 0; i < root->n_attrs; i++)
    if (!ir_attr_set(start, root->attrs[i])) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < root->n_called; i++) start->called[i] = root->called[i];
  ir_computation_remove(c);
  return 0;
}

/* c holds the region's one op. It is hidden where async-start keeps it: HLO prints the op in the start's place. */
static int future_start_chain(to_hlo_op *x, ir_computation *c) {
  const ir_op *root = ir_root(c);
  ir_opcode opcode = future_own_start(root);
  const ir_type *t = future_start_type(x, opcode, root);
  uint32_t n_called = opcode == IR_OP_ASYNC_START ? 1 : root->n_called;
  ir_op *start = t ? to_hlo_emit(x, opcode, t, x->op->n_operands, x->operands, n_called) : NULL;
  if (!start) return to_hlo_no_memory(x->t);
  ir_attr_remove(start, IR_ATTR_SHARDING); /* the outcome's, which the done has */
  x->results[0] = start;
  if (opcode != IR_OP_ASYNC_START) return future_take_root(x, start, c);
  start->called[0] = c;
  c->hidden = true;
  return 0;
}

/* What is not a chain is a call at the place of the start. */
int to_hlo_async_start(to_hlo_op *x) {
  assert(x->op->n_called == 1);
  ir_computation *c;
  TRY(to_hlo_scalar_region(x, x->op->called[0], &c));
  if (future_waited_for_once(x->op) && future_is_one_op(c)) return future_start_chain(x, c);
  ir_op *made = to_hlo_emit(x, IR_OP_CALL, to_hlo_result_type(x), x->op->n_operands, x->operands, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = c;
  x->results[0] = made;
  return 0;
}

/* The start's sharding where the done has none. Shardings of the outcome stand on the done in HLO, on either op in
 * StableHLO. */
static int future_put_sharding(to_hlo_op *x, ir_op *made) {
  to_hlo_op start = *x;
  start.op = x->op->operands[0].op;
  if (ir_attr_find(made, IR_ATTR_SHARDING) || !ir_mattr_of(start.op, "mhlo.sharding")) return 0;
  return to_hlo_common(x->t, start.op, made);
}

/* Of a start that was but a call the outcome is the call's. */
int to_hlo_async_done(to_hlo_op *x) {
  ir_op *start = x->operands[0];
  if (x->op->n_results == 1 && ir_opcode_has(start->opcode, IR_ASYNC_START)) {
    ir_opcode opcode = (ir_opcode)ir_opcode_info(start->opcode)->done;
    x->results[0] = to_hlo_emit(x, opcode, to_hlo_result_type(x), 1, &start, 0);
    return x->results[0] ? future_put_sharding(x, x->results[0]) : to_hlo_no_memory(x->t);
  }
  if (x->op->n_results == 1) {
    x->results[0] = start;
    return 0;
  }
  return to_hlo_results(x, start);
}
