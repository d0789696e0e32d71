/* "reduce(%0 init: %1) applies stablehlo.add across dimensions = [0]", and the same with a written reducer. */
#include "read_custom.h"

/* The inits of "(%a init: %b), (%c init: %d)" come after all inputs: they wait on the stack of values above `inputs`.
 */
static int mlir_read_reduce_operands(mlir_reader *r, mlir_op_state *s) {
  uint32_t n = 0;
  do {
    TRY(mlir_want(r, "("));
    TRY(mlir_read_operand(r));
    TRY(mlir_want_word(r, "init"));
    TRY(mlir_want(r, ":"));
    TRY(mlir_read_operand(r));
    TRY(mlir_want(r, ")"));
    n++;
  } while (mlir_eat(r, ","));
  ir_value *v = r->values.items + s->values;
  ir_value *inits = BASE_ARRAY(&r->m->arena, ir_value, n);
  if (!inits) return mlir_no_memory(r);
  for (uint32_t i = 0; i < n; i++) inits[i] = v[2 * i + 1];
  for (uint32_t i = 0; i < n; i++) v[i] = v[2 * i];
  memcpy(v + n, inits, n * sizeof *inits);
  s->n_values = 2 * n;
  return 0;
}

/* "applies stablehlo.add": a region of that one op on scalars of the input's element type. */
static int mlir_make_applied(mlir_reader *r, mlir_op_state *s, const char *at, ir_opcode opcode) {
  if (s->n_values != 2)
    return mlir_fail(r, at, XLAC_E_SYNTAX, "'applies' reduces one operand, not %u", s->n_values / 2);
  ir_value init = r->values.items[s->values + 1];
  const ir_type *t = init.op->types[init.index],
                *input = r->values.items[s->values].op->types[r->values.items[s->values].index];
  if (ir_is_tensor(input))
    t = ir_tensor_mlir(r->m, (base_dtype)input->dtype, input->quant, input->text, 0, NULL, NULL, NULL, r->err);
  const ir_mlir_info *info = ir_op_table[opcode].mlir;
  if (info->operands != 2 || info->regions || info->attrs[0].name || !ir_opcode_has(opcode, IR_COMMUTATIVE) ||
      strncmp(info->name, "stablehlo.", 10) != 0)
    return mlir_fail(r, at, XLAC_E_SYNTAX,
                     "'%s' can't be applied: expected the inner-op to be a commutative binary-op of StableHLO, with "
                     "zero region, producing single result; others need a reducer that is written out",
                     info->name);
  ir_computation *c = mlir_new_region(r);
  const base_istr *a = ir_intern(r->m, "arg0", 4), *b = ir_intern(r->m, "arg1", 4), *name = ir_intern(r->m, "0", 1);
  if (!c || !t || !a || !b || !name) return mlir_no_memory(r);
  TRY(mlir_add_arg(r, c, NULL, a, t));
  TRY(mlir_add_arg(r, c, NULL, b, t));
  ir_op *op = ir_op_new(c, opcode, t, name, 2, 0);
  c->results = BASE_ARRAY(&r->m->arena, ir_value, 1);
  if (!op || !c->results) return mlir_no_memory(r);
  ir_set_operand(op, 0, (ir_value){c->params[0], 0});
  ir_set_operand(op, 1, (ir_value){c->params[1], 0});
  text_where(&r->lx, s->at, &op->line, &op->col);
  for (uint32_t i = 0; i < 2; i++) text_where(&r->lx, s->at, &c->params[i]->line, &c->params[i]->col);
  c->results[0] = (ir_value){op, 0};
  c->n_results = 1;
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

static int mlir_read_applied_opcode(mlir_reader *r, ir_opcode *opcode) {
  base_slice w = mlir_word(r);
  *opcode = ir_opcode_from_mlir(w.p, w.n);
  if (!*opcode) return mlir_expected(r, "an op to apply");
  mlir_skip_word(r, w);
  return 0;
}

/* "(%a: t, %b: t)" of one reduced operand: a goes among the first arguments, b among the second. */
static int mlir_read_reducer_pair(mlir_reader *r, const base_istr **names, const ir_type **types,
                                  const ir_mattr **locs) {
  TRY(mlir_want(r, "("));
  for (int i = 0; i < 2; i++) {
    if (i) TRY(mlir_want(r, ","));
    const char *p = r->lx.p + 1, *e = p;
    if (r->lx.p[0] != '%') return mlir_expected(r, "an argument such as %arg0");
    while (text_is(*e, TEXT_NAME) || *e == '$') e++;
    if (!(names[i] = ir_intern(r->m, p, (size_t)(e - p)))) return mlir_no_memory(r);
    r->lx.p = e;
    text_skip(&r->lx);
    TRY(mlir_want(r, ":"));
    TRY(mlir_read_type(r, &types[i]));
    locs[i] = NULL;
    TRY(mlir_read_trailing_loc(r, &locs[i]));
  }
  return mlir_want(r, ")");
}

static int mlir_read_reducer(mlir_reader *r, mlir_op_state *s) {
  uint32_t n = s->n_values / 2;
  const char *at = r->lx.p;
  const base_istr **names = BASE_ARRAY(&r->m->arena, const base_istr *, 2u * n);
  const ir_type **types = BASE_ARRAY(&r->m->arena, const ir_type *, 2u * n);
  const ir_mattr **locs = BASE_ARRAY(&r->m->arena, const ir_mattr *, 2u * n);
  if (!names || !types || !locs) return mlir_no_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    const base_istr *name[2];
    const ir_type *type[2];
    const ir_mattr *loc[2];
    TRY(mlir_read_reducer_pair(r, name, type, loc));
    names[i] = name[0], names[n + i] = name[1];
    types[i] = type[0], types[n + i] = type[1];
    locs[i] = loc[0], locs[n + i] = loc[1];
  }
  TRY(mlir_read_region_with(r, at, 2 * n, names, types));
  ir_computation *c = r->regions.items[r->regions.n - 1];
  for (uint32_t i = 0; i < 2 * n; i++) c->params[i]->loc = locs[i];
  return 0;
}

int mlir_read_reduce(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_reduce_operands(r, s));
  ir_opcode applied = IR_OP_INVALID;
  const char *at = r->lx.p;
  if (mlir_eat_word(r, "applies")) TRY(mlir_read_applied_opcode(r, &applied));
  TRY(mlir_want_word(r, "across"));
  const ir_mattr *dimensions;
  TRY(mlir_want_key(r, "dimensions"));
  TRY(mlir_read_bare_ints(r, false, &dimensions));
  TRY(mlir_add_attr(r, "dimensions", dimensions));
  TRY(mlir_read_own_attrs(r, s));
  TRY(mlir_read_op_type(r, s));
  if (applied) return mlir_make_applied(r, s, at, applied);
  TRY(mlir_want_word(r, "reducer"));
  return mlir_read_reducer(r, s);
}
