/* The numbers, strings and sections of MLIR bytecode. */
#include "bytecode.h"

#include <stdio.h>

int bc_fail(const bc_cursor *c, base_code code, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  assert(c->p >= c->r->base && c->p <= c->r->end);
  return base_fail(c->r->err, code, "byte %zu: %s", (size_t)(c->p - c->r->base), what);
}

int bc_no_memory(bc_reader *r) {
  return base_oom(r->err, "reading bytecode");
}

int bc_byte(bc_cursor *c, uint8_t *out) {
  if (c->p == c->end) return BC_BAD(c, "expected a byte, found the end");
  *out = *c->p++;
  return 0;
}

/* The zeros at the low end of the first byte count the bytes that follow. */
int bc_varint(bc_cursor *c, uint64_t *out) {
  if (c->p == c->end) return BC_BAD(c, "expected a number, found the end");
  unsigned first = *c->p;
  if (first & 1) {
    *out = first >> 1;
    c->p++;
    return 0;
  }
  unsigned more = first ? (unsigned)__builtin_ctz(first) : 8;
  if (bc_left(c) < more + 1) return BC_BAD(c, "a number of %u bytes is cut short", more + 1);
  uint64_t v = 0;
  for (unsigned i = 0; i < more; i++) v |= (uint64_t)c->p[1 + i] << (8 * i);
  c->p += more + 1;
  *out = more == 8 ? v : (v << 8 | first) >> (more + 1);
  return 0;
}

int bc_signed(bc_cursor *c, int64_t *out) {
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  *out = (int64_t)(v >> 1 ^ (0 - (v & 1)));
  return 0;
}

int bc_flagged(bc_cursor *c, uint64_t *out, bool *flag) {
  TRY(bc_varint(c, out));
  *flag = *out & 1;
  *out >>= 1;
  return 0;
}

int bc_count(bc_cursor *c, size_t each, uint32_t *out) {
  bc_cursor at = *c;
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  if (v > UINT32_MAX / 4 || (each && v > bc_left(c) / each))
    return BC_BAD(&at, "a count of %llu, but %zu bytes are left", (unsigned long long)v, bc_left(c));
  *out = (uint32_t)v;
  return 0;
}

int bc_bytes(bc_cursor *c, size_t n, base_slice *out) {
  if (n > bc_left(c)) return BC_BAD(c, "expected %zu bytes, found %zu", n, bc_left(c));
  *out = (base_slice){(const char *)c->p, n};
  c->p += n;
  return 0;
}

int bc_blob(bc_cursor *c, base_slice *out) {
  uint64_t n = 0;
  TRY(bc_varint(c, &n));
  return bc_bytes(c, n, out);
}

static int bc_align(bc_cursor *c) {
  bc_cursor at = *c;
  uint64_t alignment = 0;
  TRY(bc_varint(c, &alignment));
  if (alignment == 0 || alignment & (alignment - 1) || alignment > 1 << 20)
    return BC_BAD(&at, "an alignment of %llu is no power of two", (unsigned long long)alignment);
  size_t pad = (0 - (size_t)(c->p - c->r->base)) & (size_t)(alignment - 1);
  base_slice padding = {0};
  return bc_bytes(c, pad, &padding);
}

int bc_section(bc_cursor *c, uint8_t *id, base_slice *out) {
  uint64_t n = 0;
  TRY(bc_byte(c, id));
  TRY(bc_varint(c, &n));
  if (*id & 0x80) TRY(bc_align(c));
  *id &= 0x7F;
  return bc_bytes(c, n, out);
}

int bc_string(bc_cursor *c, uint64_t index, base_slice *out) {
  if (index >= c->r->n_strings) return BC_BAD(c, "string %llu of %u", (unsigned long long)index, c->r->n_strings);
  *out = c->r->strings[index];
  return 0;
}

int bc_read_string(bc_cursor *c, const base_istr **out) {
  uint64_t index = 0;
  base_slice s = {0};
  TRY(bc_varint(c, &index));
  TRY(bc_string(c, index, &s));
  const base_istr **known = &c->r->interned[index];
  if (!*known && !(*known = ir_intern(c->r->m, s.p, s.n))) return bc_no_memory(c->r);
  *out = *known;
  return 0;
}

static int bc_wide_int(bc_cursor *c, uint64_t *out) {
  uint32_t n = 0;
  TRY(bc_count(c, 1, &n));
  int64_t v = 0, top = 0;
  for (uint32_t i = 0; i < n; i++) {
    TRY(bc_signed(c, i == 0 ? &v : &top));
    if (i > 0 && top != 0 && top != -1) return BC_BAD(c, "an integer of more than 64 bits");
  }
  *out = (uint64_t)v;
  return 0;
}

int bc_int_bits(bc_cursor *c, unsigned width, uint64_t *out) {
  if (width > 64) return bc_wide_int(c, out);
  if (width <= 8) {
    uint8_t byte = 0;
    TRY(bc_byte(c, &byte));
    *out = byte;
  } else {
    int64_t v = 0;
    TRY(bc_signed(c, &v));
    *out = (uint64_t)v;
  }
  if (width < 64) *out &= (UINT64_C(1) << width) - 1;
  return 0;
}
