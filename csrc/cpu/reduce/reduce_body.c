/* reduce by any computation on scalars, of any number of arrays: each result combines its elements in ascending
 * order, as the interpreter has it, so that nothing depends on threads. Results are lanes, a block of them at a
 * time: the accumulators of all are combined with one element of each by one run of the body. Few results of many
 * elements are for reduce_few.c.
 *
 * Where the lanes' elements are neighbours in memory they are read there; else BRED_ROWS steps of them are
 * gathered first. */
#include "reduce_body.h"

enum {
  BRED_LANES = 256,
  BRED_ROWS = 16,      /* steps that are brought together at a time */
  BRED_FEW = 6,        /* fewer results are not lanes */
  BRED_WORK = 1 << 14, /* element operations a thread should have */
  BRED_LONG = 4096     /* the interpreter cuts longer reductions by one associative op into parts */
};

/* What a range of blocks works with, in its part of the step's scratch memory. acc, next: a block of lanes for
 * each operand's accumulator, before and after a run of the body; tile: gathered elements; in: what the body is
 * given. */
typedef struct bred_memory {
  char *body;
  int64_t *at; /* of lanes: element of the operands at step 0 */
  void **acc, **next, **tile, **in;
} bred_memory;

/* Lays m out at `memory`, and gives the bytes; memory NULL: only these. */
static int64_t bred_memory_make(const cpu_reduction *x, char *memory, bred_memory *m) {
  int64_t used = 0, lists = (int64_t)(x->n * sizeof(void *));
  m->body = cpu_share_take(&memory, &used, (int64_t)x->body->lanes->bytes);
  m->at = cpu_share_take(&memory, &used, x->lanes * (int64_t)sizeof *m->at);
  m->acc = cpu_share_take(&memory, &used, lists);
  m->next = cpu_share_take(&memory, &used, lists);
  m->tile = cpu_share_take(&memory, &used, lists);
  m->in = cpu_share_take(&memory, &used, 2 * lists);
  for (uint32_t i = 0; i < x->n; i++) {
    void *acc = cpu_share_take(&memory, &used, x->lanes * x->bytes[i]);
    void *next = cpu_share_take(&memory, &used, x->lanes * x->bytes[i]);
    void *tile = cpu_share_take(&memory, &used, BRED_ROWS * x->lanes * x->bytes[i]);
    if (!memory) continue;
    m->acc[i] = acc;
    m->next[i] = next;
    m->tile[i] = tile;
  }
  return used;
}

/* --- where elements are --- */

/* Lane by lane, since a lane's elements are often near each other. */
#define BRED_GATHER(T)                \
  for (int64_t l = 0; l < lanes; l++) \
    for (int64_t t = 0; t < rows; t++) ((T *)to)[t * lanes + l] = ((const T *)from)[at[l] + step[t]]

/* rows x lanes elements, those of a row together: element at[l] + step[t] of `from` becomes number t * lanes + l
 * of `to`. */
static void bred_gather(size_t bytes, void *to, const void *from, const int64_t *at, int64_t lanes, const int64_t *step,
                        int64_t rows) {
  if (bytes == 4)
    BRED_GATHER(uint32_t);
  else if (bytes == 8)
    BRED_GATHER(uint64_t);
  else if (bytes == 1)
    BRED_GATHER(uint8_t);
  else if (bytes == 2)
    BRED_GATHER(uint16_t);
  else
    for (int64_t l = 0; l < lanes; l++)
      for (int64_t t = 0; t < rows; t++)
        memcpy((char *)to + (t * lanes + l) * 16, (const char *)from + (at[l] + step[t]) * 16, 16);
}

/* --- lanes --- */

/* What a run of the body gave is what the next one takes. */
static void bred_swap(bred_memory *m) {
  void **swap = m->acc;
  m->acc = m->next;
  m->next = swap;
}

/* Results first .. first + n, from their initial values to the last element. */
static void bred_block(const cpu_reduce_work *w, bred_memory *m, scalar_lanes_run *lanes, int64_t first, int64_t n) {
  const cpu_reduction *x = w->x;
  assert(n > 0 && n <= x->lanes && first + n <= x->results);
  for (int64_t l = 0; l < n; l++) m->at[l] = cpu_reduce_place(x->n_kept, x->kept, x->kept_stride, first + l);
  bool together = m->at[n - 1] - m->at[0] == n - 1;
  for (uint32_t i = 0; i < x->n; i++) vm_fill(x->bytes[i], w->r->in[x->n + i], n, m->acc[i]);
  for (int64_t s = 0; s < x->steps; s += BRED_ROWS) {
    int64_t rows = interp_min(BRED_ROWS, x->steps - s), step[BRED_ROWS];
    if (rt_pool_stopping(w->r->run->exe->pool)) return;
    for (int64_t t = 0; t < rows; t++) step[t] = cpu_reduce_place(x->n_reduced, x->reduced, x->reduced_stride, s + t);
    for (uint32_t i = 0; i < x->n && !together; i++)
      if (x->body->program->values[x->n + i].read)
        bred_gather(x->bytes[i], m->tile[i], w->r->in[i], m->at, n, step, rows);
    for (int64_t t = 0; t < rows; t++) {
      for (uint32_t i = 0; i < x->n; i++) {
        m->in[i] = m->acc[i];
        m->in[x->n + i] = together ? (char *)(uintptr_t)w->r->in[i] + (m->at[0] + step[t]) * x->bytes[i]
                                   : (char *)m->tile[i] + t * n * x->bytes[i];
      }
      scalar_lanes_go(lanes, 0, n, (const void *const *)m->in, m->next);
      bred_swap(m);
    }
  }
  for (uint32_t i = 0; i < x->n; i++)
    memcpy((char *)w->r->out[i] + first * x->bytes[i], m->acc[i], (size_t)n * x->bytes[i]);
}

/* For cpu_share_run: blocks of lanes. */
static void bred_blocks(void *ctx, size_t begin, size_t end) {
  const cpu_reduce_work *w = ctx;
  const cpu_reduction *x = w->x;
  bred_memory m;
  scalar_lanes_run lanes;
  (void)bred_memory_make(x, cpu_share_memory(&x->share, w->r->scratch, begin), &m);
  scalar_lanes_begin(&lanes, x->body->lanes, m.body);
  for (int64_t b = (int64_t)begin; b < (int64_t)end; b++) {
    int64_t first = b * x->lanes;
    bred_block(w, &m, &lanes, first, interp_min(x->lanes, x->results - first));
  }
}

/* Results that are few, or none at all, are not lanes. */
static int bred_run(const cpu_routine_run *r) {
  const cpu_reduction *x = r->data;
  assert(x->n > 0 && x->steps >= 0);
  cpu_reduce_work w = {x, r};
  if (x->results == 0) return 0;
  cpu_share_run(&x->share, r->run->exe->pool, x->results <= BRED_FEW ? cpu_reduce_few : bred_blocks, &w);
  return 0;
}

/* --- preparing --- */

/* Kept and reduced dimensions, the outermost first. Neighbours that step through memory as one are merged. */
static void bred_shape(cpu_reduction *x, const ir_type *t, const ir_ints *dims) {
  int64_t strides[IR_MAX_RANK];
  assert(x->n_kept == 0 && x->n_reduced == 0);
  interp_strides(t->rank, t->dims, strides);
  x->results = x->steps = 1;
  for (uint32_t d = 0; d < t->rank; d++) {
    bool reduced = ir_ints_has(dims, d);
    int64_t *sizes = reduced ? x->reduced : x->kept, *own = reduced ? x->reduced_stride : x->kept_stride;
    uint32_t *n = reduced ? &x->n_reduced : &x->n_kept;
    *(reduced ? &x->steps : &x->results) *= t->dims[d];
    if (t->dims[d] == 1) continue;
    if (*n && own[*n - 1] == t->dims[d] * strides[d]) {
      sizes[*n - 1] *= t->dims[d];
      own[*n - 1] = strides[d];
      continue;
    }
    sizes[*n] = t->dims[d];
    own[(*n)++] = strides[d];
  }
}

/* Whether operands, initial values, parameters and results all have the types of the arrays: mixed ones are the
 * interpreter's, which converts. */
static bool bred_types(const ir_op *op, const cpu_body *b, uint32_t n) {
  if (b->program->n_params != 2 * n || b->program->n_outs != n) return false;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *result = ir_is_tuple(op->type) ? op->type->elements[i] : op->type;
    uint8_t t = ir_operand_type(op, i)->dtype;
    if (b->program->values[i].dtype != t || b->program->values[n + i].dtype != t ||
        scalar_out_dtype(b->program, i) != t || result->dtype != t || ir_operand_type(op, n + i)->dtype != t)
      return false;
  }
  return true;
}

/* What the interpreter does in another way, and is left to it so that the bits stay its: narrow floats summed in
 * f32, long chains cut into parts. */
static bool bred_is_special(const cpu_body *b, int64_t steps) {
  base_dtype t = (base_dtype)b->program->values[0].dtype;
  switch (scalar_program_single(b->program)) {
    case SCALAR_ADD:
    case SCALAR_MULTIPLY:
      return steps > BRED_LONG || (base_dtype_is_float(t) && base_dtype_bytes(t) < 4);
    case SCALAR_MAXIMUM:
    case SCALAR_MINIMUM:
    case SCALAR_AND:
    case SCALAR_OR:
    case SCALAR_XOR:
      return steps > BRED_LONG;
    default:
      return false;
  }
}

/* Fills in the reduction, and the routine's facts. Lanes are chosen so that there are enough blocks for CPU_SHARES
 * ranges; few results are shared one by one. */
static int bred_prepare(cpu_prepare_run *x, cpu_reduction *data) {
  uint8_t *bytes = BASE_ARRAY(x->arena, uint8_t, (size_t)data->n + 1);
  bred_memory m;
  if (!bytes) return base_oom(x->err, "a reduction");
  for (uint32_t i = 0; i < data->n; i++) bytes[i] = (uint8_t)base_dtype_bytes(ir_operand_type(x->op, i)->dtype);
  data->bytes = bytes;
  bred_shape(data, ir_operand_type(x->op, 0), ir_get_ints(x->op, IR_ATTR_DIMENSIONS));
  if (bred_is_special(data->body, data->steps)) return 0;
  int64_t each = cpu_share_work(interp_max(1, data->steps), data->body->program->n_ops + 1);
  data->lanes = interp_clamp((data->results / CPU_SHARES + 15) & ~(int64_t)15, 16,
                             interp_min(BRED_LANES, data->body->lanes->lanes));
  if (data->results <= BRED_FEW)
    x->out->scratch_bytes = cpu_share_make(&data->share, data->results, BRED_WORK / each, cpu_reduce_few_bytes(data));
  else
    x->out->scratch_bytes =
        cpu_share_make(&data->share, (data->results + data->lanes - 1) / data->lanes,
                       BRED_WORK / cpu_share_work(each, data->lanes), bred_memory_make(data, NULL, &m));
  x->out->name = "reduce";
  x->data = data;
  x->out->work = (uint64_t)cpu_share_work(data->results, each);
  x->out->stoppable = true;
  x->code = bred_run;
  return 0;
}

/* Most reductions never come here: sums and extremes are kernels (vm/vm_reduce.c). */
int cpu_prepare_reduce(cpu_prepare_run *x) {
  const cpu_body *body = NULL;
  TRY(cpu_prepare_arg_reduce(x));
  if (x->code || x->op->n_called != 1) return 0;
  TRY(cpu_body_make(x->op->called[0], x->arena, &body, x->err));
  if (!body || !bred_types(x->op, body, x->op->n_operands / 2)) return 0;
  cpu_reduction *data = BASE_NEW(x->arena, cpu_reduction);
  if (!data) return base_oom(x->err, "a reduction");
  data->body = body;
  data->n = x->op->n_operands / 2;
  return bred_prepare(x, data);
}
