/* Random numbers as TensorFlow's CPU kernels give them, bit for bit in the integers: Philox 4x32 with 10 rounds,
 * in the order in which rng_bit_generator gives its words. Version 1 ops take a seed, which is scrambled to a key
 * and a counter; version 2 ops take these; those of tf.random.Generator have them in a variable. Sources:
 * TensorFlow's documentation, philox_random.h's and random_distributions.h's behaviour. */

#include "../windows.h"

/* What a row is asked for: so many numbers, of that type, in that shape. */
typedef struct tfl_random {
  uint32_t rank;
  const int64_t *dims;
  int64_t n;
  base_dtype dtype;
} tfl_random;
/* Where a row's numbers come from: a seed (version 1 ops), a key and a counter (version 2), a variable. */
enum { TFL_RANDOM_SEED, TFL_RANDOM_KEY, TFL_RANDOM_VARIABLE };
static ir_value tfl_random_from_variable(tfl_op *x, int64_t n);

/* --- stateless --- */

static ir_value random_nothing(void) {
  return (ir_value){NULL, 0};
}

/* n random words of 32 bits from a state of three u64: key, counter (low, high). */
static ir_value random_words(tfl_op *x, ir_value state, int64_t n) {
  if (!state.op) return state;
  const ir_type *types[] = {opt_type(state), tfl_type(x, XLAC_U32, 1, &n)};
  ir_op *op = opt_make_n(x->rw, IR_OP_RNG_BIT_GENERATOR, 2, types, 1, &state, 0);
  opt_set(x->rw, opt_result(op, 0), "rng_algorithm", ir_m_enum(x->rw->m, "stablehlo", "rng_algorithm", IR_RNG_PHILOX));
  return opt_result(op, 1);
}

/* Two words of 32 bits, the low one first, as one of 64 along the last dimension: [..., 2] to [...]. */
static ir_value random_join(tfl_op *x, ir_value words) {
  if (!words.op) return words;
  const ir_type *t = opt_type(words);
  assert(t->rank > 0 && t->dims[t->rank - 1] == 2);
  return opt_make(x->rw, IR_OP_BITCAST_CONVERT, tfl_type(x, XLAC_U64, t->rank - 1, t->dims), 1, &words);
}

/* The seed's words through one round of the generator under a fixed key: {key, counter low, counter high}.
 * GetKeyCounter..., whose constant is TensorFlow's: the seed's 64-bit words are the counter under a fixed key. */
static ir_value random_scramble(tfl_op *x, uint32_t seed) {
  const ir_type *t = tfl_in_type(x, seed);
  int64_t one = 1;
  if (t->rank != 1 || t->dims[0] != 2)
    return tfl_fail(x, "a seed of rank %u: expected two numbers", t->rank), random_nothing();
  ir_value wide = tfl_cast(x, tfl_cast(x, tfl_in(x, seed), XLAC_S64), XLAC_U64);
  const uint64_t fixed = UINT64_C(0x02461e293ec8f720);
  ir_value parts[] = {opt_constant_data(x->rw, tfl_type(x, XLAC_U64, 1, &one), &fixed, false), wide};
  ir_value mixed = random_words(x, tfl_concat(x, 2, parts, 0), 4);
  int64_t square[] = {2, 2};
  ir_value both = random_join(x, tfl_reshape(x, mixed, 2, square)); /* the key; the counter's high half */
  ir_value zero = tfl_full(x, XLAC_U64, 1, &one, 0);
  ir_value all[] = {tfl_slice(x, both, 0, 0, 1), zero, tfl_slice(x, both, 0, 1, 2)};
  return tfl_concat(x, 3, all, 0);
}

/* tf.random.Algorithm: AUTO_SELECT is Philox on CPUs. */
enum { RANDOM_PHILOX = 1, RANDOM_AUTO = 3 };

/* Where the numbers begin, three u64: key, counter (low, high). */
static ir_value tfl_random_state(tfl_op *x, const tfl_random *p) {
  int64_t alg = 0;
  if (x->row->arg == TFL_RANDOM_VARIABLE) return tfl_random_from_variable(x, p->n);
  if (x->row->arg == TFL_RANDOM_SEED) return random_scramble(x, 1);
  if (tfl_int(x, 3, &alg) != 0) return random_nothing();
  if (alg != RANDOM_PHILOX && alg != RANDOM_AUTO)
    return tfl_fail(x, "random algorithm %lld: only Philox, 1, is lowered", (long long)alg), random_nothing();
  const ir_type *key = tfl_in_type(x, 1), *counter = tfl_in_type(x, 2);
  if (key->rank != 1 || key->dims[0] != 1 || counter->rank != 1 || counter->dims[0] != 2 || key->dtype != XLAC_U64 ||
      counter->dtype != XLAC_U64)
    return tfl_fail(x, "key and counter have not 1 and 2 elements of u64"), random_nothing();
  ir_value parts[] = {tfl_in(x, 1), tfl_in(x, 2)};
  return tfl_concat(x, 2, parts, 0);
}

/* What is asked for, by the input that is the shape: of a variable's row 2, else 0. */
static int tfl_random_of(tfl_op *x, tfl_random *p) {
  TRY(tfl_ints(x, x->row->arg == TFL_RANDOM_VARIABLE ? 2 : 0, &p->dims, &p->rank));
  const ir_type *t = tfl_type(x, XLAC_U32, p->rank, p->dims);
  p->n = t ? t->count : 0;
  p->dtype = tfl_out_dtype(x, 0);
  if (p->n > (INT64_C(1) << 40)) return tfl_fail(x, "%lld random numbers", (long long)p->n);
  return x->status;
}

/* Output 0 are the elements of flat, in the type and shape that were asked for. Returns x->status. */
static int tfl_random_give(tfl_op *x, const tfl_random *p, ir_value flat) {
  tfl_out(x, 0, tfl_reshape(x, tfl_cast(x, flat, p->dtype), p->rank, p->dims));
  return x->status;
}

/* n words of the width of the type, as TensorFlow's groups give them: 64 bits are two words. */
static ir_value random_bits(tfl_op *x, ir_value state, int64_t n, bool wide) {
  int64_t pairs[] = {n, 2};
  ir_value words = random_words(x, state, wide ? 2 * n : n);
  return wide ? random_join(x, tfl_reshape(x, words, 2, pairs)) : words;
}

/* With an integer constant, which may have all 64 bits. */
static ir_value random_op(tfl_op *x, ir_opcode opcode, ir_value v, uint64_t k) {
  return v.op ? opt_binary(x->rw, opcode, v, opt_splat_int(x->rw, opt_type(v), (int64_t)k)) : v;
}

/* Bits as the mantissa of a number in [1, 2), less 1: in f32 from 32 bits, f64 from 64 (of which the first word has the
 * high ones), f16 and bf16 from 32. */
/* Bits as the mantissa of a number in [1, 2), less 1: in f32 from 32 bits, f64 from 64 (of which the first word
 * has the high ones), f16 and bf16 from 32. A number in [0, 1). */
static ir_value tfl_random_unit(tfl_op *x, ir_value words, base_dtype dtype) {
  bool wide = dtype == XLAC_F64, half = dtype == XLAC_F16, brain = dtype == XLAC_BF16;
  uint64_t mask = wide ? (UINT64_C(1) << 52) - 1 : half ? 0x3ff : brain ? 0x7f : 0x7fffff;
  uint64_t one = wide ? UINT64_C(1023) << 52 : half ? 15 << 10 : brain ? 127 << 7 : 127 << 23;
  ir_value bits = random_op(x, IR_OP_OR, random_op(x, IR_OP_AND, words, mask), one);
  if (half || brain) bits = tfl_cast(x, bits, XLAC_U16);
  if (!bits.op) return bits;
  ir_value v = opt_make(x->rw, IR_OP_BITCAST_CONVERT, opt_with_dtype(x->rw, opt_type(bits), dtype), 1, &bits);
  return tfl_with(x, IR_OP_SUBTRACT, v, 1);
}

/* Both halves of each 64-bit word change places. */
static ir_value random_turned(tfl_op *x, ir_value v) {
  ir_value high = random_op(x, IR_OP_SHIFT_LEFT, v, 32), low = random_op(x, IR_OP_SHIFT_RIGHT_LOGICAL, v, 32);
  return opt_binary(x->rw, IR_OP_OR, high, low);
}

/* Uniform in [0, 1). */
int tfl_row_random_real(tfl_op *x) {
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  bool wide = p.dtype == XLAC_F64;
  ir_value words = random_bits(x, tfl_random_state(x, &p), p.n, wide);
  return tfl_random_give(x, &p, tfl_random_unit(x, wide ? random_turned(x, words) : words, p.dtype));
}

/* Box and Muller: (sin, cos)(2 pi b) * sqrt(-2 log a). */
/* Box and Muller: (sin, cos)(2 pi b) * sqrt(-2 log a) of pairs of units, in f32 or f64. a is held above 0, where
 * the logarithm would be infinite. */
static ir_value tfl_random_box_muller(tfl_op *x, ir_value units, base_dtype dtype, int64_t pairs) {
  assert(pairs >= 0);
  int64_t shape[] = {pairs, 2}, flat = 2 * pairs;
  ir_value both = tfl_reshape(x, units, 2, shape);
  double least = dtype == XLAC_F64 ? 1e-7 : (double)1e-7f;
  ir_value a = tfl_with(x, IR_OP_MAXIMUM, tfl_slice(x, both, 1, 0, 1), least);
  double turn = dtype == XLAC_F64 ? 2.0 * 3.14159265358979323846 : (double)(float)(2.0 * 3.14159265358979323846);
  ir_value angle = tfl_with(x, IR_OP_MULTIPLY, tfl_slice(x, both, 1, 1, 2), turn);
  ir_value r = opt_unary(x->rw, IR_OP_SQRT, tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_LOG, a), -2));
  ir_value parts[] = {opt_binary(x->rw, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_SINE, angle), r),
                      opt_binary(x->rw, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_COSINE, angle), r)};
  return tfl_reshape(x, tfl_concat(x, 2, parts, 1), 1, &flat);
}

/* n rounded up to pairs. */
static ir_value random_normals(tfl_op *x, ir_value state, base_dtype dtype, int64_t n) {
  bool wide = dtype == XLAC_F64;
  base_dtype in = wide ? XLAC_F64 : XLAC_F32;
  int64_t pairs = (n + 1) / 2;
  ir_value words = random_bits(x, state, 2 * pairs, wide);
  return tfl_random_box_muller(x, tfl_random_unit(x, wide ? random_turned(x, words) : words, in), in, pairs);
}

/* f16 and bf16 are made in f32 and rounded. */
int tfl_row_random_normal(tfl_op *x) {
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  return tfl_random_give(x, &p, tfl_slice(x, random_normals(x, tfl_random_state(x, &p), p.dtype, p.n), 0, 0, p.n));
}

/* --- integers --- */

static bool random_is_wide(base_dtype t) {
  return t == XLAC_S64 || t == XLAC_U64;
}

/* All bits of the type. */
int tfl_row_random_int(tfl_op *x) {
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  return tfl_random_give(x, &p, random_bits(x, tfl_random_state(x, &p), p.n, random_is_wide(p.dtype)));
}

/* From low to high: low + bits % (high - low). Inputs end with them. The remainder is of unsigned numbers, so a
 * range of more than half of all works; it is as biased as TensorFlow's. */
int tfl_row_random_range(tfl_op *x) {
  assert(x->n_in >= 3);
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  bool wide = random_is_wide(p.dtype);
  base_dtype bits = wide ? XLAC_U64 : XLAC_U32;
  ir_value low = tfl_cast(x, tfl_in(x, x->n_in - 2), bits), high = tfl_cast(x, tfl_in(x, x->n_in - 1), bits);
  ir_value words = random_bits(x, tfl_random_state(x, &p), p.n, wide);
  ir_value off = tfl_binary(x, IR_OP_REMAINDER, words, opt_binary(x->rw, IR_OP_SUBTRACT, high, low));
  return tfl_random_give(x, &p, tfl_binary(x, IR_OP_ADD, off, low));
}

/* --- keys --- */

/* arg: 1 with the algorithm as third output. StatelessRandomGetKeyCounter, and ...Alg. */
int tfl_row_random_key(tfl_op *x) {
  ir_value state = random_scramble(x, 0);
  tfl_out(x, 0, tfl_slice(x, state, 0, 0, 1));
  tfl_out(x, 1, tfl_slice(x, state, 0, 1, 3));
  if (x->row->arg) tfl_out_data(x, 2, XLAC_S32, 0, NULL, &(int32_t){RANDOM_PHILOX});
  return x->status;
}

int tfl_row_random_alg(tfl_op *x) {
  tfl_out_data(x, 0, XLAC_S32, 0, NULL, &(int32_t){RANDOM_PHILOX});
  return x->status;
}

/* --- tf.random.Generator --- */

/* The state of a tf.random.Generator, as u64: counter low, counter high, key. */
static ir_value stateful_variable(tfl_op *x, tfl_resource *r) {
  ir_value v = r ? tfl_use(x, &r->value) : (ir_value){NULL, 0};
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  if (t->rank != 1 || t->dims[0] < 3 || t->dtype != XLAC_S64)
    return tfl_fail(x, "the generator's state has not 3 elements of int64"), (ir_value){NULL, 0};
  return tfl_cast(x, v, XLAC_U64);
}

/* The counter `blocks`, a scalar of u64, further. The bits of a converted i64 are the same. */
static void stateful_skip(tfl_op *x, tfl_resource *r, ir_value state, ir_value blocks) {
  ir_value low = tfl_slice(x, state, 0, 0, 1), high = tfl_slice(x, state, 0, 1, 2);
  ir_value next = tfl_binary(x, IR_OP_ADD, low, blocks);
  if (!next.op) return;
  ir_value carry = tfl_cast(x, tfl_compare(x, IR_DIRECTION_LT, next, low), XLAC_U64);
  ir_value parts[] = {next, opt_binary(x->rw, IR_OP_ADD, high, carry),
                      tfl_slice(x, state, 0, 2, opt_type(state)->dims[0])};
  tfl_assign(x, r, tfl_cast(x, tfl_concat(x, 3, parts, 0), XLAC_S64));
}

/* Only Philox has a state of this form. */
static int stateful_check_alg(tfl_op *x, uint32_t i) {
  int64_t alg = 0;
  TRY(tfl_int(x, i, &alg));
  return alg == 1 ? 0 : tfl_fail(x, "random algorithm %lld: only Philox, 1, is lowered", (long long)alg);
}

/* resource, alg, delta; arg: 1 gives the state as it was. */
int tfl_row_random_skip(tfl_op *x) {
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value state = stateful_variable(x, r), delta = tfl_cast(x, tfl_in(x, 2), XLAC_U64);
  TRY(stateful_check_alg(x, 1));
  if (x->row->arg) tfl_out(x, 0, tfl_cast(x, state, XLAC_S64));
  if (delta.op) stateful_skip(x, r, state, tfl_with(x, IR_OP_MULTIPLY, tfl_reshape(x, delta, 0, NULL), 256));
  return x->status;
}

/* Where the numbers of a generator begin, as tfl_random_state gives it: its variable, input 0, which then lies n
 * blocks of 256 further, as TensorFlow reserves them. */
static ir_value tfl_random_from_variable(tfl_op *x, int64_t n) {
  assert(n >= 0);
  tfl_resource *r = tfl_in_resource(x, 0);
  ir_value state = stateful_variable(x, r);
  if (!state.op || stateful_check_alg(x, 1) != 0) return (ir_value){NULL, 0};
  stateful_skip(x, r, state, opt_splat_int(x->rw, tfl_type(x, XLAC_U64, 0, NULL), n * 256));
  ir_value parts[] = {tfl_slice(x, state, 0, 2, 3), tfl_slice(x, state, 0, 0, 2)};
  return tfl_concat(x, 2, parts, 0);
}

/* --- truncated normal numbers --- */

/* Truncated normal numbers as TensorFlow's CPU kernels give them. Each group of four has a stretch of 256 blocks of the
 * generator for itself, and takes the first four normal numbers of it that lie within 2 of 0. */

/* Six blocks have 24 candidates, of which 1 in 22 is refused: that fewer than four are left (and the result has zeros)
 * is as likely as 1 in 10^24. */
enum { TRUNC_BLOCKS = 6, TRUNC_CANDIDATES = 4 * TRUNC_BLOCKS, TRUNC_STRETCH = 256, TRUNC_ROUNDS = 10 };

static ir_value trunc_word(tfl_op *x, ir_opcode opcode, ir_value v, uint64_t k) {
  return v.op ? opt_binary(x->rw, opcode, v, opt_splat_int(x->rw, opt_type(v), (int64_t)k)) : v;
}

static ir_value trunc_xor(tfl_op *x, ir_value a, ir_value b) {
  return opt_binary(x->rw, IR_OP_XOR, a, b);
}

/* The low and high halves of words in u64. */
static ir_value trunc_low(tfl_op *x, ir_value v) {
  return trunc_word(x, IR_OP_AND, v, UINT32_MAX);
}
static ir_value trunc_high(tfl_op *x, ir_value v) {
  return trunc_word(x, IR_OP_SHIFT_RIGHT_LOGICAL, v, 32);
}

/* Philox: c are four words of the counters, k two of the key, all of one shape and in u64. Written out, since
 * rng_bit_generator counts on without gaps. */
static void trunc_philox(tfl_op *x, ir_value *c, ir_value *k) {
  for (int round = 0; round < TRUNC_ROUNDS; round++) {
    ir_value a = trunc_word(x, IR_OP_MULTIPLY, c[0], 0xD2511F53), b = trunc_word(x, IR_OP_MULTIPLY, c[2], 0xCD9E8D57);
    c[0] = trunc_xor(x, trunc_xor(x, trunc_high(x, b), c[1]), k[0]);
    c[2] = trunc_xor(x, trunc_xor(x, trunc_high(x, a), c[3]), k[1]);
    c[1] = trunc_low(x, b);
    c[3] = trunc_low(x, a);
    k[0] = trunc_low(x, trunc_word(x, IR_OP_ADD, k[0], 0x9E3779B9));
    k[1] = trunc_low(x, trunc_word(x, IR_OP_ADD, k[1], 0xBB67AE85));
  }
}

/* Element i of a vector, in every place. */
static ir_value trunc_spread(tfl_op *x, ir_value state, int64_t i, ir_value like) {
  ir_value one = tfl_reshape(x, tfl_slice(x, state, 0, i, i + 1), 0, NULL);
  return tfl_spread(x, one, like);
}

/* [groups, candidates] words of u32. Group g has blocks g * 256 to g * 256 + 5: TRUNC_STRETCH is what a group may
 * use up. */
static ir_value trunc_words(tfl_op *x, ir_value state, int64_t groups) {
  assert(groups >= 0);
  int64_t grid[] = {groups, TRUNC_BLOCKS}, flat[] = {groups, TRUNC_CANDIDATES}, each[] = {groups, TRUNC_BLOCKS, 1};
  ir_value at = tfl_iota(x, XLAC_U64, 2, grid, 1);
  at =
      opt_binary(x->rw, IR_OP_ADD, at, trunc_word(x, IR_OP_MULTIPLY, tfl_iota(x, XLAC_U64, 2, grid, 0), TRUNC_STRETCH));
  ir_value base = trunc_spread(x, state, 1, at), low = opt_binary(x->rw, IR_OP_ADD, base, at);
  ir_value carry = tfl_cast(x, tfl_compare(x, IR_DIRECTION_LT, low, base), XLAC_U64);
  ir_value high = opt_binary(x->rw, IR_OP_ADD, trunc_spread(x, state, 2, at), carry),
           key = trunc_spread(x, state, 0, at);
  ir_value c[] = {trunc_low(x, low), trunc_high(x, low), trunc_low(x, high), trunc_high(x, high)};
  ir_value k[] = {trunc_low(x, key), trunc_high(x, key)};
  trunc_philox(x, c, k);
  for (int i = 0; i < 4; i++) c[i] = tfl_reshape(x, tfl_cast(x, c[i], XLAC_U32), 3, each);
  return tfl_reshape(x, tfl_concat(x, 4, c, 2), 2, flat);
}

/* Of each row the first four elements that are kept, in their order. */
static ir_value trunc_first(tfl_op *x, ir_value v, ir_value kept, int64_t groups) {
  assert(groups >= 0);
  tfl_window w = {
      .rank = 2, .size = {1, TRUNC_CANDIDATES}, .stride = {1, 1}, .low = {0, TRUNC_CANDIDATES - 1}, .high = {0, 0}};
  ir_value count = tfl_reduce_window(x, IR_OP_ADD, tfl_cast(x, kept, XLAC_S32), tfl_scalar(x, XLAC_S32, 0), &w),
           parts[4];
  int64_t last = 1, column[] = {groups, 1};
  if (!v.op || !count.op) return v;
  for (int i = 0; i < 4; i++) {
    ir_value here =
        opt_binary(x->rw, IR_OP_AND, kept, tfl_compare(x, IR_DIRECTION_EQ, count, tfl_like(x, count, i + 1)));
    parts[i] = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, v, tfl_like(x, v, 0)), 0, 1, &last);
    parts[i] = tfl_reshape(x, parts[i], 2, column);
  }
  return tfl_concat(x, 4, parts, 1);
}

/* Truncated normal numbers as TensorFlow's CPU kernels give them: rejected candidates are skipped, not replaced
 * from the next group. */
int tfl_row_random_truncated(tfl_op *x) {
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  if (p.dtype == XLAC_F64) return tfl_fail(x, "truncated normal numbers of f64 are not lowered");
  int64_t groups = (p.n + 3) / 4, grid[] = {groups, TRUNC_CANDIDATES}, flat = 4 * groups;
  ir_value words = trunc_words(x, tfl_random_state(x, &p), groups);
  int64_t all = groups * TRUNC_CANDIDATES;
  ir_value units = tfl_random_unit(x, tfl_reshape(x, words, 1, &all), XLAC_F32);
  ir_value v = tfl_reshape(x, tfl_random_box_muller(x, units, XLAC_F32, all / 2), 2, grid);
  if (!v.op) return x->status;
  ir_value kept = tfl_compare(x, IR_DIRECTION_LT, opt_unary(x->rw, IR_OP_ABS, v), tfl_like(x, v, 2));
  v = tfl_reshape(x, trunc_first(x, v, kept, groups), 1, &flat);
  return tfl_random_give(x, &p, tfl_slice(x, v, 0, 0, p.n));
}
