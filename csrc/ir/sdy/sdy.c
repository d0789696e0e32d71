/* The attributes of the sdy dialect: making, checking, copying and comparing them.
 *
 * One copier serves makers and importers: within a module names stay, into another they are interned anew. It copies
 * all lists, so makers may be given structs whose lists lie on the stack. A failed allocation sets `failed`, and the
 * steps after it do nothing harmful; the entry points look at it once. */
#include <stdio.h>
#include <stdlib.h>

#include "sdy.h"

/* One copy in progress. */
typedef struct sdy_copier {
  ir_module *m;
  bool names; /* intern the names anew */
  bool failed;
} sdy_copier;

/* NULL for no elements, which is no failure. */
static void *sdy_copy_bytes(sdy_copier *c, const void *from, size_t n, size_t size) {
  assert(from || !n);
  if (!n) return NULL;
  void *to = base_arena_array(&c->m->arena, n, size);
  if (!to) {
    c->failed = true;
    return NULL;
  }
  return memcpy(to, from, n * size);
}
#define SDY_COPY(c, p, n) sdy_copy_bytes((c), (p), (n), sizeof *(p))

/* NULL, no name, stays NULL. */
static const base_istr *sdy_copy_name(sdy_copier *c, const base_istr *name) {
  if (!name || !c->names) return name;
  const base_istr *to = ir_intern(c->m, name->s, name->n);
  if (!to) c->failed = true;
  return to;
}

/* An empty list where memory ran out, so that nobody walks over n axes at NULL. */
static sdy_axes sdy_copy_axes(sdy_copier *c, sdy_axes from) {
  sdy_axis *v = SDY_COPY(c, from.v, from.n);
  for (uint32_t i = 0; v && c->names && i < from.n; i++) v[i].name = sdy_copy_name(c, v[i].name);
  return (sdy_axes){v ? from.n : 0, v};
}

/* Empty where memory ran out. */
static sdy_ints sdy_copy_ints(sdy_copier *c, sdy_ints from) {
  int64_t *v = SDY_COPY(c, from.v, from.n);
  return (sdy_ints){v ? from.n : 0, v};
}

/* Axis names are the mesh's own; shardings refer to them by their bytes or, in one module, by pointer. */
static void *sdy_copy_mesh(sdy_copier *c, const sdy_mesh *from) {
  sdy_mesh *to = SDY_COPY(c, from, 1);
  if (!to) return NULL;
  sdy_mesh_axis *axes = SDY_COPY(c, from->axes, from->n_axes);
  for (uint32_t i = 0; axes && i < from->n_axes; i++) axes[i].name = sdy_copy_name(c, axes[i].name);
  to->axes = axes;
  to->ids = SDY_COPY(c, from->ids, from->n_ids);
  return to;
}

/* By value: dims lie in an array of the sharding's. */
static sdy_dim sdy_copy_dim(sdy_copier *c, const sdy_dim *from) {
  sdy_dim to = *from;
  to.axes = sdy_copy_axes(c, from->axes);
  return to;
}

/* @mesh by its name, or a mesh written in place, which is then copied along. */
static void *sdy_copy_sharding(sdy_copier *c, const sdy_sharding *from) {
  assert(!from->mesh_name || !from->mesh);
  sdy_sharding *to = SDY_COPY(c, from, 1);
  sdy_dim *dims = SDY_COPY(c, from->dims, from->n_dims);
  if (c->failed) return NULL;
  for (uint32_t i = 0; i < from->n_dims; i++) dims[i] = sdy_copy_dim(c, &from->dims[i]);
  to->dims = dims;
  to->mesh_name = sdy_copy_name(c, from->mesh_name);
  to->mesh = from->mesh ? sdy_copy_mesh(c, from->mesh) : NULL;
  to->replicated = sdy_copy_axes(c, from->replicated);
  to->unreduced = sdy_copy_axes(c, from->unreduced);
  return to;
}

/* Shardings that are m's already are shared, not copied: values of one op mostly have a few shardings among them. */
static void *sdy_copy_shardings(sdy_copier *c, const sdy_shardings *from) {
  sdy_shardings *to = SDY_COPY(c, from, 1);
  const sdy_sharding **v = SDY_COPY(c, from->v, from->n);
  if (c->failed) return NULL;
  for (uint32_t i = 0; c->names && i < from->n; i++) v[i] = sdy_copy_sharding(c, from->v[i]);
  to->v = v;
  return to;
}

/* For each tensor, for each dimension the list of its factors. */
static const sdy_tensor_map *sdy_copy_maps(sdy_copier *c, uint32_t n, const sdy_tensor_map *from) {
  sdy_tensor_map *to = SDY_COPY(c, from, n);
  for (uint32_t i = 0; to && i < n; i++) {
    sdy_ints *dims = SDY_COPY(c, from[i].dims, from[i].n_dims);
    for (uint32_t d = 0; dims && d < from[i].n_dims; d++) dims[d] = sdy_copy_ints(c, from[i].dims[d]);
    to[i].dims = dims;
  }
  return to;
}

/* Factors are numbers, so a rule has no names. */
static void *sdy_copy_rule(sdy_copier *c, const sdy_rule *from) {
  sdy_rule *to = SDY_COPY(c, from, 1);
  if (!to) return NULL;
  to->sizes = sdy_copy_ints(c, from->sizes);
  to->operands = sdy_copy_maps(c, from->n_operands, from->operands);
  to->results = sdy_copy_maps(c, from->n_results, from->results);
  to->reduction = sdy_copy_ints(c, from->reduction);
  to->need_replication = sdy_copy_ints(c, from->need_replication);
  to->permutation = sdy_copy_ints(c, from->permutation);
  to->blocked = sdy_copy_ints(c, from->blocked);
  return to;
}

/* One list of axes for each dimension. */
static void *sdy_copy_axis_lists(sdy_copier *c, const sdy_axis_lists *from) {
  sdy_axis_lists *to = SDY_COPY(c, from, 1);
  sdy_axes *v = SDY_COPY(c, from->v, from->n);
  if (c->failed) return NULL;
  for (uint32_t i = 0; i < from->n; i++) v[i] = sdy_copy_axes(c, from->v[i]);
  to->v = v;
  return to;
}

/* Dimensions are numbers; only the axes have names. */
static void *sdy_copy_params(sdy_copier *c, const sdy_params *from) {
  sdy_params *to = SDY_COPY(c, from, 1);
  sdy_param *v = SDY_COPY(c, from->v, from->n);
  if (c->failed) return NULL;
  for (uint32_t i = 0; i < from->n; i++) v[i].axes = sdy_copy_axes(c, from->v[i].axes);
  to->v = v;
  return to;
}

static void *sdy_copy_names(sdy_copier *c, const sdy_names *from) {
  sdy_names *to = SDY_COPY(c, from, 1);
  const base_istr **v = SDY_COPY(c, from->v, from->n);
  if (c->failed) return NULL;
  for (uint32_t i = 0; i < from->n; i++) v[i] = sdy_copy_name(c, from->v[i]);
  to->v = v;
  return to;
}

/* The edges of one propagation step. */
static const sdy_edge *sdy_copy_step(sdy_copier *c, const sdy_step *from) {
  sdy_edge *to = SDY_COPY(c, from->edges, from->n);
  for (uint32_t i = 0; to && i < from->n; i++) {
    to[i].axis.name = sdy_copy_name(c, to[i].axis.name);
    to[i].to = SDY_COPY(c, to[i].to, to[i].n);
  }
  return to;
}

static void *sdy_copy_edges(sdy_copier *c, const sdy_edges *from) {
  sdy_edges *to = SDY_COPY(c, from, 1);
  sdy_step *v = SDY_COPY(c, from->v, from->n);
  if (c->failed) return NULL;
  for (uint32_t i = 0; i < from->n; i++) v[i].edges = sdy_copy_step(c, &from->v[i]);
  to->v = v;
  return to;
}

/* --- kinds that are attributes of their own as well as parts of others --- */
static void *sdy_copy_axis(sdy_copier *c, const sdy_axis *from) {
  sdy_axis *to = SDY_COPY(c, from, 1);
  if (to) to->name = sdy_copy_name(c, from->name);
  return to;
}

static void *sdy_copy_list(sdy_copier *c, const sdy_axes *from) {
  sdy_axes *to = SDY_COPY(c, from, 1);
  if (to) *to = sdy_copy_axes(c, *from);
  return to;
}

static void *sdy_copy_param(sdy_copier *c, const sdy_param *from) {
  sdy_param *to = SDY_COPY(c, from, 1);
  if (to) to->axes = sdy_copy_axes(c, from->axes);
  return to;
}

static void *sdy_copy_one_dim(sdy_copier *c, const sdy_dim *from) {
  sdy_dim *to = SDY_COPY(c, from, 1);
  if (to) *to = sdy_copy_dim(c, from);
  return to;
}

/* The struct of each kind is listed in sdy.h. */
static void *sdy_copy(sdy_copier *c, sdy_kind kind, const void *from) {
  assert(from && kind > SDY_NONE && kind < SDY_KINDS);
  switch (kind) {
    case SDY_MESH:
      return sdy_copy_mesh(c, from);
    case SDY_SHARDING:
      return sdy_copy_sharding(c, from);
    case SDY_SHARDINGS:
      return sdy_copy_shardings(c, from);
    case SDY_RULE:
      return sdy_copy_rule(c, from);
    case SDY_AXIS:
      return sdy_copy_axis(c, from);
    case SDY_AXES:
      return sdy_copy_list(c, from);
    case SDY_AXIS_LISTS:
      return sdy_copy_axis_lists(c, from);
    case SDY_PARAM:
      return sdy_copy_param(c, from);
    case SDY_PARAMS:
      return sdy_copy_params(c, from);
    case SDY_MANUAL_AXES:
      return sdy_copy_names(c, from);
    case SDY_EDGES:
      return sdy_copy_edges(c, from);
    case SDY_DIM:
      return sdy_copy_one_dim(c, from);
    case SDY_NONE:
    case SDY_KINDS:
      break;
  }
  return NULL;
}

/* Names are interned in m, whichever module `what` is of. */
const void *sdy_import(ir_module *m, sdy_kind kind, const void *what) {
  assert(m && what);
  sdy_copier c = {m, true, false};
  void *to = sdy_copy(&c, kind, what);
  return c.failed ? NULL : to;
}

/* Names must be m's already. */
static const void *sdy_make(ir_module *m, sdy_kind kind, const void *what) {
  assert(m && what);
  sdy_copier c = {m, false, false};
  void *to = sdy_copy(&c, kind, what);
  return c.failed ? NULL : to;
}

const sdy_sharding *sdy_sharding_make(ir_module *m, const sdy_sharding *from) {
  return sdy_make(m, SDY_SHARDING, from);
}

const sdy_shardings *sdy_shardings_make(ir_module *m, uint32_t n, const sdy_sharding *const *v) {
  assert(v || n == 0);
  return sdy_make(m, SDY_SHARDINGS, &(sdy_shardings){n, v});
}

const sdy_rule *sdy_rule_make(ir_module *m, const sdy_rule *from) {
  return sdy_make(m, SDY_RULE, from);
}

bool sdy_axes_make(ir_module *m, sdy_axes from, sdy_axes *to) {
  assert(to);
  sdy_copier c = {m, false, false};
  *to = sdy_copy_axes(&c, from);
  return !c.failed;
}

const sdy_axis_lists *sdy_axis_lists_make(ir_module *m, uint32_t n, const sdy_axes *v) {
  return sdy_make(m, SDY_AXIS_LISTS, &(sdy_axis_lists){n, v});
}

const sdy_params *sdy_params_make(ir_module *m, uint32_t n, const sdy_param *v) {
  return sdy_make(m, SDY_PARAMS, &(sdy_params){n, v});
}

const sdy_names *sdy_names_make(ir_module *m, uint32_t n, const base_istr *const *v) {
  return sdy_make(m, SDY_MANUAL_AXES, &(sdy_names){n, v});
}

const sdy_edges *sdy_edges_make(ir_module *m, uint32_t n, const sdy_step *v) {
  return sdy_make(m, SDY_EDGES, &(sdy_edges){n, v});
}

/* {} or {?} on each dimension, without priorities. */
const sdy_sharding *sdy_sharding_empty(ir_module *m, const sdy_sharding *like, uint32_t rank, bool open) {
  assert(m && like);
  sdy_sharding *s = BASE_NEW(&m->arena, sdy_sharding);
  sdy_dim *dims = rank ? BASE_ARRAY(&m->arena, sdy_dim, rank) : NULL;
  if (!s || (rank && !dims)) return NULL;
  for (uint32_t i = 0; i < rank; i++) dims[i] = (sdy_dim){.open = open, .priority = -1};
  s->mesh_name = like->mesh_name;
  s->mesh = like->mesh;
  s->n_dims = rank;
  s->dims = dims;
  return s;
}

/* --- kinds --- */

/* As Shardy's attribute definitions call them, mnemonic by mnemonic. */
static const char *const sdy_kind_names[SDY_KINDS] = {[SDY_MESH] = "mesh",
                                                      [SDY_SHARDING] = "sharding",
                                                      [SDY_SHARDINGS] = "sharding_per_value",
                                                      [SDY_RULE] = "op_sharding_rule",
                                                      [SDY_AXIS] = "axis_ref",
                                                      [SDY_AXES] = "axis_ref_list",
                                                      [SDY_AXIS_LISTS] = "list_of_axis_ref_lists",
                                                      [SDY_PARAM] = "all_to_all_param",
                                                      [SDY_PARAMS] = "all_to_all_param_list",
                                                      [SDY_MANUAL_AXES] = "manual_axes",
                                                      [SDY_EDGES] = "propagation_edges",
                                                      [SDY_DIM] = "dimension_sharding"};

/* What stands after "#sdy.". */
const char *sdy_kind_name(sdy_kind kind) {
  assert(kind > SDY_NONE && kind < SDY_KINDS);
  return sdy_kind_names[kind];
}

/* Compared in full: "axis_ref" is not "axis_ref_list". */
sdy_kind sdy_kind_find(const char *name, size_t n) {
  for (unsigned k = SDY_NONE + 1; k < SDY_KINDS; k++)
    if (base_slice_is((base_slice){name, n}, sdy_kind_names[k])) return (sdy_kind)k;
  return SDY_NONE;
}

const ir_mattr *sdy_attr(ir_module *m, sdy_kind kind, const void *what) {
  assert(kind > SDY_NONE && kind < SDY_KINDS);
  ir_mattr *a = what ? BASE_NEW(&m->arena, ir_mattr) : NULL;
  if (!a) return NULL;
  a->kind = IR_M_SDY;
  a->sub = (uint8_t)kind;
  a->v.sdy = what;
  return a;
}

/* --- what can be wrong with attributes in themselves, seen while they are made --- */
static bool sdy_fault(char *fault, size_t size, const char *format, ...) BASE_PRINTF(3, 4);
static bool sdy_fault(char *fault, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(fault, size, format, args);
  va_end(args);
  return true;
}

/* Shardy's MeshAttr::verify, first part: sizes of at least 1, names that differ. The error texts are its own. */
static bool sdy_axes_are_broken(const sdy_mesh *mesh, char *fault, size_t size) {
  for (uint32_t i = 0; i < mesh->n_axes; i++) {
    if (mesh->axes[i].size <= 0)
      return sdy_fault(fault, size, "axis size must be at least 1, got: %lld", (long long)mesh->axes[i].size);
    if (sdy_mesh_find(mesh, mesh->axes[i].name) != (int)i)
      return sdy_fault(fault, size, "duplicate axis name: \"%s\"", mesh->axes[i].name->s);
  }
  if (sdy_mesh_size(mesh) == INT64_MAX) return sdy_fault(fault, size, "the mesh has more devices than 64 bits count");
  return false;
}

static int sdy_compare_ids(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

/* Out of memory counts as "no": the reader then reports a mesh that it could not check. Whether ids, of which there
 * are n >= 1, are 0 to n - 1 in some order. */
static bool sdy_is_permutation(const int64_t *ids, uint32_t n) {
  assert(ids && n);
  int64_t *sorted = malloc(n * sizeof *sorted);
  bool ok = sorted != NULL;
  if (sorted) {
    memcpy(sorted, ids, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, sdy_compare_ids);
    for (uint32_t i = 0; ok && i < n; i++) ok = sorted[i] == i;
  }
  free(sorted);
  return ok;
}

/* Shardy's MeshAttr::verify. A mesh without axes is empty or maximal, one device by its id. */
bool sdy_mesh_is_broken(const sdy_mesh *mesh, char *fault, size_t size) {
  assert(mesh && fault && size);
  if (sdy_axes_are_broken(mesh, fault, size)) return true;
  for (uint32_t i = 0; i < mesh->n_ids; i++)
    if (mesh->ids[i] < 0)
      return sdy_fault(fault, size, "device id must be non-negative, got: %lld", (long long)mesh->ids[i]);
  if (mesh->n_axes == 0)
    return mesh->n_ids > 1 && sdy_fault(fault, size, "axes is empty and device_ids has more than one element");
  if (mesh->n_ids == 0) return false;
  if (sdy_mesh_size(mesh) != mesh->n_ids)
    return sdy_fault(fault, size, "total product of axis sizes must match total number of device ids, got: %lld != %u",
                     (long long)sdy_mesh_size(mesh), mesh->n_ids);
  if (!sdy_is_permutation(mesh->ids, mesh->n_ids))
    return sdy_fault(fault, size, "sorted device ids must be iota(product(axes)): each of 0 to %u once",
                     mesh->n_ids - 1);
  return false;
}

/* Operand or result, and its number. */
static bool sdy_same_value(sdy_edge_value a, sdy_edge_value b) {
  return a.result == b.result && a.index == b.index;
}

/* Lists of targets are as short as an op's operands, so the square loop does. */
static bool sdy_edge_is_broken(const sdy_step *step, const sdy_edge *e, char *fault, size_t size) {
  for (uint32_t i = 0; i < e->n; i++) {
    if (sdy_same_value(e->from, e->to[i]))
      return sdy_fault(fault, size, "propagation edges have a source that is the same as a target");
    for (uint32_t k = 0; k < i; k++)
      if (sdy_same_value(e->to[k], e->to[i]))
        return sdy_fault(fault, size, "propagation edges have duplicate targets for step index: %lld and axis: %s",
                         (long long)step->index, e->axis.name->s);
  }
  return false;
}

/* Step indices are unique and not negative, in any order. */
bool sdy_edges_are_broken(const sdy_edges *edges, char *fault, size_t size) {
  assert(edges && fault && size);
  for (uint32_t i = 0; i < edges->n; i++) {
    const sdy_step *step = &edges->v[i];
    if (step->index < 0)
      return sdy_fault(fault, size, "propagation edges have negative step index: %lld", (long long)step->index);
    for (uint32_t k = 0; k < i; k++)
      if (edges->v[k].index == step->index)
        return sdy_fault(fault, size, "propagation edges have duplicate step index: %lld", (long long)step->index);
    for (uint32_t k = 0; k < step->n; k++)
      if (sdy_edge_is_broken(step, &step->edges[k], fault, size)) return true;
  }
  return false;
}

/* --- equality: across modules, so names are compared by their bytes where their pointers differ --- */
bool sdy_name_equal(const base_istr *a, const base_istr *b) {
  return a == b || (a && b && a->n == b->n && memcmp(a->s, b->s, a->n) == 0);
}

bool sdy_axis_equal(sdy_axis a, sdy_axis b) {
  return a.pre == b.pre && a.size == b.size && sdy_name_equal(a.name, b.name);
}

/* The order of a list matters: major to minor. */
bool sdy_axes_equal(sdy_axes a, sdy_axes b) {
  if (a.n != b.n) return false;
  for (uint32_t i = 0; i < a.n; i++)
    if (!sdy_axis_equal(a.v[i], b.v[i])) return false;
  return true;
}

static bool sdy_ints_equal(sdy_ints a, sdy_ints b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof *a.v) == 0);
}

/* Openness and priority count. */
bool sdy_dim_equal(const sdy_dim *a, const sdy_dim *b) {
  return a->open == b->open && a->priority == b->priority && sdy_axes_equal(a->axes, b->axes);
}

/* No list of ids is another spelling than 0, 1, 2, ... written out, and not equal to it. */
bool sdy_mesh_equal(const sdy_mesh *a, const sdy_mesh *b) {
  if (a == b) return true;
  if (!a || !b || a->n_axes != b->n_axes) return false;
  for (uint32_t i = 0; i < a->n_axes; i++)
    if (a->axes[i].size != b->axes[i].size || !sdy_name_equal(a->axes[i].name, b->axes[i].name)) return false;
  return sdy_ints_equal((sdy_ints){a->n_ids, a->ids}, (sdy_ints){b->n_ids, b->ids});
}

/* By name where both have one: that two names may stand for equal meshes is not looked into. */
static bool sdy_same_mesh(const sdy_sharding *a, const sdy_sharding *b) {
  return sdy_name_equal(a->mesh_name, b->mesh_name) && sdy_mesh_equal(a->mesh, b->mesh);
}

/* Exact equality, openness and priorities included. NULL equals NULL only. */
bool sdy_sharding_equal(const sdy_sharding *a, const sdy_sharding *b) {
  if (a == b) return true;
  if (!a || !b || a->n_dims != b->n_dims || a->reduction != b->reduction || !sdy_same_mesh(a, b)) return false;
  for (uint32_t i = 0; i < a->n_dims; i++)
    if (!sdy_dim_equal(&a->dims[i], &b->dims[i])) return false;
  return sdy_axes_equal(a->replicated, b->replicated) && sdy_axes_equal(a->unreduced, b->unreduced);
}

bool sdy_sharding_is_replicated(const sdy_sharding *s) {
  if (!s) return true;
  for (uint32_t i = 0; i < s->n_dims; i++)
    if (s->dims[i].axes.n) return false;
  return s->unreduced.n == 0;
}

/* No dimension is split; NULL has none that is. */
static bool sdy_dims_are_whole(const sdy_sharding *s) {
  for (uint32_t i = 0; s && i < s->n_dims; i++)
    if (s->dims[i].axes.n) return false;
  return true;
}

bool sdy_sharding_equivalent(const sdy_sharding *a, const sdy_sharding *b) {
  if (sdy_dims_are_whole(a)) return sdy_dims_are_whole(b);
  if (!b || a->n_dims != b->n_dims || !sdy_same_mesh(a, b)) return false;
  for (uint32_t i = 0; i < a->n_dims; i++)
    if (!sdy_axes_equal(a->dims[i].axes, b->dims[i].axes)) return false;
  return true;
}

/* --- rules, and what collectives take --- */

static bool sdy_maps_equal(uint32_t n, const sdy_tensor_map *a, const sdy_tensor_map *b) {
  for (uint32_t i = 0; i < n; i++) {
    if (a[i].n_dims != b[i].n_dims) return false;
    for (uint32_t d = 0; d < a[i].n_dims; d++)
      if (!sdy_ints_equal(a[i].dims[d], b[i].dims[d])) return false;
  }
  return true;
}

/* Counts first: the maps are then walked in step. */
static bool sdy_rule_equal(const sdy_rule *a, const sdy_rule *b) {
  return a->custom == b->custom && a->n_operands == b->n_operands && a->n_results == b->n_results &&
         sdy_ints_equal(a->sizes, b->sizes) && sdy_ints_equal(a->reduction, b->reduction) &&
         sdy_ints_equal(a->need_replication, b->need_replication) && sdy_ints_equal(a->permutation, b->permutation) &&
         sdy_ints_equal(a->blocked, b->blocked) && sdy_maps_equal(a->n_operands, a->operands, b->operands) &&
         sdy_maps_equal(a->n_results, a->results, b->results);
}

/* In the order of the values. */
static bool sdy_shardings_equal(const sdy_shardings *a, const sdy_shardings *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!sdy_sharding_equal(a->v[i], b->v[i])) return false;
  return true;
}

static bool sdy_axis_lists_equal(const sdy_axis_lists *a, const sdy_axis_lists *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!sdy_axes_equal(a->v[i], b->v[i])) return false;
  return true;
}

static bool sdy_param_equal(const sdy_param *a, const sdy_param *b) {
  return a->from == b->from && a->to == b->to && sdy_axes_equal(a->axes, b->axes);
}

static bool sdy_params_equal(const sdy_params *a, const sdy_params *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!sdy_param_equal(&a->v[i], &b->v[i])) return false;
  return true;
}

static bool sdy_names_equal(const sdy_names *a, const sdy_names *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!sdy_name_equal(a->v[i], b->v[i])) return false;
  return true;
}

/* --- edges --- */

/* Targets in their order, as they print. */
static bool sdy_edge_equal(const sdy_edge *a, const sdy_edge *b) {
  if (!sdy_axis_equal(a->axis, b->axis) || a->from.result != b->from.result || a->from.index != b->from.index)
    return false;
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->to[i].result != b->to[i].result || a->to[i].index != b->to[i].index) return false;
  return true;
}

static bool sdy_edges_equal(const sdy_edges *a, const sdy_edges *b) {
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++) {
    if (a->v[i].index != b->v[i].index || a->v[i].n != b->v[i].n) return false;
    for (uint32_t k = 0; k < a->v[i].n; k++)
      if (!sdy_edge_equal(&a->v[i].edges[k], &b->v[i].edges[k])) return false;
  }
  return true;
}

/* Both structs are of this kind; neither is NULL unless both are. */
bool sdy_equal(sdy_kind kind, const void *a, const void *b) {
  assert(kind > SDY_NONE && kind < SDY_KINDS);
  if (a == b) return true;
  switch (kind) {
    case SDY_MESH:
      return sdy_mesh_equal(a, b);
    case SDY_SHARDING:
      return sdy_sharding_equal(a, b);
    case SDY_SHARDINGS:
      return sdy_shardings_equal(a, b);
    case SDY_RULE:
      return sdy_rule_equal(a, b);
    case SDY_AXIS:
      return sdy_axis_equal(*(const sdy_axis *)a, *(const sdy_axis *)b);
    case SDY_AXES:
      return sdy_axes_equal(*(const sdy_axes *)a, *(const sdy_axes *)b);
    case SDY_AXIS_LISTS:
      return sdy_axis_lists_equal(a, b);
    case SDY_PARAM:
      return sdy_param_equal(a, b);
    case SDY_PARAMS:
      return sdy_params_equal(a, b);
    case SDY_MANUAL_AXES:
      return sdy_names_equal(a, b);
    case SDY_EDGES:
      return sdy_edges_equal(a, b);
    case SDY_DIM:
      return sdy_dim_equal(a, b);
    case SDY_NONE:
    case SDY_KINDS:
      break;
  }
  return false;
}
