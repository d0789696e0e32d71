/* Evaluators read an op's attributes, its type and its operands' types. A shadow has just these, made by
 * hand; it is in no computation, and nothing else of it may be looked at. */
#include "shadow.h"

/* An operand's producer has nothing but a type. The types are those of the values: all sizes known. */
static int shadow_operands(interp_ctx *ctx, interp_shadow *s, uint32_t n, interp_value *const *values) {
  ir_op *producers = BASE_ARRAY(&s->arena, ir_op, (size_t)n + 1);
  ir_type *types = BASE_ARRAY(&s->arena, ir_type, (size_t)n + 1);
  ir_use *uses = BASE_ARRAY(&s->arena, ir_use, (size_t)n + 1);
  s->values = BASE_ARRAY(&s->arena, interp_value *, (size_t)n + 1);
  if (!producers || !types || !uses || !s->values) return base_oom(ctx->err, "an op's twin");
  memset(producers, 0, (n + 1u) * sizeof *producers);
  memset(types, 0, (n + 1u) * sizeof *types);
  memset(uses, 0, (n + 1u) * sizeof *uses);
  for (uint32_t k = 0; k < n; k++) {
    assert(values[k]->kind == INTERP_ARRAY);
    s->values[k] = values[k];
    types[k].kind = IR_TYPE_TENSOR;
    types[k].dtype = values[k]->dtype;
    types[k].rank = values[k]->rank;
    types[k].dims = values[k]->dims;
    types[k].count = values[k]->count;
    types[k].bare = &types[k];
    producers[k].opcode = IR_OP_PARAMETER;
    producers[k].name = s->op.name;
    producers[k].n_results = 1;
    producers[k].type = &types[k];
    producers[k].types = &producers[k].type;
    uses[k].op = &producers[k];
    uses[k].slot = k;
    uses[k].user = &s->op;
  }
  s->op.operands = uses;
  s->op.n_operands = n;
  return 0;
}

/* The op's own attributes are kept, as far as there is room. */
int interp_shadow_begin(interp_ctx *ctx, interp_shadow *s, const ir_op *of, ir_opcode opcode, uint32_t n,
                        interp_value *const *values) {
  assert(of->type);
  base_arena_init(&s->arena, ctx->options.alloc);
  s->op = *of;
  s->op.opcode = (uint16_t)opcode;
  s->op.n_results = 1;
  s->op.uses = NULL;
  s->result = *of->type;
  s->results = &s->result;
  s->op.type = &s->result;
  s->op.types = &s->results;
  s->op.attrs = s->attrs;
  s->op.n_attrs = 0;
  s->n = n;
  for (uint32_t i = 0; i < of->n_attrs && s->op.n_attrs < SHADOW_ATTRS; i++) s->attrs[s->op.n_attrs++] = of->attrs[i];
  return shadow_operands(ctx, s, n, values);
}

int interp_shadow_result(interp_ctx *ctx, interp_shadow *s, base_dtype t, uint32_t rank, const int64_t *dims) {
  int64_t *own = BASE_ARRAY(&s->arena, int64_t, (size_t)rank + 1);
  if (!own) return base_oom(ctx->err, "an op's twin");
  memset(&s->result, 0, sizeof s->result);
  s->result.kind = IR_TYPE_TENSOR;
  s->result.dtype = (uint8_t)t;
  s->result.rank = rank;
  s->result.dims = own;
  s->result.bare = &s->result;
  s->result.count = 1;
  for (uint32_t d = 0; d < rank; d++) {
    own[d] = dims[d];
    if (!base_mul_i64(s->result.count, dims[d], &s->result.count)) s->result.count = INT64_MAX;
  }
  return 0;
}

void interp_shadow_set(interp_shadow *s, ir_attr a) {
  for (uint16_t i = 0; i < s->op.n_attrs; i++) {
    if (s->attrs[i].key != a.key) continue;
    s->attrs[i] = a;
    return;
  }
  assert(s->op.n_attrs < SHADOW_ATTRS);
  s->attrs[s->op.n_attrs++] = a;
}

int interp_shadow_ints(interp_ctx *ctx, interp_shadow *s, ir_attr_key key, uint32_t n, const int64_t *v) {
  ir_ints *list = base_arena_alloc(&s->arena, sizeof *list + n * sizeof *v);
  ir_attr a = ir_attr_make(key);
  if (!list) return base_oom(ctx->err, "an op's twin");
  list->n = n;
  if (n) memcpy(list->v, v, n * sizeof *v);
  a.v.ints = list;
  interp_shadow_set(s, a);
  return 0;
}

void interp_shadow_int(interp_shadow *s, ir_attr_key key, int64_t v) {
  ir_attr a = ir_attr_make(key);
  a.v.i = v;
  interp_shadow_set(s, a);
}

/* Nothing may be overwritten: the shadow's operands may be used by others. */
int interp_shadow_eval(interp_ctx *ctx, interp_shadow *s, interp_value **out) {
  interp_eval_fn *eval = interp_table[s->op.opcode];
  if (!eval) return interp_fail(ctx, &s->op, XLAC_E_EVAL, "%s has no evaluator", ir_opcode_text(s->op.opcode));
  uint64_t dying = ctx->dying;
  ctx->dying = 0; /* the values are not the frame's */
  int status = eval(ctx, &s->op, s->values, out);
  ctx->dying = dying;
  return status;
}

void interp_shadow_end(interp_shadow *s) {
  base_arena_free(&s->arena);
}

int interp_read_sizes(interp_ctx *ctx, const ir_op *op, const interp_value *from, uint32_t n, int64_t *v) {
  if (from->kind != INTERP_ARRAY || from->rank != 1 || from->count != n || n > IR_MAX_RANK)
    return interp_fail(ctx, op, XLAC_E_EVAL, "expected %u sizes, found %lld", n, (long long)from->count);
  for (uint32_t i = 0; i < n; i++) v[i] = interp_element_index(from, i);
  return 0;
}

/* Size 1 repeats, other sizes must be the result's. */
int interp_spread(interp_ctx *ctx, const ir_op *op, const interp_value *x, const int64_t *map, uint32_t rank,
                  const int64_t *dims, interp_value **out) {
  int64_t own[IR_MAX_RANK], from[IR_MAX_RANK] = {0}, to[IR_MAX_RANK];
  interp_strides(x->rank, x->dims, own);
  for (uint32_t i = 0; i < x->rank; i++) {
    int64_t d = map[i];
    if (d < 0 || d >= rank)
      return interp_fail(ctx, op, XLAC_E_EVAL, "dimension %u goes to %lld, the result has rank %u", i, (long long)d,
                         rank);
    if (x->dims[i] != 1 && x->dims[i] != dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "%lld elements along dimension %u can't be spread over %lld",
                         (long long)x->dims[i], i, (long long)dims[d]);
    if (x->dims[i] != 1) from[d] = own[i];
  }
  interp_value *r = interp_array(ctx, x->dtype, rank, dims);
  if (!r) return interp_failed(ctx);
  interp_strides(rank, dims, to);
  int status = 0;
  if (r->count) status = interp_strided_copy(ctx, base_dtype_bytes(x->dtype), rank, dims, r->data, to, x->data, from);
  return interp_deliver(status, r, out);
}
