/* Locations. With debug information every location of an op is an alias, #loc1, defined at the end of the text. As MLIR
 * does, all that will be printed is visited before, equal locations become one, and numbers are given by depth first
 * and then in order of visit. */
#include <stdlib.h>

#include "print.h"

/* What stands for a location that was never set: MLIR has no op without one. */
static const ir_mloc mprint_unknown_loc = {.kind = IR_LOC_UNKNOWN};
static const ir_mattr mprint_unknown = {.kind = IR_M_LOC, .v.loc = &mprint_unknown_loc};

/* An absent location is the unknown one. */
static const ir_mattr *mprint_some_loc(const ir_mattr *a) {
  return a && a->kind == IR_M_LOC && a->v.loc ? a : &mprint_unknown;
}

/* Unknown locations get the alias #loc too, as in MLIR. */
static bool mprint_is_unknown(const ir_mattr *a) {
  return mprint_some_loc(a)->v.loc->kind == IR_LOC_UNKNOWN;
}

/* The i-th location inside, or NULL past the last. */
static const ir_mattr *mprint_loc_inside(const ir_mloc *l, uint32_t i) {
  switch ((ir_mloc_kind)l->kind) {
    case IR_LOC_NAME:
      return i == 0 && l->child && !mprint_is_unknown(l->child) ? l->child : NULL;
    case IR_LOC_CALLSITE:
      return i == 0 ? mprint_some_loc(l->child) : i == 1 ? mprint_some_loc(l->caller) : NULL;
    case IR_LOC_FUSED:
      return l->parts && i < l->parts->n ? mprint_some_loc(l->parts->v[i]) : NULL;
    default:
      return NULL;
  }
}

/* A step of a multiplicative hash. */
static uint64_t mprint_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ h >> 29;
}

/* Of the location's own fields and the rows of those inside, which are numbered already. */
static uint64_t mprint_loc_hash(const mprint_loc *row) {
  const ir_mloc *l = row->loc->v.loc;
  uint64_t h = mprint_mix(l->kind, l->name ? l->name->hash : 0);
  h = mprint_mix(h, (uint64_t)l->line << 32 ^ (uint64_t)l->col);
  for (uint32_t i = 0; i < row->n_inside; i++) h = mprint_mix(h, row->inside[i] + 1);
  return h;
}

/* Names of two locations; either may be NULL, for none. */
static bool mprint_same_name(const base_istr *a, const base_istr *b) {
  return a == b || (a && b && a->n == b->n && memcmp(a->s, b->s, a->n) == 0);
}

/* What is inside has been compared already: equal ones are one row. */
static bool mprint_same_loc(const mprint_loc *a, const mprint_loc *b) {
  const ir_mloc *x = a->loc->v.loc, *y = b->loc->v.loc;
  if (x->kind != y->kind || x->line != y->line || x->col != y->col || x->range != y->range) return false;
  if (x->range && (x->end_line != y->end_line || x->end_col != y->end_col)) return false;
  if (!mprint_same_name(x->name, y->name) || !ir_mattr_equal(x->metadata, y->metadata)) return false;
  return a->n_inside == b->n_inside &&
         (a->n_inside == 0 || memcmp(a->inside, b->inside, a->n_inside * sizeof *a->inside) == 0);
}

/* Doubles the hash table, which is kept at most half full. */
static bool mprint_loc_rehash(mprint *p) {
  uint32_t n = p->n_loc_slots ? p->n_loc_slots * 2 : 256;
  uint32_t *slots = BASE_ARRAY(&p->arena, uint32_t, n);
  if (!slots) return false;
  memset(slots, 0, n * sizeof *slots);
  for (uint32_t row = 0; row < p->locs.n; row++) {
    uint32_t i = (uint32_t)mprint_loc_hash(&p->locs.items[row]) & (n - 1);
    while (slots[i]) i = (i + 1) & (n - 1);
    slots[i] = row + 1;
  }
  p->loc_slots = slots;
  p->n_loc_slots = n;
  return true;
}

/* The row of a location like `key`, added if there is none; false when out of memory. */
static bool mprint_loc_row(mprint *p, const mprint_loc *key, uint32_t *row) {
  assert((p->n_loc_slots & (p->n_loc_slots - 1)) == 0);
  if (p->locs.n * 2 >= p->n_loc_slots && !mprint_loc_rehash(p)) return false;
  uint32_t i = (uint32_t)mprint_loc_hash(key) & (p->n_loc_slots - 1);
  for (; p->loc_slots[i]; i = (i + 1) & (p->n_loc_slots - 1)) {
    *row = p->loc_slots[i] - 1;
    if (mprint_same_loc(&p->locs.items[*row], key)) return true;
  }
  *row = p->locs.n;
  p->loc_slots[i] = p->locs.n + 1;
  return BASE_VEC_PUSH(p->alloc, &p->locs, *key);
}

/* The row of a location, with all that is inside; UINT32_MAX when out of memory. Readers bound how deep they nest. */
static uint32_t mprint_loc_add(mprint *p, const ir_mattr *loc) {
  uint64_t known = 0;
  if (base_map_get(&p->loc_rows, base_key(loc), &known)) return (uint32_t)known;
  mprint_loc key = {.loc = loc, .depth = 1, .order = p->loc_order++};
  uint32_t n = 0, row = UINT32_MAX;
  while (mprint_loc_inside(loc->v.loc, n)) n++;
  if (n && !(key.inside = BASE_ARRAY(&p->arena, uint32_t, n))) return UINT32_MAX;
  for (; key.n_inside < n; key.n_inside++) {
    uint32_t in = mprint_loc_add(p, mprint_loc_inside(loc->v.loc, key.n_inside));
    if (in == UINT32_MAX) return in;
    key.inside[key.n_inside] = in;
    if (p->locs.items[in].depth >= key.depth) key.depth = p->locs.items[in].depth + 1;
  }
  if (!mprint_loc_row(p, &key, &row) || !base_map_set(&p->loc_rows, base_key(loc), row)) return UINT32_MAX;
  return row;
}

/* The aliases that an early one mentions must be defined before it. */
static void mprint_loc_make_early(mprint *p, uint32_t row) {
  assert(row < p->locs.n);
  mprint_loc *l = &p->locs.items[row];
  if (l->early) return;
  l->early = true;
  for (uint32_t i = 0; i < l->n_inside; i++) mprint_loc_make_early(p, l->inside[i]);
}

/* `early`: an argument's location, which MLIR prints before the module. */
void mprint_loc_visit(mprint *p, const ir_mattr *loc, bool early) {
  uint32_t row = mprint_loc_add(p, mprint_some_loc(loc));
  if (row == UINT32_MAX)
    p->failed = true;
  else if (early)
    mprint_loc_make_early(p, row);
}

/* The order of the numbers: by depth, then by first mention. */
static int mprint_loc_compare(const void *a, const void *b) {
  const mprint_loc *x = *(const mprint_loc *const *)a, *y = *(const mprint_loc *const *)b;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

/* The rows by number; NULL when out of memory. */
static mprint_loc **mprint_loc_sorted(mprint *p) {
  mprint_loc **rows = BASE_ARRAY(&p->arena, mprint_loc *, p->locs.n + 1);
  if (!rows) return NULL;
  for (uint32_t i = 0; i < p->locs.n; i++) rows[i] = &p->locs.items[i];
  qsort(rows, p->locs.n, sizeof *rows, mprint_loc_compare);
  return rows;
}

/* Sorted as MLIR sorts aliases: by depth, so that a definition uses only names that are defined before it, then in
 * the order in which they were met. */
void mprint_loc_number(mprint *p) {
  mprint_loc **rows = mprint_loc_sorted(p);
  if (!rows) p->failed = true;
  for (uint32_t i = 0; rows && i < p->locs.n; i++) rows[i]->number = i;
}

/* The first is #loc, the next #loc1. */
static void mprint_loc_alias(base_text *o, uint32_t number) {
  BASE_PUT(o, "#loc");
  if (number) base_put_u64(o, number);
}

/*   #loc3 = loc(callsite(#loc1 at #loc2)) */
void mprint_loc_aliases(mprint *p, bool early) {
  mprint_loc **rows = mprint_loc_sorted(p);
  if (!rows) p->failed = true;
  for (uint32_t i = 0; rows && i < p->locs.n; i++) {
    if (rows[i]->early != early) continue;
    mprint_loc_alias(p->out, rows[i]->number);
    BASE_PUT(p->out, " = loc(");
    mprint_loc_body(p, rows[i]->loc);
    BASE_PUT(p->out, ")\n");
  }
}

/* false, and nothing printed, for a location that was not visited. */
static bool mprint_put_loc_alias(mprint *p, const ir_mattr *loc) {
  uint64_t row = 0;
  if (!p->locations || !base_map_get(&p->loc_rows, base_key(loc), &row)) return false;
  mprint_loc_alias(p->out, p->locs.items[row].number);
  return true;
}

/* A location inside of another: by its alias where it has one. */
static void mprint_loc_nested(mprint *p, const ir_mattr *loc) {
  loc = mprint_some_loc(loc);
  if (!mprint_put_loc_alias(p, loc)) mprint_loc_body(p, loc);
}

/* A range that ends where it begins is none. */
static void mprint_file(base_text *o, const ir_mloc *l) {
  mprint_quoted(o, l->name ? l->name->s : "", l->name ? l->name->n : 0);
  base_putc(o, ':');
  base_put_i64(o, l->line);
  base_putc(o, ':');
  base_put_i64(o, l->col);
  if (!l->range || (l->end_line == l->line && l->end_col == l->col)) return;
  BASE_PUT(o, " to ");
  if (l->end_line != l->line) base_put_i64(o, l->end_line);
  base_putc(o, ':');
  base_put_i64(o, l->end_col);
}

/*   fused[#loc1, #loc2]      fused<"pass">["a.py":1:2, unknown] */
static void mprint_fused(mprint *p, const ir_mloc *l) {
  assert(l->kind == IR_LOC_FUSED);
  BASE_PUT(p->out, "fused");
  if (l->metadata) {
    base_putc(p->out, '<');
    mprint_attr(p, l->metadata);
    base_putc(p->out, '>');
  }
  base_putc(p->out, '[');
  for (uint32_t i = 0; l->parts && i < l->parts->n; i++) {
    if (i) BASE_PUT(p->out, ", ");
    mprint_loc_nested(p, l->parts->v[i]);
  }
  base_putc(p->out, ']');
}

/*   unknown      "a.py":3:4      "name"      "name"(#loc1)      callsite(#loc1 at #loc2)      fused[...] */
void mprint_loc_body(mprint *p, const ir_mattr *loc) {
  const ir_mloc *l = mprint_some_loc(loc)->v.loc;
  switch ((ir_mloc_kind)l->kind) {
    case IR_LOC_UNKNOWN:
      BASE_PUT(p->out, "unknown");
      return;
    case IR_LOC_FILE:
      mprint_file(p->out, l);
      return;
    case IR_LOC_NAME:
      mprint_quoted(p->out, l->name ? l->name->s : "", l->name ? l->name->n : 0);
      if (!mprint_loc_inside(l, 0)) return;
      base_putc(p->out, '(');
      mprint_loc_nested(p, l->child);
      base_putc(p->out, ')');
      return;
    case IR_LOC_CALLSITE:
      BASE_PUT(p->out, "callsite(");
      mprint_loc_nested(p, l->child);
      BASE_PUT(p->out, " at ");
      mprint_loc_nested(p, l->caller);
      base_putc(p->out, ')');
      return;
    case IR_LOC_FUSED:
      mprint_fused(p, l);
      return;
  }
}

/* Behind an op, a block argument or a module. */
void mprint_trailing_loc(mprint *p, const ir_mattr *loc, bool alias) {
  if (!p->locations) return;
  BASE_PUT(p->out, " loc(");
  if (alias)
    mprint_loc_nested(p, loc);
  else
    mprint_loc_body(p, loc);
  base_putc(p->out, ')');
}
