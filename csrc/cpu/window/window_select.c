/* select-and-scatter, the gradient of a max-pool: the window of each source element chooses an element of the operand,
 * and the source element is added to the result there. Dimensions without windows are independent and go to threads;
 * within one index of those, sources are added in their order. Choices are made for many windows at a time: for lanes
 * behind the windows, or, where there are none, for neighbours along the last dimension. */
#include "../../base/isa/isa.h"
#include "../../base/number/narrow_float.h"
#include "../gemm/dot_gemm.h"
#include "../move/move.h"
#include "window.h"

/* SELECT_LANES: windows that choose side by side. SELECT_MAX_ROWS: a window's elements but for the last dimension, at
 * most. SELECT_GRAIN: elements for a thread at a time. */
enum { SELECT_LANES = 64, SELECT_MAX_ROWS = 64, SELECT_GRAIN = 1 << 14, SELECT_POLL = 1 << 16 };

/* By which comparison the present choice holds against a fresh one. SELECT_CHOICES: by none of these. */
typedef enum select_choice { SELECT_GE, SELECT_GT, SELECT_LE, SELECT_LT, SELECT_CHOICES } select_choice;

/* Element number k of the window, for n windows: x[i * step] is chosen where `number` has no choice yet (-1), or the
 * best one does not hold against it. best and number are of the same width, so that lanes stay lanes. */
typedef void select_fn(int64_t n, const void *x, int64_t step, int64_t k, void *best, void *number);
/* out[places[i]] += source[i] where places[i] >= 0. */
typedef void select_add_fn(int64_t n, const int64_t *places, const void *source, void *out);

/* What is known before a run. */
typedef struct select_routine {
  const ir_window *window;
  uint32_t first, last; /* dimensions with windows: [first, last] */
  int64_t in_size[IR_MAX_RANK], out_size[IR_MAX_RANK], in_stride[IR_MAX_RANK]; /* out: the source's */
  int64_t outer, lanes, blocks, width;                                         /* lanes in blocks of width */
  int64_t in_each, source_each, rows; /* elements of an outer index; rows of sources in one */
  int64_t count;                      /* of the result */
  size_t bytes, own_bytes;            /* of an element while it is chosen; of source and result */
  base_dtype type;                    /* of the arrays; narrow floats are chosen as f32 */
  select_fn *fn;
  select_add_fn *add;
} select_routine;

/* N: an integer as wide as T. Without branches, so that loops over neighbours become vector code. */
#define SELECT_FN(name, T, N, keep, TARGET)                                                                       \
  TARGET static void name(int64_t n, const void *from, int64_t step, int64_t k, void *best_of, void *number_of) { \
    const T *restrict x = from;                                                                                   \
    T *restrict best = best_of;                                                                                   \
    N *restrict number = number_of;                                                                               \
    for (int64_t i = 0; step == 1 && i < n; i++) {                                                                \
      T old = best[i], fresh = x[i];                                                                              \
      N stays = -(N)((number[i] >= 0) & (keep));                                                                  \
      best[i] = stays ? old : fresh;                                                                              \
      number[i] = stays ? number[i] : (N)k;                                                                       \
    }                                                                                                             \
    for (int64_t i = 0; step != 1 && i < n; i++) {                                                                \
      T old = best[i], fresh = x[i * step];                                                                       \
      bool stays = (number[i] >= 0) & (keep);                                                                     \
      best[i] = stays ? old : fresh;                                                                              \
      number[i] = stays ? number[i] : (N)k;                                                                       \
    }                                                                                                             \
  }
#define SELECT_ALL(t, T, N, TARGET)                    \
  SELECT_FN(select_ge_##t, T, N, old >= fresh, TARGET) \
  SELECT_FN(select_gt_##t, T, N, old > fresh, TARGET)  \
  SELECT_FN(select_le_##t, T, N, old <= fresh, TARGET) \
  SELECT_FN(select_lt_##t, T, N, old < fresh, TARGET)
/* One after the other: two windows may have chosen the same place. */
#define SELECT_ADD(name, U)                                                           \
  static void name(int64_t n, const int64_t *places, const void *source, void *out) { \
    const U *x = source;                                                              \
    U *to = out;                                                                      \
    for (int64_t i = 0; i < n; i++)                                                   \
      if (places[i] >= 0) to[places[i]] += x[i];                                      \
  }
/* Each sum is rounded. */
#define SELECT_ADD_NARROW(name, type)                                                                           \
  static void name(int64_t n, const int64_t *places, const void *source, void *out) {                           \
    const uint16_t *x = source;                                                                                 \
    uint16_t *to = out;                                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                                           \
      if (places[i] < 0) continue;                                                                              \
      uint16_t *at = &to[places[i]];                                                                            \
      *at = (uint16_t)base_narrow_encode(type, base_narrow_decode(type, *at) + base_narrow_decode(type, x[i])); \
    }                                                                                                           \
  }
static const base_narrow select_bf16 = {7, 127, 15, 0x7F7F, 0x7F80, 0x7FC0, true, true},
                         select_f16 = {10, 15, 15, 0x7BFF, 0x7C00, 0x7E00, true, true};
SELECT_ADD_NARROW(select_add_bf16, select_bf16)
SELECT_ADD_NARROW(select_add_f16, select_f16)
SELECT_ALL(f32, float, int32_t, )
SELECT_ALL(f64, double, int64_t, )
SELECT_ALL(s32, int32_t, int32_t, )
SELECT_ALL(s64, int64_t, int64_t, )
SELECT_ADD(select_add_f32, float)
SELECT_ADD(select_add_f64, double)
SELECT_ADD(select_add_u32, uint32_t)
SELECT_ADD(select_add_u64, uint64_t)
#define SELECT_ROW(t) {select_ge_##t, select_gt_##t, select_le_##t, select_lt_##t}
#if defined(__x86_64__)
SELECT_ALL(f32_avx2, float, int32_t, __attribute__((target("avx2"))))
#endif

/* The functions for a type and a comparison; false where there are none. */
static bool select_bind(select_routine *s, base_dtype t, select_choice c) {
  static select_fn *const table[4][SELECT_CHOICES] = {SELECT_ROW(f32), SELECT_ROW(f64), SELECT_ROW(s32),
                                                      SELECT_ROW(s64)};
  static select_add_fn *const adds[4] = {select_add_f32, select_add_f64, select_add_u32, select_add_u64};
  bool narrow = t == XLAC_BF16 || t == XLAC_F16;
  int row = t == XLAC_F32 || narrow ? 0 : t == XLAC_F64 ? 1 : t == XLAC_S32 ? 2 : t == XLAC_S64 ? 3 : -1;
  if (row < 0 || c == SELECT_CHOICES) return false;
  s->fn = table[row][c];
  s->add = t == XLAC_BF16 ? select_add_bf16 : t == XLAC_F16 ? select_add_f16 : adds[row];
  s->type = t;
  s->own_bytes = base_dtype_bytes(t);
  s->bytes = narrow ? sizeof(float) : s->own_bytes;
#if defined(__x86_64__)
  static select_fn *const avx2[SELECT_CHOICES] = SELECT_ROW(f32_avx2);
  if (row == 0 && base_isa_best() >= BASE_ISA_AVX2) s->fn = avx2[c];
#endif
  return true;
}

/* One run: shared by its threads. */
typedef struct select_run {
  const select_routine *s;
  rt_pool *pool;
  const char *x, *source, *init;
  char *out;
} select_run;

/* The rows of the operand that the windows of one row of sources have: the window's elements but for the last
 * dimension. at[i] < 0: row i of the window meets nothing. */
typedef struct select_rows {
  int64_t n, at[SELECT_MAX_ROWS];
} select_rows;

/* Of row number `row` of the sources, counted within an outer index. */
static void select_find_rows(const select_routine *s, int64_t row, select_rows *rows) {
  assert(row >= 0);
  int64_t o[IR_MAX_RANK] = {0}, k[IR_MAX_RANK] = {0};
  /* The index of the row in the source's outer dimensions. */
  for (uint32_t d = s->last; d-- > s->first; row /= s->out_size[d]) o[d] = row % s->out_size[d];
  for (rows->n = 0;;) {
    int64_t place = 0;
    for (uint32_t d = s->first; d < s->last && place >= 0; d++) {
      const ir_window_dim *w = &s->window->v[d];
      int64_t e = interp_window_element(w, s->in_size[d], o[d] * w->stride + k[d] * w->window_dilation);
      place = e < 0 ? -1 : place + e * s->in_stride[d];
    }
    assert(rows->n < SELECT_MAX_ROWS);
    rows->at[rows->n++] = place;
    uint32_t d = s->last;
    for (; d > s->first; d--) {
      if (++k[d - 1] < s->window->v[d - 1].size) break;
      k[d - 1] = 0;
    }
    if (d == s->first) return;
  }
}

/* Where the chosen element `number` of the window at position o lies. */
static int64_t select_place(const select_routine *s, const select_rows *rows, int64_t number, int64_t o) {
  const ir_window_dim *w = &s->window->v[s->last];
  if (number < 0) return -1;
  /* The window's elements are numbered row-major. */
  uint32_t row = (uint32_t)number / (uint32_t)w->size, k = (uint32_t)number % (uint32_t)w->size;
  int64_t e = o * w->stride + k * w->window_dilation - w->padding_low;
  if (w->base_dilation > 1) e /= w->base_dilation;
  return rows->at[row] + e * s->in_stride[s->last];
}

/* The choice of window i; -1: it chose nothing. */
static int64_t select_number(const select_routine *s, const char *numbers, int64_t i) {
  assert(i >= 0 && i < SELECT_LANES);
  int32_t narrow = 0;
  int64_t wide = 0;
  if (s->bytes == 8)
    memcpy(&wide, numbers + i * 8, sizeof wide);
  else
    memcpy(&narrow, numbers + i * 4, sizeof narrow);
  return s->bytes == 8 ? wide : narrow;
}

/* Positions [low, high) of a row (one, where there are lanes): n choices in all. x, out: of the outer index and lane.
 */
static void select_some(const select_run *run, const select_rows *rows, const char *x, int64_t low, int64_t high,
                        int64_t n, const char *source, char *out) {
  assert(n <= SELECT_LANES && low < high);
  const select_routine *s = run->s;
  const ir_window_dim *w = &s->window->v[s->last];
  char best[SELECT_LANES * 8] __attribute__((aligned(64))), numbers[SELECT_LANES * 8] __attribute__((aligned(64)));
  int64_t places[SELECT_LANES], bytes = (int64_t)s->bytes;
  /* -1 in either width: nothing is chosen. */
  memset(numbers, 0xFF, sizeof numbers);
  memset(best, 0, sizeof best);
  for (int64_t r = 0; r < rows->n; r++) {
    for (int64_t k = 0; rows->at[r] >= 0 && k < w->size; k++) {
      interp_placement p = interp_window_placement(w, s->in_size[s->last], k, low, high);
      const char *from = x + (rows->at[r] + p.from * s->in_stride[s->last]) * bytes;
      if (k % SELECT_POLL == SELECT_POLL - 1 && rt_pool_stopping(run->pool)) return;
      if (p.count == 0) continue;
      /* Lanes, neighbours along the row, or single ones where base dilation puts them apart. */
      if (s->lanes > 1)
        s->fn(n, from, 1, r * w->size + k, best, numbers);
      else if (p.step == 1)
        s->fn(p.count, from, p.from_step, r * w->size + k, best + (p.first - low) * bytes,
              numbers + (p.first - low) * bytes);
      else
        for (int64_t i = 0; i < p.count; i++)
          s->fn(1, from + i * p.from_step * bytes, 1, r * w->size + k, best + (p.first + i * p.step - low) * bytes,
                numbers + (p.first + i * p.step - low) * bytes);
    }
  }
  for (int64_t i = 0; i < n; i++) {
    bool along = s->lanes == 1;
    places[i] = select_place(s, rows, select_number(s, numbers, i), along ? low + i : low);
    if (!along && places[i] >= 0) places[i] += i;
  }
  s->add(n, places, source, out);
}

/* Calls of select_some between looks at whether to go on. */
static int64_t select_poll(const select_routine *s) {
  int64_t each = SELECT_LANES;
  for (uint32_t d = s->first; d <= s->last; d++) each *= s->window->v[d].size;
  return SELECT_POLL / each + 1;
}

/* An outer index, with one block of lanes. */
static void select_unit(const select_run *r, int64_t outer, int64_t lane, int64_t lanes) {
  assert(lanes > 0 && lanes <= SELECT_LANES);
  const select_routine *s = r->s;
  int64_t own = (int64_t)s->own_bytes, at = outer * s->in_each + lane, n = s->out_size[s->last];
  const char *source = r->source + (outer * s->source_each + lane) * own;
  int64_t fills = SELECT_POLL / lanes + 1, poll = select_poll(s);
  for (int64_t i = 0; i < s->in_each / s->lanes; i++) {
    if (i % fills == 0 && rt_pool_stopping(r->pool)) return;
    cpu_move_fill(NULL, s->own_bytes, r->out + (at + i * s->lanes) * own, lanes, r->init);
  }
  for (int64_t row = 0, chosen = 0; row < s->rows; row++) {
    select_rows rows;
    /* One position at a time where its lanes choose side by side. */
    int64_t step = s->lanes > 1 ? 1 : SELECT_LANES;
    select_find_rows(s, row, &rows);
    for (int64_t o = 0; o < n; o += step) {
      int64_t high = n - o < step ? n : o + step;
      if (chosen++ % poll == 0 && rt_pool_stopping(r->pool)) return;
      select_some(r, &rows, r->x + at * (int64_t)s->bytes, o, high, s->lanes > 1 ? lanes : high - o,
                  source + (row * n + o) * s->lanes * own, r->out + at * own);
    }
  }
}

/* Units begin to end: a block of lanes of one outer index each. They share no place of the result. */
static void select_units(void *ctx, size_t begin, size_t end) {
  const select_run *r = ctx;
  const select_routine *s = r->s;
  for (size_t i = begin; i < end; i++) {
    int64_t lane = (int64_t)i % s->blocks * s->width;
    select_unit(r, (int64_t)i / s->blocks, lane, s->lanes - lane < s->width ? s->lanes - lane : s->width);
  }
}

/* The routine. Narrow floats are chosen in f32, and added in their own type. */
static int select_run_all(const cpu_routine_run *r) {
  const select_routine *s = r->data;
  select_run run = {s, r->run->exe->pool, r->in[0], r->in[1], r->in[2], r->out[0]};
  if (s->count == 0) return 0;
  /* A copy of the operand in f32. */
  if (s->own_bytes < s->bytes) {
    cpu_gemm_convert(r->run->exe->pool, XLAC_F32, r->scratch, s->type, r->in[0], s->count);
    run.x = r->scratch;
  }
  int64_t work = s->in_each / s->blocks + 1;
  rt_parallel_for(r->run->exe->pool, (size_t)(s->outer * s->blocks), (size_t)(SELECT_GRAIN / work + 1), select_units,
                  &run);
  return 0;
}

/* The comparison that a computation makes of its parameters, in their order. */
static select_choice select_choice_of(const ir_computation *c, base_dtype t) {
  static const uint8_t directions[SELECT_CHOICES] = {IR_DIRECTION_GE, IR_DIRECTION_GT, IR_DIRECTION_LE,
                                                     IR_DIRECTION_LT};
  const ir_op *body = ir_root(c);
  if (c->n_params != 2 || body->opcode != IR_OP_COMPARE || ir_operand(body, 0) != c->params[0] ||
      ir_operand(body, 1) != c->params[1] || !ir_is_scalar(body->type))
    return SELECT_CHOICES;
  int direction = ir_get_word(body, IR_ATTR_DIRECTION);
  for (uint32_t i = 0; i < 2; i++)
    if (!ir_is_scalar(c->params[i]->type) || c->params[i]->type->dtype != t) return SELECT_CHOICES;
  /* That order has its own answer for NaN and zeros. */
  if (ir_get_word(body, IR_ATTR_TYPE) == IR_COMPARISON_TOTALORDER) return SELECT_CHOICES;
  for (unsigned i = 0; i < SELECT_CHOICES; i++)
    if (direction == directions[i]) return (select_choice)i;
  return SELECT_CHOICES;
}

/* false where windows have more rows than there is room for. */
static bool select_measure(select_routine *s, const ir_type *x, const ir_type *source) {
  uint32_t rank = x->rank;
  int64_t rows = 1;
  interp_strides(rank, x->dims, s->in_stride);
  s->first = 0;
  s->last = rank - 1;
  s->outer = s->lanes = s->rows = 1;
  for (uint32_t d = 0; d < rank; d++) {
    s->in_size[d] = x->dims[d];
    s->out_size[d] = source->dims[d];
  }
  /* Dimensions without windows at the end are lanes, those at the beginning independent. */
  while (s->last > 0 && cpu_window_is_trivial(&s->window->v[s->last], x->dims[s->last], source->dims[s->last]))
    s->lanes *= x->dims[s->last--];
  while (s->first < s->last &&
         cpu_window_is_trivial(&s->window->v[s->first], x->dims[s->first], source->dims[s->first]))
    s->outer *= x->dims[s->first++];
  for (uint32_t d = s->first; d < s->last; d++) {
    s->rows *= s->out_size[d];
    if (s->window->v[d].size > SELECT_MAX_ROWS / rows) return false;
    rows *= s->window->v[d].size;
  }
  s->count = x->count;
  s->in_each = s->outer ? x->count / s->outer : 0;
  s->source_each = s->rows * s->out_size[s->last] * s->lanes;
  /* Few lanes at a time where that makes work for threads. */
  s->width = s->outer < 8 && s->lanes > 16 ? 16 : SELECT_LANES;
  s->blocks = (s->lanes + s->width - 1) / s->width;
  return s->window->v[s->last].size < INT32_MAX / SELECT_MAX_ROWS;
}

/* Only for comparisons and sums; else x->code stays NULL, and the general way is tried. */
static int select_prepare(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  const ir_type *in = ir_operand_type(op, 0), *source = ir_operand_type(op, 1);
  const ir_window *window = ir_get_window(op);
  base_dtype t = (base_dtype)in->dtype;
  const ir_op *add = cpu_window_body(op->called[1]);
  if (!window || window->n != in->rank || in->rank == 0 || !add || add->opcode != IR_OP_ADD) return 0;
  /* All of one type, which the functions are for. */
  if (add->type->dtype != t || source->dtype != t || ir_operand_type(op, 2)->dtype != t || op->type->dtype != t)
    return 0;
  for (uint32_t d = 0; d < in->rank; d++)
    if (source->dims[d] > interp_window_count(&window->v[d], in->dims[d])) return 0;
  select_routine *s = BASE_NEW(x->arena, select_routine);
  if (!s) return base_oom(x->err, "select-and-scatter");
  s->window = window;
  if (!select_bind(s, t, select_choice_of(op->called[0], t)) || !select_measure(s, in, source)) return 0;
  if (s->own_bytes < s->bytes) x->out->scratch_bytes = in->count * (int64_t)s->bytes;
  x->out->name = "select-and-scatter";
  x->out->work = (uint64_t)source->count * 8 + (uint64_t)in->count;
  x->data = s;
  x->out->stoppable = true;
  x->code = select_run_all;
  return 0;
}

/* By loops where it is a comparison and a sum, else by any computations. */
int cpu_prepare_select_and_scatter(cpu_prepare_run *x) {
  TRY(select_prepare(x));
  return x->code ? 0 : cpu_prepare_select_body(x);
}
