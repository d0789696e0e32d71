#include "blocks.h"

int interp_in_blocks(interp_ctx *ctx, int64_t n, interp_block_fn *fn, void *x) {
  assert(n >= 0);
  for (int64_t at = 0; at < n; at += INTERP_BLOCK) {
    int64_t some = n - at < INTERP_BLOCK ? n - at : INTERP_BLOCK;
    fn(x, at, at + some);
    TRY(interp_tick(ctx, (uint64_t)some));
  }
  return 0;
}

enum { BYTES_BLOCK = 8 * INTERP_BLOCK /* moved at some eight bytes in the time of an element operation */ };

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
