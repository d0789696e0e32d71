/* Launch graphs: made of the nodes of a call, kept by the executable, and given new addresses. */
#include "product.h"
#include "run.h"

enum {
  CU_GRAPH_LEAST = 3,      /* nodes from which on a graph is worth it */
  CU_GRAPH_MOST = 1 << 14, /* nodes: each takes about a kilobyte of the driver's */
  CU_GRAPH_EARLY = 512,    /* so many nodes are made a graph at the second call, twice as many at the third, ... */
  CU_GRAPH_KEPT = 4        /* graphs of an executable: a loop's two states, and calls of several threads */
};

/* A graph and the addresses that it is for. Changed by the call that it is busy for. */
typedef struct cu_graph {
  struct cu_graph *next;
  bool busy;
  uint64_t used; /* the number of the last call */
  cuda_graph graph;
  cuda_graph_exec exec; /* NULL: still to be made */
  base_arena arena;
  cuda_nodes nodes;
  cuda_address *addresses;
  rt_tally tally; /* of a call */
} cu_graph;

/* The lock guards the list, and of its members who is busy. */
struct cuda_graphs {
  pthread_mutex_t lock;
  cu_graph *first;
  uint32_t n;
  uint64_t calls;
  bool refused; /* the driver has no graph for these nodes */
};

/* --- what a call enqueues --- */

bool cuda_nodes_add(cuda_nodes *list, const cuda_kernel *kernel, bool by_library, uint32_t n, const uint64_t *values) {
  cuda_node node = {.kernel = kernel,
                    .by_library = by_library,
                    .n = n,
                    .values = base_arena_memdup(list->arena, values, n * sizeof *values)};
  return node.values && BASE_VEC_PUSH(list->alloc, list, node);
}

/* Nodes of a call of p are added to n, until there are too many. Depth is that of the plan's programs. */
static void cu_graph_count(cuda_executable *exe, const plan_program *p, uint64_t *n);

static void cu_graph_count_step(cuda_executable *exe, const plan_step *s, const cuda_kernel *k, int64_t trips,
                                uint64_t *n) {
  uint64_t body = 1;
  switch ((plan_step_kind)s->kind) {
    case PLAN_KERNEL:
    case PLAN_ROUTINE:
      if (!k->printed) exe->no_graph = k->collective ? "meets other GPUs" : "is computed on the host";
      *n += k->launch.rounds + 1u + (k->launch.changes ? s->n_out : 0);
      break;
    case PLAN_WHILE:
      if (trips == CUDA_TRIPS_UNKNOWN) exe->no_graph = "has a condition that the host reads";
      if (trips > 0) cu_graph_count(exe, s->nested[1], &body);
      *n += 2u * s->n_in + (trips > 0 ? (uint64_t)trips * body : 0);
      break;
    case PLAN_CONDITIONAL:
      exe->no_graph = "is a branch that the host takes";
      break;
    case PLAN_START:
      if (!s->n_nested && s->op->opcode != IR_OP_COPY_START) exe->no_graph = "is computed on the host";
      /* fall through */
    case PLAN_CALL:
      if (s->n_nested) cu_graph_count(exe, s->nested[0], n);
      /* fall through */
    case PLAN_COPY:
      ++*n;
      break;
    case PLAN_UPDATE:
    case PLAN_DONE:
      break;
  }
  if (exe->no_graph && !exe->no_graph_op) exe->no_graph_op = s->op;
}

static void cu_graph_count(cuda_executable *exe, const plan_program *p, uint64_t *n) {
  const cuda_code *code = &exe->codes[p->number];
  for (uint32_t i = 0; i < p->n_steps && !exe->no_graph && *n <= CU_GRAPH_MOST; i++)
    cu_graph_count_step(exe, &p->steps[i], &code->kernels[i], code->trips[i], n);
}

/* Without memory for it there is no graph. */
void cuda_graph_plan(cuda_executable *exe) {
  assert(!exe->graphs && !exe->no_graph);
  cu_graph_count(exe, exe->base.plan, &exe->n_nodes);
  if (exe->checks)
    exe->no_graph = "XLAC_CUDA_CHECK waits for each step";
  else if (!exe->no_graph && exe->n_nodes < CU_GRAPH_LEAST)
    exe->no_graph = "there is too little in it";
  else if (!exe->no_graph && exe->n_nodes > CU_GRAPH_MOST)
    exe->no_graph = "there is too much in it";
  if (exe->no_graph || !(exe->graphs = base_malloc(exe->alloc, sizeof *exe->graphs))) return;
  *exe->graphs = (struct cuda_graphs){.first = NULL};
  pthread_mutex_init(&exe->graphs->lock, NULL);
}

/* --- nodes of the driver's --- */

/* What a node is told; `parameters` has room for one of each of its values. */
static cuda_kernel_node cu_graph_kernel(const cuda_node *node, void **parameters) {
  const cuda_launch *l = &node->kernel->launch;
  for (uint32_t i = 0; i < node->n; i++) parameters[i] = &node->values[i];
  return (cuda_kernel_node){.function = node->kernel->function,
                            .grid = {(unsigned)l->grid, 1, 1},
                            .block = {l->block, 1, 1},
                            .parameters = parameters};
}

static cuda_copy_node cu_graph_copy(const cuda_node *node) {
  size_t bytes = (size_t)node->values[2];
  const cuda_copy_side side = {.memory = CUDA_MEMORY_DEVICE, .pitch = bytes, .height = 1};
  cuda_copy_node what = {.from = side, .to = side, .bytes = bytes, .height = 1, .depth = 1};
  assert(node->n == 3 && !node->kernel);
  what.to.device = node->values[0];
  what.from.device = node->values[1];
  return what;
}

/* What a library enqueues, as a graph of its own. */
static cuda_result cu_graph_capture(cuda_run *run, const cuda_node *node, cuda_graph *out) {
  const cuda_driver *d = &run->device->driver;
  xlac_error own, *err = run->ctx.err;
  cuda_result result = d->cuStreamBeginCapture_v2(run->stream, CUDA_CAPTURE_RELAXED);
  if (result != CUDA_SUCCESS) return result;
  run->ctx.err = &own;
  int status = cuda_product_run(run, node->kernel->product, node->values);
  run->ctx.err = err;
  result = d->cuStreamEndCapture(run->stream, out);
  if (result == CUDA_SUCCESS && status == 0) return result;
  if (result != CUDA_SUCCESS && d->cuStreamEndCapture(run->stream, out)) *out = NULL; /* it must not go on capturing */
  if (*out) d->cuGraphDestroy(*out);
  return result == CUDA_SUCCESS ? CUDA_INVALID_VALUE : result;
}

/* The node is made, or told what to do from now on, as a graph of the library's. */
static cuda_result cu_graph_put_library(cuda_run *run, const cu_graph *x, cuda_node *node, bool make,
                                        cuda_graph_node after) {
  const cuda_driver *d = &run->device->driver;
  cuda_graph child = NULL;
  cuda_result result = cu_graph_capture(run, node, &child);
  if (result != CUDA_SUCCESS) return result;
  result = make ? d->cuGraphAddChildGraphNode(&node->handle, x->graph, &after, after != NULL, child)
                : d->cuGraphExecChildGraphNodeSetParams(x->exec, node->handle, child);
  d->cuGraphDestroy(child);
  return result;
}

/* Behind the node `after`, which may be NULL. */
static cuda_result cu_graph_add(cuda_run *run, cu_graph *x, cuda_node *node, cuda_graph_node after, void **parameters) {
  const cuda_driver *d = &run->device->driver;
  if (node->by_library) return cu_graph_put_library(run, x, node, true, after);
  if (!node->kernel) {
    cuda_copy_node what = cu_graph_copy(node);
    return d->cuGraphAddMemcpyNode(&node->handle, x->graph, &after, after != NULL, &what, run->device->context);
  }
  cuda_kernel_node what = cu_graph_kernel(node, parameters);
  return d->cuGraphAddKernelNode_v2(&node->handle, x->graph, &after, after != NULL, &what);
}

static cuda_result cu_graph_set(cuda_run *run, const cu_graph *x, cuda_node *node, void **parameters) {
  const cuda_driver *d = &run->device->driver;
  if (node->by_library) return cu_graph_put_library(run, x, node, false, NULL);
  if (!node->kernel) {
    cuda_copy_node what = cu_graph_copy(node);
    return d->cuGraphExecMemcpyNodeSetParams(x->exec, node->handle, &what, run->device->context);
  }
  cuda_kernel_node what = cu_graph_kernel(node, parameters);
  return d->cuGraphExecKernelNodeSetParams_v2(x->exec, node->handle, &what);
}

/* --- a graph for a call --- */

/* Lists the entry's nodes. */
static int cu_graph_list(cuda_run *run, const cuda_address *leaves, cuda_nodes *nodes) {
  const rt_executable *exe = &run->exe->base;
  run->nodes = nodes;
  int status =
      cuda_run_program(run, exe->plan, leaves, leaves + exe->n_arguments, leaves[exe->n_arguments + exe->n_results]);
  run->nodes = NULL;
  return status;
}

/* Room for the pointers of any node. */
static void **cu_graph_parameters(cuda_run *run, const cuda_nodes *nodes) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < nodes->n; i++) most = nodes->items[i].n > most ? nodes->items[i].n : most;
  return BASE_ARRAY(&run->arena, void *, most);
}

/* One node after the other, as their steps are. */
static cuda_result cu_graph_build(cuda_run *run, cu_graph *x, void **parameters) {
  const cuda_driver *d = &run->device->driver;
  cuda_graph_node after = NULL;
  cuda_result result = d->cuGraphCreate(&x->graph, 0);
  for (uint32_t i = 0; i < x->nodes.n && result == CUDA_SUCCESS; i++) {
    result = cu_graph_add(run, x, &x->nodes.items[i], after, parameters);
    after = x->nodes.items[i].handle;
  }
  return result == CUDA_SUCCESS ? d->cuGraphInstantiateWithFlags(&x->exec, x->graph, 0) : result;
}

/* Whether the nodes are those of before but for values. */
static bool cu_graph_is_like(const cuda_nodes *a, const cuda_nodes *b) {
  bool like = a->n == b->n;
  for (uint32_t i = 0; i < a->n && like; i++)
    like = a->items[i].kernel == b->items[i].kernel && a->items[i].n == b->items[i].n &&
           a->items[i].by_library == b->items[i].by_library;
  return like;
}

/* The nodes whose values have changed are told. */
static cuda_result cu_graph_change(cuda_run *run, cu_graph *x, const cuda_nodes *now, void **parameters) {
  cuda_result result = CUDA_SUCCESS;
  for (uint32_t i = 0; i < now->n && result == CUDA_SUCCESS; i++) {
    cuda_node *node = &x->nodes.items[i];
    size_t bytes = node->n * sizeof *node->values;
    if (memcmp(node->values, now->items[i].values, bytes) == 0) continue;
    memcpy(node->values, now->items[i].values, bytes);
    result = cu_graph_set(run, x, node, parameters);
  }
  return result;
}

/* What the driver has of it. */
static void cu_graph_drop(const cuda_driver *d, base_alloc alloc, cu_graph *x) {
  if (x->exec) d->cuGraphExecDestroy(x->exec);
  if (x->graph) d->cuGraphDestroy(x->graph);
  x->exec = NULL;
  x->graph = NULL;
  BASE_VEC_FREE(alloc, &x->nodes);
  base_arena_free(&x->arena);
}

static int cu_graph_make(cuda_run *run, cu_graph *x, const cuda_address *leaves, size_t n, cuda_result *result) {
  rt_tally before = run->tally;
  base_arena_init(&x->arena, run->exe->alloc);
  x->nodes = (cuda_nodes){.arena = &x->arena, .alloc = run->exe->alloc};
  TRY(cu_graph_list(run, leaves, &x->nodes));
  void **parameters = cu_graph_parameters(run, &x->nodes);
  x->addresses = BASE_ARRAY(&x->arena, cuda_address, n);
  if (!parameters || !x->addresses) return base_oom(run->ctx.err, "a launch graph");
  x->tally = (rt_tally){.copies = run->tally.copies - before.copies, .bytes = run->tally.bytes - before.bytes};
  run->tally = before;
  *result = cu_graph_build(run, x, parameters);
  return 0;
}

/* Copies that are none where both sides are one make another graph. */
static int cu_graph_move(cuda_run *run, cu_graph *x, const cuda_address *leaves, size_t n, cuda_result *result) {
  cuda_nodes now = {.arena = &run->arena, .alloc = run->exe->alloc};
  rt_tally before = run->tally;
  int status = cu_graph_list(run, leaves, &now);
  void **parameters = cu_graph_parameters(run, &now);
  run->tally = before;
  if (status == 0 && !parameters) status = base_oom(run->ctx.err, "a launch graph");
  if (status == 0 && cu_graph_is_like(&x->nodes, &now)) {
    *result = cu_graph_change(run, x, &now, parameters);
  } else if (status == 0) {
    cu_graph_drop(&run->device->driver, run->exe->alloc, x);
    status = cu_graph_make(run, x, leaves, n, result);
  }
  BASE_VEC_FREE(run->exe->alloc, &now);
  return status;
}

/* --- those of an executable --- */

/* One that is idle: that of these addresses, else a new one while there are few, else the one not used for longest. The
 * lock is held. */
static cu_graph *cu_graph_choose(struct cuda_graphs *g, base_alloc alloc, const cuda_address *key, size_t n) {
  cu_graph *oldest = NULL;
  for (cu_graph *x = g->first; x; x = x->next) {
    if (x->busy) continue;
    if (x->exec && memcmp(x->addresses, key, n * sizeof *key) == 0) return x;
    if (!x->exec || !oldest || (oldest->exec && x->used < oldest->used)) oldest = x;
  }
  if (g->n == CU_GRAPH_KEPT || (oldest && !oldest->exec)) return oldest;
  cu_graph *x = base_malloc(alloc, sizeof *x);
  if (!x) return oldest;
  *x = (cu_graph){.next = g->first};
  base_arena_init(&x->arena, alloc);
  g->first = x;
  g->n++;
  return x;
}

/* Programs that are called once have none; large ones must be called more often. */
static cu_graph *cu_graph_take(const cuda_executable *exe, const cuda_address *key, size_t n) {
  struct cuda_graphs *g = exe->graphs;
  pthread_mutex_lock(&g->lock);
  bool wanted = !g->refused && g->calls++ > exe->n_nodes / CU_GRAPH_EARLY;
  cu_graph *x = wanted ? cu_graph_choose(g, exe->alloc, key, n) : NULL;
  if (x) {
    x->busy = true;
    x->used = g->calls;
  }
  pthread_mutex_unlock(&g->lock);
  return x;
}

static void cu_graph_give(struct cuda_graphs *g, cu_graph *x, bool refused) {
  pthread_mutex_lock(&g->lock);
  x->busy = false;
  g->refused = g->refused || refused;
  pthread_mutex_unlock(&g->lock);
}

/* A graph that the driver refuses is none; then calls go step by step, which also says what is wrong. */
static int cu_graph_prepare(cuda_run *run, cu_graph *x, const cuda_address *leaves, size_t n, cuda_result *result) {
  if (x->exec && memcmp(x->addresses, leaves, n * sizeof *leaves) == 0) return 0;
  int status = x->exec ? cu_graph_move(run, x, leaves, n, result) : cu_graph_make(run, x, leaves, n, result);
  if (status || *result != CUDA_SUCCESS)
    cu_graph_drop(&run->device->driver, run->exe->alloc, x);
  else
    memcpy(x->addresses, leaves, n * sizeof *leaves);
  return status;
}

int cuda_graph_run(cuda_run *run, const cuda_address *leaves, bool *done) {
  const cuda_executable *exe = run->exe;
  size_t n = (size_t)exe->base.n_arguments + exe->base.n_results + 1;
  cuda_result result = CUDA_SUCCESS;
  *done = false;
  cu_graph *x = exe->graphs && !run->marks ? cu_graph_take(exe, leaves, n) : NULL;
  if (!x) return 0;
  int status = cu_graph_prepare(run, x, leaves, n, &result);
  bool made = status == 0 && result == CUDA_SUCCESS;
  if (made)
    status = cuda_check(&run->device->driver, run->device->driver.cuGraphLaunch(x->exec, run->stream),
                        "launching a graph", run->ctx.err);
  if (made) {
    run->tally.copies += x->tally.copies;
    run->tally.bytes += x->tally.bytes;
  }
  *done = made;
  cu_graph_give(exe->graphs, x, result != CUDA_SUCCESS && result != CUDA_OUT_OF_MEMORY);
  return status;
}

void cuda_graphs_destroy(cuda_executable *exe) {
  struct cuda_graphs *g = exe->graphs;
  if (!g) return;
  while (g->first) {
    cu_graph *x = g->first;
    assert(!x->busy);
    g->first = x->next;
    cu_graph_drop(&exe->device->driver, exe->alloc, x);
    base_free(exe->alloc, x);
  }
  pthread_mutex_destroy(&g->lock);
  base_free(exe->alloc, g);
  exe->graphs = NULL;
}
