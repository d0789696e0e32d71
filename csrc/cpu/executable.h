/* A program compiled for the CPU: immutable, callable from many threads at once. */
#ifndef XLAC_CPU_EXECUTABLE_H
#define XLAC_CPU_EXECUTABLE_H

#include "../interp/interp.h"
#include "gemm/blas.h"
#include "runtime.h"
#include "vm/vm.h"

/* What a call has copied. Copies of at most 32 KB don't count. */
typedef struct cpu_tally {
  int64_t copies, bytes;                /* because the plan says so */
  int64_t protecting, protecting_bytes; /* of arguments that the program would change, and that are only lent */
  int64_t reused, reused_bytes;         /* results in the memory of arguments */
} cpu_tally;

typedef struct cpu_options {
  base_alloc alloc;
  uint32_t threads;      /* 0: as many as there are CPUs to use; 1: none but the caller's */
  bool no_blas;          /* no library for products */
  const char *blas_path; /* NULL: the usual names */
  bool fast;             /* numerics: kernels may contract, approximate and keep narrow floats wide */
  plan_options plan;
  cpu_runtime *runtime;                             /* NULL: one of its own */
  void (*count)(void *ctx, const cpu_tally *tally); /* told after each run, on its thread; NULL: nobody */
  void *count_ctx;
  uint32_t n_lanes;
  const xlac_lane *lanes;
  uint64_t async_work;
} cpu_options;

typedef struct cpu_executable cpu_executable;

/* Takes m, which must be verified and in HLO form, also on failure. */
XLAC_MUST_USE int cpu_compile(cpu_executable **out, ir_module *m, const cpu_options *options, xlac_error *err);
/* What the CPU keeps in frames. */
extern const plan_device cpu_plan_device;
/* An executable of a plan that somebody else has made of m for cpu_plan_device; both must outlive it. options->plan is
 * not looked at. BAD_ARGUMENT where a routine needs more than the plan has for it, as with other libraries. */
XLAC_MUST_USE int cpu_finish_plan(cpu_executable **out, const ir_module *m, const plan_program *plan,
                                  const cpu_options *options, xlac_error *err);
void cpu_executable_free(cpu_executable *exe); /* when no call is going on */
const ir_module *cpu_executable_module(const cpu_executable *exe);
const plan_program *cpu_executable_program(const cpu_executable *exe);
const cpu_blas *cpu_executable_blas(const cpu_executable *exe); /* NULL: none has been needed, or there is none */
/* Number `index` of its lanes; false past the end, and for programs without async starts. */
bool cpu_executable_lane(const cpu_executable *exe, uint32_t index, xlac_lane *out);
cpu_runtime *cpu_executable_runtime(const cpu_executable *exe);
/* Elements that a call goes through, roughly; UINT64_MAX where that is not known before it runs. */
uint64_t cpu_executable_work(const cpu_executable *exe);

/* One call. options: seed, registry, interrupted and so on, as for interp_run; its alloc is ignored. args are borrowed;
 * *out is a new reference. */
XLAC_MUST_USE int cpu_execute(const cpu_executable *exe, const interp_options *options, uint32_t n_args,
                              interp_value *const *args, interp_value **out, xlac_error *err);
/* Of a program that is ready: the same, and whether some step is evaluated by the interpreter. */
uint64_t cpu_program_work(const plan_program *p);
bool cpu_program_needs_interpreter(const plan_program *p);
bool cpu_start_needs_interpreter(const plan_step *s);
struct cpu_profile;
/* cpu_execute with times by step, in a profile that has begun. */
XLAC_MUST_USE int cpu_execute_profiled(const cpu_executable *exe, const interp_options *options, uint32_t n_args,
                                       interp_value *const *args, interp_value **out, struct cpu_profile *profile,
                                       xlac_error *err);
/* The same on bare memory: a pointer for each leaf of the parameters and of the result, row-major and dense. Results
 * are written, aligned to their elements, and overlap neither each other nor an argument. Only for programs that have a
 * plan (not program->interpreted). Allocates nothing where no step does. profile: NULL, or one that has begun. */
XLAC_MUST_USE int cpu_execute_leaves(const cpu_executable *exe, const interp_options *options, void *const *arguments,
                                     void *const *results, struct cpu_profile *profile, xlac_error *err);

#endif
