/* Values: replacing uses, counting them, and walks over ops. */
#include "../../ir/stablehlo/stablehlo.h"
#include "common.h"

static bool shc_same_value(ir_value a, ir_value b) {
  return a.op == b.op && a.index == b.index;
}

static void shc_replace_returned(ir_computation *c, ir_value from, ir_value to) {
  for (uint32_t i = 0; i < c->n_results; i++)
    if (shc_same_value(c->results[i], from)) c->results[i] = to;
}

void shc_replace_value(opt_rewriter *rw, ir_value from, ir_value to, const ir_op *except) {
  rw->failed = rw->failed || !to.op;
  if (rw->failed || shc_same_value(from, to)) return;
  for (ir_use *u = from.op->uses, *next = NULL; u; u = next) {
    next = u->next;
    if (u->index == from.index && u->user != except) ir_set_operand(u->user, u->slot, to);
  }
  shc_replace_returned(from.op->parent, from, to);
  for (uint32_t i = 0; i < rw->n_leaks; i++) shc_replace_returned(rw->leaks[i], from, to);
  rw->m->verified = IR_UNVERIFIED;
}

static void shc_replace_all_returned(ir_computation *c, const ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < c->n_results; i++)
    if (c->results[i].op == op) c->results[i] = values[c->results[i].index];
}

void shc_replace_but_own(opt_rewriter *rw, ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < op->n_results; i++) rw->failed = rw->failed || !values[i].op;
  if (rw->failed) return;
  for (ir_use *u = op->uses, *next = NULL; u; u = next) {
    next = u->next;
    ir_value to = values[u->index];
    if (u->user != to.op && to.op != op) ir_set_operand(u->user, u->slot, to);
  }
  shc_replace_all_returned(op->parent, op, values);
  for (uint32_t i = 0; i < rw->n_leaks; i++) shc_replace_all_returned(rw->leaks[i], op, values);
  rw->m->verified = IR_UNVERIFIED;
}

void shc_at_value(opt_rewriter *rw, ir_value v) {
  if (v.op->opcode == IR_OP_PARAMETER) {
    opt_at_start(rw, v.op->parent);
  } else {
    rw->into = v.op->parent;
    rw->before = v.op->next;
  }
  rw->origin = v.op;
}

static uint32_t shc_count_returned(const ir_computation *c, ir_value v) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->n_results; i++) n += shc_same_value(c->results[i], v);
  return n;
}

uint32_t shc_count_uses(const opt_rewriter *rw, ir_value v, uint32_t most) {
  uint32_t n = 0;
  for (const ir_use *u = v.op->uses; u && n < most; u = u->next) n += u->index == v.index;
  n += shc_count_returned(v.op->parent, v);
  for (uint32_t i = 0; i < rw->n_leaks && n < most; i++)
    if (rw->leaks[i] != v.op->parent) n += shc_count_returned(rw->leaks[i], v);
  return n < most ? n : most;
}

static int shc_walk_regions(ir_op *op, bool after, shc_op_fn *fn, void *ctx) {
  for (uint32_t i = 0; i < op->n_called; i++)
    if (op->called[i]->owner == op) TRY(shc_walk(op->called[i], after, fn, ctx));
  return 0;
}

/* Depth is bounded by the verifier. */
int shc_walk(ir_computation *c, bool after, shc_op_fn *fn, void *ctx) {
  IR_FOR_OPS_SAFE(op, c) {
    if (op->opcode == IR_OP_PARAMETER) continue;
    if (after) TRY(shc_walk_regions(op, after, fn, ctx));
    int status = fn(ctx, op);
    if (status < 0) return status;
    if (!after && status != SHC_SKIP) TRY(shc_walk_regions(op, after, fn, ctx));
  }
  return 0;
}

int shc_walk_module(ir_module *m, bool after, shc_op_fn *fn, void *ctx) {
  IR_FOR_COMPUTATIONS(c, m)
  if (c->kind == IR_FUNCTION && !c->owner) TRY(shc_walk(c, after, fn, ctx));
  return 0;
}

bool shc_has(const ir_module *m, ir_opcode opcode) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (op->opcode == opcode) return true;
  return false;
}

int shc_verify(ir_module *m, xlac_error *err) {
  m->verified = false;
  return stablehlo_verify(m, err);
}

int shc_verify_fitting(ir_module *m, xlac_error *err) {
  IR_FOR_COMPUTATIONS(c, m)
  IR_FOR_OPS(op, c)
  if (op->opcode == IR_OP_SDY_MANUAL_COMPUTATION || sdy_is_collective(op)) return shc_verify(m, err);
  return 0;
}
