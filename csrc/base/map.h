/* Hash maps: 64-bit keys (ids, pointers) to 64-bit values. Open addressing, no deletion but clear. Thread-compatible.
 */
#ifndef XLAC_BASE_MAP_H
#define XLAC_BASE_MAP_H

#include "memory.h"

/* key 0: empty. */
typedef struct base_map_slot {
  uint64_t key, value;
} base_map_slot;

/* Initialise with base_map_init; a zeroed map has no allocator. */
typedef struct base_map {
  base_alloc alloc;
  base_map_slot *slots;
  uint32_t n, cap; /* cap is a power of two */
  bool has_zero;   /* key 0 marks an empty slot, so its value lives aside */
  uint64_t zero;
} base_map;

/* m owns its slots from here to base_map_free; the allocator must outlive it. Free leaves an empty map that may be
 * used again; clear keeps the memory. */
void base_map_init(base_map *m, base_alloc alloc);
void base_map_free(base_map *m);
void base_map_clear(base_map *m);
/* false when out of memory. Replaces an earlier value. */
bool base_map_set(base_map *m, uint64_t key, uint64_t value);
/* false when absent; *value then untouched. */
bool base_map_get(const base_map *m, uint64_t key, uint64_t *value);

/* A pointer as a key: the address, so only while what it points to lives. */
static inline uint64_t base_key(const void *p) {
  return (uint64_t)(uintptr_t)p;
}
/* The pointer stored under a pointer, NULL where there is none. */
static inline void *base_map_ptr(const base_map *m, const void *key) {
  uint64_t v = 0;
  return base_map_get(m, base_key(key), &v) ? (void *)(uintptr_t)v : NULL;
}

#endif
