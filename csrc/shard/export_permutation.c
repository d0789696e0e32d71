/* sdy-resolve-permutation-factors: dimensions along which an op moves data (slices, paddings, windows, reversals) need
 * data of other devices when they are sharded. Reversals exchange it; all other ops get such dimensions whole, and
 * reshards around them.
 * Requires: one sharding for every op (sdy-insert-explicit-reshards). Preserves: what the program computes. Source:
 * Shardy's answers (2026-06): newer ones exchange more. */
#include "permutation.h"

static bool permfac_is_stablehlo(const ir_op *op) {
  const ir_mlir_info *info = op->opcode == IR_OP_PARAMETER ? NULL : ir_opcode_info(op->opcode)->mlir;
  return info && strncmp(info->name, "stablehlo.", 10) == 0;
}

/* A slice from the start of a dimension that leaves every device a part of its own. */
static bool permfac_slice_stays(explicit_op *x, uint32_t d) {
  const ir_op *op = x->op;
  const sdy_sharding *s = x->shardings[0];
  const ir_type *in = opt_type(opt_operand(op, 0)), *out = op->type;
  if (!s || d >= s->n_dims) return true;
  const sdy_mesh *mesh = explicit_mesh(x->pass, s);
  int64_t shards = mesh ? sdy_axes_size(s->dims[d].axes, mesh) : 1;
  if (shards <= 1) return true;
  uint32_t n_starts = 0, n_strides = 0;
  base_arena *arena = &x->pass->rw.arena;
  const int64_t *starts = ir_m_ints(ir_mattr_of(op, "start_indices"), arena, &n_starts);
  const int64_t *strides = ir_m_ints(ir_mattr_of(op, "strides"), arena, &n_strides);
  if (d >= n_starts || d >= n_strides || starts[d] != 0 || strides[d] != 1) return false;
  if (!shc_is_static(in) || !shc_is_static(out)) return false;
  int64_t before = in->dims[d] / shards + (in->dims[d] % shards != 0);
  return before == out->dims[d] / shards + (out->dims[d] % shards != 0);
}

/* The verifier lets a slice have a sharding that its operand has not. */
static bool permfac_slice_is_even(explicit_op *x) {
  const sdy_sharding *a = x->shardings[0], *b = x->shardings[x->op->n_operands];
  if ((!a && !b) || (a && b && sdy_sharding_equal(a, b))) return true;
  int status = base_fail_at(x->pass->err, XLAC_E_VERIFY_SHARDING, x->op->line, x->op->col, "stablehlo.slice",
                            "the operand and the result of a slice have different shardings: expected the same");
  explicit_fail(x->pass, base_hint(x->pass->err, status, "run sdy-insert-explicit-reshards{enable-full-version=true}"));
  return false;
}

/* No tensor keeps axes along the factor. */
static void permfac_clear(explicit_op *x, uint32_t factor, bool *updated) {
  for (uint32_t t = 0; t < x->p.n_tensors; t++) {
    shard_part *part = shard_part_of(&x->p.tensors[t], factor);
    if (!part || (part->axes.n == 0 && part->overflow.n == 0)) continue;
    part->axes = part->overflow = (shard_axes){0, NULL};
    updated[t] = true;
  }
}

static void permfac_replicate(explicit_pass *e, ir_op *op) {
  explicit_op x;
  if (!explicit_prepare(&x, e, op, false, false)) return;
  if (op->opcode == IR_OP_SLICE && !permfac_slice_is_even(&x)) return;
  bool *updated = shard_pool_alloc(x.p.pool, x.p.n_tensors + 1), any = false;
  if (!updated) {
    explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
    return;
  }
  memset(updated, 0, x.p.n_tensors);
  for (uint32_t i = 0; i < x.rule->permutation.n; i++) {
    uint32_t factor = (uint32_t)x.rule->permutation.v[i];
    if (op->opcode == IR_OP_SLICE && permfac_slice_stays(&x, factor)) continue;
    permfac_clear(&x, factor, updated);
  }
  for (uint32_t t = 0; t < x.p.n_tensors; t++) any = any || updated[t];
  if (any) explicit_insert(&x, updated);
}

static void permfac_visit(perm_pass *p, ir_op *op, bool exchange) {
  if (!permfac_is_stablehlo(op)) return;
  explicit_pass *e = &p->e;
  shard_pool_empty(&e->pool);
  const sdy_rule *rule = explicit_rule(e, op);
  if (!rule || rule->permutation.n == 0 || e->status) return;
  if (exchange && op->opcode == IR_OP_REVERSE && perm_reverse(p, op)) return;
  if (e->status == 0) permfac_replicate(e, op);
}

/* Inner ops first; what is put in is not visited. Regions nest no deeper than the verifier allows. */
static void permfac_walk(perm_pass *p, ir_computation *c, bool exchange) {
  for (ir_op *op = c->first, *next = NULL; op && p->e.status == 0; op = next) {
    next = op->next;
    for (uint32_t i = 0; i < op->n_called; i++)
      if (op->called[i]->owner == op) permfac_walk(p, op->called[i], exchange);
    if (p->e.status == 0) permfac_visit(p, op, exchange);
  }
}

static bool permfac_find_meshes(perm_pass *p, ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    perm_mesh row = {sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH), ir_mattr_of(c->first, "sym_name")->str};
    if (!BASE_VEC_PUSH(m->alloc, &p->meshes, row)) return false;
  }
  return true;
}

int shard_resolve_permutation(ir_module *m, const opt_args *args, xlac_error *err) {
  bool exchange = opt_get(args, "enable-halo-exchange");
  perm_pass p = {.meshes = {.n = 0}};
  TRY(explicit_begin(&p.e, m, err));
  if (!shc_names_init(&p.names, m) || !permfac_find_meshes(&p, m))
    explicit_fail(&p.e, base_oom(err, "sdy-resolve-permutation-factors"));
  for (ir_computation *c = m->first; c && p.e.status == 0; c = c->next)
    if (c->kind == IR_FUNCTION && !c->owner && !c->declaration) permfac_walk(&p, c, exchange);
  shc_names_free(&p.names);
  BASE_VEC_FREE(m->alloc, &p.meshes);
  return explicit_end(&p.e);
}
