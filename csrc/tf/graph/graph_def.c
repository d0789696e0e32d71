/* Reads GraphDef messages: nodes, their inputs and attributes, and the function library. Messages go through
 * text/proto's reader, which knows the byte of an error; attributes are read where they are whenever somebody asks
 * (attr_value.c). Nothing is copied but names: values point into the bytes, which the arena keeps. */
#include "graph_def.h"

#include "../../base/number/number.h"
#include "../../text/proto/wire.h"
#include "op_def.h"
#include "tf_schema.h"

BASE_VEC(tf_attr_list, tf_attr);

/* One reading. `attrs` is used again for each node. */
typedef struct tf_def_reader {
  tf_graph_def *g;
  proto_source s;
  tf_attr_list attrs; /* of the node being read */
} tf_def_reader;

static const base_istr *tf_intern(tf_def_reader *r, base_slice s) {
  return base_intern(&r->g->strings, s.p ? s.p : "", s.n);
}

/* --- inputs --- */

/* Digits alone: "+1" and "1x" are names of arguments, not numbers. */
static bool tf_parse_index(base_slice s, int32_t *out) {
  int64_t v = 0;
  if (s.n == 0 || *s.p < '0' || *s.p > '9' || base_parse_i64(s.p, s.p + s.n, &v) != s.p + s.n || v < 0 || v > INT32_MAX)
    return false;
  *out = (int32_t)v;
  return true;
}

static base_slice tf_after(base_slice s, const char *at) {
  assert(at >= s.p && at < s.p + s.n);
  return (base_slice){at + 1, (size_t)(s.p + s.n - at - 1)};
}

/* "^node", "node", "node:1", and in bodies of functions "node:argument:1", where the number counts within the
 * argument. "node:argument" is number 0 of it. */
static int tf_parse_input(tf_def_reader *r, base_slice s, tf_input *out) {
  *out = (tf_input){.output = 0};
  if (s.n > 0 && *s.p == '^') {
    out->output = -1;
    s = (base_slice){s.p + 1, s.n - 1};
  }
  const char *colon = s.n ? memchr(s.p, ':', s.n) : NULL;
  base_slice node = colon ? (base_slice){s.p, (size_t)(colon - s.p)} : s;
  if (colon && out->output == 0) {
    base_slice rest = tf_after(s, colon);
    const char *second = memchr(rest.p, ':', rest.n);
    base_slice index = second ? tf_after(rest, second) : rest;
    bool number = tf_parse_index(index, &out->output);
    base_slice argument = second ? (base_slice){rest.p, (size_t)(second - rest.p)} : rest;
    if (second || !number) {
      if (!number) out->output = 0;
      out->argument = tf_intern(r, argument);
      if (!out->argument) return proto_no_memory(&r->s);
    }
  } else if (colon) {
    node = s;
  }
  out->node = tf_intern(r, node); /* an empty name is refused where the node is looked for */
  return out->node ? 0 : proto_no_memory(&r->s);
}

/* Data inputs come before control inputs in a NodeDef; import.c relies on it (n_data). */
static int tf_read_inputs(tf_def_reader *r, proto_message m, tf_node_def *node) {
  uint32_t at = m.first, n = proto_count(&r->s, m, 3, PROTO_LENGTH), control = 0;
  tf_input *inputs = BASE_ARRAY(&r->g->arena, tf_input, n + 1);
  if (!inputs) return proto_no_memory(&r->s);
  proto_field f;
  while (proto_next(&r->s, m, 3, PROTO_LENGTH, &at, &f)) {
    tf_input in;
    TRY(tf_parse_input(r, (base_slice){(const char *)f.p, (size_t)f.value}, &in));
    if (control && in.output >= 0)
      return proto_fail(&r->s, f.p, XLAC_E_BAD_PROTO, "node '%.80s' has a data input after a control input",
                        node->name->s);
    control += in.output < 0;
    inputs[node->n_inputs++] = in;
  }
  node->inputs = inputs;
  node->n_data = node->n_inputs - control;
  return 0;
}

/* --- attributes: a map, so a later entry replaces an earlier one of its key --- */

/* An entry is a message of key (1) and value (2); either may be missing, and means "" or an empty AttrValue then. */
static int tf_read_attr_entry(tf_def_reader *r, proto_field f) {
  base_slice entry = {(const char *)f.p, (size_t)f.value};
  tf_raw_field part;
  tf_attr a = {.value = {(const char *)f.p, 0}};
  const char *at = entry.p;
  base_slice key = {"", 0};
  for (; tf_raw_next(&at, entry.p + entry.n, &part);) {
    if (part.number == 1 && part.wire == 2) key = part.bytes;
    if (part.number == 2 && part.wire == 2) a.value = part.bytes;
  }
  if (at != entry.p + entry.n)
    return proto_fail(&r->s, f.p, XLAC_E_BAD_PROTO, "an attribute is malformed or cut short");
  a.key = tf_intern(r, key);
  if (!a.key) return proto_no_memory(&r->s);
  for (uint32_t i = 0; i < r->attrs.n; i++) {
    if (r->attrs.items[i].key != a.key) continue;
    r->attrs.items[i] = a;
    return 0;
  }
  return BASE_VEC_PUSH(r->s.alloc, &r->attrs, a) ? 0 : proto_no_memory(&r->s);
}

/* `number` is the field of the map in m: 5 both in a NodeDef and in a FunctionDef. */
static int tf_read_attr_map(tf_def_reader *r, proto_message m, uint32_t number, tf_attrs *out) {
  uint32_t at = m.first;
  proto_field f;
  r->attrs.n = 0;
  while (proto_next(&r->s, m, number, PROTO_LENGTH, &at, &f)) TRY(tf_read_attr_entry(r, f));
  tf_attr *list = BASE_ARRAY(&r->g->arena, tf_attr, r->attrs.n + 1);
  if (!list) return proto_no_memory(&r->s);
  if (r->attrs.n) memcpy(list, r->attrs.items, r->attrs.n * sizeof *list);
  *out = (tf_attrs){r->attrs.n, list};
  return 0;
}

/* --- nodes --- */

/* Fields of NodeDef: 1 name, 2 op, 3 input, 4 device, 5 attr. A name and an op must be there. */
static int tf_read_node(tf_def_reader *r, proto_field f, tf_node_def *node) {
  proto_message m;
  TRY(proto_open_field(&r->s, f, &m));
  base_slice name = proto_bytes(&r->s, m, 1), op = proto_bytes(&r->s, m, 2), device = proto_bytes(&r->s, m, 4);
  *node = (tf_node_def){.bytes = {(const char *)f.p, (size_t)f.value}};
  if (name.n == 0) return proto_fail(&r->s, f.p, XLAC_E_BAD_PROTO, "a node has no name");
  if (op.n == 0)
    return proto_fail(&r->s, f.p, XLAC_E_BAD_PROTO, "node '%.*s' has no op", (int)(name.n < 80 ? name.n : 80), name.p);
  node->name = tf_intern(r, name);
  node->op = tf_intern(r, op);
  node->device = device.n ? tf_intern(r, device) : NULL;
  if (!node->name || !node->op || (device.n && !node->device)) return proto_no_memory(&r->s);
  TRY(tf_read_inputs(r, m, node));
  TRY(tf_read_attr_map(r, m, 5, &node->attrs));
  proto_close(&r->s, m);
  return 0;
}

/* Field `number` of m: the nodes of the graph (1), or of a function (3). */
static int tf_read_nodes(tf_def_reader *r, proto_message m, uint32_t number, tf_node_def **out, uint32_t *n) {
  assert(out != NULL && n != NULL);
  uint32_t at = m.first, count = proto_count(&r->s, m, number, PROTO_LENGTH);
  tf_node_def *nodes = BASE_ARRAY(&r->g->arena, tf_node_def, count + 1);
  if (!nodes) return proto_no_memory(&r->s);
  proto_field f;
  *n = 0;
  while (proto_next(&r->s, m, number, PROTO_LENGTH, &at, &f)) TRY(tf_read_node(r, f, &nodes[(*n)++]));
  *out = nodes;
  return 0;
}

/* --- functions --- */

/* Field 4 of FunctionDef is the map from results to values; the last entry of a key counts. */
static int tf_read_ret(tf_def_reader *r, proto_message m, base_slice name, tf_ret *out, bool *found) {
  uint32_t at = m.first;
  proto_field f;
  *found = false;
  while (proto_next(&r->s, m, 4, PROTO_LENGTH, &at, &f)) {
    base_slice entry = {(const char *)f.p, (size_t)f.value};
    tf_raw_field key, value;
    if (!tf_raw_find(entry, 1, &key) || !tf_raw_find(entry, 2, &value)) continue;
    if (key.bytes.n != name.n || memcmp(key.bytes.p, name.p, name.n) != 0) continue;
    out->name = tf_intern(r, name);
    if (!out->name) return proto_no_memory(&r->s);
    TRY(tf_parse_input(r, value.bytes, &out->from));
    *found = true;
  }
  return 0;
}

/* In the order of the signature. Results without a value are left out: import says which function lacks one. */
static int tf_read_rets(tf_def_reader *r, proto_message m, tf_function *fn) {
  assert(fn->signature != NULL && fn->n_rets == 0);
  tf_ret *rets = BASE_ARRAY(&r->g->arena, tf_ret, fn->signature->n_outputs + 1);
  if (!rets) return proto_no_memory(&r->s);
  for (uint32_t i = 0; i < fn->signature->n_outputs; i++) {
    bool found = false;
    TRY(tf_read_ret(r, m, fn->signature->outputs[i].name, &rets[fn->n_rets], &found));
    fn->n_rets += found;
  }
  fn->rets = rets;
  return 0;
}

/* A function may be there twice, but neither in two versions nor as one of TensorFlow's ops. */
static int tf_check_function_name(tf_def_reader *r, proto_field f, const tf_function *fn) {
  const tf_function *other = tf_find_function(r->g, fn->name);
  tf_op_row row;
  bool is_op = tf_op_row_find((base_slice){fn->name->s, fn->name->n}, &row);
  if (is_op && (row.flags & (TF_OP_HOST | TF_OP_XLA))) /* others are TensorFlow's tests' own */
    return proto_fail(&r->s, f.p, XLAC_E_DUPLICATE_NAME, "function '%.120s' has the name of an op", fn->name->s);
  if (!other || (other->bytes.n == fn->bytes.n && memcmp(other->bytes.p, fn->bytes.p, fn->bytes.n) == 0)) return 0;
  return proto_fail(&r->s, f.p, XLAC_E_DUPLICATE_NAME, "there are two different functions '%.120s'", fn->name->s);
}

/* Fields of FunctionDef: 1 signature, 3 node_def, 4 ret, 5 attr. The first of two equal functions is found
 * afterwards. */
static int tf_read_function(tf_def_reader *r, proto_field f, tf_function *fn) {
  assert(fn->n_nodes == 0);
  proto_message m;
  tf_op_def *signature = NULL;
  TRY(proto_open_field(&r->s, f, &m));
  fn->bytes = (base_slice){(const char *)f.p, (size_t)f.value};
  TRY(tf_op_def_read(r->g, proto_bytes(&r->s, m, 1), &signature, r->s.err));
  signature->function = fn;
  fn->signature = signature;
  fn->name = signature->name;
  tf_node_def *nodes = NULL;
  TRY(tf_read_nodes(r, m, 3, &nodes, &fn->n_nodes));
  fn->nodes = nodes;
  TRY(tf_read_attr_map(r, m, 5, &fn->attrs));
  TRY(tf_read_rets(r, m, fn));
  proto_close(&r->s, m);
  TRY(tf_check_function_name(r, f, fn));
  if (!base_map_set(&r->g->function_of, base_key(fn->name), base_key(fn))) return proto_no_memory(&r->s);
  return 0;
}

/* Before the nodes of the graph, so that an op that is the name of a function is known. */
static int tf_read_library(tf_def_reader *r, proto_message graph) {
  proto_message library;
  TRY(proto_open_sub(&r->s, graph, 2, &library));
  uint32_t at = library.first, n = proto_count(&r->s, library, 1, PROTO_LENGTH);
  r->g->functions = BASE_ARRAY(&r->g->arena, tf_function, n + 1);
  if (!r->g->functions) return proto_no_memory(&r->s);
  memset(r->g->functions, 0, n * sizeof *r->g->functions);
  proto_field f;
  while (proto_next(&r->s, library, 1, PROTO_LENGTH, &at, &f))
    TRY(tf_read_function(r, f, &r->g->functions[r->g->n_functions++]));
  proto_close(&r->s, library);
  return 0;
}

/* --- the whole --- */

/* TF_GRAPH_DEF_VERSION of the release that the tables here were taken from. */
enum { TF_GRAPH_VERSION = 2474 }; /* TensorFlow 2.21's */

/* Whether a field of numbers, packed or not, has that one. */
static bool tf_lists_number(tf_raw_field f, uint64_t wanted) {
  uint64_t v = 0;
  unsigned shift = 0;
  if (f.wire == 0) return f.value == wanted;
  for (size_t i = 0; f.wire == 2 && i < f.bytes.n && shift < 64; i++) {
    v |= (uint64_t)((uint8_t)f.bytes.p[i] & 0x7F) << shift;
    shift = (uint8_t)f.bytes.p[i] & 0x80 ? shift + 7 : 0;
    if (shift > 0) continue;
    if (v == wanted) return true;
    v = 0;
  }
  return false;
}

/* Who wrote a graph may say which readers it is not for. Field 4 of GraphDef is a VersionDef: 2 is min_consumer, 3
 * the list bad_consumers. */
static int tf_check_versions(tf_def_reader *r, proto_message graph) {
  base_slice versions = proto_bytes(&r->s, graph, 4);
  const char *at = versions.p, *end = versions.p + versions.n;
  for (tf_raw_field f; at && tf_raw_next(&at, end, &f);) {
    if (f.number == 2 && f.wire == 0 && (int32_t)f.value > TF_GRAPH_VERSION)
      return proto_fail(&r->s, r->s.base, XLAC_E_BAD_PROTO, "the graph is for version %d and later, this is %d",
                        (int)(int32_t)f.value, TF_GRAPH_VERSION);
    if (f.number == 3 && tf_lists_number(f, TF_GRAPH_VERSION))
      return proto_fail(&r->s, r->s.base, XLAC_E_BAD_PROTO, "the graph is not for version %d", TF_GRAPH_VERSION);
  }
  return 0;
}

/* The library first: see tf_read_library. */
static int tf_read_graph(tf_def_reader *r) {
  proto_message m;
  const uint8_t *p = (const uint8_t *)r->g->bytes;
  TRY(proto_open(&r->s, p, r->g->n_bytes, &m));
  TRY(tf_check_versions(r, m));
  TRY(tf_read_library(r, m));
  return tf_read_nodes(r, m, 1, &r->g->nodes, &r->g->n_nodes);
}

/* Copies the bytes into the arena, or the bytes of the text: from here on both are one. */
static int tf_take_bytes(tf_graph_def *g, const void *bytes, size_t n, bool text, xlac_error *err) {
  if (!text) {
    g->bytes = base_arena_memdup(&g->arena, n ? bytes : "", n ? n : 1);
    g->n_bytes = n;
    return g->bytes ? 0 : base_oom(err, "reading a graph");
  }
  base_text wire;
  base_text_init(&wire, g->arena.alloc);
  int status = tf_text_to_wire(&wire, TF_MSG_GRAPH_DEF, bytes, n, err);
  if (status == 0) {
    g->n_bytes = wire.n;
    g->bytes = base_arena_memdup(&g->arena, wire.n ? wire.s : "", wire.n ? wire.n : 1);
    if (!g->bytes) status = base_oom(err, "reading a graph");
  }
  base_text_free(&wire);
  return status;
}

/* max_depth: messages within messages. *out is set on success only. */
int tf_graph_def_read(tf_graph_def **out, base_alloc alloc, const void *bytes, size_t n, bool text, xlac_error *err) {
  assert(n == 0 || bytes != NULL);
  tf_graph_def *g = base_malloc(alloc, sizeof *g);
  if (!g) return base_oom(err, "reading a graph");
  *g = (tf_graph_def){.bytes = NULL};
  base_arena_init(&g->arena, alloc);
  base_interner_init(&g->strings, &g->arena);
  base_map_init(&g->function_of, alloc);
  base_map_init(&g->op_of, alloc);
  int status = tf_take_bytes(g, bytes, n, text, err);
  if (status == 0) {
    const uint8_t *p = (const uint8_t *)g->bytes;
    tf_def_reader r = {.g = g, .s = {.base = p, .end = p + g->n_bytes, .alloc = alloc, .max_depth = 100, .err = err}};
    status = tf_read_graph(&r);
    proto_source_close(&r.s);
    BASE_VEC_FREE(alloc, &r.attrs);
  }
  if (status != 0) {
    tf_graph_def_free(g);
    return status;
  }
  *out = g;
  return 0;
}

/* The struct itself is not in its arena. */
void tf_graph_def_free(tf_graph_def *g) {
  if (!g) return;
  base_alloc alloc = g->arena.alloc;
  base_map_free(&g->function_of);
  base_map_free(&g->op_of);
  base_interner_free(&g->strings);
  base_arena_free(&g->arena);
  base_free(alloc, g);
}

/* A message begins with the tag of a field of GraphDef and rarely is printable throughout; text never has a byte below
 * a tab. */
bool tf_graph_def_is_text(const void *bytes, size_t n) {
  const uint8_t *p = bytes;
  for (size_t i = 0; i < n && i < 4096; i++)
    if (p[i] < '\t' || (p[i] > '\r' && p[i] < ' ') || p[i] == 0x7F) return false;
  for (size_t i = 0; i < n; i++)
    if (p[i] != ' ' && p[i] != '\t' && p[i] != '\r' && p[i] != '\n') return p[i] >= '#';
  return false;
}
