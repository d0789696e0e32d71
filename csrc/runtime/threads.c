#include "threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* A call of rt_parallel_for is a job on its caller's stack, hung into the pool's list while it has ranges to give
 * away. The caller works on its own job until no range is left, so every call ends even if no worker ever comes. A
 * worker holds a job only while it is counted in `active`, which changes under the lock; the caller leaves when the job
 * is unlinked and `active` is 0. */

enum { MAX_RANGES = 1024, MAX_THREADS = 4096, SPINS = 300, ASK_NANOSECONDS = 20000000 };

typedef struct pool_job {
  void (*fn)(void *ctx, size_t begin, size_t end);
  void *ctx;
  size_t n, length, count; /* ranges of `length`, `count` of them */
  rt_stop *stop;           /* or NULL */
  _Atomic size_t next;     /* range to give away */
  _Atomic uint32_t active; /* workers on it */
  struct pool_job *after;
} pool_job;

struct rt_pool {
  base_alloc alloc;
  uint32_t size, limit;    /* limit: of workers, less than size - 1 once the system refused one */
  _Atomic int64_t process; /* whose threads these are; negative while that process sets the pool up again after fork */
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  pool_job *jobs;
  _Atomic uint32_t started;
  _Atomic uint64_t posted; /* counts jobs, for workers that spin */
  bool stopping, spins;
  pthread_t threads[];
};

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* At most MAX_RANGES, so that a tiny grain costs little; fixed, because the cuts must not depend on the threads. */
static size_t range_length(size_t n, size_t grain) {
  assert(n > 0 && grain > 0);
  size_t grains = (n - 1) / grain + 1;
  return grain * ((grains - 1) / MAX_RANGES + 1);
}

static void run_range(pool_job *job, size_t i) {
  size_t begin = i * job->length, rest = job->n - begin;
  assert(begin < job->n);
  job->fn(job->ctx, begin, begin + (rest < job->length ? rest : job->length));
}

static void run_ranges(pool_job *job) {
  size_t i;
  while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->count) run_range(job, i);
}

/* What this thread is doing in pools. A thread is in several at once only where a custom call in one runs a program in
 * another. Not a thread-specific key for each pool: a process has about a thousand of these, and programs are more. */
enum { MAX_NESTED = 8 };
typedef struct pool_here {
  const rt_pool *pool;
  const void *inside; /* while a range is run: the pool in a caller, its `threads` in a worker; else NULL */
  rt_stop *stop;      /* the wish to stop that is heeded, or NULL */
  bool own;           /* it has been heeded since the range began, by what runs in it */
} pool_here;
static _Thread_local pool_here heres[MAX_NESTED]; /* free where both are NULL */

/* NULL where the thread does nothing in the pool. */
static pool_here *here_in(const rt_pool *p) {
  for (int i = 0; i < MAX_NESTED; i++)
    if (heres[i].pool == p && (heres[i].inside || heres[i].stop)) return &heres[i];
  return NULL;
}

/* The same, or a free one; NULL where it is in too many other pools. */
static pool_here *here_or_new(const rt_pool *p) {
  pool_here *h = here_in(p);
  for (int i = 0; !h && i < MAX_NESTED; i++)
    if (!heres[i].inside && !heres[i].stop) h = &heres[i];
  if (h) h->pool = p;
  return h;
}

static const void *inside_of(const rt_pool *p) {
  const pool_here *h = here_in(p);
  return h ? h->inside : NULL;
}

static rt_stop *stop_of(const rt_pool *p) {
  const pool_here *h = p ? here_in(p) : NULL;
  return h ? h->stop : NULL;
}

/* false: there is no room, and the range must not be left to the pool. */
static bool set_inside(const rt_pool *p, const void *inside) {
  pool_here *h = here_or_new(p);
  if (h) h->inside = inside;
  return h != NULL;
}

static void set_stop(const rt_pool *p, rt_stop *stop, bool own) {
  pool_here *h = here_or_new(p);
  if (!h) return; /* the thread is only not stopped */
  h->stop = stop;
  h->own = own && stop && h->inside;
}

/* What a nested call heeds: not what the range itself is stopped by, but what was wished inside of it. */
static rt_stop *own_stop_of(const rt_pool *p) {
  const pool_here *h = p ? here_in(p) : NULL;
  return h && h->own ? h->stop : NULL;
}

static bool is_stopped(const rt_stop *stop) {
  return atomic_load_explicit(&stop->stopped, memory_order_relaxed);
}

static bool ask(rt_stop *stop) {
  if (!is_stopped(stop) && stop->asked(stop->ctx)) atomic_store_explicit(&stop->stopped, true, memory_order_relaxed);
  return is_stopped(stop);
}

/* On the caller's thread. Once it is to stop, no range is left to give away. */
static bool asked_to_stop(pool_job *job) {
  if (!job->stop) return false;
  if (!ask(job->stop)) return false;
  atomic_store_explicit(&job->next, job->count, memory_order_relaxed);
  return true;
}

static void run_ranges_of_caller(pool_job *job) {
  size_t i;
  while ((i = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->count && !asked_to_stop(job))
    run_range(job, i);
}

static void run_inline(pool_job *job) {
  for (size_t i = atomic_load_explicit(&job->next, memory_order_relaxed); i < job->count && !asked_to_stop(job); ++i)
    run_range(job, i);
}

/* Under the lock: the first job with ranges left. */
static pool_job *find_job(const rt_pool *p) {
  pool_job *job = p->jobs;
  while (job && atomic_load_explicit(&job->next, memory_order_relaxed) >= job->count) job = job->after;
  return job;
}

/* Holding the lock: sleeps until there may be work, at first by looking on for some microseconds without it. */
static void await_work(rt_pool *p) {
  uint64_t seen = atomic_load(&p->posted);
  if (p->spins) {
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&p->posted, memory_order_relaxed) == seen; ++i) pause_cpu();
    pthread_mutex_lock(&p->lock);
  }
  if (atomic_load(&p->posted) == seen && !p->stopping) pthread_cond_wait(&p->work, &p->lock);
}

static void help_job(rt_pool *p, pool_job *job) {
  atomic_fetch_add(&job->active, 1);
  pthread_mutex_unlock(&p->lock);
  set_stop(p, job->stop, false);
  run_ranges(job);
  set_stop(p, NULL, false);
  pthread_mutex_lock(&p->lock);
  if (atomic_fetch_sub(&job->active, 1) == 1) pthread_cond_broadcast(&p->idle);
}

static void *worker_main(void *arg) {
  rt_pool *p = arg;
#ifdef __linux__
  prctl(PR_SET_NAME, "xlac-worker", 0, 0, 0);
#endif
  (void)set_inside(p, p->threads); /* a new thread is in no other pool */
  pthread_mutex_lock(&p->lock);
  for (;;) {
    pool_job *job = find_job(p);
    if (job)
      help_job(p, job);
    else if (p->stopping)
      break;
    else
      await_work(p);
  }
  pthread_mutex_unlock(&p->lock);
  return NULL;
}

/* Under the lock. Workers take no signals: those are for the threads of whoever uses the library. */
static void start_workers(rt_pool *p, size_t wanted) {
  if (wanted > p->limit) wanted = p->limit;
  uint32_t n = atomic_load(&p->started);
  if (n >= wanted) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  while (n < wanted && pthread_create(&p->threads[n], NULL, worker_main, p) == 0) ++n;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (n < wanted) p->limit = n;
  atomic_store(&p->started, n);
}

/* Before anybody works on it. */
static size_t left_of(const pool_job *job) {
  return job->count - atomic_load_explicit(&job->next, memory_order_relaxed);
}

static void post_job(rt_pool *p, pool_job *job) {
  size_t others = left_of(job) - 1;
  pthread_mutex_lock(&p->lock);
  assert(!p->stopping);
  start_workers(p, others);
  pool_job **last = &p->jobs;
  while (*last) last = &(*last)->after;
  *last = job;
  atomic_fetch_add(&p->posted, 1);
  if (others < atomic_load(&p->started)) {
    for (size_t i = 0; i < others; ++i) pthread_cond_signal(&p->work);
  } else {
    pthread_cond_broadcast(&p->work);
  }
  pthread_mutex_unlock(&p->lock);
}

/* Holding the lock: until a worker leaves a job. Workers don't ask whether to stop, and their ranges may be long: the
 * caller goes on asking while it waits for them. */
static void await_idle(rt_pool *p, pool_job *job) {
  if (!job->stop || is_stopped(job->stop)) {
    pthread_cond_wait(&p->idle, &p->lock);
    return;
  }
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += ASK_NANOSECONDS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_cond_timedwait(&p->idle, &p->lock, &until) != ETIMEDOUT) return;
  pthread_mutex_unlock(&p->lock);
  (void)ask(job->stop);
  pthread_mutex_lock(&p->lock);
}

static void retire_job(rt_pool *p, pool_job *job) {
  pthread_mutex_lock(&p->lock);
  pool_job **at = &p->jobs;
  while (*at != job) at = &(*at)->after;
  *at = job->after;
  if (p->spins && atomic_load(&job->active)) {
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < SPINS && atomic_load_explicit(&job->active, memory_order_relaxed); ++i) pause_cpu();
    pthread_mutex_lock(&p->lock);
  }
  while (atomic_load(&job->active)) await_idle(p, job);
  pthread_mutex_unlock(&p->lock);
}

/* What a process has of a pool before its first thread. After fork the child's copy may be in any state, so nothing of
 * it is used: not even a lock that a vanished thread may hold. */
static void set_up(rt_pool *p) {
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->idle, NULL);
  p->jobs = NULL;
  p->limit = p->size - 1;
  p->stopping = false;
  atomic_store(&p->started, 0);
}

static bool is_ours(const rt_pool *p) {
  return atomic_load(&p->process) == (int64_t)getpid();
}

/* One thread of a forked child sets the pool up again, the others wait for it. */
static void enter_process(rt_pool *p) {
  int64_t me = (int64_t)getpid(), seen = atomic_load(&p->process);
  while (seen != me) {
    if (seen == -me) {
      sched_yield();
      seen = atomic_load(&p->process);
    } else if (atomic_compare_exchange_weak(&p->process, &seen, -me)) {
      set_up(p);
      atomic_store(&p->process, me);
      return;
    }
  }
}

int rt_pool_create(rt_pool **out, uint32_t threads, base_alloc alloc, xlac_error *err) {
  uint32_t cpus = rt_cpu_count(), size = threads ? threads : cpus;
  if (size > MAX_THREADS)
    return base_fail(err, XLAC_E_TOO_LARGE, "a pool of %u threads was asked for; at most %d are allowed",
                     (unsigned)size, (int)MAX_THREADS);
  rt_pool *p = base_malloc(alloc, sizeof *p + (size - 1) * sizeof *p->threads);
  if (!p) return base_oom(err, "creating a thread pool");
  memset(p, 0, sizeof *p);
  p->alloc = alloc;
  p->size = size;
  p->spins = size <= cpus;
  set_up(p);
  atomic_store(&p->process, (int64_t)getpid());
  *out = p;
  return 0;
}

static void stop_workers(rt_pool *p) {
  pthread_mutex_lock(&p->lock);
  assert(!p->jobs);
  p->stopping = true;
  atomic_fetch_add(&p->posted, 1);
  pthread_cond_broadcast(&p->work);
  uint32_t n = atomic_load(&p->started);
  pthread_mutex_unlock(&p->lock);
  for (uint32_t i = 0; i < n; ++i) pthread_join(p->threads[i], NULL);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->work);
  pthread_cond_destroy(&p->idle);
}

void rt_pool_destroy(rt_pool *p) {
  if (!p) return;
  assert(!inside_of(p));
  if (is_ours(p)) stop_workers(p);
  base_free(p->alloc, p);
}

uint32_t rt_pool_size(const rt_pool *p) {
  return p->size;
}

uint32_t rt_pool_started(const rt_pool *p) {
  return is_ours(p) ? atomic_load(&p->started) : 0;
}

void rt_pool_heed(rt_pool *p, rt_stop *stop) {
  set_stop(p, stop, true);
}

bool rt_pool_stopping(rt_pool *p) {
  rt_stop *stop = stop_of(p);
  if (!stop) return false;
  return inside_of(p) == p->threads && !own_stop_of(p) ? is_stopped(stop) : ask(stop);
}

bool rt_pool_is_partial(rt_pool *p) {
  const rt_stop *stop = stop_of(p);
  return stop && stop->parts && stop->part + 1 < stop->parts;
}

/* The ranges of the caller's share. */
static void take_share(pool_job *job) {
  const rt_stop *stop = job->stop;
  uint64_t count = job->count, parts = stop->parts; /* the first parts have the more */
  atomic_init(&job->next, (size_t)((count * stop->part + parts - 1) / parts));
  job->count = (size_t)((count * (stop->part + 1) + parts - 1) / parts);
}

void rt_parallel_for(rt_pool *p, size_t n, size_t grain, void (*fn)(void *ctx, size_t begin, size_t end), void *ctx) {
  assert(fn);
  if (n == 0) return;
  pool_job job = {.fn = fn, .ctx = ctx, .n = n, .length = range_length(n, grain ? grain : 1)};
  job.count = (n - 1) / job.length + 1;
  bool nested = p && inside_of(p);
  if (p) job.stop = nested ? own_stop_of(p) : stop_of(p);
  if (job.stop && is_stopped(job.stop)) return;
  if (job.stop && job.stop->parts && !nested) take_share(&job);
  if (!p || p->size == 1 || left_of(&job) <= 1 || nested || !set_inside(p, p)) {
    run_inline(&job);
    return;
  }
  enter_process(p);
  post_job(p, &job);
  run_ranges_of_caller(&job);
  (void)set_inside(p, NULL);
  retire_job(p, &job);
}
