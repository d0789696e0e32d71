/* Protocol buffers' text format, both ways, driven by one table of messages and fields (tf_messages.def). Text is
 * read in one pass straight to bytes, without a message in memory; bytes are printed in the order of the
 * definition, maps sorted, which is how TensorFlow prints them. */
#include <stdio.h>
#include <stdlib.h>

#include "tf_schema.h"
#include "../../base/number/number.h"
#include "../../text/proto/wire.h"
#include "tf_types.h"

/* --- the tables --- */

/* One list of all rows; a message begins after the END of the one before. */
static const tf_field_info tf_all_fields[] = {
    {.kind = TF_FIELD_END},
#define MESSAGE(name)
#define FIELD(name, number, kind, repeated, message) {name, number, TF_FIELD_##kind, repeated, TF_MSG_##message},
#define END() {.kind = TF_FIELD_END},
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

/* Places in that list, counted by the compiler. */
enum tf_field_place {
  TF_AT_NONE_LAST = 0,
#define MESSAGE(name) TF_AT_##name, TF_AT_##name##_BACK = TF_AT_##name - 1,
#define FIELD(name, number, kind, repeated, message) TF_AT_LINE(__LINE__),
#define END() TF_AT_LINE(__LINE__),
#define TF_AT_LINE(line) TF_AT_LINE2(line)
#define TF_AT_LINE2(line) TF_AT_ROW_##line
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
#undef TF_AT_LINE
#undef TF_AT_LINE2
};

/* Where a message's rows begin; the places fit 16 bits, and there are no pointers to relocate. */
static const uint16_t tf_message_places[TF_MSG_COUNT] = {
    [TF_MSG_NONE] = 0,
#define MESSAGE(name) [TF_MSG_##name] = TF_AT_##name,
#define FIELD(name, number, kind, repeated, message)
#define END()
#include "tf_messages.def"
#undef MESSAGE
#undef FIELD
#undef END
};

/* FullTypeId of full_type.proto. */
static const struct tf_full_type_row {
  const char *name;
  int number;
} tf_full_type_rows[] = {
    {"TFT_UNSET", 0},
    {"TFT_VAR", 1},
    {"TFT_ANY", 2},
    {"TFT_PRODUCT", 3},
    {"TFT_NAMED", 4},
    {"TFT_FOR_EACH", 20},
    {"TFT_CALLABLE", 100},
    {"TFT_BOOL", 200},
    {"TFT_UINT8", 201},
    {"TFT_UINT16", 202},
    {"TFT_UINT32", 203},
    {"TFT_UINT64", 204},
    {"TFT_INT8", 205},
    {"TFT_INT16", 206},
    {"TFT_INT32", 207},
    {"TFT_INT64", 208},
    {"TFT_HALF", 209},
    {"TFT_FLOAT", 210},
    {"TFT_DOUBLE", 211},
    {"TFT_COMPLEX64", 212},
    {"TFT_COMPLEX128", 213},
    {"TFT_STRING", 214},
    {"TFT_BFLOAT16", 215},
    {"TFT_TENSOR", 1000},
    {"TFT_ARRAY", 1001},
    {"TFT_OPTIONAL", 1002},
    {"TFT_LITERAL", 1003},
    {"TFT_ENCODED", 1004},
    {"TFT_SHAPE_TENSOR", 1005},
    {"TFT_DATASET", 10102},
    {"TFT_RAGGED", 10103},
    {"TFT_ITERATOR", 10104},
    {"TFT_MUTEX_LOCK", 10202},
    {"TFT_LEGACY_VARIANT", 10203},
};

const tf_field_info *tf_schema_fields(tf_message message) {
  assert(message < TF_MSG_COUNT);
  return &tf_all_fields[tf_message_places[message]];
}

/* Messages have few fields: no index is kept. */
const tf_field_info *tf_schema_by_name(tf_message message, base_slice name) {
  for (const tf_field_info *f = tf_schema_fields(message); f->kind != TF_FIELD_END; f++)
    if (base_slice_is(name, f->name)) return f;
  return NULL;
}

const tf_field_info *tf_schema_by_number(tf_message message, uint32_t number) {
  assert(message < TF_MSG_COUNT);
  for (const tf_field_info *f = tf_schema_fields(message); f->kind != TF_FIELD_END; f++)
    if (f->number == number) return f;
  return NULL;
}

/* -1 for a name that full_type.proto does not have. */
int tf_full_type_of_name(base_slice name) {
  for (size_t i = 0; i < sizeof tf_full_type_rows / sizeof *tf_full_type_rows; i++)
    if (base_slice_is(name, tf_full_type_rows[i].name)) return tf_full_type_rows[i].number;
  return -1;
}

const char *tf_full_type_name(int64_t number) {
  for (size_t i = 0; i < sizeof tf_full_type_rows / sizeof *tf_full_type_rows; i++)
    if (tf_full_type_rows[i].number == number) return tf_full_type_rows[i].name;
  return NULL;
}

/* --- text to bytes --- */

/* Messages within messages, as the readers of bytes have it. */
enum { TF_TEXT_DEPTH = 100 };

/* p is before the next token; line_begin gives the column. */
typedef struct tf_text_reader {
  const char *p, *end, *line_begin;
  uint32_t line, depth;
  base_text *out;
  base_text string; /* the string being put together */
  xlac_error *err;
} tf_text_reader;

static int tf_text_fail(tf_text_reader *r, const char *format, ...) BASE_PRINTF(2, 3);
/* Fails at r->p. */
static int tf_text_fail(tf_text_reader *r, const char *format, ...) {
  char what[256];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  return base_fail_at(r->err, XLAC_E_SYNTAX, r->line, (uint32_t)(r->p - r->line_begin) + 1, NULL, "%s", what);
}

/* Blanks, line ends and comments, which begin with '#'. */
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

/* Takes c if it is the next token. */
static bool tf_take(tf_text_reader *r, char c) {
  tf_skip_space(r);
  if (r->p >= r->end || *r->p != c) return false;
  r->p++;
  return true;
}

static bool tf_is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Letters, digits and '_'; empty where the next token is something else. */
static base_slice tf_take_word(tf_text_reader *r) {
  tf_skip_space(r);
  const char *from = r->p;
  while (r->p < r->end && tf_is_word(*r->p)) r->p++;
  return (base_slice){from, (size_t)(r->p - from)};
}

/* --- strings --- */

/* 99 for what is not a digit of any base. */
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

/* c is below 0x110000. */
static void tf_put_utf8(base_text *t, unsigned c) {
  assert(c < 0x110000);
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

/* C's escapes, as protocol buffers' text has them; r->p is behind the backslash. */
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
    if (code > 0x10FFFF) return tf_text_fail(r, "\\%c%x is not a character", c, code);
    tf_put_utf8(&r->string, code);
    return 0;
  }
  const char *at = memchr(from, c, sizeof from - 1);
  if (!at) return tf_text_fail(r, "\\%c is not an escape", c);
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

/* Decimal, 0x and octal. `out` has two's complement of a negative number. The error points at the number's first
 * digit. */
static int tf_take_integer(tf_text_reader *r, bool is_signed, unsigned bits, uint64_t *out) {
  assert(bits == 32 || bits == 64);
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

/* "inf", "nan" in their spellings, or a number, perhaps with C's suffix f. */
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

/* The spellings that protocol buffers' parser accepts. */
static int tf_take_bool(tf_text_reader *r, uint64_t *out) {
  base_slice word = tf_take_word(r);
  *out = base_slice_is(word, "true") || base_slice_is(word, "True") || base_slice_is(word, "t") ||
         base_slice_is(word, "1");
  if (*out || base_slice_is(word, "false") || base_slice_is(word, "False") || base_slice_is(word, "f") ||
      base_slice_is(word, "0"))
    return 0;
  return tf_text_fail(r, "expected true or false, found '%.*s'", (int)(word.n < 40 ? word.n : 40), word.p);
}

/* A number, or a name of DataType or FullTypeId. */
static int tf_take_enum(tf_text_reader *r, const tf_field_info *f, uint64_t *out) {
  tf_skip_space(r);
  if (r->p < r->end && (tf_digit(*r->p) < 10 || *r->p == '-')) return tf_take_integer(r, true, 32, out);
  base_slice word = tf_take_word(r);
  int v = f->kind == TF_FIELD_TYPE ? tf_type_of_enum(word) : tf_full_type_of_name(word);
  if (v < 0)
    return tf_text_fail(r, "'%.*s' is not a value of field '%s'", (int)(word.n < 40 ? word.n : 40), word.p, f->name);
  *out = (uint64_t)v;
  return 0;
}

/* --- fields --- */

static int tf_take_message(tf_text_reader *r, tf_message message, char closing);

/* Braces or angle brackets. The length goes before the bytes, so it is put in when they are there. */
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

/* FLOAT is rounded from the double that was read. */
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

/* Negative int32s are written with ten bytes, as protocol buffers write them. */
static int tf_take_number_field(tf_text_reader *r, const tf_field_info *f) {
  assert(f->kind != TF_FIELD_MESSAGE && f->kind != TF_FIELD_MAP && f->kind != TF_FIELD_STRING);
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

/* One value by the kind of its field: a message in braces, a number, a string. */
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

/* "[1, 2]": one field for each element, not packed, which readers take as well. */
static int tf_take_list(tf_text_reader *r, const tf_field_info *f) {
  if (!f->repeated) return tf_text_fail(r, "field '%s' takes one value, not a list", f->name);
  if (tf_take(r, ']')) return 0;
  do TRY(tf_take_value(r, f));
  while (tf_take(r, ','));
  return tf_take(r, ']') ? 0 : tf_text_fail(r, "expected ',' or ']' in the list of field '%s'", f->name);
}

/* The first words of HLO and of MLIR, which people give instead. */
static bool tf_begins_program(base_slice word) {
  static const char *const words[] = {"HloModule", "ENTRY", "module", "func"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (word.n == strlen(words[i]) && memcmp(word.p, words[i], word.n) == 0) return true;
  return false;
}

/* "name: value", "name { }", "name [..]"; a comma or semicolon may follow. An unknown name is reported where it
 * begins. */
static int tf_take_field(tf_text_reader *r, tf_message message) {
  tf_skip_space(r);
  base_slice name = tf_take_word(r);
  const tf_field_info *f = tf_schema_by_name(message, name);
  r->p = name.p;
  if (name.n == 0) return tf_text_fail(r, "expected the name of a field");
  if (!f) {
    int status = tf_text_fail(r, "there is no field '%.*s' here", (int)(name.n < 60 ? name.n : 60), name.p);
    return tf_begins_program(name) ? base_hint(r->err, status,
                                               "this is a program, and a TensorFlow graph (GraphDef) is expected: "
                                               "parse and compile take programs")
                                   : status;
  }
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

/* What was appended before an error stays in *out: callers throw it away. */
int tf_text_to_wire(base_text *out, tf_message message, const char *text, size_t n, xlac_error *err) {
  tf_text_reader r = {.p = text, .end = text + n, .line_begin = text, .line = 1, .out = out, .err = err};
  base_text_init(&r.string, out->alloc);
  int status = tf_take_message(&r, message, 0);
  base_text_free(&r.string);
  return status == 0 && out->failed ? base_oom(err, "reading a graph") : status;
}

/* --- bytes to text --- */

/* indent: levels of two blanks. */
typedef struct tf_text_writer {
  proto_source s;
  base_text *out;
  uint32_t indent;
} tf_text_writer;

static void tf_put_indent(tf_text_writer *w) {
  for (uint32_t i = 0; i < w->indent; i++) BASE_PUT(w->out, "  ");
}

/* CEscape's output: what is not printable ASCII in octal. */
static void tf_put_quoted(base_text *out, const uint8_t *p, size_t n) {
  base_putc(out, '"');
  for (size_t i = 0; i < n; i++) {
    const char *escaped = p[i] == '\n'   ? "\\n"
                          : p[i] == '\r' ? "\\r"
                          : p[i] == '\t' ? "\\t"
                          : p[i] == '"'  ? "\\\""
                          : p[i] == '\'' ? "\\'"
                          : p[i] == '\\' ? "\\\\"
                                         : NULL;
    if (escaped)
      base_puts(out, escaped);
    else if (p[i] < 0x20 || p[i] >= 0x7F)
      base_putf(out, "\\%03o", p[i]);
    else
      base_putc(out, (char)p[i]);
  }
  base_putc(out, '"');
}

/* "nan" without its sign, which text format does not have. */
static void tf_put_real(base_text *out, base_dtype t, uint64_t bits) {
  char text[32];
  size_t n = base_print_float(t, bits, text);
  bool nan = memchr(text, 'n', n) != NULL && memchr(text, 'f', n) == NULL;
  base_put(out, nan ? "nan" : text, nan ? 3 : n);
}

/* Enums by name where the number has one, else the number, so that nothing is lost. */
static void tf_put_scalar(tf_text_writer *w, const tf_field_info *f, uint64_t v) {
  base_text *out = w->out;
  switch (f->kind) {
    case TF_FIELD_BOOL:
      base_puts(out, v ? "true" : "false");
      break;
    case TF_FIELD_FLOAT:
      tf_put_real(out, XLAC_F32, v);
      break;
    case TF_FIELD_DOUBLE:
      tf_put_real(out, XLAC_F64, v);
      break;
    case TF_FIELD_TYPE:
      if (!tf_put_type_enum(out, (int64_t)v)) base_put_i64(out, (int32_t)v);
      break;
    case TF_FIELD_FULL_TYPE_ID:
      if (tf_full_type_name((int64_t)v))
        base_puts(out, tf_full_type_name((int64_t)v));
      else
        base_put_i64(out, (int32_t)v);
      break;
    case TF_FIELD_INT32:
      base_put_i64(out, (int32_t)v);
      break;
    case TF_FIELD_INT64:
      base_put_i64(out, (int64_t)v);
      break;
    case TF_FIELD_UINT32:
      base_put_u64(out, (uint32_t)v);
      break;
    default:
      base_put_u64(out, v);
  }
}

/* The wire type of numbers of that kind, outside of packed lists. */
static proto_wire_type tf_wire_of(const tf_field_info *f) {
  if (f->kind == TF_FIELD_FLOAT) return PROTO_FIXED32;
  return f->kind == TF_FIELD_DOUBLE || f->kind == TF_FIELD_FIXED64 ? PROTO_FIXED64 : PROTO_VARINT;
}

/* "name: value" on a line of its own. */
static void tf_put_named_scalar(tf_text_writer *w, const tf_field_info *f, uint64_t v) {
  tf_put_indent(w);
  base_putf(w->out, "%s: ", f->name);
  tf_put_scalar(w, f, v);
  base_putc(w->out, '\n');
}

/* A packed run of numbers, each printed on a line of its own. Varints are decoded by proto_list, for which the run
 * stands as the only field of a message for a moment. */
static int tf_put_packed(tf_text_writer *w, const tf_field_info *info, proto_field f) {
  proto_wire_type wire = tf_wire_of(info);
  if (wire == PROTO_VARINT) {
    proto_field one = f;
    proto_message list = {w->s.fields.n, 1};
    uint32_t from = 0;
    if (!BASE_VEC_PUSH(w->s.alloc, &w->s.fields, one)) return proto_no_memory(&w->s);
    TRY(proto_list(&w->s, list, info->number, &from));
    for (uint32_t i = from; i < w->s.numbers.n; i++) tf_put_named_scalar(w, info, (uint64_t)w->s.numbers.items[i]);
    w->s.numbers.n = from;
    w->s.fields.n = list.first;
    return 0;
  }
  size_t size = wire == PROTO_FIXED32 ? 4 : 8;
  if (f.value % size) return proto_fail(&w->s, f.p, XLAC_E_BAD_PROTO, "a list of numbers is cut short");
  for (const uint8_t *p = f.p; p < f.p + f.value; p += size) {
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++) v |= (uint64_t)p[i] << (8 * i);
    tf_put_named_scalar(w, info, v);
  }
  return 0;
}

static int tf_put_message(tf_text_writer *w, tf_message message, proto_message m);

/* An entry of a map has its key written out even where it is the default, which the bytes may leave out. */
static void tf_put_missing_key(tf_text_writer *w, tf_message entry, proto_message m) {
  const tf_field_info *key = tf_schema_by_number(entry, 1);
  proto_field unused;
  if (proto_find(&w->s, m, 1, key->kind == TF_FIELD_STRING ? PROTO_LENGTH : tf_wire_of(key), &unused)) return;
  tf_put_indent(w);
  base_putf(w->out, "key: %s\n", key->kind == TF_FIELD_STRING ? "\"\"" : "0");
}

/* An empty message is written, too: "shape { }" says that the rank is 0. */
static int tf_put_sub_message(tf_text_writer *w, const tf_field_info *info, proto_field f) {
  proto_message sub;
  TRY(proto_open_field(&w->s, f, &sub));
  tf_put_indent(w);
  base_putf(w->out, "%s {\n", info->name);
  w->indent++;
  if (info->kind == TF_FIELD_MAP) tf_put_missing_key(w, info->message, sub);
  TRY(tf_put_message(w, info->message, sub));
  w->indent--;
  tf_put_indent(w);
  BASE_PUT(w->out, "}\n");
  proto_close(&w->s, sub);
  return 0;
}

/* A field of another wire type than the schema's is left out, as protocol buffers do. */
static int tf_put_field(tf_text_writer *w, const tf_field_info *info, proto_field f) {
  if (info->kind == TF_FIELD_MESSAGE || info->kind == TF_FIELD_MAP)
    return f.wire == PROTO_LENGTH ? tf_put_sub_message(w, info, f) : 0;
  if (info->kind == TF_FIELD_STRING || info->kind == TF_FIELD_BYTES) {
    if (f.wire != PROTO_LENGTH) return 0;
    tf_put_indent(w);
    base_putf(w->out, "%s: ", info->name);
    tf_put_quoted(w->out, f.p, (size_t)f.value);
    base_putc(w->out, '\n');
    return 0;
  }
  if (f.wire == PROTO_LENGTH) return info->repeated ? tf_put_packed(w, info, f) : 0;
  if (f.wire == tf_wire_of(info)) tf_put_named_scalar(w, info, f.value);
  return 0;
}

/* --- maps: entries in the order of their keys --- */

/* An entry of a map with what it is sorted by. */
typedef struct tf_entry {
  proto_field field;
  base_slice key; /* of text keys */
  uint64_t number;
} tf_entry;

/* Text keys by bytes, numbers by value; one of the two is always empty. */
static int tf_compare_entries(const void *a, const void *b) {
  const tf_entry *x = a, *y = b;
  size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
  int order = n ? memcmp(x->key.p, y->key.p, n) : 0;
  if (order != 0) return order;
  if (x->key.n != y->key.n) return x->key.n < y->key.n ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

/* Keys are read once, before sorting. */
static int tf_put_entries(tf_text_writer *w, const tf_field_info *info, tf_entry *entries, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    proto_message entry;
    TRY(proto_open_field(&w->s, entries[i].field, &entry));
    entries[i].key = proto_bytes(&w->s, entry, 1);
    entries[i].number = (uint64_t)proto_int(&w->s, entry, 1);
    proto_close(&w->s, entry);
  }
  qsort(entries, n, sizeof *entries, tf_compare_entries);
  for (uint32_t i = 0; i < n; i++) TRY(tf_put_sub_message(w, info, entries[i].field));
  return 0;
}

/* Maps have no order on the wire; TensorFlow prints them sorted by key. */
static int tf_put_map(tf_text_writer *w, const tf_field_info *info, proto_message m) {
  uint32_t n = proto_count(&w->s, m, info->number, PROTO_LENGTH), at = m.first, i = 0;
  if (n == 0) return 0;
  tf_entry *entries = base_malloc(w->s.alloc, n * sizeof *entries);
  if (!entries) return proto_no_memory(&w->s);
  for (proto_field f; proto_next(&w->s, m, info->number, PROTO_LENGTH, &at, &f);) entries[i++] = (tf_entry){.field = f};
  int status = tf_put_entries(w, info, entries, n);
  base_free(w->s.alloc, entries);
  return status;
}

/* Fields in the order of their definition, whatever order they were written in. */
static int tf_put_message(tf_text_writer *w, tf_message message, proto_message m) {
  for (const tf_field_info *info = tf_schema_fields(message); info->kind != TF_FIELD_END; info++) {
    if (info->kind == TF_FIELD_MAP) {
      TRY(tf_put_map(w, info, m));
      continue;
    }
    for (uint32_t i = m.first; i < m.first + m.n; i++)
      if (w->s.fields.items[i].number == info->number) TRY(tf_put_field(w, info, w->s.fields.items[i]));
  }
  return 0;
}

int tf_wire_to_text(base_text *out, tf_message message, const void *bytes, size_t n, xlac_error *err) {
  assert(n == 0 || bytes != NULL);
  const uint8_t *p = bytes;
  tf_text_writer w = {.s = {.base = p, .end = p + n, .alloc = out->alloc, .max_depth = 100, .err = err}, .out = out};
  proto_message m;
  int status = proto_open(&w.s, p, n, &m);
  if (status == 0) status = tf_put_message(&w, message, m);
  proto_source_close(&w.s);
  return status == 0 && out->failed ? base_oom(err, "printing a graph") : status;
}
