/* Internal to the IR: the parts of ir_verify. Each returns 0 or fills err; where a part does not know the op, ir_verify
 * adds its position and name. Inference has run before an op's own rule, so a rule may count on all that check.h says
 * it checks. */
#ifndef XLAC_IR_VERIFY_VERIFY_H
#define XLAC_IR_VERIFY_VERIFY_H

#include <stdio.h>

#include "../check/check.h"

/* The rule of VERIFY(name) in ops.def. Most rules need the op only. */
#define IR_VERIFY(name)                                                                               \
  int ir_verify_##name(ir_module *m __attribute__((unused)), const ir_op *op __attribute__((unused)), \
                       const ir_verify_options *options __attribute__((unused)),                      \
                       xlac_error *err __attribute__((unused)))

#include "../ops_columns.h"
#undef VERIFY
#define VERIFY(fn) ir_verify_fn ir_verify_##fn;
#define OP(code, text, arity, columns) columns
#include "../ops.def"
#undef OP
#include "../ops_columns.h"

/* --- parts, in the order in which ir_verify runs them ---
 *
 * verify_structure.c: links, roots, parameters, called computations (no cycle), operands in the same computation and
 * acyclic, control edges, unique names, the schedule. Must hold before any other part looks at the module. */
XLAC_MUST_USE int ir_verify_structure(const ir_module *m, xlac_error *err);
/* verify_annotation.c: a layout permutes its dimensions, tiles and splits make sense, at any depth of the type. */
XLAC_MUST_USE int ir_verify_layouts(const ir_type *t, xlac_error *err);
/* verify_alias.c: input_output_alias and buffer_donor against the entry's parameters and result. */
XLAC_MUST_USE int ir_verify_aliases(const ir_module *m, const ir_verify_options *options, xlac_error *err);
/* verify_annotation.c: a sharding fits the type it annotates. */
XLAC_MUST_USE int ir_verify_sharding(const ir_op *op, const ir_sharding *s, xlac_error *err);
/* Whether two shardings put the same parts on the same devices, written as they may be. */
bool ir_verify_sharding_same(const ir_sharding *a, const ir_sharding *b);
/* verify_async.c: consumers of starts and updates, producers of dones. */
XLAC_MUST_USE int ir_verify_async_op(const ir_op *op, const ir_verify_options *options, xlac_error *err);
/* verify.c: facts of several ops together: async chains, channels, layout-constrained all-reduces, entry layout.
 */
XLAC_MUST_USE int ir_verify_together(const ir_module *m, const ir_verify_options *options, xlac_error *err);
/* verify_annotation.c: attributes that hold one of a few words hold one of these. */
XLAC_MUST_USE int ir_verify_words(const ir_op *op, xlac_error *err);
/* verify_alias.c: values of buffer type stand where they may and are written once. */
XLAC_MUST_USE int ir_verify_buffers(const ir_module *m, const ir_verify_options *options, xlac_error *err);
/* The same file: custom-calls to Pin, Unpin and CreateBuffer have the operand and result that these have. */
XLAC_MUST_USE int ir_verify_pins(const ir_op *op, xlac_error *err);
/* verify_annotation.c: the origin attribute has the op's tuple structure. */
XLAC_MUST_USE int ir_verify_origin(const ir_op *op, xlac_error *err);
/* verify_array.c: no implicit broadcast. */
XLAC_MUST_USE int ir_verify_elementwise(const ir_op *op, xlac_error *err);
/* verify_custom_call.c: output_to_operand_aliasing of custom-calls, fusions and async starts. `result` is the type that
 * the output indices are of. */
XLAC_MUST_USE int ir_verify_aliasing(const ir_op *op, const ir_type *result, const ir_verify_options *options,
                                     xlac_error *err);
/* verify_alias.c: a digest of (number, index path), to find repeats in linear time; path_start and path_step give it
 * piecewise. */
uint64_t ir_verify_path_key(int64_t number, const ir_ints *path);
static inline uint64_t ir_verify_path_start(int64_t number) {
  return (uint64_t)number * UINT64_C(0x9E3779B97F4A7C15) + 1;
}
static inline uint64_t ir_verify_path_step(uint64_t key, int64_t index) {
  return (key ^ (uint64_t)index) * UINT64_C(0xff51afd7ed558ccd) + 1;
}
/* verify_called.c: ops of a fused computation are all used, the computation has no other caller. */
XLAC_MUST_USE int ir_verify_fusions(const ir_module *m, xlac_error *err);

/* An error about op: what, expected, found. Returns the negative code. The message begins with the opcode. */
int ir_verify_fail(const ir_op *op, base_code code, xlac_error *err, const char *format, ...) BASE_PRINTF(4, 5);

#endif
