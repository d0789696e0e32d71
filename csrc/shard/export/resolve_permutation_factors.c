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
  const sdy_sharding *s = x->shardings[0], *result = x->shardings[op->n_operands];
  const ir_type *in = opt_type(opt_operand(op, 0)), *out = op->type;
  static const sdy_axes none = {0, NULL};
  if (!sdy_axes_equal(s && d < s->n_dims ? s->dims[d].axes : none,
                      result && d < result->n_dims ? result->dims[d].axes : none))
    return false;
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

/* The sizes that shards divide. */
static bool permfac_padded(explicit_pass *e, const ir_type *t, const sdy_sharding *s, int64_t *dims) {
  const sdy_mesh *mesh = s && s->n_dims == t->rank ? explicit_mesh(e, s) : NULL;
  bool grows = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t shards = mesh ? sdy_axes_size(s->dims[d].axes, mesh) : 1, over = t->dims[d] % shards;
    dims[d] = over ? t->dims[d] + shards - over : t->dims[d];
    grows = grows || over;
  }
  return grows;
}

/* A reshape may move elements between devices: where its shardings do not go together, or where dimensions that do not
 * divide into their shards are padded within others. */
static bool permfac_reshape_stays(explicit_pass *e, const ir_op *op) {
  const ir_type *in = opt_type(opt_operand(op, 0)), *out = op->type;
  const sdy_sharding *s = explicit_get(e, opt_operand(op, 0));
  const sdy_sharding *to = explicit_get(e, (ir_value){(ir_op *)(uintptr_t)op, 0});
  int64_t a[IR_MAX_RANK] = {0}, b[IR_MAX_RANK] = {0};
  if (!shc_is_static(in) || !shc_is_static(out) || (explicit_is_replicated(s) && explicit_is_replicated(to)))
    return true;
  bool grows = permfac_padded(e, in, s, a);
  grows = permfac_padded(e, out, to, b) || grows;
  if (grows && !shc_reshape_keeps(in, a, out, b)) return false;
  const sdy_mesh *mesh = explicit_mesh(e, s ? s : to);
  return !mesh || shc_reshape_is_local(&e->rw.arena, mesh, in->rank, a, s, out->rank, b, to);
}

static void permfac_reshape(explicit_pass *e, ir_op *op) {
  explicit_op x;
  if (permfac_reshape_stays(e, op) || !explicit_prepare(&x, e, op, false, false)) return;
  bool *updated = shard_pool_alloc(x.p.pool, x.p.n_tensors + 1);
  if (!updated) {
    explicit_fail(e, base_oom(e->err, "sdy-resolve-permutation-factors"));
    return;
  }
  memset(updated, 0, x.p.n_tensors);
  for (uint32_t i = 0; i < x.rule->sizes.n; i++) permfac_clear(&x, i, updated);
  explicit_insert(&x, updated);
}

static void permfac_visit(perm_pass *p, ir_op *op, bool exchange) {
  if (!permfac_is_stablehlo(op)) return;
  explicit_pass *e = &p->e;
  shard_pool_empty(&e->pool);
  const sdy_rule *rule = explicit_rule(e, op);
  if (!rule || e->status) return;
  if (op->opcode == IR_OP_RESHAPE) permfac_reshape(e, op);
  if (rule->permutation.n == 0 || e->status) return;
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
