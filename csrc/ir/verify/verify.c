/* The verifier's order of business: structure, then every op in text order, then what concerns several ops. */
#include "verify.h"

#include "../../base/heed.h"

int ir_verify_fail(const ir_op *op, base_code code, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return base_fail_at(err, code, op->line, op->col, op->name->s, "%s %s", ir_opcode_text(op->opcode), message);
}

/* XLA takes the declared element type of contractions as the preferred one, within the same kind of number. */
static bool declares_dtype(unsigned opcode) {
  return opcode == IR_OP_DOT || opcode == IR_OP_CONVOLUTION || opcode == IR_OP_RAGGED_DOT || opcode == IR_OP_SCALED_DOT;
}

/* Opcodes whose result is a value that is there already, so that its element type can't be another. */
static bool keeps_dtype(unsigned opcode) {
  switch (opcode) {
    case IR_OP_ASYNC_DONE:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_BITCAST:
    case IR_OP_CALL:
    case IR_OP_CONDITIONAL:
    case IR_OP_CONSTANT:
    case IR_OP_COPY_DONE:
    case IR_OP_COPY_START:
    case IR_OP_CUSTOM_CALL:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
    case IR_OP_FUSION:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_INFEED:
    case IR_OP_OUTFEED:
    case IR_OP_OPT_BARRIER:
    case IR_OP_PARAMETER:
    case IR_OP_RECV:
    case IR_OP_RECV_DONE:
    case IR_OP_SEND:
    case IR_OP_SEND_DONE:
    case IR_OP_TUPLE:
    case IR_OP_WHILE:
      return true;
    default:
      return false;
  }
}

/* XLA verifies with mixed precision allowed while its passes still move precisions about: any float type for another.
 */
static int check_declared_type(const ir_op *op, const ir_type *inferred, const ir_verify_options *options,
                               xlac_error *err) {
  assert(op->type && inferred);
  if (op->opcode == IR_OP_SCAN) return 0; /* a lone result may stand for a tuple of one: its own rule knows */
  bool mixed = options->mixed_floats && !keeps_dtype(op->opcode);
  bool fits = declares_dtype(op->opcode) ? ir_compatible_ignoring_dtype(op->type, inferred)
              : mixed                    ? ir_compatible_ignoring_float(op->type, inferred)
                                         : ir_compatible(op->type, inferred);
  if (fits) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; its operands and attributes give %s",
                        IR_SHOW(op->type), IR_SHOW(inferred));
}

static int check_result_type(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  TRY(ir_check_stamp(op, ir_verify_layouts(op->type, err), err));
  if (!m->unbounded && ir_is_unbounded(op->type))
    return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "has the type %s; HLO has bounded dimensions only",
                          IR_SHOW(op->type));
  TRY(ir_check_stamp(op, ir_check_op(op, err), err));
  xlac_error local = {0};
  const ir_type *inferred = NULL;
  int status = ir_infer(m, op, &inferred, &local);
  if (status == 0) return check_declared_type(op, inferred, options, err);
  if (local.code == XLAC_E_CANNOT_INFER) return 0;
  if (err) *err = local;
  return status;
}

static int check_common_attrs(const ir_op *op, xlac_error *err) {
  const ir_sharding *s = ir_get_sharding(op);
  if (s) TRY(ir_verify_sharding(op, s, err));
  if (ir_attr_find(op, IR_ATTR_RESULT_ACCURACY) && !ir_opcode_has(op->opcode, IR_HAS_ACCURACY))
    return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has result_accuracy, which only unary functions take");
  TRY(ir_verify_words(op, err));
  return ir_verify_origin(op, err);
}

int ir_verify_op(ir_module *m, const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  assert(op->opcode > IR_OP_INVALID && op->opcode < IR_OP_COUNT);
  TRY(check_result_type(m, op, options, err));
  if (!options->mixed_floats) TRY(ir_check_stamp(op, ir_check_mixed_floats(op, err), err));
  TRY(ir_verify_elementwise(op, err));
  TRY(check_common_attrs(op, err));
  TRY(ir_verify_async_op(op, options, err));
  ir_verify_fn *own = ir_opcode_info(op->opcode)->verify;
  return own ? ir_check_stamp(op, own(m, op, options, err), err) : 0;
}

int ir_verify(ir_module *m, const ir_verify_options *options, xlac_error *err) {
  static const ir_verify_options strict = {0};
  if (!options) options = &strict;
  ir_verified level = options->xla_compat ? IR_VERIFIED_LENIENTLY : IR_VERIFIED;
  if (m->verified >= level) return 0;
  TRY(ir_verify_structure(m, err));
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      TRY(ir_verify_op(m, op, options, err));
      if (base_heed_tick(8)) return base_interrupted(err);
    }
  }
  TRY(ir_verify_aliases(m, options, err));
  TRY(ir_verify_together(m, options, err));
  if (!options->mixed_floats) m->verified = (uint8_t)level;
  return 0;
}
