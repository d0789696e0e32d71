/* Graphs, node by node or by capture. What is enqueued on a stream that captures becomes a node behind the nodes that
 * it is ordered after; a launch is one piece of work of its stream, whose nodes are ordered among each other by the
 * graph alone, so that an order which the graph lacks is a race, whatever the order they are run in. Nodes are shared
 * by the graph and what is made of it. */
#include "sim.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH = 0x47524150, EXEC = 0x45584543 };

typedef struct graph_node {
  sim_work *work;
  const char *what, *name;
  uint32_t references, n_after, *after;
} graph_node;

typedef struct sim_graph {
  uint64_t magic;
  sim_device *device;
  graph_node **nodes;
  uint32_t n, number;
} sim_graph;

typedef struct sim_exec {
  uint64_t magic;
  sim_device *device;
  graph_node **nodes, **origins; /* origins: those of the graph, by which nodes are told apart */
  uint32_t n;
  sim_order *order;
  sim_event *last; /* a launch is after the one before, on whatever stream */
} sim_exec;

typedef struct graph_work {
  sim_work work;
  graph_node **nodes;
  sim_op **ops;
  const sim_order *order;
  uint32_t n;
} graph_work;

static void release_node(graph_node *n) {
  if (--n->references > 0) return;
  if (n->work->release != NULL) n->work->release(n->work);
  free(n->work);
  free(n->after);
  free(n);
}

static void release_nodes(graph_node **nodes, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) release_node(nodes[i]);
  free(nodes);
}

static graph_node **share_nodes(graph_node **nodes, uint32_t n) {
  graph_node **copy = malloc((n + 1) * sizeof *copy);
  for (uint32_t i = 0; i < n; i++) copy[i] = nodes[i], nodes[i]->references++;
  return copy;
}

static void set_after(uint32_t **to, uint32_t *n_to, const uint32_t *from, uint32_t n) {
  uint32_t *copy = malloc((n + 1) * sizeof *copy);
  if (n > 0) memcpy(copy, from, n * sizeof *copy);
  free(*to);
  *to = copy;
  *n_to = n;
}

static graph_node *new_node(sim_work *w, const char *what, const char *name, const uint32_t *after, uint32_t n) {
  graph_node *node = calloc(1, sizeof *node);
  *node = (graph_node){.work = w, .what = what, .name = name, .references = 1};
  set_after(&node->after, &node->n_after, after, n);
  return node;
}

static graph_node *append_node(sim_graph *g, graph_node *node) {
  g->nodes = realloc(g->nodes, (g->n + 1) * sizeof *g->nodes);
  return g->nodes[g->n++] = node;
}

/* ---- node by node ---- */

typedef struct kernel_node { /* CUDA_KERNEL_NODE_PARAMS_v2 */
  sim_kernel *function;
  unsigned grid[3], block[3], shared;
  void **parameters, **extra, *kernel, *context;
} kernel_node;

typedef struct copy_side { /* of CUDA_MEMCPY3D */
  size_t x, y, z, level;
  int memory;
  void *host;
  address device;
  void *array, *reserved;
  size_t pitch, height;
} copy_side;
typedef struct copy_node {
  copy_side from, to;
  size_t bytes, height, depth;
} copy_node;

static int kernel_work(const kernel_node *what, sim_work **out) {
  if (what == NULL || what->extra != NULL || what->kernel != NULL || what->context != NULL) return INVALID_VALUE;
  return launch_make(what->function, what->grid, what->block, what->shared, what->parameters, out);
}

/* Lines of device memory, which is all that there is a copy of here. */
static int line_work(const copy_node *what, sim_work **out) {
  if (what == NULL || what->from.memory != 2 || what->to.memory != 2 || what->height != 1 || what->depth != 1)
    return INVALID_VALUE;
  if (what->from.x | what->from.y | what->from.z | what->to.x | what->to.y | what->to.z) return INVALID_VALUE;
  if (what->bytes == 0 || what->from.device == 0 || what->to.device == 0) return INVALID_VALUE;
  if (what->from.pitch < what->bytes || what->to.pitch < what->bytes) return INVALID_VALUE;
  *out = copy_make(what->to.device, what->from.device, what->bytes);
  return SUCCESS;
}

EXPORT int cuGraphCreate(sim_graph **graph, unsigned flags) {
  sim_device *d;
  ENTER_DEVICE(cuGraphCreate, &d);
  if (graph == NULL || flags != 0) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_graph *g = calloc(1, sizeof *g);
  *g = (sim_graph){.magic = GRAPH, .device = d};
  sim.n_graphs++;
  pthread_mutex_unlock(&sim.lock);
  *graph = g;
  return SUCCESS;
}

static uint32_t index_of(graph_node *const *nodes, uint32_t n, const graph_node *node) {
  uint32_t i = 0;
  while (i < n && nodes[n - 1 - i] != node) i++; /* mostly one of the last */
  return i < n ? n - 1 - i : n;
}

/* Takes w. */
static struct {
  uint32_t nth, seen;
} lost;

/* The nth node (counted from 1) that is added behind others from now on is added behind none; 0: none is. How many
 * there have been since the last call. Meant for a test that has the process for itself. */
EXPORT uint32_t cudasim_lose_edge(uint32_t nth) {
  uint32_t seen = lost.seen;
  lost.nth = nth;
  lost.seen = 0;
  return seen;
}

static int add_node(graph_node **out, sim_graph *g, graph_node *const *after, size_t n_after, sim_work *w,
                    const char *what, const char *name) {
  int result = SUCCESS;
  pthread_mutex_lock(&sim.lock);
  if (n_after > 0 && ++lost.seen == lost.nth) n_after = 0;
  uint32_t *numbers = malloc((n_after + 1) * sizeof *numbers);
  for (size_t i = 0; i < n_after; i++) {
    numbers[i] = index_of(g->nodes, g->n, after[i]);
    if (numbers[i] == g->n) result = INVALID_VALUE;
  }
  graph_node *node = new_node(w, what, name, numbers, (uint32_t)n_after);
  if (result == SUCCESS)
    *out = append_node(g, node);
  else
    release_node(node);
  free(numbers);
  pthread_mutex_unlock(&sim.lock);
  return result;
}

static bool is_place(graph_node *const *out, const sim_graph *g, graph_node *const *after, size_t n_after) {
  return out != NULL && g != NULL && g->magic == GRAPH && (after != NULL || n_after == 0);
}

EXPORT int cuGraphAddKernelNode_v2(graph_node **out, sim_graph *g, graph_node *const *after, size_t n_after,
                                   const kernel_node *what) {
  ENTER_DEVICE(cuGraphAddKernelNode_v2, NULL);
  sim_work *w = NULL;
  if (!is_place(out, g, after, n_after)) return INVALID_VALUE;
  int result = kernel_work(what, &w);
  return result != SUCCESS ? result : add_node(out, g, after, n_after, w, "kernel", what->function->name);
}

EXPORT int cuGraphAddMemcpyNode(graph_node **out, sim_graph *g, graph_node *const *after, size_t n_after,
                                const copy_node *what, void *context) {
  ENTER_DEVICE(cuGraphAddMemcpyNode, NULL);
  sim_work *w = NULL;
  if (!is_place(out, g, after, n_after) || context == NULL) return INVALID_VALUE;
  int result = line_work(what, &w);
  return result != SUCCESS ? result : add_node(out, g, after, n_after, w, "copy", "");
}

/* A graph within a graph: its nodes one after another, of which one is not told from the other. Of libraries. */
typedef struct child_work {
  sim_work work;
  graph_node **nodes;
  uint32_t n;
} child_work;

static int execute_child(sim_work *work) {
  const child_work *w = (const child_work *)work;
  int result = SUCCESS;
  for (uint32_t i = 0; i < w->n && result == SUCCESS; i++) {
    w->nodes[i]->work->op = work->op;
    result = w->nodes[i]->work->execute(w->nodes[i]->work);
  }
  return result;
}

static void release_child(sim_work *work) {
  release_nodes(((child_work *)work)->nodes, ((child_work *)work)->n);
}

static sim_work *child_make(sim_graph *g) {
  child_work *w = calloc(1, sizeof *w);
  pthread_mutex_lock(&sim.lock);
  *w = (child_work){.work = {.execute = execute_child, .release = release_child}, .n = g->n};
  w->nodes = share_nodes(g->nodes, g->n);
  pthread_mutex_unlock(&sim.lock);
  return &w->work;
}

EXPORT int cuGraphAddChildGraphNode(graph_node **out, sim_graph *g, graph_node *const *after, size_t n_after,
                                    sim_graph *child) {
  ENTER_DEVICE(cuGraphAddChildGraphNode, NULL);
  if (!is_place(out, g, after, n_after) || child == NULL || child->magic != GRAPH) return INVALID_VALUE;
  return add_node(out, g, after, n_after, child_make(child), "graph", "");
}

/* ---- conditions ---- */

enum { CONDITION = 0x434f4e44, CONDITION_NODE = 13 };

/* What a kernel sets, and a node goes by. Kept for as long as the process: graphs and kernels name it by its address.
 */
typedef struct condition {
  uint64_t magic;
  sim_graph *graph; /* or one within it */
  bool initial;     /* a launch sets it to this */
  unsigned first, value;
  bool taken; /* by a node */
} condition;

/* CUgraphNodeParams, of a condition. */
typedef struct node_parameters {
  int type, reserved[3];
  union {
    struct {
      condition *handle;
      int type;
      unsigned size;
      sim_graph **graphs;
      void *context;
    } condition;
    long long room[29];
  } as;
  long long more;
} node_parameters;

typedef struct condition_work {
  sim_work work;
  condition *handle;
  bool loops;
  sim_graph *body; /* its own */
} condition_work;

static condition *condition_find(uint64_t handle) {
  condition *c = (condition *)(uintptr_t)handle;
  return c != NULL && handle % 8 == 0 && c->magic == CONDITION ? c : NULL;
}

EXPORT int cuGraphConditionalHandleCreate(uint64_t *handle, sim_graph *g, void *context, unsigned first,
                                          unsigned flags) {
  ENTER_DEVICE(cuGraphConditionalHandleCreate, NULL);
  if (handle == NULL || g == NULL || g->magic != GRAPH || context == NULL || flags > 1) return INVALID_VALUE;
  condition *c = calloc(1, sizeof *c);
  *c = (condition){.magic = CONDITION, .graph = g, .initial = flags == 1, .first = first};
  *handle = (uint64_t)(uintptr_t)c;
  return SUCCESS;
}

/* What kernels call. */
EXPORT void cudaGraphSetConditional(unsigned long long handle, unsigned value) {
  condition *c = condition_find(handle);
  if (c == NULL)
    block_abort(report(ILLEGAL_ADDRESS, "condition: kernel %s sets one that there is not", touch.kernel->name));
  c->value = value;
}

static int run_nodes(graph_node **nodes, uint32_t n, sim_op *const *ops, sim_op *op);

/* Its nodes in any order that their edges allow, which is the order that they then have. */
static int execute_condition(sim_work *work) {
  const condition_work *w = (const condition_work *)work;
  int result = SUCCESS;
  while (result == SUCCESS && w->handle->value != 0) {
    result = run_nodes(w->body->nodes, w->body->n, NULL, work->op);
    if (!w->loops) break;
  }
  return result;
}

static void release_condition(sim_work *work) {
  sim_graph *body = ((condition_work *)work)->body;
  release_nodes(body->nodes, body->n);
  body->nodes = NULL;
  body->n = 0;
  body->magic = 0;
}

/* Conditional nodes alone: of others there are entry points by kind. */
EXPORT int cuGraphAddNode_v2(graph_node **out, sim_graph *g, graph_node *const *after, const void *edges,
                             size_t n_after, node_parameters *what) {
  sim_device *d;
  ENTER_DEVICE(cuGraphAddNode_v2, &d);
  if (!is_place(out, g, after, n_after) || edges != NULL || what == NULL || what->type != CONDITION_NODE)
    return INVALID_VALUE;
  condition *c = condition_find((uint64_t)(uintptr_t)what->as.condition.handle);
  if (c == NULL || c->taken || what->as.condition.type < 0 || what->as.condition.type > 1 ||
      what->as.condition.size != 1 || what->as.condition.context != d)
    return INVALID_VALUE;
  condition_work *w = calloc(1, sizeof *w);
  *w = (condition_work){.work = {.execute = execute_condition, .release = release_condition},
                        .handle = c,
                        .loops = what->as.condition.type == 1,
                        .body = calloc(1, sizeof *w->body)};
  *w->body = (sim_graph){.magic = GRAPH, .device = g->device};
  sim_graph **graphs = malloc(sizeof *graphs); /* the driver's, as long as the graph: a few bytes each are left */
  *graphs = w->body;
  what->as.condition.graphs = graphs;
  c->taken = true;
  return add_node(out, g, after, n_after, &w->work, "condition", "");
}

/* A launch begins with the first values. */
static void reset_conditions(graph_node *const *nodes, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    if (nodes[i]->work->execute != execute_condition) continue;
    const condition_work *w = (const condition_work *)nodes[i]->work;
    if (w->handle->initial) w->handle->value = w->handle->first;
    reset_conditions(w->body->nodes, w->body->n);
  }
}

/* ---- capture; sim.lock held ---- */

int graph_capture(sim_stream *s, sim_work *w, const char *what, const char *name) {
  sim_graph *g = s->capture;
  append_node(g, new_node(w, what, name, s->after, s->n_after));
  const uint32_t last = g->n - 1;
  set_after(&s->after, &s->n_after, &last, 1);
  return SUCCESS;
}

int graph_capture_record(sim_stream *s, sim_event *e) {
  e->capture = s->capture;
  set_after(&e->capture_after, &e->n_capture_after, s->after, s->n_after);
  return SUCCESS;
}

int graph_capture_wait(sim_stream *s, sim_event *e) {
  if (e->capture == NULL) return s->capture_error = CAPTURE_ISOLATION;
  if (s->capture != NULL && s->capture != e->capture) return s->capture_error = CAPTURE_MERGE;
  if (s->capture == NULL) s->n_after = 0;
  s->capture = e->capture;
  uint32_t n = s->n_after, *both = malloc((n + e->n_capture_after + 1) * sizeof *both);
  if (n > 0) memcpy(both, s->after, n * sizeof *both);
  for (uint32_t i = 0; i < e->n_capture_after; i++) {
    bool there = false;
    for (uint32_t j = 0; j < n; j++) there |= both[j] == e->capture_after[i];
    if (!there) both[n++] = e->capture_after[i];
  }
  free(s->after);
  s->after = both;
  s->n_after = n;
  return SUCCESS;
}

EXPORT int cuStreamBeginCapture_v2(void *stream, int mode) {
  sim_device *d;
  ENTER_DEVICE(cuStreamBeginCapture_v2, &d);
  if (mode < 0 || mode > 2) return INVALID_VALUE;
  if (stream == NULL) return CAPTURE_UNSUPPORTED;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = s == NULL ? INVALID_HANDLE : s->capture != NULL ? INVALID_VALUE : SUCCESS;
  if (result == SUCCESS) {
    sim_graph *g = calloc(1, sizeof *g);
    *g = (sim_graph){.magic = GRAPH, .device = d};
    sim.n_graphs++;
    s->capture = g;
    s->capture_origin = true;
    s->capture_error = SUCCESS;
    s->n_after = 0;
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

static sim_order *order_of(graph_node **nodes, uint32_t n) {
  uint32_t words = n / 64 + 1;
  sim_order *o = calloc(1, sizeof *o + (size_t)n * words * sizeof *o->bits);
  o->n = n;
  o->words = words;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < nodes[i]->n_after; k++) {
      uint32_t a = nodes[i]->after[k];
      assert(a < i); /* a node is captured behind what it is after */
      for (uint32_t w = 0; w < words; w++) o->bits[i * words + w] |= o->bits[a * words + w];
      o->bits[i * words + a / 64] |= 1ull << (a % 64);
    }
  return o;
}

/* All that the capture has on other streams must be ordered before the end of the stream that began it. */
static bool joined(const sim_stream *s) {
  const sim_graph *g = s->capture;
  bool *seen = calloc(g->n + 1, sizeof *seen), all = true;
  for (uint32_t i = 0; i < s->n_after; i++) seen[s->after[i]] = true;
  for (uint32_t i = g->n; i-- > 0;) {
    all &= seen[i];
    for (uint32_t k = 0; k < g->nodes[i]->n_after && seen[i]; k++) seen[g->nodes[i]->after[k]] = true;
  }
  free(seen);
  return all;
}

static int end_streams(sim_graph *g) {
  int error = SUCCESS;
  for (sim_stream *t = sim.streams; t != NULL; t = t->next) {
    if (t->capture != g) continue;
    if (error == SUCCESS) error = t->capture_error;
    t->capture = NULL;
    t->capture_origin = false;
    t->capture_error = SUCCESS;
    t->n_after = 0;
  }
  return error;
}

static void free_graph(sim_graph *g) {
  release_nodes(g->nodes, g->n);
  g->nodes = NULL;
  g->n = 0;
  g->magic = 0; /* kept: events may name it */
  sim.n_graphs--;
}

EXPORT int cuStreamEndCapture(void *stream, sim_graph **graph) {
  ENTER_DEVICE(cuStreamEndCapture, NULL);
  if (graph == NULL) return INVALID_VALUE;
  *graph = NULL;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = s == NULL            ? INVALID_HANDLE
               : s->capture == NULL ? INVALID_VALUE
               : !s->capture_origin ? CAPTURE_UNMATCHED
                                    : SUCCESS;
  if (result == SUCCESS) {
    sim_graph *g = s->capture;
    bool complete = joined(s);
    int error = end_streams(g);
    result = error != SUCCESS ? CAPTURE_INVALIDATED : !complete ? CAPTURE_UNJOINED : SUCCESS;
    if (result == SUCCESS)
      *graph = g;
    else
      free_graph(g);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

/* CUstreamCaptureStatus: 0 none, 1 active, 2 invalidated. */
EXPORT int cuStreamIsCapturing(void *stream, int *status) {
  ENTER_DEVICE(cuStreamIsCapturing, NULL);
  if (status == NULL) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  if (s != NULL) *status = s->capture == NULL ? 0 : s->capture_error == SUCCESS ? 1 : 2;
  pthread_mutex_unlock(&sim.lock);
  return s != NULL ? SUCCESS : INVALID_HANDLE;
}

/* ---- graphs that are run ---- */

EXPORT int cuGraphInstantiateWithFlags(sim_exec **exec, sim_graph *g, unsigned long long flags) {
  ENTER_DEVICE(cuGraphInstantiateWithFlags, NULL);
  (void)flags;
  if (exec == NULL || g == NULL || g->magic != GRAPH) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_exec *x = calloc(1, sizeof *x);
  *x = (sim_exec){.magic = EXEC,
                  .device = g->device,
                  .n = g->n,
                  .nodes = share_nodes(g->nodes, g->n),
                  .origins = share_nodes(g->nodes, g->n),
                  .order = order_of(g->nodes, g->n)};
  x->last = calloc(1, sizeof *x->last);
  x->last->references = 1;
  sim.n_graphs++;
  pthread_mutex_unlock(&sim.lock);
  *exec = x;
  return SUCCESS;
}

/* CUgraphExecUpdateResult: 0 done, 2 other nodes or order, 3 a node of another kind. */
static int compare_nodes(const sim_exec *x, const sim_graph *g) {
  if (x->n != g->n) return 2;
  for (uint32_t i = 0; i < x->n; i++) {
    const graph_node *a = x->nodes[i], *b = g->nodes[i];
    if (a->n_after != b->n_after || (a->n_after > 0 && memcmp(a->after, b->after, a->n_after * sizeof *a->after) != 0))
      return 2;
    if (a->work->kind != b->work->kind || a->work->execute != b->work->execute) return 3;
  }
  return 0;
}

typedef struct update_result {
  int result;
  void *node, *from;
} update_result;

EXPORT int cuGraphExecUpdate_v2(sim_exec *x, sim_graph *g, update_result *out) {
  ENTER_DEVICE(cuGraphExecUpdate_v2, NULL);
  if (x == NULL || x->magic != EXEC || g == NULL || g->magic != GRAPH) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  int result = compare_nodes(x, g);
  if (result == 0) {
    release_nodes(x->nodes, x->n);
    x->nodes = share_nodes(g->nodes, g->n);
  }
  pthread_mutex_unlock(&sim.lock);
  if (out != NULL) *out = (update_result){.result = result};
  return result == 0 ? SUCCESS : GRAPH_UPDATE_FAILURE;
}

/* Node `node` of the graph that x was made of does other work of its kind from the next launch on. Takes w. */
static int set_node(sim_exec *x, const graph_node *node, sim_work *w, const char *name) {
  pthread_mutex_lock(&sim.lock);
  uint32_t i = index_of(x->origins, x->n, node);
  bool like = i < x->n && x->nodes[i]->work->execute == w->execute;
  graph_node *made = new_node(w, like ? x->nodes[i]->what : "", name, like ? x->nodes[i]->after : NULL,
                              like ? x->nodes[i]->n_after : 0);
  graph_node *gone = like ? x->nodes[i] : made;
  if (like) x->nodes[i] = made;
  release_node(gone);
  pthread_mutex_unlock(&sim.lock);
  return like ? SUCCESS : INVALID_VALUE;
}

EXPORT int cuGraphExecKernelNodeSetParams_v2(sim_exec *x, const graph_node *node, const kernel_node *what) {
  ENTER_DEVICE(cuGraphExecKernelNodeSetParams_v2, NULL);
  sim_work *w = NULL;
  if (x == NULL || x->magic != EXEC) return INVALID_VALUE;
  int result = kernel_work(what, &w);
  return result != SUCCESS ? result : set_node(x, node, w, what->function->name);
}

EXPORT int cuGraphExecMemcpyNodeSetParams(sim_exec *x, const graph_node *node, const copy_node *what, void *context) {
  ENTER_DEVICE(cuGraphExecMemcpyNodeSetParams, NULL);
  sim_work *w = NULL;
  if (x == NULL || x->magic != EXEC || context == NULL) return INVALID_VALUE;
  int result = line_work(what, &w);
  return result != SUCCESS ? result : set_node(x, node, w, "");
}

EXPORT int cuGraphExecChildGraphNodeSetParams(sim_exec *x, const graph_node *node, sim_graph *child) {
  ENTER_DEVICE(cuGraphExecChildGraphNodeSetParams, NULL);
  if (x == NULL || x->magic != EXEC || child == NULL || child->magic != GRAPH) return INVALID_VALUE;
  return set_node(x, node, child_make(child), "");
}

static int run_node(graph_node *node, sim_op *op) {
  sim_work *w = node->work;
  w->op = op;
  if (w->kind != WORK_CALL) return w->execute(w);
  protect_leave();
  pthread_mutex_unlock(&sim.executing);
  w->function(w->context);
  pthread_mutex_lock(&sim.executing);
  protect_enter();
  return SUCCESS;
}

/* With a seed, whatever is ready may be next. */
static uint32_t next_node(graph_node *const *nodes, uint32_t n, const bool *done, uint64_t *random) {
  uint32_t start = 0;
  if (sim.seed != 0) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    start = (uint32_t)((*random >> 33) % n);
  }
  for (uint32_t k = 0; k < n; k++) {
    uint32_t i = (start + k) % n;
    bool ready = !done[i];
    for (uint32_t a = 0; a < nodes[i]->n_after && ready; a++) ready = done[nodes[i]->after[a]];
    if (ready) return i;
  }
  assert(false);
  return 0;
}

static sim_op *new_op_within(const graph_node *node, const sim_op *op) {
  pthread_mutex_lock(&sim.lock);
  sim_op *own = clock_within(op, node->what, node->name);
  pthread_mutex_unlock(&sim.lock);
  return own;
}

/* Each as its op of `ops`, or as one within `op`. */
static int run_nodes(graph_node **nodes, uint32_t n, sim_op *const *ops, sim_op *op) {
  bool *done = calloc(n + 1, sizeof *done);
  uint64_t random = sim.seed ^ op->id;
  int result = SUCCESS;
  for (uint32_t k = 0; k < n && result == SUCCESS; k++) {
    uint32_t i = next_node(nodes, n, done, &random);
    result = run_node(nodes[i], ops != NULL ? ops[i] : new_op_within(nodes[i], op));
    done[i] = true;
  }
  free(done);
  return result;
}

static int execute_graph(sim_work *work) {
  graph_work *w = (graph_work *)work;
  reset_conditions(w->nodes, w->n);
  return run_nodes(w->nodes, w->n, w->ops, work->op);
}

static void release_graph_work(sim_work *work) {
  graph_work *w = (graph_work *)work;
  release_nodes(w->nodes, w->n);
  free(w->ops);
}

EXPORT int cuGraphLaunch(sim_exec *x, void *stream) {
  ENTER_DEVICE(cuGraphLaunch, NULL);
  if (x == NULL || x->magic != EXEC) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  sim_stream *s = stream_find(stream);
  int result = s == NULL ? INVALID_HANDLE : s->capture != NULL ? NOT_SUPPORTED : SUCCESS;
  if (result == SUCCESS) {
    graph_work *w = calloc(1, sizeof *w);
    *w = (graph_work){.work = {.execute = execute_graph, .release = release_graph_work}, .order = x->order, .n = x->n};
    w->nodes = share_nodes(x->nodes, x->n);
    w->ops = calloc(x->n + 1, sizeof *w->ops);
    stream_wait_event(s, x->last);
    sim_op *op = stream_add(s, &w->work, "graph", "");
    for (uint32_t i = 0; i < x->n; i++) w->ops[i] = clock_node(op, x->order, i, x->nodes[i]->what, x->nodes[i]->name);
    stream_record_event(s, x->last);
  }
  pthread_mutex_unlock(&sim.lock);
  return result;
}

EXPORT int cuGraphExecDestroy(sim_exec *x) {
  ENTER_DEVICE(cuGraphExecDestroy, NULL);
  if (x == NULL || x->magic != EXEC) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  release_nodes(x->nodes, x->n);
  release_nodes(x->origins, x->n);
  x->nodes = x->origins = NULL;
  x->magic = 0; /* its order is kept: ops name it */
  sim.n_graphs--;
  pthread_mutex_unlock(&sim.lock);
  return SUCCESS;
}

EXPORT int cuGraphDestroy(sim_graph *g) {
  ENTER_DEVICE(cuGraphDestroy, NULL);
  if (g == NULL || g->magic != GRAPH) return INVALID_VALUE;
  pthread_mutex_lock(&sim.lock);
  free_graph(g);
  pthread_mutex_unlock(&sim.lock);
  return SUCCESS;
}

EXPORT int cuGraphGetNodes(sim_graph *g, void **nodes, size_t *n) {
  ENTER_DEVICE(cuGraphGetNodes, NULL);
  if (g == NULL || g->magic != GRAPH || n == NULL) return INVALID_VALUE;
  for (size_t i = 0; nodes != NULL && i < *n && i < g->n; i++) nodes[i] = g->nodes[i];
  if (nodes == NULL || *n > g->n) *n = g->n;
  return SUCCESS;
}
