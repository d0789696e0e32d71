/* Incomplete gamma functions, their derivatives by the first argument, and that of a gamma distributed sample. A power
 * series where x is small, a continued fraction where it is large. Source: DLMF 8.7, 8.9, 8.11; the behaviour of XLA's
 * Igamma, Igammac, IgammaGradA, RandomGammaGrad. */
#include <float.h>
#include <math.h>

#include "../repeat.h"

enum { GAMMA_LOWER, GAMMA_UPPER, GAMMA_DERIVATIVE, GAMMA_SAMPLE, GAMMA_MOST_STEPS = 2000 };

typedef struct gamma_sum {
  ir_value v, by_a; /* and its derivative */
} gamma_sum;

static ir_value gamma_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

#define GAMMA_ADD(a, b) gamma_op(x, IR_OP_ADD, a, b)
#define GAMMA_SUB(a, b) gamma_op(x, IR_OP_SUBTRACT, a, b)
#define GAMMA_MUL(a, b) gamma_op(x, IR_OP_MULTIPLY, a, b)
#define GAMMA_DIV(a, b) gamma_op(x, IR_OP_DIVIDE, a, b)

static double gamma_epsilon(ir_value v) {
  return opt_type(v)->dtype == XLAC_F64 ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
}

static ir_value gamma_abs_above(tfl_op *x, ir_value v, double limit) {
  ir_value size = opt_unary(x->rw, IR_OP_ABS, v);
  return tfl_compare(x, "GT", size, tfl_like(x, v, limit));
}

/* Goes on while `far` holds somewhere, and not for ever. */
static ir_value gamma_go_on(tfl_op *x, ir_value far, ir_value step) {
  return gamma_op(x, IR_OP_AND, tfl_any(x, far), tfl_compare(x, "LT", step, tfl_like(x, step, GAMMA_MOST_STEPS)));
}

/* sum of x^n / ((a + 1)...(a + n)) */
static int gamma_series(tfl_op *x, ir_value a, ir_value at, gamma_sum *out) {
  ir_value one = tfl_like(x, a, 1), zero = tfl_like(x, a, 0), step = tfl_scalar(x, XLAC_S32, 0), all[7];
  ir_value inits[] = {tfl_scalar(x, XLAC_PRED, 1), step, a, one, one, zero, zero};
  tfl_repeat r;
  TRY(tfl_repeat_begin(x, &r, 7, inits));
  ir_value n = tfl_with(x, IR_OP_ADD, r.state[2], 1), ratio = GAMMA_DIV(at, n);
  ir_value term = GAMMA_MUL(r.state[3], ratio), sum = GAMMA_ADD(r.state[4], term);
  ir_value term_by_a = GAMMA_SUB(GAMMA_MUL(r.state[5], ratio), GAMMA_DIV(term, n));
  ir_value sum_by_a = GAMMA_ADD(r.state[6], term_by_a);
  ir_value far = tfl_compare(x, "GT", term, tfl_with(x, IR_OP_MULTIPLY, sum, gamma_epsilon(a)));
  if (x->row->arg >= GAMMA_DERIVATIVE) {
    ir_value limit = tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ABS, sum_by_a), gamma_epsilon(a));
    far = tfl_compare(x, "GT", opt_unary(x->rw, IR_OP_ABS, term_by_a), limit);
  }
  step = tfl_with(x, IR_OP_ADD, r.state[1], 1);
  ir_value next[] = {gamma_go_on(x, far, step), step, n, term, sum, term_by_a, sum_by_a};
  tfl_repeat_end(x, &r, next, all);
  *out = (gamma_sum){all[4], all[6]};
  return x->status;
}

/* One step of numerators or denominators: p z - before yc; and of their derivatives by a. */
static gamma_sum gamma_step(tfl_op *x, gamma_sum p, gamma_sum before, ir_value z, ir_value c, ir_value yc) {
  gamma_sum r;
  r.v = GAMMA_SUB(GAMMA_MUL(p.v, z), GAMMA_MUL(before.v, yc));
  r.by_a =
      GAMMA_SUB(GAMMA_SUB(GAMMA_MUL(p.by_a, z), p.v), GAMMA_SUB(GAMMA_MUL(before.by_a, yc), GAMMA_MUL(before.v, c)));
  return r;
}

/* All are made smaller where the numerator got large. */
static void gamma_rescale(tfl_op *x, ir_value large, uint32_t n, ir_value *v) {
  for (uint32_t i = 0; i < n; i++)
    v[i] = opt_select(x->rw, large, tfl_with(x, IR_OP_MULTIPLY, v[i], gamma_epsilon(v[i])), v[i]);
}

/* Where the fraction starts: go on, step, where it goes on, value, its derivative, numerator and denominator before and
 * now, each with its derivative. */
enum { GAMMA_STATE = 13 };

static void gamma_start(tfl_op *x, ir_value a, ir_value at, ir_value y, ir_value inits[GAMMA_STATE]) {
  ir_value one = tfl_like(x, a, 1), zero = tfl_like(x, a, 0), p = GAMMA_ADD(at, one);
  ir_value q = GAMMA_MUL(GAMMA_ADD(p, y), at), v = GAMMA_DIV(p, q);
  const ir_value all[] = {tfl_scalar(x, XLAC_PRED, 1),
                          tfl_scalar(x, XLAC_S32, 0),
                          tfl_compare(x, "EQ", one, one),
                          v,
                          GAMMA_DIV(GAMMA_MUL(v, at), q),
                          one,
                          zero,
                          at,
                          zero,
                          p,
                          zero,
                          q,
                          opt_unary(x->rw, IR_OP_NEGATE, at)};
  memcpy(inits, all, sizeof all);
}

/* The continued fraction. A value that is near enough stays: more steps would only add rounding. */
static int gamma_fraction(tfl_op *x, ir_value a, ir_value at, gamma_sum *out) {
  ir_value y = GAMMA_SUB(tfl_like(x, a, 1), a), inits[GAMMA_STATE], all[GAMMA_STATE];
  tfl_repeat r;
  gamma_start(x, a, at, y, inits);
  TRY(tfl_repeat_begin(x, &r, GAMMA_STATE, inits));
  const ir_value *s = r.state;
  ir_value step = tfl_with(x, IR_OP_ADD, s[1], 1), zero = tfl_like(x, a, 0);
  ir_value c = tfl_spread(x, tfl_cast(x, step, (base_dtype)opt_type(a)->dtype), a), yc = GAMMA_MUL(GAMMA_ADD(y, c), c);
  ir_value z = GAMMA_ADD(GAMMA_ADD(tfl_with(x, IR_OP_ADD, at, 1), y), tfl_with(x, IR_OP_MULTIPLY, c, 2));
  gamma_sum num = gamma_step(x, (gamma_sum){s[9], s[10]}, (gamma_sum){s[5], s[6]}, z, c, yc);
  gamma_sum den = gamma_step(x, (gamma_sum){s[11], s[12]}, (gamma_sum){s[7], s[8]}, z, c, yc);
  ir_value whole = tfl_compare(x, "NE", den.v, zero);
  ir_value v = opt_select(x->rw, whole, GAMMA_DIV(num.v, den.v), s[3]);
  ir_value v_by_a = opt_select(x->rw, whole, GAMMA_DIV(GAMMA_SUB(num.by_a, GAMMA_MUL(v, den.by_a)), den.v), s[4]);
  ir_value far = gamma_abs_above(x, GAMMA_DIV(GAMMA_SUB(s[3], v), v), gamma_epsilon(a));
  if (x->row->arg >= GAMMA_DERIVATIVE) far = gamma_abs_above(x, GAMMA_SUB(v_by_a, s[4]), gamma_epsilon(a));
  far = gamma_op(x, IR_OP_AND, s[2], gamma_op(x, IR_OP_OR, far, opt_unary(x->rw, IR_OP_NOT, whole)));
  v = opt_select(x->rw, s[2], v, s[3]);
  v_by_a = opt_select(x->rw, s[2], v_by_a, s[4]);
  ir_value next[GAMMA_STATE] = {
      gamma_go_on(x, far, step), step, far, v, v_by_a, s[9], s[10], s[11], s[12], num.v, num.by_a, den.v, den.by_a};
  gamma_rescale(x, gamma_abs_above(x, num.v, 1 / gamma_epsilon(a)), 8, next + 5);
  tfl_repeat_end(x, &r, next, all);
  *out = (gamma_sum){all[3], all[4]};
  return x->status;
}

typedef struct gamma_plan {
  ir_value a, at, log_weight, weight; /* weight: x^a e^-x / gamma(a) */
  ir_value large, series_on, fraction_on;
} gamma_plan;

static ir_value gamma_either(tfl_op *x, ir_value a, ir_value b) {
  return gamma_op(x, IR_OP_OR, a, b);
}

/* Which elements either way is for; the others get harmless arguments there. */
static void gamma_sort(tfl_op *x, gamma_plan *p) {
  ir_value one = tfl_like(x, p->a, 1), log_x = opt_unary(x->rw, IR_OP_LOG, p->at);
  p->log_weight = GAMMA_SUB(GAMMA_SUB(GAMMA_MUL(p->a, log_x), p->at), opt_unary(x->rw, IR_OP_LGAMMA, p->a));
  p->weight = opt_unary(x->rw, IR_OP_EXP, p->log_weight);
  p->large = gamma_op(x, IR_OP_AND, tfl_compare(x, "GT", p->at, one), tfl_compare(x, "GT", p->at, p->a));
  double least = opt_type(p->a)->dtype == XLAC_F64 ? -log(DBL_MAX) : -log((double)FLT_MAX);
  ir_value on = tfl_compare(x, "GE", p->log_weight, tfl_like(x, p->a, least));
  p->fraction_on = gamma_op(x, IR_OP_AND, on, p->large);
  p->series_on = gamma_op(x, IR_OP_AND, on, opt_unary(x->rw, IR_OP_NOT, p->large));
}

/* What the series (large: the fraction) gives for the row. */
static int gamma_one_way(tfl_op *x, const gamma_plan *p, bool large, ir_value *out) {
  ir_value on = large ? p->fraction_on : p->series_on, one = tfl_like(x, p->a, 1);
  if (!on.op) return x->status;
  ir_value a = opt_select(x->rw, on, p->a, one), at = opt_select(x->rw, on, p->at, one), two = tfl_like(x, one, 2);
  if (large) at = opt_select(x->rw, on, p->at, two);
  gamma_sum sum = {{NULL, 0}, {NULL, 0}};
  if (large)
    TRY(gamma_fraction(x, a, at, &sum));
  else
    TRY(gamma_series(x, a, at, &sum));
  ir_value first = large ? p->a : GAMMA_ADD(p->a, one);
  ir_value slope = GAMMA_SUB(opt_unary(x->rw, IR_OP_LOG, p->at), opt_unary(x->rw, IR_OP_DIGAMMA, first));
  ir_value by_a = GAMMA_ADD(GAMMA_MUL(sum.v, slope), sum.by_a);
  ir_value v = x->row->arg == GAMMA_SAMPLE       ? GAMMA_MUL(by_a, p->at)
               : x->row->arg == GAMMA_DERIVATIVE ? GAMMA_MUL(by_a, p->weight)
                                                 : GAMMA_MUL(sum.v, p->weight);
  if (!large) v = GAMMA_DIV(v, p->a);
  bool turned = x->row->arg == GAMMA_SAMPLE ? !large : x->row->arg == GAMMA_DERIVATIVE && large;
  if (turned) v = opt_unary(x->rw, IR_OP_NEGATE, v);
  if (x->row->arg == (large ? GAMMA_LOWER : GAMMA_UPPER)) v = GAMMA_SUB(one, v);
  *out = v;
  return x->status;
}

/* Outside of what the function is for. */
static ir_value gamma_ends(tfl_op *x, const gamma_plan *p, ir_value v) {
  bool upper = x->row->arg == GAMMA_UPPER, lower = x->row->arg == GAMMA_LOWER;
  ir_value zero = tfl_like(x, p->a, 0), none = tfl_compare(x, "EQ", p->at, zero), nan = tfl_like(x, p->a, NAN);
  ir_value wrong = gamma_either(x, tfl_compare(x, "LT", p->at, zero), tfl_compare(x, "LE", p->a, zero));
  wrong = gamma_either(x, wrong, gamma_either(x, tfl_compare(x, "NE", p->a, p->a), tfl_compare(x, "NE", p->at, p->at)));
  ir_value endless = tfl_compare(x, "EQ", p->at, tfl_like(x, p->a, INFINITY));
  if (upper || lower) v = opt_select(x->rw, endless, tfl_like(x, p->a, lower), v);
  if (upper) v = opt_select(x->rw, none, tfl_like(x, p->a, 1), v);
  v = opt_select(x->rw, wrong, nan, v);
  return upper ? v : opt_select(x->rw, none, zero, v);
}

/* arg: which of the functions above. */
int tfl_row_gamma(tfl_op *x) {
  gamma_plan p;
  base_dtype own = (base_dtype)tfl_in_type(x, 0)->dtype, wide = own == XLAC_F64 ? own : XLAC_F32;
  p.a = tfl_cast(x, tfl_in(x, 0), wide);
  p.at = tfl_cast(x, tfl_in(x, 1), wide);
  tfl_broadcast_pair(x, &p.a, &p.at);
  if (!p.a.op || !p.at.op) return x->status;
  if (opt_type(p.a) != opt_type(p.at)) return tfl_fail(x, "its arguments have not the same type");
  ir_value series = {NULL, 0}, fraction = {NULL, 0};
  gamma_sort(x, &p);
  TRY(gamma_one_way(x, &p, false, &series));
  TRY(gamma_one_way(x, &p, true, &fraction));
  ir_value v = opt_select(x->rw, p.large, fraction, series);
  tfl_out(x, 0, tfl_cast(x, gamma_ends(x, &p, v), own));
  return x->status;
}
