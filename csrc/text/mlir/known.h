/* Pretty forms of ops that have no row in the op table: those of the dialects check and interpreter, by which programs
 * test and watch themselves. In the language of the table's forms, and besides: &name is an attribute with its type, :0
 * the type of operand 0 alone, :01 those of operands 0 and 1. Source: StableHLO's CheckOps.td and InterpreterOps.td. */
#ifndef XLAC_TEXT_MLIR_KNOWN_H
#define XLAC_TEXT_MLIR_KNOWN_H

#include "../../ir/ir.h"

typedef struct mlir_known_op {
  const char *name, *form;
} mlir_known_op;

/* NULL for all other ops. mlir_known.c */
const char *mlir_known_form(const base_istr *name);
/* The constant that spells `attr`, and the element type of such a number, which is written without one. */
const char *mlir_known_attr(base_slice attr, base_dtype *number);

#endif
