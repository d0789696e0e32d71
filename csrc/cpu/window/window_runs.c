/* Windows that are all of the last dimensions: global pooling where features come before places. */
#include "window.h"

/* WRUNS_BLOCK: elements that a fold takes at a time. WRUNS_GRAIN: elements for a thread at a time. */
enum { WRUNS_BLOCK = 1024, WRUNS_GRAIN = 1 << 15, WRUNS_POLL = 1 << 16 };

/* One run: shared by its threads. */
typedef struct wruns_run {
  const cpu_window *w;
  rt_pool *pool;
  const char *in, *init;
  char *out;
} wruns_run;

/* A look at whether to go on, now and then. */
static bool wruns_stops(const wruns_run *r, int64_t i) {
  return i % WRUNS_POLL == 0 && rt_pool_stopping(r->pool);
}

/* Rows begin to end. Short ones are folded many at a time; of a long one the lanes are kept from block to block,
 * joined at its end, and the initial value comes last. */
static void wruns_range(void *ctx, size_t begin, size_t end) {
  assert(((const wruns_run *)ctx)->w->fold != NULL);
  const wruns_run *r = ctx;
  const cpu_window *w = r->w;
  int64_t length = w->in_size[w->last], bytes = (int64_t)w->bytes;
  /* A function for many short runs. */
  if (length <= WRUNS_BLOCK) {
    w->fold->many((int64_t)(end - begin), length, r->in + (int64_t)begin * length * bytes, r->init,
                  r->out + (int64_t)begin * bytes);
    return;
  }
  for (size_t row = begin; row < end; row++) {
    char lanes[VM_FOLD_BYTES] __attribute__((aligned(64)));
    const char *x = r->in + (int64_t)row * length * bytes;
    int64_t valid = 0, used = 1;
    for (int64_t i = 0; i < length && !wruns_stops(r, i); i += WRUNS_BLOCK)
      w->fold->some(length - i < WRUNS_BLOCK ? length - i : WRUNS_BLOCK, x + i * bytes, lanes, &valid);
    w->fold->last(valid, lanes);
    w->fold->some(1, r->init, lanes, &used);
    memcpy(r->out + (int64_t)row * bytes, lanes, w->bytes);
  }
}

void cpu_window_runs(const cpu_window *w, rt_pool *pool, const char *in, const char *init, char *out) {
  wruns_run r = {w, pool, in, init, out};
  int64_t length = w->in_size[w->last] + 16;
  rt_parallel_for(pool, (size_t)w->rows, (size_t)(WRUNS_GRAIN / length + 1), wruns_range, &r);
}
