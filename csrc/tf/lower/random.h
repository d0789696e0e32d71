/* What the two files of random numbers share. */
#ifndef XLAC_TF_LOWER_RANDOM_H
#define XLAC_TF_LOWER_RANDOM_H

#include "windows.h"

typedef struct tfl_random {
  uint32_t rank;
  const int64_t *dims;
  int64_t n;
  base_dtype dtype;
} tfl_random;
/* Where a row's numbers come from: a seed (version 1 ops), a key and a counter (version 2), a variable. */
enum { TFL_RANDOM_SEED, TFL_RANDOM_KEY, TFL_RANDOM_VARIABLE };
/* What is asked for, by the input that is the shape: of a variable's row 2, else 0. */
XLAC_MUST_USE int tfl_random_of(tfl_op *x, tfl_random *p);
/* Where the numbers begin, three u64: key, counter (low, high). */
ir_value tfl_random_state(tfl_op *x, const tfl_random *p);
/* The same of a variable, input 0, which then lies n numbers further. */
ir_value tfl_random_from_variable(tfl_op *x, int64_t n);
/* Words of 32 bits (f64: of 64, the first word of a pair being the high one) as numbers in [0, 1). */
ir_value tfl_random_unit(tfl_op *x, ir_value words, base_dtype dtype);
/* Pairs of those, of f32 or f64, as pairs of normal numbers. */
ir_value tfl_random_box_muller(tfl_op *x, ir_value units, base_dtype dtype, int64_t pairs);
/* Output 0 are the elements of flat, in the type and shape that were asked for. Returns x->status. */
int tfl_random_give(tfl_op *x, const tfl_random *p, ir_value flat);

#endif
