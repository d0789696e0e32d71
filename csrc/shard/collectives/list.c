/* Short lists of axes, splitting them alike, and dealing them out to dimensions by capacity. Linear searches
 * throughout: a mesh has a few axes, and sub-axes are few for each. */
#include "collectives.h"

/* Grows by doubling; the arena is emptied after the reshard. */
void rtc_insert(rtc *x, rtc_list *list, uint32_t at, sdy_axis a) {
  assert(at <= list->n);
  if (list->n == list->cap) {
    uint32_t cap = list->cap ? list->cap * 2 : 8;
    sdy_axis *v = BASE_ARRAY(x->arena, sdy_axis, cap);
    if (!v) {
      x->failed = true;
      return;
    }
    if (list->n) memcpy(v, list->v, list->n * sizeof *v);
    list->v = v;
    list->cap = cap;
  }
  memmove(list->v + at + 1, list->v + at, (list->n - at) * sizeof *list->v);
  list->v[at] = a;
  list->n++;
}

void rtc_erase(rtc_list *list, uint32_t at) {
  assert(at < list->n);
  list->n--;
  memmove(list->v + at, list->v + at + 1, (list->n - at) * sizeof *list->v);
}

/* ["x":(1)2] and "x":(2)2 of an axis of size 4 become ["x"]. */
void rtc_append(rtc *x, rtc_list *list, sdy_axis a) {
  if (list->n && sdy_axis_can_merge(list->v[list->n - 1], a))
    list->v[list->n - 1] = sdy_axis_merge(list->v[list->n - 1], a, x->mesh);
  else
    rtc_push(x, list, a);
}

bool rtc_has(const rtc_list *list, sdy_axis a) {
  for (uint32_t i = 0; i < list->n; i++)
    if (sdy_axis_equal(list->v[i], a)) return true;
  return false;
}

void rtc_remove(rtc_list *list, sdy_axis a) {
  for (uint32_t i = list->n; i-- > 0;)
    if (sdy_axis_equal(list->v[i], a)) rtc_erase(list, i);
}

int64_t rtc_size(const rtc *x, const rtc_list *list) {
  return sdy_axes_size((sdy_axes){list->n, list->v}, x->mesh);
}

/* --- splitting --- */

static uint32_t rtc_first_overlap(const rtc_list *sorted, sdy_axis a) {
  uint32_t i = 0;
  while (i < sorted->n && !sdy_axis_overlaps(sorted->v[i], a)) i++;
  return i;
}

/* Whether other number i lies inside of a, or cuts it. */
static bool rtc_must_split(const rtc_list *others, uint32_t i, sdy_axis a) {
  return i < others->n && sdy_axis_coexists(others->v[i], a) && !sdy_axis_contains(others->v[i], a) &&
         sdy_axis_overlaps(others->v[i], a);
}

/* others is sorted, so those that overlap a are neighbours, and each part that is left goes on with the next of them.
 */
static void rtc_align_one(rtc *x, rtc_list *list, const rtc_list *others) {
  for (uint32_t i = 0; i < list->n && !x->failed;) {
    sdy_axis a = list->v[i], part;
    bool done = false;
    for (uint32_t o = rtc_first_overlap(others, a); rtc_must_split(others, o, a) && !x->failed; o++) {
      rtc_erase(list, i);
      if (sdy_axis_before(a, others->v[o], &part)) rtc_insert(x, list, i++, part);
      if (sdy_axis_overlap(a, others->v[o], &part)) rtc_insert(x, list, i++, part);
      done = !sdy_axis_after(a, others->v[o], x->mesh, &part);
      if (done) break;
      rtc_insert(x, list, i, part);
      a = part;
    }
    if (!done) i++;
  }
}

/* Both lists are left with axes that are equal or apart, if it is called in both directions. */
void rtc_align(rtc *x, rtc_list *lists, rtc_list *others) {
  if (others->n == 0) return;
  sdy_axes_sort(others->v, others->n, x->mesh);
  for (uint32_t d = 0; d < x->rank; d++) rtc_align_one(x, &lists[d], others);
}

/* `current` has merged sub-axes, `axes` has not: the end of a merged axis is cut off piece by piece. */
void rtc_pop(rtc *x, rtc_list *current, const rtc_list *axes, uint32_t from) {
  assert(from <= axes->n);
  (void)x;
  for (uint32_t i = axes->n; i-- > from && current->n;) {
    sdy_axis left;
    if (sdy_axis_before(current->v[current->n - 1], axes->v[i], &left))
      current->v[current->n - 1] = left;
    else
      current->n--;
  }
}

/* --- capacity --- */

/* Sizes must divide one another: a capacity of 4 takes "x" of 2 whole, of "y" of 8 the major half, and nothing of 3. */
bool rtc_within(const rtc *x, sdy_axis a, int64_t *capacity, sdy_axis *within, sdy_axis *rest) {
  assert(*capacity >= 0);
  int64_t size = sdy_axis_size(a, x->mesh);
  *rest = (sdy_axis){0};
  *within = a;
  if (*capacity <= 1 || !rtc_divides(size, *capacity)) return false;
  if (*capacity >= size) {
    *capacity /= size;
    return true;
  }
  *within = (sdy_axis){a.name, sdy_axis_pre(a), *capacity};
  *rest = (sdy_axis){a.name, within->pre * within->size, size / *capacity};
  *capacity = 1;
  return true;
}

/* Where each axis of the result belongs; the first place if it were there twice. Made again after each step that
 * changes x->out. */
void rtc_find_places(rtc *x) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < x->rank; d++) n += x->out[d].n;
  x->places = BASE_ARRAY(x->arena, rtc_place, (size_t)n + 1);
  x->n_places = 0;
  x->failed = x->failed || !x->places;
  for (uint32_t d = 0; d < x->rank && !x->failed; d++)
    for (uint32_t i = 0; i < x->out[d].n; i++)
      if (!rtc_place_of(x, x->out[d].v[i])) x->places[x->n_places++] = (rtc_place){x->out[d].v[i], d, i};
}

const rtc_place *rtc_place_of(const rtc *x, sdy_axis a) {
  for (uint32_t i = 0; i < x->n_places; i++)
    if (sdy_axis_equal(x->places[i].axis, a)) return &x->places[i];
  return NULL;
}

/* An axis that is larger than a dimension has room for is split: what fits is used now, the rest stays first in the
 * list. */
void rtc_distribute(rtc *x, rtc_list *available, bool each, bool front, rtc_taken *taken) {
  rtc_list split = {NULL, 0, 0};
  for (uint32_t d = 0; d < x->rank && !x->failed; d++) {
    rtc_list *list = each ? &available[d] : available;
    uint32_t at = front ? 0 : x->in[d].n;
    for (uint32_t i = 0; i < list->n && x->capacity[d] > 1 && !x->failed;) {
      sdy_axis within, rest;
      if (!rtc_within(x, list->v[i], &x->capacity[d], &within, &rest)) {
        i++;
        continue;
      }
      rtc_erase(list, i);
      assert(at <= x->in[d].n);
      rtc_insert(x, &x->in[d], at++, within);
      rtc_push(x, &x->in_set, within);
      if (taken) {
        taken->any = true;
        rtc_append(x, &taken->by_dim[d], within);
        rtc_append(x, &taken->also[d], within);
      }
      if (!rest.name) continue;
      rtc_push(x, &split, within);
      rtc_insert(x, list, 0, rest);
    }
  }
  rtc_align(x, x->out, &split); /* where an axis was split, the result's is too */
}
