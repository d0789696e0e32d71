/* Networks: the processes that run one program together, each connected to every other one.
 *
 * Whoever makes a network has connected its sockets (xlac.distributed does). A thread of the network's reads whatever
 * comes, whether or not anybody waits for it, so that those who send never wait for one another.
 *
 * Runs: one call of a program on all processes at a time, in the same order everywhere. Each process says what it runs
 * when it begins; what differs ends the run on both sides. A process that fails tells the others, and so does one that
 * ends; one that dies is known by its closed connection. All errors name ranks.
 * Threads: any. In a forked child a network can't be used. */
#ifndef XLAC_RUNTIME_NETWORK_H
#define XLAC_RUNTIME_NETWORK_H

#include "communicator.h"

enum { RT_MOST_PROCESSES = 1024, RT_LABEL_BYTES = 320 };

typedef struct rt_network rt_network;

typedef struct rt_peer {
  int fd;           /* a connected stream socket; -1: ourselves */
  const char *name; /* "rank 1 (process 4711 on here)" */
} rt_peer;

/* What somebody waits for. */
typedef struct rt_receipt {
  struct rt_receipt *next;
  uint32_t peer;
  uint8_t state;
  uint64_t run, tag;
  char *to;
  size_t bytes;
} rt_receipt;

/* Takes the sockets, also on failure. */
XLAC_MUST_USE int rt_network_create(rt_network **out, uint32_t rank, uint32_t n, const rt_peer *peers, base_alloc alloc,
                                    xlac_error *err);
rt_network *rt_network_retain(rt_network *net);
void rt_network_release(rt_network *net); /* NULL is fine; the last one closes it */
/* Says goodbye to all; `why`, if not NULL, is what those hear who still wait for us. What waits here fails. */
void rt_network_close(rt_network *net, const char *why);
uint32_t rt_network_rank(const rt_network *net);
uint32_t rt_network_size(const rt_network *net);

/* --- runs --- */
/* Our next run. all: waits until everybody has begun it. PARTICIPANTS: another one is under way in this process, some
 * rank runs something else, has failed, or is gone. A run that has begun ends, also after a failure. */
XLAC_MUST_USE int rt_network_begin(rt_network *net, const rt_participant *us, const char *label, bool all,
                                   uint64_t *run, xlac_error *err);
void rt_network_end(rt_network *net, uint64_t run);
/* The run has failed here: all others end theirs. Not told to them when they have told us. */
void rt_network_fail(rt_network *net, uint64_t run, const xlac_error *why);
/* How many runs there were; and a run that fails before it begins, where there were as many and none is under way. */
uint64_t rt_network_runs(rt_network *net);
void rt_network_refuse(rt_network *net, uint64_t runs, const char *why);
/* Whether others have ended the run under way, or we have; and why, where it was others. */
bool rt_network_stopped(const rt_network *net);
bool rt_network_why(rt_network *net, xlac_error *err);

/* --- messages: by peer, run and tag, in the order in which they are sent. Run 0 is outside of all runs --- */
/* One message, in pieces: begin (which keeps the peer's line until end), n bytes in all, end, also after a failure. */
XLAC_MUST_USE int rt_network_send_begin(rt_network *net, uint32_t peer, const rt_participant *us, uint64_t run,
                                        uint64_t tag, size_t n, xlac_error *err);
XLAC_MUST_USE int rt_network_send_some(rt_network *net, uint32_t peer, const rt_participant *us, const void *data,
                                       size_t n, xlac_error *err);
XLAC_MUST_USE int rt_network_send_end(rt_network *net, uint32_t peer, const rt_participant *us, int status,
                                      xlac_error *err);
/* r->bytes bytes to r->to, which nobody touches until rt_network_await, or rt_network_forget. */
void rt_network_expect(rt_network *net, rt_receipt *r);
/* name: what the message is for, in errors. */
XLAC_MUST_USE int rt_network_await(rt_network *net, const rt_participant *us, rt_receipt *r, const char *name,
                                   xlac_error *err);
void rt_network_forget(rt_network *net, rt_receipt *r);
/* Everybody's bytes, by rank, one after another in *all (libc's, to be freed), whose lengths go to sizes. In the same
 * order on all ranks; outside of runs. */
XLAC_MUST_USE int rt_network_gather(rt_network *net, const rt_participant *us, const void *data, size_t n, char **all,
                                    size_t *sizes, xlac_error *err);

/* --- net/across.c: collectives whose members are in several processes --- */
typedef struct rt_across {
  rt_network *net;         /* NULL: one process */
  const uint32_t *process; /* by participant */
  uint32_t here;           /* how many of them are ours */
  uint64_t run;
} rt_across;
static inline bool rt_is_here(const rt_across *a, uint32_t participant) {
  return !a->net || a->process[participant] == rt_network_rank(a->net);
}
/* The whole work of the members that are here. x: lists of members elsewhere are NULL. Sums as in one process. */
XLAC_MUST_USE int rt_across_run(const rt_across *a, const rt_participant *us, const rt_exchange *x,
                                const uint32_t *members, base_alloc alloc, xlac_error *err);

#endif
