/* One run of tfl_lower: what its files share. Inside of tf/lower only; rows that need no more include row.h. */
#ifndef XLAC_TF_LOWER_BUILD_H
#define XLAC_TF_LOWER_BUILD_H

#include "row.h"
#include "../graph/functions.h"

enum {
  TFL_MOST_DEPTH = 50, /* of calls of functions, as TensorFlow has it */
  TFL_MOST_NODES = 1 << 17,
  TFL_MOST_FOLDED_OPS = 20000,
  TFL_SMALL = 1024 /* elements: known data of this size is written as a constant where it is used */
};

/* A graph being lowered: the one that was asked for, or the body of a function that is being called. */
struct tfl_frame {
  const tf_graph *graph;
  const base_istr *function; /* NULL: the lowered graph itself */
  tfl_value *values;         /* of all outputs; those of node `id` from first[id] on */
  uint32_t *first;
  uint32_t *numbers; /* tfl_number_ends */
  uint32_t n_args, n_rets;
  const tfl_value *args; /* by number */
  tfl_value *rets;
  uint32_t depth;
};

BASE_VEC(tfl_resource_list, tfl_resource *);

/* One tfl_lower from begin to end. Memory is the arena of `out` or the module's. */
struct tfl_build {
  tfl_lowered *out;
  opt_rewriter rw;
  tf_bodies *bodies;
  tfl_resource_list resources;
  uint32_t n_nodes; /* of functions' bodies, which count each time they are called */
  base_map rows;    /* interned name of an op -> its row */
  ir_op place;      /* has the location of what is made */
  xlac_error *err;
};

/* Lowers a graph at the cursor: rets gets its results. depth is of calls. */
XLAC_MUST_USE int tfl_lower_graph(tfl_build *b, const tf_graph *graph, const base_istr *function, uint32_t depth,
                                  uint32_t n_args, const tfl_value *args, uint32_t n_rets, tfl_value *rets);
/* The body of a function, lowered at the cursor. */
XLAC_MUST_USE int tfl_lower_body(tfl_op *x, const tf_callee *callee, uint32_t n_args, const tfl_value *args,
                                 uint32_t n_rets, tfl_value *rets);
/* The numbers of _Arg and _Retval nodes, by node: an attribute, or else the place among its kind. */
XLAC_MUST_USE int tfl_number_ends(const tf_graph *g, base_arena *arena, uint32_t **numbers, xlac_error *err);
/* v's data, evaluated if it is fixed; *data NULL where it is not known. */
XLAC_MUST_USE int tfl_evaluate(tfl_build *b, tfl_value *v, const void **data);
/* v at the cursor; its op may be NULL after a failure. */
ir_value tfl_use_value(tfl_build *b, tfl_value *v);
/* The row of an op by its name; NULL where there is none. */
const tfl_row *tfl_row_of(const char *op);

#endif
