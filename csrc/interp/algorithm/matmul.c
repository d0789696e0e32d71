/* The matrix product: blocks of k and n are packed once and swept by all rows.
 *
 * A block of up to INTERP_MATMUL_BLOCK values of k and COLUMN_BLOCK columns of the right operand is packed
 * into panels as wide as the kernel, and all rows of the left operand, packed four at a time, go past it.
 * Elements are found by offset lists, or by a function where they are computed (convolution). Sums over k
 * run in ascending order within a block, and blocks are added in order: results do not depend on threads
 * or instruction sets. */
#include "matmul.h"

#include "../blocks.h"

enum { MATMUL_ROWS = 4, COLUMN_BLOCK = 512, OFFSETS_TICK = 1 << 12 };

typedef struct matmul_kernels {
  int columns, parts; /* parts: 2 for complex types */
  void (*tile)(int64_t k, const void *left, const void *right, void *tile);
  void (*pack)(const void *from, int64_t base, const int64_t *places, int64_t n, void *to, int64_t step, int64_t part,
               bool holes);
  void (*store)(const void *tile, int rows, int columns, bool first, void *out, const int64_t *out_m,
                const int64_t *out_n);
} matmul_kernels;

#define MATMUL_T float
#define MATMUL_NAME(x) x##_f32
#define MATMUL_LANES 4
#define MATMUL_COMPLEX 0
#include "matmul_kernel.h"
#define MATMUL_T double
#define MATMUL_NAME(x) x##_f64
#define MATMUL_LANES 2
#define MATMUL_COMPLEX 0
#include "matmul_kernel.h"
#define MATMUL_T uint32_t
#define MATMUL_NAME(x) x##_u32
#define MATMUL_LANES 4
#define MATMUL_COMPLEX 0
#include "matmul_kernel.h"
#define MATMUL_T uint64_t
#define MATMUL_NAME(x) x##_u64
#define MATMUL_LANES 2
#define MATMUL_COMPLEX 0
#include "matmul_kernel.h"
#define MATMUL_T float
#define MATMUL_NAME(x) x##_c64
#define MATMUL_LANES 4
#define MATMUL_COMPLEX 1
#include "matmul_kernel.h"
#define MATMUL_T double
#define MATMUL_NAME(x) x##_c128
#define MATMUL_LANES 2
#define MATMUL_COMPLEX 1
#include "matmul_kernel.h"

/* Signed integers run as unsigned ones: products wrap, as HLO's do. */
static const matmul_kernels *kernels_of(base_dtype t) {
  switch (t) {
    case XLAC_F32:
      return &matmul_kernels_f32;
    case XLAC_F64:
      return &matmul_kernels_f64;
    case XLAC_S32:
      return &matmul_kernels_u32;
    case XLAC_S64:
      return &matmul_kernels_u64;
    case XLAC_C64:
      return &matmul_kernels_c64;
    default:
      assert(t == XLAC_C128);
      return &matmul_kernels_c128;
  }
}

/* The widest that the three types ask for: f16 x f16 -> f16 sums in f32; s8 x s8 -> s32 in s32. */
base_dtype interp_product_type(base_dtype left, base_dtype right, base_dtype result) {
  base_dtype all[3] = {left, right, result};
  bool complex_ = false, wide = false, real = false;
  for (int i = 0; i < 3; i++) {
    const base_dtype_info *f = base_dtype_of(base_dtype_real_part(all[i]));
    complex_ |= base_dtype_is_complex(all[i]);
    real |= f->kind == BASE_KIND_FLOAT;
    wide |= f->bits == 64;
  }
  if (complex_) return wide ? XLAC_C128 : XLAC_C64;
  if (real) return wide ? XLAC_F64 : XLAC_F32;
  return wide ? XLAC_S64 : XLAC_S32;
}

/* Offsets in elements of all index tuples of dims, in row-major order, counted up rather than multiplied
 * out. out has room for the product of dims. */
int interp_offsets(interp_ctx *ctx, uint32_t rank, const int64_t *dims, const int64_t *strides, int64_t *out) {
  assert(rank <= IR_MAX_RANK);
  int64_t n = interp_count(rank, dims), at[IR_MAX_RANK] = {0}, offset = 0;
  for (int64_t i = 0; i < n; i++) {
    out[i] = offset;
    for (uint32_t d = rank; d > 0; d--) {
      offset += strides[d - 1];
      if (++at[d - 1] < dims[d - 1]) break;
      offset -= strides[d - 1] * dims[d - 1];
      at[d - 1] = 0;
    }
    if (i % OFFSETS_TICK == 0) TRY(interp_tick(ctx, OFFSETS_TICK * 2));
  }
  return 0;
}

typedef struct offsets_multiples {
  int64_t step, *out;
} offsets_multiples;

static void offsets_multiply(void *ctx, int64_t begin, int64_t end) {
  const offsets_multiples *m = ctx;
  for (int64_t i = begin; i < end; i++) m->out[i] = i * m->step;
}

/* out[i] = i * step. */
int interp_multiples(interp_ctx *ctx, int64_t n, int64_t step, int64_t *out) {
  return interp_in_blocks(ctx, n, offsets_multiply, &(offsets_multiples){step, out});
}

/* Scratch memory for one shape, to be used for a whole batch. */
int interp_matmul_begin(interp_ctx *ctx, interp_matmul *mm) {
  int columns = kernels_of(mm->dtype)->columns;
  size_t bytes = base_dtype_bytes(mm->dtype);
  int64_t k = interp_min(mm->k, INTERP_MATMUL_BLOCK), n = interp_min(mm->n, COLUMN_BLOCK) + columns;
  mm->packed_left = interp_scratch(ctx, k * MATMUL_ROWS, bytes);
  mm->packed_right = interp_scratch(ctx, k * n, bytes);
  mm->tile = interp_scratch(ctx, MATMUL_ROWS * columns, bytes);
  mm->places = INTERP_SCRATCH(ctx, int64_t, k);
  if (mm->packed_left && mm->packed_right && mm->tile && mm->places) return 0;
  interp_matmul_end(ctx, mm);
  return interp_failed(ctx);
}

/* May be called twice. */
void interp_matmul_end(interp_ctx *ctx, interp_matmul *mm) {
  interp_scratch_free(ctx, mm->packed_left);
  interp_scratch_free(ctx, mm->packed_right);
  interp_scratch_free(ctx, mm->tile);
  interp_scratch_free(ctx, mm->places);
  mm->packed_left = mm->packed_right = mm->tile = NULL;
  mm->places = NULL;
}

/* Rows [i, i + rows) of the left operand, k in [p0, p0 + count). Missing rows are zeros. */
static void pack_left(const interp_matmul *mm, const matmul_kernels *f, int64_t i, int rows, int64_t p0,
                      int64_t count) {
  assert(rows > 0 && rows <= MATMUL_ROWS);
  size_t part = base_dtype_bytes(mm->dtype) / (size_t)f->parts;
  int64_t step = MATMUL_ROWS * f->parts;
  if (rows < MATMUL_ROWS) memset(mm->packed_left, 0, (size_t)(count * step) * part);
  for (int r = 0; r < rows; r++) {
    char *to = (char *)mm->packed_left + (size_t)r * part;
    const int64_t *places = mm->places;
    if (mm->locate)
      mm->locate(mm->locate_ctx, i + r, p0, count, mm->places);
    else
      places = mm->left_k + p0;
    f->pack(mm->left, mm->locate ? 0 : mm->left_m[i + r], places, count, to, step, MATMUL_ROWS, mm->locate != NULL);
  }
}

/* Columns [j0, j0 + n) of the right operand in panels of the kernel's width, k in [p0, p0 + count). */
static void pack_right(const interp_matmul *mm, const matmul_kernels *f, int64_t j0, int64_t n, int64_t p0,
                       int64_t count) {
  size_t line = (size_t)f->columns * base_dtype_bytes(mm->dtype);
  char *to = mm->packed_right;
  for (int64_t j = 0; j < n; j += f->columns) {
    int64_t width = interp_min(f->columns, n - j);
    if (width < f->columns) memset(to, 0, (size_t)count * line);
    for (int64_t p = 0; p < count; p++, to += line)
      f->pack(mm->right, mm->right_k[p0 + p], mm->right_n + j0 + j, width, to, 1, f->columns, false);
  }
}

/* All rows against the packed block of the right operand. p0 == 0: the tile replaces what out holds; later
 * blocks add to it. */
static int matmul_sweep(interp_ctx *ctx, const interp_matmul *mm, const matmul_kernels *f, int64_t j0, int64_t n,
                        int64_t p0, int64_t count) {
  size_t panel = (size_t)count * (size_t)f->columns * base_dtype_bytes(mm->dtype);
  for (int64_t i = 0; i < mm->m; i += MATMUL_ROWS) {
    int rows = (int)interp_min(MATMUL_ROWS, mm->m - i);
    pack_left(mm, f, i, rows, p0, count);
    for (int64_t j = 0; j < n; j += f->columns) {
      f->tile(count, mm->packed_left, (char *)mm->packed_right + (size_t)(j / f->columns) * panel, mm->tile);
      f->store(mm->tile, rows, (int)interp_min(f->columns, n - j), p0 == 0, mm->out, mm->out_m + i, mm->out_n + j0 + j);
    }
    TRY(interp_tick(ctx, (uint64_t)(rows * (count + 8) * n) / 8));
  }
  return 0;
}

/* out[out_m[i] + out_n[j]] = sum of left * right over k. */
int interp_matmul_run(interp_ctx *ctx, const interp_matmul *mm) {
  const matmul_kernels *f = kernels_of(mm->dtype);
  assert(mm->m >= 0 && mm->n >= 0 && mm->k >= 0);
  if (mm->m == 0 || mm->n == 0) return 0;
  for (int64_t j = 0; j < mm->n; j += COLUMN_BLOCK) {
    int64_t n = interp_min(COLUMN_BLOCK, mm->n - j), p = 0;
    do { /* once also for k == 0: an empty sum is stored as zeros */
      int64_t count = interp_min(INTERP_MATMUL_BLOCK, mm->k - p);
      pack_right(mm, f, j, n, p, count);
      TRY(matmul_sweep(ctx, mm, f, j, n, p, count));
      p += count;
    } while (p < mm->k);
  }
  return 0;
}
