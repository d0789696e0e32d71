/* Reshards from one mesh to another: no collectives lead there where the meshes have other axes; nor where an axis is
 * taken apart in two ways that no third one refines ("a":(1)2 and "a":(3)2 of 6 devices). The array is gathered along
 * the axes that it has; what is whole on every device is on no mesh, and each takes its part of the other. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

static bool mesh_same_axes(const sdy_mesh *a, const sdy_mesh *b) {
  return sdy_mesh_equal(&(sdy_mesh){.n_axes = a->n_axes, .axes = a->axes},
                        &(sdy_mesh){.n_axes = b->n_axes, .axes = b->axes});
}

static bool mesh_axis_coexists(const sdy_sharding *s, sdy_axis axis) {
  for (uint32_t d = 0; d < s->n_dims; d++)
    for (uint32_t i = 0; i < s->dims[d].axes.n; i++)
      if (!sdy_axis_coexists(s->dims[d].axes.v[i], axis)) return false;
  return true;
}

static bool mesh_axes_coexist(const sdy_sharding *a, const sdy_sharding *b) {
  for (uint32_t d = 0; d < a->n_dims; d++)
    for (uint32_t i = 0; i < a->dims[d].axes.n; i++)
      if (!mesh_axis_coexists(b, a->dims[d].axes.v[i])) return false;
  return true;
}

/* Whether both shardings cut, on meshes that differ in more than the order of devices, or in ways that differ so. */
static bool mesh_changes(const ir_module *m, const sdy_sharding *from, const sdy_sharding *to) {
  const sdy_mesh *a = from ? sdy_mesh_of(m, from) : NULL, *b = to ? sdy_mesh_of(m, to) : NULL;
  if (!a || !b || sdy_sharding_is_replicated(to)) return false;
  if (from->unreduced.n || to->unreduced.n) return false;
  return !mesh_same_axes(a, b) || !mesh_axes_coexist(from, to);
}

static int mesh_split(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  if (op->opcode != IR_OP_SDY_RESHARD) return 0;
  ir_value v = opt_operand(op, 0);
  const sdy_sharding *from = sdy_shown(rw->m, v), *to = sdy_get((ir_value){op, 0});
  if (!from && to && ir_is_tensor(opt_type(v)) && to->n_dims == opt_type(v)->rank && v.op->opcode != IR_OP_PARAMETER &&
      !sdy_is_flow_op(v.op)) { /* so that collectives find one when this reshard is gone */
    const sdy_sharding *whole = sdy_sharding_empty(rw->m, to, to->n_dims, false);
    return whole && sdy_set(v, whole) ? 0 : -XLAC_E_OUT_OF_MEMORY;
  }
  if (!opt_is_static(opt_type(v)) || !mesh_changes(rw->m, from, to)) return 0;
  opt_at(rw, op);
  if (!sdy_sharding_is_replicated(from)) {
    const sdy_sharding *whole = sdy_sharding_empty(rw->m, from, from->n_dims, false);
    v = opt_make(rw, IR_OP_SDY_RESHARD, opt_type(v), 1, &v);
    rw->failed = rw->failed || !whole || !sdy_set(v, whole);
  }
  v = opt_make(rw, IR_OP_RESHAPE, opt_type(v), 1, &v); /* a value without a sharding */
  if (!rw->failed) ir_set_operand(op, 0, v);
  return rw->failed ? -XLAC_E_OUT_OF_MEMORY : 0;
}

int spmd_split_reshards(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, false, mesh_split, &rw);
  int ended = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "reshards between meshes");
  return status ? status : ended;
}
