/* Stores past the cache (non-temporal ones): a line that is written whole need not be read first, and pushes out
 * nothing that is still of use. They are weakly ordered, so each range ends with a fence before its thread says
 * that it is done. */
#include "stream.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

enum { STREAM_LINE = 64 };

/* Whole lines are streamed; what comes before the first line boundary and after the last is copied. */
void base_stream(void *to, const void *from, size_t n) {
  char *out = to;
  const char *in = from;
  size_t head = -(uintptr_t)out % STREAM_LINE;
  if (head > n) head = n;
  memcpy(out, in, head);
  for (out += head, in += head, n -= head; n >= STREAM_LINE; n -= STREAM_LINE, out += STREAM_LINE, in += STREAM_LINE) {
    const __m128i *x = (const __m128i *)(const void *)in;
    __m128i a = _mm_loadu_si128(x), b = _mm_loadu_si128(x + 1), c = _mm_loadu_si128(x + 2), d = _mm_loadu_si128(x + 3);
    __m128i *line = (__m128i *)(void *)out;
    _mm_stream_si128(line, a);
    _mm_stream_si128(line + 1, b);
    _mm_stream_si128(line + 2, c);
    _mm_stream_si128(line + 3, d);
  }
  memcpy(out, in, n);
}

void base_end_stream(void) {
  _mm_sfence();
}
#else
void base_stream(void *to, const void *from, size_t n) {
  memcpy(to, from, n);
}

void base_end_stream(void) {}
#endif
