/* Answers to "why": which filter refused a node, and why two nodes are not in one cluster. Text for people. */
#ifndef XLAC_TF_CLUSTER_EXPLAIN_H
#define XLAC_TF_CLUSTER_EXPLAIN_H

#include "cluster.h"

/* The id of the node of that name; TF_NO_EDGE where there is none. */
uint32_t tf_find_node(const tf_pass *p, const char *name);
/* Appends why the node is in its cluster, or in none. The pass has run, with or without clusters. Not const:
 * finding a node's cluster shortens paths. */
XLAC_MUST_USE int tf_explain_node(tf_pass *p, uint32_t node, base_text *out, xlac_error *err);
/* Appends why two nodes are not in one cluster, or that they are. */
XLAC_MUST_USE int tf_explain_pair(tf_pass *p, uint32_t a, uint32_t b, base_text *out, xlac_error *err);
/* Appends the ops XLA compiles, one a line: name, element types on CPUs and on GPUs, inputs that must be constants, use
 * of resources, categories. */
void tf_put_op_list(base_text *out);

#endif
