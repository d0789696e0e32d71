/* Plans of transforms of lines side by side, and the choice of code for this machine. A length that has no prime
 * factor above 31 is a product of radices, a pass for each (Stockham's order: no bit reversal, results in their
 * places). Any other length is a convolution with a chirp (Bluestein's algorithm), by transforms of a power of
 * two. */
#include "../../base/isa/isa.h"
#include "fft_lanes.h"

/* For machines with AVX2 vectors of 32 bytes, and with AVX-512 also of a whole cache line; for all others of 16, since
 * wider vectors than a machine's are as right but twice the code. */
typedef float fft32_vector __attribute__((vector_size(16), aligned(4), may_alias));
typedef double fft64_vector __attribute__((vector_size(16), aligned(8), may_alias));

/* The 2 x 2 complex numbers of two vectors, transposed; of one double vector there is one. */
static inline __attribute__((always_inline)) void fft32_turn_tile(fft32_vector *line) {
  fft32_vector a = line[0], b = line[1];
  line[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5), line[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
}
static inline __attribute__((always_inline)) void fft64_turn_tile(const fft64_vector *line) {
  (void)line;
}

#define T float
#define V fft32_vector
#define W fft32_vector
#define WIDTH 4
#define K(name) fft32_##name
#include "fft_lanes_kernel.h"

#define T double
#define V fft64_vector
#define W fft64_vector
#define WIDTH 2
#define K(name) fft64_##name
#include "fft_lanes_kernel.h"

#if defined(__x86_64__)
#define FFT_LANES_WIDE
typedef float fft32_wide_vector __attribute__((vector_size(32), aligned(4), may_alias));
typedef double fft64_wide_vector __attribute__((vector_size(32), aligned(8), may_alias));
typedef float fft32_cache_line __attribute__((vector_size(64), aligned(4), may_alias));
typedef double fft64_cache_line __attribute__((vector_size(64), aligned(8), may_alias));

/* The 4 x 4 complex numbers of four vectors, or the 2 x 2 of two, transposed. */
static inline __attribute__((always_inline)) void fft32_wide_turn_tile(fft32_wide_vector *line) {
  fft64_wide_vector a[4], b[4];
  for (int i = 0; i < 4; i++) a[i] = (fft64_wide_vector)line[i];
  b[0] = __builtin_shufflevector(a[0], a[1], 0, 4, 2, 6), b[1] = __builtin_shufflevector(a[0], a[1], 1, 5, 3, 7);
  b[2] = __builtin_shufflevector(a[2], a[3], 0, 4, 2, 6), b[3] = __builtin_shufflevector(a[2], a[3], 1, 5, 3, 7);
  line[0] = (fft32_wide_vector)__builtin_shufflevector(b[0], b[2], 0, 1, 4, 5);
  line[1] = (fft32_wide_vector)__builtin_shufflevector(b[1], b[3], 0, 1, 4, 5);
  line[2] = (fft32_wide_vector)__builtin_shufflevector(b[0], b[2], 2, 3, 6, 7);
  line[3] = (fft32_wide_vector)__builtin_shufflevector(b[1], b[3], 2, 3, 6, 7);
}
static inline __attribute__((always_inline)) void fft64_wide_turn_tile(fft64_wide_vector *line) {
  fft64_wide_vector a = line[0], b = line[1];
  line[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5), line[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

#define T float
#define V fft32_wide_vector
#define W fft32_cache_line
#define WIDTH 8
#define K(name) fft32_wide_##name
#include "fft_lanes_kernel.h"

#define T double
#define V fft64_wide_vector
#define W fft64_cache_line
#define WIDTH 4
#define K(name) fft64_wide_##name
#include "fft_lanes_kernel.h"
#endif

/* One function for each instruction set and precision. */
fft_lanes_fn *fft_lanes_choose(bool is_double) {
#if defined(__x86_64__)
  if (base_isa_best() >= BASE_ISA_AVX512) return is_double ? fft64_wide_lines_avx512 : fft32_wide_lines_avx512;
  if (base_isa_best() >= BASE_ISA_AVX2) return is_double ? fft64_wide_lines_avx2 : fft32_wide_lines_avx2;
#endif
  return is_double ? fft64_lines_plain : fft32_lines_plain;
}

/* Up to FFT_LANES_EXACT roots are all computed; more are products of a fine one, k mod 2^shift, and a coarse one. */
bool fft_lanes_roots_make(fft_lanes_roots *r, int64_t n, base_alloc alloc) {
  assert(n >= 1);
  int64_t coarse = 0;
  *r = (fft_lanes_roots){.n = n, .fine = n, .alloc = alloc};
  while (n > FFT_LANES_EXACT && r->fine * r->fine > n) r->fine = (r->fine + 1) / 2;
  if (n > FFT_LANES_EXACT) {
    for (r->shift = 0; INT64_C(1) << r->shift < r->fine; r->shift++) continue;
    r->fine = INT64_C(1) << r->shift;
    coarse = n / r->fine + 1;
  }
  r->at = base_malloc(alloc, (size_t)(r->fine + coarse) * sizeof *r->at);
  if (!r->at) return false;
  for (int64_t k = 0; k < r->fine; k++) r->at[k] = interp_fft_root(k, n);
  for (int64_t k = 0; k < coarse; k++)
    r->at[r->fine + k] = k * r->fine < n ? interp_fft_root(k * r->fine, n) : cplx_of(1, 0);
  return true;
}

void fft_lanes_roots_free(fft_lanes_roots *r) {
  base_free(r->alloc, r->at);
}

/* While a plan is made. `failed`: out of memory; what follows then does nothing. */
typedef struct fft_lanes_maker {
  fft_lanes_roots roots;
  base_arena *arena;
  bool is_double, failed;
} fft_lanes_maker;

/* Room for n complex numbers. */
static void *fft_lanes_room(fft_lanes_maker *x, int64_t n) {
  size_t bytes = 0;
  void *p = base_mul((size_t)n, x->is_double ? 16 : 8, &bytes) ? base_arena_aligned(x->arena, bytes + 1, 64) : NULL;
  x->failed = x->failed || !p;
  return p;
}

/* Complex number i of a table in the plan's precision. */
static void fft_lanes_put(const fft_lanes_maker *x, void *to, int64_t i, cplx v) {
  if (x->is_double) {
    memcpy((char *)to + 16 * i, &v, sizeof v);
    return;
  }
  float part[2] = {(float)v.re, (float)v.im};
  memcpy((char *)to + 8 * i, part, sizeof part);
}

/* The pass that takes `radix` off the `rest` that remains at this stride, with its twiddles exp(-2 pi i k i stride
 * / n) for group i and result k. */
static void fft_lanes_add_pass(fft_lanes_maker *x, fft_lanes_plan *p, uint32_t radix, int64_t rest, int64_t stride) {
  assert(p->n_passes < FFT_LANES_MAX_PASSES && rest % radix == 0);
  fft_lanes_pass *f = &p->passes[p->n_passes++];
  *f = (fft_lanes_pass){.radix = radix, .m = rest / radix, .stride = stride};
  void *w = fft_lanes_room(x, f->m * (radix - 1)), *roots = fft_lanes_room(x, radix);
  f->twiddles = w;
  f->roots = roots;
  if (x->failed) return;
  for (int64_t i = 0; i < f->m; i++)
    for (int64_t k = 1; k < radix; k++)
      fft_lanes_put(x, w, i * (radix - 1) + k - 1, fft_lanes_root(&x->roots, i * k * stride));
  for (int64_t k = 0; k < radix; k++) fft_lanes_put(x, roots, k, interp_fft_root(k, radix));
}

/* The largest radices first: 8 while what remains is not a power of two that would end in a 2 (16 is 4 * 4, not 8 *
 * 2). 0: the rest has a prime factor that is too large. */
static uint32_t fft_lanes_radix(int64_t rest) {
  static const uint8_t known[] = {5, 3, 7, 11, 13, 17, 19, 23, 29, 31};
  if (rest % 8 == 0 && rest != 16) return 8;
  if (rest % 4 == 0) return 4;
  if (rest % 2 == 0) return 2;
  for (size_t i = 0; i < sizeof known; i++)
    if (rest % known[i] == 0) return known[i];
  return 0;
}

/* Whether n is a product of radices. */
static bool fft_lanes_is_smooth(int64_t n) {
  while (n > 1) {
    uint32_t radix = fft_lanes_radix(n);
    if (!radix) return false;
    n /= radix;
  }
  return true;
}

/* Each pass makes lines of partial results `radix` times as many, and `radix` times as short. */
static void fft_lanes_add_passes(fft_lanes_maker *x, fft_lanes_plan *p) {
  int64_t rest = p->n, stride = 1;
  while (rest > 1 && !x->failed) {
    uint32_t radix = fft_lanes_radix(rest);
    fft_lanes_add_pass(x, p, radix, rest, stride);
    rest /= radix;
    stride *= radix;
  }
}

/* The chirp exp(-pi i k^2 / n), and its conjugate wrapped round the line for a cyclic convolution. k^2 is kept
 * modulo 2n, the chirp's period, so that it neither overflows nor loses bits. */
static void fft_lanes_put_chirp(fft_lanes_maker *x, void *chirp, int64_t n, cplx *line, int64_t size) {
  assert(size >= 2 * n - 1);
  uint64_t square = 0, whole = 2 * (uint64_t)n; /* square: k^2 mod 2n */
  if (!fft_lanes_roots_make(&x->roots, 2 * n, x->arena->alloc)) {
    x->failed = true;
    return;
  }
  for (int64_t k = 0; k < size; k++) line[k] = cplx_of(0, 0);
  for (int64_t k = 0; k < n; k++) {
    cplx c = fft_lanes_root(&x->roots, (int64_t)square);
    fft_lanes_put(x, chirp, k, c);
    line[k] = line[k ? size - k : 0] = cplx_conj(c);
    square = (square + 2 * (uint64_t)k + 1) % whole;
  }
  fft_lanes_roots_free(&x->roots);
}

/* line becomes its transform over its length, which `plan` has, of doubles. false when out of memory. */
static bool fft_lanes_transform(const fft_lanes_plan *plan, base_alloc alloc, cplx *line) {
  double *work = base_malloc(alloc, ((size_t)plan->size + 1) * 4 * sizeof *work);
  fft_lanes_job job = {
      .plan = plan, .scale = 1.0 / (double)plan->n, .lines = 1, .in = {1, plan->n}, .out = {1, plan->n}};
  if (work) fft_lanes_choose(true)(&job, 0, 1, line, line, work);
  base_free(alloc, work);
  return work != NULL;
}

/* Bluestein's kernel: the transform of the conjugate chirp, with the inverse transform's factor, computed in
 * double whatever the plan's precision, and rounded once. */
static int fft_lanes_add_kernel(fft_lanes_maker *x, fft_lanes_plan *p, int64_t size, xlac_error *err) {
  base_alloc alloc = x->arena->alloc;
  assert(p->inner && p->inner->n == size && !p->inner->inner);
  const fft_lanes_plan *plan = NULL;
  base_arena scratch;
  base_arena_init(&scratch, alloc);
  int status = fft_lanes_make(size, true, &scratch, &plan, err);
  cplx *line = status == 0 ? base_malloc(alloc, (size_t)size * sizeof *line) : NULL;
  void *kernel = fft_lanes_room(x, size), *chirp = fft_lanes_room(x, p->n);
  p->kernel = kernel;
  p->chirp = chirp;
  x->failed = x->failed || !line;
  if (!x->failed) fft_lanes_put_chirp(x, chirp, p->n, line, size);
  x->failed = x->failed || !fft_lanes_transform(plan, alloc, line);
  for (int64_t k = 0; !x->failed && k < size; k++) fft_lanes_put(x, kernel, k, line[k]);
  base_free(alloc, line);
  base_arena_free(&scratch);
  return status ? status : x->failed ? base_oom(err, "a Fourier transform") : 0;
}

/* Fails only when out of memory; *out may be set then. */
int fft_lanes_make(int64_t n, bool is_double, base_arena *arena, const fft_lanes_plan **out, xlac_error *err) {
  assert(n >= 1 && n <= INT64_MAX / 64);
  fft_lanes_maker x = {.arena = arena, .is_double = is_double};
  fft_lanes_plan *p = BASE_NEW(arena, fft_lanes_plan);
  if (!p) return base_oom(err, "a Fourier transform");
  p->n = p->size = n;
  *out = p;
  if (fft_lanes_is_smooth(n)) {
    x.failed = !fft_lanes_roots_make(&x.roots, n, arena->alloc);
    fft_lanes_add_passes(&x, p);
    fft_lanes_roots_free(&x.roots);
    return x.failed ? base_oom(err, "a Fourier transform") : 0;
  }
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  p->size = size;
  TRY(fft_lanes_make(size, is_double, arena, &p->inner, err)); /* a power of two: no deeper */
  return fft_lanes_add_kernel(&x, p, size, err);
}
