/* Lowers TensorFlow nodes to StableHLO for given shapes: a cluster, the body of a function, or one node, always as a
 * graph whose inputs are _Arg nodes and whose results are _Retval nodes. Each op is a row of lower.def. */
#ifndef XLAC_TF_LOWER_LOWER_H
#define XLAC_TF_LOWER_LOWER_H

#include "../cluster/pass.h"
#include "../../ir/ir.h"

enum { TFL_MOST_DIMS = 32 };

/* Sizes are known, all of them: what is compiled has static shapes. */
typedef struct tfl_shape {
  base_dtype dtype;
  uint32_t rank;
  int64_t dims[TFL_MOST_DIMS];
} tfl_shape;

/* What is known of _Arg number i when the graph is lowered. */
typedef struct tfl_input {
  tfl_shape shape;  /* of the value; of a resource, of the variable's value */
  const void *data; /* the value, row-major, where it is known now (must-be-constant inputs, shapes); else NULL */
  bool resource;    /* a handle of a variable */
  bool unset;       /* a resource: the variable has no value yet, and shape says nothing */
} tfl_input;

/* One of three: a result of main, an input as it is, or data that are known. */
typedef struct tfl_output {
  tfl_shape shape;
  const void *data; /* known already (in the arena), or NULL */
  int32_t result;   /* which of main's results it is; -1 where data or input say it */
  int32_t input;    /* it is input number `input` unchanged (a handle, too); -1 otherwise */
} tfl_output;

/* The variable behind an input, and its new value. */
typedef struct tfl_update {
  uint32_t input; /* a resource, which gets main's result `result` as its new value */
  uint32_t result;
  tfl_shape shape;
} tfl_update;

/* Owns the module and, in its arena, all else. */
typedef struct tfl_lowered {
  base_arena arena;
  ir_module *module; /* main's parameters are the inputs in `params`; all its results are tensors. Owned. */
  uint32_t n_params, n_outputs, n_updates;
  uint32_t *params; /* inputs that main takes, in order: none with data, no unset resource, nothing main doesn't use */
  tfl_output *outputs; /* by _Retval number */
  tfl_update *updates; /* variables that the graph writes */
  bool needs_data;     /* it failed because a value was not known that it needs to know */
} tfl_lowered;

/* Fails, naming the node and its op: an op without a row, a type or shape the op does not take, an input that must be
 * known but has no data, a result whose shape depends on values (all XLAC_E_LOWER: who called runs the nodes one by one
 * or on the host). The graph and bodies stay as they were; *out is freed by tfl_lowered_free, after a failure too.
 * Thread-compatible: one call at a time for the bodies of one graph. */
XLAC_MUST_USE int tfl_lower(tfl_lowered *out, tf_bodies *bodies, const tf_graph *graph, uint32_t n_inputs,
                            const tfl_input *inputs, xlac_error *err);
void tfl_lowered_free(tfl_lowered *l);
/* Whether lower.def has a row for the op. */
bool tfl_has_op(const char *op);

#endif
