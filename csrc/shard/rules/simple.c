/* Rules that go dimension by dimension, and the rule of a reshape. */
#include "../../base/number/gcd.h"
#include "../../base/list.h"
#include "rule.h"

/* ([i, j], [i, j])->([i, j]): one factor a dimension on every tensor that has the dimension. */
bool shard_rule_pointwise(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0);
  if (t->kind != IR_TYPE_TENSOR) return false;
  for (uint32_t d = 0; d < t->rank; d++) shard_all(b, d, t->dims[d], SHARD_PASS, false);
  return true;
}

/* Scalars among the operands stand for all elements: select's pred, clamp's bounds. */
bool shard_rule_like_result(shard_maker *b) {
  return shard_rule_pointwise(b);
}

/* One factor a dimension of the two shapes; dimensions that differ get `kind`. */
static void simple_pairs(shard_maker *b, const ir_type *in, const ir_type *out, shard_kind kind, bool blocked) {
  for (uint32_t d = 0; d < shard_rank(in); d++) {
    bool same = in->dims[d] == shard_dim(out, d);
    shard_all(b, d, in->dims[d], same ? SHARD_PASS : kind, !same && blocked);
  }
}

/* A dimension that is sliced in part must be whole on every device, since the offset is known at run time only. */
bool shard_rule_dynamic_slice(shard_maker *b) {
  simple_pairs(b, shard_tensor_type(b, 0), shard_result_type(b, 0), SHARD_REPLICATION, true);
  return true;
}

/* Padding moves elements across shard boundaries: neighbours exchange them. */
bool shard_rule_pad(shard_maker *b) {
  simple_pairs(b, shard_tensor_type(b, 0), shard_result_type(b, 0), SHARD_PERMUTATION, b->conservative);
  return true;
}

bool shard_rule_slice(shard_maker *b) {
  return shard_rule_pad(b);
}

static bool simple_is_constant(const ir_op *op) {
  return op->opcode == IR_OP_CONSTANT || op->opcode == IR_OP_SDY_CONSTANT;
}

/* The update is replicated along a dimension it fills in part, the rest can stay sharded. */
bool shard_rule_dynamic_update_slice(shard_maker *b) {
  const ir_type *in = shard_tensor_type(b, 0), *update = shard_tensor_type(b, 1);
  bool fixed = true;
  for (uint32_t i = 2; i < b->op->n_operands; i++) fixed = fixed && simple_is_constant(ir_operand(b->op, i));
  for (uint32_t d = 0; d < shard_rank(in); d++) {
    if (in->dims[d] == shard_dim(update, d)) {
      shard_all(b, d, in->dims[d], SHARD_PASS, false);
      continue;
    }
    shard_one(b, d, d, in->dims[d], SHARD_PASS, false);
    shard_map(b, 1, d, shard_new_factor(b, shard_dim(update, d), fixed ? SHARD_PASS : SHARD_REPLICATION, false));
  }
  return true;
}

/* Dimensions the operand does not have are the result's alone. An operand's dimension of size 1 that is expanded is
 * not split with the result's: it gets a unit factor. */
bool shard_rule_broadcast(shard_maker *b) {
  const ir_type *in = shard_tensor_type(b, 0), *out = shard_result_type(b, 0);
  uint32_t n = 0;
  const int64_t *dims = shard_ints(b, "broadcast_dimensions", &n);
  for (uint32_t d = 0; d < shard_rank(out); d++) {
    int64_t from = SHARD_NO_DIM;
    for (uint32_t i = 0; i < n; i++)
      if (dims[i] == d) from = i;
    if (from != SHARD_NO_DIM && shard_dim(in, from) == 1 && out->dims[d] != 1) {
      shard_one(b, from, SHARD_NO_DIM, 1, SHARD_PASS, false);
      from = SHARD_NO_DIM;
    }
    shard_one(b, from, d, out->dims[d], SHARD_PASS, false);
  }
  return true;
}

/* Result dimension d is operand dimension permutation[d]. */
bool shard_rule_transpose(shard_maker *b) {
  uint32_t n = 0;
  const int64_t *permutation = shard_ints(b, "permutation", &n);
  for (uint32_t d = 0; d < n; d++)
    shard_one(b, permutation[d], d, shard_dim(shard_tensor_type(b, 0), permutation[d]), SHARD_PASS, false);
  return true;
}

/* A reversed dimension's first shard becomes the last one: devices exchange whole shards. */
bool shard_rule_reverse(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0);
  uint32_t n = 0;
  const int64_t *dims = shard_ints(b, "dimensions", &n);
  for (uint32_t d = 0; d < shard_rank(t); d++)
    shard_all(b, d, t->dims[d], base_list_has(dims, n, d) ? SHARD_PERMUTATION : SHARD_PASS, false);
  return true;
}

static bool simple_is_slice(const ir_op *op) {
  return op->opcode == IR_OP_SLICE;
}

/* Pieces that all come from slices, or from one array some of which is sliced: a shift, not a gathering. */
static bool simple_is_shift(const ir_op *op) {
  bool all = true, any = false, same = true;
  ir_value first = {NULL, 0};
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_use *use = &op->operands[i];
    bool sliced = simple_is_slice(use->op);
    all = all && sliced;
    any = any || sliced;
    ir_value from =
        sliced ? (ir_value){use->op->operands[0].op, use->op->operands[0].index} : (ir_value){use->op, use->index};
    if (i == 0) first = from;
    same = same && from.op == first.op && from.index == first.index;
  }
  return all || (same && any);
}

/* Concatenation needs whole operands along its dimension, unless it is a rotation such as concatenate(slice(x, 1:n),
 * slice(x, 0:1)), for which neighbours exchange their edges. */
bool shard_rule_concatenate(shard_maker *b) {
  const ir_type *t = shard_result_type(b, 0);
  int64_t dim = ir_m_get_int(b->op, "dimension", 0);
  for (uint32_t d = 0; d < shard_rank(t); d++) {
    if (d != dim)
      shard_all(b, d, t->dims[d], SHARD_PASS, false);
    else if (!b->conservative)
      shard_all(b, d, t->dims[d], simple_is_shift(b->op) ? SHARD_PERMUTATION : SHARD_REPLICATION, false);
  }
  return true;
}

/* Propagation along the sorted dimension is blocked only where no other one could be sharded instead. */
bool shard_rule_sort(shard_maker *b) {
  if (b->op->n_operands == 0) return false;
  const ir_type *t = shard_tensor_type(b, 0);
  int64_t dim = ir_m_get_int(b->op, "dimension", -1);
  bool blocked = true;
  for (uint32_t d = 0; d < shard_rank(t); d++) blocked = blocked && (d == dim || t->dims[d] == 1);
  for (uint32_t d = 0; d < shard_rank(t); d++)
    shard_all(b, d, t->dims[d], d == dim ? SHARD_REPLICATION : SHARD_PASS, d == dim && blocked);
  return true;
}

/* i32 <-> 4xi8: the extra minor dimension holds the parts of one element, which stay together. */
bool shard_rule_bitcast_convert(shard_maker *b) {
  const ir_type *in = shard_tensor_type(b, 0), *out = shard_result_type(b, 0);
  const ir_type *shape = shard_rank(in) < shard_rank(out) ? in : out;
  for (uint32_t d = 0; d < shard_rank(shape); d++) shard_all(b, d, shape->dims[d], SHARD_PASS, false);
  int64_t last_in = (int64_t)shard_rank(in) - 1, last_out = (int64_t)shard_rank(out) - 1;
  if (last_in < last_out)
    shard_one(b, SHARD_NO_DIM, last_out, shard_dim(out, last_out), SHARD_REPLICATION, false);
  else if (last_in > last_out)
    shard_one(b, last_in, SHARD_NO_DIM, shard_dim(in, last_in), SHARD_REPLICATION, false);
  return true;
}

/* Inputs, then as many initial values, which are scalars and have no dimensions. The results have the dimensions that
 * are not reduced. */
bool shard_rule_reduce(shard_maker *b) {
  assert(b->op->n_operands % 2 == 0);
  uint32_t inputs = b->op->n_operands / 2, n = 0;
  if (inputs == 0) return false;
  const ir_type *in = shard_tensor_type(b, 0);
  const int64_t *dims = shard_ints(b, "dimensions", &n);
  int64_t to = 0;
  for (uint32_t d = 0; d < shard_rank(in); d++) {
    bool reduced = base_list_has(dims, n, d);
    uint32_t f = shard_new_factor(b, in->dims[d], reduced ? SHARD_REDUCTION : SHARD_PASS, false);
    for (uint32_t t = 0; t < inputs; t++) shard_map(b, t, d, f);
    for (uint32_t t = 0; t < inputs && !reduced; t++) shard_map(b, b->op->n_operands + t, to, f);
    to += !reduced;
  }
  return true;
}

/* The rule of a reshape: common factors of the two shapes, major to minor, as long as they have any. Where the next
 * sizes have no common divisor both sides get factors of their own until their products are equal again. */

/* The rule of a reshape: common factors of the two shapes, major to minor, as long as they have any. Where the next
 * sizes have no common divisor both sides get factors of their own until their products are equal again. 8x12 ->
 * 4x24: gcd(8, 4) = 4 is shared; of 8 remain 2, which 24 has too; of 24 remain 12, which is the other dimension:
 * ([ij, k])->([i, jk]) {i=4, j=2, k=12}. 3x4 -> 2x6 has nothing in common at first: 3 and 2 are factors of one side
 * each. */
typedef struct reshape_side {
  const ir_type *t;
  uint32_t dim;
  int64_t sizes, factors; /* products so far: of the dimensions begun, of the factors made */
} reshape_side;

static bool reshape_open(const reshape_side *s) {
  return s->dim < s->t->rank;
}

/* A dimension of size 1 at hand is a factor of its own. */
static bool reshape_unit(const reshape_side *s) {
  return reshape_open(s) && s->t->dims[s->dim] == 1;
}

static void reshape_begin(reshape_side *s) {
  if (reshape_open(s) && s->sizes == s->factors) s->sizes *= s->t->dims[s->dim];
}

static void reshape_end(reshape_side *s) {
  if (reshape_open(s) && s->sizes == s->factors) s->dim++;
}

/* The side that is behind takes what brings the two together, or at least leaves the common divisor for later. */
static int64_t reshape_catch_up(int64_t next, int64_t gcd, int64_t behind, int64_t ahead) {
  assert(behind > 0 && behind < ahead && gcd > 0);
  if (ahead % behind == 0 && next % (ahead / behind) == 0) return ahead / behind;
  return next > gcd ? next / gcd : next;
}

/* A factor that only the operand has, or only the result. */
static void reshape_in(shard_maker *b, reshape_side *s, int64_t size) {
  shard_one(b, s->dim, SHARD_NO_DIM, size, SHARD_PASS, false);
  s->factors *= size;
}

static void reshape_out(shard_maker *b, reshape_side *s, int64_t size) {
  shard_one(b, SHARD_NO_DIM, s->dim, size, SHARD_PASS, false);
  s->factors *= size;
}

/* Both sides are walked from major to minor. The side whose factors multiply to less catches up with a factor of its
 * own; where both stand level, the greatest common divisor of what is left of the two dimensions is one factor for
 * both. */
static void reshape_step(shard_maker *b, reshape_side *in, reshape_side *out) {
  assert(in->sizes % in->factors == 0 && out->sizes % out->factors == 0);
  int64_t next_in = in->sizes / in->factors, next_out = out->sizes / out->factors;
  int64_t gcd = base_gcd(next_in, next_out);
  if (in->factors < out->factors) {
    reshape_in(b, in, reshape_catch_up(next_in, gcd, in->factors, out->factors));
  } else if (in->factors > out->factors) {
    reshape_out(b, out, reshape_catch_up(next_out, gcd, out->factors, in->factors));
  } else if (gcd > 1) {
    shard_one(b, in->dim, out->dim, gcd, SHARD_PASS, false);
    in->factors *= gcd;
    out->factors *= gcd;
  } else {
    reshape_in(b, in, next_in);
    reshape_out(b, out, next_out);
  }
}

/* No rule for tensors without elements, whose products say nothing, nor for dynamic shapes. */
bool shard_rule_reshape(shard_maker *b) {
  reshape_side in = {shard_tensor_type(b, 0), 0, 1, 1}, out = {shard_result_type(b, 0), 0, 1, 1};
  if (in.t->kind != IR_TYPE_TENSOR || out.t->kind != IR_TYPE_TENSOR || in.t->count == 0 || in.t->has_dynamic ||
      out.t->has_dynamic || in.t->count != out.t->count)
    return false;
  while ((reshape_open(&in) || reshape_open(&out)) && !b->failed) {
    if (reshape_unit(&in)) {
      shard_one(b, in.dim++, SHARD_NO_DIM, 1, SHARD_PASS, false);
    } else if (reshape_unit(&out)) {
      shard_one(b, SHARD_NO_DIM, out.dim++, 1, SHARD_PASS, false);
    } else {
      reshape_begin(&in);
      reshape_begin(&out);
      reshape_step(b, &in, &out);
      reshape_end(&in);
      reshape_end(&out);
    }
  }
  return true;
}
