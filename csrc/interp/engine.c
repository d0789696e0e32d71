/* Runs computations: ops in the plan's order, every value released after its last use. Nothing recurses but calls, and
 * their depth is limited.
 *
 * A computation is run by its plan (plan.c): step i writes slot i, reads the slots of its operands, and
 * releases the slots that nobody reads afterwards. An op that reads a value last may overwrite it: `dying`
 * tells the evaluator which of its operands those are, and interp_reuse and interp_take are how it asks.
 * That is what makes a while loop update its state in place instead of copying it at every iteration. */
#include <stdio.h>

#include "async_order.h"
#include "heap.h"
#include "plan.h"
#include "quant.h"
#include "sizes.h"

#define MAX_DEPTH 250             /* of nested computations: each takes a few hundred bytes of C stack */
#define TICKS_PER_POLL (1u << 20) /* element operations: at most some 20 ms of work */
#define TICKS_PER_OP 32           /* what an op takes beside its elements, in element operations */

/* op may be NULL: an error of no op. Returns the negative code, for the evaluator to return. */
int interp_fail(interp_ctx *ctx, const ir_op *op, base_code code, const char *format, ...) {
  char text[sizeof ctx->err->message];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (!op) return base_fail(ctx->err, code, "%s", text);
  return base_fail_at(ctx->err, code, op->line, op->col, op->name->s, "%s", text);
}

/* Only sums up until a poll is due, so inner loops may call it often. Nonzero: stop, the error is filled. */
int interp_tick(interp_ctx *ctx, uint64_t work) {
  ctx->ticks += work;
  if (ctx->ticks < TICKS_PER_POLL) return 0;
  ctx->ticks = 0;
  if (!ctx->options.interrupted || !ctx->options.interrupted(ctx->options.interrupt_ctx)) return 0;
  return base_fail(ctx->err, XLAC_E_INTERRUPTED, "the run was interrupted");
}

/* Of operands beyond the first 64 nothing is known, so they are never reused. */
interp_value *interp_reuse(interp_ctx *ctx, interp_value *const *operands, uint32_t k) {
  if (k >= 64 || !(ctx->dying >> k & 1) || !interp_is_unique(operands[k])) return NULL;
  return interp_retain(operands[k]);
}

interp_value *interp_take(interp_ctx *ctx, interp_value *const *operands, uint32_t k) {
  /* Whoever evaluates an op on its own (constant folding) has no slots, and says that nothing dies. */
  if (k >= 64 || !(ctx->dying >> k & 1)) return interp_retain(operands[k]);
  interp_value **slot = &ctx->slots[ctx->operand_slots[k]];
  if (!*slot) return interp_retain(operands[k]); /* taken as another operand already */
  *slot = NULL;
  return operands[k];
}

/* Says where a failure was that its evaluator could not place (no memory, an interrupt). */
int interp_place_error(interp_ctx *ctx, const ir_op *op, int status) {
  xlac_error *err = ctx->err;
  if (!err || err->op[0]) return status;
  size_t n = op->name->n < sizeof err->op ? op->name->n : sizeof err->op - 1;
  memcpy(err->op, op->name->s, n);
  err->op[n] = 0;
  err->line = op->line;
  err->col = op->col;
  return status;
}

/* The element itself rather than another reference to it, out of a tuple that only this slot holds. NULL:
 * the element must be shared as usual. */
static interp_value *engine_move_element(const interp_step *s, interp_value *tuple) {
  if (!s->moves_element || !interp_is_unique(tuple)) return NULL;
  interp_value **place = &tuple->elements[ir_get_int(s->op, IR_ATTR_INDEX, 0)], *element = *place;
  *place = NULL;
  return element;
}

/* operands is scratch of the frame: nested calls have frames of their own. */
static int engine_step(interp_ctx *ctx, const interp_step *s, interp_value **slots, uint32_t own,
                       interp_value **operands) {
  const ir_op *op = s->op;
  for (uint32_t k = 0; k < op->n_operands; k++) operands[k] = slots[s->operands[k]];
  if (s->moves_element && (slots[own] = engine_move_element(s, operands[0]))) return 0;
  ctx->dying = s->last;
  ctx->slots = slots;
  ctx->operand_slots = s->operands;
  interp_eval_fn *eval = s->quantised ? interp_eval_quantised : interp_table[op->opcode];
  int status = interp_tick(ctx, TICKS_PER_OP);
  if (!status)
    status = eval ? eval(ctx, op, operands, &slots[own])
                  : interp_fail(ctx, op, XLAC_E_EVAL, "%s has no evaluator", ir_opcode_text(op->opcode));
  assert(status || slots[own]);
  if (!status) status = interp_check_result(ctx, op, slots[own]);
  return status ? interp_place_error(ctx, op, status) : 0;
}

/* Async computations that are due are run before the step; what is left at the end runs for its effects. */
static int engine_steps(interp_ctx *ctx, const interp_plan *p, interp_value **slots, interp_value **operands) {
  for (uint32_t i = 0; i < p->n_steps; i++) {
    const interp_step *s = &p->steps[i];
    if (ctx->n_pending) TRY(interp_async_run(ctx, i));
    TRY(engine_step(ctx, s, slots, i, operands));
    for (uint32_t k = 0; k < s->n_dead; k++) {
      interp_release(slots[s->dead[k]]);
      slots[s->dead[k]] = NULL;
    }
  }
  return interp_async_run(ctx, UINT32_MAX);
}

/* One allocation for slots and operands. Whatever happens, all slots are released; the root's reference
 * goes to *out. */
static int engine_frame(interp_ctx *ctx, const interp_plan *p, interp_value **out) {
  size_t n = (size_t)p->n_steps + p->max_operands;
  interp_value **slots = base_malloc(ctx->options.alloc, n * sizeof *slots);
  if (!slots) return base_oom(ctx->err, "the values of a computation");
  memset(slots, 0, n * sizeof *slots);
  uint32_t outer = ctx->outer_pending;
  ctx->outer_pending = ctx->n_pending;
  int status = engine_steps(ctx, p, slots, slots + p->n_steps);
  interp_async_drop(ctx);
  ctx->outer_pending = outer;
  if (!status) {
    *out = slots[p->root];
    slots[p->root] = NULL;
  }
  for (uint32_t i = 0; i < p->n_steps; i++) interp_release(slots[i]);
  base_free(ctx->options.alloc, slots);
  return status;
}

/* The caller's args are back in place afterwards, whatever happens. */
static int engine_call(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value **args,
                       interp_value **out) {
  const interp_plan *p = interp_plan_of(ctx, c);
  if (!p) return interp_failed(ctx);
  interp_value **outer = ctx->args;
  uint32_t n_outer = ctx->n_args;
  ctx->args = args;
  ctx->n_args = n_args;
  ctx->depth++;
  int status = engine_frame(ctx, p, out);
  ctx->depth--;
  ctx->args = outer;
  ctx->n_args = n_outer;
  return status;
}

/* The limit is on nesting, not on iterations: while calls its body again and again at one depth. */
int interp_call_move(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value **args,
                     interp_value **out) {
  assert(n_args == c->n_params);
  int status = 0;
  if (ctx->depth >= MAX_DEPTH) {
    status = base_fail(ctx->err, XLAC_E_TOO_DEEP, "computations call one another more than %d deep", MAX_DEPTH);
  }
  if (!status) status = engine_call(ctx, c, n_args, args, out);
  for (uint32_t i = 0; i < n_args; i++) { /* what no parameter op took */
    interp_release(args[i]);
    args[i] = NULL;
  }
  return status;
}

int interp_call(interp_ctx *ctx, const ir_computation *c, uint32_t n_args, interp_value *const *args,
                interp_value **out) {
  interp_value *few[16], **own = few;
  if (n_args > 16 && !(own = base_malloc(ctx->options.alloc, n_args * sizeof *own))) {
    return base_oom(ctx->err, "the arguments of a call");
  }
  for (uint32_t i = 0; i < n_args; i++) own[i] = interp_retain(args[i]);
  int status = interp_call_move(ctx, c, n_args, own, out);
  if (own != few) base_free(ctx->options.alloc, own);
  return status;
}

/* Parameters are read once a call, so the value moves out of the arguments and may be overwritten after its last use.
 */
int interp_eval_parameter(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  assert(op->u.number >= 0 && op->u.number < ctx->n_args && ctx->args[op->u.number]);
  *out = ctx->args[op->u.number];
  ctx->args[op->u.number] = NULL;
  return 0;
}

/* Without any effect in the module, every op whose result nobody reads is left out (plan.c). */
static bool module_has_effects(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c) {
      if (ir_opcode_has(op->opcode, IR_SIDE_EFFECT)) return true;
      if (op->opcode == IR_OP_CUSTOM_CALL && interp_call_has_effect(op)) return true;
    }
  }
  return false;
}

/* XLA's first state of rng-get-and-update-state. */
void interp_seed(interp_ctx *ctx) {
  ctx->rng_state[0] = 0x7012395 + ctx->options.seed; /* seed 0: the state XLA starts from */
  ctx->rng_state[1] = 0;
}

int interp_begin(interp_ctx *ctx, const ir_module *m, const interp_options *options, xlac_error *err) {
  memset(ctx, 0, sizeof *ctx);
  ctx->options = *options;
  if (!ctx->options.alloc.fn) ctx->options.alloc = base_alloc_libc;
  ctx->err = err;
  interp_seed(ctx);
  ctx->has_effects = module_has_effects(m);
  base_arena_init(&ctx->arena, ctx->options.alloc);
  ctx->plans = base_arena_zalloc(&ctx->arena, (size_t)m->n_computation_ids * sizeof *ctx->plans);
  ctx->slot_of = base_arena_zalloc(&ctx->arena, (size_t)m->n_ids * sizeof *ctx->slot_of);
  ctx->heap = interp_heap_create(ctx->options.alloc);
  if (ctx->plans && ctx->slot_of && ctx->heap) return 0;
  interp_end(ctx);
  return base_oom(err, "a run");
}

/* Values that the run gave out keep the heap's memory they lie in. */
void interp_end(interp_ctx *ctx) {
  assert(ctx->n_pending == 0);
  base_free(ctx->options.alloc, ctx->pending);
  interp_heap_close(ctx->heap);
  base_arena_free(&ctx->arena);
}
