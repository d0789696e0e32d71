/* Copies and fills. Memory of the host that is not pinned is read when a copy is enqueued, and written before the call
 * returns, which is what the driver promises at most and at least. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

typedef struct copy_work {
  sim_work work;
  address to, from; /* from 0: a fill */
  size_t bytes, unit;
  uint32_t value;
  bool check_to, check_from;
  void *staged;
} copy_work;

static void fill_units(char *to, size_t bytes, size_t unit, uint32_t value) {
  if (unit == 1)
    memset(to, (int)value, bytes);
  else
    for (size_t i = 0; i < bytes; i += unit) memcpy(to + i, &value, unit);
}

static int run_copy(sim_work *work) {
  copy_work *w = (copy_work *)work;
  touch.op = work->op;
  touch.kernel = NULL;
  touch.acquired = NULL;
  touch.mark = (sim_mark){.op = work->op->id};
  int result = SUCCESS;
  if (w->check_from) result = shadow_range(w->from, w->bytes, ACCESS_READ);
  if (result == SUCCESS && w->check_to) {
    touch.mark.thread = 1; /* a copy to where it reads from races with itself */
    result = shadow_range(w->to, w->bytes, ACCESS_WRITE);
  }
  if (result != SUCCESS) return result;
  if (w->from == 0)
    fill_units((char *)(uintptr_t)w->to, w->bytes, w->unit, w->value);
  else
    memcpy((void *)(uintptr_t)w->to, (const void *)(uintptr_t)w->from, w->bytes);
  return SUCCESS;
}

static void release_copy(sim_work *work) {
  free(((copy_work *)work)->staged);
}

/* Which sides are the device's (or pinned, and known); the other is the host's own memory. */
static int prepare(copy_work *w, address to, address from, size_t bytes, bool device_to, bool device_from) {
  w->work.execute = run_copy;
  w->work.release = release_copy;
  w->to = to;
  w->from = from;
  w->bytes = bytes;
  w->check_to = device_to || shadow_page(to) != NULL;
  w->check_from = from != 0 && (device_from || shadow_page(from) != NULL);
  return SUCCESS;
}

sim_work *copy_make(address to, address from, size_t bytes) {
  copy_work *w = calloc(1, sizeof *w);
  prepare(w, to, from, bytes, true, true);
  return &w->work;
}

static void stage(copy_work *w) {
  if (w->from == 0 || w->check_from) return;
  w->staged = malloc(w->bytes > 0 ? w->bytes : 1);
  memcpy(w->staged, (const void *)(uintptr_t)w->from, w->bytes);
  w->from = (address)(uintptr_t)w->staged;
}

static int enqueue_copy(copy_work *w, void *stream, bool wait, const char *what) {
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = INVALID_HANDLE;
  if (s == NULL) {
    free(w);
  } else {
    bool to_host = !w->check_to;
    if (s->capture == NULL) stage(w);
    result = stream_enqueue(s, &w->work, what, "");
    if (result == SUCCESS && s->capture == NULL && (wait || to_host)) result = stream_wait(s);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

static int copy(address to, address from, size_t bytes, bool device_to, bool device_from, void *stream, bool wait,
                const char *what) {
  if (bytes == 0) return SUCCESS;
  if (to == 0 || from == 0) return INVALID_VALUE;
  copy_work *w = calloc(1, sizeof *w);
  prepare(w, to, from, bytes, device_to, device_from);
  return enqueue_copy(w, stream, wait, what);
}

static int set(address to, uint32_t value, size_t unit, size_t n, void *stream, bool wait) {
  if (n == 0) return SUCCESS;
  if (to == 0 || to % unit != 0) return INVALID_VALUE;
  copy_work *w = calloc(1, sizeof *w);
  prepare(w, to, 0, n * unit, true, false);
  w->unit = unit;
  w->value = value;
  return enqueue_copy(w, stream, wait, "fill");
}

#define HOST(p) ((address)(uintptr_t)(p))

EXPORT int cuMemcpyHtoDAsync_v2(address to, const void *from, size_t bytes, void *stream) {
  ENTER_DEVICE(cuMemcpyHtoDAsync_v2, NULL);
  return copy(to, HOST(from), bytes, true, false, stream, false, "copy to the device");
}
EXPORT int cuMemcpyDtoHAsync_v2(void *to, address from, size_t bytes, void *stream) {
  ENTER_DEVICE(cuMemcpyDtoHAsync_v2, NULL);
  return copy(HOST(to), from, bytes, false, true, stream, false, "copy to the host");
}
EXPORT int cuMemcpyDtoDAsync_v2(address to, address from, size_t bytes, void *stream) {
  ENTER_DEVICE(cuMemcpyDtoDAsync_v2, NULL);
  return copy(to, from, bytes, true, true, stream, false, "copy");
}
EXPORT int cuMemcpyAsync(address to, address from, size_t bytes, void *stream) {
  ENTER_DEVICE(cuMemcpyAsync, NULL);
  return copy(to, from, bytes, false, false, stream, false, "copy");
}
EXPORT int cuMemcpyPeerAsync(address to, void *to_context, address from, void *from_context, size_t bytes,
                             void *stream) {
  ENTER_DEVICE(cuMemcpyPeerAsync, NULL);
  if (to_context == NULL || from_context == NULL) return INVALID_CONTEXT;
  return copy(to, from, bytes, true, true, stream, false, "copy between devices");
}
EXPORT int cuMemcpyHtoD_v2(address to, const void *from, size_t bytes) {
  ENTER_DEVICE(cuMemcpyHtoD_v2, NULL);
  return copy(to, HOST(from), bytes, true, false, NULL, true, "copy to the device");
}
EXPORT int cuMemcpyDtoH_v2(void *to, address from, size_t bytes) {
  ENTER_DEVICE(cuMemcpyDtoH_v2, NULL);
  return copy(HOST(to), from, bytes, false, true, NULL, true, "copy to the host");
}
EXPORT int cuMemcpyDtoD_v2(address to, address from, size_t bytes) {
  ENTER_DEVICE(cuMemcpyDtoD_v2, NULL);
  return copy(to, from, bytes, true, true, NULL, true, "copy");
}
/* CUDA_MEMCPY2D, of device memory. */
typedef struct rows_side {
  size_t x, y;
  int memory;
  void *host;
  address device;
  void *array;
  size_t pitch;
} rows_side;
typedef struct rows_copy {
  rows_side from, to;
  size_t bytes, rows;
} rows_copy;

static bool is_plain(const rows_copy *c, const rows_side *s) {
  return s->memory == 2 && (s->x | s->y) == 0 && s->device != 0 && s->pitch >= c->bytes && s->pitch <= 0x7fffffff;
}

/* One copy for each row, which is enough for their order and bounds. */
EXPORT int cuMemcpy2DAsync_v2(const rows_copy *c, void *stream) {
  ENTER_DEVICE(cuMemcpy2DAsync_v2, NULL);
  if (c == NULL || !is_plain(c, &c->from) || !is_plain(c, &c->to)) return INVALID_VALUE;
  int result = SUCCESS;
  for (size_t i = 0; i < c->rows && result == SUCCESS; i++)
    result = copy(c->to.device + i * c->to.pitch, c->from.device + i * c->from.pitch, c->bytes, true, true, stream,
                  false, "copy of a row");
  return result;
}

EXPORT int cuMemsetD8Async(address to, unsigned char value, size_t n, void *stream) {
  ENTER_DEVICE(cuMemsetD8Async, NULL);
  return set(to, value, 1, n, stream, false);
}
EXPORT int cuMemsetD16Async(address to, unsigned short value, size_t n, void *stream) {
  ENTER_DEVICE(cuMemsetD16Async, NULL);
  return set(to, value, 2, n, stream, false);
}
EXPORT int cuMemsetD32Async(address to, unsigned value, size_t n, void *stream) {
  ENTER_DEVICE(cuMemsetD32Async, NULL);
  return set(to, value, 4, n, stream, false);
}
EXPORT int cuMemsetD8_v2(address to, unsigned char value, size_t n) {
  ENTER_DEVICE(cuMemsetD8_v2, NULL);
  return set(to, value, 1, n, NULL, true);
}
EXPORT int cuMemsetD32_v2(address to, unsigned value, size_t n) {
  ENTER_DEVICE(cuMemsetD32_v2, NULL);
  return set(to, value, 4, n, NULL, true);
}
