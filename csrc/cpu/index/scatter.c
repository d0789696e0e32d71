/* scatter into one array by a computation that is one op, or gives the update; others are for scatter_body.c. Windows
 * that don't fit are skipped, and updates of one place happen in the order of the indices: threads share the array
 * between them, not the indices. */
#include "../routine.h"
#include "scatter.h"

/* A window of several dimensions: rows of the innermost of them. */
static void scat_box(const scat_data *s, char *big, const char *small) {
  assert(s->w.n_dims > 1);
  int64_t at[IR_MAX_RANK] = {0}, to = 0, from = 0;
  const cpu_move_dim *row = &s->w.dims[s->w.n_dims - 1];
  do s->row(s, big + to, row->from, small + from, row->to, row->n);
  while (cpu_window_next_row(&s->w, at, &to, &from));
}

void cpu_scatter_window(const scat_data *s, char *big, const char *small) {
  const cpu_move_dim *dims = s->w.dims;
  if (s->w.n_dims > 1)
    scat_box(s, big, small);
  else if (s->w.n_dims == 1)
    s->row(s, big, dims->from, small, dims->to, dims->n);
  else
    s->row(s, big, s->bytes, small, s->bytes, 1);
}

enum { SCAT_LINE_WORK = 1 << 20 }; /* updates between two looks at whether to stop */

/* One run: shared by its threads. */
typedef struct scat_work {
  const scat_data *s;
  rt_pool *pool;
  const char *index, *small;
  char *big;
  int64_t share; /* bytes of the array for each part */
} scat_work;

/* All windows that begin in parts begin to end of the array. */
static void scat_range(void *ctx, size_t begin, size_t end) {
  assert(begin < end);
  const scat_work *x = ctx;
  const scat_data *s = x->s;
  scat_part part = {x->big + (int64_t)begin * x->share, x->big + (int64_t)end * x->share};
  cpu_window_walk walk;
  /* So many windows at a time that the call can be stopped between. */
  int64_t most = interp_max(1, SCAT_LINE_WORK / interp_max(1, s->updates / s->w.count));
  cpu_window_walk_begin(&walk, &s->w, 0);
  for (int64_t left = s->w.count; left > 0 && !rt_pool_stopping(x->pool);) {
    int64_t n = interp_min(most, cpu_window_walk_line(&walk));
    cpu_scatter_line(s, &part, x->index + walk.index, x->big + walk.big, x->small + walk.small, n);
    cpu_window_walk_next(&walk, n);
    left -= n;
  }
}

/* Everybody reads all indices, so parts are few, and as many as threads where windows are short; which they are changes
 * no bit. Where a window is some element and the
 * array is in the cache, passing over the updates of others costs as much as doing them. */
static int64_t scat_parts(const scat_data *s, const rt_pool *pool) {
  assert(s->w.count > 0);
  int64_t threads = rt_pool_size(pool), each = s->updates * s->bytes / s->w.count;
  if (!s->w.disjoint || s->updates < 1 << 16 || threads == 1) return 1;
  if (each >= 256) return interp_min(each >= 1 << 13 ? 4 * threads : threads, 64);
  return s->whole >= 1 << 24 ? interp_min(threads, 8) : 1;
}

/* The routine: the array's old elements, unless they are there already, then the updates. */
static int scat_run(const cpu_routine_run *r) {
  const scat_data *s = r->data;
  rt_pool *pool = r->run->exe->pool;
  scat_work x = {s, pool, r->in[1], r->in[2], r->out[0], 0};
  cpu_move_bytes(pool, r->out[0], r->in[0], s->whole);
  if (s->w.count == 0) return 0;
  int64_t parts = scat_parts(s, pool);
  x.share = (s->whole + parts - 1) / parts;
  if (parts == 1)
    scat_range(&x, 0, 1);
  else
    rt_parallel_for(pool, (size_t)parts, 1, scat_range, &x);
  return 0;
}

/* --- preparing --- */

/* The op of a body that is nothing but it on the accumulator and the update; *overwrites where it gives the update. */
static const ir_op *scat_body(const ir_op *op, bool *overwrites) {
  const ir_computation *c = op->called[0];
  const ir_op *root = ir_root(c);
  base_dtype t = op->type->dtype;
  *overwrites = false;
  /* Other bodies are anything else's business. */
  if (c->n_params != 2 || c->params[0]->type->dtype != t || c->params[1]->type->dtype != t) return NULL;
  /* The body gives the update: old elements aren't read. */
  if (root->opcode == IR_OP_PARAMETER && root->u.number == 1) {
    *overwrites = true;
    return NULL;
  }
  if (root->n_operands != 2 || root->type->dtype != t || root->type->count != 1) return NULL;
  /* old op update; or update op old, which is the same for commutative ops alone. */
  const ir_op *a = ir_operand(root, 0), *b = ir_operand(root, 1);
  if (a->opcode != IR_OP_PARAMETER || b->opcode != IR_OP_PARAMETER || a == b) return NULL;
  return a->u.number == 0 || ir_opcode_has(root->opcode, IR_COMMUTATIVE) ? root : NULL;
}

const cpu_windows *cpu_scatter_windows(const cpu_executable *exe, const plan_step *s, const ir_op **by) {
  const cpu_routine *r = s->kind == PLAN_ROUTINE ? &exe->routines.items[s->routine->number] : NULL;
  bool overwrites = false;
  if (!r || r->run != scat_run) return NULL;
  *by = scat_body(s->op, &overwrites);
  return &((const scat_data *)r->data)->w;
}

/* false when out of memory. */
static bool scat_windows(cpu_prepare_run *x, scat_data *s) {
  const ir_op *op = x->op;
  const ir_type *big = op->type, *updates = ir_operand_type(op, 2);
  int64_t slices[IR_MAX_RANK];
  interp_window_dims a = interp_scatter_dims(op, big->rank, updates->dims, slices);
  return cpu_windows_make(&s->w, x->arena, &a, ir_operand_type(op, 1), big, slices, updates);
}

/* One array, with operand, updates and result of one type. */
static bool scat_is_plain(const ir_op *op) {
  if (op->n_operands != 3 || op->n_called != 1 || !ir_is_tensor(op->type)) return false;
  return ir_operand_type(op, 0)->dtype == op->type->dtype && ir_operand_type(op, 2)->dtype == op->type->dtype;
}

/* What is not for here is handed on. */
int cpu_prepare_scatter(cpu_prepare_run *x) {
  bool overwrites = false;
  if (!scat_is_plain(x->op)) return cpu_prepare_scatter_body(x);
  const ir_op *body = scat_body(x->op, &overwrites);
  scat_data *s = BASE_NEW(x->arena, scat_data);
  if (!s) return base_oom(x->err, "a scatter");
  if (!overwrites && (!body || !scalar_loop_of_op(body, &s->loop))) return cpu_prepare_scatter_body(x);
  s->bytes = (int64_t)base_dtype_bytes(x->op->type->dtype);
  s->whole = x->op->type->count * s->bytes;
  s->updates = ir_operand_type(x->op, 2)->count;
  if (!scat_windows(x, s)) return base_oom(x->err, "a scatter");
  if (s->w.n_batch) s->line = s->w.batch[s->w.n_batch - 1];
  cpu_scatter_choose(s, body);
  x->out->name = overwrites ? "put" : "scatter";
  x->data = s;
  x->out->in_place = 1;
  x->out->work = (uint64_t)s->updates * 2;
  x->out->stoppable = true;
  x->code = scat_run;
  return 0;
}
