/* A queue of numbers, as a binary heap: the least key comes first, the least number where keys are the same. Room is
 * fixed: the caller gives `items` for as many as will ever be in it, so that pushing can't fail. Keys are doubles
 * (times, and path lengths with a minus sign for "longest first"). Push and pop take O(log n). */
#ifndef XLAC_PASSES_ASYNC_QUEUE_H
#define XLAC_PASSES_ASYNC_QUEUE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct async_item {
  double key;
  uint32_t i;
} async_item;

typedef struct async_queue {
  async_item *items;
  uint32_t n;
} async_queue;

static inline bool async_before(async_item a, async_item b) {
  return a.key < b.key || (!(b.key < a.key) && a.i < b.i);
}

static inline void async_push(async_queue *q, double key, uint32_t i) {
  async_item item = {key, i};
  uint32_t at = q->n++;
  for (; at && async_before(item, q->items[(at - 1) / 2]); at = (at - 1) / 2) q->items[at] = q->items[(at - 1) / 2];
  q->items[at] = item;
}

static inline uint32_t async_pop(async_queue *q) {
  assert(q->items != NULL);
  assert(q->n > 0);
  uint32_t first = q->items[0].i, at = 0;
  async_item last = q->items[--q->n];
  for (uint32_t child; (child = 2 * at + 1) < q->n; at = child) {
    if (child + 1 < q->n && async_before(q->items[child + 1], q->items[child])) child++;
    if (!async_before(q->items[child], last)) break;
    q->items[at] = q->items[child];
  }
  q->items[at] = last;
  return first;
}

#endif
