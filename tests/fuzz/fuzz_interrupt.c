/* Fuzzes interrupts: whatever a program is, and however large its arrays, whoever calls is asked soon whether to go on.
 * A stage is stopped at the first question after a while; the longest CPU time between two questions is what is judged.
 * Drivers as in fuzz_reader.c. */
#include <ctype.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Seconds of CPU, under the sanitizers: without them a tenth of it. */
static const double first_stop = 0.02, longest_silence = 3;

typedef struct watch_state {
  double begin, last;
} watch_state;

static watch_state watch_now;

/* Of our own: pages that the system makes are not counted. */
static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)used.ru_utime.tv_sec + (double)used.ru_utime.tv_usec * 1e-6;
}

static void judge_silence(const char *stage) {
  double now = cpu_seconds(), silence = now - watch_now.last;
  char text[128];
  watch_now.last = now;
  if (silence < longest_silence) return;
  snprintf(text, sizeof text, "%s goes on for %.1f s without being asked", stage, silence);
  fuzz_report(text, NULL);
}

static bool has_had_enough(void *stage) {
  judge_silence(stage);
  return watch_now.last - watch_now.begin > first_stop;
}

static void begin_stage(const char *stage) {
  watch_now.begin = watch_now.last = cpu_seconds();
  xlac_set_interrupt((xlac_interrupt){.interrupted = has_had_enough, .ctx = (void *)(uintptr_t)stage});
}

static void end_stage(const char *stage) {
  xlac_set_interrupt((xlac_interrupt){0});
  judge_silence(stage);
}

static void fold(xlac_module *m) {
  xlac_error err = {0};
  xlac_module *copy = NULL;
  if (xlac_module_clone(&copy, m, &err) != 0) return;
  begin_stage("constant-folding");
  fuzz_failed(xlac_module_run(copy, "constant-folding,inline-calls", NULL, &err), &err);
  end_stage("constant-folding");
  xlac_module_destroy(copy);
}

static void call_compiled(xlac_module *m, const fuzz_arguments *args) {
  static char stage[] = "a compiled program";
  xlac_error err = {0};
  xlac_executable *exe = NULL;
  xlac_value *value = NULL;
  xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .threads = 1, .no_passes = true};
  begin_stage("compiling");
  int status = xlac_compile(m, &options, &exe, &err);
  end_stage("compiling");
  if (fuzz_failed(status, &err)) return;
  xlac_interpret_options run = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = has_had_enough,
                                .interrupt_ctx = stage};
  begin_stage(stage);
  fuzz_failed(xlac_executable_run(exe, &run, args->n, args->values, &value, &err), &err);
  end_stage(stage);
  xlac_value_release(value);
  xlac_executable_destroy(exe);
}

static void call_interpreter(xlac_module *m, const fuzz_arguments *args) {
  static char stage[] = "the interpreter";
  xlac_error err = {0};
  xlac_value *value = NULL;
  xlac_interpret_options run = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = has_had_enough,
                                .interrupt_ctx = stage};
  begin_stage(stage);
  fuzz_failed(xlac_interpret(m, &run, args->n, args->values, &value, &err), &err);
  end_stage(stage);
  xlac_value_release(value);
}

static void run_all(xlac_module *m, uint64_t *state) {
  fuzz_arguments args;
  fold(m);
  if (!fuzz_draw_arguments(m, false, state, &args)) return;
  call_interpreter(m, &args);
  call_compiled(m, &args);
  fuzz_free_arguments(&args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  xlac_error err = {0};
  xlac_module *m = NULL;
  uint64_t state = fuzz_hash(data, size);
  xlac_parse_options parse = {XLAC_OPTIONS(xlac_parse_options), .format = XLAC_FORMAT_HLO};
  xlac_verify_options verify = {XLAC_OPTIONS(xlac_verify_options), .xla_compat = true};
  begin_stage("parsing");
  int status = xlac_module_parse(&m, (const char *)data, size, &parse, &err);
  end_stage("parsing");
  if (fuzz_failed(status, &err)) return 0;
  fuzz_counts[FUZZ_PARSED]++;
  begin_stage("verifying");
  status = xlac_module_verify(m, &verify, &err);
  end_stage("verifying");
  if (!fuzz_failed(status, &err)) {
    fuzz_counts[FUZZ_VERIFIED]++;
    run_all(m, &state);
  }
  xlac_module_destroy(m);
  return 0;
}

/* --- large sizes --- */

static size_t number_end(const fuzz_file *f, size_t at) {
  while (at < f->n && isdigit(f->data[at])) at++;
  return at;
}

/* A number of two digits or more, wherever it stands, becomes a large one, or one of each pair a power of two that fits
 * the others: the program often stays a valid one. */
static void fuzz_enlarge(fuzz_file *buf, const fuzz_file *other, uint64_t *state) {
  char old[24] = "", large[24];
  for (int tries = 0; tries < 40 && !old[0] && buf->n; tries++) {
    size_t at = fuzz_random(state) % buf->n, end = number_end(buf, at);
    bool begins = at == 0 || strchr("[,=x{(<", buf->data[at - 1]);
    if (begins && end > at + 1 && end - at < sizeof old) memcpy(old, buf->data + at, end - at);
  }
  if (!old[0]) {
    fuzz_mutate_text(buf, other, state);
    return;
  }
  int length = snprintf(large, sizeof large, "%llu", 1ull << (16 + fuzz_below(state, 15)));
  size_t n = strlen(old);
  for (size_t at = 0; at + n <= buf->n; at++) {
    bool whole = memcmp(buf->data + at, old, n) == 0 && number_end(buf, at) == at + n &&
                 (at == 0 || !(isalnum(buf->data[at - 1]) || buf->data[at - 1] == '.'));
    if (!whole) continue;
    fuzz_splice(buf, at, n, large, (size_t)length);
    at += (size_t)length;
  }
}

#ifdef FUZZ_MAIN
#define FUZZ_RUNS 60
#define FUZZ_MUTATE fuzz_enlarge
#define FUZZ_PREPARE fuzz_take_hlo
#include "driver.h"
#endif
