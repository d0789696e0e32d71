/* A GraphDef in memory: nodes by name as written, functions, and the bytes they came from. Immutable once read.
 * Source: tensorflow/core/framework/graph.proto and the messages it uses. */
#ifndef XLAC_TF_GRAPH_GRAPH_DEF_H
#define XLAC_TF_GRAPH_GRAPH_DEF_H

#include "../../base/map.h"
#include "../../base/str.h"

typedef struct tf_op_def tf_op_def;

/* One attribute; the value is read when it is asked for (tf_attr_int and its like). */
typedef struct tf_attr {
  const base_istr *key;
  base_slice value; /* an AttrValue message */
} tf_attr;

typedef struct tf_attrs {
  uint32_t n;
  const tf_attr *v; /* as written, no key twice */
} tf_attrs;

/* "node:1", "^node", and in functions "node:argument:1". */
typedef struct tf_input {
  const base_istr *node;
  const base_istr *argument; /* in functions: the output argument; else NULL */
  int32_t output;            /* of the node, or within the argument; -1 for a control input */
} tf_input;

/* A NodeDef. `bytes` is the whole message, which tf_graph_put_node copies from; a node that passes made has none. */
typedef struct tf_node_def {
  const base_istr *name, *op, *device; /* device may be NULL */
  const tf_input *inputs;              /* data first, then control */
  tf_attrs attrs;
  base_slice bytes; /* the NodeDef message */
  uint32_t n_inputs, n_data;
} tf_node_def;

/* A result of a function: its name in the signature, and the value of the body that it is. */
typedef struct tf_ret {
  const base_istr *name;
  tf_input from;
} tf_ret;

/* A FunctionDef. tf_graph_import_function makes a graph of it. */
typedef struct tf_function {
  const base_istr *name;
  const tf_op_def *signature;
  const tf_node_def *nodes;
  const tf_ret *rets; /* one for each output of the signature that has one */
  tf_attrs attrs;
  base_slice bytes; /* the FunctionDef message */
  uint32_t n_nodes, n_rets;
} tf_function;

/* Everything it refers to lies in its arena. Immutable after tf_graph_def_read but for what later stages add to
 * the arena, to `strings` and to `op_of`: one thread at a time may do that. */
typedef struct tf_graph_def {
  base_arena arena;
  base_interner strings;
  const char *bytes; /* the whole message, in the arena */
  size_t n_bytes;
  tf_node_def *nodes;
  tf_function *functions;
  base_map function_of; /* interned name -> tf_function */
  base_map op_of;       /* interned name -> tf_op_def, those that were asked for */
  uint32_t n_nodes, n_functions;
} tf_graph_def;

/* Reads n bytes of a GraphDef, or of its text where `text`. Errors: the byte, or line and column. Freed by
 * tf_graph_def_free. */
XLAC_MUST_USE int tf_graph_def_read(tf_graph_def **out, base_alloc alloc, const void *bytes, size_t n, bool text,
                                    xlac_error *err);
void tf_graph_def_free(tf_graph_def *g);
/* Whether the bytes look like text rather than like a message. */
bool tf_graph_def_is_text(const void *bytes, size_t n);

/* NULL where there is none. */
static inline const tf_function *tf_find_function(const tf_graph_def *g, const base_istr *name) {
  assert(name != NULL);
  return base_map_ptr(&g->function_of, name);
}

/* --- attributes (attr_value.c) --- */

/* The value of an attribute; {NULL, 0} where it is absent. */
base_slice tf_attr_find(tf_attrs attrs, const char *key);
static inline bool tf_attr_has(tf_attrs attrs, const char *key) {
  return tf_attr_find(attrs, key).p != NULL;
}
/* The parts of an AttrValue; false where it holds something else. */
bool tf_attr_type(base_slice value, unsigned *out);
bool tf_attr_int(base_slice value, int64_t *out);
bool tf_attr_bool(base_slice value, bool *out);
bool tf_attr_float(base_slice value, float *out);
bool tf_attr_string(base_slice value, base_slice *out);
bool tf_attr_placeholder(base_slice value, base_slice *out);
/* The name of a function, and its NameAttrList message. */
bool tf_attr_func(base_slice value, base_slice *name, base_slice *message);
/* A TensorProto message, a TensorShapeProto message. */
bool tf_attr_tensor(base_slice value, base_slice *out);
bool tf_attr_shape(base_slice value, base_slice *out);
/* A walk over a list of types, of numbers, of functions' NameAttrLists: begin with *at NULL, false at its end. */
bool tf_attr_next_type(base_slice value, const char **at, unsigned *out);
bool tf_attr_next_int(base_slice value, const char **at, int64_t *out);
bool tf_attr_next_func(base_slice value, const char **at, base_slice *name);
/* Elements of a list of types; 0 for what is none. */
uint32_t tf_attr_count_types(base_slice value);
/* true if the attribute is there and true. */
bool tf_attr_is_true(tf_attrs attrs, const char *key);

/* --- fields of a message without a schema, for small messages: no nesting, no allocation --- */

/* One field as the wire has it. */
typedef struct tf_raw_field {
  uint32_t number;
  uint8_t wire;
  uint64_t value;
  base_slice bytes; /* of wire type 2 */
} tf_raw_field;
/* The field at *at, which moves past it; false at the end or where the bytes are malformed. */
bool tf_raw_next(const char **at, const char *end, tf_raw_field *out);
/* The last field of that number, which counts. */
bool tf_raw_find(base_slice message, uint32_t number, tf_raw_field *out);

#endif
