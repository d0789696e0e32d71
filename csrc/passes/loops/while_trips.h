#ifndef XLAC_PASSES_LOOPS_WHILE_TRIPS_H
#define XLAC_PASSES_LOOPS_WHILE_TRIPS_H

#include "../effects.h"

/* 0 or 1 where the loop is known to turn so often, whatever the arguments; else -1. */
int while_known_trips(const ir_op *loop, const opt_facts *facts);

#endif
