/* Dictionaries of attributes, and the attributes of the op that is being read. */
#include "read.h"

int mlir_add_attr(mlir_reader *r, const char *name, const ir_mattr *value) {
  ir_mentry e = {mlir_intern_word(r, name), value};
  return e.key && value && BASE_VEC_PUSH(r->alloc, &r->entries, e) ? 0 : mlir_no_memory(r);
}

static int mlir_read_entry(mlir_reader *r, uint32_t from) {
  const char *at = r->lx.p;
  ir_mentry e;
  if (*at == '"') {
    TRY(mlir_read_string(r, &e.key));
  } else {
    base_slice w = mlir_word(r);
    if (w.n == 0) return mlir_expected(r, "an attribute name");
    if (!(e.key = ir_intern(r->m, w.p, w.n))) return mlir_no_memory(r);
    mlir_skip_word(r, w);
  }
  for (uint32_t i = from; i < r->entries.n; i++)
    if (r->entries.items[i].key == e.key)
      return mlir_fail(r, at, XLAC_E_BAD_ATTRIBUTE, "duplicate key '%s' in dictionary attribute", e.key->s);
  if (mlir_eat(r, "=")) {
    TRY(mlir_read_attr(r, &e.value));
  } else if (!(e.value = ir_m_unit(r->m))) {
    return mlir_no_memory(r);
  }
  return BASE_VEC_PUSH(r->alloc, &r->entries, e) ? 0 : mlir_no_memory(r);
}

int mlir_read_entries(mlir_reader *r) {
  uint32_t from = r->entries.n;
  TRY(mlir_want(r, "{"));
  if (mlir_eat(r, "}")) return 0;
  do TRY(mlir_read_entry(r, from));
  while (mlir_eat(r, ","));
  return mlir_want(r, "}");
}

int mlir_read_own_attrs(mlir_reader *r, mlir_op_state *s) {
  if (*r->lx.p != '{') return 0;
  s->dict = r->lx.p;
  return mlir_read_entries(r);
}

int mlir_take_dict(mlir_reader *r, uint32_t from, const ir_mdict **out) {
  *out = NULL;
  assert(from <= r->entries.n);
  uint32_t n = r->entries.n - from;
  r->entries.n = from;
  if (n == 0) return 0;
  mlir_entries_memo *seen = mlir_recall_entries(r, MLIR_MEMO_DICT, n, r->entries.items + from);
  if (seen && seen->what) {
    *out = seen->what;
    return 0;
  }
  *out = ir_mdict_make(r->m, n, r->entries.items + from);
  if (seen) seen->what = *out;
  return *out ? 0 : mlir_no_memory(r);
}
