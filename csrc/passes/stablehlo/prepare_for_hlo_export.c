/* stablehlo-ext-prepare-for-hlo-export: what XLA's ops can't say so is said otherwise: large constants of one value are
 * spread out, broadcasts that also permute get a transpose, and bodies of reductions have their own constants.
 * Requires: nothing. Preserves: what the program computes. Source: XLA's pass of that name. */
#include "../rewrite/rewrite.h"

enum { PREPARE_ELEMENTS = 32 };

static int prepare_constant(opt_rewriter *rw, ir_op *op) {
  const ir_mattr *value = ir_mattr_of(op, "value");
  const ir_type *t = op->type;
  if (!value || value->kind != IR_M_DENSE || !value->splat || !opt_is_static(t) || t->count < PREPARE_ELEMENTS ||
      t->quant)
    return 0;
  opt_at(rw, op);
  const ir_type *type = opt_tensor(rw, (base_dtype)t->dtype, 0, NULL);
  ir_value one = opt_constant_data(rw, type, value->v.literal->data, true);
  ir_value all = opt_broadcast_in_dim(rw, one, t, NULL);
  if (ir_mattr_of(op, "mhlo.sharding")) opt_set(rw, all, "mhlo.sharding", ir_mattr_of(op, "mhlo.sharding"));
  if (!rw->failed) opt_replace_one(rw, op, all);
  return opt_rewriter_status(rw);
}

/* The order of the dimensions sorted; few: insertion. */
static void prepare_order(uint32_t n, const int64_t *dims, int64_t *order) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = i;
    for (; j > 0 && dims[order[j - 1]] > dims[i]; j--) order[j] = order[j - 1];
    order[j] = i;
  }
}

static int prepare_broadcast(opt_rewriter *rw, ir_op *op) {
  uint32_t n = 0;
  const int64_t *dims = ir_m_ints(ir_mattr_of(op, "broadcast_dimensions"), &rw->arena, &n);
  bool sorted = true;
  for (uint32_t i = 1; i < n; i++) sorted = sorted && dims[i - 1] <= dims[i];
  if (sorted) return 0;
  int64_t *order = BASE_ARRAY(&rw->arena, int64_t, (size_t)n + 1), *to = BASE_ARRAY(&rw->arena, int64_t, (size_t)n + 1);
  if (!order || !to) return (rw->failed = true), opt_rewriter_status(rw);
  prepare_order(n, dims, order);
  for (uint32_t i = 0; i < n; i++) to[i] = dims[order[i]];
  opt_at(rw, op);
  ir_value turned = opt_transpose(rw, opt_operand(op, 0), order);
  const ir_mattr *a = ir_m_i64s(rw->m, n, to);
  if (!turned.op || !a || !ir_m_set(op, "broadcast_dimensions", a)) return (rw->failed = true), opt_rewriter_status(rw);
  ir_set_operand(op, 0, turned);
  return opt_rewriter_status(rw);
}

/* --- constants of bodies --- */

typedef struct prepare_body {
  opt_rewriter *rw;
  ir_computation *body;
  base_map copies;
} prepare_body;

static ir_value prepare_inner(prepare_body *x, ir_value v) {
  if (!v.op || v.op->opcode != IR_OP_CONSTANT || v.op->parent == x->body) return v;
  ir_op *copy = base_map_ptr(&x->copies, v.op);
  if (copy) return (ir_value){copy, 0};
  ir_value made = v;
  opt_at_start(x->rw, x->body);
  opt_copy_op(x->rw, v.op, NULL, &made);
  if (x->rw->failed || !base_map_set(&x->copies, base_key(v.op), base_key(made.op))) x->rw->failed = true;
  return x->rw->failed ? v : made;
}

static bool prepare_takes_constants(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_REDUCE:
    case IR_OP_ALL_REDUCE:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_SCATTER:
    case IR_OP_SELECT_AND_SCATTER:
    case IR_OP_SORT:
      return true;
    default:
      return false;
  }
}

/* Bodies of these ops hold no regions of their own that read from further out. */
static int prepare_bodies(opt_rewriter *rw, ir_op *op) {
  for (uint32_t r = 0; r < op->n_called; r++) {
    prepare_body x = {.rw = rw, .body = op->called[r]};
    base_map_init(&x.copies, rw->m->alloc);
    IR_FOR_OPS_SAFE(inner, x.body)
    for (uint32_t i = 0; i < inner->n_operands; i++) {
      ir_value v = opt_operand(inner, i), to = prepare_inner(&x, v);
      if (to.op != v.op) ir_set_operand(inner, i, to);
    }
    for (uint32_t i = 0; i < x.body->n_results; i++) x.body->results[i] = prepare_inner(&x, x.body->results[i]);
    base_map_free(&x.copies);
  }
  return opt_rewriter_status(rw);
}

static int prepare_computation(opt_rewriter *rw, ir_computation *c, uint32_t depth) {
  IR_FOR_OPS_SAFE(op, c) {
    for (uint32_t i = 0; i < op->n_called && depth < 256; i++)
      if (op->called[i]->owner == op) TRY(prepare_computation(rw, op->called[i], depth + 1));
    if (op->opcode == IR_OP_CONSTANT)
      TRY(prepare_constant(rw, op));
    else if (op->opcode == IR_OP_BROADCAST)
      TRY(prepare_broadcast(rw, op));
    else if (prepare_takes_constants(op))
      TRY(prepare_bodies(rw, op));
  }
  return 0;
}

int opt_prepare_export(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  int status = 0;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner && status == 0) status = prepare_computation(&rw, c, 0);
  opt_rewriter_free(&rw);
  return status;
}
