/* What notes for explanations cost propagation: with them and without, in turn, on the same program in one process.
 *
 *   gcc -std=gnu11 -O2 -DNDEBUG -Icsrc -o explain_cost benchmarks/explain_cost.c -lm -lpthread -ldl
 *   ./explain_cost program.mlir [rounds]
 *
 * Times are of the process, in milliseconds: the least, and the median of the ratios of each round. "propagation" is
 * the pass alone; "pipeline" has what sdy-propagation-pipeline does before and after it too, of which notes cost the
 * less; "told" is the pass alone, but with all records made of its notes, as they are when somebody asks for them. */
#include "../csrc/xlac_all.c"

#include <stdio.h>
#include <time.h>

static const char before_passes[] =
    "sdy-import-pipeline,sdy-flatten-call-graph,symbol-dce,sdy-import-func-calls,symbol-dce,"
    "sdy-apply-sharding-constraints,sdy-sharding-group-import,sdy-pre-order-funcs";
static const char after_passes[] =
    "sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph,"
    "symbol-dce,sdy-insert-func-call-reshards,sdy-export-pipeline";

static double cost_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int cost_by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void cost_check(int status, const xlac_error *err) {
  if (status == 0) return;
  fprintf(stderr, "%s\n", err->message);
  exit(1);
}

static int cost_told(void *ctx, shard_trace *t, const shard_state *s, ir_computation *main, xlac_error *err) {
  (void)t, (void)s, (void)main, (void)err;
  *(bool *)ctx = true;
  return 0;
}

/* One run on a copy: the time of the pass alone, and of all. */
static void cost_run(const ir_module *m, bool notes, bool told, double *pass, double *all) {
  xlac_error err = {0};
  ir_module *copy = NULL;
  shard_trace trace;
  shard_options o = {.strategy = SHARD_AGGRESSIVE, .by_op = true, .by_user = true, .keep_rules = true};
  cost_check(ir_module_clone(&copy, m, &err), &err);
  double start = cost_now();
  cost_check(opt_run_pipeline(copy, before_passes, strlen(before_passes), NULL, &err), &err);
  double at = cost_now();
  shard_trace_init(&trace, base_alloc_libc);
  trace.with_conflicts = true;
  cost_check(shard_propagate_traced(copy, &o, notes ? &trace : NULL, told ? cost_told : NULL, &told, &err), &err);
  *pass = cost_now() - at;
  copy->verified = IR_VERIFIED;
  cost_check(opt_run_pipeline(copy, after_passes, strlen(after_passes), NULL, &err), &err);
  *all = cost_now() - start;
  shard_trace_free(&trace);
  ir_module_destroy(copy);
}

static void cost_tell(const char *what, double *plain, double *noted, double *ratio, int rounds) {
  qsort(plain, (size_t)rounds, sizeof *plain, cost_by_value);
  qsort(noted, (size_t)rounds, sizeof *noted, cost_by_value);
  qsort(ratio, (size_t)rounds, sizeof *ratio, cost_by_value);
  printf("  %-12s %8.3f ms, with notes %8.3f ms: %5.1f %% more; paired median %5.1f %%\n", what, plain[0], noted[0],
         100 * (noted[0] / plain[0] - 1), 100 * (ratio[rounds / 2] - 1));
}

int main(int argc, char **argv) {
  xlac_error err = {0};
  ir_module *m = NULL;
  mlir_parse_options o = {.alloc = base_alloc_libc};
  int rounds = argc > 2 ? atoi(argv[2]) : 41;
  FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
  if (!f || rounds < 1) return fprintf(stderr, "explain_cost program.mlir [rounds]\n"), 2;
  base_text text;
  base_text_init(&text, base_alloc_libc);
  for (int c = getc(f); c != EOF; c = getc(f)) base_putc(&text, (char)c);
  fclose(f);
  cost_check(text_parse_mlir(&m, text.s, text.n, &o, &err), &err);
  cost_check(stablehlo_verify(m, &err), &err);
  double *v = calloc((size_t)rounds * 9, sizeof *v), unused = 0;
  for (int r = 0; v && r < rounds; r++)
    for (int k = 0; k < 2; k++) {
      bool notes = (k + r) % 2;
      cost_run(m, notes, false, &v[(notes ? rounds : 0) + r], &v[(notes ? 3 : 2) * rounds + r]);
      if (notes) cost_run(m, true, true, &v[6 * rounds + r], &unused);
    }
  for (int r = 0; v && r < rounds; r++) {
    v[4 * rounds + r] = v[rounds + r] / v[r];
    v[5 * rounds + r] = v[3 * rounds + r] / v[2 * rounds + r];
    v[7 * rounds + r] = v[r];
    v[8 * rounds + r] = v[6 * rounds + r] / v[r];
  }
  if (!v) return 1;
  printf("%s\n", argv[1]);
  cost_tell("propagation", v, v + rounds, v + 4 * rounds, rounds);
  cost_tell("told", v + 7 * rounds, v + 6 * rounds, v + 8 * rounds, rounds);
  cost_tell("pipeline", v + 2 * rounds, v + 3 * rounds, v + 5 * rounds, rounds);
  free(v);
  ir_module_destroy(m);
  base_text_free(&text);
  return 0;
}
