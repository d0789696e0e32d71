/* Ops on one lane, without a loop around. Each has the bits of op's loop. */
#include "../base/math.h"
#include "list.h"

#define LISTS_UNARY(name, T, expr)               \
  static void lists_##name(const list_inst *i) { \
    T x = *(const T *)i->in[0];                  \
    *(T *)i->out = (T)(expr);                    \
  }
#define LISTS_BINARY(name, T, R, expr)                    \
  static void lists_##name(const list_inst *i) {          \
    T x = *(const T *)i->in[0], y = *(const T *)i->in[1]; \
    *(R *)i->out = (R)(expr);                             \
  }

/* Signed numbers are added as unsigned ones: they wrap. */
#define LISTS_NUMBER(suffix, T, W)                   \
  LISTS_BINARY(add_##suffix, T, T, (W)x + (W)y)      \
  LISTS_BINARY(subtract_##suffix, T, T, (W)x - (W)y) \
  LISTS_BINARY(multiply_##suffix, T, T, (W)x *(W)y)  \
  LISTS_BINARY(eq_##suffix, T, uint8_t, x == y)      \
  LISTS_BINARY(ne_##suffix, T, uint8_t, x != y)      \
  LISTS_BINARY(ge_##suffix, T, uint8_t, x >= y)      \
  LISTS_BINARY(gt_##suffix, T, uint8_t, x > y)       \
  LISTS_BINARY(le_##suffix, T, uint8_t, x <= y)      \
  LISTS_BINARY(lt_##suffix, T, uint8_t, x < y)
#define LISTS_BITS(suffix, T)                     \
  LISTS_BINARY(and_##suffix, T, T, x &y)          \
  LISTS_BINARY(or_##suffix, T, T, x | y)          \
  LISTS_BINARY(xor_##suffix, T, T, x ^ y)         \
  LISTS_UNARY(not_##suffix, T, ~x)                \
  LISTS_BINARY(max_##suffix, T, T, x > y ? x : y) \
  LISTS_BINARY(min_##suffix, T, T, x < y ? x : y)

LISTS_NUMBER(s32, int32_t, uint32_t)
LISTS_NUMBER(u32, uint32_t, uint32_t)
LISTS_NUMBER(s64, int64_t, uint64_t)
LISTS_NUMBER(u64, uint64_t, uint64_t)
LISTS_NUMBER(f32, float, float)
LISTS_NUMBER(f64, double, double)
LISTS_BITS(s32, int32_t)
LISTS_BITS(u32, uint32_t)
LISTS_BITS(s64, int64_t)
LISTS_BITS(u64, uint64_t)
LISTS_BINARY(divide_f32, float, float, x / y)
LISTS_BINARY(divide_f64, double, double, x / y)
LISTS_BINARY(max_f32, float, float, math_max_f32(x, y))
LISTS_BINARY(min_f32, float, float, math_min_f32(x, y))
LISTS_BINARY(max_f64, double, double, math_max_f64(x, y))
LISTS_BINARY(min_f64, double, double, math_min_f64(x, y))
LISTS_UNARY(abs_f32, float, math_abs_f32(x))
LISTS_UNARY(abs_f64, double, math_abs_f64(x))
LISTS_UNARY(negate_f32, float, -x)
LISTS_UNARY(negate_f64, double, -x)
LISTS_BINARY(and_pred, uint8_t, uint8_t, x &y)
LISTS_BINARY(or_pred, uint8_t, uint8_t, x | y)
LISTS_BINARY(xor_pred, uint8_t, uint8_t, x ^ y)
LISTS_UNARY(not_pred, uint8_t, !x)

#define LISTS_SELECT(suffix, T)                                   \
  static void lists_select_##suffix(const list_inst *i) {         \
    const void *from = i->in[*(const uint8_t *)i->in[0] ? 1 : 2]; \
    *(T *)i->out = *(const T *)from;                              \
  }
LISTS_SELECT(1, uint8_t)
LISTS_SELECT(4, uint32_t)
LISTS_SELECT(8, uint64_t)

/* So many bytes of any elements, aligned as those are. */
typedef uint32_t lists_4 __attribute__((aligned(1), may_alias));
typedef uint64_t lists_8 __attribute__((aligned(1), may_alias));
#define LISTS_COPY(bytes, T)                           \
  static void lists_copy_##bytes(const list_inst *i) { \
    *(T *)i->out = *(const T *)i->in[0];               \
  }
LISTS_COPY(1, uint8_t)
LISTS_COPY(4, lists_4)
LISTS_COPY(8, lists_8)
static void lists_copy_any(const list_inst *i) {
  memmove(i->out, i->in[0], (size_t)i->n);
}

enum { LISTS_TYPES = 7 };
static int lists_column(unsigned t) {
  switch (t) {
    case XLAC_PRED:
      return 0;
    case XLAC_S32:
      return 1;
    case XLAC_U32:
      return 2;
    case XLAC_S64:
      return 3;
    case XLAC_U64:
      return 4;
    case XLAC_F32:
      return 5;
    case XLAC_F64:
      return 6;
    default:
      return -1;
  }
}

typedef struct lists_row {
  uint16_t opcode;
  list_fn *fn[LISTS_TYPES];
} lists_row;
#define LISTS_ALL(name) \
  {NULL,                \
   lists_##name##_s32,  \
   lists_##name##_u32,  \
   lists_##name##_s64,  \
   lists_##name##_u64,  \
   lists_##name##_f32,  \
   lists_##name##_f64}
#define LISTS_INTS(name, pred) \
  {pred, lists_##name##_s32, lists_##name##_u32, lists_##name##_s64, lists_##name##_u64, NULL, NULL}
#define LISTS_FLOATS(name) {NULL, NULL, NULL, NULL, NULL, lists_##name##_f32, lists_##name##_f64}
static const lists_row lists_rows[] = {
    {IR_OP_ADD, LISTS_ALL(add)},
    {IR_OP_SUBTRACT, LISTS_ALL(subtract)},
    {IR_OP_MULTIPLY, LISTS_ALL(multiply)},
    {IR_OP_DIVIDE, LISTS_FLOATS(divide)},
    {IR_OP_ABS, LISTS_FLOATS(abs)},
    {IR_OP_NEGATE, LISTS_FLOATS(negate)},
    {IR_OP_AND, LISTS_INTS(and, lists_and_pred)},
    {IR_OP_OR, LISTS_INTS(or, lists_or_pred)},
    {IR_OP_XOR, LISTS_INTS(xor, lists_xor_pred)},
    {IR_OP_NOT, LISTS_INTS(not, lists_not_pred)},
    {IR_OP_MAXIMUM, LISTS_ALL(max)},
    {IR_OP_MINIMUM, LISTS_ALL(min)},
};
static list_fn *const lists_compare[6][LISTS_TYPES] = {LISTS_ALL(eq), LISTS_ALL(ne), LISTS_ALL(ge),
                                                       LISTS_ALL(gt), LISTS_ALL(le), LISTS_ALL(lt)};

static list_fn *lists_compare_of(const ir_op *op, int column) {
  static const char names[6][3] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  const char *direction = ir_get_str(op, IR_ATTR_DIRECTION);
  if (base_dtype_is_float(ir_operand_type(op, 0)->dtype) && strcmp(ir_get_str(op, IR_ATTR_TYPE), "TOTALORDER") == 0)
    return NULL;
  for (int i = 0; i < 6; i++)
    if (strcmp(direction, names[i]) == 0) return lists_compare[i][column];
  return NULL;
}

list_fn *cpu_list_scalar(const ir_op *op, const interp_loop *l) {
  int column = lists_column(l->in[0]);
  if (op->opcode == IR_OP_SELECT) {
    size_t bytes = base_dtype_bytes((base_dtype)l->out);
    return bytes == 1 ? lists_select_1 : bytes == 4 ? lists_select_4 : bytes == 8 ? lists_select_8 : NULL;
  }
  if (column < 0) return NULL;
  if (op->opcode == IR_OP_COMPARE) return lists_compare_of(op, column);
  for (size_t i = 0; i < sizeof lists_rows / sizeof *lists_rows; i++)
    if (lists_rows[i].opcode == op->opcode) return lists_rows[i].fn[column];
  return NULL;
}

list_fn *cpu_list_copy(int64_t bytes) {
  return bytes == 1 ? lists_copy_1 : bytes == 4 ? lists_copy_4 : bytes == 8 ? lists_copy_8 : lists_copy_any;
}
