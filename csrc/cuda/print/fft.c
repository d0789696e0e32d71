/* Fourier transforms, in f64 as the interpreter has them: a round computes the roots of unity and widens the operand,
 * one for each factor of each axis goes from one half of the memory to the other (Stockham: no reversal of bits), and
 * the last scales and narrows. A thread computes one number of a pass. Real lines are whole in between. */
#include "routine.h"

enum { CU_FFT_MAX_AXES = 8 };

typedef struct cu_fft {
  bool inverse, real_in, real_out;
  uint32_t n_axes, rounds;
  int64_t lengths[CU_FFT_MAX_AXES];
  int64_t last, half; /* of the last axis: its length, and that of its spectrum */
  int64_t item, count, roots;
} cu_fft;

static bool cu_fft_read(const ir_op *op, cu_fft *x) {
  const ir_fft kind = (ir_fft)ir_get_word(op, IR_ATTR_FFT_TYPE);
  const ir_ints *lengths = ir_get_ints(op, IR_ATTR_FFT_LENGTH);
  *x = (cu_fft){.real_in = kind == IR_FFT_RFFT, .real_out = kind == IR_FFT_IRFFT, .n_axes = lengths->n, .item = 1};
  if (lengths->n == 0 || lengths->n > CU_FFT_MAX_AXES || ir_operand_type(op, 0)->count == 0) return false;
  for (uint32_t i = 0; i < lengths->n; i++) {
    x->lengths[i] = lengths->v[i];
    x->item *= lengths->v[i];
    x->roots += lengths->v[i];
  }
  x->inverse = x->real_out || kind == IR_FFT_IFFT;
  x->last = x->lengths[lengths->n - 1];
  x->half = x->real_in || x->real_out ? x->last / 2 + 1 : x->last;
  x->count = (x->real_in ? ir_operand_type(op, 0) : op->type)->count; /* the side with whole lines */
  return x->count > 0 && x->count < INT64_MAX / 64;
}

/* 4s first, then 2, 3, 5, ...; a large prime is a factor, too, and its pass as long. */
static int64_t cu_fft_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t f = 2; f * f <= n; f++)
    if (n % f == 0) return f;
  return n;
}

/* Each root k of an axis of N: exp(-2 pi i k / N), from an angle in [0, pi / 4]. */
static void cu_fft_put_roots(base_text *out, const cu_fft *x) {
  BASE_PUT(out, "  if (round == 0) {\n  idx k = n, N = 0;\n");
  for (uint32_t i = 0; i < x->n_axes; i++)
    base_putf(out, "  if (N == 0) { if (k < %lld) N = %lld; else k -= %lld; }\n", (long long)x->lengths[i],
              (long long)x->lengths[i], (long long)x->lengths[i]);
  base_putf(out,
            "  if (N) {\n  const idx eighths = k * 8, octant = eighths / N, rest = eighths %% N;\n"
            "  const double angle = (double)(octant & 1 ? N - rest : rest) / (double)N * 0.78539816339744830962;\n"
            "  const double c = cos(angle), s = sin(angle);\n"
            "  const bool turned = (octant + 1) & 2, left = octant >= 2 && octant < 6, down = octant < 4;\n"
            "  const double re = turned ? s : c, im = turned ? c : s;\n"
            "  roots[n] = math_c128{left ? -re : re, %s};\n  }\n",
            x->inverse ? "down ? im : -im" : "down ? -im : im");
}

/* The rest of round 0; what a real line's spectrum lacks is made of the rest when it is read. */
static void cu_fft_put_load(cuda_routine *r, const cu_fft *x) {
  base_dtype t = (base_dtype)ir_operand_type(r->op, 0)->dtype;
  base_text *out = r->print.out;
  base_putf(out, "  if (n >= %lld) return;\n  math_c128 v = {0, 0};\n", (long long)x->count);
  if (x->real_out)
    base_putf(out, "  const idx at = n / %lld * %lld + n %% %lld;\n  if (n %% %lld < %lld) {\n", (long long)x->last,
              (long long)x->half, (long long)x->last, (long long)x->last, (long long)x->half);
  else
    BASE_PUT(out, "  const idx at = n;\n  {\n");
  base_putf(out, "  const %s given = ((const %s *)in0)[at];\n  v = ", cuda_type(t), cuda_type(t));
  cuda_print_convert(&r->print, XLAC_C128, t, "given");
  BASE_PUT(out, ";\n  }\n  to[n] = v;\n  return;\n  }\n");
}

/* "case": what a round's pass is. Axes from the last on, or that one last. */
static void cu_fft_put_passes(base_text *out, cu_fft *x) {
  x->rounds = 1;
  BASE_PUT(out, "  idx N = 1, R = 1, S = 1, inner = 1, root = 0;\n  bool mirrored = false;\n  switch (round) {\n");
  for (uint32_t i = 0; i < x->n_axes; i++) {
    uint32_t axis = x->real_out ? (i + 1 < x->n_axes ? x->n_axes - 2 - i : x->n_axes - 1) : x->n_axes - 1 - i;
    long long inner = 1, root = 0, rest = (long long)x->lengths[axis], stride = 1;
    for (uint32_t d = axis + 1; d < x->n_axes; d++) inner *= (long long)x->lengths[d];
    for (uint32_t d = 0; d < axis; d++) root += (long long)x->lengths[d];
    do { /* of one element, too, lest its imaginary part stay */
      long long f = (long long)cu_fft_factor(rest);
      bool mirrored = x->real_out && axis + 1 == x->n_axes && stride == 1;
      base_putf(out, "  case %u: N = %lld; R = %lld; S = %lld; inner = %lld; root = %lld; mirrored = %s; break;\n",
                (unsigned)x->rounds++, (long long)x->lengths[axis], f, stride, inner, root,
                mirrored ? "true" : "false");
      rest /= f;
      stride *= f;
    } while (rest > 1);
  }
  BASE_PUT(out, "  }\n");
}

/* Number q + S (R p + k) of a line, of those at q + S (p + M j). */
static void cu_fft_put_pass(base_text *out, const cu_fft *x) {
  base_putf(out, "  if (round < %u) {\n  if (n >= %lld) return;\n", (unsigned)x->rounds, (long long)x->count);
  BASE_PUT(out,
           "  const idx at = n / inner % N, q = at % S, k = at / S % R, p = at / S / R, M = N / R / S;\n"
           "  const math_c128 *line = from + (n - at * inner), *root_of = roots + root;\n"
           "  math_c128 sum = {0, 0};\n"
           "  for (idx j = 0; j < R; j++) {\n"
           "  const idx e = q + S * (p + M * j);\n"
           "  const bool other = mirrored && e > N / 2;\n"
           "  math_c128 v = line[(other ? N - e : e) * inner];\n"
           "  if (other) v.im = -v.im;\n"
           "  if (mirrored && (e == 0 || 2 * e == N)) v.im = 0;\n"
           "  const math_c128 w = root_of[j * k % R * (N / R)];\n"
           "  sum = math_c128{sum.re + (v.re * w.re - v.im * w.im), sum.im + (v.re * w.im + v.im * w.re)};\n"
           "  }\n"
           "  const math_c128 w = root_of[p * k * S];\n"
           "  to[n] = math_c128{sum.re * w.re - sum.im * w.im, sum.re * w.im + sum.im * w.re};\n  return;\n  }\n");
}

static void cu_fft_put_store(cuda_routine *r, const cu_fft *x) {
  base_dtype t = (base_dtype)r->op->type->dtype;
  base_text *out = r->print.out;
  base_putf(out, "  if (n >= %lld) return;\n  const idx at = n", (long long)r->op->type->count);
  if (x->real_in)
    base_putf(out, " / %lld * %lld + n %% %lld", (long long)x->half, (long long)x->last, (long long)x->half);
  BASE_PUT(out, ";\n  math_c128 v = from[at];\n");
  if (x->inverse)
    base_putf(out, "  v.re *= 1.0 / %lld.0;\n  v.im *= 1.0 / %lld.0;\n", (long long)x->item, (long long)x->item);
  base_putf(out, "  ((%s *)out0)[n] = ", cuda_type(t));
  cuda_print_convert(&r->print, t, XLAC_C128, "v");
  BASE_PUT(out, ";\n");
}

bool cuda_print_fft(cuda_routine *r) {
  cu_fft x;
  base_text *out = r->print.out;
  if (!cu_fft_read(r->op, &x)) return false;
  cuda_print_needs(&r->print, "math_c128");
  if (r->op->type->dtype == XLAC_C64 || ir_operand_type(r->op, 0)->dtype == XLAC_C64)
    cuda_print_needs(&r->print, "math_c64");
  r->launch->rounds = 1;
  r->launch->scratch = 16 * (2 * x.count + x.roots);
  cuda_routine_open(r, 1, 1, x.count > x.roots ? x.count : x.roots);
  base_putf(out, "  math_c128 *const whole = (math_c128 *)scratch, *const roots = whole + %lld;\n",
            (long long)(2 * x.count));
  base_putf(out,
            "  math_c128 *to = whole + (round & 1) * %lld;\n  const math_c128 *from = whole + (~round & 1) * %lld;\n",
            (long long)x.count, (long long)x.count);
  cu_fft_put_roots(out, &x);
  cu_fft_put_load(r, &x);
  cu_fft_put_passes(out, &x);
  cu_fft_put_pass(out, &x);
  cu_fft_put_store(r, &x);
  r->launch->rounds = x.rounds + 1;
  cuda_routine_close(r, "a thread for each number, factor after factor");
  return true;
}
