/* Ops on one lane, without a loop around. Each has the bits of op's loop. */
#include "loop.h"

#define LOOPS_UNARY(name, T, expr)               \
  static void loops_##name(const loop_inst *i) { \
    T x = *(const T *)i->in[0];                  \
    *(T *)i->out = (T)(expr);                    \
  }
#define LOOPS_BINARY(name, T, R, expr)                    \
  static void loops_##name(const loop_inst *i) {          \
    T x = *(const T *)i->in[0], y = *(const T *)i->in[1]; \
    *(R *)i->out = (R)(expr);                             \
  }

/* Signed numbers are added as unsigned ones: they wrap. */
#define LOOPS_NUMBER(suffix, T, W)                   \
  LOOPS_BINARY(add_##suffix, T, T, (W)x + (W)y)      \
  LOOPS_BINARY(subtract_##suffix, T, T, (W)x - (W)y) \
  LOOPS_BINARY(multiply_##suffix, T, T, (W)x *(W)y)  \
  LOOPS_BINARY(eq_##suffix, T, uint8_t, x == y)      \
  LOOPS_BINARY(ne_##suffix, T, uint8_t, x != y)      \
  LOOPS_BINARY(ge_##suffix, T, uint8_t, x >= y)      \
  LOOPS_BINARY(gt_##suffix, T, uint8_t, x > y)       \
  LOOPS_BINARY(le_##suffix, T, uint8_t, x <= y)      \
  LOOPS_BINARY(lt_##suffix, T, uint8_t, x < y)
#define LOOPS_BITS(suffix, T)                     \
  LOOPS_BINARY(and_##suffix, T, T, x &y)          \
  LOOPS_BINARY(or_##suffix, T, T, x | y)          \
  LOOPS_BINARY(xor_##suffix, T, T, x ^ y)         \
  LOOPS_UNARY(not_##suffix, T, ~x)                \
  LOOPS_BINARY(max_##suffix, T, T, x > y ? x : y) \
  LOOPS_BINARY(min_##suffix, T, T, x < y ? x : y)

LOOPS_NUMBER(s32, int32_t, uint32_t)
LOOPS_NUMBER(u32, uint32_t, uint32_t)
LOOPS_NUMBER(s64, int64_t, uint64_t)
LOOPS_NUMBER(u64, uint64_t, uint64_t)
LOOPS_NUMBER(f32, float, float)
LOOPS_NUMBER(f64, double, double)
LOOPS_BITS(s32, int32_t)
LOOPS_BITS(u32, uint32_t)
LOOPS_BITS(s64, int64_t)
LOOPS_BITS(u64, uint64_t)
LOOPS_BINARY(divide_f32, float, float, x / y)
LOOPS_BINARY(divide_f64, double, double, x / y)
LOOPS_BINARY(and_pred, uint8_t, uint8_t, x &y)
LOOPS_BINARY(or_pred, uint8_t, uint8_t, x | y)
LOOPS_BINARY(xor_pred, uint8_t, uint8_t, x ^ y)
LOOPS_UNARY(not_pred, uint8_t, !x)

#define LOOPS_SELECT(suffix, T)                                   \
  static void loops_select_##suffix(const loop_inst *i) {         \
    const void *from = i->in[*(const uint8_t *)i->in[0] ? 1 : 2]; \
    *(T *)i->out = *(const T *)from;                              \
  }
LOOPS_SELECT(1, uint8_t)
LOOPS_SELECT(4, uint32_t)
LOOPS_SELECT(8, uint64_t)

#define LOOPS_COPY(bytes, T)                           \
  static void loops_copy_##bytes(const loop_inst *i) { \
    *(T *)i->out = *(const T *)i->in[0];               \
  }
LOOPS_COPY(1, uint8_t)
LOOPS_COPY(4, uint32_t)
LOOPS_COPY(8, uint64_t)
static void loops_copy_any(const loop_inst *i) {
  memmove(i->out, i->in[0], (size_t)i->n);
}

enum { LOOPS_TYPES = 7 };
static int loops_column(unsigned t) {
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

typedef struct loops_row {
  uint16_t opcode;
  loop_fn *fn[LOOPS_TYPES];
} loops_row;
#define LOOPS_ALL(name) \
  {NULL,                \
   loops_##name##_s32,  \
   loops_##name##_u32,  \
   loops_##name##_s64,  \
   loops_##name##_u64,  \
   loops_##name##_f32,  \
   loops_##name##_f64}
#define LOOPS_INTS(name, pred) \
  {pred, loops_##name##_s32, loops_##name##_u32, loops_##name##_s64, loops_##name##_u64, NULL, NULL}
static const loops_row loops_rows[] = {
    {IR_OP_ADD, LOOPS_ALL(add)},
    {IR_OP_SUBTRACT, LOOPS_ALL(subtract)},
    {IR_OP_MULTIPLY, LOOPS_ALL(multiply)},
    {IR_OP_DIVIDE, {NULL, NULL, NULL, NULL, NULL, loops_divide_f32, loops_divide_f64}},
    {IR_OP_AND, LOOPS_INTS(and, loops_and_pred)},
    {IR_OP_OR, LOOPS_INTS(or, loops_or_pred)},
    {IR_OP_XOR, LOOPS_INTS(xor, loops_xor_pred)},
    {IR_OP_NOT, LOOPS_INTS(not, loops_not_pred)},
    {IR_OP_MAXIMUM, LOOPS_INTS(max, NULL)},
    {IR_OP_MINIMUM, LOOPS_INTS(min, NULL)},
};
static loop_fn *const loops_compare[6][LOOPS_TYPES] = {LOOPS_ALL(eq), LOOPS_ALL(ne), LOOPS_ALL(ge),
                                                       LOOPS_ALL(gt), LOOPS_ALL(le), LOOPS_ALL(lt)};

static loop_fn *loops_compare_of(const ir_op *op, int column) {
  static const char names[6][3] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
  const char *direction = ir_get_str(op, IR_ATTR_DIRECTION);
  if (base_dtype_is_float(ir_operand_type(op, 0)->dtype) && strcmp(ir_get_str(op, IR_ATTR_TYPE), "TOTALORDER") == 0)
    return NULL;
  for (int i = 0; i < 6; i++)
    if (strcmp(direction, names[i]) == 0) return loops_compare[i][column];
  return NULL;
}

loop_fn *cpu_loop_scalar(const ir_op *op, const interp_loop *l) {
  int column = loops_column(l->in[0]);
  if (op->opcode == IR_OP_SELECT) {
    size_t bytes = base_dtype_bytes((base_dtype)l->out);
    return bytes == 1 ? loops_select_1 : bytes == 4 ? loops_select_4 : bytes == 8 ? loops_select_8 : NULL;
  }
  if (column < 0) return NULL;
  if (op->opcode == IR_OP_COMPARE) return loops_compare_of(op, column);
  for (size_t i = 0; i < sizeof loops_rows / sizeof *loops_rows; i++)
    if (loops_rows[i].opcode == op->opcode) return loops_rows[i].fn[column];
  return NULL;
}

loop_fn *cpu_loop_copy(int64_t bytes) {
  return bytes == 1 ? loops_copy_1 : bytes == 4 ? loops_copy_4 : bytes == 8 ? loops_copy_8 : loops_copy_any;
}
