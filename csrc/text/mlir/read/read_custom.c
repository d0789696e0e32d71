/* The <directives> of the form strings: syntaxes that only one op has. What they share comes first, then one part for
 * each. */
#include "read.h"
#include "../sdy/read.h"

/* The word, or an error that names it. */
int mlir_want_word(mlir_reader *r, const char *word) {
  assert(word && *word);
  return mlir_eat_word(r, word) ? 0 : mlir_expected(r, word);
}

/* "name = " "word =": the beginning of a named part. */
static int mlir_want_key(mlir_reader *r, const char *word) {
  TRY(mlir_want_word(r, word));
  return mlir_want(r, "=");
}

/* Fills *e; the caller makes the struct. value NULL means that making it failed for want of memory. */
static int mlir_field(mlir_reader *r, ir_mentry *e, const char *name, const ir_mattr *value) {
  assert(name);
  *e = (ir_mentry){mlir_intern_word(r, name), value};
  return e->key && value ? 0 : mlir_no_memory(r);
}

/* A region with one argument for each of the n types from `types` on. */
static int mlir_read_region_with(mlir_reader *r, const char *at, uint32_t n, const base_istr *const *names,
                                 const ir_type *const *types) {
  ir_computation *c = mlir_new_region(r);
  if (!c) return mlir_no_memory(r);
  uint32_t mark = r->names.n;
  for (uint32_t i = 0; i < n; i++) TRY(mlir_add_arg(r, c, at, names[i], types[i]));
  TRY(mlir_read_region_body(r, c));
  mlir_unbind(r, mark);
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

/* Operands and results of these ops have the same types, so that they are written once. */
static int mlir_read_while_types(mlir_reader *r, mlir_op_state *s) {
  if (s->n_values == 0) return mlir_set_results(r, s, 0, NULL);
  uint32_t from = r->types.n;
  TRY(mlir_want(r, ":"));
  do {
    const ir_type *t;
    TRY(mlir_read_type(r, &t));
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  TRY(mlir_check_operand_types(r, s, from, r->types.n - from));
  TRY(mlir_set_results(r, s, s->n_values, r->types.items + from));
  r->types.n = from;
  return 0;
}

/* ---- "contracting_dims = [1] x [0], precision = [...]": the syntaxes of dot_general and of precisions. */

/* "[DEFAULT, HIGHEST]" */
static int mlir_read_new_precisions(mlir_reader *r, const ir_mattr **out) {
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, "precision", 9);
  uint32_t from = r->attrs.n;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      const ir_mattr *a;
      TRY(mlir_read_enum(r, info, &a));
      if (!BASE_VEC_PUSH(r->alloc, &r->attrs, a)) return mlir_no_memory(r);
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/* Remembered by its text, like all short lists. */
static int mlir_read_precisions(mlir_reader *r) {
  base_slice seen = mlir_list_text(r);
  mlir_memo *place;
  const ir_mattr *list = mlir_recall(r, MLIR_MEMO_PRECISIONS, seen, &place);
  if (list) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_precisions(r, &list));
    mlir_remember(r, place, MLIR_MEMO_PRECISIONS, seen, list);
  }
  return mlir_add_attr(r, "precision_config", list);
}

/* ", precision = [...]" and ", algorithm = <...>", each if there. */
static int mlir_read_precision_tail(mlir_reader *r) {
  while (*r->lx.p == ',') {
    text_lexer back = r->lx;
    mlir_eat(r, ",");
    if (mlir_eat_word(r, "precision")) {
      TRY(mlir_want(r, "="));
      TRY(mlir_read_precisions(r));
    } else if (mlir_eat_word(r, "algorithm")) {
      const ir_mattr *a;
      TRY(mlir_want(r, "="));
      TRY(mlir_read_struct(r, ir_struct_find("stablehlo", 9, "dot_algorithm", 13), &a));
      TRY(mlir_add_attr(r, "algorithm", a));
    } else {
      r->lx = back;
      return mlir_expected(r, "precision or algorithm");
    }
  }
  return 0;
}

/* "[0] x [1]" onto two fields. The left list is the lhs's. */
static int mlir_read_dim_pair(mlir_reader *r, const ir_mattr **lhs, const ir_mattr **rhs) {
  TRY(mlir_read_bare_ints(r, false, lhs));
  TRY(mlir_want(r, "x"));
  return mlir_read_bare_ints(r, false, rhs);
}

/* "batching_dims = [0] x [0], contracting_dims = [1] x [0]" and the tail. Equal dimension numbers share one
 * attribute, found by their four lists. */
static int mlir_read_dot(mlir_reader *r) {
  if (!r->no_i64s && !(r->no_i64s = ir_m_i64s(r->m, 0, NULL))) return mlir_no_memory(r);
  const ir_mattr *lb = r->no_i64s, *rb = lb, *lc, *rc;
  if (mlir_eat_word(r, "batching_dims") || mlir_eat_word(r, "batch_dims")) {
    TRY(mlir_want(r, "="));
    TRY(mlir_read_dim_pair(r, &lb, &rb));
    TRY(mlir_want(r, ","));
  }
  TRY(mlir_want_key(r, "contracting_dims"));
  TRY(mlir_read_dim_pair(r, &lc, &rc));
  ir_mentry e[4];
  TRY(mlir_field(r, &e[0], "lhs_batching_dimensions", lb));
  TRY(mlir_field(r, &e[1], "rhs_batching_dimensions", rb));
  TRY(mlir_field(r, &e[2], "lhs_contracting_dimensions", lc));
  TRY(mlir_field(r, &e[3], "rhs_contracting_dimensions", rc));
  mlir_entries_memo *seen = mlir_recall_entries(r, MLIR_MEMO_DOT, 4, e);
  assert(seen);
  if (!seen->what) seen->what = ir_m_struct(r->m, "stablehlo", "dot", 4, e);
  TRY(mlir_add_attr(r, "dot_dimension_numbers", seen->what));
  return mlir_read_precision_tail(r);
}

/* ---- "dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {...}": the syntax of convolution. */

/* One of "[b, 0, f]": what the two letters and the numbers stand at. */
typedef struct mlir_conv_part {
  int64_t first, second;
  uint32_t n;
  int64_t spatial[IR_MAX_RANK];
} mlir_conv_part;

/* a and b are the letters of the two non-spatial dimensions. */
static int mlir_read_conv_part(mlir_reader *r, char a, char b, mlir_conv_part *p) {
  const char *at = r->lx.p;
  *p = (mlir_conv_part){.first = -1, .second = -1};
  for (int i = 0; i < IR_MAX_RANK; i++) p->spatial[i] = -1;
  TRY(mlir_want(r, "["));
  int64_t position = 0;
  do {
    int64_t d;
    char c = *r->lx.p;
    if (c == a || c == b) {
      int64_t *place = c == a ? &p->first : &p->second;
      if (*place >= 0) return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "Unexpected dimension %c: duplicated", c);
      *place = position;
      r->lx.p++;
      text_skip(&r->lx);
    } else if (c == '?') {
      return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "a dimension of unknown meaning");
    } else {
      TRY(mlir_read_int(r, &d));
      if (d < 0 || d >= IR_MAX_RANK || p->spatial[d] >= 0)
        return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Duplicate entries for spatial dimension %lld", (long long)d);
      p->spatial[d] = position;
      p->n++;
    }
    if (++position > IR_MAX_RANK) return mlir_expected(r, "fewer dimensions");
  } while (mlir_eat(r, ","));
  TRY(mlir_want(r, "]"));
  if (p->first < 0 || p->second < 0)
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Expected dimension %c not specified", p->first < 0 ? a : b);
  for (uint32_t i = 0; i < p->n; i++)
    if (p->spatial[i] < 0)
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "Expected spatial dimension %u not specified", i);
  return 0;
}

/* The struct's fields by name, in the order of its table. */
static int mlir_conv_fields(mlir_reader *r, const mlir_conv_part *in, const mlir_conv_part *kernel,
                            const mlir_conv_part *result, const ir_mattr **out) {
  ir_mentry e[9];
  TRY(mlir_field(r, &e[0], "input_batch_dimension", ir_m_i64(r->m, in->first)));
  TRY(mlir_field(r, &e[1], "input_feature_dimension", ir_m_i64(r->m, in->second)));
  TRY(mlir_field(r, &e[2], "input_spatial_dimensions", ir_m_i64s(r->m, in->n, in->spatial)));
  TRY(mlir_field(r, &e[3], "kernel_input_feature_dimension", ir_m_i64(r->m, kernel->first)));
  TRY(mlir_field(r, &e[4], "kernel_output_feature_dimension", ir_m_i64(r->m, kernel->second)));
  TRY(mlir_field(r, &e[5], "kernel_spatial_dimensions", ir_m_i64s(r->m, kernel->n, kernel->spatial)));
  TRY(mlir_field(r, &e[6], "output_batch_dimension", ir_m_i64(r->m, result->first)));
  TRY(mlir_field(r, &e[7], "output_feature_dimension", ir_m_i64(r->m, result->second)));
  TRY(mlir_field(r, &e[8], "output_spatial_dimensions", ir_m_i64s(r->m, result->n, result->spatial)));
  *out = ir_m_struct(r->m, "stablehlo", "conv", 9, e);
  return *out ? 0 : mlir_no_memory(r);
}

/* "raw<input_batch_dimension = 0, ...>": the fields by name. */
static int mlir_read_conv_raw(mlir_reader *r, const ir_mattr **out) {
  const ir_struct_info *info = ir_struct_find("stablehlo", 9, "conv", 4);
  ir_mentry e[9];
  uint32_t n = 0;
  bool angle = mlir_eat(r, "<"); /* MLIR prints raw<...>, older texts leave the brackets out */
  for (const ir_field_info *f = info->fields; f->name; f++) {
    if (n && !mlir_eat(r, ",")) return mlir_expected(r, "','");
    TRY(mlir_want_key(r, f->name));
    const ir_mattr *value;
    if (f->kind == IR_F_I64) {
      int64_t v;
      TRY(mlir_read_int(r, &v));
      value = ir_m_i64(r->m, v);
    } else {
      uint32_t from;
      TRY(mlir_read_dims(r, &from));
      value = ir_m_i64s(r->m, r->ints.n - from, r->ints.items + from);
      r->ints.n = from;
    }
    TRY(mlir_field(r, &e[n++], f->name, value));
  }
  *out = ir_m_struct(r->m, "stablehlo", "conv", n, e);
  if (!*out) return mlir_no_memory(r);
  return angle ? mlir_want(r, ">") : 0;
}

/* "[b, 0, f]x[0, i, o]->[b, 0, f]" at the cursor; empty where it does not end soon. Up to the first ']' behind the
 * arrow. */
static base_slice mlir_conv_text(const mlir_reader *r) {
  const char *p = r->lx.p, *e = p;
  while (e - p < 60 && *e && *e != '>') e++;
  while (e - p < 60 && *e && *e != ']') e++;
  return *e == ']' ? (base_slice){p, (size_t)(e + 1 - p)} : (base_slice){0};
}

/*   [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] */
static int mlir_read_new_conv_dims(mlir_reader *r, const ir_mattr **out) {
  mlir_conv_part in, kernel, result;
  TRY(mlir_read_conv_part(r, 'b', 'f', &in));
  TRY(mlir_want(r, "x"));
  TRY(mlir_read_conv_part(r, 'i', 'o', &kernel));
  TRY(mlir_want(r, "->"));
  TRY(mlir_read_conv_part(r, 'b', 'f', &result));
  return mlir_conv_fields(r, &in, &kernel, &result, out);
}

/* Also the body of #stablehlo.conv<...>. */
int mlir_read_conv_dims(mlir_reader *r, const ir_mattr **out) {
  if (mlir_eat_word(r, "raw")) return mlir_read_conv_raw(r, out);
  base_slice seen = mlir_conv_text(r);
  mlir_memo *place;
  if ((*out = mlir_recall(r, MLIR_MEMO_CONV, seen, &place))) {
    mlir_pass(r, seen);
    return 0;
  }
  TRY(mlir_read_new_conv_dims(r, out));
  mlir_remember(r, place, MLIR_MEMO_CONV, seen, *out);
  return 0;
}

/* "[[2, 3], [2, 3]]" at the cursor; empty where it does not end soon. */
static base_slice mlir_pad_text(const mlir_reader *r) {
  const char *p = r->lx.p, *e = p;
  if (*p != '[') return (base_slice){0};
  while (e - p < 60 && *e && !(e[0] == ']' && e[1] == ']')) e++;
  return *e == ']' ? (base_slice){p, (size_t)(e + 2 - p)} : (base_slice){0};
}

/*   [[0, 1], [2, 2]]   as a tensor of [dimensions, 2] */
static int mlir_read_new_pad(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->ints.n, rows = 0;
  TRY(mlir_want(r, "["));
  if (*r->lx.p != ']') {
    do {
      uint32_t at;
      TRY(mlir_read_dims(r, &at));
      if (r->ints.n - at != 2) return mlir_expected(r, "two numbers of padding for each dimension");
      rows++;
    } while (mlir_eat(r, ","));
  }
  TRY(mlir_want(r, "]"));
  int64_t dims[2] = {rows, 2};
  *out = ir_m_dense_i64(r->m, 2, dims, r->ints.items + from);
  r->ints.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/*   pad = [[0, 1], [0, 0]] */
static int mlir_read_window_pad(mlir_reader *r) {
  base_slice seen = mlir_pad_text(r);
  mlir_memo *place;
  const ir_mattr *a = mlir_recall(r, MLIR_MEMO_PAD, seen, &place);
  if (a) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_pad(r, &a));
    mlir_remember(r, place, MLIR_MEMO_PAD, seen, a);
  }
  return mlir_add_attr(r, "padding", a);
}

/* Older texts have 0 and 1. */
static int mlir_read_new_reverse(mlir_reader *r, const ir_mattr **out) {
  uint32_t from = r->ints.n;
  TRY(mlir_want(r, "["));
  while (*r->lx.p != ']') {
    int64_t v = mlir_eat_word(r, "true") || mlir_eat_word(r, "1");
    if (!v && !mlir_eat_word(r, "false") && !mlir_eat_word(r, "0")) return mlir_expected(r, "true or false");
    if (!BASE_VEC_PUSH(r->alloc, &r->ints, v)) return mlir_no_memory(r);
    if (!mlir_eat(r, ",")) break;
  }
  TRY(mlir_want(r, "]"));
  *out = ir_m_bools(r->m, r->ints.n - from, r->ints.items + from);
  r->ints.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

/*   reverse = [false, true] */
static int mlir_read_window_reverse(mlir_reader *r) {
  base_slice seen = mlir_list_text(r);
  mlir_memo *place;
  const ir_mattr *a = mlir_recall(r, MLIR_MEMO_REVERSE, seen, &place);
  if (a) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_reverse(r, &a));
    mlir_remember(r, place, MLIR_MEMO_REVERSE, seen, a);
  }
  return mlir_add_attr(r, "window_reversal", a);
}

/* One of "stride = [2, 2]", "pad = [[0, 0], [1, 1]]" and so on; `seen` has a bit for each. */
static int mlir_read_window_item(mlir_reader *r, unsigned *seen) {
  static const struct {
    const char *word, *attr;
  } items[] = {{"stride", "window_strides"},
               {"pad", NULL},
               {"lhs_dilate", "lhs_dilation"},
               {"rhs_dilate", "rhs_dilation"},
               {"reverse", NULL}};
  for (unsigned i = 0; i < 5; i++) {
    if (!mlir_eat_word(r, items[i].word)) continue;
    if (*seen & 1u << i)
      return mlir_fail(r, r->lx.p, XLAC_E_BAD_ATTRIBUTE, "'%s' is given twice in the window", items[i].word);
    *seen |= 1u << i;
    TRY(mlir_want(r, "="));
    if (i == 1) return mlir_read_window_pad(r);
    if (i == 4) return mlir_read_window_reverse(r);
    const ir_mattr *list;
    TRY(mlir_read_bare_ints(r, false, &list));
    return mlir_add_attr(r, items[i].attr, list);
  }
  return mlir_expected(r, "stride, pad, lhs_dilate, rhs_dilate or reverse");
}

/*   (%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]]} {...} : (...) -> ...
 * The dictionary and the types are the form's. */
static int mlir_read_convolution(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_operand_list(r, s));
  const ir_mattr *dims;
  TRY(mlir_want_key(r, "dim_numbers"));
  TRY(mlir_read_conv_dims(r, &dims));
  TRY(mlir_add_attr(r, "dimension_numbers", dims));
  TRY(mlir_want(r, ","));
  TRY(mlir_want_key(r, "window"));
  TRY(mlir_want(r, "{"));
  unsigned seen = 0;
  if (!mlir_eat(r, "}")) {
    do TRY(mlir_read_window_item(r, &seen));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, "}"));
  }
  return 0;
}

/* ---- "reduce(%0 init: %1) applies stablehlo.add across dimensions = [0]", and the same with a written reducer. */

/* The inits of "(%a init: %b), (%c init: %d)" come after all inputs: they wait on the stack of values above `inputs`.
 */
static int mlir_read_reduce_operands(mlir_reader *r, mlir_op_state *s) {
  uint32_t n = 0;
  do {
    TRY(mlir_want(r, "("));
    TRY(mlir_read_operand(r));
    TRY(mlir_want_word(r, "init"));
    TRY(mlir_want(r, ":"));
    TRY(mlir_read_operand(r));
    TRY(mlir_want(r, ")"));
    n++;
  } while (mlir_eat(r, ","));
  ir_value *v = r->values.items + s->values;
  assert(r->values.n == s->values + 2 * n);
  ir_value *inits = BASE_ARRAY(&r->m->arena, ir_value, n);
  if (!inits) return mlir_no_memory(r);
  for (uint32_t i = 0; i < n; i++) inits[i] = v[2 * i + 1];
  for (uint32_t i = 0; i < n; i++) v[i] = v[2 * i];
  memcpy(v + n, inits, n * sizeof *inits);
  s->n_values = 2 * n;
  return 0;
}

/* "applies stablehlo.add": a region of that one op on scalars of the input's element type. */
static int mlir_make_applied(mlir_reader *r, mlir_op_state *s, const char *at, ir_opcode opcode) {
  assert(opcode > IR_OP_INVALID && opcode < IR_OP_COUNT);
  if (s->n_values != 2)
    return mlir_fail(r, at, XLAC_E_SYNTAX, "'applies' reduces one operand, not %u", s->n_values / 2);
  ir_value init = r->values.items[s->values + 1];
  const ir_type *t = init.op->types[init.index],
                *input = r->values.items[s->values].op->types[r->values.items[s->values].index];
  if (ir_is_tensor(input))
    t = ir_tensor_mlir(r->m, (base_dtype)input->dtype, input->quant, input->text, 0, NULL, NULL, NULL, r->err);
  const ir_mlir_info *info = ir_op_table[opcode].mlir;
  if (info->operands != 2 || info->regions || info->attrs[0].name || !ir_opcode_has(opcode, IR_COMMUTATIVE) ||
      strncmp(info->name, "stablehlo.", 10) != 0)
    return mlir_fail(r, at, XLAC_E_SYNTAX,
                     "'%s' can't be applied: expected the inner-op to be a commutative binary-op of StableHLO, with "
                     "zero region, producing single result; others need a reducer that is written out",
                     info->name);
  ir_computation *c = mlir_new_region(r);
  const base_istr *a = ir_intern(r->m, "arg0", 4), *b = ir_intern(r->m, "arg1", 4), *name = ir_intern(r->m, "0", 1);
  if (!c || !t || !a || !b || !name) return mlir_no_memory(r);
  TRY(mlir_add_arg(r, c, NULL, a, t));
  TRY(mlir_add_arg(r, c, NULL, b, t));
  ir_op *op = ir_op_new(c, opcode, t, name, 2, 0);
  c->results = BASE_ARRAY(&r->m->arena, ir_value, 1);
  if (!op || !c->results) return mlir_no_memory(r);
  ir_set_operand(op, 0, (ir_value){c->params[0], 0});
  ir_set_operand(op, 1, (ir_value){c->params[1], 0});
  text_where(&r->lx, s->at, &op->line, &op->col);
  for (uint32_t i = 0; i < 2; i++) text_where(&r->lx, s->at, &c->params[i]->line, &c->params[i]->col);
  c->results[0] = (ir_value){op, 0};
  c->n_results = 1;
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

/* The op's full name, as in "stablehlo.add". */
static int mlir_read_applied_opcode(mlir_reader *r, ir_opcode *opcode) {
  base_slice w = mlir_word(r);
  *opcode = ir_opcode_from_mlir(w.p, w.n);
  if (!*opcode) return mlir_expected(r, "an op to apply");
  mlir_skip_word(r, w);
  return 0;
}

/* "(%a: t, %b: t)" of one reduced operand: a goes among the first arguments, b among the second. */
static int mlir_read_reducer_pair(mlir_reader *r, const base_istr **names, const ir_type **types,
                                  const ir_mattr **locs) {
  TRY(mlir_want(r, "("));
  for (int i = 0; i < 2; i++) {
    if (i) TRY(mlir_want(r, ","));
    const char *p = r->lx.p + 1, *e = p;
    if (r->lx.p[0] != '%') return mlir_expected(r, "an argument such as %arg0");
    while (text_is(*e, TEXT_NAME) || *e == '$') e++;
    if (!(names[i] = ir_intern(r->m, p, (size_t)(e - p)))) return mlir_no_memory(r);
    r->lx.p = e;
    text_skip(&r->lx);
    TRY(mlir_want(r, ":"));
    TRY(mlir_read_type(r, &types[i]));
    locs[i] = NULL;
    TRY(mlir_read_trailing_loc(r, &locs[i]));
  }
  return mlir_want(r, ")");
}

/* "reducer(%a: t, %b: t) (%c: u, %d: u) {...}": n pairs, whose first members are the region's first n arguments. */
static int mlir_read_reducer(mlir_reader *r, mlir_op_state *s) {
  assert(s->n_values % 2 == 0);
  uint32_t n = s->n_values / 2;
  const char *at = r->lx.p;
  const base_istr **names = BASE_ARRAY(&r->m->arena, const base_istr *, 2u * n);
  const ir_type **types = BASE_ARRAY(&r->m->arena, const ir_type *, 2u * n);
  const ir_mattr **locs = BASE_ARRAY(&r->m->arena, const ir_mattr *, 2u * n);
  if (!names || !types || !locs) return mlir_no_memory(r);
  for (uint32_t i = 0; i < n; i++) {
    const base_istr *name[2];
    const ir_type *type[2];
    const ir_mattr *loc[2];
    TRY(mlir_read_reducer_pair(r, name, type, loc));
    names[i] = name[0], names[n + i] = name[1];
    types[i] = type[0], types[n + i] = type[1];
    locs[i] = loc[0], locs[n + i] = loc[1];
  }
  TRY(mlir_read_region_with(r, at, 2 * n, names, types));
  ir_computation *c = r->regions.items[r->regions.n - 1];
  for (uint32_t i = 0; i < 2 * n; i++) c->params[i]->loc = locs[i];
  return 0;
}

/* Ends with either "applies" and the op, whose region is made here, or with the written reducer. */
static int mlir_read_reduce(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_reduce_operands(r, s));
  ir_opcode applied = IR_OP_INVALID;
  const char *at = r->lx.p;
  if (mlir_eat_word(r, "applies")) TRY(mlir_read_applied_opcode(r, &applied));
  TRY(mlir_want_word(r, "across"));
  const ir_mattr *dimensions;
  TRY(mlir_want_key(r, "dimensions"));
  TRY(mlir_read_bare_ints(r, false, &dimensions));
  TRY(mlir_add_attr(r, "dimensions", dimensions));
  TRY(mlir_read_own_attrs(r, s));
  TRY(mlir_read_op_type(r, s));
  if (applied) return mlir_make_applied(r, s, at, applied);
  TRY(mlir_want_word(r, "reducer"));
  return mlir_read_reducer(r, s);
}

/* ---- "while(%iterArg = %0) : t cond {...} do {...}": regions whose arguments are named outside them. */

/* "%iterArg = %init, ...": operands onto the stack; names are kept beside them for both regions. */
static int mlir_read_iter_args(mlir_reader *r, mlir_op_state *s, const base_istr ***names) {
  uint32_t cap = 0;
  TRY(mlir_want(r, "("));
  *names = NULL;
  if (!mlir_eat(r, ")")) {
    do {
      const char *p = r->lx.p + 1, *e = p;
      if (r->lx.p[0] != '%') return mlir_expected(r, "an argument such as %iterArg");
      while (text_is(*e, TEXT_NAME) || *e == '$') e++;
      uint32_t n = r->values.n - s->values;
      if (n == cap) {
        const base_istr **more = BASE_ARRAY(&r->m->arena, const base_istr *, cap ? cap * 2 : 8);
        if (!more) return mlir_no_memory(r);
        if (cap) memcpy(more, *names, cap * sizeof *more);
        *names = more;
        cap = cap ? cap * 2 : 8;
      }
      if (!((*names)[n] = ir_intern(r->m, p, (size_t)(e - p)))) return mlir_no_memory(r);
      r->lx.p = e;
      text_skip(&r->lx);
      TRY(mlir_want(r, "="));
      TRY(mlir_read_operand(r));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

/* Both regions take the same arguments, named before them. */
static int mlir_read_while(mlir_reader *r, mlir_op_state *s) {
  const base_istr **names;
  const char *at = r->lx.p;
  TRY(mlir_read_iter_args(r, s, &names));
  TRY(mlir_read_while_types(r, s));
  if (mlir_eat_word(r, "attributes")) TRY(mlir_read_entries(r));
  TRY(mlir_want_word(r, "cond"));
  TRY(mlir_read_region_with(r, at, s->n_values, names, s->result_types));
  TRY(mlir_want_word(r, "do"));
  return mlir_read_region_with(r, at, s->n_values, names, s->result_types);
}

/* --- constant, call, custom_call --- */

/* "{attrs} dense<...> : type", or "() {value = ...} : () -> type". */
static int mlir_read_constant(mlir_reader *r, mlir_op_state *s) {
  if (mlir_eat(r, "(")) {
    TRY(mlir_want(r, ")"));
    if (mlir_eat(r, "<")) {
      TRY(mlir_read_entries(r));
      TRY(mlir_want(r, ">"));
    }
    TRY(mlir_read_own_attrs(r, s));
    return mlir_read_op_type(r, s);
  }
  TRY(mlir_read_own_attrs(r, s));
  const char *at = r->lx.p;
  const ir_mattr *value;
  TRY(mlir_read_attr(r, &value));
  if (!value->type || !ir_is_tensor(value->type))
    return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected elements attribute");
  TRY(mlir_add_attr(r, "value", value));
  return mlir_set_results(r, s, 1, &value->type);
}

/*   @f(%0) {attributes} : (t) -> t */
static int mlir_read_call(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_add_attr(r, "callee", ir_m_symbol(r->m, name->s, name->n)));
  TRY(mlir_read_operand_list(r, s));
  TRY(mlir_read_own_attrs(r, s));
  return mlir_read_op_type(r, s);
}

/*   @target(%a, %b) */
static int mlir_read_custom_call(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_add_attr(r, "call_target_name", ir_m_string(r->m, name->s, name->n)));
  return mlir_read_operand_list(r, s);
}

/* --- slice: [0:2, 1:4:2] --- */

/*   [0:4, 2:8:2] */
static int mlir_read_slice(mlir_reader *r) {
  int64_t parts[3][IR_MAX_RANK];
  uint32_t n = 0;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      if (n == IR_MAX_RANK) return mlir_expected(r, "fewer dimensions");
      TRY(mlir_read_int(r, &parts[0][n]));
      TRY(mlir_want(r, ":"));
      TRY(mlir_read_int(r, &parts[1][n]));
      parts[2][n] = 1;
      if (mlir_eat(r, ":")) TRY(mlir_read_int(r, &parts[2][n]));
      n++;
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  TRY(mlir_add_attr(r, "start_indices", ir_m_i64s(r->m, n, parts[0])));
  TRY(mlir_add_attr(r, "limit_indices", ir_m_i64s(r->m, n, parts[1])));
  return mlir_add_attr(r, "strides", ir_m_i64s(r->m, n, parts[2]));
}

/* --- the rest --- */

/* "e8m23" */
static int mlir_read_precision_format(mlir_reader *r) {
  base_slice w = mlir_word(r);
  int64_t e, m;
  const char *p = w.n && w.p[0] == 'e' ? base_parse_i64(w.p + 1, w.p + w.n, &e) : NULL;
  const char *q = p && p < w.p + w.n && *p == 'm' ? base_parse_i64(p + 1, w.p + w.n, &m) : NULL;
  if (q != w.p + w.n || w.n == 0)
    return mlir_expected(r, "expected exponent mantissa in format e#m#, such as e8m23: a format");
  if (e > INT32_MAX || m > INT32_MAX) return mlir_expected(r, "bits that fit in 32-bit integers");
  mlir_skip_word(r, w);
  TRY(mlir_add_attr(r, "exponent_bits", ir_m_i32(r->m, e)));
  return mlir_add_attr(r, "mantissa_bits", ir_m_i32(r->m, m));
}

/* "{} %0, %1 : t, t" or "()" */
static int mlir_read_barrier(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_own_attrs(r, s));
  if (mlir_eat(r, "(")) return mlir_want(r, ")");
  do TRY(mlir_read_operand(r));
  while (mlir_eat(r, ","));
  s->n_values = r->values.n - s->values;
  if (r->lx.p[0] == ':' && strncmp(r->lx.p, ": (", 3) == 0) return mlir_read_op_type(r, s);
  return mlir_read_while_types(r, s);
}

/* "(%0, k = 3, is_stable = true) {} : type -> (type, type)" */
static int mlir_read_top_k(mlir_reader *r, mlir_op_state *s) {
  int64_t k;
  TRY(mlir_want(r, "("));
  TRY(mlir_read_operand(r));
  s->n_values = 1;
  TRY(mlir_want(r, ","));
  TRY(mlir_want_key(r, "k"));
  TRY(mlir_read_int(r, &k));
  TRY(mlir_add_attr(r, "k", ir_m_i64(r->m, k)));
  if (mlir_eat(r, ",")) {
    const ir_mattr *stable;
    TRY(mlir_want_key(r, "is_stable"));
    TRY(mlir_read_attr(r, &stable));
    TRY(mlir_add_attr(r, "is_stable", stable));
  }
  TRY(mlir_want(r, ")"));
  TRY(mlir_read_own_attrs(r, s));
  TRY(mlir_want(r, ":"));
  uint32_t from = r->types.n, inputs, results;
  TRY(mlir_read_function_type(r, &inputs, &results));
  TRY(mlir_check_operand_types(r, s, from, inputs));
  TRY(mlir_set_results(r, s, results, r->types.items + from + inputs));
  r->types.n = from;
  return 0;
}

/* operandSegmentSizes = array<i32: first, second>: how many operands belong to each variadic group. */
static const ir_mattr *mlir_segments(mlir_reader *r, uint32_t first, uint32_t second) {
  int64_t two = 2;
  const ir_type *type = ir_tensor(r->m, XLAC_S32, 1, &two, NULL, NULL, NULL);
  ir_literal *l = type ? ir_literal_new(r->m, type) : NULL;
  if (!l) return NULL;
  memcpy(l->data, (int32_t[]){(int32_t)first, (int32_t)second}, 8);
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_dense(r->m, ir_element(r->m, XLAC_S32, NULL), l, false);
  if (a) a->kind = IR_M_DENSE_ARRAY;
  return a;
}

/* "(%in) inits (%init) dimension = 0 attributes {...} {region} : type" Carries come last among the results; there
 * are as many as inits, unless the types say fewer. */
static int mlir_read_scan(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_operand_list(r, s));
  uint32_t n_inputs = s->n_values;
  TRY(mlir_want_word(r, "inits"));
  TRY(mlir_read_operand_list(r, s));
  uint32_t n_inits = s->n_values - n_inputs;
  int64_t dimension;
  TRY(mlir_want_key(r, "dimension"));
  TRY(mlir_read_int(r, &dimension));
  TRY(mlir_add_attr(r, "dimension", ir_m_i64(r->m, dimension)));
  if (mlir_eat_word(r, "attributes")) TRY(mlir_read_entries(r));
  TRY(mlir_read_region(r, true));
  TRY(mlir_read_op_type(r, s));
  uint32_t carries = n_inits < s->n_results ? n_inits : s->n_results;
  TRY(mlir_add_attr(r, "operandSegmentSizes", mlir_segments(r, n_inputs, n_inits)));
  return mlir_add_attr(r, "resultSegmentSizes", mlir_segments(r, s->n_results - carries, carries));
}

/* " (region, region)" of a composite, if there. */
static int mlir_read_regions(mlir_reader *r) {
  if (!mlir_eat(r, "(")) return 0;
  do TRY(mlir_read_region(r, false));
  while (mlir_eat(r, ","));
  return mlir_want(r, ")");
}

/* `d` is the directive's name in the form, without its angle brackets. */
int mlir_read_custom(mlir_reader *r, mlir_op_state *s, base_slice d) {
  if (base_slice_is(d, "constant")) return mlir_read_constant(r, s);
  if (base_slice_is(d, "call")) return mlir_read_call(r, s);
  if (base_slice_is(d, "custom_call")) return mlir_read_custom_call(r, s);
  if (base_slice_is(d, "slice")) return mlir_read_slice(r);
  if (base_slice_is(d, "precision")) return mlir_read_precision_tail(r);
  if (base_slice_is(d, "dot")) return mlir_read_dot(r);
  if (base_slice_is(d, "convolution")) return mlir_read_convolution(r, s);
  if (base_slice_is(d, "while")) return mlir_read_while(r, s);
  if (base_slice_is(d, "reduce")) return mlir_read_reduce(r, s);
  if (base_slice_is(d, "precision_format")) return mlir_read_precision_format(r);
  if (base_slice_is(d, "barrier")) return mlir_read_barrier(r, s);
  if (base_slice_is(d, "top_k")) return mlir_read_top_k(r, s);
  if (base_slice_is(d, "scan")) return mlir_read_scan(r, s);
  if (base_slice_is(d, "regions")) return mlir_read_regions(r);
  if (base_slice_is(d, "sdy_name")) return mlir_sdy_read_symbol(r);
  if (base_slice_is(d, "sdy_direction")) return mlir_sdy_read_direction(r);
  if (base_slice_is(d, "sdy_reduction")) return mlir_sdy_read_reduction(r);
  if (base_slice_is(d, "sdy_manual")) return mlir_sdy_read_manual(r, s);
  if (base_slice_is(d, "sdy_named")) return mlir_sdy_read_named_computation(r, s);
  return mlir_fail(r, s->at, XLAC_E_SYNTAX, "'%s' is read in its generic form only", ir_op_table[s->opcode].mlir->name);
}
