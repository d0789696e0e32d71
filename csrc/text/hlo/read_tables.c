/* Source tables: FileNames, FunctionNames, FileLocations, StackFrames. Row numbers are read past: rows count from 1. */
#include "read.h"

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

/* {a=1 b=2}: each of the n names once, values into v. */
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

static uint32_t row_or_none(int64_t v, uint32_t n) {
  return v > 0 && v <= n ? (uint32_t)v : 0;
}

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

/* A chain of parents must end: whoever follows one would not. */
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
