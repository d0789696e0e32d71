/* Loops over lanes: every elementwise op as a plain function on dense arrays, found once per op. The evaluators run
 * them on whole arrays, interp_apply on blocks of lanes. Most are generated from the ON_ columns of ops.def, one loop
 * per op and type (loops_gen.h). An output may be one of the inputs, lane for lane; otherwise nothing overlaps.
 *
 * How a value passes through: a narrow float (bf16) is widened to f32 in blocks, computed there, and
 * rounded back; an integer narrower than a byte (s4) is computed as a byte and cut to its width;
 * everything else is read and written as it is. There are three builds of each table, for the plain
 * instruction set, AVX2 and AVX-512; their results have the same bits, so which one runs is invisible.
 * Tables are constant: any thread. */
#ifndef XLAC_SCALAR_LOOPS_LOOPS_H
#define XLAC_SCALAR_LOOPS_LOOPS_H

#include "../op.h"

typedef struct interp_loop interp_loop;
/* n lanes of `in` to `out`. l says what a loop of several types must know: in, out, bits, and the numbers
 * of reduce-precision. */
typedef void interp_loop_fn(const interp_loop *l, int64_t n, const void *const *in, void *out);
struct interp_loop {
  interp_loop_fn *fn;
  uint8_t n_in;
  uint8_t in[3], out;                   /* element types */
  uint8_t work;                         /* what fn sees in place of narrow floats: F32; else BASE_DTYPE_INVALID */
  uint8_t bits;                         /* BITS: of the first input's type */
  bool wraps;                           /* results are to be cut to `bits` */
  uint8_t exponent_bits, mantissa_bits; /* reduce-precision */
};

/* The loop of an op on operands of those types, of which there is room for three; false where it has none on them. */
bool scalar_loop_of(const scalar_op *op, uint32_t n_in, const uint8_t *in, uint8_t out, interp_loop *l);
/* The same of an op of HLO, on operands of one size. */
bool interp_loop_of(const ir_op *op, interp_loop *l);
/* The loop of a binary op whose operands and result have type t. */
bool interp_loop_binary(scalar_code code, base_dtype t, interp_loop *l);
void interp_loop_run(const interp_loop *l, int64_t n, const void *const *in, void *out);

/* The loops of ops.def's expressions by scalar_code, NULL where a row has none for the type. A new row in
 * ops.def with an ON_ column is in all of them at the next build. */
typedef interp_loop_fn *const interp_loop_table[SCALAR_CODES];
extern interp_loop_table interp_loops_f32, interp_loops_f64, interp_loops_f32_avx2, interp_loops_f64_avx2;
extern interp_loop_table interp_loops_f32_avx512, interp_loops_f64_avx512;
extern interp_loop_table interp_loops_s8, interp_loops_s16, interp_loops_s32, interp_loops_s64;
extern interp_loop_table interp_loops_u8, interp_loops_u16, interp_loops_u32, interp_loops_u64;
extern interp_loop_table interp_loops_s8_avx2, interp_loops_s16_avx2, interp_loops_s32_avx2, interp_loops_s64_avx2;
extern interp_loop_table interp_loops_u8_avx2, interp_loops_u16_avx2, interp_loops_u32_avx2, interp_loops_u64_avx2;
extern interp_loop_table interp_loops_s8_avx512, interp_loops_s16_avx512, interp_loops_s32_avx512;
extern interp_loop_table interp_loops_s64_avx512, interp_loops_u8_avx512, interp_loops_u16_avx512;
extern interp_loop_table interp_loops_u32_avx512, interp_loops_u64_avx512;
extern interp_loop_table interp_loops_pred_avx2, interp_loops_pred_avx512;
extern interp_loop_table interp_loops_pred, interp_loops_c64, interp_loops_c128;

/* sin, cos and tan of f32 (loops_turn.h) */
extern interp_loop_fn *const interp_loops_turn[3], *const interp_loops_turn_avx2[3], *const interp_loops_turn_avx512[3];

/* loops_compare.c: NULL for what the verifier refuses. `total` is TOTALORDER. */
interp_loop_fn *interp_compare_loop(base_dtype t, scalar_direction direction, bool total);
/* loops_other.c */
interp_loop_fn *interp_select_loop(size_t bytes);
interp_loop_fn *interp_part_loop(scalar_code code,
                                 base_dtype t); /* ABS, REAL, IMAG, COMPLEX, IS_FINITE, REDUCE_PRECISION */
interp_loop_fn interp_stochastic_loop;
interp_loop_fn interp_convert_loop;

#endif
