/* Pretty forms, as the FORM strings of the op table spell them; their language is described in ir/opcode.h.
 *
 *   "%0 , dims = $permutation {} :fn"   gives   %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
 * Blanks stand between the items of the text, except before commas and inside of brackets. */
#include "../../hlo/lexer.h"
#include "print.h"

/* The next item of a form: a run of characters other than blanks. False at the end. */
static bool mprint_next(const char **form, base_slice *item) {
  const char *s = *form;
  while (*s == ' ') s++;
  item->p = s;
  while (*s && *s != ' ') s++;
  item->n = (size_t)(s - item->p);
  *form = s;
  return item->n > 0;
}

/* `item` begins with one more byte, '$' or '&'. */
static bool mprint_key_is(const base_slice *item, const base_istr *key) {
  return item->n == key->n + 1 && memcmp(item->p + 1, key->s, key->n) == 0;
}

/* "word=$name" */
static const char *mprint_keyed(const base_slice *item) {
  const char *dollar = text_is(*item->p, TEXT_ALPHA) ? memchr(item->p, '$', item->n) : NULL;
  return dollar ? dollar + 1 : NULL;
}

/* An item "name=$attr" of the form prints `attr`; this says whether it is `key`. */
static bool mprint_keyed_is(const base_slice *item, const base_istr *key) {
  const char *name = mprint_keyed(item);
  return name && (size_t)(item->p + item->n - name) == key->n && memcmp(name, key->s, key->n) == 0;
}

/* Whether the form itself prints the attribute. Such attributes don't stand in the dictionary. */
static bool mprint_form_takes(const char *form, const base_istr *key) {
  base_slice item;
  while (mprint_next(&form, &item)) {
    if ((item.p[0] == '$' || item.p[0] == '&') && mprint_key_is(&item, key)) return true;
    if (mprint_keyed_is(&item, key)) return true;
    if (item.p[0] != '<' || item.n < 4) continue;
    for (const char *const *a = mprint_directive_attrs(item.p, item.n); a && *a; a++)
      if (strcmp(*a, key->s) == 0) return true;
  }
  return false;
}

/* An accuracy that asks for nothing: no tolerances, mode DEFAULT. */
static bool mprint_is_plain_accuracy(const ir_mattr *v) {
  if (v->kind != IR_M_STRUCT) return false;
  const ir_mattr *atol = ir_m_field(v, "atol"), *rtol = ir_m_field(v, "rtol"), *ulps = ir_m_field(v, "ulps");
  const ir_mattr *mode = ir_m_field(v, "mode");
  if ((atol && atol->v.f != 0) || (rtol && rtol->v.f != 0) || (ulps && ulps->v.i != 0)) return false;
  return !mode || (mode->kind == IR_M_ENUM && mode->v.i == IR_ACCURACY_DEFAULT);
}

/* Attributes at their default are not printed. */
static bool mprint_is_default(const ir_op *op, const base_istr *key, const ir_mattr *v) {
  const char *s = key->s;
  if (strcmp(s, "result_accuracy") == 0) return mprint_is_plain_accuracy(v);
  switch (op->opcode) {
    case IR_OP_CHOLESKY:
      return strcmp(s, "lower") == 0 && v->kind == IR_M_BOOL && !v->v.b;
    case IR_OP_TOPK:
      return strcmp(s, "is_stable") == 0 && v->kind == IR_M_BOOL && v->v.b;
    case IR_OP_COMPOSITE:
      if (strcmp(s, "version") == 0) return v->kind == IR_M_INTEGER && v->v.i == 0;
      return strcmp(s, "composite_attributes") == 0 && v->kind == IR_M_DICT && (!v->v.dict || v->v.dict->n == 0);
    case IR_OP_CUSTOM_CALL:
      if (strcmp(s, "has_side_effect") == 0) return v->kind == IR_M_BOOL && !v->v.b;
      if (strcmp(s, "api_version") == 0)
        return (v->kind == IR_M_ENUM || v->kind == IR_M_INTEGER) && v->v.i == IR_API_ORIGINAL;
      return (strcmp(s, "called_computations") == 0 || strcmp(s, "output_operand_aliases") == 0) &&
             v->kind == IR_M_ARRAY && (!v->v.list || v->v.list->n == 0);
    default:
      return false;
  }
}

/* Keeps the order of the dictionary, which is by name. */
void mprint_rest(mprint *p, const ir_op *op, const char *form, bool keyword) {
  bool some = false;
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    const ir_mentry *e = &op->mlir->v[i];
    if (mprint_form_takes(form, e->key) || mprint_is_default(op, e->key, e->value)) continue;
    if (!some) base_puts(p->out, keyword ? " attributes {" : " {");
    if (some) BASE_PUT(p->out, ", ");
    some = true;
    mprint_entry(p, e);
  }
  if (some) base_putc(p->out, '}');
}

/* NULL where the op has no such attribute. */
static const ir_mattr *mprint_named(const ir_op *op, const char *name, size_t n) {
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++)
    if (op->mlir->v[i].key->n == n && memcmp(op->mlir->v[i].key->s, name, n) == 0) return op->mlir->v[i].value;
  return NULL;
}

/* Whether operands and result have one type. */
static bool mprint_all_same(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands; i++)
    if (!mprint_same_type(ir_operand_type(op, i), op->type)) return false;
  return true;
}

/* Whether both operands are the parts of the complex result. */
static bool mprint_is_complex_of_parts(const ir_op *op) {
  const ir_type *r = op->type;
  if (op->n_operands != 2 || !base_dtype_is_complex(r->dtype)) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *t = ir_operand_type(op, i);
    if (t->kind != r->kind || t->rank != r->rank || t->quant || t->text || t->encoding || r->encoding) return false;
    if (t->dtype != base_dtype_real_part(r->dtype)) return false;
    for (uint32_t d = 0; d < t->rank; d++)
      if (t->dims[d] != r->dims[d] || ir_dim_is_dynamic(t, d) != ir_dim_is_dynamic(r, d)) return false;
  }
  return true;
}

/* The result's type alone, where it says that of the operands. A function's type would be read as all of the op's. */
static void mprint_short_type(mprint *p, const ir_op *op, bool allowed) {
  if (allowed && op->type->kind != IR_TYPE_FUNCTION)
    mprint_type(p->out, op->type);
  else
    mprint_function_type(p, op);
}

/* "pred, type", where both values have the result's type. */
static void mprint_select_type(mprint *p, const ir_op *op) {
  if (op->n_operands != 3 || ir_operand_type(op, 0)->kind == IR_TYPE_FUNCTION ||
      !mprint_same_type(ir_operand_type(op, 1), op->type) || !mprint_same_type(ir_operand_type(op, 2), op->type)) {
    mprint_function_type(p, op);
    return;
  }
  mprint_type(p->out, ir_operand_type(op, 0));
  BASE_PUT(p->out, ", ");
  mprint_type(p->out, op->type);
}

/* " : " and the types, by one of the items that begin with ':'. */
static void mprint_form_types(mprint *p, const ir_op *op, const base_slice *item) {
  BASE_PUT(p->out, " : ");
  if (base_slice_is(*item, ":fn")) {
    mprint_function_type(p, op);
  } else if (base_slice_is(*item, ":out")) {
    mprint_types(p->out, op->n_results, op->types);
  } else if (base_slice_is(*item, ":same") || base_slice_is(*item, ":same*")) {
    mprint_short_type(p, op, mprint_all_same(op));
  } else if (base_slice_is(*item, ":complex")) {
    mprint_short_type(p, op, mprint_is_complex_of_parts(op));
  } else if (base_slice_is(*item, ":0")) {
    mprint_type(p->out, ir_operand_type(op, 0));
  } else if (base_slice_is(*item, ":01")) {
    mprint_operand_types(p, op);
  } else if (base_slice_is(*item, ":tuple")) {
    mprint_type(p->out, op->type);
  } else if (base_slice_is(*item, ":select")) {
    mprint_select_type(p, op);
  } else {
    bool parenthesis = base_slice_is(*item, ":(ops)->out");
    assert(parenthesis || base_slice_is(*item, ":ops->out"));
    if (parenthesis) base_putc(p->out, '(');
    mprint_operand_types(p, op);
    base_puts(p->out, parenthesis ? ") -> " : " -> ");
    mprint_types(p->out, op->n_results, op->types);
  }
}

/* Passes over a group that is not printed. */
static void mprint_skip_group(const char **form) {
  base_slice item;
  while (mprint_next(form, &item) && !base_slice_is(item, "]")) continue;
}

/* A group in brackets is printed when its first attribute is there and not at its default. */
static bool mprint_group_is_there(const ir_op *op, const base_slice *item) {
  assert(item->n > 1 && item->p[0] == '[');
  base_slice name = {item->p + 1, item->n - 1};
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++) {
    const ir_mentry *e = &op->mlir->v[i];
    if (mprint_key_is(item, e->key)) return name.n && !mprint_is_default(op, e->key, e->value);
  }
  return false;
}

/*   %0   or   %*   for all of them */
static void mprint_operand_item(mprint *p, const ir_op *op, const base_slice *item) {
  assert(item->n >= 2);
  if (item->p[1] == '*') {
    mprint_operands(p, op, 0, op->n_operands);
    return;
  }
  uint32_t i = (uint32_t)(item->p[1] - '0');
  if (i < op->n_operands) mprint_value(p, mprint_operand(op, i));
}

/* Prints what stands behind the op's name, up to its location. */
void mprint_form(mprint *p, const ir_op *op, const char *form) {
  const char *at = form;
  base_slice item;
  bool tight = false; /* no blank before the next item */
  while (mprint_next(&at, &item)) {
    char c = item.p[0];
    if (c == '[' && item.n > 1) {
      if (!mprint_group_is_there(op, &item)) mprint_skip_group(&at);
      continue;
    }
    if (base_slice_is(item, "]")) continue;
    if (base_slice_is(item, "<[>") || base_slice_is(item, "<]>")) {
      base_putc(p->out, item.p[1]);
      tight = item.p[1] == '[';
      continue;
    }
    if (base_slice_is(item, "{}")) {
      mprint_rest(p, op, form, false);
      continue;
    }
    if (c == ':') {
      mprint_form_types(p, op, &item);
      continue;
    }
    if (c == '<') {
      mprint_directive(p, op, form, item.p, item.n);
      continue;
    }
    if (c != ',' && !tight) base_putc(p->out, ' ');
    tight = false;
    const char *keyed = mprint_keyed(&item);
    if (keyed) {
      const ir_mattr *a = mprint_named(op, keyed, item.n - (size_t)(keyed - item.p));
      base_put(p->out, item.p, (size_t)(keyed - 1 - item.p));
      if (a) mprint_attr_bare(p, a);
      continue;
    }
    const ir_mattr *v = c == '$' || c == '&' ? mprint_named(op, item.p + 1, item.n - 1) : NULL;
    if (c == '%')
      mprint_operand_item(p, op, &item);
    else if (v && c == '&')
      mprint_attr(p, v);
    else if (v)
      mprint_attr_bare(p, v);
    else if (c != '$' && c != '&')
      base_put(p->out, item.p, item.n);
  }
}
