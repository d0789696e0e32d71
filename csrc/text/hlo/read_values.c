/* Attribute values with a syntax of their own: index paths, aliases, metadata, dictionaries, accuracies, domains,
 * origins, and the header's recovery table.
 *
 * Fields by name come from a table or a short chain; each is given at most once, in any order, as in XLA's parser.
 * What XLA prints anew in a form of its own (origins, recovery tables, statistics) is kept as that text, so that
 * printing is a copy. */
#include "../../base/number/number.h"
#include "read.h"

#include <stdio.h>
#include <stdlib.h>

/* --- index paths and aliases --- */

/* {1,0}: element 0 of element 1 of a tuple; {} is the value itself. */
int text_read_index_path(text_reader *r, const ir_ints **out) {
  uint32_t first = r->ints.n;
  TRY(text_want(r, '{', "before a tuple index"));
  while (*r->lx.p != '}') {
    int64_t v;
    TRY(text_read_int(r, &v));
    TRY(text_push_int(r, v));
    if (!text_eat(&r->lx, ',')) break;
  }
  TRY(text_want(r, '}', "after a tuple index"));
  *out = text_make_ints(r, first);
  return *out ? 0 : text_no_memory(r);
}

/* {0}: (1, {}) */
static int read_alias(text_reader *r, ir_alias *a) {
  *a = (ir_alias){0};
  TRY(text_read_index_path(r, &a->output));
  TRY(text_want(r, ':', "between an output and its operand"));
  TRY(text_want(r, '(', "before an operand and its index"));
  TRY(text_read_int(r, &a->operand));
  TRY(text_want(r, ',', "between an operand and its index"));
  TRY(text_read_index_path(r, &a->index));
  return text_want(r, ')', "after an operand and its index");
}

BASE_VEC(alias_list, ir_alias);

/*   { {0}: (1, {}), {1}: (2, {}) } */
static int read_alias_list(text_reader *r, alias_list *list) {
  TRY(text_want(r, '{', "before a list of aliases"));
  while (*r->lx.p != '}') {
    ir_alias a;
    TRY(read_alias(r, &a));
    if (!BASE_VEC_PUSH(r->alloc, list, a)) return text_no_memory(r);
    if (!text_eat(&r->lx, ',')) break;
  }
  return text_want(r, '}', "after a list of aliases");
}

/* output_to_operand_aliasing={{0}: (1, {})}: output {0} lies in operand 1. The list is on the heap until its length
 * is known. */
int text_read_aliasing(text_reader *r, const ir_aliasing **out) {
  alias_list list = {0};
  int status = read_alias_list(r, &list);
  ir_aliasing *a = status ? NULL : base_arena_alloc(&r->m->arena, sizeof *a + list.n * sizeof a->v[0]);
  if (a) {
    a->n = list.n;
    if (list.n) memcpy(a->v, list.items, list.n * sizeof a->v[0]);
    *out = a;
  } else if (status == 0) {
    status = text_no_memory(r);
  }
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}

/* --- metadata --- */

/* A row for each field: its name in text, what it is, and where it is in ir_metadata. */
typedef enum metadata_kind { M_STRING, M_INT, M_FRAME, M_PROFILE, M_SIZE } metadata_kind;
static const struct {
  const char *text;
  uint16_t n;
  uint8_t kind;
  uint16_t offset;
} metadata_fields[] = {
#define FIELD(name, kind, member) {name, sizeof(name) - 1, kind, offsetof(ir_metadata, member)}
    FIELD("op_name", M_STRING, op_name),
    FIELD("stack_frame_id", M_FRAME, stack_frame_id),
    FIELD("source_file", M_STRING, source_file),
    FIELD("source_line", M_INT, source_line),
    FIELD("op_type", M_STRING, op_type),
    FIELD("source_end_line", M_INT, source_end_line),
    FIELD("source_column", M_INT, source_column),
    FIELD("source_end_column", M_INT, source_end_column),
    FIELD("deduplicated_name", M_STRING, deduplicated_name),
    FIELD("scheduling_name", M_STRING, scheduling_name),
    FIELD("metadata_payload", M_STRING, payload),
    FIELD("profile_type", M_PROFILE, profile_type),
    /* XLA prints these two but does not read them. */
    FIELD("size_of_generated_code_in_bytes", M_SIZE, size_of_generated_code),
    FIELD("size_of_memory_working_set_in_bytes", M_SIZE, size_of_memory_working_set),
#undef FIELD
};
enum { N_METADATA = sizeof metadata_fields / sizeof *metadata_fields };

/* Fields that are 32 bits wide in XLA's messages. */
static int read_int32(text_reader *r, int64_t *out) {
  const char *at = r->lx.p;
  TRY(text_read_int(r, out));
  if (*out == (int32_t)*out) return 0;
  return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%lld is beyond 32 bits", (long long)*out);
}

/* {1,2}: kept as text, without blanks. XLA's reader refuses numbers that its enum has no name for, but its messages
 * hold and its printer writes them, so they are read unless reading is strict. */
static int read_profile_types(text_reader *r, const base_istr **out) {
  const char *at = r->lx.p;
  uint32_t from;
  TRY(text_read_ints(r, '{', ',', '}', &from));
  r->bytes.n = 0;
  base_putc(&r->bytes, '{');
  for (uint32_t i = from; i < r->ints.n; i++) {
    if (r->strict && (r->ints.items[i] < 0 || r->ints.items[i] > 3))
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "profile types are 0 to 3");
    if (i > from) base_putc(&r->bytes, ',');
    base_put_i64(&r->bytes, r->ints.items[i]);
  }
  base_putc(&r->bytes, '}');
  *out = r->ints.n > from ? ir_intern(r->m, r->bytes.s, r->bytes.n) : NULL;
  bool failed = r->bytes.failed || (r->ints.n > from && !*out);
  r->ints.n = from;
  return failed ? text_no_memory(r) : 0;
}

/* The field's kind decides; `member` points into m. */
static int read_metadata_field(text_reader *r, uint32_t field, ir_metadata *m) {
  assert(field < N_METADATA);
  void *member = (char *)m + metadata_fields[field].offset;
  int64_t v;
  switch ((metadata_kind)metadata_fields[field].kind) {
    case M_STRING:
      return text_read_string(r, member);
    case M_INT:
      return read_int32(r, member);
    case M_SIZE:
      return text_read_int(r, member);
    case M_PROFILE:
      return read_profile_types(r, member);
    case M_FRAME:
      break;
  }
  TRY(read_int32(r, &v));
  /* XLA forgets frames that are not in the table. */
  m->stack_frame_id = v > 0 && v <= r->m->sources.n_frames ? (uint32_t)v : 0;
  return 0;
}

/* {op_type="Add" op_name="f/add" source_file="f.py" source_line=3}: separated by blanks, commas are taken too. */
int text_read_metadata(text_reader *r, const ir_metadata **out) {
  ir_metadata *m = BASE_NEW(&r->m->arena, ir_metadata);
  uint32_t seen = 0;
  if (!m) return text_no_memory(r);
  TRY(text_want(r, '{', "before metadata"));
  while (*r->lx.p != '}') {
    const char *at;
    base_slice key;
    text_eat(&r->lx, ',');
    TRY(text_read_key(r, &at, &key));
    uint32_t f = 0;
    while (f < N_METADATA && !(metadata_fields[f].n == key.n && memcmp(metadata_fields[f].text, key.p, key.n) == 0))
      f++;
    if (f == N_METADATA)
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "metadata has no '%.*s'", (int)(key.n < 60 ? key.n : 60), key.p);
    if (seen >> f & 1)
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "'%s' is given twice in metadata", metadata_fields[f].text);
    seen |= 1u << f;
    TRY(read_metadata_field(r, f, m));
  }
  text_eat(&r->lx, '}');
  *out = m;
  return 0;
}

/* --- dictionaries --- */

/* Entries with their place in the text, which makes the sort stable. */
typedef struct numbered_entry {
  ir_dict_entry e;
  uint32_t order;
} numbered_entry;
BASE_VEC(entry_list, numbered_entry);

/* By bytes; equal keys in the order of the text. */
static int compare_keys(const void *a, const void *b) {
  const numbered_entry *x = a, *y = b;
  assert(x->e.key && y->e.key);
  uint32_t n = x->e.key->n < y->e.key->n ? x->e.key->n : y->e.key->n;
  int c = memcmp(x->e.key->s, y->e.key->s, n);
  if (c == 0) c = (x->e.key->n > y->e.key->n) - (x->e.key->n < y->e.key->n);
  return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* Sorted by key where `sorted`; of several entries with one key the last counts. frontend_attributes are a std::map
 * in XLA: sorted, and of equal keys the last assignment holds. */
static int make_dict(text_reader *r, entry_list *list, bool sorted, const ir_dict **out) {
  ir_dict *d = base_arena_zalloc(&r->m->arena, sizeof *d + list->n * sizeof d->v[0]);
  if (!d) return text_no_memory(r);
  if (sorted && list->n) qsort(list->items, list->n, sizeof *list->items, compare_keys);
  for (uint32_t i = 0; i < list->n; i++) {
    bool hidden = sorted && i + 1 < list->n && list->items[i + 1].e.key == list->items[i].e.key;
    if (!hidden) d->v[d->n++] = list->items[i].e;
  }
  *out = d;
  return 0;
}

/* A name, or a string where the key is none, and the '=' after it. */
static int read_dict_key(text_reader *r, const base_istr **out) {
  const char *at;
  base_slice key;
  if (*r->lx.p == '"') {
    TRY(text_read_string(r, out));
    return text_want(r, '=', "after a key");
  }
  TRY(text_read_key(r, &at, &key));
  *out = ir_intern(r->m, key.p, key.n);
  return *out ? 0 : text_no_memory(r);
}

/*   key="value"      key={...} */
static int read_entry(text_reader *r, ir_dict_entry *e) {
  TRY(read_dict_key(r, &e->key));
  e->raw = *r->lx.p == '{';
  return e->raw ? text_read_braces(r, &e->value) : text_read_string(r, &e->value);
}

/*   {a="1",b="2"} */
static int read_entries(text_reader *r, entry_list *list) {
  TRY(text_want(r, '{', "before a dictionary"));
  if (*r->lx.p != '}') {
    do {
      numbered_entry e = {.order = list->n};
      TRY(read_entry(r, &e.e));
      if (!BASE_VEC_PUSH(r->alloc, list, e)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  return text_want(r, '}', "after a dictionary");
}

/* {a="b", c={"json": 1}}: a value is a string or a JSON object, which is kept verbatim (`raw`). */
int text_read_dict(text_reader *r, const ir_dict **out) {
  entry_list list = {0};
  int status = read_entries(r, &list);
  if (status == 0) status = make_dict(r, &list, true, out);
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}

/* Keeps the number as XLA will print it. XLA keeps a double and prints it with six digits; -0 becomes 0. */
static int read_statistic(text_reader *r, ir_dict_entry *e) {
  double v;
  char digits[40];
  TRY(read_dict_key(r, &e->key));
  TRY(text_read_double(r, &v));
  if (v == 0) v = 0;
  int n = snprintf(digits, sizeof digits, "%.6g", v);
  for (int i = 0; i < n; i++)
    if (digits[i] == ',') digits[i] = '.'; /* whatever the locale says */
  e->value = ir_intern(r->m, digits, (size_t)n);
  e->raw = true;
  return e->value ? 0 : text_no_memory(r);
}

/*   {visualizing_index=0,flops=12.5} */
static int read_statistics_list(text_reader *r, int64_t *index, entry_list *list) {
  const char *at;
  base_slice key;
  TRY(text_want(r, '{', "before statistics"));
  if (*r->lx.p != '}') {
    TRY(text_read_key(r, &at, &key));
    TRY(text_read_int(r, index));
    while (text_eat(&r->lx, ',')) {
      numbered_entry e = {.order = list->n};
      TRY(read_statistic(r, &e.e));
      if (!BASE_VEC_PUSH(r->alloc, list, e)) return text_no_memory(r);
    }
  }
  return text_want(r, '}', "after statistics");
}

/* {visualizing_index=0,utilization=0.5}: in the order of the text. */
int text_read_statistics(text_reader *r, const ir_dict **out) {
  entry_list list = {0};
  int64_t index = 0;
  const ir_dict *d = NULL;
  int status = read_statistics_list(r, &index, &list);
  if (status == 0) status = make_dict(r, &list, false, &d);
  if (status == 0) ((ir_dict *)(uintptr_t)d)->visualizing_index = index;
  BASE_VEC_FREE(r->alloc, &list);
  *out = d;
  return status;
}

/* --- accuracy, domain, origin --- */

/* {atol=0.1,rtol=0,ulps=4}; what is absent is 0. */
static int read_tolerance(text_reader *r, ir_accuracy *a) {
  TRY(text_want(r, '{', "before a tolerance"));
  if (*r->lx.p != '}') {
    do {
      const char *at;
      base_slice key;
      double v;
      TRY(text_read_key(r, &at, &key));
      TRY(text_read_double(r, &v));
      if (base_slice_is(key, "atol")) {
        a->atol = v;
      } else if (base_slice_is(key, "rtol")) {
        a->rtol = v;
      } else if (base_slice_is(key, "ulps") && v > -9e18 && v < 9e18) {
        a->ulps = (int64_t)v;
      } else {
        return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a tolerance has atol, rtol and ulps");
      }
    } while (text_eat(&r->lx, ','));
  }
  return text_want(r, '}', "after a tolerance");
}

/* result_accuracy={mode=highest} or {tolerance={...}}. */
int text_read_accuracy(text_reader *r, const ir_accuracy **out) {
  ir_accuracy *a = BASE_NEW(&r->m->arena, ir_accuracy);
  const char *at;
  base_slice key;
  if (!a) return text_no_memory(r);
  TRY(text_want(r, '{', "before an accuracy"));
  TRY(text_read_key(r, &at, &key));
  if (base_slice_is(key, "tolerance")) {
    a->mode = IR_ACCURACY_TOLERANCE;
    TRY(read_tolerance(r, a));
  } else if (base_slice_is(key, "mode")) {
    int64_t mode;
    TRY(text_read_word(r, IR_HLO_WORDS(ACCURACY), "mode", &mode));
    a->mode = (uint8_t)mode;
  } else {
    return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "an accuracy has a mode or a tolerance");
  }
  *out = a;
  return text_want(r, '}', "after an accuracy");
}

/* domain={kind="sharding", entry={...}, exit={...}}: what a domain instruction separates. */
int text_read_domain(text_reader *r, const ir_domain **out) {
  ir_domain *d = BASE_NEW(&r->m->arena, ir_domain);
  const char *open = r->lx.p;
  if (!d) return text_no_memory(r);
  TRY(text_want(r, '{', "before a domain"));
  while (*r->lx.p != '}') {
    const char *at;
    base_slice key;
    text_eat(&r->lx, ',');
    TRY(text_read_key(r, &at, &key));
    if (base_slice_is(key, "kind") && !d->kind) {
      TRY(text_read_string(r, &d->kind));
    } else if (base_slice_is(key, "entry") && !d->entry) {
      TRY(text_read_sharding(r, &d->entry));
    } else if (base_slice_is(key, "exit") && !d->exit) {
      TRY(text_read_sharding(r, &d->exit));
    } else {
      return text_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a domain has kind, entry and exit, once each");
    }
  }
  text_eat(&r->lx, '}');
  if (!d->kind || !d->entry || !d->exit)
    return text_fail(r, open, XLAC_E_BAD_ATTRIBUTE, "a domain needs kind, entry and exit");
  if (strcmp(d->kind->s, "sharding") != 0)
    return text_fail(r, open, XLAC_E_BAD_ATTRIBUTE, "a domain of kind \"%.40s\"; only \"sharding\" is known",
                     d->kind->s);
  *out = d;
  return 0;
}

/* A tree of leaves: parentheses nest, commas separate.
 *   {({"a"}, ({"b" {0}}, {}))}
 * `was_value` refuses a parenthesis right behind a value. Nesting is counted instead of recursed into. */
static int read_origin_tree(text_reader *r) {
  uint32_t level = 0;
  bool was_value = false;
  while (*r->lx.p != '}') {
    char c = *r->lx.p;
    if (c == '{') {
      text_original_array leaf;
      TRY(text_read_original_array(r, &leaf));
      text_put_original_array(&r->bytes, &leaf);
      was_value = true;
    } else if (c == '(' && !was_value && level < r->max_depth) {
      text_eat(&r->lx, c);
      base_putc(&r->bytes, c);
      level++;
    } else if (c == ')' && level > 0) {
      text_eat(&r->lx, c);
      base_putc(&r->bytes, c);
      level--;
      was_value = true;
    } else if (c == ',' && level > 0) {
      text_eat(&r->lx, c);
      BASE_PUT(&r->bytes, ", ");
      was_value = false;
    } else {
      return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "an original array or a tuple of them");
    }
  }
  return level == 0 ? 0 : text_expected(r, XLAC_E_BAD_ATTRIBUTE, "')' in an origin");
}

/* {[synthetic_call]}, an empty {} (printed as {()}), or a tree. */
int text_read_origin(text_reader *r, const base_istr **out) {
  const char *p = r->lx.p;
  r->bytes.n = 0;
  TRY(text_want(r, '{', "before an origin"));
  base_putc(&r->bytes, '{');
  if (text_eat(&r->lx, '[')) {
    const char *e = text_name_end(r->lx.p);
    if (e - r->lx.p != 14 || memcmp(r->lx.p, "synthetic_call", 14) != 0)
      return text_expected(r, XLAC_E_BAD_ATTRIBUTE, "synthetic_call");
    r->lx.p = e;
    text_skip(&r->lx);
    TRY(text_want(r, ']', "after synthetic_call"));
    BASE_PUT(&r->bytes, "[synthetic_call]");
  } else if (*r->lx.p == '}') {
    BASE_PUT(&r->bytes, "()");
  } else {
    TRY(read_origin_tree(r));
  }
  if (*r->lx.p != '}') return text_fail(r, p, XLAC_E_BAD_ATTRIBUTE, "an origin opens here that never closes");
  text_eat(&r->lx, '}');
  base_putc(&r->bytes, '}');
  if (r->bytes.failed) return text_no_memory(r);
  *out = ir_intern(r->m, r->bytes.s, r->bytes.n);
  return *out ? 0 : text_no_memory(r);
}

/* ---- Original arrays, and the header's table of how to recover them: entries {"a"} : {"b" {0}}, each maybe with a
 * module in a string. XLA sorts the entries and prints the modules anew, indented; that text is what the module keeps.
 */

/*   {"name" {0}}      {} */
int text_read_original_array(text_reader *r, text_original_array *out) {
  *out = (text_original_array){0};
  TRY(text_want(r, '{', "before an original array"));
  if (*r->lx.p == '"' || *r->lx.p == '\'') {
    const char *p = r->lx.p, *e = text_string_end(&r->lx, p);
    if (!e) return text_fail(r, p, XLAC_E_SYNTAX, "a string begins here that never ends");
    out->name = (base_slice){p + 1, (size_t)(e - p) - 2};
    r->lx.p = e;
    text_skip(&r->lx);
    if (*r->lx.p == '{') TRY(text_read_index_path(r, &out->path));
  }
  return text_want(r, '}', "after an original array");
}

/*   {"name" {0,1}}   {"name"}   {} */
void text_put_original_array(base_text *out, const text_original_array *a) {
  base_putc(out, '{');
  if (a->name.p) {
    base_putc(out, '"');
    base_put(out, a->name.p, a->name.n);
    base_putc(out, '"');
  }
  for (uint32_t i = 0; a->path && i < a->path->n; i++) {
    base_puts(out, i ? "," : " {");
    base_put_i64(out, a->path->v[i]);
  }
  if (a->path && a->path->n) base_putc(out, '}');
  base_putc(out, '}');
}

/* --- the table --- */

/* The table says how an array of the original program that is gone can be computed from others that are there. */
typedef struct recovery_entry {
  text_original_array lost, found;
  const base_istr *module; /* as XLA prints it within the table, or NULL */
  uint32_t order;
} recovery_entry;
BASE_VEC(recovery_list, recovery_entry);

/* Prints the module again, four blanks in, as the table holds it. */
static int print_recovery(text_reader *r, const ir_module *m, const base_istr **out) {
  base_text text;
  text_print_options options = {.indent = 2}; /* XLA elides large constants here, and with them the program */
  base_text_init(&text, r->alloc);
  int status = text_print_hlo(&text, m, &options, r->err);
  r->bytes.n = 0;
  for (size_t i = 0; status == 0 && i < text.n; i++) {
    if (text.s[i] == '"' || text.s[i] == '\\') base_putc(&r->bytes, '\\');
    base_putc(&r->bytes, text.s[i]);
  }
  base_text_free(&text);
  if (status != 0) return status;
  *out = r->bytes.failed ? NULL : ir_intern(r->m, r->bytes.s, r->bytes.n);
  return *out ? 0 : text_no_memory(r);
}

/* A string that holds a module. Each such level costs half the nesting that is left. The inner module has an error
 * record of its own: its message is quoted with the line within the string. */
static int read_recovery_module(text_reader *r, const base_istr **out) {
  const char *at = r->lx.p;
  const base_istr *string;
  ir_module *m = NULL;
  text_parse_options options = {.alloc = r->alloc, .max_depth = r->max_depth / 2, .strict = r->strict};
  xlac_error why = {0};
  TRY(text_read_string(r, &string));
  if (options.max_depth == 0) return text_fail(r, at, XLAC_E_TOO_DEEP, "recovery modules are nested too deeply");
  TRY(text_charge(r, at, string->n));
  if (text_parse_hlo(&m, string->s, string->n, &options, &why) != 0)
    return text_fail(r, at, (base_code)why.code, "line %u of the recovery module: %s", why.line, why.message);
  int status = print_recovery(r, m, out);
  ir_module_destroy(m);
  return status;
}

/*   {"lost" {0}} : {"found"},
 *       "module text" */
static int read_recovery_entries(text_reader *r, recovery_list *list) {
  TRY(text_want(r, '{', "before a recovery table"));
  while (*r->lx.p != '}') {
    recovery_entry e = {.order = list->n};
    TRY(text_read_original_array(r, &e.lost));
    TRY(text_want(r, ':', "between original arrays"));
    TRY(text_read_original_array(r, &e.found));
    if (text_eat(&r->lx, ',')) TRY(read_recovery_module(r, &e.module));
    if (!BASE_VEC_PUSH(r->alloc, list, e)) return text_no_memory(r);
  }
  text_eat(&r->lx, '}');
  return 0;
}

/* By name, then by path: the order of a std::map with such keys. */
static int compare_arrays(const text_original_array *a, const text_original_array *b) {
  size_t n = a->name.n < b->name.n ? a->name.n : b->name.n;
  int c = n ? memcmp(a->name.p, b->name.p, n) : 0;
  if (c == 0) c = (a->name.n > b->name.n) - (a->name.n < b->name.n);
  assert(a->name.p || a->name.n == 0);
  uint32_t an = a->path ? a->path->n : 0, bn = b->path ? b->path->n : 0;
  for (uint32_t i = 0; c == 0 && i < an && i < bn; i++)
    c = (a->path->v[i] > b->path->v[i]) - (a->path->v[i] < b->path->v[i]);
  return c ? c : (an > bn) - (an < bn);
}

/* Equal keys stay in the order of the text, so that the first of them can be kept. */
static int compare_entries(const void *a, const void *b) {
  const recovery_entry *x = a, *y = b;
  int c = compare_arrays(&x->lost, &y->lost);
  return c ? c : (x->order > y->order) - (x->order < y->order);
}

/* An array without a name prints as the empty name here. */
static void put_named(base_text *out, text_original_array a) {
  if (!a.name.p) a.name = BASE_SLICE("");
  text_put_original_array(out, &a);
}

/* The table as it is printed: sorted, equals once. */
static void put_entries(base_text *out, const recovery_list *list) {
  assert(list->n > 0);
  BASE_PUT(out, "{\n");
  for (uint32_t i = 0; i < list->n; i++) {
    const recovery_entry *e = &list->items[i];
    if (i > 0 && compare_arrays(&e[-1].lost, &e->lost) == 0) continue; /* the first of equals counts */
    BASE_PUT(out, "  ");
    put_named(out, e->lost);
    BASE_PUT(out, " : ");
    put_named(out, e->found);
    if (e->module) {
      BASE_PUT(out, ",\n  \"\n");
      base_put(out, e->module->s, e->module->n);
      BASE_PUT(out, "\n  \"");
    }
    base_putc(out, '\n');
  }
  base_putc(out, '}');
}

/* {"lost"} : {"found" {0}}, "HloModule ..." for each entry; r->bytes takes the normal form. */
int text_read_recovery_table(text_reader *r, const base_istr **out) {
  recovery_list list = {0};
  int status = read_recovery_entries(r, &list);
  if (status == 0 && list.n) {
    qsort(list.items, list.n, sizeof *list.items, compare_entries);
    r->bytes.n = 0;
    put_entries(&r->bytes, &list);
    *out = r->bytes.failed ? NULL : ir_intern(r->m, r->bytes.s, r->bytes.n);
    if (!*out) status = text_no_memory(r);
  }
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}
