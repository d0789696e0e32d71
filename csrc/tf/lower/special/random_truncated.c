/* Truncated normal numbers as TensorFlow's CPU kernels give them. Each group of four has a stretch of 256 blocks of the
 * generator for itself, and takes the first four normal numbers of it that lie within 2 of 0. */
#include "../random.h"

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

/* Philox: c are four words of the counters, k two of the key, all of one shape and in u64. */
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

/* [groups, candidates] words of u32. */
static ir_value trunc_words(tfl_op *x, ir_value state, int64_t groups) {
  int64_t grid[] = {groups, TRUNC_BLOCKS}, flat[] = {groups, TRUNC_CANDIDATES}, each[] = {groups, TRUNC_BLOCKS, 1};
  ir_value at = tfl_iota(x, XLAC_U64, 2, grid, 1);
  at =
      opt_binary(x->rw, IR_OP_ADD, at, trunc_word(x, IR_OP_MULTIPLY, tfl_iota(x, XLAC_U64, 2, grid, 0), TRUNC_STRETCH));
  ir_value base = trunc_spread(x, state, 1, at), low = opt_binary(x->rw, IR_OP_ADD, base, at);
  ir_value carry = tfl_cast(x, tfl_compare(x, "LT", low, base), XLAC_U64);
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
  tfl_window w = {
      .rank = 2, .size = {1, TRUNC_CANDIDATES}, .stride = {1, 1}, .low = {0, TRUNC_CANDIDATES - 1}, .high = {0, 0}};
  ir_value count = tfl_reduce_window(x, IR_OP_ADD, tfl_cast(x, kept, XLAC_S32), tfl_scalar(x, XLAC_S32, 0), &w),
           parts[4];
  int64_t last = 1, column[] = {groups, 1};
  if (!v.op || !count.op) return v;
  for (int i = 0; i < 4; i++) {
    ir_value here = opt_binary(x->rw, IR_OP_AND, kept, tfl_compare(x, "EQ", count, tfl_like(x, count, i + 1)));
    parts[i] = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, here, v, tfl_like(x, v, 0)), 0, 1, &last);
    parts[i] = tfl_reshape(x, parts[i], 2, column);
  }
  return tfl_concat(x, 4, parts, 1);
}

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
  ir_value kept = tfl_compare(x, "LT", opt_unary(x->rw, IR_OP_ABS, v), tfl_like(x, v, 2));
  v = tfl_reshape(x, trunc_first(x, v, kept, groups), 1, &flat);
  return tfl_random_give(x, &p, tfl_slice(x, v, 0, 0, p.n));
}
