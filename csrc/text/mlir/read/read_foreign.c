/* The pretty syntax of ops of other dialects, following their rows in foreign.def.
 *
 *   %0 = arith.addi %a, %b overflow<nsw> : i32       row "%0 , %1 $overflowFlags:overflow {} : =="
 * An item of a form is an operand (%0, %*), an attribute ($name:kind), types (#0, #*), the result's type (=), or a
 * word or punctuation that stands in the text. What the text leaves out follows from the row: result types that can
 * only be one, and flags at their defaults, which MLIR adds as properties. */
#include "read.h"

/* --- types --- */

/* The type of the op's i-th operand as it was defined. */
static const ir_type *mlir_operand_type(const mlir_reader *r, const mlir_op_state *s, uint32_t i) {
  assert(i < s->n_values && s->values + i < r->values.n);
  ir_value v = r->values.items[s->values + i];
  return v.op->types[v.index];
}

/* A written type must be the operand's own. */
static int mlir_check_one_type(mlir_reader *r, const mlir_op_state *s, uint32_t i, const ir_type *t) {
  if (i < s->n_values && mlir_operand_type(r, s, i) == t) return 0;
  return mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "'%s' op operand #%u expects different type than prior uses",
                   mlir_op_name(s), i);
}

/* "#0" and "#*" */
static int mlir_read_foreign_types(mlir_reader *r, mlir_op_state *s, base_slice which) {
  assert(*which.p == '*' || text_is(*which.p, TEXT_DIGIT));
  bool all = *which.p == '*';
  uint32_t from = all ? 0 : (uint32_t)(*which.p - '0'), to = all ? s->n_values : from + 1;
  for (uint32_t i = from; i < to; i++) {
    const ir_type *t;
    if (i > from) TRY(mlir_want(r, ","));
    TRY(mlir_read_type(r, &t));
    TRY(mlir_check_one_type(r, s, i, t));
  }
  return 0;
}

/* The one type that follows is the result's, and where `operands_too` that of every operand. */
static int mlir_read_result_type(mlir_reader *r, mlir_op_state *s, bool operands_too) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  for (uint32_t i = 0; operands_too && i < s->n_values; i++) TRY(mlir_check_one_type(r, s, i, t));
  return mlir_set_results(r, s, 1, &t);
}

/* "type", where the condition is i1, or "condition's type, type". */
static int mlir_read_select_types(mlir_reader *r, mlir_op_state *s) {
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  if (mlir_eat(r, ",")) {
    TRY(mlir_check_one_type(r, s, 0, t));
    TRY(mlir_read_type(r, &t));
  }
  TRY(mlir_check_one_type(r, s, 1, t));
  TRY(mlir_check_one_type(r, s, 2, t));
  return mlir_set_results(r, s, 1, &t);
}

/*   (a, b) -> c */
static int mlir_read_foreign_function(mlir_reader *r, mlir_op_state *s) {
  uint32_t from = r->types.n, inputs, results;
  TRY(mlir_read_function_type(r, &inputs, &results));
  TRY(mlir_check_operand_types(r, s, from, inputs));
  TRY(mlir_set_results(r, s, results, r->types.items + from + inputs));
  r->types.n = from;
  return 0;
}

/* "-> (type) { ... }": a region whose yield may be left out when it yields nothing. */
static int mlir_read_assuming(mlir_reader *r, mlir_op_state *s) {
  uint32_t from = r->types.n, n = 0;
  if (mlir_eat(r, "->")) TRY(mlir_read_type_list(r, &n));
  TRY(mlir_set_results(r, s, n, r->types.items + from));
  r->types.n = from;
  TRY(mlir_read_region(r, false));
  ir_computation *c = r->regions.items[r->regions.n - 1];
  assert(c->kind == IR_REGION);
  if (c->n_results != n)
    return mlir_fail(r, s->at, XLAC_E_VERIFY, "'shape.assuming' op has %u results, but its region yields %u", n,
                     c->n_results);
  if (c->results) return 0;
  c->declaration = false;
  c->results = BASE_ARRAY(&r->m->arena, ir_value, 1);
  c->return_name = mlir_intern_word(r, "shape.assuming_yield");
  return c->results && c->return_name ? 0 : mlir_no_memory(r);
}

/* --- attributes --- */

/* The text of an attribute of another dialect, kept as it is. */
static const ir_mattr *mlir_opaque_text(mlir_reader *r, const char *text, size_t n) {
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, text, n);
  if (a) a->kind = IR_M_OPAQUE;
  return a;
}

/* "overflow<nsw>", which stands for #arith.overflow<nsw>. Nothing where the word is absent. */
static int mlir_read_flags(mlir_reader *r, base_slice name, base_slice word) {
  base_slice w = mlir_word(r);
  if (w.n != word.n || memcmp(w.p, word.p, w.n) != 0) return 0;
  mlir_skip_word(r, w);
  const char *p = r->lx.p, *e = *p == '<' ? mlir_balanced_end(r, p) : NULL;
  if (!e) return mlir_expected(r, "<flags>");
  base_text text;
  base_text_init(&text, r->alloc);
  BASE_PUT(&text, "arith.");
  base_put(&text, word.p, word.n);
  base_put(&text, p, (size_t)(e - p));
  const ir_mattr *a = text.failed ? NULL : mlir_opaque_text(r, text.s, text.n);
  base_text_free(&text);
  r->lx.p = e;
  text_skip(&r->lx);
  const base_istr *key = ir_intern(r->m, name.p, name.n);
  ir_mentry entry = {key, a};
  return a && key && BASE_VEC_PUSH(r->alloc, &r->entries, entry) ? 0 : mlir_no_memory(r);
}

/* A word of a list, as its number. arith's predicates are i64, its rounding modes i32; only those are optional. *out
 * is NULL where an optional one is absent. */
static int mlir_read_choice(mlir_reader *r, const char *const *words, bool optional, const ir_mattr **out) {
  base_slice w = mlir_word(r);
  *out = NULL;
  for (int64_t i = 0; words[i]; i++) {
    if (!base_slice_is(w, words[i])) continue;
    mlir_skip_word(r, w);
    *out = optional ? ir_m_i32(r->m, i) : ir_m_i64(r->m, i);
    return *out ? 0 : mlir_no_memory(r);
  }
  return optional ? 0 : mlir_expected(r, "a predicate");
}

/* "[1, 2]" as a tensor of index. */
static int mlir_read_extents(mlir_reader *r, const ir_mattr **out) {
  uint32_t from;
  TRY(mlir_read_dims(r, &from));
  int64_t n = r->ints.n - from;
  const base_istr *index = ir_intern(r->m, "index", 5);
  const ir_type *type = index ? ir_tensor_mlir(r->m, XLAC_S64, NULL, index, 1, &n, NULL, NULL, r->err) : NULL;
  const ir_mattr *plain = type ? ir_m_dense_i64(r->m, 1, &n, r->ints.items + from) : NULL;
  r->ints.n = from;
  *out = plain ? ir_m_dense(r->m, type, plain->v.literal, plain->splat) : NULL;
  return *out ? 0 : mlir_no_memory(r);
}

/*   3, as an index */
static int mlir_read_constant_index(mlir_reader *r, const ir_mattr **out) {
  int64_t v;
  TRY(mlir_read_int(r, &v));
  *out = ir_m_int(r->m, ir_other_type(r->m, "index", 5), v);
  return *out ? 0 : mlir_no_memory(r);
}

/*   "message" */
static int mlir_read_msg(mlir_reader *r, const ir_mattr **out) {
  const base_istr *text;
  TRY(mlir_read_string(r, &text));
  *out = ir_m_string(r->m, text->s, text->n);
  return *out ? 0 : mlir_no_memory(r);
}

/*   true      false */
static int mlir_read_yes(mlir_reader *r, const ir_mattr **out) {
  bool yes = mlir_eat_word(r, "true");
  if (!yes && !mlir_eat_word(r, "false")) return mlir_expected(r, "true or false");
  *out = ir_m_bool(r->m, yes);
  return *out ? 0 : mlir_no_memory(r);
}

/* The word itself, as in "exact": a unit attribute where it is there. */
static int mlir_read_unit_word(mlir_reader *r, base_slice word, const ir_mattr **out) {
  base_slice w = mlir_word(r);
  *out = NULL;
  if (w.n != word.n || memcmp(w.p, word.p, w.n) != 0) return 0;
  mlir_skip_word(r, w);
  *out = ir_m_unit(r->m);
  return *out ? 0 : mlir_no_memory(r);
}

/* *out is NULL where the attribute is optional and absent. */
static int mlir_read_foreign_value(mlir_reader *r, base_slice kind, const ir_mattr **out) {
  const char *const *words = mlir_foreign_words(kind);
  if (words) return mlir_read_choice(r, words, base_slice_is(kind, "rounding"), out);
  if (base_slice_is(kind, "any")) return mlir_read_attr(r, out);
  if (base_slice_is(kind, "string")) return mlir_read_msg(r, out);
  if (base_slice_is(kind, "bool")) return mlir_read_yes(r, out);
  if (base_slice_is(kind, "index")) return mlir_read_constant_index(r, out);
  if (base_slice_is(kind, "shape")) return mlir_read_extents(r, out);
  return mlir_read_unit_word(r, kind, out); /* nneg, exact */
}

/* One item of the form; its value goes onto r->entries under the item's name. */
static int mlir_read_foreign_attr(mlir_reader *r, const mlir_foreign_item *item) {
  base_slice kind = item->kind;
  if (mlir_foreign_is_flags(kind)) return mlir_read_flags(r, item->name, mlir_foreign_flags_word(kind));
  const ir_mattr *a;
  TRY(mlir_read_foreign_value(r, kind, &a));
  if (!a) return 0;
  ir_mentry entry = {ir_intern(r->m, item->name.p, item->name.n), a};
  return entry.key && BASE_VEC_PUSH(r->alloc, &r->entries, entry) ? 0 : mlir_no_memory(r);
}

/* --- results that the text leaves out --- */

/* Booleans in the shape of `of`: i1 for scalars. */
static const ir_type *mlir_predicate_type(mlir_reader *r, const ir_type *of) {
  if (of->kind != IR_TYPE_TENSOR) return ir_element(r->m, XLAC_PRED, NULL);
  return ir_tensor_mlir(r->m, XLAC_PRED, NULL, NULL, of->rank, of->dims, of->dynamic, of->encoding, r->err);
}

/* The element type of a tensor, as a type. */
static const ir_type *mlir_element_type(mlir_reader *r, const ir_type *of) {
  if (of->text) return ir_other_type(r->m, of->text->s, of->text->n);
  return ir_element(r->m, (base_dtype)of->dtype, of->quant);
}

/* The type of the attribute `value`, of which a constant is. */
static const ir_type *mlir_value_type(mlir_reader *r, const mlir_op_state *s) {
  for (uint32_t i = s->entries; i < r->entries.n; i++) {
    const ir_mattr *a = r->entries.items[i].value;
    if (strcmp(r->entries.items[i].key->s, "value") != 0) continue;
    return a->kind == IR_M_BOOL ? ir_element(r->m, XLAC_PRED, NULL) : a->type;
  }
  return NULL;
}

/* The type that the row says the result has; nothing to do where the text has said it. */
static int mlir_imply_result(mlir_reader *r, mlir_op_state *s, const mlir_foreign *f) {
  assert(f->result <= MLIR_FOREIGN_VALUE_SHAPE);
  static const char *const names[] = {[MLIR_FOREIGN_INDEX] = "index",
                                      [MLIR_FOREIGN_SHAPE] = "!shape.shape",
                                      [MLIR_FOREIGN_SIZE] = "!shape.size",
                                      [MLIR_FOREIGN_WITNESS] = "!shape.witness",
                                      [MLIR_FOREIGN_VALUE_SHAPE] = "!shape.value_shape"};
  const ir_type *first = s->n_values ? mlir_operand_type(r, s, 0) : NULL, *t = NULL;
  switch ((mlir_foreign_result)f->result) {
    case MLIR_FOREIGN_WRITTEN:
      return 0;
    case MLIR_FOREIGN_NONE:
      return mlir_set_results(r, s, 0, NULL);
    case MLIR_FOREIGN_VALUE:
      if (!(t = mlir_value_type(r, s)))
        return mlir_fail(r, s->at, XLAC_E_BAD_ATTRIBUTE, "expected a value with a type");
      break;
    case MLIR_FOREIGN_BOOL:
      t = ir_element(r->m, XLAC_PRED, NULL);
      break;
    case MLIR_FOREIGN_PREDICATE:
      t = mlir_predicate_type(r, first);
      break;
    case MLIR_FOREIGN_ELEMENT:
      if (!ir_is_tensor(first)) return mlir_fail(r, s->at, XLAC_E_VERIFY_OPERANDS, "'%s' op expects a tensor", f->name);
      t = mlir_element_type(r, first);
      break;
    default:
      t = ir_other_type(r->m, names[f->result], strlen(names[f->result]));
  }
  return t ? mlir_set_results(r, s, 1, &t) : mlir_no_memory(r);
}

/* --- the walk over a form --- */

/*   %0   or   %a, %b, %c   for "*" */
static int mlir_read_foreign_operands(mlir_reader *r, mlir_op_state *s, base_slice which) {
  if (*which.p != '*') {
    TRY(mlir_read_operand(r));
  } else if (*r->lx.p == '%') {
    do TRY(mlir_read_operand(r));
    while (mlir_eat(r, ","));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

/* "_" stands for a blank that only the printer needs. */
static int mlir_read_foreign_word(mlir_reader *r, mlir_op_state *s, base_slice w) {
  char word[16];
  if (base_slice_is(w, "_")) return 0;
  if (base_slice_is(w, "{}")) return mlir_read_own_attrs(r, s);
  if (base_slice_is(w, "<select>")) return mlir_read_select_types(r, s);
  if (base_slice_is(w, "<function>")) return mlir_read_foreign_function(r, s);
  if (base_slice_is(w, "<assuming>")) return mlir_read_assuming(r, s);
  assert(w.n < sizeof word);
  memcpy(word, w.p, w.n);
  word[w.n] = 0;
  return text_is(*word, TEXT_ALPHA) ? mlir_want_word(r, word) : mlir_want(r, word);
}

/* Reads what stands between the op's name and its location. */
int mlir_read_foreign(mlir_reader *r, mlir_op_state *s, const mlir_foreign *f) {
  const char *form = f->form;
  mlir_foreign_item item;
  while (mlir_foreign_next(&form, &item)) {
    switch (item.sort) {
      case '%':
        TRY(mlir_read_foreign_operands(r, s, item.name));
        break;
      case '$':
        TRY(mlir_read_foreign_attr(r, &item));
        break;
      case '#':
        TRY(mlir_read_foreign_types(r, s, item.name));
        break;
      case '=':
        TRY(mlir_read_result_type(r, s, item.name.n > 0));
        break;
      default:
        TRY(mlir_read_foreign_word(r, s, item.name));
    }
  }
  return mlir_imply_result(r, s, f);
}

/* After either form: a generic text may leave the properties out too. */
int mlir_foreign_complete(mlir_reader *r, const mlir_op_state *s, const mlir_foreign *f) {
  const char *form = f->form;
  mlir_foreign_item item;
  while (mlir_foreign_next(&form, &item)) {
    const char *otherwise = mlir_foreign_default(item.kind);
    bool there = !otherwise;
    for (uint32_t i = s->entries; !there && i < r->entries.n; i++)
      there = base_slice_is(item.name, r->entries.items[i].key->s);
    if (there) continue;
    ir_mentry entry = {ir_intern(r->m, item.name.p, item.name.n), mlir_opaque_text(r, otherwise, strlen(otherwise))};
    if (!entry.key || !entry.value || !BASE_VEC_PUSH(r->alloc, &r->entries, entry)) return mlir_no_memory(r);
  }
  return 0;
}

/* ---- Ops of the dialects check and interpreter: their forms. */

/* Only forms of these dialects are known; ops of others that are kept have to be written in the generic form. */
int mlir_read_known(mlir_reader *r, mlir_op_state *s, const char **form) {
  *form = mlir_known_form(s->unregistered);
  if (*form) return 0;
  int status = mlir_fail(r, s->at, XLAC_E_SYNTAX, "custom op '%s' has no known pretty syntax", s->unregistered->s);
  return base_hint(r->err, status, "write it in the generic form, \"%s\"(...) : (...) -> ...", s->unregistered->s);
}
