/* A group: one executable in front of the local program's, which a call runs on a thread a device.
 *
 * Threads and their communicator are a team. A call takes a team, or makes one, and leaves it for the next; so calls
 * at the same time have teams of their own. The caller is device 0 of his, asks about interruptions there, and waits
 * for the others afterwards.
 *
 * Arguments whose shards are contiguous are read where they are, and such results written where they go; all others
 * lie in a block that is taken for the call. A shard that several devices have is written by the first. Calls with
 * shards hand each device its own pointers as they are, but for results that several devices have in one memory: the
 * first of them writes there, all others into such a block. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../interp/sizes.h"
#include "../runtime/host.h"
#include "group.h"

enum { GROUP_ALIGN = 64, GROUP_POLL_NS = 50000000, GROUP_STACK = 8 << 20 };
/* Elements that a device goes through before each time that it is woken, where the caller does not say: less is done by
 * the caller for all of them, in turns, sooner than threads are woken. */
enum { GROUP_LITTLE = 1 << 14 };
/* More is done in turns, too, on as many threads as there are CPUs, where these are fewer than devices: what devices
 * read together is then packed, gathered, added up and computed once. So many elements at most before each collective,
 * unless all CPUs have as many devices, or else some have nothing to do while others run their last. */
enum { GROUP_SOON = 1 << 21 };

typedef struct group_seat {
  group_team *team;
  uint32_t device; /* of the group */
  uint32_t number; /* among those of this process */
  pthread_t thread;
  void **arguments, **results; /* the local program's */
  bool *unread;                /* by result, as rt_turn's */
} group_seat;

struct group_team {
  group_team *next;
  const group_executable *group;
  pid_t process; /* whose threads these are */
  rt_communicator *communicator;
  pthread_mutex_t lock;
  pthread_cond_t work, over;
  uint64_t round;   /* counts jobs */
  uint32_t at_work; /* devices but the caller's */
  uint32_t n_threads;
  bool ends;
  pthread_t caller;
  rt_pool *pool; /* in turns on several threads: the device's own, so that what steps do in parallel wakes no others */
  group_job job;
  rt_turn *turns; /* of all seats */
  group_seat seats[];
};

/* --- one device --- */

/* Devices but the first heed the run alone; the first asks the caller, too, on his thread. */
static bool group_stopped(void *ctx) {
  return rt_communicator_stopped(((const group_team *)ctx)->communicator);
}

static bool group_asked(void *ctx) {
  group_team *t = ctx;
  const rt_call_options *o = t->job.options;
  if (rt_communicator_stopped(t->communicator)) return true;
  if (!pthread_equal(t->caller, pthread_self()) || !o->interrupted || !o->interrupted(o->interrupt_ctx)) return false;
  xlac_error why = {.code = 0};
  (void)base_interrupted(&why);
  rt_communicator_fail(t->communicator, spmd_device_of(t->group, 0), &why);
  return true;
}

/* Whether a device before it has the result, too, and was given the same memory for it. */
static bool group_is_shared(const group_executable *g, const group_job *job, uint32_t number, uint32_t result) {
  const spmd_program *p = g->program;
  bool shared = false;
  if (p->results[result].first[spmd_device_of(g, number)]) return false;
  for (uint32_t i = 0; i < number && !shared; i++)
    shared = job->results[(size_t)i * p->n_results + result] == job->results[(size_t)number * p->n_results + result];
  return shared;
}

static bool group_shares_any(const group_executable *g, const group_job *job) {
  bool shares = false;
  for (uint32_t n = 0; n < g->here && !shares; n++)
    for (uint32_t i = 0; i < g->program->n_results && !shares; i++)
      shares = g->program->results[i].bytes > 0 && group_is_shared(g, job, n, i);
  return shares;
}

/* What was given as shards already. */
static void group_bring_shards(const group_executable *g, const group_job *job, group_seat *seat) {
  uint32_t n = g->program->n_results;
  for (uint32_t i = 0; i < n; i++) {
    seat->unread[i] = job->spare && group_is_shared(g, job, seat->number, i);
    int64_t at = g->result_at[i][seat->device];
    seat->results[i] = seat->unread[i] && at >= 0 ? job->spare + at : job->results[(size_t)seat->number * n + i];
  }
}

static void group_bring(const group_executable *g, const group_job *job, group_seat *seat) {
  const spmd_program *p = g->program;
  assert(seat->device < p->n_devices && job->block);
  for (uint32_t i = 0; i < p->n_arguments; i++) {
    const spmd_leaf *leaf = &p->arguments[i];
    int64_t at = g->argument_at[i][seat->device];
    char *whole = job->arguments[i];
    seat->arguments[i] = at < 0 ? (whole ? whole + leaf->offsets[seat->device] * leaf->bytes : NULL) : job->block + at;
    if (at < 0) continue;
    if (spmd_has_none(leaf, seat->device))
      memset(seat->arguments[i], 0, (size_t)spmd_shard_bytes(leaf));
    else
      spmd_split(leaf, seat->device, seat->arguments[i], whole);
  }
  for (uint32_t i = 0; i < p->n_results; i++) {
    const spmd_leaf *leaf = &p->results[i];
    int64_t at = g->result_at[i][seat->device];
    char *whole = job->results[i];
    seat->unread[i] = !leaf->first[seat->device];
    seat->results[i] = at < 0 ? (whole ? whole + leaf->offsets[seat->device] * leaf->bytes : NULL) : job->block + at;
  }
}

/* In the order of the parts, which are those of the devices. */
static void group_add_parts(const group_executable *g, const group_job *job) {
  const spmd_program *p = g->program;
  for (uint32_t i = 0; i < p->n_results; i++)
    for (uint32_t part = 1; part < p->results[i].n_parts; part++)
      for (uint32_t d = 0; d < p->n_devices; d++)
        if (p->results[i].part[d] == part && p->results[i].first[d])
          spmd_add(&p->results[i], g->base.result_types[i], d, job->results[i], job->block + g->result_at[i][d]);
}

static void group_deliver(const group_executable *g, const group_job *job, group_seat *seat) {
  const spmd_program *p = g->program;
  for (uint32_t i = 0; i < p->n_results; i++)
    if (g->result_at[i][seat->device] >= 0 && p->results[i].first[seat->device] &&
        !spmd_adds_up(&p->results[i], seat->device))
      spmd_join(&p->results[i], seat->device, job->results[i], seat->results[i]);
}

/* The local program's call, with its shards in place. */
static rt_turn group_turn(group_team *t, group_seat *seat, bool asks) {
  const group_executable *g = t->group;
  assert(seat->team == t && g->program->replicas * g->program->partitions == g->program->n_devices);
  rt_turn own = {*t->job.options, seat->arguments, seat->results, seat->unread};
  own.options.replica = seat->device / g->program->partitions;
  own.options.partition = seat->device % g->program->partitions;
  own.options.communicator = t->communicator;
  own.options.interrupted = asks ? group_asked : group_stopped;
  own.options.interrupt_ctx = t;
  if (t->job.block) {
    group_bring(g, &t->job, seat);
  } else {
    own.arguments = t->job.arguments + (size_t)seat->number * g->program->n_arguments;
    group_bring_shards(g, &t->job, seat);
  }
  return own;
}

static void group_run_device(group_team *t, group_seat *seat) {
  const group_executable *g = t->group;
  bool first = seat == t->seats;
  xlac_error err = {.code = 0};
  rt_turn own = group_turn(t, seat, first);
  const rt_trace *trace = first ? t->job.trace : NULL;
  if (!first) own.options.step = NULL;
  const rt_executable *exe = spmd_seat_of(g, seat->number);
  int status = exe->vtable->call(exe, &own.options, own.arguments, own.results, trace, &err);
  if (status)
    rt_communicator_fail(t->communicator, seat->device, &err);
  else if (t->job.block)
    group_deliver(g, &t->job, seat);
  rt_communicator_leave(t->communicator, seat->device);
}

/* --- threads --- */

static void *group_thread(void *ctx) {
  group_seat *seat = ctx;
  group_team *t = seat->team;
  uint64_t seen = 0;
  pthread_mutex_lock(&t->lock);
  for (;;) {
    while (t->round == seen && !t->ends) pthread_cond_wait(&t->work, &t->lock);
    if (t->ends) break;
    seen = t->round;
    pthread_mutex_unlock(&t->lock);
    group_run_device(t, seat);
    pthread_mutex_lock(&t->lock);
    assert(t->at_work > 0);
    if (--t->at_work == 0) pthread_cond_signal(&t->over);
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

/* In a forked child there are no threads to end, and locks may be held by nobody: memory stays. */
static void team_destroy(group_team *t) {
  if (t->process != getpid()) return;
  base_alloc alloc = t->group->alloc;
  pthread_mutex_lock(&t->lock);
  t->ends = true;
  pthread_cond_broadcast(&t->work);
  pthread_mutex_unlock(&t->lock);
  for (uint32_t i = 1; i <= t->n_threads; i++) pthread_join(t->seats[i].thread, NULL);
  rt_communicator_destroy(t->communicator);
  pthread_cond_destroy(&t->work);
  pthread_cond_destroy(&t->over);
  pthread_mutex_destroy(&t->lock);
  base_free(alloc, t);
}

/* n_threads counts those that run: what there is no thread for ends the team. */
static int team_start(group_team *t, uint32_t n, xlac_error *err) {
  const group_executable *g = t->group;
  if (g->in_turns) return g->threads > 1 ? rt_host_pool(rt_host_of(g->one->device), g->threads, &t->pool, err) : 0;
  for (uint32_t i = 1; i < n; i++) {
    if (pthread_create(&t->seats[i].thread, NULL, group_thread, &t->seats[i]) != 0)
      return base_fail(err, XLAC_E_OUT_OF_MEMORY, "the system has no thread for device %u of %u", (unsigned)i,
                       (unsigned)n);
    t->n_threads++;
  }
  return 0;
}

/* One block with the lists of pointers of all devices. */
static group_team *team_allocate(const group_executable *g) {
  const spmd_program *p = g->program;
  size_t n = g->here, leaves = (size_t)p->n_arguments + p->n_results;
  size_t turns = sizeof(group_team) + n * sizeof(group_seat), head = turns + n * sizeof(rt_turn);
  size_t pointers_end = head + n * leaves * sizeof(void *);
  group_team *t = base_malloc(g->alloc, pointers_end + n * p->n_results * sizeof(bool));
  if (!t) return NULL;
  memset(t, 0, head);
  t->turns = (rt_turn *)(void *)((char *)t + turns);
  void **pointers = (void **)(void *)((char *)t + head);
  bool *unread = (bool *)(void *)((char *)t + pointers_end);
  for (uint32_t i = 0; i < n; i++, pointers += leaves, unread += p->n_results)
    t->seats[i] = (group_seat){
        t, spmd_device_of(g, i), i, .arguments = pointers, .results = pointers + p->n_arguments, .unread = unread};
  return t;
}

static int team_create(const group_executable *g, group_team **out, xlac_error *err) {
  const spmd_program *p = g->program;
  group_team *t = team_allocate(g);
  if (!t) return base_oom(err, "the threads of a group");
  t->group = g;
  t->process = getpid();
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->work, NULL);
  pthread_cond_init(&t->over, NULL);
  int status = rt_communicator_create(&t->communicator, p->replicas, p->partitions, g->alloc, err);
  if (status == 0) t->communicator->in_turns = g->in_turns;
  if (status == 0) status = team_start(t, g->here, err);
  if (status)
    team_destroy(t);
  else
    *out = t;
  return status;
}

/* Teams are taken by taking the whole list, so that nobody sees one that another has taken and given back. */
static void team_give(group_executable *g, group_team *t) {
  t->next = atomic_load(&g->teams);
  while (!atomic_compare_exchange_weak(&g->teams, &t->next, t)) {
  }
}

static int team_take(group_executable *g, group_team **out, xlac_error *err) {
  group_team *all = atomic_exchange(&g->teams, NULL), *found = NULL;
  pid_t us = getpid();
  while (all) {
    group_team *t = all;
    all = t->next;
    if (t->process != us) continue; /* the parent's: its threads are not here */
    if (!found)
      found = t;
    else
      team_give(g, t);
  }
  if (!found) return team_create(g, out, err);
  *out = found;
  return 0;
}

/* --- a call --- */

/* What is not device 0's: until all have come to an end, and meanwhile looking for interruptions. */
static void team_wait(group_team *t) {
  struct timespec until;
  bool asks = t->job.options->interrupted != NULL;
  pthread_mutex_lock(&t->lock);
  while (t->at_work) {
    if (!asks) {
      pthread_cond_wait(&t->over, &t->lock);
      continue;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GROUP_POLL_NS;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    if (pthread_cond_timedwait(&t->over, &t->lock, &until) == 0 || !t->at_work) continue;
    pthread_mutex_unlock(&t->lock);
    asks = !group_asked(t);
    pthread_mutex_lock(&t->lock);
  }
  pthread_mutex_unlock(&t->lock);
}

/* The first failure, and where it was. */
static int team_error(const group_team *t, xlac_error *err) {
  uint32_t device = 0;
  xlac_error why = {.code = 0};
  if (!rt_communicator_why(t->communicator, &device, &why)) return 0;
  if (err) *err = rt_error_of(device, &why);
  return -(int)why.code;
}

/* For rt_parallel_for. */
static void team_bring_range(void *ctx, size_t begin, size_t end) {
  group_team *t = ctx;
  for (size_t i = begin; i < end; i++) t->turns[i] = group_turn(t, &t->seats[i], true);
}

static void team_deliver_range(void *ctx, size_t begin, size_t end) {
  group_team *t = ctx;
  for (size_t i = begin; i < end; i++) group_deliver(t->group, &t->job, &t->seats[i]);
}

static int team_run_in_turns(group_team *t, const group_job *job, xlac_error *err) {
  const group_executable *g = t->group;
  xlac_error why = {.code = 0};
  uint32_t failed = 0;
  t->job = *job;
  rt_parallel_for(job->block ? t->pool : NULL, g->here, 1, team_bring_range, t);
  int status = g->one->vtable->call_in_turns(g->one, t->pool, g->here, t->turns, job->trace, &failed, &why);
  if (status) rt_communicator_fail(t->communicator, t->seats[failed].device, &why);
  if (status == 0 && job->block) rt_parallel_for(t->pool, g->here, 1, team_deliver_range, t);
  return team_error(t, err);
}

static int team_run(group_team *t, const group_job *job, xlac_error *err) {
  const group_executable *g = t->group;
  const rt_across across = {g->net, g->process, g->here, job->run};
  rt_communicator_begin_across(t->communicator, &across);
  t->caller = pthread_self();
  if (g->in_turns) return team_run_in_turns(t, job, err);
  pthread_mutex_lock(&t->lock);
  assert(t->at_work == 0 && t->n_threads + 1 == g->here);
  t->job = *job;
  t->at_work = t->n_threads;
  t->round++;
  pthread_cond_broadcast(&t->work);
  pthread_mutex_unlock(&t->lock);
  group_run_device(t, &t->seats[0]);
  team_wait(t);
  return team_error(t, err);
}

int spmd_group_run_here(group_executable *g, const group_job *job, xlac_error *err) {
  group_team *t = NULL;
  TRY(team_take(g, &t, err));
  int status = team_run(t, job, err);
  team_give(g, t);
  return status;
}

static int group_run_job(const rt_executable *base, const group_job *job, bool wants_block, xlac_error *err) {
  group_executable *g = (group_executable *)(uintptr_t)base; /* the list of teams has its own order */
  if (g->net) return spmd_group_run_everywhere(g, job, wants_block, err);
  if (g->mine)
    return base_fail(err, XLAC_E_PARTICIPANTS, "the program has %u of %u devices in this process, and no network",
                     (unsigned)g->here, (unsigned)g->program->n_devices);
  return wants_block && !job->block ? base_oom(err, "the shards of a call") : spmd_group_run_here(g, job, err);
}

static int group_call(const rt_executable *base, const rt_call_options *options, void *const *arguments,
                      void *const *results, const rt_trace *trace, xlac_error *err) {
  const group_executable *g = (const group_executable *)base;
  group_job job = {options, arguments, results, trace, rt_recycler_take(g->memory, g->block_bytes), NULL, 0};
  int status = group_run_job(base, &job, true, err);
  if (status == 0) group_add_parts(g, &job);
  rt_recycler_give(job.block);
  return status;
}

int spmd_group_call_shards(const rt_executable *base, const rt_call_options *options, void *const *arguments,
                           void *const *results, xlac_error *err) {
  assert(base->n_devices > 0);
  const group_executable *g = (const group_executable *)base;
  group_job job = {.options = options, .arguments = arguments, .results = results};
  bool shares = group_shares_any(g, &job);
  if (shares) job.spare = rt_recycler_take(g->memory, g->block_bytes);
  int status = shares && !job.spare ? base_oom(err, "the shards of a call") : group_run_job(base, &job, false, err);
  rt_recycler_give(job.spare);
  return status;
}

const spmd_program *spmd_group_program(const rt_executable *base) {
  assert(base->n_devices > 0);
  return ((const group_executable *)base)->program;
}

const rt_executable *spmd_group_local(const rt_executable *base) {
  assert(base->n_devices > 0);
  return ((const group_executable *)base)->one;
}

/* --- on values --- */

static bool group_leaves(const interp_value *v, void **leaves, uint32_t n, uint32_t *at) {
  if (v->kind == INTERP_TUPLE) {
    for (uint32_t i = 0; i < v->n_elements; i++)
      if (!group_leaves(v->elements[i], leaves, n, at)) return false;
    return true;
  }
  if (*at == n) return false;
  leaves[(*at)++] = v->kind == INTERP_ARRAY ? v->data : NULL;
  return true;
}

/* Results are made first: of zeros, since they are written in parts. */
static int group_run(const rt_executable *base, const rt_call_options *options, uint32_t n,
                     interp_value *const *arguments, interp_value **out, const rt_trace *trace, xlac_error *err) {
  const group_executable *g = (const group_executable *)base;
  const ir_computation *entry = base->module->entry;
  interp_ctx maker = {.err = err};
  uint32_t at = 0, to = 0;
  TRY(interp_check_args(entry, n, arguments, err));
  maker.options.alloc = g->alloc;
  interp_value *result = interp_zeros(&maker, ir_root(entry)->type);
  if (!result) return interp_failed(&maker);
  size_t leaves = (size_t)base->n_arguments + base->n_results;
  void **pointers = base_malloc(g->alloc, leaves * sizeof *pointers);
  int status = pointers ? 0 : base_oom(err, "a call's arguments");
  for (uint32_t i = 0; i < n && status == 0; i++) (void)group_leaves(arguments[i], pointers, base->n_arguments, &at);
  if (status == 0) (void)group_leaves(result, pointers + base->n_arguments, base->n_results, &to);
  assert(status || (at == base->n_arguments && to == base->n_results));
  if (status == 0) status = group_call(base, options, pointers, pointers + base->n_arguments, trace, err);
  base_free(g->alloc, pointers);
  if (status)
    interp_release(result);
  else
    *out = result;
  return status;
}

/* --- the executable --- */

/* The first has the plan of all, and goes last. */
void spmd_group_abandon(spmd_program *p, rt_executable *const *seats, uint32_t n_seats) {
  for (uint32_t i = n_seats; i-- > 0;) {
    uint32_t like = 0;
    while (seats[like] != seats[i]) like++;
    if (like == i) rt_executable_destroy(seats[i]);
  }
  spmd_program_destroy(p);
}

static void group_destroy(rt_executable *base) {
  group_executable *g = (group_executable *)base;
  for (group_team *t = atomic_load(&g->teams), *next; t; t = next) next = t->next, team_destroy(t);
  spmd_group_abandon(g->program, g->seats, g->n_seats);
  rt_network_release(g->net);
  rt_recycler_release(g->memory);
  ir_module_destroy(g->face);
  base_arena_free(&g->arena);
  base_free(g->alloc, g);
}

static bool group_lane(const rt_executable *base, uint32_t index, xlac_lane *out) {
  return rt_executable_lane(((const group_executable *)base)->one, index, out);
}

static const char *group_library(const rt_executable *base) {
  return rt_executable_library(((const group_executable *)base)->one);
}

static int group_print(const rt_executable *base, base_text *out, xlac_error *err) {
  return rt_executable_print(((const group_executable *)base)->one, out, err);
}

static const rt_executable_vtable group_vtable = {.destroy = group_destroy,
                                                  .call = group_call,
                                                  .run = group_run,
                                                  .lane = group_lane,
                                                  .library = group_library,
                                                  .print = group_print};

/* Room in the block for what is not a view: of results, what others write already, too. */
static int group_place(group_executable *g, const spmd_leaf *leaf, bool result, int64_t **out, xlac_error *err) {
  uint32_t n = g->program->n_devices;
  int64_t *at = BASE_ARRAY(&g->arena, int64_t, n), bytes = (spmd_shard_bytes(leaf) + GROUP_ALIGN - 1) & -GROUP_ALIGN;
  if (!at) return base_oom(err, "the shards of a group");
  for (uint32_t i = 0; i < n; i++) {
    bool own = result ? leaf->first[i] && !spmd_adds_up(leaf, i) : !spmd_has_none(leaf, i);
    bool unused = !spmd_is_here(g, i) && !(result && leaf->first[i]); /* other processes' */
    bool view = unused || leaf->bytes == 0 || (leaf->contiguous && own);
    at[i] = view ? -1 : (int64_t)g->block_bytes;
    if (!view) g->block_bytes += (size_t)bytes;
  }
  *out = at;
  return 0;
}

int spmd_group_places(group_executable *g, xlac_error *err) {
  const spmd_program *p = g->program;
  g->block_bytes = 0;
  g->argument_at = BASE_ARRAY(&g->arena, int64_t *, (size_t)p->n_arguments + 1);
  g->result_at = BASE_ARRAY(&g->arena, int64_t *, (size_t)p->n_results + 1);
  if (!g->argument_at || !g->result_at) return base_oom(err, "the shards of a group");
  for (uint32_t i = 0; i < p->n_arguments; i++) TRY(group_place(g, &p->arguments[i], false, &g->argument_at[i], err));
  for (uint32_t i = 0; i < p->n_results; i++) TRY(group_place(g, &p->results[i], true, &g->result_at[i], err));
  return 0;
}

/* Whether every device may compute its shard of a result over its shard of an argument while both are parts of one
 * whole array: nobody else reads that part. */
static bool group_may_give(const spmd_program *p, const plan_donation *d) {
  if (d->result == UINT32_MAX) return false;
  const spmd_leaf *from = &p->arguments[d->argument], *to = &p->results[d->result];
  bool same = from->contiguous && to->contiguous && spmd_shard_bytes(from) == spmd_shard_bytes(to);
  same = same && !from->part && !to->part;
  for (uint32_t i = 0; i < p->n_devices && same; i++)
    same = from->first[i] && to->first[i] && from->offsets[i] * from->bytes == to->offsets[i] * to->bytes;
  return same;
}

/* The plan of each device, but of its donations only those that whole arrays allow. */
static int group_give(group_executable *g, xlac_error *err) {
  const plan_program *one = g->one->plan;
  plan_program *own = BASE_NEW(&g->arena, plan_program);
  plan_donation *donations = BASE_ARRAY(&g->arena, plan_donation, (size_t)one->n_donations + 1);
  uint32_t n = 0;
  if (!own || !donations) return base_oom(err, "a group");
  for (uint32_t i = 0; i < one->n_donations; i++)
    if (group_may_give(g->program, &one->donations[i])) donations[n++] = one->donations[i];
  *own = *one;
  own->n_donations = n;
  own->donations = donations;
  own->n_spares = 0;
  own->spare_bytes = 0;
  g->base.plan = own;
  return 0;
}

static bool group_can_take_turns(const group_executable *g) {
  bool can = g->one->vtable->call_in_turns && g->one->meetings != RT_NO_TURNS;
  for (uint32_t i = 0; i < g->n_seats; i++) can = can && (!g->seats[i] || g->seats[i] == g->one);
  return can;
}

/* little: what the caller says; 0: nothing. */
static void group_choose_threads(group_executable *g, uint64_t little) {
  const rt_executable *one = g->one;
  uint32_t cpus = rt_cpu_count();
  g->in_turns = group_can_take_turns(g) && one->turn_work / (little ? little : GROUP_LITTLE) <= one->meetings;
  if (g->in_turns || little || !group_can_take_turns(g) || cpus >= g->program->n_devices) return;
  bool even = g->program->n_devices % cpus == 0 && one->turn_work < UINT64_MAX;
  g->in_turns = even || one->turn_work / GROUP_SOON <= one->meetings;
  if (g->in_turns) g->threads = cpus;
}

/* Which devices are here until a network says so. */
static int group_find_mine(group_executable *g, xlac_error *err) {
  const uint32_t n = g->program->n_devices;
  uint32_t here = 0, *mine = BASE_ARRAY(&g->arena, uint32_t, n);
  if (!mine) return base_oom(err, "a group");
  for (uint32_t i = 0; i < n; i++)
    if (spmd_has_seat(g, i)) mine[here++] = i;
  assert(here > 0);
  g->here = here;
  g->mine = here < n ? mine : NULL;
  return 0;
}

static int group_prepare(group_executable *g, uint64_t little, xlac_error *err) {
  const rt_executable *one = g->one;
  const spmd_program *p = g->program;
  if (one->on_values)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "a program of shapes that are known only when it runs has no shards");
  assert(one->n_arguments == p->n_arguments && one->n_results == p->n_results);
  TRY(spmd_face(p, one->module, &g->face, err));
  TRY(rt_executable_describe(&g->base, g->face, &g->arena, err));
  g->base.module = g->face;
  g->base.n_devices = p->n_devices;
  TRY(group_find_mine(g, err));
  group_choose_threads(g, little);
  if (__builtin_mul_overflow(one->work, (uint64_t)p->n_devices, &g->base.work)) g->base.work = UINT64_MAX;
  TRY(spmd_group_places(g, err));
  TRY(group_give(g, err));
  return rt_recycler_create(&g->memory, g->alloc, err);
}

int spmd_group(spmd_program *p, rt_executable *const *seats, uint32_t n_seats, uint64_t little, base_alloc alloc,
               rt_executable **out, xlac_error *err) {
  group_executable *g = base_malloc(alloc, sizeof *g + n_seats * sizeof *seats);
  if (!g) {
    spmd_group_abandon(p, seats, n_seats);
    return base_oom(err, "a group");
  }
  uint32_t first = 0;
  while (!seats[first]) first++;
  assert(first < n_seats);
  *g = (group_executable){.alloc = alloc, .program = p, .one = seats[first], .n_seats = n_seats};
  g->base = (rt_executable){.vtable = &group_vtable, .device = rt_device_retain(seats[first]->device)};
  g->seats = memcpy(g + 1, seats, n_seats * sizeof *seats);
  base_arena_init(&g->arena, alloc);
  int status = group_prepare(g, little, err);
  if (status)
    rt_executable_destroy(&g->base);
  else
    *out = &g->base;
  return status;
}

const char *spmd_group_way(const rt_executable *base) {
  const group_executable *g = (const group_executable *)base;
  if (g->in_turns && g->threads) return "in turns on a thread for each CPU, of which there are fewer";
  if (g->in_turns) return "in turns on the caller's thread, since they have little to do";
  if (!group_can_take_turns(g))
    return "on a thread each, since an op that can't be left half done may wait for other devices";
  return "on a thread each";
}

void spmd_group_here(const rt_executable *base, uint32_t *from, uint32_t *here) {
  const group_executable *g = (const group_executable *)base;
  *from = spmd_device_of(g, 0);
  *here = g->here;
}

rt_device *spmd_group_device(const rt_executable *base, uint32_t number) {
  const group_executable *g = (const group_executable *)base;
  return spmd_seat_of(g, number)->device;
}
