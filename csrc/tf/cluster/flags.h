/* The flags of TensorFlow's clustering, under TensorFlow's names less the prefix tf_xla_. */
#ifndef XLAC_TF_CLUSTER_FLAGS_H
#define XLAC_TF_CLUSTER_FLAGS_H

#include "../graph/device.h"

/* Defaults are beside the fields (tf_flags_default). Texts are borrowed until the pass begins, which keeps copies. */
typedef struct tf_flags {
  int64_t min_cluster_size, max_cluster_size; /* 4, INT32_MAX */
  int64_t clustering_fuel;                    /* INT64_MAX: candidates to accept */
  const char *ops_to_cluster;                 /* "": any; names of ops and of categories, "FUSIBLE" */
  const char *cluster_exclude_ops;            /* "" or "Where" */
  const char *session_name;                   /* before "cluster_0", with '_' */
  const char *default_device;                 /* of nodes that ask for none */
  int64_t auto_jit, auto_jit_single_gpu;      /* tf_xla_auto_jit: 0 is unset, and the session's level counts */
  int64_t global_jit_level;                   /* the session's: -1 off, 0 default, 1, 2 */
  bool cpu_global_jit;                        /* tf_xla_cpu_global_jit */
  bool session_cpu_global_jit;                /* OptimizerOptions.cpu_global_jit */
  bool deterministic_cluster_names;
  bool disable_deadness_safety_checks_for_debugging;
  bool disable_resource_variable_safety_checks_for_debugging;
  bool clone_constants;                  /* run CloneConstantsForBetterClusteringPass first */
  bool cluster_scoping;                  /* run ClusterScopingPass before the pass */
  bool partially_decluster;              /* run PartiallyDeclusterPass after it */
  const tf_device_registration *devices; /* more devices, before the table; ended by a NULL type; may be NULL */
} tf_flags;

#endif
