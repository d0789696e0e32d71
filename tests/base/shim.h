/* Loops over the base layer for the tests, so that a test of a million numbers is one call. */
#include "base/dtype.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/number/number.h"
#include "base/status.h"
#include "base/str.h"
#include "runtime/threads.h"

static void shim_encode_f32(int t, const float *v, uint32_t *out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = base_float_from_f32((base_dtype)t, v[i]);
}
static void shim_encode_f64(int t, const double *v, uint32_t *out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = base_float_from_f64((base_dtype)t, v[i]);
}
static void shim_decode_f32(int t, const uint32_t *bits, float *out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = base_float_to_f32((base_dtype)t, bits[i]);
}
static void shim_decode_f64(int t, const uint32_t *bits, double *out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = base_float_to_f64((base_dtype)t, bits[i]);
}

/* Reads numbers, each followed by one byte, until there is none; returns how many, and *at where it stopped. */
static size_t shim_parse_f64(const char *text, size_t n, double *out, size_t room, size_t *at) {
  const char *p = text, *end = text + n, *q;
  size_t k = 0;
  while (k < room && (q = base_parse_f64(p, end, &out[k]))) ++k, p = q < end ? q + 1 : q;
  *at = (size_t)(p - text);
  return k;
}
static size_t shim_parse_f32(const char *text, size_t n, float *out, size_t room, size_t *at) {
  const char *p = text, *end = text + n, *q;
  size_t k = 0;
  while (k < room && (q = base_parse_f32(p, end, &out[k]))) ++k, p = q < end ? q + 1 : q;
  *at = (size_t)(p - text);
  return k;
}
/* Prints n elements, each followed by '\n'; `out` must have room for 33 bytes each. Returns the length. */
static size_t shim_print(int t, const void *bits, size_t n, char *out) {
  size_t bytes = base_dtype_bytes((base_dtype)t);
  char *p = out;
  for (size_t i = 0; i < n; ++i) {
    uint64_t b = 0;
    memcpy(&b, (const char *)bits + i * bytes, bytes);
    p += base_print_float((base_dtype)t, b, p);
    *p++ = '\n';
  }
  return (size_t)(p - out);
}

/* An allocator that fails from its `left`-th call on and counts what is live. */
typedef struct shim_faulty {
  long left, live, calls;
} shim_faulty;
static void *shim_faulty_fn(void *ctx, void *ptr, size_t size) {
  shim_faulty *f = ctx;
  if (size == 0) {
    f->live -= ptr != NULL;
    return base_alloc_libc.fn(NULL, ptr, 0);
  }
  f->calls++;
  if (f->left == 0) return NULL;
  if (f->left > 0) f->left--;
  void *p = base_alloc_libc.fn(NULL, ptr, size);
  if (p && !ptr) f->live++;
  return p;
}
static base_alloc shim_faulty_alloc(shim_faulty *f) {
  return (base_alloc){shim_faulty_fn, f};
}

BASE_VEC(shim_vec, uint64_t);
/* Pushes 0 .. n-1 and adds them up again. */
static bool shim_vec_push(base_alloc alloc, size_t n, uint64_t *sum) {
  shim_vec v = {0};
  bool ok = true;
  for (size_t i = 0; i < n && ok; ++i) ok = BASE_VEC_PUSH(alloc, &v, i);
  for (uint32_t i = 0; i < v.n; ++i) *sum += v.items[i];
  BASE_VEC_FREE(alloc, &v);
  return ok;
}

#include "base/number/decimal.h"
static const base_power5 *shim_power5(int q) {
  return q < BASE_P5_FIRST || q > BASE_P5_LAST ? NULL : &base_powers5[q - BASE_P5_FIRST];
}

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* What a parallel-for did: how often each element was visited, where each range began and ended, and a sum per range.
 */
typedef struct shim_ranges {
  uint8_t *visits;
  uint64_t *ends; /* by begin, or 0 */
  rt_pool *nested;
  _Atomic uint32_t outside; /* ranges that a thread other than the caller ran */
  pthread_t caller;
  int work;
} shim_ranges;

static void shim_touch(void *ctx, size_t begin, size_t end) {
  *(_Atomic uint64_t *)ctx += end - begin;
}
static void shim_visit(void *ctx, size_t begin, size_t end) {
  shim_ranges *r = ctx;
  r->ends[begin] = end;
  for (size_t i = begin; i < end; ++i) r->visits[i]++;
  if (!pthread_equal(pthread_self(), r->caller)) atomic_fetch_add(&r->outside, 1);
  for (volatile int i = 0; i < r->work; ++i) {
  }
  if (r->nested) {
    _Atomic uint64_t sum = 0;
    rt_parallel_for(r->nested, 1000, 10, shim_touch, &sum);
    if (sum != 1000) r->visits[begin] = 99;
  }
}
/* Returns how many ranges ran on other threads. */
static uint32_t shim_parallel(rt_pool *p, size_t n, size_t grain, uint8_t *visits, uint64_t *ends, bool nested,
                              int work) {
  shim_ranges r = {.visits = visits, .ends = ends, .nested = nested ? p : NULL, .caller = pthread_self(), .work = work};
  rt_parallel_for(p, n, grain, shim_visit, &r);
  return r.outside;
}
/* Many short calls; returns the number of elements visited. */
static uint64_t shim_storm(rt_pool *p, size_t calls, size_t n) {
  _Atomic uint64_t sum = 0;
  for (size_t i = 0; i < calls; ++i) rt_parallel_for(p, n, 1, shim_touch, &sum);
  return sum;
}

#include "runtime/cpus.h"
