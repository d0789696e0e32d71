/* Cumulative sums, products, maxima: each result is the one before and one element more. From the far end backwards the
 * same; sums of floats are then those of the reversed array. */
#include "window.h"

/* SCAN_LANES: lanes that go through a row side by side. SCAN_FEW: fewer lanes than that are done one after the other.
 * SCAN_LINES: single lanes that are done at the same time. SCAN_GRAIN: elements for a thread at a time. */
enum { SCAN_LANES = 256, SCAN_FEW = 8, SCAN_LINES = 4, SCAN_GRAIN = 1 << 14, SCAN_POLL = 1 << 16 /* elements */ };

bool cpu_window_is_scan(const cpu_window *w) {
  const ir_window_dim *d = &w->window->v[w->last];
  int64_t n = w->in_size[w->last], all = d->size - 1;
  /* No other dimension has windows. */
  for (uint32_t i = 0; i < w->last; i++)
    if (!cpu_window_is_trivial(&w->window->v[i], w->in_size[i], w->out_size[i])) return false;
  /* With n elements and a window of n, n - 1 of padding in front make result i that of elements 0 to i. */
  bool forward = d->padding_low == all && d->padding_high == 0,
       backward = d->padding_low == 0 && d->padding_high == all;
  return d->stride == 1 && d->window_dilation == 1 && d->base_dilation == 1 && d->size >= n && n > 1 &&
         (forward || backward);
}

/* Up to SCAN_LINES lines of n elements, `step` apart in both arrays. Each line goes on from its `before`. */
typedef void scan_fn(int lines, int64_t n, int64_t step, const void *const in[], const void *const before[],
                     void *const out[]);

/* An addition waits for the one before it in its line, so that four lines take no longer than one. All elements are
 * read before a result is written: lines whose distance is a multiple of a page look to the CPU as if they overlapped.
 * Signed integers are added as unsigned ones: the bits are the same, and overflow is defined. */
#define SCAN(name, T, OP)                                                                                             \
  static void name##_line(int64_t n, int64_t step, const T *x, T a, T *r) {                                           \
    for (int64_t i = 0, at = 0; i < n; i++, at += step) r[at] = a = a OP x[at];                                       \
  }                                                                                                                   \
  static void name(int lines, int64_t n, int64_t step, const void *const in[], const void *const before[],            \
                   void *const out[]) {                                                                               \
    for (int k = 0; k < lines && lines < SCAN_LINES; k++) name##_line(n, step, in[k], *(const T *)before[k], out[k]); \
    if (lines < SCAN_LINES) return;                                                                                   \
    const T *x0 = in[0], *x1 = in[1], *x2 = in[2], *x3 = in[3];                                                       \
    T *r0 = out[0], *r1 = out[1], *r2 = out[2], *r3 = out[3];                                                         \
    T a0 = *(const T *)before[0], a1 = *(const T *)before[1], a2 = *(const T *)before[2], a3 = *(const T *)before[3]; \
    for (int64_t i = 0, at = 0; i < n; i++, at += step) {                                                             \
      T v0 = x0[at], v1 = x1[at], v2 = x2[at], v3 = x3[at];                                                           \
      r0[at] = a0 = a0 OP v0;                                                                                         \
      r1[at] = a1 = a1 OP v1;                                                                                         \
      r2[at] = a2 = a2 OP v2;                                                                                         \
      r3[at] = a3 = a3 OP v3;                                                                                         \
    }                                                                                                                 \
  }
SCAN(scan_add_f32, float, +)
SCAN(scan_add_f64, double, +)
SCAN(scan_add_u32, uint32_t, +)
SCAN(scan_add_u64, uint64_t, +)
SCAN(scan_multiply_f32, float, *)
SCAN(scan_multiply_f64, double, *)

/* NULL where the op has none for the type: then scan_lanes does it. */
static scan_fn *scan_of(ir_opcode o, base_dtype t) {
  bool add = o == IR_OP_ADD;
  if (!add && o != IR_OP_MULTIPLY) return NULL;
  switch (t) {
    case XLAC_F32:
      return add ? scan_add_f32 : scan_multiply_f32;
    case XLAC_F64:
      return add ? scan_add_f64 : scan_multiply_f64;
    case XLAC_S32:
    case XLAC_U32:
      return add ? scan_add_u32 : NULL;
    case XLAC_S64:
    case XLAC_U64:
      return add ? scan_add_u64 : NULL;
    default:
      return NULL;
  }
}

/* One run: shared by its threads. */
typedef struct window_scan_run {
  const cpu_window *w;
  rt_pool *pool;
  const char *in, *init;
  char *out;
  scan_fn *fn;    /* of single lanes; NULL: by up to SCAN_LANES at a time */
  int64_t blocks; /* of lanes, in each row */
} window_scan_run;

/* Each line of results is made of the line before and a line of the operand, with the interpreter's loop. */
static void scan_lanes(const window_scan_run *r, const char *in, char *out, int64_t lanes, int64_t step, int64_t n) {
  assert(lanes > 0 && lanes <= SCAN_LANES);
  const cpu_window *w = r->w;
  char init[SCAN_LANES * 16] __attribute__((aligned(64)));
  const char *before = init;
  /* The line before the first: the initial value in every lane. */
  for (int64_t i = 0; i < lanes; i++) memcpy(init + (size_t)i * w->bytes, r->init, w->bytes);
  int64_t poll = SCAN_POLL / lanes + 1;
  for (int64_t i = 0; i < n; i++, in += step, out += step) {
    const void *both[2] = {before, in};
    if (i % poll == 0 && rt_pool_stopping(r->pool)) return;
    scalar_loop_run(&w->combine, lanes, both, out);
    before = out;
  }
}

/* Where unit i, a block of lanes of one row, begins: in bytes, for the operand and the result alike. Backwards that is
 * its last element. */
static int64_t scan_at(const window_scan_run *r, size_t i, int64_t wide, bool backward) {
  const cpu_window *w = r->w;
  int64_t n = w->in_size[w->last], row = (int64_t)i / r->blocks, lane = (int64_t)i % r->blocks * wide;
  return (row * n * w->lanes + lane + (backward ? (n - 1) * w->lanes : 0)) * (int64_t)w->bytes;
}

/* Single lanes, in parts: each part goes on from the last results of the one before. */
static void scan_lines(const window_scan_run *r, int lines, const int64_t *at, int64_t step) {
  assert(lines > 0 && lines <= SCAN_LINES);
  int64_t n = r->w->in_size[r->w->last], bytes = step * (int64_t)r->w->bytes;
  const void *in[SCAN_LINES], *before[SCAN_LINES];
  void *out[SCAN_LINES];
  for (int k = 0; k < lines; k++) before[k] = r->init;
  for (int64_t done = 0; done < n && !rt_pool_stopping(r->pool); done += SCAN_POLL) {
    int64_t some = n - done < SCAN_POLL ? n - done : SCAN_POLL;
    for (int k = 0; k < lines; k++) in[k] = r->in + at[k] + done * bytes, out[k] = r->out + at[k] + done * bytes;
    r->fn(lines, some, step, in, before, out);
    for (int k = 0; k < lines; k++) before[k] = (char *)out[k] + (some - 1) * bytes;
  }
}

/* Units begin to end: a block of lanes of one row each. Blocks are equally wide but for the last, which may be empty.
 */
static void scan_units(void *ctx, size_t begin, size_t end) {
  assert(((const window_scan_run *)ctx)->blocks > 0);
  const window_scan_run *r = ctx;
  const cpu_window *w = r->w;
  /* Lanes of a block. */
  int64_t wide = (w->lanes + r->blocks - 1) / r->blocks;
  /* Backwards the walk begins at the last element, with a negative step. */
  bool backward = w->window->v[w->last].padding_high > 0;
  int64_t step = backward ? -w->lanes : w->lanes, n = w->in_size[w->last];
  for (size_t i = begin; !r->fn && i < end; i++) {
    int64_t at = scan_at(r, i, wide, backward), lane = (int64_t)i % r->blocks * wide;
    int64_t lanes = w->lanes - lane < wide ? w->lanes - lane : wide;
    if (lanes > 0) scan_lanes(r, r->in + at, r->out + at, lanes, step * (int64_t)w->bytes, n);
  }
  for (size_t i = begin; r->fn && i < end; i += SCAN_LINES) {
    int64_t at[SCAN_LINES];
    int lines = end - i < SCAN_LINES ? (int)(end - i) : SCAN_LINES;
    for (int k = 0; k < lines; k++) at[k] = scan_at(r, i + (size_t)k, wide, backward);
    scan_lines(r, lines, at, step);
  }
}

/* How lanes are cut changes no sum: each lane is done from one end to the other. */
void cpu_window_scan(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out) {
  assert(cpu_window_is_scan(w));
  window_scan_run r = {.w = w, .pool = pool, .in = in, .init = init, .out = out};
  int64_t n = w->in_size[w->last];
  if (w->lanes < SCAN_FEW) r.fn = scan_of(w->opcode, w->type);
  r.blocks = r.fn ? w->lanes : (w->lanes + SCAN_LANES - 1) / SCAN_LANES;
  if (r.blocks == 0) return;
  int64_t work = n * (w->lanes / r.blocks + 1);
  /* Whole groups of lines for each thread. */
  size_t grain = (size_t)(SCAN_GRAIN / work + 1);
  if (r.fn) grain = (grain + SCAN_LINES - 1) / SCAN_LINES * SCAN_LINES;
  rt_parallel_for(pool, (size_t)(w->rows * r.blocks), grain, scan_units, &r);
}
