/* The index arithmetic gather and scatter share: for each index vector, a window of a big array beside a window of a
 * small one (gather's result, scatter's updates), given out as rows. */
#ifndef XLAC_INTERP_ALGORITHM_WINDOWS_H
#define XLAC_INTERP_ALGORITHM_WINDOWS_H

#include "arrays.h"

/* The attributes of one op, by role. */
typedef struct interp_window_dims {
  const ir_ints *window;    /* small dims that run over a window: offset_dims, update_window_dims */
  const ir_ints *collapsed; /* big dims of which a window has one element: collapsed_slice_dims, inserted_window_dims */
  const ir_ints *index_map; /* big dim of each index component */
  const ir_ints *big_batch; /* big dims that go in step ... */
  const ir_ints *index_batch; /* ... with these dims of the indices */
  int64_t index_vector_dim;   /* == the indices' rank: every index is one number */
} interp_window_dims;

typedef struct interp_windows {
  const interp_value *indices;
  const int64_t *starts; /* the indices as int64, while interp_windows_each runs */
  bool clamp;            /* windows out of range are moved in (gather); else they are skipped (scatter) */
  uint32_t big_rank, n_window, n_batch, n_index, n_step;
  /* Window dims, merged where both arrays are contiguous; strides in elements. */
  int64_t window[IR_MAX_RANK], window_big[IR_MAX_RANK], window_small[IR_MAX_RANK];
  /* Batch dims: all dims of the indices but the index vector's. */
  int64_t batch[IR_MAX_RANK], batch_small[IR_MAX_RANK], batch_index[IR_MAX_RANK];
  uint32_t index_dim[IR_MAX_RANK];                         /* big dim of index component i */
  int64_t index_stride;                                    /* between components */
  uint32_t step_big[IR_MAX_RANK], step_batch[IR_MAX_RANK]; /* big dim that follows a batch dim */
  int64_t big_stride[IR_MAX_RANK], limit[IR_MAX_RANK];     /* by big dim; the highest start in range, < 0: none is */
} interp_windows;

/* `slices` are the window's sizes by big dim, already no larger than the big array; `small_dims` the small array's
 * dims. */
void interp_windows_make(interp_windows *w, const interp_window_dims *a, const interp_value *indices, uint32_t big_rank,
                         const int64_t *big_dims, const int64_t *slices, uint32_t small_rank, const int64_t *small_dims,
                         bool clamp);
/* One row of a window: n elements from offset `big` with stride `big_stride`, and likewise in the small array. */
typedef int interp_row_fn(void *self, int64_t big, int64_t big_stride, int64_t small, int64_t small_stride, int64_t n);
/* Calls `row` for every row of every window in range, in the order of the indices and then of the window. */
XLAC_MUST_USE int interp_windows_each(interp_ctx *ctx, interp_windows *w, interp_row_fn *row, void *self);

/* Fails unless the indices (operand `indices`) have a component for each entry of the index map, and as many batches as
 * the big array (operand `big`). */
XLAC_MUST_USE int interp_windows_check(interp_ctx *ctx, const ir_op *op, const interp_window_dims *a,
                                       interp_value *const *operands, uint32_t big, uint32_t indices);
/* Fails unless the dimensions of the small array (operand `small`) that run over no window are those of the indices. */
XLAC_MUST_USE int interp_windows_check_small(interp_ctx *ctx, const ir_op *op, const interp_window_dims *a,
                                             interp_value *const *operands, uint32_t small, uint32_t indices);

/* A scatter's, and the extents of a window in each of the operand's `rank` dimensions; updates: the update's. */
interp_window_dims interp_scatter_dims(const ir_op *op, uint32_t rank, const int64_t *updates, int64_t *slices);

#endif
