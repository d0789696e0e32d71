/* Programs on several processes. xlac.distributed connects them; so may anybody who has sockets. */
#ifndef XLAC_NETWORK_H
#define XLAC_NETWORK_H

#include "xlac.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* The processes that run programs together, each with a part of the devices. Any thread may use it; one call of a
 * program is under way on it at a time, and all processes call the same programs in the same order: what differs is an
 * error. Executables that have joined it keep it. */
typedef struct xlac_network xlac_network;
typedef struct xlac_peer {
  int fd;           /* a stream socket that is connected to that process; -1: ourselves */
  const char *name; /* for errors: "rank 1 (process 4711 on here)"; copied */
} xlac_peer;
/* Processes by rank; takes the sockets, also on failure. Both ends are of the same version and byte order.
 * BAD_ARGUMENT; OUT_OF_MEMORY. */
int xlac_network_create(xlac_network **out, uint32_t rank, uint32_t n, const xlac_peer *peers, xlac_error *err);
/* Everybody's bytes: those of rank 0, of rank 1, ... in *all, to be freed with xlac_free, and their lengths in sizes.
 * Called by all processes, in the same order. PARTICIPANTS: some process is gone. Heeds xlac_set_interrupt. */
int xlac_network_gather(xlac_network *net, const void *data, size_t n, char **all, size_t *sizes, xlac_error *err);
/* Leaves: those who wait for us get an error, with `why` where that is not NULL. What this process runs on it ends. */
void xlac_network_close(xlac_network *net, const char *why);
void xlac_network_release(xlac_network *net);
/* An executable of many devices, before its first call, becomes that of all processes. processes: the rank that runs
 * each device; NULL: they are shared evenly, rank r runs the r-th part. Calls with shards then take and give those of
 * this process alone, in the order of the devices; whole arrays are the same on all. label: what the other processes
 * must say, too. BAD_ARGUMENT; PARTICIPANTS: the devices can't be shared, or this process has none. */
int xlac_executable_join(xlac_executable *exe, xlac_network *net, const uint32_t *processes, const char *label,
                         xlac_error *err);
/* How many calls have begun on the network of the executable; 0: it has none. Where a call fails before it begins, such
 * as for a wrong argument, the other processes wait for this one: told that number, as it was before, they hear why
 * their call fails. Nothing where another call has begun since. */
uint64_t xlac_executable_calls(const xlac_executable *exe);
void xlac_executable_refuse(const xlac_executable *exe, uint64_t calls, const char *why);
/* The devices of a group that this process runs, where these follow one another: all of them, but on a network. */
void xlac_executable_here(const xlac_executable *exe, uint32_t *from, uint32_t *here);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
