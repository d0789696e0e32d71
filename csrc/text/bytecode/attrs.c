/* Attributes of one op, from VHLO's form (everything written out, structs in pieces) to StableHLO's.
 *
 *   vhlo.dot_general_v2   lhs_batching_dimensions = [], lhs_contracting_dimensions = [1], ..., lhs_precision_type =
 * none stablehlo.dot_general   dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], ...> Each name
 * of the VHLO row is either an attribute of the StableHLO op, by the same name, or a field of a struct that is one.
 * Values at VHLO's defaults are left out, as StableHLO's own conversion does (VhloToStablehlo). */
#include "../../ir/sdy/sdy.h"
#include "../../ir/stablehlo/stablehlo.h"
#include "bytecode.h"

#include <stdio.h>

/* Bounds on what one attribute may have: elements of a tensor that stands for a list, attributes of an op, fields of
 * a struct. */
enum { BC_MAX_LIST = 1 << 16, BC_MAX_ATTRS = 40, BC_MAX_FIELDS = 16 };

/* The attributes that an op gets; each key comes once. */
typedef struct bc_result {
  ir_mentry *v;
  uint32_t n;
} bc_result;

/* value NULL means that making it failed for want of memory. */
static int bc_put_entry(bc_cursor *c, bc_result *to, const char *key, const ir_mattr *value) {
  assert(to->n < BC_MAX_ATTRS);
  const base_istr *name = ir_intern(c->r->m, key, strlen(key));
  if (!name || !value) return bc_no_memory(c->r);
  to->v[to->n++] = (ir_mentry){name, value};
  return 0;
}

/* VHLO has lists of numbers as tensors. The list is kept with the tensor's entry, since many ops share one. */
static int bc_as_list(bc_cursor *c, base_dtype dtype, const ir_mattr *a, uint64_t index, const ir_mattr **out) {
  bc_reader *r = c->r;
  bc_entry *e = index < r->n_attrs ? &r->attrs[index] : NULL;
  if (a->kind == IR_M_DENSE_ARRAY) return *out = a, 0;
  if (a->kind != IR_M_DENSE || a->v.literal->type->dtype != dtype || a->type->count > BC_MAX_LIST)
    return BC_BAD(c, "expected a list of numbers");
  if (e && e->array) return *out = e->array, 0;
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(a, &r->scratch, &n);
  if (!v) return bc_no_memory(r);
  *out = dtype == XLAC_PRED ? ir_m_bools(r->m, n, v) : ir_m_i64s(r->m, n, v);
  TRY(bc_made(c, *out));
  if (e) e->array = *out;
  return 0;
}

/* VHLO has symbols as strings. */
static int bc_as_symbol(bc_cursor *c, const ir_mattr *a, const ir_mattr **out) {
  if (a->kind == IR_M_SYMBOL) return *out = a, 0;
  if (a->kind != IR_M_STRING) return BC_BAD(c, "expected a symbol's name");
  *out = ir_m_symbol(c->r->m, a->str->s, a->str->n);
  return bc_made(c, *out);
}

/* VHLO writes symbols as strings; StableHLO wants them as symbols: ["f", "g"] as [@f, @g]. */
static int bc_as_symbols(bc_cursor *c, const ir_mattr *a, const ir_mattr **out) {
  if (a->kind != IR_M_ARRAY) return BC_BAD(c, "expected a list of symbols");
  uint32_t n = a->v.list->n;
  const ir_mattr **v = BASE_ARRAY(&c->r->scratch, const ir_mattr *, n + 1u);
  if (!v) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < n; i++) TRY(bc_as_symbol(c, a->v.list->v[i], &v[i]));
  *out = ir_m_array(c->r->m, n, v);
  return bc_made(c, *out);
}

/* An array whose elements all pass `fits`. */
static bool bc_is_list_of(const ir_mattr *a, bool (*fits)(const ir_mattr *, const char *), const char *name) {
  if (a->kind != IR_M_ARRAY) return false;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    if (!fits(a->v.list->v[i], name)) return false;
  return true;
}

static bool bc_is_i64(const ir_mattr *a) {
  return a->kind == IR_M_INTEGER && a->type->kind == IR_TYPE_ELEMENT && !a->type->quant && a->type->dtype == XLAC_S64;
}

/* A list of dimensions of an operand: a tensor of index, of rank 1. */
static bool bc_is_layout(const ir_mattr *a, const char *name) {
  (void)name;
  return a->kind == IR_M_DENSE && a->type->rank == 1 && a->type->text && strcmp(a->type->text->s, "index") == 0;
}

/* A list of such: the tiles of one layout. */
static bool bc_is_tiling(const ir_mattr *a, const char *name) {
  return bc_is_list_of(a, bc_is_layout, name);
}

bool bc_fits(const ir_mattr_spec *spec, const ir_mattr *a) {
  switch (spec->constraint) {
    case IR_MC_UNIT: /* these are written in other forms */
    case IR_MC_SYMBOL:
    case IR_MC_SYMBOLS:
    case IR_MC_I64S:
    case IR_MC_BOOLS:
    case IR_MC_TYPED:
      return true;
    case IR_MC_TILINGS:
      return bc_is_list_of(a, bc_is_tiling, NULL);
    default:
      return stablehlo_attr_is_of(spec, a);
  }
}

/* StableHLO has the version of a custom call's interface as a number. */
static int bc_as_number(bc_cursor *c, const ir_mattr *a, const ir_mattr **out) {
  assert(a->kind == IR_M_ENUM);
  *out = ir_m_i32(c->r->m, a->v.i);
  return bc_made(c, *out);
}

/* *out becomes NULL for a unit attribute that is false. */
static int bc_convert(bc_cursor *c, const ir_mattr_spec *spec, const ir_mattr *a, uint64_t index,
                      const ir_mattr **out) {
  *out = a;
  switch (spec->constraint) {
    case IR_MC_I64S:
      return bc_as_list(c, XLAC_S64, a, index, out);
    case IR_MC_BOOLS:
      return bc_as_list(c, XLAC_PRED, a, index, out);
    case IR_MC_SYMBOL:
      return bc_as_symbol(c, a, out);
    case IR_MC_SYMBOLS:
      return bc_as_symbols(c, a, out);
    case IR_MC_UNIT:
      if (a->kind == IR_M_UNIT) return 0;
      if (a->kind != IR_M_BOOL) return BC_BAD(c, "attribute %s: expected a bool", spec->name);
      *out = a->v.b ? ir_m_unit(c->r->m) : NULL;
      return a->v.b ? bc_made(c, *out) : 0;
    default:
      if (bc_fits(spec, a)) return 0;
      if (spec->constraint == IR_MC_I32 && a->kind == IR_M_ENUM && strcmp(a->name, "custom_call_api_version") == 0)
        return bc_as_number(c, a, out);
      /* A version of a composite, written out as its default, is wider than one that somebody wrote. */
      if (spec->constraint == IR_MC_I32 && bc_is_i64(a) && a->v.i == 0) return 0;
      return BC_BAD(c, "attribute %s is of the wrong kind", spec->name);
  }
}

/* --- structs --- */

/* A struct attribute being put together from VHLO's single attributes. */
typedef struct bc_pieces {
  const ir_mattr_spec *spec;
  const ir_mattr *fields[BC_MAX_FIELDS];
  bool off; /* one of its pieces says that there is none */
} bc_pieces;

/* VHLO's absent algorithm is the type none. */
static bool bc_is_none(const ir_mattr *a) {
  return a->kind == IR_M_TYPE && a->type->kind == IR_TYPE_OTHER && strcmp(a->type->text->s, "none") == 0;
}

/* One field, of the kind that the struct's table says. */
static int bc_piece(bc_cursor *c, const ir_field_info *f, const ir_mattr *a, uint64_t index, const ir_mattr **out) {
  *out = a;
  bool fits = true;
  if (f->kind == IR_F_I64S) return bc_as_list(c, XLAC_S64, a, index, out);
  if (f->kind == IR_F_I64) fits = bc_is_i64(a);
  if (f->kind == IR_F_TYPE) fits = a->kind == IR_M_TYPE;
  if (f->kind == IR_F_BOOL) fits = a->kind == IR_M_BOOL;
  return fits ? 0 : BC_BAD(c, "attribute %s is of the wrong kind", f->name);
}

/* A field of a struct that VHLO has as an attribute of its own. A dot algorithm that is none leaves the struct out. */
static int bc_add_piece(bc_cursor *c, bc_pieces *p, const ir_field_info *f, const ir_mattr *a, uint64_t index) {
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, p->spec->sub, strlen(p->spec->sub));
  ptrdiff_t i = f - info->fields;
  assert(i >= 0 && i < BC_MAX_FIELDS);
  if (strcmp(info->name, "dot_algorithm") == 0 && bc_is_none(a)) return p->off = true, 0;
  return bc_piece(c, f, a, index, &p->fields[i]);
}

/* A zero, or an empty list: what a field is where nobody set it. */
static bool bc_says_nothing(const ir_mattr *a) {
  if (a->kind == IR_M_INTEGER) return a->v.i == 0;
  return a->kind == IR_M_DENSE_ARRAY && a->v.literal->type->count == 0;
}

/* Fields that say nothing are left out, as StableHLO prints them. A channel handle of 0 on an op that need not have
 * one means that it has none. */
static int bc_join(bc_cursor *c, bc_pieces *p, bc_result *to) {
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, p->spec->sub, strlen(p->spec->sub));
  bool channel = strcmp(info->name, "channel_handle") == 0;
  ir_mentry fields[BC_MAX_FIELDS];
  uint32_t n = 0;
  if (p->off) return 0;
  if (channel && !p->fields[1] && !(p->fields[1] = ir_m_i64(c->r->m, 0))) return bc_no_memory(c->r);
  if (channel && !(p->spec->flags & IR_REQUIRED) && p->fields[0] && p->fields[0]->v.i == 0) return 0;
  for (uint32_t i = 0; info->fields[i].name; i++) {
    const ir_field_info *f = &info->fields[i];
    const ir_mattr *v = p->fields[i];
    if (!v && f->always) return BC_BAD(c, "attribute %s lacks %s", p->spec->name, f->name);
    if (!v || (!f->always && bc_says_nothing(v))) continue;
    const base_istr *key = ir_intern(c->r->m, f->name, strlen(f->name));
    if (!key) return bc_no_memory(c->r);
    assert(n < BC_MAX_FIELDS);
    fields[n++] = (ir_mentry){key, v};
  }
  return bc_put_entry(c, to, p->spec->name, ir_m_struct(c->r->m, info->dialect, info->name, n, fields));
}

/* --- an op's --- */

/* Layouts of operands go with those of results: either may be empty when the other is not. */
static bool bc_keep_layouts(const ir_mattr_spec *spec, const bc_op_attrs *from) {
  assert(from->row);
  if (spec->constraint != IR_MC_LAYOUTS) return false;
  const char *names = from->row->attrs;
  base_slice word = {0};
  for (uint32_t i = 0; bc_next_word(&names, &word); i++) {
    const ir_mattr *a = from->values[i];
    bool layouts = base_slice_is(word, "operand_layouts") || base_slice_is(word, "result_layouts");
    if (layouts && a && a->kind == IR_M_ARRAY && a->v.list->n) return true;
  }
  return false;
}

/* An attribute that goes over by itself. */
static int bc_one_attr(bc_cursor *c, unsigned opcode, const bc_op_attrs *from, uint32_t i, const ir_mattr_spec *spec,
                       bc_result *to) {
  const ir_mattr *a;
  TRY(bc_convert(c, spec, from->values[i], from->indices[i], &a));
  if (!a || (bc_is_default(opcode, spec, a) && !bc_keep_layouts(spec, from))) return 0;
  return bc_put_entry(c, to, spec->name, a);
}

/* The pieces of this struct so far, or a new set. */
static bc_pieces *bc_pieces_of(bc_pieces *all, uint32_t *n, const ir_mattr_spec *spec) {
  assert(*n < 4);
  for (uint32_t i = 0; i < *n; i++)
    if (all[i].spec == spec) return &all[i];
  all[*n] = (bc_pieces){.spec = spec};
  return &all[(*n)++];
}

/* All names of the row. */
static int bc_own_attrs(bc_cursor *c, unsigned opcode, const bc_op_attrs *from, bc_result *to) {
  assert(from->row && from->values);
  bc_pieces pieces[4];
  uint32_t n_pieces = 0;
  const char *names = from->row->attrs;
  base_slice word = {0};
  for (uint32_t i = 0; bc_next_word(&names, &word); i++) {
    if (!from->values[i]) return BC_BAD(c, "op %s lacks attribute %.*s", from->row->name, (int)word.n, word.p);
    const ir_mattr_spec *spec = ir_mattr_spec_find(opcode, word.p, word.n);
    const ir_field_info *field;
    if (spec) {
      TRY(bc_one_attr(c, opcode, from, i, spec, to));
    } else if ((spec = bc_struct_of_field(opcode, word, &field))) {
      bc_pieces *p = bc_pieces_of(pieces, &n_pieces, spec);
      assert(n_pieces <= 4);
      TRY(bc_add_piece(c, p, field, from->values[i], from->indices[i]));
    } else if (opcode == IR_OP_UNREGISTERED) {
      char key[64];
      snprintf(key, sizeof key, "%.*s", (int)word.n, word.p);
      TRY(bc_put_entry(c, to, key, from->values[i]));
    } /* else dynamic_conv_v1's padding, which its operand takes the place of */
  }
  for (uint32_t i = 0; i < n_pieces; i++) TRY(bc_join(c, &pieces[i], to));
  return 0;
}

/* Inherent and other attributes become one dictionary; a key that both have is an error. */
int bc_to_stablehlo(bc_cursor *c, unsigned opcode, const bc_op_attrs *from, const ir_mdict **out) {
  ir_mentry own[BC_MAX_ATTRS];
  bc_result to = {own, 0};
  uint32_t n = from->discardable ? from->discardable->n : 0;
  if (from->row) TRY(bc_own_attrs(c, opcode, from, &to));
  *out = from->discardable;
  if (to.n == 0) return 0;
  ir_mentry *all = BASE_ARRAY(&c->r->scratch, ir_mentry, to.n + n);
  if (!all) return bc_no_memory(c->r);
  memcpy(all, own, to.n * sizeof *all);
  if (n) memcpy(all + to.n, from->discardable->v, n * sizeof *all);
  *out = ir_mdict_make(c->r->m, to.n + n, all);
  TRY(bc_made(c, *out));
  for (uint32_t i = 1; i < (*out)->n; i++)
    if ((*out)->v[i].key == (*out)->v[i - 1].key)
      return BC_BAD(c, "attribute %.60s is there twice", (*out)->v[i].key->s);
  return 0;
}
