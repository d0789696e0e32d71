/* rng_bit_generator on shards: each device draws the numbers that one device would have drawn in their place. A block
 * of the counter makes elements that lie together, so a shard that is one block of memory is what the same generator
 * makes from a later state on (csrc/interp/algorithm/random_bits.h has the order of the numbers). */
#include "local.h"

static bool draw_is_philox(const ir_op *op) {
  return ir_m_get_word(op, "rng_algorithm") != IR_RNG_THREE_FRY;
}

/* Blocks for elements of t, where they are whole ones; -1: they are not. */
static int64_t draw_blocks(const ir_op *op, const ir_type *t, int64_t count) {
  bool wide = base_dtype_of((base_dtype)t->dtype)->bits == 64;
  int64_t elements = draw_is_philox(op) ? wide ? 2 : 4 : wide ? 1 : 2;
  return count % elements == 0 ? count / elements : -1;
}

/* Threefry pairs elements along the first even dimension: that of the shards has to be it, before and after. */
bool shc_draws_alone(const ir_op *op, uint32_t dim, int64_t shards) {
  const ir_type *state = op->types[0], *t = op->types[1];
  bool known = shc_is_static(state) && state->rank == 1 && state->dims[0] >= 2 && state->dtype == XLAC_U64;
  if (!known || !shc_is_static(t) || t->dims[dim] == 0 || t->dims[dim] % shards) return false;
  for (uint32_t d = 0; d < dim; d++)
    if (t->dims[d] != 1) return false;
  int64_t own = t->dims[dim] / shards;
  bool pairs = !draw_is_philox(op) && base_dtype_of((base_dtype)t->dtype)->bits != 64;
  return (!pairs || own % 2 == 0) && draw_blocks(op, t, t->count / shards) >= 0;
}

static ir_value draw_words(local_pass *p, ir_value state, int64_t from, int64_t to) {
  int64_t one = 1;
  return opt_slice(&p->rw, state, &from, &to, &one);
}

static ir_value draw_join(local_pass *p, uint32_t n, const ir_value *words, int64_t size) {
  return opt_concatenate(&p->rw, n, words, 0, opt_tensor(&p->rw, XLAC_U64, 1, &size));
}

/* A counter of two words, `by` (one word) further on. */
static void draw_advance(local_pass *p, const ir_value *counter, ir_value by, ir_value *out) {
  opt_rewriter *rw = &p->rw;
  out[0] = opt_binary(rw, IR_OP_ADD, counter[0], by);
  ir_value carry = opt_compare(rw, IR_DIRECTION_LT, IR_COMPARISON_NONE, out[0], by);
  out[1] = opt_binary(rw, IR_OP_ADD, counter[1], opt_convert(rw, carry, XLAC_U64));
}

/* Where a state of two words has no place for a carry, the device's has three. */
int local_rng_bit_generator(local_pass *p, ir_op *op) {
  opt_rewriter *rw = &p->rw;
  const local_fact *f = local_result(p, op, 1);
  uint32_t dim = 0;
  if (local_is_whole(f)) return local_retype(p, op);
  while (local_axes(f->s, dim).n == 0) dim++;
  const sdy_mesh *mesh = sdy_mesh_of(rw->m, f->s);
  int64_t shards = mesh ? sdy_axes_size(local_axes(f->s, dim), mesh) : 0, one = 1;
  if (shards == 0 || !shc_draws_alone(op, dim, shards))
    return local_fail(p, op, "dimension %u of its numbers is sharded: expected it whole", dim);
  const ir_type *word = opt_tensor(rw, XLAC_U64, 1, &one), *types[2] = {NULL, NULL};
  TRY(local_type(p, op, f, &types[1]));
  int64_t n = op->types[0]->dims[0], blocks = draw_blocks(op, f->type, types[1]->count);
  ir_value state = opt_operand(op, 0), offset = local_offset(p, op, mesh, local_axes(f->s, dim), blocks);
  if (!offset.op) return local_status(p);
  bool philox = draw_is_philox(op);
  ir_value key = draw_words(p, state, 0, 1), own[3] = {key}, next[4] = {key}, results[2];
  ir_value counter[] = {draw_words(p, state, 1, 2), philox && n > 2 ? draw_words(p, state, 2, 3) : key};
  draw_advance(p, counter, opt_reshape(rw, opt_convert(rw, offset, XLAC_U64), word), own + 1);
  draw_advance(p, counter, opt_splat_int(rw, word, blocks * shards), next + 1);
  int64_t own_size = philox ? 3 : 2, given = philox && n > 2 ? 3 : 2;
  ir_value from = draw_join(p, (uint32_t)own_size, own, own_size);
  if (n > given) next[given] = draw_words(p, state, given, n);
  types[0] = opt_type(from);
  ir_op *made = opt_make_n(rw, IR_OP_RNG_BIT_GENERATOR, 2, types, 1, &from, 0);
  opt_set(rw, (ir_value){made, 0}, "rng_algorithm", ir_mattr_of(op, "rng_algorithm"));
  results[0] = draw_join(p, (uint32_t)given + (n > given), next, n);
  results[1] = (ir_value){made, 1};
  if (!rw->failed) opt_replace_op(rw, op, results);
  return opt_rewriter_status(rw);
}
