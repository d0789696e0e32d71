/* stablehlo-legalize-deprecated-ops: ops that StableHLO wants to lose become those that replace them.
 * Requires: nothing. Preserves: all other ops, and einsums whose equations are not understood. map and rng, which
 * nothing replaces, are errors unless fail-on-unused is off. */
#include "legalize_deprecated_ops.h"

/* Sizes that come before x's own, as the attribute says, and those. */
static ir_value deprecated_extents(opt_rewriter *rw, const ir_op *op, ir_value x) {
  uint32_t n, rank = opt_type(x)->rank;
  ir_value sizes[IR_MAX_RANK];
  const int64_t *more = ir_m_ints(ir_mattr_of(op, "broadcast_sizes"), &rw->arena, &n);
  if (!more || n + rank != op->type->rank) return (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) {
    if (more[i] > INT32_MAX) return (ir_value){NULL, 0};
    sizes[i] = opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), more[i]);
  }
  for (uint32_t d = 0; d < rank; d++) sizes[n + d] = opt_extent(rw, x, d);
  return opt_join_extents(rw, n + rank, sizes);
}

static int deprecated_broadcast(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value x = opt_operand(op, 0);
  const ir_type *from = opt_type(x), *to = op->type;
  int64_t dims[IR_MAX_RANK];
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->rank > to->rank) return 0;
  for (uint32_t d = 0; d < from->rank; d++) dims[d] = (int64_t)(to->rank - from->rank + d);
  ir_value extents = {NULL, 0};
  bool known = opt_is_static(to) || opt_is_bounded(to);
  if (!known) extents = deprecated_extents(rw, op, x);
  if (!known && !extents.op) return 0;
  ir_value v = known ? opt_broadcast_in_dim(rw, x, to, dims) : opt_dynamic_broadcast(rw, x, extents, to, dims);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

static int deprecated_token(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value v = opt_make(rw, IR_OP_AFTER_ALL, op->type, 0, NULL);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

const ir_mattr *opt_dot_dims(opt_rewriter *rw, uint32_t n_batch, const int64_t *lhs_batch, const int64_t *rhs_batch,
                             uint32_t n_contract, const int64_t *lhs_contract, const int64_t *rhs_contract) {
  const struct {
    const char *name;
    uint32_t n;
    const int64_t *v;
  } lists[] = {{"lhs_batching_dimensions", n_batch, lhs_batch},
               {"rhs_batching_dimensions", n_batch, rhs_batch},
               {"lhs_contracting_dimensions", n_contract, lhs_contract},
               {"rhs_contracting_dimensions", n_contract, rhs_contract}};
  ir_mentry fields[4];
  for (int i = 0; i < 4; i++) {
    fields[i].key = ir_intern(rw->m, lists[i].name, strlen(lists[i].name));
    fields[i].value = ir_m_i64s(rw->m, lists[i].n, lists[i].v);
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(rw->m, "stablehlo", "dot", 4, fields);
}

/* dot_general is stricter about what it multiplies by (its C14, C15 and C16): zero points are zero, and what is
 * contracted has one scale. */
static bool deprecated_dot_fits(const ir_type *rhs) {
  const ir_quant *q = rhs->quant;
  if (!q) return true;
  for (uint32_t i = 0; i < q->n; i++)
    if (q->zero_points[i] != 0) return false;
  return q->axis == -1 || q->axis > 0;
}

static int deprecated_dot(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value both[] = {opt_operand(op, 0), opt_operand(op, 1)};
  const ir_type *lhs = opt_type(both[0]);
  if (!ir_is_tensor(lhs) || lhs->rank == 0 || !deprecated_dot_fits(opt_type(both[1]))) return 0;
  int64_t last = (int64_t)lhs->rank - 1, first = 0;
  ir_value v = opt_make(rw, IR_OP_DOT, op->type, 2, both);
  opt_set(rw, v, "dot_dimension_numbers", opt_dot_dims(rw, 0, NULL, NULL, 1, &last, &first));
  const ir_mattr *precision = ir_mattr_of(op, "precision_config");
  if (precision) opt_set(rw, v, "precision_config", precision);
  if (v.op) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

/* An op that no table has any more, and so is an unregistered one: an all_reduce that adds. */
static int deprecated_cross_replica_sum(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_mattr *groups = ir_mattr_of(op, "replica_groups");
  if (strcmp(op->u.name->s, "stablehlo.cross-replica-sum") != 0 || !groups) return 0;
  if (op->n_operands != 1 || op->n_results != 1 || !ir_is_tensor(op->type)) return 0;
  ir_value x = opt_operand(op, 0);
  ir_op *reduce = opt_make_n(rw, IR_OP_ALL_REDUCE, 1, op->types, 1, &x, 1);
  ir_value v = {reduce, 0};
  opt_set(rw, v, "replica_groups", groups);
  if (reduce) opt_make_reducer(rw, reduce, IR_OP_ADD, opt_tensor(rw, (base_dtype)op->type->dtype, 0, NULL));
  if (!rw->failed) opt_replace_one(rw, op, v);
  *changed = true;
  return 0;
}

static int deprecated_check(const opt_rewriter *rw, bool fail_on_unused) {
  IR_FOR_COMPUTATIONS(c, rw->m) {
    IR_FOR_OPS(op, c) {
      bool unused = fail_on_unused && (op->opcode == IR_OP_MAP || op->opcode == IR_OP_RNG);
      bool left = op->opcode == IR_OP_STABLEHLO_BROADCAST || op->opcode == IR_OP_STABLEHLO_DOT ||
                  op->opcode == IR_OP_UNARY_EINSUM;
      if (!unused && !left) continue;
      return opt_rewrite_fail(rw, op, XLAC_E_LEGALIZE,
                              "failed to legalize operation '%s' that was explicitly marked illegal",
                              ir_opcode_info(op->opcode)->mlir->name);
    }
  }
  return 0;
}

int opt_legalize_deprecated(ir_module *m, bool fail_on_unused, xlac_error *err) {
  static const opt_pattern patterns[] = {{IR_OP_STABLEHLO_BROADCAST, deprecated_broadcast},
                                         {IR_OP_CREATE_TOKEN, deprecated_token},
                                         {IR_OP_STABLEHLO_DOT, deprecated_dot},
                                         {IR_OP_EINSUM, opt_einsum},
                                         {IR_OP_UNARY_EINSUM, opt_einsum},
                                         {IR_OP_TORCH_INDEX_SELECT, opt_torch_index_select},
                                         {IR_OP_UNREGISTERED, deprecated_cross_replica_sum}};
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, sizeof patterns / sizeof patterns[0], patterns);
  if (status == 0) status = deprecated_check(&rw, fail_on_unused);
  opt_rewriter_free(&rw);
  return status;
}

int opt_deprecated(ir_module *m, const opt_args *args, xlac_error *err) {
  return opt_legalize_deprecated(m, opt_get(args, "fail-on-unused") != 0, err);
}
