/* Internal to the IR: the parts of ir_verify. Each returns 0 or fills err, position and op included. */
#ifndef XLAC_IR_VERIFY_H
#define XLAC_IR_VERIFY_H

#include "check.h"

/* verify_structure.c: links, roots, parameters, called computations (no cycle), operands in the same computation and acyclic,
 * control edges, unique names, the schedule. Must hold before any other part looks at the module. */
XLAC_MUST_USE int ir_verify_structure(const ir_module *m, xlac_error *err);
/* verify_layout.c: a layout permutes its dimensions, tiles and splits make sense, at any depth of the type. */
XLAC_MUST_USE int ir_verify_layouts(const ir_type *t, xlac_error *err);
/* verify_alias.c: input_output_alias and buffer_donor against the entry's parameters and result. */
XLAC_MUST_USE int ir_verify_aliases(const ir_module *m, const ir_verify_options *options, xlac_error *err);
/* verify_sharding.c: a sharding fits the type it annotates. */
XLAC_MUST_USE int ir_verify_sharding(const ir_op *op, const ir_sharding *s, xlac_error *err);
/* verify_async.c: consumers of starts and updates, producers of dones, one chain per computation. */
XLAC_MUST_USE int ir_verify_async_op(const ir_op *op, const ir_verify_options *options, xlac_error *err);
/* verify_module.c: facts of several ops together: channels, layout-constrained all-reduces, replica groups. */
XLAC_MUST_USE int ir_verify_together(const ir_module *m, const ir_verify_options *options, xlac_error *err);

/* An error about op: what, expected, found. Returns the negative code. */
int ir_verify_fail(const ir_op *op, base_code code, xlac_error *err, const char *format, ...) BASE_PRINTF(4, 5);

#endif
