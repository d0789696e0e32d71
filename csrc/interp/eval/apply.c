/* Called scalar computations on many lanes at once: reducers, comparators, scatter and map bodies. A body is flattened,
 * calls and tuples gone, into a list of loops over registers of a few hundred lanes. What can't be is called lane by
 * lane.
 *
 * Example: a reducer `p0 = f32[] parameter(0)  p1 = f32[] parameter(1)  ROOT add = f32[] add(p0, p1)`
 * becomes one step, registers 0 and 1 to register 2. Calls are inlined, tuples are lists of registers, and
 * broadcasts, reshapes and copies of a scalar are the scalar itself. Blocks are as long as all registers
 * fit into the first-level cache. */
#include "../../scalar/loops/loops.h"
#include "../plan.h"

#define MAX_INLINE 32            /* calls within calls that are flattened */
#define MAX_BODY 4096            /* flattened ops: calls of calls double with each level */
#define REGISTER_BYTES (1 << 15) /* of all registers of a block, if that leaves at least MIN_LANES */
#define MIN_LANES 64
#define MAX_LANES 1024

typedef struct apply_step {
  const ir_op *op;
  interp_loop loop;
  uint32_t in[3], out; /* registers */
} apply_step;
BASE_VEC(apply_steps, apply_step);

/* A register is a parameter's lanes, a constant's, or what a step writes. */
typedef struct apply_register {
  base_dtype dtype;
  const void *constant; /* one element, or NULL */
  char *lanes;          /* own storage; NULL for parameters */
} apply_register;
BASE_VEC(apply_registers, apply_register);

struct interp_body {
  interp_ctx *ctx;
  const ir_computation *computation;
  base_arena arena;
  bool vectorised;
  uint32_t n_outs, lanes;
  base_dtype *out_types;
  uint32_t *outs; /* registers */
  apply_steps steps;
  apply_registers registers; /* the parameters' come first */
  char **at;                 /* where each register is in the present block */
  const ir_op *single;       /* see interp_body_opcode */
};

/* --- flattening. A value is the list of its leaves' registers. Failures: 1 when the body is no list of loops, negative
 * when out of memory. --- */

/* A result, not an error: the body runs lane by lane. */
#define NOT_FLAT 1

/* A scalar, or an array of one element, which is as good. */
static bool is_lane(const ir_type *t) {
  return ir_is_tensor(t) && !t->has_dynamic && t->count == 1;
}

/* Gives the new register's number. */
static int flat_register(interp_body *b, base_dtype t, const void *constant, uint32_t *out) {
  apply_register r = {t, constant, NULL};
  *out = b->registers.n;
  return BASE_VEC_PUSH(b->ctx->options.alloc, &b->registers, r) ? 0 : interp_failed(b->ctx);
}

/* An elementwise op becomes a step. */
static int flat_loop(interp_body *b, const ir_op *op, uint32_t *const *values, const uint32_t *operands,
                     uint32_t *leaf) {
  apply_step s = {.op = op};
  for (uint32_t k = 0; k < op->n_operands; k++) {
    if (k > 2 || !is_lane(ir_operand_type(op, k))) return NOT_FLAT;
    s.in[k] = values[operands[k]][0];
  }
  if (!is_lane(op->type) || !interp_loop_of(op, &s.loop) || b->steps.n >= MAX_BODY) return NOT_FLAT;
  TRY(flat_register(b, (base_dtype)op->type->dtype, NULL, &s.out));
  *leaf = s.out;
  return BASE_VEC_PUSH(b->ctx->options.alloc, &b->steps, s) ? 0 : interp_failed(b->ctx);
}

static int flat_computation(interp_body *b, const ir_computation *c, uint32_t *const *args, uint32_t depth,
                            uint32_t **out);

/* depth counts calls within calls. */
static int flat_call(interp_body *b, const interp_step *s, uint32_t *const *values, uint32_t depth, uint32_t **out) {
  uint32_t **args = BASE_ARRAY(&b->arena, uint32_t *, (size_t)s->op->n_operands + 1);
  if (!args) return interp_failed(b->ctx);
  for (uint32_t k = 0; k < s->op->n_operands; k++) args[k] = values[s->operands[k]];
  return flat_computation(b, s->op->called[0], args, depth + 1, out);
}

/* Concatenates the leaves of the operands. */
static int flat_tuple(interp_body *b, const interp_step *s, uint32_t *const *values, uint32_t **out) {
  uint32_t *leaves = BASE_ARRAY(&b->arena, uint32_t, (size_t)ir_type_leaves(s->op->type) + 1), n = 0;
  if (!leaves) return interp_failed(b->ctx);
  for (uint32_t k = 0; k < s->op->n_operands; k++) {
    uint32_t part = ir_type_leaves(ir_operand_type(s->op, k));
    memcpy(leaves + n, values[s->operands[k]], part * sizeof *leaves);
    n += part;
  }
  *out = leaves;
  return 0;
}

/* A pointer into the tuple's leaves. */
static uint32_t *flat_element(const ir_op *op, uint32_t *tuple) {
  int64_t index = ir_get_int(op, IR_ATTR_INDEX, 0);
  for (int64_t i = 0; i < index; i++) tuple += ir_type_leaves(ir_operand_type(op, 0)->elements[i]);
  return tuple;
}

/* Ops that leave a lane as it is: only its dims may change, or nothing at all. */
static bool is_lane_identity(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_COPY:
    case IR_OP_OPT_BARRIER:
      return true;
    case IR_OP_BITCAST:
      if (!ir_is_tensor(op->type) || op->type->dtype != ir_operand_type(op, 0)->dtype) return false; /* fall through */
    case IR_OP_BROADCAST:
    case IR_OP_RESHAPE:
    case IR_OP_TRANSPOSE:
    case IR_OP_REVERSE:
      return is_lane(op->type) && is_lane(ir_operand_type(op, 0));
    default:
      return false;
  }
}

/* *out: the registers of op's leaves. */
static int flat_op(interp_body *b, const interp_step *s, uint32_t **values, uint32_t *const *args, uint32_t depth,
                   uint32_t **out) {
  const ir_op *op = s->op;
  if (s->quantised) return NOT_FLAT;
  switch (op->opcode) {
    case IR_OP_PARAMETER:
      *out = args[op->u.number];
      return 0;
    case IR_OP_TUPLE:
      return flat_tuple(b, s, values, out);
    case IR_OP_GET_TUPLE_ELEMENT:
      *out = flat_element(op, values[s->operands[0]]);
      return 0;
    case IR_OP_CALL:
    case IR_OP_FUSION:
      return flat_call(b, s, values, depth, out);
    default:
      break;
  }
  if (is_lane_identity(op)) {
    *out = values[s->operands[0]];
    return 0;
  }
  uint32_t *leaf = *out = BASE_ARRAY(&b->arena, uint32_t, 1);
  if (!leaf) return interp_failed(b->ctx);
  if (op->opcode != IR_OP_CONSTANT) return flat_loop(b, op, values, s->operands, leaf);
  if (!is_lane(op->type) || op->u.literal->elided) return NOT_FLAT;
  return flat_register(b, (base_dtype)op->type->dtype, op->u.literal->data, leaf);
}

static int flat_computation(interp_body *b, const ir_computation *c, uint32_t *const *args, uint32_t depth,
                            uint32_t **out) {
  if (depth > MAX_INLINE) return NOT_FLAT;
  const interp_plan *p = interp_plan_of(b->ctx, c);
  uint32_t **values = p ? BASE_ARRAY(&b->arena, uint32_t *, p->n_steps) : NULL;
  if (!values) return interp_failed(b->ctx);
  for (uint32_t i = 0; i < p->n_steps; i++) TRY(flat_op(b, &p->steps[i], values, args, depth, &values[i]));
  *out = values[p->root];
  return 0;
}

/* Parameters must be scalars, each of one register, in order: interp_apply's args. */
static int flat_body(interp_body *b) {
  const ir_computation *c = b->computation;
  uint32_t **args = BASE_ARRAY(&b->arena, uint32_t *, (size_t)c->n_params + 1);
  uint32_t *leaves = BASE_ARRAY(&b->arena, uint32_t, (size_t)c->n_params + 1);
  if (!args || !leaves) return interp_failed(b->ctx);
  for (uint32_t i = 0; i < c->n_params; i++) {
    if (!is_lane(c->params[i]->type)) return NOT_FLAT;
    TRY(flat_register(b, (base_dtype)c->params[i]->type->dtype, NULL, &leaves[i]));
    args[i] = &leaves[i];
  }
  return flat_computation(b, c, args, 0, &b->outs);
}

/* --- preparing --- */

/* A scalar, or a flat tuple of scalars. */
static int body_results(interp_body *b) {
  assert(b->computation);
  const ir_type *t = ir_root(b->computation)->type;
  b->n_outs = ir_is_tuple(t) ? t->n_elements : 1;
  b->out_types = BASE_ARRAY(&b->arena, base_dtype, (size_t)b->n_outs + 1);
  if (!b->out_types) return interp_failed(b->ctx);
  for (uint32_t j = 0; j < b->n_outs; j++) {
    const ir_type *e = ir_is_tuple(t) ? t->elements[j] : t;
    if (!is_lane(e)) return NOT_FLAT;
    b->out_types[j] = (base_dtype)e->dtype;
  }
  return 0;
}

/* Storage for what steps write, and constants repeated over the lanes. */
static int body_storage(interp_body *b) {
  uint32_t n = b->registers.n, n_params = b->computation->n_params;
  uint32_t lanes = REGISTER_BYTES / (8 * (n - n_params + 1)) / MIN_LANES * MIN_LANES;
  b->lanes = lanes < MIN_LANES ? MIN_LANES : lanes > MAX_LANES ? MAX_LANES : lanes;
  b->at = BASE_ARRAY(&b->arena, char *, (size_t)n + 1);
  if (!b->at) return interp_failed(b->ctx);
  for (uint32_t i = n_params; i < n; i++) {
    apply_register *r = &b->registers.items[i];
    size_t bytes = base_dtype_bytes(r->dtype);
    r->lanes = base_arena_aligned(&b->arena, b->lanes * bytes, 16);
    if (!r->lanes) return interp_failed(b->ctx);
    for (uint32_t k = 0; r->constant && k < b->lanes; k++) memcpy(r->lanes + k * bytes, r->constant, bytes);
    b->at[i] = r->lanes;
  }
  return 0;
}

/* The one op of a body that is nothing but it on the two parameters. */
static const ir_op *body_single(const interp_body *b) {
  if (!b->vectorised || b->steps.n != 1 || b->n_outs != 1 || b->computation->n_params != 2) return NULL;
  const apply_step *s = &b->steps.items[0];
  if (s->op->n_operands != 2 || b->outs[0] != s->out) return NULL;
  bool straight = s->in[0] == 0 && s->in[1] == 1, crossed = s->in[0] == 1 && s->in[1] == 0;
  return straight || (crossed && ir_opcode_has(s->op->opcode, IR_COMMUTATIVE)) ? s->op : NULL;
}

/* b keeps ctx: it serves one run, on one thread. */
int interp_body_prepare(interp_ctx *ctx, const ir_computation *c, interp_body **out) {
  interp_body *b = base_malloc(ctx->options.alloc, sizeof *b);
  if (!b) return base_oom(ctx->err, "a called computation");
  memset(b, 0, sizeof *b);
  b->ctx = ctx;
  b->computation = c;
  base_arena_init(&b->arena, ctx->options.alloc);
  int status = body_results(b);
  if (status == 0) status = flat_body(b);
  b->vectorised = status == 0;
  if (status == 0) status = body_storage(b);
  if (status < 0) {
    interp_body_free(b);
    return base_oom(ctx->err, "a called computation");
  }
  b->single = body_single(b);
  *out = b;
  return 0;
}

void interp_body_free(interp_body *b) {
  if (!b) return;
  base_alloc alloc = b->ctx->options.alloc;
  BASE_VEC_FREE(alloc, &b->steps);
  BASE_VEC_FREE(alloc, &b->registers);
  base_arena_free(&b->arena);
  base_free(alloc, b);
}

ir_opcode interp_body_opcode(const interp_body *b) {
  return b->single ? (ir_opcode)b->single->opcode : IR_OP_INVALID;
}

/* --- applying --- */

/* Whether a step may write result j's register straight into outs[j]: the register is a step's, no earlier result's,
 * and no argument lies there that a later step might read (a single step reads and writes lane by lane, so that is
 * fine). */
static bool writes_direct(const interp_body *b, uint32_t j, const void *const *args, void *const *outs) {
  uint32_t reg = b->outs[j];
  if (reg < b->computation->n_params || b->registers.items[reg].constant) return false;
  for (uint32_t i = 0; i < j; i++) {
    if (b->outs[i] == reg) return false;
  }
  for (uint32_t i = 0; i < b->computation->n_params && b->steps.n > 1; i++) {
    if (args[i] == outs[j]) return false;
  }
  return true;
}

/* n lanes of every step, in order. */
static void apply_block(interp_body *b, int64_t n) {
  assert(n > 0 && n <= b->lanes);
  for (uint32_t i = 0; i < b->steps.n; i++) {
    const apply_step *s = &b->steps.items[i];
    const void *in[3] = {b->at[s->in[0]], b->at[s->in[1]], b->at[s->in[2]]};
    interp_loop_run(&s->loop, n, in, b->at[s->out]);
  }
}

/* Results that can't be written in place are copied from their registers at the end of a block. */
static int apply_vectorised(interp_body *b, int64_t n, const void *const *args, void *const *outs) {
  uint32_t n_params = b->computation->n_params;
  for (int64_t at = 0; at < n; at += b->lanes) {
    int64_t m = n - at < b->lanes ? n - at : b->lanes;
    for (uint32_t i = 0; i < n_params; i++) { /* only ever read */
      b->at[i] = (char *)(uintptr_t)args[i] + (size_t)at * base_dtype_bytes(b->registers.items[i].dtype);
    }
    for (uint32_t j = 0; j < b->n_outs; j++) {
      if (!writes_direct(b, j, args, outs)) continue;
      b->at[b->outs[j]] = (char *)outs[j] + (size_t)at * base_dtype_bytes(b->out_types[j]);
    }
    apply_block(b, m);
    for (uint32_t j = 0; j < b->n_outs; j++) {
      size_t bytes = base_dtype_bytes(b->out_types[j]);
      char *to = (char *)outs[j] + (size_t)at * bytes;
      if (b->at[b->outs[j]] != to) memmove(to, b->at[b->outs[j]], (size_t)m * bytes);
    }
    TRY(interp_tick(b->ctx, (uint64_t)m * (b->steps.n + 1)));
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
  if (b->vectorised) return apply_vectorised(b, n, args, outs);
  interp_value **values = base_malloc(ctx->options.alloc, ((size_t)b->computation->n_params + 1) * sizeof *values);
  if (!values) return base_oom(ctx->err, "the arguments of a call");
  int status = 0;
  for (int64_t i = 0; i < n && !status; i++) status = apply_lane(b, i, args, outs, values);
  base_free(ctx->options.alloc, values);
  return status;
}
