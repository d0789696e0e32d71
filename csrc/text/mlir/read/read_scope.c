/* Names of values: what they stand for while their region is read, and their uses. Most names are numbers, and for
 * these a table by number takes the place of interning and hashing. */
#include "read.h"

enum { MLIR_NO_NUMBER = UINT32_MAX };

/* What a name says as a number, where the table by number is to hold it: "0", "17", not "017". Larger ones than a text
 * of this size would count up to are names like others. */
static uint32_t mlir_number_of(const mlir_reader *r, const char *p, size_t n) {
  uint32_t v = 0;
  if (n == 0 || n > 9 || (n > 1 && *p == '0')) return MLIR_NO_NUMBER;
  for (size_t i = 0; i < n; i++) {
    if (!text_is(p[i], TEXT_DIGIT)) return MLIR_NO_NUMBER;
    v = v * 10 + (uint32_t)(p[i] - '0');
  }
  return v < (size_t)(r->lx.end - r->lx.text) ? v : MLIR_NO_NUMBER;
}

/* The newest entry of a name, from 1; 0 for none. */
static uint32_t mlir_newest(const mlir_reader *r, uint32_t number, const base_istr *name) {
  uint64_t at = 0;
  if (number != MLIR_NO_NUMBER) return number < r->by_number.n ? r->by_number.items[number] : 0;
  return name && base_map_get(&r->by_name, base_key(name), &at) ? (uint32_t)at : 0;
}

static bool mlir_set_newest(mlir_reader *r, uint32_t number, const base_istr *name, uint32_t at) {
  mlir_numbers *t = &r->by_number;
  if (number == MLIR_NO_NUMBER) return base_map_set(&r->by_name, base_key(name), at);
  if (number >= t->n) {
    if (!BASE_VEC_RESERVE(r->alloc, t, (size_t)number + 1)) return false;
    memset(t->items + t->n, 0, (t->cap - t->n) * sizeof *t->items);
    t->n = t->cap;
  }
  t->items[number] = at;
  return true;
}

int mlir_bind(mlir_reader *r, const char *at, const base_istr *name, ir_op *op, uint32_t index, uint32_t count) {
  uint32_t number = mlir_number_of(r, name->s, name->n);
  assert(index + count <= UINT16_MAX); /* as many as an op has results */
  mlir_name n = {name, op, (uint16_t)index, (uint16_t)count, mlir_newest(r, number, name)};
  if (n.hidden > r->isolated_at)
    return mlir_fail(r, at, XLAC_E_DUPLICATE_NAME, "redefinition of SSA value '%%%s'", name->s);
  if (!BASE_VEC_PUSH(r->alloc, &r->names, n)) return mlir_no_memory(r);
  return mlir_set_newest(r, number, name, r->names.n) ? 0 : mlir_no_memory(r);
}

void mlir_unbind(mlir_reader *r, uint32_t mark) {
  while (r->names.n > mark) {
    mlir_name *n = &r->names.items[--r->names.n];
    /* The name is there already, so setting it can't fail. */
    bool set = mlir_set_newest(r, mlir_number_of(r, n->name->s, n->name->n), n->name, n->hidden);
    assert(set);
    (void)set;
  }
}

/* The text of "%name" without its '%', taken. */
static int mlir_take_value_name(mlir_reader *r, base_slice *out) {
  if (*r->lx.p != '%') return mlir_expected(r, "a value such as %0");
  const char *p = r->lx.p + 1, *e = p;
  while (text_is(*e, TEXT_NAME) || *e == '$') e++;
  if (e == p) return mlir_expected(r, "a value such as %0");
  if (e[-1] == '-') e--; /* "%0->" */
  *out = (base_slice){p, (size_t)(e - p)};
  r->lx.p = e;
  text_skip(&r->lx);
  return 0;
}

int mlir_read_value_name(mlir_reader *r, const base_istr **out) {
  base_slice name;
  TRY(mlir_take_value_name(r, &name));
  *out = ir_intern(r->m, name.p, name.n);
  return *out ? 0 : mlir_no_memory(r);
}

static const mlir_name *mlir_visible(const mlir_reader *r, uint32_t at) {
  return at > r->isolated_at ? &r->names.items[at - 1] : NULL;
}

const mlir_name *mlir_find_value(const mlir_reader *r, base_slice name) {
  uint32_t number = mlir_number_of(r, name.p, name.n);
  const base_istr *s = number == MLIR_NO_NUMBER ? base_intern_find(&r->m->strings, name.p, name.n) : NULL;
  return mlir_visible(r, mlir_newest(r, number, s));
}

int mlir_read_operand(mlir_reader *r) {
  const char *at = r->lx.p;
  base_slice name;
  TRY(mlir_take_value_name(r, &name));
  int64_t index = 0;
  if (*r->lx.p == '#' && text_is(r->lx.p[1], TEXT_DIGIT)) {
    r->lx.p++;
    TRY(mlir_read_int(r, &index));
  }
  const mlir_name *n = mlir_find_value(r, name);
  int shown = name.n < 100 ? (int)name.n : 100;
  if (!n) return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "use of undeclared SSA value name '%%%.*s'", shown, name.p);
  if (index < 0 || index >= n->count)
    return mlir_fail(r, at, XLAC_E_UNKNOWN_NAME, "reference to invalid result number: %%%.*s has %u", shown, name.p,
                     n->count);
  ir_value v = {n->first, n->index + (uint32_t)index};
  return BASE_VEC_PUSH(r->alloc, &r->values, v) ? 0 : mlir_no_memory(r);
}
