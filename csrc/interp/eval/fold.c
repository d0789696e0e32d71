/* Prepared reduction computations.
 *
 * Most reducers are one op: those run as a C loop without any body. Others run by interp_apply, in the
 * types of the computation's parameters. */
#include "fold.h"
#include "../../scalar/program.h"

/* Sums and products straight in C: what the body would compute, without its overhead. Integers wrap. */
#define FOLD_KERNEL(name, T, operator)                                     \
  static void name(int64_t n, const void *acc, const void *x, void *out) { \
    const T *a = acc, *b = x;                                              \
    T *r = out;                                                            \
    for (int64_t i = 0; i < n; i++) r[i] = a[i] operator b[i];             \
  }
FOLD_KERNEL(fold_add_f32, float, +)
FOLD_KERNEL(fold_add_f64, double, +)
FOLD_KERNEL(fold_add_u32, uint32_t, +)
FOLD_KERNEL(fold_add_u64, uint64_t, +)
FOLD_KERNEL(fold_mul_f32, float, *)
FOLD_KERNEL(fold_mul_f64, double, *)
FOLD_KERNEL(fold_mul_u32, uint32_t, *)
FOLD_KERNEL(fold_mul_u64, uint64_t, *)
#undef FOLD_KERNEL

/* Sums and products only: their loops vectorise; min and max go through the scalar loops, which know NaN's
 * rules. */
static interp_fold_kernel *fold_kernel(ir_opcode opcode, base_dtype t) {
  if (opcode != IR_OP_ADD && opcode != IR_OP_MULTIPLY) return NULL;
  bool add = opcode == IR_OP_ADD;
  switch (t) {
    case XLAC_F32:
      return add ? fold_add_f32 : fold_mul_f32;
    case XLAC_F64:
      return add ? fold_add_f64 : fold_mul_f64;
    case XLAC_S32:
    case XLAC_U32:
      return add ? fold_add_u32 : fold_mul_u32;
    case XLAC_S64:
    case XLAC_U64:
      return add ? fold_add_u64 : fold_mul_u64;
    default:
      return NULL;
  }
}

/* Up to rounding: XLA reserves the right to regroup reductions, too. */
static bool opcode_is_associative(ir_opcode o) {
  return o == IR_OP_ADD || o == IR_OP_MULTIPLY || o == IR_OP_MAXIMUM || o == IR_OP_MINIMUM || o == IR_OP_AND ||
         o == IR_OP_OR || o == IR_OP_XOR;
}

/* The body's parameter types, after checking that its results can be accumulated again. */
static int fold_types(interp_ctx *ctx, const ir_op *op, const ir_computation *c, interp_fold *f) {
  const ir_type *root = ir_root(c)->type;
  if (c->n_params != 2 * f->n || (ir_is_tuple(root) ? root->n_elements : 1) != f->n)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s does not take and give %u accumulators", c->name->s, f->n);
  for (uint32_t i = 0; i < f->n; i++) {
    const ir_type *result = ir_is_tuple(root) ? root->elements[i] : root;
    f->acc[i] = c->params[i]->type->dtype;
    f->x[i] = c->params[f->n + i]->type->dtype;
    if (!scalar_is_one(result) || result->dtype != f->acc[i])
      return interp_fail(ctx, op, XLAC_E_EVAL, "result %u of %s is not of its parameter's type", i, c->name->s);
  }
  return 0;
}

/* bf16 sums are kept in f32: the accumulators' type changes, and operands are converted to it. */
static void fold_choose_kernel(interp_fold *f, bool widen) {
  ir_opcode opcode = interp_body_opcode(f->body);
  f->associative = opcode_is_associative(opcode) && f->acc[0] == f->x[0];
  if (f->n != 1 || f->acc[0] != f->x[0]) return;
  bool narrow = base_dtype_is_float(f->acc[0]) && base_dtype_bytes(f->acc[0]) < 4;
  f->kernel = fold_kernel(opcode, narrow && widen ? XLAC_F32 : f->acc[0]);
  if (f->kernel && narrow) f->acc[0] = f->x[0] = XLAC_F32;
}

/* On failure there is nothing to end. */
int interp_fold_begin(interp_ctx *ctx, const ir_op *op, const ir_computation *c, uint32_t n, bool widen,
                      interp_fold *f) {
  memset(f, 0, sizeof *f);
  assert(n > 0);
  f->n = n;
  f->acc = INTERP_SCRATCH(ctx, base_dtype, n);
  f->x = INTERP_SCRATCH(ctx, base_dtype, n);
  f->args = INTERP_SCRATCH(ctx, const void *, 2 * (int64_t)n);
  int status = f->acc && f->x && f->args ? fold_types(ctx, op, c, f) : interp_failed(ctx);
  if (status == 0) status = interp_body_prepare(ctx, c, &f->body);
  if (status == 0)
    fold_choose_kernel(f, widen);
  else
    interp_fold_end(ctx, f);
  return status;
}

/* May be called on a zeroed fold. */
void interp_fold_end(interp_ctx *ctx, interp_fold *f) {
  if (f->body) interp_body_free(f->body);
  interp_scratch_free(ctx, f->acc);
  interp_scratch_free(ctx, f->x);
  interp_scratch_free(ctx, f->args);
  memset(f, 0, sizeof *f);
}

int interp_fold_apply(interp_ctx *ctx, interp_fold *f, int64_t lanes, void *const *acc, void *const *x,
                      void *const *out) {
  assert(lanes >= 0);
  if (f->kernel) {
    f->kernel(lanes, acc[0], x[0], out[0]);
    return interp_tick(ctx, (uint64_t)lanes);
  }
  for (uint32_t i = 0; i < f->n; i++) {
    assert(out[i] != acc[i]);
    f->args[i] = acc[i];
    f->args[f->n + i] = x[i];
  }
  TRY(interp_tick(ctx, (uint64_t)lanes));
  return interp_apply(ctx, f->body, lanes, f->args, out);
}

int interp_fold_operands(interp_ctx *ctx, const interp_fold *f, interp_value *const *inits, interp_value *const *xs,
                         interp_value **acc, interp_value **x) {
  bool ok = true;
  for (uint32_t i = 0; i < f->n && ok; i++) {
    acc[i] = interp_as(ctx, inits[i], f->acc[i]);
    x[i] = interp_as(ctx, xs[i], f->x[i]);
    ok = acc[i] && x[i];
  }
  if (ok) return 0;
  interp_release_all(f->n, acc);
  interp_release_all(f->n, x);
  memset(acc, 0, f->n * sizeof *acc);
  memset(x, 0, f->n * sizeof *x);
  return interp_failed(ctx);
}

void interp_fold_buffers_free(interp_ctx *ctx, uint32_t n, void **buffers) {
  for (uint32_t i = 0; buffers && i < n; i++) interp_scratch_free(ctx, buffers[i]);
  interp_scratch_free(ctx, buffers);
}

/* NULL, with the error filled, when out of memory. */
void **interp_fold_buffers(interp_ctx *ctx, uint32_t n, const base_dtype *types, int64_t count) {
  void **p = interp_fold_list(ctx, n);
  for (uint32_t i = 0; p && i < n; i++) {
    p[i] = interp_scratch(ctx, count, base_dtype_bytes(types[i]));
    if (p[i]) continue;
    interp_fold_buffers_free(ctx, n, p);
    return NULL;
  }
  return p;
}
