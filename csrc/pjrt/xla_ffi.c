/* Custom calls that were made for XLA: a handler's call frame over that of xlac's native calls.
 *
 * Handlers are registered in the process, not with a client, since that is how jax.ffi does it: a list that only grows,
 * and that anybody may read at any time. It is the one thing in this library that is global. A handler runs on the
 * thread of the program's run; what it puts on the pool of threads runs there, too. */
#include <stdlib.h>

#include "../include/xlac_ffi.h"
#include "abi_extensions.h"
#include "abi_xla_ffi.h"
#include "pjrt.h"

/* --- handlers --- */

typedef struct ffi_handler ffi_handler;
struct ffi_handler {
  const ffi_handler *next;
  XLA_FFI_Handler *run;
  char target[];
};

static const ffi_handler *_Atomic ffi_handlers; /* the newest first, which hides older ones of its name */

PJRT_Error *pjrt_ffi_register_handler(PJRT_FFI_Register_Handler_Args *args) {
  size_t n = args->target_name_size;
  if (!args->handler || !n) return pjrt_fail(PJRT_INVALID_ARGUMENT, "a custom call needs a name and a handler");
  ffi_handler *h = pjrt_alloc(sizeof *h + n + 1);
  if (!h) return pjrt_out_of_memory("a custom call");
  memcpy(h->target, args->target_name, n);
  h->run = (XLA_FFI_Handler *)args->handler;
  h->next = atomic_load(&ffi_handlers);
  while (!atomic_compare_exchange_weak(&ffi_handlers, &h->next, h)) continue;
  return NULL;
}

bool pjrt_ffi_has_handler(const char *target) {
  for (const ffi_handler *h = atomic_load(&ffi_handlers); h; h = h->next)
    if (strcmp(h->target, target) == 0) return true;
  return false;
}

/* --- errors and futures of handlers --- */

struct XLA_FFI_Error {
  int code;
  const char *message; /* behind the struct, or constant */
};

static const XLA_FFI_Error ffi_no_memory = {PJRT_RESOURCE_EXHAUSTED, "out of memory"};

static XLA_FFI_Error *ffi_fail(int code, const char *text) {
  size_t n = strlen(text) + 1;
  XLA_FFI_Error *e = pjrt_alloc(sizeof *e + n);
  if (!e) return (XLA_FFI_Error *)(uintptr_t)&ffi_no_memory;
  *e = (XLA_FFI_Error){code, memcpy(e + 1, text, n)};
  return e;
}

static void ffi_drop_error(XLA_FFI_Error *e) {
  if (e != &ffi_no_memory) pjrt_free(e);
}

static XLA_FFI_Error *ffi_error_create(XLA_FFI_error_create_args *args) {
  return ffi_fail(args->code, args->message ? args->message : "");
}

static void ffi_error_message(XLA_FFI_error_message_args *args) {
  args->message = args->error->message;
}

static void ffi_error_destroy(XLA_FFI_error_destroy_args *args) {
  ffi_drop_error(args->error);
}

struct XLA_FFI_Future {
  rt_event *event;
};

static XLA_FFI_Error *ffi_future_create(XLA_FFI_future_create_args *args) {
  xlac_error err;
  XLA_FFI_Future *f = pjrt_alloc(sizeof *f);
  if (!f || rt_event_create(&f->event, base_alloc_libc, &err)) {
    pjrt_free(f);
    return ffi_fail(PJRT_RESOURCE_EXHAUSTED, "out of memory: a future");
  }
  args->future = f;
  return NULL;
}

static XLA_FFI_Error *ffi_future_set(XLA_FFI_future_set_args *args) {
  rt_event_set(args->future->event, NULL);
  return NULL;
}

static XLA_FFI_Error *ffi_future_fail(XLA_FFI_future_fail_args *args) {
  xlac_error why;
  bool known = args->error->code > PJRT_OK && args->error->code < PJRT_CODE_END;
  pjrt_error_to(&why, known ? (PJRT_Error_Code)args->error->code : PJRT_UNKNOWN, args->error->message,
                strlen(args->error->message));
  ffi_drop_error(args->error);
  rt_event_set(args->future->event, &why);
  return NULL;
}

/* --- what else a handler may ask for --- */

struct XLA_FFI_ExecutionContext {
  xlac_ffi_frame *frame;
};

static XLA_FFI_Error *ffi_handler_register(XLA_FFI_handler_register_args *args) {
  (void)args;
  return ffi_fail(PJRT_UNIMPLEMENTED, "handlers are registered by jax.ffi.register_ffi_target");
}

static XLA_FFI_Error *ffi_stream_get(XLA_FFI_stream_get_args *args) {
  (void)args;
  return ffi_fail(PJRT_UNIMPLEMENTED, "a CPU has no stream");
}

static XLA_FFI_Error *ffi_type_register(XLA_FFI_type_register_args *args) {
  PJRT_FFI_Type_Register_Args type = {.struct_size = sizeof type,
                                      .type_name = args->name.ptr,
                                      .type_name_size = args->name.len,
                                      .type_id = *args->type_id};
  PJRT_Error *none = pjrt_ffi_type_register(&type);
  assert(!none);
  (void)none;
  *args->type_id = type.type_id;
  return NULL;
}

static XLA_FFI_Error *ffi_context_get(XLA_FFI_context_get_args *args) {
  (void)args;
  return ffi_fail(PJRT_NOT_FOUND, "no data of this type is attached to the call");
}

static XLA_FFI_Error *ffi_state_set(XLA_FFI_state_set_args *args) {
  (void)args;
  return ffi_fail(PJRT_UNIMPLEMENTED, "xlac keeps no state for handlers");
}

static XLA_FFI_Error *ffi_state_get(XLA_FFI_state_get_args *args) {
  (void)args;
  return ffi_fail(PJRT_UNIMPLEMENTED, "xlac keeps no state for handlers");
}

/* Aligned to 64, which is as much as XLA's CPU gives. It is the frame's until the handler is over. */
static XLA_FFI_Error *ffi_memory_allocate(XLA_FFI_memory_allocate_args *args) {
  xlac_ffi_frame *frame = args->ctx->frame;
  if (args->alignment > 64) return ffi_fail(PJRT_INVALID_ARGUMENT, "scratch memory is aligned to 64 bytes at most");
  args->data = frame->allocate(frame, args->size);
  return args->data ? NULL : ffi_fail(PJRT_RESOURCE_EXHAUSTED, "out of memory: scratch memory of a custom call");
}

static XLA_FFI_Error *ffi_memory_free(XLA_FFI_memory_free_args *args) {
  (void)args; /* when the handler is over */
  return NULL;
}

static XLA_FFI_Error *ffi_pool_schedule(XLA_FFI_pool_schedule_args *args) {
  args->task(args->data);
  return NULL;
}

static XLA_FFI_Error *ffi_pool_threads(XLA_FFI_pool_threads_args *args) {
  *args->n = 1;
  return NULL;
}

static XLA_FFI_Error *ffi_run_id_get(XLA_FFI_run_id_get_args *args) {
  args->run_id = 0;
  return NULL;
}

static XLA_FFI_Error *ffi_ordinal_get(XLA_FFI_ordinal_get_args *args) {
  args->device_ordinal = 0;
  return NULL;
}

#define FFI_CALL(member, gives, ...) .member = ffi_##member,
static const XLA_FFI_Api ffi_api = {
    .struct_size = sizeof ffi_api, .version = {sizeof ffi_api.version, NULL, 0, 3}, XLA_FFI_CALLS(FFI_CALL)};
#undef FFI_CALL

/* --- a call --- */

/* What is made for one call lies in the frame's scratch memory, which lasts as long. */
static void *ffi_take(xlac_ffi_frame *frame, size_t n, size_t size) {
  void *p = frame->allocate(frame, n * size + 1);
  return p ? memset(p, 0, n * size + 1) : NULL;
}

static bool ffi_make_buffers(xlac_ffi_frame *frame, uint32_t n, const xlac_ffi_buffer *from, XLA_FFI_List *out) {
  assert(from || n == 0);
  XLA_FFI_Buffer *buffers = ffi_take(frame, n, sizeof *buffers);
  *out = (XLA_FFI_List){.struct_size = sizeof *out, .size = n};
  out->types = ffi_take(frame, n, sizeof *out->types);
  out->items = ffi_take(frame, n, sizeof *out->items);
  if (!buffers || !out->types || !out->items) return false;
  for (uint32_t i = 0; i < n; i++) {
    buffers[i] = (XLA_FFI_Buffer){.struct_size = sizeof *buffers,
                                  .dtype = (int)from[i].dtype,
                                  .data = from[i].data,
                                  .rank = from[i].rank,
                                  .dims = from[i].dims};
    out->types[i] = XLA_FFI_BUFFER;
    out->items[i] = &buffers[i];
  }
  return true;
}

static int ffi_compare_attrs(const void *a, const void *b) {
  const xlac_ffi_attr *const *x = a, *const *y = b;
  return strcmp((*x)->name, (*y)->name);
}

static bool ffi_make_attrs(xlac_ffi_frame *frame, uint64_t n, const xlac_ffi_attr *from, XLA_FFI_Attrs *out);

/* The value in memory as wide as its type. */
static const void *ffi_scalar_value(xlac_ffi_frame *frame, const xlac_ffi_attr *a) {
  union {
    bool b;
    int64_t i;
    float f;
    double d;
  } *v = ffi_take(frame, 1, sizeof *v);
  if (!v) return NULL;
  if (a->kind == XLAC_FFI_FLOAT && a->dtype == XLAC_FFI_F32)
    v->f = (float)a->f;
  else if (a->kind == XLAC_FFI_FLOAT)
    v->d = a->f;
  else
    v->i = a->i; /* little-endian: the low bytes come first */
  return v;
}

static void *ffi_make_attr(xlac_ffi_frame *frame, const xlac_ffi_attr *a, int *type) {
  if (a->kind == XLAC_FFI_BOOL || a->kind == XLAC_FFI_INT || a->kind == XLAC_FFI_FLOAT) {
    XLA_FFI_Scalar *s = ffi_take(frame, 1, sizeof *s);
    *type = XLA_FFI_ATTR_SCALAR;
    if (!s || !(s->value = ffi_scalar_value(frame, a))) return NULL;
    s->dtype = a->kind == XLAC_FFI_BOOL ? XLAC_FFI_PRED : (int)a->dtype;
    return s;
  }
  if (a->kind == XLAC_FFI_ARRAY) {
    XLA_FFI_Array *s = ffi_take(frame, 1, sizeof *s);
    *type = XLA_FFI_ATTR_ARRAY;
    if (s) *s = (XLA_FFI_Array){(int)a->dtype, a->n, a->array};
    return s;
  }
  if (a->kind == XLAC_FFI_DICT) {
    XLA_FFI_Attrs *s = ffi_take(frame, 1, sizeof *s);
    *type = XLA_FFI_ATTR_DICT;
    return s && ffi_make_attrs(frame, a->n, a->dict, s) ? s : NULL;
  }
  XLA_FFI_ByteSpan *s = ffi_take(frame, 1, sizeof *s);
  *type = XLA_FFI_ATTR_STRING;
  if (s) *s = (XLA_FFI_ByteSpan){a->s, a->n};
  return s;
}

/* Sorted by name: handlers look for theirs in that order. Depth is that of the attributes, which is bounded. */
static bool ffi_make_attrs(xlac_ffi_frame *frame, uint64_t n, const xlac_ffi_attr *from, XLA_FFI_Attrs *out) {
  const xlac_ffi_attr **sorted = ffi_take(frame, n, sizeof(xlac_ffi_attr *));
  XLA_FFI_ByteSpan *names = ffi_take(frame, n, sizeof *names);
  *out = (XLA_FFI_Attrs){.struct_size = sizeof *out, .size = (int64_t)n};
  out->types = ffi_take(frame, n, sizeof *out->types);
  out->names = ffi_take(frame, n, sizeof(XLA_FFI_ByteSpan *));
  out->attrs = ffi_take(frame, n, sizeof(void *));
  if (!sorted || !names || !out->types || !out->names || !out->attrs) return false;
  for (uint64_t i = 0; i < n; i++) sorted[i] = &from[i];
  qsort(sorted, n, sizeof *sorted, ffi_compare_attrs);
  for (uint64_t i = 0; i < n; i++) {
    names[i] = (XLA_FFI_ByteSpan){sorted[i]->name, strlen(sorted[i]->name)};
    out->names[i] = &names[i];
    if (!(out->attrs[i] = ffi_make_attr(frame, sorted[i], &out->types[i]))) return false;
  }
  return true;
}

/* Waits for a handler that goes on by itself. */
static int ffi_wait(xlac_ffi_frame *frame, XLA_FFI_Future *future) {
  xlac_error err;
  if (!future) return 0;
  int status = rt_event_wait(future->event, NULL, NULL, &err);
  rt_event_release(future->event);
  pjrt_free(future);
  return status ? frame->fail(frame, "%s", err.message) : 0;
}

static int ffi_run(xlac_ffi_frame *frame) {
  const ffi_handler *h = frame->user;
  assert(h && h->run);
  XLA_FFI_ExecutionContext context = {.frame = frame};
  XLA_FFI_CallFrame call = {.struct_size = offsetof(XLA_FFI_CallFrame, future),
                            .api = &ffi_api,
                            .ctx = &context,
                            .stage = XLA_FFI_STAGE_EXECUTE};
  if (!ffi_make_buffers(frame, frame->n_operands, frame->operands, &call.args) ||
      !ffi_make_buffers(frame, frame->n_results, frame->results, &call.rets) ||
      !ffi_make_attrs(frame, frame->n_attrs, frame->attrs, &call.attrs))
    return frame->fail(frame, "out of memory: a custom call");
  XLA_FFI_Error *error = h->run(&call);
  if (!error) return ffi_wait(frame, call.future);
  frame->fail(frame, "%s", error->message);
  ffi_drop_error(error);
  return -1;
}

int pjrt_ffi_add_handlers(xlac_registry *r, xlac_error *err) {
  xlac_ffi_target target = {.struct_size = sizeof target, .version = XLAC_FFI_VERSION, .run = ffi_run};
  const ffi_handler *all = atomic_load(&ffi_handlers);
  for (const ffi_handler *h = all; h; h = h->next) {
    const ffi_handler *newer = all;
    while (strcmp(newer->target, h->target) != 0) newer = newer->next;
    if (newer != h) continue;
    target.user = (void *)(uintptr_t)h;
    TRY(xlac_registry_add_native(r, h->target, &target, err));
  }
  return 0;
}
