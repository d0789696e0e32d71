/* Runs of several participants in lock step: a grid of replicas x partitions, each a thread with its own program, that
 * meet in collectives. */
#ifndef XLAC_INTERP_PARALLEL_PARALLEL_H
#define XLAC_INTERP_PARALLEL_PARALLEL_H

#include "../interp.h"

#define INTERP_MAX_PARTICIPANTS 1024

typedef struct interp_program {
  const ir_computation *computation; /* of any module in HLO form */
  uint32_t n_args;
  interp_value *const *args; /* borrowed */
  uint32_t n_infeed;         /* what its infeeds take, in order */
  interp_value *const *infeed;
} interp_program;

typedef struct interp_grid {
  int64_t replicas, partitions;
  const interp_program *programs; /* replicas * partitions of them: (0, 0), (0, 1), ... */
  /* How a group of replicas with all their partitions is counted through: StableHLO's partition by partition, else as
   * XLA does, replica by replica. */
  bool partition_major;
} interp_grid;

/* results[i] receives what program i gives, and outfeeds[i] (may be NULL) a tuple of what it fed out. All new
 * references. One failing participant ends the run, with its error; when all that are left wait for one another the
 * error says who waits where. Modules are verified first unless they are. options->interrupted is called on this thread
 * only; options->registry's functions on any, several at a time. */
XLAC_MUST_USE int interp_run_parallel(const interp_options *options, const interp_grid *grid, interp_value **results,
                                      interp_value **outfeeds, xlac_error *err);

#endif
