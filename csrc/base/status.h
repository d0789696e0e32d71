/* Status codes and the error record. A function that can fail is XLAC_MUST_USE, returns 0 or the negative error code,
 * and takes a caller-owned `xlac_error *err` (may be NULL) last. A program bug is an assert; user input never asserts.
 */
#ifndef XLAC_BASE_STATUS_H
#define XLAC_BASE_STATUS_H

#include <assert.h>
#include <stdarg.h>

#include "../include/xlac.h"

#define XLAC_MUST_USE __attribute__((warn_unused_result))
/* Arguments are checked against the format, as printf's. */
#define BASE_PRINTF(fmt_index, first_arg) __attribute__((format(printf, fmt_index, first_arg)))

/* One row per error in errors.def; the enumerator is the stable number. */
typedef enum base_code {
  BASE_OK = 0,
#define ERROR(name, number, title) XLAC_E_##name = number,
#include "errors.def"
#undef ERROR
} base_code;

/* Fills `err` (if not NULL) and returns -code. Position and op are 0/empty; callers that know them use base_fail_at. */
int base_fail(xlac_error *err, base_code code, const char *format, ...) BASE_PRINTF(3, 4);
int base_fail_at(xlac_error *err, base_code code, uint32_t line, uint32_t col, const char *op, const char *format, ...)
    BASE_PRINTF(6, 7);
/* Adds what to do about it. Returns `status`, so that it chains: return base_hint(err, base_fail(...), "..."). */
int base_hint(xlac_error *err, int status, const char *format, ...) BASE_PRINTF(3, 4);
/* Out of memory while doing `what`. */
int base_oom(xlac_error *err, const char *what);
/* What base_oom says, too, once the caller wished to stop (heed.h). */
int base_interrupted(xlac_error *err);
/* The title of `code` in errors.def, or NULL. */
const char *base_code_title(int code);
/* "MALFORMED_TEXT" and so on, or NULL. */
const char *base_code_name(int code);

/* Returns the status of a call that failed. Nothing is released: owners clean up where they own. */
#define TRY(expr)                             \
  do {                                        \
    int try_status_ = (expr);                 \
    if (try_status_ != 0) return try_status_; \
  } while (0)

#endif
