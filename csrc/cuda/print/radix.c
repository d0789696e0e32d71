/* Sorts by radix (sort.cuh): a block has a line, whose elements lie in its threads' registers, and ranks them by 8 bits
 * of their keys at a time, those of the last key first. What goes along with the digits is the element itself, where
 * there is one operand, of which the keys are computed anew; else a part of a key and the element's number, by which
 * the operands are moved at the end. Places behind the line's end have the greatest digit and come last, since each
 * pass keeps the order of the one before. */
#include <stdio.h>

#include "sort.h"

enum {
  CU_RADIX_EACH = 16,     /* elements of a thread, at most */
  CU_RADIX_THREADS = 512, /* of a block, at most */
  CU_RADIX_BYTES = 32768, /* of shared memory for elements: counters, which are beside them, leave so much of 48 KiB */
  CU_RADIX_BUSY = 768,    /* threads of a multiprocessor, which hide what ballots and counters take: 80 registers */
  CU_RADIX_DIGIT = 8
};

typedef struct cu_radix {
  const cu_sort *s;
  uint32_t bytes; /* of what goes along: an element's, or a part of a key's */
  bool whole;     /* the element */
  int64_t threads, each;
} cu_radix;

static uint32_t cu_radix_bits(const cu_sort *s, uint32_t key) {
  return base_dtype_of((base_dtype)s->p->values[s->keys[key].value].dtype)->bits;
}

/* As many threads as have 16 elements each, and so many of these as there must be. */
static bool cu_radix_make(const cuda_routine *r, const cu_sort *s, cu_radix *x) {
  uint32_t bytes = (uint32_t)base_dtype_bytes((base_dtype)ir_operand_type(r->op, 0)->dtype);
  *x = (cu_radix){.s = s, .bytes = 4, .threads = 32};
  while (x->threads < CU_RADIX_THREADS && x->threads * CU_RADIX_EACH < s->n) x->threads *= 2;
  x->each = (s->n + x->threads - 1) / x->threads;
  x->whole = r->op->n_operands == 1 && !s->first && bytes <= 8 && bytes * x->each * x->threads <= CU_RADIX_BYTES;
  if (x->whole) x->bytes = bytes;
  return x->bytes * x->each * x->threads <= CU_RADIX_BYTES;
}

/* By instructions of an element, of which a pass has twice what three steps of the network have, and some that are
 * shared by a thread's. */
static bool cu_radix_is_less(const cu_radix *x) {
  int64_t levels = 0, passes = 0;
  while (((int64_t)1 << levels) < x->s->n) levels++;
  for (uint32_t k = 0; k < x->s->n_keys; k++) passes += (cu_radix_bits(x->s, k) + CU_RADIX_DIGIT - 1) / CU_RADIX_DIGIT;
  return passes * (3 * x->each + 4) <= levels * (levels + 1) / 2 * x->each;
}

/* "key": that of an element, or of the one with that number, as a number without a sign whose low bits are ordered as
 * it is. */
static void cu_radix_put_key(cuda_routine *r, const cu_radix *x, uint32_t key) {
  char parameters[2 * CU_SORT_OPERANDS][64], value[16];
  const cu_sort *s = x->s;
  base_text *out = r->print.out;
  base_dtype t = (base_dtype)s->p->values[s->keys[key].value].dtype;
  unsigned bits = cu_radix_bits(s, key);
  for (uint32_t i = 0; i < s->p->n_params; i++) {
    const char *c = cuda_type((base_dtype)s->p->values[i].dtype);
    if (x->whole)
      snprintf(parameters[i], sizeof parameters[i], "e");
    else
      snprintf(parameters[i], sizeof parameters[i], "((const %s *)in%u)[base + e * %lld]", c, (unsigned)(i / 2),
               (long long)s->inner);
  }
  const char *given = x->whole ? cuda_type((base_dtype)s->p->values[0].dtype) : "idx";
  base_putf(out, "  auto key = [&](%s e) -> uint%d_t {\n", given, bits > 32 ? 64 : 32);
  cuda_body_put(&r->print, s->p, "f", parameters);
  snprintf(value, sizeof value, "f%u", (unsigned)s->keys[key].value);
  base_putf(out, "  return %s(", s->keys[key].descends ? "~" : "");
  bool offset = base_dtype_is_signed(t) || (base_dtype_is_float(t) && base_float_is_signed(t));
  if (base_dtype_is_float(t) && offset) {
    BASE_PUT(out, "((uint64_t)");
    cuda_print_total(&r->print, t, value);
    base_putf(out, " >> %u ^", 64 - bits);
  } else {
    base_putf(out, "((uint64_t)%s +", value);
  }
  base_putf(out, " %lluull));\n  };\n", offset ? 1ull << (bits - 1) : 0);
}

static bool cu_radix_is_full(const cu_radix *x) {
  return x->each * x->threads == x->s->n;
}

/* "for each of the thread's elements, of number i, at place `at`, that the line has" */
static void cu_radix_put_each(cuda_routine *r, const cu_radix *x) {
  base_putf(r->print.out, "#pragma unroll\n  for (int i = 0; i < %lld; i++)\n  if (const int at = first + 32 * i; ",
            (long long)x->each);
  if (cu_radix_is_full(x))
    BASE_PUT(r->print.out, "true) ");
  else
    base_putf(r->print.out, "at < %lld) ", (long long)x->s->n);
}

/* The digits of 32 bits of the key from `from` on, or of the rest. What is read by place has no use for a key behind
 * the last digit. */
static void cu_radix_put_passes(cuda_routine *r, const cu_radix *x, unsigned from, unsigned bits) {
  base_text *out = r->print.out;
  long long t = (long long)x->threads, e = (long long)x->each;
  if (!x->whole) {
    cu_radix_put_each(r, x);
    base_putf(out, "x[i] = (uint32_t)(key(self[i]) >> %u);\n", from);
    bits = bits - from < 32 ? bits - from : 32;
  }
  base_putf(out, "#pragma unroll 1\n  for (int shift = 0; shift < %u; shift += %d) {\n", bits, CU_RADIX_DIGIT);
  base_putf(out, "  sort_rank<%lld, %lld>(to, count, sums, [&](int i) -> int {\n", t, e);
  if (!cu_radix_is_full(x)) base_putf(out, "  if (first + 32 * i >= %lld) return 255;\n", (long long)x->s->n);
  base_putf(out, "  return (int)(%s >> shift) & 255;\n  });\n", x->whole ? "key(x[i])" : "x[i]");
  if (!x->whole)
    base_putf(out, "  sort_move<%lld, %lld>(self, (uint16_t *)room, to);\n  if (shift + %d < %u)", t, e, CU_RADIX_DIGIT,
              bits);
  base_putf(out, "  sort_move<%lld, %lld>(x, room, to);\n  }\n", t, e);
}

/* Operand i is read in its order, and then by number from shared memory, where it has room there. */
static void cu_radix_put_operand(cuda_routine *r, const cu_radix *x, uint32_t i) {
  base_text *out = r->print.out;
  base_dtype t = (base_dtype)ir_operand_type(r->op, i)->dtype;
  const char *c = cuda_type(t);
  long long inner = (long long)x->s->inner;
  if (x->s->first || base_dtype_bytes(t) > x->bytes) {
    cu_radix_put_each(r, x);
    BASE_PUT(out, "{\n");
    cuda_sort_put_move(r, x->s, i, "self[i]", "at");
    BASE_PUT(out, "  }\n");
    return;
  }
  BASE_PUT(out, "  __syncthreads();\n");
  cu_radix_put_each(r, x);
  base_putf(out, "((%s *)room)[at] = ((const %s *)in%u)[base + at * %lld];\n  __syncthreads();\n", c, c, (unsigned)i,
            inner);
  cu_radix_put_each(r, x);
  base_putf(out, "((%s *)out%u)[base + at * %lld] = ((%s *)room)[self[i]];\n", c, (unsigned)i, inner, c);
}

static void cu_radix_put(cuda_routine *r, const cu_radix *x) {
  base_text *out = r->print.out;
  const char *c = x->whole ? cuda_type((base_dtype)ir_operand_type(r->op, 0)->dtype) : "uint32_t";
  long long t = (long long)x->threads, e = (long long)x->each;
  base_putf(out, "  __shared__ __align__(16) %s room[%lld];\n  __shared__ __align__(16) uint16_t count[%lld][256];\n",
            c, t * e, t / 32);
  base_putf(out, "  __shared__ int sums[%lld];\n  const idx line = blockIdx.x;\n", t / 32);
  cuda_sort_put_base(r, x->s);
  base_putf(out, "  const int first = threadIdx.x / 32 * %lld + threadIdx.x %% 32;\n  %s x[%lld] = {};\n", 32 * e, c,
            e);
  base_putf(out, "  int to[%lld];\n", e);
  if (x->whole) {
    cu_radix_put_each(r, x);
    base_putf(out, "x[i] = ((const %s *)in0)[base + at * %lld];\n", c, (long long)x->s->inner);
  } else {
    base_putf(out,
              "  uint16_t self[%lld];\n#pragma unroll\n  for (int i = 0; i < %lld; i++) self[i] = first + 32 * i;\n", e,
              e);
  }
  for (uint32_t k = x->s->n_keys; k-- > 0;) {
    unsigned bits = cu_radix_bits(x->s, k);
    BASE_PUT(out, "  {\n");
    cu_radix_put_key(r, x, k);
    for (unsigned from = 0; from < (x->whole ? 1 : bits); from += 32) cu_radix_put_passes(r, x, from, bits);
    BASE_PUT(out, "  }\n");
  }
  if (x->whole) {
    cu_radix_put_each(r, x);
    base_putf(out, "((%s *)out0)[base + at * %lld] = x[i];\n", c, (long long)x->s->inner);
  }
  for (uint32_t i = 0; i < r->op->n_operands && !x->whole; i++) cu_radix_put_operand(r, x, i);
}

bool cuda_sort_put_radix(cuda_routine *r, const cu_sort *s, uint32_t n_out) {
  cu_radix x;
  assert(s->n_keys > 0 && s->n_keys <= CU_SORT_KEYS);
  if (!cu_radix_make(r, s, &x) || !cu_radix_is_less(&x)) return false;
  cuda_print_needs(&r->print, "sort_rank");
  cuda_print_needs(&r->print, "sort_move");
  r->launch->grid = s->lines;
  r->launch->block = (uint32_t)x.threads;
  r->blocks = (uint32_t)(CU_RADIX_BUSY / x.threads);
  cuda_routine_head(r, r->op->n_operands, n_out);
  cu_radix_put(r, &x);
  cuda_routine_close(r, "a block for each line, by radix in shared memory");
  return true;
}
