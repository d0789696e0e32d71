/* Big blocks kept for the next value of a run: fresh pages from the system cost more than most ops that fill them. */
#ifndef XLAC_INTERP_HEAP_H
#define XLAC_INTERP_HEAP_H

#include "../base/memory.h"

/* Smaller values are better off with the plain allocator. */
#define INTERP_HEAP_MIN ((size_t)1 << 16)

typedef struct interp_heap interp_heap;

/* NULL when out of memory. */
interp_heap *interp_heap_create(base_alloc under);
/* Blocks of any thread may still be freed afterwards; the heap goes with the last. */
void interp_heap_close(interp_heap *h);
/* Allocates from the heap and frees to it. Thread-safe. */
base_alloc interp_heap_alloc(interp_heap *h);

#endif
