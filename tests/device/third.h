/* A third device, for the conformance suite: see third.c. */
#ifndef TESTS_DEVICE_THIRD_H
#define TESTS_DEVICE_THIRD_H

#include "runtime/device.h"

XLAC_MUST_USE int third_device_create(rt_device **out, uint32_t ordinal, base_alloc alloc, xlac_error *err);

#endif
