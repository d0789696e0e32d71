/* interpreter.run_parallel of upstream's tests. Its called computations are the programs, replica by replica, then what
 * gives the infeed; its operands are the programs' arguments one after another, its results theirs. */
#include "../eval/arrays.h"
#include "parallel.h"
#include "../probe.h"

typedef struct nested_run {
  interp_grid grid;
  uint32_t n, n_infeed;
  interp_program *programs;
  interp_value **results, **infeed;
} nested_run;

static bool nested_grid(const ir_op *op, nested_run *r) {
  const ir_mattr *programs = ir_mattr_of(op, "programs");
  if (!programs || programs->kind != IR_M_ARRAY || programs->v.list->n == 0) return false;
  const ir_mattr *row = programs->v.list->v[0];
  if (row->kind != IR_M_ARRAY || row->v.list->n == 0) return false;
  r->grid.replicas = programs->v.list->n;
  r->grid.partitions = row->v.list->n;
  r->grid.partition_major = true;
  int64_t n;
  if (!base_mul_i64(r->grid.replicas, r->grid.partitions, &n) || n > op->n_called) return false;
  r->n = (uint32_t)n;
  r->n_infeed = op->n_called - r->n;
  return true;
}

static int nested_programs(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, nested_run *r) {
  uint32_t at = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    interp_program *p = &r->programs[i];
    p->computation = op->called[i];
    p->n_args = p->computation->n_params;
    p->args = operands + at;
    p->n_infeed = r->n_infeed;
    p->infeed = r->infeed;
    if (p->n_args > op->n_operands - at)
      return interp_fail(ctx, op, XLAC_E_ARGUMENT_COUNT, "has %u operands, its programs take more", op->n_operands);
    at += p->n_args;
  }
  if (at != op->n_operands)
    return interp_fail(ctx, op, XLAC_E_ARGUMENT_COUNT, "has %u operands, its programs take %u", op->n_operands, at);
  for (uint32_t i = 0; i < r->n_infeed; i++) TRY(interp_call(ctx, op->called[r->n + i], 0, NULL, &r->infeed[i]));
  return 0;
}

/* The results of all, those of a program with several out of their tuple. */
static int nested_results(interp_ctx *ctx, const ir_op *op, base_arena *arena, const nested_run *r,
                          interp_value **out) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n; i++) n += r->results[i]->kind == INTERP_TUPLE ? r->results[i]->n_elements : 1;
  interp_value **flat = BASE_ARRAY(arena, interp_value *, n + 1u);
  if (!flat) return base_oom(ctx->err, "the results of participants");
  n = 0;
  for (uint32_t i = 0; i < r->n; i++) {
    interp_value *v = r->results[i];
    if (v->kind != INTERP_TUPLE) flat[n++] = v;
    for (uint32_t k = 0; k < v->n_elements; k++) flat[n++] = v->elements[k];
  }
  uint32_t wanted = ir_is_tuple(op->type) ? op->type->n_elements : 1;
  if (n != wanted) return interp_fail(ctx, op, XLAC_E_EVAL, "has %u results, its programs give %u", wanted, n);
  *out = ir_is_tuple(op->type) ? interp_tuple(ctx, n, flat) : interp_retain(flat[0]);
  return *out ? 0 : base_oom(ctx->err, "the results of participants");
}

static int nested_run_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, base_arena *arena,
                          nested_run *r, interp_value **out) {
  interp_options options = ctx->options;
  options.hub = NULL;
  TRY(nested_programs(ctx, op, operands, r));
  r->grid.programs = r->programs;
  TRY(interp_run_parallel(&options, &r->grid, r->results, NULL, ctx->err));
  return nested_results(ctx, op, arena, r, out);
}

static int nested_eval(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, base_arena *arena,
                       interp_value **out) {
  nested_run r = {.n = 0};
  if (!nested_grid(op, &r)) return interp_fail(ctx, op, XLAC_E_EVAL, "programs is no grid of functions");
  r.programs = base_arena_zalloc(arena, r.n * sizeof *r.programs);
  r.results = base_arena_zalloc(arena, r.n * sizeof *r.results);
  r.infeed = base_arena_zalloc(arena, (r.n_infeed + 1u) * sizeof *r.infeed);
  if (!r.programs || !r.results || !r.infeed) return base_oom(ctx->err, "participants");
  int status = nested_run_all(ctx, op, operands, arena, &r, out);
  for (uint32_t i = 0; i < r.n; i++) interp_release(r.results[i]);
  for (uint32_t i = 0; i < r.n_infeed; i++) interp_release(r.infeed[i]);
  return status;
}

int interp_eval_unregistered(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  base_arena arena;
  if (strcmp(op->u.name->s, "interpreter.probe") == 0) return interp_probe(ctx, op, operands, out);
  if (strncmp(op->u.name->s, "check.", 6) == 0) return interp_check(ctx, op, operands, out);
  if (strcmp(op->u.name->s, "interpreter.run_parallel") != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%s is not known to the interpreter", op->u.name->s);
  base_arena_init(&arena, ctx->options.alloc);
  int status = nested_eval(ctx, op, operands, &arena, out);
  base_arena_free(&arena);
  return status;
}
