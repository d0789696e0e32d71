/* Elementwise functions of floats as lists of lane operations, made from their definitions (functions.py). */
#ifndef XLAC_CPU_NATIVE_FUNCTIONS_H
#define XLAC_CPU_NATIVE_FUNCTIONS_H

#include "../../scalar/loops/loops.h"
#include "body.h"

/* NEAR: sin, cos and tan of f32 numbers below 2^27. C8: of c64, given the operands' parts. C16: of c128, but where
 * WILD, a mask, is set; of all where there is no such function. INNER: of f64, which others are made of, under the
 * opcode of what they are nearly. */
typedef enum nat_function_type {
  NAT_F4,
  NAT_F8,
  NAT_NEAR,
  NAT_C8,
  NAT_C16,
  NAT_WILD,
  NAT_INNER,
  NAT_FUNCTION_TYPES
} nat_function_type;

/* The widest lanes that the function needs, or 0 where there is none. */
uint32_t nat_function_width(nat_function_type t, scalar_code opcode);
/* Its value for the arguments; there is such a function. */
uint32_t nat_function(nat_body *b, nat_function_type t, scalar_code opcode, const uint32_t *arguments);

/* The numbers of half a table, 8, and of what follows them (NAT_TABLE). */
const uint32_t *nat_table_half(uint64_t half);

/* lower_op.c: sin, cos or tan of an f32, sin or cos of an f64, by NEAR or INNER and a call. */
uint32_t nat_turned(nat_body *b, scalar_code opcode, uint32_t x);

/* sin, cos and tan (which: 0, 1, 2) of n numbers of any size, for what is not near: f32, from NAT_FAR_F64 on f64. */
enum { NAT_FAR_F64 = 3 };
void nat_far_run(const void *x, void *r, int64_t which, int64_t n);

/* An op's loop on n lanes of x and, where it has two operands, y; bits: of a lane. */
void nat_loop_run(const void *x, void *r, int64_t bits, int64_t n, const void *y, scalar_loop_fn *fn);

#endif
