/* What the readers of <directives> share. Internal to text/mlir_read_{custom,dot,conv,while,reduce}.c. */
#ifndef XLAC_TEXT_MLIR_READ_READ_CUSTOM_H
#define XLAC_TEXT_MLIR_READ_READ_CUSTOM_H

#include "read.h"

/* --- mlir_read_custom.c --- */
XLAC_MUST_USE int mlir_want_word(mlir_reader *r, const char *word);
/* "word = " */
XLAC_MUST_USE int mlir_want_key(mlir_reader *r, const char *word);
/* A field of a struct attribute. */
XLAC_MUST_USE int mlir_field(mlir_reader *r, ir_mentry *e, const char *name, const ir_mattr *value);
/* "(%0, %1)": operands onto the stack. */
XLAC_MUST_USE int mlir_read_parenthesised(mlir_reader *r, mlir_op_state *s);

/* --- mlir_read_dot.c --- */
XLAC_MUST_USE int mlir_read_precision_tail(mlir_reader *r);
XLAC_MUST_USE int mlir_read_dot(mlir_reader *r);

/* --- mlir_read_conv.c --- */
XLAC_MUST_USE int mlir_read_convolution(mlir_reader *r, mlir_op_state *s);

/* --- mlir_read_while.c --- */
/* A region with one argument for each of the n types from `types` on. */
XLAC_MUST_USE int mlir_read_region_with(mlir_reader *r, const char *at, uint32_t n, const base_istr *const *names,
                                        const ir_type *const *types);
/* ": t, t": the operands' types, which are the results' too. */
XLAC_MUST_USE int mlir_read_while_types(mlir_reader *r, mlir_op_state *s);
XLAC_MUST_USE int mlir_read_while(mlir_reader *r, mlir_op_state *s);

/* --- mlir_read_reduce.c --- */
XLAC_MUST_USE int mlir_read_reduce(mlir_reader *r, mlir_op_state *s);

#endif
