/* Between an async start and its done the program may not depend on when the computation runs. To test
 * that, a run may put it off: the start gives a tuple with a token where the result will be, and the
 * computation runs before the step that it is due at, at the latest before its done. Entries of the
 * present frame form a heap by step; those of callers lie before them and wait. */
#include "async_order.h"

typedef struct interp_pending {
  const ir_op *start;
  interp_value *tuple; /* the start's value; element 1 holds a token until it is computed */
  uint32_t at;
} interp_pending;

/* The end of the chain: NULL where nobody waits. Start, updates and done form a chain: each is the first
 * user of the one before. */
static const ir_op *async_order_done(const ir_op *op) {
  while (op && op->opcode != IR_OP_ASYNC_DONE) op = op->uses ? op->uses->user : NULL;
  return op;
}

/* splitmix64, of the seed and the number of the start. */
static uint64_t async_order_draw(const interp_ctx *ctx) {
  uint64_t x = ctx->options.async_seed + (ctx->n_starts + 1) * UINT64_C(0x9E3779B97F4A7C15);
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  return x ^ (x >> 31);
}

/* False: run it at the start. *at: the step before which it is due. With a hub (parallel runs) order among
 * participants matters, so all are eager. */
bool interp_async_waits(interp_ctx *ctx, const ir_op *start, uint32_t *at) {
  if (ctx->options.async_order == INTERP_ASYNC_EAGER || ctx->options.hub || ctx->options.communicator || !ctx->slot_of)
    return false;
  const ir_op *done = async_order_done(start);
  uint32_t own = ctx->slot_of[start->id], last = done ? ctx->slot_of[done->id] : 0;
  if (last <= own) last = own + 1; /* run for its effects only: nobody waits */
  *at = last;
  if (ctx->options.async_order == INTERP_ASYNC_SHUFFLED)
    *at = own + (uint32_t)(async_order_draw(ctx) % (last - own + 1));
  ctx->n_starts++;
  return *at > own;
}

static bool async_order_grow(interp_ctx *ctx) {
  uint32_t cap = ctx->pending_cap ? ctx->pending_cap * 2 : 16;
  interp_pending *grown = base_malloc(ctx->options.alloc, cap * sizeof *grown);
  if (!grown) return false;
  if (ctx->n_pending) memcpy(grown, ctx->pending, ctx->n_pending * sizeof *grown);
  base_free(ctx->options.alloc, ctx->pending);
  ctx->pending = grown;
  ctx->pending_cap = cap;
  return true;
}

/* The frame's own part is a heap: the entry that is due first is on top. */
static void async_order_swap(interp_pending *a, interp_pending *b) {
  interp_pending c = *a;
  *a = *b, *b = c;
}

/* Entry i was appended; swaps it with its parents until they are due no later. */
static void async_order_up(interp_pending *heap, uint32_t i) {
  for (; i && heap[i].at < heap[(i - 1) / 2].at; i = (i - 1) / 2) async_order_swap(&heap[i], &heap[(i - 1) / 2]);
}

/* The first entry was replaced by the last one. */
static void async_order_down(interp_pending *heap, uint32_t n) {
  for (uint32_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && heap[child + 1].at < heap[child].at) child++;
    if (heap[i].at <= heap[child].at) return;
    async_order_swap(&heap[i], &heap[child]);
  }
}

/* Holds the tuple, whose inputs are its first element. */
int interp_async_leave(interp_ctx *ctx, const ir_op *start, uint32_t at, interp_value *tuple) {
  assert(tuple->kind == INTERP_TUPLE && tuple->n_elements >= 2 && tuple->elements[1]->kind == INTERP_TOKEN);
  if (ctx->n_pending == ctx->pending_cap && !async_order_grow(ctx)) return base_oom(ctx->err, "an async op");
  ctx->pending[ctx->n_pending++] = (interp_pending){start, interp_retain(tuple), at};
  async_order_up(ctx->pending + ctx->outer_pending, ctx->n_pending - ctx->outer_pending - 1);
  return 0;
}

/* The tuple is written in place though others hold it: they are the chain's updates and done, which read
 * it later. */
static int async_order_compute(interp_ctx *ctx, const interp_pending *p) {
  const ir_computation *wrapped = ir_async_wrapped(p->start);
  interp_value *inputs = p->tuple->elements[0], *result = NULL;
  assert(wrapped && inputs->n_elements == wrapped->n_params);
  int status = interp_call(ctx, wrapped, inputs->n_elements, inputs->elements, &result);
  if (status) return interp_place_error(ctx, p->start, status);
  interp_release(p->tuple->elements[1]);
  p->tuple->elements[1] = result;
  return 0;
}

/* Everything that is due at `step` or before, in order; UINT32_MAX: all. */
int interp_async_run(interp_ctx *ctx, uint32_t step) {
  uint32_t outer = ctx->outer_pending;
  while (ctx->n_pending > outer && ctx->pending[outer].at <= step) {
    interp_pending p = ctx->pending[outer];
    ctx->pending[outer] = ctx->pending[--ctx->n_pending];
    async_order_down(ctx->pending + outer, ctx->n_pending - outer);
    int status = async_order_compute(ctx, &p);
    interp_release(p.tuple);
    if (status) return status;
  }
  return 0;
}

/* After an error: what the frame has not run never will be. */
void interp_async_drop(interp_ctx *ctx) {
  while (ctx->n_pending > ctx->outer_pending) interp_release(ctx->pending[--ctx->n_pending].tuple);
}
