/* The pretty syntax of ops, following the form string of the op's row.
 *
 *   %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
 *   "%0 , dims = $permutation {} :fn"
 * The language of the forms is described in ir/opcode.h: operands (%0, %*), attributes ($name), types (:fn, :same,
 * ...), directives of single ops (<name>, read_custom.c), optional groups, and literal words. The same strings drive
 * the printer (print/print_form.c), which is why what is printed reads back. */
#include "../foreign.h"
#include "read.h"
#include "../sdy/read.h"

/* --- types after the colon --- */

/* Copies the types, which may lie on a stack that moves; a single one lies in the state itself. */
int mlir_set_results(mlir_reader *r, mlir_op_state *s, uint32_t n, const ir_type *const *types) {
  assert(n == 0 || types);
  s->n_results = n;
  if (n == 1) s->result = *types;
  s->result_types = n == 1 ? &s->result : base_arena_memdup(&r->m->arena, types, n * sizeof *types);
  return s->result_types || n == 0 ? 0 : mlir_no_memory(r);
}

/* "(a, b) -> c" checked against the operands; the results' types are taken from it. */
static int mlir_read_functional(mlir_reader *r, mlir_op_state *s) {
  uint32_t from = r->types.n, inputs, results;
  if (*r->lx.p != '(') return mlir_expected(r, "function type");
  TRY(mlir_read_function_type(r, &inputs, &results));
  TRY(mlir_check_operand_types(r, s, from, inputs));
  TRY(mlir_set_results(r, s, results, r->types.items + from + inputs));
  r->types.n = from;
  return 0;
}

/*   : (a, b) -> c */
int mlir_read_op_type(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  return mlir_read_functional(r, s);
}

/* One type for all operands and the result, or a function type. */
int mlir_read_same(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  if (*r->lx.p == '(') return mlir_read_functional(r, s);
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  uint32_t from = r->types.n;
  for (uint32_t i = 0; i < s->n_values; i++)
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  TRY(mlir_check_operand_types(r, s, from, s->n_values));
  r->types.n = from;
  return mlir_set_results(r, s, 1, &t);
}

/*   a, b */
static int mlir_read_type_commas(mlir_reader *r, uint32_t *n) {
  uint32_t from = r->types.n;
  do {
    const ir_type *t;
    TRY(mlir_read_type(r, &t));
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  *n = r->types.n - from;
  return 0;
}

/* ": result types" */
static int mlir_read_out(mlir_reader *r, mlir_op_state *s) {
  uint32_t from = r->types.n, n;
  TRY(mlir_want(r, ":"));
  TRY(mlir_read_type_commas(r, &n));
  TRY(mlir_set_results(r, s, n, r->types.items + from));
  r->types.n = from;
  return 0;
}

/* ": operand types -> result types", the operand types maybe in parentheses. */
static int mlir_read_arrow(mlir_reader *r, mlir_op_state *s, bool parentheses) {
  uint32_t from = r->types.n, n, results;
  TRY(mlir_want(r, ":"));
  TRY(parentheses ? mlir_read_type_list(r, &n) : mlir_read_type_commas(r, &n));
  TRY(mlir_check_operand_types(r, s, from, n));
  TRY(mlir_want(r, "->"));
  uint32_t at = r->types.n;
  if (*r->lx.p == '(') {
    TRY(mlir_read_type_list(r, &results));
  } else {
    TRY(mlir_read_type_commas(r, &results));
  }
  TRY(mlir_set_results(r, s, results, r->types.items + at));
  r->types.n = from;
  return 0;
}

/* ": pred type, type" */
static int mlir_read_select(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  if (*r->lx.p == '(') return mlir_read_functional(r, s);
  uint32_t from = r->types.n, n;
  TRY(mlir_read_type_commas(r, &n));
  if (n != 2) return mlir_fail(r, s->at, XLAC_E_SYNTAX, "expected functional type or list of two types");
  const ir_type *t = r->types.items[from + 1];
  if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  TRY(mlir_check_operand_types(r, s, from, 3));
  r->types.n = from;
  return mlir_set_results(r, s, 1, &t);
}

/* ": tuple<...>" of exactly the operands' types. */
static int mlir_read_tuple_type(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  if (*r->lx.p == '(') return mlir_read_functional(r, s);
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  if (t->kind != IR_TYPE_TUPLE) return mlir_fail(r, s->at, XLAC_E_SYNTAX, "expected tuple type");
  uint32_t from = r->types.n;
  for (uint32_t i = 0; i < t->n_elements; i++)
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t->elements[i])) return mlir_no_memory(r);
  TRY(mlir_check_operand_types(r, s, from, t->n_elements));
  r->types.n = from;
  return mlir_set_results(r, s, 1, &t);
}

/* ": complex type", whose parts are the operands' types. */
static int mlir_read_complex_type(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, ":"));
  if (*r->lx.p == '(') return mlir_read_functional(r, s);
  const ir_type *t;
  TRY(mlir_read_type(r, &t));
  if (!ir_is_tensor(t) || !base_dtype_is_complex((base_dtype)t->dtype))
    return mlir_fail(r, s->at, XLAC_E_SYNTAX, "expected tensor with complex element type");
  const ir_type *part = ir_tensor_mlir(r->m, t->dtype == XLAC_C64 ? XLAC_F32 : XLAC_F64, NULL, NULL, t->rank, t->dims,
                                       t->dynamic, t->encoding, r->err);
  uint32_t from = r->types.n;
  if (!part || !BASE_VEC_PUSH(r->alloc, &r->types, part) || !BASE_VEC_PUSH(r->alloc, &r->types, part))
    return mlir_no_memory(r);
  TRY(mlir_check_operand_types(r, s, from, 2));
  r->types.n = from;
  return mlir_set_results(r, s, 1, &t);
}

/* ": type" of operand 0, which is that of all operands, or ": {attributes} type, type" of both. No results. */
static int mlir_read_operand_types(mlir_reader *r, mlir_op_state *s, bool both) {
  uint32_t from = r->types.n, n = 0;
  const ir_type *t = NULL;
  TRY(mlir_want(r, ":"));
  if (both) {
    TRY(mlir_read_own_attrs(r, s));
    TRY(mlir_read_type_commas(r, &n));
  } else {
    TRY(mlir_read_type(r, &t));
    for (; n < s->n_values; n++)
      if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  }
  TRY(mlir_check_operand_types(r, s, from, n));
  r->types.n = from;
  return 0;
}

/* Forms have no other types: the table is ours, so that one that is not known is a fault of the program. */
static int mlir_read_type_item(mlir_reader *r, mlir_op_state *s, base_slice item) {
  if (base_slice_is(item, ":fn")) return mlir_read_op_type(r, s);
  if (base_slice_is(item, ":same") || base_slice_is(item, ":same*")) return mlir_read_same(r, s);
  if (base_slice_is(item, ":out")) return mlir_read_out(r, s);
  if (base_slice_is(item, ":ops->out")) return mlir_read_arrow(r, s, false);
  if (base_slice_is(item, ":(ops)->out")) return mlir_read_arrow(r, s, true);
  if (base_slice_is(item, ":select")) return mlir_read_select(r, s);
  if (base_slice_is(item, ":tuple")) return mlir_read_tuple_type(r, s);
  if (base_slice_is(item, ":0") || base_slice_is(item, ":01")) return mlir_read_operand_types(r, s, item.n == 3);
  assert(base_slice_is(item, ":complex"));
  return mlir_read_complex_type(r, s);
}

/* --- attributes in their bare form --- */

/* Lists without brackets inside are remembered by their text. */
int mlir_read_bare_ints(mlir_reader *r, bool bools, const ir_mattr **out) {
  mlir_memo_kind kind = bools ? MLIR_MEMO_BOOLS : MLIR_MEMO_I64S;
  base_slice seen = mlir_list_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, kind, seen, &place))) {
    mlir_pass(r, seen);
    return 0;
  }
  uint32_t from = r->ints.n;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      int64_t v = 0;
      if (bools) {
        v = mlir_eat_word(r, "true");
        if (!v && !mlir_eat_word(r, "false")) return mlir_expected(r, "true or false");
      } else {
        TRY(mlir_read_int(r, &v));
      }
      if (!BASE_VEC_PUSH(r->alloc, &r->ints, v)) return mlir_no_memory(r);
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  uint32_t n = r->ints.n - from;
  *out = bools ? ir_m_bools(r->m, n, r->ints.items + from) : ir_m_i64s(r->m, n, r->ints.items + from);
  r->ints.n = from;
  if (!*out) return mlir_no_memory(r);
  mlir_remember(r, place, kind, seen, *out);
  return 0;
}

/* Older texts write the type behind the number too. */
static int mlir_read_bare_int(mlir_reader *r, bool wide, const ir_mattr **out) {
  int64_t v;
  TRY(mlir_read_int(r, &v));
  if (*r->lx.p == ':' && r->lx.p[1] == ' ' &&
      (strncmp(r->lx.p, ": i32", 5) == 0 || strncmp(r->lx.p, ": i64", 5) == 0)) {
    const ir_type *t;
    mlir_eat(r, ":");
    TRY(mlir_read_type(r, &t));
  }
  *out = wide ? ir_m_i64(r->m, v) : ir_m_i32(r->m, v);
  return *out ? 0 : mlir_no_memory(r);
}

/* An inherent attribute without its type, as its constraint says how it is written. */
static int mlir_read_bare(mlir_reader *r, const mlir_op_state *s, const ir_mattr_spec *spec, const ir_mattr **out) {
  assert(spec && spec->constraint <= IR_MC_SDY);
  switch ((ir_mattr_constraint)spec->constraint) {
    case IR_MC_I64:
    case IR_MC_I32:
      return mlir_read_bare_int(r, spec->constraint == IR_MC_I64, out);
    case IR_MC_I64S:
      if (*r->lx.p != '[') return mlir_read_attr(r, out);
      return mlir_read_bare_ints(r, false, out);
    case IR_MC_BOOLS:
      return mlir_read_bare_ints(r, true, out);
    case IR_MC_BOOL: {
      bool yes = mlir_eat_word(r, "true");
      if (!yes && !mlir_eat_word(r, "false")) return mlir_expected(r, "true or false");
      *out = ir_m_bool(r->m, yes);
      return *out ? 0 : mlir_no_memory(r);
    }
    case IR_MC_STRING: { /* a colon after it begins the op's type */
      const base_istr *text;
      TRY(mlir_read_string(r, &text));
      *out = ir_m_string(r->m, text->s, text->n);
      return *out ? 0 : mlir_no_memory(r);
    }
    case IR_MC_ENUM: {
      const char *dialect = ir_op_table[s->opcode].mlir->name[0] == 's' ? "stablehlo" : "chlo";
      const ir_enum_info *info = ir_enum_find(dialect, strlen(dialect), spec->sub, strlen(spec->sub));
      assert(info);
      if (*r->lx.p == '#') return mlir_read_attr(r, out);
      return mlir_read_enum(r, info, out);
    }
    case IR_MC_SDY:
      return mlir_sdy_read_bare(r, sdy_kind_find(spec->sub, strlen(spec->sub)), out);
    default:
      return mlir_read_attr(r, out);
  }
}

/* An attribute of an op without a row: a string, or a number written without its type. */
static int mlir_read_known_attr(mlir_reader *r, base_slice name) {
  assert(name.n > 0);
  base_dtype t = BASE_DTYPE_INVALID;
  const char *key = mlir_known_attr(name, &t);
  assert(key);
  if (!t) {
    const base_istr *text;
    TRY(mlir_read_string(r, &text));
    return mlir_add_attr(r, key, ir_m_string(r->m, text->s, text->n));
  }
  double v = 0;
  uint64_t u = 0;
  const char *e = t == XLAC_F64 ? base_parse_f64(r->lx.p, r->lx.end, &v) : base_parse_u64(r->lx.p, r->lx.end, &u);
  if (!e) return mlir_expected(r, "a number");
  r->lx.p = e;
  text_skip(&r->lx);
  const ir_type *type = ir_element(r->m, t, NULL);
  if (!type) return mlir_no_memory(r);
  return mlir_add_attr(r, key, t == XLAC_F64 ? ir_m_float(r->m, type, v) : ir_m_int(r->m, type, (int64_t)u));
}

/* An item "$name" of the form. */
static int mlir_read_attr_item(mlir_reader *r, const mlir_op_state *s, base_slice name) {
  if (s->opcode == IR_OP_UNREGISTERED) return mlir_read_known_attr(r, name);
  const ir_mattr_spec *spec = ir_mattr_spec_find(s->opcode, name.p, name.n);
  const ir_mattr *a;
  assert(spec);
  TRY(mlir_read_bare(r, s, spec, &a));
  return mlir_add_attr(r, spec->name, a);
}

/* --- the walk over a form --- */

/* Items are separated by blanks; an empty slice ends the form. */
static base_slice mlir_next_item(const char **form) {
  while (**form == ' ') (*form)++;
  const char *p = *form;
  while (**form && **form != ' ') (*form)++;
  return (base_slice){p, (size_t)(*form - p)};
}

/* A list of operands ends before whatever is no "%". */
static int mlir_read_all_operands(mlir_reader *r) {
  if (*r->lx.p != '%') return 0;
  for (;;) {
    TRY(mlir_read_operand(r));
    if (*r->lx.p != ',') return 0;
    text_lexer back = r->lx;
    mlir_eat(r, ",");
    if (*r->lx.p == ',') return 0; /* "%a, , sizes = []": StableHLO's printer, where a list of operands is empty */
    if (*r->lx.p != '%') {         /* the comma belongs to what follows: "%a, %b, dim = 0" */
      r->lx = back;
      return 0;
    }
  }
}

/* A literal word or punctuation of the form. */
static int mlir_read_word_item(mlir_reader *r, base_slice item) {
  char word[40];
  assert(item.n < sizeof word);
  memcpy(word, item.p, item.n);
  word[item.n] = 0;
  if (text_is(word[0], TEXT_ALPHA)) {
    if (mlir_eat_word(r, word)) return 0;
    return mlir_expected(r, word);
  }
  return mlir_want(r, word);
}

/* "word=$name" */
static int mlir_read_keyed_item(mlir_reader *r, mlir_op_state *s, base_slice item, const char *dollar) {
  assert(dollar > item.p && dollar[-1] == '=');
  TRY(mlir_read_word_item(r, (base_slice){item.p, (size_t)(dollar - item.p) - 1}));
  TRY(mlir_want(r, "="));
  return mlir_read_attr_item(r, s, (base_slice){dollar + 1, item.n - (size_t)(dollar + 1 - item.p)});
}

/* One item of the form. */
static int mlir_read_item(mlir_reader *r, mlir_op_state *s, base_slice item) {
  assert(item.n > 0);
  if (item.p[0] == '%') {
    TRY(item.p[1] == '*' ? mlir_read_all_operands(r) : mlir_read_operand(r));
    s->n_values = r->values.n - s->values;
    return 0;
  }
  if (item.p[0] == '$') return mlir_read_attr_item(r, s, (base_slice){item.p + 1, item.n - 1});
  if (item.p[0] == '&') {
    const ir_mattr *a;
    TRY(mlir_read_attr(r, &a));
    assert(base_slice_is(item, "&value"));
    return mlir_add_attr(r, "value", a);
  }
  if (base_slice_is(item, "{}")) return mlir_read_own_attrs(r, s);
  if (item.p[0] == ':' && item.n > 1) return mlir_read_type_item(r, s, item);
  if (base_slice_is(item, "<[>")) return mlir_want(r, "[");
  if (base_slice_is(item, "<]>")) return mlir_want(r, "]");
  if (item.p[0] == '<') return mlir_read_custom(r, s, (base_slice){item.p + 1, item.n - 2});
  const char *dollar = memchr(item.p, '$', item.n);
  if (dollar) return mlir_read_keyed_item(r, s, item, dollar);
  return mlir_read_word_item(r, item);
}

/* Past an optional group, "[name , ...]": its items only when its first token is here. */
static int mlir_read_optional(mlir_reader *r, mlir_op_state *s, const char **form) {
  base_slice first = mlir_next_item(form);
  const char *equals = memchr(first.p, '=', first.n);
  bool here = first.n == 1 && *r->lx.p == *first.p;
  if (equals) {
    base_slice word = {first.p, (size_t)(equals - first.p)}, found = mlir_word(r);
    here = found.n == word.n && memcmp(found.p, word.p, word.n) == 0;
  }
  if (here) TRY(mlir_read_item(r, s, first));
  for (;;) {
    base_slice item = mlir_next_item(form);
    assert(item.n);
    if (base_slice_is(item, "]")) return 0;
    if (here) TRY(mlir_read_item(r, s, item));
  }
}

/* Leaves the op's parts on the stacks, from the marks in s on. */
int mlir_read_form(mlir_reader *r, mlir_op_state *s) {
  const char *form = NULL;
  if (s->opcode == IR_OP_UNREGISTERED) {
    if (s->foreign) return mlir_read_foreign(r, s, s->foreign);
    TRY(mlir_read_known(r, s, &form));
    if (!form) return 0;
  } else {
    form = ir_op_table[s->opcode].mlir->form;
  }
  if (!*form)
    return mlir_fail(r, s->at, XLAC_E_SYNTAX, "custom op '%s' has no custom assembly form",
                     ir_op_table[s->opcode].mlir->name);
  for (base_slice item = mlir_next_item(&form); item.n; item = mlir_next_item(&form)) {
    if (item.p[0] == '[' && item.n > 1) {
      TRY(mlir_read_optional(r, s, &form));
    } else {
      TRY(mlir_read_item(r, s, item));
    }
  }
  s->n_values = r->values.n - s->values;
  return 0;
}
