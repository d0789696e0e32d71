/* Types: tensors with layouts and dynamic bounds, tuples, tokens, opaques, buffers, futures.
 * Interned per module: within one module two types are the same type, layout included, iff their pointers are equal;
 * `bare` pointers compare them without layouts. All types are immutable and live as long as their module. */
#ifndef XLAC_IR_TYPES_TYPE_H
#define XLAC_IR_TYPES_TYPE_H

#include "../../base/dtype.h"
#include "../../base/str.h"

typedef struct ir_module ir_module;
typedef struct ir_type ir_type;

/* A dimension whose extent is not known at all ("?"). Its dynamic flag is set too. */
#define IR_UNBOUNDED INT64_MIN
/* A tile dimension that combines with the next ("*"). */
#define IR_TILE_COMBINE INT64_MIN
#define IR_MAX_RANK 64
/* Bounds on tuple types, so that walks over them may recurse and stay short though types share their parts. */
#define IR_MAX_TYPE_DEPTH 256
#define IR_MAX_TYPE_LEAVES (1 << 17)

typedef enum ir_type_kind {
  IR_TYPE_TENSOR,
  IR_TYPE_TUPLE,
  IR_TYPE_TOKEN,
  IR_TYPE_OPAQUE,
  IR_TYPE_BUFFER, /* b(f32[8]) : inner is the tensor */
  IR_TYPE_FUTURE, /* StableHLO's !stablehlo.future<...> : elements */
  /* The rest is in MLIR form only. */
  IR_TYPE_UNRANKED, /* tensor<*xf32>: dtype, quant or text as for tensors */
  IR_TYPE_ELEMENT,  /* a bare element type, f32 or !quant.uniform<...>: dtype and quant */
  IR_TYPE_FUNCTION, /* (a, b) -> c: n_inputs of the elements are the inputs */
  IR_TYPE_OTHER     /* index, none, tf32, i17, !shape.shape, memref<...>: text, verbatim */
} ir_type_kind;

/* A quantised element type, !quant.uniform<storage<min:max>:expressed:axis, {scale:zero_point, ...}>. The tensor's
 * dtype is the storage type; real value = (stored - zero_point) * scale. */
typedef struct ir_quant {
  uint8_t storage, expressed; /* base_dtype; storage is signed or unsigned as written (i8, u8) */
  bool has_range;             /* storage_min and storage_max were written or are not the type's own */
  int64_t storage_min, storage_max;
  int32_t axis; /* -1: one scale for the tensor (n is 1), -2: blocks (see block_*) */
  uint32_t n;   /* scales and zero points; blocks: row-major over the grid of blocks */
  const double *scales;
  const int64_t *zero_points;
  uint32_t n_blocks; /* axis -2: dimensions that are cut into blocks */
  const int64_t *block_axes, *block_sizes;
  uint32_t grid_rank; /* axis -2: dims of the nested list of scales as written */
  const int64_t *grid_dims;
} ir_quant;

/* T(8,128): dims of one tile; IR_TILE_COMBINE for "*". */
typedef struct ir_tile {
  uint32_t rank;
  const int64_t *dims;
} ir_tile;

/* Where one dimension is split: indices that rise strictly within it. */
typedef struct ir_split {
  int64_t dimension;
  uint32_t n;
  const int64_t *indices;
} ir_split;

/* Per-dimension storage form, the D(...) part: 'D' dense, 'C' compressed, 'S' singleton, 'H' loose compressed. */
typedef struct ir_dim_level {
  char form;
  bool unique;  /* no '+' suffix */
  bool ordered; /* no '~' suffix */
} ir_dim_level;

/* A layout, XLA's {minor_to_major:suffixes}. minor_to_major is kept as written, the verifier checks that it permutes.
 */
typedef struct ir_layout {
  uint32_t rank;
  const int64_t *minor_to_major;
  const ir_dim_level *levels; /* rank of them, or NULL: all dense */
  uint32_t n_tiles;
  const ir_tile *tiles;
  int64_t tail_padding;                /* L(n), elements; 1 is none */
  base_dtype index_type, pointer_type; /* #(..), *(..), or invalid */
  int64_t element_bits;                /* E(n), 0 is none */
  int64_t memory_space;                /* S(n), 0 is the default space */
  uint32_t n_splits;
  const ir_split *splits;
  const ir_type *physical;       /* P(...), or NULL */
  int64_t metadata_prefix_bytes; /* M(n), 0 is none */
} ir_layout;

/* Immutable. Which fields count depends on `kind`; the others are zero. */
struct ir_type {
  uint8_t kind;     /* ir_type_kind */
  uint8_t dtype;    /* base_dtype, tensors only */
  bool has_dynamic; /* some dimension is dynamic, here or in an element */
  uint32_t hash;
  uint32_t rank;           /* tensors */
  const int64_t *dims;     /* rank of them; the bound where dynamic, IR_UNBOUNDED for "?" */
  const bool *dynamic;     /* rank of them, or NULL: all static */
  const ir_layout *layout; /* interned, or NULL: none given. HLO text without one gets the default {rank-1,...,0} */
  int64_t count;           /* elements (product of dims, bounds where dynamic); 0 if unbounded */
  uint32_t depth;          /* of nesting: 0 for tensors, 1 for a tuple of them */
  uint32_t n_leaves;       /* at any depth; saturates */
  uint32_t n_elements;     /* tuples, futures */
  const ir_type *const *elements;
  const ir_type *inner;  /* buffers */
  const ir_quant *quant; /* of a quantised tensor or element type; else NULL */
  const base_istr *text; /* OTHER; also a tensor's element type that is not a dtype: "index" (its dtype is then S64) */
  const base_istr *encoding; /* a tensor's encoding attribute, verbatim, where it is not bounds of its
                                dynamic dimensions; else NULL */
  uint32_t n_inputs;         /* functions */
  const ir_type *bare;       /* this type with no layouts at any depth; itself when it has none */
};

/* Makers intern. NULL when out of memory or, for tensors, when the element count or its byte size overflows 63 bits,
 * rank is over IR_MAX_RANK, or a dimension is negative; the error (err may be NULL) says which. `dynamic` may be NULL.
 */
const ir_type *ir_tensor(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims, const bool *dynamic,
                         const ir_layout *layout, xlac_error *err);
/* The same with the default layout. */
const ir_type *ir_tensor_default(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims, xlac_error *err);
const ir_type *ir_scalar(ir_module *m, base_dtype dtype);
const ir_type *ir_tuple(ir_module *m, uint32_t n, const ir_type *const *elements);
const ir_type *ir_token(ir_module *m);
const ir_type *ir_opaque(ir_module *m);
const ir_type *ir_buffer(ir_module *m, const ir_type *inner);
/* MLIR form. Parts are copied. type.c */
const ir_type *ir_tensor_mlir(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text,
                              uint32_t rank, const int64_t *dims, const bool *dynamic, const base_istr *encoding,
                              xlac_error *err);
const ir_type *ir_unranked(ir_module *m, base_dtype dtype, const ir_quant *quant, const base_istr *element_text);
const ir_type *ir_element(ir_module *m, base_dtype dtype, const ir_quant *quant);
const ir_type *ir_future(ir_module *m, uint32_t n, const ir_type *const *elements);
const ir_type *ir_function_type(ir_module *m, uint32_t n_inputs, uint32_t n_results, const ir_type *const *inputs,
                                const ir_type *const *results);
const ir_type *ir_other_type(ir_module *m, const char *text, size_t n);
bool ir_quant_equal(const ir_quant *a, const ir_quant *b); /* NULL equals NULL */
/* `t` without layouts at any depth: what MLIR form uses. */
static inline const ir_type *ir_bare(const ir_type *t) {
  return t->bare;
}
/* Copies and interns a layout (with everything it points to). */
const ir_layout *ir_layout_intern(ir_module *m, const ir_layout *layout);
/* {rank-1, ..., 0}, row-major. */
const ir_layout *ir_layout_default(ir_module *m, uint32_t rank);
/* `t` of any module as a type of `m`. */
const ir_type *ir_type_import(ir_module *m, const ir_type *t);
/* t, a tensor of m, with another layout (NULL: none) or another element type. NULL when out of memory. */
const ir_type *ir_type_with_layout(ir_module *m, const ir_type *t, const ir_layout *layout);
const ir_type *ir_type_with_dtype(ir_module *m, const ir_type *t, base_dtype dtype);

static inline bool ir_is_tensor(const ir_type *t) {
  return t->kind == IR_TYPE_TENSOR;
}
/* A tensor of rank 0. */
static inline bool ir_is_scalar(const ir_type *t) {
  return t->kind == IR_TYPE_TENSOR && t->rank == 0;
}
static inline bool ir_is_tuple(const ir_type *t) {
  return t->kind == IR_TYPE_TUPLE;
}
static inline bool ir_is_token(const ir_type *t) {
  return t->kind == IR_TYPE_TOKEN;
}
/* True for unbounded dimensions too. */
static inline bool ir_dim_is_dynamic(const ir_type *t, uint32_t d) {
  return t->dynamic && t->dynamic[d];
}
/* Equal but for layouts. Works across modules. */
bool ir_same_bare(const ir_type *a, const ir_type *b);
/* Equal but for layouts and dynamic flags (XLA's Compatible); an unbounded dimension fits any. Works across modules. */
bool ir_compatible(const ir_type *a, const ir_type *b);
/* Compatible but for element types; or for element types where both are floats. */
bool ir_compatible_ignoring_dtype(const ir_type *a, const ir_type *b);
bool ir_compatible_ignoring_float(const ir_type *a, const ir_type *b);
/* Whether some dimension of t, or of an element at any depth, has no bound ("?"). */
bool ir_is_unbounded(const ir_type *t);
/* Bytes of the logical value: count * bytes per element in host memory; the sum for tuples; 0 for the rest. */
int64_t ir_type_bytes(const ir_type *t);
/* Bytes as XLA counts them (ShapeUtil::ByteSizeOf): 4-bit types packed only when the layout says E(4). 8 per tuple
 * entry. */
int64_t ir_type_xla_bytes(const ir_type *t);
/* The type at a tuple index path, or NULL. */
const ir_type *ir_type_at(const ir_type *t, const int64_t *path, size_t n);
/* Leaves of a type tree (tensors, tokens, ...), counted depth first. */
uint32_t ir_type_leaves(const ir_type *t);
/* Writes "f32[2,<=3]{1,0:T(8,128)}"; layouts only when asked. No index comments. For errors and debug views. */
void ir_put_type(base_text *out, const ir_type *t, bool layouts);
/* The same into a fixed buffer, cut with "..." where too long. Returns buf. */
char *ir_type_text(const ir_type *t, char *buf, size_t size);

#endif
