/* The communicator of one process. Members of a group come to a meeting: a record with everybody's arrays, under the
 * communicator's lock. The last to come does the work of all where it is little, so that nobody is woken twice; else
 * everybody does his share, and waits once more until all have.
 *
 * Every participant is running, waiting or gone. When nobody runs and somebody waits, nobody will ever come: the run
 * ends with an error that says who waits where for whom.
 *
 * Of several processes, each has a communicator of its own participants, who meet in it first; the last of a group's to
 * come then does the work of all of them with the other processes (net/across.c). */
#include "communicator.h"
#include "network.h"
#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { COMM_LITTLE = 1 << 15 /* bytes: less is copied faster than threads are woken */, COMM_POLL_NS = 50000000 };

typedef enum comm_state { COMM_RUNNING, COMM_WAITING, COMM_GONE } comm_state;
typedef enum comm_stage { COMM_GATHERING, COMM_WORKING, COMM_OVER } comm_stage;

typedef struct comm_meeting comm_meeting;
struct comm_meeting {
  rt_collective what;
  rt_group group;  /* of whoever opened it; members stay while anybody is here */
  size_t room;     /* bytes of the lists, which lie behind the record */
  uint32_t here_n; /* members in this process */
  uint32_t arrived, claimed, done, left;
  uint32_t busy; /* members that look at the others' arrays now: nobody goes away meanwhile, not even after a failure */
  uint8_t stage;
  pthread_cond_t wake;
  comm_meeting *next;
  const void *const **in; /* by place; NULL: not here yet */
  void *const **out;
  void **arrays; /* in turns: what the lists of in and out refer to, which then are their owners' no more */
  bool *here;    /* until all are: then the shares that nobody has begun */
  bool due;      /* all are here, and comm_settle is to do the work, with these: */
  rt_combine_fn *combine;
  void *ctx;
};

typedef struct comm_seat {
  uint8_t state;
  const comm_meeting *meeting; /* where it waits */
} comm_seat;

typedef struct comm_shared {
  rt_communicator base;
  base_alloc alloc;
  pthread_mutex_t lock;
  uint32_t n, running;
  atomic_bool stopped;
  bool failed;
  uint32_t who;
  xlac_error why;
  rt_across across;
  comm_meeting *open, *spare;
  comm_seat seats[];
} comm_shared;

/* --- who waits for whom --- */

static int comm_put(char *text, size_t room, int at, const char *format, ...) BASE_PRINTF(4, 5);
static int comm_put(char *text, size_t room, int at, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int n = (size_t)at < room ? vsnprintf(text + at, room - (size_t)at, format, args) : 0;
  va_end(args);
  return n < 0 ? at : at + n;
}

/* "device 1 waits in all-reduce.3 for device 0, which has finished" */
static void comm_tell(const comm_shared *c, char *text, size_t room) {
  int at = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < c->n && (size_t)at + 100 < room; i++) {
    const comm_meeting *m = c->seats[i].meeting;
    if (c->seats[i].state != COMM_WAITING || !m) continue;
    at = comm_put(text, room, at, "%sdevice %u waits in %.60s", at ? "; " : "", (unsigned)i, m->what.name);
    for (uint32_t k = 0; k < m->group.n; k++) {
      uint32_t other = m->group.members[k];
      if (m->here[k]) continue;
      at = comm_put(text, room, at, " for device %u%s", (unsigned)other,
                    c->seats[other].state == COMM_GONE ? ", which has finished" : "");
      break;
    }
  }
}

/* --- ends; the lock is held --- */

static void comm_wake_all(comm_shared *c) {
  for (comm_meeting *m = c->open; m; m = m->next) pthread_cond_broadcast(&m->wake);
}

xlac_error rt_error_of(uint32_t participant, const xlac_error *why) {
  xlac_error told = *why;
  assert(why->code);
  if (why->code != XLAC_E_INTERRUPTED && why->code != XLAC_E_PARTICIPANTS && participant != UINT32_MAX)
    snprintf(told.message, sizeof told.message, "device %u: %.400s", (unsigned)participant, why->message);
  return told;
}

/* The first failure is the run's. */
static void comm_fail(comm_shared *c, uint32_t who, const xlac_error *why) {
  const xlac_error told = rt_error_of(who, why);
  if (!c->failed) {
    c->failed = true;
    c->who = who;
    c->why = *why;
    if (c->across.net) rt_network_fail(c->across.net, c->across.run, &told);
  }
  atomic_store_explicit(&c->stopped, true, memory_order_relaxed);
  comm_wake_all(c);
}

static void comm_check_stuck(comm_shared *c) {
  xlac_error why = {.code = 0};
  char text[400];
  if (c->running || atomic_load_explicit(&c->stopped, memory_order_relaxed)) return;
  for (uint32_t i = 0; i < c->n; i++) {
    if (c->seats[i].state != COMM_WAITING) continue;
    comm_tell(c, text, sizeof text);
    (void)base_fail(&why, XLAC_E_PARTICIPANTS, "the devices wait for one another: %s", text);
    comm_fail(c, i, &why);
    return;
  }
}

/* --- waiting; the lock is held --- */

static void comm_until(struct timespec *t) {
  clock_gettime(CLOCK_REALTIME, t);
  t->tv_nsec += COMM_POLL_NS;
  t->tv_sec += t->tv_nsec / 1000000000L;
  t->tv_nsec %= 1000000000L;
}

static bool comm_goes_on(const comm_shared *c, const comm_meeting *m, comm_stage stage) {
  if (m->stage >= stage) return false;
  return m->busy || !atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

/* Until the meeting has come to `stage`, or the run has failed. */
static int comm_wait(comm_shared *c, const rt_participant *us, comm_meeting *m, comm_stage stage, xlac_error *err) {
  comm_seat *seat = &c->seats[us->number];
  struct timespec until;
  bool asks = us->interrupted != NULL;
  seat->state = COMM_WAITING;
  seat->meeting = m;
  c->running--;
  comm_check_stuck(c);
  while (comm_goes_on(c, m, stage)) {
    if (!asks) {
      pthread_cond_wait(&m->wake, &c->lock);
      continue;
    }
    comm_until(&until);
    if (pthread_cond_timedwait(&m->wake, &c->lock, &until) != ETIMEDOUT) continue;
    pthread_mutex_unlock(&c->lock);
    bool stop = us->interrupted(us->interrupt_ctx);
    pthread_mutex_lock(&c->lock);
    xlac_error why = {.code = 0};
    if (stop) (void)base_interrupted(&why);
    if (stop) comm_fail(c, us->number, &why);
  }
  if (seat->state == COMM_WAITING) {
    seat->state = COMM_RUNNING;
    c->running++;
  }
  seat->meeting = NULL;
  return m->stage >= stage ? 0 : base_interrupted(err);
}

/* Those that wait run again, by the one who has what they wait for: so nobody takes them for stuck meanwhile. */
static void comm_advance(comm_shared *c, comm_meeting *m, comm_stage stage) {
  assert(stage > m->stage);
  m->stage = (uint8_t)stage;
  for (uint32_t k = 0; k < m->group.n; k++) {
    comm_seat *seat = &c->seats[m->group.members[k]];
    if (seat->state != COMM_WAITING || seat->meeting != m) continue;
    seat->state = COMM_RUNNING;
    seat->meeting = NULL;
    c->running++;
  }
  pthread_cond_broadcast(&m->wake);
}

/* --- meetings; the lock is held --- */

static bool comm_is_same(const comm_meeting *m, const rt_collective *what, const rt_group *group) {
  return m->stage == COMM_GATHERING && m->group.n == group->n && !m->here[group->place] && m->what.kind == what->kind &&
         m->what.channel == what->channel && m->what.n == what->n &&
         memcmp(m->group.members, group->members, group->n * sizeof *group->members) == 0;
}

static void comm_free(base_alloc alloc, comm_meeting *m) {
  pthread_cond_destroy(&m->wake);
  base_free(alloc, m);
}

/* Records are used again by groups that fit into them. */
static comm_meeting *comm_take(comm_shared *c, size_t room) {
  for (comm_meeting **link = &c->spare; *link; link = &(*link)->next) {
    comm_meeting *m = *link;
    if (m->room < room) continue;
    *link = m->next;
    return m;
  }
  comm_meeting *m = base_malloc(c->alloc, sizeof *m + room);
  if (!m) return NULL;
  m->room = room;
  pthread_cond_init(&m->wake, NULL);
  return m;
}

static comm_meeting *comm_take_for(comm_shared *c, uint32_t n, uint32_t arrays) {
  size_t kept = c->base.in_turns ? 2 * (size_t)n * arrays : 0;
  comm_meeting *m = comm_take(c, (2 * (size_t)n + kept) * sizeof(void *) + n * sizeof(bool));
  if (!m) return NULL;
  m->in = (const void *const **)(void *)(m + 1);
  m->out = (void *const **)(void *)(m->in + n);
  m->arrays = (void **)(void *)(m->out + n);
  m->here = (bool *)(void *)(m->arrays + kept);
  return m;
}

static comm_meeting *comm_open(comm_shared *c, const rt_collective *what, const rt_group *group) {
  for (comm_meeting *m = c->open; m; m = m->next)
    if (comm_is_same(m, what, group)) return m;
  comm_meeting *m = comm_take_for(c, group->n, what->n);
  if (!m) return NULL;
  m->what = *what;
  m->group = *group;
  m->arrived = m->claimed = m->done = m->left = m->busy = m->here_n = 0;
  for (uint32_t k = 0; k < group->n; k++) m->here_n += rt_is_here(&c->across, group->members[k]);
  memset(m->in, 0, group->n * sizeof *m->in);
  m->stage = COMM_GATHERING;
  m->due = false;
  memset(m->here, 0, group->n * sizeof *m->here);
  m->next = c->open;
  c->open = m;
  return m;
}

/* Who leaves last gives the record back. */
static void comm_leave_meeting(comm_shared *c, comm_meeting *m) {
  if (++m->left < m->here_n) return;
  comm_meeting **link = &c->open;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  m->next = c->spare;
  c->spare = m;
}

/* In turns a participant leaves copies of its lists, and goes on before they have been read. */
static void comm_keep(comm_meeting *m, uint32_t place) {
  uint32_t n = m->what.n;
  void **arrays = m->arrays + 2 * (size_t)n * place;
  memcpy(arrays, m->in[place], n * sizeof *arrays);
  memcpy(arrays + n, m->out[place], n * sizeof *arrays);
  m->in[place] = (const void *const *)arrays;
  m->out[place] = arrays + n;
}

/* *last: we have come last, and everybody else waits. */
static int comm_arrive(comm_shared *c, const rt_collective *what, const rt_group *group, const void *const *in,
                       void *const *out, comm_meeting **meeting, bool *last, xlac_error *err) {
  assert(group->n > 0 && group->place < group->n);
  if (atomic_load_explicit(&c->stopped, memory_order_relaxed)) return base_interrupted(err);
  comm_meeting *m = comm_open(c, what, group);
  if (!m) return base_oom(err, "a collective");
  m->in[group->place] = in;
  m->out[group->place] = out;
  if (c->base.in_turns) comm_keep(m, group->place);
  m->here[group->place] = true;
  *last = ++m->arrived == m->here_n;
  *meeting = m;
  return 0;
}

/* --- collectives --- */

static rt_exchange comm_exchange(const comm_meeting *m, rt_combine_fn *combine, void *ctx) {
  return (rt_exchange){.what = &m->what,
                       .members = m->group.n,
                       .sources = m->group.sources,
                       .in = m->in,
                       .out = m->out,
                       .combine = combine,
                       .ctx = ctx};
}

static void comm_end_work(comm_shared *c, comm_meeting *m) {
  assert(m->busy > 0);
  if (--m->busy == 0 && atomic_load_explicit(&c->stopped, memory_order_relaxed)) pthread_cond_broadcast(&m->wake);
}

/* Our part, without the lock. */
static int comm_work(comm_shared *c, comm_meeting *m, const rt_exchange *x, uint32_t from, uint32_t to,
                     xlac_error *err) {
  m->busy++;
  pthread_mutex_unlock(&c->lock);
  int status = rt_exchange_run(x, from, to, err);
  pthread_mutex_lock(&c->lock);
  comm_end_work(c, m);
  return status;
}

/* A share that nobody has begun, our own first: what we read and write then is near. UINT32_MAX: all are begun. */
static uint32_t comm_claim(comm_meeting *m, uint32_t place) {
  for (uint32_t k = 0; k < m->group.n && m->claimed < m->group.n; k++) {
    uint32_t share = (place + k) % m->group.n;
    if (!m->here[share]) continue;
    m->here[share] = false;
    m->claimed++;
    return share;
  }
  return UINT32_MAX;
}

/* The last to come begins, and whoever wakes meanwhile helps; all go on when all shares are done. So nobody waits for
 * one that no processor has woken yet. */
static int comm_share(comm_shared *c, const rt_participant *us, comm_meeting *m, uint32_t place, bool last,
                      const rt_exchange *x, xlac_error *err) {
  if (last)
    comm_advance(c, m, COMM_WORKING);
  else
    TRY(comm_wait(c, us, m, COMM_WORKING, err));
  for (uint32_t share; (share = comm_claim(m, place)) != UINT32_MAX; m->done++)
    TRY(comm_work(c, m, x, share, share + 1, err));
  if (m->done < m->here_n) return comm_wait(c, us, m, COMM_OVER, err);
  if (m->stage < COMM_OVER) comm_advance(c, m, COMM_OVER);
  return 0;
}

/* The last to come does it all. */
static int comm_alone(comm_shared *c, const rt_participant *us, comm_meeting *m, bool last, const rt_exchange *x,
                      xlac_error *err) {
  if (!last) return comm_wait(c, us, m, COMM_OVER, err);
  TRY(comm_work(c, m, x, 0, m->group.n, err));
  comm_advance(c, m, COMM_OVER);
  return 0;
}

/* The same in turns: whoever is not the last counts as waiting until all are there; all do where there is much to do.
 */
static int comm_turn(comm_shared *c, const rt_participant *us, comm_meeting *m, bool last, const rt_exchange *x,
                     xlac_error *err) {
  comm_seat *seat = &c->seats[us->number];
  m->due = last && m->what.settles && rt_exchange_bytes(&m->what, m->group.n) > COMM_LITTLE;
  if (last && !m->due) return comm_alone(c, us, m, last, x, err);
  m->combine = x->combine;
  m->ctx = x->ctx;
  seat->state = COMM_WAITING;
  seat->meeting = m;
  c->running--;
  return 0;
}

typedef struct comm_settling {
  rt_exchange x;
  atomic_int status;
} comm_settling;

/* For rt_parallel_for: shares. */
static void comm_settle_range(void *ctx, size_t begin, size_t end) {
  comm_settling *s = ctx;
  int status = rt_exchange_run(&s->x, (uint32_t)begin, (uint32_t)end, NULL);
  if (status) atomic_store(&s->status, status);
}

/* The last to come does it all, with those who are elsewhere. */
static int comm_across(comm_shared *c, const rt_participant *us, comm_meeting *m, bool last, const rt_exchange *x,
                       xlac_error *err) {
  if (!last) return comm_wait(c, us, m, COMM_OVER, err);
  m->busy++;
  pthread_mutex_unlock(&c->lock);
  int status = rt_across_run(&c->across, us, x, m->group.members, c->alloc, err);
  pthread_mutex_lock(&c->lock);
  comm_end_work(c, m);
  if (status == 0) comm_advance(c, m, COMM_OVER);
  return status;
}

/* After a failure the record stays open until the run is over: others may still look at it. */
static int comm_collective(rt_communicator *base, const rt_participant *us, const rt_collective *what,
                           const rt_group *group, const void *const *in, void *const *out, rt_combine_fn *combine,
                           void *ctx, xlac_error *err) {
  comm_shared *c = (comm_shared *)base;
  comm_meeting *m = NULL;
  bool last = false;
  pthread_mutex_lock(&c->lock);
  int status = comm_arrive(c, what, group, in, out, &m, &last, err);
  if (status == 0) {
    rt_exchange x = comm_exchange(m, combine, ctx);
    bool little = rt_exchange_bytes(what, group->n) <= COMM_LITTLE;
    if (base->in_turns)
      status = comm_turn(c, us, m, last, &x, err);
    else if (m->here_n < group->n)
      status = comm_across(c, us, m, last, &x, err);
    else
      status = little ? comm_alone(c, us, m, last, &x, err) : comm_share(c, us, m, group->place, last, &x, err);
  }
  if (status == 0 && !m->due) comm_leave_meeting(c, m);
  pthread_mutex_unlock(&c->lock);
  return status;
}

/* Nobody else runs: the lock is for those who look on. */
static int comm_settle(rt_communicator *base, rt_pool *pool, xlac_error *err) {
  comm_shared *c = (comm_shared *)base;
  int status = 0;
  for (comm_meeting *m = c->open, *next; m && status == 0; m = next) {
    next = m->next;
    if (!m->due) continue;
    comm_settling s = {.x = comm_exchange(m, m->combine, m->ctx)};
    rt_parallel_for(pool, m->group.n, pool ? 1 : m->group.n, comm_settle_range, &s);
    status = atomic_load(&s.status);
    if (status) return base_oom(err, "a collective");
    pthread_mutex_lock(&c->lock);
    comm_advance(c, m, COMM_OVER);
    comm_leave_meeting(c, m);
    pthread_mutex_unlock(&c->lock);
  }
  return status;
}

/* The items stand where a collective has lists of arrays. */
static int comm_meet(rt_communicator *base, const rt_participant *us, const rt_collective *what, const rt_group *group,
                     const void *item, const void **items, void **meeting, xlac_error *err) {
  comm_shared *c = (comm_shared *)base;
  comm_meeting *m = NULL;
  bool last = false;
  assert(!base->in_turns);
  pthread_mutex_lock(&c->lock);
  int status = comm_arrive(c, what, group, item, NULL, &m, &last, err);
  if (status == 0 && last) comm_advance(c, m, COMM_WORKING);
  if (status == 0 && !last) status = comm_wait(c, us, m, COMM_WORKING, err);
  for (uint32_t k = 0; status == 0 && k < group->n; k++) items[k] = m->in[k];
  if (status == 0) m->busy++;
  pthread_mutex_unlock(&c->lock);
  *meeting = m;
  return status;
}

static int comm_part(rt_communicator *base, const rt_participant *us, void *meeting, xlac_error *err) {
  comm_shared *c = (comm_shared *)base;
  comm_meeting *m = meeting;
  int status = 0;
  pthread_mutex_lock(&c->lock);
  comm_end_work(c, m);
  if (++m->done < m->here_n)
    status = comm_wait(c, us, m, COMM_OVER, err);
  else
    comm_advance(c, m, COMM_OVER);
  if (status == 0) comm_leave_meeting(c, m);
  pthread_mutex_unlock(&c->lock);
  return status;
}

/* --- runs --- */

/* What a failed run has left open is free again. */
static void comm_begin(rt_communicator *base) {
  comm_shared *c = (comm_shared *)base;
  pthread_mutex_lock(&c->lock);
  while (c->open) {
    comm_meeting *m = c->open;
    c->open = m->next;
    m->next = c->spare;
    c->spare = m;
  }
  memset(c->seats, 0, c->n * sizeof *c->seats);
  c->running = c->across.net ? c->across.here : c->n;
  c->failed = false;
  atomic_store_explicit(&c->stopped, false, memory_order_relaxed);
  pthread_mutex_unlock(&c->lock);
}

static void comm_end_all(rt_communicator *base, uint32_t participant, const xlac_error *why) {
  comm_shared *c = (comm_shared *)base;
  pthread_mutex_lock(&c->lock);
  comm_fail(c, participant, why);
  pthread_mutex_unlock(&c->lock);
}

static void comm_leave(rt_communicator *base, uint32_t participant) {
  comm_shared *c = (comm_shared *)base;
  pthread_mutex_lock(&c->lock);
  assert(participant < c->n && c->seats[participant].state == COMM_RUNNING);
  c->seats[participant].state = COMM_GONE;
  c->running--;
  comm_check_stuck(c);
  pthread_mutex_unlock(&c->lock);
}

static bool comm_waits(const rt_communicator *base, uint32_t participant) {
  const comm_shared *c = (const comm_shared *)base;
  assert(base->in_turns && participant < c->n);
  return c->seats[participant].state == COMM_WAITING;
}

static bool comm_stopped(const rt_communicator *base) {
  const comm_shared *c = (const comm_shared *)base;
  return atomic_load_explicit(&c->stopped, memory_order_relaxed) ||
         (c->across.net && rt_network_stopped(c->across.net));
}

static bool comm_why(const rt_communicator *base, uint32_t *participant, xlac_error *err) {
  const comm_shared *c = (const comm_shared *)base;
  if (c->across.net && rt_network_why(c->across.net, err)) { /* what fails here then is its consequence */
    *participant = UINT32_MAX;
    return true;
  }
  if (!c->failed) return false;
  *participant = c->who;
  if (err) *err = c->why;
  return true;
}

static void comm_destroy(rt_communicator *base) {
  comm_shared *c = (comm_shared *)base;
  rt_attachment *attachment = atomic_load(&base->attachment);
  if (attachment) attachment->destroy(attachment);
  comm_begin(base);
  for (comm_meeting *m = c->spare, *next; m; m = next) next = m->next, comm_free(c->alloc, m);
  pthread_mutex_destroy(&c->lock);
  base_free(c->alloc, c);
}

static const rt_communicator_vtable comm_vtable = {.destroy = comm_destroy,
                                                   .begin = comm_begin,
                                                   .collective = comm_collective,
                                                   .meet = comm_meet,
                                                   .part = comm_part,
                                                   .fail = comm_end_all,
                                                   .leave = comm_leave,
                                                   .waits = comm_waits,
                                                   .settle = comm_settle,
                                                   .stopped = comm_stopped,
                                                   .why = comm_why};

void rt_communicator_begin_across(rt_communicator *base, const rt_across *across) {
  ((comm_shared *)base)->across = *across;
  base->processes = across->net ? rt_network_size(across->net) : 1;
  comm_begin(base);
}

int rt_communicator_create(rt_communicator **out, int64_t replicas, int64_t partitions, base_alloc alloc,
                           xlac_error *err) {
  int64_t n = 0;
  if (replicas < 1 || partitions < 1 || !base_mul_i64(replicas, partitions, &n) || n > RT_MOST_PARTICIPANTS)
    return base_fail(err, XLAC_E_PARTICIPANTS, "%lld x %lld participants: expected 1 to %d in all", (long long)replicas,
                     (long long)partitions, RT_MOST_PARTICIPANTS);
  comm_shared *c = base_malloc(alloc, sizeof *c + (size_t)n * sizeof *c->seats);
  if (!c) return base_oom(err, "a communicator");
  memset(c, 0, sizeof *c);
  c->base = (rt_communicator){.vtable = &comm_vtable, .replicas = replicas, .partitions = partitions, .processes = 1};
  c->alloc = alloc;
  c->n = (uint32_t)n;
  pthread_mutex_init(&c->lock, NULL);
  *out = &c->base;
  comm_begin(*out);
  return 0;
}
