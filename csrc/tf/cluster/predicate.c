/* Makes and simplifies formulas. Every formula is interned: operands are sorted by creation and looked up by
 * content, so two that are written alike are one pointer. Simplification is local (flatten, cancel, end loops,
 * factor) and stops at a depth, as TensorFlow's PredicateFactory does; it is not complete, and must not be made
 * more complete, since what is not recognised as equal must stay apart here, too. */
#include "predicate.h"

#include <stdlib.h>

/* Formulas within formulas that are simplified; below that they are only interned (kMaxStackDepth's role in
 * TensorFlow). */
enum { TF_PRED_DEPTH = 8 };

BASE_VEC(tf_pred_list, const tf_pred *);

/* A list with a set beside it once it is long. */
typedef struct tf_pred_set {
  base_alloc alloc;
  tf_pred_list list;
  base_map map;
  bool mapped, failed;
} tf_pred_set;

/* Up to that many a scan is faster than a map. */
enum { TF_PRED_SMALL = 12 };

static void tf_set_init(tf_pred_set *s, base_alloc alloc) {
  *s = (tf_pred_set){.alloc = alloc};
}

static void tf_set_free(tf_pred_set *s) {
  BASE_VEC_FREE(s->alloc, &s->list);
  if (s->mapped) base_map_free(&s->map);
}

static bool tf_set_has(const tf_pred_set *s, const tf_pred *p) {
  uint64_t unused;
  if (s->mapped) return base_map_get(&s->map, base_key(p), &unused);
  for (uint32_t i = 0; i < s->list.n; i++)
    if (s->list.items[i] == p) return true;
  return false;
}

/* false where it is there already. Running out of memory is noted in s->failed, which callers look at once, at the
 * end. */
static bool tf_set_add(tf_pred_set *s, const tf_pred *p) {
  if (tf_set_has(s, p)) return false;
  if (!BASE_VEC_PUSH(s->alloc, &s->list, p)) s->failed = true;
  if (!s->mapped && s->list.n > TF_PRED_SMALL) {
    base_map_init(&s->map, s->alloc);
    s->mapped = true;
    for (uint32_t i = 0; i < s->list.n; i++)
      if (!base_map_set(&s->map, base_key(s->list.items[i]), 1)) s->failed = true;
  } else if (s->mapped && !base_map_set(&s->map, base_key(p), 1)) {
    s->failed = true;
  }
  return true;
}

/* --- one of each --- */

/* Formulas with one hash, the newest first. */
typedef struct tf_pred_link {
  const tf_pred *pred;
  struct tf_pred_link *next;
} tf_pred_link;

void tf_pred_init(tf_pred_factory *f, base_arena *arena, base_alloc alloc) {
  assert(arena != NULL);
  *f = (tf_pred_factory){.arena = arena, .alloc = alloc};
  base_map_init(&f->interned, alloc);
}

void tf_pred_free(tf_pred_factory *f) {
  base_map_free(&f->interned);
}

/* Hashes by content; operands by address, which is fine as they are interned themselves. */
static uint64_t tf_pred_hash(const tf_pred *p, const tf_pred *const *operands) {
  uint64_t h = (uint64_t)p->kind * 0x9E3779B97F4A7C15u + p->must_be_true + ((uint64_t)(uint32_t)p->output << 8) +
               ((uint64_t)(uint32_t)p->value << 40) + base_key(p->name);
  for (uint32_t i = 0; i < p->n; i++) h = (h ^ base_key(operands[i])) * 0xD6E8FEB86659FD93u, h ^= h >> 32;
  return h;
}

static bool tf_pred_same(const tf_pred *a, const tf_pred *b, const tf_pred *const *operands) {
  bool same = a->kind == b->kind && a->must_be_true == b->must_be_true && a->n == b->n && a->output == b->output &&
              a->value == b->value && a->name == b->name;
  return same && (a->n == 0 || memcmp(a->operands, operands, a->n * sizeof *operands) == 0);
}

/* `what` has everything but operands and id. `operands` may be NULL for none. */
static const tf_pred *tf_pred_intern(tf_pred_factory *f, const tf_pred *what, const tf_pred *const *operands) {
  assert(what->n == 0 || operands != NULL);
  uint64_t hash = tf_pred_hash(what, operands), first = 0;
  (void)base_map_get(&f->interned, hash, &first);
  for (const tf_pred_link *l = (const tf_pred_link *)(uintptr_t)first; l; l = l->next)
    if (tf_pred_same(l->pred, what, operands)) return l->pred;
  tf_pred *p = base_arena_alloc(f->arena, sizeof *p + what->n * sizeof *operands);
  tf_pred_link *link = BASE_NEW(f->arena, tf_pred_link);
  if (!p || !link) return f->failed = true, NULL;
  *p = *what;
  p->id = f->next_id++;
  if (what->n) memcpy(p->operands, operands, what->n * sizeof *operands);
  *link = (tf_pred_link){p, (tf_pred_link *)(uintptr_t)first};
  if (!base_map_set(&f->interned, hash, base_key(link))) return f->failed = true, NULL;
  return p;
}

const tf_pred *tf_pred_symbol(tf_pred_factory *f, const base_istr *node, int32_t output, bool must_be_true,
                              int32_t value) {
  assert(node != NULL);
  tf_pred p = {.kind = TF_PRED_SYMBOL, .must_be_true = must_be_true, .output = output, .value = value, .name = node};
  return tf_pred_intern(f, &p, NULL);
}

const tf_pred *tf_pred_recurrence(tf_pred_factory *f, const tf_pred *start, const tf_pred *step,
                                  const base_istr *frames) {
  assert(start != NULL && step != NULL);
  const tf_pred *operands[] = {start, step};
  return tf_pred_intern(f, &(tf_pred){.kind = TF_PRED_RECURRENCE, .n = 2, .value = -1, .name = frames}, operands);
}

/* By creation, not by address: the order decides what is printed and which simplifications are met first. */
static int tf_compare_pred_ids(const void *a, const void *b) {
  uint32_t x = (*(const tf_pred *const *)a)->id, y = (*(const tf_pred *const *)b)->id;
  return (x > y) - (x < y);
}

/* Sorts the list in place. */
static const tf_pred *tf_pred_interned_list(tf_pred_factory *f, tf_pred_kind kind, tf_pred_list *list) {
  if (list->n > 1) qsort(list->items, list->n, sizeof *list->items, tf_compare_pred_ids);
  return tf_pred_intern(f, &(tf_pred){.kind = kind, .n = list->n, .value = -1}, list->items);
}

/* --- negation --- */

static const tf_pred *tf_pred_and_or(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n, bool is_and);

/* ~(A & B) is ~A | ~B, and the other way round. */
static const tf_pred *tf_pred_de_morgan(tf_pred_factory *f, const tf_pred *p) {
  tf_pred_list negated = {.n = 0};
  const tf_pred *result = NULL;
  bool fine = true;
  for (uint32_t i = 0; i < p->n && fine; i++) {
    const tf_pred *one = tf_pred_not(f, p->operands[i]);
    fine = one && BASE_VEC_PUSH(f->alloc, &negated, one);
  }
  if (fine)
    result = tf_pred_and_or(f, negated.items, negated.n, p->kind == TF_PRED_OR);
  else
    f->failed = true;
  BASE_VEC_FREE(f->alloc, &negated);
  return result;
}

/* Remembered on the formula itself, behind const: it is a cache that nobody can see but by time. */
const tf_pred *tf_pred_not(tf_pred_factory *f, const tf_pred *p) {
  assert(p != NULL);
  if (p->negated) return p->negated;
  const tf_pred *result = NULL;
  bool deep = ++f->depth >= TF_PRED_DEPTH;
  if (!deep && (p->kind == TF_PRED_AND || p->kind == TF_PRED_OR))
    result = tf_pred_de_morgan(f, p);
  else if (!deep && p->kind == TF_PRED_NOT)
    result = p->operands[0];
  else
    result = tf_pred_intern(f, &(tf_pred){.kind = TF_PRED_NOT, .n = 1, .value = -1}, &p);
  f->depth--;
  ((tf_pred *)(uintptr_t)p)->negated = result;
  return result;
}

/* --- conjunctions and disjunctions --- */

/* Operands once each, those of the same kind taken apart. `seen` has the taken apart ones too. */
static bool tf_pred_flatten(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n, tf_pred_kind kind,
                            tf_pred_set *seen, tf_pred_list *out) {
  for (uint32_t i = 0; i < n; i++) {
    const tf_pred *op = operands[i];
    if (!tf_set_add(seen, op)) continue;
    if (op->kind != kind) {
      if (!BASE_VEC_PUSH(f->alloc, out, op)) return false;
      continue;
    }
    for (uint32_t k = 0; k < op->n; k++)
      if (tf_set_add(seen, op->operands[k]) && !BASE_VEC_PUSH(f->alloc, out, op->operands[k])) return false;
  }
  return !seen->failed;
}

/* Whether A and ~A are both there; fills the set of negations. */
static bool tf_pred_cancels(tf_pred_factory *f, const tf_pred_list *ops, tf_pred_kind kind, const tf_pred_set *all,
                            tf_pred_set *negations) {
  for (uint32_t i = 0; i < ops->n; i++) {
    if (tf_set_has(negations, ops->items[i])) return true;
    const tf_pred *negated = tf_pred_not(f, ops->items[i]);
    if (!negated) return false;
    if (negated->kind == kind) {
      bool every = true;
      for (uint32_t k = 0; k < negated->n && every; k++) every = tf_set_has(all, negated->operands[k]);
      if (every) return true;
    }
    (void)tf_set_add(negations, negated);
  }
  return false;
}

/* {S,&,X} & ~X is S: the loop has ended, so the value is as alive as what entered it. S is added as it stands, not
 * taken apart, as in TensorFlow. */
static bool tf_pred_end_loops(tf_pred_factory *f, tf_pred_list *ops, const tf_pred_set *negations, bool *changed) {
  tf_pred_set remove;
  tf_pred_list kept = {.n = 0};
  bool fine = true;
  *changed = false;
  tf_set_init(&remove, f->alloc);
  for (uint32_t i = 0; i < ops->n; i++) {
    const tf_pred *op = ops->items[i];
    if (op->kind != TF_PRED_RECURRENCE || !tf_set_has(negations, op->operands[1])) continue;
    const tf_pred *ended = tf_pred_not(f, op->operands[1]);
    if (!ended) fine = false;
    (void)tf_set_add(&remove, op);
    if (ended) (void)tf_set_add(&remove, ended);
    *changed = true;
  }
  for (uint32_t i = 0; i < ops->n && *changed && fine; i++)
    if (!tf_set_has(&remove, ops->items[i])) fine = BASE_VEC_PUSH(f->alloc, &kept, ops->items[i]);
  for (uint32_t i = 0; i < ops->n && *changed && fine; i++)
    if (ops->items[i]->kind == TF_PRED_RECURRENCE && tf_set_has(&remove, ops->items[i]))
      fine = BASE_VEC_PUSH(f->alloc, &kept, ops->items[i]->operands[0]);
  fine = fine && !remove.failed;
  tf_set_free(&remove);
  if (*changed) {
    BASE_VEC_FREE(f->alloc, ops);
    *ops = kept;
  }
  return fine;
}

/* Operands that all of `ops` have, which must all be of the other kind. */
static bool tf_pred_common(tf_pred_factory *f, const tf_pred_list *ops, tf_pred_kind other, tf_pred_set *common) {
  for (uint32_t i = 0; i < ops->n; i++) {
    const tf_pred *op = ops->items[i];
    tf_pred_set next;
    tf_set_init(&next, f->alloc);
    for (uint32_t k = 0; k < op->n && op->kind == other; k++)
      if (i == 0 || tf_set_has(common, op->operands[k])) (void)tf_set_add(&next, op->operands[k]);
    bool failed = common->failed || next.failed;
    tf_set_free(common);
    *common = next;
    common->failed = failed;
    if (common->list.n == 0) break;
  }
  return !common->failed;
}

/* (A & B) | (A & C) is A & (B | C), and the other way round. */
static const tf_pred *tf_pred_factor(tf_pred_factory *f, const tf_pred_list *ops, const tf_pred_set *common,
                                     bool is_and) {
  tf_pred_list parts = {.n = 0}, rest = {.n = 0};
  bool fine = true;
  for (uint32_t i = 0; i < ops->n && fine; i++) {
    const tf_pred *op = ops->items[i];
    rest.n = 0;
    for (uint32_t k = 0; k < op->n && fine; k++)
      if (!tf_set_has(common, op->operands[k])) fine = BASE_VEC_PUSH(f->alloc, &rest, op->operands[k]);
    const tf_pred *part = fine ? tf_pred_and_or(f, rest.items, rest.n, !is_and) : NULL;
    fine = part && BASE_VEC_PUSH(f->alloc, &parts, part);
  }
  const tf_pred *result = fine ? tf_pred_and_or(f, parts.items, parts.n, is_and) : NULL;
  parts.n = 0;
  fine = result && BASE_VEC_PUSH(f->alloc, &parts, result);
  for (uint32_t i = 0; i < common->list.n && fine; i++) fine = BASE_VEC_PUSH(f->alloc, &parts, common->list.items[i]);
  result = fine ? tf_pred_and_or(f, parts.items, parts.n, !is_and) : NULL;
  BASE_VEC_FREE(f->alloc, &parts);
  BASE_VEC_FREE(f->alloc, &rest);
  return result;
}

/* `ops` are the operands once each, `all` the same with those that were taken apart. NULL when out of memory. */
static const tf_pred *tf_pred_simplify(tf_pred_factory *f, tf_pred_list *ops, const tf_pred_set *all, bool is_and) {
  tf_pred_kind kind = is_and ? TF_PRED_AND : TF_PRED_OR;
  tf_pred_set negations, common;
  const tf_pred *result = NULL;
  bool changed = false;
  if (ops->n == 1) return ops->items[0];
  tf_set_init(&negations, f->alloc);
  tf_set_init(&common, f->alloc);
  if (tf_pred_cancels(f, ops, kind, all, &negations)) {
    result = is_and ? tf_pred_false(f) : tf_pred_true(f);
  } else if (!f->failed && !negations.failed && (!is_and || tf_pred_end_loops(f, ops, &negations, &changed))) {
    if (tf_pred_common(f, ops, is_and ? TF_PRED_OR : TF_PRED_AND, &common))
      result = common.list.n ? tf_pred_factor(f, ops, &common, is_and) : tf_pred_interned_list(f, kind, ops);
  }
  tf_set_free(&negations);
  tf_set_free(&common);
  return result;
}

/* Both connectives by one function, since all rules are dual but the one for loops, which only AND has. */
static const tf_pred *tf_pred_and_or(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n, bool is_and) {
  tf_pred_kind kind = is_and ? TF_PRED_AND : TF_PRED_OR;
  tf_pred_set seen;
  tf_pred_list ops = {.n = 0};
  const tf_pred *result = NULL;
  tf_set_init(&seen, f->alloc);
  if (++f->depth >= TF_PRED_DEPTH) {
    if (BASE_VEC_RESERVE(f->alloc, &ops, n)) {
      if (n) memcpy(ops.items, operands, n * sizeof *operands);
      ops.n = n;
      result = tf_pred_interned_list(f, kind, &ops);
    }
  } else if (tf_pred_flatten(f, operands, n, kind, &seen, &ops)) {
    result = tf_pred_simplify(f, &ops, &seen, is_and);
  }
  f->depth--;
  tf_set_free(&seen);
  BASE_VEC_FREE(f->alloc, &ops);
  if (!result) f->failed = true;
  return result;
}

/* Most conjunctions are of one formula many times over, so that is remembered. */
const tf_pred *tf_pred_and(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n) {
  for (uint32_t i = 1; i < n; i++)
    if (operands[i] != operands[0]) return tf_pred_and_or(f, operands, n, true);
  if (n == 0 || f->depth > 0) return tf_pred_and_or(f, operands, n, true);
  if (!operands[0]->alone) ((tf_pred *)(uintptr_t)operands[0])->alone = tf_pred_and_or(f, operands, 1, true);
  return operands[0]->alone;
}

const tf_pred *tf_pred_or(tf_pred_factory *f, const tf_pred *const *operands, uint32_t n) {
  return tf_pred_and_or(f, operands, n, false);
}

/* --- asking --- */

bool tf_pred_contains(tf_pred_factory *f, const tf_pred *p, const tf_pred *inner) {
  assert(p != NULL && inner != NULL);
  tf_pred_set seen;
  tf_set_init(&seen, f->alloc);
  (void)tf_set_add(&seen, p);
  bool found = p == inner;
  for (uint32_t i = 0; i < seen.list.n && !found && !seen.failed; i++) {
    const tf_pred *at = seen.list.items[i];
    for (uint32_t k = 0; k < at->n && !found; k++) {
      found = at->operands[k] == inner;
      (void)tf_set_add(&seen, at->operands[k]);
    }
  }
  if (seen.failed) f->failed = true;
  tf_set_free(&seen);
  return found;
}

/* Bytes of text, and nesting, after which a printed formula is cut. */
enum { TF_PRED_TEXT = 1 << 16, TF_PRED_NEST = 64 };

static void tf_put_pred_at(base_text *out, const tf_pred *p, uint32_t depth);

static void tf_put_pred_list(base_text *out, const tf_pred *p, const char *between, uint32_t depth) {
  base_putc(out, '(');
  for (uint32_t i = 0; i < p->n; i++) {
    if (i) base_puts(out, between);
    tf_put_pred_at(out, p->operands[i], depth);
  }
  base_putc(out, ')');
}

/* Formulas share their parts, so the text of one can be far longer than the formula: it is cut. */
static void tf_put_pred_at(base_text *out, const tf_pred *p, uint32_t depth) {
  if (depth > TF_PRED_NEST || out->n > TF_PRED_TEXT) {
    BASE_PUT(out, "...");
  } else if (p->kind == TF_PRED_SYMBOL) {
    base_putf(out, "%s%s:%d", p->must_be_true ? "*" : "", p->name->s, p->output);
    if (p->value >= 0) base_putf(out, "=%d", p->value);
  } else if (p->kind == TF_PRED_NOT) {
    base_putc(out, '~');
    tf_put_pred_at(out, p->operands[0], depth + 1);
  } else if (p->kind == TF_PRED_RECURRENCE) {
    base_putc(out, '{');
    tf_put_pred_at(out, p->operands[0], depth + 1);
    BASE_PUT(out, ",&,");
    tf_put_pred_at(out, p->operands[1], depth + 1);
    base_putf(out, "}<%s>", p->name ? p->name->s : "");
  } else if (p->n == 0) {
    base_puts(out, p->kind == TF_PRED_AND ? "#true" : "#false");
  } else {
    tf_put_pred_list(out, p, p->kind == TF_PRED_AND ? " & " : " | ", depth + 1);
  }
}

void tf_put_pred(base_text *out, const tf_pred *p) {
  tf_put_pred_at(out, p, 0);
}
