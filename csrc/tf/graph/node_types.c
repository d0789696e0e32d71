/* Element types of a node's inputs and outputs, from its op's arguments and its attributes. */
#include "graph.h"

/* Values of one argument; more are a mistake that would only cost memory. */
enum { TF_MOST_VALUES = 1 << 20 };

static int tf_no_attr(const tf_node *node, base_slice attr, xlac_error *err) {
  assert(node->op != NULL);
  return base_hint(
      err,
      base_fail(err, XLAC_E_BAD_ATTRIBUTE, "node '%.120s' (op %.60s): attribute '%.*s' is missing or of another kind",
                node->name->s, node->op->name->s, (int)(attr.n < 60 ? attr.n : 60), attr.p),
      "the op's definition derives the types of its inputs and outputs from it");
}

/* N of "N*T". */
static int tf_arg_count(const tf_node *node, tf_attrs attrs, const tf_arg_def *a, int64_t *count, xlac_error *err) {
  *count = 1;
  if (a->number_attr.n == 0) return 0;
  if (!tf_attr_int(tf_attr_or_default(node->op, attrs, a->number_attr), count) || *count < 0 || *count > TF_MOST_VALUES)
    return tf_no_attr(node, a->number_attr, err);
  return 0;
}

BASE_VEC(tf_bytes, uint8_t);

/* The last check of types: whatever an attribute said, what is kept is a type that the tables know. */
static int tf_push_type(tf_graph *g, tf_bytes *out, unsigned type, bool is_ref, xlac_error *err) {
  if (tf_base_type(type) == 0 || tf_base_type(type) >= TF_TYPE_END)
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "%u is not an element type", type);
  uint8_t byte = (uint8_t)(is_ref && type < TF_REF ? type + TF_REF : type);
  return BASE_VEC_PUSH(g->alloc, out, byte) ? 0 : base_oom(err, "building a graph");
}

/* All values that one argument stands for. */
static int tf_push_arg(tf_graph *g, const tf_node *node, tf_attrs attrs, const tf_arg_def *a, tf_bytes *out,
                       xlac_error *err) {
  if (a->type_list_attr.n > 0) {
    base_slice list = tf_attr_or_default(node->op, attrs, a->type_list_attr);
    if (!list.p) return tf_no_attr(node, a->type_list_attr, err);
    const char *at = NULL;
    for (unsigned type; tf_attr_next_type(list, &at, &type);) TRY(tf_push_type(g, out, type, a->is_ref, err));
    return 0;
  }
  unsigned type = a->type;
  int64_t count = 1;
  if (a->type_attr.n > 0 && !tf_attr_type(tf_attr_or_default(node->op, attrs, a->type_attr), &type))
    return tf_no_attr(node, a->type_attr, err);
  TRY(tf_arg_count(node, attrs, a, &count, err));
  for (int64_t i = 0; i < count; i++) TRY(tf_push_type(g, out, type, a->is_ref, err));
  return 0;
}

/* Inputs first, then outputs, in one list: tf_input_type and tf_output_type index into it. */
static int tf_push_args(tf_graph *g, tf_node *node, tf_attrs attrs, tf_bytes *types, xlac_error *err) {
  for (uint32_t i = 0; i < node->op->n_inputs; i++) TRY(tf_push_arg(g, node, attrs, &node->op->inputs[i], types, err));
  node->n_inputs = types->n;
  for (uint32_t i = 0; i < node->op->n_outputs; i++)
    TRY(tf_push_arg(g, node, attrs, &node->op->outputs[i], types, err));
  node->n_outputs = types->n - node->n_inputs;
  return 0;
}

/* An op without values gets one byte that nobody reads. */
int tf_node_types(tf_graph *g, tf_node *node, tf_attrs attrs, xlac_error *err) {
  assert(node->op != NULL && node->types == NULL);
  tf_bytes types = {.n = 0};
  int status = tf_push_args(g, node, attrs, &types, err);
  if (status == 0) {
    node->types = base_arena_memdup(&g->def->arena, types.items ? types.items : (void *)"", types.n + !types.n);
    if (!node->types) status = base_oom(err, "building a graph");
  }
  BASE_VEC_FREE(g->alloc, &types);
  return status;
}

/* Import has checked the attributes, so a count that is missing can't occur here. */
int64_t tf_arg_values(const tf_node *n, const tf_arg_def *a) {
  assert(n->op != NULL && n->def != NULL);
  int64_t count = 1;
  if (a->type_list_attr.n > 0) return tf_attr_count_types(tf_attr_or_default(n->op, n->def->attrs, a->type_list_attr));
  if (a->number_attr.n > 0) (void)tf_attr_int(tf_attr_or_default(n->op, n->def->attrs, a->number_attr), &count);
  return count;
}
