/* The head of one op: its name, attributes, types and operands, everything but its regions. */
#include "ir.h"
#include "sdy.h"

int bc_attr_dict(bc_cursor *c, const ir_mdict **out) {
  const ir_mattr *a;
  TRY(bc_attr_of(c, IR_M_DICT, "a dictionary of attributes", &a));
  *out = a->v.dict->n ? a->v.dict : NULL;
  return 0;
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
  own->properties = &r->properties[index];
  bc_cursor p = bc_cursor_on(r, own->properties->data);
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

/* Takes the number of properties that another op of the same name had. */
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
