/* Talk with the host and over channels: infeed, outfeed, send, recv. */
#include "verify.h"

IR_VERIFY(infeed) {
  const ir_type *t = op->type;
  TRY(ir_check_token(op, 0, err));
  if (ir_is_tuple(t) && t->n_elements == 2 && ir_is_token(t->elements[1])) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected (data, token[])", IR_SHOW(t));
}

IR_VERIFY(outfeed) {
  const ir_attr *declared = ir_attr_find(op, IR_ATTR_OUTFEED_SHAPE);
  TRY(ir_check_token(op, 1, err));
  if (!declared || ir_compatible(declared->v.type, ir_operand_type(op, 0))) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has outfeed_shape=%s, but its operand is %s",
                        IR_SHOW(declared->v.type), IR_SHOW(ir_operand_type(op, 0)));
}

IR_VERIFY(recv) {
  const ir_type *t = op->type;
  TRY(ir_check_token(op, 0, err));
  if (ir_is_tuple(t) && t->n_elements == 3 && ir_is_scalar_of(t->elements[1], XLAC_U32) && ir_is_token(t->elements[2]))
    return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected (data, u32[], token[])", IR_SHOW(t));
}

static int64_t channel_of(const ir_op *op) {
  return ir_get_int(op, IR_ATTR_CHANNEL_ID, -1);
}

/* A done that waits for a start directly names the same channel and kind of transfer. */
static int check_done(const ir_op *done, xlac_error *err) {
  assert(ir_opcode_has(done->opcode, IR_ASYNC_DONE));
  const ir_op *start = ir_operand(done, 0);
  if (start->opcode != ir_opcode_info(done->opcode)->start) return 0;
  if (channel_of(start) != channel_of(done))
    return ir_verify_fail(done, XLAC_E_VERIFY_COLLECTIVE, err, "waits on channel %lld for %s, which uses channel %lld",
                          (long long)channel_of(done), start->name->s, (long long)channel_of(start));
  if (ir_get_bool(start, IR_ATTR_IS_HOST_TRANSFER, false) == ir_get_bool(done, IR_ATTR_IS_HOST_TRANSFER, false))
    return 0;
  return ir_verify_fail(done, XLAC_E_VERIFY_COLLECTIVE, err, "waits for %s; is_host_transfer must be the same for both",
                        start->name->s);
}

IR_VERIFY(send_done) {
  return check_done(op, err);
}
IR_VERIFY(recv_done) {
  return check_done(op, err);
}
