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
  uint64_t *handles; /* of conditions, by number */
  rt_tally tally;    /* of a call */
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

cuda_node *cuda_nodes_add(cuda_nodes *list, cuda_node_kind kind, const cuda_kernel *kernel, uint32_t n,
                          const uint64_t *values) {
  cuda_node node = {
      .kind = kind, .kernel = kernel, .n = n, .values = base_arena_memdup(list->arena, values, n * sizeof *values)};
  return node.values && BASE_VEC_PUSH(list->alloc, list, node) ? &list->items[list->n - 1] : NULL;
}

/* Depth is that of the plan's programs. */
static void cu_graph_free_nodes(cuda_nodes *list) {
  for (uint32_t i = 0; i < list->n; i++)
    if (list->items[i].body) cu_graph_free_nodes(list->items[i].body);
  BASE_VEC_FREE(list->alloc, list);
}

/* Nodes of a call of p are added to n, until there are too many. Depth is that of the plan's programs. */
static void cu_graph_count(cuda_executable *exe, const plan_program *p, uint64_t *n);

/* A loop or a branch, which the GPU decides about where its driver lets it. */
static void cu_graph_count_conditions(cuda_executable *exe, const plan_step *s, const char *otherwise) {
  base_dtype t = s->kind == PLAN_CONDITIONAL ? (base_dtype)ir_operand_type(s->op, 0)->dtype : XLAC_PRED;
  exe->conditions =
      exe->device->driver.conditions && exe->device->driver.compiler.handle && (t == XLAC_PRED || t == XLAC_S32);
  if (!exe->conditions) exe->no_graph = otherwise;
}

static void cu_graph_count_step(cuda_executable *exe, const plan_step *s, const cuda_kernel *k, int64_t trips,
                                uint64_t *n) {
  uint64_t body = 1;
  switch ((plan_step_kind)s->kind) {
    case PLAN_KERNEL:
    case PLAN_ROUTINE:
      if (!k->printed && !k->product) exe->no_graph = k->collective ? "meets other GPUs" : "is computed on the host";
      *n += k->launch.rounds + 1u + (k->launch.changes ? s->n_out : 0);
      break;
    case PLAN_WHILE:
      if (trips == CUDA_TRIPS_UNKNOWN) cu_graph_count_conditions(exe, s, "has a condition that the host reads");
      if (trips) cu_graph_count(exe, s->nested[1], &body);
      if (trips == CUDA_TRIPS_UNKNOWN) cu_graph_count(exe, s->nested[0], &body);
      *n += 2u * s->n_in + (trips == CUDA_TRIPS_UNKNOWN ? 3 * body + 8 : (uint64_t)trips * body);
      break;
    case PLAN_CONDITIONAL:
      cu_graph_count_conditions(exe, s, "is a branch that the host takes");
      for (uint32_t i = 0; i < s->n_nested; i++) cu_graph_count(exe, s->nested[i], n);
      *n += 2u * s->n_nested;
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
  exe->conditions = exe->conditions && !exe->no_graph;
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
  assert(node->n == 3 && node->kind == CUDA_NODE_COPY);
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

/* The node is made in `graph`, or of `exec` told what to do from now on, as a graph of the library's. */
static cuda_result cu_graph_put_library(cuda_run *run, cuda_graph_exec exec, cuda_graph graph, cuda_node *node,
                                        cuda_graph_node after) {
  const cuda_driver *d = &run->device->driver;
  cuda_graph child = NULL;
  cuda_result result = cu_graph_capture(run, node, &child);
  if (result != CUDA_SUCCESS) return result;
  result = graph ? d->cuGraphAddChildGraphNode(&node->handle, graph, &after, after != NULL, child)
                 : d->cuGraphExecChildGraphNodeSetParams(exec, node->handle, child);
  d->cuGraphDestroy(child);
  return result;
}

/* What a graph is being made of. */
typedef struct cu_graph_making {
  cuda_run *run;
  const cu_graph *x;
  void **parameters; /* room for those of any node */
  cuda_function set;
} cu_graph_making;

static cuda_result cu_graph_fill(cu_graph_making *m, cuda_graph graph, cuda_nodes *list);

/* Nodes that are run by a condition are a graph of the driver's making. */
static cuda_result cu_graph_add_condition(cu_graph_making *m, cuda_graph graph, cuda_node *node,
                                          cuda_graph_node after) {
  cuda_node_parameters what = {.type = CUDA_NODE_CONDITION,
                               .as.condition = {.handle = m->x->handles[node->values[0]],
                                                .type = node->kind == CUDA_NODE_WHILE,
                                                .size = 1,
                                                .context = m->run->device->context}};
  cuda_result result =
      m->run->device->driver.cuGraphAddNode_v2(&node->handle, graph, &after, NULL, after != NULL, &what);
  return result == CUDA_SUCCESS ? cu_graph_fill(m, what.as.condition.graphs[0], node->body) : result;
}

static cuda_kernel_node cu_graph_set_kernel(const cu_graph_making *m, cuda_node *node) {
  node->values[0] = m->x->handles[node->values[0]];
  for (uint32_t i = 0; i < node->n; i++) m->parameters[i] = &node->values[i];
  return (cuda_kernel_node){.function = m->set, .grid = {1, 1, 1}, .block = {1, 1, 1}, .parameters = m->parameters};
}

/* Behind the node `after`, which may be NULL. */
static cuda_result cu_graph_add(cu_graph_making *m, cuda_graph graph, cuda_node *node, cuda_graph_node after) {
  const cuda_driver *d = &m->run->device->driver;
  cuda_copy_node copy;
  cuda_kernel_node kernel;
  switch (node->kind) {
    case CUDA_NODE_LIBRARY:
      return cu_graph_put_library(m->run, NULL, graph, node, after);
    case CUDA_NODE_COPY:
      copy = cu_graph_copy(node);
      return d->cuGraphAddMemcpyNode(&node->handle, graph, &after, after != NULL, &copy, m->run->device->context);
    case CUDA_NODE_IF:
    case CUDA_NODE_WHILE:
      return cu_graph_add_condition(m, graph, node, after);
    case CUDA_NODE_SET:
    case CUDA_NODE_KERNEL:
      break;
  }
  kernel = node->kind == CUDA_NODE_SET ? cu_graph_set_kernel(m, node) : cu_graph_kernel(node, m->parameters);
  return d->cuGraphAddKernelNode_v2(&node->handle, graph, &after, after != NULL, &kernel);
}

/* One node after the other, as their steps are. */
static cuda_result cu_graph_fill(cu_graph_making *m, cuda_graph graph, cuda_nodes *list) {
  cuda_graph_node after = NULL;
  cuda_result result = CUDA_SUCCESS;
  for (uint32_t i = 0; i < list->n && result == CUDA_SUCCESS; i++) {
    if (list->items[i].body && list->items[i].body->n == 0) continue;
    result = cu_graph_add(m, graph, &list->items[i], after);
    after = list->items[i].handle;
  }
  return result;
}

static cuda_result cu_graph_set(cuda_run *run, const cu_graph *x, cuda_node *node, void **parameters) {
  const cuda_driver *d = &run->device->driver;
  if (node->kind == CUDA_NODE_LIBRARY) return cu_graph_put_library(run, x->exec, NULL, node, NULL);
  if (node->kind == CUDA_NODE_COPY) {
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
  run->n_conditions = 0;
  int status =
      cuda_run_program(run, exe->plan, leaves, leaves + exe->n_arguments, leaves[exe->n_arguments + exe->n_results]);
  run->nodes = NULL;
  return status;
}

static uint32_t cu_graph_most_values(const cuda_nodes *nodes) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < nodes->n; i++) {
    const cuda_node *node = &nodes->items[i];
    uint32_t own = node->body ? cu_graph_most_values(node->body) : node->n;
    most = own > most ? own : most;
  }
  return most;
}

/* Room for the pointers of any node. */
static void **cu_graph_parameters(cuda_run *run, const cuda_nodes *nodes) {
  return BASE_ARRAY(&run->arena, void *, cu_graph_most_values(nodes));
}

/* Conditions are false until they are set. */
static cuda_result cu_graph_make_conditions(cu_graph_making *m, cuda_graph graph) {
  const cuda_device *d = m->run->device;
  cuda_result result =
      m->run->n_conditions ? cuda_condition_kernel(m->run->device, m->run->exe->alloc, &m->set) : CUDA_SUCCESS;
  for (uint32_t i = 0; i < m->run->n_conditions && result == CUDA_SUCCESS; i++)
    result = d->driver.cuGraphConditionalHandleCreate(&m->x->handles[i], graph, d->context, 0, CUDA_CONDITION_INITIAL);
  return result;
}

static cuda_result cu_graph_build(cuda_run *run, cu_graph *x, void **parameters) {
  const cuda_driver *d = &run->device->driver;
  cu_graph_making m = {run, x, parameters, NULL};
  cuda_result result = d->cuGraphCreate(&x->graph, 0);
  if (result == CUDA_SUCCESS) result = cu_graph_make_conditions(&m, x->graph);
  if (result == CUDA_SUCCESS) result = cu_graph_fill(&m, x->graph, &x->nodes);
  return result == CUDA_SUCCESS ? d->cuGraphInstantiateWithFlags(&x->exec, x->graph, 0) : result;
}

/* Whether the nodes are those of before but for values. What has conditions is made anew: no call changes nodes within.
 */
static bool cu_graph_is_like(const cuda_nodes *a, const cuda_nodes *b) {
  bool like = a->n == b->n;
  for (uint32_t i = 0; i < a->n && like; i++)
    like = a->items[i].kernel == b->items[i].kernel && a->items[i].n == b->items[i].n &&
           a->items[i].kind == b->items[i].kind && !a->items[i].body;
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
static void cu_graph_drop(const cuda_driver *d, cu_graph *x) {
  if (x->exec) d->cuGraphExecDestroy(x->exec);
  if (x->graph) d->cuGraphDestroy(x->graph);
  x->exec = NULL;
  x->graph = NULL;
  cu_graph_free_nodes(&x->nodes);
  base_arena_free(&x->arena);
}

static int cu_graph_make(cuda_run *run, cu_graph *x, const cuda_address *leaves, size_t n, cuda_result *result) {
  rt_tally before = run->tally;
  base_arena_init(&x->arena, run->exe->alloc);
  x->nodes = (cuda_nodes){.arena = &x->arena, .alloc = run->exe->alloc};
  TRY(cu_graph_list(run, leaves, &x->nodes));
  void **parameters = cu_graph_parameters(run, &x->nodes);
  x->addresses = BASE_ARRAY(&x->arena, cuda_address, n);
  x->handles = BASE_ARRAY(&x->arena, uint64_t, run->n_conditions + 1u);
  if (!parameters || !x->addresses || !x->handles) return base_oom(run->ctx.err, "a launch graph");
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
    cu_graph_drop(&run->device->driver, x);
    status = cu_graph_make(run, x, leaves, n, result);
  }
  cu_graph_free_nodes(&now);
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
    cu_graph_drop(&run->device->driver, x);
  else
    memcpy(x->addresses, leaves, n * sizeof *leaves);
  return status;
}

int cuda_graph_run(cuda_run *run, const cuda_address *leaves, bool *done) {
  const cuda_executable *exe = run->exe;
  size_t n = (size_t)exe->base.n_arguments + exe->base.n_results + 2;
  cuda_result result = CUDA_SUCCESS;
  *done = false;
  cu_graph *x = exe->graphs && !run->marks ? cu_graph_take(exe, leaves, n) : NULL;
  if (!x) return 0;
  int status = cu_graph_prepare(run, x, leaves, n, &result);
  bool made = status == 0 && result == CUDA_SUCCESS;
  if (run->stop) *run->stop = 0;
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
    cu_graph_drop(&exe->device->driver, x);
    base_free(exe->alloc, x);
  }
  pthread_mutex_destroy(&g->lock);
  base_free(exe->alloc, g);
  exe->graphs = NULL;
}
