/* The compile line, straight down. */
#include "compile.h"

#include <time.h>

#include "../base/heed.h"
#include "../ir/verify/verify.h"
#include "../passes/quant/quantised_expander.h"
#include "prepare.h"

typedef struct compile_line {
  const driver_options *options;
  driver_times *times; /* or NULL */
  double began;        /* the stage that is going on */
  xlac_error *err;
} compile_line;

static double line_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void line_time(compile_line *x, driver_stage stage) {
  double now = line_now();
  if (x->times) x->times->stage[stage] = now - x->began;
  x->began = now;
}

/* A stage is over: its time, and a look at what it left. */
static int line_end(compile_line *x, driver_stage stage, ir_module *m) {
  line_time(x, stage);
  return x->options->look ? x->options->look(x->options->ctx, stage, m, x->err) : 0;
}

static int line_prepare(compile_line *x, ir_module *m) {
  const ir_verify_options lenient = {.xla_compat = true};
  if (x->options->edit) TRY(x->options->edit(x->options->ctx, m, x->err));
  TRY(opt_expand_quantised(m, x->err));
  return ir_verify(m, &lenient, x->err);
}

static int line_optimise(compile_line *x, ir_module *m) {
  return x->options->no_passes ? 0 : driver_run_passes(m, x->options, x->err);
}

/* From the copy to what can be planned. */
static int line_make_ready(compile_line *x, ir_module *m) {
  TRY(line_end(x, DRIVER_TRANSLATED, m));
  TRY(line_prepare(x, m));
  TRY(line_end(x, DRIVER_PREPARED, m));
  TRY(line_optimise(x, m));
  return line_end(x, DRIVER_OPTIMISED, m);
}

/* Takes m, also on failure. */
static int line_finish(compile_line *x, ir_module *m, cpu_executable **out) {
  int status = line_make_ready(x, m);
  if (status) {
    ir_module_destroy(m);
    return status;
  }
  TRY(cpu_compile(out, m, &x->options->cpu, x->err));
  if (base_heed_stopped()) { /* what there was no memory for may be missing where it is not needed */
    cpu_executable_free(*out);
    return base_interrupted(x->err);
  }
  line_time(x, DRIVER_PLANNED);
  return 0;
}

int driver_finish(ir_module *translated, const driver_options *options, driver_times *times, cpu_executable **out,
                  xlac_error *err) {
  compile_line x = {.options = options, .times = times, .began = line_now(), .err = err};
  return line_finish(&x, translated, out);
}

int driver_compile(ir_module *m, const driver_options *options, driver_times *times, cpu_executable **out,
                   xlac_error *err) {
  compile_line x = {.options = options, .times = times, .began = line_now(), .err = err};
  ir_module *copy = NULL;
  TRY(driver_translate(m, &copy, err));
  return line_finish(&x, copy, out);
}
