/* Groups of devices along axes, as StableHLO's collectives have them. */
#include <stdlib.h>

#include "local.h"

const ir_mattr *local_channel(local_pass *p) {
  ir_module *m = p->rw.m;
  ir_mentry fields[] = {{ir_intern(m, "handle", 6), ir_m_i64(m, p->channel++)},
                        {ir_intern(m, "type", 4), ir_m_i64(m, 1)}};
  for (int i = 0; i < 2; i++)
    if (!fields[i].key || !fields[i].value) return NULL;
  return ir_m_struct(m, "stablehlo", "channel_handle", 2, fields);
}

static int local_by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The places where one axis is cut, ascending, from 1 to its end: at most 2n + 2. */
static uint32_t local_cuts(const sdy_mesh *mesh, uint32_t axis, sdy_axes all, int64_t *v) {
  uint32_t n = 0, kept = 0;
  v[n++] = 1;
  v[n++] = mesh->axes[axis].size;
  for (uint32_t i = 0; i < all.n; i++) {
    if (all.v[i].name != mesh->axes[axis].name || !all.v[i].size) continue;
    v[n++] = all.v[i].pre;
    v[n++] = sdy_axis_end(all.v[i], mesh);
  }
  qsort(v, n, sizeof *v, local_by_value);
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || v[kept - 1] != v[i]) v[kept++] = v[i];
  return kept;
}

sdy_axes local_ordered(local_pass *p, const sdy_mesh *mesh, sdy_axes all) {
  size_t most = (size_t)mesh->n_axes + 2 * (size_t)all.n + 2;
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, most);
  int64_t *cuts = BASE_ARRAY(&p->rw.arena, int64_t, most);
  uint32_t n = 0;
  p->rw.failed = p->rw.failed || !v || !cuts;
  for (uint32_t i = 0; !p->rw.failed && i < mesh->n_axes; i++) {
    uint32_t k = local_cuts(mesh, i, all, cuts);
    if (k == 1) v[n++] = (sdy_axis){mesh->axes[i].name, 0, 0}; /* of size 1 */
    for (uint32_t c = 0; c + 1 < k; c++) v[n++] = sdy_axis_span(mesh->axes[i].name, cuts[c], cuts[c + 1], mesh);
  }
  return (sdy_axes){p->rw.failed ? 0 : n, v};
}

static bool local_has_axis(sdy_axes all, sdy_axis a) {
  for (uint32_t i = 0; i < all.n; i++)
    if (sdy_axis_equal(all.v[i], a)) return true;
  return false;
}

/* #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]> */
static const ir_mattr *local_mesh_axes(local_pass *p, const sdy_sharding *on, sdy_axes axes) {
  ir_module *m = p->rw.m;
  const ir_mattr **list = BASE_ARRAY(&p->rw.arena, const ir_mattr *, (size_t)axes.n + 1);
  if (!list) return NULL;
  for (uint32_t i = 0; i < axes.n; i++) {
    sdy_axis *one = BASE_NEW(&m->arena, sdy_axis);
    if (!one) return NULL;
    *one = axes.v[i];
    if (!(list[i] = sdy_attr(m, SDY_AXIS, one))) return NULL;
  }
  const ir_mattr *mesh =
      on->mesh_name ? ir_m_symbol(m, on->mesh_name->s, on->mesh_name->n) : sdy_attr(m, SDY_MESH, on->mesh);
  ir_mentry fields[] = {{ir_intern(m, "mesh", 4), mesh}, {ir_intern(m, "axes", 4), ir_m_array(m, axes.n, list)}};
  for (int i = 0; i < 2; i++)
    if (!fields[i].key || !fields[i].value) return NULL;
  return ir_m_struct(m, "stablehlo", "replica_group_mesh_axes", 2, fields);
}

/* Devices that differ only along the axes are a group, in the order of the axes; groups are in the mesh's order. */
static const ir_mattr *local_dense_groups(local_pass *p, const sdy_mesh *mesh, sdy_axes axes, int64_t devices,
                                          int64_t size) {
  sdy_axes parts = local_ordered(p, mesh, axes);
  int64_t *v = BASE_ARRAY(&p->rw.arena, int64_t, (size_t)devices + 1);
  if (!v || p->rw.failed) return NULL;
  for (int64_t place = 0; place < devices; place++) {
    int64_t group = 0, member = 0, stride = devices;
    for (uint32_t i = 0; i < parts.n; i++) {
      int64_t n = sdy_axis_size(parts.v[i], mesh);
      stride /= n;
      if (!local_has_axis(axes, parts.v[i])) group = group * n + place / stride % n;
    }
    for (uint32_t i = 0; i < axes.n; i++) {
      int64_t n = sdy_axis_size(axes.v[i], mesh), at = devices;
      for (uint32_t k = 0; k < parts.n; k++) {
        at /= sdy_axis_size(parts.v[k], mesh);
        if (sdy_axis_equal(parts.v[k], axes.v[i])) break;
      }
      member = member * n + place / at % n;
    }
    v[group * size + member] = mesh->n_ids ? mesh->ids[place] : place;
  }
  int64_t dims[] = {devices / size, size};
  return ir_m_dense_i64(p->rw.m, 2, dims, v);
}

const ir_mattr *local_groups(local_pass *p, const ir_op *op, const sdy_sharding *on, sdy_axes axes, int64_t *size) {
  const sdy_mesh *mesh = sdy_mesh_of(p->rw.m, on);
  int64_t devices = mesh ? sdy_mesh_size(mesh) : 0;
  *size = mesh ? sdy_axes_size(axes, mesh) : 1;
  if (!mesh || devices > LOCAL_MAX_DEVICES || devices % *size) {
    (void)local_fail(p, op, "a mesh of %lld devices can't be grouped: there may be at most %d", (long long)devices,
                     LOCAL_MAX_DEVICES);
    return NULL;
  }
  const ir_mattr *a = p->mesh_axes ? local_mesh_axes(p, on, axes) : local_dense_groups(p, mesh, axes, devices, *size);
  p->rw.failed = p->rw.failed || !a;
  return a;
}
