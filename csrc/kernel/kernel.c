/* Kernels as data: their iterations and indexes. */
#include "kernel.h"

static bool kernel_mergeable(const kernel *k, uint32_t d, uint32_t n, kernel_index *const *indexes) {
  for (uint32_t i = 0; i < n; i++)
    if (indexes[i]->strides[d] != indexes[i]->strides[d + 1] * k->extents[d + 1]) return false;
  return true;
}

static void kernel_drop_dim(kernel *k, uint32_t d, uint32_t n, kernel_index *const *indexes) {
  k->rank--;
  for (uint32_t j = d; j < k->rank; j++) k->extents[j] = k->extents[j + 1];
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = d; j < k->rank; j++) indexes[i]->strides[j] = indexes[i]->strides[j + 1];
}

void kernel_collapse(kernel *k, uint32_t n, kernel_index *const *indexes) {
  if (k->count == 0) return;
  for (uint32_t d = k->rank; d-- > 0;)
    if (k->extents[d] == 1) kernel_drop_dim(k, d, n, indexes);
  for (uint32_t d = k->rank; d-- > 1;) {
    if (!kernel_mergeable(k, d - 1, n, indexes)) continue;
    int64_t inner = k->extents[d];
    for (uint32_t i = 0; i < n; i++) indexes[i]->strides[d - 1] = indexes[i]->strides[d];
    kernel_drop_dim(k, d, n, indexes);
    k->extents[d - 1] *= inner;
  }
}

bool kernel_is_dense(const kernel *k, const kernel_index *index) {
  int64_t stride = 1;
  for (uint32_t d = k->rank; d-- > 0;) {
    if (k->extents[d] != 1 && index->strides[d] != stride) return false;
    stride *= k->extents[d];
  }
  return true;
}

bool kernel_is_constant(const kernel *k, const kernel_index *index) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->extents[d] != 1 && index->strides[d] != 0) return false;
  return true;
}

enum { KERNEL_PIECE = 1 << 15, KERNEL_MAX_PIECES = 32, KERNEL_LANES = 1024 };

int64_t kernel_pieces(const kernel *k) {
  const kernel_reduction *r = k->reduction;
  if (!r || r->reduced == 0) return 1;
  int64_t busy = r->inner == 1 ? r->outer : r->outer * ((r->inner + KERNEL_LANES - 1) / KERNEL_LANES);
  if (busy >= KERNEL_MAX_PIECES) return 1;
  int64_t pieces = r->reduced * (r->inner < KERNEL_LANES ? r->inner : KERNEL_LANES) / KERNEL_PIECE;
  if (pieces > KERNEL_MAX_PIECES) pieces = KERNEL_MAX_PIECES;
  if (pieces > r->reduced) pieces = r->reduced;
  return pieces < 1 ? 1 : pieces;
}

int64_t kernel_scratch_bytes(const kernel *k) {
  int64_t pieces = kernel_pieces(k);
  if (pieces == 1) return 0;
  /* narrow floats are summed in f32 */
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)k->values[k->stores[0].value].dtype);
  return pieces * k->reduction->outer * k->reduction->inner * (bytes < 4 ? 4 : bytes);
}

bool kernel_reach(const kernel *k, const kernel_index *index, int64_t *least, int64_t *most) {
  *least = *most = index->offset;
  for (uint32_t d = 0; d < k->rank; d++) {
    int64_t far = 0, *end = index->strides[d] < 0 ? least : most;
    if (k->extents[d] == 0) return false;
    if (!base_mul_i64(k->extents[d] - 1, index->strides[d], &far) || !base_add_i64(*end, far, end)) return false;
  }
  return true;
}
