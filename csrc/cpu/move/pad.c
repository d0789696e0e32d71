/* pad, with negative and interior padding. The result is made in the order of its memory: padding up to a row of the
 * operand, the row, and so on, so that each byte is written once (where there is interior padding in rows, twice). */
#include "../../interp/algorithm/arrays.h"
#include "move.h"
#include "../routine.h"

/* A dimension of the part of the operand that stays; strides in bytes. */
typedef struct pad_kept {
  int64_t n, to, from;
} pad_kept;

/* What is known before a run: rows of the operand, by the bytes where they go and come from. */
typedef struct pad_data {
  size_t bytes;
  int64_t total;        /* bytes of the result */
  int64_t row, stretch; /* a row's elements, and the bytes of the result from its first to its last */
  int64_t row_to, row_from;
  int64_t to, from; /* where the first row lies */
  int64_t rows, grain;
  uint32_t rank; /* of the dimensions around a row */
  const pad_kept *dims;
} pad_data;

/* One dimension: the operand's elements [first, first + n) stay, element first lands at place `at`, neighbours land
 * `step` apart. */
typedef struct pad_side {
  int64_t first, n, at, step;
} pad_side;

/* p: the padding; n and size: elements of the operand and of the result. n is 0 in the answer where nothing stays:
 * all of it is cut away. */
static pad_side pad_side_of(ir_padding_dim p, int64_t n, int64_t size) {
  assert(n >= 0 && size >= 0 && p.interior >= 0);
  pad_side r = {.first = 0, .n = 0, .at = 0, .step = n > 1 ? p.interior + 1 : 1};
  if (n == 0 || size == 0) return r;
  /* The first element that isn't cut away: low / step of them are, rounded up. */
  if (p.low < 0) r.first = -(p.low / r.step) + (-p.low % r.step != 0);
  if (r.first >= n) return r;
  r.at = p.low + r.first * r.step;
  if (r.at < size) r.n = interp_min(n - r.first, 1 + (size - 1 - r.at) / r.step);
  return r;
}

enum { PAD_POLL = 1 << 19 /* elements */ };

/* One run: shared by its threads. */
typedef struct pad_run {
  const pad_data *x;
  rt_pool *pool;
  char *to;
  const char *from;
  const void *element;
} pad_run;

/* The byte of the result where row number `row` begins; *from: that of the operand; at: its index in the outer
 * dimensions. */
static int64_t pad_row_offset(const pad_data *x, int64_t row, int64_t *at, int64_t *from) {
  assert(row >= 0 && row < x->rows);
  int64_t to = x->to;
  *from = x->from;
  for (uint32_t d = x->rank; d-- > 0;) {
    at[d] = row % x->dims[d].n;
    row /= x->dims[d].n;
    to += at[d] * x->dims[d].to;
    *from += at[d] * x->dims[d].from;
  }
  return to;
}

/* Rows and what lies between them may be any length: how much of n from `at` on is done before the next look at whether
 * to go on, 0 to stop. */
static int64_t pad_some(const pad_run *p, int64_t at, int64_t n) {
  if (at > 0 && rt_pool_stopping(p->pool)) return 0;
  return interp_min(n - at, PAD_POLL);
}

/* Padding in bytes [begin, end) of the result, which may be none. */
static void pad_fill(const pad_run *p, int64_t begin, int64_t end) {
  int64_t bytes = (int64_t)p->x->bytes;
  for (int64_t at = 0, n = (end - begin) / bytes, some; at < n && (some = pad_some(p, at, n)) > 0; at += some)
    interp_fill(p->x->bytes, p->to + begin + at * bytes, some, p->element);
}

/* One row at those bytes; with padding between its elements first, where it has any. */
static void pad_row(const pad_run *p, int64_t to, int64_t from) {
  const pad_data *x = p->x;
  int64_t bytes = (int64_t)x->bytes, some;
  bool dense = x->row_to == bytes && x->row_from == x->row_to;
  if (!dense) pad_fill(p, to, to + x->stretch);
  for (int64_t at = 0; at < x->row && (some = pad_some(p, at, x->row)) > 0; at += some) {
    char *out = p->to + to + at * x->row_to;
    const char *in = p->from + from + at * x->row_from;
    if (dense)
      memcpy(out, in, (size_t)(some * bytes));
    else
      cpu_move_row(bytes, out, x->row_to, in, x->row_from, some);
  }
}

/* Rows begin to end, each with the padding before it, and behind the last one what is left. */
static void pad_range(void *ctx, size_t begin, size_t end) {
  const pad_run *p = ctx;
  const pad_data *x = p->x;
  int64_t at[IR_MAX_RANK], from, done = 0;
  /* What comes before is somebody else's up to the end of the row before. */
  if (begin > 0) done = pad_row_offset(x, (int64_t)begin - 1, at, &from) + x->stretch;
  int64_t to = pad_row_offset(x, (int64_t)begin, at, &from);
  for (size_t i = begin; i < end; i++) {
    pad_fill(p, done, to);
    pad_row(p, to, from);
    done = to + x->stretch;
    for (uint32_t d = x->rank; d-- > 0;) {
      to += x->dims[d].to;
      from += x->dims[d].from;
      if (++at[d] < x->dims[d].n) break;
      to -= x->dims[d].to * at[d];
      from -= x->dims[d].from * at[d];
      at[d] = 0;
    }
  }
  /* Nobody else comes after the last row. */
  if ((int64_t)end == x->rows) pad_fill(p, done, x->total);
}

/* The routine. A result without any of the operand is padding alone. */
static int pad_run_step(const cpu_routine_run *r) {
  const pad_data *x = r->data;
  rt_pool *pool = r->run->exe->pool;
  pad_run p = {x, pool, r->out[0], r->in[0], r->in[1]};
  if (x->rows == 0)
    cpu_move_fill(pool, x->bytes, p.to, x->total / (int64_t)x->bytes, p.element);
  else if (x->rows <= x->grain)
    pad_range(&p, 0, (size_t)x->rows);
  else
    rt_parallel_for(pool, (size_t)x->rows, (size_t)x->grain, pad_range, &p);
  return 0;
}

/* Rows grow over the inner dimensions that stay whole. What remains around them is counted, and cut for threads. */
static void pad_merge(pad_data *x, pad_kept *dims) {
  x->row = 1;
  x->row_to = x->row_from = (int64_t)x->bytes;
  if (x->rank) {
    const pad_kept *last = &dims[--x->rank];
    x->row = last->n;
    x->row_to = last->to;
    x->row_from = last->from;
  }
  while (x->rank && dims[x->rank - 1].to == x->row * x->row_to && dims[x->rank - 1].from == x->row * x->row_from)
    x->row *= dims[--x->rank].n;
  x->stretch = (x->row - 1) * x->row_to + (int64_t)x->bytes;
  x->rows = 1;
  for (uint32_t d = 0; d < x->rank; d++) x->rows *= dims[d].n;
  x->grain = interp_max(1, (1 << 17) / interp_max(1, x->total / x->rows));
}

/* Gives how many elements of the operand stay. Dimensions of one element are dropped: where that lies is in x->to and
 * x->from. */
static int64_t pad_plan_dims(const ir_op *op, int64_t bytes, pad_data *x, pad_kept *dims) {
  const ir_type *t = op->type, *operand = ir_operand_type(op, 0);
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PADDING);
  int64_t to[IR_MAX_RANK], from[IR_MAX_RANK], kept = 1;
  cpu_move_strides(t, to);
  cpu_move_strides(operand, from);
  for (uint32_t d = 0; d < t->rank; d++) {
    pad_side s = pad_side_of(a->v.padding->v[d], operand->dims[d], t->dims[d]);
    x->to += s.at * to[d] * bytes;
    x->from += s.first * from[d] * bytes;
    kept *= s.n;
    if (s.n > 1) dims[x->rank++] = (pad_kept){s.n, to[d] * s.step * bytes, from[d] * bytes};
  }
  return kept;
}

/* Operands of another type than the result's are left to the interpreter. */
int cpu_prepare_pad(cpu_prepare_run *x) {
  const ir_type *t = x->op->type, *operand = ir_operand_type(x->op, 0);
  pad_data *data = BASE_NEW(x->arena, pad_data);
  pad_kept *dims = BASE_ARRAY(x->arena, pad_kept, (size_t)t->rank + 1);
  if (!data || !dims) return base_oom(x->err, "a padding");
  if (operand->dtype != t->dtype || ir_operand_type(x->op, 1)->dtype != t->dtype) return 0;
  data->bytes = base_dtype_bytes(t->dtype);
  data->total = t->count * (int64_t)data->bytes;
  if (pad_plan_dims(x->op, (int64_t)data->bytes, data, dims) > 0) pad_merge(data, dims);
  data->dims = dims;
  x->out->name = "pad";
  x->data = data;
  x->out->work = (uint64_t)t->count;
  x->out->stoppable = true;
  x->code = pad_run_step;
  return 0;
}
