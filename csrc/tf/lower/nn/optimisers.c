/* ResourceApply*: one step of an optimizer on a variable and its slots. Scalars (rates, decays) are tensors. The
 * order of operations is TensorFlow's CPU kernels' (training_ops.cc), for the same rounding; each row's comment
 * lists its inputs. */
#include "../windows.h"

/* The variables come first among the inputs; the gradient has their shape. One step: the values are changed in v
 * and assigned at the end, all or none. */
typedef struct optim {
  tfl_op *x;
  tfl_resource *slot[4];
  ir_value v[4]; /* their values */
  ir_value gradient;
} optim;

/* The first `slots` inputs are variables of the gradient's shape; `gradient` is its place among the inputs. */
static int optim_begin(tfl_op *x, uint32_t slots, uint32_t gradient, optim *o) {
  assert(slots >= 1 && slots <= 4);
  *o = (optim){.x = x};
  if (x->n_in <= gradient) return tfl_fail(x, "%u inputs: expected more", x->n_in);
  o->gradient = tfl_in(x, gradient);
  for (uint32_t i = 0; i < slots && !x->status; i++) {
    o->slot[i] = tfl_in_resource(x, i);
    if (!o->slot[i]) return x->status;
    o->v[i] = tfl_use(x, &o->slot[i]->value);
    if (o->v[i].op && o->gradient.op && opt_type(o->v[i]) != opt_type(o->gradient))
      return tfl_fail(x, "variable %u has not the gradient's shape and type", i);
  }
  return x->status;
}

/* A rate of another shape would have broadcast the variable: that is refused here. */
static int optim_end(optim *o, uint32_t slots) {
  for (uint32_t i = 0; i < slots; i++) {
    if (o->v[i].op && o->gradient.op && opt_type(o->v[i]) != opt_type(o->gradient))
      return tfl_fail(o->x, "a rate is not a scalar of the variable's type");
    tfl_assign(o->x, o->slot[i], o->v[i]);
  }
  return o->x->status;
}

/* Short names for broadcasting ops: rates are scalars. */
static ir_value optim_add(tfl_op *x, ir_value a, ir_value b) {
  return tfl_binary(x, IR_OP_ADD, a, b);
}
static ir_value optim_sub(tfl_op *x, ir_value a, ir_value b) {
  return tfl_binary(x, IR_OP_SUBTRACT, a, b);
}
static ir_value optim_mul(tfl_op *x, ir_value a, ir_value b) {
  return tfl_binary(x, IR_OP_MULTIPLY, a, b);
}
static ir_value optim_div(tfl_op *x, ir_value a, ir_value b) {
  return tfl_binary(x, IR_OP_DIVIDE, a, b);
}
static ir_value optim_max(tfl_op *x, ir_value a, ir_value b) {
  return tfl_binary(x, IR_OP_MAXIMUM, a, b);
}
static ir_value optim_square(tfl_op *x, ir_value a) {
  return optim_mul(x, a, a);
}
static ir_value optim_sqrt(tfl_op *x, ir_value a) {
  return opt_unary(x->rw, IR_OP_SQRT, a);
}
static ir_value optim_rsqrt(tfl_op *x, ir_value a) {
  return opt_unary(x->rw, IR_OP_RSQRT, a);
}
/* 1 - a */
static ir_value optim_rest(tfl_op *x, ir_value a) {
  return a.op ? optim_sub(x, tfl_like(x, a, 1), a) : a;
}
/* a moves towards b by 1 - decay of the way. */
static ir_value optim_decay(tfl_op *x, ir_value a, ir_value b, ir_value decay) {
  return optim_add(x, a, optim_mul(x, optim_sub(x, b, a), optim_rest(x, decay)));
}

/* var, alpha, delta */
int tfl_row_gradient_descent(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 1, 2, &o));
  o.v[0] = optim_sub(x, o.v[0], optim_mul(x, o.gradient, tfl_in(x, 1)));
  return optim_end(&o, 1);
}

/* sign(v) * max(|v| - rate * l1, 0) / (1 + rate * l2) */
static ir_value optim_proximal(tfl_op *x, ir_value v, ir_value rate, ir_value l1, ir_value l2) {
  ir_value size = optim_sub(x, opt_unary(x->rw, IR_OP_ABS, v), optim_mul(x, rate, l1));
  if (!size.op) return size;
  ir_value shrunk = optim_mul(x, opt_unary(x->rw, IR_OP_SIGN, v), tfl_with(x, IR_OP_MAXIMUM, size, 0));
  return optim_div(x, shrunk, tfl_with(x, IR_OP_ADD, optim_mul(x, l2, rate), 1));
}

/* var, alpha, l1, l2, delta */
int tfl_row_proximal_gradient_descent(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 1, 4, &o));
  ir_value rate = tfl_in(x, 1), v = optim_sub(x, o.v[0], optim_mul(x, o.gradient, rate));
  o.v[0] = optim_proximal(x, v, rate, tfl_in(x, 2), tfl_in(x, 3));
  return optim_end(&o, 1);
}

/* var, accum, lr, l1, l2, grad */
int tfl_row_proximal_adagrad(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 2, 5, &o));
  o.v[1] = optim_add(x, o.v[1], optim_square(x, o.gradient));
  ir_value rate = optim_mul(x, optim_rsqrt(x, o.v[1]), tfl_in(x, 2));
  ir_value v = optim_sub(x, o.v[0], optim_mul(x, o.gradient, rate));
  o.v[0] = optim_proximal(x, v, rate, tfl_in(x, 3), tfl_in(x, 4));
  return optim_end(&o, 2);
}

/* var, accum, lr, grad, momentum */
int tfl_row_momentum(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 2, 3, &o));
  ir_value rate = tfl_in(x, 2), momentum = tfl_in(x, 4);
  o.v[1] = optim_add(x, optim_mul(x, o.v[1], momentum), o.gradient);
  ir_value step = optim_mul(x, o.v[1], rate);
  if (tfl_attr_bool(x, "use_nesterov"))
    step = optim_add(x, optim_mul(x, o.gradient, rate), optim_mul(x, optim_mul(x, o.v[1], momentum), rate));
  o.v[0] = optim_sub(x, o.v[0], step);
  return optim_end(&o, 2);
}

/* var, accum, lr, grad, momentum: the rate is part of the accumulator. */
int tfl_row_keras_momentum(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 2, 3, &o));
  ir_value momentum = tfl_in(x, 4), step = optim_mul(x, o.gradient, tfl_in(x, 2));
  o.v[1] = optim_sub(x, optim_mul(x, o.v[1], momentum), step);
  ir_value move = o.v[1];
  if (tfl_attr_bool(x, "use_nesterov")) move = optim_sub(x, optim_mul(x, o.v[1], momentum), step);
  o.v[0] = optim_add(x, o.v[0], move);
  return optim_end(&o, 2);
}

/* var, accum, lr, (V2: epsilon,) grad; arg: 1 for V2. */
int tfl_row_adagrad(tfl_op *x) {
  optim o;
  bool second = x->row->arg == 1;
  TRY(optim_begin(x, 2, second ? 4 : 3, &o));
  if (tfl_attr_bool(x, "update_slots")) o.v[1] = optim_add(x, o.v[1], optim_square(x, o.gradient));
  ir_value step = optim_mul(x, o.gradient, tfl_in(x, 2));
  step = second ? optim_div(x, step, optim_add(x, optim_sqrt(x, o.v[1]), tfl_in(x, 3)))
                : optim_mul(x, step, optim_rsqrt(x, o.v[1]));
  o.v[0] = optim_sub(x, o.v[0], step);
  return optim_end(&o, 2);
}

/* var, sum of gradients, sum of their squares, grad, lr, l1, l2, step */
int tfl_row_adagrad_da(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 3, 3, &o));
  ir_value rate = tfl_in(x, 4), step = tfl_in(x, 7);
  if (!step.op || !rate.op) return x->status;
  step = tfl_cast(x, step, (base_dtype)opt_type(rate)->dtype);
  o.v[1] = optim_add(x, o.v[1], o.gradient);
  o.v[2] = optim_add(x, o.v[2], optim_square(x, o.gradient));
  ir_value size = optim_sub(x, opt_unary(x->rw, IR_OP_ABS, o.v[1]), optim_mul(x, tfl_in(x, 5), step));
  if (!size.op) return x->status;
  ir_value shrunk = optim_mul(x, opt_unary(x->rw, IR_OP_SIGN, o.v[1]), tfl_with(x, IR_OP_MAXIMUM, size, 0));
  ir_value under = optim_add(x, optim_mul(x, optim_mul(x, tfl_in(x, 6), step), rate), optim_sqrt(x, o.v[2]));
  o.v[0] = opt_unary(x->rw, IR_OP_NEGATE, optim_div(x, optim_mul(x, shrunk, rate), under));
  return optim_end(&o, 3);
}

/* var, accum, accum_update, lr, rho, epsilon, grad */
int tfl_row_adadelta(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 3, 6, &o));
  ir_value rho = tfl_in(x, 4), epsilon = tfl_in(x, 5);
  o.v[1] = optim_add(x, optim_mul(x, o.v[1], rho), optim_mul(x, optim_square(x, o.gradient), optim_rest(x, rho)));
  ir_value update =
      optim_mul(x, optim_sqrt(x, optim_add(x, o.v[2], epsilon)), optim_rsqrt(x, optim_add(x, o.v[1], epsilon)));
  update = optim_mul(x, update, o.gradient);
  o.v[0] = optim_sub(x, o.v[0], optim_mul(x, update, tfl_in(x, 3)));
  o.v[2] = optim_add(x, optim_mul(x, o.v[2], rho), optim_mul(x, optim_square(x, update), optim_rest(x, rho)));
  return optim_end(&o, 3);
}

/* var, (centred: mg,) ms, mom, lr, rho, momentum, epsilon, grad; arg: 1 for the centred one. */
int tfl_row_rms_prop(tfl_op *x) {
  optim o;
  uint32_t c = x->row->arg == 1, n = 3 + c, ms = 1 + c, mom = 2 + c;
  TRY(optim_begin(x, n, n + 4, &o));
  ir_value rho = tfl_in(x, n + 1);
  o.v[ms] = optim_decay(x, o.v[ms], optim_square(x, o.gradient), rho);
  ir_value under = optim_add(x, o.v[ms], tfl_in(x, n + 3));
  if (c) {
    o.v[1] = optim_decay(x, o.v[1], o.gradient, rho);
    under = optim_sub(x, under, optim_square(x, o.v[1]));
  }
  ir_value step = optim_mul(x, optim_mul(x, o.gradient, tfl_in(x, n)), optim_rsqrt(x, under));
  o.v[mom] = optim_add(x, optim_mul(x, o.v[mom], tfl_in(x, n + 2)), step);
  o.v[0] = optim_sub(x, o.v[0], o.v[mom]);
  return optim_end(&o, n);
}

/* var, m, v, (vhat,) beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad; arg: 1 with vhat (AMSGrad). */
int tfl_row_adam(tfl_op *x) {
  optim o;
  bool ams = x->row->arg == 1;
  uint32_t n = ams ? 4 : 3;
  TRY(optim_begin(x, n, n + 6, &o));
  ir_value beta1 = tfl_in(x, n + 3), epsilon = tfl_in(x, n + 5);
  ir_value rate = optim_mul(x, tfl_in(x, n + 2), optim_sqrt(x, optim_rest(x, tfl_in(x, n + 1))));
  rate = optim_div(x, rate, optim_rest(x, tfl_in(x, n)));
  o.v[1] = optim_decay(x, o.v[1], o.gradient, beta1);
  o.v[2] = optim_decay(x, o.v[2], optim_square(x, o.gradient), tfl_in(x, n + 4));
  if (ams) o.v[3] = optim_max(x, o.v[3], o.v[2]);
  ir_value step = o.v[1];
  if (!ams && tfl_attr_bool(x, "use_nesterov"))
    step = optim_add(x, optim_mul(x, o.gradient, optim_rest(x, beta1)), optim_mul(x, o.v[1], beta1));
  step = optim_div(x, optim_mul(x, step, rate), optim_add(x, optim_sqrt(x, o.v[n - 1]), epsilon));
  o.v[0] = optim_sub(x, o.v[0], step);
  return optim_end(&o, n);
}

/* var, m, v, beta1_power, lr, beta1, beta2, epsilon, grad */
int tfl_row_ada_max(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 3, 8, &o));
  o.v[1] = optim_decay(x, o.v[1], o.gradient, tfl_in(x, 5));
  o.v[2] = optim_max(x, optim_mul(x, o.v[2], tfl_in(x, 6)), opt_unary(x->rw, IR_OP_ABS, o.gradient));
  ir_value rate = optim_div(x, tfl_in(x, 4), optim_rest(x, tfl_in(x, 3)));
  ir_value step = optim_mul(x, rate, optim_div(x, o.v[1], optim_add(x, o.v[2], tfl_in(x, 7))));
  o.v[0] = optim_sub(x, o.v[0], step);
  return optim_end(&o, 3);
}

/* var, accum, linear, grad, lr, l1, l2, (V2: l2_shrinkage,) lr_power; arg: 1 for V2. The rate divides, or with
 * multiply_linear_by_lr multiplies what would not be divided. */
int tfl_row_ftrl(tfl_op *x) {
  optim o;
  bool second = x->row->arg == 1, multiply = tfl_attr_bool(x, "multiply_linear_by_lr");
  TRY(optim_begin(x, 3, 3, &o));
  ir_value rate = tfl_in(x, 4), l1 = tfl_in(x, 5), l2 = tfl_in(x, 6);
  ir_value power = opt_unary(x->rw, IR_OP_NEGATE, tfl_in(x, second ? 8 : 7)), g = o.gradient;
  if (second) g = optim_add(x, g, optim_mul(x, optim_add(x, o.v[0], o.v[0]), tfl_in(x, 7)));
  ir_value accum = optim_add(x, o.v[1], optim_square(x, o.gradient));
  ir_value before = tfl_binary(x, IR_OP_POWER, o.v[1], power), after = tfl_binary(x, IR_OP_POWER, accum, power);
  ir_value change = optim_mul(x, optim_sub(x, after, before), o.v[0]), twice = optim_add(x, l2, l2);
  o.v[2] = multiply ? optim_add(x, o.v[2], optim_sub(x, optim_mul(x, g, rate), change))
                    : optim_add(x, o.v[2], optim_sub(x, g, optim_div(x, change, rate)));
  ir_value bound = multiply ? optim_mul(x, l1, rate) : l1;
  ir_value under =
      multiply ? optim_add(x, after, optim_mul(x, twice, rate)) : optim_add(x, optim_div(x, after, rate), twice);
  ir_value held = optim_max(x, tfl_binary(x, IR_OP_MINIMUM, o.v[2], bound), opt_unary(x->rw, IR_OP_NEGATE, bound));
  o.v[0] = optim_div(x, optim_sub(x, held, o.v[2]), under);
  o.v[1] = accum;
  return optim_end(&o, 3);
}

/* var, m, lr, alpha or logbase, sign_decay, beta, grad; arg: 1 for PowerSign. */
int tfl_row_sign_step(tfl_op *x) {
  optim o;
  TRY(optim_begin(x, 2, 6, &o));
  ir_value beta = tfl_in(x, 5), k = tfl_in(x, 3);
  o.v[1] = optim_add(x, optim_mul(x, o.v[1], beta), optim_mul(x, o.gradient, optim_rest(x, beta)));
  ir_value sign = optim_mul(x, opt_unary(x->rw, IR_OP_SIGN, o.gradient), opt_unary(x->rw, IR_OP_SIGN, o.v[1]));
  ir_value how = optim_mul(x, sign, tfl_in(x, 4));
  how = x->row->arg == 1 ? opt_unary(x->rw, IR_OP_EXP, optim_mul(x, how, k)) : optim_add(x, how, k);
  o.v[0] = optim_sub(x, o.v[0], optim_mul(x, optim_mul(x, how, o.gradient), tfl_in(x, 2)));
  return optim_end(&o, 2);
}
