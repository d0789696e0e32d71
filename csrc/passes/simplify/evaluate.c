/* The values of ops on constants: the reference interpreter's, so that a folded program gives the same bits. The op
 * goes into a module of its own with its operands as constants; what is the same for all elements is computed once. */
#include "../../interp/interp.h"
#include "../../convert/convert.h"
#include "../rewrite/rewrite.h"

typedef struct evaluate_run {
  opt_rewriter *rw;
  const ir_op *op;
  bool scalar; /* operands and result are splats: one element stands for all */
  ir_module *m;
  ir_computation *main;
} evaluate_run;

/* --- constants from data --- */

static bool evaluate_all_same(const char *data, size_t size, int64_t n) {
  return n > 0 && memcmp(data, data + size, (size_t)(n - 1) * size) == 0;
}

ir_value opt_constant_data(opt_rewriter *rw, const ir_type *type, const void *data, bool splat) {
  assert(!type || (ir_is_tensor(type) && !type->has_dynamic));
  if (!type) return (rw->failed = true), (ir_value){NULL, 0};
  size_t size = base_dtype_bytes((base_dtype)type->dtype);
  bool one = type->count > 0 && (splat || evaluate_all_same(data, size, type->count));
  ir_literal *l = ir_literal_new(rw->m, one ? opt_tensor(rw, (base_dtype)type->dtype, 0, NULL) : type);
  if (l && (one || type->count)) memcpy(l->data, data, one ? size : (size_t)type->count * size);
  return opt_constant(rw, type, l, one);
}

/* --- may it be folded? --- */

/* What moves elements about, so that a splat stays one. */
static bool evaluate_moves(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_BROADCAST:
    case IR_OP_STABLEHLO_BROADCAST:
    case IR_OP_RESHAPE:
    case IR_OP_SLICE:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_REVERSE:
    case IR_OP_TRANSPOSE:
      return true;
    default:
      return false;
  }
}

static bool evaluate_is_plain(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && !t->quant && !t->text && !t->encoding;
}

static bool evaluate_fits(const ir_op *op, int64_t max_elements, bool *splat, bool *first_splat) {
  *splat = *first_splat = op->n_operands > 0;
  if (op->n_results != 1 || op->n_called || !opt_is_pure(op) || !evaluate_is_plain(op->type)) return false;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    bool one = false;
    const ir_literal *l = opt_constant_of(opt_operand(op, i), &one);
    const ir_type *t = ir_operand_type(op, i);
    if (!l || !evaluate_is_plain(t) || (!one && t->count > max_elements)) return false;
    one = one || t->count == 1;
    *splat = *splat && one && l->data;
    if (i == 0) *first_splat = one && l->data;
  }
  return true;
}

/* --- the module of one op --- */

static const ir_type *evaluate_type(const evaluate_run *x, const ir_type *t) {
  return x->scalar ? ir_scalar(x->m, (base_dtype)t->dtype) : ir_type_import(x->m, t);
}

static ir_op *evaluate_operand(const evaluate_run *x, uint32_t i) {
  bool splat = false;
  const ir_literal *l = opt_constant_of(opt_operand(x->op, i), &splat);
  const ir_type *t = evaluate_type(x, ir_operand_type(x->op, i));
  const base_istr *name = ir_intern(x->m, "", 0);
  ir_op *c = t && name ? ir_op_new(x->main, IR_OP_CONSTANT, t, name, 0, 0) : NULL;
  if (!c) return NULL;
  const ir_literal *mine = ir_literal_import(x->m, l);
  const ir_mattr *value = mine ? ir_m_dense(x->m, t, mine, splat || x->scalar) : NULL;
  return value && ir_m_set(c, "value", value) ? c : NULL;
}

static bool evaluate_body(evaluate_run *x) {
  base_map map;
  base_map_init(&map, x->m->alloc);
  bool ok = true;
  for (uint32_t i = 0; ok && i < x->op->n_operands; i++) {
    ir_op *source = ir_operand(x->op, i);
    if (base_map_ptr(&map, source)) continue;
    ir_op *c = evaluate_operand(x, i);
    ok = c && base_map_set(&map, base_key(source), base_key(c));
  }
  ir_op *copy = ok ? ir_op_clone(x->op, x->main, &map) : NULL;
  base_map_free(&map);
  const ir_type *t = copy ? evaluate_type(x, x->op->type) : NULL;
  if (!t || !ir_set_root(x->main, copy)) return false;
  ir_set_type(copy, t);
  return true;
}

static int evaluate_build(evaluate_run *x, xlac_error *err) {
  TRY(ir_module_create(&x->m, "", x->rw->m->alloc, err));
  x->m->form = IR_FORM_MLIR;
  x->main = ir_computation_new(x->m, "main", 4);
  if (!x->main) return -XLAC_E_OUT_OF_MEMORY;
  x->main->kind = IR_FUNCTION;
  return evaluate_body(x) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

static int evaluate_run_it(evaluate_run *x, interp_value **out, xlac_error *err) {
  const stablehlo_to_hlo_options executable = {.executable = true};
  const interp_options options = {.alloc = x->rw->m->alloc};
  ir_module *hlo = NULL;
  TRY(stablehlo_to_hlo(&hlo, x->m, &executable, err));
  int status = interp_run(hlo, &options, 0, NULL, out, err);
  ir_module_destroy(hlo);
  return status;
}

/* *out stays NULL where the interpreter refuses: such an op is left as it is. */
static int evaluate_value(evaluate_run *x, interp_value **out) {
  xlac_error own = {0};
  int status = evaluate_build(x, &own);
  if (status == 0) status = evaluate_run_it(x, out, &own);
  if (x->m) ir_module_destroy(x->m);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(x->rw->err, "constant folding") : 0;
}

static int evaluate_replace(opt_rewriter *rw, ir_op *op, const void *data, bool splat, bool *changed) {
  opt_at(rw, op);
  opt_replace_one(rw, op, opt_constant_data(rw, op->type, data, splat));
  *changed = true;
  return opt_rewriter_status(rw);
}

int opt_fold(opt_rewriter *rw, ir_op *op, int64_t max_elements, bool *changed) {
  bool splat = false, first_splat = false;
  if (!evaluate_fits(op, max_elements, &splat, &first_splat)) return 0;
  if (first_splat && evaluate_moves(op))
    return evaluate_replace(rw, op, opt_constant_of(opt_operand(op, 0), &splat)->data, true, changed);
  splat = splat && ir_opcode_has(op->opcode, IR_ELEMENTWISE);
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!splat && ir_operand_type(op, i)->count > max_elements) return 0;
  if (!splat && op->type->count > max_elements) return 0;
  evaluate_run x = {.rw = rw, .op = op, .scalar = splat && op->type->count != 1};
  interp_value *v = NULL;
  int status = evaluate_value(&x, &v);
  if (status == 0 && v && v->kind == INTERP_ARRAY && v->dtype == op->type->dtype &&
      v->count == (x.scalar ? 1 : op->type->count))
    status = evaluate_replace(rw, op, v->data, x.scalar, changed);
  interp_release(v);
  return status;
}
