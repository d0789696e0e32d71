/* Cumulative sums by themselves: a reduce-window whose windows all begin, or all end, at an end of the array. A block
 * has a chunk of a line, a thread some neighbours of it; where a line has several chunks, their sums are combined
 * first. */
#include <stdio.h>

#include "../../fuse/fuse.h"
#include "routine.h"

enum {
  CU_SCAN_EACH = 8, /* elements of a thread */
  CU_SCAN_CHUNK = CU_SCAN_EACH * CUDA_BLOCK_THREADS,
  CU_SCAN_SHORT = 64,    /* elements of a line that a thread goes through by itself, */
  CU_SCAN_MANY = 1 << 14 /* or where so many lines lie beside each other */
};

typedef struct cu_scan {
  scalar_code code;
  base_dtype own, sum;
  int64_t n, inner, lines, chunks;
  bool back;
} cu_scan;

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
  s->chunks = (s->n + CU_SCAN_CHUNK - 1) / CU_SCAN_CHUNK;
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

/* Round 1: chunks' sums become what stands before each chunk. */
static void cu_scan_put_prefixes(cuda_routine *r, const cu_scan *s) {
  base_putf(r->print.out, "  %s *const part = (%s *)scratch;\n", cuda_type(s->sum), cuda_type(s->sum));
  base_putf(
      r->print.out,
      "  if (round == 1) {\n  const idx line = (idx)blockIdx.x * %d + threadIdx.x;\n  if (line >= %lld) return;\n",
      CUDA_BLOCK_THREADS, (long long)s->lines);
  cu_scan_put_line(r, s);
  base_putf(r->print.out, "  %s sum = init;\n  for (idx c = line * %lld; c < line * %lld + %lld; c++) {\n",
            cuda_type(s->sum), (long long)s->chunks, (long long)s->chunks, (long long)s->chunks);
  base_putf(r->print.out, "  const %s own = part[c];\n  part[c] = sum;\n", cuda_type(s->sum));
  cu_scan_put(r, s, "sum", "sum", "own");
  BASE_PUT(r->print.out, "  }\n  return;\n  }\n");
}

/* Each thread sums up its own elements, then all threads' sums are combined, twice as far back each time. */
static void cu_scan_put_chunk(cuda_routine *r, const cu_scan *s) {
  const char *c = cuda_type(s->sum);
  base_putf(r->print.out, "  const idx line = (idx)blockIdx.x / %lld, chunk = (idx)blockIdx.x %% %lld;\n",
            (long long)s->chunks, (long long)s->chunks);
  cu_scan_put_line(r, s);
  base_putf(r->print.out, "  const int t = threadIdx.x;\n  const idx first = chunk * %d + t * %d;\n", CU_SCAN_CHUNK,
            CU_SCAN_EACH);
  base_putf(r->print.out, "  %s own[%d], sum = {};\n#pragma unroll\n  for (int j = 0; j < %d; j++) {\n", c,
            CU_SCAN_EACH, CU_SCAN_EACH);
  base_putf(r->print.out, "  const idx i = first + j;\n  if (i < %lld) {\n", (long long)s->n);
  cu_scan_put_at(r, s);
  cu_scan_put_load(r, s);
  BASE_PUT(r->print.out, "  if (j == 0) sum = v; else\n");
  cu_scan_put(r, s, "sum", "sum", "v");
  BASE_PUT(r->print.out, "  own[j] = sum;\n  }\n  }\n");
  base_putf(r->print.out, "  __shared__ %s sums[%d];\n  sums[t] = sum;\n  __syncthreads();\n", c, CUDA_BLOCK_THREADS);
  base_putf(r->print.out, "  for (int far = 1; far < %d; far *= 2) {\n", CUDA_BLOCK_THREADS);
  base_putf(r->print.out, "  if (t >= far && first < %lld)", (long long)s->n);
  cu_scan_put(r, s, "sum", "sums[t - far]", "sum");
  BASE_PUT(r->print.out, "  __syncthreads();\n  sums[t] = sum;\n  __syncthreads();\n  }\n");
}

static void cu_scan_put_blocks(cuda_routine *r, const cu_scan *s) {
  if (s->chunks > 1) {
    r->launch->rounds = 3;
    r->launch->scratch = s->lines * s->chunks * (int64_t)base_dtype_bytes(s->sum);
  }
  cuda_routine_head(r, 2, 1);
  if (s->chunks > 1) cu_scan_put_prefixes(r, s);
  cu_scan_put_chunk(r, s);
  if (s->chunks > 1)
    base_putf(r->print.out,
              "  if (round == 0) {\n  const idx end = chunk < %lld ? %d : (%lld - chunk * %d + %d) / %d;\n"
              "  if (t == end - 1) part[blockIdx.x] = sum;\n  return;\n  }\n",
              (long long)s->chunks - 1, CUDA_BLOCK_THREADS, (long long)s->n, CU_SCAN_CHUNK, CU_SCAN_EACH - 1,
              CU_SCAN_EACH);
  base_putf(r->print.out, "  %s before = %s;\n  if (t > 0)", cuda_type(s->sum),
            s->chunks > 1 ? "part[blockIdx.x]" : "init");
  cu_scan_put(r, s, "before", "before", "sums[t - 1]");
  base_putf(r->print.out,
            "#pragma unroll\n  for (int j = 0; j < %d; j++) {\n  const idx i = first + j;\n  if (i < %lld) {\n",
            CU_SCAN_EACH, (long long)s->n);
  cu_scan_put_at(r, s);
  base_putf(r->print.out, "  %s all;\n", cuda_type(s->sum));
  cu_scan_put(r, s, "all", "before", "own[j]");
  cu_scan_put_store(r, s, "all");
  BASE_PUT(r->print.out, "  }\n  }\n");
  r->launch->grid = s->lines * s->chunks;
  cuda_routine_close(r, "a block for each part of a line of a scan");
}

bool cuda_print_scan(cuda_routine *r) {
  cu_scan s = {.chunks = 1};
  if (!cu_scan_make(r->op, &s)) return false;
  if (base_dtype_is_complex(s.sum)) cuda_print_needs(&r->print, cuda_type(s.sum));
  if (s.n <= CU_SCAN_SHORT || (s.inner > 1 && s.lines >= CU_SCAN_MANY))
    cu_scan_put_serial(r, &s);
  else
    cu_scan_put_blocks(r, &s);
  return true;
}
