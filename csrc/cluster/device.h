/* Devices: the parts of their names, and how XLA compiles for them (the device table). */
#ifndef XLAC_CLUSTER_DEVICE_H
#define XLAC_CLUSTER_DEVICE_H

#include "../base/str.h"

/* When ops on a device are clustered. */
typedef enum tf_policy { TF_IF_ENABLED_GLOBALLY, TF_IF_EXPLICITLY_REQUESTED, TF_ALWAYS } tf_policy;

/* A row of the device table: XlaOpRegistry::DeviceRegistration. */
typedef struct tf_device_registration {
  const char *type;               /* "CPU" */
  const char *compilation_device; /* "XLA_CPU_JIT", "XLA_GPU_JIT": whose kernels count */
  uint8_t policy;                 /* tf_policy */
  bool cluster_resource_variable_ops_unsafely;
  bool cluster_stack_ops;
  bool cluster_tensor_array_ops;
  bool cluster_stateful_rng_ops;
  bool cluster_control_trigger;
  bool elide_assert_and_checknumerics;
  bool cluster_variant_ops;
  bool cluster_slow_ops;
  bool cluster_inaccurate_ops;
} tf_device_registration;

/* TensorFlow's four devices, as the registry of 2.21 says, CPU as with tf_xla_cpu_global_jit. Ended by a NULL type. */
extern const tf_device_registration tf_device_table[];

/* "CPU" of "/job:localhost/replica:0/task:0/device:CPU:0", "/cpu:0" or "CPU:0"; n is 0 where there is none. */
base_slice tf_device_type(base_slice name);
/* Which kernels: 0 for XLA_CPU_JIT, 1 for XLA_GPU_JIT, -1 for no known compilation device. */
int tf_compilation_kernels(const tf_device_registration *device);

#endif
