/* The loops of scatter: rows of a window by op and type, and single elements by single indices. */
#include "../../base/math/math.h"
#include "scatter.h"

/* The update is the new value. */
static void scat_row_put(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n) {
  assert(n >= 0);
  if (to_stride == s->bytes && from_stride == s->bytes)
    memcpy(to, from, (size_t)(n * s->bytes));
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

/* Whether a line's indices and updates lie side by side, and all of a dense array is this part's. */
static bool scat_is_dense(const scat_data *s, const scat_part *part, const char *big, int64_t index) {
  const cpu_window_batch *l = &s->line;
  return l->index == index && l->small == s->bytes && l->big == 0 && s->w.index[0].stride == s->bytes &&
         part->low <= big && part->high - big >= s->whole;
}

/* Common ops straight in C: the interpreter's bits, without its calls. Integers wrap. Rows of a window: neighbours, or
 * at any strides. old: the element; x: the update. */
#define SCAT_ROW(name, T, expression)                                                                      \
  static void name(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride, \
                   int64_t n) {                                                                            \
    (void)s;                                                                                               \
    if (to_stride == sizeof(T) && from_stride == sizeof(T)) {                                              \
      T *a = (T *)(void *)to;                                                                              \
      const T *b = (const T *)(const void *)from;                                                          \
      for (int64_t i = 0; i < n; i++) {                                                                    \
        const T old = a[i], x = b[i];                                                                      \
        a[i] = expression;                                                                                 \
      }                                                                                                    \
      return;                                                                                              \
    }                                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      T *a = (T *)(void *)(to + i * to_stride);                                                            \
      const T old = *a, x = *(const T *)(const void *)(from + i * from_stride);                            \
      *a = expression;                                                                                     \
    }                                                                                                      \
  }
/* Single elements by single indices of type I, in the whole array from one dense list to another: a loop of its own,
 * since strides and bounds would cost as much as the update. */
#define SCAT_LINE(name, I, T, expression)                                                                      \
  static void name(const scat_data *s, const scat_part *part, const char *index, char *big, const char *small, \
                   int64_t n) {                                                                                \
    const cpu_window_batch step = s->line;                                                                     \
    const int64_t limit = s->w.index[0].limit, stride = s->w.index[0].stride;                                  \
    const char *low = part->low;                                                                               \
    const uint64_t extent = (uint64_t)(part->high - low);                                                      \
    if (scat_is_dense(s, part, big, sizeof(I))) {                                                              \
      const I *at = (const I *)(const void *)index;                                                            \
      for (int64_t i = 0; i < n; i++) {                                                                        \
        if ((uint64_t)(int64_t)at[i] > (uint64_t)limit) continue;                                              \
        T *to = (T *)(void *)big + at[i];                                                                      \
        const T x = ((const T *)(const void *)small)[i], old = *to;                                            \
        (void)old;                                                                                             \
        *to = expression;                                                                                      \
      }                                                                                                        \
      return;                                                                                                  \
    }                                                                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                          \
      I v;                                                                                                     \
      memcpy(&v, index + i * step.index, sizeof v);                                                            \
      if ((uint64_t)(int64_t)v > (uint64_t)limit) continue;                                                    \
      T *to = (T *)(void *)(big + i * step.big + (int64_t)v * stride);                                         \
      if ((uint64_t)((char *)to - low) >= extent) continue;                                                    \
      const T x = *(const T *)(const void *)(small + i * step.small);                                          \
      const T old = *to;                                                                                       \
      (void)old;                                                                                               \
      *to = expression;                                                                                        \
    }                                                                                                          \
  }
/* The loops of one op on one type. */
#define SCAT_OP(op, name, T, expression)                           \
  SCAT_ROW(scat_##op##_##name, T, expression)                      \
  SCAT_LINE(scat_line_##op##_##name##_s32, int32_t, T, expression) \
  SCAT_LINE(scat_line_##op##_##name##_s64, int64_t, T, expression)
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
SCAT_LINE(scat_line_put_4_s32, int32_t, uint32_t, x)
SCAT_LINE(scat_line_put_4_s64, int64_t, uint32_t, x)
SCAT_LINE(scat_line_put_8_s32, int32_t, uint64_t, x)
SCAT_LINE(scat_line_put_8_s64, int64_t, uint64_t, x)

/* Which loops an op on a type has. */
typedef struct scat_choice {
  uint16_t opcode;
  uint8_t dtype;
  scat_row_fn *row;
  scat_line_fn *line_s32, *line_s64;
} scat_choice;

#define SCAT_CHOICE(opcode, t, op, name) \
  {IR_OP_##opcode, XLAC_##t, scat_##op##_##name, scat_line_##op##_##name##_s32, scat_line_##op##_##name##_s64}
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

/* The line for these windows: one of the loops where they are elements, and one index says where. */
static scat_line_fn *scat_line_of(const scat_data *s, const ir_op *body) {
  bool small = s->w.dtype == XLAC_S32, single = s->w.n_dims == 0 && s->w.n_index == 1;
  if (!single || (!small && s->w.dtype != XLAC_S64)) return cpu_scatter_line;
  /* New values are copied by their size, whatever their type. */
  if (!body && s->bytes == 4) return small ? scat_line_put_4_s32 : scat_line_put_4_s64;
  if (!body && s->bytes == 8) return small ? scat_line_put_8_s32 : scat_line_put_8_s64;
  const scat_choice *c = scat_choice_of(body);
  return !c ? cpu_scatter_line : small ? c->line_s32 : c->line_s64;
}

void cpu_scatter_choose(scat_data *s, const ir_op *body) {
  const scat_choice *c = scat_choice_of(body);
  s->row = c ? c->row : body ? scat_row_any : scat_row_put;
  s->code = scat_line_of(s, body);
}
