/* From MLIR form to HLO form, inside.
 *
 * A function is translated op by op, in the order of the text (to_hlo.c). For each op a rule (to_hlo_ops.c) makes
 * ops in the target and fills x->results: one op for each result, since an HLO op has one value.
 *
 *   %s:2 = "stablehlo.sort"(%k, %v)    %sort = (f32[8], s32[8]) sort(%k, %v)
 *                                      results[0] = get-tuple-element(%sort), index=0
 *                                      results[1] = get-tuple-element(%sort), index=1
 *
 * Two modes: the strict one gives HLO that XLA would read; the executable one keeps ops and types that HLO lacks,
 * for the interpreter. */
#ifndef XLAC_CONVERT_TO_HLO_H
#define XLAC_CONVERT_TO_HLO_H

#include "attr_pairs.h"

/* One translation. `values` gives, for an op of the source, the array of ops in the target that stand for its results;
 * entries of a region are added when it is entered and are never wrong outside, since ids differ. */
typedef struct to_hlo {
  ir_module *from, *to;
  const ir_computation *entry; /* of `from`, or NULL */
  convert_to_hlo_options options;
  xlac_error *err;
  base_map values;
  base_map functions;         /* source computation to target computation */
  base_map mentions;          /* a function's name to how often ops name it */
  uint32_t depth;             /* of functions and regions being translated */
  const base_istr *mesh_name; /* the last mesh that was looked for, and what it is */
  const struct sdy_mesh *mesh;
} to_hlo;

/* An op being translated: where its translation goes, and its operands there. */
typedef struct to_hlo_op {
  to_hlo *t;
  const ir_op *op;
  ir_computation *into;
  ir_op **operands; /* op->n_operands of them */
  ir_op **results;  /* op->n_results of them, to be filled */
} to_hlo_op;

enum { TO_HLO_MAX_DEPTH = 200 };

/* --- to_hlo.c --- */
/* An error at the place of `op`, in the name of the op. Gives the code, for the caller to return. */
int to_hlo_fail(const to_hlo *t, const ir_op *op, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
int to_hlo_no_memory(const to_hlo *t);
/* A new op of `opcode` in x->into with the given operands. NULL when out of memory. */
ir_op *to_hlo_emit(to_hlo_op *x, ir_opcode opcode, const ir_type *type, uint32_t n, ir_op *const *operands,
                   uint32_t n_called);
/* The op's results from one op in the target: itself, or the elements of its tuple. */
XLAC_MUST_USE int to_hlo_results(to_hlo_op *x, ir_op *made);
/* The type of the one op that gives all results of x->op: the result's, or a tuple. */
const ir_type *to_hlo_result_type(to_hlo_op *x);
/* A region that captures nothing but constants, as a computation with its parameters. */
XLAC_MUST_USE int to_hlo_scalar_region(to_hlo_op *x, const ir_computation *region, ir_computation **out);
/* The function of that name, translated. */
XLAC_MUST_USE int to_hlo_function(to_hlo_op *x, const base_istr *name, ir_computation **out);
/* Whether no other op names this function. */
bool to_hlo_mentioned_once(const to_hlo *t, const base_istr *name);
/* The ops of `from`, but for its parameters, into `into`. Its parameters are bound already. */
XLAC_MUST_USE int to_hlo_body(to_hlo *t, const ir_computation *from, ir_computation *into);
/* From here on uses of op's results are these ops. The array is copied. */
XLAC_MUST_USE int to_hlo_bind(to_hlo *t, const ir_op *op, ir_op *const *results);
/* Ends a computation: one result is the root, several become a tuple. */
XLAC_MUST_USE int to_hlo_finish(to_hlo *t, ir_computation *into, uint32_t n, ir_op *const *results, bool tuple);
/* NULL where the value has not been translated. */
ir_op *to_hlo_value(const to_hlo *t, ir_value v);

/* --- to_hlo.c --- */
/* The type with default layouts at every depth. NULL when out of memory. */
const ir_type *to_hlo_type(to_hlo *t, const ir_type *type);
/* Fails, at `op`, for a type that HLO does not have. */
XLAC_MUST_USE int to_hlo_check_type(const to_hlo *t, const ir_op *op, const ir_type *type);
/* The same for all results of op (or for the parameter that it is), unless the executable form is made. */
XLAC_MUST_USE int to_hlo_check_results(const to_hlo *t, const ir_op *op);

/* --- to_hlo_ops.c: in the strict mode --- */
bool to_hlo_is_simple_chlo(const ir_op *op);
XLAC_MUST_USE int to_hlo_simple_chlo(to_hlo_op *x);

/* --- to_hlo_ops.c --- */
/* Ops that are their operand; that are it on one device; whose region takes their place; and that on one device. */
XLAC_MUST_USE int to_hlo_sdy_note(to_hlo_op *x);
XLAC_MUST_USE int to_hlo_sdy_move(to_hlo_op *x);
XLAC_MUST_USE int to_hlo_sdy_named(to_hlo_op *x);
XLAC_MUST_USE int to_hlo_sdy_manual(to_hlo_op *x);

/* --- to_hlo_encoded.c --- */
/* Whether a custom call stands for an op that HLO has; the op; and what else a custom call may carry. */
bool to_hlo_is_encoded(const ir_op *op);
XLAC_MUST_USE int to_hlo_encoded(to_hlo_op *x);
XLAC_MUST_USE int to_hlo_extras(to_hlo_op *x, ir_op *made);
XLAC_MUST_USE int to_hlo_layouts(to_hlo_op *x, ir_op *made);

/* --- to_hlo.c --- */
/* The module that was made, with its ops in the order of the print; fails where HLO's rules do not allow it. */
XLAC_MUST_USE int to_hlo_settle(to_hlo *t);

/* --- to_hlo_ops.c --- */
/* Whether a custom call is ApproxTopK by its fallback; and its translation. */
bool to_hlo_is_approx_topk(const ir_op *op);
XLAC_MUST_USE int to_hlo_approx_topk(to_hlo_op *x);

/* --- to_hlo_promote.c --- */
/* Operands of reductions are converted to the element type that they are promoted to. */
XLAC_MUST_USE int to_hlo_promote(to_hlo_op *x);
/* Parameters of a region that takes narrower elements than those of `to` take these, and convert them. */
XLAC_MUST_USE int to_hlo_promote_params(to_hlo_op *x, ir_computation *region, const ir_type *to);

/* --- to_hlo_control.c --- */
/* With their regions and what these capture. */
XLAC_MUST_USE int to_hlo_while(to_hlo_op *x);
XLAC_MUST_USE int to_hlo_branches(to_hlo_op *x);

/* --- to_hlo_attrs.c: attributes of x->op onto `made` --- */
/* All that the table of pairs has for made's opcode. */
XLAC_MUST_USE int to_hlo_attrs(to_hlo_op *x, ir_op *made);
/* Each sets one attribute of `made` from one of x->op, and leaves it out where x->op lacks it or HLO's default says
 * the same. */
XLAC_MUST_USE int to_hlo_flag(to_hlo_op *x, ir_op *made, const char *name, ir_attr_key key);
XLAC_MUST_USE int to_hlo_precision(to_hlo_op *x, ir_op *made);
XLAC_MUST_USE int to_hlo_put_groups(to_hlo_op *x, ir_op *made, const ir_mattr *groups);
/* `sizes` are the window's; the rest by attribute names (NULL: none). */
typedef struct to_hlo_window_names {
  const char *strides, *base_dilation, *window_dilation, *padding, *reversal;
} to_hlo_window_names;
XLAC_MUST_USE int to_hlo_window(to_hlo_op *x, ir_op *made, uint32_t n, const int64_t *sizes,
                                const to_hlo_window_names *names);
XLAC_MUST_USE int to_hlo_padding(to_hlo_op *x, ir_op *made);
XLAC_MUST_USE int to_hlo_slice(to_hlo_op *x, ir_op *made);
XLAC_MUST_USE int to_hlo_channel(to_hlo_op *x, ir_op *made);

/* A symbol may have any characters; in HLO's names all but letters, digits, '_', '.' and '-' become '_', as in XLA.
 * NULL when out of memory. The second gives a name not in use yet. */
const base_istr *to_hlo_name(to_hlo *t, const base_istr *symbol);
const base_istr *to_hlo_fresh_name(to_hlo *t, const base_istr *symbol);

/* --- to_hlo_common.c: sharding, frontend attributes, metadata; signature and module facts --- */
XLAC_MUST_USE int to_hlo_common(to_hlo *t, const ir_op *from, ir_op *made);
/* What a composite is, in frontend attributes of the call, as XLA has it. */
XLAC_MUST_USE int to_hlo_composite(to_hlo_op *x, ir_op *made);
XLAC_MUST_USE int to_hlo_module_facts(to_hlo *t, const ir_computation *entry);

/* --- to_hlo_ops.c, to_hlo_shapes.c, to_hlo_collective.c --- */
/* Translates one op by its rule: all of x->results are set when this gives 0. */
XLAC_MUST_USE int to_hlo_one(to_hlo_op *x);
typedef int to_hlo_fn(to_hlo_op *x);
to_hlo_fn to_hlo_constant, to_hlo_dynamic_reshape, to_hlo_broadcast_in_dim, to_hlo_legacy_broadcast, to_hlo_legacy_dot,
    to_hlo_reduce_window, to_hlo_select_and_scatter, to_hlo_convolution, to_hlo_pad, to_hlo_slice_op, to_hlo_barrier,
    to_hlo_custom_call, to_hlo_all_reduce, to_hlo_all_to_all, to_hlo_permute, to_hlo_infeed, to_hlo_outfeed,
    to_hlo_send, to_hlo_recv, to_hlo_run_parallel, to_hlo_async_start, to_hlo_async_done;

#endif
