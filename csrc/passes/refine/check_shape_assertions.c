/* stablehlo-check-shape-assertions: custom calls of @shape_assertion that hold go; one that does not is an error with
 * its own message. JAX's shape polymorphism writes them: operand 0 is the condition, others are numbers for the
 * message, as in "expected a multiple of 4, found {0}". Requires: constant operands (refine the shapes first).
 * Preserves: all other ops. */
#include "refine.h"

#include <stdio.h>

/* Upstream's limit.
 *    stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "expected a multiple of 4, found {0}", ...}
 * goes where %ok is the constant true, and fails the pass with n's value in the message where it is false. */
enum { ASSERTION_MAX_INPUTS = 32 };

/* All messages begin alike, so that users see what the custom call is for. */
static int assertion_fail(const opt_rewriter *rw, const ir_op *op, const char *what) {
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY, "shape_assertion %s", what);
}

/* The condition is i1, numbers are i32 or i64. */
static bool assertion_is_scalar(const ir_type *t, bool pred) {
  if (!ir_is_tensor(t) || t->rank != 0 || t->quant || t->text) return false;
  return pred ? t->dtype == XLAC_PRED : t->dtype == XLAC_S32 || t->dtype == XLAC_S64;
}

/* Attributes that the custom call may have. */
static bool assertion_takes(const char *key) {
  static const char *const known[] = {"api_version",   "backend_config",  "call_target_name",
                                      "error_message", "has_side_effect", NULL};
  for (const char *const *k = known; *k; k++)
    if (strcmp(*k, key) == 0) return true;
  return false;
}

/* "" and {} say nothing. */
static bool assertion_is_empty(const ir_mattr *a) {
  if (!a) return true;
  return a->kind == IR_M_STRING ? a->str->n == 0 : a->kind == IR_M_DICT && a->v.dict->n == 0;
}

/* What could change the meaning is refused rather than ignored. */
static int assertion_check_attributes(const opt_rewriter *rw, const ir_op *op) {
  for (uint32_t i = 0; op->mlir && i < op->mlir->n; i++)
    if (!assertion_takes(op->mlir->v[i].key->s))
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, "shape_assertion can't have the attribute %s",
                              op->mlir->v[i].key->s);
  if (!assertion_is_empty(ir_mattr_of(op, "backend_config")))
    return assertion_fail(rw, op, "has a backend_config; expected none");
  const ir_mattr *message = ir_mattr_of(op, "error_message");
  if (!message || message->kind != IR_M_STRING)
    return assertion_fail(rw, op, "has no error_message; expected a string");
  return 0;
}

/* Numbers in braces name inputs. */
static int assertion_check_message(const opt_rewriter *rw, const ir_op *op) {
  assert(op->n_operands >= 1);
  const char *s = ir_m_get_str(op, "error_message");
  for (const char *p = strchr(s, '{'); p; p = strchr(p + 1, '{')) {
    int64_t number = 0;
    const char *q = p + 1;
    for (; *q >= '0' && *q <= '9' && number < 1000; q++) number = number * 10 + (*q - '0');
    bool whole = q > p + 1 && (*q == ',' || *q == ':' || *q == '}');
    if (whole && number + 1 >= op->n_operands)
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                              "shape_assertion has {%lld} in its error_message, but %u inputs to it", (long long)number,
                              op->n_operands - 1);
  }
  return 0;
}

/* Form first, values after: an assertion that is malformed is an error even where it holds. */
static int assertion_check(const opt_rewriter *rw, const ir_op *op) {
  if (op->n_operands < 1 || op->n_operands > 1 + ASSERTION_MAX_INPUTS)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_OPERANDS, "shape_assertion has %u operands; expected 1 to %d",
                            op->n_operands, 1 + ASSERTION_MAX_INPUTS);
  if (op->n_results) return assertion_fail(rw, op, "has results; expected none");
  TRY(assertion_check_attributes(rw, op));
  if (!assertion_is_scalar(ir_operand_type(op, 0), true))
    return assertion_fail(rw, op, "has an operand 0 that is expected to be a tensor<i1>");
  for (uint32_t i = 1; i < op->n_operands; i++)
    if (!assertion_is_scalar(ir_operand_type(op, i), false))
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_OPERANDS,
                              "shape_assertion has an operand %u that is expected to be a tensor<i32> or tensor<i64>",
                              i);
  return assertion_check_message(rw, op);
}

/* The message with inputs in the place of {0}, {1}, ... */
static void assertion_text(const char *s, const int64_t *inputs, char *out, size_t size) {
  assert(size > 0);
  size_t n = 0;
  while (*s && n + 24 < size) {
    int consumed = 0;
    unsigned index = 0;
    if (*s == '{' && sscanf(s, "{%3u%n", &index, &consumed) == 1 && strchr(s, '}')) {
      n += (size_t)snprintf(out + n, size - n, "%lld", (long long)(index < ASSERTION_MAX_INPUTS ? inputs[index] : -1));
      s = strchr(s, '}') + 1;
    } else {
      out[n++] = *s++;
    }
  }
  out[n] = 0;
}

/* Not holding is an error of the program, at the op. */
static int assertion_holds(opt_rewriter *rw, ir_op *op) {
  const int64_t *value = NULL;
  uint32_t n = 0;
  int64_t inputs[ASSERTION_MAX_INPUTS];
  char text[400];
  TRY(assertion_check(rw, op));
  if (!opt_constant_ints(rw, opt_operand(op, 0), &value, &n))
    return assertion_fail(rw, op, "has an operand 0 that is not known");
  if (value[0] != 0) {
    opt_erase(rw, op);
    return opt_rewriter_status(rw);
  }
  for (uint32_t i = 0; i < ASSERTION_MAX_INPUTS; i++) inputs[i] = -1;
  for (uint32_t i = 1; i < op->n_operands; i++) {
    if (!opt_constant_ints(rw, opt_operand(op, i), &value, &n))
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY, "shape_assertion has an operand %u that is not known", i);
    inputs[i - 1] = value[0];
  }
  assertion_text(ir_m_get_str(op, "error_message"), inputs, text, sizeof text);
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_SHAPE, "%s", text);
}

/* Switched off, assertions go unchecked; one with results has readers and stays. */
int opt_check_shape_assertions(ir_module *m, const opt_args *args, xlac_error *err) {
  opt_rewriter rw;
  bool enabled = opt_get(args, "enable-shape-assertions") != 0;
  assert(m->form == IR_FORM_MLIR);
  int status = 0;
  TRY(opt_rewriter_init(&rw, m, err));
  for (ir_computation *c = m->first; c && status == 0; c = c->next) {
    for (ir_op *op = c->first, *next = NULL; op && status == 0; op = next) {
      next = op->next;
      if (op->opcode != IR_OP_CUSTOM_CALL || strcmp(ir_m_get_str(op, "call_target_name"), "shape_assertion") != 0)
        continue;
      if (enabled) {
        status = assertion_holds(&rw, op);
      } else if (op->n_results == 0) {
        opt_erase(&rw, op);
      }
    }
  }
  opt_rewriter_free(&rw);
  return status;
}
