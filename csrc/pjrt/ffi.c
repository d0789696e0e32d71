/* What callers attach to a run. */
#include "abi_extensions.h"
#include "pjrt.h"

/* --- contexts of runs --- */

PJRT_Error *pjrt_execute_context_create(PJRT_ExecuteContext_Create_Args *args) {
  PJRT_ExecuteContext *context = pjrt_alloc(sizeof *context);
  if (!context) return pjrt_out_of_memory("the context of a call");
  pthread_mutex_init(&context->lock, NULL);
  args->context = context;
  return NULL;
}

PJRT_Error *pjrt_execute_context_destroy(PJRT_ExecuteContext_Destroy_Args *args) {
  if (!args->context) return NULL;
  pthread_mutex_destroy(&args->context->lock);
  pjrt_free(args->context);
  return NULL;
}

PJRT_Error *pjrt_ffi_user_data_add(PJRT_FFI_UserData_Add_Args *args) {
  PJRT_ExecuteContext *context = args->context;
  pthread_mutex_lock(&context->lock);
  bool fits = context->n < PJRT_USER_DATA_MAX;
  if (fits) {
    context->data[context->n].type_id = args->user_data.type_id;
    context->data[context->n++].data = args->user_data.data;
  }
  pthread_mutex_unlock(&context->lock);
  if (fits) return NULL;
  return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "a call has at most %d pieces of user data", PJRT_USER_DATA_MAX);
}

/* A type's id is a hash of its name: the same in every process, and nothing to keep. */
PJRT_Error *pjrt_ffi_type_register(PJRT_FFI_Type_Register_Args *args) {
  uint64_t hash = 0xcbf29ce484222325u;
  if (args->type_id) return NULL; /* the caller has one */
  for (size_t i = 0; i < args->type_name_size; i++) hash = (hash ^ (unsigned char)args->type_name[i]) * 0x100000001b3u;
  args->type_id = (int64_t)(hash >> 1 | 1);
  return NULL;
}
