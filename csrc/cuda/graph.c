/* Launch graphs: made of the nodes of a call, kept by the executable, and given new addresses. */
#include "product.h"
#include "run.h"

enum {
  CU_GRAPH_LEAST = 3,      /* nodes from which on a graph is worth it */
  CU_GRAPH_MOST = 1 << 14, /* nodes: each takes about a kilobyte of the driver's */
  CU_GRAPH_EARLY = 512,    /* so many nodes are made a graph at the second call, twice as many at the third, ... */
  CU_GRAPH_TURNS = 8,      /* of a loop that the host turns, before its steps are a graph */
  CU_GRAPH_KEPT = 4        /* graphs of a stretch: a loop's two states, and calls of several threads */
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

/* What a call has in it, as far as it is looked at. */
typedef struct cu_graph_count {
  const cuda_executable *exe;
  uint64_t n;      /* nodes */
  const char *why; /* it is no graph; NULL: it is one. Because of op, or NULL */
  const ir_op *op;
  bool conditions;
} cu_graph_count;

/* Nodes of a call of p are added, until there are too many. Depth is that of the plan's programs. */
static void cu_graph_count_program(cu_graph_count *x, const plan_program *p);

static uint64_t cu_graph_count_nested(cu_graph_count *x, const plan_program *p) {
  const uint64_t before = x->n;
  x->n = 0;
  cu_graph_count_program(x, p);
  const uint64_t own = x->n;
  x->n = before;
  return own;
}

/* A loop or a branch, which the GPU decides about where its driver lets it. */
static void cu_graph_count_conditions(cu_graph_count *x, const plan_step *s, const char *otherwise) {
  const cuda_driver *d = &x->exe->device->driver;
  base_dtype t = s->kind == PLAN_CONDITIONAL ? (base_dtype)ir_operand_type(s->op, 0)->dtype : XLAC_PRED;
  x->conditions = d->conditions && d->compiler.handle && (t == XLAC_PRED || t == XLAC_S32);
  if (!x->conditions) x->why = otherwise;
}

static void cu_graph_count_loop(cu_graph_count *x, const plan_step *s, int64_t trips) {
  uint64_t body = 1;
  if (trips == CUDA_TRIPS_UNKNOWN) cu_graph_count_conditions(x, s, "has a condition that the host reads");
  if (trips) body += cu_graph_count_nested(x, s->nested[1]);
  if (trips == CUDA_TRIPS_UNKNOWN) body += cu_graph_count_nested(x, s->nested[0]);
  x->n += 2u * s->n_in + (trips == CUDA_TRIPS_UNKNOWN ? 3 * body + 8 : (uint64_t)trips * body);
}

static void cu_graph_count_step(cu_graph_count *x, const plan_step *s, const cuda_kernel *k, int64_t trips) {
  switch ((plan_step_kind)s->kind) {
    case PLAN_KERNEL:
    case PLAN_ROUTINE:
      if (!k->printed && !k->product) x->why = k->collective ? "meets other GPUs" : "is computed on the host";
      x->n += k->launch.rounds + 1u + (k->launch.changes ? s->n_out : 0);
      break;
    case PLAN_WHILE:
      cu_graph_count_loop(x, s, trips);
      break;
    case PLAN_CONDITIONAL:
      cu_graph_count_conditions(x, s, "is a branch that the host takes");
      for (uint32_t i = 0; i < s->n_nested; i++) cu_graph_count_program(x, s->nested[i]);
      x->n += 2u * s->n_nested;
      break;
    case PLAN_START:
      if (!s->n_nested && s->op->opcode != IR_OP_COPY_START) x->why = "is computed on the host";
      /* fall through */
    case PLAN_CALL:
      if (s->n_nested) cu_graph_count_program(x, s->nested[0]);
      /* fall through */
    case PLAN_COPY:
      ++x->n;
      break;
    case PLAN_UPDATE:
    case PLAN_DONE:
      break;
  }
  if (x->why && !x->op) x->op = s->op;
}

static void cu_graph_count_program(cu_graph_count *x, const plan_program *p) {
  const cuda_code *code = &x->exe->codes[p->number];
  for (uint32_t i = 0; i < p->n_steps && !x->why && x->n <= CU_GRAPH_MOST; i++)
    cu_graph_count_step(x, &p->steps[i], &code->kernels[i], code->trips[i]);
}

/* --- stretches --- */

/* Steps from x->from on, of which the last is before `to`. Without memory for it there is no graph. */
static void cu_graph_add_stretch(cuda_executable *exe, const plan_program *p, uint32_t from, uint32_t to,
                                 const cu_graph_count *x) {
  cuda_code *code = &exe->codes[p->number];
  assert(!x->why && from <= to);
  struct cuda_graphs *graphs = x->n < CU_GRAPH_LEAST ? NULL : base_malloc(exe->alloc, sizeof *graphs);
  if (!graphs) return;
  *graphs = (struct cuda_graphs){.first = NULL};
  pthread_mutex_init(&graphs->lock, NULL);
  code->stretches[code->n_stretches++] = (cuda_stretch){from, to, x->n, graphs};
  exe->conditions = exe->conditions || x->conditions;
}

/* Of p, and of what those of its steps run that are no nodes: each ends a stretch, as what would be too much does.
 * Depth is that of the plan's programs. */
static int cu_graph_cut(cuda_executable *exe, const plan_program *p, xlac_error *err) {
  cuda_code *code = &exe->codes[p->number];
  cu_graph_count all = {.exe = exe};
  uint32_t from = 0;
  if (code->cut) return 0;
  code->cut = true;
  code->stretches = BASE_ARRAY(&exe->arena, cuda_stretch, p->n_steps + (size_t)1);
  if (!code->stretches) return base_oom(err, "an executable");
  for (uint32_t i = 0; i < p->n_steps; i++) {
    cu_graph_count own = {.exe = exe};
    cu_graph_count_step(&own, &p->steps[i], &code->kernels[i], code->trips[i]);
    const bool out = own.why || own.n > CU_GRAPH_MOST;
    if (!out && all.n + own.n <= CU_GRAPH_MOST) {
      all.n += own.n;
      all.conditions = all.conditions || own.conditions;
      continue;
    }
    cu_graph_add_stretch(exe, p, from, i, &all);
    from = out ? i + 1 : i;
    all = out ? (cu_graph_count){.exe = exe} : own;
    for (uint32_t j = 0; out && j < p->steps[i].n_nested; j++) TRY(cu_graph_cut(exe, p->steps[i].nested[j], err));
  }
  cu_graph_add_stretch(exe, p, from, p->n_steps, &all);
  return 0;
}

int cuda_graph_plan(cuda_executable *exe, xlac_error *err) {
  cu_graph_count all = {.exe = exe};
  assert(!exe->no_graph && !exe->conditions);
  cu_graph_count_program(&all, exe->base.plan);
  exe->n_nodes = all.n;
  exe->no_graph = all.why;
  exe->no_graph_op = all.op;
  if (exe->checks)
    exe->no_graph = "XLAC_CUDA_CHECK waits for each step";
  else if (!exe->no_graph && all.n < CU_GRAPH_LEAST)
    exe->no_graph = "there is too little in it";
  else if (!exe->no_graph && all.n > CU_GRAPH_MOST)
    exe->no_graph = "there is too much in it";
  return exe->checks ? 0 : cu_graph_cut(exe, exe->base.plan, err);
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

/* --- a graph for a stretch --- */

static int cu_graph_list(cuda_run *run, const cuda_passage *at, cuda_nodes *nodes) {
  assert(!run->nodes);
  run->nodes = nodes;
  run->n_conditions = 0;
  int status = cuda_run_steps(run, at->p, at->stretch->from, at->stretch->to, at->addresses);
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

static int cu_graph_make(cuda_run *run, cu_graph *x, const cuda_passage *at, cuda_result *result) {
  rt_tally before = run->tally;
  base_arena_init(&x->arena, run->exe->alloc);
  x->nodes = (cuda_nodes){.arena = &x->arena, .alloc = run->exe->alloc};
  TRY(cu_graph_list(run, at, &x->nodes));
  void **parameters = cu_graph_parameters(run, &x->nodes);
  x->addresses = BASE_ARRAY(&x->arena, cuda_address, at->n);
  x->handles = BASE_ARRAY(&x->arena, uint64_t, run->n_conditions + 1u);
  if (!parameters || !x->addresses || !x->handles) return base_oom(run->ctx.err, "a launch graph");
  x->tally = (rt_tally){.copies = run->tally.copies - before.copies, .bytes = run->tally.bytes - before.bytes};
  run->tally = before;
  *result = cu_graph_build(run, x, parameters);
  return 0;
}

/* Copies that are none where both sides are one make another graph. */
static int cu_graph_move(cuda_run *run, cu_graph *x, const cuda_passage *at, cuda_result *result) {
  cuda_nodes now = {.arena = &run->arena, .alloc = run->exe->alloc};
  rt_tally before = run->tally;
  int status = cu_graph_list(run, at, &now);
  void **parameters = cu_graph_parameters(run, &now);
  run->tally = before;
  if (status == 0 && !parameters) status = base_oom(run->ctx.err, "a launch graph");
  if (status == 0 && cu_graph_is_like(&x->nodes, &now)) {
    *result = cu_graph_change(run, x, &now, parameters);
  } else if (status == 0) {
    cu_graph_drop(&run->device->driver, x);
    status = cu_graph_make(run, x, at, result);
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

/* What is gone through once has none; what is large, or within a loop of the host's, must be gone through more often.
 */
static cu_graph *cu_graph_take(const cuda_executable *exe, const cuda_passage *at) {
  struct cuda_graphs *g = at->stretch->graphs;
  const uint64_t before = at->stretch->n_nodes / CU_GRAPH_EARLY + (at->p == exe->base.plan ? 0 : CU_GRAPH_TURNS);
  pthread_mutex_lock(&g->lock);
  bool wanted = !g->refused && g->calls++ > before;
  cu_graph *x = wanted ? cu_graph_choose(g, exe->alloc, at->key, at->n) : NULL;
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
static int cu_graph_prepare(cuda_run *run, cu_graph *x, const cuda_passage *at, cuda_result *result) {
  if (x->exec && memcmp(x->addresses, at->key, at->n * sizeof *at->key) == 0) return 0;
  int status = x->exec ? cu_graph_move(run, x, at, result) : cu_graph_make(run, x, at, result);
  if (status || *result != CUDA_SUCCESS)
    cu_graph_drop(&run->device->driver, x);
  else
    memcpy(x->addresses, at->key, at->n * sizeof *at->key);
  return status;
}

int cuda_graph_run(cuda_run *run, const cuda_passage *at, bool *done) {
  cuda_result result = CUDA_SUCCESS;
  *done = false;
  assert(!run->nodes && !run->marks);
  cu_graph *x = cu_graph_take(run->exe, at);
  if (!x) return 0;
  int status = cu_graph_prepare(run, x, at, &result);
  bool made = status == 0 && result == CUDA_SUCCESS;
  if (made)
    status = cuda_check(&run->device->driver, run->device->driver.cuGraphLaunch(x->exec, run->stream),
                        "launching a graph", run->ctx.err);
  if (made) {
    run->tally.copies += x->tally.copies;
    run->tally.bytes += x->tally.bytes;
  }
  *done = made;
  cu_graph_give(at->stretch->graphs, x, result != CUDA_SUCCESS && result != CUDA_OUT_OF_MEMORY);
  return status;
}

static void cu_graphs_free(const cuda_executable *exe, struct cuda_graphs *g) {
  while (g->first) {
    cu_graph *x = g->first;
    assert(!x->busy);
    g->first = x->next;
    cu_graph_drop(&exe->device->driver, x);
    base_free(exe->alloc, x);
  }
  pthread_mutex_destroy(&g->lock);
  base_free(exe->alloc, g);
}

void cuda_graphs_destroy(cuda_executable *exe) {
  for (uint32_t i = 0; i < exe->base.plan->n_programs; i++) {
    cuda_code *code = &exe->codes[i];
    for (uint32_t j = 0; j < code->n_stretches; j++) cu_graphs_free(exe, code->stretches[j].graphs);
    code->n_stretches = 0;
  }
}
