/* Types to types, on lanes. */
#ifndef XLAC_CPU_NATIVE_LOWER_CONVERT_H
#define XLAC_CPU_NATIVE_LOWER_CONVERT_H

#include "lower_inside.h"

/* One op: its operands' values and types. */
typedef struct nat_operands {
  nat_body *b;
  scalar_op op;
  nat_type type, result;
  uint32_t in[3];
  uint32_t n_in;
} nat_operands;

static inline uint32_t nat_give_up(const nat_operands *o) {
  o->b->failed = true;
  return 0;
}
static inline uint32_t nat_ones(nat_body *b, uint32_t width) {
  return nat_constant(b, width, UINT64_MAX);
}
static inline uint32_t nat_sign_bit(nat_body *b, uint32_t width) {
  return nat_constant(b, width, (uint64_t)1 << (8 * width - 1));
}

/* An f32 as the nearest bf16 or f16, if t is one. */
uint32_t nat_round(nat_body *b, uint32_t x, nat_type t);
/* Codes of NAT_CODE: of an f32, and as such. */
uint32_t nat_encode(nat_body *b, uint32_t x, nat_type t);
uint32_t nat_decode(nat_body *b, uint32_t code, nat_type t);
/* Without the bits of a byte that its type does not have. */
uint32_t nat_clean_code(nat_body *b, uint32_t code, nat_type t);
/* What needs codes alone, no numbers; NAT_NONE: it is none of that. */
uint32_t nat_code_op(const nat_operands *o);
/* The low bits of an integer of few, with its sign; any other as it is. */
uint32_t nat_few_bits(nat_body *b, uint32_t x, nat_type t);
/* What x was before it was cut to t's few bits. */
uint32_t nat_uncut(const nat_body *b, uint32_t x, nat_type t);
/* Whether what is done with bytes, and cut, is right for integers of fewer bits. */
bool nat_few_bits_fit(const nat_operands *o);

uint32_t nat_convert(const nat_operands *o);
/* To an f32, to odd where it cannot hold the number: what narrows it rounds as if from that. */
uint32_t nat_convert_odd(const nat_operands *o);
uint32_t nat_reduce_precision(const nat_operands *o);

/* --- lower_op.c --- */
uint32_t nat_any_op(const nat_operands *o);

/* --- lower_complex.c --- */
typedef struct nat_parts {
  uint32_t re, im;
} nat_parts;
/* A complex number's parts, f32, and the number of parts. */
nat_parts nat_split(nat_body *b, uint32_t x);
uint32_t nat_join(nat_body *b, nat_parts z);
/* Where an operand or the result is complex. */
uint32_t nat_complex_op(const nat_operands *o);

#endif
