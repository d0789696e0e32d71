/* Attributes and locations to bytecode: VHLO's for ops, MLIR's own for the module, keys and locations.
 *
 * Functions named bc_mark_* append to the marks of what is being written; bc_add_* add one item to its pool and give
 * its number. `builtin` asks for MLIR's own form of an attribute instead of VHLO's. */
#include "write.h"

#include <stdlib.h>

/* `builtin`: as MLIR's own attribute; else as VHLO's. The same attribute may be written both ways. */
int bc_mark_attr(bc_writer *w, bool builtin, const ir_mattr *a) {
  uint32_t attr = 0;
  TRY(bc_add_attr(w, builtin, a, &attr));
  bc_mark(w, BC_MARK_ATTR, attr);
  return 0;
}

/* Ends an attribute of the builtin dialect whose marks begin at `from`. */
static int bc_add_builtin(bc_writer *w, size_t from, uint32_t *out) {
  return bc_pool_add(w, &w->attrs, w->builtin, true, from, out);
}

/* Takes what was marked since `from` as an entry of VHLO. */
static int bc_add_vhlo(bc_writer *w, size_t from, uint32_t *out) {
  return bc_pool_add(w, &w->attrs, w->vhlo, true, from, out);
}

/* A string attribute of MLIR's own: keys of dictionaries, names of locations. */
static int bc_add_key(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  size_t from = w->marks.n;
  uint32_t string = 0;
  TRY(bc_pool_string(w, s, n, &string));
  bc_mark(w, BC_MARK_VARINT, BC_B_STRING);
  bc_mark(w, BC_MARK_STRING, string);
  return bc_add_builtin(w, from, out);
}

/* Names in dictionaries and symbols are string attributes. */
static int bc_mark_key(bc_writer *w, const base_istr *s) {
  uint32_t key = 0;
  TRY(bc_add_key(w, s->s, s->n, &key));
  bc_mark(w, BC_MARK_ATTR, key);
  return 0;
}

/* --- locations --- */

/* NULL is an unknown location. */
static int bc_mark_loc(bc_writer *w, const ir_mattr *loc) {
  uint32_t v = 0;
  TRY(bc_add_loc(w, loc, &v));
  bc_mark(w, BC_MARK_ATTR, v);
  return 0;
}

/* Ranges came with 1.9; for older readers their beginning has to do. */
static int bc_mark_file(bc_writer *w, const ir_mloc *l) {
  bool range = l->range && w->version >= BC_V(1, 9);
  bc_mark(w, BC_MARK_VARINT, range ? BC_B_LOC_RANGE : BC_B_LOC_FILE);
  TRY(bc_mark_key(w, l->name));
  bool same_line = l->line == l->end_line;
  if (range) bc_mark(w, BC_MARK_VARINT, same_line ? 3 : 4);
  bc_mark(w, BC_MARK_VARINT, (uint64_t)l->line);
  bc_mark(w, BC_MARK_VARINT, (uint64_t)l->col);
  if (range && !same_line) bc_mark(w, BC_MARK_VARINT, (uint64_t)l->end_line);
  if (range) bc_mark(w, BC_MARK_VARINT, (uint64_t)l->end_col);
  return 0;
}

/* Parts, then the metadata. */
static int bc_mark_fused(bc_writer *w, const ir_mloc *l) {
  bc_mark(w, BC_MARK_VARINT, l->metadata ? BC_B_LOC_FUSED_METADATA : BC_B_LOC_FUSED);
  bc_mark(w, BC_MARK_VARINT, l->parts->n);
  for (uint32_t i = 0; i < l->parts->n; i++) TRY(bc_mark_loc(w, l->parts->v[i]));
  return l->metadata ? bc_mark_attr(w, true, l->metadata) : 0;
}

/* Locations are always MLIR's own. */
int bc_add_loc(bc_writer *w, const ir_mattr *loc, uint32_t *out) {
  const ir_mloc unknown = {.kind = IR_LOC_UNKNOWN};
  const ir_mloc *l = loc && loc->kind == IR_M_LOC ? loc->v.loc : &unknown;
  size_t from = w->marks.n;
  TRY(bc_write_deeper(w));
  if (l->kind == IR_LOC_FILE) {
    TRY(bc_mark_file(w, l));
  } else if (l->kind == IR_LOC_NAME) {
    bc_mark(w, BC_MARK_VARINT, BC_B_LOC_NAME);
    TRY(bc_mark_key(w, l->name));
    TRY(bc_mark_loc(w, l->child));
  } else if (l->kind == IR_LOC_CALLSITE) {
    bc_mark(w, BC_MARK_VARINT, BC_B_LOC_CALLSITE);
    TRY(bc_mark_loc(w, l->child));
    TRY(bc_mark_loc(w, l->caller));
  } else if (l->kind == IR_LOC_FUSED) {
    TRY(bc_mark_fused(w, l));
  } else {
    bc_mark(w, BC_MARK_VARINT, BC_B_LOC_UNKNOWN);
  }
  w->depth--;
  return bc_add_builtin(w, from, out);
}

/* --- data --- */

/* Narrow integers are one byte, all others zigzag. */
void bc_mark_int(bc_writer *w, unsigned width, uint64_t v) {
  assert(width > 0);
  if (width < 64) v &= (UINT64_C(1) << width) - 1;
  bc_mark(w, width <= 8 ? BC_MARK_BYTE : BC_MARK_SIGNED, v);
}

/* Booleans are packed; elements narrower than a byte lose the bits above. */
static void bc_mark_elements(bc_writer *w, const ir_literal *l, bool splat) {
  base_dtype t = (base_dtype)l->type->dtype;
  uint64_t n = (uint64_t)l->type->count;
  unsigned bits = base_dtype_of(t)->bits;
  if (t == XLAC_PRED && splat) {
    char byte = *(const char *)l->data ? '\xFF' : 0;
    bc_mark_copy(w, &byte, 1);
  } else if (t == XLAC_PRED) {
    bc_mark_data(w, BC_MARK_BITS, l->data, n, 1);
  } else {
    bc_mark_data(w, bits < 8 ? BC_MARK_NARROW : BC_MARK_BLOB, l->data, n * base_dtype_bytes(t), bits);
  }
}

/* One element of many goes as a splat. */
static int bc_mark_dense(bc_writer *w, bool builtin, const ir_type *type, const ir_literal *l, bool splat) {
  if (!l || l->elided) return bc_cant_write(w, "the elements of a tensor are not known");
  bc_mark(w, BC_MARK_VARINT, builtin ? BC_B_DENSE : BC_V_TENSOR);
  TRY(bc_mark_type(w, builtin, type));
  bc_mark_elements(w, l, splat && type->count != 1);
  return 0;
}

/* VHLO has lists as tensors. */
static int bc_mark_list(bc_writer *w, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  return bc_mark_dense(w, false, l->type, l, false);
}

/*   array<i64: 1, 2> */
static int bc_mark_builtin_list(bc_writer *w, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  bc_mark(w, BC_MARK_VARINT, BC_B_DENSE_ARRAY);
  TRY(bc_mark_type(w, true, a->type));
  bc_mark(w, BC_MARK_VARINT, (uint64_t)l->type->count);
  bc_mark_data(w, BC_MARK_BLOB, l->data, (uint64_t)ir_type_bytes(l->type), 0);
  return 0;
}

/* --- numbers, lists, dictionaries --- */

/* The width in bits of a number's type. */
static unsigned bc_width_of(const ir_type *t) {
  if (t->kind == IR_TYPE_ELEMENT) return base_dtype_of((base_dtype)t->dtype)->bits;
  return strcmp(t->text->s, "tf32") == 0 ? 19 : 64;
}

/* Integers and floats, by their bits. */
static int bc_mark_number(bc_writer *w, bool builtin, const ir_mattr *a) {
  assert(a->type && (a->kind == IR_M_INTEGER || a->kind == IR_M_FLOAT));
  bool is_float = a->kind == IR_M_FLOAT;
  bool index = a->type->kind == IR_TYPE_OTHER && strcmp(a->type->text->s, "index") == 0;
  bool tf32 = a->type->kind == IR_TYPE_OTHER && strcmp(a->type->text->s, "tf32") == 0;
  if (a->type->kind != IR_TYPE_ELEMENT && !index && !tf32) return bc_cant_write(w, "a number of an odd type");
  bc_mark(w, BC_MARK_VARINT, is_float ? (builtin ? BC_B_FLOAT : BC_V_FLOAT) : (builtin ? BC_B_INTEGER : BC_V_INTEGER));
  TRY(bc_mark_type(w, builtin, a->type));
  bc_mark_int(w, bc_width_of(a->type), is_float ? a->bits : (uint64_t)a->v.i);
  return 0;
}

/* MLIR's is an i1, VHLO's an attribute of its own. */
static int bc_mark_bool(bc_writer *w, bool builtin, bool v) {
  const ir_type i1 = {.kind = IR_TYPE_ELEMENT, .dtype = XLAC_PRED};
  bc_mark(w, BC_MARK_VARINT, builtin ? BC_B_INTEGER : BC_V_BOOL);
  if (builtin) TRY(bc_mark_type(w, true, &i1));
  bc_mark(w, builtin ? BC_MARK_BYTE : BC_MARK_VARINT, v);
  return 0;
}

/*   code, n, then n numbers of attributes */
static int bc_mark_array(bc_writer *w, bool builtin, const ir_mattrs *list) {
  bc_mark(w, BC_MARK_VARINT, builtin ? BC_B_ARRAY : BC_V_ARRAY);
  bc_mark(w, BC_MARK_VARINT, list->n);
  for (uint32_t i = 0; i < list->n; i++) TRY(bc_mark_attr(w, builtin, list->v[i]));
  return 0;
}

/* Keys are strings of the same sort as the values. */
static int bc_mark_dict(bc_writer *w, bool builtin, const ir_mdict *d) {
  bc_mark(w, BC_MARK_VARINT, builtin ? BC_B_DICT : BC_V_DICT);
  bc_mark(w, BC_MARK_VARINT, d->n);
  for (uint32_t i = 0; i < d->n; i++) {
    uint32_t key = 0;
    TRY(builtin ? bc_add_key(w, d->v[i].key->s, d->v[i].key->n, &key)
                : bc_add_string(w, d->v[i].key->s, d->v[i].key->n, &key));
    bc_mark(w, BC_MARK_ATTR, key);
    TRY(bc_mark_attr(w, builtin, d->v[i].value));
  }
  return 0;
}

/*   @name */
int bc_mark_symbol_of(bc_writer *w, const base_istr *name) {
  uint32_t symbol = 0;
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_B_SYMBOL);
  TRY(bc_mark_key(w, name));
  TRY(bc_add_builtin(w, from, &symbol));
  bc_mark(w, BC_MARK_ATTR, symbol);
  return 0;
}

/* Nested symbols are the root and a list of symbols. */
static int bc_mark_symbol(bc_writer *w, const ir_mattrs *parts) {
  assert(parts->n > 0);
  bc_mark(w, BC_MARK_VARINT, parts->n > 1 ? BC_B_NESTED_SYMBOL : BC_B_SYMBOL);
  TRY(bc_mark_key(w, parts->v[0]->str));
  if (parts->n == 1) return 0;
  bc_mark(w, BC_MARK_VARINT, parts->n - 1);
  for (uint32_t i = 1; i < parts->n; i++) TRY(bc_mark_symbol_of(w, parts->v[i]->str));
  return 0;
}

/* --- StableHLO's enums and structs --- */

/* By its number; the code says which enum. */
int bc_add_enum(bc_writer *w, const char *name, const char *word, uint32_t *out) {
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, name, strlen(name));
  uint64_t code = bc_enum_code(name), v = 0;
  size_t from = w->marks.n;
  if (!info || !code) return bc_cant_write(w, "VHLO has no enum %s", name);
  while (info->words[v] && strcmp(info->words[v], word) != 0) v++;
  if (!info->words[v]) return bc_cant_write(w, "%s has no value %.60s", name, word);
  if (code == BC_V_ACCURACY_MODE && w->version < BC_V(1, 9))
    return bc_cant_write(w, "a result accuracy needs StableHLO 1.9");
  bc_mark(w, BC_MARK_VARINT, code);
  bc_mark(w, BC_MARK_VARINT, v);
  return bc_add_vhlo(w, from, out);
}

/* Any attribute of integers: a dense array, a dense tensor. */
static int bc_mark_ints_of(bc_writer *w, const ir_mattr *a) {
  uint32_t n = 0;
  const int64_t *v = ir_m_ints(a, &w->scratch, &n);
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) bc_mark(w, BC_MARK_SIGNED, (uint64_t)v[i]);
  return 0;
}

/* 0 for a field that is not there. */
static void bc_mark_i64_of(bc_writer *w, const ir_mattr *a) {
  bc_mark(w, BC_MARK_SIGNED, a && a->kind == IR_M_INTEGER ? (uint64_t)a->v.i : 0);
}

/* Tolerances by their bits. */
static int bc_mark_accuracy(bc_writer *w, const ir_mattr *a) {
  const ir_mattr *atol = ir_m_field(a, "atol"), *rtol = ir_m_field(a, "rtol"), *mode = ir_m_field(a, "mode");
  uint32_t v = 0;
  bc_mark(w, BC_MARK_SIGNED, atol ? atol->bits : 0);
  bc_mark(w, BC_MARK_SIGNED, rtol ? rtol->bits : 0);
  bc_mark_i64_of(w, ir_m_field(a, "ulps"));
  TRY(bc_add_enum(w, "result_accuracy_mode", mode ? mode->str->s : "DEFAULT", &v));
  bc_mark(w, BC_MARK_ATTR, v);
  return 0;
}

/* A flag says whether a sub-axis follows. */
static int bc_mark_axis_ref(bc_writer *w, const ir_mattr *a) {
  const ir_mattr *name = ir_m_field(a, "name"), *part = ir_m_field(a, "sub_axis_info");
  if (!name) return bc_cant_write(w, "an axis without a name");
  TRY(bc_mark_attr(w, false, name));
  bc_mark(w, BC_MARK_VARINT, part != NULL);
  return part ? bc_mark_attr(w, false, part) : 0;
}

/*   #stablehlo.mesh<axes = [...], device_ids = dense<...>>
 *
 * Device numbers may be left out. */
static int bc_mark_mesh(bc_writer *w, const ir_mattr *a) {
  const ir_mattr *axes = ir_m_field(a, "axes"), *ids = ir_m_field(a, "device_ids");
  uint32_t v = 0;
  if (!axes) return bc_cant_write(w, "a mesh without axes");
  TRY(bc_mark_attr(w, false, axes));
  if (!ids) return bc_mark(w, BC_MARK_VARINT, 0), 0;
  TRY(bc_add_attr(w, false, ids, &v));
  bc_mark(w, BC_MARK_OPTIONAL, v);
  return 0;
}

/* The fields of a struct that is an attribute of its own in VHLO. */
static int bc_mark_fields(bc_writer *w, uint64_t code, const ir_mattr *a) {
  const ir_mattr *first, *second;
  switch (code) {
    case BC_V_ALIAS:
      TRY(bc_mark_ints_of(w, ir_m_field(a, "output_tuple_indices")));
      bc_mark_i64_of(w, ir_m_field(a, "operand_index"));
      return bc_mark_ints_of(w, ir_m_field(a, "operand_tuple_indices"));
    case BC_V_BOUNDS:
      return bc_mark_ints_of(w, ir_m_field(a, "bounds"));
    case BC_V_ACCURACY:
      return bc_mark_accuracy(w, a);
    case BC_V_SUB_AXIS:
      bc_mark_i64_of(w, ir_m_field(a, "pre_size"));
      bc_mark_i64_of(w, ir_m_field(a, "size"));
      return 0;
    case BC_V_AXIS_REF:
      return bc_mark_axis_ref(w, a);
    case BC_V_MESH_GROUPS:
      first = ir_m_field(a, "mesh"), second = ir_m_field(a, "axes");
      if (!first || !second) return bc_cant_write(w, "replica groups without a mesh or axes");
      TRY(bc_mark_attr(w, false, first));
      return bc_mark_attr(w, false, second);
    case BC_V_MESH_AXIS:
      first = ir_m_field(a, "name");
      if (!first) return bc_cant_write(w, "an axis without a name");
      TRY(bc_mark_attr(w, false, first));
      bc_mark_i64_of(w, ir_m_field(a, "size"));
      return 0;
    default:
      return bc_mark_mesh(w, a);
  }
}

/* Structs that VHLO takes apart never come here. */
static int bc_mark_struct(bc_writer *w, const ir_mattr *a) {
  static const struct {
    const char *name;
    uint8_t code;
    uint16_t first;
  } codes[] = {
      {"output_operand_alias", BC_V_ALIAS, 0},        {"type_extensions", BC_V_BOUNDS, 0},
      {"result_accuracy", BC_V_ACCURACY, BC_V(1, 9)}, {"sub_axis_info", BC_V_SUB_AXIS, BC_V(1, 16)},
      {"axis_ref", BC_V_AXIS_REF, BC_V(1, 16)},       {"replica_group_mesh_axes", BC_V_MESH_GROUPS, BC_V(1, 16)},
      {"mesh_axis", BC_V_MESH_AXIS, BC_V(1, 16)},     {"mesh", BC_V_MESH, BC_V(1, 16)}};
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    if (strcmp(codes[i].name, a->name) != 0) continue;
    if (w->version < codes[i].first)
      return bc_cant_write(w, "StableHLO %s has no %s; it came with %u.%u", w->version_text, a->name,
                           codes[i].first / 1000u, codes[i].first % 1000u);
    bc_mark(w, BC_MARK_VARINT, codes[i].code);
    return bc_mark_fields(w, codes[i].code, a);
  }
  return bc_cant_write(w, "attribute #%s.%s can't stand here in VHLO", a->dialect, a->name);
}

/* --- any --- */

/* Kinds that MLIR's own dialect and VHLO both have. */
static int bc_mark_shared(bc_writer *w, bool builtin, const ir_mattr *a) {
  switch (a->kind) {
    case IR_M_BOOL:
      return bc_mark_bool(w, builtin, a->v.b);
    case IR_M_INTEGER:
    case IR_M_FLOAT:
      return bc_mark_number(w, builtin, a);
    case IR_M_TYPE:
      bc_mark(w, BC_MARK_VARINT, builtin ? BC_B_TYPE : BC_V_TYPE);
      return bc_mark_type(w, builtin, a->type);
    case IR_M_ARRAY:
      return bc_mark_array(w, builtin, a->v.list);
    case IR_M_DICT:
      return bc_mark_dict(w, builtin, a->v.dict);
    case IR_M_DENSE:
    case IR_M_RESOURCE:
      return bc_mark_dense(w, builtin, a->type, a->v.literal, a->splat);
    case IR_M_DENSE_ARRAY:
      return builtin ? bc_mark_builtin_list(w, a) : bc_mark_list(w, a);
    default:
      return bc_cant_write(w, "an attribute of this kind has no form in VHLO");
  }
}

/* Kinds that VHLO lacks stay MLIR's own. */
static bool bc_is_builtin_only(const ir_mattr *a) {
  return a->kind == IR_M_UNIT || (a->kind == IR_M_STRING && a->type) || (a->kind == IR_M_SYMBOL && a->v.list->n > 1);
}

/* Units, symbols and strings with a type: VHLO has none of these. */
static int bc_mark_builtin_only(bc_writer *w, const ir_mattr *a) {
  if (a->kind == IR_M_UNIT) return bc_mark(w, BC_MARK_VARINT, BC_B_UNIT), 0;
  if (a->kind == IR_M_SYMBOL) return bc_mark_symbol(w, a->v.list);
  bc_mark(w, BC_MARK_VARINT, a->type ? BC_B_STRING_TYPED : BC_B_STRING);
  TRY(bc_mark_string(w, a->str));
  return a->type ? bc_mark_type(w, true, a->type) : 0;
}

/* The attribute's text under its dialect; the IR keeps it without the '#'. */
static int bc_add_opaque(bc_writer *w, const base_istr *s, uint32_t *out) {
  char *text = BASE_ARRAY(&w->scratch, char, (size_t)s->n + 2);
  if (!text) return bc_write_memory(w);
  text[0] = '#';
  memcpy(text + 1, s->s, s->n);
  return bc_add_foreign(w, &w->attrs, text, (size_t)s->n + 1, out);
}

/* Chooses the dialect: sdy's and other dialects' are their own, enums and structs VHLO's. */
int bc_add_attr(bc_writer *w, bool builtin, const ir_mattr *a, uint32_t *out) {
  assert(a);
  size_t from = w->marks.n;
  if (a->kind == IR_M_LOC) return bc_add_loc(w, a, out);
  if (a->kind == IR_M_OPAQUE) return bc_add_opaque(w, a->str, out);
  if (a->kind == IR_M_SDY) return bc_add_sdy(w, a, out);
  if (a->kind == IR_M_ENUM) return bc_add_enum(w, a->name, a->str->s, out);
  builtin = builtin || bc_is_builtin_only(a);
  TRY(bc_write_deeper(w));
  if (a->kind == IR_M_STRUCT) {
    builtin = false;
    TRY(bc_mark_struct(w, a));
  } else if (builtin && (bc_is_builtin_only(a) || a->kind == IR_M_STRING || a->kind == IR_M_SYMBOL)) {
    TRY(bc_mark_builtin_only(w, a));
  } else if (a->kind == IR_M_STRING || a->kind == IR_M_SYMBOL) {
    const base_istr *s = a->kind == IR_M_STRING ? a->str : a->v.list->v[0]->str;
    w->depth--;
    return bc_add_string(w, s->s, s->n, out);
  } else {
    TRY(bc_mark_shared(w, builtin, a));
  }
  w->depth--;
  return builtin ? bc_add_builtin(w, from, out) : bc_add_vhlo(w, from, out);
}

/* --- made up --- */

/* These make attributes that no op of the module has: what VHLO says and StableHLO leaves out. */
int bc_add_string(bc_writer *w, const char *s, size_t n, uint32_t *out) {
  size_t from = w->marks.n;
  uint32_t string = 0;
  TRY(bc_pool_string(w, s, n, &string));
  bc_mark(w, BC_MARK_VARINT, BC_V_STRING);
  bc_mark(w, BC_MARK_STRING, string);
  return bc_add_vhlo(w, from, out);
}

/* A VHLO bool. */
int bc_add_bool(bc_writer *w, bool v, uint32_t *out) {
  size_t from = w->marks.n;
  TRY(bc_mark_bool(w, false, v));
  return bc_add_vhlo(w, from, out);
}

/*   3 : i64 */
int bc_add_i64(bc_writer *w, int64_t v, uint32_t *out) {
  const ir_type i64 = {.kind = IR_TYPE_ELEMENT, .dtype = XLAC_S64};
  const ir_mattr a = {.kind = IR_M_INTEGER, .type = &i64, .v = {.i = v}};
  return bc_add_attr(w, false, &a, out);
}

/* All alike: `splat`, in a tensor of these dims; n 0 makes an empty one. */
int bc_add_i64s(bc_writer *w, uint32_t rank, const int64_t *dims, uint32_t n, int64_t splat, uint32_t *out) {
  const ir_type type = {.kind = IR_TYPE_TENSOR, .dtype = XLAC_S64, .rank = rank, .dims = dims};
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_V_TENSOR);
  TRY(bc_mark_type(w, false, &type));
  bc_mark_copy(w, &splat, n ? sizeof splat : 0);
  return bc_add_vhlo(w, from, out);
}

/*   dense<false> : tensor<nxi1>, as one byte; no byte where n is 0 */
int bc_add_bools(bc_writer *w, uint32_t n, uint32_t *out) {
  const int64_t dims[1] = {n};
  const ir_type type = {.kind = IR_TYPE_TENSOR, .dtype = XLAC_PRED, .rank = 1, .dims = dims};
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_V_TENSOR);
  TRY(bc_mark_type(w, false, &type));
  bc_mark_copy(w, "", n ? 1 : 0);
  return bc_add_vhlo(w, from, out);
}

/* The same enum n times, as a list. */
int bc_add_words(bc_writer *w, uint32_t n, const char *name, const char *word, uint32_t *out) {
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_V_ARRAY);
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t v = 0;
    TRY(bc_add_enum(w, name, word, &v));
    bc_mark(w, BC_MARK_ATTR, v);
  }
  return bc_add_vhlo(w, from, out);
}

/*   code, 0 */
int bc_add_empty(bc_writer *w, uint64_t code, uint32_t *out) {
  size_t from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, code);
  bc_mark(w, BC_MARK_VARINT, 0);
  return bc_add_vhlo(w, from, out);
}

/* atol, rtol and ulps 0, mode DEFAULT. */
int bc_add_accuracy(bc_writer *w, uint32_t *out) {
  size_t from = w->marks.n;
  uint32_t mode = 0;
  bc_mark(w, BC_MARK_VARINT, BC_V_ACCURACY);
  for (int i = 0; i < 3; i++) bc_mark(w, BC_MARK_SIGNED, 0);
  TRY(bc_add_enum(w, "result_accuracy_mode", "DEFAULT", &mode));
  bc_mark(w, BC_MARK_ATTR, mode);
  return bc_add_vhlo(w, from, out);
}

/* VHLO's way to say that there is no algorithm: the type none. */
int bc_add_none(bc_writer *w, uint32_t *out) {
  size_t from = w->marks.n, type_from;
  uint32_t type = 0;
  bc_mark(w, BC_MARK_VARINT, BC_V_TYPE);
  type_from = w->marks.n;
  bc_mark(w, BC_MARK_VARINT, BC_VT_NONE);
  TRY(bc_pool_add(w, &w->types, w->vhlo, true, type_from, &type));
  bc_mark(w, BC_MARK_TYPE, type);
  return bc_add_vhlo(w, from, out);
}

/* By bytes, a prefix before what it is a prefix of. */
static int bc_compare_pairs(const void *a, const void *b) {
  const bc_pair *x = a, *y = b;
  size_t n = x->n < y->n ? x->n : y->n;
  int order = memcmp(x->key, y->key, n);
  return order ? order : (x->n > y->n) - (x->n < y->n);
}

/* MLIR's dictionaries are sorted by key. */
int bc_add_dict(bc_writer *w, uint32_t n, bc_pair *v, uint32_t *out) {
  size_t from = w->marks.n;
  if (n > 1) qsort(v, n, sizeof *v, bc_compare_pairs);
  bc_mark(w, BC_MARK_VARINT, BC_B_DICT);
  bc_mark(w, BC_MARK_VARINT, n);
  for (uint32_t i = 0; i < n; i++) {
    uint32_t key = 0;
    TRY(bc_add_key(w, v[i].key, v[i].n, &key));
    bc_mark(w, BC_MARK_ATTR, key);
    bc_mark(w, BC_MARK_ATTR, v[i].value);
  }
  return bc_add_builtin(w, from, out);
}
