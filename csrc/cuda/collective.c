/* Collectives by NCCL. Members meet on the host before each one, so that everybody is known to come before anything is
 * enqueued: a program that would wait for ever is an error there, as on the CPU. What is enqueued then waits for the
 * others on the GPU, while the host goes on.
 *
 * A failure within one process is known to all before anything else is enqueued; of another process one hears while
 * one waits.
 *
 * NCCL takes the parts of members one after another. Where rows of all members lie side by side instead, they are
 * brought into that order, and out of it, by copies of rows.
 * Errors: a failure ends the run of all; who waits on the GPU for somebody who failed aborts. Source: NCCL's
 * documentation of its API and of error handling. */
#include "collective.h"

#include "../interp/parallel/collective_form.h"
#include "clique.h"

/* ncclDataType_t, ncclRedOp_t */
enum {
  CU_NCCL_S8,
  CU_NCCL_U8,
  CU_NCCL_S32,
  CU_NCCL_U32,
  CU_NCCL_S64,
  CU_NCCL_U64,
  CU_NCCL_F16,
  CU_NCCL_F32,
  CU_NCCL_F64,
  CU_NCCL_BF16
};
enum { CU_NCCL_SUM, CU_NCCL_PRODUCT, CU_NCCL_MAXIMUM, CU_NCCL_MINIMUM };

#define CU_COLLECTIVE_PITCH INT32_MAX /* bytes from row to row that any GPU copies by */

struct cuda_collective {
  interp_collective_form form;
  int type, reducer; /* of reductions; what is moved is bytes */
  uint32_t parts;    /* of a complex number */
};

/* --- what NCCL is asked for --- */

static int cu_collective_type(base_dtype t, uint32_t *parts) {
  *parts = t == XLAC_C64 || t == XLAC_C128 ? 2 : 1;
  switch (t) {
    case XLAC_S8:
      return CU_NCCL_S8;
    case XLAC_PRED:
    case XLAC_U8:
      return CU_NCCL_U8;
    case XLAC_S32:
      return CU_NCCL_S32;
    case XLAC_U32:
      return CU_NCCL_U32;
    case XLAC_S64:
      return CU_NCCL_S64;
    case XLAC_U64:
      return CU_NCCL_U64;
    case XLAC_F16:
      return CU_NCCL_F16;
    case XLAC_BF16:
      return CU_NCCL_BF16;
    case XLAC_F32:
    case XLAC_C64:
      return CU_NCCL_F32;
    case XLAC_F64:
    case XLAC_C128:
      return CU_NCCL_F64;
    default:
      return -1;
  }
}

/* Of a computation of two scalars that is one op. */
static int cu_collective_reducer(const ir_computation *c) {
  const ir_op *root = ir_combiner(c);
  if (!root) return -1;
  base_dtype t = (base_dtype)root->type->dtype;
  bool pred = t == XLAC_PRED, exact = base_dtype_is_integer(t);
  switch (root->opcode) {
    case IR_OP_ADD:
      return pred ? CU_NCCL_MAXIMUM : CU_NCCL_SUM;
    case IR_OP_MULTIPLY:
      return pred ? CU_NCCL_MINIMUM : base_dtype_is_complex(t) ? -1 : CU_NCCL_PRODUCT;
    case IR_OP_MAXIMUM:
      return pred || exact ? CU_NCCL_MAXIMUM : -1;
    case IR_OP_MINIMUM:
      return pred || exact ? CU_NCCL_MINIMUM : -1;
    case IR_OP_OR:
      return pred ? CU_NCCL_MAXIMUM : -1;
    case IR_OP_AND:
      return pred ? CU_NCCL_MINIMUM : -1;
    default:
      return -1;
  }
}

static bool cu_collective_cut(rt_collective_kind kind) {
  return kind == RT_REDUCE_SCATTER || kind == RT_ALL_GATHER || kind == RT_ALL_TO_ALL;
}

/* Of one type for all arrays, which NCCL has; rows near enough to be copied. */
static bool cu_collective_fits(const ir_op *op, cuda_collective *c) {
  const rt_collective *what = &c->form.what;
  bool reduces = what->kind == RT_ALL_REDUCE || what->kind == RT_REDUCE_SCATTER;
  assert(what->n <= op->n_operands);
  if (!c->form.groups || (reduces && op->n_called != 1)) return false;
  c->reducer = reduces ? cu_collective_reducer(op->called[0]) : 0;
  for (uint32_t k = 0; k < what->n; k++) {
    const rt_extent *e = &what->extents[k];
    base_dtype t = (base_dtype)ir_operand_type(op, k)->dtype;
    int type = reduces ? cu_collective_type(t, &c->parts) : CU_NCCL_U8;
    if (type < 0 || (k && type != c->type)) return false;
    if (reduces && t != (base_dtype)op->called[0]->params[0]->type->dtype) return false;
    c->type = type;
    if (cu_collective_cut(what->kind) && e->outer > 1 &&
        e->inner > CU_COLLECTIVE_PITCH / ((int64_t)e->bytes * c->form.participants))
      return false;
  }
  return c->reducer >= 0;
}

int cuda_collective_make(cuda_executable *exe, const ir_op *op, const cuda_collective **out, xlac_error *err) {
  cuda_collective c = {.parts = 1};
  bool known = false;
  *out = NULL;
  if (!ir_opcode_has(op->opcode, IR_COLLECTIVE)) return 0;
  TRY(interp_collective_form_of(op, &exe->arena, &c.form, &known, err));
  if (!known || !cu_collective_fits(op, &c)) return 0;
  *out = base_arena_memdup(&exe->arena, &c, sizeof c);
  return *out ? 0 : base_oom(err, "a collective");
}

void cuda_collective_put(const cuda_executable *exe, const cuda_collective *c, base_text *out) {
  const cuda_library *nccl = &exe->device->driver.nccl;
  int version = 0;
  (void)c;
  if (cuda_nccl_find(exe->device) && exe->device->driver.ncclGetVersion(&version) == 0)
    base_putf(out, "by NCCL %d.%d.%d between GPUs", version / 10000, version / 100 % 100, version % 100);
  else
    base_putf(out, "the interpreter's, by way of the host: no NCCL, with which GPUs exchange directly; %s%.700s",
              nccl->missing[0] ? "tried " : "XLAC_NCCL is 0", nccl->missing);
}

/* --- one call --- */

typedef struct cu_collective_call {
  cuda_run *run;
  const plan_step *s;
  const cuda_collective *c;
  const rt_group *group;
  cuda_nccl comm;
  const cuda_driver *d;
  const cuda_address *in, *out; /* by array */
  cuda_address *from, *to;      /* the same, or memory of its own where members' parts lie one after another */
} cu_collective_call;

static int cu_collective_cuda(const cu_collective_call *x, cuda_result result) {
  return cuda_check(x->d, result, "copying for a collective", x->run->ctx.err);
}

static int64_t cu_collective_bytes(const rt_extent *e) {
  return e->outer * e->inner * e->bytes;
}

/* Between rows of all members side by side, and the members' parts one after another. */
static int cu_collective_order(const cu_collective_call *x, const rt_extent *e, cuda_address rows, cuda_address parts,
                               bool in) {
  const size_t row = (size_t)(e->inner * e->bytes);
  for (uint32_t i = 0; i < x->group->n; i++) {
    const cuda_rows_side side = {.memory = CUDA_MEMORY_DEVICE, .device = rows + i * row, .pitch = x->group->n * row};
    const cuda_rows_side part = {
        .memory = CUDA_MEMORY_DEVICE, .device = parts + i * (uint64_t)cu_collective_bytes(e), .pitch = row};
    const cuda_copy_rows what = {in ? side : part, in ? part : side, row, (size_t)e->outer};
    TRY(cu_collective_cuda(x, x->d->cuMemcpy2DAsync_v2(&what, x->run->stream)));
  }
  return 0;
}

/* Memory for what has to be in another order, and what comes from the op's operands in it. */
static int cu_collective_before(const cu_collective_call *x, uint32_t k) {
  const rt_collective_kind kind = x->c->form.what.kind;
  const rt_extent *e = &x->c->form.what.extents[k];
  const size_t bytes = (size_t)cu_collective_bytes(e) * x->group->n;
  const bool cut = cu_collective_cut(kind) && e->outer > 1 && bytes > 0 && x->group->n > 1;
  x->from[k] = x->in[k];
  x->to[k] = x->out[k];
  if (cut && kind != RT_ALL_GATHER) {
    x->from[k] = 0;
    TRY(cuda_take(x->run->device, bytes, x->run->stream, &x->from[k], x->run->ctx.err));
    TRY(cu_collective_order(x, e, x->in[k], x->from[k], true));
  }
  if (cut && kind != RT_REDUCE_SCATTER) {
    x->to[k] = 0;
    TRY(cuda_take(x->run->device, bytes, x->run->stream, &x->to[k], x->run->ctx.err));
  }
  bool zeros = kind == RT_PERMUTE && x->group->sources[x->group->place] == UINT32_MAX && bytes > 0;
  return zeros ? cu_collective_cuda(x,
                                    x->d->cuMemsetD8Async(x->out[k], 0, (size_t)cu_collective_bytes(e), x->run->stream))
               : 0;
}

static int cu_collective_after(const cu_collective_call *x, uint32_t k) {
  if (x->to[k] == x->out[k]) return 0;
  return cu_collective_order(x, &x->c->form.what.extents[k], x->out[k], x->to[k], false);
}

static void cu_collective_give(const cu_collective_call *x, uint32_t k) {
  if (x->from[k] != x->in[k]) cuda_give(x->run->device, x->from[k], x->run->stream);
  if (x->to[k] != x->out[k]) cuda_give(x->run->device, x->to[k], x->run->stream);
}

/* Within a group nothing is waited for. */
static cuda_nccl_result cu_collective_begun(cuda_nccl_result result) {
  return result == CUDA_NCCL_BUSY ? 0 : result;
}

static cuda_nccl_result cu_collective_send(const cu_collective_call *x, cuda_address from, size_t n, uint32_t peer) {
  return cu_collective_begun(x->d->ncclSend(from, n, CU_NCCL_U8, (int)peer, x->comm, x->run->stream));
}

static cuda_nccl_result cu_collective_receive(const cu_collective_call *x, cuda_address to, size_t n, uint32_t peer) {
  return cu_collective_begun(x->d->ncclRecv(to, n, CU_NCCL_U8, (int)peer, x->comm, x->run->stream));
}

/* Part i for member i, and from him. */
static cuda_nccl_result cu_collective_exchange(const cu_collective_call *x, uint32_t k, size_t bytes) {
  cuda_nccl_result result = 0;
  assert(x->group->place < x->group->n);
  for (uint32_t i = 0; i < x->group->n && result == 0; i++) {
    result = cu_collective_send(x, x->from[k] + i * bytes, bytes, i);
    if (result == 0) result = cu_collective_receive(x, x->to[k] + i * bytes, bytes, i);
  }
  return result;
}

static cuda_nccl_result cu_collective_permute(const cu_collective_call *x, uint32_t k, size_t bytes) {
  const rt_group *g = x->group;
  cuda_nccl_result result = 0;
  assert(g->sources && g->place < g->n);
  for (uint32_t i = 0; i < g->n && result == 0; i++)
    if (g->sources[i] == g->place) result = cu_collective_send(x, x->from[k], bytes, i);
  if (result == 0 && g->sources[g->place] != UINT32_MAX)
    result = cu_collective_receive(x, x->to[k], bytes, g->sources[g->place]);
  return result;
}

static cuda_nccl_result cu_collective_array(const cu_collective_call *x, uint32_t k) {
  const cuda_collective *c = x->c;
  const rt_extent *e = &c->form.what.extents[k];
  const size_t bytes = (size_t)cu_collective_bytes(e), n = bytes / e->bytes * c->parts;
  const cuda_address from = x->from[k], to = x->to[k];
  const cuda_stream stream = x->run->stream;
  cuda_nccl_result result = 0;
  assert(k < c->form.what.n && e->bytes > 0);
  if (bytes == 0) return 0;
  switch (c->form.what.kind) {
    case RT_ALL_REDUCE:
      return x->d->ncclAllReduce(from, to, n, c->type, c->reducer, x->comm, stream);
    case RT_REDUCE_SCATTER:
      return x->d->ncclReduceScatter(from, to, n, c->type, c->reducer, x->comm, stream);
    case RT_ALL_GATHER:
      return x->d->ncclAllGather(from, to, bytes, CU_NCCL_U8, x->comm, stream);
    case RT_BROADCAST:
      return x->d->ncclBroadcast(from, to, bytes, CU_NCCL_U8, 0, x->comm, stream);
    case RT_ALL_TO_ALL:
      return cu_collective_exchange(x, k, bytes);
    case RT_ALL_TO_ALL_EACH:
      result = cu_collective_send(x, from, bytes, k);
      return result ? result : cu_collective_receive(x, to, bytes, k);
    case RT_PERMUTE:
      return cu_collective_permute(x, k, bytes);
  }
  return result;
}

/* All arrays as one launch. A group that is begun is ended, whatever failed in it. */
static int cu_collective_launch(const cu_collective_call *x) {
  assert(x->comm && x->group->n > 0);
  TRY(cuda_nccl_check(x->run, x->s, x->d->ncclGroupStart()));
  cuda_nccl_result result = 0;
  for (uint32_t k = 0; k < x->c->form.what.n && result == 0; k++)
    result = cu_collective_begun(cu_collective_array(x, k));
  x->run->meets = true;
  x->run->n_collectives++;
  cuda_nccl_result ended = x->d->ncclGroupEnd();
  TRY(cuda_nccl_check(x->run, x->s, result ? result : ended));
  return ended == CUDA_NCCL_BUSY ? cuda_nccl_settle(x->run, x->s, x->comm) : 0;
}

static int cu_collective_enqueue(const cu_collective_call *x) {
  const uint32_t n = x->c->form.what.n;
  uint32_t made = 0;
  int status = 0;
  while (status == 0 && made < n) status = cu_collective_before(x, made++);
  if (status == 0) status = cu_collective_launch(x);
  for (uint32_t k = 0; status == 0 && k < n; k++) status = cu_collective_after(x, k);
  for (uint32_t k = 0; k < made; k++) cu_collective_give(x, k);
  return status;
}

static int cu_collective_together(cuda_run *run, cu_collective_call *x, cuda_meeting *m) {
  TRY(cuda_meet(run, m, NULL));
  return cuda_part(run, m, cu_collective_enqueue(x));
}

static int cu_collective_lists(cuda_run *run, cu_collective_call *x, cuda_meeting *m, const cuda_address *addresses) {
  const uint32_t n = x->c->form.what.n;
  cuda_address *all = BASE_ARRAY(&run->arena, cuda_address, 4 * (size_t)n);
  m->items = BASE_ARRAY(&run->arena, const void *, x->group->n);
  if (!all || !m->items) return base_oom(run->ctx.err, "a collective");
  assert(x->s->n_in == n && x->s->n_out == n);
  for (uint32_t k = 0; k < n; k++) {
    all[k] = addresses[x->s->in[k]];
    all[n + k] = addresses[x->s->out[k]];
  }
  x->in = all;
  x->out = all + n;
  x->from = all + 2 * (size_t)n;
  x->to = all + 3 * (size_t)n;
  return 0;
}

int cuda_collective_run(cuda_run *run, const plan_program *p, const plan_step *s, const cuda_collective *c,
                        const cuda_address *addresses) {
  const interp_options *o = &run->ctx.options;
  rt_communicator *all = o->communicator;
  cuda_clique *clique = NULL;
  bool ours = all && all->replicas * all->partitions == c->form.participants;
  uint32_t number = ours ? rt_participant_number(all, o->replica, o->partition) : 0;
  const rt_group *group = &c->form.groups[number];
  if (!ours || group->n == 0) return cuda_run_eval(run, p, s, addresses);
  cu_collective_call x = {.run = run, .s = s, .c = c, .group = group, .d = &run->device->driver};
  cuda_meeting m = {all, {number, o->interrupted, o->interrupt_ctx}, &c->form.what, group, NULL, NULL};
  TRY(cu_collective_lists(run, &x, &m, addresses));
  const bool across = all->processes > 1;
  TRY(across ? cuda_clique_across(run, s, &m, &clique) : cuda_clique_of(run, s, &m, &clique));
  x.comm = clique->comms[group->place];
  if (!x.comm) return cuda_run_eval(run, p, s, addresses);
  return across ? cu_collective_enqueue(&x) : cu_collective_together(run, &x, &m);
}
