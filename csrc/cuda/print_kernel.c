/* The loops around a kernel's values: a thread for each element, for each result of a reduction, for each line of a
 * scan, or a block for each result. All go through iterations by number, so that extents are the kernel's alone. */
#include <stdio.h>

#include "print.h"

enum {
  CU_PRINT_LONG = 128,     /* reduced elements from which on a block shares a result */
  CU_PRINT_MOST = 1 << 30, /* places that 32 bits are enough for */
  CU_PRINT_BUSY = 1 << 14  /* results from which on a thread for each is enough, where neighbours read neighbours */
};

/* Whether all places and numbers fit in 32 bits. */
static bool cu_print_is_small(const kernel *k) {
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

/* "i0", "i1", ... of iteration number `n`, which is an expression of type idx. Without iterations there is nothing to
 * divide by. */
static void cu_print_indexes(cuda_print *x, const char *n) {
  const kernel *k = x->k;
  int64_t inside = 1;
  for (uint32_t d = k->rank; d-- > 0 && k->count > 0; inside *= k->extents[d]) {
    base_putf(x->out, "  const idx i%u = ", (unsigned)d);
    if (inside == 1 && d == 0)
      base_putf(x->out, "%s", n);
    else if (inside == 1)
      base_putf(x->out, "%s %% %lld", n, (long long)k->extents[d]);
    else if (d == 0)
      base_putf(x->out, "%s / %lld", n, (long long)inside);
    else
      base_putf(x->out, "%s / %lld %% %lld", n, (long long)inside, (long long)k->extents[d]);
    BASE_PUT(x->out, ";\n");
  }
}

static void cu_print_zero_indexes(cuda_print *x) {
  for (uint32_t d = 0; d < x->k->rank; d++) base_putf(x->out, "  const idx i%u = 0;\n", (unsigned)d);
}

static void cu_print_values(cuda_print *x) {
  if (x->k->count == 0) cu_print_zero_indexes(x);
  for (uint32_t i = 0; i < x->k->n_values; i++) cuda_print_value(x, i);
}

/* Stores that have an element for every iteration. */
static void cu_print_stores(cuda_print *x) {
  for (uint32_t i = 0; i < x->k->n_stores; i++) {
    const kernel_store *s = &x->k->stores[i];
    if (s->by) continue;
    base_putf(x->out, "  ((%s *)out%u)[", cuda_type((base_dtype)x->k->values[s->value].dtype), (unsigned)s->buffer);
    cuda_print_index(x, &s->index, "idx");
    base_putf(x->out, "] = v%u;\n", (unsigned)s->value);
  }
}

/* --- sums --- */

static base_dtype cu_print_sum_type(const cuda_print *x, const kernel_store *s) {
  return cuda_sum_type((base_dtype)x->k->values[s->value].dtype);
}

/* Marks what value i is made of. */
static void cu_print_mark(const kernel *k, uint32_t i, bool *needed) {
  needed[i] = true;
  for (uint32_t v = i + 1; v-- > 0;)
    for (uint32_t j = 0; needed[v] && j < k->values[v].n_in; j++) needed[k->values[v].in[j]] = true;
}

/* "init<i>" of each store that reduces: the same at every iteration. */
static void cu_print_inits(cuda_print *x) {
  const kernel *k = x->k;
  bool needed[KERNEL_MAX_VALUES] = {false};
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by)
      base_putf(x->out, "  %s init%u;\n", cuda_type(cu_print_sum_type(x, &k->stores[i])), (unsigned)i),
          cu_print_mark(k, k->stores[i].init, needed);
  BASE_PUT(x->out, "  {\n");
  cu_print_zero_indexes(x);
  for (uint32_t i = 0; i < k->n_values; i++)
    if (needed[i]) cuda_print_value(x, i);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    char value[16];
    if (!k->stores[i].by) continue;
    snprintf(value, sizeof value, "v%u", (unsigned)k->stores[i].init);
    base_putf(x->out, "  init%u = ", (unsigned)i);
    cuda_print_convert(x, cu_print_sum_type(x, &k->stores[i]), (base_dtype)k->values[k->stores[i].init].dtype, value);
    BASE_PUT(x->out, ";\n");
  }
  BASE_PUT(x->out, "  }\n");
}

/* "<to> = <a> by <b>;" of store i, where a and b are names. */
static void cu_print_combine(cuda_print *x, uint32_t i, const char *to, const char *a, const char *b) {
  const kernel_store *s = &x->k->stores[i];
  base_putf(x->out, "  %s = ", to);
  cuda_print_combine(x, s->by, cu_print_sum_type(x, s), a, b);
  BASE_PUT(x->out, ";\n");
}

/* One iteration's value into "sum<i>"; `fresh`, an expression, says that there is nothing in it. */
static void cu_print_add(cuda_print *x, uint32_t i, const char *fresh) {
  const kernel_store *s = &x->k->stores[i];
  base_dtype t = cu_print_sum_type(x, s);
  char value[16], sum[16], wide[16];
  snprintf(value, sizeof value, "v%u", (unsigned)s->value);
  snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
  snprintf(wide, sizeof wide, "add%u", (unsigned)i);
  base_putf(x->out, "  const %s %s = ", cuda_type(t), wide);
  cuda_print_convert(x, t, (base_dtype)x->k->values[s->value].dtype, value);
  BASE_PUT(x->out, ";\n");
  if (fresh) base_putf(x->out, "  if (%s) %s = %s; else\n", fresh, sum, wide);
  cu_print_combine(x, i, sum, sum, wide);
}

/* The result of store i, at place `at`, from the name of a sum. */
static void cu_print_result(cuda_print *x, uint32_t i, const char *at, const char *sum) {
  const kernel_store *s = &x->k->stores[i];
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  base_putf(x->out, "  ((%s *)out%u)[%s] = ", cuda_type(t), (unsigned)s->buffer, at);
  cuda_print_convert(x, t, cu_print_sum_type(x, s), sum);
  BASE_PUT(x->out, ";\n");
}

/* --- forms --- */

static void cu_print_guard(cuda_print *x, int64_t n) {
  base_putf(x->out, "  const idx n = (idx)blockIdx.x * %d + (idx)threadIdx.x;\n  if (n >= %lld) return;\n",
            CUDA_BLOCK_THREADS, (long long)n);
}

static void cu_print_elements(cuda_print *x, cuda_launch *l) {
  cu_print_guard(x, x->k->count);
  cu_print_indexes(x, "n");
  cu_print_values(x);
  cu_print_stores(x);
  l->grid = (x->k->count + CUDA_BLOCK_THREADS - 1) / CUDA_BLOCK_THREADS;
  l->how = "a thread for each element";
}

/* Lines along the scans' dimension, each in its order. */
static void cu_print_lines(cuda_print *x, const kernel_scans *scans, cuda_launch *l) {
  const kernel *k = x->k;
  int64_t lines = k->count / scans->span * scans->inner, steps = scans->span / scans->inner;
  cu_print_guard(x, lines);
  for (uint32_t i = 0; i < k->n_values; i++)
    if (k->values[i].kind == KERNEL_SCAN)
      base_putf(x->out, "  %s carry%u = {};\n", cuda_type(cuda_sum_type((base_dtype)k->values[i].dtype)), (unsigned)i);
  base_putf(x->out, "  for (idx step = 0; step < %lld; step++) {\n", (long long)steps);
  base_putf(x->out, "  const idx m = n / %lld * %lld + %s * %lld + n %% %lld;\n", (long long)scans->inner,
            (long long)scans->span, scans->back ? "(LAST - step)" : "step", (long long)scans->inner,
            (long long)scans->inner);
  cu_print_indexes(x, "m");
  cu_print_values(x);
  cu_print_stores(x);
  BASE_PUT(x->out, "  }\n");
  l->grid = (lines + CUDA_BLOCK_THREADS - 1) / CUDA_BLOCK_THREADS;
  l->how = "a thread for each line of a scan";
}

/* The rest of a loop over `step`: one iteration of result n, added up. `first`: as cu_print_add has it. */
static void cu_print_step(cuda_print *x, const char *first) {
  const kernel *k = x->k;
  const kernel_reduction *r = k->reduction;
  assert(r != NULL);
  base_putf(x->out, "  const idx m = (n / %lld * %lld + step) * %lld + n %% %lld;\n", (long long)r->inner,
            (long long)r->reduced, (long long)r->inner, (long long)r->inner);
  cu_print_indexes(x, "m");
  cu_print_values(x);
  cu_print_stores(x);
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by) cu_print_add(x, i, first);
  BASE_PUT(x->out, "  }\n");
}

/* A thread for each result, in the order of the iterations. */
static void cu_print_serial(cuda_print *x, cuda_launch *l) {
  const kernel *k = x->k;
  const kernel_reduction *r = k->reduction;
  int64_t results = r->outer * r->inner;
  char sum[16];
  cu_print_guard(x, results);
  cu_print_inits(x);
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by)
      base_putf(x->out, "  %s sum%u = init%u;\n", cuda_type(cu_print_sum_type(x, &k->stores[i])), (unsigned)i,
                (unsigned)i);
  base_putf(x->out, "  for (idx step = 0; step < %lld; step++) {\n", (long long)r->reduced);
  cu_print_step(x, NULL);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
    if (k->stores[i].by) cu_print_result(x, i, "n", sum);
  }
  l->grid = (results + CUDA_BLOCK_THREADS - 1) / CUDA_BLOCK_THREADS;
  l->how = "a thread for each result";
}

/* Halves of the threads, one after another: the tree is that of the extents alone. */
static void cu_print_tree(cuda_print *x, uint32_t i, int64_t threads) {
  char sum[16], shared[32], a[96], b[96];
  snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
  snprintf(shared, sizeof shared, "shared%u", (unsigned)i);
  snprintf(a, sizeof a, "%s[threadIdx.x]", shared);
  snprintf(b, sizeof b, "%s[threadIdx.x + half]", shared);
  base_putf(x->out, "  %s = %s;\n  __syncthreads();\n", a, sum);
  base_putf(x->out, "  for (int half = %lld; half > 0; half /= 2) {\n", (long long)threads / 2);
  BASE_PUT(x->out, "  if (threadIdx.x < half) {\n");
  cu_print_combine(x, i, a, a, b);
  BASE_PUT(x->out, "  }\n  __syncthreads();\n  }\n");
}

/* Threads of a block: a power of two that each have something to add. */
static int64_t cu_print_threads(const kernel_reduction *r) {
  int64_t threads = CUDA_BLOCK_THREADS;
  while (threads > r->reduced) threads /= 2;
  return threads;
}

/* A block for each result. A thread's elements are as far apart as there are threads, so that neighbours read
 * neighbours. */
static void cu_print_block(cuda_print *x, cuda_launch *l) {
  const kernel *k = x->k;
  const kernel_reduction *r = k->reduction;
  int64_t threads = cu_print_threads(r);
  char shared[32];
  BASE_PUT(x->out, "  const idx n = (idx)blockIdx.x;\n");
  cu_print_inits(x);
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by) {
      const char *c = cuda_type(cu_print_sum_type(x, &k->stores[i]));
      base_putf(x->out, "  __shared__ %s shared%u[%lld];\n  %s sum%u = {};\n", c, (unsigned)i, (long long)threads, c,
                (unsigned)i);
    }
  base_putf(x->out, "  for (idx step = threadIdx.x; step < %lld; step += %lld) {\n", (long long)r->reduced,
            (long long)threads);
  cu_print_step(x, "step == threadIdx.x");
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by) cu_print_tree(x, i, threads);
  BASE_PUT(x->out, "  if (threadIdx.x == 0) {\n");
  for (uint32_t i = 0; i < k->n_stores; i++) {
    char sum[16], init[16];
    if (!k->stores[i].by) continue;
    snprintf(shared, sizeof shared, "shared%u[0]", (unsigned)i);
    snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
    snprintf(init, sizeof init, "init%u", (unsigned)i);
    cu_print_combine(x, i, sum, init, shared);
    cu_print_result(x, i, "n", sum);
  }
  BASE_PUT(x->out, "  }\n");
  l->grid = r->outer * r->inner;
  l->block = (uint32_t)threads;
  l->how = "a block for each result";
}

/* --- the kernel --- */

/* Few results, or rows in memory: a block for each; else there are threads enough, and neighbours' loads are near. */
static bool cu_print_goes_by_blocks(const kernel_reduction *r) {
  if (r->reduced < CU_PRINT_LONG) return false;
  return r->inner == 1 || r->outer * r->inner < CU_PRINT_BUSY;
}

static void cu_print_parameters(cuda_print *x) {
  const kernel *k = x->k;
  bool some = false;
  for (uint32_t i = 0; i < k->n_inputs; i++, some = true)
    base_putf(x->out, "%sconst char *in%u", some ? ", " : "", (unsigned)i);
  for (uint32_t i = 0; i < k->n_stores; i++, some = true)
    base_putf(x->out, "%schar *out%u", some ? ", " : "", (unsigned)i);
}

static void cu_print_form(cuda_print *x, cuda_launch *l) {
  kernel_scans scans;
  const kernel *k = x->k;
  if (kernel_find_scans(k, &scans)) {
    x->strange = x->strange || k->reduction;
    cu_print_lines(x, &scans, l);
  } else if (!k->reduction) {
    cu_print_elements(x, l);
  } else if (cu_print_goes_by_blocks(k->reduction)) {
    cu_print_block(x, l);
  } else {
    cu_print_serial(x, l);
  }
}

/* The last step of lines that go back, as a word. */
static void cu_print_last(cuda_print *x) {
  kernel_scans scans;
  if (kernel_find_scans(x->k, &scans) && scans.back)
    base_putf(x->out, "  const idx LAST = %lld;\n", (long long)(scans.span / scans.inner - 1));
}

/* Stores are numbered as their buffers are. */
static bool cu_print_is_plain(const kernel *k) {
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].buffer >= k->n_stores) return false;
  return true;
}

bool cuda_print_kernel(cuda_source *s, const kernel *k, cuda_launch *out) {
  cuda_print x = {.s = s, .k = k, .out = &s->body};
  size_t before = s->body.n;
  *out = (cuda_launch){.number = s->n_kernels, .block = CUDA_BLOCK_THREADS};
  if (!cu_print_is_plain(k)) return false;
  base_putf(x.out, "\nextern \"C\" __global__ void __launch_bounds__(%d) k%u(", CUDA_BLOCK_THREADS,
            (unsigned)out->number);
  cu_print_parameters(&x);
  base_putf(x.out, ") {\n  typedef %s idx;\n", cu_print_is_small(k) ? "int32_t" : "int64_t");
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
