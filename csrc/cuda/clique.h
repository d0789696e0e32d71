/* NCCL's communicators: one for each group of participants that exchange on GPUs. */
#ifndef XLAC_CUDA_CLIQUE_H
#define XLAC_CUDA_CLIQUE_H

#include "../runtime/communicator.h"
#include "run.h"

enum { CUDA_NCCL_BUSY = 7 /* ncclInProgress: no error */ };

/* A group of participants. Of one process, all have it together; of several, each participant has one of his own, in
 * which only his place has a device and a communicator. */
typedef struct cuda_clique {
  struct cuda_clique *next;
  atomic_bool dead;     /* somebody has aborted */
  uint64_t number;      /* of several processes: all members have the same; else 0 */
  uint32_t place;       /* whose it is; UINT32_MAX: that of all */
  uint32_t n, *members; /* participants */
  cuda_device **devices;
  cuda_nccl *comms; /* by place, each used by its member alone; all NULL: there is no NCCL for them */
} cuda_clique;

/* A participant in a collective. */
typedef struct cuda_meeting {
  rt_communicator *communicator;
  rt_participant us;
  const rt_collective *what;
  const rt_group *group;
  const void **items;
  void *record;
} cuda_meeting;

/* Whether there is NCCL; it is looked for once. XLAC_NCCL=0: there is none. */
bool cuda_nccl_find(cuda_device *d);
XLAC_MUST_USE int cuda_nccl_check(cuda_run *run, const plan_step *s, cuda_nccl_result result);
/* Until NCCL has done what it began in the background for a member: INTERRUPTED. */
XLAC_MUST_USE int cuda_nccl_settle(cuda_run *run, const plan_step *s, cuda_nccl comm);

/* Within one process: brings something, and gets what all have brought, by place, until it parts. Everybody hears of a
 * failure before he goes on. */
XLAC_MUST_USE int cuda_meet(cuda_run *run, cuda_meeting *m, const void *item);
int cuda_part(cuda_run *run, cuda_meeting *m, int status);
/* *out: the group's, which there is from here on. */
XLAC_MUST_USE int cuda_clique_of(cuda_run *run, const plan_step *s, cuda_meeting *m, cuda_clique **out);
/* The same among several processes, of which all members have come when it returns. */
XLAC_MUST_USE int cuda_clique_across(cuda_run *run, const plan_step *s, const cuda_meeting *m, cuda_clique **out);

#endif
