/* XLA's FFI, version 0.3: what a handler that was made for XLA sees. Our own declarations, of what the plugin needs. */
#ifndef XLAC_PJRT_ABI_XLA_FFI_H
#define XLAC_PJRT_ABI_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

typedef struct XLA_FFI_Error XLA_FFI_Error;
typedef struct XLA_FFI_ExecutionContext XLA_FFI_ExecutionContext;
typedef struct XLA_FFI_Future XLA_FFI_Future;
typedef struct XLA_FFI_Api XLA_FFI_Api;

/* Every struct begins so. */
#define XLA_FFI_HEAD  \
  size_t struct_size; \
  void *extension_start

typedef struct XLA_FFI_ByteSpan {
  const char *ptr;
  size_t len;
} XLA_FFI_ByteSpan;
typedef struct XLA_FFI_Scalar {
  int dtype; /* numbers as in xlac_ffi.h */
  const void *value;
} XLA_FFI_Scalar;
typedef struct XLA_FFI_Array {
  int dtype;
  size_t size;
  const void *data;
} XLA_FFI_Array;
typedef struct XLA_FFI_Buffer {
  XLA_FFI_HEAD;
  int dtype;
  void *data;
  int64_t rank;
  const int64_t *dims;
} XLA_FFI_Buffer;

enum { XLA_FFI_BUFFER = 1 }; /* arguments, results */
enum { XLA_FFI_ATTR_ARRAY = 1, XLA_FFI_ATTR_DICT = 2, XLA_FFI_ATTR_SCALAR = 3, XLA_FFI_ATTR_STRING = 4 };
enum { XLA_FFI_STAGE_EXECUTE = 3 };

/* Lists of `size` pointers to what `types` says. */
typedef struct XLA_FFI_List {
  XLA_FFI_HEAD;
  int64_t size;
  int *types;
  void **items;
} XLA_FFI_List;
typedef struct XLA_FFI_Attrs {
  XLA_FFI_HEAD;
  int64_t size;
  int *types;
  XLA_FFI_ByteSpan **names;
  void **attrs;
} XLA_FFI_Attrs;

typedef struct XLA_FFI_CallFrame {
  XLA_FFI_HEAD;
  const XLA_FFI_Api *api;
  XLA_FFI_ExecutionContext *ctx;
  int stage;
  XLA_FFI_List args, rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future *future; /* of a handler that goes on after it has returned */
} XLA_FFI_CallFrame;
typedef XLA_FFI_Error *XLA_FFI_Handler(XLA_FFI_CallFrame *frame);

/* --- what handlers call: FFI_CALL(member, what it returns, fields of its arguments) --- */

#define XLA_FFI_CALLS(FFI_CALL)                                                                                  \
  FFI_CALL(error_create, XLA_FFI_Error *, const char *message; int code;)                                        \
  FFI_CALL(error_message, void, XLA_FFI_Error *error; const char *message;)                                      \
  FFI_CALL(error_destroy, void, XLA_FFI_Error *error;)                                                           \
  FFI_CALL(handler_register, XLA_FFI_Error *, XLA_FFI_ByteSpan name;)                                            \
  FFI_CALL(stream_get, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; void *stream;)                            \
  FFI_CALL(type_register, XLA_FFI_Error *, XLA_FFI_ByteSpan name; int64_t *type_id;)                             \
  FFI_CALL(context_get, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; const int64_t *type_id; void *data;)     \
  FFI_CALL(state_set, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx;)                                           \
  FFI_CALL(state_get, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx;)                                           \
  FFI_CALL(memory_allocate, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; size_t size; size_t alignment;       \
           void *data;)                                                                                          \
  FFI_CALL(memory_free, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; size_t size; void *data;)                \
  FFI_CALL(pool_schedule, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; void (*task)(void *data); void *data;) \
  FFI_CALL(pool_threads, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; int64_t *n;)                            \
  FFI_CALL(future_create, XLA_FFI_Error *, XLA_FFI_Future *future;)                                              \
  FFI_CALL(future_set, XLA_FFI_Error *, XLA_FFI_Future *future;)                                                 \
  FFI_CALL(future_fail, XLA_FFI_Error *, XLA_FFI_Future *future; XLA_FFI_Error * error;)                         \
  FFI_CALL(run_id_get, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; int64_t run_id;)                          \
  FFI_CALL(ordinal_get, XLA_FFI_Error *, XLA_FFI_ExecutionContext *ctx; int32_t device_ordinal;)

#define FFI_CALL(member, gives, ...)       \
  typedef struct XLA_FFI_##member##_args { \
    XLA_FFI_HEAD;                          \
    __VA_ARGS__                            \
  } XLA_FFI_##member##_args;
XLA_FFI_CALLS(FFI_CALL)
#undef FFI_CALL

typedef struct XLA_FFI_Api_Version {
  XLA_FFI_HEAD;
  int major, minor;
} XLA_FFI_Api_Version;

#define FFI_CALL(member, gives, ...) gives (*member)(XLA_FFI_##member##_args * args);
struct XLA_FFI_Api {
  XLA_FFI_HEAD;
  XLA_FFI_Api_Version version;
  const void *internal; /* XLA's own handlers only */
  XLA_FFI_CALLS(FFI_CALL)
};
#undef FFI_CALL

_Static_assert(sizeof(void *) != 8 || (sizeof(XLA_FFI_Api) == 48 + 18 * 8 && sizeof(XLA_FFI_Buffer) == 48 &&
                                       sizeof(XLA_FFI_CallFrame) == 40 + 2 * 40 + 48 + 8),
               "structs are as long as XLA's");

#endif
