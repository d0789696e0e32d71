/* Every tile of the matrix product that this CPU can run, beside a plain sum. Built and run by test_tiles.py. */
#include "../../csrc/cpu/gemm/dot_kernels.c"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 37 };

static char left[GEMM_ROWS * GEMM_ROW_BYTES], right[1 << 16], sums[GEMM_ROWS * GEMM_ROW_BYTES];
static const base_dtype types[TILE_KINDS] = {XLAC_F32, XLAC_F64, XLAC_S32, XLAC_S64, XLAC_S32};

static double number(int kind, const char *p) {
  float f = 0;
  double d = 0;
  memcpy(&f, p, sizeof f);
  memcpy(&d, p, sizeof d);
  return kind == 0 ? f : d;
}

static uint64_t whole(int kind, const char *p) {
  uint32_t narrow = 0;
  uint64_t wide = 0;
  memcpy(&narrow, p, sizeof narrow);
  memcpy(&wide, p, sizeof wide);
  return kind == 3 ? wide : narrow;
}

static void fill(int kind, char *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t v = (uint64_t)rand() << 40 ^ (uint64_t)rand() << 20 ^ (uint64_t)rand();
    float f[2] = {(float)rand() / (float)RAND_MAX - 0.5f, (float)rand() / (float)RAND_MAX};
    double d = (double)rand() / RAND_MAX - 0.5;
    const void *from = kind == 0 ? (const void *)f : kind == 1 ? (const void *)&d : (const void *)&v;
    memcpy(to + i, from, sizeof v);
  }
}

/* How far off the element is: 0 for integers that are right. */
static double off(int kind, int size, int columns, int row, int column, const char *before) {
  const char *got = sums + row * GEMM_ROW_BYTES + column * size;
  double sum = kind < 2 ? number(kind, before) : 0;
  uint64_t exact = whole(kind, before);
  for (int p = 0; p < STEPS; p++) {
    const char *x = left + row * GEMM_ROW_BYTES + p * size, *y = right + (p * columns + column) * size;
    int16_t a[2], b[2];
    memcpy(a, x, sizeof a);
    memcpy(b, y, sizeof b);
    if (kind < 2) sum += number(kind, x) * number(kind, y);
    exact += kind == 4 ? (uint64_t)(a[0] * (int64_t)b[0] + a[1] * (int64_t)b[1]) : whole(kind, x) * whole(kind, y);
  }
  if (kind < 2) return fabs(number(kind, got) - sum);
  return whole(kind, got) != (kind == 3 ? exact : (uint32_t)exact);
}

static int check(int level, int kind) {
  cpu_gemm_kernel k = tile_table[level][kind];
  int size = (int)base_dtype_bytes(types[kind]), wrong = 0;
  for (int first = 0; first < 2; first++) {
    char before[sizeof sums] = {0};
    fill(kind, left, sizeof left);
    fill(kind, right, sizeof right);
    fill(kind, sums, sizeof sums);
    if (!first) memcpy(before, sums, sizeof before);
    k.tile(STEPS, left, right, sums, first);
    for (int row = 0; row < k.rows; row++)
      for (int column = 0; column < k.columns; column++)
        wrong += !(off(kind, size, k.columns, row, column, before + row * GEMM_ROW_BYTES + column * size) < 1e-5);
  }
  if (GEMM_ROWS % k.rows || wrong) printf("level %d, kind %d: %d wrong\n", level, kind, wrong);
  return wrong || GEMM_ROWS % k.rows;
}

int main(void) {
  int wrong = 0, levels = tile_level() + 1;
  for (int level = 0; level < levels; level++)
    for (int kind = 0; kind < TILE_KINDS; kind++) wrong += check(level, kind);
  printf("%d levels\n", levels);
  return wrong != 0;
}
