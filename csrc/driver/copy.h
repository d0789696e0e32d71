/* Dense copies of arrays on the host, by several threads where there is much. Any thread. */
#ifndef XLAC_DRIVER_COPY_H
#define XLAC_DRIVER_COPY_H

#include "../runtime/threads.h"

/* Of an array as its buffer describes it, to memory of its own. NULL for pool: by the caller. OUT_OF_MEMORY. */
XLAC_MUST_USE int driver_copy_dense(const xlac_buffer_info *b, rt_pool *pool, void *to, xlac_error *err);

#endif
