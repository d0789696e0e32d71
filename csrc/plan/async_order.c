/* The order of a computation with async chains. A schedule (is_scheduled=true) is kept. Else starts come as soon as
 * they can, dones and updates when nothing else is ready, and all other ops in the order they had, so that as much as
 * possible lies between a start and its done; ops whose results depend on what was done before keep their order among
 * one another. n log n. */
#include "build.h"

/* A topological sort with a heap of what is ready. */
typedef struct order_run {
  const plan_build *x;
  ir_op **order, **ready; /* ready: a heap */
  uint32_t n, n_ready;
  uint32_t *left;         /* by position: operands and predecessors that are not placed yet */
  uint32_t *first, *next; /* users: by position, and by edge */
  uint32_t *user;
  uint32_t n_edges;
} order_run;

/* Where the op stood in the order before. */
static uint32_t order_position(const order_run *r, const ir_op *op) {
  return r->x->values[op->id].at;
}

/* Arguments are there before anything runs. */
static bool order_is_placed_first(const ir_op *op) {
  return op->opcode == IR_OP_PARAMETER;
}

/* First-class starts too. */
static bool order_is_start(const ir_op *op) {
  return plan_is_async(op) && ir_opcode_has(op->opcode, IR_ASYNC_START);
}

/* 0 starts, 1 anything else, 2 updates and dones: the smaller first. */
static int order_class(const ir_op *op) {
  return !plan_is_async(op) ? 1 : order_is_start(op) ? 0 : 2;
}

static bool order_before(const order_run *r, const ir_op *a, const ir_op *b) {
  assert(a && b);
  int x = order_class(a), y = order_class(b);
  return x != y ? x < y : order_position(r, a) < order_position(r, b);
}

/* A binary heap in an array of n places: each op is in it once. */
static void order_push(order_run *r, ir_op *op) {
  assert(r->n_ready < r->n);
  uint32_t at = r->n_ready++;
  for (; at > 0 && order_before(r, op, r->ready[(at - 1) / 2]); at = (at - 1) / 2)
    r->ready[at] = r->ready[(at - 1) / 2];
  r->ready[at] = op;
}

static ir_op *order_pop(order_run *r) {
  assert(r->n_ready > 0);
  ir_op *top = r->ready[0], *last = r->ready[--r->n_ready];
  uint32_t at = 0;
  for (uint32_t child = 1; child < r->n_ready; child = 2 * at + 1) {
    if (child + 1 < r->n_ready && order_before(r, r->ready[child + 1], r->ready[child])) child++;
    if (!order_before(r, r->ready[child], last)) break;
    r->ready[at] = r->ready[child];
    at = child;
  }
  r->ready[at] = last;
  return top;
}

/* Marks are of those that are to be placed: control edges go to others as well. */
static void order_edge(order_run *r, const ir_op *from, const ir_op *to) {
  if (!r->x->marks[from->id] || !r->x->marks[to->id]) return;
  uint32_t a = order_position(r, from), b = order_position(r, to);
  r->user[r->n_edges] = b;
  r->next[r->n_edges] = r->first[a];
  r->first[a] = ++r->n_edges; /* 0: none */
  r->left[b]++;
}

/* Effects and random numbers: their order is what the program says. */
static bool order_is_kept(const order_run *r, const ir_op *op) {
  return (opt_op_facts(r->x->facts, op) & (OPT_EFFECT | OPT_RANDOM)) != 0;
}

/* Operands, control edges, and a chain through the ops whose order is kept. */
static void order_edges(order_run *r) {
  const ir_op *kept = NULL;
  for (uint32_t i = 0; i < r->n; i++) {
    const ir_op *op = r->order[i];
    for (uint32_t k = 0; k < op->n_operands; k++) order_edge(r, ir_operand(op, k), op);
    IR_FOR_CONTROL_PREDS(e, op) order_edge(r, e->pred, op);
    if (!order_is_kept(r, op)) continue;
    if (kept) order_edge(r, kept, op);
    kept = op;
  }
}

/* Each op goes out when its last operand has; users that become ready go to the heap. */
static void order_place(order_run *r, ir_op **out) {
  assert(out);
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n; i++)
    if (!order_is_placed_first(r->order[i]) && r->left[i] == 0) order_push(r, r->order[i]);
  for (uint32_t i = 0; i < r->n; i++)
    if (order_is_placed_first(r->order[i])) out[n++] = r->order[i];
  while (r->n_ready) {
    ir_op *op = order_pop(r);
    out[n++] = op;
    for (uint32_t e = r->first[order_position(r, op)]; e; e = r->next[e - 1])
      if (--r->left[r->user[e - 1]] == 0) order_push(r, r->order[r->user[e - 1]]);
  }
  assert(n == r->n);
  memcpy(r->order, out, n * sizeof *out);
}

/* Whether there is anything to put in order. */
static bool order_is_async(uint32_t n, ir_op *const *order) {
  for (uint32_t i = 0; i < n; i++)
    if (order_is_start(order[i])) return true;
  return false;
}

/* Positions are kept in x->values, which nobody has filled yet but for parameters. */
static bool order_by_classes(const plan_build *x, uint32_t n, ir_op **order, base_arena *scratch) {
  order_run r = {.x = x, .order = order, .n = n};
  size_t edges = n;
  for (uint32_t i = 0; i < n; i++) edges += (size_t)order[i]->n_operands + order[i]->n_control_preds;
  r.left = base_arena_zalloc(scratch, (size_t)n * sizeof *r.left);
  r.first = base_arena_zalloc(scratch, (size_t)n * sizeof *r.first);
  r.next = BASE_ARRAY(scratch, uint32_t, edges);
  r.user = BASE_ARRAY(scratch, uint32_t, edges);
  r.ready = BASE_ARRAY(scratch, ir_op *, n);
  ir_op **out = BASE_ARRAY(scratch, ir_op *, n);
  if (!r.left || !r.first || !r.next || !r.user || !r.ready || !out) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (order_is_placed_first(order[i])) continue;
    x->values[order[i]->id].at = i;
    x->marks[order[i]->id] = 1;
  }
  order_edges(&r);
  for (uint32_t i = 0; i < n; i++) x->marks[order[i]->id] = 0;
  order_place(&r, out);
  return true;
}

/* As the computation lists them. */
static void order_by_schedule(const plan_build *x, const ir_computation *c, uint32_t n, ir_op **order) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < n; i++) x->marks[order[i]->id] = 1;
  IR_FOR_OPS(op, c) {
    if (x->marks[op->id]) order[kept++] = op;
    x->marks[op->id] = 0;
  }
  assert(kept == n);
}

bool plan_order_async(const plan_build *x, const ir_computation *c, uint32_t n, ir_op **order, base_arena *scratch) {
  assert(x && c && (order || n == 0));
  if (!order_is_async(n, order)) return true;
  if (!x->m->config.is_scheduled) return order_by_classes(x, n, order, scratch);
  order_by_schedule(x, c, n, order);
  return true;
}
