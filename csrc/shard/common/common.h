/* What the passes of shard share: walks over shardings and ops, the call graph, copies of functions, names of
 * symbols, uses of values, reshapes of shards. Functions return 0 or a status, or bool (false: out of memory); what
 * they make is the module's unless an arena is passed. */
#ifndef XLAC_SHARD_COMMON_COMMON_H
#define XLAC_SHARD_COMMON_COMMON_H

#include "../../ir/sdy/sdy.h"
#include "../../passes/rewrite/symbols.h"

/* --- every sharding of a module, one after the other --- */
/* What becomes of a sharding: itself, another one, or NULL when out of memory. */
typedef const sdy_sharding *shc_map_fn(void *ctx, const sdy_sharding *s);
/* In the order of the text: arguments of a function, its results, its ops with their regions. A sharding that several
 * have is asked for once. */
XLAC_MUST_USE int shc_map(ir_module *m, shc_map_fn *fn, void *ctx, xlac_error *err);

/* --- functions: common_funcs.c --- */
/* Callees after callers (`callers_first`) or before them, as MLIR orders the nodes of its call graph. In the arena;
 * NULL when out of memory. Declarations are left out. */
ir_computation **shc_functions(const ir_module *m, const opt_symbols *symbols, bool callers_first, base_arena *arena,
                               uint32_t *n);
/* @main, or the only function; NULL: neither. */
ir_computation *shc_main(const ir_module *m, bool only);
/* The error for a module that has no such function, at its first one. */
int shc_no_main(const ir_module *m, xlac_error *err);
/* Removes all mesh ops. */
void shc_drop_meshes(ir_module *m);
/* A copy of a function, at the end of the module, with another name; its calls stay. NULL when out of memory. */
ir_computation *shc_copy_function(opt_rewriter *rw, const ir_computation *f, const base_istr *name);
/* f's body becomes op's only region: f is a function no more. false when out of memory. */
XLAC_MUST_USE bool shc_take_body(ir_op *op, ir_computation *f);
/* op's only region becomes a function of that name at the end of the module, without attributes. */
ir_computation *shc_give_body(ir_op *op, const base_istr *name);
/* A function's attribute, changed (NULL: removed). false when out of memory. */
XLAC_MUST_USE bool shc_set_function(ir_computation *f, const char *key, const ir_mattr *value);
/* A mesh op of that name, before the others or before `before`. NULL when out of memory. */
ir_computation *shc_make_mesh(ir_module *m, const base_istr *name, const sdy_mesh *mesh, ir_computation *before);
/* Names that symbols do not have yet: stem, else stem_0, stem_1, ... counting on. */
typedef struct shc_names {
  ir_module *m;
  base_map taken; /* interned names */
  uint32_t next;
} shc_names;
XLAC_MUST_USE bool shc_names_init(shc_names *s, ir_module *m);
void shc_names_free(shc_names *s);
const base_istr *shc_fresh(shc_names *s, const char *stem, size_t n);
/* Shardings of a function's arguments or results; those that have none are open, on the mesh of the first that has one
 * which is not maximal. *out NULL where no such is. false when out of memory. */
XLAC_MUST_USE bool shc_argument_shardings(const ir_computation *f, const sdy_shardings **out);
XLAC_MUST_USE bool shc_result_shardings(const ir_computation *f, const sdy_shardings **out);
/* "sdy.original_func_name", else its own name. */
const base_istr *shc_original_name(const ir_computation *f);

/* --- values: common_values.c --- */
/* Uses of op's results become uses of values, but those by values' own ops. */
void shc_replace_but_own(opt_rewriter *rw, ir_op *op, const ir_value *values);
/* Uses of one value, but those by `except` (may be NULL). */
void shc_replace_value(opt_rewriter *rw, ir_value from, ir_value to, const ir_op *except);
/* New ops go right after the op that gives v; or, of an argument, at the start of its region. */
void shc_at_value(opt_rewriter *rw, ir_value v);
/* A tensor without dynamic dimensions. */
static inline bool shc_is_static(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic;
}
/* How often a value is used, by regions that return it too; no more than `most`. */
uint32_t shc_count_uses(const opt_rewriter *rw, ir_value v, uint32_t most);
/* Ops in the order of the text, with those of their regions: calls fn for each. `after`: inner ones first. Stops at a
 * negative status; SHC_SKIP leaves out the op's regions. fn may remove the op it is called with (then SHC_SKIP), and
 * add others. */
enum { SHC_SKIP = 1 };
typedef int shc_op_fn(void *ctx, ir_op *op);
XLAC_MUST_USE int shc_walk(ir_computation *c, bool after, shc_op_fn *fn, void *ctx);
/* Of all functions; those that fn adds at the end of the module too. */
XLAC_MUST_USE int shc_walk_module(ir_module *m, bool after, shc_op_fn *fn, void *ctx);
/* Whether the module has such an op anywhere. */
bool shc_has(const ir_module *m, ir_opcode opcode);
/* --- reshapes: common_reshape.c --- */
/* Whether devices that each reshape their shard have the shards of the whole reshape. The shardings divide. */
bool shc_reshape_is_local(base_arena *arena, const sdy_mesh *mesh, uint32_t rank_in, const int64_t *in,
                          const sdy_sharding *s_in, uint32_t rank_out, const int64_t *out, const sdy_sharding *s_out);
/* Whether each of so many shards of an rng_bit_generator's numbers, cut along dim alone, is what the same generator
 * makes from a later state on. local/draw.c */
bool shc_draws_alone(const ir_op *op, uint32_t dim, int64_t shards);
/* Whether a reshape of static shapes keeps every element in its place when dimensions are padded at their ends. */
bool shc_reshape_keeps(const ir_type *in, const int64_t *padded_in, const ir_type *out, const int64_t *padded_out);
/* --- verification --- */
/* Verifies the module again, after passes that can invalidate what a user wrote in attributes. */
XLAC_MUST_USE int shc_verify(ir_module *m, xlac_error *err);
/* The same where the program has ops that must fit the shardings of their operands: collectives of Shardy, manual
 * computations. */
XLAC_MUST_USE int shc_verify_fitting(ir_module *m, xlac_error *err);

#endif
