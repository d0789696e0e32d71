/* Ops that loops of several ops are made of, one row each: chains (vm_chain_steps.h), threaded
 * code (list_ops.h). On floats each is one instruction of a vector. */
#ifndef XLAC_SCALAR_LINKS_H
#define XLAC_SCALAR_LINKS_H

#include "op.h"

/* LINK(name, code, side, expression): the op on the value so far, x, which is its operand number `side`, and
 * another, y. */
#define SCALAR_LINKS(LINK)           \
  LINK(add, ADD, 0, x + y)           \
  LINK(multiply, MULTIPLY, 0, x *y)  \
  LINK(subtract, SUBTRACT, 0, x - y) \
  LINK(from, SUBTRACT, 1, y - x)

#define SCALAR_LINK_NUMBER(name, code, side, expr) SCALAR_LINK_##name,
typedef enum scalar_link { SCALAR_LINKS(SCALAR_LINK_NUMBER) SCALAR_LINK_COUNT } scalar_link;

/* The ops, whichever side: OP(code, what else is given). */
#define SCALAR_LINKED(OP, ...) OP(ADD, __VA_ARGS__) OP(SUBTRACT, __VA_ARGS__) OP(MULTIPLY, __VA_ARGS__)
#define SCALAR_LINKED_AGAIN(OP, ...) OP(ADD, __VA_ARGS__) OP(SUBTRACT, __VA_ARGS__) OP(MULTIPLY, __VA_ARGS__)

/* The link of op `code` with the value so far as its operand number `side`; -1: there is none. */
static inline int scalar_link_of(unsigned code, unsigned side) {
  static const struct {
    uint8_t code, side;
  } rows[] = {
#define SCALAR_LINK_ROW(name, code, side, expr) {SCALAR_##code, side},
      SCALAR_LINKS(SCALAR_LINK_ROW)
#undef SCALAR_LINK_ROW
  };
  for (int i = 0; i < SCALAR_LINK_COUNT; i++)
    if (rows[i].code == code && (rows[i].side == side || scalar_is_commutative((scalar_code)code))) return i;
  return -1;
}

/* Comparisons: DIRECTION(name, code, operator, what else is given), in the order of scalar_direction. */
#define SCALAR_COMPARISONS(DIRECTION, ...) \
  DIRECTION(eq, EQ, ==, __VA_ARGS__)       \
  DIRECTION(ne, NE, !=, __VA_ARGS__)       \
  DIRECTION(ge, GE, >=, __VA_ARGS__)       \
  DIRECTION(gt, GT, >, __VA_ARGS__)        \
  DIRECTION(le, LE, <=, __VA_ARGS__)       \
  DIRECTION(lt, LT, <, __VA_ARGS__)

#endif
