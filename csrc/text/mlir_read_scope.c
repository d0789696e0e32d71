/* Names of values: what they stand for while their region is read, and their uses. */
#include "mlir_read.h"

int mlir_bind(mlir_reader *r, const base_istr *name, ir_op *op, uint32_t index, uint32_t count) {
  uint64_t old;
  bool hides = base_map_get(&r->by_name, base_key(name), &old) && old;
  mlir_name n = {name, op, index, count, op->opcode == IR_OP_PARAMETER, hides ? (int64_t)old - 1 : -1};
  if (!BASE_VEC_PUSH(r->alloc, &r->names, n)) return mlir_no_memory(r);
  return base_map_set(&r->by_name, base_key(name), r->names.n) ? 0 : mlir_no_memory(r);
}

void mlir_unbind(mlir_reader *r, uint32_t mark) {
  while (r->names.n > mark) {
    mlir_name *n = &r->names.items[--r->names.n];
    /* The key is there already, so setting it can't fail. */
    bool set = base_map_set(&r->by_name, base_key(n->name), (uint64_t)(n->hidden + 1));
    assert(set);
    (void)set;
  }
}

/* "%name", interned with nothing before it. */
int mlir_read_value_name(mlir_reader *r, const base_istr **out) {
  if (*r->lx.p != '%') return mlir_expected(r, "a value such as %0");
  const char *p = r->lx.p + 1, *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$') e++;
  if (e == p) return mlir_expected(r, "a value such as %0");
  if (e[-1] == '-') e--; /* "%0->" */
  *out = ir_intern(r->m, p, (size_t)(e - p));
  r->lx.p = e;
  text_skip(&r->lx);
  return *out ? 0 : mlir_no_memory(r);
}

const mlir_name *mlir_find_value(const mlir_reader *r, const base_istr *name) {
  uint64_t at;
  if (!base_map_get(&r->by_name, base_key(name), &at) || at == 0 || at <= r->isolated_at) return NULL;
  return &r->names.items[at - 1];
}

int mlir_read_operand(mlir_reader *r) {
  const char *at = r->lx.p;
  const base_istr *name;
  TRY(mlir_read_value_name(r, &name));
  int64_t index = 0;
  if (*r->lx.p == '#' && text_is(r->lx.p[1], TEXT_DIGIT)) {
    r->lx.p++;
    TRY(mlir_read_int(r, &index));
  }
  const mlir_name *n = mlir_find_value(r, name);
  if (!n) return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "use of undeclared SSA value name '%%%s'", name->s);
  if (index < 0 || index >= n->count)
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "reference to invalid result number: %%%s has %u", name->s, n->count);
  ir_value v = {n->first, n->index + (uint32_t)index};
  return BASE_VEC_PUSH(r->alloc, &r->values, v) ? 0 : mlir_no_memory(r);
}
