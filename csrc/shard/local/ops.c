/* StableHLO ops that are not the same on a shard: those that depend on its place (constants, iotas, pads), and those
 * that only some shardings leave right (slices, concatenations, windows, products). Where a sharding would need data
 * of other devices the op is an error that says which pass makes it whole. */
#include "local.h"

/* The type that op's result has on a shard. */
static int locop_local_result(local_pass *p, const ir_op *op, const ir_type **out) {
  assert(op->n_results > 0);
  return local_type(p, op, local_result(p, op, 0), out);
}

/* --- constants, iotas --- */

/* Splats are as they are, of a smaller type; of others, each device takes its part. */
int local_constant(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *f = local_result(p, op, 0);
  const ir_type *type = NULL;
  TRY(locop_local_result(p, op, &type));
  const ir_mattr *value = ir_mattr_of(op, "value");
  bool whole = type == f->type, splat = value->kind == IR_M_DENSE && value->splat;
  if (!whole && value->kind != IR_M_DENSE)
    return local_fail(p, op, "the elements of a constant that is sharded are not in the program");
  if (!whole && splat) return local_done(p, op, opt_constant_data(rw, type, value->v.literal->data, true));
  ir_value v = opt_make(rw, IR_OP_CONSTANT, f->type, 0, NULL);
  opt_set(rw, v, "value", value);
  if (whole) return local_done(p, op, v);
  sdy_axes lists[IR_MAX_RANK];
  for (uint32_t d = 0; d < type->rank; d++) lists[d] = f->s->dims[d].axes;
  return local_done(p, op, rw->failed ? v : local_cut(p, op, sdy_mesh_of(rw->m, f->s), lists, v, type));
}

/* Along a sharded dimension each device counts from where its shard begins. */
int local_iota(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *f = local_result(p, op, 0);
  const ir_type *type = NULL;
  if (local_is_whole(f)) return 0;
  TRY(locop_local_result(p, op, &type));
  int64_t dim = ir_m_get_int(op, "iota_dimension", 0);
  ir_value v = opt_make(rw, IR_OP_IOTA, type, 0, NULL);
  opt_set(rw, v, "iota_dimension", ir_m_i64(rw->m, dim));
  sdy_axes axes = local_axes(f->s, (uint32_t)dim);
  assert(dim >= 0 && dim < type->rank);
  if (axes.n == 0) return local_done(p, op, v);
  ir_value offset = local_offset(p, op, sdy_mesh_of(rw->m, f->s), axes, type->dims[dim]);
  if (!offset.op) return local_status(p);
  offset = opt_convert(rw, offset, (base_dtype)type->dtype);
  return local_done(p, op, opt_binary(rw, IR_OP_ADD, v, opt_broadcast_in_dim(rw, offset, type, NULL)));
}

/* --- slices --- */

/* What is cut along a dimension must be the same before and after. */
static int locop_same_axes(local_pass *p, const ir_op *op, const sdy_sharding *a, const sdy_sharding *b, uint32_t d) {
  if (sdy_axes_equal(local_axes(a, d), local_axes(b, d))) return 0;
  return local_fail(p, op,
                    "dimension %u is sharded in different ways before and after: expected a reshard between "
                    "(sdy-insert-explicit-reshards)",
                    d);
}

/* A sharded dimension may only be taken whole; a stride must divide the shard, so that every device begins at 0
 * again. */
int local_slice(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *in = local_operand(p, op, 0), *out = local_result(p, op, 0);
  if (local_is_whole(in) && local_is_whole(out)) return local_retype(p, op);
  uint32_t n = 0;
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0};
  const int64_t *from = ir_m_ints(ir_mattr_of(op, "start_indices"), &rw->arena, &n);
  const int64_t *to = ir_m_ints(ir_mattr_of(op, "limit_indices"), &rw->arena, &n);
  const int64_t *strides = ir_m_ints(ir_mattr_of(op, "strides"), &rw->arena, &n);
  ir_value v = opt_operand(op, 0);
  if (!from || !to || !strides) return base_oom(rw->err, "local ops");
  for (uint32_t d = 0; d < n; d++) {
    TRY(locop_same_axes(p, op, in->s, out->s, d));
    bool sharded = local_axes(in->s, d).n != 0;
    if (sharded && p->uneven && from[d] == 0 && to[d] == in->type->dims[d] && strides[d] == 1) {
      limits[d] = opt_type(v)->dims[d];
      continue;
    }
    if (sharded && p->uneven) {
      const local_slides s = {d, from[d], strides[d], 1, out->type->dims[d]};
      TRY(local_slide(p, op, 0, &s, (ir_value){NULL, 0}));
      v = opt_operand(op, 0);
      limits[d] = opt_type(v)->dims[d];
      continue;
    }
    if (sharded && (from[d] != 0 || to[d] != in->type->dims[d] || opt_type(v)->dims[d] % strides[d] != 0))
      return local_fail(p, op,
                        "dimension %u is sharded, and only a part of it is taken, which needs other devices: expected "
                        "it whole (sdy-resolve-permutation-factors)",
                        d);
    starts[d] = from[d];
    limits[d] = sharded ? opt_type(v)->dims[d] : to[d];
  }
  return local_done(p, op, opt_slice(rw, v, starts, limits, strides));
}

/* The sizes of a slice are those of its shard; what is cut along a dimension must be whole there. */
int local_dynamic_slice(local_pass *p, ir_op *op) {
  const local_fact *in = local_operand(p, op, 0), *out = local_result(p, op, 0);
  for (uint32_t d = 0; shc_is_static(in->type) && d < in->type->rank; d++) {
    TRY(locop_same_axes(p, op, in->s, out->s, d));
    if (local_axes(in->s, d).n && in->type->dims[d] != out->type->dims[d])
      return local_fail(p, op, "dimension %u is sharded, and a part of it is taken: expected it whole", d);
  }
  TRY(local_retype(p, op));
  const ir_mattr *sizes = ir_m_i64s(p->rw.m, op->type->rank, op->type->dims);
  return sizes && ir_m_set(op, "slice_sizes", sizes) ? 0 : base_oom(p->rw.err, "local ops");
}

/* A scalar of i64 that is `start` as the op means it: so that the update is within the operand. */
static ir_value locop_start(local_pass *p, ir_value start, int64_t most) {
  ir_value all[] = {local_scalar(p, XLAC_S64, 0), opt_convert(&p->rw, start, XLAC_S64),
                    local_scalar(p, XLAC_S64, most)};
  return opt_make(&p->rw, IR_OP_CLAMP, opt_type(all[0]), 3, all);
}

/* v between as many zeros along d as a shard has elements, and of that what begins at `at`, from -shard on. */
static ir_value locop_shifted(local_pass *p, ir_value v, uint32_t d, int64_t shard, ir_value at) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v);
  int64_t edges[IR_MAX_RANK] = {0}, none[IR_MAX_RANK] = {0}, dims[IR_MAX_RANK] = {0};
  if (!t) return v;
  ir_value both[] = {v, opt_splat(rw, opt_tensor(rw, (base_dtype)t->dtype, 0, NULL), 0)}, all[IR_MAX_RANK + 1];
  local_copy(dims, t->dims, t->rank);
  edges[d] = shard;
  dims[d] += 2 * shard;
  all[0] = opt_make(rw, IR_OP_PAD, local_shape(p, t, t->rank, dims), 2, both);
  opt_set(rw, all[0], "edge_padding_low", ir_m_i64s(rw->m, t->rank, edges));
  opt_set(rw, all[0], "edge_padding_high", ir_m_i64s(rw->m, t->rank, edges));
  opt_set(rw, all[0], "interior_padding", ir_m_i64s(rw->m, t->rank, none));
  for (uint32_t k = 0; k < t->rank; k++) all[k + 1] = local_scalar(p, XLAC_S64, 0);
  all[d + 1] = opt_binary(rw, IR_OP_ADD, at, local_scalar(p, XLAC_S64, shard));
  dims[d] = shard;
  v = opt_make(rw, IR_OP_DYNAMIC_SLICE, local_shape(p, t, t->rank, dims), t->rank + 1, all);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, t->rank, dims));
  return v;
}

/* Where a part of a sharded dimension is written, each device writes what of it lies in its shard: the update, moved to
 * where it is, takes the place of all of the shard along that dimension, but keeps what is not the update's. */
int local_dynamic_update_slice(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *in = local_operand(p, op, 0), *part = local_operand(p, op, 1);
  const sdy_mesh *mesh = in->s ? sdy_mesh_of(rw->m, in->s) : NULL;
  ir_value into = opt_operand(op, 0), update = opt_operand(op, 1), at[IR_MAX_RANK], old[IR_MAX_RANK + 1] = {into};
  uint32_t rank = mesh ? in->type->rank : 0;
  bool any = false;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t size = part->type->dims[d], shard = opt_type(into)->dims[d];
    at[d] = (ir_value){NULL, 0};
    old[d + 1] = opt_operand(op, 2 + d);
    if (size == in->type->dims[d] || local_axes(in->s, d).n == 0) continue;
    at[d] = local_offset(p, op, mesh, local_axes(in->s, d), shard);
    if (!at[d].op) return local_status(p);
    at[d] = opt_binary(rw, IR_OP_SUBTRACT, at[d], locop_start(p, old[d + 1], in->type->dims[d] - size));
    update = locop_shifted(p, update, d, shard, at[d]);
    old[d + 1] = opt_splat_int(rw, opt_type(old[d + 1]), 0);
    any = true;
  }
  if (!any) return local_retype(p, op);
  if (!update.op) return local_status(p);
  ir_value kept = opt_make(rw, IR_OP_DYNAMIC_SLICE, opt_type(update), rank + 1, old);
  opt_set(rw, kept, "slice_sizes", ir_m_i64s(rw->m, rank, opt_type(update)->dims));
  for (uint32_t d = 0; d < rank; d++)
    if (at[d].op) update = local_mask(p, update, d, at[d], 0, part->type->dims[d], kept);
  if (!update.op) return local_status(p);
  ir_set_operand(op, 1, update);
  for (uint32_t d = 0; d < rank; d++) ir_set_operand(op, 2 + d, old[d + 1]);
  return local_retype(p, op);
}

/* The messages are Shardy's. */
int local_concatenate(local_pass *p, ir_op *op) {
  const local_fact *out = local_result(p, op, 0);
  uint32_t dim = (uint32_t)ir_m_get_int(op, "dimension", 0);
  if (local_axes(out->s, dim).n && p->uneven) return local_join(p, op, dim);
  if (local_axes(out->s, dim).n)
    return local_fail(p, op, "dimension %u is sharded but the concatenation is on this dimension", dim);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const local_fact *in = local_operand(p, op, i);
    if (local_is_whole(in)) continue;
    if (local_axes(in->s, dim).n)
      return local_fail(p, op, "operand %u is sharded on concatenation dimension %u", i, dim);
    for (uint32_t d = 0; d < in->s->n_dims; d++) TRY(locop_same_axes(p, op, in->s, out->s, d));
  }
  return local_retype(p, op);
}

/* --- windows --- */

/* Number `at` of a list of the op; -1 where it has none, which stands for the default. */
static int64_t locop_window(local_pass *p, const ir_op *op, const char *key, uint32_t at) {
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(ir_mattr_of(op, key), &p->rw.arena, &n);
  return v && at < n ? v[at] : -1;
}

/* Sets the padding of spatial dimensions to zero where `fetched` says that it is there already. */
static int locop_drop_padding(local_pass *p, ir_op *op, uint32_t n, const bool *fetched) {
  int64_t v[2 * IR_MAX_RANK], dims[] = {n, 2};
  bool any = false;
  for (uint32_t i = 0; i < 2 * n; i++) {
    int64_t now = locop_window(p, op, "padding", i);
    v[i] = now == -1 && !ir_mattr_of(op, "padding") ? 0 : fetched[i / 2] ? 0 : now;
    any = any || fetched[i / 2];
  }
  if (!any || !ir_mattr_of(op, "padding")) return 0;
  const ir_mattr *a = ir_m_dense_i64(p->rw.m, 2, dims, v);
  return a && ir_m_set(op, "padding", a) ? 0 : base_oom(p->rw.err, "local ops");
}

/* Windows along spatial dimension i, which is dimension d of the operand, for a result of `size`. */
static int locop_slide(local_pass *p, ir_op *op, uint32_t operand, uint32_t d, uint32_t i, int64_t window,
                       const char *dilation, int64_t size, ir_value fill) {
  int64_t pad = ir_mattr_of(op, "padding") ? locop_window(p, op, "padding", 2 * i) : 0;
  int64_t apart = ir_mattr_of(op, dilation) ? locop_window(p, op, dilation, i) : 1;
  int64_t step = ir_mattr_of(op, "window_strides") ? locop_window(p, op, "window_strides", i) : 1;
  const local_slides s = {d, -pad, step, (window - 1) * apart + 1, size};
  return local_slide(p, op, operand, &s, fill);
}

/* What is past the ends counts as the initial values. */
static int locop_reduce_window(local_pass *p, ir_op *op) {
  uint32_t n = op->n_operands / 2, rank = op->types[0]->rank;
  bool fetched[IR_MAX_RANK] = {false};
  for (uint32_t d = 0; d < rank; d++) {
    if (local_axes(local_operand(p, op, 0)->s, d).n == 0) continue;
    int64_t window = locop_window(p, op, "window_dimensions", d), size = local_result(p, op, 0)->type->dims[d];
    fetched[d] = true;
    for (uint32_t i = 0; i < n; i++)
      TRY(locop_slide(p, op, i, d, d, window, "window_dilations", size, opt_operand(op, n + i)));
  }
  TRY(locop_drop_padding(p, op, rank, fetched));
  return local_retype(p, op);
}

/* reduce_window and select_and_scatter: windows of one element only, along what is sharded. */
int local_windowed(local_pass *p, ir_op *op) {
  const local_fact *in = local_operand(p, op, 0);
  const sdy_mesh *mesh = in->s ? sdy_mesh_of(p->rw.m, in->s) : NULL;
  if (p->uneven && mesh && op->opcode == IR_OP_REDUCE_WINDOW) return locop_reduce_window(p, op);
  for (uint32_t d = 0; mesh && d < in->s->n_dims; d++) {
    if (sdy_axes_size(in->s->dims[d].axes, mesh) <= 1) continue;
    bool padded = locop_window(p, op, "padding", 2 * d) > 0 || locop_window(p, op, "padding", 2 * d + 1) > 0;
    bool moves = locop_window(p, op, "window_strides", d) > 1 || locop_window(p, op, "window_dimensions", d) > 1 ||
                 locop_window(p, op, "base_dilations", d) > 1;
    if (padded || moves)
      return local_fail(p, op, "dimension %u is sharded but its windows reach into other shards: expected it whole", d);
  }
  return local_retype(p, op);
}

/* --- products --- */

sdy_axes local_added(local_pass *p, const ir_op *op, sdy_axis *room, uint32_t most) {
  const ir_use *use = op->uses;
  bool only = use && !use->next && shc_count_uses(&p->rw, (ir_value){(ir_op *)(uintptr_t)op, 0}, 2) == 1;
  const sdy_axes *all = only && use->user->opcode == IR_OP_SDY_ALL_REDUCE
                            ? sdy_of(ir_mattr_of(use->user, "reduction_axes"), SDY_AXES)
                            : NULL;
  const sdy_axis_lists *lists = only && use->user->opcode == IR_OP_SDY_REDUCE_SCATTER
                                    ? sdy_of(ir_mattr_of(use->user, "reduce_scatter_axes"), SDY_AXIS_LISTS)
                                    : NULL;
  uint32_t n = 0;
  for (uint32_t i = 0; all && i < all->n && n < most; i++) room[n++] = all->v[i];
  for (uint32_t d = 0; lists && d < lists->n; d++)
    for (uint32_t i = 0; i < lists->v[d].n && n < most; i++) room[n++] = lists->v[d].v[i];
  const sdy_sharding *out = local_result(p, op, 0)->s, *in = local_operand(p, op, 0)->s;
  for (uint32_t i = 0; out && i < out->unreduced.n && n < most; i++)
    if ((!in || !sdy_axes_overlap(in->unreduced, out->unreduced.v[i])) &&
        !sdy_axes_overlap((sdy_axes){n, room}, out->unreduced.v[i]))
      room[n++] = out->unreduced.v[i];
  return (sdy_axes){n, room};
}

/* Sums over sharded dimensions are whole after an all-reduce or a reduce-scatter over their axes only, whose lists may
 * have neighbouring axes merged. */
static int locop_summed(local_pass *p, ir_op *op, sdy_axis *axes, uint32_t n) {
  enum { MOST = 2 * IR_MAX_RANK };
  sdy_axis room[MOST];
  if (n == 0) return 0;
  sdy_axes added = local_added(p, op, room, MOST);
  const sdy_sharding *out = local_result(p, op, 0)->s;
  if (added.n && !out) out = sdy_get((ir_value){op->uses->user, 0});
  const sdy_mesh *mesh = added.n ? sdy_mesh_of(p->rw.m, out) : NULL;
  sdy_axis *copy = mesh ? base_arena_memdup(&p->rw.arena, axes, n * sizeof *copy) : NULL;
  uint32_t n_added = mesh ? sdy_axes_sort_and_merge(room, added.n, mesh) : 0;
  if (copy && sdy_axes_equal((sdy_axes){n_added, room}, (sdy_axes){sdy_axes_sort_and_merge(copy, n, mesh), copy}))
    return 0;
  return local_fail(
      p, op,
      "the dimensions that are summed over are sharded: expected one use, an sdy.all_reduce over the same "
      "axes (sdy-insert-explicit-reshards)");
}

/* Appends those that are not there yet: both operands of a product have the contracted axes. */
static uint32_t locop_add_axes(sdy_axis *v, uint32_t n, sdy_axes more) {
  for (uint32_t i = 0; i < more.n; i++) {
    bool seen = false;
    for (uint32_t k = 0; k < n; k++) seen = seen || sdy_axis_equal(v[k], more.v[i]);
    if (!seen) v[n++] = more.v[i];
  }
  return n;
}

/* Room for all axes of a sharding. */
static sdy_axis *locop_room(local_pass *p, const sdy_sharding *s) {
  uint32_t n = 0;
  for (uint32_t d = 0; s && d < s->n_dims; d++) n += s->dims[d].axes.n;
  return BASE_ARRAY(&p->rw.arena, sdy_axis, (size_t)n + 1);
}

/* What is past the end of a reduced dimension is the initial value, which changes nothing. */
int local_reduce(local_pass *p, ir_op *op) {
  uint32_t inputs = op->n_operands / 2, n = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "dimensions"), &p->rw.arena, &n);
  for (uint32_t i = 0; dims && i < inputs; i++) TRY(local_fill_ends(p, op, i, n, dims, opt_operand(op, inputs + i)));
  return local_retype(p, op);
}

/* dims: the left operand's contracting dimensions. The right one's are sharded alike (explicit reshards see to that).
 */
static int locop_product(local_pass *p, ir_op *op, uint32_t n_dims, const int64_t *dims) {
  const local_fact *lhs = local_operand(p, op, 0);
  sdy_axis *axes = locop_room(p, lhs->s);
  assert(n_dims == 0 || dims != NULL);
  uint32_t n = 0;
  if (!axes) return base_oom(p->rw.err, "local ops");
  for (uint32_t i = 0; i < n_dims && !local_is_whole(lhs); i++)
    n = locop_add_axes(axes, n, local_axes(lhs->s, (uint32_t)dims[i]));
  TRY(locop_summed(p, op, axes, n));
  return local_retype(p, op);
}

/* Vectors and matrices only: the last dimension of the left side is the one that is summed over. */
int local_dot(local_pass *p, ir_op *op) {
  const ir_type *t = local_operand(p, op, 0)->type;
  int64_t last = t->kind == IR_TYPE_TENSOR && t->rank ? (int64_t)t->rank - 1 : 0, first = 0;
  if (sdy_rank(t)) {
    TRY(local_fill_ends(p, op, 0, 1, &last, (ir_value){NULL, 0}));
    TRY(local_fill_ends(p, op, 1, 1, &first, (ir_value){NULL, 0}));
  }
  return locop_product(p, op, sdy_rank(t) ? 1 : 0, &last);
}

/* The axes on the contracting dimensions are what an all-reduce has to be over; the op itself becomes local. */
int local_dot_general(local_pass *p, ir_op *op) {
  uint32_t n = 0;
  const ir_mattr *dims = ir_mattr_of(op, "dot_dimension_numbers");
  const int64_t *v = ir_m_ints(ir_m_field(dims, "lhs_contracting_dimensions"), &p->rw.arena, &n);
  uint32_t n_rhs = 0;
  const int64_t *rhs = ir_m_ints(ir_m_field(dims, "rhs_contracting_dimensions"), &p->rw.arena, &n_rhs);
  TRY(local_fill_ends(p, op, 0, v ? n : 0, v, (ir_value){NULL, 0}));
  TRY(local_fill_ends(p, op, 1, rhs ? n_rhs : 0, rhs, (ir_value){NULL, 0}));
  return locop_product(p, op, v ? n : 0, v);
}

/* As many groups as a shard has: feature_group_count 4 over 2 shards of features is 2. More shards than groups leave
 * one. */
static int locop_groups(local_pass *p, ir_op *op, const char *key, sdy_axes axes, const sdy_mesh *mesh) {
  int64_t n = ir_m_get_int(op, key, 1), shards = sdy_axes_size(axes, mesh);
  if (n <= 1 || shards == 1) return 0;
  int64_t by = n < shards ? n : shards;
  if (n % by) return local_fail(p, op, "%s is %lld, which %lld shards do not divide", key, (long long)n, (long long)by);
  const ir_mattr *type = ir_mattr_of(op, key);
  const ir_mattr *a = type ? ir_m_int(p->rw.m, type->type, n / by) : NULL;
  return a && ir_m_set(op, key, a) ? 0 : base_oom(p->rw.err, "local ops");
}

/* A window of one element, without stride or padding. */
static bool locop_is_pointwise(local_pass *p, const ir_op *op, uint32_t i) {
  uint32_t n = 0;
  const ir_mattr *dims = ir_mattr_of(op, "dimension_numbers");
  const int64_t *kernel = ir_m_ints(ir_m_field(dims, "kernel_spatial_dimensions"), &p->rw.arena, &n);
  const ir_type *rhs = local_operand(p, op, 1)->type;
  return kernel && i < n && rhs->dims[kernel[i]] == 1 && locop_window(p, op, "padding", 2 * i) <= 0 &&
         locop_window(p, op, "padding", 2 * i + 1) <= 0 && locop_window(p, op, "window_strides", i) <= 1 &&
         locop_window(p, op, "lhs_dilation", i) <= 1;
}

/* Sums are over the kernel's input features and windows; spatial dimensions may be sharded where windows are one
 * element. */
int local_convolution(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *lhs = local_operand(p, op, 0), *rhs = local_operand(p, op, 1), *out = local_result(p, op, 0);
  if (local_is_whole(lhs) && local_is_whole(rhs) && local_is_whole(out)) return local_retype(p, op);
  const sdy_sharding *any = lhs->s ? lhs->s : rhs->s ? rhs->s : out->s;
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, any);
  const ir_mattr *dims = ir_mattr_of(op, "dimension_numbers");
  sdy_axis *axes = locop_room(p, rhs->s);
  uint32_t n = 0, n_spatial = 0;
  if (!axes) return base_oom(rw->err, "local ops");
  const int64_t *spatial = ir_m_ints(ir_m_field(dims, "kernel_spatial_dimensions"), &rw->arena, &n_spatial);
  uint32_t in = (uint32_t)shard_field_int(dims, "kernel_input_feature_dimension");
  n = locop_add_axes(axes, n, local_axes(rhs->s, in));
  for (uint32_t i = 0; spatial && i < n_spatial; i++)
    n = locop_add_axes(axes, n, local_axes(rhs->s, (uint32_t)spatial[i]));
  TRY(locop_summed(p, op, axes, n));
  const int64_t *windows = ir_m_ints(ir_m_field(dims, "input_spatial_dimensions"), &rw->arena, &n_spatial);
  bool fetched[IR_MAX_RANK] = {false};
  uint32_t n_out = 0;
  const int64_t *results = ir_m_ints(ir_m_field(dims, "output_spatial_dimensions"), &rw->arena, &n_out);
  for (uint32_t i = 0; p->uneven && windows && spatial && results && i < n_spatial; i++) {
    uint32_t d = (uint32_t)windows[i];
    if (local_axes(lhs->s, d).n == 0) continue;
    ir_value zero = opt_splat(rw, opt_tensor(rw, (base_dtype)lhs->type->dtype, 0, NULL), 0);
    fetched[i] = true;
    TRY(locop_slide(p, op, 0, d, i, rhs->type->dims[spatial[i]], "rhs_dilation", out->type->dims[results[i]], zero));
  }
  TRY(locop_drop_padding(p, op, n_spatial, fetched));
  for (uint32_t i = 0; !p->uneven && windows && i < n_spatial; i++)
    if (sdy_axes_size(local_axes(lhs->s, (uint32_t)windows[i]), mesh) > 1 && !locop_is_pointwise(p, op, i))
      return local_fail(p, op, "spatial dimension %u is sharded but windows reach into other shards: expected it whole",
                        i);
  const int64_t feature = shard_field_int(dims, "input_feature_dimension"), kernel = in;
  TRY(local_fill_ends(p, op, 0, 1, &feature, (ir_value){NULL, 0}));
  TRY(local_fill_ends(p, op, 1, 1, &kernel, (ir_value){NULL, 0}));
  uint32_t features = (uint32_t)shard_field_int(dims, "kernel_output_feature_dimension");
  uint32_t batch = (uint32_t)shard_field_int(dims, "input_batch_dimension");
  TRY(locop_groups(p, op, "feature_group_count", local_axes(rhs->s, features), mesh));
  TRY(locop_groups(p, op, "batch_group_count", local_axes(lhs->s, batch), mesh));
  TRY(local_retype(p, op));
  return ir_m_set(op, "sdy.sharding", NULL) ? 0 : base_oom(rw->err, "local ops"); /* as the real pass leaves it */
}

/* stablehlo.pad of a shard. Where every device pads alike that is a pad; else all pad as much as any does, and each
 * takes its part. */

/* stablehlo.pad of a shard. Where every device pads alike that is a pad; else all pad as much as any does, and each
 * takes its part by a dynamic_slice at an offset from a table. */
typedef struct locpad {
  local_pass *p;
  ir_op *op;
  const sdy_mesh *mesh;
  const ir_type *in, *out; /* of the shards */
  const int64_t *low, *interior;
  uint32_t n_devices;
  int64_t *offsets[IR_MAX_RANK]; /* by device: where the data begins in the device's part of the result */
  bool uniform[IR_MAX_RANK];
} locpad;

/* How many elements the shard's data take in the result: with interior padding, gaps in between. */
static int64_t locpad_spread(const locpad *x, uint32_t d) {
  return x->in->dims[d] ? (x->in->dims[d] - 1) * (x->interior[d] + 1) + 1 : 0;
}

/* No device's part of the result has data of another's. */
static bool locpad_is_own(const locpad *x, uint32_t d, const int64_t *at) {
  int64_t step = x->interior[d] + 1, shards = 1, size = x->out->dims[d];
  for (uint32_t i = 0; i < x->n_devices; i++)
    if (at[i] >= shards) shards = at[i] + 1;
  /* The data of all shards together, as one run. */
  int64_t all = (shards * x->in->dims[d] - 1) * step + 1;
  for (uint32_t i = 0; i < x->n_devices; i++) {
    int64_t begin = x->low[d] - at[i] * size, own = x->offsets[d][i], end = own + locpad_spread(x, d);
    int64_t low = begin > 0 ? begin : 0, high = begin + all < size ? begin + all : size;
    if (low < high && (low < own - x->interior[d] || high > end + x->interior[d])) return false;
  }
  return true;
}

/* Where data of shard i begin, relative to the part of the result that its device has; negative: in front of it. */
static int locpad_offsets(locpad *x, uint32_t d) {
  assert(d < x->in->rank && x->in->rank == x->out->rank);
  local_pass *p = x->p;
  const sdy_sharding *in = local_operand(p, x->op, 0)->s, *out = local_result(p, x->op, 0)->s;
  if (!sdy_axes_equal(local_axes(in, d), local_axes(out, d)))
    return local_fail(p, x->op, "dimension %u is sharded in different ways before and after: expected a reshard", d);
  const int64_t *at = local_shard_indices(p, x->op, x->mesh, local_axes(in, d), &x->n_devices);
  int64_t *v = at ? BASE_ARRAY(&p->rw.arena, int64_t, (size_t)x->n_devices + 1) : NULL;
  if (!v) return local_status(p);
  x->uniform[d] = true;
  for (uint32_t i = 0; i < x->n_devices; i++) {
    v[i] = at[i] * x->in->dims[d] * (x->interior[d] + 1) + x->low[d] - at[i] * x->out->dims[d];
    x->uniform[d] = x->uniform[d] && v[i] == v[0];
  }
  x->offsets[d] = v;
  return locpad_is_own(x, d, at) ? 0
                                 : local_fail(p, x->op,
                                              "dimension %u is sharded, and padding it moves data between devices: "
                                              "expected it whole (sdy-resolve-permutation-factors)",
                                              d);
}

/* A pad of the op's operands, with other edges. */
static ir_value locpad_make(locpad *x, const ir_type *type, const int64_t *low, const int64_t *high) {
  opt_rewriter *rw = &x->p->rw;
  ir_value both[] = {opt_operand(x->op, 0), opt_operand(x->op, 1)};
  uint32_t rank = x->in->rank;
  ir_value v = opt_make(rw, IR_OP_PAD, type, 2, both);
  opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, rank, low));
  opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, rank, high));
  opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, rank, x->interior));
  return v;
}

/* Negative edges cut, as pad allows. */
static ir_value locpad_alike(locpad *x) {
  int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < x->in->rank; d++) {
    low[d] = x->offsets[d][0];
    high[d] = x->out->dims[d] - locpad_spread(x, d) - low[d];
  }
  return locpad_make(x, x->out, low, high);
}

/* The padded shard is large enough for the device that needs most on either side. */
static ir_value locpad_apart(locpad *x) {
  opt_rewriter *rw = &x->p->rw;
  int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, dims[IR_MAX_RANK] = {0};
  uint32_t rank = x->in->rank;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t most = x->offsets[d][0], least = most, spread = locpad_spread(x, d);
    for (uint32_t i = 1; i < x->n_devices; i++) {
      if (x->offsets[d][i] > most) most = x->offsets[d][i];
      if (x->offsets[d][i] < least) least = x->offsets[d][i];
    }
    low[d] = most > 0 ? most : 0;
    high[d] = x->out->dims[d] - least - spread > 0 ? x->out->dims[d] - least - spread : 0;
    dims[d] = low[d] + spread + high[d];
  }
  ir_value all[IR_MAX_RANK + 1] = {locpad_make(x, local_shape(x->p, x->in, rank, dims), low, high)};
  ir_value device = local_device(x->p);
  int64_t *table = BASE_ARRAY(&rw->arena, int64_t, (size_t)x->n_devices + 1);
  rw->failed = rw->failed || !table;
  for (uint32_t d = 0; d < rank && !rw->failed; d++) {
    for (uint32_t i = 0; i < x->n_devices; i++) table[i] = low[d] - x->offsets[d][i];
    all[d + 1] =
        x->uniform[d] ? local_scalar(x->p, XLAC_S64, table[0]) : local_look_up(x->p, device, x->n_devices, table);
  }
  ir_value v = rw->failed ? (ir_value){NULL, 0} : opt_make(rw, IR_OP_DYNAMIC_SLICE, x->out, rank + 1, all);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, rank, x->out->dims));
  return v;
}

/* Sharded dimensions fetch what is theirs, with its padding; all others are padded as before. */
static int locpad_uneven(locpad *x, const local_fact *in, const local_fact *out, uint32_t n) {
  int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0}, gaps[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < n; d++) {
    TRY(locop_same_axes(x->p, x->op, in->s, out->s, d));
    if (local_axes(in->s, d).n) {
      TRY(local_spread(x->p, x->op, d, x->low[d], x->interior[d], out->type->dims[d]));
      continue;
    }
    low[d] = x->low[d];
    gaps[d] = x->interior[d];
    high[d] = x->out->dims[d] - low[d] - locpad_spread(x, d);
  }
  x->interior = gaps;
  return local_done(x->p, x->op, locpad_make(x, x->out, low, high));
}

/* Where each device stands at the same offset in its part, one pad does for all (locpad_alike); else each device
 * computes its own offset (locpad_apart). */
int local_pad(local_pass *p, ir_op *op) {
  const local_fact *in = local_operand(p, op, 0), *out = local_result(p, op, 0);
  if (local_is_whole(in) && local_is_whole(out)) return local_retype(p, op);
  locpad x = {
      .p = p, .op = op, .mesh = sdy_mesh_of(p->rw.m, in->s ? in->s : out->s), .in = opt_type(opt_operand(op, 0))};
  uint32_t n = 0;
  TRY(local_type(p, op, out, &x.out));
  x.low = ir_m_ints(ir_mattr_of(op, "edge_padding_low"), &p->rw.arena, &n);
  x.interior = ir_m_ints(ir_mattr_of(op, "interior_padding"), &p->rw.arena, &n);
  if (!x.low || !x.interior) return base_oom(p->rw.err, "local ops");
  if (p->uneven) return locpad_uneven(&x, in, out, n);
  bool alike = true;
  for (uint32_t d = 0; d < n; d++) {
    TRY(locpad_offsets(&x, d));
    alike = alike && x.uniform[d];
  }
  return local_done(p, op, alike ? locpad_alike(&x) : locpad_apart(&x));
}
