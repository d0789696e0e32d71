/* Splits messages into fields, and writes fields. Format: the Protocol Buffers encoding reference.
 *
 *   tag: varint of number << 3 | wire type       then: varint | 8 bytes | length and bytes | 4 bytes
 *
 *   08 96 01           field 1, VARINT: 150
 *   12 03 61 62 63     field 2, LENGTH: "abc", or a message of these bytes: the schema knows which
 *   1D 00 00 80 3F     field 3, FIXED32: 1.0f
 *
 * Lists of numbers may come packed (one field of LENGTH) or one by one; both are read, packed is written. */
#include "wire.h"

#include <stdio.h>

/* The bytes are the caller's. */
void proto_source_close(proto_source *s) {
  BASE_VEC_FREE(s->alloc, &s->fields);
  BASE_VEC_FREE(s->alloc, &s->numbers);
}

/*   byte 1234: a shape (field 3) is missing
 *
 * The place is counted from the beginning of the whole message, wherever it is nested. */
int proto_fail(proto_source *s, const uint8_t *at, base_code code, const char *format, ...) {
  char what[512];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  assert(at >= s->base && at <= s->end);
  return base_fail(s->err, code, "byte %zu: %s", (size_t)(at - s->base), what);
}

/* All that reads messages says it in these words. */
int proto_no_memory(proto_source *s) {
  return base_oom(s->err, "reading a module");
}

/* --- splitting --- */

/* The byte after the number, or NULL where it does not end or has more than 64 bits. Seven bits a byte, lowest
 * first; *out changes only where it succeeds. */
static const uint8_t *take_long_varint(const uint8_t *p, const uint8_t *end, uint64_t *out) {
  uint64_t v = 0;
  for (unsigned shift = 0; p < end && shift < 70; shift += 7) {
    uint8_t byte = *p++;
    if (shift == 63 && byte > 1) return NULL;
    v |= (uint64_t)(byte & 0x7F) << shift;
    if (byte < 0x80) {
      *out = v;
      return p;
    }
  }
  return NULL;
}

/* Most are of one byte. */
static inline const uint8_t *take_varint(const uint8_t *p, const uint8_t *end, uint64_t *out) {
  if (p >= end || *p >= 0x80) return take_long_varint(p, end, out);
  *out = *p;
  return p + 1;
}

/* Little-endian, whatever the machine's order. */
static uint64_t load_fixed(const uint8_t *p, size_t n) {
  uint64_t v = 0;
  for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

/* A number of n bytes at *p, which moves behind it. */
static int take_fixed(proto_source *s, proto_field *f, const uint8_t **p, const uint8_t *end, size_t n) {
  if ((size_t)(end - *p) < n) return proto_fail(s, *p, XLAC_E_BAD_PROTO, "a %zu-byte number is cut short", n);
  f->p = *p;
  f->value = load_fixed(*p, n);
  *p += n;
  return 0;
}

/* Leaves *p behind the bytes, f->p at their beginning. */
static int take_length(proto_source *s, proto_field *f, const uint8_t **p, const uint8_t *end) {
  const uint8_t *at = *p;
  *p = take_varint(*p, end, &f->value);
  if (!*p) return proto_fail(s, at, XLAC_E_BAD_PROTO, "a length is malformed or cut short");
  if (f->value > (size_t)(end - *p))
    return proto_fail(s, at, XLAC_E_BAD_PROTO, "a field of %llu bytes, but only %zu are left in its message",
                      (unsigned long long)f->value, (size_t)(end - *p));
  f->p = *p;
  *p += f->value;
  return 0;
}

/* One tag and its value; *p moves behind them. */
static int take_field(proto_source *s, proto_field *f, const uint8_t **p, const uint8_t *end) {
  const uint8_t *at = *p;
  uint64_t tag;
  *p = take_varint(*p, end, &tag);
  if (!*p) return proto_fail(s, at, XLAC_E_BAD_PROTO, "a field's tag is malformed or cut short");
  if (tag >> 3 == 0 || tag >> 32)
    return proto_fail(s, at, XLAC_E_BAD_PROTO, "%llu is not a field number", (unsigned long long)(tag >> 3));
  *f = (proto_field){.number = (uint32_t)(tag >> 3), .wire = tag & 7};
  switch (tag & 7) {
    case PROTO_VARINT:
      at = f->p = *p;
      *p = take_varint(*p, end, &f->value);
      return *p ? 0 : proto_fail(s, at, XLAC_E_BAD_PROTO, "a number is malformed or cut short");
    case PROTO_FIXED64:
      return take_fixed(s, f, p, end, 8);
    case PROTO_FIXED32:
      return take_fixed(s, f, p, end, 4);
    case PROTO_LENGTH:
      return take_length(s, f, p, end);
    default: /* groups are of an age before this protocol */
      return proto_fail(s, at, XLAC_E_BAD_PROTO, "%u is not a wire type", (unsigned)(tag & 7));
  }
}

/* All fields of n bytes onto the stack. */
static int push_fields(proto_source *s, const uint8_t *p, size_t n) {
  const uint8_t *end = p + n;
  assert(p >= s->base && end <= s->end);
  while (p < end) {
    proto_field f;
    int status = take_field(s, &f, &p, end);
    if (status != 0) return status;
    if (!BASE_VEC_PUSH(s->alloc, &s->fields, f)) return proto_no_memory(s);
  }
  return 0;
}

/* The depth is counted while messages are opened, so that no message can make the reader run out of stack. */
static int deeper(proto_source *s, const uint8_t *at) {
  if (++s->depth <= s->max_depth) return 0;
  return proto_fail(s, at, XLAC_E_TOO_DEEP, "messages nest deeper than %u levels", s->max_depth);
}

/* A message that fails to open leaves fields on the stack: reading ends then. */
int proto_open(proto_source *s, const uint8_t *p, size_t n, proto_message *out) {
  uint32_t first = s->fields.n;
  TRY(deeper(s, p));
  TRY(push_fields(s, p, n));
  *out = (proto_message){first, s->fields.n - first};
  return 0;
}

/* Only a field of wire type LENGTH can be a message. */
int proto_open_field(proto_source *s, proto_field f, proto_message *out) {
  assert(f.wire == PROTO_LENGTH);
  return proto_open(s, f.p, (size_t)f.value, out);
}

/* Merging is concatenation: later fields count over earlier ones where one is wanted. */
int proto_open_sub(proto_source *s, proto_message in, uint32_t number, proto_message *out) {
  uint32_t first = s->fields.n, at = in.first;
  proto_field f;
  TRY(deeper(s, s->base));
  while (proto_next(s, in, number, PROTO_LENGTH, &at, &f)) TRY(push_fields(s, f.p, (size_t)f.value));
  *out = (proto_message){first, s->fields.n - first};
  return 0;
}

/* Messages are closed in the opposite order of opening; their fields are the top of the stack. */
void proto_close(proto_source *s, proto_message m) {
  assert(s->depth > 0 && m.first + m.n == s->fields.n);
  s->depth--;
  s->fields.n = m.first;
}

/* --- asking --- */

/* The next field of this number at or behind *at, which is moved past it. In the order of the message. */
bool proto_next(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire, uint32_t *at,
                proto_field *out) {
  assert(*at >= m.first);
  for (; *at < m.first + m.n; ++*at) {
    const proto_field *f = &s->fields.items[*at];
    if (f->number != number || f->wire != wire) continue;
    ++*at;
    *out = *f;
    return true;
  }
  return false;
}

/* From the end: the last occurrence of a singular field counts. */
bool proto_find(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire, proto_field *out) {
  for (uint32_t i = m.n; i-- > 0;) {
    const proto_field *f = &s->fields.items[m.first + i];
    if (f->number != number || f->wire != wire) continue;
    *out = *f;
    return true;
  }
  return false;
}

/* How often the field is there, by this wire type: one of another type is not the field that is meant. */
uint32_t proto_count(const proto_source *s, proto_message m, uint32_t number, proto_wire_type wire) {
  uint32_t n = 0;
  for (uint32_t i = m.first; i < m.first + m.n; i++)
    n += s->fields.items[i].number == number && s->fields.items[i].wire == wire;
  return n;
}

/* A varint as it is: enums and bools too. */
int64_t proto_int(const proto_source *s, proto_message m, uint32_t number) {
  proto_field f;
  return proto_find(s, m, number, PROTO_VARINT, &f) ? (int64_t)f.value : 0;
}

/* 0 where the field is missing, as for all numbers of a message. The last one counts where there are several. */
double proto_double(const proto_source *s, proto_message m, uint32_t number) {
  proto_field f;
  double v = 0;
  if (proto_find(s, m, number, PROTO_FIXED64, &f)) memcpy(&v, &f.value, sizeof v);
  return v;
}

/* The same of 32 bits. */
float proto_float(const proto_source *s, proto_message m, uint32_t number) {
  proto_field f;
  float v = 0;
  if (!proto_find(s, m, number, PROTO_FIXED32, &f)) return 0;
  uint32_t bits = (uint32_t)f.value;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* Points into the message: it lives as long as the source. */
base_slice proto_bytes(const proto_source *s, proto_message m, uint32_t number) {
  proto_field f;
  if (!proto_find(s, m, number, PROTO_LENGTH, &f)) return (base_slice){NULL, 0};
  return (base_slice){(const char *)f.p, (size_t)f.value};
}

/* Fields of other wire types are passed over. */
int proto_list(proto_source *s, proto_message m, uint32_t number, uint32_t *from) {
  *from = s->numbers.n;
  for (uint32_t i = m.first; i < m.first + m.n; i++) {
    proto_field f = s->fields.items[i];
    if (f.number != number) continue;
    if (f.wire == PROTO_VARINT && !BASE_VEC_PUSH(s->alloc, &s->numbers, (int64_t)f.value)) return proto_no_memory(s);
    if (f.wire != PROTO_LENGTH) continue;
    for (const uint8_t *p = f.p, *end = f.p + f.value; p < end;) {
      const uint8_t *at = p;
      uint64_t v;
      p = take_varint(p, end, &v);
      if (!p) return proto_fail(s, at, XLAC_E_BAD_PROTO, "a number in a list is malformed or cut short");
      if (!BASE_VEC_PUSH(s->alloc, &s->numbers, (int64_t)v)) return proto_no_memory(s);
    }
  }
  return 0;
}

/* --- writing --- */

/* Returns how many bytes it has, at least one. */
static size_t encode_varint(uint64_t v, char out[10]) {
  size_t n = 0;
  for (; v >= 0x80; v >>= 7) out[n++] = (char)(v | 0x80);
  out[n++] = (char)v;
  return n;
}

/*   300    0xAC 0x02 */
void proto_put_varint(base_text *out, uint64_t v) {
  char bytes[10];
  size_t n = encode_varint(v, bytes);
  assert(n >= 1 && n <= sizeof bytes);
  base_put(out, bytes, n);
}

/*   field 3, LENGTH    3 << 3 | 2 = 0x1A */
static void put_tag(base_text *out, uint32_t number, proto_wire_type wire) {
  assert(number > 0);
  proto_put_varint(out, (uint64_t)number << 3 | wire);
}

/* For fields whose presence says something. */
void proto_put_int_always(base_text *out, uint32_t number, int64_t v) {
  put_tag(out, number, PROTO_VARINT);
  proto_put_varint(out, (uint64_t)v);
}

/* A zero is what a missing field means, and is left out. */
void proto_put_int(base_text *out, uint32_t number, int64_t v) {
  if (v != 0) proto_put_int_always(out, number, v);
}

/* Little-endian. */
static void put_fixed(base_text *out, uint64_t v, size_t n) {
  for (size_t i = 0; i < n; i++) base_putc(out, (char)(v >> (8 * i)));
}

/* -0 has a bit set and is written. */
void proto_put_double(base_text *out, uint32_t number, double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (bits == 0) return;
  put_tag(out, number, PROTO_FIXED64);
  put_fixed(out, bits, 8);
}

/* Compared by bits: -0 is not zero, and is written. */
void proto_put_float(base_text *out, uint32_t number, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (bits == 0) return;
  put_tag(out, number, PROTO_FIXED32);
  put_fixed(out, bits, 4);
}

/* Tag, length, bytes. */
void proto_put_bytes(base_text *out, uint32_t number, const char *p, size_t n) {
  if (n == 0) return;
  put_tag(out, number, PROTO_LENGTH);
  proto_put_varint(out, n);
  base_put(out, p, n);
}

/* Packed: one field of varints without tags. */
void proto_put_list(base_text *out, uint32_t number, const int64_t *v, uint32_t n) {
  if (n == 0) return;
  size_t begin = proto_begin(out, number);
  for (uint32_t i = 0; i < n; i++) proto_put_varint(out, (uint64_t)v[i]);
  proto_end(out, begin);
}

/* Most messages are shorter than 128 bytes, so room for one byte of length is left and longer ones are moved. */
size_t proto_begin(base_text *out, uint32_t number) {
  put_tag(out, number, PROTO_LENGTH);
  base_putc(out, 0);
  return out->n;
}

/* Writes the length into the byte that was left, moving the message where it needs more. */
void proto_end(base_text *out, size_t begin) {
  char bytes[10];
  if (out->failed) return;
  assert(begin > 0 && out->n >= begin);
  size_t n = out->n - begin, more = encode_varint(n, bytes) - 1;
  for (size_t i = 0; i < more; i++) base_putc(out, 0);
  if (out->failed) return;
  if (more && n) memmove(out->s + begin + more, out->s + begin, n);
  memcpy(out->s + begin - 1, bytes, more + 1);
}
