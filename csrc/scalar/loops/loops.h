/* Loops over lanes: every elementwise op as a plain function on dense arrays, found once per op. The evaluators run
 * them on whole arrays, scalar programs on blocks of lanes. Most are generated from the ON_ columns of ops.def, one
 * loop per op and type (loops_gen.h). An output may be one of the inputs, lane for lane; otherwise nothing overlaps.
 *
 * How a value passes through: a narrow float (bf16) is widened to f32 in blocks, computed there, and
 * rounded back; an integer narrower than a byte (s4) is computed as a byte and cut to its width;
 * everything else is read and written as it is. There are three builds of each table, for the plain
 * instruction set, AVX2 and AVX-512; their results have the same bits, so which one runs is invisible.
 * Tables are constant: any thread. */
#ifndef XLAC_SCALAR_LOOPS_LOOPS_H
#define XLAC_SCALAR_LOOPS_LOOPS_H

#include "../op.h"

typedef struct scalar_loop scalar_loop;
/* n lanes of `in` to `out`. l says what a loop of several types must know: in, out, bits, and the numbers
 * of reduce-precision. */
typedef void scalar_loop_fn(const scalar_loop *l, int64_t n, const void *const *in, void *out);
struct scalar_loop {
  scalar_loop_fn *fn;
  uint8_t n_in;
  uint8_t in[3], out;                   /* element types */
  uint8_t work;                         /* what fn sees in place of narrow floats: F32; else BASE_DTYPE_INVALID */
  uint8_t bits;                         /* BITS: of the first input's type */
  bool wraps;                           /* results are to be cut to `bits` */
  uint8_t exponent_bits, mantissa_bits; /* reduce-precision */
};

/* The loop of an op on operands of those types, of which there is room for three; false where it has none on them. */
bool scalar_loop_of(const scalar_op *op, uint32_t n_in, const uint8_t *in, uint8_t out, scalar_loop *l);
/* The same of an op of HLO, on operands of one size. */
bool scalar_loop_of_op(const ir_op *op, scalar_loop *l);
/* The loop of a binary op whose operands and result have type t. */
bool scalar_loop_binary(scalar_code code, base_dtype t, scalar_loop *l);
void scalar_loop_run(const scalar_loop *l, int64_t n, const void *const *in, void *out);

/* The loops of ops.def's expressions by scalar_code, NULL where a row has none for the type. A new row in
 * ops.def with an ON_ column is in all of them at the next build. */
typedef scalar_loop_fn *const scalar_loop_table[SCALAR_CODES];
extern scalar_loop_table scalar_loops_f32, scalar_loops_f64, scalar_loops_f32_avx2, scalar_loops_f64_avx2;
extern scalar_loop_table scalar_loops_f32_avx512, scalar_loops_f64_avx512;
extern scalar_loop_table scalar_loops_s8, scalar_loops_s16, scalar_loops_s32, scalar_loops_s64;
extern scalar_loop_table scalar_loops_u8, scalar_loops_u16, scalar_loops_u32, scalar_loops_u64;
extern scalar_loop_table scalar_loops_s8_avx2, scalar_loops_s16_avx2, scalar_loops_s32_avx2, scalar_loops_s64_avx2;
extern scalar_loop_table scalar_loops_u8_avx2, scalar_loops_u16_avx2, scalar_loops_u32_avx2, scalar_loops_u64_avx2;
extern scalar_loop_table scalar_loops_pred_avx2, scalar_loops_pred, scalar_loops_c64, scalar_loops_c128;

/* sin, cos and tan of f32 (loops_turn.h) */
/* For CPUs with AVX2. */
void scalar_products_c64(const scalar_loop *l, int64_t n, const void *const *in, void *out);
extern scalar_loop_fn *const scalar_loops_turn[3], *const scalar_loops_turn_avx2[3], *const scalar_loops_turn_avx512[3];

/* loops_compare.c: NULL for what the verifier refuses. `total` is TOTALORDER. */
scalar_loop_fn *scalar_compare_loop(base_dtype t, scalar_direction direction, bool total);
/* loops_other.c */
scalar_loop_fn *scalar_select_loop(size_t bytes);
scalar_loop_fn *scalar_part_loop(scalar_code code,
                                 base_dtype t); /* ABS, REAL, IMAG, COMPLEX, IS_FINITE, REDUCE_PRECISION */
scalar_loop_fn scalar_stochastic_loop;
scalar_loop_fn scalar_convert_loop;

#endif
