/* Async chains. A start has a program of its own, whose task and frame lie in a buffer of the start's. The done reads
 * all that the start reads and writes, so that operands live and stay as they are until then, and nobody else gets the
 * memory of the results or of the frame; the results are the done's value where they are. */
#include "build.h"

/* send and recv are not among them. */
bool plan_is_async(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
    case IR_OP_ASYNC_DONE:
    case IR_OP_COPY_START:
    case IR_OP_COPY_DONE:
    case IR_OP_ALL_REDUCE_START:
    case IR_OP_ALL_REDUCE_DONE:
    case IR_OP_ALL_GATHER_START:
    case IR_OP_ALL_GATHER_DONE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
    case IR_OP_COLLECTIVE_PERMUTE_DONE:
      return true;
    default:
      return false;
  }
}

/* all-reduce-start has its result alone, copy-start the destination first, all others the operands first. */
const ir_type *plan_async_result(const ir_op *start) {
  if (start->opcode == IR_OP_ALL_REDUCE_START) return start->type;
  return start->type->elements[start->opcode == IR_OP_COPY_START ? 0 : 1];
}

/* Pairs with opcodes of their own name no thread. */
static const char *chain_thread(const ir_op *start) {
  if (start->opcode == IR_OP_COPY_START) return "copy";
  if (start->opcode != IR_OP_ASYNC_START) return "collective";
  const char *thread = ir_get_str(start, IR_ATTR_ASYNC_THREAD);
  return *thread ? thread : "main";
}

/* The value of a start or update is that of its results; behind the leaves stands the number of the start's step. */
static uint32_t chain_start_step(const plan_build *x, const ir_op *op) {
  plan_leaves of = x->values[ir_operand(op, 0)->id];
  assert(of.at + of.n < x->leaves.n);
  return x->leaves.items[of.at + of.n];
}

/* The step's number goes behind the leaves, where chain_start_step finds it. */
static plan_leaves chain_results(plan_build *x, const ir_op *op, uint32_t step) {
  uint32_t number = 0, at = x->leaves.n;
  plan_add_leaves(x, op, plan_async_result(op), (plan_buffer){.place = PLAN_FRAME}, &number);
  uint32_t n = x->leaves.n - at;
  x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->leaves, step);
  return (plan_leaves){at, n};
}

/* `here`: what has effects or draws random numbers must happen in its turn, on the starting thread. */
static plan_chain *chain_new(plan_build *x, const ir_op *op, uint32_t *over) {
  plan_chain *chain = BASE_NEW(x->arena, plan_chain);
  x->failed = x->failed || !chain;
  if (!chain) return NULL;
  *chain = (plan_chain){.start = x->steps.n, .done = UINT32_MAX, .thread = chain_thread(op), .over = over};
  unsigned facts = opt_op_facts(x->facts, op);
  chain->here = (facts & (OPT_EFFECT | OPT_RANDOM)) != 0;
  x->failed = x->failed || !BASE_VEC_PUSH(x->alloc, &x->chains, ((plan_open_chain){chain, over}));
  return chain;
}

/* The latest that the step started. */
static plan_open_chain chain_open(const plan_build *x, uint32_t step) {
  assert(x->chains.n > 0);
  uint32_t i = x->chains.n - 1;
  while (x->chains.items[i].chain->start != step) i--;
  return x->chains.items[i];
}

/* --- output_to_operand_aliasing --- */

/* The leaf of t that the path from `from` on leads to, or UINT32_MAX. Paths of output_to_operand_aliasing. */
static uint32_t chain_leaf(const ir_type *t, const ir_ints *path, uint32_t from) {
  uint32_t leaf = 0;
  for (uint32_t i = from; i < path->n; i++) {
    if (!ir_is_tuple(t) || path->v[i] < 0 || path->v[i] >= t->n_elements) return UINT32_MAX;
    for (int64_t k = 0; k < path->v[i]; k++) leaf += ir_type_leaves(t->elements[k]);
    t = t->elements[path->v[i]];
  }
  return ir_is_tuple(t) ? UINT32_MAX : leaf;
}

/* Leaves are counted over all operands. */
static uint32_t chain_operand_leaf(const ir_op *op, const ir_alias *a) {
  uint32_t before = 0;
  if (a->operand < 0 || a->operand >= op->n_operands) return UINT32_MAX;
  for (uint32_t i = 0; i < (uint32_t)a->operand; i++) before += ir_type_leaves(ir_operand_type(op, i));
  uint32_t leaf = chain_leaf(ir_operand_type(op, (uint32_t)a->operand), a->index, 0);
  return leaf == UINT32_MAX ? leaf : before + leaf;
}

/* By result leaf, the operand leaf; NULL where op says nothing, or when out of memory. Output paths of an async-start
 * begin with 1: element 1 of its type is the outputs. */
static uint32_t *chain_aliases(plan_build *x, const ir_op *op) {
  const ir_attr *a = op->opcode == IR_OP_ASYNC_START ? ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING) : NULL;
  if (!a || !a->v.aliasing->n) return NULL;
  uint32_t n = ir_type_leaves(plan_async_result(op)), *over = plan_ids(x, n);
  for (uint32_t i = 0; over && i < n; i++) over[i] = UINT32_MAX;
  for (uint32_t i = 0; over && i < a->v.aliasing->n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    bool outputs = alias->output->n > 0 && alias->output->v[0] == 1;
    uint32_t leaf = outputs ? chain_leaf(plan_async_result(op), alias->output, 1) : UINT32_MAX;
    if (leaf != UINT32_MAX) over[leaf] = chain_operand_leaf(op, alias);
  }
  return over;
}

/* What is read meanwhile is not written over. The done's step is the next. */
static void chain_settle_aliases(plan_build *x, const plan_step *start, uint32_t *over) {
  for (uint32_t i = 0; over && i < start->n_out; i++)
    if (over[i] != UINT32_MAX && x->buffers.items[start->in[over[i]]].last != start->chain->start) over[i] = UINT32_MAX;
}

/* The program of what op wraps; none where the interpreter evaluates that whole. */
static int chain_program(plan_build *x, const ir_op *op, const uint32_t *over, plan_step *s) {
  plan_program *p = NULL;
  if (op->opcode != IR_OP_ASYNC_START) return 0;
  x->over = over;
  int status = plan_build_program(x, op->called[0], false, &p);
  x->over = NULL;
  if (status) return status;
  if (p->interpreted) return 0;
  const plan_program **nested = BASE_ARRAY(x->arena, const plan_program *, 1);
  if (!nested) return base_oom(x->err, "a plan");
  nested[0] = p;
  s->nested = nested;
  s->n_nested = 1;
  return 0;
}

/* The frame's buffer holds the task and, behind it, the frame of the program that it runs. */
static int chain_start(plan_build *x, const ir_op *op) {
  assert(ir_opcode_has(op->opcode, IR_ASYNC_START));
  plan_step s = {.kind = PLAN_START, .op = op, .frame = UINT32_MAX};
  uint32_t *over = chain_aliases(x, op);
  TRY(chain_program(x, op, over, &s));
  s.chain = chain_new(x, op, s.n_nested ? over : NULL);
  s.in = plan_operand_buffers(x, op, 0, &s.n_in);
  plan_leaves made = chain_results(x, op, x->steps.n);
  x->values[op->id] = made;
  uint32_t *out = plan_ids(x, made.n);
  for (uint32_t i = 0; out && !x->failed && i < made.n; i++) out[i] = x->leaves.items[made.at + i];
  s.out = out;
  s.n_out = made.n;
  int64_t bytes = x->p->device.task_bytes + (s.n_nested ? s.nested[0]->frame_bytes : 0);
  s.frame = plan_new_buffer(x, (plan_buffer){.place = PLAN_FRAME, .bytes = bytes, .op = op});
  return x->failed ? base_oom(x->err, "a plan") : plan_add_step(x, s);
}

/* One part of the work at each update. */
static int chain_update(plan_build *x, const ir_op *op) {
  plan_chain *chain = chain_open(x, chain_start_step(x, op)).chain;
  x->values[op->id] = x->values[ir_operand(op, 0)->id];
  chain->updates++;
  return plan_add_step(x, (plan_step){.kind = PLAN_UPDATE, .op = op, .chain = chain, .frame = UINT32_MAX});
}

/* What the start read and wrote is read by the done, so that all of it lives until then. */
static int chain_done(plan_build *x, const ir_op *op) {
  assert(ir_opcode_has(op->opcode, IR_ASYNC_DONE));
  uint32_t step = chain_start_step(x, op);
  plan_step start = x->steps.items[step], s = {.kind = PLAN_DONE, .op = op, .chain = start.chain, .frame = UINT32_MAX};
  plan_open_chain open = chain_open(x, step);
  chain_settle_aliases(x, &start, open.over);
  uint32_t *in = plan_ids(x, start.n_in + start.n_out + 1);
  if (!in) return base_oom(x->err, "a plan");
  for (uint32_t i = 0; i < start.n_in; i++) in[s.n_in++] = start.in[i];
  for (uint32_t i = 0; i < start.n_out; i++) in[s.n_in++] = start.out[i];
  in[s.n_in++] = start.frame;
  s.in = in;
  open.chain->done = x->steps.n;
  x->values[op->id] = x->values[ir_operand(op, 0)->id];
  return plan_add_step(x, s);
}

int plan_build_async(plan_build *x, const ir_op *op, bool *done) {
  assert(x && op && done);
  *done = plan_is_async(op);
  if (!*done) return 0;
  if (ir_opcode_has(op->opcode, IR_ASYNC_START)) return chain_start(x, op);
  return op->opcode == IR_OP_ASYNC_UPDATE ? chain_update(x, op) : chain_done(x, op);
}
