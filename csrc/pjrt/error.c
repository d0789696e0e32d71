/* Errors of the client's, and what the library's errors are to it. */
#include <stdio.h>

#include "pjrt.h"

struct PJRT_Error {
  const PJRT_Error_FunctionTable *vtable;
  PJRT_Error_Code code;
  bool constant;
  size_t size;
  const char *message; /* behind the struct, or constant */
};

/* In events, codes of the client's lie above all of the library's. */
enum { ERROR_CLIENT_CODE = 1 << 20 };

/* --- the table at the beginning of every error: the same functions as the slots --- */

static void error_destroy(PJRT_Error *e) {
  if (e && !e->constant) pjrt_free(e);
}

static void error_message(const PJRT_Error *e, const char **message, size_t *size) {
  *message = e->message;
  *size = e->size;
}

static PJRT_Error_Code error_code(const PJRT_Error *e) {
  return e->code;
}

static void error_payload(const PJRT_Error *e, PJRT_Error_PayloadVisitor visitor, void *user_arg) {
  (void)e, (void)visitor, (void)user_arg; /* there is none */
}

static const PJRT_Error_FunctionTable error_table = {
    .struct_size = sizeof error_table,
    .instance_size = sizeof(PJRT_Error),
    .destroy = error_destroy,
    .message = error_message,
    .get_code = error_code,
    .for_each_payload = error_payload,
};

static const PJRT_Error error_no_memory = {
    .vtable = &error_table,
    .code = PJRT_RESOURCE_EXHAUSTED,
    .constant = true,
    .size = sizeof "out of memory" - 1,
    .message = "out of memory",
};

/* --- making them --- */

static PJRT_Error *error_make(PJRT_Error_Code code, const char *text, size_t n) {
  assert(code != PJRT_OK);
  PJRT_Error *e = base_malloc(base_alloc_libc, sizeof *e + n + 1);
  if (!e) return (PJRT_Error *)(uintptr_t)&error_no_memory;
  char *copy = (char *)(e + 1);
  *e = (PJRT_Error){&error_table, code, false, n, copy};
  memcpy(copy, text, n);
  copy[n] = '\0';
  return e;
}

PJRT_Error *pjrt_fail(PJRT_Error_Code code, const char *format, ...) {
  char text[2048];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (n < 0) n = 0;
  return error_make(code, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

PJRT_Error *pjrt_fail_with(PJRT_Error_Code code, const char *text) {
  return error_make(code, text, strlen(text));
}

PJRT_Error *pjrt_out_of_memory(const char *what) {
  return pjrt_fail(PJRT_RESOURCE_EXHAUSTED, "out of memory: %s", what);
}

char *pjrt_copy_text(const char *s, size_t n) {
  char *copy = base_malloc(base_alloc_libc, n + 1);
  if (!copy) return NULL;
  if (n) memcpy(copy, s, n);
  copy[n] = '\0';
  return copy;
}

/* What else than a bad argument a code is. */
static const struct {
  base_code code;
  PJRT_Error_Code is;
} error_codes[] = {
    {XLAC_E_OUT_OF_MEMORY, PJRT_RESOURCE_EXHAUSTED},
    {XLAC_E_INTERRUPTED, PJRT_CANCELLED},
    {XLAC_E_INTERNAL, PJRT_INTERNAL},
    {XLAC_E_EVAL, PJRT_INTERNAL},
    {XLAC_E_CHECK, PJRT_INTERNAL},
    {XLAC_E_UNKNOWN_CUSTOM_CALL, PJRT_UNIMPLEMENTED},
    {XLAC_E_PARTICIPANTS, PJRT_ABORTED},
    {XLAC_E_LEGALIZE, PJRT_UNIMPLEMENTED},
    {XLAC_E_IO, PJRT_NOT_FOUND},
    {XLAC_E_BAD_EXECUTABLE, PJRT_FAILED_PRECONDITION},
};

static PJRT_Error_Code error_code_of(int32_t code) {
  for (size_t i = 0; i < sizeof error_codes / sizeof *error_codes; i++)
    if ((int32_t)error_codes[i].code == code) return error_codes[i].is;
  return PJRT_INVALID_ARGUMENT;
}

PJRT_Error *pjrt_error_of(const xlac_error *err) {
  assert(err->code != 0);
  if (err->code > ERROR_CLIENT_CODE)
    return pjrt_fail((PJRT_Error_Code)(err->code - ERROR_CLIENT_CODE), "%s", err->message);
  char where[160] = "";
  if (err->op[0]) snprintf(where, sizeof where, " (op %s)", err->op);
  return pjrt_fail(error_code_of(err->code), "%s%s%s%s [XLAC-E%04d]", err->message, where, err->hint[0] ? "; " : "",
                   err->hint, (int)err->code);
}

void pjrt_error_to(xlac_error *out, PJRT_Error_Code code, const char *message, size_t n) {
  assert(code > PJRT_OK && code < PJRT_CODE_END);
  *out = (xlac_error){.code = ERROR_CLIENT_CODE + (int32_t)code};
  if (n >= sizeof out->message) n = sizeof out->message - 1;
  if (n) memcpy(out->message, message, n);
}

/* --- slots --- */

void pjrt_error_destroy(PJRT_Error_Destroy_Args *args) {
  error_destroy(args->error);
}

void pjrt_error_message(PJRT_Error_Message_Args *args) {
  error_message(args->error, &args->message, &args->message_size);
}

PJRT_Error *pjrt_error_get_code(PJRT_Error_GetCode_Args *args) {
  args->code = error_code(args->error);
  return NULL;
}

PJRT_Error *pjrt_error_for_each_payload(PJRT_Error_ForEachPayload_Args *args) {
  error_payload(args->error, args->visitor, args->user_arg);
  return NULL;
}
