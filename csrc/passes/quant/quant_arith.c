/* Types and arithmetic of quantisation: storage and expressed types in place of quantised ones, and quantisation
 * spelled out: real = (stored - zero point) * scale, and back. Numbers and their order are the interpreter's
 * (interp/quant.c). */
#include "quant.h"

/* Depth of types and attributes is bounded by their makers. */
bool mq_is_quantised(const ir_type *t) {
  if (!t) return false;
  if (t->quant) return true;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (mq_is_quantised(t->elements[i])) return true;
  return false;
}

/* Types of tuples and functions count if any part of them is quantised. */
bool mq_touches(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (mq_is_quantised(ir_operand_type(op, i))) return true;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (mq_is_quantised(op->types[i])) return true;
  return false;
}

/* The same shape with another element type. */
static const ir_type *mqt_element(ir_module *m, const ir_type *t, base_dtype dtype) {
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(m, dtype, NULL, NULL);
  if (t->kind == IR_TYPE_ELEMENT) return ir_element(m, dtype, NULL);
  return ir_tensor_mlir(m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

/* Tuples, futures and function types, part by part. */
static const ir_type *mqt_parts(ir_module *m, const ir_type *t) {
  assert(t->n_elements > 0);
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  const ir_type **parts = BASE_ARRAY(&arena, const ir_type *, (size_t)t->n_elements + 1), *whole = NULL;
  bool ok = parts != NULL;
  for (uint32_t i = 0; ok && i < t->n_elements; i++) ok = (parts[i] = mq_storage(m, t->elements[i])) != NULL;
  uint32_t n = t->n_elements;
  if (ok && t->kind == IR_TYPE_TUPLE) whole = ir_tuple(m, n, parts);
  if (ok && t->kind == IR_TYPE_FUTURE) whole = ir_future(m, n, parts);
  if (ok && t->kind == IR_TYPE_FUNCTION)
    whole = ir_function_type(m, t->n_inputs, n - t->n_inputs, parts, parts + t->n_inputs);
  base_arena_free(&arena);
  return whole;
}

const ir_type *mq_storage(ir_module *m, const ir_type *t) {
  if (!mq_is_quantised(t)) return t;
  return t->quant ? mqt_element(m, t, (base_dtype)t->quant->storage) : mqt_parts(m, t);
}

const ir_type *mq_expressed(ir_module *m, const ir_type *t) {
  return t->quant ? mqt_element(m, t, (base_dtype)t->quant->expressed) : t;
}

static const ir_mattr *mqt_attr(ir_module *m, const ir_mattr *a);

/* A copy is made at the first element that changes. */
static const ir_mattr *mqt_array(ir_module *m, const ir_mattr *a) {
  const ir_mattrs *list = a->v.list;
  const ir_mattr **parts = NULL;
  for (uint32_t i = 0; i < list->n; i++) {
    const ir_mattr *part = mqt_attr(m, list->v[i]);
    if (!part) return NULL;
    if (part == list->v[i]) continue;
    if (!parts && !(parts = base_arena_memdup(&m->arena, list->v, list->n * sizeof *parts))) return NULL;
    parts[i] = part;
  }
  return parts ? ir_m_array(m, list->n, parts) : a;
}

/* a itself where nothing in it is quantised. */
static const ir_mattr *mqt_attr(ir_module *m, const ir_mattr *a) {
  if (a->kind == IR_M_ARRAY) return mqt_array(m, a);
  if (a->kind == IR_M_DICT) {
    const ir_mdict *d = mq_storage_dict(m, a->v.dict);
    return d == a->v.dict ? a : d ? ir_m_dict(m, d) : NULL;
  }
  bool typed = a->kind == IR_M_DENSE || a->kind == IR_M_TYPE || a->kind == IR_M_RESOURCE;
  if (!typed || !mq_is_quantised(a->type)) return a;
  ir_mattr *copy = base_arena_memdup(&m->arena, a, sizeof *a);
  if (copy) copy->type = mq_storage(m, a->type);
  return copy && copy->type ? copy : NULL;
}

const ir_mdict *mq_storage_dict(ir_module *m, const ir_mdict *d) {
  const ir_mdict *made = d;
  for (uint32_t i = 0; d && made && i < d->n; i++) {
    const ir_mattr *value = mqt_attr(m, d->v[i].value);
    if (value == d->v[i].value) continue;
    made = value ? ir_mdict_with(m, made, d->v[i].key->s, value) : NULL;
  }
  return made;
}

/* Quantisation spelled out: real = (stored - zero point) * scale, and back. */

/* CHLO's broadcasting op: for shapes that are not static the scale is broadcast by it. */
static ir_opcode mqa_chlo(ir_opcode opcode) {
  switch (opcode) {
    case IR_OP_ADD:
      return IR_OP_CHLO_BROADCAST_ADD;
    case IR_OP_SUBTRACT:
      return IR_OP_CHLO_BROADCAST_SUBTRACT;
    case IR_OP_MULTIPLY:
      return IR_OP_CHLO_BROADCAST_MULTIPLY;
    default:
      assert(opcode == IR_OP_DIVIDE);
      return IR_OP_CHLO_BROADCAST_DIVIDE;
  }
}

/* Whether all n values are `value`; of a dimension of size zero there are none. */
static bool mqa_all(uint32_t n, const double *values, double value) {
  assert(values || n == 0);
  for (uint32_t i = 0; i < n; i++)
    if (values[i] != value) return false;
  return true;
}

/* A constant of rank 1. */
static ir_value mqa_list(opt_rewriter *rw, base_dtype dtype, uint32_t n, const double *values) {
  int64_t count = n;
  const ir_type *type = opt_tensor(rw, dtype, 1, &count);
  ir_literal *l = type ? ir_literal_new(rw->m, type) : NULL;
  size_t bytes = base_dtype_bytes(dtype);
  for (uint32_t i = 0; l && i < n; i++) base_store_f64(dtype, (char *)l->data + i * bytes, values[i]);
  return opt_constant(rw, type, l, false);
}

/* The values in the shape of a, which is static.
 * A splat where all are equal, else broadcast along `axis`. */
static ir_value mqa_spread(opt_rewriter *rw, const ir_type *type, int32_t axis, uint32_t n, const double *values) {
  if (mqa_all(n, values, values[0])) return opt_splat(rw, type, values[0]);
  ir_value list = mqa_list(rw, (base_dtype)type->dtype, n, values);
  return type->rank == 1 ? list : opt_broadcast_in_dim(rw, list, type, &(int64_t){axis});
}

/* Adding 0 and multiplying by 1 are left out. */
ir_value mq_apply(opt_rewriter *rw, ir_opcode opcode, ir_value a, int32_t axis, uint32_t n, const double *values) {
  const ir_type *type = opt_type(a);
  bool factor = opcode == IR_OP_MULTIPLY || opcode == IR_OP_DIVIDE;
  if (!type || !values) return rw->failed = true, (ir_value){NULL, 0};
  if (mqa_all(n, values, factor ? 1 : 0)) return a;
  if (ir_is_tensor(type) && !type->has_dynamic) return opt_binary(rw, opcode, a, mqa_spread(rw, type, axis, n, values));
  base_dtype dtype = (base_dtype)type->dtype;
  bool one = mqa_all(n, values, values[0]);
  ir_value b = one ? opt_splat(rw, opt_tensor(rw, dtype, 0, NULL), values[0]) : mqa_list(rw, dtype, n, values);
  ir_value both[] = {a, b}, v = opt_make(rw, mqa_chlo(opcode), type, 2, both);
  if (!one) opt_set(rw, v, "broadcast_dimensions", ir_m_i64s(rw->m, 1, &(int64_t){axis}));
  return v;
}

/* Bounds are scalars, which stablehlo.clamp allows. */
ir_value mq_clamp(opt_rewriter *rw, const ir_quant *q, ir_value v) {
  const ir_type *type = opt_type(v), *scalar = type ? opt_tensor(rw, (base_dtype)type->dtype, 0, NULL) : NULL;
  ir_value low = opt_splat(rw, scalar, (double)q->storage_min), high = opt_splat(rw, scalar, (double)q->storage_max);
  ir_value all[] = {low, v, high};
  return opt_make(rw, IR_OP_CLAMP, type, 3, all);
}

/* Clamped before it is rounded, as the interpreter does. */
ir_value mq_store(opt_rewriter *rw, const ir_quant *q, ir_value v) {
  ir_value whole = opt_unary(rw, IR_OP_ROUND_NEAREST_EVEN, mq_clamp(rw, q, v));
  return opt_convert(rw, whole, (base_dtype)q->storage);
}

bool mq_is_centred(const ir_quant *q) {
  for (uint32_t i = 0; i < q->n; i++)
    if (q->zero_points[i] != 0) return false;
  return true;
}

/* As doubles, in scratch memory; NULL when out of memory. */
double *mq_zero_points(opt_rewriter *rw, const ir_quant *q) {
  double *v = BASE_ARRAY(&rw->arena, double, (size_t)q->n + 1);
  for (uint32_t i = 0; v && i < q->n; i++) v[i] = (double)q->zero_points[i];
  rw->failed = rw->failed || !v;
  return v;
}

/* Converted only where the element type differs. */
static ir_value mqa_as(opt_rewriter *rw, ir_value v, base_dtype dtype) {
  return v.op && opt_type(v)->dtype != dtype ? opt_convert(rw, v, dtype) : v;
}

/* The type that quantisation is computed in. */
static base_dtype mqa_work(const ir_quant *q) {
  return q->expressed == XLAC_F64 ? XLAC_F64 : XLAC_F32;
}

/* round(real / scale + zero point), clamped. */
ir_value mq_quantise(opt_rewriter *rw, const ir_quant *q, ir_value real) {
  ir_value v = mqa_as(rw, real, mqa_work(q));
  v = mq_apply(rw, IR_OP_DIVIDE, v, q->axis, q->n, q->scales);
  v = mq_apply(rw, IR_OP_ADD, v, q->axis, q->n, mq_zero_points(rw, q));
  return mq_store(rw, q, v);
}

/* An integer type that holds sums of two stored values. */
static base_dtype mqa_wide(const ir_quant *q) {
  return base_dtype_of((base_dtype)q->storage)->bits < 32 ? XLAC_S32 : XLAC_S64;
}

/* The zero point is subtracted from integers, where it is exact. */
ir_value mq_dequantise(opt_rewriter *rw, const ir_quant *q, ir_value stored) {
  ir_value v = stored;
  if (!mq_is_centred(q)) {
    v = opt_convert(rw, v, mqa_wide(q));
    v = mq_apply(rw, IR_OP_SUBTRACT, v, q->axis, q->n, mq_zero_points(rw, q));
  }
  v = opt_convert(rw, v, mqa_work(q));
  v = mq_apply(rw, IR_OP_MULTIPLY, v, q->axis, q->n, q->scales);
  return mqa_as(rw, v, (base_dtype)q->expressed);
}

/* stored * (s1 / s2) + (z2 - z1 * s1 / s2), in f32: one multiplication and one addition. */
ir_value mq_requantise(opt_rewriter *rw, const ir_quant *from, const ir_quant *to, ir_value stored) {
  if (ir_quant_equal(from, to)) return stored;
  const ir_quant *longer = from->axis >= 0 ? from : to;
  assert(from->axis < 0 || to->axis < 0 || from->n == to->n);
  uint32_t n = longer->n;
  double *ratios = BASE_ARRAY(&rw->arena, double, (size_t)n + 1);
  double *zeros = BASE_ARRAY(&rw->arena, double, (size_t)n + 1);
  if (!ratios || !zeros) return rw->failed = true, (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = from->axis >= 0 ? i : 0, k = to->axis >= 0 ? i : 0;
    ratios[i] = from->scales[j] / to->scales[k];
    zeros[i] = (double)to->zero_points[k] - (double)from->zero_points[j] * ratios[i];
  }
  ir_value v = opt_convert(rw, stored, XLAC_F32);
  v = mq_apply(rw, IR_OP_MULTIPLY, v, longer->axis, n, ratios);
  v = mq_apply(rw, IR_OP_ADD, v, longer->axis, n, zeros);
  return mq_store(rw, to, v);
}

/* (a - z) + (b - z) in units of the scale is a + b - z in storage. */
ir_value mq_sum(opt_rewriter *rw, const ir_quant *q, ir_value a, ir_value b) {
  base_dtype wide = mqa_wide(q);
  ir_value v = opt_binary(rw, IR_OP_ADD, opt_convert(rw, a, wide), opt_convert(rw, b, wide));
  v = mq_apply(rw, IR_OP_SUBTRACT, v, q->axis, q->n, mq_zero_points(rw, q));
  return opt_convert(rw, mq_clamp(rw, q, v), (base_dtype)q->storage);
}
