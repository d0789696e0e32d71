/* The options of a pass, by name. */
#include "pass.h"

/* Names are the program's own, so one that is missing is a bug. Options are few: no index is needed. */
static uint32_t option_index(const opt_args *args, const char *name) {
  uint32_t i = 0;
  while (args->pass->options[i].name && strcmp(args->pass->options[i].name, name) != 0) i++;
  assert(args->pass->options[i].name);
  return i;
}

int64_t opt_get(const opt_args *args, const char *name) {
  return args->values[option_index(args, name)];
}

base_slice opt_get_text(const opt_args *args, const char *name) {
  return args->texts[option_index(args, name)];
}
