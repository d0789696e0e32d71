/* Propagation: the four passes are one driver with four schedules. For each user priority, op priority level and
 * strategy the driver runs to a fixed point: it takes an op from a list (propagate.c), projects its tensors'
 * shardings onto the factors of its rule (project.c), lets a strategy spread axes along the factors (strategies.c),
 * projects back, and puts the neighbours of what has changed on the list. What comes first wins, so the order of all
 * this is Shardy's. A driver belongs to one thread and one module. Errors stick in `status`; err holds the first one.
 */
#ifndef XLAC_SHARD_PROPAGATE_PROPAGATE_H
#define XLAC_SHARD_PROPAGATE_PROPAGATE_H

#include "../../passes/rewrite/rewrite.h"
#include "../state/state.h"
#include "trace.h"

typedef enum shard_strategy { SHARD_BASIC, SHARD_AGGRESSIVE, SHARD_BASIC_THEN_AGGRESSIVE } shard_strategy;

typedef struct shard_options {
  uint8_t strategy;   /* shard_strategy */
  bool by_op;         /* op priorities */
  bool by_user;       /* user priorities */
  bool keep_rules;    /* leave the rules that were made on the ops */
  bool conservative;  /* no sub-axes, and no rules along dimensions that are cut up */
  bool debug_origins; /* write down where every axis comes from */
  bool debug_edges;   /* and by which op and operand it came */
} shard_options;

/* Op priority levels; schedules.c says what each lets through. */
enum { SHARD_LEVELS = 5 };

/* A driver at work. */
typedef struct shard_driver {
  shard_state state;
  shard_maker maker;
  shard_pool pool;
  opt_rewriter rw;
  shard_options options;
  xlac_error *err;
  int status;
  /* Now: */
  uint8_t strategy; /* SHARD_BASIC or SHARD_AGGRESSIVE */
  int level;        /* op priority, 0 to SHARD_LEVELS - 1; the last one: everything goes */
  int64_t user_priority;
  const ir_op *current; /* the op that is looked at: it is not put on the list again */
  /* Ops to look at: a stack, and who is on it (by op id). */
  ir_op **pending;
  uint32_t n_pending, pending_cap;
  uint8_t *marks;
  uint8_t *gone;          /* by op id: removed */
  const sdy_rule **rules; /* by op id; equal ones are one */
  uint8_t *has_rule;      /* by op id: 1 looked for, 2 the op carries it itself */
  uint32_t *seen;         /* by op id: the tick after which nothing of the op has changed since it was done in vain */
  uint32_t *seen_how;     /* with which directions and strategy */
  base_map kept_rules;    /* hash of a rule to it */
  base_map rule_attrs;    /* a rule to its attribute in the module */
  ir_computation *main;
  shard_trace *trace; /* or NULL */
  bool replays;       /* looks are only for records: nothing changes */
  uint32_t depth;     /* of calls, while readers are looked for */
} shard_driver;

/* Runs a schedule on the module. Errors: shapes that are not static, tuples, several functions and no @main. */
XLAC_MUST_USE int shard_propagate(ir_module *m, const shard_options *options, xlac_error *err);
/* The same, with notes: `done` is called with them at the end, while the table of values is there. */
typedef int shard_done_fn(void *ctx, shard_trace *trace, const shard_state *s, ir_computation *main, xlac_error *err);
XLAC_MUST_USE int shard_propagate_traced(ir_module *m, const shard_options *options, shard_trace *trace,
                                         shard_done_fn *done, void *ctx, xlac_error *err);

/* --- between the driver's files --- */
/* Looks at one op. */
void shard_visit(shard_driver *d, ir_op *op);
/* Between what the main function returns and its results' own shardings. */
void shard_visit_results(shard_driver *d, ir_computation *main);
void shard_visit_result(shard_driver *d, ir_computation *main, uint32_t i);
/* Puts all on the list that reads or makes the value of the slot. */
void shard_notify(shard_driver *d, uint32_t slot);
void shard_push(shard_driver *d, ir_op *op);
/* The rule of an op, or (op NULL) of n operands and a result of that type that are all alike; NULL: none, or failed.
 * In the module. */
const sdy_rule *shard_driver_rule(shard_driver *d, const ir_op *op, const ir_type *type, uint32_t n);
/* Rules that were made are written down if they are to be kept; else those that were there go, but custom ones. */
XLAC_MUST_USE int shard_store_rules(shard_driver *d, xlac_error *err);
/* Which way an op's factor goes at the driver's level. */
shard_direction shard_level_direction(const shard_driver *d, const ir_op *op, const sdy_rule *rule, uint32_t factor);
/* Makes the trace's records of its looks, with the module as it is before shardings are stored. */
void shard_replay(shard_driver *d);
/* User priorities: runs `once` for each. */
void shard_by_user_priority(shard_driver *d, void (*once)(shard_driver *d));
void shard_driver_fail(shard_driver *d, int status);

#endif
