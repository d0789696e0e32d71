/* Products in blocks, after Goto and van de Geijn: B is packed into panels as wide as a tile, some of it at a
 * time; then tasks of some rows by some columns of C go through k block by block, packing their rows of A as they
 * need them. The packed block of A and the sums stay in the second-level cache, a panel's part in the first.
 *
 *    for chunk of panels of B that fits the scratch memory    gemm_run, gemm_chunk   (pool: pack the panels)
 *      for task (rows x columns of C)                         gemm_tasks             (pool)
 *        for block of k                                       gemm_do                pack A
 *          for panel, for tile                                gemm_tiles             dot_kernel.h
 *
 * Everything about the cut is decided in cpu_gemm_prepare, from sizes and types alone. */
#include "dot_gemm.h"

#include "../../base/isa/isa.h"
#include "../../interp/algorithm/matmul.h"

enum {
  GEMM_WIDE = 16,       /* rows, columns and terms from which on others than thin products are at their best */
  GEMM_FEW = 8,         /* columns of which B has too few */
  GEMM_CHUNK = 4 << 20, /* bytes of packed B that are wanted at most */
  GEMM_DIRECT_ROWS = 4 * GEMM_ROWS, /* of A at most, where more of B is not packed before but where it is met */
  GEMM_PANEL_BYTES = GEMM_BLOCK_BYTES / 4 * 128, /* of a panel's part in one block of k, at most */
  GEMM_ROWS_BYTES = 1 << 20,                     /* of packed A at most, where all of it is packed before */
  GEMM_ROWS_TASKS = 4,                           /* along n, from which on that is done */
  GEMM_TASKS = 24,                               /* enough for some threads */
  GEMM_TASK_WORK = 1 << 20,                      /* products below which a task is not cut further */
  GEMM_GRAIN_WORK = 1 << 18,                     /* products for which another thread is worth while */
  GEMM_GRAIN_BYTES = 1 << 16,                    /* and bytes of packing */
  GEMM_STRIP_BYTES = 1 << 20,                    /* of packed B that stay in a second-level cache */
  GEMM_RUN = 8                                   /* neighbours in C that are stored as such */
};

/* The product of the extents, 0 where one is; false where it is too large for an int64_t. */
static bool gemm_count(cpu_gemm_dims *dims) {
  dims->count = 1;
  for (uint32_t d = 0; d < dims->n; d++)
    if (dims->v[d].n == 0) dims->count = 0;
  for (uint32_t d = 0; d < dims->n && dims->count; d++)
    if (!base_mul_i64(dims->count, dims->v[d].n, &dims->count)) return false;
  return true;
}

/* Integers that s16 can hold: of a byte at most, or s16 themselves. */
static bool gemm_is_small_integer(base_dtype t) {
  return base_dtype_bytes(t) == 1 ? !base_dtype_is_float(t) : t == XLAC_S16;
}

/* The element types that packing reads for such products: others are converted before. bf16 and f16 are widened by
 * packing, 8-bit integers become pairs of s16, and unsigned integers have the bits of signed ones. */
static bool gemm_reads(base_dtype t, base_dtype packed, bool pairs) {
  if (pairs) return gemm_is_small_integer(t) || t == XLAC_BF16;
  if (packed == XLAC_F32) return t == XLAC_F32 || t == XLAC_BF16 || t == XLAC_F16;
  if (packed == XLAC_S32) return t == XLAC_S32 || t == XLAC_U32;
  if (packed == XLAC_S64) return t == XLAC_S64 || t == XLAC_U64;
  return t == packed;
}

/* Whether the product is of the kind that packs: f16 is converted before for all others, which have no loops for it. */
static bool gemm_packs(cpu_gemm *g) {
  return gemm_count(&g->m) && gemm_count(&g->n) && gemm_count(&g->k) && g->m.count >= GEMM_WIDE &&
         g->n.count >= GEMM_WIDE && g->k.count >= GEMM_WIDE;
}

/* Small products read 4 bytes or more an element: they have no packing that would widen it. */
void cpu_gemm_types(cpu_gemm *g, base_dtype a, base_dtype b, base_dtype c, bool may_be_small) {
  g->small = may_be_small && gemm_count(&g->batch) && gemm_count(&g->m) && gemm_count(&g->n) && gemm_count(&g->k) &&
             cpu_gemm_is_small(g);
  base_dtype product = interp_product_type(a, b, c);
  g->c_type = c;
  g->packed = product;
  g->sum = base_dtype_real_part(product);
  g->is_complex = base_dtype_is_complex(product);
  bool narrow =
      product == XLAC_F32 && a == XLAC_BF16 && b == XLAC_BF16 && base_isa_narrow_products() != BASE_ISA_NO_NARROW;
  g->pairs = !g->small && (narrow || (product == XLAC_S32 && gemm_is_small_integer(a) && gemm_is_small_integer(b)));
  bool packs = !g->small && gemm_packs(g);
  g->a_type = gemm_reads(a, product, g->pairs) && !(g->small && base_dtype_bytes(a) < 4) ? a : product;
  g->b_type = gemm_reads(b, product, g->pairs) && !(g->small && base_dtype_bytes(b) < 4) ? b : product;
  if (a == XLAC_F16 && !packs) g->a_type = (uint8_t)product;
  if (b == XLAC_F16 && !packs) g->b_type = (uint8_t)product;
}

void cpu_gemm_add(cpu_gemm_dims *dims, int64_t n, int64_t a, int64_t b, int64_t c) {
  if (dims->n == 0) dims->count = 1;
  if (n == 1) return;
  assert(dims->n < GEMM_MAX_DIMS);
  dims->v[dims->n++] = (cpu_gemm_dim){n, a, b, c};
}

/* A conversion of a whole operand. */
typedef struct gemm_conversion {
  base_dtype to, from;
  char *dst;
  const char *src;
} gemm_conversion;

static void gemm_convert_range(void *ctx, size_t begin, size_t end) {
  const gemm_conversion *x = ctx;
  base_convert(x->to, x->dst + begin * base_dtype_bytes(x->to), x->from, x->src + begin * base_dtype_bytes(x->from),
               end - begin);
}

void cpu_gemm_convert(rt_pool *pool, base_dtype to, void *dst, base_dtype from, const void *src, int64_t n) {
  gemm_conversion x = {to, from, dst, src};
  rt_parallel_for(pool, (size_t)n, GEMM_GRAIN_BYTES, gemm_convert_range, &x);
}

/* --- preparing --- */

static void gemm_swap_dims(cpu_gemm_dims *dims) {
  for (uint32_t d = 0; d < dims->n; d++) {
    int64_t a = dims->v[d].a;
    dims->v[d].a = dims->v[d].b;
    dims->v[d].b = a;
  }
}

/* A and B change places: C's transpose is B's transpose times A's transpose, and C lies in any way. */
static void gemm_exchange(cpu_gemm *g) {
  cpu_gemm_dims m = g->m;
  uint8_t t = g->a_type;
  int64_t at = g->a_at;
  g->m = g->n;
  g->n = m;
  g->a_type = g->b_type;
  g->b_type = t;
  g->a_at = g->b_at;
  g->b_at = at;
  gemm_swap_dims(&g->batch);
  gemm_swap_dims(&g->m);
  gemm_swap_dims(&g->n);
  gemm_swap_dims(&g->k);
}

/* The smallest step of any of the dimensions in C. */
static int64_t gemm_least_step(const cpu_gemm_dims *dims) {
  int64_t least = INT64_MAX;
  for (uint32_t d = 0; d < dims->n; d++)
    if (dims->v[d].c < least) least = dims->v[d].c;
  return least;
}

/* Whether B is to be the left operand. Results are stored by rows of neighbours, so n should be the dimension
 * along which C is contiguous, or nearly so; and few columns waste most of a tile, so the larger of the two should be
 * n. */
static bool gemm_wants_exchange(const cpu_gemm *g) {
  if (g->n.count <= GEMM_FEW || g->m.count <= GEMM_FEW) return g->n.count <= GEMM_FEW && g->m.count > g->n.count;
  return gemm_least_step(&g->m) < gemm_least_step(&g->n);
}

/* How far a step goes in the array that decides the order: A, or else C. */
static int64_t gemm_step(const cpu_gemm_dim *d, char which) {
  int64_t v = which == 'a' ? d->a : d->c;
  return v < 0 ? -v : v;
}

/* Smallest steps innermost, and neighbours that walk all arrays as one dimension become one: [8,16] with steps 16
 * and 1 in all three is one dimension of 128. Insertion sort: there are few, and it is stable. */
static void gemm_order(cpu_gemm_dims *dims, char which) {
  for (uint32_t i = 1; i < dims->n; i++)
    for (uint32_t j = i; j > 0 && gemm_step(&dims->v[j - 1], which) < gemm_step(&dims->v[j], which); j--) {
      cpu_gemm_dim t = dims->v[j];
      dims->v[j] = dims->v[j - 1];
      dims->v[j - 1] = t;
    }
  uint32_t n = 0;
  for (uint32_t i = 0; i < dims->n; i++) {
    cpu_gemm_dim *in = &dims->v[i], *out = n ? &dims->v[n - 1] : NULL;
    if (out && out->a == in->a * in->n && out->b == in->b * in->n && out->c == in->c * in->n)
      *out = (cpu_gemm_dim){out->n * in->n, in->a, in->b, in->c};
    else
      dims->v[n++] = *in;
  }
  dims->n = n;
}

/* To the next multiple. */
static int64_t gemm_up(int64_t n, int64_t by) {
  return (n + by - 1) / by * by;
}

/* Rows and columns of a task: GEMM_ROWS by a row of sums, and smaller tasks where there would be too few for some
 * threads. */
static void gemm_cut(cpu_gemm *g, int64_t work) {
  assert(g->m.count > 0 && g->n.count > 0 && g->batch.count > 0);
  int64_t width = g->kernel.columns / (g->is_complex ? 2 : 1);
  g->rows = GEMM_ROWS;
  if (g->rows > gemm_up(g->m.count + g->shifted, g->kernel.rows))
    g->rows = gemm_up(g->m.count + g->shifted, g->kernel.rows);
  if (g->columns > gemm_up(g->n.count, width)) g->columns = gemm_up(g->n.count, width);
  for (;;) {
    int64_t tasks = ((g->m.count - 1) / g->rows + 1) * ((g->n.count - 1) / g->columns + 1) * g->batch.count;
    if (tasks >= GEMM_TASKS || work / tasks < GEMM_TASK_WORK) return;
    if (g->rows >= 4 * g->kernel.rows && g->m.count > GEMM_ROWS)
      g->rows = gemm_up(g->rows / 2, g->kernel.rows);
    else if (g->columns >= 2 * width)
      g->columns = gemm_up(g->columns / 2, width);
    else
      return;
  }
}

static bool gemm_count_all(cpu_gemm *g) {
  return gemm_count(&g->batch) && gemm_count(&g->m) && gemm_count(&g->n) && gemm_count(&g->k);
}

static void gemm_order_all(cpu_gemm *g) {
  gemm_order(&g->batch, 'c');
  gemm_order(&g->m, 'c');
  gemm_order(&g->n, 'c');
  gemm_order(&g->k, 'a');
}

bool cpu_gemm_settle(cpu_gemm *g) {
  if (!gemm_count_all(g) || !g->batch.count || !g->m.count || !g->n.count || !g->k.count) return false;
  gemm_order_all(g);
  return true;
}

/* The kernel: of bytes in fours where there is one. */
static void gemm_choose_kernel(cpu_gemm *g) {
  base_dtype a = (base_dtype)g->a_type, b = (base_dtype)g->b_type;
  bool bytes = g->pairs && base_dtype_bytes(a) == 1 && base_dtype_bytes(b) == 1;
  g->shifted = false;
  g->kernel = bytes ? cpu_gemm_kernel_of_bytes(base_dtype_is_signed(a), base_dtype_is_signed(b), &g->shifted)
                    : (cpu_gemm_kernel){NULL, 0, 0};
  g->bytes = g->kernel.tile != NULL;
  if (!g->bytes) g->kernel = cpu_gemm_kernel_of((base_dtype)g->sum, g->pairs);
}

/* The kernel, blocks, and the panels of all of B: how many in *all. false where they are too large to count. */
static bool gemm_measure(cpu_gemm *g, int64_t *all) {
  gemm_choose_kernel(g);
  int64_t size = (int64_t)base_dtype_bytes((base_dtype)g->packed), width = g->kernel.columns / (g->is_complex ? 2 : 1);
  int64_t line = g->kernel.columns * (int64_t)base_dtype_bytes((base_dtype)g->sum);
  g->k_block = GEMM_BLOCK_BYTES / (g->bytes ? 1 : g->pairs ? 2 : size);
  g->columns = GEMM_BLOCK_BYTES / size;
  g->panels = (g->n.count + width - 1) / width;
  return base_mul_i64(cpu_gemm_steps(g, g->k.count), line, &g->panel_bytes) &&
         base_mul_i64(g->panels, g->batch.count, all);
}

/* How many pieces of `by` n is, the last one shorter. */
static int64_t gemm_pieces(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

/* Bytes of a packed block of A: rows of a task, and of k what is in a block. */
static int64_t gemm_rows_bytes(const cpu_gemm *g) {
  return gemm_up(g->rows + g->shifted, g->kernel.rows) * GEMM_ROW_BYTES;
}

/* Scratch memory for all of A where many tasks would pack the same rows again. */
static void gemm_take_rows(cpu_gemm *g) {
  int64_t most = GEMM_ROWS_BYTES / gemm_rows_bytes(g), down = gemm_pieces(g->m.count, g->rows);
  int64_t blocks = gemm_pieces(g->k.count, g->k_block);
  g->rows_once = gemm_pieces(g->n.count, g->columns) >= GEMM_ROWS_TASKS && blocks > 0 && down <= most &&
                 g->scratch_bytes < INT64_MAX - 2 * GEMM_ROWS_BYTES && g->batch.count <= most / down &&
                 blocks <= most / (down * g->batch.count);
  if (!g->rows_once) return;
  g->rows_at = gemm_up(g->scratch_bytes, 64);
  g->scratch_bytes = g->rows_at + g->batch.count * down * blocks * gemm_rows_bytes(g);
}

/* In order: count, exchange, order the dimensions, then find which way the product goes: small, thin, or in
 * blocks. What is packed at a time is at most GEMM_CHUNK where panels are not larger themselves; if they are, and
 * there are few rows of A, tasks pack what they need (`direct`), as they do where a panel has but one task. */
bool cpu_gemm_prepare(cpu_gemm *g, bool *exchanged) {
  int64_t work = 0, all = 0;
  if (!gemm_count_all(g)) return false;
  *exchanged = false;
  g->scratch_bytes = 0;
  if (g->small) return true;
  *exchanged = gemm_wants_exchange(g);
  if (*exchanged) gemm_exchange(g);
  gemm_order_all(g);
  if (g->batch.count == 0 || g->m.count == 0 || g->n.count == 0) return true;
  g->thin = cpu_gemm_is_thin(g);
  g->isa = (uint8_t)base_isa_best();
  if (g->thin) {
    g->scratch_bytes = cpu_gemm_thin_bytes(g);
    return g->scratch_bytes >= 0;
  }
  if (!gemm_measure(g, &all)) return false;
  if (!base_mul_i64(g->batch.count, g->m.count, &work) || !base_mul_i64(work, g->n.count, &work) ||
      (g->k.count && !base_mul_i64(work, g->k.count, &work)))
    return false;
  gemm_cut(g, work);
  g->rows -= g->shifted;
  int64_t least = g->columns / (g->kernel.columns / (g->is_complex ? 2 : 1)),
          most = g->panel_bytes ? GEMM_CHUNK / g->panel_bytes : all;
  g->chunk = most < least ? least : most / least * least;
  if (g->chunk > g->panels) g->chunk = g->chunk / g->panels * g->panels;
  if (g->chunk > all) g->chunk = all;
  bool fits = base_mul_i64(g->chunk, g->panel_bytes, &g->scratch_bytes);
  g->direct = g->m.count <= g->rows || (g->m.count <= GEMM_DIRECT_ROWS && (!fits || g->scratch_bytes > 4 * GEMM_CHUNK));
  if (g->direct) {
    g->scratch_bytes = 0;
    g->chunk = all;
  }
  if (!g->direct && !fits) return false;
  gemm_take_rows(g);
  return true;
}

/* --- running --- */

/* One product at work. */
typedef struct gemm_run {
  const cpu_gemm *g;
  rt_pool *pool;
  const char *a, *b;
  char *c, *packed, *rows;                 /* rows: all of A, packed, or NULL */
  int64_t batch, batches, panel, n_panels; /* what is packed */
  int64_t across, down;                    /* tasks along n and m */
} gemm_run;

/* Columns of C in a panel: a complex one takes two lanes. */
static int64_t gemm_width(const cpu_gemm *g) {
  return g->kernel.columns / (g->is_complex ? 2 : 1);
}

/* Where a batch begins in an array, in elements from its first. */
static int64_t gemm_batch_at(const cpu_gemm *g, char which, int64_t batch) {
  int64_t at = 0;
  cpu_gemm_offsets(&g->batch, which, batch, 1, &at);
  return at;
}

/* What a block of k (`count` of it from number p on) takes of a panel of B, packed to `to`. */
static void gemm_pack_part(const gemm_run *r, int64_t batch, int64_t panel, int64_t p, int64_t count, char *to) {
  const cpu_gemm *g = r->g;
  int64_t columns[64], width = gemm_width(g), from = panel * width;
  int64_t n = g->n.count - from < width ? g->n.count - from : width;
  assert(n > 0);
  assert(width <= 64);
  cpu_gemm_offsets(&g->n, 'b', from, n, columns);
  cpu_gemm_block block = {
      .from = r->b + (g->b_at + gemm_batch_at(g, 'b', batch)) * (int64_t)base_dtype_bytes((base_dtype)g->b_type),
      .lines = columns,
      .n_lines = (int)n,
      .p = p,
      .count = count};
  cpu_gemm_pack_b(g, &block, to);
}

/* For rt_parallel_for: whole panels of the chunk. */
static void gemm_pack_panels(void *ctx, size_t begin, size_t end) {
  const gemm_run *r = ctx;
  for (size_t i = begin; i < end; i++)
    gemm_pack_part(r, r->batch + (int64_t)i / r->n_panels, r->panel + (int64_t)i % r->n_panels, 0, r->g->k.count,
                   r->packed + (int64_t)i * r->g->panel_bytes);
}

/* How many of n places are neighbours, from the first on. */
static int64_t gemm_run_of(const int64_t *places, int64_t n) {
  int64_t run = 1;
  while (run < n && places[run] == places[0] + run) run++;
  return run;
}

/* n elements to their places, of a size that the compiler knows. */
#define GEMM_PUT(T)                                               \
  for (int64_t i = 0; i < n; i++) {                               \
    memcpy(to + places[i] * (int64_t)sizeof(T), from, sizeof(T)); \
    from += sizeof(T);                                            \
  }
static void gemm_put(size_t bytes, char *to, const int64_t *places, const char *from, int64_t n) {
  if (bytes == 4)
    GEMM_PUT(uint32_t)
  else if (bytes == 2)
    GEMM_PUT(uint16_t)
  else
    for (int64_t i = 0; i < n; i++) memcpy(to + places[i] * (int64_t)bytes, from + (size_t)i * bytes, bytes);
}

/* A row of sums to its places in C, converted. runs: of neighbours, how many: these go straight, single elements by way
 * of a buffer. */
static void gemm_store_row(const cpu_gemm *g, const char *sums, char *to, const int64_t *places, int64_t n,
                           int64_t runs) {
  base_dtype t = (base_dtype)g->c_type, packed = (base_dtype)g->packed;
  size_t bytes = base_dtype_bytes(t);
  char other[GEMM_BLOCK_BYTES];
  if (runs * GEMM_RUN > n && runs > 1) {
    base_convert(t, other, packed, sums, (size_t)n);
    gemm_put(bytes, to, places, other, n);
    return;
  }
  for (int64_t i = 0, run; i < n; i += run) {
    run = runs == 1 ? n : gemm_run_of(places + i, n - i);
    base_convert(t, to + places[i] * (int64_t)bytes, packed, sums + i * (int64_t)base_dtype_bytes(packed), (size_t)run);
  }
}

/* A range of C. `at` and `to` have the offsets of its rows in A and in C, `places` those of its columns in C. */
typedef struct gemm_task {
  int64_t batch, row, rows, column, columns;
  bool packed; /* its rows of A are, from the columns before: all of k is one block */
  int64_t at[GEMM_ROWS], to[GEMM_ROWS], places[GEMM_BLOCK_BYTES / 4];
} gemm_task;

/* to = row - excess: the sums of a row of A that is 128 everywhere are what all other sums are too large by. */
static void gemm_shift_back(int64_t n, const char *row, const char *excess, char *to) {
  typedef uint32_t some __attribute__((vector_size(16), aligned(4), may_alias));
  enum { BYTES = sizeof(some) };
  int64_t at = 0, bytes = n * (int64_t)sizeof(uint32_t);
  for (; at + BYTES <= bytes; at += BYTES)
    *(some *)(void *)(to + at) = *(const some *)(const void *)(row + at) - *(const some *)(const void *)(excess + at);
  for (uint32_t x, y; at < bytes; at += (int64_t)sizeof x) {
    memcpy(&x, row + at, sizeof x);
    memcpy(&y, excess + at, sizeof y);
    x -= y;
    memcpy(to + at, &x, sizeof x);
  }
}

/* All sums of a task to C. Where its columns are neighbours, which is the rule, a row is one conversion, or is shifted
 * back on its way. */
static void gemm_store(const gemm_run *r, const gemm_task *t, char *sums) {
  const cpu_gemm *g = r->g;
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->c_type), c = gemm_batch_at(g, 'c', t->batch), runs = 0;
  for (int64_t j = 0; j < t->columns; runs++) j += gemm_run_of(t->places + j, t->columns - j);
  const char *excess = sums + t->rows * GEMM_ROW_BYTES;
  bool straight = g->shifted && runs == 1 && (g->c_type == XLAC_S32 || g->c_type == XLAC_U32);
  assert(!g->shifted || g->sum == XLAC_S32);
  for (int64_t i = 0; i < t->rows; i++) {
    char *row = sums + i * GEMM_ROW_BYTES, *to = r->c + (c + t->to[i]) * bytes;
    if (g->shifted) gemm_shift_back(t->columns, row, excess, straight ? to + t->places[0] * bytes : row);
    if (!straight) gemm_store_row(g, row, to, t->places, t->columns, runs);
  }
}

/* One block of k: all tiles of the task, panel by panel, so that a panel's part stays in the first-level cache
 * while all rows go through it. */
static void gemm_tiles(const gemm_run *r, const gemm_task *t, int64_t p, int64_t count, const char *a, char *sums) {
  const cpu_gemm *g = r->g;
  int64_t size = (int64_t)base_dtype_bytes((base_dtype)g->sum), line = g->kernel.columns * size;
  int64_t steps = cpu_gemm_steps(g, count), panels = (t->columns + gemm_width(g) - 1) / gemm_width(g);
  int64_t first = t->column / gemm_width(g), unit = (t->batch - r->batch) * r->n_panels + first - r->panel;
  char part[GEMM_PANEL_BYTES] __attribute__((aligned(64)));
  assert(cpu_gemm_steps(g, g->k_block) * line <= GEMM_PANEL_BYTES);
  for (int64_t j = 0; j < panels; j++) {
    const char *b = g->direct ? part : r->packed + (unit + j) * g->panel_bytes + cpu_gemm_steps(g, p) * line;
    if (g->direct) gemm_pack_part(r, t->batch, first + j, p, count, part);
    for (int64_t i = 0; i < t->rows + g->shifted; i += g->kernel.rows)
      g->kernel.tile(steps, a + i * GEMM_ROW_BYTES, b, sums + i * GEMM_ROW_BYTES + j * line, p == 0);
  }
}

/* A block of A where all of it is packed. */
static char *gemm_rows_of(const gemm_run *r, int64_t batch, int64_t task, int64_t block) {
  const cpu_gemm *g = r->g;
  int64_t down = gemm_pieces(g->m.count, g->rows), blocks = gemm_pieces(g->k.count, g->k_block);
  assert(g->rows_once && task < down && block < blocks);
  return r->rows + ((batch * down + task) * blocks + block) * gemm_rows_bytes(g);
}

/* For rt_parallel_for: blocks of A, numbered along k, then along m, then by batch. */
static void gemm_pack_rows(void *ctx, size_t begin, size_t end) {
  const gemm_run *r = ctx;
  const cpu_gemm *g = r->g;
  int64_t at[GEMM_ROWS], down = gemm_pieces(g->m.count, g->rows), blocks = gemm_pieces(g->k.count, g->k_block);
  for (int64_t i = (int64_t)begin; i < (int64_t)end; i++) {
    int64_t p = i % blocks * g->k_block, task = i / blocks % down, batch = i / blocks / down, row = task * g->rows;
    int64_t rows = g->m.count - row < g->rows ? g->m.count - row : g->rows;
    int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->a_type);
    cpu_gemm_offsets(&g->m, 'a', row, rows, at);
    cpu_gemm_block block = {.from = r->a + (g->a_at + gemm_batch_at(g, 'a', batch)) * bytes,
                            .lines = at,
                            .n_lines = (int)rows,
                            .p = p,
                            .count = g->k.count - p < g->k_block ? g->k.count - p : g->k_block};
    cpu_gemm_pack_a(g, &block, (int)gemm_up(rows + g->shifted, g->kernel.rows),
                    gemm_rows_of(r, batch, task, i % blocks));
  }
}

/* One task. a, sums: GEMM_ROWS rows of GEMM_ROW_BYTES each. */
static void gemm_do(const gemm_run *r, const gemm_task *t, char *a, char *sums) {
  const cpu_gemm *g = r->g;
  assert(t->rows > 0 && t->rows + g->shifted <= GEMM_ROWS && t->columns > 0);
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)g->a_type), p = 0;
  const char *from = r->a + (g->a_at + gemm_batch_at(g, 'a', t->batch)) * bytes;
  int padded = (int)gemm_up(t->rows + g->shifted, g->kernel.rows);
  do { /* once also for k == 0: the sums are zeros */
    int64_t count = g->k.count - p < g->k_block ? g->k.count - p : g->k_block;
    cpu_gemm_block block = {.from = from, .lines = t->at, .n_lines = (int)t->rows, .p = p, .count = count};
    if (!r->rows && !t->packed) cpu_gemm_pack_a(g, &block, padded, a);
    gemm_tiles(r, t, p, count, r->rows ? gemm_rows_of(r, t->batch, t->row / g->rows, p / g->k_block) : a, sums);
    p += count;
  } while (p < g->k.count && !rt_pool_stopping(r->pool));
  gemm_store(r, t, sums);
}

/* For rt_parallel_for: tasks are numbered along n, then along m, then by batch. */
static void gemm_tasks(void *ctx, size_t begin, size_t end) {
  const gemm_run *r = ctx;
  const cpu_gemm *g = r->g;
  char a[GEMM_ROWS * GEMM_ROW_BYTES] __attribute__((aligned(64)));
  char sums[GEMM_ROWS * GEMM_ROW_BYTES] __attribute__((aligned(64)));
  gemm_task t;
  int64_t last = (r->panel + r->n_panels) * gemm_width(g);
  if (last > g->n.count) last = g->n.count;
  for (size_t i = begin; i < end; i++) {
    t.packed = false;
    t.batch = r->batch + (int64_t)i / (r->across * r->down);
    t.row = (int64_t)i / r->across % r->down * g->rows;
    t.column = r->panel * gemm_width(g) + (int64_t)i % r->across * g->columns;
    t.rows = g->m.count - t.row < g->rows ? g->m.count - t.row : g->rows;
    t.columns = last - t.column < g->columns ? last - t.column : g->columns;
    cpu_gemm_offsets(&g->m, 'a', t.row, t.rows, t.at);
    cpu_gemm_offsets(&g->m, 'c', t.row, t.rows, t.to);
    cpu_gemm_offsets(&g->n, 'c', t.column, t.columns, t.places);
    gemm_do(r, &t, a, sums);
  }
}

/* What one filling of the scratch memory serves: packs it on all threads, then runs the tasks on all threads. */
static void gemm_chunk(gemm_run *r) {
  assert(r->batches > 0 && r->n_panels > 0);
  const cpu_gemm *g = r->g;
  int64_t work = g->rows * g->columns * (g->k.count + 1), from = r->panel * gemm_width(g);
  int64_t columns = r->n_panels * gemm_width(g);
  if (columns > g->n.count - from) columns = g->n.count - from;
  r->across = (columns + g->columns - 1) / g->columns;
  r->down = (g->m.count + g->rows - 1) / g->rows;
  if (!g->direct)
    rt_parallel_for(r->pool, (size_t)(r->batches * r->n_panels), (size_t)(GEMM_GRAIN_BYTES / (g->panel_bytes + 1) + 1),
                    gemm_pack_panels, r);
  rt_parallel_for(r->pool, (size_t)(r->batches * r->across * r->down), (size_t)(GEMM_GRAIN_WORK / work + 1), gemm_tasks,
                  r);
}

/* Chunks are whole batches where one fits, else parts of a batch. */
void cpu_gemm_run(const cpu_gemm *g, rt_pool *pool, const void *a, const void *b, void *c, char *scratch) {
  c = (char *)c + g->c_at * (int64_t)base_dtype_bytes((base_dtype)g->c_type);
  gemm_run r = {.g = g, .pool = pool, .a = a, .b = b, .c = c, .packed = scratch};
  if (g->batch.count == 0 || g->m.count == 0 || g->n.count == 0) return;
  if (g->small) {
    cpu_gemm_run_small(g, a, b, c);
    return;
  }
  if (g->thin) {
    cpu_gemm_run_thin(g, pool, a, b, c, scratch);
    return;
  }
  if (g->rows_once && g->k.count > 0) {
    int64_t blocks = g->batch.count * gemm_pieces(g->m.count, g->rows) * gemm_pieces(g->k.count, g->k_block);
    r.rows = scratch + g->rows_at;
    rt_parallel_for(pool, (size_t)blocks, 1, gemm_pack_rows, &r);
  }
  bool whole = g->chunk >= g->panels;
  int64_t batches = whole ? g->chunk / g->panels : 1, panels = whole ? g->panels : g->chunk;
  for (r.batch = 0; r.batch < g->batch.count; r.batch += batches)
    for (r.panel = 0; r.panel < g->panels; r.panel += panels) {
      r.batches = g->batch.count - r.batch < batches ? g->batch.count - r.batch : batches;
      r.n_panels = g->panels - r.panel < panels ? g->panels - r.panel : panels;
      gemm_chunk(&r);
    }
}

/* --- by lines --- */

bool cpu_gemm_prepare_lines(cpu_gemm *g) {
  int64_t all = 0;
  if (!cpu_gemm_settle(g) || !gemm_measure(g, &all) || !base_mul_i64(all, g->panel_bytes, &g->scratch_bytes))
    return false;
  g->chunk = all;
  for (uint32_t d = 0; d < g->n.n; d++)
    if (g->n.v[d].c >= g->n.count) return false;
  return true;
}

static gemm_run gemm_lines_run(const cpu_gemm *g, rt_pool *pool, cpu_gemm_packed packed) {
  assert(packed.batch >= 0 && packed.n > 0 && packed.batch + packed.n <= g->batch.count);
  return (gemm_run){
      .g = g, .pool = pool, .packed = packed.to, .batch = packed.batch, .batches = packed.n, .n_panels = g->panels};
}

void cpu_gemm_pack_lines(const cpu_gemm *g, rt_pool *pool, const void *b, cpu_gemm_packed packed) {
  gemm_run r = gemm_lines_run(g, pool, packed);
  size_t n = (size_t)(r.batches * r.n_panels);
  r.b = b;
  if (pool)
    rt_parallel_for(pool, n, (size_t)(GEMM_GRAIN_BYTES / (g->panel_bytes + 1) + 1), gemm_pack_panels, &r);
  else
    gemm_pack_panels(&r, 0, n);
}

/* Some rows of one batch, by columns [from, to). */
static void gemm_do_rows(const gemm_run *r, gemm_task *t, int64_t from, int64_t to, char *a, char *sums) {
  const cpu_gemm *g = r->g;
  assert(t->rows > 0 && t->rows <= GEMM_ROWS && t->row + t->rows <= g->m.count && from % gemm_width(g) == 0);
  cpu_gemm_offsets(&g->m, 'a', t->row, t->rows, t->at);
  cpu_gemm_offsets(&g->m, 'c', t->row, t->rows, t->to);
  for (t->column = from; t->column < to; t->column += g->columns) {
    t->columns = to - t->column < g->columns ? to - t->column : g->columns;
    cpu_gemm_offsets(&g->n, 'c', t->column, t->columns, t->places);
    t->packed = t->column > from && g->k.count <= g->k_block;
    gemm_do(r, t, a, sums);
  }
}

/* Lines [from, to) of the packed batches, by columns [first, last). */
static void gemm_do_lines(const gemm_run *r, int64_t from, int64_t to, int64_t first, int64_t last) {
  const cpu_gemm *g = r->g;
  char rows[GEMM_ROWS * GEMM_ROW_BYTES] __attribute__((aligned(64)));
  char sums[GEMM_ROWS * GEMM_ROW_BYTES] __attribute__((aligned(64)));
  gemm_task t;
  assert(from >= r->batch * g->m.count && to <= (r->batch + r->batches) * g->m.count);
  while (from < to) {
    t.batch = from / g->m.count;
    t.row = from % g->m.count;
    t.rows = g->m.count - t.row;
    if (t.rows > GEMM_ROWS - g->shifted) t.rows = GEMM_ROWS - g->shifted;
    if (t.rows > to - from) t.rows = to - from;
    gemm_do_rows(r, &t, first, last, rows, sums);
    from += t.rows;
  }
}

void cpu_gemm_run_lines(const cpu_gemm *g, rt_pool *pool, const void *a, cpu_gemm_packed packed, void *c, int64_t from,
                        int64_t to) {
  gemm_run r = gemm_lines_run(g, pool, packed);
  r.a = a;
  r.c = c;
  gemm_do_lines(&r, from, to, 0, g->n.count);
}

/* Columns of a strip: whole panels, of which a second-level cache has all that is packed. */
static int64_t gemm_strip(const cpu_gemm *g) {
  int64_t panels = GEMM_STRIP_BYTES / (g->panel_bytes + 1), most = g->columns / gemm_width(g);
  return gemm_width(g) * (panels < 2 ? 2 : panels > most ? most : panels);
}

int64_t cpu_gemm_strips(const cpu_gemm *g) {
  return g->panels * g->panel_bytes <= GEMM_STRIP_BYTES ? 1 : gemm_pieces(g->n.count, gemm_strip(g));
}

void cpu_gemm_run_strip(const cpu_gemm *g, const void *a, cpu_gemm_packed packed, void *c, int64_t strip) {
  gemm_run r = gemm_lines_run(g, NULL, packed);
  int64_t from = strip * gemm_strip(g), to = from + gemm_strip(g);
  assert(strip >= 0 && strip < cpu_gemm_strips(g));
  r.a = a;
  r.c = c;
  gemm_do_lines(&r, packed.batch * g->m.count, (packed.batch + packed.n) * g->m.count, from,
                to < g->n.count ? to : g->n.count);
}

/* Dimensions of lines step through A as they do through C, by rows of k elements instead of n. */
static bool gemm_steps_by_lines(const cpu_gemm *g, const cpu_gemm_dims *dims) {
  for (uint32_t d = 0; d < dims->n; d++)
    if (dims->v[d].a * g->n.count != dims->v[d].c * g->k.count) return false;
  return true;
}

bool cpu_gemm_owns_lines(const cpu_gemm *g) {
  return gemm_steps_by_lines(g, &g->batch) && gemm_steps_by_lines(g, &g->m);
}
