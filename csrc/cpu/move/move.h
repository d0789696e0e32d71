/* Copies between arrays of any strides, with all that depends on shapes alone found beforehand: the loop nest under
 * every routine that moves elements. A run allocates nothing; small ones cost tens of nanoseconds. */
#ifndef XLAC_CPU_MOVE_MOVE_H
#define XLAC_CPU_MOVE_MOVE_H

#include "../../runtime/threads.h"
#include "../../ir/ir.h"

/* How a copy is done: by what is contiguous on which side. */
typedef enum cpu_move_kind {
  CPU_MOVE_NOTHING, /* no elements */
  CPU_MOVE_BLOCK,   /* `block` bytes as stored */
  CPU_MOVE_ROWS,    /* dims[rank - 1] blocks at a time */
  CPU_MOVE_TILES    /* a transposition of dims[rank - 2], contiguous in `from`, and dims[rank - 1], so in `to` */
} cpu_move_kind;

/* A dimension that is walked. */
typedef struct cpu_move_dim {
  int64_t n, to, from; /* strides in bytes */
} cpu_move_dim;

/* A copy, made ready: immutable, and shared by all runs. dims lies in the arena it was made in. */
typedef struct cpu_move {
  uint8_t kind;         /* cpu_move_kind */
  uint32_t rank, cut;   /* cut: the dimension cut in pieces */
  int64_t block, bytes; /* bytes of what is copied as one, and of everything */
  const cpu_move_dim *dims;
  /* How threads share it. */
  int64_t step, pieces; /* of the cut dimension: length of a piece, how many */
  int64_t units, grain; /* units: outer places times pieces; grain: for a thread at a time */
} cpu_move;

/* prod(dims) elements of `bytes` each; strides in elements, may be 0 or negative in `from`. Distinct indices have
 * distinct places in `to`. false when out of memory. */
bool cpu_move_make(cpu_move *m, base_arena *arena, size_t bytes, uint32_t rank, const int64_t *dims, const int64_t *to,
                   const int64_t *from);
/* to and from: the elements of index 0. They don't overlap. */
void cpu_move_run(const cpu_move *m, rt_pool *pool, void *to, const void *from);
/* The same, for what is mostly an element: in loops a call for four bytes is half of the time. */
static inline void cpu_move_few(const cpu_move *m, rt_pool *pool, char *to, const char *from) {
  if (m->kind == CPU_MOVE_BLOCK && m->bytes == 4)
    memcpy(to, from, 4);
  else if (m->kind == CPU_MOVE_BLOCK && m->bytes == 8)
    memcpy(to, from, 8);
  else
    cpu_move_run(m, pool, to, from);
}
/* n bytes, where they are few: without a call. */
static inline void cpu_move_short(char *restrict to, const char *restrict from, int64_t n) {
  if (n > 128) {
    memcpy(to, from, (size_t)n);
  } else if (n >= 16) {
    for (int64_t i = 0; i < n - 16; i += 16) memcpy(to + i, from + i, 16);
    memcpy(to + n - 16, from + n - 16, 16); /* with some of the one before again */
  } else if (n >= 8) {
    memcpy(to, from, 8);
    memcpy(to + n - 8, from + n - 8, 8);
  } else if (n >= 4) {
    memcpy(to, from, 4);
    memcpy(to + n - 4, from + n - 4, 4);
  } else {
    for (int64_t i = 0; i < n; i++) to[i] = from[i];
  }
}
/* n bytes, by several threads where there are many. They may be the same place, and then stay. */
void cpu_move_bytes(rt_pool *pool, void *to, const void *from, int64_t n);
/* n copies of one element, by several threads where there are many. */
void cpu_move_fill(rt_pool *pool, size_t bytes, void *to, int64_t n, const void *element);
/* Row-major strides in elements of t's dims. */
void cpu_move_strides(const ir_type *t, int64_t *strides);

/* n blocks of `block` bytes; strides in bytes. */
void cpu_move_row(int64_t block, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t n);

#endif
