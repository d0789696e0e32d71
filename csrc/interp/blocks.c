/* Long loops in pieces, with a look at interruptions between them: INTERP_BLOCK elements at a time,
 * blocks.h says how many. */
#include "blocks.h"

#include "algorithm/strided.h"

/* `each`: element operations that one element takes, for counting. */
int interp_in_heavy_blocks(interp_ctx *ctx, int64_t n, int64_t each, interp_block_fn *fn, void *x) {
  assert(n >= 0 && each > 0);
  for (int64_t at = 0; at < n; at += INTERP_BLOCK) {
    int64_t some = n - at < INTERP_BLOCK ? n - at : INTERP_BLOCK;
    fn(x, at, at + some);
    TRY(interp_tick(ctx, (uint64_t)(some * each)));
  }
  return 0;
}

int interp_in_blocks(interp_ctx *ctx, int64_t n, interp_block_fn *fn, void *x) {
  return interp_in_heavy_blocks(ctx, n, 1, fn, x);
}

enum { BYTES_BLOCK = 8 * INTERP_BLOCK /* moved at some eight bytes in the time of an element operation */ };

/* The two may not overlap. */
int interp_copy_bytes(interp_ctx *ctx, void *to, const void *from, size_t n) {
  for (size_t at = 0; at < n; at += BYTES_BLOCK) {
    size_t some = n - at < BYTES_BLOCK ? n - at : BYTES_BLOCK;
    memcpy((char *)to + at, (const char *)from + at, some);
    TRY(interp_tick(ctx, some / 8));
  }
  return 0;
}

int interp_zero_bytes(interp_ctx *ctx, void *to, size_t n) {
  for (size_t at = 0; at < n; at += BYTES_BLOCK) {
    size_t some = n - at < BYTES_BLOCK ? n - at : BYTES_BLOCK;
    memset((char *)to + at, 0, some);
    TRY(interp_tick(ctx, some / 8));
  }
  return 0;
}

typedef struct block_conversion {
  base_dtype to_type, from_type;
  char *to;
  const char *from;
} block_conversion;

static void block_convert(void *x, int64_t begin, int64_t end) {
  const block_conversion *c = x;
  base_convert(c->to_type, c->to + (size_t)begin * base_dtype_bytes(c->to_type), c->from_type,
               c->from + (size_t)begin * base_dtype_bytes(c->from_type), (size_t)(end - begin));
}

/* As base_convert rounds; n elements, the two arrays don't overlap. */
int interp_convert(interp_ctx *ctx, base_dtype to_type, void *to, base_dtype from_type, const void *from, int64_t n) {
  return interp_in_blocks(ctx, n, block_convert, &(block_conversion){to_type, from_type, to, from});
}

typedef struct block_filling {
  size_t bytes;
  char *to;
  const void *element;
} block_filling;

static void block_fill(void *x, int64_t begin, int64_t end) {
  const block_filling *f = x;
  interp_fill(f->bytes, f->to + (size_t)begin * f->bytes, end - begin, f->element);
}

/* `element` has the array's element type. */
int interp_fill_array(interp_ctx *ctx, interp_value *r, const void *element) {
  return interp_in_blocks(ctx, r->count, block_fill, &(block_filling){base_dtype_bytes(r->dtype), r->data, element});
}
