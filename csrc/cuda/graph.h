/* Launch graphs: a call's kernels and copies as one launch.
 *
 * The steps of a stretch are listed once as nodes, which are put one behind the other into a graph of the driver's.
 * What differs between two calls is addresses: a call on the same ones is a launch, and on others the nodes that have
 * them are given the new ones. A stretch keeps a few graphs, each in use by one call at a time. */
#ifndef XLAC_CUDA_GRAPH_H
#define XLAC_CUDA_GRAPH_H

#include "executable.h"

typedef enum cuda_node_kind {
  CUDA_NODE_KERNEL,
  CUDA_NODE_LIBRARY, /* the kernel's product */
  CUDA_NODE_COPY,    /* values: to, from, bytes */
  CUDA_NODE_SET,     /* of a condition: its number, and what else the kernel that sets it takes (condition.c) */
  CUDA_NODE_IF,      /* what runs by a condition: its number */
  CUDA_NODE_WHILE
} cuda_node_kind;

/* A launch, a copy, or nodes that are run by a condition. */
typedef struct cuda_node {
  cuda_node_kind kind;
  const cuda_kernel *kernel;
  uint32_t n;
  uint64_t *values; /* a kernel's parameters, or as above */
  struct cuda_nodes *body;
  cuda_graph_node handle;
} cuda_node;

/* What a call enqueues, in order, in the arena. */
typedef struct cuda_nodes {
  base_arena *arena; /* of bodies, too */
  base_alloc alloc;
  uint32_t n, cap;
  cuda_node *items; /* alloc's */
} cuda_nodes;

/* Adds one; NULL where there is no memory for it. Until the next one is. */
cuda_node *cuda_nodes_add(cuda_nodes *list, cuda_node_kind kind, const cuda_kernel *kernel, uint32_t n,
                          const uint64_t *values);

struct cuda_run;
/* One time that a program's stretch is gone through. */
typedef struct cuda_passage {
  const plan_program *p;
  const cuda_stretch *stretch;
  const cuda_address *addresses; /* by buffer */
  const cuda_address *key;       /* what these follow from */
  size_t n;
} cuda_passage;

/* Which steps are graphs, how many nodes a call has, and why it is not one graph: notes it in exe. When its codes are
 * made. */
XLAC_MUST_USE int cuda_graph_plan(cuda_executable *exe, xlac_error *err);
/* Runs a stretch as one launch, where there is a graph for it or it is time to make one: *done. */
XLAC_MUST_USE int cuda_graph_run(struct cuda_run *run, const cuda_passage *at, bool *done);
/* The kernel of CUDA_NODE_SET, in *out. Entered; CUDA_NOT_FOUND where it can't be compiled or loaded. */
cuda_result cuda_condition_kernel(cuda_device *d, base_alloc alloc, cuda_function *out);
/* Of an executable that nobody calls any more. Entered. */
void cuda_graphs_destroy(cuda_executable *exe);

#endif
