/* One call of a native custom call: the frame, copies for layouts that are not row-major, errors.
 *
 * The frame lives on the C stack for the time of a call. What the function allocates through it is freed
 * after it; what it reports by fail() becomes the op's error. The function may use several threads by
 * parallel_for, so everything that the frame offers is thread-safe. */
#include <stdarg.h>
#include <stdio.h>

#include "native.h"
#include "../algorithm/strided.h"
#include "../blocks.h"

enum { NATIVE_FEW = 12, NATIVE_MOVE_WORK = 1 << 16 };

/* Memory that a call has asked for, in a list. The header keeps what follows aligned. */
typedef struct native_block native_block;
struct native_block {
  native_block *next;
  char pad[64 - sizeof(native_block *)];
};

typedef struct native_run {
  xlac_ffi_frame frame;
  interp_ctx *ctx;
  rt_pool *pool;
  _Atomic(native_block *) blocks;
  atomic_flag failed; /* by whom the message is written */
  bool stopped;       /* the function has been told to */
  char message[400];
} native_run;

/* --- what the frame offers --- */

typedef struct native_loop {
  void (*fn)(void *ctx, uint64_t begin, uint64_t end);
  void *ctx;
} native_loop;

/* size_t to uint64_t and back. */
static void native_loop_piece(void *ctx, size_t begin, size_t end) {
  const native_loop *l = ctx;
  l->fn(l->ctx, begin, end);
}

static void native_parallel_for(xlac_ffi_frame *frame, uint64_t n, uint64_t grain,
                                void (*fn)(void *ctx, uint64_t begin, uint64_t end), void *ctx) {
  const native_run *r = frame->inside;
  native_loop l = {fn, ctx};
  if (n) rt_parallel_for(r->pool, (size_t)n, grain ? (size_t)grain : 1, native_loop_piece, &l);
}

/* The first message wins; returns -1 for the function to return. */
static int native_fail(xlac_ffi_frame *frame, const char *format, ...) {
  native_run *r = frame->inside;
  if (atomic_flag_test_and_set(&r->failed)) return -1;
  va_list args;
  va_start(args, format);
  vsnprintf(r->message, sizeof r->message, format, args);
  va_end(args);
  return -1;
}

/* Aligned to 64 bytes. The allocator's own pointer is kept in the header's pad. */
static void *native_allocate(xlac_ffi_frame *frame, uint64_t bytes) {
  native_run *r = frame->inside;
  if (bytes > SIZE_MAX - 256) return NULL;
  void *raw = base_malloc(r->ctx->options.alloc, (size_t)bytes + sizeof(native_block) + 64 + sizeof(void *));
  if (!raw) return NULL;
  native_block *b = (native_block *)(((uintptr_t)raw + sizeof(void *) + 63) & ~(uintptr_t)63);
  memcpy((char *)b + sizeof b->next, &raw, sizeof raw); /* in the pad */
  b->next = atomic_load(&r->blocks);
  while (!atomic_compare_exchange_weak(&r->blocks, &b->next, b)) continue;
  return b + 1;
}

/* The function has returned: no thread of its adds blocks any more. */
static void native_free_blocks(native_run *r) {
  for (native_block *b = atomic_load(&r->blocks), *next = NULL; b; b = next) {
    void *raw = NULL;
    next = b->next;
    memcpy(&raw, (char *)b + sizeof b->next, sizeof raw);
    base_free(r->ctx->options.alloc, raw);
  }
}

/* Sticky: once true it stays so. */
static bool native_interrupted(xlac_ffi_frame *frame) {
  native_run *r = frame->inside;
  const interp_options *o = &r->ctx->options;
  /* A wish to stop is said once: maybe it was to the pool, while arrays were brought into their layouts. */
  r->stopped = r->stopped || rt_pool_stopping(r->pool) || (o->interrupted && o->interrupted(o->interrupt_ctx));
  return r->stopped;
}

/* --- layouts --- */

typedef struct native_move {
  const xlac_ffi_buffer *b;
  size_t bytes; /* of an element */
  char *to;
  const char *from;
  const int64_t *to_strides, *from_strides;
} native_move;

/* Rows [begin, end) of dimension 0. */
static void native_move_piece(void *ctx, size_t begin, size_t end) {
  const native_move *m = ctx;
  interp_ctx quiet = {.ticks = 0}; /* nobody to ask: pieces are short */
  int64_t dims[IR_MAX_RANK], at = (int64_t)begin, size = (int64_t)m->bytes;
  memcpy(dims, m->b->dims, m->b->rank * sizeof *dims);
  dims[0] = (int64_t)(end - begin);
  int status = interp_strided_copy(&quiet, m->bytes, m->b->rank, dims, m->to + at * m->to_strides[0] * size,
                                   m->to_strides, m->from + at * m->from_strides[0] * size, m->from_strides);
  assert(status == 0);
  (void)status;
}

/* Between the row-major array and one in b's layout. */
static void native_move_array(rt_pool *pool, const xlac_ffi_buffer *b, void *to, const void *from, bool into_layout) {
  int64_t plain[IR_MAX_RANK], laid[IR_MAX_RANK], stride = 1;
  if (b->count == 0) return;
  assert(b->rank >= 2 && b->rank <= IR_MAX_RANK);
  interp_strides(b->rank, b->dims, plain);
  for (uint32_t d = 0; d < b->rank; d++) {
    laid[b->minor_to_major[d]] = stride;
    stride *= b->dims[b->minor_to_major[d]];
  }
  native_move m = {.b = b, .bytes = (size_t)b->bytes / (size_t)b->count, .to = to, .from = from};
  m.to_strides = into_layout ? laid : plain;
  m.from_strides = into_layout ? plain : laid;
  int64_t each = b->count / b->dims[0];
  size_t grain = each < NATIVE_MOVE_WORK ? (size_t)(NATIVE_MOVE_WORK / each + 1) : 1;
  if (b->rank == 2 && grain < 64) grain = 64; /* rows: whole tiles */
  rt_parallel_for(pool, (size_t)b->dims[0], grain, native_move_piece, &m);
}

/* --- a call --- */

/* Results that begin as an operand's value hold it, in their layout, and the operand is there too. */
static int native_enter(const native_op *n, const native_run *r, xlac_ffi_buffer *all, const void *const *in) {
  for (uint32_t i = 0; i < n->n_operands; i++) {
    const native_buffer *b = &n->buffers[i];
    if (b->moved) native_move_array(r->pool, &all[i], all[i].data, in[i], true);
  }
  for (uint32_t i = 0; i < n->n_results; i++) {
    uint32_t from = n->aliases[i];
    if (from == UINT32_MAX) continue;
    xlac_ffi_buffer *result = &all[n->n_operands + i], *operand = &all[from];
    if (result->data == operand->data) continue;
    TRY(interp_copy_bytes(r->ctx, result->data, operand->data, result->bytes));
    operand->data = result->data;
  }
  return 0;
}

/* Pointers of operands and results: the arrays themselves, or scratch where the layout differs. */
static void native_set_data(const native_op *n, xlac_ffi_buffer *all, const void *const *in, void *const *out,
                            char *scratch) {
  for (uint32_t i = 0; i < n->n_operands + n->n_results; i++) {
    const native_buffer *b = &n->buffers[i];
    const void *data = i < n->n_operands ? in[i] : out[i - n->n_operands];
    all[i] = b->shape;
    all[i].data = b->moved ? scratch + b->offset : (void *)(uintptr_t)data;
    if (b->shape.dtype == XLAC_FFI_TOKEN) all[i].data = NULL;
  }
  /* A copy of the operand made where the result will be needs no copy more. */
  for (uint32_t i = 0; i < n->n_results; i++) {
    uint32_t from = n->aliases[i];
    if (from != UINT32_MAX && n->buffers[from].moved) all[from].data = all[n->n_operands + i].data;
  }
}

/* An interruption is reported as that, whatever the function returned. */
static int native_failed(const native_op *n, native_run *r) {
  const ir_op *op = n->op;
  if (r->stopped) return base_fail(r->ctx->err, XLAC_E_INTERRUPTED, "the run was interrupted");
  const char *why = r->message[0] ? r->message : "it gave no reason";
  return base_fail_at(r->ctx->err, XLAC_E_EVAL, op->line, op->col, op->name->s, "custom call %s failed: %s", n->target,
                      why);
}

static int native_run_frame(const native_op *n, const rt_native *native, native_run *r, xlac_ffi_buffer *all,
                            const void *const *in, void *const *out, void *scratch) {
  native_set_data(n, all, in, out, scratch);
  TRY(native_enter(n, r, all, in));
  r->frame = (xlac_ffi_frame){.struct_size = sizeof r->frame,
                              .version = XLAC_FFI_VERSION,
                              .n_operands = n->n_operands,
                              .n_results = n->n_results,
                              .n_attrs = n->n_attrs,
                              .n_threads = r->pool ? rt_pool_size(r->pool) : 1,
                              .operands = all,
                              .results = all + n->n_operands,
                              .attrs = n->attrs,
                              .opaque = n->opaque,
                              .opaque_size = n->opaque_size,
                              .target = n->target,
                              .op = n->op->name->s,
                              .user = native->user,
                              .parallel_for = native_parallel_for,
                              .fail = native_fail,
                              .allocate = native_allocate,
                              .interrupted = native_interrupted,
                              .inside = r};
  int status = native->run(&r->frame);
  native_free_blocks(r);
  if (status != 0 || r->message[0]) return native_failed(n, r);
  for (uint32_t i = 0; i < n->n_results; i++) {
    const xlac_ffi_buffer *b = &all[n->n_operands + i];
    if (n->buffers[n->n_operands + i].moved) native_move_array(r->pool, b, out[i], b->data, false);
  }
  return 0;
}

/* A backend_config that can't be read fails here, at the call, not before. */
int native_call(interp_ctx *ctx, const native_op *n, const rt_native *native, rt_pool *pool, const void *const *in,
                void *const *out, void *scratch) {
  native_run r; /* the message's bytes are not worth clearing: a call costs little more than a frame */
  uint32_t count = n->n_operands + n->n_results;
  xlac_ffi_buffer few[NATIVE_FEW], *all = few;
  r.ctx = ctx, r.pool = pool;
  r.stopped = false;
  r.message[0] = 0;
  atomic_flag_clear(&r.failed);
  atomic_init(&r.blocks, NULL);
  if (n->bad_attrs) {
    int status = base_fail_at(ctx->err, XLAC_E_EVAL, n->op->line, n->op->col, n->op->name->s,
                              "custom call %s has a backend_config that can't be read: %s", n->target, n->bad_attrs);
    return base_hint(ctx->err, status, "write it as MLIR does: {name = 1 : i32, other = \"text\"}");
  }
  if (count > NATIVE_FEW && !(all = base_malloc(ctx->options.alloc, count * sizeof *all)))
    return base_oom(ctx->err, "a custom call");
  int status = native_run_frame(n, native, &r, all, in, out, scratch);
  if (all != few) base_free(ctx->options.alloc, all);
  return status;
}
