/* Rules that shape inference and the verifier share. Each returns 0, or fills `err` with what was expected and what was
 * found and returns the negative code; a position and the op's name are added by ir_check_stamp, which ir_infer applies
 * to whatever its functions return and the verifier should apply to its own. Nothing here assumes a verified module:
 * all of it may be called on what a reader has just read.
 *
 * ir_infer(m, op, &t, err) does, for every opcode with an inferred type, ir_check_op and all of XLA's ShapeInference:
 * dimension lists (range, order, duplicates) and signatures of called computations included. So VERIFY(x) only needs
 * what XLA's HloVerifier asks beyond that, and the general part compares op->type with the inferred type, by
 * ir_compatible. Opcodes with INFER(none) give CANNOT_INFER at once; ir_check_op can be called alone on them.
 *
 * Element types: that of dot, convolution, ragged-dot and scaled-dot may be any (XLA takes the declared one as its
 * preferred_element_type). XLA:CPU verifies with mixed precision allowed: it takes declared types by
 * ir_compatible_ignoring_float, and operands of several float types, for all opcodes but bitcast, call, conditional,
 * constant, copy-start/-done, custom-call, get-tuple-element, infeed, outfeed, opt-barrier, parameter, recv(-done),
 * send(-done), tuple and while. ir_check_mixed_floats is XLA's stricter rule, which bans such operands.
 *
 * Where the module does not say how many participants there are (groups of one), all-gather and reduce-scatter believe
 * op->type if it is there, and collective-permute-start takes its contexts from it; nothing else looks at op->type.
 * Inference accepts implicit broadcasts of elementwise operands ([1] or a scalar beside [n]), as XLA's does; XLA's
 * verifier then refuses them by comparing each operand's dimensions with the result's. XLA's reader ignores the
 * declared type of after-all, add-dependency, send, send-done and recv-done and infers them. */
#ifndef XLAC_IR_CHECK_CHECK_H
#define XLAC_IR_CHECK_CHECK_H

#include "../ir.h"

/* The text of a type or of a list in an error message; lives until the end of the enclosing block. */
#define IR_SHOW(type) ir_type_text((type), (char[160]){0}, 160)
#define IR_SHOW_INTS(n, v) ir_check_ints_text((n), (v), (char[160]){0}, 160)
/* Cut with "..." where buf is too short; returns buf. */
char *ir_check_ints_text(uint32_t n, const int64_t *v, char *buf, size_t size);

/* Adds op's position and name to an error that has none yet. Returns status. */
int ir_check_stamp(const ir_op *op, int status, xlac_error *err);

/* --- the op itself: check.c --- */
/* All of the following four. */
XLAC_MUST_USE int ir_check_op(const ir_op *op, xlac_error *err);
/* As many operands as the opcode takes (variadic: any), each a value that has a type. */
XLAC_MUST_USE int ir_check_operands(const ir_op *op, xlac_error *err);
/* Operand 0 is a tensor with an element type of the opcode's set, where the opcode has one. */
XLAC_MUST_USE int ir_check_type_set(const ir_op *op, xlac_error *err);
/* Required attributes are there, and every attribute has the kind of its key. */
XLAC_MUST_USE int ir_check_attrs(const ir_op *op, xlac_error *err);
/* check_form.c: numbers of operands and of an attribute's items that the opcode needs to have a text. The op calls as
 * many computations as it should (ir_check_called). */
XLAC_MUST_USE int ir_check_form(const ir_op *op, xlac_error *err);
/* ((operands...), outputs, contexts...): what async starts give and updates hand on. t may be NULL. */
static inline bool ir_is_start_type(const ir_type *t) {
  return t && ir_is_tuple(t) && t->n_elements >= 2 && ir_is_tuple(t->elements[0]);
}
/* ir/verify/verify_structure.c: in a scheduled module ops stand after what they need, as they must in its text. */
XLAC_MUST_USE int ir_check_schedule(const ir_module *m, xlac_error *err);
/* ir/stablehlo/verify.c: regions of the opcode use nothing from outside (SV_ISOLATED in its row). */
bool ir_is_isolated(unsigned opcode);
/* check_form.c: functions and other symbols of the module (MLIR form) have one name space. */
XLAC_MUST_USE int ir_check_symbols(const ir_module *m, xlac_error *err);
/* As many called computations as the opcode needs, each with a root (parameters: ir_check_param_count). */
XLAC_MUST_USE int ir_check_called(const ir_op *op, xlac_error *err);
/* At least `least` operands (for variadic opcodes). */
XLAC_MUST_USE int ir_check_at_least(const ir_op *op, uint32_t least, xlac_error *err);
/* Operand i is there and a tensor (buffers are not); *out is its type. */
XLAC_MUST_USE int ir_check_tensor(const ir_op *op, uint32_t i, const ir_type **out, xlac_error *err);
XLAC_MUST_USE int ir_check_all_tensors(const ir_op *op, xlac_error *err);
XLAC_MUST_USE int ir_check_token(const ir_op *op, uint32_t i, xlac_error *err);
/* Operand i is a tuple of at least n elements. */
XLAC_MUST_USE int ir_check_tuple(const ir_op *op, uint32_t i, uint32_t n, const ir_type **out, xlac_error *err);
/* Operands that XLA wants in one float type are: dot, convolution, collectives, tuples and the like are exempt. */
XLAC_MUST_USE int ir_check_mixed_floats(const ir_op *op, xlac_error *err);

/* --- dimension lists: check.c. `what` names the list in messages, mostly the attribute's name. --- */
XLAC_MUST_USE int ir_check_dim(const char *what, int64_t dim, uint32_t rank, xlac_error *err);
XLAC_MUST_USE int ir_check_dims_in_range(const char *what, const ir_ints *dims, uint32_t rank, xlac_error *err);
XLAC_MUST_USE int ir_check_dims_distinct(const char *what, const ir_ints *dims, xlac_error *err);
/* Ascending without repeats. */
XLAC_MUST_USE int ir_check_dims_sorted(const char *what, const ir_ints *dims, xlac_error *err);
/* In range and distinct; the two lists together when b is not NULL. */
XLAC_MUST_USE int ir_check_dims_set(const char *what, const ir_ints *a, const ir_ints *b, uint32_t rank,
                                    xlac_error *err);
XLAC_MUST_USE int ir_check_permutation(const char *what, uint32_t n, const int64_t *v, uint32_t rank, xlac_error *err);
/* The list has exactly one entry, in range; *out is it. */
XLAC_MUST_USE int ir_check_one_dim(const char *what, const ir_ints *dims, uint32_t rank, int64_t *out, xlac_error *err);
/* The window has `rank` dimensions with positive sizes, strides and dilations. */
XLAC_MUST_USE int ir_check_window(const ir_window *w, uint32_t rank, xlac_error *err);
/* The same of a convolution, whose sizes are the kernel's: they may be unbounded. */
XLAC_MUST_USE int ir_check_kernel_window(const ir_window *w, uint32_t rank, xlac_error *err);

/* --- types against each other: check.c --- */
/* Equal, or one of them unbounded. */
static inline bool ir_sizes_fit(int64_t a, int64_t b) {
  return a == b || a == IR_UNBOUNDED || b == IR_UNBOUNDED;
}
/* Two tensors' dims fit pairwise. */
bool ir_same_dims(const ir_type *a, const ir_type *b);
/* Equal, or both floats. */
bool ir_same_dtype_or_float(base_dtype a, base_dtype b);
/* Which of two element types XLA keeps: complex before real, more float range, more precision, more bits, signed.
 * Invalid when XLA has no answer (f8e5m2 with f8e5m2fnuz). */
base_dtype ir_higher_precision(base_dtype a, base_dtype b);
static inline bool ir_is_scalar_of(const ir_type *t, base_dtype dtype) {
  return ir_is_scalar(t) && t->dtype == dtype;
}

/* --- called computations: check_called.c --- */
static inline const ir_type *ir_param_type(const ir_computation *c, uint32_t i) {
  assert(i < c->n_params && c->params[i]);
  return c->params[i]->type;
}
/* Of a computation that ir_check_called has found whole. */
static inline const ir_type *ir_result_type(const ir_computation *c) {
  return c->results[0].op->types[c->results[0].index];
}
/* Exactly n, none missing: what ir_param_type needs. `role` names the computation in messages: "to_apply", "body", ...
 */
XLAC_MUST_USE int ir_check_param_count(const char *role, const ir_computation *c, uint32_t n, xlac_error *err);
/* Parameters are compatible with op's operands first, first+1, ... one to one. */
XLAC_MUST_USE int ir_check_args(const char *role, const ir_computation *c, const ir_op *op, uint32_t first, uint32_t n,
                                xlac_error *err);
/* XLA's rule for reducers of n inputs: (acc 0..n-1, in 0..n-1) -> acc, all scalars, acc as `inits` and in as `inputs`
 * but for float precision. */
XLAC_MUST_USE int ir_check_reducer(const char *role, const ir_computation *c, uint32_t n, const base_dtype *inits,
                                   const base_dtype *inputs, xlac_error *err);
/* The accumulator's element type i of a computation that passed ir_check_reducer. */
base_dtype ir_reducer_dtype(const ir_computation *c, uint32_t i);

/* --- arithmetic on one size; an unbounded one stays unbounded. Runs ask again, with the sizes that types leave open
 * ---
 */
/* XLA's window arithmetic: how many places a window has. */
XLAC_MUST_USE int ir_infer_window_size(const ir_window_dim *w, int64_t size, int64_t *out, xlac_error *err);
/* For one dimension; size is not negative, or IR_UNBOUNDED. */
XLAC_MUST_USE int ir_infer_pad_size(ir_padding_dim p, int64_t size, int64_t *out, xlac_error *err);

#endif
