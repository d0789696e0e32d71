/* stablehlo-canonicalize-dynamism: ops whose sizes are operands become those whose sizes are attributes, where the
 * operands are constants: dynamic_pad(x, 0, [1], [1], [0]) is pad with edge_padding_low = [1], and so on. Requires:
 * nothing. Preserves: result types, and ops whose sizes are not known. */
#include "refine.h"

/* Results must be static where the new op can't have a less specific type than its attributes say.
 * dynamic_broadcast_in_dim %a, dense<[2, 4]>, dims = [1] : -> tensor<2x4xf32> becomes broadcast_in_dim %a, dims =
 * [1]; of type tensor<?x4xf32> it would stay, as broadcast_in_dim can't be dynamic. */
static bool dynamism_is_static(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic;
}

/* An op of `opcode` in the place of op, with its first n operands, its type and its attributes but `gone`. */
static ir_value dynamism_make(opt_rewriter *rw, ir_op *op, ir_opcode opcode, uint32_t n, const char *const *gone) {
  ir_value operands[3];
  assert(n <= 3);
  for (uint32_t i = 0; i < n; i++) operands[i] = opt_operand(op, i);
  ir_value v = opt_make(rw, opcode, op->type, n, operands);
  if (!v.op) return v;
  ir_set_mlir(v.op, op->mlir);
  for (; *gone; gone++)
    if (ir_mattr_of(v.op, *gone)) rw->failed = rw->failed || !ir_m_set(v.op, *gone, NULL);
  return v;
}

/* The replacement has the op's own type, so users need no change. */
static int dynamism_done(opt_rewriter *rw, ir_op *op, ir_value v, bool *changed) {
  assert(op->n_results == 1);
  TRY(opt_rewriter_status(rw));
  opt_replace_one(rw, op, v);
  *changed = true;
  return opt_rewriter_status(rw);
}

/* Operand i as integers, if it is a constant. */
static bool dynamism_ints(opt_rewriter *rw, ir_op *op, uint32_t i, const int64_t **v, uint32_t *n) {
  assert(i < op->n_operands);
  return opt_constant_ints(rw, opt_operand(op, i), v, n);
}

/* The sizes are in the result type; that the operand is constant shows that they agree. */
static int dynamism_broadcast(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {"known_expanding_dimensions", "known_nonexpanding_dimensions", NULL};
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  if (!dynamism_is_static(ir_operand_type(op, 0)) || !dynamism_is_static(op->type)) return 0;
  if (!dynamism_ints(rw, op, 1, &sizes, &n)) return opt_rewriter_status(rw);
  return dynamism_done(rw, op, dynamism_make(rw, op, IR_OP_BROADCAST, 1, gone), changed);
}

/* The shape operand goes: the result type says the same. */
static int dynamism_reshape(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {NULL};
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  if (!dynamism_is_static(op->type) || !dynamism_ints(rw, op, 1, &sizes, &n)) return opt_rewriter_status(rw);
  return dynamism_done(rw, op, dynamism_make(rw, op, IR_OP_RESHAPE, 1, gone), changed);
}

/* As for reshapes. */
static int dynamism_iota(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {NULL};
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  if (!dynamism_is_static(op->type) || !dynamism_ints(rw, op, 0, &sizes, &n)) return opt_rewriter_status(rw);
  return dynamism_done(rw, op, dynamism_make(rw, op, IR_OP_IOTA, 0, gone), changed);
}

/* Padding is a flat list of pairs in the operand, n x 2 in the attribute. */
static int dynamism_conv(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {"padding", NULL};
  const int64_t *padding = NULL;
  uint32_t n = 0;
  if (!dynamism_ints(rw, op, 2, &padding, &n)) return opt_rewriter_status(rw);
  ir_value v = dynamism_make(rw, op, IR_OP_CONVOLUTION, 2, gone);
  assert(n % 2 == 0);
  opt_set(rw, v, "padding", ir_m_dense_i64(rw->m, 2, (int64_t[]){n / 2, 2}, padding));
  return dynamism_done(rw, op, v, changed);
}

/* slice_sizes, operand 2, becomes an attribute. */
int opt_static_gather(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {NULL};
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  if (!dynamism_ints(rw, op, 2, &sizes, &n)) return opt_rewriter_status(rw);
  ir_value v = dynamism_make(rw, op, IR_OP_GATHER, 2, gone);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, n, sizes));
  return dynamism_done(rw, op, v, changed);
}

/* Operands 2 to 4: low, high, interior. */
int opt_static_pad(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {NULL};
  static const char *const names[] = {"edge_padding_low", "edge_padding_high", "interior_padding"};
  const int64_t *sizes[3] = {NULL};
  uint32_t n[3] = {0};
  for (uint32_t i = 0; i < 3; i++)
    if (!dynamism_ints(rw, op, 2 + i, &sizes[i], &n[i])) return opt_rewriter_status(rw);
  ir_value v = dynamism_make(rw, op, IR_OP_PAD, 2, gone);
  for (uint32_t i = 0; i < 3; i++) opt_set(rw, v, names[i], ir_m_i64s(rw->m, n[i], sizes[i]));
  return dynamism_done(rw, op, v, changed);
}

/* --- real_dynamic_slice --- */

/* Operands 1 to 3: starts, limits, strides. */
int opt_static_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  static const char *const gone[] = {NULL};
  static const char *const names[] = {"start_indices", "limit_indices", "strides"};
  const int64_t *v[3] = {NULL};
  uint32_t n[3] = {0};
  for (uint32_t i = 0; i < 3; i++)
    if (!dynamism_ints(rw, op, 1 + i, &v[i], &n[i])) return opt_rewriter_status(rw);
  ir_value slice = dynamism_make(rw, op, IR_OP_SLICE, 1, gone);
  for (uint32_t i = 0; i < 3; i++) opt_set(rw, slice, names[i], ir_m_i64s(rw->m, n[i], v[i]));
  return dynamism_done(rw, op, slice, changed);
}

/* limit = start + constant with strides of 1: the sizes are known, wherever it starts. */
static bool dynamism_slice_sizes(opt_rewriter *rw, ir_op *op, const int64_t **sizes, uint32_t *n) {
  const ir_op *add = ir_operand(op, 2);
  const int64_t *strides = NULL;
  uint32_t n_strides = 0;
  if (add->opcode != IR_OP_ADD || !dynamism_ints(rw, op, 3, &strides, &n_strides)) return false;
  for (uint32_t i = 0; i < n_strides; i++)
    if (strides[i] != 1) return false;
  ir_value start = opt_operand(op, 1);
  for (uint32_t i = 0; i < 2; i++) {
    ir_value one = opt_operand(add, i), other = opt_operand(add, 1 - i);
    if (one.op == start.op && one.index == start.index && opt_constant_ints(rw, other, sizes, n)) return true;
  }
  return false;
}

/* Starts at run time, sizes known: a dynamic_slice, whose starts are scalars. */
int opt_static_dynamic_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  ir_value operands[IR_MAX_RANK + 1];
  if (!dynamism_slice_sizes(rw, op, &sizes, &n) || n > IR_MAX_RANK) return opt_rewriter_status(rw);
  ir_value start = opt_operand(op, 1);
  if (opt_type(start)->text) return 0; /* slices don't take tensors of index */
  const ir_type *scalar = opt_tensor(rw, (base_dtype)opt_type(start)->dtype, 0, NULL);
  operands[0] = opt_operand(op, 0);
  for (uint32_t i = 0; i < n; i++) {
    ir_value one = opt_slice(rw, start, (int64_t[]){i}, (int64_t[]){i + 1}, (int64_t[]){1});
    operands[i + 1] = opt_reshape(rw, one, scalar);
  }
  ir_value v = opt_make(rw, IR_OP_DYNAMIC_SLICE, op->type, n + 1, operands);
  if (v.op) ir_set_mlir(v.op, op->mlir);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, n, sizes));
  return dynamism_done(rw, op, v, changed);
}

/* --- custom calls --- */

/* Whether the operand is one that says a result's shape. */
static bool dynamism_is_shape(const opt_shapes *s, uint32_t operand) {
  for (uint32_t i = 0; i < s->n; i++)
    if (s->operands[i] == operand) return true;
  return false;
}

/* Every shape operand stands for a result, whose type must say it all. */
static bool dynamism_results_static(const ir_op *op, const opt_shapes *s) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (!dynamism_is_shape(s, i)) continue;
    if (result >= op->n_results || !dynamism_is_static(op->types[result++])) return false;
  }
  return true;
}

/* operand_layouts has an entry for each operand, so those of shape operands go too. */
static void dynamism_layouts(opt_rewriter *rw, ir_op *op, const opt_shapes *s) {
  const ir_mattr *a = ir_mattr_of(op, "operand_layouts");
  if (!a || a->kind != IR_M_ARRAY || a->v.list->n != op->n_operands) return;
  const ir_mattr **kept = BASE_ARRAY(&rw->arena, const ir_mattr *, (size_t)op->n_operands + 1);
  uint32_t n = 0;
  for (uint32_t i = 0; kept && i < op->n_operands; i++)
    if (!dynamism_is_shape(s, i)) kept[n++] = a->v.list->v[i];
  opt_set(rw, (ir_value){op, 0}, "operand_layouts", kept ? ir_m_array(rw->m, n, kept) : NULL);
}

/* Shape operands are only for refinement: once all results are static nothing needs them. */
static int dynamism_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  opt_shapes shapes;
  bool known = false;
  TRY(opt_shapes_of(rw, op, &shapes, &known));
  if (!known || !dynamism_results_static(op, &shapes)) return 0;
  dynamism_layouts(rw, op, &shapes);
  for (uint32_t i = op->n_operands; i-- > 0;) {
    if (!dynamism_is_shape(&shapes, i)) continue;
    opt_enqueue(rw, ir_operand(op, i));
    ir_operand_remove(op, i);
  }
  rw->failed = rw->failed || !ir_m_set(op, "indices_of_shape_operands", NULL);
  *changed = true;
  return opt_rewriter_status(rw);
}

int opt_canonicalize_dynamism(ir_module *m, const opt_args *args, xlac_error *err) {
  static const opt_pattern patterns[] = {
      {IR_OP_CUSTOM_CALL, dynamism_custom_call},
      {IR_OP_DYNAMIC_BROADCAST_IN_DIM, dynamism_broadcast},
      {IR_OP_DYNAMIC_CONV, dynamism_conv},
      {IR_OP_DYNAMIC_GATHER, opt_static_gather},
      {IR_OP_DYNAMIC_IOTA, dynamism_iota},
      {IR_OP_DYNAMIC_PAD, opt_static_pad},
      {IR_OP_STABLEHLO_DYNAMIC_RESHAPE, dynamism_reshape},
      {IR_OP_REAL_DYNAMIC_SLICE, opt_static_slice},
      {IR_OP_REAL_DYNAMIC_SLICE, opt_static_dynamic_slice},
  };
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, sizeof patterns / sizeof *patterns, patterns);
  opt_rewriter_free(&rw);
  return status;
}
