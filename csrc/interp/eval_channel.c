/* infeed, outfeed, send and recv: they need a peer, and a run of the interpreter has none. The done halves can't be
 * reached, as the start fails; they say the same. */
#include "interp.h"

static int channel_no_peer(interp_ctx *ctx, const ir_op *op, const char *what, const char *hint) {
  int status = interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s %s, and the interpreter has none",
                           ir_opcode_text(op->opcode), what);
  return base_hint(ctx->err, status, "%s", hint);
}

static int channel_host(interp_ctx *ctx, const ir_op *op) {
  return channel_no_peer(ctx, op, "needs a host queue",
                         "make the value a parameter or a result of the entry computation");
}

static int channel_peer(interp_ctx *ctx, const ir_op *op) {
  if (ir_get_bool(op, IR_ATTR_IS_HOST_TRANSFER, false)) return channel_host(ctx, op);
  return channel_no_peer(ctx, op, "needs a participant at the channel's other end",
                         "run it with several participants, or pass the value directly");
}

#define CHANNEL_EVAL(name, fail)                                                                                \
  int interp_eval_##name(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) { \
    (void)operands, (void)out;                                                                                  \
    return fail(ctx, op);                                                                                       \
  }
CHANNEL_EVAL(infeed, channel_host)
CHANNEL_EVAL(outfeed, channel_host)
CHANNEL_EVAL(send, channel_peer)
CHANNEL_EVAL(send_done, channel_peer)
CHANNEL_EVAL(recv, channel_peer)
CHANNEL_EVAL(recv_done, channel_peer)
