/* Changes of a protobuf message that know its wire format: a field somewhere in the tree is dropped, repeated, given
 * another value, number or name, and the lengths around it are made right. */
#include "fuzz.h"

enum { WIRE_MAX_FIELDS = 4096, WIRE_MAX_DEPTH = 12 };

typedef struct wire_field {
  size_t at, n;        /* the whole field */
  size_t body, body_n; /* of a length-delimited one its contents; of others the value */
  uint32_t number, type;
  uint64_t value; /* of a varint */
} wire_field;

static bool wire_varint(const uint8_t *p, size_t n, size_t *at, uint64_t *out) {
  *out = 0;
  for (unsigned shift = 0; *at < n && shift < 64; shift += 7) {
    uint8_t byte = p[(*at)++];
    *out |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

static size_t wire_put(uint8_t *to, uint64_t v) {
  size_t n = 0;
  for (; v > 127; v >>= 7) to[n++] = (uint8_t)(v | 128);
  to[n++] = (uint8_t)v;
  return n;
}

/* The fields of the message in [at, end), or 0 where it is none. */
static uint32_t wire_split(const uint8_t *p, size_t at, size_t end, wire_field *fields) {
  uint32_t n = 0;
  while (at < end && n < WIRE_MAX_FIELDS) {
    wire_field f = {.at = at};
    uint64_t key, length = 0;
    if (!wire_varint(p, end, &at, &key) || key >> 3 == 0 || key >> 3 > 100000) return 0;
    f.number = (uint32_t)(key >> 3);
    f.type = (uint32_t)(key & 7);
    f.body = at;
    if (f.type == 0) {
      if (!wire_varint(p, end, &at, &f.value)) return 0;
      length = at - f.body;
      at = f.body;
    } else if (f.type == 2) {
      if (!wire_varint(p, end, &at, &length)) return 0;
      f.body = at;
    } else if (f.type == 1 || f.type == 5) {
      length = f.type == 1 ? 8 : 4;
    } else {
      return 0;
    }
    if (length > end - at) return 0;
    f.body_n = (size_t)length;
    at += (size_t)length;
    f.n = at - f.at;
    fields[n++] = f;
  }
  return n;
}

/* A length-delimited field's bytes: names that text cannot hold, references to nothing, and others. */
static size_t wire_draw_bytes(uint8_t *to, size_t cap, uint64_t *state) {
  static const char *const names[] = {"",       "a b",    "a\nb", "a\"b",     "a{b",   "\xff\xfe", "a\\",
                                      "*:*",    "a,b",    "%a",   "1a",       "a.b-c", "main",     "ROOT",
                                      "f32[2]", "a=b",    "//a",  "\xc3\xa9", "-1",    "99999",    "a/*",
                                      "(a)",    "x\x01y", "add",  "kLoop",    "a\x7f", "parameter"};
  uint32_t which = fuzz_below(state, sizeof names / sizeof *names + 2);
  if (which == 0) return to[0] = 0, 1;
  if (which == 1) {
    size_t n = 300 < cap ? 300 : cap;
    memset(to, 'x', n);
    return n;
  }
  size_t n = strlen(names[which - 2]);
  memcpy(to, names[which - 2], n);
  return n;
}

static uint64_t wire_draw_number(uint64_t old, uint64_t *state) {
  static const uint64_t odd[] = {0,          1,
                                 2,          3,
                                 4,          7,
                                 31,         127,
                                 INT32_MAX,  1u << 31,
                                 UINT32_MAX, UINT64_C(1) << 32,
                                 INT64_MAX,  UINT64_C(1) << 63,
                                 UINT64_MAX, UINT64_MAX - 1};
  uint32_t which = fuzz_below(state, sizeof odd / sizeof *odd + 4);
  if (which < 2) return old + 1;
  if (which < 4) return old - 1;
  return odd[which - 4];
}

/* Packed numbers, as lists of ids are: one is there twice, many times, gone, or another. */
static size_t wire_draw_packed(uint8_t *to, size_t cap, const uint8_t *old, size_t n, uint64_t *state) {
  static const uint32_t times[] = {0, 1, 2, 2, 31};
  size_t at = 0, size = 0;
  uint64_t v;
  while (at < n && size + 400 < cap) {
    if (!wire_varint(old, n, &at, &v)) break;
    if (fuzz_below(state, 4) == 0) v = wire_draw_number(v, state);
    for (uint32_t i = times[fuzz_below(state, 5)]; i > 0; i--) size += wire_put(to + size, v);
  }
  return size;
}

/* Writes a field anew with other contents; at most 20 bytes more than `n`. */
static size_t wire_write(uint8_t *to, uint32_t number, uint32_t type, const void *bytes, size_t n, uint64_t value) {
  size_t at = wire_put(to, (uint64_t)number << 3 | type);
  if (type == 0) return at + wire_put(to + at, value);
  if (type == 2) at += wire_put(to + at, n);
  if (n) memcpy(to + at, bytes, n);
  return at + n;
}

static void wire_repeat(fuzz_file *buf, const wire_field *f, uint64_t *state) {
  static const uint32_t times[] = {1, 1, 1, 2, 30};
  for (uint32_t i = times[fuzz_below(state, 5)]; i > 0; i--) fuzz_splice(buf, f->at, 0, buf->data + f->at, f->n);
}

static void wire_swap(fuzz_file *buf, const wire_field *a, const wire_field *b) {
  if (a->at == b->at) return;
  if (a->at > b->at) {
    const wire_field *t = a;
    a = b;
    b = t;
  }
  uint8_t *first = malloc(a->n + 1);
  if (!first) return;
  memcpy(first, buf->data + a->at, a->n);
  fuzz_splice(buf, b->at, b->n, first, a->n);
  free(first);
  /* b's bytes are gone from the buffer: this makes the two the same, which is as good. */
}

/* Changes one field of a message, f, whose neighbours are fields[0..n). */
static void wire_change(fuzz_file *buf, const wire_field *fields, uint32_t n, uint32_t i, uint64_t *state) {
  static const uint32_t numbers[] = {1, 2, 3, 4, 5, 8, 15, 20, 35, 38, 50, 77, 90};
  const wire_field *f = &fields[i];
  uint8_t to[512];
  size_t size = 0;
  switch (fuzz_below(state, 9)) {
    case 0:
      fuzz_splice(buf, f->at, f->n, NULL, 0);
      return;
    case 1:
    case 2:
      wire_repeat(buf, f, state);
      return;
    case 3:
      wire_swap(buf, f, &fields[fuzz_below(state, n)]);
      return;
    case 4: /* under another number */
      size = wire_put(to, (uint64_t)numbers[fuzz_below(state, sizeof numbers / sizeof *numbers)] << 3 | f->type);
      fuzz_splice(buf, f->at, wire_put(to + 16, (uint64_t)f->number << 3 | f->type), to, size);
      return;
    default:
      break;
  }
  if (f->type == 0) {
    size = wire_write(to, f->number, 0, NULL, 0, wire_draw_number(f->value, state));
  } else if (f->type == 2) {
    uint8_t bytes[480];
    bool packed = f->body_n < 40 && fuzz_below(state, 3) == 0;
    size_t length = packed ? wire_draw_packed(bytes, sizeof bytes, buf->data + f->body, f->body_n, state)
                           : wire_draw_bytes(bytes, sizeof bytes, state);
    size = wire_write(to, f->number, 2, bytes, length, 0);
  } else {
    uint8_t bytes[8];
    memset(bytes, fuzz_below(state, 2) ? 0xff : 0, sizeof bytes);
    size = wire_write(to, f->number, f->type, bytes, f->body_n, 0);
  }
  fuzz_splice(buf, f->at, f->n, to, size);
}

/* Makes the lengths of the messages around a change right, from the innermost: fields[0..depth), whose contents grew by
 * `grown`. */
static void wire_fix_lengths(fuzz_file *buf, const wire_field *path, uint32_t depth, int64_t grown) {
  while (depth-- > 0) {
    const wire_field *f = &path[depth];
    uint8_t head[32];
    size_t n = wire_put(head, (uint64_t)f->number << 3 | f->type);
    n += wire_put(head + n, (uint64_t)((int64_t)f->body_n + grown));
    size_t before = buf->n;
    fuzz_splice(buf, f->at, f->body - f->at, head, n);
    grown += (int64_t)buf->n - (int64_t)before;
  }
}

void fuzz_mutate_wire(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  static wire_field fields[WIRE_MAX_FIELDS];
  wire_field path[WIRE_MAX_DEPTH];
  uint32_t depth = 0;
  size_t at = 0, end = buf->n;
  if (fuzz_below(state, 40) == 0) {
    fuzz_mutate_bytes(buf, other, state);
    return;
  }
  for (;;) {
    uint32_t n = wire_split(buf->data, at, end, fields);
    if (n == 0) return;
    uint32_t i = fuzz_below(state, n);
    wire_field f = fields[i];
    /* What is long and in turn a message is mostly gone into. */
    static wire_field inner[WIRE_MAX_FIELDS];
    bool is_message = f.type == 2 && f.body_n > 1 && wire_split(buf->data, f.body, f.body + f.body_n, inner) > 0;
    if (is_message && depth < WIRE_MAX_DEPTH && fuzz_below(state, 8) != 0) {
      path[depth++] = f;
      at = f.body;
      end = f.body + f.body_n;
      continue;
    }
    size_t before = buf->n;
    wire_change(buf, fields, n, i, state);
    wire_fix_lengths(buf, path, depth, (int64_t)buf->n - (int64_t)before);
    return;
  }
}
