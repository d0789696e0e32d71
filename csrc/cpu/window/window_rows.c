/* Windows by rows of output. Where the order does not matter, the window's rows are first combined into one, whole and
 * contiguous, and its elements along the row are combined of that; else every element of the window in turn is combined
 * with all outputs of the row that it belongs to. */
#include "window.h"

#include "../../base/math/math.h"

enum {
  ROWS_SHORT_MOST = 256,
  ROWS_FEW = 8,           /* results of a row that are not lanes */
  ROWS_BUFFER = 32 << 10, /* bytes of combined input, and of gathered elements */
  ROWS_GATHER = 2 << 10,
  ROWS_GRAIN = 1 << 15
};

/* One run: shared by its threads. */
typedef struct rows_run {
  const cpu_window *w;
  rt_pool *pool;
  const char *in, *init;
  char *out;
} rows_run;

/* A walk over the rows of input that the windows of one row of output have. */
typedef struct rows_walk {
  int64_t at[IR_MAX_RANK], s[IR_MAX_RANK]; /* output index, window element */
  bool started;
} rows_walk;

/* to[i] from a[i] and x[i * step]: short rows of common types, for which a loop of the interpreter takes longer to
 * begin than to run. The same bits. */
typedef void rows_short_fn(int64_t n, char *to, const char *a, const char *x, int64_t step);
/* The loop with a stride that the compiler knows where it is 1 or 2; NEXT is made of a and b. */
#define ROWS_SHORT_BY(T, NEXT, s)    \
  for (int64_t i = 0; i < n; i++) {  \
    T a = left[i], b = right[i * s]; \
    out[i] = NEXT;                   \
  }
#define ROWS_SHORT(name, T, TARGET, NEXT)                                                     \
  TARGET static void name(int64_t n, char *to, const char *a_, const char *x, int64_t step) { \
    T *out = (T *)(void *)to;                                                                 \
    const T *left = (const T *)(const void *)a_, *right = (const T *)(const void *)x;         \
    if (step == 1) {                                                                          \
      ROWS_SHORT_BY(T, NEXT, 1)                                                               \
    } else if (step == 2) {                                                                   \
      ROWS_SHORT_BY(T, NEXT, 2)                                                               \
    } else {                                                                                  \
      ROWS_SHORT_BY(T, NEXT, step)                                                            \
    }                                                                                         \
  }
#define ROWS_SHORTS(isa, TARGET)                                                                                 \
  ROWS_SHORT(rows_add_f32_##isa, float, TARGET, a + b)                                                           \
  ROWS_SHORT(rows_add_f64_##isa, double, TARGET, a + b)                                                          \
  ROWS_SHORT(rows_add_u32_##isa, uint32_t, TARGET, a + b)                                                        \
  ROWS_SHORT(rows_max_f32_##isa, float, TARGET, math_max_f32(a, b))                                              \
  ROWS_SHORT(rows_max_f64_##isa, double, TARGET, math_max_f64(a, b))                                             \
  ROWS_SHORT(rows_max_s32_##isa, int32_t, TARGET, a > b ? a : b)                                                 \
  ROWS_SHORT(rows_min_f32_##isa, float, TARGET, math_min_f32(a, b))                                              \
  static rows_short_fn *const rows_shorts_##isa[] = {rows_add_f32_##isa, rows_add_f64_##isa, rows_add_u32_##isa, \
                                                     rows_max_f32_##isa, rows_max_f64_##isa, rows_max_s32_##isa, \
                                                     rows_min_f32_##isa};
ROWS_SHORTS(any, )
#if defined(__x86_64__)
ROWS_SHORTS(avx2, __attribute__((target("avx2"))))
ROWS_SHORTS(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))
static rows_short_fn *const *const rows_shorts[] = {rows_shorts_any, rows_shorts_avx2, rows_shorts_avx512,
                                                    rows_shorts_avx512};
#else
static rows_short_fn *const *const rows_shorts[] = {rows_shorts_any, rows_shorts_any, rows_shorts_any, rows_shorts_any};
#endif

/* NULL where rows are long, or there is none. */
static rows_short_fn *rows_short_of(const cpu_window *w, int64_t n) {
  int which = -1;
  if (n > ROWS_SHORT_MOST) return NULL;
  if (w->opcode == IR_OP_ADD) which = w->type == XLAC_F32 ? 0 : w->type == XLAC_F64 ? 1 : w->type == XLAC_S32 ? 2 : -1;
  if (w->opcode == IR_OP_MAXIMUM)
    which = w->type == XLAC_F32 ? 3 : w->type == XLAC_F64 ? 4 : w->type == XLAC_S32 ? 5 : -1;
  if (w->opcode == IR_OP_MINIMUM) which = w->type == XLAC_F32 ? 6 : -1;
  return which < 0 ? NULL : rows_shorts[w->isa][which];
}

/* to may be a. */
static void rows_join(const cpu_window *w, int64_t n, char *to, const char *a, const char *x) {
  const void *in[2] = {a, x};
  rows_short_fn *fn = rows_short_of(w, n);
  if (fn)
    fn(n, to, a, x, 1);
  else
    scalar_loop_run(&w->combine, n, in, to);
}

/* acc with x, element by element. */
static void rows_combine(const cpu_window *w, int64_t n, char *acc, const char *x) {
  rows_join(w, n, acc, acc, x);
}

/* The next row of input in the order of the window; -1 at the end. Offsets are elements of the operand. Rows that
 * meet only padding or holes are passed over. */
static int64_t rows_next(const cpu_window *w, rows_walk *k) {
  for (;;) {
    if (k->started) {
      uint32_t d = w->last;
      for (; d > 0; d--) {
        if (++k->s[d - 1] < w->window->v[d - 1].size) break;
        k->s[d - 1] = 0;
      }
      if (d == 0) return -1;
    }
    k->started = true;
    int64_t offset = 0;
    uint32_t d = 0;
    for (; d < w->last; d++) {
      const ir_window_dim *dim = &w->window->v[d];
      int64_t e = interp_window_element(dim, w->in_size[d], k->at[d] * dim->stride + k->s[d] * dim->window_dilation);
      if (e < 0) break;
      offset += e * w->in_stride[d];
    }
    if (d == w->last) return offset;
    /* Dimension d meets nothing, whatever the inner ones say: on to its next element. */
    for (uint32_t i = d + 1; i < w->last; i++) k->s[i] = w->window->v[i].size - 1; /* none of these meets anything */
  }
}

/* For row number `row` of the results. */
static void rows_walk_begin(const cpu_window *w, rows_walk *k, int64_t row) {
  assert(row >= 0 && row < w->rows);
  k->started = false;
  for (uint32_t d = w->last; d-- > 0; row /= w->out_size[d]) {
    k->at[d] = row % w->out_size[d];
    k->s[d] = 0;
  }
}

/* n copies of the initial value, doubling what is there. */
static void rows_fill(const cpu_window *w, int64_t n, const char *init, char *to) {
  assert(n > 0);
  memcpy(to, init, w->bytes);
  for (int64_t done = 1; done < n; done *= 2)
    memcpy(to + (size_t)done * w->bytes, to, (size_t)(done < n - done ? done : n - done) * w->bytes);
}

/* n elements, `step` apart, side by side into `to`. */
#define ROWS_PICK(T)                                                                     \
  for (int64_t i = 0; i < n; i++) {                                                      \
    memcpy(to + (size_t)i * sizeof(T), from + i * step * (int64_t)sizeof(T), sizeof(T)); \
  }
/* Elements of any size; the common sizes have loops of their own. */
static void rows_pick(size_t bytes, int64_t n, const char *from, int64_t step, char *to) {
  if (bytes == 4) {
    ROWS_PICK(uint32_t)
  } else if (bytes == 8) {
    ROWS_PICK(uint64_t)
  } else if (bytes == 1) {
    ROWS_PICK(uint8_t)
  } else {
    for (int64_t i = 0; i < n; i++) memcpy(to + (size_t)i * bytes, from + i * step * (int64_t)bytes, bytes);
  }
}

/* acc[i * step] with x[i * x_step], one element each. */
typedef void rows_spread_fn(int64_t n, char *acc, int64_t step, const char *x, int64_t x_step);
#define ROWS_SPREAD(name, T, NEXT)                                                      \
  static void name(int64_t n, char *acc, int64_t step, const char *x, int64_t x_step) { \
    T *to = (T *)(void *)acc;                                                           \
    const T *from = (const T *)(const void *)x;                                         \
    for (int64_t i = 0; i < n; i++) {                                                   \
      T a = to[i * step], b = from[i * x_step];                                         \
      to[i * step] = NEXT;                                                              \
    }                                                                                   \
  }
ROWS_SPREAD(rows_spread_add_f32, float, a + b)
ROWS_SPREAD(rows_spread_add_f64, double, a + b)
ROWS_SPREAD(rows_spread_add_u32, uint32_t, a + b)

/* NULL where there is none. */
static rows_spread_fn *rows_spread_of(const cpu_window *w) {
  if (w->opcode != IR_OP_ADD) return NULL;
  return w->type == XLAC_F32   ? rows_spread_add_f32
         : w->type == XLAC_F64 ? rows_spread_add_f64
         : w->type == XLAC_S32 ? rows_spread_add_u32
                               : NULL;
}

/* acc[i * step] with x[i * x_step], i < n; a position is `lanes` elements. */
static void rows_positions(const cpu_window *w, int64_t n, char *acc, int64_t step, const char *x, int64_t x_step) {
  int64_t bytes = (int64_t)w->bytes, most = ROWS_GATHER / bytes;
  /* Neighbours meet neighbours: one loop over all. */
  if (step == 1 && x_step == 1) {
    rows_combine(w, n * w->lanes, acc, x);
  } else if (w->lanes == 1 && step != 1 && rows_spread_of(w)) {
    rows_spread_of(w)(n, acc, step, x, x_step);
  } else if (w->lanes > 1 || step != 1) {
    /* Positions are apart: a loop over the lanes of each. */
    for (int64_t i = 0; i < n; i++)
      rows_combine(w, w->lanes, acc + i * step * w->lanes * bytes, x + i * x_step * w->lanes * bytes);
  } else if (rows_short_of(w, n)) {
    rows_short_of(w, n)(n, acc, acc, x, x_step);
  } else {
    /* Operands are apart: they are gathered first. */
    char picked[ROWS_GATHER] __attribute__((aligned(64)));
    for (int64_t i = 0; i < n; i += most) {
      int64_t m = n - i < most ? n - i : most;
      rows_pick(w->bytes, m, x + i * x_step * bytes, x_step, picked);
      rows_combine(w, m, acc + i * bytes, picked);
    }
  }
}

/* One result after the other, each from its run of x: where there are few of them, there are no lanes. E.g. a mean
 * over all of a picture: two results in a row, each of thousands of elements. */
#define ROWS_FOLD(name, T, NEXT)                             \
  static void name(int64_t n, const char *from, char *acc) { \
    const T *x = (const T *)(const void *)from;              \
    T a = *(T *)(void *)acc;                                 \
    for (int64_t i = 0; i < n; i++) a = NEXT;                \
    *(T *)(void *)acc = a;                                   \
  }
ROWS_FOLD(rows_fold_add_f32, float, a + x[i])
ROWS_FOLD(rows_fold_add_f64, double, a + x[i])
ROWS_FOLD(rows_fold_max_f32, float, math_max(a, x[i]))
ROWS_FOLD(rows_fold_add_u32, uint32_t, a + x[i])

/* acc with n elements, one after the other. */
typedef void rows_fold_fn(int64_t n, const char *from, char *acc);
/* Only where windows are runs of the row, and results few; else NULL. */
static rows_fold_fn *rows_fold_of(const cpu_window *w) {
  const ir_window_dim *d = &w->window->v[w->last];
  if (w->lanes != 1 || w->out_size[w->last] > ROWS_FEW || d->window_dilation != 1 || d->base_dilation != 1) return NULL;
  if (w->opcode == IR_OP_MAXIMUM && w->type == XLAC_F32) return rows_fold_max_f32;
  if (w->opcode != IR_OP_ADD) return NULL;
  return w->type == XLAC_F32   ? rows_fold_add_f32
         : w->type == XLAC_F64 ? rows_fold_add_f64
         : w->type == XLAC_S32 ? rows_fold_add_u32
                               : NULL;
}

enum { ROWS_POLL = 1 << 18 /* elements between looks at whether to stop */ };

/* A window may be as large as the array, so that outputs times window elements are not bounded work. */
static bool rows_stops(const rows_run *r, int64_t work, int64_t *since) {
  if ((*since += work) < ROWS_POLL) return false;
  *since = 0;
  return rt_pool_stopping(r->pool);
}

/* The part of each window that lies in the row, clipped at both ends. */
static void rows_folded(const rows_run *r, rows_fold_fn *fold, int64_t low, int64_t high, char *acc, const char *x,
                        int64_t from) {
  assert(low <= high);
  const cpu_window *w = r->w;
  int64_t since = 0;
  const ir_window_dim *d = &w->window->v[w->last];
  for (int64_t o = low; o < high; o++) {
    int64_t begin = o * d->stride - d->padding_low, end = begin + d->size;
    /* What lies outside of the row is padding, which changes nothing. */
    if (begin < 0) begin = 0;
    if (end > w->in_size[w->last]) end = w->in_size[w->last];
    if (begin < end) fold(end - begin, x + (begin - from) * (int64_t)w->bytes, acc + (o - low) * (int64_t)w->bytes);
    if (rows_stops(r, d->size, &since)) return;
  }
}

/* Outputs [low, high) of a row with a row of input, of which x holds what lies from position `from` on. */
static void rows_along(const rows_run *r, int64_t low, int64_t high, char *acc, const char *x, int64_t from) {
  assert(low <= high);
  const cpu_window *w = r->w;
  const ir_window_dim *dim = &w->window->v[w->last];
  int64_t line = w->lanes * (int64_t)w->bytes, since = 0;
  rows_fold_fn *fold = rows_fold_of(w);
  if (fold) {
    rows_folded(r, fold, low, high, acc, x, from);
    return;
  }
  for (int64_t k = 0; k < dim->size; k++) {
    interp_placement p = interp_window_placement(dim, w->in_size[w->last], k, low, high);
    if (p.count == 0) continue;
    rows_positions(w, p.count, acc + (p.first - low) * line, p.step, x + (p.from - from) * line, p.from_step);
    if (rows_stops(r, p.count * w->lanes, &since)) return;
  }
}

/* One row of results in the order of the interpreter: window element by window element, on all of the row. */
static void rows_ordered(const rows_run *r, int64_t row) {
  assert(row >= 0 && row < r->w->rows);
  const cpu_window *w = r->w;
  int64_t n = w->out_size[w->last];
  char *out = r->out + row * n * w->lanes * (int64_t)w->bytes;
  rows_walk k;
  rows_walk_begin(w, &k, row);
  rows_fill(w, n * w->lanes, r->init, out);
  int64_t since = 0;
  for (int64_t at = 0; (at = rows_next(w, &k)) >= 0 && !rows_stops(r, n * w->lanes, &since);)
    rows_along(r, 0, n, out, r->in + at * (int64_t)w->bytes, 0);
}

/* Positions of input that outputs [low, high) reach: [*from, *to). E.g. outputs [2, 4) with a window of 3, stride 2 and
 * one element of padding in front reach [3, 8). */
static void rows_reach(const cpu_window *w, int64_t low, int64_t high, int64_t *from, int64_t *to) {
  const ir_window_dim *d = &w->window->v[w->last];
  int64_t n = w->in_size[w->last], first = low * d->stride - d->padding_low;
  int64_t end = (high - 1) * d->stride - d->padding_low + (d->size - 1) * d->window_dilation;
  *from = first < 0 ? 0 : first / d->base_dilation;
  *to = end < 0 ? 0 : end / d->base_dilation + 1;
  if (*to > n) *to = n;
  if (*from > *to) *from = *to;
}

/* Outputs [low, high) of a row. */
static void rows_part(const rows_run *r, int64_t row, int64_t low, int64_t high) {
  const cpu_window *w = r->w;
  int64_t line = w->lanes * (int64_t)w->bytes, from = 0, to = 0;
  char buffer[ROWS_BUFFER] __attribute__((aligned(64)));
  char *out = r->out + (row * w->out_size[w->last] + low) * line;
  const char *first = NULL, *combined = NULL;
  rows_walk k;
  rows_reach(w, low, high, &from, &to);
  assert((to - from) * line <= ROWS_BUFFER);
  rows_walk_begin(w, &k, row);
  rows_fill(w, (high - low) * w->lanes, r->init, out);
  /* Only padding: the initial value is the result. */
  if (from == to) return;
  int64_t since = 0;
  for (int64_t at = 0; (at = rows_next(w, &k)) >= 0 && !rows_stops(r, (to - from) * w->lanes, &since);) {
    const char *x = r->in + at * (int64_t)w->bytes + from * line;
    /* The first row is used where it is; from the second on, sums are in the buffer. */
    if (combined)
      rows_join(w, (to - from) * w->lanes, buffer, combined, x);
    else
      first = x;
    combined = combined ? buffer : first;
  }
  if (combined) rows_along(r, low, high, out, combined, from);
}

/* As many outputs at a time as have a reach that fits the buffer; 0: not even one has. */
static int64_t rows_step(const cpu_window *w) {
  const ir_window_dim *d = &w->window->v[w->last];
  int64_t line = w->lanes * (int64_t)w->bytes, fit = line ? ROWS_BUFFER / line : 0;
  /* Places that the first output's window leaves free in the buffer: each further output takes a stride of them. */
  int64_t room = (fit - 1) * d->base_dilation - (d->size - 1) * d->window_dilation;
  return fit == 0 || room < 0 ? 0 : room / d->stride + 1;
}

/* Rows begin to end. Which way they go depends on sizes and the op alone. */
static void rows_range(void *ctx, size_t begin, size_t end) {
  const rows_run *r = ctx;
  const cpu_window *w = r->w;
  int64_t n = w->out_size[w->last], step = w->ordered ? 0 : rows_step(w);
  int64_t since = 0;
  for (size_t row = begin; row < end && !rows_stops(r, n * w->lanes, &since); row++) {
    if (step == 0) rows_ordered(r, (int64_t)row);
    for (int64_t at = 0; step && at < n; at += step) rows_part(r, (int64_t)row, at, n - at < step ? n : at + step);
  }
}

/* Grains go by the elements of all windows of a row. */
void cpu_window_rows(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out) {
  rows_run r = {w, pool, in, init, out};
  int64_t work = w->out_size[w->last] * w->lanes;
  if (work == 0) return;
  for (uint32_t d = 0; d <= w->last; d++) work = work < ROWS_GRAIN ? work * w->window->v[d].size : work;
  rt_parallel_for(pool, (size_t)w->rows, (size_t)(ROWS_GRAIN / work + 1), rows_range, &r);
}
