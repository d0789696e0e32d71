/* A program compiled for the CPU: immutable, callable from many threads at once. */
#ifndef XLAC_CPU_EXECUTABLE_H
#define XLAC_CPU_EXECUTABLE_H

#include "../interp/interp.h"
#include "../runtime/host.h"
#include "gemm/blas.h"
#include "vm/vm.h"

/* Defined in run.h, for the files of this folder. */
typedef struct cpu_executable cpu_executable;

/* What the CPU keeps in frames. */
extern const plan_device cpu_plan_device;

/* --- executable.c: the CPU's builds and executables, as device.h describes them --- */
XLAC_MUST_USE int cpu_build_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err);
void cpu_executable_destroy(rt_executable *exe);

/* Elements that a call of p goes through, roughly; UINT64_MAX where that is not known before it runs. */
uint64_t cpu_program_work(const plan_program *p);
/* Whether some step is evaluated by the interpreter. */
bool cpu_program_needs_interpreter(const plan_program *p);
/* The same of one async start. */
bool cpu_start_needs_interpreter(const plan_step *s);

/* --- print.c --- */
/* Appends what runs as what, one line a step or unit, to `out`. Fails only when out of memory. */
int cpu_executable_print(const rt_executable *exe, base_text *out, xlac_error *err);

/* --- call.c: the table's functions for calls --- */
/* arguments, results: a pointer to dense memory a leaf, in the order of the entry's parameters and of its root.
 * Arguments may be misaligned; results must not overlap, but for those that lie in an argument which is given
 * away. trace: NULL, or what the caller wants to know of the call. Thread-safe. Errors: what steps report,
 * INTERRUPTED, OUT_OF_MEMORY. */
int cpu_call(const rt_executable *exe, const rt_call_options *options, void *const *arguments, void *const *results,
             const rt_trace *trace, xlac_error *err);
/* Several of them in turns, as rt_executable's table has it. */
int cpu_call_in_turns(const rt_executable *exe, rt_pool *pool, uint32_t n, const rt_turn *turns, const rt_trace *trace,
                      uint32_t *failed, xlac_error *err);
/* The same on values of the interpreter's. *out is a new reference. */
int cpu_call_values(const rt_executable *exe, const rt_call_options *options, uint32_t n_args,
                    interp_value *const *args, interp_value **out, const rt_trace *trace, xlac_error *err);

#endif
