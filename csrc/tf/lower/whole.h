/* A whole GraphDef lowered to one module, to look at and to try ops with. */
#ifndef XLAC_TF_LOWER_WHOLE_H
#define XLAC_TF_LOWER_WHOLE_H

#include "lower.h"

/* An input by the name of its tensor. */
typedef struct tfl_named {
  const char *tensor; /* "x" or "x:0": of a node without data inputs, which has one output */
  tfl_input input;
} tfl_named;

/* *out: a module whose main takes the inputs that it uses and that have no data, and gives the fetches ("y", "y:1"),
 * then the new values of the variables that are written. *report says which is which, as JSON:
 * {"parameters": [tensor, ...], "results": [tensor, ...], "updates": [tensor, ...]}. The graph is changed. */
XLAC_MUST_USE int tfl_lower_whole(ir_module **out, base_text *report, tf_graph *graph, uint32_t n_inputs,
                                  const tfl_named *inputs, uint32_t n_fetches, const char *const *fetches,
                                  xlac_error *err);

#endif
