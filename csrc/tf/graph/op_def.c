/* Definitions of ops: the table of TensorFlow's own, packed, and OpDef messages of a graph's functions. A row is
 * columns of words ("x:T" "y:T", "z:T", "T:type"); they are parsed when an op of that name is first met and kept with
 * the graph, since a graph uses few of the ops there are. Few words are a row's own, so each is there once
 * (ops_words.def, made of ops.def): the text of all columns is half as long. */
#include "op_def.h"

#include "packed_rows.h"
#include "../../base/number/number.h"
#include "../../text/proto/wire.h"

/* --- the table of TensorFlow's ops --- */

#define STATEFUL TF_OP_STATEFUL
#define HOST TF_OP_HOST
#define METADATA TF_OP_METADATA
#define XLA_ONLY TF_OP_XLA_ONLY

/* The words, each with its zero, one after another: a tf_word is an offset in them, which takes a quarter of a pointer
 * and no relocation. The empty one at 0 ends a column. */
#define ROW(first, name, flags, use)
#define W(number)
#define END
#define WORD(number, text) char word_##number[sizeof(text)];
typedef struct tf_word_texts {
  char end[1];
#include "ops_words.def"
} tf_word_texts;
#undef WORD
#define WORD(number, text) text,
static const tf_word_texts tf_all_words = {
    "",
#include "ops_words.def"
};
#undef WORD
#define WORD(number, text)
_Static_assert(sizeof(tf_word_texts) <= UINT16_MAX, "a tf_word is an offset");

/* The columns of all rows, one after another. */
#undef W
#undef END
#define W(number) offsetof(tf_word_texts, word_##number),
#define END 0,
static const tf_word tf_all_columns[] = {
#include "ops_words.def"
};
_Static_assert(sizeof tf_all_columns / sizeof(tf_word) <= UINT16_MAX, "a row knows where its columns begin");
#undef W
#undef END
#define W(number)
#define END

/* Names, and the rows without their texts. */
#undef ROW
#define ROW(first, name, flags, use) char TF_PACKED_ROW[sizeof(name)];
typedef struct tf_op_names {
#include "ops_words.def"
} tf_op_names;
#undef ROW
#define ROW(first, name, flags, use) name,
static const tf_op_names tf_all_op_names = {
#include "ops_words.def"
};
#undef ROW
_Static_assert(sizeof(tf_op_names) <= UINT16_MAX, "a name is an offset");
typedef struct tf_packed_op {
  uint16_t name, columns; /* in tf_all_op_names, in tf_all_columns */
  uint8_t flags, resource;
} tf_packed_op;
#define ROW(first, name, flags, use) {offsetof(tf_op_names, TF_PACKED_ROW), first, flags, TF_RESOURCE_##use},
static const tf_packed_op tf_packed_ops[] = {
#include "ops_words.def"
};
#undef ROW
#undef WORD
#undef W
#undef END
#undef STATEFUL
#undef HOST
#undef METADATA
#undef XLA_ONLY

static const tf_word tf_no_words[1] = {0};

static const char *tf_packed_op_name(uint32_t i) {
  return (const char *)&tf_all_op_names + tf_packed_ops[i].name;
}

uint32_t tf_op_row_count(void) {
  return sizeof tf_packed_ops / sizeof *tf_packed_ops;
}

base_slice tf_next_word(const tf_word **words) {
  assert(**words < sizeof tf_all_words);
  const char *word = (const char *)&tf_all_words + **words;
  if (**words) ++*words;
  return base_slice_of(word);
}

static uint32_t tf_count_words(const tf_word *words) {
  uint32_t n = 0;
  while (words[n]) n++;
  return n;
}

/* The column after `words`, of the same row. */
static const tf_word *tf_next_column(const tf_word *words) {
  return words + tf_count_words(words) + 1;
}

/* The columns that only compiled ops have are NULL for others. */
tf_op_row tf_op_row_at(uint32_t i) {
  assert(i < tf_op_row_count());
  tf_op_row row = {.number = (uint16_t)i,
                   .name = tf_packed_op_name(i),
                   .flags = tf_packed_ops[i].flags,
                   .resource = tf_packed_ops[i].resource};
  row.inputs = tf_all_columns + tf_packed_ops[i].columns;
  row.outputs = tf_next_column(row.inputs);
  row.attrs = tf_next_column(row.outputs);
  if (!(row.flags & TF_OP_XLA)) return row;
  row.types[0] = tf_next_column(row.attrs);
  row.types[1] = tf_next_column(row.types[0]);
  row.const_args = tf_next_column(row.types[1]);
  return row;
}

bool tf_is_same_types(const tf_word *words) {
  return *words && base_slice_is(tf_next_word(&words), "=");
}

/* The order of the table: bytes, then length. */
static int tf_compare_slice(base_slice a, const char *s) {
  size_t n = strlen(s), least = a.n < n ? a.n : n;
  int order = least ? memcmp(a.p, s, least) : 0;
  return order != 0 ? order : (a.n > n) - (a.n < n);
}

/* Binary search: rows are sorted by name. */
bool tf_op_row_find(base_slice name, tf_op_row *out) {
  uint32_t from = 0, to = tf_op_row_count();
  while (from < to) {
    uint32_t middle = from + (to - from) / 2;
    int order = tf_compare_slice(name, tf_packed_op_name(middle));
    if (order == 0) {
      *out = tf_op_row_at(middle);
      return true;
    }
    if (order < 0)
      to = middle;
    else
      from = middle + 1;
  }
  return false;
}

/* --- definitions --- */

/* At the first c; false and nothing set where there is none. */
static bool tf_split_at(base_slice s, char c, base_slice *before, base_slice *after) {
  const char *at = memchr(s.p, c, s.n);
  if (!at) return false;
  *before = (base_slice){s.p, (size_t)(at - s.p)};
  *after = (base_slice){at + 1, s.n - before->n - 1};
  return true;
}

/* "x:T" type attribute, "x:float" a type, "x:N*T" N values, "x:*T" a list of types, "x:&T" a reference. */
static tf_arg_def tf_arg_of_word(base_slice word) {
  tf_arg_def arg = {.name = word};
  base_slice spec = {NULL, 0}, number, rest;
  bool split = tf_split_at(word, ':', &arg.name, &spec);
  assert(split && spec.n > 0);
  (void)split;
  if (*spec.p == '&') {
    arg.is_ref = true;
    spec = (base_slice){spec.p + 1, spec.n - 1};
  }
  if (*spec.p == '*') {
    arg.type_list_attr = (base_slice){spec.p + 1, spec.n - 1};
    return arg;
  }
  if (tf_split_at(spec, '*', &number, &rest)) {
    arg.number_attr = number;
    spec = rest;
  }
  int type = tf_type_of_word(spec);
  if (type < 0)
    arg.type_attr = spec;
  else
    arg.type = (uint8_t)type;
  return arg;
}

/* A column of arguments. */
static int tf_read_args(tf_graph_def *g, const tf_word *words, const tf_arg_def **out, uint32_t *n, xlac_error *err) {
  assert(words != NULL);
  *n = tf_count_words(words);
  tf_arg_def *args = BASE_ARRAY(&g->arena, tf_arg_def, *n + 1);
  if (!args) return base_oom(err, "reading a graph");
  for (uint32_t i = 0; i < *n; i++) args[i] = tf_arg_of_word(tf_next_word(&words));
  *out = args;
  return 0;
}

/* --- defaults: "3", "float", "'NHWC'", "[1,2]" to an AttrValue --- */

static base_slice tf_unquoted(base_slice s) {
  return s.n >= 2 && *s.p == '\'' ? (base_slice){s.p + 1, s.n - 2} : s;
}

/* Within an AttrValue, numbers of fields are those of the value itself; within its list, of the list. Appends one
 * default as an AttrValue, or as an element of its list: field numbers are the same but for shapes. */
static void tf_put_default(base_text *out, base_slice kind, base_slice s, bool in_list) {
  if (base_slice_is(kind, "type")) {
    proto_put_int_always(out, 6, tf_type_of_word(s));
  } else if (base_slice_is(kind, "int")) {
    int64_t v = 0;
    (void)base_parse_i64(s.p, s.p + s.n, &v);
    proto_put_int_always(out, 3, v);
  } else if (base_slice_is(kind, "bool")) {
    proto_put_int_always(out, 5, *s.p == 't');
  } else if (base_slice_is(kind, "string")) {
    base_slice text = tf_unquoted(s);
    proto_put_varint(out, 2 << 3 | PROTO_LENGTH);
    proto_put_varint(out, text.n);
    base_put(out, text.p, text.n);
  } else if (base_slice_is(kind, "float")) {
    double v = 0;
    if (!base_parse_f64(s.p, s.p + s.n, &v)) v = *s.p == '-' ? -__builtin_inf() : __builtin_inf();
    float narrow = (float)v;
    uint32_t bits = 0;
    memcpy(&bits, &narrow, sizeof bits);
    proto_put_varint(out, 4 << 3 | PROTO_FIXED32);
    for (unsigned i = 0; i < 4; i++) base_putc(out, (char)(bits >> (8 * i)));
  } else if (base_slice_is(kind, "shape") && !in_list) {
    size_t begin = proto_begin(out, 7);
    if (*s.p == '?') proto_put_int_always(out, 3, 1);
    proto_end(out, begin);
  }
}

/* "[a,b]" as AttrValue.ListValue, field 1; "[]" is an empty list, which is still a value. */
static void tf_put_default_list(base_text *out, base_slice kind, base_slice s) {
  base_slice element = {kind.p + 5, kind.n - 6}; /* list(...) */
  size_t begin = proto_begin(out, 1);
  s = (base_slice){s.p + 1, s.n - 2};
  while (s.n > 0) {
    base_slice one = s, rest = {s.p + s.n, 0};
    (void)tf_split_at(s, ',', &one, &rest);
    tf_put_default(out, element, one, true);
    s = rest;
  }
  proto_end(out, begin);
}

/* Defaults become AttrValues in the arena, so that reading an attribute is the same whether it was written or not. */
static int tf_keep_default(tf_graph_def *g, tf_attr_def *a, xlac_error *err) {
  base_text t;
  base_text_init(&t, g->arena.alloc);
  if (a->kind.n > 5 && memcmp(a->kind.p, "list(", 5) == 0)
    tf_put_default_list(&t, a->kind, a->written);
  else
    tf_put_default(&t, a->kind, a->written, false);
  a->value = (base_slice){base_arena_memdup(&g->arena, t.s ? t.s : "", t.n + 1), t.n};
  bool failed = t.failed || !a->value.p;
  base_text_free(&t);
  return failed ? base_oom(err, "reading a graph") : 0;
}

/* "T:type", "N:int=1": name, kind, default. */
static int tf_read_attr_defs(tf_graph_def *g, const tf_word *words, tf_op_def *op, xlac_error *err) {
  op->n_attrs = tf_count_words(words);
  tf_attr_def *attrs = BASE_ARRAY(&g->arena, tf_attr_def, op->n_attrs + 1);
  if (!attrs) return base_oom(err, "reading a graph");
  for (uint32_t i = 0; i < op->n_attrs; i++) {
    base_slice word = tf_next_word(&words), name = word, rest = {NULL, 0};
    (void)tf_split_at(word, ':', &name, &rest);
    attrs[i] = (tf_attr_def){.name = base_intern(&g->strings, name.p, name.n), .kind = rest};
    (void)tf_split_at(rest, '=', &attrs[i].kind, &attrs[i].written);
    if (!attrs[i].name) return base_oom(err, "reading a graph");
    if (attrs[i].written.p) TRY(tf_keep_default(g, &attrs[i], err));
  }
  op->attrs = attrs;
  return 0;
}

/* "T:float|half Tidx:int32": the types that XLA's kernel takes on one device. */
static int tf_read_constraints(tf_graph_def *g, const tf_word *words, const tf_constraint **out, uint32_t *n,
                               xlac_error *err) {
  *n = tf_count_words(words);
  tf_constraint *list = BASE_ARRAY(&g->arena, tf_constraint, *n + 1);
  if (!list) return base_oom(err, "reading a graph");
  for (uint32_t i = 0; i < *n; i++) {
    base_slice word = tf_next_word(&words), name = word, types = {NULL, 0};
    (void)tf_split_at(word, ':', &name, &types);
    list[i] = (tf_constraint){base_intern(&g->strings, name.p, name.n), tf_type_set_of(types)};
    if (!list[i].attr) return base_oom(err, "reading a graph");
    assert(list[i].allowed != 0);
  }
  *out = list;
  return 0;
}

/* "=" in the GPU's column repeats the CPU's. */
static int tf_op_def_of_row(tf_graph_def *g, const tf_op_row *row, tf_op_def *op, xlac_error *err) {
  assert(row->name != NULL && op->name != NULL);
  op->flags = row->flags;
  op->resource = row->resource;
  op->const_args = row->const_args ? row->const_args : tf_no_words;
  TRY(tf_read_args(g, row->inputs, &op->inputs, &op->n_inputs, err));
  TRY(tf_read_args(g, row->outputs, &op->outputs, &op->n_outputs, err));
  TRY(tf_read_attr_defs(g, row->attrs, op, err));
  for (int d = 0; d < 2 && row->types[0]; d++) {
    bool same = d == 1 && tf_is_same_types(row->types[1]);
    TRY(tf_read_constraints(g, row->types[same ? 0 : d], &op->on[d], &op->n_on[d], err));
  }
  return 0;
}

/* --- OpDef messages --- */

/* Fields of OpDef.ArgDef: 1 name, 3 type, 4 type_attr, 5 number_attr, 6 type_list_attr, 16 is_ref. */
static tf_arg_def tf_arg_of_message(base_slice message) {
  tf_arg_def arg = {.name = {"", 0}};
  const char *at = message.p;
  for (tf_raw_field f; tf_raw_next(&at, message.p + message.n, &f);) {
    if (f.number == 1) arg.name = f.bytes;
    if (f.number == 3) arg.type = f.value < 255 ? (uint8_t)f.value : 0;
    if (f.number == 4) arg.type_attr = f.bytes;
    if (f.number == 5) arg.number_attr = f.bytes;
    if (f.number == 6) arg.type_list_attr = f.bytes;
    if (f.number == 16) arg.is_ref = f.value != 0;
  }
  return arg;
}

/* Field 2 of OpDef are inputs, 3 outputs. The first walk counts. */
static int tf_read_arg_messages(tf_graph_def *g, base_slice message, uint32_t number, const tf_arg_def **out,
                                uint32_t *n, xlac_error *err) {
  const char *at = message.p, *end = message.p + message.n;
  *n = 0;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);) *n += f.number == number && f.wire == 2;
  tf_arg_def *args = BASE_ARRAY(&g->arena, tf_arg_def, *n + 1);
  if (!args) return base_oom(err, "reading a graph");
  uint32_t i = 0;
  at = message.p;
  for (tf_raw_field f; tf_raw_next(&at, end, &f);)
    if (f.number == number && f.wire == 2) args[i++] = tf_arg_of_message(f.bytes);
  *out = args;
  return 0;
}

/* Fields of OpDef: 1 name, 2 input_arg, 3 output_arg, 4 attr, 17 is_stateful. */
int tf_op_def_read(tf_graph_def *g, base_slice message, tf_op_def **out, xlac_error *err) {
  tf_op_def *op = BASE_NEW(&g->arena, tf_op_def);
  tf_raw_field f;
  if (!op) return base_oom(err, "reading a graph");
  op->const_args = tf_no_words;
  if (!tf_raw_find(message, 1, &f) || f.wire != 2 || f.bytes.n == 0)
    return base_fail(err, XLAC_E_BAD_PROTO, "a function of the library has no name");
  op->name = base_intern(&g->strings, f.bytes.p, f.bytes.n);
  if (!op->name) return base_oom(err, "reading a graph");
  if (tf_raw_find(message, 17, &f) && f.value) op->flags |= TF_OP_STATEFUL;
  if (tf_raw_find(message, 4, &f)) op->flags |= TF_OP_OPEN;
  TRY(tf_read_arg_messages(g, message, 2, &op->inputs, &op->n_inputs, err));
  TRY(tf_read_arg_messages(g, message, 3, &op->outputs, &op->n_outputs, err));
  *out = op;
  return 0;
}

/* --- finding --- */

/* A function wins over an op of its name, which can only be one of TensorFlow's tests' own. */
int tf_op_def_of(tf_graph_def *g, const base_istr *name, const tf_op_def **out, xlac_error *err) {
  assert(name != NULL);
  *out = base_map_ptr(&g->op_of, name);
  if (*out) return 0;
  const tf_function *function = tf_find_function(g, name);
  tf_op_row row;
  if (function) *out = function->signature;
  if (!function && tf_op_row_find((base_slice){name->s, name->n}, &row)) {
    tf_op_def *op = BASE_NEW(&g->arena, tf_op_def);
    if (!op) return base_oom(err, "reading a graph");
    op->name = name;
    TRY(tf_op_def_of_row(g, &row, op, err));
    *out = op;
  }
  if (*out && !base_map_set(&g->op_of, base_key(name), base_key(*out))) return base_oom(err, "reading a graph");
  return 0;
}

/* Nodes as written may leave out attributes that have their default. */
base_slice tf_attr_or_default(const tf_op_def *op, tf_attrs attrs, base_slice name) {
  assert(op != NULL);
  for (uint32_t i = 0; i < attrs.n; i++)
    if (attrs.v[i].key->n == name.n && memcmp(attrs.v[i].key->s, name.p, name.n) == 0) return attrs.v[i].value;
  for (uint32_t i = 0; i < op->n_attrs; i++)
    if (op->attrs[i].name->n == name.n && memcmp(op->attrs[i].name->s, name.p, name.n) == 0) return op->attrs[i].value;
  return (base_slice){NULL, 0};
}
