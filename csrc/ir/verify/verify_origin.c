/* origin={...}: which values of the original program an op stands for, one for each leaf of its type. Kept as text, so
 * the text's parentheses are held against the type's. */
#include "verify.h"

static const char *skip_blanks(const char *p) {
  return p + strspn(p, " \t\r\n");
}

/* After the '}' that ends a leaf; quoted strings may hold braces. NULL when there is none. */
static const char *skip_leaf(const char *p) {
  assert(*p == '{');
  uint32_t depth = 0;
  for (bool quoted = false; *p; p++) {
    if (quoted && *p == '\\' && p[1]) {
      p++;
    } else if (*p == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += *p == '{';
      if (*p == '}' && --depth == 0) return p + 1;
    }
  }
  return NULL;
}

/* *text stands at a '(' or '{' and moves behind what belongs to t. IR_MAX_TYPE_DEPTH bounds the recursion. */
static bool origin_fits(const char **text, const ir_type *t) {
  const char *p = skip_blanks(*text);
  if (!ir_is_tuple(t)) {
    if (*p != '{') return false;
    *text = skip_leaf(p);
    return *text != NULL;
  }
  if (*p != '(') return false;
  p = skip_blanks(p + 1);
  for (uint32_t i = 0; i < t->n_elements; i++) {
    if (i > 0 && *p++ != ',') return false;
    if (!origin_fits(&p, t->elements[i])) return false;
    p = skip_blanks(p);
  }
  if (*p != ')') return false;
  *text = p + 1;
  return true;
}

int ir_verify_origin(const ir_op *op, xlac_error *err) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_ORIGIN);
  if (!a || !a->v.str) return 0;
  const char *p = skip_blanks(a->v.str->s);
  if (*p == '{') p = skip_blanks(p + 1);
  if (*p == '[' || *p == '}' || *p == 0) return 0; /* a synthetic call, or nothing */
  if (origin_fits(&p, op->type)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has an origin of another tuple structure than its type %s",
                        IR_SHOW(op->type));
}
