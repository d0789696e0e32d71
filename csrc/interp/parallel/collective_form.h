/* Collectives as a communicator takes them, for devices: known when the program is planned. */
#ifndef XLAC_INTERP_PARALLEL_COLLECTIVE_FORM_H
#define XLAC_INTERP_PARALLEL_COLLECTIVE_FORM_H

#include "../../runtime/communicator.h"
#include "collective_group.h"

typedef struct interp_collective_form {
  rt_collective what;
  uint32_t participants;
  const rt_group
      *groups; /* by participant; n 0: no group names it. NULL: they are axes of a mesh, of what never runs */
} interp_collective_form;

/* Array k of a collective's result, or of its operands as a tuple. */
const ir_type *interp_form_type(const ir_type *t, uint32_t k);
/* The form of op for as many participants as its module says, in arena. *known false: the interpreter's, since it has
 * another one (ragged exchanges, dynamic roots, slices that are sent), is wrong, or the program is for one. */
XLAC_MUST_USE int interp_collective_form_of(const ir_op *op, base_arena *arena, interp_collective_form *out,
                                            bool *known, xlac_error *err);

#endif
