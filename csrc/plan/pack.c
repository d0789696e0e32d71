/* Places found for all buffers at once: the largest first, each at the lowest place that nobody has while it lives.
 * It takes time square in the buffers, so it is for frames that going step by step has left with holes.
 *
 * With a [steps 0 to 1, 100 bytes], b [1 to 2, 50] and c [2 to 3, 80]: a at 0, c at 0, as a is gone by then, b at
 * 100. */
#include "pack.h"

#include <stdlib.h>

/* A total order, so that equal inputs give equal plans. */
static int pack_by_size(const void *a, const void *b) {
  const plan_block *x = *(plan_block *const *)a, *y = *(plan_block *const *)b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->first != y->first ? (x->first < y->first ? -1 : 1) : x->number < y->number ? -1 : 1;
}

/* `placed`, n of them, by offset. The smallest hole that is large enough, or the end of the last. */
static int64_t pack_find(const plan_block *b, plan_block *const *placed, uint32_t n, int64_t begin) {
  int64_t end = begin, best = -1, best_room = INT64_MAX;
  for (uint32_t i = 0; i < n; i++) {
    const plan_block *other = placed[i];
    if (other->last < b->first || b->last < other->first) continue;
    int64_t room = other->offset - end;
    if (room >= b->bytes && room < best_room) best = end, best_room = room;
    if (other->offset + other->bytes > end) end = other->offset + other->bytes;
  }
  return best >= 0 ? best : end;
}

/* First the order, then one search each among the blocks that have a place. */
int64_t plan_pack(plan_block *blocks, uint32_t n, int64_t begin, base_arena *scratch) {
  assert(blocks && begin >= 0);
  plan_block **by_size = BASE_ARRAY(scratch, plan_block *, (size_t)n + 1);
  plan_block **by_offset = BASE_ARRAY(scratch, plan_block *, (size_t)n + 1);
  int64_t top = begin;
  if (!by_size || !by_offset) return -1;
  for (uint32_t i = 0; i < n; i++) by_size[i] = &blocks[i];
  qsort(by_size, n, sizeof *by_size, pack_by_size);
  for (uint32_t i = 0; i < n; i++) {
    plan_block *b = by_size[i];
    b->offset = pack_find(b, by_offset, i, begin);
    uint32_t at = i;
    for (; at > 0 && by_offset[at - 1]->offset > b->offset; at--) by_offset[at] = by_offset[at - 1];
    by_offset[at] = b;
    if (b->offset + b->bytes > top) top = b->offset + b->bytes;
  }
  return top;
}
