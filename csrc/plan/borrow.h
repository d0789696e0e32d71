/* Puts temporaries into the memory of arguments and results while that is not in use. */
#ifndef XLAC_PLAN_BORROW_H
#define XLAC_PLAN_BORROW_H

#include "plan.h"

/* Memory that is free for a while. */
typedef struct plan_lender {
  uint8_t place;           /* PLAN_RESULT or PLAN_ARGUMENT */
  uint32_t number, result; /* the result's buffer, which is written at step `until` */
  int64_t bytes;
  uint32_t until, busy; /* busy: the last step that reads what is there at present; UINT32_MAX: nothing is */
} plan_lender;

/* At most BORROW_MAX of them. */
typedef struct plan_lenders {
  plan_lender *items; /* the largest, largest first */
  uint32_t n, *of;    /* of: by buffer, whose memory it has, or UINT32_MAX */
} plan_lenders;

/* false when out of memory. Memory for l's lists comes from scratch. */
bool plan_find_lenders(plan_lenders *l, const plan_program *p, const plan_buffer *buffers, base_arena *scratch);
/* A place for buffer b of the frame, which is written now; false where nobody has one. Sets the buffer's place and
 * number, and `borrowed`. */
bool plan_borrow(plan_lenders *l, const plan_program *p, plan_buffer *buffers, uint32_t b);
/* The place of `from`, which dies at the step that writes `to` over it. */
bool plan_borrow_on(plan_lenders *l, const plan_program *p, plan_buffer *buffers, uint32_t from, uint32_t to);

/* overwrite.c: whether output number `out` of the step may lie over its input number `in`, which is `seen` times among
 * the inputs; whatever the buffers' lives. */
bool plan_may_overwrite_input(const plan_step *s, const plan_buffer *buffers, uint32_t in, uint32_t out, uint32_t seen);

#endif
