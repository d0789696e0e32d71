/* Evaluators of elementwise ops: one for all that have a loop, in place where an operand may be overwritten; and iota
 * and bitcast-convert. */
#include "loops.h"
#include "sizes.h"

#define BLOCK (1 << 16) /* elements between looks at the clock */
#define SPREAD 1024     /* lanes of a scalar operand made at a time */

/* The operand that has the result's dims: not clamp's bounds nor select's pred, which may be scalars. */
static uint32_t full_operand(const ir_op *op) {
  return op->opcode == IR_OP_CLAMP || op->opcode == IR_OP_SELECT ? 1 : 0;
}

/* An operand whose data may become the result's, its type set; or NULL. */
static interp_value *reuse_operand(interp_ctx *ctx, const interp_loop *l, interp_value *const *operands,
                                   uint32_t full) {
  for (uint32_t k = 0; k < l->n_in; k++) {
    if (base_dtype_bytes((base_dtype)l->in[k]) != base_dtype_bytes((base_dtype)l->out)) continue;
    if (!interp_same_dims(operands[k], operands[full])) continue;
    interp_value *v = interp_reuse(ctx, operands, k);
    if (!v) continue;
    v->dtype = l->out;
    return v;
  }
  return NULL;
}

static int run_loop_blocks(interp_ctx *ctx, const interp_loop *l, interp_value *const *operands, interp_value *r) {
  for (int64_t at = 0; at < r->count; at += BLOCK) {
    const void *in[3];
    int64_t n = r->count - at < BLOCK ? r->count - at : BLOCK;
    for (int k = 0; k < l->n_in; k++) {
      in[k] = (const char *)operands[k]->data + (size_t)at * base_dtype_bytes((base_dtype)l->in[k]);
    }
    interp_loop_run(l, n, in, (char *)r->data + (size_t)at * base_dtype_bytes((base_dtype)l->out));
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* Blocks of SPREAD lanes, with scalar operands repeated in buffers. */
static int run_spread(interp_ctx *ctx, const interp_loop *l, interp_value *const *operands, interp_value *r) {
  _Alignas(16) char spread[3][SPREAD * 16];
  const void *in[3];
  bool scalar[3] = {false};
  for (int k = 0; k < l->n_in; k++) {
    size_t bytes = base_dtype_bytes((base_dtype)l->in[k]);
    scalar[k] = operands[k]->rank == 0 && r->rank != 0;
    for (size_t i = 0; scalar[k] && i < SPREAD; i++) memcpy(spread[k] + i * bytes, operands[k]->data, bytes);
  }
  for (int64_t at = 0; at < r->count; at += SPREAD) {
    int64_t n = r->count - at < SPREAD ? r->count - at : SPREAD;
    for (int k = 0; k < l->n_in; k++) {
      const char *data = operands[k]->data;
      in[k] = scalar[k] ? spread[k] : data + (size_t)at * base_dtype_bytes((base_dtype)l->in[k]);
    }
    interp_loop_run(l, n, in, (char *)r->data + (size_t)at * base_dtype_bytes((base_dtype)l->out));
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* Sizes of dynamic dimensions are known only here, so two operands may differ in them. *spread: some operand is a
 * scalar. */
static int check_operands(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t full,
                          bool *spread) {
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (interp_same_dims(operands[k], operands[full])) continue;
    bool may_be_scalar = op->opcode == IR_OP_CLAMP ? k != 1 : op->opcode == IR_OP_SELECT && k == 0;
    if (!may_be_scalar || operands[k]->rank != 0) return interp_need_same_dims(ctx, op, operands, k, full);
    *spread = true;
  }
  return 0;
}

static int eval_loop(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_loop l;
  uint32_t full = full_operand(op);
  bool spread = false;
  if (!interp_loop_of(op, &l)) {
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s has no meaning for element type %s", ir_opcode_text(op->opcode),
                       base_dtype_table[operands[0]->dtype].text);
  }
  TRY(check_operands(ctx, op, operands, full, &spread));
  interp_value *r = reuse_operand(ctx, &l, operands, full);
  if (!r) r = interp_array(ctx, (base_dtype)l.out, operands[full]->rank, operands[full]->dims);
  if (!r) return -XLAC_E_OUT_OF_MEMORY;
  int status = spread ? run_spread(ctx, &l, operands, r) : run_loop_blocks(ctx, &l, operands, r);
  if (status) {
    interp_release(r);
    return status;
  }
  *out = r;
  return 0;
}

#define EVAL_BY_LOOP(name)                                                                                      \
  int interp_eval_##name(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) { \
    return eval_loop(ctx, op, operands, out);                                                                   \
  }
EVAL_BY_LOOP(unary)
EVAL_BY_LOOP(binary)
EVAL_BY_LOOP(abs)
EVAL_BY_LOOP(compare)
EVAL_BY_LOOP(complex)
EVAL_BY_LOOP(real)
EVAL_BY_LOOP(imag)
EVAL_BY_LOOP(is_finite)
EVAL_BY_LOOP(clamp)
EVAL_BY_LOOP(reduce_precision)
EVAL_BY_LOOP(stochastic_convert)

int interp_eval_convert(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (operands[0]->dtype != op->type->dtype) return eval_loop(ctx, op, operands, out);
  *out = interp_retain(operands[0]);
  return 0;
}

/* One pred for whole values, of any type, or one for each element. */
int interp_eval_select(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (operands[0]->rank != 0) return eval_loop(ctx, op, operands, out);
  TRY(interp_need_same_dims(ctx, op, operands, 2, 1));
  *out = interp_retain(operands[*(const uint8_t *)operands[0]->data ? 1 : 2]);
  return 0;
}

/* --- iota --- */

/* Numbers 0 ... n-1 in type t, by way of a type that holds them exactly as far as t does. */
static interp_value *count_up(interp_ctx *ctx, base_dtype t, int64_t n) {
  interp_value *r = interp_array(ctx, t, 1, &n);
  int64_t block[256];
  for (int64_t at = 0; r && at < n; at += 256) {
    int64_t m = n - at < 256 ? n - at : 256;
    for (int64_t i = 0; i < m; i++) block[i] = at + i;
    base_convert(t, (char *)r->data + (size_t)at * base_dtype_bytes(t), XLAC_S64, block, (size_t)m);
  }
  return r;
}

/* Each number of the sequence `inner` times, and all of that again until the result is full. */
static int repeat_numbers(interp_ctx *ctx, const interp_value *numbers, int64_t inner, interp_value *r) {
  size_t bytes = base_dtype_bytes((base_dtype)r->dtype);
  char *to = r->data, *end = to + interp_bytes(r);
  while (to < end) {
    const char *from = numbers->data;
    for (int64_t i = 0; i < numbers->count; i++, from += bytes) {
      for (int64_t j = 0; j < inner; j++, to += bytes) memcpy(to, from, bytes);
      TRY(interp_tick(ctx, (uint64_t)inner));
    }
  }
  return 0;
}

int interp_eval_iota(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  int64_t d = ir_get_int(op, IR_ATTR_IOTA_DIMENSION, 0), inner = 1;
  assert(d >= 0 && d < op->type->rank);
  interp_value *numbers = count_up(ctx, (base_dtype)op->type->dtype, op->type->dims[d]), *r = NULL;
  if (numbers) r = interp_array_for(ctx, op);
  for (uint32_t i = (uint32_t)d + 1; i < op->type->rank; i++) inner *= op->type->dims[i];
  int status = r ? r->count ? repeat_numbers(ctx, numbers, inner, r) : 0 : -XLAC_E_OUT_OF_MEMORY;
  interp_release(numbers);
  if (status) {
    interp_release(r);
    return status;
  }
  *out = r;
  return 0;
}

/* --- bitcast-convert --- */

/* Elements of fewer bits than a byte lie one to a byte here, but side by side, low first, in the bits that are cast.
 * XLA takes a pred and a 6-bit float for whole bytes. */
static unsigned cast_bits(base_dtype t) {
  unsigned bits = base_dtype_of(t)->bits;
  return t == XLAC_PRED || bits == 6 ? 8 : bits;
}

static void pack_bits(unsigned width, const uint8_t *from, int64_t n, uint8_t *to) {
  unsigned per_byte = 8 / width;
  memset(to, 0, (size_t)n / per_byte + 1);
  for (int64_t i = 0; i < n; i++) {
    unsigned v = from[i] & ((1u << width) - 1), shift = (unsigned)(i % per_byte) * width;
    to[i / per_byte] |= (uint8_t)(v << shift);
  }
}

static void unpack_bits(const base_dtype_info *t, const uint8_t *from, int64_t n, uint8_t *to) {
  unsigned width = t->bits, per_byte = 8 / width, sign = t->kind == BASE_KIND_SINT ? 1u << (width - 1) : 0;
  for (int64_t i = 0; i < n; i++) {
    unsigned v = from[i / per_byte] >> (unsigned)(i % per_byte) * width & ((1u << width) - 1);
    to[i] = (uint8_t)((v ^ sign) - sign);
  }
}

/* Drops what bits of the bytes the type has no use for. */
static void cut_bytes(base_dtype t, const uint8_t *from, int64_t n, uint8_t *to) {
  unsigned bits = base_dtype_of(t)->bits;
  assert(bits < 8);
  for (int64_t i = 0; i < n; i++) to[i] = t == XLAC_PRED ? from[i] != 0 : (uint8_t)(from[i] & ((1u << bits) - 1));
}

/* Through packed bits, for types narrower than a byte. */
static int cast_packed(interp_ctx *ctx, const interp_value *v, interp_value *r) {
  base_dtype from = (base_dtype)v->dtype, to = (base_dtype)r->dtype;
  size_t bytes = (size_t)v->count * cast_bits(from) / 8 + 1;
  uint8_t *packed = base_malloc(ctx->options.alloc, bytes + 1);
  if (!packed) return base_oom(ctx->err, "bits to cast");
  if (cast_bits(from) < 8) {
    pack_bits(cast_bits(from), v->data, v->count, packed);
  } else {
    memcpy(packed, v->data, interp_bytes(v));
  }
  if (cast_bits(to) < 8) {
    unpack_bits(base_dtype_of(to), packed, r->count, r->data);
  } else if (base_dtype_of(to)->bits < 8) {
    cut_bytes(to, packed, r->count, r->data);
  } else {
    memcpy(r->data, packed, interp_bytes(r));
  }
  base_free(ctx->options.alloc, packed);
  return 0;
}

/* The same bytes, cut to what the type has. */
static void cast_bytes(const interp_value *v, interp_value *r) {
  assert(interp_bytes(v) == interp_bytes(r));
  if (base_dtype_of((base_dtype)r->dtype)->bits < 8) {
    cut_bytes((base_dtype)r->dtype, v->data, r->count, r->data);
  } else {
    memcpy(r->data, v->data, interp_bytes(v));
  }
}

/* Data can be shown as another type where it is aligned for it and all its bits mean something. */
static bool cast_is_view(const interp_value *v, base_dtype to) {
  return base_dtype_of(to)->bits >= 8 && (uintptr_t)v->data % base_dtype_bytes(to) == 0;
}

/* In StableHLO a truth value is one bit: as many of them as the other type has bits. */
static int cast_truths(interp_ctx *ctx, const ir_op *op, const interp_value *v, uint32_t rank, const int64_t *dims,
                       interp_value **out) {
  base_dtype to = (base_dtype)op->type->dtype;
  interp_value *r = interp_array(ctx, to, rank, dims);
  if (!r) return -XLAC_E_OUT_OF_MEMORY;
  const interp_value *whole = to == XLAC_PRED ? v : r;
  const base_dtype_info *t = base_dtype_of((base_dtype)whole->dtype);
  memset(r->data, 0, (size_t)r->count * base_dtype_bytes(to));
  for (int64_t i = 0; i < whole->count; i++) {
    uint8_t *bytes = (uint8_t *)whole->data + (size_t)i * t->bytes;
    for (unsigned b = 0; b < t->bits; b++) {
      uint8_t *truth = (uint8_t *)(to == XLAC_PRED ? r : v)->data + (size_t)i * t->bits + b;
      if (to == XLAC_PRED)
        *truth = bytes[b / 8] >> b % 8 & 1;
      else
        bytes[b / 8] |= (uint8_t)((*truth != 0) << b % 8);
    }
    if (to != XLAC_PRED && t->bits < 8 && t->kind == BASE_KIND_SINT && bytes[0] >> (t->bits - 1))
      bytes[0] |= (uint8_t)(0xFFu << t->bits);
  }
  *out = r;
  return interp_tick(ctx, (uint64_t)r->count);
}

int interp_eval_bitcast_convert(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_value *v = operands[0], *r;
  base_dtype from = (base_dtype)v->dtype, to = (base_dtype)op->type->dtype;
  bool packed = cast_bits(from) < 8 || cast_bits(to) < 8;
  int64_t dims[IR_MAX_RANK]; /* the operand's at run time; a change of width adds or drops the last */
  int64_t count = 1;
  for (uint32_t i = 0; i < op->type->rank; i++) {
    dims[i] = i < v->rank ? v->dims[i] : op->type->dims[i];
    if (dims[i] < 0) dims[i] = cast_bits(from) / cast_bits(to);
    count *= dims[i];
  }
  if ((from == XLAC_PRED) != (to == XLAC_PRED) &&
      (to == XLAC_PRED ? count : v->count) ==
          (to == XLAC_PRED ? v->count * base_dtype_of(from)->bits : count * base_dtype_of(to)->bits)) {
    return cast_truths(ctx, op, v, op->type->rank, dims, out);
  }
  if ((uint64_t)count * cast_bits(to) != (uint64_t)v->count * cast_bits(from)) {
    return interp_fail(ctx, op, XLAC_E_EVAL, "the operand has other run-time dimensions than the result");
  }
  bool view = !packed && cast_is_view(v, to);
  r = view ? interp_view(ctx, v, to, op->type->rank, dims) : interp_array(ctx, to, op->type->rank, dims);
  if (!r) return -XLAC_E_OUT_OF_MEMORY;
  int status = packed ? cast_packed(ctx, v, r) : 0;
  if (!packed && !view) cast_bytes(v, r);
  if (status) {
    interp_release(r);
    return status;
  }
  *out = r;
  return 0;
}
