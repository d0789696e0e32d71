/* Attributes. Their nesting is bounded by what readers accept. */
#include "print.h"
#include "../sdy/print.h"

static bool mprint_is_i64(const ir_type *t) {
  return t->kind == IR_TYPE_ELEMENT && t->dtype == XLAC_S64 && !t->quant && !t->text;
}

static void mprint_colon_type(base_text *o, const ir_type *t) {
  BASE_PUT(o, " : ");
  mprint_type(o, t);
}

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

static void mprint_list(mprint *p, const ir_mattrs *list) {
  base_putc(p->out, '[');
  for (uint32_t i = 0; list && i < list->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_attr_short(p, list->v[i]);
  }
  base_putc(p->out, ']');
}

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

static void mprint_symbol_path(base_text *o, const ir_mattrs *path) {
  for (uint32_t i = 0; path && i < path->n; i++) {
    if (i) BASE_PUT(o, "::");
    mprint_symbol(o, path->v[i]->str->s, path->v[i]->str->n);
  }
}

void mprint_dense_array(mprint *p, const ir_mattr *a) {
  const ir_literal *l = a->v.literal;
  if (!l || !l->data) return;
  size_t size = base_dtype_bytes(l->type->dtype);
  for (int64_t i = 0; i < l->type->count; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_element(p->out, l->type->dtype, (const char *)l->data + (size_t)i * size);
  }
}

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
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, a->name, strlen(a->name));
  for (int i = 0; info && info->words[i]; i++)
    if (a->str && strcmp(info->words[i], a->str->s) == 0) return i;
  return -1;
}

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

static void mprint_attr_in(mprint *p, const ir_mattr *a, bool in_list) {
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
      sdy_print_attr(o, a);
      return;
    case IR_M_LOC:
      BASE_PUT(o, "loc(");
      mprint_loc_body(p, a);
      base_putc(o, ')');
      return;
  }
}

void mprint_attr(mprint *p, const ir_mattr *a) {
  mprint_attr_in(p, a, false);
}

void mprint_attr_short(mprint *p, const ir_mattr *a) {
  mprint_attr_in(p, a, true);
}

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
      sdy_print_bare(o, (sdy_kind)a->sub, a->v.sdy);
      return;
    default:
      mprint_attr(p, a);
  }
}

const int64_t *mprint_ints(mprint *p, const ir_mattr *a, uint32_t *n) {
  const int64_t *v = ir_m_ints(a, &p->arena, n);
  static const int64_t none[1];
  return v ? v : none;
}

void text_put_mlir_attr(base_text *out, const ir_mattr *a) {
  mprint p = {.out = out, .alloc = out->alloc};
  base_arena_init(&p.arena, out->alloc);
  mprint_attr(&p, a);
  base_arena_free(&p.arena);
}
