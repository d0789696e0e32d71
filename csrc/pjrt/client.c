/* The client: its options, its devices by number, and what it says of itself. */
#include <stdio.h>
#include <stdlib.h>

#include "pjrt.h"

/* --- options --- */

static bool client_named(const PJRT_NamedValue *v, const char *name) {
  return v->name_size == strlen(name) && memcmp(v->name, name, v->name_size) == 0;
}

/* A number, or a text that is one (JAX's own option string gives texts). */
static PJRT_Error *client_read_number(const PJRT_NamedValue *v, int64_t least, int64_t most, int64_t *out) {
  int64_t n = 0;
  bool read = true;
  if (v->type == PJRT_VALUE_INT64) {
    n = v->int64_value;
  } else if (v->type == PJRT_VALUE_BOOL) {
    n = v->bool_value;
  } else if (v->type == PJRT_VALUE_STRING && v->value_size < 24) {
    char text[24], *end;
    memcpy(text, v->string_value, v->value_size);
    text[v->value_size] = '\0';
    n = strtoll(text, &end, 10);
    read = end != text && !*end;
  } else {
    read = false;
  }
  if (!read || n < least || n > most)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "client option %.*s: a number from %lld to %lld is expected",
                     (int)v->name_size, v->name, (long long)least, (long long)most);
  *out = n;
  return NULL;
}

/* A terminated text of fewer than `size` bytes. */
static PJRT_Error *client_read_text(const PJRT_NamedValue *v, char *out, size_t size) {
  if (v->type != PJRT_VALUE_STRING || v->value_size == 0 || v->value_size >= size)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "client option %.*s: a text of 1 to %zu bytes is expected",
                     (int)v->name_size, v->name, size - 1);
  memcpy(out, v->string_value, v->value_size);
  out[v->value_size] = '\0';
  return NULL;
}

static PJRT_Error *client_read_option(pjrt_client_options *o, const PJRT_NamedValue *v) {
  int64_t n = 0;
  if (client_named(v, "platform_name")) return client_read_text(v, o->platform, sizeof o->platform);
  if (client_named(v, "blas")) return client_read_text(v, o->blas, sizeof o->blas);
  if (client_named(v, "num_devices")) {
    PJRT_TRY(client_read_number(v, 1, PJRT_DEVICES_MAX, &n));
    o->devices = (uint32_t)n;
  } else if (client_named(v, "threads")) {
    PJRT_TRY(client_read_number(v, 0, 1 << 16, &n));
    o->threads = (uint32_t)n;
  } else if (client_named(v, "synchronous")) {
    PJRT_TRY(client_read_number(v, 0, 1, &n));
    o->synchronous = n != 0;
  } else if (client_named(v, "copy_host_arrays")) {
    PJRT_TRY(client_read_number(v, 0, 1, &n));
    o->copy_host = n != 0;
  } else if (client_named(v, "python_call")) {
    PJRT_TRY(client_read_number(v, INT64_MIN, INT64_MAX, &o->python_call));
  } else if (client_named(v, "python_partition")) {
    PJRT_TRY(client_read_number(v, INT64_MIN, INT64_MAX, &o->python_partition));
  } else if (client_named(v, "slot")) {
    PJRT_TRY(client_read_number(v, INT64_MIN, INT64_MAX, &o->slot));
  } else if (client_named(v, "num_nodes")) {
    PJRT_TRY(client_read_number(v, 1, PJRT_DEVICES_MAX, &n));
    o->nodes = (uint32_t)n;
  } else if (client_named(v, "node_id")) {
    PJRT_TRY(client_read_number(v, 0, PJRT_DEVICES_MAX - 1, &n));
    o->node = (uint32_t)n;
  }
  return NULL;
}

PJRT_Error *pjrt_read_client_options(pjrt_client_options *out, const PJRT_NamedValue *values, size_t n) {
  *out = (pjrt_client_options){.platform = "xlac", .devices = 1, .nodes = 1};
  for (size_t i = 0; i < n; i++) PJRT_TRY(client_read_option(out, &values[i]));
  if (out->node < out->nodes) return NULL;
  return pjrt_fail(PJRT_INVALID_ARGUMENT, "process %u of %u", out->node, out->nodes);
}

/* --- its life --- */

static void client_free(PJRT_Client *c) {
  pjrt_devices_destroy(c);
  pjrt_topology_free(&c->topology);
  pjrt_world_free(c->world);
  xlac_runtime_destroy(c->runtime);
  pjrt_free(c);
}

PJRT_Client *pjrt_client_retain(PJRT_Client *c) {
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
  return c;
}

void pjrt_client_release(PJRT_Client *c) {
  if (c && atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) client_free(c);
}

static PJRT_Error *client_fill(PJRT_Client *c, const PJRT_Client_Create_Args *args) {
  xlac_error err;
  if (xlac_runtime_create(&c->runtime, &err)) return pjrt_error_of(&err);
  if (c->options.nodes > 1) PJRT_TRY(pjrt_world_join(&c->world, &c->options, args));
  PJRT_TRY(pjrt_devices_create(c));
  return pjrt_topology_init(&c->topology, &c->options, c);
}

PJRT_Error *pjrt_client_create(PJRT_Client_Create_Args *args) {
  PJRT_Client *c = pjrt_alloc(sizeof *c);
  if (!c) return pjrt_out_of_memory("a client");
  atomic_init(&c->refs, 1);
  PJRT_Error *error = pjrt_read_client_options(&c->options, args->create_options, args->num_options);
  if (!error) error = client_fill(c, args);
  if (error) {
    client_free(c);
    return error;
  }
  pjrt_client_enter_slot(c);
  args->client = c;
  return NULL;
}

/* What the client still has going on it waits for, for a short while: see leave.c. */
PJRT_Error *pjrt_client_destroy(PJRT_Client_Destroy_Args *args) {
  enum { LAST_MILLISECONDS = 2000 };
  PJRT_Client *c = args->client;
  if (!c) return NULL;
  bool over = pjrt_client_drain(c, LAST_MILLISECONDS);
  pjrt_client_leave_slot(c);
  if (over) pjrt_client_release(c);
  return NULL;
}

/* --- what it says of itself --- */

PJRT_Error *pjrt_client_platform_name(PJRT_Client_PlatformName_Args *args) {
  args->platform_name = args->client->options.platform;
  args->platform_name_size = strlen(args->platform_name);
  return NULL;
}

PJRT_Error *pjrt_client_process_index(PJRT_Client_ProcessIndex_Args *args) {
  args->process_index = (int)args->client->options.node;
  return NULL;
}

PJRT_Error *pjrt_client_platform_version(PJRT_Client_PlatformVersion_Args *args) {
  args->platform_version = pjrt_platform_version();
  args->platform_version_size = strlen(args->platform_version);
  return NULL;
}

PJRT_Error *pjrt_client_devices(PJRT_Client_Devices_Args *args) {
  args->devices = args->client->device_list;
  args->num_devices = args->client->n_devices;
  return NULL;
}

PJRT_Error *pjrt_client_addressable_devices(PJRT_Client_AddressableDevices_Args *args) {
  args->addressable_devices = args->client->device_list + args->client->from;
  args->num_addressable_devices = args->client->here;
  return NULL;
}

static PJRT_Error *client_find_device(PJRT_Client *c, int id, PJRT_Device **out) {
  if (id < 0 || (uint32_t)id >= c->n_devices)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no device %d; devices are 0 to %u", id, c->n_devices - 1);
  *out = c->device_list[id];
  return NULL;
}

PJRT_Error *pjrt_client_lookup_device(PJRT_Client_LookupDevice_Args *args) {
  return client_find_device(args->client, args->id, &args->device);
}

PJRT_Error *pjrt_client_lookup_addressable_device(PJRT_Client_LookupAddressableDevice_Args *args) {
  PJRT_Client *c = args->client;
  if (args->local_hardware_id < 0 || (uint32_t)args->local_hardware_id >= c->here)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "there is no device %d in this process; it has 0 to %u",
                     args->local_hardware_id, c->here - 1);
  return client_find_device(c, args->local_hardware_id + (int)c->from, &args->addressable_device);
}

PJRT_Error *pjrt_client_addressable_memories(PJRT_Client_AddressableMemories_Args *args) {
  args->addressable_memories = args->client->memory_list + (size_t)args->client->from * PJRT_MEMORY_KINDS;
  args->num_addressable_memories = (size_t)args->client->here * PJRT_MEMORY_KINDS;
  return NULL;
}

PJRT_Error *pjrt_client_topology_description(PJRT_Client_TopologyDescription_Args *args) {
  args->topology = &args->client->topology;
  return NULL;
}

PJRT_Error *pjrt_client_default_device_assignment(PJRT_Client_DefaultDeviceAssignment_Args *args) {
  int64_t n = (int64_t)args->num_replicas * args->num_partitions;
  if (args->num_replicas < 1 || args->num_partitions < 1 || n > args->client->n_devices ||
      args->default_assignment_size < (size_t)n)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "%d replicas of %d partitions are asked for; there are %u devices",
                     args->num_replicas, args->num_partitions, args->client->n_devices);
  for (int i = 0; i < (int)n; i++) args->default_assignment[i] = i;
  return NULL;
}

/* Memory of the host's needs no mapping. */
PJRT_Error *pjrt_client_dma_map(PJRT_Client_DmaMap_Args *args) {
  (void)args;
  return NULL;
}

PJRT_Error *pjrt_client_dma_unmap(PJRT_Client_DmaUnmap_Args *args) {
  (void)args;
  return NULL;
}

/* What the client hears of other processes, sockets tell, too. */
PJRT_Error *pjrt_client_update_global_process_info(PJRT_Client_UpdateGlobalProcessInfo_Args *args) {
  (void)args;
  return NULL;
}
