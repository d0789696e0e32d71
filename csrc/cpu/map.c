/* map: a computation on scalars for each place of its arrays, in lanes. */
#include "body_share.h"

enum { MAPR_RANGE = 1 << 13, MAPR_POLL = 1 << 16 };

typedef struct mapr_data {
  const cpu_body *body;
  cpu_share share; /* of elements */
} mapr_data;

typedef struct mapr_work {
  const mapr_data *x;
  const cpu_routine_run *r;
} mapr_work;

static void mapr_range(void *ctx, size_t begin, size_t end) {
  const mapr_work *w = ctx;
  const cpu_body *b = w->x->body;
  const void *few[16], **in = few;
  cpu_body_lanes lanes;
  if (b->n_params > 16) in = __builtin_alloca(b->n_params * sizeof *in);
  cpu_body_lanes_begin(&lanes, b, cpu_share_memory(&w->x->share, w->r->scratch, begin));
  for (int64_t at = (int64_t)begin; at < (int64_t)end && !base_pool_stopping(w->r->run->exe->pool); at += MAPR_POLL) {
    void *out = (char *)w->r->out[0] + at * b->values[b->outs[0]].bytes;
    for (uint32_t i = 0; i < b->n_params; i++) in[i] = (const char *)w->r->in[i] + at * b->values[i].bytes;
    cpu_body_lanes_run(&lanes, interp_min(MAPR_POLL, (int64_t)end - at), in, &out);
  }
}

static int mapr_run(const cpu_routine_run *r) {
  mapr_work w = {r->data, r};
  if (w.x->share.units) cpu_share_run(&w.x->share, r->run->exe->pool, mapr_range, &w);
  return 0;
}

static bool mapr_types(const ir_op *op, const cpu_body *b) {
  if (b->n_params != op->n_operands || b->n_params > 256 || b->n_outs != 1 || !ir_is_tensor(op->type)) return false;
  for (uint32_t i = 0; i < b->n_params; i++)
    if (ir_operand_type(op, i)->dtype != b->values[i].dtype) return false;
  return cpu_body_out_dtype(b, 0) == op->type->dtype;
}

int cpu_prepare_map(cpu_prepare_run *x) {
  const cpu_body *body = NULL;
  TRY(cpu_body_make(x->op->called[0], x->arena, &body, x->err));
  if (!body || !mapr_types(x->op, body)) return 0;
  mapr_data *data = BASE_NEW(x->arena, mapr_data);
  if (!data) return base_oom(x->err, "a map");
  data->body = body;
  x->out->scratch_bytes = cpu_share_make(&data->share, x->op->type->count, MAPR_RANGE, (int64_t)body->lanes_bytes);
  x->out->name = "map";
  x->out->data = data;
  x->out->work = (uint64_t)x->op->type->count * (body->n_ops + 1);
  x->out->stoppable = true;
  x->code = mapr_run;
  return 0;
}
