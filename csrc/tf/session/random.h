/* TensorFlow's random ops with hidden state: a Philox generator for each node. Its numbers depend on the seeds and
 * on how many were drawn before, not on threads: calls of one session come one after another. */
#ifndef XLAC_TF_SESSION_RANDOM_H
#define XLAC_TF_SESSION_RANDOM_H

#include "../../interp/algorithm/counter_rng.h"

/* What a node's generator is: the state is put back when a call fails (tfs_save_random). */
typedef struct tfs_random {
  uint64_t key;
  rng_counter counter;
  uint64_t saved_in; /* the call that has noted it before */
} tfs_random;

#endif
