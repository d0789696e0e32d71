/* Inside of the MLIR printer: print*.c. A printer lives for one call; nothing here is shared between threads.
 *
 * The text is that of MLIR's own AsmPrinter, byte for byte. Three passes: names for all values (print_walk.c), with
 * debug information the locations that will be mentioned (print_loc.c), then the text. Functions append to p->out;
 * being out of memory shows in out->failed or p->failed, which the entry points look at once, at the end. */
#ifndef XLAC_TEXT_MLIR_PRINT_PRINT_H
#define XLAC_TEXT_MLIR_PRINT_PRINT_H

#include "../mlir.h"

/* How a value is called: %7, %arg7, %c_7. Names other than the numbered ones get a suffix only where they clash. */
typedef enum mprint_stem {
  MPRINT_NUMBER,
  MPRINT_ARG,
  MPRINT_C, /* the rest are names that ops ask for */
  MPRINT_CST,
  MPRINT_ITER_ARG,
  MPRINT_INPUT,
  MPRINT_CARRY,
  MPRINT_OUTPUT_STATE,
  MPRINT_OUTPUT,
  MPRINT_BATCH_MEAN,
  MPRINT_BATCH_VAR,
  MPRINT_GRAD_OPERAND,
  MPRINT_GRAD_SCALE,
  MPRINT_GRAD_OFFSET,
  MPRINT_VALUES,
  MPRINT_INDICES,
  MPRINT_HEAD,
  MPRINT_TAIL,
  MPRINT_OTHER, /* a name that only ops of other dialects ask for: `number` is its row in mprint::others */
  MPRINT_EACH   /* every result has a name of its own: `number` is where they begin in mprint::each */
} mprint_stem;
#define MPRINT_PLAIN UINT32_MAX /* no suffix */
typedef struct mprint_name {
  uint32_t number;
  uint8_t stem;
} mprint_name;

/* A name such as c7_i32: its text, and its suffix where it clashes. */
typedef struct mprint_other {
  const char *text;
  size_t n;
  uint32_t suffix; /* or MPRINT_PLAIN */
} mprint_other;

/* A location that the text refers to as #loc, #loc1 ... Equal locations are one row. */
typedef struct mprint_loc {
  const ir_mattr *loc;
  uint32_t depth;  /* 1, or one more than that of the deepest inside */
  uint32_t order;  /* of first mention; outer ones before what is inside them */
  uint32_t number; /* of the alias */
  uint32_t n_inside;
  uint32_t *inside; /* rows */
  bool early;       /* a block argument has it: its alias is defined before the module */
} mprint_loc;
BASE_VEC(mprint_names, mprint_name);
BASE_VEC(mprint_locs, mprint_loc);
BASE_VEC(mprint_others, mprint_other);
BASE_VEC(mprint_keys, const ir_mattr *);

/* What one run of the printer carries along. Tables live in `arena`, lists on `alloc`; mprint_end frees both. */
typedef struct mprint {
  base_text *out;
  bool generic, locations;
  uint32_t elide_over;
  base_arena arena; /* of the printer's own tables */
  base_alloc alloc;
  mprint_name *names; /* by op id; NULL: no op is printed */
  mprint_names each;
  mprint_others others;
  base_interner other_texts; /* of `others`, in the printer's arena */
  base_map other_ids;        /* an interned text to its number, from 1 */
  base_map other_taken;      /* a region's id and a text's number: the region has the name */
  mprint_locs locs;
  base_map loc_rows;    /* location's address to row + 1 */
  uint32_t *loc_slots;  /* hash table of rows + 1 */
  uint32_t n_loc_slots; /* a power of two, or 0 */
  uint32_t loc_order;
  mprint_keys resources; /* IR_M_RESOURCE attributes printed, one a key */
  base_map resource_keys;
  uint32_t indent;
  bool in_func; /* ops of dialect func are printed without "func." */
  bool failed;  /* out of memory, beside out->failed */
} mprint;

/* --- print_token.c --- */
/* v is the value of bits. In scientific notation, or as bits: see print_token.c. */
void mprint_float(base_text *o, base_dtype t, uint64_t bits, double v);
/* An element at p of an array. */
void mprint_element(base_text *o, base_dtype t, const void *p);
/* As f64's elements and attributes: 1.000000e+00. */
void mprint_f64(base_text *o, double v);
/* Hexadecimal digits of the bytes. */
void mprint_hex(base_text *o, const void *bytes, size_t n);

/* --- print_token.c --- */
/* MLIR's escapes: two hexadecimal digits for what is not plain ASCII. */
void mprint_quoted(base_text *o, const char *s, size_t n);
/* A name bare where it can be, else quoted. */
void mprint_keyword(base_text *o, const base_istr *s);
/* With its '@'. */
void mprint_symbol(base_text *o, const char *s, size_t n);
/* The indentation of the current depth. */
void mprint_spaces(mprint *p);

/* --- print_type.c --- */
/* tensor<2xf32>; and the element type alone: f32, !quant.uniform<...>. */
void mprint_type(base_text *o, const ir_type *t);
void mprint_element_type(base_text *o, const ir_type *t);
/* With commas between. */
void mprint_types(base_text *o, uint32_t n, const ir_type *const *types);

/* --- print_attr.c --- */
/* With its type, as it stands in a dictionary. */
void mprint_attr(mprint *p, const ir_mattr *a);
/* As an element of a list: without the type where it is i64 or f64. */
void mprint_attr_short(mprint *p, const ir_mattr *a);
/* As the assembly formats print an attribute of known kind: 3, [0, 1], HIGHEST, <mode = ...>. */
void mprint_attr_bare(mprint *p, const ir_mattr *a);
/* "name = value", or the name alone where the value is unit. */
void mprint_entry(mprint *p, const ir_mentry *e);
/* {a = 1 : i64, b} */
void mprint_dict(mprint *p, const ir_mdict *d);
void mprint_dense_array(mprint *p, const ir_mattr *a); /* the elements with commas between */
void mprint_struct(mprint *p, const ir_mattr *a);      /* from '<' on */
/* Whether dimension numbers can be written as [b, 0, f]x[i, 0, o]->[b, 0, f]; else they are as raw. */
bool mprint_conv_is_plain(mprint *p, const ir_mattr *a);
void mprint_conv_dims(mprint *p, const ir_mattr *a);
/* dense<...>, dense_resource<name>, without the type behind it. */
void mprint_dense(mprint *p, const ir_mattr *a);
void mprint_resources(mprint *p); /* {-# ... #-} */
/* The integers of an attribute, as ir_m_ints. */
const int64_t *mprint_ints(mprint *p, const ir_mattr *a, uint32_t *n);

/* --- print_loc.c --- */
/* Takes a note of a location that will be printed. Must come before any text is written, since numbers depend on all
 * of them. */
void mprint_loc_visit(mprint *p, const ir_mattr *loc, bool early);
/* Gives the aliases their numbers, once everything has been visited. */
void mprint_loc_number(mprint *p);
/* Writes the definitions: those of block arguments before the module, all others behind it. */
void mprint_loc_aliases(mprint *p, bool early);
/* " loc(#loc3)" when locations are asked for. `alias`: by its alias. */
void mprint_trailing_loc(mprint *p, const ir_mattr *loc, bool alias);
/* What stands in the parentheses. */
void mprint_loc_body(mprint *p, const ir_mattr *loc);

/* --- print_walk.c: what comes before printing --- */
/* Gives the values of a module (c NULL), or of one function, their names. */
int mprint_name_values(mprint *p, const ir_module *m, const ir_computation *c, xlac_error *err);
void mprint_visit_function(mprint *p, const ir_computation *c);

/* --- print_op.c --- */
/*   %3   %arg0   %c_1   %4#1 */
void mprint_value(mprint *p, ir_value v);
static inline ir_value mprint_operand(const ir_op *op, uint32_t i) {
  return (ir_value){op->operands[i].op, op->operands[i].index};
}
/* %a, %b: operands [from, to), with commas between. Then their types, and the op's type as a function of them. */
void mprint_operands(mprint *p, const ir_op *op, uint32_t from, uint32_t to);
void mprint_operand_types(mprint *p, const ir_op *op);
void mprint_function_type(mprint *p, const ir_op *op); /* (a, b) -> c */
/* "%arg0: tensor<f32> {attributes} loc(...)" */
void mprint_argument(mprint *p, const ir_op *param);
/* `header`: with "^bb0(%arg0: t):". */
void mprint_block(mprint *p, const ir_computation *c, bool header);
/* `arguments`: the block's arguments stand in its label; else the op's form has printed them. */
void mprint_region(mprint *p, const ir_computation *c, bool arguments);
void mprint_op(mprint *p, const ir_op *op); /* with indentation and location, without the newline */
/* `name`: with the op's name in quotes in front. */
void mprint_generic_op(mprint *p, const ir_op *op, bool name);
/* A yield of nothing, which pretty forms leave out. */
bool mprint_is_silent_return(const mprint *p, const ir_computation *c);
/* Types of one module are the same where their pointers are. */
static inline bool mprint_same_type(const ir_type *a, const ir_type *b) {
  return a == b || ir_bare(a) == ir_bare(b);
}
void mprint_newline(mprint *p); /* and indentation */

/* --- print_foreign.c: UNREGISTERED ops --- */
/* Prints the op in its pretty form, if it is known and can say the op. */
bool mprint_known(mprint *p, const ir_op *op);
bool mprint_is_property(const ir_op *op, const base_istr *key);

/* --- print_foreign.c --- */
bool mprint_foreign(mprint *p, const ir_op *op);
/* The name that the op's result asks for; false where it asks for none. */
bool mprint_foreign_name(base_text *o, const ir_op *op);

/* --- print_form.c, print_directive.c --- */
/* By the form of the opcode's row in ops.def: "%0 , %1 , dims = $dimensions {} : type". See print_form.c. */
void mprint_form(mprint *p, const ir_op *op, const char *form);
/* The attributes that a <word> prints; NULL at the end. */
const char *const *mprint_directive_attrs(const char *word, size_t n);
void mprint_directive(mprint *p, const ir_op *op, const char *form, const char *word, size_t n);
bool mprint_reduce_is_compact(const ir_op *op);
/* Whether the pretty form can say all of the op; an op that breaks its rules may be beyond it. */
bool mprint_is_sayable(mprint *p, const ir_op *op);
/* " {a = 1}" of the attributes that neither the form prints nor are at their default. */
void mprint_rest(mprint *p, const ir_op *op, const char *form, bool keyword);

#endif
