/* Complex numbers of two f32. A value is as it is in memory, in lanes of 8 bytes with the real part in the low half, so
 * that loads, stores, gathers and selections have nothing to do with its parts. Where they are computed with, they are
 * lanes of 4 bytes; what an op joined is not split again. Definitions: base/math/math_complex.h. */
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
  uint32_t re = nat_resize(b, z.re, 8, false);
  if (b->failed) return 0;
  const nat_value *im = &b->values[z.im];
  if (im->kind == NAT_CONSTANT && im->bits == 0) return re;
  return nat_op2(b, NAT_OR, 8, re, nat_shift(b, NAT_SHL, 8, nat_resize(b, z.im, 8, false), 32));
}

/* --- ops --- */

static uint32_t complex_compare(const nat_operands *o) {
  nat_body *b = o->b;
  bool equal = o->op.direction == SCALAR_EQ;
  if (!equal && o->op.direction != SCALAR_NE) return nat_give_up(o);
  nat_parts x = nat_split(b, o->in[0]), y = nat_split(b, o->in[1]);
  uint32_t re = nat_op(b, NAT_FCMP, 4, x.re, y.re, NAT_NONE, equal ? 0 : 4);
  uint32_t im = nat_op(b, NAT_FCMP, 4, x.im, y.im, NAT_NONE, equal ? 0 : 4);
  return nat_mask_op(b, equal ? NAT_AND : NAT_OR, re, im);
}

/* A real number becomes an f32 first. */
static uint32_t complex_convert(const nat_operands *o) {
  nat_operands real = *o;
  if (o->type.kind == NAT_COMPLEX) return o->result.kind == NAT_COMPLEX ? o->in[0] : nat_give_up(o);
  real.result = (nat_type){NAT_FLOAT, 4, 4, 0, 0};
  return nat_join(o->b, (nat_parts){nat_any_op(&real), nat_constant(o->b, 4, 0)});
}

/* What the generator made of the definition. */
static uint32_t complex_function(const nat_operands *o, scalar_code code, nat_parts x) {
  nat_parts y = o->n_in > 1 ? nat_split(o->b, o->in[1]) : x;
  const uint32_t arguments[] = {x.re, x.im, y.re, y.im};
  return nat_function_width(NAT_C8, code) ? nat_function(o->b, NAT_C8, code, arguments) : nat_give_up(o);
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
    default:
      return complex_function(o, (scalar_code)o->op.code, nat_split(o->b, o->in[0]));
  }
}

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
