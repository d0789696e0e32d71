/* Filling error records. Texts that are too long are cut between characters, so that what a caller prints is UTF-8 if
 * names are. */
#include "status.h"
#include "export.h"

#include "heed.h"

#include <stdio.h>
#include <string.h>

typedef struct code_fact {
  int code;
  const char *name;
  const char *title;
} code_fact;

static const code_fact code_facts[] = {
#define ERROR(name, number, title) {number, #name, title},
#include "errors.def"
#undef ERROR
};

/* NULL for a number that errors.def does not have. */
static const code_fact *find_code_fact(int code) {
  for (size_t i = 0; i < sizeof code_facts / sizeof *code_facts; ++i)
    if (code_facts[i].code == code) return &code_facts[i];
  return NULL;
}

/* Drops a UTF-8 sequence that truncation cut in two, so that a reader of the message never meets half a character. */
static void drop_cut_character(char *s, size_t n) {
  size_t start = n;
  while (start > 0 && n - start < 4 && ((unsigned char)s[start - 1] & 0xC0) == 0x80) --start;
  if (start == 0) return;
  unsigned char lead = (unsigned char)s[start - 1];
  size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (want > n - start + 1) s[start - 1] = 0;
}

static void format_field(char *field, size_t size, const char *format, va_list args) {
  assert(size > 0);
  int n = vsnprintf(field, size, format, args);
  if (n < 0) field[0] = 0;
  if (n > 0 && (size_t)n >= size) drop_cut_character(field, size - 1);
}

/* The status is made whether or not there is a record to fill. */
static int fill_error(xlac_error *err, base_code code, const char *format, va_list args) {
  assert(code > 0);
  if (!err) return -(int)code;
  err->code = (int32_t)code;
  err->line = err->col = 0;
  err->op[0] = err->hint[0] = 0;
  format_field(err->message, sizeof err->message, format, args);
  return -(int)code;
}

/* Position and op are emptied: an old error leaves no trace. */
BASE_EXPORT int base_fail(xlac_error *err, base_code code, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int status = fill_error(err, code, format, args);
  va_end(args);
  return status;
}

int base_fail_at(xlac_error *err, base_code code, uint32_t line, uint32_t col, const char *op, const char *format,
                 ...) {
  va_list args;
  va_start(args, format);
  int status = fill_error(err, code, format, args);
  va_end(args);
  if (!err) return status;
  err->line = line;
  err->col = col;
  size_t n = op ? strlen(op) : 0;
  size_t kept = n < sizeof err->op ? n : sizeof err->op - 1;
  if (kept) memcpy(err->op, op, kept);
  err->op[kept] = 0;
  if (kept < n) drop_cut_character(err->op, kept);
  return status;
}

BASE_EXPORT int base_hint(xlac_error *err, int status, const char *format, ...) {
  assert(format);
  assert(status < 0);
  if (!err) return status;
  va_list args;
  va_start(args, format);
  format_field(err->hint, sizeof err->hint, format, args);
  va_end(args);
  return status;
}

/* Where the caller wished to stop, the failed allocation is that wish. */
BASE_EXPORT int base_oom(xlac_error *err, const char *what) {
  assert(what);
  if (base_heed_stopped()) return base_interrupted(err);
  return base_fail(err, XLAC_E_OUT_OF_MEMORY, "out of memory while %s", what);
}

int base_interrupted(xlac_error *err) {
  return base_fail(err, XLAC_E_INTERRUPTED, "the call was interrupted");
}

/* For any number a caller may hold. */
const char *base_code_title(int code) {
  const code_fact *f = find_code_fact(code);
  return f ? f->title : NULL;
}

const char *base_code_name(int code) {
  const code_fact *f = find_code_fact(code);
  return f ? f->name : NULL;
}
