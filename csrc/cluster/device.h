/* Devices: the parts of their names, and how XLA compiles for them (the device table). */
#ifndef XLAC_CLUSTER_DEVICE_H
#define XLAC_CLUSTER_DEVICE_H

#include "../base/status.h"
#include "../base/str.h"

/* A row of the device table: XlaOpRegistry::DeviceRegistration, as users write it. */
typedef xlac_device_registration tf_device_registration;

/* TensorFlow's four devices, as the registry of 2.21 says, CPU as with tf_xla_cpu_global_jit. Ended by a NULL type. */
extern const tf_device_registration tf_device_table[];

/* "CPU" of "/job:localhost/replica:0/task:0/device:CPU:0", "/cpu:0" or "CPU:0"; n is 0 where there is none. */
base_slice tf_device_type(base_slice name);
/* Which kernels: 0 for XLA_CPU_JIT, 1 for XLA_GPU_JIT, -1 for no known compilation device. */
int tf_compilation_kernels(const tf_device_registration *device);

#endif
