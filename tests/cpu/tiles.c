/* Every tile of the matrix product that this CPU can run, beside a plain sum. Built and run by test_tiles.py. */
#include "../../csrc/cpu/gemm/dot_amx.c"
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

static float widened(const char *p) {
  uint16_t half;
  memcpy(&half, p, sizeof half);
  uint32_t bits = (uint32_t)half << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* What a kernel multiplies: two bf16, or four bytes, which are signed or not. */
typedef struct narrow_kind {
  bool bytes, left_signed, right_signed;
} narrow_kind;

static double byte_of(char v, bool is_signed) {
  return is_signed ? (double)(int8_t)v : (double)(uint8_t)v;
}

/* One step. */
static double step_of(narrow_kind kind, const char *x, const char *y) {
  double sum = 0;
  for (int i = 0; i < (kind.bytes ? 4 : 2); i++)
    sum += kind.bytes ? byte_of(x[i], kind.left_signed) * byte_of(y[i], kind.right_signed)
                      : (double)widened(x + 2 * i) * widened(y + 2 * i);
  return sum;
}

/* Tiles of bytes, and of bf16: for some numbers of steps, in turn the first block of k and a later one. */
static int check_narrow(cpu_gemm_kernel k, narrow_kind kind) {
  bool bytes = kind.bytes;
  int wrong = 0;
  for (int steps = 0; steps <= 40; steps++) {
    fill(2, left, sizeof left);
    fill(2, right, sizeof right);
    for (size_t i = 0; !bytes && i < sizeof left; i += 2) left[i + 1] = (char)((left[i + 1] & 0x80) | 0x3f);
    for (size_t i = 0; !bytes && i < sizeof right; i += 2) right[i + 1] = (char)((right[i + 1] & 0x80) | 0x3f);
    memset(sums, 0, sizeof sums);
    for (int first = 1; first >= 0; first--) k.tile(steps, left, right, sums, first);
    for (int row = 0; row < k.rows; row++)
      for (int column = 0; column < k.columns; column++) {
        const char *got = sums + row * GEMM_ROW_BYTES + column * 4;
        double want = 0;
        for (int p = 0; p < steps; p++)
          want += 2 * step_of(kind, left + row * GEMM_ROW_BYTES + p * 4, right + (p * k.columns + column) * 4);
        double is = bytes ? (double)(int32_t)whole(2, got) : number(0, got);
        wrong += !(fabs(is - want) <= (bytes ? 0 : 1e-3));
      }
  }
  if (wrong || GEMM_ROWS % k.rows) printf("narrow, bytes %d: %d wrong\n", bytes, wrong);
  return wrong || GEMM_ROWS % k.rows;
}

/* With AMX, then by vectors, where the CPU has them. */
static int check_all_narrow(void) {
  int wrong = 0;
  for (int i = 0; i < 2; i++) {
    if (i == 1) setenv("XLAC_MAX_ISA", "avx512_bf16", 1);
    for (int signs = 0; signs < 4; signs++) {
      bool shifted, left_signed = signs & 1, right_signed = signs & 2;
      cpu_gemm_kernel k = cpu_gemm_kernel_of_bytes(left_signed, right_signed, &shifted);
      if (k.tile) wrong += check_narrow(k, (narrow_kind){true, left_signed && !shifted, right_signed});
    }
    if (base_isa_narrow_products() != BASE_ISA_NO_NARROW)
      wrong += check_narrow(cpu_gemm_kernel_of(XLAC_F32, true), (narrow_kind){false, true, true});
  }
  return wrong;
}

int main(void) {
  int wrong = check_all_narrow(), levels = tile_level() + 1;
  for (int level = 0; level < levels; level++)
    for (int kind = 0; kind < TILE_KINDS; kind++) wrong += check(level, kind);
  printf("%d levels\n", levels);
  return wrong != 0;
}
