/* An open-addressing map: linear probing in a table of a power of two of slots, at most three quarters full. */
#include "map.h"

#include <assert.h>

enum { FIRST_CAP = 16 };

/* Allocates nothing. */
void base_map_init(base_map *m, base_alloc alloc) {
  *m = (base_map){.alloc = alloc};
}

void base_map_free(base_map *m) {
  base_free(m->alloc, m->slots);
  *m = (base_map){.alloc = m->alloc};
}

/* Keeps the memory. */
void base_map_clear(base_map *m) {
  if (m->n) memset(m->slots, 0, m->cap * sizeof *m->slots);
  m->n = 0;
  m->has_zero = false;
}

/* The slot that holds `key`, or the empty one where it belongs. The high bits of a product depend on all bits of the
 * key. */
static base_map_slot *slot_of(base_map_slot *slots, uint32_t cap, uint64_t key) {
  assert(key && cap && (cap & (cap - 1)) == 0);
  uint32_t i = (uint32_t)((key * 0x9E3779B97F4A7C15u) >> 32) >> (__builtin_clz(cap) + 1);
  while (slots[i].key && slots[i].key != key) i = (i + 1) & (cap - 1);
  return &slots[i];
}

/* Doubles, and puts all back. The map is as before where it fails. */
static bool grow_map(base_map *m) {
  if (m->cap > UINT32_MAX / 4) return false;
  uint32_t cap = m->cap ? m->cap * 2 : FIRST_CAP;
  size_t bytes;
  if (!base_mul(cap, sizeof *m->slots, &bytes)) return false;
  base_map_slot *slots = base_malloc(m->alloc, bytes);
  if (!slots) return false;
  memset(slots, 0, bytes);
  for (uint32_t i = 0; i < m->cap; ++i)
    if (m->slots[i].key) *slot_of(slots, cap, m->slots[i].key) = m->slots[i];
  base_free(m->alloc, m->slots);
  m->slots = slots;
  m->cap = cap;
  return true;
}

bool base_map_set(base_map *m, uint64_t key, uint64_t value) {
  assert(m->alloc.fn);
  if (key == 0) {
    m->has_zero = true;
    m->zero = value;
    return true;
  }
  if (m->n >= m->cap - m->cap / 4 && !grow_map(m)) return false;
  base_map_slot *s = slot_of(m->slots, m->cap, key);
  m->n += s->key == 0;
  *s = (base_map_slot){key, value};
  assert(m->n < m->cap);
  return true;
}

bool base_map_get(const base_map *m, uint64_t key, uint64_t *value) {
  assert(value);
  if (key == 0) {
    if (m->has_zero) *value = m->zero;
    return m->has_zero;
  }
  if (m->n == 0) return false;
  const base_map_slot *s = slot_of(m->slots, m->cap, key);
  if (s->key == 0) return false;
  *value = s->value;
  return true;
}
