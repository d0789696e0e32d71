/* Which values of a node lie in the host's memory: MemoryTypesForNode. */
#ifndef XLAC_TF_CLUSTER_HOST_MEMORY_H
#define XLAC_TF_CLUSTER_HOST_MEMORY_H

#include "../graph/graph.h"

/* Sets host[i] for each input of n, then for each output, for its kernel on a device of that type, and what the node's
 * attributes _input_hostmem and _output_hostmem say. */
void tf_host_memory(const tf_node *n, base_slice device_type, uint8_t *host);

#endif
