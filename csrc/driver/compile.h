/* The compile line: from a program as it was read to an executable. The library, sessions, shape variants, saved
 * executables and the command line all go through it.
 *
 *   text -> IR -> translated -> prepared -> optimised -> planned -> executable
 *
 * One thread a call; calls on different modules may run at the same time. */
#ifndef XLAC_DRIVER_COMPILE_H
#define XLAC_DRIVER_COMPILE_H

#include "../pipeline/pipeline.h"
#include "../plan/plan.h"
#include "../spmd/spmd.h"
#include "devices.h"

/* What a stage leaves, for whoever looks on. */
typedef enum driver_stage {
  DRIVER_TRANSLATED, /* a copy in HLO form */
  DRIVER_PREPARED,   /* with donors, quantised types expanded, verified */
  DRIVER_OPTIMISED,  /* the passes have run */
  DRIVER_PLANNED,    /* the executable is there, with its plan */
  DRIVER_STAGES
} driver_stage;

typedef struct driver_options {
  base_alloc alloc;       /* of the plan's making, and of a set of one's own; none: libc's */
  rt_device_set *devices; /* NULL: a set of its own */
  rt_device *device;      /* of these; NULL: the first */
  rt_device **seats;      /* of a group: where each of its devices is, NULL of those of other processes, the first that
                             is here on `device`; NULL: all there */
  rt_build_options build;
  plan_options plan; /* whose target is the device's */
  /* What the module is the local program of: the executable runs it on all of its devices. Taken, also on failure;
   * NULL: one device. */
  spmd_program *partitioned;
  bool no_passes;
  const char *passes; /* instead of the usual ones; NULL: those */
  const char *then;   /* after these; NULL: none */
  /* Called on the translated copy, before it is prepared: donors of the caller's. May be NULL. */
  int (*edit)(void *ctx, ir_module *m, xlac_error *err);
  /* Looks at the plan instead of an executable that would be made of it, and may take *m, leaving NULL there. The
   * compilation ends with the status that it gives, and without an executable. May be NULL. */
  int (*planned)(void *ctx, ir_module **m, const plan_program *plan, xlac_error *err);
  void *planned_ctx;
  /* Called after each stage but the last; m is borrowed. Nonzero ends the compilation with that status. May be NULL. */
  int (*look)(void *ctx, driver_stage stage, ir_module *m, xlac_error *err);
  void *ctx;                         /* of edit and look */
  const opt_pipeline_options *watch; /* told of each pass; may be NULL */
} driver_options;

/* Seconds that each stage took. */
typedef struct driver_times {
  double stage[DRIVER_STAGES];
} driver_times;

/* The executable is the device's, or the interpreter's where the device wants a plan and there is none (plan->why says
 * for what reason). All executables that come from here have a plan: of those that run whole, one that says so. */

/* Compiles m, which is valid or an error says why not, and stays as it is. `times` may be NULL. */
XLAC_MUST_USE int driver_compile(ir_module *m, const driver_options *options, driver_times *times, rt_executable **out,
                                 xlac_error *err);
/* The part of the line for which only one may look at m: a copy of it in HLO form, the caller's to destroy. */
XLAC_MUST_USE int driver_translate(ir_module *m, ir_module **out, xlac_error *err);
/* The same for n devices: partitions m, and gives the local program's module and what it is the program of. rehearsal:
 * to be planned, not to be run (spmd_partition). */
XLAC_MUST_USE int driver_partition(ir_module *m, uint32_t n_devices, bool rehearsal, ir_module **out,
                                   spmd_program **partitioned, xlac_error *err);
/* The rest of the line on that copy, which is taken also on failure. */
XLAC_MUST_USE int driver_finish(ir_module *translated, const driver_options *options, driver_times *times,
                                rt_executable **out, xlac_error *err);

#endif
