/* What executables share: memory that is used again, and threads. */
#ifndef XLAC_CPU_RUNTIME_H
#define XLAC_CPU_RUNTIME_H

#include "../runtime/lane.h"
#include "../runtime/recycle.h"
#include "../runtime/threads.h"

/* Reference counted; thread-safe. */
typedef struct cpu_runtime cpu_runtime;

XLAC_MUST_USE int cpu_runtime_create(cpu_runtime **out, base_alloc alloc, xlac_error *err);
cpu_runtime *cpu_runtime_retain(cpu_runtime *rt);
void cpu_runtime_release(cpu_runtime *rt); /* NULL is fine; not from inside a run */
base_recycler *cpu_runtime_memory(cpu_runtime *rt);
/* The pool of so many threads (0: as many as there are CPUs to use), which all who ask for that many share. Lives as
 * long as the runtime. */
XLAC_MUST_USE int cpu_runtime_pool(cpu_runtime *rt, uint32_t threads, base_pool **out, xlac_error *err);
/* The lane of that name with so many threads, which all who ask for it share. Lives as long as the runtime. */
XLAC_MUST_USE int cpu_runtime_lane(cpu_runtime *rt, const char *name, uint32_t threads, base_lane **out,
                                   xlac_error *err);
/* Threads that work for it now. */
uint32_t cpu_runtime_threads(const cpu_runtime *rt);

#endif
