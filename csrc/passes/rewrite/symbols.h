/* Functions by their names, and who calls whom: MLIR form calls by symbol. */
#ifndef XLAC_PASSES_REWRITE_SYMBOLS_H
#define XLAC_PASSES_REWRITE_SYMBOLS_H

#include "rewrite.h"

/* The functions of a module by name (interned). Valid until functions come or go. */
typedef struct opt_symbols {
  base_map by_name;
} opt_symbols;

XLAC_MUST_USE int opt_symbols_make(opt_symbols *s, const ir_module *m, xlac_error *err);
void opt_symbols_free(opt_symbols *s);
/* NULL where there is none, or it is a declaration and `body` is asked for. */
ir_computation *opt_symbol(const opt_symbols *s, const base_istr *name, bool body);
/* The function that op, a func.call or stablehlo.composite, calls; NULL for other ops. */
ir_computation *opt_callee(const opt_symbols *s, const ir_op *op);
/* sym_visibility = "private": nobody outside of the module can call it. */
bool opt_is_private(const ir_computation *c);
/* Calls `fn` with every symbol named in the attributes of op (callee, called_computations, decomposition, programs and
 * any other, nested ones too). */
void opt_for_symbols(const ir_op *op, void (*fn)(void *ctx, const base_istr *name), void *ctx);

opt_pass_fn opt_symbol_dce; /* takes no options */

#endif
