/* The sections of MLIR bytecode that come before its IR: strings, dialects, op names, and where attributes, types and
 * properties lie. */
#include "bytecode.h"

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
  }
  for (uint32_t i = 0; i < r->n_strings; i++) {
    TRY(bc_bytes(&c, r->strings[i].n, &r->strings[i]));
    if (r->strings[i].p[--r->strings[i].n] != 0) return BC_BAD(&c, "string %u does not end with a zero byte", i);
  }
  return base_interner_reserve(&r->m->strings, r->n_strings) ? 0 : bc_no_memory(r);
}

/* --- dialects and op names --- */

static bc_dialect bc_known_dialect(base_slice name) {
  if (base_slice_is(name, "builtin")) return BC_BUILTIN;
  if (base_slice_is(name, "vhlo")) return BC_VHLO;
  return base_slice_is(name, "sdy") ? BC_SDY : BC_OTHER;
}

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

static uint32_t bc_count_words(const char *names) {
  base_slice word = {0};
  uint32_t n = 0;
  while (bc_next_word(&names, &word)) n++;
  return n;
}

static int bc_read_op_name(bc_cursor *c, uint32_t dialect) {
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

static int bc_dialect_at(bc_cursor *c, uint32_t *out) {
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  if (v >= c->r->n_dialects) return BC_BAD(c, "dialect %llu of %u", (unsigned long long)v, c->r->n_dialects);
  *out = (uint32_t)v;
  return 0;
}

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

static int bc_read_dialects(bc_reader *r) {
  bc_cursor c = bc_cursor_on(r, r->sections[BC_S_DIALECT]);
  TRY(bc_count(&c, 1, &r->n_dialects));
  r->dialects = BASE_ARRAY(&r->scratch, bc_dialect_name, r->n_dialects + 1u);
  if (!r->dialects) return bc_no_memory(r);
  for (uint32_t i = 0; i < r->n_dialects; i++) TRY(bc_read_dialect(&c, &r->dialects[i]));
  return bc_read_op_names(&c);
}

/* --- where attributes and types lie --- */

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

static int bc_refuse_newer(const bc_cursor *c, const char *what) {
  base_slice producer = c->r->producer;
  int shown = producer.n < 60 ? (int)producer.n : 60;
  return base_hint(c->r->err,
                   BC_BAD(c, "%s; the artifact is of %.*s, and xlac reads StableHLO up to %d.%d", what, shown,
                          producer.p, BC_NOW / 1000, BC_NOW % 1000),
                   "serialize the program again for target version %d.%d.0 or older", BC_NOW / 1000, BC_NOW % 1000);
}

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

int bc_read_container(bc_reader *r) {
  bc_cursor c = {r, r->base, r->end};
  TRY(bc_read_header(&c));
  TRY(bc_read_sections(&c));
  TRY(bc_read_strings(r));
  TRY(bc_read_dialects(r));
  TRY(bc_read_entries(r));
  return bc_read_properties(r);
}
