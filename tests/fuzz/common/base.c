#include "fuzz.h"

uint64_t fuzz_random(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

uint32_t fuzz_below(uint64_t *state, uint32_t n) {
  return (uint32_t)(fuzz_random(state) % n);
}

uint64_t fuzz_hash(const void *data, size_t n) {
  uint64_t h = UINT64_C(0xCBF29CE484222325);
  for (size_t i = 0; i < n; i++) h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001B3);
  return h;
}

void fuzz_splice(fuzz_file *buf, size_t at, size_t drop, const void *with, size_t n) {
  if (at > buf->n) at = buf->n;
  if (drop > buf->n - at) drop = buf->n - at;
  if (buf->n - drop + n > FUZZ_MAX_INPUT) return;
  uint8_t *copy = malloc(n + 1);
  if (!copy) return;
  if (n) memcpy(copy, with, n);
  memmove(buf->data + at + n, buf->data + at + drop, buf->n - at - drop);
  if (n) memcpy(buf->data + at, copy, n);
  free(copy);
  buf->n = buf->n - drop + n;
}

_Noreturn void fuzz_report(const char *what, const xlac_error *err) {
  const xlac_error none = {0};
  if (!err) err = &none;
  fprintf(stderr, "finding: %s: %d %u:%u %s: %s (%s)\n", what, err->code, err->line, err->col, err->op, err->message,
          err->hint);
  abort();
}

bool fuzz_failed(int status, const xlac_error *err) {
  if (status == 0) return false;
  if (err->code != -status || !err->message[0]) {
    fprintf(stderr, "status %d\n", status);
    fuzz_report("an error without code or message", err);
  }
  if (!xlac_error_name(err->code)) fuzz_report("an error of no known code", err);
  if (strcmp(xlac_error_name(err->code), "INTERNAL") == 0) fuzz_report("an internal error", err);
  return true;
}
