/* Long calls of a library that nobody can interrupt, on threads of their own: the caller waits, and may leave. What is
 * left behind works on memory of its own, which the thread frees once the call is over. */
#ifndef XLAC_RUNTIME_DETACHED_CALL_H
#define XLAC_RUNTIME_DETACHED_CALL_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rt_aside {
  uint64_t n;          /* items */
  uint32_t threads;    /* that run at a time */
  const char *library; /* which stays loaded as long as a thread is in it; NULL: none */
  /* Item i's memory, from malloc, with all that `run` reads; NULL where there is none. */
  void *(*begin)(void *ctx, uint64_t i);
  void (*run)(void *memory);
  /* What is left to do when the run is over; the memory is freed after it. */
  void (*end)(void *ctx, uint64_t i, void *memory);
  bool (*stops)(void *ctx); /* asked about a hundred times a second, on the caller's thread */
  void *ctx;
} rt_aside;

/* Runs items from 0 on. The number of those that are done: less than n where there was no memory or thread for the next
 * (then none is under way), or where *left: it was to stop. */
uint64_t rt_aside_run(const rt_aside *a, bool *left);

#endif
