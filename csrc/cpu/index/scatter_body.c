/* scatter into any number of arrays by any computation on scalars, in the order of the indices: one update after
 * another, or many at once: the rows of a window, or single elements that are all different. Threads share the arrays,
 * not the indices. Offsets are in elements. */
#include "../body/body_share.h"
#include "gather_window.h"

/* SCATB_PARTS: parts of the arrays, at most. SCATB_POLL: updates between looks at whether to stop. SCATB_MARK_BITS:
 * bits of the hash of a place. */
enum {
  SCATB_ROW = 16, /* shorter rows are updated one by one */
  SCATB_PARTS = 16,
  SCATB_LONG = 1 << 14, /* updates that are shared between threads */
  SCATB_MANY = 16,      /* element operations of a window that make up for passing over those of others */
  SCATB_POLL = 1 << 14,
  SCATB_POINTS = 128, /* single elements at a time */
  SCATB_GOOD = 8,     /* fewer are updated one by one */
  SCATB_MARK_BITS = 13
};

/* What is known before a run. */
typedef struct scatb_data {
  const cpu_body *body;
  cpu_windows w;
  cpu_window_batch line;
  uint32_t n;
  const uint8_t *bytes; /* of each operand's elements */
  int64_t count, updates;
  bool lanes;        /* rows are long and lie together */
  bool points;       /* windows are single elements, in ascending order of the updates */
  int64_t part_room; /* scratch bytes of a part */
} scatb_data;

/* One run: shared by its threads. */
typedef struct scatb_work {
  const scatb_data *s;
  const cpu_routine_run *r;
  int64_t share; /* elements of the array for each part */
} scatb_work;

/* Where an operand's elements come from and go to, one at a time. */
typedef struct scatb_array {
  size_t bytes;
  bool reads; /* the update */
  char *array, *old_slot, *new_slot;
  const char *updates, *result;
} scatb_array;

/* What a part works with. */
typedef struct scatb_part {
  const scatb_data *s;
  const cpu_routine_run *r;
  cpu_body_one one;
  scatb_array *arrays;
  scalar_lanes_run lanes;
  void **fresh, **old, **update; /* update: of points that do not lie together */
  const void **in;
  /* Points that wait: where they are in the arrays and in the updates, and marks, by a hash of the place, of the round
   * in which it was met last: what was met in this one may be the same place. */
  uint16_t round, *marks;
  int64_t *at, *from;
  int64_t low, high; /* windows that begin elsewhere are somebody else's */
} scatb_part;

/* One update of one place, in all arrays. All are read before any is written, as the computation takes all of them. */
static inline void scatb_one(const scatb_part *p, int64_t big, int64_t small) {
  const scatb_array *end = p->arrays + p->s->n;
  for (const scatb_array *a = p->arrays; a < end; a++) {
    cpu_body_copy(a->bytes, a->old_slot, a->array + big * (int64_t)a->bytes);
    if (a->reads) cpu_body_copy(a->bytes, a->new_slot, a->updates + small * (int64_t)a->bytes);
  }
  cpu_body_one_run(&p->one);
  for (const scatb_array *a = p->arrays; a < end; a++)
    cpu_body_copy(a->bytes, a->array + big * (int64_t)a->bytes, a->result);
}

/* n updates of neighbours, which are all different: as many at a time as the computation has lanes. */
static void scatb_lanes(scatb_part *p, int64_t big, int64_t small, int64_t n) {
  assert(p->s->lanes && n >= 0);
  const scatb_data *s = p->s;
  for (int64_t at = 0; at < n; at += s->body->lanes->lanes) {
    int64_t m = interp_min(s->body->lanes->lanes, n - at);
    for (uint32_t i = 0; i < s->n; i++) {
      p->in[i] = (const char *)p->r->out[i] + (big + at) * s->bytes[i];
      p->in[s->n + i] = (const char *)p->r->in[s->n + 1 + i] + (small + at) * s->bytes[i];
    }
    scalar_lanes_go(&p->lanes, 0, m, p->in, p->fresh);
    for (uint32_t i = 0; i < s->n; i++)
      memcpy((char *)p->r->out[i] + (big + at) * s->bytes[i], p->fresh[i], (size_t)(m * s->bytes[i]));
  }
}

/* A row of a window. */
static void scatb_row(scatb_part *p, int64_t big, int64_t small, const cpu_move_dim *row) {
  if (p->s->lanes) {
    scatb_lanes(p, big, small, row->n);
    return;
  }
  for (int64_t i = 0; i < row->n; i++) scatb_one(p, big + i * row->from, small + i * row->to);
}

/* A window of several dimensions: rows of the innermost of them. */
static void scatb_box(scatb_part *p, int64_t big, int64_t small) {
  assert(p->s->w.n_dims > 1);
  int64_t at[IR_MAX_RANK] = {0};
  do scatb_row(p, big, small, &p->s->w.dims[p->s->w.n_dims - 1]);
  while (cpu_window_next_row(&p->s->w, at, &big, &small));
}

/* The window of updates that begins at `small`, into the arrays at `big`. */
static inline void scatb_window(scatb_part *p, int64_t big, int64_t small) {
  if (p->s->w.n_dims > 1)
    scatb_box(p, big, small);
  else if (p->s->w.n_dims == 1)
    scatb_row(p, big, small, p->s->w.dims);
  else
    scatb_one(p, big, small);
}

/* n elements picked out, or put back. */
#define SCATB_MOVES(T)                                                              \
  static void scatb_pick_##T(T *to, const T *from, const int64_t *at, uint32_t n) { \
    for (uint32_t i = 0; i < n; i++) to[i] = from[at[i]];                           \
  }                                                                                 \
  static void scatb_put_##T(T *to, const T *from, const int64_t *at, uint32_t n) {  \
    for (uint32_t i = 0; i < n; i++) to[at[i]] = from[i];                           \
  }
SCATB_MOVES(uint32_t)
SCATB_MOVES(uint64_t)

/* Elements of any size: side by side from their places. */
static void scatb_pick(size_t bytes, void *to, const void *from, const int64_t *at, uint32_t n) {
  if (bytes == 4)
    scatb_pick_uint32_t(to, from, at, n);
  else if (bytes == 8)
    scatb_pick_uint64_t(to, from, at, n);
  else
    for (uint32_t i = 0; i < n; i++)
      cpu_body_copy(bytes, (char *)to + i * bytes, (const char *)from + at[i] * (int64_t)bytes);
}

/* The same the other way. */
static void scatb_put(size_t bytes, void *to, const void *from, const int64_t *at, uint32_t n) {
  if (bytes == 4)
    scatb_put_uint32_t(to, from, at, n);
  else if (bytes == 8)
    scatb_put_uint64_t(to, from, at, n);
  else
    for (uint32_t i = 0; i < n; i++)
      cpu_body_copy(bytes, (char *)to + at[i] * (int64_t)bytes, (const char *)from + i * bytes);
}

/* Updates the n points that wait. Begins another round: marks of those before count no more. When the counter wraps,
 * all are wiped. */
static void scatb_flush(scatb_part *p, uint32_t n) {
  assert(n <= SCATB_POINTS);
  const scatb_data *s = p->s;
  if (++p->round == 0) memset(p->marks, 0, sizeof *p->marks << SCATB_MARK_BITS);
  if (p->round == 0) p->round = 1;
  /* Lanes would cost more to begin than these take. */
  if (n < SCATB_GOOD) {
    for (uint32_t i = 0; i < n; i++) scatb_one(p, p->at[i], p->from[i]);
    return;
  }
  /* Updates that lie side by side are read where they are. */
  bool together = p->from[n - 1] - p->from[0] == n - 1; /* they ascend */
  for (uint32_t i = 0; i < s->n; i++) {
    const char *updates = p->r->in[s->n + 1 + i];
    p->in[i] = p->old[i];
    p->in[s->n + i] = together ? updates + p->from[0] * s->bytes[i] : p->update[i];
    if (s->body->program->values[i].read) scatb_pick(s->bytes[i], p->old[i], p->r->out[i], p->at, n);
    if (!together && s->body->program->values[s->n + i].read)
      scatb_pick(s->bytes[i], p->update[i], updates, p->from, n);
  }
  scalar_lanes_go(&p->lanes, 0, n, p->in, p->fresh);
  for (uint32_t i = 0; i < s->n; i++) scatb_put(s->bytes[i], p->r->out[i], p->fresh[i], p->at, n);
}

/* Windows of one element. They wait until there are SCATB_POINTS of them, or one may meet a place that waits already.
 */
static void scatb_points(scatb_part *p, const char *index, int64_t big, int64_t small, int64_t n) {
  assert(p->s->points && p->s->w.n_dims == 0);
  const scatb_data *s = p->s;
  const cpu_window_batch line = s->line;
  /* One comparison for both ends. */
  const uint64_t extent = (uint64_t)(p->high - p->low);
  int64_t *const at = p->at, *const from = p->from, offset = 0;
  uint16_t *const marks = p->marks, round = p->round;
  uint32_t waiting = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!cpu_window_offset(&s->w, index + i * line.index, &offset)) continue;
    int64_t to = big + offset + i * line.big;
    if ((uint64_t)(to - p->low) >= extent) continue;
    uint16_t *mark = &marks[(uint64_t)to * 0x9e3779b97f4a7c15u >> (64 - SCATB_MARK_BITS)];
    /* Two places may have one mark: then the round ends early, which changes no bit. */
    if (*mark == round || waiting == SCATB_POINTS) {
      scatb_flush(p, waiting);
      round = p->round;
      waiting = 0;
    }
    *mark = round;
    at[waiting] = to;
    from[waiting++] = small + i * line.small;
  }
  scatb_flush(p, waiting);
}

/* n windows along the innermost batch dimension. */
static void scatb_line(scatb_part *p, const char *index, int64_t big, int64_t small, int64_t n) {
  assert(n >= 0);
  const scatb_data *s = p->s;
  int64_t offset = 0;
  if (s->points) {
    scatb_points(p, index, big, small, n);
    return;
  }
  for (int64_t i = 0; i < n; i++) {
    if (!cpu_window_offset(&s->w, index + i * s->line.index, &offset)) continue;
    int64_t to = big + offset + i * s->line.big;
    if (to >= p->low && to < p->high) scatb_window(p, to, small + i * s->line.small);
  }
}

/* Lays out a part's memory and gives its size; where memory is NULL only that. */
static int64_t scatb_memory(const scatb_data *s, char *memory, scatb_part *p) {
  int64_t used = 0, lists = (int64_t)(s->n * sizeof(void *));
  char *one = cpu_share_take(&memory, &used, (int64_t)s->body->one_bytes);
  char *lanes = cpu_share_take(&memory, &used, (int64_t)s->body->lanes->bytes);
  p->arrays = cpu_share_take(&memory, &used, (int64_t)(s->n * sizeof *p->arrays));
  p->fresh = cpu_share_take(&memory, &used, lists);
  p->in = cpu_share_take(&memory, &used, 2 * lists);
  p->old = cpu_share_take(&memory, &used, lists);
  p->update = cpu_share_take(&memory, &used, lists);
  p->at = cpu_share_take(&memory, &used, SCATB_POINTS * (int64_t)sizeof *p->at);
  p->from = cpu_share_take(&memory, &used, SCATB_POINTS * (int64_t)sizeof *p->from);
  p->marks = cpu_share_take(&memory, &used, s->points ? (int64_t)sizeof *p->marks << SCATB_MARK_BITS : 0);
  for (uint32_t i = 0; i < s->n; i++) {
    void *fresh = cpu_share_take(&memory, &used, (int64_t)s->body->lanes->lanes * s->bytes[i]);
    void *old = cpu_share_take(&memory, &used, SCATB_POINTS * (int64_t)s->bytes[i]);
    void *update = cpu_share_take(&memory, &used, SCATB_POINTS * (int64_t)s->bytes[i]);
    if (!memory) continue;
    p->fresh[i] = fresh;
    p->old[i] = old;
    p->update[i] = update;
  }
  if (!memory) return used;
  p->round = 1;
  if (s->points) memset(p->marks, 0, sizeof *p->marks << SCATB_MARK_BITS);
  cpu_body_one_begin(&p->one, s->body, one);
  scalar_lanes_begin(&p->lanes, s->body->lanes, lanes);
  for (uint32_t i = 0; i < s->n; i++)
    p->arrays[i] = (scatb_array){.bytes = s->bytes[i],
                                 .reads = s->body->program->values[s->n + i].read,
                                 .array = p->r->out[i],
                                 .updates = p->r->in[s->n + 1 + i],
                                 .old_slot = cpu_body_slot(&p->one, i),
                                 .new_slot = cpu_body_slot(&p->one, s->n + i),
                                 .result = cpu_body_result(&p->one, i)};
  return used;
}

/* All windows that begin in one part of the arrays. */
static void scatb_range(void *ctx, size_t begin, size_t end) {
  assert(begin < end);
  const scatb_work *x = ctx;
  const scatb_data *s = x->s;
  scatb_part p = {.s = s, .r = x->r};
  cpu_window_walk walk;
  int64_t most = interp_max(1, SCATB_POLL / interp_max(1, s->updates / s->w.count));
  p.low = (int64_t)begin * x->share;
  p.high = (int64_t)end * x->share;
  (void)scatb_memory(s, (char *)x->r->scratch + (int64_t)begin * s->part_room, &p);
  cpu_window_walk_begin(&walk, &s->w, 0);
  for (int64_t left = s->w.count; left > 0 && !rt_pool_stopping(x->r->run->exe->pool);) {
    int64_t n = interp_min(most, cpu_window_walk_line(&walk));
    scatb_line(&p, (const char *)x->r->in[s->n] + walk.index, walk.big, walk.small, n);
    cpu_window_walk_next(&walk, n);
    left -= n;
  }
}

/* Everybody reads all indices, so there are parts only where a window is some work; which they are changes no bit. */
static int64_t scatb_parts(const scatb_data *s, const rt_pool *pool) {
  assert(s->w.count > 0);
  int64_t threads = rt_pool_size(pool), each = s->updates / s->w.count * (s->body->program->n_ops + 1);
  /* Windows that may overlap are one thread's: their updates have an order. */
  if (!s->w.disjoint || s->updates < SCATB_LONG || threads == 1 || each < SCATB_MANY) return 1;
  return interp_min(threads, SCATB_PARTS);
}

/* The routine: the arrays' old elements, unless they are there already, then the updates. */
static int scatb_run(const cpu_routine_run *r) {
  const scatb_data *s = r->data;
  rt_pool *pool = r->run->exe->pool;
  scatb_work x = {s, r, 0};
  for (uint32_t i = 0; i < s->n; i++) cpu_move_bytes(pool, r->out[i], r->in[i], s->count * s->bytes[i]);
  if (s->w.count == 0 || s->updates == 0) return 0;
  int64_t parts = scatb_parts(s, pool);
  x.share = (s->count + parts - 1) / parts;
  if (parts == 1)
    scatb_range(&x, 0, 1);
  else
    rt_parallel_for(pool, (size_t)parts, 1, scatb_range, &x);
  return 0;
}

/* --- preparing --- */

/* As many bytes as elements: then strides are in elements. */
static ir_type scatb_unit(const ir_type *t) {
  ir_type unit = *t;
  unit.dtype = XLAC_U8;
  return unit;
}

/* false when out of memory. */
static bool scatb_windows(cpu_prepare_run *x, scatb_data *s) {
  const ir_op *op = x->op;
  ir_type big = scatb_unit(ir_operand_type(op, 0)), updates = scatb_unit(ir_operand_type(op, s->n + 1));
  int64_t slices[IR_MAX_RANK];
  interp_window_dims a = interp_scatter_dims(op, big.rank, updates.dims, slices);
  if (!cpu_windows_make(&s->w, x->arena, &a, ir_operand_type(op, s->n), &big, slices, &updates)) return false;
  if (s->w.n_batch) s->line = s->w.batch[s->w.n_batch - 1];
  const cpu_move_dim *row = s->w.n_dims ? &s->w.dims[s->w.n_dims - 1] : NULL;
  /* What is done at once: single elements, or rows that are long and dense on both sides; else one update after
   * another. */
  s->points = s->w.n_dims == 0 && s->w.n_batch > 0 && s->line.small > 0 && s->updates >= SCATB_GOOD;
  s->lanes = row && row->n >= SCATB_ROW && row->to == 1 && row->from == 1;
  return true;
}

/* Whether operands, updates, parameters and results all have the types of the arrays. */
static bool scatb_types(const ir_op *op, const cpu_body *b, uint32_t n) {
  if (b->program->n_params != 2 * n || b->program->n_outs != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *result = ir_is_tuple(op->type) ? op->type->elements[i] : op->type;
    uint8_t t = ir_operand_type(op, i)->dtype;
    if (b->program->values[i].dtype != t || b->program->values[n + i].dtype != t ||
        scalar_out_dtype(b->program, i) != t || result->dtype != t || ir_operand_type(op, n + 1 + i)->dtype != t)
      return false;
  }
  return true;
}

/* How much memory and how many parts at most: sizes alone decide. */
static int scatb_prepare(cpu_prepare_run *x, scatb_data *s) {
  assert(s->n > 0 && s->body != NULL);
  uint8_t *bytes = BASE_ARRAY(x->arena, uint8_t, (size_t)s->n + 1);
  scatb_part p = {.s = s};
  if (!bytes) return base_oom(x->err, "a scatter");
  for (uint32_t i = 0; i < s->n; i++) bytes[i] = (uint8_t)base_dtype_bytes(ir_operand_type(x->op, i)->dtype);
  s->bytes = bytes;
  s->count = ir_operand_type(x->op, 0)->count;
  s->updates = ir_operand_type(x->op, s->n + 1)->count;
  if (!scatb_windows(x, s)) return base_oom(x->err, "a scatter");
  s->part_room = (scatb_memory(s, NULL, &p) + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
  x->out->scratch_bytes = s->part_room * (s->updates < SCATB_LONG || !s->w.disjoint ? 1 : SCATB_PARTS);
  /* Every array may be updated where it is. */
  for (uint32_t i = 0; i < s->n && i < 64; i++) x->out->in_place |= (uint64_t)1 << i;
  x->out->name = "scatter";
  x->data = s;
  x->out->work = (uint64_t)s->updates * (s->body->program->n_ops + 2);
  x->out->stoppable = true;
  x->code = scatb_run;
  return 0;
}

/* What doesn't fit is left to the interpreter: x->code stays NULL. */
int cpu_prepare_scatter_body(cpu_prepare_run *x) {
  const cpu_body *body = NULL;
  uint32_t n = x->op->n_operands / 2;
  if (x->op->n_called != 1 || n == 0) return 0;
  TRY(cpu_body_make(x->op->called[0], x->arena, &body, x->err));
  if (!body || !scatb_types(x->op, body, n)) return 0;
  scatb_data *s = BASE_NEW(x->arena, scatb_data);
  if (!s) return base_oom(x->err, "a scatter");
  s->body = body;
  s->n = n;
  return scatb_prepare(x, s);
}
