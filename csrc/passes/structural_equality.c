/* When two ops compute the same: by what they are, not by their names or places in the text. Computations fall into
 * classes, so that ops with equal bodies compare by one number. */
#include "structural_equality.h"

/* The multiplier is 2^64 divided by the golden ratio.
 * Used by cse, where operands are the same ops, and for whole computations, where they stand in the same place
 * (by_place): two reducers add(x, y) under different names are one class. */
static uint64_t same_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}

/* What says where an op came from says nothing of what it computes. */
static bool same_ignores(unsigned key) {
  return key == IR_ATTR_METADATA || key == IR_ATTR_ORIGIN || key == IR_ATTR_STATISTICS;
}

/* Two results of one op differ by index. */
static uint64_t same_operand(const same_classes *s, const ir_use *use, bool by_place) {
  return (by_place ? (uint64_t)s->number[use->op->id] : base_key(use->op)) * 31 + use->index;
}

/* Attributes come in any order, so their hashes add up. */
static uint64_t same_attr_hash(const ir_op *op) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (!same_ignores(op->attrs[i].key)) sum += same_mix(op->attrs[i].key, ir_attr_hash(&op->attrs[i]));
  return sum;
}

/* Commutative operands add up, so that their order does not count. */
uint64_t same_hash(const same_classes *s, const ir_op *op, bool by_place) {
  uint64_t h = same_mix(op->opcode, op->n_operands);
  uint64_t sum = 0;
  bool commutes = op->n_operands == 2 && ir_opcode_has(op->opcode, IR_COMMUTATIVE);
  h = same_mix(h, base_key(op->type));
  for (uint32_t i = 0; i < op->n_operands; i++) {
    uint64_t v = same_operand(s, &op->operands[i], by_place);
    if (commutes)
      sum += same_mix(1, v);
    else
      h = same_mix(h, v);
  }
  h = same_mix(h, sum + same_attr_hash(op));
  for (uint32_t i = 0; i < op->n_called; i++) h = same_mix(h, s->class_of[op->called[i]->id]);
  if (op->opcode == IR_OP_PARAMETER) h = same_mix(h, (uint64_t)op->u.number);
  if (op->opcode == IR_OP_CONSTANT) h = same_mix(h, ir_literal_hash(op->u.literal));
  return h;
}

static uint32_t same_attr_count(const ir_op *op) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < op->n_attrs; i++) n += !same_ignores(op->attrs[i].key);
  return n;
}

static bool same_attrs(const ir_op *a, const ir_op *b) {
  if (same_attr_count(a) != same_attr_count(b)) return false;
  for (uint32_t i = 0; i < a->n_attrs; i++) {
    if (same_ignores(a->attrs[i].key)) continue;
    const ir_attr *other = ir_attr_find(b, a->attrs[i].key);
    if (!other || !ir_attr_equal(&a->attrs[i], other)) return false;
  }
  return true;
}

/* swapped: b's two operands the other way round. */
static bool same_operands(const same_classes *s, const ir_op *a, const ir_op *b, bool by_place, bool swapped) {
  assert(!swapped || a->n_operands == 2);
  for (uint32_t i = 0; i < a->n_operands; i++) {
    const ir_use *other = &b->operands[swapped ? 1 - i : i];
    if (same_operand(s, &a->operands[i], by_place) != same_operand(s, other, by_place)) return false;
  }
  return true;
}

/* Elided constants are equal to nothing, themselves included: nobody knows what they hold. */
bool same_ops(const same_classes *s, const ir_op *a, const ir_op *b, bool by_place) {
  if (a->opcode != b->opcode || a->type != b->type || a->n_results != b->n_results || a->n_operands != b->n_operands ||
      a->n_called != b->n_called)
    return false;
  if (a->opcode == IR_OP_PARAMETER && a->u.number != b->u.number) return false;
  for (uint32_t i = 1; i < a->n_results; i++)
    if (a->types[i] != b->types[i]) return false;
  for (uint32_t i = 0; i < a->n_called; i++)
    if (s->class_of[a->called[i]->id] != s->class_of[b->called[i]->id]) return false;
  bool commutes = a->n_operands == 2 && ir_opcode_has(a->opcode, IR_COMMUTATIVE);
  if (!same_operands(s, a, b, by_place, false) && !(commutes && same_operands(s, a, b, by_place, true))) return false;
  if (!same_attrs(a, b)) return false;
  return a->opcode != IR_OP_CONSTANT || (!a->u.literal->elided && ir_literal_equal(a->u.literal, b->u.literal));
}

/* Sized by the ids there are: computations made later can't be classified. */
bool same_classes_make(same_classes *s, const ir_module *m, base_arena *arena) {
  *s = (same_classes){.arena = arena};
  base_map_init(&s->by_hash, m->alloc);
  s->other = base_arena_zalloc(arena, ((size_t)m->n_computation_ids + 1) * sizeof *s->other);
  s->class_of = base_arena_zalloc(arena, ((size_t)m->n_computation_ids + 1) * sizeof *s->class_of);
  s->number = base_arena_zalloc(arena, ((size_t)m->n_ids + 1) * sizeof *s->number);
  return s->other && s->class_of && s->number;
}

void same_classes_free(same_classes *s) {
  base_map_free(&s->by_hash);
}

/* Cheap differences first. Control edges say more than operands do, so computations with any are never the same. */
static bool same_computations(const same_classes *s, const ir_computation *a, const ir_computation *b, ir_op **order_a,
                              ir_op **order_b) {
  if (a->n_ops != b->n_ops || a->n_params != b->n_params || a->execution_thread != b->execution_thread ||
      s->number[ir_root(a)->id] != s->number[ir_root(b)->id] || a->frontend_attributes || b->frontend_attributes)
    return false;
  for (uint32_t i = 0; i < a->n_ops; i++) {
    if (!same_ops(s, order_a[i], order_b[i], true)) return false;
    if (order_a[i]->n_control_preds || order_b[i]->n_control_preds) return false;
  }
  return true;
}

/* Parameters by number, then the other ops in post-order. */
static ir_op **same_order(const same_classes *s, const ir_computation *c, uint32_t *n) {
  ir_op **order = ir_post_order(c, s->arena, n), **places = BASE_ARRAY(s->arena, ir_op *, (size_t)c->n_ops + 1);
  if (!order || !places) return NULL;
  uint32_t at = c->n_params;
  for (uint32_t i = 0; i < *n; i++) {
    bool is_param = order[i]->opcode == IR_OP_PARAMETER;
    places[is_param ? (uint32_t)order[i]->u.number : at++] = order[i];
  }
  assert(at == *n && *n == c->n_ops);
  return places;
}

bool same_classify(same_classes *s, ir_computation *c) {
  assert(c->n_results == 1);
  uint32_t n = 0, n_other = 0;
  ir_op **order = same_order(s, c, &n);
  if (!order) return false;
  uint64_t h = c->n_params;
  for (uint32_t i = 0; i < n; i++) s->number[order[i]->id] = i;
  for (uint32_t i = 0; i < n; i++) h = same_mix(h, same_hash(s, order[i], true));
  s->class_of[c->id] = c->id;
  uint64_t first = 0;
  bool met = base_map_get(&s->by_hash, h, &first);
  for (ir_computation *k = met ? (ir_computation *)(uintptr_t)first : NULL; k; k = s->other[k->id]) {
    ir_op **other = same_order(s, k, &n_other);
    if (!other) return false;
    if (!same_computations(s, c, k, order, other)) continue;
    s->class_of[c->id] = k->id;
    return true;
  }
  s->other[c->id] = met ? (ir_computation *)(uintptr_t)first : NULL;
  return base_map_set(&s->by_hash, h, base_key(c));
}
