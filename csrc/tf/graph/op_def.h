/* What ops take and give: TensorFlow's own from ops.def, functions of a graph's library by their signatures. */
#ifndef XLAC_TF_GRAPH_OP_DEF_H
#define XLAC_TF_GRAPH_OP_DEF_H

#include "graph_def.h"
#include "tf_types.h"

/* A word of the table; a list of them ends with 0. */
typedef uint16_t tf_word;

/* One argument of an op: one value, or as many as number_attr or type_list_attr says. */
typedef struct tf_arg_def {
  base_slice name;
  base_slice type_attr, number_attr, type_list_attr; /* n is 0 where there is none */
  uint8_t type;                                      /* tf_type, where no attribute says it */
  bool is_ref;
} tf_arg_def;

typedef struct tf_attr_def {
  const base_istr *name;
  base_slice kind;    /* "type", "list(int)", ... */
  base_slice written; /* the default as in ops.def; p is NULL where there is none */
  base_slice value;   /* the default as an AttrValue; p is NULL where there is none */
} tf_attr_def;

/* Flags of ops.def. */
typedef enum tf_op_flag {
  TF_OP_STATEFUL = 1,
  TF_OP_HOST = 2,
  TF_OP_METADATA = 4,
  TF_OP_XLA_ONLY = 8,
  TF_OP_XLA = 16, /* there is a kernel for compiled code */
  TF_OP_OPEN = 32 /* a function whose body needs attributes of the call */
} tf_op_flag;

/* What an op does to the resources among its inputs (XlaResourceOpKind). */
typedef enum tf_resource_use {
  TF_RESOURCE_NONE,
  TF_RESOURCE_READ,
  TF_RESOURCE_WRITE,
  TF_RESOURCE_READ_WRITE
} tf_resource_use;

/* XLA's kernel takes these types for an attribute. */
typedef struct tf_constraint {
  const base_istr *attr;
  tf_type_set allowed;
} tf_constraint;

/* Lives in the arena of a graph. `on` and const_args come from the table and are empty for functions. */
struct tf_op_def {
  const base_istr *name;
  const tf_function *function; /* NULL for TensorFlow's own */
  const tf_arg_def *inputs, *outputs;
  const tf_attr_def *attrs;
  const tf_constraint *on[2]; /* by compilation device: CPU, GPU */
  const tf_word *const_args;  /* names */
  uint32_t n_inputs, n_outputs, n_attrs, n_on[2];
  uint8_t flags, resource; /* tf_op_flag, tf_resource_use */
};

/* The op or function of that name; *out NULL where there is none. */
XLAC_MUST_USE int tf_op_def_of(tf_graph_def *g, const base_istr *name, const tf_op_def **out, xlac_error *err);
/* Reads an OpDef message into the graph's arena. */
XLAC_MUST_USE int tf_op_def_read(tf_graph_def *g, base_slice message, tf_op_def **out, xlac_error *err);

/* The value of an attribute, or its default; p is NULL where it has neither. */
base_slice tf_attr_or_default(const tf_op_def *op, tf_attrs attrs, base_slice name);

/* One row of ops.def. */
typedef struct tf_op_row {
  const char *name;
  const tf_word *inputs, *outputs, *attrs;
  const tf_word *types[2], *const_args; /* NULL where XLA has no kernel */
  uint16_t number;                      /* among all rows */
  uint8_t flags, resource;
} tf_op_row;
/* All rows, by name. */
uint32_t tf_op_row_count(void);
tf_op_row tf_op_row_at(uint32_t i);
bool tf_op_row_find(base_slice name, tf_op_row *out);
/* The next word of a list, and the list goes on; empty at its end, where it stays. */
base_slice tf_next_word(const tf_word **words);
/* "=", the GPU's types in a row that has the CPU's for it. */
bool tf_is_same_types(const tf_word *words);

#endif
