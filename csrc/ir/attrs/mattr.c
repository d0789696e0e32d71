/* MLIR attributes: making and reading them, equality, hash and copies, and the tables of those with a fixed
 * structure.
 *
 * An attribute is one ir_mattr whose kind says which of its fields count. Attributes never change once they are made:
 * an edit of an op's dictionary makes a new dictionary that shares all other values. They are not uniqued as MLIR's
 * are, so pointers that differ say nothing. */
#include <stdlib.h>

#include "../ir.h"
#include "../sdy/sdy.h"
#include "import_memo.h"

/* Zeroed; NULL when out of memory, as everywhere here. */
static ir_mattr *mattr_new(ir_module *m, ir_mattr_kind kind) {
  assert(m);
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

/* type may be NULL, when making it ran out of memory: then so does this. */
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

/* v must be a value of the type. Besides it its bits are kept, in which alone the payload of a NaN is told. */
const ir_mattr *ir_m_float(ir_module *m, const ir_type *type, double v) {
  ir_mattr *a = mattr_new(m, IR_M_FLOAT);
  if (!a || !type) return NULL;
  a->type = type;
  a->v.f = v;
  if (type->kind == IR_TYPE_ELEMENT) base_store_f64((base_dtype)type->dtype, &a->bits, v);
  return a;
}

/* Bytes as they are, not escaped; a 0 among them is allowed. */
const ir_mattr *ir_m_string(ir_module *m, const char *s, size_t n) {
  ir_mattr *a = mattr_new(m, IR_M_STRING);
  return a && (a->str = ir_intern(m, s, n)) ? a : NULL;
}

const ir_mattr *ir_m_type(ir_module *m, const ir_type *type) {
  ir_mattr *a = mattr_new(m, IR_M_TYPE);
  if (a) a->type = type;
  return a && type ? a : NULL;
}

/* NULL where an element is NULL, so that callers may build lists of makers' results and check once. */
static const ir_mattrs *mattr_copy_list(ir_module *m, uint32_t n, const ir_mattr *const *v) {
  assert(v || n == 0);
  ir_mattrs *list = base_arena_alloc(&m->arena, sizeof *list + n * sizeof *list->v);
  if (!list) return NULL;
  list->n = n;
  for (uint32_t i = 0; i < n; i++)
    if (!(list->v[i] = v[i])) return NULL;
  return list;
}

/* NULL, too, where one of v is. */
static const ir_mattr *mattr_list(ir_module *m, ir_mattr_kind kind, uint32_t n, const ir_mattr *const *v) {
  ir_mattr *a = mattr_new(m, kind);
  return a && (a->v.list = mattr_copy_list(m, n, v)) ? a : NULL;
}

/* @name. Nested references, @a::@b, are made by the reader only. */
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

/* `type` and the literal's type differ in quantised and splat cases. */
static const ir_mattr *mattr_literal(ir_module *m, ir_mattr_kind kind, const ir_type *type, const ir_literal *l) {
  ir_mattr *a = mattr_new(m, kind);
  if (!a || !type || !l) return NULL;
  a->type = type;
  a->v.literal = l;
  return a;
}

/* Elements of i64 or i1, given as int64_t each. */
static const ir_literal *mattr_integers(ir_module *m, base_dtype dtype, uint32_t rank, const int64_t *dims,
                                        const int64_t *v) {
  assert(dtype == XLAC_S64 || dtype == XLAC_PRED);
  const ir_type *type = ir_tensor(m, dtype, rank, dims, NULL, NULL, NULL);
  ir_literal *l = type ? ir_literal_new(m, type) : NULL;
  if (!l) return NULL;
  if (dtype == XLAC_S64 && type->count) memcpy(l->data, v, (size_t)type->count * sizeof *v);
  if (dtype == XLAC_PRED)
    for (int64_t i = 0; i < type->count; i++) ((uint8_t *)l->data)[i] = v[i] != 0;
  return l;
}

/* array<i64: 1, 2>. */
const ir_mattr *ir_m_i64s(ir_module *m, uint32_t n, const int64_t *v) {
  int64_t dims[1] = {n};
  return mattr_literal(m, IR_M_DENSE_ARRAY, ir_element(m, XLAC_S64, NULL), mattr_integers(m, XLAC_S64, 1, dims, v));
}

const ir_mattr *ir_m_bools(ir_module *m, uint32_t n, const int64_t *v) {
  int64_t dims[1] = {n};
  return mattr_literal(m, IR_M_DENSE_ARRAY, ir_element(m, XLAC_PRED, NULL), mattr_integers(m, XLAC_PRED, 1, dims, v));
}

/* No elements are not a splat: MLIR prints dense<> for them. */
static bool mattr_is_splat(const ir_literal *l) {
  assert(l->data || l->type->count == 0);
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

/* `type` may say more than the literal's own type: quantised elements, an encoding. */
const ir_mattr *ir_m_dense(ir_module *m, const ir_type *type, const ir_literal *l, bool splat) {
  ir_mattr *a = (ir_mattr *)(uintptr_t)mattr_literal(m, IR_M_DENSE, type, l);
  if (a) a->splat = splat;
  return a;
}

/* The tables' own spelling of dialect and name is kept, so that these compare by pointer. */
const ir_mattr *ir_m_enum(ir_module *m, const char *dialect, const char *name, int number) {
  const ir_enum_info *info = ir_enum_find(dialect, strlen(dialect), name, strlen(name));
  ir_mattr *a = mattr_new(m, IR_M_ENUM);
  assert(info && number >= 0 && *info->words[number]);
  const char *word = info->words[number];
  if (!a || !(a->str = ir_intern(m, word, strlen(word)))) return NULL;
  a->v.i = number;
  a->dialect = info->dialect;
  a->name = info->name;
  return a;
}

/* Fields stay in the order given, which must be the definition's: that is how they print. Unlike dictionaries they
 * are not sorted. */
const ir_mattr *ir_m_struct(ir_module *m, const char *dialect, const char *name, uint32_t n, const ir_mentry *fields) {
  assert(fields || n == 0);
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

/* One block for both, since every op of a module with locations has such a pair. */
const ir_mattr *ir_m_loc(ir_module *m, const ir_mloc *loc) {
  assert(loc && loc->kind <= IR_LOC_FUSED);
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

/* By bytes, a prefix first: MLIR's order of attribute names (StringRef's <). */
static int mattr_compare_keys(const base_istr *a, const base_istr *b) {
  size_t n = a->n < b->n ? a->n : b->n;
  int c = memcmp(a->s, b->s, n);
  return c ? c : (a->n > b->n) - (a->n < b->n);
}

static int mattr_compare_entries(const void *a, const void *b) {
  return mattr_compare_keys(((const ir_mentry *)a)->key, ((const ir_mentry *)b)->key);
}

/* No key may occur twice: readers report that before. */
const ir_mdict *ir_mdict_make(ir_module *m, uint32_t n, const ir_mentry *entries) {
  assert(entries || n == 0);
  ir_mdict *d = base_arena_alloc(&m->arena, sizeof *d + n * sizeof *d->v);
  if (!d) return NULL;
  d->n = n;
  if (n) memcpy(d->v, entries, n * sizeof *entries);
  if (n > 1) qsort(d->v, n, sizeof *d->v, mattr_compare_entries);
  return d;
}

/* Linear: dictionaries of ops have a few entries. */
const ir_mattr *ir_mdict_get(const ir_mdict *d, const char *key) {
  assert(key);
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

/* Where it is, or belongs; NULL where there is no memory to remember things. Direct-mapped, by the three pointers. */
static ir_mdict_memo *mattr_memo(ir_module *m, const ir_mdict *d, const base_istr *key, const ir_mattr *value) {
  if (!m->dicts) m->dicts = base_arena_zalloc(&m->arena, MATTR_MEMOS * sizeof *m->dicts);
  if (!m->dicts) return NULL;
  uint64_t hash = (base_key(d) ^ base_key(key) << 1) * UINT64_C(0x9E3779B97F4A7C15);
  hash = (hash ^ hash >> 32 ^ base_key(value)) * UINT64_C(0x9E3779B97F4A7C15);
  return &m->dicts[(hash >> 32) % MATTR_MEMOS];
}

/* d without the key, and with (key, value) where value is not NULL. */
static const ir_mdict *mattr_make_with(ir_module *m, const ir_mdict *d, const base_istr *key, const ir_mattr *value) {
  assert(key);
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

/* The memo has one entry for each hash; a later one pushes out an earlier. */
const ir_mdict *ir_mdict_with(ir_module *m, const ir_mdict *d, const char *key, const ir_mattr *value) {
  const base_istr *name = ir_intern(m, key, strlen(key));
  ir_mdict_memo *memo = name ? mattr_memo(m, d, name, value) : NULL;
  if (memo && memo->to && memo->from == d && memo->key == name && memo->value == value) return memo->to;
  const ir_mdict *to = name ? mattr_make_with(m, d, name, value) : NULL;
  if (to && memo) *memo = (ir_mdict_memo){d, to, name, value};
  return to;
}

/* --- reading --- */

/* Inherent and discardable ones alike. */
const ir_mattr *ir_mattr_of(const ir_op *op, const char *key) {
  return ir_mdict_get(op->mlir, key);
}

/* NULL for a field that was not written, and of NULL. */
const ir_mattr *ir_m_field(const ir_mattr *a, const char *key) {
  assert(!a || a->kind == IR_M_STRUCT || a->kind == IR_M_DICT);
  return a ? ir_mdict_get(a->v.dict, key) : NULL;
}

/* Sign-extended or zero-extended as the type says. 4-bit and narrower elements fill their byte. */
static int64_t literal_int(const ir_literal *l, int64_t i) {
  assert(i >= 0 && i < l->type->count);
  base_dtype t = (base_dtype)l->type->dtype;
  size_t size = base_dtype_bytes(t);
  int64_t v = 0;
  memcpy(&v, (const char *)l->data + (size_t)i * size, size); /* little-endian hosts only, as everywhere */
  unsigned shift = 64 - 8 * (unsigned)size;
  bool is_signed = base_dtype_table[t].kind == BASE_KIND_SINT;
  return is_signed ? (int64_t)((uint64_t)v << shift) >> shift : v;
}

/* NULL for floats and complex numbers, for literals whose data is not there, and where a splat stands for more
 * elements than an array may have. */
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

/* One element that is not an integer makes the whole no list of integers. */
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
  assert(arena && n);
  *n = 0;
  if (!a) return NULL;
  if (a->kind == IR_M_ARRAY) return list_ints(a->v.list, arena, n);
  return a->kind == IR_M_DENSE || a->kind == IR_M_DENSE_ARRAY ? literal_ints(a, arena, n) : NULL;
}

/* Of an integer of any width. */
int64_t ir_m_get_int(const ir_op *op, const char *key, int64_t otherwise) {
  const ir_mattr *a = ir_mattr_of(op, key);
  return a && a->kind == IR_M_INTEGER ? a->v.i : otherwise;
}

/* A unit attribute says yes by being there. */
bool ir_m_get_bool(const ir_op *op, const char *key) {
  const ir_mattr *a = ir_mattr_of(op, key);
  return a && (a->kind == IR_M_UNIT || (a->kind == IR_M_BOOL && a->v.b));
}

/* Of a nested symbol its root. */
const char *ir_m_get_str(const ir_op *op, const char *key) {
  const ir_mattr *a = ir_mattr_of(op, key);
  if (a && a->kind == IR_M_SYMBOL) a = a->v.list->v[0];
  return a && a->kind == IR_M_STRING ? a->str->s : "";
}

int ir_m_get_word(const ir_op *op, const char *key) {
  const ir_mattr *a = ir_mattr_of(op, key);
  return a && a->kind == IR_M_ENUM ? (int)a->v.i : 0;
}

/* The op's old dictionary stays as it was, as others may share it. */
bool ir_m_set(ir_op *op, const char *key, const ir_mattr *value) {
  assert(op && key);
  ir_module *m = op->parent->module;
  const ir_mdict *d = ir_mdict_with(m, op->mlir, key, value);
  if (d) ir_set_mlir(op, d);
  return d != NULL;
}

/* --- equality and hash: across modules, so nothing is compared by pointer alone --- */
static bool mattr_same_string(const base_istr *a, const base_istr *b) {
  if (a == b) return true;
  return a && b && a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

/* Bare element types compare here, since ir_same_bare knows tensors and what is made of them. */
static bool mattr_same_type(const ir_type *a, const ir_type *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->dtype != b->dtype || !mattr_same_string(a->text, b->text)) return false;
  return a->kind == IR_TYPE_ELEMENT ? ir_quant_equal(a->quant, b->quant) : ir_same_bare(a, b);
}

static bool mattr_same_list(const ir_mattrs *a, const ir_mattrs *b) {
  if (!a || !b) return a == b;
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!ir_mattr_equal(a->v[i], b->v[i])) return false;
  return true;
}

/* Field by field; children by value. */
static bool mattr_same_loc(const ir_mloc *a, const ir_mloc *b) {
  return a->kind == b->kind && a->range == b->range && mattr_same_string(a->name, b->name) && a->line == b->line &&
         a->col == b->col && a->end_line == b->end_line && a->end_col == b->end_col &&
         ir_mattr_equal(a->child, b->child) && ir_mattr_equal(a->caller, b->caller) &&
         ir_mattr_equal(a->metadata, b->metadata) && mattr_same_list(a->parts, b->parts);
}

static bool mattr_same_literal(const ir_literal *a, const ir_literal *b) {
  return a == b || (a && b && ir_literal_equal(a, b));
}

/* The payload for each kind; kind, name, string and type have been compared already, which is all there is of the
 * last five. */
static bool mattr_same_value(const ir_mattr *a, const ir_mattr *b) {
  assert(a->kind == b->kind);
  switch ((ir_mattr_kind)a->kind) {
    case IR_M_BOOL:
      return a->v.b == b->v.b;
    case IR_M_INTEGER:
      return a->v.i == b->v.i;
    case IR_M_FLOAT:
      /* NaNs are equal when their bits are; 0.0 and -0.0 differ in bits. */
      return a->bits == b->bits && (a->v.f == b->v.f || a->v.f != a->v.f);
    case IR_M_SYMBOL:
    case IR_M_ARRAY:
    case IR_M_DENSE_STRING:
      return mattr_same_list(a->v.list, b->v.list);
    case IR_M_DICT:
    case IR_M_STRUCT:
      return ir_mdict_equal(a->v.dict, b->v.dict);
    case IR_M_DENSE_ARRAY:
    case IR_M_DENSE:
    case IR_M_RESOURCE:
      return mattr_same_literal(a->v.literal, b->v.literal);
    case IR_M_LOC:
      return mattr_same_loc(a->v.loc, b->v.loc);
    case IR_M_SDY:
      return a->sub == b->sub && sdy_equal((sdy_kind)a->sub, a->v.sdy, b->v.sdy);
    case IR_M_UNIT:
    case IR_M_STRING:
    case IR_M_TYPE:
    case IR_M_ENUM:
    case IR_M_OPAQUE:
      return true;
  }
  return false;
}

bool ir_mattr_equal(const ir_mattr *a, const ir_mattr *b) {
  if (a == b) return true;
  if (!a || !b || a->kind != b->kind || a->splat != b->splat) return false;
  bool same_names = a->name == b->name && a->dialect == b->dialect && mattr_same_string(a->str, b->str);
  return same_names && mattr_same_type(a->type, b->type) && mattr_same_value(a, b);
}

/* NULL and an empty dictionary are equal. Both are sorted, so they are compared entry by entry. */
bool ir_mdict_equal(const ir_mdict *a, const ir_mdict *b) {
  uint32_t n = a ? a->n : 0, other = b ? b->n : 0;
  if (n != other) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!mattr_same_string(a->v[i].key, b->v[i].key) || !ir_mattr_equal(a->v[i].value, b->v[i].value)) return false;
  return true;
}

/* Keys, kinds and small values: enough to tell most ops apart. */
uint64_t ir_mdict_hash(const ir_mdict *d) {
  uint64_t h = d ? d->n : 0;
  for (uint32_t i = 0; d && i < d->n; i++) {
    const ir_mattr *a = d->v[i].value;
    uint64_t v = a->kind == IR_M_INTEGER ? (uint64_t)a->v.i : a->kind == IR_M_FLOAT ? a->bits : 0;
    for (size_t k = 0; a->str && k < a->str->n; k++) v = v * 31 + (unsigned char)a->str->s[k];
    h = (h * 131 + d->v[i].key->n * 17 + a->kind + v) * UINT64_C(0x9E3779B97F4A7C15);
  }
  return h;
}

/* --- copies --- */

static const ir_mattrs *mattr_import_list(ir_module *m, const ir_mattrs *from) {
  ir_mattrs *to = base_arena_memdup(&m->arena, from, sizeof *from + from->n * sizeof *from->v);
  for (uint32_t i = 0; to && i < from->n; i++)
    if (!(to->v[i] = ir_mattr_import(m, from->v[i]))) return NULL;
  return to;
}

/* Sorted as it was: keys keep their bytes. */
const ir_mdict *ir_mdict_import(ir_module *m, const ir_mdict *d) {
  if (!d) return NULL;
  ir_mdict *to = base_arena_memdup(&m->arena, d, sizeof *d + d->n * sizeof *d->v);
  for (uint32_t i = 0; to && i < d->n; i++) {
    to->v[i].key = ir_intern(m, d->v[i].key->s, d->v[i].key->n);
    to->v[i].value = ir_mattr_import(m, d->v[i].value);
    if (!to->v[i].key || !to->v[i].value) return NULL;
  }
  return to;
}

/* Of a value that several dictionaries share, too, one copy is made. */
const ir_mdict *ir_mdict_import_once(ir_module *m, const ir_mdict *d, base_map *done) {
  assert(m && done);
  if (!d) return NULL;
  ir_mdict *to = base_map_ptr(done, d);
  if (to) return to;
  to = base_arena_memdup(&m->arena, d, sizeof *d + d->n * sizeof *d->v);
  for (uint32_t i = 0; to && i < d->n; i++) {
    to->v[i].key = ir_intern(m, d->v[i].key->s, d->v[i].key->n);
    to->v[i].value = base_map_ptr(done, d->v[i].value);
    if (!to->v[i].value) {
      to->v[i].value = ir_mattr_import(m, d->v[i].value);
      if (!to->v[i].value || !base_map_set(done, base_key(d->v[i].value), base_key(to->v[i].value))) return NULL;
    }
    if (!to->v[i].key) return NULL;
  }
  return to && base_map_set(done, base_key(d), base_key(to)) ? to : NULL;
}

/* Locations nest (call sites, fused ones) without sharing; readers bound their depth. */
static bool mattr_import_loc(ir_module *m, ir_mattr *a) {
  ir_mloc *l = base_arena_memdup(&m->arena, a->v.loc, sizeof *l);
  if (!l) return false;
  bool ok = !l->name || (l->name = ir_intern(m, l->name->s, l->name->n));
  const ir_mattr **parts[] = {&l->child, &l->caller, &l->metadata};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    ok = ok && (!*parts[i] || (*parts[i] = ir_mattr_import(m, *parts[i])));
  ok = ok && (!l->parts || (l->parts = mattr_import_list(m, l->parts)));
  a->v.loc = l;
  return ok;
}

/* *a is a byte copy of the original; each pointer in it is replaced. */
static bool mattr_import_value(ir_module *m, ir_mattr *a) {
  switch ((ir_mattr_kind)a->kind) {
    case IR_M_SYMBOL:
    case IR_M_ARRAY:
    case IR_M_DENSE_STRING:
      return (a->v.list = mattr_import_list(m, a->v.list)) != NULL;
    case IR_M_DICT:
    case IR_M_STRUCT:
      return (a->v.dict = ir_mdict_import(m, a->v.dict)) != NULL;
    case IR_M_DENSE_ARRAY:
    case IR_M_DENSE:
    case IR_M_RESOURCE:
      return !a->v.literal || (a->v.literal = ir_literal_import(m, a->v.literal));
    case IR_M_LOC:
      return mattr_import_loc(m, a);
    case IR_M_SDY:
      return (a->v.sdy = sdy_import(m, (sdy_kind)a->sub, a->v.sdy)) != NULL;
    case IR_M_UNIT:
    case IR_M_BOOL:
    case IR_M_INTEGER:
    case IR_M_FLOAT:
    case IR_M_STRING:
    case IR_M_TYPE:
    case IR_M_ENUM:
    case IR_M_OPAQUE:
      return true;
  }
  return false;
}

const ir_mattr *ir_mattr_import(ir_module *m, const ir_mattr *a) {
  assert(m);
  if (!a) return NULL;
  ir_mattr *c = base_arena_memdup(&m->arena, a, sizeof *a);
  if (!c) return NULL;
  if (a->str && !(c->str = ir_intern(m, a->str->s, a->str->n))) return NULL;
  if (a->type && !(c->type = ir_type_import(m, a->type))) return NULL;
  return mattr_import_value(m, c) ? c : NULL;
}

/* StableHLO's and CHLO's structured attributes and enums, as constant tables. Source: their definitions, 1.20. */

#define FIELDS(...) ((const ir_field_info[]){__VA_ARGS__, {NULL, 0, false, NULL}})
#define DIMS(name) {name, IR_F_I64S, false, NULL}
#define NUMBER(name) {name, IR_F_I64, false, NULL}

/* The fields in the order of the definition (ODS), which is the order in which they are printed; `always`: printed
 * even when empty or zero. */
static const ir_struct_info mattr_structs[] = {
    {"stablehlo", "gather",
     FIELDS(DIMS("offset_dims"), DIMS("collapsed_slice_dims"), DIMS("operand_batching_dims"),
            DIMS("start_indices_batching_dims"), DIMS("start_index_map"), NUMBER("index_vector_dim"))},
    {"stablehlo", "scatter",
     FIELDS(DIMS("update_window_dims"), DIMS("inserted_window_dims"), DIMS("input_batching_dims"),
            DIMS("scatter_indices_batching_dims"), DIMS("scatter_dims_to_operand_dims"), NUMBER("index_vector_dim"))},
    {"stablehlo", "dot",
     FIELDS(DIMS("lhs_batching_dimensions"), DIMS("rhs_batching_dimensions"), DIMS("lhs_contracting_dimensions"),
            DIMS("rhs_contracting_dimensions"))},
    {"chlo", "ragged_dot",
     FIELDS(DIMS("lhs_batching_dimensions"), DIMS("rhs_batching_dimensions"), DIMS("lhs_contracting_dimensions"),
            DIMS("rhs_contracting_dimensions"), DIMS("lhs_ragged_dimensions"), DIMS("rhs_group_dimensions"))},
    {"stablehlo", "dot_algorithm",
     FIELDS({"lhs_precision_type", IR_F_TYPE, true, NULL}, {"rhs_precision_type", IR_F_TYPE, true, NULL},
            {"accumulation_type", IR_F_TYPE, true, NULL}, {"lhs_component_count", IR_F_I64, true, NULL},
            {"rhs_component_count", IR_F_I64, true, NULL}, {"num_primitive_operations", IR_F_I64, true, NULL},
            {"allow_imprecise_accumulation", IR_F_BOOL, true, NULL})},
    /* conv has a syntax of its own, #stablehlo.conv<[b, f, 0]x[o, i, 0]->[b, f, 0]> and raw<...>. */
    {"stablehlo", "conv",
     FIELDS({"input_batch_dimension", IR_F_I64, true, NULL}, {"input_feature_dimension", IR_F_I64, true, NULL},
            DIMS("input_spatial_dimensions"), {"kernel_input_feature_dimension", IR_F_I64, true, NULL},
            {"kernel_output_feature_dimension", IR_F_I64, true, NULL}, DIMS("kernel_spatial_dimensions"),
            {"output_batch_dimension", IR_F_I64, true, NULL}, {"output_feature_dimension", IR_F_I64, true, NULL},
            DIMS("output_spatial_dimensions"))},
    {"stablehlo", "channel_handle", FIELDS({"handle", IR_F_I64, true, NULL}, {"type", IR_F_I64, true, NULL})},
    {"stablehlo", "output_operand_alias",
     FIELDS({"output_tuple_indices", IR_F_I64S, true, NULL}, {"operand_index", IR_F_I64, true, NULL},
            {"operand_tuple_indices", IR_F_I64S, true, NULL})},
    {"stablehlo", "type_extensions", FIELDS({"bounds", IR_F_I64S, true, NULL})},
    {"stablehlo", "result_accuracy",
     FIELDS({"atol", IR_F_F64, false, NULL}, {"rtol", IR_F_F64, false, NULL}, NUMBER("ulps"),
            {"mode", IR_F_ENUM, true, "result_accuracy_mode"})},
    {"stablehlo", "axis_ref", FIELDS({"name", IR_F_STRING, true, NULL}, {"sub_axis_info", IR_F_ANY, false, NULL})},
    {"stablehlo", "sub_axis_info", FIELDS({"pre_size", IR_F_I64, true, NULL}, {"size", IR_F_I64, true, NULL})},
    {"stablehlo", "mesh_axis", FIELDS({"name", IR_F_STRING, true, NULL}, {"size", IR_F_I64, true, NULL})},
    {"stablehlo", "mesh", FIELDS({"axes", IR_F_ANY, true, NULL}, {"device_ids", IR_F_ANY, false, NULL})},
    {"stablehlo", "replica_group_mesh_axes", FIELDS({"mesh", IR_F_ANY, true, NULL}, {"axes", IR_F_ANY, true, NULL})},
};

/* Words at the place of their numeric value, which is what bytecode and VHLO store. */
static const ir_enum_info mattr_enums[] = {
    {"stablehlo", "precision", IR_MLIR_WORDS(PRECISION)},
    {"stablehlo", "result_accuracy_mode", IR_MLIR_WORDS(ACCURACY)},
    {"stablehlo", "fft_type", IR_MLIR_WORDS(FFT)},
    {"stablehlo", "custom_call_api_version", IR_MLIR_WORDS(API)},
    {"stablehlo", "comparison_direction", IR_MLIR_WORDS(DIRECTION)},
    {"stablehlo", "comparison_type", IR_MLIR_WORDS(COMPARISON)},
    {"stablehlo", "transpose", IR_MLIR_WORDS(TRANSPOSE)},
    {"stablehlo", "rng_distribution", IR_MLIR_WORDS(DISTRIBUTION)},
    {"stablehlo", "rng_algorithm", IR_MLIR_WORDS(RNG)},
    {"chlo", "comparison_direction", IR_MLIR_WORDS(DIRECTION)},
    {"chlo", "comparison_type", IR_MLIR_WORDS(COMPARISON)},
    {"chlo", "precision", IR_MLIR_WORDS(PRECISION)},
};

/* n bytes at s, which need not end in a 0, spell the word. */
static bool table_word_is(const char *word, const char *s, size_t n) {
  return base_slice_is((base_slice){s, n}, word);
}

/* A scan: the tables are short, and readers ask once for each attribute in the text. */
const ir_struct_info *ir_struct_find(const char *dialect, size_t dialect_n, const char *name, size_t n) {
  for (size_t i = 0; i < sizeof mattr_structs / sizeof *mattr_structs; i++)
    if (table_word_is(mattr_structs[i].dialect, dialect, dialect_n) && table_word_is(mattr_structs[i].name, name, n))
      return &mattr_structs[i];
  return NULL;
}

const ir_enum_info *ir_enum_find(const char *dialect, size_t dialect_n, const char *name, size_t n) {
  for (size_t i = 0; i < sizeof mattr_enums / sizeof *mattr_enums; i++)
    if (table_word_is(mattr_enums[i].dialect, dialect, dialect_n) && table_word_is(mattr_enums[i].name, name, n))
      return &mattr_enums[i];
  return NULL;
}
