/* Quantised types in HLO form, spelt out. Arithmetic is that of the interpreter (interp/quant.c): in f32, or f64
 * where that is the expressed type. While ops are replaced values keep their quantised types, which say the scales;
 * all types become storage in the end. */
#include "quantised_expander.h"

#include "../../interp/quant.h"
#include "../effects.h"
#include "../hlo/hlo_make.h"

typedef struct qexp_make {
  hlo_maker x;
  ir_module *m;
} qexp_make;

/* As mqa_work, in HLO form. */
static base_dtype qexp_work(const ir_quant *q) {
  return q->expressed == XLAC_F64 ? XLAC_F64 : XLAC_F32;
}

/* --- what can be expanded --- */

/* Static shapes, and one scale or one for each index of a dimension. */
static bool qexp_type_fits(const ir_type *t, bool *any) {
  bool fits = true;
  for (uint32_t i = 0; ir_is_tuple(t) && i < t->n_elements; i++) fits = fits && qexp_type_fits(t->elements[i], any);
  if (!ir_is_tensor(t) || !t->quant) return fits;
  const ir_quant *q = t->quant;
  *any = true;
  if (t->has_dynamic || q->n < 1) return false;
  if (q->axis == -1) return q->n == 1;
  return q->axis >= 0 && (uint32_t)q->axis < t->rank && t->dims[q->axis] == (int64_t)q->n;
}

/* From one quantised type to another: of two with several scales each, along the same dimension only. */
static bool qexp_op_fits(const ir_op *op) {
  if (op->opcode != IR_OP_UNIFORM_QUANTIZE || !ir_operand_type(op, 0)->quant) return true;
  const ir_quant *from = ir_operand_type(op, 0)->quant, *to = op->type->quant;
  return !to || from->axis == -1 || to->axis == -1 || from->axis == to->axis;
}

/* *any: there is something to expand. */
static bool qexp_module_fits(const ir_module *m, bool *any) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c) {
    if (!qexp_type_fits(op->type, any) || !qexp_op_fits(op)) return false;
    if (op->n_control_preds && interp_quant_applies(op)) return false;
  }
  return true;
}

/* --- types --- */

/* Tuples element by element; t itself where nothing is quantised. */
static const ir_type *qexp_storage(ir_module *m, const ir_type *t) {
  if (ir_is_tensor(t)) return t->quant ? ir_tensor_default(m, (base_dtype)t->dtype, t->rank, t->dims, NULL) : t;
  if (!ir_is_tuple(t)) return t;
  bool same = true;
  const ir_type **parts = BASE_ARRAY(&m->arena, const ir_type *, (size_t)t->n_elements + 1);
  for (uint32_t i = 0; parts && i < t->n_elements; i++) {
    parts[i] = qexp_storage(m, t->elements[i]);
    if (!parts[i]) return NULL;
    same = same && parts[i] == t->elements[i];
  }
  return !parts ? NULL : same ? t : ir_tuple(m, t->n_elements, parts);
}

/* The same data under the storage type. */
static ir_literal *qexp_literal(ir_module *m, const ir_literal *l) {
  ir_literal *own = base_arena_memdup(&m->arena, l, sizeof *l);
  if (!own || !(own->type = qexp_storage(m, l->type))) return NULL;
  if (!ir_is_tuple(l->type)) return own;
  ir_literal **parts = BASE_ARRAY(&m->arena, ir_literal *, (size_t)l->type->n_elements + 1);
  for (uint32_t i = 0; parts && i < l->type->n_elements; i++)
    if (!(parts[i] = qexp_literal(m, l->elements[i]))) return NULL;
  own->elements = (void *)parts;
  return parts ? own : NULL;
}

/* Whatever has a quantised type left has storage. */
static bool qexp_retype(ir_module *m, ir_op *op) {
  const ir_type *t = qexp_storage(m, op->type);
  if (!t || t == op->type) return t != NULL;
  if (op->opcode == IR_OP_CONSTANT) {
    const ir_literal *stored = qexp_literal(m, op->u.literal);
    if (!stored) return false;
    ir_set_literal(op, stored);
  }
  ir_set_type(op, t);
  return true;
}

/* The entry's layout has types of its own. */
static bool qexp_retype_all(ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (!qexp_retype(m, op)) return false;
  ir_config *config = ir_edit_config(m);
  for (uint32_t i = 0; i < config->n_entry_params; i++)
    if (!(config->entry_params[i] = qexp_storage(m, config->entry_params[i]))) return false;
  if (config->entry_result && !(config->entry_result = qexp_storage(m, config->entry_result))) return false;
  return true;
}

/* --- arithmetic --- */

/* A number for each of n scales, for arrays of type `wide`: along dimension axis where they are several. */
static ir_op *qexp_numbers(qexp_make *b, const ir_type *wide, int64_t axis, uint32_t n, const double *v) {
  base_dtype t = (base_dtype)wide->dtype;
  int64_t length = n;
  if (n == 1) return hlo_splat(&b->x, wide, v[0]);
  const ir_type *thin = ir_tensor_default(b->m, t, 1, &length, NULL);
  ir_op *c = hlo_make(&b->x, IR_OP_CONSTANT, thin, 0, NULL);
  ir_literal *l = c ? ir_literal_new(b->m, thin) : NULL;
  if (!l) return b->x.failed = true, NULL;
  for (uint32_t i = 0; i < n; i++) base_store_f64(t, (char *)l->data + i * base_dtype_bytes(t), v[i]);
  ir_set_literal(c, l);
  return hlo_broadcast(&b->x, c, wide, 1, &axis);
}

/* n numbers in the module's arena. */
static double *qexp_list(qexp_make *b, uint32_t n) {
  double *v = BASE_ARRAY(&b->m->arena, double, (size_t)n + 1);
  if (!v) b->x.failed = true;
  return v;
}

/* *zero: there is none but 0. */
static double *qexp_zero_points(qexp_make *b, const ir_quant *q, bool *zero) {
  assert(q->n > 0 || q->axis >= 0);
  double *v = qexp_list(b, q->n);
  *zero = true;
  for (uint32_t i = 0; v && i < q->n; i++) {
    v[i] = (double)q->zero_points[i];
    *zero = *zero && v[i] == 0;
  }
  return v;
}

/* The shape of t with elements of `dtype`. */
static const ir_type *qexp_typed(qexp_make *b, const ir_type *t, base_dtype dtype) {
  const ir_type *made = ir_tensor_default(b->m, dtype, t->rank, t->dims, NULL);
  if (!made) b->x.failed = true;
  return made;
}

/* NULL in, NULL out. */
static ir_op *qexp_convert(qexp_make *b, ir_op *a, base_dtype dtype) {
  const ir_type *t = a ? qexp_typed(b, a->type, dtype) : NULL;
  return t ? hlo_make(&b->x, IR_OP_CONVERT, t, 1, &a) : NULL;
}

/* (stored - zero point) * scale, where the difference is exact. */
static ir_op *qexp_dequantise(qexp_make *b, ir_op *a) {
  const ir_quant *q = a->type->quant;
  base_dtype work = qexp_work(q);
  base_dtype whole = base_dtype_bytes((base_dtype)q->storage) <= 2 ? XLAC_S32 : XLAC_S64;
  bool zero = true;
  double *points = qexp_zero_points(b, q, &zero);
  const ir_type *t = qexp_typed(b, a->type, work), *ints = qexp_typed(b, a->type, whole);
  if (!points || !t || !ints) return b->x.failed = true, NULL;
  if (!zero) {
    a = qexp_convert(b, a, whole);
    a = hlo_binary(&b->x, IR_OP_SUBTRACT, a, qexp_numbers(b, ints, q->axis, q->n, points));
  }
  a = hlo_binary(&b->x, IR_OP_MULTIPLY, qexp_convert(b, a, work), qexp_numbers(b, t, q->axis, q->n, q->scales));
  return a && q->expressed != work ? qexp_convert(b, a, (base_dtype)q->expressed) : a;
}

/* The declared range, or that of the storage type. */
static void qexp_range(const ir_quant *q, double *low, double *high) {
  const base_dtype_info *t = base_dtype_of((base_dtype)q->storage);
  bool is_signed = t->kind == BASE_KIND_SINT;
  *low = q->has_range ? (double)q->storage_min : is_signed ? -(double)((uint64_t)1 << (t->bits - 1)) : 0;
  *high = q->has_range ? (double)q->storage_max : (double)(((uint64_t)1 << (t->bits - is_signed)) - 1);
}

/* A number in units of q to what is stored: within the range, rounded to even; NaN becomes 0. */
static ir_op *qexp_store(qexp_make *b, const ir_quant *q, ir_op *v) {
  double low, high;
  qexp_range(q, &low, &high);
  /* The ends of whole types are converted to as they should even if f32 rounds them. */
  if (v && q->has_range && ((double)(float)low != low || (double)(float)high != high))
    v = hlo_convert(&b->x, v, XLAC_F64);
  if (!v) return NULL;
  const ir_type *scalar = ir_tensor_default(b->m, (base_dtype)v->type->dtype, 0, NULL, NULL);
  if (!scalar) return b->x.failed = true, NULL;
  ir_op *ends[] = {hlo_splat(&b->x, scalar, low), v, hlo_splat(&b->x, scalar, high)};
  v = hlo_make(&b->x, IR_OP_CLAMP, v->type, 3, ends);
  return qexp_convert(b, hlo_unary(&b->x, IR_OP_ROUND_NEAREST_EVEN, v), (base_dtype)q->storage);
}

/* v / scale + zero point, stored. */
static ir_op *qexp_quantise(qexp_make *b, const ir_quant *q, ir_op *v) {
  bool zero = true;
  double *points = qexp_zero_points(b, q, &zero);
  const ir_type *t = v ? qexp_typed(b, v->type, qexp_work(q)) : NULL;
  if (!points || !t) return b->x.failed = true, NULL;
  if (v->type->dtype != t->dtype) v = qexp_convert(b, v, (base_dtype)t->dtype);
  v = hlo_binary(&b->x, IR_OP_DIVIDE, v, qexp_numbers(b, t, q->axis, q->n, q->scales));
  if (!zero) v = hlo_binary(&b->x, IR_OP_ADD, v, qexp_numbers(b, t, q->axis, q->n, points));
  return qexp_store(b, q, v);
}

/* stored * ratio + zero, always in f32. */
static ir_op *qexp_requantise(qexp_make *b, ir_op *a, const ir_quant *to) {
  const ir_quant *from = a->type->quant;
  uint32_t n = from->n > to->n ? from->n : to->n;
  int64_t axis = from->axis >= 0 ? from->axis : to->axis;
  double *ratio = qexp_list(b, n), *zero = qexp_list(b, n);
  const ir_type *t = qexp_typed(b, a->type, XLAC_F32);
  if (!ratio || !zero || !t) return b->x.failed = true, NULL;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = from->n > 1 ? i : 0, k = to->n > 1 ? i : 0;
    ratio[i] = from->scales[j] / to->scales[k];
    zero[i] = (double)to->zero_points[k] - (double)from->zero_points[j] * ratio[i];
  }
  ir_op *v = qexp_convert(b, a, XLAC_F32);
  v = hlo_binary(&b->x, IR_OP_MULTIPLY, v, qexp_numbers(b, t, axis, n, ratio));
  return qexp_store(b, to, hlo_binary(&b->x, IR_OP_ADD, v, qexp_numbers(b, t, axis, n, zero)));
}

/* --- ops --- */

/* The type of op's result in real numbers. */
static const ir_type *qexp_real_type(qexp_make *b, const ir_op *op) {
  return op->type->quant ? qexp_typed(b, op->type, (base_dtype)op->type->quant->expressed) : op->type;
}

/* op on real operands, its results quantised again.
 * The clone keeps op's attributes and called computations. */
static ir_op *qexp_compute(qexp_make *b, ir_op *op) {
  base_map none;
  base_map_init(&none, b->m->alloc);
  ir_op *real = ir_op_clone(op, op->parent, &none);
  base_map_free(&none);
  if (!real) return b->x.failed = true, NULL;
  ir_op_move(real, op);
  b->x.before = real;
  for (uint32_t k = 0; k < op->n_operands && !b->x.failed; k++) {
    ir_op *a = ir_operand(op, k);
    ir_op *made = ir_operand_type(op, k)->quant ? qexp_dequantise(b, a) : a;
    if (made) ir_set_operand(real, k, (ir_value){made, 0});
  }
  const ir_type *t = b->x.failed ? NULL : qexp_real_type(b, op);
  if (!t) return NULL;
  ir_set_type(real, t);
  b->x.before = op;
  return op->type->quant ? qexp_quantise(b, op->type->quant, real) : real;
}

/* Quantising what has that type already is nothing. */
static ir_op *qexp_expand(qexp_make *b, ir_op *op) {
  assert(op->n_operands > 0);
  ir_op *a = op->n_operands ? ir_operand(op, 0) : NULL;
  b->x.before = op;
  if (op->opcode == IR_OP_UNIFORM_DEQUANTIZE) return qexp_dequantise(b, a);
  if (op->opcode != IR_OP_UNIFORM_QUANTIZE) return qexp_compute(b, op);
  const ir_quant *to = op->type->quant;
  if (!a->type->quant) return qexp_quantise(b, to, a);
  return ir_quant_equal(a->type->quant, to) ? a : qexp_requantise(b, a, to);
}

/* Conversions, and what the interpreter computes on real values. */
static bool qexp_is_for_us(const ir_op *op) {
  return op->opcode == IR_OP_UNIFORM_QUANTIZE || op->opcode == IR_OP_UNIFORM_DEQUANTIZE || interp_quant_applies(op);
}

/* Tuples with quantised elements are computed by few ops, and then the interpreter runs the module. */
static bool qexp_makes_quantised_tuples(const ir_module *m) {
  bool any = false;
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (ir_is_tuple(op->type) && interp_quant_applies(op)) any = true;
  return any;
}

int opt_expand_quantised(ir_module *m, xlac_error *err) {
  qexp_make b = {.x = {.m = m}, .m = m};
  bool any = false, ok = true;
  if (!qexp_module_fits(m, &any) || !any || qexp_makes_quantised_tuples(m)) return 0;
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS_SAFE(op, c) {
    if (!ok || !qexp_is_for_us(op)) continue;
    ir_op *with = qexp_expand(&b, op);
    ok = !b.x.failed && with && ir_replace_uses(op, with);
    if (!ok) continue;
    ir_set_type(with, op->type); /* for those that use it; storage in the end */
    ir_op_remove(op);
  }
  ok = ok && qexp_retype_all(m);
  return ok ? 0 : base_oom(err, "quantised types");
}
