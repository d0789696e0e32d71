/* Manual and named computations.
 *
 * Inside of sdy.manual_computation(%x) in_shardings=[<@m, [{"a"}]>] manual_axes={"a"} the program sees local shapes,
 * with the manual axes divided out: tensor<8xf32> outside is tensor<4xf32> inside where "a" has size 2. Free axes
 * stay visible to the propagation inside. */
#include "verify_sdy.h"

/* --- manual computations --- */

/* Manual axes cut first, so they are the major ones of a dimension. */
static int sdyv_check_manual_first(const sdyv *v, const char *kind, uint32_t value, const sdy_sharding *s,
                                   const sdy_names *axes) {
  for (uint32_t d = 0; d < s->n_dims; d++) {
    sdy_axes a = s->dims[d].axes;
    for (uint32_t i = 1; i < a.n; i++) {
      if (!sdy_is_manual_axis(axes, a.v[i].name) || sdy_is_manual_axis(axes, a.v[i - 1].name)) continue;
      return sdyv_fail(v,
                       "%s sharding at index %u must have all manual axes come before free axes in its dimension "
                       "sharding at index %u. Saw manual axis %s after free axis %s",
                       kind, value, d, SDYV_AXIS(a.v[i]), SDYV_AXIS(a.v[i - 1]));
    }
  }
  return 0;
}

/* The size along the manual axes of a dimension. Into how many parts the manual axes cut the dimension. */
static int64_t sdyv_manual_size(sdy_axes a, const sdy_names *axes, const sdy_mesh *mesh) {
  int64_t size = 1;
  for (uint32_t i = 0; i < a.n; i++)
    if (sdy_is_manual_axis(axes, a.v[i].name)) size *= sdy_axis_size(a.v[i], mesh);
  return size;
}

/* `global` is the operand's or result's type, `local` the region's. */
static int sdyv_check_local(sdyv *v, const char *kind, uint32_t value, const sdy_sharding *s, const ir_type *global,
                            const ir_type *local, const sdy_names *axes) {
  const sdy_mesh *mesh = sdyv_mesh(v, s);
  if (!ir_is_tensor(global)) return 0;
  ir_type expected = *global;
  int64_t *dims = BASE_ARRAY(v->arena, int64_t, (size_t)global->rank + 1);
  if (!dims) return base_oom(v->err, "a local shape");
  if (global->rank) memcpy(dims, global->dims, global->rank * sizeof *dims);
  expected.dims = dims;
  bool same = ir_is_tensor(local) && local->rank == global->rank && sv_same_element(global, local);
  for (uint32_t d = 0; d < global->rank && d < s->n_dims; d++) {
    int64_t size = sv_dim(global, d), parts = sdyv_manual_size(s->dims[d].axes, axes, mesh);
    if (size == SV_DYNAMIC) {
      same = same && sv_dim(local, d) == SV_DYNAMIC;
      continue;
    }
    if (size % parts != 0)
      return sdyv_fail(v, "%s dimension size %lld is not divisible by the manual axes size %lld", kind, (long long)size,
                       (long long)parts);
    dims[d] = size / parts;
    same = same && sv_dim(local, d) == dims[d];
  }
  if (same) return 0;
  return sdyv_fail(v,
                   "%s shape, corresponding sharding, and region %s shape at index %u must match. Expected local shape "
                   "'%s', actual local shape '%s'",
                   kind, kind, value, SV_SHOW(&expected), SV_SHOW(local));
}

/* The operands (results) with their shardings and what the region takes (returns). `kind` is "operand" or "result". */
static int sdyv_check_side(sdyv *v, const char *kind, const sdy_shardings *list, uint32_t n,
                           const ir_type *const *types, uint32_t n_inner, const ir_type *const *inner,
                           const sdy_names *axes) {
  assert(list && axes);
  char what[16] = {0};
  if (n == 0 && n_inner == 0 && list->n == 0) return 0;
  strcat(strcpy(what, kind), " ");
  TRY(sdyv_check_list(v, what, list, n, types));
  if (n != n_inner)
    return sdyv_fail(v, "number of op %ss and region %ss must match. Op has %u op %ss and %u region %ss", kind, kind, n,
                     kind, n_inner, kind);
  for (uint32_t i = 0; i < n && i < list->n; i++) {
    TRY(sdyv_check_manual_first(v, kind, i, list->v[i], axes));
    TRY(sdyv_check_local(v, kind, i, list->v[i], types[i], inner[i], axes));
  }
  return 0;
}

/* The one mesh of all shardings, but for empty ones. *found NULL where there is no sharding. */
static bool sdyv_common_mesh(sdyv *v, const sdy_shardings *list, const sdy_mesh **found) {
  for (uint32_t i = 0; i < list->n; i++) {
    const sdy_mesh *mesh = sdyv_mesh(v, list->v[i]);
    if (!mesh) continue;
    if (!*found || sdy_mesh_is_empty(*found)) {
      *found = mesh;
    } else if (!sdy_mesh_is_empty(mesh) && !sdy_mesh_equal(mesh, *found)) {
      return false;
    }
  }
  return true;
}

/* Without any sharding there is no mesh to look axes up in. */
static int sdyv_check_manual_axes(sdyv *v, const sdy_shardings *in, const sdy_shardings *out, const sdy_names *axes) {
  const sdy_mesh *mesh = NULL;
  if (in->n == 0 && out->n == 0) return 0;
  bool common = sdyv_common_mesh(v, in, &mesh) && sdyv_common_mesh(v, out, &mesh);
  if ((!common || !mesh) && axes->n)
    return sdyv_fail(v, "all in and out shardings must be bound to the same mesh or an empty mesh.");
  for (uint32_t i = 0; common && mesh && i < axes->n; i++)
    if (sdy_mesh_find(mesh, axes->v[i]) < 0) return sdyv_fail(v, "unknown manual axis: \"%s\"", axes->v[i]->s);
  return 0;
}

/* Room for n types and one more, so that n may be 0. */
static const ir_type **sdyv_types(const sdyv *v, uint32_t n) {
  return BASE_ARRAY(v->arena, const ir_type *, n + (size_t)1);
}

/* What a region takes, and what it returns. */
static int sdyv_region_types(const sdyv *v, const ir_computation *c, const ir_type ***in, const ir_type ***out) {
  *in = sdyv_types(v, c->n_params);
  *out = sdyv_types(v, c->n_results);
  if (!*in || !*out) return base_oom(v->err, "the check of a region");
  for (uint32_t i = 0; i < c->n_params; i++) (*in)[i] = c->params[i]->type;
  for (uint32_t i = 0; i < c->n_results; i++) (*out)[i] = sv_returned(c, i);
  return 0;
}

/* As the array that results have anyway. */
static int sdyv_operand_types(const sdyv *v, const ir_type ***out) {
  *out = sdyv_types(v, v->op->n_operands);
  if (!*out) return base_oom(v->err, "the check of operands");
  for (uint32_t i = 0; i < v->op->n_operands; i++) (*out)[i] = ir_operand_type(v->op, i);
  return 0;
}

/* An axis that is manual already can't be made manual again. */
int sdyv_check_bound(sdyv *v) {
  assert(v->op->opcode == IR_OP_SDY_MANUAL_COMPUTATION);
  const ir_op *op = v->op;
  const sdy_names *axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  for (uint32_t i = 0; i < axes->n; i++) {
    const ir_op *by = sdyv_bound_by(op, axes->v[i]);
    if (by)
      return sdyv_fail(
          v, "operates on axis \"%s\" which is already bound by a parent sdy.manual_computation op, of line %u",
          axes->v[i]->s, by->line);
  }
  return 0;
}

/* In- and out-shardings and manual axes are required attributes, so they are there. */
int sdyv_check_manual(sdyv *v) {
  assert(v->op->n_called == 1);
  const ir_op *op = v->op;
  const ir_computation *c = op->called[0];
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  const sdy_names *axes = sdy_of(ir_mattr_of(op, "manual_axes"), SDY_MANUAL_AXES);
  const ir_type **operands, **takes, **gives;
  TRY(sdyv_operand_types(v, &operands));
  TRY(sdyv_region_types(v, c, &takes, &gives));
  TRY(sdyv_check_side(v, "operand", in, op->n_operands, operands, c->n_params, takes, axes));
  TRY(sdyv_check_side(v, "result", out, op->n_results, op->types, c->n_results, gives, axes));
  return sdyv_check_manual_axes(v, in, out, axes);
}

/* --- named computations --- */

/* A named computation is a call in place: types are the same inside and outside. */
static int sdyv_check_ends(const sdyv *v, const ir_type *const *operands, const ir_type *const *takes,
                           const ir_type *const *gives) {
  const ir_computation *c = v->op->called[0];
  if (c->n_params != v->op->n_operands)
    return sdyv_fail(v, "number of block arguments must match the number of operands: %u != %u", c->n_params,
                     v->op->n_operands);
  for (uint32_t i = 0; i < c->n_params; i++)
    if (ir_bare(takes[i]) != ir_bare(operands[i]))
      return sdyv_fail(v,
                       "expected the type of the %u'th block argument to match the type of the corresponding operand: "
                       "%s vs %s",
                       i, SV_SHOW(takes[i]), SV_SHOW(operands[i]));
  bool same = c->n_results == v->op->n_results;
  for (uint32_t i = 0; same && i < c->n_results; i++) same = ir_bare(gives[i]) == ir_bare(v->op->types[i]);
  if (same) return 0;
  uint32_t i = 0;
  while (i < c->n_results && i < v->op->n_results && ir_bare(gives[i]) == ir_bare(v->op->types[i])) i++;
  return sdyv_fail(v,
                   "inferred type(s) are incompatible with return type(s) of operation: result %u is '%s', the region "
                   "returns '%s'; %u results, %u returned values",
                   i, i < v->op->n_results ? SV_SHOW(v->op->types[i]) : "none",
                   i < c->n_results ? SV_SHOW(gives[i]) : "none", v->op->n_results, c->n_results);
}

/* Both lists of shardings are optional. */
int sdyv_check_named(sdyv *v) {
  assert(v->op->n_called == 1);
  const ir_op *op = v->op;
  const sdy_shardings *in = sdy_of(ir_mattr_of(op, "in_shardings"), SDY_SHARDINGS);
  const sdy_shardings *out = sdy_of(ir_mattr_of(op, "out_shardings"), SDY_SHARDINGS);
  const ir_type **operands, **takes, **gives;
  TRY(sdyv_operand_types(v, &operands));
  TRY(sdyv_region_types(v, op->called[0], &takes, &gives));
  TRY(sdyv_check_ends(v, operands, takes, gives));
  if (in) TRY(sdyv_check_list(v, "in_shardings ", in, op->n_operands, operands));
  return out ? sdyv_check_list(v, "out_shardings ", out, op->n_results, op->types) : 0;
}
