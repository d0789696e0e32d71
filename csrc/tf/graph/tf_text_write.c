/* Bytes of a message to protocol buffers' text format. */
#include <stdlib.h>

#include "../../base/number/number.h"
#include "../../text/proto/wire.h"
#include "tf_schema.h"
#include "tf_types.h"

typedef struct tf_text_writer {
  proto_source s;
  base_text *out;
  uint32_t indent;
} tf_text_writer;

static void tf_put_indent(tf_text_writer *w) {
  for (uint32_t i = 0; i < w->indent; i++) BASE_PUT(w->out, "  ");
}

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

static void tf_put_real(base_text *out, base_dtype t, uint64_t bits) {
  char text[32];
  size_t n = base_print_float(t, bits, text);
  bool nan = memchr(text, 'n', n) != NULL && memchr(text, 'f', n) == NULL;
  base_put(out, nan ? "nan" : text, nan ? 3 : n);
}

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

static proto_wire_type tf_wire_of(const tf_field_info *f) {
  if (f->kind == TF_FIELD_FLOAT) return PROTO_FIXED32;
  return f->kind == TF_FIELD_DOUBLE || f->kind == TF_FIELD_FIXED64 ? PROTO_FIXED64 : PROTO_VARINT;
}

static void tf_put_named_scalar(tf_text_writer *w, const tf_field_info *f, uint64_t v) {
  tf_put_indent(w);
  base_putf(w->out, "%s: ", f->name);
  tf_put_scalar(w, f, v);
  base_putc(w->out, '\n');
}

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

typedef struct tf_entry {
  proto_field field;
  base_slice key; /* of text keys */
  uint64_t number;
} tf_entry;

static int tf_compare_entries(const void *a, const void *b) {
  const tf_entry *x = a, *y = b;
  size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
  int order = n ? memcmp(x->key.p, y->key.p, n) : 0;
  if (order != 0) return order;
  if (x->key.n != y->key.n) return x->key.n < y->key.n ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

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
  const uint8_t *p = bytes;
  tf_text_writer w = {.s = {.base = p, .end = p + n, .alloc = out->alloc, .max_depth = 100, .err = err}, .out = out};
  proto_message m;
  int status = proto_open(&w.s, p, n, &m);
  if (status == 0) status = tf_put_message(&w, message, m);
  proto_source_close(&w.s);
  return status == 0 && out->failed ? base_oom(err, "printing a graph") : status;
}
