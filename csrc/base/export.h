/* What the core's library exports beside xlac.h: what the PJRT plugin, a library of its own, calls. */
#ifndef XLAC_BASE_EXPORT_H
#define XLAC_BASE_EXPORT_H

#define BASE_EXPORT __attribute__((visibility("default")))

#endif
