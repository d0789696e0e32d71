/* The module's own message: facts of the header, source tables, and the entry points.
 *
 * HloModuleProto: 1 name, 3 computations, 4 the entry's program shape, 6 the entry's id, 7 schedule, 8 aliases, 17
 * source tables, 18 donors, 19 frontend attributes, 20 recovery table, 22 payloads of metadata. */
#include <stdlib.h>

#include "../hlo/print.h"
#include "../../ir/names.h"
#include "../../ir/check/check.h"
#include "read.h"
#include "../hlo/read.h"

/* --- aliases and donors --- */

/* Tuple indices in lexicographic order, shorter ones first. */
static int compare_index_paths(const ir_ints *a, const ir_ints *b) {
  for (uint32_t i = 0; i < a->n && i < b->n; i++)
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
  return (a->n > b->n) - (a->n < b->n);
}

/* The order of XLA's ShapeTree: by output. */
static int compare_alias_outputs(const void *a, const void *b) {
  return compare_index_paths(((const ir_alias *)a)->output, ((const ir_alias *)b)->output);
}

/* By parameter, then by path within it. */
static int compare_donor_places(const void *a, const void *b) {
  assert(((const ir_donor *)a)->index && ((const ir_donor *)b)->index);
  const ir_donor *x = a, *y = b;
  if (x->parameter != y->parameter) return x->parameter < y->parameter ? -1 : 1;
  return compare_index_paths(x->index, y->index);
}

/* Kind 2 is must-alias, 1 may-alias. */
static int read_proto_aliases(proto_reader *r) {
  ir_config *c = &r->m->config;
  proto_message list;
  proto_field f;
  TRY(proto_open_sub(&r->s, r->module, 8, &list));
  uint32_t at = list.first, n = proto_count(&r->s, list, 1, PROTO_LENGTH);
  c->aliases = BASE_ARRAY(&r->m->arena, ir_alias, (size_t)n + 1);
  if (!c->aliases) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, list, 1, PROTO_LENGTH, &at, &f); c->n_aliases++) {
    proto_message e;
    ir_alias *a = &c->aliases[c->n_aliases];
    TRY(proto_open_field(&r->s, f, &e));
    *a = (ir_alias){.operand = proto_int(&r->s, e, 2), .must = proto_int(&r->s, e, 4) == 2};
    TRY(proto_read_ints(r, e, 1, &a->output));
    TRY(proto_read_ints(r, e, 3, &a->index));
    if (a->operand < 0 || !ir_type_at(ir_root(r->m->entry)->type, a->output->v, a->output->n))
      return proto_fail(&r->s, f.p, XLAC_E_BAD_HEADER,
                        "input_output_alias names an output or a parameter that is not there");
    proto_close(&r->s, e);
  }
  proto_close(&r->s, list);
  if (n) qsort(c->aliases, n, sizeof *c->aliases, compare_alias_outputs);
  for (uint32_t i = 1; i < n; i++)
    if (compare_alias_outputs(&c->aliases[i - 1], &c->aliases[i]) == 0)
      return proto_fail(&r->s, r->s.base, XLAC_E_BAD_HEADER, "input_output_alias names an output twice");
  return 0;
}

/* Sorted, and each once: XLA keeps them in a set. */
static int read_proto_donors(proto_reader *r) {
  ir_config *c = &r->m->config;
  proto_message list;
  proto_field f;
  TRY(proto_open_sub(&r->s, r->module, 18, &list));
  uint32_t at = list.first, n = proto_count(&r->s, list, 1, PROTO_LENGTH), kept = 0;
  c->donors = BASE_ARRAY(&r->m->arena, ir_donor, (size_t)n + 1);
  if (!c->donors) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, list, 1, PROTO_LENGTH, &at, &f); c->n_donors++) {
    proto_message e;
    TRY(proto_open_field(&r->s, f, &e));
    c->donors[c->n_donors].parameter = proto_int(&r->s, e, 1);
    TRY(proto_read_ints(r, e, 2, &c->donors[c->n_donors].index));
    proto_close(&r->s, e);
  }
  proto_close(&r->s, list);
  if (n) qsort(c->donors, n, sizeof *c->donors, compare_donor_places);
  for (uint32_t i = 0; i < n; i++)
    if (kept == 0 || compare_donor_places(&c->donors[kept - 1], &c->donors[i]) != 0) c->donors[kept++] = c->donors[i];
  c->n_donors = kept;
  return 0;
}

/* --- entry layout --- */

/* The program shape with the layouts at the boundary; without it the entry's own types count. */
static int read_proto_entry_layout(proto_reader *r) {
  ir_config *c = &r->m->config;
  proto_message shape;
  uint32_t from;
  if (proto_count(&r->s, r->module, 4, PROTO_LENGTH) == 0) return 0;
  TRY(proto_open_sub(&r->s, r->module, 4, &shape));
  TRY(proto_read_types(r, shape, 1, &from));
  uint32_t n = r->types.n - from;
  c->entry_params = BASE_ARRAY(&r->m->arena, const ir_type *, (size_t)n + 1);
  if (!c->entry_params) return proto_no_memory(&r->s);
  if (n) memcpy(c->entry_params, r->types.items + from, n * sizeof *c->entry_params);
  c->n_entry_params = n;
  r->types.n = from;
  TRY(proto_read_type_in(r, shape, 2, &c->entry_result));
  proto_close(&r->s, shape);
  c->has_entry_layout = true;
  return 0;
}

/* --- source tables --- */

/* 0 for a row that is not there, as the reader of text does. */
static uint32_t table_row(int64_t v, uint32_t n) {
  return v > 0 && v <= n ? (uint32_t)v : 0;
}

/* Names of files or functions, empty ones too: rows are counted. */
static int read_name_table(proto_reader *r, proto_message in, uint32_t number, uint32_t *n, const base_istr ***out) {
  uint32_t at = in.first, count = proto_count(&r->s, in, number, PROTO_LENGTH);
  proto_field f;
  *out = BASE_ARRAY(&r->m->arena, const base_istr *, (size_t)count + 1);
  if (!*out) return proto_no_memory(&r->s);
  for (*n = 0; proto_next(&r->s, in, number, PROTO_LENGTH, &at, &f); ++*n)
    TRY(proto_intern(r, (const char *)f.p, (size_t)f.value, &(*out)[*n]));
  return 0;
}

/* The message has line, column, end_line, end_column; the IR line, end_line, column, end_column. */
static int read_proto_locations(proto_reader *r, proto_message in, ir_source_tables *t) {
  uint32_t at = in.first, n = proto_count(&r->s, in, 3, PROTO_LENGTH);
  proto_field f;
  t->locations = BASE_ARRAY(&r->m->arena, ir_location, (size_t)n + 1);
  if (!t->locations) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, in, 3, PROTO_LENGTH, &at, &f); t->n_locations++) {
    proto_message e;
    TRY(proto_open_field(&r->s, f, &e));
    t->locations[t->n_locations] = (ir_location){table_row(proto_int(&r->s, e, 1), t->n_files),
                                                 table_row(proto_int(&r->s, e, 2), t->n_functions),
                                                 (int32_t)proto_int(&r->s, e, 3),
                                                 (int32_t)proto_int(&r->s, e, 5),
                                                 (int32_t)proto_int(&r->s, e, 4),
                                                 (int32_t)proto_int(&r->s, e, 6)};
    proto_close(&r->s, e);
  }
  return 0;
}

/* A frame whose caller is not a row is its own, which the IR takes for none. */
static int read_proto_frames(proto_reader *r, proto_message in, ir_source_tables *t) {
  uint32_t at = in.first, n = proto_count(&r->s, in, 4, PROTO_LENGTH);
  proto_field f;
  t->frames = BASE_ARRAY(&r->m->arena, ir_frame, (size_t)n + 1);
  if (!t->frames) return proto_no_memory(&r->s);
  for (; proto_next(&r->s, in, 4, PROTO_LENGTH, &at, &f); t->n_frames++) {
    proto_message e;
    TRY(proto_open_field(&r->s, f, &e));
    uint32_t parent = table_row(proto_int(&r->s, e, 2), n);
    t->frames[t->n_frames] =
        (ir_frame){table_row(proto_int(&r->s, e, 1), t->n_locations), parent ? parent : t->n_frames + 1};
    proto_close(&r->s, e);
  }
  return 0;
}

/* A chain of parents must end: whoever follows one would not. */
static int check_proto_frames(proto_reader *r, const ir_source_tables *t) {
  uint8_t *state = base_malloc(r->s.alloc, (size_t)t->n_frames + 1); /* 0 new, 1 on the path, 2 ends */
  if (!state) return proto_no_memory(&r->s);
  memset(state, 0, (size_t)t->n_frames + 1);
  bool ends = true;
  for (uint32_t i = 0; ends && i < t->n_frames; i++) {
    uint32_t f = i;
    for (; state[f] == 0 && t->frames[f].parent != f + 1; f = t->frames[f].parent - 1) state[f] = 1;
    ends = state[f] != 1;
    for (uint32_t g = i; ends && state[g] == 1; g = t->frames[g].parent - 1) state[g] = 2;
    state[f] = 2;
  }
  base_free(r->s.alloc, state);
  return ends ? 0 : proto_fail(&r->s, r->s.base, XLAC_E_BAD_HEADER, "a stack frame is its own ancestor");
}

/* Afterwards every chain of callers ends. */
static int read_proto_tables(proto_reader *r) {
  ir_source_tables *t = &r->m->sources;
  proto_message in;
  TRY(proto_open_sub(&r->s, r->module, 17, &in));
  TRY(read_name_table(r, in, 1, &t->n_files, &t->files));
  TRY(read_name_table(r, in, 2, &t->n_functions, &t->functions));
  TRY(read_proto_locations(r, in, t));
  TRY(read_proto_frames(r, in, t));
  proto_close(&r->s, in);
  return check_proto_frames(r, t);
}

/* --- how to recover original values --- */

/* "name" {0} of an original array, in braces. */
static int put_recovery_array(proto_reader *r, base_text *out, proto_message in, uint32_t number) {
  proto_message array;
  uint32_t from;
  TRY(proto_open_sub(&r->s, in, number, &array));
  TRY(proto_list(&r->s, array, 2, &from));
  base_slice name = proto_bytes(&r->s, array, 1);
  base_puts(out, "{\"");
  text_put_escaped(out, name.p, name.n);
  base_puts(out, "\" {");
  text_put_ints(out, r->s.numbers.items + from, r->s.numbers.n - from);
  base_puts(out, "}}");
  r->s.numbers.n = from;
  proto_close(&r->s, array);
  return 0;
}

/* The inner module has half the nesting that is left, so that modules in modules end. */
static int put_recovery_module(proto_reader *r, base_text *out, proto_message entry) {
  base_slice bytes = proto_bytes(&r->s, entry, 3);
  text_parse_options options = {.alloc = r->s.alloc, .max_depth = r->s.max_depth / 2, .strict = r->strict};
  ir_module *m = NULL;
  base_text text;
  if (bytes.n == 0) return 0;
  if (options.max_depth == 0)
    return proto_fail(&r->s, (const uint8_t *)bytes.p, XLAC_E_TOO_DEEP, "recovery modules are nested too deeply");
  TRY(text_parse_proto(&m, bytes.p, bytes.n, &options, r->s.err));
  base_text_init(&text, r->s.alloc);
  int status = text_print_hlo(&text, m, NULL, r->s.err);
  base_puts(out, ", \"");
  text_put_escaped(out, text.s, text.n);
  base_putc(out, '"');
  base_text_free(&text);
  ir_module_destroy(m);
  return status;
}

/* In the syntax of the header attribute, one entry a line. */
static int put_recovery_entries(proto_reader *r, base_text *out, proto_message table) {
  assert(table.first + table.n <= r->s.fields.n);
  uint32_t at = table.first;
  proto_field f;
  base_putc(out, '{');
  while (proto_next(&r->s, table, 1, PROTO_LENGTH, &at, &f)) {
    proto_message e;
    TRY(proto_open_field(&r->s, f, &e));
    TRY(put_recovery_array(r, out, e, 1));
    base_puts(out, " : ");
    TRY(put_recovery_array(r, out, e, 2));
    TRY(put_recovery_module(r, out, e));
    base_putc(out, '\n');
    proto_close(&r->s, e);
  }
  base_putc(out, '}');
  return out->failed ? proto_no_memory(&r->s) : 0;
}

/* The IR keeps the table as text, which the reader of HLO text puts in its normal form. */
static int read_proto_recovery(proto_reader *r) {
  proto_message table;
  base_text text;
  text_reader inner;
  if (proto_count(&r->s, r->module, 20, PROTO_LENGTH) == 0) return 0;
  TRY(proto_open_sub(&r->s, r->module, 20, &table));
  base_text_init(&text, r->s.alloc);
  int status = put_recovery_entries(r, &text, table);
  if (status == 0) {
    status = text_reader_open(&inner, r->m, r->s.alloc, text.s, text.n, NULL, r->s.err);
    if (status == 0) status = text_read_recovery_table(&inner, &r->m->config.origin_recovery_table);
    text_reader_close(&inner);
  }
  base_text_free(&text);
  TRY(status);
  proto_close(&r->s, table);
  return 0;
}

/* --- the module --- */

/* XLA's ids are unique in a module; the order of the messages need not be theirs. */
static int compare_computation_ids(const void *a, const void *b) {
  const base_map_slot *x = a, *y = b;
  return ((int64_t)x->key > (int64_t)y->key) - ((int64_t)x->key < (int64_t)y->key);
}

/* The module's list is in the order of the ids. The map's slots are all computations, each with its id as the key. */
static int order_computations(proto_reader *r) {
  ir_module *m = r->m;
  uint32_t n = 0;
  base_map_slot *list = base_malloc(r->s.alloc, ((size_t)m->n_computations + 1) * sizeof *list);
  if (!list) return proto_no_memory(&r->s);
  if (r->computations.has_zero) list[n++] = (base_map_slot){0, r->computations.zero};
  for (uint32_t i = 0; i < r->computations.cap; i++)
    if (r->computations.slots[i].key) list[n++] = r->computations.slots[i];
  assert(n == m->n_computations);
  if (n) qsort(list, n, sizeof *list, compare_computation_ids);
  m->first = m->last = NULL;
  for (uint32_t i = 0; i < n; i++) {
    ir_computation *c = (ir_computation *)(uintptr_t)list[i].value;
    c->prev = m->last;
    c->next = NULL;
    *(m->last ? &m->last->next : &m->first) = c;
    m->last = c;
  }
  base_free(r->s.alloc, list);
  return 0;
}

/* Callees come before callers in the message, as XLA writes it; any other order is an error. */
static int read_proto_computations(proto_reader *r) {
  uint32_t at = r->module.first;
  uint64_t entry;
  proto_field f;
  while (proto_next(&r->s, r->module, 3, PROTO_LENGTH, &at, &f)) {
    proto_message c;
    TRY(proto_open_field(&r->s, f, &c));
    TRY(proto_read_computation(r, c));
    proto_close(&r->s, c);
  }
  if (!base_map_get(&r->computations, (uint64_t)proto_int(&r->s, r->module, 6), &entry))
    return proto_fail(&r->s, r->s.base, XLAC_E_BAD_PROTO, "the module has no computation %lld, its entry",
                      (long long)proto_int(&r->s, r->module, 6));
  r->m->entry = (ir_computation *)(uintptr_t)entry;
  return order_computations(r);
}

/* Tables come first, since metadata refer to them, and the entry before what is checked against it. */
int proto_read_module(proto_reader *r) {
  ir_config *c = &r->m->config;
  TRY(proto_read_str(r, r->module, 1, &r->m->name));
  if (!r->m->name) TRY(proto_intern(r, "", 0, &r->m->name));
  const base_istr *given = r->m->name;
  if (!ir_is_name(given->s, given->n) || ir_name_is_word(given->s, given->n))
    r->m->name = ir_legal_name(r->m, given->s, given->n);
  if (!r->m->name) return proto_no_memory(&r->s);
  c->is_scheduled = proto_count(&r->s, r->module, 7, PROTO_LENGTH) > 0;
  TRY(read_proto_tables(r));
  TRY(read_proto_computations(r));
  TRY(ir_check_schedule(r->m, r->s.err));
  TRY(read_proto_entry_layout(r));
  TRY(read_proto_aliases(r));
  TRY(read_proto_donors(r));
  TRY(proto_read_dict(r, r->module, 19, &c->frontend_attributes));
  if (c->frontend_attributes->n == 0) c->frontend_attributes = NULL;
  return read_proto_recovery(r);
}

/* Types and messages nest to one limit, the smaller of what is asked for and what types may have. */
static void open_reader(proto_reader *r, ir_module *m, const void *data, size_t n, const text_parse_options *options,
                        xlac_error *err) {
  base_alloc alloc = m->alloc;
  uint32_t depth = options && options->max_depth ? options->max_depth : PROTO_MAX_DEPTH;
  *r = (proto_reader){.m = m, .strict = options && options->strict};
  r->s = (proto_source){.base = data, .end = (const uint8_t *)data + n, .alloc = alloc, .err = err};
  r->s.max_depth = depth < IR_MAX_TYPE_DEPTH ? depth : IR_MAX_TYPE_DEPTH;
  base_map *maps[] = {&r->computations, &r->ops, &r->op_names, &r->computation_names, &r->wrapped};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) base_map_init(maps[i], alloc);
  base_text_init(&r->bytes, alloc);
}

/* The module stays the caller's. */
static void close_reader(proto_reader *r) {
  base_map *maps[] = {&r->computations, &r->ops, &r->op_names, &r->computation_names, &r->wrapped};
  for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) base_map_free(maps[i]);
  BASE_VEC_FREE(r->s.alloc, &r->types);
  BASE_VEC_FREE(r->s.alloc, &r->pointers);
  base_text_free(&r->bytes);
  proto_source_close(&r->s);
}

/* --- what the bytes are --- */

/* What a message holds whose first field is number 1 and has a length; {NULL, 0} for all others. */
static base_slice first_field(base_slice in) {
  const uint8_t *p = (const uint8_t *)in.p;
  uint64_t length = 0;
  size_t at = 1;
  if (in.n < 3 || p[0] != 0x0A) return (base_slice){NULL, 0};
  do length |= (uint64_t)(p[at] & 0x7F) << (7 * (at - 1));
  while (p[at++] >= 0x80 && at < in.n && at < 9);
  if (p[at - 1] >= 0x80 || length > in.n - at) return (base_slice){NULL, 0};
  return (base_slice){in.p + at, (size_t)length};
}

/* A text never begins with a line end, a length, and as many bytes of a name without blanks. */
static bool begins_as_module(base_slice in) {
  base_slice name = first_field(in);
  if (name.n == 0) return false;
  for (size_t i = 0; i < name.n; i++)
    if ((uint8_t)name.p[i] <= ' ' || name.p[i] == 0x7F) return false;
  const char *next = name.p + name.n;
  return next < in.p + in.n && (*next & 7) == PROTO_LENGTH && (uint8_t)*next < 0x20;
}

/* The module's bytes, also of those in which XLA's dumps have it: field 1 of an HloProto (xla_dump_hlo_as_proto), or of
 * the one in an HloSnapshot. {NULL, 0} where there is none. */
static base_slice module_within(base_slice in) {
  for (int wrappers = 0; in.p && wrappers < 3; wrappers++, in = first_field(in))
    if (begins_as_module(in)) return in;
  return (base_slice){NULL, 0};
}

bool text_is_proto(const void *data, size_t n) {
  return module_within((base_slice){data, n}).p != NULL;
}

/* The first message is open for as long as the reader is: its fields are looked at again and again. */
int text_parse_proto(ir_module **out, const void *data, size_t n, const text_parse_options *options, xlac_error *err) {
  base_alloc alloc = options && options->alloc.fn ? options->alloc : base_alloc_libc;
  ir_module *m = NULL;
  proto_reader r;
  TRY(ir_module_create(&m, "_", alloc, err));
  open_reader(&r, m, n ? data : "", n, options, err);
  base_slice within = module_within((base_slice){(const char *)r.s.base, n});
  if (!within.p) within = (base_slice){(const char *)r.s.base, n};
  int status = proto_open(&r.s, (const uint8_t *)within.p, within.n, &r.module);
  if (status == 0) status = proto_read_module(&r);
  assert(status != 0 || (r.s.depth == 1 && r.s.numbers.n == 0 && r.types.n == 0 && r.pointers.n == 0));
  close_reader(&r);
  if (status != 0) {
    ir_module_destroy(m);
    return status;
  }
  *out = m;
  return 0;
}
