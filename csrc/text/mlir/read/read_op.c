/* Ops coming into being, and their generic form.
 *
 *   %1:2 = "stablehlo.optimization_barrier"(%0, %c) <{properties}> ({ region }) {attributes} : (t, t) -> (t, t)
 * loc(...) When an op's parts have been read, whatever the form, mlir_finish_op checks them against the op's row, makes
 * the op and takes the parts off the stacks. What is checked here is what MLIR checks with the op's definition (ODS);
 * verify/ does the rest, as the ops' verifiers do. */
#include "../../../ir/sdy/sdy.h"
#include "../../../ir/stablehlo/stablehlo.h"
#include "../../../base/plural.h"
#include "read.h"

/* ---- What is checked of every op while it is made: counts, inherent attributes, types of uses. */

/* IR_VARIADIC takes any number. */
static bool mlir_count_fits(int8_t wanted, uint32_t n) {
  return wanted == IR_VARIADIC || (uint32_t)wanted == n;
}

/* The op's full name, for messages: "stablehlo.add". */
const char *mlir_op_name(const mlir_op_state *s) {
  return s->opcode == IR_OP_UNREGISTERED ? s->unregistered->s : ir_op_table[s->opcode].mlir->name;
}

/*   'stablehlo.add' op requires 2 operands, but found 1 */
int mlir_check_counts(mlir_reader *r, const mlir_op_state *s, uint32_t n_regions) {
  assert(s->opcode < IR_OP_COUNT);
  const ir_mlir_info *info = ir_op_table[s->opcode].mlir;
  if (!info) return 0;
  static const char *const words[] = {"operand", "result", "region"};
  int8_t wanted[] = {info->operands, info->results, info->regions};
  uint32_t found[] = {s->n_values, s->n_results, n_regions};
  for (int i = 0; i < 3; i++)
    if (!mlir_count_fits(wanted[i], found[i]))
      return mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "'%s' op requires %d %s%s, but found %u", info->name,
                       wanted[i], words[i], base_plural(wanted[i]), found[i]);
  return 0;
}

/* ODS' own summary of the constraint, as MLIR's messages have it. */
static const char *mlir_constraint_text(const ir_mattr_spec *spec) {
  assert(spec->constraint <= IR_MC_SDY);
  static const char *const texts[] = {
      [IR_MC_I64] = "64-bit signless integer attribute",
      [IR_MC_I32] = "32-bit signless integer attribute",
      [IR_MC_F32] = "32-bit float attribute",
      [IR_MC_BOOL] = "bool attribute",
      [IR_MC_UNIT] = "unit attribute",
      [IR_MC_STRING] = "string attribute",
      [IR_MC_SYMBOL] = "flat symbol reference attribute",
      [IR_MC_SYMBOLS] = "flat symbol ref array attribute",
      [IR_MC_I64S] = "i64 dense array attribute",
      [IR_MC_BOOLS] = "i1 dense array attribute",
      [IR_MC_DENSE_I64] = "64-bit signless integer elements attribute",
      [IR_MC_ELEMENTS] = "constant vector/tensor attribute",
      [IR_MC_DICT] = "dictionary of named attribute values",
      [IR_MC_ARRAY] = "array attribute",
      [IR_MC_STRING_OR_DICT] = "string attribute or dictionary of named attribute values",
      [IR_MC_TYPED] = "typed attribute",
      [IR_MC_ENUM] = "enum attribute",
      [IR_MC_PRECISIONS] = "Precision Config attribute",
      [IR_MC_STRUCT] = "structured attribute",
      [IR_MC_GROUPS] = "replica groups attribute",
      [IR_MC_LAYOUTS] = "Array of layout (1D tensor of index type) attributes",
      [IR_MC_TILINGS] = "Array of tiling attributes",
      [IR_MC_ALIASES] = "Aliasing attribute for outputs and operands of CustomCall",
      [IR_MC_SDY] = "attribute of the dialect sdy"};
  return texts[spec->constraint];
}

/* Errors about an attribute of the pretty form point at the dictionary, where there is one. */
static int mlir_check_attr(mlir_reader *r, const mlir_op_state *s, const ir_mattr_spec *spec, const ir_mattr *a) {
  if (!a && !(spec->flags & IR_REQUIRED)) return 0;
  const char *op = mlir_op_name(s);
  if (!a) return mlir_fail(r, s->at, XLAC_E_BAD_ATTRIBUTE, "'%s' op requires attribute '%s'", op, spec->name);
  bool holds = stablehlo_attr_is_of(spec, a);
  const char *lacks = holds ? ir_mattr_spec_lacks(spec, a) : NULL;
  if (holds && !lacks) return 0;
  return mlir_fail(r, s->dict ? s->dict : s->at, XLAC_E_BAD_ATTRIBUTE,
                   "'%s' op attribute '%s' failed to satisfy constraint: %s%s%s", op, spec->name,
                   mlir_constraint_text(spec), lacks ? " whose value is " : "", lacks ? lacks : "");
}

/* Those that the op's row names: there if they must be, and of their kind. */
int mlir_check_attrs(mlir_reader *r, const mlir_op_state *s, const ir_mdict *d) {
  const ir_mlir_info *info = ir_op_table[s->opcode].mlir;
  if (!info) return 0;
  for (const ir_mattr_spec *spec = info->attrs; spec && spec->name; spec++)
    TRY(mlir_check_attr(r, s, spec, ir_mdict_get(d, spec->name)));
  return 0;
}

/* Types are interned: the same type is the same pointer. */
int mlir_check_operand_types(mlir_reader *r, const mlir_op_state *s, uint32_t from, uint32_t n) {
  if (n != s->n_values)
    return mlir_fail(r, s->types_at ? s->types_at : s->at, XLAC_E_VERIFY_OPERANDS,
                     "'%s' op has %u operands, but %u operand types", mlir_op_name(s), s->n_values, n);
  for (uint32_t i = 0; i < n; i++) {
    assert(s->values + i < r->values.n && from + i < r->types.n);
    ir_value v = r->values.items[s->values + i];
    const ir_type *have = v.op->types[v.index], *want = r->types.items[from + i];
    if (have == want) continue;
    base_text text;
    base_text_init(&text, r->alloc);
    text_put_mlir_type(&text, want);
    BASE_PUT(&text, " against ");
    text_put_mlir_type(&text, have);
    const char *shown = base_text_cstr(&text);
    int status =
        mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "use of value '%%%s' expects different type than prior uses: %s",
                  v.op->name->s, shown ? shown : "");
    base_text_free(&text);
    return status;
  }
  return 0;
}

/* Older texts give array<i64> attributes as dense<> tensors of rank 1. */
static int mlir_modernise(mlir_reader *r, const mlir_op_state *s) {
  for (uint32_t i = s->entries; i < r->entries.n; i++) {
    ir_mentry *e = &r->entries.items[i];
    const ir_mattr_spec *spec = ir_mattr_spec_find(s->opcode, e->key->s, e->key->n);
    if (!spec || (spec->constraint != IR_MC_I64S && spec->constraint != IR_MC_BOOLS)) continue;
    if (e->value->kind != IR_M_DENSE || e->value->type->rank != 1) continue;
    uint32_t n;
    const int64_t *v = ir_m_ints(e->value, &r->m->arena, &n);
    if (!v) continue;
    e->value = spec->constraint == IR_MC_I64S ? ir_m_i64s(r->m, n, v) : ir_m_bools(r->m, n, v);
    if (!e->value) return mlir_no_memory(r);
  }
  return 0;
}

/* --- making the op --- */

/* The regions wait on the stack in the order in which they were written. */
static void mlir_adopt_regions(mlir_reader *r, const mlir_op_state *s, ir_op *op) {
  assert(r->regions.n == s->regions + op->n_called);
  for (uint32_t i = 0; i < op->n_called; i++) {
    op->called[i] = r->regions.items[s->regions + i];
    op->called[i]->owner = op;
  }
  r->regions.n = s->regions;
}

/* The form and the dictionary after it may both give an attribute. */
static int mlir_check_keys(mlir_reader *r, const mlir_op_state *s, const ir_mdict *d) {
  for (uint32_t i = 1; d && i < d->n; i++)
    if (d->v[i].key == d->v[i - 1].key)
      return mlir_fail(r, s->at, XLAC_E_BAD_ATTRIBUTE, "'%s' op has attribute '%s' twice", mlir_op_name(s),
                       d->v[i].key->s);
  return 0;
}

/* From here on the op is part of c, and its name can be bound to its results. */
int mlir_finish_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, ir_op **out) {
  assert(c && r->values.n >= s->values + s->n_values && r->regions.n >= s->regions);
  uint32_t n_regions = r->regions.n - s->regions;
  TRY(mlir_check_counts(r, s, n_regions));
  TRY(mlir_modernise(r, s));
  const ir_mdict *d;
  TRY(mlir_take_dict(r, s->entries, &d));
  TRY(mlir_check_keys(r, s, d));
  TRY(mlir_check_attrs(r, s, d));
  if (s->n_results > UINT16_MAX) return mlir_fail(r, s->at, XLAC_E_TOO_LARGE, "an op of %u results", s->n_results);
  const base_istr *name = s->name ? s->name : ir_intern(r->m, "op", 2);
  ir_op *op = name ? ir_op_new_n(c, s->opcode, s->n_results, s->result_types, name, s->n_values, n_regions) : NULL;
  if (!op) return mlir_no_memory(r);
  for (uint32_t i = 0; i < s->n_values; i++) ir_set_operand(op, i, r->values.items[s->values + i]);
  r->values.n = s->values;
  r->types.n = s->types;
  mlir_adopt_regions(r, s, op);
  op->mlir = d;
  op->loc = s->loc;
  op->properties = s->properties;
  if (s->unregistered) op->u.name = s->unregistered;
  text_where(&r->lx, s->at, &op->line, &op->col);
  *out = op;
  return 0;
}

/* --- the generic form --- */

/* No operands: "()". */
int mlir_read_operand_list(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do TRY(mlir_read_operand(r));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

/*   ({ ... }, { ... }) */
static int mlir_read_region_list(mlir_reader *r, bool isolated) {
  if (!mlir_eat(r, "(")) return 0;
  do TRY(mlir_read_region(r, isolated));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

/*   : (tensor<f32>) -> tensor<f32> */
int mlir_read_generic_type(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  uint32_t from = r->types.n, inputs, results;
  const char *at = r->lx.p;
  if (*at != '(') return mlir_expected(r, "function type");
  s->types_at = at;
  TRY(mlir_read_function_type(r, &inputs, &results));
  TRY(mlir_check_operand_types(r, s, from, inputs));
  TRY(mlir_set_results(r, s, results, r->types.items + from + inputs));
  r->types.n = from;
  return 0;
}

/* Properties may also stand in the dictionary behind the regions, as before MLIR had properties. */
int mlir_read_generic(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_operand_list(r, s));
  if (mlir_eat(r, "[")) return mlir_fail(r, s->at, XLAC_E_SYNTAX, "ops with successor blocks are not supported");
  if (mlir_eat(r, "<")) {
    s->properties = true;
    TRY(mlir_read_entries(r));
    TRY(mlir_want(r, ">"));
  }
  TRY(mlir_read_region_list(r, s->opcode == IR_OP_SCAN));
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  return mlir_read_generic_type(r, s);
}
