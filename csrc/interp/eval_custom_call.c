/* custom-call: registered targets first, then the few that mean something without any registration. */
#include "interp.h"
#include "plan.h"
#include "probe.h"

/* Markers that say where or how a value lives; for one participant they pass it on. */
static int custom_identity(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  if (op->n_operands != 1)
    return interp_fail(ctx, op, XLAC_E_EVAL, "custom-call target %s takes one operand, not %u", target, op->n_operands);
  if (!ir_compatible(ir_operand_type(op, 0), op->type)) {
    int status =
        interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s changes the shape, so the program is partitioned", target);
    return base_hint(ctx->err, status, "the interpreter runs one participant; give it the program before partitioning");
  }
  *out = interp_retain(operands[0]);
  return 0;
}

static int custom_zeros(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  *out = interp_zeros(ctx, op->type);
  return *out ? 0 : base_oom(ctx->err, "a custom call's result");
}

typedef struct custom_builtin {
  const char *target;
  interp_eval_fn *eval;
} custom_builtin;

static const custom_builtin custom_builtins[] = {
    {"AllocateBuffer", custom_zeros},
    {"LayoutConstraint", custom_identity},
    {"MoveToDevice", custom_identity},
    {"MoveToHost", custom_identity},
    {"SPMDFullToShardShape", custom_identity},
    {"SPMDShardToFullShape", custom_identity},
    {"Sharding", custom_identity},
    {"TopK", interp_custom_topk},
    {"annotate_device_placement", custom_identity},
    {"check.eq", interp_check_call},
    {"check.expect_almost_eq", interp_check_call},
    {"check.expect_close", interp_check_call},
    {"check.expect_eq", interp_check_call},
};

static interp_eval_fn *custom_builtin_find(const char *target) {
  for (size_t i = 0; i < sizeof custom_builtins / sizeof *custom_builtins; i++)
    if (strcmp(custom_builtins[i].target, target) == 0) return custom_builtins[i].eval;
  return NULL;
}

/* Writes v's leaves to leaves[*n ...] depth first; only counts when leaves is NULL. Values nest as types do: limited.
 */
static void custom_leaves(interp_value *v, interp_value **leaves, uint32_t *n) {
  if (v->kind != INTERP_TUPLE) {
    if (leaves) leaves[*n] = v;
    (*n)++;
    return;
  }
  for (uint32_t i = 0; i < v->n_elements; i++) custom_leaves(v->elements[i], leaves, n);
}

static interp_value *custom_at(interp_value *v, const ir_ints *path) {
  for (uint32_t i = 0; path && i < path->n; i++) {
    if (v->kind != INTERP_TUPLE || path->v[i] < 0 || path->v[i] >= v->n_elements) return NULL;
    v = v->elements[path->v[i]];
  }
  return v->kind == INTERP_ARRAY ? v : NULL;
}

/* A result that aliases an operand starts out as that operand: code that works in place then finds its input there. */
static void custom_alias(const ir_op *op, interp_value *const *operands, interp_value *result) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (uint32_t i = 0; a && a->v.aliasing && i < a->v.aliasing->n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    if (alias->operand < 0 || alias->operand >= op->n_operands) continue;
    interp_value *to = custom_at(result, alias->output), *from = custom_at(operands[alias->operand], alias->index);
    if (to && from && interp_bytes(to) == interp_bytes(from)) memcpy(to->data, from->data, interp_bytes(to));
  }
}

static int custom_registered(interp_ctx *ctx, const ir_op *op, interp_custom_call_fn *fn, void *fn_ctx,
                             interp_value *const *operands, interp_value **out) {
  assert(fn);
  interp_value *result = interp_zeros(ctx, op->type);
  if (!result) return base_oom(ctx->err, "a custom call's result");
  uint32_t n = 0;
  custom_leaves(result, NULL, &n);
  interp_value **leaves = base_malloc(ctx->options.alloc, (size_t)n * sizeof *leaves);
  int status = leaves ? 0 : base_oom(ctx->err, "a custom call's results");
  if (status == 0) {
    n = 0;
    custom_leaves(result, leaves, &n);
    custom_alias(op, operands, result);
    status = fn(fn_ctx, op, op->n_operands, operands, leaves, ctx->err);
  }
  base_free(ctx->options.alloc, leaves);
  if (status != 0) return interp_release(result), status;
  *out = result;
  return 0;
}

bool interp_call_has_effect(const ir_op *op) {
  return ir_get_bool(op, IR_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, false) ||
         strncmp(ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET), "check.", 6) == 0;
}

int interp_eval_custom_call(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  void *fn_ctx = NULL;
  interp_custom_call_fn *fn = interp_registry_find(ctx->options.registry, target, &fn_ctx);
  if (fn) return custom_registered(ctx, op, fn, fn_ctx, operands, out);
  interp_eval_fn *builtin = custom_builtin_find(target);
  if (builtin) return builtin(ctx, op, operands, out);
  int status =
      interp_fail(ctx, op, XLAC_E_UNKNOWN_CUSTOM_CALL, "no custom call is registered under the target \"%s\"", target);
  return base_hint(ctx->err, status,
                   "register it: xlac.register_custom_call(\"%.80s\", function), or in C interp_registry_add", target);
}
