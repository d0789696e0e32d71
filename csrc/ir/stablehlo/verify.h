/* What the files of the verifier of MLIR form share. A rule is a column SHLO of ops.def: sets of types that operands
 * and results may have, facts (traits), a function that infers the result types, one that checks the rest. Rules run on
 * ops whose counts, attributes' kinds and types are checked already (verify_op.c), so they may take all that for
 * granted. Ids such as "concatenate_c4" are those of StableHLO's specification. */
#ifndef XLAC_IR_STABLEHLO_VERIFY_H
#define XLAC_IR_STABLEHLO_VERIFY_H

#include "stablehlo.h"

/* What a value may be: kinds of element, shapes, and what is not a tensor. */
typedef enum sv_set {
  SV_PRED = 1 << 0,
  SV_SINT = 1 << 1,
  SV_UINT = 1 << 2,
  SV_FLOAT = 1 << 3,
  SV_COMPLEX = 1 << 4,
  SV_QUANT = 1 << 5,      /* one scale for the tensor */
  SV_QUANT_AXIS = 1 << 6, /* a scale for each index of a dimension */
  SV_INDEX = 1 << 7,
  SV_FLOAT32_64 = 1 << 8,
  SV_STATIC = 1 << 9,   /* no dynamic dimensions */
  SV_BOUNDED = 1 << 10, /* static, or one dynamic dimension that has a bound */
  SV_RANK0 = 1 << 11,
  SV_RANK1 = 1 << 12,
  SV_RANK2 = 1 << 13,
  SV_UNRANKED = 1 << 14, /* unranked tensors too */
  SV_TOKEN = 1 << 15,
  SV_TUPLE = 1 << 16,
  SV_BUFFER = 1 << 17,
  SV_FUTURE = 1 << 18,
  SV_INT = SV_SINT | SV_UINT,
  SV_PLAIN = SV_PRED | SV_INT | SV_FLOAT | SV_COMPLEX,
  SV_TENSOR = SV_PLAIN | SV_QUANT,
  SV_TENSOR_AXIS = SV_TENSOR | SV_QUANT_AXIS,
  SV_FCQ = SV_FLOAT | SV_COMPLEX | SV_QUANT,
  SV_FQ = SV_FLOAT | SV_QUANT,
  SV_IFCQ = SV_INT | SV_FCQ,
  SV_DIMENSIONS = SV_INT | SV_INDEX | SV_RANK1,
  SV_ANY = SV_TENSOR_AXIS | SV_UNRANKED,
  SV_VALUE = SV_TENSOR_AXIS | SV_TOKEN,
  SV_ELEMENTS = SV_TENSOR_AXIS | SV_INDEX | SV_FLOAT32_64,
  SV_EVERY = SV_ANY | SV_INDEX | SV_TOKEN | SV_TUPLE | SV_BUFFER | SV_FUTURE
} sv_set;

/* Facts of a row about operands and results together; named after MLIR's traits. */
typedef enum sv_trait {
  SV_SAME_TYPE = 1 << 0,        /* operands and results have compatible types; the result type is the most specific */
  SV_SAME_ELEMENT = 1 << 1,     /* compatible element types in all operands and results */
  SV_OPERANDS_ELEMENT = 1 << 2, /* in all operands */
  SV_EQUAL_ELEMENT = 1 << 3,    /* the same element type in all operands and results */
  SV_SAME_SHAPE = 1 << 4,       /* compatible shapes of all operands and results */
  SV_PAIRED_TYPE = 1 << 5,      /* operand i and result i have the same type */
  SV_PAIRED_ELEMENT = 1 << 6,   /* the same element type */
  SV_HALVES = 1 << 7,           /* as many inputs as initial values */
  SV_ELEMENT_OUT = 1 << 8,      /* operand 0 and result 0 have the same element type */
  SV_ELEMENT_01 = 1 << 9,       /* operands 0 and 1 have the same element type */
  SV_ISOLATED = 1 << 10,        /* regions use nothing from outside */
  SV_LAST_IS_TOKEN = 1 << 11    /* the last operand is a token, whatever its place */
} sv_trait;

/* An op being checked. */
typedef struct sv {
  ir_module *m;
  const ir_op *op;
  base_arena *arena;   /* scratch */
  const ir_type **out; /* inference: the result types, op->n_results of them */
  const struct sv_functions *functions;
  xlac_error *err;
} sv;

/* 0, or the negative code with v->err filled. */
typedef int sv_fn(const sv *v);

/* Column SHLO of a row of ops.def. */
typedef struct sv_rule {
  const uint32_t *in, *out; /* sets of operand i, result i; the last of the list stands for all further ones */
  uint8_t n_in, n_out;
  uint32_t traits;
  sv_fn *infer;  /* fills v->out; NULL: CANNOT_INFER, unless SV_SAME_TYPE */
  sv_fn *verify; /* what inference does not cover, or NULL */
} sv_rule;

/* NULL for ops without rules (unregistered ones, parameters). verify_op.c */
const sv_rule *sv_rule_of(unsigned opcode);

/* The inference of rules that hold SV_SAME_TYPE and name none: one result of the first operand's type. */
sv_fn sv_infer_same;
/* Every function that a rule names. */
#include "../ops_columns.h"
#undef SHLO
#define SHLO(columns) columns
#define IN(...)
#define OUT(...)
#define HOLDS(set)
#define INFERS(name) sv_fn sv_infer_##name;
#define CHECKS(name) sv_fn sv_verify_##name;
#define OP(code, text, arity, columns) columns
#include "../ops.def"
#undef OP
#undef IN
#undef OUT
#undef HOLDS
#undef INFERS
#undef CHECKS
#include "../ops_columns.h"

/* "stablehlo.add expects ... (add_c1)" at the op's line and column; id may be NULL. Returns the code. Errors begin
 * with the op's MLIR name and end with the constraint's: id may be NULL. */
int sv_fail(const sv *v, const char *id, const char *format, ...) BASE_PRINTF(3, 4);
int sv_fail_code(const sv *v, base_code code, const char *id, const char *format, ...) BASE_PRINTF(4, 5);
/* The same of a struct attribute: at its own line and column where those are known. */
int sv_fail_attr(const sv *v, const ir_mattr *a, const char *id, const char *format, ...) BASE_PRINTF(4, 5);
int sv_oom(const sv *v);

/* --- one op as a whole: verify_op.c --- */
XLAC_MUST_USE int sv_verify_op(const sv *v);
XLAC_MUST_USE int sv_infer_op(const sv *v);
/* The ops of upstream's tests that have rules of their own; any other unregistered op is fine. verify_control.c */
XLAC_MUST_USE int sv_verify_test_op(const sv *v);
XLAC_MUST_USE int sv_check_attrs(const sv *v);                       /* verify_op.c */
XLAC_MUST_USE int sv_check_traits(const sv *v, const sv_rule *rule); /* verify_op.c */

/* --- the module's structure: verify.c --- */
/* Functions by name. Filled by sv_check_module; freed by whoever made it. */
typedef struct sv_functions {
  base_map by_name; /* interned name to computation */
} sv_functions;
XLAC_MUST_USE int sv_check_module(ir_module *m, sv_functions *functions, xlac_error *err);
const ir_computation *sv_function(const sv *v, const ir_mattr *symbol);
/* Whether the op can call f: what another op than func.return gives need not be what f declares. */
XLAC_MUST_USE int sv_check_callable(const sv *v, const ir_computation *f, const char *id);
bool sv_symbol_exists(const sv *v, const char *name);

/* --- types: verify_types.c --- */
#define SV_DYNAMIC IR_UNBOUNDED
/* Writes "tensor<2x?xf32>", as MLIR does but for quantisation's parameters. Returns buf. */
char *sv_type_text(const ir_type *t, char *buf, size_t size);
#define SV_SHOW(type) sv_type_text((type), (char[160]){0}, 160)
char *sv_ints_text(uint32_t n, const int64_t *v, char *buf, size_t size);
#define SV_SHOW_INTS(list) sv_ints_text((list).n, (list).v, (char[160]){0}, 160)
/* Words for a set: "tensor of float or complex". */
char *sv_set_text(uint32_t set, char *buf, size_t size);
bool sv_type_in(const ir_type *t, uint32_t set);
bool sv_is_buffer(const ir_type *t);
bool sv_is_shaped(const ir_type *t); /* a tensor, ranked or not */
/* Operands and results by number, as the op has them. */
static inline const ir_type *sv_in(const sv *v, uint32_t i) {
  return ir_operand_type(v->op, i);
}
static inline const ir_type *sv_result(const sv *v, uint32_t i) {
  assert(i < v->op->n_results);
  return v->op->types[i];
}
/* --- sizes: SV_DYNAMIC stands for what is not known ---
 *
 * SV_DYNAMIC where dynamic. */
static inline int64_t sv_dim(const ir_type *t, uint32_t i) {
  assert(i < t->rank);
  return ir_dim_is_dynamic(t, i) ? SV_DYNAMIC : t->dims[i];
}
/* SV_DYNAMIC where static or unbounded. */
static inline int64_t sv_bound(const ir_type *t, uint32_t i) {
  assert(i < t->rank);
  return ir_dim_is_dynamic(t, i) ? t->dims[i] : SV_DYNAMIC;
}
/* Two sizes that may be one. */
static inline bool sv_dims_fit(int64_t a, int64_t b) {
  return a == SV_DYNAMIC || b == SV_DYNAMIC || a == b;
}
/* A ranked tensor without dynamic dimensions. */
static inline bool sv_is_static(const ir_type *t) {
  return t->kind == IR_TYPE_TENSOR && !t->has_dynamic;
}
bool sv_shapes_fit(const ir_type *a, const ir_type *b);        /* a dynamic dimension fits any */
bool sv_shapes_fit_bounds(const ir_type *a, const ir_type *b); /* and sizes are within the other's bounds */
bool sv_elements_fit(const ir_type *a, const ir_type *b);      /* quantised ones may differ in scales */
bool sv_same_element(const ir_type *a, const ir_type *b);
bool sv_types_fit(const ir_type *a, const ir_type *b);
bool sv_is_float(const ir_type *t);
bool sv_element_is(const ir_type *t, base_dtype dtype); /* not quantised, not index */
bool sv_is_scalar_of(const ir_type *t, base_dtype dtype);
static inline bool sv_is_quant(const ir_type *t) {
  return t->quant != NULL;
}
static inline bool sv_is_quant_axis(const ir_type *t) {
  return t->quant && t->quant->axis >= 0;
}
static inline bool sv_is_quant_tensor(const ir_type *t) {
  return t->quant && t->quant->axis == -1;
}
int64_t sv_element_bits(const ir_type *t);

/* --- shapes that inference builds: infer_elementwise.c --- */
#define SV_MAX_RANK (3 * IR_MAX_RANK + 2)
/* Dimensions under construction. Room for the sum of three ranks, as gather's and dot's results may come to before
 * they are refused. */
typedef struct sv_shape {
  uint32_t rank;
  int64_t dims[SV_MAX_RANK], bounds[SV_MAX_RANK]; /* SV_DYNAMIC: dynamic, no bound */
} sv_shape;
/* An element type apart from its shape. */
typedef struct sv_element {
  base_dtype dtype;
  const ir_quant *quant;
  const base_istr *text;
} sv_element;
/* --- making types --- */
void sv_shape_of(const ir_type *t, sv_shape *shape);
void sv_push(sv_shape *s, int64_t dim, int64_t bound);
static inline void sv_push_dim(sv_shape *s, const ir_type *t, uint32_t i) {
  sv_push(s, sv_dim(t, i), sv_bound(t, i));
}
sv_element sv_element_of(const ir_type *t);
sv_element sv_plain(base_dtype dtype);
/* Interns. */
XLAC_MUST_USE int sv_make(const sv *v, const sv_shape *s, sv_element e, const ir_type **out);
XLAC_MUST_USE int sv_like(const sv *v, const ir_type *shape, sv_element e, const ir_type **out);
/* The element type that a result was declared with, else operand 0's. */
sv_element sv_declared_element(const sv *v);
/* Merges a second (dim, bound) into *dim, *bound; an error where they contradict each other. i is the dimension's
 * number. */
XLAC_MUST_USE int sv_most_specific_dim(const sv *v, uint32_t i, int64_t *dim, int64_t *bound, int64_t dim2,
                                       int64_t bound2);
/* Of n types, tuples elementwise. */
XLAC_MUST_USE int sv_most_specific(const sv *v, uint32_t n, const ir_type *const *types, const ir_type **out);
XLAC_MUST_USE int sv_least_specific(const sv *v, uint32_t n, const ir_type *const *types, const ir_type **out);

/* --- attributes --- */
/* A list of integers in scratch memory; n 0 where the attribute is absent. */
typedef struct sv_ints {
  const int64_t *v;
  uint32_t n;
} sv_ints;
/* From an attribute of any kind that holds integers, the op's attribute of that name, a struct's field. */
sv_ints sv_ints_of(const sv *v, const ir_mattr *a);
static inline sv_ints sv_attr_ints(const sv *v, const char *name) {
  return sv_ints_of(v, ir_mattr_of(v->op, name));
}
static inline sv_ints sv_field_ints(const sv *v, const ir_mattr *a, const char *name) {
  return sv_ints_of(v, ir_m_field(a, name));
}
int64_t sv_field_int(const ir_mattr *a, const char *name, int64_t otherwise);
/* --- lists of dimensions --- */
bool sv_has(sv_ints list, int64_t x);
bool sv_is_sorted(sv_ints list);
bool sv_is_unique(sv_ints list);
/* The integers of operand i when it is a constant; false otherwise. */
bool sv_constant_ints(const sv *v, uint32_t i, sv_ints *out);
/* All numbers in [0, below); `what` names the list in the message. */
XLAC_MUST_USE int sv_check_dims(const sv *v, const char *id, const char *what, sv_ints dims, int64_t below);
XLAC_MUST_USE int sv_check_distinct(const sv *v, const char *id, const char *what, sv_ints a, const char *what2,
                                    sv_ints b);

/* --- regions --- */
/* Regions have been found whole: parameters and returned values are there. */
static inline const ir_computation *sv_region(const sv *v, uint32_t i) {
  assert(i < v->op->n_called);
  return v->op->called[i];
}
static inline const ir_type *sv_arg(const ir_computation *c, uint32_t i) {
  assert(i < c->n_params);
  return c->params[i]->type;
}
static inline const ir_type *sv_returned(const ir_computation *c, uint32_t i) {
  assert(i < c->n_results);
  return c->results[i].op->types[c->results[i].index];
}
/* Scalars of the given element types as a type. */
XLAC_MUST_USE int sv_scalar_like(const sv *v, const ir_type *t, const ir_type **out);
/* The rule of reducers: (T, ..., E, ...) -> T, T shaped as `inits`, E as the inputs. allowed: the dimensions that
 * arguments may have. verify_reducer.c */
XLAC_MUST_USE int sv_check_reducer(const sv *v, const ir_computation *c, uint32_t n, const ir_type *const *inputs,
                                   const ir_type *const *inits, const sv_shape *allowed);
/* The accumulators' element type i: the region's result, or operand i where there is no region. */
sv_element sv_accumulator(const ir_computation *c, uint32_t i, const ir_type *input);

/* --- windows: verify_conv.c --- */
/* One entry for each window dimension; an empty list means the default everywhere. */
typedef struct sv_window {
  sv_ints size, stride, base_dilation, dilation, padding; /* padding: pairs; lists may be empty: defaults */
} sv_window;
XLAC_MUST_USE int sv_check_window(const sv *v, const sv_window *w, sv_ints reversal);
/* The size of the output along dimension i of `size` (or a bound). */
int64_t sv_window_output(const sv_window *w, uint32_t i, int64_t size);
/* padding as pairs, its shape checked. */
XLAC_MUST_USE int sv_read_padding(const sv *v, sv_ints *out);

/* --- quantised types in themselves: verify_quant.c --- */
/* Which rule a type breaks, and how: "zero point 300; expected one of -128 to 127". id is NULL where it has no name. */
typedef struct sv_quant_fault {
  const char *id;
  char text[120];
} sv_quant_fault;
/* t->quant is there. fault may be NULL. */
bool sv_quant_is_broken(const ir_type *t, sv_quant_fault *fault);
/* The types that a function takes and gives; of those that ops have the op's own check speaks first. */
XLAC_MUST_USE int sv_check_interface(const ir_computation *c, xlac_error *err);

/* --- quantisation: verify_quant.c --- */
XLAC_MUST_USE int sv_check_same_scales(const sv *v, const char *id, const ir_type *a, const ir_type *b);
XLAC_MUST_USE int sv_check_reshape_quant(const sv *v);
XLAC_MUST_USE int sv_check_broadcast_quant(const sv *v, sv_ints dims);
XLAC_MUST_USE int sv_check_product_quant(const sv *v); /* common to convolution and dot_general */

/* --- what dot_general and ragged_dot share: verify_dot.c --- */
/* Dimension numbers of dot_general and ragged_dot, checked. */
typedef struct sv_dot {
  sv_ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
} sv_dot;
XLAC_MUST_USE int sv_read_dot(const sv *v, const ir_mattr *numbers, sv_dot *d);
XLAC_MUST_USE int sv_check_precision(const sv *v);

#endif
