/* Blocks of nearly equal size come and go in loops: a block that is freed is kept, and given to the next
 * request of the same rounded size. Values may outlive the run, and be released on any thread: the heap
 * lives until its last block has come back. The lock is held for a few dozen instructions, so it spins. */
#include "heap.h"

#include <assert.h>
#include <stdatomic.h>

#define KEEP_BYTES ((size_t)1 << 30) /* of free blocks at most */
#define KEEP_BLOCKS 64

/* Stands before each block; 64 bytes, so that a block is aligned as what the allocator gives is, up to that. */
typedef struct heap_head {
  size_t size; /* of all, this too */
  char pad[64 - sizeof(size_t)];
} heap_head;

struct interp_heap {
  base_alloc under;
  atomic_flag lock;
  size_t live; /* blocks given out, and one for the run */
  bool closed;
  uint32_t n_free;
  size_t free_bytes;
  heap_head *free[KEEP_BLOCKS]; /* the latest last */
};

static void heap_lock(interp_heap *h) {
  while (atomic_flag_test_and_set_explicit(&h->lock, memory_order_acquire)) continue;
}
static void heap_unlock(interp_heap *h) {
  atomic_flag_clear_explicit(&h->lock, memory_order_release);
}

/* NULL when out of memory. */
interp_heap *interp_heap_create(base_alloc under) {
  interp_heap *h = base_malloc(under, sizeof *h);
  if (!h) return NULL;
  memset(h, 0, sizeof *h);
  h->under = under;
  h->live = 1;
  atomic_flag_clear(&h->lock);
  return h;
}

/* Steps of an eighth of a power of two: values of nearly one size share blocks, and little is wasted. 1000
 * becomes 1024, 1100 becomes 1152. */
static size_t heap_round(size_t size) {
  size_t step = (size_t)1 << (60 - __builtin_clzll((unsigned long long)size));
  return (size + step - 1) & ~(step - 1);
}

/* The latest free block of just this size (it may still be in cache), or NULL. At most KEEP_BLOCKS to look
 * at. */
static heap_head *heap_take_free(interp_heap *h, size_t size) {
  for (uint32_t i = h->n_free; i-- > 0;) {
    heap_head *b = h->free[i];
    if (b->size != size) continue;
    h->n_free--;
    memmove(&h->free[i], &h->free[i + 1], (h->n_free - i) * sizeof *h->free);
    h->free_bytes -= size;
    return b;
  }
  return NULL;
}

/* Under the lock. */
static void heap_drop_free(interp_heap *h) {
  while (h->n_free > 0) base_free(h->under, h->free[--h->n_free]);
  h->free_bytes = 0;
}

/* NULL when out of memory, also after all kept blocks have been given back. */
static void *heap_get(interp_heap *h, size_t size) {
  if (size > PTRDIFF_MAX / 2) return NULL;
  size = heap_round(size + sizeof(heap_head));
  heap_lock(h);
  heap_head *b = heap_take_free(h, size);
  if (!b) b = base_malloc(h->under, size);
  if (!b) {
    heap_drop_free(h); /* of other sizes */
    b = base_malloc(h->under, size);
  }
  if (b) {
    b->size = size;
    h->live++;
  }
  heap_unlock(h);
  return b ? b + 1 : NULL;
}

/* One reference less; the last one, after closing, takes the heap along. */
static void heap_leave(interp_heap *h) {
  assert(h->live > 0);
  bool last = --h->live == 0;
  heap_unlock(h);
  if (last) base_free(h->under, h);
}

/* The heap itself goes with the last block, once it is closed. */
static void heap_put(interp_heap *h, void *p) {
  heap_head *b = (heap_head *)p - 1;
  heap_lock(h);
  bool keep = !h->closed && b->size <= KEEP_BYTES;
  while (keep && (h->n_free == KEEP_BLOCKS || h->free_bytes + b->size > KEEP_BYTES)) { /* the oldest goes */
    h->free_bytes -= h->free[0]->size;
    base_free(h->under, h->free[0]);
    memmove(h->free, h->free + 1, --h->n_free * sizeof *h->free);
  }
  if (keep) {
    h->free[h->n_free++] = b;
    h->free_bytes += b->size;
  } else {
    base_free(h->under, b);
  }
  heap_leave(h);
}

/* The run is over: nothing is kept any more. */
void interp_heap_close(interp_heap *h) {
  if (!h) return;
  heap_lock(h);
  heap_drop_free(h);
  h->closed = true;
  heap_leave(h);
}

/* The allocator's one function: size 0 frees, p NULL allocates, both grow or shrink by copying. */
static void *heap_call(void *ctx, void *p, size_t size) {
  interp_heap *h = ctx;
  if (size == 0) {
    if (p) heap_put(h, p);
    return NULL;
  }
  void *fresh = heap_get(h, size);
  if (!fresh || !p) return fresh;
  size_t old = ((heap_head *)p - 1)->size - sizeof(heap_head);
  memcpy(fresh, p, old < size ? old : size);
  heap_put(h, p);
  return fresh;
}

base_alloc interp_heap_alloc(interp_heap *h) {
  return (base_alloc){heap_call, h};
}
