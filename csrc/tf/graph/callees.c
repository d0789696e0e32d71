/* Finds the functions a node calls. */
#include "callees.h"

static tf_call_kind tf_kind_of(const tf_node *n) {
  static const struct {
    const char *op;
    tf_call_kind kind;
  } rows[] = {
      {"PartitionedCall", TF_CALL_DIRECT},  {"StatefulPartitionedCall", TF_CALL_DIRECT},
      {"SymbolicGradient", TF_CALL_DIRECT}, {"While", TF_CALL_WHILE},
      {"StatelessWhile", TF_CALL_WHILE},    {"If", TF_CALL_IF},
      {"StatelessIf", TF_CALL_IF},          {"Case", TF_CALL_CASE},
      {"StatelessCase", TF_CALL_CASE},
  };
  if (!n->op) return TF_CALL_NONE;
  if (n->op->function) return TF_CALL_DIRECT;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(n->op->name->s, rows[i].op) == 0) return rows[i].kind;
  return TF_CALL_NONE;
}

/* The attributes of a NameAttrList: entries of field 2. */
static int tf_list_attrs(const tf_bodies *b, base_slice message, tf_attrs *out, xlac_error *err) {
  uint32_t n = 0;
  const char *at = message.p, *end = message.p + message.n;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);) n += f.number == 2 && f.wire == 2;
  *out = (tf_attrs){0, NULL};
  if (n == 0) return 0;
  tf_attr *list = BASE_ARRAY(&b->def->arena, tf_attr, n);
  if (!list) return base_oom(err, "reading a function");
  at = message.p;
  for (tf_raw_field f, key, value; tf_raw_next(&at, end, &f);) {
    if (f.number != 2 || f.wire != 2 || !tf_raw_find(f.bytes, 1, &key) || !tf_raw_find(f.bytes, 2, &value)) continue;
    list[out->n].key = base_intern(&b->def->strings, key.bytes.p ? key.bytes.p : "", key.bytes.n);
    if (!list[out->n].key) return base_oom(err, "reading a function");
    list[out->n++].value = value.bytes;
  }
  out->v = list;
  return 0;
}

static int tf_add_callee(const tf_bodies *b, base_slice name, base_slice message, tf_callees *out, xlac_error *err) {
  if (out->n == TF_MOST_CALLEES) {
    out->cut = true;
    return 0;
  }
  tf_callee *c = &out->list[out->n++];
  *c = (tf_callee){.name = name, .function = tf_bodies_find(b, name)};
  return tf_list_attrs(b, message, &c->attrs, err);
}

static int tf_add_named(const tf_bodies *b, const tf_node *n, const char *attr, tf_callees *out, xlac_error *err) {
  base_slice name = {attr, 0}, message = {attr, 0};
  (void)tf_attr_func(tf_attr_find(n->def->attrs, attr), &name, &message);
  return tf_add_callee(b, name, message, out, err);
}

static int tf_add_branches(const tf_bodies *b, const tf_node *n, tf_callees *out, xlac_error *err) {
  base_slice value = tf_attr_find(n->def->attrs, "branches"), name;
  const char *at = NULL;
  while (tf_attr_next_func(value, &at, &name)) TRY(tf_add_callee(b, name, (base_slice){name.p, 0}, out, err));
  return 0;
}

int tf_find_callees(const tf_bodies *b, const tf_node *n, tf_callees *out, xlac_error *err) {
  out->kind = tf_kind_of(n);
  out->n = 0;
  out->cut = false;
  switch (out->kind) {
    case TF_CALL_NONE:
      return 0;
    case TF_CALL_DIRECT:
      if (!n->op->function) return tf_add_named(b, n, "f", out, err);
      out->n = 1;
      out->list[0] = (tf_callee){{n->op->name->s, n->op->name->n}, n->op->function, n->def->attrs};
      return 0;
    case TF_CALL_WHILE:
      TRY(tf_add_named(b, n, "cond", out, err));
      return tf_add_named(b, n, "body", out, err);
    case TF_CALL_IF:
      TRY(tf_add_named(b, n, "then_branch", out, err));
      return tf_add_named(b, n, "else_branch", out, err);
    case TF_CALL_CASE:
      return tf_add_branches(b, n, out, err);
  }
  return 0;
}
