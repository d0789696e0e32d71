/* When each node's values are alive, as formulas over the switches that decide it. Two clusters are joined only if
 * their formulas are one pointer: compiled code computes all of a cluster or nothing. Source:
 * compiler/jit/deadness_analysis.cc's behaviour. */
#ifndef XLAC_TF_CLUSTER_DEADNESS_H
#define XLAC_TF_CLUSTER_DEADNESS_H

#include "../graph/frames.h"
#include "predicate.h"

/* Formulas lie in `arena` and live as long as this. */
typedef struct tf_deadness {
  base_arena arena;
  tf_pred_factory factory;
  const tf_pred **control; /* by node: of its control output, and of its values unless the node is a switch */
  const tf_pred ***values; /* by node: of each value where they differ, else NULL */
} tf_deadness;

/* Freed by tf_deadness_free, after a failure too. frames as found by tf_find_frames. */
XLAC_MUST_USE int tf_find_deadness(tf_deadness *d, const tf_graph *g, const tf_frame_info *frames, xlac_error *err);
void tf_deadness_free(tf_deadness *d, base_alloc alloc);

#endif
