/* Indexes of 64 bits that are only compared, or made another type: where all that they come to fits 32 bits, so does
 * what they are compared with or the comparison is left alone. A vector then has twice the lanes: triangles and bands
 * of matrices, causal masks. */
#include "native_inside.h"

/* Whether the value is a number of 32 bits in all iterations, and what it is made of, too. */
static bool narrow_fits(const kernel *k, uint32_t i, const bool *narrow) {
  const kernel_value *v = &k->values[i];
  int64_t least = 0, most = 0;
  if (v->dtype != XLAC_S64) return false;
  if (v->kind == KERNEL_COUNT_UP)
    return kernel_reach(k, v->index, &least, &most) && least > INT32_MIN && most <= INT32_MAX;
  if (v->kind == KERNEL_CONSTANT) {
    memcpy(&least, v->data, sizeof least);
    return least > INT32_MIN && least <= INT32_MAX;
  }
  return v->kind == KERNEL_OP && v->op.code == SCALAR_ABS && narrow[v->in[0]];
}

/* Whether value i may have operands of 32 bits in place of 64. */
static bool narrow_takes(const kernel *k, uint32_t i, const bool *narrow) {
  const kernel_value *v = &k->values[i];
  if (v->kind != KERNEL_OP) return false;
  if (v->op.code == SCALAR_COMPARE) return narrow[v->in[0]] && narrow[v->in[1]];
  return v->op.code == SCALAR_CONVERT || (v->op.code == SCALAR_ABS && narrow[i]);
}

/* Takes back what some user can't take. Returns whether anything was. */
static bool narrow_settle(const kernel *k, bool *narrow) {
  bool changed = false;
  for (uint32_t i = k->n_values; i-- > 0;) {
    const kernel_value *v = &k->values[i];
    bool takes = narrow_takes(k, i, narrow);
    if (v->kind == KERNEL_OP && v->op.code == SCALAR_ABS && narrow[i] && !narrow[v->in[0]])
      narrow[i] = false, changed = true;
    for (uint32_t j = 0; j < v->n_in; j++)
      if (narrow[v->in[j]] && !takes) narrow[v->in[j]] = false, changed = true;
  }
  return changed;
}

const kernel *nat_narrow(const kernel *k, base_arena *arena) {
  bool *narrow = base_arena_zalloc(arena, k->n_values + 1), any = false;
  for (uint32_t i = 0; narrow && i < k->n_values; i++) any |= narrow[i] = narrow_fits(k, i, narrow);
  if (!any) return k;
  for (uint32_t i = 0; i < k->n_stores; i++)
    narrow[k->stores[i].value] = false, narrow[k->stores[i].by ? k->stores[i].init : k->stores[i].value] = false;
  while (narrow_settle(k, narrow)) continue;
  kernel *to = base_arena_memdup(arena, k, sizeof *k);
  kernel_value *values = base_arena_memdup(arena, k->values, k->n_values * sizeof *values);
  if (!to || !values) return k;
  for (uint32_t i = 0; i < k->n_values; i++) {
    if (!narrow[i]) continue;
    values[i].dtype = XLAC_S32;
    if (values[i].kind != KERNEL_CONSTANT) continue;
    int64_t number = 0;
    memcpy(&number, values[i].data, sizeof number);
    if (!(values[i].data = base_arena_memdup(arena, &(int32_t){(int32_t)number}, sizeof(int32_t)))) return k;
  }
  to->values = values;
  return to;
}
