/* Ops on scalars, as plain data: what one op computes of one element of each operand, but for their types. The rows of
 * ops.def that have a scalar expression, or a loop of their own, are the opcodes; what HLO writes as attributes are
 * numbers here. Nothing points back into the IR. Called computations become programs of such ops (program.h), and the
 * values of kernels are such ops. Constant tables only: any thread. */
#ifndef XLAC_SCALAR_OP_H
#define XLAC_SCALAR_OP_H

#include "../ir/ir.h"

/* SCALAR_ROW(SOME, NONE, code columns) is SOME(code, ...) where the row has one of the columns of columns.h, each of
 * which is `, 1`, else NONE(code): the columns move SOME to the place that is chosen. */
#define SCALAR_PICK(code, a, b, c, d, e, f, g, choice, ...) choice
#define SCALAR_EXPAND(choice, ...) choice(__VA_ARGS__)
#define SCALAR_ROW(SOME, NONE, ...) \
  SCALAR_EXPAND(SCALAR_PICK(__VA_ARGS__, SOME, SOME, SOME, SOME, SOME, SOME, SOME, NONE, ), __VA_ARGS__)
#define SCALAR_NOTHING(...)

/* SCALAR_ADD and so on, in the order of the rows. */
#define SCALAR_COLUMN , 1
#include "../ir/ops_columns.h"
#include "columns.h"
#define SCALAR_NAME(code, ...) SCALAR_##code,
#define OP(code, text, arity, columns) SCALAR_ROW(SCALAR_NAME, SCALAR_NOTHING, code columns)
typedef enum scalar_code {
  SCALAR_NONE = 0,
#include "../ir/ops.def"
  SCALAR_CODES
} scalar_code;
#undef OP
#undef SCALAR_NAME
#undef SCALAR_COLUMN
#include "../ir/ops_columns.h"

/* Of compare, in the order of the tables of its loops. */
typedef enum scalar_direction {
  SCALAR_EQ,
  SCALAR_NE,
  SCALAR_GE,
  SCALAR_GT,
  SCALAR_LE,
  SCALAR_LT,
  SCALAR_DIRECTIONS
} scalar_direction;
/* How compare orders: as written, since kernels are text too. Only TOTALORDER differs from what the type says. */
typedef enum scalar_order {
  SCALAR_ORDER_OF_TYPE,
  SCALAR_ORDER_FLOAT,
  SCALAR_ORDER_TOTAL,
  SCALAR_ORDER_SIGNED,
  SCALAR_ORDER_UNSIGNED,
  SCALAR_ORDERS
} scalar_order;

/* What does not belong to its opcode is zero, so that equal ops have equal bytes. */
typedef struct scalar_op {
  uint8_t code;                         /* scalar_code */
  uint8_t direction, order;             /* compare */
  uint8_t exponent_bits, mantissa_bits; /* reduce-precision; 255: that many or more, which changes nothing */
} scalar_op;

/* The code of an opcode; SCALAR_NONE: it is not an op on scalars. */
scalar_code scalar_code_of(ir_opcode opcode);
/* The op, without its operands and types; false where it is not an op on scalars. */
bool scalar_op_of(const ir_op *op, scalar_op *out);
/* The opcode whose row it is: for its text, and what it costs. */
ir_opcode scalar_opcode(scalar_code code);
static inline const char *scalar_text(scalar_code code) {
  return ir_opcode_text(scalar_opcode(code));
}
/* 1 to 3. */
uint32_t scalar_arity(scalar_code code);
bool scalar_is_commutative(scalar_code code);
/* Whether operands of types in[], of which there are n_in, and a result of type `out` go together. Whether the op has a
 * meaning for them, its loop says (scalar_loop_of). */
bool scalar_types_fit(const scalar_op *op, uint32_t n_in, const uint8_t *in, uint8_t out);
/* ", direction=LT" and the like, as HLO's text has it. */
void scalar_put_immediates(base_text *out, const scalar_op *op);

#endif
