/* Instructions on one lane without a row in ops.def: comparisons, and two ops in one. x, y, z: the operands. */
#ifndef XLAC_CPU_THREADED_LIST_OPS_H
#define XLAC_CPU_THREADED_LIST_OPS_H

#include "../../scalar/links.h"

/* OP(name, type, expression) for each type and direction. */
#define LISTS_COMPARE(name, code, operator, OP, s, T) OP(name##_##s, T, x operator y)
#define LISTS_COMPARE_OF(OP, s, T) SCALAR_COMPARISONS(LISTS_COMPARE, OP, s, T)
#define LISTS_COMPARES(OP)            \
  LISTS_COMPARE_OF(OP, s32, int32_t)  \
  LISTS_COMPARE_OF(OP, u32, uint32_t) \
  LISTS_COMPARE_OF(OP, s64, int64_t)  \
  LISTS_COMPARE_OF(OP, u64, uint64_t) \
  LISTS_COMPARE_OF(OP, f32, float)    \
  LISTS_COMPARE_OF(OP, f64, double)

/* Two ops on floats, of which the second has the first's result t on its left or its right: OP(name, type, first,
 * second), by type, the first op, the second, the side. Both round. */
#define LISTS_SIDES(b, OP, s, T, a)                                                   \
  OP(a##_##b##_left_##s, T, lists_do_##a##_##s(x, y, 0), lists_do_##b##_##s(t, z, 0)) \
  OP(a##_##b##_right_##s, T, lists_do_##a##_##s(x, y, 0), lists_do_##b##_##s(z, t, 0))
#define LISTS_SECONDS(a, OP, s, T) SCALAR_LINKED_AGAIN(LISTS_SIDES, OP, s, T, a)
#define LISTS_PAIRS(OP) SCALAR_LINKED(LISTS_SECONDS, OP, f32, float) SCALAR_LINKED(LISTS_SECONDS, OP, f64, double)

#endif
