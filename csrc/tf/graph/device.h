/* Devices: the parts of their names, and how XLA compiles for them (the device table). */
#ifndef XLAC_TF_GRAPH_DEVICE_H
#define XLAC_TF_GRAPH_DEVICE_H

#include "../../base/status.h"
#include "../../base/str.h"

/* A row of the device table: XlaOpRegistry::DeviceRegistration, as users write it. */
typedef xlac_device_registration tf_device_registration;

/* TensorFlow's four devices, as the registry of 2.21 says, CPU as with tf_xla_cpu_global_jit. Ended by a NULL type. */
extern const tf_device_registration tf_device_table[];

/* The parts of "/job:worker/replica:0/task:1/device:CPU:0", of which any may be missing. */
typedef struct tf_device_name {
  base_slice job, type; /* type is empty where there is none */
  int32_t replica, task, id;
  bool has_job, has_replica, has_task, has_type, has_id;
} tf_device_name;
/* false where it is malformed. The parts lie in `name`. */
bool tf_device_parse(base_slice name, tf_device_name *out);
/* Whether b says all that a says, and perhaps more. */
bool tf_device_is_looser(const tf_device_name *a, const tf_device_name *b);
/* Which kernels: 0 for XLA_CPU_JIT, 1 for XLA_GPU_JIT, -1 for no known compilation device. */
int tf_compilation_kernels(const tf_device_registration *device);

#endif
