/* "contracting_dims = [1] x [0], precision = [...]": the syntaxes of dot_general and of precisions. */
#include "mlir_read_custom.h"

/* "[DEFAULT, HIGHEST]" */
static int mlir_read_precisions(mlir_reader *r, const char *dialect) {
  const ir_enum_info *info = ir_enum_find(dialect, strlen(dialect), "precision", 9);
  uint32_t from = r->attrs.n;
  TRY(mlir_want(r, "["));
  if (!mlir_eat(r, "]")) {
    do {
      const ir_mattr *a;
      TRY(mlir_read_enum(r, info, &a));
      if (!BASE_VEC_PUSH(r->alloc, &r->attrs, a)) return mlir_no_memory(r);
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, "]"));
  }
  const ir_mattr *list = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  return mlir_add_attr(r, "precision_config", list);
}

/* ", precision = [...]" and ", algorithm = <...>", each if there. */
int mlir_read_precision_tail(mlir_reader *r) {
  while (*r->lx.p == ',') {
    text_lexer back = r->lx;
    mlir_eat(r, ",");
    if (mlir_eat_word(r, "precision")) {
      TRY(mlir_want(r, "="));
      TRY(mlir_read_precisions(r, "stablehlo"));
    } else if (mlir_eat_word(r, "algorithm")) {
      const ir_mattr *a;
      TRY(mlir_want(r, "="));
      TRY(mlir_read_struct(r, ir_struct_find("stablehlo", 9, "dot_algorithm", 13), &a));
      TRY(mlir_add_attr(r, "algorithm", a));
    } else {
      r->lx = back;
      return mlir_expected(r, "precision or algorithm");
    }
  }
  return 0;
}

/* "[0] x [1]" onto two fields. */
static int mlir_read_dim_pair(mlir_reader *r, const ir_mattr **lhs, const ir_mattr **rhs) {
  uint32_t from;
  TRY(mlir_read_dims(r, &from));
  *lhs = ir_m_i64s(r->m, r->ints.n - from, r->ints.items + from);
  r->ints.n = from;
  TRY(mlir_want(r, "x"));
  TRY(mlir_read_dims(r, &from));
  *rhs = ir_m_i64s(r->m, r->ints.n - from, r->ints.items + from);
  r->ints.n = from;
  return *lhs && *rhs ? 0 : mlir_no_memory(r);
}

/* "batching_dims = [0] x [0], contracting_dims = [1] x [0]" and the tail. */
int mlir_read_dot(mlir_reader *r) {
  const ir_mattr *lb = ir_m_i64s(r->m, 0, NULL), *rb = lb, *lc, *rc;
  if (mlir_eat_word(r, "batching_dims") || mlir_eat_word(r, "batch_dims")) {
    TRY(mlir_want(r, "="));
    TRY(mlir_read_dim_pair(r, &lb, &rb));
    TRY(mlir_want(r, ","));
  }
  TRY(mlir_want_key(r, "contracting_dims"));
  TRY(mlir_read_dim_pair(r, &lc, &rc));
  ir_mentry e[4];
  TRY(mlir_field(r, &e[0], "lhs_batching_dimensions", lb));
  TRY(mlir_field(r, &e[1], "rhs_batching_dimensions", rb));
  TRY(mlir_field(r, &e[2], "lhs_contracting_dimensions", lc));
  TRY(mlir_field(r, &e[3], "rhs_contracting_dimensions", rc));
  TRY(mlir_add_attr(r, "dot_dimension_numbers", ir_m_struct(r->m, "stablehlo", "dot", 4, e)));
  return mlir_read_precision_tail(r);
}
