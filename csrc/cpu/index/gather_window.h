/* The windows of gather and scatter, with all that depends on shapes alone found beforehand: for each index vector a
 * place in a big array and one in a small one. */
#ifndef XLAC_CPU_INDEX_GATHER_WINDOW_H
#define XLAC_CPU_INDEX_GATHER_WINDOW_H

#include "../../interp/algorithm/windows.h"
#include "../move/move.h"
#include "../run.h"

/* Bytes from one window to the next along a dimension of the indices. */
typedef struct cpu_window_batch {
  int64_t n, index, small, big;
} cpu_window_batch;

/* A component of the index vector: its highest value in range, and what a step means in the big array. */
typedef struct cpu_window_index {
  int64_t limit, stride;
} cpu_window_index;

typedef struct cpu_windows {
  uint8_t dtype; /* of the indices */
  int64_t count; /* of windows; 0 where nothing can be in range */
  uint32_t n_batch, n_index;
  int64_t component; /* bytes between components */
  const cpu_window_batch *batch;
  const cpu_window_index *index;
  bool disjoint;   /* windows at different places share no element */
  uint32_t n_dims; /* of a window, merged; strides in bytes: `to` in the small array, `from` in the big one */
  const cpu_move_dim *dims;
} cpu_windows;

/* As interp_windows_make; types in place of values. false when out of memory. */
bool cpu_windows_make(cpu_windows *w, base_arena *arena, const interp_window_dims *a, const ir_type *indices,
                      const ir_type *big, const int64_t *slices, const ir_type *small);

/* What a step's routine has of them, and by which op a scatter combines (NULL: the update is the new value); NULL where
 * the step is no such routine. gather.c, scatter.c */
const cpu_windows *cpu_gather_windows(const cpu_executable *exe, const plan_step *s);
const cpu_windows *cpu_scatter_windows(const cpu_executable *exe, const plan_step *s, const ir_op **by);

/* Where the walk is: windows in the order of the indices. */
typedef struct cpu_window_walk {
  const cpu_windows *w;
  int64_t at[IR_MAX_RANK], index, small, big; /* bytes, without what the index says */
} cpu_window_walk;
void cpu_window_walk_begin(cpu_window_walk *x, const cpu_windows *w, int64_t first);
/* Up to the end of the innermost batch dimension: how many windows follow with the same steps. */
static inline int64_t cpu_window_walk_line(const cpu_window_walk *x) {
  return x->w->n_batch ? x->w->batch[x->w->n_batch - 1].n - x->at[x->w->n_batch - 1] : 1;
}
/* n windows further, at most to the end of the line. */
void cpu_window_walk_next(cpu_window_walk *x, int64_t n);

/* An index of any integer type. The common ones come first: this stands in loops. */
static inline int64_t cpu_window_load(base_dtype t, const char *p) {
  int32_t small;
  uint32_t natural;
  if (t == XLAC_S32) return memcpy(&small, p, sizeof small), small;
  if (t == XLAC_U32) return memcpy(&natural, p, sizeof natural), natural;
  return interp_index(t, p);
}

/* Where the window with this index begins in the big array, after what the walk says; false where it does not fit. */
static inline bool cpu_window_offset(const cpu_windows *w, const char *index, int64_t *offset) {
  int64_t sum = 0;
  /* What most programs have. */
  if (w->n_index == 1 && w->dtype == XLAC_S32) {
    int32_t v = 0;
    memcpy(&v, index, sizeof v);
    *offset = v * w->index->stride;
    return v >= 0 && v <= w->index->limit;
  }
  for (uint32_t i = 0; i < w->n_index; i++) {
    int64_t v = cpu_window_load((base_dtype)w->dtype, index + i * w->component);
    if (v < 0 || v > w->index[i].limit) return false;
    sum += v * w->index[i].stride;
  }
  *offset = sum;
  return true;
}

/* From a row of a window (along the innermost dimension) to the next: at[] counts the other dimensions, from zeros on.
 * false where that was the last. */
static inline bool cpu_window_next_row(const cpu_windows *w, int64_t *at, int64_t *big, int64_t *small) {
  for (uint32_t d = w->n_dims - 1; d > 0; d--) {
    const cpu_move_dim *dim = &w->dims[d - 1];
    *big += dim->from;
    *small += dim->to;
    if (++at[d - 1] < dim->n) return true;
    *big -= dim->from * at[d - 1];
    *small -= dim->to * at[d - 1];
    at[d - 1] = 0;
  }
  return false;
}

#endif
