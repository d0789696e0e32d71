/* Called scalar computations on many lanes at once: reducers, comparators, scatter and map bodies. One that is a
 * scalar program (scalar/program.h) runs as that; any other is called lane by lane. */
#include "../../scalar/program.h"
#include "../interp.h"

struct interp_body {
  interp_ctx *ctx;
  const ir_computation *computation;
  base_arena arena;
  uint32_t n_outs;
  const scalar_program *program; /* NULL: lane by lane */
  scalar_lanes_run lanes;
};

/* Of a tuple, or one. */
static uint32_t body_results(const ir_computation *c) {
  const ir_type *t = ir_root(c)->type;
  return ir_is_tuple(t) ? t->n_elements : 1;
}

/* Fails when out of memory only. A tuple within the result is not a result of a program. */
static int body_make(interp_body *b) {
  const scalar_program *p = NULL;
  TRY(scalar_program_make(b->computation, &b->arena, &p, b->ctx->err));
  if (!p || p->n_outs != b->n_outs) return 0;
  const scalar_lanes *code = scalar_lanes_make(p, &b->arena);
  char *memory = code ? base_arena_aligned(&b->arena, code->bytes + 1, 64) : NULL;
  if (!memory) return base_oom(b->ctx->err, "a called computation");
  scalar_lanes_begin(&b->lanes, code, memory);
  b->program = p;
  return 0;
}

/* b keeps ctx: it serves one run, on one thread. */
int interp_body_prepare(interp_ctx *ctx, const ir_computation *c, interp_body **out) {
  interp_body *b = base_malloc(ctx->options.alloc, sizeof *b);
  if (!b) return base_oom(ctx->err, "a called computation");
  memset(b, 0, sizeof *b);
  b->ctx = ctx;
  b->computation = c;
  b->n_outs = body_results(c);
  base_arena_init(&b->arena, ctx->options.alloc);
  int status = body_make(b);
  if (status)
    interp_body_free(b);
  else
    *out = b;
  return status;
}

void interp_body_free(interp_body *b) {
  if (!b) return;
  base_alloc alloc = b->ctx->options.alloc;
  base_arena_free(&b->arena);
  base_free(alloc, b);
}

ir_opcode interp_body_opcode(const interp_body *b) {
  scalar_code single = b->program ? scalar_program_single(b->program) : SCALAR_NONE;
  return single ? scalar_opcode(single) : IR_OP_INVALID;
}

/* --- applying --- */

/* Block by block, so that interruptions are seen in between. */
static int apply_program(interp_body *b, int64_t n, const void *const *args, void *const *outs) {
  int64_t lanes = b->lanes.code->lanes;
  for (int64_t at = 0; at < n; at += lanes) {
    int64_t end = n - at < lanes ? n : at + lanes;
    scalar_lanes_go(&b->lanes, at, end, args, outs);
    TRY(interp_tick(b->ctx, (uint64_t)(end - at) * (b->program->n_ops + 1)));
  }
  return 0;
}

static void store_lane(const interp_body *b, const interp_value *result, int64_t lane, void *const *outs) {
  assert(result->kind != INTERP_TUPLE || result->n_elements == b->n_outs);
  for (uint32_t j = 0; j < b->n_outs; j++) {
    const interp_value *e = result->kind == INTERP_TUPLE ? result->elements[j] : result;
    size_t bytes = base_dtype_bytes((base_dtype)e->dtype);
    assert(e->count == 1);
    memcpy((char *)outs[j] + (size_t)lane * bytes, e->data, bytes);
  }
}

/* One call of the computation; values is scratch for its arguments. */
static int apply_lane(interp_body *b, int64_t lane, const void *const *args, void *const *outs, interp_value **values) {
  const ir_computation *c = b->computation;
  interp_value *result = NULL;
  for (uint32_t i = 0; i < c->n_params; i++) {
    values[i] = interp_array_for(b->ctx, c->params[i]);
    if (!values[i]) {
      while (i-- > 0) interp_release(values[i]);
      return interp_failed(b->ctx);
    }
    size_t bytes = interp_bytes(values[i]);
    memcpy(values[i]->data, (const char *)args[i] + (size_t)lane * bytes, bytes);
  }
  TRY(interp_call_move(b->ctx, c, c->n_params, values, &result));
  store_lane(b, result, lane, outs);
  interp_release(result);
  return 0;
}

int interp_apply(interp_ctx *ctx, interp_body *b, int64_t n, const void *const *args, void *const *outs) {
  assert(n >= 0);
  assert(ctx == b->ctx);
  if (b->program) return apply_program(b, n, args, outs);
  interp_value **values = base_malloc(ctx->options.alloc, ((size_t)b->computation->n_params + 1) * sizeof *values);
  if (!values) return base_oom(ctx->err, "the arguments of a call");
  int status = 0;
  for (int64_t i = 0; i < n && !status; i++) status = apply_lane(b, i, args, outs, values);
  base_free(ctx->options.alloc, values);
  return status;
}
