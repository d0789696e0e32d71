/* The module header, and the source tables behind it.
 *
 *   HloModule jit_f, is_scheduled=true, input_output_alias={ {0}: (1, {}, may-alias) },
 *       entry_computation_layout={(f32[8]{0})->f32[8]{0}}, num_partitions=2
 * One row of header_attrs for each attribute; each comes at most once. What refers to the entry's result (aliases)
 * can be checked only when the entry has been read: text_check_header. */
#include "read.h"

#include <stdlib.h>

BASE_VEC(header_aliases, ir_alias);
BASE_VEC(header_donors, ir_donor);

/* Tuple indices in lexicographic order, shorter ones first. */
static int compare_paths(const ir_ints *a, const ir_ints *b) {
  for (uint32_t i = 0; i < a->n && i < b->n; i++)
    if (a->v[i] != b->v[i]) return a->v[i] < b->v[i] ? -1 : 1;
  return (a->n > b->n) - (a->n < b->n);
}

/* --- input_output_alias --- */

/* Whether the alias is required ("must-alias") or only allowed. */
static int read_kind(text_reader *r, bool *must) {
  const char *p = r->lx.p, *e = text_name_end(p);
  base_slice word = {p, (size_t)(e - p)};
  *must = base_slice_is(word, "must-alias");
  if (!*must && !base_slice_is(word, "may-alias"))
    return text_expected(r, XLAC_E_BAD_HEADER, "may-alias or must-alias");
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* The alias syntax is easily got wrong, so that every error shows it whole. */
static int expect_alias(text_reader *r, const char *what) {
  int status = text_expected(r, XLAC_E_BAD_HEADER, what);
  return base_hint(r->err, status, "an alias is {output index}: (parameter, {its index}, may-alias)%s",
                   r->strict ? "; shorter forms are read where strict reading is not asked for" : "");
}

/* {0}: (1, {}, may-alias); unless reading is strict also {0}: (1) and {0}: 1 */
static int read_header_alias(text_reader *r, ir_alias *a) {
  *a = (ir_alias){0};
  const char *at = r->lx.p;
  if (*at != '{') return expect_alias(r, "'{' before an output index");
  TRY(text_read_index_path(r, &a->output));
  if (!text_eat(&r->lx, ':')) return expect_alias(r, "':' after an output index");
  at = r->lx.p;
  if (!r->strict && text_is(*at, TEXT_DIGIT)) {
    a->index = ir_ints_make(r->m, 0, NULL);
    return a->index ? text_read_int(r, &a->operand) : text_no_memory(r);
  }
  if (!text_eat(&r->lx, '(')) return expect_alias(r, "'(' before a parameter's number");
  at = r->lx.p;
  TRY(text_read_int(r, &a->operand));
  if (a->operand < 0) return text_fail(r, at, XLAC_E_BAD_HEADER, "a parameter's number is negative");
  if (!text_eat(&r->lx, ',')) {
    if (r->strict || *r->lx.p != ')') return expect_alias(r, "',' and the parameter's index");
    a->index = ir_ints_make(r->m, 0, NULL);
    if (!a->index) return text_no_memory(r);
  } else {
    if (*r->lx.p != '{') return expect_alias(r, "'{' before a parameter's index");
    TRY(text_read_index_path(r, &a->index));
    if (text_eat(&r->lx, ',')) TRY(read_kind(r, &a->must));
  }
  return text_eat(&r->lx, ')') ? 0 : expect_alias(r, "')' after a parameter and its index");
}

/* A comma before the closing brace is taken, as XLA's parser does. */
static int read_aliases(text_reader *r, header_aliases *list) {
  TRY(text_want(r, '{', "before input_output_alias entries"));
  while (*r->lx.p != '}') {
    ir_alias a;
    TRY(read_header_alias(r, &a));
    if (!BASE_VEC_PUSH(r->alloc, list, a)) return text_no_memory(r);
    if (!text_eat(&r->lx, ',')) break;
  }
  return text_want(r, '}', "after input_output_alias entries");
}

/* In the order of outputs, which is the order of the print. */
static int compare_aliases(const void *a, const void *b) {
  return compare_paths(((const ir_alias *)a)->output, ((const ir_alias *)b)->output);
}

/* Of several entries for one output the first counts, as in XLA. Sorted by output, as XLA's ShapeTree prints them. */
static int keep_aliases(text_reader *r, header_aliases *list) {
  ir_config *c = &r->m->config;
  assert(c->n_aliases == 0);
  ir_alias *kept = BASE_ARRAY(&r->m->arena, ir_alias, (size_t)list->n + 1),
           *scratch = base_malloc(r->alloc, ((size_t)list->n + 1) * sizeof *scratch);
  if (kept && scratch) {
    /* A stable sort by merging runs: qsort may reorder equals. */
    ir_alias *from = list->items, *to = scratch;
    for (size_t width = 1; width < list->n; width *= 2) {
      for (size_t lo = 0; lo < list->n; lo += 2 * width) {
        size_t mid = lo + width < list->n ? lo + width : list->n, hi = mid + width < list->n ? mid + width : list->n;
        for (size_t i = lo, j = mid, k = lo; k < hi; k++)
          to[k] = i < mid && (j >= hi || compare_aliases(&from[i], &from[j]) <= 0) ? from[i++] : from[j++];
      }
      ir_alias *swap = from;
      from = to;
      to = swap;
    }
    for (uint32_t i = 0; i < list->n; i++)
      if (c->n_aliases == 0 || compare_aliases(&kept[c->n_aliases - 1], &from[i]) != 0) kept[c->n_aliases++] = from[i];
    c->aliases = kept;
  }
  base_free(r->alloc, scratch);
  return kept && scratch ? 0 : text_no_memory(r);
}

/* The list is on the heap while it grows; it is freed on every way out. */
static int read_alias_attr(text_reader *r) {
  header_aliases list = {0};
  r->aliases_at = r->lx.p;
  int status = read_aliases(r, &list);
  if (status == 0) status = keep_aliases(r, &list);
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}

/* --- buffer_donor --- */

/* Says what is missing and how a donor is written. */
static int expect_donor(text_reader *r, const char *what) {
  int status = text_expected(r, XLAC_E_BAD_HEADER, what);
  return base_hint(r->err, status, "a donor is (parameter, {its index})");
}

/*   { (0, {}), (1, {0}) } */
static int read_donors(text_reader *r, header_donors *list) {
  TRY(text_want(r, '{', "before buffer_donor entries"));
  while (*r->lx.p != '}') {
    ir_donor d = {0};
    if (!text_eat(&r->lx, '(')) return expect_donor(r, "'(' before a donor");
    TRY(text_read_int(r, &d.parameter));
    if (!text_eat(&r->lx, ',') || *r->lx.p != '{') return expect_donor(r, "',' and the parameter's index");
    TRY(text_read_index_path(r, &d.index));
    if (!text_eat(&r->lx, ')')) return expect_donor(r, "')' after a donor");
    if (!BASE_VEC_PUSH(r->alloc, list, d)) return text_no_memory(r);
    if (!text_eat(&r->lx, ',')) break;
  }
  return text_want(r, '}', "after buffer_donor entries");
}

/* By parameter, then by path within it. */
static int compare_donors(const void *a, const void *b) {
  const ir_donor *x = a, *y = b;
  if (x->parameter != y->parameter) return x->parameter < y->parameter ? -1 : 1;
  return compare_paths(x->index, y->index);
}

/* Sorted by parameter and index; entries that come again are dropped. XLA keeps donors in an ordered set. */
static int read_donor_attr(text_reader *r) {
  header_donors list = {0};
  ir_config *c = &r->m->config;
  int status = read_donors(r, &list);
  assert(c->n_donors == 0);
  ir_donor *kept = status ? NULL : BASE_ARRAY(&r->m->arena, ir_donor, (size_t)list.n + 1);
  if (status == 0 && !kept) status = text_no_memory(r);
  if (kept && list.n) qsort(list.items, list.n, sizeof *list.items, compare_donors);
  for (uint32_t i = 0; kept && i < list.n; i++)
    if (c->n_donors == 0 || compare_donors(&kept[c->n_donors - 1], &list.items[i]) != 0)
      kept[c->n_donors++] = list.items[i];
  c->donors = kept;
  BASE_VEC_FREE(r->alloc, &list);
  return status;
}

/* --- entry_computation_layout --- */

/* {(f32[2]{0}, s32[])->f32[2]{0}}: only the entry's outer types, with layouts that may differ from those of its ops. */
static int read_entry_layout(text_reader *r) {
  ir_config *c = &r->m->config;
  uint32_t first = r->types.n;
  TRY(text_want(r, '{', "before an entry layout"));
  TRY(text_want(r, '(', "before the entry's parameter shapes"));
  while (*r->lx.p != ')') {
    const ir_type *t;
    TRY(text_read_type(r, &t));
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return text_no_memory(r);
    if (*r->lx.p != ')') TRY(text_want(r, ',', "between the entry's parameter shapes"));
  }
  text_eat(&r->lx, ')');
  if (r->lx.p[0] != '-' || r->lx.p[1] != '>')
    return text_expected(r, XLAC_E_BAD_HEADER, "'->' and the entry's result shape");
  r->lx.p += 2;
  text_skip(&r->lx);
  TRY(text_read_type(r, &c->entry_result));
  assert(r->types.n >= first && c->entry_result);
  c->n_entry_params = r->types.n - first;
  c->entry_params = BASE_ARRAY(&r->m->arena, const ir_type *, (size_t)c->n_entry_params + 1);
  if (!c->entry_params) return text_no_memory(r);
  if (c->n_entry_params) memcpy(c->entry_params, r->types.items + first, c->n_entry_params * sizeof *c->entry_params);
  r->types.n = first;
  c->has_entry_layout = true;
  return text_want(r, '}', "after an entry layout");
}

/* --- the rest --- */

/* true, or {true,false} */
static int read_bool_list(text_reader *r, const ir_ints **out) {
  uint32_t first = r->ints.n;
  bool list = text_eat(&r->lx, '{'), v;
  while (!list || *r->lx.p != '}') {
    TRY(text_read_bool(r, &v));
    TRY(text_push_int(r, v));
    if (!list || !text_eat(&r->lx, ',')) break;
  }
  if (list) TRY(text_want(r, '}', "after a list of true and false"));
  *out = text_make_ints(r, first);
  return *out ? 0 : text_no_memory(r);
}

/* XLA reads a bool here and keeps it; false is the same as nothing and is not kept. */
static int read_passthrough(text_reader *r) {
  bool v;
  int64_t one = 1;
  TRY(text_read_bool(r, &v));
  if (!v) return 0;
  r->m->config.alias_passthrough_params = ir_ints_make(r->m, 1, &one);
  return r->m->config.alias_passthrough_params ? 0 : text_no_memory(r);
}

/* Attributes that are one value each. */
static int read_scheduled(text_reader *r) {
  return text_read_bool(r, &r->m->config.is_scheduled);
}
/* One reader for each key of the header. */
static int read_replicas(text_reader *r) {
  return text_read_int(r, &r->m->config.replica_count);
}
static int read_partitions(text_reader *r) {
  return text_read_int(r, &r->m->config.num_partitions);
}
static int read_spmd_parameters(text_reader *r) {
  return read_bool_list(r, &r->m->config.spmd_to_parameters);
}
static int read_spmd_output(text_reader *r) {
  return read_bool_list(r, &r->m->config.spmd_to_output);
}
static int read_module_dict(text_reader *r) {
  return text_read_dict(r, &r->m->config.frontend_attributes);
}
static int read_recovery(text_reader *r) {
  return text_read_recovery_table(r, &r->m->config.origin_recovery_table);
}

static const struct {
  const char *name;
  int (*read)(text_reader *r);
} header_attrs[] = {{"is_scheduled", read_scheduled},
                    {"input_output_alias", read_alias_attr},
                    {"buffer_donor", read_donor_attr},
                    {"alias_passthrough_params", read_passthrough},
                    {"entry_computation_layout", read_entry_layout},
                    {"allow_spmd_sharding_propagation_to_parameters", read_spmd_parameters},
                    {"allow_spmd_sharding_propagation_to_output", read_spmd_output},
                    {"replica_count", read_replicas},
                    {"num_partitions", read_partitions},
                    {"frontend_attributes", read_module_dict},
                    {"origin_recovery_table", read_recovery}};
/* Few enough to look through for each key. */
enum { N_HEADER_ATTRS = sizeof header_attrs / sizeof *header_attrs };

/* `seen` has a bit for each row of header_attrs. */
static int read_header_attr(text_reader *r, uint32_t *seen) {
  const char *at;
  base_slice key;
  TRY(text_read_key(r, &at, &key));
  uint32_t i = 0;
  while (i < N_HEADER_ATTRS && !base_slice_is(key, header_attrs[i].name)) i++;
  if (i == N_HEADER_ATTRS) {
    int status =
        text_fail(r, at, XLAC_E_BAD_HEADER, "a module has no attribute '%.*s'", (int)(key.n < 60 ? key.n : 60), key.p);
    char all[240] = "";
    for (i = 0; i < N_HEADER_ATTRS; i++) text_append_word(all, sizeof all, header_attrs[i].name);
    return base_hint(r->err, status, "it may have %s", all);
  }
  if (*seen >> i & 1) return text_fail(r, at, XLAC_E_BAD_HEADER, "attribute '%s' is given twice", header_attrs[i].name);
  *seen |= 1u << i;
  assert(i < N_HEADER_ATTRS && header_attrs[i].read);
  return header_attrs[i].read(r);
}

/* The cursor is on the word HloModule. */
int text_read_header(text_reader *r) {
  text_symbol *name;
  uint32_t seen = 0;
  r->lx.p += strlen("HloModule");
  text_skip(&r->lx);
  TRY(text_read_name(r, "the module's name", &name));
  r->m->name = name->name;
  while (text_eat(&r->lx, ',')) TRY(read_header_attr(r, &seen));
  return 0;
}

/* XLA's verifier checks the rest (parameters that exist, shapes that agree), and so does ours. */
int text_check_header(text_reader *r) {
  const ir_config *c = &r->m->config;
  const ir_type *result = ir_root(r->m->entry)->type;
  for (uint32_t i = 0; i < c->n_aliases; i++) {
    const ir_ints *path = c->aliases[i].output;
    if (ir_type_at(result, path->v, path->n)) continue;
    char found[200];
    return text_fail(r, r->aliases_at, XLAC_E_BAD_HEADER,
                     "input_output_alias entry %u names an output that %s does not have", i,
                     ir_type_text(result, found, sizeof found));
  }
  return 0;
}

/* ---- Source tables: FileNames, FunctionNames, FileLocations, StackFrames. Row numbers are read past: rows count
 * from 1. */

/* The tables end where the next computation begins, which may have one of these words as its name: then '=' or ':'
 * or a brace follows it. */
static bool eat_word(text_reader *r, const char *word) {
  const char *p = r->lx.p, *e = text_name_end(p);
  if ((size_t)(e - p) != strlen(word) || memcmp(p, word, (size_t)(e - p)) != 0 || *e == '=' || *e == ':') return false;
  r->lx.p = e;
  text_skip(&r->lx);
  return true;
}

/* Takes a row's number if one is next. */
static int eat_row(text_reader *r, bool *row) {
  int64_t number;
  *row = text_is(*r->lx.p, TEXT_DIGIT);
  return *row ? text_read_int(r, &number) : 0;
}

/* 1 "a.py" 2 "b.py": names in the order of their rows, taken off r->pointers. */
static int read_names(text_reader *r, uint32_t *n, const base_istr ***out) {
  uint32_t first = r->pointers.n;
  for (;;) {
    bool row;
    const base_istr *name;
    TRY(eat_row(r, &row));
    if (!row) break;
    TRY(text_read_string(r, &name));
    if (!BASE_VEC_PUSH(r->alloc, &r->pointers, (const void *)name)) return text_no_memory(r);
  }
  assert(r->pointers.n >= first);
  *n = r->pointers.n - first;
  *out = BASE_ARRAY(&r->m->arena, const base_istr *, (size_t)*n + 1);
  if (!*out) return text_no_memory(r);
  for (uint32_t i = 0; i < *n; i++) (*out)[i] = r->pointers.items[first + i];
  r->pointers.n = first;
  return 0;
}

enum { MAX_FIELDS = 6 };

/* {a=1 b=2}: each of the n names once, values into v. Fields come in any order, separated by blanks or commas, but
 * all of them must come. */
static int read_fields(text_reader *r, const char *const *names, uint32_t n, int64_t *v) {
  const char *open = r->lx.p;
  uint32_t seen = 0;
  assert(n <= MAX_FIELDS);
  TRY(text_want(r, '{', "before a table row"));
  while (*r->lx.p != '}') {
    const char *at;
    base_slice key;
    text_eat(&r->lx, ',');
    TRY(text_read_key(r, &at, &key));
    uint32_t f = 0;
    while (f < n && !base_slice_is(key, names[f])) f++;
    if (f == n || (seen >> f & 1))
      return text_fail(r, at, XLAC_E_BAD_HEADER, "an unknown or repeated field in a table row");
    seen |= 1u << f;
    const char *value_at = r->lx.p;
    TRY(text_read_int(r, &v[f]));
    if (v[f] != (int32_t)v[f])
      return text_fail(r, value_at, XLAC_E_BAD_HEADER, "%lld is beyond 32 bits", (long long)v[f]);
  }
  text_eat(&r->lx, '}');
  for (uint32_t f = 0; f < n; f++)
    if (!(seen >> f & 1)) return text_fail(r, open, XLAC_E_BAD_HEADER, "a table row lacks '%s'", names[f]);
  return 0;
}

/* Rows of n fields each, pushed on r->ints. */
static int read_rows(text_reader *r, const char *const *names, uint32_t n, uint32_t *first, uint32_t *rows) {
  *first = r->ints.n;
  for (*rows = 0;; ++*rows) {
    bool row;
    int64_t v[MAX_FIELDS];
    TRY(eat_row(r, &row));
    if (!row) return 0;
    TRY(read_fields(r, names, n, v));
    for (uint32_t f = 0; f < n; f++) TRY(text_push_int(r, v[f]));
  }
}

/* A row's number, or 0 where it names no row: XLA ignores such references, and rows count from 1. */
static uint32_t row_or_none(int64_t v, uint32_t n) {
  return v > 0 && v <= n ? (uint32_t)v : 0;
}

/* A location refers to the names above it, whose counts are known by now. */
static int read_locations(text_reader *r, ir_source_tables *t) {
  static const char *const names[] = {"file_name_id", "function_name_id", "line", "end_line", "column", "end_column"};
  uint32_t first;
  TRY(read_rows(r, names, 6, &first, &t->n_locations));
  t->locations = BASE_ARRAY(&r->m->arena, ir_location, (size_t)t->n_locations + 1);
  if (!t->locations) return text_no_memory(r);
  for (uint32_t i = 0; i < t->n_locations; i++) {
    const int64_t *v = r->ints.items + first + 6 * (size_t)i;
    t->locations[i] =
        (ir_location){row_or_none(v[0], t->n_files), row_or_none(v[1], t->n_functions), v[2], v[3], v[4], v[5]};
  }
  r->ints.n = first;
  return 0;
}

/* The text counts parents from 1 for none: parent_frame_id=k is row k - 1. Here a frame without parent is its own. */
static int read_frames(text_reader *r, ir_source_tables *t) {
  static const char *const names[] = {"file_location_id", "parent_frame_id"};
  uint32_t first;
  TRY(read_rows(r, names, 2, &first, &t->n_frames));
  t->frames = BASE_ARRAY(&r->m->arena, ir_frame, (size_t)t->n_frames + 1);
  if (!t->frames) return text_no_memory(r);
  for (uint32_t i = 0; i < t->n_frames; i++) {
    const int64_t *v = r->ints.items + first + 2 * (size_t)i;
    uint32_t parent = row_or_none(v[1] - 1, t->n_frames);
    t->frames[i] = (ir_frame){row_or_none(v[0], t->n_locations), parent ? parent : i + 1};
  }
  r->ints.n = first;
  return 0;
}

/* A chain of parents must end: whoever follows one would not. Each frame is entered once: paths that reach one that
 * is known to end stop there, so that this is linear. */
static int check_frames(text_reader *r, const ir_source_tables *t, const char *at) {
  uint8_t *state = base_arena_zalloc(&r->scratch, (size_t)t->n_frames + 1); /* 0 new, 1 on the path, 2 ends */
  if (!state) return text_no_memory(r);
  for (uint32_t i = 0; i < t->n_frames; i++) {
    uint32_t f = i;
    while (state[f] == 0 && t->frames[f].parent != f + 1) {
      state[f] = 1;
      f = t->frames[f].parent - 1;
    }
    assert(f < t->n_frames);
    if (state[f] == 1) return text_fail(r, at, XLAC_E_BAD_HEADER, "stack frame %u is its own ancestor", f + 1);
    for (uint32_t g = i; state[g] == 1; g = t->frames[g].parent - 1) state[g] = 2;
    state[f] = 2;
  }
  return 0;
}

/* All four tables or none: XLA prints them together. */
int text_read_tables(text_reader *r) {
  ir_source_tables *t = &r->m->sources;
  if (!eat_word(r, "FileNames")) return 0;
  TRY(read_names(r, &t->n_files, &t->files));
  if (!eat_word(r, "FunctionNames")) return text_expected(r, XLAC_E_BAD_HEADER, "FunctionNames");
  TRY(read_names(r, &t->n_functions, &t->functions));
  if (!eat_word(r, "FileLocations")) return text_expected(r, XLAC_E_BAD_HEADER, "FileLocations");
  TRY(read_locations(r, t));
  const char *at = r->lx.p;
  if (!eat_word(r, "StackFrames")) return text_expected(r, XLAC_E_BAD_HEADER, "StackFrames");
  TRY(read_frames(r, t));
  return check_frames(r, t, at);
}
