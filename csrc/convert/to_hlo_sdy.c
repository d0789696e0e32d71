/* Ops of the sdy dialect in HLO form. Those that only say something about shardings are their operands, whatever the
 * mesh. Those that would move data do nothing on a mesh of one device (or of none, as JAX writes for one device), and
 * are for the partitioner's passes on any other. */
#include "../ir/sdy/sdy.h"
#include "to_hlo.h"

/* Its mesh, kept for the next op: nearly all ops of a program are on one. */
static const sdy_mesh *one_device_mesh(to_hlo *t, const sdy_sharding *s) {
  if (!s->mesh_name) return s->mesh;
  if (t->mesh_name != s->mesh_name) {
    t->mesh_name = s->mesh_name;
    t->mesh = sdy_mesh_named(t->from, s->mesh_name);
  }
  return t->mesh;
}

static int one_device_refuse(to_hlo_op *x, int64_t devices) {
  int status = to_hlo_fail(x->t, x->op, XLAC_E_UNKNOWN_OPCODE,
                           "%s is on a mesh of %lld devices; HLO has no op for it, and it runs on one device only",
                           ir_op_table[x->op->opcode].mlir->name, (long long)devices);
  return base_hint(x->t->err, status,
                   "run sdy-propagation-pipeline, sdy-insert-explicit-reshards{enable-full-version=true}, "
                   "sdy-reshard-to-collectives, sdy-convert-global-to-local and sdy-drop-sharding-and-mesh first");
}

static int one_device_check(to_hlo_op *x, const sdy_sharding *s) {
  const sdy_mesh *mesh = s ? one_device_mesh(x->t, s) : NULL;
  int64_t devices = mesh ? sdy_mesh_size(mesh) : 1;
  return devices == 1 ? 0 : one_device_refuse(x, devices);
}

int to_hlo_sdy_note(to_hlo_op *x) {
  if (x->op->n_results) x->results[0] = x->operands[0];
  return 0;
}

int to_hlo_sdy_move(to_hlo_op *x) {
  TRY(one_device_check(x, sdy_of(ir_mattr_of(x->op, sdy_own_key(x->op)), SDY_SHARDING)));
  return to_hlo_sdy_note(x);
}

/* The region's ops in place of the op. What it uses from outside is there already. */
int to_hlo_sdy_named(to_hlo_op *x) {
  const ir_computation *region = x->op->called[0];
  assert(region->n_params == x->op->n_operands && region->n_results == x->op->n_results);
  for (uint32_t i = 0; i < region->n_params; i++) TRY(to_hlo_bind(x->t, region->params[i], &x->operands[i]));
  TRY(to_hlo_body(x->t, region, x->into));
  for (uint32_t i = 0; i < region->n_results; i++)
    if (!(x->results[i] = to_hlo_value(x->t, region->results[i])))
      return to_hlo_fail(x->t, x->op, XLAC_E_VERIFY_STRUCTURE, "its region returns a value that nothing defines");
  return 0;
}

static int one_device_check_all(to_hlo_op *x, const char *key) {
  const sdy_shardings *list = sdy_of(ir_mattr_of(x->op, key), SDY_SHARDINGS);
  for (uint32_t i = 0; list && i < list->n; i++) TRY(one_device_check(x, list->v[i]));
  return 0;
}

int to_hlo_sdy_manual(to_hlo_op *x) {
  TRY(one_device_check_all(x, "in_shardings"));
  TRY(one_device_check_all(x, "out_shardings"));
  return to_hlo_sdy_named(x);
}
