/* Devices and memories, of all processes: those of others are known by name alone. Each device is a queue of its own on
 * the one CPU, whose threads and memory all of them share, so that a program is compiled once for all, and no device's
 * threads are in the way of another's. */
#include <stdio.h>

#include "../api/api.h"
#include "pjrt.h"

static const char *const memory_kind_names[PJRT_MEMORY_KINDS] = {"device", "pinned_host", "unpinned_host"};

const char *pjrt_memory_kind_name(uint32_t kind) {
  assert(kind < PJRT_MEMORY_KINDS);
  return memory_kind_names[kind];
}

uint32_t pjrt_memory_kind(const char *name, size_t n) {
  for (uint32_t i = 0; i < PJRT_MEMORY_KINDS; i++)
    if (strlen(memory_kind_names[i]) == n && memcmp(memory_kind_names[i], name, n) == 0) return i;
  return PJRT_MEMORY_KINDS;
}

void pjrt_describe_device(PJRT_DeviceDescription *out, const pjrt_client_options *options, uint32_t id,
                          uint32_t process) {
  *out = (PJRT_DeviceDescription){
      .id = (int)id, .process = (int)process, .kind = options->platform[0] == 'c' ? "cpu" : "xlac"};
  snprintf(out->text, sizeof out->text, "XlacDevice(id=%u)", (unsigned)id);
}

/* --- making and ending them --- */

static void device_init(PJRT_Device *d, PJRT_Client *c, uint32_t id, uint32_t process) {
  pjrt_describe_device(&d->description, &c->options, id, process);
  d->client = c;
  for (uint32_t i = 0; i < PJRT_MEMORY_KINDS; i++) {
    PJRT_Memory *m = &d->memories[i];
    *m = (PJRT_Memory){.device = d, .id = (int)(id * PJRT_MEMORY_KINDS + i), .kind = i};
    snprintf(m->text, sizeof m->text, "XlacMemory(id=%d, kind=%s, device=%u)", m->id, memory_kind_names[i],
             (unsigned)id);
    d->memory_list[i] = m;
    c->memory_list[c->n_memories++] = m;
  }
  c->device_list[id] = d;
}

static uint32_t device_count_of(const PJRT_Client *c, uint32_t process) {
  return c->world ? pjrt_world_devices(c->world, process) : c->options.devices;
}

/* All that there are, with numbers in the order of the processes. */
static void device_init_all(PJRT_Client *c) {
  for (uint32_t p = 0, id = 0; p < c->options.nodes; p++) {
    if (p == c->options.node) c->from = id;
    for (uint32_t i = 0; i < device_count_of(c, p); i++, id++) device_init(&c->devices[id], c, id, p);
  }
}

PJRT_Error *pjrt_devices_create(PJRT_Client *c) {
  xlac_error err;
  rt_device *cpu = NULL;
  uint32_t n = 0;
  for (uint32_t p = 0; p < c->options.nodes; p++) n += device_count_of(c, p);
  if (n > PJRT_DEVICES_MAX)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "all processes have %u devices; there may be %d", n, PJRT_DEVICES_MAX);
  c->devices = pjrt_alloc(n * sizeof *c->devices);
  c->device_list = pjrt_alloc(n * sizeof *c->device_list);
  c->memory_list = pjrt_alloc(n * PJRT_MEMORY_KINDS * sizeof *c->memory_list);
  if (!c->devices || !c->device_list || !c->memory_list) return pjrt_out_of_memory("devices");
  if (rt_device_set_open(api_devices(c->runtime), "cpu", &cpu, &err)) return pjrt_error_of(&err);
  c->memory_bytes = cpu->facts.spaces[0].bytes;
  c->n_devices = n;
  c->here = c->options.devices;
  device_init_all(c);
  for (; c->n_queues < c->here; c->n_queues++)
    if (pjrt_queue_init(&c->devices[c->from + c->n_queues].work, cpu, &err)) return pjrt_error_of(&err);
  if (pjrt_queue_init(&c->copies, cpu, &err)) return pjrt_error_of(&err);
  c->has_copies = true;
  if (pjrt_queue_init(&c->groups, cpu, &err)) return pjrt_error_of(&err);
  c->has_groups = true;
  return NULL;
}

void pjrt_devices_destroy(PJRT_Client *c) {
  for (uint32_t i = 0; i < c->n_queues; i++) pjrt_queue_free(&c->devices[c->from + i].work);
  if (c->has_groups) pjrt_queue_free(&c->groups);
  if (c->has_copies) pjrt_queue_free(&c->copies);
  pjrt_free(c->devices);
  pjrt_free(c->device_list);
  pjrt_free(c->memory_list);
}

/* --- descriptions --- */

PJRT_Error *pjrt_device_description_id(PJRT_DeviceDescription_Id_Args *args) {
  args->id = args->device_description->id;
  return NULL;
}

PJRT_Error *pjrt_device_description_process_index(PJRT_DeviceDescription_ProcessIndex_Args *args) {
  args->process_index = args->device_description->process;
  return NULL;
}

PJRT_Error *pjrt_device_description_attributes(PJRT_DeviceDescription_Attributes_Args *args) {
  args->num_attributes = 0;
  args->attributes = NULL;
  return NULL;
}

PJRT_Error *pjrt_device_description_kind(PJRT_DeviceDescription_Kind_Args *args) {
  args->device_kind = args->device_description->kind;
  args->device_kind_size = strlen(args->device_kind);
  return NULL;
}

PJRT_Error *pjrt_device_description_debug_string(PJRT_DeviceDescription_DebugString_Args *args) {
  args->debug_string = args->device_description->text;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

PJRT_Error *pjrt_device_description_to_string(PJRT_DeviceDescription_ToString_Args *args) {
  args->to_string = args->device_description->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

/* --- devices --- */

PJRT_Error *pjrt_device_get_description(PJRT_Device_GetDescription_Args *args) {
  args->device_description = &args->device->description;
  return NULL;
}

PJRT_Error *pjrt_device_is_addressable(PJRT_Device_IsAddressable_Args *args) {
  args->is_addressable = pjrt_is_here(args->device);
  return NULL;
}

PJRT_Error *pjrt_device_local_hardware_id(PJRT_Device_LocalHardwareId_Args *args) {
  args->local_hardware_id =
      pjrt_is_here(args->device) ? args->device->description.id - (int)args->device->client->from : -1;
  return NULL;
}

PJRT_Error *pjrt_device_addressable_memories(PJRT_Device_AddressableMemories_Args *args) {
  args->memories = args->device->memory_list;
  args->num_memories = PJRT_MEMORY_KINDS;
  return NULL;
}

PJRT_Error *pjrt_device_default_memory(PJRT_Device_DefaultMemory_Args *args) {
  args->memory = pjrt_default_memory(args->device);
  return NULL;
}

/* Asked before every compilation: relaxed loads only. */
PJRT_Error *pjrt_device_memory_stats(PJRT_Device_MemoryStats_Args *args) {
  PJRT_Device *d = args->device;
  memset(&args->bytes_in_use, 0, sizeof *args - offsetof(PJRT_Device_MemoryStats_Args, bytes_in_use));
  args->bytes_in_use = atomic_load_explicit(&d->bytes, memory_order_relaxed);
  args->peak_bytes_in_use = atomic_load_explicit(&d->peak_bytes, memory_order_relaxed);
  args->num_allocs = atomic_load_explicit(&d->allocations, memory_order_relaxed);
  args->largest_alloc_size = atomic_load_explicit(&d->largest, memory_order_relaxed);
  args->bytes_limit = (int64_t)d->client->memory_bytes;
  args->peak_bytes_in_use_is_set = args->num_allocs_is_set = args->largest_alloc_size_is_set = true;
  args->bytes_limit_is_set = true;
  return NULL;
}

PJRT_Error *pjrt_device_clear_memory_stats(PJRT_Device_ClearMemoryStats_Args *args) {
  PJRT_Device *d = args->device;
  atomic_store_explicit(&d->peak_bytes, atomic_load_explicit(&d->bytes, memory_order_relaxed), memory_order_relaxed);
  atomic_store_explicit(&d->allocations, 0, memory_order_relaxed);
  atomic_store_explicit(&d->largest, 0, memory_order_relaxed);
  return NULL;
}

static void device_drop_attributes(PJRT_Device_Attributes *attributes) {
  (void)attributes; /* there are none */
}

PJRT_Error *pjrt_device_get_attributes(PJRT_Device_GetAttributes_Args *args) {
  args->attributes = NULL;
  args->num_attributes = 0;
  args->device_attributes = NULL;
  args->attributes_deleter = device_drop_attributes;
  return NULL;
}

/* --- memories --- */

PJRT_Error *pjrt_memory_id(PJRT_Memory_Id_Args *args) {
  args->id = args->memory->id;
  return NULL;
}

PJRT_Error *pjrt_memory_kind_slot(PJRT_Memory_Kind_Args *args) {
  args->kind = memory_kind_names[args->memory->kind];
  args->kind_size = strlen(args->kind);
  return NULL;
}

PJRT_Error *pjrt_memory_kind_id(PJRT_Memory_Kind_Id_Args *args) {
  args->kind_id = (int)args->memory->kind;
  return NULL;
}

PJRT_Error *pjrt_memory_debug_string(PJRT_Memory_DebugString_Args *args) {
  args->debug_string = args->memory->text;
  args->debug_string_size = strlen(args->debug_string);
  return NULL;
}

PJRT_Error *pjrt_memory_to_string(PJRT_Memory_ToString_Args *args) {
  args->to_string = args->memory->text;
  args->to_string_size = strlen(args->to_string);
  return NULL;
}

PJRT_Error *pjrt_memory_addressable_by_devices(PJRT_Memory_AddressableByDevices_Args *args) {
  args->devices = &args->memory->device->client->device_list[args->memory->device->description.id];
  args->num_devices = 1;
  return NULL;
}
