/* Ops of the dialects sdy, check and interpreter: their forms, and the syntaxes that no form can say. */
#include "mlir_known.h"
#include "mlir_read.h"

/* What stands in angle brackets, kept as an attribute of that name: #sdy.mesh<...> for `prefix` sdy.mesh. */
static int mlir_read_kept(mlir_reader *r, const char *prefix, const char *expected, const char *name) {
  const char *p = r->lx.p, *e = *p == '<' ? mlir_balanced_end(r, p) : NULL;
  if (!e) return mlir_expected(r, expected);
  base_text text;
  base_text_init(&text, r->alloc);
  base_puts(&text, prefix);
  base_put(&text, p, (size_t)(e - p));
  ir_mattr *a = text.failed ? NULL : (ir_mattr *)(uintptr_t)ir_m_string(r->m, text.s, text.n);
  base_text_free(&text);
  if (!a) return mlir_no_memory(r);
  a->kind = IR_M_OPAQUE;
  r->lx.p = e;
  text_skip(&r->lx);
  return mlir_add_attr(r, name, a);
}

/* sdy.mesh @name = <["x"=2]>: kept as its attributes. */
static int mlir_read_mesh(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  TRY(mlir_add_attr(r, "sym_name", ir_m_string(r->m, name->s, name->n)));
  TRY(mlir_want(r, "="));
  TRY(mlir_read_kept(r, "sdy.mesh", "<axes>", "mesh"));
  return mlir_read_own_attrs(r, s);
}

/* sdy.sharding_constraint %0 <@mesh, [...]> : type */
static int mlir_read_constraint(mlir_reader *r, mlir_op_state *s) {
  TRY(mlir_read_operand(r));
  s->n_values = 1;
  TRY(mlir_read_kept(r, "sdy.sharding", "<sharding>", "sharding"));
  TRY(mlir_read_own_attrs(r, s));
  return mlir_read_same(r, s);
}

int mlir_read_known(mlir_reader *r, mlir_op_state *s, const char **form) {
  *form = mlir_known_form(s->unregistered);
  if (*form) return 0;
  if (strcmp(s->unregistered->s, "sdy.mesh") == 0) return mlir_read_mesh(r, s);
  if (strcmp(s->unregistered->s, "sdy.sharding_constraint") == 0) return mlir_read_constraint(r, s);
  int status = mlir_fail(r, s->at, XLAC_E_SYNTAX, "custom op '%s' has no known pretty syntax", s->unregistered->s);
  return base_hint(r->err, status, "write it in the generic form, \"%s\"(...) : (...) -> ...", s->unregistered->s);
}
