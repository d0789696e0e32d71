/* Strings, names and symbols of MLIR text. */
#include "print.h"

static bool mprint_plain_char(char c) {
  return (unsigned char)c >= 32 && (unsigned char)c < 127 && c != '"' && c != '\\';
}

void mprint_quoted(base_text *o, const char *s, size_t n) {
  static const char digits[] = "0123456789ABCDEF";
  base_putc(o, '"');
  for (size_t i = 0, run; i < n; i += run) {
    for (run = 0; i + run < n && mprint_plain_char(s[i + run]);) run++;
    base_put(o, s + i, run);
    if (i + run == n) break;
    unsigned char c = (unsigned char)s[i + run++];
    base_putc(o, '\\');
    if (c == '\\') {
      base_putc(o, '\\');
    } else {
      base_putc(o, digits[c >> 4]);
      base_putc(o, digits[c & 15]);
    }
  }
  base_putc(o, '"');
}

static bool mprint_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool mprint_is_bare(const char *s, size_t n) {
  if (n == 0 || !mprint_letter(s[0])) return false;
  for (size_t i = 1; i < n; i++)
    if (!mprint_letter(s[i]) && !(s[i] >= '0' && s[i] <= '9') && s[i] != '$' && s[i] != '.') return false;
  return true;
}

static void mprint_bare_or_quoted(base_text *o, const char *s, size_t n) {
  if (mprint_is_bare(s, n))
    base_put(o, s, n);
  else
    mprint_quoted(o, s, n);
}

void mprint_keyword(base_text *o, const base_istr *s) {
  mprint_bare_or_quoted(o, s->s, s->n);
}

void mprint_symbol(base_text *o, const char *s, size_t n) {
  if (n == 0) {
    BASE_PUT(o, "@<<INVALID EMPTY SYMBOL>>");
    return;
  }
  base_putc(o, '@');
  mprint_bare_or_quoted(o, s, n);
}

void mprint_spaces(mprint *p) {
  static const char blanks[] = "                                ";
  for (uint32_t n = p->indent; n;) {
    uint32_t some = n < sizeof blanks - 1 ? n : (uint32_t)sizeof blanks - 1;
    base_put(p->out, blanks, some);
    n -= some;
  }
}

void mprint_newline(mprint *p) {
  base_putc(p->out, '\n');
  mprint_spaces(p);
}
