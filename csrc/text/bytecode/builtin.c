/* Attributes, locations and types of MLIR's builtin dialect in bytecode. Source: BuiltinDialectBytecode.td of MLIR.
 *
 * Portable artifacts use them for the module itself, for locations, and for what Shardy's ops have; the values of
 * StableHLO's own ops are VHLO's. */
#include "bytecode.h"

#include <stdio.h>

/* The string of an attribute that may never be needed as one: names of locations are many. Leaves *in behind the
 * code, before the number of the string. */
static bool bc_bare_string(bc_cursor *c, const bc_entry *e, bc_cursor *in) {
  uint64_t code = 0;
  if (e->done || e->busy || !e->custom || c->r->dialects[e->dialect].known != BC_BUILTIN) return false;
  *in = (bc_cursor){c->r, e->p, e->p + e->n};
  return bc_varint(in, &code) == 0 && code == BC_B_STRING;
}

/* Strings that are only names need not become attributes. */
static int bc_string_attr(bc_cursor *c, const base_istr **out) {
  bc_cursor at = *c, in;
  uint64_t index = 0;
  const ir_mattr *a;
  TRY(bc_varint(c, &index));
  if (index < c->r->n_attrs && bc_bare_string(c, &c->r->attrs[index], &in)) {
    c->r->weight++;
    return bc_read_string(&in, out);
  }
  TRY(bc_attr_at(c, index, &a));
  if (a->kind != IR_M_STRING) return BC_BAD(&at, "expected a string");
  *out = a->str;
  return 0;
}

/* An entry that must be a location. */
static int bc_loc_attr(bc_cursor *c, const ir_mattr **out) {
  return bc_attr_of(c, IR_M_LOC, "a location", out);
}

/*   [a, b] */
static int bc_array(bc_cursor *c, const ir_mattr **out) {
  uint32_t n = 0;
  const ir_mattr **v;
  TRY(bc_attrs(c, &n, &v));
  *out = ir_m_array(c->r->m, n, v);
  return bc_made(c, *out);
}

/* Keys are string attributes; two equal ones are an error. */
static int bc_dict(bc_cursor *c, const ir_mattr **out) {
  uint32_t n = 0;
  TRY(bc_count(c, 2, &n));
  ir_mentry *v = BASE_ARRAY(&c->r->scratch, ir_mentry, n + 1u);
  if (!v) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < n; i++) {
    TRY(bc_string_attr(c, &v[i].key));
    TRY(bc_attr(c, &v[i].value));
  }
  const ir_mdict *d = ir_mdict_make(c->r->m, n, v);
  TRY(bc_made(c, d));
  for (uint32_t i = 1; i < n; i++)
    if (d->v[i].key == d->v[i - 1].key) return BC_BAD(c, "a dictionary has a key twice");
  *out = ir_m_dict(c->r->m, d);
  return bc_made(c, *out);
}

/* @root, or @root::@a::@b where it is nested. */
static int bc_symbol(bc_cursor *c, bool nested, const ir_mattr **out) {
  const base_istr *root;
  uint32_t n = 0;
  const ir_mattr **more = NULL;
  TRY(bc_string_attr(c, &root));
  if (nested) TRY(bc_attrs(c, &n, &more));
  const ir_mattr **parts = BASE_ARRAY(&c->r->scratch, const ir_mattr *, n + 1u);
  if (!parts) return bc_no_memory(c->r);
  parts[0] = ir_m_string(c->r->m, root->s, root->n);
  for (uint32_t i = 0; i < n; i++) {
    if (more[i]->kind != IR_M_SYMBOL || more[i]->v.list->n != 1) return BC_BAD(c, "expected a symbol's part");
    parts[i + 1] = more[i]->v.list->v[0];
  }
  const ir_mattr *list = ir_m_array(c->r->m, n + 1, parts);
  ir_mattr *a = BASE_NEW(&c->r->m->arena, ir_mattr);
  if (!list || !a) return bc_no_memory(c->r);
  *a = (ir_mattr){.kind = IR_M_SYMBOL, .v = {.list = list->v.list}};
  *out = a;
  return 0;
}

/* A string, with a type where `typed`. */
static int bc_string_of_type(bc_cursor *c, bool typed, const ir_mattr **out) {
  const base_istr *s;
  const ir_type *type = NULL;
  TRY(bc_read_string(c, &s));
  if (typed) TRY(bc_type(c, &type));
  ir_mattr *a = BASE_NEW(&c->r->m->arena, ir_mattr);
  if (!a) return bc_no_memory(c->r);
  *a = (ir_mattr){.kind = IR_M_STRING, .str = s, .type = type};
  *out = a;
  return 0;
}

/* --- locations --- */

/* Lines and columns: 32 bits each, as in MLIR. */
static int bc_file_numbers(bc_cursor *c, uint32_t n, int64_t *v) {
  assert(n <= 4);
  for (uint32_t i = 0; i < n; i++) {
    uint64_t number = 0;
    TRY(bc_varint(c, &number));
    if (number > UINT32_MAX) return BC_BAD(c, "a line or column of %llu", (unsigned long long)number);
    v[i] = (int64_t)number;
  }
  return 0;
}

/* A range says as many of line, column, end line and end column as it needs: with three, the end is on the same line.
 */
static int bc_loc_range(bc_cursor *c, ir_mloc *loc) {
  uint32_t n = 0;
  int64_t v[4] = {0};
  TRY(bc_count(c, 1, &n));
  if (n > 4) return BC_BAD(c, "a range of %u numbers", n);
  TRY(bc_file_numbers(c, n, v));
  loc->line = loc->end_line = v[0];
  loc->col = loc->end_col = v[1];
  if (n == 3) loc->end_col = v[2];
  if (n == 4) loc->end_line = v[2], loc->end_col = v[3];
  loc->range = loc->end_line != loc->line || loc->end_col != loc->col;
  return 0;
}

/* The locations, then the metadata where there is some. */
static int bc_loc_fused(bc_cursor *c, bool metadata, ir_mloc *loc) {
  uint32_t n = 0;
  const ir_mattr **v;
  TRY(bc_attrs(c, &n, &v));
  for (uint32_t i = 0; i < n; i++)
    if (v[i]->kind != IR_M_LOC) return BC_BAD(c, "expected a location");
  if (metadata) TRY(bc_attr(c, &loc->metadata));
  const ir_mattr *list = ir_m_array(c->r->m, n, v);
  TRY(bc_made(c, list));
  loc->parts = list->v.list;
  assert(loc->parts->n == n);
  return 0;
}

/* Locations of all kinds; a name around an unknown location is the name alone. */
static int bc_loc(bc_cursor *c, uint64_t code, const ir_mattr **out) {
  ir_mloc loc = {.kind = IR_LOC_UNKNOWN};
  if (code == BC_B_LOC_FILE || code == BC_B_LOC_RANGE) {
    loc.kind = IR_LOC_FILE;
    TRY(bc_string_attr(c, &loc.name));
    if (code == BC_B_LOC_RANGE) {
      TRY(bc_loc_range(c, &loc));
    } else {
      int64_t v[2] = {0};
      TRY(bc_file_numbers(c, 2, v));
      loc.line = loc.end_line = v[0];
      loc.col = loc.end_col = v[1];
    }
  } else if (code == BC_B_LOC_NAME) {
    loc.kind = IR_LOC_NAME;
    TRY(bc_string_attr(c, &loc.name));
    TRY(bc_loc_attr(c, &loc.child));
    if (loc.child->v.loc->kind == IR_LOC_UNKNOWN) loc.child = NULL;
  } else if (code == BC_B_LOC_CALLSITE) {
    loc.kind = IR_LOC_CALLSITE;
    TRY(bc_loc_attr(c, &loc.child));
    TRY(bc_loc_attr(c, &loc.caller));
  } else if (code != BC_B_LOC_UNKNOWN) {
    loc.kind = IR_LOC_FUSED;
    TRY(bc_loc_fused(c, code == BC_B_LOC_FUSED_METADATA, &loc));
    if (loc.parts->n == 0) return BC_BAD(c, "a fused location of no locations"); /* the text has none */
  }
  *out = ir_m_loc(c->r->m, &loc);
  return bc_made(c, *out);
}

/* --- data --- */

/* array<i64: 1, 2>: type, count, bytes. */
static int bc_builtin_array(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  uint64_t n = 0;
  base_slice data = {0};
  TRY(bc_type(c, &type));
  TRY(bc_varint(c, &n));
  TRY(bc_blob(c, &data));
  return bc_dense_array(c, type, n > INT64_MAX ? -1 : (int64_t)n, data, out);
}

/* One string for a splat. */
static int bc_dense_strings(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  uint64_t splat = 0;
  uint32_t n = 0;
  TRY(bc_type(c, &type));
  TRY(bc_varint(c, &splat));
  TRY(bc_count(c, 1, &n));
  if (!ir_is_tensor(type) || (splat ? n != 1 : (int64_t)n != type->count))
    return BC_BAD(c, "a tensor of strings with %u of them", n);
  const ir_mattr **v = BASE_ARRAY(&c->r->scratch, const ir_mattr *, n + 1u);
  if (!v) return bc_no_memory(c->r);
  for (uint32_t i = 0; i < n; i++) TRY(bc_string_of_type(c, false, &v[i]));
  const ir_mattr *list = ir_m_array(c->r->m, n, v);
  ir_mattr *a = BASE_NEW(&c->r->m->arena, ir_mattr);
  if (!list || !a) return bc_no_memory(c->r);
  *a = (ir_mattr){.kind = IR_M_DENSE_STRING, .splat = splat != 0, .type = type, .v = {.list = list->v.list}};
  *out = a;
  return 0;
}

/* A type that stands where an attribute is wanted: TypeAttr. */
static int bc_type_as_attr(bc_cursor *c, const ir_mattr **out) {
  const ir_type *type;
  TRY(bc_type(c, &type));
  *out = ir_m_type(c->r->m, type);
  return bc_made(c, *out);
}

/* By the code. */
int bc_builtin_attr(bc_cursor *c, const ir_mattr **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  switch (code) {
    case BC_B_ARRAY:
      return bc_array(c, out);
    case BC_B_DICT:
      return bc_dict(c, out);
    case BC_B_STRING:
    case BC_B_STRING_TYPED:
      return bc_string_of_type(c, code == BC_B_STRING_TYPED, out);
    case BC_B_SYMBOL:
    case BC_B_NESTED_SYMBOL:
      return bc_symbol(c, code == BC_B_NESTED_SYMBOL, out);
    case BC_B_TYPE:
      return bc_type_as_attr(c, out);
    case BC_B_UNIT:
      *out = ir_m_unit(c->r->m);
      return bc_made(c, *out);
    case BC_B_INTEGER:
      return bc_integer(c, out);
    case BC_B_FLOAT:
      return bc_float(c, out);
    case BC_B_LOC_CALLSITE:
    case BC_B_LOC_FILE:
    case BC_B_LOC_FUSED:
    case BC_B_LOC_FUSED_METADATA:
    case BC_B_LOC_NAME:
    case BC_B_LOC_UNKNOWN:
    case BC_B_LOC_RANGE:
      return bc_loc(c, code, out);
    case BC_B_DENSE_ARRAY:
      return bc_builtin_array(c, out);
    case BC_B_DENSE:
      return bc_dense(c, out);
    case BC_B_DENSE_STRING:
      return bc_dense_strings(c, out);
    default:
      return BC_BAD(&at, "an attribute of the builtin dialect with code %llu, which xlac does not read",
                    (unsigned long long)code);
  }
}

/* --- types --- */

/* i1 is pred, other signless widths that xlac has are its signed ones; any other width is a type without arithmetic. */
static int bc_integer_type(bc_cursor *c, const ir_type **out) {
  uint64_t v = 0;
  TRY(bc_varint(c, &v));
  uint64_t width = v >> 2, sign = v & 3; /* 0 none, 1 signed, 2 unsigned */
  char text[32];
  if (width == 0 || width > 1 << 24 || sign > 2)
    return BC_BAD(c, "an integer type of %llu bits", (unsigned long long)width);
  if (sign != 1 && !(sign == 0 && width == 1)) {
    int n = snprintf(text, sizeof text, "%c%u", sign == 2 ? 'u' : 's', (unsigned)width);
    base_dtype dtype = base_dtype_from_text(text, (size_t)n);
    if (dtype != BASE_DTYPE_INVALID && width > 1) return *out = ir_element(c->r->m, dtype, NULL), bc_made(c, *out);
  }
  if (sign == 0 && width == 1) return *out = ir_element(c->r->m, XLAC_PRED, NULL), bc_made(c, *out);
  int n = snprintf(text, sizeof text, "%si%u", sign == 1 ? "s" : sign == 2 ? "u" : "", (unsigned)width);
  *out = ir_other_type(c->r->m, text, (size_t)n);
  return bc_made(c, *out);
}

/* Types that are only a name here. */
static int bc_named_type(bc_cursor *c, const char *text, const ir_type **out) {
  *out = ir_other_type(c->r->m, text, strlen(text));
  return bc_made(c, *out);
}

/* [encoding], dimensions, element type. */
static int bc_builtin_tensor(bc_cursor *c, bool encoded, const ir_type **out) {
  const ir_mattr *encoding = NULL;
  const ir_type *element;
  uint32_t rank = 0;
  int64_t *dims;
  if (encoded) TRY(bc_attr(c, &encoding));
  TRY(bc_ints(c, &rank, &dims));
  TRY(bc_type(c, &element));
  return bc_make_tensor(c, element, rank, dims, encoding, out);
}

/* Types made of types. */
static int bc_wrapped_type(bc_cursor *c, uint64_t code, const ir_type **out) {
  uint32_t n = 0, n_results = 0;
  const ir_type **v, **results;
  const ir_type *element;
  if (code == BC_BT_COMPLEX || code == BC_BT_UNRANKED) {
    TRY(bc_type(c, &element));
    return code == BC_BT_COMPLEX ? bc_make_complex(c, element, out) : bc_make_unranked(c, element, out);
  }
  TRY(bc_types(c, &n, &v));
  if (code == BC_BT_TUPLE) return *out = ir_tuple(c->r->m, n, v), bc_made(c, *out);
  TRY(bc_types(c, &n_results, &results));
  *out = ir_function_type(c->r->m, n, n_results, v, results);
  return bc_made(c, *out);
}

/* MLIR's own types, by the codes of BuiltinDialectBytecode.cpp. Floats first, as they have no parts. */
int bc_builtin_type(bc_cursor *c, const ir_type **out) {
  bc_cursor at = *c;
  uint64_t code = 0;
  TRY(bc_varint(c, &code));
  base_dtype dtype = bc_float_of(code);
  if (dtype) return *out = ir_element(c->r->m, dtype, NULL), bc_made(c, *out);
  switch (code) {
    case BC_BT_INTEGER:
      return bc_integer_type(c, out);
    case BC_BT_INDEX:
      return bc_named_type(c, "index", out);
    case BC_BT_F80:
      return bc_named_type(c, "f80", out);
    case BC_BT_F128:
      return bc_named_type(c, "f128", out);
    case BC_BT_TF32:
      return bc_named_type(c, "tf32", out);
    case BC_BT_NONE:
      return bc_named_type(c, "none", out);
    case BC_BT_FUNCTION:
    case BC_BT_COMPLEX:
    case BC_BT_TUPLE:
    case BC_BT_UNRANKED:
      return bc_wrapped_type(c, code, out);
    case BC_BT_TENSOR:
    case BC_BT_TENSOR_ENCODING:
      return bc_builtin_tensor(c, code == BC_BT_TENSOR_ENCODING, out);
    default:
      return BC_BAD(&at, "a type of the builtin dialect with code %llu, which xlac does not read",
                    (unsigned long long)code);
  }
}
