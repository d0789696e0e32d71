/* The formulas and their coefficients as tables. */
#include "formula.h"

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

const opt_formula *opt_formula_find(const char *name, size_t n) {
  for (const opt_formula *f = opt_formulas; f->name; f++)
    if (strlen(f->name) == n && memcmp(f->name, name, n) == 0) return f;
  return NULL;
}
