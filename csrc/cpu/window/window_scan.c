/* Cumulative sums, products, maxima: each result is the one before and one element more. From the far end backwards the
 * same; sums of floats are then those of the reversed array. */
#include "window.h"

/* SCAN_LANES: lanes that go through a row side by side. SCAN_FEW: fewer lanes than that are done one after the other.
 * SCAN_GRAIN: elements for a thread at a time. */
enum { SCAN_LANES = 256, SCAN_FEW = 8, SCAN_GRAIN = 1 << 14, SCAN_POLL = 1 << 16 /* elements */ };

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

/* n elements, `step` apart in both arrays. */
typedef void scan_fn(int64_t n, int64_t step, const void *in, const void *init, void *out);

/* Signed integers are added as unsigned ones: the bits are the same, and overflow is defined. */
#define SCAN(name, T, NEXT)                                                                \
  static void name(int64_t n, int64_t step, const void *in, const void *init, void *out) { \
    const T *x = in;                                                                       \
    T *r = out, a = *(const T *)init;                                                      \
    for (int64_t i = 0; i < n; i++) {                                                      \
      T v = x[i * step];                                                                   \
      r[i * step] = a = NEXT;                                                              \
    }                                                                                      \
  }
SCAN(scan_add_f32, float, a + v)
SCAN(scan_add_f64, double, a + v)
SCAN(scan_add_u32, uint32_t, a + v)
SCAN(scan_add_u64, uint64_t, a + v)
SCAN(scan_multiply_f32, float, a *v)
SCAN(scan_multiply_f64, double, a *v)

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
  scan_fn *fn;    /* NULL: by `lanes` at a time */
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

/* One lane of n elements, in parts: each goes on from the last result of the one before. */
static void scan_lane(const window_scan_run *r, const char *in, char *out, int64_t step, int64_t n) {
  const void *before = r->init;
  int64_t bytes = (int64_t)r->w->bytes;
  for (int64_t at = 0; at < n && !rt_pool_stopping(r->pool); at += SCAN_POLL) {
    int64_t some = n - at < SCAN_POLL ? n - at : SCAN_POLL;
    r->fn(some, step, in + at * step * bytes, before, out + at * step * bytes);
    before = out + (at + some - 1) * step * bytes;
  }
}

/* Units begin to end: a block of lanes of one row each. Blocks are equally wide but for the last, which may be empty.
 */
static void scan_units(void *ctx, size_t begin, size_t end) {
  assert(((const window_scan_run *)ctx)->blocks > 0);
  const window_scan_run *r = ctx;
  const cpu_window *w = r->w;
  int64_t n = w->in_size[w->last], bytes = (int64_t)w->bytes, step = w->lanes;
  /* Lanes of a block. */
  int64_t wide = (w->lanes + r->blocks - 1) / r->blocks;
  bool backward = w->window->v[w->last].padding_high > 0;
  for (size_t i = begin; i < end; i++) {
    int64_t row = (int64_t)i / r->blocks, lane = (int64_t)i % r->blocks * wide;
    int64_t lanes = w->lanes - lane < wide ? w->lanes - lane : wide;
    /* Backwards the walk begins at the last element, with a negative step. */
    int64_t at = (row * n * w->lanes + lane + (backward ? (n - 1) * step : 0)) * bytes, by = backward ? -step : step;
    if (lanes <= 0) continue;
    if (r->fn)
      scan_lane(r, r->in + at, r->out + at, by, n);
    else
      scan_lanes(r, r->in + at, r->out + at, lanes, by * bytes, n);
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
  rt_parallel_for(pool, (size_t)(w->rows * r.blocks), (size_t)(SCAN_GRAIN / work + 1), scan_units, &r);
}
