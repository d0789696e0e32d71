/* select-and-scatter by any computations on scalars, in any types. The leading dimensions without windows are
 * independent, and shared between threads; within one index of those, windows come in order: each chooses one element
 * of the operand, and the source's element is combined into the result there. */
#include "../body/body_share.h"
#include "../move/move.h"
#include "window.h"

/* BSEL_WORK: work for a thread at a time. BSEL_POLL: windows between looks at whether to stop. */
enum { BSEL_WORK = 1 << 14, BSEL_POLL = 1 << 10 };

/* What is known before a run. */
typedef struct bsel_data {
  const cpu_body *select, *scatter;
  ir_window *window; /* of the dimensions from the first with windows on */
  int64_t in_size[IR_MAX_RANK], out_size[IR_MAX_RANK], in_stride[IR_MAX_RANK]; /* out: the source's */
  int64_t in_count, out_count;                                                 /* of one outer index */
  size_t bytes;                                                                /* of all elements */
  cpu_share share;                                                             /* of outer indices */
} bsel_data;

/* One run: shared by its threads. */
typedef struct bsel_work {
  const bsel_data *x;
  const cpu_routine_run *r;
} bsel_work;

/* What is at work on one outer index. */
typedef struct bsel_place {
  const bsel_data *x;
  cpu_body_one select, scatter;
  const char *operand;
} bsel_place;

/* The element that element k of the window at position o meets, or -1. */
static int64_t bsel_element(const bsel_data *x, const int64_t *o, const int64_t *k) {
  int64_t place = 0;
  for (uint32_t d = 0; d < x->window->n; d++) {
    const ir_window_dim *w = &x->window->v[d];
    int64_t e = interp_window_element(w, x->in_size[d], o[d] * w->stride + k[d] * w->window_dilation);
    if (e < 0) return -1;
    place += e * x->in_stride[d];
  }
  return place;
}

/* Counts up in row-major order; false after the last. */
static bool bsel_next(uint32_t rank, const int64_t *sizes, int64_t *at) {
  assert(rank <= IR_MAX_RANK);
  for (uint32_t d = rank; d-- > 0;) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

/* The element that the window at o chooses: a choice stays where it is selected against the next one. */
static int64_t bsel_choose(const bsel_place *p, const int64_t *o) {
  const bsel_data *x = p->x;
  int64_t k[IR_MAX_RANK], sizes[IR_MAX_RANK], best = -1;
  uint32_t rank = x->window->n;
  for (uint32_t d = 0; d < rank; d++) {
    k[d] = 0;
    sizes[d] = x->window->v[d].size;
  }
  do {
    int64_t at = bsel_element(x, o, k);
    if (at < 0) continue;
    const char *from = p->operand + at * (int64_t)x->bytes;
    /* The first element is chosen without a question. */
    if (best >= 0) {
      cpu_body_copy(x->bytes, cpu_body_slot(&p->select, 1), from);
      cpu_body_one_run(&p->select);
      if (*cpu_body_result(&p->select, 0)) continue;
    }
    best = at;
    cpu_body_copy(x->bytes, cpu_body_slot(&p->select, 0), from);
  } while (bsel_next(rank, sizes, k));
  return best;
}

/* All windows of one outer index, in order, after the initial value has been put everywhere. */
static void bsel_outer(const bsel_work *w, bsel_place *p, int64_t outer) {
  assert(outer >= 0);
  const bsel_data *x = w->x;
  int64_t o[IR_MAX_RANK] = {0}, bytes = (int64_t)x->bytes, n = 0;
  const char *source = (const char *)w->r->in[1] + outer * x->out_count * bytes;
  char *to = (char *)w->r->out[0] + outer * x->in_count * bytes;
  p->operand = (const char *)w->r->in[0] + outer * x->in_count * bytes;
  vm_fill(x->bytes, w->r->in[2], x->in_count, to);
  if (x->out_count == 0) return;
  do {
    int64_t at = bsel_choose(p, o);
    /* Results of a call that stops are not looked at. */
    if (++n % BSEL_POLL == 0 && rt_pool_stopping(w->r->run->exe->pool)) return;
    if (at >= 0) {
      cpu_body_copy(x->bytes, cpu_body_slot(&p->scatter, 0), to + at * bytes);
      cpu_body_copy(x->bytes, cpu_body_slot(&p->scatter, 1), source);
      cpu_body_one_run(&p->scatter);
      cpu_body_copy(x->bytes, to + at * bytes, cpu_body_result(&p->scatter, 0));
    }
    source += bytes;
  } while (bsel_next(x->window->n, x->out_size, o));
}

/* Outer indices begin to end, with memory for both computations. */
static void bsel_range(void *ctx, size_t begin, size_t end) {
  assert(begin <= end);
  const bsel_work *w = ctx;
  char *memory = cpu_share_memory(&w->x->share, w->r->scratch, begin);
  bsel_place p = {.x = w->x};
  cpu_body_one_begin(&p.select, w->x->select, memory);
  cpu_body_one_begin(&p.scatter, w->x->scatter, memory + w->x->select->one_bytes);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) bsel_outer(w, &p, i);
}

/* The routine. */
static int bsel_run(const cpu_routine_run *r) {
  const bsel_data *x = r->data;
  bsel_work w = {x, r};
  if (x->share.units && x->in_count) cpu_share_run(&x->share, r->run->exe->pool, bsel_range, &w);
  return 0;
}

/* --- preparing --- */

/* Whether both computations take and give the arrays' type, and there are no more sources than placements. */
static bool bsel_fits(const ir_op *op, const cpu_body *select, const cpu_body *scatter, const ir_window *window) {
  const ir_type *in = ir_operand_type(op, 0), *source = ir_operand_type(op, 1);
  uint8_t t = in->dtype;
  /* Two elements each: the choice asks of them, the combination makes one. */
  if (select->program->n_params != 2 || select->program->n_outs != 1 || scatter->program->n_params != 2 ||
      scatter->program->n_outs != 1)
    return false;
  if (scalar_out_dtype(select->program, 0) != XLAC_PRED || scalar_out_dtype(scatter->program, 0) != t) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (select->program->values[i].dtype != t || scatter->program->values[i].dtype != t) return false;
  if (source->dtype != t || ir_operand_type(op, 2)->dtype != t || op->type->dtype != t || window->n != in->rank)
    return false;
  for (uint32_t d = 0; d < in->rank; d++)
    if (source->dims[d] > interp_window_count(&window->v[d], in->dims[d])) return false;
  return true;
}

/* Sizes from the first dimension with windows on; *outer: how many indices there are before it. false when out of
 * memory. */
static bool bsel_shape(bsel_data *x, base_arena *arena, const ir_op *op, const ir_window *window, int64_t *outer) {
  assert(window->n <= IR_MAX_RANK);
  const ir_type *in = ir_operand_type(op, 0), *source = ir_operand_type(op, 1);
  uint32_t first = 0;
  x->window = base_arena_zalloc(arena, sizeof *x->window + window->n * sizeof x->window->v[0]);
  if (!x->window) return false;
  /* E.g. batch and features of a picture in NCHW: pooling knows nothing of them. */
  for (*outer = 1; first < window->n; first++) {
    if (!cpu_window_is_trivial(&window->v[first], in->dims[first], source->dims[first])) break;
    *outer *= in->dims[first];
  }
  x->in_count = x->out_count = 1;
  for (uint32_t d = first; d < window->n; d++) {
    x->in_size[d - first] = in->dims[d];
    x->out_size[d - first] = source->dims[d];
    x->in_count *= in->dims[d];
    x->out_count *= source->dims[d];
    x->window->v[x->window->n++] = window->v[d];
  }
  interp_strides(x->window->n, x->in_size, x->in_stride);
  return true;
}

/* For operands of rank 0. */
static const ir_window bsel_none = {.n = 0};

/* What doesn't fit is left to the interpreter: x->code stays NULL. */
int cpu_prepare_select_body(cpu_prepare_run *x) {
  const cpu_body *select = NULL, *scatter = NULL;
  const ir_window *window = ir_get_window(x->op);
  int64_t outer = 1, work = 4;
  if (x->op->n_called != 2) return 0;
  if (!window) window = &bsel_none;
  TRY(cpu_body_make(x->op->called[0], x->arena, &select, x->err));
  TRY(cpu_body_make(x->op->called[1], x->arena, &scatter, x->err));
  if (!select || !scatter || !bsel_fits(x->op, select, scatter, window)) return 0;
  bsel_data *data = BASE_NEW(x->arena, bsel_data);
  if (!data || !bsel_shape(data, x->arena, x->op, window, &outer)) return base_oom(x->err, "select-and-scatter");
  data->select = select;
  data->scatter = scatter;
  data->bytes = base_dtype_bytes(x->op->type->dtype);
  for (uint32_t d = 0; d < data->window->n; d++) work = cpu_share_work(work, data->window->v[d].size);
  x->out->scratch_bytes = cpu_share_make(&data->share, outer, BSEL_WORK / cpu_share_work(work, data->out_count + 1),
                                         (int64_t)(select->one_bytes + scatter->one_bytes));
  x->out->name = "select-and-scatter";
  x->data = data;
  x->out->work = (uint64_t)cpu_share_work(ir_operand_type(x->op, 1)->count, work);
  x->out->stoppable = true;
  x->code = bsel_run;
  return 0;
}
