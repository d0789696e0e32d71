/* Combining updates into arrays at computed places, in order: scatter's and select-and-scatter's second half. Updates
 * are queued while they go to different places, so that the computation runs on many at once; the result is that of one
 * at a time. */
#ifndef XLAC_INTERP_EVAL_COMBINE_H
#define XLAC_INTERP_EVAL_COMBINE_H

#include "fold.h"

typedef struct interp_combine {
  interp_ctx *ctx;
  interp_fold *fold;
  bool overwrite;            /* the computation gives its second parameter: the last update wins */
  void **targets, **updates; /* n arrays each, of the fold's types */
  int64_t n_queued;
  int64_t *places, *sources;  /* queued: element of the targets, of the updates */
  struct combine_mark *marks; /* which places are queued: a hash set */
  uint32_t round;
  void **old, **added, **fresh; /* values of the queue */
} interp_combine;

XLAC_MUST_USE int interp_combine_begin(interp_combine *c, interp_ctx *ctx, interp_fold *fold, bool overwrite,
                                       void **targets, void **updates);
/* n updates: place, place + place_step, ... from source, source + source_step, ... */
XLAC_MUST_USE int interp_combine_row(interp_combine *c, int64_t place, int64_t place_step, int64_t source,
                                     int64_t source_step, int64_t n);
/* Carries out what is queued. */
XLAC_MUST_USE int interp_combine_flush(interp_combine *c);
void interp_combine_end(interp_combine *c);
/* Whether c gives its second parameter. */
bool interp_combine_overwrites(const ir_computation *c);

#endif
