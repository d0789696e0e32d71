/* Protocol buffers' text format to bytes: one pass, driven by the tables of tf_schema.h. */
#include <stdio.h>

#include "../../base/number/number.h"
#include "../../text/proto/wire.h"
#include "tf_schema.h"
#include "tf_types.h"

enum { TF_TEXT_DEPTH = 100 };

typedef struct tf_text_reader {
  const char *p, *end, *line_begin;
  uint32_t line, depth;
  base_text *out;
  base_text string; /* the string being put together */
  xlac_error *err;
} tf_text_reader;

static int tf_text_fail(tf_text_reader *r, const char *format, ...) BASE_PRINTF(2, 3);
static int tf_text_fail(tf_text_reader *r, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail_at(r->err, XLAC_E_SYNTAX, r->line, (uint32_t)(r->p - r->line_begin) + 1, NULL, "%s", what);
}

static void tf_skip_space(tf_text_reader *r) {
  for (; r->p < r->end; r->p++) {
    if (*r->p == '\n') {
      r->line++;
      r->line_begin = r->p + 1;
    } else if (*r->p == '#') {
      while (r->p + 1 < r->end && r->p[1] != '\n') r->p++;
    } else if (*r->p != ' ' && *r->p != '\t' && *r->p != '\r') {
      return;
    }
  }
}

static bool tf_take(tf_text_reader *r, char c) {
  tf_skip_space(r);
  if (r->p >= r->end || *r->p != c) return false;
  r->p++;
  return true;
}

static bool tf_is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static base_slice tf_take_word(tf_text_reader *r) {
  tf_skip_space(r);
  const char *from = r->p;
  while (r->p < r->end && tf_is_word(*r->p)) r->p++;
  return (base_slice){from, (size_t)(r->p - from)};
}

/* --- strings --- */

static int tf_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : 99;
}

/* Up to `most` digits of a base. */
static unsigned tf_take_digits(tf_text_reader *r, int base, int most) {
  unsigned v = 0;
  for (; most > 0 && r->p < r->end && tf_digit(*r->p) < base; most--)
    v = v * (unsigned)base + (unsigned)tf_digit(*r->p++);
  return v;
}

static void tf_put_utf8(base_text *t, unsigned c) {
  if (c < 0x80) {
    base_putc(t, (char)c);
  } else if (c < 0x800) {
    base_putc(t, (char)(0xC0 | c >> 6));
    base_putc(t, (char)(0x80 | (c & 63)));
  } else {
    if (c >= 0x10000) base_putc(t, (char)(0xF0 | c >> 18));
    base_putc(t, (char)(c >= 0x10000 ? 0x80 | (c >> 12 & 63) : 0xE0 | c >> 12));
    base_putc(t, (char)(0x80 | (c >> 6 & 63)));
    base_putc(t, (char)(0x80 | (c & 63)));
  }
}

static int tf_take_escape(tf_text_reader *r) {
  static const char from[] = "abfnrtv\\'\"?", to[] = "\a\b\f\n\r\t\v\\'\"?";
  if (r->p >= r->end) return tf_text_fail(r, "a string has no end");
  if (tf_digit(*r->p) < 8) {
    base_putc(&r->string, (char)tf_take_digits(r, 8, 3));
    return 0;
  }
  char c = *r->p++;
  if (c == 'x' || c == 'X') {
    base_putc(&r->string, (char)tf_take_digits(r, 16, 2));
    return 0;
  }
  if (c == 'u' || c == 'U') {
    unsigned code = tf_take_digits(r, 16, c == 'u' ? 4 : 8);
    if (code > 0x10FFFF) return tf_text_fail(r, "\\%c%x is no character", c, code);
    tf_put_utf8(&r->string, code);
    return 0;
  }
  const char *at = memchr(from, c, sizeof from - 1);
  if (!at) return tf_text_fail(r, "\\%c is no escape", c);
  base_putc(&r->string, to[at - from]);
  return 0;
}

/* One or several strings in a row, which are one. */
static int tf_take_string(tf_text_reader *r) {
  r->string.n = 0;
  tf_skip_space(r);
  if (r->p >= r->end || (*r->p != '"' && *r->p != '\'')) return tf_text_fail(r, "expected a string");
  for (; tf_skip_space(r), r->p < r->end && (*r->p == '"' || *r->p == '\'');) {
    char quote = *r->p++;
    while (r->p < r->end && *r->p != quote) {
      if (*r->p == '\n') return tf_text_fail(r, "a string has no end on its line");
      if (*r->p == '\\') {
        r->p++;
        TRY(tf_take_escape(r));
      } else {
        base_putc(&r->string, *r->p++);
      }
    }
    if (r->p >= r->end) return tf_text_fail(r, "a string has no end");
    r->p++;
  }
  return r->string.failed ? base_oom(r->err, "reading a graph") : 0;
}

/* --- numbers --- */

static int tf_take_integer(tf_text_reader *r, bool is_signed, unsigned bits, uint64_t *out) {
  tf_skip_space(r);
  bool negative = tf_take(r, '-');
  tf_skip_space(r);
  const char *from = r->p;
  uint64_t v = 0;
  unsigned base = 10;
  if (r->end - r->p > 1 && r->p[0] == '0' && (r->p[1] == 'x' || r->p[1] == 'X')) {
    base = 16;
    r->p += 2;
  } else if (r->end - r->p > 1 && r->p[0] == '0' && tf_digit(r->p[1]) < 8) {
    base = 8;
  }
  const char *digits = r->p;
  for (; r->p < r->end && tf_digit(*r->p) < (int)base; r->p++)
    if (__builtin_mul_overflow(v, (uint64_t)base, &v) || __builtin_add_overflow(v, (uint64_t)tf_digit(*r->p), &v))
      break;
  bool whole = r->p > digits && (r->p == r->end || !tf_is_word(*r->p)) && (r->p == r->end || *r->p != '.');
  uint64_t most = is_signed    ? ((uint64_t)1 << (bits - 1)) - !negative
                  : bits == 64 ? UINT64_MAX
                               : ((uint64_t)1 << bits) - 1;
  r->p = whole ? r->p : from;
  if (!whole) return tf_text_fail(r, "expected a whole number");
  if (v > most || (negative && !is_signed))
    return tf_text_fail(r, "the number does not fit its field of %u bits", bits);
  *out = negative ? 0 - v : v;
  return 0;
}

static int tf_take_float(tf_text_reader *r, double *out) {
  tf_skip_space(r);
  bool negative = tf_take(r, '-');
  tf_skip_space(r);
  const char *from = r->p;
  base_slice word = tf_take_word(r);
  if (base_slice_is(word, "inf") || base_slice_is(word, "infinity") || base_slice_is(word, "Infinity")) {
    *out = negative ? -__builtin_inf() : __builtin_inf();
    return 0;
  }
  if (base_slice_is(word, "nan") || base_slice_is(word, "NaN")) {
    *out = __builtin_nan("");
    return 0;
  }
  r->p = from;
  const char *after = base_parse_f64(r->p, r->end, out);
  if (!after) return tf_text_fail(r, "expected a number");
  if (after < r->end && (*after == 'f' || *after == 'F')) after++;
  r->p = after;
  if (negative) *out = -*out;
  return 0;
}

static int tf_take_bool(tf_text_reader *r, uint64_t *out) {
  base_slice word = tf_take_word(r);
  *out = base_slice_is(word, "true") || base_slice_is(word, "True") || base_slice_is(word, "t") ||
         base_slice_is(word, "1");
  if (*out || base_slice_is(word, "false") || base_slice_is(word, "False") || base_slice_is(word, "f") ||
      base_slice_is(word, "0"))
    return 0;
  return tf_text_fail(r, "expected true or false, found '%.*s'", (int)(word.n < 40 ? word.n : 40), word.p);
}

static int tf_take_enum(tf_text_reader *r, const tf_field_info *f, uint64_t *out) {
  tf_skip_space(r);
  if (r->p < r->end && (tf_digit(*r->p) < 10 || *r->p == '-')) return tf_take_integer(r, true, 32, out);
  base_slice word = tf_take_word(r);
  int v = f->kind == TF_FIELD_TYPE ? tf_type_of_enum(word) : tf_full_type_of_name(word);
  if (v < 0)
    return tf_text_fail(r, "'%.*s' is no value of field '%s'", (int)(word.n < 40 ? word.n : 40), word.p, f->name);
  *out = (uint64_t)v;
  return 0;
}

/* --- fields --- */

static int tf_take_message(tf_text_reader *r, tf_message message, char closing);

static int tf_take_sub_message(tf_text_reader *r, const tf_field_info *f) {
  char closing = tf_take(r, '{') ? '}' : tf_take(r, '<') ? '>' : 0;
  if (!closing) return tf_text_fail(r, "expected '{' after field '%s'", f->name);
  size_t begin = proto_begin(r->out, f->number);
  TRY(tf_take_message(r, f->message, closing));
  proto_end(r->out, begin);
  return 0;
}

static void tf_put_fixed_tag(base_text *out, uint32_t number, proto_wire_type wire) {
  proto_put_varint(out, (uint64_t)number << 3 | wire);
}

static int tf_take_real_field(tf_text_reader *r, const tf_field_info *f) {
  double v = 0;
  TRY(tf_take_float(r, &v));
  uint64_t bits = 0;
  float narrow = (float)v;
  bool single = f->kind == TF_FIELD_FLOAT;
  memcpy(&bits, single ? (void *)&narrow : (void *)&v, single ? sizeof narrow : sizeof v);
  tf_put_fixed_tag(r->out, f->number, single ? PROTO_FIXED32 : PROTO_FIXED64);
  for (unsigned i = 0; i < (single ? 4 : 8); i++) base_putc(r->out, (char)(bits >> (8 * i)));
  return 0;
}

static int tf_take_number_field(tf_text_reader *r, const tf_field_info *f) {
  uint64_t v = 0;
  switch (f->kind) {
    case TF_FIELD_BOOL:
      TRY(tf_take_bool(r, &v));
      break;
    case TF_FIELD_TYPE:
    case TF_FIELD_FULL_TYPE_ID:
      TRY(tf_take_enum(r, f, &v));
      break;
    case TF_FIELD_INT32:
      TRY(tf_take_integer(r, true, 32, &v));
      break;
    case TF_FIELD_INT64:
      TRY(tf_take_integer(r, true, 64, &v));
      break;
    default:
      TRY(tf_take_integer(r, false, f->kind == TF_FIELD_UINT32 ? 32 : 64, &v));
  }
  if (f->kind == TF_FIELD_FIXED64) {
    tf_put_fixed_tag(r->out, f->number, PROTO_FIXED64);
    for (unsigned i = 0; i < 8; i++) base_putc(r->out, (char)(v >> (8 * i)));
  } else {
    proto_put_int_always(r->out, f->number, (int64_t)v);
  }
  return 0;
}

static int tf_take_value(tf_text_reader *r, const tf_field_info *f) {
  if (f->kind == TF_FIELD_MESSAGE || f->kind == TF_FIELD_MAP) return tf_take_sub_message(r, f);
  if (f->kind == TF_FIELD_FLOAT || f->kind == TF_FIELD_DOUBLE) return tf_take_real_field(r, f);
  if (f->kind != TF_FIELD_STRING && f->kind != TF_FIELD_BYTES) return tf_take_number_field(r, f);
  TRY(tf_take_string(r));
  tf_put_fixed_tag(r->out, f->number, PROTO_LENGTH);
  proto_put_varint(r->out, r->string.n);
  base_put(r->out, r->string.s ? r->string.s : "", r->string.n);
  return 0;
}

static int tf_take_list(tf_text_reader *r, const tf_field_info *f) {
  if (!f->repeated) return tf_text_fail(r, "field '%s' takes one value, not a list", f->name);
  if (tf_take(r, ']')) return 0;
  do TRY(tf_take_value(r, f));
  while (tf_take(r, ','));
  return tf_take(r, ']') ? 0 : tf_text_fail(r, "expected ',' or ']' in the list of field '%s'", f->name);
}

static int tf_take_field(tf_text_reader *r, tf_message message) {
  tf_skip_space(r);
  base_slice name = tf_take_word(r);
  const tf_field_info *f = tf_schema_by_name(message, name);
  r->p = name.p;
  if (name.n == 0) return tf_text_fail(r, "expected the name of a field");
  if (!f) return tf_text_fail(r, "there is no field '%.*s' here", (int)(name.n < 60 ? name.n : 60), name.p);
  r->p += name.n;
  bool colon = tf_take(r, ':');
  if (!colon && f->kind != TF_FIELD_MESSAGE && f->kind != TF_FIELD_MAP)
    return tf_text_fail(r, "expected ':' after field '%s'", f->name);
  TRY(tf_take(r, '[') ? tf_take_list(r, f) : tf_take_value(r, f));
  if (!tf_take(r, ',')) (void)tf_take(r, ';');
  return 0;
}

/* Up to the closing bracket, or the end of the text for 0. */
static int tf_take_message(tf_text_reader *r, tf_message message, char closing) {
  if (++r->depth > TF_TEXT_DEPTH) return tf_text_fail(r, "messages nest deeper than %d levels", TF_TEXT_DEPTH);
  for (;;) {
    tf_skip_space(r);
    if (r->p >= r->end && closing) return tf_text_fail(r, "expected '%c' at the end of a message", closing);
    if (r->p >= r->end || (closing && tf_take(r, closing))) break;
    TRY(tf_take_field(r, message));
  }
  r->depth--;
  return 0;
}

int tf_text_to_wire(base_text *out, tf_message message, const char *text, size_t n, xlac_error *err) {
  tf_text_reader r = {.p = text, .end = text + n, .line_begin = text, .line = 1, .out = out, .err = err};
  base_text_init(&r.string, out->alloc);
  int status = tf_take_message(&r, message, 0);
  base_text_free(&r.string);
  return status == 0 && out->failed ? base_oom(err, "reading a graph") : status;
}
