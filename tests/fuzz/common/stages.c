/* A program through every stage there is. */
#define _GNU_SOURCE
#include <sys/time.h>
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

enum { MOST_SECONDS = 30 }; /* of CPU time for one input, under the sanitizers */

uint64_t fuzz_counts[FUZZ_COUNTS];

void fuzz_print_counts(void) {
  static const char *const names[FUZZ_COUNTS] = {"read",        "verified", "translated",    "pipelines",
                                                 "interpreted", "compared", "refused alike", "chaotic"};
  if (fuzz_counts[FUZZ_PARSED] == 0) return; /* a fuzzer with stages of its own */
  for (int i = 0; i < FUZZ_COUNTS; i++)
    printf("%s%s %llu", i ? ", " : "  of them ", names[i], (unsigned long long)fuzz_counts[i]);
  printf("\n");
}

/* The sanitizers' limits: a request for more memory than a run may need is one that fails. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}

static void took_too_long(int signal) {
  static const char text[] = "finding: an input takes too long\n";
  (void)signal;
  if (write(2, text, sizeof text - 1)) abort();
  abort();
}

static void watch(void) {
  static bool watched;
  struct itimerval limit = {.it_value = {.tv_sec = MOST_SECONDS}};
  if (!watched) signal(SIGPROF, took_too_long);
  watched = true;
  setitimer(ITIMER_PROF, &limit, NULL);
}

/* --- reading and writing --- */

typedef struct stage_text {
  char *s;
  size_t n;
} stage_text;

static bool same_text(const stage_text *a, const stage_text *b) {
  return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
}

static xlac_module *read_back(const stage_text *t, int32_t format, bool own, const char *what) {
  xlac_error err = {0};
  xlac_module *m = NULL;
  xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .format = format, .allow_unregistered = own};
  if (fuzz_failed(xlac_module_parse(&m, t->s, t->n, &options, &err), &err)) {
    fprintf(stderr, "%.*s\n", t->n > 4000 ? 4000 : (int)t->n, t->s);
    fuzz_report(what, &err);
  }
  return m;
}

static stage_text print_as(xlac_module *m, const xlac_print_options *options) {
  xlac_error err = {0};
  stage_text t = {0};
  if (fuzz_failed(xlac_module_print(m, options, &t.s, &t.n, &err), &err)) fuzz_report("the print fails", &err);
  return t;
}

static xlac_opcode_info opcode_of(const char *name) {
  xlac_opcode_info info = {0};
  xlac_opcode_get(xlac_opcode_from_text(name), &info);
  return info;
}

/* Wrapped ops without a text of their own are printed as XLA prints them, which it does not read
 * (docs/xla-differences.md).
 */
static bool has_newer_op(xlac_module *m) {
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c)) {
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op)) {
      xlac_op_info info;
      xlac_op_get(m, op, &info);
      if (opcode_of(info.opcode).newer) return true;
    }
  }
  return false;
}

/* XLA numbers source tables anew at each print, and so does xlac. */
static bool has_tables(const stage_text *t) {
  return memmem(t->s, t->n, "StackFrames", 11) != NULL;
}

/* MLIR reads symbols without a character, and prints what it does not read (tests/text/test_mlir_printer.py). */
static bool has_empty_symbol(const stage_text *t) {
  static const char symbol[] = "@<<INVALID EMPTY SYMBOL>>";
  return memmem(t->s, t->n, symbol, sizeof symbol - 1) != NULL;
}

/* What is printed reads back, and prints the same from the second time on. */
static void check_print(xlac_module *m, const xlac_print_options *options) {
  int32_t format = xlac_module_is_mlir(m) ? XLAC_FORMAT_MLIR : XLAC_FORMAT_HLO;
  stage_text texts[3] = {print_as(m, options)};
  if (format == XLAC_FORMAT_MLIR ? !has_empty_symbol(&texts[0]) : !has_newer_op(m)) {
    for (int i = 1; i < 3; i++) {
      xlac_module *again = read_back(&texts[i - 1], format, true, "the print does not read back");
      texts[i] = print_as(again, options);
      xlac_module_destroy(again);
    }
    if (!same_text(&texts[1], &texts[2]) && !has_tables(&texts[1])) {
      fprintf(stderr, "%.*s\n----\n%.*s\n", texts[1].n > 4000 ? 4000 : (int)texts[1].n, texts[1].s,
              texts[2].n > 4000 ? 4000 : (int)texts[2].n, texts[2].s);
      fuzz_report("print, read, print differs", NULL);
    }
  }
  for (int i = 0; i < 3; i++) xlac_free(texts[i].s);
}

/* The other ways to print need not read back. */
static void print_otherwise(xlac_module *m, uint64_t *state) {
  xlac_print_options options = {XLAC_OPTIONS(xlac_print_options),
                                .mode = (int32_t)fuzz_below(state, 4),
                                .elide_large_constants = fuzz_below(state, 2),
                                .operand_shapes = fuzz_below(state, 2),
                                .no_metadata = fuzz_below(state, 2),
                                .no_ids = fuzz_below(state, 2),
                                .indent = fuzz_below(state, 3),
                                .generic = fuzz_below(state, 2),
                                .locations = fuzz_below(state, 2)};
  stage_text t = print_as(m, &options);
  xlac_free(t.s);
}

static bool write_bytes(xlac_module *m, stage_text *t) {
  xlac_error err = {0};
  int status = xlac_module_is_mlir(m) ? xlac_module_write_artifact(m, "1.20.0", &t->s, &t->n, &err)
                                      : xlac_module_serialize(m, XLAC_FORMAT_HLO_PROTO, &t->s, &t->n, &err);
  return !fuzz_failed(status, &err);
}

/* What is written reads, and is written the same from the second time on. Some programs have no bytes; those of
 * programs that are not verified need not read. */
static void check_bytes(xlac_module *m, bool verified) {
  int32_t format = xlac_module_is_mlir(m) ? XLAC_FORMAT_MLIR_BYTECODE : XLAC_FORMAT_HLO_PROTO;
  stage_text texts[3] = {{0}};
  if (!write_bytes(m, &texts[0])) return;
  if (!verified) {
    xlac_error err = {0};
    xlac_module *again = NULL;
    xlac_parse_options options = {XLAC_OPTIONS(xlac_parse_options), .format = format};
    if (!fuzz_failed(xlac_module_parse(&again, texts[0].s, texts[0].n, &options, &err), &err))
      xlac_module_destroy(again);
    xlac_free(texts[0].s);
    return;
  }
  for (int i = 1; i < 3; i++) {
    xlac_module *again = read_back(&texts[i - 1], format, true, "what was written does not read");
    if (!write_bytes(again, &texts[i])) fuzz_report("what was written and read does not write", NULL);
    xlac_module_destroy(again);
  }
  if (!same_text(&texts[1], &texts[2])) fuzz_report("write, read, write differs", NULL);
  for (int i = 0; i < 3; i++) xlac_free(texts[i].s);
}

/* --- verification --- */

static int verify_as(xlac_module *m, bool lenient, xlac_error *err) {
  xlac_verify_options options = {XLAC_OPTIONS(xlac_verify_options), .xla_compat = lenient};
  *err = (xlac_error){0};
  return xlac_module_verify(m, &options, err);
}

/* The same question gets the same answer; what the strict verifier accepts, the lenient one accepts. */
static bool check_verifier(xlac_module *m, bool positions, bool *strictly) {
  xlac_error strict, again, lenient;
  int status = verify_as(m, false, &strict);
  if (status != verify_as(m, false, &again) || memcmp(&strict, &again, sizeof strict) != 0)
    fuzz_report("two answers", &again);
  int loose = verify_as(m, true, &lenient);
  if (status == 0 && loose != 0) fuzz_report("strict is more lenient than lenient", &lenient);
  if (fuzz_failed(status, &strict) && positions && strict.line == 0) fuzz_report("an error without position", &strict);
  fuzz_failed(loose, &lenient);
  *strictly = status == 0;
  return loose == 0;
}

/* --- translation --- */

static xlac_module *translate(xlac_module *m, bool to_hlo, xlac_error *err) {
  xlac_module *out = NULL;
  *err = (xlac_error){0};
  int status = to_hlo ? xlac_module_to_hlo(&out, m, err) : xlac_module_to_stablehlo(&out, m, err);
  return fuzz_failed(status, err) ? NULL : out;
}

/* What a program that was accepted is translated to is accepted too, prints, and reads back. */
static void check_translated(xlac_module *m) {
  xlac_error err;
  if (verify_as(m, true, &err) != 0) {
    stage_text t = print_as(m, NULL);
    fprintf(stderr, "%.*s\n", t.n > 4000 ? 4000 : (int)t.n, t.s);
    fuzz_report("a translated program is not verified", &err);
  }
  check_print(m, NULL);
  fuzz_counts[FUZZ_TRANSLATED]++;
}

static void check_translation(xlac_module *m) {
  xlac_error err;
  bool mlir = xlac_module_is_mlir(m);
  xlac_module *there = translate(m, mlir, &err);
  if (!there) return;
  check_translated(there);
  xlac_module *back = translate(there, !mlir, &err);
  if (!back && !mlir) fuzz_report("what was translated to StableHLO does not come back", &err);
  if (back) check_translated(back);
  xlac_module_destroy(back);
  xlac_module_destroy(there);
}

/* --- passes --- */

static uint32_t pass_count(void) {
  xlac_pass_info info;
  uint32_t n = 0;
  while (xlac_pass_get(n, &info)) n++;
  return n;
}

/* Some passes for modules of this form. */
static void draw_pipeline(char *to, size_t cap, bool mlir, uint64_t *state) {
  static const char *const hlo[] = {"dce",
                                    "cse",
                                    "constant-folding",
                                    "algebraic-simplification",
                                    "reassociate",
                                    "batch-norm-expander",
                                    "while-loop-simplifier",
                                    "while-loop-invariant-code-motion",
                                    "flatten-tuples",
                                    "inline-calls",
                                    "async-wrap",
                                    "async-unwrap",
                                    "async-collective-creator",
                                    "convert-async-pairs",
                                    "convert-async-to-sync",
                                    "latency-hiding-scheduler"};
  size_t n = 0;
  to[0] = 0;
  for (uint32_t left = 1 + fuzz_below(state, 4); left > 0; left--) {
    xlac_pass_info info = {.name = hlo[fuzz_below(state, sizeof hlo / sizeof *hlo)]};
    if (mlir) xlac_pass_get(fuzz_below(state, pass_count()), &info);
    n += (size_t)snprintf(to + n, cap - n, "%s%s", n ? "," : "", info.name);
    if (n >= cap) break;
  }
}

/* A pass may say no, but what it leaves is verified, prints and reads back. */
static void check_pipeline(xlac_module *m, uint64_t *state) {
  xlac_error err = {0};
  xlac_module *copy = NULL;
  char pipeline[512];
  xlac_pipeline_options options = {XLAC_OPTIONS(xlac_pipeline_options), .verify_each = true};
  if (fuzz_failed(xlac_module_clone(&copy, m, &err), &err)) fuzz_report("no copy", &err);
  draw_pipeline(pipeline, sizeof pipeline, xlac_module_is_mlir(m), state);
  int status = xlac_module_run(copy, pipeline, &options, &err);
  if (fuzz_failed(status, &err) && strstr(err.hint, "left the module broken")) {
    fprintf(stderr, "%s\n", pipeline);
    fuzz_report("a pass left the module broken", &err);
  }
  if (status == 0) {
    fuzz_counts[FUZZ_PIPELINES]++;
    check_print(copy, NULL);
  }
  xlac_module_destroy(copy);
}

/* --- all of it --- */

static void ask_for_more(xlac_module *m, uint64_t *state) {
  xlac_error err = {0};
  xlac_stats stats;
  uint64_t fingerprint;
  char *text = NULL;
  xlac_module_stats(m, &stats);
  fuzz_failed(xlac_module_fingerprint(m, &fingerprint, &err), &err);
  if (fuzz_below(state, 4) == 0 && !fuzz_failed(xlac_module_explain_async(m, NULL, &text, NULL, &err), &err))
    xlac_free(text);
}

static void run_verified(xlac_module *m, uint64_t *state) {
  fuzz_counts[FUZZ_VERIFIED]++;
  if (fuzz_below(state, 2) == 0) check_translation(m);
  if (fuzz_below(state, 2) == 0) check_pipeline(m, state);
  if (fuzz_below(state, 8) == 0) ask_for_more(m, state);
  if (fuzz_is_small(m)) fuzz_run_engines(m, state);
}

bool fuzz_run_stages(const void *data, size_t n, const fuzz_stages *options) {
  xlac_error err = {0};
  xlac_module *m = NULL;
  static const uint32_t depths[] = {0, 0, 0, 0, 1, 40, 100000, UINT32_MAX, UINT32_MAX};
  uint64_t state = fuzz_hash(data, n);
  xlac_parse_options parse = {XLAC_OPTIONS(xlac_parse_options), .format = options->format,
                              .allow_unregistered = fuzz_below(&state, 2), .strict = fuzz_below(&state, 2),
                              .max_depth = depths[fuzz_below(&state, sizeof depths / sizeof *depths)]};
  watch();
  if (fuzz_failed(xlac_module_parse(&m, data, n, &parse, &err), &err)) {
    /* No place in the text is to blame for lack of memory, nor for a max_depth that is more than a reader takes. */
    bool placed = err.line != 0 || strcmp(xlac_error_name(err.code), "OUT_OF_MEMORY") == 0 ||
                  (parse.max_depth > 40 && strcmp(xlac_error_name(err.code), "BAD_ARGUMENT") == 0);
    if (options->positions && !placed) fuzz_report("an error without position", &err);
    return false;
  }
  fuzz_counts[FUZZ_PARSED]++;
  fuzz_walk(m);
  check_print(m, NULL);
  if (fuzz_below(&state, 2) == 0) print_otherwise(m, &state);
  if (xlac_module_is_mlir(m) && fuzz_below(&state, 4) == 0)
    check_print(m, &(xlac_print_options){XLAC_OPTIONS(xlac_print_options), .generic = true, .locations = true});
  bool strictly, verified = check_verifier(m, options->positions, &strictly);
  if (fuzz_below(&state, 2) == 0) check_bytes(m, strictly);
  if (verified) run_verified(m, &state);
  xlac_module_destroy(m);
  return true;
}
