/* Op sharding rules against the operands and results of their op. */
#include <stdio.h>

#include "verify_sdy.h"

static char *sdyv_factor_text(int64_t factor, char *buf, size_t size) {
  int64_t z = 'z' - 'i';
  if (factor <= z)
    snprintf(buf, size, "%c", (char)('i' + factor));
  else
    snprintf(buf, size, "z_%lld", (long long)(factor - z));
  return buf;
}

typedef struct sdyv_factors {
  const sdy_rule *rule;
  bool *any, *one, *results; /* by factor: used anywhere, by the tensor at hand, by a result */
} sdyv_factors;

static int sdyv_check_factor(const sdyv *v, sdyv_where where, sdyv_factors *f, int64_t factor, uint32_t n) {
  uint32_t total = f->rule->sizes.n;
  if (factor < 0 || factor >= total)
    return sdyv_fail_in(v, where,
                        "expecting factor indices to be within 0<=...<num_factors; received: %lld, num_factors: %u",
                        (long long)factor, total);
  if (f->one[factor]) return sdyv_fail_in(v, where, "cannot reuse factors for the same tensor value");
  if (f->rule->sizes.v[factor] == 1 && n > 1)
    return sdyv_fail_in(v, where, "dim mapping can't have a factor of size 1 if there are multiple factors");
  f->one[factor] = f->any[factor] = true;
  return 0;
}

static int sdyv_check_map(const sdyv *v, sdyv_where where, sdyv_factors *f, const sdy_tensor_map *map,
                          const ir_type *type) {
  if (!ir_is_tensor(type) || type->has_dynamic)
    return sdyv_fail_in(v, where, "expected a ranked tensor with a static shape. type: %s", SV_SHOW(type));
  if (map->n_dims != type->rank)
    return sdyv_fail_in(v, where, "mapping rank must match: %u != %u", map->n_dims, type->rank);
  memset(f->one, 0, f->rule->sizes.n * sizeof *f->one);
  for (uint32_t d = 0; d < map->n_dims; d++) {
    sdy_ints factors = map->dims[d];
    if (factors.n == 0) return sdyv_fail_in(v, where, "dim mapping must have at least one factor");
    for (uint32_t i = 0; i < factors.n; i++) TRY(sdyv_check_factor(v, where, f, factors.v[i], factors.n));
  }
  return 0;
}

static int sdyv_check_maps(const sdyv *v, sdyv_factors *f, bool results) {
  const ir_op *op = v->op;
  uint32_t n = results ? op->n_results : op->n_operands;
  uint32_t have = results ? f->rule->n_results : f->rule->n_operands;
  const sdy_tensor_map *maps = results ? f->rule->results : f->rule->operands;
  const char *kind = results ? "result" : "operand";
  if (n != have) return sdyv_fail(v, "number of %ss and mappings must match: %u != %u", kind, n, have);
  if (n == 0)
    return sdyv_fail(v,
                     "number of %ss mappings cannot be 0. Op sharding rules can only be defined on operations with at "
                     "least one operand and result.",
                     kind);
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *type = results ? op->types[i] : ir_operand_type(op, i);
    sdyv_where where = {results ? "result " : "operand ", n > 1, n == 1, i};
    TRY(sdyv_check_map(v, where, f, &maps[i], type));
    for (uint32_t k = 0; results && k < f->rule->sizes.n; k++) f->results[k] = f->results[k] || f->one[k];
  }
  return 0;
}

static int sdyv_check_special(const sdyv *v, sdy_ints list, uint32_t total) {
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i - 1] > list.v[i]) return sdyv_fail(v, "indices of special factors must be sorted");
  for (uint32_t i = 1; i < list.n; i++)
    if (list.v[i - 1] == list.v[i]) return sdyv_fail(v, "indices of special factors must be unique");
  if (list.n && list.v[list.n - 1] >= total)
    return sdyv_fail(v, "index must be less than %u, got: %lld", total, (long long)list.v[list.n - 1]);
  return 0;
}

static int sdyv_check_kinds(const sdyv *v, sdyv_factors *f) {
  const sdy_rule *rule = f->rule;
  const sdy_ints kinds[] = {rule->reduction, rule->need_replication, rule->permutation};
  for (size_t i = 0; i < 3; i++) TRY(sdyv_check_special(v, kinds[i], rule->sizes.n));
  memset(f->one, 0, rule->sizes.n * sizeof *f->one);
  for (size_t i = 0; i < 3; i++)
    for (uint32_t k = 0; k < kinds[i].n; k++) {
      if (f->one[kinds[i].v[k]])
        return sdyv_fail(v,
                         "a factor can only be in one of the reduction, need replication, or permutation factor sets");
      f->one[kinds[i].v[k]] = true;
    }
  TRY(sdyv_check_special(v, rule->blocked, rule->sizes.n));
  for (uint32_t k = 0; k < rule->reduction.n; k++)
    if (f->results[rule->reduction.v[k]]) return sdyv_fail(v, "reduction factor cannot be in result mappings");
  return 0;
}

int sdyv_check_rule(sdyv *v, const sdy_rule *rule) {
  size_t n = rule->sizes.n + (size_t)1;
  bool *room = base_arena_zalloc(v->arena, n * 3);
  if (!room) return base_oom(v->err, "the check of a rule");
  sdyv_factors f = {rule, room, room + n, room + 2 * n};
  TRY(sdyv_check_maps(v, &f, false));
  TRY(sdyv_check_maps(v, &f, true));
  for (uint32_t i = 0; i < rule->sizes.n; i++)
    if (!f.any[i])
      return sdyv_fail(v, "has factor %s=%lld that isn't used in operand and result mappings",
                       sdyv_factor_text(i, (char[32]){0}, 32), (long long)rule->sizes.v[i]);
  return sdyv_check_kinds(v, &f);
}
