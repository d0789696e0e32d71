/* Collectives: what they say they do to the operand's sharding gives the one they say their result has.
 *
 *     [{"a", "b"}, {}]  all_gather [{"b"}, {}]       gives [{"a"}, {}]           minor axes go
 *     [{"a"}, {}]       all_slice [{}, {"b"}]        gives [{"a"}, {"b"}]        axes come behind
 *     [{"a"}, {}]       all_to_all {"a"}: 0->1       gives [{}, {"a"}]           axes move
 * Sub-axes count: gathering "x":(2)2 from "x" leaves "x":(1)2. The texts are Shardy's. */
#include "verify_sdy.h"

/* The op's two shardings. */
typedef struct sdyv_collective {
  const sdy_sharding *from, *to; /* from NULL: none */
  const sdy_mesh *mesh;          /* of the result */
} sdyv_collective;

static const sdyv_where sdyv_here = {"", false, false, 0};
static const sdy_dim sdyv_no_axes = {{0, NULL}, false, -1};

/* An operand without a sharding is replicated. */
static const sdy_dim *sdyv_dim_of(const sdyv_collective *c, uint32_t d) {
  return c->from && d < c->from->n_dims ? &c->from->dims[d] : &sdyv_no_axes;
}

/* No sharding has no unreduced axes. */
static sdy_axes sdyv_unreduced(const sdy_sharding *s) {
  return s ? s->unreduced : (sdy_axes){0};
}

/* --- one dimension --- */

/* `end` is the minor part of a, or a. */
static bool sdyv_is_suffix(sdy_axis end, sdy_axis a, const sdy_mesh *mesh) {
  return sdy_axis_contains(a, end) && sdy_axis_end(end, mesh) == sdy_axis_end(a, mesh);
}

/* A dimension's axes without `gone`, which must be the minor ones. From the last axis to the first, since the minor
 * ones must go first. `kind` names the op's list in errors. */
static int sdyv_gather(const sdyv *v, const sdyv_collective *c, uint32_t d, sdy_axes gone, const char *kind,
                       sdy_axes *out) {
  assert(c->mesh);
  sdy_axes from = sdyv_dim_of(c, d)->axes;
  sdy_axis *room = BASE_ARRAY(v->arena, sdy_axis, from.n + (size_t)1);
  if (!room) return base_oom(v->err, "the check of a collective");
  if (from.n) memcpy(room, from.v, from.n * sizeof *room);
  uint32_t n = from.n;
  for (uint32_t i = gone.n; i-- > 0;) {
    if (n == 0 || !sdyv_is_suffix(gone.v[i], room[n - 1], c->mesh))
      return sdyv_fail(v, "can't apply %s axis %s to operand sharding on dimension %u", kind, SDYV_AXIS(gone.v[i]), d);
    sdy_axis rest;
    n--;
    if (sdy_axis_before(room[n], gone.v[i], &rest)) room[n++] = rest;
  }
  *out = (sdy_axes){n, room};
  return 0;
}

/* A dimension's axes with `more` after them. Neighbouring parts of one axis merge, as they would when printed. */
static int sdyv_slice(const sdyv *v, const sdyv_collective *c, uint32_t d, sdy_axes more, sdy_axes *out) {
  assert(c->mesh);
  sdy_axes from = sdyv_dim_of(c, d)->axes;
  sdy_axis *room = BASE_ARRAY(v->arena, sdy_axis, from.n + (size_t)more.n + 1);
  if (!room) return base_oom(v->err, "the check of a collective");
  if (from.n) memcpy(room, from.v, from.n * sizeof *room);
  uint32_t n = from.n;
  for (uint32_t i = 0; i < more.n; i++) n = sdy_axes_append(room, n, more.v[i], c->mesh);
  *out = (sdy_axes){n, room};
  return 0;
}

/* Openness and priorities of the result do not matter. */
static int sdyv_expect(const sdyv *v, const sdyv_collective *c, uint32_t d, sdy_axes expected) {
  assert(d < c->to->n_dims);
  if (sdy_axes_equal(expected, c->to->dims[d].axes)) return 0;
  return sdyv_fail(v, "result sharding doesn't match expected sharding [%s] on dimension %u",
                   SDYV_AXES(expected.n, expected.v), d);
}

/* --- lists of axes for each dimension --- */

/* `gather` names the kind of a gathering list; NULL for a slicing one. */
static int sdyv_check_lists(const sdyv *v, const sdyv_collective *c, const sdy_axis_lists *lists, const char *gather) {
  sdyv_seen seen = {0};
  for (uint32_t d = 0; d < lists->n; d++) TRY(sdyv_check_axes(v, sdyv_here, lists->v[d], c->mesh, &seen));
  if (c->to->n_dims != lists->n)
    return sdyv_fail(v, "result sharding has rank %u but collective axes has rank %u", c->to->n_dims, lists->n);
  for (uint32_t d = 0; d < lists->n; d++) {
    sdy_axes expected;
    TRY(gather ? sdyv_gather(v, c, d, lists->v[d], gather, &expected) : sdyv_slice(v, c, d, lists->v[d], &expected));
    TRY(sdyv_expect(v, c, d, expected));
  }
  return 0;
}

/* The attribute's kind has been checked. */
static const sdy_axis_lists *sdyv_lists(const sdyv *v, const char *key) {
  return sdy_of(ir_mattr_of(v->op, key), SDY_AXIS_LISTS);
}

/* The unreduced axes of the result are the operand's and `more`. */
static int sdyv_expect_unreduced(const sdyv *v, const sdyv_collective *c, uint32_t n_more, const sdy_axes *more,
                                 const char *what) {
  sdy_axes from = sdyv_unreduced(c->from);
  size_t total = from.n;
  for (uint32_t i = 0; i < n_more; i++) total += more[i].n;
  sdy_axis *room = BASE_ARRAY(v->arena, sdy_axis, total + 1);
  if (!room) return base_oom(v->err, "the check of a collective");
  uint32_t n = from.n;
  if (n) memcpy(room, from.v, n * sizeof *room);
  for (uint32_t i = 0; i < n_more; i++)
    for (uint32_t k = 0; k < more[i].n; k++) room[n++] = more[i].v[k];
  n = sdy_axes_sort_and_merge(room, n, c->mesh);
  if (sdy_axes_equal((sdy_axes){n, room}, c->to->unreduced)) return 0;
  return sdyv_fail(v, "out_unreduced_axes should be in_unreduced_axes + %s: expected {%s}, found {%s}", what,
                   SDYV_AXES(n, room), SDYV_AXES(c->to->unreduced.n, c->to->unreduced.v));
}

/* Only sums can be undone by this op. */
static int sdyv_check_sum(const sdyv *v, const sdyv_collective *c) {
  return c->to->reduction == SDY_SUM ? 0 : sdyv_fail(v, "out_sharding reduction_op must be SUM");
}

/* Axes leave their dimensions and become unreduced: each device keeps its part and zeros elsewhere. */
static int sdyv_sharded_to_unreduced(const sdyv *v, const sdyv_collective *c) {
  const sdy_axis_lists *lists = sdyv_lists(v, "axes");
  TRY(sdyv_check_sum(v, c));
  TRY(sdyv_check_lists(v, c, lists, "shard-to-unreduce"));
  return sdyv_expect_unreduced(v, c, lists->n, lists->v, "sharded_to_unreduced_axes");
}

/* --- lists of axes --- */

/* Whether the operand is sharded along a already. */
static bool sdyv_dims_overlap(const sdyv_collective *c, sdy_axis a) {
  for (uint32_t d = 0; c->from && d < c->from->n_dims; d++)
    if (sdy_axes_overlap(c->from->dims[d].axes, a)) return true;
  return false;
}

/* Openness and priorities included. */
static bool sdyv_dims_equal(const sdyv_collective *c) {
  for (uint32_t d = 0; d < c->to->n_dims; d++)
    if (!sdy_dim_equal(sdyv_dim_of(c, d), &c->to->dims[d])) return false;
  return true;
}

/* One device keeps the value, the others have zeros: the sum is the value. */
static int sdyv_replicated_to_unreduced(const sdyv *v, const sdyv_collective *c) {
  sdy_axes axes = *(const sdy_axes *)sdy_of(ir_mattr_of(v->op, "axes"), SDY_AXES);
  sdyv_seen seen = {0};
  TRY(sdyv_check_sum(v, c));
  if (!sdyv_dims_equal(c)) return sdyv_fail(v, "input and output must share the same dimension shardings");
  if (axes.n == 0) return sdyv_fail(v, "r2u axes must not be empty");
  TRY(sdyv_check_sorted_axes(v, sdyv_here, "r2u", axes, c->mesh, &seen));
  for (uint32_t i = 0; i < axes.n; i++) {
    if (sdyv_dims_overlap(c, axes.v[i]))
      return sdyv_fail(v, "r2u axis %s overlaps with operand dimension sharding", SDYV_AXIS(axes.v[i]));
    if (sdy_axes_overlap(sdyv_unreduced(c->from), axes.v[i]))
      return sdyv_fail(v, "r2u axis %s overlaps with operand unreduced axes", SDYV_AXIS(axes.v[i]));
  }
  return sdyv_expect_unreduced(v, c, 1, &axes, "r2u_axes");
}

/* The same axes on every dimension, on the same mesh; no axes at all is the same on any. */
static bool sdyv_equivalent_dims(const sdyv_collective *c) {
  bool plain = true, same = true;
  for (uint32_t d = 0; d < c->to->n_dims; d++) {
    sdy_axes a = sdyv_dim_of(c, d)->axes, b = c->to->dims[d].axes;
    plain = plain && a.n == 0 && b.n == 0;
    same = same && sdy_axes_equal(a, b);
  }
  if (plain) return true;
  return same && c->from && sdy_name_equal(c->from->mesh_name, c->to->mesh_name) &&
         sdy_mesh_equal(c->from->mesh, c->to->mesh);
}

/* Shards stay as they are; unreduced axes may go, none may come. */
static int sdyv_all_reduce(sdyv *v, const sdyv_collective *c) {
  sdy_axes axes = *(const sdy_axes *)sdy_of(ir_mattr_of(v->op, "reduction_axes"), SDY_AXES);
  sdyv_seen seen = {0};
  if (!sdyv_equivalent_dims(c)) return sdyv_fail(v, "operand and result shardings are not equivalent");
  TRY(sdyv_check_sorted_axes(v, sdyv_here, "reduction", axes, c->mesh, &seen));
  for (uint32_t i = 0; i < axes.n; i++) {
    bool replicated = c->from && sdy_axes_overlap(c->from->replicated, axes.v[i]);
    if (sdyv_dims_overlap(c, axes.v[i]) || replicated)
      return sdyv_fail(v, "reduction axis %s overlaps with operand dimension sharding or replicated axes",
                       SDYV_AXIS(axes.v[i]));
    if (sdy_axes_overlap(c->to->unreduced, axes.v[i]))
      return sdyv_fail(v, "reduction axis %s overlaps with result unreduced axes", SDYV_AXIS(axes.v[i]));
  }
  return sdyv_check_unreduced(v, c->from, c->to, SDYV_NEVER, (int)ir_m_get_int(v->op, "reduction_op", SDY_SUM));
}

/* An all-reduce and an all-slice in one. */
static int sdyv_reduce_scatter(sdyv *v, const sdyv_collective *c) {
  TRY(sdyv_check_unreduced(v, c->from, c->to, SDYV_NEVER, (int)ir_m_get_int(v->op, "reduction_op", SDY_SUM)));
  return sdyv_check_lists(v, c, sdyv_lists(v, "reduce_scatter_axes"), NULL);
}

/* --- all-to-all --- */

/* Of the result, which has the operand's rank. */
static int sdyv_check_dim(const sdyv *v, const sdyv_collective *c, int64_t d, const char *what) {
  if (d >= 0 && d < c->to->n_dims) return 0;
  return sdyv_fail(v, "%s dimension %lld is out of range [0, %u)", what, (long long)d, c->to->n_dims);
}

/* Each dimension is a source or a target once; `moved` marks them. */
static int sdyv_check_params(const sdyv *v, const sdyv_collective *c, const sdy_params *params, bool *moved) {
  sdyv_seen seen = {0};
  int64_t last = -1;
  for (uint32_t i = 0; i < params->n; i++) {
    const sdy_param *p = &params->v[i];
    TRY(sdyv_check_axes(v, sdyv_here, p->axes, c->mesh, &seen));
    TRY(sdyv_check_dim(v, c, p->from, "source"));
    TRY(sdyv_check_dim(v, c, p->to, "target"));
    const int64_t dims[] = {p->from, p->to};
    for (size_t k = 0; k < 2; k++) {
      if (moved[dims[k]])
        return sdyv_fail(v, "overlapping source/target dimensions in all-to-all params: %lld", (long long)dims[k]);
      moved[dims[k]] = true;
    }
    if (last >= p->from)
      return sdyv_fail(v, "source dimensions are not sorted in ascending order: %lld appears after %lld",
                       (long long)p->from, (long long)last);
    last = p->from;
  }
  return 0;
}

/* Dimensions that no parameter names stay as they are. */
static int sdyv_all_to_all(const sdyv *v, const sdyv_collective *c) {
  const sdy_params *params = sdy_of(ir_mattr_of(v->op, "params"), SDY_PARAMS);
  bool *moved = base_arena_zalloc(v->arena, c->to->n_dims + (size_t)1);
  if (!moved) return base_oom(v->err, "the check of a collective");
  if (params->n == 0) return sdyv_fail(v, "parameter list is empty");
  TRY(sdyv_check_params(v, c, params, moved));
  for (uint32_t i = 0; i < params->n; i++) {
    const sdy_param *p = &params->v[i];
    sdy_axes expected;
    TRY(sdyv_gather(v, c, (uint32_t)p->from, p->axes, "all-to-all", &expected));
    TRY(sdyv_expect(v, c, (uint32_t)p->from, expected));
    TRY(sdyv_slice(v, c, (uint32_t)p->to, p->axes, &expected));
    TRY(sdyv_expect(v, c, (uint32_t)p->to, expected));
  }
  for (uint32_t d = 0; d < c->to->n_dims; d++)
    if (!moved[d]) TRY(sdyv_expect(v, c, d, sdyv_dim_of(c, d)->axes));
  return 0;
}

/* --- collective-permute --- */

/* Shards go to other devices: axes may be exchanged or the order of devices changed, sizes not. */
static int sdyv_collective_permute(sdyv *v, const sdyv_collective *c) {
  assert(c->from);
  const sdy_mesh *from = sdyv_mesh(v, c->from);
  bool same_axes = from && sdy_mesh_equal(&(sdy_mesh){.n_axes = from->n_axes, .axes = from->axes},
                                          &(sdy_mesh){.n_axes = c->mesh->n_axes, .axes = c->mesh->axes});
  if (!same_axes) return sdyv_fail(v, "result mesh has different axes than operand mesh");
  bool same_name = sdy_name_equal(c->from->mesh_name, c->to->mesh_name);
  if (!same_name && sdy_mesh_equal(from, c->mesh))
    return sdyv_fail(v, "result mesh name is different but same device ids as operand");
  for (uint32_t d = 0; d < c->to->n_dims; d++) {
    int64_t in = sdy_axes_size(sdyv_dim_of(c, d)->axes, c->mesh), out = sdy_axes_size(c->to->dims[d].axes, c->mesh);
    if (in != out)
      return sdyv_fail(v, "sharded size of result doesn't match operand on dimension %u: %lld != %lld", d,
                       (long long)out, (long long)in);
  }
  return 0;
}

/* --- all --- */

/* These make sense of a replicated operand. */
static bool sdyv_may_lack_input(const ir_op *op) {
  return op->opcode == IR_OP_SDY_ALL_SLICE || op->opcode == IR_OP_SDY_ALL_REDUCE ||
         op->opcode == IR_OP_SDY_REDUCE_SCATTER;
}

/* Fills c; after this both shardings are on one mesh but for a permute, and of one rank. */
static int sdyv_check_ends_of_collective(sdyv *v, sdyv_collective *c) {
  const ir_op *op = v->op;
  c->from = sdy_shown(v->m, (ir_value){op->operands[0].op, op->operands[0].index});
  c->to = sdy_of(ir_mattr_of(op, "out_sharding"), SDY_SHARDING);
  if (!c->from && !sdyv_may_lack_input(op)) return sdyv_fail(v, "collective on operand without sharding");
  TRY(sdyv_check_sharding(v, sdyv_here, c->to, op->type));
  c->mesh = sdyv_mesh(v, c->to);
  const sdy_mesh *from = c->from ? sdyv_mesh(v, c->from) : NULL;
  if (op->opcode != IR_OP_SDY_COLLECTIVE_PERMUTE && from && !sdy_mesh_equal(from, c->mesh))
    return sdyv_fail(v, "result mesh does not match operand mesh");
  if (c->from && c->from->n_dims != c->to->n_dims)
    return sdyv_fail(v, "result sharding has rank %u but operand sharding has rank %u", c->to->n_dims, c->from->n_dims);
  return 0;
}

int sdyv_check_collective(sdyv *v) {
  assert(sdy_is_collective(v->op));
  sdyv_collective c = {0};
  TRY(sdyv_check_ends_of_collective(v, &c));
  switch (v->op->opcode) {
    case IR_OP_SDY_ALL_GATHER:
      return sdyv_check_lists(v, &c, sdyv_lists(v, "gathering_axes"), "gathering");
    case IR_OP_SDY_ALL_SLICE:
      return sdyv_check_lists(v, &c, sdyv_lists(v, "slicing_axes"), NULL);
    case IR_OP_SDY_ALL_TO_ALL:
      return sdyv_all_to_all(v, &c);
    case IR_OP_SDY_COLLECTIVE_PERMUTE:
      return sdyv_collective_permute(v, &c);
    case IR_OP_SDY_ALL_REDUCE:
      return sdyv_all_reduce(v, &c);
    case IR_OP_SDY_REDUCE_SCATTER:
      return sdyv_reduce_scatter(v, &c);
    case IR_OP_SDY_SHARDED_TO_UNREDUCED:
      return sdyv_sharded_to_unreduced(v, &c);
    default:
      assert(v->op->opcode == IR_OP_SDY_REPLICATED_TO_UNREDUCED);
      return sdyv_replicated_to_unreduced(v, &c);
  }
}
