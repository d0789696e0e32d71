/* Ops on one lane, as expressions of x, y and z, and how many bits they have is what their names end with. Each has the
 * bits of op's loop in interp/. */
#ifndef XLAC_CPU_THREADED_LIST_OPS_H
#define XLAC_CPU_THREADED_LIST_OPS_H

/* OP(name, type of the operands, of the result, expression). Signed numbers are added as unsigned ones: they wrap. */
#define LISTS_NUMBER(OP, s, T, W)          \
  OP(add_##s, T, T, (T)((W)x + (W)y))      \
  OP(subtract_##s, T, T, (T)((W)x - (W)y)) \
  OP(multiply_##s, T, T, (T)((W)x * (W)y))
/* Shifts by the width or more give 0, as HLO has it; clamp is (y, low x, high z), and the low bound comes first. */
#define LISTS_BITS(OP, s, T, U)                                    \
  OP(and_##s, T, T, x &y)                                          \
  OP(or_##s, T, T, x | y)                                          \
  OP(xor_##s, T, T, x ^ y)                                         \
  OP(not_##s, T, T, ~x)                                            \
  OP(negate_##s, T, T, (T)(0 - (U)x))                              \
  OP(maximum_##s, T, T, x > y ? x : y)                             \
  OP(minimum_##s, T, T, x < y ? x : y)                             \
  OP(clamp_##s, T, T, (y < x ? x : y) > z ? z : y < x ? x : y)     \
  OP(left_##s, T, T, (U)y < 8 * sizeof(T) ? (T)((U)x << (U)y) : 0) \
  OP(logical_##s, T, T, (U)y < 8 * sizeof(T) ? (T)((U)x >> (U)y) : 0)
/* HLO defines what C doesn't: x / 0 is -1, x % 0 is x, INT_MIN / -1 is INT_MIN, INT_MIN % -1 is 0. */
#define LISTS_SIGNED(OP, s, T, U)                                                  \
  OP(arithmetic_##s, T, T, x >> ((U)y < 8 * sizeof(T) ? (U)y : 8 * sizeof(T) - 1)) \
  OP(divide_##s, T, T, y == 0 ? (T) - 1 : y == -1 ? (T)(0 - (U)x) : x / y)         \
  OP(remainder_##s, T, T, y == 0 ? x : y == -1 ? 0 : x % y)                        \
  OP(abs_##s, T, T, x < 0 ? (T)(0 - (U)x) : x)
/* Maximum and minimum keep NaN, and take +0 for the larger zero. */
#define LISTS_FLOAT(OP, s, T)               \
  OP(divide_##s, T, T, x / y)               \
  OP(abs_##s, T, T, math_abs_##s(x))        \
  OP(negate_##s, T, T, -x)                  \
  OP(maximum_##s, T, T, math_max_##s(x, y)) \
  OP(minimum_##s, T, T, math_min_##s(x, y)) \
  OP(clamp_##s, T, T, math_min_##s(math_max_##s(y, x), z))
#define LISTS_OPS(OP)                                               \
  LISTS_NUMBER(OP, s32, int32_t, uint32_t)                          \
  LISTS_NUMBER(OP, u32, uint32_t, uint32_t)                         \
  LISTS_NUMBER(OP, s64, int64_t, uint64_t)                          \
  LISTS_NUMBER(OP, u64, uint64_t, uint64_t)                         \
  LISTS_NUMBER(OP, f32, float, float)                               \
  LISTS_NUMBER(OP, f64, double, double)                             \
  LISTS_BITS(OP, s32, int32_t, uint32_t)                            \
  LISTS_BITS(OP, u32, uint32_t, uint32_t)                           \
  LISTS_BITS(OP, s64, int64_t, uint64_t)                            \
  LISTS_BITS(OP, u64, uint64_t, uint64_t)                           \
  LISTS_SIGNED(OP, s32, int32_t, uint32_t)                          \
  LISTS_SIGNED(OP, s64, int64_t, uint64_t)                          \
  LISTS_FLOAT(OP, f32, float)                                       \
  LISTS_FLOAT(OP, f64, double)                                      \
  OP(divide_u32, uint32_t, uint32_t, y == 0 ? ~(uint32_t)0 : x / y) \
  OP(divide_u64, uint64_t, uint64_t, y == 0 ? ~(uint64_t)0 : x / y) \
  OP(remainder_u32, uint32_t, uint32_t, y == 0 ? x : x % y)         \
  OP(remainder_u64, uint64_t, uint64_t, y == 0 ? x : x % y)         \
  OP(and_pred, uint8_t, uint8_t, x &y)                              \
  OP(or_pred, uint8_t, uint8_t, x | y)                              \
  OP(xor_pred, uint8_t, uint8_t, x ^ y)                             \
  OP(not_pred, uint8_t, uint8_t, !x)

/* Comparisons: OP(name, type, expression), by type in the order of directions. */
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
#define LISTS_PAIR(OP, s, T, a, e)        \
  OP(a##_add_left_##s, T, e, t + z)       \
  OP(a##_add_right_##s, T, e, z + t)      \
  OP(a##_subtract_left_##s, T, e, t - z)  \
  OP(a##_subtract_right_##s, T, e, z - t) \
  OP(a##_multiply_left_##s, T, e, t *z)   \
  OP(a##_multiply_right_##s, T, e, z *t)
#define LISTS_PAIRS(OP)                        \
  LISTS_PAIR(OP, f32, float, add, x + y)       \
  LISTS_PAIR(OP, f32, float, subtract, x - y)  \
  LISTS_PAIR(OP, f32, float, multiply, x *y)   \
  LISTS_PAIR(OP, f64, double, add, x + y)      \
  LISTS_PAIR(OP, f64, double, subtract, x - y) \
  LISTS_PAIR(OP, f64, double, multiply, x *y)

#endif
