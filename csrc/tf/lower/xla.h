/* What the rows of XLA's own ops share: dimension numbers, which are messages in an attribute, and regions that are
 * functions. */
#ifndef XLAC_TF_LOWER_XLA_H
#define XLAC_TF_LOWER_XLA_H

#include "control.h"
#include "windows.h"

typedef struct tfl_dims {
  uint32_t n;
  int64_t v[TFL_MOST_DIMS];
} tfl_dims;

/* Field `number` of the message in attribute dimension_numbers: a list of dimensions; one number. Fail where they are
 * not below `rank`. */
XLAC_MUST_USE int tfl_message_dims(tfl_op *x, uint32_t number, uint32_t rank, tfl_dims *out);
XLAC_MUST_USE int tfl_message_dim(tfl_op *x, uint32_t number, uint32_t rank, int64_t *out);
/* Region `index` of op: the function that attribute `attr` names, with arguments of these types; it must give values of
 * the result types. */
XLAC_MUST_USE int tfl_function_region(tfl_op *x, ir_op *op, uint32_t index, const char *attr, uint32_t n,
                                      const ir_type *const *args, uint32_t n_results, const ir_type *const *results);
/* Input i, a list of n integers that are known. */
XLAC_MUST_USE int tfl_known_list(tfl_op *x, uint32_t i, uint32_t n, const int64_t **out);

#endif
