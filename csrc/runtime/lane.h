/* Lanes: queues of tasks with threads of their own, which go on while whoever posted a task does something else.
 *
 * A task lies in memory of its owner, who waits for it before that memory goes away. Its work comes in parts, posted
 * one by one and run in order, by one thread at a time. Nobody has to count on a lane's threads: a task that none of
 * them has begun is run by whoever waits for it, so that tasks that wait for tasks can't get stuck, whatever the number
 * of threads, and lanes without threads work too. Survives fork: a child starts fresh threads on first use; what was
 * queued is the parent's. */
#ifndef XLAC_RUNTIME_LANE_H
#define XLAC_RUNTIME_LANE_H

#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/status.h"

typedef struct rt_lane rt_lane;

typedef struct rt_task rt_task;
struct rt_task {
  void (*run)(rt_task *t, uint32_t part); /* any thread */
  rt_lane *lane;
  /* The rest is the lane's. */
  rt_task *before, *after; /* in its queue */
  uint32_t posted, run_parts;
  uint8_t state;
  _Atomic bool idle; /* nothing is posted that has not been run */
};

XLAC_MUST_USE int rt_lane_create(rt_lane **out, uint32_t threads, base_alloc alloc, xlac_error *err);
void rt_lane_destroy(rt_lane *l); /* when nobody waits for a task; NULL is fine */
uint32_t rt_lane_size(const rt_lane *l);
/* Threads started so far. */
uint32_t rt_lane_started(const rt_lane *l);

/* Before the first post. */
void rt_task_init(rt_task *t, rt_lane *lane, void (*run)(rt_task *t, uint32_t part));
/* One more part of t, which is all zeros before its first. Thread-safe, as all of these. */
void rt_task_post(rt_task *t);
static inline bool rt_task_is_idle(const rt_task *t) {
  return atomic_load_explicit(&t->idle, memory_order_acquire);
}
/* Runs what is posted of t if no thread has begun it: false, having done nothing, where one has, and true where all of
 * it has been run. */
bool rt_task_help(rt_task *t);
/* The same part by part, as long as `more` says so, which is asked before each part; what is left is the lane's again.
 */
void rt_task_help_while(rt_task *t, bool (*more)(void *ctx), void *ctx);
/* Until all that is posted of t has been run: true; or until so many seconds are over: false. */
bool rt_task_wait(rt_task *t, double seconds);
/* Takes t back: what no thread has begun will not be run; a part that is running is waited for. */
void rt_task_cancel(rt_task *t);

#endif
