/* rng and rng-get-and-update-state: xlac's own documented generator (docs/rng.md).
 *
 * XLA leaves the numbers of these two ops open. xlac's are Philox4x32-10 blocks with the run's seed as key and one
 * 128-bit counter per run, which rng-get-and-update-state also reads and advances. So a run's numbers follow from its
 * seed alone. */
#include "../interp.h"
#include "../algorithm/rng_stream.h"
#include "../algorithm/random_bits.h"

enum { RNG_CHUNK = 2048 };

/* Uniform and normal of floats, uniform of integers and preds. */
static int rng_check(interp_ctx *ctx, const ir_op *op, bool normal, interp_value *const *operands) {
  if (op->n_operands != 2 || operands[0]->kind != INTERP_ARRAY || operands[1]->kind != INTERP_ARRAY ||
      operands[0]->count != 1 || operands[1]->count != 1 || operands[0]->dtype != op->type->dtype ||
      operands[1]->dtype != op->type->dtype)
    return interp_fail(ctx, op, XLAC_E_EVAL, "rng takes two scalars of its result's element type %s",
                       base_dtype_of(op->type->dtype)->text);
  if (base_dtype_is_complex(op->type->dtype) || (normal && !base_dtype_is_float(op->type->dtype)))
    return interp_fail(ctx, op, XLAC_E_EVAL, "rng has no %s distribution of %s", normal ? "normal" : "uniform",
                       base_dtype_of(op->type->dtype)->text);
  return 0;
}

/* The counter goes on from op to op, so results depend on the order of execution, which the plan fixes. */
int interp_eval_rng(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  bool normal = ir_get_word(op, IR_ATTR_DISTRIBUTION) == IR_DISTRIBUTION_NORMAL;
  TRY(rng_check(ctx, op, normal, operands));
  interp_value *v = interp_array_for(ctx, op);
  if (!v) return base_oom(ctx->err, "random numbers");
  rng_stream stream = {.key = ctx->options.seed, .counter = {ctx->rng_state[0], ctx->rng_state[1]}};
  size_t bytes = base_dtype_bytes(v->dtype);
  rng_bounds bounds = rng_bounds_of((base_dtype)v->dtype, normal, operands[0]->data, operands[1]->data);
  int status = 0;
  for (int64_t i = 0; i < v->count && status == 0; i++) {
    if (i % RNG_CHUNK == 0) status = interp_tick(ctx, RNG_CHUNK * 16);
    rng_element(&stream, &bounds, (char *)v->data + (size_t)i * bytes);
  }
  ctx->rng_state[0] = stream.counter.low, ctx->rng_state[1] = stream.counter.high;
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}

/* The state before the op, low word first, as XLA gives it; its first state is xlac's first state too. */
int interp_eval_rng_get_and_update_state(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                         interp_value **out) {
  (void)operands;
  if (op->type->dtype != XLAC_U64 || op->type->count != 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the generator's state has type u64[2]");
  interp_value *v = interp_array_for(ctx, op);
  if (!v) return base_oom(ctx->err, "the generator's state");
  memcpy(v->data, ctx->rng_state, sizeof ctx->rng_state);
  rng_counter c = {ctx->rng_state[0], ctx->rng_state[1]};
  c = rng_advance(c, (uint64_t)ir_get_int(op, IR_ATTR_DELTA, 0));
  ctx->rng_state[0] = c.low, ctx->rng_state[1] = c.high;
  *out = v;
  return 0;
}

/* --- rng-bit-generator: the bits XLA's CPU backend gives, and the state it returns. "default" is philox there. --- */

enum { BITS_CHUNK = 4096 };

void interp_bits_store(void *p, base_dtype type, unsigned bits, uint64_t v) {
  if (bits < 8) {
    v &= (1u << bits) - 1;
    if (base_dtype_is_signed(type) && v >> (bits - 1)) v |= ~0ull << bits;
  }
  memcpy(p, &v, base_dtype_bytes(type));
}

/* Element i of the data, alone: any element can be computed without those before. */
static uint64_t bits_philox_at(const interp_bits *s, int64_t i) {
  uint32_t words[4];
  uint64_t u = (uint64_t)i;
  if (s->bits == 64) {
    rng_philox(s->key, rng_advance(s->counter, u / 2), words);
    return words[u % 2 * 2] | (uint64_t)words[u % 2 * 2 + 1] << 32;
  }
  rng_philox(s->key, rng_advance(s->counter, u / 4), words);
  return words[u % 4];
}

/* As bits_philox_at. */
static uint64_t bits_threefry_at(const interp_bits *s, int64_t i) {
  uint32_t words[2];
  if (s->bits == 64) {
    rng_threefry(s->key, s->counter.low + (uint64_t)i, words);
    return words[0] | (uint64_t)words[1] << 32;
  }
  int64_t below = i % s->inner, along = i / s->inner % s->size, above = i / s->inner / s->size;
  int64_t block = (above * s->half + along / 2) * s->inner + below;
  rng_threefry(s->key, s->counter.low + (uint64_t)block, words);
  return words[along % 2];
}

/* Chooses the dimension along which threefry pairs elements. */
static void bits_pairing(interp_bits *s, const ir_type *t) {
  assert(ir_is_tensor(t));
  uint32_t at = t->rank;
  for (uint32_t d = 0; d < t->rank && at == t->rank; d++)
    if (t->dims[d] % 2 == 0) at = d;
  for (uint32_t d = 0; d < t->rank && (at == t->rank || t->dims[at] % 2 != 0); d++)
    if (at == t->rank || t->dims[d] > t->dims[at]) at = d;
  s->inner = 1;
  for (uint32_t d = at + 1; d < t->rank; d++) s->inner *= t->dims[d];
  s->size = t->rank ? t->dims[at] : 1;
  s->half = s->size / 2 + s->size % 2;
}

/* Blocks used for t; what the counter advances by. */
static uint64_t bits_blocks(const interp_bits *s, bool philox, const ir_type *t) {
  uint64_t n = (uint64_t)t->count;
  if (philox) return s->bits == 64 ? n / 2 + n % 2 : n / 4 + (n % 4 != 0);
  if (s->bits == 64 || s->size == 0) return n;
  return n / (uint64_t)s->size * (uint64_t)s->half;
}

/* In chunks, with a look at interruptions between them. */
static int bits_fill(interp_ctx *ctx, const interp_bits *s, bool philox, interp_value *out) {
  size_t bytes = base_dtype_bytes(out->dtype);
  assert(s->bits <= bytes * 8);
  char *p = out->data;
  for (int64_t at = 0; at < out->count; at += BITS_CHUNK) {
    int64_t end = out->count - at < BITS_CHUNK ? out->count : at + BITS_CHUNK;
    TRY(interp_tick(ctx, (uint64_t)(end - at) * 16));
    for (int64_t i = at; i < end; i++) {
      uint64_t v = philox ? bits_philox_at(s, i) : bits_threefry_at(s, i);
      interp_bits_store(p + (size_t)i * bytes, out->dtype, s->bits, v);
    }
  }
  return 0;
}

/* The key stays, the counter has advanced. */
static interp_value *bits_new_state(interp_ctx *ctx, const interp_value *state, bool philox, rng_counter counter) {
  interp_value *out = interp_array(ctx, state->dtype, state->rank, state->dims);
  if (!out) return NULL;
  assert(state->count >= 2 && state->dtype == XLAC_U64);
  uint64_t *words = out->data;
  memcpy(words, state->data, (size_t)state->count * sizeof *words);
  words[1] = counter.low;
  if (philox && state->count >= 3) words[2] = counter.high;
  return out;
}

/* As the verifier, for programs whose types are dynamic. */
static int bits_check(interp_ctx *ctx, const ir_op *op, const interp_value *state, const ir_type *t) {
  if (state->kind != INTERP_ARRAY || state->dtype != XLAC_U64 || state->count < 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the generator's state must be u64[2] or u64[3]");
  if (!ir_is_tuple(t) || t->n_elements != 2 || !ir_is_tensor(t->elements[1]))
    return interp_fail(ctx, op, XLAC_E_EVAL, "the result must be a tuple of state and data");
  unsigned kind = base_dtype_of(t->elements[1]->dtype)->kind;
  if (kind == BASE_KIND_PRED || kind == BASE_KIND_COMPLEX)
    return interp_fail(ctx, op, XLAC_E_EVAL, "random bits of type %s are not defined; use an integer or float type",
                       base_dtype_of(t->elements[1]->dtype)->text);
  return 0;
}

/* Philox's counter is (counter, key) with two words of state, (word 1, word 2) with three. */
void interp_bits_prepare(interp_bits *s, const ir_type *t, const uint64_t *state, int64_t n_state, bool philox) {
  assert(n_state >= 2);
  uint64_t last = n_state < 3 ? state[0] : state[2];
  *s = (interp_bits){.key = state[0], .counter = {state[1], philox ? last : 0}, .bits = base_dtype_of(t->dtype)->bits};
  bits_pairing(s, t);
  s->blocks = bits_blocks(s, philox, t);
}

/* (new state, bits). Pure: the state is an operand, not the run's. */
int interp_eval_rng_bit_generator(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const interp_value *state = operands[0];
  TRY(bits_check(ctx, op, state, op->type));
  const ir_type *t = op->type->elements[1];
  bool philox = ir_get_word(op, IR_ATTR_ALGORITHM) != IR_RNG_THREE_FRY;
  interp_bits source;
  interp_bits_prepare(&source, t, state->data, state->count, philox);
  rng_counter next = rng_advance(source.counter, source.blocks);
  interp_value *pair[2] = {bits_new_state(ctx, state, philox, next), interp_array(ctx, t->dtype, t->rank, t->dims)};
  int status = pair[0] && pair[1] ? bits_fill(ctx, &source, philox, pair[1]) : base_oom(ctx->err, "random bits");
  if (status == 0 && !(*out = interp_tuple(ctx, 2, pair))) status = base_oom(ctx->err, "random bits");
  interp_release(pair[0]);
  interp_release(pair[1]);
  return status;
}
