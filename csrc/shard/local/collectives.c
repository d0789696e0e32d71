/* The dialect's collectives as StableHLO's, for sdy-convert-global-to-local: groups of devices along axes;
 * all_gather, all_reduce, all_slice and reduce_scatter; all_to_all and collective_permute. Where an op of the dialect
 * concerns several dimensions at once, and StableHLO's one, parts are brought together along one dimension by
 * reshapes and transposes. */
#include <stdlib.h>

#include "../../base/list.h"
#include "local.h"

/* Groups of devices along axes, as StableHLO's collectives have them. */

/* A structure of StableHLO's with two fields. */
static const ir_mattr *local_pair(ir_module *m, const char *name, const char *const *keys, const ir_mattr *first,
                                  const ir_mattr *second) {
  ir_mentry fields[] = {{ir_intern(m, keys[0], strlen(keys[0])), first},
                        {ir_intern(m, keys[1], strlen(keys[1])), second}};
  for (int i = 0; i < 2; i++)
    if (!fields[i].key || !fields[i].value) return NULL;
  return ir_m_struct(m, "stablehlo", name, 2, fields);
}

/* Channels are counted over the module, after those that the program has already; type 1 is device to device.
 * Devices are numbered row-major over the mesh: on <["x"=2, "y"=2]> device 2 is x = 1, y = 0. A group along axes has
 * one device for each place along them, in major to minor order, and there is one group for each place along all
 * others. */
const ir_mattr *local_channel(local_pass *p) {
  static const char *const keys[] = {"handle", "type"};
  ir_module *m = p->rw.m;
  return local_pair(m, "channel_handle", keys, ir_m_i64(m, p->channel++), ir_m_i64(m, 1));
}

/* For qsort; subtraction could overflow. */
static int local_by_value(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* The places where one axis is cut, ascending, from 1 to its end: at most 2n + 2. An axis of 8 with "x":(2)2 among
 * `all` is cut at 1, 2, 4, 8. */
static uint32_t local_cuts(const sdy_mesh *mesh, uint32_t axis, sdy_axes all, int64_t *v) {
  assert(axis < mesh->n_axes);
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

/* Whether one of the axes has this part. */
static bool local_within(sdy_axes all, sdy_axis part) {
  for (uint32_t i = 0; i < all.n; i++)
    if (sdy_axis_contains(all.v[i], part)) return true;
  return false;
}

/* Each axis of the mesh is cut wherever one of `all` begins or ends, and the pieces are listed major to minor. Groups
 * of devices can then be counted piece by piece, whatever sub-axes the ops name. */
sdy_axes local_ordered(local_pass *p, const sdy_mesh *mesh, sdy_axes all) {
  size_t most = (size_t)mesh->n_axes + 2 * (size_t)all.n + 2;
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, most);
  int64_t *cuts = BASE_ARRAY(&p->rw.arena, int64_t, most);
  uint32_t n = 0;
  p->rw.failed = p->rw.failed || !v || !cuts;
  for (uint32_t i = 0; !p->rw.failed && i < mesh->n_axes; i++) {
    uint32_t k = local_cuts(mesh, i, all, cuts);
    assert(k >= 1);
    if (k == 1) v[n++] = (sdy_axis){mesh->axes[i].name, 0, 0}; /* of size 1 */
    for (uint32_t c = 0; c + 1 < k; c++) {
      sdy_axis part = sdy_axis_span(mesh->axes[i].name, cuts[c], cuts[c + 1], mesh);
      if (!p->rehearsal || local_within(all, part)) v[n++] = part;
    }
  }
  return (sdy_axes){p->rw.failed ? 0 : n, v};
}

/* Exactly this axis or sub-axis, not a part of one. */
static bool local_has_axis(sdy_axes all, sdy_axis a) {
  for (uint32_t i = 0; i < all.n; i++)
    if (sdy_axis_equal(all.v[i], a)) return true;
  return false;
}

/* #stablehlo.mesh_axis<name = "x", size = 2> */
static const ir_mattr *local_sized(ir_module *m, const base_istr *name, int64_t size) {
  static const char *const keys[] = {"name", "size"};
  return local_pair(m, "mesh_axis", keys, ir_m_string(m, name->s, name->n), ir_m_i64(m, size));
}

/* #stablehlo.mesh<axes = [...]>: the program of a rehearsal has no meshes, so this one is written in place. The order
 * of its devices, a list of all of them, is left out. */
static const ir_mattr *local_own_mesh(local_pass *p, const sdy_mesh *mesh) {
  ir_module *m = p->rw.m;
  const ir_mattr **list = BASE_ARRAY(&p->rw.arena, const ir_mattr *, (size_t)mesh->n_axes + 1);
  for (uint32_t i = 0; list && i < mesh->n_axes; i++)
    if (!(list[i] = local_sized(m, mesh->axes[i].name, mesh->axes[i].size))) return NULL;
  ir_mentry field = {ir_intern(m, "axes", 4), list ? ir_m_array(m, mesh->n_axes, list) : NULL};
  return field.key && field.value ? ir_m_struct(m, "stablehlo", "mesh", 1, &field) : NULL;
}

/* #stablehlo.axis_ref<name = "x", sub_axis_info = #stablehlo.sub_axis_info<pre_size = 1, size = 2>> */
static const ir_mattr *local_own_axis(ir_module *m, sdy_axis a) {
  static const char *const outer[] = {"name", "sub_axis_info"}, *const inner[] = {"pre_size", "size"};
  const ir_mattr *name = ir_m_string(m, a.name->s, a.name->n);
  ir_mentry field = {ir_intern(m, "name", 4), name};
  if (a.size)
    return local_pair(m, "axis_ref", outer, name,
                      local_pair(m, "sub_axis_info", inner, ir_m_i64(m, a.pre), ir_m_i64(m, a.size)));
  return field.key && name ? ir_m_struct(m, "stablehlo", "axis_ref", 1, &field) : NULL;
}

/* "x" */
static const ir_mattr *local_sdy_axis(ir_module *m, sdy_axis a) {
  sdy_axis *one = base_arena_memdup(&m->arena, &a, sizeof a);
  return one ? sdy_attr(m, SDY_AXIS, one) : NULL;
}

/* #stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>
 * The axes as they are; the mesh by name where it has one, and where that will be there. */
static const ir_mattr *local_mesh_axes(local_pass *p, const sdy_sharding *on, sdy_axes axes) {
  static const char *const keys[] = {"mesh", "axes"};
  ir_module *m = p->rw.m;
  const ir_mattr **list = BASE_ARRAY(&p->rw.arena, const ir_mattr *, (size_t)axes.n + 1);
  if (!list) return NULL;
  for (uint32_t i = 0; i < axes.n; i++)
    if (!(list[i] = p->rehearsal ? local_own_axis(m, axes.v[i]) : local_sdy_axis(m, axes.v[i]))) return NULL;
  const ir_mattr *mesh = p->rehearsal    ? local_own_mesh(p, sdy_mesh_of(m, on))
                         : on->mesh_name ? ir_m_symbol(m, on->mesh_name->s, on->mesh_name->n)
                                         : sdy_attr(m, SDY_MESH, on->mesh);
  return local_pair(m, "replica_group_mesh_axes", keys, mesh, ir_m_array(m, axes.n, list));
}

/* Devices that differ only along the axes are a group, in the order of the axes; groups are in the mesh's order. On
 * <["x"=2, "y"=2]>, groups along "y" are [[0, 1], [2, 3]], along "x" [[0, 2], [1, 3]]. */
static const ir_mattr *local_dense_groups(local_pass *p, const sdy_mesh *mesh, sdy_axes axes, int64_t devices,
                                          int64_t size) {
  sdy_axes parts = local_ordered(p, mesh, axes);
  assert(size > 0 && devices % size == 0);
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
    assert(group * size + member < devices || p->rw.failed);
  }
  int64_t dims[] = {devices / size, size};
  return ir_m_dense_i64(p->rw.m, 2, dims, v);
}

/* Dense groups name every device, hence the limit; mesh_axes names axes instead. */
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

/* The dialect's collectives as StableHLO's. */

/* Every collective of the dialect says the sharding that it results in. */
static const sdy_sharding *loccol_out(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
}

/* How a reduction combines: sum unless the op says max or min. */
static ir_opcode loccol_combiner(const ir_op *op) {
  int64_t kind = ir_m_get_int(op, "reduction_op", SDY_SUM);
  return kind == SDY_MAX ? IR_OP_MAXIMUM : kind == SDY_MIN ? IR_OP_MINIMUM : IR_OP_ADD;
}

/* global: use_global_device_ids, which collectives with partitions as devices need; all_to_all has no such attribute.
 */
static void loccol_attributes(local_pass *p, ir_value v, const ir_mattr *groups, bool global) {
  opt_set(&p->rw, v, "replica_groups", groups);
  opt_set(&p->rw, v, "channel_handle", local_channel(p));
  if (global) opt_set(&p->rw, v, "use_global_device_ids", ir_m_unit(p->rw.m));
}

/* --- all_gather --- */

/* One StableHLO all_gather along `dim`, over groups of `size` devices. */
static ir_value loccol_gather(local_pass *p, ir_value v, uint32_t dim, const ir_mattr *groups, int64_t size) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK] = {0};
  if (!t) return v;
  local_copy(dims, t->dims, t->rank);
  dims[dim] *= size;
  assert(dim < t->rank);
  if (p->uneven && t->count == 0) return local_resize(p, v, dims); /* nothing of anybody's */
  ir_value out = opt_make(rw, IR_OP_ALL_GATHER, local_shape(p, t, t->rank, dims), 1, &v);
  opt_set(rw, out, "all_gather_dim", ir_m_i64(rw->m, dim));
  loccol_attributes(p, out, groups, true);
  return out;
}

/* One gather after another, the minor dimension first, as Shardy does with per-dim-all-gather. */
static ir_value loccol_gather_each(local_pass *p, ir_op *op, const sdy_sharding *on, const sdy_axes *lists,
                                   ir_value v) {
  uint32_t rank = opt_type(v)->rank;
  for (uint32_t d = rank; d-- > 0;) {
    int64_t size = 1;
    if (lists[d].n == 0) continue;
    const ir_mattr *groups = local_groups(p, op, on, lists[d], &size);
    if (!groups) return (ir_value){NULL, 0};
    v = loccol_gather(p, v, d, groups, size);
  }
  return v;
}

/* Axes of all dimensions, one after the other; how many devices each dimension has, in sizes. */
static sdy_axes loccol_join(local_pass *p, const sdy_mesh *mesh, uint32_t n, const sdy_axes *lists, int64_t *sizes) {
  uint32_t total = 0, at = 0;
  for (uint32_t d = 0; d < n; d++) total += lists[d].n;
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)total + 1);
  p->rw.failed = p->rw.failed || !v;
  for (uint32_t d = 0; d < n; d++) {
    sizes[d] = sdy_axes_size(lists[d], mesh);
    for (uint32_t i = 0; v && i < lists[d].n; i++) v[at++] = lists[d].v[i];
  }
  return (sdy_axes){v ? at : 0, v};
}

/* All dimensions at once: along a new first one, whose parts then go where they belong. */
static ir_value loccol_gather_joined(local_pass *p, ir_op *op, const sdy_sharding *on, const sdy_axes *lists,
                                     ir_value v) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v);
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, on);
  int64_t sizes[IR_MAX_RANK], dims[2 * IR_MAX_RANK + 1], permutation[2 * IR_MAX_RANK], group = 1;
  uint32_t rank = t->rank, n_split = 0, k = 0;
  sdy_axes all = loccol_join(p, mesh, rank, lists, sizes);
  for (uint32_t d = 0; d < rank; d++) n_split += lists[d].n != 0;
  if (rank + n_split > IR_MAX_RANK) return loccol_gather_each(p, op, on, lists, v);
  dims[0] = 1;
  local_copy(dims + 1, t->dims, rank);
  v = opt_reshape(rw, v, local_shape(p, t, rank + 1, dims));
  const ir_mattr *groups = rw->failed ? NULL : local_groups(p, op, on, all, &group);
  if (!groups) return (ir_value){NULL, 0};
  v = loccol_gather(p, v, 0, groups, group);
  /* The gathered dimension is split into one for each dimension of `lists`, which a transpose puts in front of its
   * own. */
  for (uint32_t d = 0, f = 0; d < rank; d++) {
    if (lists[d].n) {
      dims[f] = sizes[d];
      permutation[k++] = f++;
    }
    permutation[k++] = n_split + d;
  }
  local_copy(dims + n_split, t->dims, rank);
  v = opt_reshape(rw, v, local_shape(p, t, rank + n_split, dims));
  v = rw->failed ? v : opt_transpose(rw, v, permutation);
  for (uint32_t d = 0; d < rank; d++) dims[d] = t->dims[d] * (lists[d].n ? sizes[d] : 1);
  return opt_reshape(rw, v, local_shape(p, t, rank, dims));
}

/* One dimension needs no detour, and more dimensions than the IR has room for can't take it. */
static ir_value loccol_gather_all(local_pass *p, ir_op *op, const sdy_sharding *on, const sdy_axes *lists, ir_value v) {
  uint32_t n = 0;
  if (!v.op) return v;
  for (uint32_t d = 0; d < opt_type(v)->rank; d++) n += lists[d].n != 0;
  return p->per_dim || n <= 1 ? loccol_gather_each(p, op, on, lists, v) : loccol_gather_joined(p, op, on, lists, v);
}

ir_value local_gathered(local_pass *p, ir_op *op, const sdy_mesh *mesh, const sdy_axes *lists, ir_value v) {
  const sdy_sharding on = {.mesh = mesh};
  return loccol_gather_all(p, op, &on, lists, v);
}

/* --- uneven dimensions --- */

/* A dimension that gets other axes, and that its shards before or after do not divide: other axes put its elements
 * elsewhere. */
static bool loccol_is_uneven(const local_pass *p, const ir_op *op) {
  const local_fact *in = local_operand(p, op, 0), *out = local_result(p, op, 0);
  const sdy_sharding *to = loccol_out(op);
  const sdy_mesh *mesh = sdy_mesh_of(p->rw.m, to);
  for (uint32_t d = 0; p->uneven && mesh && d < out->type->rank; d++) {
    sdy_axes a = local_axes(in->s, d), b = local_axes(to, d);
    int64_t size = out->type->dims[d];
    if (!sdy_axes_equal(a, b) && (size % sdy_axes_size(a, mesh) || size % sdy_axes_size(b, mesh))) return true;
  }
  return false;
}

/* From one sharding to another by way of dimensions that are whole. */
static ir_value loccol_moved(local_pass *p, ir_op *op, ir_value v) {
  const local_fact *in = local_operand(p, op, 0);
  const sdy_sharding *to = loccol_out(op);
  const ir_type *whole = in->type, *type = NULL;
  sdy_axes gathered[IR_MAX_RANK], cut[IR_MAX_RANK], none = {0, NULL};
  int64_t dims[IR_MAX_RANK] = {0};
  if (local_type(p, op, local_result(p, op, 0), &type)) return (ir_value){NULL, 0};
  for (uint32_t d = 0; d < whole->rank; d++) {
    bool same = sdy_axes_equal(local_axes(in->s, d), local_axes(to, d));
    gathered[d] = same ? none : local_axes(in->s, d);
    cut[d] = same ? none : local_axes(to, d);
    dims[d] = same ? type->dims[d] : whole->dims[d];
  }
  v = local_resize(p, loccol_gather_all(p, op, to, gathered, v), dims);
  return v.op ? local_cut(p, op, sdy_mesh_of(p->rw.m, to), cut, v, type) : v;
}

static int loccol_move(local_pass *p, ir_op *op, ir_value v) {
  return local_done(p, op, loccol_moved(p, op, v));
}

int local_all_gather(local_pass *p, ir_op *op) {
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "gathering_axes"), SDY_AXIS_LISTS);
  if (loccol_is_uneven(p, op)) return loccol_move(p, op, opt_operand(op, 0));
  return local_done(p, op, loccol_gather_all(p, op, loccol_out(op), lists->v, opt_operand(op, 0)));
}

/* --- all_reduce, all_slice --- */

/* An all_reduce of v with the op's combiner, of result type `type`. */
static int loccol_reduce(local_pass *p, ir_op *op, ir_value v, const ir_type *type, sdy_axes axes, ir_value *out) {
  opt_rewriter *rw = &p->rw;
  int64_t size = 1;
  const ir_mattr *groups = local_groups(p, op, loccol_out(op), axes, &size);
  if (!groups) return local_status(p);
  ir_op *made = opt_make_n(rw, IR_OP_ALL_REDUCE, 1, &type, 1, &v, 1);
  *out = (ir_value){made, 0};
  loccol_attributes(p, *out, groups, true);
  if (made) opt_make_reducer(rw, made, loccol_combiner(op), opt_tensor(rw, (base_dtype)type->dtype, 0, NULL));
  return opt_rewriter_status(rw);
}

/* The sharding does not change, so the type is that of the operand's shard. */
int local_all_reduce(local_pass *p, ir_op *op) {
  const sdy_axes *axes = sdy_of(ir_mattr_of(op, "reduction_axes"), SDY_AXES);
  const ir_type *type = NULL;
  ir_value v;
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  TRY(loccol_reduce(p, op, opt_operand(op, 0), type, *axes, &v));
  return local_done(p, op, v);
}

/* Without communication: each device takes its part of what it has. */
static int loccol_cut(local_pass *p, ir_op *op, const sdy_axes *lists, ir_value v) {
  const ir_type *type = NULL;
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  v = local_cut(p, op, sdy_mesh_of(p->rw.m, loccol_out(op)), lists, v, type);
  return v.op ? local_done(p, op, v) : local_status(p);
}

/* Nothing is sent: each device cuts its own part out of what it has. */
int local_all_slice(local_pass *p, ir_op *op) {
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "slicing_axes"), SDY_AXIS_LISTS);
  if (loccol_is_uneven(p, op)) return loccol_move(p, op, opt_operand(op, 0));
  return loccol_cut(p, op, lists->v, opt_operand(op, 0));
}

/* --- to unreduced axes: without communication --- */

/* Of the devices along the axes the first keeps the value; all others have zeros, which add nothing. A largest or
 * smallest one does not mind how many have it. */
static int loccol_keep_first(local_pass *p, ir_op *op, ir_value v, sdy_axes axes) {
  opt_rewriter *rw = &p->rw;
  const sdy_sharding *out = loccol_out(op);
  if (!v.op || out->reduction != SDY_SUM) return local_done(p, op, v);
  ir_value place = local_offset(p, op, sdy_mesh_of(rw->m, out), axes, 1);
  if (!place.op) return local_status(p);
  ir_value first = opt_compare(rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, place, local_scalar(p, XLAC_S64, 0));
  return local_done(p, op, opt_select(rw, first, v, opt_splat(rw, opt_type(v), 0)));
}

int local_replicated_to_unreduced(local_pass *p, ir_op *op) {
  return loccol_keep_first(p, op, opt_operand(op, 0), *(const sdy_axes *)sdy_of(ir_mattr_of(op, "axes"), SDY_AXES));
}

/* Each shard where it is in the whole, and zeros around it. */
int local_sharded_to_unreduced(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "axes"), SDY_AXIS_LISTS);
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, loccol_out(op));
  const ir_type *type = NULL, *part = opt_type(opt_operand(op, 0));
  ir_value all[IR_MAX_RANK + 2];
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  assert(lists->n == type->rank && part->rank == type->rank);
  if (loccol_is_uneven(p, op)) {
    int64_t sizes[IR_MAX_RANK];
    return loccol_keep_first(p, op, loccol_moved(p, op, opt_operand(op, 0)),
                             loccol_join(p, mesh, lists->n, lists->v, sizes));
  }
  all[0] = opt_splat(rw, type, 0);
  all[1] = opt_operand(op, 0);
  for (uint32_t d = 0; d < type->rank; d++) {
    sdy_axes axes = lists->v[d];
    all[d + 2] = axes.n ? local_offset(p, op, mesh, axes, part->dims[d]) : local_scalar(p, XLAC_S64, 0);
    if (!all[d + 2].op) return local_status(p);
  }
  return local_done(p, op, opt_make(rw, IR_OP_DYNAMIC_UPDATE_SLICE, type, type->rank + 2, all));
}

/* --- reduce_scatter --- */

/* One StableHLO reduce_scatter along `dim`. */
static ir_value loccol_scatter(local_pass *p, ir_op *op, ir_value v, const ir_type *type, uint32_t dim,
                               const ir_mattr *groups) {
  opt_rewriter *rw = &p->rw;
  ir_op *made = opt_make_n(rw, IR_OP_REDUCE_SCATTER, 1, &type, 1, &v, 1);
  ir_value out = {made, 0};
  opt_set(rw, out, "scatter_dimension", ir_m_i64(rw->m, dim));
  loccol_attributes(p, out, groups, true);
  if (made) opt_make_reducer(rw, made, loccol_combiner(op), opt_tensor(rw, (base_dtype)type->dtype, 0, NULL));
  return out;
}

/* The parts of all dimensions that go elsewhere, as one first dimension. */
static int loccol_scatter_joined(local_pass *p, ir_op *op, const sdy_axis_lists *lists, sdy_axes all,
                                 const int64_t *sizes, const ir_type *type) {
  opt_rewriter *rw = &p->rw;
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v);
  int64_t dims[2 * IR_MAX_RANK], permutation[2 * IR_MAX_RANK], group = 1, total = 1;
  uint32_t n = 0, k = 0;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (lists->v[d].n) {
      permutation[k++] = n;
      dims[n++] = sizes[d];
      total *= sizes[d];
    }
    dims[n++] = t->dims[d] / (lists->v[d].n ? sizes[d] : 1);
  }
  for (uint32_t i = 0; i < n; i++)
    if (!base_list_has(permutation, k, i)) permutation[k++] = i;
  assert(n <= 2 * IR_MAX_RANK);
  const ir_mattr *groups = local_groups(p, op, loccol_out(op), all, &group);
  if (!groups) return local_status(p);
  v = opt_reshape(rw, v, local_shape(p, t, n, dims));
  v = rw->failed ? v : opt_transpose(rw, v, permutation);
  dims[0] = total;
  local_copy(dims + 1, type->dims, type->rank);
  v = opt_reshape(rw, v, local_shape(p, t, type->rank + 1, dims));
  dims[0] = 1;
  v = loccol_scatter(p, op, v, local_shape(p, t, type->rank + 1, dims), 0, groups);
  return local_done(p, op, opt_reshape(rw, v, type));
}

/* Several dimensions: one op by way of a joined dimension (an option), else an all-reduce of which each device cuts
 * its part. */
int local_reduce_scatter(local_pass *p, ir_op *op) {
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "reduce_scatter_axes"), SDY_AXIS_LISTS);
  const sdy_mesh *mesh = sdy_mesh_of(p->rw.m, loccol_out(op));
  const ir_type *type = NULL, *t = opt_type(opt_operand(op, 0));
  int64_t sizes[IR_MAX_RANK], size = 1;
  uint32_t n = 0, last = 0;
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  sdy_axes all = loccol_join(p, mesh, lists->n, lists->v, sizes);
  for (uint32_t d = 0; d < lists->n; d++) {
    if (lists->v[d].n == 0) continue;
    n++;
    last = d;
  }
  if (p->rw.failed) return local_status(p);
  if (loccol_is_uneven(p, op)) {
    ir_value sum;
    TRY(loccol_reduce(p, op, opt_operand(op, 0), t, all, &sum));
    return loccol_move(p, op, sum);
  }
  if (n == 1) {
    /* `last` is the only dimension with axes */
    const ir_mattr *groups = local_groups(p, op, loccol_out(op), lists->v[last], &size);
    return groups ? local_done(p, op, loccol_scatter(p, op, opt_operand(op, 0), type, last, groups)) : local_status(p);
  }
  if (p->combine && type->rank + n <= IR_MAX_RANK) return loccol_scatter_joined(p, op, lists, all, sizes, type);
  ir_value v;
  TRY(loccol_reduce(p, op, opt_operand(op, 0), t, all, &v));
  v = local_cut(p, op, mesh, lists->v, v, type);
  return v.op ? local_done(p, op, v) : local_status(p);
}

/* all_to_all and collective_permute as StableHLO's. */

/* The sharding that the op names for its result. */
static const sdy_sharding *locmov_out(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
}

/* --- all_to_all --- */

/* One StableHLO all_to_all: v is split into n along `split`, and the parts received are joined along `join`. */
static ir_value locmov_exchange(local_pass *p, ir_value v, const ir_type *type, int64_t split, int64_t join, int64_t n,
                                const ir_mattr *groups) {
  opt_rewriter *rw = &p->rw;
  ir_value out = opt_make(rw, IR_OP_ALL_TO_ALL, type, 1, &v);
  opt_set(rw, out, "split_dimension", ir_m_i64(rw->m, split));
  opt_set(rw, out, "concat_dimension", ir_m_i64(rw->m, join));
  opt_set(rw, out, "split_count", ir_m_i64(rw->m, n));
  opt_set(rw, out, "replica_groups", groups);
  opt_set(rw, out, "channel_handle", local_channel(p));
  return out;
}

/* A shard is split evenly among the devices of a group. */
static int locmov_divides(local_pass *p, const ir_op *op, const ir_type *t, int64_t dim, int64_t n) {
  assert(n > 0);
  if (!ir_dim_is_dynamic(t, (uint32_t)dim) && t->dims[dim] % n == 0) return 0;
  return local_fail(p, op, "dimension %lld of a shard has size %lld, which %lld devices can't divide among them",
                    (long long)dim, (long long)t->dims[dim], (long long)n);
}

/* Axes move from dimension `from` to dimension `to`: `from` grows by their size and `to` shrinks by it. */
static int locmov_one(local_pass *p, ir_op *op, const sdy_param *param) {
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK] = {0}, n = 1;
  const ir_mattr *groups = local_groups(p, op, locmov_out(op), param->axes, &n);
  if (!groups) return local_status(p);
  TRY(locmov_divides(p, op, t, param->to, n));
  assert(param->from < t->rank && param->to < t->rank && param->from != param->to);
  local_copy(dims, t->dims, t->rank);
  dims[param->from] *= n;
  dims[param->to] /= n;
  v = locmov_exchange(p, v, local_shape(p, t, t->rank, dims), param->to, param->from, n, groups);
  return local_done(p, op, v);
}

/* Several exchanges as one, along a first dimension that holds the parts of all. */
typedef struct locmov_many {
  uint32_t n, rank;
  const sdy_param **sorted; /* by the dimensions they go to */
  int64_t *sizes;           /* devices of each */
  sdy_axes all;
} locmov_many;

/* Insertion sort by target dimension; the order of axes in the joined groups follows it. */
static bool locmov_sort(local_pass *p, const sdy_params *params, const sdy_mesh *mesh, locmov_many *x) {
  uint32_t total = 0, at = 0;
  x->n = params->n;
  x->sorted = BASE_ARRAY(&p->rw.arena, const sdy_param *, (size_t)params->n + 1);
  x->sizes = BASE_ARRAY(&p->rw.arena, int64_t, (size_t)params->n + 1);
  for (uint32_t i = 0; i < params->n; i++) total += params->v[i].axes.n;
  sdy_axis *axes = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)total + 1);
  if (!x->sorted || !x->sizes || !axes) return false;
  for (uint32_t i = 0; i < params->n; i++) {
    uint32_t k = i;
    for (; k > 0 && x->sorted[k - 1]->to > params->v[i].to; k--) x->sorted[k] = x->sorted[k - 1];
    x->sorted[k] = &params->v[i];
  }
  for (uint32_t i = 0; i < x->n; i++) {
    x->sizes[i] = sdy_axes_size(x->sorted[i]->axes, mesh);
    for (uint32_t k = 0; k < x->sorted[i]->axes.n; k++) axes[at++] = x->sorted[i]->axes.v[k];
  }
  x->all = (sdy_axes){at, axes};
  return true;
}

/* Parts that go elsewhere come first: splits and transposes; dims gets the shape then, n + rank of them. */
static int locmov_split(local_pass *p, ir_op *op, const locmov_many *x, ir_value *v, int64_t *dims) {
  const ir_type *t = opt_type(*v);
  int64_t split[2 * IR_MAX_RANK], permutation[2 * IR_MAX_RANK];
  uint32_t n = 0, k = 0;
  for (uint32_t d = 0, i = 0; d < t->rank; d++) {
    bool moves = i < x->n && x->sorted[i]->to == d;
    if (moves) {
      TRY(locmov_divides(p, op, t, d, x->sizes[i]));
      permutation[k++] = n;
      split[n++] = x->sizes[i];
    }
    split[n++] = t->dims[d] / (moves ? x->sizes[i++] : 1);
  }
  for (uint32_t i = 0; i < n; i++)
    if (!base_list_has(permutation, k, i)) permutation[k++] = i;
  *v = opt_reshape(&p->rw, *v, local_shape(p, t, n, split));
  if (!p->rw.failed) *v = opt_transpose(&p->rw, *v, permutation);
  for (uint32_t i = 0; i < n; i++) dims[i] = split[permutation[i]];
  return opt_rewriter_status(&p->rw);
}

/* Each part goes before the dimension it came from, and into it. */
static ir_value locmov_join(local_pass *p, const locmov_many *x, ir_value v, const ir_type *t, const int64_t *dims) {
  int64_t permutation[2 * IR_MAX_RANK], joined[IR_MAX_RANK];
  uint32_t k = 0;
  for (uint32_t d = 0; d < x->rank; d++) {
    joined[d] = dims[x->n + d];
    for (uint32_t i = 0; i < x->n; i++) {
      if (x->sorted[i]->from != d) continue;
      permutation[k++] = i;
      joined[d] *= x->sizes[i];
    }
    permutation[k++] = x->n + d;
  }
  v = p->rw.failed ? v : opt_transpose(&p->rw, v, permutation);
  return opt_reshape(&p->rw, v, local_shape(p, t, x->rank, joined));
}

/* A combined dimension of all parts is exchanged with itself (split and joined along dimension 0), so that one
 * all_to_all serves all pairs of dimensions. */
static int locmov_several(local_pass *p, ir_op *op, const sdy_params *params) {
  opt_rewriter *rw = &p->rw;
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, locmov_out(op));
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v);
  locmov_many x = {.rank = t->rank};
  int64_t dims[2 * IR_MAX_RANK], shape[IR_MAX_RANK + 1], size = 1;
  if (t->rank + params->n > IR_MAX_RANK) return local_fail(p, op, "too many dimensions to exchange at once");
  if (!locmov_sort(p, params, mesh, &x)) return base_oom(rw->err, "collectives");
  TRY(locmov_split(p, op, &x, &v, dims));
  const ir_mattr *groups = local_groups(p, op, locmov_out(op), x.all, &size);
  if (!groups) return local_status(p);
  shape[0] = size;
  local_copy(shape + 1, dims + x.n, t->rank);
  v = opt_reshape(rw, v, local_shape(p, t, t->rank + 1, shape));
  v = locmov_exchange(p, v, opt_type(v), 0, 0, size, groups);
  v = opt_reshape(rw, v, local_shape(p, t, x.n + t->rank, dims));
  return local_done(p, op, locmov_join(p, &x, v, t, dims));
}

/* With one dimension pair it is StableHLO's op; with several it takes transposes. */
int local_all_to_all(local_pass *p, ir_op *op) {
  const sdy_params *params = sdy_of(ir_mattr_of(op, "params"), SDY_PARAMS);
  if (loccol_is_uneven(p, op)) return loccol_move(p, op, opt_operand(op, 0));
  return params->n == 1 ? locmov_one(p, op, &params->v[0]) : locmov_several(p, op, params);
}

/* --- collective_permute --- */

/* Whether the list has exactly this axis. */
static bool locmov_listed(const sdy_axis *v, uint32_t n, sdy_axis a) {
  for (uint32_t i = 0; i < n; i++)
    if (sdy_axis_equal(v[i], a)) return true;
  return false;
}

/* Axis list i of a sharding: those of its dimensions, and last those along which it is parts of a sum. */
static sdy_axes locmov_list(const sdy_sharding *s, uint32_t i) {
  return i < s->n_dims ? s->dims[i].axes : s->unreduced;
}

/* All parts of the mesh's axes: those that shard or are to be added up, in the sharding's order, then the others. */
static sdy_axes locmov_order(local_pass *p, const sdy_sharding *s, sdy_axes parts) {
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)parts.n + 1);
  uint32_t n = 0;
  p->rw.failed = p->rw.failed || !v;
  for (uint32_t d = 0; v && d <= s->n_dims; d++)
    for (uint32_t i = 0; i < locmov_list(s, d).n; i++)
      for (uint32_t k = 0; k < parts.n; k++)
        if (sdy_axis_contains(locmov_list(s, d).v[i], parts.v[k]) && !locmov_listed(v, n, parts.v[k]))
          v[n++] = parts.v[k];
  for (uint32_t k = 0; v && k < parts.n; k++)
    if (!locmov_listed(v, n, parts.v[k])) v[n++] = parts.v[k];
  return (sdy_axes){v ? n : 0, v};
}

const int64_t *local_ranks(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, uint32_t *n) {
  const sdy_dim dim = {.axes = axes};
  const sdy_sharding one = {.n_dims = 1, .dims = &dim};
  sdy_axes parts = local_ordered(p, mesh, axes);
  return local_shard_indices(p, op, mesh, locmov_order(p, &one, parts), n);
}

/* All axes that either sharding has on a dimension, or to be added up. */
static sdy_axes locmov_axes_of(local_pass *p, const sdy_sharding *a, const sdy_sharding *b) {
  const sdy_sharding *both[] = {a, b};
  uint32_t n = 0;
  for (int k = 0; k < 2; k++)
    for (uint32_t d = 0; d <= both[k]->n_dims; d++) n += locmov_list(both[k], d).n;
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)n + 1);
  p->rw.failed = p->rw.failed || !v;
  n = 0;
  for (int k = 0; v && k < 2; k++)
    for (uint32_t d = 0; d <= both[k]->n_dims; d++)
      for (uint32_t i = 0; i < locmov_list(both[k], d).n; i++) v[n++] = locmov_list(both[k], d).v[i];
  return (sdy_axes){v ? n : 0, v};
}

/* Device i has what device pairs[2i + 1] is to have. NULL: out of memory, or too many devices. */
static const ir_mattr *locmov_pairs(local_pass *p, const ir_op *op, const sdy_sharding *from, const sdy_sharding *to) {
  const sdy_mesh *in = sdy_mesh_of(p->rw.m, from), *out = sdy_mesh_of(p->rw.m, to);
  uint32_t n = 0, n_out = 0;
  sdy_axes parts = local_ordered(p, out, locmov_axes_of(p, from, to));
  const int64_t *had = local_shard_indices(p, op, in, locmov_order(p, from, parts), &n);
  const int64_t *wanted = had ? local_shard_indices(p, op, out, locmov_order(p, to, parts), &n_out) : NULL;
  if (!wanted || p->rw.failed || n != n_out) return NULL;
  int64_t *device = BASE_ARRAY(&p->rw.arena, int64_t, (size_t)n + 1);
  int64_t *pairs = BASE_ARRAY(&p->rw.arena, int64_t, 2 * (size_t)n + 1);
  if (!device || !pairs) return NULL;
  for (uint32_t i = 0; i < n; i++) device[wanted[i]] = i;
  /* Shard numbers count all parts of all axes, so they are a permutation of the devices. */
  for (uint32_t i = 0; i < n; i++) {
    pairs[2 * i] = i;
    pairs[2 * i + 1] = device[had[i]];
  }
  int64_t dims[] = {n, 2};
  return ir_m_dense_i64(p->rw.m, 2, dims, pairs);
}

/* Each device sends its shard to the device that has the same shard number afterwards. */
int local_collective_permute(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const sdy_sharding *to = locmov_out(op), *from = local_operand(p, op, 0)->s;
  if (!from) from = sdy_sharding_empty(rw->m, to, to->n_dims, false);
  const sdy_mesh *in = from ? sdy_mesh_of(rw->m, from) : NULL, *out = sdy_mesh_of(rw->m, to);
  if (!in || !out || sdy_mesh_size(in) != sdy_mesh_size(out))
    return local_fail(p, op, "the meshes before and after are unknown, or of different sizes");
  ir_value v = opt_operand(op, 0);
  const ir_mattr *pairs = locmov_pairs(p, op, from, to);
  if (!pairs) return local_status(p);
  ir_value made = opt_make(rw, IR_OP_COLLECTIVE_PERMUTE, opt_type(v), 1, &v);
  opt_set(rw, made, "source_target_pairs", pairs);
  opt_set(rw, made, "channel_handle", local_channel(p));
  return local_done(p, op, made);
}
