/* Shardings that values have had, in the module: equal ones once. Programs have few different ones, and what comes
 * after propagation looks at each of them once. */
#include "state.h"

static uint64_t keep_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ (h >> 29);
}

static uint64_t keep_axes(uint64_t h, sdy_axes axes) {
  h = keep_mix(h, axes.n);
  for (uint32_t i = 0; i < axes.n; i++) {
    h = keep_mix(h, base_key(axes.v[i].name));
    if (axes.v[i].size) h = keep_mix(h, (uint64_t)axes.v[i].pre * 8191 + (uint64_t)axes.v[i].size);
  }
  return h;
}

static uint64_t keep_hash(const sdy_sharding *s) {
  uint64_t h = keep_mix(s->n_dims, s->mesh_name ? base_key(s->mesh_name) : base_key(s->mesh));
  for (uint32_t d = 0; d < s->n_dims; d++) {
    h = keep_axes(h, s->dims[d].axes);
    h = keep_mix(h, (uint64_t)s->dims[d].open + 2 * (uint64_t)(s->dims[d].priority + 1));
  }
  return keep_axes(keep_axes(h, s->replicated), s->unreduced);
}

const sdy_sharding *shard_state_keep(shard_state *s, const sdy_sharding *to) {
  uint64_t hash = keep_hash(to);
  uint64_t found = 0;
  const sdy_sharding *known = base_map_get(&s->kept, hash, &found) ? (const sdy_sharding *)(uintptr_t)found : NULL;
  if (known && sdy_sharding_equal(known, to)) return known;
  known = sdy_sharding_make(s->m, to);
  return known && base_map_set(&s->kept, hash, base_key(known)) ? known : NULL;
}

bool shard_state_write(shard_state *s, ir_value v, const sdy_sharding *to) {
  if (v.op->opcode == IR_OP_PARAMETER || v.op->n_results != 1 || sdy_own_key(v.op) || sdy_is_op(v.op))
    return sdy_set(v, to);
  const ir_mattr *list = base_map_ptr(&s->lists, to);
  if (!list) {
    sdy_shardings *one = BASE_NEW(&s->m->arena, sdy_shardings);
    const sdy_sharding **v = base_arena_memdup(&s->m->arena, &to, sizeof(const sdy_sharding *));
    if (!one || !v) return false;
    *one = (sdy_shardings){1, v};
    list = sdy_attr(s->m, SDY_SHARDINGS, one);
    if (!list || !base_map_set(&s->lists, base_key(to), base_key(list))) return false;
  }
  return ir_m_set(v.op, "sdy.sharding", list);
}
