/* The table of evaluators, from the EVAL column of ops.def.
 *
 * A row with EVAL(add) declares interp_eval_add and puts it at IR_OP_ADD; that it exists the linker
 * checks, so no op can have an evaluator by name only. */
#include "interp.h"

/* Part builds (single folders under test) leave some evaluators out: their entries are then NULL. */
#ifdef XLAC_PARTIAL
#define MAYBE_MISSING __attribute__((weak))
#else
#define MAYBE_MISSING
#endif

#include "../ir/ops_columns.h"
#undef EVAL
#define EVAL(fn) interp_eval_fn interp_eval_##fn MAYBE_MISSING;
#define OP(code, text, arity, columns) columns
#include "../ir/ops.def"
#undef OP

#undef EVAL
/* A row without EVAL leaves the 0 alone. */
#define EVAL(fn) ? (interp_eval_fn *)0 : interp_eval_##fn
#define OP(code, text, arity, columns) [IR_OP_##code] = 0 columns,
interp_eval_fn *const interp_table[IR_OP_COUNT] = {
#include "../ir/ops.def"
};
#undef OP
