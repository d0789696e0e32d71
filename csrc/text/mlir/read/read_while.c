/* "while(%iterArg = %0) : t cond {...} do {...}": regions whose arguments are named outside them. */
#include "read_custom.h"

/* "%iterArg = %init, ...": operands onto the stack; names are kept beside them for both regions. */
static int mlir_read_iter_args(mlir_reader *r, mlir_op_state *s, const base_istr ***names) {
  uint32_t cap = 0;
  TRY(mlir_want(r, "("));
  *names = NULL;
  if (!mlir_eat(r, ")")) {
    do {
      const char *p = r->lx.p + 1, *e = p;
      if (r->lx.p[0] != '%') return mlir_expected(r, "an argument such as %iterArg");
      while (text_is(*e, TEXT_NAME) || *e == '$') e++;
      uint32_t n = r->values.n - s->values;
      if (n == cap) {
        const base_istr **more = BASE_ARRAY(&r->m->arena, const base_istr *, cap ? cap * 2 : 8);
        if (!more) return mlir_no_memory(r);
        if (cap) memcpy(more, *names, cap * sizeof *more);
        *names = more;
        cap = cap ? cap * 2 : 8;
      }
      if (!((*names)[n] = ir_intern(r->m, p, (size_t)(e - p)))) return mlir_no_memory(r);
      r->lx.p = e;
      text_skip(&r->lx);
      TRY(mlir_want(r, "="));
      TRY(mlir_read_operand(r));
    } while (mlir_eat(r, ","));
    TRY(mlir_want(r, ")"));
  }
  s->n_values = r->values.n - s->values;
  return 0;
}

/* A region with one argument for each of the n types from `types` on. */
int mlir_read_region_with(mlir_reader *r, const char *at, uint32_t n, const base_istr *const *names,
                          const ir_type *const *types) {
  ir_computation *c = mlir_new_region(r);
  if (!c) return mlir_no_memory(r);
  uint32_t mark = r->names.n;
  for (uint32_t i = 0; i < n; i++) TRY(mlir_add_arg(r, c, at, names[i], types[i]));
  TRY(mlir_read_region_body(r, c));
  mlir_unbind(r, mark);
  return BASE_VEC_PUSH(r->alloc, &r->regions, c) ? 0 : mlir_no_memory(r);
}

int mlir_read_while_types(mlir_reader *r, mlir_op_state *s) {
  if (s->n_values == 0) return mlir_set_results(r, s, 0, NULL);
  uint32_t from = r->types.n;
  TRY(mlir_want(r, ":"));
  do {
    const ir_type *t;
    TRY(mlir_read_type(r, &t));
    if (!BASE_VEC_PUSH(r->alloc, &r->types, t)) return mlir_no_memory(r);
  } while (mlir_eat(r, ","));
  TRY(mlir_check_operand_types(r, s, from, r->types.n - from));
  TRY(mlir_set_results(r, s, s->n_values, r->types.items + from));
  r->types.n = from;
  return 0;
}

int mlir_read_while(mlir_reader *r, mlir_op_state *s) {
  const base_istr **names;
  const char *at = r->lx.p;
  TRY(mlir_read_iter_args(r, s, &names));
  TRY(mlir_read_while_types(r, s));
  if (mlir_eat_word(r, "attributes")) TRY(mlir_read_entries(r));
  TRY(mlir_want_word(r, "cond"));
  TRY(mlir_read_region_with(r, at, s->n_values, names, s->result_types));
  TRY(mlir_want_word(r, "do"));
  return mlir_read_region_with(r, at, s->n_values, names, s->result_types);
}
