/* Changes of bits and bytes, for formats that are neither text nor protobuf. */
#include "fuzz.h"

void fuzz_mutate_bytes(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  size_t at = buf->n ? fuzz_random(state) % buf->n : 0, n = fuzz_below(state, 40);
  uint8_t byte = (uint8_t)fuzz_random(state), bit = (uint8_t)(1 << fuzz_below(state, 8));
  size_t from = other->n ? fuzz_random(state) % other->n : 0;
  switch (fuzz_below(state, 7)) {
    case 0:
    case 1:
      if (buf->n) buf->data[at] ^= bit;
      break;
    case 2:
      fuzz_splice(buf, at, 1, &byte, 1);
      break;
    case 3:
      fuzz_splice(buf, at, n, NULL, 0);
      break;
    case 4:
      fuzz_splice(buf, at, n, other->data + from, n < other->n - from ? n : other->n - from);
      break;
    case 5:
      if (buf->n) buf->data[at] = (uint8_t)(buf->data[at] + 2);
      break;
    default:
      if (fuzz_below(state, 8) == 0) buf->n = at;
  }
}
