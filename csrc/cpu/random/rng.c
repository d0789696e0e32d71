/* rng-bit-generator: some blocks of the counter at a time, lane by lane, on all threads. The bits are the
 * interpreter's (interp/algorithm/random_bits.h): Philox 4x32-10, the default, gives four words a block, ThreeFry
 * 2x32-20 two. A block depends on the key and its number alone, so any thread can make any of them.
 *
 * The state is u64[2] or longer: key, low half of the counter, and Philox's high half. The new state is the
 * counter after all blocks. */
#include "rng.h"

#include "../../base/isa/isa.h"
#include "../../interp/algorithm/random_bits.h"

/* What is known when the op is prepared. */
typedef struct rng_plan {
  const ir_type *type; /* of the data */
  base_dtype dtype;
  size_t bytes;
  int64_t n_state;
  bool philox;
  rng_lanes_fn *lanes;
} rng_plan;

/* One run, as ranges see it. */
typedef struct rng_run {
  const rng_plan *p;
  interp_bits bits;
  char *out;
} rng_run;

/* --- the generators, lane by lane --- */

/* Ten rounds, the key bumped after each by the Weyl constants; multipliers are those of the paper (Salmon et al.,
 * 2011). */
static inline __attribute__((always_inline)) void rng_philox_lanes(uint64_t key, rng_counter from, uint32_t *words) {
  uint32_t *x0 = words, *x1 = x0 + RNG_LANES, *x2 = x1 + RNG_LANES, *x3 = x2 + RNG_LANES;
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int i = 0; i < RNG_LANES; i++) {
    rng_counter c = rng_advance(from, (uint64_t)i);
    x0[i] = (uint32_t)c.low, x1[i] = (uint32_t)(c.low >> 32);
    x2[i] = (uint32_t)c.high, x3[i] = (uint32_t)(c.high >> 32);
  }
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u)
    for (int i = 0; i < RNG_LANES; i++) {
      uint64_t p0 = (uint64_t)x0[i] * 0xD2511F53u, p1 = (uint64_t)x2[i] * 0xCD9E8D57u;
      uint32_t y0 = (uint32_t)(p1 >> 32) ^ x1[i] ^ k0, y2 = (uint32_t)(p0 >> 32) ^ x3[i] ^ k1;
      x0[i] = y0, x1[i] = (uint32_t)p1, x2[i] = y2, x3[i] = (uint32_t)p0;
    }
}

/* Four rounds: add, rotate, xor. */
static inline __attribute__((always_inline)) void rng_threefry_four(uint32_t *a, uint32_t *b, unsigned r0, unsigned r1,
                                                                    unsigned r2, unsigned r3) {
  for (int i = 0; i < RNG_LANES; i++) {
    uint32_t x = a[i], y = b[i];
    x += y, y = rng_rotate(y, r0) ^ x;
    x += y, y = rng_rotate(y, r1) ^ x;
    x += y, y = rng_rotate(y, r2) ^ x;
    x += y, y = rng_rotate(y, r3) ^ x;
    a[i] = x, b[i] = y;
  }
}

/* Twenty rounds in five groups, after each of which the key schedule is added. */
static inline __attribute__((always_inline)) void rng_threefry_lanes(uint64_t key, rng_counter from, uint32_t *words) {
  uint32_t ks[3] = {(uint32_t)key, (uint32_t)(key >> 32), 0}, *a = words, *b = words + RNG_LANES;
  ks[2] = 0x1BD11BDAu ^ ks[0] ^ ks[1];
  for (int i = 0; i < RNG_LANES; i++) {
    uint64_t c = from.low + (uint64_t)i;
    a[i] = (uint32_t)c + ks[0], b[i] = (uint32_t)(c >> 32) + ks[1];
  }
  for (uint32_t group = 0; group < 5; group++) {
    if (group & 1)
      rng_threefry_four(a, b, 17, 29, 16, 24);
    else
      rng_threefry_four(a, b, 13, 15, 26, 6);
    uint32_t to_a = ks[(group + 1) % 3], to_b = ks[(group + 2) % 3] + group + 1;
    for (int i = 0; i < RNG_LANES; i++) a[i] += to_a, b[i] += to_b;
  }
}

/* The same code for each instruction set; the compiler vectorises the loops over lanes. */
static void rng_philox_plain(uint64_t key, rng_counter from, uint32_t *words) {
  rng_philox_lanes(key, from, words);
}
static void rng_threefry_plain(uint64_t key, rng_counter from, uint32_t *words) {
  rng_threefry_lanes(key, from, words);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void rng_philox_avx2(uint64_t key, rng_counter from, uint32_t *words) {
  rng_philox_lanes(key, from, words);
}
__attribute__((target("avx2"))) static void rng_threefry_avx2(uint64_t key, rng_counter from, uint32_t *words) {
  rng_threefry_lanes(key, from, words);
}
#endif

/* philox: else ThreeFry. */
rng_lanes_fn *cpu_rng_lanes(bool philox) {
#if defined(__x86_64__)
  if (base_isa_best() >= BASE_ISA_AVX2) return philox ? rng_philox_avx2 : rng_threefry_avx2;
#endif
  return philox ? rng_philox_plain : rng_threefry_plain;
}

/* --- storing: n of the lanes' words one after the other, as elements --- */

/* bits: of an element, which takes the lowest ones of a word. */
static void rng_store(const rng_plan *p, unsigned bits, char *to, const uint32_t *words, int64_t n) {
  assert(n >= 0 && p->bytes <= 4);
  if (p->bytes == 4) {
    memcpy(to, words, (size_t)n * 4);
  } else if (p->bytes == 2) {
    for (int64_t i = 0; i < n; i++) {
      uint16_t v = (uint16_t)words[i];
      memcpy(to + 2 * i, &v, 2);
    }
  } else {
    for (int64_t i = 0; i < n; i++) interp_bits_store(to + i, p->dtype, bits, words[i]);
  }
}

/* Four words a block, in order: also what two elements of 64 bits are, low half first. The last block may have
 * more words than there are elements left. */
static void rng_philox_blocks(const rng_run *r, uint64_t begin, uint64_t end) {
  const rng_plan *p = r->p;
  int64_t each = p->bytes == 8 ? 2 : 4, count = p->type->count;
  for (uint64_t b = begin; b < end; b += RNG_LANES) {
    rng_lanes w;
    uint32_t line[4 * RNG_LANES];
    uint64_t n = end - b < RNG_LANES ? end - b : RNG_LANES;
    int64_t from = (int64_t)b * each, m = (int64_t)n * each;
    p->lanes(r->bits.key, rng_advance(r->bits.counter, b), w[0]);
    for (int i = 0; i < RNG_LANES; i++)
      for (int k = 0; k < 4; k++) line[4 * i + k] = w[k][i];
    if (m > count - from) m = count - from;
    if (p->bytes == 8)
      memcpy(r->out + from * 8, line, (size_t)m * 8);
    else
      rng_store(p, r->bits.bits, r->out + from * (int64_t)p->bytes, line, m);
  }
}

/* n blocks from `block` on, all of one row of pairs: the first words go to one row of elements, the second to the
 * next. Along a dimension of odd extent, the last second words go nowhere. */
static void rng_pair_rows(const rng_run *r, uint64_t block, const rng_lanes w, int64_t at, int64_t n) {
  const interp_bits *s = &r->bits;
  int64_t row = (int64_t)block / s->inner, below = (int64_t)block % s->inner;
  int64_t above = row / s->half, along = row % s->half * 2, bytes = (int64_t)r->p->bytes;
  char *to = r->out + ((above * s->size + along) * s->inner + below) * bytes;
  rng_store(r->p, s->bits, to, w[0] + at, n);
  if (along + 1 < s->size) rng_store(r->p, s->bits, to + s->inner * bytes, w[1] + at, n);
}

/* Pairs that lie side by side, where the halved dimension is the innermost. A row of odd length ends with half a
 * pair. */
static void rng_pair_side_by_side(const rng_run *r, uint64_t block, const rng_lanes w, int64_t n) {
  const interp_bits *s = &r->bits;
  for (int64_t i = 0; i < n;) {
    int64_t row = (int64_t)(block + (uint64_t)i) / s->half, along = (int64_t)(block + (uint64_t)i) % s->half;
    int64_t m = s->half - along < n - i ? s->half - along : n - i, elements = 2 * m;
    uint32_t line[2 * RNG_LANES];
    for (int64_t k = 0; k < m; k++) line[2 * k] = w[0][i + k], line[2 * k + 1] = w[1][i + k];
    if (2 * along + elements > s->size) elements = s->size - 2 * along;
    rng_store(r->p, s->bits, r->out + (row * s->size + 2 * along) * (int64_t)r->p->bytes, line, elements);
    i += m;
  }
}

/* A block's two words are one element of 64 bits, or two elements that are neighbours along the dimension which is
 * halved. */
static void rng_threefry_blocks(const rng_run *r, uint64_t begin, uint64_t end) {
  const interp_bits *s = &r->bits;
  for (uint64_t b = begin; b < end; b += RNG_LANES) {
    rng_lanes w;
    int64_t n = end - b < RNG_LANES ? (int64_t)(end - b) : RNG_LANES;
    r->p->lanes(s->key, (rng_counter){s->counter.low + b, 0}, w[0]);
    if (r->p->bytes == 8) {
      uint32_t line[2 * RNG_LANES];
      for (int64_t i = 0; i < n; i++) line[2 * i] = w[0][i], line[2 * i + 1] = w[1][i];
      memcpy(r->out + b * 8, line, (size_t)n * 8);
    } else if (s->inner == 1) {
      rng_pair_side_by_side(r, b, w, n);
    } else {
      for (int64_t i = 0; i < n;) {
        int64_t left = s->inner - (int64_t)(b + (uint64_t)i) % s->inner, m = left < n - i ? left : n - i;
        rng_pair_rows(r, b + (uint64_t)i, w, i, m);
        i += m;
      }
    }
  }
}

/* For rt_parallel_for: blocks begin .. end. */
static void rng_piece(void *ctx, size_t begin, size_t end) {
  assert(begin <= end && end <= ((const rng_run *)ctx)->bits.blocks);
  const rng_run *r = ctx;
  if (r->p->philox)
    rng_philox_blocks(r, begin, end);
  else
    rng_threefry_blocks(r, begin, end);
}

/* The state may be written over where it is: it is read first. */
static int rng_bits_run(const cpu_routine_run *r) {
  const rng_plan *p = r->data;
  rng_run run = {.p = p, .out = r->out[1]};
  uint64_t state[3] = {0, 0, 0};
  memcpy(state, r->in[0], (size_t)(p->n_state < 3 ? p->n_state : 3) * sizeof *state);
  interp_bits_prepare(&run.bits, p->type, state, p->n_state, p->philox);
  if (p->type->count) rt_parallel_for(r->run->exe->pool, (size_t)run.bits.blocks, RNG_GRAIN, rng_piece, &run);
  rng_counter next = rng_advance(run.bits.counter, run.bits.blocks);
  if (r->out[0] != r->in[0]) memcpy(r->out[0], r->in[0], (size_t)p->n_state * sizeof *state);
  memcpy((char *)r->out[0] + 8, &next.low, 8);
  if (p->philox && p->n_state >= 3) memcpy((char *)r->out[0] + 16, &next.high, 8);
  return 0;
}

/* Forms that are done here: a state of u64 numbers, integer or float data. All else is the interpreter's. */
int cpu_prepare_rng_bit_generator(cpu_prepare_run *x) {
  const ir_type *state = ir_operand_type(x->op, 0), *t = x->op->type;
  if (!ir_is_tensor(state) || state->dtype != XLAC_U64 || state->count < 2) return 0;
  if (!ir_is_tuple(t) || t->n_elements != 2 || !ir_is_tensor(t->elements[1])) return 0;
  const ir_type *data = t->elements[1];
  unsigned kind = base_dtype_of(data->dtype)->kind;
  if (kind == BASE_KIND_PRED || kind == BASE_KIND_COMPLEX) return 0;
  rng_plan p = {.type = data, .dtype = data->dtype, .bytes = base_dtype_bytes(data->dtype), .n_state = state->count};
  p.philox = ir_get_word(x->op, IR_ATTR_ALGORITHM) != IR_RNG_THREE_FRY;
  p.lanes = cpu_rng_lanes(p.philox);
  x->out->name = p.philox ? "philox" : "threefry";
  x->out->work = (uint64_t)data->count * 4;
  x->out->in_place = 1;
  x->data = base_arena_memdup(x->arena, &p, sizeof p);
  x->code = rng_bits_run;
  return x->data ? 0 : base_oom(x->err, "random bits");
}
