/* Programs on 8 devices under many callers, for ThreadSanitizer: each program of the arguments (MLIR, arrays of f32 of
 * up to 1,048,576 elements) is called by several threads at once, and some calls are interrupted. Exits 0 when all
 * calls give the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlac.h"

enum { CALLERS = 3, CALLS = 6, DEVICES = 8, MOST = 1 << 20, ARGUMENTS = 8 };

typedef struct caller {
  const xlac_executable *exe;
  xlac_value *args[ARGUMENTS];
  uint32_t n_args;
  uint64_t sum;
  bool ok;
} caller;

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = malloc(1 << 20);
  *n = f && text ? fread(text, 1, 1 << 20, f) : 0;
  if (f) fclose(f);
  return text;
}

static xlac_value *argument(const xlac_type *t, uint32_t seed) {
  static float data[MOST];
  xlac_type_info info;
  xlac_value *v = NULL;
  size_t count = 1;
  xlac_type_get(t, &info);
  for (uint32_t d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
  if (count > MOST) return NULL;
  for (size_t i = 0; i < count; i++) data[i] = (float)((seed * 7919 + i * 104729) % 64) / 16;
  return xlac_value_copy(&v, info.dtype, info.rank, info.dims, data, NULL) == 0 ? v : NULL;
}

static uint64_t sum_of(const xlac_value *v) {
  xlac_value_info info;
  uint64_t sum = 1469598103934665603u;
  xlac_value_get(v, &info);
  for (uint32_t i = 0; info.kind == XLAC_VALUE_TUPLE && i < info.n_elements; i++)
    sum = (sum ^ sum_of(xlac_value_element(v, i))) * 1099511628211u;
  for (size_t i = 0; info.kind == XLAC_VALUE_ARRAY && i < info.bytes; i++)
    sum = (sum ^ ((const unsigned char *)info.data)[i]) * 1099511628211u;
  return sum;
}

static bool after_some(void *ctx) {
  return atomic_fetch_add((atomic_int *)ctx, 1) > 4;
}

static void *call_often(void *arg) {
  caller *c = arg;
  c->ok = true;
  for (int i = 0; i < CALLS && c->ok; i++) {
    xlac_value *out = NULL;
    c->ok = xlac_executable_run(c->exe, NULL, c->n_args, c->args, &out, NULL) == 0;
    if (!c->ok) break;
    uint64_t sum = sum_of(out);
    c->ok = i == 0 || sum == c->sum;
    c->sum = sum;
    xlac_value_release(out);
    atomic_int polls = 0;
    const xlac_interpret_options stop = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = after_some,
                                         .interrupt_ctx = &polls};
    out = NULL;
    if (xlac_executable_run(c->exe, &stop, c->n_args, c->args, &out, NULL) == 0) xlac_value_release(out);
  }
  return NULL;
}

static bool run_all(const xlac_executable *exe) {
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  bool ok = true;
  const char *name = NULL;
  for (int i = 0; i < CALLERS; i++) {
    caller *c = &callers[i];
    *c = (caller){.exe = exe};
    const xlac_type *t = NULL;
    while (c->n_args < ARGUMENTS && (t = xlac_executable_param(exe, c->n_args, &name)) != NULL)
      if (!(c->args[c->n_args] = argument(t, c->n_args)))
        return false;
      else
        c->n_args++;
  }
  for (int i = 0; i < CALLERS; i++)
    if (pthread_create(&threads[i], NULL, call_often, &callers[i]) != 0) return false;
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    ok = ok && callers[i].ok && callers[i].sum == callers[0].sum;
    for (uint32_t k = 0; k < callers[i].n_args; k++) xlac_value_release(callers[i].args[k]);
  }
  return ok;
}

/* least: elements for which a device has a thread of its own. */
static int check(const char *path, uint64_t least) {
  size_t n = 0;
  char *text = read_file(path, &n);
  xlac_module *m = NULL;
  xlac_executable *exe = NULL;
  xlac_error err = {.code = 0};
  const xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .threads = 2, .no_blas = true,
                                        .n_devices = DEVICES, .async_work = least};
  bool ok = text && xlac_module_parse(&m, text, n, NULL, &err) == 0 && xlac_compile(m, &options, &exe, &err) == 0 &&
            run_all(exe);
  if (!ok) printf("%s: %s\n", path, err.code ? err.message : "calls differ");
  xlac_executable_destroy(exe);
  xlac_module_destroy(m);
  free(text);
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++) failed += check(argv[i], 0) + check(argv[i], 1);
  return failed != 0;
}
