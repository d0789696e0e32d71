/* The allocator of libc with interrupts and huge pages, arenas, and growable arrays.
 *
 * An arena takes chunks that double from 16 kB to 2 MB and hands out their bytes in order; what is larger than half
 * of a chunk gets a chunk of its own. Nothing is freed singly; a mark lets a scratch arena go back. */
#include "memory.h"
#include "export.h"

#include "heed.h"

#include <assert.h>
#include <stdlib.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

enum { FIRST_CHUNK = 16 << 10, LAST_CHUNK = 2 << 20, HUGE_PAGE = 2 << 20 };

/* New memory for much data. Filling it takes a page fault for each 4 KB, a quarter of the time of reading a large
 * program; huge pages take one for each 2 MB, where the system grants them. */
static void *large_block(size_t size) {
#ifdef MADV_HUGEPAGE
  void *p = NULL;
  if (posix_memalign(&p, HUGE_PAGE, size) != 0) return NULL;
  (void)madvise(p, size & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE); /* only a wish: without it all is as usual */
  return p;
#else
  return malloc(size);
#endif
}

/* Every allocation is a place where the call may be interrupted: it then fails as if memory had run out (heed.h). */
static void *libc_fn(void *ctx, void *ptr, size_t size) {
  (void)ctx;
  if (size && base_heed_tick(1 + size / 1024)) return NULL;
  if (!ptr && size >= HUGE_PAGE) return large_block(size);
  if (size) return realloc(ptr, size);
  free(ptr);
  return NULL;
}

BASE_EXPORT const base_alloc base_alloc_libc = {libc_fn, NULL};

/* Its size is a multiple of 16, so that a chunk's first byte is as aligned as the allocator makes the chunk. */
struct base_arena_chunk {
  _Alignas(16) base_arena_chunk *next;
  size_t size; /* with this head */
};

void base_arena_init(base_arena *a, base_alloc alloc) {
  assert(alloc.fn);
  *a = (base_arena){.alloc = alloc};
}

/* Chunks are listed newest first. */
void base_arena_drop(base_arena *a, const base_arena_chunk *until) {
  while (a->chunks != until) {
    base_arena_chunk *c = a->chunks;
    a->chunks = c->next;
    a->used -= c->size;
    base_free(a->alloc, c);
  }
}

/* The arena is empty afterwards, and may be used again. */
void base_arena_free(base_arena *a) {
  base_arena_drop(a, NULL);
  *a = (base_arena){.alloc = a->alloc};
}

/* Between FIRST_CHUNK and LAST_CHUNK. */
static size_t within_bounds(size_t bytes) {
  return bytes < FIRST_CHUNK ? FIRST_CHUNK : bytes > LAST_CHUNK ? LAST_CHUNK : bytes;
}

/* As much as is in use already, within bounds: the arena doubles until it grows by LAST_CHUNK at a time. Where its size
 * is foreseen, what is left of that; and then a quarter at a time, since much more will not come. */
static size_t usual_chunk(const base_arena *a) {
  if (a->foreseen == 0) return within_bounds(a->used);
  return within_bounds(a->used < a->foreseen ? a->foreseen - a->used : a->used / 4);
}

/* `bytes` with the head; NULL when out of memory. */
static char *add_chunk(base_arena *a, size_t bytes) {
  assert(bytes > sizeof(base_arena_chunk));
  base_arena_chunk *c = base_malloc(a->alloc, bytes);
  if (!c) return NULL;
  c->next = a->chunks;
  c->size = bytes;
  a->chunks = c;
  a->used += bytes;
  return (char *)(c + 1);
}

static char *align_up(char *p, size_t align) {
  assert(align && (align & (align - 1)) == 0);
  return (char *)(((uintptr_t)p + (align - 1)) & ~(uintptr_t)(align - 1));
}

static void *add_room(base_arena *a, size_t size, size_t align) {
  size_t bytes;
  if (!base_add(size, sizeof(base_arena_chunk) + align, &bytes) || bytes > PTRDIFF_MAX) return NULL;
  size_t usual = usual_chunk(a);
  /* A request that would fill most of a chunk gets its own, and the rest of the present chunk stays in use. */
  if (bytes > usual / 2) {
    char *own = add_chunk(a, bytes);
    return own ? align_up(own, align) : NULL;
  }
  char *at = add_chunk(a, usual);
  if (!at) return NULL;
  a->end = at + (usual - sizeof(base_arena_chunk));
  char *p = align_up(at, align);
  a->at = p + size;
  assert(a->at <= a->end);
  return p;
}

void base_arena_foresee(base_arena *a, size_t bytes) {
  size_t size = within_bounds(bytes);
  if (!base_add(a->used, bytes, &a->foreseen)) a->foreseen = SIZE_MAX;
  char *at = (size_t)(a->end - a->at) < size ? add_chunk(a, size) : NULL;
  if (!at) return;
  a->at = at;
  a->end = at + (size - sizeof(base_arena_chunk));
}

void *base_arena_slow(base_arena *a, size_t size, size_t align) {
  assert(align && (align & (align - 1)) == 0);
  assert(a->alloc.fn);
  void *p = add_room(a, size, align);
  a->failed = a->failed || !p;
  return p;
}

/* n == 0 gives a pointer that nobody may read from. */
void *base_arena_array(base_arena *a, size_t n, size_t size) {
  assert(size > 0);
  size_t bytes;
  return base_mul(n, size, &bytes) ? base_arena_alloc(a, bytes) : NULL;
}

char *base_arena_strndup(base_arena *a, const char *s, size_t n) {
  size_t bytes;
  char *p = base_add(n, 1, &bytes) ? base_arena_aligned(a, bytes, 1) : NULL;
  if (!p) return NULL;
  if (n) memcpy(p, s, n);
  p[n] = 0;
  return p;
}

void *base_arena_memdup(base_arena *a, const void *p, size_t n) {
  void *copy = base_arena_alloc(a, n);
  if (copy && n) memcpy(copy, p, n);
  return copy;
}

/* Room for at least `need`, at least doubled; the items are as before where it fails. */
BASE_EXPORT bool base_vec_grow(base_alloc alloc, void **items, uint32_t *cap, size_t item_size, size_t need) {
  assert(item_size > 0);
  if (need > UINT32_MAX) return false;
  size_t doubled = (size_t)*cap * 2, grown = doubled < 8 ? 8 : doubled > UINT32_MAX ? UINT32_MAX : doubled;
  size_t wanted = need > grown ? need : grown, bytes;
  if (!base_mul(wanted, item_size, &bytes) || bytes > PTRDIFF_MAX) return false;
  void *p; /* memcpy, because what `items` points at is a pointer to some other type */
  memcpy(&p, items, sizeof p);
  p = base_realloc(alloc, p, bytes);
  if (!p) return false;
  memcpy(items, &p, sizeof p);
  *cap = (uint32_t)wanted;
  return true;
}
