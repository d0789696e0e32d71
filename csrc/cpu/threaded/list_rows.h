/* No include guard: LISTS_ROW(code, arity, expression) for each op and type that has an instruction of its own, with
 * LISTS_S the name of the type and T, U, S, W those that ops.def's expressions speak of. These are the rows with an
 * expression for the type, but for elementary functions. The includer defines LISTS_ROW, which is undefined at the
 * end. */
#define LISTS_SKIP(...)
/* A row's columns are `, (expression)` where it has one for the type, and `, 0, 0` where it is a function. */
#define LISTS_PICK(code, arity, expr, a, b, choice, ...) choice
#define LISTS_OP(...) LISTS_PICK(__VA_ARGS__, LISTS_SKIP, LISTS_SKIP, LISTS_ROW, LISTS_SKIP, )(__VA_ARGS__)
#define OP(code, text, arity, columns) LISTS_OP(code, arity columns)
#define BITS (8 * sizeof(T))
#define ZEXT(x) ((U)(x))
#define SEXT(x) ((S)(x))
#include "../../ir/ops_columns.h"
#undef COST
#define COST(kind) LISTS_COST_##kind
#define LISTS_COST_FUNCTION , 0, 0
#define LISTS_COST_MOVE
#define LISTS_COST_SLOW

#undef ON_INT
#undef ON_SINT
#define ON_INT(...) , (__VA_ARGS__)
#define ON_SINT(...) , (__VA_ARGS__)
#define T int32_t
#define U uint32_t
#define S int32_t
#define W uint32_t
#define LISTS_S s32
#include "../../ir/ops.def"
#undef T
#undef U
#undef S
#undef W
#undef LISTS_S
#define T int64_t
#define U uint64_t
#define S int64_t
#define W uint64_t
#define LISTS_S s64
#include "../../ir/ops.def"
#undef T
#undef U
#undef S
#undef W
#undef LISTS_S

#undef ON_SINT
#undef ON_UINT
#define ON_SINT(...)
#define ON_UINT(...) , (__VA_ARGS__)
#define T uint32_t
#define U uint32_t
#define S int32_t
#define W uint32_t
#define LISTS_S u32
#include "../../ir/ops.def"
#undef T
#undef U
#undef S
#undef W
#undef LISTS_S
#define T uint64_t
#define U uint64_t
#define S int64_t
#define W uint64_t
#define LISTS_S u64
#include "../../ir/ops.def"
#undef T
#undef U
#undef S
#undef W
#undef LISTS_S

#undef ON_INT
#undef ON_UINT
#undef ON_FLOAT
#define ON_INT(...)
#define ON_UINT(...)
#define ON_FLOAT(...) , (__VA_ARGS__)
#define T float
#define LISTS_S f32
#include "../../ir/ops.def"
#undef T
#undef LISTS_S
#define T double
#define LISTS_S f64
#include "../../ir/ops.def"
#undef T
#undef LISTS_S

#undef ON_FLOAT
#undef ON_PRED
#define ON_FLOAT(...)
#define ON_PRED(...) , (__VA_ARGS__)
#define T uint8_t
#define LISTS_S pred
#include "../../ir/ops.def"
#undef T
#undef LISTS_S

#include "../../ir/ops_columns.h"
#undef OP
#undef BITS
#undef ZEXT
#undef SEXT
#undef LISTS_COST_FUNCTION
#undef LISTS_COST_MOVE
#undef LISTS_COST_SLOW
#undef LISTS_SKIP
#undef LISTS_PICK
#undef LISTS_OP
#undef LISTS_ROW
