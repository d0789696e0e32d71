/* Making and editing ops. What text says is read by the readers of HLO text; what an edit makes of the module as a
 * whole is for the verifier to judge, only what would break the data structure itself is refused here.
 *
 * Every edit follows one pattern: the public function takes the lock, which fails while the module is
 * being run, and passes the result of a _locked function through api_done, which unlocks. The _locked
 * function checks that each handle is live before it touches anything, so a failed edit leaves the module
 * as it was. Edits go through ir.h's functions, which count them. */
#include "../ir/names.h"
#include "../base/plural.h"
#include "api.h"

/* "%name what", with the op's place in the text. */
static int fail_edit(xlac_error *err, const ir_op *op, const char *what) {
  return base_fail_at(err, XLAC_E_EDIT, op->line, op->col, op->name->s, "%s %s", op->name->s, what);
}

int api_check_name(const char *name, const char *of, xlac_error *err) {
  TRY(api_check_text(name, "the name", err));
  size_t n = strlen(name);
  if (n < 65536 && ir_is_name(name, n) && !ir_name_is_reserved(name, n)) return 0;
  return base_hint(err, base_fail(err, XLAC_E_BAD_ARGUMENT, "'%.100s' can't be the name of %s", name, of),
                   "use letters, digits, '_', '-' and '.', beginning with a letter or '_'; names of types and of two "
                   "leading underscores are XLA's own");
}

/* An empty or missing name is made from the opcode. A name in use gets a number: names of ops are unique
 * in a module. */
static int pick_name(ir_module *ir, const char *name, ir_opcode opcode, const base_istr **out, xlac_error *err) {
  if (name && *name) TRY(api_check_name(name, "an op", err));
  *out = ir_fresh_name(ir, name && *name ? name : ir_opcode_text(opcode));
  return *out ? 0 : base_oom(err, "naming an op");
}

/* "f32[2,3]{1,0}", or a tuple "(f32[], s32[4])"; MLIR's types are not read here. */
static int parse_type(ir_module *ir, const char *text, const ir_type **out, xlac_error *err) {
  assert(ir && out);
  TRY(api_check_text(text, "the type", err));
  return text_parse_type(ir, text, strlen(text), out, err);
}

/* --- making --- */

/* What can be said before an op exists: opcode, number of operands, no NULL among the attributes. */
static int check_spec(const xlac_op_spec *spec, ir_opcode *opcode, xlac_error *err) {
  TRY(api_check_text(spec->opcode, "the opcode", err));
  for (uint32_t i = 0; i < spec->n_attrs; i++) {
    TRY(api_check_text(spec->attrs[i].key, "an attribute's key", err));
    TRY(api_check_text(spec->attrs[i].text, "an attribute's text", err));
  }
  *opcode = ir_opcode_from_text(spec->opcode, strlen(spec->opcode));
  if (*opcode == IR_OP_INVALID) return base_fail(err, XLAC_E_UNKNOWN_OPCODE, "there is no op '%.64s'", spec->opcode);
  if (*opcode == IR_OP_PARAMETER || *opcode == IR_OP_CONSTANT)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "a %s is made by its own function", spec->opcode);
  const ir_op_info *info = ir_opcode_info(*opcode);
  if (info->arity != IR_VARIADIC && (uint32_t)info->arity != spec->n_operands)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS, "%s takes %d operand%s, found %u", info->text, info->arity,
                     base_plural(info->arity), spec->n_operands);
  return 0;
}

/* Operands are ops of the same computation, as in HLO; what comes from outside comes by a parameter. */
static int check_spec_operands(const ir_computation *c, const xlac_op_spec *spec, xlac_error *err) {
  assert(spec->n_operands == 0 || spec->operands);
  for (uint32_t i = 0; i < spec->n_operands; i++) {
    const ir_op *operand = api_op(spec->operands[i]);
    TRY(api_check_live(operand, err));
    if (operand->parent != c)
      return base_fail_at(err, XLAC_E_EDIT, operand->line, operand->col, operand->name->s,
                          "operand %u, %s, is of computation %s, not of %s", i, operand->name->s,
                          operand->parent->name->s, c->name->s);
    if (operand->type == NULL) return fail_edit(err, operand, "has no type yet");
  }
  return 0;
}

/* The attribute texts of the spec are looked for by name: an op's called computations, for one, are stored
 * elsewhere than in attrs. */
static int check_required(const ir_op *op, const xlac_op_spec *spec, xlac_error *err) {
  const ir_attr_spec *own = ir_opcode_info(op->opcode)->attrs;
  for (; own && own->key; own++) {
    if (!(own->flags & IR_REQUIRED)) continue;
    bool given = false;
    for (uint32_t i = 0; i < spec->n_attrs; i++) given |= strcmp(spec->attrs[i].key, ir_attr_table[own->key].text) == 0;
    if (!given)
      return base_fail_at(err, XLAC_E_BAD_ATTRIBUTE, 0, 0, op->name->s, "%s needs the attribute %s",
                          ir_opcode_text(op->opcode), ir_attr_table[own->key].text);
  }
  return 0;
}

/* Operands first: attributes and inference look at them. Without a type in the spec, the type is inferred. */
static int fill_op(ir_module *ir, ir_op *op, const xlac_op_spec *spec, xlac_error *err) {
  assert(op->n_operands == spec->n_operands);
  for (uint32_t i = 0; i < spec->n_operands; i++) ir_set_operand(op, i, (ir_value){api_op(spec->operands[i]), 0});
  for (uint32_t i = 0; i < spec->n_attrs; i++) {
    const xlac_attr *a = &spec->attrs[i];
    TRY(text_parse_attr(op, a->key, strlen(a->key), a->text, strlen(a->text), err));
  }
  TRY(check_required(op, spec, err));
  const ir_type *type = NULL;
  if (spec->type)
    TRY(parse_type(ir, spec->type, &type, err));
  else
    TRY(ir_infer(ir, op, &type, err));
  ir_set_type(op, type);
  return 0;
}

/* An op that can't be filled is removed again; its name stays interned, which nobody sees. */
static int create_op_locked(xlac_op **out, xlac_module *m, ir_computation *c, const xlac_op_spec *spec,
                            xlac_error *err) {
  ir_opcode opcode;
  const base_istr *name;
  TRY(api_check_live_computation(c, err));
  TRY(check_spec(spec, &opcode, err));
  TRY(check_spec_operands(c, spec, err));
  TRY(pick_name(m->ir, spec->name, opcode, &name, err));
  ir_op *op = ir_op_new(c, opcode, NULL, name, spec->n_operands, 0);
  if (op == NULL) return base_oom(err, "making an op");
  int status = fill_op(m->ir, op, spec, err);
  if (status != 0) {
    ir_op_remove(op);
    return status;
  }
  *out = api_op_out(op);
  return 0;
}

int xlac_op_create(xlac_op **out, xlac_module *m, xlac_computation *c, const xlac_op_spec *spec, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, create_op_locked(out, m, api_computation(c), spec, err));
}

/* Numbers may be given in any order, but each once; gaps are for the verifier to find. */
static int create_parameter_locked(xlac_op **out, xlac_module *m, ir_computation *c, int64_t number,
                                   const char *type_text, const char *name_text, xlac_error *err) {
  const ir_type *type;
  const base_istr *name;
  TRY(api_check_live_computation(c, err));
  if (number < 0 || number > 1 << 20)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "parameter number %lld is out of range", (long long)number);
  if (number < c->n_params && c->params[number])
    return base_fail(err, XLAC_E_DUPLICATE_NAME, "%s has a parameter %lld already: %s", c->name->s, (long long)number,
                     c->params[number]->name->s);
  TRY(parse_type(m->ir, type_text, &type, err));
  TRY(pick_name(m->ir, name_text, IR_OP_PARAMETER, &name, err));
  ir_op *op = ir_op_new(c, IR_OP_PARAMETER, type, name, 0, 0);
  if (op == NULL || !ir_set_parameter(op, number)) return base_oom(err, "making a parameter");
  *out = api_op_out(op);
  return 0;
}

int xlac_op_create_parameter(xlac_op **out, xlac_module *m, xlac_computation *c, int64_t number, const char *type,
                             const char *name, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, create_parameter_locked(out, m, api_computation(c), number, type, name, err));
}

/* --- constants --- */

static const ir_literal *literal_of_value(ir_module *ir, const interp_value *v, uint32_t depth, xlac_error *err);

/* NULL without an error in err: out of memory. */
static const ir_literal *literal_of_tuple(ir_module *ir, const interp_value *v, uint32_t depth, xlac_error *err) {
  const ir_literal **elements = BASE_ARRAY(&ir->arena, const ir_literal *, v->n_elements + 1u);
  const ir_type **types = BASE_ARRAY(&ir->arena, const ir_type *, v->n_elements + 1u);
  for (uint32_t i = 0; elements && types && i < v->n_elements; i++) {
    elements[i] = literal_of_value(ir, v->elements[i], depth + 1, err);
    if (elements[i] == NULL) return NULL;
    types[i] = elements[i]->type;
  }
  const ir_type *type = elements && types ? ir_tuple(ir, v->n_elements, types) : NULL;
  return type ? ir_literal_tuple(ir, type, elements) : NULL;
}

/* The values are copied into the arena. NULL: out of memory, a token, a tuple nested deeper than 64, or
 * what err says. */
static const ir_literal *literal_of_value(ir_module *ir, const interp_value *v, uint32_t depth, xlac_error *err) {
  if (depth > 64) return NULL;
  if (v->kind == INTERP_TUPLE) return literal_of_tuple(ir, v, depth, err);
  if (v->kind != INTERP_ARRAY) return NULL;
  const ir_type *type = ir_tensor_default(ir, (base_dtype)v->dtype, v->rank, v->dims, err);
  ir_literal *l = type ? ir_literal_new(ir, type) : NULL;
  size_t bytes = (size_t)v->count * base_dtype_bytes((base_dtype)v->dtype);
  if (l && bytes) memcpy(l->data, v->data, bytes);
  return l;
}

/* The caller may change or release the value afterwards. */
static int create_constant_locked(xlac_op **out, xlac_module *m, ir_computation *c, const interp_value *value,
                                  const char *name_text, xlac_error *err) {
  const base_istr *name;
  TRY(api_check_live_computation(c, err));
  TRY(pick_name(m->ir, name_text, IR_OP_CONSTANT, &name, err));
  xlac_error cause = {.code = 0};
  const ir_literal *literal = literal_of_value(m->ir, value, 0, &cause);
  if (literal == NULL && cause.code) return base_fail(err, (base_code)cause.code, "%s", cause.message);
  if (literal == NULL && value->kind == INTERP_TOKEN)
    return base_fail(err, XLAC_E_BAD_ARGUMENT, "a token can't be a constant");
  if (literal == NULL) return base_oom(err, "making a constant");
  ir_op *op = ir_op_new(c, IR_OP_CONSTANT, literal->type, name, 0, 0);
  if (op == NULL) return base_oom(err, "making a constant");
  ir_set_literal(op, literal);
  *out = api_op_out(op);
  return 0;
}

int xlac_op_create_constant(xlac_op **out, xlac_module *m, xlac_computation *c, const xlac_value *value,
                            const char *name, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, create_constant_locked(out, m, api_computation(c), api_value(value), name, err));
}

/* --- editing --- */

/* Control predecessors are edges, kept from both sides, not an attribute. */
static int remove_attr(ir_op *op, const char *key, xlac_error *err) {
  if (strcmp(key, "control-predecessors") == 0) {
    ir_drop_control_preds(op);
    return 0;
  }
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    if (strcmp(ir_attr_table[op->attrs[i].key].text, key) != 0) continue;
    ir_attr_remove(op, (ir_attr_key)op->attrs[i].key);
    return 0;
  }
  return base_fail_at(err, XLAC_E_BAD_ATTRIBUTE, op->line, op->col, op->name->s, "%s has no attribute %.64s",
                      op->name->s, key);
}

/* text is as in HLO's text behind `key=`; NULL removes. An attribute that is there is replaced. */
static int set_attr_locked(ir_op *op, const char *key, const char *text, xlac_error *err) {
  TRY(api_check_text(key, "the attribute's key", err));
  TRY(api_check_live(op, err));
  if (text == NULL) return remove_attr(op, key, err);
  TRY(text_parse_attr(op, key, strlen(key), text, strlen(text), err));
  return 0;
}

int xlac_op_set_attr(xlac_module *m, xlac_op *op, const char *key, const char *text, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_attr_locked(api_op(op), key, text, err));
}

/* No look at cycles or types: edits pass through states that only the verifier may judge. */
static int set_operand_locked(ir_op *op, uint32_t index, ir_op *operand, xlac_error *err) {
  TRY(api_check_live(op, err));
  TRY(api_check_live(operand, err));
  if (index >= op->n_operands)
    return base_fail_at(err, XLAC_E_BAD_ARGUMENT, op->line, op->col, op->name->s, "%s has %u operands, no operand %u",
                        op->name->s, op->n_operands, index);
  if (operand->parent != op->parent) return fail_edit(err, operand, "is of another computation");
  ir_set_operand(op, index, (ir_value){operand, 0});
  return 0;
}

int xlac_op_set_operand(xlac_module *m, xlac_op *op, uint32_t index, xlac_op *operand, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_operand_locked(api_op(op), index, api_op(operand), err));
}

/* NULL infers it from operands and attributes. */
static int set_type_locked(xlac_module *m, ir_op *op, const char *text, xlac_error *err) {
  const ir_type *type = NULL;
  TRY(api_check_live(op, err));
  if (text)
    TRY(parse_type(m->ir, text, &type, err));
  else
    TRY(ir_infer(m->ir, op, &type, err));
  if (op->opcode == IR_OP_CONSTANT && !ir_same_bare(op->u.literal->type, type))
    return fail_edit(err, op, "is a constant: its type is that of its value");
  ir_set_type(op, type);
  return 0;
}

int xlac_op_set_type(xlac_module *m, xlac_op *op, const char *type, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, set_type_locked(m, api_op(op), type, err));
}

/* Names of ops are unique in a module,
 * as HLO's text needs. A look at all ops costs less than a table that every edit would have to keep. */
static int rename_op_locked(xlac_module *m, ir_op *op, const char *name, xlac_error *err) {
  TRY(api_check_live(op, err));
  TRY(api_check_name(name, "an op", err));
  const base_istr *s = ir_intern(m->ir, name, strlen(name));
  if (s == NULL) return base_oom(err, "renaming an op");
  IR_FOR_COMPUTATIONS(c, m->ir) {
    IR_FOR_OPS(other, c) {
      if (other != op && other->name == s)
        return base_fail_at(err, XLAC_E_DUPLICATE_NAME, other->line, other->col, name,
                            "there is an op named %s already", name);
    }
  }
  ir_set_name(op, s);
  return 0;
}

int xlac_op_rename(xlac_module *m, xlac_op *op, const char *name, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, rename_op_locked(m, api_op(op), name, err));
}

/* Types must agree but for layouts. The root moves with the uses where op was the root. */
static int replace_uses_locked(ir_op *op, ir_op *with, xlac_error *err) {
  TRY(api_check_live(op, err));
  TRY(api_check_live(with, err));
  if (op == with) return 0;
  if (op->parent != with->parent) return fail_edit(err, with, "is of another computation");
  if (!op->type || !with->type) return fail_edit(err, op->type ? with : op, "gives no value");
  if (!ir_compatible(op->type, with->type)) {
    char was[120], is[120];
    return base_fail_at(err, XLAC_E_EDIT, op->line, op->col, op->name->s,
                        "%s can't stand for %s: its type is %s, expected %s", with->name->s, op->name->s,
                        ir_type_text(with->type, is, sizeof is), ir_type_text(op->type, was, sizeof was));
  }
  return ir_replace_uses(op, with) ? 0 : base_oom(err, "replacing uses");
}

int xlac_op_replace_uses(xlac_module *m, xlac_op *op, xlac_op *with, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, replace_uses_locked(api_op(op), api_op(with), err));
}

/* Users go first. Its operands stay, even where nothing else uses them: that is what dce is for. */
static int remove_op_locked(ir_op *op, xlac_error *err) {
  TRY(api_check_live(op, err));
  if (op->uses) {
    return base_hint(err,
                     base_fail_at(err, XLAC_E_EDIT, op->line, op->col, op->name->s, "%s can't be removed: %s uses it",
                                  op->name->s, op->uses->user->name->s),
                     "replace its uses first");
  }
  if (ir_root(op->parent) == op) return fail_edit(err, op, "can't be removed: it is the root of its computation");
  ir_op_remove(op);
  return 0;
}

int xlac_op_remove(xlac_module *m, xlac_op *op, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, remove_op_locked(api_op(op), err));
}

/* NULL: to the end. Text order matters only where the module is scheduled. */
static int move_op_locked(ir_op *op, ir_op *before, xlac_error *err) {
  TRY(api_check_live(op, err));
  if (before) TRY(api_check_live(before, err));
  if (before && before->parent != op->parent) return fail_edit(err, before, "is of another computation");
  if (before != op) ir_op_move(op, before);
  return 0;
}

int xlac_op_move(xlac_module *m, xlac_op *op, xlac_op *before, xlac_error *err) {
  TRY(api_lock_edit(m, err));
  return api_done(m, move_op_locked(api_op(op), before ? api_op(before) : NULL, err));
}
