/* argmax and argmin, inside. arg_reduce.c knows the op and cuts the work; arg_loops.c has the loops for each type
 * of values and places, which it writes in terms of "the largest": argr_coding makes of the smallest the largest. */
#ifndef XLAC_CPU_REDUCE_ARG_REDUCE_H
#define XLAC_CPU_REDUCE_ARG_REDUCE_H

#include "../../ir/ir.h"

/* How an element's bits become a number of which the largest is sought: bits XOR flip, read as the type. For f32
 * argmin, flip is the sign: -x is largest where x is smallest. Floats of 16 bits become s16 with the same order. */
typedef struct argr_coding {
  uint64_t flip;     /* to seek the smallest; sign of a float, all of an integer */
  uint16_t infinity; /* of floats of 16 bits */
  bool wide;         /* the CPU has AVX2, and may use it */
} argr_coding;

/* One row, or the first of some that lie side by side, with where its results go. Everything is borrowed. */
typedef struct argr_row {
  argr_coding coding;
  const char *x, *places; /* places NULL: they count from 0 */
  int64_t n, stride;      /* elements in a row, from one to the next */
  const void *init, *init_place;
  int64_t place_bytes; /* 4 or 8, of an integer */
  char *value, *place; /* results; of neighbouring rows beside each other */
} argr_row;

/* The loops of one type: one row of stride 1, or `lanes` neighbouring ones, at most ARGR_LANES. */
typedef struct argr_loops {
  void (*row)(const argr_row *r);
  void (*columns)(const argr_row *r, int64_t lanes);
} argr_loops;

enum { ARGR_LANES = 256 }; /* the most columns at a time */

const argr_loops *cpu_arg_loops(base_dtype value);

#endif
