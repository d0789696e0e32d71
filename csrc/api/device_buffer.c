/* Devices whose memory the host doesn't see, as callers have them, and buffers in that memory. */
#include "../driver/copy.h"
#include "api.h"
#include "leaf.h"

/* --- devices --- */

int xlac_runtime_find_device(xlac_runtime *rt, const char *name, const xlac_device **out, xlac_error *err) {
  rt_device *d = NULL;
  TRY(rt_device_set_open(api_devices(rt), name, &d, err));
  *out = api_device_out(d);
  return 0;
}

void xlac_device_get(const xlac_device *d, xlac_device_info *out) {
  api_describe_device(api_device(d), out);
}

int xlac_device_join(const xlac_device *d, uint64_t stream, xlac_error *err) {
  return rt_join(api_device(d), stream, err);
}

const xlac_device *xlac_executable_memory(const xlac_executable *exe) {
  const rt_executable *rt = api_executable_rt(exe);
  return rt->n_devices ? NULL : api_device_out(rt->device); /* whole arrays of a group are cut on the host */
}

/* --- memory --- */

/* What a buffer's release function is told. */
typedef struct device_block {
  rt_device *device; /* a reference */
  void *data;
  atomic_bool shared;
} device_block;

/* Memory is given back in the order of the device's own work: others' streams are waited for. If that fails, so will
 * whatever comes next. */
static void device_block_release(void *ctx) {
  device_block *block = ctx;
  xlac_error err;
  if (atomic_load(&block->shared)) (void)!rt_join(block->device, RT_ALL_STREAMS, &err);
  rt_release(block->device, 0, block->data);
  rt_device_release(block->device);
  base_free(base_alloc_libc, block);
}

void xlac_buffer_share(xlac_buffer *b) {
  const xlac_memory *memory = api_buffer_memory(b);
  if (memory->release == device_block_release) atomic_store(&((device_block *)memory->ctx)->shared, true);
}

int xlac_buffer_create_on(xlac_buffer **out, const xlac_device *d, xlac_counters *counters, uint32_t dtype,
                          uint32_t rank, const int64_t *dims, xlac_error *err) {
  size_t bytes = 0;
  if (!d) return base_fail(err, XLAC_E_BAD_ARGUMENT, "a buffer in memory of no device");
  TRY(api_array_bytes(dtype, rank, dims, &bytes, err));
  device_block *block = base_malloc(base_alloc_libc, sizeof *block);
  if (!block) return base_oom(err, "a buffer");
  *block = (device_block){.device = api_device(d)};
  int status = rt_allocate(block->device, 0, bytes, &block->data, err);
  if (status) {
    base_free(base_alloc_libc, block);
    return status;
  }
  rt_device_retain(block->device);
  xlac_layout layout = {.dtype = dtype, .rank = rank, .dims = dims, .device = d};
  xlac_memory memory = {block->data, device_block_release, block};
  status = xlac_buffer_wrap(out, counters, &layout, &memory, err);
  if (status) device_block_release(block);
  return status;
}

/* --- copies --- */

/* Strides may go either way: all that lies between the first byte and the last comes to the host, and is read there. */
static int device_fetch_strided(const xlac_buffer_info *b, void *to, xlac_error *err) {
  int64_t low = 0, high = (int64_t)base_dtype_bytes((base_dtype)b->dtype);
  for (uint32_t d = 0; d < b->rank; d++) *(b->strides[d] < 0 ? &low : &high) += (b->dims[d] - 1) * b->strides[d];
  size_t bytes = (size_t)(high - low);
  char *span = base_malloc(base_alloc_libc, bytes);
  if (!span) return base_oom(err, "a copy of an array");
  const rt_copy copy = {span, (char *)b->data + low, bytes, RT_HOST, 0};
  xlac_buffer_info here = *b;
  here.data = span - low;
  int status = rt_copy_now(api_device(b->device), &copy, err);
  if (status == 0) status = driver_copy_dense(&here, NULL, to, err);
  base_free(base_alloc_libc, span);
  return status;
}

int api_buffer_fetch(const xlac_buffer_info *b, void *to, xlac_error *err) {
  assert(b->device && to);
  if (!b->dense && b->count) return device_fetch_strided(b, to, err);
  const rt_copy copy = {to, b->data, b->bytes, RT_HOST, 0};
  return rt_copy_now(api_device(b->device), &copy, err);
}

/* From what lies dense on the host, or on the same device. */
static int device_fill(xlac_buffer *to, const xlac_buffer_info *from, xlac_error *err) {
  xlac_buffer_info info;
  xlac_buffer_get(to, &info);
  assert(from->dense && (!from->device || from->device == info.device));
  const rt_copy copy = {info.data, from->data, info.bytes, 0, from->device ? 0 : RT_HOST};
  return rt_copy_now(api_device(info.device), &copy, err);
}

/* By way of the host, where the two have no memory in common or strides are to be made straight. */
static int device_copy_by_host(xlac_buffer *to, xlac_runtime *rt, xlac_buffer *b, xlac_error *err) {
  xlac_buffer_info info;
  xlac_buffer *here = NULL;
  TRY(xlac_buffer_copy_on(&here, NULL, rt, b, err));
  xlac_buffer_get(here, &info);
  int status = device_fill(to, &info, err);
  xlac_buffer_release(here);
  return status;
}

static int device_copy(xlac_buffer *copy, const xlac_device *to, xlac_runtime *rt, xlac_buffer *b,
                       const xlac_buffer_info *from, xlac_error *err) {
  xlac_buffer_info info;
  if (to && (!from->dense || (from->device && from->device != to))) return device_copy_by_host(copy, rt, b, err);
  if (to) return device_fill(copy, from, err);
  xlac_buffer_get(copy, &info);
  return info.bytes ? xlac_buffer_copy_to(b, rt, info.data, err) : 0;
}

int xlac_buffer_copy_on(xlac_buffer **out, const xlac_device *to, xlac_runtime *rt, xlac_buffer *b, xlac_error *err) {
  xlac_buffer_info info;
  xlac_buffer *copy = NULL;
  TRY(xlac_buffer_open(b, err));
  xlac_buffer_get(b, &info);
  xlac_counters *counters = api_buffer_counters(b);
  int status = to ? xlac_buffer_create_on(&copy, to, counters, info.dtype, info.rank, info.dims, err)
                  : xlac_buffer_create(&copy, rt, counters, info.dtype, info.rank, info.dims, err);
  if (status == 0) status = device_copy(copy, to, rt, b, &info, err);
  xlac_buffer_close(b);
  if (status)
    xlac_buffer_release(copy);
  else
    *out = copy;
  return status;
}
