/* sdy-constant-or-scalar-merger: equal constants, and equal broadcasts of one scalar, become one within their region;
 * equal in all attributes, shardings too.
 * Requires: nothing. Preserves: what the program computes. */
#include "../common/common.h"

typedef struct exp_row {
  ir_op *op;
  uint64_t hash;
} exp_row;

/* A hash table of ops, in open addressing. */
typedef struct exp_merge {
  opt_rewriter *rw;
  exp_row *rows;
  uint32_t n, cap;
} exp_merge;

static bool exp_is_merged(const ir_op *op) {
  if (op->opcode == IR_OP_SDY_CONSTANT || op->opcode == IR_OP_CONSTANT) return true;
  return op->opcode == IR_OP_BROADCAST && ir_is_tensor(ir_operand_type(op, 0)) && ir_operand_type(op, 0)->rank == 0;
}

static bool exp_same(const ir_op *a, const ir_op *b) {
  bool constants = a->n_operands == 0 && b->n_operands == 0; /* StableHLO's and Shardy's are one */
  if ((a->opcode != b->opcode && !constants) || a->parent != b->parent || a->type != b->type ||
      !ir_mdict_equal(a->mlir, b->mlir))
    return false;
  return a->n_operands == 0 || (a->operands[0].op == b->operands[0].op && a->operands[0].index == b->operands[0].index);
}

static uint64_t exp_hash(const ir_op *op) {
  uint64_t h = ir_mdict_hash(op->mlir) + op->n_operands + (uint64_t)(uintptr_t)op->parent * 31 +
               (uint64_t)(uintptr_t)op->type * 17;
  if (op->n_operands) h += (uint64_t)op->operands[0].op->id * UINT64_C(0x9E3779B97F4A7C15);
  const ir_mattr *value = op->n_operands ? NULL : ir_mattr_of(op, "value");
  const ir_literal *l = value && value->kind == IR_M_DENSE ? value->v.literal : NULL;
  size_t bytes = l ? (size_t)l->type->count * base_dtype_bytes((base_dtype)l->type->dtype) : 0;
  if (bytes) h += base_hash(l->data, bytes < 64 ? bytes : 64);
  h *= UINT64_C(0xD6E8FEB86659FD93);
  return h ^ h >> 32;
}

static void exp_put(exp_row *rows, uint32_t cap, exp_row row) {
  uint32_t i = (uint32_t)row.hash & (cap - 1);
  while (rows[i].op) i = (i + 1) & (cap - 1);
  rows[i] = row;
}

static bool exp_grow(exp_merge *x) {
  if (x->n * 2 < x->cap) return true;
  uint32_t cap = x->cap ? x->cap * 2 : 64;
  exp_row *rows = base_arena_zalloc(&x->rw->arena, cap * sizeof *rows);
  if (!rows) return false;
  for (uint32_t i = 0; i < x->cap; i++)
    if (x->rows[i].op) exp_put(rows, cap, x->rows[i]);
  x->rows = rows;
  x->cap = cap;
  return true;
}

static int exp_merge_op(void *ctx, ir_op *op) {
  exp_merge *x = ctx;
  if (!exp_is_merged(op)) return 0;
  if (!exp_grow(x)) return base_oom(x->rw->err, "sdy-constant-or-scalar-merger");
  uint64_t hash = exp_hash(op);
  for (uint32_t i = (uint32_t)hash & (x->cap - 1); x->rows[i].op; i = (i + 1) & (x->cap - 1)) {
    if (x->rows[i].hash != hash || !exp_same(x->rows[i].op, op)) continue;
    opt_replace_one(x->rw, op, (ir_value){x->rows[i].op, 0});
    return opt_rewriter_status(x->rw);
  }
  exp_put(x->rows, x->cap, (exp_row){op, hash});
  x->n++;
  return 0;
}

int shard_merge_constants(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  exp_merge x = {.rw = &rw};
  int status = shc_walk_module(m, true, exp_merge_op, &x);
  opt_rewriter_free(&rw);
  return status;
}
