/* Extensions of the PJRT C API: our own declarations, as those of abi.h. */
#ifndef XLAC_PJRT_ABI_EXTENSIONS_H
#define XLAC_PJRT_ABI_EXTENSIONS_H

#include "abi.h"

#define PJRT_EXTENSION_ARGS(name, size, last, ...)                                 \
  typedef struct name {                                                            \
    size_t struct_size;                                                            \
    PJRT_Extension_Base *extension_start;                                          \
    __VA_ARGS__                                                                    \
  } name;                                                                          \
  _Static_assert(sizeof(void *) != 8 || PJRT_SIZE_UP_TO(name, last) == size, #name \
                 " is as long as the interface "                                   \
                 "says");

/* --- layouts --- */

typedef struct PJRT_Layouts_MemoryLayout PJRT_Layouts_MemoryLayout;
typedef struct PJRT_Layouts_SerializedLayout PJRT_Layouts_SerializedLayout;
PJRT_EXTENSION_ARGS(PJRT_Layouts_MemoryLayout_Destroy_Args, 24, layout, PJRT_Layouts_MemoryLayout *layout;)
PJRT_EXTENSION_ARGS(PJRT_Layouts_MemoryLayout_Serialize_Args, 56, serialized_layout_deleter,
                    PJRT_Layouts_MemoryLayout *layout;
                    const char *serialized_bytes; size_t serialized_bytes_size;
                    PJRT_Layouts_SerializedLayout * serialized_layout;
                    void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout *s_layout);)
PJRT_EXTENSION_ARGS(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, 56, layout, PJRT_Client *client;
                    PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims; PJRT_Layouts_MemoryLayout * layout;)
PJRT_EXTENSION_ARGS(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, 32, layout, PJRT_Buffer *buffer;
                    PJRT_Layouts_MemoryLayout * layout;)
PJRT_EXTENSION_ARGS(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, 56, layout,
                    PJRT_TopologyDescription *topology_description;
                    PJRT_Buffer_Type type; const int64_t *dims; size_t num_dims; PJRT_Layouts_MemoryLayout * layout;)
PJRT_EXTENSION_ARGS(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, 40, layouts, PJRT_Executable *executable;
                    size_t num_outputs; PJRT_Layouts_MemoryLayout * *layouts;)
PJRT_EXTENSION_ARGS(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, 40, layouts, PJRT_Executable *executable;
                    size_t num_parameters; PJRT_Layouts_MemoryLayout * *layouts;)

typedef struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*memory_layout_destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args *args);
  PJRT_Error *(*memory_layout_serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args *args);
  PJRT_Error *(*client_get_default_layout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args *args);
  PJRT_Error *(*buffer_memory_layout)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args *args);
  PJRT_Error *(*topology_get_default_layout)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args *args);
  PJRT_Error *(*executable_get_output_layouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args *args);
  PJRT_Error *(*executable_get_parameter_layouts)(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args *args);
} PJRT_Layouts_Extension;

/* --- shardings: OpSharding protos; no bytes are REPLICATED --- */

PJRT_EXTENSION_ARGS(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, 48, sharding_sizes,
                    PJRT_Executable *executable;
                    size_t num_parameters; const char *const *shardings; const size_t *sharding_sizes;)
PJRT_EXTENSION_ARGS(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, 48, sharding_sizes,
                    PJRT_Executable *executable;
                    size_t num_outputs; const char *const *shardings; const size_t *sharding_sizes;)

typedef struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*parameter_shardings)(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args *args);
  PJRT_Error *(*output_shardings)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args *args);
} PJRT_Shardings_Extension;

/* --- FFI: what callers attach to runs, and custom calls of theirs --- */

typedef struct PJRT_FFI_Type_Info {
  void (*deleter)(void *object);
  void (*serialize)(void);
  void (*deserialize)(void);
} PJRT_FFI_Type_Info;
typedef struct PJRT_FFI_UserData {
  int64_t type_id;
  void *data;
} PJRT_FFI_UserData;
PJRT_EXTENSION_ARGS(PJRT_FFI_Type_Register_Args, 48, type_info, const char *type_name; size_t type_name_size;
                    int64_t type_id; PJRT_FFI_Type_Info * type_info;)
PJRT_EXTENSION_ARGS(PJRT_FFI_UserData_Add_Args, 40, user_data, PJRT_ExecuteContext *context;
                    PJRT_FFI_UserData user_data;)
typedef struct PJRT_FFI_Register_Handler_Args { /* without a list of extensions */
  size_t struct_size;
  const char *target_name;
  size_t target_name_size;
  void *handler;
  const char *platform_name;
  size_t platform_name_size;
  int traits;
} PJRT_FFI_Register_Handler_Args;
_Static_assert(sizeof(void *) != 8 || PJRT_SIZE_UP_TO(PJRT_FFI_Register_Handler_Args, traits) == 52,
               "as long as the interface says");

typedef struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*type_register)(PJRT_FFI_Type_Register_Args *args);
  PJRT_Error *(*user_data_add)(PJRT_FFI_UserData_Add_Args *args);
  PJRT_Error *(*register_handler)(PJRT_FFI_Register_Handler_Args *args);
} PJRT_FFI_Extension;

/* --- descriptions of memories, for topologies --- */

typedef struct PJRT_MemoryDescription PJRT_MemoryDescription;
PJRT_EXTENSION_ARGS(PJRT_DeviceDescription_MemoryDescriptions_Args, 48, default_memory_index,
                    PJRT_DeviceDescription *device_description;
                    const PJRT_MemoryDescription *const *memory_descriptions; size_t num_memory_descriptions;
                    size_t default_memory_index;)
PJRT_EXTENSION_ARGS(PJRT_MemoryDescription_Kind_Args, 44, kind_id, const PJRT_MemoryDescription *memory_description;
                    const char *kind; size_t kind_size; int kind_id;)

typedef struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*memory_descriptions)(PJRT_DeviceDescription_MemoryDescriptions_Args *args);
  PJRT_Error *(*memory_description_kind)(PJRT_MemoryDescription_Kind_Args *args);
} PJRT_MemoryDescriptions_Extension;

/* --- profiles: what jax.profiler.trace collects, as an XSpace; its errors are those of the other slots --- */

typedef struct PLUGIN_Profiler PLUGIN_Profiler;
typedef struct PLUGIN_Profiler_Error_Args { /* of destroy, message and code, each up to its own fields */
  size_t struct_size;
  void *priv;
  PJRT_Error *error;
  union {
    struct {
      const char *message;
      size_t message_size;
    };
    int code;
  };
} PLUGIN_Profiler_Error_Args;
typedef struct PLUGIN_Profiler_Create_Args {
  size_t struct_size; /* clients leave it as it is, here and in what follows */
  const char *options;
  size_t options_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Create_Args;
typedef struct PLUGIN_Profiler_Args { /* of destroy, start and stop */
  size_t struct_size;
  PLUGIN_Profiler *profiler;
} PLUGIN_Profiler_Args;
typedef struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler *profiler;
  unsigned char *buffer; /* NULL: where the profiler's own bytes are is written here */
  size_t buffer_size_in_bytes;
} PLUGIN_Profiler_CollectData_Args;
typedef struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void *priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Args *args);
  void (*error_message)(PLUGIN_Profiler_Error_Args *args);
  PJRT_Error *(*error_get_code)(PLUGIN_Profiler_Error_Args *args);
  PJRT_Error *(*create)(PLUGIN_Profiler_Create_Args *args);
  PJRT_Error *(*destroy)(PLUGIN_Profiler_Args *args);
  PJRT_Error *(*start)(PLUGIN_Profiler_Args *args);
  PJRT_Error *(*stop)(PLUGIN_Profiler_Args *args);
  PJRT_Error *(*collect_data)(PLUGIN_Profiler_CollectData_Args *args);
} PLUGIN_Profiler_Api;

typedef struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  const PLUGIN_Profiler_Api *profiler_api;
  int64_t traceme_context_id; /* of what clients attach to arguments: not read */
} PJRT_Profiler_Extension;

/* --- our own: for the Python package beside the plugin, in python/xlac/jax --- */

enum {
  PJRT_EXTENSION_XLAC = 0x786c6163
}; /* no number of the interface's, and clients pass over what they don't know */

/* A word of the package's in which a client lies that it has created, with a reference: see leave.c. */
typedef _Atomic(PJRT_Client *) PJRT_Xlac_Client_Slot;

PJRT_EXTENSION_ARGS(PJRT_Xlac_Leave_Args, 33, over, PJRT_Xlac_Client_Slot *slot;
                    int64_t milliseconds; /* it waits for at most so long */
                    bool over;)           /* the client's work has come to its end, and the slot is empty */

typedef struct PJRT_Xlac_Extension {
  PJRT_Extension_Base base;
  PJRT_Error *(*leave)(PJRT_Xlac_Leave_Args *args);
} PJRT_Xlac_Extension;

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(PJRT_Layouts_Extension) == 80 && sizeof(PJRT_Shardings_Extension) == 40 &&
                    sizeof(PJRT_FFI_Extension) == 48 && sizeof(PJRT_MemoryDescriptions_Extension) == 40 &&
                    sizeof(PJRT_Profiler_Extension) == 40 && sizeof(PLUGIN_Profiler_Api) == 80 &&
                    sizeof(PLUGIN_Profiler_CollectData_Args) == 32),
               "extensions are as long as the interface says");

/* The first of them; the list never changes. extensions.c has the others */
extern const PJRT_Layouts_Extension pjrt_first_extension; /* layout.c */
extern const PJRT_Shardings_Extension pjrt_second_extension;
extern const PLUGIN_Profiler_Api pjrt_profiler; /* tracing.c */
/* What the FFI extension does: ffi.c, xla_ffi.c */
PJRT_Error *pjrt_ffi_type_register(PJRT_FFI_Type_Register_Args *args);
PJRT_Error *pjrt_ffi_user_data_add(PJRT_FFI_UserData_Add_Args *args);
PJRT_Error *pjrt_ffi_register_handler(PJRT_FFI_Register_Handler_Args *args);
/* What our own does: leave.c */
PJRT_Error *pjrt_xlac_leave(PJRT_Xlac_Leave_Args *args);

#endif
