/* sdy-inline-meshes: shardings hold their meshes, and no mesh has a name any more.
 * Requires: nothing else that names meshes; replica groups would be left without theirs, which is an error. Preserves:
 * all else. */
#include "../common/common.h"

static const sdy_sharding *exp_inline_map(void *ctx, const sdy_sharding *s) {
  ir_module *m = ctx;
  const sdy_mesh *mesh = s->mesh_name ? sdy_mesh_named(m, s->mesh_name) : NULL;
  if (!mesh) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  if (!to) return NULL;
  to->mesh_name = NULL;
  to->mesh = mesh;
  return to;
}

int shard_inline_meshes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  TRY(shc_map(m, exp_inline_map, m, err));
  shc_drop_meshes(m);
  return shc_verify(m, err);
}
