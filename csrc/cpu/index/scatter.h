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
/* n windows along the innermost batch dimension. */
typedef void scat_line_fn(const scat_data *s, const scat_part *part, const char *index, char *big, const char *small,
                          int64_t n);
/* n updates of a window; strides in bytes. */
typedef void scat_row_fn(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n);

/* What is known before a run. */
struct scat_data {
  cpu_windows w;
  cpu_window_batch line;
  scat_line_fn *code;
  scat_row_fn *row;
  scalar_loop loop;              /* of the body's op */
  int64_t bytes, whole, updates; /* of an element, of the array; how many updates */
};

/* The line for any window. */
scat_line_fn cpu_scatter_line;
/* Sets code and row. body: NULL where the update is the new value. */
void cpu_scatter_choose(scat_data *s, const ir_op *body);

#endif
