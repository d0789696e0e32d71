/* constant-folding: ops on constants become constants, by the reference interpreter.
 * Requires: nothing. Preserves: side effects, random ops, custom calls, collectives, ids, async chains, ops in control
 * edges, elided constants, the schedule. Leaves iotas and broadcasts: they say in a word what a constant would spell
 * out. */
#include "../../base/heed.h"
#include "../../interp/interp.h"
#include "../effects.h"
#include "../pass.h"

enum { FOLD_POLL = 1 << 20 }; /* the interpreter polls about once per so many element operations */

typedef struct fold_run {
  ir_module *m;
  opt_facts facts;
  interp_ctx ctx; /* for ops that call nothing: made once */
  int64_t max_elements;
  int64_t polls_left; /* the rest of the work to spend, in polls */
  xlac_error own;     /* of evaluations that fail; such ops stay as they are */
} fold_run;

/* Asked by the interpreter once in so much work; base_heed_tick lets an interrupt from the keyboard through. */
static bool fold_is_spent(void *ctx) {
  fold_run *f = ctx;
  return f->polls_left-- <= 0 || base_heed_tick(FOLD_POLL / 100);
}

/* A constant, or a broadcast of one: cheap to make, and worth looking through. */
static bool fold_is_source(const ir_op *op) {
  if (op->opcode == IR_OP_BROADCAST) op = ir_operand(op, 0);
  return op->opcode == IR_OP_CONSTANT && !op->u.literal->elided && ir_is_tensor(op->type);
}

/* Elements of the result; INT64_MAX where it is not of static tensors. */
static int64_t fold_elements(const ir_type *t) {
  if (t->has_dynamic) return INT64_MAX;
  if (ir_is_tensor(t)) return t->count;
  int64_t sum = 0;
  if (!ir_is_tuple(t)) return INT64_MAX;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!ir_is_tensor(t->elements[i]) || !base_add_i64(sum, t->elements[i]->count, &sum)) return INT64_MAX;
  return sum;
}

/* Iotas and broadcasts say what they are in a word, tuples hold no work, and the rest keeps an order. Of operands
 * that are all broadcasts or scalars the result would be a broadcast spelt out, so at least one must be a real
 * constant. */
static bool fold_may(const fold_run *f, const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CONSTANT:
    case IR_OP_IOTA:
    case IR_OP_BROADCAST:
    case IR_OP_TUPLE:
    case IR_OP_GET_TUPLE_ELEMENT:
    case IR_OP_AFTER_ALL:
    case IR_OP_ADD_DEPENDENCY:
    case IR_OP_OPT_BARRIER:
    case IR_OP_DOMAIN:
      return false;
    default:
      break;
  }
  if (op->n_operands == 0 || op->n_results != 1 || opt_op_facts(&f->facts, op) || opt_in_edge(&f->facts, op))
    return false;
  if (fold_elements(op->type) > f->max_elements) return false;
  bool scalar = ir_is_scalar(op->type), any = scalar;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_op *source = ir_operand(op, i);
    if (!fold_is_source(source) || source->type->has_dynamic) return false;
    if (source->type->count > f->max_elements) return false;
    any = any || (source->opcode == IR_OP_CONSTANT && !ir_is_scalar(source->type));
  }
  return any || ir_is_tuple(op->type) || op->type->count <= 1;
}

/* --- evaluation --- */

/* A broadcast is evaluated on the spot, as it is not a constant itself. */
static int fold_source_value(interp_ctx *ctx, const ir_op *op, interp_value **out) {
  bool broadcast = op->opcode == IR_OP_BROADCAST;
  interp_value *v = interp_from_literal(ctx, (broadcast ? ir_operand(op, 0) : op)->u.literal);
  if (!v) return -XLAC_E_OUT_OF_MEMORY;
  if (!broadcast) return *out = v, 0;
  interp_eval_fn *eval = interp_table[IR_OP_BROADCAST];
  int status = eval(ctx, op, &v, out);
  interp_release(v);
  return status;
}

/* dying 0: no operand may be overwritten, as nothing here says who else reads it. */
static int fold_evaluate_in(interp_ctx *ctx, const ir_op *op, interp_value **operands, interp_value **out) {
  interp_eval_fn *eval = interp_table[op->opcode];
  if (!eval) return -XLAC_E_EVAL;
  for (uint32_t i = 0; i < op->n_operands; i++) TRY(fold_source_value(ctx, ir_operand(op, i), &operands[i]));
  ctx->dying = 0;
  return eval(ctx, op, operands, out);
}

/* Computations that are called may have new ops since `f->ctx` was made, so each such op gets a context of its own. */
static int fold_evaluate(fold_run *f, const ir_op *op, interp_value **out) {
  assert(op->n_operands > 0);
  interp_value **operands = base_arena_zalloc(&f->facts.arena, (size_t)op->n_operands * sizeof *operands);
  if (!operands) return -XLAC_E_OUT_OF_MEMORY;
  interp_ctx own, *ctx = &f->ctx;
  if (op->n_called) {
    TRY(interp_begin(&own, f->m, &f->ctx.options, &f->own));
    own.ticks = f->ctx.ticks + f->m->n_ids; /* all counts towards the work to spend */
    ctx = &own;
  }
  int status = fold_evaluate_in(ctx, op, operands, out);
  for (uint32_t i = 0; i < op->n_operands; i++) interp_release(operands[i]);
  if (op->n_called) {
    f->ctx.ticks = own.ticks;
    interp_end(&own);
  }
  return status;
}

/* --- putting the result in --- */

/* The new op stands where op stands, with its metadata, so that messages still find the source line. */
static ir_op *fold_constant(const ir_op *op, const ir_type *t, const interp_value *v, const char *stem) {
  ir_module *m = op->parent->module;
  if (v->kind != INTERP_ARRAY || v->dtype != t->dtype || v->count != t->count) return NULL;
  ir_literal *l = ir_literal_new(m, t);
  const base_istr *name = ir_fresh_name(m, stem);
  ir_op *c = l && name ? ir_op_new(op->parent, IR_OP_CONSTANT, t, name, 0, 0) : NULL;
  if (!c) return NULL;
  if (v->count) memcpy(l->data, v->data, interp_bytes(v));
  ir_set_literal(c, l);
  ir_op_move(c, (ir_op *)op);
  const ir_attr *metadata = ir_attr_find(op, IR_ATTR_METADATA);
  return !metadata || ir_attr_set(c, *metadata) ? c : NULL;
}

/* Of several results: a tuple of constants, which readers of elements look through (fold_element). */
static ir_op *fold_tuple(const ir_op *op, const interp_value *v) {
  ir_module *m = op->parent->module;
  const base_istr *name = ir_fresh_name(m, "tuple");
  ir_op *tuple = name ? ir_op_new(op->parent, IR_OP_TUPLE, op->type, name, op->type->n_elements, 0) : NULL;
  if (!tuple) return NULL;
  assert(v->kind != INTERP_ARRAY);
  ir_op_move(tuple, (ir_op *)op);
  for (uint32_t i = 0; i < op->type->n_elements; i++) {
    ir_op *element = fold_constant(tuple, op->type->elements[i], v->elements[i], "constant");
    if (!element) return NULL;
    ir_set_operand(tuple, i, (ir_value){element, 0});
  }
  return tuple;
}

/* Constants and broadcasts that only the folded op used. */
static void fold_drop_source(const fold_run *f, ir_op *op) {
  if (!opt_is_linked(op) || op->uses || ir_is_result(op) || opt_in_edge(&f->facts, op)) return;
  ir_op *source = op->opcode == IR_OP_BROADCAST ? ir_operand(op, 0) : NULL;
  if (op->opcode != IR_OP_CONSTANT && !source) return;
  ir_op_remove(op);
  if (source) fold_drop_source(f, source);
}

/* Sources that nobody else reads go at once: otherwise large constants would pile up until dce. */
static int fold_replace(fold_run *f, ir_op *op, ir_op *with, xlac_error *err) {
  ir_op **sources = BASE_ARRAY(&f->facts.arena, ir_op *, (size_t)op->n_operands + 1);
  if (!with || !sources || !ir_replace_uses(op, with)) return base_oom(err, "constant-folding");
  uint32_t n = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    bool repeated = false;
    for (uint32_t k = 0; k < n && !repeated; k++) repeated = sources[k] == ir_operand(op, i);
    if (!repeated && n < 16) sources[n++] = ir_operand(op, i); /* of more, dce takes the rest */
  }
  ir_op_remove(op);
  for (uint32_t i = 0; i < n; i++) fold_drop_source(f, sources[i]);
  return 0;
}

/* An element of a tuple that is made here is what the tuple was made of. */
static int fold_element(fold_run *f, ir_op *op, xlac_error *err) {
  ir_op *tuple = ir_operand(op, 0);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  assert(index >= 0 && index < tuple->type->n_elements);
  if (tuple->opcode != IR_OP_TUPLE || opt_in_edge(&f->facts, op)) return 0;
  if (ir_operand(tuple, (uint32_t)index)->opcode != IR_OP_CONSTANT) return 0;
  if (!ir_replace_uses(op, ir_operand(tuple, (uint32_t)index))) return base_oom(err, "constant-folding");
  ir_op_remove(op);
  if (!tuple->uses && !ir_is_result(tuple) && !opt_in_edge(&f->facts, tuple)) ir_op_remove(tuple);
  return 0;
}

/* Evaluations that fail, or exceed the budget, leave the op as it is: it may never run. */
static int fold_op(fold_run *f, ir_op *op, xlac_error *err) {
  if (op->opcode == IR_OP_GET_TUPLE_ELEMENT) return fold_element(f, op, err);
  if (f->polls_left <= 0 || !fold_may(f, op)) return 0;
  interp_value *v = NULL;
  int status = fold_evaluate(f, op, &v);
  if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(err, "constant-folding");
  if (status != 0) return 0;
  ir_op *with = ir_is_tuple(op->type) ? fold_tuple(op, v) : fold_constant(op, op->type, v, "constant");
  interp_release(v);
  return fold_replace(f, op, with, err);
}

/* Operands before users: what has been folded is a constant for what comes after. */
static int fold_computation(fold_run *f, ir_computation *c, xlac_error *err) {
  base_arena scratch;
  base_arena_init(&scratch, c->module->alloc);
  uint32_t n = 0;
  ir_op **order = opt_op_order(c, &scratch, &n);
  int status = order ? 0 : base_oom(err, "constant-folding");
  for (uint32_t i = 0; i < n && status == 0; i++) status = fold_op(f, order[i], err);
  base_arena_free(&scratch);
  return status;
}

/* One context for all ops: making one takes time by the size of the module. */
int opt_constant_folding(ir_module *m, const opt_args *args, xlac_error *err) {
  fold_run f = {.m = m, .max_elements = opt_get(args, "max-elements")};
  f.polls_left = opt_get(args, "max-work") * 1000000 / FOLD_POLL + 1;
  interp_options options = {.alloc = m->alloc, .interrupted = fold_is_spent, .interrupt_ctx = &f};
  TRY(opt_facts_make(&f.facts, m, err));
  int status = interp_begin(&f.ctx, m, &options, &f.own);
  if (status != 0) {
    opt_facts_free(&f.facts);
    return base_oom(err, "constant-folding");
  }
  for (uint32_t i = 0; i < f.facts.n_order && status == 0; i++) status = fold_computation(&f, f.facts.order[i], err);
  interp_end(&f.ctx);
  opt_facts_free(&f.facts);
  return status;
}
