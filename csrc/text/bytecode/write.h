/* Inside the writer of MLIR bytecode.
 *
 * The file numbers attributes and types in groups by dialect, which is known only once all have been met. So
 * everything is first written as marks, in which they stand under numbers of their own, and then rendered:
 *   bc_write_ir     walks the module; adds what it meets to pools, writes marks of the IR
 *   bc_group        gives the items of each pool their numbers in the file
 *   bc_put_file     renders the marks of the pools and of the IR, section by section
 * A pool's item is known by its marks: equal attributes have equal marks and are written once. */
#ifndef XLAC_TEXT_BYTECODE_WRITE_H
#define XLAC_TEXT_BYTECODE_WRITE_H

#include "bytecode.h"

/* A mark is a byte, then its number (8 bytes), then for some a pointer and a width. */
enum {
  BC_MARK_VARINT,
  BC_MARK_SIGNED,
  BC_MARK_BYTE,
  BC_MARK_ATTR,
  BC_MARK_OPTIONAL, /* an attribute that might be absent */
  BC_MARK_TYPE,
  BC_MARK_FLAGGED_TYPE, /* the number of a type, then a set flag */
  BC_MARK_STRING,
  BC_MARK_OP,
  BC_MARK_PROPERTIES,
  BC_MARK_BLOB,   /* length and bytes */
  BC_MARK_TEXT,   /* bytes and a zero */
  BC_MARK_BITS,   /* elements of a byte each, packed */
  BC_MARK_NARROW, /* elements of a byte each, of which the low bits count */
  BC_MARK_BEGIN,  /* a section of IR */
  BC_MARK_END
};

/* One attribute, type, string, op name, dialect or set of properties. */
typedef struct bc_item {
  const base_istr *key; /* its marks */
  uint32_t dialect, index;
  bool custom;
} bc_item;
BASE_VEC(bc_items, bc_item);

/* Items in the order in which they were met, which is their number in marks. */
typedef struct bc_pool {
  bc_items items;
  char tag;
} bc_pool;

/* One artifact being written. `marks` holds the IR so far, and above it the marks of what is being added to a pool. */
typedef struct bc_writer {
  const ir_module *m;
  xlac_error *err;
  unsigned version, container;
  const char *version_text;
  base_alloc alloc;
  base_arena scratch;
  base_interner keys;
  base_map known; /* a key to its number */
  base_text marks;
  bc_pool dialects, op_names, strings, attrs, types, properties;
  base_map values; /* an op to the number of its first result */
  base_map casts;  /* values of ops of sdy that others use: write_cast.c */
  uint32_t depth;
  uint32_t builtin, vhlo; /* dialects */
  /* What is being written, for errors: the op, or where that is NULL the function. */
  const ir_op *op;
  const ir_computation *function;
} bc_writer;

/* write.c */
void bc_mark(bc_writer *w, unsigned mark, uint64_t number);
/* n elements of `width` bytes, by reference: p must live until the file is written. */
void bc_mark_data(bc_writer *w, unsigned mark, const void *p, uint64_t n, unsigned width);
void bc_mark_copy(bc_writer *w, const void *p, size_t n); /* a blob, copied */
/* Numbers what has been marked since `from`, and takes the marks back. */
XLAC_MUST_USE int bc_pool_add(bc_writer *w, bc_pool *pool, uint32_t dialect, bool custom, size_t from, uint32_t *out);
/* Numbers of strings and dialects, in the order of first use. */
XLAC_MUST_USE int bc_pool_string(bc_writer *w, const char *s, size_t n, uint32_t *out);
XLAC_MUST_USE int bc_pool_dialect(bc_writer *w, const char *s, size_t n, uint32_t *out);
XLAC_MUST_USE int bc_mark_string(bc_writer *w, const base_istr *s);
int bc_write_memory(bc_writer *w);
int bc_cant_write(bc_writer *w, const char *format, ...) BASE_PRINTF(2, 3);
XLAC_MUST_USE int bc_write_deeper(bc_writer *w);

/* write_type.c, write_attr.c: add one to its pool */
XLAC_MUST_USE int bc_add_type(bc_writer *w, bool builtin, const ir_type *t, uint32_t *out);
XLAC_MUST_USE int bc_add_foreign(bc_writer *w, bc_pool *pool, const char *text, size_t n, uint32_t *out);
XLAC_MUST_USE int bc_add_attr(bc_writer *w, bool builtin, const ir_mattr *a, uint32_t *out);
XLAC_MUST_USE int bc_add_loc(bc_writer *w, const ir_mattr *loc, uint32_t *out); /* NULL: unknown */
XLAC_MUST_USE int bc_mark_attr(bc_writer *w, bool builtin, const ir_mattr *a);
XLAC_MUST_USE int bc_mark_type(bc_writer *w, bool builtin, const ir_type *t);
/* The low bits of v as an integer of that width. */
void bc_mark_int(bc_writer *w, unsigned width, uint64_t v);
/* An attribute of a dictionary. Keys are sorted before they are written. */
typedef struct bc_pair {
  const char *key;
  size_t n;
  uint32_t value; /* of the pool */
} bc_pair;
/* A builtin dictionary of attributes that are in the pool; sorts v. */
XLAC_MUST_USE int bc_add_dict(bc_writer *w, uint32_t n, bc_pair *v, uint32_t *out);
/* VHLO's string, bool, number and list of numbers. A splat has one element. */
XLAC_MUST_USE int bc_add_string(bc_writer *w, const char *s, size_t n, uint32_t *out);
XLAC_MUST_USE int bc_add_bool(bc_writer *w, bool v, uint32_t *out);
XLAC_MUST_USE int bc_add_i64(bc_writer *w, int64_t v, uint32_t *out);
XLAC_MUST_USE int bc_add_i64s(bc_writer *w, uint32_t rank, const int64_t *dims, uint32_t n, int64_t splat,
                              uint32_t *out);
XLAC_MUST_USE int bc_add_bools(bc_writer *w, uint32_t n, uint32_t *out); /* all false */
XLAC_MUST_USE int bc_add_words(bc_writer *w, uint32_t n, const char *name, const char *word, uint32_t *out);
XLAC_MUST_USE int bc_add_enum(bc_writer *w, const char *name, const char *word, uint32_t *out);
XLAC_MUST_USE int bc_add_empty(bc_writer *w, uint64_t code, uint32_t *out); /* array or dictionary */
XLAC_MUST_USE int bc_add_accuracy(bc_writer *w, uint32_t *out);
XLAC_MUST_USE int bc_add_none(bc_writer *w, uint32_t *out);

/* write_sdy.c: attributes of the dialect sdy, and the properties of its ops. */
XLAC_MUST_USE int bc_add_sdy(bc_writer *w, const ir_mattr *a, uint32_t *out);
XLAC_MUST_USE int bc_add_sdy_properties(bc_writer *w, const ir_op *op, uint32_t *out, bool *any);
XLAC_MUST_USE int bc_mark_symbol_of(bc_writer *w, const base_istr *name);

/* write_cast.c: values, with casts around ops of sdy. */
XLAC_MUST_USE int bc_find_casts(bc_writer *w);                        /* once, before the others */
uint64_t bc_count_casts(const bc_writer *w, const ir_computation *c); /* those in its own block */
XLAC_MUST_USE int bc_number_values(bc_writer *w, const ir_computation *c, uint64_t first);
XLAC_MUST_USE int bc_mark_casts_before(bc_writer *w, const ir_op *op);
XLAC_MUST_USE int bc_mark_casts_after(bc_writer *w, const ir_op *op);
XLAC_MUST_USE int bc_mark_casts_of_params(bc_writer *w, const ir_computation *c);
XLAC_MUST_USE int bc_mark_casts_of_return(bc_writer *w, const ir_computation *c);
XLAC_MUST_USE int bc_mark_operands(bc_writer *w, const ir_op *op);
/* `next`: the number after those of all values of the region. */
XLAC_MUST_USE int bc_mark_returned(bc_writer *w, const ir_computation *c, uint64_t next);

/* write_op.c: attributes of an op, as VHLO has them, in the order of the row */
XLAC_MUST_USE int bc_from_stablehlo(bc_writer *w, const ir_op *op, const bc_row *row, uint32_t *values,
                                    const ir_mdict **discardable);

/* write_ir.c: marks the IR; the name of an op of a dialect */
XLAC_MUST_USE int bc_op_name_of(bc_writer *w, uint32_t dialect, bool registered, const char *s, size_t n,
                                uint32_t *out);
XLAC_MUST_USE int bc_write_ir(bc_writer *w);

#endif
