/* Reading the option structs of callers that were built with another version of xlac.h.
 *
 * xlac.h's option structs begin with struct_size, which XLAC_OPTIONS fills: a caller built with an older
 * header has a smaller struct, whose missing members are zero, the default of every member; one built with
 * a newer header has members we don't know, which must be zero. */
#include <stddef.h>
#include <string.h>

#include "api.h"

enum { OPTIONS_SMALLEST = 8, OPTIONS_LARGEST = 4096 }; /* bytes, of any version */

/* New members begin where the struct ended before, never in its padding, whose bytes callers don't set. So these are
 * the sizes of version 1, for good: a struct that has grown gets another one here, beside the old one. */
_Static_assert(sizeof(xlac_parse_options) == 16 && sizeof(xlac_print_options) == 24 && sizeof(xlac_verify_options) == 8,
               "version 1");
_Static_assert(sizeof(void *) != 8 ||
                   (sizeof(xlac_pipeline_options) == 32 && offsetof(xlac_interpret_options, step) == 88 &&
                    offsetof(xlac_compile_options, device) == 88 && sizeof(xlac_session_options) == 48),
               "version 1");

/* Whether the members that this version does not know are zero. */
static bool options_rest_is_zero(const char *given, uint32_t from, uint32_t size) {
  for (uint32_t i = from; i < size; i++)
    if (given[i]) return false;
  return true;
}

static int options_bad_size(const char *name, uint32_t given, uint32_t size, xlac_error *err) {
  int status = base_fail(err, XLAC_E_BAD_ARGUMENT,
                         "%s.struct_size is %u, which is not the size of any version of that struct; here it is %u",
                         name, (unsigned)given, (unsigned)size);
  return base_hint(err, status, "initialise it: %s options = {XLAC_OPTIONS(%s)}", name, name);
}

/* `own` is filled from the smaller of both sizes. Errors name the struct as the caller wrote it. */
int api_options_convert(void *own, const void *given, uint32_t size, uint32_t align, const char *name,
                        xlac_error *err) {
  assert(own && given && size >= OPTIONS_SMALLEST && size <= OPTIONS_LARGEST && size % align == 0);
  uint32_t theirs;
  memcpy(&theirs, given, sizeof theirs);
  if (theirs < OPTIONS_SMALLEST || theirs > OPTIONS_LARGEST || theirs % align)
    return options_bad_size(name, theirs, size, err);
  if (theirs > size && !options_rest_is_zero(given, size, theirs)) {
    int status =
        base_fail(err, XLAC_E_BAD_ARGUMENT,
                  "%s has %u bytes, of which this version of xlac knows the first %u, and sets a member after them",
                  name, (unsigned)theirs, (unsigned)size);
    return base_hint(err, status, "leave members zero that are newer than the library, or use a newer library");
  }
  memset(own, 0, size);
  memcpy(own, given, theirs < size ? theirs : size);
  memcpy(own, &size, sizeof size);
  return 0;
}
