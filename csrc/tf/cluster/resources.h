/* Which ops on resources may not be in one cluster: a cluster reads all its variables first and writes them last, so a
 * read after a write, or anything but a write after a read-and-write, would see the wrong value. Source:
 * compiler/jit/resource_operation_safety_analysis.cc's behaviour, reference notes section 9. */
#ifndef XLAC_TF_CLUSTER_RESOURCES_H
#define XLAC_TF_CLUSTER_RESOURCES_H

#include "pass.h"

/* What a node does to resources; functions may do anything. */
tf_resource_use tf_resource_use_of(const tf_node *n);
bool tf_may_call_function(const tf_node *n);

/* All pairs, in order. ignore[id] leaves a node out (may be NULL). */
XLAC_MUST_USE int tf_find_unsafe_pairs(const tf_graph *g, const uint8_t *ignore, tf_unsafe_list *out, xlac_error *err);

#endif
