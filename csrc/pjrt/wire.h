/* The wire form of protocol buffers, as far as the plugin reads and writes messages: options, assignments, programs. */
#ifndef XLAC_PJRT_WIRE_H
#define XLAC_PJRT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wire_reader {
  const unsigned char *at, *end;
  bool bad;
} wire_reader;

typedef struct wire_field {
  uint32_t number, wire;
  uint64_t value;    /* varints and fixed numbers */
  wire_reader bytes; /* of lengths */
} wire_field;

static inline uint64_t wire_varint(wire_reader *r) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && r->at < r->end; shift += 7) {
    unsigned char byte = *r->at++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return value;
  }
  r->bad = true;
  return 0;
}

static inline uint64_t wire_fixed(wire_reader *r, unsigned n) {
  uint64_t value = 0;
  if ((size_t)(r->end - r->at) < n) {
    r->bad = true;
    return 0;
  }
  for (unsigned i = 0; i < n; i++) value |= (uint64_t)r->at[i] << (8 * i);
  r->at += n;
  return value;
}

/* The next field; false at the end, and where the bytes are not a message. */
static inline bool wire_next(wire_reader *r, wire_field *f) {
  if (r->bad || r->at == r->end) return false;
  uint64_t tag = wire_varint(r);
  *f = (wire_field){.number = (uint32_t)(tag >> 3), .wire = (uint32_t)(tag & 7)};
  if (f->wire == 0) {
    f->value = wire_varint(r);
  } else if (f->wire == 1 || f->wire == 5) {
    f->value = wire_fixed(r, f->wire == 1 ? 8 : 4);
  } else if (f->wire == 2) {
    uint64_t n = wire_varint(r);
    r->bad = r->bad || n > (size_t)(r->end - r->at);
    if (r->bad) return false;
    f->bytes = (wire_reader){r->at, r->at + n, false};
    r->at += n;
  } else {
    r->bad = true;
  }
  return !r->bad;
}

/* At most 10 bytes; how many. */
static inline size_t wire_put_varint(unsigned char *at, uint64_t value) {
  size_t n = 0;
  for (; value >= 0x80; value >>= 7) at[n++] = (unsigned char)(value | 0x80);
  at[n++] = (unsigned char)value;
  return n;
}

/* The head of field `number` with n bytes that follow: at most 15 bytes. */
static inline size_t wire_put_head(unsigned char *at, uint32_t number, size_t n) {
  size_t used = wire_put_varint(at, (uint64_t)number << 3 | 2);
  return used + wire_put_varint(at + used, n);
}

#endif
