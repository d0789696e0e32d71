/* What rng-bit-generator's bits are: which block of the counter makes which elements. eval_rng.c */
#ifndef XLAC_INTERP_ALGORITHM_RANDOM_BITS_H
#define XLAC_INTERP_ALGORITHM_RANDOM_BITS_H

#include "counter_rng.h"
#include "../interp.h"

/* Where element i of the data comes from; words are the generator's 32-bit outputs. */
typedef struct interp_bits {
  uint64_t key;
  rng_counter counter;
  unsigned bits; /* of an element */
  /* Threefry pairs the elements 2h and 2h+1 along one dimension: the first even one, else the largest. A block makes
   * one such pair. Strides count elements below the pairing dimension; half is the pairing dimension's size in blocks.
   */
  int64_t inner, size, half;
  uint64_t blocks; /* used for all elements: what the counter advances by */
} interp_bits;

/* For data of type t and a state of n_state words. */
void interp_bits_prepare(interp_bits *s, const ir_type *t, const uint64_t *state, int64_t n_state, bool philox);
/* The low `bits` of v as an element. */
void interp_bits_store(void *p, base_dtype type, unsigned bits, uint64_t v);

#endif
