/* What world.c and connect.c have in common: a table of texts that all processes share, and sockets between them. */
#ifndef XLAC_PJRT_WORLD_H
#define XLAC_PJRT_WORLD_H

#include "../include/xlac_network.h"
#include "pjrt.h"

/* Terminated texts; a key is written once, by one process. Getting waits for that. */
PJRT_Error *pjrt_world_put(pjrt_world *w, const char *key, const char *value);
PJRT_Error *pjrt_world_get(pjrt_world *w, const char *key, char *value, size_t size);
const char *pjrt_world_name(const pjrt_world *w, uint32_t process);
/* A socket to each of n processes, of which this one is number `us`: once for a set. connect.c */
PJRT_Error *pjrt_world_connect(pjrt_world *w, const uint32_t *members, uint32_t n, uint32_t us, xlac_network **out);

#endif
