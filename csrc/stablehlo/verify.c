/* The verifier of MLIR form: what holds between ops. */
#include "stablehlo.h"

static int structure_fail(const ir_op *op, base_code code, xlac_error *err, const char *what) {
  return base_fail_at(err, code, op->line, op->col, op->name->s, "%s", what);
}

static const ir_computation *function_named(const ir_module *m, const base_istr *name) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind == IR_FUNCTION && c->name == name) return c;
  }
  return NULL;
}

/* The type of result i of a function, declared or defined. */
static const ir_type *function_result(const ir_computation *f, uint32_t i) {
  if (f->function_type) return f->function_type->elements[f->function_type->n_inputs + i];
  return f->results[i].op->types[f->results[i].index];
}

static uint32_t function_results(const ir_computation *f) {
  return f->function_type ? f->function_type->n_elements - f->function_type->n_inputs : f->n_results;
}

/* A call's or composite's symbol names a function of its operand and result types. */
static int structure_symbol(const ir_module *m, const ir_op *op, const char *attr, xlac_error *err) {
  const ir_mattr *a = ir_mattr_of(op, attr);
  const ir_computation *f = a ? function_named(m, a->v.list->v[0]->str) : NULL;
  if (!f) return structure_fail(op, XLAC_E_UNKNOWN_NAME, err, "the symbol does not reference a function of the module");
  if (f->n_params != op->n_operands)
    return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "incorrect number of operands for callee");
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (f->params[i]->type != ir_operand_type(op, i))
      return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "operand type mismatch with the callee's argument");
  if (function_results(f) != op->n_results)
    return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "incorrect number of results for callee");
  for (uint32_t i = 0; i < op->n_results; i++)
    if (function_result(f, i) != op->types[i])
      return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "result type mismatch with the callee's result");
  return 0;
}

/* Regions whose results are the op's: as many, and of the same types. */
static int structure_branches(const ir_op *op, xlac_error *err) {
  for (uint32_t k = 0; k < op->n_called; k++) {
    const ir_computation *c = op->called[k];
    if (c->n_results != op->n_results)
      return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "a branch gives another number of results than the op has");
    for (uint32_t i = 0; i < op->n_results; i++)
      if (c->results[i].op->types[c->results[i].index]->dtype != op->types[i]->dtype)
        return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "a branch gives results of other types than the op's");
  }
  return 0;
}

static int structure_while(const ir_op *op, xlac_error *err) {
  const ir_computation *condition = op->called[0], *body = op->called[1];
  if (condition->n_params != op->n_operands || body->n_params != op->n_operands)
    return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "the regions of while take one argument for each operand");
  if (condition->n_results != 1 || condition->results[0].op->types[condition->results[0].index]->dtype != XLAC_PRED)
    return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "the condition of while gives one tensor<i1>");
  if (body->n_results != op->n_results)
    return structure_fail(op, XLAC_E_VERIFY_CALLED, err, "the body of while gives one value for each operand");
  return 0;
}

static int structure_verify(const ir_module *m, const ir_op *op, xlac_error *err) {
  switch (op->opcode) {
    case IR_OP_CALL:
      return structure_symbol(m, op, "callee", err);
    case IR_OP_COMPOSITE:
      return structure_symbol(m, op, "decomposition", err);
    case IR_OP_IF:
    case IR_OP_CONDITIONAL:
      return structure_branches(op, err);
    case IR_OP_WHILE:
      return structure_while(op, err);
    default:
      return 0;
  }
}

int stablehlo_verify(ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      TRY(structure_verify(m, op, err));
    }
  }
  m->verified = IR_VERIFIED;
  return 0;
}
