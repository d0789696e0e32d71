/* Ops on one lane, without a loop around: which instructions there are, and how they run. This is threaded code:
 * each instruction ends with a jump to the code of the next (labels as values, of GCC and clang), so that the CPU
 * predicts every jump by itself. Nothing is called, and nothing is looked up, between an op and the next. Instructions,
 * their code and the way from an op to its instruction are made of the rows of ops.def (list_rows.h). */
#include "../../base/math/math.h"
#include "../../base/math/math_int.h"
#include "list.h"
#include "list_ops.h"

#define LISTS_JOIN_(a, code, s) a##code##_##s
#define LISTS_JOIN(a, code, s) LISTS_JOIN_(a, code, s)
#define LISTS_TYPE_(s) LISTS_##s
#define LISTS_TYPE(s) LISTS_TYPE_(s)

/* Each op as a function, with ops.def's expression for its type: lists_do_ADD_f32. On one lane the CPU's own division
 * is faster than that of vector loops, by way of f64; quotients are the same. */
#pragma push_macro("int_quotient")
#pragma push_macro("int_remainder")
#undef int_quotient
#undef int_remainder
#define int_quotient(x, y) ((x) / (y))
#define int_remainder(x, y) ((x) % (y))
#define LISTS_ROW(code, arity, expr)                                  \
  MATH_INLINE T LISTS_JOIN(lists_do_, code, LISTS_S)(T x, T y, T z) { \
    (void)x, (void)y, (void)z;                                        \
    return (T)expr;                                                   \
  }
#include "list_rows.h"
#pragma pop_macro("int_quotient")
#pragma pop_macro("int_remainder")

#define LISTS_NAME_COMPARE(name, T, expr) LISTS_##name,
#define LISTS_NAME_TEST(name, T, expr) LISTS_TEST_##name,
#define LISTS_NAME_PAIR(name, T, a, b) LISTS_##name,
/* Codes. What computes a code from another relies on the order in list_ops.h. */
enum {
  LISTS_FIRST = LIST_OTHERS - 1,
#define LISTS_ROW(code, arity, expr) LISTS_JOIN(LISTS_, code, LISTS_S),
#include "list_rows.h"
  LISTS_COMPARES(LISTS_NAME_COMPARE) LISTS_COMPARES(LISTS_NAME_TEST) LISTS_PAIRS(LISTS_NAME_PAIR) LISTS_COPY_1,
  LISTS_COPY_4,
  LISTS_COPY_8,
  LISTS_SELECT_1,
  LISTS_SELECT_4,
  LISTS_SELECT_8,
  LISTS_WIDEN_s32_f32,
  LISTS_WIDEN_s32_f64,
  LISTS_WIDEN_s32_s64,
  LISTS_WIDEN_f32_f64,
  LISTS_NARROW_s64_s32,
  LISTS_NARROW_f64_f32,
  LISTS_WIDEN_pred_s32,
  LISTS_WIDEN_pred_f32,
  LISTS_COUNT
};

/* So many bytes of any elements. */
typedef uint32_t lists_4 __attribute__((aligned(1), may_alias));
typedef uint64_t lists_8 __attribute__((aligned(1), may_alias));

#define LISTS_LABEL_COMPARE(name, T, expr) [LISTS_##name] = &&name, [LISTS_TEST_##name] = &&test_##name,
#define LISTS_LABEL_PAIR(name, T, a, b) [LISTS_##name] = &&name,
#define LISTS_NEXT goto *labels[(++i)->code]
#define LISTS_READ(T, v, j) T v = *(const T *)i->in[j]
#define LISTS_READ_1 LISTS_READ(T, x, 0), y = x, z = x
#define LISTS_READ_2 LISTS_READ(T, x, 0), y = *(const T *)i->in[1], z = x
#define LISTS_READ_3 LISTS_READ(T, x, 0), y = *(const T *)i->in[1], z = *(const T *)i->in[2]
#define LISTS_DO_COMPARE(name, T, expr) \
  name: {                               \
    LISTS_READ(T, x, 0);                \
    LISTS_READ(T, y, 1);                \
    *(uint8_t *)i->out = (expr);        \
    LISTS_NEXT;                         \
  }
#define LISTS_DO_TEST(name, T, expr) \
  test_##name : {                    \
    LISTS_READ(T, x, 0);             \
    LISTS_READ(T, y, 1);             \
    if (!(expr)) goto end;           \
    i = i->data;                     \
    goto *labels[i->code];           \
  }
#define LISTS_DO_PAIR(name, T, a, b) \
  name: {                            \
    LISTS_READ(T, x, 0);             \
    LISTS_READ(T, y, 1);             \
    LISTS_READ(T, z, 2);             \
    T t = (a);                       \
    *(T *)i->out = (b);              \
    LISTS_NEXT;                      \
  }
#define LISTS_DO_MOVE(name, from, R)           \
  name:                                        \
  *(R *)i->out = (R) * (const from *)i->in[0]; \
  LISTS_NEXT;
#define LISTS_DO_SELECT(name, T)                                        \
  name:                                                                 \
  *(T *)i->out = *(const T *)i->in[*(const uint8_t *)i->in[0] ? 1 : 2]; \
  LISTS_NEXT;

/* The interpreter of instructions. `again` counts trips down and returns so that its caller can look at
 * interruptions. */
bool cpu_list_go(const list_inst **at, uint64_t trips) {
  static const void *const labels[LISTS_COUNT] = {
      [LIST_CALL] = &&call,
      [LIST_END] = &&end,
      [LIST_TEST] = &&test,
      [LIST_LOOP_BACK] = &&again,
#define LISTS_ROW(code, arity, expr) [LISTS_JOIN(LISTS_, code, LISTS_S)] = &&LISTS_JOIN(do_, code, LISTS_S),
#include "list_rows.h"
      LISTS_COMPARES(LISTS_LABEL_COMPARE) LISTS_PAIRS(LISTS_LABEL_PAIR)[LISTS_COPY_1] = &&copy_1,
      [LISTS_COPY_4] = &&copy_4,
      [LISTS_COPY_8] = &&copy_8,
      [LISTS_SELECT_1] = &&select_1,
      [LISTS_SELECT_4] = &&select_4,
      [LISTS_SELECT_8] = &&select_8,
      [LISTS_WIDEN_s32_f32] = &&s32_f32,
      [LISTS_WIDEN_s32_f64] = &&s32_f64,
      [LISTS_WIDEN_s32_s64] = &&s32_s64,
      [LISTS_WIDEN_f32_f64] = &&f32_f64,
      [LISTS_NARROW_s64_s32] = &&s64_s32,
      [LISTS_NARROW_f64_f32] = &&f64_f32,
      [LISTS_WIDEN_pred_s32] = &&pred_s32,
      [LISTS_WIDEN_pred_f32] = &&pred_f32,
  };
  assert(*at && (*at)->code < LISTS_COUNT);
  const list_inst *i = *at;
  goto *labels[i->code];
call:
  i->fn(i);
  LISTS_NEXT;
test:
  if (!*(const uint8_t *)i->in[0]) goto end;
  i = i->data;
  goto *labels[i->code];
again:
  i = i->data;
  if (--trips) goto *labels[i->code];
  *at = i;
  return false;
end:
  *at = i;
  return true;
#define LISTS_ROW(code, arity, expr)                              \
  LISTS_JOIN(do_, code, LISTS_S) : {                              \
    LISTS_READ_##arity;                                           \
    *(T *)i->out = LISTS_JOIN(lists_do_, code, LISTS_S)(x, y, z); \
    LISTS_NEXT;                                                   \
  }
#include "list_rows.h"
  LISTS_COMPARES(LISTS_DO_COMPARE)
  LISTS_COMPARES(LISTS_DO_TEST)
  LISTS_PAIRS(LISTS_DO_PAIR)
  LISTS_DO_MOVE(copy_1, uint8_t, uint8_t)
  LISTS_DO_MOVE(copy_4, lists_4, lists_4)
  LISTS_DO_MOVE(copy_8, lists_8, lists_8)
  LISTS_DO_SELECT(select_1, uint8_t)
  LISTS_DO_SELECT(select_4, uint32_t)
  LISTS_DO_SELECT(select_8, uint64_t)
  LISTS_DO_MOVE(s32_f32, int32_t, float)
  LISTS_DO_MOVE(s32_f64, int32_t, double)
  LISTS_DO_MOVE(s32_s64, int32_t, int64_t)
  LISTS_DO_MOVE(f32_f64, float, double)
  LISTS_DO_MOVE(s64_s32, int64_t, int32_t)
  LISTS_DO_MOVE(f64_f32, double, float)
  LISTS_DO_MOVE(pred_s32, uint8_t, int32_t)
  LISTS_DO_MOVE(pred_f32, uint8_t, float)
}

/* --- which instruction --- */

/* In the order of comparisons; preds have none. */
enum { LISTS_s32, LISTS_u32, LISTS_s64, LISTS_u64, LISTS_f32, LISTS_f64, LISTS_pred, LISTS_TYPES };
/* The column of type t in lists_codes, or -1. */
static int lists_column(unsigned t) {
  static const uint8_t types[LISTS_TYPES] = {XLAC_S32, XLAC_U32, XLAC_S64, XLAC_U64, XLAC_F32, XLAC_F64, XLAC_PRED};
  for (int i = 0; i < LISTS_TYPES; i++)
    if (types[i] == t) return i;
  return -1;
}

/* The instruction of each op by the type of its operands. What is 0 is LIST_CALL: the op has none for that type, and
 * runs by its loop. */
static const uint16_t lists_codes[LISTS_TYPES][SCALAR_CODES] = {
#define LISTS_ROW(code, arity, expr) [LISTS_TYPE(LISTS_S)][SCALAR_##code] = LISTS_JOIN(LISTS_, code, LISTS_S),
#include "list_rows.h"
};

_Static_assert(LIST_CALL == 0, "codes leave out what has no instruction");
_Static_assert(LISTS_eq_f64 == LISTS_eq_s32 + 5 * SCALAR_DIRECTIONS, "6 by type");
_Static_assert(LISTS_TEST_eq_f64 == LISTS_TEST_eq_s32 + 5 * SCALAR_DIRECTIONS, "6 by type");

/* Comparisons by type, then direction. TOTALORDER of floats is left to the interpreter's loop. */
static uint32_t lists_compare_of(const scalar_op *op, int column) {
  bool real = column == LISTS_f32 || column == LISTS_f64;
  if (column == LISTS_pred || (real && op->order == SCALAR_ORDER_TOTAL)) return LIST_CALL;
  return LISTS_eq_s32 + SCALAR_DIRECTIONS * (uint32_t)column + op->direction;
}

/* In the order of the LISTS_WIDEN and LISTS_NARROW codes. Floats to integers are not here: HLO clamps those. */
static uint32_t lists_convert_of(unsigned from, unsigned to) {
  static const uint8_t types[][2] = {{XLAC_S32, XLAC_F32},  {XLAC_S32, XLAC_F64}, {XLAC_S32, XLAC_S64},
                                     {XLAC_F32, XLAC_F64},  {XLAC_S64, XLAC_S32}, {XLAC_F64, XLAC_F32},
                                     {XLAC_PRED, XLAC_S32}, {XLAC_PRED, XLAC_F32}};
  for (uint32_t i = 0; i < sizeof types / sizeof *types; i++)
    if (types[i][0] == from && types[i][1] == to) return LISTS_WIDEN_s32_f32 + i;
  return LIST_CALL;
}

/* Of three codes, for 1, 4 and 8 bytes, that follow one another. */
static uint32_t lists_by_size(int64_t bytes, uint32_t one) {
  return bytes == 1 ? one : bytes == 4 ? one + 1 : bytes == 8 ? one + 2 : LIST_CALL;
}

/* By the types that the loop has: those of the op's operands and result. */
uint32_t cpu_list_scalar(const scalar_op *op, const scalar_loop *l) {
  int column = lists_column(l->in[0]);
  if (op->code == SCALAR_SELECT) return lists_by_size((int64_t)base_dtype_bytes((base_dtype)l->out), LISTS_SELECT_1);
  if (op->code == SCALAR_CONVERT) return lists_convert_of(l->in[0], l->out);
  if (column < 0) return LIST_CALL;
  if (op->code == SCALAR_COMPARE) return lists_compare_of(op, column);
  return lists_codes[column][op->code];
}

uint32_t cpu_list_copy(int64_t bytes) {
  return lists_by_size(bytes, LISTS_COPY_1);
}

uint32_t cpu_list_test(uint32_t compare) {
  return compare >= LISTS_eq_s32 && compare <= LISTS_lt_f64 ? compare - LISTS_eq_s32 + LISTS_TEST_eq_s32 : LIST_CALL;
}

/* How many ops pairs are made of. */
#define LISTS_ONE(code, ...) +1
enum { LISTS_PAIRED = SCALAR_LINKED(LISTS_ONE, ) };
_Static_assert(LISTS_ADD_ADD_left_f64 == LISTS_ADD_ADD_left_f32 + 2 * LISTS_PAIRED * LISTS_PAIRED,
               "pairs by type, first, second and side");

/* LISTS_PAIRED * type + op of an op that pairs are made of; -1: none. */
static int lists_paired(uint32_t code) {
#define LISTS_CODE_OF(code, s) LISTS_##code##_##s,
  static const uint16_t ops[] = {SCALAR_LINKED(LISTS_CODE_OF, f32) SCALAR_LINKED(LISTS_CODE_OF, f64)};
  for (int i = 0; i < 2 * LISTS_PAIRED; i++)
    if (ops[i] == code) return i;
  return -1;
}

/* Codes of pairs stand by type and first op, then by second op and side. */
uint32_t cpu_list_pair(uint32_t first, uint32_t second, bool right) {
  int a = lists_paired(first), b = lists_paired(second);
  if (a < 0 || b < 0 || a / LISTS_PAIRED != b / LISTS_PAIRED) return LIST_CALL;
  return LISTS_ADD_ADD_left_f32 + 2 * LISTS_PAIRED * (uint32_t)a + 2 * (uint32_t)(b % LISTS_PAIRED) + right;
}
