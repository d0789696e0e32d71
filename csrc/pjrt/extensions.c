/* The extensions that the plugin has: layouts (all row-major), shardings, FFI, the memories of
 * topologies' devices, and our own. The list is constant; the interface just doesn't say so in its types. */
#include "abi_extensions.h"
#include "pjrt.h"

/* --- layouts: their text is that of HLO without braces' neighbours, "{1,0}" --- */

enum { LAYOUT_TEXT = 4 * IR_MAX_RANK + 3 };

struct PJRT_Layouts_MemoryLayout {
  size_t n;
  char text[LAYOUT_TEXT];
};

static PJRT_Layouts_MemoryLayout *layout_make(size_t rank) {
  assert(rank <= IR_MAX_RANK);
  PJRT_Layouts_MemoryLayout *l = pjrt_alloc(sizeof *l);
  if (!l) return NULL;
  l->text[l->n++] = '{';
  for (size_t d = rank; d-- > 0;) {
    if (d >= 10) l->text[l->n++] = (char)('0' + d / 10);
    l->text[l->n++] = (char)('0' + d % 10);
    if (d) l->text[l->n++] = ',';
  }
  l->text[l->n++] = '}';
  return l;
}

static PJRT_Error *layout_destroy(PJRT_Layouts_MemoryLayout_Destroy_Args *args) {
  pjrt_free(args->layout);
  return NULL;
}

static void layout_drop_text(PJRT_Layouts_SerializedLayout *s) {
  pjrt_free(s);
}

/* The text outlives the layout. */
static PJRT_Error *layout_serialize(PJRT_Layouts_MemoryLayout_Serialize_Args *args) {
  char *copy = pjrt_copy_text(args->layout->text, args->layout->n);
  if (!copy) return pjrt_out_of_memory("a layout");
  args->serialized_bytes = copy;
  args->serialized_bytes_size = args->layout->n;
  args->serialized_layout = (PJRT_Layouts_SerializedLayout *)(void *)copy;
  args->serialized_layout_deleter = layout_drop_text;
  return NULL;
}

static PJRT_Error *layout_of_rank(size_t rank, PJRT_Layouts_MemoryLayout **out) {
  if (rank > IR_MAX_RANK)
    return pjrt_fail(PJRT_INVALID_ARGUMENT, "an array has at most %d dimensions", (int)IR_MAX_RANK);
  *out = layout_make(rank);
  return *out ? NULL : pjrt_out_of_memory("a layout");
}

static PJRT_Error *layout_of_client(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args) {
  return layout_of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_topology(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args) {
  return layout_of_rank(args->num_dims, &args->layout);
}

static PJRT_Error *layout_of_buffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args) {
  return layout_of_rank(args->buffer->rank, &args->layout);
}

/* The caller destroys each layout, the array is the executable's: under its lock, since two may ask at a time. */
static PJRT_Error *layout_fill(void **array, uint32_t n, const pjrt_shape *first, size_t step) {
  for (uint32_t i = 0; i < n; i++) {
    const pjrt_shape *s = (const pjrt_shape *)(const void *)((const char *)first + i * step);
    if (!(array[i] = layout_make(s->rank))) return pjrt_out_of_memory("layouts");
  }
  return NULL;
}

static PJRT_Error *layout_of_outputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args) {
  PJRT_Executable *e = args->executable;
  pthread_mutex_lock(&e->lock);
  PJRT_Error *error = layout_fill(e->layouts, e->n_results, &e->results->shape, sizeof *e->results);
  pthread_mutex_unlock(&e->lock);
  args->num_outputs = e->n_results;
  args->layouts = (PJRT_Layouts_MemoryLayout **)e->layouts;
  return error;
}

static PJRT_Error *layout_of_parameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args) {
  PJRT_Executable *e = args->executable;
  void **array = e->layouts + e->n_results;
  pthread_mutex_lock(&e->lock);
  PJRT_Error *error = layout_fill(array, e->n_parameters, &e->parameters->shape, sizeof *e->parameters);
  pthread_mutex_unlock(&e->lock);
  args->num_parameters = e->n_parameters;
  args->layouts = (PJRT_Layouts_MemoryLayout **)array;
  return error;
}

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
static const PJRT_MemoryDescriptions_Extension extension_memories = {
    {sizeof extension_memories, PJRT_EXTENSION_MEMORY_DESCRIPTIONS, (PJRT_Extension_Base *)&extension_xlac.base},
    memory_descriptions_of,
    memory_description_kind};
static const PJRT_FFI_Extension extension_ffi = {
    {sizeof extension_ffi, PJRT_EXTENSION_FFI, (PJRT_Extension_Base *)&extension_memories.base},
    pjrt_ffi_type_register,
    pjrt_ffi_user_data_add,
    pjrt_ffi_register_handler};
static const PJRT_Shardings_Extension extension_shardings = {
    {sizeof extension_shardings, PJRT_EXTENSION_SHARDINGS, (PJRT_Extension_Base *)&extension_ffi.base},
    sharding_of_parameters,
    sharding_of_outputs};
const PJRT_Layouts_Extension pjrt_first_extension = {
    .base = {sizeof pjrt_first_extension, PJRT_EXTENSION_LAYOUTS, (PJRT_Extension_Base *)&extension_shardings.base},
    .memory_layout_destroy = layout_destroy,
    .memory_layout_serialize = layout_serialize,
    .client_get_default_layout = layout_of_client,
    .buffer_memory_layout = layout_of_buffer,
    .topology_get_default_layout = layout_of_topology,
    .executable_get_output_layouts = layout_of_outputs,
    .executable_get_parameter_layouts = layout_of_parameters,
};
