/* Stateless random numbers, as TensorFlow's CPU kernels give them: Philox 4x32 with 10 rounds, in the order in which
 * rng_bit_generator gives its words. Version 1 ops take a seed, which is scrambled to a key and a counter; version 2
 * ops take these. Sources: TensorFlow's documentation, philox_random.h's and random_distributions.h's behaviour. */
#include "../random.h"

static ir_value random_nothing(void) {
  return (ir_value){NULL, 0};
}

/* n random words of 32 bits from a state of three u64: key, counter (low, high). */
static ir_value random_words(tfl_op *x, ir_value state, int64_t n) {
  if (!state.op) return state;
  const ir_type *types[] = {opt_type(state), tfl_type(x, XLAC_U32, 1, &n)};
  ir_op *op = opt_make_n(x->rw, IR_OP_RNG_BIT_GENERATOR, 2, types, 1, &state, 0);
  opt_set(x->rw, opt_result(op, 0), "rng_algorithm", ir_m_enum(x->rw->m, "stablehlo", "rng_algorithm", "PHILOX"));
  return opt_result(op, 1);
}

/* Two words of 32 bits, the low one first, as one of 64 along the last dimension: [..., 2] to [...]. */
static ir_value random_join(tfl_op *x, ir_value words) {
  if (!words.op) return words;
  const ir_type *t = opt_type(words);
  assert(t->rank > 0 && t->dims[t->rank - 1] == 2);
  return opt_make(x->rw, IR_OP_BITCAST_CONVERT, tfl_type(x, XLAC_U64, t->rank - 1, t->dims), 1, &words);
}

/* The seed's words through one round of the generator under a fixed key: {key, counter low, counter high}. */
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

enum { RANDOM_PHILOX = 1, RANDOM_AUTO = 3 };

ir_value tfl_random_state(tfl_op *x, const tfl_random *p) {
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

int tfl_random_of(tfl_op *x, tfl_random *p) {
  TRY(tfl_ints(x, x->row->arg == TFL_RANDOM_VARIABLE ? 2 : 0, &p->dims, &p->rank));
  const ir_type *t = tfl_type(x, XLAC_U32, p->rank, p->dims);
  p->n = t ? t->count : 0;
  p->dtype = tfl_out_dtype(x, 0);
  if (p->n > (INT64_C(1) << 40)) return tfl_fail(x, "%lld random numbers", (long long)p->n);
  return x->status;
}

int tfl_random_give(tfl_op *x, const tfl_random *p, ir_value flat) {
  tfl_out(x, 0, tfl_reshape(x, tfl_cast(x, flat, p->dtype), p->rank, p->dims));
  return x->status;
}

/* n words of the width of the type, as TensorFlow's groups give them: 64 bits are two words. */
static ir_value random_bits(tfl_op *x, ir_value state, int64_t n, bool wide) {
  int64_t pairs[] = {n, 2};
  ir_value words = random_words(x, state, wide ? 2 * n : n);
  return wide ? random_join(x, tfl_reshape(x, words, 2, pairs)) : words;
}

static ir_value random_op(tfl_op *x, ir_opcode opcode, ir_value v, uint64_t k) {
  return v.op ? opt_binary(x->rw, opcode, v, opt_splat_int(x->rw, opt_type(v), (int64_t)k)) : v;
}

/* Bits as the mantissa of a number in [1, 2), less 1: in f32 from 32 bits, f64 from 64 (of which the first word has the
 * high ones), f16 and bf16 from 32. */
ir_value tfl_random_unit(tfl_op *x, ir_value words, base_dtype dtype) {
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

int tfl_row_random_real(tfl_op *x) {
  tfl_random p;
  TRY(tfl_random_of(x, &p));
  bool wide = p.dtype == XLAC_F64;
  ir_value words = random_bits(x, tfl_random_state(x, &p), p.n, wide);
  return tfl_random_give(x, &p, tfl_random_unit(x, wide ? random_turned(x, words) : words, p.dtype));
}

/* Box and Muller: (sin, cos)(2 pi b) * sqrt(-2 log a). */
ir_value tfl_random_box_muller(tfl_op *x, ir_value units, base_dtype dtype, int64_t pairs) {
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

static ir_value random_normals(tfl_op *x, ir_value state, base_dtype dtype, int64_t n) {
  bool wide = dtype == XLAC_F64;
  base_dtype in = wide ? XLAC_F64 : XLAC_F32;
  int64_t pairs = (n + 1) / 2;
  ir_value words = random_bits(x, state, 2 * pairs, wide);
  return tfl_random_box_muller(x, tfl_random_unit(x, wide ? random_turned(x, words) : words, in), in, pairs);
}

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

/* From low to high: low + bits % (high - low). Inputs end with them. */
int tfl_row_random_range(tfl_op *x) {
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

/* arg: 1 with the algorithm as third output. */
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
