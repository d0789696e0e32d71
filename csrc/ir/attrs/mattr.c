/* Making and reading MLIR attributes. */
#include <stdlib.h>

#include "../ir.h"

static ir_mattr *mattr_new(ir_module *m, ir_mattr_kind kind) {
  ir_mattr *a = BASE_NEW(&m->arena, ir_mattr);
  if (a) a->kind = (uint8_t)kind;
  return a;
}

const ir_mattr *ir_m_unit(ir_module *m) {
  return mattr_new(m, IR_M_UNIT);
}

const ir_mattr *ir_m_bool(ir_module *m, bool v) {
  ir_mattr *a = mattr_new(m, IR_M_BOOL);
  if (a) a->v.b = v;
  return a;
}

const ir_mattr *ir_m_int(ir_module *m, const ir_type *type, int64_t v) {
  ir_mattr *a = mattr_new(m, IR_M_INTEGER);
  if (!a || !type) return NULL;
  a->type = type;
  a->v.i = v;
  return a;
}

const ir_mattr *ir_m_i64(ir_module *m, int64_t v) {
  return ir_m_int(m, ir_element(m, XLAC_S64, NULL), v);
}

const ir_mattr *ir_m_i32(ir_module *m, int64_t v) {
  return ir_m_int(m, ir_element(m, XLAC_S32, NULL), v);
}

const ir_mattr *ir_m_float(ir_module *m, const ir_type *type, double v) {
  ir_mattr *a = mattr_new(m, IR_M_FLOAT);
  if (!a || !type) return NULL;
  a->type = type;
  a->v.f = v;
  if (type->kind == IR_TYPE_ELEMENT) base_store_f64((base_dtype)type->dtype, &a->bits, v);
  return a;
}

const ir_mattr *ir_m_string(ir_module *m, const char *s, size_t n) {
  ir_mattr *a = mattr_new(m, IR_M_STRING);
  return a && (a->str = ir_intern(m, s, n)) ? a : NULL;
}

const ir_mattr *ir_m_type(ir_module *m, const ir_type *type) {
  ir_mattr *a = mattr_new(m, IR_M_TYPE);
  if (a) a->type = type;
  return a && type ? a : NULL;
}

static const ir_mattrs *mattr_copy_list(ir_module *m, uint32_t n, const ir_mattr *const *v) {
  ir_mattrs *list = base_arena_alloc(&m->arena, sizeof *list + n * sizeof *list->v);
  if (!list) return NULL;
  list->n = n;
  for (uint32_t i = 0; i < n; i++)
    if (!(list->v[i] = v[i])) return NULL;
  return list;
}

static const ir_mattr *mattr_list(ir_module *m, ir_mattr_kind kind, uint32_t n, const ir_mattr *const *v) {
  ir_mattr *a = mattr_new(m, kind);
  return a && (a->v.list = mattr_copy_list(m, n, v)) ? a : NULL;
}

const ir_mattr *ir_m_symbol(ir_module *m, const char *s, size_t n) {
  const ir_mattr *root = ir_m_string(m, s, n);
  return mattr_list(m, IR_M_SYMBOL, 1, &root);
}

const ir_mattr *ir_m_array(ir_module *m, uint32_t n, const ir_mattr *const *v) {
  return mattr_list(m, IR_M_ARRAY, n, v);
}

const ir_mattr *ir_m_dict(ir_module *m, const ir_mdict *d) {
  ir_mattr *a = mattr_new(m, IR_M_DICT);
  if (a) a->v.dict = d;
  return a && d ? a : NULL;
}

static const ir_mattr *mattr_literal(ir_module *m, ir_mattr_kind kind, const ir_type *type, const ir_literal *l) {
  ir_mattr *a = mattr_new(m, kind);
  if (!a || !type || !l) return NULL;
  a->type = type;
  a->v.literal = l;
  return a;
}

static const ir_literal *mattr_integers(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims,
                                        const int64_t *v) {
  const ir_type *type = ir_tensor(m, dtype, rank, dims, NULL, NULL, NULL);
  ir_literal *l = type ? ir_literal_new(m, type) : NULL;
  if (!l) return NULL;
  if (dtype == XLAC_S64 && type->count) memcpy(l->data, v, (size_t)type->count * sizeof *v);
  if (dtype == XLAC_PRED)
    for (int64_t i = 0; i < type->count; i++) ((uint8_t *)l->data)[i] = v[i] != 0;
  return l;
}

const ir_mattr *ir_m_i64s(ir_module *m, uint32_t n, const int64_t *v) {
  int64_t dims[1] = {n};
  return mattr_literal(m, IR_M_DENSE_ARRAY, ir_element(m, XLAC_S64, NULL), mattr_integers(m, XLAC_S64, 1, dims, v));
}

const ir_mattr *ir_m_bools(ir_module *m, uint32_t n, const int64_t *v) {
  int64_t dims[1] = {n};
  return mattr_literal(m, IR_M_DENSE_ARRAY, ir_element(m, XLAC_PRED, NULL), mattr_integers(m, XLAC_PRED, 1, dims, v));
}

static bool mattr_is_splat(const ir_literal *l) {
  size_t size = base_dtype_bytes((base_dtype)l->type->dtype);
  const char *p = l->data;
  for (int64_t i = 1; i < l->type->count; i++)
    if (memcmp(p, p + (size_t)i * size, size) != 0) return false;
  return l->type->count > 0;
}

/* MLIR stores elements that are all alike as a splat. */
const ir_mattr *ir_m_dense_i64(ir_module *m, uint32_t rank, const int64_t *dims, const int64_t *v) {
  const ir_literal *l = mattr_integers(m, XLAC_S64, rank, dims, v);
  if (!l) return NULL;
  if (!mattr_is_splat(l)) return mattr_literal(m, IR_M_DENSE, l->type, l);
  return ir_m_dense(m, l->type, mattr_integers(m, XLAC_S64, 0, NULL, v), true);
}

const ir_mattr *ir_m_dense(ir_module *m, const ir_type *type, const ir_literal *l, bool splat) {
  ir_mattr *a = (ir_mattr *)(uintptr_t)mattr_literal(m, IR_M_DENSE, type, l);
  if (a) a->splat = splat;
  return a;
}

const ir_mattr *ir_m_enum(ir_module *m, const char *dialect, const char *name, const char *word) {
  const ir_enum_info *info = ir_enum_find(dialect, strlen(dialect), name, strlen(name));
  ir_mattr *a = mattr_new(m, IR_M_ENUM);
  assert(info);
  if (!a || !(a->str = ir_intern(m, word, strlen(word)))) return NULL;
  a->dialect = info->dialect;
  a->name = info->name;
  return a;
}

const ir_mattr *ir_m_struct(ir_module *m, const char *dialect, const char *name, uint32_t n, const ir_mentry *fields) {
  const ir_struct_info *info = ir_struct_find(dialect, strlen(dialect), name, strlen(name));
  ir_mattr *a = mattr_new(m, IR_M_STRUCT);
  ir_mdict *d = base_arena_alloc(&m->arena, sizeof *d + n * sizeof *d->v);
  assert(info);
  if (!a || !d) return NULL;
  d->n = n;
  if (n) memcpy(d->v, fields, n * sizeof *fields);
  a->dialect = info->dialect;
  a->name = info->name;
  a->v.dict = d;
  return a;
}

const ir_mattr *ir_m_loc(ir_module *m, const ir_mloc *loc) {
  struct {
    ir_mattr attr;
    ir_mloc loc;
  } *both = base_arena_alloc(&m->arena, sizeof *both);
  if (!both) return NULL;
  both->loc = *loc;
  both->attr = (ir_mattr){.kind = IR_M_LOC, .v = {.loc = &both->loc}};
  return &both->attr;
}

/* --- dictionaries --- */

static int mattr_compare_keys(const base_istr *a, const base_istr *b) {
  size_t n = a->n < b->n ? a->n : b->n;
  int c = memcmp(a->s, b->s, n);
  return c ? c : (a->n > b->n) - (a->n < b->n);
}

static int mattr_compare_entries(const void *a, const void *b) {
  return mattr_compare_keys(((const ir_mentry *)a)->key, ((const ir_mentry *)b)->key);
}

const ir_mdict *ir_mdict_make(ir_module *m, uint32_t n, const ir_mentry *entries) {
  ir_mdict *d = base_arena_alloc(&m->arena, sizeof *d + n * sizeof *d->v);
  if (!d) return NULL;
  d->n = n;
  if (n) memcpy(d->v, entries, n * sizeof *entries);
  if (n > 1) qsort(d->v, n, sizeof *d->v, mattr_compare_entries);
  return d;
}

const ir_mattr *ir_mdict_get(const ir_mdict *d, const char *key) {
  for (uint32_t i = 0; d && i < d->n; i++)
    if (strcmp(d->v[i].key->s, key) == 0) return d->v[i].value;
  return NULL;
}

/* A dictionary that was made before of the same three. Neither it nor they ever change, so ops share it: a pass gives
 * thousands of ops the same few attributes. */
typedef struct ir_mdict_memo {
  const ir_mdict *from, *to;
  const base_istr *key;
  const ir_mattr *value;
} ir_mdict_memo;
enum { MATTR_MEMOS = 128 };

/* Where it is, or belongs; NULL where there is no memory to remember things. */
static ir_mdict_memo *mattr_memo(ir_module *m, const ir_mdict *d, const base_istr *key, const ir_mattr *value) {
  if (!m->dicts) m->dicts = base_arena_zalloc(&m->arena, MATTR_MEMOS * sizeof *m->dicts);
  if (!m->dicts) return NULL;
  uint64_t hash = (base_key(d) ^ base_key(key) << 1) * UINT64_C(0x9E3779B97F4A7C15);
  hash = (hash ^ hash >> 32 ^ base_key(value)) * UINT64_C(0x9E3779B97F4A7C15);
  return &m->dicts[(hash >> 32) % MATTR_MEMOS];
}

static const ir_mdict *mattr_make_with(ir_module *m, const ir_mdict *d, const base_istr *key, const ir_mattr *value) {
  uint32_t n = 0, old = d ? d->n : 0;
  ir_mdict *to = base_arena_alloc(&m->arena, sizeof *to + (old + 1) * sizeof *to->v);
  if (!to) return NULL;
  for (uint32_t i = 0; i < old; i++)
    if (strcmp(d->v[i].key->s, key->s) != 0) to->v[n++] = d->v[i];
  if (value) to->v[n++] = (ir_mentry){key, value};
  to->n = n;
  qsort(to->v, n, sizeof *to->v, mattr_compare_entries);
  return to;
}

const ir_mdict *ir_mdict_with(ir_module *m, const ir_mdict *d, const char *key, const ir_mattr *value) {
  const base_istr *name = ir_intern(m, key, strlen(key));
  ir_mdict_memo *memo = name ? mattr_memo(m, d, name, value) : NULL;
  if (memo && memo->to && memo->from == d && memo->key == name && memo->value == value) return memo->to;
  const ir_mdict *to = name ? mattr_make_with(m, d, name, value) : NULL;
  if (to && memo) *memo = (ir_mdict_memo){d, to, name, value};
  return to;
}

/* --- reading --- */

const ir_mattr *ir_mattr_of(const ir_op *op, const char *key) {
  return ir_mdict_get(op->mlir, key);
}

const ir_mattr *ir_m_field(const ir_mattr *a, const char *key) {
  assert(!a || a->kind == IR_M_STRUCT || a->kind == IR_M_DICT);
  return a ? ir_mdict_get(a->v.dict, key) : NULL;
}

static int64_t literal_int(const ir_literal *l, int64_t i) {
  base_dtype t = (base_dtype)l->type->dtype;
  size_t size = base_dtype_bytes(t);
  int64_t v = 0;
  memcpy(&v, (const char *)l->data + (size_t)i * size, size); /* little-endian hosts only, as everywhere */
  unsigned shift = 64 - 8 * (unsigned)size;
  bool is_signed = base_dtype_table[t].kind == BASE_KIND_SINT;
  return is_signed ? (int64_t)((uint64_t)v << shift) >> shift : v;
}

static const int64_t *literal_ints(const ir_mattr *a, base_arena *arena, uint32_t *n) {
  const ir_literal *l = a->v.literal;
  int64_t count = a->splat ? a->type->count : l ? l->type->count : 0;
  unsigned kind = l ? base_dtype_table[l->type->dtype].kind : BASE_KIND_FLOAT;
  if (kind == BASE_KIND_FLOAT || kind == BASE_KIND_COMPLEX || count > UINT32_MAX) return NULL;
  int64_t *v = BASE_ARRAY(arena, int64_t, (size_t)count + 1);
  for (int64_t i = 0; v && i < count; i++) v[i] = literal_int(l, a->splat ? 0 : i);
  *n = v ? (uint32_t)count : 0;
  return v;
}

static const int64_t *list_ints(const ir_mattrs *list, base_arena *arena, uint32_t *n) {
  int64_t *v = BASE_ARRAY(arena, int64_t, list->n + 1u);
  for (uint32_t i = 0; v && i < list->n; i++) {
    if (list->v[i]->kind != IR_M_INTEGER) return NULL;
    v[i] = list->v[i]->v.i;
  }
  *n = v ? list->n : 0;
  return v;
}

const int64_t *ir_m_ints(const ir_mattr *a, base_arena *arena, uint32_t *n) {
  *n = 0;
  if (!a) return NULL;
  if (a->kind == IR_M_ARRAY) return list_ints(a->v.list, arena, n);
  return a->kind == IR_M_DENSE || a->kind == IR_M_DENSE_ARRAY ? literal_ints(a, arena, n) : NULL;
}

int64_t ir_m_get_int(const ir_op *op, const char *key, int64_t otherwise) {
  const ir_mattr *a = ir_mattr_of(op, key);
  return a && a->kind == IR_M_INTEGER ? a->v.i : otherwise;
}

bool ir_m_get_bool(const ir_op *op, const char *key) {
  const ir_mattr *a = ir_mattr_of(op, key);
  return a && (a->kind == IR_M_UNIT || (a->kind == IR_M_BOOL && a->v.b));
}

const char *ir_m_get_str(const ir_op *op, const char *key) {
  const ir_mattr *a = ir_mattr_of(op, key);
  if (a && a->kind == IR_M_SYMBOL) a = a->v.list->v[0];
  return a && (a->kind == IR_M_STRING || a->kind == IR_M_ENUM) ? a->str->s : "";
}

bool ir_m_set(ir_op *op, const char *key, const ir_mattr *value) {
  ir_module *m = op->parent->module;
  const ir_mdict *d = ir_mdict_with(m, op->mlir, key, value);
  if (d) op->mlir = d;
  m->verified = false;
  return d != NULL;
}
