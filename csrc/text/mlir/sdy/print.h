/* Printing the attributes and ops of the sdy dialect, as Shardy prints them: print.c. Source: Shardy's
 * parsers_and_printers. */
#ifndef XLAC_TEXT_MLIR_SDY_PRINT_H
#define XLAC_TEXT_MLIR_SDY_PRINT_H

#include "../../../ir/sdy/sdy.h"
#include "../print/print.h"

/* #sdy.sharding<...>, #sdy<manual_axes{...}> */
void mlir_sdy_print_attr(base_text *o, const ir_mattr *a);
/* As ops' forms write it: <@mesh, [{}]>, {"x"}. */
void mlir_sdy_print_bare(base_text *o, sdy_kind kind, const void *what);
/* "[<...>, <...>]" */
void mlir_sdy_print_list(base_text *o, const sdy_shardings *list);

/* --- print.c --- */
/* Directives of forms, as in print/print_directive.c: each prints what stands between the op's name and its types. */
void mlir_sdy_print_name(mprint *p, const ir_op *op, const char *form);
void mlir_sdy_print_direction(mprint *p, const ir_op *op, const char *form);
void mlir_sdy_print_reduction(mprint *p, const ir_op *op, const char *form);
void mlir_sdy_print_manual(mprint *p, const ir_op *op, const char *form);
void mlir_sdy_print_named_computation(mprint *p, const ir_op *op, const char *form);
/* Whether the pretty form can say the op: it has one region with a block, words for its numbers, and attributes of the
 * kinds that the form writes. */
bool mlir_sdy_is_sayable(const ir_op *op);

#endif
