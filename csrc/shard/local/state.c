/* What values were, what they become, and where a device's shard lies. A device's id is its number in the mesh's
 * order, or what the mesh's device_ids say of that place. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "local.h"

int local_fail(local_pass *p, const ir_op *op, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return opt_rewrite_fail(&p->rw, op, XLAC_E_LEGALIZE, "%s", text);
}

/* A refusal is in p->rw.err already; a maker that gives nothing without one has had no memory. */
int local_status(const local_pass *p) {
  if (p->rw.err->code && !p->rw.failed) return -(int)p->rw.err->code;
  return p->rw.failed ? opt_rewriter_status(&p->rw) : base_oom(p->rw.err, "local ops");
}

int local_done(local_pass *p, ir_op *op, ir_value v) {
  assert(op->n_results == 1);
  if (!v.op) return local_status(p);
  if (!p->rw.failed) opt_replace_one(&p->rw, op, v);
  return opt_rewriter_status(&p->rw);
}

/* --- facts --- */

/* The sharding that the value shows: that of its data-flow edge where it has one. */
static local_fact local_fact_of(local_pass *p, ir_value v) {
  return (local_fact){opt_type(v), sdy_shown(p->rw.m, v)};
}

/* Types change under way, so global types and shardings are noted before. */
static bool local_note_op(local_pass *p, local_facts *facts, ir_op *op) {
  local_fact *operands = BASE_ARRAY(&p->rw.arena, local_fact, (size_t)op->n_operands + 1);
  local_fact *results = BASE_ARRAY(&p->rw.arena, local_fact, (size_t)op->n_results + 1);
  if (!operands || !results) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) operands[i] = local_fact_of(p, opt_operand(op, i));
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = local_fact_of(p, (ir_value){op, i});
  facts[op->id] = (local_facts){operands, results};
  return true;
}

/* So that new channels do not meet the program's own. */
static void local_note_channel(local_pass *p, const ir_op *op) {
  const ir_mattr *a = ir_m_field(ir_mattr_of(op, "channel_handle"), "handle");
  if (a && a->kind == IR_M_INTEGER && a->v.i >= p->channel && a->v.i < INT64_MAX) p->channel = a->v.i + 1;
}

/* Regions' ops too. Ops that the pass makes have no facts: they are local from the start. */
int local_note_facts(local_pass *p) {
  ir_module *m = p->rw.m;
  p->n_ids = m->n_ids;
  p->channel = 1;
  local_facts *facts = BASE_ARRAY(&p->rw.arena, local_facts, (size_t)p->n_ids + 1);
  p->facts = facts;
  if (!facts) return base_oom(p->rw.err, "local types");
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c) {
    if (ir_mattr_of(op, "channel_handle")) local_note_channel(p, op);
    if (!local_note_op(p, facts, op)) return base_oom(p->rw.err, "local types");
  }
  return 0;
}

/* --- types --- */

/* The element type, quantised or not, is that of `like`; sizes are static. */
const ir_type *local_shape(local_pass *p, const ir_type *like, uint32_t rank, const int64_t *dims) {
  return like ? ir_tensor_mlir(p->rw.m, (base_dtype)like->dtype, like->quant, like->text, rank, dims, NULL, NULL, NULL)
              : NULL;
}

/* Sizes are divided by the number of shards. Uneven shards are refused, unless the pass is told to make them even:
 * else padding is a pass of its own. */
int local_type(local_pass *p, const ir_op *op, const local_fact *f, const ir_type **out) {
  const ir_type *t = f->type;
  *out = t;
  const sdy_mesh *mesh = f->s && t->kind == IR_TYPE_TENSOR ? sdy_mesh_of(p->rw.m, f->s) : NULL;
  if (!mesh || f->s->n_dims != t->rank) return 0;
  int64_t dims[IR_MAX_RANK] = {0};
  bool changed = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t shards = sdy_axes_size(f->s->dims[d].axes, mesh);
    assert(shards > 0);
    dims[d] = t->dims[d];
    if (shards == 1) continue;
    if (ir_dim_is_dynamic(t, d))
      return local_fail(p, op, "dimension %u is dynamic and sharded: expected a size that is known", d);
    if (dims[d] % shards && !p->uneven)
      return local_fail(p, op,
                        "dimension %u of size %lld is cut into %lld shards, which are not even: expected a sharding "
                        "that divides it (sdy-pad-for-divisibility pads)",
                        d, (long long)dims[d], (long long)shards);
    dims[d] = (dims[d] + shards - 1) / shards;
    changed = true;
  }
  if (!changed) return 0;
  if (t->has_dynamic) return local_fail(p, op, "a type with dynamic dimensions can't be sharded");
  *out = local_shape(p, t, t->rank, dims);
  return *out ? 0 : base_oom(p->rw.err, "local types");
}

/* Fails where a result's sharding does not divide it. */
int local_retype(local_pass *p, ir_op *op) {
  const ir_type **types = BASE_ARRAY(&p->rw.arena, const ir_type *, (size_t)op->n_results + 1);
  bool changed = false;
  if (!types) return base_oom(p->rw.err, "local types");
  for (uint32_t i = 0; i < op->n_results; i++) {
    TRY(local_type(p, op, local_result(p, op, i), &types[i]));
    changed = changed || types[i] != op->types[i];
  }
  if (changed) opt_set_types(&p->rw, op, types);
  return opt_rewriter_status(&p->rw);
}

/* --- places --- */

/* How far apart neighbours along an axis stand in the mesh, whose devices count row-major: on <["x"=2, "y"=4]> 4
 * along "x", 1 along "y", 2 along "y":(1)2. */
static int64_t local_stride(const sdy_mesh *mesh, sdy_axis a) {
  int at = sdy_mesh_find(mesh, a.name);
  assert(at >= 0);
  int64_t stride = mesh->axes[at].size / sdy_axis_end(a, mesh);
  for (uint32_t i = (uint32_t)at + 1; i < mesh->n_axes; i++) stride *= mesh->axes[i].size;
  return stride;
}

/* Mixed-radix numbers: each axis is a digit, major first. */
void local_places(const sdy_mesh *mesh, sdy_axes axes, int64_t *v) {
  int64_t devices = sdy_mesh_size(mesh);
  assert(devices <= LOCAL_MAX_DEVICES);
  memset(v, 0, (size_t)devices * sizeof *v);
  for (uint32_t i = 0; i < axes.n; i++) {
    int64_t stride = local_stride(mesh, axes.v[i]), size = sdy_axis_size(axes.v[i], mesh);
    for (int64_t place = 0; place < devices; place++) {
      int64_t device = mesh->n_ids ? mesh->ids[place] : place;
      assert(device >= 0 && device < devices);
      v[device] = v[device] * size + place / stride % size;
    }
  }
}

const int64_t *local_shard_indices(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, uint32_t *n) {
  int64_t devices = p->rehearsal ? sdy_axes_size(axes, mesh) : sdy_mesh_size(mesh);
  *n = (uint32_t)devices;
  if (devices > LOCAL_MAX_DEVICES) {
    (void)local_fail(p, op, "a mesh of %lld devices: there may be at most %d", (long long)devices, LOCAL_MAX_DEVICES);
    return NULL;
  }
  int64_t *v = BASE_ARRAY(&p->rw.arena, int64_t, (size_t)devices + 1);
  if (v && !p->rehearsal) local_places(mesh, axes, v);
  for (uint32_t i = 0; v && p->rehearsal && i < *n; i++) v[i] = i;
  p->rw.failed = p->rw.failed || !v;
  return v;
}

/* Integers only. */
ir_value local_scalar(local_pass *p, base_dtype dtype, int64_t value) {
  return opt_splat_int(&p->rw, opt_tensor(&p->rw, dtype, 0, NULL), value);
}

/* The identity of a maximum or minimum. Floats of 8 bits have no infinity in common, so they have none here. */
ir_value local_extreme(local_pass *p, base_dtype dtype, bool largest) {
  const ir_type *t = opt_tensor(&p->rw, dtype, 0, NULL);
  bool wide = dtype == XLAC_F16 || dtype == XLAC_BF16 || dtype == XLAC_F32 || dtype == XLAC_F64;
  if (wide) return opt_splat(&p->rw, t, largest ? INFINITY : -INFINITY);
  uint32_t bits = base_dtype_of(dtype)->bits;
  assert(bits >= 1 && bits <= 64);
  if (base_dtype_is_signed(dtype) && base_dtype_is_integer(dtype)) {
    int64_t most = (int64_t)(UINT64_MAX >> (65 - bits));
    return opt_splat_int(&p->rw, t, largest ? most : -most - 1);
  }
  if (!base_dtype_is_unsigned(dtype)) return (ir_value){NULL, 0};
  return opt_splat_int(&p->rw, t, largest ? (int64_t)(UINT64_MAX >> (64 - bits)) : 0);
}

/* u32 in StableHLO; as i64 it can be an index of any table. */
ir_value local_device(local_pass *p) {
  opt_rewriter *rw = &p->rw;
  ir_opcode own = p->by_replica ? IR_OP_REPLICA_ID : IR_OP_PARTITION_ID;
  ir_value id = opt_make(rw, own, opt_tensor(rw, XLAC_U32, 0, NULL), 0, NULL);
  return opt_convert(rw, id, XLAC_S64);
}

/* table[device]: a constant in the program, of which each device slices one element. */
ir_value local_look_up(local_pass *p, ir_value device, uint32_t n, const int64_t *table) {
  assert(n > 0);
  static const int64_t one = 1;
  opt_rewriter *rw = &p->rw;
  if (p->rehearsal && n > LOCAL_MOST_REHEARSED) n = LOCAL_MOST_REHEARSED;
  ir_value both[] = {opt_i64s(rw, n, table), device};
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_SLICE, opt_tensor(rw, XLAC_S64, 1, &one), 2, both);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, 1, &one));
  return opt_reshape(rw, v, opt_tensor(rw, XLAC_S64, 0, NULL));
}

/* A table with one entry for each device, indexed at run time by the device's number. */
ir_value local_offset(local_pass *p, const ir_op *op, const sdy_mesh *mesh, sdy_axes axes, int64_t size) {
  uint32_t n = 0;
  const int64_t *indices = local_shard_indices(p, op, mesh, axes, &n);
  int64_t *table = indices ? BASE_ARRAY(&p->rw.arena, int64_t, (size_t)n + 1) : NULL;
  if (!table) return (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) table[i] = indices[i] * size;
  return local_look_up(p, local_device(p), n, table);
}

/* A negative edge cuts. */
ir_value local_resize(local_pass *p, ir_value v, const int64_t *dims) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v);
  int64_t none[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
  bool same = true;
  if (!t) return v;
  for (uint32_t d = 0; d < t->rank; d++) {
    high[d] = dims[d] - t->dims[d];
    same = same && high[d] == 0;
  }
  if (same) return v;
  ir_value both[] = {v, opt_splat(rw, opt_tensor(rw, (base_dtype)t->dtype, 0, NULL), 0)};
  v = opt_make(rw, IR_OP_PAD, local_shape(p, t, t->rank, dims), 2, both);
  opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, t->rank, none));
  opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, t->rank, high));
  opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, t->rank, none));
  return v;
}

/* select(low <= iota + first < high, v, fill). */
ir_value local_mask(local_pass *p, ir_value v, uint32_t d, ir_value first, int64_t low, int64_t high, ir_value fill) {
  opt_rewriter *rw = &p->rw;
  const ir_type *t = opt_type(v), *index = t ? opt_with_dtype(rw, t, XLAC_S64) : NULL;
  if (!index || !first.op || !fill.op) return (ir_value){NULL, 0};
  ir_value at = opt_make(rw, IR_OP_IOTA, index, 0, NULL), in = {NULL, 0};
  opt_set(rw, at, "iota_dimension", ir_m_i64(rw->m, d));
  at = opt_binary(rw, IR_OP_ADD, at, opt_broadcast_in_dim(rw, first, index, NULL));
  in = opt_compare(rw, IR_DIRECTION_LT, IR_COMPARISON_NONE, at, opt_splat_int(rw, index, high));
  if (low != INT64_MIN)
    in = opt_binary(rw, IR_OP_AND, in,
                    opt_compare(rw, IR_DIRECTION_GE, IR_COMPARISON_NONE, at, opt_splat_int(rw, index, low)));
  return opt_select(rw, in, v, opt_type(fill) == t ? fill : opt_broadcast_in_dim(rw, fill, t, NULL));
}

int local_fill_ends(local_pass *p, ir_op *op, uint32_t i, uint32_t n, const int64_t *dims, ir_value fill) {
  const local_fact *f = local_operand(p, op, i);
  const sdy_mesh *mesh = f->s ? sdy_mesh_of(p->rw.m, f->s) : NULL;
  ir_value v = opt_operand(op, i);
  const ir_type *t = opt_type(v);
  for (uint32_t k = 0; mesh && k < n; k++) {
    uint32_t d = (uint32_t)dims[k];
    sdy_axes axes = local_axes(f->s, d);
    if (f->type->dims[d] % sdy_axes_size(axes, mesh) == 0) continue;
    if (!fill.op) fill = opt_splat(&p->rw, opt_tensor(&p->rw, (base_dtype)t->dtype, 0, NULL), 0);
    v = local_mask(p, v, d, local_offset(p, op, mesh, axes, t->dims[d]), INT64_MIN, f->type->dims[d], fill);
    if (!v.op) return local_status(p);
  }
  ir_set_operand(op, i, v);
  return 0;
}

/* A dynamic_slice at the shard's place along each dimension of `lists`. */
ir_value local_cut(local_pass *p, const ir_op *op, const sdy_mesh *mesh, const sdy_axes *lists, ir_value v,
                   const ir_type *type) {
  opt_rewriter *rw = &p->rw;
  int64_t dims[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < type->rank; d++) dims[d] = type->dims[d] * sdy_axes_size(lists[d], mesh);
  ir_value all[IR_MAX_RANK + 1] = {local_resize(p, v, dims)};
  for (uint32_t d = 0; d < type->rank; d++) {
    all[d + 1] = lists[d].n ? local_offset(p, op, mesh, lists[d], type->dims[d]) : local_scalar(p, XLAC_S64, 0);
    if (!all[d + 1].op) return all[d + 1];
  }
  ir_value cut = opt_make(rw, IR_OP_DYNAMIC_SLICE, type, type->rank + 1, all);
  opt_set(rw, cut, "slice_sizes", ir_m_i64s(rw->m, type->rank, type->dims));
  return cut;
}
