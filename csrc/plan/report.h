/* Plans as data: JSON with all programs, their buffers and steps, for whoever draws and counts. */
#ifndef XLAC_PLAN_REPORT_H
#define XLAC_PLAN_REPORT_H

#include "../base/map.h"
#include "cost.h"

/* Every program that can run, each once, callers before callees. Borrowed: programs are the plan's. */
typedef struct plan_list {
  const plan_program **items;
  uint32_t n, cap;
} plan_list;
/* false when out of memory. The caller frees the list with BASE_VEC_FREE. */
bool plan_list_programs(base_alloc alloc, const plan_program *p, plan_list *out);
/* The number of p in the list. */
uint32_t plan_list_find(const plan_list *list, const plan_program *p);

/* What one run of p and all that its steps call costs: a loop's programs once, because its trip count is
 * unknown; of a conditional its most expensive branch. OUT_OF_MEMORY. */
XLAC_MUST_USE int plan_total_cost(base_alloc alloc, const plan_program *p, plan_cost *out, xlac_error *err);

/* {"programs": [{"name", "buffers": [...], "steps": [...]}, ...]}; the first is the entry's. false when out of
 * memory. Borrows p and what it points to during the call. */
bool plan_put_json(base_text *out, base_alloc alloc, const plan_program *p);

#endif
