/* Lists of tensors of one shape: TensorLists, TensorArrays and stacks. A list is one tensor that has an element more in
 * front, [size, element...]. One that grows has a second part, the number of elements there are, and a largest size. */
#ifndef XLAC_TF_LOWER_LISTS_H
#define XLAC_TF_LOWER_LISTS_H

#include "windows.h"

/* A list at the cursor: values are valid where it was taken, so it is taken anew in each region. */
typedef struct tfl_list {
  ir_value items;  /* [size, element...] */
  ir_value length; /* i32; without op where all of items are there */
  uint32_t rank;   /* of an element */
  const int64_t *dims;
  int64_t size;
  base_dtype dtype;
} tfl_list;

/* The list that v is, at the cursor. */
XLAC_MUST_USE int tfl_list_of(tfl_op *x, tfl_value *v, tfl_list *out);
/* The other way: the value that holds l, with its parts. */
XLAC_MUST_USE int tfl_list_value(tfl_op *x, const tfl_list *l, tfl_value *out);
/* Zeros; with `grows` it has no elements yet. */
XLAC_MUST_USE int tfl_list_new(tfl_op *x, base_dtype dtype, int64_t size, uint32_t rank, const int64_t *dims,
                               bool grows, tfl_list *out);
/* Element `index`, a scalar integer; the list with another element there. */
ir_value tfl_list_get(tfl_op *x, const tfl_list *l, ir_value index);
XLAC_MUST_USE int tfl_list_set(tfl_op *x, tfl_list *l, ir_value index, ir_value item);
/* At the end, and off the end; the list must grow (length has an op). Pushing onto a full one replaces the last. */
XLAC_MUST_USE int tfl_list_push(tfl_op *x, tfl_list *l, ir_value item);
XLAC_MUST_USE int tfl_list_pop(tfl_op *x, tfl_list *l, ir_value *item);
/* All elements as one tensor; fails where their number is not known. */
ir_value tfl_list_all(tfl_op *x, const tfl_list *l);
/* Output 0: the elements one after the other along their first dimension; output 1: how many each has there. */
XLAC_MUST_USE int tfl_list_concat(tfl_op *x, const tfl_list *l);

#endif
