/* Reading the attributes and ops of the sdy dialect: read.c and read_rule.c. Everything is made in the module's
 * arena. */
#ifndef XLAC_TEXT_MLIR_SDY_READ_H
#define XLAC_TEXT_MLIR_SDY_READ_H

#include "../../../ir/sdy/sdy.h"
#include "../read/read.h"

/* An attribute of that kind as ops' forms write it, without "#sdy.name": <@mesh, [{}]>, {"x"}, [{"x"}: 0->1]. */
XLAC_MUST_USE int mlir_sdy_read_bare(mlir_reader *r, sdy_kind kind, const ir_mattr **out);
/* "#sdy.sharding<...>" and "#sdy<manual_axes{...}>": after the kind's name; `at` is the '#'. */
XLAC_MUST_USE int mlir_sdy_read_named(mlir_reader *r, const char *at, base_slice name, const ir_mattr **out);

/* --- read.c --- */
/* "{"x", "y":(1)2}" */
XLAC_MUST_USE int mlir_sdy_read_axes_in_braces(mlir_reader *r, sdy_axes *out);
XLAC_MUST_USE int mlir_sdy_read_axis(mlir_reader *r, sdy_axis *out);
/* "[<@mesh, [{"x"}]>, <@mesh, []>]" */
XLAC_MUST_USE int mlir_sdy_read_sharding_list(mlir_reader *r, sdy_shardings *out);
/* Room for one more at items[n] of a list in the module's arena, which doubles. */
XLAC_MUST_USE int mlir_sdy_more(mlir_reader *r, void **items, uint32_t n, size_t size);
#define SDY_MORE(r, items, n) mlir_sdy_more((r), (void **)&(items), (n), sizeof *(items))

/* --- read_rule.c --- */
XLAC_MUST_USE int mlir_sdy_read_rule(mlir_reader *r, sdy_rule *out);
/* --- read_rule.c --- */
XLAC_MUST_USE int mlir_sdy_read_edges(mlir_reader *r, sdy_edges *out);

/* --- read.c: the forms that no string describes --- */
XLAC_MUST_USE int mlir_sdy_read_symbol(mlir_reader *r);
XLAC_MUST_USE int mlir_sdy_read_direction(mlir_reader *r);
XLAC_MUST_USE int mlir_sdy_read_reduction(mlir_reader *r);
XLAC_MUST_USE int mlir_sdy_read_manual(mlir_reader *r, mlir_op_state *s);
XLAC_MUST_USE int mlir_sdy_read_named_computation(mlir_reader *r, mlir_op_state *s);

#endif
