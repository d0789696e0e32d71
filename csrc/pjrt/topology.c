/* Topologies: descriptions of devices without a client, for programs that are compiled ahead of time. A client has one
 * of its own. Saved, one is the text "xlac-topology PLATFORM DEVICES VERSION". */
#include <stdio.h>

#include "pjrt.h"

enum { TOPOLOGY_TEXT = 160 };

PJRT_Error *pjrt_topology_init(PJRT_TopologyDescription *t, const pjrt_client_options *options, PJRT_Client *c) {
  t->options = *options;
  t->n = c ? c->n_devices : options->devices;
  t->list = pjrt_alloc(t->n * sizeof *t->list);
  t->own = c ? NULL : pjrt_alloc(t->n * sizeof *t->own);
  t->serialized = pjrt_alloc(TOPOLOGY_TEXT);
  if (!t->list || !t->serialized || (!c && !t->own)) return pjrt_out_of_memory("a topology");
  snprintf(t->serialized, TOPOLOGY_TEXT, "xlac-topology %s %u %s", options->platform, (unsigned)t->n,
           pjrt_platform_version());
  for (uint32_t i = 0; i < t->n; i++) {
    if (!c) pjrt_describe_device(&t->own[i], options, i, 0);
    t->list[i] = c ? &c->devices[i].description : &t->own[i];
  }
  return NULL;
}

void pjrt_topology_free(PJRT_TopologyDescription *t) {
  pjrt_free(t->list);
  pjrt_free(t->own);
  pjrt_free(t->serialized);
}

static PJRT_Error *topology_create(const pjrt_client_options *options, PJRT_TopologyDescription **out) {
  PJRT_TopologyDescription *t = pjrt_alloc(sizeof *t);
  if (!t) return pjrt_out_of_memory("a topology");
  PJRT_Error *error = pjrt_topology_init(t, options, NULL);
  if (error) {
    pjrt_topology_free(t);
    pjrt_free(t);
    return error;
  }
  *out = t;
  return NULL;
}

/* The name, where it isn't empty, is "DEVICES" or "PLATFORM:DEVICES". */
PJRT_Error *pjrt_topology_description_create(PJRT_TopologyDescription_Create_Args *args) {
  pjrt_client_options options;
  char name[48] = "", platform[16] = "";
  unsigned devices = 0;
  PJRT_TRY(pjrt_read_client_options(&options, args->create_options, args->num_options));
  if (args->topology_name_size < sizeof name && args->topology_name_size)
    memcpy(name, args->topology_name, args->topology_name_size);
  if (sscanf(name, "%15[a-z]:%u", platform, &devices) == 2)
    memcpy(options.platform, platform, sizeof platform);
  else if (sscanf(name, "%u", &devices) != 1)
    devices = options.devices;
  if (devices == 0 || devices > PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "a topology has 1 to %d devices: \"8\" or \"xlac:8\"", PJRT_DEVICES_MAX);
  options.devices = devices;
  return topology_create(&options, &args->topology);
}

/* The client never destroys the one of its client. */
PJRT_Error *pjrt_topology_description_destroy(PJRT_TopologyDescription_Destroy_Args *args) {
  if (!args->topology || !args->topology->own) return NULL;
  pjrt_topology_free(args->topology);
  pjrt_free(args->topology);
  return NULL;
}

PJRT_Error *pjrt_topology_description_platform_name(PJRT_TopologyDescription_PlatformName_Args *args) {
  args->platform_name = args->topology->options.platform;
  args->platform_name_size = strlen(args->platform_name);
  return NULL;
}

PJRT_Error *pjrt_topology_description_platform_version(PJRT_TopologyDescription_PlatformVersion_Args *args) {
  args->platform_version = pjrt_platform_version();
  args->platform_version_size = strlen(args->platform_version);
  return NULL;
}

PJRT_Error *pjrt_topology_description_get_device_descriptions(
    PJRT_TopologyDescription_GetDeviceDescriptions_Args *args) {
  args->descriptions = args->topology->list;
  args->num_descriptions = args->topology->n;
  return NULL;
}

PJRT_Error *pjrt_topology_description_attributes(PJRT_TopologyDescription_Attributes_Args *args) {
  args->attributes = NULL;
  args->num_attributes = 0;
  return NULL;
}

static void topology_drop_text(PJRT_SerializedTopology *t) {
  (void)t; /* the topology's own */
}

PJRT_Error *pjrt_topology_description_serialize(PJRT_TopologyDescription_Serialize_Args *args) {
  args->serialized_bytes = args->topology->serialized;
  args->serialized_bytes_size = strlen(args->serialized_bytes);
  args->serialized_topology = NULL;
  args->serialized_topology_deleter = topology_drop_text;
  return NULL;
}

PJRT_Error *pjrt_topology_description_deserialize(PJRT_TopologyDescription_Deserialize_Args *args) {
  pjrt_client_options options;
  char text[TOPOLOGY_TEXT] = "";
  unsigned devices = 0;
  PJRT_TRY(pjrt_read_client_options(&options, NULL, 0));
  if (args->serialized_topology_size < sizeof text)
    memcpy(text, args->serialized_topology, args->serialized_topology_size);
  if (sscanf(text, "xlac-topology %15s %u", options.platform, &devices) != 2 || devices == 0 ||
      devices > PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "the bytes are not a saved topology of xlac's");
  options.devices = devices;
  return topology_create(&options, &args->topology);
}

/* The hash of what a saved topology says. */
PJRT_Error *pjrt_topology_description_fingerprint(PJRT_TopologyDescription_Fingerprint_Args *args) {
  args->fingerprint = pjrt_hash(PJRT_HASH_START, args->topology->serialized);
  return NULL;
}

PJRT_Error *pjrt_topology_description_get_memory_space_kind_ids(
    PJRT_TopologyDescription_GetMemorySpaceKindIds_Args *args) {
  static const int ids[PJRT_MEMORY_KINDS] = {0, 1, 2};
  args->memory_space_kind_ids = ids;
  args->num_memory_space_kind_ids = PJRT_MEMORY_KINDS;
  return NULL;
}
