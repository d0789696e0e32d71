/* Runs an XLA program from C: docs/c-library.md, README.md of the release, has the command that builds it. */
#include <stdio.h>
#include <string.h>

#include "xlac.h"

static const char program[] =
    "HloModule twice\n"
    "ENTRY main {\n"
    "  x = f32[3] parameter(0)\n"
    "  ROOT y = f32[3] add(x, x)\n"
    "}\n";

static int fail(const xlac_error *err) {
  fprintf(stderr, "%u:%u: %s [XLAC-E%04d]\n", err->line, err->col, err->message, err->code);
  return 1;
}

int main(void) {
  const float numbers[] = {1, 2, 3};
  const int64_t dims[] = {3};
  xlac_error err;
  xlac_module *module = NULL;
  xlac_value *x = NULL, *y = NULL;
  if (xlac_module_parse(&module, program, strlen(program), NULL, &err) != 0) return fail(&err);
  if (xlac_module_verify(module, NULL, &err) != 0) return fail(&err);
  if (xlac_value_copy(&x, xlac_dtype_from_text("f32"), 1, dims, numbers, &err) != 0) return fail(&err);
  if (xlac_interpret(module, NULL, 1, &x, &y, &err) != 0) return fail(&err);
  xlac_value_info info;
  xlac_value_get(y, &info);
  for (int64_t i = 0; i < info.count; i++) printf("%g\n", ((const float *)info.data)[i]);
  xlac_value_release(y);
  xlac_value_release(x);
  xlac_module_destroy(module);
  return 0;
}
