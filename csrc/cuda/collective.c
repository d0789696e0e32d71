/* Collectives by NCCL. Members meet on the host before each one, so that everybody is known to come before anything is
 * enqueued: a program that would wait for ever is an error there, as on the CPU. What is enqueued then waits for the
 * others on the GPU, while the host goes on.
 *
 * NCCL's communicators are made once for each group of participants, by its first member for all, and kept with the
 * run's communicator: runs at the same time have their own. One that was aborted is never used again: the group makes
 * another one in the next run.
 *
 * NCCL takes the parts of members one after another. Where rows of all members lie side by side instead, they are
 * brought into that order, and out of it, by copies of rows.
 * Errors: a failure ends the run of all; who waits on the GPU for somebody who failed aborts. Source: NCCL's
 * documentation of its API and of error handling. */
#include "collective.h"

#include <stdlib.h>

#include "../interp/parallel/collective_form.h"

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
enum { CU_NCCL_BUSY = 7 /* ncclInProgress: no error */ };

#define CU_COLLECTIVE_PITCH INT32_MAX /* bytes from row to row that any GPU copies by */

struct cuda_collective {
  interp_collective_form form;
  int type, reducer; /* of reductions; what is moved is bytes */
  uint32_t parts;    /* of a complex number */
};

/* A group of participants, on these devices. */
typedef struct cu_clique {
  struct cu_clique *next;
  atomic_bool dead;     /* somebody has aborted */
  uint32_t n, *members; /* participants */
  cuda_device **devices;
  cuda_nccl *comms; /* by place, each used by its member alone; all NULL: there is no NCCL for them */
} cu_clique;

/* Those of a communicator. */
typedef struct cu_cliques {
  rt_attachment base;
  base_alloc alloc;
  pthread_mutex_t lock; /* of the list: cliques are only added, at its front */
  cu_clique *first;
} cu_cliques;

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

/* --- NCCL --- */

/* Once for the device. XLAC_NCCL=0: none. */
static bool cu_collective_find(cuda_device *d) {
  const char *path = getenv("XLAC_NCCL");
  if (path && strcmp(path, "0") == 0) return false;
  pthread_mutex_lock(&d->lock);
  if (!d->driver.nccl.handle && !d->driver.nccl.missing[0]) cuda_driver_find_nccl(&d->driver);
  bool there = d->driver.nccl.handle != NULL;
  pthread_mutex_unlock(&d->lock);
  return there;
}

static int cu_collective_check(cuda_run *run, const plan_step *s, cuda_nccl_result result) {
  const char *text = NULL;
  if (result == 0 || result == CU_NCCL_BUSY) return 0;
  text = run->device->driver.ncclGetErrorString(result);
  return interp_fail(&run->ctx, s->op, XLAC_E_DEVICE, "NCCL says %s (%d)", text ? text : "an unknown error", result);
}

void cuda_collective_put(const cuda_executable *exe, const cuda_collective *c, base_text *out) {
  const cuda_library *nccl = &exe->device->driver.nccl;
  int version = 0;
  (void)c;
  if (cu_collective_find(exe->device) && exe->device->driver.ncclGetVersion(&version) == 0)
    base_putf(out, "by NCCL %d.%d.%d between GPUs", version / 10000, version / 100 % 100, version % 100);
  else
    base_putf(out, "the interpreter's, by way of the host: no NCCL, with which GPUs exchange directly; %s%.700s",
              nccl->missing[0] ? "tried " : "XLAC_NCCL is 0", nccl->missing);
}

/* --- cliques --- */

/* Entered. What a member hasn't aborted is destroyed when nothing is in flight, else given up. */
static void cu_clique_end(base_alloc alloc, cu_clique *x) {
  for (uint32_t i = 0; i < x->n; i++) {
    if (!x->devices[i]) continue;
    const cuda_driver *d = &x->devices[i]->driver;
    if (x->comms[i]) (atomic_load(&x->dead) ? d->ncclCommAbort : d->ncclCommDestroy)(x->comms[i]);
    rt_device_release(&x->devices[i]->base.device);
  }
  base_free(alloc, x);
}

static void cu_cliques_destroy(rt_attachment *base) {
  cu_cliques *all = (cu_cliques *)base;
  for (cu_clique *x = all->first, *next; x; x = next) next = x->next, cu_clique_end(all->alloc, x);
  pthread_mutex_destroy(&all->lock);
  base_free(all->alloc, all);
}

/* NULL: no memory. */
static cu_cliques *cu_cliques_of(rt_communicator *c, base_alloc alloc) {
  rt_attachment *there = atomic_load(&c->attachment);
  if (there) return (cu_cliques *)there;
  cu_cliques *own = base_malloc(alloc, sizeof *own);
  if (!own) return NULL;
  *own = (cu_cliques){.base.destroy = cu_cliques_destroy, .alloc = alloc};
  pthread_mutex_init(&own->lock, NULL);
  if (atomic_compare_exchange_strong(&c->attachment, &there, &own->base)) return own;
  cu_cliques_destroy(&own->base);
  return (cu_cliques *)there;
}

static bool cu_clique_is_of(const cu_clique *x, const rt_group *group) {
  return x->n == group->n && memcmp(x->members, group->members, x->n * sizeof *x->members) == 0;
}

static cu_clique *cu_clique_find(cu_cliques *all, const rt_group *group) {
  pthread_mutex_lock(&all->lock);
  cu_clique *x = all->first;
  while (x && (atomic_load(&x->dead) || !cu_clique_is_of(x, group))) x = x->next;
  pthread_mutex_unlock(&all->lock);
  return x;
}

/* Those of this group that were aborted, which nobody uses any more, are ended. The group is met. */
static void cu_clique_sweep(cu_cliques *all, const rt_group *group) {
  cu_clique *ended = NULL;
  pthread_mutex_lock(&all->lock);
  for (cu_clique **at = &all->first, *x; (x = *at);) {
    if (!atomic_load(&x->dead) || !cu_clique_is_of(x, group)) {
      at = &x->next;
      continue;
    }
    *at = x->next;
    x->next = ended;
    ended = x;
  }
  pthread_mutex_unlock(&all->lock);
  for (cu_clique *x = ended, *next; x; x = next) next = x->next, cu_clique_end(all->alloc, x);
}

/* NCCL wants each member on a GPU of its own, and must be there for all. */
static bool cu_clique_is_apart(const cu_clique *x) {
  bool apart = true;
  for (uint32_t i = 0; i < x->n && apart; i++) {
    apart = x->devices[i] != NULL;
    for (uint32_t k = 0; k < i && apart; k++) apart = x->devices[i]->device != x->devices[k]->device;
  }
  return apart;
}

/* By the first member, for all: `devices` by place, NULL of those that have no NCCL. */
static int cu_clique_make(cuda_run *run, const plan_step *s, cu_cliques *all, const rt_group *group,
                          const void *const *devices) {
  size_t each = sizeof(cuda_device *) + sizeof(cuda_nccl) + sizeof(int) + sizeof(uint32_t);
  cu_clique *x = base_malloc(all->alloc, sizeof *x + group->n * each);
  if (!x) return base_oom(run->ctx.err, "a collective");
  memset(x, 0, sizeof *x + group->n * each);
  x->n = group->n;
  x->devices = (cuda_device **)(void *)(x + 1);
  x->comms = (cuda_nccl *)(void *)(x->devices + x->n);
  int *numbers = (int *)(void *)(x->comms + x->n);
  x->members = (uint32_t *)(void *)(numbers + x->n);
  memcpy(x->members, group->members, x->n * sizeof *x->members);
  for (uint32_t i = 0; i < x->n; i++) {
    x->devices[i] = (cuda_device *)(uintptr_t)devices[i];
    if (!x->devices[i]) continue;
    rt_device_retain(&x->devices[i]->base.device);
    numbers[i] = x->devices[i]->device;
  }
  cu_clique_sweep(all, group);
  int status = 0;
  if (cu_clique_is_apart(x))
    status = cu_collective_check(run, s, run->device->driver.ncclCommInitAll(x->comms, (int)x->n, numbers));
  if (status) {
    memset(x->comms, 0, x->n * sizeof *x->comms);
    cu_clique_end(all->alloc, x);
    return status;
  }
  pthread_mutex_lock(&all->lock);
  x->next = all->first;
  all->first = x;
  pthread_mutex_unlock(&all->lock);
  return 0;
}

void cuda_collectives_abort(cuda_run *run) {
  const interp_options *o = &run->ctx.options;
  const uint32_t us = rt_participant_number(o->communicator, o->replica, o->partition);
  cu_cliques *all = (cu_cliques *)atomic_load(&o->communicator->attachment);
  assert(all && run->n_collectives);
  run->meets = false;
  pthread_mutex_lock(&all->lock);
  for (cu_clique *x = all->first; x; x = x->next)
    for (uint32_t i = 0; i < x->n; i++) {
      if (x->members[i] != us || !x->comms[i]) continue;
      atomic_store(&x->dead, true);
      run->device->driver.ncclCommAbort(x->comms[i]);
      x->comms[i] = NULL;
    }
  pthread_mutex_unlock(&all->lock);
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

static cuda_nccl_result cu_collective_send(const cu_collective_call *x, cuda_address from, size_t n, uint32_t peer) {
  return x->d->ncclSend(from, n, CU_NCCL_U8, (int)peer, x->comm, x->run->stream);
}

static cuda_nccl_result cu_collective_receive(const cu_collective_call *x, cuda_address to, size_t n, uint32_t peer) {
  return x->d->ncclRecv(to, n, CU_NCCL_U8, (int)peer, x->comm, x->run->stream);
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
  TRY(cu_collective_check(x->run, x->s, x->d->ncclGroupStart()));
  cuda_nccl_result result = 0;
  for (uint32_t k = 0; k < x->c->form.what.n && result == 0; k++) result = cu_collective_array(x, k);
  x->run->meets = true;
  x->run->n_collectives++;
  cuda_nccl_result ended = x->d->ncclGroupEnd();
  return cu_collective_check(x->run, x->s, result ? result : ended);
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

/* --- meeting --- */

typedef struct cu_collective_meeting {
  rt_communicator *communicator;
  rt_participant us;
  const rt_collective *what;
  const rt_group *group;
  const void **items;
  void *record;
} cu_collective_meeting;

static int cu_collective_meet(cuda_run *run, cu_collective_meeting *m, const void *item) {
  return rt_communicator_meet(m->communicator, &m->us, m->what, m->group, item, m->items, &m->record, run->ctx.err);
}

/* Everybody hears of a failure before he goes on. */
static int cu_collective_part(cuda_run *run, cu_collective_meeting *m, int status) {
  if (status && run->ctx.err) rt_communicator_fail(m->communicator, m->us.number, run->ctx.err);
  int parted = rt_communicator_part(m->communicator, &m->us, m->record, status ? NULL : run->ctx.err);
  return status ? status : parted;
}

/* *out: the group's, which there is from here on. */
static int cu_collective_clique(cuda_run *run, const plan_step *s, cu_collective_meeting *m, cu_clique **out) {
  cu_cliques *all = cu_cliques_of(m->communicator, run->exe->alloc);
  if (!all) return base_oom(run->ctx.err, "a collective");
  *out = cu_clique_find(all, m->group);
  if (*out) return 0;
  TRY(cu_collective_meet(run, m, cu_collective_find(run->device) ? run->device : NULL));
  int status = m->group->place == 0 ? cu_clique_make(run, s, all, m->group, m->items) : 0;
  TRY(cu_collective_part(run, m, status));
  *out = cu_clique_find(all, m->group);
  return *out ? 0 : base_interrupted(run->ctx.err);
}

static int cu_collective_together(cuda_run *run, cu_collective_call *x, cu_collective_meeting *m) {
  TRY(cu_collective_meet(run, m, NULL));
  return cu_collective_part(run, m, cu_collective_enqueue(x));
}

static int cu_collective_lists(cuda_run *run, cu_collective_call *x, cu_collective_meeting *m,
                               const cuda_address *addresses) {
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
  cu_clique *clique = NULL;
  bool ours = all && all->processes == 1 && all->replicas * all->partitions == c->form.participants;
  uint32_t number = ours ? rt_participant_number(all, o->replica, o->partition) : 0;
  const rt_group *group = &c->form.groups[number];
  if (!ours || group->n == 0) return cuda_run_eval(run, p, s, addresses);
  cu_collective_call x = {.run = run, .s = s, .c = c, .group = group, .d = &run->device->driver};
  cu_collective_meeting m = {all, {number, o->interrupted, o->interrupt_ctx}, &c->form.what, group, NULL, NULL};
  TRY(cu_collective_lists(run, &x, &m, addresses));
  TRY(cu_collective_clique(run, s, &m, &clique));
  x.comm = clique->comms[group->place];
  if (!x.comm) return cuda_run_eval(run, p, s, addresses);
  return cu_collective_together(run, &x, &m);
}
