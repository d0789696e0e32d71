/* Programs compiled for a GPU: immutable, called from any number of threads at once, each call on a stream of its own.
 */
#ifndef XLAC_CUDA_EXECUTABLE_H
#define XLAC_CUDA_EXECUTABLE_H

#include "../plan/plan.h"
#include "context.h"
#include "units.h"

/* What is made of a kernel or a routine of the plan. */
typedef struct cuda_kernel {
  bool printed; /* there is a kernel; without it and without what is below, the reference evaluator runs it on the host
                 */
  cuda_launch launch;
  cuda_function function;
  const uint32_t *arrays; /* of a kernel of several steps: the buffers that are its parameters; NULL: the step's */
  uint32_t n_arrays;
  struct cuda_product *product;             /* cuBLASLt's, instead of a kernel; or NULL */
  const struct cuda_collective *collective; /* meets other GPUs by NCCL, where that is; or NULL */
} cuda_kernel;

struct cuda_graphs;
/* Steps of a program that are launched as one graph: all of the entry's where the host has a part in none, else those
 * between two in which it has, also of what these run. */
typedef struct cuda_stretch {
  uint32_t from, to;          /* of the program's steps; not with `to` */
  uint64_t n_nodes;           /* launches and copies, at most */
  struct cuda_graphs *graphs; /* of calls that were made before */
} cuda_stretch;

/* What is made of a program of the plan. */
typedef struct cuda_code {
  bool made;
  cuda_kernel *kernels;    /* by step; of those that are kernels or routines */
  int64_t *trips;          /* by step: how many iterations a loop takes; CUDA_TRIPS_UNKNOWN */
  cuda_address *constants; /* by buffer; of constants */
  bool cut;                /* its stretches are found */
  uint32_t n_stretches;
  cuda_stretch *stretches; /* ascending */
} cuda_code;

enum { CUDA_TRIPS_UNKNOWN = -1, CUDA_CONDITION_BYTES = 256, CUDA_SCRATCH_ALIGN = 256 /* a library's workspace */ };

typedef struct cuda_executable {
  rt_executable base; /* base.plan is the program */
  ir_module *owned;   /* the module, or NULL where it is somebody else's */
  base_alloc alloc;
  base_arena arena; /* the plan, and what is made of it */
  cuda_device *device;
  bool fast;              /* numerics */
  bool checks;            /* XLAC_CUDA_CHECK: waits after each step, so that an error has its name */
  cuda_source source;     /* of all kernels that are printed */
  cuda_units *units;      /* what is made of it; NULL: there are none */
  cuda_address constants; /* one block for all; 0: there are none */
  cuda_code *codes;       /* by number of the program */
  size_t scratch_bytes;   /* a condition, and behind it the most that a launch needs for itself; 0: nothing */
  const char *no_graph;   /* why calls are not graph, for people; NULL: they are. no_graph_op: because of it, or NULL */
  const ir_op *no_graph_op;
  bool conditions;  /* graphs have loops or branches that the GPU itself decides about */
  uint64_t n_nodes; /* launches and copies of a call, where they are known */
  void *opened;     /* of the device's library for custom calls */
  void (*count)(void *ctx, const rt_tally *tally);
  void *count_ctx;
} cuda_executable;

/* --- executable.c --- */
int cuda_build_begin(rt_device *d, const rt_build_options *options, rt_build **out, xlac_error *err);

/* --- rows.c --- */
/* The tile's steps as one kernel, which the first of them launches; false: they are kernels of their own. */
bool cuda_rows_print(cuda_executable *exe, const plan_program *p, const plan_tile *t, cuda_kernel *kernels);

/* --- trips.c --- */
/* How often a while op turns, where a counter from a constant, by a constant, to a constant says so; else
 * CUDA_TRIPS_UNKNOWN. */
int64_t cuda_known_trips(const ir_op *loop);

/* --- call.c: the table's functions for calls --- */
int cuda_call(const rt_executable *exe, const rt_call_options *options, void *const *arguments, void *const *results,
              const rt_trace *trace, xlac_error *err);
int cuda_call_values(const rt_executable *exe, const rt_call_options *options, uint32_t n, interp_value *const *args,
                     interp_value **out, const rt_trace *trace, xlac_error *err);

/* --- print_executable.c --- */
int cuda_executable_print(const rt_executable *exe, base_text *out, xlac_error *err);

#endif
