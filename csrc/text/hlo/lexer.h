/* The scanner under the HLO reader, and under MLIR's: a cursor over a padded copy of the text that stands at the
 * start of a token between calls. It makes no token objects; the reader asks for what the grammar wants next:
 *
 *   text_eat(&lx, '(')      is '(' next? then past it and the blanks behind it
 *   text_name_end(lx.p)     where the word at the cursor ends
 * A lexer is a plain struct: a copy of it is a look-ahead, to be thrown away. Thread-compatible. */
#ifndef XLAC_TEXT_HLO_LEXER_H
#define XLAC_TEXT_HLO_LEXER_H

#include "../../base/str.h"

enum {
  TEXT_SPACE = 1, /* blank, tab, newline, carriage return */
  TEXT_DIGIT = 2,
  TEXT_ALPHA = 4, /* letters and '_': how a name begins */
  TEXT_NAME = 8   /* how it goes on: letters, digits, '_', '.', '-' */
};
/* The classes of each byte, to be asked with text_is. */
extern const uint8_t text_class[256];

/* Zero bytes after the text: a zero byte ends every scan, so that scans need no other bound. */
enum { TEXT_PADDING = 64 };

/* A place in a text. The padding of zeros lets a reader look a few bytes ahead without asking for the end. */
typedef struct text_lexer {
  const char *p;    /* start of the next token */
  const char *text; /* the copy, from its first byte to `end`, then TEXT_PADDING zeros */
  const char *end;
  const char *seen; /* the last place whose line was asked for, and that line */
  const char *seen_start;
  uint32_t seen_line;
} text_lexer;

/* Whether c is of any of these classes; false for the zero byte. */
static inline bool text_is(char c, unsigned classes) {
  return (text_class[(unsigned char)c] & classes) != 0;
}

/* Copies the text. false when out of memory. Leaves the cursor on the first token. text_lexer_close frees the copy
 * with the same allocator. */
bool text_lexer_open(text_lexer *lx, base_alloc alloc, const char *text, size_t n);
/* Frees the copy. */
void text_lexer_close(text_lexer *lx, base_alloc alloc);
/* Line and column of `at`, from 1. Amortised constant time when asked in text order. `at` lies in the copy, its end
 * included. */
void text_where(text_lexer *lx, const char *at, uint32_t *line, uint32_t *col);
/* Past blanks and comments where the next byte is '/'. An unterminated comment is left to be found as a stray '/'. */
void text_skip_comments(text_lexer *lx);
/* The end of the quoted string that begins at p, past the closing quote; NULL when it has none. Single and double
 * quotes both open strings; the string ends with the quote that it began with. */
const char *text_string_end(const text_lexer *lx, const char *p);
/* The end of the braced JSON-like text that begins at p, past its last brace; NULL when it never closes. */
const char *text_braces_end(const text_lexer *lx, const char *p);
/* Undoes C escapes from [s, e) into out, which has room for e - s bytes. The length, or -1 for a malformed escape.
 * out may not overlap s; it is not terminated. */
ptrdiff_t text_unescape(const char *s, const char *e, char *out);

/* Moves on to the next token. */
static inline void text_skip(text_lexer *lx) {
  while (text_is(*lx->p, TEXT_SPACE)) lx->p++;
  if (*lx->p == '/') text_skip_comments(lx);
}

/* Takes the one-byte token c if it is next. */
static inline bool text_eat(text_lexer *lx, char c) {
  if (*lx->p != c) return false;
  lx->p++;
  text_skip(lx);
  return true;
}

/* The end of the run of name bytes at p. */
static inline const char *text_name_end(const char *p) {
  while (text_is(*p, TEXT_NAME)) p++;
  return p;
}

#endif
