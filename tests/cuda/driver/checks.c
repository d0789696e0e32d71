/* What compiled kernels call: before each access (the names are those of the thread sanitizer's interface, whose calls
 * the compiler inserts and this library answers), and where something is undefined (the names of the undefined
 * behaviour sanitizer's). */
#include "sim.h"

#include <string.h>

void block_atomic(address at);

static void check(const void *at, uint32_t bytes, access_kind kind) {
  if (touch.kernel == NULL) return; /* an image is being loaded */
  int error = shadow_access((address)(uintptr_t)at, bytes, kind);
  if (error != SUCCESS) block_abort(error);
}

static int misaligned(const void *at, uint32_t bytes) {
  char who[64];
  sim_mark_thread_text(&touch.mark, who, sizeof who);
  return report(MISALIGNED_ADDRESS, "misaligned: kernel %s%s touches %u bytes at %p", touch.kernel->name, who, bytes,
                at);
}

static void check_aligned(const void *at, uint32_t bytes, access_kind kind) {
  if (touch.kernel != NULL && (uintptr_t)at % bytes != 0) block_abort(misaligned(at, bytes));
  check(at, bytes, kind);
}

#define ACCESS(n)                                        \
  EXPORT void __tsan_read##n(const void *at) {           \
    check_aligned(at, n, ACCESS_READ);                   \
  }                                                      \
  EXPORT void __tsan_write##n(void *at) {                \
    check_aligned(at, n, ACCESS_WRITE);                  \
  }                                                      \
  EXPORT void __tsan_unaligned_read##n(const void *at) { \
    check(at, n, ACCESS_READ);                           \
  }                                                      \
  EXPORT void __tsan_unaligned_write##n(void *at) {      \
    check(at, n, ACCESS_WRITE);                          \
  }                                                      \
  EXPORT void __tsan_volatile_read##n(const void *at) {  \
    check_aligned(at, n, ACCESS_READ);                   \
  }                                                      \
  EXPORT void __tsan_volatile_write##n(void *at) {       \
    check_aligned(at, n, ACCESS_WRITE);                  \
  }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

static void check_bytes(const void *at, size_t bytes, access_kind kind) {
  for (; bytes > 4096; bytes -= 4096, at = (const char *)at + 4096) check(at, 4096, kind);
  if (bytes > 0) check(at, (uint32_t)bytes, kind);
}

EXPORT void __tsan_read_range(const void *at, size_t bytes) {
  check_bytes(at, bytes, ACCESS_READ);
}
EXPORT void __tsan_write_range(void *at, size_t bytes) {
  check_bytes(at, bytes, ACCESS_WRITE);
}
EXPORT void __tsan_init(void) {}
EXPORT void __tsan_func_entry(void *from) {
  (void)from;
}
EXPORT void __tsan_func_exit(void) {}
EXPORT void __tsan_vptr_update(void **at, void *value) {
  (void)at, (void)value;
}
EXPORT void __tsan_vptr_read(void **at) {
  (void)at;
}

/* Of the header's own functions. */
EXPORT void cuda_touch(const void *at, uint32_t bytes, int write) {
  check_bytes(at, bytes, write == 0 ? ACCESS_READ : ACCESS_WRITE);
}
EXPORT void cuda_atomic(const void *at, uint32_t bytes) {
  check_aligned(at, bytes, ACCESS_ATOMIC);
  block_atomic((address)(uintptr_t)at);
}
EXPORT _Noreturn void cuda_trap(uint32_t line) {
  block_abort(report(LAUNCH_FAILED, "trap: kernel %s, line %u", touch.kernel->name, line));
}

/* ---- undefined behaviour ---- */

typedef struct place {
  const char *file;
  uint32_t line, column;
} place;
typedef struct alignment_data {
  place at;
  const void *type;
  unsigned char log_alignment, kind;
} alignment_data;

static int undefined(int error, const place *p, const char *what) {
  char who[64];
  sim_mark_thread_text(&touch.mark, who, sizeof who);
  return report(error, "%s: kernel %s%s in line %u", what, touch.kernel->name, who, p->line);
}

EXPORT void __ubsan_handle_type_mismatch_v1(alignment_data *d, uintptr_t at) {
  if (touch.kernel == NULL) return;
  char what[96] = "misaligned: an address that is not a multiple of 16";
  what[strlen(what) - 2] = 0;
  char number[8] = {0};
  uint32_t alignment = 1u << d->log_alignment, n = 0;
  (void)at;
  for (uint32_t digits = alignment; digits > 0; digits /= 10)
    memmove(number + 1, number, ++n), number[0] = (char)('0' + digits % 10);
  strcat(what, number);
  block_abort(undefined(MISALIGNED_ADDRESS, &d->at, what));
}

/* Their other arguments, the values, are not looked at. */
#define UNDEFINED(name, parameters, error, text)                                     \
  EXPORT void name parameters {                                                      \
    if (touch.kernel != NULL) block_abort(undefined(error, (const place *)d, text)); \
  }
UNDEFINED(__ubsan_handle_out_of_bounds, (void *d), ILLEGAL_ADDRESS, "out of bounds of an array")
UNDEFINED(__ubsan_handle_divrem_overflow, (void *d), LAUNCH_FAILED, "a division by zero, or one that overflows")
UNDEFINED(__ubsan_handle_shift_out_of_bounds, (void *d), LAUNCH_FAILED, "a shift by as many bits as there are, or more")
UNDEFINED(__ubsan_handle_missing_return, (void *d), LAUNCH_FAILED, "a function without a return")
UNDEFINED(__ubsan_handle_builtin_unreachable, (void *d), LAUNCH_FAILED, "what cannot be reached")
