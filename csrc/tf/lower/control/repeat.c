/* Loops of rows that go on until something holds. */
#include "../repeat.h"

static ir_computation *repeat_region(tfl_op *x, tfl_repeat *r, uint32_t which) {
  ir_computation *c = opt_region(x->rw, r->op, which);
  for (uint32_t i = 0; c && i < r->n; i++) r->state[i] = opt_region_argument(x->rw, c, r->op->types[i]);
  return c;
}

int tfl_repeat_begin(tfl_op *x, tfl_repeat *r, uint32_t n, const ir_value *inits) {
  const ir_type *types[TFL_MOST_STATE];
  assert(n > 0 && n <= TFL_MOST_STATE);
  *r = (tfl_repeat){.n = n};
  for (uint32_t i = 0; i < n; i++) {
    if (!inits[i].op) return x->status ? x->status : (x->status = base_oom(x->err, "lowering"));
    types[i] = opt_type(inits[i]);
  }
  r->op = opt_make_n(x->rw, IR_OP_WHILE, n, types, n, inits, 2);
  ir_computation *condition = r->op ? repeat_region(x, r, 0) : NULL;
  if (!condition) return x->status = base_oom(x->err, "lowering");
  opt_set_results(x->rw, condition, 1, &r->state[0]);
  r->body = repeat_region(x, r, 1);
  if (!r->body) return x->status = base_oom(x->err, "lowering");
  r->back = tfl_enter(x, r->body);
  return 0;
}

void tfl_repeat_end(tfl_op *x, tfl_repeat *r, const ir_value *next, ir_value *results) {
  opt_set_results(x->rw, r->body, r->n, next);
  tfl_leave(x, r->back);
  for (uint32_t i = 0; i < r->n; i++) results[i] = opt_result(r->op, i);
}

ir_value tfl_any(tfl_op *x, ir_value v) {
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  uint32_t rank = opt_type(v)->rank;
  for (uint32_t d = 0; d < rank; d++) dims[d] = d;
  return tfl_reduce(x, IR_OP_OR, v, 0, rank, dims);
}
