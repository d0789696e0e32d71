/* A lane runs tasks on threads of its own, each task's parts in order and by one thread at a time. A task
 * is in one of three states: at rest, queued, or run by somebody. Threads start when a task is posted and
 * none is free. */
#include "lane.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* All of a task but `idle` changes under its lane's lock. Setting `idle` is the last thing a thread does to a task,
 * since its memory may be gone a moment later. */

/* What timed waits go by: macOS has no choice of clocks for condition variables. */
#if defined(__APPLE__)
#define LANE_CLOCK CLOCK_REALTIME
#else
#define LANE_CLOCK CLOCK_MONOTONIC
#endif

enum { LANE_MAX_THREADS = 256, LANE_SPINS = 300 };
enum { LANE_TASK_RESTS, LANE_TASK_QUEUED, LANE_TASK_RUNS };

struct rt_lane {
  base_alloc alloc;
  uint32_t size, limit;    /* limit: of threads, less than size once the system refused one */
  _Atomic int64_t process; /* whose threads these are; negative while that process sets the lane up again after fork */
  pthread_mutex_t lock;
  pthread_cond_t work, finished;
  rt_task *first, *last;
  uint32_t asleep, waiting; /* threads of the lane, and of those who wait for tasks */
  _Atomic uint32_t started;
  bool stopping;
  pthread_t threads[];
};

/* The process's own: also what a forked child does, for the parent's threads and locks are not there. */
static void lane_set_up(rt_lane *l) {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
#if !defined(__APPLE__)
  pthread_condattr_setclock(&monotonic, LANE_CLOCK);
#endif
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->work, NULL);
  pthread_cond_init(&l->finished, &monotonic);
  pthread_condattr_destroy(&monotonic);
  l->first = l->last = NULL;
  l->asleep = l->waiting = 0;
  l->limit = l->size;
  l->stopping = false;
  atomic_store(&l->started, 0);
}

/* False in a child of fork until it first posts. */
static bool lane_is_ours(const rt_lane *l) {
  return atomic_load(&l->process) == (int64_t)getpid();
}

/* One thread of a forked child sets the lane up again, the others wait for it. */
static void lane_enter_process(rt_lane *l) {
  int64_t me = (int64_t)getpid(), seen = atomic_load(&l->process);
  while (seen != me) {
    if (seen == -me) {
      sched_yield();
      seen = atomic_load(&l->process);
    } else if (atomic_compare_exchange_weak(&l->process, &seen, -me)) {
      lane_set_up(l);
      atomic_store(&l->process, me);
      return;
    }
  }
}

/* --- under the lock --- */

static void lane_unlink(rt_lane *l, rt_task *t) {
  *(t->before ? &t->before->after : &l->first) = t->after;
  *(t->after ? &t->after->before : &l->last) = t->before;
  t->before = t->after = NULL;
}

static void lane_append(rt_lane *l, rt_task *t) {
  t->before = l->last;
  t->after = NULL;
  *(l->last ? &l->last->after : &l->first) = t;
  l->last = t;
  t->state = LANE_TASK_QUEUED;
}

/* Its parts one after another, while `more` (NULL: always) says so; false where parts are left. The last touch of t
 * sets it idle. */
static bool lane_run_while(rt_lane *l, rt_task *t, bool (*more)(void *ctx), void *ctx) {
  t->state = LANE_TASK_RUNS;
  while (t->run_parts < t->posted) {
    uint32_t part = t->run_parts;
    pthread_mutex_unlock(&l->lock);
    bool runs = !more || more(ctx);
    if (runs) t->run(t, part);
    pthread_mutex_lock(&l->lock);
    if (!runs) return false;
    t->run_parts++;
  }
  t->state = LANE_TASK_RESTS;
  atomic_store_explicit(&t->idle, true, memory_order_release);
  if (l->waiting) pthread_cond_broadcast(&l->finished);
  return true;
}

static void lane_run(rt_lane *l, rt_task *t) {
  bool all = lane_run_while(l, t, NULL, NULL);
  assert(all);
  (void)all;
}

/* Until the lane is destroyed, which is after its last task. */
static void *lane_main(void *arg) {
  rt_lane *l = arg;
#ifdef __linux__
  prctl(PR_SET_NAME, "xlac-lane", 0, 0, 0);
#endif
  pthread_mutex_lock(&l->lock);
  while (!l->stopping) {
    rt_task *t = l->first;
    if (t) {
      lane_unlink(l, t);
      lane_run(l, t);
      continue;
    }
    l->asleep++;
    pthread_cond_wait(&l->work, &l->lock);
    l->asleep--;
  }
  pthread_mutex_unlock(&l->lock);
  return NULL;
}

/* One more, if none is free. They take no signals: those are for the threads of whoever uses the library. */
static void lane_start_thread(rt_lane *l) {
  uint32_t n = atomic_load(&l->started);
  if (n >= l->limit) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&l->threads[n], NULL, lane_main, l) == 0)
    atomic_store(&l->started, n + 1);
  else
    l->limit = n;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* --- lanes --- */

/* No thread is made yet. */
int rt_lane_create(rt_lane **out, uint32_t threads, base_alloc alloc, xlac_error *err) {
  if (threads > LANE_MAX_THREADS)
    return base_fail(err, XLAC_E_TOO_LARGE, "a lane of %u threads was asked for; at most %d are allowed",
                     (unsigned)threads, (int)LANE_MAX_THREADS);
  rt_lane *l = base_malloc(alloc, sizeof *l + threads * sizeof *l->threads);
  if (!l) return base_oom(err, "a lane");
  memset(l, 0, sizeof *l);
  l->alloc = alloc;
  l->size = threads;
  lane_set_up(l);
  atomic_store(&l->process, (int64_t)getpid());
  *out = l;
  return 0;
}

/* Tasks must be idle. In a forked child there is nobody to stop, only memory to free. */
void rt_lane_destroy(rt_lane *l) {
  if (!l) return;
  if (lane_is_ours(l)) {
    pthread_mutex_lock(&l->lock);
    assert(!l->first && !l->waiting);
    l->stopping = true;
    pthread_cond_broadcast(&l->work);
    pthread_mutex_unlock(&l->lock);
    uint32_t n = atomic_load(&l->started);
    for (uint32_t i = 0; i < n; i++) pthread_join(l->threads[i], NULL);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->work);
    pthread_cond_destroy(&l->finished);
  }
  base_free(l->alloc, l);
}

uint32_t rt_lane_size(const rt_lane *l) {
  return l->size;
}

uint32_t rt_lane_started(const rt_lane *l) {
  return lane_is_ours(l) ? atomic_load(&l->started) : 0;
}

/* --- tasks --- */

void rt_task_init(rt_task *t, rt_lane *lane, void (*run)(rt_task *t, uint32_t part)) {
  *t = (rt_task){.run = run, .lane = lane};
  atomic_init(&t->idle, true);
}

/* To be run by a thread of the lane's, under the lock. */
static void lane_hand_over(rt_lane *l, rt_task *t) {
  lane_append(l, t);
  if (l->asleep)
    pthread_cond_signal(&l->work);
  else
    lane_start_thread(l);
}

void rt_task_post(rt_task *t) {
  rt_lane *l = t->lane;
  lane_enter_process(l);
  pthread_mutex_lock(&l->lock);
  assert(!l->stopping);
  t->posted++;
  atomic_store_explicit(&t->idle, false, memory_order_relaxed);
  if (t->state == LANE_TASK_RESTS) lane_hand_over(l, t);
  pthread_mutex_unlock(&l->lock);
}

/* Runs a task that is still queued on this thread: who would wait may as well work. */
bool rt_task_help(rt_task *t) {
  rt_task_help_while(t, NULL, NULL);
  return rt_task_is_idle(t);
}

void rt_task_help_while(rt_task *t, bool (*more)(void *ctx), void *ctx) {
  rt_lane *l = t->lane;
  if (rt_task_is_idle(t)) return;
  pthread_mutex_lock(&l->lock);
  if (t->state == LANE_TASK_QUEUED) {
    lane_unlink(l, t);
    if (!lane_run_while(l, t, more, ctx)) lane_hand_over(l, t);
  }
  pthread_mutex_unlock(&l->lock);
}

/* As an absolute time, which is what condition variables take. */
static struct timespec lane_deadline(double seconds) {
  struct timespec t;
  clock_gettime(LANE_CLOCK, &t);
  int64_t nanoseconds = t.tv_nsec + (int64_t)(seconds * 1e9);
  t.tv_sec += (time_t)(nanoseconds / 1000000000);
  t.tv_nsec = (long)(nanoseconds % 1000000000);
  return t;
}

static void lane_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* Spins for a moment first: short tasks end sooner than a thread can be put to sleep. */
bool rt_task_wait(rt_task *t, double seconds) {
  rt_lane *l = t->lane;
  for (int i = 0; i < LANE_SPINS && !rt_task_is_idle(t); i++) lane_pause();
  if (rt_task_is_idle(t)) return true;
  struct timespec deadline = lane_deadline(seconds);
  int status = 0;
  pthread_mutex_lock(&l->lock);
  l->waiting++;
  while (!rt_task_is_idle(t) && status == 0) status = pthread_cond_timedwait(&l->finished, &l->lock, &deadline);
  l->waiting--;
  pthread_mutex_unlock(&l->lock);
  return rt_task_is_idle(t);
}

/* The part that is being run is waited for; later ones are dropped. */
void rt_task_cancel(rt_task *t) {
  rt_lane *l = t->lane;
  if (rt_task_is_idle(t)) return;
  pthread_mutex_lock(&l->lock);
  if (t->state == LANE_TASK_QUEUED) {
    lane_unlink(l, t);
    t->state = LANE_TASK_RESTS;
    atomic_store_explicit(&t->idle, true, memory_order_relaxed);
  }
  t->posted = t->run_parts + (t->state == LANE_TASK_RUNS);
  l->waiting++;
  while (t->state != LANE_TASK_RESTS) pthread_cond_wait(&l->finished, &l->lock);
  l->waiting--;
  pthread_mutex_unlock(&l->lock);
}
