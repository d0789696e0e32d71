/* stablehlo.pad of a shard. Where every device pads alike that is a pad; else all pad as much as any does, and each
 * takes its part. */
#include "local.h"

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

static int locpad_status(local_pass *p) {
  if (p->rw.err->code && !p->rw.failed) return -(int)p->rw.err->code;
  return p->rw.failed ? opt_rewriter_status(&p->rw) : base_oom(p->rw.err, "local ops");
}

static int64_t locpad_spread(const locpad *x, uint32_t d) {
  return x->in->dims[d] ? (x->in->dims[d] - 1) * (x->interior[d] + 1) + 1 : 0;
}

/* No device's part of the result has data of another's. */
static bool locpad_is_own(const locpad *x, uint32_t d, const int64_t *at) {
  int64_t step = x->interior[d] + 1, shards = 1, size = x->out->dims[d];
  for (uint32_t i = 0; i < x->n_devices; i++)
    if (at[i] >= shards) shards = at[i] + 1;
  int64_t all = (shards * x->in->dims[d] - 1) * step + 1;
  for (uint32_t i = 0; i < x->n_devices; i++) {
    int64_t begin = x->low[d] - at[i] * size, own = x->offsets[d][i], end = own + locpad_spread(x, d);
    int64_t low = begin > 0 ? begin : 0, high = begin + all < size ? begin + all : size;
    if (low < high && (low < own - x->interior[d] || high > end + x->interior[d])) return false;
  }
  return true;
}

static int locpad_offsets(locpad *x, uint32_t d) {
  local_pass *p = x->p;
  const sdy_sharding *in = local_operand(p, x->op, 0)->s, *out = local_result(p, x->op, 0)->s;
  if (!sdy_axes_equal(local_axes(in, d), local_axes(out, d)))
    return local_fail(p, x->op, "dimension %u is sharded in different ways before and after: expected a reshard", d);
  const int64_t *at = local_shard_indices(p, x->op, x->mesh, local_axes(in, d), &x->n_devices);
  int64_t *v = at ? BASE_ARRAY(&p->rw.arena, int64_t, (size_t)x->n_devices + 1) : NULL;
  if (!v) return locpad_status(p);
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

static ir_value locpad_alike(locpad *x) {
  int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < x->in->rank; d++) {
    low[d] = x->offsets[d][0];
    high[d] = x->out->dims[d] - locpad_spread(x, d) - low[d];
  }
  return locpad_make(x, x->out, low, high);
}

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
  bool alike = true;
  for (uint32_t d = 0; d < n; d++) {
    TRY(locpad_offsets(&x, d));
    alike = alike && x.uniform[d];
  }
  ir_value v = alike ? locpad_alike(&x) : locpad_apart(&x);
  if (!v.op) return locpad_status(p);
  if (!p->rw.failed) opt_replace_one(&p->rw, op, v);
  return opt_rewriter_status(&p->rw);
}
