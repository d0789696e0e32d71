/* custom-call: registered targets first, then the few that mean something without any registration.
 *
 * An implementation is one of three: a function on values (Python's, by api/registry.c), a native one on
 * raw buffers (xlac_ffi.h), or one that is built in. */
#include "native.h"
#include "../blocks.h"
#include "../plan.h"
#include "../probe.h"
#include "../algorithm/sort_keys.h"

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

/* Memory whose contents nobody may rely on: zeros keep runs the same. Also the empty result of dce_sink, by which JAX
 * keeps what nobody uses. */
static int custom_zeros(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  (void)operands;
  *out = interp_zeros(ctx, op->type);
  return *out ? 0 : interp_failed(ctx);
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
    {"dce_sink", custom_zeros},
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

/* NULL where the path leads to no array. */
static interp_value *custom_at(interp_value *v, const ir_ints *path) {
  for (uint32_t i = 0; path && i < path->n; i++) {
    if (v->kind != INTERP_TUPLE || path->v[i] < 0 || path->v[i] >= v->n_elements) return NULL;
    v = v->elements[path->v[i]];
  }
  return v->kind == INTERP_ARRAY ? v : NULL;
}

/* A result that aliases an operand starts out as that operand: code that works in place then finds its input there. */
static int custom_alias(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value *result) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_OUTPUT_TO_OPERAND_ALIASING);
  for (uint32_t i = 0; a && a->v.aliasing && i < a->v.aliasing->n; i++) {
    const ir_alias *alias = &a->v.aliasing->v[i];
    if (alias->operand < 0 || alias->operand >= op->n_operands) continue;
    interp_value *to = custom_at(result, alias->output), *from = custom_at(operands[alias->operand], alias->index);
    if (to && from && interp_bytes(to) == interp_bytes(from))
      TRY(interp_copy_bytes(ctx, to->data, from->data, interp_bytes(to)));
  }
  return 0;
}

/* Results are zeroed for the function to fill, which sees their leaves depth first. */
static int custom_registered(interp_ctx *ctx, const ir_op *op, rt_custom_call_fn *fn, void *fn_ctx,
                             interp_value *const *operands, interp_value **out) {
  assert(fn);
  interp_value *result = interp_zeros(ctx, op->type);
  if (!result) return interp_failed(ctx);
  uint32_t n = 0;
  custom_leaves(result, NULL, &n);
  interp_value **leaves = base_malloc(ctx->options.alloc, (size_t)n * sizeof *leaves);
  int status = leaves ? 0 : base_oom(ctx->err, "a custom call's results");
  if (status == 0) {
    n = 0;
    custom_leaves(result, leaves, &n);
    status = custom_alias(ctx, op, operands, result);
    if (status == 0) status = fn(fn_ctx, op, op->n_operands, operands, leaves, ctx->err);
  }
  base_free(ctx->options.alloc, leaves);
  if (status != 0) return interp_release(result), status;
  *out = result;
  return 0;
}

/* --- native ones --- */

typedef struct custom_arrays {
  const void **in;
  void **out;
  interp_value **values; /* of all leaves */
} custom_arrays;

/* Tokens have none. */
static void *custom_data(const interp_value *v) {
  return v->kind == INTERP_ARRAY ? v->data : NULL;
}

/* The op's types have the bounds of dynamic dimensions; a call sees the sizes they have. */
static void custom_size(native_buffer *b, const interp_value *v) {
  if (v->kind != INTERP_ARRAY || v->rank != b->shape.rank || v->count > b->shape.count) return;
  b->shape.dims = v->dims;
  b->shape.count = v->count;
  b->shape.bytes = interp_bytes(v);
}

/* Scratch is for operands and results in other layouts than row-major. */
static int custom_call_native(interp_ctx *ctx, native_op *n, const rt_native *native, interp_value *const *operands,
                              interp_value *result, custom_arrays *a) {
  assert(native && native->run);
  uint32_t at = 0;
  for (uint32_t i = 0; i < n->op->n_operands; i++) custom_leaves(operands[i], a->values, &at);
  custom_leaves(result, a->values, &at);
  assert(at == n->n_operands + n->n_results);
  for (uint32_t i = 0; i < at; i++) {
    custom_size(&n->buffers[i], a->values[i]);
    if (i < n->n_operands)
      a->in[i] = custom_data(a->values[i]);
    else
      a->out[i - n->n_operands] = custom_data(a->values[i]);
  }
  char *scratch = n->scratch_bytes ? base_malloc(ctx->options.alloc, (size_t)n->scratch_bytes + 64) : NULL;
  if (n->scratch_bytes && !scratch) return base_oom(ctx->err, "a custom call's operands");
  char *aligned = (char *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
  int status = native_call(ctx, n, native, NULL, a->in, a->out, aligned);
  base_free(ctx->options.alloc, scratch);
  return status;
}

/* The op's description is made anew at each call; compiled programs make it once. */
static int custom_native(interp_ctx *ctx, const ir_op *op, const rt_native *native, interp_value *const *operands,
                         interp_value **out) {
  native_op n;
  base_arena arena;
  base_arena_init(&arena, ctx->options.alloc);
  int status = native_prepare(op, &arena, &n, ctx->err);
  interp_value *result = status == 0 ? interp_zeros(ctx, op->type) : NULL;
  if (status == 0 && !result) status = interp_failed(ctx);
  if (status == 0) {
    custom_arrays a = {BASE_ARRAY(&arena, const void *, (size_t)n.n_operands + 1),
                       BASE_ARRAY(&arena, void *, (size_t)n.n_results + 1),
                       BASE_ARRAY(&arena, interp_value *, (size_t)n.n_operands + n.n_results + 1)};
    status = a.in && a.out && a.values ? custom_call_native(ctx, &n, native, operands, result, &a)
                                       : base_oom(ctx->err, "a custom call");
  }
  base_arena_free(&arena);
  if (status != 0) {
    interp_release(result);
    return status;
  }
  *out = result;
  return 0;
}

bool interp_is_builtin_call(const char *target) {
  return custom_builtin_find(target) != NULL;
}

bool interp_call_has_effect(const ir_op *op) {
  return ir_get_bool(op, IR_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, false) ||
         strncmp(ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET), "check.", 6) == 0;
}

/* What only another process, or Python, could do is said to be that. */
static const struct {
  const char *target, *what, *hint;
} custom_elsewhere[] = {
    {"xla_ffi_python_cpu_callback", "calls back into the Python function that JAX traced, which is not here",
     "run it with JAX, or register a function of its own under the target"},
    {"xla_ffi_partitioned_python_cpu_callback",
     "calls back into the Python function that JAX traced, which is not here",
     "run it with JAX, or register a function of its own under the target"},
    {"xla_python_cpu_callback", "calls back into the Python function that JAX traced, which is not here",
     "run it with JAX, or register a function of its own under the target"},
    {"shape_assertion",
     "is a condition of JAX's on sizes that are open in this program, and to be checked before it runs",
     "run the passes stablehlo-refine-arguments, stablehlo-refine-shapes and stablehlo-check-shape-assertions first"},
};

/* Always fails, with the best hint that the target allows. */
static int custom_unknown(interp_ctx *ctx, const ir_op *op, const char *target) {
  if (strncmp(target, "lapack_", 7) == 0)
    return base_hint(
        ctx->err,
        interp_fail(ctx, op, XLAC_E_UNKNOWN_CUSTOM_CALL,
                    "\"%s\" is a routine of LAPACK, and no LP64 OpenBLAS that has it was found", target),
        "linear algebra by this name needs an OpenBLAS with 32-bit integers: pip install scipy-openblas32");
  for (size_t i = 0; i < sizeof custom_elsewhere / sizeof *custom_elsewhere; i++)
    if (strcmp(custom_elsewhere[i].target, target) == 0)
      return base_hint(ctx->err,
                       interp_fail(ctx, op, XLAC_E_UNKNOWN_CUSTOM_CALL, "the custom call \"%s\" %s", target,
                                   custom_elsewhere[i].what),
                       "%s", custom_elsewhere[i].hint);
  return base_hint(
      ctx->err,
      interp_fail(ctx, op, XLAC_E_UNKNOWN_CUSTOM_CALL, "no custom call is registered under the target \"%s\"", target),
      "register it: xlac.register_custom_call(\"%.80s\", function), or in C xlac_registry_add_native", target);
}

/* What is registered, then what means something by itself, then natives that the run brings. */
int interp_eval_custom_call(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  const char *target = ir_get_str(op, IR_ATTR_CUSTOM_CALL_TARGET);
  void *fn_ctx = NULL;
  rt_native native = {.run = NULL};
  rt_custom_call_fn *fn = rt_registry_find(ctx->options.registry, target, &fn_ctx, &native);
  if (fn) return custom_registered(ctx, op, fn, fn_ctx, operands, out);
  if (native.run) return custom_native(ctx, op, &native, operands, out);
  interp_eval_fn *builtin = custom_builtin_find(target);
  if (builtin) return builtin(ctx, op, operands, out);
  if (ctx->options.natives && ctx->options.natives(ctx->options.natives_ctx, target, &native))
    return custom_native(ctx, op, &native, operands, out);
  return custom_unknown(ctx, op, target);
}

/* --- custom_topk ---
 *
 * The custom-call target "TopK": the k largest elements of each row, descending, and their indices; k is the results'
 * last dimension. Floats compare by total order, so NaN comes first and 0 before -0; equal elements keep their order.
 */

/* Dynamic sizes are compared as they are now. */
static bool topk_fits(const ir_op *op, interp_value *const *operands) {
  const ir_type *t = op->type;
  if (op->n_operands != 1 || operands[0]->kind != INTERP_ARRAY || operands[0]->rank == 0) return false;
  if (base_dtype_is_complex(operands[0]->dtype) || !ir_is_tuple(t) || t->n_elements != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_type *e = t->elements[i];
    if (!ir_is_tensor(e) || e->rank != operands[0]->rank) return false;
    for (uint32_t d = 0; d < e->rank; d++)
      if (d + 1 < e->rank ? e->dims[d] != operands[0]->dims[d] : e->dims[d] < 0 || e->dims[d] > operands[0]->dims[d])
        return false;
  }
  const ir_type *values = t->elements[0], *indices = t->elements[1];
  return values->count == indices->count && values->dtype == operands[0]->dtype &&
         base_dtype_is_integer(indices->dtype);
}

int interp_custom_topk(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  if (!topk_fits(op, operands))
    return interp_fail(ctx, op, XLAC_E_EVAL, "TopK takes [..., n] and gives ([..., k], integer [..., k]) with k <= n");
  interp_value *result = interp_zeros(ctx, op->type);
  if (!result) return interp_failed(ctx);
  int64_t k = result->elements[0]->dims[operands[0]->rank - 1];
  int status = interp_topk_rows(ctx, operands[0], k, true, result->elements[0], result->elements[1]);
  if (status != 0) return interp_release(result), status;
  *out = result;
  return 0;
}
