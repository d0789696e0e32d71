/* all_to_all and collective_permute as StableHLO's. */
#include "local.h"

static int locmov_status(local_pass *p) {
  if (p->rw.err->code && !p->rw.failed) return -(int)p->rw.err->code;
  return p->rw.failed ? opt_rewriter_status(&p->rw) : base_oom(p->rw.err, "collectives");
}

static int locmov_done(local_pass *p, ir_op *op, ir_value v) {
  if (!p->rw.failed) opt_replace_one(&p->rw, op, v);
  return opt_rewriter_status(&p->rw);
}

static const sdy_sharding *locmov_out(const ir_op *op) {
  return sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
}

/* --- all_to_all --- */

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

static int locmov_divides(local_pass *p, const ir_op *op, const ir_type *t, int64_t dim, int64_t n) {
  if (!ir_dim_is_dynamic(t, (uint32_t)dim) && t->dims[dim] % n == 0) return 0;
  return local_fail(p, op, "dimension %lld of a shard has size %lld, which %lld devices can't divide among them",
                    (long long)dim, (long long)t->dims[dim], (long long)n);
}

static int locmov_one(local_pass *p, ir_op *op, const sdy_param *param) {
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK] = {0}, n = 1;
  const ir_mattr *groups = local_groups(p, op, locmov_out(op), param->axes, &n);
  if (!groups) return locmov_status(p);
  TRY(locmov_divides(p, op, t, param->to, n));
  local_copy(dims, t->dims, t->rank);
  dims[param->from] *= n;
  dims[param->to] /= n;
  v = locmov_exchange(p, v, local_shape(p, t, t->rank, dims), param->to, param->from, n, groups);
  return locmov_done(p, op, v);
}

/* Several exchanges as one, along a first dimension that holds the parts of all. */
typedef struct locmov_many {
  uint32_t n, rank;
  const sdy_param **sorted; /* by the dimensions they go to */
  int64_t *sizes;           /* devices of each */
  sdy_axes all;
} locmov_many;

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
    if (!shard_has(permutation, k, i)) permutation[k++] = i;
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
  if (!groups) return locmov_status(p);
  shape[0] = size;
  local_copy(shape + 1, dims + x.n, t->rank);
  v = opt_reshape(rw, v, local_shape(p, t, t->rank + 1, shape));
  v = locmov_exchange(p, v, opt_type(v), 0, 0, size, groups);
  v = opt_reshape(rw, v, local_shape(p, t, x.n + t->rank, dims));
  return locmov_done(p, op, locmov_join(p, &x, v, t, dims));
}

int local_all_to_all(local_pass *p, ir_op *op) {
  const sdy_params *params = sdy_of(ir_mattr_of(op, "params"), SDY_PARAMS);
  return params->n == 1 ? locmov_one(p, op, &params->v[0]) : locmov_several(p, op, params);
}

/* --- collective_permute --- */

static bool locmov_listed(const sdy_axis *v, uint32_t n, sdy_axis a) {
  for (uint32_t i = 0; i < n; i++)
    if (sdy_axis_equal(v[i], a)) return true;
  return false;
}

/* All parts of the mesh's axes: those that shard, in the sharding's order, then the others. */
static sdy_axes locmov_order(local_pass *p, const sdy_sharding *s, sdy_axes parts) {
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)parts.n + 1);
  uint32_t n = 0;
  p->rw.failed = p->rw.failed || !v;
  for (uint32_t d = 0; v && d < s->n_dims; d++)
    for (uint32_t i = 0; i < s->dims[d].axes.n; i++)
      for (uint32_t k = 0; k < parts.n; k++)
        if (sdy_axis_contains(s->dims[d].axes.v[i], parts.v[k]) && !locmov_listed(v, n, parts.v[k]))
          v[n++] = parts.v[k];
  for (uint32_t k = 0; v && k < parts.n; k++)
    if (!locmov_listed(v, n, parts.v[k])) v[n++] = parts.v[k];
  return (sdy_axes){v ? n : 0, v};
}

static sdy_axes locmov_axes_of(local_pass *p, const sdy_sharding *a, const sdy_sharding *b) {
  const sdy_sharding *both[] = {a, b};
  uint32_t n = 0;
  for (int k = 0; k < 2; k++)
    for (uint32_t d = 0; d < both[k]->n_dims; d++) n += both[k]->dims[d].axes.n;
  sdy_axis *v = BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)n + 1);
  p->rw.failed = p->rw.failed || !v;
  n = 0;
  for (int k = 0; v && k < 2; k++)
    for (uint32_t d = 0; d < both[k]->n_dims; d++)
      for (uint32_t i = 0; i < both[k]->dims[d].axes.n; i++) v[n++] = both[k]->dims[d].axes.v[i];
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
  for (uint32_t i = 0; i < n; i++) {
    pairs[2 * i] = i;
    pairs[2 * i + 1] = device[had[i]];
  }
  int64_t dims[] = {n, 2};
  return ir_m_dense_i64(p->rw.m, 2, dims, pairs);
}

int local_collective_permute(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const sdy_sharding *to = locmov_out(op), *from = local_operand(p, op, 0)->s;
  if (!from) from = sdy_sharding_empty(rw->m, to, to->n_dims, false);
  const sdy_mesh *in = from ? sdy_mesh_of(rw->m, from) : NULL, *out = sdy_mesh_of(rw->m, to);
  if (!in || !out || sdy_mesh_size(in) != sdy_mesh_size(out))
    return local_fail(p, op, "the meshes before and after are unknown, or of different sizes");
  ir_value v = opt_operand(op, 0);
  const ir_mattr *pairs = locmov_pairs(p, op, from, to);
  if (!pairs) return locmov_status(p);
  ir_value made = opt_make(rw, IR_OP_COLLECTIVE_PERMUTE, opt_type(v), 1, &v);
  opt_set(rw, made, "source_target_pairs", pairs);
  opt_set(rw, made, "channel_handle", local_channel(p));
  return locmov_done(p, op, made);
}
