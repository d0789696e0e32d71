/* Allocation: the allocator callback, arenas, checked sizes. */
#ifndef XLAC_BASE_MEMORY_H
#define XLAC_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* realloc-like: size 0 frees and returns NULL; NULL on failure. `ctx` is the owner's. Thread-safe if `ctx` is. */
typedef struct base_alloc {
  void *(*fn)(void *ctx, void *ptr, size_t size);
  void *ctx;
} base_alloc;

extern const base_alloc base_alloc_libc;

/* A bump arena: nothing is freed singly, all at once. Thread-compatible: one thread at a time. Memory is NOT zeroed by
 * base_arena_alloc, zeroed by base_arena_zalloc; aligned to 8 bytes (alloc, zalloc, arrays) or as asked (aligned). NULL
 * when out of memory.
 */
typedef struct base_arena_chunk base_arena_chunk;
/* Zeroed but for alloc after init. chunks: newest first; [at, end) is the free rest of the present one. */
typedef struct base_arena {
  base_alloc alloc;
  base_arena_chunk *chunks;
  char *at, *end;
  size_t used;     /* bytes taken from the allocator in all */
  size_t foreseen; /* what `used` is to come to, or 0 */
  bool failed;     /* a request has: for those who took the NULL for an empty list */
} base_arena;

void base_arena_init(base_arena *a, base_alloc alloc);
void base_arena_free(base_arena *a);
/* Inside of base_arena_aligned: the request that the present chunk has no room for. */
void *base_arena_slow(base_arena *a, size_t size, size_t align);
/* Makes room for about `bytes` more, where that much is foreseen: at once as far as a chunk goes, then in chunks that
 * end there, and in small ones beyond. A wish: a failure shows when the room is needed. */
void base_arena_foresee(base_arena *a, size_t bytes);

/* A place to go back to: what was allocated since is given up, and its room used again. */
typedef struct base_arena_mark {
  base_arena_chunk *chunks;
  char *at, *end;
} base_arena_mark;
static inline base_arena_mark base_arena_here(const base_arena *a) {
  return (base_arena_mark){a->chunks, a->at, a->end};
}
void base_arena_drop(base_arena *a, const base_arena_chunk *until); /* chunks newer than that one */
static inline void base_arena_back(base_arena *a, base_arena_mark to) {
  if (a->chunks != to.chunks) base_arena_drop(a, to.chunks);
  a->at = to.at;
  a->end = to.end;
}

static inline void *base_arena_aligned(base_arena *a, size_t size, size_t align) {
  char *p = (char *)(((uintptr_t)a->at + (align - 1)) & ~(uintptr_t)(align - 1));
  if (a->at == NULL || p > a->end || size > (size_t)(a->end - p)) return base_arena_slow(a, size, align);
  a->at = p + size;
  return p;
}
static inline void *base_arena_alloc(base_arena *a, size_t size) {
  return base_arena_aligned(a, size, 8);
}
/* As alloc, of zero bytes. */
static inline void *base_arena_zalloc(base_arena *a, size_t size) {
  void *p = base_arena_alloc(a, size);
  return p ? memset(p, 0, size) : NULL;
}
/* n * size bytes, NULL on overflow as on exhaustion. */
void *base_arena_array(base_arena *a, size_t n, size_t size);
/* A copy of n bytes with a terminating 0. */
char *base_arena_strndup(base_arena *a, const char *s, size_t n);
/* n bytes at p, copied; p may be NULL where n is 0. */
void *base_arena_memdup(base_arena *a, const void *p, size_t n);

/* NEW is zeroed, ARRAY is not. */
#define BASE_NEW(arena, type) ((type *)base_arena_zalloc((arena), sizeof(type)))
#define BASE_ARRAY(arena, type, n) ((type *)base_arena_array((arena), (n), sizeof(type)))

/* Through the callback; size 0 asks for 1 byte, so that NULL always means failure. */
static inline void *base_malloc(base_alloc a, size_t size) {
  return a.fn(a.ctx, NULL, size ? size : 1);
}
static inline void *base_realloc(base_alloc a, void *p, size_t size) {
  return a.fn(a.ctx, p, size ? size : 1);
}
static inline void base_free(base_alloc a, void *p) {
  if (p) a.fn(a.ctx, p, 0);
}

/* Checked arithmetic on sizes: false on overflow, *out then unspecified. */
static inline bool base_mul(size_t a, size_t b, size_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool base_add(size_t a, size_t b, size_t *out) {
  return !__builtin_add_overflow(a, b, out);
}
static inline bool base_mul_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}
static inline bool base_add_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* A growable array of `type` named `name`: {items, n, cap}. Zero-initialised is empty. PUSH is false when out of
 * memory. */
#define BASE_VEC(name, type) \
  typedef struct name {      \
    type *items;             \
    uint32_t n, cap;         \
  } name
/* Inside of RESERVE: room for `need` items, at least twice the present capacity. */
bool base_vec_grow(base_alloc alloc, void **items, uint32_t *cap, size_t item_size, size_t need);
#define BASE_VEC_RESERVE(alloc, v, need) \
  ((need) <= (v)->cap || base_vec_grow((alloc), (void **)&(v)->items, &(v)->cap, sizeof(*(v)->items), (need)))
#define BASE_VEC_PUSH(alloc, v, item) \
  (BASE_VEC_RESERVE((alloc), (v), (size_t)(v)->n + 1) ? ((v)->items[(v)->n++] = (item), true) : false)
#define BASE_VEC_FREE(alloc, v) (base_free((alloc), (v)->items), (v)->items = NULL, (v)->n = (v)->cap = 0)

#endif
