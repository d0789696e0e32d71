/* The table of ops of other dialects, its small language, and the forms of the dialects check and interpreter.
 *
 * Rows come from foreign.def, sorted by name, and are searched by halving. Both reader and printer walk a form with
 * mlir_foreign_next. */
#include "foreign.h"

static const mlir_foreign mlir_foreigns[] = {
#define FOREIGN(name, form, result, stem, properties) {name, form, MLIR_FOREIGN_##result, stem, properties},
#include "foreign.def"
#undef FOREIGN
};

/* The exact name, "arith.addi". */
const mlir_foreign *mlir_foreign_find(const char *name) {
  assert(name);
  size_t low = 0, high = sizeof mlir_foreigns / sizeof *mlir_foreigns;
  while (low < high) {
    size_t at = (low + high) / 2;
    int order = strcmp(mlir_foreigns[at].name, name);
    if (order == 0) return &mlir_foreigns[at];
    if (order < 0) {
      low = at + 1;
    } else {
      high = at;
    }
  }
  return NULL;
}

/* The run of bytes other than blanks at *s, taken. */
static base_slice mlir_foreign_word(const char **s) {
  while (**s == ' ') (*s)++;
  const char *p = *s;
  while (**s && **s != ' ') (*s)++;
  return (base_slice){p, (size_t)(*s - p)};
}

bool mlir_foreign_is_property(const mlir_foreign *f, const base_istr *key) {
  const char *at = f->properties;
  for (base_slice w = mlir_foreign_word(&at); w.n; w = mlir_foreign_word(&at))
    if (w.n == key->n && memcmp(w.p, key->s, w.n) == 0) return true;
  return false;
}

/*   "%0"   sort '%', name "0"         "$value:any"   sort '$', name "value", kind "any"        ","   sort 'w', name ","
 */
bool mlir_foreign_next(const char **form, mlir_foreign_item *item) {
  assert(form && *form);
  base_slice w = mlir_foreign_word(form);
  if (w.n == 0) return false;
  bool special = memchr("%$#=", *w.p, 4) != NULL;
  item->sort = special ? *w.p : 'w';
  item->name = special ? (base_slice){w.p + 1, w.n - 1} : w;
  item->kind = (base_slice){0};
  const char *colon = item->sort == '$' ? memchr(w.p, ':', w.n) : NULL;
  if (colon) {
    item->name.n = (size_t)(colon - item->name.p);
    item->kind = (base_slice){colon + 1, (size_t)(w.p + w.n - colon - 1)};
  }
  return true;
}

/* LLVM's order of predicates and of rounding modes: the index is the number in the IR. */
const char *const *mlir_foreign_words(base_slice kind) {
  static const char *const integers[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge", NULL};
  static const char *const floats[] = {"false", "oeq", "ogt", "oge", "olt", "ole", "one",  "ord", "ueq",
                                       "ugt",   "uge", "ult", "ule", "une", "uno", "true", NULL};
  static const char *const roundings[] = {"to_nearest_even", "downward",        "upward",
                                          "toward_zero",     "to_nearest_away", NULL};
  if (base_slice_is(kind, "cmpi")) return integers;
  if (base_slice_is(kind, "cmpf")) return floats;
  return base_slice_is(kind, "rounding") ? roundings : NULL;
}

/* The kind without its question mark. */
base_slice mlir_foreign_flags_word(base_slice kind) {
  assert(kind.n > 0);
  return (base_slice){kind.p, kind.n - (kind.p[kind.n - 1] == '?')};
}

/* Flags are written as word<flag,flag>. */
bool mlir_foreign_is_flags(base_slice kind) {
  if (kind.n == 0) return false;
  base_slice word = mlir_foreign_flags_word(kind);
  return base_slice_is(word, "overflow") || base_slice_is(word, "fastmath");
}

const char *mlir_foreign_default(base_slice kind) {
  if (base_slice_is(kind, "overflow")) return "arith.overflow<none>";
  return base_slice_is(kind, "fastmath") ? "arith.fastmath<none>" : NULL;
}

/* ---- The table of known forms. */

static const mlir_known_op mlir_known_ops[] = {
    {"check.expect_eq", "%0 , %1 {} :0"},
    {"check.expect_eq_const", "%0 , &value {}"},
    {"check.expect_almost_eq", "%0 , %1 [tolerance , tolerance = $tolerance ] {} :0"},
    {"check.expect_almost_eq_const", "%0 , &value [tolerance , tolerance = $tolerance ] {}"},
    {"check.expect_close",
     "%0 , %1 , max_ulp_difference = $max_ulp_difference [min_ulp_difference , "
     "min_ulp_difference = $min_ulp_difference ] :01"},
    {"check.expect_serialized_eq", "%0 , probe_id = $probe_id [iteration , iter = $iteration ] {} :0"},
    {"interpreter.probe", "%0 , probe_id = $probe_id {} :same"},
    {"interpreter.print", "%0 {} :0"},
};

const char *mlir_known_form(const base_istr *name) {
  for (size_t i = 0; i < sizeof mlir_known_ops / sizeof *mlir_known_ops; i++)
    if (strcmp(mlir_known_ops[i].name, name->s) == 0) return mlir_known_ops[i].form;
  return NULL;
}

const char *mlir_known_attr(base_slice attr, base_dtype *number) {
  static const struct {
    const char *name;
    base_dtype dtype;
  } attrs[] = {{"tolerance", XLAC_F64},
               {"iteration", XLAC_U32},
               {"max_ulp_difference", XLAC_U64},
               {"min_ulp_difference", XLAC_U64},
               {"probe_id", BASE_DTYPE_INVALID}};
  for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
    *number = attrs[i].dtype;
    if (base_slice_is(attr, attrs[i].name)) return attrs[i].name;
  }
  return NULL;
}
