/* From HLO form to MLIR form: while, conditional, barriers, calls, fusions, async ops.
 *
 *   %w = (s32[], f32[4]) while(%init), condition=%c, body=%b
 *
 *   %w:2 = stablehlo.while(%i = %0, %x = %1) : tensor<i32>, tensor<4xf32> cond {...} do {...}
 *
 * A while's state is HLO's one tuple and StableHLO's list of values. Branches of StableHLO take no arguments: what
 * HLO passes them is bound to the branch's parameter instead (from_hlo_closure). */
#include "../text/mlir/mlir.h"
#include "from_hlo.h"

#include <stdlib.h>

/* --- states that are tuples --- */

/* The op with the leaves of its one operand, and a region for each computation. */
static int from_hlo_state_op(from_hlo_op *x, ir_opcode opcode, ir_op **made) {
  from_hlo_values leaves = {0};
  int status = from_hlo_flatten(x, x->operands[0], &leaves);
  if (status == 0) status = from_hlo_make(x, opcode, leaves.n, leaves.items, x->op->n_called, made);
  BASE_VEC_FREE(x->t->to->alloc, &leaves);
  return status;
}

/* Called computations are the condition, then the body, in both forms. */
int from_hlo_while(from_hlo_op *x) {
  assert(x->op->n_called == 2 && x->op->n_operands == 1);
  ir_op *made;
  TRY(from_hlo_state_op(x, IR_OP_WHILE, &made));
  for (uint32_t i = 0; i < 2; i++) TRY(from_hlo_region(x->t, x->op->called[i], made, i));
  return from_hlo_done(x, made);
}

int from_hlo_barrier(from_hlo_op *x) {
  ir_op *made;
  TRY(from_hlo_state_op(x, IR_OP_OPT_BARRIER, &made));
  return from_hlo_done(x, made);
}

/* Nothing that comes out of a barrier comes before what goes into it. optimization_barrier on the leaves of both
 * operands; x->type is the first operand's, so its leaves are what is read of the results, and the token's place at
 * the end is passed by. */
int from_hlo_add_dependency(from_hlo_op *x) {
  from_hlo_values leaves = {0};
  const ir_type **types;
  uint32_t n;
  TRY(from_hlo_leaf_types(x->t, x->op, x->op->type, &n, &types));
  int status = from_hlo_flatten(x, x->operands[0], &leaves);
  if (status == 0) status = from_hlo_flatten(x, x->operands[1], &leaves);
  ir_op *made = NULL;
  if (status == 0 && leaves.n) {
    const ir_type **all = BASE_ARRAY(&x->t->to->arena, const ir_type *, leaves.n);
    for (uint32_t i = 0; all && i < leaves.n; i++) all[i] = leaves.items[i].op->types[leaves.items[i].index];
    made = all ? from_hlo_emit_n(x, IR_OP_OPT_BARRIER, leaves.n, all, leaves.n, leaves.items, 0) : NULL;
  }
  BASE_VEC_FREE(x->t->to->alloc, &leaves);
  TRY(status);
  return made ? from_hlo_done(x, made) : from_hlo_no_memory(x->t);
}

/* Of nothing: create_token. */
int from_hlo_after_all(from_hlo_op *x) {
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, x->op->n_operands ? IR_OP_AFTER_ALL : IR_OP_CREATE_TOKEN, x->op->n_operands, operands, 0,
                    &made));
  return from_hlo_done(x, made);
}

/* Branches of StableHLO take no arguments: they use what is outside.
 *   conditional(%p, %a, %b), true_computation=%t, false_computation=%f    "stablehlo.if"(%p)
 *   conditional(%i, %a, %b, %c), branch_computations={...}                "stablehlo.case"(%i) */
int from_hlo_conditional(from_hlo_op *x) {
  assert(x->op->n_operands == x->op->n_called + 1u);
  bool two = ir_operand(x->op, 0)->type->dtype == XLAC_PRED;
  ir_value selector;
  ir_op *made;
  TRY(from_hlo_whole(x, x->operands[0], &selector));
  TRY(from_hlo_make(x, two ? IR_OP_IF : IR_OP_CONDITIONAL, 1, &selector, x->op->n_called, &made));
  for (uint32_t i = 0; i < x->op->n_called; i++)
    TRY(from_hlo_closure(x->t, x->op->called[i], x->operands[i + 1], made, i));
  return from_hlo_done(x, made);
}

/* --- calls --- */

/* Functions take leaves: a tuple is passed as its parts. */
static int from_hlo_flat_operands(from_hlo_op *x, from_hlo_values *out) {
  for (uint32_t i = 0; i < x->op->n_operands; i++) TRY(from_hlo_flatten(x, x->operands[i], out));
  return 0;
}

/* An op that calls a function, named by the attribute. */
int from_hlo_call_op(from_hlo_op *x, ir_opcode opcode, const char *attr, ir_op **made) {
  assert(x->op->n_called == 1);
  from_hlo_values operands = {0};
  ir_computation *callee;
  TRY(from_hlo_function(x->t, x->op->called[0], &callee));
  int status = from_hlo_flat_operands(x, &operands);
  if (status == 0) status = from_hlo_make(x, opcode, operands.n, operands.items, 0, made);
  BASE_VEC_FREE(x->t->to->alloc, &operands);
  TRY(status);
  return from_hlo_put(x, *made, attr, ir_m_symbol(x->t->to, callee->name->s, callee->name->n));
}

/* NULL where the dictionary has no such key. */
static const base_istr *from_hlo_entry(const ir_dict *d, const char *key) {
  for (uint32_t i = 0; i < d->n; i++)
    if (strcmp(d->v[i].key->s, key) == 0) return d->v[i].value;
  return NULL;
}

/* HLO keeps what a composite is in frontend attributes. Those that are left stay. Keys "composite.*" are what
 * from_hlo_composite has read; without others the attribute goes altogether. */
static int from_hlo_other_frontend(from_hlo_op *x, ir_op *made, const ir_dict *d) {
  ir_dict *rest = base_arena_zalloc(&x->t->to->arena, sizeof *rest + d->n * sizeof *rest->v);
  if (!rest) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < d->n; i++)
    if (strncmp(d->v[i].key->s, "composite.", 10) != 0) rest->v[rest->n++] = d->v[i];
  if (rest->n) return from_hlo_put(x, made, "mhlo.frontend_attributes", from_hlo_dict(x->t, rest));
  return ir_m_set(made, "mhlo.frontend_attributes", NULL) ? 0 : from_hlo_no_memory(x->t);
}

/*   call(%x), to_apply=%f, is_composite=true, frontend_attributes={composite.name="my.op",
 *        composite.attributes={a = 1 : i32}, composite.version="1"}
 *
 *   stablehlo.composite "my.op" %x {composite_attributes = {a = 1 : i32}, decomposition = @f, version = 1 : i32} */
static int from_hlo_composite(from_hlo_op *x) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_FRONTEND_ATTRIBUTES);
  const base_istr *name = a ? from_hlo_entry(a->v.dict, "composite.name") : NULL;
  const base_istr *text = a ? from_hlo_entry(a->v.dict, "composite.attributes") : NULL;
  const base_istr *version = a ? from_hlo_entry(a->v.dict, "composite.version") : NULL;
  const ir_mattr *attrs;
  ir_op *made;
  if (!name || !text || !version)
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE,
                         "a composite needs frontend attributes composite.name, composite.attributes and "
                         "composite.version");
  xlac_error inner = {0};
  if (text_parse_mlir_attr(x->t->to, text->s, text->n, &attrs, &inner) != 0 || attrs->kind != IR_M_DICT)
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "composite.attributes is not a dictionary: %.200s",
                         inner.message);
  TRY(from_hlo_call_op(x, IR_OP_COMPOSITE, "decomposition", &made));
  TRY(from_hlo_other_frontend(x, made, a->v.dict));
  TRY(from_hlo_put(x, made, "name", ir_m_string(x->t->to, name->s, name->n)));
  if (attrs->v.dict->n) TRY(from_hlo_put(x, made, "composite_attributes", attrs));
  int32_t number = (int32_t)strtol(version->s, NULL, 10);
  if (number) TRY(from_hlo_put(x, made, "version", ir_m_i32(x->t->to, number)));
  return from_hlo_done(x, made);
}

int from_hlo_call(from_hlo_op *x) {
  ir_op *made;
  if (ir_get_bool(x->op, IR_ATTR_IS_COMPOSITE, false)) return from_hlo_composite(x);
  TRY(from_hlo_call_op(x, IR_OP_CALL, "callee", &made));
  return from_hlo_done(x, made);
}

/* A call that remembers what kind of fusion it was. To_hlo_ops.c's is_fusion makes it a fusion again. */
int from_hlo_fusion(from_hlo_op *x) {
  const char *kind = ir_attr_word(IR_OP_FUSION, IR_ATTR_KIND, ir_get_word(x->op, IR_ATTR_KIND));
  ir_op *made;
  TRY(from_hlo_call_op(x, IR_OP_CALL, "callee", &made));
  TRY(from_hlo_put(x, made, "mhlo.fusion_kind", ir_m_string(x->t->to, kind, strlen(kind))));
  return from_hlo_done(x, made);
}

/* ---- From HLO form to MLIR form: async ops. StableHLO has futures of collectives and slices, in regions of one op;
 * anything else runs where it starts. */

/* (operands, outcome, contexts...) of an async start whose outcome is x->result. The tree has as many parts as the
 * start's type has elements, so that whoever takes an element of it finds one. */
static int from_hlo_bundle(from_hlo_op *x, const from_hlo_tree *operands) {
  assert(ir_is_tuple(x->op->type) && x->op->type->n_elements >= 2);
  const ir_type *type = x->op->type;
  const from_hlo_tree **parts = BASE_ARRAY(&x->t->to->arena, const from_hlo_tree *, type->n_elements + 1u);
  if (!parts) return from_hlo_no_memory(x->t);
  parts[0] = operands;
  parts[1] = x->result;
  for (uint32_t i = 2; i < type->n_elements; i++)
    if (!(parts[i] = from_hlo_of_context(x->t, type->elements[i]))) return from_hlo_no_memory(x->t);
  x->result = from_hlo_of_parts(x->t, type->n_elements, parts);
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* Ops that StableHLO takes into a future and that are one op there too. A permute of slices is none: StableHLO has
 * no op for it. See from_hlo_each. */
static bool from_hlo_has_future(const ir_op *op) {
  assert(op->opcode < IR_OP_COUNT);
  switch (op->opcode) {
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_GATHER_START:
    case IR_OP_ALL_REDUCE_START:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
    case IR_OP_REDUCE_SCATTER:
      return op->n_operands == 1 && !ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
    case IR_OP_SLICE:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return true;
    default:
      return false;
  }
}

/* Whether the start is waited for by a done, and the chain holds one op that a future may. async-update ops between
 * start and done are passed by. The computation may hold parameters and a root, no more. */
static bool from_hlo_is_future(const ir_op *start) {
  const ir_op *user = start->uses ? start->uses->user : NULL;
  while (user && user->opcode == IR_OP_ASYNC_UPDATE) user = user->uses ? user->uses->user : NULL;
  if (!user || user->opcode != ir_opcode_info(start->opcode)->done) return false;
  if (start->opcode != IR_OP_ASYNC_START) return ir_is_tensor(user->type) && from_hlo_has_future(start);
  const ir_computation *c = start->called[0];
  const ir_op *root = ir_root(c);
  if (c->n_ops != c->n_params + 1 || !ir_is_tensor(root->type) || !from_hlo_has_future(root)) return false;
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!ir_is_tensor(c->params[i]->type)) return false;
  return true;
}

/* An async_start whose region is still empty; x->result is its future.
 *   %f = "stablehlo.async_start"(%x) ({ ... }) : (tensor<4xf32>) -> !stablehlo.future<tensor<4xf32>> */
static int from_hlo_start(from_hlo_op *x, const ir_type *outcome, ir_op **made) {
  const ir_type *type, *future;
  ir_value *operands;
  TRY(from_hlo_type(x->t, x->op, outcome, &type));
  TRY(from_hlo_operands(x, &operands));
  if (!(future = ir_future(x->t->to, 1, &type))) return from_hlo_no_memory(x->t);
  *made = from_hlo_emit_n(x, IR_OP_ASYNC_START, 1, &future, x->op->n_operands, operands, 1);
  if (!*made) return from_hlo_no_memory(x->t);
  TRY(from_hlo_common(x, *made));
  x->result = from_hlo_of_value(x->t, (ir_value){*made, 0});
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* Where it cannot be a future, the computation is called at the start: HLO's order allows that, as the done comes
 * later. */
int from_hlo_async_start(from_hlo_op *x) {
  ir_op *made;
  const from_hlo_tree *operands = from_hlo_of_parts(x->t, x->op->n_operands, x->operands);
  if (!operands) return from_hlo_no_memory(x->t);
  if (from_hlo_is_future(x->op)) {
    TRY(from_hlo_start(x, x->op->type->elements[1], &made));
    TRY(from_hlo_region(x->t, x->op->called[0], made, 0));
    return from_hlo_bundle(x, operands);
  }
  x->type = x->op->type->elements[1];
  TRY(from_hlo_call_op(x, IR_OP_CALL, "callee", &made));
  TRY(from_hlo_done(x, made));
  return from_hlo_bundle(x, operands);
}

/* Waits for what is a future, and is the value that is there otherwise. */
static int from_hlo_await(from_hlo_op *x, const from_hlo_tree *tree) {
  assert(tree);
  x->result = tree;
  if (tree->kind != FROM_HLO_VALUE || tree->type->kind != IR_TYPE_FUTURE) return 0;
  ir_op *made = from_hlo_emit(x, IR_OP_ASYNC_DONE, tree->type->elements[0], 1, &tree->value);
  x->result = made ? from_hlo_of_value(x->t, (ir_value){made, 0}) : NULL;
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* The outcome is part 1 of the bundle. */
int from_hlo_async_done(from_hlo_op *x) {
  const from_hlo_tree *outcome;
  TRY(from_hlo_part(x, x->operands[0], 1, &outcome));
  return from_hlo_await(x, outcome);
}

/* The bundle is (destination, source, context). StableHLO has no copies: the value is there at once, and is both. */
int from_hlo_copy_start(from_hlo_op *x) {
  x->result = x->operands[0];
  return from_hlo_bundle(x, x->operands[0]);
}

int from_hlo_copy_done(from_hlo_op *x) {
  return from_hlo_part(x, x->operands[0], 0, &x->result);
}

/* The collective itself, as x->result. `bundled`: the start's type is (operand, outcome), so the outcome's type is
 * element 1. */
static int from_hlo_collective_now(from_hlo_op *x, bool bundled) {
  ir_value *operands;
  ir_op *made;
  bool reduce = x->op->opcode == IR_OP_ALL_REDUCE_START;
  ir_opcode opcode = reduce                                    ? IR_OP_ALL_REDUCE
                     : x->op->opcode == IR_OP_ALL_GATHER_START ? IR_OP_ALL_GATHER
                                                               : IR_OP_COLLECTIVE_PERMUTE;
  if (bundled) x->type = x->op->type->elements[1];
  if (opcode == IR_OP_COLLECTIVE_PERMUTE) return from_hlo_each(x);
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, opcode, x->op->n_operands, operands, x->op->n_called, &made));
  TRY(from_hlo_attrs(x, made));
  for (uint32_t i = 0; i < x->op->n_called; i++) TRY(from_hlo_region(x->t, x->op->called[i], made, i));
  return from_hlo_done(x, made);
}

/* The same in the region of an async_start. `inside` is the same op, but with the region to put ops into and the
 * region's argument for an operand. */
static int from_hlo_collective_later(from_hlo_op *x, const ir_type *outcome) {
  ir_op *made, *argument;
  ir_value value;
  from_hlo_op inside = *x;
  TRY(from_hlo_start(x, outcome, &made));
  TRY(from_hlo_new_region(x->t, made, 0, &inside.into));
  argument = from_hlo_argument(x->t, inside.into, made->operands[0].op->types[made->operands[0].index]);
  const from_hlo_tree *operand = argument ? from_hlo_of_value(x->t, (ir_value){argument, 0}) : NULL;
  if (!operand) return from_hlo_no_memory(x->t);
  inside.operands = &operand;
  TRY(from_hlo_collective_now(&inside, ir_is_tuple(x->op->type)));
  TRY(from_hlo_whole(&inside, inside.result, &value));
  return from_hlo_returns(x->t, inside.into, 1, &value);
}

/* all-reduce-start gives its outcome alone; all-gather-start and collective-permute-start bundle it with the
 * operand. */
int from_hlo_collective_start(from_hlo_op *x) {
  bool bundled = x->op->opcode != IR_OP_ALL_REDUCE_START && ir_is_tuple(x->op->type);
  const from_hlo_tree *first =
      x->op->n_operands == 1 ? x->operands[0] : from_hlo_of_parts(x->t, x->op->n_operands, x->operands);
  if (!first) return from_hlo_no_memory(x->t);
  if (from_hlo_is_future(x->op)) {
    TRY(from_hlo_collective_later(x, bundled ? x->op->type->elements[1] : x->op->type));
  } else {
    TRY(from_hlo_collective_now(x, bundled));
  }
  return bundled ? from_hlo_bundle(x, first) : 0;
}

/* Where the start gives its outcome alone, so does the end. */
int from_hlo_collective_done(from_hlo_op *x) {
  const ir_type *start = ir_operand(x->op, 0)->type;
  const from_hlo_tree *outcome = x->operands[0];
  if (ir_is_tuple(start) && start->bare != x->op->type->bare) TRY(from_hlo_part(x, outcome, 1, &outcome));
  return from_hlo_await(x, outcome);
}
