/* Storage and expressed types in place of quantised ones. */
#include "quant.h"

/* Depth of types and attributes is bounded by their makers. */
bool mq_is_quantised(const ir_type *t) {
  if (!t) return false;
  if (t->quant) return true;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (mq_is_quantised(t->elements[i])) return true;
  return false;
}

bool mq_touches(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (mq_is_quantised(ir_operand_type(op, i))) return true;
  for (uint32_t i = 0; i < op->n_results; i++)
    if (mq_is_quantised(op->types[i])) return true;
  return false;
}

static const ir_type *mqt_element(ir_module *m, const ir_type *t, base_dtype dtype) {
  if (t->kind == IR_TYPE_UNRANKED) return ir_unranked(m, dtype, NULL, NULL);
  if (t->kind == IR_TYPE_ELEMENT) return ir_element(m, dtype, NULL);
  return ir_tensor_mlir(m, dtype, NULL, NULL, t->rank, t->dims, t->dynamic, t->encoding, NULL);
}

static const ir_type *mqt_parts(ir_module *m, const ir_type *t) {
  base_arena arena;
  base_arena_init(&arena, m->alloc);
  const ir_type **parts = BASE_ARRAY(&arena, const ir_type *, (size_t)t->n_elements + 1), *whole = NULL;
  bool ok = parts != NULL;
  for (uint32_t i = 0; ok && i < t->n_elements; i++) ok = (parts[i] = mq_storage(m, t->elements[i])) != NULL;
  uint32_t n = t->n_elements;
  if (ok && t->kind == IR_TYPE_TUPLE) whole = ir_tuple(m, n, parts);
  if (ok && t->kind == IR_TYPE_FUTURE) whole = ir_future(m, n, parts);
  if (ok && t->kind == IR_TYPE_FUNCTION)
    whole = ir_function_type(m, t->n_inputs, n - t->n_inputs, parts, parts + t->n_inputs);
  base_arena_free(&arena);
  return whole;
}

const ir_type *mq_storage(ir_module *m, const ir_type *t) {
  if (!mq_is_quantised(t)) return t;
  return t->quant ? mqt_element(m, t, (base_dtype)t->quant->storage) : mqt_parts(m, t);
}

const ir_type *mq_expressed(ir_module *m, const ir_type *t) {
  return t->quant ? mqt_element(m, t, (base_dtype)t->quant->expressed) : t;
}

static const ir_mattr *mqt_attr(ir_module *m, const ir_mattr *a);

static const ir_mattr *mqt_array(ir_module *m, const ir_mattr *a) {
  const ir_mattrs *list = a->v.list;
  const ir_mattr **parts = NULL;
  for (uint32_t i = 0; i < list->n; i++) {
    const ir_mattr *part = mqt_attr(m, list->v[i]);
    if (!part) return NULL;
    if (part == list->v[i]) continue;
    if (!parts && !(parts = base_arena_memdup(&m->arena, list->v, list->n * sizeof *parts))) return NULL;
    parts[i] = part;
  }
  return parts ? ir_m_array(m, list->n, parts) : a;
}

/* a itself where nothing in it is quantised. */
static const ir_mattr *mqt_attr(ir_module *m, const ir_mattr *a) {
  if (a->kind == IR_M_ARRAY) return mqt_array(m, a);
  if (a->kind == IR_M_DICT) {
    const ir_mdict *d = mq_storage_dict(m, a->v.dict);
    return d == a->v.dict ? a : d ? ir_m_dict(m, d) : NULL;
  }
  bool typed = a->kind == IR_M_DENSE || a->kind == IR_M_TYPE || a->kind == IR_M_RESOURCE;
  if (!typed || !mq_is_quantised(a->type)) return a;
  ir_mattr *copy = base_arena_memdup(&m->arena, a, sizeof *a);
  if (copy) copy->type = mq_storage(m, a->type);
  return copy && copy->type ? copy : NULL;
}

const ir_mdict *mq_storage_dict(ir_module *m, const ir_mdict *d) {
  const ir_mdict *made = d;
  for (uint32_t i = 0; d && made && i < d->n; i++) {
    const ir_mattr *value = mqt_attr(m, d->v[i].value);
    if (value == d->v[i].value) continue;
    made = value ? ir_mdict_with(m, made, d->v[i].key->s, value) : NULL;
  }
  return made;
}
