/* The custom call tridiagonal_solve_perturbed_ffi, as jaxlib has it: tridiagonal systems, singular ones too. Operands:
 * the diagonals below, main and above, each [..., n], and right sides [..., n, k] in column-major order. */
#include <complex.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>

#include "linalg/lapack_inside.h"
#include "own_calls.h"

/* One call: `batch` systems of n equations and k right sides each, which are independent of each other. */
typedef struct tridiagonal_job {
  xlac_ffi_frame *frame;
  int64_t batch, n, k;
  size_t element;
  atomic_bool failed;
} tridiagonal_job;

#define TD_NUMBER float
#define TD_REAL float
#define TD_NAME(x) tridiagonal_f32_##x
#define TD_ABS fabsf
#define TD_RE(v) (v)
#define TD_LEAST FLT_MIN
#define TD_EPSILON FLT_EPSILON
#include "tridiagonal_loops.h"

#define TD_NUMBER double
#define TD_REAL double
#define TD_NAME(x) tridiagonal_f64_##x
#define TD_ABS fabs
#define TD_RE(v) (v)
#define TD_LEAST DBL_MIN
#define TD_EPSILON DBL_EPSILON
#include "tridiagonal_loops.h"

#define TD_NUMBER float complex
#define TD_REAL float
#define TD_NAME(x) tridiagonal_c64_##x
#define TD_ABS cabsf
#define TD_RE(v) crealf(v)
#define TD_LEAST FLT_MIN
#define TD_EPSILON FLT_EPSILON
#include "tridiagonal_loops.h"

#define TD_NUMBER double complex
#define TD_REAL double
#define TD_NAME(x) tridiagonal_c128_##x
#define TD_ABS cabs
#define TD_RE(v) creal(v)
#define TD_LEAST DBL_MIN
#define TD_EPSILON DBL_EPSILON
#include "tridiagonal_loops.h"

/* Systems begin .. end, one after another in the same memory: U's three diagonals. Out of memory is noted for the
 * end, since ranges can't fail. */
static void tridiagonal_range(void *ctx, uint64_t begin, uint64_t end) {
  assert(begin <= end);
  tridiagonal_job *j = ctx;
  char *memory = j->frame->allocate(j->frame, (uint64_t)j->n * 3 * j->element);
  if (!memory) {
    atomic_store(&j->failed, true);
    return;
  }
  switch (j->frame->operands[0].dtype) {
    case XLAC_FFI_F32:
      tridiagonal_f32_items(j, memory, begin, end);
      return;
    case XLAC_FFI_F64:
      tridiagonal_f64_items(j, memory, begin, end);
      return;
    case XLAC_FFI_C64:
      tridiagonal_c64_items(j, memory, begin, end);
      return;
    default:
      tridiagonal_c128_items(j, memory, begin, end);
  }
}

static bool tridiagonal_same_dims(const xlac_ffi_buffer *a, const xlac_ffi_buffer *b, uint32_t rank) {
  for (uint32_t i = 0; i < rank; i++)
    if (a->dims[i] != b->dims[i]) return false;
  return true;
}

static bool tridiagonal_is_row_major(const xlac_ffi_buffer *b) {
  for (uint32_t i = 0; i < b->rank; i++)
    if (b->minor_to_major[i] != (int64_t)(b->rank - 1 - i)) return false;
  return true;
}

/* Types, shapes and layouts. jaxlib asks for column-major right sides, as LAPACK has them. */
static int tridiagonal_check(xlac_ffi_frame *f) {
  if (f->n_operands != 4 || f->n_results != 1) return f->fail(f, "%s takes 4 operands and gives 1 result", f->target);
  const xlac_ffi_buffer *d = &f->operands[1], *b = &f->operands[3], *x = &f->results[0];
  uint32_t t = d->dtype;
  if (t != XLAC_FFI_F32 && t != XLAC_FFI_F64 && t != XLAC_FFI_C64 && t != XLAC_FFI_C128)
    return f->fail(f, "%s is for f32, f64, c64 and c128", f->target);
  bool fits = d->rank >= 1 && b->rank == d->rank + 1 && x->rank == b->rank && tridiagonal_same_dims(d, b, d->rank) &&
              tridiagonal_same_dims(b, x, b->rank) && b->dtype == t && x->dtype == t;
  for (int i = 0; fits && i < 3; i++)
    fits = f->operands[i].rank == d->rank && f->operands[i].dtype == t &&
           tridiagonal_same_dims(&f->operands[i], d, d->rank);
  if (!fits) return f->fail(f, "%s takes three diagonals [..., n] and right sides [..., n, k] of one type", f->target);
  for (int i = 0; i < 3; i++)
    if (!tridiagonal_is_row_major(&f->operands[i])) return f->fail(f, "a diagonal of %s is not row-major", f->target);
  if (!lapack_is_column_major(b) || !lapack_is_column_major(x))
    return f->fail(f, "the right sides of %s are not column-major", f->target);
  return 0;
}

int cpu_own_tridiagonal(xlac_ffi_frame *frame) {
  TRY(tridiagonal_check(frame));
  const xlac_ffi_buffer *b = &frame->operands[3];
  tridiagonal_job j = {.frame = frame, .batch = 1, .n = b->dims[b->rank - 2], .k = b->dims[b->rank - 1]};
  if (b->count == 0) return 0;
  for (uint32_t i = 0; i + 2 < b->rank; i++) j.batch *= b->dims[i];
  j.element = (size_t)(b->bytes / (uint64_t)b->count);
  atomic_init(&j.failed, false);
  assert(j.n > 0 && j.k > 0);
  uint64_t grain = (uint64_t)(1 + (1 << 14) / (j.n * (j.k + 8)));
  frame->parallel_for(frame, (uint64_t)j.batch, grain, tridiagonal_range, &j);
  return atomic_load(&j.failed) ? frame->fail(frame, "out of memory for the factors of a tridiagonal matrix") : 0;
}
