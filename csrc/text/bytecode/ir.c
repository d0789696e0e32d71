/* Regions and the ops in them.
 *
 *   op: name  mask  location  [attributes] [properties] [result types] [operands] [use orders] [regions]
 * The mask says which parts there are. Values have no names but numbers, in the order in which they are defined; a
 * region says beforehand how many it has, so that places for them can be kept. */
#include "../../ir/check/check.h"
#include "ir.h"
#include "sdy.h"

/* --- regions --- */

/* The results of the op get the region's next numbers. */
static int bc_define(bc_ir *ir, bc_cursor *c, ir_op *op) {
  assert(op && ir->next <= ir->values.n);
  for (uint32_t i = 0; i < op->n_results; i++) {
    if (ir->next >= ir->values.n) return BC_BAD(c, "a region has more values than it said");
    ir->values.items[ir->next++] = (ir_value){op, i};
  }
  return 0;
}

/* From version 4 on a location that is unknown may be left out. */
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

/* Behind them the orders of their uses, which are read past. */
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

/* A region into `to`: no block, or one. */
static int bc_region(bc_ir *ir, bc_cursor *c, ir_computation *to) {
  assert(to && ir->scope <= ir->values.n);
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

/* A region of its own for op `owner`. */
static int bc_new_region(bc_ir *ir, ir_op *owner, ir_computation **out) {
  ir_computation *region = ir_computation_new(ir->r->m, "", 0);
  if (!region) return bc_no_memory(ir->r);
  region->kind = IR_REGION;
  region->owner = owner;
  *out = region;
  return 0;
}

/* Regions of isolated ops lie in sections of their own, so that a reader may skip them. Values of an isolated op's
 * regions are numbered from 0 again: `scope` moves to where they begin. */
int bc_op_regions(bc_ir *ir, bc_cursor *c, const bc_op *op, ir_op *owner, ir_computation **regions) {
  bc_reader *r = ir->r;
  bc_ir outer = *ir;
  bc_cursor inner = {r, c->p, c->p};
  bool sections = op->isolated && r->container >= BC_LAZY_REGIONS;
  if (ir->depth >= r->max_depth) return bc_fail(c, XLAC_E_TOO_DEEP, "regions are nested over %u deep", r->max_depth);
  ir->depth++;
  if (op->isolated) ir->scope = ir->values.n;
  /* Whether the artifact says so or not. */
  if (op->isolated || ir_is_isolated(op->name->opcode)) ir->floor = ir->values.n;
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
  ir->floor = outer.floor;
  ir->depth = outer.depth;
  assert(ir->scope <= ir->values.n);
  return 0;
}

/* --- ops --- */

/* Operands, results and regions as many as the op's definition says, which printers and passes rely on. */
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

/* There if it must be, and within its range. */
static int bc_check_attr(const bc_cursor *c, const ir_mlir_info *op, const ir_mattr_spec *spec, const ir_mattr *a) {
  if (!a && spec->flags & IR_REQUIRED) return BC_BAD(c, "op %s lacks the attribute %s", op->name, spec->name);
  if (!a || a->kind != IR_M_INTEGER) return 0;
  bool positive = spec->flags & IR_POSITIVE, natural = spec->flags & IR_NON_NEGATIVE;
  if (!(positive && a->v.i <= 0) && !(natural && a->v.i < 0)) return 0;
  return BC_BAD(c, "op %s has %s = %lld; expected a number that is %s", op->name, spec->name, (long long)a->v.i,
                positive ? "positive" : "not negative");
}

/* What the op's row says of its attributes, as the reader of text checks it. VHLO has no ranges, and an op of another
 * dialect may have left out all its properties. */
static int bc_check_attrs(const bc_cursor *c, const ir_mdict *attrs, unsigned opcode) {
  const ir_mlir_info *info = ir_opcode_info(opcode)->mlir;
  for (const ir_mattr_spec *spec = info ? info->attrs : NULL; spec && spec->name; spec++)
    TRY(bc_check_attr(c, info, spec, ir_mdict_get(attrs, spec->name)));
  return 0;
}

/* Ops with the same properties share one dictionary where none has other attributes. */
static int bc_attrs_of(bc_cursor *at, const bc_op *from, const ir_mdict **attrs) {
  if (from->shared) return *attrs = from->shared->dict, 0;
  TRY(bc_to_stablehlo(at, from->name->opcode, &from->own, attrs));
  TRY(bc_check_attrs(at, *attrs, from->name->opcode));
  bc_properties *properties = from->own.properties;
  if (properties && !from->own.discardable) properties->op = from->name, properties->dict = *attrs;
  return 0;
}

/* Makes the op, defines its results, and reads its regions. */
int bc_add_op(bc_ir *ir, bc_cursor *c, const bc_op *from, ir_computation *to, ir_op **out) {
  assert(from->name->opcode != IR_OP_INVALID && from->name->opcode < IR_OP_COUNT);
  bc_reader *r = ir->r;
  unsigned opcode = from->name->opcode;
  const ir_mdict *attrs;
  bc_cursor at = {r, from->at, c->end};
  TRY(bc_fits_row(&at, from, opcode));
  TRY(bc_attrs_of(&at, from, &attrs));
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
  uint32_t first = ir->next;
  TRY(bc_define(ir, c, op));
  /* Its results have numbers by now, but its own regions can't use them. */
  for (uint32_t i = 0; i < from->n_results; i++) ir->values.items[first + i].op = NULL;
  if (from->n_regions) TRY(bc_op_regions(ir, c, from, op, op->called));
  for (uint32_t i = 0; i < from->n_results; i++) ir->values.items[first + i] = (ir_value){op, i};
  *out = op;
  return 0;
}

/* Between values of VHLO's types and of MLIR's own, which are the same here. Its results get numbers, but stand for
 * the operands themselves. */
static int bc_cast(bc_ir *ir, bc_cursor *c, const bc_op *op) {
  bool same = op->n_results == op->n_operands && op->n_regions == 0;
  for (uint32_t i = 0; same && i < op->n_results; i++)
    same = op->operands[i].op->types[op->operands[i].index] == op->types[i];
  if (!same) return BC_BAD(c, "a builtin.unrealized_conversion_cast to another type");
  if (op->n_results > ir->values.n - ir->next) return BC_BAD(c, "a region has more values than it said");
  for (uint32_t i = 0; i < op->n_results; i++) ir->values.items[ir->next++] = op->operands[i];
  return 0;
}

/* VHLO's return, or the terminator of another dialect. */
static bool bc_is_return(const bc_op *op) {
  if (op->name->row) return op->name->row->opcode == IR_OP_INVALID && strcmp(op->name->row->name, "return_v1") == 0;
  const base_istr *full = op->name->full;
  if (!full) return false;
  return (full->n > 7 && strcmp(full->s + full->n - 7, ".return") == 0) || strcmp(full->s, "shape.assuming_yield") == 0;
}

/* What is returned is said by the computation: terminators are not ops here. */
static int bc_return(bc_reader *r, const bc_op *op, ir_computation *to) {
  assert(!to->results && op->n_results == 0);
  to->n_results = op->n_operands;
  to->results = base_arena_memdup(&r->m->arena, op->operands, op->n_operands * sizeof *op->operands);
  if (op->n_operands && !to->results) return bc_no_memory(r);
  to->return_loc = op->loc;
  to->return_mlir = op->own.discardable;
  if (op->name->full) to->return_name = op->name->full;
  return 0;
}

/* Scratch memory of an op is given back after it, unless the arena has moved on to another chunk. */
static int bc_read_ops(bc_ir *ir, bc_cursor *c, ir_computation *to, uint64_t n) {
  bool returned = false;
  for (uint64_t i = 0; i < n; i++) {
    bc_op head;
    ir_op *op;
    base_arena *scratch = &ir->r->scratch;
    char *mark = scratch->at;
    const base_arena_chunk *chunk = scratch->chunks;
    TRY(bc_op_head(ir, c, &head));
    bc_cursor at = {ir->r, head.at, c->end};
    if (returned) return BC_BAD(&at, "an op after the return");
    if (bc_is_return(&head)) {
      if (head.n_results || head.n_regions) return BC_BAD(&at, "a return with results or regions");
      TRY(bc_return(ir->r, &head, to));
      returned = true;
    } else if (head.name->cast) {
      TRY(bc_cast(ir, &at, &head));
    } else if (head.name->opcode == IR_OP_INVALID) {
      return BC_BAD(&at, "op %.*s can't stand here", head.name->name.n < 60 ? (int)head.name->name.n : 60,
                    head.name->name.p);
    } else {
      TRY(bc_add_op(ir, c, &head, to, &op));
    }
    if (scratch->chunks == chunk) scratch->at = mark; /* what the head needed */
  }
  return returned ? 0 : BC_BAD(c, "a region without a return");
}

/* ---- The head of one op: its name, attributes, types and operands, everything but its regions. */

/* NULL for an empty one, as in ops that have no attributes. */
int bc_attr_dict(bc_cursor *c, const ir_mdict **out) {
  assert(out);
  const ir_mattr *a;
  TRY(bc_attr_of(c, IR_M_DICT, "a dictionary of attributes", &a));
  *out = a->v.dict->n ? a->v.dict : NULL;
  return 0;
}

/* Before properties, a dictionary held all: parts those of the row from the others. */
static int bc_split_dict(bc_cursor *c, bc_op_attrs *own) {
  assert(own->row && own->values);
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

/* One attribute for each name of the row, in its order. */
static int bc_read_properties_of(bc_cursor *c, bc_op_attrs *own, uint32_t n) {
  assert(own->row && own->values && own->indices);
  bc_reader *r = c->r;
  uint64_t index = 0;
  TRY(bc_varint(c, &index));
  if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
  own->properties = &r->properties[index];
  bc_cursor p = bc_cursor_on(r, own->properties->data);
  for (uint32_t i = 0; i < n; i++) {
    bc_cursor at = p;
    TRY(bc_varint(&at, &own->indices[i]));
    TRY(bc_attr(&p, &own->values[i]));
  }
  return p.p == p.end ? 0 : BC_BAD(&p, "the properties of op %s go on", own->row->name);
}

/* Ops of dialects that are not known have their properties as one attribute. Registered dialects have an encoding of
 * their own, of which only sdy's is known. */
static int bc_foreign_properties(bc_cursor *c, const bc_op_name *name, bc_op_attrs *own) {
  bc_reader *r = c->r;
  uint64_t index = 0;
  if (name->registered) {
    TRY(bc_varint(c, &index));
    if (index >= r->n_properties) return BC_BAD(c, "properties %llu of %u", (unsigned long long)index, r->n_properties);
    if (r->properties[index].data.n == 0) return 0;
    const ir_mlir_info *info = ir_opcode_info(name->opcode)->mlir;
    bc_cursor p = bc_cursor_on(r, r->properties[index].data);
    if (r->dialects[name->dialect].known == BC_SDY && info) return bc_sdy_properties(&p, info, &own->discardable);
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

/* Takes the number of properties that another op of the same name had. Looks ahead without moving; *c moves only
 * where it says true. */
static bool bc_shared_properties(bc_cursor *c, bc_op *op) {
  bc_reader *r = c->r;
  bc_cursor at = *c;
  uint64_t index = 0;
  if (bc_varint(&at, &index) != 0) return false; /* and is an error again below */
  if (index >= r->n_properties || r->properties[index].op != op->name) return false;
  op->shared = &r->properties[index];
  *c = at;
  return true;
}

/* Inherent attributes by the row's names, all others in `discardable`. */
static int bc_op_attributes(bc_cursor *c, bc_op *op, uint8_t mask) {
  bc_reader *r = c->r;
  bc_op_attrs *own = &op->own;
  own->row = op->name->row;
  uint32_t n = op->name->n_attrs;
  if (!(mask & BC_OP_ATTRS) && mask & BC_OP_PROPERTIES && bc_shared_properties(c, op)) return 0;
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

/* The types of the results, which is how many there are. */
static int bc_op_results(bc_cursor *c, bc_op *op) {
  TRY(bc_types(c, &op->n_results, &op->types));
  return op->n_results > UINT16_MAX ? BC_BAD(c, "an op of %u results", op->n_results) : 0;
}

/* Numbers are relative to the isolated op. A value must have been defined: StableHLO has no forward references. */
static int bc_op_operands(bc_ir *ir, bc_cursor *c, bc_op *op) {
  TRY(bc_count(c, 1, &op->n_operands));
  op->operands = BASE_ARRAY(&ir->r->scratch, ir_value, op->n_operands + 1u);
  if (!op->operands) return bc_no_memory(ir->r);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint64_t v = 0;
    TRY(bc_varint(c, &v));
    if (v >= ir->values.n - ir->scope)
      return BC_BAD(c, "value %llu of %u", (unsigned long long)v, ir->values.n - ir->scope);
    if (ir->scope + v < ir->floor)
      return BC_BAD(c, "value %llu is outside of a region that is isolated from above", (unsigned long long)v);
    op->operands[i] = ir->values.items[ir->scope + v];
    if (!op->operands[i].op) return BC_BAD(c, "value %llu is used before it is there", (unsigned long long)v);
  }
  return 0;
}

/* In which order uses stand in a list matters to nobody here. For one value there is no count and no number of the
 * value. */
int bc_skip_use_orders(bc_cursor *c, uint32_t n_values) {
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

/* An op of VHLO that is in no row is of a newer version, and the error says so. */
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
int bc_op_head(bc_ir *ir, bc_cursor *c, bc_op *op) {
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
