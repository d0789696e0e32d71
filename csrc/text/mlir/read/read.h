/* The MLIR text reader, inside: one pass over the bytes, no token list, recursive descent. Internal to read*.c and
 * to sdy/read*.c.
 *
 * The scanner is hlo/lexer.h. Parts of an op (operands, types, attributes, regions) pile up on the reader's stacks
 * above the marks in mlir_op_state and are taken off when the op is made. Functions return 0 or a negative code with
 * the error filled; an error ends the whole parse, so that stacks need not be unwound. */
#ifndef XLAC_TEXT_MLIR_READ_READ_H
#define XLAC_TEXT_MLIR_READ_READ_H

#include "../../../base/map.h"
#include "../../hlo/lexer.h"
#include "../mlir.h"
#include "../foreign.h"
#include "../../../base/number/number.h"

/* Nesting of types, attributes, locations and regions. */
enum { MLIR_MAX_DEPTH = 256 };

/* A name of a value in scope: what it names, and what it hid. */
typedef struct mlir_name {
  const base_istr *name;
  ir_op *first;    /* the op of result or pack element 0 */
  uint16_t index;  /* the result that the name's element 0 is */
  uint16_t count;  /* of the pack; 1 usually */
  uint32_t hidden; /* the entry it hides, from 1; 0 for none */
} mlir_name;

/* An alias definition (#x = ..., !x = ...) found ahead of reading, read when first used. */
typedef struct mlir_alias {
  const char *value; /* where its value stands in the text */
  const ir_mattr *attr;
  const ir_type *type;
  bool busy; /* being read: a use inside is a cycle */
} mlir_alias;

/* Something read before, by its text: read_scope.c. */
typedef enum mlir_memo_kind {
  MLIR_MEMO_NONE,
  MLIR_MEMO_TENSOR, /* a type, from '<' to '>' */
  MLIR_MEMO_I64S,   /* lists in brackets, as attributes */
  MLIR_MEMO_BOOLS,
  MLIR_MEMO_PRECISIONS,
  MLIR_MEMO_PAD,
  MLIR_MEMO_REVERSE,
  MLIR_MEMO_CONV,  /* dimension numbers */
  MLIR_MEMO_DENSE, /* "<1.0> : tensor<f32>" */
  MLIR_MEMO_DICT,  /* by its entries */
  MLIR_MEMO_DOT,
  MLIR_MEMO_SDY_SHARDING, /* "<...>" */
  MLIR_MEMO_SDY_SHARDINGS
} mlir_memo_kind;
/* A piece of text that was read, and what it gave. */
typedef struct mlir_memo {
  base_slice text; /* in the reader's text */
  const void *what;
  mlir_memo_kind kind;
} mlir_memo;
/* Something made before from the same few entries. */
enum { MLIR_MEMOS = 512, MLIR_ENTRIES_MEMOS = 128, MLIR_MEMO_ENTRIES = 4 };
/* The same for what is made of attributes that were read. */
typedef struct mlir_entries_memo {
  mlir_memo_kind kind;
  uint32_t n;
  ir_mentry entries[MLIR_MEMO_ENTRIES];
  const void *what; /* NULL: still to be made */
} mlir_entries_memo;

/* The data of a dense_resource, and the attribute made of it, which its uses share. */
typedef struct mlir_resource {
  const char *hex; /* its string in the text */
  const ir_mattr *made;
} mlir_resource;

BASE_VEC(mlir_names, mlir_name);
BASE_VEC(mlir_resources, mlir_resource);
BASE_VEC(mlir_aliases, mlir_alias);
BASE_VEC(mlir_values, ir_value);
BASE_VEC(mlir_types, const ir_type *);
BASE_VEC(mlir_entries, ir_mentry);
BASE_VEC(mlir_attr_list, const ir_mattr *);
BASE_VEC(mlir_regions, ir_computation *);
BASE_VEC(mlir_ints, int64_t);
BASE_VEC(mlir_numbers, uint32_t);

/* What the first word of a statement means, remembered by its text. */
typedef enum mlir_word_kind { MLIR_WORD_NONE, MLIR_WORD_OP, MLIR_WORD_FUNC, MLIR_WORD_RETURN } mlir_word_kind;
/* What is known of an op's name, so that each name is looked up once. */
typedef struct mlir_op_word {
  base_slice text; /* in the reader's text, or interned */
  uint32_t hash;
  uint8_t kind;
  uint16_t opcode;
  const base_istr *unregistered; /* its whole name, or NULL */
  const mlir_foreign *foreign;   /* its row, or NULL */
} mlir_op_word;
/* Sizes of the tables of memos: a slot holds the last that fell into it. */
enum { MLIR_OP_WORDS = 512 };

/* An interned word of the program, by the address of the constant that spells it. */
typedef struct mlir_key {
  const char *word;
  const base_istr *s;
} mlir_key;
enum { MLIR_KEYS = 256 };

/* The state of one parse. It takes some 50 KiB, and lives on the stack of the entry point. */
typedef struct mlir_reader {
  text_lexer lx;
  ir_module *m;
  xlac_error *err;
  base_alloc alloc;
  uint32_t depth, max_depth;
  bool allow_unregistered;
  /* Values in scope: `by_number` and `by_name` give the newest entry of a name, from 1; entries are undone when their
   * region ends. */
  mlir_names names;
  mlir_numbers by_number;
  base_map by_name;
  base_map symbols;     /* interned names of functions */
  bool plain_return;    /* the last terminator read was a bare "return", whose dialect is that of what it ends */
  uint32_t isolated_at; /* entries below are not visible */
  mlir_aliases aliases;
  base_map attr_aliases, type_aliases; /* interned name to index in aliases */
  const char *resources;               /* the {-# ... #-} section, or NULL */
  base_map resource_rows;              /* interned key to its row, once resources_found */
  mlir_resources resource_list;
  bool resources_found;
  mlir_op_word op_words[MLIR_OP_WORDS]; /* open addressing; at most three quarters are used */
  uint32_t n_op_words;
  mlir_op_word last_op_word; /* where there is no room for more */
  mlir_key keys[MLIR_KEYS];
  /* Stacks of what is being read; every user takes its part off again. */
  mlir_values values;
  mlir_types types;
  mlir_entries entries;
  mlir_attr_list attrs;
  mlir_regions regions;
  mlir_ints ints;
  mlir_memo memos[MLIR_MEMOS]; /* by a hash of the text; a newer one takes the place of an older */
  mlir_entries_memo entries_memos[MLIR_ENTRIES_MEMOS];
  const ir_mattr *no_i64s; /* array<i64>, once needed */
  ir_computation *into;    /* where ops go; NULL at module level */
} mlir_reader;

/* An op being read. The stacks hold its parts from the given marks on. */
typedef struct mlir_op_state {
  const char *at; /* its name token: where errors point */
  ir_opcode opcode;
  const base_istr *unregistered;
  const mlir_foreign *foreign;              /* the row of an unregistered op, or NULL */
  uint32_t values, types, entries, regions; /* marks in the reader's stacks; types: operands' types as written */
  uint32_t n_values;
  const ir_type *const *result_types; /* &result where there is one, else in the module's arena */
  const ir_type *result;
  uint32_t n_results;
  const ir_mattr *loc;
  const base_istr *name; /* of its first result, or NULL */
  bool properties;       /* has attributes in <{...}> */
  const char *types_at;  /* of the generic form, where errors of their number point; or NULL */
  const char *dict;      /* the pretty form's {...}, where errors of its attributes point; or NULL */
} mlir_op_state;

/* --- read.c --- */
/* `at` lies in the reader's copy of the text. */
int mlir_fail(mlir_reader *r, const char *at, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
/* "expected <what>, found '<the next bytes>'". */
int mlir_expected(mlir_reader *r, const char *what);
int mlir_no_memory(mlir_reader *r);
/* Takes punctuation that must be next. */
XLAC_MUST_USE int mlir_want(mlir_reader *r, const char *punctuation);
/* These take something if it is next, with the blanks and comments behind it. */
bool mlir_eat(mlir_reader *r, const char *punctuation);
bool mlir_eat_word(mlir_reader *r, const char *word);
/* The word at the cursor (letters, digits, _ . $), or an empty slice. Does not move. */
base_slice mlir_word(const mlir_reader *r);
void mlir_skip_word(mlir_reader *r, base_slice word);
XLAC_MUST_USE int mlir_read_int(mlir_reader *r, int64_t *out);
/* A constant of the program, interned. NULL when out of memory. */
const base_istr *mlir_intern_word(mlir_reader *r, const char *word);
/* A quoted string, unescaped and interned. */
XLAC_MUST_USE int mlir_read_string(mlir_reader *r, const base_istr **out);
/* The name after '@', quoted or bare; interned. */
XLAC_MUST_USE int mlir_read_symbol_name(mlir_reader *r, const base_istr **out);
/* "[1, 2, 3]" onto r->ints; *from is where they begin. */
XLAC_MUST_USE int mlir_read_dims(mlir_reader *r, uint32_t *from);
/* Past balanced brackets and strings from the opening bracket at p; NULL when they never close. */
const char *mlir_balanced_end(const mlir_reader *r, const char *p);
XLAC_MUST_USE int mlir_enter(mlir_reader *r, const char *at);
static inline void mlir_leave(mlir_reader *r) {
  r->depth--;
}

/* --- read_scope.c --- */
/* What was read from this text before, or NULL; *place is where mlir_remember puts it, or NULL. The text must end with
 * a bracket. mlir_remember does nothing unless the text is all that was read. */
const void *mlir_recall(mlir_reader *r, mlir_memo_kind kind, base_slice text, mlir_memo **place);
/* `place` is what mlir_recall gave when it found nothing. */
void mlir_remember(mlir_reader *r, mlir_memo *place, mlir_memo_kind kind, base_slice text, const void *what);
/* Moves past a text that was recalled. */
void mlir_pass(mlir_reader *r, base_slice text);
/* "[...]" at the cursor, where it holds only words; else empty. */
base_slice mlir_list_text(const mlir_reader *r);
/* "<...> : tensor<...>" at the cursor, where it is plain; else empty. */
base_slice mlir_dense_text(const mlir_reader *r);
/* The memo of n entries, its `what` to be filled where that is NULL; NULL where there are too many. */
mlir_entries_memo *mlir_recall_entries(mlir_reader *r, mlir_memo_kind kind, uint32_t n, const ir_mentry *e);

/* --- read_type.c --- */
/* Types are interned in the module. */
XLAC_MUST_USE int mlir_read_type(mlir_reader *r, const ir_type **out);
/* "(a, b) -> c" or "(a, b) -> (c, d)" or "a -> b" onto r->types: inputs, then results. */
XLAC_MUST_USE int mlir_read_function_type(mlir_reader *r, uint32_t *n_inputs, uint32_t *n_results);
/* "a, b" in parentheses, onto r->types. */
XLAC_MUST_USE int mlir_read_type_list(mlir_reader *r, uint32_t *n);
/* The dtype of "f32", "i1", "ui8", "complex<f32>" ... at the cursor, or 0. Moves past it. */
base_dtype mlir_read_dtype(mlir_reader *r);

/* --- read_quant.c: after "!quant.uniform" --- */
XLAC_MUST_USE int mlir_read_quant(mlir_reader *r, const ir_quant **out);

/* --- read_attr.c --- */
/* One more entry of the op that is being read. `name` must be a constant of the program: it is remembered by its
 * address. */
XLAC_MUST_USE int mlir_add_attr(mlir_reader *r, const char *name, const ir_mattr *value);
/* "{a = 1, b}" (cursor at '{') onto r->entries. */
XLAC_MUST_USE int mlir_read_entries(mlir_reader *r);
/* The op's "{...}" in its pretty form, where there is one. */
XLAC_MUST_USE int mlir_read_own_attrs(mlir_reader *r, mlir_op_state *s);
/* The entries from `from` on as a sorted dictionary, taken off the stack; NULL when there are none. */
XLAC_MUST_USE int mlir_take_dict(mlir_reader *r, uint32_t from, const ir_mdict **out);

/* --- read_attr.c --- */
/* Any attribute; a dense<...>; an array<...>, each with the cursor at its first word. */
XLAC_MUST_USE int mlir_read_attr(mlir_reader *r, const ir_mattr **out);
/* A struct's body "<a = 1, ...>" or an enum's word. */
XLAC_MUST_USE int mlir_read_struct(mlir_reader *r, const ir_struct_info *info, const ir_mattr **out);
/* `info` is the enum's row: ir_enum_find. */
XLAC_MUST_USE int mlir_read_enum(mlir_reader *r, const ir_enum_info *info, const ir_mattr **out);
/* "[b, 0, f]x[i, o, 0]->[b, 0, f]" */
XLAC_MUST_USE int mlir_read_conv_dims(mlir_reader *r, const ir_mattr **out);

/* --- read_attr.c: what is kept as its text --- */
/* "#other.name<...>": cursor at `at`, its '#'. */
XLAC_MUST_USE int mlir_read_opaque(mlir_reader *r, const char *at, const ir_mattr **out);
/* "affine_map<...>" and its like. */
XLAC_MUST_USE int mlir_read_affine(mlir_reader *r, const ir_mattr **out);

/* --- read_dense.c: cursor after "dense", at '<' --- */
XLAC_MUST_USE int mlir_read_dense(mlir_reader *r, const ir_mattr **out);
XLAC_MUST_USE int mlir_read_dense_array(mlir_reader *r, const ir_mattr **out);
int mlir_hex_digit(char c); /* or -1 */
/* read_dense.c: cursor after "dense_resource" */
XLAC_MUST_USE int mlir_read_resource(mlir_reader *r, const ir_mattr **out);
/* A literal of `type` from raw bytes as MLIR stores them (bits packed for i1 where the size says so). */
XLAC_MUST_USE int mlir_literal_of_bytes(mlir_reader *r, const char *at, const ir_type *type, const uint8_t *bytes,
                                        size_t n, const ir_mattr **out);

/* --- read_loc.c --- */
XLAC_MUST_USE int mlir_read_loc(mlir_reader *r, const ir_mattr **out); /* cursor at "loc" */
/* "loc(...)" if it is there; else *out stays. */
XLAC_MUST_USE int mlir_read_trailing_loc(mlir_reader *r, const ir_mattr **out);

/* --- read_scope.c --- */
/* "%name", interned with nothing before it. */
XLAC_MUST_USE int mlir_read_value_name(mlir_reader *r, const base_istr **out);
/* What a name stands for here, or NULL. */
const mlir_name *mlir_find_value(const mlir_reader *r, base_slice name);
/* "%x" or "%x#1": onto r->values. */
XLAC_MUST_USE int mlir_read_operand(mlir_reader *r);
XLAC_MUST_USE int mlir_bind(mlir_reader *r, const char *at, const base_istr *name, ir_op *op, uint32_t index,
                            uint32_t count);
/* Puts names back to what they were when r->names.n was `mark`. */
void mlir_unbind(mlir_reader *r, uint32_t mark);

/* --- read_statement.c --- */
/* `c`: where ops go; NULL at module level. *ended is set when the statement was a terminator. */
XLAC_MUST_USE int mlir_read_statement(mlir_reader *r, ir_computation *c, bool *ended);

/* --- read_op.c --- */
/* From behind the op's name in quotes up to its types. */
XLAC_MUST_USE int mlir_read_generic(mlir_reader *r, mlir_op_state *s);
/* "(%0, %1)", operands onto the stack; and ": (t, t) -> t" of the generic form. */
XLAC_MUST_USE int mlir_read_operand_list(mlir_reader *r, mlir_op_state *s);
XLAC_MUST_USE int mlir_read_generic_type(mlir_reader *r, mlir_op_state *s);
/* Makes the op of a state whose parts are all there; takes them off the stacks. */
XLAC_MUST_USE int mlir_finish_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, ir_op **out);

/* --- read_op.c --- */
/* The op's full name. */
const char *mlir_op_name(const mlir_op_state *s);
/* Operands, results and regions, against the op's row. */
XLAC_MUST_USE int mlir_check_counts(mlir_reader *r, const mlir_op_state *s, uint32_t n_regions);
/* The inherent attributes of a row: present where required, and of their kinds. */
XLAC_MUST_USE int mlir_check_attrs(mlir_reader *r, const mlir_op_state *s, const ir_mdict *d);
/* Checks the written operand types (n from r->types[from]) against the operands' own. */
XLAC_MUST_USE int mlir_check_operand_types(mlir_reader *r, const mlir_op_state *s, uint32_t from, uint32_t n);

/* --- read_func.c --- */
/* "{ ... }" with optional entry block label, appended to r->regions. */
XLAC_MUST_USE int mlir_read_region(mlir_reader *r, bool isolated);
/* "%a: type {attributes} loc(...)": an argument of c. */
XLAC_MUST_USE int mlir_read_arg(mlir_reader *r, ir_computation *c, bool attributes);
/* The same, of a region whose arguments have been made already. */
XLAC_MUST_USE int mlir_read_region_body(mlir_reader *r, ir_computation *c);
/* NULL when out of memory. */
ir_computation *mlir_new_region(mlir_reader *r);
XLAC_MUST_USE int mlir_add_arg(mlir_reader *r, ir_computation *c, const char *at, const base_istr *name,
                               const ir_type *type);

/* --- read_form.c: the pretty syntax of a row --- */
/* From behind the op's name up to its types. What was read waits on the stacks. */
XLAC_MUST_USE int mlir_read_form(mlir_reader *r, mlir_op_state *s);
/* ": type" of all operands and the result, or a function type. */
XLAC_MUST_USE int mlir_read_same(mlir_reader *r, mlir_op_state *s);
/* ": types" of an op whose operands are read: sets the result types. */
XLAC_MUST_USE int mlir_read_op_type(mlir_reader *r, mlir_op_state *s);
/* The op's result types, copied. */
XLAC_MUST_USE int mlir_set_results(mlir_reader *r, mlir_op_state *s, uint32_t n, const ir_type *const *types);

/* "[1, 2]" or "[true, false]" as an attribute. */
XLAC_MUST_USE int mlir_read_bare_ints(mlir_reader *r, bool bools, const ir_mattr **out);

/* --- read_custom.c: the <directives> --- */
XLAC_MUST_USE int mlir_read_custom(mlir_reader *r, mlir_op_state *s, base_slice directive);
XLAC_MUST_USE int mlir_want_word(mlir_reader *r, const char *word);

/* --- read_foreign.c: ops of sdy, check, interpreter --- */
/* The form of an op without a row, or NULL when its syntax has been read here or is not known. */
XLAC_MUST_USE int mlir_read_known(mlir_reader *r, mlir_op_state *s, const char **form);

/* --- read_foreign.c: ops of other dialects --- */
XLAC_MUST_USE int mlir_read_foreign(mlir_reader *r, mlir_op_state *s, const mlir_foreign *f);
/* Adds the properties that MLIR adds where a text leaves them out. */
XLAC_MUST_USE int mlir_foreign_complete(mlir_reader *r, const mlir_op_state *s, const mlir_foreign *f);

/* --- read_func.c --- */
/* func.func from after its name; or its generic form's parts. */
XLAC_MUST_USE int mlir_read_func(mlir_reader *r, const char *at);
XLAC_MUST_USE int mlir_read_generic_func(mlir_reader *r, const char *at);
/* Notes the name of a function or another symbol; an error where the module has it already. */
XLAC_MUST_USE int mlir_check_new_symbol(mlir_reader *r, const char *at, const base_istr *name);

#endif
