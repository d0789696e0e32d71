/* The text that NVRTC gets: types, functions that kernels call, kernels. */
#include "source.h"

#include <stdlib.h>

/* A row of prelude.def. */
typedef struct cu_source_function {
  const char *name, *text, *needs;
} cu_source_function;
static const cu_source_function cu_source_functions[] = {
#define CUDA_FUNCTION(name, number, text, needs) {#name, text, needs},
#include "prelude.def"
};

/* NVRTC has no headers: these are of the same sizes on all that CUDA runs on. */
static const char cu_source_types[] =
    "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long int64_t;\n"
    "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
    "typedef unsigned long long uint64_t;\n\n";

void cuda_source_begin(cuda_source *s, base_alloc alloc) {
  memset(s, 0, sizeof *s);
  base_text_init(&s->body, alloc);
}

void cuda_source_free(cuda_source *s) {
  base_text_free(&s->body);
}

/* Each stands behind what it needs, so the depth is that of the calls, some ten. */
static void cu_source_mark(cuda_source *s, uint32_t number) {
  assert(number < CUDA_FUNCTIONS);
  if (s->needed[number]) return;
  s->needed[number] = true;
  for (const char *at = cu_source_functions[number].needs; *at;) {
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
    if (strcmp(cu_source_functions[i].name, name) != 0) continue;
    cu_source_mark(s, i);
    return true;
  }
  return false;
}

void cuda_source_put(const cuda_source *s, base_text *out) {
  base_puts(out, cu_source_types);
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++)
    if (s->needed[i]) base_puts(out, cu_source_functions[i].text);
  base_put(out, s->body.s, s->body.n);
  out->failed = out->failed || s->body.failed;
}
