/* Elementwise ops as instructions on lanes. Arithmetic of floats and all of integers is written here; functions of
 * floats are replayed from what the generator makes of their one definition (functions.def). */
#include "functions.h"
#include "lower_convert.h"

/* What has no instructions: the interpreter's loop, called for each vector. Of one type alone, narrow floats as f32. */
static uint32_t nat_by_call(const nat_operands *o) {
  static const uint8_t signed_types[] = {[1] = XLAC_S8, [2] = XLAC_S16, [4] = XLAC_S32, [8] = XLAC_S64};
  static const uint8_t unsigned_types[] = {[1] = XLAC_U8, [2] = XLAC_U16, [4] = XLAC_U32, [8] = XLAC_U64};
  uint8_t t = o->type.width == 8 ? XLAC_F64 : XLAC_F32;
  if (o->type.kind == NAT_SIGNED) t = signed_types[o->type.width];
  if (o->type.kind == NAT_UNSIGNED) t = unsigned_types[o->type.width];
  scalar_loop l;
  const uint8_t in[3] = {t, t, t};
  bool same = o->type.kind == o->result.kind && o->type.width == o->result.width && o->type.kind != NAT_PRED;
  if (!same || o->n_in > 2 || o->op.code == SCALAR_REDUCE_PRECISION || !scalar_loop_of(&o->op, o->n_in, in, t, &l) ||
      l.work || l.wraps)
    return nat_give_up(o);
  return nat_call(o->b, (uintptr_t)l.fn, o->in[0], o->n_in > 1 ? o->in[1] : NAT_NONE);
}

static uint32_t nat_not(nat_body *b, uint32_t x) {
  return b->failed ? 0 : nat_op2(b, NAT_XOR, b->values[x].width, x, nat_ones(b, b->values[x].width));
}
/* --- floats --- */

static nat_function_type nat_function_type_of(nat_type t) {
  return t.width == 8 ? NAT_F8 : NAT_F4;
}

static uint32_t nat_is_finite(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width;
  uint32_t size = nat_op2(b, NAT_ANDN, w, nat_sign_bit(b, w), o->in[0]);
  uint32_t infinity = nat_constant(b, w, w == 4 ? 0x7F800000 : 0x7FF0000000000000);
  return nat_op(b, NAT_FCMP, w, size, infinity, NAT_NONE, 1);
}

/* A number that is not a NaN and no zero is compared as it is. */
static bool nat_is_plain_number(const nat_body *b, uint32_t x) {
  const nat_value *v = &b->values[x];
  uint64_t size = v->width == 4 ? v->bits & 0x7FFFFFFF : v->bits & INT64_MAX;
  return v->kind == NAT_CONSTANT && size && size <= (v->width == 4 ? 0x7F800000 : 0x7FF0000000000000);
}

/* By one instruction that knows zeros; where one of both is NaN, their sum is such. */
static uint32_t nat_range(nat_body *b, uint32_t w, uint32_t x, uint32_t y, bool most) {
  uint32_t r = nat_op(b, NAT_FRANGE, w, x, y, NAT_NONE, most ? 5 : 4);
  uint32_t nan = nat_op(b, NAT_FCMP, w, x, y, NAT_NONE, 3);
  return nat_select(b, nan, nat_op2(b, NAT_FADD, w, x, y), r);
}

/* The larger or the smaller of x and y. The instruction's result where both are equal or one is NaN is the second
 * operand, which is right where the first is a plain number. */
static uint32_t nat_float_extreme(const nat_operands *o, uint32_t x, uint32_t y, bool most) {
  nat_body *b = o->b;
  nat_lane lane = most ? NAT_FMAX : NAT_FMIN;
  if (b->failed) return 0;
  if (nat_is_plain_number(b, x)) return nat_op2(b, lane, o->type.width, x, y);
  if (nat_is_plain_number(b, y)) return nat_op2(b, lane, o->type.width, y, x);
  if (nat_has(b, NAT_FRANGE, o->type.width)) return nat_range(b, o->type.width, x, y, most);
  uint32_t in[3] = {x, y, 0};
  return nat_function(b, nat_function_type_of(o->type), most ? SCALAR_MAXIMUM : SCALAR_MINIMUM, in);
}

/* Of sin, cos and tan, which are inlined for numbers below 2^27: 0, 1, 2; else -1. */
static int nat_turn(scalar_code code) {
  return code == SCALAR_SINE ? 0 : code == SCALAR_COSINE ? 1 : code == SCALAR_TAN ? 2 : -1;
}

/* Of an f64; cos(x) is sin(x + pi/2). */
static uint32_t nat_turned_wide(nat_body *b, scalar_code opcode, uint32_t x) {
  uint32_t size = nat_op2(b, NAT_AND, 8, x, nat_constant(b, 8, INT64_MAX));
  uint32_t far = nat_compare_ints(b, 8, true, SCALAR_GT, size, nat_constant(b, 8, 0x4130000000000000 - 1));
  uint32_t in[] = {x, nat_constant(b, 8, opcode == SCALAR_COSINE ? 0x3FF0000000000000 : 0)};
  uint32_t near = nat_function(b, NAT_INNER, SCALAR_SINE, in);
  return nat_far(b, NAT_FAR_F64 + (unsigned)nat_turn(opcode), near, x, far);
}

uint32_t nat_turned(nat_body *b, scalar_code opcode, uint32_t x) {
  if (b->failed) return 0;
  if (b->values[x].width == 8) return nat_turned_wide(b, opcode, x);
  uint32_t size = nat_op2(b, NAT_AND, 4, x, nat_constant(b, 4, 0x7FFFFFFF));
  uint32_t far = nat_compare_ints(b, 4, true, SCALAR_GT, size, nat_constant(b, 4, 0x4D000000 - 1));
  uint32_t near = nat_function(b, NAT_NEAR, opcode, &x);
  return nat_far(b, (unsigned)nat_turn(opcode), near, x, far);
}

static uint32_t nat_float_op(const nat_operands *o) {
  scalar_code opcode = (scalar_code)o->op.code;
  nat_function_type t = nat_function_type_of(o->type);
  switch (opcode) {
    case SCALAR_IS_FINITE:
      return nat_is_finite(o);
    case SCALAR_MAXIMUM:
    case SCALAR_MINIMUM:
      return nat_float_extreme(o, o->in[0], o->in[1], opcode == SCALAR_MAXIMUM);
    case SCALAR_CLAMP: /* least, operand, most */
      return nat_float_extreme(o, nat_float_extreme(o, o->in[1], o->in[0], true), o->in[2], false);
    case SCALAR_SINE:
    case SCALAR_COSINE:
      return nat_turned(o->b, opcode, o->in[0]);
    case SCALAR_TAN:
      return t == NAT_F4 ? nat_turned(o->b, opcode, o->in[0]) : nat_by_call(o);
    default:
      return nat_function_width(t, opcode) ? nat_function(o->b, t, opcode, o->in) : nat_by_call(o);
  }
}

/* --- integers --- */

uint32_t nat_extreme(nat_body *b, nat_type t, uint32_t x, uint32_t y, bool most) {
  bool is_signed = t.kind == NAT_SIGNED;
  if (nat_has(b, NAT_SMAX, t.width))
    return nat_op2(b, most ? (is_signed ? NAT_SMAX : NAT_UMAX) : is_signed ? NAT_SMIN : NAT_UMIN, t.width, x, y);
  uint32_t greater = nat_compare_ints(b, t.width, is_signed, SCALAR_GT, x, y);
  return most ? nat_select(b, greater, x, y) : nat_select(b, greater, y, x);
}

/* By 2^k, 2^k + 1 or 2^k - 1: a shift, and a sum or a difference, take a few cycles instead of ten or more. *r is set
 * then. */
static bool nat_product_by_shift(nat_body *b, uint32_t w, uint32_t x, uint32_t y, uint32_t *r) {
  if (b->values[y].kind != NAT_CONSTANT || b->values[x].kind == NAT_CONSTANT || w < 4 || !nat_has(b, NAT_SHL, w))
    return false;
  uint64_t by = b->values[y].bits;
  uint64_t power = by < 2 || !(by & (by - 1)) ? by : !((by - 1) & (by - 2)) ? by - 1 : by + 1;
  if (by == 0 || power == 0 || (power & (power - 1)) || power >> (8 * w - 1) >> 1) return false;
  *r = power == 1 ? x : nat_shift(b, NAT_SHL, w, x, (unsigned)__builtin_ctzll(power));
  if (power != by) *r = nat_op2(b, power < by ? NAT_IADD : NAT_ISUB, w, *r, x);
  return true;
}

/* 64 bits from products of 32; 8 bits from products of 16, of the even and of the odd bytes. The first of four lanes
 * comes sooner from the product of every second one. */
static uint32_t nat_product(nat_body *b, uint32_t w, uint32_t x, uint32_t y) {
  uint32_t r = 0;
  if (b->failed) return 0;
  if (nat_product_by_shift(b, w, x, y, &r) || nat_product_by_shift(b, w, y, x, &r)) return r;
  if (b->alike && w == 4) return nat_op_within(b, NAT_IMUL_LOW, 8, 4, x, y);
  if (!nat_has(b, NAT_IMUL, w)) {
    uint32_t a = nat_op2(b, NAT_IMUL_LOW, 8, nat_shift(b, NAT_SHR, 8, x, 32), y);
    uint32_t c = nat_op2(b, NAT_IMUL_LOW, 8, x, nat_shift(b, NAT_SHR, 8, y, 32));
    uint32_t high = nat_shift(b, NAT_SHL, 8, nat_op2(b, NAT_IADD, 8, a, c), 32);
    return nat_op2(b, NAT_IADD, 8, nat_op2(b, NAT_IMUL_LOW, 8, x, y), high);
  }
  return nat_op2(b, NAT_IMUL, w, x, y);
}

/* Lanes of narrow integers that are shifted by other numbers in each: those of the least width that can. */
uint32_t nat_shift_width(const nat_target *target, const kernel *k, const kernel_value *v) {
  static const nat_lane by_lanes[] = {NAT_SHLV, NAT_SHRV, NAT_SARV};
  nat_type t = nat_lane_type_of((base_dtype)v->dtype);
  unsigned which = v->op.code == SCALAR_SHIFT_LEFT ? 0 : v->op.code == SCALAR_SHIFT_RIGHT_LOGICAL ? 1 : 2;
  bool shifts = which < 2 || v->op.code == SCALAR_SHIFT_RIGHT_ARITHMETIC;
  if (!shifts || k->values[v->in[1]].kind == KERNEL_CONSTANT || (t.kind != NAT_SIGNED && t.kind != NAT_UNSIGNED))
    return 1;
  unsigned row = (unsigned)__builtin_ctz(t.width);
  while (row < 2 && target->ops[by_lanes[which]][row] == X86_NONE) row++;
  return 1u << row;
}

/* By a number, bytes: as pairs, of which what came from the other byte is cut off. */
static uint32_t nat_shift_bytes(nat_body *b, nat_lane by_number, uint32_t x, unsigned by) {
  uint64_t kept = by_number == NAT_SHL ? (0xFFu << by) & 0xFF : 0xFFu >> by, sign = 0x80u >> by;
  uint32_t r = nat_shift_pairs(b, by_number == NAT_SHL ? NAT_SHL : NAT_SHR, x, by);
  r = nat_op2(b, NAT_AND, 1, r, nat_constant(b, 1, kept));
  if (by_number != NAT_SAR) return r;
  return nat_op2(b, NAT_ISUB, 1, nat_op2(b, NAT_XOR, 1, r, nat_constant(b, 1, sign)), nat_constant(b, 1, sign));
}

/* A shift by the type's width or more leaves zeros, or copies of the sign: as the instructions by lanes have it, which
 * take the number of bits as unsigned; those of wider lanes do so with what is made as wide. */
static uint32_t nat_shift_by_lanes(const nat_operands *o, nat_lane by_lane, nat_lane by_number) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, bits = 8 * w, wide = w;
  if (b->failed) return 0;
  const nat_value *y = &b->values[o->in[1]];
  if (y->kind == NAT_CONSTANT && (nat_has(b, by_number, w) || w == 1)) {
    bool out = y->bits >= bits;
    if (out && by_number != NAT_SAR) return nat_constant(b, w, 0);
    unsigned by = out ? bits - 1 : (unsigned)y->bits;
    return w == 1 ? nat_shift_bytes(b, by_number, o->in[0], by) : nat_shift(b, by_number, w, o->in[0], by);
  }
  while (wide < 4 && !nat_has(b, by_lane, wide)) wide *= 2;
  if (!nat_has(b, by_lane, wide) || wide * b->lanes > b->target->vector) return nat_by_call(o);
  uint32_t x = nat_resize(b, o->in[0], wide, by_number == NAT_SAR), n = nat_resize(b, o->in[1], wide, false);
  return nat_resize(b, nat_op2(b, by_lane, wide, x, n), w, false);
}

/* For x, of which only bits of y are wanted. Low bits of an iota that repeat within a vector are the same in every
 * vector: those of its first one. */
static uint32_t nat_periodic(nat_body *b, uint32_t x, uint32_t y) {
  if (b->failed || !b->k) return x;
  const nat_value *sum = &b->values[x], *low = &b->values[y];
  bool counts = sum->kind == NAT_OP && sum->op == b->target->ops[NAT_IADD][2] && sum->n_in == 2;
  unsigned which = counts && b->values[sum->in[1]].kind == NAT_COUNT;
  counts = counts && b->values[sum->in[which]].kind == NAT_COUNT && !b->values[sum->in[which]].steady;
  if (!counts || low->kind != NAT_CONSTANT || low->bits >= b->lanes || (low->bits & (low->bits + 1)) || low->width != 4)
    return x;
  uint32_t first = sum->in[1 - which];
  return nat_op2(b, NAT_IADD, 4, nat_lane_numbers(b), first);
}

/* The bits of x or of y. Two shifts of one value by as many bits as it has are a rotation, as generators of random
 * numbers write it. */
static uint32_t nat_either(nat_body *b, uint32_t w, uint32_t x, uint32_t y) {
  if (b->failed || !nat_has(b, NAT_ROL, w)) return nat_op2(b, NAT_OR, w, x, y);
  unsigned row = w == 4 ? 2 : 3; /* of the table, by width */
  const nat_value *left = &b->values[x], *right = &b->values[y];
  if (left->op != b->target->ops[NAT_SHL][row]) left = right, right = &b->values[x];
  bool shifts = left->kind == NAT_OP && right->kind == NAT_OP && left->op == b->target->ops[NAT_SHL][row] &&
                right->op == b->target->ops[NAT_SHR][row];
  if (!shifts || left->in[0] != right->in[0] || left->number + right->number != (int)(8 * w))
    return nat_op2(b, NAT_OR, w, x, y);
  return nat_shift(b, NAT_ROL, w, left->in[0], left->number);
}

/* An integer of up to 32 bits as a float that holds it exactly, with room for quotients: f32 of up to 16 bits, else
 * f64. */
static uint32_t nat_exact_float(nat_body *b, nat_type t, uint32_t x) {
  bool is_signed = t.kind == NAT_SIGNED;
  const uint64_t two_52 = 0x4330000000000000;
  if (t.width < 4) return nat_op1(b, NAT_S4_F, 4, nat_resize(b, x, 4, is_signed));
  if (is_signed || nat_has(b, NAT_U4_F, 8)) return nat_op1(b, is_signed ? NAT_S4_F : NAT_U4_F, 8, x);
  uint32_t wide = nat_op2(b, NAT_OR, 8, nat_resize(b, x, 8, false), nat_constant(b, 8, two_52));
  return nat_op2(b, NAT_FSUB, 8, wide, nat_constant(b, 8, two_52));
}

/* A constant divisor as a number; 0: it is none, or is 0. */
static int64_t nat_divisor(const nat_body *b, nat_type t, uint32_t y) {
  const nat_value *v = &b->values[y];
  unsigned rest = 64 - 8u * t.width;
  if (v->kind != NAT_CONSTANT) return 0;
  return t.kind == NAT_SIGNED ? (int64_t)(v->bits << rest) >> rest : (int64_t)(v->bits << rest >> rest);
}

/* x / y in floats. A constant's inverse is a little larger than it is: enough that multiples of the constant do not
 * fall short, and not enough to reach the next integer. */
static uint32_t nat_float_quotient(nat_body *b, nat_type t, uint32_t w, uint32_t x, uint32_t y) {
  int64_t by = nat_divisor(b, t, y);
  double inverse = by ? 1.0 / (double)by : 0;
  float single = (float)(inverse * (1 + 0x1p-20));
  uint64_t bits = 0;
  x = nat_exact_float(b, t, x);
  if (!by) return nat_op2(b, NAT_FDIV, w, x, nat_exact_float(b, t, y));
  inverse *= 1 + 0x1p-40;
  memcpy(&bits, w == 4 ? (void *)&single : (void *)&inverse, w);
  return nat_op2(b, NAT_FMUL, w, x, nat_constant(b, w, bits));
}

/* The quotient towards zero. It is exact: it is away from the next integer by more than it is rounded by. By 0 it is
 * all ones; the least number by -1 is itself, as the conversion's overflow is. */
static uint32_t nat_quotient(nat_body *b, nat_type t, uint32_t x, uint32_t y) {
  uint32_t w = t.width < 4 ? 4 : 8, r = 0, q = nat_float_quotient(b, t, w, x, y);
  if (w == 4) {
    r = nat_resize(b, nat_op1(b, NAT_F4_S4, 4, q), t.width, false);
  } else if (t.kind == NAT_SIGNED) {
    r = nat_op1(b, NAT_F8_S4, 4, q);
  } else if (nat_has(b, NAT_F8_U, 4)) {
    return nat_op1(b, NAT_F8_U, 4, q); /* all ones of what is not a number, too */
  } else {
    uint32_t whole = nat_op(b, NAT_FROUND, 8, q, NAT_NONE, NAT_NONE, 11);
    r = nat_resize(b, nat_op2(b, NAT_FADD, 8, whole, nat_constant(b, 8, 0x4330000000000000)), 4, false);
  }
  if (b->failed || nat_divisor(b, t, y)) return r;
  uint32_t none = nat_compare_ints(b, t.width, true, SCALAR_EQ, y, nat_constant(b, t.width, 0));
  return nat_select(b, none, nat_ones(b, t.width), r);
}

/* By 2 to the power `by`, towards zero: what is below zero is moved up first. */
static uint32_t nat_by_power(nat_body *b, nat_type t, uint32_t x, unsigned by, bool rest) {
  uint32_t w = t.width, bits = 8 * w, up = x;
  if (by == 0) return rest ? nat_constant(b, w, 0) : x;
  uint64_t low = (UINT64_C(1) << by) - 1;
  if (t.kind == NAT_UNSIGNED)
    return rest ? nat_op2(b, NAT_AND, w, x, nat_constant(b, w, low)) : nat_shift(b, NAT_SHR, w, x, by);
  if (by > 1) up = nat_shift(b, NAT_SAR, w, x, bits - 1);
  up = nat_op2(b, NAT_IADD, w, x, nat_shift(b, NAT_SHR, w, up, bits - by));
  if (!rest) return nat_shift(b, NAT_SAR, w, up, by);
  return nat_op2(b, NAT_ISUB, w, x, nat_op2(b, NAT_AND, w, up, nat_constant(b, w, ~low)));
}

/* One unsigned step: *q goes up by what *r is over y at least, which *r loses. inverse: of y, and a little less. */
static void nat_long_step(nat_body *b, uint32_t y, uint32_t inverse, uint32_t *q, uint32_t *r) {
  uint32_t more = nat_op1(b, NAT_F8_U, 8, nat_op2(b, NAT_FMUL, 8, nat_op1(b, NAT_U8_F, 8, *r), inverse));
  *q = nat_op2(b, NAT_IADD, 8, *q, more);
  *r = nat_op2(b, NAT_ISUB, 8, *r, nat_op2(b, NAT_IMUL, 8, more, y));
}

/* The negative of x where the mask of all bits `sign` is set. */
static uint32_t nat_signed_as(nat_body *b, uint32_t x, uint32_t sign) {
  return nat_op2(b, NAT_ISUB, 8, nat_op2(b, NAT_XOR, 8, x, sign), sign);
}

/* Of 64 bits, on magnitudes. Conversions, inverse and product are off by less than 2^-50 of the quotient, by which the
 * inverse is made smaller: the first step leaves y and at most 2^15 more, the second less than two times y. */
static uint32_t nat_long_division(nat_body *b, nat_type t, uint32_t x, uint32_t y, bool rest) {
  bool is_signed = t.kind == NAT_SIGNED;
  uint32_t size = is_signed ? nat_op1(b, NAT_IABS, 8, y) : y, r = is_signed ? nat_op1(b, NAT_IABS, 8, x) : x;
  uint32_t zero = nat_constant(b, 8, 0), one = nat_constant(b, 8, 1), q = zero;
  uint32_t less = nat_constant(b, 8, 0x3FEFFFFFFFFFFFF8); /* 1 - 2^-50 */
  uint32_t inverse = nat_op2(b, NAT_FDIV, 8, less, nat_op1(b, NAT_U8_F, 8, size));
  nat_long_step(b, size, inverse, &q, &r);
  nat_long_step(b, size, inverse, &q, &r);
  uint32_t over = nat_compare_ints(b, 8, false, SCALAR_GE, r, size);
  r = rest ? nat_op2(b, NAT_ISUB, 8, r, nat_keep(b, over, size)) : nat_op2(b, NAT_IADD, 8, q, nat_keep(b, over, one));
  if (is_signed) r = nat_signed_as(b, r, nat_shift(b, NAT_SAR, 8, rest ? x : nat_op2(b, NAT_XOR, 8, x, y), 63));
  return nat_select(b, nat_compare_ints(b, 8, true, SCALAR_EQ, y, zero), rest ? x : nat_ones(b, 8), r);
}

/* What is left has the sign of x; of a division by 0 it is x. */
static uint32_t nat_division(const nat_operands *o, bool rest) {
  nat_body *b = o->b;
  nat_type t = o->type;
  uint32_t w = t.width, x = o->in[0], y = o->in[1];
  if (b->failed) return 0;
  int64_t by = nat_divisor(b, t, y);
  if (w == 1) {
    bool is_signed = t.kind == NAT_SIGNED;
    t.width = 2, w = 2;
    x = nat_resize(b, x, 2, is_signed);
    y = by ? nat_constant(b, 2, (uint64_t)by & 0xFFFF) : nat_resize(b, y, 2, is_signed);
  }
  bool power = by > 0 && !(by & (by - 1)) && (t.kind == NAT_UNSIGNED || nat_has(b, NAT_SAR, w));
  if (b->failed) return 0;
  if (!power && w == 8) return nat_has(b, NAT_F8_U, 8) ? nat_long_division(b, t, x, y, rest) : nat_by_call(o);
  uint32_t q = power ? nat_by_power(b, t, x, (unsigned)__builtin_ctzll((uint64_t)by), rest) : nat_quotient(b, t, x, y);
  if (rest && !power) q = nat_op2(b, NAT_ISUB, w, x, nat_product(b, w, q, y));
  return nat_resize(b, q, o->type.width, false);
}

/* Shifts by a number of lanes of any width. */
static uint32_t nat_right(nat_body *b, uint32_t w, uint32_t x, unsigned by) {
  uint32_t low = nat_constant(b, 1, (uint64_t)0xFF >> by);
  if (w > 1) return nat_shift(b, NAT_SHR, w, x, by);
  return nat_op2(b, NAT_AND, 1, nat_shift_pairs(b, NAT_SHR, x, by), low);
}

/* Ones in 2, 4, 8 bits, side by side; then bytes are added up. */
static uint32_t nat_count_ones(nat_body *b, uint32_t w, uint32_t x) {
  const uint64_t twos = 0x5555555555555555, fours = 0x3333333333333333, bytes = 0x0F0F0F0F0F0F0F0F;
  if (b->failed) return 0;
  uint32_t odd = nat_op2(b, NAT_AND, w, nat_right(b, w, x, 1), nat_constant(b, w, twos));
  x = nat_op2(b, NAT_ISUB, w, x, odd);
  uint32_t high = nat_op2(b, NAT_AND, w, nat_right(b, w, x, 2), nat_constant(b, w, fours));
  x = nat_op2(b, NAT_IADD, w, nat_op2(b, NAT_AND, w, x, nat_constant(b, w, fours)), high);
  x = nat_op2(b, NAT_AND, w, nat_op2(b, NAT_IADD, w, x, nat_right(b, w, x, 4)), nat_constant(b, w, bytes));
  for (unsigned by = 8; by < 8 * w; by *= 2) x = nat_op2(b, NAT_IADD, w, x, nat_right(b, w, x, by));
  return w == 1 ? x : nat_op2(b, NAT_AND, w, x, nat_constant(b, w, 127));
}

/* All bits below the highest one are set, and the others counted. */
static uint32_t nat_leading_zeros(nat_body *b, uint32_t w, uint32_t x) {
  if (b->failed) return 0;
  for (unsigned by = 1; by < 8 * w; by *= 2) x = nat_op2(b, NAT_OR, w, x, nat_right(b, w, x, by));
  return nat_count_ones(b, w, nat_not(b, x));
}

/* Whether bit number `bit` of y is set. */
static uint32_t nat_bit(nat_body *b, uint32_t w, uint32_t y, unsigned bit) {
  uint32_t alone = nat_op2(b, NAT_AND, w, y, nat_constant(b, w, UINT64_C(1) << bit));
  return nat_compare_ints(b, w, true, SCALAR_NE, alone, nat_constant(b, w, 0));
}

/* *x to the power of y's low `bits`, products of *x's squares; *x becomes the last square. */
static uint32_t nat_low_power(nat_body *b, uint32_t w, uint32_t *x, uint32_t y, unsigned bits) {
  uint32_t r = nat_constant(b, w, 1), one = r;
  if (b->failed) return 0;
  bool known = b->values[y].kind == NAT_CONSTANT;
  uint64_t which = known ? b->values[y].bits : UINT64_MAX;
  for (unsigned i = 0; i < bits && which >> i; i++) {
    if (i) *x = nat_product(b, w, *x, *x);
    if (!(which >> i & 1) || b->failed) continue;
    uint32_t more = r == one ? *x : nat_product(b, w, r, *x);
    r = known ? more : nat_select(b, nat_bit(b, w, y, i), more, r);
  }
  return r;
}

/* (1 + t)^y, t a multiple of 2^6 and lanes of 2 bytes, of 2^7 and 4, or of 2^8 and 8, as a series:
 *
 *    1 + y t (1 + (y - 1) t/2 (1 + (y - 2) t/3 ...))
 *
 * of which the factor by the next t is a multiple of all that lanes hold. An odd number is divided by through its
 * inverse; what dividing by 2 and by 4 takes from above is a multiple of it again by the outermost t. */
static uint32_t nat_power_near_one(nat_body *b, uint32_t w, uint32_t t, uint32_t y) {
  static const uint64_t inverses[] = {
      [1] = 1, [3] = 0xAAAAAAAAAAAAAAAB, [5] = 0xCCCCCCCCCCCCCCCD, [7] = 0x6DB6DB6DB6DB6DB7};
  uint32_t one = nat_constant(b, w, 1), r = one;
  for (unsigned k = w == 8 ? 7 : w; k > 0 && !b->failed; k--) {
    unsigned twos = (unsigned)__builtin_ctz(k);
    uint32_t part = nat_product(b, w, t, nat_constant(b, w, inverses[k >> twos]));
    if (twos) part = nat_shift(b, NAT_SHR, w, part, twos);
    uint32_t times = k > 1 ? nat_op2(b, NAT_ISUB, w, y, nat_constant(b, w, k - 1)) : y;
    r = nat_op2(b, NAT_IADD, w, nat_product(b, w, r == one ? part : nat_product(b, w, r, part), times), one);
  }
  return r;
}

/* x to the power y modulo 2 to the power of `bits`, y unsigned. Of an odd x, the square of squares that its low bits
 * end with is next to 1; of an even one it is 0. */
static uint32_t nat_unsigned_power(nat_body *b, uint32_t w, uint32_t x, uint32_t y, unsigned bits) {
  unsigned low = w == 8 ? 6 : w == 4 ? 5 : 4;
  uint32_t last = x, one = nat_constant(b, w, 1), zero = nat_constant(b, w, 0);
  if (b->failed) return 0;
  if (bits != 8 * w || b->values[y].kind == NAT_CONSTANT) return nat_low_power(b, w, &last, y, bits);
  uint32_t r = nat_low_power(b, w, &last, y, low), high = nat_shift(b, NAT_SHR, w, y, low);
  uint32_t t = nat_op2(b, NAT_ISUB, w, nat_product(b, w, last, last), one);
  r = nat_product(b, w, r, nat_power_near_one(b, w, t, high));
  uint32_t some = nat_mask_op(b, NAT_OR, nat_bit(b, w, x, 0), nat_compare_ints(b, w, true, SCALAR_EQ, high, zero));
  return nat_keep(b, some, r);
}

/* The power of a y below 0 is 1 / x^-y towards zero: of 1 and -1 what y as an unsigned number gives, else 0. */
static uint32_t nat_power(const nat_operands *o) {
  nat_body *b = o->b;
  bool is_signed = o->type.kind == NAT_SIGNED;
  uint32_t w = o->type.width < 2 ? 2 : o->type.width, zero = nat_constant(b, w, 0), two = nat_constant(b, w, 2);
  uint32_t x = nat_resize(b, o->in[0], w, is_signed), y = nat_resize(b, o->in[1], w, is_signed);
  uint32_t r = nat_unsigned_power(b, w, x, y, 8 * o->type.width);
  if (is_signed) {
    uint32_t unit = nat_op2(b, NAT_OR, w, nat_op2(b, NAT_IADD, w, x, nat_constant(b, w, 1)), two); /* 2 of 1 and -1 */
    uint32_t whole = nat_mask_op(b, NAT_OR, nat_compare_ints(b, w, true, SCALAR_GE, y, zero),
                                 nat_compare_ints(b, w, true, SCALAR_EQ, unit, two));
    r = nat_keep(b, whole, r);
  }
  return nat_resize(b, r, o->type.width, false);
}

/* The upper half of a product of 64 bits, from products of 32. What a sign's bit is worth too much is taken off. */
static uint32_t nat_long_upper_half(nat_body *b, bool is_signed, uint32_t x, uint32_t y) {
  uint32_t xh = nat_shift(b, NAT_SHR, 8, x, 32), yh = nat_shift(b, NAT_SHR, 8, y, 32), zero = nat_constant(b, 8, 0);
  uint32_t low = nat_shift(b, NAT_SHR, 8, nat_op2(b, NAT_IMUL_LOW, 8, x, y), 32);
  uint32_t one = nat_op2(b, NAT_IADD, 8, nat_op2(b, NAT_IMUL_LOW, 8, xh, y), low);
  uint32_t rest = nat_op2(b, NAT_AND, 8, one, nat_constant(b, 8, UINT32_MAX));
  uint32_t other = nat_op2(b, NAT_IADD, 8, nat_op2(b, NAT_IMUL_LOW, 8, x, yh), rest);
  uint32_t r = nat_op2(b, NAT_IADD, 8, nat_op2(b, NAT_IMUL_LOW, 8, xh, yh), nat_shift(b, NAT_SHR, 8, one, 32));
  r = nat_op2(b, NAT_IADD, 8, r, nat_shift(b, NAT_SHR, 8, other, 32));
  if (!is_signed) return r;
  r = nat_op2(b, NAT_ISUB, 8, r, nat_keep(b, nat_compare_ints(b, 8, true, SCALAR_LT, x, zero), y));
  return nat_op2(b, NAT_ISUB, 8, r, nat_keep(b, nat_compare_ints(b, 8, true, SCALAR_LT, y, zero), x));
}

static uint32_t nat_upper_half(const nat_operands *o) {
  nat_body *b = o->b;
  bool is_signed = o->type.kind == NAT_SIGNED;
  uint32_t w = o->type.width;
  if (w == 8) return nat_long_upper_half(b, is_signed, o->in[0], o->in[1]);
  uint32_t x = nat_resize(b, o->in[0], 2 * w, is_signed), y = nat_resize(b, o->in[1], 2 * w, is_signed);
  return nat_resize(b, nat_shift(b, NAT_SHR, 2 * w, nat_product(b, 2 * w, x, y), 8 * w), w, false);
}

static uint32_t nat_int_op(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, x = o->in[0], y = o->in[1];
  switch (o->op.code) {
    case SCALAR_ADD:
      return nat_op2(b, NAT_IADD, w, x, y);
    case SCALAR_SUBTRACT:
      return nat_op2(b, NAT_ISUB, w, x, y);
    case SCALAR_MULTIPLY:
      if (w > 1) return nat_product(b, w, x, y);
      return nat_resize(b, nat_product(b, 2, nat_resize(b, x, 2, false), nat_resize(b, y, 2, false)), 1, false);
    case SCALAR_DIVIDE:
      return nat_division(o, false);
    case SCALAR_REMAINDER:
      return nat_division(o, true);
    case SCALAR_POWER:
      return nat_power(o);
    case SCALAR_MULHI:
      return nat_upper_half(o);
    case SCALAR_AND:
      return nat_op2(b, NAT_AND, w, nat_periodic(b, x, y), y);
    case SCALAR_OR:
      return nat_either(b, w, x, y);
    case SCALAR_XOR:
      return nat_op2(b, NAT_XOR, w, x, y);
    case SCALAR_NOT:
      return nat_not(b, x);
    case SCALAR_NEGATE:
      return nat_op2(b, NAT_ISUB, w, nat_constant(b, w, 0), x);
    case SCALAR_MAXIMUM:
      return nat_extreme(b, o->type, x, y, true);
    case SCALAR_MINIMUM:
      return nat_extreme(b, o->type, x, y, false);
    case SCALAR_CLAMP: /* least, operand, most */
      return nat_extreme(b, o->type, nat_extreme(b, o->type, y, x, true), o->in[2], false);
    case SCALAR_SHIFT_LEFT:
      return nat_shift_by_lanes(o, NAT_SHLV, NAT_SHL);
    case SCALAR_SHIFT_RIGHT_LOGICAL:
      return nat_shift_by_lanes(o, NAT_SHRV, NAT_SHR);
    case SCALAR_SHIFT_RIGHT_ARITHMETIC:
      return nat_shift_by_lanes(o, NAT_SARV, NAT_SAR);
    case SCALAR_POPCNT:
      return nat_count_ones(b, w, x);
    case SCALAR_COUNT_LEADING_ZEROS:
      return nat_leading_zeros(b, w, x);
    default:
      return nat_by_call(o);
  }
}

/* abs and sign, which only signed integers have. */
static uint32_t nat_signed_op(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t w = o->type.width, x = o->in[0], zero = nat_constant(b, w, 0);
  if (o->op.code == SCALAR_ABS) {
    if (nat_has(b, NAT_IABS, w)) return nat_op1(b, NAT_IABS, w, x);
    return nat_select(b, nat_compare_ints(b, w, true, SCALAR_LT, x, zero), nat_op2(b, NAT_ISUB, w, zero, x), x);
  }
  if (o->op.code == SCALAR_SIGN)
    return nat_extreme(b, o->type, nat_extreme(b, o->type, x, nat_ones(b, w), true), nat_constant(b, w, 1), false);
  return nat_int_op(o);
}

/* --- truth values --- */

static uint32_t nat_pred_op(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t x = o->in[0], y = o->in[1];
  switch (o->op.code) {
    case SCALAR_ADD:
    case SCALAR_OR:
    case SCALAR_MAXIMUM:
      return nat_mask_op(b, NAT_OR, x, y);
    case SCALAR_AND:
    case SCALAR_MULTIPLY:
    case SCALAR_MINIMUM:
      return nat_mask_op(b, NAT_AND, x, y);
    case SCALAR_XOR:
      return nat_mask_op(b, NAT_XOR, x, y);
    case SCALAR_NOT:
      return nat_mask_not(b, x);
    case SCALAR_CLAMP:
      return nat_mask_op(b, NAT_AND, nat_mask_op(b, NAT_OR, y, x), o->in[2]);
    default:
      return nat_give_up(o);
  }
}

/* --- comparisons, selections --- */

/* As bits: x == y is not (x xor y), and so on. */
static uint32_t nat_compare_pred(nat_body *b, int direction, uint32_t x, uint32_t y) {
  switch (direction) {
    case SCALAR_EQ:
      return nat_mask_not(b, nat_mask_op(b, NAT_XOR, x, y));
    case SCALAR_NE:
      return nat_mask_op(b, NAT_XOR, x, y);
    case SCALAR_GE:
      return nat_mask_op(b, NAT_OR, x, nat_mask_not(b, y));
    case SCALAR_GT:
      return nat_mask_op(b, NAT_ANDN, y, x);
    case SCALAR_LE:
      return nat_mask_op(b, NAT_OR, nat_mask_not(b, x), y);
    default:
      return nat_mask_op(b, NAT_ANDN, x, y);
  }
}

/* Floats in total order, as integers: the bits, of which those below the sign are turned where it is set. */
static uint32_t nat_total_key(nat_body *b, uint32_t w, uint32_t x) {
  uint32_t zero = nat_constant(b, w, 0);
  uint32_t negative = nat_has(b, NAT_SAR, w) ? nat_shift(b, NAT_SAR, w, x, 8 * w - 1) : nat_op2(b, NAT_SGT, w, zero, x);
  return nat_op2(b, NAT_XOR, w, x, nat_op2(b, NAT_ANDN, w, nat_sign_bit(b, w), negative));
}

/* f16 with a signalling NaN would lose that on its way to f32. */
static uint32_t nat_compare_total(const nat_operands *o) {
  uint32_t w = o->type.width;
  if (o->type.kind == NAT_F16) return nat_give_up(o);
  uint32_t x = nat_total_key(o->b, w, o->in[0]), y = nat_total_key(o->b, w, o->in[1]);
  return nat_compare_ints(o->b, w, true, (scalar_direction)o->op.direction, x, y);
}

/* The instruction's predicates: ordered, but for NE. */
static uint32_t nat_compare(const nat_operands *o) {
  static const uint8_t predicates[SCALAR_DIRECTIONS] = {0, 4, 13, 14, 2, 1};
  const int direction = o->op.direction;
  if (o->type.kind == NAT_PRED) return nat_compare_pred(o->b, direction, o->in[0], o->in[1]);
  if (!nat_is_float(o->type))
    return nat_compare_ints(o->b, o->type.width, o->type.kind == NAT_SIGNED, (scalar_direction)direction, o->in[0],
                            o->in[1]);
  if (o->op.order == SCALAR_ORDER_TOTAL) return nat_compare_total(o);
  return nat_op(o->b, NAT_FCMP, o->type.width, o->in[0], o->in[1], NAT_NONE, predicates[direction]);
}

static uint32_t nat_select_op(const nat_operands *o) {
  nat_body *b = o->b;
  uint32_t yes = o->in[1], no = o->in[2];
  if (o->result.kind == NAT_PRED && !b->failed) {
    uint32_t w = b->values[o->in[0]].width;
    yes = nat_mask(b, yes, w), no = nat_mask(b, no, w);
  }
  return nat_select(b, o->in[0], yes, no);
}

/* --- all --- */

uint32_t nat_op_width(const kernel *k, const kernel_value *v) {
  nat_type t = nat_lane_type_of((base_dtype)k->values[v->in[0]].dtype);
  bool divides = v->op.code == SCALAR_DIVIDE || v->op.code == SCALAR_REMAINDER;
  if (v->op.code == SCALAR_MULHI) return t.width < 8 ? 2 * t.width : 8;
  bool product = v->op.code == SCALAR_POWER || v->op.code == SCALAR_MULTIPLY;
  if (t.width == 1 && t.kind != NAT_PRED && t.kind != NAT_CODE && product) return 2;
  if (!nat_is_float(t) && t.kind != NAT_CODE) return !divides || t.kind == NAT_PRED ? 1 : t.width < 4 ? 4 : 8;
  bool turns = t.width == 4 && nat_turn((scalar_code)v->op.code) >= 0;
  uint32_t width = nat_function_width(turns ? NAT_NEAR : nat_function_type_of(t), (scalar_code)v->op.code);
  return width ? width : 1;
}

/* Whether of numbers of any type of floats the result is one. */
static bool nat_needs_no_rounding(scalar_code code) {
  static const uint8_t such[] = {
      SCALAR_ABS,   SCALAR_NEGATE, SCALAR_SIGN, SCALAR_MAXIMUM,           SCALAR_MINIMUM,
      SCALAR_CLAMP, SCALAR_FLOOR,  SCALAR_CEIL, SCALAR_ROUND_NEAREST_AFZ, SCALAR_ROUND_NEAREST_EVEN};
  return memchr(such, code, sizeof such) != NULL;
}

static uint32_t nat_plain_op(const nat_operands *o) {
  switch (o->op.code) {
    case SCALAR_COPY:
      return o->in[0];
    case SCALAR_REAL: /* of reals */
      return o->in[0];
    case SCALAR_IMAG:
      return nat_constant(o->b, o->type.width, 0);
    case SCALAR_REDUCE_PRECISION:
      return nat_round(o->b, nat_reduce_precision(o), o->result);
    case SCALAR_CONVERT:
      return nat_convert(o);
    case SCALAR_COMPARE:
      return nat_compare(o);
    case SCALAR_SELECT:
      return nat_select_op(o);
    default:
      break;
  }
  if (o->type.kind == NAT_PRED) return nat_pred_op(o);
  if (nat_is_float(o->type)) {
    bool rounds = nat_is_float(o->result) && !nat_needs_no_rounding((scalar_code)o->op.code);
    return rounds ? nat_round(o->b, nat_float_op(o), o->result) : nat_float_op(o);
  }
  return o->type.kind == NAT_SIGNED ? nat_signed_op(o) : nat_int_op(o);
}

/* Whether the low bits of the result are those of the operands' low bits, of integers of few. */
static bool nat_looks_at_low_bits(const nat_operands *o) {
  static const uint8_t such[] = {SCALAR_ADD, SCALAR_SUBTRACT, SCALAR_MULTIPLY, SCALAR_NEGATE,
                                 SCALAR_AND, SCALAR_OR,       SCALAR_XOR,      SCALAR_NOT};
  return o->type.bits && memchr(such, o->op.code, sizeof such);
}

/* Floats that lanes have the codes of are f32 in between. Integers of few bits are cut to them. */
uint32_t nat_any_op(const nat_operands *o) {
  static const nat_type wide = {NAT_FLOAT, 4, 4, 0, 0};
  nat_operands p = *o;
  bool codes = o->type.kind == NAT_CODE;
  if (o->type.kind == NAT_COMPLEX || o->result.kind == NAT_COMPLEX) return nat_complex_op(o);
  if (o->op.code == SCALAR_SELECT || o->op.code == SCALAR_COPY) return nat_plain_op(o);
  if (codes && o->op.code == SCALAR_COMPARE && o->op.order == SCALAR_ORDER_TOTAL) return nat_give_up(o);
  uint32_t as_it_is = codes ? nat_code_op(o) : NAT_NONE;
  if (as_it_is != NAT_NONE) return as_it_is;
  for (uint32_t j = 0; codes && j < o->n_in; j++) p.in[j] = nat_decode(o->b, o->in[j], o->type);
  if (codes) p.type = wide;
  bool halved = o->result.kind == NAT_BF16 || (o->result.kind == NAT_F16 && o->type.of != XLAC_F8E8M0FNU);
  if (codes && halved && o->op.code == SCALAR_CONVERT) return p.in[0]; /* they hold all of fewer bits */
  if (o->result.kind == NAT_CODE) {
    p.result = wide;
    uint32_t r = o->op.code == SCALAR_CONVERT ? nat_convert_odd(&p) : nat_plain_op(&p);
    return nat_encode(o->b, r, o->result);
  }
  if (!p.type.bits && !p.result.bits) return nat_plain_op(&p);
  for (uint32_t j = 0; nat_looks_at_low_bits(&p) && j < p.n_in; j++) p.in[j] = nat_uncut(o->b, p.in[j], p.type);
  return nat_few_bits_fit(&p) ? nat_few_bits(o->b, nat_plain_op(&p), p.result) : nat_give_up(o);
}

uint32_t nat_combine(nat_body *b, scalar_code by, nat_type t, uint32_t x, uint32_t y) {
  nat_operands o = {.b = b, .op = {.code = (uint8_t)by}, .type = t, .result = t, .in = {x, y, 0}, .n_in = 2};
  if (t.kind == NAT_COMPLEX) b->failed = true; /* sums of complex numbers are the VM's */
  return b->failed ? 0 : nat_any_op(&o);
}

uint32_t nat_lower_op(nat_lower_run *r, const kernel_value *v) {
  nat_operands o = {.b = r->b, .op = v->op, .result = nat_lane_type_of((base_dtype)v->dtype)};
  assert(v->kind == KERNEL_OP && v->n_in >= 1);
  o.type = nat_lane_type_of((base_dtype)r->b->k->values[v->in[0]].dtype);
  o.n_in = v->n_in;
  for (uint32_t j = 0; j < v->n_in; j++) o.in[j] = r->values[v->in[j]];
  return nat_any_op(&o);
}
