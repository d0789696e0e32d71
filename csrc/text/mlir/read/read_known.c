/* Ops of the dialects check and interpreter: their forms. */
#include "../known.h"
#include "read.h"

int mlir_read_known(mlir_reader *r, mlir_op_state *s, const char **form) {
  *form = mlir_known_form(s->unregistered);
  if (*form) return 0;
  int status = mlir_fail(r, s->at, XLAC_E_SYNTAX, "custom op '%s' has no known pretty syntax", s->unregistered->s);
  return base_hint(r->err, status, "write it in the generic form, \"%s\"(...) : (...) -> ...", s->unregistered->s);
}
