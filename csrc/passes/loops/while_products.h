/* Products of rows that a loop's body takes one by one (while_products.c). */
#ifndef XLAC_PASSES_LOOPS_WHILE_PRODUCTS_H
#define XLAC_PASSES_LOOPS_WHILE_PRODUCTS_H

#include "while_state.h"

enum { WHILE_PRODUCTS = 8 /* of one loop */ };

/* Changes the body so that the products of all rows are ops of their own, which never change: made[], as many as it
 * gives. The caller has to move them out of the loop. fixed: by op id, what never changes; order: the body's ops,
 * operands before users. x->failed when out of memory. */
uint32_t while_batch_products(const while_state *w, hlo_maker *x, const opt_facts *facts, const uint8_t *fixed,
                              ir_op *const *order, uint32_t n, const ir_op **made);

#endif
