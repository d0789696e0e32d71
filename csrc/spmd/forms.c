/* After propagation: ops that need all of a sharded dimension get a form that needs little of it.
 *
 *   dynamic slices               gathers of rows, of which each device has some
 *   reductions to one element    that no all-reduce combines (argmax): of each shard, then of what these gave
 *   windows over all before      (cumsum): of each shard, then with what the shards before it come to
 *   random numbers               of the rows that a device's part is in
 *   slices of what is padded     (stencils): padded and cut in one, so that the sharded dimension is as long as before
 *   sorts, top-k                 of each shard, then of what devices exchange (orders.c)
 *
 * In text, of %x : tensor<8xf32> cut by 4:
 *    %r = stablehlo.reshape %x -> tensor<4x2xf32> [{"x"}, {}], reduced along 1, resharded [{}], reduced along 0. */
#include "../shard/common/common.h"
#include "../shard/rules/rule.h"
#include "../base/list.h"
#include "forms.h"

ir_value spmd_form_give(form_pass *x, ir_value v, const sdy_sharding *s) {
  if (!v.op || !s || !sdy_set(v, s)) x->rw->failed = true;
  return v;
}

static bool form_is_cut(const sdy_sharding *s, uint32_t d) {
  return s && d < s->n_dims && s->dims[d].axes.n > 0;
}

bool spmd_form_begin(form_pass *x, uint32_t dim) {
  ir_value v = opt_operand(x->op, 0);
  x->t = opt_type(v);
  x->s = sdy_shown(x->rw->m, v);
  x->dim = dim;
  if (!shc_is_static(x->t) || x->t->quant || !form_is_cut(x->s, dim) || x->s->n_dims != x->t->rank) return false;
  const sdy_mesh *mesh = sdy_mesh_of(x->rw->m, x->s);
  x->shards = mesh ? sdy_axes_size(x->s->dims[dim].axes, mesh) : 1;
  return x->shards > 1 && x->s->unreduced.n == 0;
}

const sdy_sharding *spmd_form_spread(form_pass *x, uint32_t n, uint32_t cut) {
  sdy_dim dims[2 * IR_MAX_RANK];
  sdy_sharding to = *x->s;
  assert(n <= IR_MAX_RANK && x->dim < x->s->n_dims);
  to.n_dims = 0;
  to.dims = dims;
  for (uint32_t d = 0; d < x->s->n_dims; d++) {
    if (d != x->dim) dims[to.n_dims++] = x->s->dims[d];
    for (uint32_t i = 0; d == x->dim && i < n; i++)
      dims[to.n_dims++] = i == cut ? x->s->dims[d] : (sdy_dim){{0, NULL}, true, -1};
  }
  return sdy_sharding_make(x->rw->m, &to);
}

/* x's sharding, with `dim` as two dimensions: the shards (cut, or not), and their contents. drop: without these. */
static const sdy_sharding *form_split(form_pass *x, bool cut, bool drop) {
  return spmd_form_spread(x, drop ? 1 : 2, cut ? 0 : 2);
}

ir_value spmd_form_reshape(form_pass *x, ir_value v, uint32_t from, uint32_t n, const int64_t *sizes, uint32_t cut) {
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK];
  uint32_t rank = 0;
  if (!t || x->rw->failed) return v;
  assert(t->rank + n - from <= IR_MAX_RANK && x->dim + from <= t->rank);
  for (uint32_t d = 0; d < x->dim; d++) dims[rank++] = t->dims[d];
  for (uint32_t i = 0; i < n; i++) dims[rank++] = sizes[i];
  for (uint32_t d = x->dim + from; d < t->rank; d++) dims[rank++] = t->dims[d];
  v = opt_reshape(x->rw, v, opt_tensor(x->rw, (base_dtype)t->dtype, rank, dims));
  return spmd_form_give(x, v, spmd_form_spread(x, n, cut));
}

/* A reshape of v to its dimension's shards and what is in them. */
static ir_value form_in_shards(form_pass *x, ir_value v) {
  int64_t sizes[] = {x->shards, x->t->dims[x->dim] / x->shards};
  return spmd_form_reshape(x, v, 1, 2, sizes, 0);
}

ir_value spmd_form_reshard(form_pass *x, ir_value v, const sdy_sharding *s) {
  return spmd_form_give(x, opt_make(x->rw, IR_OP_SDY_RESHARD, opt_type(v), 1, &v), s);
}

/* --- dynamic slices --- */

/* Only one dimension that is taken in part is cut, and a small part of it is taken. */
static bool form_slice_fits(form_pass *x) {
  const ir_type *in = opt_type(opt_operand(x->op, 0)), *out = x->op->types[0];
  const sdy_sharding *s = sdy_shown(x->rw->m, opt_operand(x->op, 0));
  uint32_t n = 0, dim = 0;
  if (!shc_is_static(in) || in->rank > 30) return false;
  for (uint32_t d = 0; d < in->rank; d++)
    if (in->dims[d] != out->dims[d] && form_is_cut(s, d)) dim = d, n++;
  return n == 1 && spmd_form_begin(x, dim) && out->dims[dim] > 0 && 2 * out->dims[dim] < in->dims[dim] &&
         in->dims[dim] <= INT32_MAX;
}

/* Rows `start`, start + 1, ... of v along dim. */
static ir_value form_rows(form_pass *x, ir_value v, ir_value start, const ir_type *type) {
  opt_rewriter *rw = x->rw;
  ir_module *m = rw->m;
  int64_t n = type->dims[x->dim], last = x->t->dims[x->dim] - n, rows[] = {n, 1}, dim = x->dim, vector = 1;
  int64_t offsets[IR_MAX_RANK], sizes[IR_MAX_RANK];
  uint32_t n_offsets = 0;
  const ir_type *wide = opt_tensor(rw, XLAC_S64, 0, NULL), *t = opt_tensor(rw, XLAC_S64, 2, rows);
  ir_value bounds[] = {opt_splat_int(rw, wide, 0), opt_convert(rw, start, XLAC_S64), opt_splat_int(rw, wide, last)};
  ir_value first = opt_make(rw, IR_OP_CLAMP, wide, 3, bounds), at = opt_make(rw, IR_OP_IOTA, t, 0, NULL);
  opt_set(rw, at, "iota_dimension", ir_m_i64(m, 0));
  ir_value both[] = {v, opt_binary(rw, IR_OP_ADD, at, opt_broadcast_in_dim(rw, first, t, NULL))};
  for (uint32_t d = 0; d < type->rank; d++) {
    sizes[d] = d == x->dim ? 1 : type->dims[d];
    if (d != x->dim) offsets[n_offsets++] = d;
  }
  ir_mentry fields[] = {{ir_intern(m, "offset_dims", 11), ir_m_i64s(m, n_offsets, offsets)},
                        {ir_intern(m, "collapsed_slice_dims", 20), ir_m_i64s(m, 1, &dim)},
                        {ir_intern(m, "start_index_map", 15), ir_m_i64s(m, 1, &dim)},
                        {ir_intern(m, "index_vector_dim", 16), ir_m_i64(m, vector)}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    rw->failed = rw->failed || !fields[i].key || !fields[i].value;
  if (rw->failed) return v;
  v = opt_make(rw, IR_OP_GATHER, type, 2, both);
  opt_set(rw, v, "dimension_numbers", ir_m_struct(m, "stablehlo", "gather", 4, fields));
  opt_set(rw, v, "slice_sizes", ir_m_i64s(m, type->rank, sizes));
  return v;
}

/* Other dimensions are sliced first: they are whole. */
static void form_slice(form_pass *x) {
  opt_rewriter *rw = x->rw;
  const ir_type *out = x->op->types[0];
  const sdy_sharding *to = sdy_get((ir_value){x->op, 0});
  ir_value all[IR_MAX_RANK + 1], start = opt_operand(x->op, 1 + x->dim);
  int64_t sizes[IR_MAX_RANK];
  bool others = false;
  for (uint32_t i = 0; i < x->op->n_operands; i++) all[i] = opt_operand(x->op, i);
  all[1 + x->dim] = opt_splat_int(rw, opt_type(start), 0);
  for (uint32_t d = 0; d < out->rank; d++) {
    sizes[d] = d == x->dim ? x->t->dims[d] : out->dims[d];
    others = others || sizes[d] != x->t->dims[d];
  }
  ir_value v = all[0];
  if (others) {
    const ir_type *t = opt_tensor(rw, (base_dtype)out->dtype, out->rank, sizes);
    v = spmd_form_give(x, opt_make(rw, IR_OP_DYNAMIC_SLICE, t, 1 + out->rank, all), x->s);
    opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, out->rank, sizes));
  }
  if (!rw->failed) v = form_rows(x, v, start, out);
  if (to) spmd_form_give(x, v, to);
  if (!rw->failed) opt_replace_one(rw, x->op, v);
}

/* --- slices of what is padded --- */

/* Edges of the pad that gives what the slice takes of the padded; false: it takes steps, or there are gaps. */
static bool form_edges(form_pass *x, const ir_op *pad, int64_t *low, int64_t *high) {
  static const char *const names[] = {"edge_padding_low", "interior_padding"}, *const cuts[] = {"start_indices",
                                                                                                "strides"};
  const int64_t *padding[2], *cut[2];
  const ir_type *in = ir_operand_type(pad, 0);
  uint32_t n = 0;
  bool fits = true;
  for (uint32_t i = 0; i < 2 && fits; i++) {
    padding[i] = ir_m_ints(ir_mattr_of(pad, names[i]), &x->rw->arena, &n);
    cut[i] = ir_m_ints(ir_mattr_of(x->op, cuts[i]), &x->rw->arena, &n);
    fits = padding[i] && cut[i] && n == in->rank;
  }
  for (uint32_t d = 0; fits && d < in->rank; d++) {
    low[d] = padding[0][d] - cut[0][d];
    high[d] = x->op->types[0]->dims[d] - low[d] - in->dims[d];
    fits = padding[1][d] == 0 && cut[1][d] == 1;
  }
  return fits;
}

/* What is padded is cut evenly, and is again what the slice gives; the padded is not. */
static bool form_pad_fits(form_pass *x) {
  const ir_op *pad = opt_operand(x->op, 0).op;
  if (pad->opcode != IR_OP_PAD || !shc_is_static(pad->types[0])) return false;
  const ir_type *in = ir_operand_type(pad, 0), *out = x->op->types[0];
  x->s = sdy_shown(x->rw->m, opt_operand(pad, 0));
  const sdy_mesh *mesh = x->s ? sdy_mesh_of(x->rw->m, x->s) : NULL;
  bool fits = mesh && x->s->n_dims == in->rank && x->s->unreduced.n == 0 && !in->quant, uneven = false;
  for (uint32_t d = 0; fits && d < in->rank; d++) {
    int64_t shards = sdy_axes_size(x->s->dims[d].axes, mesh);
    fits = shards == 1 || (in->dims[d] == out->dims[d] && in->dims[d] % shards == 0);
    uneven = uneven || pad->types[0]->dims[d] % shards != 0;
  }
  return fits && uneven;
}

static bool form_pad(form_pass *x) {
  opt_rewriter *rw = x->rw;
  const ir_op *pad = opt_operand(x->op, 0).op;
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], gaps[IR_MAX_RANK] = {0};
  ir_value both[] = {opt_operand(pad, 0), opt_operand(pad, 1)};
  uint32_t rank = x->op->types[0]->rank;
  if (!form_edges(x, pad, low, high)) return false;
  ir_value v = spmd_form_give(x, opt_make(rw, IR_OP_PAD, x->op->types[0], 2, both), x->s);
  opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, rank, low));
  opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, rank, high));
  opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, rank, gaps));
  if (!rw->failed) opt_replace_one(rw, x->op, v);
  return true;
}

/* --- reductions --- */

/* What has unreduced axes propagation has added up along the others. */
static bool form_is_summed(const ir_op *op) {
  IR_FOR_USES(use, op)
  if (use->user->opcode == IR_OP_SDY_ALL_REDUCE) return true;
  return false;
}

/* The one dimension that is reduced and cut; its shards divide it. */
static bool form_reduce_fits(form_pass *x) {
  const ir_op *op = x->op;
  const sdy_sharding *s = sdy_shown(x->rw->m, opt_operand(op, 0));
  uint32_t n = 0, cut = 0, dim = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "dimensions"), &x->rw->arena, &n);
  for (uint32_t i = 0; dims && i < n; i++)
    if (form_is_cut(s, (uint32_t)dims[i])) dim = (uint32_t)dims[i], cut++;
  if (op->n_results < 2 || cut != 1 || form_is_summed(op) || !spmd_form_begin(x, dim) || x->t->dims[dim] % x->shards)
    return false;
  for (uint32_t i = 1; i < op->n_operands / 2; i++) {
    const sdy_sharding *other = sdy_shown(x->rw->m, opt_operand(op, i));
    if (!other || !sdy_sharding_equivalent(other, s)) return false;
  }
  return x->t->rank < IR_MAX_RANK;
}

/* op's reduction of other operands along other dimensions. */
static ir_op *form_reduce_again(form_pass *x, const ir_value *operands, uint32_t n, const int64_t *dims,
                                const ir_type *const *types) {
  opt_rewriter *rw = x->rw;
  uint32_t results = x->op->n_results;
  ir_value *made = BASE_ARRAY(&rw->arena, ir_value, (size_t)results + 1);
  if (!made || rw->failed) return NULL;
  opt_copy_op(rw, x->op, operands, made);
  if (!made[0].op) return NULL;
  opt_set(rw, made[0], "dimensions", ir_m_i64s(rw->m, n, dims));
  opt_set_types(rw, made[0].op, types);
  return rw->failed ? NULL : made[0].op;
}

static void form_reduce(form_pass *x) {
  opt_rewriter *rw = x->rw;
  ir_op *op = x->op;
  uint32_t n = 0, results = op->n_results, before = 0, kept = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "dimensions"), &rw->arena, &n);
  ir_value *operands = BASE_ARRAY(&rw->arena, ir_value, 2 * (size_t)results);
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)results);
  int64_t inner[IR_MAX_RANK], sizes[IR_MAX_RANK];
  if (!operands || !types || !dims) {
    rw->failed = true;
    return;
  }
  for (uint32_t i = 0; i < n; i++) inner[i] = dims[i] + (dims[i] >= (int64_t)x->dim);
  for (uint32_t d = 0; d < x->t->rank; d++) {
    if (d == x->dim) before = kept;
    if (d == x->dim || !base_list_has(dims, n, d)) sizes[kept++] = d == x->dim ? x->shards : x->t->dims[d];
  }
  for (uint32_t i = 0; i < results; i++) {
    operands[i] = form_in_shards(x, opt_operand(op, i));
    operands[results + i] = opt_operand(op, results + i);
    types[i] = opt_tensor(rw, (base_dtype)op->types[i]->dtype, kept, sizes);
  }
  ir_op *each = form_reduce_again(x, operands, n, inner, types);
  sdy_dim cut[IR_MAX_RANK];
  sdy_sharding s = *x->s;
  s.n_dims = 0;
  s.dims = cut;
  for (uint32_t d = 0; d < x->t->rank; d++)
    if (d == x->dim || !base_list_has(dims, n, d)) cut[s.n_dims++] = x->s->dims[d];
  const sdy_sharding *in_parts = sdy_sharding_make(rw->m, &s);
  cut[before].axes.n = 0;
  const sdy_sharding *together = sdy_sharding_make(rw->m, &s);
  for (uint32_t i = 0; each && i < results; i++) {
    ir_value v = spmd_form_give(x, (ir_value){each, i}, in_parts);
    operands[i] = spmd_form_reshard(x, v, together);
    types[i] = op->types[i];
  }
  inner[0] = before;
  ir_op *all = each ? form_reduce_again(x, operands, 1, inner, types) : NULL;
  for (uint32_t i = 0; all && i < results; i++) {
    const sdy_sharding *to = sdy_get((ir_value){op, i});
    operands[i] = (ir_value){all, i};
    if (to) spmd_form_give(x, operands[i], to);
  }
  rw->failed = rw->failed || !all;
  if (!rw->failed) opt_replace_op(rw, op, operands);
}

/* --- windows over all before --- */

static int64_t form_int(form_pass *x, const char *key, uint32_t at, int64_t other) {
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(ir_mattr_of(x->op, key), &x->rw->arena, &n);
  return v && at < n ? v[at] : other;
}

/* Windows as long as the dimension, which end at each element; `back`: or begin there. */
static bool form_scan_fits(form_pass *x, bool *back) {
  ir_op *op = x->op;
  if (op->n_results != 1 || !shc_is_static(op->types[0]) || op->types[0]->rank >= IR_MAX_RANK) return false;
  uint32_t found = 0, dim = 0;
  for (uint32_t d = 0; d < op->types[0]->rank; d++) {
    int64_t size = form_int(x, "window_dimensions", d, 1);
    if (form_int(x, "window_strides", d, 1) != 1 || form_int(x, "base_dilations", d, 1) != 1 ||
        form_int(x, "window_dilations", d, 1) != 1)
      return false;
    if (size != 1) dim = d, found++;
    if (size == 1 && (form_int(x, "padding", 2 * d, 0) || form_int(x, "padding", 2 * d + 1, 0))) return false;
  }
  if (found != 1 || !spmd_form_begin(x, dim) || x->t->dims[dim] % x->shards) return false;
  int64_t size = x->t->dims[dim], low = form_int(x, "padding", 2 * dim, 0),
          high = form_int(x, "padding", 2 * dim + 1, 0);
  *back = low == 0;
  return form_int(x, "window_dimensions", dim, 1) == size && low + high == size - 1 && (low == 0 || high == 0) &&
         shard_scatter_reduction(op) != IR_OP_INVALID;
}

/* The same windows of v, of rank + 1 dimensions: `size` elements along d, and these edges. */
static ir_value form_windows(form_pass *x, ir_value v, uint32_t d, int64_t size, int64_t low, int64_t high) {
  opt_rewriter *rw = x->rw;
  const ir_type *t = opt_type(v);
  ir_value both[] = {v, opt_operand(x->op, 1)}, made = {NULL, 0};
  int64_t ones[IR_MAX_RANK], window[IR_MAX_RANK], edges[2 * IR_MAX_RANK] = {0};
  if (!t || rw->failed) return made;
  for (uint32_t k = 0; k < t->rank; k++) ones[k] = window[k] = 1;
  window[d] = size;
  edges[2 * d] = low;
  edges[2 * d + 1] = high;
  int64_t dims[] = {t->rank, 2};
  opt_copy_op(rw, x->op, both, &made);
  opt_set(rw, made, "window_dimensions", ir_m_i64s(rw->m, t->rank, window));
  opt_set(rw, made, "padding", ir_m_dense_i64(rw->m, 2, dims, edges));
  static const char *const plain[] = {"window_strides", "base_dilations", "window_dilations"};
  for (int i = 0; i < 3; i++) opt_set(rw, made, plain[i], ir_m_i64s(rw->m, t->rank, ones));
  if (made.op) opt_set_types(rw, made.op, &t);
  return made;
}

/* What all shards before one come to is a scan of what each comes to, which all devices do. */
static void form_scan(form_pass *x, bool back) {
  opt_rewriter *rw = x->rw;
  ir_op *op = x->op;
  int64_t size = x->t->dims[x->dim] / x->shards, starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], ones[IR_MAX_RANK];
  int64_t dims[IR_MAX_RANK];
  const sdy_sharding *to = sdy_get((ir_value){op, 0});
  ir_value v = form_windows(x, form_in_shards(x, opt_operand(op, 0)), x->dim + 1, size, back ? 0 : size - 1,
                            back ? size - 1 : 0);
  spmd_form_give(x, v, form_split(x, true, false));
  const ir_type *t = opt_type(v);
  if (rw->failed || !t) return;
  for (uint32_t d = 0; d < t->rank; d++) limits[d] = t->dims[d], ones[d] = 1, dims[d] = d;
  starts[x->dim + 1] = back ? 0 : size - 1;
  limits[x->dim + 1] = starts[x->dim + 1] + 1;
  ir_value ends = spmd_form_give(x, opt_slice(rw, v, starts, limits, ones), form_split(x, true, false));
  ends = spmd_form_reshard(x, ends, form_split(x, false, false));
  /* All but the last shard (the first one), behind (before) the initial value. */
  const ir_type *whole = opt_type(ends);
  int64_t edges[3][IR_MAX_RANK] = {{0}};
  edges[back][x->dim] = 1;
  edges[!back][x->dim] = -1;
  ir_value both[] = {ends, opt_operand(op, 1)};
  ends = spmd_form_give(x, opt_make(rw, IR_OP_PAD, whole, 2, both), form_split(x, false, false));
  opt_set(rw, ends, "edge_padding_low", ir_m_i64s(rw->m, t->rank, edges[0]));
  opt_set(rw, ends, "edge_padding_high", ir_m_i64s(rw->m, t->rank, edges[1]));
  opt_set(rw, ends, "interior_padding", ir_m_i64s(rw->m, t->rank, edges[2]));
  ends = form_windows(x, ends, x->dim, x->shards, back ? 0 : x->shards - 1, back ? x->shards - 1 : 0);
  spmd_form_give(x, ends, form_split(x, false, false));
  if (rw->failed) return;
  ends = spmd_form_reshard(x, ends, form_split(x, true, false));
  /* As one element for each shard: a dimension of one element is not spread together with others. */
  int64_t sizes[IR_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < t->rank; d++)
    if (d != x->dim + 1) dims[n] = d, sizes[n++] = t->dims[d];
  ends = spmd_form_give(x, opt_reshape(rw, ends, opt_tensor(rw, (base_dtype)t->dtype, n, sizes)),
                        form_split(x, true, true));
  ends = spmd_form_give(x, opt_broadcast_in_dim(rw, ends, t, dims), form_split(x, true, false));
  v = spmd_form_give(x, opt_binary(rw, shard_scatter_reduction(op), ends, v), form_split(x, true, false));
  v = spmd_form_give(x, opt_reshape(rw, v, op->types[0]), to ? to : x->s);
  if (!rw->failed) opt_replace_one(rw, op, v);
}

/* --- random numbers --- */

/* The sharding of the numbers along their first dimension of more than one element alone. */
static const sdy_sharding *form_draw_sharding(form_pass *x) {
  const ir_type *t = x->op->types[1];
  const sdy_sharding *s = sdy_get((ir_value){x->op, 1});
  sdy_dim dims[IR_MAX_RANK];
  uint32_t first = 0;
  if (!s || !shc_is_static(t) || s->n_dims != t->rank || s->unreduced.n) return NULL;
  while (first < t->rank && t->dims[first] == 1) first++;
  for (uint32_t d = 0; d < t->rank; d++) {
    dims[d] = s->dims[d];
    if (d != first) dims[d].axes.n = 0;
  }
  sdy_sharding to = *s;
  to.dims = dims;
  return sdy_sharding_make(x->rw->m, &to);
}

static bool form_draw_fits(form_pass *x) {
  x->s = form_draw_sharding(x);
  return x->s && !spmd_draws_alone(x->rw->m, x->op, sdy_get((ir_value){x->op, 1})) &&
         spmd_draws_alone(x->rw->m, x->op, x->s);
}

/* Each device draws the rows that its numbers are in. */
static void form_draw(form_pass *x) {
  ir_value state = opt_operand(x->op, 0), made[2];
  const sdy_sharding *to = sdy_get((ir_value){x->op, 1});
  opt_copy_op(x->rw, x->op, &state, made);
  if (x->rw->failed) return;
  made[1] = spmd_form_reshard(x, spmd_form_give(x, made[1], x->s), to);
  if (!x->rw->failed) opt_replace_op(x->rw, x->op, made);
}

/* Where shardings are decided a barrier is where they change. */
static void form_barrier(form_pass *x) {
  ir_value v = opt_operand(x->op, 0);
  const sdy_sharding *to = sdy_get((ir_value){x->op, 0});
  if (to) v = spmd_form_reshard(x, v, to);
  if (!x->rw->failed) opt_replace_one(x->rw, x->op, v);
}

/* --- all --- */

static int form_op(void *ctx, ir_op *op) {
  opt_rewriter *rw = ctx;
  form_pass x = {.rw = rw, .op = op};
  bool back = false;
  opt_at(rw, op);
  if (op->opcode == IR_OP_DYNAMIC_SLICE && form_slice_fits(&x)) {
    form_slice(&x);
  } else if (op->opcode == IR_OP_SLICE && form_pad_fits(&x)) {
    if (!form_pad(&x)) return 0;
  } else if (op->opcode == IR_OP_SDY_PROPAGATION_BARRIER) {
    form_barrier(&x);
  } else if (op->opcode == IR_OP_REDUCE && form_reduce_fits(&x)) {
    form_reduce(&x);
  } else if (op->opcode == IR_OP_REDUCE_WINDOW && form_scan_fits(&x, &back)) {
    form_scan(&x, back);
  } else if (op->opcode == IR_OP_RNG_BIT_GENERATOR && form_draw_fits(&x)) {
    form_draw(&x);
  } else if (op->opcode == IR_OP_SORT && spmd_form_sort_fits(&x)) {
    spmd_form_sort(&x);
  } else if (op->opcode == IR_OP_TOPK && spmd_form_top_k_fits(&x)) {
    spmd_form_top_k(&x);
  } else {
    return 0;
  }
  return rw->failed ? -XLAC_E_OUT_OF_MEMORY : SHC_SKIP;
}

int spmd_make_forms(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = shc_walk_module(m, false, form_op, &rw);
  int ended = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "forms of ops") : status ? status : ended;
}
