/* Names are "kind" or "kind:number". A set opens a context at its first mention and keeps it until the set
 * goes; nothing is closed before, so pointers to contexts need no lock. */
#include "devices.h"
#include "../base/export.h"

#include <stdio.h>

enum { DEVICES_MOST = 256 /* contexts of a kind */ };

/* Only ever added, each by one exchange, so that there is no lock that a fork could catch held. */
typedef struct devices_entry {
  struct devices_entry *next; /* the one opened before */
  rt_device *device;
  uint32_t index; /* in order of opening */
} devices_entry;

struct rt_device_set {
  base_alloc alloc;
  atomic_uint refs;
  const rt_device_kind *kinds;
  devices_entry *_Atomic last;
  rt_host *home;
};

/* Lists the kinds that there are, as many as fit. */
static int devices_unknown(const rt_device_set *set, const char *name, xlac_error *err) {
  char known[200] = "";
  size_t n = 0;
  for (const rt_device_kind *k = set->kinds; k->kind && n + 40 < sizeof known; k++)
    n += (size_t)snprintf(known + n, sizeof known - n, "%s%.30s", n ? ", " : "", k->kind);
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT, "there is no device '%.60s'", name);
  if (strncmp(name, "gpu", 3) == 0)
    return base_hint(err, status, "\"cuda\" is an NVIDIA GPU; kinds of devices are %s", known);
  return base_hint(err, status, "kinds of devices are %s; %s:1 is a second context of that kind, and %d the last one",
                   known, set->kinds[0].kind, (int)DEVICES_MOST - 1);
}

/* A number without sign or spaces, at most three digits long. */
static bool devices_read_ordinal(const char *s, uint32_t *out) {
  size_t n = strlen(s);
  *out = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] < '0' || s[i] > '9') return false;
    if (i < 3) *out = *out * 10 + (uint32_t)(s[i] - '0');
  }
  return n > 0 && n <= 3 && *out < DEVICES_MOST;
}

/* Kinds are matched whole: "cp" is none. */
static int devices_read_name(const rt_device_set *set, const char *name, const rt_device_kind **kind, uint32_t *ordinal,
                             xlac_error *err) {
  const char *colon = strchr(name, ':');
  size_t n = colon ? (size_t)(colon - name) : strlen(name);
  const rt_device_kind *k = set->kinds;
  *ordinal = 0;
  while (k->kind && (strlen(k->kind) != n || memcmp(k->kind, name, n) != 0)) k++;
  if (!k->kind || (colon && !devices_read_ordinal(colon + 1, ordinal))) return devices_unknown(set, name, err);
  *kind = k;
  return 0;
}

/* --- sets --- */

/* The context of that kind and number, among the entries from `e` back. */
static rt_device *devices_find(const devices_entry *e, const char *kind, uint32_t ordinal) {
  for (; e; e = e->next)
    if (e->device->facts.ordinal == ordinal && strcmp(e->device->facts.kind, kind) == 0) return e->device;
  return NULL;
}

/* Two who open one at the same time both make it; the one that comes second drops its own. */
static int devices_add(rt_device_set *set, const rt_device_kind *kind, uint32_t ordinal, rt_device **out,
                       xlac_error *err) {
  devices_entry *own = base_malloc(set->alloc, sizeof *own);
  if (!own) return base_oom(err, "a device");
  int status = kind->create(&own->device, ordinal, set->alloc, err);
  if (status) {
    base_free(set->alloc, own);
    return status;
  }
  own->next = atomic_load(&set->last);
  do {
    rt_device *other = devices_find(own->next, kind->kind, ordinal);
    if (other) {
      rt_device_release(own->device);
      base_free(set->alloc, own);
      *out = other;
      return 0;
    }
    own->index = own->next ? own->next->index + 1 : 0;
  } while (!atomic_compare_exchange_weak(&set->last, &own->next, own));
  *out = own->device;
  return 0;
}

BASE_EXPORT int rt_device_set_open(rt_device_set *set, const char *name, rt_device **out, xlac_error *err) {
  const rt_device_kind *kind = set->kinds;
  uint32_t ordinal = 0;
  if (name) TRY(devices_read_name(set, name, &kind, &ordinal, err));
  *out = devices_find(atomic_load(&set->last), kind->kind, ordinal);
  return *out ? 0 : devices_add(set, kind, ordinal, out, err);
}

/* --- groups --- */

static bool devices_is_here(const rt_seats *seats, uint32_t i) {
  return i >= seats->from && i - seats->from < seats->here;
}

/* The contexts of a kind that is named without a number, in turn. */
static int devices_spread(rt_device_set *set, const rt_device_kind *kind, const rt_seats *seats, rt_device **out,
                          xlac_error *err) {
  uint32_t all = 0;
  char name[32];
  if (kind->count) TRY(kind->count(&all, err));
  for (uint32_t i = seats->from; devices_is_here(seats, i); i++) {
    snprintf(name, sizeof name, "%.20s:%u", kind->kind, (unsigned)(all ? i % all : 0));
    TRY(rt_device_set_open(set, name, &out[i], err));
  }
  return 0;
}

/* The name before the comma, or the end. Only whether it is one, where nobody is to be opened: out is NULL. */
static int devices_open_next(rt_device_set *set, const char **at, rt_device **out, xlac_error *err) {
  char name[32];
  size_t n = strcspn(*at, ",");
  const rt_device_kind *kind = NULL;
  uint32_t ordinal = 0;
  snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), *at);
  *at += n;
  if (n >= sizeof name) return devices_unknown(set, name, err);
  return out ? rt_device_set_open(set, name, out, err) : devices_read_name(set, name, &kind, &ordinal, err);
}

/* Beside the first one. */
static int devices_check_alike(const rt_device *first, const rt_device *other, xlac_error *err) {
  char own[32], its[32];
  if (first == other || (!rt_device_is_host(other) && strcmp(first->facts.kind, other->facts.kind) == 0)) return 0;
  rt_device_name(first, own);
  rt_device_name(other, its);
  return base_hint(err, base_fail(err, XLAC_E_BAD_ARGUMENT, "a group can't be on %s and %s", own, its),
                   "its devices are GPUs of one kind, or all of them one context: %s", own);
}

/* One name for all. */
static int devices_open_named(rt_device_set *set, const char *name, const rt_seats *seats, rt_device **out,
                              xlac_error *err) {
  const rt_device_kind *kind = set->kinds;
  uint32_t ordinal = 0;
  if (name) TRY(devices_read_name(set, name, &kind, &ordinal, err));
  if (name && !strchr(name, ':')) return devices_spread(set, kind, seats, out, err);
  TRY(rt_device_set_open(set, name, &out[seats->from], err));
  for (uint32_t i = seats->from; devices_is_here(seats, i); i++) out[i] = out[seats->from];
  return 0;
}

int rt_device_set_open_group(rt_device_set *set, const char *names, const rt_seats *seats, rt_device **out,
                             xlac_error *err) {
  const char *at = names;
  uint32_t found = 0;
  assert(seats->here > 0 && seats->from + seats->here <= seats->n);
  memset(out, 0, seats->n * sizeof *out);
  if (!names || !strchr(names, ',')) return devices_open_named(set, names, seats, out, err);
  for (; found < seats->n; found++) {
    const bool here = devices_is_here(seats, found);
    TRY(devices_open_next(set, &at, here ? &out[found] : NULL, err));
    if (here) TRY(devices_check_alike(out[seats->from], out[found], err));
    if (!*at) break;
    at++;
  }
  if (found + 1 == seats->n) return 0;
  return base_fail(err, XLAC_E_BAD_ARGUMENT, "%u devices, and other than so many names: %.200s", (unsigned)seats->n,
                   names);
}

int rt_device_set_create(rt_device_set **out, const rt_device_kind *kinds, base_alloc alloc, xlac_error *err) {
  rt_device *first = NULL;
  rt_device_set *set = base_malloc(alloc, sizeof *set);
  if (!set) return base_oom(err, "a set of devices");
  memset(set, 0, sizeof *set);
  set->alloc = alloc;
  set->kinds = kinds;
  atomic_init(&set->refs, 1);
  int status = rt_device_set_open(set, NULL, &first, err);
  if (status) {
    rt_device_set_release(set);
    return status;
  }
  assert(first->facts.spaces[0].host_visible);
  set->home = rt_host_of(first);
  *out = set;
  return 0;
}

rt_device_set *rt_device_set_retain(rt_device_set *set) {
  atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
  return set;
}

void rt_device_set_release(rt_device_set *set) {
  if (!set || atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) != 1) return;
  for (devices_entry *e = atomic_load(&set->last), *next; e; e = next) {
    next = e->next;
    rt_device_release(e->device);
    base_free(set->alloc, e);
  }
  base_free(set->alloc, set);
}

rt_device *rt_device_set_at(rt_device_set *set, uint32_t index) {
  const devices_entry *e = atomic_load(&set->last);
  while (e && e->index != index) e = e->next;
  return e ? e->device : NULL;
}

rt_host *rt_device_set_home(const rt_device_set *set) {
  return set->home;
}

/* --- the memory of all --- */

/* All kinds there are have memory of the host's, if only for what passes through. */
static rt_recycler *devices_memory(const devices_entry *e) {
  assert(rt_host_of(e->device));
  return rt_host_memory(rt_host_of(e->device));
}

/* `keep` bytes for each device, not for all together. */
uint64_t rt_device_set_trim(rt_device_set *set, uint64_t keep) {
  uint64_t freed = 0;
  for (const devices_entry *e = atomic_load(&set->last); e; e = e->next)
    freed += rt_recycler_trim(devices_memory(e), keep);
  return freed;
}

void rt_device_set_limit(rt_device_set *set, uint64_t bytes) {
  for (const devices_entry *e = atomic_load(&set->last); e; e = e->next) rt_recycler_limit(devices_memory(e), bytes);
}

/* Peaks are added up, too, though they need not have been at the same time. */
void rt_device_set_memory(rt_device_set *set, rt_recycler_info *sum) {
  rt_recycler_get(rt_host_memory(set->home), sum);
  for (const devices_entry *e = atomic_load(&set->last); e; e = e->next) {
    rt_recycler_info m;
    if (rt_host_of(e->device) == set->home) continue;
    rt_recycler_get(devices_memory(e), &m);
    sum->taken += m.taken;
    sum->reused += m.reused;
    sum->live += m.live;
    sum->live_bytes += m.live_bytes;
    sum->peak_bytes += m.peak_bytes;
    sum->kept += m.kept;
    sum->kept_bytes += m.kept_bytes;
  }
}

uint32_t rt_device_set_threads(rt_device_set *set) {
  uint32_t n = 0;
  for (const devices_entry *e = atomic_load(&set->last); e; e = e->next) n += rt_host_threads(rt_host_of(e->device));
  return n;
}
