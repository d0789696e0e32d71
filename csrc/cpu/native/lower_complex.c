/* Complex numbers of two f32. A value is as it is in memory, in lanes of 8 bytes with the real part in the low half, so
 * that loads, stores, gathers and selections have nothing to do with its parts. Where they are computed with, they are
 * lanes of 4 bytes; what an op joined is not split again. Definitions: base/math/math_complex.h.
 *
 * Those of two f64 are two values (NAT_PAIR) of 8 bytes a lane: what is loaded is taken apart, and woven together again
 * before it is stored. */
#include "functions.h"
#include "lower_convert.h"

static bool complex_is_made_by(const nat_body *b, uint32_t x, nat_lane lane) {
  const nat_value *v = &b->values[x];
  return v->kind == NAT_OP && v->width == 8 && v->op == b->target->ops[lane][3];
}

/* The upper half of x where x is 4 bytes that were moved there; else NAT_NONE. */
static uint32_t complex_moved_up(const nat_body *b, uint32_t x) {
  const nat_value *v = &b->values[x];
  bool moved = complex_is_made_by(b, x, NAT_SHL) && v->number == 32 && complex_is_made_by(b, v->in[0], NAT_ZX4);
  return moved ? b->values[v->in[0]].in[0] : NAT_NONE;
}

nat_parts nat_split(nat_body *b, uint32_t x) {
  if (b->failed) return (nat_parts){0, 0};
  const nat_value *v = &b->values[x];
  assert(v->width == 8);
  if (v->kind == NAT_PAIR) return (nat_parts){v->in[0], v->in[1]};
  if (v->kind == NAT_CONSTANT) {
    uint64_t bits = v->bits;
    uint32_t re = nat_constant(b, 4, bits & UINT32_MAX);
    return (nat_parts){re, nat_constant(b, 4, bits >> 32)};
  }
  if (complex_is_made_by(b, x, NAT_ZX4)) return (nat_parts){v->in[0], nat_constant(b, 4, 0)};
  if (complex_is_made_by(b, x, NAT_OR) && complex_is_made_by(b, v->in[0], NAT_ZX4)) {
    uint32_t im = complex_moved_up(b, v->in[1]);
    if (im != NAT_NONE) return (nat_parts){b->values[v->in[0]].in[0], im};
  }
  uint32_t high = nat_shift(b, NAT_SHR, 8, x, 32), re = nat_resize(b, x, 4, false);
  return (nat_parts){re, nat_resize(b, high, 4, false)};
}

uint32_t nat_join(nat_body *b, nat_parts z) {
  if (!b->failed && b->values[z.re].width == 8) return nat_pair(b, z.re, z.im);
  uint32_t re = nat_resize(b, z.re, 8, false);
  if (b->failed) return 0;
  const nat_value *im = &b->values[z.im];
  if (im->kind == NAT_CONSTANT && im->bits == 0) return re;
  return nat_op2(b, NAT_OR, 8, re, nat_shift(b, NAT_SHL, 8, nat_resize(b, z.im, 8, false), 32));
}

/* --- ops --- */

/* Bytes of a part. */
static uint32_t complex_width(nat_type t) {
  return t.bytes / 2;
}

static uint32_t complex_compare(const nat_operands *o) {
  nat_body *b = o->b;
  bool equal = o->op.direction == SCALAR_EQ;
  if (!equal && o->op.direction != SCALAR_NE) return nat_give_up(o);
  nat_parts x = nat_split(b, o->in[0]), y = nat_split(b, o->in[1]);
  uint32_t w = complex_width(o->type);
  uint32_t re = nat_op(b, NAT_FCMP, w, x.re, y.re, NAT_NONE, equal ? 0 : 4);
  uint32_t im = nat_op(b, NAT_FCMP, w, x.im, y.im, NAT_NONE, equal ? 0 : 4);
  return nat_mask_op(b, equal ? NAT_AND : NAT_OR, re, im);
}

/* A real number becomes one of the parts' type first. */
static uint32_t complex_convert(const nat_operands *o) {
  nat_operands real = *o;
  nat_body *b = o->b;
  uint32_t from = complex_width(o->type), to = complex_width(o->result);
  if (o->result.kind != NAT_COMPLEX) return nat_give_up(o);
  if (o->type.kind == NAT_COMPLEX && from == to) return o->in[0];
  if (o->type.kind == NAT_COMPLEX) {
    nat_parts x = nat_split(b, o->in[0]);
    nat_lane lane = from < to ? NAT_F4_F8 : NAT_F8_F4;
    uint32_t re = nat_op1(b, lane, to, x.re);
    return nat_join(b, (nat_parts){re, nat_op1(b, lane, to, x.im)});
  }
  real.result = (nat_type){NAT_FLOAT, (uint8_t)to, (uint8_t)to, 0, 0};
  return nat_join(b, (nat_parts){nat_any_op(&real), nat_constant(b, to, 0)});
}

/* What the generator made of the definition. */
static uint32_t complex_function(const nat_operands *o, scalar_code code, nat_parts x) {
  nat_parts y = o->n_in > 1 ? nat_split(o->b, o->in[1]) : x;
  const uint32_t arguments[] = {x.re, x.im, y.re, y.im};
  return nat_function_width(NAT_C8, code) ? nat_function(o->b, NAT_C8, code, arguments) : nat_give_up(o);
}

/* The op's own, for what machine code leaves to it. */
static bool complex_loop(const nat_operands *o, base_dtype t, scalar_loop *l) {
  const uint8_t types[3] = {(uint8_t)t, (uint8_t)t, (uint8_t)t};
  return scalar_loop_of(&o->op, o->n_in, types, (uint8_t)t, l) && !l->work && !l->wraps;
}

/* Where both parts are NaN, the operands' infinities decide. */
static uint32_t complex_quotient(const nat_operands *o) {
  nat_body *b = o->b;
  scalar_loop l;
  uint32_t near = complex_function(o, SCALAR_DIVIDE, nat_split(b, o->in[0]));
  if (b->failed || !complex_loop(o, XLAC_C64, &l)) return nat_give_up(o);
  nat_parts r = nat_split(b, near);
  uint32_t re = nat_op(b, NAT_FCMP, 4, r.re, r.re, NAT_NONE, 3), im = nat_op(b, NAT_FCMP, 4, r.im, r.im, NAT_NONE, 3);
  return nat_far_loop(b, (uintptr_t)l.fn, false, near, o->in[0], o->in[1], nat_mask_op(b, NAT_AND, re, im));
}

/* -i g(iz), or for cosine g(iz): MATH_TURNS in base/math. */
static uint32_t complex_turned(const nat_operands *o, scalar_code code, bool back) {
  nat_body *b = o->b;
  nat_parts x = nat_split(b, o->in[0]);
  uint32_t sign = nat_sign_bit(b, 4);
  uint32_t r = complex_function(o, code, (nat_parts){nat_op2(b, NAT_XOR, 4, x.im, sign), x.re});
  if (!back || b->failed) return r;
  nat_parts z = nat_split(b, r);
  return nat_join(b, (nat_parts){z.im, nat_op2(b, NAT_XOR, 4, z.re, sign)});
}

/* acos's parts, exchanged; the real one is not below 0, the other has the operand's sign. */
static uint32_t complex_acosh(const nat_operands *o) {
  nat_body *b = o->b;
  nat_parts x = nat_split(b, o->in[0]), r = nat_split(b, complex_function(o, SCALAR_ACOS, x));
  uint32_t sign = nat_sign_bit(b, 4);
  uint32_t im = nat_op2(b, NAT_OR, 4, nat_op2(b, NAT_ANDN, 4, sign, r.re), nat_op2(b, NAT_AND, 4, x.im, sign));
  return nat_join(b, (nat_parts){nat_op2(b, NAT_ANDN, 4, sign, r.im), im});
}

static uint32_t complex_function_of(const nat_operands *o) {
  switch (o->op.code) {
    case SCALAR_SINE:
      return complex_turned(o, SCALAR_SINH, true);
    case SCALAR_COSINE:
      return complex_turned(o, SCALAR_COSH, false);
    case SCALAR_TAN:
    case SCALAR_CHLO_TAN:
      return complex_turned(o, SCALAR_TANH, true);
    case SCALAR_ASINH:
      return complex_turned(o, SCALAR_ASIN, true);
    case SCALAR_ATAN:
      return complex_turned(o, SCALAR_ATANH, true);
    case SCALAR_ACOSH:
      return complex_acosh(o);
    case SCALAR_DIVIDE:
      return complex_quotient(o);
    default:
      return complex_function(o, (scalar_code)o->op.code, nat_split(o->b, o->in[0]));
  }
}

/* --- of two f64 --- */

/* What an op does with one part of each operand. */
static uint32_t wide_by_parts(const nat_operands *o, nat_lane lane) {
  nat_parts x = nat_split(o->b, o->in[0]), y = nat_split(o->b, o->in[1]);
  uint32_t re = nat_op2(o->b, lane, 8, x.re, y.re);
  return nat_join(o->b, (nat_parts){re, nat_op2(o->b, lane, 8, x.im, y.im)});
}

static uint32_t wide_turned(const nat_operands *o, bool re) {
  nat_body *b = o->b;
  nat_parts x = nat_split(b, o->in[0]);
  uint32_t sign = nat_sign_bit(b, 8);
  if (re) x.re = nat_op2(b, NAT_XOR, 8, x.re, sign);
  return nat_join(b, (nat_parts){x.re, nat_op2(b, NAT_XOR, 8, x.im, sign)});
}

/* near's vectors, as they are in memory, but where an operand is out of the ordinary, which its op's loop takes. */
static uint32_t wide_unless_far(const nat_operands *o, uintptr_t fn, nat_parts near, uint32_t far) {
  nat_body *b = o->b;
  nat_parts x = nat_split(b, o->in[0]), y = o->n_in > 1 ? nat_split(b, o->in[1]) : x;
  uint32_t half[2];
  for (unsigned i = 0; i < 2; i++) {
    uint32_t of_x = nat_weave(b, x.re, x.im, i), of_y = o->n_in > 1 ? nat_weave(b, y.re, y.im, i) : NAT_NONE;
    half[i] = nat_far_loop(b, fn, true, nat_weave(b, near.re, near.im, i), of_x, of_y, far);
  }
  uint32_t re = nat_weave(b, half[0], half[1], 2);
  return nat_join(b, (nat_parts){re, nat_weave(b, half[0], half[1], 3)});
}

/* Of which other function it is made, at which angle (MATH_TURNS in base/math). */
typedef struct wide_turn {
  uint8_t of;
  bool at, back; /* f(iz), and -i times that */
} wide_turn;
static const wide_turn wide_turns[SCALAR_CODES] = {
    [SCALAR_SINE] = {SCALAR_SINH, true, true},    [SCALAR_COSINE] = {SCALAR_COSH, true, false},
    [SCALAR_TAN] = {SCALAR_TANH, true, true},     [SCALAR_CHLO_TAN] = {SCALAR_TANH, true, true},
    [SCALAR_ASINH] = {SCALAR_ASIN, true, true},   [SCALAR_ATAN] = {SCALAR_ATANH, true, true},
    [SCALAR_ACOSH] = {SCALAR_ACOS, false, false},
};

static uint32_t wide_turned_back(nat_body *b, scalar_code code, nat_parts x, uint32_t value) {
  nat_parts r = nat_split(b, value);
  uint32_t sign = nat_sign_bit(b, 8);
  if (wide_turns[code].back) return nat_join(b, (nat_parts){r.im, nat_op2(b, NAT_XOR, 8, r.re, sign)});
  if (code != SCALAR_ACOSH) return value;
  uint32_t im = nat_op2(b, NAT_OR, 8, nat_op2(b, NAT_ANDN, 8, sign, r.re), nat_op2(b, NAT_AND, 8, x.im, sign));
  return nat_join(b, (nat_parts){nat_op2(b, NAT_ANDN, 8, sign, r.im), im});
}

/* By the definition's short way, which has a condition where it holds for ordinary operands alone. */
static uint32_t wide_function(const nat_operands *o) {
  nat_body *b = o->b;
  wide_turn turn = wide_turns[o->op.code];
  scalar_code code = (scalar_code)(turn.of ? turn.of : o->op.code);
  scalar_loop l;
  nat_parts x = nat_split(b, o->in[0]), y = o->n_in > 1 ? nat_split(b, o->in[1]) : x;
  if (b->failed) return 0;
  uint32_t arguments[] = {x.re, x.im, y.re, y.im};
  if (turn.at) arguments[0] = nat_op2(b, NAT_XOR, 8, x.im, nat_sign_bit(b, 8)), arguments[1] = x.re;
  if (b->failed || !nat_function_width(NAT_C16, code)) return nat_give_up(o);
  uint32_t r = nat_function(b, NAT_C16, code, arguments);
  if (turn.of) r = wide_turned_back(b, (scalar_code)o->op.code, x, r);
  if (!nat_function_width(NAT_WILD, code)) return r;
  if (!complex_loop(o, XLAC_C128, &l)) return nat_give_up(o);
  uint32_t far = nat_function(b, NAT_WILD, code, arguments);
  return b->failed ? 0 : wide_unless_far(o, (uintptr_t)l.fn, nat_split(b, r), far);
}

static uint32_t wide_op(const nat_operands *o) {
  switch (o->op.code) {
    case SCALAR_NEGATE:
      return wide_turned(o, true);
    case SCALAR_CONJ:
      return wide_turned(o, false);
    case SCALAR_ADD:
      return wide_by_parts(o, NAT_FADD);
    case SCALAR_SUBTRACT:
      return wide_by_parts(o, NAT_FSUB);
    default:
      return wide_function(o);
  }
}

/* --- all --- */

uint32_t nat_complex_op(const nat_operands *o) {
  const uint64_t im_sign = (uint64_t)1 << 63, re_sign = (uint64_t)1 << 31;
  nat_body *b = o->b;
  uint32_t x = o->in[0], y = o->in[1];
  if (b->failed) return 0;
  switch (o->op.code) {
    case SCALAR_COPY:
      return x;
    case SCALAR_SELECT:
      return nat_select(b, x, y, o->in[2]);
    case SCALAR_REAL:
      return nat_split(b, x).re;
    case SCALAR_IMAG:
      return nat_split(b, x).im;
    case SCALAR_COMPLEX:
      return nat_join(b, (nat_parts){x, y});
    case SCALAR_CONVERT:
      return complex_convert(o);
    case SCALAR_COMPARE:
      return complex_compare(o);
    default:
      break;
  }
  if (nat_is_wide(o->type)) return wide_op(o);
  switch (o->op.code) {
    case SCALAR_NEGATE:
      return nat_op2(b, NAT_XOR, 8, x, nat_constant(b, 8, re_sign | im_sign));
    case SCALAR_CONJ:
      return nat_op2(b, NAT_XOR, 8, x, nat_constant(b, 8, im_sign));
    case SCALAR_ADD: /* these two of all parts at once */
      return nat_op_within(b, NAT_FADD, 4, 8, x, y);
    case SCALAR_SUBTRACT:
      return nat_op_within(b, NAT_FSUB, 4, 8, x, y);
    default:
      return complex_function_of(o);
  }
}
