/* Op sharding rules: which dimensions of an op's operands and results are split together. A rule gives every
 * dimension a list of factors, major to minor; dimensions with a factor in common are sharded alike along it. Source:
 * Shardy's definition of the attribute and its table of rules (2026-06); reference: docs/design/sharding.md. For
 * example, a dot_general of 8x32 by 32x16 has the rule ([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}: i
 * and j are pass-through factors, and sharding k leaves partial sums. A reshape 8x4 -> 32 has ([i, j])->([ij]) {i=8,
 * j=4}. A rule function describes one op to a shard_maker, factor by factor in the order that Shardy adds them: the
 * order numbers the factors, so it is visible in printed rules and in ties between factors. */
#ifndef XLAC_SHARD_RULES_RULE_H
#define XLAC_SHARD_RULES_RULE_H

#include "../../ir/sdy/sdy.h"

/* What sharding a factor costs: Shardy's FactorType. Propagation asks for it by level, explicit reshards by
 * preference. */
typedef enum shard_kind {
  SHARD_PASS,        /* no communication when all tensors are sharded alike */
  SHARD_REDUCTION,   /* sharded: the result needs a sum over the axes */
  SHARD_REPLICATION, /* must be whole on every device */
  SHARD_PERMUTATION  /* sharded: neighbours must exchange data */
} shard_kind;

typedef struct shard_factor {
  int64_t size;
  uint8_t kind; /* shard_kind */
  bool blocked; /* no propagation along it */
} shard_factor;
/* One factor on one dimension of one tensor. */
typedef struct shard_link {
  uint32_t slot; /* a dimension of a tensor: firsts[tensor] + dim */
  uint32_t factor;
} shard_link;
BASE_VEC(shard_factors, shard_factor);
BASE_VEC(shard_links, shard_link);
BASE_VEC(shard_counts, uint32_t);

/* Makes rules one after the other; its scratch memory is used again. Tensors are numbered operands first.
 * Errors are sticky: once memory has run out `failed` is set and all that follows does nothing, so a rule function
 * checks nothing. One maker serves a whole module; each rule begins it afresh. */
typedef struct shard_maker {
  ir_module *m;
  bool conservative; /* leave out what could give shards that do not divide */
  bool failed;       /* out of memory */
  base_arena arena;  /* for lists of an op's attributes */
  base_arena *into;  /* where rules are made: the module's arena unless set otherwise */
  const ir_op *op;
  uint32_t n_tensors;
  shard_factors factors;
  shard_links links;
  shard_counts firsts; /* of each tensor's slots; one more at the end */
  shard_counts used;   /* factors of each slot so far */
} shard_maker;

void shard_maker_init(shard_maker *b, ir_module *m, bool conservative);
void shard_maker_free(shard_maker *b);
/* The rule of `op` as the table has it, ignoring what the op carries. *out is NULL where the op has none: nothing is
 * propagated through it. */
XLAC_MUST_USE int shard_rule_make(shard_maker *b, const ir_op *op, const sdy_rule **out, xlac_error *err);
/* The rule of n operands and one result of rank dimensions that are all alike. */
XLAC_MUST_USE int shard_rule_identity(shard_maker *b, const ir_type *type, uint32_t n, const sdy_rule **out,
                                      xlac_error *err);
/* Element by element, as far as priorities and ties go: also constraints, reshards, barriers, bitcasts of one width. */
bool shard_is_elementwise(const ir_op *op);

/* --- for the rules themselves: rule.c --- */
/* In place of a dimension: the tensor does not have the factor. */
enum { SHARD_NO_DIM = -1 };
/* A new factor, on no dimension yet; its index. */
uint32_t shard_new_factor(shard_maker *b, int64_t size, shard_kind kind, bool blocked);
/* Puts a factor on a dimension of a tensor, minor to those there. Nothing where dim is SHARD_NO_DIM, or for a factor of
 * size 1 on a dimension that has one. */
void shard_map(shard_maker *b, uint32_t tensor, int64_t dim, uint32_t factor);
/* A factor on dimension `dim` of all tensors that are not scalars. */
void shard_all(shard_maker *b, int64_t dim, int64_t size, shard_kind kind, bool blocked);
/* The same of all operands, or of all results. */
void shard_all_operands(shard_maker *b, int64_t dim, int64_t size, shard_kind kind);
void shard_all_results(shard_maker *b, int64_t dim, int64_t size, shard_kind kind);
/* Of an op with one operand, or two, and one result. */
void shard_one(shard_maker *b, int64_t in, int64_t out, int64_t size, shard_kind kind, bool blocked);
void shard_two(shard_maker *b, int64_t lhs, int64_t rhs, int64_t out, int64_t size, shard_kind kind);
/* The type of operand `tensor`, or of result tensor - n_operands. */
const ir_type *shard_tensor_type(const shard_maker *b, uint32_t tensor);
static inline const ir_type *shard_result_type(const shard_maker *b, uint32_t i) {
  return b->op->types[i];
}
int64_t shard_dim(const ir_type *t, int64_t dim); /* 1 where there is no such dimension */
uint32_t shard_rank(const ir_type *t);            /* 0 of what is not a tensor */
/* An attribute's integers; a struct attribute's field's. */
const int64_t *shard_ints(shard_maker *b, const char *key, uint32_t *n);
const int64_t *shard_field_ints(shard_maker *b, const ir_mattr *a, const char *key, uint32_t *n);
int64_t shard_field_int(const ir_mattr *a, const char *key);

/* Each fills the maker with its op's factors; false: the op has no rule. */
typedef bool shard_rule_fn(shard_maker *b);
/* Rule functions are in rules/, by what ops have in common: simple.c, products.c, gather.c, custom_call.c. */
shard_rule_fn shard_rule_pointwise, shard_rule_all_gather, shard_rule_all_to_all, shard_rule_batch_norm_inference,
    shard_rule_bitcast_convert, shard_rule_broadcast, shard_rule_cholesky, shard_rule_concatenate,
    shard_rule_convolution, shard_rule_custom_call, shard_rule_dot, shard_rule_dot_general, shard_rule_dynamic_slice,
    shard_rule_dynamic_update_slice, shard_rule_fft, shard_rule_gather, shard_rule_like_result, shard_rule_pad,
    shard_rule_reduce, shard_rule_reduce_scatter, shard_rule_reduce_window, shard_rule_reshape, shard_rule_reverse,
    shard_rule_rng_bit_generator, shard_rule_scatter, shard_rule_select_and_scatter, shard_rule_slice, shard_rule_sort,
    shard_rule_transpose, shard_rule_triangular_solve;
/* The op in a scatter's body that combines old and new, the same for all its inputs; IR_OP_INVALID where it is not one
 * that an all-reduce can do. */
ir_opcode shard_scatter_reduction(const ir_op *scatter);

#endif
