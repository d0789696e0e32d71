/* A stable merge sort by a computation, of many rows at once. */
#ifndef XLAC_INTERP_ALGORITHM_SORT_MERGE_H
#define XLAC_INTERP_ALGORITHM_SORT_MERGE_H

#include "arrays.h"

typedef struct interp_sort {
  interp_ctx *ctx;
  const ir_computation *comparator; /* of 2 n parameters: left and right element of each operand */
  interp_body *body;
  uint32_t n;
  const void *const *data; /* n dense [rows, length] arrays */
  const base_dtype *types; /* their element types */
  int64_t rows, length;
} interp_sort;

/* order[i] becomes the number (in the dense array) of the element that belongs at place i. rows * length of them. */
XLAC_MUST_USE int interp_sort_by_body(interp_sort *s, int64_t *order);

#endif
