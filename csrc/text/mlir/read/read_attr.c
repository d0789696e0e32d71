/* MLIR attributes: what may stand behind "name =".
 *
 *   3 : i64   1.5 : f32   "s"   @f::@g   [1, 2]   {a = 1}   true   unit   dense<0> : tensor<2xi32>   array<i64: 1, 2>
 *   #stablehlo<precision HIGHEST>   #stablehlo.dot<...>   #sdy.sharding<...>   #loc3   #other.thing<...> tensor<2xf32>
 * Attributes of StableHLO and CHLO are read by the tables of enums and structs in ir/attrs/mattr_table.c; those of
 * dialects that are not known are kept as their text (IR_M_OPAQUE). */
#include "read.h"
#include "../sdy/read.h"

/* ---- Dictionaries of attributes, and the attributes of the op that is being read. */

/* `name` is a constant of the program. value NULL means that making it failed for want of memory. */
int mlir_add_attr(mlir_reader *r, const char *name, const ir_mattr *value) {
  assert(name && *name);
  ir_mentry e = {mlir_intern_word(r, name), value};
  return e.key && value && BASE_VEC_PUSH(r->alloc, &r->entries, e) ? 0 : mlir_no_memory(r);
}

/*   a = 1   "quoted" = 1   b
 * A name alone has the value unit. */
static int mlir_read_entry(mlir_reader *r, uint32_t from) {
  const char *at = r->lx.p;
  ir_mentry e;
  if (*at == '"') {
    TRY(mlir_read_string(r, &e.key));
  } else {
    base_slice w = mlir_word(r);
    if (w.n == 0) return mlir_expected(r, "an attribute name");
    if (!(e.key = ir_intern(r->m, w.p, w.n))) return mlir_no_memory(r);
    mlir_skip_word(r, w);
  }
  for (uint32_t i = from; i < r->entries.n; i++)
    if (r->entries.items[i].key == e.key)
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "duplicate key '%s' in dictionary attribute", e.key->s);
  if (mlir_eat(r, "=")) {
    TRY(mlir_read_attr(r, &e.value));
  } else if (!(e.value = ir_m_unit(r->m))) {
    return mlir_no_memory(r);
  }
  return BASE_VEC_PUSH(r->alloc, &r->entries, e) ? 0 : mlir_no_memory(r);
}

/*   {a = 1, b}: onto r->entries */
int mlir_read_entries(mlir_reader *r) {
  uint32_t from = r->entries.n;
  TRY(mlir_want(r, "{"));
  if (mlir_eat(r, "}")) return 0;
  do TRY(mlir_read_entry(r, from));
  while (mlir_eat(r, ","));
  return mlir_want(r, "}");
}

/* The dictionary of an op, if it is there. */
int mlir_read_own_attrs(mlir_reader *r, mlir_op_state *s) {
  if (*r->lx.p != '{') return 0;
  s->dict = r->lx.p;
  return mlir_read_entries(r);
}

/* Dictionaries of a few entries are shared: ops say the same thousands of times. */
int mlir_take_dict(mlir_reader *r, uint32_t from, const ir_mdict **out) {
  *out = NULL;
  assert(from <= r->entries.n);
  uint32_t n = r->entries.n - from;
  r->entries.n = from;
  if (n == 0) return 0;
  mlir_entries_memo *seen = mlir_recall_entries(r, MLIR_MEMO_DICT, n, r->entries.items + from);
  if (seen && seen->what) {
    *out = seen->what;
    return 0;
  }
  *out = ir_mdict_make(r->m, n, r->entries.items + from);
  if (seen) seen->what = *out;
  return *out ? 0 : mlir_no_memory(r);
}

/* ---- Attributes of VHLO, #vhlo.array_v1<[...]> and so on. They are kept as their text, since only portable artifacts
 * give VHLO a meaning here, but those that hold others are looked into: VHLO holds nothing that is not VHLO. Source:
 * StableHLO's VhloAttrs.td. */

/* Whether it is VHLO's attribute of this name, which is kept as text. */
static bool mlir_is_vhlo(const ir_mattr *a, const char *name) {
  return a->kind == IR_M_OPAQUE && strncmp(a->str->s, name, strlen(name)) == 0;
}

/* An attribute whose text begins with `name`: "vhlo." for any. */
static int mlir_read_vhlo_part(mlir_reader *r, const char *name, const char *what) {
  const char *at = r->lx.p;
  const ir_mattr *a;
  TRY(mlir_read_attr(r, &a));
  return mlir_is_vhlo(a, name) ? 0 : mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected VHLO %s", what);
}

/*   [#vhlo.integer_v1<1>, ...] */
static int mlir_read_vhlo_array(mlir_reader *r) {
  TRY(mlir_want(r, "["));
  if (mlir_eat(r, "]")) return 0;
  do TRY(mlir_read_vhlo_part(r, "vhlo.", "attributes"));
  while (mlir_eat(r, ","));
  return mlir_want(r, "]");
}

/*   {#vhlo.string_v1<"a"> = #vhlo.integer_v1<1>} */
static int mlir_read_vhlo_dict(mlir_reader *r) {
  TRY(mlir_want(r, "{"));
  if (mlir_eat(r, "}")) return 0;
  do {
    TRY(mlir_read_vhlo_part(r, "vhlo.", "key attribute"));
    TRY(mlir_want(r, "="));
    TRY(mlir_read_vhlo_part(r, "vhlo.", "value attribute"));
  } while (mlir_eat(r, ","));
  return mlir_want(r, "}");
}

/*   <atol = ..., rtol = ..., ulps = ..., mode = #vhlo.result_accuracy_mode_v1<...>> */
static int mlir_read_vhlo_accuracy(mlir_reader *r) {
  static const char *const tolerances[] = {"atol", "rtol", "ulps"};
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++) {
    const ir_mattr *number;
    if (!mlir_eat_word(r, tolerances[i])) return mlir_expected(r, tolerances[i]);
    TRY(mlir_want(r, "="));
    TRY(mlir_read_attr(r, &number));
    TRY(mlir_want(r, ","));
  }
  if (!mlir_eat_word(r, "mode")) return mlir_expected(r, "mode");
  TRY(mlir_want(r, "="));
  return mlir_read_vhlo_part(r, "vhlo.result_accuracy_mode_v1", "result accuracy mode");
}

/* Checks the body of a #vhlo attribute that holds others: cursor at '<', and anywhere in it afterwards. Of any other
 * name all is fine. */
static int mlir_read_vhlo_body(mlir_reader *r, base_slice name) {
  bool array = base_slice_is(name, "vhlo.array_v1"), dict = base_slice_is(name, "vhlo.dict_v1");
  bool accuracy = base_slice_is(name, "vhlo.result_accuracy_v1");
  if (!array && !dict && !accuracy) return 0;
  TRY(mlir_want(r, "<"));
  TRY(array ? mlir_read_vhlo_array(r) : dict ? mlir_read_vhlo_dict(r) : mlir_read_vhlo_accuracy(r));
  return *r->lx.p == '>' ? 0 : mlir_expected(r, "'>'");
}

/* The text is kept without its '#'. */
int mlir_read_opaque(mlir_reader *r, const char *at, const ir_mattr **out) {
  assert(*at == '#');
  const char *e = at + 1;
  while (text_is(*e, TEXT_ALPHA | TEXT_DIGIT) || *e == '.' || *e == '$') e++;
  if (*e == '<') {
    r->lx.p = e;
    TRY(mlir_read_vhlo_body(r, (base_slice){at + 1, (size_t)(e - at - 1)}));
    if (!(e = mlir_balanced_end(r, e))) return mlir_fail(r, at, XLAC_E_SYNTAX, "brackets that never close");
  }
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, at + 1, (size_t)(e - at - 1));
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_OPAQUE;
  r->lx.p = e;
  text_skip(&r->lx);
  *out = a;
  return 0;
}

/* Builtin attributes that nothing here looks into: affine maps, strided layouts, distinct. */
int mlir_read_affine(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p, *e = at;
  while (text_is(*e, TEXT_NAME)) e++;
  e = *e == '<' ? mlir_balanced_end(r, e) : NULL;
  if (!e) return mlir_expected(r, "an attribute");
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, at, (size_t)(e - at));
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_OPAQUE;
  a->hex = true; /* printed without '#' */
  r->lx.p = e;
  text_skip(&r->lx);
  *out = a;
  return 0;
}

/* As an attribute. */
static int mlir_read_dict(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->entries.n;
  TRY(mlir_read_entries(r));
  const ir_mdict *d = ir_mdict_make(r->m, r->entries.n - from, r->entries.items + from);
  r->entries.n = from;
  *out = ir_m_dict(r->m, d);
  return *out ? 0 : mlir_no_memory(r);
}

/*   [a, b] */
static int mlir_read_array(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->attrs.n;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      const ir_mattr *a;
      TRY(mlir_read_attr(r, &a));
      if (!BASE_VEC_PUSH(r->alloc, &r->attrs, a)) return mlir_no_memory(r);
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/* --- numbers, strings, symbols --- */

/* The type after a literal, or the default. */
static int mlir_type_after(mlir_reader *r, base_dtype otherwise, const ir_type **type) {
  if (*r->lx.p == ':' && r->lx.p[1] != ':') {
    mlir_eat(r, ":");
    return mlir_read_type(r, type);
  }
  *type = ir_element(r->m, otherwise, NULL);
  return *type ? 0 : mlir_no_memory(r);
}

/* The bits are kept beside the value, so that NaN payloads print again as they were read. */
static int mlir_make_hex_float(mlir_reader *r, const ir_type *type, uint64_t bits, const ir_mattr **out) {
  assert(base_dtype_is_float((base_dtype)type->dtype));
  double v = base_load_f64((base_dtype)type->dtype, &bits);
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_float(r->m, type, v);
  if (!a) return mlir_no_memory(r);
  a->bits = bits;
  a->hex = true;
  *out = a;
  return 0;
}

/* i8, ui3, index: what an integer may be of. */
static bool mlir_is_integer_type(const ir_type *t) {
  if (t->kind == IR_TYPE_ELEMENT)
    return !t->quant && (base_dtype_is_integer((base_dtype)t->dtype) || t->dtype == XLAC_PRED);
  if (t->kind != IR_TYPE_OTHER) return false;
  const char *p = t->text->s;
  if (strcmp(p, "index") == 0) return true;
  p += *p == 's' || *p == 'u';
  return *p == 'i' && text_is(p[1], TEXT_DIGIT);
}

/* i1's values are integers here; the verifier of the attribute's user decides about ranges. */
static int mlir_make_int(mlir_reader *r, const char *at, const ir_type *type, int64_t v, const ir_mattr **out) {
  if (!mlir_is_integer_type(type))
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "integer literal not valid for specified type");
  *out = ir_m_int(r->m, type, v);
  return *out ? 0 : mlir_no_memory(r);
}

/* Cursor at "0x"; at most 64 bits. */
static int mlir_read_hex_digits(mlir_reader *r, const char *at, uint64_t *v) {
  const char *p = r->lx.p + 2;
  const char *digits = p;
  for (*v = 0;; p++) {
    char c = *p;
    unsigned d = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
                 : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a' + 10)
                                                      : 16;
    if (d == 16) break;
    if (*v >> 60) return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "a hexadecimal number beyond 64 bits");
    *v = *v << 4 | d;
  }
  if (p == digits) return mlir_expected(r, "hexadecimal digits");
  r->lx.p = p;
  text_skip(&r->lx);
  return 0;
}

/* Bits of a float where the type behind says so; else an integer of at most 64 bits. */
static int mlir_read_hex(mlir_reader *r, const char *at, bool negative, const ir_mattr **out) {
  uint64_t v;
  const ir_type *type;
  TRY(mlir_read_hex_digits(r, at, &v));
  TRY(mlir_type_after(r, XLAC_S64, &type));
  if (type->kind == IR_TYPE_ELEMENT && base_dtype_is_float((base_dtype)type->dtype))
    return mlir_make_hex_float(r, type, v, out);
  return mlir_make_int(r, at, type, (int64_t)(negative ? 0 - v : v), out);
}

/* "1.", "1.5", "1e5" against "1". */
static bool mlir_is_float_text(const char *p) {
  if (*p == '-') p++;
  while (text_is(*p, TEXT_DIGIT)) p++;
  return (*p == '.' && text_is(p[1], TEXT_DIGIT | TEXT_SPACE)) || *p == '.' || (*p | 32) == 'e';
}

/* An integer without a type is i64, a float f64, as in MLIR. Integers up to 2^64 - 1 keep their bits. */
static int mlir_read_number(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p;
  bool negative = *at == '-';
  if (at[negative] == '0' && at[negative + 1] == 'x') {
    r->lx.p += negative;
    return mlir_read_hex(r, at, negative, out);
  }
  const ir_type *type;
  if (mlir_is_float_text(at)) {
    double v;
    const char *e = base_parse_f64(at, r->lx.end, &v);
    if (!e) return mlir_expected(r, "a number");
    r->lx.p = e;
    text_skip(&r->lx);
    TRY(mlir_type_after(r, XLAC_F64, &type));
    if (type->kind != IR_TYPE_ELEMENT || !base_dtype_is_float((base_dtype)type->dtype))
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "floating point value not valid for specified type");
    *out = ir_m_float(r->m, type, v);
    return *out ? 0 : mlir_no_memory(r);
  }
  int64_t v;
  const char *e = base_parse_i64(at, r->lx.end, &v);
  uint64_t u = 0;
  if (!e && (e = base_parse_u64(at, r->lx.end, &u))) v = (int64_t)u;
  if (!e) return mlir_expected(r, "a number");
  r->lx.p = e;
  text_skip(&r->lx);
  TRY(mlir_type_after(r, XLAC_S64, &type));
  if (type->kind == IR_TYPE_ELEMENT && base_dtype_is_float((base_dtype)type->dtype))
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected floating point literal");
  return mlir_make_int(r, at, type, v, out);
}

/*   "text"   "text" : type */
static int mlir_read_string_attr(mlir_reader *r, const ir_mattr **out) {
  const base_istr *s;
  TRY(mlir_read_string(r, &s));
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, s->s, s->n);
  if (!a) return mlir_no_memory(r);
  *out = a;
  if (*r->lx.p != ':' || r->lx.p[1] == ':') return 0;
  mlir_eat(r, ":");
  return mlir_read_type(r, &a->type);
}

/*   @module::@function   as a list of names */
static int mlir_read_symbol(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->attrs.n;
  do {
    const base_istr *s;
    TRY(mlir_read_symbol_name(r, &s));
    const ir_mattr *part = ir_m_string(r->m, s->s, s->n);
    if (!part || !BASE_VEC_PUSH(r->alloc, &r->attrs, part)) return mlir_no_memory(r);
  } while (mlir_eat(r, "::"));
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_SYMBOL;
  *out = a;
  return 0;
}

/* --- structs and enums --- */

/* Reads one word of the enum. */
int mlir_read_enum(mlir_reader *r, const ir_enum_info *info, const ir_mattr **out) {
  assert(info && info->words);
  base_slice w = mlir_word(r);
  int number = ir_word_number(info->words, w.p, w.n);
  if (number < 0) {
    int status = mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "'%.*s' is no %s", (int)w.n, w.p, info->name);
    return base_hint(r->err, status, "one of %s", ir_words_text(info->words, (char[240]){0}, 240));
  }
  mlir_skip_word(r, w);
  *out = ir_m_enum(r->m, info->dialect, info->name, number);
  return *out ? 0 : mlir_no_memory(r);
}

/* Fields of structs have a syntax of their own, by their kind: [1, 2]. */
static int mlir_read_dims_field(mlir_reader *r, const ir_mattr **out) {
  uint32_t from;
  TRY(mlir_read_dims(r, &from));
  *out = ir_m_i64s(r->m, r->ints.n - from, r->ints.items + from);
  r->ints.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/*   3 */
static int mlir_read_int_field(mlir_reader *r, const ir_mattr **out) {
  int64_t v;
  TRY(mlir_read_int(r, &v));
  *out = ir_m_i64(r->m, v);
  return *out ? 0 : mlir_no_memory(r);
}

/*   true */
static int mlir_read_bool_field(mlir_reader *r, const ir_mattr **out) {
  bool yes = mlir_eat_word(r, "true");
  if (!yes && !mlir_eat_word(r, "false")) return mlir_expected(r, "true or false");
  *out = ir_m_bool(r->m, yes);
  return *out ? 0 : mlir_no_memory(r);
}

/*   f32 */
static int mlir_read_type_field(mlir_reader *r, const ir_mattr **out) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  *out = ir_m_type(r->m, t);
  return *out ? 0 : mlir_no_memory(r);
}

/*   1.0      1.0 : f32      0x41DFFFFFFFC00000, the bits of a double */
static int mlir_read_float_field(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p;
  const ir_type *f64 = ir_element(r->m, XLAC_F64, NULL);
  double v;
  if (at[0] == '0' && at[1] == 'x') {
    uint64_t bits;
    TRY(mlir_read_hex_digits(r, at, &bits));
    v = base_load_f64(XLAC_F64, &bits);
  } else {
    const char *e = base_parse_f64(at, r->lx.end, &v);
    if (!e) return mlir_expected(r, "a number");
    r->lx.p = e;
    text_skip(&r->lx);
    if (mlir_eat(r, ":")) TRY(mlir_read_type(r, &f64));
  }
  *out = ir_m_float(r->m, f64, v);
  return *out ? 0 : mlir_no_memory(r);
}

/*   HIGHEST   <HIGHEST>   #stablehlo<precision HIGHEST> */
static int mlir_read_enum_field(mlir_reader *r, const char *dialect, const char *name, const ir_mattr **out) {
  const ir_enum_info *info = ir_enum_find(dialect, strlen(dialect), name, strlen(name));
  assert(info);
  if (*r->lx.p == '#') {
    const char *at = r->lx.p;
    TRY(mlir_read_attr(r, out));
    if ((*out)->kind == IR_M_ENUM && (*out)->name == info->name) return 0;
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected #%s.%s", dialect, name);
  }
  bool angle = mlir_eat(r, "<");
  TRY(mlir_read_enum(r, info, out));
  return angle ? mlir_want(r, ">") : 0;
}

/* The axes of a mesh: MLIR prints them without their names, [<name = "x", size = 2>], and reads both. */
static int mlir_read_mesh_axes(mlir_reader *r, const ir_mattr **out) {
  const ir_struct_info *axis = ir_struct_find("stablehlo", 9, "mesh_axis", 9);
  uint32_t from = r->attrs.n;
  TRY(mlir_want(r, "["));
  while (*r->lx.p != ']') {
    const ir_mattr *a;
    TRY(*r->lx.p == '<' ? mlir_read_struct(r, axis, &a) : mlir_read_attr(r, &a));
    if (!BASE_VEC_PUSH(r->alloc, &r->attrs, a)) return mlir_no_memory(r);
    if (!mlir_eat(r, ",")) break;
  }
  TRY(mlir_want(r, "]"));
  *out = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/* One field of a struct, by its kind in the table. */
static int mlir_read_field(mlir_reader *r, const ir_struct_info *s, const ir_field_info *f, const ir_mattr **out) {
  switch ((ir_field_kind)f->kind) {
    case IR_F_I64:
      return mlir_read_int_field(r, out);
    case IR_F_I64S:
      return mlir_read_dims_field(r, out);
    case IR_F_BOOL:
      return mlir_read_bool_field(r, out);
    case IR_F_TYPE:
      return mlir_read_type_field(r, out);
    case IR_F_F64:
      return mlir_read_float_field(r, out);
    case IR_F_STRING:
      return mlir_read_string_attr(r, out);
    case IR_F_ENUM:
      return mlir_read_enum_field(r, s->dialect, f->enum_name, out);
    case IR_F_ANY:
      if (*r->lx.p == '[' && strcmp(s->name, "mesh") == 0) return mlir_read_mesh_axes(r, out);
      return mlir_read_attr(r, out);
  }
  return mlir_expected(r, "a field");
}

/* NULL where the struct has no such field. */
static const ir_field_info *mlir_field_named(const ir_struct_info *info, base_slice w) {
  for (const ir_field_info *f = info->fields; f->name; f++)
    if (base_slice_is(w, f->name)) return f;
  return NULL;
}

/* Fields in the order of the table, whatever the order of the text. The struct remembers where it was written: the
 * verifier's errors about it point there. */
static int mlir_order_fields(mlir_reader *r, const ir_struct_info *info, uint32_t from, const char *at,
                             const ir_mattr **out) {
  assert(from <= r->entries.n);
  ir_mentry sorted[16];
  uint32_t n = 0;
  for (const ir_field_info *f = info->fields; f->name; f++) {
    uint32_t before = n;
    for (uint32_t i = from; i < r->entries.n; i++)
      if (strcmp(r->entries.items[i].key->s, f->name) == 0) sorted[n++] = r->entries.items[i];
    assert(n <= sizeof sorted / sizeof *sorted);
    if (f->always && n == before)
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "#%s.%s lacks '%s'", info->dialect, info->name, f->name);
  }
  r->entries.n = from;
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_struct(r->m, info->dialect, info->name, n, sorted);
  if (!a) return mlir_no_memory(r);
  text_where(&r->lx, at, &a->at.line, &a->at.col);
  *out = a;
  return 0;
}

/* "<a = 1, b = [2]>"; convolution's dimension numbers have a syntax of their own. */
int mlir_read_struct(mlir_reader *r, const ir_struct_info *info, const ir_mattr **out) {
  assert(info && info->fields);
  uint32_t from = r->entries.n;
  const char *at = r->lx.p;
  TRY(mlir_want(r, "<"));
  if (strcmp(info->name, "conv") == 0) {
    TRY(mlir_read_conv_dims(r, out));
    return mlir_want(r, ">");
  }
  while (*r->lx.p != '>') {
    base_slice w = mlir_word(r);
    const ir_field_info *f = mlir_field_named(info, w);
    if (!f)
      return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "#%s.%s has no field '%.*s'", info->dialect, info->name,
                       (int)w.n, w.p);
    for (uint32_t i = from; i < r->entries.n; i++)
      if (strcmp(r->entries.items[i].key->s, f->name) == 0)
        return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "duplicated '%s' entry", f->name);
    mlir_skip_word(r, w);
    TRY(mlir_want(r, "="));
    const ir_mattr *value;
    TRY(mlir_read_field(r, info, f, &value));
    TRY(mlir_add_attr(r, f->name, value));
    if (!mlir_eat(r, ",")) break;
  }
  TRY(mlir_want(r, ">"));
  return mlir_order_fields(r, info, from, at, out);
}

/* --- dialect attributes --- */

/* Reads the definition at its first use, wherever in the text it stands, and comes back. The alias is looked up
 * again afterwards: reading may have found others and moved the list. */
static int mlir_read_attr_alias(mlir_reader *r, const char *at, base_slice name, const ir_mattr **out) {
  const base_istr *key = base_intern_find(&r->m->strings, name.p, name.n);
  uint64_t index;
  if (!key || !base_map_get(&r->attr_aliases, base_key(key), &index))
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "undefined symbol alias id '%.*s'", (int)name.n, name.p);
  mlir_alias *a = &r->aliases.items[index];
  if (a->busy) return mlir_fail(r, at, XLAC_E_SYNTAX, "the alias #%.*s is defined by itself", (int)name.n, name.p);
  if (!a->attr) {
    const char *back = r->lx.p;
    a->busy = true;
    r->lx.p = a->value;
    text_skip(&r->lx);
    const ir_mattr *value;
    TRY(mlir_read_attr(r, &value));
    a = &r->aliases.items[index];
    assert(a->busy);
    a->attr = value;
    a->busy = false;
    r->lx.p = back;
    text_skip(&r->lx);
  }
  *out = a->attr;
  return 0;
}

/* "#stablehlo<precision HIGHEST>": cursor at '<'. */
static int mlir_read_dialect_enum(mlir_reader *r, base_slice dialect, const char *at, const ir_mattr **out) {
  TRY(mlir_want(r, "<"));
  base_slice w = mlir_word(r);
  const ir_enum_info *e = ir_enum_find(dialect.p, dialect.n, w.p, w.n);
  const ir_struct_info *s = ir_struct_find(dialect.p, dialect.n, w.p, w.n);
  if (!e && !s)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "unknown attribute `%.*s` in dialect `%.*s`", (int)w.n, w.p,
                     (int)dialect.n, dialect.p);
  mlir_skip_word(r, w);
  if (e) {
    TRY(mlir_read_enum(r, e, out));
  } else {
    TRY(mlir_read_struct(r, s, out));
  }
  return mlir_want(r, ">");
}

/* "#sdy<manual_axes{"x"}>": cursor at '<'. */
static int mlir_read_sdy_in_brackets(mlir_reader *r, const char *at, const ir_mattr **out) {
  TRY(mlir_want(r, "<"));
  TRY(mlir_sdy_read_named(r, at, mlir_word(r), out));
  return mlir_want(r, ">");
}

/*   #name   #dialect<name ...>   #dialect.name<...>
 * A name without a dot and without '<' is an alias. */
static int mlir_read_dialect_attr(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p;
  r->lx.p++;
  base_slice w = mlir_word(r);
  const char *dot = memchr(w.p, '.', w.n);
  base_slice dialect = {w.p, dot ? (size_t)(dot - w.p) : w.n};
  bool ours = base_slice_is(dialect, "stablehlo") || base_slice_is(dialect, "chlo");
  bool sdy = base_slice_is(dialect, "sdy");
  if (!dot) {
    mlir_skip_word(r, w);
    if (*r->lx.p != '<') return mlir_read_attr_alias(r, at, w, out);
    if (ours) return mlir_read_dialect_enum(r, dialect, at, out);
    if (sdy) return mlir_read_sdy_in_brackets(r, at, out);
    r->lx.p = at;
    return mlir_read_opaque(r, at, out);
  }
  base_slice name = {dot + 1, w.n - dialect.n - 1};
  if (sdy) {
    r->lx.p = dot + 1;
    return mlir_sdy_read_named(r, at, name, out);
  }
  const ir_struct_info *s = ours ? ir_struct_find(dialect.p, dialect.n, name.p, name.n) : NULL;
  const ir_enum_info *e = ours && !s ? ir_enum_find(dialect.p, dialect.n, name.p, name.n) : NULL;
  if (!s && !e) return mlir_read_opaque(r, at, out);
  mlir_skip_word(r, w);
  if (s) return mlir_read_struct(r, s, out);
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_enum(r, e, out));
  return mlir_want(r, ">");
}

/* --- words --- */

/* A type where an attribute is wanted. */
static int mlir_read_type_attr(mlir_reader *r, const ir_mattr **out) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  *out = ir_m_type(r->m, t);
  return *out ? 0 : mlir_no_memory(r);
}

/* true and false may carry ": i1". */
static int mlir_read_bool(mlir_reader *r, bool v, const ir_mattr **out) {
  const ir_type *t;
  TRY(mlir_type_after(r, XLAC_PRED, &t));
  *out = ir_m_bool(r->m, v);
  return *out ? 0 : mlir_no_memory(r);
}

/* A word that begins no attribute must be a type. */
static int mlir_read_word_attr(mlir_reader *r, const ir_mattr **out) {
  base_slice w = mlir_word(r);
  if (base_slice_is(w, "dense")) {
    mlir_skip_word(r, w);
    return mlir_read_dense(r, out);
  }
  if (base_slice_is(w, "array") && w.p[5] == '<') {
    mlir_skip_word(r, w);
    return mlir_read_dense_array(r, out);
  }
  if (base_slice_is(w, "dense_resource")) {
    mlir_skip_word(r, w);
    return mlir_read_resource(r, out);
  }
  if (base_slice_is(w, "true") || base_slice_is(w, "false")) {
    mlir_skip_word(r, w);
    return mlir_read_bool(r, w.n == 4, out);
  }
  if (base_slice_is(w, "unit")) {
    mlir_skip_word(r, w);
    *out = ir_m_unit(r->m);
    return *out ? 0 : mlir_no_memory(r);
  }
  if (base_slice_is(w, "loc")) return mlir_read_loc(r, out);
  if (base_slice_is(w, "affine_map") || base_slice_is(w, "affine_set") || base_slice_is(w, "strided") ||
      base_slice_is(w, "sparse") || base_slice_is(w, "distinct"))
    return mlir_read_affine(r, out);
  return mlir_read_type_attr(r, out);
}

/* By the first byte. */
static int mlir_read_any(mlir_reader *r, const ir_mattr **out) {
  switch (*r->lx.p) {
    case '{':
      return mlir_read_dict(r, out);
    case '[':
      return mlir_read_array(r, out);
    case '"':
      return mlir_read_string_attr(r, out);
    case '@':
      return mlir_read_symbol(r, out);
    case '#':
      return mlir_read_dialect_attr(r, out);
    case '!':
    case '(':
      return mlir_read_type_attr(r, out);
    case '-':
      return mlir_read_number(r, out);
    default:
      return text_is(*r->lx.p, TEXT_DIGIT) ? mlir_read_number(r, out) : mlir_read_word_attr(r, out);
  }
}

/* The depth is bounded, as arrays nest. */
int mlir_read_attr(mlir_reader *r, const ir_mattr **out) {
  TRY(mlir_enter(r, r->lx.p));
  int status = mlir_read_any(r, out);
  mlir_leave(r);
  return status;
}
