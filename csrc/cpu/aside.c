/* Threads that may be left behind. The caller and each thread hold the meeting place; whoever goes last removes it.
 *
 * When the process ends, libraries give back what their functions still work on. So threads that are left behind are
 * stopped before, where they are: for that, the place and what it knows of them stay for good (some hundred bytes). */
#include "aside.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ASIDE_POLL_NS = 10 * 1000 * 1000, ASIDE_MOST = 64 /* threads */ };

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

/* A signal that nobody else uses. */
static int aside_signal(void) {
  return SIGRTMAX - 3;
}

static void aside_leave_place(aside_place *p) {
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

static void *aside_main(void *arg) {
  aside_item *item = arg;
  aside_place *p = item->place;
  void *library = item->library;
  item->run(item->memory);
  pthread_mutex_lock(&p->lock);
  item->over = true;
  if (p->left) free(item->memory); /* else it is the caller's from here on */
  pthread_cond_signal(&p->change);
  aside_leave_place(p);
  if (library) dlclose(library);
  return NULL;
}

static bool aside_thread(aside_item *item) {
  pthread_attr_t attr;
  sigset_t all, before;
  if (pthread_attr_init(&attr)) return false;
  sigfillset(&all); /* signals are for the threads of whoever uses the library */
  sigdelset(&all, aside_signal());
  pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool ok = pthread_create(&item->thread, &attr, aside_main, item) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  return ok;
}

/* NULL where something is lacking. Not under the lock. */
static aside_item *aside_start(const cpu_aside *a, aside_place *p, uint64_t number) {
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

/* Waits for some item to be over: its index in `items`, of which there are n. -1: it is to stop. */
static int aside_wait(const cpu_aside *a, aside_place *p, aside_item *const *items, uint32_t n) {
  for (;;) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += ASIDE_POLL_NS;
    if (until.tv_nsec >= 1000000000) {
      until.tv_nsec -= 1000000000;
      until.tv_sec++;
    }
    int found = -1, late = 0;
    pthread_mutex_lock(&p->lock);
    while (found < 0 && late == 0) {
      for (uint32_t i = 0; i < n && found < 0; i++)
        if (items[i]->over) found = (int)i;
      if (found < 0) late = pthread_cond_timedwait(&p->change, &p->lock, &until);
    }
    pthread_mutex_unlock(&p->lock);
    if (found >= 0) return found;
    if (a->stops(a->ctx)) return -1;
  }
}

/* For good: the process is about to end. */
static void aside_park_here(int signal_) {
  (void)signal_;
  for (;;) pause();
}

/* At the end of the process. The thread is there as long as it is not over, which it says under the lock. The signal
 * is there at once where the thread is running, and else when it would run. */
static void aside_park(void *arg) {
  aside_item *item = arg;
  struct sigaction action = {.sa_handler = aside_park_here};
  sigfillset(&action.sa_mask);
  pthread_mutex_lock(&item->place->lock);
  bool alive = !item->over && sigaction(aside_signal(), &action, NULL) == 0;
  if (alive) pthread_kill(item->thread, aside_signal());
  pthread_mutex_unlock(&item->place->lock);
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
      (void)__cxa_atexit(aside_park, items[i], &__dso_handle);
  }
  pthread_mutex_unlock(&p->lock);
}

static uint64_t aside_items(const cpu_aside *a, aside_place *p, bool *left) {
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

uint64_t cpu_aside_run(const cpu_aside *a, bool *left) {
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
