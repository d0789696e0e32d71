/* Auto-clustering: which nodes of a TensorFlow graph XLA would compile together. The result owns what decided it, so
 * that it can be asked why. Sources: seed 002, TensorFlow 2.21's MarkForCompilationPass as measured. */
#ifndef XLAC_TF_CLUSTER_CLUSTER_H
#define XLAC_TF_CLUSTER_CLUSTER_H

#include "pass.h"

/* TensorFlow's defaults, but for a session at level 1 with tf_xla_cpu_global_jit: who clusters wants clusters. */
tf_flags tf_flags_default(void);

/* Imports def, which must outlive the result. Freed by tf_pass_free, also after a failure. */
XLAC_MUST_USE int tf_cluster_import(tf_pass *out, tf_graph_def *def, const tf_flags *flags, xlac_error *err);
/* Then clusters it. Once for each import. Errors name the node: malformed devices, edges that close a cycle,
 * functions that are called but not defined. */
XLAC_MUST_USE int tf_cluster_run(tf_pass *p, xlac_error *err);
/* Clusters the body of a function as TensorFlow does when a function runs that is not part of a cluster: by itself,
 * with the caller's flags. Clusters are named after the function. Freed by tf_pass_free, also after a failure. */
XLAC_MUST_USE int tf_cluster_function(tf_pass *out, const tf_pass *caller, const tf_function *fn, tf_attrs call,
                                      xlac_error *err);
/* Frees the lists, the graph and the bodies of functions, but not the GraphDef. */
void tf_pass_free(tf_pass *p);

#endif
