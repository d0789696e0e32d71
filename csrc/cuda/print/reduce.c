/* Reductions: threads of a block share a result, along the memory where its elements are one behind the other and
 * beside each other where they are not; and blocks do, in pieces, where there are few results. A thread goes through
 * its elements in their order, threads are combined by a tree of halves in shared memory, pieces in their order in a
 * second round: all by extents alone. */
#include <stdio.h>

#include "print.h"

enum {
  CU_REDUCE_SHORT = 16,     /* elements of a result that one thread goes through */
  CU_REDUCE_MANY = 1 << 18, /* results from which on a thread for each is enough, where neighbours read neighbours */
  CU_REDUCE_BUSY = 1 << 16, /* threads from which on they need not be as many as can be */
  CU_REDUCE_BLOCKS = 512,   /* that keep a GPU busy */
  CU_REDUCE_EACH = 8,       /* accesses of a thread that a piece is worth */
  CU_REDUCE_COLUMNS = 32,   /* accesses to results beside each other */
  CU_REDUCE_SUMS = 16       /* of a thread with several results */
};

/* --- sums --- */

static base_dtype cu_reduce_sum_type(const cuda_print *x, const kernel_store *s) {
  return cuda_sum_type((base_dtype)x->k->values[s->value].dtype);
}

/* Marks what value i is made of. */
static void cu_reduce_mark(const kernel *k, uint32_t i, bool *needed) {
  needed[i] = true;
  for (uint32_t v = i + 1; v-- > 0;)
    for (uint32_t j = 0; needed[v] && j < k->values[v].n_in; j++) needed[k->values[v].in[j]] = true;
}

/* "init<i>" of each store that reduces: the same at every iteration. */
static void cu_reduce_inits(cuda_print *x) {
  const kernel *k = x->k;
  bool needed[KERNEL_MAX_VALUES] = {false};
  for (uint32_t i = 0; i < k->n_stores; i++)
    if (k->stores[i].by)
      base_putf(x->out, "  %s init%u;\n", cuda_type(cu_reduce_sum_type(x, &k->stores[i])), (unsigned)i),
          cu_reduce_mark(k, k->stores[i].init, needed);
  BASE_PUT(x->out, "  {\n");
  cuda_print_zero_indexes(x);
  for (uint32_t i = 0; i < k->n_values; i++)
    if (needed[i]) cuda_print_value(x, i);
  for (uint32_t i = 0; i < k->n_stores; i++) {
    char value[16];
    if (!k->stores[i].by) continue;
    snprintf(value, sizeof value, "v%u", (unsigned)k->stores[i].init);
    base_putf(x->out, "  init%u = ", (unsigned)i);
    cuda_print_convert(x, cu_reduce_sum_type(x, &k->stores[i]), (base_dtype)k->values[k->stores[i].init].dtype, value);
    BASE_PUT(x->out, ";\n");
  }
  BASE_PUT(x->out, "  }\n");
}

/* "<to> = <a> by <b>;" of store i, where a and b are names. */
static void cu_reduce_combine(cuda_print *x, uint32_t i, const char *to, const char *a, const char *b) {
  const kernel_store *s = &x->k->stores[i];
  base_putf(x->out, "  %s = ", to);
  cuda_print_combine(x, s->by, cu_reduce_sum_type(x, s), a, b);
  BASE_PUT(x->out, ";\n");
}

/* Whether a thread has neighbouring results, "sum<i>[u]", for accesses of 16 bytes. */
static bool cu_reduce_is_wide(const cuda_print *x) {
  return x->pack > 1 && x->k->reduction->inner > 1;
}

static void cu_reduce_name(const cuda_print *x, uint32_t i, char sum[16]) {
  snprintf(sum, 16, cu_reduce_is_wide(x) ? "sum%u[u]" : "sum%u", (unsigned)i);
}

/* "sum<i>", for all results of the thread. */
static void cu_reduce_put_sums(cuda_print *x, uint32_t i) {
  const char *c = cuda_type(cu_reduce_sum_type(x, &x->k->stores[i]));
  base_putf(x->out, "  %s sum%u", c, (unsigned)i);
  if (cu_reduce_is_wide(x)) base_putf(x->out, "[%u]", (unsigned)x->pack);
  BASE_PUT(x->out, " = {};\n");
}

/* The statement that follows is done for each of the thread's results. */
static void cu_reduce_put_each(cuda_print *x) {
  if (cu_reduce_is_wide(x)) base_putf(x->out, "#pragma unroll\n  for (int u = 0; u < %u; u++)\n", (unsigned)x->pack);
}

/* One iteration's value into "sum<i>"; `fresh`, an expression, says that there is nothing in it. */
static void cu_reduce_add(cuda_print *x, uint32_t i, const char *fresh) {
  const kernel_store *s = &x->k->stores[i];
  base_dtype t = cu_reduce_sum_type(x, s);
  char value[16], sum[16], wide[16];
  snprintf(value, sizeof value, "v%u", (unsigned)s->value);
  cu_reduce_name(x, i, sum);
  snprintf(wide, sizeof wide, "add%u", (unsigned)i);
  base_putf(x->out, "  const %s %s = ", cuda_type(t), wide);
  cuda_print_convert(x, t, (base_dtype)x->k->values[s->value].dtype, value);
  BASE_PUT(x->out, ";\n");
  if (fresh) base_putf(x->out, "  if (%s) %s = %s; else\n", fresh, sum, wide);
  cu_reduce_combine(x, i, sum, sum, wide);
}

/* The result of store i, at place `at`, from the name of a sum. */
static void cu_reduce_result(cuda_print *x, uint32_t i, const char *at, const char *sum) {
  const kernel_store *s = &x->k->stores[i];
  base_dtype t = (base_dtype)x->k->values[s->value].dtype;
  base_putf(x->out, "  ((%s *)out%u)[%s] = ", cuda_type(t), (unsigned)s->buffer, at);
  cuda_print_convert(x, t, cu_reduce_sum_type(x, s), sum);
  BASE_PUT(x->out, ";\n");
}

/* --- sharing out --- */

typedef struct cu_reduce {
  bool serial, columns;   /* columns: results lie beside each other, else their elements do */
  int64_t width, lanes;   /* results of a block, threads of each */
  int64_t pieces, length; /* of the reduced range */
  int64_t across;         /* blocks beside each other, of columns */
} cu_reduce;

static int64_t cu_reduce_power(int64_t n, int64_t most) {
  int64_t power = 1;
  while (2 * power <= n && 2 * power <= most) power *= 2;
  return power;
}

/* Pieces of so many accesses a thread, until there are blocks enough; a piece is a multiple of `unit`. */
static void cu_reduce_cut(cu_reduce *p, int64_t reduced, int64_t blocks, int64_t unit) {
  int64_t most = reduced / unit / (p->lanes * CU_REDUCE_EACH),
          pieces = blocks < CU_REDUCE_BLOCKS && blocks > 0 ? CU_REDUCE_BLOCKS / blocks : 1;
  if (pieces > most) pieces = most;
  if (pieces < 1) pieces = 1;
  p->length = (reduced / unit + pieces - 1) / pieces * unit;
  p->pieces = (reduced + p->length - 1) / p->length;
}

static cu_reduce cu_reduce_share(const kernel *k, int64_t pack) {
  const kernel_reduction *r = k->reduction;
  int64_t results = r->outer * r->inner;
  cu_reduce p = {.columns = r->inner > 1, .width = 1, .lanes = 1, .pieces = 1, .length = r->reduced, .across = 1};
  p.serial = k->count == 0 || r->reduced <= CU_REDUCE_SHORT || (p.columns && results >= CU_REDUCE_MANY);
  if (p.serial) return p;
  if (p.columns) {
    while (p.width * pack < r->inner && p.width < CU_REDUCE_COLUMNS) p.width *= 2;
    p.lanes = cu_reduce_power(r->reduced, CUDA_BLOCK_THREADS / p.width);
    p.across = (r->inner + p.width * pack - 1) / (p.width * pack);
    cu_reduce_cut(&p, r->reduced, r->outer * p.across, 1);
    return p;
  }
  int64_t accesses = r->reduced / pack;
  p.lanes = cu_reduce_power(results * accesses / 4 >= CU_REDUCE_BUSY ? accesses / 4 : accesses, CUDA_BLOCK_THREADS);
  while (p.width * p.lanes < CUDA_BLOCK_THREADS && p.width < results) p.width *= 2;
  cu_reduce_cut(&p, r->reduced, (results + p.width - 1) / p.width, pack);
  return p;
}

/* Bytes of a store's partial results, for all pieces. */
static int64_t cu_reduce_partial(const kernel *k, const kernel_store *s, int64_t pieces) {
  int64_t bytes = base_dtype_bytes(cuda_sum_type((base_dtype)k->values[s->value].dtype));
  return (pieces * k->reduction->outer * k->reduction->inner * bytes + 63) & ~(int64_t)63;
}

/* Neighbours are of one result, or each of one: then there is to be room for their sums. */
void cuda_print_reduction_plan(cuda_print *x, cuda_launch *l) {
  const kernel_reduction *r = x->k->reduction;
  if (r->inner > 1 ? x->pack * x->k->n_stores > CU_REDUCE_SUMS : x->pack && r->reduced % x->pack) x->pack = 0;
  cu_reduce p = cu_reduce_share(x->k, x->pack ? x->pack : 1);
  if (p.serial) x->pack = 0;
  for (uint32_t i = 0; i < x->k->n_stores && p.pieces > 1; i++)
    if (x->k->stores[i].by) l->scratch += cu_reduce_partial(x->k, &x->k->stores[i], p.pieces);
  l->rounds = p.pieces > 1 ? 2 : 0;
}

/* --- printing --- */

/* What "sum<i>", or another name that begins so, is printed for: each store that reduces. */
#define FOR_SUMS(i, k)                         \
  for (uint32_t i = 0; i < (k)->n_stores; i++) \
    if ((k)->stores[i].by)

static void cu_reduce_put_fresh(cuda_print *x) {
  const char *fresh = x->pack > 1 && !cu_reduce_is_wide(x) ? "step == start && u == 0" : "step == start";
  FOR_SUMS(i, x->k) cu_reduce_add(x, i, fresh);
}

static void cu_reduce_put_added(cuda_print *x) {
  FOR_SUMS(i, x->k) cu_reduce_add(x, i, NULL);
}

/* The number of iteration `step` of result n. */
static void cu_reduce_put_number(cuda_print *x) {
  const kernel_reduction *r = x->k->reduction;
  if (r->inner == 1)
    base_putf(x->out, "  const idx m = n * %lld + step;\n", (long long)r->reduced);
  else
    base_putf(x->out, "  const idx m = (n / %lld * %lld + step) * %lld + n %% %lld;\n", (long long)r->inner,
              (long long)r->reduced, (long long)r->inner, (long long)r->inner);
}

/* A thread for each result, in the order of the iterations. */
static void cu_reduce_put_serial(cuda_print *x, cuda_launch *l) {
  const kernel_reduction *r = x->k->reduction;
  int64_t results = r->outer * r->inner;
  char sum[16];
  cuda_print_guard(x, results, 1);
  cu_reduce_inits(x);
  FOR_SUMS(i, x->k)
  base_putf(x->out, "  %s sum%u = init%u;\n", cuda_type(cu_reduce_sum_type(x, &x->k->stores[i])), (unsigned)i,
            (unsigned)i);
  base_putf(x->out, "  for (idx step = 0; step < %lld; step++) {\n", (long long)r->reduced);
  cu_reduce_put_number(x);
  cuda_print_iterations(x, "m", cu_reduce_put_added);
  BASE_PUT(x->out, "  }\n");
  FOR_SUMS(i, x->k) {
    snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
    cu_reduce_result(x, i, "n", sum);
  }
  l->grid = (results + CUDA_BLOCK_THREADS - 1) / CUDA_BLOCK_THREADS;
  l->how = "a thread for each result";
}

/* "lane", "there", the result "n" and where its piece begins and ends. */
static void cu_reduce_put_place(cuda_print *x, const cu_reduce *p) {
  const kernel_reduction *r = x->k->reduction;
  if (p->columns) {
    base_putf(x->out, "  const int lane = threadIdx.x / %lld;\n  const idx piece = blockIdx.x / %lld;\n",
              (long long)p->width, (long long)p->across);
    base_putf(x->out, "  const idx column = (blockIdx.x %% %lld * %lld + threadIdx.x %% %lld) * %u;\n",
              (long long)p->across, (long long)p->width, (long long)p->width, (unsigned)(x->pack ? x->pack : 1));
    base_putf(x->out, "  const bool there = column < %lld;\n  const idx n = piece / %lld * %lld + column;\n",
              (long long)r->inner, (long long)p->pieces, (long long)r->inner);
  } else {
    base_putf(x->out, "  const int lane = threadIdx.x %% %lld;\n", (long long)p->lanes);
    base_putf(x->out, "  const idx piece = (idx)blockIdx.x * %lld + threadIdx.x / %lld, n = piece / %lld;\n",
              (long long)p->width, (long long)p->lanes, (long long)p->pieces);
    base_putf(x->out, "  const bool there = n < %lld;\n", (long long)(r->outer * r->inner));
  }
  base_putf(x->out, "  const idx begin = piece %% %lld * %lld, all = begin + %lld < %lld ? begin + %lld : %lld;\n",
            (long long)p->pieces, (long long)p->length, (long long)p->length, (long long)r->reduced,
            (long long)p->length, (long long)r->reduced);
  BASE_PUT(x->out, "  const idx end = there ? all : begin;\n");
}

/* Of neighbours' elements, or of one element: each is an access, with several of them on their way at a time. */
static int64_t cu_reduce_along(const cuda_print *x) {
  return x->pack > 1 && !cu_reduce_is_wide(x) ? x->pack : 1;
}

/* Each thread its share. */
static void cu_reduce_put_shares(cuda_print *x, const cu_reduce *p) {
  int pack = x->pack > 1 ? (int)x->pack : 1;
  FOR_SUMS(i, x->k) cu_reduce_put_sums(x, i);
  base_putf(x->out, "  const idx start = begin + lane * %lld;\n#pragma unroll %d\n", (long long)cu_reduce_along(x),
            p->columns && pack < 8 && x->k->n_values <= 8 ? 8 : 4);
  base_putf(x->out, "  for (idx step = start; step < end; step += %lld) {\n",
            (long long)(cu_reduce_along(x) * p->lanes));
  cu_reduce_put_number(x);
  cuda_print_iterations(x, "m", cu_reduce_put_fresh);
  BASE_PUT(x->out, "  }\n");
}

/* The lanes' sums into that of lane 0, half of them at a time; those without a share have nothing to give. What one
 * warp alone has touched needs no barrier of the block's. */
static void cu_reduce_put_tree(cuda_print *x, const cu_reduce *p) {
  char at[40] = "threadIdx.x", a[64], b[96], sum[16];
  long long far = p->columns ? p->width : 1, along = cu_reduce_along(x), threads = p->width * p->lanes;
  bool wide = cu_reduce_is_wide(x);
  if (p->lanes == 1) return;
  if (wide) snprintf(at, sizeof at, "u * %lld + threadIdx.x", threads);
  FOR_SUMS(i, x->k) {
    cu_reduce_name(x, i, sum);
    base_putf(x->out, "  __shared__ %s shared%u[%lld];\n", cuda_type(cu_reduce_sum_type(x, &x->k->stores[i])),
              (unsigned)i, wide ? threads * x->pack : threads);
    cu_reduce_put_each(x);
    base_putf(x->out, "  shared%u[%s] = %s;\n", (unsigned)i, at, sum);
  }
  base_putf(x->out, "  const idx busy = (end - begin + %lld) / %lld;\n  __syncthreads();\n", along - 1, along);
  base_putf(x->out, "  for (int half = %lld; half > 0; half /= 2) {\n", (long long)p->lanes / 2);
  BASE_PUT(x->out, "  if (lane < half && lane + half < busy) {\n");
  FOR_SUMS(i, x->k) {
    snprintf(a, sizeof a, "shared%u[%s]", (unsigned)i, at);
    snprintf(b, sizeof b, "shared%u[%s + half * %lld]", (unsigned)i, at, far);
    cu_reduce_put_each(x);
    cu_reduce_combine(x, i, a, a, b);
  }
  base_putf(x->out, "  }\n  if (half * %lld > 32) __syncthreads(); else __syncwarp();\n  }\n", far);
  FOR_SUMS(i, x->k) {
    cu_reduce_name(x, i, sum);
    cu_reduce_put_each(x);
    base_putf(x->out, "  %s = shared%u[%s];\n", sum, (unsigned)i, at);
  }
}

/* Where store i's partial results begin. */
static void cu_reduce_put_partial(cuda_print *x, const cu_reduce *p, uint32_t i) {
  int64_t at = 0;
  for (uint32_t j = 0; j < i; j++)
    if (x->k->stores[j].by) at += cu_reduce_partial(x->k, &x->k->stores[j], p->pieces);
  base_putf(x->out, "((%s *)(scratch + %lldll))", cuda_type(cu_reduce_sum_type(x, &x->k->stores[i])), (long long)at);
}

/* "sum<i>" to the results, with what they begin with. */
static void cu_reduce_put_results(cuda_print *x) {
  char sum[16], init[16];
  cu_reduce_put_each(x);
  BASE_PUT(x->out, "  {\n");
  cu_reduce_inits(x);
  FOR_SUMS(i, x->k) {
    cu_reduce_name(x, i, sum);
    snprintf(init, sizeof init, "init%u", (unsigned)i);
    cu_reduce_combine(x, i, sum, init, sum);
    cu_reduce_result(x, i, cu_reduce_is_wide(x) ? "n + u" : "n", sum);
  }
  BASE_PUT(x->out, "  }\n");
}

/* The second round: a thread for each result combines its pieces. */
static void cu_reduce_put_second(cuda_print *x, const cu_reduce *p) {
  long long results = x->k->reduction->outer * x->k->reduction->inner;
  uint32_t pack = x->pack;
  x->pack = 0;
  BASE_PUT(x->out, "  if (round) {\n  const idx n = (idx)blockIdx.x * blockDim.x + threadIdx.x;\n");
  base_putf(x->out, "  if (n >= %lld) return;\n", results);
  FOR_SUMS(i, x->k) {
    char sum[16];
    snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
    base_putf(x->out, "  %s %s = ", cuda_type(cu_reduce_sum_type(x, &x->k->stores[i])), sum);
    cu_reduce_put_partial(x, p, i);
    base_putf(x->out, "[n];\n  for (int j = 1; j < %lld; j++) {\n  const %s part = ", (long long)p->pieces,
              cuda_type(cu_reduce_sum_type(x, &x->k->stores[i])));
    cu_reduce_put_partial(x, p, i);
    base_putf(x->out, "[n + j * (idx)%lld];\n", results);
    cu_reduce_combine(x, i, sum, sum, "part");
    BASE_PUT(x->out, "  }\n");
  }
  cu_reduce_put_results(x);
  x->pack = pack;
  BASE_PUT(x->out, "  return;\n  }\n");
}

static void cu_reduce_put_block(cuda_print *x, const cu_reduce *p) {
  const kernel_reduction *r = x->k->reduction;
  cu_reduce_put_place(x, p);
  cu_reduce_put_shares(x, p);
  cu_reduce_put_tree(x, p);
  BASE_PUT(x->out, "  if (lane == 0 && there) {\n");
  FOR_SUMS(i, x->k) {
    char sum[16];
    if (p->pieces == 1) continue;
    cu_reduce_name(x, i, sum);
    cu_reduce_put_each(x);
    BASE_PUT(x->out, "  ");
    cu_reduce_put_partial(x, p, i);
    base_putf(x->out, "[n + piece %% %lld * %lld%s] = %s;\n", (long long)p->pieces, (long long)(r->outer * r->inner),
              cu_reduce_is_wide(x) ? " + u" : "", sum);
  }
  if (p->pieces == 1) cu_reduce_put_results(x);
  BASE_PUT(x->out, "  }\n");
}

/* --- rows in registers --- */

void cuda_print_held_sums(cuda_print *x) {
  FOR_SUMS(i, x->k) cu_reduce_put_sums(x, i);
}

void cuda_print_held_add(cuda_print *x) {
  FOR_SUMS(i, x->k) cu_reduce_add(x, i, "j == 0 && u == 0");
}

/* "sum<i>" is the row's from here on. Each has shared memory of its own, so that nobody waits to write it. */
static void cu_reduce_put_row(cuda_print *x, uint32_t i) {
  const char *c = cuda_type(cu_reduce_sum_type(x, &x->k->stores[i]));
  long long lanes = x->held->lanes;
  cuda_print_needs(x, "row_sum");
  if (lanes > 32)
    base_putf(x->out, "  __shared__ pack<%s, %lld> warps%u[%lld];\n", c, lanes / 32, (unsigned)i,
              (long long)x->held->width);
  base_putf(x->out, "  sum%u = row_sum<%lld>(", (unsigned)i, lanes);
  if (lanes > 32)
    base_putf(x->out, "warps%u, ", (unsigned)i);
  else
    base_putf(x->out, "(pack<%s, 1> *)0, ", c);
  base_putf(x->out, "sum%u, [](%s a, %s b) { return ", (unsigned)i, c, c);
  cuda_print_combine(x, x->k->stores[i].by, cu_reduce_sum_type(x, &x->k->stores[i]), "a", "b");
  BASE_PUT(x->out, "; });\n");
}

void cuda_print_held_results(cuda_print *x) {
  char sum[16], init[16];
  FOR_SUMS(i, x->k) cu_reduce_put_row(x, i);
  cu_reduce_inits(x);
  FOR_SUMS(i, x->k) {
    base_dtype t = (base_dtype)x->k->values[x->k->stores[i].value].dtype;
    snprintf(sum, sizeof sum, "sum%u", (unsigned)i);
    snprintf(init, sizeof init, "init%u", (unsigned)i);
    cu_reduce_combine(x, i, sum, init, sum);
    base_putf(x->out, "  r%u = ", (unsigned)x->held->out[i]);
    cuda_print_convert(x, t, cu_reduce_sum_type(x, &x->k->stores[i]), sum);
    BASE_PUT(x->out, ";\n");
    cuda_print_held_one(x, i, t);
  }
}

static void cu_reduce_put_shared(cuda_print *x, const cu_reduce *p, cuda_launch *l) {
  const kernel_reduction *r = x->k->reduction;
  if (p->pieces > 1) cu_reduce_put_second(x, p);
  cu_reduce_put_block(x, p);
  int64_t pieces = r->outer * p->pieces;
  l->grid = p->columns ? pieces * p->across : (pieces + p->width - 1) / p->width;
  l->block = (uint32_t)(p->width * p->lanes);
  l->how = p->columns ? "a block for results beside each other" : "threads of a block for each result";
}

void cuda_print_reduction(cuda_print *x, cuda_launch *l) {
  cu_reduce p = cu_reduce_share(x->k, x->pack ? x->pack : 1);
  if (p.serial)
    cu_reduce_put_serial(x, l);
  else
    cu_reduce_put_shared(x, &p, l);
}
