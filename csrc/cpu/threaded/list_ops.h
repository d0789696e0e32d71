/* Instructions on one lane that are no row of ops.def: comparisons, and two ops in one. x, y and z are the operands. */
#ifndef XLAC_CPU_THREADED_LIST_OPS_H
#define XLAC_CPU_THREADED_LIST_OPS_H

/* OP(name, type, expression), by type in the order of scalar_direction. */
#define LISTS_COMPARE(OP, s, T) \
  OP(eq_##s, T, x == y)         \
  OP(ne_##s, T, x != y)         \
  OP(ge_##s, T, x >= y)         \
  OP(gt_##s, T, x > y)          \
  OP(le_##s, T, x <= y)         \
  OP(lt_##s, T, x < y)
#define LISTS_COMPARES(OP)         \
  LISTS_COMPARE(OP, s32, int32_t)  \
  LISTS_COMPARE(OP, u32, uint32_t) \
  LISTS_COMPARE(OP, s64, int64_t)  \
  LISTS_COMPARE(OP, u64, uint64_t) \
  LISTS_COMPARE(OP, f32, float)    \
  LISTS_COMPARE(OP, f64, double)

/* Two ops on floats, of which the second has the first's result t on its left or its right: OP(name, type, first,
 * second), by type, the first op, the second, the side; ops in the order of add, subtract, multiply. Both round. */
#define LISTS_SIDES(OP, s, T, a, b)                                                   \
  OP(a##_##b##_left_##s, T, lists_do_##a##_##s(x, y, 0), lists_do_##b##_##s(t, z, 0)) \
  OP(a##_##b##_right_##s, T, lists_do_##a##_##s(x, y, 0), lists_do_##b##_##s(z, t, 0))
#define LISTS_SECONDS(OP, s, T, a)   \
  LISTS_SIDES(OP, s, T, a, ADD)      \
  LISTS_SIDES(OP, s, T, a, SUBTRACT) \
  LISTS_SIDES(OP, s, T, a, MULTIPLY)
#define LISTS_FIRSTS(OP, s, T)      \
  LISTS_SECONDS(OP, s, T, ADD)      \
  LISTS_SECONDS(OP, s, T, SUBTRACT) \
  LISTS_SECONDS(OP, s, T, MULTIPLY)
#define LISTS_PAIRS(OP) LISTS_FIRSTS(OP, f32, float) LISTS_FIRSTS(OP, f64, double)

#endif
