/* Equality, hash and copies of MLIR attributes. */
#include "import_memo.h"
#include "../sdy/sdy.h"

static bool mattr_same_string(const base_istr *a, const base_istr *b) {
  if (a == b) return true;
  return a && b && a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

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

static bool mattr_same_loc(const ir_mloc *a, const ir_mloc *b) {
  return a->kind == b->kind && a->range == b->range && mattr_same_string(a->name, b->name) && a->line == b->line &&
         a->col == b->col && a->end_line == b->end_line && a->end_col == b->end_col &&
         ir_mattr_equal(a->child, b->child) && ir_mattr_equal(a->caller, b->caller) &&
         ir_mattr_equal(a->metadata, b->metadata) && mattr_same_list(a->parts, b->parts);
}

static bool mattr_same_literal(const ir_literal *a, const ir_literal *b) {
  return a == b || (a && b && ir_literal_equal(a, b));
}

static bool mattr_same_value(const ir_mattr *a, const ir_mattr *b) {
  switch ((ir_mattr_kind)a->kind) {
    case IR_M_BOOL:
      return a->v.b == b->v.b;
    case IR_M_INTEGER:
      return a->v.i == b->v.i;
    case IR_M_FLOAT:
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

const ir_mdict *ir_mdict_import_once(ir_module *m, const ir_mdict *d, base_map *done) {
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
  if (!a) return NULL;
  ir_mattr *c = base_arena_memdup(&m->arena, a, sizeof *a);
  if (!c) return NULL;
  if (a->str && !(c->str = ir_intern(m, a->str->s, a->str->n))) return NULL;
  if (a->type && !(c->type = ir_type_import(m, a->type))) return NULL;
  return mattr_import_value(m, c) ? c : NULL;
}
