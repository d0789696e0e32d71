/* Products so small that packing them would cost more than they do: two nested loops over offsets that are listed
 * before. They are summed in the interpreter's order and to its bits, and run on the caller's thread. */
#include "dot_gemm.h"

enum { SMALL_EXTENT = 512, SMALL_WORK = 4096, SMALL_BATCH = 256 };

/* Extents are bounded, so that the lists of offsets are on the stack; work is, so that one thread is enough. */
bool cpu_gemm_is_small(const cpu_gemm *g) {
  int64_t m = g->m.count, n = g->n.count, k = g->k.count;
  if (m > SMALL_EXTENT || n > SMALL_EXTENT || k > SMALL_EXTENT || g->batch.count > SMALL_BATCH) return false;
  return m * n * (k ? k : 1) <= SMALL_WORK && m * n * (k ? k : 1) * g->batch.count <= 2 * SMALL_WORK;
}

/* One batch: offsets of A along m and k, of B along k and n. */
typedef struct small_run {
  const char *a, *b;
  char *c; /* m x n, dense */
  int64_t m, n, k;
  int64_t left_m[SMALL_EXTENT], left_k[SMALL_EXTENT], right_k[SMALL_EXTENT], right_n[SMALL_EXTENT];
} small_run;

/* Whether the places are 0, step, 2 * step, ...: then they are dense, and need no list. */
static bool small_even(const int64_t *places, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; i++)
    if (places[i] != i * step) return false;
  return true;
}

/* For each term, a row of B times a number of A is added to each row of sums: results of a row side by side, as
 * vectors. B's rows are gathered first where their elements are not neighbours. */
#define SMALL_PRODUCT(name, T)                                                      \
  static void name(const small_run *r) {                                            \
    const T *a = (const T *)(const void *)r->a, *b = (const T *)(const void *)r->b; \
    T *c = (T *)(void *)r->c, row[SMALL_EXTENT];                                    \
    bool dense = small_even(r->right_n, r->n, 1);                                   \
    memset(c, 0, (size_t)(r->m * r->n) * sizeof *c);                                \
    for (int64_t p = 0; p < r->k; p++) {                                            \
      const T *y = b + r->right_k[p];                                               \
      for (int64_t j = 0; !dense && j < r->n; j++) row[j] = y[r->right_n[j]];       \
      if (!dense) y = row;                                                          \
      for (int64_t i = 0; i < r->m; i++) {                                          \
        T x = a[r->left_m[i] + r->left_k[p]], *restrict s = c + i * r->n;           \
        for (int64_t j = 0; j < r->n; j++) s[j] += x * y[j];                        \
      }                                                                             \
    }                                                                               \
  }
/* The same of complex numbers, by the four products of their parts. */
#define SMALL_COMPLEX(name, T)                                                          \
  static void name(const small_run *r) {                                                \
    const T *a = (const T *)(const void *)r->a, *b = (const T *)(const void *)r->b;     \
    T *c = (T *)(void *)r->c;                                                           \
    memset(c, 0, (size_t)(2 * r->m * r->n) * sizeof *c);                                \
    for (int64_t i = 0; i < r->m; i++)                                                  \
      for (int64_t p = 0; p < r->k; p++) {                                              \
        const T *x = a + 2 * (r->left_m[i] + r->left_k[p]), *y = b + 2 * r->right_k[p]; \
        T *s = c + 2 * i * r->n;                                                        \
        for (int64_t j = 0; j < r->n; j++, s += 2) {                                    \
          const T *v = y + 2 * r->right_n[j];                                           \
          s[0] += x[0] * v[0] - x[1] * v[1];                                            \
          s[1] += x[0] * v[1] + x[1] * v[0];                                            \
        }                                                                               \
      }                                                                                 \
  }
SMALL_PRODUCT(small_f32, float)
SMALL_PRODUCT(small_f64, double)
SMALL_PRODUCT(small_u32, uint32_t)
SMALL_PRODUCT(small_u64, uint64_t)
SMALL_COMPLEX(small_c64, float)
SMALL_COMPLEX(small_c128, double)

/* Integers wrap, so signed ones are summed as unsigned. */
static void small_product(const small_run *r, base_dtype t) {
  assert(r->m <= SMALL_EXTENT && r->n <= SMALL_EXTENT && r->k <= SMALL_EXTENT);
  switch (t) {
    case XLAC_F32:
      small_f32(r);
      return;
    case XLAC_F64:
      small_f64(r);
      return;
    case XLAC_S32:
      small_u32(r);
      return;
    case XLAC_S64:
      small_u64(r);
      return;
    case XLAC_C64:
      small_c64(r);
      return;
    default:
      assert(t == XLAC_C128);
      small_c128(r);
  }
}

/* Batch by batch: into C where it is dense and of the type of sums, else by way of sums on the stack. */
void cpu_gemm_run_small(const cpu_gemm *g, const void *a, const void *b, void *c) {
  base_dtype packed = (base_dtype)g->packed, t = (base_dtype)g->c_type;
  int64_t size = (int64_t)base_dtype_bytes(packed), bytes = (int64_t)base_dtype_bytes(t);
  int64_t to_m[SMALL_EXTENT], to_n[SMALL_EXTENT], at[3];
  char sums[SMALL_WORK * 16] __attribute__((aligned(64))), other[SMALL_EXTENT * 16];
  small_run r = {.m = g->m.count, .n = g->n.count, .k = g->k.count, .c = sums};
  cpu_gemm_offsets(&g->m, 'a', 0, r.m, r.left_m);
  cpu_gemm_offsets(&g->n, 'b', 0, r.n, r.right_n);
  cpu_gemm_offsets(&g->m, 'c', 0, r.m, to_m);
  cpu_gemm_offsets(&g->n, 'c', 0, r.n, to_n);
  if (r.k) {
    cpu_gemm_offsets(&g->k, 'a', 0, r.k, r.left_k);
    cpu_gemm_offsets(&g->k, 'b', 0, r.k, r.right_k);
  }
  bool dense = t == packed && small_even(to_m, r.m, r.n) && small_even(to_n, r.n, 1);
  for (int64_t i = 0; i < g->batch.count; i++) {
    for (int j = 0; j < 3; j++) cpu_gemm_offsets(&g->batch, "abc"[j], i, 1, &at[j]);
    r.a = (const char *)a + (g->a_at + at[0]) * size;
    r.b = (const char *)b + (g->b_at + at[1]) * size;
    if (dense) r.c = (char *)c + at[2] * bytes;
    small_product(&r, packed);
    for (int64_t row = 0; !dense && row < r.m; row++) {
      base_convert(t, other, packed, sums + row * r.n * size, (size_t)r.n);
      for (int64_t j = 0; j < r.n; j++)
        memcpy((char *)c + (at[2] + to_m[row] + to_n[j]) * bytes, other + j * bytes, (size_t)bytes);
    }
  }
}
