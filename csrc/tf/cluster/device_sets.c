/* Devices of a graph, and sets of them that one cluster may have (DeviceInfoCache, PickDeviceForXla). Sets are
 * kept in the arena and made once: a cluster's set is a pointer, joins are remembered by the numbers of both. */
#include "pass.h"

/* The caller's rows win over the table; the CPU's row is a copy whose policy the flags decide. NULL: XLA does not
 * know the type. */
static const tf_device_registration *tf_registration_of(const tf_pass *p, base_slice type) {
  for (const tf_device_registration *r = p->flags.devices; r && r->type; r++)
    if (base_slice_is(type, r->type)) return r;
  if (base_slice_is(type, "CPU")) return &p->cpu;
  for (const tf_device_registration *r = tf_device_table; r->type; r++)
    if (base_slice_is(type, r->type)) return r;
  return NULL;
}

/* Looked for from the back: nodes that follow one another mostly share a device, and graphs have few. */
int tf_find_device(tf_pass *p, const base_istr *name, uint32_t *out, xlac_error *err) {
  *out = TF_NO_DEVICE;
  if (!name) return 0;
  for (uint32_t i = p->devices.n; i > 0; i--) {
    if (p->devices.items[i - 1].name != name) continue;
    *out = i - 1;
    return 0;
  }
  tf_device_name parts;
  bool fine = tf_device_parse((base_slice){name->s, name->n}, &parts);
  tf_device_entry e = {.name = name, .type = fine ? parts.type : BASE_SLICE(""), .malformed = !fine};
  e.registration = tf_registration_of(p, e.type);
  *out = p->devices.n;
  return BASE_VEC_PUSH(p->graph.alloc, &p->devices, e) ? 0 : base_oom(err, "clustering");
}

/* --- sets --- */

/* The one of two names of devices that says more; false where neither says all that the other says.
 * "/device:GPU:0" wins over "/device:GPU:*"; where each says something that the other does not, they do not go
 * together. */
static bool tf_choose_stricter(const tf_pass *p, uint32_t device, uint32_t *chosen) {
  tf_device_name a, b;
  const base_istr *x = p->devices.items[device].name, *y = p->devices.items[*chosen].name;
  bool fine = tf_device_parse((base_slice){x->s, x->n}, &a) && tf_device_parse((base_slice){y->s, y->n}, &b);
  if (!fine) return false;
  if (tf_device_is_looser(&a, &b)) return true;
  *chosen = device;
  return tf_device_is_looser(&b, &a);
}

/* One GPU, one CPU, one device of another type, which goes with neither. What a cluster on these devices is
 * compiled for: the GPU if there is one (the CPU's part runs there, too), else the CPU; TF_NO_DEVICE where two of
 * a kind, or an unknown kind and another, can't be one. */
static uint32_t tf_choose_device(const tf_pass *p, const tf_device_set *s) {
  assert(s->n > 0);
  uint32_t chosen[3] = {TF_NO_DEVICE, TF_NO_DEVICE, TF_NO_DEVICE};
  for (uint32_t i = 0; i < s->n; i++) {
    base_slice type = p->devices.items[s->list[i]].type;
    uint32_t *kind = &chosen[base_slice_is(type, "GPU") ? 0 : base_slice_is(type, "CPU") ? 1 : 2];
    if (*kind == TF_NO_DEVICE)
      *kind = s->list[i];
    else if (!tf_choose_stricter(p, s->list[i], kind))
      return TF_NO_DEVICE;
  }
  if (chosen[2] != TF_NO_DEVICE)
    return chosen[0] == TF_NO_DEVICE && chosen[1] == TF_NO_DEVICE ? chosen[2] : TF_NO_DEVICE;
  return chosen[0] != TF_NO_DEVICE ? chosen[0] : chosen[1];
}

/* NULL with err set when out of memory. */
static tf_device_set *tf_new_set(tf_pass *p, size_t room, xlac_error *err) {
  tf_device_set *s = base_arena_zalloc(&p->def->arena, sizeof *s + room * sizeof *s->list);
  if (s)
    s->number = p->n_sets++;
  else
    (void)base_oom(err, "clustering");
  return s;
}

/* The rank is the order in which candidates have devices first; sets list theirs in that order, as TensorFlow's
 * do. */
int tf_device_set_of(tf_pass *p, uint32_t device, const tf_device_set **out, xlac_error *err) {
  assert(device < p->devices.n);
  tf_device_entry *e = &p->devices.items[device];
  if (!e->alone) {
    tf_device_set *s = tf_new_set(p, 1, err);
    if (!s) return -XLAC_E_OUT_OF_MEMORY;
    s->list[s->n++] = s->chosen = device;
    e->rank = p->n_ranks++;
    e->alone = s;
  }
  *out = e->alone;
  return 0;
}

/* Merges two sorted lists. A union that is one of the two gives that one, so that equal sets stay one pointer. */
static int tf_make_join(tf_pass *p, const tf_device_set *a, const tf_device_set *b, const tf_device_set **out,
                        xlac_error *err) {
  tf_device_set *s = tf_new_set(p, (size_t)a->n + b->n, err);
  if (!s) return -XLAC_E_OUT_OF_MEMORY;
  for (uint32_t i = 0, k = 0; i < a->n || k < b->n;) {
    uint32_t x = i < a->n ? p->devices.items[a->list[i]].rank : UINT32_MAX;
    uint32_t y = k < b->n ? p->devices.items[b->list[k]].rank : UINT32_MAX;
    s->list[s->n++] = x <= y ? a->list[i] : b->list[k];
    i += x <= y;
    k += y <= x;
  }
  s->chosen = tf_choose_device(p, s);
  *out = s->n == a->n ? a : s->n == b->n ? b : s;
  return 0;
}

int tf_join_devices(tf_pass *p, const tf_device_set *a, const tf_device_set *b, const tf_device_set **out,
                    xlac_error *err) {
  assert(a->number < p->n_sets && b->number < p->n_sets);
  uint64_t known = 0;
  *out = a;
  if (a == b) return 0;
  uint64_t key = a->number < b->number ? (uint64_t)a->number << 32 | b->number : (uint64_t)b->number << 32 | a->number;
  if (base_map_get(&p->joins, key, &known)) {
    *out = (const tf_device_set *)(uintptr_t)known;
    return 0;
  }
  TRY(tf_make_join(p, a, b, out, err));
  return base_map_set(&p->joins, key, base_key(*out)) ? 0 : base_oom(err, "clustering");
}
