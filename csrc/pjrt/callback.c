/* Python callbacks: custom calls whose implementation is an object of Python's, which reaches the plugin with each run.
 *
 * The plugin doesn't link with Python. The package that registers it gives the address of a function that takes
 * Python's lock, makes arrays of the operands, calls the object and copies what that returns: a ctypes callback. */
#include <stdio.h>

#include "../include/xlac_ffi.h"
#include "../api/plugin.h"
#include "pjrt.h"

/* Where it returns nonzero, `error` has two texts, one behind the other: what was raised, and that with its traceback.
 * `in_place`: the callable writes the results itself. */
typedef int callback_python(void *callable, uint32_t in_place, uint32_t n_operands, const xlac_ffi_buffer *operands,
                            uint32_t n_results, const xlac_ffi_buffer *results, char *error, uint64_t error_size);

/* The type that jaxlib registers for what it attaches to calls. */
#define CALLBACK_TYPE_ID INT64_C(7357244197867843242)
typedef struct callback_attached {
  void **callables;
  uint32_t n;
} callback_attached;

#define CALLBACK_TARGET "xla_ffi_python_cpu_callback"
#define CALLBACK_SINGLE_TARGET "xlac_python_callback_of_one_device"
#define CALLBACK_BUFFER_TARGET "xla_buffer_python_cpu_callback"
static const char *const callback_targets[] = {CALLBACK_TARGET, "xla_ffi_partitioned_python_cpu_callback",
                                               CALLBACK_SINGLE_TARGET, CALLBACK_BUFFER_TARGET};
enum { CALLBACK_TARGETS = sizeof callback_targets / sizeof *callback_targets };

/* --- what a run brings --- */

PJRT_Error *pjrt_callbacks_read(pjrt_callbacks *out, const PJRT_Client *c, uint32_t n_devices,
                                PJRT_ExecuteContext *context) {
  const callback_attached *found = NULL;
  *out = (pjrt_callbacks){.call = c->options.python_call};
  if (n_devices > 1 && !(out->meeting = pjrt_meeting_create(n_devices))) return pjrt_out_of_memory("a call");
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
  pjrt_meeting_destroy(b->meeting);
  pjrt_free(atomic_load(&b->told));
  atomic_store(&b->told, NULL);
  b->callables = NULL;
  b->meeting = NULL;
}

/* --- the custom call --- */

/* For whoever waits for the run; events have the first text alone. */
static void callback_keep_error(pjrt_callbacks *b, const char error[MEETING_ERROR]) {
  size_t n = strnlen(error, MEETING_ERROR - 2) + 1;
  char *none = NULL, *text = pjrt_copy_text(error + n, strnlen(error + n, MEETING_ERROR - n));
  if (text && !atomic_compare_exchange_strong(&b->told, &none, text)) pjrt_free(text);
}

static int callback_call(xlac_ffi_frame *frame, char error[MEETING_ERROR]) {
  pjrt_callbacks *b = frame->user;
  const xlac_ffi_attr *index = xlac_ffi_find(frame, "index");
  if (!b->call) {
    snprintf(error, MEETING_ERROR, "nobody can call Python: the plugin was not registered by xlac's package");
    return -1;
  }
  if (!index || index->kind != XLAC_FFI_INT || index->i < 0 || index->i >= (int64_t)b->n) {
    snprintf(error, MEETING_ERROR, "the call brings %u Python callbacks; the program asks for another", b->n);
    return -1;
  }
  callback_python *call = (callback_python *)(uintptr_t)b->call;
  bool in_place = strcmp(frame->target, CALLBACK_BUFFER_TARGET) == 0;
  bool before = pjrt_set_on_queue(true); /* of a group's run, it may be a thread of the group's */
  int status = call(b->callables[index->i], in_place, frame->n_operands, frame->operands, frame->n_results,
                    frame->results, error, MEETING_ERROR);
  (void)pjrt_set_on_queue(before);
  if (status) callback_keep_error(b, error);
  return status;
}

static int callback_run(xlac_ffi_frame *frame) {
  char error[MEETING_ERROR] = "";
  return callback_call(frame, error) ? frame->fail(frame, "%s", error) : 0;
}

static int callback_run_single(xlac_ffi_frame *frame) {
  const pjrt_callbacks *b = frame->user;
  return b->meeting ? pjrt_meeting_call(b->meeting, frame, callback_call) : callback_run(frame);
}

int pjrt_registry_make(xlac_registry **out, pjrt_callbacks *callbacks, xlac_error *err) {
  xlac_registry *r = NULL;
  TRY(xlac_registry_create(&r, err));
  const xlac_ffi_target each = {
      .struct_size = sizeof each, .version = XLAC_FFI_VERSION, .run = callback_run, .user = callbacks};
  xlac_ffi_target single = each;
  single.run = callback_run_single;
  int status = pjrt_ffi_add_handlers(r, err);
  for (int i = 0; status == 0 && i < CALLBACK_TARGETS; i++)
    status = xlac_registry_add_native(r, callback_targets[i],
                                      strcmp(callback_targets[i], CALLBACK_SINGLE_TARGET) == 0 ? &single : &each, err);
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

/* An op's target, the caller's to free; NULL: it is not a custom call. */
static char *callback_target(xlac_module *m, xlac_op *op) {
  xlac_op_info info;
  xlac_error err;
  char *text = NULL;
  xlac_op_get(m, op, &info);
  if (strcmp(info.opcode, "custom-call") != 0) return NULL;
  if (xlac_op_attr(m, op, "custom_call_target", &text, &err) || !text) return NULL;
  size_t n = strlen(text); /* in quotes */
  assert(n >= 2 && text[0] == '"');
  memmove(text, text + 1, n - 2);
  text[n - 2] = '\0';
  return text;
}

static PJRT_Error *callback_check_op(xlac_module *m, xlac_op *op, bool *needs_registry) {
  char *target = callback_target(m, op);
  PJRT_Error *error = NULL;
  if (target && (callback_is_target(target) || pjrt_ffi_has_handler(target)))
    *needs_registry = true;
  else if (target && !api_knows_custom_call(target))
    error =
        pjrt_fail(PJRT_UNIMPLEMENTED,
                  "no custom call is registered under the target \"%.100s\" in %.60s; register it before the program "
                  "is compiled: jax.ffi.register_ffi_target(\"%.100s\", handler, platform=\"cpu\")",
                  target, xlac_module_name(m), target);
  xlac_free(target);
  return error;
}

PJRT_Error *pjrt_check_calls(xlac_module *m, bool *needs_registry) {
  *needs_registry = false;
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c))
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op))
      PJRT_TRY(callback_check_op(m, op, needs_registry));
  return NULL;
}

int pjrt_mark_single_calls(xlac_module *m, xlac_error *err) {
  return xlac_module_name_single_calls(m, CALLBACK_TARGET, CALLBACK_SINGLE_TARGET, err);
}
