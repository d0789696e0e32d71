/* Graphs back to GraphDefs: the nodes as read, with the marks of clustering. */
#ifndef XLAC_TF_CLUSTER_GRAPH_WRITE_H
#define XLAC_TF_CLUSTER_GRAPH_WRITE_H

#include "cluster.h"

/* Appends the bytes of the GraphDef, its nodes with _XlaCluster and _XlaAlreadyClustered where they are marked. */
XLAC_MUST_USE int tf_write_clustered(const tf_pass *p, base_text *out, xlac_error *err);
/* The same with the nodes named by their cluster, "cluster_0/a", "varhandle/v" and "unclustered/x", so that viewers of
 * graphs group them (mark_for_compilation_annotated of tf_xla_clustering_debug). */
XLAC_MUST_USE int tf_write_annotated(const tf_pass *p, base_text *out, xlac_error *err);

#endif
