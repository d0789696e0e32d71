/* rng and rng-get-and-update-state: xlac's own documented generator (docs/rng.md).
 *
 * XLA leaves the numbers of these two ops open. xlac's are Philox4x32-10 blocks with the run's seed as key and one
 * 128-bit counter per run, which rng-get-and-update-state also reads and advances. So a run's numbers follow from its
 * seed alone. */
#include <math.h>

#include "counter_rng.h"
#include "interp.h"

enum { RNG_CHUNK = 2048 };

typedef struct rng_stream {
  uint64_t key;
  rng_counter counter;
  uint32_t words[4];
  unsigned left; /* unused words of the present block */
} rng_stream;

static uint32_t rng_next32(rng_stream *s) {
  assert(s->left <= 4);
  if (s->left == 0) {
    rng_philox(s->key, s->counter, s->words);
    s->counter = rng_advance(s->counter, 1);
    s->left = 4;
  }
  return s->words[4 - s->left--];
}

static uint64_t rng_next64(rng_stream *s) {
  uint64_t low = rng_next32(s);
  return low | (uint64_t)rng_next32(s) << 32;
}

/* Uniform in [0, 1), a multiple of 2^-53. */
static double rng_unit(rng_stream *s) {
  return (double)(rng_next64(s) >> 11) * 0x1p-53;
}

/* Box-Muller; one draw in two is thrown away so that element i depends on nothing but the stream's position. */
static double rng_gauss(rng_stream *s) {
  double u = 1.0 - rng_unit(s), angle = 6.283185307179586 * rng_unit(s);
  return sqrt(-2.0 * log(u)) * cos(angle);
}

/* low + (high - low) * u in the element's type, never high itself. Rounding may reach high: then draw again, a few
 * times. */
static void rng_uniform_float(rng_stream *s, base_dtype type, double low, double high, void *p) {
  double v = low;
  for (int attempt = 0; attempt < 64; attempt++) {
    base_store_f64(type, p, low + (high - low) * rng_unit(s));
    v = base_load_f64(type, p);
    if (!(v >= high)) return;
  }
  base_store_f64(type, p, low);
}

/* Uniform in [low, high) without bias to speak of: the high half of a 64 x 64 bit product. */
static void rng_uniform_int(rng_stream *s, base_dtype type, int64_t low, int64_t high, void *p) {
  uint64_t range = (uint64_t)high - (uint64_t)low;
  uint64_t offset = (uint64_t)((unsigned __int128)rng_next64(s) * range >> 64);
  base_store_i64(type, p, (int64_t)((uint64_t)low + offset));
}

static void rng_uniform_pred(rng_stream *s, bool low, bool high, void *p) {
  bool v = low == high ? low : (rng_next32(s) & 1) != 0;
  memcpy(p, &v, 1);
}

static void rng_element(rng_stream *s, bool normal, const interp_value *a, const interp_value *b, void *p) {
  base_dtype type = a->dtype;
  assert(a->count == 1 && b->count == 1 && b->dtype == type);
  if (normal) {
    base_store_f64(type, p, base_load_f64(type, a->data) + base_load_f64(type, b->data) * rng_gauss(s));
  } else if (base_dtype_is_float(type)) {
    rng_uniform_float(s, type, base_load_f64(type, a->data), base_load_f64(type, b->data), p);
  } else if (type == XLAC_PRED) {
    rng_uniform_pred(s, base_load_i64(type, a->data) != 0, base_load_i64(type, b->data) != 0, p);
  } else {
    rng_uniform_int(s, type, base_load_i64(type, a->data), base_load_i64(type, b->data), p);
  }
}

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

int interp_eval_rng(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  bool normal = strcmp(ir_get_str(op, IR_ATTR_DISTRIBUTION), "rng_normal") == 0;
  TRY(rng_check(ctx, op, normal, operands));
  interp_value *v = interp_array_for(ctx, op);
  if (!v) return base_oom(ctx->err, "random numbers");
  rng_stream stream = {.key = ctx->options.seed, .counter = {ctx->rng_state[0], ctx->rng_state[1]}};
  size_t bytes = base_dtype_bytes(v->dtype);
  int status = 0;
  for (int64_t i = 0; i < v->count && status == 0; i++) {
    if (i % RNG_CHUNK == 0) status = interp_tick(ctx, RNG_CHUNK * 16);
    rng_element(&stream, normal, operands[0], operands[1], (char *)v->data + (size_t)i * bytes);
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
