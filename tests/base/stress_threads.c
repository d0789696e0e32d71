/* Many callers, nested calls and short-lived pools at once, for ThreadSanitizer. Exits 0 when all sums are right. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "runtime/threads.h"

enum { CALLERS = 4, CALLS = 150, N = 1000 };

typedef struct caller {
  rt_pool *pool;
  int plain[N]; /* written without atomics: the pool must order it before the caller reads */
  bool ok;
} caller;

static void add(void *ctx, size_t begin, size_t end) {
  atomic_fetch_add((_Atomic size_t *)ctx, end - begin);
}

static void mark(void *ctx, size_t begin, size_t end) {
  caller *c = ctx;
  _Atomic size_t sum = 0;
  rt_parallel_for(c->pool, 50, 5, add, &sum);
  for (size_t i = begin; i < end; ++i) c->plain[i] += (int)sum;
}

static void *caller_main(void *arg) {
  caller *c = arg;
  for (int i = 0; i < CALLS; ++i) rt_parallel_for(c->pool, N, 37, mark, c);
  c->ok = true;
  for (int i = 0; i < N; ++i) c->ok &= c->plain[i] == 50 * CALLS;
  return NULL;
}

int main(void) {
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  rt_pool *shared, *brief;
  if (rt_pool_create(&shared, 3, base_alloc_libc, NULL) != 0) return 1;
  for (int i = 0; i < CALLERS; ++i) {
    callers[i].pool = shared;
    if (pthread_create(&threads[i], NULL, caller_main, &callers[i]) != 0) return 1;
  }
  for (int i = 0; i < 50; ++i) {
    _Atomic size_t sum = 0;
    if (rt_pool_create(&brief, 2, base_alloc_libc, NULL) != 0) return 1;
    rt_parallel_for(brief, N, 10, add, &sum);
    rt_pool_destroy(brief);
    if (sum != N) return 1;
  }
  bool ok = true;
  for (int i = 0; i < CALLERS; ++i) {
    pthread_join(threads[i], NULL);
    ok &= callers[i].ok;
  }
  rt_pool_destroy(shared);
  return ok ? 0 : 1;
}
