/* Internal to the clustering pass: its state, and what its files do for one another. The pass runs in one thread;
 * afterwards tf_pass is only read, but for tf_cluster_of, which shortens paths: two threads may not ask one pass
 * at once. All memory is the pass's own or lies in the arena of the GraphDef. */
#ifndef XLAC_TF_CLUSTER_PASS_H
#define XLAC_TF_CLUSTER_PASS_H

#include "../graph/functions.h"
#include "cycles.h"
#include "deadness.h"
#include "flags.h"

/* Two ops on resources in an order that one cluster would not keep. */
typedef struct tf_unsafe_pair {
  uint32_t before, after; /* node ids: they may not be in one cluster */
} tf_unsafe_pair;
BASE_VEC(tf_unsafe_list, tf_unsafe_pair);

typedef enum tf_refusal {
#define REFUSAL(name, text) TF_REFUSED_##name,
#include "refusals.def"
#undef REFUSAL
} tf_refusal;
/* What a user reads. */
const char *tf_refusal_text(tf_refusal why);

/* The first filter that refused a node, and where: for functions, the node within that decided. */
typedef struct tf_verdict {
  uint8_t why;             /* tf_refusal */
  const base_istr *inside; /* the node of a function's body, or NULL */
  const base_istr *op;     /* its op */
  uint8_t inside_why;      /* tf_refusal of that node */
} tf_verdict;

/* --- candidates.c --- */

/* For what is compiled: the row of the device, and what the flags exclude. */
typedef struct tf_compile_filter {
  const tf_device_registration *device;
  bool exclude_where;
} tf_compile_filter;
/* Whether XLA can compile a node of g: verdict->why. */
XLAC_MUST_USE int tf_check_compilable(tf_bodies *b, const tf_compile_filter *filter, const tf_graph *g,
                                      const tf_node *n, tf_verdict *verdict, xlac_error *err);
bool tf_is_stack_op(const tf_node *n);
bool tf_is_tensor_array_op(const tf_node *n);
/* While, StatelessWhile, If, StatelessIf. */
bool tf_is_functional_control_flow(const tf_node *n);

/* --- constness.c: which nodes must be constants when their consumers are compiled --- */

/* marks[id] is set to 1 for nodes of g that must; edges for which keep is false do not count (keep may be NULL). */
XLAC_MUST_USE int tf_must_be_constant(tf_bodies *b, const tf_graph *g, bool (*keep)(const void *ctx, const tf_edge *e),
                                      const void *ctx, uint8_t *marks, xlac_error *err);

/* --- the pass --- */

/* Devices of the nodes of one cluster: places in tf_pass.devices, in the order in which candidates have them first. */
typedef struct tf_device_set {
  uint32_t number;
  uint32_t chosen; /* what a cluster of these is compiled for; TF_NO_DEVICE: they can't be in one cluster */
  uint32_t n, list[];
} tf_device_set;
#define TF_NO_DEVICE UINT32_MAX

/* One cluster; valid for the root of the union-find only (tf_cluster_of gives that). */
typedef struct tf_cluster {
  uint32_t size, effective; /* nodes; without Const and Identity */
  uint32_t vertex;          /* in the cycle graph */
  uint32_t resource_device; /* TF_NO_DEVICE where it has no resource op */
  const tf_device_set *devices;
  const base_istr *scope; /* NULL for none */
  const tf_pred *deadness;
  uint32_t first, last; /* its nodes, linked by tf_pass.next_node */
  bool functional, forced;
  bool resources; /* some node uses one */
} tf_cluster;

typedef struct tf_pass tf_pass;

typedef struct tf_device_entry {
  const base_istr *name;
  const tf_device_registration *registration; /* NULL where XLA does not know the type */
  const tf_device_set *alone;                 /* the set of it alone; NULL as long as no candidate has it */
  base_slice type;
  uint32_t rank; /* among those that candidates have */
  bool malformed;
} tf_device_entry;
BASE_VEC(tf_device_entries, tf_device_entry);

/* Why a node is no longer in the cluster it was in. */
typedef enum tf_left {
  TF_LEFT_NOT,
  TF_LEFT_CONSTANT, /* the cluster would be compiled anew for each of its values */
  TF_LEFT_SHAPE,    /* it looks at the shape of something outside */
  TF_LEFT_NOTHING   /* all its users are outside and take its copy: it is gone from the graph */
} tf_left;

/* A run of the pass and all that it has found out. Fields below `frames` are lists by node; those that are NULL
 * were not reached (see already_clustered, n_candidates, gave_up). */
struct tf_pass {
  tf_graph_def *def;
  tf_graph graph;
  tf_flags flags;
  tf_bodies bodies;
  int64_t jit_level; /* the effective one; -1 is off */
  tf_device_entries devices;
  base_map joins; /* numbers of two sets of devices -> tf_device_set * */
  uint32_t n_sets, n_ranks;
  tf_device_registration cpu; /* the CPU's row, its policy as the flags say */
  tf_frame_info *frames;      /* by node id, as all lists below */
  tf_deadness deadness;
  uint8_t *must_be_constant;
  uint8_t *candidate;
  tf_verdict *verdicts;
  uint32_t *device_of;  /* TF_NO_DEVICE where it has none */
  uint32_t *cluster_of; /* the candidate's cluster by union-find over nodes; TF_NO_EDGE for no candidate */
  uint32_t *next_node;  /* the next node of its cluster */
  uint8_t *taint;       /* resources.c */
  tf_cluster *clusters; /* by node: of the root of the union-find */
  tf_cycles cycles;
  tf_unsafe_list unsafe; /* pairs, where loops make the quick way impossible */
  base_map unsafe_set;
  const base_istr **scopes; /* from tf_scope_stages; NULL for the node's own */
  uint8_t *left;            /* tf_left */
  const base_istr **result; /* the name of the cluster a node is marked with, or NULL */
  uint32_t n_candidates;
  uint32_t n_clustered; /* nodes when clusters were made; later ones are copies that PartiallyDeclusterPass made */
  bool one_device;      /* all candidates on one device, resources too: never a conflict */
  bool has_loops;       /* v1 loops */
  bool exclude_where;   /* flags.cluster_exclude_ops says so */
  bool gave_up;         /* a loop's frame would close a cycle: nothing is clustered, as in TensorFlow */
  bool has_deadness;
  bool already_clustered; /* some node says so: nothing is done */
};

/* candidates.c: fills verdicts and candidate. */
XLAC_MUST_USE int tf_find_candidates(tf_pass *p, xlac_error *err);
/* Whether clusters of that device are compiled at all. */
bool tf_should_compile(const tf_pass *p, bool forced, uint32_t device);
/* _XlaCompile or, unless clustering is off, _XlaMustCompile of the node or of the function it calls. */
bool tf_is_forced(const tf_pass *p, const tf_node *n);
/* Attributes of the function that has the node's op for its name; n is 0 where there is none. */
tf_attrs tf_callee_attrs(const tf_node *n);

/* contract.c: a vertex for each node and each loop's frame; sets gave_up. */
XLAC_MUST_USE int tf_build_cycles(tf_pass *p, xlac_error *err);

/* A cluster of each candidate. */
XLAC_MUST_USE int tf_build_clusters(tf_pass *p, xlac_error *err);
/* The cluster of a node, or NULL. */
tf_cluster *tf_cluster_of(tf_pass *p, uint32_t node);

/* Why an edge between two clusters can't be contracted. */
typedef enum tf_obstacle {
#define OBSTACLE(name, text) TF_OBSTACLE_##name,
#include "obstacles.def"
#undef OBSTACLE
} tf_obstacle;
/* What a user reads. */
const char *tf_obstacle_text(tf_obstacle o);

/* The phases; *why tells of one edge (may be NULL). */
XLAC_MUST_USE int tf_contract_all(tf_pass *p, xlac_error *err);
XLAC_MUST_USE int tf_find_obstacle(tf_pass *p, tf_cluster *from, tf_cluster *to, tf_obstacle *why, xlac_error *err);

/* device_sets.c. The place of a device in p->devices, added where it is new; TF_NO_DEVICE for no name. A malformed
 * name gets an entry, too: tf_check_device reports it with the node. */
XLAC_MUST_USE int tf_find_device(tf_pass *p, const base_istr *name, uint32_t *out, xlac_error *err);
/* The set of one device, known from here on. */
XLAC_MUST_USE int tf_device_set_of(tf_pass *p, uint32_t device, const tf_device_set **out, xlac_error *err);
/* The union of two sets, remembered by their numbers: sets are compared by address. */
XLAC_MUST_USE int tf_join_devices(tf_pass *p, const tf_device_set *a, const tf_device_set *b, const tf_device_set **out,
                                  xlac_error *err);
/* candidates.c: fails where the name of a node's device is malformed. */
XLAC_MUST_USE int tf_check_device(const tf_pass *p, uint32_t id, xlac_error *err);

/* resources.c: whether ops on resources in the two clusters may not be in one. */
XLAC_MUST_USE int tf_prepare_resources(tf_pass *p, xlac_error *err);
bool tf_resources_conflict(tf_pass *p, const tf_cluster *from, const tf_cluster *to);
/* Called before they are merged. */
XLAC_MUST_USE int tf_resources_merged(tf_pass *p, const tf_cluster *from, const tf_cluster *to, xlac_error *err);

/* cluster.c: names for the clusters that are large enough. */
XLAC_MUST_USE int tf_mark_clusters(tf_pass *p, xlac_error *err);

/* partial_decluster.c: copies nodes; order has room for twice the nodes. */
XLAC_MUST_USE int tf_decluster_for_host(tf_pass *p, uint32_t *order, xlac_error *err);
/* The node itself, or the copy that took its place. */
uint32_t tf_standing_node(const tf_pass *p, uint32_t id);
/* Unmarks or copies nodes at the borders of clusters. flags.partially_decluster, which made room
 * for the copies, is set. */
XLAC_MUST_USE int tf_partially_decluster(tf_pass *p, xlac_error *err);

/* prepare_graph.c: ClusterScopingPass. */
XLAC_MUST_USE int tf_scope_stages(tf_pass *p, xlac_error *err);

#endif
