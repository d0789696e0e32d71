/* The container of MLIR bytecode: numbers, strings and sections, and everything that comes before the IR: strings,
 * dialects, op names, and where attributes, types and properties lie.
 *
 *   4D 4C EF 52  version  producer\0  { section: id, length, [alignment, padding], data }...
 * Nothing that the file says is trusted: counts are compared with the bytes that are left before memory is asked
 * for, and indices with the tables that they point into. */
#include "bytecode.h"

#include <stdio.h>

/* ---- The numbers, strings and sections of MLIR bytecode. */

/*   byte 217: type 12 of 9
 *
 * The place is the cursor's, counted from the beginning of the file. */
int bc_fail(const bc_cursor *c, base_code code, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  assert(c->p >= c->r->base && c->p <= c->r->end);
  return base_fail(c->r->err, code, "byte %zu: %s", (size_t)(c->p - c->r->base), what);
}

/* All that reads bytecode says it in these words. */
int bc_no_memory(bc_reader *r) {
  return base_oom(r->err, "reading bytecode");
}

/* Not a number: flags and masks are single bytes. */
int bc_byte(bc_cursor *c, uint8_t *out) {
  assert(c->p <= c->end);
  if (c->p == c->end) return BC_BAD(c, "expected a byte, found the end");
  *out = *c->p++;
  return 0;
}

/* The zeros at the low end of the first byte count the bytes that follow. A first byte of 0 means eight more. The
 * bits behind the zeros are the lowest of the number. */
int bc_varint(bc_cursor *c, uint64_t *out) {
  assert(c->p <= c->end);
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

/*   0, -1, 1, -2 are 0, 1, 2, 3
 *
 * Zigzag, so that small negative numbers are short. */
int bc_signed(bc_cursor *c, int64_t *out) {
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  *out = (int64_t)(v >> 1 ^ (0 - (v & 1)));
  return 0;
}

/* A number and a flag in its lowest bit. */
int bc_flagged(bc_cursor *c, uint64_t *out, bool *flag) {
  TRY(bc_varint(c, out));
  *flag = *out & 1;
  *out >>= 1;
  return 0;
}

/* Refuses what the bytes that are left can't hold; the error points at the count, not behind it. */
int bc_count(bc_cursor *c, size_t each, uint32_t *out) {
  bc_cursor at = *c;
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  if (v > UINT32_MAX / 4 || (each && v > bc_left(c) / each))
    return BC_BAD(&at, "a count of %llu, but %zu bytes are left", (unsigned long long)v, bc_left(c));
  *out = (uint32_t)v;
  return 0;
}

/* Nothing is copied. */
int bc_bytes(bc_cursor *c, size_t n, base_slice *out) {
  if (n > bc_left(c)) return BC_BAD(c, "expected %zu bytes, found %zu", n, bc_left(c));
  *out = (base_slice){(const char *)c->p, n};
  c->p += n;
  return 0;
}

/*   length, bytes */
int bc_blob(bc_cursor *c, base_slice *out) {
  uint64_t n = 0;
  TRY(bc_varint(c, &n));
  return bc_bytes(c, n, out);
}

/* Alignment is relative to the beginning of the file; the padding's bytes may be anything. */
static int bc_align(bc_cursor *c) {
  bc_cursor at = *c;
  uint64_t alignment = 0;
  TRY(bc_varint(c, &alignment));
  if (alignment == 0 || alignment & (alignment - 1) || alignment > 1 << 20)
    return BC_BAD(&at, "an alignment of %llu is not a power of two", (unsigned long long)alignment);
  size_t pad = (0 - (size_t)(c->p - c->r->base)) & (size_t)(alignment - 1);
  base_slice padding = {0};
  return bc_bytes(c, pad, &padding);
}

/* The high bit of the id says that an alignment follows. */
int bc_section(bc_cursor *c, uint8_t *id, base_slice *out) {
  uint64_t n = 0;
  TRY(bc_byte(c, id));
  TRY(bc_varint(c, &n));
  if (*id & 0x80) TRY(bc_align(c));
  *id &= 0x7F;
  return bc_bytes(c, n, out);
}

/* The string of that number; no string ends in a zero. */
int bc_string(bc_cursor *c, uint64_t index, base_slice *out) {
  assert(c->r->strings || c->r->n_strings == 0);
  if (index >= c->r->n_strings) return BC_BAD(c, "string %llu of %u", (unsigned long long)index, c->r->n_strings);
  *out = c->r->strings[index];
  return 0;
}

/* Interned once for each string of the table, when it is first asked for. */
int bc_read_string(bc_cursor *c, const base_istr **out) {
  uint64_t index = 0;
  base_slice s = {0};
  TRY(bc_varint(c, &index));
  TRY(bc_string(c, index, &s));
  assert(index < c->r->n_strings);
  const base_istr **known = &c->r->interned[index];
  if (!*known && !(*known = ir_intern(c->r->m, s.p, s.n))) return bc_no_memory(c->r);
  *out = *known;
  return 0;
}

/* Integers wider than 64 bits come as words; those above the lowest may only repeat its sign. */
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

/* APInts: one byte up to 8 bits, else a signed varint; the bits beyond the width are cleared. */
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

/* Each string ends with a zero byte, which is not part of it. */
static int bc_read_strings(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_STRING]);
  TRY(bc_count(&c, 1, &r->n_strings));
  r->strings = BASE_ARRAY(&r->scratch, base_slice, r->n_strings + 1u);
  r->interned = base_arena_zalloc(&r->scratch, (r->n_strings + 1u) * sizeof *r->interned);
  if (!r->strings || !r->interned) return bc_no_memory(r);
  /* Lengths come last string first, so that the strings themselves begin where the last length ends. */
  for (uint32_t i = r->n_strings; i-- > 0;) {
    uint64_t n = 0;
    TRY(bc_varint(&c, &n));
    if (n == 0 || n > bc_left(&c)) return BC_BAD(&c, "string %u is said to have %llu bytes", i, (unsigned long long)n);
    r->strings[i].n = (size_t)n;
    assert(r->strings[i].n > 0);
  }
  for (uint32_t i = 0; i < r->n_strings; i++) {
    TRY(bc_bytes(&c, r->strings[i].n, &r->strings[i]));
    if (r->strings[i].p[--r->strings[i].n] != 0) return BC_BAD(&c, "string %u does not end with a zero byte", i);
  }
  return base_interner_reserve(&r->m->strings, r->n_strings) ? 0 : bc_no_memory(r);
}

/* --- dialects and op names --- */

/* Entries of any other dialect can only be read where they are text. */
static bc_dialect bc_known_dialect(base_slice name) {
  if (base_slice_is(name, "builtin")) return BC_BUILTIN;
  if (base_slice_is(name, "vhlo")) return BC_VHLO;
  return base_slice_is(name, "sdy") ? BC_SDY : BC_OTHER;
}

/* From version 1 on a dialect may have a version of its own, in a section inside; it is read past. */
static int bc_read_dialect(bc_cursor *c, bc_dialect_name *d) {
  uint64_t name = 0;
  bool versioned = false;
  if (c->r->container < BC_DIALECT_VERSIONS) {
    TRY(bc_varint(c, &name));
  } else {
    TRY(bc_flagged(c, &name, &versioned));
  }
  TRY(bc_string(c, name, &d->name));
  d->known = (uint8_t)bc_known_dialect(d->name);
  if (!versioned) return 0;
  uint8_t id = 0;
  base_slice version = {0};
  TRY(bc_section(c, &id, &version));
  return id == BC_S_DIALECT_VERSIONS ? 0 : BC_BAD(c, "expected a dialect's version, found section %u", id);
}

/* Names of other dialects are joined here: "sdy" and "mesh" to "sdy.mesh". */
static int bc_other_op(bc_reader *r, bc_op_name *op) {
  base_text t;
  base_text_init(&t, r->m->alloc);
  base_slice dialect = r->dialects[op->dialect].name;
  base_put(&t, dialect.p, dialect.n);
  base_putc(&t, '.');
  base_put(&t, op->name.p, op->name.n);
  op->full = t.failed ? NULL : ir_intern(r->m, t.s, t.n);
  base_text_free(&t);
  if (!op->full) return bc_no_memory(r);
  ir_opcode opcode = ir_opcode_from_mlir(op->full->s, op->full->n);
  op->opcode = opcode == IR_OP_INVALID ? IR_OP_UNREGISTERED : (uint16_t)opcode;
  return 0;
}

/* Words with blanks between, as ops.def has them. */
static uint32_t bc_count_words(const char *names) {
  base_slice word = {0};
  uint32_t n = 0;
  while (bc_next_word(&names, &word)) n++;
  return n;
}

/* `registered` says whether properties come in the dialect's own encoding. */
static int bc_read_op_name(bc_cursor *c, uint32_t dialect) {
  assert(dialect < c->r->n_dialects);
  bc_reader *r = c->r;
  bc_op_name *op = &r->op_names[r->n_op_names];
  uint64_t name = 0;
  *op = (bc_op_name){.dialect = dialect, .registered = true};
  if (r->container < BC_PROPERTIES) {
    TRY(bc_varint(c, &name));
  } else {
    TRY(bc_flagged(c, &name, &op->registered));
  }
  TRY(bc_string(c, name, &op->name));
  if (r->dialects[dialect].known == BC_VHLO) {
    op->row = bc_row_by_name(op->name.p, op->name.n);
    op->opcode = op->row ? op->row->opcode : IR_OP_INVALID;
    op->n_attrs = op->row ? bc_count_words(op->row->attrs) : 0;
  } else if (r->dialects[dialect].known == BC_BUILTIN) {
    op->cast = base_slice_is(op->name, "unrealized_conversion_cast");
  } else {
    TRY(bc_other_op(r, op));
  }
  r->n_op_names++;
  return 0;
}

/* The number of a dialect, in range. */
static int bc_dialect_at(bc_cursor *c, uint32_t *out) {
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  if (v >= c->r->n_dialects) return BC_BAD(c, "dialect %llu of %u", (unsigned long long)v, c->r->n_dialects);
  *out = (uint32_t)v;
  return 0;
}

/* Groups by dialect until the section ends. */
static int bc_read_op_names(bc_cursor *c) {
  bc_reader *r = c->r;
  uint64_t n = 0;
  if (r->container >= BC_ELIDED_LOCATIONS) TRY(bc_varint(c, &n)); /* only a hint of how many there are */
  r->op_names = BASE_ARRAY(&r->scratch, bc_op_name, bc_left(c) + 1);
  if (!r->op_names) return bc_no_memory(r);
  while (c->p < c->end) {
    uint32_t dialect = 0, names = 0;
    TRY(bc_dialect_at(c, &dialect));
    TRY(bc_count(c, 1, &names));
    for (uint32_t i = 0; i < names; i++) TRY(bc_read_op_name(c, dialect));
  }
  return 0;
}

/*   number of dialects, each one's name and version; then the names of their ops, dialect by dialect */
static int bc_read_dialects(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_DIALECT]);
  TRY(bc_count(&c, 1, &r->n_dialects));
  r->dialects = BASE_ARRAY(&r->scratch, bc_dialect_name, r->n_dialects + 1u);
  if (!r->dialects) return bc_no_memory(r);
  for (uint32_t i = 0; i < r->n_dialects; i++) TRY(bc_read_dialect(&c, &r->dialects[i]));
  return bc_read_op_names(&c);
}

/* --- where attributes and types lie --- */

/* Entries come in groups by dialect: sizes here, bytes in the other section, one after another. `custom` means the
 * dialect's own encoding; else an entry is MLIR text. */
static int bc_read_places(bc_cursor *c, bc_cursor *data, uint32_t n, bc_entry *entries) {
  for (uint32_t i = 0; i < n;) {
    uint32_t dialect = 0, in_group = 0;
    TRY(bc_dialect_at(c, &dialect));
    TRY(bc_count(c, 1, &in_group));
    if (in_group > n - i) return BC_BAD(c, "a group of %u entries where %u are left", in_group, n - i);
    for (uint32_t j = 0; j < in_group; j++, i++) {
      uint64_t size = 0;
      base_slice s = {0};
      entries[i] = (bc_entry){.dialect = dialect};
      TRY(bc_flagged(c, &size, &entries[i].custom));
      if (size > bc_left(data)) return BC_BAD(c, "entry %u goes beyond its section", i);
      TRY(bc_bytes(data, (size_t)size, &s));
      if (size > UINT32_MAX) return bc_fail(data, XLAC_E_TOO_LARGE, "entry %u has over 4 GB", i);
      entries[i].p = (const uint8_t *)s.p;
      entries[i].n = (uint32_t)s.n;
    }
  }
  return 0;
}

/*   number of attributes, number of types; then for each dialect: how many, and each one's size
 *
 * Only places are noted here. An entry is read when something refers to it, since entries refer to later ones. */
static int bc_read_entries(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_OFFSETS]);
  bc_cursor data = bc_cursor_on(r, r->sections[BC_S_ENTRIES]);
  TRY(bc_count(&c, 1, &r->n_attrs));
  TRY(bc_count(&c, 1, &r->n_types));
  r->attrs = BASE_ARRAY(&r->scratch, bc_entry, r->n_attrs + 1u);
  r->types = BASE_ARRAY(&r->scratch, bc_entry, r->n_types + 1u);
  if (!r->attrs || !r->types) return bc_no_memory(r);
  TRY(bc_read_places(&c, &data, r->n_attrs, r->attrs));
  return bc_read_places(&c, &data, r->n_types, r->types);
}

/* Blobs that ops refer to by number, from version 5 on. */
static int bc_read_properties(bc_reader *r) {
  if (r->container < BC_PROPERTIES || !r->sections[BC_S_PROPERTIES].p) return 0;
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_PROPERTIES]);
  TRY(bc_count(&c, 1, &r->n_properties));
  r->properties = base_arena_zalloc(&r->scratch, (r->n_properties + 1u) * sizeof *r->properties);
  if (!r->properties) return bc_no_memory(r);
  for (uint32_t i = 0; i < r->n_properties; i++) TRY(bc_blob(&c, &r->properties[i].data));
  return 0;
}

/* --- header and sections --- */

/* "StableHLO_v1.17.0" to 1017; 0 where the producer is another one. */
static unsigned bc_producer_version(base_slice producer) {
  unsigned major = 0, minor = 0, *at = &major;
  if (producer.n < 12 || memcmp(producer.p, "StableHLO_v", 11) != 0) return 0;
  for (size_t i = 11; i < producer.n; i++) {
    char ch = producer.p[i];
    if (ch == '.' && at == &minor) break;
    if (ch == '.') {
      at = &minor;
    } else if (ch < '0' || ch > '9' || *at > 999) {
      return 0;
    } else {
      *at = *at * 10 + (unsigned)(ch - '0');
    }
  }
  return BC_V(major, minor);
}

/* Says which version the artifact is of, and how to get one that can be read. */
static int bc_refuse_newer(const bc_cursor *c, const char *what) {
  base_slice producer = c->r->producer;
  int shown = producer.n < 60 ? (int)producer.n : 60;
  return base_hint(c->r->err,
                   BC_BAD(c, "%s; the artifact is of %.*s, and xlac reads StableHLO up to %d.%d", what, shown,
                          producer.p, BC_NOW / 1000, BC_NOW % 1000),
                   "serialize the program again for target version %d.%d.0 or older", BC_NOW / 1000, BC_NOW % 1000);
}

/* The producer tells the version of StableHLO: "StableHLO_v1.17.0". */
static int bc_read_header(bc_cursor *c) {
  bc_reader *r = c->r;
  base_slice magic = {0};
  uint64_t version = 0;
  TRY(bc_bytes(c, 4, &magic));
  if (!text_is_bytecode(magic.p, magic.n)) return c->p -= 4, BC_BAD(c, "expected the magic number of MLIR bytecode");
  bc_cursor at = *c;
  TRY(bc_varint(c, &version));
  const uint8_t *zero = memchr(c->p, 0, bc_left(c));
  if (!zero) return BC_BAD(c, "the producer's name does not end");
  r->producer = (base_slice){(const char *)c->p, (size_t)(zero - c->p)};
  c->p = zero + 1;
  if (bc_producer_version(r->producer) > BC_NOW) return bc_refuse_newer(&at, "its version is too new");
  if (version > BC_CONTAINER_NOW) return bc_refuse_newer(&at, "its bytecode format is too new");
  r->container = (unsigned)version;
  return 0;
}

/* Sections come in any order, each once; unknown ones are errors, since a reader may not skip them. */
static int bc_read_sections(bc_cursor *c) {
  bc_reader *r = c->r;
  while (c->p < c->end) {
    bc_cursor at = *c;
    uint8_t id = 0;
    base_slice data = {0};
    TRY(bc_section(c, &id, &data));
    if (id >= BC_S_COUNT) return BC_BAD(&at, "an unknown section, %u", id);
    if (r->sections[id].p) return BC_BAD(&at, "section %u is there twice", id);
    r->sections[id] = data;
  }
  static const uint8_t needed[] = {BC_S_STRING, BC_S_DIALECT, BC_S_ENTRIES, BC_S_OFFSETS, BC_S_IR};
  for (size_t i = 0; i < sizeof needed; i++)
    if (!r->sections[needed[i]].p) return BC_BAD(c, "section %u is missing", needed[i]);
  return 0;
}

/* Sections in the order in which one needs another. */
int bc_read_container(bc_reader *r) {
  assert(r->m && r->base <= r->end);
  bc_cursor c = {r, r->base, r->end};
  TRY(bc_read_header(&c));
  TRY(bc_read_sections(&c));
  TRY(bc_read_strings(r));
  TRY(bc_read_dialects(r));
  TRY(bc_read_entries(r));
  return bc_read_properties(r);
}
