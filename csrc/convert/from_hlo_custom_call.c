/* Custom calls; and ops that StableHLO lacks as custom calls of the kind that XLA encodes such ops in: target
 * "mhlo.<op>", attributes in mhlo.attributes.
 *
 *   %r = f32[4] stochastic-convert(%x, %bits)
 *
 *   stablehlo.custom_call @mhlo.stochastic_convert(%x, %bits) {mhlo.attributes = {}, mhlo.version = 1 : i64}
 *
 * to_hlo_encoded.c is the way back. */
#include "../text/mlir/mlir.h"
#include "../text/text.h"
#include "from_hlo.h"

#include <stdio.h>

/* --- attributes that travel as HLO's own text --- */

/* Numbers and truths as such; anything else as HLO prints it, in a string. */
static const ir_mattr *from_hlo_attr_text(from_hlo_op *x, const ir_attr *a) {
  assert(a);
  ir_module *m = x->t->to;
  if (a->kind == IR_KIND_INT) return ir_m_i64(m, a->v.i);
  if (a->kind == IR_KIND_BOOL) return ir_m_bool(m, a->v.b);
  base_text text;
  base_text_init(&text, m->alloc);
  text_put_attr_value(&text, x->op, a);
  const ir_mattr *made = text.failed ? NULL : ir_m_string(m, text.s, text.n);
  base_text_free(&text);
  return made;
}

/* HLO's dashes are underscores in targets. Attributes that every op may have (metadata, sharding) go their usual
 * way. */
int from_hlo_encoded(from_hlo_op *x) {
  char target[64];
  int n = snprintf(target, sizeof target, "mhlo.%s", ir_opcode_text(x->op->opcode));
  ir_module *m = x->t->to;
  const ir_mdict *attrs = ir_mdict_make(m, 0, NULL);
  ir_value *operands;
  ir_op *made;
  assert(n > 0 && (size_t)n < sizeof target);
  for (char *p = target; *p; p++)
    if (*p == '-') *p = '_';
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, IR_OP_CUSTOM_CALL, x->op->n_operands, operands, 0, &made));
  for (uint32_t i = 0; attrs && i < x->op->n_attrs; i++) {
    const ir_attr *a = &x->op->attrs[i];
    if (!ir_opcode_takes(x->op->opcode, (ir_attr_key)a->key, NULL)) continue;
    const ir_mattr *value = from_hlo_attr_text(x, a);
    attrs = value ? ir_mdict_with(m, attrs, ir_attr_table[a->key].text, value) : NULL;
  }
  TRY(from_hlo_put(x, made, "call_target_name", ir_m_string(m, target, (size_t)n)));
  if (ir_opcode_has(x->op->opcode, IR_SIDE_EFFECT)) TRY(from_hlo_put(x, made, "has_side_effect", ir_m_bool(m, true)));
  TRY(from_hlo_put(x, made, "mhlo.attributes", attrs ? ir_m_dict(m, attrs) : NULL));
  TRY(from_hlo_put(x, made, "mhlo.version", ir_m_i64(m, 1)));
  return from_hlo_done(x, made);
}

/* XLA's own encoding of this op; it wants a channel in any case.
 *   stablehlo.custom_call @ragged_all_to_all(...) {api_version = 4 : i32,
 *       backend_config = {channel_id = 1 : i64, replica_groups = dense<...>}} */
int from_hlo_ragged_all_to_all(from_hlo_op *x) {
  ir_module *m = x->t->to;
  int64_t channel = ir_get_int(x->op, IR_ATTR_CHANNEL_ID, 0);
  const ir_mdict *config = NULL;
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, IR_OP_CUSTOM_CALL, x->op->n_operands, operands, 0, &made));
  const ir_mattr *groups = from_hlo_groups_attr(x);
  config = groups ? ir_mdict_with(m, NULL, "replica_groups", groups) : NULL;
  if (config) config = ir_mdict_with(m, config, "channel_id", ir_m_i64(m, channel));
  TRY(from_hlo_put(x, made, "call_target_name", ir_m_string(m, "ragged_all_to_all", 17)));
  TRY(from_hlo_put(x, made, "api_version", ir_m_i32(m, 4)));
  TRY(from_hlo_put(x, made, "backend_config", config ? ir_m_dict(m, config) : NULL));
  return from_hlo_done(x, made);
}

/* --- parts of a custom call --- */

/* Without the attribute the original one. */
static int from_hlo_api_version(const ir_op *op) {
  int version = ir_get_word(op, IR_ATTR_API_VERSION);
  return version ? version : IR_API_ORIGINAL;
}

/* A typed FFI call (version 4) has a dictionary, any other a string. HLO keeps the dictionary's MLIR text. */
static int from_hlo_backend_config(from_hlo_op *x, ir_op *made, bool typed) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_BACKEND_CONFIG);
  const base_istr *text = a ? a->v.config->text : NULL;
  ir_module *m = x->t->to;
  if (!text || text->n == 0) {
    const ir_mdict *empty = typed ? ir_mdict_make(m, 0, NULL) : NULL;
    return typed ? from_hlo_put(x, made, "backend_config", empty ? ir_m_dict(m, empty) : NULL) : 0;
  }
  if (!typed) return from_hlo_put(x, made, "backend_config", ir_m_string(m, text->s, text->n));
  const ir_mattr *value;
  xlac_error inner = {0};
  if (text_parse_mlir_attr(m, text->s, text->n, &value, &inner) != 0 || value->kind != IR_M_DICT)
    return base_hint(x->t->err,
                     from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ATTRIBUTE,
                                   "backend_config is not an MLIR dictionary, as API_VERSION_TYPED_FFI needs"),
                     "write it as {name = 1 : i32}");
  return from_hlo_put(x, made, "backend_config", value);
}

/* Computations become private functions, by their symbols. */
static int from_hlo_callees(from_hlo_op *x, ir_op *made) {
  uint32_t n = x->op->n_called;
  const ir_mattr **symbols = BASE_ARRAY(&x->t->to->arena, const ir_mattr *, n + 1u);
  if (!symbols) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) {
    ir_computation *callee;
    TRY(from_hlo_function(x->t, x->op->called[i], &callee));
    if (!(symbols[i] = ir_m_symbol(x->t->to, callee->name->s, callee->name->n))) return from_hlo_no_memory(x->t);
  }
  return n ? from_hlo_put(x, made, "called_computations", ir_m_array(x->t->to, n, symbols)) : 0;
}

/* dense<[1, 0]> : tensor<2xindex>; of what is not a tensor, an empty one. Layouts that say the same of every dimension
 * exist for rank 1 only (dense<0>), and are kept as splats, as MLIR does. */
static int from_hlo_one_layout(from_hlo_op *x, const ir_type *type, const ir_mattr **out) {
  ir_module *m = x->t->to;
  const ir_layout *l = ir_is_tensor(type) ? type->layout : NULL;
  const int64_t rank = ir_is_tensor(type) ? type->rank : 0;
  const base_istr *index = ir_intern(m, "index", 5);
  if (ir_is_tuple(type) || (l && (l->n_tiles || l->memory_space || l->levels)))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_LAYOUT,
                         "StableHLO's layouts are orders of dimensions: no tiles, memory spaces, nested tuples");
  const ir_type *t = index ? ir_tensor_mlir(m, XLAC_S64, NULL, index, 1, &rank, NULL, NULL, x->t->err) : NULL;
  ir_literal *all = t ? ir_literal_new(m, t) : NULL;
  if (!all) return from_hlo_no_memory(x->t);
  bool same = rank > 0;
  for (int64_t i = 0; i < rank; i++) {
    int64_t d = l ? l->minor_to_major[i] : rank - 1 - i;
    ((int64_t *)all->data)[i] = d;
    same = same && d == ((int64_t *)all->data)[0];
  }
  if (same) {
    const ir_type *scalar = ir_tensor(m, XLAC_S64, 0, NULL, NULL, NULL, NULL);
    ir_literal *one = scalar ? ir_literal_new(m, scalar) : NULL;
    if (!one) return from_hlo_no_memory(x->t);
    *(int64_t *)one->data = *(int64_t *)all->data;
    all = one;
  }
  *out = ir_m_dense(m, t, all, same);
  return *out ? 0 : from_hlo_no_memory(x->t);
}

static int from_hlo_layouts_of(from_hlo_op *x, ir_op *made, const char *name, uint32_t n, const ir_type *const *types) {
  assert(n == 0 || types);
  const ir_mattr **list = BASE_ARRAY(&x->t->to->arena, const ir_mattr *, n + 1u);
  if (!list) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) TRY(from_hlo_one_layout(x, types[i], &list[i]));
  return from_hlo_put(x, made, name, ir_m_array(x->t->to, n, list));
}

/* operand_layout_constraints and the layouts of the result's own type; without constraints HLO says nothing of
 * layouts. */
static int from_hlo_constraints(from_hlo_op *x, ir_op *made) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  const ir_type *type = x->op->type;
  if (!a) return 0;
  TRY(from_hlo_layouts_of(x, made, "operand_layouts", a->v.types->n, a->v.types->v));
  bool tuple = ir_is_tuple(type);
  return from_hlo_layouts_of(x, made, "result_layouts", tuple ? type->n_elements : 1, tuple ? type->elements : &type);
}

/*   output_to_operand_aliasing={{0}: (1, {})}
 *   #stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, operand_tuple_indices = []> */
static int from_hlo_output_aliases(from_hlo_op *x, ir_op *made) {
  const ir_attr *a = ir_attr_find(x->op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  uint32_t n = a ? a->v.aliasing->n : 0;
  ir_module *m = x->t->to;
  static const char *const names[3] = {"output_tuple_indices", "operand_index", "operand_tuple_indices"};
  const ir_mattr **list = BASE_ARRAY(&m->arena, const ir_mattr *, n + 1u);
  if (!list) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    ir_mentry fields[3] = {{NULL, ir_m_i64s(m, alias->output->n, alias->output->v)},
                           {NULL, ir_m_i64(m, alias->operand)},
                           {NULL, ir_m_i64s(m, alias->index->n, alias->index->v)}};
    for (int k = 0; k < 3; k++)
      if (!fields[k].value || !(fields[k].key = ir_intern(m, names[k], strlen(names[k]))))
        return from_hlo_no_memory(x->t);
    if (!(list[i] = ir_m_struct(m, "stablehlo", "output_operand_alias", 3, fields))) return from_hlo_no_memory(x->t);
  }
  return n ? from_hlo_put(x, made, "output_operand_aliases", ir_m_array(m, n, list)) : 0;
}

/* What StableHLO's custom_call has no place for stays as a discardable attribute, in HLO's words. See
 * attr_call_extras. */
static int from_hlo_extras(from_hlo_op *x, ir_op *made) {
  for (const ir_attr_key *key = attr_call_extras; *key; key++) {
    const ir_attr *a = ir_attr_find(x->op, *key);
    char name[64];
    if (!a) continue;
    snprintf(name, sizeof name, "mhlo.%s", ir_attr_table[*key].text);
    TRY(from_hlo_put(x, made, name, from_hlo_attr_text(x, a)));
  }
  return 0;
}

/* A flat tuple becomes as many results. One of one element, or with tuples inside, stays a tuple. */
static bool from_hlo_is_flat(const ir_type *type) {
  if (!ir_is_tuple(type)) return true;
  for (uint32_t i = 0; i < type->n_elements; i++)
    if (ir_is_tuple(type->elements[i])) return false;
  return type->n_elements != 1;
}

/* x->result is set from the results where they are flat, and is the one tuple otherwise. */
int from_hlo_custom_call(from_hlo_op *x) {
  const char *target = ir_get_str(x->op, IR_ATTR_CUSTOM_CALL_TARGET);
  int version = from_hlo_api_version(x->op);
  bool flat = from_hlo_is_flat(x->op->type);
  ir_module *m = x->t->to;
  const ir_type *whole;
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  if (flat) {
    TRY(from_hlo_make(x, IR_OP_CUSTOM_CALL, x->op->n_operands, operands, 0, &made));
  } else {
    TRY(from_hlo_type(x->t, x->op, x->op->type, &whole));
    made = from_hlo_emit(x, IR_OP_CUSTOM_CALL, whole, x->op->n_operands, operands);
    if (!made) return from_hlo_no_memory(x->t);
    TRY(from_hlo_common(x, made));
  }
  TRY(from_hlo_put(x, made, "call_target_name", ir_m_string(m, target, strlen(target))));
  if (ir_get_bool(x->op, IR_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, false))
    TRY(from_hlo_put(x, made, "has_side_effect", ir_m_bool(m, true)));
  if (version != 1) TRY(from_hlo_put(x, made, "api_version", ir_m_i32(m, version)));
  TRY(from_hlo_backend_config(x, made, version == 4));
  TRY(from_hlo_callees(x, made));
  TRY(from_hlo_constraints(x, made));
  TRY(from_hlo_output_aliases(x, made));
  TRY(from_hlo_extras(x, made));
  if (flat) return from_hlo_done(x, made);
  x->result = from_hlo_of_value(x->t, (ir_value){made, 0});
  return x->result ? 0 : from_hlo_no_memory(x->t);
}
