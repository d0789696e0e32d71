/* sdy-remove-size-one-axes: axes of size 1 leave all shardings; meshes keep them.
 * Requires: nothing. Preserves: all else. */
#include "../common/common.h"

typedef struct imp_size_one {
  ir_module *m;
} imp_size_one;

static bool imp_drop_ones(ir_module *m, sdy_axes *a, const sdy_mesh *mesh, bool *changed) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->n; i++) n += sdy_axis_size(a->v[i], mesh) != 1;
  if (n == a->n) return true;
  sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, (size_t)n + 1);
  if (!v) return false;
  n = 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (sdy_axis_size(a->v[i], mesh) != 1) v[n++] = a->v[i];
  *a = (sdy_axes){n, v};
  *changed = true;
  return true;
}

static const sdy_sharding *imp_size_one_map(void *ctx, const sdy_sharding *s) {
  ir_module *m = ((imp_size_one *)ctx)->m;
  const sdy_mesh *mesh = sdy_mesh_of(m, s);
  if (!mesh) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  bool changed = false, ok = to && dims;
  for (uint32_t i = 0; ok && i < s->n_dims; i++) {
    ok = imp_drop_ones(m, &dims[i].axes, mesh, &changed);
    /* A dimension without axes that takes none has no use for a priority. */
    if (dims[i].axes.n == 0 && !dims[i].open) dims[i].priority = -1;
  }
  ok = ok && imp_drop_ones(m, &to->replicated, mesh, &changed) && imp_drop_ones(m, &to->unreduced, mesh, &changed);
  if (!ok) return NULL;
  to->dims = dims;
  return changed ? to : s;
}

static bool imp_has_ones(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const sdy_mesh *mesh = sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH);
    for (uint32_t i = 0; i < mesh->n_axes; i++)
      if (mesh->axes[i].size == 1) return true;
  }
  return false;
}

int shard_remove_size_one_axes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_size_one x = {m};
  return imp_has_ones(m) ? shc_map(m, imp_size_one_map, &x, err) : 0;
}
