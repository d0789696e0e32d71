/* Axes in normal form before propagation: manual axes in mesh order, no axes of size 1. Rules and projections then
 * need no special cases for them. */
#include "../common/common.h"

/* sdy-manual-axes-cleanup: the manual axes of a computation come in the order of the mesh, and those that one of its
 * shardings does not use are said to replicate that tensor.
 * Requires: nothing. Preserves: all else. */

typedef struct imp_manual {
  ir_module *m;
  opt_rewriter *rw;
} imp_manual;

static int imp_manual_oom(imp_manual *x) {
  return base_oom(x->rw->err, "sdy-manual-axes-cleanup");
}

/* The mesh that the shardings have, the one without device ids where they differ in those; like: a sharding on it. */
static const sdy_mesh *imp_common_mesh(const ir_module *m, const sdy_shardings *in, const sdy_shardings *out,
                                       const sdy_sharding **like) {
  const sdy_mesh *mesh = NULL;
  *like = NULL;
  for (uint32_t i = 0; i < in->n + out->n; i++) {
    const sdy_sharding *s = i < in->n ? in->v[i] : out->v[i - in->n];
    const sdy_mesh *found = sdy_mesh_of(m, s);
    if (!found || (mesh && !sdy_mesh_is_empty(mesh))) continue;
    mesh = found;
    *like = s;
  }
  return mesh;
}

/* Insertion sort by position in the mesh; a computation has a few manual axes. */
static int imp_sort_names(imp_manual *x, ir_op *op, const sdy_names *axes, const sdy_mesh *mesh) {
  const base_istr **v = BASE_ARRAY(&x->rw->arena, const base_istr *, (size_t)axes->n + 1);
  bool changed = false;
  if (!v) return imp_manual_oom(x);
  for (uint32_t i = 0; i < axes->n; i++) {
    uint32_t k = i;
    for (; k && sdy_mesh_find(mesh, axes->v[i]) < sdy_mesh_find(mesh, v[k - 1]); k--) v[k] = v[k - 1];
    v[k] = axes->v[i];
    changed = changed || k != i;
  }
  if (!changed) return 0;
  const ir_mattr *a = sdy_attr(x->m, SDY_MANUAL_AXES, sdy_names_make(x->m, axes->n, v));
  return a && ir_m_set(op, "manual_axes", a) ? 0 : imp_manual_oom(x);
}

/* All axes of a sharding, in one list. */
static sdy_axes imp_all_axes(imp_manual *x, const sdy_sharding *s) {
  uint32_t n = s->replicated.n + s->unreduced.n;
  for (uint32_t i = 0; i < s->n_dims; i++) n += s->dims[i].axes.n;
  sdy_axis *v = BASE_ARRAY(&x->rw->arena, sdy_axis, (size_t)n + 1);
  if (!v) return (sdy_axes){0, NULL};
  n = 0;
  for (uint32_t i = 0; i < s->n_dims; i++)
    for (uint32_t k = 0; k < s->dims[i].axes.n; k++) v[n++] = s->dims[i].axes.v[k];
  for (uint32_t k = 0; k < s->replicated.n; k++) v[n++] = s->replicated.v[k];
  for (uint32_t k = 0; k < s->unreduced.n; k++) v[n++] = s->unreduced.v[k];
  return (sdy_axes){n, v};
}

/* s with all of `manual` in it; NULL when out of memory. */
static const sdy_sharding *imp_with_manual(imp_manual *x, const sdy_sharding *s, sdy_axes manual,
                                           const sdy_sharding *like, const sdy_mesh *mesh) {
  sdy_axes used = imp_all_axes(x, s);
  if (!used.v) return NULL;
  sdy_axis *v = BASE_ARRAY(&x->m->arena, sdy_axis, (size_t)manual.n + used.n + s->replicated.n + 1);
  sdy_sharding *to = base_arena_memdup(&x->m->arena, s, sizeof *s);
  if (!v || !to) return NULL;
  if (s->replicated.n) memcpy(v, s->replicated.v, s->replicated.n * sizeof *v);
  uint32_t more = sdy_axes_minus(manual, used, mesh, v + s->replicated.n);
  if (more == 0) return s;
  to->replicated = (sdy_axes){sdy_axes_sort_and_merge(v, s->replicated.n + more, mesh), v};
  to->mesh_name = like->mesh_name;
  to->mesh = like->mesh;
  return to;
}

/* Tokens have no dimensions to replicate, so their shardings stay as they are. */
static int imp_fill_list(imp_manual *x, ir_op *op, const char *key, const sdy_shardings *list, bool results,
                         sdy_axes manual, const sdy_sharding *like, const sdy_mesh *mesh) {
  const sdy_sharding **v = BASE_ARRAY(&x->rw->arena, const sdy_sharding *, (size_t)list->n + 1);
  bool changed = false;
  if (!v) return imp_manual_oom(x);
  assert(list->n <= (results ? op->n_results : op->n_operands));
  for (uint32_t i = 0; i < list->n; i++) {
    const ir_type *type = results ? op->types[i] : ir_operand_type(op, i);
    v[i] = ir_is_tensor(type) ? imp_with_manual(x, list->v[i], manual, like, mesh) : list->v[i];
    if (!v[i]) return imp_manual_oom(x);
    changed = changed || v[i] != list->v[i];
  }
  if (!changed) return 0;
  const ir_mattr *a = sdy_attr(x->m, SDY_SHARDINGS, sdy_shardings_make(x->m, list->n, v));
  return a && ir_m_set(op, key, a) ? 0 : imp_manual_oom(x);
}

/* The body of a computation without operands and results may only be its terminator. */
static bool imp_has_body(const ir_op *op) {
  IR_FOR_OPS(inner, op->called[0]) {
    if (inner->opcode != IR_OP_PARAMETER) return true;
  }
  return false;
}

/* Example, on <["a"=2, "b"=2]>: manual_axes={"b", "a"} and in_shardings=[[{"a"}]] become manual_axes={"a", "b"} and
 * [[{"a"}], replicated={"b"}]. */
static int imp_manual_op(void *ctx, ir_op *op) {
  imp_manual *x = ctx;
  if (op->opcode != IR_OP_SDY_MANUAL_COMPUTATION) return 0;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  const sdy_names *axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  assert(in && out && axes);
  if (in->n == 0 && out->n == 0) {
    if (axes->n == 0 || !imp_has_body(op)) return 0;
    return opt_rewrite_fail(x->rw, op, XLAC_E_VERIFY_STRUCTURE,
                            "op has manual_axes when there are no in/out shardings and the body is not empty");
  }
  const sdy_sharding *like;
  const sdy_mesh *mesh = imp_common_mesh(x->m, in, out, &like);
  sdy_axis *manual = BASE_ARRAY(&x->rw->arena, sdy_axis, (size_t)axes->n + 1);
  if (!mesh) return 0;
  if (!manual) return imp_manual_oom(x);
  TRY(imp_sort_names(x, op, axes, mesh));
  axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  for (uint32_t i = 0; i < axes->n; i++) manual[i] = (sdy_axis){.name = axes->v[i]};
  sdy_axes all = {axes->n, manual};
  TRY(imp_fill_list(x, op, "in_shardings", in, false, all, like, mesh));
  return imp_fill_list(x, op, "out_shardings", out, true, all, like, mesh);
}

int shard_manual_axes_cleanup(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  imp_manual x = {m, &rw};
  int status = shc_walk_module(m, true, imp_manual_op, &x);
  opt_rewriter_free(&rw);
  return status;
}

/* sdy-remove-size-one-axes: axes of size 1 leave all shardings; meshes keep them.
 * Requires: nothing. Preserves: all else. */

typedef struct imp_size_one {
  ir_module *m;
} imp_size_one;

/* *changed is set, never cleared: several lists are done one after the other. */
static bool imp_drop_ones(ir_module *m, sdy_axes *a, const sdy_mesh *mesh, bool *changed) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < a->n; i++) n += sdy_axis_size(a->v[i], mesh) != 1;
  if (n == a->n) return true;
  sdy_axis *v = BASE_ARRAY(&m->arena, sdy_axis, (size_t)n + 1);
  if (!v) return false;
  n = 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (sdy_axis_size(a->v[i], mesh) != 1) v[n++] = a->v[i];
  *a = (sdy_axes){n, v};
  *changed = true;
  return true;
}

/* A sub-axis is never of size 1 (the verifier), so whole axes are all there is to look for. */
static const sdy_sharding *imp_size_one_map(void *ctx, const sdy_sharding *s) {
  ir_module *m = ((imp_size_one *)ctx)->m;
  const sdy_mesh *mesh = sdy_mesh_of(m, s);
  if (!mesh) return s;
  sdy_sharding *to = base_arena_memdup(&m->arena, s, sizeof *s);
  sdy_dim *dims = base_arena_memdup(&m->arena, s->dims, s->n_dims * sizeof *dims);
  bool changed = false, ok = to && dims;
  for (uint32_t i = 0; ok && i < s->n_dims; i++) {
    ok = imp_drop_ones(m, &dims[i].axes, mesh, &changed);
    /* A dimension without axes that takes none has no use for a priority. */
    if (dims[i].axes.n == 0 && !dims[i].open) dims[i].priority = -1;
  }
  ok = ok && imp_drop_ones(m, &to->replicated, mesh, &changed) && imp_drop_ones(m, &to->unreduced, mesh, &changed);
  if (!ok) return NULL;
  to->dims = dims;
  return changed ? to : s;
}

/* Most programs have no such axis, and are left untouched without a walk over their shardings. */
static bool imp_has_ones(const ir_module *m) {
  IR_FOR_COMPUTATIONS(c, m) {
    if (c->kind != IR_SYMBOL || !c->first || c->first->opcode != IR_OP_SDY_MESH) continue;
    const sdy_mesh *mesh = sdy_of(ir_mattr_of(c->first, "mesh"), SDY_MESH);
    for (uint32_t i = 0; i < mesh->n_axes; i++)
      if (mesh->axes[i].size == 1) return true;
  }
  return false;
}

int shard_remove_size_one_axes(ir_module *m, const opt_args *args, xlac_error *err) {
  (void)args;
  imp_size_one x = {m};
  return imp_has_ones(m) ? shc_map(m, imp_size_one_map, &x, err) : 0;
}
