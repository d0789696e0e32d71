/* The table of slots, and what the plugin says of itself before there is a client. */
#include "abi_extensions.h"
#include "pjrt.h"

/* What is not there says so by name. */
static PJRT_Error *api_absent(const char *slot) {
  return pjrt_fail(PJRT_UNIMPLEMENTED, "PJRT_%s: xlac's plugin does not have this", slot);
}
#define SLOT(...)
#define VOID(...)
#define ABSENT(name, ...)                                          \
  static PJRT_Error *api_absent_##name(PJRT_##name##_Args *args) { \
    (void)args;                                                    \
    return api_absent(#name);                                      \
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
