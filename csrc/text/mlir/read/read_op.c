/* Ops coming into being, and their generic form. */
#include "read.h"

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

static void mlir_adopt_regions(mlir_reader *r, const mlir_op_state *s, ir_op *op) {
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

int mlir_finish_op(mlir_reader *r, mlir_op_state *s, ir_computation *c, ir_op **out) {
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

static int mlir_read_region_list(mlir_reader *r, bool isolated) {
  if (!mlir_eat(r, "(")) return 0;
  do TRY(mlir_read_region(r, isolated));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

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
