/* The loops around a kernel's values: a thread for each element, or for neighbouring ones, or for each line of a scan;
 * reductions are reduce.c's. All go through iterations by number, so that extents are the kernel's alone. */
#include <stdio.h>

#include "print.h"

enum {
  CU_PRINT_MOST = 1 << 30 /* places that 32 bits are enough for */
};

bool cuda_print_is_small(const kernel *k) {
  int64_t least = 0, most = 0;
  bool small = k->count < CU_PRINT_MOST;
  for (uint32_t i = 0; i < k->n_values && small; i++)
    if (k->values[i].kind == KERNEL_LOAD)
      small = kernel_load_reach(k, &k->values[i], &least, &most) && least > -CU_PRINT_MOST && most < CU_PRINT_MOST;
  for (uint32_t i = 0; i < k->n_stores && small; i++)
    if (!k->stores[i].by)
      small = kernel_reach(k, &k->stores[i].index, &least, &most) && least > -CU_PRINT_MOST && most < CU_PRINT_MOST;
  return small;
}

/* Those of dimension d and before it, until all together have `count` iterations, of number `n` among these: how many
 * dimensions are left. */
static uint32_t cu_print_some_indexes(cuda_print *x, const char *n, uint32_t d, int64_t count, bool all) {
  const kernel *k = x->k;
  for (int64_t inside = 1; d > 0 && (all || inside < count); inside *= k->extents[d]) {
    d--;
    bool last = inside * k->extents[d] == count;
    base_putf(x->out, "  const idx i%u = %s", (unsigned)d, n);
    if (inside > 1) base_putf(x->out, " / %lld", (long long)inside);
    if (!last) base_putf(x->out, " %% %lld", (long long)k->extents[d]);
    BASE_PUT(x->out, ";\n");
  }
  return d;
}

/* "i0", "i1", ... of iteration number `n`, which is an expression of type idx. Without iterations there is nothing to
 * divide by. */
void cuda_print_indexes(cuda_print *x, const char *n) {
  const kernel *k = x->k;
  int64_t length = x->held ? x->held->length : 0;
  if (k->count == 0) return;
  uint32_t left = x->held ? cu_print_some_indexes(x, "step", k->rank, length, false) : k->rank;
  cu_print_some_indexes(x, x->held ? "row" : n, left, x->held ? k->count / length : k->count, true);
}

void cuda_print_zero_indexes(cuda_print *x) {
  for (uint32_t d = 0; d < x->k->rank; d++) base_putf(x->out, "  const idx i%u = 0;\n", (unsigned)d);
}

/* --- forms --- */

void cuda_print_guard(cuda_print *x, int64_t count, uint32_t each) {
  base_putf(x->out, "  const idx n = ((idx)blockIdx.x * %d + (idx)threadIdx.x)", CUDA_BLOCK_THREADS);
  if (each > 1) base_putf(x->out, " * %u", (unsigned)each);
  base_putf(x->out, ";\n  if (n >= %lld) return;\n", (long long)count);
}

/* Blocks of threads, of which each has so many of the count. */
static int64_t cu_print_blocks(int64_t count, int64_t each) {
  return (count + each * CUDA_BLOCK_THREADS - 1) / (each * CUDA_BLOCK_THREADS);
}

/* What a thread does with each of its packs, at "m". */
static void cu_print_packs(cuda_print *x) {
  long long apart = (long long)CUDA_BLOCK_THREADS * x->pack;
  bool rest = x->k->count % (apart * x->packs) != 0;
  base_putf(x->out, "#pragma unroll\n  for (int w = 0; w != %u; w++) {\n  const idx m = n + w * %lld;\n",
            (unsigned)x->packs, apart);
  if (rest) base_putf(x->out, "  if (m < %lld) {\n", (long long)x->k->count);
  cuda_print_iterations(x, "m", NULL);
  base_puts(x->out, rest ? "  }\n  }\n" : "  }\n");
  x->loaded = true;
}

static void cu_print_elements(cuda_print *x, cuda_launch *l) {
  uint32_t each = x->pack > 1 ? x->pack : 1;
  if (each > 1) cuda_print_choose_packs(x);
  if (x->packs) {
    base_putf(x->out, "  const idx n = ((idx)blockIdx.x * %u + (idx)threadIdx.x) * %u;\n",
              CUDA_BLOCK_THREADS * (unsigned)x->packs, (unsigned)each);
    cu_print_packs(x);
    cu_print_packs(x);
  } else {
    cuda_print_guard(x, x->k->count, each);
    cuda_print_iterations(x, "n", NULL);
  }
  l->grid = cu_print_blocks(x->k->count, (int64_t)each * (x->packs ? x->packs : 1));
  l->how = each > 1 ? "a thread for neighbouring elements" : "a thread for each element";
}

/* Lines along the scans' dimension, each in its order. */
static void cu_print_lines(cuda_print *x, const kernel_scans *scans, cuda_launch *l) {
  const kernel *k = x->k;
  int64_t lines = k->count / scans->span * scans->inner, steps = scans->span / scans->inner;
  cuda_print_guard(x, lines, 1);
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_SCAN)
      base_putf(x->out, "  %s carry%u = {};\n", cuda_type(cuda_sum_type((base_dtype)k->values[i].dtype)), (unsigned)i);
  base_putf(x->out, "  for (idx step = 0; step < %lld; step++) {\n", (long long)steps);
  base_putf(x->out, "  const idx m = n / %lld * %lld + %s * %lld + n %% %lld;\n", (long long)scans->inner,
            (long long)scans->span, scans->back ? "(LAST - step)" : "step", (long long)scans->inner,
            (long long)scans->inner);
  cuda_print_iterations(x, "m", NULL);
  BASE_PUT(x->out, "  }\n");
  l->grid = cu_print_blocks(lines, 1);
  l->how = "a thread for each line of a scan";
}

/* --- the kernel --- */

static void cu_print_parameters(cuda_print *x, const cuda_launch *l) {
  const kernel *k = x->k;
  bool some = false;
  for (uint32_t i = 0; i < k->n_inputs; i++, some = true)
    base_putf(x->out, "%sconst char *in%u", some ? ", " : "", (unsigned)i);
  for (uint32_t i = 0; i < k->n_stores; i++, some = true)
    base_putf(x->out, "%schar *out%u", some ? ", " : "", (unsigned)i);
  if (l->scratch) BASE_PUT(x->out, ", char *scratch, int round");
}

static void cu_print_form(cuda_print *x, cuda_launch *l) {
  kernel_scans scans;
  const kernel *k = x->k;
  if (kernel_find_scans(k, &scans)) {
    x->strange = x->strange || k->reduction;
    cu_print_lines(x, &scans, l);
  } else if (x->across) {
    l->grid = cuda_print_tiles(x);
    l->how = "a block for each tile of 32 by 32, by way of shared memory";
  } else if (!k->reduction) {
    cu_print_elements(x, l);
  } else {
    cuda_print_reduction(x, l);
  }
}

/* The last step of lines that go back, as a word. */
static void cu_print_last(cuda_print *x) {
  kernel_scans scans;
  if (kernel_find_scans(x->k, &scans) && scans.back)
    base_putf(x->out, "  const idx LAST = %lld;\n", (long long)(scans.span / scans.inner - 1));
}

bool cuda_print_is_plain(const kernel *k) {
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].buffer >= k->n_stores) return false;
  return true;
}

bool cuda_print_kernel(cuda_source *s, const kernel *k, cuda_launch *out) {
  cuda_print x = {.s = s, .k = k, .out = &s->body};
  size_t before = s->body.n;
  kernel_scans scans;
  *out = (cuda_launch){.number = s->n_kernels, .block = CUDA_BLOCK_THREADS};
  if (!cuda_print_is_plain(k)) return false;
  if (!kernel_find_scans(k, &scans)) {
    cuda_print_choose_pack(&x);
    cuda_print_choose_tile(&x);
  }
  if (k->reduction) cuda_print_reduction_plan(&x, out);
  base_putf(x.out, "\nextern \"C\" __global__ void __launch_bounds__(%d, " CUDA_SOURCE_BLOCKS ") k%u(",
            CUDA_BLOCK_THREADS, (unsigned)out->number);
  cu_print_parameters(&x, out);
  base_putf(x.out, ") {\n  typedef %s idx;\n", cuda_print_is_small(k) ? "int32_t" : "int64_t");
  cu_print_last(&x);
  cu_print_form(&x, out);
  BASE_PUT(x.out, "}\n");
  if (x.strange || out->grid >= INT32_MAX) {
    s->body.n = before;
    return false;
  }
  s->n_kernels++;
  return true;
}
