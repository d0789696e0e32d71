/* What the host computes: operands are copied to it, results back. The interpreter's evaluators are the reference of
 * every device, so whatever has no kernel is right, and slow; explain("schedule") says what that is. */
#include "../interp/blocks.h"
#include "../interp/sizes.h"
#include "run.h"

/* What goes to and from the host, leaf after leaf. */
typedef struct cu_eval_move {
  cuda_run *run;
  const uint32_t *ids;
  const cuda_address *addresses;
  uint32_t at;
} cu_eval_move;

static int cu_eval_check(cuda_run *run, cuda_result result) {
  return cuda_check(&run->device->driver, result, "copying for a step on the host", run->ctx.err);
}

/* A value of type t with memory of its own, which is being copied from the buffers: there when the stream has been
 * waited for. Depth is that of a type, which is bounded. */
static int cu_eval_fetch(cu_eval_move *x, const ir_type *t, interp_value **out) {
  cuda_run *run = x->run;
  interp_value *v = NULL;
  if (ir_is_token(t) || ir_is_tensor(t)) {
    cuda_address from = x->addresses[x->ids[x->at++]];
    v = ir_is_token(t) ? interp_token(&run->ctx) : interp_array(&run->ctx, (base_dtype)t->dtype, t->rank, t->dims);
    if (!v) return interp_failed(&run->ctx);
    *out = v;
    size_t bytes = ir_is_tensor(t) ? interp_bytes(v) : 0;
    return bytes ? cu_eval_check(run, run->device->driver.cuMemcpyDtoHAsync_v2(v->data, from, bytes, run->stream)) : 0;
  }
  interp_value **parts = base_malloc(run->exe->alloc, (t->n_elements + (size_t)1) * sizeof *parts);
  int status = parts ? 0 : base_oom(run->ctx.err, "an op's operands");
  uint32_t n = 0;
  for (; status == 0 && n < t->n_elements; n++) {
    parts[n] = NULL;
    status = cu_eval_fetch(x, t->elements[n], &parts[n]);
  }
  if (status == 0 && !(*out = interp_tuple(&run->ctx, n, parts))) status = interp_failed(&run->ctx);
  for (uint32_t i = 0; i < n; i++) interp_release(parts[i]);
  base_free(run->exe->alloc, parts);
  return status;
}

/* The reverse: v must stay until the stream has been waited for. */
static int cu_eval_send(cu_eval_move *x, const interp_value *v) {
  if (v->kind == INTERP_TUPLE) {
    for (uint32_t i = 0; i < v->n_elements; i++) TRY(cu_eval_send(x, v->elements[i]));
    return 0;
  }
  cuda_address to = x->addresses[x->ids[x->at++]];
  if (v->kind != INTERP_ARRAY || v->count == 0) return 0;
  return cu_eval_check(x->run,
                       x->run->device->driver.cuMemcpyHtoDAsync_v2(to, v->data, interp_bytes(v), x->run->stream));
}

static int cu_eval_send_all(cuda_run *run, const plan_step *s, const cuda_address *addresses,
                            const interp_value *result) {
  cu_eval_move x = {run, s->out, addresses, 0};
  int status = cu_eval_send(&x, result);
  int waited = cuda_run_settle(run, status ? NULL : run->ctx.err);
  assert(status || x.at == s->n_out);
  return status ? status : waited;
}

/* --- ops --- */

/* What the op gives. */
typedef int cu_eval_fn(cuda_run *run, const plan_step *s, interp_value **operands, interp_value **out);

static int cu_eval_op(cuda_run *run, const plan_step *s, interp_value **operands, interp_value **out) {
  run->ctx.dying = 0;
  TRY(interp_table[s->op->opcode](&run->ctx, s->op, operands, out));
  return interp_check_result(&run->ctx, s->op, *out);
}

/* What the done gives: evaluators of starts give all that HLO's start has. */
static int cu_eval_started(cuda_run *run, const plan_step *s, interp_value **operands, interp_value **out) {
  const ir_op *op = s->op;
  interp_value *all = NULL;
  int status = op->opcode == IR_OP_ASYNC_START ? interp_call(&run->ctx, op->called[0], op->n_operands, operands, &all)
                                               : interp_table[op->opcode](&run->ctx, op, operands, &all);
  if (!status && op->opcode != IR_OP_ASYNC_START) status = interp_check_result(&run->ctx, op, all);
  bool whole = op->opcode == IR_OP_ASYNC_START || op->opcode == IR_OP_ALL_REDUCE_START;
  if (status == 0) *out = interp_retain(whole ? all : all->elements[op->opcode == IR_OP_COPY_START ? 0 : 1]);
  interp_release(all);
  return status;
}

/* Operands come, fn is called, its result goes. */
static int cu_eval_with(cuda_run *run, const plan_step *s, const cuda_address *addresses, cu_eval_fn *fn) {
  uint32_t n = s->op->n_operands, made = 0;
  interp_value **operands = base_malloc(run->exe->alloc, (n + (size_t)1) * sizeof *operands), *result = NULL;
  cu_eval_move x = {run, s->in, addresses, 0};
  int status = operands ? cuda_run_alone(run) : base_oom(run->ctx.err, "an op's operands");
  for (; status == 0 && made < n; made++) {
    operands[made] = NULL;
    status = cu_eval_fetch(&x, ir_operand_type(s->op, made), &operands[made]);
  }
  int waited = cuda_run_settle(run, status ? NULL : run->ctx.err);
  if (status == 0) status = waited;
  if (status == 0) status = fn(run, s, operands, &result);
  if (status == 0) status = cu_eval_send_all(run, s, addresses, result);
  interp_release(result);
  for (uint32_t i = 0; i < made; i++) interp_release(operands[i]);
  base_free(run->exe->alloc, operands);
  run->n_interpreted++;
  return status;
}

int cuda_run_eval(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  (void)p;
  if (!interp_table[s->op->opcode])
    return interp_fail(&run->ctx, s->op, XLAC_E_EVAL, "%s has no evaluator", ir_opcode_text(s->op->opcode));
  return cu_eval_with(run, s, addresses, cu_eval_op);
}

int cuda_run_eval_start(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  (void)p;
  return cu_eval_with(run, s, addresses, cu_eval_started);
}

/* --- kernels --- */

/* One block of the host's for all of the step's arrays. */
typedef struct cu_eval_host {
  char *memory;
  void **arrays; /* inputs, then outputs */
  int64_t *bytes;
} cu_eval_host;

static int cu_eval_lay_out(cuda_run *run, const plan_program *p, const plan_step *s, cu_eval_host *h) {
  uint32_t n = s->n_in + s->n_out;
  size_t all = 64;
  h->arrays = BASE_ARRAY(&run->arena, void *, n + 1u);
  h->bytes = BASE_ARRAY(&run->arena, int64_t, n + 1u);
  if (!h->arrays || !h->bytes) return base_oom(run->ctx.err, "a kernel on the host");
  for (uint32_t i = 0; i < n; i++) {
    h->bytes[i] = p->buffers[i < s->n_in ? s->in[i] : s->out[i - s->n_in]].bytes;
    all += ((size_t)h->bytes[i] + 63) & ~(size_t)63;
  }
  h->memory = base_malloc(run->exe->alloc, all);
  if (!h->memory) return base_oom(run->ctx.err, "a kernel on the host");
  char *at = (char *)(((uintptr_t)h->memory + 63) & ~(uintptr_t)63);
  for (uint32_t i = 0; i < n; i++) {
    h->arrays[i] = at;
    at += ((size_t)h->bytes[i] + 63) & ~(size_t)63;
  }
  return 0;
}

static int cu_eval_kernel(cuda_run *run, const plan_step *s, const cuda_address *addresses, const cu_eval_host *h) {
  const cuda_driver *c = &run->device->driver;
  TRY(cuda_run_alone(run));
  for (uint32_t i = 0; i < s->n_in; i++)
    if (h->bytes[i])
      TRY(cu_eval_check(run,
                        c->cuMemcpyDtoHAsync_v2(h->arrays[i], addresses[s->in[i]], (size_t)h->bytes[i], run->stream)));
  TRY(cuda_run_wait(run));
  TRY(kernel_eval(s->kernel, run->exe->alloc, (const void *const *)h->arrays, h->bytes, h->arrays + s->n_in,
                  h->bytes + s->n_in, run->ctx.err));
  for (uint32_t i = 0; i < s->n_out; i++)
    if (h->bytes[s->n_in + i])
      TRY(cu_eval_check(run, c->cuMemcpyHtoDAsync_v2(addresses[s->out[i]], h->arrays[s->n_in + i],
                                                     (size_t)h->bytes[s->n_in + i], run->stream)));
  return 0;
}

int cuda_run_host_kernel(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_address *addresses) {
  cu_eval_host h = {NULL, NULL, NULL};
  int status = cu_eval_lay_out(run, p, s, &h);
  if (status == 0) status = cu_eval_kernel(run, s, addresses, &h);
  int waited = cuda_run_settle(run, status ? NULL : run->ctx.err);
  base_free(run->exe->alloc, h.memory);
  run->n_interpreted++;
  return status ? status : waited;
}
