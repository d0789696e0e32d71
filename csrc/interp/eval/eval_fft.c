/* fft: FFT, IFFT, RFFT and IRFFT over the last dimensions. Computed in f64, rounded once.
 *
 * One item is the product of the transformed dimensions; the others count items. Real transforms keep half
 * of the last dimension's spectrum: RFFT of 8 numbers gives 5. */
#include "../algorithm/fft.h"
#include "../blocks.h"
#include "../sizes.h"

enum { FFT_MAX_AXES = 8 };

typedef struct fft_job {
  bool inverse, real_in, real_out;
  uint32_t n_axes;
  int64_t lengths[FFT_MAX_AXES];  /* of the transforms */
  int64_t spectrum[FFT_MAX_AXES]; /* dims of the complex side: the last is length / 2 + 1 for real transforms */
  int64_t n_lengths, n_spectrum;  /* their products */
  fft_plan *plans[FFT_MAX_AXES];
  cplx *work;    /* one item's spectrum */
  cplx *line;    /* the longest line, in full */
  cplx *scratch; /* of the plans */
  double *reals; /* one item's real side */
} fft_job;

static void fft_job_free(interp_ctx *ctx, fft_job *job) {
  for (uint32_t i = 0; i < job->n_axes; i++) interp_fft_plan_destroy(job->plans[i]);
  base_free(ctx->options.alloc, job->work);
  base_free(ctx->options.alloc, job->line);
  base_free(ctx->options.alloc, job->scratch);
  base_free(ctx->options.alloc, job->reals);
}

/* Lengths of 0 are legal and give empty or zero results. */
static int fft_job_read(interp_ctx *ctx, const ir_op *op, fft_job *job) {
  const ir_fft kind = (ir_fft)ir_get_word(op, IR_ATTR_FFT_TYPE);
  const ir_ints *lengths = ir_get_ints(op, IR_ATTR_FFT_LENGTH);
  job->real_in = kind == IR_FFT_RFFT;
  job->real_out = kind == IR_FFT_IRFFT;
  job->inverse = job->real_out || kind == IR_FFT_IFFT;
  if (lengths->n == 0 || lengths->n > FFT_MAX_AXES)
    return interp_fail(ctx, op, XLAC_E_EVAL, "fft_length must have 1 to %d numbers", FFT_MAX_AXES);
  job->n_lengths = job->n_spectrum = 1;
  uint32_t n = lengths->n;
  for (uint32_t i = 0; i < n; i++) {
    job->lengths[i] = job->spectrum[i] = lengths->v[i];
    if (i + 1 == n && (job->real_in || job->real_out) && lengths->v[i] > 0) job->spectrum[i] = lengths->v[i] / 2 + 1;
    if (lengths->v[i] < 0 || !base_mul_i64(job->n_lengths, job->lengths[i], &job->n_lengths) ||
        !base_mul_i64(job->n_spectrum, job->spectrum[i], &job->n_spectrum))
      return interp_fail(ctx, op, XLAC_E_TOO_LARGE, "fft_length is negative or too large");
  }
  job->n_axes = n;
  return 0;
}

/* What the operand must have along a transformed axis. Half the spectrum of a real line of no elements is empty by
 * StableHLO's rules, and one number by XLA's n / 2 + 1: both are taken. */
static int64_t fft_operand_size(const fft_job *job, uint32_t axis, int64_t given) {
  assert(axis < job->n_axes);
  bool half_of_nothing = job->real_out && axis + 1 == job->n_axes && job->lengths[axis] == 0;
  if (half_of_nothing && given == 1) return 1;
  return job->real_in ? job->lengths[axis] : job->spectrum[axis];
}

/* The operand's last dimensions are those that the kind of transform has. */
static int fft_job_check(interp_ctx *ctx, const ir_op *op, const fft_job *job, interp_value *const *operands) {
  const interp_value *in = operands[0];
  bool fits = in->kind == INTERP_ARRAY && ir_is_tensor(op->type) && in->rank == op->type->rank &&
              in->rank >= job->n_axes && in->rank <= IR_MAX_RANK;
  for (uint32_t axis = 0; fits && axis < job->n_axes; axis++) {
    uint32_t d = in->rank - job->n_axes + axis;
    TRY(interp_need_size(ctx, op, operands, 0, d, fft_operand_size(job, axis, in->dims[d]), "fft_length asks for"));
  }
  fits = fits && (job->real_in ? base_dtype_is_float(in->dtype) : base_dtype_is_complex(in->dtype));
  fits = fits && (job->real_out ? base_dtype_is_float(op->type->dtype) : base_dtype_is_complex(op->type->dtype));
  return fits ? 0 : interp_fail(ctx, op, XLAC_E_EVAL, "fft_length and fft_type do not fit the operand's shape");
}

/* NULL when out of memory, or on overflow. */
static void *fft_buffer(interp_ctx *ctx, int64_t n, size_t size) {
  size_t bytes;
  return base_mul((size_t)n, size, &bytes) ? base_malloc(ctx->options.alloc, bytes) : NULL;
}

/* Once for all items. */
static int fft_job_prepare(interp_ctx *ctx, fft_job *job) {
  int64_t longest = 1;
  size_t scratch = 1;
  for (uint32_t i = 0; i < job->n_axes; i++) {
    TRY(interp_fft_plan_create(ctx, &job->plans[i], job->lengths[i]));
    if (job->lengths[i] > longest) longest = job->lengths[i];
    if (interp_fft_scratch(job->plans[i]) > scratch) scratch = interp_fft_scratch(job->plans[i]);
  }
  job->work = fft_buffer(ctx, job->n_spectrum, sizeof(cplx));
  job->line = fft_buffer(ctx, longest, sizeof(cplx));
  job->scratch = fft_buffer(ctx, (int64_t)scratch, sizeof(cplx));
  job->reals = fft_buffer(ctx, job->real_in || job->real_out ? job->n_lengths : 1, sizeof(double));
  return job->work && job->line && job->scratch && job->reals ? 0 : base_oom(ctx->err, "a Fourier transform");
}

/* Complex transforms of the work array along one axis. Lines along an axis are gathered, transformed, and
 * put back. */
static int fft_axis(interp_ctx *ctx, const fft_job *job, uint32_t axis) {
  int64_t n = job->lengths[axis], inner = 1;
  assert(n > 0 && job->spectrum[axis] == n);
  for (uint32_t i = axis + 1; i < job->n_axes; i++) inner *= job->spectrum[i];
  for (int64_t line = 0; line < job->n_spectrum / n; line++) {
    cplx *at = job->work + line / inner * n * inner + line % inner;
    for (int64_t k = 0; k < n; k++) job->line[k] = at[k * inner];
    TRY(interp_fft_run(ctx, job->plans[axis], job->line, job->scratch, job->inverse));
    for (int64_t k = 0; k < n; k++) at[k * inner] = job->line[k];
    TRY(interp_tick(ctx, (uint64_t)n * 32));
  }
  return 0;
}

/* Real rows to the lower halves of their spectra. */
static int fft_real_rows(interp_ctx *ctx, const fft_job *job) {
  int64_t n = job->lengths[job->n_axes - 1], half = job->spectrum[job->n_axes - 1];
  assert(half == n / 2 + 1);
  for (int64_t row = 0; row < job->n_lengths / n; row++) {
    for (int64_t k = 0; k < n; k++) job->line[k] = cplx_of(job->reals[row * n + k], 0);
    TRY(interp_fft_run(ctx, job->plans[job->n_axes - 1], job->line, job->scratch, false));
    memcpy(job->work + row * half, job->line, (size_t)half * sizeof(cplx));
    TRY(interp_tick(ctx, (uint64_t)n * 32));
  }
  return 0;
}

/* Lower halves of spectra to real rows. What a real signal's spectrum can't have, imaginary parts of the first and (for
 * even lengths) the middle number, is ignored, as everybody does. */
static int fft_spectrum_rows(interp_ctx *ctx, const fft_job *job) {
  int64_t n = job->lengths[job->n_axes - 1], half = job->spectrum[job->n_axes - 1];
  for (int64_t row = 0; row < job->n_lengths / n; row++) {
    const cplx *from = job->work + row * half;
    assert(n - half < half);
    for (int64_t k = 0; k < half; k++) job->line[k] = from[k];
    for (int64_t k = half; k < n; k++) job->line[k] = cplx_conj(from[n - k]);
    job->line[0].im = 0;
    if (n % 2 == 0) job->line[n / 2].im = 0;
    TRY(interp_fft_run(ctx, job->plans[job->n_axes - 1], job->line, job->scratch, true));
    for (int64_t k = 0; k < n; k++) job->reals[row * n + k] = job->line[k].re;
    TRY(interp_tick(ctx, (uint64_t)n * 32));
  }
  return 0;
}

typedef struct fft_scaling {
  const fft_job *job;
  double by;
} fft_scaling;

/* Only inverses are scaled, by 1 / n. */
static void fft_scale_block(void *ctx, int64_t begin, int64_t end) {
  const fft_scaling *x = ctx;
  const fft_job *job = x->job;
  for (int64_t i = begin; job->real_out && i < end; i++) job->reals[i] *= x->by;
  for (int64_t i = begin; !job->real_out && i < end; i++) job->work[i] = cplx_scale(job->work[i], x->by);
}

/* One item from its place in the operand to its place in the result. RFFT: last axis first, then the
 * complex ones; IRFFT the other way round. */
static int fft_item(interp_ctx *ctx, const fft_job *job, base_dtype in_type, const void *in, base_dtype out_type,
                    void *out) {
  if (job->real_in) {
    TRY(interp_convert(ctx, XLAC_F64, job->reals, in_type, in, job->n_lengths));
    TRY(fft_real_rows(ctx, job));
  } else {
    TRY(interp_convert(ctx, XLAC_C128, job->work, in_type, in, job->n_spectrum));
  }
  uint32_t complex_axes = job->real_in || job->real_out ? job->n_axes - 1 : job->n_axes;
  for (uint32_t axis = complex_axes; axis-- > 0;) TRY(fft_axis(ctx, job, axis));
  if (job->real_out) TRY(fft_spectrum_rows(ctx, job));
  double scale = job->inverse ? 1.0 / (double)job->n_lengths : 1;
  fft_scaling x = {job, scale};
  if (job->inverse) TRY(interp_in_blocks(ctx, job->real_out ? job->n_lengths : job->n_spectrum, fft_scale_block, &x));
  if (job->real_out) return interp_convert(ctx, out_type, out, XLAC_F64, job->reals, job->n_lengths);
  return interp_convert(ctx, out_type, out, XLAC_C128, job->work, job->n_spectrum);
}

/* No elements: zeros, as XLA gives. */
static int fft_all_items(interp_ctx *ctx, fft_job *job, const interp_value *in, interp_value *out) {
  int64_t n_in = job->real_in ? job->n_lengths : job->n_spectrum,
          n_out = job->real_out ? job->n_lengths : job->n_spectrum;
  if (in->count == 0 || out->count == 0) {
    return interp_zero_bytes(ctx, out->data, interp_bytes(out));
  }
  assert(n_in > 0 && n_out > 0 && in->count / n_in == out->count / n_out);
  TRY(fft_job_prepare(ctx, job));
  for (int64_t item = 0; item < in->count / n_in; item++)
    TRY(fft_item(ctx, job, in->dtype, (const char *)in->data + (size_t)(item * n_in) * base_dtype_bytes(in->dtype),
                 out->dtype, (char *)out->data + (size_t)(item * n_out) * base_dtype_bytes(out->dtype)));
  return 0;
}

int interp_eval_fft(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 1);
  fft_job job = {0};
  TRY(fft_job_read(ctx, op, &job));
  TRY(fft_job_check(ctx, op, &job, operands));
  const interp_value *in = operands[0];
  int64_t dims[IR_MAX_RANK];
  const int64_t *last = job.real_out ? job.lengths : job.spectrum;
  for (uint32_t d = 0; d < in->rank; d++)
    dims[d] = d + job.n_axes < in->rank ? in->dims[d] : last[d + job.n_axes - in->rank];
  interp_value *v = interp_array(ctx, op->type->dtype, in->rank, dims);
  if (!v) return base_oom(ctx->err, "fft");
  int status = fft_all_items(ctx, &job, in, v);
  fft_job_free(ctx, &job);
  if (status != 0) return interp_release(v), status;
  *out = v;
  return 0;
}
