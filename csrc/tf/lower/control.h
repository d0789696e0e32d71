/* What branches and loops share: values of several tensors, and the state of resources. */
#ifndef XLAC_TF_LOWER_CONTROL_H
#define XLAC_TF_LOWER_CONTROL_H

#include "build.h"

/* How many tensors v has; these as values at the cursor; their types. Give the number. */
uint32_t tfl_count_leaves(const tfl_value *v);
uint32_t tfl_put_leaves(tfl_op *x, tfl_value *v, ir_value *out);
uint32_t tfl_leaf_types(const tfl_value *v, const ir_type **out);
/* What v becomes where its tensors are `from`, results of an op or arguments of a region; *used is their number. */
XLAC_MUST_USE int tfl_take_leaves(tfl_op *x, tfl_value *v, const ir_value *from, uint32_t *used);
/* Whether both have the same form: kinds, types, handles. tfl_misfit fails, saying how they differ. */
bool tfl_values_alike(const tfl_value *a, const tfl_value *b);
int tfl_misfit(tfl_op *x, const char *what, uint32_t i, const tfl_value *a, const tfl_value *b);
/* All resources as they are; and as they were. Copies by number, in the arena; n is the number of resources there
 * were, later ones are left alone. */
tfl_resource *tfl_save_resources(tfl_op *x);
void tfl_restore_resources(tfl_op *x, const tfl_resource *saved, uint32_t n);
/* The functions of a node, `least` at least. */
XLAC_MUST_USE int tfl_callees(tfl_op *x, tf_callees *callees, uint32_t least);
/* The function that an attribute names; fails where the library has none. */
XLAC_MUST_USE int tfl_named_callee(tfl_op *x, const char *attr, tf_callee *out);
/* A value that counts as true: a scalar that is not 0, another tensor that is not empty. */
ir_value tfl_truth(tfl_op *x, tfl_value *v);

#endif
