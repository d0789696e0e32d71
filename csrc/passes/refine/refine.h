/* Refinement of shapes: what the passes that make dynamic programs static share. Upstream's names of custom calls are
 * kept, since other tools read what refine-arguments writes. As in StableHLO: refine-arguments gives static types to
 * the parameters, refine-shapes carries them through the program, canonicalize-dynamism replaces dynamic ops whose
 * sizes are constants then. A type refines another if it says more (tensor<?xf32> to tensor<4xf32>) and contradicts
 * nothing. */
#ifndef XLAC_PASSES_REFINE_REFINE_H
#define XLAC_PASSES_REFINE_REFINE_H

#include "../rewrite/symbols.h"

/* The function that is refined: the only one, else @main. */
XLAC_MUST_USE int opt_refine_target(ir_module *m, ir_computation **out, xlac_error *err);
/* Gives c's parameters these types; where one changes, its users get a custom call that has the old type. */
XLAC_MUST_USE int opt_refine_parameters(opt_rewriter *rw, ir_computation *c, uint32_t n, const ir_type *const *types);
/* An error at a function. Returns the code. */
int opt_refine_fail(const opt_rewriter *rw, const ir_computation *c, base_code code, const char *format, ...)
    BASE_PRINTF(4, 5);
#define OPT_REFINE_WRAPPER "stablehlo.shape_refinement_operand_wrapper"

/* --- refine_op.c: one op's result types --- */
/* The integers of a constant of rank 1 or 0, in scratch memory; false where v is none. At most IR_MAX_RANK * 2. */
bool opt_constant_ints(opt_rewriter *rw, ir_value v, const int64_t **out, uint32_t *n);
/* Narrows the type of v by what `type` says. Leaves it where they contradict or a user could not take it. */
void opt_refine_value(opt_rewriter *rw, ir_value v, const ir_type *type, bool *changed);
/* Narrows op's result types by its operands, attributes and regions. Calls are not its business. */
XLAC_MUST_USE int opt_refine_op(opt_rewriter *rw, ir_op *op, bool *changed);

/* --- refine_op.c: custom calls with indices_of_shape_operands --- */
typedef struct opt_shapes {
  uint32_t n; /* results, tuples' elements singly */
  const int64_t **dims;
  uint32_t *ranks;
  const int64_t *operands; /* which operand says so */
} opt_shapes;
/* *known: the shapes that constant operands give to the results. An attribute that can't be right is an error. */
XLAC_MUST_USE int opt_shapes_of(opt_rewriter *rw, ir_op *op, opt_shapes *shapes, bool *known);
XLAC_MUST_USE int opt_refine_custom_call(opt_rewriter *rw, ir_op *op, bool *changed);

/* --- canonicalize_dynamism.c: patterns of it that simplification shares --- */
opt_pattern_fn opt_static_gather, opt_static_pad, opt_static_slice, opt_static_dynamic_slice;

#endif
