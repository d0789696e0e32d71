/* custom-call: layout constraints, targets that XLA knows; and output_to_operand_aliasing wherever it stands
 * (custom-call, fusion, async-start): {1}: (0, {2}) says that output element 1 is element 2 of operand 0, in the same
 * memory. */
#include "verify.h"

static int fail_aliasing(const ir_op *op, const ir_alias *a, xlac_error *err, const char *format, ...)
    BASE_PRINTF(4, 5);
static int fail_aliasing(const ir_op *op, const ir_alias *a, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[400];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ir_verify_fail(op, XLAC_E_VERIFY_ALIAS, err, "has %s: (%lld, %s) in output_to_operand_aliasing, but %s",
                        IR_SHOW_INTS(a->output->n, a->output->v), (long long)a->operand,
                        IR_SHOW_INTS(a->index->n, a->index->v), message);
}

/* A buffer and its inner tensor alias each other by pin and unpin. */
static const ir_type *without_buffer(const ir_type *t) {
  return t->kind == IR_TYPE_BUFFER ? t->inner : t;
}

/* Index paths must exist on both sides. `any_types`: the user has asked XLA not to compare types. */
static int check_alias_pair(const ir_op *op, const ir_type *result, const ir_alias *a, bool any_types,
                            xlac_error *err) {
  assert(result && a->output && a->index);
  if (a->operand < 0 || a->operand >= (int64_t)op->n_operands)
    return fail_aliasing(op, a, err, "there are %u operands", op->n_operands);
  const ir_type *from = ir_type_at(ir_operand_type(op, (uint32_t)a->operand), a->index->v, a->index->n);
  if (!from)
    return fail_aliasing(op, a, err, "operand %lld is %s", (long long)a->operand,
                         IR_SHOW(ir_operand_type(op, (uint32_t)a->operand)));
  const ir_type *to = ir_type_at(result, a->output->v, a->output->n);
  if (!to) return fail_aliasing(op, a, err, "the result is %s", IR_SHOW(result));
  if (any_types || ir_compatible(without_buffer(from), without_buffer(to))) return 0;
  return fail_aliasing(op, a, err, "that output is %s and that operand %s", IR_SHOW(to), IR_SHOW(from));
}

/* One output has one place, which XLA looks at only when it assigns buffers. */
static int check_alias_outputs(const ir_op *op, const ir_aliasing *aliasing, base_map *seen, xlac_error *err) {
  for (uint32_t i = 0; i < aliasing->n; i++) {
    uint64_t other, key = ir_verify_path_key(0, aliasing->v[i].output);
    if (base_map_get(seen, key, &other))
      return fail_aliasing(op, &aliasing->v[i], err, "operand %lld is that output already",
                           (long long)aliasing->v[other].operand);
    if (!base_map_set(seen, key, i)) return base_oom(err, "a table of aliases");
  }
  return 0;
}

/* `result` is the type that output paths refer to. */
int ir_verify_aliasing(const ir_op *op, const ir_type *result, const ir_verify_options *options, xlac_error *err) {
  assert(op && result && options);
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING),
                *f = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  if (!a) return 0;
  bool any_types = false;
  for (uint32_t i = 0; op->opcode == IR_OP_CUSTOM_CALL && f && i < f->v.dict->n; i++)
    any_types = any_types || strcmp(f->v.dict->v[i].key->s, "xla_skip_custom_call_alias_shape_check") == 0;
  for (uint32_t i = 0; i < a->v.aliasing->n; i++)
    TRY(check_alias_pair(op, result, &a->v.aliasing->v[i], any_types, err));
  if (options->xla_compat) return 0;
  base_map seen;
  base_map_init(&seen, op->parent->module->alloc);
  int status = check_alias_outputs(op, a->v.aliasing, &seen, err);
  base_map_free(&seen);
  return status;
}

/* --- custom-call --- */

static bool has_target(const ir_op *op, const char *target) {
  assert(op->opcode == IR_OP_CUSTOM_CALL);
  return strcmp(ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET), target) == 0;
}

/* XLA's own targets LayoutConstraint and control_dep say other things with the attribute. */
static int check_layout_constraints(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  if (!a || has_target(op, "LayoutConstraint") || has_target(op, "control_dep")) return 0;
  const ir_types *types = a->v.types;
  if (types->n != op->n_operands)
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err,
                          "has %u types in operand_layout_constraints, but %u operands", types->n, op->n_operands);
  for (uint32_t i = 0; i < types->n; i++) {
    TRY(ir_verify_layouts(types->v[i], err));
    if (!ir_compatible(types->v[i], ir_operand_type(op, i)))
      return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "constrains operand %u to %s, but it is %s", i,
                            IR_SHOW(types->v[i]), IR_SHOW(ir_operand_type(op, i)));
  }
  return 0;
}

/* The target that JAX and TensorFlow use for a per-execution seed. */
static int check_rng_seed(const ir_op *op, xlac_error *err) {
  if (!has_target(op, "GetRngSeed") || (op->n_operands == 0 && ir_is_scalar_of(op->type, XLAC_U64))) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                        "GetRngSeed takes no operand and gives u64[], but has %u and gives %s", op->n_operands,
                        IR_SHOW(op->type));
}

IR_VERIFY(custom_call) {
  const ir_attr *literal = ir_attr_find(op, IR_ATTR_LITERAL);
  if (literal) TRY(ir_verify_layouts(literal->v.literal->type, err));
  TRY(check_layout_constraints(op, err));
  TRY(check_rng_seed(op, err));
  TRY(ir_verify_pins(op, err));
  return ir_verify_aliasing(op, op->type, options, err);
}
