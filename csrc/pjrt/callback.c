/* Python callbacks: custom calls whose implementation is an object of Python's, which reaches the plugin with each run.
 *
 * The plugin doesn't link with Python. The package that registers it gives the address of a function that takes
 * Python's lock, makes arrays of the operands, calls the object and copies what that returns: a ctypes callback. */
#include <stdio.h>

#include "../include/xlac_ffi.h"
#include "pjrt.h"

/* `error` is filled where it returns nonzero. */
typedef int callback_python(void *callable, uint32_t n_operands, const xlac_ffi_buffer *operands, uint32_t n_results,
                            const xlac_ffi_buffer *results, char *error, uint64_t error_size);

/* The type that jaxlib registers for what it attaches to calls. */
#define CALLBACK_TYPE_ID INT64_C(7357244197867843242)
typedef struct callback_attached {
  void **callables;
  uint32_t n;
} callback_attached;

static const char *const callback_targets[] = {"xla_ffi_python_cpu_callback",
                                               "xla_ffi_partitioned_python_cpu_callback"};
enum { CALLBACK_TARGETS = sizeof callback_targets / sizeof *callback_targets };

/* --- what a run brings --- */

PJRT_Error *pjrt_callbacks_read(pjrt_callbacks *out, const PJRT_Client *c, PJRT_ExecuteContext *context) {
  const callback_attached *found = NULL;
  *out = (pjrt_callbacks){.call = c->options.python_call};
  if (!context) return NULL;
  pthread_mutex_lock(&context->lock);
  for (uint32_t i = 0; i < context->n; i++)
    if (context->data[i].type_id == CALLBACK_TYPE_ID) found = context->data[i].data;
  pthread_mutex_unlock(&context->lock);
  if (!found || !found->n) return NULL;
  out->callables = pjrt_alloc(found->n * sizeof(void *));
  if (!out->callables) return pjrt_out_of_memory("the callbacks of a call");
  out->n = found->n;
  memcpy(out->callables, found->callables, found->n * sizeof(void *));
  return NULL;
}

void pjrt_callbacks_free(pjrt_callbacks *b) {
  pjrt_free(b->callables);
  b->callables = NULL;
}

/* --- the custom call --- */

static int callback_run(xlac_ffi_frame *frame) {
  char error[4096] = "";
  const pjrt_callbacks *b = frame->user;
  const xlac_ffi_attr *index = xlac_ffi_find(frame, "index");
  if (!b->call) return frame->fail(frame, "nobody can call Python: the plugin was not registered by xlac's package");
  if (!index || index->kind != XLAC_FFI_INT || index->i < 0 || index->i >= (int64_t)b->n)
    return frame->fail(frame, "the call brings %u Python callbacks; the program asks for another", b->n);
  callback_python *call = (callback_python *)(uintptr_t)b->call;
  bool before = pjrt_set_on_queue(true); /* of a group's run, it may be a thread of the group's */
  int status = call(b->callables[index->i], frame->n_operands, frame->operands, frame->n_results, frame->results, error,
                    sizeof error);
  (void)pjrt_set_on_queue(before);
  if (status == 0) return 0;
  return frame->fail(frame, "%s", error);
}

int pjrt_registry_make(xlac_registry **out, pjrt_callbacks *callbacks, xlac_error *err) {
  xlac_registry *r = NULL;
  TRY(xlac_registry_create(&r, err));
  const xlac_ffi_target target = {
      .struct_size = sizeof target, .version = XLAC_FFI_VERSION, .run = callback_run, .user = callbacks};
  int status = pjrt_ffi_add_handlers(r, err);
  for (int i = 0; status == 0 && i < CALLBACK_TARGETS; i++)
    status = xlac_registry_add_native(r, callback_targets[i], &target, err);
  if (status)
    xlac_registry_destroy(r);
  else
    *out = r;
  return status;
}

/* --- whether a program has such calls --- */

static bool callback_is_target(const char *text) {
  for (int i = 0; i < CALLBACK_TARGETS; i++)
    if (strcmp(text, callback_targets[i]) == 0) return true;
  return false;
}

static bool callback_is_call(xlac_module *m, xlac_op *op) {
  xlac_op_info info;
  xlac_error err;
  char *text = NULL;
  xlac_op_get(m, op, &info);
  if (strcmp(info.opcode, "custom-call") != 0) return false;
  if (xlac_op_attr(m, op, "custom_call_target", &text, &err) || !text) return false;
  size_t n = strlen(text); /* in quotes */
  if (n >= 2) text[n - 1] = '\0';
  bool is = n >= 2 && (callback_is_target(text + 1) || pjrt_ffi_has_handler(text + 1));
  xlac_free(text);
  return is;
}

bool pjrt_needs_registry(xlac_module *m) {
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c))
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op))
      if (callback_is_call(m, op)) return true;
  return false;
}
