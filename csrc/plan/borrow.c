/* Memory that is there anyway: that of a result until the result is written, and in a loop's body that of an argument
 * that is changed in place, from its last read until then. Values that live in between lie there instead of in the
 * frame. A result that may be given the memory of the entry's argument lends nothing, since that is still read. */
#include "borrow.h"

enum {
  BORROW_MAX = 64,
  BORROW_LEAST = 64, /* bytes */
  BORROW_PART = 8    /* of the memory that a value must fill: small ones would only keep kernels from going in groups */
};

/* Keeps the BORROW_MAX largest, sorted. */
static void borrow_add(plan_lenders *l, plan_lender lender) {
  uint32_t at = l->n;
  if (at == BORROW_MAX && l->items[at - 1].bytes >= lender.bytes) return;
  if (at == BORROW_MAX) at--;
  for (; at > 0 && l->items[at - 1].bytes < lender.bytes; at--) l->items[at] = l->items[at - 1];
  l->items[at] = lender;
  if (l->n < BORROW_MAX) l->n++;
}

/* By result: the first value that is written to its memory, or UINT32_MAX. Chains of values in a result's memory
 * (results_place_chain) begin with it. NULL when out of memory. */
static uint32_t *borrow_find_first(const plan_program *p, const plan_buffer *buffers, base_arena *scratch) {
  uint32_t *first = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_results + 1);
  for (uint32_t i = 0; first && i < p->n_results; i++) first[i] = UINT32_MAX;
  for (uint32_t i = 0; first && i < p->n_buffers; i++) {
    const plan_buffer *b = &buffers[i];
    if (b->place != PLAN_RESULT || b->first == UINT32_MAX) continue;
    uint32_t *at = &first[b->number];
    if (*at == UINT32_MAX || b->first < buffers[*at].first) *at = i;
  }
  return first;
}

/* Memory of a result is free until `until`, that of an argument from `busy` until then. */
bool plan_find_lenders(plan_lenders *l, const plan_program *p, const plan_buffer *buffers, base_arena *scratch) {
  assert(l && p && buffers && scratch);
  uint32_t *first = borrow_find_first(p, buffers, scratch);
  *l = (plan_lenders){.items = BASE_ARRAY(scratch, plan_lender, BORROW_MAX), .of = NULL};
  l->of = BASE_ARRAY(scratch, uint32_t, (size_t)p->n_buffers + 1);
  if (!l->items || !l->of || !first) return false;
  for (uint32_t i = 0; i < p->n_buffers; i++) {
    const plan_buffer *b = &buffers[i];
    bool stays = b->place == PLAN_ARGUMENT,
         given = b->place == PLAN_RESULT && p->over && p->over[b->number] != UINT32_MAX;
    if ((!stays && b->place != PLAN_RESULT) || b->first == UINT32_MAX || b->bytes < BORROW_LEAST || given ||
        b->borrowed)
      continue;
    plan_lender lender = {
        .place = b->place, .number = b->number, .bytes = b->bytes, .result = stays ? i : first[b->number]};
    lender.until = buffers[lender.result].first;
    lender.busy = stays ? buffers[b->number].last : UINT32_MAX; /* arguments' buffers are their numbers */
    borrow_add(l, lender);
  }
  for (uint32_t i = 0; i < p->n_buffers; i++) l->of[i] = UINT32_MAX;
  for (uint32_t k = 0; k < l->n; k++)
    if (l->items[k].place == PLAN_ARGUMENT) l->of[l->items[k].number] = k;
  return true;
}

/* Whether b is gone when the result is written, or may be written over by it. */
static bool borrow_ends_in_time(const plan_lender *k, const plan_program *p, const plan_buffer *buffers, uint32_t b) {
  if (buffers[b].last < k->until) return true;
  return buffers[b].last == k->until && buffers[b].first < k->until && buffers[b].bytes == k->bytes &&
         plan_may_overwrite(&p->steps[k->until], buffers, b, k->result);
}

/* The lender is busy until b dies. */
static void borrow_from(plan_lenders *l, uint32_t k, plan_buffer *buffers, uint32_t b) {
  assert(k < l->n && l->items[k].bytes >= buffers[b].bytes);
  buffers[b].place = l->items[k].place;
  buffers[b].number = l->items[k].number;
  buffers[b].borrowed = true;
  l->items[k].busy = buffers[b].last;
  l->of[b] = k;
}

bool plan_borrow(plan_lenders *l, const plan_program *p, plan_buffer *buffers, uint32_t b) {
  assert(b < p->n_buffers);
  if (buffers[b].bytes < BORROW_LEAST) return false;
  for (uint32_t k = l->n; k-- > 0;) { /* the least that is enough */
    const plan_lender *from = &l->items[k];
    if (from->bytes < buffers[b].bytes || from->bytes / BORROW_PART > buffers[b].bytes) continue;
    if (from->busy != UINT32_MAX && from->busy >= buffers[b].first) continue;
    if (!borrow_ends_in_time(from, p, buffers, b)) continue;
    borrow_from(l, k, buffers, b);
    return true;
  }
  return false;
}

bool plan_borrow_on(plan_lenders *l, const plan_program *p, plan_buffer *buffers, uint32_t from, uint32_t to) {
  assert(from < p->n_buffers && to < p->n_buffers);
  uint32_t k = l->of[from];
  if (k == UINT32_MAX || l->items[k].busy != buffers[from].last || !borrow_ends_in_time(&l->items[k], p, buffers, to))
    return false;
  borrow_from(l, k, buffers, to);
  return true;
}
