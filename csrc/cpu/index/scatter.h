/* scatter, inside: what is prepared, and the loops. */
#ifndef XLAC_CPU_INDEX_SCATTER_H
#define XLAC_CPU_INDEX_SCATTER_H

#include "../../scalar/loops/loops.h"
#include "gather_window.h"

/* Windows that begin elsewhere are somebody else's. A part of the array, one thread's: as long as it is that one's
 * turn, nobody else writes windows that begin there. */
typedef struct scat_part {
  const char *low, *high;
} scat_part;

typedef struct scat_data scat_data;
/* n updates of single elements at places in bytes, negative ones left out; step: between updates. */
typedef void scat_points_fn(char *big, const int64_t *at, const char *small, int64_t step, int64_t n);
/* The same, of neighbours at indexes up to limit, in elements. */
typedef void scat_dense_fn(char *big, const int32_t *at, int64_t limit, const char *small, int64_t n);
/* n windows, each a row of len neighbours on both sides, at places in bytes, negative ones left out; step: between
 * windows of updates. */
typedef void scat_rows_fn(char *big, const int64_t *at, const char *small, int64_t step, int64_t n, int64_t len);
/* n updates of a window; strides in bytes. */
typedef void scat_row_fn(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n);

/* What is known before a run. */
struct scat_data {
  cpu_windows w;
  cpu_window_batch line;
  scat_row_fn *row;
  scat_rows_fn *rows; /* of the body's op; NULL: it has none */
  int64_t row_len;    /* of a window that is one row of neighbours; 0: it is not */
  scat_dense_fn *dense;
  scat_points_fn *points;        /* where windows are single elements that have a loop */
  scalar_loop loop;              /* of the body's op */
  int64_t bytes, whole, updates; /* of an element, of the array; how many updates */
};

/* n windows along the innermost batch dimension. A window belongs to the part in which it begins, though it may reach
 * beyond: there is more than one part only where windows at different places share no element. */
void cpu_scatter_line(const scat_data *s, const scat_part *part, const char *index, char *big, const char *small,
                      int64_t n);
/* The window of updates at `small`, into the array at `big`. */
void cpu_scatter_window(const scat_data *s, char *big, const char *small);
/* Sets row and points. body: NULL where the update is the new value. */
void cpu_scatter_choose(scat_data *s, const ir_op *body);

#endif
