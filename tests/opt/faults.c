/* Runs the pipeline named first on the programs, StableHLO or HLO, named after it, with an allocator whose n-th request fails
 * once the program is read, for n = 0, 1, 2, ... until a run gets through. Each failed run must say OUT_OF_MEMORY and
 * leave nothing allocated. */
#include <stdio.h>
#include <stdlib.h>

#include "../../csrc/opt/pass.h"
#include "../../csrc/stablehlo/stablehlo.h"
#include "../../csrc/text/mlir.h"
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

static int read_program(ir_module **m, const char *text, size_t n, base_alloc alloc, xlac_error *err) {
  mlir_parse_options mlir = {.alloc = alloc, .allow_unregistered = true};
  text_parse_options hlo = {.alloc = alloc};
  if (n > 9 && memcmp(text, "HloModule", 9) == 0) {
    TRY(text_parse_hlo(m, text, n, &hlo, err));
    return ir_verify(*m, NULL, err);
  }
  TRY(text_parse_mlir(m, text, n, &mlir, err));
  return stablehlo_verify(*m, err);
}

static long run_until_it_works(const char *pipeline, const char *text, size_t n) {
  for (long fails_at = 0;; fails_at++) {
    faulty f = {1L << 60, 0};
    opt_pipeline_options each = {.verify_each = true};
    ir_module *m = NULL;
    xlac_error err = {0};
    if (read_program(&m, text, n, (base_alloc){faulty_call, &f}, &err))
      return fprintf(stderr, "%u:%u: %s\n", err.line, err.col, err.message), -1;
    f.left = fails_at;
    int status = opt_run_pipeline(m, pipeline, strlen(pipeline), &each, &err);
    ir_module_destroy(m);
    if (f.live) return fprintf(stderr, "%ld blocks left after failure %ld\n", f.live, fails_at), -1;
    if (status == 0) return fails_at;
    if (status != -XLAC_E_OUT_OF_MEMORY) return fprintf(stderr, "failure %ld: %s\n", fails_at, err.message), -1;
  }
}

int main(int argc, char **argv) {
  static char text[1 << 20];
  for (int i = 2; i < argc; i++) {
    FILE *file = fopen(argv[i], "rb");
    if (!file) return 2;
    size_t n = fread(text, 1, sizeof text, file);
    fclose(file);
    long runs = run_until_it_works(argv[1], text, n);
    if (runs < 0) return 1;
    printf("%ld\n", runs);
  }
  return 0;
}
