/* xlac: the one public header. Plain C, also read by cffi: no macros inside declarations, no system headers
 * beyond <stdint.h>, <stddef.h> and <stdbool.h>.
 *
 * Errors: a function that can fail returns 0 on success and a negative value on failure, and fills the caller's
 * `xlac_error`, always its last argument, which may be NULL. On failure every output is left untouched.
 * Threads: distinct handles may be used from distinct threads. What one handle allows is said at its type. */
#ifndef XLAC_H
#define XLAC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. `code` is stable (docs/errors.md has a section for each, XLAC-E0142 and so on). `line` and `col`
 * count from 1 in the text the module was read from, 0 where there is none. `op` names the op concerned, or is empty.
 * `message` says what was wrong, what was expected and what was found; `hint` what to do about it, or is empty. */
typedef struct xlac_error {
  int32_t code;
  uint32_t line;
  uint32_t col;
  char op[96];
  char message[640];
  char hint[256];
} xlac_error;

#ifdef __cplusplus
}
#endif
#endif
