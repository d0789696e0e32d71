/* The table of slots, and what the plugin says of itself before there is a client. */
#include "abi_extensions.h"
#include "pjrt.h"

/* What is not there says so by name, why, and what to do instead. */
static PJRT_Error *api_absent(const char *slot, const char *why) {
  return pjrt_fail(PJRT_UNIMPLEMENTED, "PJRT_%s: xlac's plugin does not have this: %s", slot, why);
}
#define API_NO_STREAMS                                                                                             \
  "streams are what a receive callback of Execute is given, and xlac's programs call Python by custom calls; use " \
  "jax.pure_callback or jax.experimental.io_callback"
#define API_NO_ALIASES                                                                      \
  "a buffer has its memory from the beginning; make it when its contents are there, or by " \
  "Client_CreateBuffersForAsyncHostToDevice, whose buffers are ready once their data has come"
#define API_NO_TRACKING "xlac keeps no record of waiting on the host; xlac.jax.profile says where a program's time goes"
#define WHY_CopyToDeviceStream_Destroy API_NO_STREAMS
#define WHY_CopyToDeviceStream_AddChunk API_NO_STREAMS
#define WHY_CopyToDeviceStream_TotalBytes API_NO_STREAMS
#define WHY_CopyToDeviceStream_GranuleSize API_NO_STREAMS
#define WHY_CopyToDeviceStream_CurrentBytes API_NO_STREAMS
#define WHY_Client_CreateAliasBuffer API_NO_ALIASES
#define WHY_Client_FulfillAliasBuffer API_NO_ALIASES
#define WHY_Device_PoisonExecution \
  "a run that was enqueued comes to its end; give it an argument of Client_CreateErrorBuffer, and it fails with that"
#define WHY_Device_CreateAsyncTrackingEvent API_NO_TRACKING
#define WHY_AsyncTrackingEvent_Destroy API_NO_TRACKING
#define WHY_Buffer_DonateWithControlDependency                                                            \
  "memory is free once the last run that reads it is over, which needs no dependency; donate the buffer " \
  "to Execute, or delete it"
#define WHY_TopologyDescription_MakeCanonicalShapeForMemorySpace \
  "layouts have no tiles or padding in any memory; the shape with Layouts_PJRT_Topology_GetDefaultLayout is canonical"
#define SLOT(...)
#define VOID(...)
#define ABSENT(name, ...)                                          \
  static PJRT_Error *api_absent_##name(PJRT_##name##_Args *args) { \
    (void)args;                                                    \
    return api_absent(#name, WHY_##name);                          \
  }
#include "slots.def"
#undef SLOT
#undef VOID
#undef ABSENT

const char *pjrt_platform_version(void) {
  return xlac_version();
}

/* --- what the plugin reads and has --- */

static const int64_t api_stablehlo_version[3] = {1, 20, 0}, api_sdy_version[3] = {0, 0, 1};
#define API_NAME(text) .struct_size = sizeof(PJRT_NamedValue), .name = (text), .name_size = sizeof(text) - 1
static const PJRT_NamedValue api_attributes[] = {
    {API_NAME("stablehlo_current_version"), .type = PJRT_VALUE_INT64_LIST, .int64_array_value = api_stablehlo_version,
     .value_size = 3},
    {API_NAME("sdy_current_version"), .type = PJRT_VALUE_INT64_LIST, .int64_array_value = api_sdy_version,
     .value_size = 3},
    {API_NAME("xla_version"), .type = PJRT_VALUE_INT64, .int64_value = 2, .value_size = 1},
    {API_NAME("supports_executable_serialization"), .type = PJRT_VALUE_BOOL, .bool_value = true, .value_size = 1},
    /* saved programs may be text (compile.c): the Python package knows this plugin's clients by it */
    {API_NAME("xlac_loads_text"), .type = PJRT_VALUE_BOOL, .bool_value = true, .value_size = 1},
};

PJRT_Error *pjrt_plugin_initialize(PJRT_Plugin_Initialize_Args *args) {
  (void)args; /* nothing is global */
  return NULL;
}

PJRT_Error *pjrt_plugin_attributes(PJRT_Plugin_Attributes_Args *args) {
  args->attributes = api_attributes;
  args->num_attributes = sizeof api_attributes / sizeof *api_attributes;
  return NULL;
}

/* --- the table --- */

#define SLOT(name, fn, ...) .name = fn,
#define VOID SLOT
#define ABSENT(name, ...) .name = api_absent_##name,
static const PJRT_Api api_table = {
    .struct_size = sizeof api_table,
    .extension_start = (PJRT_Extension_Base *)&pjrt_first_extension.base,
    .version = {.struct_size = sizeof api_table.version, .major_version = PJRT_MAJOR, .minor_version = PJRT_MINOR},
#include "slots.def"
};
#undef SLOT
#undef VOID
#undef ABSENT

const PJRT_Api *GetPjrtApi(void) {
  return &api_table;
}
