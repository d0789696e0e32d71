/* A set of nodes as a graph of its own: what comes in from outside are _Arg nodes, what others use are _Retval nodes.
 * Source: EncapsulateSubgraphsPass's behaviour, reference notes, section 10. */
#ifndef XLAC_TF_ENCAPSULATE_ENCAPSULATE_H
#define XLAC_TF_ENCAPSULATE_ENCAPSULATE_H

#include "../cluster/pass.h"

/* An output of a node. */
typedef struct tf_value_id {
  uint32_t node; /* of the graph that the part was cut out of */
  int32_t output;
} tf_value_id;

/* Like the body of a function: argument i is node TF_SINK + 1 + i, then come the nodes, then the results. */
typedef struct tf_part {
  tf_graph graph;
  const uint32_t *outer;               /* by node of `graph`: the node it is a copy of; TF_NO_EDGE for ends */
  const tf_value_id *inputs, *outputs; /* by _Arg, by _Retval */
  const uint32_t *control_in;          /* nodes outside that must have run before, each once */
  const uint32_t *control_out;         /* nodes outside that wait for it */
  uint32_t n_inputs, n_outputs, n_control_in, n_control_out;
  uint32_t n_constants, n_resources; /* the first inputs must be known to compile; the last ones are resources */
} tf_part;

/* Cuts out the n nodes of g, which are in rising order. Values that several nodes of the part take are one input; each
 * value that a node outside takes is one output. Lists are in the arena; the graph is freed by tf_part_free, after a
 * failure too. */
XLAC_MUST_USE int tf_cut_out(tf_part *out, base_arena *arena, tf_bodies *bodies, const tf_graph *g, uint32_t n,
                             const uint32_t *nodes, xlac_error *err);
void tf_part_free(tf_part *part);

/* Appends the GraphDef where each cluster of p is a function of the library and a node that calls it, with
 * _XlaCompiledKernel, _XlaNumConstantArgs and _XlaNumResourceArgs. encapsulate_write.c */
XLAC_MUST_USE int tf_write_encapsulated(tf_pass *p, base_text *out, xlac_error *err);

#endif
