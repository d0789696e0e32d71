/* Cumulative sums by themselves: a reduce-window whose windows all begin, or all end, at an end of the array. A block
 * goes through a line chunk by chunk, each of which its threads read at once, combine within warps and then among them,
 * and write, so that memory is read once. Where lines are few, several blocks have parts of a line, whose sums are
 * computed in a round before. */
#include <stdio.h>

#include "../../fuse/fuse.h"
#include "routine.h"

enum {
  CU_SCAN_EACH = 4,      /* accesses of a thread to a chunk: as many as one warp can combine the sums of */
  CU_SCAN_ACCESS = 16,   /* bytes of one, */
  CU_SCAN_PACK = 8,      /* and elements */
  CU_SCAN_LINES = 256,   /* that keep a GPU busy with a block for each; */
  CU_SCAN_BLOCKS = 512,  /* else there are so many in all */
  CU_SCAN_SHORT = 64,    /* elements of a line that a thread goes through by itself, */
  CU_SCAN_MANY = 1 << 14 /* or where so many lines lie beside each other */
};

typedef struct cu_scan {
  scalar_code code;
  base_dtype own, sum;
  int64_t n, inner, lines, chunk, chunks; /* chunk: elements */
  int64_t parts, length;                  /* of a line, and of one in chunks */
  int threads, each, pack;
  bool back;
} cu_scan;

/* By extents alone, so that the order of a sum is. */
static void cu_scan_share(cu_scan *s) {
  s->pack = 1;
  while (s->inner == 1 && s->pack < CU_SCAN_PACK && s->n % (2 * s->pack) == 0 &&
         2 * s->pack * (int)base_dtype_bytes(s->own) <= CU_SCAN_ACCESS)
    s->pack *= 2;
  int64_t accesses = s->n / s->pack;
  s->threads = 32;
  while (s->threads < CUDA_BLOCK_THREADS && s->threads * CU_SCAN_EACH < accesses) s->threads *= 2;
  s->each = CU_SCAN_EACH;
  while (s->each > 1 && (s->each - 1) * s->threads >= accesses) s->each--;
  s->chunk = (int64_t)s->threads * s->each * s->pack;
  s->chunks = (s->n + s->chunk - 1) / s->chunk;
  s->length = s->chunks;
  if (s->lines < CU_SCAN_LINES) s->length = (s->chunks * s->lines + CU_SCAN_BLOCKS - 1) / CU_SCAN_BLOCKS;
  s->parts = (s->chunks + s->length - 1) / s->length;
}

static bool cu_scan_make(const ir_op *op, cu_scan *s) {
  uint32_t along = 0;
  scalar_loop l;
  const ir_op *body = op->n_operands == 2 ? fusion_scan(op, &along, &s->back) : NULL;
  if (!body) return false;
  const ir_type *t = ir_operand_type(op, 0);
  s->code = scalar_code_of((ir_opcode)body->opcode);
  s->own = (base_dtype)t->dtype;
  s->sum = cuda_sum_type(s->own);
  s->n = t->dims[along];
  s->inner = 1;
  for (uint32_t d = along + 1; d < t->rank; d++) s->inner *= t->dims[d];
  s->lines = t->count / s->n;
  cu_scan_share(s);
  return scalar_loop_binary(s->code, s->sum, &l);
}

/* "<to> = <a> by <b>;" */
static void cu_scan_put(cuda_routine *r, const cu_scan *s, const char *to, const char *a, const char *b) {
  base_putf(r->print.out, "  %s = ", to);
  cuda_print_combine(&r->print, s->code, s->sum, a, b);
  BASE_PUT(r->print.out, ";\n");
}

/* "const idx base": where the line begins; "const T init". */
static void cu_scan_put_line(cuda_routine *r, const cu_scan *s) {
  char init[64];
  snprintf(init, sizeof init, "((const %s *)in1)[0]", cuda_type(s->own));
  base_putf(r->print.out,
            "  const idx base = line / %lld * %lld + line %% %lld;\n  const %s init = ", (long long)s->inner,
            (long long)(s->n * s->inner), (long long)s->inner, cuda_type(s->sum));
  cuda_print_convert(&r->print, s->sum, s->own, init);
  BASE_PUT(r->print.out, ";\n");
}

/* "const idx at": where element i of the line lies. */
static void cu_scan_put_at(cuda_routine *r, const cu_scan *s) {
  if (s->back)
    base_putf(r->print.out, "  const idx at = base + (%lld - i) * %lld;\n", (long long)(s->n - 1), (long long)s->inner);
  else
    base_putf(r->print.out, "  const idx at = base + i * %lld;\n", (long long)s->inner);
}

static void cu_scan_put_load(cuda_routine *r, const cu_scan *s) {
  char from[64];
  snprintf(from, sizeof from, "((const %s *)in0)[at]", cuda_type(s->own));
  base_putf(r->print.out, "  const %s v = ", cuda_type(s->sum));
  cuda_print_convert(&r->print, s->sum, s->own, from);
  BASE_PUT(r->print.out, ";\n");
}

static void cu_scan_put_store(cuda_routine *r, const cu_scan *s, const char *value) {
  base_putf(r->print.out, "  ((%s *)out0)[at] = ", cuda_type(s->own));
  cuda_print_convert(&r->print, s->own, s->sum, value);
  BASE_PUT(r->print.out, ";\n");
}

static void cu_scan_put_serial(cuda_routine *r, const cu_scan *s) {
  cuda_routine_open(r, 2, 1, s->lines);
  BASE_PUT(r->print.out, "  const idx line = n;\n");
  cu_scan_put_line(r, s);
  base_putf(r->print.out, "  %s sum = init;\n  for (idx i = 0; i < %lld; i++) {\n", cuda_type(s->sum), (long long)s->n);
  cu_scan_put_at(r, s);
  cu_scan_put_load(r, s);
  cu_scan_put(r, s, "sum", "sum", "v");
  cu_scan_put_store(r, s, "sum");
  BASE_PUT(r->print.out, "  }\n");
  cuda_routine_close(r, "a thread for each line of a scan");
}

/* "<T> <to> = ", what another thread of the warp has in `from`: by the function `shuffle` with `far`. */
static void cu_scan_put_shuffle(cuda_routine *r, const cu_scan *s, const char *to, const char *shuffle,
                                const char *from, const char *far) {
  const char *c = cuda_type(s->sum);
  if (base_dtype_is_complex(s->sum))
    base_putf(r->print.out, "  %s %s = {%s(~0u, %s.re, %s), %s(~0u, %s.im, %s)};\n", c, to, shuffle, from, far, shuffle,
              from, far);
  else
    base_putf(r->print.out, "  %s %s = (%s)%s(~0u, %s, %s);\n", c, to, c, shuffle, from, far);
}

/* `name` becomes what the warp's threads up to this one have together. */
static void cu_scan_put_warp(cuda_routine *r, const cu_scan *s, const char *name) {
  BASE_PUT(r->print.out, "#pragma unroll\n  for (int far = 1; far < 32; far *= 2) {\n");
  cu_scan_put_shuffle(r, s, "up", "__shfl_up_sync", name, "far");
  BASE_PUT(r->print.out, "  if (lane >= far)");
  cu_scan_put(r, s, name, "up", name);
  BASE_PUT(r->print.out, "  }\n");
}

static void cu_scan_put_each(cuda_routine *r, const char *index, int n) {
  base_putf(r->print.out, "#pragma unroll\n  for (int %s = 0; %s < %d; %s++) {\n", index, index, n, index);
}

/* Access j of the thread, as the condition that there is one: at element i of the line, "at" in memory. */
static void cu_scan_put_access(cuda_routine *r, const cu_scan *s) {
  base_putf(r->print.out, "  const idx i = chunk * %lld + (j * %d + t) * %d;\n  const idx at = base + ",
            (long long)s->chunk, s->threads, s->pack);
  if (s->back)
    base_putf(r->print.out, "(%lld - i) * %lld", (long long)(s->n - s->pack), (long long)s->inner);
  else
    base_putf(r->print.out, "i * %lld", (long long)s->inner);
  base_putf(r->print.out, ";\n  if (i < %lld) ", (long long)s->n);
}

/* "own": what the thread has up to each element of each access; "sum": the warp, up to the thread. What there is behind
 * the line's end is anything, since nothing comes after it. */
static void cu_scan_put_own(cuda_routine *r, const cu_scan *s) {
  char type[64], from[32];
  snprintf(type, sizeof type, "pack<%s, %d>", cuda_type(s->own), s->pack);
  snprintf(from, sizeof from, "got[j].e[%d %s u]", s->back ? s->pack - 1 : 0, s->back ? "-" : "+");
  base_putf(r->print.out, "  %s got[%d] = {};\n", type, s->each);
  cu_scan_put_each(r, "j", s->each);
  cu_scan_put_access(r, s);
  base_putf(r->print.out, "got[j] = *(const %s *)&((const %s *)in0)[at];\n  }\n", type, cuda_type(s->own));
  base_putf(r->print.out, "  %s own[%d][%d], sum[%d];\n", cuda_type(s->sum), s->each, s->pack, s->each);
  cu_scan_put_each(r, "j", s->each);
  cu_scan_put_each(r, "u", s->pack);
  base_putf(r->print.out, "  const %s v = ", cuda_type(s->sum));
  cuda_print_convert(&r->print, s->sum, s->own, from);
  BASE_PUT(r->print.out, ";\n  if (u == 0) sum[j] = v; else\n");
  cu_scan_put(r, s, "sum[j]", "sum[j]", "v");
  BASE_PUT(r->print.out, "  own[j][u] = sum[j];\n  }\n");
  cu_scan_put_warp(r, s, "sum[j]");
  BASE_PUT(r->print.out, "  }\n");
}

/* "part": what stands in the line up to each warp's accesses, one behind the other, and with them; by one barrier, as
 * chunks take turns with the memory. */
static void cu_scan_put_parts(cuda_routine *r, const cu_scan *s) {
  int warps = s->threads / 32, n = warps * s->each;
  base_putf(r->print.out, "  %s *const all = shared[chunk %% 2];\n", cuda_type(s->sum));
  cu_scan_put_each(r, "j", s->each);
  base_putf(r->print.out, "  if (lane == 31) all[j * %d + t / 32] = sum[j];\n  }\n", warps);
  base_putf(r->print.out, "  __syncthreads();\n  %s part = all[lane < %d ? lane : %d];\n", cuda_type(s->sum), n, n - 1);
  cu_scan_put_warp(r, s, "part");
  if (s->parts > 1) BASE_PUT(r->print.out, "  if (round || chunk > begin)\n");
  cu_scan_put(r, s, "part", "carry", "part");
}

static void cu_scan_put_results(cuda_routine *r, const cu_scan *s) {
  char type[64];
  snprintf(type, sizeof type, "pack<%s, %d>", cuda_type(s->own), s->pack);
  cu_scan_put_each(r, "j", s->each);
  base_putf(r->print.out, "  const int place = j * %d + t / 32;\n", s->threads / 32);
  cu_scan_put_shuffle(r, s, "before", "__shfl_sync", "part", "(place + 31) % 32");
  cu_scan_put_shuffle(r, s, "up", "__shfl_up_sync", "sum[j]", "1");
  BASE_PUT(r->print.out, "  if (place == 0) before = carry;\n  if (lane > 0)");
  cu_scan_put(r, s, "before", "before", "up");
  base_putf(r->print.out, "  %s made;\n", type);
  cu_scan_put_each(r, "u", s->pack);
  base_putf(r->print.out, "  %s with;\n", cuda_type(s->sum));
  cu_scan_put(r, s, "with", "before", "own[j][u]");
  base_putf(r->print.out, "  made.e[%d %s u] = ", s->back ? s->pack - 1 : 0, s->back ? "-" : "+");
  cuda_print_convert(&r->print, s->own, s->sum, "with");
  BASE_PUT(r->print.out, ";\n  }\n");
  cu_scan_put_access(r, s);
  base_putf(r->print.out, "*(%s *)&((%s *)out0)[at] = made;\n  }\n", type, cuda_type(s->own));
}

/* "carry": what stands before the block's part of the line; "begin", its first chunk. */
static void cu_scan_put_begin(cuda_routine *r, const cu_scan *s) {
  const char *c = cuda_type(s->sum);
  base_putf(r->print.out, "  const int t = threadIdx.x, lane = t %% 32;\n  __shared__ %s shared[2][%d];\n", c,
            s->threads / 32 * s->each);
  base_putf(r->print.out, "  const idx line = (idx)blockIdx.x / %lld, begin = blockIdx.x %% %lld * %lld;\n",
            (long long)s->parts, (long long)s->parts, (long long)s->length);
  cu_scan_put_line(r, s);
  base_putf(r->print.out, "  %s carry = init;\n", c);
  if (s->parts == 1) return;
  base_putf(r->print.out, "  %s *const sums = (%s *)scratch;\n  if (round)\n#pragma unroll 8\n", c, c);
  base_putf(r->print.out, "  for (idx j = line * %lld; j < blockIdx.x; j++)", (long long)s->parts);
  cu_scan_put(r, s, "carry", "carry", "sums[j]");
}

static void cu_scan_put_blocks(cuda_routine *r, const cu_scan *s) {
  char last[16];
  r->launch->block = (uint32_t)s->threads;
  r->launch->grid = s->lines * s->parts;
  if (s->parts > 1) {
    r->launch->rounds = 2;
    r->launch->scratch = r->launch->grid * (int64_t)base_dtype_bytes(s->sum);
  }
  cuda_routine_head(r, 2, 1);
  cu_scan_put_begin(r, s);
  base_putf(r->print.out, "  for (idx chunk = begin; chunk < begin + %lld && chunk < %lld; chunk++) {\n",
            (long long)s->length, (long long)s->chunks);
  cu_scan_put_own(r, s);
  cu_scan_put_parts(r, s);
  if (s->parts > 1) BASE_PUT(r->print.out, "  if (round) {\n");
  cu_scan_put_results(r, s);
  if (s->parts > 1) BASE_PUT(r->print.out, "  }\n");
  snprintf(last, sizeof last, "%d", s->threads / 32 * s->each - 1);
  cu_scan_put_shuffle(r, s, "next", "__shfl_sync", "part", last);
  BASE_PUT(r->print.out, "  carry = next;\n  }\n");
  if (s->parts > 1) BASE_PUT(r->print.out, "  if (!round && t == 0) sums[blockIdx.x] = carry;\n");
  cuda_routine_close(r, s->parts > 1 ? "a block for each part of a line of a scan" : "a block for each line of a scan");
}

bool cuda_print_scan(cuda_routine *r) {
  cu_scan s = {.parts = 1};
  if (!cu_scan_make(r->op, &s)) return false;
  if (base_dtype_is_complex(s.sum)) cuda_print_needs(&r->print, cuda_type(s.sum));
  if (s.n <= CU_SCAN_SHORT || (s.inner > 1 && s.lines >= CU_SCAN_MANY))
    cu_scan_put_serial(r, &s);
  else
    cu_scan_put_blocks(r, &s);
  return true;
}
