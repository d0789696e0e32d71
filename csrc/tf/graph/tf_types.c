/* TensorFlow's element types: their names, and which of them a node's inputs and outputs have. */
#include "tf_types.h"

#include "graph.h"

/* --- names --- */

/* "FLOAT" as in DT_FLOAT, and "float" as in OpDefs. */
typedef struct tf_type_row {
  const char *name, *word;
} tf_type_row;

static const tf_type_row tf_type_rows[TF_TYPE_END] = {
#define TF_TYPE(name, number, word, element) [number] = {#name, word},
#include "tf_types.def"
#undef TF_TYPE
};

static const struct tf_set_row {
  const char *name, *types;
} tf_set_rows[] = {
#define TYPE_SET(name, types) {#name, types},
#include "type_sets.def"
#undef TYPE_SET
};

static const char *const tf_ref_words[TF_TYPE_END] = {
#define TF_TYPE(name, number, word, element) [number] = word "_ref",
#include "tf_types.def"
#undef TF_TYPE
};

/* Static text: references have words of their own, "float_ref". */
const char *tf_type_word(unsigned type) {
  unsigned base = tf_base_type(type);
  if (base == 0 || base >= TF_TYPE_END) return "?";
  return type >= TF_REF ? tf_ref_words[base] : tf_type_rows[base].word;
}

/* 0 (INVALID) is a value, too. */
int tf_type_of_enum(base_slice name) {
  int ref = 0;
  if (name.n > 4 && memcmp(name.p + name.n - 4, "_REF", 4) == 0) {
    name.n -= 4;
    ref = TF_REF;
  }
  if (name.n < 3 || memcmp(name.p, "DT_", 3) != 0) return -1;
  name = (base_slice){name.p + 3, name.n - 3};
  for (int i = 0; i < TF_TYPE_END; i++)
    if (base_slice_is(name, tf_type_rows[i].name)) return i + ref;
  return -1;
}

/* References are written "DT_FLOAT_REF". */
bool tf_put_type_enum(base_text *out, int64_t type) {
  if (type < 0 || type >= TF_REF + TF_TYPE_END || tf_base_type((unsigned)type) >= TF_TYPE_END) return false;
  base_putf(out, "DT_%s%s", tf_type_rows[tf_base_type((unsigned)type)].name, type >= TF_REF ? "_REF" : "");
  return true;
}

int tf_type_of_word(base_slice word) {
  for (int i = 1; i < TF_TYPE_END; i++)
    if (base_slice_is(word, tf_type_rows[i].word)) return i;
  return -1;
}

/* A word that is no type makes the whole set empty. */
static tf_type_set tf_types_listed(base_slice text) {
  tf_type_set set = 0;
  while (text.n > 0) {
    const char *bar = memchr(text.p, '|', text.n);
    size_t n = bar ? (size_t)(bar - text.p) : text.n;
    int type = tf_type_of_word((base_slice){text.p, n});
    if (type < 0) return 0;
    set |= tf_type_bit((unsigned)type);
    n += bar != NULL;
    text = (base_slice){text.p + n, text.n - n};
  }
  return set;
}

/* Names of sets stand for lists, one level deep. */
tf_type_set tf_type_set_of(base_slice text) {
  for (size_t i = 0; i < sizeof tf_set_rows / sizeof *tf_set_rows; i++)
    if (base_slice_is(text, tf_set_rows[i].name)) return tf_types_listed(base_slice_of(tf_set_rows[i].types));
  return tf_types_listed(text);
}

/* --- types of nodes --- */

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
    return base_fail(err, XLAC_E_BAD_ATTRIBUTE, "%u is no element type", type);
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
