/* The rules of a module's ops while it is propagated through. Programs have few different ones, so equal ones are kept
 * once: a rule that is made and known already is given up again. */
#include "propagate.h"

static uint64_t rules_hash_ints(uint64_t h, sdy_ints v) {
  h = (h ^ v.n) * UINT64_C(0x9E3779B97F4A7C15);
  for (uint32_t i = 0; i < v.n; i++) h = (h ^ (uint64_t)v.v[i] ^ (h >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
  return h;
}

static uint64_t rules_hash(const sdy_rule *r) {
  uint64_t h = rules_hash_ints(r->n_operands * UINT64_C(131) + r->n_results, r->sizes);
  for (uint32_t t = 0; t < r->n_operands + r->n_results; t++) {
    const sdy_tensor_map *map = shard_map_of(r, t);
    for (uint32_t d = 0; d < map->n_dims; d++) h = rules_hash_ints(h + d, map->dims[d]);
  }
  h = rules_hash_ints(rules_hash_ints(h, r->reduction), r->need_replication);
  return rules_hash_ints(rules_hash_ints(h, r->permutation), r->blocked);
}

/* The rule as it lies in the module, where it is needed if ops are to keep it. */
static const sdy_rule *rules_keep(shard_driver *d, const sdy_rule *made) {
  uint64_t hash = rules_hash(made), found = 0;
  const sdy_rule *known = base_map_get(&d->kept_rules, hash, &found) ? (const sdy_rule *)(uintptr_t)found : NULL;
  if (known && sdy_equal(SDY_RULE, known, made)) return known;
  known = sdy_rule_make(d->state.m, made);
  if (known && base_map_set(&d->kept_rules, hash, base_key(known))) return known;
  shard_driver_fail(d, base_oom(d->err, "propagation"));
  return NULL;
}

const sdy_rule *shard_driver_rule(shard_driver *d, const ir_op *op, const ir_type *type, uint32_t n) {
  const sdy_rule *made = NULL;
  base_arena_mark mark = base_arena_here(&d->maker.arena);
  d->maker.into = &d->maker.arena;
  shard_driver_fail(
      d, op ? shard_rule_make(&d->maker, op, &made, d->err) : shard_rule_identity(&d->maker, type, n, &made, d->err));
  if (made) made = rules_keep(d, made);
  base_arena_back(&d->maker.arena, mark);
  return made;
}

static const ir_mattr *rules_attr(shard_driver *d, const sdy_rule *rule) {
  const ir_mattr *a = base_map_ptr(&d->rule_attrs, rule);
  if (a) return a;
  a = sdy_attr(d->state.m, SDY_RULE, rule);
  return a && base_map_set(&d->rule_attrs, base_key(rule), base_key(a)) ? a : NULL;
}

int shard_store_rules(shard_driver *d, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, d->state.m) {
    IR_FOR_OPS(op, c) {
      if (op->id >= d->state.n_ids) continue;
      const sdy_rule *own = sdy_of(ir_mattr_of(op, "sdy.sharding_rule"), SDY_RULE);
      bool ok = true;
      if (d->options.keep_rules && !own && d->has_rule[op->id] == 1 && d->rules[op->id]) {
        const ir_mattr *rule = rules_attr(d, d->rules[op->id]);
        ok = rule && ir_m_set(op, "sdy.sharding_rule", rule);
      } else if (!d->options.keep_rules && own && !own->custom) {
        ok = ir_m_set(op, "sdy.sharding_rule", NULL);
      }
      if (!ok) return base_oom(err, "propagation");
    }
  }
  return 0;
}
