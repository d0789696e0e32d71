/* One program through all engines: what the interpreter gives, the compiled program gives, and so does one that was
 * serialized and loaded again; what one refuses, all refuse. */
#include "fuzz.h"

enum { MOST_POLLS = 2 };

/* Asked every 50 ms or so: nothing runs for long. */
static bool has_run_enough(void *ctx) {
  return ++*(int *)ctx > MOST_POLLS;
}

typedef struct engine_result {
  int status;
  xlac_error err;
  xlac_value *value;
} engine_result;

static bool has_code(const engine_result *r, const char *name) {
  return r->status != 0 && strcmp(xlac_error_name(r->err.code), name) == 0;
}

/* Errors that depend on how fast and how large the machine is. */
static bool is_of_machine(const engine_result *r) {
  return has_code(r, "INTERRUPTED") || has_code(r, "OUT_OF_MEMORY") || has_code(r, "TOO_LARGE");
}

static xlac_runtime *runtime_of_fuzzer(void) {
  static xlac_runtime *runtime;
  xlac_error err = {0};
  if (!runtime && xlac_runtime_create(&runtime, &err) != 0) fuzz_report("no runtime", &err);
  return runtime;
}

static engine_result interpret(xlac_module *m, const fuzz_arguments *args) {
  int polls = 0;
  engine_result r = {0};
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = has_run_enough,
                                    .interrupt_ctx = &polls, .seed = 7};
  r.status = xlac_interpret(m, &options, args->n, args->values, &r.value, &r.err);
  fuzz_failed(r.status, &r.err);
  return r;
}

static engine_result call(const xlac_executable *exe, const fuzz_arguments *args) {
  int polls = 0;
  engine_result r = {0};
  xlac_interpret_options options = {XLAC_OPTIONS(xlac_interpret_options), .interrupted = has_run_enough,
                                    .interrupt_ctx = &polls, .seed = 7};
  r.status = xlac_executable_run(exe, &options, args->n, args->values, &r.value, &r.err);
  fuzz_failed(r.status, &r.err);
  return r;
}

static engine_result compile_and_call(xlac_module *m, const xlac_compile_options *options, const fuzz_arguments *args) {
  engine_result r = {0};
  xlac_executable *exe = NULL;
  r.status = xlac_compile(m, options, &exe, &r.err);
  if (fuzz_failed(r.status, &r.err)) return r;
  r = call(exe, args);
  xlac_executable_destroy(exe);
  return r;
}

/* Whether the program gives another result each time it runs, or talks to others. */
static bool is_its_own(xlac_module *m) {
  for (xlac_computation *c = xlac_computation_next(m, NULL); c; c = xlac_computation_next(m, c)) {
    for (xlac_op *op = xlac_op_next(m, c, NULL); op; op = xlac_op_next(m, c, op)) {
      xlac_op_info info;
      xlac_opcode_info opcode;
      xlac_op_get(m, op, &info);
      if (!xlac_opcode_get(xlac_opcode_from_text(info.opcode), &opcode)) continue;
      if (opcode.nondeterministic) return false;
    }
  }
  return true;
}

/* --- judging --- */

/* Whether floats that differ in their last places change the interpreter's own result as much: then the program says
 * nothing about the engines. */
static bool is_chaotic(xlac_module *m, const fuzz_arguments *args, const engine_result *want) {
  fuzz_arguments shaken;
  bool chaotic = false;
  for (uint32_t i = 0; i < args->n; i++) /* in another order infinities meet elsewhere */
    if (!fuzz_is_finite(args->values[i])) return true;
  if (fuzz_shake_arguments(args, &shaken)) {
    engine_result other = interpret(m, &shaken);
    chaotic = other.status != 0 || fuzz_compare(want->value, other.value, FUZZ_NUMBERS) != NULL;
    xlac_value_release(other.value);
  }
  fuzz_free_arguments(&shaken);
  return chaotic;
}

/* Whether any value is quantised: such arithmetic is float arithmetic, though its results are integers. */
static bool is_quantised(xlac_module *m) {
  const xlac_print_options plain = {.struct_size = sizeof plain};
  char *text = NULL;
  size_t n = 0;
  xlac_error err;
  bool found = xlac_module_print(m, &plain, &text, &n, &err) == 0 && strstr(text, "!quant.uniform");
  xlac_free(text);
  return found;
}

static void judge_values(xlac_module *m, const fuzz_arguments *args, const engine_result *want,
                         const engine_result *got) {
  const char *what = fuzz_compare(want->value, got->value, FUZZ_NUMBERS);
  fuzz_counts[FUZZ_COMPARED]++;
  if (!what || (is_quantised(m) && !fuzz_compare(want->value, got->value, FUZZ_STEPS))) return;
  if (is_chaotic(m, args, want)) {
    fuzz_counts[FUZZ_CHAOTIC]++;
    return;
  }
  char text[128];
  snprintf(text, sizeof text, "interpreted and compiled differ: %s", what);
  fuzz_report(text, NULL);
}

/* A compiled program may leave out what fails and is not used; as it is written, it fails as the interpreter does. */
static void judge_refusal(xlac_module *m, const fuzz_arguments *args, const engine_result *want) {
  xlac_compile_options plain = {
      XLAC_OPTIONS(xlac_compile_options), .threads = 1, .no_passes = true, .no_fusion = true, .no_blas = true,
      .runtime = runtime_of_fuzzer()};
  engine_result got = compile_and_call(m, &plain, args);
  if (got.status == 0) fuzz_report("the interpreter refuses what runs compiled", &want->err);
}

static void judge(xlac_module *m, const fuzz_arguments *args, const engine_result *want, const engine_result *got) {
  if (is_of_machine(want) || is_of_machine(got)) return;
  if (has_code(got, "VERIFY_ALIAS")) return; /* only who compiles looks at an argument's tf.aliasing_output */
  if (want->status == 0 && got->status == 0) {
    judge_values(m, args, want, got);
  } else if (want->status == 0) {
    fuzz_report("compiled fails what the interpreter runs", &got->err);
  } else if (got->status == 0) {
    judge_refusal(m, args, want);
  } else {
    fuzz_counts[FUZZ_BOTH_REFUSE]++;
  }
}

/* --- what else an executable can do --- */

static void describe(xlac_executable *exe, uint64_t *state) {
  xlac_error err = {0};
  char *text = NULL;
  if (xlac_executable_check(exe, &err) != 0) fuzz_report("the plan is wrong", &err);
  if (fuzz_below(state, 4) != 0) return;
  int (*const texts[])(const xlac_executable *, char **, size_t *, xlac_error *) = {
      xlac_executable_fusion, xlac_executable_report, xlac_executable_plan, xlac_executable_kernels};
  if (!fuzz_failed(texts[fuzz_below(state, 4)](exe, &text, NULL, &err), &err)) xlac_free(text);
}

/* What is loaded gives the same bits. */
static void reload(xlac_executable *exe, const fuzz_arguments *args, const engine_result *want) {
  xlac_error err = {0};
  char *bytes = NULL;
  size_t n = 0;
  xlac_executable *again = NULL;
  xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options), .runtime = runtime_of_fuzzer()};
  if (fuzz_failed(xlac_executable_serialize(exe, &bytes, &n, &err), &err)) return; /* some have no bytes */
  if (xlac_executable_load(bytes, n, &options, &again, &err) != 0)
    fuzz_report("an executable's bytes don't load", &err);
  engine_result got = call(again, args);
  if (!is_of_machine(want) && !is_of_machine(&got)) {
    if ((want->status != 0) != (got.status != 0)) fuzz_report("a loaded executable ends otherwise", &got.err);
    if (got.status == 0 && fuzz_compare(want->value, got.value, FUZZ_BITS))
      fuzz_report("a loaded executable gives something else", NULL);
  }
  xlac_value_release(got.value);
  xlac_executable_destroy(again);
  xlac_free(bytes);
}

static void run_compiled(xlac_module *m, const fuzz_arguments *args, uint64_t *state, const engine_result *want) {
  xlac_compile_options options = {XLAC_OPTIONS(xlac_compile_options),
                                  .threads = 1 + fuzz_below(state, 2),
                                  .no_passes = fuzz_below(state, 4) == 0,
                                  .no_fusion = fuzz_below(state, 4) == 0,
                                  .no_blas = true,
                                  .runtime = runtime_of_fuzzer()};
  engine_result got = {0};
  xlac_executable *exe = NULL;
  bool own = is_its_own(m);
  got.status = xlac_compile(m, &options, &exe, &got.err);
  if (!fuzz_failed(got.status, &got.err)) {
    describe(exe, state);
    got = call(exe, args);
  }
  if (own) judge(m, args, want, &got);
  if (exe && own && fuzz_below(state, 3) == 0) reload(exe, args, &got);
  xlac_executable_destroy(exe);
  xlac_value_release(got.value);
}

/* Whether sizes of arguments are known at run time only. */
static bool has_sizes_of_its_own(xlac_module *m) {
  xlac_computation *c = xlac_module_entry(m);
  for (uint32_t i = 0; c && i < xlac_computation_param_count(m, c); i++) {
    xlac_op_info op;
    xlac_type_info t;
    xlac_op *param = xlac_computation_param(m, c, i);
    if (!param) return false;
    xlac_op_get(m, param, &op);
    if (!op.type) continue;
    xlac_type_get(op.type, &t);
    for (uint32_t d = 0; t.dynamic && d < t.rank; d++)
      if (t.dynamic[d]) return true;
  }
  return false;
}

static void run_once(xlac_module *m, bool apart, uint64_t *state) {
  fuzz_arguments args;
  if (!fuzz_draw_arguments(m, apart, state, &args)) return;
  fuzz_counts[FUZZ_INTERPRETED]++;
  engine_result want = interpret(m, &args);
  run_compiled(m, &args, state, &want);
  xlac_value_release(want.value);
  fuzz_free_arguments(&args);
}

void fuzz_run_engines(xlac_module *m, uint64_t *state) {
  run_once(m, false, state);
  if (has_sizes_of_its_own(m)) run_once(m, true, state);
}
