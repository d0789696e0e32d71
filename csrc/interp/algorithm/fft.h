/* One-dimensional complex Fourier transforms of any length, in f64. A plan is immutable once made. What is long ticks.
 */
#ifndef XLAC_INTERP_ALGORITHM_FFT_H
#define XLAC_INTERP_ALGORITHM_FFT_H

#include "../../base/memory.h"
#include "../../base/status.h"
#include "cplx.h"
#include "../interp.h"

typedef struct fft_plan fft_plan;
XLAC_MUST_USE int interp_fft_plan_create(interp_ctx *ctx, fft_plan **out, int64_t n);
void interp_fft_plan_destroy(fft_plan *p); /* NULL is fine */
/* exp(-2 pi i k / n), 0 <= k < n. */
cplx interp_fft_root(int64_t k, int64_t n);
/* How many numbers of scratch a run needs. */
size_t interp_fft_scratch(const fft_plan *p);
/* Transforms the n numbers at x in place: sum over j of x[j] exp(-2 pi i j k / n), with +2 pi i when inverse; unscaled.
 */
XLAC_MUST_USE int interp_fft_run(interp_ctx *ctx, const fft_plan *p, cplx *x, cplx *scratch, bool inverse);

#endif
