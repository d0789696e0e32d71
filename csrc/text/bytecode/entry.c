/* Attributes and types by number. Each is read when first asked for, and once.
 *
 * An entry is either MLIR text or in the encoding of its dialect. Entries refer to others by number and so form a
 * graph: `busy` finds cycles, r->depth bounds the recursion, and weights bound the size of the tree that the graph
 * stands for, which printing and comparing walk. */
#include "sdy.h"

/* A small file must not stand for a huge tree: numbers may be used again and again. */
static const uint64_t bc_max_weight = UINT64_C(1) << 24;

/* MLIR text ends with a zero byte. */
static int bc_entry_text(const bc_cursor *c, base_slice *out) {
  const uint8_t *zero = memchr(c->p, 0, bc_left(c));
  if (!zero) return BC_BAD(c, "a text does not end");
  *out = (base_slice){(const char *)c->p, (size_t)(zero - c->p)};
  return 0;
}

/* Errors inside the text are replaced by one that says where in the file it lies. */
static int bc_attr_text(bc_cursor *c, const ir_mattr **out) {
  base_slice text = {0};
  TRY(bc_entry_text(c, &text));
  if (text_parse_mlir_attr(c->r->m, text.p, text.n, out, c->r->err) == 0) return 0;
  return BC_BAD(c, "an attribute's text can't be read: %.*s", text.n < 80 ? (int)text.n : 80, text.p);
}

/* An entry of a dialect without an encoding is the text of the type. */
static int bc_type_text(bc_cursor *c, const ir_type **out) {
  base_slice text = {0};
  TRY(bc_entry_text(c, &text));
  if (text_parse_mlir_type(c->r->m, text.p, text.n, out, c->r->err) == 0) return 0;
  return BC_BAD(c, "a type's text can't be read: %.*s", text.n < 80 ? (int)text.n : 80, text.p);
}

/* Enters the entry; the caller's cursor gives the place of errors about the number itself. *outer keeps the weight
 * of what refers to it, which bc_leave restores. */
static int bc_enter(bc_cursor *from, bc_entry *e, bc_cursor *c, uint64_t *outer) {
  bc_reader *r = from->r;
  *c = (bc_cursor){r, e->p, e->p + e->n};
  if (e->busy) return BC_BAD(c, "an attribute or type contains itself");
  if (r->depth >= r->max_depth) return bc_fail(c, XLAC_E_TOO_DEEP, "attributes are nested over %u deep", r->max_depth);
  r->depth++;
  e->busy = true;
  *outer = r->weight;
  r->weight = 1;
  return 0;
}

/* From now on the entry is its result. */
static int bc_leave(bc_cursor *c, bc_entry *e, uint64_t outer) {
  assert(c->r->depth > 0 && e->busy);
  bc_reader *r = c->r;
  r->depth--;
  e->busy = false;
  e->done = true;
  uint64_t weight = r->weight;
  r->weight = outer;
  if (weight > bc_max_weight) return bc_fail(c, XLAC_E_TOO_LARGE, "an attribute or type has too many parts");
  e->weight = (uint32_t)weight;
  return 0;
}

/* By dialect: text, or an encoding that is known. */
static int bc_read_attr(bc_cursor *from, bc_entry *e) {
  assert(e->dialect < from->r->n_dialects && !e->done);
  bc_cursor c;
  uint64_t outer = 0;
  TRY(bc_enter(from, e, &c, &outer));
  bc_dialect_name *dialect = &from->r->dialects[e->dialect];
  if (!e->custom) {
    TRY(bc_attr_text(&c, &e->attr));
  } else if (dialect->known == BC_BUILTIN) {
    TRY(bc_builtin_attr(&c, &e->attr));
  } else if (dialect->known == BC_VHLO) {
    TRY(bc_vhlo_attr(&c, &e->attr));
  } else if (dialect->known == BC_SDY) {
    TRY(bc_sdy_attr(&c, &e->attr));
  } else {
    return BC_BAD(&c,
                  "an attribute in the own encoding of dialect %.*s, which only builtin, vhlo and sdy may have here",
                  dialect->name.n < 60 ? (int)dialect->name.n : 60, dialect->name.p);
  }
  return bc_leave(&c, e, outer);
}

/* Ops of sdy have tokens as StableHLO has them: its one type. */
static int bc_stablehlo_type(bc_cursor *c, const ir_type **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  if (code != 0) return BC_BAD(&at, "a type of the stablehlo dialect with code %llu", (unsigned long long)code);
  *out = ir_token(c->r->m);
  return bc_made(c, *out);
}

/* By dialect, as attributes are. */
static int bc_read_type(bc_cursor *from, bc_entry *e) {
  assert(e->dialect < from->r->n_dialects && !e->done);
  bc_cursor c;
  uint64_t outer = 0;
  TRY(bc_enter(from, e, &c, &outer));
  bc_dialect_name *dialect = &from->r->dialects[e->dialect];
  if (!e->custom) {
    TRY(bc_type_text(&c, &e->type));
  } else if (dialect->known == BC_BUILTIN) {
    TRY(bc_builtin_type(&c, &e->type));
  } else if (dialect->known == BC_VHLO) {
    TRY(bc_vhlo_type(&c, &e->type));
  } else if (base_slice_is(dialect->name, "stablehlo")) {
    TRY(bc_stablehlo_type(&c, &e->type));
  } else {
    return BC_BAD(&c, "a type in the own encoding of dialect %.*s, which only builtin and vhlo may have here",
                  dialect->name.n < 60 ? (int)dialect->name.n : 60, dialect->name.p);
  }
  return bc_leave(&c, e, outer);
}

/* Stops growing beyond the limit, so that it can't overflow. */
static void bc_add_weight(bc_reader *r, uint64_t weight) {
  r->weight = r->weight > bc_max_weight ? r->weight : r->weight + weight;
}

/* An attribute of a few bytes can stand for a tree that no memory holds, since entries are shared; so what is read
 * is weighed by the parts that it would have, were it written out. */
int bc_weigh(bc_cursor *c, uint64_t parts) {
  bc_add_weight(c->r, parts);
  return c->r->weight <= bc_max_weight ? 0 : bc_fail(c, XLAC_E_TOO_LARGE, "an attribute or type has too many parts");
}

/* Using an entry adds its whole tree to what uses it. */
int bc_attr_at(bc_cursor *c, uint64_t index, const ir_mattr **out) {
  bc_reader *r = c->r;
  assert(r->attrs || r->n_attrs == 0);
  if (index >= r->n_attrs) return BC_BAD(c, "attribute %llu of %u", (unsigned long long)index, r->n_attrs);
  bc_entry *e = &r->attrs[index];
  if (!e->done) TRY(bc_read_attr(c, e));
  bc_add_weight(r, e->weight);
  *out = e->attr;
  return 0;
}

/* The entry that the next number stands for. */
int bc_attr(bc_cursor *c, const ir_mattr **out) {
  uint64_t index = 0;
  TRY(bc_varint(c, &index));
  return bc_attr_at(c, index, out);
}

/* The same, which must be of this kind; `what` says so in the error. */
int bc_attr_of(bc_cursor *c, ir_mattr_kind kind, const char *what, const ir_mattr **out) {
  bc_cursor at = *c;
  TRY(bc_attr(c, out));
  return (*out)->kind == kind ? 0 : BC_BAD(&at, "expected %s", what);
}

/*   0    none      index << 1 | 1    that one */
int bc_optional_attr(bc_cursor *c, const ir_mattr **out) {
  uint64_t index = 0;
  bool present = false;
  *out = NULL;
  TRY(bc_flagged(c, &index, &present));
  return present ? bc_attr_at(c, index, out) : 0;
}

/*   n, then n numbers */
int bc_attrs(bc_cursor *c, uint32_t *n, const ir_mattr ***out) {
  TRY(bc_count(c, 1, n));
  *out = BASE_ARRAY(&c->r->scratch, const ir_mattr *, *n + 1u);
  if (!*out) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < *n; i++) TRY(bc_attr(c, &(*out)[i]));
  return 0;
}

/* Read once, then found again; its weight counts each time. */
int bc_type_at(bc_cursor *c, uint64_t index, const ir_type **out) {
  bc_reader *r = c->r;
  if (index >= r->n_types) return BC_BAD(c, "type %llu of %u", (unsigned long long)index, r->n_types);
  bc_entry *e = &r->types[index];
  if (!e->done) TRY(bc_read_type(c, e));
  bc_add_weight(r, e->weight);
  *out = e->type;
  return 0;
}

/* The type that the next number stands for. */
int bc_type(bc_cursor *c, const ir_type **out) {
  uint64_t index = 0;
  TRY(bc_varint(c, &index));
  return bc_type_at(c, index, out);
}

/*   n, then n numbers */
int bc_types(bc_cursor *c, uint32_t *n, const ir_type ***out) {
  TRY(bc_count(c, 1, n));
  *out = BASE_ARRAY(&c->r->scratch, const ir_type *, *n + 1u);
  if (!*out) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < *n; i++) TRY(bc_type(c, &(*out)[i]));
  return 0;
}

/*   n, then n zigzag numbers */
int bc_ints(bc_cursor *c, uint32_t *n, int64_t **out) {
  TRY(bc_count(c, 1, n));
  *out = BASE_ARRAY(&c->r->scratch, int64_t, *n + 1u);
  if (!*out) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < *n; i++) TRY(bc_signed(c, &(*out)[i]));
  return 0;
}

/* What makers of types and attributes return: NULL with an error that they have filled, or for want of memory. */
int bc_made(const bc_cursor *c, const void *made) {
  if (made) return 0;
  return c->r->err && c->r->err->code ? -c->r->err->code : bc_no_memory(c->r);
}
