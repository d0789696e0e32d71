/* The portable backend: a kernel as a list of loops over blocks of lanes. Every op and type has its loop
 * (interp/loops.h), so that results are the interpreter's bits, but for the order in which reductions combine. */
#ifndef XLAC_CPU_VM_H
#define XLAC_CPU_VM_H

#include "../base/threads.h"
#include "../kernel/kernel.h"

typedef struct cpu_vm cpu_vm;

/* Makes k ready to run; in `arena`. fast: the numerics of that name. */
XLAC_MUST_USE int cpu_vm_make(const kernel *k, bool fast, base_arena *arena, cpu_vm **out, xlac_error *err);
/* All iterations, on the pool's threads where there are enough (NULL: on the caller's). scratch:
 * kernel_scratch_bytes(k), or NULL for 0. Thread-safe; the results are the same for any pool. */
void cpu_vm_run(const cpu_vm *vm, base_pool *pool, const void *const *in, void *const *out, void *scratch);
/* Whether several threads or parts of a base_stop can share it. */
bool cpu_vm_is_divisible(const cpu_vm *vm);
/* Rows begin..end, of `rows` into which the iterations are cut, on the caller's thread. `rows` divides them, and the
 * outer ones of a reduction, whose kernel_pieces is 1. */
void cpu_vm_run_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in,
                     void *const *out);

#endif
