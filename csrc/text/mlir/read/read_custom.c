/* The <directives> of the form strings: syntaxes that only one op has. The short ones are read here, the others in
 * files of their own. */
#include "read_custom.h"
#include "../sdy/read.h"

int mlir_want_word(mlir_reader *r, const char *word) {
  return mlir_eat_word(r, word) ? 0 : mlir_expected(r, word);
}

/* "name = " */
int mlir_want_key(mlir_reader *r, const char *word) {
  TRY(mlir_want_word(r, word));
  return mlir_want(r, "=");
}

int mlir_field(mlir_reader *r, ir_mentry *e, const char *name, const ir_mattr *value) {
  *e = (ir_mentry){mlir_intern_word(r, name), value};
  return e->key && value ? 0 : mlir_no_memory(r);
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

int mlir_read_parenthesised(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do TRY(mlir_read_operand(r));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

static int mlir_read_call(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_add_attr(r, "callee", ir_m_symbol(r->m, name->s, name->n)));
  TRY(mlir_read_parenthesised(r, s));
  TRY(mlir_read_own_attrs(r, s));
  return mlir_read_op_type(r, s);
}

static int mlir_read_custom_call(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_add_attr(r, "call_target_name", ir_m_string(r->m, name->s, name->n)));
  return mlir_read_parenthesised(r, s);
}

/* --- slice: [0:2, 1:4:2] --- */

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

/* "(%in) inits (%init) dimension = 0 attributes {...} {region} : type" */
static int mlir_read_scan(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_parenthesised(r, s));
  uint32_t n_inputs = s->n_values;
  TRY(mlir_want_word(r, "inits"));
  TRY(mlir_read_parenthesised(r, s));
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
  if (base_slice_is(d, "sdy_name")) return sdy_read_symbol(r);
  if (base_slice_is(d, "sdy_direction")) return sdy_read_direction(r);
  if (base_slice_is(d, "sdy_reduction")) return sdy_read_reduction(r);
  if (base_slice_is(d, "sdy_manual")) return sdy_read_manual(r, s);
  if (base_slice_is(d, "sdy_named")) return sdy_read_named_computation(r, s);
  return mlir_fail(r, s->at, XLAC_E_SYNTAX, "'%s' is read in its generic form only", ir_op_table[s->opcode].mlir->name);
}
