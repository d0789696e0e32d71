/* Calls on detached threads, which a caller can abandon. Both hold the counted rendezvous; the last one frees it.
 *
 * When the process ends, libraries free what their functions still work on. So threads that are still in a call then
 * are cancelled before: a call lets itself be cancelled anywhere, which is for this moment only, since what the library
 * had locked stays locked. For that, the place and what it knows of the threads stay for good (some hundred bytes). */
#include "detached_call.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { ASIDE_POLL_NS = 10 * 1000 * 1000, ASIDE_EXIT_POLLS = 100, ASIDE_MOST = 64 /* threads */ };

/* Of the C++ ABI: atexit for functions that take something. */
extern int __cxa_atexit(void (*fn)(void *), void *arg, void *library);
extern void *__dso_handle __attribute__((visibility("hidden")));

typedef struct aside_place {
  pthread_mutex_t lock;
  pthread_cond_t change;
  uint32_t holders;
  bool left; /* nobody waits any more */
} aside_place;

typedef struct aside_item {
  aside_place *place;
  void (*run)(void *memory);
  void *memory, *library;
  uint64_t number;
  pthread_t thread;
  bool over;
} aside_item;

/* Under the lock, which it gives back. */
static void aside_leave_place(aside_place *p) {
  assert(p->holders > 0);
  bool last = --p->holders == 0;
  pthread_mutex_unlock(&p->lock);
  if (!last) return;
  pthread_cond_destroy(&p->change);
  pthread_mutex_destroy(&p->lock);
  free(p);
}

static void aside_free(aside_item *item) {
  free(item->memory);
  free(item);
}

/* The thread was cancelled in its call: the process is about to end. */
static void aside_cancelled(void *arg) {
  aside_item *item = arg;
  pthread_mutex_lock(&item->place->lock);
  item->over = true;
  pthread_cond_signal(&item->place->change);
  pthread_mutex_unlock(&item->place->lock);
}

/* Cancellable within `run` only: everywhere else the thread holds locks of ours. */
static void aside_call(aside_item *item) {
  int before;
  pthread_cleanup_push(aside_cancelled, item);
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before);
  item->run(item->memory);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  pthread_cleanup_pop(0);
}

/* The library is kept loaded by a reference of the thread's own: its code may still run when everybody
 * else has closed it. */
static void *aside_main(void *arg) {
  aside_item *item = arg;
  aside_place *p = item->place;
  void *library = item->library;
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  aside_call(item);
  pthread_mutex_lock(&p->lock);
  item->over = true;
  if (p->left) free(item->memory); /* else it is the caller's from here on */
  pthread_cond_signal(&p->change);
  aside_leave_place(p);
  if (library) dlclose(library);
  return NULL;
}

/* Detached: nobody may be there to join it. */
static bool aside_thread(aside_item *item) {
  pthread_attr_t attr;
  sigset_t all, before;
  if (pthread_attr_init(&attr)) return false;
  sigfillset(&all); /* signals are for the threads of whoever uses the library */
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool ok = pthread_create(&item->thread, &attr, aside_main, item) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return ok;
}

/* NULL where something is lacking. Not under the lock. */
static aside_item *aside_start(const rt_aside *a, aside_place *p, uint64_t number) {
  aside_item *item = calloc(1, sizeof *item);
  if (!item || !(item->memory = a->begin(a->ctx, number))) {
    free(item);
    return NULL;
  }
  item->place = p;
  item->run = a->run;
  item->number = number;
  item->library = a->library ? dlopen(a->library, RTLD_NOW | RTLD_NOLOAD) : NULL;
  pthread_mutex_lock(&p->lock);
  p->holders++;
  pthread_mutex_unlock(&p->lock);
  if ((!a->library || item->library) && aside_thread(item)) return item;
  pthread_mutex_lock(&p->lock);
  p->holders--;
  pthread_mutex_unlock(&p->lock);
  if (item->library) dlclose(item->library);
  aside_free(item);
  return NULL;
}

/* Waits, under the lock, for a change or the time to ask again. */
static int aside_wait_change(aside_place *p) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += ASIDE_POLL_NS;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    until.tv_sec++;
  }
  return pthread_cond_timedwait(&p->change, &p->lock, &until);
}

/* -1: none is. */
static int aside_find_over(aside_item *const *items, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (items[i]->over) return (int)i;
  return -1;
}

/* Waits for some item to be over: its index in `items`, of which there are n. -1: it is to stop. */
static int aside_wait(const rt_aside *a, aside_place *p, aside_item *const *items, uint32_t n) {
  for (;;) {
    int late = 0;
    pthread_mutex_lock(&p->lock);
    int found = aside_find_over(items, n);
    while (found < 0 && late == 0) {
      late = aside_wait_change(p);
      found = aside_find_over(items, n);
    }
    pthread_mutex_unlock(&p->lock);
    if (found >= 0) return found;
    if (a->stops(a->ctx)) return -1;
  }
}

/* At the end of the process. The thread is there as long as it is not over, which it says under the lock. It is gone
 * from the call when it has said so, which takes no longer than it takes the system to run it. */
static void aside_end(void *arg) {
  aside_item *item = arg;
  aside_place *p = item->place;
  pthread_mutex_lock(&p->lock);
  if (!item->over) pthread_cancel(item->thread);
  for (int polls = 0; !item->over && polls < ASIDE_EXIT_POLLS; polls++) (void)aside_wait_change(p);
  pthread_mutex_unlock(&p->lock);
}

/* What is under way goes on without a caller. */
static void aside_abandon(aside_place *p, aside_item **items, uint32_t n) {
  pthread_mutex_lock(&p->lock);
  p->left = true;
  p->holders++; /* the end of the process */
  for (uint32_t i = 0; i < n; i++) {
    if (items[i]->over)
      aside_free(items[i]);
    else
      (void)__cxa_atexit(aside_end, items[i], &__dso_handle);
  }
  pthread_mutex_unlock(&p->lock);
}

/* Up to `most` at a time, in order; items end in whatever order. Gives the number of items that are done. */
static uint64_t aside_items(const rt_aside *a, aside_place *p, bool *left) {
  aside_item *items[ASIDE_MOST];
  uint32_t n = 0, most = a->threads < 1 ? 1 : a->threads > ASIDE_MOST ? ASIDE_MOST : a->threads;
  uint64_t next = 0;
  bool more = true;
  while (n || (more && next < a->n)) {
    while (more && next < a->n && n < most) {
      aside_item *item = aside_start(a, p, next);
      more = item || n; /* what is under way may make room for it */
      if (!item) break;
      items[n++] = item;
      next++;
    }
    if (n == 0) break;
    int i = aside_wait(a, p, items, n);
    if (i < 0) {
      aside_abandon(p, items, n);
      *left = true;
      return next - n;
    }
    a->end(a->ctx, items[i]->number, items[i]->memory);
    aside_free(items[i]);
    items[i] = items[--n];
  }
  return next;
}

uint64_t rt_aside_run(const rt_aside *a, bool *left) {
  aside_place *p = calloc(1, sizeof *p);
  *left = false;
  if (!p) return 0;
  p->holders = 1;
  if (pthread_mutex_init(&p->lock, NULL) || pthread_cond_init(&p->change, NULL)) {
    free(p);
    return 0;
  }
  uint64_t done = aside_items(a, p, left);
  pthread_mutex_lock(&p->lock);
  aside_leave_place(p);
  return done;
}
