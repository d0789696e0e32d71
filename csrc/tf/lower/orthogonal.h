/* Decompositions of matrices by rotations and reflections. All matrices of a batch are done at once. */
#ifndef XLAC_TF_LOWER_ORTHOGONAL_H
#define XLAC_TF_LOWER_ORTHOGONAL_H

#include "repeat.h"

/* [batch, m, n] = q r, q [batch, m, m] (or its first columns where `thin`). Signs as LAPACK's. */
XLAC_MUST_USE int tfl_qr(tfl_op *x, ir_value a, bool thin, ir_value *q, ir_value *r);

/* Pairs of columns that rotations work on: place i and place i + half; after each round all but the first move on by
 * one, so that after n - 1 rounds each has met each. */
typedef struct tfl_pairs {
  int64_t n, half; /* n is even */
  int32_t *next;   /* where place i's next content is */
} tfl_pairs;
XLAC_MUST_USE int tfl_pairs_of(tfl_op *x, int64_t n, tfl_pairs *p);
/* Dimension d of v, [..., n, ...]: both halves turned by an angle, [batch, half] cosine and sine, and moved on. */
ir_value tfl_rotate(tfl_op *x, const tfl_pairs *p, ir_value v, uint32_t d, ir_value cosine, ir_value sine);
/* Cosine and sine of the angle that makes `off` zero beside `first` and `second`; no turn where off is 0. */
void tfl_angle(tfl_op *x, ir_value first, ir_value second, ir_value off, ir_value *cosine, ir_value *sine);
/* A constant 0/1 matrix [batch, n, n]. */
ir_value tfl_identity(tfl_op *x, base_dtype dtype, int64_t batch, int64_t n);
/* keys [batch, n] put in order, and the columns of v, [batch, rows, n], with them. */
void tfl_order_columns(tfl_op *x, bool descending, ir_value *keys, ir_value *v, uint32_t n_more, ir_value *more);
ir_value tfl_batch_dot(tfl_op *x, ir_value a, ir_value b); /* [batch, m, k] [batch, k, n] */
/* The matrices of input 0 as [batch, m, n]; fails for what is not real. */
XLAC_MUST_USE int tfl_matrices(tfl_op *x, int64_t dims[3], ir_value *out);
/* v, [batch, ...], as output i with the batch's own dimensions. */
void tfl_out_batch(tfl_op *x, uint32_t i, ir_value v);

#endif
