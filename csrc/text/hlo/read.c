/* The HLO reader's state, its errors, its smallest readers, and the entry points.
 *
 * A reader borrows the module and fills it: types, strings, ops and everything that stays lie in the module's arena;
 * what only reading needs (symbols, stacks, memos) belongs to the reader and goes with text_reader_close. When
 * reading fails the caller destroys the module, so that nothing has to be undone on the way out. The stacks need not
 * be unwound after an error either. */
#include "../../base/number/number.h"
#include "read.h"

#include <stdio.h>

/* A short text can stand for much memory: "f32[1000000000] constant(0)" is 30 bytes. What is not spelled out is
 * charged to a budget of 8 bytes for each byte of text, and at least 64 MiB. */
enum { MIN_BUDGET = 64 << 20, FIRST_STACK = 64 };

/* text_reader_close must follow in any case, also where this fails. */
int text_reader_open(text_reader *r, ir_module *m, base_alloc alloc, const char *text, size_t n,
                     const text_parse_options *options, xlac_error *err) {
  *r = (text_reader){
      .alloc = alloc, .m = m, .err = err, .max_depth = text_depth_limit(options ? options->max_depth : 0)};
  r->strict = options && options->strict;
  r->chlo = options && options->chlo;
  r->halves = options && options->halves;
  r->budget = n > (SIZE_MAX - MIN_BUDGET) / 8 ? SIZE_MAX : n * 8 + MIN_BUDGET;
  base_arena_init(&r->scratch, alloc);
  base_text_init(&r->bytes, alloc);
  base_map_init(&r->chain_starts, alloc);
  base_map_init(&r->wrapped_by, alloc);
  base_map_init(&r->tree_sizes, alloc);
  if (n >= UINT32_MAX) return base_fail(err, XLAC_E_TOO_LARGE, "a text of %zu bytes; at most 4 GiB can be read", n);
  /* Stacks that are never NULL need no special case where a list is empty. */
  if (!text_lexer_open(&r->lx, alloc, text, n) || !BASE_VEC_RESERVE(alloc, &r->ints, FIRST_STACK) ||
      !BASE_VEC_RESERVE(alloc, &r->types, FIRST_STACK))
    return base_oom(err, "the text");
  return 0;
}

/* Frees what the reader owns; the module stays the caller's. */
void text_reader_close(text_reader *r) {
  text_names_close(r);
  text_lexer_close(&r->lx, r->alloc);
  base_free(r->alloc, r->slots);
  base_free(r->alloc, r->memos);
  BASE_VEC_FREE(r->alloc, &r->ops);
  BASE_VEC_FREE(r->alloc, &r->ints);
  BASE_VEC_FREE(r->alloc, &r->types);
  BASE_VEC_FREE(r->alloc, &r->attrs);
  BASE_VEC_FREE(r->alloc, &r->comps);
  BASE_VEC_FREE(r->alloc, &r->hiddens);
  BASE_VEC_FREE(r->alloc, &r->params);
  BASE_VEC_FREE(r->alloc, &r->shardings);
  BASE_VEC_FREE(r->alloc, &r->literals);
  base_free(r->alloc, (void *)r->pointers.items);
  base_text_free(&r->bytes);
  base_map_free(&r->chain_starts);
  base_map_free(&r->wrapped_by);
  base_map_free(&r->tree_sizes);
  base_arena_free(&r->scratch);
}

/* --- errors --- */

/* Formats before asking for the place: an argument may lie in the buffer that the error's own message is written to.
 * The error names the op being read, if any. */
int text_fail(text_reader *r, const char *at, base_code code, const char *format, ...) {
  char message[sizeof r->err->message];
  uint32_t line, col;
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  text_where(&r->lx, at < r->lx.end ? at : r->lx.end, &line, &col);
  return base_fail_at(r->err, code, line, col, r->op_name ? r->op_name->s : "", "%s", message);
}

/* The token at the cursor, for a message: quoted and cut short, bytes that are not plain ASCII as escapes. At most
 * 40 bytes of the token are shown, which leaves room for the last escape, "..." and the quotes. */
static void describe_token(const text_reader *r, char out[64]) {
  const char *p = r->lx.p;
  if (p >= r->lx.end) {
    snprintf(out, 64, "the end of the text");
    return;
  }
  const char *e = text_is(*p, TEXT_NAME) || *p == '%' ? text_name_end(p + 1) : p + 1;
  size_t n = 0;
  out[n++] = '\'';
  for (; p < e && n < 40; p++) {
    unsigned char c = (unsigned char)*p;
    if (c >= ' ' && c < 127) {
      out[n++] = (char)c;
    } else {
      n += (size_t)snprintf(out + n, 8, "\\x%02x", c);
    }
  }
  snprintf(out + n, 64 - n, p < e ? "...'" : "'");
}

/*   expected '(' before the operands, found '%x'
 *
 * A comment that never ends hides all that follows, so it is named instead. */
int text_expected(text_reader *r, base_code code, const char *what) {
  char found[64];
  describe_token(r, found);
  if (r->lx.p < r->lx.end && *r->lx.p == '/' && r->lx.p[1] == '*')
    return text_fail(r, r->lx.p, code, "a comment begins here that never ends");
  return text_fail(r, r->lx.p, code, "expected %s, found %s", what, found);
}

/* For lists in messages; cut where `list` is full. */
void text_append_word(char *list, size_t size, const char *word) {
  size_t n = strlen(list);
  snprintf(list + n, size - n, "%s%s", n ? ", " : "", word);
}

/* All that reads HLO text says it in these words. */
int text_no_memory(text_reader *r) {
  return base_oom(r->err, "the module");
}

/* Counts memory that a short text could ask for without end (a shape of a million elements); the budget grows with
 * the text. */
int text_charge(text_reader *r, const char *at, size_t bytes) {
  if (bytes <= r->budget) {
    r->budget -= bytes;
    return 0;
  }
  return text_fail(r, at, XLAC_E_TOO_LARGE, "this would take %zu bytes more than the text can account for",
                   bytes - r->budget);
}

/* One more level of nesting. The caller takes it back with r->depth-- on success only: an error ends the whole
 * parse. */
int text_deeper(text_reader *r) {
  assert(r->depth <= r->max_depth);
  if (r->depth++ < r->max_depth) return 0;
  return text_fail(r, r->lx.p, XLAC_E_TOO_DEEP, "nesting is deeper than %u levels", r->max_depth);
}

/* --- the smallest readers --- */

/*   expected '(' before the operands */
int text_want(text_reader *r, char c, const char *what) {
  assert(c && r->lx.p <= r->lx.end);
  if (text_eat(&r->lx, c)) return 0;
  char expected[96];
  snprintf(expected, sizeof expected, "'%c' %s", c, what);
  return text_expected(r, XLAC_E_SYNTAX, expected);
}

/* Up to 18 digits can't overflow and are summed on the way; longer ones are read again by base_parse_i64, which
 * checks. A letter or dot right behind the digits is an error here, so that "1e5" and "1.5" are not taken for 1. */
int text_read_int(text_reader *r, int64_t *out) {
  const char *p = r->lx.p;
  bool negative = *p == '-';
  const char *digits = p + negative, *d = digits;
  uint64_t v = 0;
  for (; text_is(*d, TEXT_DIGIT); d++) v = v * 10 + (uint64_t)(*d - '0');
  if (d == digits || text_is(*d, TEXT_ALPHA) || *d == '.') return text_expected(r, XLAC_E_SYNTAX, "an integer");
  if (d - digits <= 18) {
    *out = negative ? -(int64_t)v : (int64_t)v;
  } else if (!base_parse_i64(p, d, out)) {
    return text_fail(r, p, XLAC_E_SYNTAX, "an integer beyond 64 bits: %.*s", (int)(d - p < 40 ? d - p : 40), p);
  }
  r->lx.p = d;
  text_skip(&r->lx);
  return 0;
}

/* The words true and false, and nothing longer. */
int text_read_bool(text_reader *r, bool *out) {
  const char *p = r->lx.p, *e = text_name_end(p);
  bool is_true = e - p == 4 && memcmp(p, "true", 4) == 0;
  if (!is_true && !(e - p == 5 && memcmp(p, "false", 5) == 0)) return text_expected(r, XLAC_E_SYNTAX, "true or false");
  *out = is_true;
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

/* Takes inf, nan and their negatives, as printed in result accuracies; memcmp may look past the text, into the
 * padding. */
int text_read_double(text_reader *r, double *out) {
  const char *p = r->lx.p, *at = p;
  bool negative = *p == '-';
  const char *word = p + negative;
  if (memcmp(word, "inf", 3) == 0 && !text_is(word[3], TEXT_NAME)) {
    *out = negative ? -__builtin_inf() : __builtin_inf();
    p = word + 3;
  } else if (memcmp(word, "nan", 3) == 0 && !text_is(word[3], TEXT_NAME)) {
    *out = negative ? -__builtin_nan("") : __builtin_nan("");
    p = word + 3;
  } else {
    p = base_parse_f64(p, r->lx.end, out);
    if (!p || text_is(*p, TEXT_ALPHA)) return text_expected(r, XLAC_E_SYNTAX, "a number");
    if (__builtin_isinf(*out)) return text_fail(r, at, XLAC_E_SYNTAX, "a number too large for 64-bit floats");
  }
  r->lx.p = p;
  text_skip(&r->lx);
  return 0;
}

/* Most strings have no escape and are interned right from the text. Unescaping never lengthens, so that the bytes
 * between the quotes are room enough. */
int text_read_string(text_reader *r, const base_istr **out) {
  const char *p = r->lx.p;
  if (*p != '"' && *p != '\'') return text_expected(r, XLAC_E_SYNTAX, "a quoted string");
  const char *e = text_string_end(&r->lx, p);
  if (!e) return text_fail(r, p, XLAC_E_SYNTAX, "a string begins here that never ends");
  size_t n = (size_t)(e - p) - 2;
  const char *s = p + 1;
  if (memchr(s, '\\', n)) {
    r->bytes.n = 0;
    if (r->bytes.cap < n && !base_text_grow(&r->bytes, n)) return text_no_memory(r);
    ptrdiff_t length = text_unescape(s, e - 1, r->bytes.s);
    assert(length <= (ptrdiff_t)n);
    if (length < 0) return text_fail(r, p, XLAC_E_SYNTAX, "a string with a malformed escape");
    s = r->bytes.s;
    n = (size_t)length;
  }
  *out = ir_intern(r->m, s, n);
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : text_no_memory(r);
}

/* From a brace to the one that closes it, as it is: JSON, and other tools' words. */
int text_read_braces(text_reader *r, const base_istr **out) {
  const char *p = r->lx.p;
  if (*p != '{') return text_expected(r, XLAC_E_SYNTAX, "'{'");
  const char *e = text_braces_end(&r->lx, p);
  if (!e) return text_fail(r, p, XLAC_E_SYNTAX, "a brace opens here that never closes");
  *out = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : text_no_memory(r);
}

/* Lists of numbers are collected on r->ints, and taken off it when they are complete. */
int text_push_int(text_reader *r, int64_t v) {
  return BASE_VEC_PUSH(r->alloc, &r->ints, v) ? 0 : text_no_memory(r);
}

/* "{1,2}", "[1,2]" or, with another separator, "2x3"; `open`, `separator` and `close` are one byte each. */
int text_read_ints(text_reader *r, char open, char separator, char close, uint32_t *from) {
  uint32_t first = r->ints.n;
  TRY(text_want(r, open, "before a list of integers"));
  if (*r->lx.p != close) {
    do {
      int64_t v;
      TRY(text_read_int(r, &v));
      TRY(text_push_int(r, v));
    } while (text_eat(&r->lx, separator));
  }
  *from = first;
  return text_want(r, close, "after a list of integers");
}

/* What was collected since `from`, as the module's. */
const ir_ints *text_make_ints(text_reader *r, uint32_t from) {
  assert(from <= r->ints.n);
  uint32_t n = r->ints.n - from;
  r->ints.n = from;
  return ir_ints_make(r->m, n, r->ints.items + from);
}

/*   {1,0,2} */
int text_read_int_list(text_reader *r, const ir_ints **out) {
  uint32_t from;
  TRY(text_read_ints(r, '{', ',', '}', &from));
  *out = text_make_ints(r, from);
  return *out ? 0 : text_no_memory(r);
}

/* "{{0,1},{2,3}}": the inner lists wait on r->pointers, since the outer list's length is known only at its end. */
int text_read_int_lists(text_reader *r, const ir_int_lists **out) {
  uint32_t first = r->pointers.n;
  TRY(text_want(r, '{', "before a list of lists"));
  if (*r->lx.p != '}') {
    do {
      const ir_ints *list;
      TRY(text_read_int_list(r, &list));
      if (!BASE_VEC_PUSH(r->alloc, &r->pointers, list)) return text_no_memory(r);
    } while (text_eat(&r->lx, ','));
  }
  TRY(text_want(r, '}', "after a list of lists"));
  assert(r->pointers.n >= first);
  uint32_t n = r->pointers.n - first;
  ir_int_lists *lists = base_arena_alloc(&r->m->arena, sizeof *lists + n * sizeof lists->v[0]);
  if (!lists) return text_no_memory(r);
  lists->n = n;
  if (n) memcpy((void *)lists->v, (const void *)(r->pointers.items + first), n * sizeof lists->v[0]);
  r->pointers.n = first;
  *out = lists;
  return 0;
}

/* The same as an array; NULL for an empty list, and *ok false when out of memory. */
const int64_t *text_take_ints(text_reader *r, uint32_t from, bool *ok) {
  assert(from <= r->ints.n);
  uint32_t n = r->ints.n - from;
  r->ints.n = from;
  if (n == 0) return NULL;
  const int64_t *copy = base_arena_memdup(&r->m->arena, r->ints.items + from, n * sizeof *copy);
  *ok = *ok && copy;
  return copy;
}

/* --- entry points --- */

/* A text is a module where it begins with a header or ENTRY, or with a name and a brace; else it is one instruction. */
static bool begins_module(const text_reader *r, bool *has_header) {
  const char *p = r->lx.p;
  bool percent = *p == '%';
  const char *e = text_name_end(p + percent);
  *has_header = e - p == 9 && memcmp(p, "HloModule", 9) == 0;
  if (*has_header || (e - p == 5 && memcmp(p, "ENTRY", 5) == 0)) return true;
  text_lexer ahead = r->lx;
  ahead.p = e;
  text_skip(&ahead);
  return e > p + percent && *ahead.p == '{';
}

/* A text of computations without "HloModule" has a name made up. */
static int name_after_entry(text_reader *r) {
  r->bytes.n = 0;
  BASE_PUT(&r->bytes, "module_");
  base_put(&r->bytes, r->m->entry->name->s, r->m->entry->name->n);
  if (r->bytes.failed || !(r->m->name = ir_intern(r->m, r->bytes.s, r->bytes.n))) return text_no_memory(r);
  return 0;
}

/* HloModule <name>, <attributes>
 *   FileNames ... StackFrames
 *   <computations>
 * or computations without a header, whose module XLA names after the entry; or a lone instruction, a module by
 * itself. */
static int read_module(text_reader *r) {
  bool has_header;
  if (!begins_module(r, &has_header)) {
    r->lone = true;
    r->m->config.is_scheduled = true;
    TRY(text_read_lone(r));
  } else {
    if (has_header) TRY(text_read_header(r));
    TRY(text_read_tables(r));
    TRY(text_read_computations(r));
    if (!has_header) TRY(name_after_entry(r));
  }
  TRY(text_check_header(r));
  return ir_uniquify_names(r->m, r->err);
}

/* Names of computations and ops are unique in the module afterwards, as XLA's parser leaves them. */
int text_parse_hlo(ir_module **out, const char *text, size_t n, const text_parse_options *options, xlac_error *err) {
  base_alloc alloc = options && options->alloc.fn ? options->alloc : base_alloc_libc;
  ir_module *m = NULL;
  text_reader r;
  TRY(ir_module_create(&m, "_", alloc, err));
  int status = text_reader_open(&r, m, alloc, text, n, options, err);
  if (status == 0) status = read_module(&r);
  text_reader_close(&r);
  if (status != 0) {
    ir_module_destroy(m);
    return status;
  }
  assert(m->entry && ir_root(m->entry) && r.depth == 0 && r.level == 0);
  *out = m;
  return 0;
}

/* The text must have been used up. */
static int at_end(text_reader *r) {
  return r->lx.p == r->lx.end ? 0 : text_expected(r, XLAC_E_SYNTAX, "nothing more");
}

/* These two read into a module that exists: what they make stays in its arena, also when the text proves wrong later
 * on. */
int text_parse_type(ir_module *m, const char *text, size_t n, const ir_type **out, xlac_error *err) {
  text_reader r;
  const ir_type *type = NULL;
  int status = text_reader_open(&r, m, m->alloc, text, n, NULL, err);
  if (status == 0) status = text_read_type(&r, &type);
  if (status == 0) status = at_end(&r);
  text_reader_close(&r);
  if (status == 0) *out = type;
  return status;
}

/*   {devices=[2]<=[2]}
 *
 * The whole text must be the sharding. */
int text_parse_sharding(ir_module *m, const char *text, size_t n, const ir_sharding **out, xlac_error *err) {
  text_reader r;
  const ir_sharding *sharding = NULL;
  int status = text_reader_open(&r, m, m->alloc, text, n, NULL, err);
  if (status == 0) status = text_read_sharding(&r, &sharding);
  if (status == 0) status = at_end(&r);
  text_reader_close(&r);
  if (status == 0) *out = sharding;
  return status;
}
