/* The state is an atomic word, so that polling takes no lock; the lock guards the list of waiters and the
 * way from pending to set. Release and acquire on the word order what the work wrote before what a waiter
 * reads. */
#include "event.h"
#include "../base/export.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#define EVENT_POLL_NANOSECONDS 20000000

/* Who is to be told. Kept in order, the first first. */
typedef struct event_waiter {
  struct event_waiter *next;
  rt_event_fn *fn;
  void *ctx;
} event_waiter;

struct rt_event {
  base_alloc alloc;
  atomic_uint refs;
  _Atomic uint32_t state; /* rt_event_state; leaves PENDING once, under the lock */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  event_waiter *first, **last; /* NULL once it is set */
  xlac_error why;              /* of a failed one; never changes after it is set */
};

BASE_EXPORT int rt_event_create(rt_event **out, base_alloc alloc, xlac_error *err) {
  rt_event *e = base_malloc(alloc, sizeof *e);
  if (!e) return base_oom(err, "an event");
  memset(e, 0, sizeof *e);
  e->alloc = alloc;
  atomic_init(&e->refs, 1);
  atomic_init(&e->state, RT_EVENT_PENDING);
  pthread_mutex_init(&e->lock, NULL);
  pthread_cond_init(&e->changed, NULL);
  e->last = &e->first;
  *out = e;
  return 0;
}

BASE_EXPORT rt_event *rt_event_retain(rt_event *e) {
  unsigned before = atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
  assert(before > 0 && "nobody holds what is gone");
  (void)before;
  return e;
}

/* The list has been taken off the event, or nobody else holds the event. */
static void event_free_waiters(rt_event *e, event_waiter *first) {
  for (event_waiter *w = first, *next; w; w = next) {
    next = w->next;
    base_free(e->alloc, w);
  }
}

BASE_EXPORT void rt_event_release(rt_event *e) {
  if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1) return;
  event_free_waiters(e, e->first);
  pthread_mutex_destroy(&e->lock);
  pthread_cond_destroy(&e->changed);
  base_free(e->alloc, e);
}

static rt_event_state event_state(const rt_event *e) {
  return (rt_event_state)atomic_load_explicit(&e->state, memory_order_acquire);
}

/* Waiters are called without the lock, so that they may ask the event how it stands. A reference is held meanwhile:
 * what they do may drop the last one that others have. */
BASE_EXPORT void rt_event_set(rt_event *e, const xlac_error *why) {
  assert(!why || why->code);
  rt_event_retain(e);
  pthread_mutex_lock(&e->lock);
  assert(event_state(e) == RT_EVENT_PENDING && "an event is set once");
  if (why) e->why = *why;
  event_waiter *first = e->first;
  e->first = NULL;
  e->last = &e->first;
  atomic_store_explicit(&e->state, why ? RT_EVENT_FAILED : RT_EVENT_READY, memory_order_release);
  pthread_cond_broadcast(&e->changed);
  pthread_mutex_unlock(&e->lock);
  for (const event_waiter *w = first; w; w = w->next) w->fn(w->ctx, why ? &e->why : NULL);
  event_free_waiters(e, first);
  rt_event_release(e);
}

BASE_EXPORT rt_event_state rt_event_poll(rt_event *e, xlac_error *why) {
  rt_event_state state = event_state(e);
  if (state == RT_EVENT_FAILED && why) *why = e->why;
  return state;
}

/* Until it is set, or some milliseconds are over. */
static void event_doze(rt_event *e) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_nsec += EVENT_POLL_NANOSECONDS;
  t.tv_sec += t.tv_nsec / 1000000000;
  t.tv_nsec %= 1000000000;
  pthread_mutex_lock(&e->lock);
  if (event_state(e) == RT_EVENT_PENDING) pthread_cond_timedwait(&e->changed, &e->lock, &t);
  pthread_mutex_unlock(&e->lock);
}

BASE_EXPORT int rt_event_wait(rt_event *e, bool (*interrupted)(void *ctx), void *ctx, xlac_error *err) {
  while (event_state(e) == RT_EVENT_PENDING) {
    event_doze(e);
    if (event_state(e) == RT_EVENT_PENDING && interrupted && interrupted(ctx))
      return base_fail(err, XLAC_E_INTERRUPTED, "waiting for an event was interrupted");
  }
  if (event_state(e) == RT_EVENT_READY) return 0;
  assert(e->why.code > 0);
  if (err) *err = e->why;
  return -e->why.code;
}

/* The waiter is made before the lock is taken: allocation may be the caller's, and slow. */
BASE_EXPORT int rt_event_on_ready(rt_event *e, rt_event_fn *fn, void *ctx, xlac_error *err) {
  assert(fn);
  event_waiter *w = base_malloc(e->alloc, sizeof *w);
  if (!w) return base_oom(err, "a callback of an event");
  *w = (event_waiter){.fn = fn, .ctx = ctx};
  pthread_mutex_lock(&e->lock);
  bool pending = event_state(e) == RT_EVENT_PENDING;
  if (pending) {
    *e->last = w;
    e->last = &w->next;
  }
  pthread_mutex_unlock(&e->lock);
  if (pending) return 0;
  base_free(e->alloc, w);
  fn(ctx, event_state(e) == RT_EVENT_FAILED ? &e->why : NULL);
  return 0;
}
