/* What the functions of lower.def's rows work with. A row lowers one node: it reads its inputs and attributes, makes
 * ops with the makers of passes/rewrite/rewrite.h (x->rw) and those below, and says what its outputs are. Errors stick:
 * a function that gives a value gives one without op after a failure, which all makers pass on, and x->status then has
 * the code of the first error. So a row checks only before it looks into something itself. */
#ifndef XLAC_TF_LOWER_ROW_H
#define XLAC_TF_LOWER_ROW_H

#include "../../passes/rewrite/rewrite.h"
#include "lower.h"

/* What an output of a node can be while a graph is lowered. */
typedef enum tfl_kind {
  TFL_NONE,   /* nothing: the node was not lowered, or the variable has no value */
  TFL_TENSOR, /* a tensor */
  TFL_HANDLE, /* of a resource: number */
  TFL_LIST    /* several tensors that are one value: a TensorList (variant), a TensorArray's or stack's content */
} tfl_kind;

/* What one output of a node is. All of it lives in the arena of the result, data for data stays readable. */
typedef struct tfl_value {
  uint8_t kind;                  /* tfl_kind */
  bool fixed;                    /* TENSOR: follows from constants alone, so that its data can be had: tfl_data */
  const ir_type *type;           /* TENSOR: static shape and element type */
  ir_value v;                    /* TENSOR: without op where only data is there */
  const void *data;              /* TENSOR: row-major, or NULL */
  const ir_mattr *constant;      /* TENSOR: data as an attribute, once somebody has asked */
  int32_t input;                 /* the lowered graph's input that this is, unchanged; -1 where it is none */
  uint32_t number;               /* HANDLE: its place in tfl_build.resources */
  uint32_t n_parts;              /* LIST */
  const struct tfl_value *parts; /* LIST: what the rows that make lists agree on */
  const void *tag;               /* LIST: anything its rows want to know beside; not compared */
} tfl_value;

/* A variable, or something else with a state that nodes read and write in order: TensorArrays, stacks. */
typedef struct tfl_resource {
  tfl_value value; /* the present one; kind is TFL_NONE while it has none */
  int32_t input;   /* the graph's input; -1 for what lives only within the graph */
  bool written;    /* differs from what it was at the start */
} tfl_resource;

typedef struct tfl_row tfl_row;
typedef struct tfl_frame tfl_frame; /* a graph being lowered, and its values: the graph itself or a called body */
typedef struct tfl_build tfl_build; /* all of one tfl_lower: build.h */

/* One node being lowered. */
typedef struct tfl_op {
  tfl_build *b;
  opt_rewriter *rw;
  base_arena *arena; /* lives as long as the result */
  tfl_frame *frame;
  const tf_node *node;
  const tfl_row *row;
  uint32_t n_in, n_out;
  tfl_value **in; /* data inputs; never NULL, of kind NONE only where the producer is not of this graph */
  tfl_value *out;
  bool fixed; /* all inputs are, and the op gives the same for the same: outputs will be */
  int status; /* of the first error */
  xlac_error *err;
} tfl_op;

typedef int tfl_row_fn(tfl_op *x);
/* A row of lower.def. Several ops share a function, which tells them apart by `arg`: an opcode, a number of
 * dimensions, bits of its own. */
struct tfl_row {
  const char *op;
  tfl_row_fn *fn;
  int32_t arg; /* what the row's function makes of it */
};
#define TFL_OP(name, fn, arg) tfl_row_fn fn;
#include "lower.def"
#undef TFL_OP

/* Fails: "node 'x' (op Y): ...". Says what was expected and found. Returns x->status. */
int tfl_fail(tfl_op *x, const char *format, ...) BASE_PRINTF(2, 3);

/* --- inputs --- */

/* Input i as a tensor; fails where it is none. */
ir_value tfl_in(tfl_op *x, uint32_t i);
/* Its type: never NULL, a scalar where it is not a tensor (x->status then says so). */
const ir_type *tfl_in_type(tfl_op *x, uint32_t i);
static inline bool tfl_is_fixed(const tfl_op *x, uint32_t i) {
  return x->in[i]->kind == TFL_TENSOR && x->in[i]->fixed;
}
/* The data of input i, evaluated if need be. Fails where it is not known at compile time. */
XLAC_MUST_USE int tfl_data(tfl_op *x, uint32_t i, const void **data);
/* The same of a tensor of integers, in i64; n is its number of elements. */
XLAC_MUST_USE int tfl_ints(tfl_op *x, uint32_t i, const int64_t **v, uint32_t *n);
/* One integer, one number. */
XLAC_MUST_USE int tfl_int(tfl_op *x, uint32_t i, int64_t *v);
XLAC_MUST_USE int tfl_number(tfl_op *x, uint32_t i, double *v);
/* Of an op on images [batch, rows, columns, channels]: the two sizes that input 1 gives. */
XLAC_MUST_USE int tfl_image_sizes(tfl_op *x, const int64_t **sizes);
/* Like tfl_ints, but a failure to know them is not an error: false. */
bool tfl_try_ints(tfl_op *x, uint32_t i, const int64_t **v, uint32_t *n);
/* Element i of the vector that input k is, where it is known though the vector may not be: one of Pack's scalars. */
bool tfl_element(tfl_op *x, uint32_t k, uint32_t i, int64_t *v);
/* An axis in -rank..rank-1 to 0..rank-1. */
XLAC_MUST_USE int tfl_axis(tfl_op *x, int64_t axis, uint32_t rank, uint32_t *out);
/* The resource that input i is a handle of; NULL after a failure. */
tfl_resource *tfl_in_resource(tfl_op *x, uint32_t i);

/* --- attributes, with the OpDef's defaults. A missing one, or one of another kind, is an error. --- */

int64_t tfl_attr_int(tfl_op *x, const char *name);
bool tfl_attr_bool(tfl_op *x, const char *name);
float tfl_attr_float(tfl_op *x, const char *name);
base_slice tfl_attr_str(tfl_op *x, const char *name);
bool tfl_attr_is(tfl_op *x, const char *name, const char *word); /* a string attribute is `word` */
base_dtype tfl_attr_dtype(tfl_op *x, const char *name);
/* A list of integers, of strings (each in *v); false at the end: begin with *at NULL. */
XLAC_MUST_USE int tfl_attr_ints(tfl_op *x, const char *name, const int64_t **v, uint32_t *n);
/* A shape; *known false where its rank is unknown. Unknown sizes are -1. */
XLAC_MUST_USE int tfl_attr_shape(tfl_op *x, const char *name, bool *known, const int64_t **dims, uint32_t *rank);
/* XLA's element type for TensorFlow's; INVALID where there is none (strings, resources, variants). */
base_dtype tfl_dtype_of(unsigned tf_type);

/* --- outputs --- */

void tfl_out(tfl_op *x, uint32_t i, ir_value v);
/* Input k as it is: also handles and lists, known data stays known. */
void tfl_out_same(tfl_op *x, uint32_t i, uint32_t k);
void tfl_out_value(tfl_op *x, uint32_t i, const tfl_value *v);
/* Data, copied: row-major. */
void tfl_out_data(tfl_op *x, uint32_t i, base_dtype dtype, uint32_t rank, const int64_t *dims, const void *data);
/* Integers as i32 or i64, whichever the node's output type is. */
void tfl_out_ints(tfl_op *x, uint32_t i, uint32_t rank, const int64_t *dims, const int64_t *v);
/* The element type of output i by the node's types. */
base_dtype tfl_out_dtype(const tfl_op *x, uint32_t i);
/* A resource gets a new value. */
void tfl_assign(tfl_op *x, tfl_resource *r, ir_value v);
void tfl_assign_value(tfl_op *x, tfl_resource *r, const tfl_value *v);
/* A new resource of this graph alone (a TensorArray, a stack), and its handle as output i. NULL when out of
 * memory, with x->status set. */
tfl_resource *tfl_new_resource(tfl_op *x, uint32_t i);

/* --- values from tfl_values --- */

/* A tensor's value at the cursor; a list's parts one after the other. */
ir_value tfl_use(tfl_op *x, tfl_value *v);
/* A tensor that is v. */
tfl_value tfl_tensor(const tfl_op *x, ir_value v);

/* --- makers: make.c. Shapes are static; types of operands must fit, as nothing is broadcast unless it says so. --- */

const ir_type *tfl_type(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims);
ir_value tfl_scalar(tfl_op *x, base_dtype dtype, double v);
ir_value tfl_like(tfl_op *x, ir_value like, double v); /* of like's type */
ir_value tfl_full(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims, double v);
ir_value tfl_cast(tfl_op *x, ir_value v, base_dtype dtype); /* itself where it has the type */
ir_value tfl_reshape(tfl_op *x, ir_value v, uint32_t rank, const int64_t *dims);
/* numpy's broadcasting: of v to a shape; of both to their common shape; what that shape is. They fail where it does not
 * work. A maker that broadcasts gives v itself where nothing is to do. */
ir_value tfl_broadcast(tfl_op *x, ir_value v, uint32_t rank, const int64_t *dims);
void tfl_broadcast_pair(tfl_op *x, ir_value *a, ir_value *b);
XLAC_MUST_USE int tfl_broadcast_dims(tfl_op *x, uint32_t rank_a, const int64_t *a, uint32_t rank_b, const int64_t *b,
                                     uint32_t *rank, int64_t *dims);
/* v has one dimension, which becomes dimension `dim` of the shape of `like`, and is broadcast along all others. */
ir_value tfl_along(tfl_op *x, ir_value v, ir_value like, uint32_t dim);
/* a scalar in all places of like's shape */
ir_value tfl_spread(tfl_op *x, ir_value scalar, ir_value like);
/* Elementwise on two of any shapes, broadcast. */
ir_value tfl_binary(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b);
/* The same with a constant; of element k of like's type. */
ir_value tfl_with(tfl_op *x, ir_opcode opcode, ir_value a, double k);
ir_value tfl_compare(tfl_op *x, ir_direction direction, ir_value a, ir_value b); /* broadcast too */
ir_value tfl_iota(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t dim);
ir_value tfl_slice(tfl_op *x, ir_value v, uint32_t dim, int64_t from, int64_t to); /* along one dimension */
ir_value tfl_concat(tfl_op *x, uint32_t n, const ir_value *parts, uint32_t dim);
ir_value tfl_transpose(tfl_op *x, ir_value v, const int64_t *permutation); /* itself where it moves nothing */
ir_value tfl_reverse(tfl_op *x, ir_value v, uint32_t n, const int64_t *dims);
/* low and high may be negative; interior NULL: 0 everywhere. */
ir_value tfl_pad(tfl_op *x, ir_value v, ir_value scalar, const int64_t *low, const int64_t *high,
                 const int64_t *interior);
ir_value tfl_reduce(tfl_op *x, ir_opcode opcode, ir_value v, double init, uint32_t n, const int64_t *dims);
/* starts: rank scalars of one integer type. */
ir_value tfl_dynamic_slice(tfl_op *x, ir_value v, const ir_value *starts, const int64_t *sizes);
ir_value tfl_dynamic_update(tfl_op *x, ir_value v, ir_value part, const ir_value *starts);
/* Dimension numbers of a product: pairs that stay (batch) and pairs that are summed over (contract). */
typedef struct tfl_dot {
  uint32_t n_batch, n_contract;
  int64_t a_batch[TFL_MOST_DIMS], b_batch[TFL_MOST_DIMS], a_contract[TFL_MOST_DIMS], b_contract[TFL_MOST_DIMS];
} tfl_dot;
/* dot_general; the result has elements of `dtype` (preferred_element_type). */
ir_value tfl_dot_general(tfl_op *x, ir_value a, ir_value b, const tfl_dot *d, base_dtype dtype);
/* The smallest and largest value of an element type (infinities for floats), as a scalar. */
ir_value tfl_lowest(tfl_op *x, base_dtype dtype);
ir_value tfl_highest(tfl_op *x, base_dtype dtype);
/* The element type that sums of `dtype` are made in: f32 for f16 and bf16. */
base_dtype tfl_sum_dtype(base_dtype dtype);

/* Where new ops go, to be put back: around the regions of an op. */
typedef struct tfl_cursor {
  ir_computation *into;
  ir_op *before;
} tfl_cursor;
tfl_cursor tfl_enter(tfl_op *x, ir_computation *region);
void tfl_leave(tfl_op *x, tfl_cursor back);

#endif
