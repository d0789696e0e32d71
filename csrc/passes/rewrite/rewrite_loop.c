/* A counted loop. */
#include "rewrite.h"

static ir_value loop_i64(opt_rewriter *rw, int64_t v) {
  return opt_splat_int(rw, opt_tensor(rw, XLAC_S64, 0, NULL), v);
}

/* A region with the state's arguments; index and state may be NULL. */
static ir_computation *loop_region(opt_rewriter *rw, opt_loop *loop, uint32_t which) {
  ir_computation *c = opt_region(rw, loop->op, which);
  for (uint32_t i = 0; c && i <= loop->n; i++) {
    ir_value v = opt_region_argument(rw, c, loop->op->types[i]);
    if (i == 0)
      loop->index = v;
    else
      loop->state[i - 1] = v;
  }
  return rw->failed ? NULL : c;
}

void opt_loop_begin(opt_rewriter *rw, opt_loop *loop, ir_value limit, uint32_t n, const ir_value *inits) {
  *loop = (opt_loop){.n = n, .into = rw->into, .before = rw->before, .origin = rw->origin};
  loop->state = BASE_ARRAY(&rw->arena, ir_value, (size_t)n + 1);
  ir_value *all = BASE_ARRAY(&rw->arena, ir_value, (size_t)n + 1);
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)n + 1);
  rw->failed = rw->failed || !loop->state || !all || !types;
  if (rw->failed) return;
  all[0] = loop_i64(rw, 0);
  for (uint32_t i = 0; i < n; i++) all[i + 1] = inits[i];
  for (uint32_t i = 0; i <= n; i++) types[i] = opt_type(all[i]);
  loop->op = opt_make_n(rw, IR_OP_WHILE, n + 1, types, n + 1, all, 2);
  ir_computation *condition = loop->op ? loop_region(rw, loop, 0) : NULL;
  if (!condition) return;
  opt_at_end(rw, condition, loop->origin);
  ir_value more = opt_compare(rw, "LT", NULL, loop->index, limit);
  opt_set_results(rw, condition, 1, &more);
  loop->body = loop_region(rw, loop, 1);
  if (loop->body) opt_at_end(rw, loop->body, loop->origin);
}

void opt_loop_end(opt_rewriter *rw, opt_loop *loop, const ir_value *next, ir_value *results) {
  ir_value *all = BASE_ARRAY(&rw->arena, ir_value, (size_t)loop->n + 1);
  rw->failed = rw->failed || !all;
  if (!rw->failed) {
    all[0] = opt_binary(rw, IR_OP_ADD, loop->index, loop_i64(rw, 1));
    for (uint32_t i = 0; i < loop->n; i++) all[i + 1] = next[i];
    opt_set_results(rw, loop->body, loop->n + 1, all);
  }
  rw->into = loop->into;
  rw->before = loop->before;
  rw->origin = loop->origin;
  for (uint32_t i = 0; i < loop->n; i++) results[i] = (ir_value){rw->failed ? NULL : loop->op, i + 1};
}
