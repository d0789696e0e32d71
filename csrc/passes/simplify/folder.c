/* Constant folding in MLIR form: the value of an op, which ops are folded, and folding as patterns. */
#include "../../convert/convert.h"
#include "../../interp/interp.h"
#include "../rewrite/rewrite.h"
#include "folder.h"
#include "mlir_simplify.h"

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
  return opt_simplify_to(rw, op, opt_constant_data(rw, op->type, p, true), changed);
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

/* Folding as patterns: ops on constants, and control flow that constants decide. */

static int fold_any(opt_rewriter *rw, ir_op *op, bool *changed) {
  assert(rw->folder != NULL);
  return opt_fold_op(rw, rw->folder, op, changed);
}

/* --- reduce --- */

/* A body that returns constants does so for every element, whatever the inputs are. */
static int fold_reduce_constant(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_computation *body = op->called[0];
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  if (body->n_results != op->n_results || op->n_results == 0) return 0;
  IR_FOR_OPS(inner, body)
  if (inner->opcode != IR_OP_PARAMETER && inner->opcode != IR_OP_CONSTANT) return 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (body->results[i].op->parent != body || !opt_uniform(body->results[i]) || !opt_is_static(op->types[i])) return 0;
  for (uint32_t i = 0; i < op->n_results; i++)
    values[i] = opt_constant_data(rw, op->types[i], opt_uniform(body->results[i]), true);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* and, or of one known value with itself. */
static int fold_reduce_bool(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_computation *body = op->called[0];
  const ir_op *inner = body->last;
  if (op->n_results != 1 || op->n_operands != 2 || body->n_params != 2 || body->n_results != 1) return 0;
  if (!inner || (inner->opcode != IR_OP_AND && inner->opcode != IR_OP_OR) || body->n_ops != 3) return 0;
  if (body->results[0].op != inner || ir_operand(inner, 0) == ir_operand(inner, 1)) return 0;
  ir_value in = opt_operand(op, 0), init = opt_operand(op, 1);
  for (uint32_t i = 0; i < 2; i++)
    if (ir_operand(inner, i)->parent != body) return 0;
  if (opt_type(in)->dtype != XLAC_PRED || !opt_uniform(in) || !opt_uniform(init) || !opt_is_static(op->type)) return 0;
  if (!opt_is_static(opt_type(in)) || opt_type(in)->count == 0) return 0;
  /* Any number of equal values, and-ed or or-ed with the initial one; there is at least one element. */
  bool a = *(const uint8_t *)opt_uniform(in), b = *(const uint8_t *)opt_uniform(init);
  uint8_t result = inner->opcode == IR_OP_AND ? a && b : a || b;
  return opt_simplify_to_new(rw, op, opt_constant_data(rw, op->type, &result, true), changed);
}

/* --- control flow --- */

/* The condition is the constant false. */
static bool fold_never_runs(const ir_op *op) {
  return op->n_called == 2 && op->called[0]->n_results == 1 && opt_is_int(op->called[0]->results[0], 0);
}

/* Nothing in it says that it has effects: calls and ops that nobody knows count as having none. */
static bool fold_declares_nothing(const ir_op *op) {
  bool silent = op->opcode == IR_OP_CALL || op->opcode == IR_OP_PARAMETER || op->opcode == IR_OP_COMPOSITE;
  if (!silent && !opt_is_pure_alone(op)) return false;
  for (uint32_t i = 0; i < op->n_called; i++) IR_FOR_OPS(inner, op->called[i])
  if (!fold_declares_nothing(inner)) return false;
  return true;
}

/* A loop that never runs gives what it begins with. Where it may have effects it stays, unused. */
static int fold_while(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!fold_never_runs(op) || op->n_results != op->n_operands) return 0;
  bool used = opt_is_used(rw, op), pure = opt_is_pure(op);
  pure = pure || (rw->folder->assume_pure && fold_declares_nothing(op));
  if (!used && !pure) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  assert(op->called[0] && op->called[1]);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_results; i++) {
    values[i] = opt_operand(op, i);
    if (opt_type(values[i]) != op->types[i]) return 0;
  }
  opt_replace_results(rw, op, values);
  if (pure && !rw->failed) opt_erase(rw, op);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* The branch that a known index or predicate chooses takes the op's place. */
static int fold_branch(opt_rewriter *rw, ir_op *op, bool *changed) {
  const void *p = opt_uniform(opt_operand(op, 0));
  if (!p || op->n_called == 0) return 0;
  int64_t i = base_load_i64((base_dtype)ir_operand_type(op, 0)->dtype, p);
  /* The true branch is region 0. A case out of range takes the last branch, as the specification says. */
  if (op->opcode == IR_OP_IF) i = i == 0;
  if (i < 0 || i >= op->n_called) i = op->n_called - 1;
  const ir_computation *region = op->called[i];
  assert(i >= 0 && i < op->n_called);
  if (region->n_results != op->n_results) return 0;
  for (uint32_t k = 0; k < op->n_results; k++)
    if (opt_type(region->results[k]) != op->types[k]) return 0;
  ir_value *values = BASE_ARRAY(&rw->arena, ir_value, op->n_results + 1u);
  if (!values) return (rw->failed = true), opt_rewriter_status(rw);
  opt_inline(rw, region, NULL, values);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, values);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* One element, which is number zero. */
static int fold_iota(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = op->type;
  if (!opt_is_static(t) || t->quant || t->count > 1 || !base_dtype_is_integer((base_dtype)t->dtype)) return 0;
  ir_value v = t->count ? opt_splat_int(rw, t, 0) : opt_constant_data(rw, t, NULL, false);
  return opt_simplify_to_new(rw, op, v, changed);
}

/* Neighbours in a concatenation that are splats of one value are one splat.
 * The replaced neighbour has the type of both together; a sum beyond int64 leaves the op as it is. */
static int fold_concat_splats(opt_rewriter *rw, ir_op *op, bool *changed) {
  int64_t dim = ir_m_get_int(op, "dimension", 0);
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_operands + 1);
  uint32_t n = 0;
  if (!parts) return (rw->failed = true), opt_rewriter_status(rw);
  if (dim < 0 || dim >= op->type->rank || op->type->quant) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    ir_value v = opt_operand(op, i);
    const void *a = n ? opt_uniform(parts[n - 1]) : NULL, *b = a ? opt_uniform(v) : NULL;
    if (b && memcmp(a, b, base_dtype_bytes((base_dtype)op->type->dtype)) == 0) {
      const ir_type *t = opt_type(v);
      int64_t dims[IR_MAX_RANK];
      memcpy(dims, t->dims, t->rank * sizeof *dims);
      if (!base_add_i64(dims[dim], opt_type(parts[n - 1])->dims[dim], &dims[dim])) return 0;
      v = opt_constant_data(rw, opt_tensor(rw, (base_dtype)t->dtype, t->rank, dims), a, true);
      TRY(opt_rewriter_status(rw));
      n--;
    }
    parts[n++] = v;
  }
  if (n == op->n_operands) return 0;
  ir_value v = n == 1 ? parts[0] : opt_concatenate(rw, n, parts, dim, op->type);
  return opt_simplify_to_new(rw, op, v, changed);
}

const opt_pattern opt_fold_patterns[] = {
    {IR_OP_INVALID, fold_any},
    {IR_OP_CONCATENATE, fold_concat_splats},
    {IR_OP_IOTA, fold_iota},
    {IR_OP_REDUCE, fold_reduce_constant},
    {IR_OP_REDUCE, fold_reduce_bool},
    {IR_OP_WHILE, fold_while},
    {IR_OP_CONDITIONAL, fold_branch},
    {IR_OP_IF, fold_branch},
    {IR_OP_INVALID, NULL},
};
