/* How axes came where they are: <[{step-2 = [{"y" = operand-1 -> [operand-0, result-0]}]}]> */
#include "read.h"

/* "operand-1" */
static int sdy_read_edge_value(mlir_reader *r, sdy_edge_value *out) {
  out->result = mlir_eat_word(r, "result");
  if (!out->result && !mlir_eat_word(r, "operand")) return mlir_expected(r, "'operand' or 'result'");
  TRY(mlir_want(r, "-"));
  return mlir_read_int(r, &out->index);
}

/* "{"y" = operand-1 -> [result-0]}" */
static int sdy_read_edge(mlir_reader *r, sdy_edge *out) {
  sdy_edge_value *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  TRY(sdy_read_axis(r, &out->axis));
  TRY(mlir_want(r, "="));
  TRY(sdy_read_edge_value(r, &out->from));
  TRY(mlir_want(r, "->"));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_edge_value(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->n = n;
  out->to = v;
  return mlir_want(r, "}");
}

/* "{step-2 = [...]}" */
static int sdy_read_step(mlir_reader *r, sdy_step *out) {
  sdy_edge *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "{"));
  if (!mlir_eat_word(r, "step")) return mlir_expected(r, "'step'");
  TRY(mlir_want(r, "-"));
  TRY(mlir_read_int(r, &out->index));
  TRY(mlir_want(r, "="));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_edge(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  out->n = n;
  out->edges = v;
  return mlir_want(r, "}");
}

int sdy_read_edges(mlir_reader *r, sdy_edges *out) {
  const char *at = r->lx.p;
  char fault[200];
  sdy_step *v = NULL;
  uint32_t n = 0;
  TRY(mlir_want(r, "<"));
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      TRY(SDY_MORE(r, v, n));
      TRY(sdy_read_step(r, &v[n++]));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  *out = (sdy_edges){n, v};
  TRY(mlir_want(r, ">"));
  bool broken = sdy_edges_are_broken(out, fault, sizeof fault);
  return broken ? mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "%s", fault) : 0;
}
