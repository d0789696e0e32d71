/* The kinds of devices that there are. */
#ifndef XLAC_DRIVER_DEVICES_H
#define XLAC_DRIVER_DEVICES_H

#include "../interp/device.h"
#include "../runtime/devices.h"

/* "cpu" first, then "interp", ended by a NULL. A new device is a row here. */
extern const rt_device_kind driver_device_kinds[];
/* What the interpreter's custom calls are found in. */
extern const interp_library *const driver_interp_library;

#endif
