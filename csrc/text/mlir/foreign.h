/* Ops of other dialects whose pretty syntax is known: the rows of foreign.def. In the IR they are
 * IR_OP_UNREGISTERED, with their names and attributes kept as they are; only their syntax is known here, not their
 * meaning. */
#ifndef XLAC_TEXT_MLIR_FOREIGN_H
#define XLAC_TEXT_MLIR_FOREIGN_H

#include "../../ir/ir.h"

/* What the result's type is. */
typedef enum mlir_foreign_result {
  MLIR_FOREIGN_WRITTEN, /* the text says it */
  MLIR_FOREIGN_NONE,    /* no result */
  MLIR_FOREIGN_VALUE,   /* the attribute `value` has it */
  MLIR_FOREIGN_INDEX,
  MLIR_FOREIGN_BOOL,
  MLIR_FOREIGN_PREDICATE, /* bools in the shape of operand 0 */
  MLIR_FOREIGN_ELEMENT,   /* an element of operand 0 */
  MLIR_FOREIGN_SHAPE,
  MLIR_FOREIGN_SIZE,
  MLIR_FOREIGN_WITNESS,
  MLIR_FOREIGN_VALUE_SHAPE
} mlir_foreign_result;

/* A row: all strings are constants of the program. */
typedef struct mlir_foreign {
  const char *name, *form;
  uint8_t result;         /* a mlir_foreign_result */
  const char *stem;       /* of the result's name, or NULL */
  const char *properties; /* names of attributes, with blanks between */
} mlir_foreign;

/* NULL for an op that has no row. */
const mlir_foreign *mlir_foreign_find(const char *name);
bool mlir_foreign_is_property(const mlir_foreign *f, const base_istr *key);

/* An item of a form: "$name:kind" has both parts, others have their text as the name. */
typedef struct mlir_foreign_item {
  char sort;             /* '%' operand, '$' attribute, '#' type of an operand, '=' of results, 'w' any other word */
  base_slice name, kind; /* without the sort's own letter */
} mlir_foreign_item;
/* The next item; false at the end. */
bool mlir_foreign_next(const char **form, mlir_foreign_item *item);
/* The words of a predicate, or of another choice, of that kind, by number and ended by NULL; or NULL. */
const char *const *mlir_foreign_words(base_slice kind);
/* "overflow<nsw>" in text, #arith.overflow<nsw> in the IR. The kind is the word, or with a '?' where it has no default.
 */
bool mlir_foreign_is_flags(base_slice kind);
base_slice mlir_foreign_flags_word(base_slice kind);
/* What an attribute of that kind is where the text leaves it out: "arith.overflow<none>", or NULL. */
const char *mlir_foreign_default(base_slice kind);

/* Pretty forms of ops that have no row in the op table: those of the dialects check and interpreter, by which programs
 * test and watch themselves. In the language of the table's forms, and besides: &name is an attribute with its type, :0
 * the type of operand 0 alone, :01 those of operands 0 and 1. Source: StableHLO's CheckOps.td and InterpreterOps.td. */
typedef struct mlir_known_op {
  const char *name, *form;
} mlir_known_op;
/* NULL for all other ops. */
const char *mlir_known_form(const base_istr *name);
/* The constant that spells `attr`, and the element type of such a number, which is written without one. */
const char *mlir_known_attr(base_slice attr, base_dtype *number);

#endif
