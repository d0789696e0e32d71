/* What propagation did, noted down as it does it: which axis came to which value, from which other value, through
 * which op and factor, at which step; and which axes were in each other's way. A trace lives as long as the run that
 * it is passed to (shard_propagate_traced) and its `done`; ops in it are the module's, and may be gone from it
 * afterwards. Errors stick in `failed`: propagation itself does not stop for them. */
#ifndef XLAC_SHARD_PROPAGATE_TRACE_H
#define XLAC_SHARD_PROPAGATE_TRACE_H

#include "../state/state.h"
#include "project.h"

/* One axis that a value got. */
typedef struct shard_record {
  uint32_t step; /* counts the looks at ops that changed something */
  ir_op *op;     /* through it; NULL: between what the function returns and its result `op_index` */
  uint32_t op_index;
  sdy_axis axis;
  uint32_t from, to; /* tensors of the op: operands, then results */
  uint32_t n_operands;
  uint32_t from_slot, to_slot; /* where their shardings are held */
  uint32_t factor, dim;        /* of the op's rule; of the value */
  int level;                   /* op priority */
  int64_t user_priority;
  uint8_t strategy;
} shard_record;
BASE_VEC(shard_records, shard_record);

/* While propagation runs little is written down, for that is what notes cost it: which looks at ops changed something,
 * and, by the state, what changed. Records are made of that when they are asked for: shard_replay. */
typedef struct shard_look {
  ir_op *op;         /* or NULL, as in a record */
  uint32_t op_index; /* as in a record */
  uint32_t changes;  /* how many changes there were before */
} shard_look;
BASE_VEC(shard_looks, shard_look);
typedef struct shard_phase {
  int64_t user_priority;
  int level;
  uint8_t strategy;
  uint32_t look; /* the first one of the phase */
} shard_phase;
BASE_VEC(shard_phases, shard_phase);
/* An operand of an op that went on the way: what it was, for looking at the op as it was. */
typedef struct shard_gone_use {
  ir_use *use;
  ir_op *op;
} shard_gone_use;
BASE_VEC(shard_gone_uses, shard_gone_use);

/* Why an axis could not go on, in the order in which the reasons are tried. */
typedef enum shard_reason {
  SHARD_OTHER_FACTOR, /* another dimension of `tensor` has the axis, or a part of it */
  SHARD_REPLICATED,   /* the tensor keeps the axis free */
  SHARD_UNREDUCED,    /* the tensor's parts along it are still to be added up */
  SHARD_CLOSED,       /* the dimension takes no more axes */
  SHARD_INDIVISIBLE,  /* the factor's size is not a multiple */
  SHARD_DISAGREE      /* tensors have different axes along the factor */
} shard_reason;

/* An axis that did not go on. */
typedef struct shard_conflict {
  ir_op *op;
  sdy_axis axis; /* that was offered */
  sdy_axis against;
  uint32_t factor, tensor, slot; /* whose sharding was in the way */
  uint8_t reason;                /* shard_reason */
  int level;
  int64_t user_priority;
  uint32_t earlier; /* 1 + the one before of the same op, 0: none */
} shard_conflict;
BASE_VEC(shard_conflicts, shard_conflict);

/* Where a value's axis was written down first. */
typedef enum shard_source {
  SHARD_FROM_INPUT,
  SHARD_FROM_OUTPUT,
  SHARD_FROM_CONSTRAINT,
  SHARD_FROM_MANUAL_INPUT,
  SHARD_FROM_MANUAL_OUTPUT,
  SHARD_FROM_OP /* an op said so itself: Shardy has no name for that */
} shard_source;
typedef struct shard_origin {
  uint32_t slot;
  sdy_axis axis;
  uint8_t source; /* shard_source */
  uint32_t index; /* of the argument or result */
  uint32_t id;    /* of the constraint or manual computation */
  uint32_t next;  /* 1 + the next of the slot, 0: none */
} shard_origin;
BASE_VEC(shard_origins, shard_origin);

typedef struct shard_trace {
  base_alloc alloc;
  bool failed; /* out of memory */
  bool with_conflicts, with_origins;
  uint32_t step;
  shard_looks looks;
  shard_phases phases;
  shard_gone_uses gone;
  shard_records records; /* in the order in which things happened; made at the end, if they are wanted */
  shard_conflicts conflicts;
  base_map last_conflict; /* op to 1 + its last one */
  shard_origins origins;
  base_map first_origin; /* slot to 1 + its first one */
} shard_trace;

void shard_trace_init(shard_trace *t, base_alloc alloc);
void shard_trace_free(shard_trace *t);
/* Adds the records of what has become of a projection. op NULL: between result `op_index` of the function and what it
 * returns. */
void shard_trace_note(shard_trace *t, const shard_state *s, const shard_projection *p, ir_op *op, uint32_t op_index,
                      const uint32_t *slots, int level, int64_t user_priority, uint8_t strategy);
/* The first origin of the slot's axis; where it has been split or merged, one of an axis that it is part of. NULL:
 * none. */
const shard_origin *shard_trace_origin(const shard_trace *t, uint32_t slot, sdy_axis axis);
/* Notes what was in the way. */
void shard_trace_clashes(shard_trace *t, const shard_state *s, const shard_projection *p, ir_op *op,
                         const uint32_t *slots, int level, int64_t user_priority);
/* What arguments, results, constraints and manual computations say before propagation. */
void shard_trace_begin(shard_trace *t, shard_state *s);
/* sdy.propagation_edges and sdy.sharding_origins on the module. */
XLAC_MUST_USE int shard_trace_write_edges(const shard_trace *t, const shard_state *s, ir_computation *main,
                                          xlac_error *err);
XLAC_MUST_USE int shard_trace_write_origins(const shard_trace *t, const shard_state *s, xlac_error *err);
/* The step after the last one that the module's edges mention. */
uint32_t shard_trace_first_step(const ir_module *m);

#endif
