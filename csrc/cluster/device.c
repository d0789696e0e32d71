/* Names of devices and TensorFlow's table of them. */
#include "device.h"

const tf_device_registration tf_device_table[] = {
    {.type = "CPU", .compilation_device = "XLA_CPU_JIT", .autoclustering_policy = XLAC_CLUSTER_IF_ENABLED_GLOBALLY},
    {.type = "GPU", .compilation_device = "XLA_GPU_JIT", .autoclustering_policy = XLAC_CLUSTER_IF_ENABLED_GLOBALLY},
    {"XLA_CPU", "XLA_CPU_JIT", XLAC_CLUSTER_ALWAYS, true, false, true, true, true, true, true, true, true},
    {"XLA_GPU", "XLA_GPU_JIT", XLAC_CLUSTER_ALWAYS, true, false, true, true, true, true, true, true, true},
    {.type = NULL},
};

static bool tf_starts(base_slice s, const char *with) {
  size_t n = strlen(with);
  return s.n >= n && memcmp(s.p, with, n) == 0;
}

/* The last part of the name that has a type: "device:CPU:0", "cpu:0", "CPU:0". */
base_slice tf_device_type(base_slice name) {
  base_slice found = {"", 0};
  while (name.n > 0) {
    if (*name.p == '/') name = (base_slice){name.p + 1, name.n - 1};
    const char *slash = name.n ? memchr(name.p, '/', name.n) : NULL;
    base_slice part = {name.p, slash ? (size_t)(slash - name.p) : name.n};
    name = (base_slice){part.p + part.n, name.n - part.n};
    bool other = tf_starts(part, "job:") || tf_starts(part, "replica:") || tf_starts(part, "task:");
    if (other || part.n == 0) continue;
    if (tf_starts(part, "device:")) part = (base_slice){part.p + 7, part.n - 7};
    const char *colon = part.n ? memchr(part.p, ':', part.n) : NULL;
    if (colon) part.n = (size_t)(colon - part.p);
    found = part;
  }
  if (found.n == 3 && memcmp(found.p, "cpu", 3) == 0) return BASE_SLICE("CPU");
  if (found.n == 3 && memcmp(found.p, "gpu", 3) == 0) return BASE_SLICE("GPU");
  return found;
}

int tf_compilation_kernels(const tf_device_registration *device) {
  if (strcmp(device->compilation_device, "XLA_CPU_JIT") == 0) return 0;
  return strcmp(device->compilation_device, "XLA_GPU_JIT") == 0 ? 1 : -1;
}
