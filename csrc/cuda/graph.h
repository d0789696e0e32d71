/* Launch graphs: a call's kernels and copies as one launch.
 *
 * A call is listed once as nodes, which are put one behind the other into a graph of the driver's. What differs between
 * two calls is addresses: a call on the same ones is a launch, and on others the nodes that have them are given the new
 * ones. An executable keeps a few graphs, each in use by one call at a time. */
#ifndef XLAC_CUDA_GRAPH_H
#define XLAC_CUDA_GRAPH_H

#include "executable.h"

/* A launch or a copy. */
typedef struct cuda_node {
  const cuda_kernel *kernel; /* NULL: a copy */
  bool by_library;           /* it is the kernel's product */
  uint32_t n;
  uint64_t *values; /* a kernel's parameters; of a copy: to, from, bytes */
  cuda_graph_node handle;
} cuda_node;

/* What a call enqueues, in order, in the arena. */
typedef struct cuda_nodes {
  base_arena *arena;
  base_alloc alloc;
  uint32_t n, cap;
  cuda_node *items; /* alloc's */
} cuda_nodes;

/* Adds one; false where there is no memory for it. */
bool cuda_nodes_add(cuda_nodes *list, const cuda_kernel *kernel, bool by_library, uint32_t n, const uint64_t *values);

struct cuda_run;
/* Whether p's calls are a graph, how many nodes it has, and else why not: notes it in exe. When its codes are made. */
void cuda_graph_plan(cuda_executable *exe);
/* Runs the entry as one launch, where there is a graph for it or it is time to make one: *done. All leaves' addresses,
 * arguments first, then the frame. */
XLAC_MUST_USE int cuda_graph_run(struct cuda_run *run, const cuda_address *leaves, bool *done);
/* Of an executable that nobody calls any more. Entered. */
void cuda_graphs_destroy(cuda_executable *exe);

#endif
