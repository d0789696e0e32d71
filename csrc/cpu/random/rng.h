/* Generators, 64 blocks of the counter at a time: one lane a block, so that rounds are loops over lanes. rng.c has
 * them, for rng-bit-generator and for rng_op.c. */
#ifndef XLAC_CPU_RANDOM_RNG_H
#define XLAC_CPU_RANDOM_RNG_H

#include "../../interp/algorithm/counter_rng.h"
#include "../routine.h"

/* Blocks at a time, and blocks of a range for one thread. */
enum { RNG_LANES = 64, RNG_GRAIN = 1 << 13 };

typedef uint32_t rng_lanes[4][RNG_LANES];
/* Words of the blocks from number `from` on: all first ones, all second ones, ... Philox fills four rows of
 * RNG_LANES words, ThreeFry two. */
typedef void rng_lanes_fn(uint64_t key, rng_counter from, uint32_t *words);
/* The best for this CPU. */
rng_lanes_fn *cpu_rng_lanes(bool philox);

#endif
