/* Kernels that go through the same rows one after another, as softmax and normalisations do, as one: some threads have
 * a row, and go through it step by step. What only these steps need stays in shared memory. */
#include "print.h"

enum {
  CU_ROWS_EACH = 8,          /* elements of a row that a thread is worth */
  CU_ROWS_KEPT = 32 << 10,   /* bytes of shared memory for arrays */
  CU_ROWS_SHARED = 46 << 10, /* and with those of reductions */
  CU_ROWS_BLOCKS = 512,      /* that keep a GPU busy, */
  CU_ROWS_SMALL = 64,        /* of at least so many threads */
  CU_ROWS_FEW = 64,          /* blocks that are too few for rows so long: */
  CU_ROWS_LONG = 1 << 13,
  CU_ROWS_AT_ONCE =
      3 /* blocks of a multiprocessor that there are to be registers for: without it ptxas spills to have more */
};

static int64_t cu_rows_elements(const cuda_rows *r, uint32_t step) {
  return r->steps[step].k->count / r->rows;
}

/* Whether each step has what a row's threads can do by themselves. */
static bool cu_rows_takes(const cuda_rows *r) {
  kernel_scans scans;
  for (uint32_t i = 0; i < r->n_steps; i++) {
    const kernel *k = r->steps[i].k;
    if (k->count % r->rows || k->count == 0 || kernel_find_scans(k, &scans) || !cuda_print_is_plain(k)) return false;
    if (k->reduction && (k->reduction->inner != 1 || k->reduction->outer != r->rows)) return false;
  }
  return true;
}

/* Neighbours are of one result. */
static bool cu_rows_is_along(const kernel *k, uint32_t pack) {
  return !k->reduction || k->reduction->reduced % pack == 0;
}

/* Threads of a row and rows of a block, and which arrays stay. */
typedef struct cu_rows_share {
  int64_t lanes, width, kept;
} cu_rows_share;

static cu_rows_share cu_rows_make_share(const cuda_rows *r) {
  int64_t longest = 1;
  cu_rows_share s = {.lanes = 1};
  for (uint32_t i = 0; i < r->n_steps; i++)
    if (cu_rows_elements(r, i) > longest) longest = cu_rows_elements(r, i);
  while (s.lanes < CUDA_BLOCK_THREADS && 2 * s.lanes * CU_ROWS_EACH <= longest) s.lanes *= 2;
  for (uint32_t i = 0; i < r->n_arrays; i++) s.kept += (r->kept[i] + 15) & ~(int64_t)15;
  s.width = CUDA_BLOCK_THREADS / s.lanes;
  while (s.width > 1 && s.width * s.kept > CU_ROWS_KEPT) s.width /= 2;
  while (s.width > 1 && s.width * s.lanes > CU_ROWS_SMALL && r->rows / s.width < CU_ROWS_BLOCKS) s.width /= 2;
  if (s.width * s.kept > CU_ROWS_KEPT) s.kept = 0;
  if ((r->rows + s.width - 1) / s.width < CU_ROWS_FEW && longest >= CU_ROWS_LONG) s.width = 0;
  return s;
}

/* Those of reductions, one for each thread. */
static int64_t cu_rows_tree_bytes(const cuda_rows *r, const cu_rows_share *s) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < r->n_steps; i++)
    for (uint32_t j = 0; j < r->steps[i].k->n_stores; j++)
      if (r->steps[i].k->stores[j].by) bytes += s->lanes * s->width * 16;
  return bytes;
}

/* Arrays that stay lie where the row's threads have them, so that an index into the whole array finds its element. */
static void cu_rows_put_arrays(base_text *out, const cuda_rows *r, const cu_rows_share *s) {
  base_putf(out,
            "  const idx row = (idx)blockIdx.x * %lld + threadIdx.x / %lld;\n  const int lane = threadIdx.x %% %lld;\n",
            (long long)s->width, (long long)s->lanes, (long long)s->lanes);
  base_putf(out, "  const bool there = row < %lld;\n", (long long)r->rows);
  for (uint32_t i = 0; i < r->n_arrays; i++) {
    if (!r->kept[i] || !s->kept) continue;
    long long room = (r->kept[i] + 15) & ~(int64_t)15;
    base_putf(out, "  __shared__ pack<uint32_t, 4> s%u[%lld];\n", (unsigned)i, room / 16 * (long long)s->width);
    base_putf(out,
              "  char *const a%u = (char *)((uint64_t)s%u + threadIdx.x / %lld * %lldull - (uint64_t)row * %lldull);\n",
              (unsigned)i, (unsigned)i, (long long)s->lanes, room, (long long)r->kept[i]);
  }
}

static void cu_rows_put_step(cuda_print *x, const cuda_rows *r, const cu_rows_share *s, uint32_t step) {
  const cuda_rows_step *own = &r->steps[step];
  long long elements = cu_rows_elements(r, step), pack = x->pack > 1 ? x->pack : 1;
  BASE_PUT(x->out, "  {\n");
  for (uint32_t i = 0; i < own->k->n_inputs; i++)
    base_putf(x->out, "  const char *const in%u = a%u;\n", (unsigned)i, (unsigned)own->in[i]);
  for (uint32_t i = 0; i < own->k->n_stores; i++)
    base_putf(x->out, "  char *const out%u = a%u;\n", (unsigned)i, (unsigned)own->out[i]);
  if (own->k->reduction) {
    cuda_print_reduction_of_rows(x, s->width, s->lanes);
  } else {
    base_putf(x->out, "  const idx all = there ? %lld : 0;\n", elements);
    base_putf(x->out, "  for (idx step = lane * %lld; step < all; step += %lld) {\n", pack, pack * (long long)s->lanes);
    base_putf(x->out, "  const idx m = row * %lld + step;\n", elements);
    cuda_print_iterations(x, "m", NULL);
    BASE_PUT(x->out, "  }\n");
  }
  BASE_PUT(x->out, "  }\n");
}

static bool cu_rows_is_single(const cuda_rows *r, uint32_t step) {
  return !r->steps[step].k->reduction && cu_rows_elements(r, step) == 1;
}

/* The row's threads wait before a step, but where its only thread has made all that is new to it. */
static void cu_rows_put_barrier(base_text *out, const cuda_rows *r, const cu_rows_share *share, uint32_t step) {
  const kernel *before = r->steps[step - 1].k;
  if (cu_rows_is_single(r, step) && (before->reduction || cu_rows_is_single(r, step - 1))) return;
  base_puts(out, share->lanes > 32 ? "  __syncthreads();\n" : "  __syncwarp();\n");
}

static void cu_rows_put(cuda_source *s, const cuda_rows *r, const cu_rows_share *share, bool *strange) {
  bool small = true;
  for (uint32_t i = 0; i < r->n_steps; i++) small = small && cuda_print_is_small(r->steps[i].k);
  for (uint32_t i = 0, some = 0; i < r->n_arrays; i++)
    if (!r->kept[i] || !share->kept) base_putf(&s->body, "%schar *a%u", some++ ? ", " : "", (unsigned)i);
  base_putf(&s->body, ") {\n  typedef %s idx;\n", small ? "int32_t" : "int64_t");
  cu_rows_put_arrays(&s->body, r, share);
  for (uint32_t i = 0; i < r->n_steps; i++) {
    cuda_print x = {.s = s, .k = r->steps[i].k, .out = &s->body};
    if (i) cu_rows_put_barrier(&s->body, r, share, i);
    cuda_print_choose_pack(&x);
    if (x.pack && (cu_rows_elements(r, i) % x.pack || !cu_rows_is_along(x.k, x.pack))) x.pack = 0;
    cu_rows_put_step(&x, r, share, i);
    *strange = *strange || x.strange;
  }
  BASE_PUT(&s->body, "}\n");
}

bool cuda_print_rows(cuda_source *s, cuda_rows *r, cuda_launch *out) {
  size_t before = s->body.n;
  bool strange = false;
  if (!cu_rows_takes(r)) return false;
  cu_rows_share share = cu_rows_make_share(r);
  if (share.width == 0 || cu_rows_tree_bytes(r, &share) + share.kept * share.width > CU_ROWS_SHARED) return false;
  *out = (cuda_launch){.number = s->n_kernels, .block = (uint32_t)(share.lanes * share.width)};
  base_putf(&s->body, "\nextern \"C\" __global__ void __launch_bounds__(%d, %d) k%u(", CUDA_BLOCK_THREADS,
            CU_ROWS_AT_ONCE, (unsigned)out->number);
  cu_rows_put(s, r, &share, &strange);
  out->grid = (r->rows + share.width - 1) / share.width;
  out->how = "threads for each row of several steps";
  if (strange || out->grid >= INT32_MAX) {
    s->body.n = before;
    return false;
  }
  for (uint32_t i = 0; i < r->n_arrays; i++)
    if (!share.kept) r->kept[i] = 0;
  s->n_kernels++;
  return true;
}
