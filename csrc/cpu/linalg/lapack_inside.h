/* LAPACK's custom calls, inside: what is found out about a call before it runs. */
#ifndef XLAC_CPU_LINALG_LAPACK_INSIDE_H
#define XLAC_CPU_LINALG_LAPACK_INSIDE_H

#include <string.h>

#include "../../base/status.h"
#include "../../include/xlac_ffi.h"
#include "lapack_table.h"

enum { LAPACK_MAX_ARGS = 20 };

/* Fortran passes pointers, and after them the lengths of the character arguments. All routines are called as one with
 * the most arguments: surplus ones are not looked at. */
typedef void lapack_fn(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *, void *,
                       void *, void *, void *, void *, void *, void *, void *, void *);

typedef struct lapack_job lapack_job;
/* One item of a routine on small matrices, whose first two slots lie there (small.h); gives LAPACK's info. */
typedef int32_t lapack_small_fn(const lapack_job *j, void *first, void *second);

struct lapack_job {
  xlac_ffi_frame *frame;
  const lapack_routine *routine;
  lapack_fn *fn;
  bool is_complex, is_double;
  /* Sizes, from the main matrix and the reflectors. */
  int64_t batch, m, n, k;
  int32_t low, high;
  char letters[128]; /* by letter of args: the character of an attribute */
  size_t element;    /* bytes */
  const xlac_ffi_buffer *slots[LAPACK_SLOTS];
  int64_t items[LAPACK_SLOTS]; /* bytes of one item */
  int32_t ld[LAPACK_SLOTS];
  /* What the routine asked for; -1 while it is asked. */
  int32_t lwork, lrwork, liwork;
  bool failed;            /* out of memory */
  lapack_small_fn *small; /* NULL: the library does it */
};

/* One thread's memory. slots: where the present item's arrays are; NULL: among the frame's. */
typedef struct lapack_work {
  char *work, *rwork, *iwork, *bwork, *copy, *left, *right;
  char *slots[LAPACK_SLOTS];
} lapack_work;

static inline int64_t lapack_min(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* --- lapack_check.c: sizes, attributes and arrays, from the frame and the routine's row. A failure is the frame's.
 * *empty: there is nothing to compute. --- */
int lapack_check(lapack_job *j, bool *empty);
bool lapack_is_column_major(const xlac_ffi_buffer *b);

#endif
