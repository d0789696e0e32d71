/* A queue whose work the host does: one thread takes piece after piece. It is a lane of one thread with one task, a
 * part of which is a piece of work, since parts run in order and one at a time. */
#include <pthread.h>
#include <unistd.h>

#include "host.h"

typedef struct hostq_piece hostq_piece;
struct hostq_piece {
  hostq_piece *next;
  int (*run)(hostq_piece *p, xlac_error *err);
  rt_event *done; /* or NULL */
  uint32_t n_waits;
  rt_event **waits; /* references */
  bool records;     /* its event fails with the error of those before it */
  union {
    struct {
      rt_copy copy;
      rt_copy_fn *fn;
      rt_device *device; /* the queue's */
    } copy;
    struct {
      int (*fn)(void *ctx, xlac_error *err);
      void *ctx;
    } host;
    struct {
      const rt_executable *exe;
      rt_call_options options;
      void **results; /* into the list */
    } call;
  } u;
  void *list[]; /* of a call: arguments, then results */
};

BASE_VEC(hostq_events, rt_event *);

typedef struct host_queue {
  rt_queue queue;
  rt_task task;
  base_alloc alloc;
  rt_lane *lane;
  rt_copy_fn *copy;
  pid_t process; /* that may count on the pieces: a forked child has none */
  pthread_mutex_t lock;
  hostq_piece *first, **last;
  hostq_events waits; /* of the next piece */
  xlac_error failed;  /* the first error since the last record; code 0: none. Of the thread that runs pieces */
} host_queue;

static host_queue *hostq_of(rt_queue *q) {
  return (host_queue *)q;
}

static host_queue *hostq_of_task(rt_task *t) {
  return (host_queue *)(void *)((char *)t - offsetof(host_queue, task));
}

/* --- the queue's thread --- */

/* The first piece. There is one: a part of the task was posted for it. */
static hostq_piece *hostq_take(host_queue *q) {
  pthread_mutex_lock(&q->lock);
  hostq_piece *p = q->first;
  assert(p && "a part was posted for each piece");
  q->first = p->next;
  if (!q->first) q->last = &q->first;
  pthread_mutex_unlock(&q->lock);
  return p;
}

/* Drops what the piece holds: the events it has waited for, and its own, which others may still hold. */
static void hostq_free(host_queue *q, hostq_piece *p) {
  for (uint32_t i = 0; i < p->n_waits; i++) rt_event_release(p->waits[i]);
  base_free(q->alloc, p->waits);
  rt_event_release(p->done);
  base_free(q->alloc, p);
}

/* All events are waited for, also after one has failed: what a piece behind this one finds is over, then. */
static int hostq_wait(const hostq_piece *p, xlac_error *err) {
  int status = 0;
  for (uint32_t i = 0; i < p->n_waits; i++) {
    int one = rt_event_wait(p->waits[i], NULL, NULL, status ? NULL : err);
    if (!status) status = one;
  }
  return status;
}

/* Some errors come without a code in the record: that of the status is what counts. */
static void hostq_end(host_queue *q, hostq_piece *p, int status, xlac_error *err) {
  if (status) err->code = -status;
  if (p->records) {
    status = status ? status : -q->failed.code;
    if (q->failed.code) *err = q->failed;
    q->failed.code = 0;
  } else if (status && !q->failed.code) {
    q->failed = *err;
  }
  if (p->done) rt_event_set(p->done, status ? err : NULL);
}

static void hostq_run_part(rt_task *t, uint32_t part) {
  host_queue *q = hostq_of_task(t);
  hostq_piece *p = hostq_take(q);
  xlac_error err = {.code = 0};
  (void)part;
  int status = hostq_wait(p, &err);
  if (status == 0) status = p->run(p, &err);
  assert(status <= 0);
  hostq_end(q, p, status, &err);
  hostq_free(q, p);
}

/* --- what pieces do --- */

/* The blocks may overlap, or be the same. */
static int hostq_move(rt_device *d, const rt_copy *c, xlac_error *err) {
  (void)d, (void)err;
  memmove(c->to, c->from, c->bytes);
  return 0;
}

static int hostq_run_copy(hostq_piece *p, xlac_error *err) {
  const rt_copy *c = &p->u.copy.copy;
  return c->bytes && c->to != c->from ? p->u.copy.fn(p->u.copy.device, c, err) : 0;
}

static int hostq_run_host(hostq_piece *p, xlac_error *err) {
  return p->u.host.fn(p->u.host.ctx, err);
}

/* Errors of the program fail the piece, and so its event; the queue goes on. */
static int hostq_run_call(hostq_piece *p, xlac_error *err) {
  return rt_call(p->u.call.exe, &p->u.call.options, p->list, p->u.call.results, err);
}

static int hostq_run_nothing(hostq_piece *p, xlac_error *err) {
  (void)p, (void)err;
  return 0;
}

/* --- who enqueues: any thread --- */

static void hostq_set_up(host_queue *q) {
  pthread_mutex_init(&q->lock, NULL);
  q->process = getpid();
  q->first = NULL;
  q->last = &q->first;
  q->failed.code = 0;
  rt_task_init(&q->task, q->lane, hostq_run_part);
}

/* A child begins anew: what was enqueued before fork is the parent's. */
static void hostq_enter_process(host_queue *q) {
  if (q->process == getpid()) return;
  q->waits = (hostq_events){NULL, 0, 0};
  hostq_set_up(q);
}

/* NULL when out of memory, which hostq_add says. */
static hostq_piece *hostq_piece_new(host_queue *q, size_t n_list, int (*run)(hostq_piece *, xlac_error *)) {
  hostq_piece *p = base_malloc(q->alloc, sizeof *p + n_list * sizeof *p->list);
  if (!p) return NULL;
  memset(p, 0, sizeof *p);
  p->run = run;
  return p;
}

/* Takes p; the caller's event is made before anything else changes. */
static int hostq_add(host_queue *q, hostq_piece *p, rt_event **done, xlac_error *err) {
  if (!p) return base_oom(err, "a piece of work");
  int status = done ? rt_event_create(&p->done, q->alloc, err) : 0;
  if (status) {
    base_free(q->alloc, p);
    return status;
  }
  if (done) *done = rt_event_retain(p->done);
  hostq_enter_process(q);
  pthread_mutex_lock(&q->lock);
  assert(*q->last == NULL && p->next == NULL);
  p->n_waits = q->waits.n;
  p->waits = q->waits.items;
  q->waits = (hostq_events){NULL, 0, 0};
  *q->last = p;
  q->last = &p->next;
  pthread_mutex_unlock(&q->lock);
  rt_task_post(&q->task);
  return 0;
}

/* The event is kept for the piece that comes next, whoever enqueues it. */
static int hostq_wait_for(rt_queue *queue, rt_event *e, xlac_error *err) {
  host_queue *q = hostq_of(queue);
  hostq_enter_process(q);
  pthread_mutex_lock(&q->lock);
  bool ok = BASE_VEC_PUSH(q->alloc, &q->waits, e);
  if (ok) rt_event_retain(e);
  pthread_mutex_unlock(&q->lock);
  return ok ? 0 : base_oom(err, "a queue");
}

static int hostq_copy(rt_queue *queue, const rt_copy *copy, rt_event **done, xlac_error *err) {
  host_queue *q = hostq_of(queue);
  hostq_piece *p = hostq_piece_new(q, 0, hostq_run_copy);
  if (p) {
    p->u.copy.copy = *copy;
    p->u.copy.fn = q->copy;
    p->u.copy.device = queue->device;
  }
  return hostq_add(q, p, done, err);
}

static int hostq_host_call(rt_queue *queue, int (*fn)(void *ctx, xlac_error *err), void *ctx, rt_event **done,
                           xlac_error *err) {
  host_queue *q = hostq_of(queue);
  hostq_piece *p = hostq_piece_new(q, 0, hostq_run_host);
  if (p) p->u.host.fn = fn;
  if (p) p->u.host.ctx = ctx;
  return hostq_add(q, p, done, err);
}

/* The two lists are copied behind the piece: the caller's may be gone when it runs. */
static int hostq_execute(rt_queue *queue, const rt_executable *exe, const rt_call_options *options,
                         void *const *arguments, void *const *results, rt_event **done, xlac_error *err) {
  host_queue *q = hostq_of(queue);
  uint32_t n = exe->n_arguments, m = exe->n_results;
  hostq_piece *p = hostq_piece_new(q, (size_t)n + m, hostq_run_call);
  if (p) {
    p->u.call.exe = exe;
    p->u.call.options = *options;
    p->u.call.results = p->list + n;
    if (n) memcpy(p->list, arguments, n * sizeof *p->list);
    if (m) memcpy(p->list + n, results, m * sizeof *p->list);
  }
  return hostq_add(q, p, done, err);
}

static int hostq_record(rt_queue *queue, rt_event **done, xlac_error *err) {
  host_queue *q = hostq_of(queue);
  hostq_piece *p = hostq_piece_new(q, 0, hostq_run_nothing);
  if (p) p->records = true;
  return hostq_add(q, p, done, err);
}

/* --- who would wait --- */

typedef struct hostq_help_until {
  host_queue *q;
  rt_event *e;
} hostq_help_until;

/* Whether there is something to do before the event is over: a piece that waits for nothing. A piece that is posted is
 * there as long as nobody else takes it, and the queue's task is this thread's now. */
static bool hostq_helps(void *ctx) {
  const hostq_help_until *u = ctx;
  if (rt_event_poll(u->e, NULL) != RT_EVENT_PENDING) return false;
  pthread_mutex_lock(&u->q->lock);
  const hostq_piece *p = u->q->first;
  pthread_mutex_unlock(&u->q->lock);
  for (uint32_t i = 0; p && i < p->n_waits; i++)
    if (rt_event_poll(p->waits[i], NULL) == RT_EVENT_PENDING) return false;
  return p != NULL;
}

static void hostq_help(rt_queue *queue, rt_event *until) {
  host_queue *q = hostq_of(queue);
  hostq_help_until u = {q, until};
  if (q->process == getpid()) rt_task_help_while(&q->task, hostq_helps, &u);
}

/* Nobody enqueues any more. The queue's thread has gone when its memory goes. */
static void hostq_destroy(rt_queue *queue) {
  host_queue *q = hostq_of(queue);
  hostq_enter_process(q);
  while (!rt_task_help(&q->task) && !rt_task_wait(&q->task, 1)) { /* help: there may be no thread to be had */
  }
  assert(!q->first);
  rt_lane_destroy(q->lane);
  for (uint32_t i = 0; i < q->waits.n; i++) rt_event_release(q->waits.items[i]);
  BASE_VEC_FREE(q->alloc, &q->waits);
  pthread_mutex_destroy(&q->lock);
  base_free(q->alloc, q);
}

static const rt_queue_vtable host_queue_vtable = {.destroy = hostq_destroy,
                                                  .wait_for = hostq_wait_for,
                                                  .copy = hostq_copy,
                                                  .host_call = hostq_host_call,
                                                  .execute = hostq_execute,
                                                  .record = hostq_record,
                                                  .help = hostq_help};

int rt_host_queue_create(rt_device *d, base_alloc alloc, rt_queue **out, xlac_error *err) {
  assert(d->facts.spaces[0].host_visible);
  return rt_host_queue_create_with(d, hostq_move, alloc, out, err);
}

int rt_host_queue_create_with(rt_device *d, rt_copy_fn *copy, base_alloc alloc, rt_queue **out, xlac_error *err) {
  host_queue *q = base_malloc(alloc, sizeof *q);
  if (!q) return base_oom(err, "a queue");
  memset(q, 0, sizeof *q);
  q->alloc = alloc;
  q->copy = copy;
  int status = rt_lane_create(&q->lane, 1, alloc, err);
  if (status) {
    base_free(alloc, q);
    return status;
  }
  hostq_set_up(q);
  q->queue = (rt_queue){.vtable = &host_queue_vtable, .device = rt_device_retain(d)};
  *out = &q->queue;
  return 0;
}
