/* Loops and branches within graphs: what the GPU decides, listed as nodes. */
#ifndef XLAC_CUDA_CONDITION_H
#define XLAC_CUDA_CONDITION_H

#include "run.h"

/* What becomes of a value in GPU memory: whether to go on. */
typedef enum cuda_condition_how {
  CUDA_IF_TRUE,
  CUDA_IF_FALSE,
  CUDA_BRANCH_OF_PRED, /* true is branch 0 */
  CUDA_BRANCH_OF_S32   /* out of range is the last branch */
} cuda_condition_how;

/* Condition `number` becomes what the value at `at` says, of `index` among n where it chooses a branch; at 0: false.
 * Where the run is to stop it becomes false. */
XLAC_MUST_USE int cuda_condition_set(cuda_run *run, uint32_t number, cuda_address at, cuda_condition_how how,
                                     uint32_t index, uint32_t n);
/* What is listed until cuda_condition_end is run by that condition: once, or as long as it holds. */
typedef struct cuda_condition_scope {
  cuda_nodes *outer;
  rt_tally tally; /* copies in it are not counted: nobody knows how often they are made */
} cuda_condition_scope;
XLAC_MUST_USE int cuda_condition_begin(cuda_run *run, uint32_t number, cuda_node_kind kind,
                                       cuda_condition_scope *scope);
void cuda_condition_end(cuda_run *run, const cuda_condition_scope *scope);

#endif
