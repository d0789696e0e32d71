/* The state of a while loop, a tuple, as passes see and change it. */
#ifndef XLAC_PASSES_LOOPS_WHILE_STATE_H
#define XLAC_PASSES_LOOPS_WHILE_STATE_H

#include "../effects.h"
#include "../hlo/hlo_make.h"

typedef struct while_state {
  ir_op *loop, *init, *root; /* init: the tuple op it starts from, or NULL; root: the tuple op its body gives */
  ir_op *inside, *condition; /* the parameters of body and condition */
  uint32_t n;                /* elements */
} while_state;

/* Callers of each computation, by id; `arena`'s. NULL when out of memory. */
uint32_t *while_count_callers(const ir_module *m, base_arena *arena);
/* All loops, those of called computations first. NULL when out of memory. */
ir_op **while_list(const ir_module *m, opt_facts *facts, uint32_t *n);
/* Whether loop is one whose state may be changed: it has its computations for itself, reads and writes its state by
 * element, and carries no shardings. */
bool while_open(while_state *w, ir_op *loop, const opt_facts *facts, const uint32_t *callers);
/* The element passes through the body as it came. */
bool while_is_invariant(const while_state *w, uint32_t i);
/* The index of an element that op takes from `tuple`, or -1. */
int64_t while_element_of(const ir_op *op, const ir_op *tuple);
/* The loop gets the state (first[i], n of them), whose next values are next[i] in the body. Element i of the old state
 * is `moved[i]` of the new one, UINT32_MAX where there is none and nobody reads it. false when out of memory. */
XLAC_MUST_USE bool while_set_state(while_state *w, hlo_maker *x, uint32_t n, ir_op *const *first, ir_op *const *next,
                                   const uint32_t *moved);

enum { WHILE_MOST_TRIPS = 16 };
/* How often the loop turns, where that is known to be at most `most` whatever the arguments; else -1. */
int while_known_trips(const ir_op *loop, const opt_facts *facts, int most);

#endif
