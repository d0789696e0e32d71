/* Attributes: numbers, lists, dictionaries, elements, and StableHLO's structs and enums. Their nesting is bounded by
 * what readers accept.
 *
 * An attribute is printed in one of three ways: whole (mprint_attr), as an element of a list, which leaves i64 and
 * f64 out (mprint_attr_short), or bare, as the form of an op that knows its kind (mprint_attr_bare):
 *   #stablehlo<precision HIGHEST>, 3 : i64      [3, 4 : i32]      precision = [HIGHEST], dim = 3 */
#include "print.h"
#include "../sdy/print.h"
#include "../../../base/list.h"

/* ---- dense<...>, dense_resource<...>, and the section of the resources' data. */

/* Lists longer than this are printed as bytes. */
enum { MPRINT_LONGEST_LIST = 100 };

typedef void mprint_put_fn(mprint *p, const ir_mattr *a, int64_t i);

/* Element i in row-major order. */
static void mprint_put_element(mprint *p, const ir_mattr *a, int64_t i) {
  assert(i >= 0 && i < a->v.literal->type->count);
  const ir_literal *l = a->v.literal;
  mprint_element(p->out, l->type->dtype, (const char *)l->data + (size_t)i * base_dtype_bytes(l->type->dtype));
}

/* Element i of a dense of strings, in quotes. */
static void mprint_put_string(mprint *p, const ir_mattr *a, int64_t i) {
  assert(i < (int64_t)a->v.list->n);
  const base_istr *s = a->v.list->v[i]->str;
  mprint_quoted(p->out, s->s, s->n);
}

/* The elements in nested brackets: at each, as many open or close as there are dimensions whose row begins or ends.
 *   [[1, 2], [3, 4]] */
static void mprint_nested(mprint *p, const ir_mattr *a, mprint_put_fn *put) {
  const ir_type *t = a->type;
  int64_t count = t->count, innermost = t->rank ? t->dims[t->rank - 1] : 1;
  for (int64_t i = 0; i < count; i++) {
    uint32_t opens = 0, closes = 0;
    if (t->rank && (i % innermost == 0 || (i + 1) % innermost == 0)) {
      int64_t row = 1;
      for (uint32_t d = t->rank; d-- > 0;) {
        row *= t->dims[d];
        opens += i % row == 0;
        closes += (i + 1) % row == 0;
      }
    }
    if (i) BASE_PUT(p->out, ", ");
    while (opens--) base_putc(p->out, '[');
    put(p, a, i);
    while (closes--) base_putc(p->out, ']');
  }
}

/* MLIR stores, and so prints, equal elements once. Compares each element with the next by comparing the data with
 * itself, shifted by one. There is at least one element. */
static bool mprint_all_equal(const ir_literal *l) {
  assert(l->data && l->type->count > 0);
  size_t size = base_dtype_bytes(l->type->dtype), n = (size_t)l->type->count;
  const char *data = l->data;
  return n == 1 || memcmp(data, data + size, (n - 1) * size) == 0;
}

/* Types narrower than a byte are sign-extended in memory, but not in MLIR's bytes. */
static void mprint_bytes(base_text *o, const ir_literal *l) {
  const base_dtype_info *info = base_dtype_of(l->type->dtype);
  size_t n = (size_t)l->type->count;
  base_putc(o, '"');
  BASE_PUT(o, "0x");
  if (info->bits < 8 && info->kind == BASE_KIND_SINT)
    for (size_t i = 0; i < n; i++) {
      uint8_t low = ((const uint8_t *)l->data)[i] & ((1u << info->bits) - 1);
      mprint_hex(o, &low, 1);
    }
  else
    mprint_hex(o, l->data, n * info->bytes);
  base_putc(o, '"');
}

/* A splat prints one element, a short list its elements, a long one the bytes in hexadecimal. */
static void mprint_dense_body(mprint *p, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  if (!l || !l->data || l->type->count == 0) return;
  if (a->splat || mprint_all_equal(l))
    mprint_put_element(p, a, 0);
  else if (l->type->count > MPRINT_LONGEST_LIST)
    mprint_bytes(p->out, l);
  else
    mprint_nested(p, a, mprint_put_element);
}

/*   dense<"a"> : tensor<2x!t>      dense<["a", "b"]> : tensor<2x!t>
 *
 * Equal strings are printed as a splat, whatever they were read from. */
static void mprint_dense_strings(mprint *p, const ir_mattr *a) {
  const ir_mattrs *list = a->v.list;
  if (!list || list->n == 0) return;
  bool same = true;
  for (uint32_t i = 1; i < list->n; i++) same = same && ir_mattr_equal(list->v[0], list->v[i]);
  if (same || (int64_t)list->n < a->type->count)
    mprint_put_string(p, a, 0);
  else
    mprint_nested(p, a, mprint_put_string);
}

/* Only what would be long: splats print as one element anyway. */
static bool mprint_elides(const mprint *p, const ir_mattr *a) {
  if (!p->elide_over || a->kind == IR_M_RESOURCE) return false;
  if (!a->type || a->type->count <= (int64_t)p->elide_over) return false;
  return a->kind == IR_M_DENSE && !a->splat && a->v.literal && a->v.literal->data && !mprint_all_equal(a->v.literal);
}

/* Resources are listed once for each key, in the order of their first use. An attribute printed alone has no such
 * list. */
static void mprint_note_resource(mprint *p, const ir_mattr *a) {
  if (!a->v.literal || !p->names) return;
  if (base_map_ptr(&p->resource_keys, a->str)) return;
  if (!base_map_set(&p->resource_keys, base_key(a->str), 1) || !BASE_VEC_PUSH(p->alloc, &p->resources, a))
    p->failed = true;
}

/* Without the type, which stands behind. */
void mprint_dense(mprint *p, const ir_mattr *a) {
  if (mprint_elides(p, a)) {
    BASE_PUT(p->out, "dense_resource<__elided__>");
    return;
  }
  if (a->kind == IR_M_RESOURCE) {
    BASE_PUT(p->out, "dense_resource<");
    mprint_keyword(p->out, a->str);
    base_putc(p->out, '>');
    mprint_note_resource(p, a);
    return;
  }
  BASE_PUT(p->out, "dense<");
  if (a->kind == IR_M_DENSE)
    mprint_dense_body(p, a);
  else
    mprint_dense_strings(p, a);
  base_putc(p->out, '>');
}

/* A resource is its alignment, four bytes, and its data. */
static void mprint_resource(mprint *p, const ir_mattr *a) {
  assert(a->v.literal);
  const ir_literal *l = a->v.literal;
  uint32_t align = (uint32_t)(a->bits ? a->bits : base_dtype_bytes(base_dtype_real_part(l->type->dtype)));
  BASE_PUT(p->out, "      ");
  mprint_keyword(p->out, a->str);
  BASE_PUT(p->out, ": \"0x");
  mprint_hex(p->out, &align, sizeof align);
  if (l->data) mprint_hex(p->out, l->data, (size_t)l->type->count * base_dtype_bytes(l->type->dtype));
  base_putc(p->out, '"');
}

/*   {-# dialect_resources: { builtin: { key: "0x..." } } #-}   on lines of their own */
void mprint_resources(mprint *p) {
  if (p->resources.n == 0) return;
  BASE_PUT(p->out, "\n{-#\n  dialect_resources: {\n    builtin: {\n");
  for (uint32_t i = 0; i < p->resources.n; i++) {
    if (i) BASE_PUT(p->out, ",\n");
    mprint_resource(p, p->resources.items[i]);
  }
  BASE_PUT(p->out, "\n    }\n  }\n#-}\n");
}

/* ---- StableHLO's and CHLO's structured attributes, from the angle bracket on. */

/* What a field holds when it is absent. */
static bool mprint_field_is_empty(const ir_mattr *v) {
  switch ((ir_mattr_kind)v->kind) {
    case IR_M_INTEGER:
      return v->v.i == 0;
    case IR_M_FLOAT:
      return v->v.f == 0;
    case IR_M_DENSE_ARRAY:
      return !v->v.literal || v->v.literal->type->count == 0;
    default:
      return false;
  }
}

/* Fields that are themselves attributes of any kind come whole, with '#' and name. */
static void mprint_field(mprint *p, const ir_field_info *f, const ir_mattr *v) {
  if (v->kind == IR_M_ENUM)
    mprint_attr(p, v);
  else if (f->kind == IR_F_ANY && strcmp(f->name, "sub_axis_info") != 0)
    mprint_attr(p, v);
  else
    mprint_attr_bare(p, v);
}

/* `all`: those that are empty too. */
static void mprint_fields(mprint *p, const ir_mattr *a, const ir_struct_info *info, bool all) {
  bool some = false;
  for (const ir_field_info *f = info->fields; f->name; f++) {
    const ir_mattr *v = ir_m_field(a, f->name);
    if (!v || (!all && !f->always && mprint_field_is_empty(v))) continue;
    if (some) BASE_PUT(p->out, ", ");
    some = true;
    base_puts(p->out, f->name);
    BASE_PUT(p->out, " = ");
    mprint_field(p, f, v);
  }
}

/* 0 where the struct has no such field, which is its default. */
static int64_t mprint_field_i64(const ir_mattr *a, const char *name) {
  const ir_mattr *v = ir_m_field(a, name);
  return v && v->kind == IR_M_INTEGER ? v->v.i : 0;
}

/* The attributes of one side of a convolution, and how its two dimensions that are not spatial are written. */
typedef struct mprint_conv_side {
  const char *first, *second, *spatial, *letters;
} mprint_conv_side;
/* Input, kernel, output; the letters are those of the two numbered dimensions, in the order of the fields. */
static const mprint_conv_side mprint_conv_sides[3] = {
    {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions", "bf"},
    {"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions", "io"},
    {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", "bf"}};

/* Where dimension d stands: -1 the first letter, -2 the second, else the number of the spatial one; -3 nowhere. */
static int64_t mprint_conv_place(const int64_t *spatial, uint32_t n, int64_t first, int64_t second, int64_t d) {
  if (d == first) return -1;
  if (d == second) return -2;
  int64_t at = base_list_at(spatial, n, d);
  return at < 0 ? -3 : at;
}

/* Every dimension stands once, as there are as many places as dimensions. */
static bool mprint_side_is_plain(mprint *p, const ir_mattr *a, const mprint_conv_side *side) {
  uint32_t n;
  const int64_t *spatial = mprint_ints(p, ir_m_field(a, side->spatial), &n);
  int64_t first = mprint_field_i64(a, side->first), second = mprint_field_i64(a, side->second);
  for (int64_t d = 0; d < (int64_t)n + 2; d++)
    if (mprint_conv_place(spatial, n, first, second, d) == -3) return false;
  return true;
}

/* Fields that are not a permutation (in a module that breaks the rules) are printed as they are: #stablehlo.conv<raw
 * ...>. */
bool mprint_conv_is_plain(mprint *p, const ir_mattr *a) {
  bool plain = true;
  for (int i = 0; i < 3; i++) plain = plain && mprint_side_is_plain(p, a, &mprint_conv_sides[i]);
  return plain;
}

/* The side's dimensions in order, each as a letter or the number of its spatial dimension. */
static void mprint_side(mprint *p, const ir_mattr *a, const mprint_conv_side *side) {
  uint32_t n;
  const int64_t *spatial = mprint_ints(p, ir_m_field(a, side->spatial), &n);
  int64_t first = mprint_field_i64(a, side->first), second = mprint_field_i64(a, side->second);
  base_putc(p->out, '[');
  for (int64_t d = 0; d < (int64_t)n + 2; d++) {
    if (d) BASE_PUT(p->out, ", ");
    int64_t place = mprint_conv_place(spatial, n, first, second, d);
    assert(place >= -2);
    if (place < 0)
      base_putc(p->out, side->letters[place == -1 ? 0 : 1]);
    else
      base_put_i64(p->out, place);
  }
  base_putc(p->out, ']');
}

/*   [b, 0, f]x[0, i, o]->[b, 0, f] */
void mprint_conv_dims(mprint *p, const ir_mattr *a) {
  static const char *const between[3] = {"x", "->", ""};
  for (int i = 0; i < 3; i++) {
    mprint_side(p, a, &mprint_conv_sides[i]);
    base_puts(p->out, between[i]);
  }
}

/* bounds<?, 5>: the name of type_extensions in text. */
static void mprint_type_extensions(mprint *p, const ir_mattr *a) {
  uint32_t n;
  const int64_t *v = mprint_ints(p, ir_m_field(a, "bounds"), &n);
  BASE_PUT(p->out, "bounds<");
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    if (v[i] == IR_UNBOUNDED)
      base_putc(p->out, '?');
    else
      base_put_i64(p->out, v[i]);
  }
  base_putc(p->out, '>');
}

/* MLIR prints a mesh's axes without their names: [<name = "x", size = 2>]. */
static void mprint_mesh(mprint *p, const ir_mattr *a) {
  const ir_mattr *axes = ir_m_field(a, "axes"), *ids = ir_m_field(a, "device_ids");
  BASE_PUT(p->out, "<axes=[");
  for (uint32_t i = 0; axes && axes->kind == IR_M_ARRAY && i < axes->v.list->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_attr_bare(p, axes->v.list->v[i]);
  }
  base_putc(p->out, ']');
  if (ids) {
    BASE_PUT(p->out, ", device_ids=");
    mprint_attr(p, ids);
  }
  base_putc(p->out, '>');
}

/*   (1)2 */
static void mprint_sub_axis(mprint *p, const ir_mattr *a) {
  base_putc(p->out, '(');
  base_put_i64(p->out, mprint_field_i64(a, "pre_size"));
  base_putc(p->out, ')');
  base_put_i64(p->out, mprint_field_i64(a, "size"));
}

/* A few structs have assembly formats of their own; the others print their fields by name. */
void mprint_struct(mprint *p, const ir_mattr *a) {
  if (strcmp(a->name, "type_extensions") == 0) {
    mprint_type_extensions(p, a);
    return;
  }
  if (strcmp(a->name, "mesh") == 0) {
    mprint_mesh(p, a);
    return;
  }
  if (strcmp(a->name, "sub_axis_info") == 0) {
    mprint_sub_axis(p, a);
    return;
  }
  base_putc(p->out, '<');
  const ir_struct_info *info = ir_struct_find(a->dialect, strlen(a->dialect), a->name, strlen(a->name));
  bool conv = strcmp(a->name, "conv") == 0;
  if (conv && mprint_conv_is_plain(p, a)) {
    mprint_conv_dims(p, a);
  } else if (info) {
    if (conv) BASE_PUT(p->out, "raw ");
    mprint_fields(p, a, info, conv);
  }
  base_putc(p->out, '>');
}

/* Integers of this type are printed without it in lists, and with it elsewhere: [1, 2], but a = 1 : i64. */
static bool mprint_is_i64(const ir_type *t) {
  return t->kind == IR_TYPE_ELEMENT && t->dtype == XLAC_S64 && !t->quant && !t->text;
}

static void mprint_colon_type(base_text *o, const ir_type *t) {
  BASE_PUT(o, " : ");
  mprint_type(o, t);
}

/* Types that are not signed print as what they mean: 255 of ui8. */
static void mprint_integer(base_text *o, const ir_mattr *a) {
  bool element = a->type && a->type->kind == IR_TYPE_ELEMENT;
  if (element && base_dtype_is_unsigned(a->type->dtype))
    base_put_u64(o, (uint64_t)a->v.i);
  else
    base_put_i64(o, a->v.i);
}

/* Whether it was written in hexadecimal, which a list never leaves untyped. */
static bool mprint_float_attr(base_text *o, const ir_mattr *a) {
  size_t from = o->n;
  bool dtype = a->type && a->type->kind == IR_TYPE_ELEMENT && base_dtype_is_float(a->type->dtype);
  if (dtype)
    mprint_float(o, a->type->dtype, a->bits, base_load_f64((base_dtype)a->type->dtype, &a->bits));
  else
    mprint_f64(o, a->v.f);
  return o->n > from + 1 && o->s[from + 1] == 'x';
}

/*   [1, "a", @f] */
static void mprint_list(mprint *p, const ir_mattrs *list) {
  base_putc(p->out, '[');
  for (uint32_t i = 0; list && i < list->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_attr_short(p, list->v[i]);
  }
  base_putc(p->out, ']');
}

/*   a = 1 : i64      b       "odd key" = true
 *
 * A unit is its key alone. */
void mprint_entry(mprint *p, const ir_mentry *e) {
  mprint_keyword(p->out, e->key);
  if (e->value->kind == IR_M_UNIT) return;
  BASE_PUT(p->out, " = ");
  mprint_attr(p, e->value);
}

void mprint_dict(mprint *p, const ir_mdict *d) {
  base_putc(p->out, '{');
  for (uint32_t i = 0; d && i < d->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_entry(p, &d->v[i]);
  }
  base_putc(p->out, '}');
}

/*   @f      @outer::@inner */
static void mprint_symbol_path(base_text *o, const ir_mattrs *path) {
  for (uint32_t i = 0; path && i < path->n; i++) {
    if (i) BASE_PUT(o, "::");
    mprint_symbol(o, path->v[i]->str->s, path->v[i]->str->n);
  }
}

/*   1, 2, 3 */
void mprint_dense_array(mprint *p, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  if (!l || !l->data) return;
  size_t size = base_dtype_bytes(l->type->dtype);
  for (int64_t i = 0; i < l->type->count; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_element(p->out, l->type->dtype, (const char *)l->data + (size_t)i * size);
  }
}

/*   array<i64: 1, 2>   array<i64> */
static void mprint_array_attr(mprint *p, const ir_mattr *a) {
  BASE_PUT(p->out, "array<");
  mprint_type(p->out, a->type);
  if (a->v.literal && a->v.literal->type->count) {
    BASE_PUT(p->out, ": ");
    mprint_dense_array(p, a);
  }
  base_putc(p->out, '>');
}

/* Words of enums that MLIR keeps as plain integers; -1 for others. */
static int mprint_enum_number(const ir_mattr *a) {
  if (strcmp(a->name, "custom_call_api_version") != 0) return -1;
  return (int)a->v.i;
}

/*   #stablehlo<precision HIGHEST>   #stablehlo.result_accuracy_mode<HIGHEST> */
static void mprint_enum(base_text *o, const ir_mattr *a) {
  int number = mprint_enum_number(a);
  if (number >= 0) {
    base_put_i64(o, number);
    BASE_PUT(o, " : i32");
    return;
  }
  /* The one enum whose format has angle brackets of its own. */
  bool bracketed = strcmp(a->name, "result_accuracy_mode") == 0;
  base_putc(o, '#');
  base_puts(o, a->dialect);
  base_putc(o, bracketed ? '.' : '<');
  base_puts(o, a->name);
  base_putc(o, bracketed ? '<' : ' ');
  base_put(o, a->str->s, a->str->n);
  base_putc(o, '>');
}

/*   #stablehlo.dot<lhs_contracting_dimensions = [1], ...> */
static void mprint_struct_attr(mprint *p, const ir_mattr *a) {
  base_putc(p->out, '#');
  base_puts(p->out, a->dialect);
  if (strcmp(a->name, "sub_axis_info") == 0) { /* has no angle brackets of its own */
    BASE_PUT(p->out, "<sub_axis_info");
    mprint_struct(p, a);
    base_putc(p->out, '>');
    return;
  }
  base_putc(p->out, '.');
  if (strcmp(a->name, "type_extensions") != 0) base_puts(p->out, a->name);
  mprint_struct(p, a);
}

/* `in_list`: i64 and f64 stand without their types, but for floats in hexadecimal, which would read as integers. */
static void mprint_typed(mprint *p, const ir_mattr *a, bool in_list) {
  base_text *o = p->out;
  if (a->kind == IR_M_INTEGER) {
    if (a->type && a->type->kind == IR_TYPE_ELEMENT && a->type->dtype == XLAC_PRED) {
      base_puts(o, a->v.i ? "true" : "false");
      return;
    }
    mprint_integer(o, a);
    if (!(in_list && a->type && mprint_is_i64(a->type)) && a->type) mprint_colon_type(o, a->type);
    return;
  }
  bool hex = mprint_float_attr(o, a);
  bool f64 = !a->type || (a->type->kind == IR_TYPE_ELEMENT && a->type->dtype == XLAC_F64);
  if (!(in_list && f64 && !hex) && a->type) mprint_colon_type(o, a->type);
}

/* Every kind of attribute, by the syntax that MLIR's parser reads back as the same kind. `in_list`: i64 without its
 * type. */
static void mprint_attr_in(mprint *p, const ir_mattr *a, bool in_list) {
  assert(a);
  base_text *o = p->out;
  switch ((ir_mattr_kind)a->kind) {
    case IR_M_UNIT:
      BASE_PUT(o, "unit");
      return;
    case IR_M_BOOL:
      base_puts(o, a->v.b ? "true" : "false");
      return;
    case IR_M_INTEGER:
    case IR_M_FLOAT:
      mprint_typed(p, a, in_list);
      return;
    case IR_M_STRING:
      mprint_quoted(o, a->str->s, a->str->n);
      if (a->type) mprint_colon_type(o, a->type);
      return;
    case IR_M_TYPE:
      mprint_type(o, a->type);
      return;
    case IR_M_SYMBOL:
      mprint_symbol_path(o, a->v.list);
      return;
    case IR_M_ARRAY:
      mprint_list(p, a->v.list);
      return;
    case IR_M_DICT:
      mprint_dict(p, a->v.dict);
      return;
    case IR_M_DENSE_ARRAY:
      mprint_array_attr(p, a);
      return;
    case IR_M_DENSE:
    case IR_M_DENSE_STRING:
    case IR_M_RESOURCE:
      mprint_dense(p, a);
      if (a->type) mprint_colon_type(o, a->type);
      return;
    case IR_M_ENUM:
      mprint_enum(o, a);
      return;
    case IR_M_STRUCT:
      mprint_struct_attr(p, a);
      return;
    case IR_M_OPAQUE:
      if (!a->hex) base_putc(o, '#');
      base_put(o, a->str->s, a->str->n);
      return;
    case IR_M_SDY:
      mlir_sdy_print_attr(o, a);
      return;
    case IR_M_LOC:
      BASE_PUT(o, "loc(");
      mprint_loc_body(p, a);
      base_putc(o, ')');
      return;
  }
}

/* As in a dictionary; as in a list; and as forms want it, where the syntax about it says the type already. */
void mprint_attr(mprint *p, const ir_mattr *a) {
  mprint_attr_in(p, a, false);
}

void mprint_attr_short(mprint *p, const ir_mattr *a) {
  mprint_attr_in(p, a, true);
}

/*   3            not 3 : i64
 *   [1, 2]       not array<i64: 1, 2>
 *   HIGH         not #stablehlo<precision HIGH>
 *   <a = 1>      not #stablehlo.name<a = 1> */
void mprint_attr_bare(mprint *p, const ir_mattr *a) {
  base_text *o = p->out;
  switch ((ir_mattr_kind)a->kind) {
    case IR_M_INTEGER:
      mprint_integer(o, a);
      return;
    case IR_M_FLOAT:
      mprint_float_attr(o, a);
      return;
    case IR_M_DENSE_ARRAY:
      base_putc(o, '[');
      mprint_dense_array(p, a);
      base_putc(o, ']');
      return;
    case IR_M_ENUM:
      base_put(o, a->str->s, a->str->n);
      return;
    case IR_M_STRUCT:
      mprint_struct(p, a);
      return;
    case IR_M_SDY:
      mlir_sdy_print_bare(o, (sdy_kind)a->sub, a->v.sdy);
      return;
    default:
      mprint_attr(p, a);
  }
}

/* *n is 0 where there is no list; the result is never NULL. */
const int64_t *mprint_ints(mprint *p, const ir_mattr *a, uint32_t *n) {
  const int64_t *v = ir_m_ints(a, &p->arena, n);
  static const int64_t none[1];
  return v ? v : none;
}

/* Without names of values and without resources: an attribute refers to neither. */
void text_put_mlir_attr(base_text *out, const ir_mattr *a) {
  mprint p = {.out = out, .alloc = out->alloc};
  base_arena_init(&p.arena, out->alloc);
  mprint_attr(&p, a);
  base_arena_free(&p.arena);
}
