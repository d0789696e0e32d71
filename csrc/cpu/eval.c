/* One op by the interpreter, on the plan's buffers: operands are lent to it, and what it gives goes where the plan
 * says. */
#include "../interp/blocks.h"
#include "../interp/sizes.h"
#include "routine.h"

/* A value of type t whose arrays are the step's buffers from *at on, one a leaf; tokens have a buffer, too. NULL
 * when out of memory. */
static interp_value *eval_wrap(interp_ctx *ctx, const ir_type *t, const uint32_t *ids, void *const *pointers,
                               uint32_t *at) {
  if (ir_is_token(t)) {
    ++*at;
    return interp_token(ctx);
  }
  if (ir_is_tensor(t))
    return interp_lend(ctx->options.alloc, t->dtype, t->rank, t->dims, pointers[ids[(*at)++]], NULL, NULL);
  interp_value **parts = base_malloc(ctx->options.alloc, (size_t)t->n_elements * sizeof *parts), *v = NULL;
  uint32_t n = 0;
  while (parts && n < t->n_elements && (parts[n] = eval_wrap(ctx, t->elements[n], ids, pointers, at))) n++;
  if (parts && n == t->n_elements) v = interp_tuple(ctx, n, parts);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(ctx->options.alloc, parts);
  return v;
}

/* The reverse of eval_wrap: copies the arrays of v, which may be views of other memory, into the step's buffers. */
static int eval_unwrap(interp_ctx *ctx, const interp_value *v, const uint32_t *ids, void *const *pointers,
                       uint32_t *at) {
  if (v->kind == INTERP_TUPLE) {
    for (uint32_t i = 0; i < v->n_elements; i++) TRY(eval_unwrap(ctx, v->elements[i], ids, pointers, at));
    return 0;
  }
  void *to = pointers[ids[(*at)++]];
  return v->kind == INTERP_ARRAY && v->data != to ? interp_copy_bytes(ctx, to, v->data, interp_bytes(v)) : 0;
}

/* Runs the op's evaluator and puts what it gives into the step's outputs. `dying` tells the evaluator that it may
 * reuse the memory of operand 0. */
static int eval_op(cpu_run *run, const plan_step *s, interp_value **operands, void *const *pointers) {
  assert(interp_table[s->op->opcode]);
  interp_ctx *ctx = &run->ctx;
  interp_value *result = NULL;
  uint32_t at = 0;
  /* Only ops that change a part of their operand are placed over it: their evaluators do it there. */
  bool in_place = s->routine->interpreted && s->routine->in_place && pointers[s->in[0]] == pointers[s->out[0]];
  ctx->dying = in_place ? 1 : 0;
  if (in_place) operands[0]->lent = false; /* its memory is the result's */
  int status = interp_table[s->op->opcode](ctx, s->op, operands, &result);
  ctx->dying = 0;
  if (!status) status = interp_check_result(ctx, s->op, result); /* the plan's buffers are as large as the type says */
  if (!status) status = eval_unwrap(ctx, result, s->out, pointers, &at);
  assert(status || at == s->n_out);
  interp_release(result);
  return status ? interp_place_error(ctx, s->op, status) : 0;
}

/* What the done of s gives. Evaluators of starts give all that HLO's start has: copy-start (destination, source,
 * context), all-gather-start and collective-permute-start (operand, result), all-reduce-start just the result. */
static int eval_started(cpu_run *run, const plan_step *s, interp_value **operands, void *const *pointers) {
  const ir_op *op = s->op;
  interp_value *all = NULL, *result = NULL;
  uint32_t at = 0;
  int status = op->opcode == IR_OP_ASYNC_START ? interp_call(&run->ctx, op->called[0], op->n_operands, operands, &all)
                                               : interp_table[op->opcode](&run->ctx, op, operands, &all);
  if (!status && op->opcode != IR_OP_ASYNC_START) status = interp_check_result(&run->ctx, op, all);
  if (status) {
    interp_release(all);
    return interp_place_error(&run->ctx, op, status);
  }
  bool whole = op->opcode == IR_OP_ASYNC_START || op->opcode == IR_OP_ALL_REDUCE_START;
  result = interp_retain(whole ? all : all->elements[op->opcode == IR_OP_COPY_START ? 0 : 1]);
  interp_release(all);
  status = eval_unwrap(&run->ctx, result, s->out, pointers, &at);
  assert(status || at == s->n_out);
  interp_release(result);
  return status ? interp_place_error(&run->ctx, op, status) : 0;
}

typedef int eval_fn(cpu_run *run, const plan_step *s, interp_value **operands, void *const *pointers);

/* Calls fn with the step's operands as values, which are borrowed: the arrays stay the plan's. */
static int eval_with(cpu_run *run, const plan_step *s, void *const *pointers, eval_fn *fn) {
  interp_value *few[16], **operands = few;
  uint32_t n = s->op->n_operands, at = 0, made = 0;
  if (n > 16 && !(operands = base_malloc(run->exe->alloc, n * sizeof *operands)))
    return base_oom(run->ctx.err, "an op's operands");
  while (made < n && (operands[made] = eval_wrap(&run->ctx, ir_operand_type(s->op, made), s->in, pointers, &at)))
    made++;
  assert(at <= s->n_in);
  int status = made == n ? fn(run, s, operands, pointers) : base_oom(run->ctx.err, "an op's operands");
  for (uint32_t i = 0; i < made; i++) interp_release(operands[i]);
  if (operands != few) base_free(run->exe->alloc, operands);
  return status;
}

int cpu_run_eval_start(cpu_run *run, const plan_step *s, void *const *pointers) {
  return eval_with(run, s, pointers, eval_started);
}

/* Ops that have no evaluator are errors of the program, found when it runs. */
int cpu_run_eval(cpu_run *run, const plan_step *s, void *const *pointers) {
  if (!interp_table[s->op->opcode])
    return interp_fail(&run->ctx, s->op, XLAC_E_EVAL, "%s has no evaluator", ir_opcode_text(s->op->opcode));
  return eval_with(run, s, pointers, eval_op);
}

static int eval_run(const cpu_routine_run *r) {
  return cpu_run_eval(r->run, r->step, r->pointers);
}

int cpu_prepare_eval(cpu_prepare_run *x) {
  plan_eval_routine(x->op, x->out);
  x->code = eval_run;
  return 0;
}
