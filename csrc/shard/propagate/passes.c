/* The passes of propagation. */
#include "../../passes/pass.h"
#include "propagate.h"

opt_pass_fn shard_pass_basic, shard_pass_aggressive, shard_pass_op_priority, shard_pass_user_priority;

static int propagate_strategy(base_slice word, shard_options *o, xlac_error *err) {
  o->strategy = SHARD_AGGRESSIVE;
  if (word.n == 0 || base_slice_is(word, "aggressive")) return 0;
  o->strategy = SHARD_BASIC;
  if (base_slice_is(word, "basic")) return 0;
  o->strategy = SHARD_BASIC_THEN_AGGRESSIVE;
  if (base_slice_is(word, "basic-then-aggressive")) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT,
                   "propagation-strategy is basic, aggressive or basic-then-aggressive, found '%.*s'", (int)word.n,
                   word.p);
}

static shard_options propagate_options(const opt_args *args) {
  return (shard_options){.keep_rules = opt_get(args, "keep-sharding-rules"),
                         .conservative = opt_get(args, "conservative-propagation"),
                         .debug_origins = opt_get(args, "debug-sharding-origins"),
                         .debug_edges = opt_get(args, "debug-propagation-edge-sharding")};
}

int shard_pass_basic(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_options o = propagate_options(args);
  o.strategy = SHARD_BASIC;
  return shard_propagate(m, &o, err);
}

int shard_pass_aggressive(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_options o = propagate_options(args);
  TRY(propagate_strategy(opt_get_text(args, "propagation-strategy"), &o, err));
  return shard_propagate(m, &o, err);
}

static int propagate_by_op(ir_module *m, const opt_args *args, bool by_user, xlac_error *err) {
  shard_options o = propagate_options(args);
  TRY(propagate_strategy(opt_get_text(args, "propagation-strategy"), &o, err));
  o.by_op = opt_get(args, "run-op-priority-propagation");
  o.by_user = by_user;
  return shard_propagate(m, &o, err);
}

int shard_pass_op_priority(ir_module *m, const opt_args *args, xlac_error *err) {
  return propagate_by_op(m, args, false, err);
}

int shard_pass_user_priority(ir_module *m, const opt_args *args, xlac_error *err) {
  return propagate_by_op(m, args, true, err);
}
