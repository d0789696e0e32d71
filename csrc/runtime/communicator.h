/* Communicators: where the devices of a group meet while one program runs on all of them.
 *
 * A communicator serves one run at a time, of `n` participants numbered replica * partitions + partition. Each runs on
 * a thread of its own, and brings its arrays to a collective; when all members of its group are there, results are
 * written, and everybody goes on. What a collective does is said in bytes and elements, not in ops, so that other kinds
 * (processes, NCCL) can stand behind the same table. The one here is of one process: members read each other's arrays
 * where they are.
 *
 * Sums are made in the order of the group, element by element, whoever makes them: the bits are the same for any
 * number of threads.
 * Errors: a participant that fails, is interrupted, or waits for somebody who will not come ends the run of all: each
 * call returns then. Source of the semantics: StableHLO's specification of collectives. */
#ifndef XLAC_RUNTIME_COMMUNICATOR_H
#define XLAC_RUNTIME_COMMUNICATOR_H

#include <stdatomic.h>

#include "../base/memory.h"
#include "../base/status.h"

typedef struct rt_communicator rt_communicator;
struct rt_pool;

enum { RT_MOST_PARTICIPANTS = 1024 };

typedef enum rt_collective_kind {
  RT_ALL_REDUCE,      /* everybody gets the sum */
  RT_REDUCE_SCATTER,  /* member k gets part k of the sum */
  RT_ALL_GATHER,      /* everybody gets all arrays, one after another */
  RT_ALL_TO_ALL,      /* member k gets part k of each array, one after another */
  RT_ALL_TO_ALL_EACH, /* as many arrays as members: array j of member k's results is array k of member j */
  RT_PERMUTE,         /* member k gets the array of sources[k]; zeros where that is UINT32_MAX */
  RT_BROADCAST        /* everybody gets the first one's */
} rt_collective_kind;

/* One array of a collective, as `outer` rows of `inner` elements: of the operand of a gather, of the result of a
 * scatter, of a part of an exchange. Rows of all members lie side by side in what is larger. */
typedef struct rt_extent {
  int64_t outer, inner;
  uint32_t bytes; /* of an element */
} rt_extent;

typedef struct rt_group {
  uint32_t n, place;       /* how many members, and which of them we are */
  const uint32_t *members; /* participants, in the order of the program's groups */
  const uint32_t *sources; /* of RT_PERMUTE, by place: places; else NULL */
} rt_group;

/* Adds n elements of array k of some members, 1 to RT_MOST_COMBINED: into[i] = (from[0][i] + from[1][i]) + ... `into`
 * may be from[0]; else nothing overlaps. */
enum { RT_MOST_COMBINED = 8 };
typedef int rt_combine_fn(void *ctx, uint32_t k, int64_t n, void *into, uint32_t members, const void *const *from,
                          xlac_error *err);

/* What is the same for all members. They meet by kind, channel and members, in the order in which they come. */
typedef struct rt_collective {
  rt_collective_kind kind;
  int64_t channel;
  const char *name; /* of the op, for errors */
  uint32_t n;       /* arrays that each brings */
  const rt_extent *extents;
  bool settles; /* several threads may add up at a time, with one ctx, which lives as long as the run: in turns a large
                   one is done by rt_communicator_settle */
} rt_collective;

/* One participant in a call. */
typedef struct rt_participant {
  uint32_t number;
  bool (*interrupted)(void *ctx); /* asked about every 50 ms while it waits; may be NULL */
  void *interrupt_ctx;
} rt_participant;

typedef struct rt_communicator_vtable {
  void (*destroy)(rt_communicator *c);
  void (*begin)(rt_communicator *c);
  int (*collective)(rt_communicator *c, const rt_participant *us, const rt_collective *what, const rt_group *group,
                    const void *const *in, void *const *out, rt_combine_fn *combine, void *ctx, xlac_error *err);
  int (*meet)(rt_communicator *c, const rt_participant *us, const rt_collective *what, const rt_group *group,
              const void *item, const void **items, void **meeting, xlac_error *err);
  int (*part)(rt_communicator *c, const rt_participant *us, void *meeting, xlac_error *err);
  void (*fail)(rt_communicator *c, uint32_t participant, const xlac_error *why);
  void (*leave)(rt_communicator *c, uint32_t participant);
  bool (*waits)(const rt_communicator *c, uint32_t participant);
  int (*settle)(rt_communicator *c, struct rt_pool *pool, xlac_error *err);
  bool (*stopped)(const rt_communicator *c);
  bool (*why)(const rt_communicator *c, uint32_t *participant, xlac_error *err);
} rt_communicator_vtable;

/* What the devices of the participants keep from run to run. */
typedef struct rt_attachment {
  void (*destroy)(struct rt_attachment *a);
} rt_attachment;

struct rt_communicator {
  const rt_communicator_vtable *vtable;
  int64_t replicas, partitions;
  uint32_t processes;                  /* more than 1: of the table's entries meet and part are for groups within one */
  _Atomic(rt_attachment *) attachment; /* NULL, until the first that wants one sets it; ended with the communicator */
  bool in_turns; /* set between runs: all participants run on one thread, or some, which let none of them go on from a
                    collective before all members of its group have come there; then there is no meet */
};

/* The number of a participant. */
static inline uint32_t rt_participant_number(const rt_communicator *c, int64_t replica, int64_t partition) {
  assert(replica >= 0 && replica < c->replicas && partition >= 0 && partition < c->partitions);
  return (uint32_t)(replica * c->partitions + partition);
}
/* One for replicas * partitions participants in this process: 1 to RT_MOST_PARTICIPANTS. OUT_OF_MEMORY. */
XLAC_MUST_USE int rt_communicator_create(rt_communicator **out, int64_t replicas, int64_t partitions, base_alloc alloc,
                                         xlac_error *err);
static inline void rt_communicator_destroy(rt_communicator *c) { /* between runs; NULL is fine */
  if (c) c->vtable->destroy(c);
}
/* All participants are about to run; none does yet. */
static inline void rt_communicator_begin(rt_communicator *c) {
  c->vtable->begin(c);
}
/* The same for this process's participants in a run of several processes (network.h), on a communicator that
 * rt_communicator_create has made. across->net NULL: of one. */
struct rt_across;
void rt_communicator_begin_across(rt_communicator *c, const struct rt_across *across);
/* what->n arrays in and out, which do not overlap; but in turns members who get the same (all-reduce, all-gather,
 * broadcast) may have one memory for it. Returns when our results are written and our arrays are ours again;
 * in turns at once, where the last member to come does the work of all, or leaves it to rt_communicator_settle.
 * PARTICIPANTS: somebody we wait for will not come. INTERRUPTED: another one has failed, or we were interrupted. */
XLAC_MUST_USE static inline int rt_communicator_run(rt_communicator *c, const rt_participant *us,
                                                    const rt_collective *what, const rt_group *group,
                                                    const void *const *in, void *const *out, rt_combine_fn *combine,
                                                    void *ctx, xlac_error *err) {
  return c->vtable->collective(c, us, what, group, in, out, combine, ctx, err);
}
/* For collectives that the table has no kind for, within one process: brings something, and gets what all members have
 * brought, by place, until rt_communicator_part, which waits until everybody has seen it. Every meet that succeeds has
 * its part, whatever comes in between. */
XLAC_MUST_USE static inline int rt_communicator_meet(rt_communicator *c, const rt_participant *us,
                                                     const rt_collective *what, const rt_group *group, const void *item,
                                                     const void **items, void **meeting, xlac_error *err) {
  return c->vtable->meet(c, us, what, group, item, items, meeting, err);
}
XLAC_MUST_USE static inline int rt_communicator_part(rt_communicator *c, const rt_participant *us, void *meeting,
                                                     xlac_error *err) {
  return c->vtable->part(c, us, meeting, err);
}
/* The error as whoever is told of it elsewhere reads it: with the device that it came from, but where nobody's device
 * is to blame (UINT32_MAX, interrupts, participants that don't come). */
xlac_error rt_error_of(uint32_t participant, const xlac_error *why);
/* The run has failed, because of that participant: all end. Any thread. */
static inline void rt_communicator_fail(rt_communicator *c, uint32_t participant, const xlac_error *why) {
  c->vtable->fail(c, participant, why);
}
/* A participant's program is over. */
static inline void rt_communicator_leave(rt_communicator *c, uint32_t participant) {
  c->vtable->leave(c, participant);
}
/* In turns, while nobody runs: does on all threads of the pool what was left for it, large collectives to which all
 * have come. */
XLAC_MUST_USE static inline int rt_communicator_settle(rt_communicator *c, struct rt_pool *pool, xlac_error *err) {
  return c->vtable->settle(c, pool, err);
}
/* In turns, while nobody runs: whether somebody has yet to come to where the participant is. */
static inline bool rt_communicator_waits(const rt_communicator *c, uint32_t participant) {
  return c->vtable->waits(c, participant);
}
/* Whether the run has failed: participants look at it between steps. */
static inline bool rt_communicator_stopped(const rt_communicator *c) {
  return c->vtable->stopped(c);
}
/* Who has failed first, and why; false: nobody. When all have left. UINT32_MAX: somebody in another process, whose
 * error it is. */
static inline bool rt_communicator_why(const rt_communicator *c, uint32_t *participant, xlac_error *err) {
  return c->vtable->why(c, participant, err);
}

/* --- collective.c: the work of members [from, to), on the arrays of all --- */
typedef struct rt_exchange {
  const rt_collective *what;
  uint32_t members;
  const uint32_t *sources;      /* of RT_PERMUTE */
  const void *const *const *in; /* by member, by array */
  void *const *const *out;
  rt_combine_fn *combine;
  void *ctx;
} rt_exchange;
XLAC_MUST_USE int rt_exchange_run(const rt_exchange *x, uint32_t from, uint32_t to, xlac_error *err);
/* Bytes that all members together write. */
int64_t rt_exchange_bytes(const rt_collective *what, uint32_t members);

#endif
