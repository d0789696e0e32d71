/* xlac in a C program. Compile with the library's own sources, nothing else is needed:
 *   cc -std=gnu11 -O2 -Icsrc/include docs/embed.c $(find csrc -name '*.c' -not -path 'csrc/py/*') -lm -lpthread -o
 * embed */
#include <stdio.h>
#include <string.h>

#include "xlac.h"

static const char program[] =
    "HloModule axpy\n"
    "ENTRY main {\n"
    "  a = f32[] parameter(0)\n"
    "  x = f32[4] parameter(1)\n"
    "  b = f32[4] broadcast(a), dimensions={}\n"
    "  ROOT y = f32[4] multiply(b, x)\n"
    "}\n";

int main(void) {
  xlac_error err;
  xlac_module *m = NULL;
  xlac_value *args[2] = {NULL, NULL}, *y = NULL;
  const float a = 1.5f, x[4] = {1, 2, 3, 4};
  const int64_t dims[1] = {4};
  const uint32_t f32 = xlac_dtype_from_text("f32");
  int failed = xlac_module_parse(&m, program, strlen(program), NULL, &err) ||
               xlac_value_lend(&args[0], f32, 0, NULL, &a, NULL, NULL, &err) ||
               xlac_value_lend(&args[1], f32, 1, dims, x, NULL, NULL, &err) ||
               xlac_interpret(m, NULL, 2, args, &y, &err);
  if (failed) fprintf(stderr, "%u:%u: %s\n", (unsigned)err.line, (unsigned)err.col, err.message);
  xlac_value_info info = {0};
  if (!failed) xlac_value_get(y, &info);
  for (int64_t i = 0; i < info.count; i++) printf("%g\n", ((const float *)info.data)[i]);
  xlac_value_release(y);
  xlac_value_release(args[0]);
  xlac_value_release(args[1]);
  xlac_module_destroy(m);
  return failed ? 1 : 0;
}
