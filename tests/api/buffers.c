/* Buffers, without Python, for the sanitizers: test_sanitized.py. Says "fine" or aborts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/devices.h"
#include "xlac.h"

#define CHECK(what)                                                       \
  do {                                                                    \
    if (!(what)) {                                                        \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #what, err.message); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

enum { THREADS = 8, ROUNDS = 500, DIM = 24 };

static xlac_runtime *rt;
static xlac_counters *counters;

/* --- the only kind of devices there is here: memory, and no programs --- */

static int no_programs(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err) {
  (void)d, (void)options, (void)out;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "there are no programs here");
}

static const rt_device_vtable memory_vtable = {.destroy = rt_host_device_destroy,
                                               .allocate = rt_host_device_allocate,
                                               .release = rt_host_device_release,
                                               .stats = rt_host_device_stats,
                                               .queue = rt_host_device_queue,
                                               .begin = no_programs};

static int memory_create(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err) {
  rt_host_device *d = NULL;
  TRY(rt_host_device_create(&d, sizeof *d, &memory_vtable, "memory", ordinal, alloc, err));
  *out = &d->device;
  return 0;
}

const rt_device_kind driver_device_kinds[] = {{"memory", memory_create}, {NULL, NULL}};

/* --- copies, compared with the plainest loop --- */

static void copy_one(uint32_t dtype, const int64_t *dims, const int64_t *strides, char *data) {
  xlac_error err = {.code = 0};
  xlac_buffer *b = NULL, *copy = NULL;
  xlac_buffer_info info;
  xlac_layout layout = {dtype, 3, dims, strides, false};
  xlac_memory memory = {data, NULL, NULL};
  size_t size = xlac_dtype_bytes(dtype);
  CHECK(xlac_buffer_wrap(&b, counters, &layout, &memory, &err) == 0);
  CHECK(xlac_buffer_copy(&copy, rt, b, &err) == 0);
  xlac_buffer_get(copy, &info);
  const char *at = info.data;
  for (int64_t i = 0; i < dims[0]; i++)
    for (int64_t j = 0; j < dims[1]; j++)
      for (int64_t k = 0; k < dims[2]; k++, at += size)
        CHECK(memcmp(at, data + i * strides[0] + j * strides[1] + k * strides[2], size) == 0);
  xlac_buffer_release(copy);
  xlac_buffer_release(b);
}

/* Exactly as much memory as the array reaches, so that a step beyond it is found. */
static void copy_random(uint32_t dtype, unsigned *seed) {
  int64_t dims[3], strides[3], low = 0, high = (int64_t)xlac_dtype_bytes(dtype);
  for (int d = 0; d < 3; d++) {
    dims[d] = 1 + (int64_t)(rand_r(seed) % DIM);
    strides[d] = (int64_t)(rand_r(seed) % 200) - 100;
    if (rand_r(seed) % 2) strides[d] -= strides[d] % high;
    int64_t last = (dims[d] - 1) * strides[d];
    if (last < 0)
      low += last;
    else
      high += last;
  }
  char *memory = malloc((size_t)(high - low));
  for (int64_t i = 0; i < high - low; i++) memory[i] = (char)rand_r(seed);
  copy_one(dtype, dims, strides, memory - low);
  free(memory);
}

/* --- races --- */

typedef struct race {
  pthread_barrier_t *start;
  xlac_buffer *b;
  unsigned number;
  int won;
  unsigned char seen;
} race;

static void *race_run(void *arg) {
  race *r = arg;
  xlac_error err;
  xlac_memory memory;
  xlac_buffer_info info;
  pthread_barrier_wait(r->start);
  if (r->number % 3 == 0) {
    if (xlac_buffer_open(r->b, &err) == 0) {
      xlac_buffer_get(r->b, &info);
      r->seen = *(unsigned char *)info.data;
      xlac_buffer_close(r->b);
    }
  } else if (xlac_buffer_take(r->b, &memory, &err) == 0) {
    memset(memory.data, 1, 64); /* the taker's alone: a viewer would be a race */
    r->won = 1;
    if (r->number % 2) {
      xlac_buffer_taken_by(r->b, "a race");
      memory.release(memory.ctx);
    } else {
      r->won = 0;
      memset(memory.data, 0, 64);
      xlac_buffer_give_back(r->b);
    }
  }
  xlac_buffer_release(r->b);
  return NULL;
}

static int race_once(void) {
  xlac_error err = {.code = 0};
  xlac_buffer_info info;
  pthread_t threads[THREADS];
  race races[THREADS];
  pthread_barrier_t start;
  xlac_buffer *b = NULL;
  int64_t dims[] = {64};
  int won = 0;
  CHECK(xlac_buffer_create(&b, rt, counters, xlac_dtype_from_text("u8"), 1, dims, &err) == 0);
  xlac_buffer_get(b, &info);
  memset(info.data, 0, 64);
  pthread_barrier_init(&start, NULL, THREADS);
  for (unsigned i = 0; i < THREADS; i++) {
    races[i] = (race){&start, xlac_buffer_retain(b), i, 0, 0};
    pthread_create(&threads[i], NULL, race_run, &races[i]);
  }
  xlac_buffer_release(b);
  for (unsigned i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    CHECK(races[i].seen == 0);
    won += races[i].won;
  }
  pthread_barrier_destroy(&start);
  CHECK(won <= 1);
  return won;
}

int main(void) {
  xlac_error err = {.code = 0};
  unsigned seed = 1;
  int won = 0;
  CHECK(xlac_runtime_create(&rt, &err) == 0);
  CHECK(xlac_counters_create(&counters, &err) == 0);
  for (uint32_t dtype = 1; dtype < xlac_dtype_count(); dtype++)
    for (int i = 0; i < 12; i++) copy_random(dtype, &seed);
  for (int i = 0; i < ROUNDS; i++) won += race_once();
  CHECK(won > 0);
  for (uint32_t i = 0; i < 3; i++) CHECK(xlac_counters_get(counters, i) == 0);
  xlac_counters_release(counters);
  xlac_runtime_destroy(rt);
  puts("fine");
  return 0;
}
