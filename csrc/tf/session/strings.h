/* Tensors of strings. As arrays they are u8 with one dimension more: a string's bytes, zeros behind them, as NumPy
 * has it. Strings that end in zero bytes lose those on the way; within the executor they are kept. */
#ifndef XLAC_TF_SESSION_STRINGS_H
#define XLAC_TF_SESSION_STRINGS_H

#include "run.h"

/* An object of that shape whose strings are all empty, with room for `bytes` bytes in its block at *to; NULL when out
 * of memory. */
tfs_object *tfs_strings_new(base_alloc alloc, uint32_t rank, const int64_t *dims, size_t bytes, char **to);
/* From and to an array. */
XLAC_MUST_USE int tfs_strings_from_array(base_alloc alloc, const interp_value *v, tfs_object **out, xlac_error *err);
interp_value *tfs_strings_to_array(base_alloc alloc, const tfs_object *o);
/* Numbers as TensorFlow prints them, and one element of a tensor. */
void tfs_print_element(base_text *t, const interp_value *v, int64_t i);

#endif
