/* Machine code for kernels: the fast backend of the CPU on x86-64 with AVX2. A kernel that it covers runs as one loop
 * whose values stay in vector registers; for all others the vector VM remains. The bits are the VM's, which are the
 * interpreter's.
 *
 * Code is collected in a store, one for an executable, and made executable as a whole when all is there: pages are
 * writable first and executable then, never both. Kernels of the same shape share code. A store is made by one thread;
 * once it is sealed, its kernels may be run by any number of them. */
#ifndef XLAC_CPU_NATIVE_NATIVE_H
#define XLAC_CPU_NATIVE_NATIVE_H

#include "../../kernel/kernel.h"
#include "../../runtime/device.h"

enum { CPU_NATIVE_FOLD_BYTES = 128 /* of the lanes that the values of a block are combined to */ };

typedef struct cpu_native_store cpu_native_store;
/* The code of a kernel, in the arena that it was made in; it refers to the kernel and to the store. */
typedef struct cpu_native_kernel cpu_native_kernel;

/* NULL in *out where there is to be no native code: on other machines, and where the environment's XLAC_NATIVE is "0"
 * or XLAC_MAX_ISA "portable". */
XLAC_MUST_USE int cpu_native_store_create(base_alloc alloc, cpu_native_store **out, xlac_error *err);
/* Earlier code of the same program, and where to put this one's; borrowed until s is sealed. s, saved: or NULL. */
void cpu_native_store_use(cpu_native_store *s, const rt_saved_code *saved);
void cpu_native_store_destroy(cpu_native_store *s); /* or NULL */
/* Code for k, or NULL where it is not covered, memory is short, or s is NULL. */
const cpu_native_kernel *cpu_native_make(cpu_native_store *s, const kernel *k, base_arena *arena);
/* What tools that look at machine code call it, where they are to know (perf_map.c): a computation's name and an op's.
 * n: or NULL. */
void cpu_native_name(cpu_native_store *s, const cpu_native_kernel *n, const char *computation, const char *op);
/* No more kernels are made. Where the system refuses, none of them is ready. */
void cpu_native_store_seal(cpu_native_store *s);
/* Whether it can run. */
bool cpu_native_is_ready(const cpu_native_kernel *n);
/* Whether it will have code for all iterations. */
bool cpu_native_does_all(const cpu_native_kernel *n);
/* Where it can not, there may be code for most iterations (cycle.c). */
bool cpu_native_has_cycles(const cpu_native_kernel *n);
/* Does the first of begin..end that it has code for: gives where it ends, and in *from where it began. end, where there
 * are none. */
int64_t cpu_native_run_cycles(const cpu_native_kernel *n, const void *const *in, void *const *out, int64_t begin,
                              int64_t end, int64_t *from);
/* What becomes of the values of iterations that a store combines, in its place in `sums`, of the type of sums: */
typedef enum cpu_native_way {
  CPU_NATIVE_VALUES, /* nothing: one after the other they are there, in their own type */
  CPU_NATIVE_LANES,  /* iteration i goes into lane i % cpu_native_lanes, of which those are written */
  CPU_NATIVE_COLUMNS /* each goes into what is there */
} cpu_native_way;
cpu_native_way cpu_native_way_of(const cpu_native_kernel *n);
int64_t cpu_native_lanes(const cpu_native_kernel *n);
/* n numbers, in the type of sums of values of type t, into which others go unchanged. */
void cpu_native_begin(scalar_code by, base_dtype t, int64_t n, char *to);
/* Iterations begin..end, of one row where values are combined. sums: by store; NULL where none combines. */
void cpu_native_run(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                    int64_t begin, int64_t end);

/* COLUMNS: iterations begin..begin + lanes of one row, and the same of the rows after it, `rows` in all. Row i goes
 * into lanes number i % runs, which lie side by side. */
void cpu_native_run_columns(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                            int64_t begin, int64_t lanes, int64_t rows, int64_t runs);

/* LANES, where all of what comes to one result is one row: `rows` of them from iteration `begin` on, the lanes of each
 * CPU_NATIVE_FOLD_BYTES after those of the one before. */
void cpu_native_run_lanes(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                          int64_t begin, int64_t rows);

/* --- bound calls: a kernel that runs again and again on the same memory --- */
/* All iterations as one call of the code, whose arguments are made once. Its memory is the caller's. */
typedef struct cpu_native_call cpu_native_call;
/* How many bytes it has; 0: n (or NULL) needs several calls, or combines values of several rows. */
size_t cpu_native_call_bytes(const cpu_native_kernel *n);
/* call: those bytes, aligned to 8. n is ready; what in, out and sums (of kernels that reduce, by store) point to is
 * where each run finds it. */
void cpu_native_call_bind(const cpu_native_kernel *n, const void *const *in, void *const *out, char *const *sums,
                          cpu_native_call *call);
/* Not by several threads at a time: the code counts in the arguments. */
void cpu_native_call_run(cpu_native_call *call);

/* --- loops (loop.h) --- */
typedef struct cpu_native_loop cpu_native_loop;
struct nat_loop;
struct nat_target;
/* What code is made for; NULL: s makes none. */
const struct nat_target *cpu_native_store_target(const cpu_native_store *s);
/* Code for l, in the arena; NULL where there is none, or memory is short. */
const cpu_native_loop *cpu_native_loop_make(cpu_native_store *s, const struct nat_loop *l, base_arena *arena,
                                            const char *name);
bool cpu_native_loop_is_ready(const cpu_native_loop *n);
/* What is asked from time to time: how much may be done before the next time; 0: the loop is to stop. */
typedef struct cpu_native_poll {
  int64_t (*ask)(void *ctx);
  void *ctx;
} cpu_native_poll;
/* Runs it on `n` arrays. false: it was stopped, and what it writes is undefined. */
bool cpu_native_loop_run(const cpu_native_loop *l, const void *const *arrays, uint32_t n, const cpu_native_poll *poll);
/* That, for the code alone. */
int64_t cpu_native_loop_poll(const cpu_native_poll *poll);

/* The code of k as text, a line an instruction, each op before its own; false where k is not covered. */
bool cpu_native_put(base_text *out, const kernel *k, base_alloc alloc);

#endif
