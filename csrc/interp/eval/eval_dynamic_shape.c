/* StableHLO's dynamic ops, whose sizes are operands: each as its static twin with the sizes that are known by now.
 *
 * A dynamic op has its sizes as operands, so the verifier knows ranks only. Each evaluator reads the
 * sizes, checks what the static op's verifier would have, and hands over to its evaluator by a shadow op
 * (shadow.h), or builds the result itself. */
#include "shadow.h"

/* Sizes of a shape operand, as a result of this rank; nonzero when one is negative. */
static int dynamic_sizes(interp_ctx *ctx, const ir_op *op, const interp_value *shape, int64_t *dims) {
  TRY(interp_read_sizes(ctx, op, shape, op->type->rank, dims));
  for (uint32_t d = 0; d < op->type->rank; d++) {
    if (dims[d] < 0) return interp_fail(ctx, op, XLAC_E_EVAL, "size %lld of dimension %u", (long long)dims[d], d);
    if (op->type->dims[d] >= 0 && !ir_dim_is_dynamic(op->type, d) && op->type->dims[d] != dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "size %lld of dimension %u, whose type says %lld", (long long)dims[d], d,
                         (long long)op->type->dims[d]);
  }
  return 0;
}

/* Operand: the shape. */
int interp_eval_dynamic_iota(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 1);
  interp_shadow s;
  int64_t dims[IR_MAX_RANK], along = ir_m_get_int(op, "iota_dimension", 0);
  TRY(dynamic_sizes(ctx, op, operands[0], dims));
  if (along < 0 || along >= op->type->rank)
    return interp_fail(ctx, op, XLAC_E_EVAL, "iota_dimension %lld of rank %u", (long long)along, op->type->rank);
  int status = interp_shadow_begin(ctx, &s, op, IR_OP_IOTA, 0, NULL);
  interp_shadow_int(&s, IR_ATTR_IOTA_DIMENSION, along);
  if (!status) status = interp_shadow_result(ctx, &s, (base_dtype)op->type->dtype, op->type->rank, dims);
  if (!status) status = interp_shadow_eval(ctx, &s, out);
  interp_shadow_end(&s);
  return status;
}

/* known_expanding_dimensions and the like are promises that nothing here needs. */
int interp_eval_dynamic_broadcast_in_dim(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                         interp_value **out) {
  int64_t dims[IR_MAX_RANK];
  base_arena arena;
  uint32_t n;
  TRY(dynamic_sizes(ctx, op, operands[1], dims));
  base_arena_init(&arena, ctx->options.alloc);
  const int64_t *map = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), &arena, &n);
  int status = n == operands[0]->rank
                   ? interp_spread(ctx, op, operands[0], map, op->type->rank, dims, out)
                   : interp_fail(ctx, op, XLAC_E_EVAL, "broadcast_dimensions has %u dimensions, the operand %u", n,
                                 operands[0]->rank);
  base_arena_free(&arena);
  return status;
}

/* A view: the elements stay where they are. */
int interp_eval_stablehlo_dynamic_reshape(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                          interp_value **out) {
  int64_t dims[IR_MAX_RANK], count = 1;
  bool fits = true;
  TRY(dynamic_sizes(ctx, op, operands[1], dims));
  for (uint32_t d = 0; d < op->type->rank; d++) fits &= base_mul_i64(count, dims[d], &count);
  if (!fits || count != operands[0]->count)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld elements can't take the sizes asked for",
                       (long long)operands[0]->count);
  *out = interp_view(ctx, operands[0], operands[0]->dtype, op->type->rank, dims);
  return *out ? 0 : interp_failed(ctx);
}

/* Operands: array, padding value, low, high, interior. The limits keep sums of sizes within 64 bits. */
int interp_eval_dynamic_pad(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_shadow s;
  uint32_t rank = operands[0]->rank;
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], interior[IR_MAX_RANK];
  TRY(interp_read_sizes(ctx, op, operands[2], rank, low));
  TRY(interp_read_sizes(ctx, op, operands[3], rank, high));
  TRY(interp_read_sizes(ctx, op, operands[4], rank, interior));
  const int64_t limit = INT64_MAX / 8;
  for (uint32_t d = 0; d < rank; d++) {
    int64_t spread;
    bool fits = interior[d] >= 0 && base_mul_i64(operands[0]->dims[d], interior[d], &spread) && spread < limit &&
                low[d] < limit && low[d] > -limit && high[d] < limit && high[d] > -limit;
    if (!fits) return interp_fail(ctx, op, XLAC_E_EVAL, "no such padding of dimension %u", d);
  }
  int status = interp_shadow_begin(ctx, &s, op, IR_OP_PAD, 2, operands);
  ir_padding *p = base_arena_alloc(&s.arena, sizeof *p + rank * sizeof *p->v);
  if (!p) status = base_oom(ctx->err, "a padding");
  if (!status) {
    ir_attr a = ir_attr_make(IR_ATTR_PADDING);
    p->n = rank;
    for (uint32_t d = 0; d < rank; d++) p->v[d] = (ir_padding_dim){low[d], high[d], interior[d]};
    a.v.padding = p;
    interp_shadow_set(&s, a);
    status = interp_shadow_eval(ctx, &s, out);
  }
  interp_shadow_end(&s);
  return status;
}

/* Operands: array, starts, limits, strides. A slice of no elements is legal, also at the very end. */
int interp_eval_real_dynamic_slice(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  const interp_value *x = operands[0];
  int64_t start[IR_MAX_RANK], limit[IR_MAX_RANK], step[IR_MAX_RANK], dims[IR_MAX_RANK];
  int64_t from[IR_MAX_RANK], to[IR_MAX_RANK], at = 0;
  TRY(interp_read_sizes(ctx, op, operands[1], x->rank, start));
  TRY(interp_read_sizes(ctx, op, operands[2], x->rank, limit));
  TRY(interp_read_sizes(ctx, op, operands[3], x->rank, step));
  interp_strides(x->rank, x->dims, from);
  for (uint32_t d = 0; d < x->rank; d++) {
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > x->dims[d] || step[d] <= 0)
      return interp_fail(ctx, op, XLAC_E_EVAL, "[%lld:%lld:%lld] is not a slice of dimension %u, of %lld elements",
                         (long long)start[d], (long long)limit[d], (long long)step[d], d, (long long)x->dims[d]);
    int64_t span = limit[d] - start[d];
    dims[d] = span / step[d] + (span % step[d] != 0);
    at += start[d] * from[d];
    if (dims[d] > 1) from[d] *= step[d];
  }
  interp_value *r = interp_array(ctx, x->dtype, x->rank, dims);
  if (!r) return interp_failed(ctx);
  size_t bytes = base_dtype_bytes(x->dtype);
  interp_strides(x->rank, dims, to);
  int status = 0;
  if (r->count)
    status =
        interp_strided_copy(ctx, bytes, x->rank, dims, r->data, to, (const char *)x->data + at * (int64_t)bytes, from);
  return interp_deliver(status, r, out);
}

/* --- gather --- */

/* One list of MLIR's dimension_numbers as HLO's attribute. */
static int gather_attr(interp_ctx *ctx, interp_shadow *s, ir_attr_key key, const ir_mattr *numbers, const char *name) {
  uint32_t n;
  const int64_t *v = ir_m_ints(ir_m_field(numbers, name), &s->arena, &n);
  return interp_shadow_ints(ctx, s, key, n, v);
}

/* #stablehlo.gather<offset_dims = [1], ...> becomes offset_dims={1} and so on. */
static int gather_attrs(interp_ctx *ctx, interp_shadow *s, const ir_op *op) {
  const ir_mattr *numbers = ir_mattr_of(op, "dimension_numbers"), *vector;
  if (!numbers) return 0; /* typed attributes already */
  vector = ir_m_field(numbers, "index_vector_dim");
  TRY(gather_attr(ctx, s, IR_ATTR_OFFSET_DIMS, numbers, "offset_dims"));
  TRY(gather_attr(ctx, s, IR_ATTR_COLLAPSED_SLICE_DIMS, numbers, "collapsed_slice_dims"));
  TRY(gather_attr(ctx, s, IR_ATTR_START_INDEX_MAP, numbers, "start_index_map"));
  TRY(gather_attr(ctx, s, IR_ATTR_OPERAND_BATCHING_DIMS, numbers, "operand_batching_dims"));
  TRY(gather_attr(ctx, s, IR_ATTR_START_INDICES_BATCHING_DIMS, numbers, "start_indices_batching_dims"));
  interp_shadow_int(s, IR_ATTR_INDEX_VECTOR_DIM, vector ? vector->v.i : 0);
  return 0;
}

/* slice_sizes is the last operand. */
int interp_eval_dynamic_gather(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_shadow s;
  int64_t sizes[IR_MAX_RANK];
  TRY(interp_read_sizes(ctx, op, operands[2], operands[0]->rank, sizes));
  for (uint32_t d = 0; d < operands[0]->rank; d++)
    if (sizes[d] < 0 || sizes[d] > operands[0]->dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "slice size %lld of dimension %u, of %lld elements", (long long)sizes[d],
                         d, (long long)operands[0]->dims[d]);
  int status = interp_shadow_begin(ctx, &s, op, IR_OP_GATHER, 2, operands);
  if (!status) status = gather_attrs(ctx, &s, op);
  if (!status) status = interp_shadow_ints(ctx, &s, IR_ATTR_SLICE_SIZES, operands[0]->rank, sizes);
  if (!status) status = interp_shadow_eval(ctx, &s, out);
  interp_shadow_end(&s);
  return status;
}

/* --- convolution --- */

/* 0 where the field is absent. */
static int64_t conv_number(const ir_mattr *numbers, const char *name) {
  const ir_mattr *a = ir_m_field(numbers, name);
  return a ? a->v.i : 0;
}

/* NULL where they don't fit the operands' rank. HLO form has them as an attribute already. */
static const ir_conv_dims *conv_dims_of(const ir_op *op, base_arena *arena, uint32_t rank) {
  const ir_mattr *a = ir_mattr_of(op, "dimension_numbers");
  ir_conv_dims *c = BASE_NEW(arena, ir_conv_dims);
  uint32_t n = 0, nk = 0, no = 0;
  if (!a || !c) return ir_get_conv_dims(op);
  c->input_batch = conv_number(a, "input_batch_dimension");
  c->input_feature = conv_number(a, "input_feature_dimension");
  c->kernel_input_feature = conv_number(a, "kernel_input_feature_dimension");
  c->kernel_output_feature = conv_number(a, "kernel_output_feature_dimension");
  c->output_batch = conv_number(a, "output_batch_dimension");
  c->output_feature = conv_number(a, "output_feature_dimension");
  c->input_spatial = ir_m_ints(ir_m_field(a, "input_spatial_dimensions"), arena, &n);
  c->kernel_spatial = ir_m_ints(ir_m_field(a, "kernel_spatial_dimensions"), arena, &nk);
  c->output_spatial = ir_m_ints(ir_m_field(a, "output_spatial_dimensions"), arena, &no);
  c->n_spatial = n;
  return n == nk && n == no && n + 2 == rank ? c : NULL;
}

/* The list's element d, or 1 where the attribute is absent. */
static int64_t conv_listed(const ir_op *op, base_arena *arena, const char *name, uint32_t d, int64_t otherwise) {
  uint32_t n;
  const int64_t *v = ir_m_ints(ir_mattr_of(op, name), arena, &n);
  return v && d < n ? v[d] : otherwise;
}

/* Sizes are the kernel's, padding is the last operand: low and high for each spatial dimension. */
static int conv_window(interp_ctx *ctx, interp_shadow *s, const ir_op *op, const ir_conv_dims *c,
                       interp_value *const *operands) {
  const interp_value *padding = operands[2];
  ir_window *w = base_arena_zalloc(&s->arena, sizeof *w + c->n_spatial * sizeof *w->v);
  if (!w) return base_oom(ctx->err, "a window");
  if (padding->count != 2 * (int64_t)c->n_spatial)
    return interp_fail(ctx, op, XLAC_E_EVAL, "padding of %lld numbers for %u window dimensions",
                       (long long)padding->count, c->n_spatial);
  w->n = c->n_spatial;
  for (uint32_t d = 0; d < w->n; d++) {
    ir_window_dim *v = &w->v[d];
    v->size = operands[1]->dims[c->kernel_spatial[d]];
    v->stride = conv_listed(op, &s->arena, "window_strides", d, 1);
    v->padding_low = interp_element_index(padding, 2 * d);
    v->padding_high = interp_element_index(padding, 2 * d + 1);
    v->base_dilation = conv_listed(op, &s->arena, "lhs_dilation", d, 1);
    v->window_dilation = conv_listed(op, &s->arena, "rhs_dilation", d, 1);
    v->reversal = conv_listed(op, &s->arena, "window_reversal", d, 0) != 0;
    const int64_t limit = INT64_MAX / 16;
    if (v->stride < 1 || v->base_dilation < 1 || v->window_dilation < 1 || v->padding_low > limit ||
        v->padding_low < -limit || v->padding_high > limit || v->padding_high < -limit)
      return interp_fail(ctx, op, XLAC_E_EVAL, "window dimension %u has no meaning", d);
  }
  ir_attr a = ir_attr_make(IR_ATTR_WINDOW), labels = ir_attr_make(IR_ATTR_DIM_LABELS);
  a.v.window = w;
  labels.v.conv = c;
  interp_shadow_set(s, a);
  interp_shadow_set(s, labels);
  interp_shadow_int(s, IR_ATTR_FEATURE_GROUP_COUNT, ir_m_get_int(op, "feature_group_count", 1));
  interp_shadow_int(s, IR_ATTR_BATCH_GROUP_COUNT, ir_m_get_int(op, "batch_group_count", 1));
  return 0;
}

int interp_eval_dynamic_conv(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_shadow s;
  int status = interp_shadow_begin(ctx, &s, op, IR_OP_CONVOLUTION, 2, operands);
  const ir_conv_dims *c = status ? NULL : conv_dims_of(op, &s.arena, operands[0]->rank);
  if (!status && (!c || operands[1]->rank != operands[0]->rank))
    status = interp_fail(ctx, op, XLAC_E_EVAL, "dimension_numbers do not fit the operands");
  if (!status) status = conv_window(ctx, &s, op, c, operands);
  if (!status) status = interp_shadow_eval(ctx, &s, out);
  interp_shadow_end(&s);
  return status;
}
