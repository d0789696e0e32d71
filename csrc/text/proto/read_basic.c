/* Strings, lists of numbers and dictionaries of HloModuleProto. */
#include <stdlib.h>

#include "../hlo/print.h"
#include "read.h"

int proto_intern(proto_reader *r, const char *s, size_t n, const base_istr **out) {
  if (n > UINT32_MAX / 2) return proto_fail(&r->s, (const uint8_t *)s, XLAC_E_TOO_LARGE, "a string of %zu bytes", n);
  *out = ir_intern(r->m, n ? s : "", n);
  return *out ? 0 : proto_no_memory(&r->s);
}

int proto_read_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out) {
  base_slice s = proto_bytes(&r->s, in, number);
  *out = NULL;
  return s.n ? proto_intern(r, s.p, s.n, out) : 0;
}

int proto_read_ints(proto_reader *r, proto_message in, uint32_t number, const ir_ints **out) {
  uint32_t from;
  TRY(proto_list(&r->s, in, number, &from));
  *out = ir_ints_make(r->m, r->s.numbers.n - from, r->s.numbers.items + from);
  r->s.numbers.n = from;
  return *out ? 0 : proto_no_memory(&r->s);
}

int proto_read_array(proto_reader *r, proto_message in, uint32_t number, uint32_t *n, const int64_t **out) {
  const ir_ints *ints;
  TRY(proto_read_ints(r, in, number, &ints));
  *n = ints->n;
  *out = ints->v;
  return 0;
}

static int compare_dict_keys(const void *a, const void *b) {
  const base_istr *x = ((const ir_dict_entry *)a)->key, *y = ((const ir_dict_entry *)b)->key;
  int c = memcmp(x->s, y->s, x->n < y->n ? x->n : y->n);
  return c ? c : (x->n > y->n) - (x->n < y->n);
}

/* The bytes of `number`, maybe none. */
int proto_read_any_str(proto_reader *r, proto_message in, uint32_t number, const base_istr **out) {
  base_slice s = proto_bytes(&r->s, in, number);
  return proto_intern(r, s.p, s.n, out);
}

static int read_dict_entry(proto_reader *r, proto_field f, ir_dict_entry *e) {
  proto_message entry;
  TRY(proto_open_field(&r->s, f, &entry));
  TRY(proto_read_any_str(r, entry, 1, &e->key));
  TRY(proto_read_any_str(r, entry, 2, &e->value));
  e->raw = text_is_json_dict(e->value->s, e->value->n);
  proto_close(&r->s, entry);
  return 0;
}

/* xla.FrontendAttributes: sorted by key; of several entries with one key the last counts. */
int proto_read_dict(proto_reader *r, proto_message in, uint32_t number, const ir_dict **out) {
  proto_message map;
  proto_field f;
  TRY(proto_open_sub(&r->s, in, number, &map));
  uint32_t at = map.first, n = proto_count(&r->s, map, 1, PROTO_LENGTH);
  ir_dict *d = base_arena_zalloc(&r->m->arena, sizeof *d + n * sizeof d->v[0]);
  base_map seen;
  int status = d ? 0 : proto_no_memory(&r->s);
  base_map_init(&seen, r->s.alloc);
  while (status == 0 && proto_next(&r->s, map, 1, PROTO_LENGTH, &at, &f)) {
    ir_dict_entry e = {0};
    uint64_t place;
    if ((status = read_dict_entry(r, f, &e)) != 0) break;
    if (!base_map_get(&seen, base_key(e.key), &place)) place = d->n++;
    d->v[place] = e;
    if (!base_map_set(&seen, base_key(e.key), place)) status = proto_no_memory(&r->s);
  }
  base_map_free(&seen);
  TRY(status);
  proto_close(&r->s, map);
  if (d->n) qsort(d->v, d->n, sizeof d->v[0], compare_dict_keys);
  *out = d;
  return 0;
}
