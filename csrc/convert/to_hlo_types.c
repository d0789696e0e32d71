/* From MLIR form to HLO form: types, and which of them HLO has. */
#include "../ir/verify/check.h"
#include "to_hlo.h"

static const ir_type *to_hlo_tuple_type(to_hlo *t, const ir_type *type) {
  const ir_type **elements = BASE_ARRAY(&t->to->arena, const ir_type *, type->n_elements + 1u);
  for (uint32_t i = 0; elements && i < type->n_elements; i++)
    if (!(elements[i] = to_hlo_type(t, type->elements[i]))) return NULL;
  return elements ? ir_tuple(t->to, type->n_elements, elements) : NULL;
}

const ir_type *to_hlo_type(to_hlo *t, const ir_type *type) {
  if (ir_is_tuple(type) || type->kind == IR_TYPE_FUTURE)
    return type->kind == IR_TYPE_FUTURE && type->n_elements == 1 ? to_hlo_type(t, type->elements[0])
                                                                 : to_hlo_tuple_type(t, type);
  if (!ir_is_tensor(type)) return ir_type_import(t->to, type);
  const ir_type *plain =
      type->quant ? ir_tensor_mlir(t->to, (base_dtype)type->dtype, type->quant, NULL, type->rank, type->dims,
                                   type->dynamic, NULL, NULL)
                  : ir_tensor(t->to, (base_dtype)type->dtype, type->rank, type->dims, type->dynamic, NULL, NULL);
  const ir_layout *layout = ir_layout_default(t->to, type->rank);
  return plain && layout ? ir_type_with_layout(t->to, plain, layout) : NULL;
}

static int to_hlo_refuse_type(const to_hlo *t, const ir_op *op, const ir_type *type, const char *hint) {
  return base_hint(t->err,
                   to_hlo_fail(t, op, XLAC_E_VERIFY_SHAPE, "%s has the type %s, which HLO does not have",
                               op->opcode == IR_OP_PARAMETER ? "an argument" : "a result", IR_SHOW(type)),
                   "%s", hint);
}

int to_hlo_check_type(const to_hlo *t, const ir_op *op, const ir_type *type) {
  if (type->quant)
    return to_hlo_refuse_type(t, op, type,
                              "run the pass stablehlo-legalize-quant-to-math first: it computes on the "
                              "stored integers");
  if (type->kind >= IR_TYPE_UNRANKED || type->text)
    return to_hlo_refuse_type(t, op, type, "HLO has ranked tensors of numbers, tuples of them, and tokens");
  if (ir_is_tensor(type) && ir_is_unbounded(type))
    return to_hlo_refuse_type(t, op, type,
                              "HLO has bounded dimensions only: give the arguments static types with the pass "
                              "stablehlo-refine-arguments and run stablehlo-refine-shapes first, or give the "
                              "dimensions bounds");
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(to_hlo_check_type(t, op, type->elements[i]));
  return 0;
}

int to_hlo_check_results(const to_hlo *t, const ir_op *op) {
  if (t->options.executable) return 0; /* it keeps StableHLO's types for the interpreter */
  for (uint32_t i = 0; i < op->n_results; i++) TRY(to_hlo_check_type(t, op, op->types[i]));
  return 0;
}
