/* rng: the interpreter's numbers (interp/algorithm/rng_stream.h), many blocks of the counter at a time, on all threads.
 * Where a uniform number rounds to its upper bound, another is drawn, and all after it come from other blocks: then,
 * which is seldom but for narrow floats, the numbers are made one after the other. */
#include "../../interp/algorithm/rng_stream.h"
#include "rng.h"

enum { RNGO_WORDS = 4 * RNG_LANES, RNGO_TICK = 1 << 11 };

/* What is known when the op is prepared. */
typedef struct rngo_plan {
  base_dtype type;
  bool normal;
  int64_t count;
  int each; /* elements of a block */
  rng_lanes_fn *lanes;
} rngo_plan;

/* One run, as its ranges see it. */
typedef struct rngo_run {
  const rngo_plan *p;
  rng_bounds bounds;
  uint64_t key;
  rng_counter counter;
  char *out;
  bool again; /* set by any thread */
} rngo_run;

/* Number i of 64 bits: two words, the low one first. */
static uint64_t rngo_bits(const uint32_t *words, int64_t i) {
  return words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

/* Uniform numbers in [low, high), or normal ones with mean `low` and deviation `high`, in double and rounded once.
 * false where a uniform one has rounded to `high` and must be drawn again. */
static bool rngo_floats(const rngo_run *r, const uint32_t *words, int64_t n, char *to) {
  const rng_bounds *b = &r->bounds;
  double v[RNGO_WORDS / 2];
  bool again = false;
  for (int64_t i = 0; i < n && b->normal; i++)
    v[i] = b->low + b->high * rng_box_muller(rng_unit(rngo_bits(words, 2 * i)), rng_unit(rngo_bits(words, 2 * i + 1)));
  for (int64_t i = 0; i < n && !b->normal; i++) v[i] = b->low + (b->high - b->low) * rng_unit(rngo_bits(words, i));
  base_convert(b->type, to, XLAC_F64, v, (size_t)n);
  if (b->normal) return true;
  base_convert(XLAC_F64, v, b->type, to, (size_t)n);
  for (int64_t i = 0; i < n; i++) again |= v[i] >= b->high;
  return !again;
}

/* n numbers from their blocks' words; false where one must be drawn again. */
static bool rngo_some(const rngo_run *r, const uint32_t *words, int64_t n, char *to) {
  assert(n > 0 && n <= RNGO_WORDS);
  const rng_bounds *b = &r->bounds;
  int64_t bytes = (int64_t)base_dtype_bytes(b->type);
  if (base_dtype_is_float(b->type)) return rngo_floats(r, words, n, to);
  for (int64_t i = 0; i < n && b->type == XLAC_PRED; i++) to[i] = (char)(words[i] & 1);
  for (int64_t i = 0; i < n && b->type != XLAC_PRED; i++)
    base_store_i64(b->type, to + i * bytes, rng_uniform_int(b, rngo_bits(words, i)));
  return true;
}

/* For rt_parallel_for. Once any thread has set `again`, all that is made will be made anew. */
static void rngo_blocks(void *ctx, size_t begin, size_t end) {
  rngo_run *r = ctx;
  const rngo_plan *p = r->p;
  int64_t bytes = (int64_t)base_dtype_bytes(p->type);
  for (size_t at = begin; at < end && !__atomic_load_n(&r->again, __ATOMIC_RELAXED); at += RNG_LANES) {
    rng_lanes w;
    uint32_t line[RNGO_WORDS];
    int64_t first = (int64_t)at * p->each, n = (int64_t)(end - at < RNG_LANES ? end - at : RNG_LANES) * p->each;
    p->lanes(r->key, rng_advance(r->counter, at), w[0]);
    for (int i = 0; i < RNG_LANES; i++)
      for (int k = 0; k < 4; k++) line[4 * i + k] = w[k][i];
    if (n > p->count - first) n = p->count - first;
    if (!rngo_some(r, line, n, r->out + first * bytes)) __atomic_store_n(&r->again, true, __ATOMIC_RELAXED);
  }
}

/* The interpreter's way: the next number begins where the one before has ended. */
static int rngo_one_by_one(rngo_run *r, interp_ctx *ctx) {
  rng_stream s = {.key = r->key, .counter = r->counter};
  size_t bytes = base_dtype_bytes(r->p->type);
  for (int64_t i = 0; i < r->p->count; i++) {
    if (i % RNGO_TICK == 0) TRY(interp_tick(ctx, RNGO_TICK * 16));
    rng_element(&s, &r->bounds, r->out + (size_t)i * bytes);
  }
  r->counter = s.counter;
  return 0;
}

/* Narrow floats round to their upper bound so often that trying is not worth it. The stream goes on after this op:
 * its counter is the run's. */
static int rngo_run_op(const cpu_routine_run *x) {
  const rngo_plan *p = x->data;
  assert(p->each > 0 && p->lanes);
  interp_ctx *ctx = &x->run->ctx;
  rngo_run r = {.p = p, .key = ctx->options.seed, .counter = {ctx->rng_state[0], ctx->rng_state[1]}, .out = x->out[0]};
  uint64_t blocks = ((uint64_t)p->count + (uint64_t)p->each - 1) / (uint64_t)p->each;
  r.bounds = rng_bounds_of(p->type, p->normal, x->in[0], x->in[1]);
  bool narrow = base_dtype_is_float(p->type) && base_dtype_bytes(p->type) < 4 && !p->normal;
  r.again = narrow || rng_is_settled(&r.bounds);
  if (!r.again) rt_parallel_for(x->run->exe->pool, (size_t)blocks, RNG_GRAIN, rngo_blocks, &r);
  if (r.again)
    TRY(rngo_one_by_one(&r, ctx));
  else
    r.counter = rng_advance(r.counter, blocks);
  ctx->rng_state[0] = r.counter.low, ctx->rng_state[1] = r.counter.high;
  return 0;
}

/* `each`: a normal number takes a whole block, a uniform one two words of it, a pred one. */
int cpu_prepare_rng(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  rngo_plan p = {.type = (base_dtype)op->type->dtype, .count = op->type->count, .lanes = cpu_rng_lanes(true)};
  p.normal = ir_get_word(op, IR_ATTR_DISTRIBUTION) == IR_DISTRIBUTION_NORMAL;
  if (op->n_operands != 2 || base_dtype_is_complex(p.type) || (p.normal && !base_dtype_is_float(p.type))) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *t = ir_operand_type(op, i);
    if (!ir_is_tensor(t) || t->count != 1 || t->dtype != op->type->dtype) return 0;
  }
  p.each = p.normal ? 1 : p.type == XLAC_PRED ? 4 : 2;
  x->out->name = p.normal ? "normal" : "uniform";
  x->out->work = (uint64_t)p.count * 16;
  x->data = base_arena_memdup(x->arena, &p, sizeof p);
  x->code = rngo_run_op;
  return x->data ? 0 : base_oom(x->err, "random numbers");
}
