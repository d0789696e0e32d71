/* The two strategies that carry axes along the factors of one op. For each factor both first ask on which axes its
 * tensors can agree (shard_agree). The basic one then cuts the list where anything at all is in its way in any
 * tensor; the aggressive one settles conflicts by tensor, the larger tensor's axes first. A tensor's list only ever
 * grows. */
#include <stdlib.h>

#include "../../base/number/gcd.h"
#include "project.h"
#include "trace.h"

/* --- agreement --- */

/* The agreement so far: an intersection from the left. */
typedef struct spread_fold {
  shard_axis *room;
  uint32_t n;
  bool grows; /* the list may still become longer */
} spread_fold;

/* Two lists agree on their common beginning, and on the rest of the longer one where they do not differ. Writes over
 * f->room, which is no longer than what it held or `more`.
 * ["a", "b"] with ["a"] is ["a", "b"] while the list may grow; with ["a", "c"] it is ["a"], and no more is added. A
 * sub-axis agrees with an axis it is the major part of, at the end of its list only. */
static void spread_join(spread_fold *f, shard_axes more) {
  uint32_t i = 0;
  for (; i < f->n && i < more.n; i++) {
    shard_axis old = f->room[i], theirs = more.v[i];
    if (shard_axis_same(old, theirs)) continue;
    if (old.axis != theirs.axis) {
      f->n = i;
      f->grows = false;
      return;
    }
    bool new_is_prefix = shard_axis_prefix(theirs, old), old_is_prefix = shard_axis_prefix(old, theirs);
    if (new_is_prefix && i + 1 == more.n) continue; /* the new list can become as long as the old one */
    if (old_is_prefix && !new_is_prefix && f->grows && i + 1 == f->n) {
      f->room[i] = theirs;
      continue;
    }
    if (new_is_prefix) f->room[i] = theirs;
    f->n = new_is_prefix || old_is_prefix ? i + 1 : i;
    f->grows = false;
    return;
  }
  if (f->grows)
    for (; i < more.n; i++) f->room[f->n++] = more.v[i];
}

/* The first axis that two tensors do not agree on. */
static void spread_note_disagreement(shard_projection *p, uint32_t factor, shard_axes agreed) {
  shard_clash clash = {.factor = factor, .tensor = UINT32_MAX, .reason = SHARD_DISAGREE};
  for (uint32_t t = 0; t < p->n_tensors; t++) {
    const shard_part *part = shard_part_of(&p->tensors[t], factor);
    if (!part || part->axes.n <= agreed.n) continue;
    if (clash.tensor == UINT32_MAX) {
      clash.tensor = t;
      clash.against = part->axes.v[agreed.n];
    } else if (!shard_axis_same(part->axes.v[agreed.n], clash.against)) {
      clash.axis = part->axes.v[agreed.n];
      shard_clash_note(p, clash);
      return;
    }
  }
}

/* In one direction only the sources (operands for forward) may add axes; the others still restrict the list. Order
 * matters for that reason: sources come first in the fold. */
shard_axes shard_agree(shard_projection *p, uint32_t factor, shard_direction direction) {
  assert(factor < p->rule->sizes.n);
  shard_axes none = {0, NULL};
  if (direction == SHARD_NONE) return none;
  uint32_t most = 0;
  for (uint32_t t = 0; t < p->n_tensors; t++) {
    const shard_part *part = shard_part_of(&p->tensors[t], factor);
    if (part && part->axes.n > most) most = part->axes.n;
  }
  if (most == 0) return none;
  spread_fold f = {shard_axes_room(p->pool, most), 0, true};
  if (!f.room) return none;
  uint32_t k = p->n_operands, n = p->n_tensors;
  bool back = direction == SHARD_BACKWARD;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t first_group = back ? n - k : k;
    if (i == first_group && direction != SHARD_BOTH) f.grows = false;
    const shard_part *part = shard_part_of(&p->tensors[back ? (i + k) % n : i], factor);
    if (part) spread_join(&f, part->axes);
  }
  if (p->watch && f.n < most) spread_note_disagreement(p, factor, (shard_axes){f.n, f.room});
  return (shard_axes){f.n, f.room};
}

/* --- what fits --- */

/* The tensor's other factors must not have the axis, whether or not it has this one: a tensor can't use an axis
 * twice. */
bool shard_fits_across(const shard_tensor *t, uint32_t factor, shard_axis *a) {
  for (uint32_t i = 0; i < t->n_parts; i++) {
    const shard_part *part = &t->parts[i];
    if (part->factor == factor) continue;
    if (!shard_axis_before_all(a, part->overflow) || !shard_axis_before_all(a, part->axes)) return false;
  }
  return true;
}

/* before: the size of the axes in front of *a in the factor; what *a may take is the rest of the factor's size. An
 * axis that is there already always fits. */
bool shard_fits_within(const shard_tensor *t, const shard_part *part, int64_t before, int64_t factor_size,
                       shard_axis *a) {
  if (!shard_axis_before_all(a, t->replicated) || !shard_axis_before_all(a, t->unreduced)) return false;
  for (uint32_t i = 0; i < part->axes.n; i++)
    if (shard_axis_contains(part->axes.v[i], *a)) return true;
  if (!part->closed && part->overflow.n == 0) {
    if (part->minor_most) return true;
    if (factor_size % before == 0) { /* a factor that is not minor-most is split evenly */
      int64_t gcd = base_gcd(factor_size / before, a->size);
      if (gcd != 1 || a->size == 1) {
        a->size = gcd;
        return true;
      }
    }
  }
  if (part->axes.n && shard_axis_prefix(part->axes.v[part->axes.n - 1], *a)) {
    *a = part->axes.v[part->axes.n - 1];
    return true;
  }
  return false;
}

/* `was` is what the part had before the strategy began, however often it grows. */
bool shard_expand(shard_part *part, shard_axes axes) {
  if (shard_axes_prefix(part->axes, axes) != SHARD_STRICT_PREFIX) return false;
  if (!part->grown) part->was = part->axes;
  part->grown = true;
  part->axes = axes;
  return true;
}

/* Cuts a list where an axis does not fit whole; `fits` narrows it. */
typedef struct spread_cut {
  shard_projection *p;
  const shard_tensor *t;
  const shard_part *part;
  uint32_t factor;
  int64_t size;
} spread_cut;
typedef bool spread_fits(const spread_cut *c, shard_axis *a, int64_t before);

/* Which of the axes a is kept from, and why; false: none of these. */
static bool spread_against(shard_axes list, shard_axis a, shard_reason reason, shard_clash *clash) {
  for (uint32_t i = 0; i < list.n; i++) {
    if (!shard_axis_overlaps(list.v[i], a)) continue;
    clash->against = list.v[i];
    clash->reason = (uint8_t)reason;
    return true;
  }
  return false;
}

/* Whether the tensor is in the way of a, and why. */
static bool spread_blames(const spread_cut *c, const shard_tensor *t, shard_axis a, int64_t before,
                          shard_clash *clash) {
  shard_axis left = a;
  clash->against = a;
  for (uint32_t i = 0; i < t->n_parts; i++) {
    if (t->parts[i].factor == c->factor) continue;
    if (spread_against(t->parts[i].axes, a, SHARD_OTHER_FACTOR, clash)) return true;
    if (spread_against(t->parts[i].overflow, a, SHARD_OTHER_FACTOR, clash)) return true;
  }
  const shard_part *part = shard_part_of(t, c->factor);
  if (!part) return false;
  if (spread_against(t->replicated, a, SHARD_REPLICATED, clash)) return true;
  if (spread_against(t->unreduced, a, SHARD_UNREDUCED, clash)) return true;
  if (shard_fits_within(t, part, before, c->size, &left) && shard_axis_same(left, a)) return false;
  clash->reason = part->closed ? SHARD_CLOSED : SHARD_INDIVISIBLE;
  return true;
}

/* One clash is enough: the first tensor to blame. */
static void spread_note(const spread_cut *c, shard_axis a, int64_t before) {
  for (uint32_t i = 0; i < c->p->n_tensors; i++) {
    shard_clash clash = {.factor = c->factor, .tensor = i, .axis = a};
    if (c->t && c->t != &c->p->tensors[i]) continue;
    if (!spread_blames(c, &c->p->tensors[i], a, before, &clash)) continue;
    shard_clash_note(c->p, clash);
    return;
  }
}

/* conservative: a sub-axis ends the list before it rather than after, since nothing may be sharded by part of an
 * axis. */
static shard_axes spread_truncate(const spread_cut *c, shard_axes axes, spread_fits *fits, bool conservative) {
  int64_t before = 1;
  for (uint32_t i = 0; i < axes.n; i++) {
    shard_axis a = axes.v[i];
    bool some = fits(c, &a, before);
    if (c->p->watch && !(some && shard_axis_same(a, axes.v[i]))) spread_note(c, axes.v[i], before);
    if (!some || (conservative && !(a.pre == 1 && a.size == c->p->mesh->axes[a.axis].size)))
      return (shard_axes){i, axes.v};
    if (!shard_axis_same(a, axes.v[i])) {
      shard_axis *room = shard_axes_room(c->p->pool, i + 1);
      if (!room) return (shard_axes){i, axes.v};
      memcpy(room, axes.v, i * sizeof *room);
      room[i] = a;
      return (shard_axes){i + 1, room};
    }
    if (!base_mul_i64(before, a.size, &before)) return (shard_axes){i, axes.v};
  }
  return axes;
}

/* --- basic --- */

/* Narrows *a by all tensors in turn; the order does not matter, since each takes away from the end. */
static bool spread_fits_all(const spread_cut *c, shard_axis *a, int64_t before) {
  for (uint32_t i = 0; i < c->p->n_tensors; i++) {
    const shard_tensor *t = &c->p->tensors[i];
    if (!shard_fits_across(t, c->factor, a)) return false;
    const shard_part *part = shard_part_of(t, c->factor);
    if (part && !shard_fits_within(t, part, before, c->size, a)) return false;
  }
  return true;
}

/* A factor that was spread takes part in what the next ones find: tensors are updated factor by factor. */
void shard_spread_basic(shard_projection *p, const uint8_t *directions, bool conservative) {
  for (uint32_t f = 0; f < p->rule->sizes.n; f++) {
    spread_cut cut = {.p = p, .factor = f, .size = p->rule->sizes.v[f]};
    shard_axes axes = shard_agree(p, f, (shard_direction)directions[f]);
    axes = spread_truncate(&cut, axes, spread_fits_all, conservative);
    if (axes.n == 0) continue;
    for (uint32_t i = 0; i < p->n_tensors; i++) {
      shard_part *part = shard_part_of(&p->tensors[i], f);
      if (part && shard_expand(part, axes)) p->updated[i] = true;
    }
  }
}

/* --- aggressive --- */

/* What decides which factor takes an axis that several want. */
typedef struct spread_rank {
  int64_t size; /* of the largest tensor that has these axes; -1: none */
  int64_t shards;
  int64_t source;
  uint32_t factor;
} spread_rank;

/* Larger sources first; of elementwise ops then the more sharded factor; then the earlier tensor, then the earlier
 * factor. */
static int spread_order(const void *x, const void *y) {
  const spread_rank *a = x, *b = y;
  if (a->size != b->size) return a->size > b->size ? -1 : 1;
  if (a->shards != b->shards) return a->shards > b->shards ? -1 : 1;
  if (a->source != b->source) return a->source < b->source ? -1 : 1;
  return a->factor < b->factor ? -1 : a->factor > b->factor;
}

/* A source is a tensor whose own axes begin with, or are as long as, what was agreed on; the size of a tensor is the
 * product of its factors' sizes, so a size beyond int64 counts as the largest. */
static void spread_ranks(const shard_projection *p, const shard_axes *axes, bool elementwise, spread_rank *ranks) {
  uint32_t n = p->rule->sizes.n;
  for (uint32_t f = 0; f < n; f++) ranks[f] = (spread_rank){-1, elementwise ? shard_axes_size(axes[f]) : 0, -1, f};
  for (uint32_t t = 0; t < p->n_tensors; t++) {
    const shard_tensor *tensor = &p->tensors[t];
    int64_t size = 1;
    for (uint32_t i = 0; i < tensor->n_parts; i++)
      if (tensor->parts[i].factor != SHARD_ABSENT &&
          !base_mul_i64(size, p->rule->sizes.v[tensor->parts[i].factor], &size))
        size = INT64_MAX;
    for (uint32_t i = 0; i < tensor->n_parts; i++) {
      const shard_part *part = &tensor->parts[i];
      if (part->factor == SHARD_ABSENT) continue;
      spread_rank *rank = &ranks[part->factor];
      if (axes[part->factor].n == 0 || size <= rank->size) continue;
      if (shard_axes_prefix(axes[part->factor], part->axes) == SHARD_NOT_PREFIX) continue;
      rank->size = size;
      rank->source = t;
    }
  }
  qsort(ranks, n, sizeof *ranks, spread_order);
}

static bool spread_fits_part(const spread_cut *c, shard_axis *a, int64_t before) {
  return shard_fits_within(c->t, c->part, before, c->size, a);
}

static bool spread_fits_tensor(const spread_cut *c, shard_axis *a, int64_t before) {
  (void)before;
  return shard_fits_across(c->t, c->factor, a);
}

/* What the tensor can take of the factor's axes as it is now. */
static shard_axes spread_offer(const spread_cut *c, shard_axes axes, bool conservative) {
  axes = spread_truncate(c, axes, spread_fits_part, conservative);
  if (shard_axes_prefix(c->part->axes, axes) != SHARD_STRICT_PREFIX) return (shard_axes){0, NULL};
  return spread_truncate(c, axes, spread_fits_tensor, conservative);
}

/* An operand of an elementwise op gets no more than a result that has a part of it. */
static shard_axes spread_not_past_results(const shard_projection *p, uint32_t factor, shard_axes axes) {
  for (uint32_t t = p->n_operands; t < p->n_tensors; t++) {
    const shard_part *part = shard_part_of(&p->tensors[t], factor);
    if (part && shard_axes_prefix(part->axes, axes) == SHARD_STRICT_PREFIX) axes = part->axes;
  }
  return axes;
}

/* By rank: what two factors compete for goes to the one that comes first. */
static void spread_to(shard_projection *p, uint32_t tensor, const shard_axes *axes, const spread_rank *ranks,
                      bool conservative, bool clipped) {
  assert(tensor < p->n_tensors);
  shard_tensor *t = &p->tensors[tensor];
  for (uint32_t i = 0; i < p->rule->sizes.n; i++) {
    uint32_t f = ranks[i].factor;
    shard_part *part = axes[f].n ? shard_part_of(t, f) : NULL;
    if (!part) continue;
    spread_cut cut = {.p = p, .t = t, .part = part, .factor = f, .size = p->rule->sizes.v[f]};
    shard_axes offer = spread_offer(&cut, axes[f], conservative);
    if (offer.n == 0) continue;
    if (clipped) offer = spread_not_past_results(p, f, offer);
    if (shard_expand(part, offer)) p->updated[tensor] = true;
  }
}

/* Results before operands: an elementwise op's operand is then clipped to what its results have taken. */
void shard_spread_aggressive(shard_projection *p, const uint8_t *directions, bool conservative, bool elementwise) {
  uint32_t n = p->rule->sizes.n;
  shard_axes *axes = shard_pool_alloc(p->pool, (n ? n : 1) * sizeof *axes);
  spread_rank *ranks = shard_pool_alloc(p->pool, (n ? n : 1) * sizeof *ranks);
  if (!axes || !ranks) return;
  bool any = false;
  for (uint32_t f = 0; f < n; f++) {
    axes[f] = shard_agree(p, f, (shard_direction)directions[f]);
    any = any || axes[f].n;
  }
  if (!any) return;
  spread_ranks(p, axes, elementwise, ranks);
  for (uint32_t t = p->n_operands; t < p->n_tensors; t++) spread_to(p, t, axes, ranks, conservative, false);
  for (uint32_t t = 0; t < p->n_operands; t++) spread_to(p, t, axes, ranks, conservative, elementwise);
}
