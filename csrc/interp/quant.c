/* Arithmetic is that of StableHLO's reference: in f32 (f64 where that is the expressed type), scales rounded to it.
 *
 * Quantised values are stored as integers q of a real number (q - zero_point) * scale, with one scale for
 * all elements, one for each index of an axis, or one for each block. Most ops on them run as on real
 * numbers: operands are dequantised, the op's twin is evaluated in the expressed type, and the result is
 * quantised. Only moving ops keep the integers. */
#include "quant.h"

#include "blocks.h"
#include "eval/shadow.h"

/* Where in a type's lists of scales and zero points an element's are. */
typedef struct quant_lookup {
  const ir_quant *q;
  uint32_t rank;
  int64_t count[IR_MAX_RANK], block[IR_MAX_RANK],
      step[IR_MAX_RANK]; /* by dimension: size; elements that share; stride */
  int64_t run;           /* elements in a row with the same scale at the innermost, at least 1 */
} quant_lookup;

/* axis -1: one scale; >= 0: that dimension has its own; -2: blocks. */
static int quant_lookup_make(interp_ctx *ctx, const ir_op *op, const ir_quant *q, const interp_value *v,
                             quant_lookup *l) {
  memset(l, 0, sizeof *l);
  l->q = q;
  l->rank = v->rank;
  for (uint32_t d = 0; d < v->rank; d++) {
    l->count[d] = v->dims[d];
    l->block[d] = v->dims[d] > 0 ? v->dims[d] : 1;
  }
  if (q->axis >= 0) {
    if ((uint32_t)q->axis >= v->rank || v->dims[q->axis] > (int64_t)q->n)
      return interp_fail(ctx, op, XLAC_E_EVAL, "%u scales do not fit dimension %d", q->n, q->axis);
    l->block[q->axis] = 1;
    l->step[q->axis] = 1;
  } else if (q->axis == -2) {
    int64_t step = 1;
    for (uint32_t i = 0; i < q->n_blocks; i++)
      if (q->block_axes[i] >= 0 && q->block_axes[i] < v->rank && q->block_sizes[i] > 0)
        l->block[q->block_axes[i]] = q->block_sizes[i];
    for (uint32_t d = v->rank; d-- > 0;) {
      int64_t blocks = (v->dims[d] + l->block[d] - 1) / l->block[d];
      l->step[d] = step;
      step *= blocks > 0 ? blocks : 1;
    }
    if (v->count && step != (int64_t)q->n)
      return interp_fail(ctx, op, XLAC_E_EVAL, "%u scales for %lld blocks", q->n, (long long)step);
  }
  if (q->n < 1) return interp_fail(ctx, op, XLAC_E_EVAL, "a quantised type without scales");
  l->run = 1;
  for (uint32_t d = v->rank; d-- > 0 && l->step[d] == 0;) l->run *= v->dims[d] > 0 ? v->dims[d] : 1;
  return 0;
}

/* The index of element i's scale. */
static uint32_t quant_at(const quant_lookup *l, int64_t i) {
  int64_t at = 0;
  for (uint32_t d = l->rank; d-- > 0;) {
    int64_t c = i % l->count[d];
    i /= l->count[d];
    if (l->step[d]) at += c / l->block[d] * l->step[d];
  }
  return (uint32_t)at;
}

/* Of stored integers: as the type says, or all that the storage type has. s8: -128 to 127. */
static void quant_range(const ir_quant *q, double *low, double *high) {
  const base_dtype_info *t = base_dtype_of((base_dtype)q->storage);
  bool is_signed = t->kind == BASE_KIND_SINT;
  *low = q->has_range ? (double)q->storage_min : is_signed ? -(double)((uint64_t)1 << (t->bits - 1)) : 0;
  *high = q->has_range ? (double)q->storage_max : (double)(((uint64_t)1 << (t->bits - is_signed)) - 1);
}

/* Whether the arithmetic is that of f64. */
static bool quant_wide(const ir_quant *q) {
  return q->expressed == XLAC_F64;
}

/* --- real values --- */

typedef struct quant_job {
  quant_lookup from, to; /* of the scales on either side, where there are any */
  const ir_quant *from_quant, *to_quant;
  const interp_value *in;
  interp_value *out;
  double low, high;
} quant_job;

enum { QUANT_WORK = 4 /* element operations that an element takes */ };

/* Where the run of elements with i's scale ends. */
static int64_t quant_run_end(const quant_lookup *l, int64_t i, int64_t end) {
  return interp_min(end, (i / l->run + 1) * l->run);
}

/* Elements [begin, end), run by run of one scale. */
static void dequantise_block(void *ctx, int64_t begin, int64_t end) {
  const quant_job *j = ctx;
  const ir_quant *q = j->from_quant;
  base_dtype from = (base_dtype)j->in->dtype;
  const char *in = j->in->data;
  size_t bytes = base_dtype_bytes(from);
  for (int64_t i = begin; i < end;) {
    uint32_t k = quant_at(&j->from, i);
    double scale = q->scales[k];
    for (int64_t stop = quant_run_end(&j->from, i, end); i < stop; i++) {
      int64_t whole = base_load_i64(from, in + (size_t)i * bytes) - q->zero_points[k];
      if (j->out->dtype == XLAC_F64)
        ((double *)j->out->data)[i] = (double)whole * scale;
      else
        ((float *)j->out->data)[i] = (float)whole * (float)scale;
    }
  }
}

/* Real numbers in the expressed type. */
static int dequantise(interp_ctx *ctx, const ir_op *op, const ir_quant *q, const interp_value *v, interp_value **out) {
  quant_job j = {.from_quant = q, .in = v};
  TRY(quant_lookup_make(ctx, op, q, v, &j.from));
  interp_value *r = j.out = interp_array(ctx, quant_wide(q) ? XLAC_F64 : XLAC_F32, v->rank, v->dims);
  if (!r) return interp_failed(ctx);
  int status = interp_in_heavy_blocks(ctx, v->count, QUANT_WORK, dequantise_block, &j);
  if (status) return interp_deliver(status, r, out);
  return interp_finish(ctx, (base_dtype)q->expressed, r, out);
}

/* Clamps, then rounds to nearest even; NaN becomes 0. */
static void quant_store(base_dtype t, void *to, double v, double low, double high) {
  v = v < low ? low : v > high ? high : v;
  base_store_i64(t, to, v != v ? 0 : v >= 0x1p63 ? INT64_MAX : (int64_t)__builtin_rint(v));
}

/* real / scale + zero_point. */
static void quantise_block(void *ctx, int64_t begin, int64_t end) {
  const quant_job *j = ctx;
  const ir_quant *q = j->to_quant;
  base_dtype to = (base_dtype)j->out->dtype;
  size_t bytes = base_dtype_bytes(to);
  char *place = j->out->data;
  for (int64_t i = begin; i < end;) {
    uint32_t k = quant_at(&j->to, i);
    double scale = q->scales[k], zero = (double)q->zero_points[k];
    for (int64_t stop = quant_run_end(&j->to, i, end); i < stop; i++) {
      double real = j->in->dtype == XLAC_F64 ? ((const double *)j->in->data)[i] / scale + zero
                                             : (double)(((const float *)j->in->data)[i] / (float)scale + (float)zero);
      quant_store(to, place + (size_t)i * bytes, real, j->low, j->high);
    }
  }
}

static int quantise(interp_ctx *ctx, const ir_op *op, const ir_quant *q, interp_value *v, interp_value **out) {
  quant_job j = {.to_quant = q};
  TRY(quant_lookup_make(ctx, op, q, v, &j.to));
  quant_range(q, &j.low, &j.high);
  interp_value *x = interp_as(ctx, v, quant_wide(q) ? XLAC_F64 : XLAC_F32),
               *r = x ? interp_array(ctx, (base_dtype)q->storage, v->rank, v->dims) : NULL;
  if (!r) return interp_release(x), interp_failed(ctx);
  j.in = x;
  j.out = r;
  int status = interp_in_heavy_blocks(ctx, v->count, QUANT_WORK, quantise_block, &j);
  interp_release(x);
  return interp_deliver(status, r, out);
}

/* stored * (from.scale / to.scale) + (to.zero - from.zero * ratio), in f32. */
static void requantise_block(void *ctx, int64_t begin, int64_t end) {
  const quant_job *q = ctx;
  base_dtype from = (base_dtype)q->in->dtype, to = (base_dtype)q->out->dtype;
  size_t in = base_dtype_bytes(from), width = base_dtype_bytes(to);
  for (int64_t i = begin; i < end;) {
    uint32_t j = quant_at(&q->from, i), k = quant_at(&q->to, i);
    double ratio = q->from_quant->scales[j] / q->to_quant->scales[k];
    double zero = (double)q->to_quant->zero_points[k] - (double)q->from_quant->zero_points[j] * ratio;
    for (int64_t stop = quant_run_end(&q->to, i, quant_run_end(&q->from, i, end)); i < stop; i++) {
      float stored = (float)base_load_i64(from, (const char *)q->in->data + (size_t)i * in);
      quant_store(to, (char *)q->out->data + (size_t)i * width, (double)(stored * (float)ratio + (float)zero), q->low,
                  q->high);
    }
  }
}

/* From one quantised type to another in one step: the ratio of scales and what becomes of the zero points. */
static int requantise(interp_ctx *ctx, const ir_op *op, const ir_quant *from, const ir_quant *to, interp_value *v,
                      interp_value **out) {
  quant_job j = {.from_quant = from, .to_quant = to, .in = v};
  if (ir_quant_equal(from, to)) return *out = interp_retain(v), 0;
  TRY(quant_lookup_make(ctx, op, from, v, &j.from));
  TRY(quant_lookup_make(ctx, op, to, v, &j.to));
  quant_range(to, &j.low, &j.high);
  interp_value *r = j.out = interp_array(ctx, (base_dtype)to->storage, v->rank, v->dims);
  if (!r) return interp_failed(ctx);
  return interp_deliver(interp_in_heavy_blocks(ctx, v->count, QUANT_WORK, requantise_block, &j), r, out);
}

/* From a real type, or from another quantised one. */
int interp_eval_uniform_quantize(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_quant *from = ir_operand_type(op, 0)->quant, *to = op->type->quant;
  if (!to) return interp_fail(ctx, op, XLAC_E_EVAL, "the result is not quantised");
  return from ? requantise(ctx, op, from, to, operands[0], out) : quantise(ctx, op, to, operands[0], out);
}

int interp_eval_uniform_dequantize(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  const ir_quant *q = ir_operand_type(op, 0)->quant;
  if (!q) return interp_fail(ctx, op, XLAC_E_EVAL, "the operand is not quantised");
  return dequantise(ctx, op, q, operands[0], out);
}

/* --- any other op --- */

/* Ops that compute with their elements; the others move them. */
static bool quant_computes(unsigned opcode) {
  switch (opcode) {
    case IR_OP_BATCH_NORM_GRAD:
    case IR_OP_BATCH_NORM_INFERENCE:
    case IR_OP_BATCH_NORM_TRAINING:
    case IR_OP_CHOLESKY:
    case IR_OP_CLAMP:
    case IR_OP_COMPARE:
    case IR_OP_CONVERT:
    case IR_OP_CONVOLUTION:
    case IR_OP_DOT:
    case IR_OP_DYNAMIC_CONV:
    case IR_OP_STABLEHLO_DOT:
    case IR_OP_TRIANGULAR_SOLVE:
    case IR_OP_SELECT:
      return true;
    case IR_OP_COPY:
    case IR_OP_BITCAST_CONVERT:
      return false;
    default: {
      ir_opcode inner = interp_broadcast_inner(opcode);
      return ir_opcode_has(opcode, IR_ELEMENTWISE) || (inner != IR_OP_INVALID && quant_computes(inner));
    }
  }
}

/* Tensors, or a flat tuple of them; *any where one is quantised. */
static bool quant_result(const ir_type *t, bool *any) {
  if (ir_is_tensor(t)) return *any = t->quant != NULL, true;
  if (!ir_is_tuple(t)) return false;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (!ir_is_tensor(t->elements[i])) return false;
    *any |= t->elements[i]->quant != NULL;
  }
  return true;
}

/* Whether op has a quantised operand or result, and computes with its elements. */
bool interp_quant_applies(const ir_op *op) {
  bool any = false;
  if (!quant_computes(op->opcode) || !quant_result(op->type, &any)) return false;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (!ir_is_tensor(ir_operand_type(op, k))) return false;
    any |= ir_operand_type(op, k)->quant != NULL;
  }
  return any;
}

/* Real values as what t says: a tensor, or a tuple of some. */
static int quant_finish(interp_ctx *ctx, const ir_op *op, const ir_type *t, interp_value *real, interp_value **out) {
  if (!ir_is_tuple(t)) return t->quant ? quantise(ctx, op, t->quant, real, out) : (*out = interp_retain(real), 0);
  interp_value **parts = INTERP_SCRATCH(ctx, interp_value *, (int64_t)t->n_elements + 1);
  if (!parts) return interp_failed(ctx);
  int status = 0;
  uint32_t n = 0;
  assert(real->kind == INTERP_TUPLE && real->n_elements == t->n_elements);
  for (; n < t->n_elements && !status; n++) {
    parts[n] = NULL;
    status = quant_finish(ctx, op, t->elements[n], real->elements[n], &parts[n]);
  }
  if (!status && !(*out = interp_tuple(ctx, n, parts))) status = interp_failed(ctx);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  interp_scratch_free(ctx, parts);
  return status;
}

/* op itself on real values, which are given. */
static int quant_compute(interp_ctx *ctx, const ir_op *op, interp_value **real, interp_value **out) {
  interp_shadow s;
  const ir_quant *q = op->type->quant;
  interp_value *r = NULL;
  int status = interp_shadow_begin(ctx, &s, op, (ir_opcode)op->opcode, op->n_operands, real);
  s.result.quant = NULL;
  if (q) s.result.dtype = q->expressed;
  if (!status) status = interp_shadow_eval(ctx, &s, &r);
  interp_shadow_end(&s);
  if (status) return interp_deliver(status, r, out);
  status = quant_finish(ctx, op, op->type, r, out);
  interp_release(r);
  return status;
}

/* What the engine calls instead of the op's evaluator where plan.c found interp_quant_applies. */
int interp_eval_quantised(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_value **real = INTERP_SCRATCH(ctx, interp_value *, (int64_t)op->n_operands + 1);
  int status = 0;
  uint32_t n = 0;
  if (!real) return interp_failed(ctx);
  for (; n < op->n_operands && !status; n++) {
    const ir_quant *q = ir_operand_type(op, n)->quant;
    real[n] = NULL;
    if (q)
      status = dequantise(ctx, op, q, operands[n], &real[n]);
    else
      real[n] = interp_retain(operands[n]);
  }
  if (!status) status = quant_compute(ctx, op, real, out);
  for (uint32_t k = 0; k < n; k++) interp_release(real[k]);
  interp_scratch_free(ctx, real);
  return status;
}
