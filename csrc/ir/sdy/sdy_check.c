/* What can be wrong with attributes in themselves, seen while they are made. */
#include <stdio.h>
#include <stdlib.h>

#include "sdy.h"

static bool sdy_fault(char *fault, size_t size, const char *format, ...) BASE_PRINTF(3, 4);
static bool sdy_fault(char *fault, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(fault, size, format, args);
  va_end(args);
  return true;
}

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

/* Whether ids, of which there are n >= 1, are 0 to n - 1 in some order. */
static bool sdy_is_permutation(const int64_t *ids, uint32_t n) {
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

bool sdy_mesh_is_broken(const sdy_mesh *mesh, char *fault, size_t size) {
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

static bool sdy_same_value(sdy_edge_value a, sdy_edge_value b) {
  return a.result == b.result && a.index == b.index;
}

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

bool sdy_edges_are_broken(const sdy_edges *edges, char *fault, size_t size) {
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
