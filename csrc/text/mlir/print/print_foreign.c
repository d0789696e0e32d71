/* The pretty syntax of ops of other dialects, following their rows in foreign.def; and of the dialects check and
 * interpreter.
 *
 * An op is printed so only where the form says all of it: operands as many as the form has, attributes of the kinds
 * that it writes, a result of the type that it implies. Else the generic form is printed. */
#include "../foreign.h"
#include "print.h"

/* A type that is kept as this text. */
static bool mprint_other_is(const ir_type *t, const char *text) {
  return t->kind == IR_TYPE_OTHER && strcmp(t->text->s, text) == 0;
}

/* i1 itself, no tensor of it. */
static bool mprint_is_bool(const ir_type *t) {
  return t->kind == IR_TYPE_ELEMENT && t->dtype == XLAC_PRED && !t->quant;
}

/* The op's attribute that the item names, or NULL. */
static const ir_mattr *mprint_item_attr(const ir_op *op, const mlir_foreign_item *item) {
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    const base_istr *key = op->mlir->v[i].key;
    if (key->n == item->name.n && memcmp(key->s, item->name.p, key->n) == 0) return op->mlir->v[i].value;
  }
  return NULL;
}

/* --- whether the form can say the op --- */

/* The flags of "arith.overflow<nsw>", from '<' on; NULL where the attribute is something else. */
static const char *mprint_flags_of(const ir_mattr *a, base_slice word) {
  if (a->kind != IR_M_OPAQUE || strncmp(a->str->s, "arith.", 6) != 0) return NULL;
  const char *rest = a->str->s + 6;
  return strncmp(rest, word.p, word.n) == 0 && rest[word.n] == '<' ? rest + word.n : NULL;
}

/* Whether the integer has a word. */
static bool mprint_choice_fits(const ir_mattr *a, const char *const *words) {
  int64_t n = 0;
  while (words[n]) n++;
  return a->kind == IR_M_INTEGER && a->v.i >= 0 && a->v.i < n;
}

/* Whether an attribute of kind "shape" can be written [1, 2]: a dense<...> of index and rank 1. */
static bool mprint_extents_fit(mprint *p, const ir_mattr *a) {
  uint32_t n;
  if (a->kind != IR_M_DENSE || a->type->rank != 1 || !a->type->text || strcmp(a->type->text->s, "index") != 0)
    return false;
  return mprint_ints(p, a, &n) != NULL;
}

/* Whether reading the item would give this attribute. */
static bool mprint_foreign_attr_fits(mprint *p, const ir_op *op, const mlir_foreign_item *item) {
  const ir_mattr *a = mprint_item_attr(op, item);
  base_slice kind = item->kind;
  const char *const *words = mlir_foreign_words(kind);
  if (mlir_foreign_is_flags(kind)) return !a || mprint_flags_of(a, mlir_foreign_flags_word(kind));
  if (base_slice_is(kind, "rounding")) return !a || mprint_choice_fits(a, words);
  if (base_slice_is(kind, "nneg") || base_slice_is(kind, "exact")) return !a || a->kind == IR_M_UNIT;
  if (!a) return false;
  if (words) return mprint_choice_fits(a, words);
  if (base_slice_is(kind, "string")) return a->kind == IR_M_STRING && !a->type;
  if (base_slice_is(kind, "bool")) return a->kind == IR_M_BOOL;
  if (base_slice_is(kind, "index")) return a->kind == IR_M_INTEGER && mprint_other_is(a->type, "index");
  if (base_slice_is(kind, "shape")) return mprint_extents_fit(p, a);
  if (op->n_results != 1) return false;
  return a->kind == IR_M_BOOL ? mprint_is_bool(op->type) : a->type && mprint_same_type(a->type, op->type);
}

/* Whether t is the element type of tensor `of`. */
static bool mprint_is_element(const ir_type *t, const ir_type *of) {
  if (!ir_is_tensor(of)) return false;
  if (of->text) return t->kind == IR_TYPE_OTHER && t->text == of->text;
  return t->kind == IR_TYPE_ELEMENT && t->dtype == of->dtype && ir_quant_equal(t->quant, of->quant);
}

/* i1 in the shape of `of`. Vectors are kept as text, and their predicates' types can't be told. */
static bool mprint_is_predicate_of(const ir_type *t, const ir_type *of) {
  if (!ir_is_tensor(of)) return of->kind != IR_TYPE_OTHER || of->text->s[0] != 'v' ? mprint_is_bool(t) : false;
  if (!ir_is_tensor(t) || t->dtype != XLAC_PRED || t->text || t->quant || t->rank != of->rank) return false;
  for (uint32_t i = 0; i < t->rank; i++)
    if (t->dims[i] != of->dims[i] || ir_dim_is_dynamic(t, i) != ir_dim_is_dynamic(of, i)) return false;
  return t->encoding == of->encoding;
}

/* Whether the result's type is the one that mlir_imply_result would give. */
static bool mprint_result_is_implied(const ir_op *op, const mlir_foreign *f) {
  if (f->result == MLIR_FOREIGN_NONE) return op->n_results == 0;
  if (op->n_results != 1) return false;
  switch ((mlir_foreign_result)f->result) {
    case MLIR_FOREIGN_INDEX:
      return mprint_other_is(op->type, "index");
    case MLIR_FOREIGN_BOOL:
      return mprint_is_bool(op->type);
    case MLIR_FOREIGN_PREDICATE:
      return mprint_is_predicate_of(op->type, ir_operand_type(op, 0));
    case MLIR_FOREIGN_ELEMENT:
      return mprint_is_element(op->type, ir_operand_type(op, 0));
    case MLIR_FOREIGN_SHAPE:
      return mprint_other_is(op->type, "!shape.shape");
    case MLIR_FOREIGN_SIZE:
      return mprint_other_is(op->type, "!shape.size");
    case MLIR_FOREIGN_WITNESS:
      return mprint_other_is(op->type, "!shape.witness");
    case MLIR_FOREIGN_VALUE_SHAPE:
      return mprint_other_is(op->type, "!shape.value_shape");
    default:
      return true;
  }
}

/* Whether all operands from `from` on are of this type, so that it need be said but once. */
static bool mprint_operands_are(const ir_op *op, uint32_t from, const ir_type *t) {
  for (uint32_t i = from; i < op->n_operands; i++)
    if (!mprint_same_type(ir_operand_type(op, i), t)) return false;
  return true;
}

/* "shape.assuming": one region, all of whose values come from outside or inside. */
static bool mprint_is_assuming(const ir_op *op) {
  const ir_computation *c = op->n_called == 1 ? op->called[0] : NULL;
  return c && c->n_params == 0 && !c->declaration && c->return_name &&
         strcmp(c->return_name->s, "shape.assuming_yield") == 0;
}

/* Whether the row's form says all of the op. */
static bool mprint_foreign_fits(mprint *p, const ir_op *op, const mlir_foreign *f) {
  const char *form = f->form;
  mlir_foreign_item item;
  uint32_t single = 0;
  bool rest = false, region = false;
  while (mlir_foreign_next(&form, &item)) {
    if (item.sort == '%' && *item.name.p == '*') rest = true;
    if (item.sort == '%' && *item.name.p != '*') single++;
    if (item.sort == '$' && !mprint_foreign_attr_fits(p, op, &item)) return false;
    if (item.sort == '=' && (op->n_results != 1 || (item.name.n && !mprint_operands_are(op, 0, op->type))))
      return false;
    if (base_slice_is(item.name, "<select>") && (op->n_results != 1 || !mprint_operands_are(op, 1, op->type)))
      return false;
    region = region || base_slice_is(item.name, "<assuming>");
  }
  if (rest ? op->n_operands < single : op->n_operands != single) return false;
  if (region ? !mprint_is_assuming(op) : op->n_called != 0) return false;
  return f->result == MLIR_FOREIGN_WRITTEN || mprint_result_is_implied(op, f);
}

/* --- the items --- */

/*   [1, 2, 3] */
static void mprint_extents(mprint *p, const ir_mattr *a) {
  uint32_t n;
  const int64_t *v = mprint_ints(p, a, &n);
  base_putc(p->out, '[');
  for (uint32_t i = 0; v && i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    base_put_i64(p->out, v[i]);
  }
  base_putc(p->out, ']');
}

/* Nothing where the attribute is at its default. */
static void mprint_foreign_attr(mprint *p, const ir_op *op, const mlir_foreign_item *item) {
  assert(item->sort == '$');
  const ir_mattr *a = mprint_item_attr(op, item);
  base_slice kind = item->kind;
  const char *const *words = mlir_foreign_words(kind), *otherwise = mlir_foreign_default(kind);
  if (!a || (otherwise && strcmp(a->str->s, otherwise) == 0)) return;
  if (base_slice_is(kind, "shape")) {
    mprint_extents(p, a);
    return;
  }
  base_putc(p->out, ' ');
  if (mlir_foreign_is_flags(kind)) {
    base_slice word = mlir_foreign_flags_word(kind);
    base_put(p->out, word.p, word.n);
    base_puts(p->out, mprint_flags_of(a, word));
  } else if (words) {
    base_puts(p->out, words[a->v.i]);
  } else if (base_slice_is(kind, "index")) {
    base_put_i64(p->out, a->v.i);
  } else if (a->kind == IR_M_UNIT) {
    base_put(p->out, kind.p, kind.n);
  } else {
    mprint_attr(p, a);
  }
}

/* Whether the form prints this attribute, which is then left out of the dictionary. */
static bool mprint_form_has(const char *form, const base_istr *key) {
  mlir_foreign_item item;
  while (mlir_foreign_next(&form, &item))
    if (item.sort == '$' && item.name.n == key->n && memcmp(item.name.p, key->s, key->n) == 0) return true;
  return false;
}

/* The dictionary of attributes that no item prints. */
static void mprint_foreign_rest(mprint *p, const ir_op *op, const char *form) {
  bool some = false;
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    if (mprint_form_has(form, op->mlir->v[i].key)) continue;
    base_puts(p->out, some ? ", " : " {");
    some = true;
    mprint_entry(p, &op->mlir->v[i]);
  }
  if (some) base_putc(p->out, '}');
}

/*   %0:2 = shape.assuming %w -> (tensor<f32>, tensor<i32>) { ... } */
static void mprint_assuming(mprint *p, const ir_op *op) {
  if (op->n_results) {
    BASE_PUT(p->out, " -> (");
    mprint_types(p->out, op->n_results, op->types);
    base_putc(p->out, ')');
  }
  base_putc(p->out, ' ');
  mprint_region(p, op->called[0], false);
}

/* The condition's type is left out where it is i1. */
static void mprint_select_types(mprint *p, const ir_op *op) {
  base_putc(p->out, ' ');
  if (!mprint_is_bool(ir_operand_type(op, 0))) {
    mprint_type(p->out, ir_operand_type(op, 0));
    BASE_PUT(p->out, ", ");
  }
  mprint_type(p->out, op->type);
}

/* true when the next item follows without a blank. */
static bool mprint_foreign_word(mprint *p, const ir_op *op, const char *form, base_slice w) {
  if (base_slice_is(w, "{}")) return mprint_foreign_rest(p, op, form), false;
  if (base_slice_is(w, "<select>")) return mprint_select_types(p, op), false;
  if (base_slice_is(w, "<assuming>")) return mprint_assuming(p, op), false;
  if (base_slice_is(w, "_")) return base_putc(p->out, ' '), false;
  if (base_slice_is(w, "<function>")) return base_putc(p->out, ' '), mprint_function_type(p, op), false;
  bool close = memchr(",])", *w.p, 3) != NULL, open = *w.p == '[' || *w.p == '(';
  if (!close && !open) base_putc(p->out, ' ');
  base_put(p->out, w.p, w.n);
  return open;
}

/* The operands are taken in order, whatever their numbers in the form. */
static void mprint_foreign_operands(mprint *p, const ir_op *op, base_slice which, uint32_t *next) {
  assert(*next <= op->n_operands);
  uint32_t to = *which.p == '*' ? op->n_operands : *next + 1;
  mprint_operands(p, op, *next, to);
  *next = to;
}

/* `which` is "*", all operands' types, or a digit, one operand's. */
static void mprint_foreign_types(mprint *p, const ir_op *op, base_slice which) {
  base_putc(p->out, ' ');
  if (*which.p == '*') {
    mprint_operand_types(p, op);
  } else {
    mprint_type(p->out, ir_operand_type(op, (uint32_t)(*which.p - '0')));
  }
}

/* false, and nothing printed, where the generic form is needed. */
bool mprint_foreign(mprint *p, const ir_op *op) {
  const mlir_foreign *f = mlir_foreign_find(op->u.name->s);
  if (!f || !mprint_foreign_fits(p, op, f)) return false;
  const char *form = f->form;
  mlir_foreign_item item;
  uint32_t next = 0;
  bool tight = false;
  base_puts(p->out, f->name);
  while (mlir_foreign_next(&form, &item)) {
    bool was_tight = tight;
    tight = false;
    switch (item.sort) {
      case '%':
        if (!was_tight) base_putc(p->out, ' ');
        mprint_foreign_operands(p, op, item.name, &next);
        break;
      case '$':
        mprint_foreign_attr(p, op, &item);
        break;
      case '#':
        mprint_foreign_types(p, op, item.name);
        break;
      case '=':
        base_putc(p->out, ' ');
        mprint_type(p->out, op->type);
        break;
      default:
        tight = mprint_foreign_word(p, op, f->form, item.name);
    }
  }
  return true;
}

/* --- names of results --- */

/* "c7_i32", "true" or "cst" These are the names that arith.constant asks for through OpAsmOpInterface. */
static bool mprint_constant_name(base_text *o, const ir_mattr *value) {
  if (!value) return false;
  bool integer = value->kind == IR_M_INTEGER;
  if (value->kind == IR_M_BOOL || (integer && mprint_is_bool(value->type))) {
    base_puts(o, (integer ? value->v.i != 0 : value->v.b) ? "true" : "false");
  } else if (value->kind == IR_M_INTEGER) {
    base_putc(o, 'c');
    base_put_i64(o, value->v.i);
    if (!mprint_other_is(value->type, "index")) {
      base_putc(o, '_');
      mprint_type(o, value->type);
    }
  } else {
    BASE_PUT(o, "cst");
  }
  return true;
}

/* Only a single result gets such a name. */
bool mprint_foreign_name(base_text *o, const ir_op *op) {
  const mlir_foreign *f = mlir_foreign_find(op->u.name->s);
  if (!f || op->n_results != 1) return false;
  if (f->stem) return base_puts(o, f->stem), true;
  bool constant = strcmp(f->name, "arith.constant") == 0;
  if (constant) return mprint_constant_name(o, ir_mattr_of(op, "value"));
  return strcmp(f->name, "shape.const_size") == 0 && mprint_constant_name(o, ir_mattr_of(op, "value"));
}

/* ---- Ops of other dialects: their properties, and the pretty forms of check's and interpreter's. */

/* By the prefix with its dot: "shape." is not "shapes.op". */
static bool mprint_dialect_is(const base_istr *name, const char *prefix) {
  return strncmp(name->s, prefix, strlen(prefix)) == 0;
}

/* An op of a dialect that MLIR knows has as properties all attributes whose names have no dialect. */
bool mprint_is_property(const ir_op *op, const base_istr *key) {
  assert(op->opcode == IR_OP_UNREGISTERED);
  const base_istr *name = op->u.name;
  const mlir_foreign *row = mlir_foreign_find(name->s);
  if (row) return mlir_foreign_is_property(row, key);
  bool known = mprint_dialect_is(name, "interpreter.");
  return op->properties || (known && !strchr(key->s, '.'));
}

/* Whether the op is what its form can say: as many operands and results, of types that go together, and the attributes
 * that must be there. */
static bool mprint_fits_form(const ir_op *op, const char *form) {
  uint32_t operands = strstr(form, "%1") ? 2 : 1, results = strstr(form, ":same") ? 1 : 0;
  if (op->n_operands != operands || op->n_results != results) return false;
  const ir_type *type = ir_operand_type(op, 0);
  const ir_mattr *value = ir_mattr_of(op, "value");
  if (operands == 2 && !strstr(form, ":01") && !mprint_same_type(type, ir_operand_type(op, 1))) return false;
  if (results && !mprint_same_type(type, op->type)) return false;
  if (strstr(form, "&value") && (!value || !value->type || !mprint_same_type(type, value->type))) return false;
  if (strstr(form, "$probe_id") && !ir_mattr_of(op, "probe_id")) return false;
  return !strstr(form, ":01") || ir_mattr_of(op, "max_ulp_difference");
}

/* The forms that foreign.h calls known. */
static bool mprint_by_form(mprint *p, const ir_op *op) {
  const char *form = mlir_known_form(op->u.name);
  /* jaxlib has no dialect check, and reads its ops in the generic form only, which StableHLO's tools read too. */
  if (mprint_dialect_is(op->u.name, "check.")) return false;
  if (!form || !mprint_fits_form(op, form)) return false;
  base_puts(p->out, op->u.name->s);
  mprint_form(p, op, form);
  return true;
}

/* Ops with regions have a rule of their own or none; others may have a form in foreign.c's table. */
bool mprint_known(mprint *p, const ir_op *op) {
  if (op->opcode != IR_OP_UNREGISTERED) return false;
  if (op->n_called) return mprint_foreign(p, op);
  return mprint_foreign(p, op) || mprint_by_form(p, op);
}
