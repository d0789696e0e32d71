/* A transposition of a sum of products over devices, as the gradient of a weight is: the products are transposed
 * instead, which later is their sides swapped, and costs nothing. The sum has the same elements, in other places.
 *
 *   transpose(all-reduce(dot(a, b)))  is  all-reduce(transpose(dot(a, b))), that is all-reduce(dot(b, a)) */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "inside.h"

static bool turned_read_once(const opt_rewriter *rw, ir_op *op) {
  return op->uses && shc_count_uses(rw, opt_result(op, 0), 2) == 1;
}

static uint32_t turned_listed(opt_rewriter *rw, const ir_op *dot, const char *field) {
  uint32_t n = 0;
  (void)ir_m_ints(ir_m_field(ir_mattr_of(dot, "dot_dimension_numbers"), field), &rw->arena, &n);
  return n;
}

/* Whether the permutation puts what the right side gives the product before what the left side gives it. */
static bool turned_swaps(opt_rewriter *rw, const ir_op *dot, const int64_t *to, uint32_t rank) {
  uint32_t inner = turned_listed(rw, dot, "lhs_contracting_dimensions"), left = ir_operand_type(dot, 0)->rank - inner;
  bool swaps = left > 0 && left < rank && turned_listed(rw, dot, "lhs_batching_dimensions") == 0;
  for (uint32_t i = 0; i < rank && swaps; i++) swaps = to[i] == (left + i) % rank;
  return swaps;
}

/* Which dimension of the transposed is dimension d. */
static uint32_t turned_place(const int64_t *to, uint32_t rank, int64_t d) {
  uint32_t place = 0;
  while (place < rank && to[place] != d) place++;
  assert(place < rank);
  return place;
}

static void turned_try(opt_rewriter *rw, ir_op *op) {
  ir_op *sum = op->opcode == IR_OP_TRANSPOSE ? ir_operand(op, 0) : NULL, *dot = NULL;
  if (!sum || sum->n_operands != 1 || !shc_is_static(op->type) || !turned_read_once(rw, sum)) return;
  bool scatters = sum->opcode == IR_OP_REDUCE_SCATTER;
  if (scatters || sum->opcode == IR_OP_ALL_REDUCE) dot = ir_operand(sum, 0);
  bool fits = dot && dot->opcode == IR_OP_DOT && shc_is_static(dot->type) && !dot->type->quant;
  if (!fits || dot->parent != sum->parent || sum->parent != op->parent || !turned_read_once(rw, dot)) return;
  uint32_t rank = 0;
  const int64_t *to = ir_m_ints(ir_mattr_of(op, "permutation"), &rw->arena, &rank);
  if (!to || rank != dot->type->rank || !turned_swaps(rw, dot, to, rank)) return;
  opt_at(rw, dot->next);
  ir_value turned = opt_transpose(rw, opt_result(dot, 0), to);
  if (rw->failed) return;
  ir_set_operand(sum, 0, turned);
  opt_set_type(rw, opt_result(sum, 0), op->type);
  if (scatters)
    opt_set(rw, opt_result(sum, 0), "scatter_dimension",
            ir_m_i64(rw->m, turned_place(to, rank, ir_m_get_int(sum, "scatter_dimension", 0))));
  opt_replace_one(rw, op, opt_result(sum, 0));
}

int spmd_turn_sums(ir_module *m, xlac_error *err) {
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  for (ir_op *op = c->first, *next; op && !rw.failed; op = next) {
    next = op->next;
    turned_try(&rw, op);
  }
  int status = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  return status;
}
