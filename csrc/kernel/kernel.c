/* Kernels as data: their iterations and indexes, and what follows from them (how far an index reaches, whether it
 * walks memory in order, into how many pieces a reduction is cut). Nothing here depends on a backend. */
#include "kernel.h"

/* What goes through a kernel's dimensions. Everything that has an entry for each of the kernel's dimensions, besides
 * its extents. */
typedef struct kernel_walks {
  uint32_t n, n_boxes;
  kernel_index *const *indexes;
  kernel_box *const *boxes;
} kernel_walks;

/* Dimensions d and d + 1 can be one: every index steps through them without a gap, and every box has all of d + 1. */
static bool kernel_mergeable(const kernel *k, uint32_t d, const kernel_walks *w) {
  assert(d + 1 < k->rank);
  for (uint32_t i = 0; i < w->n; i++)
    if (w->indexes[i]->strides[d] != w->indexes[i]->strides[d + 1] * k->extents[d + 1]) return false;
  for (uint32_t i = 0; i < w->n_boxes; i++)
    if (w->boxes[i]->from[d + 1] != 0 || w->boxes[i]->to[d + 1] != k->extents[d + 1]) return false;
  return true;
}

/* Later dimensions move down by one, in all that goes through them. */
static void kernel_drop_dim(kernel *k, uint32_t d, const kernel_walks *w) {
  assert(d < k->rank);
  k->rank--;
  for (uint32_t j = d; j < k->rank; j++) {
    k->extents[j] = k->extents[j + 1];
    for (uint32_t i = 0; i < w->n; i++) w->indexes[i]->strides[j] = w->indexes[i]->strides[j + 1];
    for (uint32_t i = 0; i < w->n_boxes; i++) {
      w->boxes[i]->from[j] = w->boxes[i]->from[j + 1];
      w->boxes[i]->to[j] = w->boxes[i]->to[j + 1];
    }
  }
}

/* [4,3] with strides 3 and 1 becomes [12] with stride 1. A kernel without iterations stays as it is: its extents say
 * why it has none. From the innermost dimension out, so that what has been merged may be merged again. */
void kernel_collapse(kernel *k, uint32_t n, kernel_index *const *indexes, uint32_t n_boxes, kernel_box *const *boxes) {
  assert(k->rank <= KERNEL_MAX_RANK);
  const kernel_walks w = {n, n_boxes, indexes, boxes};
  if (k->count == 0) return;
  for (uint32_t d = k->rank; d-- > 0;)
    if (k->extents[d] == 1) kernel_drop_dim(k, d, &w);
  for (uint32_t d = k->rank; d-- > 1;) {
    if (!kernel_mergeable(k, d - 1, &w)) continue;
    int64_t inner = k->extents[d];
    k->extents[d] *= k->extents[d - 1];
    for (uint32_t i = 0; i < n_boxes; i++) {
      boxes[i]->from[d] = boxes[i]->from[d - 1] * inner;
      boxes[i]->to[d] = boxes[i]->to[d - 1] * inner;
    }
    kernel_drop_dim(k, d - 1, &w);
  }
}

bool kernel_box_has(const kernel *k, const kernel_box *in, const kernel_box *b) {
  assert(k);
  for (uint32_t d = 0; in && d < k->rank; d++) {
    int64_t from = b ? b->from[d] : 0, to = b ? b->to[d] : k->extents[d];
    if (from < in->from[d] || to > in->to[d]) return false;
  }
  return true;
}

/* XLA clamps the starts of a dynamic-slice so that the slice lies within the array; `last` is where that ends. In
 * elements: a stride times a place of 0..last. */
int64_t kernel_base_at(const kernel_base *base, base_dtype t, const void *from) {
  assert(base->last >= 0);
  int64_t v = base_load_i64(t, from);
  if (v < 0 && base_dtype_is_unsigned(t)) v = base->last; /* more than an int64_t can be */
  return base->stride * (v < 0 ? 0 : v > base->last ? base->last : v);
}

/* Dimensions of extent 1 may have any stride. */
bool kernel_is_dense(const kernel *k, const kernel_index *index) {
  int64_t stride = 1;
  for (uint32_t d = k->rank; d-- > 0;) {
    if (k->extents[d] != 1 && index->strides[d] != stride) return false;
    stride *= k->extents[d];
  }
  return true;
}

/* A dimension of extent 1 does not move an index. */
bool kernel_is_constant(const kernel *k, const kernel_index *index) {
  for (uint32_t d = 0; d < k->rank; d++)
    if (k->extents[d] != 1 && index->strides[d] != 0) return false;
  return true;
}

bool kernel_is_same(const kernel *k, uint32_t i) {
  bool same[KERNEL_MAX_VALUES];
  assert(i < k->n_values && k->n_values <= KERNEL_MAX_VALUES);
  for (uint32_t at = 0; at <= i; at++) {
    const kernel_value *v = &k->values[at];
    bool has_index = v->kind == KERNEL_LOAD || v->kind == KERNEL_COUNT_UP;
    same[at] =
        v->kind != KERNEL_PICK && v->kind != KERNEL_SCAN && !v->box && (!has_index || kernel_is_constant(k, v->index));
    for (uint32_t j = 0; j < v->n_in; j++) same[at] = same[at] && same[v->in[j]];
  }
  return same[i];
}

/* Its places are few. */
bool kernel_is_gather(const kernel *k, const kernel_value *v) {
  assert(v->kind == KERNEL_LOAD);
  for (uint32_t j = 0; j < v->n_in; j++)
    if (!kernel_is_same(k, v->in[j])) return true;
  return false;
}

/* Fewer elements than KERNEL_PIECE are not worth a piece of their own; KERNEL_LANES inner elements are one task. */
enum { KERNEL_PIECE = 1 << 15, KERNEL_MAX_PIECES = 32, KERNEL_LANES = 1024 };

/* Where outer and inner dimensions keep enough threads busy nothing is cut. It must not depend on the number of
 * threads: sums of floats would then differ between machines. */
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

int64_t kernel_partial_bytes(const kernel *k, const kernel_store *s) {
  assert(k->reduction && s->value < k->n_values);
  /* narrow floats are summed in f32 */
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)k->values[s->value].dtype);
  /* Rounded up to cache lines, so that the partial results of two stores share none. */
  bytes = kernel_pieces(k) * k->reduction->outer * k->reduction->inner * (bytes < 4 ? 4 : bytes);
  return (bytes + 63) & ~(int64_t)63;
}

/* 0 where nothing is cut. */
int64_t kernel_scratch_bytes(const kernel *k) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < k->n_stores && kernel_pieces(k) > 1; i++)
    if (k->stores[i].by) bytes += kernel_partial_bytes(k, &k->stores[i]);
  return bytes;
}

bool kernel_loop_of(const kernel *k, uint32_t i, scalar_loop *l) {
  const kernel_value *v = &k->values[i];
  uint8_t in[3] = {0, 0, 0};
  assert(v->kind == KERNEL_OP && v->n_in <= 3);
  for (uint32_t j = 0; j < v->n_in; j++) in[j] = k->values[v->in[j]].dtype;
  return scalar_loop_of(&v->op, v->n_in, in, v->dtype, l);
}

/* All scans of a kernel go one way (kverify_scan), so the first tells of all. */
bool kernel_find_scans(const kernel *k, kernel_scans *s) {
  assert(s);
  *s = (kernel_scans){1, 1, false};
  for (uint32_t i = 0; i < k->n_values; i++) {
    const kernel_value *v = &k->values[i];
    if (v->kind != KERNEL_SCAN) continue;
    for (uint32_t d = k->rank; d-- > 0;) {
      s->inner = s->span;
      s->span *= k->extents[d];
      s->back = v->index->strides[d] < 0;
      if (v->index->strides[d]) return true;
    }
    *s = (kernel_scans){1, 1, false}; /* each iteration is one by itself */
    return true;
  }
  return false;
}

/* Adds stride * first to both ends, and what the way from there to `last` adds to one. False on overflow. */
static bool kernel_stretch(int64_t stride, int64_t first, int64_t last, int64_t *least, int64_t *most) {
  assert(first <= last);
  int64_t near = 0, far = 0, *end = stride < 0 ? least : most;
  if (!base_mul_i64(first, stride, &near) || !base_add_i64(*least, near, least) || !base_add_i64(*most, near, most))
    return false;
  return base_mul_i64(last - first, stride, &far) && base_add_i64(*end, far, end);
}

/* box NULL: all iterations. False on overflow, and where there is no iteration. */
static bool kernel_reach_within(const kernel *k, const kernel_index *index, const kernel_box *box, int64_t *least,
                                int64_t *most) {
  *least = *most = index->offset;
  for (uint32_t d = 0; d < k->rank; d++) {
    int64_t from = box ? box->from[d] : 0, to = box ? box->to[d] : k->extents[d];
    if (from >= to || !kernel_stretch(index->strides[d], from, to - 1, least, most)) return false;
  }
  return true;
}

bool kernel_reach(const kernel *k, const kernel_index *index, int64_t *least, int64_t *most) {
  return kernel_reach_within(k, index, NULL, least, most);
}

bool kernel_load_reach(const kernel *k, const kernel_value *v, int64_t *least, int64_t *most) {
  if (!kernel_reach_within(k, v->index, v->box, least, most)) return false;
  for (uint32_t j = 0; j < v->n_in; j++)
    if (!kernel_stretch(v->bases[j].stride, 0, v->bases[j].last, least, most)) return false;
  return true;
}
