/* Devices and their primary contexts. A context's handle is its device. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK = 4096 };
static _Thread_local struct {
  sim_device *contexts[STACK];
  int n;
} current;

EXPORT int cuInit(unsigned flags) {
  ENTER(cuInit);
  if (flags != 0) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  if (!sim.begun) {
    long n = setting("XLAC_CUDA_SIM_DEVICES", 8);
    sim.n_devices = n < 0 ? 0 : n > DEVICES_MAX ? DEVICES_MAX : (int)n;
    sim.capability = (int)setting("XLAC_CUDA_SIM_CAPABILITY", 90);
    sim.seed = (uint64_t)setting("XLAC_CUDA_SIM_SEED", 0);
    sim.uninitialised = setting("XLAC_CUDA_SIM_UNINITIALISED", 0) != 0;
    touch.most_accesses = (uint64_t)setting("XLAC_CUDA_SIM_ACCESSES", 4000000000);
    for (int i = 0; i < sim.n_devices; i++) {
      sim.devices[i].ordinal = i;
      sim.devices[i].total = (size_t)setting("XLAC_CUDA_SIM_MEMORY", 4L << 30);
    }
    protect_begin();
    sim.begun = true;
  }
  int result = sim.n_devices > 0 ? SUCCESS : NO_DEVICE;
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion);
  if (version == NULL) return INVALID_VALUE;
  *version = (int)setting("XLAC_CUDA_SIM_VERSION", 13000);
  return SUCCESS;
}

static sim_device *device_of(int ordinal) {
  return sim.begun && ordinal >= 0 && ordinal < sim.n_devices ? &sim.devices[ordinal] : NULL;
}

EXPORT int cuDeviceGetCount(int *count) {
  ENTER(cuDeviceGetCount);
  if (!sim.begun) return NOT_INITIALIZED;
  if (count == NULL) return INVALID_VALUE;
  *count = sim.n_devices;
  return SUCCESS;
}

EXPORT int cuDeviceGet(int *device, int ordinal) {
  ENTER(cuDeviceGet);
  if (!sim.begun) return NOT_INITIALIZED;
  if (device == NULL) return INVALID_VALUE;
  if (device_of(ordinal) == NULL) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

EXPORT int cuDeviceGetName(char *name, int bytes, int device) {
  ENTER(cuDeviceGetName);
  if (device_of(device) == NULL) return INVALID_DEVICE;
  if (name == NULL || bytes <= 0) return INVALID_VALUE;
  snprintf(name, (size_t)bytes, "Simulated GPU");
  return SUCCESS;
}

void device_uuid(unsigned char uuid[16], int device) {
  memset(uuid, 0, 16);
  uuid[14] = (unsigned char)setting("XLAC_CUDA_SIM_MACHINE", 0);
  uuid[15] = (unsigned char)(device + 1);
}

EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  ENTER(cuDeviceGetUuid_v2);
  if (device_of(device) == NULL) return INVALID_DEVICE;
  device_uuid(uuid, device);
  return SUCCESS;
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  ENTER(cuDeviceTotalMem_v2);
  if (device_of(device) == NULL) return INVALID_DEVICE;
  if (bytes == NULL) return INVALID_VALUE;
  *bytes = device_of(device)->total;
  return SUCCESS;
}

/* CUdevice_attribute: numbers of an H100, but for few multiprocessors. Those not here are 0, as on a real driver. */
static const int attributes[][2] = {
    {1, 1024} /* threads per block */,
    {2, 1024},
    {3, 1024},
    {4, 64},
    {5, 0x7fffffff} /* grid */,
    {6, 65535},
    {7, 65535},
    {8, 49152} /* shared memory per block */,
    {9, 65536} /* constants */,
    {10, 32} /* warp */,
    {11, 0x7fffffff} /* pitch */,
    {12, 65536} /* registers per block */,
    {13, 1785000} /* kHz */,
    {14, 512},
    {15, 1} /* overlap */,
    {16, 8} /* multiprocessors */,
    {19, 1} /* maps host memory */,
    {31, 1} /* concurrent kernels */,
    {36, 1593000} /* memory's kHz */,
    {37, 5120} /* bits of its bus */,
    {38, 52428800} /* L2 */,
    {39, 2048} /* threads per multiprocessor */,
    {40, 3} /* copy engines */,
    {41, 1} /* unified addresses */,
    {81, 233472} /* shared per multiprocessor */,
    {82, 65536},
    {83, 1} /* managed memory */,
    {95, 1} /* cooperative launch */,
    {97, 232448} /* shared per block, opt in */,
    {106, 32} /* blocks per multiprocessor */,
    {111, 1024},
    {115, 1} /* pools */,
};

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute);
  if (device_of(device) == NULL) return INVALID_DEVICE;
  if (value == NULL || attribute <= 0) return INVALID_VALUE;
  *value = 0;
  if (attribute == 75) *value = sim.capability / 10;
  if (attribute == 76) *value = sim.capability % 10;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i][0] == attribute) *value = attributes[i][1];
  return SUCCESS;
}

EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer) {
  ENTER(cuDeviceCanAccessPeer);
  if (device_of(device) == NULL || device_of(peer) == NULL) return INVALID_DEVICE;
  *can = device != peer;
  return SUCCESS;
}

/* ---- contexts ---- */

EXPORT int cuDevicePrimaryCtxRetain(void **context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  sim_device *d = device_of(device);
  if (d == NULL) return INVALID_DEVICE;
  if (context == NULL) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  d->retained++;
  pthread_mutex_unlock(&sim.lock);
  *context = d;
  return SUCCESS;
}

EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER(cuDevicePrimaryCtxRelease_v2);
  sim_device *d = device_of(device);
  if (d == NULL) return INVALID_DEVICE;
  pthread_mutex_lock(&sim.lock);
  int result = d->retained > 0 ? SUCCESS : INVALID_CONTEXT;
  if (result == SUCCESS && --d->retained == 0) {
    streams_wait_all(d);
    uint64_t n = 0;
    size_t bytes = 0;
    for (const allocation *a = sim.allocations; a != NULL; a = a->next)
      if (a->device == device && a->kind != MEMORY_SHARED) n++, bytes += a->bytes;
    if (n > 0)
      report(SUCCESS, "leak: the last user of device %d leaves %llu allocations of %zu bytes", device,
             (unsigned long long)n, bytes);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  ENTER(cuDevicePrimaryCtxGetState);
  if (device_of(device) == NULL) return INVALID_DEVICE;
  *flags = 0;
  *active = device_of(device)->retained > 0;
  return SUCCESS;
}

sim_device *current_device(void) {
  sim_device *d = current.n > 0 ? current.contexts[current.n - 1] : NULL;
  return d != NULL && d->retained > 0 ? d : NULL;
}

static bool is_context(const void *context) {
  return context >= (void *)sim.devices && context < (void *)(sim.devices + sim.n_devices);
}

EXPORT int cuCtxPushCurrent_v2(void *context) {
  ENTER(cuCtxPushCurrent_v2);
  if (context != NULL && !is_context(context)) return INVALID_CONTEXT;
  if (current.n == STACK) return INVALID_VALUE;
  current.contexts[current.n++] = context;
  return SUCCESS;
}

EXPORT int cuCtxPopCurrent_v2(void **context) {
  ENTER(cuCtxPopCurrent_v2);
  if (current.n == 0) return INVALID_CONTEXT;
  sim_device *d = current.contexts[--current.n];
  if (context != NULL) *context = d;
  return SUCCESS;
}

EXPORT int cuCtxSetCurrent(void *context) {
  ENTER(cuCtxSetCurrent);
  if (context != NULL && !is_context(context)) return INVALID_CONTEXT;
  if (current.n == 0) current.n = 1;
  current.contexts[current.n - 1] = context;
  return SUCCESS;
}

EXPORT int cuCtxGetCurrent(void **context) {
  ENTER(cuCtxGetCurrent);
  if (context == NULL) return INVALID_VALUE;
  *context = current.n > 0 ? current.contexts[current.n - 1] : NULL;
  return SUCCESS;
}

EXPORT int cuCtxGetDevice(int *device) {
  sim_device *d;
  ENTER_DEVICE(cuCtxGetDevice, &d);
  *device = d->ordinal;
  return SUCCESS;
}

EXPORT int cuCtxSynchronize(void) {
  sim_device *d;
  ENTER_DEVICE(cuCtxSynchronize, &d);
  pthread_mutex_lock(&sim.lock);
  streams_wait_all(d);
  int result = d->sticky;
  pthread_mutex_unlock(&sim.lock);
  return result;
}
