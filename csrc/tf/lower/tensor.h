/* TensorProto: the tensors in attributes. */
#ifndef XLAC_TF_LOWER_TENSOR_H
#define XLAC_TF_LOWER_TENSOR_H

#include "lower.h"

/* The element type for TensorFlow's; INVALID for strings, resources and variants. */
base_dtype tfl_dtype_of(unsigned tf_type);
/* Reads a TensorProto of numbers: its shape, and its elements row-major in `arena`. Where the message lists fewer
 * elements than its shape has, the last one (0 where there is none) stands for the rest. Fails for other element types
 * and for what does not fit. Source: tensorflow/core/framework/tensor.proto. */
XLAC_MUST_USE int tfl_read_tensor(base_slice message, base_arena *arena, tfl_shape *shape, void **data,
                                  xlac_error *err);
/* Reads a TensorShapeProto. *known false where its rank is unknown; sizes that are unknown are -1. dims has room for
 * TFL_MOST_DIMS. */
XLAC_MUST_USE int tfl_read_shape(base_slice message, bool *known, uint32_t *rank, int64_t *dims, xlac_error *err);
/* The next number of a packed list, of that wire type; false where it is malformed. */
bool tfl_next_packed(const char **at, const char *end, uint8_t wire, uint64_t *v);

#endif
