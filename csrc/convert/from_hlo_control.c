/* While, conditional, barriers, calls, fusions. */
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

int from_hlo_while(from_hlo_op *x) {
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

/* Nothing that comes out of a barrier comes before what goes into it. */
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

int from_hlo_after_all(from_hlo_op *x) {
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, x->op->n_operands ? IR_OP_AFTER_ALL : IR_OP_CREATE_TOKEN, x->op->n_operands, operands, 0,
                    &made));
  return from_hlo_done(x, made);
}

/* Branches of StableHLO take no arguments: they use what is outside. */
int from_hlo_conditional(from_hlo_op *x) {
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

static int from_hlo_flat_operands(from_hlo_op *x, from_hlo_values *out) {
  for (uint32_t i = 0; i < x->op->n_operands; i++) TRY(from_hlo_flatten(x, x->operands[i], out));
  return 0;
}

/* An op that calls a function, named by the attribute. */
int from_hlo_call_op(from_hlo_op *x, ir_opcode opcode, const char *attr, ir_op **made) {
  from_hlo_values operands = {0};
  ir_computation *callee;
  TRY(from_hlo_function(x->t, x->op->called[0], &callee));
  int status = from_hlo_flat_operands(x, &operands);
  if (status == 0) status = from_hlo_make(x, opcode, operands.n, operands.items, 0, made);
  BASE_VEC_FREE(x->t->to->alloc, &operands);
  TRY(status);
  return from_hlo_put(x, *made, attr, ir_m_symbol(x->t->to, callee->name->s, callee->name->n));
}

static const base_istr *from_hlo_entry(const ir_dict *d, const char *key) {
  for (uint32_t i = 0; i < d->n; i++)
    if (strcmp(d->v[i].key->s, key) == 0) return d->v[i].value;
  return NULL;
}

/* HLO keeps what a composite is in frontend attributes. Those that are left stay. */
static int from_hlo_other_frontend(from_hlo_op *x, ir_op *made, const ir_dict *d) {
  ir_dict *rest = base_arena_zalloc(&x->t->to->arena, sizeof *rest + d->n * sizeof *rest->v);
  if (!rest) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < d->n; i++)
    if (strncmp(d->v[i].key->s, "composite.", 10) != 0) rest->v[rest->n++] = d->v[i];
  if (rest->n) return from_hlo_put(x, made, "mhlo.frontend_attributes", from_hlo_dict(x->t, rest));
  return ir_m_set(made, "mhlo.frontend_attributes", NULL) ? 0 : from_hlo_no_memory(x->t);
}

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
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "composite.attributes is no dictionary: %.200s",
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

/* A call that remembers what kind of fusion it was. */
int from_hlo_fusion(from_hlo_op *x) {
  const char *kind = ir_get_str(x->op, IR_ATTR_KIND);
  ir_op *made;
  TRY(from_hlo_call_op(x, IR_OP_CALL, "callee", &made));
  TRY(from_hlo_put(x, made, "mhlo.fusion_kind", ir_m_string(x->t->to, kind, strlen(kind))));
  return from_hlo_done(x, made);
}
