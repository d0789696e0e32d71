/* Functions of a graph's library: their bodies, imported once and kept, and which of them a node calls. */
#include "functions.h"

/* --- bodies --- */

/* Nothing is imported before somebody asks. def must outlive b. */
void tf_bodies_init(tf_bodies *b, tf_graph_def *def) {
  *b = (tf_bodies){.def = def, .alloc = def->arena.alloc};
  base_map_init(&b->by_function, b->alloc);
  base_map_init(&b->verdicts, b->alloc);
  base_map_init(&b->constants, b->alloc);
}

/* A value of NULL is a body that could not be imported. */
void tf_bodies_free(tf_bodies *b) {
  for (uint32_t i = 0; i < b->by_function.cap; i++) {
    if (b->by_function.slots[i].key == 0) continue;
    tf_graph *g = (tf_graph *)(uintptr_t)b->by_function.slots[i].value;
    if (!g) continue;
    tf_graph_free(g);
    base_free(b->alloc, g);
  }
  base_map_free(&b->by_function);
  base_map_free(&b->verdicts);
  base_map_free(&b->constants);
}

/* A body that can't be read is one that can't be compiled; only running out of memory is an error here. */
static int tf_import_body(tf_bodies *b, const tf_function *fn, tf_attrs call, tf_graph **out, xlac_error *err) {
  xlac_error why = {.code = 0};
  tf_graph *g = base_malloc(b->alloc, sizeof *g);
  *out = NULL;
  if (!g) return base_oom(err, "reading a function");
  int status = tf_graph_import_function(g, b->def, fn, call, &why);
  if (status == 0) {
    *out = g;
    return 0;
  }
  base_free(b->alloc, g);
  return status == -XLAC_E_OUT_OF_MEMORY ? base_oom(err, "reading a function") : 0;
}

/* Imports once more, for the error that tf_import_body threw away. Should it succeed, which it can't, that is no
 * error. */
int tf_body_fails(tf_bodies *b, const tf_function *fn, tf_attrs call, xlac_error *err) {
  tf_graph g;
  TRY(tf_graph_import_function(&g, b->def, fn, call, err));
  tf_graph_free(&g);
  return 0;
}

/* A name that was never interned can't be a function's; looking for it adds nothing. */
const tf_function *tf_bodies_find(const tf_bodies *b, base_slice name) {
  const base_istr *known = base_intern_find(&b->def->strings, name.p, name.n);
  return known ? tf_find_function(b->def, known) : NULL;
}

/* FNV-1a, a byte at a time. */
static uint64_t tf_mix(uint64_t hash, base_slice s) {
  for (size_t i = 0; i < s.n; i++) hash = (hash ^ (uint8_t)s.p[i]) * 0x100000001B3u;
  return hash;
}

/* A function whose body has no placeholders has one body for all calls: its address is the key. Others hash the
 * attributes of the call. */
uint64_t tf_call_key(const tf_function *fn, tf_attrs call) {
  assert(fn->signature != NULL);
  uint64_t hash = 0xCBF29CE484222325u;
  if (!(fn->signature->flags & TF_OP_OPEN)) return base_key(fn);
  for (uint32_t i = 0; i < call.n; i++) {
    hash = tf_mix(hash, (base_slice){call.v[i].key->s, call.v[i].key->n});
    hash = tf_mix(hash, call.v[i].value);
  }
  return hash ^ base_key(fn);
}

/* A body that is malformed is remembered as such. */
int tf_body_of(tf_bodies *b, const tf_function *fn, tf_attrs call, const tf_graph **out, xlac_error *err) {
  assert(fn != NULL);
  uint64_t known = 0, key = tf_call_key(fn, call);
  if (base_map_get(&b->by_function, key, &known)) {
    *out = (const tf_graph *)(uintptr_t)known;
    return 0;
  }
  tf_graph *g = NULL;
  *out = NULL;
  TRY(tf_import_body(b, fn, call, &g, err));
  if (!base_map_set(&b->by_function, key, base_key(g))) {
    if (g) tf_graph_free(g);
    base_free(b->alloc, g);
    return base_oom(err, "reading a function");
  }
  *out = g;
  return 0;
}

/* --- callees --- */

/* How a node calls. An op that is a function's name is a direct call, whatever the function is called. */
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
  assert(out != NULL);
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

/* More than fit are noted as `cut`: whoever asks must take the node for one that can't be compiled. */
static int tf_add_callee(const tf_bodies *b, base_slice name, base_slice message, tf_callees *out, xlac_error *err) {
  if (out->n == TF_MOST_CALLEES) {
    out->cut = true;
    return 0;
  }
  tf_callee *c = &out->list[out->n++];
  *c = (tf_callee){.name = name, .function = tf_bodies_find(b, name)};
  return tf_list_attrs(b, message, &c->attrs, err);
}

/* A missing attribute is a callee with an empty name, which no function has. */
static int tf_add_named(const tf_bodies *b, const tf_node *n, const char *attr, tf_callees *out, xlac_error *err) {
  base_slice name = {attr, 0}, message = {attr, 0};
  (void)tf_attr_func(tf_attr_find(n->def->attrs, attr), &name, &message);
  return tf_add_callee(b, name, message, out, err);
}

/* Branches of Case have no attributes of their own here: message of length 0. */
static int tf_add_branches(const tf_bodies *b, const tf_node *n, tf_callees *out, xlac_error *err) {
  base_slice value = tf_attr_find(n->def->attrs, "branches"), name;
  const char *at = NULL;
  while (tf_attr_next_func(value, &at, &name)) TRY(tf_add_callee(b, name, (base_slice){name.p, 0}, out, err));
  return 0;
}

/* Conditions and bodies in the order that TF_CALL_WHILE and the others promise; attributes that are missing still
 * take their place. */
int tf_find_callees(const tf_bodies *b, const tf_node *n, tf_callees *out, xlac_error *err) {
  assert(n->def != NULL || n->op == NULL);
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
