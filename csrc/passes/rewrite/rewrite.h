/* Rewriting modules in MLIR form: a cursor that makes ops, replacement and removal, and a driver that applies
 * patterns until none fits. What a maker returns when memory has run out is an op of NULL, which all makers pass on,
 * so that a pattern looks at rw->failed once, at its end (the driver does it for it). Not thread-safe, like any edit.
 * A pattern for x * 1 -> x: static int times_one(opt_rewriter *rw, ir_op *op, bool *changed) checks op's operands,
 * calls opt_replace_one(rw, op, opt_operand(op, 0)) and sets *changed. Ops it makes come right before op. */
#ifndef XLAC_PASSES_REWRITE_REWRITE_H
#define XLAC_PASSES_REWRITE_REWRITE_H

#include "../../ir/ir.h"
#include "../pass.h"

/* The state of one rewrite of one module; begin with opt_rewriter_init, end with opt_rewriter_free. */
struct opt_folder;
typedef struct opt_rewriter {
  ir_module *m;
  xlac_error *err;
  base_arena arena; /* scratch, lives as long as the rewriter */
  bool failed;      /* out of memory */
  /* The cursor: new ops go into `into`, right before `before` (NULL: at its end), with the location of `origin`. */
  ir_computation *into;
  ir_op *before;
  const ir_op *origin;
  const struct opt_folder *folder; /* what the patterns that fold may do (fold.h), or NULL */
  const base_istr *name;           /* of new ops: the printer numbers them */
  /* Regions that give back a value of an outer one, which replacement must look into. */
  ir_computation **leaks;
  uint32_t n_leaks, leak_cap;
  /* The driver's: ops to look at, a stack; a mark by op id says who is on it. */
  ir_op **pending;
  uint32_t n_pending, pending_cap;
  uint8_t *marks;
  uint32_t n_marks;
} opt_rewriter;

/* --- rewrite.c --- */
XLAC_MUST_USE int opt_rewriter_init(opt_rewriter *rw, ir_module *m, xlac_error *err);
void opt_rewriter_free(opt_rewriter *rw);
/* The error for a rewriter that has failed, else 0. */
XLAC_MUST_USE int opt_rewriter_status(const opt_rewriter *rw);
/* An error at op: line, column and name are its own. Returns the code. */
int opt_rewrite_fail(const opt_rewriter *rw, const ir_op *op, base_code code, const char *format, ...)
    BASE_PRINTF(4, 5);
/* New ops go right before op, with its location; or to the end of c with the location of `origin`. */
void opt_at(opt_rewriter *rw, ir_op *op);
void opt_at_end(opt_rewriter *rw, ir_computation *c, const ir_op *origin);
/* An op without attributes, with room for n_regions regions. */
ir_op *opt_make_n(opt_rewriter *rw, ir_opcode opcode, uint32_t n_results, const ir_type *const *types, uint32_t n,
                  const ir_value *operands, uint32_t n_regions);
ir_value opt_make(opt_rewriter *rw, ir_opcode opcode, const ir_type *type, uint32_t n, const ir_value *operands);
/* Sets an attribute of the op that gives v (nothing when v.op or value is NULL, which is a failure). */
void opt_set(opt_rewriter *rw, ir_value v, const char *key, const ir_mattr *value);
/* Gives op's results other types; who reads them must be content with those. */
void opt_set_types(opt_rewriter *rw, ir_op *op, const ir_type *const *types);
/* A new region of op, empty, as op->called[index]; and a new argument of it. */
ir_computation *opt_region(opt_rewriter *rw, ir_op *op, uint32_t index);
ir_value opt_region_argument(opt_rewriter *rw, ir_computation *region, const ir_type *type);
/* What a region or function returns. The values are copied. */
void opt_set_results(opt_rewriter *rw, ir_computation *c, uint32_t n, const ir_value *values);
/* All uses of op's results, in regions' and functions' results too, become uses of values; op stays, unused. */
void opt_replace_results(opt_rewriter *rw, ir_op *op, const ir_value *values);
/* The same, then removes op with its regions. */
void opt_replace_op(opt_rewriter *rw, ir_op *op, const ir_value *values);
void opt_replace_one(opt_rewriter *rw, ir_op *op, ir_value value);
/* Removes an op that nobody uses, with its regions. */
void opt_erase(opt_rewriter *rw, ir_op *op);
/* Copies the ops of `from` (a region or function, of the same module) to the cursor, its arguments replaced by `args`;
 * results gets from->n_results values. Regions within are copied too. */
void opt_inline(opt_rewriter *rw, const ir_computation *from, const ir_value *args, ir_value *results);
/* Changes the type of a result in place. */
void opt_set_type(opt_rewriter *rw, ir_value v, const ir_type *type);
/* Removes a parameter that nobody uses; later ones move down. */
void opt_erase_parameter(opt_rewriter *rw, ir_computation *c, uint32_t index);
/* New ops go before all of c's, after its parameters. */
void opt_at_start(opt_rewriter *rw, ir_computation *c);
/* Copies one op, with its regions, to the cursor, its operands replaced. */
void opt_copy_op(opt_rewriter *rw, const ir_op *op, const ir_value *operands, ir_value *results);
/* A result of op is used. Results of regions and functions count. */
bool opt_is_used(const opt_rewriter *rw, const ir_op *op);
/* Nothing happens but the results: not a call of a function or an unknown op, and no such op in its regions. */
bool opt_is_pure(const ir_op *op);
/* The same of the op alone, whatever its regions hold. */
bool opt_is_pure_alone(const ir_op *op);

/* --- the driver: rewrite.c --- */

/* Looks at op and maybe rewrites: makes ops (the cursor is at op), and replaces or erases op or changes it in place.
 * Sets *changed if it did anything. Other ops may be erased only if they are producers of op's operands. */
typedef int opt_pattern_fn(opt_rewriter *rw, ir_op *op, bool *changed);
typedef struct opt_pattern {
  uint16_t opcode; /* IR_OP_INVALID: any */
  opt_pattern_fn *fn;
} opt_pattern;
/* Applies the patterns, in their order, to all ops of the module until none fits. Pure ops whose results nobody uses
 * are removed on the way. Bounded: after a number of rewrites that is linear in the size of the module it stops
 * where it is, which is a valid module too. */
XLAC_MUST_USE int opt_rewrite(opt_rewriter *rw, uint32_t n, const opt_pattern *patterns);
/* For patterns: look at op again. */
void opt_enqueue(opt_rewriter *rw, ir_op *op);

/* --- folding: fold.c --- */
/* Replaces op, whose operands are constants, by the constant the interpreter gives for it; *changed says so. Leaves it
 * where it has effects, regions or several results, where it can't be run, and where it or an operand has more than
 * max_elements elements (which are not all the same). */
XLAC_MUST_USE int opt_fold(opt_rewriter *rw, ir_op *op, int64_t max_elements, bool *changed);
/* A constant of these elements, row-major; one element for all with `splat`, or where they are all the same. */
ir_value opt_constant_data(opt_rewriter *rw, const ir_type *type, const void *data, bool splat);

/* --- rewrite_make.c: common ops. Types follow from the operands unless given. --- */
static inline const ir_type *opt_type(ir_value v) {
  return v.op ? v.op->types[v.index] : NULL;
}
static inline ir_value opt_operand(const ir_op *op, uint32_t i) {
  assert(i < op->n_operands);
  return (ir_value){op->operands[i].op, op->operands[i].index};
}
static inline ir_value opt_result(ir_op *op, uint32_t i) {
  return (ir_value){op, i};
}
/* The type of the same shape (dynamic dimensions included) with another element type; not quantised. */
const ir_type *opt_with_dtype(opt_rewriter *rw, const ir_type *t, base_dtype dtype);
/* A static tensor type. */
const ir_type *opt_tensor(opt_rewriter *rw, base_dtype dtype, uint32_t rank, const int64_t *dims);
ir_value opt_unary(opt_rewriter *rw, ir_opcode opcode, ir_value a);
ir_value opt_binary(opt_rewriter *rw, ir_opcode opcode, ir_value a, ir_value b);
/* kind NONE leaves compare_type out. */
ir_value opt_compare(opt_rewriter *rw, ir_direction direction, ir_comparison kind, ir_value a, ir_value b);
ir_value opt_select(opt_rewriter *rw, ir_value pred, ir_value on_true, ir_value on_false);
ir_value opt_convert(opt_rewriter *rw, ir_value a, base_dtype dtype);
/* stablehlo.constant of a static tensor type; every element is `value` rounded to its type (real part of complex). */
ir_value opt_splat(opt_rewriter *rw, const ir_type *type, double value);
ir_value opt_splat_int(opt_rewriter *rw, const ir_type *type, int64_t value);
ir_value opt_constant(opt_rewriter *rw, const ir_type *type, const ir_literal *literal, bool splat);
/* A splat of the shape and element type of `like`, which may be dynamic: then it is a scalar that is broadcast to the
 * shape found at run time. */
ir_value opt_splat_like(opt_rewriter *rw, ir_value like, double value);
/* A rank-1 constant of i64. */
ir_value opt_i64s(opt_rewriter *rw, uint32_t n, const int64_t *v);
ir_value opt_reshape(opt_rewriter *rw, ir_value a, const ir_type *type);
ir_value opt_broadcast_in_dim(opt_rewriter *rw, ir_value a, const ir_type *type, const int64_t *dims);
ir_value opt_concatenate(opt_rewriter *rw, uint32_t n, const ir_value *parts, int64_t dim, const ir_type *type);
ir_value opt_slice(opt_rewriter *rw, ir_value a, const int64_t *starts, const int64_t *limits, const int64_t *strides);
ir_value opt_transpose(opt_rewriter *rw, ir_value a, const int64_t *permutation);
/* The body of a reduction: one op of `opcode` on two scalars. The cursor stays where it is. */
void opt_make_reducer(opt_rewriter *rw, ir_op *reduce, ir_opcode opcode, const ir_type *scalar);
/* A reduction with one op of `opcode` in its body, over the dims given; init is a scalar. */
ir_value opt_reduce(opt_rewriter *rw, ir_opcode opcode, ir_value a, ir_value init, uint32_t n, const int64_t *dims);
/* --- shapes found at run time: rewrite_make.c --- */
bool opt_is_static(const ir_type *t);  /* a ranked tensor without dynamic dimensions */
bool opt_is_bounded(const ir_type *t); /* a ranked tensor, all of whose dynamic dimensions have bounds */
/* The size of dimension d, a scalar of i32; a constant where the type says it. */
ir_value opt_extent(opt_rewriter *rw, ir_value a, uint32_t d);
/* Scalars of i32 as one tensor; the sizes of all dimensions of a, which is ranked. */
ir_value opt_join_extents(opt_rewriter *rw, uint32_t n, const ir_value *extents);
ir_value opt_extents(opt_rewriter *rw, ir_value a);
ir_value opt_dynamic_broadcast(opt_rewriter *rw, ir_value a, ir_value extents, const ir_type *type,
                               const int64_t *dims);
/* a, which has the bounds of `like` as its sizes, with like's dynamic sizes. */
ir_value opt_set_extents(opt_rewriter *rw, ir_value a, ir_value like);
/* The scalar in every place of a tensor of like's shape, which is ranked. */
ir_value opt_spread_like(opt_rewriter *rw, ir_value scalar, ir_value like);
/* Slice `at` (a scalar of i64) of x along dimension d, without that dimension; and x with `part` at that place. */
ir_value opt_take(opt_rewriter *rw, ir_value x, uint32_t d, ir_value at);
ir_value opt_put(opt_rewriter *rw, ir_value x, ir_value part, uint32_t d, ir_value at);
/* --- loops: rewrite_make.c --- */
/* A while loop over 0, 1, ... below `limit`, a scalar of i64 that the loop may see. Between begin and end the cursor is
 * in the body, where index and state (n values, of the types of inits) are its arguments; next is the state after a
 * step. */
typedef struct opt_loop {
  ir_op *op;
  ir_computation *body, *into;
  ir_op *before;
  const ir_op *origin;
  ir_value index, *state;
  uint32_t n;
} opt_loop;
void opt_loop_begin(opt_rewriter *rw, opt_loop *loop, ir_value limit, uint32_t n, const ir_value *inits);
void opt_loop_end(opt_rewriter *rw, opt_loop *loop, const ir_value *next, ir_value *results);
/* --- constants: rewrite_make.c --- */
/* The literal of a constant op, or of a value made by one; NULL if it is none. *splat says that it has one element for
 * all. */
const ir_literal *opt_constant_of(ir_value v, bool *splat);
/* The one element of a constant whose elements are all the same bytes; NULL for others. */
const void *opt_uniform(ir_value v);

#endif
