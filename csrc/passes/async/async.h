/* Asynchronous ops for passes: which computations run op by op, making chains and taking them apart.
 *
 * A chain is a start, updates and a done. Generic chains wrap a computation; first-class pairs (copy-start and
 * copy-done, and those of all-reduce, all-gather, collective-permute, send and recv) have opcodes of their own. Chains
 * stay within a computation, so everything here looks at one at a time. */
#ifndef XLAC_PASSES_ASYNC_ASYNC_H
#define XLAC_PASSES_ASYNC_ASYNC_H

#include "../effects.h"
#include "../pass.h"

/* What a computation is for. */
typedef enum async_role {
  ASYNC_ROLE_INSIDE,   /* part of one op: a reducer, a fused computation */
  ASYNC_ROLE_SEQUENCE, /* ops that run one by one: the entry, bodies of loops, branches, callees */
  ASYNC_ROLE_WRAPPED   /* what an async start wraps */
} async_role;

/* What a pass on chains knows of its module, as it was at the start. */
typedef struct async_edit {
  ir_module *m;
  opt_facts facts;   /* facts.arena is the pass's */
  uint8_t *roles;    /* async_role by computation id */
  uint32_t *callers; /* by computation id */
  uint32_t n_computations;
  xlac_error *err;
} async_edit;

XLAC_MUST_USE int async_edit_begin(async_edit *e, ir_module *m, xlac_error *err);
void async_edit_end(async_edit *e);
/* Runs fn on each computation of role SEQUENCE, callees first. */
typedef int async_visit_fn(async_edit *e, ir_computation *c, void *ctx);
XLAC_MUST_USE int async_each(async_edit *e, async_visit_fn *fn, void *ctx);
int async_oom(const async_edit *e);
/* How to make a chain. */
typedef struct async_how {
  const base_istr *thread; /* NULL: main */
  uint32_t updates;
  bool alias_first; /* output_to_operand_aliasing: the outputs live in operand 0 */
} async_how;

/* An op that takes no time and has nothing to wait for: a parameter, a constant, what names parts of values. */
bool async_is_free(const ir_op *op);
/* The plain op of a start or done of that kind: COPY for COPY_DONE; or IR_OP_INVALID, also for send and recv. */
ir_opcode async_plain_of(unsigned opcode);
/* Whether a chain can do the op's work: strictly, where verified as XLA's documentation wants it. */
bool async_may_wrap(const ir_op *op);
/* Whether the op can become a first-class pair. */
bool async_may_pair(const ir_op *op);
/* Replace op by a chain and give its done; NULL when out of memory. */
ir_op *async_wrap_op(async_edit *e, ir_op *op, const async_how *how);
ir_op *async_pair_op(async_edit *e, ir_op *op);
/* Replace the chain or pair that ends in `done` by the ops themselves, where the done stands. Gives the op whose result
 * is the done's, or NULL when out of memory. send and recv are left alone: *found is false. */
ir_op *async_unwrap(async_edit *e, ir_op *done, bool *found);
/* Makes what op calls run on `thread`: computations that others call too are copied. depth: 0. false when out of
 * memory.
 */
bool async_own_callees(async_edit *e, ir_op *op, const base_istr *thread, uint32_t depth);
/* The start of the chain or pair that `done` ends; NULL where that is not in this computation (a recv's, carried). */
ir_op *async_start_of_done(const ir_op *done);

/* Whether the list, names with commas between, holds `name`. */
bool async_list_has(base_slice list, const char *name);
/* Fails unless all of the list are opcodes. */
XLAC_MUST_USE int async_check_opcodes(base_slice list, const char *pass, xlac_error *err);

#endif
