/* select-and-scatter, the gradient of a max-pool: the window of each source element chooses an element of the operand,
 * and the source element is added to the result there. Lanes and other dimensions without windows are independent, and
 * go to threads; within one, sources are added in their order. */
#include "window.h"

enum { SELECT_LANES = 64, SELECT_GRAIN = 1 << 14 };

typedef enum select_choice { SELECT_GE, SELECT_GT, SELECT_LE, SELECT_LT, SELECT_CHOICES } select_choice;

typedef struct select_run select_run;
typedef void select_fn(const select_run *r, const int64_t *at, int64_t x, int64_t source, int64_t lanes);

/* Dimensions are outer ones (without windows), the windows', and lanes behind them. */
typedef struct select_routine {
  const ir_window *window;
  uint32_t first, end;                                                         /* the dimensions with windows */
  int64_t in_size[IR_MAX_RANK], out_size[IR_MAX_RANK], in_stride[IR_MAX_RANK]; /* out: the source's */
  int64_t outer, lanes, blocks, width;                                         /* lanes in blocks of width */
  int64_t in_each, source_each, places; /* elements of an outer index; windows in one */
  int64_t count;                        /* of the result */
  size_t bytes;
  select_fn *fn;
} select_routine;

struct select_run {
  const select_routine *s;
  const char *x, *source, *init;
  char *out;
};

/* Window elements in order; at: the window's place. The choice so far stays where `keep` holds against a new element.
 */
#define SELECT_FN(name, T, U, keep)                                                                          \
  static void name(const select_run *r, const int64_t *at, int64_t x_at, int64_t source_at, int64_t lanes) { \
    const select_routine *s = r->s;                                                                          \
    const T *x = (const T *)(const void *)r->x + x_at;                                                       \
    const U *source = (const U *)(const void *)r->source + source_at;                                        \
    U *out = (U *)(void *)r->out + x_at;                                                                     \
    T best[SELECT_LANES] = {0};                                                                              \
    int64_t best_at[SELECT_LANES] = {0}, k[IR_MAX_RANK] = {0};                                               \
    bool any = false;                                                                                        \
    for (;;) {                                                                                               \
      int64_t place = 0;                                                                                     \
      uint32_t d = s->first;                                                                                 \
      for (; d < s->end; d++) {                                                                              \
        const ir_window_dim *w = &s->window->v[d];                                                           \
        int64_t e = interp_window_element(w, s->in_size[d], at[d] * w->stride + k[d] * w->window_dilation);  \
        if (e < 0) break;                                                                                    \
        place += e * s->in_stride[d];                                                                        \
      }                                                                                                      \
      if (d == s->end) {                                                                                     \
        const T *y = x + place;                                                                              \
        for (int64_t i = 0; i < lanes; i++) {                                                                \
          T old = best[i], fresh = y[i];                                                                     \
          bool stays = any & (keep);                                                                         \
          best[i] = stays ? old : fresh;                                                                     \
          best_at[i] = stays ? best_at[i] : place;                                                           \
        }                                                                                                    \
        any = true;                                                                                          \
      }                                                                                                      \
      for (d = s->end; d > s->first; d--) {                                                                  \
        if (++k[d - 1] < s->window->v[d - 1].size) break;                                                    \
        k[d - 1] = 0;                                                                                        \
      }                                                                                                      \
      if (d == s->first) break;                                                                              \
    }                                                                                                        \
    for (int64_t i = 0; any && i < lanes; i++) out[best_at[i] + i] += source[i];                             \
  }

#define SELECT_ALL(t, T, U)                    \
  SELECT_FN(select_ge_##t, T, U, old >= fresh) \
  SELECT_FN(select_gt_##t, T, U, old > fresh)  \
  SELECT_FN(select_le_##t, T, U, old <= fresh) \
  SELECT_FN(select_lt_##t, T, U, old < fresh)
SELECT_ALL(f32, float, float)
SELECT_ALL(f64, double, double)
SELECT_ALL(s32, int32_t, uint32_t)
SELECT_ALL(s64, int64_t, uint64_t)
#define SELECT_ROW(t) {select_ge_##t, select_gt_##t, select_le_##t, select_lt_##t}

static select_fn *select_fn_of(base_dtype t, select_choice c) {
  static select_fn *const table[4][SELECT_CHOICES] = {SELECT_ROW(f32), SELECT_ROW(f64), SELECT_ROW(s32),
                                                      SELECT_ROW(s64)};
  int row = t == XLAC_F32 ? 0 : t == XLAC_F64 ? 1 : t == XLAC_S32 ? 2 : t == XLAC_S64 ? 3 : -1;
  return row < 0 || c == SELECT_CHOICES ? NULL : table[row][c];
}

/* An outer index, with one block of lanes. */
static void select_unit(const select_run *r, int64_t outer, int64_t lane, int64_t lanes) {
  const select_routine *s = r->s;
  int64_t at[IR_MAX_RANK] = {0}, x = outer * s->in_each + lane, source = outer * s->source_each + lane;
  for (int64_t i = 0; i < s->in_each / s->lanes; i++)
    for (int64_t j = 0; j < lanes; j++) memcpy(r->out + (size_t)(x + i * s->lanes + j) * s->bytes, r->init, s->bytes);
  for (int64_t place = 0; place < s->places; place++) {
    s->fn(r, at, x, source + place * s->lanes, lanes);
    for (uint32_t d = s->end; d > s->first; d--) {
      if (++at[d - 1] < s->out_size[d - 1]) break;
      at[d - 1] = 0;
    }
  }
}

static void select_units(void *ctx, size_t begin, size_t end) {
  const select_run *r = ctx;
  const select_routine *s = r->s;
  for (size_t i = begin; i < end; i++) {
    int64_t lane = (int64_t)i % s->blocks * s->width;
    select_unit(r, (int64_t)i / s->blocks, lane, s->lanes - lane < s->width ? s->lanes - lane : s->width);
  }
}

static int select_run_all(const cpu_routine_run *r) {
  const select_routine *s = r->data;
  select_run run = {s, r->in[0], r->in[1], r->in[2], r->out[0]};
  if (s->count == 0) return 0;
  int64_t work = s->in_each / s->blocks + 1;
  base_parallel_for(r->run->exe->pool, (size_t)(s->outer * s->blocks), (size_t)(SELECT_GRAIN / work + 1), select_units,
                    &run);
  return 0;
}

/* The comparison that a computation makes of its parameters, in their order. */
static select_choice select_choice_of(const ir_computation *c, base_dtype t) {
  static const char *const words[SELECT_CHOICES] = {"GE", "GT", "LE", "LT"};
  const ir_op *body = ir_root(c);
  if (c->n_params != 2 || body->opcode != IR_OP_COMPARE || ir_operand(body, 0) != c->params[0] ||
      ir_operand(body, 1) != c->params[1] || !ir_is_scalar(body->type))
    return SELECT_CHOICES;
  const char *type = ir_get_str(body, IR_ATTR_TYPE), *direction = ir_get_str(body, IR_ATTR_DIRECTION);
  for (uint32_t i = 0; i < 2; i++)
    if (!ir_is_scalar(c->params[i]->type) || c->params[i]->type->dtype != t) return SELECT_CHOICES;
  if (strcmp(type, "TOTALORDER") == 0) return SELECT_CHOICES;
  for (unsigned i = 0; i < SELECT_CHOICES; i++)
    if (strcmp(direction, words[i]) == 0) return (select_choice)i;
  return SELECT_CHOICES;
}

static void select_measure(select_routine *s, const ir_type *x, const ir_type *source) {
  uint32_t rank = x->rank;
  interp_strides(rank, x->dims, s->in_stride);
  s->first = 0;
  s->end = rank;
  s->outer = s->lanes = s->places = 1;
  for (uint32_t d = 0; d < rank; d++) {
    s->in_size[d] = x->dims[d];
    s->out_size[d] = source->dims[d];
  }
  while (s->end > 0 && cpu_window_is_trivial(&s->window->v[s->end - 1], x->dims[s->end - 1], source->dims[s->end - 1]))
    s->lanes *= x->dims[--s->end];
  while (s->first < s->end && cpu_window_is_trivial(&s->window->v[s->first], x->dims[s->first], source->dims[s->first]))
    s->outer *= x->dims[s->first++];
  for (uint32_t d = s->first; d < s->end; d++) s->places *= s->out_size[d];
  s->count = x->count;
  s->in_each = s->outer ? x->count / s->outer : 0;
  s->source_each = s->places * s->lanes;
  /* Few lanes at a time where that makes work for threads. */
  s->width = s->outer < 8 && s->lanes > 16 ? 16 : SELECT_LANES;
  s->blocks = (s->lanes + s->width - 1) / s->width;
}

int cpu_prepare_select_and_scatter(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  const ir_type *in = ir_operand_type(op, 0), *source = ir_operand_type(op, 1);
  const ir_window *window = ir_get_window(op);
  base_dtype t = (base_dtype)in->dtype;
  const ir_op *add = cpu_window_body(op->called[1]);
  if (!window || window->n != in->rank || in->rank == 0 || !add || add->opcode != IR_OP_ADD) return 0;
  if (add->type->dtype != t || source->dtype != t || ir_operand_type(op, 2)->dtype != t || op->type->dtype != t)
    return 0;
  for (uint32_t d = 0; d < in->rank; d++)
    if (source->dims[d] > interp_window_count(&window->v[d], in->dims[d])) return 0;
  select_fn *fn = select_fn_of(t, select_choice_of(op->called[0], t));
  if (!fn) return 0;
  select_routine *s = BASE_NEW(x->arena, select_routine);
  if (!s) return base_oom(x->err, "select-and-scatter");
  *s = (select_routine){.window = window, .fn = fn, .bytes = base_dtype_bytes(t)};
  select_measure(s, in, source);
  x->out->name = "select-and-scatter";
  x->out->work = (uint64_t)source->count * 8 + (uint64_t)in->count;
  x->out->data = s;
  x->code = select_run_all;
  return 0;
}
