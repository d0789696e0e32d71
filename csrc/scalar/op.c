/* Ops on scalars: their table, made of ops.def, and the way there from ops of HLO. */
#include "op.h"

/* The opcode of each code, and the code of each opcode. */
#define SCALAR_COLUMN , 1
#include "columns.h"
#define SOP_OPCODE(code, ...) [SCALAR_##code] = IR_OP_##code,
#define SOP_CODE(code, ...) [IR_OP_##code] = SCALAR_##code,
static const uint16_t sop_opcodes[SCALAR_CODES] = {
#define OP(code, text, arity, columns) SCALAR_ROW(SOP_OPCODE, SCALAR_NOTHING, code columns)
#include "../ir/ops.def"
#undef OP
};
static const uint8_t sop_codes[IR_OP_COUNT] = {
#define OP(code, text, arity, columns) SCALAR_ROW(SOP_CODE, SCALAR_NOTHING, code columns)
#include "../ir/ops.def"
#undef OP
};
_Static_assert(SCALAR_CODES <= UINT8_MAX, "codes are bytes");
#undef SCALAR_COLUMN

/* A row that has a scalar expression says that it is elementwise, and the other way round; next_after alone has loops
 * of its own in each executor. */
enum { SOP_IS_SCALAR = 1 << 16 };
_Static_assert((int)IR_QUANT_REAL < (int)SOP_IS_SCALAR, "the last of the traits");
#define SCALAR_COLUMN | SOP_IS_SCALAR
#include "../ir/ops_columns.h"
#include "columns.h"
#undef TRAITS
#define TRAITS(set) | (set)
#define SOP_HAS(set, bit) (((set) & (bit)) != 0)
#define OP(code, text, arity, columns)                                                                             \
  _Static_assert(                                                                                                  \
      SOP_HAS(0 columns, IR_ELEMENTWISE) == SOP_HAS(0 columns, SOP_IS_SCALAR) || IR_OP_##code == IR_OP_NEXT_AFTER, \
      text " needs IR_ELEMENTWISE and an expression, or neither");
#include "../ir/ops.def"
#undef OP
#undef SCALAR_COLUMN
#include "../ir/ops_columns.h"

scalar_code scalar_code_of(ir_opcode opcode) {
  assert(opcode < IR_OP_COUNT);
  return (scalar_code)sop_codes[opcode];
}

ir_opcode scalar_opcode(scalar_code code) {
  assert(code > SCALAR_NONE && code < SCALAR_CODES);
  return (ir_opcode)sop_opcodes[code];
}

uint32_t scalar_arity(scalar_code code) {
  return (uint32_t)ir_opcode_info(scalar_opcode(code))->arity;
}

bool scalar_is_commutative(scalar_code code) {
  return ir_opcode_has(scalar_opcode(code), IR_COMMUTATIVE);
}

/* --- from HLO and back to its text --- */

_Static_assert((int)SCALAR_EQ == (int)IR_DIRECTION_EQ && (int)SCALAR_LT == (int)IR_DIRECTION_LT, "the attribute's");
_Static_assert((int)SCALAR_ORDER_FLOAT == (int)IR_COMPARISON_FLOAT &&
                   (int)SCALAR_ORDER_TOTAL == (int)IR_COMPARISON_TOTALORDER &&
                   (int)SCALAR_ORDER_UNSIGNED == (int)IR_COMPARISON_UNSIGNED,
               "the attribute's");

/* More bits than any type has are as good as 255. */
static uint8_t sop_bits(const ir_op *op, ir_attr_key key) {
  int64_t bits = ir_get_int(op, key, UINT8_MAX);
  return (uint8_t)(bits < 0 || bits > UINT8_MAX ? UINT8_MAX : bits);
}

bool scalar_op_of(const ir_op *op, scalar_op *out) {
  assert(op && out);
  *out = (scalar_op){.code = (uint8_t)scalar_code_of((ir_opcode)op->opcode)};
  if (out->code == SCALAR_REDUCE_PRECISION) {
    out->exponent_bits = sop_bits(op, IR_ATTR_EXPONENT_BITS);
    out->mantissa_bits = sop_bits(op, IR_ATTR_MANTISSA_BITS);
  }
  if (out->code != SCALAR_COMPARE) return out->code != SCALAR_NONE;
  out->direction = (uint8_t)ir_get_word(op, IR_ATTR_DIRECTION);
  out->order = (uint8_t)ir_get_word(op, IR_ATTR_TYPE);
  return true;
}

/* The words are those of the attributes, which the enums follow. */
void scalar_put_immediates(base_text *out, const scalar_op *op) {
  const char *const *directions = ir_attr_words(IR_OP_COMPARE, IR_ATTR_DIRECTION);
  const char *const *orders = ir_attr_words(IR_OP_COMPARE, IR_ATTR_TYPE);
  if (op->code == SCALAR_REDUCE_PRECISION)
    base_putf(out, ", exponent_bits=%u, mantissa_bits=%u", op->exponent_bits, op->mantissa_bits);
  if (op->code != SCALAR_COMPARE) return;
  assert(op->direction < SCALAR_DIRECTIONS && op->order < SCALAR_ORDERS);
  base_putf(out, ", direction=%s", directions[op->direction]);
  if (op->order) base_putf(out, ", type=%s", orders[op->order]);
}

/* --- types --- */

/* Whether all operands have the type of the result. On which types an op has a meaning, its loops say. */
static bool sop_is_of_one_type(uint32_t n_in, const uint8_t *in, uint8_t out) {
  for (uint32_t j = 0; j < n_in; j++)
    if (in[j] != out) return false;
  return true;
}

bool scalar_types_fit(const scalar_op *op, uint32_t n_in, const uint8_t *in, uint8_t out) {
  assert(in && out < BASE_DTYPE_COUNT);
  if (op->code == SCALAR_NONE || op->code >= SCALAR_CODES || n_in != scalar_arity((scalar_code)op->code)) return false;
  switch ((scalar_code)op->code) {
    case SCALAR_COMPARE:
      return in[0] == in[1] && out == XLAC_PRED && op->direction < SCALAR_DIRECTIONS && op->order < SCALAR_ORDERS;
    case SCALAR_SELECT:
      return in[0] == XLAC_PRED && in[1] == out && in[2] == out;
    case SCALAR_CONVERT:
      return true;
    case SCALAR_STOCHASTIC_CONVERT:
      return base_dtype_is_unsigned((base_dtype)in[1]);
    case SCALAR_IS_FINITE:
    case SCALAR_IS_INF:
    case SCALAR_IS_POS_INF:
    case SCALAR_IS_NEG_INF:
      return base_dtype_is_float((base_dtype)in[0]) && out == XLAC_PRED;
    case SCALAR_COMPLEX:
      return in[0] == in[1] && base_dtype_is_complex((base_dtype)out) && base_dtype_real_part((base_dtype)out) == in[0];
    case SCALAR_ABS:
    case SCALAR_REAL:
    case SCALAR_IMAG:
      return out == base_dtype_real_part((base_dtype)in[0]);
    default:
      return sop_is_of_one_type(n_in, in, out);
  }
}
