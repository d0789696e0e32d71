/* The work of collectives on arrays in one memory, in shares: share k is member k's. Shares write to different places,
 * so any thread may do any of them, and what is written does not depend on who does. Where all members get the same,
 * they may all have it in one place. */
#include "communicator.h"

#include "../base/stream.h"

enum {
  SUM_BYTES = 8192,        /* summed at a time: they and their sum stay in a first-level cache */
  STREAM_BYTES = 12 << 20, /* written by all together: so many find no place in caches */
};

static int64_t exchange_row(const rt_extent *e) {
  return e->inner * e->bytes;
}

/* The sum of elements [begin, begin + n) of all members' array k, at `to`. In the group's order: some members' first,
 * to which some others' are then added. */
static int exchange_sum(const rt_exchange *x, uint32_t k, int64_t begin, int64_t n, char *to, xlac_error *err) {
  const uint32_t bytes = x->what->extents[k].bytes;
  const void *from[RT_MOST_COMBINED];
  assert(x->combine && bytes > 0 && x->members > 0);
  for (int64_t at = 0, step = SUM_BYTES / bytes; at < n; at += step) {
    int64_t some = n - at < step ? n - at : step;
    char *into = to + at * bytes;
    uint32_t here = 0;
    for (uint32_t i = 0; i < x->members; i++) {
      from[here++] = (const char *)x->in[i][k] + (size_t)(begin + at) * bytes;
      if (here < RT_MOST_COMBINED && i + 1 < x->members) continue;
      TRY(x->combine(x->ctx, k, some, into, here, from, err));
      from[0] = into;
      here = 1;
    }
  }
  return 0;
}

/* Whether somebody before `member` has the result in the same memory: it is written once. */
static bool exchange_is_written(const rt_exchange *x, uint32_t k, uint32_t member) {
  for (uint32_t i = 0; i < member; i++)
    if (x->out[i][k] == x->out[member][k]) return true;
  return false;
}

/* Each share sums its part of the elements, and gives it to everybody: all arrays are read once and written once. */
static int exchange_all_reduce(const rt_exchange *x, uint32_t k, uint32_t share, xlac_error *err) {
  const rt_extent *e = &x->what->extents[k];
  int64_t all = e->outer * e->inner, most = SUM_BYTES / e->bytes, lines = (all + 63) / 64;
  int64_t begin = lines * share / x->members * 64, end = lines * (share + 1) / x->members * 64;
  bool streams = all * e->bytes * x->members >= STREAM_BYTES;
  char room[SUM_BYTES] __attribute__((aligned(64)));
  if (end > all) end = all;
  for (int64_t at = begin; at < end; at += most) {
    int64_t n = end - at < most ? end - at : most;
    size_t offset = (size_t)at * e->bytes, bytes = (size_t)n * e->bytes;
    char *sum = streams ? room : (char *)x->out[share][k] + offset;
    TRY(exchange_sum(x, k, at, n, sum, err));
    for (uint32_t i = 0; i < x->members; i++) {
      char *to = (char *)x->out[i][k] + offset;
      if (to == sum || exchange_is_written(x, k, i)) continue;
      if (streams)
        base_stream(to, sum, bytes);
      else
        memcpy(to, sum, bytes);
    }
  }
  if (streams) base_end_stream();
  return 0;
}

static int exchange_reduce_scatter(const rt_exchange *x, uint32_t k, uint32_t share, xlac_error *err) {
  const rt_extent *e = &x->what->extents[k];
  for (int64_t row = 0; row < e->outer; row++)
    TRY(exchange_sum(x, k, (row * x->members + share) * e->inner, e->inner,
                     (char *)x->out[share][k] + row * exchange_row(e), err));
  return 0;
}

static void exchange_gather(const rt_exchange *x, uint32_t k, uint32_t share) {
  const rt_extent *e = &x->what->extents[k];
  int64_t bytes = exchange_row(e);
  char *to = x->out[share][k];
  for (int64_t row = 0; bytes && row < e->outer; row++)
    for (uint32_t i = 0; i < x->members; i++, to += bytes)
      memcpy(to, (const char *)x->in[i][k] + row * bytes, (size_t)bytes);
}

static void exchange_all_to_all(const rt_exchange *x, uint32_t k, uint32_t share) {
  const rt_extent *e = &x->what->extents[k];
  int64_t bytes = exchange_row(e);
  char *to = x->out[share][k];
  for (int64_t row = 0; bytes && row < e->outer; row++)
    for (uint32_t i = 0; i < x->members; i++, to += bytes)
      memcpy(to, (const char *)x->in[i][k] + (row * x->members + share) * bytes, (size_t)bytes);
}

/* The whole of array k, from another one of its size; NULL: zeros. */
static void exchange_copy(const rt_exchange *x, uint32_t k, void *to, const void *from) {
  const rt_extent *e = &x->what->extents[k];
  size_t bytes = (size_t)(e->outer * exchange_row(e));
  if (bytes && from) memcpy(to, from, bytes);
  if (bytes && !from) memset(to, 0, bytes);
}

static int exchange_array(const rt_exchange *x, uint32_t k, uint32_t share, xlac_error *err) {
  assert(share < x->members && k < x->what->n);
  uint32_t source;
  switch (x->what->kind) {
    case RT_ALL_REDUCE:
      return exchange_all_reduce(x, k, share, err);
    case RT_REDUCE_SCATTER:
      return exchange_reduce_scatter(x, k, share, err);
    case RT_ALL_GATHER:
      if (!exchange_is_written(x, k, share)) exchange_gather(x, k, share);
      return 0;
    case RT_ALL_TO_ALL:
      exchange_all_to_all(x, k, share);
      return 0;
    case RT_ALL_TO_ALL_EACH:
      exchange_copy(x, k, x->out[share][k], x->in[k][share]);
      return 0;
    case RT_PERMUTE:
      source = x->sources[share];
      exchange_copy(x, k, x->out[share][k], source == UINT32_MAX ? NULL : x->in[source][k]);
      return 0;
    case RT_BROADCAST:
      if (!exchange_is_written(x, k, share)) exchange_copy(x, k, x->out[share][k], x->in[0][k]);
      return 0;
  }
  return 0;
}

int rt_exchange_run(const rt_exchange *x, uint32_t from, uint32_t to, xlac_error *err) {
  assert(from <= to && to <= x->members);
  for (uint32_t share = from; share < to; share++)
    for (uint32_t k = 0; k < x->what->n; k++) TRY(exchange_array(x, k, share, err));
  return 0;
}

int64_t rt_exchange_bytes(const rt_collective *what, uint32_t members) {
  int64_t all = 0;
  bool grows = what->kind == RT_ALL_GATHER || what->kind == RT_ALL_TO_ALL;
  for (uint32_t k = 0; k < what->n; k++) {
    const rt_extent *e = &what->extents[k];
    all += e->outer * exchange_row(e) * members * (grows ? members : 1);
  }
  return all;
}
