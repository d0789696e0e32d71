/* The end of a process that Python ends.
 *
 * Python ends each thread that asks for its lock once it is on its way out, and queues' threads do: to call a Python
 * function, or to tell the owner of an array of NumPy's that it is free. Such a queue never gets to its end. So the
 * Python package asks its clients to leave before that, while its own lock can be had: from then on the client enqueues
 * nothing, and what is enqueued is waited for. The package knows a client by a slot, a word of its own whose address is
 * an option; the slot has a reference, so that whoever empties it, leaving or destruction, may use what was in it.
 *
 * A client that is destroyed without having left waits for a short while, and stays in memory for its threads where it
 * is still at work then. */
#include <time.h>

#include "abi_extensions.h"
#include "pjrt.h"

/* --- waiting --- */

static struct timespec leave_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now;
}

static struct timespec leave_after(int64_t milliseconds) {
  struct timespec t = leave_now();
  t.tv_sec += (time_t)(milliseconds / 1000);
  t.tv_nsec += (long)(milliseconds % 1000) * 1000000;
  if (t.tv_nsec >= 1000000000) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000;
  }
  assert(t.tv_nsec >= 0 && t.tv_nsec < 1000000000);
  return t;
}

static bool leave_is_late(void *ctx) {
  const struct timespec *last = ctx, now = leave_now();
  return now.tv_sec > last->tv_sec || (now.tv_sec == last->tv_sec && now.tv_nsec >= last->tv_nsec);
}

/* Errors of what was enqueued its events have told. */
static bool leave_drain_queue(pjrt_queue *q, struct timespec *last) {
  xlac_error why = {.code = 0};
  return rt_queue_drain(q->queue, leave_is_late, last, &why) != -XLAC_E_INTERRUPTED;
}

bool pjrt_client_drain(PJRT_Client *c, int64_t milliseconds) {
  struct timespec last = leave_after(milliseconds);
  for (uint32_t i = 0; i < c->here; i++)
    if (!leave_drain_queue(&c->devices[c->from + i].work, &last)) return false;
  if (c->has_groups && !leave_drain_queue(&c->groups, &last)) return false;
  return !c->has_copies || leave_drain_queue(&c->copies, &last); /* copies wait for runs, never runs for copies */
}

/* --- the slot --- */

static PJRT_Xlac_Client_Slot *leave_slot(const PJRT_Client *c) {
  return (PJRT_Xlac_Client_Slot *)(uintptr_t)c->options.slot;
}

void pjrt_client_enter_slot(PJRT_Client *c) {
  if (!c->options.slot) return;
  PJRT_Client *before = atomic_exchange(leave_slot(c), pjrt_client_retain(c));
  assert(!before && "a slot is one client's");
  pjrt_client_release(before);
}

void pjrt_client_leave_slot(PJRT_Client *c) {
  PJRT_Client *mine = c;
  if (c->options.slot && atomic_compare_exchange_strong(leave_slot(c), &mine, NULL)) pjrt_client_release(c);
}

/* In slices, so that Python hears of Ctrl-C between them. Meanwhile the slot is empty, and its reference ours. */
PJRT_Error *pjrt_xlac_leave(PJRT_Xlac_Leave_Args *args) {
  args->over = true;
  if (args->milliseconds < 0)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "a time of %lld ms", (long long)args->milliseconds);
  PJRT_Client *c = atomic_exchange(args->slot, NULL);
  if (!c) return NULL;
  atomic_store(&c->leaving, true);
  args->over = pjrt_client_drain(c, args->milliseconds);
  if (args->over)
    pjrt_client_release(c);
  else
    atomic_store(args->slot, c);
  return NULL;
}
