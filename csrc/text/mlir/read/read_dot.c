/* "contracting_dims = [1] x [0], precision = [...]": the syntaxes of dot_general and of precisions. */
#include "read_custom.h"

/* "[DEFAULT, HIGHEST]" */
static int mlir_read_new_precisions(mlir_reader *r, const ir_mattr **out) {
  const ir_enum_info *info = ir_enum_find("stablehlo", 9, "precision", 9);
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
  *out = ir_m_array(r->m, r->attrs.n - from, r->attrs.items + from);
  r->attrs.n = from;
  return *out ? 0 : mlir_no_memory(r);
}

static int mlir_read_precisions(mlir_reader *r) {
  base_slice seen = mlir_list_text(r);
  mlir_memo *place;
  const ir_mattr *list = mlir_recall(r, MLIR_MEMO_PRECISIONS, seen, &place);
  if (list) {
    mlir_pass(r, seen);
  } else {
    TRY(mlir_read_new_precisions(r, &list));
    mlir_remember(r, place, MLIR_MEMO_PRECISIONS, seen, list);
  }
  return mlir_add_attr(r, "precision_config", list);
}

/* ", precision = [...]" and ", algorithm = <...>", each if there. */
int mlir_read_precision_tail(mlir_reader *r) {
  while (*r->lx.p == ',') {
    text_lexer back = r->lx;
    mlir_eat(r, ",");
    if (mlir_eat_word(r, "precision")) {
      TRY(mlir_want(r, "="));
      TRY(mlir_read_precisions(r));
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
  TRY(mlir_read_bare_ints(r, false, lhs));
  TRY(mlir_want(r, "x"));
  return mlir_read_bare_ints(r, false, rhs);
}

/* "batching_dims = [0] x [0], contracting_dims = [1] x [0]" and the tail. */
int mlir_read_dot(mlir_reader *r) {
  if (!r->no_i64s && !(r->no_i64s = ir_m_i64s(r->m, 0, NULL))) return mlir_no_memory(r);
  const ir_mattr *lb = r->no_i64s, *rb = lb, *lc, *rc;
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
  mlir_entries_memo *seen = mlir_recall_entries(r, MLIR_MEMO_DOT, 4, e);
  assert(seen);
  if (!seen->what) seen->what = ir_m_struct(r->m, "stablehlo", "dot", 4, e);
  TRY(mlir_add_attr(r, "dot_dimension_numbers", seen->what));
  return mlir_read_precision_tail(r);
}
