/* Scanning: byte classes, comments, strings, positions.
 *
 * The text is copied once, with TEXT_PADDING zero bytes behind it. No class contains the zero byte and no token
 * does, so that every loop here stops at the end without comparing pointers, and looking a few bytes ahead (memcmp
 * with "ENTRY") stays inside the copy. A zero byte that the user's text holds ends a scan too: the reader then finds
 * that the cursor is not at `end` and reports an unexpected byte. The exceptions are strings and braces, which may
 * hold zero bytes and compare with `end`. */
#include "lexer.h"

#define SP TEXT_SPACE
#define DG (TEXT_DIGIT | TEXT_NAME)
#define AL (TEXT_ALPHA | TEXT_NAME)
/* One row for each byte; what is not named here (control characters, all of UTF-8 beyond ASCII) has no class and
 * can't begin or continue a token outside strings. */
const uint8_t text_class[256] = {
    [' '] = SP,         ['\t'] = SP,        ['\n'] = SP, ['\r'] = SP,       ['0' ... '9'] = DG,
    ['a' ... 'z'] = AL, ['A' ... 'Z'] = AL, ['_'] = AL,  ['.'] = TEXT_NAME, ['-'] = TEXT_NAME,
};
#undef SP
#undef DG
#undef AL

/* On failure lx owns nothing: text_lexer_close may be called, and need not be. */
bool text_lexer_open(text_lexer *lx, base_alloc alloc, const char *text, size_t n) {
  assert(text || n == 0);
  *lx = (text_lexer){0};
  size_t size;
  if (!base_add(n, TEXT_PADDING, &size)) return false;
  char *copy = base_malloc(alloc, size);
  if (!copy) return false;
  if (n) memcpy(copy, text, n);
  memset(copy + n, 0, TEXT_PADDING);
  *lx = (text_lexer){.p = copy, .text = copy, .end = copy + n, .seen = copy, .seen_start = copy, .seen_line = 1};
  text_skip(lx);
  return true;
}

/* The copy of the text goes with it. */
void text_lexer_close(text_lexer *lx, base_alloc alloc) {
  base_free(alloc, (void *)lx->text);
  *lx = (text_lexer){0};
}

/* Back to an earlier place: nested ops are placed before the op around them. Counts the newlines between, so that it
 * costs what the distance is. */
static void seek_back(text_lexer *lx, const char *at) {
  for (const char *p = lx->seen_start; p > at; p--) lx->seen_line -= p[-1] == '\n';
  while (at > lx->text && at[-1] != '\n') at--;
  lx->seen_start = at;
}

/* Positions are asked for nearly in text order, once for each op: the last answer is kept and only the bytes since
 * are searched for newlines. Columns count bytes, not characters. */
void text_where(text_lexer *lx, const char *at, uint32_t *line, uint32_t *col) {
  assert(at >= lx->text && at <= lx->end);
  if (at < lx->seen_start) {
    seek_back(lx, at);
  } else if (at > lx->seen) {
    const char *p = lx->seen, *newline;
    while ((newline = memchr(p, '\n', (size_t)(at - p)))) {
      p = lx->seen_start = newline + 1;
      lx->seen_line++;
    }
  }
  lx->seen = at;
  *line = lx->seen_line;
  *col = (uint32_t)(at - lx->seen_start) + 1;
}

/* Takes "// to the end of the line" and block comments, and the blanks behind them, any number of times. */
void text_skip_comments(text_lexer *lx) {
  while (*lx->p == '/') {
    const char *p = lx->p + 2;
    if (lx->p[1] == '/') {
      while (*p && *p != '\n' && *p != '\r') p++;
    } else if (lx->p[1] == '*') {
      while (*p && !(*p == '*' && p[1] == '/')) p++;
      if (!*p) return;
      p += 2;
    } else {
      return;
    }
    lx->p = p;
    while (text_is(*lx->p, TEXT_SPACE)) lx->p++;
  }
}

/* Does not look at what escapes mean, only that a backslash hides the byte after it; text_unescape does the rest. */
const char *text_string_end(const text_lexer *lx, const char *p) {
  char quote = *p++;
  assert(quote == '"' || quote == '\'');
  for (; p < lx->end; p++) {
    if (*p == quote) return p + 1;
    if (*p == '\\' && ++p >= lx->end) return NULL;
  }
  return NULL;
}

/* Braces inside of double-quoted strings don't count. Brackets are not matched: what stands between the braces (JSON
 * of a backend_config, a sharding of mesh axes) is kept verbatim and checked by nobody here. */
const char *text_braces_end(const text_lexer *lx, const char *p) {
  assert(*p == '{');
  size_t depth = 0;
  while (p && p < lx->end) {
    if (*p == '"') {
      p = text_string_end(lx, p);
      continue;
    }
    depth += *p == '{';
    depth -= *p == '}';
    p++;
    if (depth == 0) return p;
  }
  return NULL;
}

/* The value of a hexadecimal digit, or -1. */
static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c |= 0x20;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte an escape of one letter stands for, or -1. */
static int plain_escape(char c) {
  static const char letters[] = "abfnrtv\\'\"?", bytes[] = "\a\b\f\n\r\t\v\\'\"?";
  const char *at = c ? strchr(letters, c) : NULL;
  return at ? bytes[at - letters] : -1;
}

/* Writes code point c as UTF-8 and gives its length, 1 to 4 bytes. */
static ptrdiff_t put_utf8(uint32_t c, char *out) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xC0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
  int n = c < 0x10000 ? 3 : 4;
  for (int i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 63));
  out[0] = (char)((n == 3 ? 0xE0 : 0xF0) | c);
  return n;
}

/* \uXXXX and \UXXXXXXXX; the escape is always longer than its UTF-8. Surrogates and what is beyond Unicode are
 * malformed, as in absl::CUnescape, which XLA reads strings with. */
static const char *unicode_escape(const char *s, const char *e, int digits, char **out) {
  uint32_t c = 0;
  if (e - s < digits) return NULL;
  for (int i = 0; i < digits; i++) {
    int d = hex_digit(*s++);
    if (d < 0) return NULL;
    c = c << 4 | (uint32_t)d;
  }
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return NULL;
  *out += put_utf8(c, *out);
  return s;
}

/* The escape at s, past its backslash; NULL when malformed. Octal escapes have one to three digits ("\7", "\101"),
 * hexadecimal ones any number, as in C; a value over 255 is an error. */
static const char *one_escape(const char *s, const char *e, char **out) {
  unsigned v = 0;
  int plain = plain_escape(*s);
  if (plain >= 0) {
    *(*out)++ = (char)plain;
    return s + 1;
  }
  if (*s == 'u' || *s == 'U') return unicode_escape(s + 1, e, *s == 'u' ? 4 : 8, out);
  if (*s >= '0' && *s <= '7') {
    for (int i = 0; i < 3 && s < e && *s >= '0' && *s <= '7'; i++) v = v * 8 + (unsigned)(*s++ - '0');
  } else if (*s == 'x' || *s == 'X') {
    if (++s == e || hex_digit(*s) < 0) return NULL;
    while (s < e && hex_digit(*s) >= 0 && v <= 0xFF) v = v * 16 + (unsigned)hex_digit(*s++);
  } else {
    return NULL;
  }
  if (v > 0xFF) return NULL;
  *(*out)++ = (char)v;
  return s;
}

/*   a\n\x41\'    a, newline, A, '
 *
 * What string literals of C have. `out` has room for as many bytes as the escaped text; -1 where an escape is none. */
ptrdiff_t text_unescape(const char *s, const char *e, char *out) {
  char *at = out;
  while (s < e) {
    if (*s != '\\') {
      *at++ = *s++;
      continue;
    }
    if (s + 1 == e || !(s = one_escape(s + 1, e, &at))) return -1;
  }
  assert(at >= out);
  return at - out;
}
