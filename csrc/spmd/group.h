/* What the files of a group share: the executable, and one call of it. */
#ifndef XLAC_SPMD_GROUP_H
#define XLAC_SPMD_GROUP_H

#include <stdatomic.h>

#include "../plan/plan.h"
#include "../runtime/communicator.h"
#include "../runtime/network.h"
#include "../runtime/recycle.h"
#include "spmd.h"

typedef struct group_team group_team;

typedef struct group_executable {
  rt_executable base; /* module: the face; plan: that of each device */
  base_alloc alloc;
  base_arena arena;
  spmd_program *program;
  ir_module *face;
  rt_executable *one;    /* the first of the seats that there is */
  rt_executable **seats; /* what devices run, in turn: each on its own GPU, or all the same; NULL: in other processes */
  uint32_t n_seats;
  rt_recycler *memory;
  size_t block_bytes;
  bool in_turns;    /* a few threads run all devices: */
  uint32_t threads; /* as many as there are CPUs; 0: there is little to do, and the caller does it all */
  int64_t **argument_at, **result_at; /* by leaf, by device: where its shard is in the block; -1: in the whole array */
  _Atomic(group_team *) teams;        /* free ones */
  rt_network *net;                    /* NULL: all devices are in this process */
  uint32_t here;                      /* devices of this process */
  uint32_t *mine, *process; /* which these are, ascending, NULL: all; the process of each, NULL where net is */
  atomic_bool met;          /* everybody on the network is known to run this program */
  char label[RT_LABEL_BYTES];
} group_executable;

/* What one call brings. */
typedef struct group_job {
  const rt_call_options *options;
  void *const *arguments, *const *results;
  const rt_trace *trace;
  char *block;  /* NULL: arguments and results are shards, by device of this process */
  char *spare;  /* of shards: as block, for results that devices are given in one memory; NULL: there are none */
  uint64_t run; /* on the network */
} group_job;

static inline uint32_t spmd_device_of(const group_executable *g, uint32_t number) {
  assert(number < g->here);
  return g->mine ? g->mine[number] : number;
}

/* What it runs: counted by all devices, so that processes of one machine have GPUs of their own. */
static inline rt_executable *spmd_seat_of(const group_executable *g, uint32_t number) {
  assert(g->n_seats > 0);
  return g->seats[spmd_device_of(g, number) % g->n_seats];
}

static inline bool spmd_has_seat(const group_executable *g, uint32_t device) {
  assert(device < g->program->n_devices);
  return g->seats[device % g->n_seats] != NULL;
}

static inline bool spmd_is_here(const group_executable *g, uint32_t device) {
  return !g->net || g->process[device] == rt_network_rank(g->net);
}

/* Whether the device's result is a part that is added to that of another one, when all are there. */
static inline bool spmd_adds_up(const spmd_leaf *leaf, uint32_t device) {
  return leaf->part && leaf->part[device];
}

/* group.c: where each shard of a call with whole arrays is, when it is known which devices are here. */
XLAC_MUST_USE int spmd_group_places(group_executable *g, xlac_error *err);
/* group.c: a call on the devices of this process. */
XLAC_MUST_USE int spmd_group_run_here(group_executable *g, const group_job *job, xlac_error *err);
/* group_network.c: the same call on all processes. wants_block: it is one with whole arrays. */
XLAC_MUST_USE int spmd_group_run_everywhere(group_executable *g, const group_job *given, bool wants_block,
                                            xlac_error *err);

#endif
