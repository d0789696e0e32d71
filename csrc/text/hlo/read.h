/* Internal to the HLO reader: its state, and what its files do for one another.
 *
 * One pass over the text, recursive descent, no token objects. Every word (name, opcode, attribute) is hashed once into
 * a symbol, which remembers what it means: the op of that name in the scope being read, the computation, the opcode,
 * the attribute. Lists of unknown length grow on stacks shared by all nesting levels and are copied out when complete.
 * Functions return 0 or a negative code with the error filled; the whole parse then ends. */
#ifndef XLAC_TEXT_HLO_READ_H
#define XLAC_TEXT_HLO_READ_H

#include "lexer.h"
#include "../text.h"

/* How a word reads as an async opcode: "add-start" is START of add. The order is that of the opcodes async-start,
 * async-update and async-done, which code computes with. */
typedef enum text_sugar { TEXT_SUGAR_NONE, TEXT_SUGAR_START, TEXT_SUGAR_UPDATE, TEXT_SUGAR_DONE } text_sugar;

/* A word of the text. `op` is of use only where `scope` is the reader's current one: text_op_named. */
typedef struct text_symbol {
  const base_istr *name;
  ir_op *op;            /* defined with this name in scope `scope`, or NULL */
  ir_computation *comp; /* the computation of this name, or NULL */
  uint32_t scope;
  uint32_t stamp;  /* marks duplicates within one list */
  uint16_t opcode; /* ir_opcode, of the wrapped op where sugar; valid when `classified` */
  uint16_t attr;   /* ir_attr_key */
  uint8_t sugar;   /* text_sugar */
  uint8_t dtype;   /* base_dtype of this name, or 0 */
  bool classified;
  bool reserved; /* a type or keyword: no bare name */
  bool illegal;  /* no name even after '%' */
} text_symbol;

/* The hash beside the symbol saves most comparisons of names. */
typedef struct text_symbol_slot {
  uint32_t hash;
  text_symbol *symbol;
} text_symbol_slot;

/* A definition hidden by one of an inner scope. */
typedef struct text_hidden {
  text_symbol *symbol;
  ir_op *op;
  uint32_t scope;
} text_hidden;

/* A parameter waiting for its computation to end, when the numbers are checked. */
typedef struct text_param {
  ir_op *op;
  int64_t number;
} text_param;

/* A shape read before, by its text; direct-mapped, a newer one takes an older one's place. */
typedef struct text_type_memo {
  const char *s; /* in the text */
  uint32_t n;
  const ir_type *type;
} text_type_memo;
/* Types that were read, by their text: programs repeat a few. */
enum { TEXT_TYPE_MEMOS = 512 };

BASE_VEC(text_ops, ir_op *);
BASE_VEC(text_ints, int64_t);
BASE_VEC(text_types, const ir_type *);
BASE_VEC(text_attrs, ir_attr);
BASE_VEC(text_comps, ir_computation *);
BASE_VEC(text_hiddens, text_hidden);
BASE_VEC(text_params, text_param);
BASE_VEC(text_shardings, const ir_sharding *);
BASE_VEC(text_literals, const ir_literal *);
BASE_VEC(text_pointers, const void *);

typedef struct ir_uniquer ir_uniquer;

/* Everything a parse carries along. Stacks (ops to bytes) are shared by all levels of nesting: whoever pushes notes
 * the height before and sets it back, so that between two parts of the grammar each stack is as high as it was. */
typedef struct text_reader {
  text_lexer lx;
  base_alloc alloc;
  base_arena scratch; /* symbols; freed with the reader */
  ir_module *m;
  xlac_error *err;
  const base_istr *op_name; /* of the op being read, for errors */
  uint32_t depth, max_depth;
  bool strict;    /* text_parse_options.strict */
  bool chlo;      /* text_parse_options.chlo */
  bool halves;    /* text_parse_options.halves */
  bool no_bodies; /* computations by name only */
  bool lone;      /* the text is one instruction: undeclared operands become parameters */
  uint32_t scope, n_scopes;
  uint32_t level; /* open scopes */
  uint32_t stamp;
  text_symbol_slot *slots;
  uint32_t n_symbols, cap; /* cap is a power of two */
  text_type_memo *memos;
  /* Operands, and behind them control predecessors, of the instructions being read. */
  text_ops ops;
  /* Integers of whatever list is being read. */
  text_ints ints;
  text_types types;
  /* Attributes and called computations of the instructions being read, inner ones above outer ones. */
  text_attrs attrs;
  text_comps comps;
  /* Names that inner scopes have redefined, to be restored. */
  text_hiddens hiddens;
  /* Parameters of the open computations. */
  text_params params;
  text_shardings shardings;
  text_literals literals;
  text_pointers pointers;
  base_text bytes; /* a string being unescaped, or a text being normalised */
  /* Async chains are followed by table: an update's start may be thousands of ops away. */
  base_map chain_starts;  /* async op -> start of its chain */
  base_map wrapped_by;    /* computation -> the async start that wraps it */
  base_map tree_sizes;    /* inferred tuple type -> nodes of its tree */
  ir_uniquer *uniquer;    /* made-up names of nested instructions; NULL until one is needed */
  const char *aliases_at; /* the header's input_output_alias */
  size_t budget;          /* bytes that the text may still cost beyond what it spells out */
} text_reader;

/* --- read.c --- */
/* Leaves the cursor on the first token. `text` may be freed afterwards; m, alloc and err must outlive
 * the reader. */
XLAC_MUST_USE int text_reader_open(text_reader *r, ir_module *m, base_alloc alloc, const char *text, size_t n,
                                   const text_parse_options *options, xlac_error *err);
void text_reader_close(text_reader *r);
/* Fails at a place in the text. Gives the error's code, negative, for `return text_fail(...)`. `at` lies in the
 * reader's copy of the text. */
int text_fail(text_reader *r, const char *at, base_code code, const char *format, ...) BASE_PRINTF(4, 5);
/* "expected <what>, found <the next token>". */
int text_expected(text_reader *r, base_code code, const char *what);
/* "a, b": one more word for a message, as far as there is room. */
void text_append_word(char *list, size_t size, const char *word);
int text_no_memory(text_reader *r);
/* Takes `bytes` from the budget, or fails with TOO_LARGE. */
XLAC_MUST_USE int text_charge(text_reader *r, const char *at, size_t bytes);
XLAC_MUST_USE int text_deeper(text_reader *r);
/* Consumes character c; `what` names its role in the error message. */
XLAC_MUST_USE int text_want(text_reader *r, char c, const char *what);
/* These read one token, and leave *out alone when they fail. */
XLAC_MUST_USE int text_read_int(text_reader *r, int64_t *out);
XLAC_MUST_USE int text_read_bool(text_reader *r, bool *out);
XLAC_MUST_USE int text_read_double(text_reader *r, double *out);
/* A quoted string, unescaped and interned. */
XLAC_MUST_USE int text_read_string(text_reader *r, const base_istr **out);
/* A braced text up to its closing brace, verbatim. */
XLAC_MUST_USE int text_read_braces(text_reader *r, const base_istr **out);
/* Ints between open and close; pushed on r->ints from index *from on. The caller drops them (r->ints.n = *from). */
XLAC_MUST_USE int text_read_ints(text_reader *r, char open, char separator, char close, uint32_t *from);
XLAC_MUST_USE int text_read_int_list(text_reader *r, const ir_ints **out);
XLAC_MUST_USE int text_read_int_lists(text_reader *r, const ir_int_lists **out);
XLAC_MUST_USE int text_push_int(text_reader *r, int64_t v);
/* r->ints from `from` on as a list; dropped there. NULL when out of memory. */
const ir_ints *text_make_ints(text_reader *r, uint32_t from);
/* A copy of r->ints from `from` on, which is then dropped. NULL when empty or out of memory (*ok false). */
const int64_t *text_take_ints(text_reader *r, uint32_t from, bool *ok);

/* --- read_names.c --- */
/* The symbol of a word; NULL when out of memory. The word need not be terminated; equal words have one symbol. */
text_symbol *text_symbol_of(text_reader *r, const char *s, size_t n);
/* Fills opcode, attr and sugar. */
void text_classify(text_symbol *symbol);
/* A name: bare or after '%', with a colon where `colon` allows it. `what` names the expected thing in errors: "an
 * operand". */
XLAC_MUST_USE int text_read_name(text_reader *r, const char *what, text_symbol **out);
/* Op names mean something within a scope only; inline computations open one inside another. *outer and *first_hidden
 * belong to the caller, who hands them to text_scope_close. */
void text_scope_open(text_reader *r, uint32_t *outer, uint32_t *first_hidden);
void text_scope_close(text_reader *r, uint32_t outer, uint32_t first_hidden);
/* An error where the name is defined in this scope already; an outer scope's definition is hidden until this one
 * closes. */
XLAC_MUST_USE int text_define(text_reader *r, text_symbol *symbol, ir_op *op, const char *at);
static inline ir_op *text_op_named(const text_reader *r, const text_symbol *symbol) {
  return symbol->scope == r->scope ? symbol->op : NULL;
}
/* Keeps made-up names away from this one. */
XLAC_MUST_USE int text_take_name(text_reader *r, const text_symbol *symbol);
/* A made-up name "<opcode>.anon", unique among all names so far. */
XLAC_MUST_USE int text_anonymous(text_reader *r, ir_opcode opcode, text_symbol **out);
void text_names_close(text_reader *r);

/* --- read_type.c --- */
/* Whether a type begins at the cursor, rather than a name or an opcode. */
bool text_at_type(text_reader *r);
/* Gives an interned type with a layout at every depth. */
XLAC_MUST_USE int text_read_type(text_reader *r, const ir_type **out);
/* Charges the tree of an inferred type to the budget, since no text spells it out. */
XLAC_MUST_USE int text_charge_type(text_reader *r, const char *at, const ir_type *t);

/* --- read_literal.c --- */
/* Its type is `type`, but for dynamic and packed element types: see read_literal.c. */
XLAC_MUST_USE int text_read_literal(text_reader *r, const ir_type *type, const ir_literal **out);
/* With its type in front: s32[2] {1, 2}. */
XLAC_MUST_USE int text_read_typed_literal(text_reader *r, const ir_literal **out);

/* --- read_sharding.c, sharding_normal.c --- */
/* The cursor is on the opening brace, or on '[' or "mesh" for groups. */
XLAC_MUST_USE int text_read_sharding(text_reader *r, const ir_sharding **out);
XLAC_MUST_USE int text_read_groups(text_reader *r, const ir_groups **out);
/* XLA's normal form of [reshape]T(perm), in place; perm has *n entries. */
void text_normal_iota(uint32_t *n, int64_t *reshape, int64_t *perm);
/* XLA's normal form of a tiled sharding with subgroups: trivial ones dropped, the rest sorted and merged. */
XLAC_MUST_USE int text_normal_subgroups(text_reader *r, const char *at, ir_sharding *s);

/* --- read_attr.c and read_values.c --- */
/* ", key=value" while there is more; pushes on r->attrs and r->comps. Whose attributes are being read, and where on
 * the stacks they begin. */
typedef struct text_attr_scope {
  uint16_t opcode;       /* whose own attributes are allowed */
  uint8_t sugar;         /* text_sugar */
  uint8_t pred;          /* conditional: operand 0 is a pred */
  const ir_type *type;   /* of the op where known */
  uint32_t first;        /* index into r->attrs */
  uint32_t first_called; /* index into r->comps */
  uint32_t first_pred;   /* control predecessors: index into r->ops */
  uint64_t seen[(IR_ATTR_COUNT + 63) / 64];
} text_attr_scope;
/* By the opcode's row and the sugar; attributes that any op may have are taken always. */
bool text_takes_attr(const text_reader *r, const text_attr_scope *scope, unsigned key);
XLAC_MUST_USE int text_read_attrs(text_reader *r, text_attr_scope *scope);
/* `at` is where an error about a missing attribute points. */
XLAC_MUST_USE int text_check_required(text_reader *r, const text_attr_scope *scope, const char *at);
/* Reads the value of attribute a->key into a->v, or elsewhere and sets a->key to IR_ATTR_NONE. */
XLAC_MUST_USE int text_read_value(text_reader *r, text_attr_scope *scope, ir_attr *a);
XLAC_MUST_USE int text_read_metadata(text_reader *r, const ir_metadata **out);
XLAC_MUST_USE int text_read_dict(text_reader *r, const ir_dict **out);
XLAC_MUST_USE int text_read_index_path(text_reader *r, const ir_ints **out);
XLAC_MUST_USE int text_read_window(text_reader *r, const ir_window **out);
XLAC_MUST_USE int text_read_conv_dims(text_reader *r, const ir_conv_dims **out);
XLAC_MUST_USE int text_read_padding(text_reader *r, const ir_padding **out);
XLAC_MUST_USE int text_read_slice(text_reader *r, const ir_slice **out);
XLAC_MUST_USE int text_read_statistics(text_reader *r, const ir_dict **out);
XLAC_MUST_USE int text_read_accuracy(text_reader *r, const ir_accuracy **out);
XLAC_MUST_USE int text_read_origin(text_reader *r, const base_istr **out);
/* {"name" {0,1}}: an array of the program before it was changed. The name is as quoted, escapes and all. */
typedef struct text_original_array {
  base_slice name;
  const ir_ints *path; /* NULL: none written */
} text_original_array;
XLAC_MUST_USE int text_read_original_array(text_reader *r, text_original_array *out);
void text_put_original_array(base_text *out, const text_original_array *a);
/* The header's origin_recovery_table, as XLA prints it. NULL where it is empty. */
XLAC_MUST_USE int text_read_recovery_table(text_reader *r, const base_istr **out);
XLAC_MUST_USE int text_read_domain(text_reader *r, const ir_domain **out);
XLAC_MUST_USE int text_read_aliasing(text_reader *r, const ir_aliasing **out);
/* One of the words attribute `key` may have. */
XLAC_MUST_USE int text_read_word(text_reader *r, const char *const *words, const char *of, int64_t *out);
/* A word standing before '=' as in "size=": its symbol, past the '='. */
XLAC_MUST_USE int text_read_key(text_reader *r, const char **at, base_slice *out);

/* --- read_op.c, read_async.c --- */
/* What stands after "name =": type, opcode, operands, attributes. `name` NULL: a nested operand, which gets a name. */
XLAC_MUST_USE int text_read_rhs(text_reader *r, ir_computation *c, text_symbol *name, const char *at, ir_op **out);
XLAC_MUST_USE int text_read_instruction(text_reader *r, ir_computation *c, ir_op **root);
/* Pushes operands on r->ops. */
XLAC_MUST_USE int text_read_operands(text_reader *r, ir_computation *c);
/* An op as far as it has been read. Its operands are r->ops[first_operand...], all else is above the marks in
 * `attrs`. */
typedef struct text_draft {
  ir_computation *c;
  const base_istr *name;
  const char *at; /* for its position */
  const char *opcode_at;
  const ir_type *type; /* NULL: to be inferred */
  uint32_t first_operand, n_operands;
  text_attr_scope attrs;
  int64_t number;
  const ir_literal *literal;
} text_draft;
/* Makes the op from what was read; drops what it took from the stacks. */
XLAC_MUST_USE int text_make_op(text_reader *r, text_draft *d, ir_op **out);
/* Rules of single opcodes that XLA's parser has. */
XLAC_MUST_USE int text_check_op(text_reader *r, const text_draft *d, const ir_op *op);
XLAC_MUST_USE int text_check_counts(text_reader *r, const text_draft *d);
/* Async ops: before the op is made (types, the hidden computation), and after (threads, chains, copies on the wrapped
 * op). */
XLAC_MUST_USE int text_async_draft(text_reader *r, text_draft *d);
XLAC_MUST_USE int text_async_made(text_reader *r, const text_draft *d, ir_op *op);
bool text_async_flat_equal(const ir_type *flat, const ir_type *nested);
const ir_type *text_async_nested(text_reader *r, const ir_type *flat, uint32_t n);

/* --- read_computation.c, read_header.c --- */
/* '{' instructions '}'; the computation is moved to the end of the module's list when complete. */
XLAC_MUST_USE int text_read_body(text_reader *r, const char *name, size_t n, const char *at, ir_computation **out);
/* Computations up to the end of the text; sets the module's entry. */
XLAC_MUST_USE int text_read_computations(text_reader *r);
/* A single instruction as a module. */
XLAC_MUST_USE int text_read_lone(text_reader *r);
/* Ends a computation whose instructions have been read: parameters by number, the root, the place in the module's
 * list. */
XLAC_MUST_USE int text_close_computation(text_reader *r, ir_computation *c, ir_op *root, uint32_t first_param,
                                         const char *at);
XLAC_MUST_USE int text_read_header(text_reader *r);
/* What the header says of the entry, once the entry is there. */
XLAC_MUST_USE int text_check_header(text_reader *r);
XLAC_MUST_USE int text_read_tables(text_reader *r);

#endif
