/* Where participants of a parallel run meet. Everything here is thread-safe; a hub has one lock. */
#ifndef XLAC_INTERP_PARALLEL_HUB_H
#define XLAC_INTERP_PARALLEL_HUB_H

#include "parallel.h"

typedef struct interp_hub interp_hub;

/* A meeting of a group: what its members bring, by their place in the group. */
typedef struct interp_meeting interp_meeting;
struct interp_meeting {
  const uint32_t *members; /* participants */
  uint32_t n;
  uint32_t n_values;
  interp_value **values; /* member i's value k is values[i * n_values + k] */
  /* The hub's. */
  uint16_t opcode;
  int64_t channel;
  uint32_t arrived, left;
  bool complete;
  bool *here;
  interp_meeting *next;
};

/* NULL when out of memory. */
interp_hub *interp_hub_create(base_alloc alloc, const interp_grid *grid);
void interp_hub_destroy(interp_hub *h);
const interp_grid *interp_hub_grid(const interp_hub *h);
/* This participant brings n_values values to the meeting of `members` (its own place is `place`) and waits for the
 * others. Meetings match by op, channel and members, in order. *out is to be left. */
XLAC_MUST_USE int interp_hub_meet(interp_ctx *ctx, const ir_op *op, int64_t channel, uint32_t n_members,
                                  const uint32_t *members, uint32_t place, uint32_t n_values,
                                  interp_value *const *values, interp_meeting **out);
void interp_hub_leave(interp_ctx *ctx, interp_meeting *meeting);
/* Messages: from and to are participants, or -1 for whoever sends or takes on that channel. */
XLAC_MUST_USE int interp_hub_send(interp_ctx *ctx, const ir_op *op, int64_t channel, int64_t from, int64_t to,
                                  interp_value *v);
XLAC_MUST_USE int interp_hub_receive(interp_ctx *ctx, const ir_op *op, int64_t channel, int64_t from, int64_t to,
                                     interp_value **out);
/* The next value of this participant's infeed (borrowed), or NULL; and its outfeed. */
interp_value *interp_hub_infeed(interp_ctx *ctx);
XLAC_MUST_USE int interp_hub_outfeed(interp_ctx *ctx, interp_value *v);
/* What participant i fed out; the references are the hub's. */
uint32_t interp_hub_fed_out(const interp_hub *h, uint32_t i, interp_value ***values);

/* A participant is through, or has failed: then all stop. */
void interp_hub_finish(interp_hub *h, uint32_t participant, bool failed);
/* Stops all participants (an interrupt). */
void interp_hub_stop(interp_hub *h);
bool interp_hub_stopped(const interp_hub *h);
/* Sleeps until all participants are through or `milliseconds` have gone; true when all are through. */
bool interp_hub_wait(interp_hub *h, int milliseconds);

#endif
