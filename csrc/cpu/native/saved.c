/* Machine code from one build of a program to the next: of each body its key, its code, and where that has addresses,
 * which are counted from the library's beginning while they are saved. So code fits wherever the library is loaded, and
 * nothing is believed of a program but what its bodies are: code is found by them.
 *
 *   head, knowns by their keys, places of addresses, code: in this machine's own order, since no other one runs it. */
#include <stdlib.h>

#include "native_inside.h"

typedef struct saved_head {
  uint32_t n_knowns, n_addresses, n_code, zero;
} saved_head;

/* Any function of the library's does. */
uintptr_t nat_base(void) {
  return (uintptr_t)nat_saved_put;
}

static int saved_compare(const void *a, const void *b) {
  const base_sum *x = a, *y = b; /* keys come first */
  if (x->a != y->a) return x->a < y->a ? -1 : 1;
  return x->b < y->b ? -1 : x->b > y->b;
}
_Static_assert(offsetof(cpu_native_known, key) == 0, "knowns are compared as their keys");

/* The bytes as what they are; false where they are something else. */
typedef struct saved_parts {
  saved_head head;
  const char *knowns, *addresses, *code;
} saved_parts;
static bool saved_open(const rt_saved_code *from, saved_parts *p) {
  if (!from || from->n < sizeof p->head) return false;
  memcpy(&p->head, from->bytes, sizeof p->head);
  size_t knowns = (size_t)p->head.n_knowns * sizeof(cpu_native_known), addresses = (size_t)p->head.n_addresses * 4;
  p->knowns = from->bytes + sizeof p->head;
  if (knowns + addresses + p->head.n_code != from->n - sizeof p->head) return false;
  p->addresses = p->knowns + knowns;
  p->code = p->addresses + addresses;
  return true;
}

static bool saved_find(const saved_parts *p, base_sum key, cpu_native_known *k) {
  uint32_t low = 0, high = p->head.n_knowns;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    memcpy(k, p->knowns + middle * sizeof *k, sizeof *k);
    int order = saved_compare(&key, &k->key);
    if (order == 0)
      return k->n_code <= p->head.n_code && k->entry <= p->head.n_code - k->n_code &&
             k->n_addresses <= p->head.n_addresses && k->first <= p->head.n_addresses - k->n_addresses;
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return false;
}

static void saved_move_address(uint8_t *at, uintptr_t by) {
  uint64_t address;
  memcpy(&address, at, sizeof address);
  address += by;
  memcpy(at, &address, sizeof address);
}

bool nat_saved_take(cpu_native_store *s, base_sum key) {
  saved_parts p;
  cpu_native_known k;
  if (!saved_open(s->saved, &p) || !saved_find(&p, key, &k)) return false;
  if (!BASE_VEC_RESERVE(s->alloc, &s->code, (size_t)s->code.n + k.n_code) ||
      !BASE_VEC_RESERVE(s->alloc, &s->addresses, (size_t)s->addresses.n + k.n_addresses))
    return false;
  if (k.n_addresses)
    memcpy(s->addresses.items + s->addresses.n, p.addresses + (size_t)k.first * 4, (size_t)k.n_addresses * 4);
  memcpy(s->code.items + s->code.n, p.code + k.entry, k.n_code);
  for (uint32_t i = 0; i < k.n_addresses; i++) {
    uint32_t at = s->addresses.items[s->addresses.n + i];
    if (at > k.n_code || k.n_code - at < 8) return false;
    saved_move_address(s->code.items + s->code.n + at, nat_base());
  }
  s->code.n += k.n_code;
  s->addresses.n += k.n_addresses;
  return true;
}

void nat_saved_put(const cpu_native_store *s) {
  base_text *out = s->saved ? s->saved->out : NULL;
  if (!out) return;
  saved_head head = {s->known.n, s->addresses.n, s->code.n, 0};
  base_put(out, (const char *)&head, sizeof head);
  size_t knowns = out->n, n = s->known.n * sizeof *s->known.items;
  if (n) base_put(out, (const char *)s->known.items, n);
  if (n && !out->failed) qsort(out->s + knowns, s->known.n, sizeof *s->known.items, saved_compare);
  if (s->addresses.n) base_put(out, (const char *)s->addresses.items, s->addresses.n * sizeof *s->addresses.items);
  size_t code = out->n;
  base_put(out, (const char *)s->code.items, s->code.n);
  for (uint32_t i = 0; !out->failed && i < s->known.n; i++) {
    const cpu_native_known *k = &s->known.items[i];
    for (uint32_t j = 0; j < k->n_addresses; j++)
      saved_move_address((uint8_t *)out->s + code + k->entry + s->addresses.items[k->first + j],
                         (uintptr_t)0 - nat_base());
  }
}
