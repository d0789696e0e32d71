/* Devices by name, and the sets that they belong to.
 *
 * Nothing is global: a set has the devices of one xlac_runtime, each opened when it is first asked for. Reference
 * counted; all functions, any thread. Devices don't need their set: an executable keeps its device, not the others. */
#ifndef XLAC_RUNTIME_DEVICES_H
#define XLAC_RUNTIME_DEVICES_H

#include "host.h"

typedef struct rt_device_set rt_device_set;

/* A kind of devices: its name, what makes context `ordinal` of it, a new reference, and how many the machine has,
 * without opening any; NULL: as many as are asked for. */
typedef struct rt_device_kind {
  const char *kind;
  int (*create)(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err);
  int (*count)(uint32_t *n, xlac_error *err);
} rt_device_kind;

/* Of devices of these kinds, a table that ends with a NULL and stays. Context 0 of the first, whose memory must be the
 * host's, is opened at once. */
XLAC_MUST_USE int rt_device_set_create(rt_device_set **out, const rt_device_kind *kinds, base_alloc alloc,
                                       xlac_error *err);
rt_device_set *rt_device_set_retain(rt_device_set *set);
void rt_device_set_release(rt_device_set *set); /* NULL is fine; not from inside a run */

/* "cpu", "cpu:1", "interp": kind, and number of a context, 0 where there is none; NULL: the first. A borrowed reference
 * that lives as long as the set. BAD_ARGUMENT: no such kind, or no such number. */
XLAC_MUST_USE int rt_device_set_open(rt_device_set *set, const char *name, rt_device **out, xlac_error *err);
/* For the n devices of a group, which may share them: the device of each, but only of those from number `from` on that
 * are `here`; of the others NULL, and they are not opened. `names` is one name, or n of them with commas between. A
 * kind without a number, of which a machine has so many ("cuda"), is spread over: number 0 for the first, and so on,
 * from number 0 again where there are fewer. BAD_ARGUMENT: other names than one or n, or devices that can't share a
 * plan: of two kinds, or several whose memory is the host's. */
typedef struct rt_seats {
  uint32_t n, from, here;
} rt_seats;
XLAC_MUST_USE int rt_device_set_open_group(rt_device_set *set, const char *names, const rt_seats *seats,
                                           rt_device **out, xlac_error *err);
/* Number `index` of those opened so far, in the order in which that was, borrowed; NULL past the end. */
rt_device *rt_device_set_at(rt_device_set *set, uint32_t index);
/* Whose memory is for arrays of the library's own: that of the first. */
rt_host *rt_device_set_home(const rt_device_set *set);
/* Of the memory of all of its devices on the host. */
uint64_t rt_device_set_trim(rt_device_set *set, uint64_t keep);
void rt_device_set_limit(rt_device_set *set, uint64_t bytes);
void rt_device_set_memory(rt_device_set *set, rt_recycler_info *sum);
uint32_t rt_device_set_threads(rt_device_set *set);

#endif
