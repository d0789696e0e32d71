/* stablehlo-ext-canonicalize-from-hlo-import: custom calls take and give tensors, not tuples of them; tuples that are
 * only packed and unpacked go; reshapes to the same type go; loops read from outside what they only pass on. Nothing is
 * computed.
 * Requires: nothing. Preserves: what the program computes. Source: XLA's pass of that name. */
#include "../simplify/mlir_simplify.h"

enum { TIDY_LEAVES = 4096, TIDY_DEPTH = 64 };

typedef struct tidy_leaves {
  opt_rewriter *rw;
  uint32_t n;
  ir_value *values;      /* or NULL: types only */
  const ir_type **types; /* or NULL */
} tidy_leaves;

static bool tidy_add(tidy_leaves *x, const ir_type *type, ir_value v) {
  if (x->n == TIDY_LEAVES) return false;
  if (x->values) x->values[x->n] = v;
  if (x->types) x->types[x->n] = type;
  x->n++;
  return true;
}

/* The tensors of a type, those of a value of it taken out. False: too many, or too deep. */
static bool tidy_flatten(tidy_leaves *x, const ir_type *type, ir_value v, uint32_t depth) {
  if (type->kind != IR_TYPE_TUPLE) return tidy_add(x, type, v);
  if (depth == TIDY_DEPTH) return false;
  for (uint32_t i = 0; i < type->n_elements; i++) {
    ir_value part = v;
    if (x->values) {
      part = opt_make(x->rw, IR_OP_GET_TUPLE_ELEMENT, type->elements[i], 1, &v);
      opt_set(x->rw, part, "index", ir_m_i32(x->rw->m, i));
      if (!part.op) return false;
    }
    if (!tidy_flatten(x, type->elements[i], part, depth + 1)) return false;
  }
  return true;
}

/* The tuple of `type` made of values from *at on. */
static ir_value tidy_pack(opt_rewriter *rw, const ir_type *type, ir_op *from, uint32_t *at) {
  if (type->kind != IR_TYPE_TUPLE) return (ir_value){from, (*at)++};
  ir_value *parts = BASE_ARRAY(&rw->arena, ir_value, (size_t)type->n_elements + 1);
  if (!parts) return (rw->failed = true), (ir_value){NULL, 0};
  for (uint32_t i = 0; i < type->n_elements; i++) parts[i] = tidy_pack(rw, type->elements[i], from, at);
  return opt_make(rw, IR_OP_TUPLE, type, type->n_elements, parts);
}

static bool tidy_has_tuple(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (ir_operand_type(op, i)->kind == IR_TYPE_TUPLE) return true;
  return op->n_results == 1 && op->type->kind == IR_TYPE_TUPLE;
}

static int tidy_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  if (!tidy_has_tuple(op) || op->n_called) return 0;
  tidy_leaves in = {.rw = rw, .values = BASE_ARRAY(&rw->arena, ir_value, TIDY_LEAVES)};
  tidy_leaves out = {.rw = rw, .types = BASE_ARRAY(&rw->arena, const ir_type *, TIDY_LEAVES)};
  if (!in.values || !out.types) return (rw->failed = true), opt_rewriter_status(rw);
  for (uint32_t i = 0; i < op->n_results; i++)
    if (!tidy_flatten(&out, op->types[i], (ir_value){op, i}, 0)) return 0;
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!tidy_flatten(&in, ir_operand_type(op, i), opt_operand(op, i), 0)) return opt_rewriter_status(rw);
  ir_op *to = opt_make_n(rw, IR_OP_CUSTOM_CALL, out.n, out.types, in.n, in.values, 0);
  ir_value *results = BASE_ARRAY(&rw->arena, ir_value, (size_t)op->n_results + 1);
  if (!to || !results) return (rw->failed = true), opt_rewriter_status(rw);
  to->mlir = op->mlir;
  uint32_t at = 0;
  for (uint32_t i = 0; i < op->n_results; i++) results[i] = tidy_pack(rw, op->types[i], to, &at);
  TRY(opt_rewriter_status(rw));
  opt_replace_op(rw, op, results);
  *changed = true;
  return opt_rewriter_status(rw);
}

static int tidy_reshape(opt_rewriter *rw, ir_op *op, bool *changed) {
  return ir_operand_type(op, 0) == op->type ? opt_simplify_into(rw, op, opt_operand(op, 0), changed) : 0;
}

int opt_tidy_import(ir_module *m, const opt_args *args, xlac_error *err) {
  static const opt_pattern own[] = {{IR_OP_CUSTOM_CALL, tidy_custom_call}, {IR_OP_RESHAPE, tidy_reshape}};
  opt_pattern all[32] = {own[0], own[1]};
  uint32_t n = 2;
  opt_rewriter rw;
  (void)args;
  for (const opt_pattern *p = opt_region_patterns; p->fn; p++) {
    if (p->opcode != IR_OP_WHILE && p->opcode != IR_OP_TUPLE && p->opcode != IR_OP_GET_TUPLE_ELEMENT) continue;
    assert(n < sizeof all / sizeof *all);
    all[n++] = *p;
  }
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, n, all);
  opt_rewriter_free(&rw);
  return status;
}
