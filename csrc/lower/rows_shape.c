/* Shapes: of tensors, as tensors, and other shapes for the same elements. */
#include "row.h"

int tfl_row_shape(tfl_op *x) {
  const ir_type *t = NULL;
  if (x->n_in && x->in[0]->kind == TFL_HANDLE) {
    const tfl_resource *r = tfl_in_resource(x, 0);
    if (!r || r->value.kind != TFL_TENSOR) return tfl_fail(x, "the variable has no value yet");
    t = r->value.type;
  } else {
    t = tfl_in_type(x, 0);
  }
  int64_t rank = t->rank;
  if (!x->status) tfl_out_ints(x, 0, 1, &rank, t->dims);
  return x->status;
}
