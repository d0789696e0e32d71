/* The loops of scatter: rows of a window by op and type, and single elements by single indices. */
#include "scatter.h"

static void scat_row_put(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n) {
  if (to_stride == s->bytes && from_stride == s->bytes)
    memcpy(to, from, (size_t)(n * s->bytes));
  else
    cpu_move_row(s->bytes, to, to_stride, from, from_stride, n);
}

/* Any op, by the interpreter's loop. */
static void scat_row_any(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                         int64_t n) {
  if (to_stride == s->bytes && from_stride == s->bytes) {
    interp_loop_run(&s->loop, n, (const void *const[]){to, from}, to);
    return;
  }
  for (int64_t i = 0; i < n; i++, to += to_stride, from += from_stride)
    interp_loop_run(&s->loop, 1, (const void *const[]){to, from}, to);
}

/* Sums and products straight in C: the interpreter's bits, without its calls. Integers wrap. */
#define SCAT_ROW(name, T, operator)                                                                        \
  static void name(const scat_data *s, char *to, int64_t to_stride, const char *from, int64_t from_stride, \
                   int64_t n) {                                                                            \
    (void)s;                                                                                               \
    if (to_stride == sizeof(T) && from_stride == sizeof(T)) {                                              \
      T *a = (T *)(void *)to;                                                                              \
      const T *b = (const T *)(const void *)from;                                                          \
      for (int64_t i = 0; i < n; i++) a[i] = a[i] operator b[i];                                           \
      return;                                                                                              \
    }                                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                      \
      T *a = (T *)(void *)(to + i * to_stride);                                                            \
      *a = *a operator*(const T *)(const void *)(from + i * from_stride);                                  \
    }                                                                                                      \
  }
/* Single elements by single indices of type I. */
#define SCAT_LINE(name, I, T, operator)                                                                        \
  static void name(const scat_data *s, const scat_part *part, const char *index, char *big, const char *small, \
                   int64_t n) {                                                                                \
    const cpu_window_batch step = s->line;                                                                     \
    const int64_t limit = s->w.index[0].limit, stride = s->w.index[0].stride;                                  \
    const char *low = part->low;                                                                               \
    const uint64_t extent = (uint64_t)(part->high - low);                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                          \
      I v;                                                                                                     \
      memcpy(&v, index + i * step.index, sizeof v);                                                            \
      if ((uint64_t)(int64_t)v > (uint64_t)limit) continue;                                                    \
      T *to = (T *)(void *)(big + i * step.big + (int64_t)v * stride);                                         \
      if ((uint64_t)((char *)to - low) >= extent) continue;                                                    \
      const T x = *(const T *)(const void *)(small + i * step.small);                                          \
      *to = operator;                                                                                          \
    }                                                                                                          \
  }
#define SCAT_ALL(name, T)                                    \
  SCAT_ROW(scat_add_##name, T, +)                            \
  SCAT_ROW(scat_mul_##name, T, *)                            \
  SCAT_LINE(scat_line_add_##name##_s32, int32_t, T, *to + x) \
  SCAT_LINE(scat_line_add_##name##_s64, int64_t, T, *to + x)
SCAT_ALL(f32, float)
SCAT_ALL(f64, double)
SCAT_ALL(u32, uint32_t)
SCAT_ALL(u64, uint64_t)
SCAT_LINE(scat_line_put_4_s32, int32_t, uint32_t, x)
SCAT_LINE(scat_line_put_4_s64, int64_t, uint32_t, x)
SCAT_LINE(scat_line_put_8_s32, int32_t, uint64_t, x)
SCAT_LINE(scat_line_put_8_s64, int64_t, uint64_t, x)
#undef SCAT_ALL
#undef SCAT_LINE
#undef SCAT_ROW

typedef struct scat_choice {
  scat_row_fn *add, *mul;
  scat_line_fn *add_s32, *add_s64;
} scat_choice;

static scat_choice scat_choice_of(base_dtype t) {
  switch (t) {
    case XLAC_F32:
      return (scat_choice){scat_add_f32, scat_mul_f32, scat_line_add_f32_s32, scat_line_add_f32_s64};
    case XLAC_F64:
      return (scat_choice){scat_add_f64, scat_mul_f64, scat_line_add_f64_s32, scat_line_add_f64_s64};
    case XLAC_S32:
    case XLAC_U32:
      return (scat_choice){scat_add_u32, scat_mul_u32, scat_line_add_u32_s32, scat_line_add_u32_s64};
    case XLAC_S64:
    case XLAC_U64:
      return (scat_choice){scat_add_u64, scat_mul_u64, scat_line_add_u64_s32, scat_line_add_u64_s64};
    default:
      return (scat_choice){NULL, NULL, NULL, NULL};
  }
}

static scat_line_fn *scat_line_of(const scat_data *s, const ir_op *body) {
  bool small = s->w.dtype == XLAC_S32, single = s->w.n_dims == 0 && s->w.n_index == 1;
  if (!single || (!small && s->w.dtype != XLAC_S64)) return cpu_scatter_line;
  if (!body && s->bytes == 4) return small ? scat_line_put_4_s32 : scat_line_put_4_s64;
  if (!body && s->bytes == 8) return small ? scat_line_put_8_s32 : scat_line_put_8_s64;
  if (!body || body->opcode != IR_OP_ADD) return cpu_scatter_line;
  scat_choice c = scat_choice_of(body->type->dtype);
  scat_line_fn *line = small ? c.add_s32 : c.add_s64;
  return line ? line : cpu_scatter_line;
}

void cpu_scatter_choose(scat_data *s, const ir_op *body) {
  s->row = body ? scat_row_any : scat_row_put;
  if (body && (body->opcode == IR_OP_ADD || body->opcode == IR_OP_MULTIPLY)) {
    scat_choice c = scat_choice_of(body->type->dtype);
    scat_row_fn *row = body->opcode == IR_OP_ADD ? c.add : c.mul;
    if (row) s->row = row;
  }
  s->code = scat_line_of(s, body);
}
