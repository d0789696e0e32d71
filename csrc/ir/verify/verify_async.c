/* Async chains, generic (async-start, -update, -done) and first-class (all-reduce-start and -done, and so on): one
 * consumer each, of the right kind; types along the chain; one chain per computation.
 *
 *     s = ((f32[8]), f32[8]) async-start(f32[8] p), calls=wrapped     the operands' tuple, the outputs, contexts
 *     u = ((f32[8]), f32[8]) async-update(s)                          the same type
 *     d = f32[8] async-done(u)                                        the outputs */
#include "verify.h"

/* Whether the op is of the chain that wraps a computation. */
static bool is_generic(unsigned opcode) {
  return opcode == IR_OP_ASYNC_START || opcode == IR_OP_ASYNC_UPDATE || opcode == IR_OP_ASYNC_DONE;
}

/* A generic chain may be continued by updates; a first-class one has a start and a done, and both rows name the pair.
 */
static bool consumes(unsigned consumer, unsigned producer) {
  if (is_generic(producer)) return consumer == IR_OP_ASYNC_UPDATE || consumer == IR_OP_ASYNC_DONE;
  return ir_opcode_has(producer, IR_ASYNC_START) && consumer == ir_opcode_info(producer)->done;
}

/* send and recv results may be carried through loops by tuples (pipelined transfers): verify.c. */
static bool may_be_carried(unsigned opcode) {
  return opcode == IR_OP_SEND || opcode == IR_OP_RECV;
}

/* XLA's marker for "after this op", which takes no value. */
static bool only_orders(const ir_op *user) {
  return user->opcode == IR_OP_CUSTOM_CALL && strcmp(ir_get_str(user, IR_ATTR_CUSTOM_CALL_TARGET), "control_dep") == 0;
}

/* Users are ops: two uses by one op are one of them. */
static uint32_t count_users(const ir_op *op, const ir_op **last) {
  uint32_t n = 0;
  *last = NULL;
  IR_FOR_USES(use, op) {
    if (only_orders(use->user) || use->user == *last) continue;
    *last = use->user;
    n++;
  }
  return n;
}

/* What a start holds is being worked on, so exactly one op may wait for it. XLA's rule:
 * VerifyAsynchronousInstructionPairs of HloVerifier. */
static int check_consumer(const ir_op *op, xlac_error *err) {
  assert(op->opcode < IR_OP_COUNT);
  if (may_be_carried(op->opcode)) return 0;
  const ir_op *user;
  uint32_t n = count_users(op, &user);
  if (n != 1)
    return base_hint(err,
                     ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "needs exactly one consumer, its %s; found %u",
                                    is_generic(op->opcode) ? "async-update or async-done"
                                                           : ir_opcode_text(ir_opcode_info(op->opcode)->done),
                                    n),
                     n ? "wait once and use the done's result" : "add the op that waits for it");
  if (consumes(user->opcode, op->opcode)) return 0;
  return base_hint(
      err,
      ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "is used by %s (%s); only its %s may use it", user->name->s,
                     ir_opcode_text(user->opcode), is_generic(op->opcode) ? "async-update or async-done" : "done"),
      "use the done's result instead: what a start holds is being worked on");
}

/* A done of send or recv may get its value from a tuple, through a loop: then this says nothing. */
static int check_producer(const ir_op *op, xlac_error *err) {
  assert(op->n_operands >= 1);
  const ir_op *operand = ir_operand(op, 0);
  if (may_be_carried(ir_opcode_info(op->opcode)->start) && !ir_opcode_has(operand->opcode, IR_ASYNC_START)) return 0;
  if (consumes(op->opcode, operand->opcode)) return 0;
  const char *wanted =
      is_generic(op->opcode) ? "an async-start or async-update" : ir_opcode_text(ir_opcode_info(op->opcode)->start);
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "waits for %s (%s); expected %s", operand->name->s,
                                  ir_opcode_text(operand->opcode), wanted),
                   "a chain is a start, updates and one done of the same kind, in one computation");
}

/* By the traits of ops.def; an op that is in no chain passes at once. */
int ir_verify_async_op(const ir_op *op, const ir_verify_options *options, xlac_error *err) {
  (void)options;
  uint32_t traits = ir_opcode_info(op->opcode)->traits;
  if (traits & (IR_ASYNC_UPDATE | IR_ASYNC_DONE)) TRY(check_producer(op, err));
  if (traits & (IR_ASYNC_START | IR_ASYNC_UPDATE)) TRY(check_consumer(op, err));
  return 0;
}

/* --- generic ops --- */

/* The type has the form ((operands...), outputs, contexts...). */
static int check_form(const ir_op *op, xlac_error *err) {
  const ir_type *t = op->type;
  if (ir_is_start_type(t)) return 0;
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err,
                                  "has type %s; expected ((operands...), outputs, contexts...)", IR_SHOW(t)),
                   "one operand f32[8] and one output f32[8] give ((f32[8]), f32[8])");
}

/* Three lists that must agree: the op's operands, element 0 of its type, and the wrapped computation's parameters. */
static int check_operands_element(const ir_op *op, const ir_computation *c, xlac_error *err) {
  assert(ir_is_tuple(op->type) && op->type->n_elements >= 2);
  const ir_type *held = op->type->elements[0];
  if (held->n_elements != c->n_params || held->n_elements != op->n_operands)
    return base_hint(
        err,
        ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err,
                       "has %u operands, its type holds %u in element 0, and %s takes %u; all must be the same",
                       op->n_operands, held->n_elements, c->name->s, c->n_params),
        "element 0 of a start's type is the tuple of its operands' types");
  for (uint32_t i = 0; i < held->n_elements; i++)
    if (!ir_same_bare(held->elements[i], ir_param_type(c, i)) ||
        !ir_same_bare(held->elements[i], ir_operand_type(op, i)))
      return base_hint(
          err,
          ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err,
                         "operand %u is %s, element {0,%u} of its type is %s and the parameter of %s is %s", i,
                         IR_SHOW(ir_operand_type(op, i)), i, IR_SHOW(held->elements[i]), c->name->s,
                         IR_SHOW(ir_param_type(c, i))),
          "all three are the same type");
  return 0;
}

/* GPU backends wrap groups of transfers and of collectives in one computation. */
static bool is_group(const ir_op *op, const ir_computation *c) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_FRONTEND_ATTRIBUTES);
  for (uint32_t i = 0; a && i < a->v.dict->n; i++)
    if (strcmp(a->v.dict->v[i].key->s, "_collectives_group") == 0) return true;
  bool only_transfers = true;
  IR_FOR_OPS(inner, c) {
    bool passes =
        inner->opcode == IR_OP_PARAMETER || inner->opcode == IR_OP_TUPLE || inner->opcode == IR_OP_GET_TUPLE_ELEMENT;
    unsigned start = ir_opcode_info(inner->opcode)->start;
    if (!passes && start != IR_OP_SEND && start != IR_OP_RECV) only_transfers = false;
  }
  return only_transfers;
}

/* The start of the opcode's own kind of chain, which then is the only way to make it async; or NULL. */
static const char *own_start(unsigned opcode) {
  const ir_op_info *info = ir_opcode_info(opcode);
  ir_opcode start = ir_opcode_pair_start(opcode);
  if (start != IR_OP_INVALID) return ir_opcode_text(start);
  return info->traits & (IR_ASYNC_START | IR_ASYNC_UPDATE | IR_ASYNC_DONE) ? ir_opcode_text(info->start) : NULL;
}

/* Only call-start may wrap several ops: the rest is one op on the parameters, or on elements of them. */
static int check_wrapped_body(const ir_op *op, const ir_computation *c, const ir_verify_options *options,
                              xlac_error *err) {
  assert(ir_root(c));
  const ir_op *root = ir_root(c);
  bool group = is_group(op, c);
  IR_FOR_OPS(inner, c) {
    if (group || inner == root || inner->opcode == IR_OP_PARAMETER || inner->opcode == IR_OP_GET_TUPLE_ELEMENT)
      continue;
    return base_hint(
        err,
        ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "wraps %s, which holds %s beside its parameters and root",
                       c->name->s, inner->name->s),
        "put several ops into a computation of their own and use call-start");
  }
  if (options->xla_compat) return 0;
  if (root->opcode == IR_OP_PARAMETER)
    return base_hint(err,
                     ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err,
                                    "wraps %s, which does nothing: its root is a parameter", c->name->s),
                     "use the operand itself, or verify with xla_compat");
  const char *own = own_start(root->opcode);
  if (!own) return 0;
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "wraps %s, which has async opcodes of its own",
                                  ir_opcode_text(root->opcode)),
                   "use %s and its done, or verify with xla_compat", own);
}

/* No name stands for "main" on both sides. */
static int check_thread(const ir_op *op, const ir_computation *c, xlac_error *err) {
  const char *thread = ir_get_str(op, IR_ATTR_ASYNC_THREAD);
  const char *own = c->execution_thread ? c->execution_thread->s : "main";
  if (strcmp(*thread ? thread : "main", own) == 0) return 0;
  return base_hint(err,
                   ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "runs on thread \"%s\" but %s is for thread \"%s\"",
                                  *thread ? thread : "main", c->name->s, own),
                   "async_execution_thread and the computation's execution_thread are the same");
}

/* Its computation has been found whole; the chain itself is checked by ir_verify_async_op. */
IR_VERIFY(async_start) {
  const ir_computation *c = op->called[0];
  TRY(check_form(op, err));
  TRY(check_operands_element(op, c, err));
  if (!ir_same_bare(op->type->elements[1], ir_result_type(c)))
    return base_hint(
        err,
        ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "has outputs %s in element 1 of its type; %s gives %s",
                       IR_SHOW(op->type->elements[1]), c->name->s, IR_SHOW(ir_result_type(c))),
        "element 1 of a start's type is what the wrapped computation gives");
  TRY(check_wrapped_body(op, c, options, err));
  TRY(ir_verify_aliasing(op, op->type, options, err));
  return options->xla_compat ? 0 : check_thread(op, c, err);
}

/* Updates and dones repeat nothing of the start but may name its computation and thread. */
static int check_repeats(const ir_op *op, xlac_error *err) {
  const ir_op *start = ir_async_start_of(op);
  if (!start)
    return base_hint(err, ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "belongs to no async-start"),
                     "its operand is an async-start, or an update that leads to one");
  if (op->n_called && op->called[0] && op->called[0] != start->called[0])
    return base_hint(err,
                     ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "names computation %s; its start %s wraps %s",
                                    op->called[0]->name->s, start->name->s, start->called[0]->name->s),
                     "leave calls= out: the start says it");
  const char *thread = ir_get_str(op, IR_ATTR_ASYNC_THREAD), *started = ir_get_str(start, IR_ATTR_ASYNC_THREAD);
  if (*thread && strcmp(thread, *started ? started : "main") != 0)
    return base_hint(err,
                     ir_verify_fail(op, XLAC_E_VERIFY_ASYNC, err, "names thread \"%s\"; its start %s runs on \"%s\"",
                                    thread, start->name->s, *started ? started : "main"),
                     "leave async_execution_thread out: the start says it");
  return 0;
}

/* An update's type repeats its start's. */
IR_VERIFY(async_update) {
  TRY(check_form(op, err));
  return check_repeats(op, err);
}

IR_VERIFY(async_done) {
  return check_repeats(op, err);
}
