/* Fourier transforms: axis by axis, groups of lines side by side on each thread. A long line alone is a matrix n1
 * x n2 (the four-step method): transforms of its columns, a turn by exp(-2 pi i k1 j2 / n), transforms of its
 * rows. Numbers are computed in the precision they have.
 *
 * A step transforms all lines of one axis. Complex transforms may run in place; real ones change the size of a
 * line, and an inverse real one of several axes works on a copy of its operand, the spectrum. */
#include "fft_lanes.h"
#include "../move/move.h"
#include "../routine.h"

enum {
  FFT_MAX_STEPS = 8,
  FFT_GROUP_NUMBERS = 1 << 15, /* of one group's arrays: what a thread's second-level cache has room for */
  FFT_LONG = 1 << 13,          /* a line of so many is a matrix */
  FFT_PIECE_WORK = 1 << 15
};

/* Lines of one axis: `outer` blocks, in each `inner` lines. Counted in complex numbers, or reals on a real side. */
typedef struct fft_step {
  fft_lanes_job job;
  int64_t outer, inner, in_block, out_block;
  int64_t lanes;
  bool real_in, real_out;               /* the blocks count reals */
  const fft_lanes_plan *columns, *rows; /* a long line: n = columns->n * rows->n; else NULL */
  const void *turn_re, *turn_im;        /* of a long line's matrix */
} fft_step;

/* A transform, prepared: immutable, in the plan's arena. */
typedef struct fft_routine {
  fft_lanes_fn *run;
  bool is_double, keeps_spectrum; /* the last step reads a copy in scratch memory, not the result */
  uint32_t n_steps;
  fft_step steps[FFT_MAX_STEPS];
  int64_t spectrum_bytes;
} fft_routine;

/* --- running --- */

/* One pass over lines, as ranges see it. `in`, `out`: the first block. */
typedef struct fft_run_step {
  const fft_routine *routine;
  const fft_lanes_job *job;
  const char *in;
  char *out;
  int64_t inner, lanes, groups, in_block, out_block; /* groups: of a block's lines */
  size_t in_bytes, out_bytes;                        /* of what blocks and lines count */
  base_alloc alloc;
  rt_pool *pool;
  atomic_bool *failed;
} fft_run_step;

/* For rt_parallel_for: groups of `lanes` neighbouring lines, counted over blocks. Working memory is allocated by
 * range; its want is noted in *failed. */
static void fft_groups(void *ctx, size_t begin, size_t end) {
  const fft_run_step *s = ctx;
  assert(begin <= end && s->lanes > 0 && s->lanes <= FFT_LANES);
  size_t number = s->routine->is_double ? 8 : 4;
  char *raw = base_malloc(s->alloc, (size_t)(s->job->plan->size + 1) * (size_t)s->lanes * 4 * number + 64);
  char *work = (char *)(((uintptr_t)raw + 63) & ~(uintptr_t)63);
  if (!raw) {
    atomic_store(s->failed, true);
    return;
  }
  fft_lanes_job job = *s->job;
  job.pool = s->pool;
  for (size_t g = begin; g < end; g++) {
    int64_t block = (int64_t)g / s->groups, line = (int64_t)g % s->groups * s->lanes;
    int64_t lanes = s->inner - line < s->lanes ? s->inner - line : s->lanes;
    s->routine->run(&job, line, lanes, s->in + (size_t)(block * s->in_block + line * s->job->in.across) * s->in_bytes,
                    s->out + (size_t)(block * s->out_block + line * s->job->out.across) * s->out_bytes, work);
  }
  base_free(s->alloc, raw);
}

/* All lines of `outer` blocks, each of s->inner lines. */
static void fft_run_lines(const cpu_routine_run *r, fft_run_step *s, int64_t outer) {
  assert(s->inner > 0 && s->lanes > 0 && s->job->plan && outer > 0);
  s->alloc = r->run->exe->alloc;
  s->pool = r->run->exe->pool;
  s->groups = (s->inner + s->lanes - 1) / s->lanes;
  int64_t work = s->job->plan->size * s->lanes * 8;
  size_t grain = work < FFT_PIECE_WORK ? (size_t)(FFT_PIECE_WORK / work) : 1;
  rt_parallel_for(r->run->exe->pool, (size_t)(outer * s->groups), grain, fft_groups, s);
}

/* Line after line: columns to scratch memory, rows from there to where the results lie, one column apart. Both are
 * shared between threads, since a single long line is often all there is. */
static void fft_run_long(const cpu_routine_run *r, const fft_step *s, fft_run_step run, char *scratch) {
  assert(s->columns && s->rows && scratch);
  int64_t n1 = s->columns->n, n2 = s->rows->n;
  fft_lanes_job columns = {.plan = s->columns, .inverse = s->job.inverse, .scale = 1, .lines = n2};
  fft_lanes_job rows = {.plan = s->rows, .inverse = s->job.inverse, .scale = s->job.scale, .lines = n1};
  columns.twiddle_re = s->turn_re, columns.twiddle_im = s->turn_im;
  columns.in = columns.out = (fft_lanes_place){n2, 1};
  rows.in = (fft_lanes_place){1, n2};
  rows.out = (fft_lanes_place){n1, 1};
  const char *in = run.in;
  char *out = run.out;
  for (int64_t line = 0; line < s->outer; line++) {
    run.job = &columns, run.inner = n2;
    run.in = in + (size_t)(line * n1 * n2) * run.in_bytes, run.out = scratch;
    fft_run_lines(r, &run, 1);
    run.job = &rows, run.inner = n1;
    run.in = scratch, run.out = out + (size_t)(line * n1 * n2) * run.out_bytes;
    fft_run_lines(r, &run, 1);
  }
}

/* Step after step; between steps, numbers lie in the result, or in scratch memory where that is of reals. */
static int fft_execute(const cpu_routine_run *r) {
  const fft_routine *f = r->data;
  assert(f->n_steps > 0 && f->n_steps <= FFT_MAX_STEPS);
  atomic_bool failed;
  size_t number = f->is_double ? 8 : 4;
  char *spectrum = f->keeps_spectrum ? r->scratch : r->out[0], *scratch = (char *)r->scratch + f->spectrum_bytes;
  atomic_init(&failed, false);
  for (uint32_t i = 0; i < f->n_steps; i++) {
    const fft_step *s = &f->steps[i];
    fft_run_step run = {.routine = f, .job = &s->job, .inner = s->inner, .lanes = s->lanes, .failed = &failed};
    run.in = i == 0 ? r->in[0] : spectrum;
    run.out = i + 1 == f->n_steps ? r->out[0] : spectrum;
    run.in_block = s->in_block, run.out_block = s->out_block;
    run.in_bytes = s->real_in ? number : 2 * number;
    run.out_bytes = s->real_out ? number : 2 * number;
    if (s->columns)
      fft_run_long(r, s, run, scratch);
    else
      fft_run_lines(r, &run, s->outer);
  }
  return atomic_load(&failed) ? base_oom(r->run->ctx.err, "a Fourier transform") : 0;
}

/* A transform of nothing, as of an operand with a length of 0. */
static int fft_zeros(const cpu_routine_run *r) {
  const ir_type *t = r->step->op->type;
  cpu_move_fill(r->run->exe->pool, 1, r->out[0], ir_type_bytes(t), "");
  return 0;
}

/* --- preparing --- */

/* While an op is prepared: what its attributes say, and the routine in the making. */
typedef struct fft_maker {
  cpu_prepare_run *x;
  fft_routine *f;
  bool inverse, real_in, real_out;
  uint32_t rank, n_axes;
  int64_t dims[IR_MAX_RANK]; /* of the complex side */
  int64_t n;                 /* the last length */
  int64_t scratch;           /* complex numbers that a long line takes */
} fft_maker;

/* How many lines go side by side: what fits into a thread's cache, at most FFT_LANES, at least one. */
static int64_t fft_lanes_for(const fft_lanes_plan *plan, int64_t lines) {
  int64_t lanes = FFT_GROUP_NUMBERS / plan->size;
  if (lanes > FFT_LANES) lanes = FFT_LANES;
  if (lanes > lines) lanes = lines;
  return lanes < 1 ? 1 : lanes;
}

/* The largest divisor of n up to its root; 1 where n is prime. */
static int64_t fft_split_of(int64_t n) {
  int64_t best = 1;
  for (int64_t d = 2; d * d <= n; d++)
    if (n % d == 0) best = d;
  return best;
}

/* n numbers in the routine's precision, aligned to a cache line. NULL when out of memory, or too many to count. */
static void *fft_table(fft_maker *m, int64_t n) {
  size_t bytes = 0;
  return base_mul((size_t)n, m->f->is_double ? 8 : 4, &bytes) ? base_arena_aligned(m->x->arena, bytes + 1, 64) : NULL;
}

/* Tables are computed in double, and rounded once. */
static void fft_number_put(const fft_maker *m, void *table, int64_t i, double v) {
  if (m->f->is_double)
    ((double *)table)[i] = v;
  else
    ((float *)table)[i] = (float)v;
}

/* The roots exp(-2 pi i k / n), k <= n / 2, by which the transform of n / 2 pairs becomes that of n reals. */
static int fft_make_half(fft_maker *m, fft_step *s) {
  int64_t h = m->n / 2;
  fft_lanes_roots roots;
  void *table = fft_table(m, 2 * (h + 1));
  bool made = fft_lanes_roots_make(&roots, m->n, m->x->arena->alloc);
  for (int64_t k = 0; table && made && k <= h; k++) {
    cplx w = fft_lanes_root(&roots, k);
    fft_number_put(m, table, 2 * k, w.re), fft_number_put(m, table, 2 * k + 1, w.im);
  }
  fft_lanes_roots_free(&roots);
  s->job.half = table;
  return table && made ? 0 : base_oom(m->x->err, "a Fourier transform");
}

/* A turn's table has n numbers, in two arrays of parts: at k1 * n2 + j2 the root k1 * j2; where results are those
 * of an inverse, conjugates. */
static int fft_make_turn(fft_maker *m, fft_step *s, int64_t n1, int64_t n2) {
  fft_lanes_roots roots;
  void *re = fft_table(m, n1 * n2), *im = fft_table(m, n1 * n2);
  bool made = fft_lanes_roots_make(&roots, n1 * n2, m->x->arena->alloc);
  s->turn_re = re, s->turn_im = im;
  for (int64_t k1 = 0; re && im && made && k1 < n1; k1++)
    for (int64_t j2 = 0; j2 < n2; j2++) {
      cplx w = fft_lanes_root(&roots, k1 * j2);
      fft_number_put(m, re, k1 * n2 + j2, w.re);
      fft_number_put(m, im, k1 * n2 + j2, m->inverse ? -w.im : w.im);
    }
  fft_lanes_roots_free(&roots);
  return re && im && made ? 0 : base_oom(m->x->err, "a Fourier transform");
}

/* The two plans and the turn of a long line; m->scratch grows to what the matrix takes. */
static int fft_make_long(fft_maker *m, fft_step *s, int64_t n, int64_t n1) {
  assert(n1 > 1 && n % n1 == 0);
  int64_t n2 = n / n1;
  TRY(fft_make_turn(m, s, n1, n2));
  TRY(fft_lanes_make(n1, m->f->is_double, m->x->arena, &s->columns, m->x->err));
  TRY(fft_lanes_make(n2, m->f->is_double, m->x->arena, &s->rows, m->x->err));
  s->job.plan = s->columns;
  s->lanes = fft_lanes_for(n1 > n2 ? s->columns : s->rows, n1 < n2 ? n1 : n2);
  if (n > m->scratch) m->scratch = n;
  return 0;
}

/* Of the extents from .. to. */
static int64_t fft_product(const int64_t *dims, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= dims[d];
  return n;
}

/* A step over the lines of one axis, as complex numbers in place; callers change what is different. */
static fft_step *fft_add_step(fft_maker *m, uint32_t axis) {
  assert(m->f->n_steps < FFT_MAX_STEPS && axis < m->rank);
  fft_step *s = &m->f->steps[m->f->n_steps++];
  *s = (fft_step){.job = {.inverse = m->inverse, .scale = 1}};
  s->outer = fft_product(m->dims, 0, axis);
  s->inner = fft_product(m->dims, axis + 1, m->rank);
  s->in_block = s->out_block = s->inner * m->dims[axis];
  s->job.lines = s->inner;
  s->job.in = s->job.out = (fft_lanes_place){s->inner, 1};
  return s;
}

/* Lines of the last axis lie one after another: blocks are lines. in_line, out_line: from one line to the next. */
static void fft_rows_are_lines(fft_step *s, int64_t in_line, int64_t out_line) {
  s->inner = s->job.lines = s->outer;
  s->outer = 1;
  s->in_block = s->out_block = 0;
  s->job.in = (fft_lanes_place){1, in_line};
  s->job.out = (fft_lanes_place){1, out_line};
}

/* A long line goes as a matrix only if that is not much longer than wide. */
static int fft_add_complex(fft_maker *m, uint32_t axis) {
  fft_step *s = fft_add_step(m, axis);
  int64_t n = m->dims[axis], split = n >= FFT_LONG && s->inner == 1 ? fft_split_of(n) : 1;
  if (split >= FFT_LANES && n / split <= 64 * split) return fft_make_long(m, s, n, split);
  if (s->inner == 1) fft_rows_are_lines(s, n, n);
  TRY(fft_lanes_make(n, m->f->is_double, m->x->arena, &s->job.plan, m->x->err));
  s->lanes = fft_lanes_for(s->job.plan, s->inner);
  return 0;
}

/* The last axis of a real transform. Even lengths go by a complex transform of half the length, of pairs of reals;
 * odd ones by a complex transform whose imaginary parts are 0. */
static int fft_add_real(fft_maker *m) {
  fft_step *s = fft_add_step(m, m->rank - 1);
  int64_t half = m->n / 2 + 1;
  bool even = m->n % 2 == 0;
  int64_t reals = even ? m->n / 2 : m->n;
  s->real_in = m->real_in && !even;
  s->real_out = m->real_out && !even;
  s->job.kind = m->real_in ? (even ? FFT_LANES_REAL_IN_HALF : FFT_LANES_REAL_IN)
                           : (even ? FFT_LANES_REAL_OUT_HALF : FFT_LANES_REAL_OUT);
  fft_rows_are_lines(s, m->real_in ? reals : half, m->real_out ? reals : half);
  if (even) TRY(fft_make_half(m, s));
  TRY(fft_lanes_make(reals, m->f->is_double, m->x->arena, &s->job.plan, m->x->err));
  s->lanes = fft_lanes_for(s->job.plan, s->inner);
  return 0;
}

/* The last axis first, but where it gives reals: RFFT halves the spectrum before the other axes, IRFFT after them.
 * The factor of an inverse, 1 / (product of all lengths), goes into the last step. */
static int fft_add_steps(fft_maker *m) {
  bool real = m->real_in || m->real_out;
  if (m->real_in) TRY(fft_add_real(m));
  for (uint32_t i = real ? 1 : 0; i < m->n_axes; i++) TRY(fft_add_complex(m, m->rank - 1 - i));
  if (m->real_out) TRY(fft_add_real(m));
  int64_t all = m->n * fft_product(m->dims, m->rank - m->n_axes, m->rank - 1);
  if (m->inverse) m->f->steps[m->f->n_steps - 1].job.scale = 1.0 / (double)all;
  return 0;
}

/* StableHLO lets lengths through that are not the operand's; the interpreter refuses them. */
static bool fft_lengths_fit(const fft_maker *m, const ir_type *in, const ir_ints *lengths) {
  for (uint32_t i = 0; i < lengths->n; i++) {
    bool half = m->real_out && i + 1 == lengths->n;
    if (in->dims[in->rank - lengths->n + i] != (half ? lengths->v[i] / 2 + 1 : lengths->v[i])) return false;
  }
  return true;
}

/* The op's attributes; false where it is of a form that the interpreter should take. */
static bool fft_read(fft_maker *m, const ir_op *op) {
  const ir_fft kind = (ir_fft)ir_get_word(op, IR_ATTR_FFT_TYPE);
  const ir_ints *lengths = ir_get_ints(op, IR_ATTR_FFT_LENGTH);
  const ir_type *in = ir_operand_type(op, 0), *out = op->type, *spectrum = out;
  m->real_in = kind == IR_FFT_RFFT;
  m->real_out = kind == IR_FFT_IRFFT;
  m->inverse = m->real_out || kind == IR_FFT_IFFT;
  if (!lengths || lengths->n == 0 || lengths->n >= FFT_MAX_STEPS || !ir_is_tensor(in) || !ir_is_tensor(out))
    return false;
  if (m->real_out) spectrum = in;
  m->n_axes = lengths->n;
  m->rank = out->rank;
  m->n = lengths->v[lengths->n - 1];
  if (m->rank < m->n_axes || in->rank != m->rank || m->n < 1 || m->n > INT64_MAX / 64) return false;
  if (!fft_lengths_fit(m, in, lengths)) return false;
  memcpy(m->dims, spectrum->dims, m->rank * sizeof *m->dims);
  m->f->is_double = spectrum->dtype == XLAC_C128;
  return spectrum->dtype == XLAC_C64 || spectrum->dtype == XLAC_C128;
}

/* The plans are made when the op is prepared: calls find all roots in tables. */
int cpu_prepare_fft(cpu_prepare_run *x) {
  fft_routine *f = BASE_NEW(x->arena, fft_routine);
  if (!f) return base_oom(x->err, "a Fourier transform");
  fft_maker m = {.x = x, .f = f};
  if (!fft_read(&m, x->op)) return 0;
  x->out->name = "fft";
  x->data = f;
  x->code = fft_zeros;
  if (x->op->type->count == 0 || ir_operand_type(x->op, 0)->count == 0) return 0;
  f->run = fft_lanes_choose(f->is_double);
  TRY(fft_add_steps(&m));
  size_t number = f->is_double ? 16 : 8;
  f->keeps_spectrum = m.real_out && f->n_steps > 1;
  if (f->keeps_spectrum) f->spectrum_bytes = (ir_type_bytes(ir_operand_type(x->op, 0)) + 63) & ~INT64_C(63);
  x->out->scratch_bytes = f->spectrum_bytes + m.scratch * (int64_t)number;
  x->out->work = (uint64_t)x->op->type->count * 20;
  x->out->in_place = m.real_in || m.real_out ? 0 : 1;
  x->code = fft_execute;
  return 0;
}
