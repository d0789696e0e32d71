/* The PJRT C API as jaxlib 0.10.2 speaks it (version 0.112; jaxlib 0.11.2 has 0.115, and asks an older plugin for no
 * more than that has): our own declarations, written from a description.
 *
 * Names are those of the interface, since that is what a reader looks for. Every struct of arguments begins with its
 * size and a list of extensions; callers may be older or newer, so that sizes differ: the plugin reads the fields that
 * every supported version has, and compares no sizes. Where the interface says that a struct ends with its last field,
 * without padding, slots.def has that number, and the checks below hold the compiler to it. */
#ifndef XLAC_PJRT_ABI_H
#define XLAC_PJRT_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PJRT_MAJOR = 0, PJRT_MINOR = 112 };

/* --- numbers --- */

/* absl's codes. */
typedef enum PJRT_Error_Code {
  PJRT_OK = 0,
  PJRT_CANCELLED = 1,
  PJRT_UNKNOWN = 2,
  PJRT_INVALID_ARGUMENT = 3,
  PJRT_DEADLINE_EXCEEDED = 4,
  PJRT_NOT_FOUND = 5,
  PJRT_RESOURCE_EXHAUSTED = 8,
  PJRT_FAILED_PRECONDITION = 9,
  PJRT_ABORTED = 10,
  PJRT_UNIMPLEMENTED = 12,
  PJRT_INTERNAL = 13,
  PJRT_UNAVAILABLE = 14,
  PJRT_DATA_LOSS = 15,
  PJRT_CODE_END = 17
} PJRT_Error_Code;

/* Element types: TYPE(name, number, the name of base/dtypes.def). */
#define PJRT_BUFFER_TYPES(TYPE)            \
  TYPE(PRED, 1, "pred")                    \
  TYPE(S8, 2, "s8")                        \
  TYPE(S16, 3, "s16")                      \
  TYPE(S32, 4, "s32")                      \
  TYPE(S64, 5, "s64")                      \
  TYPE(U8, 6, "u8")                        \
  TYPE(U16, 7, "u16")                      \
  TYPE(U32, 8, "u32")                      \
  TYPE(U64, 9, "u64")                      \
  TYPE(F16, 10, "f16")                     \
  TYPE(F32, 11, "f32")                     \
  TYPE(F64, 12, "f64")                     \
  TYPE(BF16, 13, "bf16")                   \
  TYPE(C64, 14, "c64")                     \
  TYPE(C128, 15, "c128")                   \
  TYPE(F8E5M2, 16, "f8e5m2")               \
  TYPE(F8E4M3FN, 17, "f8e4m3fn")           \
  TYPE(F8E4M3B11FNUZ, 18, "f8e4m3b11fnuz") \
  TYPE(F8E5M2FNUZ, 19, "f8e5m2fnuz")       \
  TYPE(F8E4M3FNUZ, 20, "f8e4m3fnuz")       \
  TYPE(S4, 21, "s4")                       \
  TYPE(U4, 22, "u4")                       \
  TYPE(S2, 24, "s2")                       \
  TYPE(U2, 25, "u2")                       \
  TYPE(F8E4M3, 26, "f8e4m3")               \
  TYPE(F8E3M4, 27, "f8e3m4")               \
  TYPE(F8E8M0FNU, 28, "f8e8m0fnu")         \
  TYPE(F4E2M1FN, 29, "f4e2m1fn")           \
  TYPE(S1, 30, "s1")                       \
  TYPE(U1, 31, "u1")

typedef enum PJRT_Buffer_Type {
  PJRT_BUFFER_INVALID = 0,
#define TYPE(name, number, text) PJRT_BUFFER_##name = number,
  PJRT_BUFFER_TYPES(TYPE)
#undef TYPE
      PJRT_BUFFER_TOKEN = 23,
  PJRT_BUFFER_TYPE_END = 32
} PJRT_Buffer_Type;

typedef enum PJRT_NamedValue_Type {
  PJRT_VALUE_STRING = 0,
  PJRT_VALUE_INT64 = 1,
  PJRT_VALUE_INT64_LIST = 2,
  PJRT_VALUE_FLOAT = 3,
  PJRT_VALUE_BOOL = 4
} PJRT_NamedValue_Type;

/* What the plugin may do with the host's memory, and for how long. */
typedef enum PJRT_HostBufferSemantics {
  PJRT_HOST_DURING_CALL = 0,
  PJRT_HOST_UNTIL_TRANSFER = 1,
  PJRT_HOST_IMMUTABLE_ZERO_COPY = 2,
  PJRT_HOST_MUTABLE_ZERO_COPY = 3
} PJRT_HostBufferSemantics;

typedef enum PJRT_MemoryLayout_Type { PJRT_LAYOUT_TILED = 0, PJRT_LAYOUT_STRIDES = 1 } PJRT_MemoryLayout_Type;

typedef enum PJRT_Extension_Type {
  PJRT_EXTENSION_PROFILER = 1,
  PJRT_EXTENSION_LAYOUTS = 4,
  PJRT_EXTENSION_FFI = 5,
  PJRT_EXTENSION_MEMORY_DESCRIPTIONS = 6,
  PJRT_EXTENSION_SHARDINGS = 19
} PJRT_Extension_Type;

/* --- objects: the client looks into none of them but errors and memories, which begin with a table --- */

typedef struct PJRT_Error PJRT_Error;
typedef struct PJRT_Event PJRT_Event;
typedef struct PJRT_Client PJRT_Client;
typedef struct PJRT_Device PJRT_Device;
typedef struct PJRT_DeviceDescription PJRT_DeviceDescription;
typedef struct PJRT_Memory PJRT_Memory;
typedef struct PJRT_Buffer PJRT_Buffer;
typedef struct PJRT_Executable PJRT_Executable;
typedef struct PJRT_LoadedExecutable PJRT_LoadedExecutable;
typedef struct PJRT_ExecuteContext PJRT_ExecuteContext;
typedef struct PJRT_TopologyDescription PJRT_TopologyDescription;
typedef struct PJRT_SerializedExecutable PJRT_SerializedExecutable;
typedef struct PJRT_SerializedTopology PJRT_SerializedTopology;
typedef struct PJRT_SerializedCompileOptions PJRT_SerializedCompileOptions;
typedef struct PJRT_DeviceAssignmentSerialized PJRT_DeviceAssignmentSerialized;
typedef struct PJRT_Device_Attributes PJRT_Device_Attributes;
typedef struct PJRT_AsyncTrackingEvent PJRT_AsyncTrackingEvent;
typedef struct PJRT_CopyToDeviceStream PJRT_CopyToDeviceStream;
typedef struct PJRT_AsyncHostToDeviceTransferManager PJRT_AsyncHostToDeviceTransferManager;
typedef struct PJRT_FulfillAliasBufferCallback PJRT_FulfillAliasBufferCallback;
typedef struct PJRT_MultiSlice_Config PJRT_MultiSlice_Config;
typedef struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args PJRT_Buffer_CopyRawToHostFuture_Callback_Args;
typedef struct PJRT_Buffer_DonateWithControlDependency_Callback_Args
    PJRT_Buffer_DonateWithControlDependency_Callback_Args;
typedef struct PJRT_ProcessInfo PJRT_ProcessInfo;
typedef struct PJRT_Chunk PJRT_Chunk;
typedef struct PJRT_SendCallbackInfo PJRT_SendCallbackInfo;
typedef struct PJRT_RecvCallbackInfo PJRT_RecvCallbackInfo;
typedef struct PJRT_HloOutputCallbackInfo PJRT_HloOutputCallbackInfo;

/* --- structs that arguments point to --- */

typedef struct PJRT_Extension_Base PJRT_Extension_Base;
struct PJRT_Extension_Base {
  size_t struct_size;
  int type; /* a PJRT_Extension_Type, or one that is not known */
  PJRT_Extension_Base *next;
};

typedef void (*PJRT_Error_PayloadVisitor)(const char *key, size_t key_size, const char *value, size_t value_size,
                                          void *user_arg);
typedef struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base *extension_start;
  void (*destroy)(PJRT_Error *error);
  void (*message)(const PJRT_Error *error, const char **message, size_t *message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error *error);
  void (*for_each_payload)(const PJRT_Error *error, PJRT_Error_PayloadVisitor visitor, void *user_arg);
} PJRT_Error_FunctionTable;

/* Users of the client's may hang data on a memory; a NULL table says that none may. */
typedef struct PJRT_Memory_FunctionTable PJRT_Memory_FunctionTable;

typedef void (*PJRT_Event_OnReadyCallback)(PJRT_Error *error, void *user_arg);

/* The client's table of texts that all of its processes share. Its functions make their errors by callback_error. */
typedef PJRT_Error *(*PJRT_CallbackError)(PJRT_Error_Code code, const char *message, size_t message_size);
typedef struct PJRT_KeyValueGetCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const char *key;
  size_t key_size;
  int timeout_in_ms;
  PJRT_CallbackError *callback_error;
  void *user_arg;
  char *value;
  size_t value_size;
  void (*value_deleter_callback)(char *value);
} PJRT_KeyValueGetCallback_Args;
typedef struct PJRT_KeyValuePutCallback_Args {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const char *key;
  size_t key_size;
  const char *value;
  size_t value_size;
  PJRT_CallbackError *callback_error;
  void *user_arg;
} PJRT_KeyValuePutCallback_Args;
typedef PJRT_Error *(*PJRT_KeyValueGetCallback)(PJRT_KeyValueGetCallback_Args *args);
typedef PJRT_Error *(*PJRT_KeyValueTryGetCallback)(void *args); /* nothing here calls it */
typedef PJRT_Error *(*PJRT_KeyValuePutCallback)(PJRT_KeyValuePutCallback_Args *args);

typedef struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const char *name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  union {
    const char *string_value;
    int64_t int64_value;
    const int64_t *int64_array_value;
    float float_value;
    bool bool_value;
  };
  size_t value_size; /* of a string or a list, else 1 */
} PJRT_NamedValue;

typedef struct PJRT_Program {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  char *code;
  size_t code_size;
  const char *format;
  size_t format_size;
} PJRT_Program;

typedef struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *minor_to_major;
  size_t minor_to_major_size;
  const int64_t *tile_dims;
  const size_t *tile_dim_sizes;
  size_t num_tiles;
} PJRT_Buffer_MemoryLayout_Tiled;
typedef struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *byte_strides;
  size_t num_byte_strides;
} PJRT_Buffer_MemoryLayout_Strides;
typedef struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  union {
    PJRT_Buffer_MemoryLayout_Tiled tiled;
    PJRT_Buffer_MemoryLayout_Strides strides;
  };
  PJRT_MemoryLayout_Type type;
} PJRT_Buffer_MemoryLayout;

typedef struct PJRT_ShapeSpec {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  const int64_t *dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
} PJRT_ShapeSpec;

typedef struct PJRT_LogicalDeviceIds {
  int replica, partition;
} PJRT_LogicalDeviceIds;

typedef struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  PJRT_SendCallbackInfo **send_callbacks;
  PJRT_RecvCallbackInfo **recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t *non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext *context;
  const char *call_location;
  size_t num_tasks;
  int *task_ids;
  int64_t *incarnation_ids;
  PJRT_MultiSlice_Config *multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo *hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
} PJRT_ExecuteOptions;

typedef struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t *computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config *multi_slice_config;
} PJRT_LoadOptions;

typedef struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  int major_version;
  int minor_version;
} PJRT_Api_Version;

/* What the client calls when it knows where a copy is to go. */
struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void *callback_data;
  PJRT_Error_Code error_code;
  const char *error_message;
  size_t error_message_size;
  void *dst;
};

/* --- the slots --- */

#define PJRT_ARGS(name, fn, size, last, ...)                                                                       \
  typedef struct PJRT_##name##_Args {                                                                              \
    size_t struct_size;                                                                                            \
    PJRT_Extension_Base *extension_start;                                                                          \
    __VA_ARGS__                                                                                                    \
  } PJRT_##name##_Args;                                                                                            \
  _Static_assert(                                                                                                  \
      sizeof(void *) != 8 || offsetof(PJRT_##name##_Args, last) + sizeof(((PJRT_##name##_Args *)0)->last) == size, \
      "PJRT_" #name "_Args is as long as the interface says");
#define SLOT PJRT_ARGS
#define VOID PJRT_ARGS
#define ABSENT(name, ...) PJRT_ARGS(name, , __VA_ARGS__)
#include "slots.def"
#undef SLOT
#undef VOID
#undef ABSENT

#define SLOT(name, ...) PJRT_Error *(*name)(PJRT_##name##_Args * args);
#define VOID(name, ...) void (*name)(PJRT_##name##_Args * args);
#define ABSENT SLOT
typedef struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base *extension_start;
  PJRT_Api_Version version;
#include "slots.def"
} PJRT_Api;
#undef SLOT
#undef VOID
#undef ABSENT

/* The functions of the slots, which the files of this room define. */
#define SLOT(name, fn, ...) PJRT_Error *fn(PJRT_##name##_Args *args);
#define VOID(name, fn, ...) void fn(PJRT_##name##_Args *args);
#define ABSENT(...)
#include "slots.def"
#undef SLOT
#undef VOID
#undef ABSENT

/* What a size of a struct is where it ends with `last`. */
#define PJRT_SIZE_UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))

_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(PJRT_Api) == 1144 && sizeof(PJRT_Api_Version) == 24 && sizeof(PJRT_NamedValue) == 56 &&
                    sizeof(PJRT_Program) == 48 && sizeof(PJRT_Buffer_MemoryLayout_Tiled) == 56 &&
                    sizeof(PJRT_Buffer_MemoryLayout_Strides) == 32 && sizeof(PJRT_ExecuteOptions) == 144 &&
                    sizeof(PJRT_LoadOptions) == 32 && sizeof(PJRT_KeyValueGetCallback_Args) == 80 &&
                    sizeof(PJRT_KeyValuePutCallback_Args) == 64 &&
                    sizeof(PJRT_Buffer_CopyRawToHostFuture_Callback_Args) == 48 &&
                    sizeof(PJRT_Error_FunctionTable) == 56 && PJRT_SIZE_UP_TO(PJRT_Buffer_MemoryLayout, type) == 76 &&
                    PJRT_SIZE_UP_TO(PJRT_ShapeSpec, element_type) == 36),
               "structs are as long as the interface says");

/* The one symbol of the library. */
__attribute__((visibility("default"))) const PJRT_Api *GetPjrtApi(void);

#endif
