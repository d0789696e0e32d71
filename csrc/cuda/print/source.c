/* The text that NVRTC gets: types, functions that kernels call, kernels. */
#include "source.h"

#include <stdlib.h>

/* The rows of prelude.def, name and numbers, each with its zero, and where each eighth begins: without pointers, which
 * would be relocated. */
#define CUDA_FUNCTION(name, needs) char row_##name[sizeof(#name "\0" needs)];
typedef struct cu_source_rows {
#include "prelude.def"
} cu_source_rows;
#define CUDA_FUNCTION(name, needs) #name "\0" needs,
static const cu_source_rows cu_source_all = {
#include "prelude.def"
};
#define CUDA_EIGHTH(name) offsetof(cu_source_rows, row_##name),
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
    "template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack { T e[N]; };\n"
    "#ifndef " CUDA_SOURCE_BLOCKS "\n#define " CUDA_SOURCE_BLOCKS " 0\n#endif\n";

void cuda_source_begin(cuda_source *s, base_alloc alloc) {
  *s = (cuda_source){.n_kernels = 0};
  base_text_init(&s->body, alloc);
}

void cuda_source_free(cuda_source *s) {
  BASE_VEC_FREE(s->body.alloc, &s->kernels);
  base_text_free(&s->body);
}

void cuda_source_again(cuda_source *s) {
  assert(s->kernels.n == 0);
  s->body.n = 0;
  s->body.failed = false;
  s->n_kernels = 0;
  s->needed = (cuda_functions){{0}};
}

static bool cu_source_has(const cuda_functions *f, uint32_t number) {
  return f->bits[number / 64] >> number % 64 & 1;
}

static const char *cu_source_next(const char *row) {
  row += strlen(row) + 1;
  return row + strlen(row) + 1;
}

static const char *cu_source_name(uint32_t number) {
  assert(number < CUDA_FUNCTIONS);
  const char *row = (const char *)&cu_source_all + cu_source_at[number / 8];
  for (uint32_t i = 0; i < number % 8; i++) row = cu_source_next(row);
  return row;
}

/* Each stands behind what it needs, so the depth is that of the calls, some ten. */
static void cu_source_mark(cuda_source *s, uint32_t number) {
  const char *name = cu_source_name(number);
  if (cu_source_has(&s->needed, number)) return;
  s->needed.bits[number / 64] |= (uint64_t)1 << number % 64;
  for (const char *at = name + strlen(name) + 1; *at;) {
    char *end = NULL;
    unsigned long other = strtoul(at, &end, 10);
    assert(end != at && other < number);
    cu_source_mark(s, (uint32_t)other);
    at = *end ? end + 1 : end;
  }
}

bool cuda_source_needs(cuda_source *s, const char *name) {
  uint16_t *known = &s->known[base_hash(name, strlen(name)) % CUDA_SOURCE_KNOWN];
  assert(name[0]);
  uint32_t i = *known ? *known - 1u : 0;
  if (!*known || strcmp(cu_source_name(i), name) != 0) {
    const char *row = cu_source_name(0);
    for (i = 0; i < CUDA_FUNCTIONS && strcmp(row, name) != 0; i++) row = cu_source_next(row);
  }
  if (i == CUDA_FUNCTIONS) return false;
  *known = (uint16_t)(i + 1);
  cu_source_mark(s, i);
  return true;
}

/* --- kernels --- */

/* The name stands behind the bounds and before the parameters. */
static cuda_source_kernel cu_source_kernel(const cuda_source *s, size_t begin) {
  const char *text = s->body.s + begin;
  size_t n = s->body.n - begin, name = 0, more;
  while (name + 3 < n && memcmp(text + name, ") k", 3) != 0) name++;
  name += 2;
  for (more = name; more < n && text[more] != '(';) more++;
  assert(more < n);
  return (cuda_source_kernel){.begin = begin,
                              .end = s->body.n,
                              .name = name,
                              .more = more,
                              .hash = base_hash(text, name) ^ base_hash(text + more, n - more),
                              .needed = s->needed};
}

/* But for the name. */
static bool cu_source_is_same(const cuda_source *s, const cuda_source_kernel *a, const cuda_source_kernel *b) {
  const char *x = s->body.s + a->begin, *y = s->body.s + b->begin;
  size_t n = a->end - a->begin - a->more;
  return a->hash == b->hash && a->name == b->name && n == b->end - b->begin - b->more && memcmp(x, y, a->name) == 0 &&
         memcmp(x + a->more, y + b->more, n) == 0;
}

void cuda_source_settle(cuda_source *s, cuda_launch *l) {
  bool printed = s->n_kernels > s->kernels.n && !s->body.failed;
  size_t begin = s->kernels.n ? s->kernels.items[s->kernels.n - 1].end : 0;
  cuda_source_kernel own = printed ? cu_source_kernel(s, begin) : (cuda_source_kernel){.end = begin};
  s->needed = (cuda_functions){{0}};
  if (!printed) return;
  uint32_t i = 0;
  while (i < s->kernels.n && !cu_source_is_same(s, &s->kernels.items[i], &own)) i++;
  l->number = i;
  if (i == s->kernels.n) {
    s->body.failed = !BASE_VEC_PUSH(s->body.alloc, &s->kernels, own);
  } else {
    s->body.n = begin;
    s->n_kernels = s->kernels.n;
  }
}

static cuda_functions cu_source_needed(const cuda_source *s, const uint32_t *numbers, uint32_t n) {
  cuda_functions all = {{0}};
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < sizeof all.bits / sizeof *all.bits; j++)
      all.bits[j] |= s->kernels.items[numbers[i]].needed.bits[j];
  return all;
}

base_sum cuda_source_functions_sum(void) {
  base_sum functions = base_sum_of((base_sum){0}, cu_source_packed, sizeof cu_source_packed);
  return base_sum_of(functions, cu_source_types, sizeof cu_source_types);
}

base_sum cuda_source_sum(const cuda_source *s, const uint32_t *numbers, uint32_t n, base_sum so_far) {
  cuda_functions needed = cu_source_needed(s, numbers, n);
  so_far = base_sum_of(so_far, &needed, sizeof needed);
  for (uint32_t i = 0; i < n; i++) {
    const cuda_source_kernel *k = &s->kernels.items[numbers[i]];
    so_far = base_sum_of(so_far, s->body.s + k->begin, k->end - k->begin);
  }
  return so_far;
}

/* By NVRTC 13: some 40 us for each character of a kernel. The functions of tensor.cuh, of which tensor_mma is the
 * first, become a part of it, and loops in them are unrolled. */
size_t cuda_source_cost(const cuda_source *s, uint32_t number) {
  enum { FUNCTION = 256, PART = 1024 };
  const cuda_source_kernel *k = &s->kernels.items[number];
  size_t cost = k->end - k->begin;
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++)
    if (cu_source_has(&k->needed, i)) cost += i < CUDA_FUNCTION_tensor_mma ? FUNCTION : PART;
  return cost;
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

void cuda_source_put(const cuda_source *s, const uint32_t *numbers, uint32_t n, base_text *out) {
  cuda_functions needed = cu_source_needed(s, numbers, n);
  cu_source_reader *reader = base_malloc(s->body.alloc, sizeof *reader + CU_SOURCE_BYTES);
  char *text = (char *)(reader + 1);
  out->failed = out->failed || s->body.failed || !reader;
  if (out->failed) return base_free(s->body.alloc, reader);
  cu_source_unpack(reader, text);
  base_puts(out, cu_source_types);
  const char *at = text;
  for (uint32_t i = 0; i < CUDA_FUNCTIONS; i++, at += strlen(at) + 1)
    if (cu_source_has(&needed, i)) base_puts(out, at);
  for (uint32_t i = 0; i < n; i++) {
    const cuda_source_kernel *k = &s->kernels.items[numbers[i]];
    base_put(out, s->body.s + k->begin, k->end - k->begin);
  }
  base_free(s->body.alloc, reader);
}
