/* The portable backend: a kernel as a list of loops over blocks of lanes. Every op and type has its loop (interp/loops.h),
 * so that the results are the interpreter's bits. */
#ifndef XLAC_CPU_VM_H
#define XLAC_CPU_VM_H

#include "../kernel/kernel.h"

typedef struct cpu_vm cpu_vm;

/* Makes k ready to run; in `arena`. */
XLAC_MUST_USE int cpu_vm_make(const kernel *k, base_arena *arena, cpu_vm **out, xlac_error *err);
/* Iterations begin to end (row-major over the kernel's extents). Thread-safe: ranges that don't overlap may run at once. */
void cpu_vm_run(const cpu_vm *vm, int64_t begin, int64_t end, const void *const *in, void *const *out);
/* Iterations that are worth a thread of their own, and a multiple of the block. */
int64_t cpu_vm_grain(const cpu_vm *vm);

#endif
