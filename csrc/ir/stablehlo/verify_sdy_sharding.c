/* Lists of axes, shardings, and lists of shardings against meshes and types. The facts that messages name, and their
 * order, are Shardy's (sharding verification in its dialect.cc).
 *
 * <@mesh, [{"a", "b"}, {"c":(1)2, ?}], replicated={"d"}> shards dimension 0 along a and b, dimension 1 along the
 * major half of c and leaves it open for more, and keeps d out of it. Each axis, or part of one, occurs once. */
#include <stdio.h>

#include "verify_sdy.h"

/* --- errors --- */

/* As MLIR writes it. */
static const char *sdyv_op_name(const ir_op *op) {
  const ir_mlir_info *info = ir_opcode_info(op->opcode)->mlir;
  if (op->opcode == IR_OP_UNREGISTERED) return op->u.name->s;
  return info ? info->name : ir_opcode_text(op->opcode);
}

/* "'sdy.reshard' op <before><text>"; without an op the function's signature is meant. */
static int sdyv_fail_list(const sdyv *v, const char *before, const char *format, va_list args) {
  char text[sizeof v->err->message];
  vsnprintf(text, sizeof text, format, args);
  if (!v->op)
    return base_fail_at(v->err, XLAC_E_VERIFY_ATTRIBUTE, v->f->line, v->f->col, v->f->name->s, "'func.func' op %s%s",
                        before, text);
  return base_fail_at(v->err, XLAC_E_VERIFY_ATTRIBUTE, v->op->line, v->op->col, v->op->name->s, "'%s' op %s%s",
                      sdyv_op_name(v->op), before, text);
}

/* At the op, or at the function whose signature is checked. */
int sdyv_fail(const sdyv *v, const char *format, ...) {
  va_list args;
  va_start(args, format);
  int status = sdyv_fail_list(v, "", format, args);
  va_end(args);
  return status;
}

/* "result 1 - unknown axis name". */
int sdyv_fail_in(const sdyv *v, sdyv_where where, const char *format, ...) {
  char before[80];
  snprintf(before, sizeof before, where.numbered ? "%s%u - " : where.dash ? "%s- " : "%s", where.what, where.index);
  va_list args;
  va_start(args, format);
  int status = sdyv_fail_list(v, before, format, args);
  va_end(args);
  return status;
}

char *sdyv_axis_text(sdy_axis a, char *buf, size_t size) {
  if (a.size)
    snprintf(buf, size, "\"%s\":(%lld)%lld", a.name->s, (long long)a.pre, (long long)a.size);
  else
    snprintf(buf, size, "\"%s\"", a.name->s);
  return buf;
}

/* Cut where the buffer ends. */
char *sdyv_axes_text(uint32_t n, const sdy_axis *a, char *buf, size_t size) {
  assert(size > 0);
  size_t used = 0;
  buf[0] = 0;
  for (uint32_t i = 0; i < n && used + 1 < size; i++) {
    int more = snprintf(buf + used, size - used, "%s%s", i ? ", " : "", SDYV_AXIS(a[i]));
    used += more > 0 ? (size_t)more : 0;
  }
  return buf;
}

/* --- meshes --- */

/* Nearly all shardings of a module name one mesh, so the last look-up is kept. */
const sdy_mesh *sdyv_mesh(sdyv *v, const sdy_sharding *s) {
  if (!s->mesh_name) return s->mesh;
  if (s->mesh_name == v->last_name) return v->last;
  const sdy_mesh *mesh = sdy_mesh_named(v->m, s->mesh_name);
  if (mesh) v->last = mesh, v->last_name = s->mesh_name;
  return mesh;
}

/* --- lists of axes --- */

/* Scratch of the arena; the old array is given up. */
static int sdyv_note(const sdyv *v, sdyv_seen *seen, sdy_axis a) {
  if (seen->n == seen->cap) {
    uint32_t cap = seen->cap ? seen->cap * 2 : 16;
    sdy_axis *to = BASE_ARRAY(v->arena, sdy_axis, cap);
    if (!to) return base_oom(v->err, "the check of a sharding");
    if (seen->n) memcpy(to, seen->v, seen->n * sizeof *to);
    seen->v = to;
    seen->cap = cap;
  }
  seen->v[seen->n++] = a;
  return 0;
}

/* Known to the mesh, not seen before, and written as short as possible: "x":(1)2, "x":(2)2 would be "x":(1)4. */
int sdyv_check_axes(const sdyv *v, sdyv_where where, sdy_axes a, const sdy_mesh *mesh, sdyv_seen *seen) {
  assert(mesh && seen);
  for (uint32_t i = 0; i < a.n; i++) {
    sdy_axis x = a.v[i];
    if (sdy_mesh_find(mesh, x.name) < 0) return sdyv_fail_in(v, where, "unknown axis name: \"%s\"", x.name->s);
    for (uint32_t k = 0; k < seen->n; k++)
      if (sdy_axis_equal(seen->v[k], x)) return sdyv_fail_in(v, where, "duplicate axis ref: %s", SDYV_AXIS(x));
    if (i && sdy_axis_can_merge(a.v[i - 1], x))
      return sdyv_fail_in(v, where, "two consecutive sub-axes can be merged: %s, %s", SDYV_AXIS(a.v[i - 1]),
                          SDYV_AXIS(x));
    TRY(sdyv_note(v, seen, x));
  }
  return 0;
}

/* Replicated and unreduced axes are sets, so their order is fixed: the mesh's. */
int sdyv_check_sorted_axes(const sdyv *v, sdyv_where where, const char *name, sdy_axes a, const sdy_mesh *mesh,
                           sdyv_seen *seen) {
  for (uint32_t i = 1; i < a.n; i++)
    if (sdy_axis_compare(a.v[i - 1], a.v[i], mesh) > 0)
      return sdyv_fail_in(v, where, "%s axes are not ordered w.r.t. mesh", name);
  return sdyv_check_axes(v, where, a, mesh, seen);
}

/* Of an axis of size `full`. */
static int sdyv_check_sub_axis(const sdyv *v, sdyv_where where, sdy_axis a, int64_t full) {
  int64_t end = 0;
  if (a.pre < 1) return sdyv_fail_in(v, where, "sub-axis pre-size must be at least 1: %s", SDYV_AXIS(a));
  if (a.size <= 1) return sdyv_fail_in(v, where, "sub-axis sizes must be greater than 1: %s", SDYV_AXIS(a));
  bool fits = base_mul_i64(a.pre, a.size, &end) && full % end == 0;
  if (!fits)
    return sdyv_fail_in(v, where, "sub-axis next pre-size %lld doesn't divide the size of the full axis %lld: %s",
                        (long long)end, (long long)full, SDYV_AXIS(a));
  if (a.size == full) return sdyv_fail_in(v, where, "sub-axis size is equal to the full axis size: %s", SDYV_AXIS(a));
  return 0;
}

/* Each sub-axis divides its axis, and none overlaps another or the axis itself. Sorts `seen`. */
static int sdyv_check_sub_axes(const sdyv *v, sdyv_where where, const sdy_mesh *mesh, sdyv_seen *seen) {
  sdy_axes_sort(seen->v, seen->n, mesh);
  for (uint32_t i = 0; i < seen->n; i++) {
    sdy_axis a = seen->v[i];
    if (!a.size) continue;
    for (uint32_t k = 0; k < seen->n; k++)
      if (!seen->v[k].size && seen->v[k].name == a.name)
        return sdyv_fail_in(v, where, "both sub-axis and full-axis are used for axis name: \"%s\"", a.name->s);
    TRY(sdyv_check_sub_axis(v, where, a, sdy_axis_size((sdy_axis){.name = a.name}, mesh)));
    if (i && seen->v[i - 1].name == a.name && sdy_axis_end(seen->v[i - 1], mesh) > a.pre)
      return sdyv_fail_in(v, where, "overlapping sub-axes: %s, %s", SDYV_AXIS(seen->v[i - 1]), SDYV_AXIS(a));
  }
  return 0;
}

/* --- shardings --- */

/* As a maximal sharding or that of a token is. */
static bool sdyv_says_nothing(const sdy_sharding *s) {
  return s->n_dims == 0 && s->replicated.n == 0 && s->unreduced.n == 0;
}

/* Manual axes of an enclosing computation are used up. */
static int sdyv_check_free(const sdyv *v, sdyv_where where, sdy_axes a) {
  for (uint32_t i = 0; i < a.n; i++) {
    const ir_op *by = sdyv_bound_by(v->op, a.v[i].name);
    if (by)
      return sdyv_fail_in(v, where,
                          "operates on axis \"%s\" which is already bound by a parent sdy.manual_computation op, of "
                          "line %u",
                          a.v[i].name->s, by->line);
  }
  return 0;
}

/* Priorities are for the propagation, which has nothing to do at an empty closed dimension. */
static int sdyv_check_dims(sdyv *v, sdyv_where where, const sdy_sharding *s, const sdy_mesh *mesh, sdyv_seen *seen) {
  for (uint32_t i = 0; i < s->n_dims; i++) {
    const sdy_dim *d = &s->dims[i];
    if (d->priority >= 0 && !d->open && d->axes.n == 0)
      return sdyv_fail_in(v, where, "dim %u is empty and closed but has a priority", i);
    TRY(sdyv_check_axes(v, where, d->axes, mesh, seen));
  }
  return 0;
}

/* The tensor that is sharded: the type itself, or the one element of a tuple of one. */
static const ir_type *sdyv_shaped(const ir_type *type) {
  if (type && ir_is_tuple(type) && type->n_elements == 1) type = type->elements[0];
  return type && sv_is_shaped(type) ? type : NULL;
}

/* Ranks agree; what is not a tensor has nothing to shard. */
static int sdyv_check_against_type(const sdyv *v, sdyv_where where, const sdy_sharding *s, const ir_type *type) {
  if (ir_is_tuple(type) && type->n_elements != 1)
    return sdyv_fail_in(v, where, "ops can only have a sharding for a tuple of size 1: %s", SV_SHOW(type));
  const ir_type *shaped = sdyv_shaped(type);
  if (!shaped) {
    if (sdyv_says_nothing(s)) return 0;
    return sdyv_fail_in(v, where,
                        "non-shaped tensors can only have a sharding with rank 0 and no replicated or unreduced axes. "
                        "type: '%s', sharding on @%s of rank %u with %u replicated and %u unreduced axes",
                        SV_SHOW(type), s->mesh_name ? s->mesh_name->s : "", s->n_dims, s->replicated.n, s->unreduced.n);
  }
  if (!ir_is_tensor(shaped))
    return sdyv_fail_in(v, where, "only ranked tensors can have a sharding. type: %s", SV_SHOW(type));
  if (shaped->rank != s->n_dims)
    return sdyv_fail_in(v, where, "sharding doesn't match tensor rank: %u != %u", s->n_dims, shaped->rank);
  return 0;
}

int sdyv_check_sharding(sdyv *v, sdyv_where where, const sdy_sharding *s, const ir_type *type) {
  assert(v && s);
  const sdy_mesh *mesh = sdyv_mesh(v, s);
  if (!mesh) return sdyv_fail_in(v, where, "unknown mesh: @%s", s->mesh_name->s);
  if (sdy_mesh_is_maximal(mesh) || (!type && sdy_sharding_is_replicated(s))) {
    if (sdyv_says_nothing(s)) return 0;
    return sdyv_fail_in(v, where,
                        "a maximal sharding can only have a sharding with rank 0 and no replicated or unreduced axes.");
  }
  if (!type) return 0;
  TRY(sdyv_check_against_type(v, where, s, type));
  if (!sdyv_shaped(type)) return 0;
  sdyv_seen seen = {0};
  TRY(sdyv_check_dims(v, where, s, mesh, &seen));
  TRY(sdyv_check_sorted_axes(v, where, "replicated", s->replicated, mesh, &seen));
  TRY(sdyv_check_sorted_axes(v, where, "unreduced", s->unreduced, mesh, &seen));
  TRY(sdyv_check_sub_axes(v, where, mesh, &seen));
  return sdyv_check_free(v, where, (sdy_axes){seen.n, seen.v});
}

/* An op without results may have one maximal sharding: where it runs. */
int sdyv_check_list(sdyv *v, const char *what, const sdy_shardings *list, uint32_t n, const ir_type *const *types) {
  assert(list && (types || n == 0));
  if (n == 0 && list->n == 1) {
    const sdy_mesh *mesh = sdyv_mesh(v, list->v[0]);
    if ((mesh && sdy_mesh_is_maximal(mesh)) || sdy_sharding_is_replicated(list->v[0]))
      return sdyv_check_sharding(v, (sdyv_where){what, true, false, 0}, list->v[0], NULL);
  }
  if (list->n != n)
    return sdyv_fail(v, "%sshardings don't match number of values: %u shardings vs %u values", what, list->n, n);
  for (uint32_t i = 0; i < n; i++)
    TRY(sdyv_check_sharding(v, (sdyv_where){what, n > 1, n == 1, i}, list->v[i], types[i]));
  return 0;
}

/* --- unreduced axes from one value to the next --- */

/* In Shardy's words. */
static const char *sdyv_reduction(uint8_t kind) {
  static const char *const words[] = {[SDY_SUM] = "sum", [SDY_MAX] = "max", [SDY_MIN] = "min"};
  return words[kind];
}

/* The axes of a that are not in b. Into scratch of the arena. */
static int sdyv_minus(const sdyv *v, sdy_axes a, sdy_axes b, const sdy_mesh *mesh, sdy_axes *out) {
  sdy_axis *room = BASE_ARRAY(v->arena, sdy_axis, a.n + (size_t)b.n + 1);
  if (!room) return base_oom(v->err, "the check of a sharding");
  *out = (sdy_axes){sdy_axes_minus(a, b, mesh, room), room};
  return 0;
}

/* In any part. */
static bool sdyv_lists_overlap(sdy_axes a, sdy_axes b) {
  for (uint32_t i = 0; i < b.n; i++)
    if (sdy_axes_overlap(a, b.v[i])) return true;
  return false;
}

/* `introduced` and `removed` are the reductions (sdy_reduction) that the op may begin or finish; SDYV_NEVER for none.
 */
int sdyv_check_unreduced(sdyv *v, const sdy_sharding *from, const sdy_sharding *to, int introduced, int removed) {
  sdy_axes a = from ? from->unreduced : (sdy_axes){0}, b = to ? to->unreduced : (sdy_axes){0}, more = {0}, less = {0};
  const sdy_mesh *x = from ? sdyv_mesh(v, from) : NULL, *y = to ? sdyv_mesh(v, to) : NULL, *mesh = x ? x : y;
  if ((a.n == 0 && b.n == 0) || !mesh || (x && y && !sdy_mesh_equal(x, y))) return 0;
  TRY(sdyv_minus(v, b, a, mesh, &more));
  TRY(sdyv_minus(v, a, b, mesh, &less));
  if (more.n && introduced == SDYV_NEVER) return sdyv_fail(v, "cannot add new unreduced axis '%s'.", more.v[0].name->s);
  if (more.n && to->reduction != introduced)
    return sdyv_fail(v, "cannot introduce '%s' unreduced axes. Expected '%s'.", sdyv_reduction(to->reduction),
                     sdyv_reduction((uint8_t)introduced));
  if (less.n && from->reduction != removed)
    return sdyv_fail(v, "cannot reduce '%s' unreduced axes. Expected '%s'.", sdyv_reduction(from->reduction),
                     sdyv_reduction((uint8_t)removed));
  if (from && to && from->reduction != to->reduction && sdyv_lists_overlap(a, b))
    return sdyv_fail(v, "cannot change the reduction operator of kept unreduced axes from %s to %s.",
                     sdyv_reduction(from->reduction), sdyv_reduction(to->reduction));
  return 0;
}
