/* The attributes of the sdy dialect as data: meshes, axes, shardings, rules. Immutable, in the module's arena; axis and
 * mesh names are interned in the module's strings, so within one module names are equal where their pointers are.
 * Nothing here is checked against a mesh but where said: sdy.c does that. Source: Shardy's attribute and op
 * definitions. */
#ifndef XLAC_IR_SDY_SDY_H
#define XLAC_IR_SDY_SDY_H

#include "../ir.h"

/* --- meshes --- */
/* "a"=2 */
typedef struct sdy_mesh_axis {
  const base_istr *name;
  int64_t size;
} sdy_mesh_axis;
/* <["a"=2, "b"=4]>, with device_ids=[...] where the order is another. Without axes: empty, or maximal with one id. */
typedef struct sdy_mesh {
  uint32_t n_axes, n_ids;
  const sdy_mesh_axis *axes;
  const int64_t *ids; /* the order of devices; n_ids 0: 0, 1, 2, ... */
} sdy_mesh;

/* --- axes: major to minor in every list --- */
typedef struct sdy_axis {
  const base_istr *name;
  int64_t pre, size; /* the sub-axis "name":(pre)size; size 0: the whole axis (pre is 0 too) */
} sdy_axis;
/* A list of axes: the product of their sizes is what it stands for. */
typedef struct sdy_axes {
  uint32_t n;
  const sdy_axis *v;
} sdy_axes;

/* --- shardings --- */
/* The sharding of one dimension: {"a", "b", ?}p1. */
typedef struct sdy_dim {
  sdy_axes axes;
  bool open;        /* {"a", ?} */
  int64_t priority; /* -1: none given */
} sdy_dim;
/* By which op unreduced axes will be reduced. */
typedef enum sdy_reduction { SDY_SUM, SDY_MAX, SDY_MIN } sdy_reduction;
/* The sharding of one tensor: <@mesh, [{"a"}, {?}], replicated={"b"}, unreduced={"c"}>. */
typedef struct sdy_sharding {
  const base_istr *mesh_name; /* @mesh, or NULL: `mesh` is written in place */
  const sdy_mesh *mesh;       /* NULL where mesh_name is given */
  uint32_t n_dims;
  uint8_t reduction; /* sdy_reduction, of the unreduced axes */
  const sdy_dim *dims;
  sdy_axes replicated, unreduced;
} sdy_sharding;
typedef struct sdy_shardings { /* sharding_per_value */
  uint32_t n;
  const sdy_sharding *const *v; /* never NULL */
} sdy_shardings;

/* --- rules --- */
typedef struct sdy_ints {
  uint32_t n;
  const int64_t *v;
} sdy_ints;
/* How one tensor's dimensions are made of factors. */
typedef struct sdy_tensor_map {
  uint32_t n_dims;
  const sdy_ints *dims; /* the factors of each dimension, major to minor; none: unmapped ('*') */
} sdy_tensor_map;
/* How an op's tensors share factors: ([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k} for a matrix product. */
typedef struct sdy_rule {
  sdy_ints sizes; /* of the factors: 0 is i, 1 is j, ... 17 is z, 18 is z_1 */
  uint32_t n_operands, n_results;
  const sdy_tensor_map *operands, *results;
  sdy_ints reduction, need_replication, permutation, blocked; /* factors */
  bool custom;
} sdy_rule;

/* --- what collectives take --- */
typedef struct sdy_axis_lists { /* list_of_axis_ref_lists */
  uint32_t n;
  const sdy_axes *v;
} sdy_axis_lists;
typedef struct sdy_param { /* all_to_all_param */
  sdy_axes axes;
  int64_t from, to; /* dimensions */
} sdy_param;
typedef struct sdy_params {
  uint32_t n;
  const sdy_param *v;
} sdy_params;
typedef struct sdy_names { /* manual_axes */
  uint32_t n;
  const base_istr *const *v;
} sdy_names;

/* --- how axes came where they are, for debugging --- */
/* An operand or result of an op, by its number. */
typedef struct sdy_edge_value {
  bool result; /* else operand */
  int64_t index;
} sdy_edge_value;
/* axis came from `from` to each of the n in `to`. */
typedef struct sdy_edge {
  sdy_axis axis;
  sdy_edge_value from;
  uint32_t n;
  const sdy_edge_value *to;
} sdy_edge;
/* The edges of one step of the propagation. */
typedef struct sdy_step {
  int64_t index;
  uint32_t n;
  const sdy_edge *edges;
} sdy_step;
typedef struct sdy_edges { /* propagation_edges */
  uint32_t n;
  const sdy_step *v;
} sdy_edges;

/* --- as MLIR attributes: kind IR_M_SDY, `sub` one of these, v.sdy the struct --- */
typedef enum sdy_kind {
  SDY_NONE,
  SDY_MESH,        /* sdy_mesh */
  SDY_SHARDING,    /* sdy_sharding */
  SDY_SHARDINGS,   /* sdy_shardings */
  SDY_RULE,        /* sdy_rule */
  SDY_AXIS,        /* sdy_axis */
  SDY_AXES,        /* sdy_axes */
  SDY_AXIS_LISTS,  /* sdy_axis_lists */
  SDY_PARAM,       /* sdy_param */
  SDY_PARAMS,      /* sdy_params */
  SDY_MANUAL_AXES, /* sdy_names */
  SDY_EDGES,       /* sdy_edges */
  SDY_DIM,         /* sdy_dim */
  SDY_KINDS
} sdy_kind;
/* "mesh", "sharding", "sharding_per_value", ...: what stands after #sdy. */
const char *sdy_kind_name(sdy_kind kind);
sdy_kind sdy_kind_find(const char *name, size_t n); /* SDY_NONE where there is none */
/* The struct of an attribute of that kind; NULL where it is of another, or NULL. */
static inline const void *sdy_of(const ir_mattr *a, sdy_kind kind) {
  return a && a->kind == IR_M_SDY && a->sub == kind ? a->v.sdy : NULL;
}
/* A copy in m of a struct of another module: sdy.c. NULL when out of memory. */
const void *sdy_import(ir_module *m, sdy_kind kind, const void *what);
/* A struct that lies in m's arena (whole: all that it points to too) as an attribute. NULL when out of memory, or when
 * `what` is. */
const ir_mattr *sdy_attr(ir_module *m, sdy_kind kind, const void *what);

/* --- makers: sdy.c. Copies in m's arena of structs that may lie anywhere, lists and all; names must be m's. NULL when
 * out of memory. --- */
/* Each copies what it is given, so structs and lists may lie on the stack. */
const sdy_sharding *sdy_sharding_make(ir_module *m, const sdy_sharding *from);
/* The shardings themselves are shared: they must be m's. */
const sdy_shardings *sdy_shardings_make(ir_module *m, uint32_t n, const sdy_sharding *const *v);
const sdy_rule *sdy_rule_make(ir_module *m, const sdy_rule *from);
XLAC_MUST_USE bool sdy_axes_make(ir_module *m, sdy_axes from, sdy_axes *to);
const sdy_axis_lists *sdy_axis_lists_make(ir_module *m, uint32_t n, const sdy_axes *v);
const sdy_params *sdy_params_make(ir_module *m, uint32_t n, const sdy_param *v);
const sdy_names *sdy_names_make(ir_module *m, uint32_t n, const base_istr *const *v);
const sdy_edges *sdy_edges_make(ir_module *m, uint32_t n, const sdy_step *v);
/* rank dimensions without axes, all open or all closed, on the mesh of `like` (NULL, or its mesh_name and mesh). */
const sdy_sharding *sdy_sharding_empty(ir_module *m, const sdy_sharding *like, uint32_t rank, bool open);

/* --- comparing: sdy.c. Across modules too (names by their bytes where pointers differ). --- */
/* Both structs are of that kind. Order in lists counts. */
bool sdy_equal(sdy_kind kind, const void *a, const void *b);
bool sdy_name_equal(const base_istr *a, const base_istr *b);
bool sdy_axis_equal(sdy_axis a, sdy_axis b);
bool sdy_axes_equal(sdy_axes a, sdy_axes b);
bool sdy_dim_equal(const sdy_dim *a, const sdy_dim *b);
bool sdy_mesh_equal(const sdy_mesh *a, const sdy_mesh *b);
bool sdy_sharding_equal(const sdy_sharding *a, const sdy_sharding *b);
/* The same axes on every dimension and the same mesh, or no axes on any dimension in either; whether dimensions are
 * open, priorities, replicated and unreduced axes do not matter. NULL is a sharding without axes. */
bool sdy_sharding_equivalent(const sdy_sharding *a, const sdy_sharding *b);
/* No dimension has axes, nor are any unreduced; NULL too. */
bool sdy_sharding_is_replicated(const sdy_sharding *s);

/* --- meshes: sdy_axis.c --- */
static inline bool sdy_mesh_is_maximal(const sdy_mesh *mesh) {
  return mesh->n_axes == 0 && mesh->n_ids == 1;
}
static inline bool sdy_mesh_is_empty(const sdy_mesh *mesh) {
  return mesh->n_axes == 0 && mesh->n_ids == 0;
}
/* The axis's place in the mesh, or -1. */
int sdy_mesh_find(const sdy_mesh *mesh, const base_istr *name);
/* What is wrong with a mesh in itself, in words, into fault; false: nothing. sdy.c */
bool sdy_mesh_is_broken(const sdy_mesh *mesh, char *fault, size_t size);
bool sdy_edges_are_broken(const sdy_edges *edges, char *fault, size_t size);
/* The order 0, 1, 2, ... is what there is without a list. */
bool sdy_mesh_ids_are_iota(const sdy_mesh *mesh);
/* The number of devices; saturates at INT64_MAX. */
int64_t sdy_mesh_size(const sdy_mesh *mesh);
/* The mesh that @name is in the module, or NULL; the sharding's own, or that of its name. Linear in the module's
 * symbols: keep what you find. */
const sdy_mesh *sdy_mesh_named(const ir_module *m, const base_istr *name);
const sdy_mesh *sdy_mesh_of(const ir_module *m, const sdy_sharding *s);
/* The sdy.mesh op of that name, or NULL. */
ir_op *sdy_mesh_op(const ir_module *m, const base_istr *name);

/* --- algebra of axes: sdy_axis.c. Of equal meshes; sizes divide as verified. --- */
int64_t sdy_axis_size(sdy_axis a, const sdy_mesh *mesh);
static inline int64_t sdy_axis_pre(sdy_axis a) {
  return a.size ? a.pre : 1;
}
/* Where the axis ends: pre * size, or the full size. */
int64_t sdy_axis_end(sdy_axis a, const sdy_mesh *mesh);
/* From `pre` to `end` of the axis called `name`: the whole one where that is all of it. */
sdy_axis sdy_axis_span(const base_istr *name, int64_t pre, int64_t end, const sdy_mesh *mesh);
int64_t sdy_axes_size(sdy_axes a, const sdy_mesh *mesh); /* the product; saturates */
/* <0, 0, >0: the order of the mesh, then by where they begin, then where they end. Unknown names come last. */
int sdy_axis_compare(sdy_axis a, sdy_axis b, const sdy_mesh *mesh);
bool sdy_axis_overlaps(sdy_axis a, sdy_axis b);
bool sdy_axis_contains(sdy_axis a, sdy_axis b); /* b is in a, or is a */
bool sdy_axis_coexists(sdy_axis a, sdy_axis b); /* one splitting of the axis has both, as sums of its parts */
/* The part of a that is in b; false: none. */
bool sdy_axis_overlap(sdy_axis a, sdy_axis b, sdy_axis *out);
/* The part of a before (after) b, where they overlap; a itself where they do not; false: nothing is left, or they do
 * not coexist. */
bool sdy_axis_before(sdy_axis a, sdy_axis b, sdy_axis *out);
bool sdy_axis_after(sdy_axis a, sdy_axis b, const sdy_mesh *mesh, sdy_axis *out);
/* b begins where a ends. */
bool sdy_axis_can_merge(sdy_axis a, sdy_axis b); /* both sub-axes */
sdy_axis sdy_axis_merge(sdy_axis a, sdy_axis b, const sdy_mesh *mesh);
bool sdy_axes_overlap(sdy_axes a, sdy_axis b);
/* In the order of the mesh, in place; merged where one begins where another ends: how many are left. */
void sdy_axes_sort(sdy_axis *v, uint32_t n, const sdy_mesh *mesh);
uint32_t sdy_axes_sort_and_merge(sdy_axis *v, uint32_t n, const sdy_mesh *mesh);

/* --- shardings of values: sdy_value.c. What is attached to the value itself; what flows along edges (arguments of
 * regions, values that have an sdy.data_flow_edge) comes after. --- */
/* Any op of the dialect. */
bool sdy_is_op(const ir_op *op);
/* all_gather, all_slice, all_to_all, collective_permute, all_reduce, reduce_scatter, sharded_to_unreduced,
 * replicated_to_unreduced: the sharding of their result is in out_sharding. */
bool sdy_is_collective(const ir_op *op);
/* Where an op keeps the sharding of its one result: "sharding", "out_sharding"; NULL where it has a list. */
const char *sdy_own_key(const ir_op *op);
/* A function's argument: "sdy.sharding"; an op that keeps one sharding: that; a result: its part of the op's list. NULL
 * where there is none. */
const sdy_sharding *sdy_get(ir_value v);
/* Attaches it. Other results of the op get open shardings (rank of their types) where they had none. false when out of
 * memory. */
XLAC_MUST_USE bool sdy_set(ir_value v, const sdy_sharding *s);
/* A function's result. */
const sdy_sharding *sdy_get_result(const ir_computation *f, uint32_t i);
XLAC_MUST_USE bool sdy_set_result(ir_computation *f, uint32_t i, const sdy_sharding *s);
/* The list of an op's results: "sdy.sharding", or out_shardings of a manual or named computation; or NULL. */
const sdy_shardings *sdy_get_list(const ir_op *op);
XLAC_MUST_USE bool sdy_set_list(ir_op *op, const sdy_shardings *list); /* NULL removes it */
uint32_t sdy_rank(const ir_type *type);                                /* of a tensor; 0 of anything else */

/* --- data flow: sdy_value.c. An edge is a set of values that must be sharded alike: sources (operands of the op, and
 * what its regions return) flow to targets (its results and its regions' arguments). One target owns the edge. --- */
/* while, case, optimization_barrier, manual_computation, named_computation. */
bool sdy_is_flow_op(const ir_op *op);
/* The owner of the edge that has `target`; false where it is the target of none. */
bool sdy_owner(ir_value target, ir_value *owner);
/* The sdy.data_flow_edge whose input is the owner, or NULL. Linear in the uses of the owner's op. */
ir_op *sdy_edge_op(ir_value owner);
/* What the op says of an owner of its own edges: of results their list, of a manual or named computation's arguments
 * in_shardings; the manual axes are left out for arguments, and are there for results. Setting gives other owners open
 * shardings where there was no list. */
const sdy_sharding *sdy_get_owner(ir_module *m, ir_value owner);
XLAC_MUST_USE bool sdy_set_owner(ir_value owner, const sdy_sharding *s);
/* The sharding of a value as all see it: that of its edge, of the owner of its edge, or its own. NULL: none. */
const sdy_sharding *sdy_shown(ir_module *m, ir_value v);
XLAC_MUST_USE bool sdy_show(ir_value v, const sdy_sharding *s); /* sets that; nothing where there is no place for it */
/* How often a value is used, returns included: 0, 1, or 2 for more. */
uint32_t sdy_uses_up_to_2(ir_value v);
/* Without its manual (or, `manual`, without its free) axes. The same where there are none to take. */
const sdy_sharding *sdy_without_axes(ir_module *m, const sdy_sharding *s, const sdy_names *axes, bool manual);
/* What `outer` says of manual axes with what `free` says of all others. */
const sdy_sharding *sdy_with_free_axes(ir_module *m, const sdy_sharding *outer, const sdy_sharding *free,
                                       const sdy_names *axes);
/* Whether the list has the name. */
bool sdy_is_manual_axis(const sdy_names *axes, const base_istr *name);
/* The axes of a that are not in b, split where b has parts of them; into v, of room for a.n + b.n. How many. */
uint32_t sdy_axes_minus(sdy_axes a, sdy_axes b, const sdy_mesh *mesh, sdy_axis *v);
/* An axis after others, merged with the last where they meet; v has room for n + 1. How many there are then. */
uint32_t sdy_axes_append(sdy_axis *v, uint32_t n, sdy_axis a, const sdy_mesh *mesh);

#endif
