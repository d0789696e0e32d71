/* A queue of a GPU: a thread of the host's takes piece after piece, and has the GPU copy and run on streams. */
#include "context.h"

/* Addresses are unified: the driver knows whose each is. */
static int cudaq_copy(cuda_device *d, const rt_copy *c, xlac_error *err) {
  cuda_lane lane;
  const cuda_address to = (cuda_address)(uintptr_t)c->to, from = (cuda_address)(uintptr_t)c->from;
  TRY(cuda_lane_take(d, &lane, err));
  int status = cuda_check(&d->driver, d->driver.cuMemcpyAsync(to, from, c->bytes, lane.stream), "copying", err);
  if (status == 0) status = cuda_wait(d, lane.stream, NULL, NULL, err);
  cuda_lane_give(d, &lane);
  return status;
}

/* Between memory of the host's and a GPU's, or within either. */
static int cudaq_copy_entering(rt_device *device, const rt_copy *c, xlac_error *err) {
  cuda_device *d = cuda_device_of(device);
  assert(c->bytes);
  TRY(cuda_enter(d, err));
  int status = cudaq_copy(d, c, err);
  cuda_leave(d);
  return status;
}

int cuda_queue_create(rt_device *d, rt_queue **out, xlac_error *err) {
  return rt_host_queue_create_with(d, cudaq_copy_entering, cuda_device_of(d)->base.alloc, out, err);
}
