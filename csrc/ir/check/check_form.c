/* What an op of its opcode needs to be made at all, as XLA's readers have it: what is read from a message keeps to it
 * as what is read from text does, so that its print reads back. Everything else is the verifier's. */
#include "check.h"

static int form_wrong_count(const ir_op *op, xlac_error *err, const char *expected) {
  return base_fail(err, XLAC_E_SYNTAX, "%s has %s, found %u", ir_opcode_text(op->opcode), expected, op->n_operands);
}

static int form_bad_attr(const ir_op *op, xlac_error *err, const char *what) {
  return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "%s %s", ir_opcode_text(op->opcode), what);
}

static int form_check_tuple(const ir_op *op, xlac_error *err) {
  if (!op->type) return 0;
  if (!ir_is_tuple(op->type)) return base_fail(err, XLAC_E_SYNTAX, "the result of tuple is a tuple");
  if (op->type->n_elements == op->n_operands) return 0;
  return base_fail(err, XLAC_E_SYNTAX, "the tuple type has %u elements, but there are %u operands",
                   op->type->n_elements, op->n_operands);
}

static int form_check_element(const ir_op *op, xlac_error *err) {
  assert(op->n_operands == 1);
  const ir_type *t = ir_operand_type(op, 0);
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  if (!ir_is_tuple(t)) return 0; /* for the verifier */
  if (index >= 0 && index < t->n_elements) return 0;
  return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "index %lld of a tuple of %u elements", (long long)index, t->n_elements);
}

static int form_check_slice(const ir_op *op, xlac_error *err) {
  uint32_t before = op->opcode == IR_OP_DYNAMIC_SLICE ? 1 : 2, n = op->n_operands;
  if (n < before) return form_wrong_count(op, err, before == 1 ? "at least one operand" : "at least two operands");
  const ir_type *t = ir_operand_type(op, 0);
  bool vector = n == before + 1 && ir_is_tensor(ir_operand_type(op, before)) && ir_operand_type(op, before)->rank == 1;
  if (vector || (ir_is_tensor(t) && n == before + t->rank)) return 0;
  return form_wrong_count(op, err, "one start index for each dimension, or one vector of them,");
}

static int form_check_conditional(const ir_op *op, xlac_error *err) {
  if (op->n_called > 0 && op->n_operands == op->n_called + 1) return 0;
  return base_fail(err, XLAC_E_SYNTAX,
                   "a conditional of %u branches has one operand for each after the first, found %u", op->n_called,
                   op->n_operands);
}

static int form_check_constraints(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
  if (!a) return 0;
  if (a->v.types->n != op->n_operands)
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "%u operand layout constraints for %u operands", a->v.types->n,
                     op->n_operands);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (ir_compatible(a->v.types->v[i], ir_operand_type(op, i))) continue;
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE,
                     "the layout constraint of operand %u has another shape than the operand", i);
  }
  return 0;
}

static int form_check_all_reduce(const ir_op *op, xlac_error *err) {
  if (!ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false) || ir_attr_find(op, IR_ATTR_CHANNEL_ID)) return 0;
  return form_bad_attr(op, err, "with use_global_device_ids needs a channel_id");
}

static int form_check_scan(const ir_op *op, xlac_error *err) {
  assert(op->n_called == 1);
  int64_t carries = ir_get_int(op, IR_ATTR_NUM_CARRIES, 0);
  if (op->called[0]->n_params != op->n_operands)
    return base_fail(err, XLAC_E_SYNTAX, "scan has %u operands, but its computation %u parameters", op->n_operands,
                     op->called[0]->n_params);
  if (carries < 0 || carries > op->n_operands) return form_bad_attr(op, err, "has more carries than operands");
  return 0;
}

/* Attributes that are lists in the text but name one dimension. */
static bool form_has_one_dimension(unsigned opcode) {
  switch ((ir_opcode)opcode) {
    case IR_OP_CONCATENATE:
    case IR_OP_ALL_GATHER:
    case IR_OP_ALL_GATHER_START:
    case IR_OP_ALL_TO_ALL:
    case IR_OP_REDUCE_SCATTER:
    case IR_OP_SORT:
    case IR_OP_GET_DIMENSION_SIZE:
    case IR_OP_SET_DIMENSION_SIZE:
    case IR_OP_SCAN:
      return true;
    default:
      return false;
  }
}

static int form_check_replication(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PARAMETER_REPLICATION);
  if (!a) return 0;
  if (op->opcode != IR_OP_PARAMETER)
    return form_bad_attr(op, err, "is not a parameter and has no parameter_replication");
  uint32_t leaves = ir_type_leaves(op->type);
  if (a->v.ints->n == leaves) return 0;
  return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "parameter_replication has %u entries for a shape of %u leaves",
                   a->v.ints->n, leaves);
}

/* Edges may be cropped, but nothing is taken from between elements. */
static int form_check_pad(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_PADDING);
  bool some = op->n_operands > 0 && ir_is_tensor(ir_operand_type(op, 0)) && ir_operand_type(op, 0)->rank > 0;
  if (a && a->v.padding->n == 0 && some) return form_bad_attr(op, err, "has no padding for any dimension");
  for (uint32_t i = 0; a && i < a->v.padding->n; i++)
    if (a->v.padding->v[i].interior < 0) return form_bad_attr(op, err, "has interior padding that is negative");
  return 0;
}

/* The reader of text gives add-dependency the type of its operand. */
static int form_check_dependency(const ir_op *op, xlac_error *err) {
  if (op->n_operands != 2) return 0; /* for the verifier */
  if (!op->type || ir_compatible(op->type, ir_operand_type(op, 0))) return 0;
  return base_fail(err, XLAC_E_SYNTAX, "add-dependency has its operand's shape %s, not %s",
                   IR_SHOW(ir_operand_type(op, 0)), IR_SHOW(op->type));
}

/* ((operands...), outputs, contexts...), which an update hands on as it is. */
static int form_check_async(const ir_op *op, xlac_error *err) {
  const ir_type *t = op->type;
  if (!ir_is_start_type(t))
    return base_fail(err, XLAC_E_SYNTAX, "an async start's shape is ((operands...), outputs, contexts...), not %s",
                     t ? IR_SHOW(t) : "nothing");
  if (op->opcode != IR_OP_ASYNC_UPDATE || op->n_operands != 1) return 0;
  if (ir_compatible(t, ir_operand_type(op, 0))) return 0;
  return base_fail(err, XLAC_E_SYNTAX, "an async update has its operand's shape %s, not %s",
                   IR_SHOW(ir_operand_type(op, 0)), IR_SHOW(t));
}

static int form_check_by_opcode(const ir_op *op, xlac_error *err) {
  switch ((ir_opcode)op->opcode) {
    case IR_OP_TUPLE:
      return form_check_tuple(op, err);
    case IR_OP_GET_TUPLE_ELEMENT:
      return form_check_element(op, err);
    case IR_OP_CONDITIONAL:
      return form_check_conditional(op, err);
    case IR_OP_CUSTOM_CALL:
      return form_check_constraints(op, err);
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
      return form_check_slice(op, err);
    case IR_OP_REDUCE:
    case IR_OP_REDUCE_WINDOW:
      return op->n_operands >= 2 && op->n_operands % 2 == 0
                 ? 0
                 : form_wrong_count(op, err, "inputs and as many initial values");
    case IR_OP_SCATTER:
      return op->n_operands >= 3 && op->n_operands % 2 == 1
                 ? 0
                 : form_wrong_count(op, err, "inputs, indices and as many updates as inputs");
    case IR_OP_DYNAMIC_RESHAPE:
    case IR_OP_SORT:
    case IR_OP_CONCATENATE:
      return op->n_operands ? 0 : form_wrong_count(op, err, "at least one operand");
    case IR_OP_ALL_REDUCE:
    case IR_OP_ALL_REDUCE_START:
    case IR_OP_REDUCE_SCATTER:
      return form_check_all_reduce(op, err);
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
      return ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES) && op->n_operands != 4
                 ? form_wrong_count(op, err, "four operands where slice_sizes are given")
                 : 0;
    case IR_OP_SCAN:
      return form_check_scan(op, err);
    case IR_OP_PAD:
      return form_check_pad(op, err);
    case IR_OP_ADD_DEPENDENCY:
      return form_check_dependency(op, err);
    case IR_OP_ASYNC_START:
    case IR_OP_ASYNC_UPDATE:
      return form_check_async(op, err);
    default:
      return 0;
  }
}

int ir_check_form(const ir_op *op, xlac_error *err) {
  if (form_has_one_dimension(op->opcode)) {
    const ir_attr *a = ir_attr_find(op, IR_ATTR_DIMENSIONS);
    if (a && a->v.ints->n != 1) return form_bad_attr(op, err, "works on one dimension: dimensions={n}");
  }
  TRY(form_check_replication(op, err));
  return form_check_by_opcode(op, err);
}

/* --- symbols --- */

/* NULL: what is not a symbol, or has no name. */
static const base_istr *form_symbol_name(const ir_computation *c) {
  if (c->owner) return NULL;
  if (c->kind == IR_FUNCTION) return c->name;
  if (c->kind != IR_SYMBOL || !c->first) return NULL;
  const ir_mattr *name = ir_mattr_of(c->first, "sym_name");
  return name && name->kind == IR_M_STRING ? name->str : NULL;
}

static int form_note_symbol(const ir_computation *c, base_map *seen, xlac_error *err) {
  const base_istr *name = form_symbol_name(c);
  if (!name) return 0;
  if (base_map_ptr(seen, name)) {
    const ir_op *at = c->kind == IR_SYMBOL ? c->first : NULL;
    return base_fail_at(err, XLAC_E_DUPLICATE_NAME, at ? at->line : c->line, at ? at->col : c->col, name->s,
                        "redefinition of symbol named '%s'", name->s);
  }
  return base_map_set(seen, base_key(name), base_key(c)) ? 0 : base_oom(err, "the symbols' names");
}

int ir_check_symbols(const ir_module *m, xlac_error *err) {
  assert(m->form == IR_FORM_MLIR);
  base_map seen;
  base_map_init(&seen, m->alloc);
  int status = 0;
  for (const ir_computation *c = m->first; c && status == 0; c = c->next) status = form_note_symbol(c, &seen, err);
  base_map_free(&seen);
  return status;
}
