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

/* A byte below 128 is itself; another one and the two behind it are a length and how far back that many bytes stand
 * already (prelude.py packs them). */
static void cu_source_unpack(char *out) {
  size_t n = 0;
  for (const unsigned char *at = (const unsigned char *)cu_source_packed, *end = at + sizeof cu_source_packed - 1;
       at < end;) {
    if (*at < 128) {
      out[n++] = (char)*at++;
      continue;
    }
    size_t length = *at - 124u, back = at[1] * 256u + at[2];
    assert(back && back <= n && n + length <= CU_SOURCE_BYTES);
    for (at += 3; length; length--, n++) out[n] = out[n - back];
  }
  assert(n == CU_SOURCE_BYTES);
}

void cuda_source_put(const cuda_source *s, base_text *out) {
  char *text = base_malloc(s->body.alloc, CU_SOURCE_BYTES);
  out->failed = out->failed || s->body.failed || !text;
  if (out->failed) return base_free(s->body.alloc, text);
  cu_source_unpack(text);
  base_puts(out, cu_source_types);
  const char *at = text;
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++, at += strlen(at) + 1)
    if (s->needed[i]) base_puts(out, at);
  base_put(out, s->body.s, s->body.n);
  base_free(s->body.alloc, text);
}
