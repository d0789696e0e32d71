/* stablehlo-legalize-quant-to-math: quantised programs as programs on the integers they store, and floats. Requires:
 * nothing. Leaves no quantised type; what has no form in integers and floats is refused before anything is changed.
 * Functions take and give storage.
 * Three walks: mqm_check refuses, mqm_retype gives every value its storage type and notes what it had, mqm_rewrite
 * replaces the ops that compute. */
#include "../../ir/stablehlo/stablehlo.h"
#include "quant.h"

/* stablehlo.uniform_dequantize of tensor<4x!quant.uniform<i8:f32, 0.5:3>> becomes
 *    %0 = stablehlo.convert %a : (tensor<4xi8>) -> tensor<4xi32>
 *    %1 = stablehlo.subtract %0, 3
 *    %2 = stablehlo.convert %1 : (tensor<4xi32>) -> tensor<4xf32>
 *    %3 = stablehlo.multiply %2, 0.5
 * and an add of two tensors of one type !quant.uniform<i8:f32, 0.5> stays in integers: convert both to i32, add,
 * clamp to [-128, 127], convert to i8. */
typedef struct mqm_run {
  opt_rewriter rw;
  base_map was; /* an op to the types its results had, where one was quantised */
  uint32_t n;   /* ops with ids below were there before */
} mqm_run;

/* The type that a value had before retyping; its present one if it was not quantised. */
static const ir_type *mqm_was(const mqm_run *x, ir_value v) {
  assert(v.op != NULL && v.index < v.op->n_results);
  const ir_type *const *types = base_map_ptr(&x->was, v.op);
  return types ? types[v.index] : v.op->types[v.index];
}

/* Types are noted by op, for all results of it. */
static void mqm_note(mqm_run *x, const ir_op *op, const ir_type *const *was) {
  x->rw.failed = x->rw.failed || !was || !base_map_set(&x->was, base_key(op), base_key(was));
}

/* op's results become values, which are storage: what is not noted as quantised yet is noted with op's old type, so
 * that readers of the result know its scales. */
static void mqm_replace(mqm_run *x, ir_op *op, const ir_value *values) {
  for (uint32_t i = 0; i < op->n_results && !x->rw.failed; i++) {
    const ir_type *was = mqm_was(x, opt_result(op, i));
    x->rw.failed = x->rw.failed || !values[i].op;
    if (x->rw.failed || !was->quant || mqm_was(x, values[i])->quant) continue;
    assert(values[i].op->n_results == 1);
    mqm_note(x, values[i].op, base_arena_memdup(&x->rw.arena, &was, sizeof was));
  }
  if (!x->rw.failed) opt_replace_op(&x->rw, op, values);
}

/* --- what can be done at all --- */

/* Ops that do to storage what they do to quantised values: they move it. */
static bool mqm_moves(unsigned opcode) {
  switch (opcode) {
    case IR_OP_BITCAST_CONVERT:
    case IR_OP_BROADCAST:
    case IR_OP_CALL:
    case IR_OP_COMPOSITE:
    case IR_OP_CONCATENATE:
    case IR_OP_CONSTANT:
    case IR_OP_DYNAMIC_BROADCAST_IN_DIM:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_GATHER:
    case IR_OP_GET_DIMENSION_SIZE:
    case IR_OP_PAD:
    case IR_OP_PARAMETER:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_RESHAPE:
    case IR_OP_SLICE:
    case IR_OP_STABLEHLO_DYNAMIC_RESHAPE:
    case IR_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

/* For messages: the MLIR name. */
static const char *mqm_name(const ir_op *op) {
  const ir_mlir_info *mlir = ir_opcode_info(op->opcode)->mlir;
  return op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : mlir ? mlir->name : "the op";
}

/* Refused before anything is changed, so the module stays as it was. */
static int mqm_refuse(const mqm_run *x, const ir_op *op) {
  int status =
      opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_OPERANDS,
                       "%s has quantised operands or results, and no form in integers and floats", mqm_name(op));
  return base_hint(
      x->rw.err, status,
      "dequantise what it reads and quantise what it gives: stablehlo.uniform_dequantize, uniform_quantize");
}

/* Blockwise quantisation and storage of more than 32 bits have no arithmetic here. */
static int mqm_check_quant(const mqm_run *x, const ir_op *op, const ir_type *t) {
  const ir_quant *q = t->quant;
  if (!q || op->opcode == IR_OP_PARAMETER) return 0;
  if (q->axis < -1)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_OPERANDS, "has a type that is quantised in blocks");
  if (!base_dtype_is_integer((base_dtype)q->storage) || base_dtype_of((base_dtype)q->storage)->bits > 32)
    return opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_OPERANDS,
                            "has a type stored as %s; expected integers of at most 32 bits",
                            base_dtype_of((base_dtype)q->storage)->text);
  return 0;
}

/* Scales along two different dimensions can't be combined into one list of ratios. */
static int mqm_check_requantise(const mqm_run *x, const ir_op *op) {
  assert(op->n_operands == 1);
  const ir_quant *from = ir_operand_type(op, 0)->quant, *to = op->type->quant;
  if (!from || !to || from->axis < 0 || to->axis < 0 || from->axis == to->axis) return 0;
  int status =
      opt_rewrite_fail(&x->rw, op, XLAC_E_VERIFY_OPERANDS,
                       "requantises along dimension %d what is quantised along dimension %d", to->axis, from->axis);
  return base_hint(x->rw.err, status, "write uniform_dequantize, then uniform_quantize");
}

/* Ops that touch no quantised type are of no interest. */
static int mqm_check_op(const mqm_run *x, const ir_op *op) {
  if (!mq_touches(op)) return 0;
  bool known = mqm_moves(op->opcode) || ir_opcode_has(op->opcode, IR_QUANT_REAL) ||
               op->opcode == IR_OP_UNIFORM_QUANTIZE || op->opcode == IR_OP_UNIFORM_DEQUANTIZE;
  if (!known) return mqm_refuse(x, op);
  for (uint32_t i = 0; i < op->n_operands; i++) TRY(mqm_check_quant(x, op, ir_operand_type(op, i)));
  for (uint32_t i = 0; i < op->n_results; i++) TRY(mqm_check_quant(x, op, op->types[i]));
  return op->opcode == IR_OP_UNIFORM_QUANTIZE ? mqm_check_requantise(x, op) : 0;
}

/* In text order; the reader bounds the depth. */
static int mqm_check(const mqm_run *x, const ir_computation *c) {
  IR_FOR_OPS(op, c) {
    TRY(mqm_check_op(x, op));
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) TRY(mqm_check(x, op->called[i]));
  }
  return 0;
}

/* --- types --- */

/* Attributes with quantised types (constants) change too. */
static void mqm_retype_op(mqm_run *x, ir_op *op) {
  bool any = false;
  const ir_mdict *d = mq_storage_dict(x->rw.m, op->mlir);
  x->rw.failed = x->rw.failed || (op->mlir && !d);
  ir_set_mlir(op, d);
  for (uint32_t i = 0; i < op->n_results; i++) any = any || mq_is_quantised(op->types[i]);
  if (!any) return;
  const ir_type **was = base_arena_memdup(&x->rw.arena, op->types, op->n_results * sizeof *was);
  const ir_type **types = BASE_ARRAY(&x->rw.arena, const ir_type *, op->n_results);
  x->rw.failed = x->rw.failed || !was || !types;
  for (uint32_t i = 0; !x->rw.failed && i < op->n_results; i++) types[i] = mq_storage(x->rw.m, op->types[i]);
  opt_set_types(&x->rw, op, types);
  mqm_note(x, op, was);
}

/* Function types that are spelled out, those of declarations among them. */
static int mqm_retype(mqm_run *x, ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    IR_FOR_OPS(op, c)
    if (!x->rw.failed) mqm_retype_op(x, op);
    if (!mq_is_quantised(c->function_type)) continue;
    ir_set_function_type(c, mq_storage(m, c->function_type));
    x->rw.failed = x->rw.failed || !c->function_type;
  }
  return opt_rewriter_status(&x->rw);
}

/* --- ops --- */

/* Of one quantised type all: integers may be compared and summed as they are.
 * From operand `first` on: a select's predicate is not quantised. */
static bool mqm_is_uniform(const mqm_run *x, ir_op *op, uint32_t first) {
  assert(op->n_results > 0);
  const ir_quant *q = mqm_was(x, opt_result(op, 0))->quant;
  for (uint32_t i = first; i < op->n_operands; i++)
    if (!ir_quant_equal(q, mqm_was(x, opt_operand(op, i))->quant)) return false;
  return q != NULL;
}

/* The op on real values. */
static void mqm_real(mqm_run *x, ir_op *op) {
  opt_rewriter *rw = &x->rw;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + op->n_results + 1);
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)op->n_results + 1);
  rw->failed = rw->failed || !values || !types;
  if (rw->failed) return;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_quant *q = mqm_was(x, opt_operand(op, i))->quant;
    values[i] = opt_operand(op, i);
    if (q) values[i] = mq_dequantise(rw, q, values[i]);
  }
  for (uint32_t i = 0; i < op->n_results; i++) types[i] = mq_expressed(rw->m, mqm_was(x, opt_result(op, i)));
  /* Attributes are shared with the old op. */
  ir_op *real = opt_make_n(rw, (ir_opcode)op->opcode, op->n_results, types, op->n_operands, values, 0);
  if (!real) return;
  ir_set_mlir(real, op->mlir);
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_quant *q = mqm_was(x, opt_result(op, i))->quant;
    values[i] = opt_result(real, i);
    if (q) values[i] = mq_quantise(rw, q, values[i]);
  }
  mqm_replace(x, op, values);
}

/* Only the weights are stored: a barrier keeps them so until they are used.
 * Hybrid products: without the barrier constant folding would expand the weights to floats. */
static void mqm_guard_weights(mqm_run *x, ir_op *op) {
  assert(op->n_operands == 2);
  ir_value rhs = opt_operand(op, 1);
  ir_value kept = opt_make(&x->rw, IR_OP_OPT_BARRIER, opt_type(rhs), 1, &rhs);
  const ir_quant *q = mqm_was(x, rhs)->quant;
  ir_value values[] = {opt_operand(op, 0), kept.op ? mq_dequantise(&x->rw, q, kept) : kept};
  ir_value v = opt_make(&x->rw, (ir_opcode)op->opcode, op->type, 2, values);
  if (v.op) ir_set_mlir(v.op, op->mlir);
  mqm_replace(x, op, &v);
}

/* In integers where that is exact, else on real values. */
static void mqm_product(mqm_run *x, ir_op *op) {
  mq_product t = {mqm_was(x, opt_operand(op, 0)), mqm_was(x, opt_operand(op, 1)), mqm_was(x, opt_result(op, 0))};
  if (!t.lhs->quant && t.rhs->quant && !t.result->quant) {
    mqm_guard_weights(x, op);
    return;
  }
  ir_value v = mq_multiply(&x->rw, op, &t);
  if (v.op)
    mqm_replace(x, op, &v);
  else if (!x->rw.failed)
    mqm_real(x, op);
}

/* quantize of quantised values is a change of scales. */
static void mqm_convert(mqm_run *x, ir_op *op) {
  ir_value a = opt_operand(op, 0);
  const ir_quant *from = mqm_was(x, a)->quant, *to = mqm_was(x, opt_result(op, 0))->quant;
  ir_value v = from && to ? mq_requantise(&x->rw, from, to, a)
               : to       ? mq_quantise(&x->rw, to, a)
                          : mq_dequantise(&x->rw, from, a);
  mqm_replace(x, op, &v);
}

static void mqm_sum(mqm_run *x, ir_op *op) {
  const ir_quant *q = mqm_was(x, opt_result(op, 0))->quant;
  ir_value v = mq_sum(&x->rw, q, opt_operand(op, 0), opt_operand(op, 1));
  mqm_replace(x, op, &v);
}

/* Maxima, minima and selections of one quantised type are the same on storage, whose order is that of real values. */
static void mqm_op(mqm_run *x, ir_op *op) {
  opt_at(&x->rw, op);
  switch (op->opcode) {
    case IR_OP_UNIFORM_QUANTIZE:
    case IR_OP_UNIFORM_DEQUANTIZE:
      mqm_convert(x, op);
      return;
    case IR_OP_ADD:
      if (!mqm_is_uniform(x, op, 0)) break;
      mqm_sum(x, op);
      return;
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
      if (mqm_is_uniform(x, op, 0)) return;
      break;
    case IR_OP_SELECT:
      if (mqm_is_uniform(x, op, 1)) return;
      break;
    case IR_OP_CONVOLUTION:
    case IR_OP_DOT:
    case IR_OP_STABLEHLO_DOT:
      mqm_product(x, op);
      return;
    default:
      if (mqm_moves(op->opcode)) return;
      break;
  }
  mqm_real(x, op);
}

/* Whether the op reads or makes what was quantised. */
static bool mqm_is_pending(const mqm_run *x, ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (mq_is_quantised(mqm_was(x, opt_operand(op, i)))) return true;
  return base_map_ptr(&x->was, op) != NULL;
}

/* New ops have ids from x->n on and are not looked at. */
static int mqm_rewrite(mqm_run *x, ir_module *m) {
  for (ir_computation *c = m->first; c && !x->rw.failed; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && !x->rw.failed; op = next) {
      next = op->next;
      if (op->opcode != IR_OP_PARAMETER && op->id < x->n && mqm_is_pending(x, op)) mqm_op(x, op);
    }
  }
  return opt_rewriter_status(&x->rw);
}

/* A check of functions covers their regions. */
static int mqm_all(mqm_run *x, ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m)
  if (!c->owner) TRY(mqm_check(x, c));
  x->n = m->n_ids;
  TRY(mqm_retype(x, m));
  return mqm_rewrite(x, m);
}

int opt_quant_to_math(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  mqm_run x = {.n = 0};
  TRY(opt_rewriter_init(&x.rw, m, err));
  base_map_init(&x.was, m->alloc);
  int status = mqm_all(&x, m);
  base_map_free(&x.was);
  opt_rewriter_free(&x.rw);
  return status;
}
