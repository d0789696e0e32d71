/* Whole executables with async work under many callers, for ThreadSanitizer: the program of the first argument, on
 * lanes as the second says, called by several threads at once; some calls are interrupted, some executables are
 * destroyed right after. Prints sums of the results' bytes; exits 0 when all calls give the same. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlac.h"

enum { CALLERS = 3, CALLS = 4 };

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  char *text = malloc(1 << 20);
  *n = f && text ? fread(text, 1, 1 << 20, f) : 0;
  if (f) fclose(f);
  return text;
}

/* f32 arrays of small numbers. */
static xlac_value *argument(const xlac_type *t, uint32_t seed) {
  xlac_type_info info;
  xlac_value *v = NULL;
  float data[1024];
  size_t count = 1;
  xlac_type_get(t, &info);
  for (uint32_t d = 0; d < info.rank; d++) count *= (size_t)info.dims[d];
  if (count > 1024) return NULL;
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

typedef struct caller {
  const xlac_executable *exe;
  xlac_value *args[16];
  uint32_t n_args;
  uint64_t sum;
  bool ok;
} caller;

static bool after_some(void *ctx) {
  return atomic_fetch_add((atomic_int *)ctx, 1) > 0;
}

static void *call_often(void *arg) {
  caller *c = arg;
  c->ok = true;
  for (int i = 0; i < CALLS; i++) {
    xlac_value *out = NULL;
    if (xlac_executable_run(c->exe, NULL, c->n_args, c->args, &out, NULL) != 0) return c->ok = false, NULL;
    uint64_t sum = sum_of(out);
    c->ok = c->ok && (i == 0 || sum == c->sum);
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

static bool run_all(const xlac_executable *exe, uint64_t *sum) {
  static caller callers[CALLERS];
  pthread_t threads[CALLERS];
  bool ok = true;
  const char *name = NULL;
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (caller){.exe = exe};
    const xlac_type *t = NULL;
    while ((t = xlac_executable_param(exe, callers[i].n_args, &name)) != NULL) {
      xlac_value *v = argument(t, callers[i].n_args);
      if (!v) return false;
      callers[i].args[callers[i].n_args++] = v;
    }
    if (pthread_create(&threads[i], NULL, call_often, &callers[i]) != 0) return false;
  }
  for (int i = 0; i < CALLERS; i++) {
    pthread_join(threads[i], NULL);
    ok = ok && callers[i].ok && callers[i].sum == callers[0].sum;
    for (uint32_t k = 0; k < callers[i].n_args; k++) xlac_value_release(callers[i].args[k]);
  }
  *sum = callers[0].sum;
  return ok;
}

/* 0, or 1 with a line that says what is wrong. */
static int check(const char *path, xlac_runtime *rt) {
  static const xlac_lane two[] = {{"", 1}, {"lane", 2}}, none[] = {{"", 0}},
                         four[] = {{"", 1}, {"", 1}, {"", 1}, {"", 1}};
  static const xlac_lane *const lanes[] = {two, none, four};
  static const uint32_t n_lanes[] = {2, 1, 4};
  uint64_t sums[3] = {0};
  size_t n = 0;
  char *text = read_file(path, &n);
  xlac_module *m = NULL;
  xlac_error err = {.code = 0};
  bool ok = text && xlac_module_parse(&m, text, n, NULL, &err) == 0;
  for (int i = 0; ok && i < 3; i++) {
    xlac_executable *exe = NULL;
    const xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options),
                                          .threads = 2,
                                          .no_blas = true,
                                          .runtime = rt,
                                          .lanes = lanes[i],
                                          .n_lanes = n_lanes[i],
                                          .async_work = 1};
    ok = xlac_compile(m, &options, &exe, &err) == 0 && run_all(exe, &sums[i]) && sums[i] == sums[0];
    xlac_executable_destroy(exe);
  }
  if (!ok) printf("%s: %s\n", path, err.message[0] ? err.message : "results differ");
  xlac_module_destroy(m);
  free(text);
  return ok ? 0 : 1;
}

int main(int argc, char **argv) {
  xlac_runtime *rt = NULL;
  int wrong = 0;
  if (xlac_runtime_create(&rt, NULL) != 0) return 1;
  for (int i = 1; i < argc; i++) wrong += check(argv[i], rt);
  xlac_runtime_destroy(rt);
  return wrong != 0;
}
