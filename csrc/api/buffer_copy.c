/* Dense copies of buffers of any strides. */
#include "../cpu/executable.h"
#include "../cpu/move/move.h"
#include "api.h"

/* Strides that are no whole numbers of elements: bytes are copied then, with a dimension of their own, which becomes
 * one block again. Dimensions of 1 make room for it. */
static bool buffer_plan_bytes(cpu_move *m, base_arena *arena, const xlac_buffer_info *b, int64_t *dims, int64_t *to,
                              int64_t *from) {
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)b->dtype), step = bytes;
  uint32_t at = IR_MAX_RANK;
  dims[--at] = bytes;
  to[at] = from[at] = 1;
  for (uint32_t d = b->rank; d-- > 0;) {
    if (b->dims[d] == 1) continue;
    assert(at > 0); /* no memory holds 2^64 elements */
    dims[--at] = b->dims[d];
    to[at] = step;
    from[at] = b->strides[d];
    step *= dims[at];
  }
  return cpu_move_make(m, arena, 1, IR_MAX_RANK - at, dims + at, to + at, from + at);
}

static bool buffer_plan(cpu_move *m, base_arena *arena, const xlac_buffer_info *b, int64_t *room) {
  if (b->steps == NULL) return buffer_plan_bytes(m, arena, b, room, room + IR_MAX_RANK, room + 2 * IR_MAX_RANK);
  int64_t step = 1;
  for (uint32_t d = b->rank; d-- > 0;) {
    room[d] = step;
    step *= b->dims[d];
  }
  return cpu_move_make(m, arena, base_dtype_bytes((base_dtype)b->dtype), b->rank, b->dims, room, b->steps);
}

static int buffer_move(const xlac_buffer_info *b, base_pool *pool, void *to, xlac_error *err) {
  int64_t room[3 * IR_MAX_RANK];
  base_arena arena;
  cpu_move m;
  base_arena_init(&arena, base_alloc_libc);
  bool made = buffer_plan(&m, &arena, b, room);
  if (made) cpu_move_run(&m, pool, to, b->data);
  base_arena_free(&arena);
  return made ? 0 : base_oom(err, "copying a buffer");
}

enum { BUFFER_COPY_ALONE = 1 << 20 }; /* bytes: fewer are copied without asking for threads */

int xlac_buffer_copy_to(xlac_buffer *b, xlac_runtime *rt, void *to, xlac_error *err) {
  xlac_buffer_info info;
  base_pool *pool = NULL;
  TRY(xlac_buffer_open(b, err));
  xlac_buffer_get(b, &info);
  int status = 0;
  if (rt && info.bytes >= BUFFER_COPY_ALONE) status = cpu_runtime_pool((cpu_runtime *)(void *)rt, 0, &pool, err);
  if (status == 0 && info.dense && info.bytes) cpu_move_bytes(pool, to, info.data, (int64_t)info.bytes);
  if (status == 0 && !info.dense && info.bytes) status = buffer_move(&info, pool, to, err);
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
