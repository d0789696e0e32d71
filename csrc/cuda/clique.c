/* Who makes NCCL's communicators: for a group within one process its first member for all, by ncclCommInitAll; among
 * several processes each member its own, with an id that the first one has sent to all through the network of the
 * processes. They are kept with the run's communicator, so that runs at the same time have their own. One that was
 * aborted is never used again: the group makes another one in the next run.
 *
 * Processes don't see one another's lists. So before each collective all members say which clique they have, by a
 * number; unless all say the same, they make another one. This is also how everybody is known to come. */
#include "clique.h"

#include <stdlib.h>
#include <time.h>

#include "../base/file.h"
#include "collective.h"

/* Those of a communicator. */
typedef struct cu_cliques {
  rt_attachment base;
  base_alloc alloc;
  pthread_mutex_t lock; /* of the list: cliques are only added, at its front */
  cuda_clique *first;
} cu_cliques;

/* --- NCCL --- */

/* Once for the device. */
bool cuda_nccl_find(cuda_device *d) {
  const char *path = getenv("XLAC_NCCL");
  if (path && strcmp(path, "0") == 0) return false;
  pthread_mutex_lock(&d->lock);
  if (!d->driver.nccl.handle && !d->driver.nccl.missing[0]) cuda_driver_find_nccl(&d->driver);
  bool there = d->driver.nccl.handle != NULL;
  pthread_mutex_unlock(&d->lock);
  return there;
}

int cuda_nccl_check(cuda_run *run, const plan_step *s, cuda_nccl_result result) {
  const char *text = NULL;
  if (result == 0 || result == CUDA_NCCL_BUSY) return 0;
  text = run->device->driver.ncclGetErrorString(result);
  return interp_fail(&run->ctx, s->op, XLAC_E_DEVICE, "NCCL says %s (%d)", text ? text : "an unknown error", result);
}

int cuda_nccl_settle(cuda_run *run, const plan_step *s, cuda_nccl comm) {
  const interp_options *o = &run->ctx.options;
  const struct timespec little = {.tv_nsec = 50000};
  cuda_nccl_result said = CUDA_NCCL_BUSY;
  for (uint32_t turn = 1; said == CUDA_NCCL_BUSY; turn++) {
    TRY(cuda_nccl_check(run, s, run->device->driver.ncclCommGetAsyncError(comm, &said)));
    if (said != CUDA_NCCL_BUSY) break;
    if (turn % 64 == 0 && o->interrupted && o->interrupted(o->interrupt_ctx)) return base_interrupted(run->ctx.err);
    if (turn > 64) nanosleep(&little, NULL);
  }
  return cuda_nccl_check(run, s, said);
}

/* --- cliques --- */

/* Entered. What a member hasn't aborted is destroyed when nothing is in flight, else given up. */
static void cu_clique_end(base_alloc alloc, cuda_clique *x) {
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
  for (cuda_clique *x = all->first, *next; x; x = next) next = x->next, cu_clique_end(all->alloc, x);
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

static bool cu_clique_is_of(const cuda_clique *x, const rt_group *group, uint32_t place) {
  return x->place == place && x->n == group->n && memcmp(x->members, group->members, x->n * sizeof *x->members) == 0;
}

static cuda_clique *cu_clique_find(cu_cliques *all, const rt_group *group, uint32_t place) {
  pthread_mutex_lock(&all->lock);
  cuda_clique *x = all->first;
  while (x && (atomic_load(&x->dead) || !cu_clique_is_of(x, group, place))) x = x->next;
  pthread_mutex_unlock(&all->lock);
  return x;
}

/* Those of this group that were aborted, which nobody uses any more, are ended. The group is met, or the place ours. */
static void cu_clique_sweep(cu_cliques *all, const rt_group *group, uint32_t place) {
  cuda_clique *ended = NULL;
  pthread_mutex_lock(&all->lock);
  for (cuda_clique **at = &all->first, *x; (x = *at);) {
    if (!atomic_load(&x->dead) || !cu_clique_is_of(x, group, place)) {
      at = &x->next;
      continue;
    }
    *at = x->next;
    x->next = ended;
    ended = x;
  }
  pthread_mutex_unlock(&all->lock);
  for (cuda_clique *x = ended, *next; x; x = next) next = x->next, cu_clique_end(all->alloc, x);
}

/* Of nobody's devices yet. NULL: no memory. */
static cuda_clique *cu_clique_new(cu_cliques *all, const rt_group *group, uint32_t place) {
  size_t each = sizeof(cuda_device *) + sizeof(cuda_nccl) + sizeof(uint32_t);
  cuda_clique *x = base_malloc(all->alloc, sizeof *x + group->n * each);
  if (!x) return NULL;
  memset(x, 0, sizeof *x + group->n * each);
  x->n = group->n;
  x->place = place;
  x->devices = (cuda_device **)(void *)(x + 1);
  x->comms = (cuda_nccl *)(void *)(x->devices + x->n);
  x->members = (uint32_t *)(void *)(x->comms + x->n);
  memcpy(x->members, group->members, x->n * sizeof *x->members);
  return x;
}

static void cu_clique_set(cuda_clique *x, uint32_t place, cuda_device *d) {
  assert(place < x->n && !x->devices[place]);
  x->devices[place] = d;
  if (d) rt_device_retain(&d->base.device);
}

/* It is there for all, unless status says that there was an error. */
static int cu_clique_keep(cu_cliques *all, cuda_clique *x, int status) {
  if (status) {
    atomic_store(&x->dead, true);
    cu_clique_end(all->alloc, x);
    return status;
  }
  pthread_mutex_lock(&all->lock);
  x->next = all->first;
  all->first = x;
  pthread_mutex_unlock(&all->lock);
  return 0;
}

/* --- within one process --- */

int cuda_meet(cuda_run *run, cuda_meeting *m, const void *item) {
  return rt_communicator_meet(m->communicator, &m->us, m->what, m->group, item, m->items, &m->record, run->ctx.err);
}

int cuda_part(cuda_run *run, cuda_meeting *m, int status) {
  if (status && run->ctx.err) rt_communicator_fail(m->communicator, m->us.number, run->ctx.err);
  int parted = rt_communicator_part(m->communicator, &m->us, m->record, status ? NULL : run->ctx.err);
  return status ? status : parted;
}

/* NCCL wants each member on a GPU of its own, and must be there for all. */
static bool cu_clique_is_apart(const cuda_clique *x) {
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
  cuda_clique *x = cu_clique_new(all, group, UINT32_MAX);
  int *numbers = BASE_ARRAY(&run->arena, int, group->n), status = 0;
  if (!x || !numbers) return base_free(all->alloc, x), base_oom(run->ctx.err, "a collective");
  for (uint32_t i = 0; i < x->n; i++) {
    cu_clique_set(x, i, (cuda_device *)(uintptr_t)devices[i]);
    numbers[i] = devices[i] ? x->devices[i]->device : 0;
  }
  cu_clique_sweep(all, group, UINT32_MAX);
  if (cu_clique_is_apart(x))
    status = cuda_nccl_check(run, s, run->device->driver.ncclCommInitAll(x->comms, (int)x->n, numbers));
  if (status) memset(x->comms, 0, x->n * sizeof *x->comms);
  return cu_clique_keep(all, x, status);
}

int cuda_clique_of(cuda_run *run, const plan_step *s, cuda_meeting *m, cuda_clique **out) {
  cu_cliques *all = cu_cliques_of(m->communicator, run->exe->alloc);
  if (!all) return base_oom(run->ctx.err, "a collective");
  *out = cu_clique_find(all, m->group, UINT32_MAX);
  if (*out) return 0;
  TRY(cuda_meet(run, m, cuda_nccl_find(run->device) ? run->device : NULL));
  int status = m->group->place == 0 ? cu_clique_make(run, s, all, m->group, m->items) : 0;
  TRY(cuda_part(run, m, status));
  *out = cu_clique_find(all, m->group, UINT32_MAX);
  return *out ? 0 : base_interrupted(run->ctx.err);
}

/* --- across processes --- */

/* What a member says of itself, as bytes. */
typedef struct cu_rank {
  unsigned char there, gpu[16]; /* NCCL is; which GPU it is, of all machines' */
  cuda_nccl_id id;              /* the first member's, for all */
} cu_rank;

/* Everybody's bytes, by place, as a collective of the host's. No program's has its channel. */
static int cu_ranks_tell(cuda_run *run, const cuda_meeting *m, const void *ours, size_t bytes, void *all) {
  const rt_extent extent = {1, (int64_t)bytes, 1};
  const uint64_t number = (uint64_t)m->what->channel * 8 + m->what->kind;
  const rt_collective what = {
      .kind = RT_ALL_GATHER, .channel = (int64_t)~number, .name = m->what->name, .n = 1, .extents = &extent};
  return rt_communicator_run(m->communicator, &m->us, &what, m->group, &ours, &all, NULL, NULL, run->ctx.err);
}

static bool cu_ranks_are_apart(const cu_rank *ranks, uint32_t n) {
  bool apart = true;
  for (uint32_t i = 0; i < n && apart; i++) {
    apart = ranks[i].there;
    for (uint32_t k = 0; k < i && apart; k++) apart = memcmp(ranks[i].gpu, ranks[k].gpu, sizeof ranks[k].gpu) != 0;
  }
  return apart;
}

static int cu_rank_describe(cuda_run *run, const plan_step *s, bool first, cu_rank *out) {
  const cuda_driver *d = &run->device->driver;
  memset(out, 0, sizeof *out);
  out->there = cuda_nccl_find(run->device);
  if (!out->there) return 0;
  TRY(cuda_check(d, d->cuDeviceGetUuid_v2(out->gpu, run->device->device), "asking which GPU it is", run->ctx.err));
  return first ? cuda_nccl_check(run, s, d->ncclGetUniqueId(&out->id)) : 0;
}

/* In the background: else nobody could give up waiting for a process that has died. */
static int cu_rank_join(cuda_run *run, const plan_step *s, const cuda_nccl_id *id, cuda_clique *x) {
  const cuda_nccl_config how = {sizeof how, CUDA_NCCL_MAGIC, CUDA_NCCL_VERSION, 0, INT32_MIN};
  cuda_nccl *comm = &x->comms[x->place];
  TRY(cuda_nccl_check(run, s, run->device->driver.ncclCommInitRankConfig(comm, (int)x->n, *id, (int)x->place, &how)));
  return cuda_nccl_settle(run, s, *comm);
}

/* By every member for itself. Without NCCL for all of them it is a clique all the same, with the same number. */
static int cu_clique_join(cuda_run *run, const plan_step *s, const cuda_meeting *m, cu_cliques *all,
                          cuda_clique **out) {
  const uint32_t n = m->group->n, place = m->group->place;
  cu_rank ours, *ranks = BASE_ARRAY(&run->arena, cu_rank, n);
  if (!ranks) return base_oom(run->ctx.err, "a collective");
  TRY(cu_rank_describe(run, s, place == 0, &ours));
  TRY(cu_ranks_tell(run, m, &ours, sizeof ours, ranks));
  cuda_clique *x = cu_clique_new(all, m->group, place);
  if (!x) return base_oom(run->ctx.err, "a collective");
  x->number = base_sum_of((base_sum){0, 0}, &ranks[0].id, sizeof ranks[0].id).a | 1;
  cu_clique_set(x, place, run->device);
  cu_clique_sweep(all, m->group, place);
  *out = x;
  return cu_clique_keep(all, x, cu_ranks_are_apart(ranks, n) ? cu_rank_join(run, s, &ranks[0].id, x) : 0);
}

int cuda_clique_across(cuda_run *run, const plan_step *s, const cuda_meeting *m, cuda_clique **out) {
  const uint32_t n = m->group->n, place = m->group->place;
  cu_cliques *all = cu_cliques_of(m->communicator, run->exe->alloc);
  uint64_t *numbers = BASE_ARRAY(&run->arena, uint64_t, n);
  if (!all || !numbers) return base_oom(run->ctx.err, "a collective");
  cuda_clique *x = cu_clique_find(all, m->group, place);
  const uint64_t ours = x ? x->number : 0;
  bool same = x != NULL;
  TRY(cu_ranks_tell(run, m, &ours, sizeof ours, numbers));
  for (uint32_t i = 0; i < n; i++) same = same && numbers[i] == ours;
  *out = x;
  if (same) return 0;
  if (x) atomic_store(&x->dead, true);
  return cu_clique_join(run, s, m, all, out);
}

/* --- */

void cuda_collectives_abort(cuda_run *run) {
  const interp_options *o = &run->ctx.options;
  const uint32_t us = rt_participant_number(o->communicator, o->replica, o->partition);
  cu_cliques *all = (cu_cliques *)atomic_load(&o->communicator->attachment);
  assert(all && run->n_collectives);
  run->meets = false;
  pthread_mutex_lock(&all->lock);
  for (cuda_clique *x = all->first; x; x = x->next)
    for (uint32_t i = 0; i < x->n; i++) {
      if (x->members[i] != us || !x->comms[i]) continue;
      atomic_store(&x->dead, true);
      run->device->driver.ncclCommAbort(x->comms[i]);
      x->comms[i] = NULL;
    }
  pthread_mutex_unlock(&all->lock);
}
