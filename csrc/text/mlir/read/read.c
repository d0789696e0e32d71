/* MLIR text into a module: the driver, and the small tokens that all parts share.
 *
 *   module @jit_f attributes {mhlo.num_partitions = 1 : i32} {
 *     func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> { ... return %0 : tensor<8xf32> }
 *   }
 *   #loc1 = loc("f.py":1:2)
 * Scanning is HLO's lexer, whose comments and strings MLIR shares; words here may have '$' and end before '-'.
 * Errors say what MLIR's own parser says wherever tests of StableHLO compare messages. */
#include "read.h"

#include <stdio.h>

/* --- errors --- */

/* The message is formatted before the place is looked up: an argument may lie in the error record. */
int mlir_fail(mlir_reader *r, const char *at, base_code code, const char *format, ...) {
  assert(r->err == NULL || code != 0);
  char message[400];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  uint32_t line, col;
  text_where(&r->lx, at, &line, &col);
  return base_fail_at(r->err, code, line, col, "", "%s", message);
}

/* A few bytes of what is at the cursor, for messages. */
static int mlir_found_bytes(const mlir_reader *r) {
  int n = 0;
  while (n < 24 && r->lx.p + n < r->lx.end && r->lx.p[n] != '\n') n++;
  return n;
}

/*   expected 'to', found 'from'
 *
 * What is found is cut to a few bytes. */
int mlir_expected(mlir_reader *r, const char *what) {
  if (r->lx.p >= r->lx.end) return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "expected %s, found the end of the text", what);
  return mlir_fail(r, r->lx.p, XLAC_E_SYNTAX, "expected %s, found '%.*s'", what, mlir_found_bytes(r), r->lx.p);
}

/* All that reads MLIR text says it in these words. */
int mlir_no_memory(mlir_reader *r) {
  return base_oom(r->err, "reading MLIR text");
}

/* One level deeper; mlir_leave takes it back on success. After an error the depth no longer matters. */
int mlir_enter(mlir_reader *r, const char *at) {
  if (++r->depth <= r->max_depth) return 0;
  return mlir_fail(r, at, XLAC_E_TOO_DEEP, "nesting deeper than %u", r->max_depth);
}

/* --- tokens --- */

/* Punctuation of several bytes, such as "->" or "::", has no blanks inside. */
bool mlir_eat(mlir_reader *r, const char *punctuation) {
  assert(*punctuation);
  const char *p = r->lx.p;
  for (; *punctuation; punctuation++, p++)
    if (*p != *punctuation) return false;
  r->lx.p = p;
  text_skip(&r->lx);
  return true;
}

/* Where something is missing at the cursor: at the end of the line before when what is there begins a line. That is
 * where MLIR's parser points: behind the last token, not at the next one. */
static const char *mlir_missing_at(const mlir_reader *r) {
  const char *p = r->lx.p;
  bool newline = false;
  while (p > r->lx.text && text_is(p[-1], TEXT_SPACE)) newline = *--p == '\n' || newline;
  return newline && p > r->lx.text ? p : r->lx.p;
}

/* `punctuation` of one or two characters: "(", "->". */
int mlir_want(mlir_reader *r, const char *punctuation) {
  if (mlir_eat(r, punctuation)) return 0;
  if (r->lx.p >= r->lx.end)
    return mlir_fail(r, mlir_missing_at(r), XLAC_E_SYNTAX, "expected '%s', found the end of the text", punctuation);
  return mlir_fail(r, mlir_missing_at(r), XLAC_E_SYNTAX, "expected '%s', found '%.*s'", punctuation,
                   mlir_found_bytes(r), r->lx.p);
}

/* Bare identifiers: letters, digits, '_', '.', '$'. */
static inline bool mlir_is_word_byte(char c) {
  return (text_is(c, TEXT_NAME) && c != '-') || c == '$';
}

/* A hyphen is not part of words here, but of names behind '@'. Shapes (2x3xf32) are read byte by byte elsewhere. */
base_slice mlir_word(const mlir_reader *r) {
  const char *e = r->lx.p;
  while (mlir_is_word_byte(*e)) e++;
  return (base_slice){r->lx.p, (size_t)(e - r->lx.p)};
}

/* Past a word that mlir_word found here. */
void mlir_skip_word(mlir_reader *r, base_slice word) {
  assert(word.p == r->lx.p);
  r->lx.p += word.n;
  text_skip(&r->lx);
}

/* Only a whole word: "loc" is not eaten of "location". */
bool mlir_eat_word(mlir_reader *r, const char *word) {
  base_slice w = mlir_word(r);
  if (!base_slice_is(w, word)) return false;
  mlir_skip_word(r, w);
  return true;
}

/* A word byte right behind the digits is an error: "3x" is not an integer. */
int mlir_read_int(mlir_reader *r, int64_t *out) {
  const char *p = r->lx.p, *e = base_parse_i64(p, r->lx.end, out);
  if (!e || mlir_is_word_byte(*e)) return mlir_expected(r, "an integer");
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* `word` is a constant of the program, found again by its address without looking at the bytes. */
const base_istr *mlir_intern_word(mlir_reader *r, const char *word) {
  mlir_key *k = &r->keys[((uintptr_t)word * 0x9E3779B97F4A7C15u) >> 56];
  static_assert(MLIR_KEYS == 256, "the hash has 8 bits");
  if (k->word == word) return k->s;
  const base_istr *s = ir_intern(r->m, word, strlen(word));
  if (s) *k = (mlir_key){word, s};
  return s;
}

/* MLIR's escapes: \\ \" \n \t and two hex digits. What follows any other backslash stands for itself. The result is
 * never longer than the source. */
static size_t mlir_unescape(const char *s, const char *e, char *out) {
  size_t n = 0;
  while (s < e) {
    if (*s != '\\' || s + 1 >= e) {
      out[n++] = *s++;
      continue;
    }
    unsigned high = 0, low = 0;
    bool hex = s + 2 < e && sscanf((char[]){s[1], 0}, "%1x", &high) == 1 && sscanf((char[]){s[2], 0}, "%1x", &low) == 1;
    if (hex) {
      out[n++] = (char)(high << 4 | low);
      s += 3;
      continue;
    }
    out[n++] = s[1] == 'n' ? '\n' : s[1] == 't' ? '\t' : s[1];
    s += 2;
  }
  return n;
}

/*   "a\22b\0A" */
int mlir_read_string(mlir_reader *r, const base_istr **out) {
  if (*r->lx.p != '"') return mlir_expected(r, "a string");
  const char *p = r->lx.p, *e = text_string_end(&r->lx, p);
  if (!e) return mlir_fail(r, p, XLAC_E_SYNTAX, "a string that never ends");
  size_t n = (size_t)(e - p) - 2;
  if (!memchr(p + 1, '\\', n)) {
    *out = ir_intern(r->m, p + 1, n);
  } else {
    char *plain = base_malloc(r->alloc, n);
    *out = plain ? ir_intern(r->m, plain, mlir_unescape(p + 1, e - 1, plain)) : NULL;
    base_free(r->alloc, plain);
  }
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : mlir_no_memory(r);
}

/* @main, @"any characters"; a bare name may contain '-' but does not take the arrow behind it. */
int mlir_read_symbol_name(mlir_reader *r, const base_istr **out) {
  if (*r->lx.p != '@') return mlir_expected(r, "a symbol name such as @main");
  r->lx.p++;
  if (*r->lx.p == '"') return mlir_read_string(r, out);
  const char *p = r->lx.p, *e = p;
  while (mlir_is_word_byte(*e) || *e == '-') e++;
  if (e == p) return mlir_expected(r, "a name after @");
  if (e[-1] == '-' && *e == '>') e--; /* @f->... */
  *out = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : mlir_no_memory(r);
}

/*   [1, 2, 3]: onto r->ints, from *from on */
int mlir_read_dims(mlir_reader *r, uint32_t *from) {
  *from = r->ints.n;
  TRY(mlir_want(r, "["));
  if (mlir_eat(r, "]")) return 0;
  do {
    int64_t v;
    TRY(mlir_read_int(r, &v));
    if (!BASE_VEC_PUSH(r->alloc, &r->ints, v)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  return mlir_want(r, "]");
}

/* '>' of an arrow is not a bracket. The four kinds of brackets nest properly or there is no end. */
const char *mlir_balanced_end(const mlir_reader *r, const char *p) {
  assert(*p == '<' || *p == '(' || *p == '[' || *p == '{');
  char closing[MLIR_MAX_DEPTH];
  uint32_t open = 0;
  for (; p < r->lx.end; p++) {
    if (*p == '"') {
      if (!(p = text_string_end(&r->lx, p))) return NULL;
      p--;
    } else if (*p == '<' || *p == '(' || *p == '[' || *p == '{') {
      if (open == MLIR_MAX_DEPTH) return NULL;
      closing[open++] = *p == '(' ? ')' : (char)(*p + 2);
    } else if (*p == '>' && p[-1] == '-') {
      continue;
    } else if (*p == '>' || *p == ')' || *p == ']' || *p == '}') {
      if (open == 0 || closing[--open] != *p) return NULL;
      if (open == 0) return p + 1;
    }
  }
  return NULL;
}

/* --- aliases --- */

/* Only a line that begins "#name =" or "!name =" defines one. */
static int mlir_note_alias(mlir_reader *r, const char *p) {
  assert(*p == '#' || *p == '!');
  const char *e = p + 1;
  while (mlir_is_word_byte(*e)) e++;
  const char *v = e;
  while (*v == ' ' || *v == '\t') v++;
  if (e == p + 1 || *v != '=') return 0;
  const base_istr *name = ir_intern(r->m, p + 1, (size_t)(e - p - 1));
  mlir_alias alias = {.value = v + 1};
  base_map *map = *p == '#' ? &r->attr_aliases : &r->type_aliases;
  bool ok = name && BASE_VEC_PUSH(r->alloc, &r->aliases, alias) && base_map_set(map, base_key(name), r->aliases.n - 1);
  return ok ? 0 : mlir_no_memory(r);
}

/* Definitions may follow their uses (locations do), so they are found first: they begin a line. The scan looks at
 * the beginnings of lines only and counts them, which tells how many names there will be. */
static int mlir_find_aliases(mlir_reader *r) {
  uint32_t lines = 0, most = (uint32_t)((size_t)(r->lx.end - r->lx.text) / 32 & UINT32_MAX / 8);
  for (const char *p = r->lx.text; p < r->lx.end; lines++) {
    while (*p == ' ' || *p == '\t') p++;
    if (*p == '#' || *p == '!') TRY(mlir_note_alias(r, p));
    if (p[0] == '{' && p[1] == '-' && p[2] == '#') r->resources = p;
    p = memchr(p, '\n', (size_t)(r->lx.end - p));
    if (!p) break;
    p++;
  }
  /* Most lines name a value. */
  return base_interner_reserve(&r->m->strings, lines < most ? lines : most) ? 0 : mlir_no_memory(r);
}

/* At a definition at module level: past it. Its value is read for its syntax and thrown away; uses read it from the
 * place that was noted. */
static int mlir_skip_alias(mlir_reader *r) {
  assert(*r->lx.p == '#' || *r->lx.p == '!');
  const char *at = r->lx.p;
  bool type = *at == '!';
  r->lx.p++;
  mlir_skip_word(r, mlir_word(r));
  TRY(mlir_want(r, "="));
  const ir_mattr *a;
  const ir_type *t;
  return type ? mlir_read_type(r, &t) : mlir_read_attr(r, &a);
}

/* --- modules --- */

/* A module's own attributes are its name and visibility; all others must belong to a dialect. */
static int mlir_check_module_attrs(mlir_reader *r, const char *at, uint32_t from) {
  for (uint32_t i = from; i < r->entries.n; i++) {
    const base_istr *key = r->entries.items[i].key;
    if (strchr(key->s, '.') || strcmp(key->s, "sym_visibility") == 0 || strcmp(key->s, "sym_name") == 0) continue;
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE,
                     "'builtin.module' op can only contain attributes with dialect-prefixed names, found: '%s'",
                     key->s);
  }
  return 0;
}

/* "module @name attributes {...} {", cursor after "module". */
static int mlir_read_module_head(mlir_reader *r) {
  if (*r->lx.p == '@') {
    TRY(mlir_read_symbol_name(r, &r->m->name));
    r->m->named = true;
  }
  if (mlir_eat_word(r, "attributes")) {
    uint32_t from = r->entries.n;
    const char *at = r->lx.p;
    TRY(mlir_read_entries(r));
    TRY(mlir_check_module_attrs(r, at, from));
    TRY(mlir_take_dict(r, from, &r->m->mlir));
  }
  return mlir_want(r, "{");
}

/* Statements of a module's body up to '}' or the end of the text. */
static int mlir_read_module_body(mlir_reader *r, bool braced) {
  for (;;) {
    if (braced && mlir_eat(r, "}")) return 0;
    if (r->lx.p >= r->lx.end) return braced ? mlir_expected(r, "'}' at the end of the module") : 0;
    if (*r->lx.p == '#' || *r->lx.p == '!') {
      TRY(mlir_skip_alias(r));
    } else if (r->lx.p == r->resources) {
      r->lx.p = r->lx.end;
    } else {
      bool ended = false;
      TRY(mlir_read_statement(r, NULL, &ended));
    }
  }
}

/* "builtin.module"() <{sym_name = "x"}> ({ ... }) {attributes} : () -> () Both lists of attributes become one;
 * sym_name is the module's name, not an attribute. */
static int mlir_read_generic_module(mlir_reader *r) {
  TRY(mlir_want(r, "("));
  TRY(mlir_want(r, ")"));
  uint32_t from = r->entries.n;
  if (mlir_eat(r, "<")) {
    TRY(mlir_read_entries(r));
    TRY(mlir_want(r, ">"));
  }
  TRY(mlir_want(r, "("));
  TRY(mlir_want(r, "{"));
  if (*r->lx.p == '^') {
    r->lx.p++;
    mlir_skip_word(r, mlir_word(r));
    TRY(mlir_want(r, ":"));
  }
  TRY(mlir_read_module_body(r, true));
  TRY(mlir_want(r, ")"));
  if (*r->lx.p == '{') TRY(mlir_read_entries(r));
  TRY(mlir_want(r, ":"));
  TRY(mlir_want(r, "("));
  TRY(mlir_want(r, ")"));
  TRY(mlir_want(r, "->"));
  TRY(mlir_want(r, "("));
  TRY(mlir_want(r, ")"));
  TRY(mlir_check_module_attrs(r, r->lx.p, from));
  for (uint32_t i = from; i < r->entries.n; i++) {
    if (strcmp(r->entries.items[i].key->s, "sym_name") != 0 || r->entries.items[i].value->kind != IR_M_STRING) continue;
    r->m->name = r->entries.items[i].value->str;
    r->m->named = true;
    r->entries.items[i] = r->entries.items[--r->entries.n];
    break;
  }
  return mlir_take_dict(r, from, &r->m->mlir);
}

/* Bare functions without a module around them are taken: they are the body of an unnamed one. */
static int mlir_read_top(mlir_reader *r) {
  text_skip(&r->lx);
  while (*r->lx.p == '#' || *r->lx.p == '!') TRY(mlir_skip_alias(r));
  base_slice w = mlir_word(r);
  bool pretty = base_slice_is(w, "module") || base_slice_is(w, "builtin.module");
  if (pretty) {
    mlir_skip_word(r, w);
    TRY(mlir_read_module_head(r));
    TRY(mlir_read_module_body(r, true));
  }
  bool generic = !pretty && mlir_eat(r, "\"builtin.module\"");
  if (generic) TRY(mlir_read_generic_module(r));
  if (pretty || generic) TRY(mlir_read_trailing_loc(r, &r->m->loc));
  return mlir_read_module_body(r, false);
}

/* The entry is @main, else the first public function, else the first function. */
static void mlir_choose_entry(ir_module *m) {
  ir_computation *best = NULL;
  int rank = 0;
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_FUNCTION) continue;
    const ir_mattr *visibility = ir_mdict_get(c->mlir, "sym_visibility");
    int mine = strcmp(c->name->s, "main") == 0 ? 3 : !visibility ? 2 : 1;
    if (mine > rank) {
      best = c;
      rank = mine;
    }
  }
  m->entry = best ? best : m->first;
}

/* --- the driver --- */

/* A module takes about four times its text. From here on that is worth one huge page, see base/memory.c. */
enum { MLIR_LARGE_TEXT = 128 << 10 };

/* On failure mlir_close_reader need not be called: only the text's copy is allocated here. */
static int mlir_open_reader(mlir_reader *r, const char *text, size_t n, const mlir_parse_options *options,
                            xlac_error *err) {
  memset(r, 0, sizeof *r);
  r->err = err;
  r->alloc = options && options->alloc.fn ? options->alloc : base_alloc_libc;
  r->max_depth = text_depth_limit(options ? options->max_depth : 0);
  r->allow_unregistered = options && options->allow_unregistered;
  base_map_init(&r->by_name, r->alloc);
  base_map_init(&r->attr_aliases, r->alloc);
  base_map_init(&r->type_aliases, r->alloc);
  base_map_init(&r->symbols, r->alloc);
  base_map_init(&r->resource_rows, r->alloc);
  return text_lexer_open(&r->lx, r->alloc, text, n) ? 0 : base_oom(err, "the text");
}

/* The module is not the reader's. */
static void mlir_close_reader(mlir_reader *r) {
  base_alloc alloc = r->alloc;
  text_lexer_close(&r->lx, alloc);
  base_map_free(&r->by_name);
  base_map_free(&r->attr_aliases);
  base_map_free(&r->type_aliases);
  base_map_free(&r->symbols);
  base_map_free(&r->resource_rows);
  BASE_VEC_FREE(alloc, &r->resource_list);
  BASE_VEC_FREE(alloc, &r->names);
  BASE_VEC_FREE(alloc, &r->by_number);
  BASE_VEC_FREE(alloc, &r->aliases);
  BASE_VEC_FREE(alloc, &r->values);
  BASE_VEC_FREE(alloc, &r->types);
  BASE_VEC_FREE(alloc, &r->entries);
  BASE_VEC_FREE(alloc, &r->attrs);
  BASE_VEC_FREE(alloc, &r->regions);
  BASE_VEC_FREE(alloc, &r->ints);
}

/* *out is NULL after a failure. */
int text_parse_mlir(ir_module **out, const char *text, size_t n, const mlir_parse_options *options, xlac_error *err) {
  mlir_reader r;
  *out = NULL;
  int status = mlir_open_reader(&r, text, n, options, err);
  if (status == 0) status = ir_module_create(&r.m, "", r.alloc, err);
  if (status == 0) {
    r.m->form = IR_FORM_MLIR;
    base_arena_foresee(&r.m->arena, n < MLIR_LARGE_TEXT ? n / 2 * 5 : SIZE_MAX); /* at least, of usual programs */
    status = mlir_find_aliases(&r);
  }
  if (status == 0) status = mlir_read_top(&r);
  mlir_close_reader(&r);
  if (status != 0) {
    ir_module_destroy(r.m);
    return status;
  }
  assert(r.depth == 0 && r.names.n == 0 && r.values.n == 0 && r.regions.n == 0);
  mlir_choose_entry(r.m);
  *out = r.m;
  return 0;
}

/* One type or attribute that is the whole text, in a module that exists. */
static int mlir_read_alone(ir_module *m, const char *text, size_t n, const ir_type **type, const ir_mattr **attr,
                           xlac_error *err) {
  mlir_reader r;
  TRY(mlir_open_reader(&r, text, n, NULL, err));
  r.m = m;
  text_skip(&r.lx);
  int status = type ? mlir_read_type(&r, type) : mlir_read_attr(&r, attr);
  if (status == 0 && r.lx.p < r.lx.end) status = mlir_expected(&r, "the end");
  mlir_close_reader(&r);
  return status;
}

/* The whole text must be the type. */
int text_parse_mlir_type(ir_module *m, const char *text, size_t n, const ir_type **out, xlac_error *err) {
  return mlir_read_alone(m, text, n, out, NULL, err);
}

/* The whole text must be the attribute. */
int text_parse_mlir_attr(ir_module *m, const char *text, size_t n, const ir_mattr **out, xlac_error *err) {
  return mlir_read_alone(m, text, n, NULL, out, err);
}
