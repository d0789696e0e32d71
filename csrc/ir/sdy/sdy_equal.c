/* Equality of the attributes of the sdy dialect. */
#include "sdy.h"

bool sdy_name_equal(const base_istr *a, const base_istr *b) {
  return a == b || (a && b && a->n == b->n && memcmp(a->s, b->s, a->n) == 0);
}

bool sdy_axis_equal(sdy_axis a, sdy_axis b) {
  return a.pre == b.pre && a.size == b.size && sdy_name_equal(a.name, b.name);
}

bool sdy_axes_equal(sdy_axes a, sdy_axes b) {
  if (a.n != b.n) return false;
  for (uint32_t i = 0; i < a.n; i++)
    if (!sdy_axis_equal(a.v[i], b.v[i])) return false;
  return true;
}

static bool sdy_ints_equal(sdy_ints a, sdy_ints b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.v, b.v, a.n * sizeof *a.v) == 0);
}

bool sdy_dim_equal(const sdy_dim *a, const sdy_dim *b) {
  return a->open == b->open && a->priority == b->priority && sdy_axes_equal(a->axes, b->axes);
}

bool sdy_mesh_equal(const sdy_mesh *a, const sdy_mesh *b) {
  if (a == b) return true;
  if (!a || !b || a->n_axes != b->n_axes) return false;
  for (uint32_t i = 0; i < a->n_axes; i++)
    if (a->axes[i].size != b->axes[i].size || !sdy_name_equal(a->axes[i].name, b->axes[i].name)) return false;
  return sdy_ints_equal((sdy_ints){a->n_ids, a->ids}, (sdy_ints){b->n_ids, b->ids});
}

static bool sdy_same_mesh(const sdy_sharding *a, const sdy_sharding *b) {
  return sdy_name_equal(a->mesh_name, b->mesh_name) && sdy_mesh_equal(a->mesh, b->mesh);
}

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

static bool sdy_rule_equal(const sdy_rule *a, const sdy_rule *b) {
  return a->custom == b->custom && a->n_operands == b->n_operands && a->n_results == b->n_results &&
         sdy_ints_equal(a->sizes, b->sizes) && sdy_ints_equal(a->reduction, b->reduction) &&
         sdy_ints_equal(a->need_replication, b->need_replication) && sdy_ints_equal(a->permutation, b->permutation) &&
         sdy_ints_equal(a->blocked, b->blocked) && sdy_maps_equal(a->n_operands, a->operands, b->operands) &&
         sdy_maps_equal(a->n_results, a->results, b->results);
}

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

bool sdy_equal(sdy_kind kind, const void *a, const void *b) {
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
