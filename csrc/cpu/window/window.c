/* reduce-window: which algorithm, and in which type. */
#include "window.h"

#include "../gemm/dot_gemm.h"

/* Padding behind the last element isn't asked for: with as many results as elements it is never met. */
bool cpu_window_is_trivial(const ir_window_dim *w, int64_t in, int64_t out) {
  assert(in >= 0 && out >= 0);
  return w->size == 1 && w->stride == 1 && w->padding_low == 0 && w->base_dilation == 1 && in == out;
}

/* And associates, but for rounding. Opcodes of which a, b and b, a give the same. */
static bool window_commutes(ir_opcode o) {
  return o == IR_OP_ADD || o == IR_OP_MULTIPLY || o == IR_OP_MAXIMUM || o == IR_OP_MINIMUM || o == IR_OP_AND ||
         o == IR_OP_OR || o == IR_OP_XOR;
}

/* Both parameters are scalars of the op's own type, each used once. */
const ir_op *cpu_window_body(const ir_computation *c) {
  const ir_op *body = ir_combiner(c);
  if (!body || !window_commutes((ir_opcode)body->opcode)) return NULL;
  base_dtype t = (base_dtype)body->type->dtype;
  for (uint32_t i = 0; i < 2; i++)
    if (!ir_is_scalar(c->params[i]->type) || c->params[i]->type->dtype != t) return NULL;
  return ir_is_scalar(body->type) ? body : NULL;
}

/* The operand in the type of the work: as it is, or a copy in scratch memory. *first becomes the initial value in it.
 */
static const char *window_converted(const cpu_window *w, rt_pool *pool, const void *in, const void *init, char *scratch,
                                    void *first) {
  base_convert(w->type, first, w->array_type, init, 1);
  if (!w->converted) return in;
  cpu_gemm_convert(pool, w->type, scratch, w->array_type, in, w->in_count);
  return scratch;
}

/* What all routines share: conversion before and after fn, which does the windows. */
static int window_run(const cpu_routine_run *r,
                      void (*fn)(const cpu_window *, rt_pool *, const char *, const char *, char *)) {
  const cpu_window *w = r->data;
  rt_pool *pool = r->run->exe->pool;
  char first[16] __attribute__((aligned(16))), *scratch = r->scratch;
  const char *in = window_converted(w, pool, r->in[0], r->in[1], scratch, first);
  char *out = w->converted ? scratch + w->out_at : r->out[0];
  fn(w, pool, in, first, out);
  if (w->converted) cpu_gemm_convert(pool, w->array_type, r->out[0], w->type, out, w->out_count);
  return 0;
}

/* The routines. */
static int window_by_rows(const cpu_routine_run *r) {
  return window_run(r, cpu_window_rows);
}

static int window_by_runs(const cpu_routine_run *r) {
  return window_run(r, cpu_window_runs);
}

static int window_by_scan(const cpu_routine_run *r) {
  return window_run(r, cpu_window_scan);
}

/* One window for all of the dimension. */
static bool window_is_full(const ir_window_dim *d, int64_t in, int64_t out) {
  return d->size == in && out == 1 && !d->padding_low && d->base_dilation == 1 && d->window_dilation == 1;
}

/* Neighbouring dimensions without windows become one, and so do neighbouring ones with one window each. w->window
 * becomes a list of its own, in the arena. false when out of memory. */
static bool window_collapse(cpu_window *w, const ir_window *window, const ir_type *in, const ir_type *out,
                            base_arena *arena) {
  ir_window *own = base_arena_zalloc(arena, sizeof *own + window->n * sizeof own->v[0]);
  bool before = false, full_before = false;
  if (!own) return false;
  for (uint32_t d = 0; d < window->n; d++) {
    bool trivial = cpu_window_is_trivial(&window->v[d], in->dims[d], out->dims[d]);
    bool full = !trivial && window_is_full(&window->v[d], in->dims[d], out->dims[d]);
    /* [2,3,4] with windows on the last dimension only becomes [6,4]. */
    if ((trivial && before) || (full && full_before)) {
      w->in_size[own->n - 1] *= in->dims[d];
      w->out_size[own->n - 1] *= out->dims[d];
      if (full) own->v[own->n - 1].size *= in->dims[d];
      continue;
    }
    before = trivial;
    full_before = full;
    w->in_size[own->n] = in->dims[d];
    w->out_size[own->n] = out->dims[d];
    own->v[own->n++] = window->v[d];
  }
  w->window = own;
  return true;
}

/* One window for each run of the array. Asked after window_measure. */
static bool window_is_of_runs(const cpu_window *w) {
  /* [6,4] with one window for each run of 4, or [24] with one for all. */
  uint32_t d = w->last;
  if (w->lanes != 1 || d > 1 || !window_is_full(&w->window->v[d], w->in_size[d], w->out_size[d])) return false;
  return d == 0 || cpu_window_is_trivial(&w->window->v[0], w->in_size[0], w->out_size[0]);
}

/* Strides, lanes and rows of the collapsed dimensions. */
static void window_measure(cpu_window *w) {
  assert(w->window->n > 0);
  uint32_t rank = w->window->n;
  interp_strides(rank, w->in_size, w->in_stride);
  interp_strides(rank, w->out_size, w->out_stride);
  w->last = rank - 1;
  w->lanes = w->rows = 1;
  if (rank > 1 && cpu_window_is_trivial(&w->window->v[rank - 1], w->in_size[rank - 1], w->out_size[rank - 1]))
    w->lanes = w->in_size[w->last--];
  for (uint32_t d = 0; d < w->last; d++) w->rows *= w->out_size[d];
}

/* Narrow floats go through f32, as the interpreter has them do; in maxima that changes nothing. false where the op
 * has no loop on the type. */
static bool window_types(cpu_window *w, const ir_op *body, const ir_type *in) {
  base_dtype t = w->array_type = (base_dtype)in->dtype;
  w->converted = base_dtype_is_float(t) && base_dtype_bytes(t) < 4;
  w->type = w->converted ? XLAC_F32 : t;
  w->bytes = base_dtype_bytes(w->type);
  w->opcode = (ir_opcode)body->opcode;
  bool sums = w->opcode == IR_OP_ADD || w->opcode == IR_OP_MULTIPLY;
  w->ordered = sums && (base_dtype_is_float(t) || base_dtype_is_complex(t));
  return scalar_loop_binary(scalar_code_of(w->opcode), w->type, &w->combine);
}

/* Without an answer (x->code stays NULL) the general way is tried. */
static int window_prepare(cpu_prepare_run *x) {
  const ir_op *op = x->op, *body = op->n_operands == 2 ? cpu_window_body(op->called[0]) : NULL;
  const ir_window *window = ir_get_window(op);
  const ir_type *in = ir_operand_type(op, 0);
  if (!body || !window || in->rank == 0 || window->n != in->rank || !ir_is_tensor(op->type)) return 0;
  if (in->dtype != body->type->dtype || op->type->dtype != in->dtype || ir_operand_type(op, 1)->dtype != in->dtype)
    return 0;
  cpu_window *w = BASE_NEW(x->arena, cpu_window);
  if (!w) return base_oom(x->err, "windows");
  for (uint32_t d = 0; d < in->rank; d++)
    if (interp_window_count(&window->v[d], in->dims[d]) != op->type->dims[d]) return 0;
  if (!window_types(w, body, in)) return 0;
  if (!window_collapse(w, window, in, op->type, x->arena)) return base_oom(x->err, "windows");
  window_measure(w);
  w->isa = base_isa_best();
  w->in_count = in->count;
  w->out_count = op->type->count;
  /* Two copies in f32: of the operand, then of the result. */
  if (w->converted) {
    w->out_at = (in->count * 4 + PLAN_ALIGN - 1) & ~(int64_t)(PLAN_ALIGN - 1);
    x->out->scratch_bytes = w->out_at + op->type->count * 4;
  }
  bool scan = cpu_window_is_scan(w);
  w->fold = window_is_of_runs(w) ? vm_fold_of(scalar_code_of(w->opcode), w->type) : NULL;
  x->out->name = scan ? "scan" : w->fold ? "runs" : "windows";
  x->out->work = (uint64_t)op->type->count * 4;
  for (uint32_t d = 0; d < window->n && !scan; d++) x->out->work *= (uint64_t)window->v[d].size;
  x->data = w;
  x->out->stoppable = true;
  x->code = scan ? window_by_scan : w->fold ? window_by_runs : window_by_rows;
  return 0;
}

/* By one commutative op where it is one, else by any computation. */
int cpu_prepare_reduce_window(cpu_prepare_run *x) {
  TRY(window_prepare(x));
  return x->code ? 0 : cpu_prepare_window_body(x);
}
