/* Dense copies of buffers of any strides. */
#include "../driver/copy.h"
#include "../runtime/host.h"
#include "api.h"

enum { BUFFER_COPY_ALONE = 1 << 20 }; /* bytes: fewer are copied without asking for threads */

int xlac_buffer_copy_to(xlac_buffer *b, xlac_runtime *rt, void *to, xlac_error *err) {
  xlac_buffer_info info;
  base_pool *pool = NULL;
  TRY(xlac_buffer_open(b, err));
  xlac_buffer_get(b, &info);
  int status = 0;
  if (rt && info.bytes >= BUFFER_COPY_ALONE) status = rt_host_pool(rt_device_set_home(api_devices(rt)), 0, &pool, err);
  if (status == 0) status = driver_copy_dense(&info, pool, to, err);
  xlac_buffer_close(b);
  return status;
}

int xlac_buffer_copy(xlac_buffer **out, xlac_runtime *rt, xlac_buffer *b, xlac_error *err) {
  xlac_buffer_info info, copied;
  xlac_buffer *copy = NULL;
  xlac_buffer_get(b, &info);
  TRY(xlac_buffer_create(&copy, rt, api_buffer_counters(b), info.dtype, info.rank, info.dims, err));
  xlac_buffer_get(copy, &copied);
  int status = xlac_buffer_copy_to(b, rt, copied.data, err);
  if (status)
    xlac_buffer_release(copy);
  else
    *out = copy;
  return status;
}
