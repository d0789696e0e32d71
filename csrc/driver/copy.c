/* A strided array becomes a nest for cpu/move, which knows blocks, transposes and threads. */
#include "copy.h"

#include "../cpu/move/move.h"

/* Strides that are not whole numbers of elements: bytes are copied then, with a dimension of their own, which becomes
 * one block again. Dimensions of 1 make room for it. */
static bool copy_plan_bytes(cpu_move *m, base_arena *arena, const xlac_buffer_info *b, int64_t *dims, int64_t *to,
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

/* `room` has three lists of IR_MAX_RANK numbers. False when out of memory. */
static bool copy_plan(cpu_move *m, base_arena *arena, const xlac_buffer_info *b, int64_t *room) {
  assert(b->rank <= IR_MAX_RANK);
  if (b->steps == NULL) return copy_plan_bytes(m, arena, b, room, room + IR_MAX_RANK, room + 2 * IR_MAX_RANK);
  int64_t step = 1;
  for (uint32_t d = b->rank; d-- > 0;) {
    room[d] = step;
    step *= b->dims[d];
  }
  return cpu_move_make(m, arena, base_dtype_bytes((base_dtype)b->dtype), b->rank, b->dims, room, b->steps);
}

int driver_copy_dense(const xlac_buffer_info *b, rt_pool *pool, void *to, xlac_error *err) {
  if (b->bytes == 0) return 0;
  if (b->dense) {
    cpu_move_bytes(pool, to, b->data, (int64_t)b->bytes);
    return 0;
  }
  int64_t room[3 * IR_MAX_RANK];
  base_arena arena;
  cpu_move m;
  base_arena_init(&arena, base_alloc_libc);
  bool made = copy_plan(&m, &arena, b, room);
  if (made) cpu_move_run(&m, pool, to, b->data);
  base_arena_free(&arena);
  return made ? 0 : base_oom(err, "copying a buffer");
}
