/* The extensions that the plugin has: layouts (layout.c), shardings, FFI, the memories of topologies' devices, profiles
 * (tracing.c), and our own. The list is constant; the interface just doesn't say so in its types. */
#include "abi_extensions.h"
#include "pjrt.h"

/* --- shardings: no bytes are one, too, of what is whole on each device --- */

static PJRT_Error *sharding_of_parameters(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args) {
  const PJRT_Executable *e = args->executable;
  args->num_parameters = e->n_parameters;
  args->shardings = e->shardings + e->n_results;
  args->sharding_sizes = e->sharding_sizes + e->n_results;
  return NULL;
}

/* Without results there is one, for an empty tuple. */
static PJRT_Error *sharding_of_outputs(PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args) {
  static const char *const whole[] = {""};
  static const size_t none[] = {0};
  const PJRT_Executable *e = args->executable;
  args->num_outputs = e->n_results ? e->n_results : 1;
  args->shardings = e->n_results ? e->shardings : whole;
  args->sharding_sizes = e->n_results ? e->sharding_sizes : none;
  return NULL;
}

/* --- memories of topologies' devices: by their kinds --- */

struct PJRT_MemoryDescription {
  uint32_t kind;
};
static const PJRT_MemoryDescription memory_descriptions[PJRT_MEMORY_KINDS] = {{0}, {1}, {2}};
static const PJRT_MemoryDescription *const memory_description_list[PJRT_MEMORY_KINDS] = {
    &memory_descriptions[0], &memory_descriptions[1], &memory_descriptions[2]};

static PJRT_Error *memory_descriptions_of(PJRT_DeviceDescription_MemoryDescriptions_Args *args) {
  args->memory_descriptions = memory_description_list;
  args->num_memory_descriptions = PJRT_MEMORY_KINDS;
  args->default_memory_index = 0;
  return NULL;
}

static PJRT_Error *memory_description_kind(PJRT_MemoryDescription_Kind_Args *args) {
  args->kind = pjrt_memory_kind_name(args->memory_description->kind);
  args->kind_size = strlen(args->kind);
  args->kind_id = (int)args->memory_description->kind;
  return NULL;
}

/* --- the list, from its end on --- */

static const PJRT_Xlac_Extension extension_xlac = {{sizeof extension_xlac, PJRT_EXTENSION_XLAC, NULL}, pjrt_xlac_leave};
static const PJRT_Profiler_Extension extension_profiler = {
    .base = {sizeof extension_profiler, PJRT_EXTENSION_PROFILER, (PJRT_Extension_Base *)&extension_xlac.base},
    .profiler_api = &pjrt_profiler};
static const PJRT_MemoryDescriptions_Extension extension_memories = {
    {sizeof extension_memories, PJRT_EXTENSION_MEMORY_DESCRIPTIONS, (PJRT_Extension_Base *)&extension_profiler.base},
    memory_descriptions_of,
    memory_description_kind};
static const PJRT_FFI_Extension extension_ffi = {
    {sizeof extension_ffi, PJRT_EXTENSION_FFI, (PJRT_Extension_Base *)&extension_memories.base},
    pjrt_ffi_type_register,
    pjrt_ffi_user_data_add,
    pjrt_ffi_register_handler};
const PJRT_Shardings_Extension pjrt_second_extension = {
    {sizeof pjrt_second_extension, PJRT_EXTENSION_SHARDINGS, (PJRT_Extension_Base *)&extension_ffi.base},
    sharding_of_parameters,
    sharding_of_outputs};
