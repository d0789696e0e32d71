/* The device, inside: its context, streams and memory. */
#ifndef XLAC_CUDA_CONTEXT_H
#define XLAC_CUDA_CONTEXT_H

#include <pthread.h>
#include <unistd.h>

#include "../interp/device.h"
#include "../runtime/host.h"
#include "driver.h"

enum { CUDA_SPACE_DEVICE, CUDA_SPACE_PINNED };

/* Memory that is out. */
typedef struct cuda_block {
  struct cuda_block *next;
  uintptr_t at;
  size_t bytes;
} cuda_block;

/* A stream, and memory that whoever has it may use in its order. */
typedef struct cuda_lane {
  cuda_stream stream;
  cuda_address block; /* 0: none yet */
  size_t bytes;
  uint32_t *stop; /* pinned, where loops on the GPU look whether they are to end; NULL: none yet */
} cuda_lane;
BASE_VEC(cuda_lanes, cuda_lane);
enum { CUDA_BLOCK_SLOTS = 1024, CUDA_SPARES = 32 };

/* Immutable once made, but for what the lock guards. */
typedef struct cuda_device {
  rt_host_device base; /* its host is for work that goes on there */
  cuda_driver driver;
  const interp_library *library;
  cuda_ordinal device;
  cuda_context context; /* the GPU's primary one */
  bool retained;
  cuda_pool pool;
  cuda_stream memory; /* in whose order memory is given and taken outside of calls */
  int major, minor;   /* what its code is compiled for */
  char name[128];
  pid_t process; /* CUDA does not survive fork */
  pthread_mutex_t lock;
  cuda_blas_handle products;            /* cuBLASLt's, from the first product on */
  cuda_module conditions;               /* the kernel that sets conditions of graphs, from the first one on */
  cuda_lanes idle;                      /* that no call uses */
  cuda_block *blocks[CUDA_BLOCK_SLOTS]; /* by address */
  cuda_block *spares[CUDA_SPARES];      /* small ones that nobody has any more, for the next that wants as many bytes */
  uint32_t n_spares;
  rt_memory_stats stats;
} cuda_device;

static inline cuda_device *cuda_device_of(rt_device *d) {
  return (cuda_device *)d;
}

/* The device's context is that of this thread until cuda_leave. DEVICE in a forked child. */
XLAC_MUST_USE int cuda_enter(cuda_device *d, xlac_error *err);
void cuda_leave(cuda_device *d);
/* One that nobody else uses until it is given back, when its work is over: the one that was given back last, so that
 * its memory mostly lies where it did. Entered. */
XLAC_MUST_USE int cuda_lane_take(cuda_device *d, cuda_lane *out, xlac_error *err);
void cuda_lane_give(cuda_device *d, cuda_lane *lane);
/* At least so many bytes for the lane, which has no work. OUT_OF_MEMORY. */
XLAC_MUST_USE int cuda_lane_reserve(cuda_device *d, cuda_lane *lane, size_t bytes, xlac_error *err);
/* lane->stop is there from here on. */
XLAC_MUST_USE int cuda_lane_reserve_stop(cuda_device *d, cuda_lane *lane, xlac_error *err);
/* Gives back the memory of lanes that are idle, and what is spare. */
void cuda_lanes_trim(cuda_device *d);
void cuda_spares_trim(cuda_device *d);
/* Memory in the order of a stream, not counted. Entered. OUT_OF_MEMORY. */
XLAC_MUST_USE int cuda_take(cuda_device *d, size_t bytes, cuda_stream stream, cuda_address *out, xlac_error *err);
void cuda_give(cuda_device *d, cuda_address at, cuda_stream stream); /* 0 is fine */
/* Waits for the stream's work; `interrupted`, which may be NULL, is asked every 50 ms, and once it says true the rest
 * is waited for all the same: INTERRUPTED. DEVICE: what the work did wrong. Entered. */
XLAC_MUST_USE int cuda_wait(cuda_device *d, cuda_stream stream, bool (*interrupted)(void *ctx), void *ctx,
                            xlac_error *err);
/* Until the stream's work is over, or `interrupted` says true, which is asked every 50 ms: true. *done: the work went
 * well, and there is nothing to wait for. Entered. */
bool cuda_asks(cuda_device *d, cuda_stream stream, bool (*interrupted)(void *ctx), void *ctx, bool *done);
/* Whether the address is of this process's GPU memory. Entered. */
bool cuda_is_device_memory(const cuda_device *d, const void *at);

/* --- memory.c: for the device's table --- */
int cuda_device_allocate(rt_device *d, uint32_t space, size_t bytes, void **out, xlac_error *err);
void cuda_device_release(rt_device *d, uint32_t space, void *memory);
void cuda_device_stats(rt_device *d, rt_memory_stats *out);
int cuda_device_copy(rt_device *d, const rt_copy *copy, xlac_error *err);
int cuda_device_join(rt_device *d, uint64_t stream, xlac_error *err);
/* --- queue.c --- */
int cuda_queue_create(rt_device *d, rt_queue **out, xlac_error *err);

#endif
