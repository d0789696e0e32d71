/* CHLO's ops that are not a plain loop: next_after, constants, and ops that broadcast their operands as NumPy does. */
#include "next_after.h"
#include "../blocks.h"
#include "../quant.h"
#include "shadow.h"

/* --- next_after --- */

/* The bits of the neighbour of b towards `to`; sign and magnitude are in the order of the values. x is not
 * NaN and differs from `to`. From zero, the least number with the direction's sign. */
static uint64_t next_bits(base_dtype t, uint64_t b, double x, double to) {
  unsigned bits = base_dtype_of(t)->bits;
  uint64_t sign = (uint64_t)1 << (bits - 1), magnitude = b & (sign - 1);
  bool up = to > x;
  if (x == 0) return up || !base_float_is_signed(t) ? 1 : sign | 1;
  if (!base_float_is_signed(t)) return up ? b + 1 : b - 1;
  bool negative = (b & sign) != 0;
  uint64_t next = up != negative ? magnitude + 1 : magnitude - 1;
  if (next == 0 && !base_float_has_negative_zero(t)) return 0;
  return next | (b & sign);
}

/* As C's nextafter: a NaN operand is the result, equal operands give the second. */
static void next_after_element(base_dtype t, const char *x, const char *y, char *to) {
  size_t bytes = base_dtype_bytes(t);
  double from = base_load_f64(t, x), towards = base_load_f64(t, y);
  uint64_t b = 0;
  if (from != from || !(towards == from))
    memcpy(&b, x, bytes);
  else
    memcpy(&b, y, bytes);
  if (from == from && towards != towards)
    memcpy(&b, y, bytes);
  else if (from == from && towards != from)
    b = next_bits(t, b, from, towards);
  memcpy(to, &b, bytes);
}

void interp_next_after(base_dtype t, int64_t n, const void *x, const void *y, void *to) {
  int64_t bytes = (int64_t)base_dtype_bytes(t);
  for (int64_t i = 0; i < n; i++)
    next_after_element(t, (const char *)x + i * bytes, (const char *)y + i * bytes, (char *)to + i * bytes);
}

typedef struct next_after_job {
  base_dtype type;
  const char *x, *y;
  char *to;
} next_after_job;

static void next_after_block(void *ctx, int64_t begin, int64_t end) {
  const next_after_job *j = ctx;
  size_t at = (size_t)begin * base_dtype_bytes(j->type);
  interp_next_after(j->type, end - begin, j->x + at, j->y + at, j->to + at);
}

int interp_eval_next_after(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *x = operands[0], *y = operands[1];
  base_dtype t = (base_dtype)x->dtype;
  if (!base_dtype_is_float(t) || y->dtype != x->dtype)
    return interp_fail(ctx, op, XLAC_E_EVAL, "next_after needs floats of one type");
  TRY(interp_need_same_dims(ctx, op, operands, 1, 0));
  interp_value *r = interp_array(ctx, t, x->rank, x->dims);
  if (!r) return interp_failed(ctx);
  next_after_job job = {t, x->data, y->data, r->data};
  return interp_deliver(interp_in_heavy_blocks(ctx, x->count, 4, next_after_block, &job), r, out);
}

/* --- constants --- */

/* The literal of an elements attribute, or one made of a number. NaNs of f32 keep their bits. */
static int constant_element(interp_ctx *ctx, const ir_op *op, const ir_mattr *a, base_dtype t, void *element) {
  if (a && a->kind == IR_M_INTEGER) return base_store_i64(t, element, a->v.i), 0;
  if (a && a->kind == IR_M_BOOL) return base_store_i64(t, element, a->v.b), 0;
  if (a && a->kind == IR_M_FLOAT) {
    double v = a->v.f;
    if (v != v && t == XLAC_F32) {
      uint32_t bits = (uint32_t)a->bits;
      memcpy(element, &bits, sizeof bits);
    } else {
      base_store_f64(t, element, v);
    }
    return 0;
  }
  if (a && a->kind == IR_M_DENSE && a->v.literal->type->count >= 1 && a->v.literal->type->dtype == t) {
    memcpy(element, a->v.literal->data, base_dtype_bytes(t));
    return 0;
  }
  return interp_fail(ctx, op, XLAC_E_EVAL, "the value is not a number of type %s", base_dtype_of(t)->text);
}

/* One element for all. */
static int constant_filled(interp_ctx *ctx, const ir_op *op, const ir_mattr *a, uint32_t rank, const int64_t *dims,
                           interp_value **out) {
  _Alignas(16) char element[16] = {0};
  base_dtype t = (base_dtype)op->type->dtype;
  TRY(constant_element(ctx, op, a, t, element));
  interp_value *r = interp_array(ctx, t, rank, dims);
  if (!r) return interp_failed(ctx);
  return interp_deliver(interp_fill_array(ctx, r, element), r, out);
}

/* The operand gives shape and sizes only. */
int interp_eval_constant_like(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return constant_filled(ctx, op, ir_mattr_of(op, "value"), operands[0]->rank, operands[0]->dims, out);
}

int interp_eval_chlo_constant(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const ir_mattr *a = ir_mattr_of(op, "value");
  (void)operands;
  if (!a || a->kind != IR_M_DENSE || a->splat) return constant_filled(ctx, op, a, op->type->rank, op->type->dims, out);
  interp_value *r = interp_array_for(ctx, op);
  if (!r) return interp_failed(ctx);
  if (a->v.literal->type->count != r->count || a->v.literal->type->dtype != r->dtype)
    return interp_deliver(interp_fail(ctx, op, XLAC_E_EVAL, "the value has another type"), r, out);
  return interp_deliver(interp_copy_bytes(ctx, r->data, a->v.literal->data, interp_bytes(r)), r, out);
}

/* --- broadcasting --- */

/* chlo.broadcast_add's inner op is add; INVALID: not one of these. */
ir_opcode interp_broadcast_inner(unsigned opcode) {
  switch (opcode) {
#define INNER(op)                 \
  case IR_OP_CHLO_BROADCAST_##op: \
    return IR_OP_##op;
    INNER(ADD)
    INNER(ATAN2)
    INNER(DIVIDE)
    INNER(MAXIMUM)
    INNER(MINIMUM)
    INNER(MULTIPLY)
    INNER(NEXT_AFTER)
    INNER(POLYGAMMA)
    INNER(POWER)
    INNER(REMAINDER)
    INNER(SHIFT_LEFT)
    INNER(SHIFT_RIGHT_ARITHMETIC)
    INNER(SHIFT_RIGHT_LOGICAL)
    INNER(SUBTRACT)
    INNER(ZETA)
    INNER(AND)
    INNER(OR)
    INNER(XOR)
    INNER(COMPLEX)
    INNER(COMPARE)
    INNER(SELECT)
#undef INNER
    default:
      return IR_OP_INVALID;
  }
}

/* Where operand k's dimensions go: the last ones of the result, or as broadcast_dimensions says of the operand of lower
 * rank. */
static int broadcast_map(interp_ctx *ctx, const ir_op *op, base_arena *arena, const interp_value *x, uint32_t rank,
                         int64_t *map) {
  uint32_t n;
  const int64_t *given = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), arena, &n);
  bool use = given && x->rank < rank;
  if (use && n != x->rank)
    return interp_fail(ctx, op, XLAC_E_EVAL, "broadcast_dimensions has %u dimensions, the operand %u", n, x->rank);
  for (uint32_t i = 0; i < x->rank; i++) {
    map[i] = use ? given[i] : (int64_t)(rank - x->rank + i);
    if (map[i] < 0 || map[i] >= rank)
      return interp_fail(ctx, op, XLAC_E_EVAL, "broadcast_dimensions names dimension %lld", (long long)map[i]);
  }
  return 0;
}

typedef struct broadcast_plan {
  uint32_t rank;
  int64_t dims[IR_MAX_RANK], map[3][IR_MAX_RANK];
} broadcast_plan;

/* NumPy's rule: sizes agree or are 1. f32[3,1] and f32[4] give [3,4]. */
static int broadcast_sizes(interp_ctx *ctx, const ir_op *op, base_arena *arena, interp_value *const *operands,
                           broadcast_plan *p) {
  assert(op->n_operands <= 3);
  p->rank = 0;
  for (uint32_t k = 0; k < op->n_operands; k++)
    if (operands[k]->rank > p->rank) p->rank = operands[k]->rank;
  for (uint32_t d = 0; d < p->rank; d++) p->dims[d] = 1;
  for (uint32_t k = 0; k < op->n_operands; k++) {
    TRY(broadcast_map(ctx, op, arena, operands[k], p->rank, p->map[k]));
    for (uint32_t i = 0; i < operands[k]->rank; i++) {
      int64_t *size = &p->dims[p->map[k][i]], own = operands[k]->dims[i];
      if (own != 1 && *size != 1 && *size != own)
        return interp_fail(ctx, op, XLAC_E_EVAL, "sizes %lld and %lld can't be broadcast to one another",
                           (long long)*size, (long long)own);
      if (own != 1) *size = own;
    }
  }
  return 0;
}

/* The op that it is once all operands have the result's shape. */
static int broadcast_run(interp_ctx *ctx, const ir_op *op, const broadcast_plan *p, interp_value *const *spread,
                         interp_value **out) {
  interp_shadow s;
  int status = interp_shadow_begin(ctx, &s, op, interp_broadcast_inner(op->opcode), op->n_operands, spread);
  if (!status) status = interp_shadow_result(ctx, &s, (base_dtype)op->type->dtype, p->rank, p->dims);
  if (!status && op->opcode == IR_OP_CHLO_BROADCAST_COMPARE) {
    int kind = ir_m_get_word(op, "compare_type");
    interp_shadow_int(&s, IR_ATTR_DIRECTION, ir_m_get_word(op, "comparison_direction"));
    if (kind != IR_COMPARISON_NONE) interp_shadow_int(&s, IR_ATTR_TYPE, kind);
  }
  if (!status) status = interp_shadow_eval(ctx, &s, out);
  interp_shadow_end(&s);
  return status;
}

/* Operands that have the shape are not copied. */
int interp_eval_chlo_broadcast(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  base_arena arena;
  broadcast_plan p;
  interp_value *spread[3] = {NULL, NULL, NULL};
  assert(op->n_operands <= 3);
  base_arena_init(&arena, ctx->options.alloc);
  int status = broadcast_sizes(ctx, op, &arena, operands, &p);
  base_arena_free(&arena);
  for (uint32_t k = 0; k < op->n_operands && !status; k++) {
    bool whole = operands[k]->rank == p.rank && memcmp(operands[k]->dims, p.dims, p.rank * sizeof *p.dims) == 0;
    if (whole)
      spread[k] = interp_retain(operands[k]);
    else
      status = interp_spread(ctx, op, operands[k], p.map[k], p.rank, p.dims, &spread[k]);
  }
  if (!status) status = broadcast_run(ctx, op, &p, spread, out);
  for (uint32_t k = 0; k < op->n_operands; k++) interp_release(spread[k]);
  return status;
}
