/* Types to types, and rounding within one. The definitions are those of base/number (narrow_float.h), on lanes. */
#include "lower_convert.h"

#include "../../base/number/narrow_float.h"

/* --- rounding to narrow floats --- */

static uint32_t nat_is_nan(nat_body *b, uint32_t w, uint32_t x) {
  return nat_op(b, NAT_FCMP, w, x, x, NAT_NONE, 3);
}

/* x with its lowest `cut` bits rounded to even, before they are cut off. */
static uint32_t nat_round_up(nat_body *b, uint32_t w, uint32_t x, unsigned cut) {
  uint32_t odd = nat_op2(b, NAT_AND, w, nat_shift(b, NAT_SHR, w, x, cut), nat_constant(b, w, 1));
  return nat_op2(b, NAT_IADD, w, nat_op2(b, NAT_IADD, w, x, nat_constant(b, w, (UINT64_C(1) << (cut - 1)) - 1)), odd);
}

uint32_t nat_round(nat_body *b, uint32_t x, nat_type t) {
  if (t.kind == NAT_F16) return nat_op1(b, NAT_F2_F4, 4, nat_op1(b, NAT_F4_F2, 2, x));
  if (t.kind != NAT_BF16) return x;
  uint32_t quiet = nat_op2(b, NAT_OR, 4, x, nat_constant(b, 4, 0x400000));
  uint32_t r = nat_select(b, nat_is_nan(b, 4, x), quiet, nat_round_up(b, 4, x, 16));
  return nat_op2(b, NAT_AND, 4, r, nat_constant(b, 4, 0xFFFF0000));
}

/* --- codes --- */

static base_narrow nat_facts(nat_type t) {
  switch ((base_dtype)t.of) {
#define DTYPE(...)
#define NARROW(name, text, bits, bytes, exponent, ...) \
  case XLAC_##name:                                    \
    return BASE_NARROW(__VA_ARGS__);
#include "../../base/dtypes.def"
    default:
      return (base_narrow){.sign_bit = 7};
  }
}

static uint32_t nat_number(nat_body *b, uint32_t bits) {
  return nat_constant(b, 4, bits);
}
static uint32_t nat_and(nat_body *b, uint32_t x, uint32_t bits) {
  return nat_op2(b, NAT_AND, 4, x, nat_number(b, bits));
}
/* x where it is more than `most`, which is not below 0: what is `then`; else `otherwise`. */
static uint32_t nat_if_more(nat_body *b, uint32_t x, uint32_t most, uint32_t then, uint32_t otherwise) {
  return nat_select(b, nat_compare_ints(b, 4, true, SCALAR_GT, x, nat_number(b, most)), then, otherwise);
}

uint32_t nat_clean_code(nat_body *b, uint32_t code, nat_type t) {
  base_narrow k = nat_facts(t);
  return k.sign_bit == 7 ? code : nat_and(b, code, (2u << k.sign_bit) - 1);
}

/* base_e8m0_encode */
static uint32_t nat_encode_exponent(nat_body *b, uint32_t x) {
  uint32_t least = nat_number(b, 0x400000);
  uint32_t up = nat_op2(b, NAT_IADD, 4, x, least), down = nat_op2(b, NAT_ISUB, 4, x, nat_number(b, 1));
  up = nat_select(b, nat_compare_ints(b, 4, true, SCALAR_EQ, x, least), nat_number(b, 0x7FFFFF), up);
  uint32_t none = nat_compare_ints(b, 4, false, SCALAR_GE, down, nat_number(b, 0x7F7FFFFF));
  return nat_select(b, none, nat_number(b, 0xFF), nat_shift(b, NAT_SHR, 4, up, 23));
}
static uint32_t nat_decode_exponent(nat_body *b, uint32_t code) {
  uint32_t zero = nat_compare_ints(b, 4, true, SCALAR_EQ, code, nat_number(b, 0));
  uint32_t r = nat_select(b, zero, nat_number(b, 0x400000), nat_shift(b, NAT_SHL, 4, code, 23));
  return nat_if_more(b, code, 0xFE, nat_number(b, 0x7FC00000), r);
}

uint32_t nat_encode(nat_body *b, uint32_t x, nat_type t) {
  base_narrow k = nat_facts(t);
  if (t.of == XLAC_F8E8M0FNU) return nat_encode_exponent(b, x);
  unsigned shift = (unsigned)(23 - k.mantissa);
  uint32_t a = nat_and(b, x, 0x7FFFFFFF), normal = (uint32_t)(128 - k.bias) << 23;
  uint32_t magic = nat_number(b, (uint32_t)(151 - k.bias - k.mantissa) << 23);
  uint32_t small = nat_op2(b, NAT_ISUB, 4, nat_op2(b, NAT_FADD, 4, a, magic), magic);
  uint32_t r = nat_shift(b, NAT_SHR, 4, nat_round_up(b, 4, a, shift), shift);
  r = nat_op2(b, NAT_ISUB, 4, r, nat_number(b, (uint32_t)(127 - k.bias) << k.mantissa));
  r = nat_if_more(b, a, normal - 1, r, small);
  r = nat_if_more(b, r, k.largest, nat_number(b, k.overflow), r);
  r = nat_if_more(b, a, 0x7F800000, nat_number(b, k.nan), r);
  uint32_t sign = nat_and(b, nat_shift(b, NAT_SHR, 4, x, (unsigned)(31 - k.sign_bit)), 1u << k.sign_bit);
  if (k.has_negative_zero) return nat_op2(b, NAT_XOR, 4, r, sign);
  return nat_if_more(b, r, 0, nat_op2(b, NAT_OR, 4, r, sign), nat_number(b, 0));
}

/* f8e5m2: the upper byte of an f16 is the whole of it. */
static bool nat_is_upper_half(const base_narrow *k) {
  return k->sign_bit == 7 && k->mantissa == 2 && k->bias == 15 && k->has_inf;
}

uint32_t nat_decode(nat_body *b, uint32_t code, nat_type t) {
  base_narrow k = nat_facts(t);
  if (t.of == XLAC_F8E8M0FNU) return nat_decode_exponent(b, code);
  if (nat_is_upper_half(&k) && nat_has(b, NAT_F2_F4, 4))
    return nat_op1(b, NAT_F2_F4, 4, nat_resize(b, nat_shift(b, NAT_SHL, 4, code, 8), 2, false));
  uint32_t mag = nat_and(b, code, (1u << k.sign_bit) - 1), one = nat_number(b, (uint32_t)(128 - k.bias) << 23);
  uint32_t high = nat_shift(b, NAT_SHL, 4, mag, (unsigned)(23 - k.mantissa));
  uint32_t r = nat_op2(b, NAT_IADD, 4, high, nat_number(b, (uint32_t)(127 - k.bias) << 23));
  r = nat_if_more(b, mag, (1u << k.mantissa) - 1, r, nat_op2(b, NAT_FSUB, 4, nat_op2(b, NAT_OR, 4, one, high), one));
  if (k.has_inf)
    r = nat_if_more(b, mag, k.overflow - 1,
                    nat_op2(b, NAT_OR, 4, nat_and(b, high, 0x7FFFFF), nat_number(b, 0x7F800000)), r);
  if (k.nan == k.overflow) {
    uint32_t same = nat_compare_ints(b, 4, true, SCALAR_EQ, k.nan == 0x7F ? mag : code, nat_number(b, k.nan));
    r = nat_select(b, same, nat_number(b, 0x7FC00000), r);
  }
  uint32_t sign = nat_and(b, nat_shift(b, NAT_SHL, 4, code, (unsigned)(31 - k.sign_bit)), 0x80000000);
  return nat_op2(b, NAT_OR, 4, r, sign);
}

/* Whatever NaN it is, its sign is not part of the bits. */
uint32_t nat_code_op(const nat_operands *o) {
  nat_body *b = o->b;
  base_narrow k = nat_facts(o->type);
  uint32_t x = o->in[0], sign = 1u << k.sign_bit;
  bool plain = o->type.of != XLAC_F8E8M0FNU, zeros = k.has_negative_zero;
  switch (o->op.code) {
    case SCALAR_REAL:
      return x;
    case SCALAR_IMAG:
      return plain ? nat_number(b, 0) : NAT_NONE;
    case SCALAR_ABS:
      return zeros ? nat_and(b, x, sign - 1) : NAT_NONE;
    case SCALAR_NEGATE:
      return zeros ? nat_op2(b, NAT_XOR, 4, x, nat_number(b, sign)) : NAT_NONE;
    case SCALAR_IS_FINITE:
      if (!plain) return NAT_NONE;
      if (!zeros) return nat_compare_ints(b, 4, true, SCALAR_NE, x, nat_number(b, k.nan));
      return nat_compare_ints(b, 4, true, SCALAR_LE, nat_and(b, x, sign - 1), nat_number(b, k.largest));
    case SCALAR_CONVERT:
      if (!plain || o->result.kind != NAT_PRED) return NAT_NONE;
      return nat_compare_ints(b, 4, true, SCALAR_NE, zeros ? nat_and(b, x, sign - 1) : x, nat_number(b, 0));
    default:
      return NAT_NONE;
  }
}

/* --- integers of few bits --- */

uint32_t nat_few_bits(nat_body *b, uint32_t x, nat_type t) {
  if (!t.bits) return x;
  uint32_t sign = nat_constant(b, 1, UINT64_C(1) << (t.bits - 1));
  x = nat_op2(b, NAT_AND, 1, x, nat_constant(b, 1, (UINT64_C(1) << t.bits) - 1));
  return t.kind == NAT_UNSIGNED ? x : nat_op2(b, NAT_ISUB, 1, nat_op2(b, NAT_XOR, 1, x, sign), sign);
}

uint32_t nat_uncut(const nat_body *b, uint32_t x, nat_type t) {
  if (b->failed) return 0;
  const nat_value *v = &b->values[x];
  uint8_t minus = b->target->ops[NAT_ISUB][0], and = b->target->ops[NAT_AND][0], xor = b->target->ops[NAT_XOR][0];
  if (t.kind == NAT_SIGNED) {
    if (v->kind != NAT_OP || v->op != minus || b->values[v->in[0]].op != xor) return x;
    const nat_value *turned = &b->values[v->in[0]];
    if (turned->kind != NAT_OP || turned->in[1] != v->in[1]) return x;
    v = &b->values[turned->in[0]];
  }
  uint64_t all = (UINT64_C(1) << t.bits) - 1;
  bool cut = v->kind == NAT_OP && v->op == and && b->values[v->in[1]].kind == NAT_CONSTANT;
  return cut && b->values[v->in[1]].bits == all ? v->in[0] : x;
}

bool nat_few_bits_fit(const nat_operands *o) {
  static const uint8_t fit[] = {SCALAR_ADD,   SCALAR_SUBTRACT, SCALAR_MULTIPLY, SCALAR_AND,
                                SCALAR_OR,    SCALAR_XOR,      SCALAR_NOT,      SCALAR_NEGATE,
                                SCALAR_ABS,   SCALAR_SIGN,     SCALAR_MAXIMUM,  SCALAR_MINIMUM,
                                SCALAR_CLAMP, SCALAR_COMPARE,  SCALAR_CONVERT,  SCALAR_POWER};
  return memchr(fit, o->op.code, sizeof fit) != NULL;
}

/* --- floats to integers: towards zero; what is too large or too small becomes the largest or the smallest number, NaN
 * 0 --- */

static uint64_t nat_float_bits(uint32_t w, double v) {
  return w == 4 ? base_f32_bits((float)v) : base_f64_bits(v);
}

static uint32_t nat_unless_nan(nat_body *b, uint32_t w, uint32_t x, uint32_t r) {
  return nat_keep(b, nat_op(b, NAT_FCMP, w, x, x, NAT_NONE, 7), r);
}

/* Of 32 or 64 bits: the instruction gives the smallest number for all that is none. */
static uint32_t nat_float_to_signed(nat_body *b, uint32_t w, uint32_t x, uint32_t to) {
  nat_lane lane = to == 4 ? (w == 4 ? NAT_F4_S4 : NAT_F8_S4) : w == 4 ? NAT_F4_S8 : NAT_F8_S8;
  uint32_t r = nat_op1(b, lane, to, x), limit = nat_constant(b, w, nat_float_bits(w, to == 4 ? 0x1p31 : 0x1p63));
  uint32_t large = nat_op(b, NAT_FCMP, w, x, limit, NAT_NONE, 13);
  r = nat_select(b, large, nat_constant(b, to, to == 4 ? INT32_MAX : INT64_MAX), r);
  return nat_unless_nan(b, w, x, r);
}

/* The instruction gives the largest number for all that is none; of the larger of two, where one is NaN, the second. */
static uint32_t nat_float_to_unsigned(nat_body *b, uint32_t w, uint32_t x, uint32_t to) {
  return nat_op1(b, w == 4 ? NAT_F4_U : NAT_F8_U, to, nat_op2(b, NAT_FMAX, w, x, nat_constant(b, w, 0)));
}

/* Of up to 16 bits, by way of s32. */
static uint32_t nat_float_to_short(nat_body *b, uint32_t w, uint32_t x, nat_type t) {
  unsigned bits = t.bits ? t.bits : 8u * t.width;
  bool is_signed = t.kind == NAT_SIGNED;
  double least = is_signed ? -(double)(1 << (bits - 1)) : 0, most = (1 << (bits - is_signed)) - 1;
  uint32_t r = nat_op2(b, NAT_FMAX, w, x, nat_constant(b, w, nat_float_bits(w, least)));
  r = nat_op2(b, NAT_FMIN, w, r, nat_constant(b, w, nat_float_bits(w, most)));
  r = nat_op1(b, w == 4 ? NAT_F4_S4 : NAT_F8_S4, 4, r);
  if (is_signed) r = nat_unless_nan(b, w, x, r);
  return nat_resize(b, r, t.width, is_signed);
}

static uint32_t nat_float_to_int(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, to = o->result.width;
  if (to < 4) return nat_float_to_short(b, w, o->in[0], o->result);
  if (o->result.kind == NAT_SIGNED && (to == 4 || nat_has(b, NAT_F8_S8, 8)))
    return nat_float_to_signed(b, w, o->in[0], to);
  if (o->result.kind == NAT_UNSIGNED && nat_has(b, NAT_F8_U, 8)) return nat_float_to_unsigned(b, w, o->in[0], to);
  return nat_give_up(o);
}

/* --- to floats --- */

/* base_f32_odd */
static uint32_t nat_odd_f32(nat_body *b, uint32_t x) {
  uint32_t r = nat_op1(b, NAT_F8_F4, 4, x), back = nat_op1(b, NAT_F4_F8, 8, r), one = nat_number(b, 1);
  uint32_t size = nat_constant(b, 8, INT64_MAX);
  uint32_t over =
      nat_op(b, NAT_FCMP, 8, nat_op2(b, NAT_AND, 8, back, size), nat_op2(b, NAT_AND, 8, x, size), NAT_NONE, 14);
  r = nat_op2(b, NAT_ISUB, 4, r, nat_keep(b, over, one));
  return nat_op2(b, NAT_OR, 4, r, nat_keep(b, nat_op(b, NAT_FCMP, 8, back, x, NAT_NONE, 12), one));
}

/* Integers of 64 or 32 bits that f64 or f32 can't hold, to odd: with their lowest 11 or 8 bits as one. */
static uint32_t nat_odd_int(nat_body *b, uint32_t w, uint32_t x, bool is_signed) {
  unsigned held = w == 8 ? 53 : 24;
  uint64_t low = w == 8 ? 0x7FF : 0xFF;
  uint32_t rest = nat_constant(b, w, low), up = x, most = nat_constant(b, w, (UINT64_C(1) << held) - 1);
  uint32_t odd = nat_op2(b, NAT_IADD, w, nat_op2(b, NAT_AND, w, x, rest), rest);
  odd = nat_op2(b, NAT_AND, w, nat_op2(b, NAT_OR, w, x, odd), nat_constant(b, w, ~low));
  if (is_signed) {
    up = nat_op2(b, NAT_IADD, w, x, nat_constant(b, w, UINT64_C(1) << held));
    most = nat_constant(b, w, UINT64_C(2) << held);
  }
  return nat_select(b, nat_compare_ints(b, w, false, SCALAR_GT, up, most), odd, x);
}

/* To f32 or f64. */
static uint32_t nat_int_to_float(const nat_operands *o, uint32_t x, uint32_t to) {
  nat_body *b = o->b;
  bool is_signed = o->type.kind == NAT_SIGNED;
  uint32_t w = o->type.width;
  if (w < 4) return nat_op1(b, NAT_S4_F, to, nat_resize(b, x, 4, is_signed));
  nat_lane lane = w == 4 ? (is_signed ? NAT_S4_F : NAT_U4_F) : is_signed ? NAT_S8_F : NAT_U8_F;
  return nat_has(b, lane, to) ? nat_op1(b, lane, to, x) : nat_give_up(o);
}

static uint32_t nat_from_pred(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->result.width;
  return nat_keep(b, o->in[0], nat_constant(b, w, nat_is_float(o->result) ? nat_float_bits(w, 1) : 1));
}

uint32_t nat_convert_odd(const nat_operands *o) {
  nat_operands plain = *o;
  bool is_signed = o->type.kind == NAT_SIGNED;
  plain.result = (nat_type){NAT_FLOAT, 4, 4, 0, 0};
  if (o->type.kind == NAT_PRED) return nat_from_pred(&plain);
  if (nat_is_float(o->type)) return o->type.width == 8 ? nat_odd_f32(o->b, o->in[0]) : o->in[0];
  if (o->type.width < 4) return nat_int_to_float(o, o->in[0], 4);
  uint32_t x = nat_odd_int(o->b, o->type.width, o->in[0], is_signed);
  return o->type.width == 8 ? nat_odd_f32(o->b, nat_int_to_float(o, x, 8)) : nat_int_to_float(o, x, 4);
}

static uint32_t nat_to_pred(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, zero = nat_constant(b, w, 0);
  if (nat_is_float(o->type)) return nat_op(b, NAT_FCMP, w, o->in[0], zero, NAT_NONE, 4);
  return nat_compare_ints(b, w, false, SCALAR_NE, o->in[0], zero);
}

static uint32_t nat_to_float(const nat_operands *o) {
  uint32_t from = o->type.width, to = o->result.width;
  if (o->result.kind != NAT_FLOAT) return nat_round(o->b, nat_convert_odd(o), o->result);
  if (!nat_is_float(o->type)) return nat_int_to_float(o, o->in[0], to);
  return from == to ? o->in[0] : nat_op1(o->b, from < to ? NAT_F4_F8 : NAT_F8_F4, to, o->in[0]);
}

uint32_t nat_convert(const nat_operands *o) {
  bool same = o->type.kind == o->result.kind && o->type.width == o->result.width;
  if (same) return o->in[0];
  if (o->type.kind == NAT_PRED) return nat_from_pred(o);
  if (o->result.kind == NAT_PRED) return nat_to_pred(o);
  if (nat_is_float(o->result)) return nat_to_float(o);
  if (nat_is_float(o->type)) return nat_float_to_int(o);
  return nat_resize(o->b, o->in[0], o->result.width, o->type.kind == NAT_SIGNED);
}

uint32_t nat_from_s32(nat_body *b, uint32_t x, nat_type to) {
  nat_operands o = {.b = b, .type = {NAT_SIGNED, 4, 4, 0, 0}, .result = to, .in = {x, 0, 0}};
  /* places count up to what narrow floats' lanes hold */
  if (to.kind == NAT_CODE) return nat_encode(b, nat_op1(b, NAT_S4_F, 4, x), to);
  if (to.kind == NAT_BF16 || to.kind == NAT_F16) return nat_round(b, nat_op1(b, NAT_S4_F, 4, x), to);
  return nat_few_bits(b, nat_convert(&o), to);
}

/* --- reduce-precision: scalar/loops/loops_other.c --- */

uint32_t nat_reduce_precision(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, x = o->in[0], whole = nat_sign_bit(b, w);
  unsigned mantissa = w == 4 ? 23 : 52, exponent = w == 4 ? 8 : 11;
  uint64_t infinity = (UINT64_C(1) << (mantissa + exponent)) - (UINT64_C(1) << mantissa);
  uint32_t a = nat_op2(b, NAT_ANDN, w, whole, x), r = a;
  if (o->op.mantissa_bits < mantissa) {
    unsigned cut = mantissa - o->op.mantissa_bits;
    r = nat_op2(b, NAT_AND, w, nat_round_up(b, w, a, cut), nat_constant(b, w, ~((UINT64_C(1) << cut) - 1)));
  }
  if (o->op.exponent_bits < exponent) {
    uint64_t bias = (UINT64_C(1) << (exponent - 1)) - 1, reduced = (UINT64_C(1) << (o->op.exponent_bits - 1)) - 1;
    uint32_t low = nat_constant(b, w, (bias - reduced + 1) << mantissa);
    uint32_t high = nat_constant(b, w, (bias + reduced + 1) << mantissa);
    uint32_t least = nat_keep(b, nat_compare_ints(b, w, true, SCALAR_GE, r, low), r);
    r = nat_select(b, nat_compare_ints(b, w, true, SCALAR_GE, r, high), nat_constant(b, w, infinity), least);
  }
  r = nat_op2(b, NAT_OR, w, r, nat_op2(b, NAT_AND, w, x, whole));
  return nat_select(b, nat_is_nan(b, w, x), x, r);
}
