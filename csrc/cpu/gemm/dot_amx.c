/* The inner loop of products by AMX, Intel's tile registers (Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 1, chapter 18): 32 rows by 32 columns of sums in four tiles. A tile holds 16 rows of 64 bytes. Packed
 * A is what its left operand wants, rows with pairs of bf16 or fours of bytes side by side along k; a row of packed B,
 * which has one such step of all columns, is a row of its right operand.
 *
 *          b0    b1      16 steps of k by 16 columns each
 *    a0    s0    s1
 *    a1    s2    s3      16 rows by 16 steps of k each
 *
 * Sums of bf16 are in f32: of 16 steps, those of even and of odd elements apart, and then added to what there is.
 * Subnormal numbers are taken for 0. */
#include "dot_gemm.h"

#include "../../base/isa/isa.h"

#if BASE_ISA_KNOWS_AMX
#include <immintrin.h>

enum {
  AMX_STEPS = 16, /* of k in a tile, and rows of sums in one */
  AMX_HALF = 64,  /* bytes of a row of a tile */
  AMX_LINE = 128  /* of packed B: one step of all columns */
};

/* The shapes of the eight tiles, as LDTILECFG reads them. */
typedef struct amx_shapes {
  uint8_t palette, start, reserved[14];
  uint16_t bytes[16]; /* of a row */
  uint8_t rows[16];
} amx_shapes;

#define AMX_TARGET(isa) __attribute__((target("avx512f,amx-tile," isa)))

/* Tiles 0 to 3 are sums, 4 and 5 A's, 6 and 7 B's, which have `steps` steps of k. */
static amx_shapes amx_shapes_of(int64_t steps) {
  assert(steps > 0 && steps <= AMX_STEPS);
  amx_shapes s = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    s.bytes[i] = (uint16_t)(i == 4 || i == 5 ? 4 * steps : AMX_HALF);
    s.rows[i] = (uint8_t)(i < 6 ? AMX_STEPS : steps);
  }
  return s;
}

/* Sums of n tiles of `steps` steps, added to c unless it is the first of all. Shapes are set for each call, and given
 * up: a thread that has none costs the system nothing. */
#define AMX_SUMS(name, isa, MADD)                                                                          \
  AMX_TARGET(isa)                                                                                          \
  static void name##_sums(int64_t n, int64_t steps, const char *a, const char *b, char *c, bool first) {   \
    amx_shapes shapes = amx_shapes_of(steps);                                                              \
    char *low = c + AMX_STEPS * GEMM_ROW_BYTES;                                                            \
    _tile_loadconfig(&shapes);                                                                             \
    if (first) {                                                                                           \
      _tile_zero(0);                                                                                       \
      _tile_zero(1);                                                                                       \
      _tile_zero(2);                                                                                       \
      _tile_zero(3);                                                                                       \
    } else {                                                                                               \
      _tile_loadd(0, c, GEMM_ROW_BYTES);                                                                   \
      _tile_loadd(1, c + AMX_HALF, GEMM_ROW_BYTES);                                                        \
      _tile_loadd(2, low, GEMM_ROW_BYTES);                                                                 \
      _tile_loadd(3, low + AMX_HALF, GEMM_ROW_BYTES);                                                      \
    }                                                                                                      \
    for (int64_t i = 0; i < n; i++, a += 4 * steps, b += AMX_LINE * steps) {                               \
      _tile_loadd(4, a, GEMM_ROW_BYTES);                                                                   \
      _tile_loadd(6, b, AMX_LINE);                                                                         \
      _tile_loadd(7, b + AMX_HALF, AMX_LINE);                                                              \
      MADD(0, 4, 6);                                                                                       \
      _tile_loadd(5, a + AMX_STEPS * GEMM_ROW_BYTES, GEMM_ROW_BYTES);                                      \
      MADD(1, 4, 7);                                                                                       \
      MADD(2, 5, 6);                                                                                       \
      MADD(3, 5, 7);                                                                                       \
    }                                                                                                      \
    _tile_stored(0, c, GEMM_ROW_BYTES);                                                                    \
    _tile_stored(1, c + AMX_HALF, GEMM_ROW_BYTES);                                                         \
    _tile_stored(2, low, GEMM_ROW_BYTES);                                                                  \
    _tile_stored(3, low + AMX_HALF, GEMM_ROW_BYTES);                                                       \
    _tile_release();                                                                                       \
  }                                                                                                        \
  void name(int64_t steps, const char *a, const char *b, char *c, bool first) {                            \
    int64_t whole = steps / AMX_STEPS, done = whole * AMX_STEPS;                                           \
    if (whole || steps == 0) name##_sums(whole, AMX_STEPS, a, b, c, first);                                \
    if (steps > done) name##_sums(1, steps - done, a + 4 * done, b + AMX_LINE * done, c, first && !whole); \
  }

AMX_SUMS(cpu_gemm_tile_amx_bf16, "amx-bf16", _tile_dpbf16ps)
/* By whether bytes are signed or unsigned, A's and B's. */
AMX_SUMS(cpu_gemm_tile_amx_ss, "amx-int8", _tile_dpbssd)
AMX_SUMS(cpu_gemm_tile_amx_su, "amx-int8", _tile_dpbsud)
AMX_SUMS(cpu_gemm_tile_amx_us, "amx-int8", _tile_dpbusd)
AMX_SUMS(cpu_gemm_tile_amx_uu, "amx-int8", _tile_dpbuud)
#endif
