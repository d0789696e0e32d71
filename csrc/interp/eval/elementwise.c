/* Evaluators of elementwise ops: one for all that have a loop, in place where an operand may be overwritten; and iota
 * and bitcast-convert.
 *
 * An elementwise op is a loop from scalar/loops over dense arrays of one shape. clamp's bounds and
 * select's pred may be scalars beside arrays: they are repeated into short buffers, a block at a time. */
#include "../interp.h"
#include "../blocks.h"
#include "../../scalar/loops/loops.h"
#include "../algorithm/strided.h"
#include "../sizes.h"

#define BLOCK (1 << 16) /* elements between looks at the clock */
#define SPREAD 1024     /* lanes of a scalar operand made at a time */

/* The operand that has the result's dims: not clamp's bounds nor select's pred, which may be scalars. */
static uint32_t full_operand(const ir_op *op) {
  assert(op->n_operands >= 1);
  return op->opcode == IR_OP_CLAMP || op->opcode == IR_OP_SELECT ? 1 : 0;
}

/* An operand whose data may become the result's, its type set; or NULL. Only an operand whose elements are
 * as large as the result's can hold it: f32 + f32 yes, a compare's pred no. */
static interp_value *reuse_operand(interp_ctx *ctx, const scalar_loop *l, interp_value *const *operands,
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

/* r may be one of the operands: a block is read and written lane by lane. */
static int run_loop_blocks(interp_ctx *ctx, const scalar_loop *l, interp_value *const *operands, interp_value *r) {
  assert(l->n_in <= 3);
  for (int64_t at = 0; at < r->count; at += BLOCK) {
    const void *in[3];
    int64_t n = r->count - at < BLOCK ? r->count - at : BLOCK;
    for (int k = 0; k < l->n_in; k++) {
      in[k] = (const char *)operands[k]->data + (size_t)at * base_dtype_bytes((base_dtype)l->in[k]);
    }
    scalar_loop_run(l, n, in, (char *)r->data + (size_t)at * base_dtype_bytes((base_dtype)l->out));
    TRY(interp_tick(ctx, (uint64_t)n));
  }
  return 0;
}

/* Blocks of SPREAD lanes, with scalar operands repeated in buffers. */
static int run_spread(interp_ctx *ctx, const scalar_loop *l, interp_value *const *operands, interp_value *r) {
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
    scalar_loop_run(l, n, in, (char *)r->data + (size_t)at * base_dtype_bytes((base_dtype)l->out));
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

/* All operands have the result's shape, or are the scalars that the op allows. */
static int eval_loop(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  scalar_loop l;
  uint32_t full = full_operand(op);
  bool spread = false;
  if (!scalar_loop_of_op(op, &l)) {
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s has no meaning for element type %s", ir_opcode_text(op->opcode),
                       base_dtype_table[operands[0]->dtype].text);
  }
  TRY(check_operands(ctx, op, operands, full, &spread));
  interp_value *r = reuse_operand(ctx, &l, operands, full);
  if (!r) r = interp_array(ctx, (base_dtype)l.out, operands[full]->rank, operands[full]->dims);
  if (!r) return interp_failed(ctx);
  int status = spread ? run_spread(ctx, &l, operands, r) : run_loop_blocks(ctx, &l, operands, r);
  if (status) {
    interp_release(r);
    return status;
  }
  *out = r;
  return 0;
}

/* Names of the EVAL column; what differs between them is the loop that scalar_loop_of_op finds. */
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

/* To the type it has: nothing to do. */
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

/* Numbers 0 ... n-1 in the type of r, by way of a type that holds them exactly as far as that does. */
static void count_block(void *x, int64_t begin, int64_t end) {
  const interp_value *r = x;
  int64_t block[256];
  for (int64_t at = begin; at < end; at += 256) {
    int64_t m = end - at < 256 ? end - at : 256;
    for (int64_t i = 0; i < m; i++) block[i] = at + i;
    base_convert(r->dtype, (char *)r->data + (size_t)at * base_dtype_bytes(r->dtype), XLAC_S64, block, (size_t)m);
  }
}

/* A vector 0, 1, ..., n - 1. */
static int count_up(interp_ctx *ctx, base_dtype t, int64_t n, interp_value **out) {
  interp_value *r = interp_array(ctx, t, 1, &n);
  if (!r) return interp_failed(ctx);
  int status = interp_in_blocks(ctx, n, count_block, r);
  if (status)
    interp_release(r);
  else
    *out = r;
  return status;
}

/* Each number of the sequence `inner` times, and all of that again until the result is full: element i is number
 * i / inner % count. */
typedef struct repeated_numbers {
  const interp_value *numbers;
  interp_value *to;
  int64_t inner;
} repeated_numbers;

static void repeat_block(void *ctx, int64_t begin, int64_t end) {
  const repeated_numbers *x = ctx;
  size_t bytes = base_dtype_bytes((base_dtype)x->to->dtype);
  int64_t number = begin / x->inner % x->numbers->count, left = x->inner - begin % x->inner;
  for (int64_t at = begin; at < end; left = x->inner) {
    int64_t n = end - at < left ? end - at : left;
    interp_fill(bytes, (char *)x->to->data + (size_t)at * bytes, n,
                (const char *)x->numbers->data + (size_t)number * bytes);
    at += n;
    if (++number == x->numbers->count) number = 0;
  }
}

/* iota_dimension=1 of s32[2,3]: 0 1 2 0 1 2. */
int interp_eval_iota(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  int64_t d = ir_get_int(op, IR_ATTR_IOTA_DIMENSION, 0), inner = 1;
  assert(d >= 0 && d < op->type->rank);
  interp_value *numbers = NULL, *r = NULL;
  TRY(count_up(ctx, (base_dtype)op->type->dtype, op->type->dims[d], &numbers));
  r = interp_array_for(ctx, op);
  for (uint32_t i = (uint32_t)d + 1; i < op->type->rank; i++) inner *= op->type->dims[i];
  int status =
      r ? interp_in_blocks(ctx, r->count, repeat_block, &(repeated_numbers){numbers, r, inner}) : interp_failed(ctx);
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

/* Where the loops below read and write; they work on blocks of elements that begin at multiples of eight. */
typedef struct cast_job {
  const base_dtype_info *type; /* of the narrow side */
  const uint8_t *from;
  uint8_t *to;
} cast_job;

/* s4: elements 1, 2 become the byte 0x21. */
static void pack_bits(void *x, int64_t begin, int64_t end) {
  const cast_job *job = x;
  unsigned width = job->type->bits, per_byte = 8 / width;
  assert(begin % 8 == 0);
  for (int64_t i = begin; i < end; i++) {
    unsigned v = job->from[i] & ((1u << width) - 1), shift = (unsigned)(i % per_byte) * width;
    if (shift == 0) job->to[i / per_byte] = 0;
    job->to[i / per_byte] |= (uint8_t)(v << shift);
  }
}

/* Signed types are sign-extended to their byte. */
static void unpack_bits(void *x, int64_t begin, int64_t end) {
  const cast_job *job = x;
  unsigned width = job->type->bits, per_byte = 8 / width;
  unsigned sign = job->type->kind == BASE_KIND_SINT ? 1u << (width - 1) : 0;
  for (int64_t i = begin; i < end; i++) {
    unsigned v = job->from[i / per_byte] >> (unsigned)(i % per_byte) * width & ((1u << width) - 1);
    job->to[i] = (uint8_t)((v ^ sign) - sign);
  }
}

/* Drops what bits of the bytes the type has no use for. */
static void cut_bytes(void *x, int64_t begin, int64_t end) {
  const cast_job *job = x;
  unsigned mask = (1u << job->type->bits) - 1;
  assert(job->type->bits < 8);
  if (job->type == base_dtype_of(XLAC_PRED))
    for (int64_t i = begin; i < end; i++) job->to[i] = job->from[i] != 0;
  else
    for (int64_t i = begin; i < end; i++) job->to[i] = (uint8_t)(job->from[i] & mask);
}

/* From bits to the result's type. */
static int cast_from_packed(interp_ctx *ctx, const uint8_t *packed, interp_value *r) {
  base_dtype to = (base_dtype)r->dtype;
  cast_job job = {base_dtype_of(to), packed, r->data};
  if (cast_bits(to) < 8) return interp_in_blocks(ctx, r->count, unpack_bits, &job);
  if (job.type->bits < 8) return interp_in_blocks(ctx, r->count, cut_bytes, &job);
  return interp_copy_bytes(ctx, r->data, packed, interp_bytes(r));
}

/* Through packed bits, for types narrower than a byte. */
static int cast_packed(interp_ctx *ctx, const interp_value *v, interp_value *r) {
  base_dtype from = (base_dtype)v->dtype;
  size_t bytes = (size_t)v->count * cast_bits(from) / 8 + 1;
  uint8_t *packed = base_malloc(ctx->options.alloc, bytes + 1);
  if (!packed) return base_oom(ctx->err, "bits to cast");
  cast_job job = {base_dtype_of(from), v->data, packed};
  int status = cast_bits(from) < 8 ? interp_in_blocks(ctx, v->count, pack_bits, &job)
                                   : interp_copy_bytes(ctx, packed, v->data, interp_bytes(v));
  if (status == 0) status = cast_from_packed(ctx, packed, r);
  base_free(ctx->options.alloc, packed);
  return status;
}

/* The same bytes, cut to what the type has. */
static int cast_bytes(interp_ctx *ctx, const interp_value *v, interp_value *r) {
  assert(interp_bytes(v) == interp_bytes(r));
  cast_job job = {base_dtype_of((base_dtype)r->dtype), v->data, r->data};
  if (job.type->bits < 8) return interp_in_blocks(ctx, r->count, cut_bytes, &job);
  return interp_copy_bytes(ctx, r->data, v->data, interp_bytes(v));
}

/* Data can be shown as another type where it is aligned for it and all its bits mean something. */
static bool cast_is_view(const interp_value *v, base_dtype to) {
  return base_dtype_of(to)->bits >= 8 && (uintptr_t)v->data % base_dtype_bytes(to) == 0;
}

/* In StableHLO a truth value is one bit: as many of them as the other type has bits. */
typedef struct truth_job {
  const base_dtype_info *type; /* of the other side */
  const interp_value *from;
  interp_value *to;
} truth_job;

/* The lowest bit first. */
static void truths_of_bits(void *x, int64_t begin, int64_t end) {
  const truth_job *job = x;
  for (int64_t i = begin; i < end; i++) {
    const uint8_t *bytes = (const uint8_t *)job->from->data + (size_t)i * job->type->bytes;
    uint8_t *truth = (uint8_t *)job->to->data + (size_t)i * job->type->bits;
    for (unsigned b = 0; b < job->type->bits; b++) truth[b] = bytes[b / 8] >> b % 8 & 1;
  }
}

/* Signed narrow types are sign-extended, as everywhere. */
static void bits_of_truths(void *x, int64_t begin, int64_t end) {
  const truth_job *job = x;
  const base_dtype_info *t = job->type;
  for (int64_t i = begin; i < end; i++) {
    uint8_t *bytes = (uint8_t *)job->to->data + (size_t)i * t->bytes;
    const uint8_t *truth = (const uint8_t *)job->from->data + (size_t)i * t->bits;
    memset(bytes, 0, t->bytes);
    for (unsigned b = 0; b < t->bits; b++) bytes[b / 8] |= (uint8_t)((truth[b] != 0) << b % 8);
    if (t->bits < 8 && t->kind == BASE_KIND_SINT && bytes[0] >> (t->bits - 1)) bytes[0] |= (uint8_t)(0xFFu << t->bits);
  }
}

/* pred[8] and u8[] hold the same bits. */
static int cast_truths(interp_ctx *ctx, const ir_op *op, const interp_value *v, uint32_t rank, const int64_t *dims,
                       interp_value **out) {
  base_dtype to = (base_dtype)op->type->dtype;
  interp_value *r = interp_array(ctx, to, rank, dims);
  if (!r) return interp_failed(ctx);
  truth_job job = {base_dtype_of(to == XLAC_PRED ? (base_dtype)v->dtype : to), v, r};
  int status = to == XLAC_PRED ? interp_in_blocks(ctx, v->count, truths_of_bits, &job)
                               : interp_in_blocks(ctx, r->count, bits_of_truths, &job);
  if (status)
    interp_release(r);
  else
    *out = r;
  return status;
}

/* f32[2] to u8[2,4]: a narrower type adds a last dimension, a wider one takes it away. A view where
 * nothing need be moved. */
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
  if (!r) return interp_failed(ctx);
  int status = packed ? cast_packed(ctx, v, r) : 0;
  if (!packed && !view) status = cast_bytes(ctx, v, r);
  if (status) {
    interp_release(r);
    return status;
  }
  *out = r;
  return 0;
}
