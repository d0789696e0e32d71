/* The loops of scatter: rows of a window by op and type, single elements, and where windows are, some hundred ahead. */
#include "../../base/math/math.h"
#include "scatter.h"

/* The update is the new value. */
static void scat_row_put(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n) {
  assert(n >= 0);
  if (to_stride == s->bytes && from_stride == s->bytes)
    cpu_move_short(to, from, n * s->bytes);
  else
    cpu_move_row(s->bytes, to, to_stride, from, from_stride, n);
}

/* Any op, by the interpreter's loop. */
static void scat_row_any(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n) {
  if (to_stride == s->bytes && from_stride == s->bytes) {
    scalar_loop_run(&s->loop, n, (const void *const[]){to, from}, to);
    return;
  }
  for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
    /* An element at a time, where either side has gaps. */
    scalar_loop_run(&s->loop, 1, (const void *const[]){to, from}, to);
}

/* Common ops straight in C: the interpreter's bits, without its calls. Integers wrap. Windows that are rows of `len`
 * neighbours, one after the other: where each is in the array (negative: nowhere), in bytes. Updates are never part of
 * the array. old: the element; x: the update. */
#define SCAT_ROWS(name, T, expression)                                                                      \
  static void name(char *big, const int64_t *at, const char *small, int64_t step, int64_t n, int64_t len) { \
    for (int64_t i = 0; i < n; i++, small += step) {                                                        \
      if (at[i] < 0) continue;                                                                              \
      T *restrict a = (T *)(void *)(big + at[i]);                                                           \
      const T *restrict b = (const T *)(const void *)small;                                                 \
      for (int64_t j = 0; j < len; j++) {                                                                   \
        const T old = a[j], x = b[j];                                                                       \
        a[j] = expression;                                                                                  \
      }                                                                                                     \
    }                                                                                                       \
  }
/* A row of a window at any strides. */
#define SCAT_ROW(name, T, expression)                                                                      \
  static void name(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride, \
                   int64_t n) {                                                                            \
    if (to_stride == sizeof(T) && from_stride == sizeof(T)) {                                              \
      s->rows(to, &(int64_t){0}, from, 0, 1, n);                                                           \
      return;                                                                                              \
    }                                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      T *a = (T *)(void *)(to + i * to_stride);                                                            \
      const T old = *a, x = *(const T *)(const void *)(from + i * from_stride);                            \
      *a = expression;                                                                                     \
    }                                                                                                      \
  }
/* Single elements, one after the other: where each is in the array (negative: nowhere), in bytes. */
#define SCAT_POINTS(name, T, expression)                                                       \
  static void name(char *big, const int64_t *at, const char *small, int64_t step, int64_t n) { \
    for (int64_t i = 0; i < n; i++, small += step) {                                           \
      if (at[i] < 0) continue;                                                                 \
      T *to = (T *)(void *)(big + at[i]);                                                      \
      const T x = *(const T *)(const void *)small, old = *to;                                  \
      (void)old;                                                                               \
      *to = expression;                                                                        \
    }                                                                                          \
  }
/* The same where index i is the place, in elements, and updates are neighbours: what most programs have. */
#define SCAT_DENSE(name, T, expression)                                                         \
  static void name(char *big, const int32_t *at, int64_t limit, const char *small, int64_t n) { \
    for (int64_t i = 0; i < n; i++) {                                                           \
      if ((uint64_t)(int64_t)at[i] > (uint64_t)limit) continue;                                 \
      T *to = (T *)(void *)big + at[i];                                                         \
      const T x = ((const T *)(const void *)small)[i], old = *to;                               \
      (void)old;                                                                                \
      *to = expression;                                                                         \
    }                                                                                           \
  }
/* The loops of one op on one type. */
#define SCAT_OP(op, name, T, expression)              \
  SCAT_ROWS(scat_rows_##op##_##name, T, expression)   \
  SCAT_ROW(scat_##op##_##name, T, expression)         \
  SCAT_DENSE(scat_dense_##op##_##name, T, expression) \
  SCAT_POINTS(scat_points_##op##_##name, T, expression)
#define SCAT_SUMS(name, T)       \
  SCAT_OP(add, name, T, old + x) \
  SCAT_OP(mul, name, T, old *x)
SCAT_SUMS(f32, float)
SCAT_SUMS(f64, double)
SCAT_SUMS(u32, uint32_t)
SCAT_SUMS(u64, uint64_t)
SCAT_OP(max, f32, float, math_max_f32(old, x))
SCAT_OP(min, f32, float, math_min_f32(old, x))
SCAT_OP(max, f64, double, math_max_f64(old, x))
SCAT_OP(min, f64, double, math_min_f64(old, x))
#define SCAT_ENDS(name, T)                 \
  SCAT_OP(max, name, T, old > x ? old : x) \
  SCAT_OP(min, name, T, old < x ? old : x)
SCAT_ENDS(s32, int32_t)
SCAT_ENDS(u32, uint32_t)
SCAT_ENDS(s64, int64_t)
SCAT_ENDS(u64, uint64_t)
SCAT_POINTS(scat_points_put_1, uint8_t, x)
SCAT_POINTS(scat_points_put_2, uint16_t, x)
SCAT_POINTS(scat_points_put_4, uint32_t, x)
SCAT_POINTS(scat_points_put_8, uint64_t, x)
SCAT_DENSE(scat_dense_put_4, uint32_t, x)
SCAT_DENSE(scat_dense_put_8, uint64_t, x)

/* --- lines --- */

/* Windows whose places are found before the first of them is updated. */
enum { SCAT_AHEAD = 256 };

/* Adds one component of n index vectors to places; what is out of range stays negative whatever is added. */
static void scat_places_s32(const cpu_window_index *x, const char *index, int64_t step, int64_t *at, int64_t n) {
  const uint32_t limit = (uint32_t)x->limit, stride = (uint32_t)x->stride;
  assert(x->limit <= INT32_MAX && x->stride >= 0 && x->stride <= UINT32_MAX);
  for (int64_t i = 0; i < n; i++) {
    const uint32_t v = *(const uint32_t *)(const void *)(index + i * step);
    at[i] = v > limit ? INT64_MIN / 2 : at[i] + (int64_t)((uint64_t)v * stride);
  }
}
static void scat_places_any(const cpu_window_index *x, base_dtype t, const char *index, int64_t step, int64_t *at,
                            int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    const int64_t v = cpu_window_load(t, index + i * step);
    at[i] = v < 0 || v > x->limit ? INT64_MIN / 2 : at[i] + v * x->stride;
  }
}

/* The places of n windows of a line in the array; negative where one does not fit or is another part's. */
static void scat_places(const scat_data *s, const scat_part *part, const char *index, char *big, int64_t *at,
                        int64_t n) {
  const cpu_windows *w = &s->w;
  const int64_t step = s->line.index, low = part->low - big, high = part->high - big;
  for (int64_t i = 0, place = 0; i < n; i++, place += s->line.big) at[i] = place;
  for (uint32_t d = 0; d < w->n_index; d++, index += w->component) {
    const cpu_window_index *x = &w->index[d];
    if (w->dtype == XLAC_S32 && x->limit <= INT32_MAX && x->stride >= 0 && x->stride <= UINT32_MAX)
      scat_places_s32(x, index, step, at, n);
    else
      scat_places_any(x, (base_dtype)w->dtype, index, step, at, n);
  }
  /* One part has all of the array; what is behind the place of the line's first window is other windows'. */
  if (low <= 0 && high - low >= s->whole) return;
  for (int64_t i = 0; i < n; i++)
    if (at[i] < low || at[i] >= high) at[i] = INT64_MIN / 2;
}

void cpu_scatter_line(const scat_data *s, const scat_part *part, const char *index, char *big, const char *small,
                      int64_t n) {
  assert(part->low <= part->high);
  int64_t at[SCAT_AHEAD];
  if (s->dense && part->low <= big && part->high - big >= s->whole) {
    s->dense(big, (const int32_t *)(const void *)index, s->w.index[0].limit, small, n);
    return;
  }
  for (int64_t m; n > 0; n -= m) {
    m = interp_min(n, SCAT_AHEAD);
    scat_places(s, part, index, big, at, m);
    if (s->points)
      s->points(big, at, small, s->line.small, m);
    else if (s->rows && s->row_len)
      s->rows(big, at, small, s->line.small, m, s->row_len);
    else
      for (int64_t i = 0; i < m; i++)
        if (at[i] >= 0) cpu_scatter_window(s, big + at[i], small + i * s->line.small);
    index += m * s->line.index;
    big += m * s->line.big;
    small += m * s->line.small;
  }
}

/* --- choosing --- */

/* Which loops an op on a type has. */
typedef struct scat_choice {
  uint16_t opcode;
  uint8_t dtype;
  scat_row_fn *row;
  scat_rows_fn *rows;
  scat_points_fn *points;
  scat_dense_fn *dense;
} scat_choice;

#define SCAT_CHOICE(opcode, t, op, name)                                                                      \
  {IR_OP_##opcode,          XLAC_##t, scat_##op##_##name, scat_rows_##op##_##name, scat_points_##op##_##name, \
   scat_dense_##op##_##name}
#define SCAT_CHOICES(t, sums, ends)                                                                        \
  SCAT_CHOICE(ADD, t, add, sums), SCAT_CHOICE(MULTIPLY, t, mul, sums), SCAT_CHOICE(MAXIMUM, t, max, ends), \
      SCAT_CHOICE(MINIMUM, t, min, ends)
static const scat_choice scat_choices[] = {SCAT_CHOICES(F32, f32, f32), SCAT_CHOICES(F64, f64, f64),
                                           SCAT_CHOICES(S32, u32, s32), SCAT_CHOICES(U32, u32, u32),
                                           SCAT_CHOICES(S64, u64, s64), SCAT_CHOICES(U64, u64, u64)};

/* NULL where it has none, or there is no op. */
static const scat_choice *scat_choice_of(const ir_op *body) {
  for (size_t i = 0; body && i < sizeof scat_choices / sizeof *scat_choices; i++)
    if (scat_choices[i].opcode == body->opcode && scat_choices[i].dtype == body->type->dtype) return &scat_choices[i];
  return NULL;
}

/* New values are copied by their size, whatever their type. */
static scat_points_fn *scat_points_put(int64_t bytes) {
  return bytes == 1   ? scat_points_put_1
         : bytes == 2 ? scat_points_put_2
         : bytes == 4 ? scat_points_put_4
         : bytes == 8 ? scat_points_put_8
                      : NULL;
}

void cpu_scatter_choose(scat_data *s, const ir_op *body) {
  const scat_choice *c = scat_choice_of(body);
  s->row = c ? c->row : body ? scat_row_any : scat_row_put;
  s->rows = c ? c->rows : NULL;
  const cpu_move_dim *d = s->w.dims;
  if (s->w.n_dims == 1 && d->from == s->bytes && d->to == s->bytes) s->row_len = d->n;
  if (s->w.n_dims != 0) return;
  s->points = c ? c->points : body ? NULL : scat_points_put(s->bytes);
  bool plain = s->w.n_index == 1 && s->w.dtype == XLAC_S32 && s->line.index == 4 && s->line.small == s->bytes &&
               s->line.big == 0 && s->w.index[0].stride == s->bytes;
  if (!plain) return;
  s->dense = c ? c->dense : body ? NULL : s->bytes == 4 ? scat_dense_put_4 : s->bytes == 8 ? scat_dense_put_8 : NULL;
}
