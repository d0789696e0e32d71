/* The pretty forms of sdy ops that no string describes. */
#include "../read/read_custom.h"
#include "read.h"

/* The "@mesh" of sdy.mesh. */
int sdy_read_symbol(mlir_reader *r) {
  const base_istr *name;
  TRY(mlir_read_symbol_name(r, &name));
  return mlir_add_attr(r, "sym_name", ir_m_string(r->m, name->s, name->n));
}

static int sdy_read_word_of(mlir_reader *r, const char *key, uint32_t n, const char *const *words, bool *found) {
  *found = false;
  for (uint32_t i = 0; i < n && !*found; i++) {
    if (!mlir_eat_word(r, words[i])) continue;
    *found = true;
    TRY(mlir_add_attr(r, key, ir_m_i32(r->m, i)));
  }
  return 0;
}

/* "allowed_direction=FORWARD" */
int sdy_read_direction(mlir_reader *r) {
  static const char *const words[] = {"NONE", "FORWARD", "BACKWARD", "BOTH"};
  bool found;
  TRY(mlir_want_word(r, "allowed_direction"));
  TRY(mlir_want(r, "="));
  TRY(sdy_read_word_of(r, "allowed_direction", 4, words, &found));
  return found ? 0 : mlir_expected(r, "NONE, FORWARD, BACKWARD or BOTH");
}

/* "max", where there is a word. */
int sdy_read_reduction(mlir_reader *r) {
  static const char *const words[] = {"sum", "max", "min"};
  bool found;
  return sdy_read_word_of(r, "reduction_op", 3, words, &found);
}

/* "in_shardings=[<...>, <...>]" */
static int sdy_read_stripped(mlir_reader *r, const char *word) {
  TRY(mlir_want_word(r, word));
  TRY(mlir_want(r, "="));
  sdy_shardings list;
  TRY(sdy_read_sharding_list(r, &list));
  return mlir_add_attr(r, word, sdy_attr(r->m, SDY_SHARDINGS, sdy_shardings_make(r->m, list.n, list.v)));
}

/* "(%arg1: t, %arg2: t) {...}": arguments in front of the block, from where outer values are not seen. */
static int sdy_read_region(mlir_reader *r) {
  ir_computation *c = mlir_new_region(r);
  if (!c) return mlir_no_memory(r);
  uint32_t mark = r->names.n, outer = r->isolated_at;
  r->isolated_at = mark;
  TRY(mlir_want(r, "("));
  if (!mlir_eat(r, ")")) {
    do TRY(mlir_read_arg(r, c, true));
    while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  TRY(mlir_read_region_body(r, c));
  mlir_unbind(r, mark);
  r->isolated_at = outer;
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

static int sdy_read_body(mlir_reader *r, mlir_op_state *s) {
  TRY(sdy_read_region(r));
  TRY(mlir_read_own_attrs(r, s));
  return mlir_read_op_type(r, s);
}

int sdy_read_manual(mlir_reader *r, mlir_op_state *s) {
  const ir_mattr *axes;
  TRY(mlir_read_parenthesised(r, s));
  TRY(sdy_read_stripped(r, "in_shardings"));
  TRY(sdy_read_stripped(r, "out_shardings"));
  TRY(mlir_want_word(r, "manual_axes"));
  TRY(mlir_want(r, "="));
  TRY(sdy_read_bare(r, SDY_MANUAL_AXES, &axes));
  TRY(mlir_add_attr(r, "manual_axes", axes));
  return sdy_read_body(r, s);
}

static bool sdy_word_is(mlir_reader *r, const char *word) {
  return base_slice_is(mlir_word(r), word);
}

int sdy_read_named_computation(mlir_reader *r, mlir_op_state *s) {
  const base_istr *name;
  TRY(mlir_want(r, "<"));
  TRY(mlir_read_string(r, &name));
  TRY(mlir_add_attr(r, "name", ir_m_string(r->m, name->s, name->n)));
  TRY(mlir_want(r, ">"));
  TRY(mlir_read_parenthesised(r, s));
  if (sdy_word_is(r, "in_shardings")) TRY(sdy_read_stripped(r, "in_shardings"));
  if (sdy_word_is(r, "out_shardings")) TRY(sdy_read_stripped(r, "out_shardings"));
  return sdy_read_body(r, s);
}
