/* Back from what from_hlo_custom_call.c makes: ops that StableHLO lacks, in custom calls "mhlo.<op>" with their
 * attributes in mhlo.attributes; attributes that travel as HLO's own text; layouts.
 *
 *   stablehlo.custom_call @mhlo.stochastic_convert(%x, %bits) {mhlo.attributes = {}}
 *
 *   %r = f32[4] stochastic-convert(%x, %bits) */
#include <stdio.h>

#include "../text/text.h"
#include "to_hlo.h"

/* --- attributes as text --- */

/* Numbers and truths are written as HLO's text first, so that there is one way in: HLO's own reader, which refuses
 * what does not fit. */
static int to_hlo_from_text(to_hlo_op *x, ir_op *made, const char *key, const ir_mattr *a) {
  xlac_error inner = {0};
  char text[24];
  base_slice value = {text, 0};
  if (a->kind == IR_M_STRING)
    value = (base_slice){a->str->s, a->str->n};
  else if (a->kind == IR_M_BOOL)
    value.n = (size_t)snprintf(text, sizeof text, "%s", a->v.b ? "true" : "false");
  else if (a->kind == IR_M_INTEGER)
    value.n = (size_t)snprintf(text, sizeof text, "%lld", (long long)a->v.i);
  bool known = ir_opcode_takes(made->opcode, ir_attr_from_text(key, strlen(key)), NULL);
  if (!known || text_parse_attr(made, key, strlen(key), value.p, value.n, &inner) != 0)
    return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "can't be the attribute %s of %s: %.200s", key,
                       ir_opcode_text(made->opcode), known ? inner.message : "it has none of that name");
  return 0;
}

/* See attr_call_extras. */
int to_hlo_extras(to_hlo_op *x, ir_op *made) {
  for (const ir_attr_key *key = attr_call_extras; *key; key++) {
    char name[64];
    snprintf(name, sizeof name, "mhlo.%s", ir_attr_table[*key].text);
    const ir_mattr *a = ir_mattr_of(x->op, name);
    if (a) TRY(to_hlo_from_text(x, made, ir_attr_table[*key].text, a));
  }
  return 0;
}

/* --- ops --- */

/* The op that a custom call is a code for, or IR_OP_INVALID. Only ops of attr_encoded_ops: another tool's "mhlo."
 * target stays a custom call. */
static ir_opcode to_hlo_encoded_opcode(const ir_op *op) {
  const char *target = ir_m_get_str(op, "call_target_name");
  const ir_mattr *attrs = ir_mattr_of(op, "mhlo.attributes");
  char text[64];
  if (strcmp(target, "ragged_all_to_all") == 0) return IR_OP_RAGGED_ALL_TO_ALL;
  if (!attrs || attrs->kind != IR_M_DICT || strncmp(target, "mhlo.", 5) != 0 || strlen(target) >= sizeof text)
    return IR_OP_INVALID;
  snprintf(text, sizeof text, "%s", target + 5);
  for (char *p = text; *p; p++)
    if (*p == '_') *p = '-';
  ir_opcode opcode = ir_opcode_from_text(text, strlen(text));
  for (const ir_opcode *known = attr_encoded_ops; *known; known++)
    if (*known == opcode) return opcode;
  return IR_OP_INVALID;
}

bool to_hlo_is_encoded(const ir_op *op) {
  return to_hlo_encoded_opcode(op) != IR_OP_INVALID;
}

/* StableHLO's verifier could not know that the op needs them. */
static int to_hlo_check_attrs(to_hlo_op *x, const ir_op *made) {
  const ir_attr_spec *spec = ir_op_table[made->opcode].attrs;
  for (; spec && spec->key; spec++)
    if ((spec->flags & IR_REQUIRED) && !ir_attr_find(made, (ir_attr_key)spec->key))
      return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "is a %s without its attribute %s",
                         ir_opcode_text(made->opcode), ir_attr_table[spec->key].text);
  return 0;
}

/* The groups and the channel stand in a dictionary, as XLA has it. */
static int to_hlo_ragged_attrs(to_hlo_op *x, ir_op *made) {
  const ir_mattr *config = ir_mattr_of(x->op, "backend_config");
  const ir_mattr *groups = config && config->kind == IR_M_DICT ? ir_m_field(config, "replica_groups") : NULL;
  const ir_mattr *channel = groups ? ir_m_field(config, "channel_id") : NULL;
  if (!groups || groups->kind != IR_M_DENSE || groups->type->rank != 2)
    return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE, "needs a backend_config with replica_groups of rank 2");
  TRY(to_hlo_put_groups(x, made, groups));
  if (!channel || channel->kind != IR_M_INTEGER || channel->v.i <= 0) return 0;
  return ir_set_int(made, IR_ATTR_CHANNEL_ID, channel->v.i) ? 0 : to_hlo_no_memory(x->t);
}

int to_hlo_encoded(to_hlo_op *x) {
  const ir_verify_options compat = {.xla_compat = true};
  ir_opcode opcode = to_hlo_encoded_opcode(x->op);
  assert(opcode != IR_OP_INVALID);
  ir_op *made = to_hlo_emit(x, opcode, to_hlo_result_type(x), x->op->n_operands, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  int8_t arity = ir_op_table[opcode].arity;
  if (arity != IR_VARIADIC && made->n_operands != (uint32_t)arity)
    return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_OPERANDS, "is a %s with %u operands", ir_opcode_text(opcode),
                       made->n_operands);
  if (opcode == IR_OP_RAGGED_ALL_TO_ALL) {
    TRY(to_hlo_ragged_attrs(x, made));
  } else {
    const ir_mdict *attrs = ir_mattr_of(x->op, "mhlo.attributes")->v.dict;
    for (uint32_t i = 0; i < attrs->n; i++) TRY(to_hlo_from_text(x, made, attrs->v[i].key->s, attrs->v[i].value));
    TRY(to_hlo_check_attrs(x, made));
  }
  /* StableHLO's rules have not looked at this, and the interpreter counts on HLO's. */
  TRY(ir_verify_op(x->t->to, made, &compat, x->t->err));
  return to_hlo_results(x, made);
}

/* --- layouts of custom calls --- */

/* The type in the i-th layout of a list. A layout of another rank says nothing, and the type keeps its own. */
static int to_hlo_in_layout(to_hlo_op *x, const ir_type *type, const ir_mattr *layout, const ir_type **out) {
  const ir_layout *usual = ir_layout_default(x->t->to, 0);
  if (!usual) return to_hlo_no_memory(x->t);
  ir_layout l = *usual;
  l.minor_to_major = ir_m_ints(layout, &x->t->to->arena, &l.rank);
  *out = type;
  if (!ir_is_tensor(type) || l.rank != type->rank) return 0;
  const ir_layout *made = ir_layout_intern(x->t->to, &l);
  *out = made ? ir_type_with_layout(x->t->to, type, made) : NULL;
  return *out ? 0 : to_hlo_no_memory(x->t);
}

/* Of the one result, or of the tuple's elements. As many layouts as elements, or they say nothing. */
static int to_hlo_result_layouts(to_hlo_op *x, ir_op *made, const ir_mattrs *list) {
  const ir_type *type = made->type;
  if (!ir_is_tuple(type)) {
    if (list->n == 1) TRY(to_hlo_in_layout(x, type, list->v[0], &type));
  } else if (list->n == type->n_elements) {
    const ir_type **types = BASE_ARRAY(&x->t->to->arena, const ir_type *, list->n + 1u);
    if (!types) return to_hlo_no_memory(x->t);
    for (uint32_t i = 0; i < list->n; i++) TRY(to_hlo_in_layout(x, made->type->elements[i], list->v[i], &types[i]));
    if (!(type = ir_tuple(x->t->to, list->n, types))) return to_hlo_no_memory(x->t);
  }
  ir_set_type(made, type);
  return 0;
}

/* Operand layouts become operand_layout_constraints, and result layouts go into the op's own type. */
int to_hlo_layouts(to_hlo_op *x, ir_op *made) {
  const ir_mattr *operands = ir_mattr_of(x->op, "operand_layouts"), *results = ir_mattr_of(x->op, "result_layouts");
  if (!operands || !results || operands->v.list->n != made->n_operands) return 0;
  ir_types *types = base_arena_zalloc(&x->t->to->arena, sizeof *types + made->n_operands * sizeof *types->v);
  if (!types) return to_hlo_no_memory(x->t);
  types->n = made->n_operands;
  for (uint32_t i = 0; i < types->n; i++)
    TRY(to_hlo_in_layout(x, x->operands[i]->type, operands->v.list->v[i], &types->v[i]));
  ir_attr attr = ir_attr_make(IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  attr.v.types = types;
  if (!ir_attr_set(made, attr)) return to_hlo_no_memory(x->t);
  return to_hlo_result_layouts(x, made, results->v.list);
}
