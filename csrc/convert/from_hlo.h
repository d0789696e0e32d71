/* From HLO form to MLIR form, inside.
 *
 * A computation is translated in one walk in post-order (from_hlo.c). For each op a rule (from_hlo_ops.c) makes ops
 * in the target and leaves in x->result the tree of values that the op has become. A tree is found again by its op,
 * when another op uses it:
 *
 *   %t = (f32[2], s32[]) tuple(%a, %b)            a tree of the parts %a and %b; nothing is made
 *   %e = f32[2] get-tuple-element(%t), index=0    the first of them; nothing is made
 *
 * so that tuples vanish wherever HLO only carries values in them. */
#ifndef XLAC_CONVERT_FROM_HLO_H
#define XLAC_CONVERT_FROM_HLO_H

#include "attr_pairs.h"

/* What an HLO value has become. HLO's tuples are taken apart wherever that is possible: a tuple is its parts. */
typedef enum from_hlo_kind {
  FROM_HLO_VALUE,  /* one value in the target; of tuple type where an op gives or takes a true tuple */
  FROM_HLO_PARTS,  /* a tuple by its parts */
  FROM_HLO_CONTEXT /* what HLO's async ops pass along and nobody reads: zeros, if someone does ask */
} from_hlo_kind;
typedef struct from_hlo_tree from_hlo_tree;
/* Trees are immutable once made, live in the target's arena and are shared: an op that passes its operand on has the
 * same tree. */
struct from_hlo_tree {
  uint8_t kind;        /* from_hlo_kind */
  const ir_type *type; /* in the target */
  ir_value value;
  uint32_t n;
  const from_hlo_tree **parts;
};

/* One translation of a module. */
typedef struct from_hlo {
  ir_module *from, *to;
  xlac_error *err;
  base_map trees;     /* op of the source to its from_hlo_tree; a computation that is translated again replaces them */
  base_map functions; /* computation of the source to function of the target */
  base_map symbols;   /* the functions' names */
  uint32_t depth;     /* of computations being translated */
  uint32_t n_made, max_made; /* ops; see from_hlo_limit */
} from_hlo;

/* An op being translated. */
typedef struct from_hlo_op {
  from_hlo *t;
  const ir_op *op;
  const ir_type *type; /* of what is made: the op's, or of an async start the part that is its outcome */
  unsigned target;     /* opcode of what is made, for from_hlo_attrs */
  ir_computation *into;
  const from_hlo_tree **operands; /* op->n_operands of them */
  const from_hlo_tree *result;    /* to be set */
} from_hlo_op;

/* A list of values that grows. Its memory is the allocator's, not the arena's: whoever fills one frees it. */
BASE_VEC(from_hlo_values, ir_value);

/* Computations within computations: the translation recurs into each. */
enum { FROM_HLO_MAX_DEPTH = 200 };

/* --- from_hlo.c: the module, functions, regions --- */
/* An error at the place of `op`, in the name of the op. Gives the code, for the caller to return. */
int from_hlo_fail(const from_hlo *t, const ir_op *op, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
/* Out of memory; or, where that is why nothing was made, out of the number of ops that a program may become. */
int from_hlo_no_memory(const from_hlo *t);
/* A computation as the region `index` of `owner`: one argument a leaf of each parameter, one result a leaf of the root.
 */
XLAC_MUST_USE int from_hlo_region(from_hlo *t, const ir_computation *from, ir_op *owner, uint32_t index);
/* A computation as a region without arguments, whose one parameter is `argument`. */
XLAC_MUST_USE int from_hlo_closure(from_hlo *t, const ir_computation *from, const from_hlo_tree *argument, ir_op *owner,
                                   uint32_t index);
/* A computation as a private function. */
XLAC_MUST_USE int from_hlo_function(from_hlo *t, const ir_computation *from, ir_computation **out);
/* An empty region, to be filled by the caller. */
XLAC_MUST_USE int from_hlo_new_region(from_hlo *t, ir_op *owner, uint32_t index, ir_computation **out);
/* What the computation gives. Once for each. */
XLAC_MUST_USE int from_hlo_returns(from_hlo *t, ir_computation *into, uint32_t n, const ir_value *values);
/* An argument of a region or function. NULL when out of memory. */
ir_op *from_hlo_argument(from_hlo *t, ir_computation *into, const ir_type *type);

/* --- from_hlo_value.c: types and trees --- */
/* The type without layouts. Fails where MLIR has no such type. */
XLAC_MUST_USE int from_hlo_type(const from_hlo *t, const ir_op *op, const ir_type *type, const ir_type **out);
/* The leaves of a type, as types of the target. */
XLAC_MUST_USE int from_hlo_leaf_types(const from_hlo *t, const ir_op *op, const ir_type *type, uint32_t *n,
                                      const ir_type ***out);
/* A tree of one value; of parts, whose type is their tuple; and of what nobody reads. NULL when out of memory. */
const from_hlo_tree *from_hlo_of_value(from_hlo *t, ir_value v);
const from_hlo_tree *from_hlo_of_parts(from_hlo *t, uint32_t n, const from_hlo_tree *const *parts);
const from_hlo_tree *from_hlo_of_context(from_hlo *t, const ir_type *type);
/* The tree of a type from the values of its leaves; *at is how many are taken. */
XLAC_MUST_USE int from_hlo_build(from_hlo *t, const ir_type *type, const ir_value *leaves, uint32_t *at,
                                 const from_hlo_tree **out);
/* The whole as one value: tuples by stablehlo.tuple. */
XLAC_MUST_USE int from_hlo_whole(from_hlo_op *x, const from_hlo_tree *tree, ir_value *out);
/* Appends the leaves. The list's memory is x->t->to->alloc's. */
XLAC_MUST_USE int from_hlo_flatten(from_hlo_op *x, const from_hlo_tree *tree, from_hlo_values *out);
/* The i-th part of a tree of tuple type. Makes a stablehlo.get_tuple_element only where the tuple is a true one. */
XLAC_MUST_USE int from_hlo_part(from_hlo_op *x, const from_hlo_tree *tree, uint32_t i, const from_hlo_tree **out);

/* --- from_hlo_value.c: making ops --- */
/* A new op, located; NULL when out of memory. */
ir_op *from_hlo_emit_n(from_hlo_op *x, ir_opcode opcode, uint32_t n_results, const ir_type *const *types, uint32_t n,
                       const ir_value *operands, uint32_t n_called);
ir_op *from_hlo_emit(from_hlo_op *x, ir_opcode opcode, const ir_type *type, uint32_t n, const ir_value *operands);
/* The op that stands for x->op: the leaves of x->type are the results; sharding and such go onto it. */
XLAC_MUST_USE int from_hlo_make(from_hlo_op *x, ir_opcode opcode, uint32_t n, const ir_value *operands,
                                uint32_t n_called, ir_op **out);
/* x->result, of x->type, from the results of what from_hlo_make made. */
XLAC_MUST_USE int from_hlo_done(from_hlo_op *x, ir_op *made);
/* Every operand as one value. */
XLAC_MUST_USE int from_hlo_operands(from_hlo_op *x, ir_value **out);
/* Sets an attribute of what was made. A NULL value stands for one that could not be made: out of memory. */
XLAC_MUST_USE int from_hlo_put(from_hlo_op *x, ir_op *made, const char *name, const ir_mattr *value);
/* A tensor constant of one number everywhere. */
XLAC_MUST_USE int from_hlo_splat(from_hlo_op *x, const ir_type *type, double number, ir_value *out);

/* --- from_hlo_attrs.c --- */
/* The inherent attributes of the pair table. */
XLAC_MUST_USE int from_hlo_attrs(from_hlo_op *x, ir_op *made);
XLAC_MUST_USE int from_hlo_window(from_hlo_op *x, ir_op *made);
XLAC_MUST_USE int from_hlo_padding(from_hlo_op *x, ir_op *made);
XLAC_MUST_USE int from_hlo_slice(from_hlo_op *x, ir_op *made);
/* Replica groups written out; NULL lists where there are none. */
XLAC_MUST_USE int from_hlo_groups(const from_hlo_op *x, const ir_int_lists **out);
/* This and the two that follow give NULL when out of memory. */
const ir_mattr *from_hlo_groups_attr(from_hlo_op *x);
const ir_mattr *from_hlo_channel(from_hlo *t, int64_t handle, int64_t type);
const ir_mattr *from_hlo_literal(from_hlo *t, const ir_type *type, const ir_literal *l);

/* --- from_hlo_common.c: what any op or argument may carry, and the facts of the module --- */
/* Sharding and frontend attributes of x->op, onto `made`. */
XLAC_MUST_USE int from_hlo_common(from_hlo_op *x, ir_op *made);
/* Where the op is from: metadata as MLIR's loc(...). */
const ir_mattr *from_hlo_location(from_hlo *t, const ir_op *op);
const ir_mattr *from_hlo_sharding(from_hlo *t, const ir_sharding *s);
const ir_mattr *from_hlo_dict(from_hlo *t, const ir_dict *d);
/* The i-th leaf's part of a sharding. */
const ir_sharding *from_hlo_leaf_sharding(const ir_sharding *s, uint32_t i);
/* What HLO says of parameters and of the root is said of arguments and results, leaf by leaf. */
XLAC_MUST_USE int from_hlo_argument_facts(from_hlo *t, const ir_computation *from, ir_computation *made);
XLAC_MUST_USE int from_hlo_result_facts(from_hlo *t, const ir_computation *from, ir_computation *made);
/* Counts of partitions and replicas, aliases, donors and layouts of the entry. */
XLAC_MUST_USE int from_hlo_module_facts(from_hlo *t, ir_computation *entry);

/* --- from_hlo_control.c --- */
/* A call of what x->op calls, by `attr`. */
XLAC_MUST_USE int from_hlo_call_op(from_hlo_op *x, ir_opcode opcode, const char *attr, ir_op **out);

/* --- rules of single ops --- */
/* Translates one op by its rule: x->result is set when this gives 0. */
XLAC_MUST_USE int from_hlo_one(from_hlo_op *x);
typedef int from_hlo_fn(from_hlo_op *x);
from_hlo_fn from_hlo_plain, from_hlo_constant, from_hlo_bitcast, from_hlo_convolution, from_hlo_dynamic_reshape,
    from_hlo_while, from_hlo_conditional, from_hlo_call, from_hlo_fusion, from_hlo_async_start, from_hlo_async_done,
    from_hlo_barrier, from_hlo_after_all, from_hlo_add_dependency, from_hlo_copy_start, from_hlo_copy_done,
    from_hlo_each, from_hlo_all_to_all, from_hlo_infeed, from_hlo_outfeed, from_hlo_send, from_hlo_send_done,
    from_hlo_recv, from_hlo_recv_done, from_hlo_collective_start, from_hlo_collective_done, from_hlo_custom_call,
    from_hlo_encoded, from_hlo_ragged_all_to_all;

#endif
