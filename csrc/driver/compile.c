/* The compile line, straight down.
 *
 * compile.h has the stages. Ownership runs through all of it: the module is taken by each function in
 * turn, also on failure, until an executable or the interpreter has it. */
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

/* Donors first: they name parameters as the caller knows them. */
static int line_prepare(compile_line *x, ir_module *m) {
  const ir_verify_options lenient = {.xla_compat = true};
  if (x->options->edit) TRY(x->options->edit(x->options->ctx, m, x->err));
  TRY(opt_expand_quantised(m, x->err));
  return ir_verify(m, &lenient, x->err);
}

/* What runs whole is the oracle of what is optimised: it stays as it is. */
static int line_optimise(compile_line *x, ir_module *m) {
  bool whole = x->options->device && x->options->device->facts.whole;
  return x->options->no_passes || whole ? 0 : driver_run_passes(m, x->options, x->err);
}

/* From the copy to what can be planned. */
static int line_make_ready(compile_line *x, ir_module *m) {
  TRY(line_end(x, DRIVER_TRANSLATED, m));
  TRY(line_prepare(x, m));
  TRY(line_end(x, DRIVER_PREPARED, m));
  TRY(line_optimise(x, m));
  return line_end(x, DRIVER_OPTIMISED, m);
}

/* Where the interpreter is the device, or the only one that can run the program. Takes m and b, also on failure. */
static int line_run_whole(compile_line *x, rt_build *b, ir_module *m, const char *why, rt_executable **out) {
  plan_program *plan = NULL;
  int status = plan_make_whole(m, why, &b->arena, &plan, x->err);
  if (status == 0) return rt_build_finish(b, m, plan, out, x->err);
  rt_build_abandon(b);
  ir_module_destroy(m);
  return status;
}

/* `why` is static text, and becomes the plan's `why`. */
static int line_interpret(compile_line *x, rt_device_set *devices, ir_module *m, const char *why, rt_executable **out) {
  assert(why);
  rt_device *interpreter = NULL;
  rt_build *b = NULL;
  int status = rt_device_set_open(devices, "interp", &interpreter, x->err);
  if (status == 0) status = rt_build_begin(interpreter, &x->options->build, &b, x->err);
  if (status == 0) return line_run_whole(x, b, m, why, out);
  ir_module_destroy(m);
  return status;
}

/* The plan is all that is wanted. Takes m and b, also on failure. */
static int line_hand_over(compile_line *x, rt_build *b, ir_module *m, const plan_program *plan) {
  int status = x->options->planned(x->options->planned_ctx, &m, plan, x->err);
  rt_build_abandon(b);
  ir_module_destroy(m); /* NULL is fine */
  return status;
}

/* The device's own fusions, unless ops are to be one by one. */
static int line_outline(compile_line *x, const plan_options *options, ir_module *m) {
  const ir_verify_options lenient = {.xla_compat = true};
  bool changed = false;
  if (options->no_fusion || !options->target->outline) return 0;
  TRY(options->target->outline(options->target->ctx, m, &changed, x->err));
  return changed ? ir_verify(m, &lenient, x->err) : 0;
}

/* What the device wants is made, and given to it. Takes m, also on failure. */
static int line_build(compile_line *x, rt_device_set *devices, rt_device *d, ir_module *m, rt_executable **out) {
  plan_options options = x->options->plan;
  plan_program *plan = NULL;
  rt_build *b = NULL;
  int status = rt_build_begin(d, &x->options->build, &b, x->err);
  if (status == 0 && !b->target) return line_run_whole(x, b, m, "it was compiled for the interpreter", out);
  if (status == 0) {
    options.target = b->target;
    status = line_outline(x, &options, m);
    if (status == 0) status = plan_make(m, &options, &b->arena, &plan, x->err);
  }
  if (status == 0 && x->options->planned) return line_hand_over(x, b, m, plan);
  if (status == 0 && !plan->interpreted) return rt_build_finish(b, m, plan, out, x->err);
  const char *why = status == 0 ? plan->why : NULL; /* static */
  rt_build_abandon(b);
  if (why) return line_interpret(x, devices, m, why, out);
  ir_module_destroy(m);
  return status;
}

/* The device that the options name, in the set that they name or in one of its own. Takes m, also on failure. */
static int line_build_in(compile_line *x, ir_module *m, rt_executable **out) {
  base_alloc alloc = x->options->alloc.fn ? x->options->alloc : base_alloc_libc;
  rt_device_set *own = NULL;
  rt_device *d = x->options->device;
  int status = x->options->devices ? 0 : rt_device_set_create(&own, driver_device_kinds, alloc, x->err);
  rt_device_set *set = own ? own : x->options->devices;
  if (status == 0 && !d) status = rt_device_set_open(set, NULL, &d, x->err);
  if (status)
    ir_module_destroy(m);
  else
    status = line_build(x, set, d, m, out);
  rt_device_set_release(own);
  return status;
}

/* Takes m, also on failure. */
static int line_finish(compile_line *x, ir_module *m, rt_executable **out) {
  int status = line_make_ready(x, m);
  if (status) {
    ir_module_destroy(m);
    return status;
  }
  TRY(line_build_in(x, m, out));
  if (x->options->planned) return base_heed_stopped() ? base_interrupted(x->err) : 0;
  assert((*out)->plan);
  if (base_heed_stopped()) { /* what there was no memory for may be missing where it is not needed */
    rt_executable_destroy(*out);
    return base_interrupted(x->err);
  }
  line_time(x, DRIVER_PLANNED);
  return 0;
}

/* A plan is one for all: each device makes its own of it. What the interpreter runs, it runs for all. Those of other
 * processes have none. */
static int line_build_seat(const compile_line *x, rt_executable *one, rt_executable **seats, uint32_t i) {
  rt_device *const *devices = x->options->seats;
  rt_build *b = NULL;
  uint32_t like = 0;
  if (!devices[i]) return 0;
  while (devices[like] != devices[i]) like++;
  seats[i] = one->device == x->options->device ? seats[like] : one;
  if (seats[i]) return 0;
  TRY(rt_build_begin(devices[i], &x->options->build, &b, x->err));
  assert(b->target);
  return rt_build_finish_shared(b, one->module, one->plan, &seats[i], x->err);
}

/* Takes one, also on failure. */
static int line_make_group(const compile_line *x, base_alloc alloc, rt_executable *one, rt_executable **out) {
  const uint32_t n = x->options->seats ? x->options->partitioned->n_devices : 1;
  rt_executable **seats = base_malloc(alloc, n * sizeof *seats);
  uint32_t first = 0;
  int status = seats ? 0 : base_oom(x->err, "a group");
  while (x->options->seats && !x->options->seats[first]) first++;
  assert(first < n && (!x->options->seats || x->options->seats[first] == x->options->device));
  if (seats) memset(seats, 0, n * sizeof *seats);
  if (seats) seats[first] = one;
  for (uint32_t i = first + 1; i < n && status == 0; i++) status = line_build_seat(x, one, seats, i);
  if (status == 0)
    status = spmd_group(x->options->partitioned, seats, n, x->options->build.async_work, alloc, out, x->err);
  else
    spmd_group_abandon(x->options->partitioned, seats, seats ? n : 0);
  if (!seats) rt_executable_destroy(one);
  base_free(alloc, seats);
  return status;
}

int driver_finish(ir_module *translated, const driver_options *options, driver_times *times, rt_executable **out,
                  xlac_error *err) {
  assert(translated && out);
  compile_line x = {.options = options, .times = times, .began = line_now(), .err = err};
  base_alloc alloc = options->alloc.fn ? options->alloc : base_alloc_libc;
  rt_executable *one = NULL;
  int status = line_finish(&x, translated, &one);
  if (status == 0 && options->partitioned && !options->planned) return line_make_group(&x, alloc, one, out);
  if (status || options->planned) spmd_program_destroy(options->partitioned);
  if (status == 0) *out = one;
  return status;
}

int driver_compile(ir_module *m, const driver_options *options, driver_times *times, rt_executable **out,
                   xlac_error *err) {
  compile_line x = {.options = options, .times = times, .began = line_now(), .err = err};
  ir_module *copy = NULL;
  TRY(driver_translate(m, &copy, err));
  return line_finish(&x, copy, out);
}
