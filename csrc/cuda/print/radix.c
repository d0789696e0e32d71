/* Sorts by radix (sort.cuh): a block has a line, whose elements lie in its threads' registers, and ranks them by 8 bits
 * of their keys at a time, those of the last key first. What goes along with the digits is the element itself, where
 * there is one operand, of which the keys are computed anew; else a part of a key and the element's number, by which
 * the operands are moved at the end. Places behind the line's end have the greatest digit and come last, since each
 * pass keeps the order of the one before.
 *
 * Of longer lines a block has a tile at a time, and a pass is three rounds: counts of the digits in each tile; what
 * stands before them, digit by digit and tile by tile; and the tiles ranked and moved to there. */
#include <stdio.h>

#include "sort.h"

enum {
  CU_RADIX_EACH = 16,     /* elements of a thread, at most */
  CU_RADIX_THREADS = 512, /* of a block, at most */
  CU_RADIX_BYTES = 32768, /* of shared memory for elements: counters, which are beside them, leave so much of 48 KiB */
  CU_RADIX_BUSY = 768,    /* threads of a multiprocessor, which hide what ballots and counters take: 80 registers */
  CU_RADIX_DIGIT = 8,
  CU_RADIX_TILE_THREADS = 256, /* of a block with a part of a longer line: one for each digit */
  CU_RADIX_TILE = CU_RADIX_TILE_THREADS * CU_RADIX_EACH
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

static int64_t cu_radix_passes(const cu_sort *s) {
  int64_t passes = 0;
  for (uint32_t k = 0; k < s->n_keys; k++) passes += (cu_radix_bits(s, k) + CU_RADIX_DIGIT - 1) / CU_RADIX_DIGIT;
  return passes;
}

/* As many threads as have 16 elements each, and so many of these as there must be. */
static bool cu_radix_make(const cuda_routine *r, const cu_sort *s, cu_radix *x) {
  uint32_t bytes = (uint32_t)base_dtype_bytes((base_dtype)ir_operand_type(r->op, 0)->dtype);
  *x = (cu_radix){.s = s, .bytes = 4, .threads = 32};
  while (x->threads < CU_RADIX_THREADS && x->threads * CU_RADIX_EACH < s->n) x->threads *= 2;
  x->each = (s->n + x->threads - 1) / x->threads;
  x->whole = r->op->n_operands == 1 && !s->first && bytes <= 8 && bytes * x->each * x->threads <= CU_RADIX_BYTES;
  if (x->whole) x->bytes = bytes;
  return x->each <= CU_RADIX_EACH && x->bytes * x->each * x->threads <= CU_RADIX_BYTES;
}

/* By instructions of an element, of which a pass has twice what three steps of the network have, and some that are
 * shared by a thread's. */
static bool cu_radix_is_less(const cu_radix *x) {
  int64_t levels = 0;
  while (((int64_t)1 << levels) < x->s->n) levels++;
  return cu_radix_passes(x->s) * (3 * x->each + 4) <= levels * (levels + 1) / 2 * x->each;
}

/* "key<n>": that of an element, or of the one with that number, as a number without a sign whose low bits are ordered
 * as it is. */
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
  base_putf(out, "  auto key%u = [&](%s e) -> uint%d_t {\n", (unsigned)key, given, bits > 32 ? 64 : 32);
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

static void cu_radix_put_digit(cuda_routine *r, const cu_radix *x, uint32_t key, const char *of) {
  if (x->whole)
    base_putf(r->print.out, "  return (int)(key%u(%s) >> shift) & 255;\n  }", (unsigned)key, of);
  else
    base_putf(r->print.out, "  return (int)(%s >> shift) & 255;\n  }", of);
}

/* The digits of 32 bits of the key from `from` on, or of the rest. What is read by place has no use for a key behind
 * the last digit. */
static void cu_radix_put_passes(cuda_routine *r, const cu_radix *x, uint32_t key, unsigned from) {
  unsigned bits = cu_radix_bits(x->s, key);
  base_text *out = r->print.out;
  long long t = (long long)x->threads, e = (long long)x->each;
  if (!x->whole) {
    cu_radix_put_each(r, x);
    base_putf(out, "x[i] = (uint32_t)(key%u(self[i]) >> %u);\n", (unsigned)key, from);
    bits = bits - from < 32 ? bits - from : 32;
  }
  base_putf(out, "#pragma unroll 1\n  for (int shift = 0; shift < %u; shift += %d) {\n", bits, CU_RADIX_DIGIT);
  base_putf(out, "  sort_rank<%lld, %lld>(to, count, sums, [&](int i) -> int {\n", t, e);
  if (!cu_radix_is_full(x)) base_putf(out, "  if (first + 32 * i >= %lld) return 255;\n", (long long)x->s->n);
  cu_radix_put_digit(r, x, key, "x[i]");
  BASE_PUT(out, ");\n");
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
    unsigned bits = x->whole ? 1 : cu_radix_bits(x->s, k);
    BASE_PUT(out, "  {\n");
    cu_radix_put_key(r, x, k);
    for (unsigned from = 0; from < bits; from += 32) cu_radix_put_passes(r, x, k, from);
    BASE_PUT(out, "  }\n");
  }
  if (x->whole) {
    cu_radix_put_each(r, x);
    base_putf(out, "((%s *)out0)[base + at * %lld] = x[i];\n", c, (long long)x->s->inner);
  }
  for (uint32_t i = 0; i < r->op->n_operands && !x->whole; i++) cu_radix_put_operand(r, x, i);
}

/* The first n of these functions. */
static void cu_radix_needs(cuda_routine *r, uint32_t n) {
  static const char names[][12] = {"sort_rank", "sort_move", "sort_round"};
  for (uint32_t i = 0; i < n; i++) cuda_print_needs(&r->print, names[i]);
}

bool cuda_sort_put_radix(cuda_routine *r, const cu_sort *s, uint32_t n_out) {
  cu_radix x;
  assert(s->n_keys > 0 && s->n_keys <= CU_SORT_KEYS);
  if (!cu_radix_make(r, s, &x) || !cu_radix_is_less(&x)) return false;
  cu_radix_needs(r, 2);
  r->launch->grid = s->lines;
  r->launch->block = (uint32_t)x.threads;
  r->blocks = (uint32_t)(CU_RADIX_BUSY / x.threads);
  cuda_routine_head(r, r->op->n_operands, n_out);
  cu_radix_put(r, &x);
  cuda_routine_close(r, "a block for each line, by radix in shared memory");
  return true;
}

/* --- longer lines --- */

/* "part": the pass that is the first of these digits' 32 bits, or of the whole key. */
static void cu_radix_put_part(cuda_routine *r, const cu_radix *x) {
  BASE_PUT(r->print.out, "  int part = 0;\n");
  int pass = 0;
  for (uint32_t k = x->s->n_keys; k-- > 0;)
    for (unsigned from = 0, bits = cu_radix_bits(x->s, k); from < bits; from += 32) {
      if (pass > 0 && !x->whole) base_putf(r->print.out, "  if (pass >= %d) part = %d;\n", pass, pass);
      pass += (int)((bits - from < 32 ? bits - from : 32) + CU_RADIX_DIGIT - 1) / CU_RADIX_DIGIT;
    }
  base_putf(r->print.out, "  const int shift = %d * (pass - part);\n", CU_RADIX_DIGIT);
}

/* What lies in scratch memory: twice, for one pass from the other. */
static void cu_radix_put_memory(cuda_routine *r, const cu_radix *x, const char *c, int64_t tiles) {
  base_text *out = r->print.out;
  long long n = (long long)x->s->n, all = (long long)x->s->lines * n, rows = 256ll * (long long)x->s->lines;
  r->launch->scratch = 4 * rows * (1 + tiles) + 2 * all * (x->bytes + (x->whole ? 0 : 4));
  base_putf(out,
            "  int *const totals = (int *)scratch + line * 256, *const counts = (int *)scratch + %lld + line * %lld;\n",
            rows, 256ll * (long long)tiles);
  base_putf(out, "  int *const selves = (int *)scratch + %lld + line * %lld;\n", rows * (1 + (long long)tiles), n);
  base_putf(out, "  %s *const all = (%s *)((int *)scratch + %lld) + line * %lld;\n", c, c,
            rows * (1 + (long long)tiles) + (x->whole ? 0 : 2 * all), n);
  base_putf(out, "  const idx from = (~pass & 1) * %lldll, next = (pass & 1) * %lldll;\n", all, all);
}

static void cu_radix_put_load(cuda_routine *r, const cu_radix *x) {
  base_text *out = r->print.out;
  if (x->whole) {
    base_putf(out, "  x = pass ? all[from + at] : ((const %s *)in0)[base + (idx)at * %lld];\n",
              cuda_type((base_dtype)ir_operand_type(r->op, 0)->dtype), (long long)x->s->inner);
    return;
  }
  BASE_PUT(out,
           "  if (round % 3 || pass == part) self = pass ? selves[from + at] : at;\n  if (pass != part) x = all[from + "
           "at];\n");
  int pass = 0;
  for (uint32_t k = x->s->n_keys; k-- > 0;)
    for (unsigned from = 0, bits = cu_radix_bits(x->s, k); from < bits; from += 32) {
      base_putf(out, "  else if (part == %d) x = (uint32_t)(key%u(self) >> %u);\n", pass, (unsigned)k, from);
      pass += (int)((bits - from < 32 ? bits - from : 32) + CU_RADIX_DIGIT - 1) / CU_RADIX_DIGIT;
    }
}

/* What lies in memory is the elements in the order of the digits so far; the last pass moves the operands. */
static void cu_radix_put_store(cuda_routine *r, const cu_radix *x, const char *c) {
  base_text *out = r->print.out;
  base_putf(out, "  if (pass < %d) {\n  all[next + go] = x;\n%s  return;\n  }\n", (int)cu_radix_passes(x->s) - 1,
            x->whole ? "" : "  selves[next + go] = self;\n");
  if (x->whole)
    base_putf(out, "  ((%s *)out0)[base + (idx)go * %lld] = x;\n", c, (long long)x->s->inner);
  else
    cuda_sort_put_moves(r, x->s, "self", "go");
}

static void cu_radix_put_rounds(cuda_routine *r, const cu_radix *x, const char *c, int64_t tiles) {
  base_text *out = r->print.out;
  base_putf(out, "  __shared__ __align__(16) %s room[%d];\n  __shared__ __align__(16) uint16_t count[8][256];\n", c,
            CU_RADIX_TILE);
  base_putf(out,
            "  __shared__ int sums[8], start[256];\n  const int pass = round / 3;\n"
            "  const idx line = blockIdx.x / %lld, tile = blockIdx.x %% %lld;\n",
            (long long)tiles, (long long)tiles);
  cuda_sort_put_base(r, x->s);
  cu_radix_put_memory(r, x, c, tiles);
  cu_radix_put_part(r, x);
  for (uint32_t k = 0; k < x->s->n_keys; k++) cu_radix_put_key(r, x, k);
  base_putf(out,
            "  sort_round<%s>(room, round %% 3, %lld, (int)tile, %lld, totals, counts, count, start, sums,\n"
            "  [&](int at, %s &x, int &self) {\n",
            x->whole ? "false" : "true", (long long)x->s->n, (long long)tiles, c);
  cu_radix_put_load(r, x);
  base_putf(out, "  }, [&](%s x) -> int {\n", c);
  cu_radix_put_digit(r, x, 0, "x");
  base_putf(out, ", [&](int go, %s x, int self) {\n", c);
  cu_radix_put_store(r, x, c);
  BASE_PUT(out, "  });\n");
}

bool cuda_sort_put_radix_rounds(cuda_routine *r, const cu_sort *s, uint32_t n_out) {
  base_dtype t = (base_dtype)ir_operand_type(r->op, 0)->dtype;
  cu_radix x = {.s = s, .bytes = 4, .threads = CU_RADIX_TILE_THREADS, .each = CU_RADIX_EACH};
  int64_t tiles = (s->n + CU_RADIX_TILE - 1) / CU_RADIX_TILE, passes = cu_radix_passes(s);
  if (s->n > INT32_MAX / 2 || s->lines > INT64_MAX / 256 / (s->n + 256)) return false;
  x.whole = r->op->n_operands == 1 && !s->first && s->n_keys == 1 && base_dtype_bytes(t) <= 8;
  if (x.whole) x.bytes = (uint32_t)base_dtype_bytes(t);
  cu_radix_needs(r, 3);
  r->launch->rounds = (uint32_t)(3 * passes);
  r->launch->scratch = 1; /* how much is known with the text */
  r->launch->grid = s->lines * tiles;
  r->launch->block = CU_RADIX_TILE_THREADS;
  r->blocks = 2; /* memory's speed needs fewer threads, which have 16 elements on their way each */
  cuda_routine_head(r, r->op->n_operands, n_out);
  cu_radix_put_rounds(r, &x, x.whole ? cuda_type(t) : "uint32_t", tiles);
  cuda_routine_close(r, "a block for each part of a line, by radix through memory");
  return true;
}
