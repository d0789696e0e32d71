/* The maker of rules, the table of which op has which rule, and the pass that writes rules down. A rule function adds
 * factors and links (factor, dimension); maker_build then sorts the links by dimension, gives dimensions without a
 * factor one of size 1, and makes the attribute. */
#include "../../ir/stablehlo/stablehlo.h"
#include "../../passes/pass.h"
#include "rule.h"

/* One maker serves all ops of a run: its vectors keep their room.
 * stablehlo.dot of [i, k] and [k, j]: factors i, j and k of kinds pass, pass and reduction; links (0, 0, i), (0, 1,
 * k), (1, 0, k), (1, 1, j), (result 0, i), (result 1, j), as ([i, k], [k, j])->([i, j]) {i=..} reduction={k}. */
void shard_maker_init(shard_maker *b, ir_module *m, bool conservative) {
  memset(b, 0, sizeof *b);
  b->m = m;
  b->conservative = conservative;
  b->into = &m->arena;
  base_arena_init(&b->arena, m->alloc);
}

void shard_maker_free(shard_maker *b) {
  BASE_VEC_FREE(b->m->alloc, &b->factors);
  BASE_VEC_FREE(b->m->alloc, &b->links);
  BASE_VEC_FREE(b->m->alloc, &b->firsts);
  BASE_VEC_FREE(b->m->alloc, &b->used);
  base_arena_free(&b->arena);
}

uint32_t shard_rank(const ir_type *t) {
  return t->kind == IR_TYPE_TENSOR ? t->rank : 0;
}

/* Scalars and dimensions that are not there count as 1, so that rule functions need no checks of rank. */
int64_t shard_dim(const ir_type *t, int64_t dim) {
  return dim >= 0 && dim < (int64_t)shard_rank(t) ? t->dims[dim] : 1;
}

/* Operands, then results, in one numbering. */
const ir_type *shard_tensor_type(const shard_maker *b, uint32_t tensor) {
  uint32_t n = b->op->n_operands;
  assert(tensor < n + b->op->n_results);
  return tensor < n ? ir_operand_type(b->op, tensor) : b->op->types[tensor - n];
}

const int64_t *shard_ints(shard_maker *b, const char *key, uint32_t *n) {
  return ir_m_ints(ir_mattr_of(b->op, key), &b->arena, n);
}

const int64_t *shard_field_ints(shard_maker *b, const ir_mattr *a, const char *key, uint32_t *n) {
  return ir_m_ints(a ? ir_m_field(a, key) : NULL, &b->arena, n);
}

/* 0 where the field is not there, which is StableHLO's default for all dimension numbers that are read with this. */
int64_t shard_field_int(const ir_mattr *a, const char *key) {
  const ir_mattr *field = a ? ir_m_field(a, key) : NULL;
  return field && field->kind == IR_M_INTEGER ? field->v.i : 0;
}

/* Numbers the dimensions of all tensors through (slots), none with a factor yet. like: all tensors have this type. */
static void maker_slots(shard_maker *b, uint32_t n_tensors, const ir_type *like) {
  b->n_tensors = n_tensors;
  b->factors.n = b->links.n = b->firsts.n = b->used.n = 0;
  uint32_t slots = 0;
  for (uint32_t t = 0; t <= n_tensors; t++) {
    if (!BASE_VEC_PUSH(b->m->alloc, &b->firsts, slots)) b->failed = true;
    if (t < n_tensors) slots += shard_rank(like ? like : shard_tensor_type(b, t));
  }
  for (uint32_t i = 0; i < slots && !b->failed; i++)
    if (!BASE_VEC_PUSH(b->m->alloc, &b->used, 0)) b->failed = true;
}

/* The number is valid even if room has run out; `failed` says so in the end. */
uint32_t shard_new_factor(shard_maker *b, int64_t size, shard_kind kind, bool blocked) {
  shard_factor f = {size, (uint8_t)kind, blocked};
  if (!BASE_VEC_PUSH(b->m->alloc, &b->factors, f)) b->failed = true;
  return b->factors.n - 1;
}

/* Links are sorted into dimensions only when the rule is built. */
static void maker_link(shard_maker *b, uint32_t slot, uint32_t factor) {
  assert(slot < b->used.n);
  shard_link link = {slot, factor};
  if (!BASE_VEC_PUSH(b->m->alloc, &b->links, link)) b->failed = true;
  b->used.items[slot]++;
}

/* dim -1: the tensor has no such dimension. A factor of size 1 is left out of a dimension that has another factor
 * already, as Shardy does: it can't be sharded. */
void shard_map(shard_maker *b, uint32_t tensor, int64_t dim, uint32_t factor) {
  if (dim < 0 || b->failed) return;
  assert(tensor < b->n_tensors && factor < b->factors.n);
  uint32_t slot = b->firsts.items[tensor] + (uint32_t)dim;
  if (slot >= b->firsts.items[tensor + 1]) return;
  if (b->factors.items[factor].size == 1 && b->used.items[slot]) return;
  maker_link(b, slot, factor);
}

/* Tensors of a lower rank, such as the scalar predicate of a select, are left out. */
static void maker_range(shard_maker *b, uint32_t from, uint32_t to, int64_t dim, uint32_t factor) {
  for (uint32_t t = from; t < to && !b->failed; t++) {
    uint32_t first = b->firsts.items[t], end = b->firsts.items[t + 1];
    if ((uint64_t)first + (uint64_t)dim < end) maker_link(b, first + (uint32_t)dim, factor);
  }
}

void shard_all(shard_maker *b, int64_t dim, int64_t size, shard_kind kind, bool blocked) {
  maker_range(b, 0, b->n_tensors, dim, shard_new_factor(b, size, kind, blocked));
}

void shard_all_operands(shard_maker *b, int64_t dim, int64_t size, shard_kind kind) {
  maker_range(b, 0, b->op->n_operands, dim, shard_new_factor(b, size, kind, false));
}

void shard_all_results(shard_maker *b, int64_t dim, int64_t size, shard_kind kind) {
  maker_range(b, b->op->n_operands, b->n_tensors, dim, shard_new_factor(b, size, kind, false));
}

/* The commonest factor: a dimension of the first operand that is one of the result. */
void shard_one(shard_maker *b, int64_t in, int64_t out, int64_t size, shard_kind kind, bool blocked) {
  uint32_t f = shard_new_factor(b, size, kind, blocked);
  shard_map(b, 0, in, f);
  shard_map(b, b->op->n_operands, out, f);
}

/* The same for ops with a left and a right side. */
void shard_two(shard_maker *b, int64_t lhs, int64_t rhs, int64_t out, int64_t size, shard_kind kind) {
  uint32_t f = shard_new_factor(b, size, kind, false);
  shard_map(b, 0, lhs, f);
  shard_map(b, 1, rhs, f);
  shard_map(b, b->op->n_operands, out, f);
}

/* Every dimension has a factor in the end: those that got none have one of size 1 each. */
static void maker_fill(shard_maker *b) {
  uint32_t slots = b->used.n;
  for (uint32_t s = 0; s < slots && !b->failed; s++)
    if (b->used.items[s] == 0) maker_link(b, s, shard_new_factor(b, 1, SHARD_PASS, false));
}

/* The factors of a kind (or the blocked ones), ascending. */
static sdy_ints maker_of_kind(shard_maker *b, shard_kind kind, bool blocked) {
  sdy_ints list = {0, NULL};
  for (uint32_t i = 0; i < b->factors.n; i++)
    list.n += blocked ? b->factors.items[i].blocked : b->factors.items[i].kind == kind;
  if (list.n == 0) return list;
  int64_t *v = BASE_ARRAY(b->into, int64_t, list.n);
  if (!v) {
    b->failed = true;
    return (sdy_ints){0, NULL};
  }
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->factors.n; i++)
    if (blocked ? b->factors.items[i].blocked : b->factors.items[i].kind == kind) v[n++] = i;
  list.v = v;
  return list;
}

/* The links as lists by slot: a counting sort, which keeps their order. */
static const sdy_tensor_map *maker_maps(shard_maker *b) {
  uint32_t slots = b->used.n;
  sdy_tensor_map *maps = BASE_ARRAY(b->into, sdy_tensor_map, b->n_tensors ? b->n_tensors : 1);
  assert(b->firsts.n == b->n_tensors + 1);
  sdy_ints *dims = BASE_ARRAY(b->into, sdy_ints, slots ? slots : 1);
  int64_t *factors = BASE_ARRAY(b->into, int64_t, b->links.n ? b->links.n : 1);
  if (!maps || !dims || !factors) return NULL;
  uint32_t at = 0;
  for (uint32_t s = 0; s < slots; s++) {
    /* at: links of the slots before s. */
    dims[s] = (sdy_ints){0, factors + at};
    at += b->used.items[s];
  }
  for (uint32_t i = 0; i < b->links.n; i++) {
    sdy_ints *d = &dims[b->links.items[i].slot];
    factors[(d->v - factors) + d->n++] = b->links.items[i].factor;
  }
  for (uint32_t t = 0; t < b->n_tensors; t++) {
    uint32_t first = b->firsts.items[t];
    maps[t] = (sdy_tensor_map){b->firsts.items[t + 1] - first, dims + first};
  }
  return maps;
}

/* Puts the attribute together in b->into. The lists of factors by kind are ascending, as the attribute wants them. */
static int maker_build(shard_maker *b, uint32_t n_operands, const sdy_rule **out, xlac_error *err) {
  maker_fill(b);
  sdy_rule *rule = b->failed ? NULL : BASE_NEW(b->into, sdy_rule);
  const sdy_tensor_map *maps = rule ? maker_maps(b) : NULL;
  int64_t *sizes = maps ? BASE_ARRAY(b->into, int64_t, b->factors.n ? b->factors.n : 1) : NULL;
  if (!sizes) return base_oom(err, "a sharding rule");
  assert(n_operands <= b->n_tensors);
  for (uint32_t i = 0; i < b->factors.n; i++) sizes[i] = b->factors.items[i].size;
  *rule = (sdy_rule){.sizes = {b->factors.n, sizes},
                     .n_operands = n_operands,
                     .n_results = b->n_tensors - n_operands,
                     .operands = maps,
                     .results = maps + n_operands,
                     .reduction = maker_of_kind(b, SHARD_REDUCTION, false),
                     .need_replication = maker_of_kind(b, SHARD_REPLICATION, false),
                     .permutation = maker_of_kind(b, SHARD_PERMUTATION, false),
                     .blocked = maker_of_kind(b, SHARD_PASS, true)};
  if (b->failed) return base_oom(err, "a sharding rule");
  *out = rule;
  return 0;
}

extern shard_rule_fn *const shard_rule_table[IR_OP_COUNT];

/* The table first, then "elementwise" of the op table, for StableHLO's ops only: ops of CHLO and Shardy that are
 * elementwise need a row, since Shardy knows each by name. fn false: no rule, unless memory has run out. */
int shard_rule_make(shard_maker *b, const ir_op *op, const sdy_rule **out, xlac_error *err) {
  assert(op->opcode < IR_OP_COUNT);
  *out = NULL;
  shard_rule_fn *fn = shard_rule_table[op->opcode];
  if (!fn && ir_opcode_has(op->opcode, IR_ELEMENTWISE)) {
    const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
    if (info && strncmp(info->name, "stablehlo.", 10) == 0) fn = shard_rule_pointwise;
  }
  if (!fn || op->n_results == 0) return 0;
  b->op = op;
  b->failed = false;
  maker_slots(b, op->n_operands + op->n_results, NULL);
  if (b->failed) return base_oom(err, "a sharding rule");
  if (!fn(b)) return b->failed ? base_oom(err, "a sharding rule") : 0;
  return maker_build(b, op->n_operands, out, err);
}

/* n sources, one target, all of one type: what data flow edges and function results are. */
int shard_rule_identity(shard_maker *b, const ir_type *type, uint32_t n, const sdy_rule **out, xlac_error *err) {
  b->failed = false;
  maker_slots(b, n + 1, type);
  if (b->failed) return base_oom(err, "a sharding rule");
  for (uint32_t d = 0; d < shard_rank(type); d++) shard_all(b, d, type->dims[d], SHARD_PASS, false);
  return maker_build(b, n, out, err);
}

/* Which op has which rule. What is elementwise in the op table needs no row. */

extern shard_rule_fn *const shard_rule_table[IR_OP_COUNT];
shard_rule_fn *const shard_rule_table[IR_OP_COUNT] = {
    [IR_OP_ALL_GATHER] = shard_rule_all_gather,
    [IR_OP_ALL_REDUCE] = shard_rule_pointwise,
    [IR_OP_ALL_TO_ALL] = shard_rule_all_to_all,
    [IR_OP_BATCH_NORM_INFERENCE] = shard_rule_batch_norm_inference,
    [IR_OP_BITCAST_CONVERT] = shard_rule_bitcast_convert,
    [IR_OP_BROADCAST] = shard_rule_broadcast,
    [IR_OP_CHOLESKY] = shard_rule_cholesky,
    [IR_OP_CLAMP] = shard_rule_like_result,
    [IR_OP_COLLECTIVE_BROADCAST] = shard_rule_pointwise,
    [IR_OP_COLLECTIVE_PERMUTE] = shard_rule_pointwise,
    [IR_OP_CONCATENATE] = shard_rule_concatenate,
    [IR_OP_CONVOLUTION] = shard_rule_convolution,
    [IR_OP_CUSTOM_CALL] = shard_rule_custom_call,
    [IR_OP_DOT] = shard_rule_dot_general,
    [IR_OP_DYNAMIC_SLICE] = shard_rule_dynamic_slice,
    [IR_OP_DYNAMIC_UPDATE_SLICE] = shard_rule_dynamic_update_slice,
    [IR_OP_FFT] = shard_rule_fft,
    [IR_OP_GATHER] = shard_rule_gather,
    [IR_OP_PAD] = shard_rule_pad,
    [IR_OP_REDUCE] = shard_rule_reduce,
    [IR_OP_REDUCE_SCATTER] = shard_rule_reduce_scatter,
    [IR_OP_REDUCE_WINDOW] = shard_rule_reduce_window,
    [IR_OP_RESHAPE] = shard_rule_reshape,
    [IR_OP_REVERSE] = shard_rule_reverse,
    [IR_OP_RNG_BIT_GENERATOR] = shard_rule_rng_bit_generator,
    [IR_OP_SCATTER] = shard_rule_scatter,
    [IR_OP_SDY_SHARDING_CONSTRAINT] = shard_rule_pointwise,
    [IR_OP_SELECT] = shard_rule_like_result,
    [IR_OP_SELECT_AND_SCATTER] = shard_rule_select_and_scatter,
    [IR_OP_SLICE] = shard_rule_slice,
    [IR_OP_SORT] = shard_rule_sort,
    [IR_OP_STABLEHLO_DOT] = shard_rule_dot,
    [IR_OP_TRANSPOSE] = shard_rule_transpose,
    [IR_OP_TRIANGULAR_SOLVE] = shard_rule_triangular_solve,
};

/* Whether two types are tensors of one shape, whatever their element types. */
static bool table_same_shape(const ir_type *a, const ir_type *b) {
  if (a->kind != IR_TYPE_TENSOR || b->kind != IR_TYPE_TENSOR || a->rank != b->rank) return false;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dims[d] != b->dims[d]) return false;
  return true;
}

/* Wider than the column of the op table: for Shardy constraints, reshards and barriers count too, and a bitcast
 * between element types of one width. */
bool shard_is_elementwise(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_BITCAST_CONVERT:
      return table_same_shape(ir_operand_type(op, 0), op->type);
    case IR_OP_SDY_PROPAGATION_BARRIER:
    case IR_OP_SDY_SHARDING_CONSTRAINT:
    case IR_OP_SDY_RESHARD:
      return true;
    default:
      return ir_opcode_has(op->opcode, IR_ELEMENTWISE);
  }
}

/* sdy-populate-op-sharding-rules: every op with a rule says it. A rule on an op with dynamic dimensions is an error. */

opt_pass_fn shard_pass_rules;

/* Regions at module level, such as those of module attributes, are left alone. */
static bool rules_is_in_function(const ir_computation *c) {
  for (uint32_t depth = 0; c && c->owner && depth < 1 << 20; depth++) c = c->owner->parent;
  return c && c->kind == IR_FUNCTION;
}

/* A rule that an op has already, written by a user or an earlier run, stays. */
int shard_pass_rules(ir_module *m, const opt_args *args, xlac_error *err) {
  shard_maker maker;
  shard_maker_init(&maker, m, opt_get(args, "conservative-propagation"));
  int status = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (!rules_is_in_function(c)) continue;
    for (ir_op *op = c->first; op && status == 0; op = op->next) {
      if (ir_mattr_of(op, "sdy.sharding_rule")) continue;
      const sdy_rule *rule = NULL;
      status = shard_rule_make(&maker, op, &rule, err);
      if (rule && status == 0 && !ir_m_set(op, "sdy.sharding_rule", sdy_attr(m, SDY_RULE, rule)))
        status = base_oom(err, "a sharding rule");
    }
  }
  shard_maker_free(&maker);
  return status == 0 ? stablehlo_verify(m, err) : status;
}
