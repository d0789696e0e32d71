/* sdy-pad-for-divisibility: dimensions that their shards do not divide get more elements at their ends, before they
 * are cut, and lose them when they are gathered. What stands there does not matter, but where a product sums over it:
 * there it is zero. Ops that would mix it with the rest are an error. For example 10 elements over 4 devices:
 * all_slice becomes a pad to 12 and an all_slice into 3 each; all_gather gives 12, of which a slice keeps 10.
 * Requires: collectives where shardings change (sdy-reshard-to-collectives). Preserves: what the program computes.
 * Source: Shardy's answers (2026-06) for slices, gathers, products and ops element by element.
 * One walk in program order: when an op is looked at its operands have their padded types, and local_note_facts has
 * kept the types that all values had before. */
#include "../local/local.h"
#include "../../base/list.h"

/* The example in text, on <["x"=4]>:
 *    %1 = stablehlo.pad %a, 0.0, low = [0], high = [2], interior = [0] : (tensor<10xf32>) -> tensor<12xf32>
 *    %2 = sdy.all_slice [{"x"}] %1 out_sharding=<@m, [{"x"}]> : tensor<12xf32>
 *    %3 = stablehlo.abs %2 : tensor<12xf32>
 *    %4 = sdy.all_gather [{"x"}] %3 out_sharding=<@m, [{}]> : tensor<12xf32>
 *    %5 = stablehlo.slice %4 [0:10] : tensor<10xf32> */
typedef struct pad_pass {
  local_pass p;
  base_map zeros; /* values (their op) whose padding is zero */
} pad_pass;

/* The next multiple of the number of shards. */
static int64_t pad_up(int64_t size, int64_t shards) {
  assert(size >= 0);
  int64_t over = shards > 1 ? size % shards : 0;
  return over ? size + shards - over : size;
}

/* The type with dimensions that shards divide; t where they do. NULL when out of memory. */
static const ir_type *pad_type(pad_pass *x, const ir_type *t, const sdy_sharding *s) {
  const sdy_mesh *mesh = s && shc_is_static(t) && s->n_dims == t->rank ? sdy_mesh_of(x->p.rw.m, s) : NULL;
  int64_t dims[IR_MAX_RANK] = {0};
  bool changed = false;
  for (uint32_t d = 0; mesh && d < t->rank; d++) {
    dims[d] = pad_up(t->dims[d], sdy_axes_size(s->dims[d].axes, mesh));
    changed = changed || dims[d] != t->dims[d];
  }
  return changed ? local_shape(&x->p, t, t->rank, dims) : t;
}

/* Padding that this pass has made itself is zero, and stays so through collectives that only move it. */
static bool pad_is_zero(const pad_pass *x, ir_value v) {
  uint64_t seen;
  return base_map_get(&x->zeros, base_key(v.op), &seen);
}

/* By op: all results of one op are padded alike. */
static void pad_note_zero(pad_pass *x, ir_value v) {
  if (v.op && !base_map_set(&x->zeros, base_key(v.op), 1)) x->p.rw.failed = true;
}

/* A sharding for an op that is made; nothing where making it has failed. */
static void pad_give(pad_pass *x, ir_value v, const sdy_sharding *s) {
  if (v.op && s && !sdy_set(v, s)) x->p.rw.failed = true;
}

/* --- what is affected --- */

/* Types are interned, so a type that does not grow is the same one. */
static bool pad_grows(pad_pass *x, const local_fact *f) {
  assert(f != NULL);
  return pad_type(x, f->type, f->s) != f->type;
}

/* Ops of which no operand or result grows are left alone, regions of control flow too. */
static bool pad_touches(pad_pass *x, const ir_op *op) {
  bool any = false;
  for (uint32_t i = 0; i < op->n_operands && !any; i++) any = pad_grows(x, local_operand(&x->p, op, i));
  for (uint32_t i = 0; i < op->n_results && !any; i++) any = pad_grows(x, local_result(&x->p, op, i));
  return any;
}

/* op with the types its operands and shardings ask for. */
static int pad_retype(pad_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->p.rw;
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)op->n_results + 1);
  if (!types) return base_oom(rw->err, "padding");
  for (uint32_t i = 0; i < op->n_results; i++) {
    const local_fact *f = local_result(&x->p, op, i);
    if (!(types[i] = pad_type(x, f->type, f->s))) return base_oom(rw->err, "padding");
  }
  opt_set_types(rw, op, types);
  return opt_rewriter_status(rw);
}

/* --- making and dropping padding --- */

/* A scalar of the element type. */
static ir_value pad_zero(pad_pass *x, const ir_type *like) {
  assert(like != NULL);
  return opt_splat(&x->p.rw, opt_tensor(&x->p.rw, (base_dtype)like->dtype, 0, NULL), 0);
}

/* v padded with zeros at the ends of its dimensions up to the type `to`, with the sharding of v. */
static ir_value pad_make(pad_pass *x, ir_value v, const ir_type *to) {
  opt_rewriter *rw = &x->p.rw;
  const ir_type *t = opt_type(v);
  assert(t->rank == to->rank);
  int64_t none[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
  for (uint32_t d = 0; d < t->rank; d++) high[d] = to->dims[d] - t->dims[d];
  ir_value both[] = {v, pad_zero(x, t)};
  const sdy_sharding *s = sdy_shown(rw->m, v);
  ir_value made = opt_make(rw, IR_OP_PAD, to, 2, both);
  opt_set(rw, made, "edge_padding_low", ir_m_i64s(rw->m, t->rank, none));
  opt_set(rw, made, "edge_padding_high", ir_m_i64s(rw->m, t->rank, high));
  opt_set(rw, made, "interior_padding", ir_m_i64s(rw->m, t->rank, none));
  pad_give(x, made, s);
  pad_note_zero(x, made);
  return made;
}

/* The sharding without axes on the dimensions that are to be gathered; lists gets these axes. NULL: out of memory. */
static const sdy_sharding *pad_gathered(pad_pass *x, const sdy_sharding *s, const bool *gather, sdy_axes *lists) {
  ir_module *m = x->p.rw.m;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *to);
  sdy_dim *dims = to ? base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims) : NULL;
  for (uint32_t d = 0; dims && d < s->n_dims; d++) {
    lists[d] = gather[d] ? s->dims[d].axes : (sdy_axes){0, NULL};
    if (gather[d]) dims[d].axes = (sdy_axes){0, NULL};
  }
  if (dims) to->dims = dims;
  return dims ? to : NULL;
}

/* v, whose type was `was` before padding, with the dimensions of `which` gathered and cut back to their sizes. */
static ir_value pad_gather_whole(pad_pass *x, ir_value v, const ir_type *was, const sdy_sharding *from,
                                 const bool *which) {
  opt_rewriter *rw = &x->p.rw;
  const ir_type *t = opt_type(v);
  sdy_axes lists[IR_MAX_RANK];
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK] = {0};
  const sdy_sharding *to = pad_gathered(x, from, which, lists);
  bool cuts = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    limits[d] = which[d] ? was->dims[d] : t->dims[d];
    strides[d] = 1;
    cuts = cuts || limits[d] != t->dims[d];
  }
  ir_value made = opt_make(rw, IR_OP_SDY_ALL_GATHER, t, 1, &v);
  opt_set(rw, made, "gathering_axes", sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, t->rank, lists)));
  opt_set(rw, made, "out_sharding", to ? sdy_attr(rw->m, SDY_SHARDING, to) : NULL);
  if (!cuts || rw->failed) return made;
  /* Only dimensions that were padded are cut back. */
  made = opt_slice(rw, made, starts, limits, strides);
  pad_give(x, made, to);
  return made;
}

/* A dimension that is cut already would be cut elsewhere when it is padded: it is made whole first, and then cut along
 * all of its axes. */
static int pad_gather_first(pad_pass *x, ir_op *op, const sdy_sharding *from, const bool *gather) {
  opt_rewriter *rw = &x->p.rw;
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v), *was = local_operand(&x->p, op, 0)->type;
  const sdy_sharding *out = sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
  const sdy_axis_lists *own = sdy_of(ir_mattr_of(op, "slicing_axes"), SDY_AXIS_LISTS);
  sdy_axes slices[IR_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) slices[d] = gather[d] ? out->dims[d].axes : own->v[d];
  ir_value made = pad_gather_whole(x, v, was, from, gather);
  const ir_mattr *all = sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, t->rank, slices));
  if (rw->failed || !all || !ir_m_set(op, "slicing_axes", all)) return base_oom(rw->err, "padding");
  ir_set_operand(op, 0, made);
  return 0;
}

/* The types: t is what the operand has now, f->type what it was, `to` what shards of the result's sharding divide. */
static int pad_all_slice(pad_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->p.rw;
  const sdy_sharding *out = sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
  const local_fact *f = local_operand(&x->p, op, 0);
  const ir_type *t = opt_type(opt_operand(op, 0)), *to = pad_type(x, f->type, out);
  bool gather[IR_MAX_RANK] = {false}, any = false;
  if (!to) return base_oom(rw->err, "padding");
  for (uint32_t d = 0; shc_is_static(t) && d < t->rank; d++) {
    gather[d] = to->dims[d] != t->dims[d] && local_axes(f->s, d).n;
    any = any || gather[d];
  }
  opt_at(rw, op);
  if (any) TRY(pad_gather_first(x, op, f->s, gather));
  ir_value v = opt_operand(op, 0);
  if (!(to = pad_type(x, opt_type(v), out))) return base_oom(rw->err, "padding");
  if (to == opt_type(v)) return pad_retype(x, op);
  ir_set_operand(op, 0, pad_make(x, v, to));
  TRY(opt_rewriter_status(rw));
  pad_note_zero(x, (ir_value){op, 0});
  return pad_retype(x, op);
}

/* v cut along lists of axes, right after op; to has the sharding it has then. */
static ir_value pad_slice_again(pad_pass *x, ir_value v, const sdy_sharding *to, const sdy_axes *lists) {
  opt_rewriter *rw = &x->p.rw;
  const ir_type *t = opt_type(v), *padded = t ? pad_type(x, t, to) : NULL;
  /* The cut dimensions may need other padding for other axes. */
  if (padded && padded != t) v = pad_make(x, v, padded);
  ir_value made = opt_make(rw, IR_OP_SDY_ALL_SLICE, padded, 1, &v);
  opt_set(rw, made, "slicing_axes", sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, to->n_dims, lists)));
  opt_set(rw, made, "out_sharding", sdy_attr(rw->m, SDY_SHARDING, to));
  return made;
}

/* What a gathered dimension was padded by goes; one that stays cut is gathered whole for that, and then cut again. */
static int pad_all_gather(pad_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->p.rw;
  const sdy_axis_lists *own = sdy_of(ir_mattr_of(op, "gathering_axes"), SDY_AXIS_LISTS);
  const sdy_sharding *out = sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING), *to = out;
  const local_fact *f = local_operand(&x->p, op, 0);
  const ir_type *before = op->type, *t = opt_type(opt_operand(op, 0));
  assert(out && t->rank <= IR_MAX_RANK);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK] = {0}, strides[IR_MAX_RANK] = {0};
  sdy_axes lists[IR_MAX_RANK], again[IR_MAX_RANK];
  bool zero = pad_is_zero(x, opt_operand(op, 0)), cuts = false, whole[IR_MAX_RANK] = {false}, any = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    bool cut = d < own->n && own->v[d].n && t->dims[d] > before->dims[d];
    limits[d] = cut ? before->dims[d] : t->dims[d];
    strides[d] = 1;
    cuts = cuts || cut;
    whole[d] = cut && local_axes(out, d).n;
    any = any || whole[d];
    lists[d] = whole[d] ? local_axes(f->s, d) : own->v[d];
    again[d] = whole[d] ? local_axes(out, d) : (sdy_axes){0, NULL};
  }
  if (any) {
    sdy_axes gone[IR_MAX_RANK];
    to = pad_gathered(x, out, whole, gone);
    const ir_mattr *all = sdy_attr(rw->m, SDY_AXIS_LISTS, sdy_axis_lists_make(rw->m, t->rank, lists));
    const ir_mattr *then = to ? sdy_attr(rw->m, SDY_SHARDING, to) : NULL;
    if (!all || !then || !ir_m_set(op, "gathering_axes", all) || !ir_m_set(op, "out_sharding", then))
      return base_oom(rw->err, "padding");
  }
  opt_set_types(rw, op, &t);
  ir_value v = {op, 0};
  if (zero) pad_note_zero(x, v);
  if (!cuts) return opt_rewriter_status(rw);
  shc_at_value(rw, v);
  ir_value part = opt_slice(rw, v, starts, limits, strides), last = part;
  pad_give(x, part, to);
  if (zero) pad_note_zero(x, part);
  if (any && !rw->failed) last = pad_slice_again(x, part, out, again);
  if (!rw->failed) shc_replace_value(rw, v, last, part.op);
  return opt_rewriter_status(rw);
}

/* --- all_to_all: a gather and a slice, where a dimension that it moves is padded --- */

/* Padding sits at the end of the global dimension, in the last shard. Moving axes would leave it in the middle, so
 * the dimensions are gathered whole, cut to their data, and sliced again. */
static int pad_all_to_all(pad_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->p.rw;
  const sdy_params *params = sdy_of(ir_mattr_of(op, "params"), SDY_PARAMS);
  const sdy_sharding *out = sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
  const local_fact *f = local_operand(&x->p, op, 0);
  ir_value v = opt_operand(op, 0);
  const ir_type *t = opt_type(v), *was = f->type, *to = pad_type(x, was, out);
  sdy_axes again[IR_MAX_RANK];
  bool moved[IR_MAX_RANK] = {false}, grows = false;
  if (!to || !f->s) return base_oom(rw->err, "padding");
  for (uint32_t i = 0; i < params->n; i++) moved[params->v[i].from] = moved[params->v[i].to] = true;
  for (uint32_t d = 0; d < t->rank; d++)
    grows = grows || (moved[d] && (t->dims[d] != was->dims[d] || to->dims[d] != was->dims[d]));
  if (!grows) return pad_retype(x, op);
  for (uint32_t d = 0; d < t->rank; d++) again[d] = moved[d] ? local_axes(out, d) : (sdy_axes){0, NULL};
  opt_at(rw, op);
  ir_value made = pad_gather_whole(x, v, was, f->s, moved);
  if (!rw->failed) made = pad_slice_again(x, made, out, again);
  if (!rw->failed) opt_replace_one(rw, op, made);
  return opt_rewriter_status(rw);
}

/* --- slices: what begins at 0 may just take more --- */

/* [0:9] of 10 elements over 4 devices: the result is padded to 12, and so is the operand, of which [0:12] is taken. */
static int pad_slice(pad_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->p.rw;
  const local_fact *f = local_result(&x->p, op, 0);
  const ir_type *to = pad_type(x, f->type, f->s), *in = opt_type(opt_operand(op, 0));
  uint32_t n = 0;
  const int64_t *starts = ir_m_ints(ir_mattr_of(op, "start_indices"), &rw->arena, &n);
  const int64_t *limits = ir_m_ints(ir_mattr_of(op, "limit_indices"), &rw->arena, &n);
  const int64_t *strides = ir_m_ints(ir_mattr_of(op, "strides"), &rw->arena, &n);
  int64_t more[IR_MAX_RANK] = {0};
  if (!to || !starts || !limits || !strides) return base_oom(rw->err, "padding");
  for (uint32_t d = 0; d < n; d++) {
    more[d] = limits[d] + (to->dims[d] - f->type->dims[d]);
    bool same = more[d] == limits[d];
    if (!same && (starts[d] != 0 || strides[d] != 1 || more[d] > in->dims[d]))
      return local_fail(
          &x->p, op,
          "dimension %u does not divide into its shards, and the slice moves it between devices: expected "
          "it whole (sdy-resolve-permutation-factors)",
          d);
  }
  const ir_mattr *a = ir_m_i64s(rw->m, n, more);
  if (!a || !ir_m_set(op, "limit_indices", a)) return base_oom(rw->err, "padding");
  return pad_retype(x, op);
}

/* --- products: zeros along what is summed over --- */

/* Which elements are the original ones.
 * iota(d) < original size, for each padded dimension of `dims`, and-ed. An op of NULL where none of them is padded. */
static ir_value pad_mask(pad_pass *x, const ir_type *padded, const ir_type *original, const sdy_sharding *s, uint32_t n,
                         const int64_t *dims) {
  assert(padded->rank == original->rank);
  opt_rewriter *rw = &x->p.rw;
  ir_value mask = {NULL, 0};
  const ir_type *index = local_shape(&x->p, opt_tensor(rw, XLAC_S32, 0, NULL), padded->rank, padded->dims);
  for (uint32_t d = 0; index && d < padded->rank; d++) {
    if (padded->dims[d] == original->dims[d] || !base_list_has(dims, n, d)) continue;
    ir_value at = opt_make(rw, IR_OP_IOTA, index, 0, NULL);
    opt_set(rw, at, "iota_dimension", ir_m_i64(rw->m, d));
    pad_give(x, at, s);
    ir_value end = local_scalar(&x->p, XLAC_S32, original->dims[d]);
    end = opt_broadcast_in_dim(rw, end, index, NULL);
    pad_give(x, end, s);
    ir_value in = opt_compare(rw, IR_DIRECTION_LT, IR_COMPARISON_NONE, at, end);
    pad_give(x, in, s);
    mask = mask.op ? opt_binary(rw, IR_OP_AND, mask, in) : in;
    pad_give(x, mask, s);
  }
  return mask;
}

/* select(mask, v, 0): only where what stands in the padding is not known to be zero. */
static int pad_zero_operand(pad_pass *x, ir_op *op, uint32_t i, uint32_t n, const int64_t *dims) {
  opt_rewriter *rw = &x->p.rw;
  ir_value v = opt_operand(op, i);
  const local_fact *f = local_operand(&x->p, op, i);
  const ir_type *t = opt_type(v);
  if (t == f->type || pad_is_zero(x, v)) return 0;
  opt_at(rw, op);
  ir_value mask = pad_mask(x, t, f->type, f->s, n, dims);
  if (!mask.op) return opt_rewriter_status(rw);
  ir_value zero = opt_broadcast_in_dim(rw, pad_zero(x, t), t, NULL);
  pad_give(x, zero, f->s);
  ir_value chosen = opt_select(rw, mask, v, zero);
  pad_give(x, chosen, f->s);
  if (!rw->failed) ir_set_operand(op, i, chosen);
  return opt_rewriter_status(rw);
}

/* Both sides are made zero along contracting dimensions: NaN * 0 of garbage on one side would be NaN. */
static int pad_dot_general(pad_pass *x, ir_op *op) {
  static const char *const sides[] = {"lhs_contracting_dimensions", "rhs_contracting_dimensions"};
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t n = 0;
    const int64_t *dims = ir_m_ints(ir_m_field(ir_mattr_of(op, "dot_dimension_numbers"), sides[i]), &x->p.rw.arena, &n);
    TRY(pad_zero_operand(x, op, i, dims ? n : 0, dims));
  }
  return pad_retype(x, op);
}

/* Features that are summed over must be zero where they are padded; windows may not reach into padding. */
static int pad_convolution(pad_pass *x, ir_op *op) {
  const ir_mattr *dims = ir_mattr_of(op, "dimension_numbers");
  int64_t in = shard_field_int(dims, "input_feature_dimension");
  int64_t kernel = shard_field_int(dims, "kernel_input_feature_dimension"), batch = 0, out = 0;
  batch = shard_field_int(dims, "input_batch_dimension");
  out = shard_field_int(dims, "kernel_output_feature_dimension");
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *t = opt_type(opt_operand(op, i)), *was = local_operand(&x->p, op, i)->type;
    for (uint32_t d = 0; d < t->rank; d++)
      if (t->dims[d] != was->dims[d] && d != (i ? kernel : in) && d != (i ? out : batch))
        return local_fail(&x->p, op, "a spatial dimension does not divide into its shards: expected it whole");
  }
  TRY(pad_zero_operand(x, op, 0, 1, &in));
  TRY(pad_zero_operand(x, op, 1, 1, &kernel));
  return pad_retype(x, op);
}

/* --- others --- */

/* Nothing of one place along a dimension that is padded gets to another. */
static bool pad_keeps_places(pad_pass *x, const ir_op *op) {
  if (shard_is_elementwise(op)) return true;
  switch (op->opcode) {
    case IR_OP_IOTA:
    case IR_OP_TRANSPOSE:
    case IR_OP_BROADCAST:
    case IR_OP_SDY_ALL_REDUCE:
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
    case IR_OP_WHILE: /* regions are looked at for themselves */
    case IR_OP_CONDITIONAL:
    case IR_OP_IF:
    case IR_OP_OPT_BARRIER:
      return true;
    case IR_OP_CONCATENATE: {
      int64_t dim = ir_m_get_int(op, "dimension", 0);
      for (uint32_t i = 0; i < op->n_operands; i++) {
        const ir_type *t = opt_type(opt_operand(op, i));
        if (t->dims[dim] != local_operand(&x->p, op, i)->type->dims[dim]) return false;
      }
      return true;
    }
    /* A reduced dimension must not be padded: its padding would be reduced with the data. */
    case IR_OP_REDUCE:
      for (uint32_t i = 0; i < op->n_operands / 2; i++) {
        uint32_t n = 0;
        const int64_t *dims = ir_m_ints(ir_mattr_of(op, "dimensions"), &x->p.rw.arena, &n);
        for (uint32_t k = 0; dims && k < n; k++)
          if (opt_type(opt_operand(op, i))->dims[dims[k]] != local_operand(&x->p, op, i)->type->dims[dims[k]])
            return false;
      }
      return true;
    default:
      return false;
  }
}

/* See shc_reshape_keeps: only the outermost dimension of a group may grow. */
static bool pad_reshape_keeps(pad_pass *x, const ir_op *op) {
  const local_fact *f = local_result(&x->p, op, 0);
  const ir_type *a = opt_type(opt_operand(op, 0)), *was = local_operand(&x->p, op, 0)->type;
  const ir_type *b = pad_type(x, f->type, f->s);
  return b && shc_is_static(a) && shc_is_static(f->type) && shc_reshape_keeps(was, a->dims, f->type, b->dims);
}

/* What is beyond the data must stay beyond the result: so it does where nothing is put after the data. */
static int pad_pad(pad_pass *x, ir_op *op) {
  const ir_type *t = opt_type(opt_operand(op, 0)), *was = local_operand(&x->p, op, 0)->type;
  const local_fact *f = local_result(&x->p, op, 0);
  const ir_type *to = pad_type(x, f->type, f->s);
  uint32_t n = 0;
  const int64_t *high = ir_m_ints(ir_mattr_of(op, "edge_padding_high"), &x->p.rw.arena, &n);
  const int64_t *gaps = ir_m_ints(ir_mattr_of(op, "interior_padding"), &x->p.rw.arena, &n);
  int64_t more[IR_MAX_RANK] = {0};
  if (!to || !high || !gaps) return base_oom(x->p.rw.err, "padding");
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t longer = t->dims[d] - was->dims[d];
    if (longer && high[d] > 0)
      return local_fail(&x->p, op, "dimension %u does not divide into its shards before or after it is padded", d);
    more[d] = high[d] + (to->dims[d] - f->type->dims[d]) - longer * (gaps[d] + 1);
  }
  const ir_mattr *a = ir_m_i64s(x->p.rw.m, n, more);
  return a && ir_m_set(op, "edge_padding_high", a) ? pad_retype(x, op) : base_oom(x->p.rw.err, "padding");
}

/* Ops with rules of their own first, then those that keep every element in its place, else the error. */
static int pad_op(pad_pass *x, ir_op *op) {
  if (op->opcode == IR_OP_PARAMETER || !pad_touches(x, op)) return 0;
  switch (op->opcode) {
    case IR_OP_SDY_ALL_SLICE:
      return pad_all_slice(x, op);
    case IR_OP_SDY_ALL_GATHER:
      return pad_all_gather(x, op);
    case IR_OP_SDY_ALL_TO_ALL:
      return pad_all_to_all(x, op);
    case IR_OP_SLICE:
      return pad_slice(x, op);
    case IR_OP_DOT:
      return pad_dot_general(x, op);
    case IR_OP_CONVOLUTION:
      return pad_convolution(x, op);
    case IR_OP_PAD:
      return pad_pad(x, op);
    default:
      break;
  }
  if (op->opcode == IR_OP_RESHAPE ? pad_reshape_keeps(x, op) : pad_keeps_places(x, op)) return pad_retype(x, op);
  int status = local_fail(&x->p, op,
                          "a dimension does not divide into its shards, and what stands in its padding would "
                          "get into the result");
  return base_hint(x->p.rw.err, status, "give it a sharding that divides it");
}

/* --- the pass --- */

/* The message is Shardy's. sdy-update-non-divisible-input-output-shardings makes signatures divisible. */
static int pad_signature(pad_pass *x, const ir_computation *f) {
  static const char *const words = "has a non-divisible sharding. Shardy expects function IO to be divisible.";
  xlac_error *err = x->p.rw.err;
  for (uint32_t i = 0; i < f->n_params; i++)
    if (pad_grows(x, local_result(&x->p, f->params[i], 0)))
      return base_fail_at(err, XLAC_E_LEGALIZE, f->line, f->col, f->name->s, "'func.func' op argument #%u %s", i,
                          words);
  for (uint32_t i = 0; i < f->n_results; i++) {
    local_fact fact = {opt_type(f->results[i]), sdy_get_result(f, i)};
    if (pad_grows(x, &fact))
      return base_fail_at(err, XLAC_E_LEGALIZE, f->line, f->col, f->name->s, "'func.func' op result #%u %s", i, words);
  }
  return 0;
}

/* Regions nest no deeper than the verifier allows.
 * Arguments of regions get the types that the ops around them now give. */
static int pad_region(pad_pass *x, ir_computation *c) {
  for (uint32_t i = 0; i < c->n_params; i++)
    if (pad_grows(x, local_result(&x->p, c->params[i], 0))) TRY(pad_retype(x, c->params[i]));
  for (ir_op *op = c->first, *next = NULL; op; op = next) {
    next = op->next;
    TRY(pad_op(x, op));
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(pad_region(x, op->called[i]));
  }
  return 0;
}

/* What is returned must fit the signature, whose types have been made divisible already: a result that has changed
 * here would need a reshard that knows how to cut it back, and only earlier passes insert those. */
static int pad_function(pad_pass *x, ir_computation *f) {
  const ir_type **before = BASE_ARRAY(&x->p.rw.arena, const ir_type *, (size_t)f->n_results + 1);
  if (!before) return base_oom(x->p.rw.err, "padding");
  for (uint32_t i = 0; i < f->n_results; i++) before[i] = opt_type(f->results[i]);
  TRY(pad_region(x, f));
  for (uint32_t i = 0; i < f->n_results; i++) {
    if (opt_type(f->results[i]) == before[i]) continue;
    return base_fail_at(x->p.rw.err, XLAC_E_LEGALIZE, f->return_line ? f->return_line : f->line, f->return_col,
                        "func.return",
                        "value %u that is returned does not divide into its shards: expected a reshard "
                        "before it",
                        i);
  }
  return 0;
}

/* Facts are noted before anything grows: rules of ops speak of the types that were. */
static int pad_all(pad_pass *x) {
  TRY(local_note_facts(&x->p));
  for (ir_computation *c = x->p.rw.m->first; c; c = c->next) {
    if (c->kind != IR_FUNCTION || c->owner || c->declaration) continue;
    TRY(pad_signature(x, c));
    TRY(pad_function(x, c));
  }
  return opt_rewriter_status(&x->p.rw);
}

/* Verified in the end: ops that were retyped in ways that do not go together are found there. */
int shard_pad(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  pad_pass x = {.p = {.channel = 1}};
  memset(err, 0, sizeof *err);
  TRY(opt_rewriter_init(&x.p.rw, m, err));
  base_map_init(&x.zeros, m->alloc);
  int status = pad_all(&x);
  base_map_free(&x.zeros);
  opt_rewriter_free(&x.p.rw);
  return status == 0 ? shc_verify(m, err) : status;
}
