/* stablehlo-convert-to-signless: unsigned integers become integers of the same bits without a sign, which StableHLO's
 * text and this IR write as signed ones. For dialects that keep the sign in their ops.
 * Requires: nothing. Preserves: bits; what ops compute may change, as comparisons and divisions read a sign now. */
#include "../rewrite/rewrite.h"

static base_dtype signless_dtype(unsigned dtype) {
  static const uint8_t pairs[][2] = {{XLAC_U1, XLAC_S1},  {XLAC_U2, XLAC_S2},   {XLAC_U4, XLAC_S4},
                                     {XLAC_U8, XLAC_S8},  {XLAC_U16, XLAC_S16}, {XLAC_U32, XLAC_S32},
                                     {XLAC_U64, XLAC_S64}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    if (pairs[i][0] == dtype) return (base_dtype)pairs[i][1];
  return (base_dtype)dtype;
}

static const ir_type *signless_type(opt_rewriter *rw, const ir_type *t);

/* Tuples, futures and functions. Depth of types is bounded by their makers. */
static const ir_type *signless_parts(opt_rewriter *rw, const ir_type *t) {
  const ir_type **parts = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)t->n_elements + 1);
  bool same = true;
  if (!parts) return NULL;
  for (uint32_t i = 0; i < t->n_elements; i++) {
    parts[i] = signless_type(rw, t->elements[i]);
    if (!parts[i]) return NULL;
    same = same && parts[i] == t->elements[i];
  }
  if (same) return t;
  if (t->kind == IR_TYPE_TUPLE) return ir_tuple(rw->m, t->n_elements, parts);
  if (t->kind == IR_TYPE_FUTURE) return ir_future(rw->m, t->n_elements, parts);
  return ir_function_type(rw->m, t->n_inputs, t->n_elements - t->n_inputs, parts, parts + t->n_inputs);
}

static const ir_type *signless_type(opt_rewriter *rw, const ir_type *t) {
  if (t->kind == IR_TYPE_TUPLE || t->kind == IR_TYPE_FUTURE || t->kind == IR_TYPE_FUNCTION)
    return signless_parts(rw, t);
  base_dtype dtype = signless_dtype(t->dtype);
  if (t->quant || t->text || dtype == t->dtype) return t;
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(rw->m, dtype, NULL, NULL);
  if (!ir_is_tensor(t)) return t;
  return ir_tensor_mlir(rw->m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

/* A constant's value has the same bits; narrow integers fill their bytes with the sign. */
static void signless_value(opt_rewriter *rw, ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "value");
  bool constant = op->opcode == IR_OP_CONSTANT || op->opcode == IR_OP_CHLO_CONSTANT ||
                  (op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, "arith.constant") == 0);
  if (!constant || !a || a->kind != IR_M_DENSE || !a->v.literal) return;
  const ir_literal *from = a->v.literal;
  const ir_type *t = signless_type(rw, a->type), *of = signless_type(rw, from->type);
  if (t == a->type && of == from->type) return;
  ir_literal *l = t && of ? ir_literal_new(rw->m, of) : NULL;
  if (l) l->elided = from->elided;
  if (l && l->data && from->data)
    base_convert((base_dtype)of->dtype, l->data, (base_dtype)from->type->dtype, from->data, (size_t)of->count);
  opt_set(rw, (ir_value){op, 0}, "value", l ? ir_m_dense(rw->m, t, l, a->splat) : NULL);
}

static void signless_op(opt_rewriter *rw, ir_op *op) {
  for (uint32_t i = 0; i < op->n_results && !rw->failed; i++) {
    const ir_type *t = signless_type(rw, op->types[i]);
    rw->failed = !t;
    if (t && t != op->types[i]) opt_set_type(rw, opt_result(op, i), t);
  }
  signless_value(rw, op);
}

int opt_convert_to_signless(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->function_type) c->function_type = signless_type(&rw, c->function_type);
    rw.failed = rw.failed || (c->declaration && c->kind == IR_FUNCTION && !c->function_type);
    for (ir_op *op = c->first; op && !rw.failed; op = op->next) signless_op(&rw, op);
  }
  m->verified = IR_UNVERIFIED;
  int status = opt_rewriter_status(&rw);
  opt_rewriter_free(&rw);
  return status;
}
