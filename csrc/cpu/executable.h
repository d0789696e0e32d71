/* A program compiled for the CPU: immutable, callable from many threads at once. */
#ifndef XLAC_CPU_EXECUTABLE_H
#define XLAC_CPU_EXECUTABLE_H

#include "../interp/interp.h"
#include "../runtime/host.h"
#include "gemm/blas.h"
#include "vm/vm.h"

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
bool cpu_start_needs_interpreter(const plan_step *s);

/* --- print.c --- */
int cpu_executable_print(const rt_executable *exe, base_text *out, xlac_error *err);

/* --- call.c: the table's functions for calls --- */
int cpu_call(const rt_executable *exe, const rt_call_options *options, void *const *arguments, void *const *results,
             const rt_trace *trace, xlac_error *err);
int cpu_call_values(const rt_executable *exe, const rt_call_options *options, uint32_t n_args,
                    interp_value *const *args, interp_value **out, const rt_trace *trace, xlac_error *err);

#endif
