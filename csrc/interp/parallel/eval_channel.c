/* infeed, outfeed, send and recv. They need a peer, which only a parallel run has; alone they fail, the starts first.
 *
 * A send puts its value into the hub and goes on; a recv gives nothing yet, and its done waits. Pairs come
 * from the frontend attribute that JAX and XLA write, _xla_send_recv_source_target_pairs. */
#include "hub.h"
#include "../sizes.h"

/* Always fails. */
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

/* --- the host's queues --- */

/* Programs of other participants may send anything. */
static bool channel_fits(const ir_type *t, const interp_value *v) {
  if (ir_is_tuple(t)) {
    bool fits = v->kind == INTERP_TUPLE && v->n_elements == t->n_elements;
    for (uint32_t i = 0; fits && i < t->n_elements; i++) fits = channel_fits(t->elements[i], v->elements[i]);
    return fits;
  }
  if (!ir_is_tensor(t)) return v->kind == INTERP_TOKEN;
  return v->kind == INTERP_ARRAY && v->dtype == t->dtype && interp_dims_fit(t, v);
}

/* (value, token): the next value that was queued for this participant. */
int interp_eval_infeed(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  if (!ctx->options.hub) return channel_host(ctx, op);
  interp_value *v = interp_hub_infeed(ctx);
  if (!v)
    return interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "infeed finds no value queued for replica %lld, partition %lld",
                       (long long)ctx->options.replica, (long long)ctx->options.partition);
  if (!ir_is_tuple(op->type) || op->type->n_elements != 2 || !channel_fits(op->type->elements[0], v))
    return interp_fail(ctx, op, XLAC_E_ARGUMENT_SHAPE, "the value queued for infeed is not of the type it gives");
  interp_value *parts[2] = {v, interp_token(ctx)};
  if (parts[1]) *out = interp_tuple(ctx, 2, parts);
  interp_release(parts[1]);
  return *out ? 0 : base_oom(ctx->err, "an infeed");
}

/* The value is kept until the run is over. */
int interp_eval_outfeed(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (!ctx->options.hub) return channel_host(ctx, op);
  TRY(interp_hub_outfeed(ctx, operands[0]));
  *out = interp_token(ctx);
  return *out ? 0 : base_oom(ctx->err, "an outfeed");
}

/* --- messages --- */

/* The other end by the pairs that op carries as a frontend attribute, "{{0,1},{1,2}}" of partitions or else replicas;
 * -1 where none is given, -2 where no pair names us. `side`: 0 as source, 1 as target. */
static int64_t channel_other(const interp_ctx *ctx, const ir_op *op, int side) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  const interp_grid *grid = interp_hub_grid(ctx->options.hub);
  const char *text = NULL;
  for (uint32_t i = 0; a && a->v.dict && i < a->v.dict->n; i++)
    if (strcmp(a->v.dict->v[i].key->s, "_xla_send_recv_source_target_pairs") == 0) text = a->v.dict->v[i].value->s;
  if (!text) return -1;
  bool partitions = grid->partitions > 1;
  long long self = partitions ? ctx->options.partition : ctx->options.replica, pair[2] = {0, 0};
  for (int n = 0; *text;) {
    if (*text < '0' || *text > '9') {
      text++;
      continue;
    }
    long long v = 0;
    for (; *text >= '0' && *text <= '9'; text++) v = v < INTERP_MAX_PARTICIPANTS ? v * 10 + (*text - '0') : v;
    pair[n++ % 2] = v;
    if (n % 2 || pair[side] != self) continue;
    long long other = pair[1 - side];
    return partitions ? ctx->options.replica * grid->partitions + other : other * grid->partitions;
  }
  return -2;
}

/* The participant's number. */
static int64_t channel_us(const interp_ctx *ctx) {
  assert(ctx->options.hub);
  return ctx->options.replica * interp_hub_grid(ctx->options.hub)->partitions + ctx->options.partition;
}

/* (value, context, token): the value leaves at once. */
int interp_eval_send(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (!ctx->options.hub) return channel_peer(ctx, op);
  int64_t to = channel_other(ctx, op, 0);
  if (to != -2) TRY(interp_hub_send(ctx, op, ir_get_int(op, IR_ATTR_CHANNEL_ID, 0), channel_us(ctx), to, operands[0]));
  if (!ir_is_tuple(op->type)) {
    *out = interp_token(ctx);
    return *out ? 0 : base_oom(ctx->err, "a send");
  }
  interp_value *zero = interp_zeros(ctx, op->type->elements[1]);
  if (!zero) return interp_failed(ctx);
  int status = interp_async_tuple(ctx, op, operands[0], zero, out);
  interp_release(zero);
  return status;
}

int interp_eval_send_done(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  if (!ctx->options.hub) return channel_peer(ctx, op);
  *out = interp_token(ctx);
  return *out ? 0 : base_oom(ctx->err, "a send");
}

/* Only the done half waits; this one gives zeros of its type. */
int interp_eval_recv(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  if (!ctx->options.hub) return channel_peer(ctx, op);
  *out = interp_zeros(ctx, op->type);
  return *out ? 0 : interp_failed(ctx);
}

/* The channel is the done's own, or its start's. */
int interp_eval_recv_done(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  if (!ctx->options.hub) return channel_peer(ctx, op);
  const ir_op *start = ir_operand(op, 0);
  const ir_op *named = ir_attr_find(op, IR_ATTR_CHANNEL_ID) || start->opcode != IR_OP_RECV ? op : start;
  int64_t from = channel_other(ctx, op, 1);
  if (from == -1 && start->opcode == IR_OP_RECV) from = channel_other(ctx, start, 1);
  interp_value *parts[2] = {NULL, NULL};
  if (!ir_is_tuple(op->type) || op->type->n_elements != 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "recv-done gives a value and a token");
  if (from == -2) {
    if (!(parts[0] = interp_zeros(ctx, op->type->elements[0]))) return interp_failed(ctx);
  } else {
    TRY(interp_hub_receive(ctx, op, ir_get_int(named, IR_ATTR_CHANNEL_ID, 0), from, channel_us(ctx), &parts[0]));
  }
  int status = channel_fits(op->type->elements[0], parts[0])
                   ? 0
                   : interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "receives a value that is not of its type");
  if (!status && !((parts[1] = interp_token(ctx)) && (*out = interp_tuple(ctx, 2, parts))))
    status = base_oom(ctx->err, "a recv");
  interp_release(parts[0]);
  interp_release(parts[1]);
  return status;
}
