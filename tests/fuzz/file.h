/* Inputs of fuzzers, and the one edit that all mutations are made of. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INPUT = 1 << 16 };

#ifndef XLAC_TESTS_FUZZ_H /* common/fuzz.h has it too */
typedef struct fuzz_file {
  uint8_t *data; /* MAX_INPUT bytes, n of them in use */
  size_t n;
} fuzz_file;
#endif

/* Replaces [at, at + drop) by n bytes, as far as there is room. */
static inline void splice(fuzz_file *buf, size_t at, size_t drop, const void *with, size_t n) {
  if (at > buf->n) at = buf->n;
  if (drop > buf->n - at) drop = buf->n - at;
  if (buf->n - drop + n > MAX_INPUT) return;
  uint8_t *copy = malloc(n + 1); /* `with` may lie in the buffer */
  if (!copy) return;
  if (n) memcpy(copy, with, n);
  memmove(buf->data + at + n, buf->data + at + drop, buf->n - at - drop);
  if (n) memcpy(buf->data + at, copy, n);
  free(copy);
  buf->n = buf->n - drop + n;
}

#endif
