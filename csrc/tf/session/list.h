/* Lists of tensors: what TensorLists, TensorArrays and stacks share (list.c), and lists whose elements are
 * variants (host_variants.c). All fail with a message that does not name the node: tfs_blame adds that. */
#ifndef XLAC_TF_SESSION_LIST_H
#define XLAC_TF_SESSION_LIST_H

#include "run.h"

/* The element shape of o becomes what input i says: a list of sizes, -1 for unknown ones; one -1 for an unknown rank.
 */
XLAC_MUST_USE int tfs_set_element_shape(tfs_call *c, tfs_object *o, uint32_t i);
/* The sizes of an element: what the list says, what input i says (-1: none), what its elements have. */
XLAC_MUST_USE int tfs_element_dims(tfs_call *c, const tfs_object *o, int32_t i, uint32_t *rank, int64_t *dims);
/* The list to write to: input 0 itself where nobody else holds it, else a copy. *out is the caller's. */
XLAC_MUST_USE int tfs_own_list(tfs_call *c, tfs_object **out);
/* Elements up to n, which are not written. */
XLAC_MUST_USE int tfs_resize(tfs_call *c, tfs_object *o, int64_t n);
/* Element i, held: what was written, or zeros of the shape that is known. */
XLAC_MUST_USE int tfs_element(tfs_call *c, const tfs_object *o, int64_t i, int32_t shape_input, interp_value **out);
/* Puts v, held by the list, unless it is the caller's memory: then a copy. Checks its type. */
XLAC_MUST_USE int tfs_put_element(tfs_call *c, tfs_object *o, int64_t i, interp_value *v);
/* Adds by, which may be NULL, to element i. */
XLAC_MUST_USE int tfs_add_to_element(tfs_call *c, tfs_object *o, int64_t i, const interp_value *by);
/* A list of the same elements; NULL when out of memory. */
tfs_object *tfs_copy_list(const tfs_object *o);
/* Elements of a list behind each other, along a new first dimension: those of `indices`, or all where it is NULL. */
XLAC_MUST_USE int tfs_stack_elements(tfs_call *c, const tfs_object *o, const interp_value *indices, int32_t shape_input,
                                     interp_value **out);
/* Row i of v, as a view. */
interp_value *tfs_row(tfs_call *c, interp_value *v, int64_t i);

/* --- host_variants.c: lists of variants --- */
bool tfs_has_variants(const tfs_call *c, uint32_t i); /* input i is one */
XLAC_MUST_USE int tfs_variants_new(tfs_call *c, tfs_object *o, int64_t n);
XLAC_MUST_USE int tfs_variants_push(tfs_call *c);
XLAC_MUST_USE int tfs_variants_pop(tfs_call *c);
XLAC_MUST_USE int tfs_variants_set(tfs_call *c);
XLAC_MUST_USE int tfs_variants_get(tfs_call *c);

#endif
