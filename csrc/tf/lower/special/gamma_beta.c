/* Special functions by series and continued fractions: incomplete gamma and beta functions, their derivatives, and
 * the Bessel function I0. All elements are computed in one loop, which goes on while one of them has not
 * converged; those that are not meant for a series, or a fraction, get harmless arguments there and are replaced
 * afterwards. */
#include <float.h>
#include <math.h>

#include "../repeat.h"

/* --- gamma --- */

/* Incomplete gamma functions, their derivatives by the first argument, and that of a gamma distributed sample:
 * Igamma, Igammac, IgammaGradA, RandomGammaGrad as XLA computes them. A power series where x is small, a continued
 * fraction where it is large. Source: DLMF 8.7, 8.9, 8.11. */
enum { GAMMA_LOWER, GAMMA_UPPER, GAMMA_DERIVATIVE, GAMMA_SAMPLE, GAMMA_MOST_STEPS = 2000 };

/* A value of the series or of the fraction. */
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

/* Half the distance of 1 to the next number: the largest error of one rounding. */
static double gamma_epsilon(ir_value v) {
  return opt_type(v)->dtype == XLAC_F64 ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2;
}

/* v| > limit */
static ir_value gamma_abs_above(tfl_op *x, ir_value v, double limit) {
  ir_value size = opt_unary(x->rw, IR_OP_ABS, v);
  return tfl_compare(x, IR_DIRECTION_GT, size, tfl_like(x, v, limit));
}

/* Goes on while `far` holds somewhere, and not for ever. */
static ir_value gamma_go_on(tfl_op *x, ir_value far, ir_value step) {
  return gamma_op(x, IR_OP_AND, tfl_any(x, far),
                  tfl_compare(x, IR_DIRECTION_LT, step, tfl_like(x, step, GAMMA_MOST_STEPS)));
}

/* sum of x^n / ((a + 1)...(a + n)). The state: go on, step, n, term, sum, and the derivatives of term and sum by
 * a. */
static int gamma_series(tfl_op *x, ir_value a, ir_value at, gamma_sum *out) {
  ir_value one = tfl_like(x, a, 1), zero = tfl_like(x, a, 0), step = tfl_scalar(x, XLAC_S32, 0), all[7];
  ir_value inits[] = {tfl_scalar(x, XLAC_PRED, 1), step, a, one, one, zero, zero};
  tfl_repeat r;
  TRY(tfl_repeat_begin(x, &r, 7, inits));
  ir_value n = tfl_with(x, IR_OP_ADD, r.state[2], 1), ratio = GAMMA_DIV(at, n);
  ir_value term = GAMMA_MUL(r.state[3], ratio), sum = GAMMA_ADD(r.state[4], term);
  ir_value term_by_a = GAMMA_SUB(GAMMA_MUL(r.state[5], ratio), GAMMA_DIV(term, n));
  ir_value sum_by_a = GAMMA_ADD(r.state[6], term_by_a);
  ir_value far = tfl_compare(x, IR_DIRECTION_GT, term, tfl_with(x, IR_OP_MULTIPLY, sum, gamma_epsilon(a)));
  if (x->row->arg >= GAMMA_DERIVATIVE) {
    ir_value limit = tfl_with(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_ABS, sum_by_a), gamma_epsilon(a));
    far = tfl_compare(x, IR_DIRECTION_GT, opt_unary(x->rw, IR_OP_ABS, term_by_a), limit);
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

/* The first two convergents; their quotient is the first value. */
static void gamma_start(tfl_op *x, ir_value a, ir_value at, ir_value y, ir_value inits[GAMMA_STATE]) {
  ir_value one = tfl_like(x, a, 1), zero = tfl_like(x, a, 0), p = GAMMA_ADD(at, one);
  ir_value q = GAMMA_MUL(GAMMA_ADD(p, y), at), v = GAMMA_DIV(p, q);
  const ir_value all[] = {tfl_scalar(x, XLAC_PRED, 1),
                          tfl_scalar(x, XLAC_S32, 0),
                          tfl_compare(x, IR_DIRECTION_EQ, one, one),
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
  ir_value whole = tfl_compare(x, IR_DIRECTION_NE, den.v, zero);
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

/* The arguments in one shape, and which way each element goes. */
typedef struct gamma_plan {
  ir_value a, at, log_weight, weight; /* weight: x^a e^-x / gamma(a) */
  ir_value large, series_on, fraction_on;
} gamma_plan;

static ir_value gamma_either(tfl_op *x, ir_value a, ir_value b) {
  return gamma_op(x, IR_OP_OR, a, b);
}

/* Which elements either way is for; the others get harmless arguments there. Where the weight underflows neither
 * way is taken: the value is 0 or 1 to all digits. */
static void gamma_sort(tfl_op *x, gamma_plan *p) {
  ir_value one = tfl_like(x, p->a, 1), log_x = opt_unary(x->rw, IR_OP_LOG, p->at);
  p->log_weight = GAMMA_SUB(GAMMA_SUB(GAMMA_MUL(p->a, log_x), p->at), opt_unary(x->rw, IR_OP_LGAMMA, p->a));
  p->weight = opt_unary(x->rw, IR_OP_EXP, p->log_weight);
  p->large =
      gamma_op(x, IR_OP_AND, tfl_compare(x, IR_DIRECTION_GT, p->at, one), tfl_compare(x, IR_DIRECTION_GT, p->at, p->a));
  double least = opt_type(p->a)->dtype == XLAC_F64 ? -log(DBL_MAX) : -log((double)FLT_MAX);
  ir_value on = tfl_compare(x, IR_DIRECTION_GE, p->log_weight, tfl_like(x, p->a, least));
  p->fraction_on = gamma_op(x, IR_OP_AND, on, p->large);
  p->series_on = gamma_op(x, IR_OP_AND, on, opt_unary(x->rw, IR_OP_NOT, p->large));
}

/* What the series (large: the fraction) gives for the row. */
static int gamma_one_way(tfl_op *x, const gamma_plan *p, bool large, ir_value *out) {
  assert(x->row->arg >= GAMMA_LOWER && x->row->arg <= GAMMA_SAMPLE);
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

/* Outside of what the function is for. NaN for arguments that the function is not for; 0, 1 and infinity as
 * limits. */
static ir_value gamma_ends(tfl_op *x, const gamma_plan *p, ir_value v) {
  bool upper = x->row->arg == GAMMA_UPPER, lower = x->row->arg == GAMMA_LOWER;
  ir_value zero = tfl_like(x, p->a, 0), none = tfl_compare(x, IR_DIRECTION_EQ, p->at, zero),
           nan = tfl_like(x, p->a, NAN);
  ir_value wrong =
      gamma_either(x, tfl_compare(x, IR_DIRECTION_LT, p->at, zero), tfl_compare(x, IR_DIRECTION_LE, p->a, zero));
  wrong = gamma_either(
      x, wrong,
      gamma_either(x, tfl_compare(x, IR_DIRECTION_NE, p->a, p->a), tfl_compare(x, IR_DIRECTION_NE, p->at, p->at)));
  ir_value endless = tfl_compare(x, IR_DIRECTION_EQ, p->at, tfl_like(x, p->a, INFINITY));
  if (upper || lower) v = opt_select(x->rw, endless, tfl_like(x, p->a, lower), v);
  if (upper) v = opt_select(x->rw, none, tfl_like(x, p->a, 1), v);
  v = opt_select(x->rw, wrong, nan, v);
  return upper ? v : opt_select(x->rw, none, zero, v);
}

/* arg: which of the functions above. f16 and bf16 are computed in f32. */
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

/* --- beta, Bessel --- */

/* The incomplete beta function (Betainc), by a continued fraction with Lentz's method as Thompson and Barnett
 * modified it. Source: DLMF 8.17.22 and .23. `tiny` stands for 0 in denominators and ends the loop. */
typedef struct beta_plan {
  ir_value a, b, at;
  double tiny;
  int steps;
} beta_plan;

static ir_value beta_op(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  return opt_binary(x->rw, opcode, a, b);
}

/* The numerator of step n, from 2 on; m is n / 2 rounded down for odd steps, (n - 1) / 2 for even ones. */
static ir_value beta_numerator(tfl_op *x, const beta_plan *p, ir_value n) {
  ir_value before = tfl_with(x, IR_OP_SUBTRACT, n, 1), half = tfl_with(x, IR_OP_DIVIDE, before, 2);
  ir_value even = tfl_compare(x, IR_DIRECTION_EQ, tfl_with(x, IR_OP_REMAINDER, n, 2), tfl_like(x, n, 0));
  base_dtype dtype = (base_dtype)opt_type(p->a)->dtype;
  if (!half.op || !even.op) return half;
  ir_value m = tfl_spread(x, tfl_cast(x, half, dtype), p->a), on = tfl_spread(x, even, p->a);
  ir_value am = beta_op(x, IR_OP_ADD, p->a, m), a2m = beta_op(x, IR_OP_ADD, am, m);
  ir_value up = beta_op(x, IR_OP_MULTIPLY, am, beta_op(x, IR_OP_ADD, am, p->b));
  up = beta_op(x, IR_OP_DIVIDE, up, beta_op(x, IR_OP_MULTIPLY, a2m, tfl_with(x, IR_OP_ADD, a2m, 1)));
  ir_value down = beta_op(x, IR_OP_MULTIPLY, m, beta_op(x, IR_OP_SUBTRACT, p->b, m));
  down = beta_op(x, IR_OP_DIVIDE, down, beta_op(x, IR_OP_MULTIPLY, tfl_with(x, IR_OP_SUBTRACT, a2m, 1), a2m));
  ir_value v = opt_select(x->rw, on, opt_unary(x->rw, IR_OP_NEGATE, up), down);
  return beta_op(x, IR_OP_MULTIPLY, v, p->at);
}

/* v, or `tiny` where it is nearer to 0. */
static ir_value beta_not_zero(tfl_op *x, const beta_plan *p, ir_value v) {
  ir_value tiny = tfl_like(x, v, p->tiny);
  return opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LT, opt_unary(x->rw, IR_OP_ABS, v), tiny), tiny, v);
}

/* 1 / (1 + n2 / (1 + n3 / (1 + ...))): the first step by hand. */
static int beta_fraction(tfl_op *x, const beta_plan *p, ir_value *out) {
  ir_value one = tfl_like(x, p->a, 1), n = tfl_scalar(x, XLAC_S32, 2), all[5];
  ir_value big = tfl_like(x, p->a, 1 / p->tiny);
  ir_value inits[] = {tfl_scalar(x, XLAC_PRED, 1), n, big, one, one};
  tfl_repeat r;
  TRY(tfl_repeat_begin(x, &r, 5, inits));
  ir_value top = beta_numerator(x, p, r.state[1]);
  ir_value c = beta_not_zero(x, p, beta_op(x, IR_OP_ADD, one, beta_op(x, IR_OP_DIVIDE, top, r.state[2])));
  ir_value d = beta_not_zero(x, p, beta_op(x, IR_OP_ADD, one, beta_op(x, IR_OP_MULTIPLY, top, r.state[3])));
  d = beta_op(x, IR_OP_DIVIDE, one, d);
  ir_value change = beta_op(x, IR_OP_MULTIPLY, c, d), v = beta_op(x, IR_OP_MULTIPLY, r.state[4], change);
  ir_value off = opt_unary(x->rw, IR_OP_ABS, tfl_with(x, IR_OP_SUBTRACT, change, 1));
  ir_value far = tfl_any(x, tfl_compare(x, IR_DIRECTION_GE, off, tfl_like(x, off, p->tiny)));
  n = tfl_with(x, IR_OP_ADD, r.state[1], 1);
  ir_value go_on = beta_op(x, IR_OP_AND, far, tfl_compare(x, IR_DIRECTION_LT, n, tfl_like(x, n, p->steps)));
  ir_value next[] = {go_on, n, c, d, v};
  tfl_repeat_end(x, &r, next, all);
  *out = all[4];
  return x->status;
}

/* logarithm of x^a (1 - x)^b / B(a, b). In logarithms, since gamma overflows soon. */
static ir_value beta_weight(tfl_op *x, const beta_plan *p) {
  ir_value sum = opt_unary(x->rw, IR_OP_LGAMMA, beta_op(x, IR_OP_ADD, p->a, p->b));
  sum = beta_op(x, IR_OP_SUBTRACT, sum, opt_unary(x->rw, IR_OP_LGAMMA, p->a));
  sum = beta_op(x, IR_OP_SUBTRACT, sum, opt_unary(x->rw, IR_OP_LGAMMA, p->b));
  ir_value near = beta_op(x, IR_OP_MULTIPLY, opt_unary(x->rw, IR_OP_LOG, p->at), p->a);
  ir_value rest = opt_unary(x->rw, IR_OP_LOG1P, opt_unary(x->rw, IR_OP_NEGATE, p->at));
  return beta_op(x, IR_OP_ADD, sum, beta_op(x, IR_OP_ADD, near, beta_op(x, IR_OP_MULTIPLY, rest, p->b)));
}

/* I(a, b, x) is 1 - I(b, a, 1 - x): the fraction is for the side where it gets near soon. */
int tfl_row_incomplete_beta(tfl_op *x) {
  assert(x->n_in == 3);
  base_dtype own = (base_dtype)tfl_in_type(x, 0)->dtype, wide = own == XLAC_F64 ? own : XLAC_F32;
  ir_value a = tfl_cast(x, tfl_in(x, 0), wide), b = tfl_cast(x, tfl_in(x, 1), wide),
           at = tfl_cast(x, tfl_in(x, 2), wide);
  tfl_broadcast_pair(x, &a, &b);
  tfl_broadcast_pair(x, &a, &at);
  tfl_broadcast_pair(x, &a, &b);
  if (!a.op || !b.op || !at.op) return x->status;
  ir_value zero = tfl_like(x, a, 0), one = tfl_like(x, a, 1), v = {NULL, 0};
  ir_value wrong =
      beta_op(x, IR_OP_OR, tfl_compare(x, IR_DIRECTION_LE, a, zero), tfl_compare(x, IR_DIRECTION_LE, b, zero));
  ir_value outside =
      beta_op(x, IR_OP_OR, tfl_compare(x, IR_DIRECTION_LT, at, zero), tfl_compare(x, IR_DIRECTION_GT, at, one));
  ir_value middle =
      beta_op(x, IR_OP_DIVIDE, tfl_with(x, IR_OP_ADD, a, 1), tfl_with(x, IR_OP_ADD, beta_op(x, IR_OP_ADD, a, b), 2));
  ir_value soon = tfl_compare(x, IR_DIRECTION_LT, at, middle);
  if (!soon.op) return x->status;
  beta_plan p = {.tiny = wide == XLAC_F64 ? DBL_EPSILON / 2 : (double)FLT_EPSILON / 2,
                 .steps = wide == XLAC_F64 ? 600 : 200};
  p.a = opt_select(x->rw, soon, a, b);
  p.b = opt_select(x->rw, soon, b, a);
  p.at = opt_select(x->rw, soon, at, beta_op(x, IR_OP_SUBTRACT, one, at));
  TRY(beta_fraction(x, &p, &v));
  v = beta_op(x, IR_OP_DIVIDE, beta_op(x, IR_OP_MULTIPLY, v, opt_unary(x->rw, IR_OP_EXP, beta_weight(x, &p))), p.a);
  v = opt_select(x->rw, soon, v, beta_op(x, IR_OP_SUBTRACT, one, v));
  v = opt_select(x->rw, beta_op(x, IR_OP_OR, wrong, outside), tfl_like(x, v, NAN), v);
  tfl_out(x, 0, tfl_cast(x, v, own));
  return x->status;
}

/* --- exp(-|x|) I0(x) --- */

/* Clenshaw's sum of Chebyshev's polynomials; coefficients from the highest on. */
static ir_value bessel_series(tfl_op *x, ir_value at, uint32_t n, const double *c) {
  assert(n > 0);
  ir_value b0 = tfl_like(x, at, 0), b1 = b0, b2 = b0;
  for (uint32_t i = 0; i < n; i++) {
    b2 = b1;
    b1 = b0;
    b0 = tfl_with(x, IR_OP_ADD, beta_op(x, IR_OP_SUBTRACT, beta_op(x, IR_OP_MULTIPLY, at, b1), b2), c[i]);
  }
  return tfl_with(x, IR_OP_MULTIPLY, beta_op(x, IR_OP_SUBTRACT, b0, b2), 0.5);
}

/* Cephes' coefficients: one series up to 8, another of 32/x - 2 beyond. */
int tfl_row_bessel_i0e(tfl_op *x) {
  static const double near[] = {
      -4.41534164647933937950E-18, 3.33079451882223809783E-17, -2.43127984654795469359E-16, 1.71539128555513303061E-15,
      -1.16853328779934516808E-14, 7.67618549860493561688E-14, -4.85644678311192946090E-13, 2.95505266312963983461E-12,
      -1.72682629144155570723E-11, 9.67580903537323691224E-11, -5.18979560163526290666E-10, 2.65982372468238665035E-9,
      -1.30002500998624804212E-8,  6.04699502254191894932E-8,  -2.67079385394061173391E-7,  1.11738753912010371815E-6,
      -4.41673835845875056359E-6,  1.64484480707288970893E-5,  -5.75419501008210370398E-5,  1.88502885095841655729E-4,
      -5.76375574538582365885E-4,  1.63947561694133579842E-3,  -4.32430999505057594430E-3,  1.05464603945949983183E-2,
      -2.37374148058994688156E-2,  4.93052842396707084878E-2,  -9.49010970480476444210E-2,  1.71620901522208775349E-1,
      -3.04682672343198398683E-1,  6.76795274409476084995E-1};
  static const double far[] = {-7.23318048787475395456E-18, -4.83050448594418207126E-18, 4.46562142029675999901E-17,
                               3.46122286769746109310E-17,  -2.82762398051658348494E-16, -3.42548561967721913462E-16,
                               1.77256013305652638360E-15,  3.81168066935262242075E-15,  -9.55484669882830764870E-15,
                               -4.15056934728722208663E-14, 1.54008621752140982691E-14,  3.85277838274214270114E-13,
                               7.18012445138366623367E-13,  -1.79417853150680611778E-12, -1.32158118404477131188E-11,
                               -3.14991652796324136454E-11, 1.18891471078464383424E-11,  4.94060238822496958910E-10,
                               3.39623202570838634515E-9,   2.26666899049817806459E-8,   2.04891858946906374183E-7,
                               2.89137052083475648297E-6,   6.88975834691682398426E-5,   3.36911647825569408990E-3,
                               8.04490411014108831608E-1};
  base_dtype own = (base_dtype)tfl_in_type(x, 0)->dtype, wide = own == XLAC_F64 ? own : XLAC_F32;
  ir_value v = opt_unary(x->rw, IR_OP_ABS, tfl_cast(x, tfl_in(x, 0), wide));
  if (!v.op) return x->status;
  ir_value low = tfl_with(x, IR_OP_SUBTRACT, tfl_with(x, IR_OP_MULTIPLY, v, 0.5), 2);
  ir_value high = tfl_with(x, IR_OP_SUBTRACT, beta_op(x, IR_OP_DIVIDE, tfl_like(x, v, 32), v), 2);
  low = bessel_series(x, low, sizeof near / sizeof *near, near);
  high = bessel_series(x, high, sizeof far / sizeof *far, far);
  high = beta_op(x, IR_OP_DIVIDE, high, opt_unary(x->rw, IR_OP_SQRT, v));
  v = opt_select(x->rw, tfl_compare(x, IR_DIRECTION_LE, v, tfl_like(x, v, 8)), low, high);
  tfl_out(x, 0, tfl_cast(x, v, own));
  return x->status;
}
