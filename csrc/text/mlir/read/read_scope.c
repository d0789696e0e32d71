/* What the reader remembers: names of values while their region is read, and texts that were read before.
 *
 * Most names are numbers, and for these a table by number takes the place of interning and hashing. A name's entries
 * form a chain from the newest to the one that it hides; leaving a region unlinks the newest ones. A region isolated
 * from above sees only entries after its own mark. */
#include "read.h"

/* ---- What the reader remembers: programs say the same types, lists and constants thousands of times, and types and
 * attributes never change, so that ops can share them. */

/* Longer texts are rarely said twice. */
enum { MLIR_MEMO_TEXT = 64 };

/* The text is its own key, in the reader's copy. It must end with a bracket, so that no longer text can begin with
 * it. */
const void *mlir_recall(mlir_reader *r, mlir_memo_kind kind, base_slice text, mlir_memo **place) {
  *place = NULL;
  if (text.n == 0 || text.n > MLIR_MEMO_TEXT) return NULL;
  uint32_t hash = base_hash(text.p, text.n) + (uint32_t)kind * 0x9E3779B9u;
  mlir_memo *m = &r->memos[(hash ^ hash >> 16) % MLIR_MEMOS];
  *place = m;
  if (m->kind == kind && m->text.n == text.n && memcmp(m->text.p, text.p, text.n) == 0) return m->what;
  return NULL;
}

/* Nothing is kept where reading went further than the text that was looked at, comments and blanks aside. */
void mlir_remember(mlir_reader *r, mlir_memo *place, mlir_memo_kind kind, base_slice text, const void *what) {
  assert(what);
  text_lexer end = r->lx;
  end.p = text.p + text.n;
  if (!place || end.p > r->lx.p) return;
  text_skip(&end);
  if (end.p == r->lx.p) *place = (mlir_memo){text, what, kind};
}

/* Past a piece of text that was recalled instead of read. */
void mlir_pass(mlir_reader *r, base_slice text) {
  assert(text.p == r->lx.p && text.n > 0);
  r->lx.p = text.p + text.n;
  text_skip(&r->lx);
}

/* The end of the run of plain bytes at p; no further than a memo goes. */
static const char *mlir_plain_end(const char *p, const char *more) {
  const char *e = p;
  while (e - p < MLIR_MEMO_TEXT && (text_is(*e, TEXT_NAME) || (*e && strchr(more, *e)))) e++;
  return e;
}

/*   [1, 2]   but not   [[1], [2]] */
base_slice mlir_list_text(const mlir_reader *r) {
  const char *p = r->lx.p;
  if (*p != '[') return (base_slice){0};
  const char *e = mlir_plain_end(p + 1, ", ");
  return *e == ']' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

/*   <[1, 2]> : tensor<2xi32>   but not   <"0x00"> : ... */
base_slice mlir_dense_text(const mlir_reader *r) {
  static const char between[] = " : tensor<";
  const char *p = r->lx.p;
  if (*p != '<') return (base_slice){0};
  const char *e = mlir_plain_end(p + 1, "[], ()+");
  if (*e != '>' || strncmp(e + 1, between, sizeof between - 1) != 0) return (base_slice){0};
  e = mlir_plain_end(e + sizeof between, "");
  return *e == '>' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

/* --- the same entries --- */

/* Keys and values are interned, so that pointers can be compared. */
static bool mlir_same_entries(const mlir_entries_memo *m, uint32_t n, const ir_mentry *e) {
  for (uint32_t i = 0; i < n; i++)
    if (m->entries[i].key != e[i].key || m->entries[i].value != e[i].value) return false;
  return m->n == n;
}

/* The slot for these entries, with what was made of them, if it was; NULL for more entries than a slot holds. */
mlir_entries_memo *mlir_recall_entries(mlir_reader *r, mlir_memo_kind kind, uint32_t n, const ir_mentry *e) {
  assert(e || n == 0);
  if (n == 0 || n > MLIR_MEMO_ENTRIES) return NULL;
  uint64_t hash = kind;
  for (uint32_t i = 0; i < n; i++) hash = (hash ^ base_key(e[i].key) ^ base_key(e[i].value) << 1) * 0x9E3779B97F4A7C15u;
  mlir_entries_memo *m = &r->entries_memos[(hash >> 32) % MLIR_ENTRIES_MEMOS];
  if (m->kind == kind && mlir_same_entries(m, n, e)) return m;
  *m = (mlir_entries_memo){.kind = kind, .n = n};
  memcpy(m->entries, e, n * sizeof *e);
  return m;
}

enum { MLIR_NO_NUMBER = UINT32_MAX };

/* What a name says as a number, where the table by number is to hold it: "0", "17", not "017". Larger ones than a text
 * of this size would count up to are names like others. */
static uint32_t mlir_number_of(const mlir_reader *r, const char *p, size_t n) {
  uint32_t v = 0;
  if (n == 0 || n > 9 || (n > 1 && *p == '0')) return MLIR_NO_NUMBER;
  for (size_t i = 0; i < n; i++) {
    if (!text_is(p[i], TEXT_DIGIT)) return MLIR_NO_NUMBER;
    v = v * 10 + (uint32_t)(p[i] - '0');
  }
  return v < (size_t)(r->lx.end - r->lx.text) ? v : MLIR_NO_NUMBER;
}

/* The newest entry of a name, from 1; 0 for none. */
static uint32_t mlir_newest(const mlir_reader *r, uint32_t number, const base_istr *name) {
  uint64_t at = 0;
  if (number != MLIR_NO_NUMBER) return number < r->by_number.n ? r->by_number.items[number] : 0;
  return name && base_map_get(&r->by_name, base_key(name), &at) ? (uint32_t)at : 0;
}

/* The table grows to the largest number that was used, which mlir_number_of bounds by the length of the text. */
static bool mlir_set_newest(mlir_reader *r, uint32_t number, const base_istr *name, uint32_t at) {
  mlir_numbers *t = &r->by_number;
  if (number == MLIR_NO_NUMBER) return base_map_set(&r->by_name, base_key(name), at);
  if (number >= t->n) {
    if (!BASE_VEC_RESERVE(r->alloc, t, (size_t)number + 1)) return false;
    memset(t->items + t->n, 0, (t->cap - t->n) * sizeof *t->items);
    t->n = t->cap;
  }
  t->items[number] = at;
  return true;
}

/* Redefining a name that is visible is an error; one hidden by isolation is only hidden. */
int mlir_bind(mlir_reader *r, const char *at, const base_istr *name, ir_op *op, uint32_t index, uint32_t count) {
  assert(op && count > 0);
  uint32_t number = mlir_number_of(r, name->s, name->n);
  assert(index + count <= UINT16_MAX); /* as many as an op has results */
  mlir_name n = {name, op, (uint16_t)index, (uint16_t)count, mlir_newest(r, number, name)};
  if (n.hidden > r->isolated_at)
    return mlir_fail(r, at, XLAC_E_DUPLICATE_NAME, "redefinition of SSA value '%%%s'", name->s);
  if (!BASE_VEC_PUSH(r->alloc, &r->names, n)) return mlir_no_memory(r);
  return mlir_set_newest(r, number, name, r->names.n) ? 0 : mlir_no_memory(r);
}

/* Drops entries down to `mark`, each making the one that it hid the newest again. */
void mlir_unbind(mlir_reader *r, uint32_t mark) {
  while (r->names.n > mark) {
    mlir_name *n = &r->names.items[--r->names.n];
    /* The name is there already, so setting it can't fail. */
    bool set = mlir_set_newest(r, mlir_number_of(r, n->name->s, n->name->n), n->name, n->hidden);
    assert(set);
    (void)set;
  }
}

/* The text of "%name" without its '%', taken. */
static int mlir_take_value_name(mlir_reader *r, base_slice *out) {
  if (*r->lx.p != '%') return mlir_expected(r, "a value such as %0");
  const char *p = r->lx.p + 1, *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$') e++;
  if (e == p) return mlir_expected(r, "a value such as %0");
  if (e[-1] == '-') e--; /* "%0->" */
  *out = (base_slice){p, (size_t)(e - p)};
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/*   %name */
int mlir_read_value_name(mlir_reader *r, const base_istr **out) {
  base_slice name;
  TRY(mlir_take_value_name(r, &name));
  *out = ir_intern(r->m, name.p, name.n);
  return *out ? 0 : mlir_no_memory(r);
}

/* NULL for no entry, and for one from outside of an isolated region. */
static const mlir_name *mlir_visible(const mlir_reader *r, uint32_t at) {
  assert(at <= r->names.n);
  return at > r->isolated_at ? &r->names.items[at - 1] : NULL;
}

/* Names that are numbers are found by the number, others by their text. */
const mlir_name *mlir_find_value(const mlir_reader *r, base_slice name) {
  uint32_t number = mlir_number_of(r, name.p, name.n);
  const base_istr *s = number == MLIR_NO_NUMBER ? base_intern_find(&r->m->strings, name.p, name.n) : NULL;
  return mlir_visible(r, mlir_newest(r, number, s));
}

/* "%x" of a pack "%x:2" is its first result. */
int mlir_read_operand(mlir_reader *r) {
  const char *at = r->lx.p;
  base_slice name;
  TRY(mlir_take_value_name(r, &name));
  int64_t index = 0;
  if (*r->lx.p == '#' && text_is(r->lx.p[1], TEXT_DIGIT)) {
    r->lx.p++;
    TRY(mlir_read_int(r, &index));
  }
  const mlir_name *n = mlir_find_value(r, name);
  int shown = name.n < 100 ? (int)name.n : 100;
  if (!n) return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "use of undeclared SSA value name '%%%.*s'", shown, name.p);
  if (index < 0 || index >= n->count)
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "reference to invalid result number: %%%.*s has %u", shown, name.p,
                     n->count);
  ir_value v = {n->first, n->index + (uint32_t)index};
  return BASE_VEC_PUSH(r->alloc, &r->values, v) ? 0 : mlir_no_memory(r);
}
