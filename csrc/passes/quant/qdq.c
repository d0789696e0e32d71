/* Quantised ops and their spelling as dequantize, op, quantize: the passes either way. */
#include "../../ir/stablehlo/stablehlo.h"
#include "quant.h"

/* stablehlo-legalize-qdq-to-quantized-op: uniform_quantize of an op whose operands are all uniform_dequantize becomes a
 * quantised op. Requires: nothing. Preserves: ops that StableHLO does not have in that quantised form, and ops whose
 * results are needed besides. */

/* Ops whose meaning does not hang on more than operands and attributes.
 * One result, no regions, no effects, and not quantised itself.
 * abs of uniform_dequantize(%a), quantised to another scale, is abs on quantised types:
 *    %0 = stablehlo.abs %a : (tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.25>> */
static bool mqc_is_plain(const ir_op *op) {
  if (op->n_results != 1 || op->n_operands == 0 || op->n_called || !ir_opcode_info(op->opcode)->mlir) return false;
  if (op->opcode == IR_OP_CUSTOM_CALL || op->opcode == IR_OP_UNREGISTERED) return false;
  return opt_is_pure(op) && !mq_touches(op);
}

/* Every operand, so that none would be left unquantised. */
static bool mqc_reads_dequantised(const ir_op *op) {
  assert(op->n_operands > 0);
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand(op, i)->opcode != IR_OP_UNIFORM_DEQUANTIZE) return false;
  return true;
}

/* The op is made first, as only then the verifier can look at it. */
static int mqc_quantise(opt_rewriter *rw, ir_op *op) {
  assert(op->n_operands == 1);
  ir_op *real = ir_operand(op, 0);
  xlac_error ignored = {0};
  if (!mqc_is_plain(real) || !mqc_reads_dequantised(real)) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, real->n_operands);
  rw->failed = rw->failed || !values;
  TRY(opt_rewriter_status(rw));
  for (uint32_t i = 0; i < real->n_operands; i++) values[i] = opt_operand(ir_operand(real, i), 0);
  opt_at(rw, real);
  ir_value v = opt_make(rw, (ir_opcode)real->opcode, op->type, real->n_operands, values);
  TRY(opt_rewriter_status(rw));
  ir_set_mlir(v.op, real->mlir);
  /* StableHLO's constraints on quantised ops decide. */
  int status = stablehlo_verify_op(rw->m, v.op, &ignored);
  rw->failed = status == -XLAC_E_OUT_OF_MEMORY;
  if (status == 0)
    opt_replace_one(rw, op, v);
  else
    opt_erase(rw, v.op);
  return opt_rewriter_status(rw);
}

/* Dequantisations that nobody reads any more go in the end. */
int opt_qdq_to_quantised_op(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  int status = 0;
  TRY(opt_rewriter_init(&rw, m, err));
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (op->opcode == IR_OP_UNIFORM_QUANTIZE) status = mqc_quantise(&rw, op);
    }
  }
  if (status == 0) status = opt_rewrite(&rw, 0, NULL); /* what is dead now */
  opt_rewriter_free(&rw);
  return status;
}

/* Quantised ops as ops on real values between uniform_dequantize and uniform_quantize.
 * stablehlo-legalize-quantized-op-to-qdq: requires nothing; preserves ops that only move elements. */

/* Operands that are not quantised (predicates, shapes) stay. */
static ir_value mqr_operand(opt_rewriter *rw, const ir_op *op, uint32_t i) {
  assert(i < op->n_operands);
  ir_value v = opt_operand(op, i);
  const ir_type *type = opt_type(v);
  if (!type->quant) return v;
  return opt_make(rw, IR_OP_UNIFORM_DEQUANTIZE, mq_expressed(rw->m, type), 1, &v);
}

/* %q = stablehlo.add %a, %b becomes dequantize of both, an add in the expressed type, quantize. */
static int mqr_op(opt_rewriter *rw, ir_op *op) {
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)op->n_results + 1);
  rw->failed = rw->failed || !values || !types;
  TRY(opt_rewriter_status(rw));
  opt_at(rw, op);
  for (uint32_t i = 0; i < op->n_operands; i++) values[i] = mqr_operand(rw, op, i);
  for (uint32_t i = 0; i < op->n_results; i++) types[i] = mq_expressed(rw->m, op->types[i]);
  ir_op *real = opt_make_n(rw, (ir_opcode)op->opcode, op->n_results, types, op->n_operands, values, 0);
  TRY(opt_rewriter_status(rw));
  ir_set_mlir(real, op->mlir);
  for (uint32_t i = 0; i < op->n_results; i++) {
    values[i] = opt_result(real, i);
    if (op->types[i]->quant) values[i] = opt_make(rw, IR_OP_UNIFORM_QUANTIZE, op->types[i], 1, &values[i]);
  }
  opt_replace_op(rw, op, values);
  return opt_rewriter_status(rw);
}

int opt_quantised_op_to_qdq(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  int status = 0;
  TRY(opt_rewriter_init(&rw, m, err));
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (ir_opcode_has(op->opcode, IR_QUANT_REAL) && mq_touches(op)) status = mqr_op(&rw, op);
    }
  }
  opt_rewriter_free(&rw);
  return status;
}
