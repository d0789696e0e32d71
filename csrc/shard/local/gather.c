/* Gather and scatter on shards. Along a dimension that is sharded and indexed, indices are counted from where the
 * shard begins: a gather makes zeros of what is elsewhere, which an all-reduce then adds up; a scatter leaves out
 * what does not fall into the shard, as its semantics say of indices that are out of bounds. For a gather of rows
 * from 8x3 with rows sharded by 4: i' = clamp(i, 0, 7) - 2 * shard; where i' is in [0, 1] the row is this device's,
 * elsewhere zero. */
#include "../../base/list.h"
#include "local.h"

typedef struct locgat {
  local_pass *p;
  ir_op *op;
  const sdy_sharding *s; /* of what is read from or written to */
  const sdy_mesh *mesh;
  const ir_type *whole, *shard;
  const int64_t *map;      /* indexed dimensions, by component */
  const int64_t *batching; /* of the operand */
  uint32_t n_map, n_batching, n_dims;
  int64_t vector_dim;
  int64_t dims[IR_MAX_RANK]; /* sharded, one element a slice */
} locgat;

/* Indices are compared as integers of their own type. */
static ir_value locgat_compare(locgat *x, ir_direction direction, ir_value a, ir_value b) {
  return opt_compare(&x->p->rw, direction, IR_COMPARISON_NONE, a, b);
}

/* --- bounds --- */

static ir_value locgat_add(locgat *x, ir_value a, int64_t b, base_dtype dtype) {
  return opt_binary(&x->p->rw, IR_OP_ADD, a, local_scalar(x->p, dtype, b));
}

/* The first and last index of each component that fall into the shard; all do where it is not cut. */
static int locgat_bounds(locgat *x, base_dtype dtype, bool both, ir_value *low, ir_value *high) {
  for (uint32_t i = 0; i < x->n_map; i++) {
    uint32_t d = (uint32_t)x->map[i];
    assert(d < x->whole->rank);
    if (!base_list_has(x->dims, x->n_dims, d)) {
      low[i] = local_scalar(x->p, dtype, 0);
      if (both) high[i] = local_scalar(x->p, dtype, x->whole->dims[d] - 1);
      continue;
    }
    low[i] = local_offset(x->p, x->op, x->mesh, local_axes(x->s, d), x->shard->dims[d]);
    if (!low[i].op) return local_status(x->p);
    low[i] = opt_make(&x->p->rw, IR_OP_CONVERT, opt_tensor(&x->p->rw, dtype, 0, NULL), 1, &low[i]);
    if (both) high[i] = locgat_add(x, low[i], x->shard->dims[d] - 1, dtype);
  }
  return opt_rewriter_status(&x->p->rw);
}

/* A bound of every component as a tensor like the indices.
 * Components lie along index_vector_dim; one component alone needs no concatenation. */
static ir_value locgat_spread(locgat *x, const ir_type *t, const ir_value *bounds) {
  assert(x->n_map >= 1);
  static const int64_t one = 1;
  opt_rewriter *rw = &x->p->rw;
  base_dtype dtype = (base_dtype)t->dtype;
  if (x->vector_dim >= t->rank || t->dims[x->vector_dim] == 1) return opt_broadcast_in_dim(rw, bounds[0], t, NULL);
  ir_value parts[IR_MAX_RANK];
  for (uint32_t i = 0; i < x->n_map; i++) parts[i] = opt_reshape(rw, bounds[i], opt_tensor(rw, dtype, 1, &one));
  int64_t n = x->n_map;
  ir_value all = opt_concatenate(rw, x->n_map, parts, 0, opt_tensor(rw, dtype, 1, &n));
  return opt_broadcast_in_dim(rw, all, t, &x->vector_dim);
}

/* Integers of each component as a tensor like the indices.
 * In the element type of the indices, which may be narrow. */
static ir_value locgat_constant(locgat *x, const ir_type *t, uint32_t n, const int64_t *v) {
  assert(n >= 1);
  opt_rewriter *rw = &x->p->rw;
  if (x->vector_dim >= t->rank || n <= 1) return opt_splat_int(rw, t, v[0]);
  int64_t dims = n;
  const ir_type *type = opt_tensor(rw, (base_dtype)t->dtype, 1, &dims);
  size_t bytes = base_dtype_bytes((base_dtype)t->dtype);
  char *data = base_arena_alloc(&rw->arena, bytes * n);
  if (!data || !type) {
    rw->failed = true;
    return (ir_value){NULL, 0};
  }
  for (uint32_t i = 0; i < n; i++) base_store_i64((base_dtype)t->dtype, data + i * bytes, v[i]);
  return opt_broadcast_in_dim(rw, opt_constant_data(rw, type, data, false), t, &x->vector_dim);
}

/* A gather keeps what it reads inside the operand: so do its indices, before they are shifted. */
static ir_value locgat_clamp(locgat *x, ir_value indices) {
  static const int64_t zero = 0;
  int64_t last[IR_MAX_RANK] = {0};
  const ir_type *t = opt_type(indices);
  for (uint32_t i = 0; i < x->n_map; i++) last[i] = x->whole->dims[x->map[i]] - 1;
  ir_value low = locgat_constant(x, t, 1, &zero), high = locgat_constant(x, t, x->n_map, last);
  ir_value all[] = {low, indices, high};
  return opt_make(&x->p->rw, IR_OP_CLAMP, t, 3, all);
}

/* Whether an index component says where slices begin along d. */
static bool locgat_is_indexed(const locgat *x, int64_t d) {
  return base_list_has(x->map, x->n_map, d);
}

/* Whether this is the first shard along dimensions that are never indexed: index 0 is meant. */
static int locgat_first(locgat *x, ir_value *mask) {
  opt_rewriter *rw = &x->p->rw;
  ir_value all = {NULL, 0};
  for (uint32_t i = 0; i < x->n_dims; i++) {
    uint32_t d = (uint32_t)x->dims[i];
    assert(d < x->whole->rank);
    if (locgat_is_indexed(x, d)) continue;
    ir_value at = local_offset(x->p, x->op, x->mesh, local_axes(x->s, d), x->shard->dims[d]);
    if (!at.op) return local_status(x->p);
    ir_value first = locgat_compare(x, IR_DIRECTION_EQ, at, local_scalar(x->p, XLAC_S64, 0));
    all = all.op ? opt_binary(rw, IR_OP_AND, all, first) : first;
  }
  if (!all.op) return 0;
  *mask = mask->op ? opt_binary(rw, IR_OP_AND, *mask, opt_broadcast_in_dim(rw, all, opt_type(*mask), NULL)) : all;
  return opt_rewriter_status(rw);
}

/* Indices from the shard's beginning on, and (mask not NULL) which of them fall into it.
 * mask NULL (scatter): indices out of the shard are dropped by the scatter itself, so they need no clamp and no mask.
 */
static int locgat_shift(locgat *x, ir_value *indices, ir_value *mask) {
  opt_rewriter *rw = &x->p->rw;
  bool shifts = false;
  for (uint32_t i = 0; i < x->n_dims; i++) shifts = shifts || locgat_is_indexed(x, x->dims[i]);
  if (shifts) {
    const ir_type *t = opt_type(*indices);
    ir_value low[IR_MAX_RANK], high[IR_MAX_RANK], base = mask ? locgat_clamp(x, *indices) : *indices;
    TRY(locgat_bounds(x, (base_dtype)t->dtype, mask != NULL, low, high));
    ir_value least = locgat_spread(x, t, low), most = mask ? locgat_spread(x, t, high) : least;
    *indices = opt_binary(rw, IR_OP_SUBTRACT, base, least);
    ir_value above = mask ? locgat_compare(x, IR_DIRECTION_GE, base, least) : base;
    if (mask) *mask = opt_binary(rw, IR_OP_AND, above, locgat_compare(x, IR_DIRECTION_LE, base, most));
  }
  TRY(opt_rewriter_status(rw));
  return mask ? locgat_first(x, mask) : 0;
}

/* --- gather --- */

/* The lists that gather and scatter call by different names. false: out of memory, or more components than
 * dimensions. */
static bool locgat_read(locgat *x, const char *dims, const char *map, const char *batching) {
  base_arena *arena = &x->p->rw.arena;
  const ir_mattr *a = ir_mattr_of(x->op, dims);
  x->map = ir_m_ints(ir_m_field(a, map), arena, &x->n_map);
  x->batching = ir_m_ints(ir_m_field(a, batching), arena, &x->n_batching);
  x->vector_dim = shard_field_int(a, "index_vector_dim");
  return x->n_map <= IR_MAX_RANK;
}

/* Slices of sharded dimensions are all of the shard. */
static int locgat_slice_sizes(locgat *x, const int64_t *sizes, uint32_t n) {
  int64_t local[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < n; d++) {
    int64_t shards = sdy_axes_size(local_axes(x->s, d), x->mesh);
    local[d] = sizes[d];
    if (sizes[d] == 1 || shards == 1 || base_list_has(x->batching, x->n_batching, d)) continue;
    if (sizes[d] != x->whole->dims[d])
      return local_fail(x->p, x->op, "dimension %u is sharded, and slices take a part of it: expected it whole", d);
    local[d] = (local[d] + shards - 1) / shards;
  }
  const ir_mattr *a = ir_m_i64s(x->p->rw.m, n, local);
  return a && ir_m_set(x->op, "slice_sizes", a) ? 0 : base_oom(x->p->rw.err, "local ops");
}

/* One answer a slice: all components fall into the shard. */
static ir_value locgat_all(locgat *x, ir_value mask) {
  opt_rewriter *rw = &x->p->rw;
  const ir_type *t = opt_type(mask);
  if (!t || t->rank == 0 || x->vector_dim >= t->rank) return mask;
  return opt_reduce(rw, IR_OP_AND, mask, opt_splat_int(rw, opt_tensor(rw, XLAC_PRED, 0, NULL), 1), 1, &x->vector_dim);
}

/* The mask has one answer a slice: it is spread along the offset dimensions. */
static ir_value locgat_masked(locgat *x, ir_value v, ir_value mask) {
  opt_rewriter *rw = &x->p->rw;
  const ir_type *t = opt_type(v);
  uint32_t n_offset = 0, n = 0;
  const int64_t *offset =
      ir_m_ints(ir_m_field(ir_mattr_of(x->op, "dimension_numbers"), "offset_dims"), &rw->arena, &n_offset);
  int64_t dims[IR_MAX_RANK] = {0};
  mask = locgat_all(x, mask);
  for (uint32_t d = 0; t && d < t->rank; d++)
    if (!base_list_has(offset, n_offset, d)) dims[n++] = d;
  if (!mask.op || !t) return mask;
  mask = opt_broadcast_in_dim(rw, mask, opt_with_dtype(rw, t, XLAC_PRED), dims);
  return opt_select(rw, mask, v, opt_splat(rw, t, 0));
}

/* Its one use adds up what each device found.
 * Without the sum the other devices' zeros would be the result; sdy-insert-explicit-reshards makes it. */
static int locgat_is_summed(locgat *x) {
  sdy_axis room[2 * IR_MAX_RANK];
  sdy_axes over = local_added(x->p, x->op, room, 2 * IR_MAX_RANK);
  bool summed = over.n > 0;
  for (uint32_t i = 0; i < x->n_dims; i++) {
    sdy_axes axes = local_axes(x->s, (uint32_t)x->dims[i]);
    for (uint32_t k = 0; k < axes.n; k++) summed = summed && sdy_axes_overlap(over, axes.v[k]);
  }
  return summed ? 0
                : local_fail(x->p, x->op,
                             "a dimension that is indexed is sharded: expected one use, an sdy.all_reduce over its "
                             "axes (sdy-insert-explicit-reshards)");
}

/* Sharded dimensions of which slices take one element are counted from the shard; those that slices take whole are
 * whole slices of the shard. */
int local_gather(local_pass *p, ir_op *op) {
  assert(op->n_operands == 2);
  opt_rewriter *rw = &p->rw;
  const local_fact *operand = local_operand(p, op, 0);
  if (local_is_whole(operand)) return local_retype(p, op);
  locgat x = {.p = p, .op = op, .s = operand->s, .whole = operand->type, .shard = opt_type(opt_operand(op, 0))};
  x.mesh = sdy_mesh_of(rw->m, x.s);
  uint32_t n = 0;
  const int64_t *sizes = ir_m_ints(ir_mattr_of(op, "slice_sizes"), &rw->arena, &n);
  if (!locgat_read(&x, "dimension_numbers", "start_index_map", "operand_batching_dims") || !sizes)
    return base_oom(rw->err, "local ops");
  for (uint32_t d = 0; d < n; d++)
    if (sizes[d] == 1 && sdy_axes_size(local_axes(x.s, d), x.mesh) > 1 && !base_list_has(x.batching, x.n_batching, d))
      x.dims[x.n_dims++] = d;
  TRY(locgat_slice_sizes(&x, sizes, n));
  /* Shifting by a constant keeps an order, but clamping first may not make it strict; the attribute is spelled out as
   * in Shardy's output. */
  if (!ir_mattr_of(op, "indices_are_sorted") && !ir_m_set(op, "indices_are_sorted", ir_m_bool(rw->m, false)))
    return base_oom(rw->err, "local ops");
  if (x.n_dims == 0) return local_retype(p, op);
  TRY(locgat_is_summed(&x));
  ir_value indices = opt_operand(op, 1), mask = {NULL, 0};
  opt_at(rw, op);
  TRY(locgat_shift(&x, &indices, &mask));
  ir_set_operand(op, 1, indices);
  TRY(local_retype(p, op));
  rw->into = op->parent;
  rw->before = op->next;
  rw->origin = op;
  ir_value v = {op, 0}, masked = locgat_masked(&x, v, mask);
  if (!masked.op || rw->failed) return local_status(p);
  shc_replace_value(rw, v, masked, masked.op);
  return opt_rewriter_status(rw);
}

/* --- scatter --- */

/* What leaves everything as it is when it is combined with it.
 * Of the reductions that shard_scatter_reduction knows; and/or are on booleans. */
static ir_value locgat_identity(locgat *x, ir_opcode opcode) {
  opt_rewriter *rw = &x->p->rw;
  base_dtype dtype = (base_dtype)x->whole->dtype;
  const ir_type *t = opt_tensor(rw, dtype, 0, NULL);
  switch (opcode) {
    case IR_OP_ADD:
    case IR_OP_OR:
      return opt_splat(rw, t, 0);
    case IR_OP_MULTIPLY:
    case IR_OP_AND:
      return opt_splat(rw, t, 1);
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
      return local_extreme(x->p, dtype, opcode == IR_OP_MINIMUM);
    default:
      return (ir_value){NULL, 0};
  }
}

/* Axes that shard updates along places, and do not shard the input. */
static sdy_axes locgat_summed_axes(locgat *x, const local_fact *updates) {
  opt_rewriter *rw = &x->p->rw;
  uint32_t n_window = 0, n = 0, most = 0;
  const int64_t *window = ir_m_ints(ir_m_field(ir_mattr_of(x->op, "scatter_dimension_numbers"), "update_window_dims"),
                                    &rw->arena, &n_window);
  for (uint32_t d = 0; updates->s && d < updates->s->n_dims; d++) most += updates->s->dims[d].axes.n;
  sdy_axis *v = BASE_ARRAY(&rw->arena, sdy_axis, (size_t)most + 1);
  rw->failed = rw->failed || !v;
  for (uint32_t d = 0; v && updates->s && d < updates->s->n_dims; d++) {
    if (base_list_has(window, n_window, d)) continue;
    for (uint32_t i = 0; i < updates->s->dims[d].axes.n; i++) {
      sdy_axis a = updates->s->dims[d].axes.v[i];
      bool in = false;
      for (uint32_t k = 0; x->s && k < x->s->n_dims; k++)
        for (uint32_t j = 0; j < x->s->dims[k].axes.n; j++) in = in || sdy_axis_equal(x->s->dims[k].axes.v[j], a);
      if (!in) v[n++] = a;
    }
  }
  return (sdy_axes){v ? n : 0, v};
}

/* Of devices that each have some of the updates, one starts with the input and the others with nothing.
 * Shard 0 along the summed axes starts with the input: a sum over the devices then counts it once. */
static int locgat_lead(locgat *x, sdy_axes axes) {
  assert(axes.n > 0);
  static const int64_t zero = 0, one = 1;
  opt_rewriter *rw = &x->p->rw;
  ir_value identity = locgat_identity(x, shard_scatter_reduction(x->op));
  if (!identity.op)
    return rw->failed
               ? local_status(x->p)
               : local_fail(x->p, x->op,
                            "updates are sharded, and nothing leaves an element as it is when it is combined with it");
  uint32_t n = 0;
  const int64_t *at = local_shard_indices(x->p, x->op, x->mesh, axes, &n);
  uint8_t *table = at ? base_arena_alloc(&rw->arena, (size_t)n + 1) : NULL;
  if (!table) return local_status(x->p);
  for (uint32_t i = 0; i < n; i++) table[i] = at[i] == 0;
  int64_t dims = x->p->rehearsal && n > LOCAL_MOST_REHEARSED ? LOCAL_MOST_REHEARSED : n;
  ir_value device = local_device(x->p);
  ir_value both[] = {opt_constant_data(rw, opt_tensor(rw, XLAC_PRED, 1, &dims), table, false), device};
  ir_value lead = opt_make(rw, IR_OP_DYNAMIC_SLICE, opt_tensor(rw, XLAC_PRED, 1, &one), 2, both);
  opt_set(rw, lead, "slice_sizes", ir_m_i64s(rw->m, 1, &one));
  lead = opt_broadcast_in_dim(rw, lead, opt_with_dtype(rw, x->shard, XLAC_PRED), &zero);
  identity = opt_broadcast_in_dim(rw, identity, x->shard, NULL);
  for (uint32_t i = 0; i < x->op->n_operands / 2 && !rw->failed; i++)
    ir_set_operand(x->op, i, opt_select(rw, lead, opt_operand(x->op, i), identity));
  return opt_rewriter_status(rw);
}

/* The message is Shardy's. */
static int locgat_indexed_dims(locgat *x) {
  uint32_t n_inserted = 0;
  const int64_t *inserted =
      ir_m_ints(ir_m_field(ir_mattr_of(x->op, "scatter_dimension_numbers"), "inserted_window_dims"), &x->p->rw.arena,
                &n_inserted);
  for (uint32_t d = 0; x->s && d < x->s->n_dims; d++) {
    if (sdy_axes_size(x->s->dims[d].axes, x->mesh) <= 1) continue;
    if (locgat_is_indexed(x, d))
      x->dims[x->n_dims++] = d;
    else if (base_list_has(inserted, n_inserted, d))
      return local_fail(x->p, x->op,
                        "sharding operand dimension %u that is not indexed but in inserted window dimension is not "
                        "supported",
                        d);
  }
  return 0;
}

/* Updates may be sharded along batch dimensions, the input along indexed ones, or both. */
int local_scatter(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  uint32_t n = op->n_operands / 2;
  assert(op->n_operands == 2 * n + 1 && n > 0);
  const local_fact *input = local_operand(p, op, 0), *updates = local_operand(p, op, n + 1);
  if (local_is_whole(input) && local_is_whole(updates)) return local_retype(p, op);
  locgat x = {.p = p, .op = op, .s = input->s, .whole = input->type, .shard = opt_type(opt_operand(op, 0))};
  x.mesh = sdy_mesh_of(rw->m, input->s ? input->s : updates->s);
  if (!locgat_read(&x, "scatter_dimension_numbers", "scatter_dims_to_operand_dims", "input_batching_dims"))
    return base_oom(rw->err, "local ops");
  sdy_axes summed = locgat_summed_axes(&x, updates);
  opt_at(rw, op);
  if (summed.n) TRY(locgat_lead(&x, summed));
  TRY(locgat_indexed_dims(&x));
  if (x.n_dims || summed.n) {
    ir_value indices = opt_operand(op, n);
    if (x.n_dims) TRY(locgat_shift(&x, &indices, NULL));
    ir_set_operand(op, n, indices);
    static const char *const flags[] = {"indices_are_sorted", "unique_indices"};
    for (int i = 0; i < 2; i++)
      if (!ir_mattr_of(op, flags[i]) && !ir_m_set(op, flags[i], ir_m_bool(rw->m, false)))
        return base_oom(rw->err, "local ops");
  }
  return local_retype(p, op);
}
