/* The text that NVRTC gets: types, functions that kernels call, kernels. */
#include "source.h"

#include <stdlib.h>

/* The rows of prelude.def, name and numbers, each with its zero, and where each begins: without pointers, which would
 * be relocated. */
#define CUDA_FUNCTION(name, needs) char row_##name[sizeof(#name "\0" needs)];
typedef struct cu_source_rows {
#include "prelude.def"
} cu_source_rows;
#define CUDA_FUNCTION(name, needs) #name "\0" needs,
static const cu_source_rows cu_source_all = {
#include "prelude.def"
};
#define CUDA_FUNCTION(name, needs) offsetof(cu_source_rows, row_##name),
static const uint16_t cu_source_at[] = {
#include "prelude.def"
};
_Static_assert(sizeof(cu_source_rows) <= UINT16_MAX, "a row's place is 16 bits");

#define CUDA_TEXT(bytes, packed)      \
  enum { CU_SOURCE_BYTES = (bytes) }; \
  static const char cu_source_packed[] = packed;
#include "prelude.def"
#undef CUDA_TEXT

/* NVRTC has no headers: these are of the same sizes on all that CUDA runs on. */
static const char cu_source_types[] =
    "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long int64_t;\n"
    "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t;\n\n"
    "template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack { T e[N]; };\n";

void cuda_source_begin(cuda_source *s, base_alloc alloc) {
  memset(s, 0, sizeof *s);
  base_text_init(&s->body, alloc);
}

void cuda_source_free(cuda_source *s) {
  base_text_free(&s->body);
}

static const char *cu_source_name(uint32_t number) {
  assert(number < CUDA_FUNCTIONS);
  return (const char *)&cu_source_all + cu_source_at[number];
}

/* Each stands behind what it needs, so the depth is that of the calls, some ten. */
static void cu_source_mark(cuda_source *s, uint32_t number) {
  const char *name = cu_source_name(number);
  if (s->needed[number]) return;
  s->needed[number] = true;
  for (const char *at = name + strlen(name) + 1; *at;) {
    char *end = NULL;
    unsigned long other = strtoul(at, &end, 10);
    assert(end != at && other < number);
    cu_source_mark(s, (uint32_t)other);
    at = *end ? end + 1 : end;
  }
}

bool cuda_source_needs(cuda_source *s, const char *name) {
  assert(name[0]);
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++) {
    if (strcmp(cu_source_name(i), name) != 0) continue;
    cu_source_mark(s, i);
    return true;
  }
  return false;
}

/* --- unpacking --- */

/* prelude.py packs the text: characters, and copies of what stands already, as bits with probabilities, in 2048ths,
 * each near what it was lately. Numbers are trees of bits, whose node 0 is unused. */
typedef struct cu_source_reader {
  const unsigned char *at, *end;
  uint32_t range, code;
  uint16_t copy, character[128][128], length[256], bits[32], back[32][32];
} cu_source_reader;

static void cu_source_open(cu_source_reader *r) {
  uint16_t *first = &r->copy, *behind = (uint16_t *)(r + 1);
  r->at = (const unsigned char *)cu_source_packed;
  r->end = r->at + sizeof cu_source_packed - 1;
  r->range = UINT32_MAX;
  r->code = 0;
  for (int i = 0; i < 4; i++) r->code = r->code << 8 | *r->at++;
  while (first < behind) *first++ = 1024;
}

static unsigned cu_source_bit(cu_source_reader *r, uint16_t *p) {
  uint32_t bound = (r->range >> 11) * *p;
  unsigned bit = r->code >= bound;
  if (bit) {
    r->code -= bound;
    r->range -= bound;
    *p = (uint16_t)(*p - (*p >> 4));
  } else {
    r->range = bound;
    *p = (uint16_t)(*p + ((2048 - *p) >> 4));
  }
  for (; r->range < 1u << 24; r->range <<= 8) r->code = r->code << 8 | (r->at < r->end ? *r->at++ : 0);
  return bit;
}

static unsigned cu_source_number(cu_source_reader *r, uint16_t *tree, unsigned bits) {
  unsigned m = 1;
  for (unsigned i = 0; i < bits; i++) m = 2 * m + cu_source_bit(r, &tree[m]);
  return m - (1u << bits);
}

static void cu_source_unpack(cu_source_reader *r, char *out) {
  enum { SHORTEST = 3 };
  cu_source_open(r);
  for (size_t n = 0; n < CU_SOURCE_BYTES;) {
    if (!cu_source_bit(r, &r->copy)) {
      unsigned before = n ? (unsigned char)out[n - 1] : 0;
      out[n++] = (char)cu_source_number(r, r->character[before], 7);
      continue;
    }
    size_t length = cu_source_number(r, r->length, 8) + SHORTEST, back = 1;
    unsigned bits = cu_source_number(r, r->bits, 5);
    for (unsigned i = bits - 1; i-- > 0;) back = 2 * back + cu_source_bit(r, &r->back[bits][i]);
    assert(bits && back <= n && n + length <= CU_SOURCE_BYTES);
    for (; length; length--, n++) out[n] = out[n - back];
  }
}

void cuda_source_put(const cuda_source *s, base_text *out) {
  cu_source_reader *reader = base_malloc(s->body.alloc, sizeof *reader + CU_SOURCE_BYTES);
  char *text = (char *)(reader + 1);
  out->failed = out->failed || s->body.failed || !reader;
  if (out->failed) return base_free(s->body.alloc, reader);
  cu_source_unpack(reader, text);
  base_puts(out, cu_source_types);
  const char *at = text;
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++, at += strlen(at) + 1)
    if (s->needed[i]) base_puts(out, at);
  base_put(out, s->body.s, s->body.n);
  base_free(s->body.alloc, reader);
}
