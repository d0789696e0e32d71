/* Prints strings with C escapes, and decides which texts need no quotes because they are a JSON object. */
#include "print.h"

/* 0 for bytes that stand for themselves inside quotes: printable ASCII but for both quotes and the backslash. */
static const uint8_t needs_escape[256] = {
    [0 ... 0x1F] = 1, ['"'] = 1, ['\''] = 1, ['\\'] = 1, [0x7F ... 0xFF] = 1,
};

static void put_escape(base_text *out, unsigned char c) {
  static const char letters[][2] = {{'\n', 'n'}, {'\r', 'r'}, {'\t', 't'}, {'"', '"'}, {'\'', '\''}, {'\\', '\\'}};
  base_putc(out, '\\');
  for (size_t i = 0; i < sizeof letters / sizeof *letters; i++) {
    if ((unsigned char)letters[i][0] == c) {
      base_putc(out, letters[i][1]);
      return;
    }
  }
  base_putc(out, (char)('0' + (c >> 6)));
  base_putc(out, (char)('0' + (c >> 3 & 7)));
  base_putc(out, (char)('0' + (c & 7)));
}

void text_put_escaped(base_text *out, const char *s, size_t n) {
  for (size_t i = 0; i < n;) {
    size_t run = i;
    while (run < n && !needs_escape[(unsigned char)s[run]]) run++;
    base_put(out, s + i, run - i);
    if (run < n) put_escape(out, (unsigned char)s[run++]);
    i = run;
  }
}

void text_put_quoted(base_text *out, const base_istr *s) {
  base_putc(out, '"');
  if (s) text_put_escaped(out, s->s, s->n);
  base_putc(out, '"');
}

/* Bytes of the well-formed UTF-8 character at s, 0 when there is none. */
static size_t utf8_length(const unsigned char *s, size_t n) {
  assert(n > 0);
  size_t want = s[0] < 0x80                   ? 1
                : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                : (s[0] & 0xF0) == 0xE0       ? 3
                : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                              : 0;
  if (want == 0 || want > n) return 0;
  for (size_t i = 1; i < want; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
  }
  if (want == 3 && ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0))) return 0;
  if (want == 4 && ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] >= 0x90))) return 0;
  return want;
}

static bool reads_back_raw(const base_istr *s) {
  for (size_t i = 0, step; i < s->n; i += step) {
    step = utf8_length((const unsigned char *)s->s + i, s->n - i);
    if (step == 0 || s->s[i] == '"' || s->s[i] == '\\' || s->s[i] == 0) return false;
  }
  return true;
}

void text_put_raw_quoted(base_text *out, const base_istr *s) {
  if (!reads_back_raw(s)) {
    text_put_quoted(out, s);
    return;
  }
  base_putc(out, '"');
  base_put(out, s->s, s->n);
  base_putc(out, '"');
}

static size_t skip_json_blanks(const char *s, size_t n, size_t i) {
  while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r')) i++;
  return i;
}

/* The byte after the string that begins at i, or n + 1 when it does not end. */
static size_t skip_json_string(const char *s, size_t n, size_t i) {
  for (i++; i < n; i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == '"')
      return i + 1;
  }
  return n + 1;
}

bool text_is_json_dict(const char *s, size_t n) {
  size_t i = skip_json_blanks(s, n, 0), depth = 0;
  if (i == n || s[i] != '{') return false;
  do {
    if (s[i] == '"') {
      i = skip_json_string(s, n, i);
      continue;
    }
    depth += s[i] == '{';
    depth -= s[i] == '}';
    i++;
  } while (depth && i < n);
  return depth == 0 && skip_json_blanks(s, n, i) == n;
}
