/* What a collective says of itself: which kind it is, who meets whom, how its arrays are cut. All of it is known when
 * the program is planned. */
#include "collective_form.h"

const ir_type *interp_form_type(const ir_type *t, uint32_t k) {
  return ir_is_tuple(t) ? t->elements[k] : t;
}

static bool collective_kind_of(const ir_op *op, rt_collective_kind *kind) {
  switch (op->opcode) {
    case IR_OP_ALL_REDUCE:
      *kind = RT_ALL_REDUCE;
      return true;
    case IR_OP_REDUCE_SCATTER:
      *kind = RT_REDUCE_SCATTER;
      return true;
    case IR_OP_ALL_GATHER:
      *kind = RT_ALL_GATHER;
      return true;
    case IR_OP_ALL_TO_ALL:
      *kind = ir_attr_find(op, IR_ATTR_DIMENSIONS) && op->n_operands == 1 ? RT_ALL_TO_ALL : RT_ALL_TO_ALL_EACH;
      return true;
    case IR_OP_COLLECTIVE_BROADCAST:
      *kind = RT_BROADCAST;
      return !ir_m_get_bool(op, "has_dynamic_root");
    case IR_OP_COLLECTIVE_PERMUTE:
      *kind = RT_PERMUTE;
      return !ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
    default:
      return false;
  }
}

/* Rows of the smaller side along the op's dimension: what is before it, and it with what is after. */
static bool collective_extent(const ir_op *op, rt_collective_kind kind, uint32_t k, rt_extent *e) {
  const ir_type *in = ir_operand_type(op, k), *out = interp_form_type(op->type, k);
  const ir_type *small = kind == RT_REDUCE_SCATTER ? out : in;
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  bool cut = kind == RT_REDUCE_SCATTER || kind == RT_ALL_GATHER || kind == RT_ALL_TO_ALL;
  int64_t dim = list && list->n == 1 ? list->v[0] : -1;
  if (!ir_is_tensor(in) || !ir_is_tensor(out) || in->dtype != out->dtype || (cut && (dim < 0 || dim >= in->rank)))
    return false;
  *e = (rt_extent){1, 1, (uint32_t)base_dtype_bytes((base_dtype)in->dtype)};
  for (uint32_t d = 0; d < small->rank; d++)
    if (cut && (int64_t)d < dim)
      e->outer *= small->dims[d];
    else
      e->inner *= small->dims[d];
  return true;
}

/* What each member gives and gets must fit his group: in an exchange a row is a part. */
static bool collective_fits(const ir_op *op, rt_collective_kind kind, uint32_t n, rt_extent *e, uint32_t k) {
  const ir_type *in = ir_operand_type(op, k), *out = interp_form_type(op->type, k);
  int64_t dim = kind == RT_ALL_TO_ALL ? ir_get_ints(op, IR_ATTR_DIMENSIONS)->v[0] : 0;
  switch (kind) {
    case RT_ALL_GATHER:
      return out->count == in->count * n;
    case RT_REDUCE_SCATTER:
      return in->count == out->count * n;
    case RT_ALL_TO_ALL:
      if (in->dims[dim] % n) return false;
      e->inner /= n;
      return in->count == out->count;
    case RT_ALL_TO_ALL_EACH:
      return op->n_operands == n && in->count == out->count;
    default:
      return in->count == out->count;
  }
}

static int collective_group_of(const ir_op *op, base_arena *arena, interp_ctx *ctx, rt_collective_kind kind,
                               rt_group *out) {
  interp_group g;
  uint32_t *sources = NULL;
  if (kind == RT_PERMUTE)
    TRY(interp_group_of_pairs(ctx, op, arena, &g, &sources));
  else
    TRY(interp_group_of(ctx, op, arena, &g));
  *out = (rt_group){g.named ? g.n : 0, g.place, g.members, sources};
  return 0;
}

/* The groups of all participants. *out NULL: the op's groups are wrong, which the interpreter says when it runs. */
static int collective_groups(const ir_op *op, base_arena *arena, const rt_communicator *grid, rt_collective_kind kind,
                             const rt_group **out, xlac_error *given) {
  uint32_t n = (uint32_t)(grid->replicas * grid->partitions);
  rt_group *groups = BASE_ARRAY(arena, rt_group, n);
  xlac_error err = {.code = 0};
  interp_ctx ctx = {.err = &err};
  ctx.options.communicator = (rt_communicator *)(uintptr_t)grid; /* read for its size alone */
  *out = NULL;
  if (!groups) return base_oom(given, "a collective");
  for (uint32_t i = 0; i < n; i++) {
    ctx.options.replica = i / grid->partitions;
    ctx.options.partition = i % grid->partitions;
    int status = collective_group_of(op, arena, &ctx, kind, &groups[i]);
    if (status == -XLAC_E_OUT_OF_MEMORY) return base_oom(given, "a collective");
    if (status) return 0;
  }
  *out = groups;
  return 0;
}

/* Extents and groups; false: a form for the interpreter. All groups are as large as the first that is one. */
static bool collective_measure(const ir_op *op, const interp_collective_form *c, rt_extent *extents) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < c->participants; i++) {
    uint32_t size = c->groups[i].n;
    if (size && n && size != n && c->what.kind != RT_ALL_REDUCE && c->what.kind != RT_BROADCAST) return false;
    if (size) n = size;
  }
  for (uint32_t k = 0; k < c->what.n; k++)
    if (!n || !collective_extent(op, c->what.kind, k, &extents[k]) ||
        !collective_fits(op, c->what.kind, n, &extents[k], k))
      return false;
  return true;
}

/* Groups that are axes of a mesh, as programs have them that are only planned. */
static bool collective_is_by_axes(const ir_op *op) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  return a && a->v.groups && a->v.groups->mesh_text;
}

int interp_collective_form_of(const ir_op *op, base_arena *arena, interp_collective_form *c, bool *known,
                              xlac_error *err) {
  const ir_config *config = &op->parent->module->config;
  rt_communicator grid = {.replicas = config->replica_count > 0 ? config->replica_count : 1,
                          .partitions = config->num_partitions > 0 ? config->num_partitions : 1,
                          .processes = 1};
  rt_extent *extents = BASE_ARRAY(arena, rt_extent, (size_t)op->n_operands + 1);
  int64_t n = 0;
  *known = false;
  *c = (interp_collective_form){.groups = NULL};
  if (!extents) return base_oom(err, "a collective");
  if (!base_mul_i64(grid.replicas, grid.partitions, &n) || n <= 1 || op->n_operands == 0 ||
      !collective_kind_of(op, &c->what.kind))
    return 0;
  c->what.n = op->n_operands;
  *known = collective_is_by_axes(op);
  if (*known || n > RT_MOST_PARTICIPANTS) return 0;
  c->participants = (uint32_t)n;
  c->what.channel = ir_get_int(op, IR_ATTR_CHANNEL_ID, 0);
  c->what.name = op->name->s;
  c->what.extents = extents;
  TRY(collective_groups(op, arena, &grid, c->what.kind, &c->groups, err));
  *known = c->groups && collective_measure(op, c, extents);
  return 0;
}
