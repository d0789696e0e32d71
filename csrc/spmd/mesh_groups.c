/* Replica groups that are said by axes of a mesh, as JAX 0.11 writes them for its collectives:
 *   sdy.mesh @mesh = <["x"=2, "y"=2]>    replica_group_mesh_axes<mesh = @mesh, axes = ["x"]>    [[0, 2], [1, 3]]
 * The program of one device has no meshes, so groups become lists of devices before. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

/* Consecutive places of the mesh along a (part of an) axis are `stride` apart. */
typedef struct groups_part {
  sdy_axis axis;
  int64_t size, stride;
} groups_part;

static int64_t groups_field(const ir_mattr *a, const char *key) {
  const ir_mattr *v = a ? ir_m_field(a, key) : NULL;
  return v && v->kind == IR_M_INTEGER ? v->v.i : 0;
}

/* An axis in Shardy's words, or in StableHLO's (#stablehlo.axis_ref). False: the mesh has none like it. */
static bool groups_part_of(const ir_mattr *a, const sdy_mesh *mesh, groups_part *out) {
  const sdy_axis *own = sdy_of(a, SDY_AXIS);
  const ir_mattr *name = own || a->kind != IR_M_STRUCT ? NULL : ir_m_field(a, "name");
  const ir_mattr *part = name ? ir_m_field(a, "sub_axis_info") : NULL;
  if (!own && (!name || !name->str)) return false;
  sdy_axis axis = own ? *own : (sdy_axis){name->str, groups_field(part, "pre_size"), groups_field(part, "size")};
  int at = sdy_mesh_find(mesh, axis.name);
  if (at < 0) return false;
  int64_t full = mesh->axes[at].size, pre = sdy_axis_pre(axis), size = axis.size ? axis.size : full;
  if (pre <= 0 || size <= 0 || full % pre || full / pre % size) return false;
  *out = (groups_part){axis, size, full / pre / size};
  for (uint32_t i = (uint32_t)at + 1; i < mesh->n_axes; i++) out->stride *= mesh->axes[i].size;
  return true;
}

/* The parts of `axes` in their order, none twice. NULL: the mesh does not have them, or memory has run out. */
static groups_part *groups_parts(opt_rewriter *rw, const ir_mattr *axes, const sdy_mesh *mesh) {
  uint32_t n = axes->v.list->n;
  groups_part *parts = BASE_ARRAY(&rw->arena, groups_part, (size_t)n + 1);
  for (uint32_t i = 0; parts && i < n; i++) {
    if (!groups_part_of(axes->v.list->v[i], mesh, &parts[i])) return NULL;
    for (uint32_t k = 0; k < i; k++)
      if (sdy_axis_overlaps(parts[k].axis, parts[i].axis)) return NULL;
  }
  return parts;
}

/* Devices that differ only along the parts are a group, in the order of the parts; groups are in the mesh's order. */
static const ir_mattr *groups_dense(opt_rewriter *rw, const sdy_mesh *mesh, const groups_part *parts, uint32_t n) {
  int64_t devices = sdy_mesh_size(mesh), size = 1, groups = 0;
  int64_t *list = BASE_ARRAY(&rw->arena, int64_t, (size_t)devices + 1);
  int64_t *number = BASE_ARRAY(&rw->arena, int64_t, (size_t)devices + 1); /* of the group that begins at a place */
  for (uint32_t i = 0; i < n; i++) size *= parts[i].size;
  assert(devices % size == 0);
  if (!list || !number) return NULL;
  for (int64_t place = 0; place < devices; place++) {
    int64_t member = 0, first = place;
    for (uint32_t i = 0; i < n; i++) {
      int64_t along = place / parts[i].stride % parts[i].size;
      member = member * parts[i].size + along;
      first -= along * parts[i].stride;
    }
    if (first == place) number[place] = groups++;
    assert(first >= 0 && first <= place);
    list[number[first] * size + member] = mesh->n_ids ? mesh->ids[place] : place;
  }
  int64_t dims[] = {devices / size, size};
  return ir_m_dense_i64(rw->m, 2, dims, list);
}

static int groups_lower(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  const ir_mattr *groups = ir_mattr_of(op, "replica_groups");
  if (!groups || groups->kind != IR_M_STRUCT) return 0;
  const ir_mattr *name = ir_m_field(groups, "mesh"), *axes = ir_m_field(groups, "axes");
  bool named = name && name->kind == IR_M_SYMBOL && axes && axes->kind == IR_M_ARRAY;
  const sdy_mesh *mesh = named ? sdy_mesh_named(rw->m, name->v.list->v[0]->str) : NULL;
  if (!mesh || sdy_mesh_size(mesh) > SPMD_MOST_REHEARSED) return 0; /* verifying tells of it */
  const groups_part *parts = groups_parts(rw, axes, mesh);
  if (!parts)
    return base_fail(rw->err, XLAC_E_VERIFY_COLLECTIVE, "replica groups are along axes that @%s does not have",
                     name->v.list->v[0]->str->s);
  const ir_mattr *dense = groups_dense(rw, mesh, parts, axes->v.list->n);
  return dense && ir_m_set(op, "replica_groups", dense) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

int spmd_list_groups(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, false, groups_lower, &rw);
  int ended = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "replica groups");
  return status ? status : ended;
}
