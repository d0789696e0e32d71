/* Simplification in MLIR form: the patterns, by what they look at, and what they share. A rewrite keeps every bit of
 * what a program computes: x + 0.0 stays, since it makes a zero of minus zero. */
#ifndef XLAC_PASSES_SIMPLIFY_MLIR_SIMPLIFY_H
#define XLAC_PASSES_SIMPLIFY_MLIR_SIMPLIFY_H

#include "../rewrite/rewrite.h"

/* The patterns of one file, ended by a NULL fn. */
extern const opt_pattern opt_math_patterns[], opt_shape_patterns[], opt_movement_patterns[], opt_region_patterns[],
    opt_dynamic_patterns[], opt_fold_patterns[];
/* Shardy's: on collectives, on one reshard after another, on reshards that repeat others, on computations. */
extern const opt_pattern opt_sdy_collective_patterns[], opt_sdy_reshard_patterns[], opt_sdy_reuse_patterns[],
    opt_sdy_computation_patterns[];

/* --- mlir_simplify.c --- */
/* op's one result becomes v, where the types are the same.
 * Patterns end with one of these three, which differ in what becomes of attributes that the op carries beside its own
 * (sharding, frontend attributes): they belong to the value, and should survive the op. */
XLAC_MUST_USE int opt_simplify_to(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed);
/* The same, and the op that gives v gets the attributes of op that are not its opcode's own. */
XLAC_MUST_USE int opt_simplify_into(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed);
/* The same, and v, a new op, gets the attributes of op that are not its opcode's own. */
XLAC_MUST_USE int opt_simplify_to_new(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed);
static inline bool opt_same_value(ir_value a, ir_value b) {
  return a.op == b.op && a.index == b.index;
}
/* A uniform constant of integers or predicates of that value. */
bool opt_is_int(ir_value v, int64_t value);
/* An integer list among op's attributes; NULL where it is none. */
const int64_t *opt_ints(opt_rewriter *rw, const ir_op *op, const char *key, uint32_t *n);
/* One operand uses op's result 0, and no region gives it back. */
bool opt_has_one_use(const opt_rewriter *rw, const ir_op *op);
bool opt_is_result_used(const opt_rewriter *rw, ir_value v);

/* --- stablehlo/cse_stablehlo.c --- */
/* Whether op's regions may use only what is in them. */
bool opt_is_isolated(const ir_op *op);
/* Ops that compute the same become one; only constants where asked for. */
XLAC_MUST_USE int opt_merge_same(opt_rewriter *rw, bool constants_only);
/* Equal constants become one, at the front of the function or isolated region they are in. */
XLAC_MUST_USE int opt_hoist_constants(opt_rewriter *rw);

#endif
