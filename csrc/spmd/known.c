/* Before passes that go by rules: ops that Shardy's passes know nothing of become ones that they know, or get a rule.
 *
 *   stablehlo.if     becomes a stablehlo.case, whose branches are data flow: what they return is resharded
 *   CHLO's functions of elements    pass each dimension through
 *   chlo.top_k       passes all dimensions through but the last, which it needs whole */
#include "../passes/rewrite/rewrite.h"
#include "../shard/common/common.h"
#include "../shard/rules/rule.h"
#include "inside.h"

typedef struct known_pass {
  opt_rewriter rw;
  shard_maker maker;
} known_pass;

/* Branch 0 where the predicate holds. */
static void known_if(known_pass *x, ir_op *op) {
  opt_rewriter *rw = &x->rw;
  opt_at(rw, op);
  ir_value number = opt_convert(rw, opt_unary(rw, IR_OP_NOT, opt_operand(op, 0)), XLAC_S32);
  if (rw->failed) return;
  ir_set_operand(op, 0, number);
  ir_set_opcode(op, IR_OP_CONDITIONAL);
}

static bool known_set(known_pass *x, ir_op *op, const sdy_rule *rule) {
  const ir_mattr *a = rule ? sdy_attr(x->rw.m, SDY_RULE, rule) : NULL;
  return a && ir_m_set(op, "sdy.sharding_rule", a);
}

/* All tensors of one shape. */
static bool known_is_even(const ir_op *op) {
  const ir_type *t = op->type;
  bool same = op->n_results == 1 && shc_is_static(t) && op->n_operands > 0;
  for (uint32_t i = 0; i < op->n_operands && same; i++) {
    const ir_type *in = opt_type(opt_operand(op, i));
    same = shc_is_static(in) && in->rank == t->rank;
    for (uint32_t d = 0; same && d < t->rank; d++) same = in->dims[d] == t->dims[d];
  }
  return same;
}

static int known_pointwise(known_pass *x, ir_op *op) {
  const sdy_rule *rule = NULL;
  if (!known_is_even(op)) return 0;
  TRY(shard_rule_identity(&x->maker, op->type, op->n_operands, &rule, x->rw.err));
  return known_set(x, op, rule) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* Factor d is dimension d of all three, but that the last one has two: of what is looked through, and of what is found.
 */
static int known_top_k(known_pass *x, ir_op *op) {
  const ir_type *in = opt_type(opt_operand(op, 0));
  uint32_t rank = in->rank;
  if (op->n_operands != 1 || op->n_results != 2 || !shc_is_static(in) || rank == 0) return 0;
  base_arena *arena = &x->rw.m->arena;
  int64_t *numbers = BASE_ARRAY(arena, int64_t, (size_t)rank + 1),
          *sizes = BASE_ARRAY(arena, int64_t, (size_t)rank + 1);
  sdy_ints *dims = BASE_ARRAY(arena, sdy_ints, 2 * (size_t)rank);
  sdy_tensor_map *maps = BASE_ARRAY(arena, sdy_tensor_map, 3);
  sdy_rule *rule = BASE_NEW(arena, sdy_rule);
  if (!numbers || !sizes || !dims || !maps || !rule) return -XLAC_E_OUT_OF_MEMORY;
  for (uint32_t d = 0; d <= rank; d++) {
    numbers[d] = d;
    sizes[d] = d < rank ? in->dims[d] : op->type->dims[rank - 1];
  }
  for (uint32_t d = 0; d < rank; d++) {
    dims[d] = (sdy_ints){1, &numbers[d]};
    dims[rank + d] = (sdy_ints){1, &numbers[d + 1 == rank ? rank : d]};
  }
  maps[0] = (sdy_tensor_map){rank, dims};
  maps[1] = maps[2] = (sdy_tensor_map){rank, dims + rank};
  *rule = (sdy_rule){.sizes = {rank + 1, sizes},
                     .n_operands = 1,
                     .n_results = 2,
                     .operands = maps,
                     .results = maps + 1,
                     .need_replication = {2, &numbers[rank - 1]}};
  return known_set(x, op, rule) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

static int known_op(void *ctx, ir_op *op) {
  known_pass *x = ctx;
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  bool chlo = info && strncmp(info->name, "chlo.", 5) == 0;
  if (op->opcode == IR_OP_IF) known_if(x, op);
  if (x->rw.failed) return -XLAC_E_OUT_OF_MEMORY;
  if (!chlo || ir_mattr_of(op, "sdy.sharding_rule")) return 0;
  if (op->opcode == IR_OP_TOPK) return known_top_k(x, op);
  return ir_opcode_has(op->opcode, IR_ELEMENTWISE) ? known_pointwise(x, op) : 0;
}

int spmd_make_known(ir_module *m, xlac_error *err) {
  known_pass x;
  assert(m->form == IR_FORM_MLIR);
  TRY(opt_rewriter_init(&x.rw, m, err));
  shard_maker_init(&x.maker, m, false);
  int status = shc_walk_module(m, true, known_op, &x);
  int ended = opt_rewriter_status(&x.rw);
  shard_maker_free(&x.maker);
  opt_rewriter_free(&x.rw);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "sharding rules");
  return status ? status : ended;
}
