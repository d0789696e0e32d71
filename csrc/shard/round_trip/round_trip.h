/* Shardings on their way through HLO: as JAX sends programs to XLA, in frontend attributes and custom calls, and in
 * XLA's own words in mhlo.sharding. Names and meanings are those of XLA's passes. HLO has no dialects, so what sdy
 * says travels in three ways: attributes as text in mhlo.frontend_attributes (xla.sdy.sharding =
 * "#sdy.sharding<...>"), ops as custom calls (@Sharding, @xla.sdy.ShardingGroup, ...), and manual computations as
 * calls of functions between custom calls. The import passes read all of it back. */
#ifndef XLAC_SHARD_ROUND_TRIP_ROUND_TRIP_H
#define XLAC_SHARD_ROUND_TRIP_ROUND_TRIP_H

#include "../common/common.h"

/* --- shardy_attrs.c: the dictionary mhlo.frontend_attributes of an op, argument or module --- */
/* The string under `key`, or NULL. */
const base_istr *trip_front(const ir_mdict *d, const char *key);
/* op's, or the module's, with the string under `key` set (NULL: removed, and the dictionary with it when nothing is
 * left). false when out of memory, with nothing changed. */
XLAC_MUST_USE bool trip_front_set(ir_op *op, const char *key, const ir_mattr *value);
XLAC_MUST_USE bool trip_front_set_module(ir_module *m, const char *key, const ir_mattr *value);
/* An attribute as the string that MLIR prints for it; strings stay. NULL when out of memory. */
const ir_mattr *trip_words(ir_module *m, const ir_mattr *a);
/* Reads the attribute that the string under `key` spells; *out NULL where there is none. `op` is where errors are. */
XLAC_MUST_USE int trip_front_read(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key,
                                  const ir_mattr **out);
/* The same of an attribute of the dialect sdy; another one is an error. */
XLAC_MUST_USE int trip_front_read_sdy(opt_rewriter *rw, const ir_op *op, const ir_mdict *d, const char *key,
                                      sdy_kind kind, const void **out);
static inline bool trip_calls(const ir_op *op, const char *target) {
  return op->opcode == IR_OP_CUSTOM_CALL && strcmp(ir_m_get_str(op, "call_target_name"), target) == 0;
}
/* One of Python's callbacks. */
bool trip_is_callback(const ir_op *op);
/* A function that was a manual computation's body. */
bool trip_is_body(const base_istr *name);
/* A mesh op of that name, before `before` (NULL: at the end). false when out of memory. */
XLAC_MUST_USE bool trip_make_mesh(ir_module *m, const base_istr *name, const sdy_mesh *mesh, ir_computation *before);
/* A custom call in op's place: same operands and result types, nothing but the target. NULL when out of memory. */
ir_op *trip_make_custom_call(opt_rewriter *rw, const char *target, uint32_t n_results, const ir_type *const *types,
                             uint32_t n, const ir_value *operands);

/* --- hlo_sharding.c: XLA's tiles as axes --- */
/* Sizes above 1 multiply to at most 2^63, so there are at most 63 pieces of the tiles, and as many of the devices. */
enum { TRIP_MAX_AXES = 2 * 63 };
/* {devices=[2,2]<=[4]} is two axes of size 2, one for each tile dimension. */
typedef struct trip_tiles {
  uint32_t n; /* local axes, in the order of devices */
  struct {
    uint32_t dim, part, group; /* of which tile dimension, which part from the minor end, of which iota dimension */
    int64_t size;
  } v[TRIP_MAX_AXES];
} trip_tiles;
/* A tiled sharding's axes. false: its devices are in no order that axes could have. */
XLAC_MUST_USE bool trip_analyze(const ir_sharding *s, trip_tiles *out);
/* The finest cut that both lists of sizes have; 0: none. `out` has TRIP_MAX_AXES. */
uint32_t trip_common_cut(uint32_t n, const int64_t *a, uint32_t k, const int64_t *b, int64_t *out);

/* --- hlo_sharding.c: as XLA's text --- */
/* XLA's text for a sharding within the manual axes (NULL: none). NULL when out of memory. */
const ir_mattr *trip_to_hlo(ir_module *m, const sdy_sharding *s, const sdy_names *manual);
const ir_mattr *trip_list_to_hlo(ir_module *m, const sdy_shardings *list, const sdy_names *manual);

/* --- import/call_graph.c --- */
/* Copies what is called several times so that every call has a function of its own; `bodies`: of manual computations
 * only, with all that they call. */
XLAC_MUST_USE int shard_flatten_calls(ir_module *m, bool bodies, xlac_error *err);

#endif
