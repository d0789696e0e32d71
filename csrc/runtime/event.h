/* Events: what becomes ready, or fails, once.
 *
 * An event is the only thing that orders work on different queues, and the only way in which an error travels from work
 * that goes on by itself to whoever depends on it. The host makes events too, for what it will bring later.
 *
 * Ownership: reference counted; rt_event_create and every function that gives an event out give a new reference.
 * Threads: all functions, any thread. An event may outlive the queue and the device whose work it stands for.
 * Fork: what was pending when a process forked stays pending in the child, whose queues have no such work. */
#ifndef XLAC_RUNTIME_EVENT_H
#define XLAC_RUNTIME_EVENT_H

#include "../base/memory.h"
#include "../base/status.h"

typedef struct rt_event rt_event;

typedef enum rt_event_state {
  RT_EVENT_PENDING,
  RT_EVENT_READY, /* what was done before it is seen by whoever has seen this */
  RT_EVENT_FAILED
} rt_event_state;

/* A pending event that its maker sets. OUT_OF_MEMORY. */
XLAC_MUST_USE int rt_event_create(rt_event **out, base_alloc alloc, xlac_error *err);
/* Once: ready where `why` is NULL, else failed with a copy of it, whose code is not 0. Calls what waits in on_ready, on
 * this thread and before it returns, in the order in which that was asked for. */
void rt_event_set(rt_event *e, const xlac_error *why);
rt_event *rt_event_retain(rt_event *e);
/* NULL is fine. Of a pending event nobody may drop the last reference but its maker: on_ready would be lost. */
void rt_event_release(rt_event *e);

/* How it stands, at once. A failed event's error is copied to `why`, which may be NULL. */
rt_event_state rt_event_poll(rt_event *e, xlac_error *why);
/* Waits until it is ready (0) or failed (its error, in err). `interrupted` is asked about every 20 ms, and may be NULL:
 * once it says true, this returns INTERRUPTED, and what the event stands for goes on. */
XLAC_MUST_USE int rt_event_wait(rt_event *e, bool (*interrupted)(void *ctx), void *ctx, xlac_error *err);
/* Calls fn(ctx, why) once it is ready (why is NULL) or failed: at once, on this thread, where it is; else on the thread
 * that sets it, which must not be kept waiting. `why` lives until fn returns. OUT_OF_MEMORY: fn will not be called. */
typedef void rt_event_fn(void *ctx, const xlac_error *why);
XLAC_MUST_USE int rt_event_on_ready(rt_event *e, rt_event_fn *fn, void *ctx, xlac_error *err);

#endif
