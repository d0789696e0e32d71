/* Where windows fall: for one element of a window, the placements (output positions) at which it meets an element of
 * the operand rather than padding or a hole of base dilation. Serves reduce-window, select-and-scatter and convolution.
 */
#ifndef XLAC_INTERP_ALGORITHM_PLACEMENT_H
#define XLAC_INTERP_ALGORITHM_PLACEMENT_H

#include "arrays.h"

/* Output positions first, first + step, ... (count of them) meet operand positions from, from + from_step, ... */
typedef struct interp_placement {
  int64_t first, count, step;
  int64_t from, from_step;
} interp_placement;

/* The number of placements over n operand elements: 0 where the window is larger than the padded base, -1 where its
 * size is not known, which the verifier lets pass. */
int64_t interp_window_count(const ir_window_dim *w, int64_t n);
/* The numbers of placements over an array of `sizes`, which only the run knows: fails where the window's numbers are
 * too large for them, or crop more than there is. */
XLAC_MUST_USE int interp_window_counts(interp_ctx *ctx, const ir_op *op, const ir_window *window, const int64_t *sizes,
                                       int64_t *counts);
/* Those among output positions [low, high) where window element k meets an operand element. */
interp_placement interp_window_placement(const ir_window_dim *w, int64_t n, int64_t k, int64_t low, int64_t high);
/* The window elements [*low, *high) outside of which no placement in [0, count) meets any operand element. */
void interp_window_range(const ir_window_dim *w, int64_t n, int64_t count, int64_t *low, int64_t *high);
/* The operand element at base-dilated, padded position p, or -1. */
int64_t interp_window_element(const ir_window_dim *w, int64_t n, int64_t p);

/* A walk over all elements of a window of several dims, over a part of the output. */
typedef struct interp_window_walk {
  uint32_t rank;
  const ir_window_dim *dims;
  const int64_t *n;                             /* operand sizes */
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK];  /* output part */
  int64_t begin[IR_MAX_RANK], end[IR_MAX_RANK]; /* window elements worth visiting */
  int64_t k[IR_MAX_RANK];
  bool started;
  /* The present window element's box: */
  int64_t count[IR_MAX_RANK], lanes;
  int64_t part_at, part_strides[IR_MAX_RANK];       /* in a dense array of the part */
  int64_t operand_at, operand_strides[IR_MAX_RANK]; /* in the dense operand */
  bool whole;                                       /* the box is the whole part */
} interp_window_walk;

/* `low` and `high` bound the part of the output, whose whole sizes are `counts`. */
void interp_window_walk_begin(interp_window_walk *w, const ir_window *window, const int64_t *n, const int64_t *counts,
                              const int64_t *low, const int64_t *high);
/* To the next window element that meets anything; false at the end. In row-major order. */
bool interp_window_walk_next(interp_window_walk *w);

/* The output in parts of at most `lanes` elements (or one row, if that is longer): [low, high) boxes in order. */
typedef struct interp_parts {
  uint32_t rank, split; /* dims before split are walked one by one, split in pieces */
  const int64_t *dims;
  int64_t piece;
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK];
  int64_t at, lanes; /* where the part starts in the dense output, and its element count */
} interp_parts;
/* False when the output has no elements. The first part is then in place. */
bool interp_parts_begin(interp_parts *p, uint32_t rank, const int64_t *dims, int64_t lanes);
bool interp_parts_next(interp_parts *p);

#endif
