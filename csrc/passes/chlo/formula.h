/* Functions as formulas: texts (formulas.def) that are compiled to ops on whole tensors. A formula is a list of
 * definitions and a result, "t = x * x; sqrt(1 + t)". It knows + - * / % & | ^ !, comparisons, c ? a : b, calls of the
 * built-in functions and of other formulas, numbers, and these constants of the element type at hand: inf nan pi max
 * min_normal epsilon splitter half_width low_mask. What has only numbers in it is computed while compiling. */
#ifndef XLAC_PASSES_CHLO_FORMULA_H
#define XLAC_PASSES_CHLO_FORMULA_H

#include "../rewrite/rewrite.h"

typedef struct opt_formula {
  const char *name, *parameters, *text;
} opt_formula;

/* Coefficients by name, highest power first. */
typedef struct opt_coefficients {
  const char *name;
  uint32_t n;
  const double *v;
} opt_coefficients;

extern const opt_formula opt_formulas[];              /* ends with a NULL name */
extern const opt_coefficients opt_coefficient_sets[]; /* likewise */

/* The formula of that name, or NULL. */
const opt_formula *opt_formula_find(const char *name, size_t n);
/* The formula's value of the arguments, which have one shape, as ops at the cursor. */
ir_value opt_formula_apply(opt_rewriter *rw, const opt_formula *formula, uint32_t n, const ir_value *args);

#endif
