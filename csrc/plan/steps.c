/* What programs are put together from: buffers, the leaves of values, steps. */
#include "build.h"

/* --- buffers and leaves --- */

/* Until steps use it, it has none. When out of memory, x->failed is set and the number means nothing. */
uint32_t plan_new_buffer(plan_build *x, plan_buffer b) {
  b.first = b.last = UINT32_MAX;
  x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->buffers, b);
  return x->failed ? 0 : x->buffers.n - 1;
}

/* Tokens have leaves too, of no bytes, so that numbers agree with the type's leaves. */
void plan_add_leaves(plan_build *x, const ir_op *op, const ir_type *t, plan_buffer like, uint32_t *number) {
  assert(x && op && t && number);
  if (ir_is_tuple(t)) {
    for (uint32_t i = 0; i < t->n_elements; i++) plan_add_leaves(x, op, t->elements[i], like, number);
    return;
  }
  like.type = t;
  like.op = op;
  like.number = (*number)++;
  like.bytes = ir_is_tensor(t) ? ir_type_bytes(t) : 0;
  uint32_t b = plan_new_buffer(x, like);
  x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->leaves, b);
}

/* New buffers like `like` for all leaves of op's type. */
plan_leaves plan_new_leaves(plan_build *x, const ir_op *op, plan_buffer like) {
  uint32_t number = 0, at = x->leaves.n;
  plan_add_leaves(x, op, op->type, like, &number);
  return (plan_leaves){at, x->leaves.n - at};
}

/* --- steps --- */

/* Marks who writes and reads what, and adds the step. */
int plan_add_step(plan_build *x, plan_step s) {
  assert(s.op || s.kind == PLAN_COPY);
  uint32_t number = x->steps.n;
  for (uint32_t i = 0; i < s.n_in; i++) x->buffers.items[s.in[i]].last = number;
  for (uint32_t i = 0; i < s.n_out; i++) {
    plan_buffer *b = &x->buffers.items[s.out[i]];
    b->first = b->last = number;
  }
  if (s.frame != UINT32_MAX) x->buffers.items[s.frame].first = x->buffers.items[s.frame].last = number;
  return BASE_VEC_PUSH(x->alloc, &x->steps, s) ? 0 : base_oom(x->err, "a plan");
}

/* In the arena; n + 1, so that none needs no special case. */
uint32_t *plan_ids(plan_build *x, uint32_t n) {
  uint32_t *ids = BASE_ARRAY(x->arena, uint32_t, (size_t)n + 1);
  x->failed = x->failed || !ids;
  return ids;
}

/* The buffers of all operands from `first` on, in order, `extra` more places after them. */
const uint32_t *plan_operand_buffers(plan_build *x, const ir_op *op, uint32_t first, uint32_t *n) {
  uint32_t count = 0;
  for (uint32_t i = first; i < op->n_operands; i++) count += x->values[ir_operand(op, i)->id].n;
  uint32_t *ids = plan_ids(x, count);
  *n = 0;
  for (uint32_t i = first; ids && i < op->n_operands; i++) {
    plan_leaves from = x->values[ir_operand(op, i)->id];
    for (uint32_t j = 0; j < from.n; j++) ids[(*n)++] = x->leaves.items[from.at + j];
  }
  return ids;
}

/* Op's value is these buffers from now on. */
uint32_t *plan_result_buffers(plan_build *x, const ir_op *op, uint32_t extra, uint32_t *n) {
  plan_leaves made = plan_new_leaves(x, op, (plan_buffer){.place = PLAN_FRAME});
  x->values[op->id] = made;
  uint32_t *ids = plan_ids(x, made.n + extra);
  for (uint32_t i = 0; ids && !x->failed && i < made.n; i++) ids[i] = x->leaves.items[made.at + i];
  *n = made.n;
  return ids;
}
