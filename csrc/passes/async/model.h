/* How long ops take, by a model, and what runs beside what in a given order of a computation's ops: the scheduler's
 * measure, and what explain("async") shows. One thread runs the ops in order; each kind of transfer and each execution
 * thread is a lane that runs its chains one after the other. Times are nanoseconds. */
#ifndef XLAC_PASSES_ASYNC_MODEL_H
#define XLAC_PASSES_ASYNC_MODEL_H

#include "../op_cost.h"
#include "async.h"

typedef struct async_model {
  double gigaflops, memory, link; /* memory, link: gigabytes a second, the latter of copies and collectives */
  double overhead, latency;       /* ns of every op, and of every transfer */
} async_model;
extern const async_model async_model_default;

enum { ASYNC_TRIPS = 8 }; /* of a loop */

/* Lanes. Threads have the numbers from ASYNC_THREADS on. */
enum { ASYNC_COPIES, ASYNC_COLLECTIVES, ASYNC_TRANSFERS, ASYNC_THREADS };

/* A chain or pair whose ends are in one computation. */
typedef struct async_chain {
  ir_op *start, *done;
  const ir_op *work; /* what it runs: the wrapped root, or the start of a pair */
  uint32_t lane, n_updates;
  uint32_t behind; /* 1 + number of the chain that its lane is busy with when it is issued; 0: none */
  double length;   /* of the work */
  /* In the order looked at last. */
  double issued, begins, ends, reached, exposed; /* reached: when the done would like the result */
} async_chain;

typedef struct async_costs {
  async_edit *e;
  async_model model;
  double *of_computation; /* by id: makespan in the present order */
  uint32_t *chain_of;     /* by op id: 1 + number of the chain that the start, update or done belongs to; 0: none */
  uint32_t *uses;         /* by op id: for async_live */
  async_chain *chains;    /* of the computation looked at last */
  uint32_t n_chains, chain_cap;
  const base_istr **threads; /* lane ASYNC_THREADS + i */
  base_map thread_of;        /* name -> lane */
  uint32_t n_lanes, lane_cap;
} async_costs;

XLAC_MUST_USE int async_costs_begin(async_costs *c, async_edit *e, const async_model *model);
void async_costs_end(async_costs *c);
/* Of an op on the main thread; 0 for links of chains. What it calls has been looked at. */
double async_op_time(const async_costs *c, const ir_op *op);
/* Finds the chains of a computation: chains, chain_of. */
XLAC_MUST_USE int async_find_chains(async_costs *c, ir_computation *of);
static inline async_chain *async_chain_of(const async_costs *c, const ir_op *op) {
  uint32_t i = c->chain_of[op->id];
  return i ? &c->chains[i - 1] : NULL;
}
/* "copies", "collectives", "transfers", or a thread's name. */
const char *async_lane_name(const async_costs *c, uint32_t lane);

typedef struct async_times {
  double makespan, work, exposed; /* work: of all chains; exposed: waited for at dones */
} async_times;
/* Goes through the ops in that order and fills the chains' times. false when out of memory. */
XLAC_MUST_USE bool async_simulate(async_costs *c, ir_op *const *order, uint32_t n, async_times *out);

/* --- memory of values in some order --- */
typedef struct async_live {
  const async_costs *costs;
  uint32_t *uses; /* by op id: reads to come */
  const ir_op **stack;
  int64_t bytes, peak;
} async_live;
XLAC_MUST_USE bool async_live_begin(async_live *l, const async_costs *c, const ir_computation *of, base_arena *arena);
/* The op is next. */
void async_live_run(async_live *l, const ir_op *op);
/* What its result takes. */
int64_t async_live_bytes(const ir_op *op);

#endif
