/* The IR section of MLIR bytecode: the module, its functions, their ops and regions. */
#include "bytecode.h"

BASE_VEC(bc_values, ir_value);

/* Values are numbered within an op that is isolated from above: first those of its region, then, beyond all of these,
 * those of each region inside while it is read. */
typedef struct bc_ir {
  bc_reader *r;
  bc_values values;
  uint32_t scope; /* where the numbers of the isolated op begin */
  uint32_t next;  /* the number of the region's next value */
  uint32_t depth;
} bc_ir;

typedef struct bc_op {
  const bc_op_name *name;
  const uint8_t *at; /* where it begins */
  const ir_mattr *loc;
  const ir_mdict *attrs; /* StableHLO's, or for func and return see `own` */
  bc_op_attrs own;
  uint32_t n_results, n_operands, n_regions;
  const ir_type **types;
  ir_value *operands;
  bool isolated;
} bc_op;

static int bc_attr_dict(bc_cursor *c, const ir_mdict **out) {
  const ir_mattr *a;
  TRY(bc_attr_of(c, IR_M_DICT, "a dictionary of attributes", &a));
  *out = a->v.dict->n ? a->v.dict : NULL;
  return 0;
}

static uint32_t bc_count_words(const char *names) {
  base_slice word = {0};
  uint32_t n = 0;
  while (bc_next_word(&names, &word)) n++;
  return n;
}

/* Before properties, a dictionary held all: parts those of the row from the others. */
static int bc_split_dict(bc_cursor *c, bc_op_attrs *own) {
  const ir_mdict *d = own->discardable;
  if (!d) return 0;
  ir_mentry *rest = BASE_ARRAY(&c->r->scratch, ir_mentry, d->n + 1u);
  if (!rest) return bc_no_memory(c->r);
  uint32_t n = 0;
  for (uint32_t i = 0; i < d->n; i++) {
    const char *names = own->row->attrs;
    base_slice word = {0};
    uint32_t at = 0;
    bool found = false;
    while (!found && bc_next_word(&names, &word)) {
      found = base_slice_is(word, d->v[i].key->s);
      if (found) own->values[at] = d->v[i].value;
      at++;
    }
    if (!found) rest[n++] = d->v[i];
  }
  own->discardable = n ? ir_mdict_make(c->r->m, n, rest) : NULL;
  return n && !own->discardable ? bc_no_memory(c->r) : 0;
}

static int bc_read_properties_of(bc_cursor *c, bc_op_attrs *own, uint32_t n) {
  bc_reader *r = c->r;
  uint64_t index = 0;
  TRY(bc_varint(c, &index));
  if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
  bc_cursor p = bc_cursor_on(r, r->properties[index]);
  for (uint32_t i = 0; i < n; i++) {
    bc_cursor at = p;
    TRY(bc_varint(&at, &own->indices[i]));
    TRY(bc_attr(&p, &own->values[i]));
  }
  return p.p == p.end ? 0 : BC_BAD(&p, "the properties of op %s go on", own->row->name);
}

/* Ops of dialects that are not known have their properties as one attribute. */
static int bc_foreign_properties(bc_cursor *c, const bc_op_name *name, bc_op_attrs *own) {
  bc_reader *r = c->r;
  uint64_t index = 0;
  if (name->registered) {
    TRY(bc_varint(c, &index));
    if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
    if (r->properties[index].n == 0) return 0;
    return BC_BAD(c, "op %.80s has properties in the encoding of its own dialect, which xlac does not know",
                  name->full ? name->full->s : "builtin.module");
  }
  const ir_mattr *a;
  TRY(bc_attr_of(c, IR_M_DICT, "properties, which are a dictionary", &a));
  for (uint32_t i = 0; i < a->v.dict->n; i++) {
    own->discardable = ir_mdict_with(r->m, own->discardable, a->v.dict->v[i].key->s, a->v.dict->v[i].value);
    if (!own->discardable) return bc_no_memory(r);
  }
  return 0;
}

static int bc_op_attributes(bc_cursor *c, bc_op *op, uint8_t mask) {
  bc_reader *r = c->r;
  bc_op_attrs *own = &op->own;
  own->row = op->name->row;
  uint32_t n = own->row ? bc_count_words(own->row->attrs) : 0;
  own->values = base_arena_zalloc(&r->scratch, (n + 1u) * sizeof *own->values);
  own->indices = BASE_ARRAY(&r->scratch, uint64_t, n + 1u);
  if (!own->values || !own->indices) return bc_no_memory(r);
  for (uint32_t i = 0; i < n; i++) own->indices[i] = UINT64_MAX;
  if (mask & BC_OP_ATTRS) TRY(bc_attr_dict(c, &own->discardable));
  if (r->container < BC_PROPERTIES) {
    if (own->row) TRY(bc_split_dict(c, own));
  } else if (mask & BC_OP_PROPERTIES) {
    if (own->row && op->name->registered) return bc_read_properties_of(c, own, n);
    return bc_foreign_properties(c, op->name, own);
  }
  return 0;
}

static int bc_op_results(bc_cursor *c, bc_op *op) {
  TRY(bc_types(c, &op->n_results, &op->types));
  return op->n_results > UINT16_MAX ? BC_BAD(c, "an op of %u results", op->n_results) : 0;
}

static int bc_op_operands(bc_ir *ir, bc_cursor *c, bc_op *op) {
  TRY(bc_count(c, 1, &op->n_operands));
  op->operands = BASE_ARRAY(&ir->r->scratch, ir_value, op->n_operands + 1u);
  if (!op->operands) return bc_no_memory(ir->r);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint64_t v = 0;
    TRY(bc_varint(c, &v));
    if (v >= ir->values.n - ir->scope)
      return BC_BAD(c, "value %llu of %u", (unsigned long long)v, ir->values.n - ir->scope);
    op->operands[i] = ir->values.items[ir->scope + v];
    if (!op->operands[i].op) return BC_BAD(c, "value %llu is used before it is there", (unsigned long long)v);
  }
  return 0;
}

/* In which order uses stand in a list matters to nobody here. */
static int bc_skip_use_orders(bc_cursor *c, uint32_t n_values) {
  uint64_t n = 1, v;
  if (n_values > 1) TRY(bc_varint(c, &n));
  if (n > bc_left(c)) return BC_BAD(c, "orders of %llu values", (unsigned long long)n);
  for (uint64_t i = 0; i < n; i++) {
    bool pairs = false;
    uint64_t count = 0;
    if (n_values > 1) TRY(bc_varint(c, &v));
    TRY(bc_flagged(c, &count, &pairs));
    if (count > bc_left(c)) return BC_BAD(c, "an order of %llu uses", (unsigned long long)count);
    for (uint64_t j = 0; j < count; j++) TRY(bc_varint(c, &v));
  }
  return 0;
}

static int bc_op_named(bc_cursor *c, bc_op *op) {
  bc_reader *r = c->r;
  uint64_t index = 0;
  op->at = c->p;
  bc_cursor at = *c;
  TRY(bc_varint(c, &index));
  if (index >= r->n_op_names) return BC_BAD(&at, "op name %llu of %u", (unsigned long long)index, r->n_op_names);
  op->name = &r->op_names[index];
  const bc_dialect_name *d = &r->dialects[op->name->dialect];
  if (d->known != BC_VHLO || op->name->row) return 0;
  int n = op->name->name.n < 60 ? (int)op->name->name.n : 60, producer = r->producer.n < 60 ? (int)r->producer.n : 60;
  return base_hint(r->err,
                   BC_BAD(&at, "op vhlo.%.*s, which StableHLO %d.%d does not have; the artifact is of %.*s", n,
                          op->name->name.p, BC_NOW / 1000, BC_NOW % 1000, producer, r->producer.p),
                   "serialize the program again for target version %d.%d.0 or older", BC_NOW / 1000, BC_NOW % 1000);
}

/* Everything of an op but its regions. */
static int bc_op_head(bc_ir *ir, bc_cursor *c, bc_op *op) {
  uint8_t mask = 0;
  uint64_t n_regions = 0;
  *op = (bc_op){0};
  TRY(bc_op_named(c, op));
  TRY(bc_byte(c, &mask));
  TRY(bc_attr_of(c, IR_M_LOC, "a location", &op->loc));
  TRY(bc_op_attributes(c, op, mask));
  if (mask & BC_OP_RESULTS) TRY(bc_op_results(c, op));
  if (mask & BC_OP_OPERANDS) TRY(bc_op_operands(ir, c, op));
  if (mask & BC_OP_SUCCESSORS) return BC_BAD(c, "an op with successors; StableHLO has none");
  if (mask & BC_OP_USE_ORDERS) TRY(bc_skip_use_orders(c, op->n_results));
  if (mask & BC_OP_REGIONS) TRY(bc_flagged(c, &n_regions, &op->isolated));
  if (n_regions > bc_left(c)) return BC_BAD(c, "an op of %llu regions", (unsigned long long)n_regions);
  op->n_regions = (uint32_t)n_regions;
  return 0;
}

/* --- regions --- */

static int bc_define(bc_ir *ir, bc_cursor *c, ir_op *op) {
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (ir->next >= ir->values.n) return BC_BAD(c, "a region has more values than it said");
    ir->values.items[ir->next++] = (ir_value){op, i};
  }
  return 0;
}

static int bc_block_arg(bc_ir *ir, bc_cursor *c, ir_computation *to, uint32_t i) {
  bc_reader *r = ir->r;
  uint64_t type_index = 0;
  bool has_loc = true;
  const ir_type *type;
  const ir_mattr *loc = r->unknown_loc;
  if (r->container >= BC_ELIDED_LOCATIONS) {
    TRY(bc_flagged(c, &type_index, &has_loc));
  } else {
    TRY(bc_varint(c, &type_index));
  }
  TRY(bc_type_at(c, type_index, &type));
  if (has_loc) TRY(bc_attr_of(c, IR_M_LOC, "a location", &loc));
  ir_op *op = ir_op_new(to, IR_OP_PARAMETER, type, r->nameless, 0, 0);
  if (!op || !ir_set_parameter(op, i)) return bc_no_memory(r);
  op->loc = loc;
  return bc_define(ir, c, op);
}

static int bc_block_args(bc_ir *ir, bc_cursor *c, ir_computation *to) {
  uint32_t n = 0;
  uint8_t orders = 0;
  TRY(bc_count(c, 1, &n));
  for (uint32_t i = 0; i < n; i++) TRY(bc_block_arg(ir, c, to, i));
  if (ir->r->container < BC_USE_ORDERS) return 0;
  TRY(bc_byte(c, &orders));
  return orders ? bc_skip_use_orders(c, n) : 0;
}

static int bc_read_ops(bc_ir *ir, bc_cursor *c, ir_computation *to, uint64_t n);
static int bc_op_regions(bc_ir *ir, bc_cursor *c, const bc_op *op, ir_op *owner, ir_computation **regions);

/* A region into `to`: no block, or one. */
static int bc_region(bc_ir *ir, bc_cursor *c, ir_computation *to) {
  bc_reader *r = ir->r;
  uint64_t n_blocks = 0, n_values = 0, n_ops = 0;
  bool args = false;
  bc_cursor at = *c;
  TRY(bc_varint(c, &n_blocks));
  if (n_blocks > 1) return BC_BAD(&at, "a region of %llu blocks; StableHLO's have one", (unsigned long long)n_blocks);
  if (n_blocks == 0) return to->declaration = true, 0;
  TRY(bc_varint(c, &n_values));
  r->n_claimed += n_values;
  if (n_values > UINT32_MAX / 2 || r->n_claimed > (uint64_t)(r->end - r->base))
    return BC_BAD(&at, "a region of %llu values", (unsigned long long)n_values);
  uint32_t begin = ir->values.n, outer_next = ir->next;
  if (!BASE_VEC_RESERVE(r->m->alloc, &ir->values, (size_t)begin + n_values)) return bc_no_memory(r);
  if (n_values) memset(ir->values.items + begin, 0, (size_t)n_values * sizeof *ir->values.items);
  ir->values.n += (uint32_t)n_values;
  ir->next = begin;
  TRY(bc_flagged(c, &n_ops, &args));
  if (args) TRY(bc_block_args(ir, c, to));
  TRY(bc_read_ops(ir, c, to, n_ops));
  ir->values.n = begin;
  ir->next = outer_next;
  return 0;
}

static int bc_new_region(bc_ir *ir, ir_op *owner, ir_computation **out) {
  ir_computation *region = ir_computation_new(ir->r->m, "", 0);
  if (!region) return bc_no_memory(ir->r);
  region->kind = IR_REGION;
  region->owner = owner;
  *out = region;
  return 0;
}

/* Regions of isolated ops lie in sections of their own, so that a reader may skip them. */
static int bc_op_regions(bc_ir *ir, bc_cursor *c, const bc_op *op, ir_op *owner, ir_computation **regions) {
  bc_reader *r = ir->r;
  bc_ir outer = *ir;
  bc_cursor inner = {r, c->p, c->p};
  bool sections = op->isolated && r->container >= BC_LAZY_REGIONS;
  if (ir->depth >= r->max_depth) return bc_fail(c, XLAC_E_TOO_DEEP, "regions are nested over %u deep", r->max_depth);
  ir->depth++;
  if (op->isolated) ir->scope = ir->values.n;
  for (uint32_t i = 0; i < op->n_regions; i++) {
    if (owner) TRY(bc_new_region(ir, owner, &regions[i]));
    if (sections && inner.p == inner.end) {
      uint8_t id = 0;
      base_slice data = {0};
      TRY(bc_section(c, &id, &data));
      if (id != BC_S_IR) return BC_BAD(c, "expected an IR section, found section %u", id);
      inner = bc_cursor_on(r, data);
    }
    TRY(bc_region(ir, sections ? &inner : c, regions[i]));
  }
  if (inner.p != inner.end) return BC_BAD(&inner, "the section of an op's regions goes on");
  ir->scope = outer.scope;
  ir->depth = outer.depth;
  return 0;
}

/* --- ops --- */

static int bc_fits_row(const bc_cursor *c, const bc_op *op, unsigned opcode) {
  const ir_mlir_info *info = ir_opcode_info(opcode)->mlir;
  if (!info) return 0;
  struct {
    const char *what;
    int want;
    uint32_t have;
  } counts[] = {{"operands", info->operands, op->n_operands},
                {"results", info->results, op->n_results},
                {"regions", info->regions, op->n_regions}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    if (counts[i].want != IR_VARIADIC && counts[i].have != (uint32_t)counts[i].want)
      return BC_BAD(c, "op %s has %u %s; %d are expected", info->name, counts[i].have, counts[i].what, counts[i].want);
  return 0;
}

static int bc_add_op(bc_ir *ir, bc_cursor *c, const bc_op *from, ir_computation *to, ir_op **out) {
  bc_reader *r = ir->r;
  unsigned opcode = from->name->opcode;
  const ir_mdict *attrs;
  bc_cursor at = {r, from->at, c->end};
  TRY(bc_fits_row(&at, from, opcode));
  TRY(bc_to_stablehlo(&at, opcode, &from->own, &attrs));
  ir_op *op =
      ir_op_new_n(to, (ir_opcode)opcode, from->n_results, from->types, r->nameless, from->n_operands, from->n_regions);
  if (!op) return bc_no_memory(r);
  for (uint32_t i = 0; i < from->n_operands; i++) ir_set_operand(op, i, from->operands[i]);
  op->mlir = attrs;
  op->loc = from->loc;
  if (opcode == IR_OP_UNREGISTERED) {
    op->u.name = from->name->full ? from->name->full : ir_intern(r->m, "stablehlo.cross-replica-sum", 27);
    if (!op->u.name) return bc_no_memory(r);
  }
  TRY(bc_define(ir, c, op));
  if (from->n_regions) TRY(bc_op_regions(ir, c, from, op, op->called));
  *out = op;
  return 0;
}

static bool bc_is_return(const bc_op *op) {
  if (op->name->row) return op->name->row->opcode == IR_OP_INVALID && strcmp(op->name->row->name, "return_v1") == 0;
  const base_istr *full = op->name->full;
  return full && full->n > 7 && strcmp(full->s + full->n - 7, ".return") == 0;
}

static int bc_return(bc_reader *r, const bc_op *op, ir_computation *to) {
  to->n_results = op->n_operands;
  to->results = base_arena_memdup(&r->m->arena, op->operands, op->n_operands * sizeof *op->operands);
  if (op->n_operands && !to->results) return bc_no_memory(r);
  to->return_loc = op->loc;
  to->return_mlir = op->own.discardable;
  if (op->name->full) to->return_name = op->name->full;
  return 0;
}

static int bc_read_ops(bc_ir *ir, bc_cursor *c, ir_computation *to, uint64_t n) {
  bool returned = false;
  for (uint64_t i = 0; i < n; i++) {
    bc_op head;
    ir_op *op;
    TRY(bc_op_head(ir, c, &head));
    bc_cursor at = {ir->r, head.at, c->end};
    if (returned) return BC_BAD(&at, "an op after the return");
    if (bc_is_return(&head)) {
      if (head.n_results || head.n_regions) return BC_BAD(&at, "a return with results or regions");
      TRY(bc_return(ir->r, &head, to));
      returned = true;
    } else if (head.name->opcode == IR_OP_INVALID) {
      return BC_BAD(&at, "op %.*s can't stand here", head.name->name.n < 60 ? (int)head.name->name.n : 60,
                    head.name->name.p);
    } else {
      TRY(bc_add_op(ir, c, &head, to, &op));
    }
  }
  return returned ? 0 : BC_BAD(c, "a region without a return");
}

/* --- functions --- */

typedef struct bc_func {
  const ir_mattr *name, *type, *visibility, *args, *results;
} bc_func;

static int bc_func_attrs(const bc_cursor *c, const bc_op *op, bc_func *f) {
  const ir_mattr *const *v = op->own.values; /* arg_attrs function_type res_attrs sym_name sym_visibility */
  *f = (bc_func){.args = v[0], .type = v[1], .results = v[2], .name = v[3], .visibility = v[4]};
  if (!f->name || f->name->kind != IR_M_STRING) return BC_BAD(c, "a function lacks a name");
  if (!f->type || f->type->kind != IR_M_TYPE || f->type->type->kind != IR_TYPE_FUNCTION)
    return BC_BAD(c, "function %.60s lacks a function type", f->name->str->s);
  if (f->visibility && f->visibility->kind != IR_M_STRING) return BC_BAD(c, "a visibility that is no string");
  return 0;
}

/* A list of dictionaries, one for each of n things; or an empty one. */
static int bc_dict_list(const bc_cursor *c, const ir_mattr *a, uint32_t n, bool *any) {
  *any = a && a->kind == IR_M_ARRAY && a->v.list->n;
  if (a && a->kind != IR_M_ARRAY) return BC_BAD(c, "expected a list of dictionaries");
  if (*any && a->v.list->n != n) return BC_BAD(c, "%u dictionaries for %u things", a->v.list->n, n);
  for (uint32_t i = 0; *any && i < n; i++)
    if (a->v.list->v[i]->kind != IR_M_DICT) return BC_BAD(c, "expected a dictionary");
  return 0;
}

static const ir_mdict *bc_dict_or_null(const ir_mattr *a) {
  return a->v.dict->n ? a->v.dict : NULL;
}

static int bc_func_signature(bc_ir *ir, const bc_cursor *c, const bc_func *f, ir_computation *to) {
  const ir_type *type = f->type->type;
  uint32_t n_results = type->n_elements - type->n_inputs;
  bool has_args = false, has_results = false;
  TRY(bc_dict_list(c, f->args, type->n_inputs, &has_args));
  TRY(bc_dict_list(c, f->results, n_results, &has_results));
  if (has_results) {
    const ir_mdict **d = BASE_ARRAY(&ir->r->m->arena, const ir_mdict *, n_results);
    if (!d) return bc_no_memory(ir->r);
    for (uint32_t i = 0; i < n_results; i++) d[i] = bc_dict_or_null(f->results->v.list->v[i]);
    to->result_mlir = d;
  }
  if (to->declaration) {
    to->function_type = type;
    to->n_results = n_results;
    return has_args ? BC_BAD(c, "a declaration with attributes of arguments") : 0;
  }
  bool same = to->n_params == type->n_inputs && to->n_results == n_results;
  for (uint32_t i = 0; same && i < to->n_params; i++) same = to->params[i]->type == type->elements[i];
  for (uint32_t i = 0; same && i < n_results; i++)
    same = to->results[i].op->types[to->results[i].index] == type->elements[type->n_inputs + i];
  if (!same) return BC_BAD(c, "the body of function %.60s is not of its type", f->name->str->s);
  for (uint32_t i = 0; has_args && i < to->n_params; i++) to->params[i]->mlir = bc_dict_or_null(f->args->v.list->v[i]);
  return 0;
}

static int bc_function(bc_ir *ir, bc_cursor *c, const bc_op *op) {
  bc_reader *r = ir->r;
  bc_func f;
  bc_cursor at = {r, op->at, c->end};
  TRY(bc_func_attrs(&at, op, &f));
  if (op->n_regions != 1 || op->n_results || op->n_operands) return BC_BAD(&at, "a function without one region");
  ir_computation *to = ir_computation_new(r->m, f.name->str->s, f.name->str->n);
  if (!to) return bc_no_memory(r);
  to->kind = IR_FUNCTION;
  to->loc = op->loc;
  to->mlir = op->own.discardable;
  if (f.visibility && f.visibility->str->n &&
      !(to->mlir = ir_mdict_with(r->m, to->mlir, "sym_visibility", f.visibility)))
    return bc_no_memory(r);
  TRY(bc_op_regions(ir, c, op, NULL, &to));
  return bc_func_signature(ir, &at, &f, to);
}

/* --- the module --- */

static int bc_symbol_op(bc_ir *ir, bc_cursor *c, const bc_op *head) {
  ir_computation *to = ir_computation_new(ir->r->m, "", 0);
  ir_op *op;
  if (!to) return bc_no_memory(ir->r);
  to->kind = IR_SYMBOL;
  if (head->n_results || head->n_operands) return BC_BAD(c, "an op of the module with results or operands");
  TRY(bc_add_op(ir, c, head, to, &op));
  const ir_mattr *name = ir_mattr_of(op, "sym_name");
  if (name && name->kind == IR_M_STRING) to->name = name->str;
  to->loc = op->loc;
  return 0;
}

static int bc_module_ops(bc_ir *ir, bc_cursor *c, uint64_t n) {
  for (uint64_t i = 0; i < n; i++) {
    bc_op head;
    TRY(bc_op_head(ir, c, &head));
    bc_cursor at = {ir->r, head.at, c->end};
    const bc_row *row = head.name->row;
    if (row && strcmp(row->name, "func_v1") == 0) {
      TRY(bc_function(ir, c, &head));
    } else if (row || head.name->opcode == IR_OP_INVALID) {
      return BC_BAD(&at, "op %.*s can't stand in a module", head.name->name.n < 60 ? (int)head.name->name.n : 60,
                    head.name->name.p);
    } else {
      TRY(bc_symbol_op(ir, c, &head));
    }
  }
  return 0;
}

static int bc_module_body(bc_ir *ir, bc_cursor *c) {
  bc_cursor body = *c;
  uint64_t n_blocks = 0, n_values = 0, n_ops = 0;
  bool args = false;
  if (ir->r->container >= BC_LAZY_REGIONS) {
    uint8_t id = 0;
    base_slice data = {0};
    TRY(bc_section(c, &id, &data));
    if (id != BC_S_IR) return BC_BAD(c, "expected an IR section, found section %u", id);
    body = bc_cursor_on(ir->r, data);
  }
  TRY(bc_varint(&body, &n_blocks));
  if (n_blocks != 1) return BC_BAD(&body, "a module of %llu blocks", (unsigned long long)n_blocks);
  TRY(bc_varint(&body, &n_values));
  TRY(bc_flagged(&body, &n_ops, &args));
  if (args || n_values) return BC_BAD(&body, "a module whose block has values");
  TRY(bc_module_ops(ir, &body, n_ops));
  if (body.p != body.end) return BC_BAD(&body, "the module goes on after its last op");
  return 0;
}

/* Its name and visibility are properties, each of which may be absent. */
static int bc_module_name(bc_ir *ir, bc_cursor *c, uint8_t mask, const ir_mattr **name) {
  bc_reader *r = ir->r;
  uint64_t index = 0;
  const ir_mattr *visibility = NULL;
  *name = NULL;
  if (r->container < BC_PROPERTIES) {
    *name = ir_mdict_get(r->m->mlir, "sym_name");
    if (*name && !(r->m->mlir = ir_mdict_with(r->m, r->m->mlir, "sym_name", NULL))) return bc_no_memory(r);
    return 0;
  }
  if (!(mask & BC_OP_PROPERTIES)) return 0;
  TRY(bc_varint(c, &index));
  if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
  bc_cursor p = bc_cursor_on(r, r->properties[index]);
  TRY(bc_optional_attr(&p, name));
  TRY(bc_optional_attr(&p, &visibility));
  if (visibility && !(r->m->mlir = ir_mdict_with(r->m, r->m->mlir, "sym_visibility", visibility)))
    return bc_no_memory(r);
  return 0;
}

static int bc_module(bc_ir *ir, bc_cursor *c) {
  bc_reader *r = ir->r;
  uint64_t index = 0, n_regions = 0;
  uint8_t mask = 0;
  bool isolated = false;
  const ir_mattr *name;
  bc_cursor at = *c;
  TRY(bc_varint(c, &index));
  bool is_module = index < r->n_op_names && r->dialects[r->op_names[index].dialect].known == BC_BUILTIN &&
                   base_slice_is(r->op_names[index].name, "module");
  if (!is_module) return BC_BAD(&at, "expected builtin.module");
  TRY(bc_byte(c, &mask));
  if (mask & ~(BC_OP_ATTRS | BC_OP_PROPERTIES | BC_OP_REGIONS) || !(mask & BC_OP_REGIONS))
    return BC_BAD(&at, "a module with results, operands or successors, or without a region");
  TRY(bc_attr_of(c, IR_M_LOC, "a location", &r->m->loc));
  if (mask & BC_OP_ATTRS) TRY(bc_attr_dict(c, &r->m->mlir));
  TRY(bc_module_name(ir, c, mask, &name));
  TRY(bc_flagged(c, &n_regions, &isolated));
  if (n_regions != 1 || !isolated) return BC_BAD(&at, "a module without one region");
  if (name && name->kind != IR_M_STRING) return BC_BAD(&at, "a module's name is no string");
  if (name) {
    r->m->named = true;
    r->m->name = name->str;
  }
  return bc_module_body(ir, c);
}

static void bc_choose_entry(ir_module *m) {
  ir_computation *first = NULL;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    if (strcmp(c->name->s, "main") == 0) {
      m->entry = c;
      return;
    }
    if (!first) first = c;
  }
  if (first) m->entry = first;
}

int bc_read_ir(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_IR]);
  bc_ir ir = {.r = r};
  uint64_t n_ops = 0;
  bool args = false;
  ir_mloc unknown = {.kind = IR_LOC_UNKNOWN};
  r->unknown_loc = ir_m_loc(r->m, &unknown);
  r->nameless = ir_intern(r->m, "", 0);
  if (!r->unknown_loc || !r->nameless) return bc_no_memory(r);
  TRY(bc_flagged(&c, &n_ops, &args));
  if (n_ops != 1 || args) return BC_BAD(&c, "expected one module, found %llu ops", (unsigned long long)n_ops);
  int status = bc_module(&ir, &c);
  BASE_VEC_FREE(r->m->alloc, &ir.values);
  TRY(status);
  bc_choose_entry(r->m);
  return 0;
}
