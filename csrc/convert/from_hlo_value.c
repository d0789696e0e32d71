/* What HLO's values become: types without layouts, and tuples taken apart. Then making ops of the target.
 *
 *   type                                leaves
 *   f32[2]{0}                           tensor<2xf32>
 *   (f32[], (s32[2], token[]))          tensor<f32>, tensor<2xi32>, !stablehlo.token
 *   ()                                  none */
#include "from_hlo.h"

/* --- types --- */

/* The whole type is refused where a part of it is one that MLIR lacks (opaque). */
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

/* Depth first, which is the order of leaves everywhere. */
static int from_hlo_collect_types(const from_hlo *t, const ir_op *op, const ir_type *type, uint32_t *n,
                                  const ir_type **out) {
  if (!ir_is_tuple(type)) return from_hlo_type(t, op, type, &out[(*n)++]);
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(from_hlo_collect_types(t, op, type->elements[i], n, out));
  return 0;
}

/* The array is the target's and has room for one more, so that it is never of no size. */
int from_hlo_leaf_types(const from_hlo *t, const ir_op *op, const ir_type *type, uint32_t *n, const ir_type ***out) {
  *out = BASE_ARRAY(&t->to->arena, const ir_type *, ir_type_leaves(type) + 1u);
  *n = 0;
  return *out ? from_hlo_collect_types(t, op, type, n, *out) : from_hlo_no_memory(t);
}

/* --- trees --- */

const from_hlo_tree *from_hlo_of_value(from_hlo *t, ir_value v) {
  assert(v.op && v.index < v.op->n_results);
  from_hlo_tree *tree = BASE_NEW(&t->to->arena, from_hlo_tree);
  if (!tree) return NULL;
  tree->kind = FROM_HLO_VALUE;
  tree->value = v;
  tree->type = v.op->types[v.index];
  return tree;
}

/* Copies the list of parts, not the parts. */
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

/* Its type only: a value is made of it when one is asked for, which is rare. */
const from_hlo_tree *from_hlo_of_context(from_hlo *t, const ir_type *type) {
  from_hlo_tree *tree = BASE_NEW(&t->to->arena, from_hlo_tree);
  if (!tree) return NULL;
  tree->kind = FROM_HLO_CONTEXT;
  tree->type = ir_type_import(t->to, ir_bare(type));
  return tree->type ? tree : NULL;
}

int from_hlo_build(from_hlo *t, const ir_type *type, const ir_value *leaves, uint32_t *at, const from_hlo_tree **out) {
  assert(type && leaves && at);
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

/* Leaves are values of any type but a tuple. */
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

/* A tuple is made only where an op wants a tree of parts as one value: a custom call's operand, for one. */
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

/* ---- Making ops of the target. */

/* Every op of the target is made here: the count of them is kept here, and name, line and location are the source
 * op's. */
ir_op *from_hlo_emit_n(from_hlo_op *x, ir_opcode opcode, uint32_t n_results, const ir_type *const *types, uint32_t n,
                       const ir_value *operands, uint32_t n_called) {
  assert(x->into && x->op && (n == 0 || operands));
  from_hlo *t = x->t;
  if (t->n_made >= t->max_made || n_results > UINT16_MAX) {
    t->n_made = t->max_made;
    return NULL;
  }
  t->n_made++;
  const base_istr *name = ir_intern(t->to, x->op->name->s, x->op->name->n);
  ir_op *op = name ? ir_op_new_n(x->into, opcode, n_results, types, name, n, n_called) : NULL;
  if (!op) return NULL;
  for (uint32_t i = 0; i < n; i++) ir_set_operand(op, i, operands[i]);
  op->line = x->op->line;
  op->col = x->op->col;
  op->loc = from_hlo_location(t, x->op);
  return op;
}

ir_op *from_hlo_emit(from_hlo_op *x, ir_opcode opcode, const ir_type *type, uint32_t n, const ir_value *operands) {
  return from_hlo_emit_n(x, opcode, 1, &type, n, operands, 0);
}

/* Shardings hold for what stands for the whole op; ops made on the way (from_hlo_emit) have none. */
int from_hlo_make(from_hlo_op *x, ir_opcode opcode, uint32_t n, const ir_value *operands, uint32_t n_called,
                  ir_op **out) {
  assert(x->type);
  uint32_t n_results;
  const ir_type **types;
  TRY(from_hlo_leaf_types(x->t, x->op, x->type, &n_results, &types));
  *out = from_hlo_emit_n(x, opcode, n_results, types, n, operands, n_called);
  return *out ? from_hlo_common(x, *out) : from_hlo_no_memory(x->t);
}

/* More results than leaves are passed by: see from_hlo_add_dependency. */
int from_hlo_done(from_hlo_op *x, ir_op *made) {
  assert(made->n_results >= ir_type_leaves(x->type));
  ir_value *leaves = BASE_ARRAY(&x->t->to->arena, ir_value, made->n_results + 1u);
  uint32_t at = 0;
  if (!leaves) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < made->n_results; i++) leaves[i] = (ir_value){made, i};
  return from_hlo_build(x->t, x->type, leaves, &at, &x->result);
}

int from_hlo_operands(from_hlo_op *x, ir_value **out) {
  *out = BASE_ARRAY(&x->t->to->arena, ir_value, x->op->n_operands + 1u);
  if (!*out) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < x->op->n_operands; i++) TRY(from_hlo_whole(x, x->operands[i], &(*out)[i]));
  return 0;
}

int from_hlo_put(from_hlo_op *x, ir_op *made, const char *name, const ir_mattr *value) {
  assert(made && name);
  return value && ir_m_set(made, name, value) ? 0 : from_hlo_no_memory(x->t);
}

/*   stablehlo.constant dense<0.0> : tensor<4xf32> */
int from_hlo_splat(from_hlo_op *x, const ir_type *type, double number, ir_value *out) {
  assert(ir_is_tensor(type));
  ir_module *m = x->t->to;
  const ir_type *scalar = ir_tensor(m, (base_dtype)type->dtype, 0, NULL, NULL, NULL, NULL);
  ir_literal *l = scalar ? ir_literal_new(m, scalar) : NULL;
  ir_op *made = l ? from_hlo_emit(x, IR_OP_CONSTANT, type, 0, NULL) : NULL;
  if (!made) return from_hlo_no_memory(x->t);
  base_store_f64((base_dtype)type->dtype, l->data, number);
  *out = (ir_value){made, 0};
  return from_hlo_put(x, made, "value", ir_m_dense(m, type, l, true));
}
