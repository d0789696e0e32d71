/* Checks inside programs: the ops of StableHLO's dialect check, and the custom calls that its test data makes of them,
 * with the tolerances of its reference interpreter. Two NaNs are equal here, also for expect_eq. */
#include <math.h>
#include <stdio.h>

#include "../algorithm/arrays.h"
#include "../probe.h"

typedef enum expect_kind { EXPECT_EQ, EXPECT_ALMOST, EXPECT_CLOSE } expect_kind;

typedef struct expect_rule {
  expect_kind kind;
  double tolerance;          /* ALMOST */
  uint64_t min_ulp, max_ulp; /* CLOSE */
} expect_rule;

/* One side: an array, or a constant, which may be one element for all. */
typedef struct expect_side {
  const char *data;
  int64_t count;
  size_t step; /* 0 for a splat */
} expect_side;

/* What went wrong: how many elements, and the first. */
typedef struct expect_tally {
  int64_t bad, first;
  uint64_t worst_ulp;
  double worst;
} expect_tally;

/* The bits without the sign, as a number: neighbours in value are neighbours here. */
static uint64_t expect_magnitude(base_dtype t, const void *p, bool *negative) {
  uint64_t b = 0;
  const base_dtype_info *info = base_dtype_of(t);
  memcpy(&b, p, info->bytes);
  if (info->bits < 64) b &= ((uint64_t)1 << info->bits) - 1;
  *negative = base_float_is_signed(t) && b >> (info->bits - 1);
  return *negative ? b & ~((uint64_t)1 << (info->bits - 1)) : b;
}

/* The number of values of the type between two floats; endless where one is not finite. */
static uint64_t expect_ulps(base_dtype t, const void *p, const void *q) {
  double x = base_load_f64(t, p), y = base_load_f64(t, q);
  bool minus_x, minus_y;
  uint64_t a = expect_magnitude(t, p, &minus_x), b = expect_magnitude(t, q, &minus_y);
  if ((a == b && minus_x == minus_y) || (isnan(x) && isnan(y))) return 0;
  if (!isfinite(x) || !isfinite(y)) return UINT64_MAX;
  if (minus_x != minus_y) return a + b;
  return a > b ? a - b : b - a;
}

/* -0 equals 0, as in C. */
static bool expect_same(base_dtype t, const void *p, const void *q) {
  if (!base_dtype_is_float(t)) return memcmp(p, q, base_dtype_bytes(t)) == 0;
  double x = base_load_f64(t, p), y = base_load_f64(t, q);
  return x == y || (isnan(x) && isnan(y));
}

/* *off: the distance, infinite where only one side is finite. */
static bool expect_almost(base_dtype t, const void *p, const void *q, double tolerance, double *off) {
  double x = base_load_f64(t, p), y = base_load_f64(t, q);
  if (x == y || (isnan(x) && isnan(y))) return true;
  *off = isfinite(x) && isfinite(y) ? fabs(x - y) : INFINITY;
  return *off <= tolerance;
}

/* One real number, or one part of a complex one. Updates the tally; true where it is within the rule. */
static bool expect_part(base_dtype t, const void *p, const void *q, const expect_rule *rule, expect_tally *tally) {
  assert(rule && tally);
  double off = 0;
  bool good;
  if (rule->kind == EXPECT_EQ) return expect_same(t, p, q);
  if (rule->kind == EXPECT_ALMOST) {
    good = expect_almost(t, p, q, rule->tolerance, &off);
    if (off > tally->worst) tally->worst = off;
    return good;
  }
  uint64_t ulps = expect_ulps(t, p, q);
  if (ulps > tally->worst_ulp) tally->worst_ulp = ulps;
  return ulps >= rule->min_ulp && ulps <= rule->max_ulp;
}

/* As upstream, the distance of complex numbers is that of their more distant parts. A complex number is
 * right where both parts are. */
static bool expect_element(base_dtype t, const char *p, const char *q, const expect_rule *rule, expect_tally *tally) {
  if (!base_dtype_is_complex(t)) return expect_part(t, p, q, rule, tally);
  base_dtype part = base_dtype_real_part(t);
  size_t half = base_dtype_bytes(part);
  if (rule->kind != EXPECT_CLOSE) {
    bool real = expect_part(part, p, q, rule, tally), imaginary = expect_part(part, p + half, q + half, rule, tally);
    return real && imaginary;
  }
  uint64_t a = expect_ulps(part, p, q), b = expect_ulps(part, p + half, q + half), ulps = a > b ? a : b;
  if (ulps > tally->worst_ulp) tally->worst_ulp = ulps;
  return ulps >= rule->min_ulp && ulps <= rule->max_ulp;
}

/* --- saying it --- */

/* For messages: an element as HLO would write it. */
static void expect_show(base_dtype t, const void *p, char *buf, size_t size) {
  int digits = base_dtype_of(t)->bits > 32 ? 17 : 9;
  if (base_dtype_is_complex(t)) {
    base_dtype part = base_dtype_real_part(t);
    digits = part == XLAC_F64 ? 17 : 9;
    snprintf(buf, size, "(%.*g, %.*g)", digits, base_load_f64(part, p), digits,
             base_load_f64(part, (const char *)p + base_dtype_bytes(part)));
  } else if (base_dtype_is_float(t)) {
    snprintf(buf, size, "%.*g", digits, base_load_f64(t, p));
  } else if (base_dtype_is_unsigned(t)) {
    snprintf(buf, size, "%llu", (unsigned long long)base_load_i64(t, p));
  } else {
    snprintf(buf, size, "%lld", (long long)base_load_i64(t, p));
  }
}

/* "[1,2]": the element's index tuple from its row-major number. */
static void expect_show_index(const interp_value *v, int64_t flat, char *buf, size_t size) {
  size_t at = (size_t)snprintf(buf, size, "[");
  int64_t rest = v->count;
  for (uint32_t d = 0; d < v->rank && at + 24 < size; d++) {
    rest /= v->dims[d];
    at += (size_t)snprintf(buf + at, size - at, "%s%lld", d ? ", " : "", (long long)(flat / rest));
    flat %= rest;
  }
  snprintf(buf + at, size - at, "]");
}

static void expect_show_rule(const expect_rule *rule, const expect_tally *tally, char *buf, size_t size) {
  *buf = 0;
  if (rule->kind == EXPECT_ALMOST)
    snprintf(buf, size, "; the largest difference is %.6g, allowed is %.6g", tally->worst, rule->tolerance);
  else if (rule->kind == EXPECT_CLOSE && tally->worst_ulp == UINT64_MAX)
    snprintf(buf, size, "; one of them is not finite");
  else if (rule->kind == EXPECT_CLOSE)
    snprintf(buf, size, "; the largest distance is %llu ulp, allowed is %llu to %llu",
             (unsigned long long)tally->worst_ulp, (unsigned long long)rule->min_ulp,
             (unsigned long long)rule->max_ulp);
}

static const char *expect_name(const ir_op *op) {
  return op->opcode == IR_OP_UNREGISTERED ? op->u.name->s : ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
}

/* --- comparing --- */

enum { EXPECT_TICK = 1 << 12 /* elements between looks at interruptions */ };

/* Compares all elements; one error tells how many differ, and shows the first. */
static int expect_sides(interp_ctx *ctx, const ir_op *op, const interp_value *actual, expect_side expected,
                        const expect_rule *rule) {
  base_dtype t = (base_dtype)actual->dtype;
  size_t bytes = base_dtype_bytes(t);
  const char *p = actual->data;
  expect_tally tally = {.first = -1};
  for (int64_t i = 0; i < actual->count; i++) {
    if (i % EXPECT_TICK == 0) TRY(interp_tick(ctx, EXPECT_TICK));
    if (expect_element(t, p + (size_t)i * bytes, expected.data + (size_t)i * expected.step, rule, &tally)) continue;
    if (tally.bad++ == 0) tally.first = i;
  }
  if (tally.bad == 0) return 0;
  char found[64], wanted[64], where[160], how[128];
  expect_show(t, p + (size_t)tally.first * bytes, found, sizeof found);
  expect_show(t, expected.data + (size_t)tally.first * expected.step, wanted, sizeof wanted);
  expect_show_index(actual, tally.first, where, sizeof where);
  expect_show_rule(rule, &tally, how, sizeof how);
  return interp_fail(ctx, op, XLAC_E_CHECK, "%s: %lld of %lld elements differ; at %s: %s found, %s expected%s",
                     expect_name(op), (long long)tally.bad, (long long)actual->count, where, found, wanted, how);
}

/* Shapes and types must agree before elements are looked at. */
static int expect_values(interp_ctx *ctx, const ir_op *op, const interp_value *actual, const interp_value *expected,
                         const expect_rule *rule) {
  bool arrays = actual->kind == INTERP_ARRAY && expected->kind == INTERP_ARRAY;
  if (!arrays || actual->dtype != expected->dtype || actual->rank != expected->rank ||
      (actual->rank && memcmp(actual->dims, expected->dims, actual->rank * sizeof *actual->dims) != 0))
    return interp_fail(ctx, op, XLAC_E_CHECK, "%s compares values of different types or sizes", expect_name(op));
  expect_side side = {expected->data, expected->count, base_dtype_bytes((base_dtype)expected->dtype)};
  return expect_sides(ctx, op, actual, side, rule);
}

/* The expected value is an attribute of the op. */
static int expect_constant(interp_ctx *ctx, const ir_op *op, const interp_value *actual, const expect_rule *rule) {
  const ir_mattr *a = ir_mattr_of(op, "value");
  bool dense = a && (a->kind == IR_M_DENSE || a->kind == IR_M_RESOURCE) && a->v.literal;
  const ir_literal *l = dense ? a->v.literal : NULL;
  if (!l || actual->kind != INTERP_ARRAY || l->type->dtype != actual->dtype ||
      (l->type->count != actual->count && !(a->splat && l->type->count == 1)))
    return interp_fail(ctx, op, XLAC_E_CHECK, "%s compares a value with a constant of another type or size",
                       expect_name(op));
  bool one = l->type->count == 1;
  expect_side side = {l->data, actual->count, one ? 0 : base_dtype_bytes((base_dtype)actual->dtype)};
  return expect_sides(ctx, op, actual, side, rule);
}

static int expect_serialized(interp_ctx *ctx, const ir_op *op, const interp_value *expected) {
  const ir_mattr *id = ir_mattr_of(op, "probe_id"), *iteration = ir_mattr_of(op, "iteration");
  uint64_t at = iteration && iteration->kind == IR_M_INTEGER ? (uint64_t)iteration->v.i : 0;
  if (!id || id->kind != IR_M_STRING) return interp_fail(ctx, op, XLAC_E_EVAL, "check needs a probe_id");
  if (!ctx->options.probes)
    return base_hint(ctx->err, interp_fail(ctx, op, XLAC_E_CHECK, "this run keeps nothing of what its probes see"),
                     "give interpret() a list or a directory as probes");
  const interp_value *seen = interp_probes_find(ctx->options.probes, id->str, at);
  if (!seen)
    return interp_fail(ctx, op, XLAC_E_CHECK, "probe \"%.100s\" has not come to iteration %llu", id->str->s,
                       (unsigned long long)at);
  const expect_rule rule = {.kind = EXPECT_EQ};
  return expect_values(ctx, op, seen, expected, &rule);
}

/* --- the ops --- */

/* An integer attribute, or `otherwise`. */
static uint64_t expect_number(const ir_op *op, const char *name, uint64_t otherwise) {
  const ir_mattr *a = ir_mattr_of(op, name);
  return a && a->kind == IR_M_INTEGER ? (uint64_t)a->v.i : otherwise;
}

/* The empty tuple. */
static int expect_no_result(interp_ctx *ctx, interp_value **out) {
  *out = interp_tuple(ctx, 0, NULL);
  return *out ? 0 : base_oom(ctx->err, "a check");
}

/* Distances and tolerances are for floats and complex numbers only. */
static int expect_operands(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, uint32_t n,
                           const expect_rule *rule) {
  if (op->n_operands != n) return interp_fail(ctx, op, XLAC_E_EVAL, "a check of %u operands", op->n_operands);
  base_dtype t = (base_dtype)operands[0]->dtype;
  bool array = operands[0]->kind == INTERP_ARRAY;
  if (array && rule->kind != EXPECT_EQ && !base_dtype_is_float(t) && !base_dtype_is_complex(t))
    return interp_fail(ctx, op, XLAC_E_EVAL, "only floats and complex numbers have tolerances; this is %s",
                       base_dtype_of(t)->text);
  return 0;
}

/* Ops of the check dialect, by name. The defaults are those of the reference: 1e-4, and 1 ulp. */
int interp_check(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const char *name = op->u.name->s;
  const ir_mattr *tolerance = ir_mattr_of(op, "tolerance");
  expect_rule rule = {.tolerance = tolerance && tolerance->kind == IR_M_FLOAT ? tolerance->v.f : 1e-4,
                      .min_ulp = expect_number(op, "min_ulp_difference", 0),
                      .max_ulp = expect_number(op, "max_ulp_difference", 1)};
  bool constant = strstr(name, "_const") != NULL, serialized = strcmp(name, "check.expect_serialized_eq") == 0;
  if (strncmp(name, "check.expect_almost_eq", 22) == 0)
    rule.kind = EXPECT_ALMOST;
  else if (strcmp(name, "check.expect_close") == 0)
    rule.kind = EXPECT_CLOSE;
  else if (!serialized && strcmp(name, "check.expect_eq") != 0 && strcmp(name, "check.expect_eq_const") != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s is not known to the interpreter", name);
  TRY(expect_operands(ctx, op, operands, constant || serialized ? 1 : 2, &rule));
  if (serialized) {
    TRY(expect_serialized(ctx, op, operands[0]));
  } else if (constant) {
    TRY(expect_constant(ctx, op, operands[0], &rule));
  } else {
    TRY(expect_values(ctx, op, operands[0], operands[1], &rule));
  }
  return expect_no_result(ctx, out);
}

/* check.eq gives true, all others nothing; they fail otherwise. */
int interp_check_call(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  expect_rule rule = {.tolerance = 1e-3, .max_ulp = 3};
  if (strcmp(target, "check.expect_almost_eq") == 0) rule.kind = EXPECT_ALMOST;
  if (strcmp(target, "check.expect_close") == 0) rule.kind = EXPECT_CLOSE;
  bool legacy = strcmp(target, "check.eq") == 0;
  if (legacy && op->n_operands == 2 && operands[1]->kind == INTERP_ARRAY) {
    base_dtype t = (base_dtype)operands[1]->dtype;
    rule.kind = base_dtype_is_float(t) || base_dtype_is_complex(t) ? EXPECT_ALMOST : EXPECT_EQ;
    rule.tolerance = 1e-4;
  }
  TRY(expect_operands(ctx, op, operands, 2, &rule));
  TRY(expect_values(ctx, op, operands[0], operands[1], &rule));
  if (ir_is_tuple(op->type) && op->type->n_elements == 0) return expect_no_result(ctx, out);
  interp_value *yes =
      ir_is_scalar(op->type) && op->type->dtype == XLAC_PRED ? interp_array(ctx, XLAC_PRED, 0, NULL) : NULL;
  if (!yes) return interp_fail(ctx, op, XLAC_E_EVAL, "a check gives nothing, or one i1");
  *(uint8_t *)yes->data = 1;
  *out = yes;
  return 0;
}
