/* Cancellation, one wish for each thread. */
#include "heed.h"

enum {
  HEED_WORK = 1 << 11 /* between two questions: at most some milliseconds, but for the page faults of new memory */
};

/* The one variable that is not const, and no other thread's: no argument reaches all places that allocate. */
static _Thread_local struct {
  base_heed wish;
  uint64_t work; /* since the last question */
  bool stopped;
} heed_of_thread;

base_heed base_heed_set(base_heed h) {
  base_heed before = heed_of_thread.wish;
  heed_of_thread.wish = h;
  heed_of_thread.work = 0;
  heed_of_thread.stopped = false;
  return before;
}

/* Once it is true it stays so until the next base_heed_set. */
bool base_heed_tick(uint64_t work) {
  if (!heed_of_thread.wish.asked) return false;
  heed_of_thread.work += work;
  if (heed_of_thread.stopped || heed_of_thread.work < HEED_WORK) return heed_of_thread.stopped;
  heed_of_thread.work = 0;
  return heed_of_thread.stopped = heed_of_thread.wish.asked(heed_of_thread.wish.ctx);
}

bool base_heed_stopped(void) {
  return heed_of_thread.stopped;
}
