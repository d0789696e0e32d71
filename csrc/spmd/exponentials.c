/* sum(exp(x - top)) along a sharded dimension, where `top` is a maximum of all shards: a device would keep its x until
 * the devices have met about `top`. Each sums with the maximum of its own shard instead, which it has at once, and
 * multiplies what that gives when `top` is known:
 *
 *   own = max(x); top = ...all-reduce(own)...; all-reduce(sum(exp(x - top)))
 *   own = max(x); part = sum(exp(x - finite(own))); top = ...; all-reduce(part * exp(own - top))
 *
 * So x and its maximum and sum can be made row by row, and none of it has to lie in memory. finite(v) is v, or 0 where
 * that is infinite or NaN: -inf - -inf would be NaN. A shard of -inf alone gives 0 * exp(-inf - top), that is 0, or NaN
 * where `top` is -inf: what the first form gives, too. */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

enum { EXPO_STEPS = 12 }; /* ops between an all-reduce of maxima and what is made of it */

typedef struct expo_sum {
  opt_rewriter *rw;
  ir_op *reduce, *exp, *sub;
  ir_op *own; /* the maximum of the shard */
  ir_value x, top;
  uint32_t n_kept;
  int64_t kept[IR_MAX_RANK]; /* dimensions that are not summed over */
} expo_sum;

static bool expo_reduces(const ir_op *op, ir_opcode how) {
  if (op->opcode != IR_OP_REDUCE || op->n_results != 1 || op->n_called != 1 || !shc_is_static(op->type)) return false;
  const ir_op *body = ir_combiner(op->called[0]);
  return body && body->opcode == how;
}

static bool expo_is_read_once(const ir_op *op) {
  return op->uses && !op->uses->next;
}

/* Whether v is made of an all-reduce of the shard's maximum. */
static bool expo_finds_own(expo_sum *s, ir_value v, uint32_t steps) {
  assert(steps <= EXPO_STEPS);
  ir_op *op = v.op;
  if (op->opcode == IR_OP_ALL_REDUCE) {
    ir_op *own = op->n_operands == 1 ? ir_operand(op, 0) : NULL;
    if (!own || !expo_reduces(own, IR_OP_MAXIMUM) || own->type->dtype != s->reduce->type->dtype) return false;
    bool same = opt_operand(own, 0).op == s->x.op && opt_operand(own, 0).index == s->x.index &&
                own->parent == s->reduce->parent &&
                ir_mattr_equal(ir_mattr_of(own, "dimensions"), ir_mattr_of(s->reduce, "dimensions"));
    if (same) s->own = own;
    return same;
  }
  bool passes = op->opcode == IR_OP_SELECT || op->opcode == IR_OP_MAXIMUM || op->opcode == IR_OP_BROADCAST ||
                op->opcode == IR_OP_RESHAPE;
  for (uint32_t i = 0; passes && steps && i < op->n_operands; i++)
    if (expo_finds_own(s, opt_operand(op, i), steps - 1)) return true;
  return false;
}

/* Whether v, whose dimension i is x's places[i], has one element for each sum. */
static bool expo_is_narrow(const expo_sum *s, ir_value v, const int64_t *places) {
  const ir_type *t = opt_type(v), *wide = opt_type(s->x);
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (n < s->n_kept && places[i] == s->kept[n] && t->dims[i] == wide->dims[places[i]])
      n++;
    else if (t->dims[i] != 1)
      return false;
  }
  return n == s->n_kept;
}

/* What is broadcast to x's type in v. */
static bool expo_finds_top(expo_sum *s, ir_value v) {
  int64_t places[IR_MAX_RANK];
  for (uint32_t i = 0; i < opt_type(v)->rank; i++) places[i] = i;
  for (uint32_t step = 0; v.op->opcode == IR_OP_BROADCAST && step < EXPO_STEPS; step++) {
    uint32_t n = 0;
    const int64_t *dims = ir_m_ints(ir_mattr_of(v.op, "broadcast_dimensions"), &s->rw->arena, &n);
    v = opt_operand(v.op, 0);
    if (!shc_is_static(opt_type(v)) || n != opt_type(v)->rank || (n && !dims)) return false;
    for (uint32_t i = 1; i < n; i++)
      if (dims[i] <= dims[i - 1]) return false;
    for (uint32_t i = 0; i < n; i++) places[i] = places[dims[i]]; /* dims[i] >= i: not overwritten yet */
    s->top = v;
    if (expo_is_narrow(s, v, places)) return true;
  }
  return false;
}

static void expo_keep(expo_sum *s) {
  uint32_t n = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(s->reduce, "dimensions"), &s->rw->arena, &n);
  s->n_kept = 0;
  for (uint32_t d = 0; d < opt_type(s->x)->rank; d++) {
    bool summed = false;
    for (uint32_t i = 0; dims && i < n; i++) summed = summed || dims[i] == d;
    if (!summed) s->kept[s->n_kept++] = d;
  }
}

static bool expo_fits(expo_sum *s, const ir_op *sum) {
  if (sum->opcode != IR_OP_ALL_REDUCE || sum->n_operands != 1) return false;
  s->reduce = ir_operand(sum, 0);
  if (!expo_reduces(s->reduce, IR_OP_ADD) || s->reduce->parent != sum->parent) return false;
  s->exp = ir_operand(s->reduce, 0);
  bool floats = s->reduce->type->dtype == XLAC_F32 || s->reduce->type->dtype == XLAC_F64;
  if (!floats || s->exp->opcode != IR_OP_EXP || !spmd_is_zero(opt_operand(s->reduce, 1))) return false;
  s->sub = ir_operand(s->exp, 0);
  if (s->sub->opcode != IR_OP_SUBTRACT || !shc_is_static(s->sub->type)) return false;
  if (!expo_is_read_once(s->reduce) || !expo_is_read_once(s->exp) || !expo_is_read_once(s->sub)) return false;
  s->x = opt_operand(s->sub, 0);
  expo_keep(s);
  return s->n_kept == s->reduce->type->rank && expo_finds_top(s, opt_operand(s->sub, 1)) &&
         expo_finds_own(s, s->top, EXPO_STEPS);
}

/* The part where the shard's maximum is there, the factor where it is read. */
static void expo_make(const expo_sum *s, ir_op *sum) {
  opt_rewriter *rw = s->rw;
  const ir_type *narrow = s->reduce->type;
  ir_value own = opt_result(s->own, 0), part = own, factor = own;
  assert(s->own->next && narrow->rank == s->n_kept);
  opt_at(rw, s->own->next);
  ir_value is_finite = opt_make(rw, IR_OP_IS_FINITE, opt_with_dtype(rw, narrow, XLAC_PRED), 1, &own);
  ir_value base = opt_select(rw, is_finite, own, opt_splat(rw, narrow, 0));
  ir_value wide = opt_broadcast_in_dim(rw, base, opt_type(s->x), s->kept);
  ir_value shifted = opt_binary(rw, IR_OP_SUBTRACT, s->x, wide);
  if (rw->failed) return;
  opt_copy_op(rw, s->exp, &shifted, &part);
  ir_value operands[] = {part, opt_splat(rw, opt_type(opt_operand(s->reduce, 1)), 0)};
  if (!rw->failed) opt_copy_op(rw, s->reduce, operands, &part);
  opt_at(rw, sum);
  ir_value less = opt_binary(rw, IR_OP_SUBTRACT, own, opt_reshape(rw, s->top, narrow));
  if (!rw->failed) opt_copy_op(rw, s->exp, &less, &factor);
  if (factor.op) opt_set_type(rw, factor, narrow);
  ir_value product = opt_binary(rw, IR_OP_MULTIPLY, part, factor);
  if (rw->failed) return;
  ir_set_operand(sum, 0, product);
  opt_erase(rw, s->reduce);
  opt_erase(rw, s->exp);
  opt_erase(rw, s->sub);
}

int spmd_sum_exponentials(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  for (ir_op *op = c->first; op && !rw.failed; op = op->next) {
    expo_sum s = {.rw = &rw};
    if (expo_fits(&s, op)) expo_make(&s, op);
  }
  int status = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  return status;
}
