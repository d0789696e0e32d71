/* Runs the HLO programs named on the command line with an allocator whose n-th request fails, for n = 0, 1, 2, ...
 * until a run gets through. Each failed run must say OUT_OF_MEMORY and leave nothing allocated. Arguments are zeros,
 * ones for floats. */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/interp/interp.h"
#include "../../csrc/text/text.h"

typedef struct faulty {
  long left, live;
} faulty;

static void *faulty_call(void *ctx, void *p, size_t size) {
  faulty *f = ctx;
  if (size == 0) {
    f->live--;
    free(p);
    return NULL;
  }
  if (f->left-- <= 0) return NULL;
  void *fresh = realloc(p, size);
  if (!p && fresh) f->live++;
  return fresh;
}

static char *read_file(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  if (!f) exit(2);
  char *text = malloc(1 << 20);
  *n = fread(text, 1, 1 << 20, f);
  fclose(f);
  return text;
}

static interp_value *argument(const ir_type *t) {
  size_t bytes = (size_t)ir_type_bytes(t);
  void *data = calloc(bytes + 1, 1);
  for (int64_t i = 0; i < t->count; i++)
    base_store_f64(t->dtype, (char *)data + (size_t)i * base_dtype_bytes(t->dtype), 1);
  return interp_lend(base_alloc_libc, t->dtype, t->rank, t->dims, data, free, data);
}

static int run_once(ir_module *m, interp_value **args, long fails_at, xlac_error *err, long *live) {
  faulty f = {fails_at, 0};
  interp_options options = {.alloc = {faulty_call, &f}};
  interp_value *out = NULL;
  int status = interp_run(m, &options, m->entry->n_params, args, &out, err);
  interp_release(out);
  *live = f.live;
  return status;
}

static long run_until_it_works(const char *path) {
  size_t n;
  char *text = read_file(path, &n);
  ir_module *m;
  xlac_error err;
  text_parse_options options = {.alloc = base_alloc_libc};
  if (text_parse_hlo(&m, text, n, &options, &err) || ir_verify(m, NULL, &err)) {
    fprintf(stderr, "%s: %u:%u: %s\n", path, err.line, err.col, err.message);
    exit(2);
  }
  interp_value *args[16];
  for (uint32_t i = 0; i < m->entry->n_params; i++) args[i] = argument(m->entry->params[i]->type);
  long fails_at = 0, live = 0;
  for (;; fails_at++) {
    int status = run_once(m, args, fails_at, &err, &live);
    if (live != 0) fprintf(stderr, "%s: %ld blocks left after failing request %ld\n", path, live, fails_at), exit(1);
    if (status == 0) break;
    if (err.code != XLAC_E_OUT_OF_MEMORY) fprintf(stderr, "%s: %s\n", path, err.message), exit(1);
  }
  for (uint32_t i = 0; i < m->entry->n_params; i++) interp_release(args[i]);
  ir_module_destroy(m);
  free(text);
  return fails_at;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) printf("%s %ld\n", argv[i], run_until_it_works(argv[i]));
  return 0;
}
