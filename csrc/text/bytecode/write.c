/* Modules to portable artifacts: the marks and pools, then marks to bytes.
 *
 * The bytes are those of StableHLO's serializePortableArtifact up to the order of entries, which MLIR chooses by how
 * often they are used; any order reads the same. */
#include "write.h"

#include <stdio.h>

/* ---- The marks that the writer of bytecode puts down, and the pools of what they number. */

/* All that writes bytecode says it in these words. */
int bc_write_memory(bc_writer *w) {
  return base_oom(w->err, "writing bytecode");
}

/* The error names the op, or where there is none the function, and its place in the text that it came from. */
int bc_cant_write(bc_writer *w, const char *format, ...) {
  char what[400];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const ir_op *op = w->op;
  const ir_computation *f = w->function;
  const ir_mlir_info *info = op ? ir_opcode_info(op->opcode)->mlir : NULL;
  const char *name = info                                     ? info->name
                     : op && op->opcode == IR_OP_UNREGISTERED ? op->u.name->s
                     : f                                      ? f->name->s
                                                              : "builtin.module"; /* its own attributes */
  return base_fail_at(w->err, XLAC_E_BAD_PROTO,
                      op  ? op->line
                      : f ? f->line
                          : 0,
                      op  ? op->col
                      : f ? f->col
                          : 0,
                      name, "%s%s%s", op ? name : "", op ? ": " : "", what);
}

/* What a reader accepts is nested less; modules that were built may be nested more. */
int bc_write_deeper(bc_writer *w) {
  if (w->depth++ < 1000) return 0;
  return base_fail(w->err, XLAC_E_TOO_DEEP, "attributes or regions are nested over 1000 deep");
}

/* A mark and its number. */
void bc_mark(bc_writer *w, unsigned mark, uint64_t number) {
  assert(mark <= BC_MARK_END);
  base_putc(&w->marks, (char)mark);
  base_put(&w->marks, (const char *)&number, sizeof number);
}

/* The bytes at p are not copied: they must live until the file has been rendered. */
void bc_mark_data(bc_writer *w, unsigned mark, const void *p, uint64_t n, unsigned width) {
  uint64_t pointer = base_key(p);
  bc_mark(w, mark, n);
  base_put(&w->marks, (const char *)&pointer, sizeof pointer);
  base_putc(&w->marks, (char)width);
}

/* For bytes that don't live as long. */
void bc_mark_copy(bc_writer *w, const void *p, size_t n) {
  const base_istr *s = base_intern(&w->keys, p, n);
  w->marks.failed = w->marks.failed || !s;
  if (s) bc_mark_data(w, BC_MARK_BLOB, s->s, n, 0);
}

/* Pools keep their keys in one table, so a key begins with its pool and dialect. The marks from `from` on are the
 * item's; they are taken off again. *out is its number. */
int bc_pool_add(bc_writer *w, bc_pool *pool, uint32_t dialect, bool custom, size_t from, uint32_t *out) {
  assert(from <= w->marks.n || w->marks.failed);
  char head[8] = {pool->tag, (char)custom};
  memcpy(head + 2, &dialect, sizeof dialect);
  base_put(&w->marks, head, sizeof head);
  if (w->marks.failed) return bc_write_memory(w);
  const base_istr *key = base_intern(&w->keys, w->marks.s + from, w->marks.n - from);
  w->marks.n = from;
  uint64_t index = 0;
  if (!key) return bc_write_memory(w);
  if (!base_map_get(&w->known, base_key(key), &index)) {
    index = pool->items.n;
    bc_item item = {.key = key, .dialect = dialect, .custom = custom};
    if (!BASE_VEC_PUSH(w->alloc, &pool->items, item) || !base_map_set(&w->known, base_key(key), index))
      return bc_write_memory(w);
  }
  *out = (uint32_t)index;
  return 0;
}

/* An item that is no marks but bytes: strings and dialects. */
static int bc_pool_bytes(bc_writer *w, bc_pool *pool, const char *s, size_t n, uint32_t *out) {
  size_t from = w->marks.n;
  base_put(&w->marks, s, n);
  return bc_pool_add(w, pool, 0, false, from, out);
}

/* The string's number; equal strings have one. */
int bc_pool_string(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  return bc_pool_bytes(w, &w->strings, s, n, out);
}

/* The dialect's number. */
int bc_pool_dialect(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  uint32_t string = 0;
  TRY(bc_pool_string(w, s, n, &string)); /* names of dialects lie among the strings */
  return bc_pool_bytes(w, &w->dialects, s, n, out);
}

/* A mark of the string; equal strings have one number. */
int bc_mark_string(bc_writer *w, const base_istr *s) {
  uint32_t string = 0;
  TRY(bc_pool_string(w, s->s, s->n, &string));
  bc_mark(w, BC_MARK_STRING, string);
  return 0;
}

/* --- numbers --- */

/* The number of trailing zeros of the first byte says how many bytes follow. */
static void bc_put_varint(base_text *out, uint64_t v) {
  char bytes[9];
  unsigned more = 0;
  while (more < 8 && v >> (7 * (more + 1))) more++;
  if (more == 8) {
    base_putc(out, 0);
    base_put(out, (const char *)&v, sizeof v);
    return;
  }
  uint64_t shifted = (v << 1 | 1) << more;
  memcpy(bytes, &shifted, sizeof shifted); /* little-endian hosts only, as everywhere */
  base_put(out, bytes, more + 1);
}

/* Zigzag: the sign goes to the low bit. */
static void bc_put_signed(base_text *out, uint64_t v) {
  bc_put_varint(out, v << 1 ^ (0 - (v >> 63)));
}

/* Without alignment: readers here and MLIR's take both. */
static void bc_put_section(base_text *out, unsigned id, const base_text *data) {
  base_putc(out, (char)id);
  bc_put_varint(out, data->n);
  if (data->n) base_put(out, data->s, data->n);
}

/* --- rendering --- */

/* The lowest bit of a byte comes first. */
static void bc_render_bits(base_text *out, const uint8_t *p, uint64_t n) {
  bc_put_varint(out, (n + 7) / 8);
  for (uint64_t i = 0; i < n; i += 8) {
    unsigned byte = 0;
    for (uint64_t j = 0; j < 8 && i + j < n; j++) byte |= (unsigned)(p[i + j] & 1) << j;
    base_putc(out, (char)byte);
  }
}

/* Texts end with a zero byte, all others begin with their length. */
static void bc_render_data(base_text *out, unsigned mark, const char *p, uint64_t n, unsigned width) {
  assert(p || n == 0);
  if (mark == BC_MARK_BITS) {
    bc_render_bits(out, (const uint8_t *)p, n);
    return;
  }
  if (mark != BC_MARK_TEXT) bc_put_varint(out, n);
  if (mark == BC_MARK_NARROW) {
    for (uint64_t i = 0; i < n; i++) base_putc(out, (char)(p[i] & ((1u << width) - 1)));
  } else if (n) {
    base_put(out, p, n);
  }
  if (mark == BC_MARK_TEXT) base_putc(out, 0);
}

/* Numbers of pools become numbers of the file. */
static void bc_render_number(const bc_writer *w, base_text *out, unsigned mark, uint64_t v) {
  switch (mark) {
    case BC_MARK_SIGNED:
      bc_put_signed(out, v);
      break;
    case BC_MARK_BYTE:
      base_putc(out, (char)v);
      break;
    case BC_MARK_ATTR:
      bc_put_varint(out, w->attrs.items.items[v].index);
      break;
    case BC_MARK_OPTIONAL:
      bc_put_varint(out, (uint64_t)w->attrs.items.items[v].index << 1 | 1);
      break;
    case BC_MARK_TYPE:
      bc_put_varint(out, w->types.items.items[v].index);
      break;
    case BC_MARK_FLAGGED_TYPE:
      bc_put_varint(out, (uint64_t)w->types.items.items[v].index << 1 | 1);
      break;
    case BC_MARK_OP:
      bc_put_varint(out, w->op_names.items.items[v].index);
      break;
    default: /* plain numbers, strings, properties */
      bc_put_varint(out, v);
  }
}

/* Marks that bytes follow. */
static bool bc_has_data(unsigned mark) {
  return mark == BC_MARK_BLOB || mark == BC_MARK_TEXT || mark == BC_MARK_BITS || mark == BC_MARK_NARROW;
}

/* Renders marks up to the end of a section; gives where it stopped. Sections nest twice: module and function. */
static const char *bc_render(const bc_writer *w, base_text *out, const char *p, const char *end) {
  while (p < end) {
    unsigned mark = (unsigned char)*p++;
    uint64_t v = 0, pointer = 0;
    memcpy(&v, p, sizeof v);
    p += sizeof v;
    if (mark == BC_MARK_END) return p;
    if (mark == BC_MARK_BEGIN) {
      base_text inner;
      base_text_init(&inner, w->alloc);
      p = bc_render(w, &inner, p, end);
      out->failed = out->failed || inner.failed;
      if (!out->failed) bc_put_section(out, BC_S_IR, &inner);
      base_text_free(&inner);
    } else if (bc_has_data(mark)) {
      memcpy(&pointer, p, sizeof pointer);
      bc_render_data(out, mark, (const char *)(uintptr_t)pointer, v, (unsigned char)p[sizeof pointer]);
      p += sizeof pointer + 1;
    } else {
      bc_render_number(w, out, mark, v);
    }
  }
  return p;
}

/* A key ends with 8 bytes that say which pool it is of. */
static base_slice bc_key_marks(const bc_item *item) {
  return (base_slice){item->key->s, item->key->n - 8};
}

/* --- sections --- */

/* The dialect's name is among the strings: bc_pool_dialect put it there. */
static uint32_t bc_dialect_string(const bc_writer *w, uint32_t dialect) {
  base_slice name = bc_key_marks(&w->dialects.items.items[dialect]);
  for (uint32_t i = 0; i < w->strings.items.n; i++) {
    base_slice s = bc_key_marks(&w->strings.items.items[i]);
    if (s.n == name.n && memcmp(s.p, name.p, s.n) == 0) return i;
  }
  assert(false);
  return 0;
}

/* Numbers a pool's items anew, dialect by dialect. */
static void bc_group(const bc_writer *w, bc_pool *pool) {
  uint32_t next = 0;
  for (uint32_t d = 0; d < w->dialects.items.n; d++)
    for (uint32_t i = 0; i < pool->items.n; i++)
      if (pool->items.items[i].dialect == d) pool->items.items[i].index = next++;
  assert(next == pool->items.n);
}

/* Items of one dialect. */
static uint32_t bc_group_size(const bc_pool *pool, uint32_t dialect) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < pool->items.n; i++) n += pool->items.items[i].dialect == dialect;
  return n;
}

/* Dialects, then op names in groups by dialect. */
static void bc_dialect_section(const bc_writer *w, base_text *out) {
  const bc_pool *ops = &w->op_names;
  bc_put_varint(out, w->dialects.items.n);
  for (uint32_t d = 0; d < w->dialects.items.n; d++) {
    uint64_t name = bc_dialect_string(w, d);
    bc_put_varint(out, w->container >= BC_DIALECT_VERSIONS ? name << 1 : name);
  }
  if (w->container >= BC_ELIDED_LOCATIONS) bc_put_varint(out, ops->items.n);
  for (uint32_t d = 0; d < w->dialects.items.n; d++) {
    uint32_t n = bc_group_size(ops, d);
    if (n == 0) continue;
    bc_put_varint(out, d);
    bc_put_varint(out, n);
    for (uint32_t i = 0; i < ops->items.n; i++) {
      const bc_item *item = &ops->items.items[i];
      uint64_t name = 0;
      if (item->dialect != d) continue;
      memcpy(&name, item->key->s + 1, sizeof name);
      bc_put_varint(out, w->container >= BC_PROPERTIES ? name << 1 | item->custom : name);
    }
  }
}

/* Groups by dialect: sizes to `places`, bytes to `data`. */
static void bc_render_pool(const bc_writer *w, const bc_pool *pool, base_text *places, base_text *data) {
  for (uint32_t d = 0; d < w->dialects.items.n; d++) {
    uint32_t n = bc_group_size(pool, d);
    if (n == 0) continue;
    bc_put_varint(places, d);
    bc_put_varint(places, n);
    for (uint32_t i = 0; i < pool->items.n; i++) {
      const bc_item *item = &pool->items.items[i];
      if (item->dialect != d) continue;
      base_slice marks = bc_key_marks(item);
      size_t from = data->n;
      bc_render(w, data, marks.p, marks.p + marks.n);
      bc_put_varint(places, (uint64_t)(data->n - from) << 1 | item->custom);
    }
  }
}

/* Attributes, then types, in both sections. */
static void bc_entry_sections(const bc_writer *w, base_text *out) {
  base_text places, data;
  base_text_init(&places, w->alloc);
  base_text_init(&data, w->alloc);
  bc_put_varint(&places, w->attrs.items.n);
  bc_put_varint(&places, w->types.items.n);
  bc_render_pool(w, &w->attrs, &places, &data);
  bc_render_pool(w, &w->types, &places, &data);
  out->failed = out->failed || places.failed || data.failed;
  if (!out->failed) {
    bc_put_section(out, BC_S_OFFSETS, &places);
    bc_put_section(out, BC_S_ENTRIES, &data);
  }
  base_text_free(&places);
  base_text_free(&data);
}

/* Lengths come last string first. */
static void bc_string_section(const bc_writer *w, base_text *out) {
  const bc_items *strings = &w->strings.items;
  bc_put_varint(out, strings->n);
  for (uint32_t i = strings->n; i-- > 0;) bc_put_varint(out, bc_key_marks(&strings->items[i]).n + 1);
  for (uint32_t i = 0; i < strings->n; i++) {
    base_slice s = bc_key_marks(&strings->items[i]);
    base_put(out, s.p, s.n);
    base_putc(out, 0);
  }
}

/* Each set of properties as a blob. */
static void bc_property_section(const bc_writer *w, base_text *out) {
  const bc_items *all = &w->properties.items;
  base_text one;
  base_text_init(&one, w->alloc);
  bc_put_varint(out, all->n);
  for (uint32_t i = 0; i < all->n; i++) {
    base_slice marks = bc_key_marks(&all->items[i]);
    one.n = 0;
    bc_render(w, &one, marks.p, marks.p + marks.n);
    bc_put_varint(out, one.n);
    if (one.n) base_put(out, one.s, one.n);
  }
  out->failed = out->failed || one.failed;
  base_text_free(&one);
}

typedef void bc_section_fn(const bc_writer *w, base_text *out);
/* A section whose bytes `make` appends to an empty text. */
static void bc_put_made(const bc_writer *w, base_text *out, unsigned id, bc_section_fn *make) {
  base_text data;
  base_text_init(&data, w->alloc);
  make(w, &data);
  out->failed = out->failed || data.failed;
  if (!out->failed) bc_put_section(out, id, &data);
  base_text_free(&data);
}

/* The marks that are left when all entries have been taken out of them: the program itself. */
static void bc_ir_section(const bc_writer *w, base_text *out) {
  bc_render(w, out, w->marks.s, w->marks.s + w->marks.n);
}

/* There are no resources: data lies in the attributes. */
static void bc_no_groups(const bc_writer *w, base_text *out) {
  (void)w;
  bc_put_varint(out, 0);
}
/* For sections that are there but empty. */
static void bc_nothing(const bc_writer *w, base_text *out) {
  (void)w;
  (void)out;
}

/* In the order in which MLIR writes sections. */
static void bc_put_file(const bc_writer *w, base_text *out) {
  BASE_PUT(out, "ML\xEFR");
  bc_put_varint(out, w->container);
  BASE_PUT(out, "StableHLO_v");
  base_puts(out, w->version_text);
  base_putc(out, 0);
  bc_put_made(w, out, BC_S_DIALECT, bc_dialect_section);
  bc_entry_sections(w, out);
  bc_put_made(w, out, BC_S_IR, bc_ir_section);
  bc_put_made(w, out, BC_S_RESOURCE_OFFSET, bc_no_groups);
  bc_put_made(w, out, BC_S_RESOURCE, bc_nothing);
  bc_put_made(w, out, BC_S_STRING, bc_string_section);
  if (w->container >= BC_PROPERTIES) bc_put_made(w, out, BC_S_PROPERTIES, bc_property_section);
}

/* --- the whole --- */

/* The version of the container that StableHLO writes for a target version: VhloDialect's fromBytecodeVersion. */
static unsigned bc_container_of(unsigned version) {
  if (version < BC_V(0, 10)) return 0;
  if (version < BC_V(0, 12)) return 1;
  if (version < BC_V(0, 14)) return 3;
  return version < BC_V(0, 15) ? 4 : BC_CONTAINER_NOW;
}

/* "1.17.0": three numbers; the last one is free. w keeps the text for the producer's name. */
static int bc_read_version(bc_writer *w, const char *s) {
  unsigned parts[3] = {0}, at = 0, digits = 0;
  bool ok = strlen(s) < 16;
  for (const char *p = s; ok && *p; p++) {
    if (*p == '.') {
      ok = digits > 0 && ++at < 3;
      digits = 0;
    } else {
      ok = *p >= '0' && *p <= '9' && digits++ < 3;
      if (ok) parts[at] = parts[at] * 10 + (unsigned)(*p - '0');
    }
  }
  if (!ok || at != 2 || digits == 0)
    return base_fail(w->err, XLAC_E_BAD_ARGUMENT, "'%.40s' is not a version; expected one like " BC_DEFAULT_VERSION, s);
  w->version = BC_V(parts[0], parts[1]);
  w->version_text = s;
  if (parts[1] > 999 || w->version < BC_OLDEST || w->version > BC_NOW)
    return base_fail(w->err, XLAC_E_BAD_ARGUMENT,
                     "StableHLO %s is not among the versions that xlac writes, 0.9.0 to %d.%d.0", s, BC_NOW / 1000,
                     BC_NOW % 1000);
  w->container = bc_container_of(w->version);
  return 0;
}

/* Pools first: builtin and vhlo are dialects 0 and 1. */
static int bc_write_all(bc_writer *w, base_text *out) {
  if (w->m->form != IR_FORM_MLIR)
    return base_fail(w->err, XLAC_E_BAD_ARGUMENT, "a module in HLO form has no MLIR bytecode");
  TRY(bc_pool_dialect(w, "builtin", 7, &w->builtin));
  TRY(bc_pool_dialect(w, "vhlo", 4, &w->vhlo));
  TRY(bc_write_ir(w));
  if (w->marks.failed) return bc_write_memory(w);
  bc_group(w, &w->attrs);
  bc_group(w, &w->types);
  bc_group(w, &w->op_names);
  bc_put_file(w, out);
  return out->failed ? bc_write_memory(w) : 0;
}

/* Pools are told apart by a letter in front of their keys, so that all share one table. */
static void bc_writer_open(bc_writer *w) {
  base_arena_init(&w->scratch, w->alloc);
  base_interner_init(&w->keys, &w->scratch);
  base_map_init(&w->known, w->alloc);
  base_map_init(&w->values, w->alloc);
  base_map_init(&w->casts, w->alloc);
  base_text_init(&w->marks, w->alloc);
  bc_pool *pools[] = {&w->dialects, &w->op_names, &w->strings, &w->attrs, &w->types, &w->properties};
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) pools[i]->tag = (char)('a' + i);
}

/* Frees everything but what was appended to the caller's text. */
static void bc_writer_close(bc_writer *w) {
  bc_pool *pools[] = {&w->dialects, &w->op_names, &w->strings, &w->attrs, &w->types, &w->properties};
  for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) BASE_VEC_FREE(w->alloc, &pools[i]->items);
  base_text_free(&w->marks);
  base_map_free(&w->values);
  base_map_free(&w->casts);
  base_map_free(&w->known);
  base_interner_free(&w->keys);
  base_arena_free(&w->scratch);
}

/* `version` is the oldest StableHLO that is to read it; NULL for the default. */
int text_write_bytecode(base_text *out, const ir_module *m, const char *version, xlac_error *err) {
  bc_writer w = {.m = m, .err = err, .alloc = m->alloc};
  TRY(bc_read_version(&w, version ? version : BC_DEFAULT_VERSION));
  bc_writer_open(&w);
  int status = bc_write_all(&w, out);
  bc_writer_close(&w);
  return status;
}
