/* Constant folding in MLIR form: the value of an op on constants, and which ops are folded. */
#include "../../convert/convert.h"
#include "../../interp/interp.h"
#include "fold.h"

/* The values of ops on constants: the reference interpreter's, so that a folded program gives the same bits. The op
 * goes into a module of its own with its operands as constants; what is the same for all elements is computed once. */

typedef struct evaluate_run {
  opt_rewriter *rw;
  const ir_op *op;
  bool scalar; /* operands and result are splats: one element stands for all */
  ir_module *m;
  ir_computation *main;
} evaluate_run;

/* --- constants from data --- */

/* Each element is compared with the next: overlapping ranges, one element apart. */
static bool evaluate_all_same(const char *data, size_t size, int64_t n) {
  return n > 0 && memcmp(data, data + size, (size_t)(n - 1) * size) == 0;
}

/* An empty constant with data NULL is allowed: nothing is read. */
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

/* What moves elements about without computing, so that a splat stays one. */
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

/* Types that the interpreter has as they are: no dynamic sizes, quantisation or spelled-out texts. */
static bool evaluate_is_plain(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && !t->quant && !t->text && !t->encoding;
}

/* Whether op is one the interpreter can run here. *splat: all operands are constants of one element; *first_splat:
 * the first one is. */
static bool evaluate_fits(const ir_op *op, int64_t max_elements, bool *splat, bool *first_splat) {
  assert(max_elements >= 0);
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

/* In the module of the one op; a scalar where one element stands for all. */
static const ir_type *evaluate_type(const evaluate_run *x, const ir_type *t) {
  return x->scalar ? ir_scalar(x->m, (base_dtype)t->dtype) : ir_type_import(x->m, t);
}

/* Literals are imported: the little module has an arena of its own. */
static ir_op *evaluate_operand(const evaluate_run *x, uint32_t i) {
  assert(i < x->op->n_operands);
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

/* An operand that comes twice is one constant. */
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

/* func @main() { constants; op; return }. */
static int evaluate_build(evaluate_run *x, xlac_error *err) {
  TRY(ir_module_create(&x->m, "", x->rw->m->alloc, err));
  x->m->form = IR_FORM_MLIR;
  x->main = ir_computation_new(x->m, "main", 4);
  if (!x->main) return -XLAC_E_OUT_OF_MEMORY;
  ir_set_kind(x->main, IR_FUNCTION);
  return evaluate_body(x) ? 0 : -XLAC_E_OUT_OF_MEMORY;
}

/* By way of HLO form, which is what the interpreter reads. */
static int evaluate_run_it(evaluate_run *x, interp_value **out, xlac_error *err) {
  const convert_to_hlo_options executable = {.executable = true};
  const interp_options options = {.alloc = x->rw->m->alloc};
  ir_module *hlo = NULL;
  TRY(convert_to_hlo(&hlo, x->m, &executable, err));
  int status = interp_run(hlo, &options, 0, NULL, out, err);
  ir_module_destroy(hlo);
  return status;
}

/* *out stays NULL where the interpreter refuses: such an op is left as it is.
 * Only running out of memory is an error of the pass; anything else means that the op is not folded. */
static int evaluate_value(evaluate_run *x, interp_value **out) {
  xlac_error own = {0};
  int status = evaluate_build(x, &own);
  if (status == 0) status = evaluate_run_it(x, out, &own);
  if (x->m) ir_module_destroy(x->m);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(x->rw->err, "constant folding") : 0;
}

/* The constant stands right before op. */
static int evaluate_replace(opt_rewriter *rw, ir_op *op, const void *data, bool splat, bool *changed) {
  opt_at(rw, op);
  opt_replace_one(rw, op, opt_constant_data(rw, op->type, data, splat));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Splats are moved without evaluation; elementwise ops on splats are evaluated on one element; others if both
 * operands and result are small enough. */
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

/* Which ops are folded, and what folds without being evaluated. */

static bool folder_is_integral(const ir_type *t) {
  return ir_is_tensor(t) && (t->dtype == XLAC_PRED || base_dtype_is_integer((base_dtype)t->dtype));
}

/* Predicates count as integers. */
static bool folder_all_integral(const ir_op *op) {
  bool all = folder_is_integral(op->type);
  for (uint32_t i = 0; all && i < op->n_operands; i++) all = folder_is_integral(ir_operand_type(op, i));
  return all;
}

/* --- sizes that types tell --- */

/* get_dimension_size of a dimension that is static is a constant, whatever the operand. */
static int folder_dimension_size(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  assert(op->n_operands == 1);
  int64_t d = ir_m_get_int(op, "dimension", 0);
  if (!ir_is_tensor(t) || d < 0 || d >= t->rank || ir_dim_is_dynamic(t, (uint32_t)d) || op->type->has_dynamic) return 0;
  opt_at(rw, op);
  opt_replace_one(rw, op, opt_splat_int(rw, op->type, t->dims[d]));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* A size that is set to what it is. */
static int folder_set_size(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  assert(op->n_operands == 2);
  int64_t d = ir_m_get_int(op, "dimension", 0);
  bool splat = false;
  const ir_literal *l = opt_constant_of(opt_operand(op, 1), &splat);
  if (!l || !l->data || !ir_is_tensor(t) || t->has_dynamic || d < 0 || d >= t->rank || op->type != t) return 0;
  if (base_load_i64((base_dtype)ir_operand_type(op, 1)->dtype, l->data) != t->dims[d]) return 0;
  opt_replace_one(rw, op, opt_operand(op, 0));
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Wherever it begins, a slice of one value is that value. */
static int folder_splat_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const void *p = opt_uniform(opt_operand(op, 0));
  if (!p || !opt_is_static(op->type) || op->type->quant) return 0;
  return evaluate_replace(rw, op, p, true, changed);
}

/* Sizes first, which need no constant operands. */
int opt_fold_op(opt_rewriter *rw, const opt_folder *f, ir_op *op, bool *changed) {
  assert(f != NULL);
  opt_at(rw, op); /* not every caller is a pattern */
  if (op->opcode == IR_OP_GET_DIMENSION_SIZE) return folder_dimension_size(rw, op, changed);
  if (op->opcode == IR_OP_SET_DIMENSION_SIZE) return folder_set_size(rw, op, changed);
  if (!ir_opcode_has(op->opcode, f->shapes_only ? IR_FOLDS_SHAPES : IR_FOLDS_SHAPES | IR_FOLDS)) return 0;
  if ((f->shapes_only || f->no_floats) && !folder_all_integral(op)) return 0;
  if (op->opcode == IR_OP_DYNAMIC_SLICE) TRY(folder_splat_slice(rw, op, changed));
  return *changed ? 0 : opt_fold(rw, op, f->max_elements, changed);
}
