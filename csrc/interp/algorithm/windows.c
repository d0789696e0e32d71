/* Windows of gather and scatter. */
#include "windows.h"

#include "../blocks.h"

enum { WINDOWS_TICK = 64 };

static void windows_batch_dims(interp_windows *w, const interp_window_dims *a, const interp_value *indices,
                               uint32_t small_rank, const int64_t *small_strides) {
  int64_t strides[IR_MAX_RANK];
  uint32_t batch_of[IR_MAX_RANK], small = 0;
  interp_strides(indices->rank, indices->dims, strides);
  for (uint32_t d = 0; d < indices->rank; d++) {
    if (d == a->index_vector_dim) continue;
    while (small < small_rank && ir_ints_has(a->window, small)) small++;
    assert(small < small_rank);
    batch_of[d] = w->n_batch;
    w->batch[w->n_batch] = indices->dims[d];
    w->batch_index[w->n_batch] = strides[d];
    w->batch_small[w->n_batch++] = small_strides[small++];
  }
  w->n_step = a->big_batch->n;
  for (uint32_t i = 0; i < w->n_step; i++) {
    w->step_big[i] = (uint32_t)a->big_batch->v[i];
    w->step_batch[i] = batch_of[a->index_batch->v[i]];
  }
  w->n_index = a->index_map->n;
  for (uint32_t i = 0; i < w->n_index; i++) w->index_dim[i] = (uint32_t)a->index_map->v[i];
  w->index_stride = a->index_vector_dim < indices->rank ? strides[a->index_vector_dim] : 0;
}

/* Appends a window dim, or merges it with the one before where both arrays are contiguous over the two. */
static void windows_add_dim(interp_windows *w, int64_t n, int64_t big, int64_t small) {
  uint32_t last = w->n_window - 1;
  if (n == 1) return;
  if (w->n_window && w->window_big[last] == big * n && w->window_small[last] == small * n) {
    w->window[last] *= n;
    w->window_big[last] = big;
    w->window_small[last] = small;
    return;
  }
  w->window[w->n_window] = n;
  w->window_big[w->n_window] = big;
  w->window_small[w->n_window++] = small;
}

void interp_windows_make(interp_windows *w, const interp_window_dims *a, const interp_value *indices, uint32_t big_rank,
                         const int64_t *big_dims, const int64_t *slices, uint32_t small_rank, const int64_t *small_dims,
                         bool clamp) {
  int64_t small_strides[IR_MAX_RANK];
  uint32_t at = 0;
  memset(w, 0, sizeof *w);
  w->indices = indices;
  w->clamp = clamp;
  w->big_rank = big_rank;
  interp_strides(small_rank, small_dims, small_strides);
  interp_strides(big_rank, big_dims, w->big_stride);
  for (uint32_t d = 0; d < big_rank; d++) {
    assert(slices[d] >= 0);
    w->limit[d] = big_dims[d] - slices[d];
    if (ir_ints_has(a->collapsed, d) || ir_ints_has(a->big_batch, d)) {
      w->limit[d] = big_dims[d] - 1;
      continue;
    }
    assert(at < a->window->n);
    windows_add_dim(w, slices[d], w->big_stride[d], small_strides[a->window->v[at++]]);
  }
  windows_batch_dims(w, a, indices, small_rank, small_strides);
}

int interp_windows_check(interp_ctx *ctx, const ir_op *op, const interp_window_dims *a, interp_value *const *operands,
                         uint32_t big, uint32_t indices) {
  uint32_t vector = (uint32_t)a->index_vector_dim;
  if (vector < operands[indices]->rank)
    TRY(interp_need_size(ctx, op, operands, indices, vector, a->index_map->n, "the number of indexed dimensions is"));
  assert(a->big_batch->n == a->index_batch->n);
  for (uint32_t i = 0; i < a->big_batch->n; i++)
    TRY(interp_need_same_size(ctx, op, operands, big, (uint32_t)a->big_batch->v[i], indices,
                              (uint32_t)a->index_batch->v[i]));
  return 0;
}

int interp_windows_check_small(interp_ctx *ctx, const ir_op *op, const interp_window_dims *a,
                               interp_value *const *operands, uint32_t small, uint32_t indices) {
  uint32_t at = 0;
  for (uint32_t d = 0; d < operands[small]->rank; d++) {
    if (ir_ints_has(a->window, d)) continue;
    at += at == a->index_vector_dim;
    assert(at < operands[indices]->rank);
    TRY(interp_need_same_size(ctx, op, operands, small, d, indices, at++));
  }
  return 0;
}

/* The big array's offset of the window at this batch index; false when it is to be skipped. */
static bool windows_start(const interp_windows *w, const int64_t *batch, int64_t index_at, int64_t *start) {
  *start = 0;
  for (uint32_t i = 0; i < w->n_index; i++) {
    uint32_t d = w->index_dim[i];
    int64_t v = w->starts[index_at + i * w->index_stride];
    if (w->clamp) v = interp_clamp(v, 0, w->limit[d]);
    if (v < 0 || v > w->limit[d]) return false;
    *start += v * w->big_stride[d];
  }
  for (uint32_t i = 0; i < w->n_step; i++) {
    uint32_t d = w->step_big[i];
    if (batch[w->step_batch[i]] > w->limit[d]) return false;
    *start += batch[w->step_batch[i]] * w->big_stride[d];
  }
  return true;
}

/* All rows of one window, an odometer over the outer window dimensions. */
static int windows_rows(interp_ctx *ctx, const interp_windows *w, int64_t big, int64_t small, interp_row_fn *row,
                        void *self) {
  int64_t at[IR_MAX_RANK] = {0};
  uint32_t inner = w->n_window - 1;
  for (;;) {
    TRY(row(self, big, w->window_big[inner], small, w->window_small[inner], w->window[inner]));
    TRY(interp_tick(ctx, (uint64_t)w->window[inner]));
    uint32_t d = inner;
    for (; d > 0; d--) {
      big += w->window_big[d - 1];
      small += w->window_small[d - 1];
      if (++at[d - 1] < w->window[d - 1]) break;
      big -= w->window_big[d - 1] * w->window[d - 1];
      small -= w->window_small[d - 1] * w->window[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return 0;
  }
}

/* Nothing to do where some size is 0, or a window is larger than the array. */
static bool windows_any(const interp_windows *w) {
  for (uint32_t d = 0; d < w->n_window; d++)
    if (w->window[d] == 0) return false;
  for (uint32_t d = 0; d < w->n_batch; d++)
    if (w->batch[d] == 0) return false;
  for (uint32_t d = 0; d < w->big_rank; d++)
    if (w->limit[d] < 0) return false;
  return true;
}

/* Windows in the order of their indices: scatter's result depends on it. */
static int windows_walk(interp_ctx *ctx, const interp_windows *w, interp_row_fn *row, void *self) {
  int64_t at[IR_MAX_RANK] = {0}, small = 0, index = 0, start;
  for (;;) {
    if (windows_start(w, at, index, &start)) {
      if (w->n_window == 0)
        TRY(row(self, start, 1, small, 1, 1));
      else
        TRY(windows_rows(ctx, w, start, small, row, self));
    }
    uint32_t d = w->n_batch;
    for (; d > 0; d--) {
      index += w->batch_index[d - 1];
      small += w->batch_small[d - 1];
      if (++at[d - 1] < w->batch[d - 1]) break;
      index -= w->batch_index[d - 1] * w->batch[d - 1];
      small -= w->batch_small[d - 1] * w->batch[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return 0;
    if (d != w->n_batch || at[d - 1] % WINDOWS_TICK == 0) TRY(interp_tick(ctx, WINDOWS_TICK));
  }
}

typedef struct windows_starts {
  const interp_value *v;
  int64_t *starts;
} windows_starts;

/* u64 does not wrap round to negative places. */
static void windows_saturate(void *ctx, int64_t begin, int64_t end) {
  const windows_starts *s = ctx;
  for (int64_t i = begin; i < end; i++) s->starts[i] = interp_element_index(s->v, i);
}

int interp_windows_each(interp_ctx *ctx, interp_windows *w, interp_row_fn *row, void *self) {
  const interp_value *v = w->indices;
  if (!windows_any(w)) return 0;
  int64_t *starts = INTERP_SCRATCH(ctx, int64_t, v->count);
  if (!starts) return interp_failed(ctx);
  int status = v->dtype == XLAC_U64 ? interp_in_blocks(ctx, v->count, windows_saturate, &(windows_starts){v, starts})
                                    : interp_convert(ctx, XLAC_S64, starts, (base_dtype)v->dtype, v->data, v->count);
  w->starts = starts;
  if (status == 0) status = windows_walk(ctx, w, row, self);
  w->starts = NULL;
  interp_scratch_free(ctx, starts);
  return status;
}

interp_window_dims interp_scatter_dims(const ir_op *op, uint32_t rank, const int64_t *updates, int64_t *slices) {
  interp_window_dims a = {ir_get_ints(op, IR_ATTR_UPDATE_WINDOW_DIMS),
                          ir_get_ints(op, IR_ATTR_INSERTED_WINDOW_DIMS),
                          ir_get_ints(op, IR_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS),
                          ir_get_ints(op, IR_ATTR_INPUT_BATCHING_DIMS),
                          ir_get_ints(op, IR_ATTR_SCATTER_INDICES_BATCHING_DIMS),
                          ir_get_int(op, IR_ATTR_INDEX_VECTOR_DIM, 0)};
  uint32_t at = 0;
  for (uint32_t d = 0; d < rank; d++) {
    bool single = ir_ints_has(a.collapsed, d) || ir_ints_has(a.big_batch, d);
    assert(single || at < a.window->n);
    slices[d] = single ? 1 : updates[a.window->v[at++]];
  }
  return a;
}
