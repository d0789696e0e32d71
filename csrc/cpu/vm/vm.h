/* The portable backend: a kernel as a list of loops over blocks of lanes. Every op and type has its loop
 * (scalar/loops/loops.h), so that results are the interpreter's bits, but for the order in which reductions combine. */
#ifndef XLAC_CPU_VM_VM_H
#define XLAC_CPU_VM_VM_H

#include "../../runtime/threads.h"
#include "../native/native.h"

/* A kernel made ready to run: immutable, in the arena that it was made in, and bound to the kernel, which must
 * live as long. It is made for the instruction set of the machine that makes it. */
typedef struct cpu_vm cpu_vm;

/* Lines of memory that will be read soon, fetched some at a time between other work: the CPU foresees no more than
 * what follows in a page, and waits at the beginning of each. Filled by who knows what comes next; stepped on by
 * vm_compute. */
enum { CPU_VM_MAX_AHEAD = 4 };
typedef struct cpu_vm_ahead {
  uint32_t n;
  bool far; /* more than goes into the first cache beside what is at work: into the second */
  const char *from[CPU_VM_MAX_AHEAD];
  int64_t at, bytes, step; /* of each, so far, in all, and at a time */
} cpu_vm_ahead;

/* Makes k ready to run; in `arena`. fast: the numerics of that name. */
XLAC_MUST_USE int cpu_vm_make(const kernel *k, bool fast, base_arena *arena, cpu_vm **out, xlac_error *err);
/* Whether it has other loops in fast numerics than in strict: elementary functions, f32 lanes for narrow floats. */
bool cpu_vm_is_looser(const cpu_vm *vm);
/* From then on, where the native code is ready, it runs in place of the VM's loops, on the same ranges. native: or
 * NULL. */
void cpu_vm_set_native(cpu_vm *vm, const cpu_native_kernel *native);
/* Whether machine code runs in place of the VM's loops; on ranges that it does not take, they still do. */
bool cpu_vm_is_native(const cpu_vm *vm);
/* All iterations, on the pool's threads where there are enough (NULL: on the caller's). scratch:
 * kernel_scratch_bytes(k), or NULL for 0. last: nobody reads what is stored for a while. Thread-safe; the results are
 * the same for any pool. */
void cpu_vm_run(const cpu_vm *vm, rt_pool *pool, const void *const *in, void *const *out, void *scratch, bool last);
/* Whether several threads or parts of a rt_stop can share it. */
bool cpu_vm_is_divisible(const cpu_vm *vm);
/* Rows begin..end, of `rows` into which the iterations are cut, on the caller's thread. `rows` divides them, and the
 * outer ones of a reduction, whose kernel_pieces is 1.
 * ahead: what is read next, fetched meanwhile; or NULL. */
void cpu_vm_run_rows(const cpu_vm *vm, int64_t rows, int64_t begin, int64_t end, const void *const *in,
                     void *const *out, bool last, cpu_vm_ahead *ahead);
/* About how many times `ahead` is stepped on in so many of `rows` rows. */
int64_t cpu_vm_passes(const cpu_vm *vm, int64_t rows, int64_t n);

/* --- vm_reduce.c: the order that reductions have, where nothing is cut into pieces --- */
enum { CPU_VM_SHORT_RUN = 64 /* results of fewer elements, of which there are several, have these in their order */ };
/* How many runs of results side by side are combined apart from each other: as many as there are and fit, by the
 * extents alone. */
int64_t cpu_vm_runs_of(const kernel_reduction *red, int64_t piece);

#endif
