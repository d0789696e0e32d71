/* sdy-populate-op-sharding-rules: every op with a rule says it. A rule on an op with dynamic dimensions is an error. */
#include "../../passes/pass.h"
#include "../../ir/stablehlo/stablehlo.h"
#include "rule.h"

opt_pass_fn shard_pass_rules;

static bool rules_is_in_function(const ir_computation *c) {
  for (uint32_t depth = 0; c && c->owner && depth < 1 << 20; depth++) c = c->owner->parent;
  return c && c->kind == IR_FUNCTION;
}

int shard_pass_rules(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_maker maker;
  shard_maker_init(&maker, m, opt_get(args, "conservative-propagation"));
  int status = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (!rules_is_in_function(c)) continue;
    for (ir_op *op = c->first; op && status == 0; op = op->next) {
      if (ir_mattr_of(op, "sdy.sharding_rule")) continue;
      const sdy_rule *rule = NULL;
      status = shard_rule_make(&maker, op, &rule, err);
      if (rule && status == 0 && !ir_m_set(op, "sdy.sharding_rule", sdy_attr(m, SDY_RULE, rule)))
        status = base_oom(err, "a sharding rule");
    }
  }
  shard_maker_free(&maker);
  m->verified = IR_UNVERIFIED;
  return status == 0 ? stablehlo_verify(m, err) : status;
}
