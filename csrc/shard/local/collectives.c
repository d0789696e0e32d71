/* The dialect's collectives as StableHLO's. */
#include "local.h"

static const sdy_sharding *loccol_out(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
}

/* After local_groups and the like: what has gone wrong. */
static int loccol_status(local_pass *p) {
  if (p->rw.err->code && !p->rw.failed) return -(int)p->rw.err->code;
  return p->rw.failed ? opt_rewriter_status(&p->rw) : base_oom(p->rw.err, "collectives");
}

static int loccol_done(local_pass *p, ir_op *op, ir_value v) {
  if (!p->rw.failed) opt_replace_one(&p->rw, op, v);
  return opt_rewriter_status(&p->rw);
}

static ir_opcode loccol_combiner(const ir_op *op) {
  int64_t kind = ir_m_get_int(op, "reduction_op", SDY_SUM);
  return kind == SDY_MAX ? IR_OP_MAXIMUM : kind == SDY_MIN ? IR_OP_MINIMUM : IR_OP_ADD;
}

static void loccol_attributes(local_pass *p, ir_value v, const ir_mattr *groups, bool global) {
  opt_set(&p->rw, v, "replica_groups", groups);
  opt_set(&p->rw, v, "channel_handle", local_channel(p));
  if (global) opt_set(&p->rw, v, "use_global_device_ids", ir_m_unit(p->rw.m));
}

/* --- all_gather --- */

static ir_value loccol_gather(local_pass *p, ir_value v, uint32_t dim, const ir_mattr *groups, int64_t size) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK] = {0};
  if (!t) return v;
  local_copy(dims, t->dims, t->rank);
  dims[dim] *= size;
  ir_value out = opt_make(rw, IR_OP_ALL_GATHER, local_shape(p, t, t->rank, dims), 1, &v);
  opt_set(rw, out, "all_gather_dim", ir_m_i64(rw->m, dim));
  loccol_attributes(p, out, groups, true);
  return out;
}

static int loccol_gather_each(local_pass *p, ir_op *op, const sdy_axis_lists *lists) {
  ir_value v = opt_operand(op, 0);
  for (uint32_t d = lists->n; d-- > 0;) {
    int64_t size = 1;
    if (lists->v[d].n == 0) continue;
    const ir_mattr *groups = local_groups(p, op, loccol_out(op), lists->v[d], &size);
    if (!groups) return loccol_status(p);
    v = loccol_gather(p, v, d, groups, size);
  }
  return loccol_done(p, op, v);
}

/* Axes of all dimensions, one after the other; how many devices each dimension has. */
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
static int loccol_gather_joined(local_pass *p, ir_op *op, const sdy_axis_lists *lists) {
  opt_rewriter *rw = &p->rw;
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v);
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, loccol_out(op));
  int64_t sizes[IR_MAX_RANK], dims[2 * IR_MAX_RANK + 1], permutation[2 * IR_MAX_RANK], group = 1;
  uint32_t rank = t->rank, n_split = 0, k = 0;
  sdy_axes all = loccol_join(p, mesh, rank, lists->v, sizes);
  for (uint32_t d = 0; d < rank; d++) n_split += lists->v[d].n != 0;
  if (rank + n_split > IR_MAX_RANK) return loccol_gather_each(p, op, lists);
  dims[0] = 1;
  local_copy(dims + 1, t->dims, rank);
  v = opt_reshape(rw, v, local_shape(p, t, rank + 1, dims));
  const ir_mattr *groups = rw->failed ? NULL : local_groups(p, op, loccol_out(op), all, &group);
  if (!groups) return loccol_status(p);
  v = loccol_gather(p, v, 0, groups, group);
  for (uint32_t d = 0, f = 0; d < rank; d++) {
    if (lists->v[d].n) {
      dims[f] = sizes[d];
      permutation[k++] = f++;
    }
    permutation[k++] = n_split + d;
  }
  local_copy(dims + n_split, t->dims, rank);
  v = opt_reshape(rw, v, local_shape(p, t, rank + n_split, dims));
  v = rw->failed ? v : opt_transpose(rw, v, permutation);
  for (uint32_t d = 0; d < rank; d++) dims[d] = t->dims[d] * (lists->v[d].n ? sizes[d] : 1);
  return loccol_done(p, op, opt_reshape(rw, v, local_shape(p, t, rank, dims)));
}

int local_all_gather(local_pass *p, ir_op *op) {
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "gathering_axes"), SDY_AXIS_LISTS);
  uint32_t n = 0;
  for (uint32_t d = 0; d < lists->n; d++) n += lists->v[d].n != 0;
  return p->per_dim || n <= 1 ? loccol_gather_each(p, op, lists) : loccol_gather_joined(p, op, lists);
}

/* --- all_reduce, all_slice --- */

static int loccol_reduce(local_pass *p, ir_op *op, ir_value v, const ir_type *type, sdy_axes axes, ir_value *out) {
  opt_rewriter *rw = &p->rw;
  int64_t size = 1;
  const ir_mattr *groups = local_groups(p, op, loccol_out(op), axes, &size);
  if (!groups) return loccol_status(p);
  ir_op *made = opt_make_n(rw, IR_OP_ALL_REDUCE, 1, &type, 1, &v, 1);
  *out = (ir_value){made, 0};
  loccol_attributes(p, *out, groups, true);
  if (made) opt_make_reducer(rw, made, loccol_combiner(op), opt_tensor(rw, (base_dtype)type->dtype, 0, NULL));
  return opt_rewriter_status(rw);
}

int local_all_reduce(local_pass *p, ir_op *op) {
  const sdy_axes *axes = sdy_of(ir_mattr_of(op, "reduction_axes"), SDY_AXES);
  const ir_type *type = NULL;
  ir_value v;
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  TRY(loccol_reduce(p, op, opt_operand(op, 0), type, *axes, &v));
  return loccol_done(p, op, v);
}

static int loccol_cut(local_pass *p, ir_op *op, const sdy_axes *lists, ir_value v) {
  const ir_type *type = NULL;
  TRY(local_type(p, op, local_result(p, op, 0), &type));
  v = local_cut(p, op, sdy_mesh_of(p->rw.m, loccol_out(op)), lists, v, type);
  return v.op ? loccol_done(p, op, v) : loccol_status(p);
}

int local_all_slice(local_pass *p, ir_op *op) {
  const sdy_axis_lists *lists = sdy_of(ir_mattr_of(op, "slicing_axes"), SDY_AXIS_LISTS);
  return loccol_cut(p, op, lists->v, opt_operand(op, 0));
}

/* --- reduce_scatter --- */

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
    if (!shard_has(permutation, k, i)) permutation[k++] = i;
  const ir_mattr *groups = local_groups(p, op, loccol_out(op), all, &group);
  if (!groups) return loccol_status(p);
  v = opt_reshape(rw, v, local_shape(p, t, n, dims));
  v = rw->failed ? v : opt_transpose(rw, v, permutation);
  dims[0] = total;
  local_copy(dims + 1, type->dims, type->rank);
  v = opt_reshape(rw, v, local_shape(p, t, type->rank + 1, dims));
  dims[0] = 1;
  v = loccol_scatter(p, op, v, local_shape(p, t, type->rank + 1, dims), 0, groups);
  return loccol_done(p, op, opt_reshape(rw, v, type));
}

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
  if (p->rw.failed) return loccol_status(p);
  if (n == 1) {
    const ir_mattr *groups = local_groups(p, op, loccol_out(op), lists->v[last], &size);
    return groups ? loccol_done(p, op, loccol_scatter(p, op, opt_operand(op, 0), type, last, groups))
                  : loccol_status(p);
  }
  if (p->combine && type->rank + n <= IR_MAX_RANK) return loccol_scatter_joined(p, op, lists, all, sizes, type);
  ir_value v;
  TRY(loccol_reduce(p, op, opt_operand(op, 0), t, all, &v));
  v = local_cut(p, op, mesh, lists->v, v, type);
  return v.op ? loccol_done(p, op, v) : loccol_status(p);
}
