/* Streams, each a thread that takes work from its queue in order; events; functions of the host. Order (clocks.c) is
 * settled when work is enqueued, so what is found does not depend on when it is run. Objects that are destroyed are
 * kept, marked, so that their use is an error and not a crash. */
#include "sim.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { STREAM = 0x53545245, EVENT = 0x4556454e };

/* ---- running ---- */

static void release_event(sim_event *e) {
  if (--e->references == 0) free(e->capture_after), e->capture_after = NULL;
}

static uint64_t nanoseconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* With a seed, streams dawdle: what is wrong only at times has more chances. */
static void dawdle(const sim_stream *s) {
  uint64_t x = (sim.seed ^ (s->finished * 0x9e3779b97f4a7c15u) ^ (uint64_t)s->number) * 0xbf58476d1ce4e5b9u;
  struct timespec t = {.tv_nsec = (long)((x >> 40) % 200000)};
  nanosleep(&t, NULL);
}

static void execute(sim_stream *s, sim_work *w) {
  if (s->device->sticky != SUCCESS) return;
  pthread_mutex_unlock(&sim.lock);
  if (sim.seed != 0) dawdle(s);
  pthread_mutex_lock(&sim.executing);
  protect_enter();
  int result = s->device->sticky != SUCCESS ? SUCCESS : w->execute(w);
  protect_leave();
  pthread_mutex_unlock(&sim.executing);
  pthread_mutex_lock(&sim.lock);
  if (result != SUCCESS && s->device->sticky == SUCCESS) s->device->sticky = result;
}

/* The host learns of what is done by what the function tells it: from then on it is after all that came before the
 * function. */
static void call_host(sim_stream *s, sim_work *w) {
  if (s->device->sticky != SUCCESS) return; /* as the driver's documentation has it */
  pthread_mutex_unlock(&sim.lock);
  w->function(w->context);
  pthread_mutex_lock(&sim.lock);
}

static void run_one(sim_stream *s, sim_work *w) {
  sim_event *e = w->event;
  switch (w->kind) {
    case WORK_EXECUTE:
      execute(s, w);
      break;
    case WORK_CALL: {
      sim_point before = {.lane = w->op->lane, .tick = w->op->tick, .n_seen = w->op->n_seen, .seen = w->op->seen};
      clock_join(0, before);
      call_host(s, w);
      break;
    }
    case WORK_MEET:
      if (s->device->sticky == SUCCESS) nccl_meet(s, w);
      break;
    case WORK_WAIT:
      while (e->done < w->generation) pthread_cond_wait(&sim.changed, &sim.lock);
      break;
    case WORK_RECORD:
      if (e->done < w->generation) e->done = w->generation;
      e->nanoseconds = nanoseconds();
      break;
    default:
      break;
  }
  if (e != NULL) release_event(e);
  if (w->release != NULL) w->release(w);
}

static void unlink_stream(sim_stream *s) {
  sim_stream **at = &sim.streams;
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  clock_free_lane(s->lane);
}

/* Whoever makes a stream may have blocked all signals, but by one of them device memory is opened (protect.c). */
static void *run_stream(void *context) {
  sim_stream *s = context;
  bool end = false;
  sigset_t faults;
  sigemptyset(&faults);
  sigaddset(&faults, SIGSEGV);
  pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
  pthread_mutex_lock(&sim.lock);
  while (!end) {
    while (s->first == NULL) pthread_cond_wait(&sim.changed, &sim.lock);
    sim_work *w = s->first;
    run_one(s, w);
    s->first = w->next;
    if (s->first == NULL) s->last = &s->first;
    end = w->kind == WORK_END;
    free(w);
    s->finished++;
    if (end) unlink_stream(s);
    pthread_cond_broadcast(&sim.changed);
  }
  pthread_mutex_unlock(&sim.lock);
  return NULL;
}

static sim_stream *new_stream(sim_device *d, unsigned flags) {
  sim_stream *s = calloc(1, sizeof *s);
  *s =
      (sim_stream){.magic = STREAM, .number = ++sim.next_stream, .device = d, .flags = flags, .lane = clock_new_lane()};
  s->last = &s->first;
  s->next = sim.streams;
  sim.streams = s;
  int failed = pthread_create(&s->thread, NULL, run_stream, s);
  assert(failed == 0);
  (void)failed;
  pthread_detach(s->thread);
  return s;
}

sim_stream *stream_find(void *handle) {
  sim_device *d = current_device();
  if ((uintptr_t)handle > 2) return ((sim_stream *)handle)->magic == STREAM ? handle : NULL;
  if (d == NULL) return NULL;
  sim_stream **s = (uintptr_t)handle == 2 ? &d->per_thread : &d->legacy;
  if (*s == NULL) *s = new_stream(d, 0);
  return *s;
}

/* ---- enqueueing ---- */

static void append(sim_stream *s, sim_work *w) {
  w->next = NULL;
  *s->last = w;
  s->last = &w->next;
  s->enqueued++;
  pthread_cond_broadcast(&sim.changed);
}

void stream_record_event(sim_stream *s, sim_event *e) {
  sim_work *w = calloc(1, sizeof *w);
  e->recorded++;
  e->references++;
  e->point = clock_now(s->lane);
  *w = (sim_work){.kind = WORK_RECORD, .event = e, .generation = e->recorded};
  append(s, w);
}

void stream_wait_event(sim_stream *s, sim_event *e) {
  if (e->recorded == 0) return;
  sim_work *w = calloc(1, sizeof *w);
  e->references++;
  clock_join(s->lane, e->point);
  *w = (sim_work){.kind = WORK_WAIT, .event = e, .generation = e->recorded};
  append(s, w);
}

static void order_after(sim_stream *then, sim_stream *first) {
  sim_event *e = calloc(1, sizeof *e); /* kept by the two pieces of work; a few bytes each are left */
  stream_record_event(first, e);
  stream_wait_event(then, e);
}

/* Stream 0 and the streams that were not created as non-blocking are after each other. */
static void order_by_legacy(sim_stream *s) {
  sim_device *d = s->device;
  if ((s->flags & 1) != 0 || d->legacy == NULL) return;
  if (s != d->legacy) {
    if (d->legacy->enqueued > d->legacy->finished || d->legacy->enqueued > 0) order_after(s, d->legacy);
    return;
  }
  for (sim_stream *t = sim.streams; t != NULL; t = t->next)
    if (t != s && t->device == d && (t->flags & 1) == 0 && t->magic == STREAM && t->capture == NULL) order_after(s, t);
}

sim_op *stream_add(sim_stream *s, sim_work *w, const char *what, const char *name) {
  order_by_legacy(s);
  sim_op *op = w->op = clock_op(s->lane, s->number, what, intern(name));
  append(s, w);
  return op;
}

int stream_enqueue(sim_stream *s, sim_work *w, const char *what, const char *name) {
  if (s->capture != NULL) return graph_capture(s, w, what, intern(name));
  stream_add(s, w, what, name);
  return SUCCESS;
}

int stream_wait(sim_stream *s) {
  uint64_t target = s->enqueued;
  sim_point now = clock_now(s->lane);
  while (s->finished < target) pthread_cond_wait(&sim.changed, &sim.lock);
  clock_join(0, now);
  return s->device->sticky;
}

void streams_wait_all(sim_device *d) {
  for (bool again = true; again;) {
    again = false;
    for (sim_stream *s = sim.streams; s != NULL && !again; s = s->next) {
      if (s->device != d) continue;
      again = s->finished < s->enqueued; /* the list may change while it is waited for */
      stream_wait(s);
    }
  }
}

/* ---- entry points: streams ---- */

EXPORT int cuStreamCreate(void **stream, unsigned flags) {
  sim_device *d;
  ENTER_DEVICE(cuStreamCreate, &d);
  if (stream == NULL || flags > 1) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  *stream = new_stream(d, flags);
  sim.n_streams++;
  pthread_mutex_unlock(&sim.lock);
  return SUCCESS;
}

EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
  ENTER(cuStreamCreateWithPriority);
  (void)priority;
  return cuStreamCreate(stream, flags);
}

EXPORT int cuStreamDestroy_v2(void *stream) {
  ENTER_DEVICE(cuStreamDestroy_v2, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = (uintptr_t)stream > 2 ? stream_find(stream) : NULL;
  if (s != NULL) {
    sim_work *w = calloc(1, sizeof *w);
    w->kind = WORK_END;
    append(s, w);
    s->magic = 0;
    sim.n_streams--;
  }
  pthread_mutex_unlock(&sim.lock);
  return s != NULL ? SUCCESS : INVALID_HANDLE;
}

EXPORT int cuStreamQuery(void *stream) {
  ENTER_DEVICE(cuStreamQuery, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = s == NULL                   ? INVALID_HANDLE
               : s->capture != NULL        ? CAPTURE_UNSUPPORTED
               : s->finished < s->enqueued ? NOT_READY
                                           : SUCCESS;
  if (result == SUCCESS) result = stream_wait(s);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuStreamSynchronize(void *stream) {
  ENTER_DEVICE(cuStreamSynchronize, NULL);
  if (nccl_is_open("cuStreamSynchronize")) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = s == NULL ? INVALID_HANDLE : SUCCESS;
  if (result == SUCCESS && s->capture != NULL) result = s->capture_error = CAPTURE_UNSUPPORTED;
  if (result == SUCCESS) result = stream_wait(s);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

static sim_event *event_find(void *handle) {
  return handle != NULL && ((sim_event *)handle)->magic == EVENT ? handle : NULL;
}

EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  ENTER_DEVICE(cuStreamWaitEvent, NULL);
  (void)flags;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  sim_event *e = event_find(event);
  int result = s != NULL && e != NULL ? SUCCESS : INVALID_HANDLE;
  if (result == SUCCESS && (s->capture != NULL || e->capture != NULL))
    result = graph_capture_wait(s, e);
  else if (result == SUCCESS)
    stream_wait_event(s, e);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *), void *context) {
  ENTER_DEVICE(cuLaunchHostFunc, NULL);
  if (function == NULL) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = INVALID_HANDLE;
  if (s != NULL) {
    sim_work *w = calloc(1, sizeof *w);
    *w = (sim_work){.kind = WORK_CALL, .function = function, .context = context};
    result = stream_enqueue(s, w, "host function", "");
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

/* ---- entry points: events ---- */

EXPORT int cuEventCreate(void **event, unsigned flags) {
  ENTER_DEVICE(cuEventCreate, NULL);
  if (event == NULL) return INVALID_VALUE;
  sim_event *e = calloc(1, sizeof *e);
  *e = (sim_event){.magic = EVENT, .flags = flags, .references = 1};
  pthread_mutex_lock(&sim.lock);
  sim.n_events++;
  pthread_mutex_unlock(&sim.lock);
  *event = e;
  return SUCCESS;
}

EXPORT int cuEventDestroy_v2(void *event) {
  ENTER_DEVICE(cuEventDestroy_v2, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_event *e = event_find(event);
  if (e != NULL) {
    e->magic = 0;
    sim.n_events--;
    release_event(e);
  }
  pthread_mutex_unlock(&sim.lock);
  return e != NULL ? SUCCESS : INVALID_HANDLE;
}

EXPORT int cuEventRecord(void *event, void *stream) {
  ENTER_DEVICE(cuEventRecord, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  sim_event *e = event_find(event);
  int result = s != NULL && e != NULL ? SUCCESS : INVALID_HANDLE;
  if (result == SUCCESS && s->capture != NULL) {
    result = graph_capture_record(s, e);
  } else if (result == SUCCESS) {
    e->capture = NULL;
    order_by_legacy(s);
    stream_record_event(s, e);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

static int event_state(sim_event *e, bool wait) {
  if (e == NULL) return INVALID_HANDLE;
  if (e->capture != NULL) return CAPTURE_UNSUPPORTED;
  uint64_t target = e->recorded;
  sim_point point = e->point;
  if (e->done < target && !wait) return current_device()->sticky != SUCCESS ? current_device()->sticky : NOT_READY;
  while (e->done < target) pthread_cond_wait(&sim.changed, &sim.lock);
  if (target > 0) clock_join(0, point);
  return current_device()->sticky;
}

EXPORT int cuEventQuery(void *event) {
  ENTER_DEVICE(cuEventQuery, NULL);
  pthread_mutex_lock(&sim.lock);
  int result = event_state(event_find(event), false);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuEventSynchronize(void *event) {
  ENTER_DEVICE(cuEventSynchronize, NULL);
  pthread_mutex_lock(&sim.lock);
  int result = event_state(event_find(event), true);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  ENTER_DEVICE(cuEventElapsedTime, NULL);
  pthread_mutex_lock(&sim.lock);
  sim_event *a = event_find(start), *b = event_find(end);
  int result = SUCCESS;
  if (a == NULL || b == NULL || a->recorded == 0 || b->recorded == 0 || ((a->flags | b->flags) & 2) != 0)
    result = INVALID_HANDLE;
  else if (a->done < a->recorded || b->done < b->recorded)
    result = NOT_READY;
  else
    *milliseconds = (float)((double)((int64_t)(b->nanoseconds - a->nanoseconds)) / 1e6);
  pthread_mutex_unlock(&sim.lock);
  return result;
}
