/* Running native kernels: rows along the innermost dimension, as many in a call as follow each other evenly. */
#include "native_inside.h"

/* One run over a range. */
typedef struct cpu_native_rows {
  const cpu_native_kernel *n;
  nat_code_fn *code;
  uintptr_t at[NAT_MAX_STREAMS]; /* by stream, where the present row begins, or would */
  int64_t apart;                 /* from the lanes that a row is combined to, to those of the next one: bytes ... */
  int64_t wide;                  /* ... and elements */
  int64_t index[KERNEL_MAX_RANK];
} cpu_native_rows;

/* Each stream's place at the index, but for the innermost dimension, along which the run begins at `from`. */
static void nat_row_point(cpu_native_rows *r, const void *const *in, void *const *out, char *const *sums,
                          int64_t from) {
  const kernel *k = r->n->k;
  for (uint32_t i = 0; i < r->n->n_streams; i++) {
    const cpu_native_stream *s = &r->n->streams[i];
    int64_t offset = s->index->offset;
    for (uint32_t d = 0; d + 1 < k->rank; d++) offset += s->index->strides[d] * r->index[d];
    uintptr_t first = s->number ? 0 : s->output ? (uintptr_t)out[s->buffer] : (uintptr_t)in[s->buffer];
    r->at[i] =
        s->sum ? (uintptr_t)sums[s->buffer] - (uintptr_t)(from * s->step) : first + (uintptr_t)(offset * s->width);
  }
}

/* Bytes from the lanes of one row to those of the next, of a stream that is combined to. */
static inline int64_t nat_row_apart(const cpu_native_rows *r, const cpu_native_stream *s) {
  return r->apart + r->wide * s->width;
}

/* Bytes from one row of the stream to the next along dimension d, or of an iota its numbers. */
static inline int64_t nat_row_step(const cpu_native_stream *s, uint32_t d) {
  return s->index->strides[d] * s->width;
}

/* To the row that is `rows` further, of which only the last may be in the next one of the second dimension from the
 * end: dimensions that are over begin again. */
static void nat_rows_advance(cpu_native_rows *r, int64_t rows) {
  const kernel *k = r->n->k;
  for (uint32_t i = 0; r->apart + r->wide && i < r->n->n_streams; i++)
    if (r->n->streams[i].sum) r->at[i] += (uintptr_t)(rows * nat_row_apart(r, &r->n->streams[i]));
  for (uint32_t d = k->rank - 1; d-- > 0; rows = 1) {
    r->index[d] += rows;
    bool over = r->index[d] == k->extents[d];
    int64_t by = over ? rows - k->extents[d] : rows;
    for (uint32_t i = 0; i < r->n->n_streams; i++) r->at[i] += (uintptr_t)(by * nat_row_step(&r->n->streams[i], d));
    if (!over) return;
    r->index[d] = 0;
  }
}

/* How many of the next `most` rows one call may do. */
static int64_t nat_rows_even(const cpu_native_rows *r, int64_t most) {
  const kernel *k = r->n->k;
  int64_t left = k->rank > 1 ? k->extents[k->rank - 2] - r->index[k->rank - 2] : 1;
  return left < most ? left : most;
}

/* n elements that are `step` bytes apart, to the same distances. */
static void nat_row_copy(char *to, const char *from, int64_t n, int64_t step, size_t width) {
  for (int64_t i = 0; i < n; i++) memcpy(to + i * step, from + i * step, width);
}

/* Fewer iterations than a vector has, where the code does whole ones alone: on a copy of what they read, and what they
 * write is copied back. */
static void nat_row_few(const cpu_native_rows *r, const nat_arguments *a, int64_t n) {
  char lanes[NAT_MAX_STREAMS][NAT_VECTOR * NAT_MAX_STRIDE] __attribute__((aligned(NAT_VECTOR)));
  nat_arguments few; /* not cleared: a call of its own for each row */
  few.n = r->n->lanes, few.rows = 1;
  char *first[NAT_MAX_STREAMS];
  assert(n > 0 && n < r->n->lanes);
  for (uint32_t i = 0; i < r->n->n_streams; i++) {
    const cpu_native_stream *s = &r->n->streams[i];
    few.at[i] = a->at[i];
    if (!s->stride) continue;
    first[i] = lanes[i] + (s->step < 0 ? (1 - (int64_t)r->n->lanes) * s->step : 0);
    few.at[i] = first[i];
    memset(lanes[i], 0, (size_t)(r->n->lanes * (s->step < 0 ? -s->step : s->step)));
    if (!s->output) nat_row_copy(first[i], a->at[i], n, s->step, s->width);
  }
  r->code(&few);
  for (uint32_t i = 0; i < r->n->n_streams; i++) {
    const cpu_native_stream *s = &r->n->streams[i];
    if (s->output) nat_row_copy((char *)(uintptr_t)a->at[i], first[i], n, s->step, s->width);
  }
}

/* Iterations from..from + n of the present row and of those after it, `rows` in all. */
static void nat_rows_run(const cpu_native_rows *r, int64_t from, int64_t n, int64_t rows) {
  nat_arguments a; /* only what the code's streams need is set */
  int64_t whole = r->n->tail ? n : n - n % r->n->lanes;
  assert(rows == 1 || whole == n);
  for (uint32_t i = 0; i < r->n->n_streams; i++) {
    const cpu_native_stream *s = &r->n->streams[i];
    a.at[i] = (const void *)(r->at[i] + (uintptr_t)(from * s->step));
    if (s->cycle) a.at[i] = (const char *)a.at[i] + from / r->n->trip * s->cycle;
    if (rows > 1) a.by[i] = nat_row_step(s, r->n->k->rank - 2) + (s->sum ? nat_row_apart(r, s) : 0);
  }
  a.n = whole, a.rows = rows;
  if (whole) r->code(&a);
  if (whole == n) return;
  for (uint32_t i = 0; i < r->n->n_streams; i++)
    a.at[i] = (const void *)(r->at[i] + (uintptr_t)((from + whole) * r->n->streams[i].step));
  nat_row_few(r, &a, n - whole);
}
static void nat_row_run(const cpu_native_rows *r, int64_t from, int64_t n) {
  nat_rows_run(r, from, n, 1);
}

/* Whether there is room for what is combined; lanes are of one row, columns of one row of results. */
static inline bool sums_fit(const cpu_native_kernel *n, char *const *sums, int64_t begin, int64_t end) {
  int64_t row = n->k->extents[n->k->rank - 1];
  if (n->way == CPU_NATIVE_COLUMNS) row = n->k->reduction->inner;
  if (n->k->reduction && n->way != CPU_NATIVE_VALUES && begin / row != (end - 1) / row) return false;
  return sums || !n->k->reduction;
}

/* At iteration number `begin`; gives its place in its row. */
static int64_t nat_rows_begin(cpu_native_rows *r, const cpu_native_kernel *n, const void *const *in, void *const *out,
                              char *const *sums, int64_t begin) {
  const kernel *k = n->k;
  uintptr_t code = (uintptr_t)n->store->pages + n->entry;
  assert(cpu_native_is_ready(n) && k->rank > 0 && begin >= 0 && begin < k->count);
  r->n = n, r->apart = r->wide = 0; /* not cleared: small kernels run often */
  memcpy(&r->code, &code, sizeof code);
  int64_t row = k->extents[k->rank - 1], rest = begin ? begin / row : 0, from = begin - rest * row;
  for (uint32_t d = k->rank - 1; d-- > 0;) {
    r->index[d] = rest ? rest % k->extents[d] : 0;
    if (rest) rest /= k->extents[d];
  }
  nat_row_point(r, in, out, sums, from);
  return from;
}

/* Whether the present row goes through the box. */
static bool nat_row_meets(const cpu_native_rows *r, const kernel_box *box) {
  for (uint32_t d = 0; d + 1 < r->n->k->rank; d++)
    if (r->index[d] < box->from[d] || r->index[d] >= box->to[d]) return false;
  return true;
}

/* Iterations from..to of the present row: each part's by its own code. */
static void nat_row_run_parts(const cpu_native_rows *all, const cpu_native_rows *parts, int64_t from, int64_t to) {
  uint32_t last = all->n->k->rank - 1;
  for (uint32_t i = 0; i < all->n->n_parts && from < to; i++) {
    const kernel_box *box = &all->n->boxes[i];
    if (box->to[last] <= from || box->from[last] >= to || !nat_row_meets(all, box)) continue;
    int64_t low = box->from[last] > from ? box->from[last] : from, high = box->to[last] < to ? box->to[last] : to;
    if (from < low) nat_row_run(all, from, low - from);
    nat_row_run(&parts[i], low, high - low);
    from = high;
  }
  if (from < to) nat_row_run(all, from, to - from);
}

/* The same as cpu_native_run, of a kernel that is cut: the whole and its parts go from row to row together. */
static void nat_run_parts(const cpu_native_kernel *n, const void *const *in, void *const *out, int64_t begin,
                          int64_t end) {
  cpu_native_rows all, parts[NAT_CUT_PARTS];
  int64_t row = n->k->extents[n->k->rank - 1], from = nat_rows_begin(&all, n, in, out, NULL, begin);
  for (uint32_t i = 0; i < n->n_parts; i++) nat_rows_begin(&parts[i], n->parts[i], in, out, NULL, begin);
  for (int64_t at = begin; at < end; from = 0) {
    int64_t m = row - from < end - at ? row - from : end - at;
    nat_row_run_parts(&all, parts, from, from + m);
    at += m;
    if (at == end) return;
    nat_rows_advance(&all, 1);
    for (uint32_t i = 0; i < n->n_parts; i++) nat_rows_advance(&parts[i], 1);
  }
}

/* How many cycles of the present row, from iteration `from` on, read nothing behind the end of an array; `most` at
 * most. */
static int64_t nat_cycles_fit(const cpu_native_rows *r, int64_t from, int64_t most) {
  const kernel *k = r->n->k;
  for (uint32_t i = 0; i < r->n->n_streams; i++) {
    const cpu_native_stream *s = &r->n->streams[i];
    int64_t at = s->index->offset, by = s->cycle / s->width;
    if (!by) continue;
    for (uint32_t d = 0; d + 1 < k->rank; d++) at += s->index->strides[d] * r->index[d];
    at += from / r->n->trip * by;
    int64_t fit = at > s->room ? 0 : (s->room - at) / by + 1;
    if (fit < most) most = fit;
  }
  return most;
}

static void nat_run_rows(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                         int64_t begin, int64_t end);

/* The whole cycles of begin..end, which is within one row of their kernel; as cpu_native_run_cycles. */
static int64_t nat_run_cycles(const cpu_native_kernel *n, const void *const *in, void *const *out, int64_t begin,
                              int64_t end, int64_t *begun) {
  cpu_native_rows r;
  int64_t trip = n->cycle->trip, from = nat_rows_begin(&r, n->cycle, in, out, NULL, begin);
  int64_t first = (from + trip - 1) / trip * trip, left = from + end - begin - first;
  int64_t cycles = left > 0 ? nat_cycles_fit(&r, first, left / trip) : 0;
  *begun = end;
  if (cycles <= 0) return end;
  *begun = begin + first - from;
  nat_row_run(&r, first, cycles * trip);
  assert(*begun + cycles * trip <= end);
  return *begun + cycles * trip;
}

int64_t cpu_native_run_cycles(const cpu_native_kernel *n, const void *const *in, void *const *out, int64_t begin,
                              int64_t end, int64_t *from) {
  int64_t row = n->cycle->k->extents[n->cycle->k->rank - 1], done = begin;
  *from = end;
  for (int64_t at = begin, m = 0; at < end; at += m) {
    m = row - at % row < end - at ? row - at % row : end - at;
    done = nat_run_cycles(n, in, out, at, at + m, from);
    if (*from < done) return done;
  }
  *from = end;
  return end;
}

void cpu_native_run(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                    int64_t begin, int64_t end) {
  for (int64_t at = begin, from = end, next = end; at < end; at = next, next = from = end) {
    if (n->cycle) next = cpu_native_run_cycles(n, in, out, at, end, &from);
    if (at < from) nat_run_rows(n, in, out, sums, at, from);
  }
}

static void nat_run_rows(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                         int64_t begin, int64_t end) {
  cpu_native_rows r;
  if (n->n_parts) {
    nat_run_parts(n, in, out, begin, end);
    return;
  }
  assert(end <= n->k->count && sums_fit(n, sums, begin, end));
  int64_t row = n->k->extents[n->k->rank - 1], from = nat_rows_begin(&r, n, in, out, sums, begin);
  bool even = n->tail || row % n->lanes == 0;
  for (int64_t at = begin; at < end; from = 0) {
    int64_t m = row - from < end - at ? row - from : end - at;
    int64_t rows = even && m == row ? nat_rows_even(&r, (end - at) / row) : 1;
    nat_rows_run(&r, from, m, rows);
    at += m * rows;
    if (at < end) nat_rows_advance(&r, rows);
  }
}

/* --- bound calls --- */

/* Of rows that follow each other evenly. The code moves the pointers of several rows on, so those of the first row are
 * kept behind the arguments, of which there are as many as the code has streams. */
struct cpu_native_call {
  nat_code_fn *code;
  int64_t rows;
  uint32_t n_streams;
  const void **first; /* NULL: there is one row */
  nat_arguments a;
};

static int64_t nat_call_rows(const cpu_native_kernel *n) {
  return n->k->rank > 1 ? n->k->extents[0] : 1;
}

/* Bytes of the arguments that the code has to do with. */
static size_t nat_call_arguments(const cpu_native_kernel *n) {
  bool several = nat_call_rows(n) > 1;
  return (several ? offsetof(nat_arguments, by) : offsetof(nat_arguments, at)) + n->n_streams * sizeof(void *);
}

size_t cpu_native_call_bytes(const cpu_native_kernel *n) {
  if (!n || n->n_parts || n->entry == NAT_NONE || n->k->rank > 2) return 0;
  if (n->k->reduction && n->way != CPU_NATIVE_VALUES && (n->way != CPU_NATIVE_LANES || n->k->rank > 1)) return 0;
  if (!n->tail && n->k->extents[n->k->rank - 1] % n->lanes) return 0;
  size_t first = nat_call_rows(n) > 1 ? n->n_streams * sizeof(void *) : 0;
  return offsetof(cpu_native_call, a) + nat_call_arguments(n) + first;
}

void cpu_native_call_bind(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                          cpu_native_call *call) {
  cpu_native_rows r;
  assert(cpu_native_call_bytes(n) > 0);
  (void)nat_rows_begin(&r, n, in, out, sums, 0);
  call->code = r.code, call->rows = nat_call_rows(n), call->n_streams = n->n_streams, call->first = NULL;
  call->a.n = n->k->extents[n->k->rank - 1];
  if (call->rows > 1) call->first = (const void **)(void *)((char *)&call->a + nat_call_arguments(n));
  for (uint32_t i = 0; i < n->n_streams; i++) {
    call->a.at[i] = (const void *)r.at[i];
    if (!call->first) continue;
    call->first[i] = call->a.at[i];
    call->a.by[i] = nat_row_step(&n->streams[i], 0);
  }
}

void cpu_native_call_run(cpu_native_call *call) {
  call->a.rows = call->rows;
  for (uint32_t i = 0; call->first && i < call->n_streams; i++) call->a.at[i] = call->first[i];
  call->code(&call->a);
}

/* Back to the first lanes, from those after `rows` rows. */
static void nat_rows_again(cpu_native_rows *r, int64_t rows) {
  for (uint32_t i = 0; r->wide && i < r->n->n_streams; i++)
    if (r->n->streams[i].sum) r->at[i] -= (uintptr_t)(rows * nat_row_apart(r, &r->n->streams[i]));
}

void cpu_native_run_columns(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                            int64_t begin, int64_t lanes, int64_t rows, int64_t runs) {
  cpu_native_rows r;
  int64_t from = nat_rows_begin(&r, n, in, out, sums, begin);
  bool even = n->tail || lanes % n->lanes == 0;
  assert(n->way == CPU_NATIVE_COLUMNS && from + lanes <= n->k->extents[n->k->rank - 1] && runs > 0);
  r.wide = runs > 1 ? lanes : 0;
  for (int64_t i = 0, m = 0; i < rows; i += m) {
    int64_t left = runs > 1 ? runs - i % runs : rows;
    m = even ? nat_rows_even(&r, left < rows - i ? left : rows - i) : 1;
    nat_rows_run(&r, from, lanes, m);
    if (i + m == rows) return;
    nat_rows_advance(&r, m);
    if (m == left) nat_rows_again(&r, runs);
  }
}

void cpu_native_run_lanes(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                          int64_t begin, int64_t rows) {
  cpu_native_rows r;
  int64_t row = n->k->extents[n->k->rank - 1];
  assert(n->way == CPU_NATIVE_LANES && n->tail && begin % row == 0 && row == n->k->reduction->reduced);
  (void)nat_rows_begin(&r, n, in, out, sums, begin);
  r.apart = CPU_NATIVE_FOLD_BYTES;
  for (int64_t i = 0, m = 0; i < rows; i += m) {
    if (i) nat_rows_advance(&r, m);
    m = nat_rows_even(&r, rows - i);
    nat_rows_run(&r, 0, row, m);
  }
}
