/* Devices of a graph, and sets of them that one cluster may have. */
#include "pass.h"

static const tf_device_registration *tf_registration_of(const tf_pass *p, base_slice type) {
  for (const tf_device_registration *r = p->flags.devices; r && r->type; r++)
    if (base_slice_is(type, r->type)) return r;
  if (base_slice_is(type, "CPU")) return &p->cpu;
  for (const tf_device_registration *r = tf_device_table; r->type; r++)
    if (base_slice_is(type, r->type)) return r;
  return NULL;
}

int tf_find_device(tf_pass *p, const base_istr *name, uint32_t *out, xlac_error *err) {
  *out = TF_NO_DEVICE;
  if (!name) return 0;
  for (uint32_t i = p->devices.n; i > 0; i--) {
    if (p->devices.items[i - 1].name != name) continue;
    *out = i - 1;
    return 0;
  }
  base_slice type = tf_device_type((base_slice){name->s, name->n});
  tf_device_entry e = {.name = name, .type = type, .registration = tf_registration_of(p, type)};
  *out = p->devices.n;
  return BASE_VEC_PUSH(p->graph.alloc, &p->devices, e) ? 0 : base_oom(err, "clustering");
}

tf_device_set tf_device_set_of(const tf_pass *p, uint32_t device) {
  tf_device_set s = {TF_NO_DEVICE, TF_NO_DEVICE, TF_NO_DEVICE};
  if (device == TF_NO_DEVICE) return s;
  base_slice type = p->devices.items[device].type;
  if (base_slice_is(type, "GPU"))
    s.gpu = device;
  else if (base_slice_is(type, "CPU"))
    s.cpu = device;
  else
    s.other = device;
  return s;
}

static bool tf_join_one(uint32_t a, uint32_t b, uint32_t *out) {
  *out = a == TF_NO_DEVICE ? b : a;
  return a == TF_NO_DEVICE || b == TF_NO_DEVICE || a == b;
}

bool tf_join_devices(tf_device_set a, tf_device_set b, tf_device_set *out) {
  bool gpus = tf_join_one(a.gpu, b.gpu, &out->gpu), cpus = tf_join_one(a.cpu, b.cpu, &out->cpu);
  bool fits = tf_join_one(a.other, b.other, &out->other) && gpus && cpus;
  bool mixed = out->other != TF_NO_DEVICE && (out->gpu != TF_NO_DEVICE || out->cpu != TF_NO_DEVICE);
  return fits && !mixed;
}

uint32_t tf_chosen_device(tf_device_set s) {
  if (s.gpu != TF_NO_DEVICE) return s.gpu;
  return s.other != TF_NO_DEVICE ? s.other : s.cpu;
}
