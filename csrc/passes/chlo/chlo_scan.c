/* chlo.scan: a loop over the steps, which takes slices of the inputs and writes into the outputs. */
#include "chlo.h"

typedef struct scan_parts {
  opt_rewriter *rw;
  ir_op *op;
  uint32_t dim, n_inputs, n_carries, n_outputs;
  bool reverse;
} scan_parts;

static ir_value unroll_i64(opt_rewriter *rw, int64_t v) {
  return opt_splat_int(rw, opt_tensor(rw, XLAC_S64, 0, NULL), v);
}

static bool scan_knows(const ir_type *t, uint32_t dim) {
  return ir_is_tensor(t) && t->rank > dim && !t->quant && !t->text;
}

static bool scan_begin(scan_parts *s, opt_rewriter *rw, ir_op *op) {
  uint32_t n;
  const int64_t *segments = ir_m_ints(ir_mattr_of(op, "operandSegmentSizes"), &rw->arena, &n);
  if (n != 2 || segments[0] < 0 || segments[1] < 0 || segments[0] + segments[1] != op->n_operands) return false;
  *s = (scan_parts){.rw = rw, .op = op, .reverse = ir_m_get_bool(op, "is_reverse")};
  s->n_inputs = (uint32_t)segments[0];
  s->n_carries = (uint32_t)segments[1];
  int64_t dim = ir_m_get_int(op, "dimension", -1);
  if (s->n_carries > op->n_results || dim < 0 || dim >= IR_MAX_RANK || op->called[0]->declaration) return false;
  s->n_outputs = op->n_results - s->n_carries;
  s->dim = (uint32_t)dim;
  for (uint32_t i = 0; i < s->n_inputs; i++)
    if (!scan_knows(ir_operand_type(op, i), s->dim)) return false;
  for (uint32_t i = 0; i < s->n_outputs; i++) {
    if (!scan_knows(op->types[i], s->dim)) return false;
    if (op->types[i]->has_dynamic && s->n_inputs == 0) return false;
  }
  return true;
}

/* The number of steps; no op where nothing tells it. */
static ir_value scan_length(const scan_parts *s) {
  if (s->n_inputs) {
    const ir_type *t = ir_operand_type(s->op, 0);
    if (!ir_dim_is_dynamic(t, s->dim)) return unroll_i64(s->rw, t->dims[s->dim]);
    return opt_convert(s->rw, opt_extent(s->rw, opt_operand(s->op, 0), s->dim), XLAC_S64);
  }
  if (ir_mattr_of(s->op, "scan_dim_size")) return unroll_i64(s->rw, ir_m_get_int(s->op, "scan_dim_size", 0));
  if (s->n_outputs && !ir_dim_is_dynamic(s->op->types[0], s->dim))
    return unroll_i64(s->rw, s->op->types[0]->dims[s->dim]);
  return (ir_value){NULL, 0};
}

/* An output before the first step: zeros of its shape, which is that of the input beside it where it is not static. */
static ir_value scan_blank(const scan_parts *s, uint32_t i) {
  const ir_type *t = s->op->types[i];
  if (opt_is_static(t)) return opt_splat(s->rw, t, 0);
  ir_value zero = opt_splat(s->rw, opt_tensor(s->rw, (base_dtype)t->dtype, 0, NULL), 0);
  ir_value like = opt_operand(s->op, i < s->n_inputs ? i : 0);
  return opt_dynamic_broadcast(s->rw, zero, opt_extents(s->rw, like), t, NULL);
}

/* --- one step --- */

/* The state is the carries, then the outputs. */
static void scan_step_of(const scan_parts *s, opt_loop *loop, ir_value length, ir_value *next) {
  opt_rewriter *rw = s->rw;
  ir_value at = loop->index;
  const ir_computation *body = s->op->called[0];
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, (size_t)body->n_params + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)body->n_results + 1);
  rw->failed = rw->failed || !args || !results;
  if (rw->failed) return;
  if (s->reverse) at = opt_binary(rw, IR_OP_SUBTRACT, opt_binary(rw, IR_OP_SUBTRACT, length, unroll_i64(rw, 1)), at);
  for (uint32_t i = 0; i < s->n_inputs && !rw->failed; i++)
    args[i] = opt_as_type(rw, opt_take(rw, opt_operand(s->op, i), s->dim, at), body->params[i]->type);
  for (uint32_t i = 0; i < s->n_carries; i++)
    args[s->n_inputs + i] = opt_as_type(rw, loop->state[i], body->params[s->n_inputs + i]->type);
  if (rw->failed) return;
  opt_inline(rw, body, args, results);
  for (uint32_t i = 0; i < s->n_carries && !rw->failed; i++)
    next[i] = opt_as_type(rw, results[s->n_outputs + i], opt_type(loop->state[i]));
  for (uint32_t i = 0; i < s->n_outputs && !rw->failed; i++)
    next[s->n_carries + i] = opt_put(rw, loop->state[s->n_carries + i], results[i], s->dim, at);
}

static void scan_loop(const scan_parts *s, ir_value length, ir_value *state, ir_value *results) {
  opt_rewriter *rw = s->rw;
  uint32_t n = s->n_carries + s->n_outputs;
  opt_loop loop;
  for (uint32_t i = 0; i < s->n_carries; i++)
    state[i] = opt_as_type(rw, opt_operand(s->op, s->n_inputs + i), s->op->types[s->n_outputs + i]);
  for (uint32_t i = 0; i < s->n_outputs; i++) state[s->n_carries + i] = scan_blank(s, i);
  opt_loop_begin(rw, &loop, length, n, state);
  if (!rw->failed) scan_step_of(s, &loop, length, state);
  opt_loop_end(rw, &loop, state, state);
  for (uint32_t i = 0; i < s->n_outputs; i++) results[i] = state[s->n_carries + i];
  for (uint32_t i = 0; i < s->n_carries; i++) results[s->n_outputs + i] = state[i];
}

int opt_chlo_scan(opt_rewriter *rw, ir_op *op, bool *changed) {
  scan_parts s;
  if (!scan_begin(&s, rw, op)) return 0;
  ir_value length = scan_length(&s);
  if (!length.op) return 0;
  ir_value *state = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  rw->failed = rw->failed || !state || !results;
  if (!rw->failed) scan_loop(&s, length, state, results);
  if (!rw->failed) opt_replace_op(rw, op, results);
  *changed = true;
  return 0;
}
