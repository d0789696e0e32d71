/* A wish to stop what this thread does, heeded by every long piece of work below the API: allocations ask (almost all
 * that takes long allocates), and so do the few loops that do not. Once the wish is there, all further requests for
 * memory fail, and the failure is told as an interrupt: the ways out are those of a failed allocation, which every test
 * of fault injection walks. Thread-local: what one thread wishes, others do not see. */
#ifndef XLAC_BASE_HEED_H
#define XLAC_BASE_HEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct base_heed {
  bool (*asked)(void *ctx); /* true: stop. NULL: nobody can interrupt */
  void *ctx;
} base_heed;

/* From now on, on this thread. What was before. */
base_heed base_heed_set(base_heed h);
/* Counts work, some 100 ns of it each, and asks after every so much. Whether to stop. */
bool base_heed_tick(uint64_t work);
/* Whether the wish has been uttered. */
bool base_heed_stopped(void);

#endif
