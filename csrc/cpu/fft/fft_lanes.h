/* Fourier transforms of several lines side by side. A line's element k stands at k * lanes + lane, real and
 * imaginary parts in arrays of their own, so that every loop runs over neighbours in memory, whatever the length;
 * a butterfly is then the same code for all lanes, without shuffles. Internal to fft/. */
#ifndef XLAC_CPU_FFT_FFT_LANES_H
#define XLAC_CPU_FFT_FFT_LANES_H

#include "../../base/memory.h"
#include "../../base/status.h"
#include "../../runtime/threads.h"
#include "../../interp/algorithm/fft.h"

/* Passes: a length below 2^63 has at most 63 factors. LANES: lines at a time. POLL: numbers between two looks at
 * whether to stop. */
enum {
  FFT_LANES_MAX_PASSES = 64,
  FFT_LANES_MAX_PRIME = 31,
  FFT_LANES = 16,
  FFT_LANES_EXACT = 1 << 12,
  FFT_LANES_POLL = 1 << 20
};

/* One pass: m groups of `radix` elements, `stride` lines of partial results side by side; radix * m * stride is
 * the length. */
typedef struct fft_lanes_pass {
  uint32_t radix;
  int64_t m, stride;
  const void *twiddles; /* m times radix - 1 complex numbers */
  const void *roots;    /* radix of them, for radices without code of their own */
} fft_lanes_pass;

/* Immutable, in the arena it was made in. */
typedef struct fft_lanes_plan fft_lanes_plan;
/* How a length is transformed. Forward: inverses swap real and imaginary parts before and after. */
struct fft_lanes_plan {
  int64_t n, size; /* size: elements that a line takes in each array, at least n */
  uint32_t n_passes;
  fft_lanes_pass passes[FFT_LANES_MAX_PASSES];
  /* Where n has a large prime factor: a convolution with the chirp, by transforms of length inner->n. */
  const fft_lanes_plan *inner;
  const void *chirp, *kernel;
};

/* exp(-2 pi i k / n) for all k < n. For many of them as products of two of few roots: an ulp or two off, and many
 * times faster than a sine and a cosine each. Needed only while a plan is made. */
typedef struct fft_lanes_roots {
  int64_t n, fine;
  int shift;
  cplx *at; /* of the first `fine` numbers, then of the multiples of `fine` */
  base_alloc alloc;
} fft_lanes_roots;
bool fft_lanes_roots_make(fft_lanes_roots *r, int64_t n, base_alloc alloc); /* false: out of memory */
void fft_lanes_roots_free(fft_lanes_roots *r);
static inline cplx fft_lanes_root(const fft_lanes_roots *r, int64_t k) {
  if (r->fine == r->n) return r->at[k];
  return cplx_mul(r->at[k & (r->fine - 1)], r->at[r->fine + (k >> r->shift)]);
}

/* The plan for lines of length n, in `arena`. is_double: the numbers it works on are double, else float. Fails
 * only when out of memory. */
XLAC_MUST_USE int fft_lanes_make(int64_t n, bool is_double, base_arena *arena, const fft_lanes_plan **out,
                                 xlac_error *err);

/* Where lines are: element k of lane l at 2 * (k * along + l * across) in numbers, real and imaginary part. */
typedef struct fft_lanes_place {
  int64_t along, across;
} fft_lanes_place;

typedef enum fft_lanes_kind {
  FFT_LANES_COMPLEX,
  FFT_LANES_REAL_IN,      /* real lines, all of their spectrum's first half: any length */
  FFT_LANES_REAL_OUT,     /* the other way round */
  FFT_LANES_REAL_IN_HALF, /* even lengths: pairs of reals are complex numbers of a transform of half the length */
  FFT_LANES_REAL_OUT_HALF
} fft_lanes_kind;

/* What is done to groups of lines. For REAL kinds the place on the real side counts reals. */
typedef struct fft_lanes_job {
  const fft_lanes_plan *plan;
  fft_lanes_kind kind;
  bool inverse;
  double scale;     /* of the results; 1: none */
  const void *half; /* HALF: exp(-2 pi i k / n) for k <= n / 2 */
  /* NULL, or what results are multiplied with: element k of line l by number k * lines + l. */
  const void *twiddle_re, *twiddle_im;
  int64_t lines;
  fft_lanes_place in, out;
  rt_pool *pool; /* that may be told to stop: what is written is then undefined. NULL: never */
} fft_lanes_job;

/* Transforms `lanes` lines, of which the first has number `line`; in and out point at that one, and may be the same.
 * work: 4 * (plan->size + 1) * lanes numbers. */
typedef void fft_lanes_fn(const fft_lanes_job *job, int64_t line, int64_t lanes, const void *in, void *out, void *work);
/* For this machine. */
fft_lanes_fn *fft_lanes_choose(bool is_double);

#endif
