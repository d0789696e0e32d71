/* No include guard: loops of 32-bit integers with a number for an operand: those rows whose expression is of the bits
 * alone, so that signed ones are the same. The includer defines FAST(name), a function's name. */
#define T uint32_t
#define U uint32_t
#define S int32_t
#define W uint32_t
#define BITS 32
#define ZEXT(x) ((U)(x))
#define SEXT(x) ((S)(x))
#include "vm_fast_rows.h"
#undef ON_INT
#define ON_INT(...) , (__VA_ARGS__)
#define FAST_SOME FAST_LOOPS
#include "../../ir/ops.def"
#undef FAST_SOME
#define FAST_SOME FAST_ENTRY
vm_fast_two FAST(table) = {
#include "../../ir/ops.def"
};
#undef FAST_SOME
#define FAST_END
#include "vm_fast_rows.h"
#undef FAST_END
#undef T
#undef U
#undef S
#undef W
#undef BITS
#undef ZEXT
#undef SEXT
#undef FAST
