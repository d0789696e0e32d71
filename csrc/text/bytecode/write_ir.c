/* The IR of a module as marks: functions, ops, regions.
 *
 * The parts of an op are those that ir.c reads, in the same order. Values are numbered before an op is written,
 * since operands are numbers relative to the function; casts around ops of sdy count as values too (write_cast.c). */
#include "../../ir/sdy/sdy.h"
#include "write.h"

/* Attributes of one op's own; no op has as many. */
enum { BC_MAX_OWN = 40 };

/* The head of an op to be written: numbers of pools. */
typedef struct bc_out_op {
  uint32_t name, loc;
  bool properties;
  uint32_t n; /* of its row's attributes */
  uint32_t values[BC_MAX_OWN];
  const char *names; /* of the row */
  const ir_mdict *discardable;
  bool builtin; /* its discardable attributes stay MLIR's own */
  bool has_made;
  uint32_t made_properties; /* of a dialect with an encoding of its own */
} bc_out_op;

/* The number of an op's name. `registered`: xlac knows that the dialect has it. */
int bc_op_name_of(bc_writer *w, uint32_t dialect, bool registered, const char *s, size_t n, uint32_t *out) {
  size_t from = w->marks.n;
  uint32_t string = 0;
  TRY(bc_pool_string(w, s, n, &string));
  bc_mark(w, BC_MARK_STRING, string);
  return bc_pool_add(w, &w->op_names, dialect, registered, from, out);
}

/* --- attributes --- */

/* The dictionary of an op: attributes that are not inherent, and in containers without properties all. */
static int bc_pairs_of(bc_writer *w, const bc_out_op *op, bc_pair **out, uint32_t *n) {
  uint32_t more = op->discardable ? op->discardable->n : 0;
  bool own = w->container < BC_PROPERTIES || !op->properties;
  *n = 0;
  *out = BASE_ARRAY(&w->scratch, bc_pair, (size_t)op->n + more + 1);
  if (!*out) return bc_write_memory(w);
  for (uint32_t i = 0; i < more; i++) {
    const ir_mentry *e = &op->discardable->v[i];
    bc_pair pair = {e->key->s, e->key->n, 0};
    TRY(bc_add_attr(w, op->builtin, e->value, &pair.value));
    (*out)[(*n)++] = pair;
  }
  const char *names = op->names;
  base_slice word = {0};
  for (uint32_t i = 0; own && i < op->n && bc_next_word(&names, &word); i++)
    (*out)[(*n)++] = (bc_pair){word.p, word.n, op->values[i]};
  return 0;
}

/* One attribute for each name of the row, in its order. */
static int bc_add_properties(bc_writer *w, const bc_out_op *op, uint32_t *out) {
  size_t from = w->marks.n;
  for (uint32_t i = 0; i < op->n; i++) bc_mark(w, BC_MARK_ATTR, op->values[i]);
  return bc_pool_add(w, &w->properties, 0, false, from, out);
}

/* Name, mask, location, dictionary, properties. */
static int bc_mark_head(bc_writer *w, const bc_out_op *op, unsigned mask) {
  assert(op->n <= BC_MAX_OWN);
  bc_pair *pairs;
  uint32_t n, dict = 0, properties = 0;
  bool has_properties = op->has_made || (op->properties && op->n && w->container >= BC_PROPERTIES);
  TRY(bc_pairs_of(w, op, &pairs, &n));
  if (n) TRY(bc_add_dict(w, n, pairs, &dict));
  if (op->has_made) {
    properties = op->made_properties;
  } else if (has_properties) {
    TRY(bc_add_properties(w, op, &properties));
  }
  bc_mark(w, BC_MARK_OP, op->name);
  bc_mark(w, BC_MARK_BYTE, mask | (n ? BC_OP_ATTRS : 0) | (has_properties ? BC_OP_PROPERTIES : 0));
  bc_mark(w, BC_MARK_ATTR, op->loc);
  if (n) bc_mark(w, BC_MARK_ATTR, dict);
  if (has_properties) bc_mark(w, BC_MARK_PROPERTIES, properties);
  return 0;
}

/* --- regions and ops --- */

/* Arguments and results: parameters are ops with one result here. */
static uint64_t bc_value_count(const ir_computation *c) {
  uint64_t n = 0;
  IR_FOR_OPS(op, c) n += op->n_results;
  return n;
}

/* Types, locations, and no orders of uses. */
static int bc_mark_args(bc_writer *w, const ir_computation *c) {
  w->op = c->owner;
  bc_mark(w, BC_MARK_VARINT, c->n_params);
  for (uint32_t i = 0; i < c->n_params; i++) {
    uint32_t type = 0, loc = 0;
    TRY(bc_add_type(w, c->owner && sdy_is_op(c->owner), c->params[i]->type, &type));
    TRY(bc_add_loc(w, c->params[i]->loc, &loc));
    bc_mark(w, w->container >= BC_ELIDED_LOCATIONS ? BC_MARK_FLAGGED_TYPE : BC_MARK_TYPE, type);
    bc_mark(w, BC_MARK_ATTR, loc);
  }
  if (w->container >= BC_USE_ORDERS) bc_mark(w, BC_MARK_BYTE, 0);
  return 0;
}

/* Both become vhlo.return_v1. */
static bool bc_is_usual_return(const base_istr *name) {
  return !name || strcmp(name->s, "func.return") == 0 || strcmp(name->s, "stablehlo.return") == 0;
}

/* A terminator is an op in the file: `next` is the number after the region's last value. */
static int bc_mark_return(bc_writer *w, const ir_computation *c, uint64_t next) {
  bc_out_op op = {.discardable = c->return_mlir, .names = ""};
  const base_istr *name = c->return_name;
  w->op = c->owner;
  if (bc_is_usual_return(name)) {
    TRY(bc_op_name_of(w, w->vhlo, true, "return_v1", 9, &op.name));
  } else {
    const char *dot = strchr(name->s, '.');
    uint32_t dialect = 0;
    if (!dot) return bc_cant_write(w, "a return by the name %.60s", name->s);
    TRY(bc_pool_dialect(w, name->s, (size_t)(dot - name->s), &dialect));
    bool known = c->owner && sdy_is_op(c->owner);
    TRY(bc_op_name_of(w, dialect, known, dot + 1, strlen(dot + 1), &op.name));
    op.builtin = true;
  }
  TRY(bc_mark_casts_of_return(w, c));
  TRY(bc_add_loc(w, c->return_loc, &op.loc));
  TRY(bc_mark_head(w, &op, c->n_results ? BC_OP_OPERANDS : 0));
  if (c->n_results) bc_mark(w, BC_MARK_VARINT, c->n_results);
  return bc_mark_returned(w, c, next);
}

static int bc_mark_op(bc_writer *w, const ir_op *op, uint64_t next);

/* `next` is the number after those of all values that are seen from here. */
static int bc_mark_region(bc_writer *w, const ir_computation *c, uint64_t next) {
  assert(c->n_ops >= c->n_params);
  if (c->declaration) return bc_mark(w, BC_MARK_VARINT, 0), 0;
  uint64_t casts = bc_count_casts(w, c), n = bc_value_count(c) + casts;
  TRY(bc_write_deeper(w));
  bc_mark(w, BC_MARK_VARINT, 1);
  bc_mark(w, BC_MARK_VARINT, n);
  bc_mark(w, BC_MARK_VARINT, ((uint64_t)(c->n_ops - c->n_params + 1) + casts) << 1 | (c->n_params > 0));
  TRY(bc_number_values(w, c, next));
  if (c->n_params) TRY(bc_mark_args(w, c));
  TRY(bc_mark_casts_of_params(w, c));
  IR_FOR_OPS(op, c) {
    if (op->opcode != IR_OP_PARAMETER) TRY(bc_mark_op(w, op, next + n));
  }
  TRY(bc_mark_return(w, c, next + n));
  w->depth--;
  return 0;
}

/* Ops of sdy have properties; before these, their attributes stood among the others. */
static int bc_sdy_op(bc_writer *w, const ir_op *op, bc_out_op *to) {
  uint32_t n = 0;
  to->discardable = op->mlir;
  if (w->container < BC_PROPERTIES) return 0;
  ir_mdict *rest = base_arena_alloc(&w->scratch, sizeof *rest + (op->mlir ? op->mlir->n : 0) * sizeof *rest->v);
  if (!rest) return bc_write_memory(w);
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++)
    if (!ir_mattr_spec_find(op->opcode, op->mlir->v[i].key->s, op->mlir->v[i].key->n)) rest->v[n++] = op->mlir->v[i];
  rest->n = n;
  to->discardable = rest;
  return bc_add_sdy_properties(w, op, &to->made_properties, &to->has_made);
}

/* sdy.x and such. */
static int bc_foreign_op(bc_writer *w, const ir_op *op, bc_out_op *to) {
  const char *name = op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : ir_opcode_info(op->opcode)->mlir->name;
  const char *dot = strchr(name, '.');
  uint32_t dialect = 0;
  if (!dot || strncmp(name, "chlo.", 5) == 0 || strncmp(name, "stablehlo.", 10) == 0)
    return base_hint(w->err, bc_cant_write(w, "%.80s has no form in StableHLO %s", name, w->version_text),
                     "expand it first, or choose a newer version");
  TRY(bc_pool_dialect(w, name, (size_t)(dot - name), &dialect));
  TRY(bc_op_name_of(w, dialect, sdy_is_op(op), dot + 1, strlen(dot + 1), &to->name));
  to->discardable = op->mlir;
  to->builtin = true;
  to->names = "";
  return sdy_is_op(op) ? bc_sdy_op(w, op, to) : 0;
}

/* NULL where the op has no VHLO form in this version. */
static const bc_row *bc_row_of(bc_writer *w, const ir_op *op) {
  if (op->opcode == IR_OP_UNREGISTERED && strcmp(op->u.name->s, "stablehlo.cross-replica-sum") != 0) return NULL;
  return bc_row_by_opcode(op->opcode, w->version);
}

/* Finds the op's form in the version asked for and its attributes. */
static int bc_prepare_op(bc_writer *w, const ir_op *op, bc_out_op *to) {
  const bc_row *row = bc_row_of(w, op);
  *to = (bc_out_op){.properties = true};
  TRY(bc_add_loc(w, op->loc, &to->loc));
  if (!row) return bc_foreign_op(w, op, to);
  const char *names = row->attrs;
  base_slice word = {0};
  while (bc_next_word(&names, &word)) to->n++;
  assert(to->n <= BC_MAX_OWN);
  to->names = row->attrs;
  TRY(bc_op_name_of(w, w->vhlo, true, row->name, strlen(row->name), &to->name));
  return bc_from_stablehlo(w, op, row, to->values, &to->discardable);
}

/* An op with its regions, and the casts around it. */
static int bc_mark_op(bc_writer *w, const ir_op *op, uint64_t next) {
  bc_out_op head;
  w->op = op;
  TRY(bc_mark_casts_before(w, op));
  TRY(bc_prepare_op(w, op, &head));
  unsigned mask =
      (op->n_results ? BC_OP_RESULTS : 0) | (op->n_operands ? BC_OP_OPERANDS : 0) | (op->n_called ? BC_OP_REGIONS : 0);
  TRY(bc_mark_head(w, &head, mask));
  if (op->n_results) bc_mark(w, BC_MARK_VARINT, op->n_results);
  for (uint32_t i = 0; i < op->n_results; i++) TRY(bc_mark_type(w, sdy_is_op(op), op->types[i]));
  if (op->n_operands) bc_mark(w, BC_MARK_VARINT, op->n_operands);
  TRY(bc_mark_operands(w, op));
  if (op->n_called) bc_mark(w, BC_MARK_VARINT, (uint64_t)op->n_called << 1);
  for (uint32_t i = 0; i < op->n_called; i++) TRY(bc_mark_region(w, op->called[i], next));
  w->op = op;
  return bc_mark_casts_after(w, op);
}

/* --- functions --- */

/* A list of dictionaries for arguments or results; empty where none says anything. */
static int bc_dicts(bc_writer *w, uint32_t n, const ir_mdict *(*get)(const ir_computation *, uint32_t),
                    const ir_computation *c, uint32_t *out) {
  const ir_mdict none = {0};
  bool any = false;
  for (uint32_t i = 0; i < n; i++) any = any || get(c, i);
  if (!any) return bc_add_empty(w, BC_V_ARRAY, out);
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_V_ARRAY);
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) {
    const ir_mdict *d = get(c, i);
    const ir_mattr a = {.kind = IR_M_DICT, .v = {.dict = d ? d : &none}};
    TRY(bc_mark_attr(w, false, &a));
  }
  return bc_pool_add(w, &w->attrs, w->vhlo, true, from, out);
}

/* The attributes of argument i, or NULL. */
static const ir_mdict *bc_arg_dict(const ir_computation *c, uint32_t i) {
  return c->params[i]->mlir;
}

/* A function's type is written out, where it is not kept: of its arguments and of what it returns. */
static int bc_function_type_of(bc_writer *w, const ir_computation *c, uint32_t *out) {
  ir_type type = {.kind = IR_TYPE_FUNCTION};
  if (!c->function_type) {
    const ir_type **all = BASE_ARRAY(&w->scratch, const ir_type *, (size_t)c->n_params + c->n_results + 1);
    if (!all) return bc_write_memory(w);
    for (uint32_t i = 0; i < c->n_params; i++) all[i] = c->params[i]->type;
    for (uint32_t i = 0; i < c->n_results; i++) all[c->n_params + i] = c->results[i].op->types[c->results[i].index];
    type.elements = all;
    type.n_inputs = c->n_params;
    type.n_elements = c->n_params + c->n_results;
  }
  const ir_mattr a = {.kind = IR_M_TYPE, .type = c->function_type ? c->function_type : &type};
  return bc_add_attr(w, false, &a, out);
}

/* The attributes of vhlo.func_v1, in the order of its row. */
static int bc_function_attrs(bc_writer *w, const ir_computation *c, bc_out_op *op) {
  const ir_mattr *visibility = ir_mdict_get(c->mlir, "sym_visibility");
  uint32_t n = 0;
  ir_mdict *rest = base_arena_alloc(&w->scratch, sizeof *rest + (c->mlir ? c->mlir->n : 0) * sizeof *rest->v);
  if (!rest) return bc_write_memory(w);
  for (uint32_t i = 0; c->mlir && i < c->mlir->n; i++)
    if (c->mlir->v[i].value != visibility) rest->v[n++] = c->mlir->v[i];
  rest->n = n;
  op->discardable = rest;
  TRY(bc_dicts(w, c->n_params, bc_arg_dict, c, &op->values[0]));
  TRY(bc_function_type_of(w, c, &op->values[1]));
  TRY(bc_dicts(w, ir_function_results(c), ir_result_attrs, c, &op->values[2]));
  TRY(bc_add_string(w, c->name->s, c->name->n, &op->values[3]));
  if (visibility) return bc_add_attr(w, false, visibility, &op->values[4]);
  return bc_add_string(w, "", 0, &op->values[4]);
}

/* Functions are isolated: their values are numbered from 0. */
static int bc_mark_function(bc_writer *w, const ir_computation *c) {
  assert(c->kind == IR_FUNCTION);
  bc_out_op op = {.properties = true, .n = 5};
  op.names = bc_row_by_name("func_v1", 7)->attrs;
  w->op = NULL;
  w->function = c;
  TRY(bc_op_name_of(w, w->vhlo, true, "func_v1", 7, &op.name));
  TRY(bc_add_loc(w, c->loc, &op.loc));
  for (uint32_t i = 0; i < c->n_params; i++)
    if (!c->params[i]) return bc_cant_write(w, "function %.60s lacks an argument", c->name->s);
  if (c->open_end) return bc_cant_write(w, "function %.60s ends with an op of an unknown dialect", c->name->s);
  TRY(bc_function_attrs(w, c, &op));
  TRY(bc_mark_head(w, &op, BC_OP_REGIONS));
  bc_mark(w, BC_MARK_VARINT, 3); /* one region, isolated */
  if (w->container >= BC_LAZY_REGIONS) bc_mark(w, BC_MARK_BEGIN, 0);
  TRY(bc_mark_region(w, c, 0));
  if (w->container >= BC_LAZY_REGIONS) bc_mark(w, BC_MARK_END, 0);
  return 0;
}

/* --- the module --- */

/* The module's name and visibility, and a dictionary of all other attributes. */
static int bc_module_properties(bc_writer *w, bc_out_op *op, ir_mdict **dict) {
  const ir_module *m = w->m;
  const ir_mattr name = {.kind = IR_M_STRING, .str = m->name};
  const ir_mattr *visibility = ir_mdict_get(m->mlir, "sym_visibility");
  const ir_mattr *own[2] = {m->named ? &name : NULL, visibility};
  uint32_t n = 0;
  ir_mdict *d = base_arena_alloc(&w->scratch, sizeof *d + (m->mlir ? m->mlir->n : 0) * sizeof *d->v);
  if (!d) return bc_write_memory(w);
  for (uint32_t i = 0; m->mlir && i < m->mlir->n; i++)
    if (m->mlir->v[i].value != visibility) d->v[n++] = m->mlir->v[i];
  d->n = n;
  *dict = d;
  op->discardable = d;
  op->builtin = true;
  op->names = m->named ? "sym_name sym_visibility" : "sym_visibility";
  for (int i = 0; i < 2; i++)
    if (own[i]) TRY(bc_add_attr(w, true, own[i], &op->values[op->n++]));
  return 0;
}

/* Both are optional: an absent one is a 0. */
static int bc_add_module_properties(bc_writer *w, const bc_out_op *op, uint32_t *out) {
  bool visible = op->n == 2 || (op->n == 1 && !w->m->named);
  size_t from = w->marks.n;
  uint32_t at = 0;
  bc_mark(w, w->m->named ? BC_MARK_OPTIONAL : BC_MARK_VARINT, w->m->named ? op->values[at++] : 0);
  bc_mark(w, visible ? BC_MARK_OPTIONAL : BC_MARK_VARINT, visible ? op->values[at] : 0);
  return bc_pool_add(w, &w->properties, 0, false, from, out);
}

/* builtin.module is itself an op in the file: one region, one block, no arguments. Newer containers have its name
 * and visibility as properties, older ones in the dictionary. */
static int bc_mark_module_head(bc_writer *w) {
  bc_out_op op = {0};
  ir_mdict *rest;
  bc_pair *pairs;
  uint32_t n, dict = 0, properties = 0;
  bool has_properties = w->container >= BC_PROPERTIES;
  TRY(bc_op_name_of(w, w->builtin, true, "module", 6, &op.name));
  TRY(bc_add_loc(w, w->m->loc, &op.loc));
  TRY(bc_module_properties(w, &op, &rest));
  op.properties = has_properties;
  TRY(bc_pairs_of(w, &op, &pairs, &n));
  if (n) TRY(bc_add_dict(w, n, pairs, &dict));
  if (has_properties) TRY(bc_add_module_properties(w, &op, &properties));
  bc_mark(w, BC_MARK_VARINT, 2); /* one op, no arguments */
  bc_mark(w, BC_MARK_OP, op.name);
  bc_mark(w, BC_MARK_BYTE, BC_OP_REGIONS | (n ? BC_OP_ATTRS : 0) | (has_properties ? BC_OP_PROPERTIES : 0));
  bc_mark(w, BC_MARK_ATTR, op.loc);
  if (n) bc_mark(w, BC_MARK_ATTR, dict);
  if (has_properties) bc_mark(w, BC_MARK_PROPERTIES, properties);
  bc_mark(w, BC_MARK_VARINT, 3);
  return 0;
}

/* What stands in the module itself. */
static bool bc_is_top(const ir_computation *c) {
  return !c->owner && (c->kind == IR_FUNCTION || c->kind == IR_SYMBOL);
}

/* Ops of a module that are not functions stand for symbols, as sdy.mesh does; readers look for no values there. */
static int bc_check_symbol(bc_writer *w, const ir_op *op) {
  const ir_mlir_info *info = ir_op_table[op->opcode].mlir;
  bool computes = op->n_results || (info && strncmp(info->name, "stablehlo.", 10) == 0);
  return computes ? bc_cant_write(w, "%s at the top of the module", info ? info->name : op->u.name->s) : 0;
}

/* The module is the only op of the section. */
int bc_write_ir(bc_writer *w) {
  uint64_t n = 0;
  TRY(bc_find_casts(w));
  TRY(bc_mark_module_head(w));
  IR_FOR_COMPUTATIONS(c, w->m) n += bc_is_top(c);
  if (w->container >= BC_LAZY_REGIONS) bc_mark(w, BC_MARK_BEGIN, 0);
  bc_mark(w, BC_MARK_VARINT, 1);
  bc_mark(w, BC_MARK_VARINT, 0);
  bc_mark(w, BC_MARK_VARINT, n << 1);
  IR_FOR_COMPUTATIONS(c, w->m) {
    if (!bc_is_top(c)) continue;
    if (c->kind == IR_SYMBOL) TRY(bc_check_symbol(w, c->first));
    TRY(c->kind == IR_FUNCTION ? bc_mark_function(w, c) : bc_mark_op(w, c->first, 0));
  }
  if (w->container >= BC_LAZY_REGIONS) bc_mark(w, BC_MARK_END, 0);
  return 0;
}
