/* Reading and setting an op's attributes. */
#include "../ir.h"

static ir_attr *find_slot(const ir_op *op, ir_attr_key key) {
  for (uint16_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].key == key) return &op->attrs[i];
  return NULL;
}

const ir_attr *ir_attr_find(const ir_op *op, ir_attr_key key) {
  return find_slot(op, key);
}

static bool grow_attrs(ir_op *op) {
  if (op->n_attrs < op->attr_cap) return true;
  uint8_t cap = op->attr_cap ? (uint8_t)(op->attr_cap * 2) : 4;
  ir_attr *attrs = BASE_ARRAY(&op->parent->module->arena, ir_attr, cap);
  if (!attrs) return false;
  if (op->n_attrs) memcpy(attrs, op->attrs, op->n_attrs * sizeof *attrs);
  op->attrs = attrs;
  op->attr_cap = cap;
  return true;
}

bool ir_attr_set(ir_op *op, ir_attr value) {
  assert(value.key > IR_ATTR_NONE && value.key < IR_ATTR_COUNT);
  assert(value.kind == ir_attr_table[value.key].kind);
  op->parent->module->verified = false;
  ir_attr *slot = find_slot(op, value.key);
  if (!slot) {
    if (!grow_attrs(op)) return false;
    slot = &op->attrs[op->n_attrs++];
  }
  *slot = value;
  return true;
}

void ir_attr_remove(ir_op *op, ir_attr_key key) {
  ir_attr *slot = find_slot(op, key);
  if (!slot) return;
  op->parent->module->verified = false;
  memmove(slot, slot + 1, (size_t)(op->attrs + op->n_attrs - slot - 1) * sizeof *slot);
  op->n_attrs--;
}

int64_t ir_get_int(const ir_op *op, ir_attr_key key, int64_t otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_INT);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.i : otherwise;
}

bool ir_get_bool(const ir_op *op, ir_attr_key key, bool otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_BOOL);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.b : otherwise;
}

double ir_get_float(const ir_op *op, ir_attr_key key, double otherwise) {
  assert(ir_attr_table[key].kind == IR_KIND_FLOAT);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.f : otherwise;
}

const ir_ints *ir_get_ints(const ir_op *op, ir_attr_key key) {
  static const ir_ints empty = {0};
  assert(ir_attr_table[key].kind == IR_KIND_INTS || ir_attr_table[key].kind == IR_KIND_BOOLS);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.ints : &empty;
}

const char *ir_get_str(const ir_op *op, ir_attr_key key) {
  assert(ir_attr_table[key].kind == IR_KIND_STRING || ir_attr_table[key].kind == IR_KIND_NAME);
  const ir_attr *a = find_slot(op, key);
  return a ? a->v.str->s : "";
}

const ir_window *ir_get_window(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_WINDOW);
  return a ? a->v.window : NULL;
}

const ir_conv_dims *ir_get_conv_dims(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_DIM_LABELS);
  return a ? a->v.conv : NULL;
}

const ir_sharding *ir_get_sharding(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_SHARDING);
  return a ? a->v.sharding : NULL;
}

const ir_metadata *ir_get_metadata(const ir_op *op) {
  const ir_attr *a = find_slot(op, IR_ATTR_METADATA);
  return a ? a->v.metadata : NULL;
}

bool ir_set_int(ir_op *op, ir_attr_key key, int64_t v) {
  ir_attr a = ir_attr_make(key);
  a.v.i = v;
  return ir_attr_set(op, a);
}

bool ir_set_bool(ir_op *op, ir_attr_key key, bool v) {
  ir_attr a = ir_attr_make(key);
  a.v.b = v;
  return ir_attr_set(op, a);
}

bool ir_set_float(ir_op *op, ir_attr_key key, double v) {
  ir_attr a = ir_attr_make(key);
  a.v.f = v;
  return ir_attr_set(op, a);
}

const ir_ints *ir_ints_make(ir_module *m, uint32_t n, const int64_t *v) {
  ir_ints *ints = base_arena_alloc(&m->arena, sizeof *ints + n * sizeof *v);
  if (!ints) return NULL;
  ints->n = n;
  if (n) memcpy(ints->v, v, n * sizeof *v);
  return ints;
}

bool ir_set_ints(ir_op *op, ir_attr_key key, uint32_t n, const int64_t *v) {
  ir_attr a = ir_attr_make(key);
  a.v.ints = ir_ints_make(op->parent->module, n, v);
  return a.v.ints && ir_attr_set(op, a);
}

bool ir_set_str(ir_op *op, ir_attr_key key, const char *s, size_t n) {
  ir_attr a = ir_attr_make(key);
  a.v.str = ir_intern(op->parent->module, s, n);
  return a.v.str && ir_attr_set(op, a);
}
