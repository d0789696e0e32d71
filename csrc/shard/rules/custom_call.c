/* Rules of custom calls, by target. Which targets have a rule, and which, is Shardy's list
 * (op_sharding_rule_registry.cc); a target that is not in it has none, and nothing is propagated through the call.
 * Operands are tensors 0, 1, ..., results follow. Targets are called with varying numbers of operands, so each rule
 * checks them before it reads. */
#include "rule.h"

/* Batch dimensions in front are alike in all tensors; false: there are not two more. */
static bool custom_batch(shard_maker *b, const ir_type *t, uint32_t n_operands, uint32_t n_results) {
  if (b->op->n_operands != n_operands || b->op->n_results != n_results || shard_rank(t) < 2) return false;
  for (uint32_t d = 0; d + 2 < t->rank; d++) shard_all(b, d, t->dims[d], SHARD_PASS, false);
  return true;
}

/* One factor on up to three tensors. */
static void custom_map(shard_maker *b, int64_t size, shard_kind kind, int64_t d0, int64_t d1, int64_t d2) {
  assert(b->n_tensors == 3);
  uint32_t f = shard_new_factor(b, size, kind, false);
  shard_map(b, 0, d0, f);
  shard_map(b, 1, d1, f);
  shard_map(b, 2, d2, f);
}

/* Eigh: v, w = eigh(a). Rows and columns of a pass on to the vectors, the columns to the eigenvalues too. */
static bool custom_eigh(shard_maker *b) {
  if (b->op->n_operands != 1) return false;
  const ir_type *t = shard_tensor_type(b, 0);
  if (!custom_batch(b, t, 1, 2)) return false;
  int64_t x = (int64_t)t->rank - 2, y = x + 1;
  custom_map(b, t->dims[x], SHARD_PASS, x, x, SHARD_NO_DIM);
  custom_map(b, t->dims[y], SHARD_PASS, y, y, x);
  return true;
}

/* Qr: (packed, taus) = qr(a). The factorisation needs whole matrices; only batch dimensions pass through. */
static bool custom_qr(shard_maker *b) {
  if (b->op->n_operands != 1) return false;
  const ir_type *t = shard_tensor_type(b, 0);
  if (!custom_batch(b, t, 1, 2)) return false;
  int64_t x = (int64_t)t->rank - 2, y = x + 1;
  custom_map(b, t->dims[x], SHARD_REPLICATION, x, x, SHARD_NO_DIM);
  custom_map(b, t->dims[y], SHARD_REPLICATION, y, y, SHARD_NO_DIM);
  custom_map(b, shard_dim(shard_result_type(b, 1), x), SHARD_REPLICATION, SHARD_NO_DIM, SHARD_NO_DIM, x);
  return true;
}

/* ProductOfElementaryHouseholderReflectors(a, taus): whole matrices again. */
static bool custom_householder(shard_maker *b) {
  if (b->op->n_operands != 2) return false;
  const ir_type *t = shard_tensor_type(b, 0);
  if (!custom_batch(b, t, 2, 1)) return false;
  int64_t x = (int64_t)t->rank - 2, y = x + 1;
  custom_map(b, t->dims[x], SHARD_REPLICATION, x, SHARD_NO_DIM, x);
  custom_map(b, t->dims[y], SHARD_REPLICATION, y, SHARD_NO_DIM, y);
  custom_map(b, shard_dim(shard_tensor_type(b, 1), x), SHARD_REPLICATION, SHARD_NO_DIM, x, SHARD_NO_DIM);
  return true;
}

/* mhlo.topk: values and indices have the operand's dimensions but the last, along which a whole row is needed. */
static bool custom_top_k(shard_maker *b) {
  if (b->op->n_operands != 1 || b->op->n_results != 2) return false;
  const ir_type *in = shard_tensor_type(b, 0), *out = shard_result_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(in); d++) {
    bool same = in->dims[d] == shard_dim(out, d);
    shard_all(b, d, in->dims[d], same ? SHARD_PASS : SHARD_REPLICATION, !same);
  }
  return true;
}

/* ApproxTopK and PartialReduce: (operand, iota, initial value, initial index) -> (values, indices), tensors 0 to 5.
 * The reduced dimension has one factor on the inputs and another one, which must be whole, on the outputs. */
static bool custom_approximate(shard_maker *b) {
  if (b->op->n_operands != 4 || b->op->n_results != 2) return false;
  const ir_type *in = shard_tensor_type(b, 0), *out = shard_result_type(b, 0);
  for (uint32_t d = 0; d < shard_rank(in); d++) {
    if (in->dims[d] == shard_dim(out, d)) {
      shard_all(b, d, in->dims[d], SHARD_PASS, false);
      continue;
    }
    uint32_t f = shard_new_factor(b, in->dims[d], SHARD_PASS, false);
    shard_map(b, 0, d, f);
    shard_map(b, 1, d, f);
    f = shard_new_factor(b, shard_dim(out, d), SHARD_REPLICATION, true);
    shard_map(b, 4, d, f);
    shard_map(b, 5, d, f);
  }
  return true;
}

/* X64Combine puts two u32 halves together elementwise. The state of a random bit generator is one such value: it must
 * be replicated, and so must its halves. */
static bool custom_combine(shard_maker *b) {
  bool state = false;
  IR_FOR_USES(use, b->op) state = state || use->user->opcode == IR_OP_RNG_BIT_GENERATOR;
  if (!state) return shard_rule_pointwise(b);
  shard_all(b, 0, shard_dim(shard_result_type(b, 0), 0), SHARD_REPLICATION, true);
  return true;
}

/* XLA's partitioner calls a handler with a part of the batches where the program says how many of the first dimensions
 * are batches', alike in all tensors. Of what follows it needs the whole. */
static bool custom_batches(shard_maker *b) {
  const ir_mattr *said = ir_mattr_of(b->op, "mhlo.frontend_attributes");
  const ir_mattr *text = said && said->kind == IR_M_DICT ? ir_m_field(said, "num_batch_dims") : NULL;
  char digit = text && text->kind == IR_M_STRING && text->str->n == 1 ? text->str->s[0] : '0';
  uint32_t batches = digit >= '0' && digit <= '9' ? (uint32_t)(digit - '0') : 0;
  if (batches == 0) return false;
  for (uint32_t t = 0; t < b->n_tensors; t++)
    for (uint32_t d = 0; d < batches; d++)
      if (shard_rank(shard_tensor_type(b, t)) < batches ||
          shard_tensor_type(b, t)->dims[d] != shard_tensor_type(b, 0)->dims[d])
        return false;
  for (uint32_t d = 0; d < batches; d++) shard_all(b, d, shard_tensor_type(b, 0)->dims[d], SHARD_PASS, false);
  for (uint32_t t = 0; t < b->n_tensors; t++)
    for (uint32_t d = batches; d < shard_rank(shard_tensor_type(b, t)); d++)
      shard_map(b, t, d, shard_new_factor(b, shard_tensor_type(b, t)->dims[d], SHARD_REPLICATION, false));
  return true;
}

static const struct {
  const char *target;
  shard_rule_fn *fn;
  /* Sorted by target, for people; the search is linear, since programs have few custom calls. */
} custom_rules[] = {
    {"ApproxTopK", custom_approximate},
    {"Cholesky", shard_rule_pointwise},
    {"CompactWyHelper", shard_rule_pointwise},
    {"Eigh", custom_eigh},
    {"InspectSharding", shard_rule_pointwise},
    {"InvertDiagBlocksLowerTriangular", shard_rule_pointwise},
    {"InvertDiagBlocksUpperTriangular", shard_rule_pointwise},
    {"LayoutConstraint", shard_rule_pointwise},
    {"MoveToDevice", shard_rule_pointwise},
    {"MoveToHost", shard_rule_pointwise},
    {"PartialReduce", custom_approximate},
    {"ProductOfElementaryHouseholderReflectors", custom_householder},
    {"Qr", custom_qr},
    {"QrDecompositionBlock", custom_qr},
    {"X64Combine", custom_combine},
    {"X64SplitHigh", shard_rule_pointwise},
    {"X64SplitLow", shard_rule_pointwise},
    {"_SPMDInternalOp_MultiPad", shard_rule_pointwise},
    {"_SPMDInternalOp_MultiRotate", shard_rule_pointwise},
    {"_SPMDInternalOp_MultiSlice", shard_rule_pointwise},
    {"_SPMDInternalOp_RotateRight", shard_rule_pointwise},
    {"_SPMDInternalOp_Wrap", shard_rule_pointwise},
    {"annotate_device_placement", shard_rule_pointwise},
    {"mhlo.erf", shard_rule_pointwise},
    {"mhlo.topk", custom_top_k},
    {"xla.megascale.provide_metadata", shard_rule_pointwise},
};

/* Targets that are not known, and don't speak of batches, have no rule and stop propagation. */
bool shard_rule_custom_call(shard_maker *b) {
  const char *target = ir_m_get_str(b->op, "call_target_name");
  for (size_t i = 0; i < sizeof custom_rules / sizeof *custom_rules; i++)
    if (strcmp(custom_rules[i].target, target) == 0) return custom_rules[i].fn(b);
  return custom_batches(b);
}
