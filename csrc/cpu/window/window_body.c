/* reduce-window by any computation on scalars, of any number of arrays, in any types: a part of the results at a time,
 * in lanes. Each element of the window, in order, combines with all placements of the part that meet one of the
 * operand, as the interpreter has it. Threads share the parts. */
#include "../body/body_share.h"
#include "../move/move.h"
#include "window.h"

/* BWIN_LANES: results in a part. BWIN_WORK: ops on lanes for a thread at a time. */
enum { BWIN_LANES = 1 << 11, BWIN_WORK = 1 << 14 };

/* What is known before a run. */
typedef struct bwin_data {
  const cpu_body *body;
  const ir_window *window;
  uint32_t n, rank;
  const uint8_t *bytes; /* of each operand's elements */
  const int64_t *in_size, *out_size;
  int64_t lanes;   /* of the largest part */
  cpu_share share; /* of parts */
} bwin_data;

/* What a range of parts works with: of the present part all accumulators, those of one box, what they meet, and what
 * comes of it. */
typedef struct bwin_memory {
  scalar_lanes_run lanes;
  void **acc, **some, **met, **next;
  const void **in;
} bwin_memory;

/* One run: shared by its threads. */
typedef struct bwin_work {
  const bwin_data *x;
  const cpu_routine_run *r;
} bwin_work;

/* Lays out a thread's memory and gives its size; where memory is NULL only that. */
static int64_t bwin_memory_make(const bwin_data *x, char *memory, bwin_memory *m) {
  assert(x->n > 0 && x->lanes >= 0);
  int64_t used = 0, lists = (int64_t)(x->n * sizeof(void *));
  char *body = cpu_share_take(&memory, &used, (int64_t)x->body->lanes->bytes);
  void ***all[4] = {&m->acc, &m->some, &m->met, &m->next};
  m->in = cpu_share_take(&memory, &used, 2 * lists);
  for (int k = 0; k < 4; k++) {
    *all[k] = cpu_share_take(&memory, &used, lists);
    for (uint32_t i = 0; i < x->n; i++) {
      void *p = cpu_share_take(&memory, &used, x->lanes * x->bytes[i]);
      if (memory) (*all[k])[i] = p;
    }
  }
  if (memory) scalar_lanes_begin(&m->lanes, x->body->lanes, body);
  return used;
}

/* A box of elements between arrays; strides in elements. */
static void bwin_copy(int64_t bytes, uint32_t rank, const int64_t *dims, char *to, const int64_t *to_strides,
                      const char *from, const int64_t *from_strides) {
  assert(rank <= IR_MAX_RANK);
  int64_t at[IR_MAX_RANK];
  memset(at, 0, (rank + 1u) * sizeof *at);
  if (rank == 0) memcpy(to, from, (size_t)bytes);
  while (rank > 0) {
    uint32_t d = rank - 1;
    cpu_move_row(bytes, to, to_strides[d] * bytes, from, from_strides[d] * bytes, dims[d]);
    for (; d > 0; d--) {
      to += to_strides[d - 1] * bytes;
      from += from_strides[d - 1] * bytes;
      if (++at[d - 1] < dims[d - 1]) break;
      to -= to_strides[d - 1] * bytes * at[d - 1];
      from -= from_strides[d - 1] * bytes * at[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

/* The results become the accumulators, without a copy. */
static void bwin_swap(void ***a, void ***b) {
  void **swap = *a;
  *a = *b;
  *b = swap;
}

/* One element of the window. Where it meets all of the part, the accumulators are used as stored; else those it
 * meets are gathered, and put back. */
static void bwin_step(const bwin_work *w, bwin_memory *m, const interp_window_walk *walk) {
  const bwin_data *x = w->x;
  int64_t dense[IR_MAX_RANK];
  /* The accumulators of all of the part, or of the box that the element meets. */
  void **acc = walk->whole ? m->acc : m->some;
  interp_strides(walk->rank, walk->count, dense);
  for (uint32_t i = 0; i < x->n; i++) {
    int64_t bytes = x->bytes[i];
    m->in[i] = acc[i];
    m->in[x->n + i] = m->met[i];
    /* What the computation never looks at isn't gathered. */
    if (x->body->program->values[x->n + i].read)
      bwin_copy(bytes, walk->rank, walk->count, m->met[i], dense, (const char *)w->r->in[i] + walk->operand_at * bytes,
                walk->operand_strides);
    if (!walk->whole)
      bwin_copy(bytes, walk->rank, walk->count, m->some[i], dense, (char *)m->acc[i] + walk->part_at * bytes,
                walk->part_strides);
  }
  scalar_lanes_go(&m->lanes, 0, walk->lanes, m->in, m->next);
  if (walk->whole) {
    bwin_swap(&m->acc, &m->next);
    return;
  }
  for (uint32_t i = 0; i < x->n; i++)
    bwin_copy(x->bytes[i], walk->rank, walk->count, (char *)m->acc[i] + walk->part_at * x->bytes[i], walk->part_strides,
              m->next[i], dense);
}

/* One part from the initial values to the results. A call that is to stop leaves it undone. */
static void bwin_part(const bwin_work *w, bwin_memory *m, const interp_parts *p) {
  const bwin_data *x = w->x;
  interp_window_walk walk;
  for (uint32_t i = 0; i < x->n; i++) vm_fill(x->bytes[i], w->r->in[x->n + i], p->lanes, m->acc[i]);
  interp_window_walk_begin(&walk, x->window, x->in_size, x->out_size, p->low, p->high);
  for (uint64_t k = 0; interp_window_walk_next(&walk); k++) {
    /* Not at every element: that would cost as much as a small step. */
    if (k % 16 == 0 && rt_pool_stopping(w->r->run->exe->pool)) return;
    bwin_step(w, m, &walk);
  }
  for (uint32_t i = 0; i < x->n; i++)
    memcpy((char *)w->r->out[i] + p->at * x->bytes[i], m->acc[i], (size_t)(p->lanes * x->bytes[i]));
}

/* Parts begin to end. Those before are counted through: parts have no other order than one after the other. */
static void bwin_parts(void *ctx, size_t begin, size_t end) {
  assert(begin <= end);
  const bwin_work *w = ctx;
  const bwin_data *x = w->x;
  bwin_memory m;
  interp_parts p;
  bool more = interp_parts_begin(&p, x->rank, x->out_size, BWIN_LANES);
  (void)bwin_memory_make(x, cpu_share_memory(&x->share, w->r->scratch, begin), &m);
  for (size_t i = 0; i < end && more; i++) {
    if (i >= begin) bwin_part(w, &m, &p);
    more = interp_parts_next(&p);
  }
}

/* The routine. */
static int bwin_run(const cpu_routine_run *r) {
  const bwin_data *x = r->data;
  bwin_work w = {x, r};
  if (x->share.units) cpu_share_run(&x->share, r->run->exe->pool, bwin_parts, &w);
  return 0;
}

/* --- preparing --- */

/* A rank-0 operand has no window. */
static const ir_window bwin_none = {.n = 0};

/* How many parts interp_parts makes; the first is as large as any. */
static int64_t bwin_count_parts(bwin_data *x) {
  interp_parts p;
  int64_t n = 1;
  if (!interp_parts_begin(&p, x->rank, x->out_size, BWIN_LANES)) return 0;
  x->lanes = p.lanes;
  for (uint32_t d = 0; d < p.split; d++) n *= x->out_size[d];
  return p.split < x->rank ? n * ((x->out_size[p.split] + p.piece - 1) / p.piece) : n;
}

/* Whether operands, parameters and results all have the types of the arrays, and windows are as many as results. */
static bool bwin_types(const ir_op *op, const cpu_body *b, const ir_window *window, uint32_t n) {
  /* For n arrays: n accumulators, then n elements; n results. */
  if (b->program->n_params != 2 * n || b->program->n_outs != n || window->n != ir_operand_type(op, 0)->rank)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *result = ir_is_tuple(op->type) ? op->type->elements[i] : op->type;
    uint8_t t = ir_operand_type(op, i)->dtype;
    if (b->program->values[i].dtype != t || b->program->values[n + i].dtype != t ||
        scalar_out_dtype(b->program, i) != t || result->dtype != t || ir_operand_type(op, n + i)->dtype != t)
      return false;
    for (uint32_t d = 0; d < window->n; d++)
      if (interp_window_count(&window->v[d], ir_operand_type(op, i)->dims[d]) != result->dims[d]) return false;
  }
  return true;
}

/* Narrow floats are summed in f32, which is not for here. */
static bool bwin_widens(const cpu_body *b) {
  base_dtype t = (base_dtype)b->program->values[0].dtype;
  scalar_code single = scalar_program_single(b->program);
  return (single == SCALAR_ADD || single == SCALAR_MULTIPLY) && base_dtype_is_float(t) && base_dtype_bytes(t) < 4;
}

/* How much memory and how many parts: sizes alone decide. */
static int bwin_prepare(cpu_prepare_run *x, bwin_data *data) {
  assert(data->n > 0 && data->body != NULL);
  /* All that is known by shapes is found here; a run only walks. */
  uint8_t *bytes = BASE_ARRAY(x->arena, uint8_t, (size_t)data->n + 1);
  const ir_type *in = ir_operand_type(x->op, 0),
                *out = ir_is_tuple(x->op->type) ? x->op->type->elements[0] : x->op->type;
  bwin_memory m;
  int64_t work = data->body->program->n_ops + 2;
  if (!bytes) return base_oom(x->err, "windows");
  for (uint32_t i = 0; i < data->n; i++) bytes[i] = (uint8_t)base_dtype_bytes(ir_operand_type(x->op, i)->dtype);
  data->bytes = bytes;
  data->rank = in->rank;
  data->in_size = in->dims;
  data->out_size = out->dims;
  int64_t parts = bwin_count_parts(data);
  for (uint32_t d = 0; d < data->window->n; d++) work = cpu_share_work(work, data->window->v[d].size);
  x->out->scratch_bytes =
      cpu_share_make(&data->share, parts, BWIN_WORK / interp_max(1, cpu_share_work(data->lanes, work)),
                     bwin_memory_make(data, NULL, &m));
  x->out->name = "windows";
  x->data = data;
  x->out->work = (uint64_t)cpu_share_work(out->count, work);
  x->out->stoppable = true;
  x->code = bwin_run;
  return 0;
}

/* What doesn't fit is left to the interpreter: x->code stays NULL. */
int cpu_prepare_window_body(cpu_prepare_run *x) {
  const cpu_body *body = NULL;
  const ir_window *window = ir_get_window(x->op);
  uint32_t n = x->op->n_operands / 2;
  if (x->op->n_called != 1 || n == 0) return 0;
  if (!window) window = &bwin_none;
  TRY(cpu_body_make(x->op->called[0], x->arena, &body, x->err));
  if (!body || !bwin_types(x->op, body, window, n) || bwin_widens(body)) return 0;
  bwin_data *data = BASE_NEW(x->arena, bwin_data);
  if (!data) return base_oom(x->err, "windows");
  data->body = body;
  data->window = window;
  data->n = n;
  return bwin_prepare(x, data);
}
