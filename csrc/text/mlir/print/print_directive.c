/* The pretty forms that no string describes: the <word> items of forms. A directive prints its own blanks.
 *
 * Each is a row of mprint_directives: its word, its function, and the attributes that it prints, which the
 * dictionary then leaves out. read/read_custom.c reads the same syntaxes. */
#include "print.h"
#include "../sdy/print.h"

typedef void mprint_directive_fn(mprint *p, const ir_op *op, const char *form);

/*   [1, 2] */
static void mprint_number_list(mprint *p, const int64_t *v, uint32_t n) {
  base_putc(p->out, '[');
  for (uint32_t i = 0; i < n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    base_put_i64(p->out, v[i]);
  }
  base_putc(p->out, ']');
}

/*   [0, 2] */
static void mprint_dims(mprint *p, const ir_mattr *a) {
  uint32_t n;
  const int64_t *v = mprint_ints(p, a, &n);
  mprint_number_list(p, v, n);
}

/* A value whose type is not the result's (an op that breaks its rules) can be said in the generic form only. */
static void mprint_constant(mprint *p, const ir_op *op, const char *form) {
  const ir_mattr *v = ir_mattr_of(op, "value");
  if (!v || !v->type || !mprint_same_type(v->type, op->type)) {
    mprint_generic_op(p, op, false);
    return;
  }
  mprint_rest(p, op, form, false);
  base_putc(p->out, ' ');
  mprint_attr(p, v);
}

/*    @f(%0) {attributes} : (t) -> t */
static void mprint_call(mprint *p, const ir_op *op, const char *form) {
  const ir_mattr *callee = ir_mattr_of(op, "callee");
  base_putc(p->out, ' ');
  if (callee) mprint_attr(p, callee);
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  base_putc(p->out, ')');
  mprint_rest(p, op, form, false);
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
}

/* The dictionary and the types are the form's. */
static void mprint_custom_call(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  const ir_mattr *target = ir_mattr_of(op, "call_target_name");
  base_putc(p->out, ' ');
  if (target && target->str) mprint_symbol(p->out, target->str->s, target->str->n);
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  base_putc(p->out, ')');
}

/*    %0, %1 : t, t */
static void mprint_barrier(mprint *p, const ir_op *op, const char *form) {
  mprint_rest(p, op, form, false);
  if (op->n_operands == 0) {
    BASE_PUT(p->out, "()");
    return;
  }
  base_putc(p->out, ' ');
  mprint_operands(p, op, 0, op->n_operands);
  BASE_PUT(p->out, " : ");
  mprint_operand_types(p, op);
}

/*    e8m23 */
static void mprint_precision_format(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  BASE_PUT(p->out, " e");
  base_put_i64(p->out, ir_m_get_int(op, "exponent_bits", 0));
  base_putc(p->out, 'm');
  base_put_i64(p->out, ir_m_get_int(op, "mantissa_bits", 0));
}

/* ", precision = [DEFAULT, DEFAULT]" where there is one. */
static void mprint_precision(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  const ir_mattr *a = ir_mattr_of(op, "precision_config");
  if (!a || a->kind != IR_M_ARRAY) return;
  BASE_PUT(p->out, ", precision = [");
  for (uint32_t i = 0; a->v.list && i < a->v.list->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_attr_bare(p, a->v.list->v[i]);
  }
  base_putc(p->out, ']');
}

/*   [0] x [1] */
static void mprint_dim_pair(mprint *p, const ir_mattr *dims, const char *lhs, const char *rhs) {
  mprint_dims(p, ir_m_field(dims, lhs));
  BASE_PUT(p->out, " x ");
  mprint_dims(p, ir_m_field(dims, rhs));
}

/*    batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [...], algorithm = <...> */
static void mprint_dot(mprint *p, const ir_op *op, const char *form) {
  const ir_mattr *dims = ir_mattr_of(op, "dot_dimension_numbers"), *algorithm = ir_mattr_of(op, "algorithm");
  if (dims && dims->kind == IR_M_STRUCT) {
    uint32_t lhs, rhs;
    mprint_ints(p, ir_m_field(dims, "lhs_batching_dimensions"), &lhs);
    mprint_ints(p, ir_m_field(dims, "rhs_batching_dimensions"), &rhs);
    if (lhs || rhs) {
      BASE_PUT(p->out, " batching_dims = ");
      mprint_dim_pair(p, dims, "lhs_batching_dimensions", "rhs_batching_dimensions");
      base_putc(p->out, ',');
    }
    BASE_PUT(p->out, " contracting_dims = ");
    mprint_dim_pair(p, dims, "lhs_contracting_dimensions", "rhs_contracting_dimensions");
  }
  mprint_precision(p, op, form);
  if (!algorithm) return;
  BASE_PUT(p->out, ", algorithm = ");
  mprint_attr_bare(p, algorithm);
}

/*    [0:2, 1:9:2] */
static void mprint_slice(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  uint32_t n, n_limits, n_strides;
  const int64_t *start = mprint_ints(p, ir_mattr_of(op, "start_indices"), &n);
  const int64_t *limit = mprint_ints(p, ir_mattr_of(op, "limit_indices"), &n_limits);
  const int64_t *stride = mprint_ints(p, ir_mattr_of(op, "strides"), &n_strides);
  BASE_PUT(p->out, " [");
  for (uint32_t i = 0; i < n && n == n_limits && n == n_strides; i++) {
    if (i) BASE_PUT(p->out, ", ");
    base_put_i64(p->out, start[i]);
    base_putc(p->out, ':');
    base_put_i64(p->out, limit[i]);
    if (stride[i] == 1) continue;
    base_putc(p->out, ':');
    base_put_i64(p->out, stride[i]);
  }
  base_putc(p->out, ']');
}

/*   [[0, 1], [2, 2]] */
static void mprint_padding(mprint *p, const ir_mattr *a) {
  uint32_t n;
  const int64_t *v = mprint_ints(p, a, &n);
  base_putc(p->out, '[');
  for (uint32_t i = 0; i + 1 < n; i += 2) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_number_list(p, v + i, 2);
  }
  base_putc(p->out, ']');
}

/* Each part that the op has; none is left out for being at its default. */
static void mprint_window(mprint *p, const ir_op *op) {
  static const char *const names[5][2] = {{"window_strides", "stride"},
                                          {"padding", "pad"},
                                          {"lhs_dilation", "lhs_dilate"},
                                          {"rhs_dilation", "rhs_dilate"},
                                          {"window_reversal", "reverse"}};
  bool some = false;
  for (int i = 0; i < 5; i++) {
    const ir_mattr *a = ir_mattr_of(op, names[i][0]);
    if (!a) continue;
    if (some) BASE_PUT(p->out, ", ");
    some = true;
    base_puts(p->out, names[i][1]);
    BASE_PUT(p->out, " = ");
    if (a->kind == IR_M_DENSE_ARRAY)
      mprint_attr_bare(p, a);
    else
      mprint_padding(p, a);
  }
}

/*   (%0, %1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]} */
static void mprint_convolution(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  const ir_mattr *dims = ir_mattr_of(op, "dimension_numbers");
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, op->n_operands);
  BASE_PUT(p->out, ") dim_numbers = ");
  if (dims) mprint_conv_dims(p, dims);
  BASE_PUT(p->out, ", window = {");
  mprint_window(p, op);
  base_putc(p->out, '}');
}

/* Whether two values are not the same: an op and which of its results. */
static bool mprint_ints_differ(const ir_value *a, const ir_use *b) {
  return a->op != b->op || a->index != b->index;
}

/* A reduce prints its region's one op alone where that says all: a commutative op of StableHLO on the two parameters in
 * order, of the first input's element type, whose result is the region's. */
bool mprint_reduce_is_compact(const ir_op *op) {
  const ir_computation *c = op->n_called ? op->called[0] : NULL;
  if (!c || c->declaration || c->n_params != 2 || c->n_results != 1 || op->n_operands == 0) return false;
  const ir_op *inner = NULL;
  IR_FOR_OPS(o, c) {
    if (o->opcode == IR_OP_PARAMETER) continue;
    if (inner) return false;
    inner = o;
  }
  if (!inner || inner->n_operands != 2 || inner->n_results != 1 || inner->n_called) return false;
  const ir_mlir_info *info = ir_opcode_info(inner->opcode)->mlir;
  if (!ir_opcode_has(inner->opcode, IR_COMMUTATIVE) || !info || strncmp(info->name, "stablehlo.", 10) != 0)
    return false;
  const ir_type *t = inner->type, *from = ir_operand_type(op, 0);
  if (!ir_is_scalar(t) || t->encoding || !mprint_same_type(ir_operand_type(inner, 0), t) ||
      !mprint_same_type(ir_operand_type(inner, 1), t))
    return false;
  if (t->dtype != from->dtype || t->text != from->text || !ir_quant_equal(t->quant, from->quant)) return false;
  for (uint32_t i = 0; i < 2; i++)
    if (inner->operands[i].op != c->params[i]) return false;
  ir_use result = {.op = (ir_op *)inner};
  if (mprint_ints_differ(&c->results[0], &result)) return false;
  return !c->return_name || strcmp(c->return_name->s, "stablehlo.return") == 0 ||
         strcmp(c->return_name->s, "func.return") == 0;
}

/* Of a region that holds one op beside its arguments. */
static const ir_op *mprint_only_op(const ir_computation *c) {
  const ir_op *op = c->first;
  while (op->opcode == IR_OP_PARAMETER) op = op->next;
  assert(op);
  return op;
}

/*    reducer(%a: t, %b: t) (%c: u, %d: u)  {
 * Pairs of an operand's accumulator and its element; MLIR prints two blanks before the brace. */
static void mprint_reducer(mprint *p, const ir_op *op) {
  const ir_computation *c = op->called[0];
  assert(c->n_params % 2 == 0 && c->n_params == op->n_operands);
  uint32_t half = c->n_params / 2;
  mprint_newline(p);
  BASE_PUT(p->out, " reducer");
  for (uint32_t i = 0; i < half; i++) {
    base_putc(p->out, '(');
    mprint_argument(p, c->params[i]);
    BASE_PUT(p->out, ", ");
    mprint_argument(p, c->params[half + i]);
    BASE_PUT(p->out, ") ");
  }
  base_putc(p->out, ' ');
  mprint_region(p, c, false);
}

/*   (%0 init: %1) applies stablehlo.add across dimensions = [0] : (...) -> ... */
static void mprint_reduce(mprint *p, const ir_op *op, const char *form) {
  assert(op->n_operands % 2 == 0);
  uint32_t half = op->n_operands / 2;
  for (uint32_t i = 0; i < half; i++) {
    base_puts(p->out, i ? ", (" : "(");
    mprint_value(p, mprint_operand(op, i));
    BASE_PUT(p->out, " init: ");
    mprint_value(p, mprint_operand(op, half + i));
    base_putc(p->out, ')');
  }
  bool compact = mprint_reduce_is_compact(op);
  if (compact) {
    BASE_PUT(p->out, " applies ");
    base_puts(p->out, ir_opcode_info(mprint_only_op(op->called[0])->opcode)->mlir->name);
  }
  BASE_PUT(p->out, " across dimensions = ");
  mprint_dims(p, ir_mattr_of(op, "dimensions"));
  mprint_rest(p, op, form, false);
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
  if (!compact) mprint_reducer(p, op);
}

/*   (%iterArg = %0, %iterArg_0 = %1) : t, u cond { ... } do { ... } */
static void mprint_while(mprint *p, const ir_op *op, const char *form) {
  assert(op->n_called == 2 && op->called[1]->n_params == op->n_operands);
  const ir_computation *body = op->called[1];
  base_putc(p->out, '(');
  for (uint32_t i = 0; i < op->n_operands; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_value(p, (ir_value){body->params[i], 0});
    BASE_PUT(p->out, " = ");
    mprint_value(p, mprint_operand(op, i));
  }
  base_putc(p->out, ')');
  if (op->n_operands) BASE_PUT(p->out, " : ");
  mprint_operand_types(p, op);
  mprint_rest(p, op, form, true);
  mprint_newline(p);
  BASE_PUT(p->out, "cond ");
  mprint_region(p, op->called[0], false);
  BASE_PUT(p->out, " do ");
  mprint_region(p, body, false);
}

/* The first of the two counts of an attribute that sizes segments; all where there is none. */
static uint32_t mprint_first_segment(mprint *p, const ir_op *op) {
  const ir_mattr *a = ir_mattr_of(op, "operandSegmentSizes");
  if (!a || a->kind != IR_M_DENSE_ARRAY || !a->v.literal || a->v.literal->type->count == 0) return op->n_operands;
  (void)p;
  int64_t n = base_load_i64(a->v.literal->type->dtype, a->v.literal->data);
  return n >= 0 && n <= op->n_operands ? (uint32_t)n : op->n_operands;
}

/*   (%0) inits (%1) dimension=0 {...} */
static void mprint_scan(mprint *p, const ir_op *op, const char *form) {
  uint32_t inputs = mprint_first_segment(p, op);
  base_putc(p->out, '(');
  mprint_operands(p, op, 0, inputs);
  BASE_PUT(p->out, ") inits (");
  mprint_operands(p, op, inputs, op->n_operands);
  BASE_PUT(p->out, ") dimension=");
  base_put_i64(p->out, ir_m_get_int(op, "dimension", 0));
  base_putc(p->out, ' ');
  mprint_rest(p, op, form, true);
  base_putc(p->out, ' ');
  if (op->n_called) mprint_region(p, op->called[0], true);
  BASE_PUT(p->out, " : ");
  mprint_function_type(p, op);
}

/*   (%0, k = 3) : t -> (t, u) */
static void mprint_top_k(mprint *p, const ir_op *op, const char *form) {
  BASE_PUT(p->out, "(");
  mprint_operands(p, op, 0, op->n_operands);
  BASE_PUT(p->out, ", k = ");
  base_put_i64(p->out, ir_m_get_int(op, "k", 0));
  const ir_mattr *stable = ir_mattr_of(op, "is_stable");
  if (stable && !stable->v.b) BASE_PUT(p->out, ", is_stable = false");
  base_putc(p->out, ')');
  mprint_rest(p, op, form, false);
  BASE_PUT(p->out, " : ");
  mprint_operand_types(p, op);
  BASE_PUT(p->out, " -> (");
  mprint_types(p->out, op->n_results, op->types);
  base_putc(p->out, ')');
}

/*    ({ ... }, { ... }) */
static void mprint_regions(mprint *p, const ir_op *op, const char *form) {
  (void)form;
  for (uint32_t i = 0; i < op->n_called; i++) {
    base_puts(p->out, i ? ", " : " (");
    mprint_region(p, op->called[i], true);
  }
  if (op->n_called) base_putc(p->out, ')');
}

/* Whether the operands have these types. */
static bool mprint_types_agree(const ir_op *op, const ir_type *const *types, uint32_t n) {
  if (op->n_operands != n) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!mprint_same_type(ir_operand_type(op, i), types[i])) return false;
  return true;
}

/* The form writes the types once for operands, results and both regions' arguments. */
static bool mprint_while_is_sayable(const ir_op *op) {
  if (op->n_called != 2 || !mprint_types_agree(op, op->types, op->n_results)) return false;
  for (uint32_t r = 0; r < 2; r++) {
    const ir_computation *c = op->called[r];
    if (c->declaration || c->n_params != op->n_operands) return false;
    for (uint32_t i = 0; i < c->n_params; i++)
      if (!mprint_same_type(c->params[i]->type, op->types[i])) return false;
  }
  return true;
}

/* The verifier may not have seen the module: an op whose attributes, regions or types are not what its form counts
 * on is printed in the generic form, which can say everything. */
bool mprint_is_sayable(mprint *p, const ir_op *op) {
  const ir_mattr *dims;
  switch (op->opcode) {
    case IR_OP_WHILE:
      return mprint_while_is_sayable(op);
    case IR_OP_REDUCE:
      return op->n_called == 1 && op->n_operands % 2 == 0 && !op->called[0]->declaration &&
             op->called[0]->n_params == op->n_operands;
    case IR_OP_OPT_BARRIER:
      return mprint_types_agree(op, op->types, op->n_results);
    case IR_OP_TUPLE:
      return ir_is_tuple(op->type) && mprint_types_agree(op, op->type->elements, op->type->n_elements);
    case IR_OP_CONVOLUTION:
      dims = ir_mattr_of(op, "dimension_numbers");
      return dims && dims->kind == IR_M_STRUCT && mprint_conv_is_plain(p, dims);
    default:
      return mlir_sdy_is_sayable(op);
  }
}

#define NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})
/* What a directive of a form prints. */
typedef struct mprint_directive_info {
  const char *word;
  mprint_directive_fn *print;
  const char *const *attrs; /* that it prints */
} mprint_directive_info;

/* What each directive prints, with the attributes that are then no longer to be printed in the dictionary:
 *
 *   <constant>          dense<1.0> : tensor<4xf32>
 *   <call>              @f(%a, %b)
 *   <custom_call>       @target(%a, %b)
 *   <barrier>           %a, %b : tensor<f32>, tensor<i32>
 *   <precision_format>  e5m10
 *   <precision>         precision = [HIGH, DEFAULT]
 *   <dot>               batching_dims = [0] x [0], contracting_dims = [1] x [0], precision = [HIGH, HIGH]
 *   <slice>             [0:4, 2:8:2]
 *   <convolution>       dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]]}
 *   <reduce>            (%a init: %z) applies stablehlo.add across dimensions = [0]
 *   <while>             (%i = %zero) : tensor<i32> cond { ... } do { ... }
 *   <scan>              (%x) inits (%c) dimension=0 { ... } : type
 *   <top_k>             (%a, k = 5) : type
 *   <regions>           ({ ... }, { ... })
 *   <sdy_...>           see ../sdy/print.c */
static const mprint_directive_info mprint_directives[] = {
    {"<constant>", mprint_constant, NAMES("value")},
    {"<call>", mprint_call, NAMES("callee")},
    {"<custom_call>", mprint_custom_call, NAMES("call_target_name")},
    {"<barrier>", mprint_barrier, NULL},
    {"<precision_format>", mprint_precision_format, NAMES("exponent_bits", "mantissa_bits")},
    {"<precision>", mprint_precision, NAMES("precision_config")},
    {"<dot>", mprint_dot, NAMES("dot_dimension_numbers", "precision_config", "algorithm")},
    {"<slice>", mprint_slice, NAMES("start_indices", "limit_indices", "strides")},
    {"<convolution>", mprint_convolution,
     NAMES("dimension_numbers", "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal")},
    {"<reduce>", mprint_reduce, NAMES("dimensions")},
    {"<while>", mprint_while, NULL},
    {"<sdy_name>", mlir_sdy_print_name, NAMES("sym_name")},
    {"<sdy_direction>", mlir_sdy_print_direction, NAMES("allowed_direction")},
    {"<sdy_reduction>", mlir_sdy_print_reduction, NAMES("reduction_op")},
    {"<sdy_manual>", mlir_sdy_print_manual, NAMES("in_shardings", "out_shardings", "manual_axes")},
    {"<sdy_named>", mlir_sdy_print_named_computation, NAMES("name", "in_shardings", "out_shardings")},
    {"<scan>", mprint_scan, NAMES("dimension", "operandSegmentSizes", "resultSegmentSizes")},
    {"<top_k>", mprint_top_k, NAMES("k", "is_stable")},
    {"<regions>", mprint_regions, NULL},
};

/* NULL for a word that is none. The list is short, and a form has one directive or none. */
static const mprint_directive_info *mprint_directive_find(const char *word, size_t n) {
  base_slice s = {word, n};
  for (size_t i = 0; i < sizeof mprint_directives / sizeof *mprint_directives; i++)
    if (base_slice_is(s, mprint_directives[i].word)) return &mprint_directives[i];
  return NULL;
}

const char *const *mprint_directive_attrs(const char *word, size_t n) {
  const mprint_directive_info *d = mprint_directive_find(word, n);
  return d ? d->attrs : NULL;
}

/* Forms come from ops.def, so an unknown word is a mistake there. */
void mprint_directive(mprint *p, const ir_op *op, const char *form, const char *word, size_t n) {
  const mprint_directive_info *d = mprint_directive_find(word, n);
  assert(d);
  d->print(p, op, form);
}
