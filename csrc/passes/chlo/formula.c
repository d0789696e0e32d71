/* The compiler of formulas: recursive descent, ops as it reads. The texts are the program's own, so what is wrong with
 * one is an assertion, and how deep they nest is known. */
#include <float.h>
#include <math.h>

#include "../../base/number/number.h"
#include "formula.h"

/* A value, or a number that has no element type yet. */
typedef struct fm_value {
  ir_value v; /* v.op is NULL: a number */
  double number;
} fm_value;

typedef struct fm_name {
  base_slice name;
  fm_value value;
} fm_name;

/* Each constant is made once for each type, however often the formulas name it. */
typedef struct fm_constant {
  const ir_type *type;
  double number;
  ir_value v;
} fm_constant;

enum { FM_NAMES = 64, FM_ARGS = 4, FM_DEPTH = 8 };

/* One application: constants are shared by all formulas that it calls. */
typedef struct fm_run {
  opt_rewriter *rw;
  fm_constant *constants;
  uint32_t n, cap, depth;
  ir_value extents; /* the shape of all values where it is dynamic, once asked for */
} fm_run;

/* One formula being read. */
typedef struct fm_frame {
  fm_run *run;
  const char *p;
  fm_name names[FM_NAMES];
  uint32_t n;
  ir_value like; /* gives the element type of constants: the first real value */
} fm_frame;

/* The grammar, lowest precedence first; names are parameters, definitions ("name = expression;") and constants:
 *    expression := logic ["?" expression ":" expression]
 *    logic      := comparison (("&" | "|" | "^") comparison)*
 *    comparison := sum [("<=" | ">=" | "==" | "!=" | "<" | ">") sum]
 *    sum        := product (("+" | "-") product)*
 *    product    := unary (("*" | "/" | "%") unary)*
 *    unary      := ["-" | "!"] primary
 *    primary    := number | name | name "[" expression "]" | name "(" arguments ")" | "(" expression ")" */
static fm_value fm_expression(fm_frame *f);

/* --- reading --- */

/* Formulas are written over several lines, indented with blanks. */
static void fm_blank(fm_frame *f) {
  while (*f->p == ' ' || *f->p == '\n') f->p++;
}

/* Keywords and punctuation alike: a word that begins with `word` would do too, so names are read by fm_word. */
static bool fm_take(fm_frame *f, const char *word) {
  fm_blank(f);
  size_t n = strlen(word);
  if (strncmp(f->p, word, n) != 0) return false;
  f->p += n;
  return true;
}

/* Not inside assert: what it takes must be taken in builds without assertions too. */
static void fm_need(fm_frame *f, const char *word) {
  bool taken = fm_take(f, word);
  assert(taken);
  (void)taken;
}

/* Names of formulas, parameters, coefficient sets and constants alike. */
static bool fm_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The longest name from here; there must be one. */
static base_slice fm_word(fm_frame *f) {
  fm_blank(f);
  const char *from = f->p;
  while (fm_in_name(*f->p)) f->p++;
  assert(f->p > from);
  return (base_slice){from, (size_t)(f->p - from)};
}

/* Texts are compared where they stand: nothing is copied. */
static bool fm_is(base_slice a, const char *word) {
  return a.n == strlen(word) && memcmp(a.p, word, a.n) == 0;
}

/* --- values --- */

/* Numbers fold while they meet only numbers: "1 / 3" costs no op. */
static fm_value fm_number(double number) {
  return (fm_value){.number = number};
}

static fm_value fm_of(fm_frame *f, ir_value v) {
  if (!v.op) f->run->rw->failed = true;
  /* What could not be made is a number, so that the rest of the text is read as if it were there. */
  return (fm_value){.v = v};
}

/* A constant's ops, in the shape of `like` and with its element type. */
static ir_value fm_spread(fm_run *run, ir_value like, double number) {
  opt_rewriter *rw = run->rw;
  const ir_type *t = opt_type(like);
  bool loose = t && ir_is_tensor(t) && t->has_dynamic && !opt_is_bounded(t);
  if (!t || !ir_is_tensor(t) || !t->has_dynamic) return opt_splat_like(rw, like, number);
  ir_value scalar = opt_splat(rw, opt_tensor(rw, (base_dtype)t->dtype, 0, NULL), number);
  if (!loose) return opt_spread_like(rw, scalar, like);
  if (!run->extents.op) run->extents = opt_extents(rw, like);
  return opt_dynamic_broadcast(rw, scalar, run->extents, t, NULL);
}

/* Arrays that were outgrown stay in the arena: constants are few. */
static bool fm_room(fm_run *run) {
  if (run->n < run->cap) return true;
  uint32_t cap = run->cap ? run->cap * 2 : 32;
  fm_constant *grown = BASE_ARRAY(&run->rw->arena, fm_constant, cap);
  if (!grown) return false;
  if (run->n) memcpy(grown, run->constants, run->n * sizeof(*grown));
  run->constants = grown;
  run->cap = cap;
  return true;
}

static ir_value fm_constant_like(fm_run *run, ir_value like, double number) {
  const ir_type *type = opt_type(like);
  for (uint32_t i = 0; i < run->n; i++) /* By bits: 0.0 and -0.0 are two constants, and a NaN is one. */
    if (run->constants[i].type == type && memcmp(&run->constants[i].number, &number, sizeof number) == 0)
      return run->constants[i].v;
  ir_value v = fm_spread(run, like, number);
  if (!v.op || !fm_room(run)) {
    run->rw->failed = true;
    return v;
  }
  run->constants[run->n++] = (fm_constant){type, number, v};
  return v;
}

/* The value as ops; a number gets the type of `like`, or of the formula's own arguments where that is a number too. */
static ir_value fm_ops(fm_frame *f, fm_value a, fm_value like) {
  if (a.v.op) return a.v;
  return fm_constant_like(f->run, like.v.op ? like.v : f->like, a.number);
}

/* The first real value says which element type constants have; predicates and complex numbers don't. */
static void fm_bind(fm_frame *f, base_slice name, fm_value value) {
  assert(f->n < FM_NAMES);
  const ir_type *t = opt_type(value.v);
  f->names[f->n++] = (fm_name){name, value};
  if (t && !f->like.op && t->dtype != XLAC_PRED && !base_dtype_is_complex((base_dtype)t->dtype)) f->like = value.v;
}

/* --- constants --- */

/* f32 where no value has been bound: a formula of complex numbers before it takes a part. */
static const base_dtype_info *fm_dtype(const fm_frame *f) {
  return base_dtype_of(f->like.op ? (base_dtype)opt_type(f->like)->dtype : XLAC_F32);
}

/* Constants of the element type; formulas use the last two on integers and the rest on f32 and f64. */
static double fm_type_constant(const fm_frame *f, base_slice name) {
  const base_dtype_info *t = fm_dtype(f);
  bool wide = t->bits == 64;
  if (fm_is(name, "max")) return wide ? DBL_MAX : (double)FLT_MAX;
  if (fm_is(name, "min_normal")) return wide ? DBL_MIN : (double)FLT_MIN;
  if (fm_is(name, "epsilon")) return wide ? DBL_EPSILON : (double)FLT_EPSILON;
  if (fm_is(name, "splitter")) return wide ? 134217729.0 : 4097.0;
  if (fm_is(name, "half_width")) return t->bits / 2;
  assert(fm_is(name, "low_mask"));
  return ldexp(1, t->bits / 2) - 1;
}

/* What is none of these names depends on the element type. */
static fm_value fm_constant_named(const fm_frame *f, base_slice name) {
  if (fm_is(name, "inf")) return fm_number(INFINITY);
  if (fm_is(name, "nan")) return fm_number(NAN);
  if (fm_is(name, "pi")) return fm_number(3.14159265358979323846);
  return fm_number(fm_type_constant(f, name));
}

/* NULL: the name is not that of a list of coefficients. */
static const opt_coefficients *fm_set(base_slice name) {
  for (const opt_coefficients *c = opt_coefficient_sets; c->name; c++)
    if (fm_is(name, c->name)) return c;
  return NULL;
}

/* --- operators --- */

/* A number takes the other operand's type. */
static fm_value fm_binary(fm_frame *f, ir_opcode opcode, fm_value a, fm_value b) {
  ir_value x = fm_ops(f, a, b), y = fm_ops(f, b, a);
  return fm_of(f, opt_binary(f->run->rw, opcode, x, y));
}

/* After a failure nothing is folded: a value that could not be made looks like a number. */
static fm_value fm_arithmetic(fm_frame *f, char op, fm_value a, fm_value b) {
  bool numbers = !a.v.op && !b.v.op && !f->run->rw->failed;
  switch (op) {
    case '+':
      return numbers ? fm_number(a.number + b.number) : fm_binary(f, IR_OP_ADD, a, b);
    case '-':
      return numbers ? fm_number(a.number - b.number) : fm_binary(f, IR_OP_SUBTRACT, a, b);
    case '*':
      return numbers ? fm_number(a.number * b.number) : fm_binary(f, IR_OP_MULTIPLY, a, b);
    case '/':
      return numbers ? fm_number(a.number / b.number) : fm_binary(f, IR_OP_DIVIDE, a, b);
    default:
      assert(op == '%');
      return fm_binary(f, IR_OP_REMAINDER, a, b);
  }
}

/* --- functions --- */

static const struct fm_function {
  const char *name;
  uint16_t opcode;
  uint8_t arity;
} fm_functions[] = {{"abs", IR_OP_ABS, 1},
                    {"sqrt", IR_OP_SQRT, 1},
                    {"log", IR_OP_LOG, 1},
                    {"log1p", IR_OP_LOG1P, 1},
                    {"exp", IR_OP_EXP, 1},
                    {"expm1", IR_OP_EXPM1, 1},
                    {"sin", IR_OP_SINE, 1},
                    {"cos", IR_OP_COSINE, 1},
                    {"tan", IR_OP_TAN, 1},
                    {"floor", IR_OP_FLOOR, 1},
                    {"sign", IR_OP_SIGN, 1},
                    {"atan2", IR_OP_ATAN2, 2},
                    {"power", IR_OP_POWER, 2},
                    {"greater", IR_OP_MAXIMUM, 2},
                    {"lesser", IR_OP_MINIMUM, 2},
                    {"shift", IR_OP_SHIFT_RIGHT_ARITHMETIC, 2},
                    {"shift_zero", IR_OP_SHIFT_RIGHT_LOGICAL, 2},
                    {NULL, 0, 0}};

/* Functions whose results have another element type. */
static fm_value fm_retyped(fm_frame *f, base_slice name, uint32_t n, const ir_value *args, bool *found) {
  opt_rewriter *rw = f->run->rw;
  const ir_type *t = opt_type(args[0]);
  base_dtype dtype = t ? (base_dtype)t->dtype : XLAC_F32;
  ir_opcode opcode = IR_OP_BITCAST_CONVERT;
  *found = true;
  if (fm_is(name, "real") || fm_is(name, "imag")) {
    opcode = fm_is(name, "real") ? IR_OP_REAL : IR_OP_IMAG;
    dtype = base_dtype_real_part(dtype);
  } else if (fm_is(name, "complex")) {
    opcode = IR_OP_COMPLEX;
    dtype = dtype == XLAC_F64 ? XLAC_C128 : XLAC_C64;
  } else if (fm_is(name, "is_finite")) {
    opcode = IR_OP_IS_FINITE;
    dtype = XLAC_PRED;
  } else if (fm_is(name, "bits")) { /* as a signed integer */
    unsigned bits = base_dtype_of(dtype)->bits;
    dtype = bits == 64 ? XLAC_S64 : bits == 32 ? XLAC_S32 : bits == 16 ? XLAC_S16 : bits == 8 ? XLAC_S8 : XLAC_S4;
  } else if (fm_is(name, "float")) { /* back to the element type at hand */
    dtype = (base_dtype)opt_type(f->like)->dtype;
  } else {
    *found = false;
  }
  return *found ? fm_of(f, opt_make(rw, opcode, opt_with_dtype(rw, t, dtype), n, args)) : fm_number(0);
}

/* Of numbers alone: sqrt and log. */
static bool fm_fold(base_slice name, fm_value a, fm_value *out) {
  if (a.v.op || !(fm_is(name, "sqrt") || fm_is(name, "log"))) return false;
  *out = fm_number(fm_is(name, "sqrt") ? sqrt(a.number) : log(a.number));
  return true;
}

static fm_value fm_apply(fm_run *run, const opt_formula *formula, uint32_t n, const fm_value *args);

/* Unsigned numbers are shifted as such. */
static ir_opcode fm_shift(unsigned opcode, ir_value a) {
  bool plain = opcode == IR_OP_SHIFT_RIGHT_ARITHMETIC && a.op && base_dtype_is_unsigned((base_dtype)opt_type(a)->dtype);
  return plain ? IR_OP_SHIFT_RIGHT_LOGICAL : (ir_opcode)opcode;
}

/* In order: what folds, ops, other formulas, conversions. Numbers among the arguments take the type of the first, the
 * first takes that of the last. */
static fm_value fm_call(fm_frame *f, base_slice name) {
  fm_value given[FM_ARGS], folded;
  ir_value args[FM_ARGS];
  uint32_t n = 0;
  do {
    assert(n < FM_ARGS);
    given[n++] = fm_expression(f);
  } while (fm_take(f, ","));
  fm_need(f, ")");
  if (n == 1 && fm_fold(name, given[0], &folded)) return folded;
  for (uint32_t i = 0; i < n; i++) {
    args[i] = fm_ops(f, given[i], given[i == 0 ? n - 1 : 0]);
    given[i] = fm_of(f, args[i]);
  }
  for (const struct fm_function *k = fm_functions; k->name; k++)
    if (fm_is(name, k->name) && k->arity == n)
      return fm_of(f, n == 1 ? opt_unary(f->run->rw, (ir_opcode)k->opcode, args[0])
                             : opt_binary(f->run->rw, fm_shift(k->opcode, args[0]), args[0], args[1]));
  const opt_formula *formula = opt_formula_find(name.p, name.n);
  if (formula) return fm_apply(f->run, formula, n, given);
  bool found;
  fm_value v = fm_retyped(f, name, n, args, &found);
  assert(found);
  return v;
}

/* horner(x, SET): the polynomial with those coefficients. */
static fm_value fm_horner(fm_frame *f) {
  fm_value x = fm_expression(f);
  fm_need(f, ",");
  const opt_coefficients *c = fm_set(fm_word(f));
  fm_need(f, ")");
  assert(c && c->n > 1);
  fm_value p = fm_number(c->v[0]);
  for (uint32_t i = 1; i < c->n; i++) p = fm_arithmetic(f, '+', fm_arithmetic(f, '*', p, x), fm_number(c->v[i]));
  return p;
}

/* clenshaw(x, SET): half the difference that ends Clenshaw's recurrence, the value of a Chebyshev series as Cephes
 * writes them. */
static fm_value fm_clenshaw(fm_frame *f) {
  fm_value x = fm_expression(f), b0 = fm_number(0), b1 = b0, b2 = b0;
  fm_need(f, ",");
  const opt_coefficients *c = fm_set(fm_word(f));
  fm_need(f, ")");
  assert(c && c->n > 1);
  for (uint32_t i = 0; i < c->n; i++) {
    b2 = b1;
    b1 = b0;
    fm_value next = fm_arithmetic(f, '-', fm_arithmetic(f, '*', x, b1), b2);
    b0 = fm_arithmetic(f, '+', next, fm_number(c->v[i]));
  }
  return fm_arithmetic(f, '*', fm_arithmetic(f, '-', b0, b2), fm_number(0.5));
}

/* fold(a, start, k, first, last, next): a is start, then `next` for every k. */
static fm_value fm_fold_loop(fm_frame *f) {
  base_slice name = fm_word(f);
  fm_need(f, ",");
  fm_value a = fm_expression(f);
  fm_need(f, ",");
  base_slice index = fm_word(f);
  fm_need(f, ",");
  fm_value first = fm_expression(f);
  fm_need(f, ",");
  fm_value last = fm_expression(f);
  fm_need(f, ",");
  assert(first.number <= last.number);
  /* The text is read once more for every k: the formula language has no other loop, and this one is unrolled. */
  const char *body = f->p;
  uint32_t n = f->n;
  for (double k = first.number; k <= last.number; k++) {
    f->p = body;
    fm_bind(f, name, a);
    fm_bind(f, index, fm_number(k));
    a = fm_expression(f);
    f->n = n;
  }
  fm_need(f, ")");
  return a;
}

/* --- expressions --- */

/* The latest definition of a name counts. SET[k] is one coefficient. */
static fm_value fm_name_value(fm_frame *f, base_slice name) {
  for (uint32_t i = f->n; i-- > 0;)
    if (f->names[i].name.n == name.n && memcmp(f->names[i].name.p, name.p, name.n) == 0) return f->names[i].value;
  const opt_coefficients *c = fm_set(name);
  if (!c) return fm_constant_named(f, name);
  fm_need(f, "[");
  fm_value k = fm_expression(f);
  fm_need(f, "]");
  assert(k.number >= 0 && k.number < c->n);
  return fm_number(c->v[(uint32_t)k.number]);
}

/* No sign: a minus is an operator. */
static fm_value fm_literal(fm_frame *f) {
  double v = 0;
  const char *end = base_parse_f64(f->p, f->p + strlen(f->p), &v);
  assert(end);
  f->p = end;
  return fm_number(v);
}

/* A name before "(" is a function, else a value. */
static fm_value fm_primary(fm_frame *f) {
  if (fm_take(f, "(")) {
    fm_value v = fm_expression(f);
    fm_need(f, ")");
    return v;
  }
  fm_blank(f);
  if ((*f->p >= '0' && *f->p <= '9') || *f->p == '.') return fm_literal(f);
  base_slice name = fm_word(f);
  if (!fm_take(f, "(")) return fm_name_value(f, name);
  if (fm_is(name, "horner")) return fm_horner(f);
  if (fm_is(name, "clenshaw")) return fm_clenshaw(f);
  if (fm_is(name, "fold")) return fm_fold_loop(f);
  return fm_call(f, name);
}

/* "!" is the negation of truth values, and of bits. */
static fm_value fm_unary(fm_frame *f) {
  bool minus = fm_take(f, "-"), inverts = !minus && fm_take(f, "!");
  fm_value v = fm_primary(f);
  if (minus && !v.v.op) return fm_number(-v.number);
  if (!minus && !inverts) return v;
  return fm_of(f, opt_unary(f->run->rw, minus ? IR_OP_NEGATE : IR_OP_NOT, fm_ops(f, v, v)));
}

/* All binary operators are left-associative. */
static fm_value fm_product(fm_frame *f) {
  fm_value v = fm_unary(f);
  for (;;) {
    fm_blank(f);
    char op = *f->p;
    if (op != '*' && op != '/' && op != '%') return v;
    f->p++;
    v = fm_arithmetic(f, op, v, fm_unary(f));
  }
}

/* a - b - c is (a - b) - c. */
static fm_value fm_sum(fm_frame *f) {
  fm_value v = fm_product(f);
  for (;;) {
    fm_blank(f);
    char op = *f->p;
    if (op != '+' && op != '-') return v;
    f->p++;
    v = fm_arithmetic(f, op, v, fm_product(f));
  }
}

/* Two characters before one: "<=" begins with "<". */
static fm_value fm_comparison(fm_frame *f) {
  static const struct {
    const char *text;
    ir_direction direction;
  } kinds[] = {{"<=", IR_DIRECTION_LE}, {">=", IR_DIRECTION_GE}, {"==", IR_DIRECTION_EQ},
               {"!=", IR_DIRECTION_NE}, {"<", IR_DIRECTION_LT},  {">", IR_DIRECTION_GT}};
  fm_value a = fm_sum(f);
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (!fm_take(f, kinds[i].text)) continue;
    fm_value b = fm_sum(f);
    ir_value x = fm_ops(f, a, b), y = fm_ops(f, b, a);
    return fm_of(f, opt_compare(f->run->rw, kinds[i].direction, IR_COMPARISON_NONE, x, y));
  }
  return a;
}

/* "&", "|" and "^" have one precedence: formulas use parentheses where it matters. */
static fm_value fm_logic(fm_frame *f) {
  fm_value v = fm_comparison(f);
  for (;;) {
    if (fm_take(f, "&"))
      v = fm_binary(f, IR_OP_AND, v, fm_comparison(f));
    else if (fm_take(f, "|"))
      v = fm_binary(f, IR_OP_OR, v, fm_comparison(f));
    else if (fm_take(f, "^"))
      v = fm_binary(f, IR_OP_XOR, v, fm_comparison(f));
    else
      return v;
  }
}

/* c ? a : b, right-associative. */
static fm_value fm_expression(fm_frame *f) {
  fm_value c = fm_logic(f);
  if (!fm_take(f, "?")) return c;
  fm_value a = fm_expression(f);
  fm_need(f, ":");
  fm_value b = fm_expression(f);
  ir_value x = fm_ops(f, a, b), y = fm_ops(f, b, a);
  return fm_of(f, opt_select(f->run->rw, c.v, x, y));
}

/* Whether "name = " stands next; "==" is not a definition. */
static bool fm_definition(fm_frame *f, base_slice *name) {
  fm_blank(f);
  const char *from = f->p;
  if (!(*from >= 'a' && *from <= 'z')) return false;
  *name = fm_word(f);
  fm_blank(f);
  if (f->p[0] == '=' && f->p[1] != '=') {
    f->p++;
    return true;
  }
  f->p = from;
  return false;
}

static fm_value fm_apply(fm_run *run, const opt_formula *formula, uint32_t n, const fm_value *args) {
  /* A formula within a formula has names of its own, but shares constants. */
  fm_frame f = {.run = run, .p = formula->parameters};
  base_slice name;
  assert(run->depth < FM_DEPTH);
  /* Parameters are bound in order, then the text is read: definitions with a semicolon each, and the result. */
  run->depth++;
  for (uint32_t i = 0; i < n; i++) fm_bind(&f, fm_word(&f), args[i]);
  fm_blank(&f);
  assert(*f.p == 0);
  f.p = formula->text;
  while (!run->rw->failed && fm_definition(&f, &name)) {
    fm_bind(&f, name, fm_expression(&f));
    fm_need(&f, ";");
  }
  fm_value v = run->rw->failed ? fm_number(0) : fm_expression(&f);
  run->depth--;
  return v;
}

/* The constants that it makes belong to this application: another op may stand before them. */
ir_value opt_formula_apply(opt_rewriter *rw, const opt_formula *formula, uint32_t n, const ir_value *args) {
  fm_run run = {.rw = rw};
  fm_value given[FM_ARGS];
  assert(n <= FM_ARGS);
  for (uint32_t i = 0; i < n; i++) given[i] = (fm_value){.v = args[i]};
  return fm_apply(&run, formula, n, given).v;
}

/* The formulas and their coefficients as tables. */

#define COEFFICIENTS(name, ...) static const double formula_##name[] = {__VA_ARGS__};
#define FORMULA(name, parameters, text)
#include "formulas.def"
#undef COEFFICIENTS
#undef FORMULA

const opt_coefficients opt_coefficient_sets[] = {
#define COEFFICIENTS(name, ...) {#name, sizeof formula_##name / sizeof(double), formula_##name},
#define FORMULA(name, parameters, text)
#include "formulas.def"
#undef COEFFICIENTS
#undef FORMULA
    {NULL, 0, NULL}};

const opt_formula opt_formulas[] = {
#define COEFFICIENTS(name, ...)
#define FORMULA(name, parameters, text) {name, parameters, text},
#include "formulas.def"
#undef COEFFICIENTS
#undef FORMULA
    {NULL, NULL, NULL}};

/* By name: "erf", "erf_f64". A search from the start: there are some dozens of formulas. */
const opt_formula *opt_formula_find(const char *name, size_t n) {
  for (const opt_formula *f = opt_formulas; f->name; f++)
    if (strlen(f->name) == n && memcmp(f->name, name, n) == 0) return f;
  return NULL;
}
