/* Names of devices and TensorFlow's table of them. */
#include "device.h"

#include "../../base/number/number.h"

/* Columns after the policy: cluster_resource_variable_ops_unsafely and the other switches of
 * xlac_device_registration, in its order. */
const tf_device_registration tf_device_table[] = {
    {.type = "CPU", .compilation_device = "XLA_CPU_JIT", .autoclustering_policy = XLAC_CLUSTER_IF_ENABLED_GLOBALLY},
    {.type = "GPU", .compilation_device = "XLA_GPU_JIT", .autoclustering_policy = XLAC_CLUSTER_IF_ENABLED_GLOBALLY},
    {"XLA_CPU", "XLA_CPU_JIT", XLAC_CLUSTER_ALWAYS, true, false, true, true, true, true, true, true, true},
    {"XLA_GPU", "XLA_GPU_JIT", XLAC_CLUSTER_ALWAYS, true, false, true, true, true, true, true, true, true},
    {.type = NULL},
};

/* --- names --- */

/* Takes `text` off the front of *s where it is there. */
static bool tf_device_take(base_slice *s, const char *text) {
  size_t n = strlen(text);
  if (s->n < n || memcmp(s->p, text, n) != 0) return false;
  *s = (base_slice){s->p + n, s->n - n};
  return true;
}

static bool tf_device_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A letter, then letters, digits and '_'. */
static bool tf_device_take_word(base_slice *s, base_slice *out) {
  size_t n = 0;
  while (n < s->n && (tf_device_letter(s->p[n]) || (n > 0 && ((s->p[n] >= '0' && s->p[n] <= '9') || s->p[n] == '_'))))
    n++;
  *out = (base_slice){s->p, n};
  *s = (base_slice){s->p + n, s->n - n};
  return n > 0;
}

/* '*' stands for any. */
static bool tf_device_take_number(base_slice *s, bool *has, int32_t *out) {
  uint64_t v = 0;
  size_t n = 0;
  *has = !tf_device_take(s, "*");
  if (!*has) return true;
  while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9') n++;
  if (n == 0 || base_parse_u64(s->p, s->p + n, &v) != s->p + n) return false;
  *s = (base_slice){s->p + n, s->n - n};
  *out = (int32_t)(uint32_t)v;
  return true;
}

/* "GPU:0", "GPU:*", "GPU", "*". */
static bool tf_device_take_type(base_slice *s, tf_device_name *out) {
  out->has_type = !tf_device_take(s, "*");
  if (out->has_type && !tf_device_take_word(s, &out->type)) return false;
  out->has_id = false;
  return !tf_device_take(s, ":") || tf_device_take_number(s, &out->has_id, &out->id);
}

/* "worker" or "*". */
static bool tf_device_take_job(base_slice *s, tf_device_name *out) {
  out->has_job = !tf_device_take(s, "*");
  return !out->has_job || tf_device_take_word(s, &out->job);
}

/* "/cpu:0": the short form, which names type and number only. */
static bool tf_device_take_old(base_slice *s, const char *type, tf_device_name *out) {
  out->has_type = true;
  out->type = base_slice_of(type);
  return tf_device_take_number(s, &out->has_id, &out->id);
}

/* Parts may come in any order, and a later one replaces an earlier (DeviceNameUtils::ParseFullName). */
bool tf_device_parse(base_slice s, tf_device_name *out) {
  *out = (tf_device_name){.type = {"", 0}};
  if (base_slice_is(s, "/")) return true;
  while (s.n > 0) {
    bool fine = false;
    if (tf_device_take(&s, "/job:"))
      fine = tf_device_take_job(&s, out);
    else if (tf_device_take(&s, "/replica:"))
      fine = tf_device_take_number(&s, &out->has_replica, &out->replica);
    else if (tf_device_take(&s, "/task:"))
      fine = tf_device_take_number(&s, &out->has_task, &out->task);
    else if (tf_device_take(&s, "/device:"))
      fine = tf_device_take_type(&s, out);
    else if (tf_device_take(&s, "/cpu:") || tf_device_take(&s, "/CPU:"))
      fine = tf_device_take_old(&s, "CPU", out);
    else if (tf_device_take(&s, "/gpu:") || tf_device_take(&s, "/GPU:"))
      fine = tf_device_take_old(&s, "GPU", out);
    if (!fine) return false;
  }
  return true;
}

static bool tf_device_same(base_slice a, base_slice b) {
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* A part that a leaves open fits anything; one that b leaves open fits only if a leaves it open, too. */
bool tf_device_is_looser(const tf_device_name *a, const tf_device_name *b) {
  assert(a != NULL && b != NULL);
  if (a->has_job && (!b->has_job || !tf_device_same(a->job, b->job))) return false;
  if (a->has_replica && (!b->has_replica || a->replica != b->replica)) return false;
  if (a->has_task && (!b->has_task || a->task != b->task)) return false;
  if (a->has_type && (!b->has_type || !tf_device_same(a->type, b->type))) return false;
  return !a->has_id || (b->has_id && a->id == b->id);
}

/* Kernels are registered for these two; TPU's are not in the table. */
int tf_compilation_kernels(const tf_device_registration *device) {
  assert(device->compilation_device != NULL);
  if (strcmp(device->compilation_device, "XLA_CPU_JIT") == 0) return 0;
  return strcmp(device->compilation_device, "XLA_GPU_JIT") == 0 ? 1 : -1;
}
