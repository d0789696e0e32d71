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

typedef struct base_lane base_lane;

typedef struct base_task base_task;
struct base_task {
  void (*run)(base_task *t, uint32_t part); /* any thread */
  base_lane *lane;
  /* The rest is the lane's. */
  base_task *before, *after; /* in its queue */
  uint32_t posted, run_parts;
  uint8_t state;
  _Atomic bool idle; /* nothing is posted that has not been run */
};

XLAC_MUST_USE int base_lane_create(base_lane **out, uint32_t threads, base_alloc alloc, xlac_error *err);
void base_lane_destroy(base_lane *l); /* when nobody waits for a task; NULL is fine */
uint32_t base_lane_size(const base_lane *l);
/* Threads started so far. */
uint32_t base_lane_started(const base_lane *l);

/* Before the first post. */
void base_task_init(base_task *t, base_lane *lane, void (*run)(base_task *t, uint32_t part));
/* One more part of t, which is all zeros before its first. Thread-safe, as all of these. */
void base_task_post(base_task *t);
static inline bool base_task_is_idle(const base_task *t) {
  return atomic_load_explicit(&t->idle, memory_order_acquire);
}
/* Runs what is posted of t if no thread has begun it: false, having done nothing, where one has, and true where all of
 * it has been run. */
bool base_task_help(base_task *t);
/* Until all that is posted of t has been run: true; or until so many seconds are over: false. */
bool base_task_wait(base_task *t, double seconds);
/* Takes t back: what no thread has begun will not be run; a part that is running is waited for. */
void base_task_cancel(base_task *t);

#endif
