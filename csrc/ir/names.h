/* Unique names by XLA's rule: "x" taken twice becomes "x" and "x.1"; a numeric suffix counts as such a number. */
#ifndef XLAC_IR_NAMES_H
#define XLAC_IR_NAMES_H

#include "ir.h"

/* One name space. Thread-compatible, and it touches its module (interning). */
typedef struct ir_uniquer ir_uniquer;

ir_uniquer *ir_uniquer_create(ir_module *m, base_alloc alloc); /* NULL when out of memory */
void ir_uniquer_destroy(ir_uniquer *u);
/* The name to use for one that wants to be called `wanted`; taken from now on. NULL when out of memory. */
const base_istr *ir_uniquer_take(ir_uniquer *u, const base_istr *wanted);

#endif
