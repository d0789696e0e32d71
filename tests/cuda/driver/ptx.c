/* Inline PTX: instructions that printed kernels use, by their text. compile.c makes a call of each asm statement, with
 * the addresses of its operands in their order; block.c brings a warp's lanes together. Here is what they compute. */
#include "sim.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MMA_ROWS = 16, MMA_COLUMNS = 8, MMA_DEPTH = 32, MMA_OPERANDS = 14, LANES = 32 };

/* mma.sync.aligned.m16n8kK.row.col.RESULT.LEFT.RIGHT.SUM: `per` elements lie in a register of 32 bits, so K is 8 times
 * that. */
static const struct shape {
  const char *text;
  enum { MMA_F16, MMA_BF16, MMA_TF32, MMA_S8 } kind;
  uint32_t per;
} shapes[] = {
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 ", MMA_F16, 2},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ", MMA_BF16, 2},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ", MMA_TF32, 1},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 ", MMA_S8, 4},
};

/* Where a lane's elements lie: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", "... mma.m16n8k8"
 * (.tf32) and "... mma.m16n8k32" (.s8), which are one table when counted in registers. groupID is lane / 4,
 * threadID_in_group lane % 4. Element e of register i is, of
 *
 *   A  (4 registers)  row groupID, 8 more where i is odd;  column per * (threadID_in_group + 4 where i >= 2) + e
 *   B  (2 registers)  row per * (threadID_in_group + 4 where i is 1) + e;  column groupID
 *   C  (4 elements)   row groupID, 8 more where i >= 2;    column 2 * threadID_in_group + i % 2 */
static uint32_t a_row(uint32_t lane, uint32_t i) {
  return lane / 4 + 8 * (i % 2);
}
static uint32_t a_column(uint32_t lane, uint32_t i, uint32_t per, uint32_t e) {
  return per * (lane % 4 + 4 * (i / 2)) + e;
}
static uint32_t b_row(uint32_t lane, uint32_t i, uint32_t per, uint32_t e) {
  return per * (lane % 4 + 4 * i) + e;
}
static uint32_t b_column(uint32_t lane) {
  return lane / 4;
}
static uint32_t c_row(uint32_t lane, uint32_t i) {
  return lane / 4 + 8 * (i / 2);
}
static uint32_t c_column(uint32_t lane, uint32_t i) {
  return 2 * (lane % 4) + i % 2;
}

static double half(uint32_t bits) {
  int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
  double v = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                            : ldexp(fraction + (exponent ? 1024 : 0), (exponent ? exponent : 1) - 25);
  return bits >> 15 & 1 ? -v : v;
}

static float single(uint32_t bits) {
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Of tf32 the hardware looks at 19 bits. */
static double element(const struct shape *s, uint32_t word, uint32_t e) {
  switch (s->kind) {
    case MMA_F16:
      return half(word >> (16 * e) & 0xffff);
    case MMA_BF16:
      return single((word >> (16 * e) & 0xffff) << 16);
    case MMA_TF32:
      return single(word & 0xffffe000u);
    default:
      return (int8_t)(word >> (8 * e) & 0xff);
  }
}

static uint32_t word(const sim_instruction *x, uint32_t operand) {
  uint32_t v;
  memcpy(&v, x->operands[operand], sizeof v);
  return v;
}

static const struct shape *shape_of(const char *text) {
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strncmp(text, shapes[i].text, strlen(shapes[i].text)) == 0) return &shapes[i];
  return NULL;
}

/* "{%0, %1, %2, %3}, {%4, ..." as numbers of operands: results, left, right, sums. */
static bool read_operands(const char *text, uint32_t n, uint32_t *out) {
  uint32_t count = 0;
  for (const char *p = strchr(text, ' '); p != NULL && *p != 0; p++)
    if (*p == '%') {
      uint32_t number = (uint32_t)strtoul(p + 1, NULL, 10);
      if (count == MMA_OPERANDS || number >= n) return false;
      out[count++] = number;
    }
  return count == MMA_OPERANDS;
}

/* Sums are exact and rounded once: hardware has an order and a width of its own, which nobody may rely on. */
static void store(const struct shape *s, const sim_instruction *x, const uint32_t *at, uint32_t lane, double *sums) {
  for (uint32_t i = 0; i < 4; i++) {
    double sum = sums[c_row(lane, i) * MMA_COLUMNS + c_column(lane, i)];
    uint32_t old = word(x, at[10 + i]), bits;
    float rounded = (float)(sum + single(old));
    memcpy(&bits, &rounded, sizeof bits);
    if (s->kind == MMA_S8) bits = (uint32_t)(int64_t)sum + old;
    memcpy(x->operands[at[i]], &bits, sizeof bits);
  }
}

/* The lanes' instructions, all of the same text. */
int ptx_mma(const sim_instruction *const *lanes) {
  const struct shape *s = shape_of(lanes[0]->text);
  static _Thread_local double a[MMA_ROWS * MMA_DEPTH], b[MMA_DEPTH * MMA_COLUMNS], c[MMA_ROWS * MMA_COLUMNS];
  uint32_t at[MMA_OPERANDS], depth = s ? 8 * s->per : 0;
  if (s == NULL || !read_operands(lanes[0]->text, lanes[0]->n, at)) return -1;
  for (uint32_t lane = 0; lane < LANES; lane++)
    for (uint32_t e = 0; e < s->per; e++) {
      for (uint32_t i = 0; i < 4; i++)
        a[a_row(lane, i) * depth + a_column(lane, i, s->per, e)] = element(s, word(lanes[lane], at[4 + i]), e);
      for (uint32_t i = 0; i < 2; i++)
        b[b_row(lane, i, s->per, e) * MMA_COLUMNS + b_column(lane)] = element(s, word(lanes[lane], at[8 + i]), e);
    }
  for (uint32_t i = 0; i < MMA_ROWS; i++)
    for (uint32_t j = 0; j < MMA_COLUMNS; j++) {
      c[i * MMA_COLUMNS + j] = 0;
      for (uint32_t k = 0; k < depth; k++) c[i * MMA_COLUMNS + j] += a[i * depth + k] * b[k * MMA_COLUMNS + j];
    }
  for (uint32_t lane = 0; lane < LANES; lane++) store(s, lanes[lane], at, lane, c);
  return 0;
}

/* How many matrices the instruction loads, and whether they are turned; 0: another instruction. */
static uint32_t matrices_of(const char *text, bool *turned) {
  *turned = strcmp(text, "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];") == 0;
  return *turned || strcmp(text, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];") == 0 ? 4 : 0;
}

/* PTX ISA, "ldmatrix": of matrix i, rows of 8 elements of 16 bits lie where lanes 8 i to 8 i + 7 say. A lane gets
 * elements 2 * threadID_in_group and the next of row groupID; with .trans of that column. */
int ptx_ldmatrix(const sim_instruction *const *lanes) {
  bool turned;
  uint32_t n = matrices_of(lanes[0]->text, &turned);
  uint16_t rows[LANES][8];
  if (n == 0) return -1;
  for (uint32_t i = 0; i < 8 * n; i++) {
    const void *at;
    memcpy(&at, lanes[i]->operands[n], sizeof at);
    memcpy(rows[i], at, sizeof rows[i]);
  }
  for (uint32_t lane = 0; lane < LANES; lane++)
    for (uint32_t i = 0; i < n; i++) {
      uint16_t pair[2];
      for (uint32_t e = 0; e < 2; e++) {
        uint32_t element = 2 * (lane % 4) + e, group = lane / 4;
        pair[e] = turned ? rows[8 * i + element][group] : rows[8 * i + group][element];
      }
      memcpy(lanes[lane]->operands[i], pair, sizeof pair);
    }
  return 0;
}

/* The address that the lane reads a row of a matrix at; 0: none. */
address ptx_row(const sim_instruction *x, uint32_t lane) {
  address at = 0;
  bool turned;
  uint32_t n = matrices_of(x->text, &turned);
  if (lane < 8 * n) memcpy(&at, x->operands[n], sizeof at);
  return at;
}

/* To the nearest, ties to even: of bf16 the upper half of an f32, of f16 what has 11 bits. */
static uint32_t narrow(float v, bool bf16) {
  uint32_t bits, sign;
  memcpy(&bits, &v, sizeof bits);
  sign = bits >> 31;
  if (bf16) return v != v ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  double size = fabs((double)v);
  if (v != v) return 0x7fff;
  int exponent = size > 0 ? ilogb(size) : -14;
  exponent = exponent < -14 ? -14 : exponent;
  double units = exponent > 15 ? 65536 : nearbyint(ldexp(size, 10 - exponent));
  uint32_t whole = exponent > 15 ? 0x7c00 : (uint32_t)(exponent + 14) * 1024 + (uint32_t)units;
  return sign << 15 | (whole > 0x7c00 ? 0x7c00 : whole);
}

static bool is_extreme(const char *text) {
  return strcmp(text, "max.NaN.f32 %0, %1, %2;") == 0 || strcmp(text, "min.NaN.f32 %0, %1, %2;") == 0;
}

/* A NaN is the one that a GPU makes; +0 is more than -0. */
static uint32_t extreme(uint32_t a, uint32_t b, bool most) {
  float x, y;
  memcpy(&x, &a, 4);
  memcpy(&y, &b, 4);
  if (x != x || y != y) return 0x7fffffff;
  if (x == y) return most ? a & b : a | b;
  return (x > y) == most ? a : b;
}

/* What a lane does by itself; false: it is not such an instruction. cvt.rna rounds to the nearest, ties away; of a pair
 * the first operand is the upper half. */
bool ptx_alone(const sim_instruction *x) {
  bool bf16 = strcmp(x->text, "cvt.rn.bf16x2.f32 %0, %1, %2;") == 0;
  uint32_t bits = x->n > 1 ? word(x, 1) : 0;
  if (strcmp(x->text, "cvt.rna.tf32.f32 %0, %1;") == 0) {
    if ((bits & 0x7f800000u) != 0x7f800000u) bits = (bits + 0x1000) & 0xffffe000u;
  } else if (strcmp(x->text, "ex2.approx.ftz.f32 %0, %1;") == 0) {
    float power = exp2f(single(bits));
    if (power < 0x1p-126f) power = 0;
    memcpy(&bits, &power, sizeof bits);
  } else if (is_extreme(x->text)) {
    bits = extreme(bits, word(x, 2), x->text[1] == 'a');
  } else if (strcmp(x->text, "div.full.f32 %0, %1, %2;") == 0) {
    float quotient = single(bits) / single(word(x, 2));
    memcpy(&bits, &quotient, sizeof bits);
  } else if (strcmp(x->text, "{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f32.f16 %0, low;}") == 0) {
    float wide = (float)half(bits & 0xffff);
    memcpy(&bits, &wide, sizeof bits);
  } else if (bf16 || strcmp(x->text, "cvt.rn.f16x2.f32 %0, %1, %2;") == 0) {
    bits = narrow(single(bits), bf16) << 16 | narrow(single(word(x, 2)), bf16);
  } else {
    return false;
  }
  memcpy(x->operands[0], &bits, sizeof bits);
  return true;
}
