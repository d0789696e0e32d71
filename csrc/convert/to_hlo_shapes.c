/* From MLIR form to HLO form: constants, broadcasts, contractions, windows, paddings and slices.
 *
 *   %c = stablehlo.constant dense<1.0> : tensor<4xf32>
 *
 *   %c = f32[] constant(1)
 *   %b = f32[4] broadcast(%c), dimensions={} */
#include "to_hlo.h"

/* --- constants --- */

/* `l` has at least as many bytes as the type. */
static ir_op *constant_of(to_hlo_op *x, const ir_type *type, const ir_literal *l) {
  ir_literal *copy = ir_literal_new(x->t->to, type);
  ir_op *made = copy ? to_hlo_emit(x, IR_OP_CONSTANT, type, 0, NULL, 0) : NULL;
  if (!made) return NULL;
  size_t n = (size_t)type->count * base_dtype_bytes((base_dtype)type->dtype);
  if (n) memcpy(copy->data, l->data, n);
  made->u.literal = copy;
  return made;
}

/* A splat of rank 1 or more is a scalar and a broadcast. A constant whose data was elided from the text
 * (dense_resource<__elided__>) stays without; one whose resource is missing can't be translated. */
int to_hlo_constant(to_hlo_op *x) {
  to_hlo *t = x->t;
  const ir_mattr *value = ir_mattr_of(x->op, "value");
  const ir_type *type = to_hlo_type(t, x->op->type);
  if (!type) return to_hlo_no_memory(t);
  if (!value->v.literal && value->str && strncmp(value->str->s, "__elided__", 10) == 0) {
    ir_literal *unknown = BASE_NEW(&t->to->arena, ir_literal);
    x->results[0] = unknown ? to_hlo_emit(x, IR_OP_CONSTANT, type, 0, NULL, 0) : NULL;
    if (!x->results[0]) return to_hlo_no_memory(t);
    unknown->type = type;
    unknown->elided = true;
    x->results[0]->u.literal = unknown;
    return 0;
  }
  if (!value->v.literal)
    return to_hlo_fail(t, x->op, XLAC_E_EVAL, "the constant's data, resource %s, is not in the module",
                       value->str ? value->str->s : "");
  bool spread = value->splat && type->rank > 0 && type->count > 0;
  const ir_type *scalar = spread && type->quant ? NULL : spread ? ir_scalar(t->to, (base_dtype)type->dtype) : type;
  if (!spread && value->splat && type->count == 0) { /* no elements at all */
    ir_literal empty = {.type = type};
    x->results[0] = constant_of(x, type, &empty);
    return x->results[0] ? 0 : to_hlo_no_memory(t);
  }
  if (spread && type->quant) {
    const ir_type *plain =
        ir_tensor_mlir(t->to, (base_dtype)type->dtype, type->quant, NULL, 0, NULL, NULL, NULL, t->err);
    const ir_layout *layout = ir_layout_default(t->to, 0);
    scalar = plain && layout ? ir_type_with_layout(t->to, plain, layout) : NULL;
  }
  ir_op *made = scalar ? constant_of(x, scalar, value->v.literal) : NULL;
  if (made && spread) {
    made = to_hlo_emit(x, IR_OP_BROADCAST, type, 1, &made, 0);
    if (made && !ir_set_ints(made, IR_ATTR_DIMENSIONS, 0, NULL)) made = NULL;
  }
  x->results[0] = made;
  return made ? 0 : to_hlo_no_memory(t);
}

/* --- broadcasts --- */

/* Operand dimension i is dimension dims[i] of the result. */
static ir_op *broadcast(to_hlo_op *x, const ir_type *type, ir_op *operand, uint32_t n, const int64_t *dims) {
  assert(n <= type->rank);
  ir_op *made = to_hlo_emit(x, IR_OP_BROADCAST, type, 1, &operand, 0);
  return made && ir_set_ints(made, IR_ATTR_DIMENSIONS, n, dims) ? made : NULL;
}

/* HLO's broadcast does not stretch dimensions of size 1: they are dropped first.
 *   tensor<1x3xf32>, dims = [0, 1], to tensor<2x3xf32>
 *
 *   %r = f32[3] reshape(%x)
 *   %b = f32[2,3] broadcast(%r), dimensions={1}
 *
 * A dimension of size 1 that stays 1 needs no stretching and is kept. */
int to_hlo_broadcast_in_dim(to_hlo_op *x) {
  uint32_t n, kept = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(x->op, "broadcast_dimensions"), &x->t->to->arena, &n);
  assert(x->op->n_operands == 1);
  const ir_type *from = x->operands[0]->type, *type = to_hlo_type(x->t, x->op->type);
  int64_t sizes[IR_MAX_RANK], places[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK], any = false;
  if (!type) return to_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < from->rank; i++) {
    if (from->dims[i] == 1 && !ir_dim_is_dynamic(from, i) &&
        (type->dims[dims[i]] != 1 || ir_dim_is_dynamic(type, (uint32_t)dims[i])))
      continue;
    assert(dims[i] >= 0 && dims[i] < type->rank);
    sizes[kept] = from->dims[i];
    dynamic[kept] = ir_dim_is_dynamic(from, i);
    any = any || dynamic[kept];
    places[kept++] = dims[i];
  }
  ir_op *operand = x->operands[0];
  if (kept < from->rank) {
    const ir_type *plain = ir_tensor_mlir(x->t->to, (base_dtype)from->dtype, from->quant, NULL, kept, sizes,
                                          any ? dynamic : NULL, NULL, x->t->err);
    const ir_layout *layout = ir_layout_default(x->t->to, kept);
    const ir_type *less = plain && layout ? ir_type_with_layout(x->t->to, plain, layout) : NULL;
    operand = less ? to_hlo_emit(x, IR_OP_RESHAPE, less, 1, &operand, 0) : NULL;
  }
  x->results[0] = operand ? broadcast(x, type, operand, kept, places) : NULL;
  return x->results[0] ? 0 : to_hlo_no_memory(x->t);
}

/* The operand's dimensions are the last of the result. */
int to_hlo_legacy_broadcast(to_hlo_op *x) {
  const ir_type *from = x->operands[0]->type, *type = to_hlo_type(x->t, x->op->type);
  int64_t places[IR_MAX_RANK];
  for (uint32_t i = 0; type && i < from->rank; i++) places[i] = (int64_t)(type->rank - from->rank + i);
  x->results[0] = type ? broadcast(x, type, x->operands[0], from->rank, places) : NULL;
  return x->results[0] ? 0 : to_hlo_no_memory(x->t);
}

/* --- contractions --- */

/* stablehlo.dot, of vectors and matrices: the last dimension of lhs by the first of rhs. */
int to_hlo_legacy_dot(to_hlo_op *x) {
  assert(x->op->n_operands == 2 && x->operands[0]->type->rank >= 1);
  ir_op *made = to_hlo_emit(x, IR_OP_DOT, to_hlo_result_type(x), 2, x->operands, 0);
  int64_t lhs = (int64_t)x->operands[0]->type->rank - 1, rhs = 0;
  bool ok = made && ir_set_ints(made, IR_ATTR_LHS_CONTRACTING_DIMS, 1, &lhs) &&
            ir_set_ints(made, IR_ATTR_RHS_CONTRACTING_DIMS, 1, &rhs);
  if (!ok) return to_hlo_no_memory(x->t);
  TRY(to_hlo_precision(x, made));
  return to_hlo_results(x, made);
}

/* The window's sizes are the kernel's spatial dimensions. */
int to_hlo_convolution(to_hlo_op *x) {
  static const to_hlo_window_names names = {"window_strides", "lhs_dilation", "rhs_dilation", "padding",
                                            "window_reversal"};
  ir_op *made = to_hlo_emit(x, IR_OP_CONVOLUTION, to_hlo_result_type(x), 2, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_attrs(x, made));
  const ir_conv_dims *d = ir_get_conv_dims(made);
  assert(d->n_spatial <= IR_MAX_RANK);
  int64_t sizes[IR_MAX_RANK];
  for (uint32_t i = 0; i < d->n_spatial; i++) sizes[i] = x->operands[1]->type->dims[d->kernel_spatial[i]];
  TRY(to_hlo_window(x, made, d->n_spatial, sizes, &names));
  return to_hlo_results(x, made);
}

/* --- windows --- */

int to_hlo_reduce_window(to_hlo_op *x) {
  assert(x->op->n_called == 1);
  static const to_hlo_window_names names = {"window_strides", "base_dilations", "window_dilations", "padding", NULL};
  uint32_t n;
  const int64_t *sizes = ir_m_ints(ir_mattr_of(x->op, "window_dimensions"), &x->t->to->arena, &n);
  ir_computation *c;
  TRY(to_hlo_scalar_region(x, x->op->called[0], &c));
  ir_op *made = to_hlo_emit(x, IR_OP_REDUCE_WINDOW, to_hlo_result_type(x), x->op->n_operands, x->operands, 1);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = c;
  TRY(to_hlo_window(x, made, n, sizes, &names));
  return to_hlo_results(x, made);
}

/* Without window dimensions they are all 1. */
int to_hlo_select_and_scatter(to_hlo_op *x) {
  assert(x->op->n_called == 2);
  static const to_hlo_window_names names = {"window_strides", NULL, NULL, "padding", NULL};
  uint32_t n;
  const int64_t *sizes = ir_m_ints(ir_mattr_of(x->op, "window_dimensions"), &x->t->to->arena, &n);
  int64_t ones[IR_MAX_RANK];
  for (uint32_t i = 0; i < IR_MAX_RANK; i++) ones[i] = 1;
  if (!sizes || n == 0) sizes = ones, n = x->op->type->rank;
  ir_computation *select, *scatter;
  TRY(to_hlo_scalar_region(x, x->op->called[0], &select));
  TRY(to_hlo_scalar_region(x, x->op->called[1], &scatter));
  TRY(to_hlo_promote_params(x, select, scatter->params[0]->type));
  ir_op *made = to_hlo_emit(x, IR_OP_SELECT_AND_SCATTER, to_hlo_result_type(x), 3, x->operands, 2);
  if (!made) return to_hlo_no_memory(x->t);
  made->called[0] = select;
  made->called[1] = scatter;
  TRY(to_hlo_window(x, made, n, sizes, &names));
  return to_hlo_results(x, made);
}

/* --- data movement --- */

int to_hlo_pad(to_hlo_op *x) {
  ir_op *made = to_hlo_emit(x, IR_OP_PAD, to_hlo_result_type(x), 2, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_padding(x, made));
  return to_hlo_results(x, made);
}

int to_hlo_slice_op(to_hlo_op *x) {
  ir_op *made = to_hlo_emit(x, IR_OP_SLICE, to_hlo_result_type(x), 1, x->operands, 0);
  if (!made) return to_hlo_no_memory(x->t);
  TRY(to_hlo_slice(x, made));
  return to_hlo_results(x, made);
}

/* Several values pass a barrier as a tuple. */
int to_hlo_barrier(to_hlo_op *x) {
  uint32_t n = x->op->n_operands;
  const ir_type *type = to_hlo_result_type(x);
  ir_op *operand = n == 1 ? x->operands[0] : type ? to_hlo_emit(x, IR_OP_TUPLE, type, n, x->operands, 0) : NULL;
  if (!operand) return to_hlo_no_memory(x->t);
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_OPT_BARRIER, type, 1, &operand, 0));
}

/* The sizes, a tensor in StableHLO, are scalars in HLO.
 *   %s0 = s32[1] slice(%sizes), slice={[0:1]}    %d0 = s32[] reshape(%s0)    dynamic-reshape(%x, %d0, %d1) */
int to_hlo_dynamic_reshape(to_hlo_op *x) {
  const ir_type *list = x->operands[1]->type, *type = to_hlo_type(x->t, x->op->type);
  const ir_type *scalar = ir_scalar(x->t->to, (base_dtype)list->dtype);
  const int64_t one = 1;
  const ir_type *part = ir_tensor_default(x->t->to, (base_dtype)list->dtype, 1, &one, x->t->err);
  uint32_t n = (uint32_t)list->dims[0] + 1;
  ir_op **operands = BASE_ARRAY(&x->t->to->arena, ir_op *, n);
  if (!type || !scalar || !part || !operands) return to_hlo_no_memory(x->t);
  operands[0] = x->operands[0];
  for (uint32_t i = 1; i < n; i++) {
    ir_slice *s = base_arena_zalloc(&x->t->to->arena, sizeof *s + sizeof *s->v);
    ir_op *piece = s ? to_hlo_emit(x, IR_OP_SLICE, part, 1, &x->operands[1], 0) : NULL;
    if (!piece) return to_hlo_no_memory(x->t);
    s->n = 1;
    s->v[0] = (ir_slice_dim){i - 1, i, 1};
    ir_attr attr = ir_attr_make(IR_ATTR_SLICE);
    attr.v.slice = s;
    operands[i] = ir_attr_set(piece, attr) ? to_hlo_emit(x, IR_OP_RESHAPE, scalar, 1, &piece, 0) : NULL;
    if (!operands[i]) return to_hlo_no_memory(x->t);
  }
  return to_hlo_results(x, to_hlo_emit(x, IR_OP_DYNAMIC_RESHAPE, type, n, operands, 0));
}
