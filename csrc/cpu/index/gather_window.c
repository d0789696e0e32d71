/* Windows, from the interpreter's description of them. */
#include "gather_window.h"

/* Whether windows have elements, and fit the big array at all. */
static bool wins_any(const interp_windows *w) {
  for (uint32_t d = 0; d < w->n_window; d++)
    if (w->window[d] == 0) return false;
  for (uint32_t d = 0; d < w->big_rank; d++)
    if (w->limit[d] < 0) return false;
  return true;
}

/* Bytes of the big array that a step along batch dimension d means, by batching dimensions. */
static int64_t wins_batch_big(const interp_windows *w, uint32_t d) {
  assert(d < w->n_batch);
  int64_t stride = 0;
  for (uint32_t i = 0; i < w->n_step; i++)
    if (w->step_batch[i] == d) stride += w->big_stride[w->step_big[i]];
  return stride;
}

/* Dimensions of the indices, without those of one window; neighbours that are walked as one are merged. Counts the
 * windows, too. false when out of memory. */
static bool wins_take_batch(cpu_windows *r, base_arena *arena, const interp_windows *w, int64_t index_bytes,
                            int64_t bytes) {
  assert(index_bytes > 0 && bytes > 0 && r->n_batch == 0);
  cpu_window_batch *all = BASE_ARRAY(arena, cpu_window_batch, (size_t)w->n_batch + 1);
  if (!all) return false;
  for (uint32_t d = 0; d < w->n_batch; d++) {
    cpu_window_batch b = {w->batch[d], w->batch_index[d] * index_bytes, w->batch_small[d] * bytes,
                          wins_batch_big(w, d) * bytes};
    cpu_window_batch *last = r->n_batch ? &all[r->n_batch - 1] : NULL;
    r->count *= b.n;
    if (b.n == 1) continue;
    /* Both are walked as one, in all three arrays. */
    if (last && last->index == b.index * b.n && last->small == b.small * b.n && last->big == b.big * b.n) {
      b.n *= last->n;
      *last = b;
      continue;
    }
    all[r->n_batch++] = b;
  }
  r->batch = all;
  return true;
}

/* Components of the index vector. false when out of memory. */
static bool wins_take_index(cpu_windows *r, base_arena *arena, const interp_windows *w, int64_t bytes) {
  assert(w->n_index <= IR_MAX_RANK);
  cpu_window_index *all = BASE_ARRAY(arena, cpu_window_index, (size_t)w->n_index + 1);
  if (!all) return false;
  for (uint32_t i = 0; i < w->n_index; i++)
    all[i] = (cpu_window_index){w->limit[w->index_dim[i]], w->big_stride[w->index_dim[i]] * bytes};
  r->n_index = w->n_index;
  r->index = all;
  return true;
}

/* Dimensions of a window. false when out of memory. */
static bool wins_take_dims(cpu_windows *r, base_arena *arena, const interp_windows *w, int64_t bytes) {
  assert(w->n_window <= IR_MAX_RANK);
  cpu_move_dim *all = BASE_ARRAY(arena, cpu_move_dim, (size_t)w->n_window + 1);
  if (!all) return false;
  for (uint32_t d = 0; d < w->n_window; d++)
    all[d] = (cpu_move_dim){w->window[d], w->window_small[d] * bytes, w->window_big[d] * bytes};
  r->n_dims = w->n_window;
  r->dims = all;
  return true;
}

/* The interpreter's description is of values: one without data stands for the indices. */
bool cpu_windows_make(cpu_windows *r, base_arena *arena, const interp_window_dims *a, const ir_type *indices,
                      const ir_type *big, const int64_t *slices, const ir_type *small) {
  interp_windows w;
  interp_value shape = {.kind = INTERP_ARRAY, .dtype = indices->dtype, .rank = indices->rank};
  int64_t bytes = (int64_t)base_dtype_bytes(big->dtype), index_bytes = (int64_t)base_dtype_bytes(indices->dtype);
  shape.dims = (int64_t *)(uintptr_t)indices->dims; /* only read */
  shape.count = indices->count;
  interp_windows_make(&w, a, &shape, big->rank, big->dims, slices, small->rank, small->dims, false);
  *r = (cpu_windows){.dtype = indices->dtype, .count = 1, .component = w.index_stride * index_bytes, .disjoint = true};
  /* Windows of one element along all indexed dimensions are the same place or have nothing in common. */
  for (uint32_t i = 0; i < w.n_index; i++) r->disjoint = r->disjoint && slices[w.index_dim[i]] == 1;
  if (!wins_take_batch(r, arena, &w, index_bytes, bytes) || !wins_take_index(r, arena, &w, bytes) ||
      !wins_take_dims(r, arena, &w, bytes))
    return false;
  if (!wins_any(&w)) r->count = 0;
  return true;
}

void cpu_window_walk_begin(cpu_window_walk *x, const cpu_windows *w, int64_t first) {
  assert(first >= 0 && w->n_batch <= IR_MAX_RANK);
  x->w = w;
  x->index = x->small = x->big = 0;
  for (uint32_t d = w->n_batch; d-- > 0;) {
    const cpu_window_batch *b = &w->batch[d];
    x->at[d] = first % b->n;
    first /= b->n;
    x->index += x->at[d] * b->index;
    x->small += x->at[d] * b->small;
    x->big += x->at[d] * b->big;
  }
}

/* From a line's end it carries into the dimensions before, as one step each. */
void cpu_window_walk_next(cpu_window_walk *x, int64_t n) {
  assert(n > 0 && n <= cpu_window_walk_line(x));
  for (uint32_t d = x->w->n_batch; d-- > 0; n = 1) {
    const cpu_window_batch *b = &x->w->batch[d];
    x->index += n * b->index;
    x->small += n * b->small;
    x->big += n * b->big;
    /* Past the end: back to the beginning of this dimension. */
    if ((x->at[d] += n) < b->n) return;
    x->index -= b->n * b->index;
    x->small -= b->n * b->small;
    x->big -= b->n * b->big;
    x->at[d] = 0;
  }
}
