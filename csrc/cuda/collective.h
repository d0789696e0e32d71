/* Collectives between GPUs by NCCL, where it is found: what a collective op is told it. */
#ifndef XLAC_CUDA_COLLECTIVE_H
#define XLAC_CUDA_COLLECTIVE_H

#include "run.h"

typedef struct cuda_collective cuda_collective;

/* For an op of a program of several devices, in exe's arena. *out NULL: it is no collective, or NCCL has none like it:
 * a reduction by another computation or of another type, and maxima of floats, which lose NaNs there. */
XLAC_MUST_USE int cuda_collective_make(cuda_executable *exe, const ir_op *op, const cuda_collective **out,
                                       xlac_error *err);
/* Enqueues it, when all members of our group have come to it; or has the host compute it, where there is no NCCL for
 * these devices. */
XLAC_MUST_USE int cuda_collective_run(cuda_run *run, const plan_program *p, const plan_step *s,
                                      const cuda_collective *c, const cuda_address *addresses);
/* Gives up what of our participant's is in flight: somebody will not come to it, or the run has ended badly. Entered.
 */
void cuda_collectives_abort(cuda_run *run);
/* How it is done, for people. */
void cuda_collective_put(const cuda_executable *exe, const cuda_collective *c, base_text *out);

#endif
