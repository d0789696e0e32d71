/* map: a computation on scalars for each element of its arrays, in lanes: `map(x, y), to_apply=f` is f(x[i], y[i])
 * for all i. Operands that are scalars beside arrays
 * are repeated for a block of lanes once, and then read by every block. */
#include "body/body_share.h"

enum { MAPR_RANGE = 1 << 13, MAPR_POLL = 1 << 16 };

typedef struct mapr_data {
  const cpu_body *body;
  cpu_share share;       /* of elements */
  const bool *scalars;   /* by operand: it stands for all places; NULL where none does */
  uint32_t repeats_from; /* in a range's memory: a block of lanes of each such operand */
} mapr_data;

/* One run, as ranges see it. */
typedef struct mapr_work {
  const mapr_data *x;
  const cpu_routine_run *r;
} mapr_work;

/* Of one operand's block; rounded to whole cache lines. */
static int64_t mapr_repeat_bytes(const cpu_body *b) {
  return ((int64_t)b->lanes->lanes * SCALAR_BYTES + 63) & ~INT64_C(63);
}

/* Each scalar, as often as there are lanes. */
static void mapr_repeat(const mapr_work *w, char *memory, const void **in) {
  assert(w->x->scalars && w->x->body->lanes->lanes > 0);
  const cpu_body *b = w->x->body;
  for (uint32_t i = 0; i < b->program->n_params; i++) {
    if (!w->x->scalars[i]) continue;
    vm_fill(b->program->values[i].bytes, w->r->in[i], b->lanes->lanes, memory);
    in[i] = memory;
    memory += mapr_repeat_bytes(b);
  }
}

/* Elements begin .. end, in blocks that are no longer than the time between two looks at whether to stop. */
static void mapr_range(void *ctx, size_t begin, size_t end) {
  const mapr_work *w = ctx;
  const cpu_body *b = w->x->body;
  const bool *scalars = w->x->scalars;
  int64_t block = scalars ? b->lanes->lanes : MAPR_POLL;
  const void *few[16], **in = few;
  char *memory = cpu_share_memory(&w->x->share, w->r->scratch, begin);
  scalar_lanes_run lanes;
  if (b->program->n_params > 16) in = __builtin_alloca(b->program->n_params * sizeof *in);
  scalar_lanes_begin(&lanes, b->lanes, memory);
  if (scalars) mapr_repeat(w, memory + w->x->repeats_from, in);
  for (int64_t at = (int64_t)begin; at < (int64_t)end && !rt_pool_stopping(w->r->run->exe->pool); at += block) {
    void *out = (char *)w->r->out[0] + at * b->program->values[b->program->outs[0]].bytes;
    for (uint32_t i = 0; i < b->program->n_params; i++)
      if (!scalars || !scalars[i]) in[i] = (const char *)w->r->in[i] + at * b->program->values[i].bytes;
    scalar_lanes_go(&lanes, 0, interp_min(block, (int64_t)end - at), in, &out);
  }
}

static int mapr_run(const cpu_routine_run *r) {
  mapr_work w = {r->data, r};
  if (w.x->share.units) cpu_share_run(&w.x->share, r->run->exe->pool, mapr_range, &w);
  return 0;
}

/* Whether the body takes and gives just what the arrays hold: the interpreter converts, this doesn't. */
static bool mapr_types(const ir_op *op, const cpu_body *b) {
  if (b->program->n_params != op->n_operands || b->program->n_params > 256 || b->program->n_outs != 1 ||
      !ir_is_tensor(op->type))
    return false;
  for (uint32_t i = 0; i < b->program->n_params; i++)
    if (ir_operand_type(op, i)->dtype != b->program->values[i].dtype) return false;
  return scalar_out_dtype(b->program, 0) == op->type->dtype;
}

/* Which operands are scalars beside arrays. *n says how many. */
static int mapr_scalars(const cpu_prepare_run *x, uint32_t *n, const bool **out) {
  const ir_op *op = x->op;
  bool *scalars = BASE_ARRAY(x->arena, bool, (size_t)op->n_operands + 1);
  if (!scalars) return base_oom(x->err, "a map");
  *n = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    scalars[i] = ir_operand_type(op, i)->rank != op->type->rank;
    *n += scalars[i];
  }
  *out = *n ? scalars : NULL;
  return 0;
}

/* Left to the interpreter where the computation is not a list of elementwise ops (body/body.h). */
int cpu_prepare_map(cpu_prepare_run *x) {
  const cpu_body *body = NULL;
  TRY(cpu_body_make(x->op->called[0], x->arena, &body, x->err));
  if (!body || !mapr_types(x->op, body)) return 0;
  mapr_data *data = BASE_NEW(x->arena, mapr_data);
  if (!data) return base_oom(x->err, "a map");
  data->body = body;
  uint32_t n_scalars = 0;
  TRY(mapr_scalars(x, &n_scalars, &data->scalars));
  int64_t bytes = ((int64_t)body->lanes->bytes + 63) & ~INT64_C(63);
  data->repeats_from = (uint32_t)bytes;
  bytes += n_scalars * mapr_repeat_bytes(body);
  x->out->scratch_bytes = cpu_share_make(&data->share, x->op->type->count, MAPR_RANGE, bytes);
  x->out->name = "map";
  x->data = data;
  x->out->work = (uint64_t)x->op->type->count * (body->program->n_ops + 1);
  x->out->stoppable = true;
  x->code = mapr_run;
  return 0;
}
