/* A graph made ready to run: units, what they wait for, and where their values go. */
#ifndef XLAC_TF_SESSION_PROGRAM_H
#define XLAC_TF_SESSION_PROGRAM_H

#include "../graph/functions.h"
#include "../encapsulate/encapsulate.h"
#include "value.h"

typedef struct tfs_session tfs_session;
typedef struct tfs_program tfs_program;
typedef struct tfs_unit tfs_unit;
typedef struct tfs_compiled tfs_compiled;
typedef struct tfs_call tfs_call;

/* One node being run by the host. The function takes what it likes of `in`, and fills `out`; what stays in `in` is
 * dropped by who called. Errors need not name the node. The arrays in and out are the run's, and last only for
 * this unit. */
struct tfs_call {
  struct tfs_run *run;
  tfs_unit *unit;
  const tf_node *node;
  uint32_t n_in, n_out;
  tfs_value *in, *out;
  base_alloc alloc;
  xlac_error *err;
};
typedef int tfs_host_fn(tfs_call *c);
/* A row of host.def: `arg` tells ops apart that share a function. */
typedef struct tfs_host_op {
  const char *op;
  tfs_host_fn *fn;
  int32_t arg;
} tfs_host_op;
/* The row of host.def, or NULL: the op is compiled by itself. */
const tfs_host_op *tfs_host_find(const tf_node *node);

/* Who runs a unit. ARG and RESULT are the ends of the graph: a feed or an argument, a fetch or a result. */
typedef enum tfs_unit_kind {
  TFS_UNIT_HOST,    /* a node that the host runs */
  TFS_UNIT_CALL,    /* a node that calls functions, which run node by node */
  TFS_UNIT_COMPUTE, /* compiled: a cluster, or one node */
  TFS_UNIT_ARG,
  TFS_UNIT_RESULT
} tfs_unit_kind;

/* Where a value of a unit goes. */
typedef struct tfs_out {
  int32_t output; /* TF_CONTROL */
  uint32_t unit;  /* who gets it */
  int32_t slot;   /* TF_CONTROL, or which input */
} tfs_out;

/* Counts and times for the report, of all runs. */
typedef struct tfs_unit_stats {
  uint64_t runs, dead, compiles, hits, compiled_runs, fallen_back;
  double compile_seconds, run_seconds;
} tfs_unit_stats;

/* A node, or nodes that run as one. Which fields mean something depends on the kind. Everything but `stats` and
 * what is found out once (compiled, nodes, why, callees, constant, random) stays as tfs_program_build made it. */
struct tfs_unit {
  const base_istr *name; /* of the node, of the cluster */
  const tf_node *node;   /* NULL for a cluster */
  uint8_t kind, role;    /* tfs_unit_kind, tf_role */
  bool is_cluster;
  bool constant_enter; /* Enter: its value is there in all iterations */
  const tfs_host_op *host;
  uint32_t number; /* ARG, RESULT */
  uint32_t n_in, n_out, n_control_in;
  uint32_t first_edge, n_edges; /* in program->edges, those of output 0 first, control last */
  uint32_t frame, child_frame;  /* it lies in; an Enter opens */
  uint32_t local, slot;         /* its place and its inputs' among those of the frame */
  /* COMPUTE */
  tf_part part;
  bool cut;               /* part is filled */
  tfs_compiled *compiled; /* by signature */
  tfs_program *nodes;     /* the cluster node by node, once that was needed */
  bool megamorphic;
  bool needs_data; /* one node, of an op that TensorFlow's table has no constants for: small inputs count as known */
  char *why;       /* it can't be compiled, ever */
  /* CALL */
  tf_callees *callees; /* once they were looked for */
  /* HOST */
  tfs_value constant; /* of a Const; the handle of a variable */
  struct tfs_random *random;
  tfs_unit_stats stats;
};

/* A loop of the graph, by its name: what each running frame of it is made of. */
typedef struct tfs_static_frame {
  const base_istr *name; /* NULL for the outermost */
  uint32_t n_units, n_slots, n_enters;
  uint32_t *units;      /* by local place */
  uint32_t *first_wait; /* by local place: what it waits for */
} tfs_static_frame;

/* Owned by a step, by the session (functions' bodies) or by a unit (its cluster's nodes). Immutable once it is
 * built, but for what its units find out. */
struct tfs_program {
  tfs_session *session;
  const tf_graph *graph;
  base_arena arena;
  tfs_unit *units;
  tfs_out *edges;
  tfs_static_frame *frames;
  uint32_t n_units, n_edges, n_frames, n_args, n_results, widest; /* widest: most inputs or outputs of a unit */
  bool has_loops;
  tf_pass *pass;     /* of a function's body: what clustered it; or NULL */
  tfs_program *next; /* of the session's list of bodies */
};

/* A program of g, which stays as it is: nodes of one group (by node; TF_NO_EDGE for none, names by group) are one
 * unit. Only nodes for which live[id] are there (NULL: all). Freed by tfs_program_free, after a failure too. */
XLAC_MUST_USE int tfs_program_build(tfs_program *out, tfs_session *session, const tf_graph *g, const uint8_t *live,
                                    const uint32_t *group_of, uint32_t n_groups, const base_istr *const *names,
                                    xlac_error *err);
void tfs_program_free(tfs_program *p);
/* Numbers the clusters of a pass's graph: group_of and names have room for its nodes. */
XLAC_MUST_USE int tfs_number_clusters(const tf_pass *pass, uint32_t *group_of, uint32_t *n_groups,
                                      const base_istr **names, xlac_error *err);
/* The body of a function, built when first asked for. */
XLAC_MUST_USE int tfs_body_program(tfs_session *session, const tf_callee *callee, tfs_program **out, xlac_error *err);
/* A cluster node by node. */
XLAC_MUST_USE int tfs_unit_nodes(tfs_session *session, tfs_unit *unit, tfs_program **out, xlac_error *err);

#endif
