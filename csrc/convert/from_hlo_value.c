/* What HLO's values become: types without layouts, and tuples taken apart. */
#include "from_hlo.h"

/* --- types --- */

int from_hlo_type(const from_hlo *t, const ir_op *op, const ir_type *type, const ir_type **out) {
  const ir_type *bare = ir_bare(type);
  bool known = bare->kind == IR_TYPE_TENSOR || bare->kind == IR_TYPE_TUPLE || bare->kind == IR_TYPE_TOKEN ||
               bare->kind == IR_TYPE_BUFFER;
  char text[100];
  if (!known) return from_hlo_fail(t, op, XLAC_E_VERIFY, "StableHLO has no type for %s", ir_type_text(type, text, 100));
  for (uint32_t i = 0; i < bare->n_elements; i++) TRY(from_hlo_type(t, op, bare->elements[i], out));
  *out = ir_type_import(t->to, bare);
  return *out ? 0 : from_hlo_no_memory(t);
}

static int from_hlo_collect_types(const from_hlo *t, const ir_op *op, const ir_type *type, uint32_t *n,
                                  const ir_type **out) {
  if (!ir_is_tuple(type)) return from_hlo_type(t, op, type, &out[(*n)++]);
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(from_hlo_collect_types(t, op, type->elements[i], n, out));
  return 0;
}

int from_hlo_leaf_types(const from_hlo *t, const ir_op *op, const ir_type *type, uint32_t *n, const ir_type ***out) {
  *out = BASE_ARRAY(&t->to->arena, const ir_type *, ir_type_leaves(type) + 1u);
  *n = 0;
  return *out ? from_hlo_collect_types(t, op, type, n, *out) : from_hlo_no_memory(t);
}

/* --- trees --- */

const from_hlo_tree *from_hlo_of_value(from_hlo *t, ir_value v) {
  from_hlo_tree *tree = BASE_NEW(&t->to->arena, from_hlo_tree);
  if (!tree) return NULL;
  tree->kind = FROM_HLO_VALUE;
  tree->value = v;
  tree->type = v.op->types[v.index];
  return tree;
}

const from_hlo_tree *from_hlo_of_parts(from_hlo *t, uint32_t n, const from_hlo_tree *const *parts) {
  from_hlo_tree *tree = BASE_NEW(&t->to->arena, from_hlo_tree);
  const ir_type **types = BASE_ARRAY(&t->to->arena, const ir_type *, n + 1u);
  if (!tree || !types) return NULL;
  tree->kind = FROM_HLO_PARTS;
  tree->n = n;
  tree->parts = BASE_ARRAY(&t->to->arena, const from_hlo_tree *, n + 1u);
  for (uint32_t i = 0; tree->parts && i < n; i++) {
    tree->parts[i] = parts[i];
    types[i] = parts[i]->type;
  }
  tree->type = tree->parts ? ir_tuple(t->to, n, types) : NULL;
  return tree->type ? tree : NULL;
}

const from_hlo_tree *from_hlo_of_context(from_hlo *t, const ir_type *type) {
  from_hlo_tree *tree = BASE_NEW(&t->to->arena, from_hlo_tree);
  if (!tree) return NULL;
  tree->kind = FROM_HLO_CONTEXT;
  tree->type = ir_type_import(t->to, ir_bare(type));
  return tree->type ? tree : NULL;
}

int from_hlo_build(from_hlo *t, const ir_type *type, const ir_value *leaves, uint32_t *at, const from_hlo_tree **out) {
  if (!ir_is_tuple(type)) {
    *out = from_hlo_of_value(t, leaves[(*at)++]);
    return *out ? 0 : from_hlo_no_memory(t);
  }
  const from_hlo_tree **parts = BASE_ARRAY(&t->to->arena, const from_hlo_tree *, type->n_elements + 1u);
  if (!parts) return from_hlo_no_memory(t);
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(from_hlo_build(t, type->elements[i], leaves, at, &parts[i]));
  *out = from_hlo_of_parts(t, type->n_elements, parts);
  return *out ? 0 : from_hlo_no_memory(t);
}

int from_hlo_part(from_hlo_op *x, const from_hlo_tree *tree, uint32_t i, const from_hlo_tree **out) {
  assert(ir_is_tuple(tree->type) && i < tree->type->n_elements);
  if (tree->kind == FROM_HLO_PARTS) {
    *out = tree->parts[i];
    return 0;
  }
  if (tree->kind == FROM_HLO_CONTEXT) {
    *out = from_hlo_of_context(x->t, tree->type->elements[i]);
    return *out ? 0 : from_hlo_no_memory(x->t);
  }
  ir_op *made = from_hlo_emit(x, IR_OP_GET_TUPLE_ELEMENT, tree->type->elements[i], 1, &tree->value);
  if (!made) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, made, "index", ir_m_i32(x->t->to, i)));
  *out = from_hlo_of_value(x->t, (ir_value){made, 0});
  return *out ? 0 : from_hlo_no_memory(x->t);
}

int from_hlo_flatten(from_hlo_op *x, const from_hlo_tree *tree, from_hlo_values *out) {
  if (ir_is_tuple(tree->type)) {
    for (uint32_t i = 0; i < tree->type->n_elements; i++) {
      const from_hlo_tree *part;
      TRY(from_hlo_part(x, tree, i, &part));
      TRY(from_hlo_flatten(x, part, out));
    }
    return 0;
  }
  ir_value v;
  TRY(from_hlo_whole(x, tree, &v));
  return BASE_VEC_PUSH(x->t->to->alloc, out, v) ? 0 : from_hlo_no_memory(x->t);
}

int from_hlo_whole(from_hlo_op *x, const from_hlo_tree *tree, ir_value *out) {
  if (tree->kind == FROM_HLO_VALUE) {
    *out = tree->value;
    return 0;
  }
  if (tree->kind == FROM_HLO_CONTEXT && ir_is_tensor(tree->type)) return from_hlo_splat(x, tree->type, 0, out);
  uint32_t n = tree->type->n_elements;
  ir_value *values = BASE_ARRAY(&x->t->to->arena, ir_value, n + 1u);
  if (!values) return from_hlo_no_memory(x->t);
  if (!ir_is_tuple(tree->type))
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY_ASYNC, "uses the context of an async op as a value");
  for (uint32_t i = 0; i < n; i++) {
    const from_hlo_tree *part;
    TRY(from_hlo_part(x, tree, i, &part));
    TRY(from_hlo_whole(x, part, &values[i]));
  }
  *out = (ir_value){from_hlo_emit(x, IR_OP_TUPLE, tree->type, n, values), 0};
  return out->op ? 0 : from_hlo_no_memory(x->t);
}
