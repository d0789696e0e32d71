/* Attributes of VHLO, #vhlo.array_v1<[...]> and so on. They are kept as their text, since only portable artifacts give
 * VHLO a meaning here, but those that hold others are looked into: VHLO holds nothing that is not VHLO. Source:
 * StableHLO's VhloAttrs.td. */
#include "read.h"

static bool mlir_is_vhlo(const ir_mattr *a, const char *name) {
  return a->kind == IR_M_OPAQUE && strncmp(a->str->s, name, strlen(name)) == 0;
}

static int mlir_read_vhlo_part(mlir_reader *r, const char *name, const char *what) {
  const char *at = r->lx.p;
  const ir_mattr *a;
  TRY(mlir_read_attr(r, &a));
  return mlir_is_vhlo(a, name) ? 0 : mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "expected VHLO %s", what);
}

static int mlir_read_vhlo_array(mlir_reader *r) {
  TRY(mlir_want(r, "["));
  if (mlir_eat(r, "]")) return 0;
  do TRY(mlir_read_vhlo_part(r, "vhlo.", "attributes"));
  while (mlir_eat(r, ","));
  return mlir_want(r, "]");
}

static int mlir_read_vhlo_dict(mlir_reader *r) {
  TRY(mlir_want(r, "{"));
  if (mlir_eat(r, "}")) return 0;
  do {
    TRY(mlir_read_vhlo_part(r, "vhlo.", "key attribute"));
    TRY(mlir_want(r, "="));
    TRY(mlir_read_vhlo_part(r, "vhlo.", "value attribute"));
  } while (mlir_eat(r, ","));
  return mlir_want(r, "}");
}

static int mlir_read_vhlo_accuracy(mlir_reader *r) {
  static const char *const tolerances[] = {"atol", "rtol", "ulps"};
  for (size_t i = 0; i < sizeof tolerances / sizeof *tolerances; i++) {
    const ir_mattr *number;
    if (!mlir_eat_word(r, tolerances[i])) return mlir_expected(r, tolerances[i]);
    TRY(mlir_want(r, "="));
    TRY(mlir_read_attr(r, &number));
    TRY(mlir_want(r, ","));
  }
  if (!mlir_eat_word(r, "mode")) return mlir_expected(r, "mode");
  TRY(mlir_want(r, "="));
  return mlir_read_vhlo_part(r, "vhlo.result_accuracy_mode_v1", "result accuracy mode");
}

/* Checks the body of a #vhlo attribute that holds others: cursor at '<', and anywhere in it afterwards. Of any other
 * name all is fine. */
static int mlir_read_vhlo_body(mlir_reader *r, base_slice name) {
  bool array = base_slice_is(name, "vhlo.array_v1"), dict = base_slice_is(name, "vhlo.dict_v1");
  bool accuracy = base_slice_is(name, "vhlo.result_accuracy_v1");
  if (!array && !dict && !accuracy) return 0;
  TRY(mlir_want(r, "<"));
  TRY(array ? mlir_read_vhlo_array(r) : dict ? mlir_read_vhlo_dict(r) : mlir_read_vhlo_accuracy(r));
  return *r->lx.p == '>' ? 0 : mlir_expected(r, "'>'");
}

int mlir_read_opaque(mlir_reader *r, const char *at, const ir_mattr **out) {
  const char *e = at + 1;
  while (text_is(*e, TEXT_ALPHA | TEXT_DIGIT) || *e == '.' || *e == '$') e++;
  if (*e == '<') {
    r->lx.p = e;
    TRY(mlir_read_vhlo_body(r, (base_slice){at + 1, (size_t)(e - at - 1)}));
    if (!(e = mlir_balanced_end(r, e))) return mlir_fail(r, at, XLAC_E_SYNTAX, "brackets that never close");
  }
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, at + 1, (size_t)(e - at - 1));
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_OPAQUE;
  r->lx.p = e;
  text_skip(&r->lx);
  *out = a;
  return 0;
}

int mlir_read_affine(mlir_reader *r, const ir_mattr **out) {
  const char *at = r->lx.p, *e = at;
  while (text_is(*e, TEXT_NAME)) e++;
  e = *e == '<' ? mlir_balanced_end(r, e) : NULL;
  if (!e) return mlir_expected(r, "an attribute");
  ir_mattr *a = (ir_mattr *)(uintptr_t)ir_m_string(r->m, at, (size_t)(e - at));
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_OPAQUE;
  a->hex = true; /* printed without '#' */
  r->lx.p = e;
  text_skip(&r->lx);
  *out = a;
  return 0;
}
