/* gather: windows of the operand at given starts, clamped into range. */
#include "../routine.h"
#include "gather_window.h"

/* Bytes of the result for a thread at a time. */
enum { GATHER_PIECE = 1 << 17 };

typedef struct gather_data gather_data;
/* n windows along the innermost batch dimension: from the walk's place in indices, operand and result. */
typedef void gather_line_fn(const gather_data *g, const char *index, const char *big, char *small, int64_t n);

/* What is known before a run. */
struct gather_data {
  cpu_windows w;
  cpu_move move; /* of one window */
  cpu_window_batch line;
  gather_line_fn *code;
  int64_t bytes, grain; /* of the result; windows for a thread at a time */
};

/* Where the window with this index begins, clamped so that all of it lies in the operand; in bytes after what the
 * walk says. */
static inline int64_t gather_offset(const gather_data *g, const char *index) {
  int64_t offset = 0;
  for (uint32_t i = 0; i < g->w.n_index; i++) {
    int64_t v = cpu_window_load(g->w.dtype, index + i * g->w.component);
    offset += interp_clamp(v, 0, g->w.index[i].limit) * g->w.index[i].stride;
  }
  return offset;
}

/* The line for any window. */
static void gather_line(const gather_data *g, const char *index, const char *big, char *small, int64_t n) {
  assert(n >= 0);
  for (int64_t i = 0; i < n; i++)
    cpu_move_few(&g->move, NULL, small + i * g->line.small,
                 big + i * g->line.big + gather_offset(g, index + i * g->line.index));
}

/* Windows that are one block, by single indices. */
static void gather_blocks(const gather_data *g, const char *index, const char *big, char *small, int64_t n) {
  const int64_t block = g->move.block;
  for (int64_t i = 0; i < n; i++)
    cpu_move_short(small + i * g->line.small, big + i * g->line.big + gather_offset(g, index + i * g->line.index),
                   block);
}

/* An element of 16 bytes, copied as one. */
typedef struct gather_16 {
  uint64_t half[2];
} gather_16;

/* Single elements by single indices. */
#define GATHER_LINE(name, I, T)                                                                              \
  static void name(const gather_data *g, const char *index, const char *big, char *small, int64_t n) {       \
    const cpu_window_batch s = g->line;                                                                      \
    const int64_t limit = g->w.index[0].limit, stride = g->w.index[0].stride;                                \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      I v;                                                                                                   \
      memcpy(&v, index + i * s.index, sizeof v);                                                             \
      memcpy(small + i * s.small, big + i * s.big + interp_clamp((int64_t)v, 0, limit) * stride, sizeof(T)); \
    }                                                                                                        \
  }
#define GATHER_LINES(I)                    \
  GATHER_LINE(gather_##I##_1, I, uint8_t)  \
  GATHER_LINE(gather_##I##_2, I, uint16_t) \
  GATHER_LINE(gather_##I##_4, I, uint32_t) \
  GATHER_LINE(gather_##I##_8, I, uint64_t) \
  GATHER_LINE(gather_##I##_16, I, gather_16)
GATHER_LINES(int32_t)
GATHER_LINES(uint32_t)
GATHER_LINES(int64_t)
#undef GATHER_LINES
#undef GATHER_LINE

#define GATHER_SIZES(I) {gather_##I##_1, gather_##I##_2, gather_##I##_4, gather_##I##_8, gather_##I##_16}
/* The line for these windows: a loop of its own where they are elements, and one index says where. */
static gather_line_fn *gather_line_of(const gather_data *g) {
  static gather_line_fn *const lines[3][5] = {GATHER_SIZES(int32_t), GATHER_SIZES(uint32_t), GATHER_SIZES(int64_t)};
  static const base_dtype types[3] = {XLAC_S32, XLAC_U32, XLAC_S64};
  /* One index, and a window that is one element, or as many bytes as one. */
  if (g->move.kind != CPU_MOVE_BLOCK) return gather_line;
  if (g->w.n_index != 1) return gather_blocks;
  for (uint32_t t = 0; t < 3; t++)
    for (uint32_t i = 0; i < 5; i++)
      if (g->w.dtype == types[t] && g->move.block == 1 << i) return lines[t][i];
  return gather_blocks;
}
#undef GATHER_SIZES

/* One run: shared by its threads. */
typedef struct gather_work {
  const gather_data *g;
  const char *big, *index;
  char *small;
} gather_work;

/* Windows begin to end. They write different places of the result. */
static void gather_range(void *ctx, size_t begin, size_t end) {
  assert(begin < end);
  const gather_work *x = ctx;
  cpu_window_walk walk;
  cpu_window_walk_begin(&walk, &x->g->w, (int64_t)begin);
  for (int64_t left = (int64_t)(end - begin); left > 0;) {
    int64_t n = interp_min(left, cpu_window_walk_line(&walk));
    x->g->code(x->g, x->index + walk.index, x->big + walk.big, x->small + walk.small, n);
    cpu_window_walk_next(&walk, n);
    left -= n;
  }
}

/* Few large windows, each by several threads. */
static void gather_large(const gather_work *x, rt_pool *pool) {
  cpu_window_walk walk;
  cpu_window_walk_begin(&walk, &x->g->w, 0);
  for (int64_t i = 0; i < x->g->w.count; i++) {
    cpu_move_run(&x->g->move, pool, x->small + walk.small,
                 x->big + walk.big + gather_offset(x->g, x->index + walk.index));
    cpu_window_walk_next(&walk, 1);
  }
}

/* The routine. Which way it goes depends on sizes alone. */
static int gather_run(const cpu_routine_run *r) {
  const gather_data *g = r->data;
  gather_work x = {g, r->in[0], r->in[1], r->out[0]};
  rt_pool *pool = r->run->exe->pool;
  if (g->w.count == 0)
    cpu_move_fill(pool, 1, r->out[0], g->bytes, ""); /* no element to clamp to */
  else if (g->w.count < 16 && g->grain == 1)
    gather_large(&x, pool); /* few windows, each larger than a piece */
  else if (g->w.count <= g->grain)
    gather_range(&x, 0, (size_t)g->w.count);
  else
    rt_parallel_for(pool, (size_t)g->w.count, (size_t)g->grain, gather_range, &x);
  return 0;
}

const cpu_windows *cpu_gather_windows(const cpu_executable *exe, const plan_step *s) {
  const cpu_routine *r = s->kind == PLAN_ROUTINE ? &exe->routines.items[s->routine->number] : NULL;
  return r && r->run == gather_run ? &((const gather_data *)r->data)->w : NULL;
}

/* The copy of one window. false when out of memory. */
static bool gather_move(gather_data *g, base_arena *arena, size_t bytes) {
  assert(bytes > 0);
  int64_t dims[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK], size = (int64_t)bytes;
  for (uint32_t d = 0; d < g->w.n_dims; d++) {
    dims[d] = g->w.dims[d].n;
    to[d] = g->w.dims[d].to / size;
    from[d] = g->w.dims[d].from / size;
  }
  return cpu_move_make(&g->move, arena, bytes, g->w.n_dims, dims, to, from);
}

/* An operand of another type than the result's is left to the interpreter. */
int cpu_prepare_gather(cpu_prepare_run *x) {
  const ir_op *op = x->op;
  const ir_type *big = ir_operand_type(op, 0), *indices = ir_operand_type(op, 1);
  interp_window_dims a = {ir_get_ints(op, IR_ATTR_OFFSET_DIMS),
                          ir_get_ints(op, IR_ATTR_COLLAPSED_SLICE_DIMS),
                          ir_get_ints(op, IR_ATTR_START_INDEX_MAP),
                          ir_get_ints(op, IR_ATTR_OPERAND_BATCHING_DIMS),
                          ir_get_ints(op, IR_ATTR_START_INDICES_BATCHING_DIMS),
                          ir_get_int(op, IR_ATTR_INDEX_VECTOR_DIM, 0)};
  gather_data *g = BASE_NEW(x->arena, gather_data);
  if (!g) return base_oom(x->err, "a gather");
  if (big->dtype != op->type->dtype) return 0;
  size_t bytes = base_dtype_bytes(big->dtype);
  if (!cpu_windows_make(&g->w, x->arena, &a, indices, big, ir_get_ints(op, IR_ATTR_SLICE_SIZES)->v, op->type) ||
      !gather_move(g, x->arena, bytes))
    return base_oom(x->err, "a gather");
  if (g->w.n_batch) g->line = g->w.batch[g->w.n_batch - 1];
  g->code = gather_line_of(g);
  g->bytes = op->type->count * (int64_t)bytes;
  /* A window costs at least as much as 16 bytes. */
  g->grain = GATHER_PIECE / interp_max(16, g->bytes / interp_max(1, g->w.count));
  g->grain = interp_max(1, g->grain);
  x->out->name = g->code == gather_line || g->code == gather_blocks ? "gather" : "pick";
  x->data = g;
  x->out->work = (uint64_t)op->type->count;
  x->out->stoppable = true;
  x->code = gather_run;
  return 0;
}
