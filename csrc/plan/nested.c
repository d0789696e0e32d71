/* Steps with programs of their own. A loop's next state goes to scratch buffers that change places with those of the
 * state, but for the leaves that its body updates in place. */
#include "build.h"

/* A fusion that is still there is a call. */
static bool sub_calls(const ir_op *op) {
  return op->opcode == IR_OP_CALL || op->opcode == IR_OP_FUSION;
}

/* *planned false: one of them is the interpreter's, and then so is the op. */
static int sub_programs(plan_build *x, const ir_op *op, const plan_program ***out, bool *planned) {
  assert(op->n_called > 0);
  const plan_program **all = BASE_ARRAY(x->arena, const plan_program *, (size_t)op->n_called + 1);
  if (!all) return base_oom(x->err, "a plan");
  *planned = true;
  for (uint32_t i = 0; i < op->n_called && *planned; i++) {
    plan_program *p = NULL;
    TRY(plan_build_program(x, op->called[i], op->opcode == IR_OP_WHILE && i == 1, &p));
    all[i] = p;
    *planned = !p->interpreted;
  }
  *out = all;
  return 0;
}

/* Only one branch runs, so branches share; a loop's condition and body have frames side by side, as the state passes
 * between them. */
static uint32_t sub_frame(plan_build *x, const ir_op *op, const plan_program *const *programs) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < op->n_called; i++)
    if (programs[i]->frame_bytes > bytes) bytes = programs[i]->frame_bytes;
  if (op->opcode == IR_OP_WHILE) bytes = programs[0]->frame_bytes + programs[1]->frame_bytes + PLAN_ALIGN;
  return plan_new_buffer(x, (plan_buffer){.place = PLAN_FRAME, .bytes = bytes, .op = op});
}

/* After the state, a scratch buffer for each leaf whose next value must not lie where the present one does. */
static void sub_scratch(plan_build *x, const plan_program *body, plan_step *s, uint32_t *out) {
  assert(s->kind == PLAN_WHILE);
  uint32_t n = s->n_out;
  for (uint32_t i = 0; i < n && !x->failed; i++) {
    if (body->stays[i]) continue;
    plan_buffer b = {.place = PLAN_FRAME, .bytes = x->buffers.items[out[i]].bytes, .op = s->op};
    out[s->n_out++] = plan_new_buffer(x, b);
  }
}

/* Callees come first: their frames' sizes are needed for the step's. */
int plan_build_nested(plan_build *x, const ir_op *op, bool *done) {
  assert(x && op && done);
  plan_step s = {.op = op, .n_nested = op->n_called};
  const plan_program **programs = NULL;
  *done = false;
  if (op->opcode == IR_OP_WHILE)
    s.kind = PLAN_WHILE;
  else if (op->opcode == IR_OP_CONDITIONAL)
    s.kind = PLAN_CONDITIONAL;
  else if (sub_calls(op))
    s.kind = PLAN_CALL;
  else
    return 0;
  bool planned = false;
  TRY(sub_programs(x, op, &programs, &planned));
  if (!planned) return 0;
  s.nested = programs;
  s.in = plan_operand_buffers(x, op, 0, &s.n_in);
  uint32_t *out = plan_result_buffers(x, op, ir_type_leaves(op->type), &s.n_out);
  s.out = out;
  s.frame = sub_frame(x, op, programs);
  if (op->opcode == IR_OP_WHILE && !x->failed) sub_scratch(x, programs[1], &s, out);
  *done = true;
  return x->failed ? base_oom(x->err, "a plan") : plan_add_step(x, s);
}
