/* Attributes of one op, from StableHLO's form to VHLO's: structs in pieces, defaults written out.
 *
 * What the target version can't say is an error that names the version in which it came; see the comments in
 * StableHLO's VhloOps.td and Version.h for those. */
#include "write.h"

/* The api_version of custom calls whose backend_config is a dictionary. */
enum { BC_TYPED_FFI = 4 };

/* NULL where the op does not have it. */
static const ir_mattr *bc_own_attr(const ir_op *op, const char *name) {
  return ir_mdict_get(op->mlir, name);
}

/* How many dimensions an absent list of the op would speak of. */
static uint32_t bc_spread(bc_writer *w, const ir_op *op) {
  uint32_t n = 0;
  const ir_mattr *numbers = bc_own_attr(op, "dimension_numbers");
  if (numbers && numbers->kind == IR_M_STRUCT) {
    ir_m_ints(ir_m_field(numbers, "input_spatial_dimensions"), &w->scratch, &n);
  } else {
    ir_m_ints(bc_own_attr(op, "window_dimensions"), &w->scratch, &n);
  }
  return n;
}

/* A list of as many numbers as the window has dimensions; paddings have two each. */
static int bc_default_splat(bc_writer *w, const ir_op *op, const ir_mattr_spec *spec, int64_t v, uint32_t *out) {
  uint32_t n = bc_spread(w, op);
  int64_t dims[2] = {n, 2};
  if (spec->constraint == IR_MC_BOOLS) return bc_add_bools(w, n, out);
  return bc_add_i64s(w, spec->constraint == IR_MC_DENSE_I64 ? 2 : 1, dims, n, v, out);
}

/* backend_config is a dictionary for typed FFI calls, a string for all others. */
static int bc_default_empty(bc_writer *w, const ir_op *op, const ir_mattr_spec *spec, uint32_t *out) {
  const int64_t none[1] = {0};
  switch (spec->constraint) {
    case IR_MC_I64S:
    case IR_MC_DENSE_I64:
      return bc_add_i64s(w, 1, none, 0, 0, out);
    case IR_MC_STRING:
      return bc_add_string(w, "", 0, out);
    case IR_MC_STRING_OR_DICT:
      if (ir_m_get_int(op, "api_version", 0) == BC_TYPED_FFI) return bc_add_empty(w, BC_V_DICT, out);
      return bc_add_string(w, "", 0, out);
    case IR_MC_DICT:
      return bc_add_empty(w, BC_V_DICT, out);
    default:
      return bc_add_empty(w, BC_V_ARRAY, out);
  }
}

/* What stands for an absent attribute, as VHLO wants it written. */
static int bc_default_value(bc_writer *w, const ir_op *op, const ir_mattr_spec *spec, uint32_t *out) {
  bc_default d = bc_default_of(op->opcode, spec);
  bool boolean = spec->constraint == IR_MC_BOOL || spec->constraint == IR_MC_UNIT;
  switch (d.kind) {
    case BC_D_EMPTY:
      return bc_default_empty(w, op, spec, out);
    case BC_D_NUMBER:
      return boolean ? bc_add_bool(w, false, out) : bc_add_i64(w, d.number, out);
    case BC_D_SPLAT:
      return bc_default_splat(w, op, spec, d.number, out);
    case BC_D_WORD:
      if (spec->constraint == IR_MC_PRECISIONS) return bc_add_words(w, 2, spec->sub, d.word, out);
      return bc_add_enum(w, spec->sub, d.word, out);
    case BC_D_ACCURACY:
      return bc_add_accuracy(w, out);
    default:
      return bc_cant_write(w, "attribute %s is missing", spec->name);
  }
}

/* A number in StableHLO, an enum in VHLO. */
static int bc_api_version(bc_writer *w, const ir_op *op, uint32_t *out) {
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, "custom_call_api_version", 23);
  int64_t v = ir_m_get_int(op, "api_version", 1), n = 0;
  while (info->words[n]) n++;
  if (v < 0 || v >= n) return bc_cant_write(w, "api_version %lld is none", (long long)v);
  return bc_add_enum(w, info->name, info->words[v], out);
}

/* The value of an attribute that goes over by itself. */
static int bc_value(bc_writer *w, const ir_op *op, const ir_mattr_spec *spec, uint32_t *out) {
  const ir_mattr *a = bc_own_attr(op, spec->name);
  if (strcmp(spec->name, "api_version") == 0) return bc_api_version(w, op, out);
  if (!a) return bc_default_value(w, op, spec, out);
  if (a->kind == IR_M_UNIT) return bc_add_bool(w, true, out);
  if (a->kind == IR_M_STRING && a->type)
    return bc_cant_write(w, "attribute %s is a string with a type, which VHLO lacks", spec->name);
  return bc_add_attr(w, false, a, out);
}

/* The value of one field of a struct; `f` says what it is. */
static int bc_field_value(bc_writer *w, const ir_op *op, const ir_mattr_spec *spec, const ir_field_info *f,
                          uint32_t *out) {
  const int64_t none[1] = {0};
  const ir_mattr *a = bc_own_attr(op, spec->name);
  if (!a && strcmp(spec->sub, "dot_algorithm") == 0) return bc_add_none(w, out);
  if (!a && spec->flags & IR_REQUIRED) return bc_cant_write(w, "attribute %s is missing", spec->name);
  if (a && a->kind != IR_M_STRUCT) return bc_cant_write(w, "attribute %s is of the wrong kind", spec->name);
  const ir_mattr *v = ir_m_field(a, f->name);
  if (v) return bc_add_attr(w, false, v, out);
  if (f->kind == IR_F_I64S) return bc_add_i64s(w, 1, none, 0, 0, out);
  if (f->kind == IR_F_I64) return bc_add_i64(w, 0, out);
  return bc_cant_write(w, "attribute %s lacks %s", spec->name, f->name);
}

/* Whether the row has a place for the attribute. */
static bool bc_row_names(const bc_row *row, const char *name) {
  assert(name);
  const char *names = row->attrs;
  base_slice word = {0};
  while (bc_next_word(&names, &word))
    if (base_slice_is(word, name)) return true;
  return false;
}

/* Whether the row has places for some of the struct's fields. */
static bool bc_row_names_field(const bc_row *row, unsigned opcode, const ir_mattr_spec *spec) {
  const char *names = row->attrs;
  const ir_field_info *f;
  base_slice word = {0};
  while (bc_next_word(&names, &word))
    if (!ir_mattr_spec_find(opcode, word.p, word.n) && bc_struct_of_field(opcode, word, &f) == spec) return true;
  return false;
}

/* Fields that the row lacks must say nothing. */
static int bc_check_fields(bc_writer *w, const bc_row *row, const ir_mattr *a) {
  if (a->kind != IR_M_STRUCT || strcmp(a->name, "channel_handle") == 0) return 0;
  for (uint32_t i = 0; i < a->v.dict->n; i++) {
    const ir_mattr *v = a->v.dict->v[i].value;
    bool empty = v->kind == IR_M_DENSE_ARRAY && v->v.literal->type->count == 0;
    if (!empty && !bc_row_names(row, a->v.dict->v[i].key->s))
      return bc_cant_write(w, "StableHLO %s has no %s here", w->version_text, a->v.dict->v[i].key->s);
  }
  return 0;
}

/* What the version lacks is an error, unless it is at its default; what is not the op's own is discardable. */
static int bc_sort_out(bc_writer *w, const ir_op *op, const bc_row *row, const ir_mdict **discardable) {
  uint32_t n = 0;
  ir_mdict *rest = NULL;
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    const ir_mentry *e = &op->mlir->v[i];
    const ir_mattr_spec *spec = ir_mattr_spec_find(op->opcode, e->key->s, e->key->n);
    if (bc_row_names(row, e->key->s)) continue;
    if (spec && bc_row_names_field(row, op->opcode, spec)) {
      TRY(bc_check_fields(w, row, e->value));
    } else if (spec && !bc_is_default(op->opcode, spec, e->value)) {
      return bc_cant_write(w, "StableHLO %s has no attribute %s here", w->version_text, spec->name);
    } else if (!spec) {
      if (!rest) rest = base_arena_alloc(&w->scratch, sizeof *rest + op->mlir->n * sizeof *rest->v);
      if (!rest) return bc_write_memory(w);
      rest->v[n++] = *e;
    }
  }
  if (rest) rest->n = n;
  *discardable = rest;
  return 0;
}

/* Types are compared by what they are: they may be of different modules. */
static bool bc_same_element(const ir_type *a, const ir_type *b) {
  return a->dtype == b->dtype && a->text == b->text &&
         (a->quant == b->quant || (a->quant && b->quant && ir_quant_equal(a->quant, b->quant)));
}

/* Reductions gave the element types of their operands, until 0.17. */
static int bc_check_promotion(bc_writer *w, const ir_op *op) {
  static const uint16_t reductions[] = {IR_OP_ALL_REDUCE,    IR_OP_REDUCE,  IR_OP_REDUCE_SCATTER,
                                        IR_OP_REDUCE_WINDOW, IR_OP_SCATTER, IR_OP_SELECT_AND_SCATTER};
  if (w->version >= BC_V(0, 17)) return 0;
  for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
    if (op->opcode != reductions[k]) continue;
    for (uint32_t i = 0; i < op->n_results && i < op->n_operands; i++)
      if (!bc_same_element(ir_operand_type(op, i), op->types[i]))
        return bc_cant_write(w, "StableHLO %s has no reduction to another element type; it came with 0.17",
                             w->version_text);
  }
  return 0;
}

/* Typed configurations and futures came late. */
static int bc_check_custom_call(bc_writer *w, const ir_op *op) {
  const ir_mattr *config = bc_own_attr(op, "backend_config");
  bool typed = ir_m_get_int(op, "api_version", 0) == BC_TYPED_FFI || (config && config->kind == IR_M_DICT);
  if (typed && w->version < BC_V(1, 3))
    return bc_cant_write(w, "StableHLO %s has no typed backend_config; it came with 1.3", w->version_text);
  for (uint32_t i = 0; i < op->n_operands && w->version < BC_V(1, 17); i++)
    if (ir_operand_type(op, i)->kind == IR_TYPE_FUTURE)
      return bc_cant_write(w, "StableHLO %s has no custom_call of a future; it came with 1.17", w->version_text);
  return 0;
}

/* Older versions knew some ops only in a narrower form. */
static int bc_check_op(bc_writer *w, const ir_op *op) {
  if (op->opcode == IR_OP_CUSTOM_CALL) TRY(bc_check_custom_call(w, op));
  TRY(bc_check_promotion(w, op));
  bool one = op->opcode == IR_OP_ALL_REDUCE || op->opcode == IR_OP_ALL_GATHER || op->opcode == IR_OP_ALL_TO_ALL;
  if (one && w->version < BC_V(1, 5) && op->n_operands != 1)
    return bc_cant_write(w, "StableHLO %s has no collective of %u operands; it came with 1.5", w->version_text,
                         op->n_operands);
  if (op->opcode == IR_OP_COMPOSITE && w->version < BC_V(1, 14) && op->n_called)
    return bc_cant_write(w, "StableHLO %s has no composite with regions; it came with 1.14", w->version_text);
  if (op->opcode == IR_OP_COLLECTIVE_BROADCAST && w->version < BC_V(1, 20) && op->n_operands != 1)
    return bc_cant_write(w, "StableHLO %s has no collective_broadcast of %u operands; it came with 1.20",
                         w->version_text, op->n_operands);
  return 0;
}

/* `values` gets one attribute for each name of the row; *discardable what is not inherent, or NULL. */
int bc_from_stablehlo(bc_writer *w, const ir_op *op, const bc_row *row, uint32_t *values,
                      const ir_mdict **discardable) {
  assert(row && row->attrs);
  const char *names = row->attrs;
  base_slice word = {0};
  TRY(bc_check_op(w, op));
  TRY(bc_sort_out(w, op, row, discardable));
  for (uint32_t i = 0; bc_next_word(&names, &word); i++) {
    const ir_mattr_spec *spec = ir_mattr_spec_find(op->opcode, word.p, word.n);
    const ir_field_info *field;
    if (spec) {
      TRY(bc_value(w, op, spec, &values[i]));
    } else if ((spec = bc_struct_of_field(op->opcode, word, &field))) {
      TRY(bc_field_value(w, op, spec, field, &values[i]));
    } else if (op->opcode == IR_OP_UNREGISTERED) {
      const ir_mattr *a = ir_mdict_get(op->mlir, "replica_groups");
      if (!a) return bc_cant_write(w, "attribute replica_groups is missing");
      TRY(bc_add_attr(w, false, a, &values[i]));
    } else { /* dynamic_conv_v1's padding, which nobody reads */
      int64_t dims[2] = {bc_spread(w, op), 2};
      TRY(bc_add_i64s(w, 2, dims, (uint32_t)dims[0], 0, &values[i]));
    }
  }
  return 0;
}
