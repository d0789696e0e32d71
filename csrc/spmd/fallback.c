/* What has no local form is computed whole: its operands are gathered, every device computes all of it, and each takes
 * its part. So every op has a program, whatever its sharding; what that costs is noted.
 *
 * Requires: explicit reshards, that is, along each factor of an op's rule all tensors have the same axes. Then an op is
 * local where no dimension is sharded along which it moves data or needs it whole; sums over sharded dimensions are
 * followed by all-reduces. */
#include "../shard/common/common.h"
#include "../base/list.h"
#include "inside.h"

BASE_VEC(fallback_ops, ir_op *);
typedef struct fallback_pass {
  explicit_pass e;
  spmd_program *p;
  fallback_ops ops;     /* all of them, inner ones first */
  spmd_cause cause;     /* why the op that was looked at last is not local */
  uint32_t tensor, dim; /* what stands in its way; UINT32_MAX: no single dimension */
} fallback_pass;

/* --- what is local --- */

/* Always false: the op is not local, for that reason. */
static bool fallback_why(fallback_pass *x, spmd_cause cause) {
  x->cause = cause;
  return false;
}

/* Ops whose local form does not follow from their rule: there is one (local/), or they flow. */
static bool fallback_is_known(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_CALL:
    case IR_OP_CONSTANT:
    case IR_OP_IOTA:
    case IR_OP_PARTITION_ID:
    case IR_OP_REPLICA_ID:
      return true;
    default:
      return sdy_is_op(op) || sdy_is_flow_op(op);
  }
}

static const sdy_sharding *fallback_sharding(fallback_pass *x, const ir_op *op, uint32_t tensor, const ir_type **t) {
  assert(tensor < op->n_operands + op->n_results);
  bool in = tensor < op->n_operands;
  ir_value v = in ? opt_operand(op, tensor) : (ir_value){(ir_op *)(uintptr_t)op, tensor - op->n_operands};
  *t = opt_type(v);
  return explicit_get(&x->e, v);
}

static bool fallback_is_sharded(fallback_pass *x, const ir_op *op) {
  const ir_type *t;
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++)
    if (!sdy_sharding_is_replicated(fallback_sharding(x, op, i, &t))) return true;
  return false;
}

static bool fallback_has(sdy_ints list, int64_t factor) {
  for (uint32_t i = 0; i < list.n; i++)
    if (list.v[i] == factor) return true;
  return false;
}

/* Numbers that a shard alone would draw otherwise. */
static bool fallback_draws(fallback_pass *x, const ir_op *op) {
  if (op->opcode != IR_OP_RNG_BIT_GENERATOR) return op->opcode == IR_OP_RNG;
  const ir_type *t;
  const sdy_sharding *s = fallback_sharding(x, op, 2, &t);
  return !sdy_sharding_is_replicated(s) && !spmd_draws_alone(x->e.rw.m, op, s);
}

/* The rule of a library's function says which dimensions it goes through one by one: those that operands and results
 * share. Nothing is known of the others. */
static bool fallback_custom_shares(const sdy_rule *rule, int64_t factor) {
  bool in = false, out = false;
  for (uint32_t i = 0; i < rule->n_operands + rule->n_results; i++) {
    const sdy_tensor_map *map = i < rule->n_operands ? &rule->operands[i] : &rule->results[i - rule->n_operands];
    bool *side = i < rule->n_operands ? &in : &out;
    for (uint32_t d = 0; d < map->n_dims; d++) *side = *side || fallback_has(map->dims[d], factor);
  }
  return in && out && !fallback_has(rule->reduction, factor);
}

/* Ops whose local form fetches what it needs of other shards. */
static bool fallback_exchanges(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_CONCATENATE:
    case IR_OP_CONVOLUTION:
    case IR_OP_PAD:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_REVERSE:
    case IR_OP_SLICE:
      return true;
    default:
      return false;
  }
}

/* Along a dimension of one factor: is it one that may be sharded, and do all that have it agree? Dimensions of several
 * factors are a reshape's, which is looked at as a whole. */
static bool fallback_dim_fits(fallback_pass *x, const ir_op *op, const sdy_rule *rule, int64_t factor, sdy_axes axes) {
  if (fallback_has(rule->need_replication, factor)) return fallback_why(x, SPMD_NEEDS_WHOLE);
  if (rule->custom && !fallback_custom_shares(rule, factor)) return fallback_why(x, SPMD_NEEDS_WHOLE);
  if (fallback_has(rule->permutation, factor) && !fallback_exchanges(op)) return fallback_why(x, SPMD_MOVES);
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
    const sdy_tensor_map *map = i < op->n_operands ? &rule->operands[i] : &rule->results[i - op->n_operands];
    const ir_type *t;
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    for (uint32_t d = 0; d < map->n_dims; d++) {
      if (map->dims[d].n != 1 || map->dims[d].v[0] != factor) continue;
      if (!sdy_axes_equal(s && d < s->n_dims ? s->dims[d].axes : (sdy_axes){0, NULL}, axes))
        return fallback_why(x, SPMD_DISAGREES);
    }
  }
  return true;
}

/* The sizes of all shards together. */
static bool fallback_longer(const ir_type *t, const sdy_sharding *s, const sdy_mesh *mesh, int64_t *dims) {
  bool longer = false;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t shards = sdy_axes_size(s->dims[d].axes, mesh);
    dims[d] = (t->dims[d] + shards - 1) / shards * shards;
    longer = longer || dims[d] != t->dims[d];
  }
  return longer;
}

static bool fallback_reshape_fits(fallback_pass *x, const ir_op *op) {
  const ir_type *in, *out;
  assert(op->opcode == IR_OP_RESHAPE && op->n_operands == 1);
  const sdy_sharding *from = fallback_sharding(x, op, 0, &in), *to = fallback_sharding(x, op, 1, &out);
  const sdy_mesh *mesh = explicit_mesh(&x->e, from ? from : to);
  if (!from) from = sdy_sharding_empty(x->e.rw.m, to, in->rank, false);
  if (!to) to = sdy_sharding_empty(x->e.rw.m, from, out->rank, false);
  if (!from || !to || !mesh) return false;
  int64_t a[IR_MAX_RANK], b[IR_MAX_RANK];
  bool longer = fallback_longer(in, from, mesh, a);
  longer = fallback_longer(out, to, mesh, b) || longer;
  return (!longer || shc_reshape_keeps(in, a, out, b)) &&
         shc_reshape_is_local(&x->e.scratch, mesh, in->rank, a, from, out->rank, b, to);
}

/* Whether an op can stand anything past the end of a dimension: what it makes of it is past the end of its result's, or
 * its local form leaves it out. */
static bool fallback_goes_past(fallback_pass *x, const ir_op *op, const ir_type *t, uint32_t tensor, uint32_t d) {
  uint32_t n = 0;
  if (t->quant || t->dims[d] == 0) return false;
  switch (op->opcode) {
    case IR_OP_SCATTER: {
      const ir_mattr *dims = ir_mattr_of(op, "scatter_dimension_numbers");
      const int64_t *window = ir_m_ints(ir_m_field(dims, "update_window_dims"), &x->e.scratch, &n);
      uint32_t inputs = op->n_operands / 2;
      return tensor < inputs || tensor >= op->n_operands || (tensor > inputs && base_list_has(window, n, d));
    }
    case IR_OP_CONVOLUTION:
      return ir_m_get_int(op, "feature_group_count", 1) == 1 && ir_m_get_int(op, "batch_group_count", 1) == 1;
    case IR_OP_BROADCAST:
    case IR_OP_DYNAMIC_SLICE:
    case IR_OP_DYNAMIC_UPDATE_SLICE:
    case IR_OP_GATHER:
      return t->dims[d] > 1; /* rules say of one element that it is nobody's part */
    case IR_OP_CONCATENATE:
    case IR_OP_DOT:
    case IR_OP_PAD:
    case IR_OP_REDUCE:
    case IR_OP_REDUCE_WINDOW:
    case IR_OP_RESHAPE:
    case IR_OP_REVERSE:
    case IR_OP_SLICE:
    case IR_OP_SORT:
    case IR_OP_STABLEHLO_DOT:
    case IR_OP_TRANSPOSE:
      return true;
    default:
      return shard_is_elementwise(op);
  }
}

/* Sizes that are known, on one mesh, in even parts, with dimensions that the rule speaks of. */
static bool fallback_tensor_fits(fallback_pass *x, const ir_op *op, const sdy_rule *rule, uint32_t i,
                                 const sdy_mesh **mesh) {
  const ir_type *t;
  const sdy_sharding *s = fallback_sharding(x, op, i, &t);
  const sdy_tensor_map *map = i < op->n_operands ? &rule->operands[i] : &rule->results[i - op->n_operands];
  if (sdy_sharding_is_replicated(s)) return true;
  const sdy_mesh *own = explicit_mesh(&x->e, s);
  if (!shc_is_static(t)) return fallback_why(x, SPMD_DYNAMIC);
  if (!own || s->n_dims != t->rank || (*mesh && *mesh != own)) return fallback_why(x, SPMD_MESHES);
  *mesh = own;
  for (uint32_t d = 0; d < t->rank; d++) {
    if (s->dims[d].axes.n == 0) continue;
    x->tensor = i, x->dim = d;
    bool even = t->dims[d] && t->dims[d] % sdy_axes_size(s->dims[d].axes, own) == 0;
    if (!even && !fallback_goes_past(x, op, t, i, d)) return fallback_why(x, SPMD_UNEVEN);
    if (d >= map->n_dims || map->dims[d].n == 0) return fallback_why(x, SPMD_NEEDS_WHOLE);
    if (op->opcode == IR_OP_RESHAPE) continue;
    /* of a convolution's spatial dimension there may be two, windows and what is in them: movers.c looks at it */
    if (op->opcode == IR_OP_CONVOLUTION && i == 0 && map->dims[d].n == 2) continue;
    if (map->dims[d].n != 1) return fallback_why(x, SPMD_NO_RULE);
    if (!fallback_dim_fits(x, op, rule, map->dims[d].v[0], s->dims[d].axes)) return false;
  }
  return true;
}

/* --- sums over sharded dimensions --- */

/* Whether an all-reduce adds up along axes that made its operand parts of a sum. */
static bool fallback_adds_made(const ir_op *sum, const ir_op *maker) {
  const sdy_axes *summed = sdy_of(ir_mattr_of(sum, "reduction_axes"), SDY_AXES);
  const sdy_axes *made = sdy_of(ir_mattr_of(maker, "axes"), SDY_AXES);
  for (uint32_t i = 0; i < made->n; i++)
    if (sdy_axes_overlap(*summed, made->v[i])) return true;
  return false;
}

/* The all-reduce of op's partial results, also behind what other passes may have put between. */
static ir_op *fallback_find_sum(const ir_op *op) {
  IR_FOR_USES(use, op) {
    ir_op *reader = use->user;
    if (reader->opcode == IR_OP_SDY_ALL_REDUCE) return reader;
    bool makes = reader->opcode == IR_OP_SDY_REPLICATED_TO_UNREDUCED;
    ir_op *sum = makes || reader->opcode == IR_OP_SDY_RESHARD ? fallback_find_sum(reader) : NULL;
    if (sum && !(makes && fallback_adds_made(sum, reader))) return sum;
  }
  return NULL;
}

/* Looks through what only gives it another shape. */
bool spmd_is_zero(ir_value v) {
  static const char zeros[16];
  while (v.op->n_operands == 1 &&
         (v.op->opcode == IR_OP_BROADCAST || v.op->opcode == IR_OP_RESHAPE || v.op->opcode == IR_OP_SDY_RESHARD))
    v = opt_operand(v.op, 0);
  const void *element = opt_uniform(v);
  size_t bytes = base_dtype_bytes((base_dtype)opt_type(v)->dtype);
  assert(bytes <= sizeof zeros);
  return element && memcmp(element, zeros, bytes) == 0;
}

/* Every device begins with the initial value: it may count as often as there are devices only where it changes
 * nothing. */
static bool fallback_begins_with_zero(const ir_op *op) {
  if (op->opcode != IR_OP_REDUCE) return true; /* a scatter begins with its operand on one device alone */
  return opt_type(opt_operand(op, 1))->dtype == op->types[0]->dtype && spmd_is_zero(opt_operand(op, 1));
}

int spmd_reduction(const ir_op *op) {
  bool bits = op->n_results == 1 && ir_is_tensor(op->types[0]) && op->types[0]->dtype == XLAC_PRED;
  switch (op->opcode) {
    case IR_OP_DOT:
    case IR_OP_STABLEHLO_DOT:
    case IR_OP_CONVOLUTION:
      return bits ? SDY_MAX : SDY_SUM;
    case IR_OP_GATHER:
      return bits ? SDY_MAX : SDY_SUM;
    case IR_OP_REDUCE:
    case IR_OP_SCATTER:
      break;
    default:
      return -1;
  }
  if (op->n_results != 1) return -1;
  switch (shard_scatter_reduction(op)) {
    case IR_OP_ADD:
      return fallback_begins_with_zero(op) ? bits ? SDY_MAX : SDY_SUM : -1;
    case IR_OP_MAXIMUM:
    case IR_OP_OR:
      return SDY_MAX;
    case IR_OP_MINIMUM:
    case IR_OP_AND:
      return SDY_MIN;
    default:
      return -1;
  }
}

/* Whether what is added up are parts that op has from an operand. */
static bool fallback_hands_on(fallback_pass *x, const ir_op *op, const ir_op *sum) {
  const sdy_axes *summed = sdy_of(ir_mattr_of(sum, "reduction_axes"), SDY_AXES);
  const ir_type *t;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    for (uint32_t k = 0; s && k < s->unreduced.n; k++)
      if (sdy_axes_overlap(*summed, s->unreduced.v[k])) return true;
  }
  return false;
}

/* Explicit reshards add up, as Shardy does: what is combined otherwise says so. */
static bool fallback_combines(fallback_pass *x, const ir_op *op) {
  ir_op *sum = fallback_find_sum(op);
  if (!sum || fallback_hands_on(x, op, sum)) return true;
  int how = spmd_reduction(op);
  if (how < 0) return false;
  if (how == SDY_SUM) return true;
  const ir_mattr *word = ir_m_i32(x->e.rw.m, how);
  if (!word || !ir_m_set(sum, "reduction_op", word)) explicit_fail(&x->e, base_oom(x->e.err, "an all-reduce"));
  return true;
}

/* A part of a sharded dimension is written: all devices have all of the update along it. */
static bool fallback_updates_whole(fallback_pass *x, ir_op *op) {
  const ir_type *t, *update;
  const sdy_sharding *into = fallback_sharding(x, op, 0, &t), *part = fallback_sharding(x, op, 1, &update);
  assert(t->rank == update->rank);
  for (uint32_t d = 0; d < t->rank; d++) {
    if (t->dims[d] == update->dims[d]) continue;
    x->tensor = 1, x->dim = d;
    if (part && part->dims[d].axes.n) return fallback_why(x, SPMD_WRITES_PART);
    if (into && into->dims[d].axes.n && t->quant) return fallback_why(x, SPMD_WRITES_PART);
  }
  return true;
}

static bool fallback_moves(fallback_pass *x, const ir_op *op) {
  const sdy_sharding *shardings[3] = {NULL, NULL, NULL};
  const ir_type *t;
  bool mover = op->opcode == IR_OP_PAD || op->opcode == IR_OP_CONVOLUTION || op->opcode == IR_OP_REDUCE_WINDOW ||
               op->opcode == IR_OP_SELECT_AND_SCATTER;
  for (uint32_t i = 0; mover && i < 3 && i < op->n_operands + op->n_results; i++)
    shardings[i] = fallback_sharding(x, op, i, &t);
  const spmd_mover m = {op, shardings, &x->e.scratch};
  return mover && spmd_reaches(&m, &x->tensor, &x->dim);
}

/* A product that sums along a sharded dimension: its partial sums are to be added up, and read by nobody before. */
static bool fallback_sums(fallback_pass *x, const ir_op *op, const sdy_rule *rule) {
  const ir_type *t;
  if (op->opcode != IR_OP_DOT && op->opcode != IR_OP_STABLEHLO_DOT && op->opcode != IR_OP_CONVOLUTION) return true;
  const sdy_sharding *out = fallback_sharding(x, op, op->n_operands, &t);
  if (out && out->unreduced.n) return true; /* explicit reshards add up what the result has not */
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    for (uint32_t d = 0; s && d < s->n_dims; d++)
      if (s->dims[d].axes.n && fallback_has(rule->reduction, rule->operands[i].dims[d].v[0])) return spmd_sums_up(op);
  }
  return true;
}

/* Explicit reshards leave ops with custom rules alone: what fits those is fine on shards. */
static const sdy_rule *fallback_rule(fallback_pass *x, const ir_op *op) {
  const sdy_rule *own = sdy_of(ir_mattr_of(op, "sdy.sharding_rule"), SDY_RULE);
  bool counts = own && own->n_operands == op->n_operands && own->n_results == op->n_results;
  return counts && own->custom ? own : explicit_rule(&x->e, op);
}

/* Python's functions that JAX wants called on each device with its shards, which must be all of one size. */
static bool fallback_calls_each(fallback_pass *x, const ir_op *op) {
  static const char target[] = "xla_ffi_partitioned_python_cpu_callback";
  bool each = op->opcode == IR_OP_CUSTOM_CALL && op->n_results == 0 &&
              strcmp(ir_m_get_str(op, "call_target_name"), target) == 0;
  for (uint32_t i = 0; i < op->n_operands && each; i++) {
    const ir_type *t;
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    if (sdy_sharding_is_replicated(s)) continue;
    const sdy_mesh *mesh = explicit_mesh(&x->e, s);
    each = mesh && shc_is_static(t) && s->n_dims == t->rank;
    for (uint32_t d = 0; each && d < t->rank; d++) each = t->dims[d] % sdy_axes_size(s->dims[d].axes, mesh) == 0;
  }
  return each;
}

static bool fallback_is_local(fallback_pass *x, ir_op *op) {
  const sdy_mesh *mesh = NULL;
  if (fallback_is_known(op) || !fallback_is_sharded(x, op) || fallback_calls_each(x, op)) return true;
  x->tensor = x->dim = UINT32_MAX;
  if (fallback_draws(x, op)) return fallback_why(x, SPMD_DRAWS);
  const sdy_rule *rule = fallback_rule(x, op);
  if (!rule) return fallback_why(x, SPMD_NO_RULE);
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++)
    if (!fallback_tensor_fits(x, op, rule, i, &mesh)) return false;
  if (fallback_moves(x, op)) return fallback_why(x, SPMD_MOVES);
  x->tensor = x->dim = UINT32_MAX;
  if (!fallback_sums(x, op, rule) || !fallback_combines(x, op)) return fallback_why(x, SPMD_UNCOMBINED);
  if (op->opcode == IR_OP_DYNAMIC_UPDATE_SLICE) return fallback_updates_whole(x, op);
  return op->opcode != IR_OP_RESHAPE || fallback_reshape_fits(x, op) || fallback_why(x, SPMD_RESHAPES);
}

/* --- computing whole --- */

/* Whole along all dimensions, and in parts as before. */
static const sdy_sharding *fallback_whole(fallback_pass *x, const sdy_sharding *s, sdy_axes parts) {
  const sdy_sharding *whole = sdy_sharding_empty(x->e.rw.m, s, s->n_dims, false);
  if (!whole || parts.n == 0) return whole;
  sdy_sharding to = *whole;
  to.unreduced = parts;
  to.reduction = s->reduction;
  return sdy_sharding_make(x->e.rw.m, &to);
}

/* What op's operands are parts along, which its results then are, too. */
static sdy_axes fallback_parts(fallback_pass *x, const ir_op *op) {
  const ir_type *t;
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    if (s && s->unreduced.n) return s->unreduced;
  }
  return (sdy_axes){0, NULL};
}

static int64_t fallback_gather(fallback_pass *x, ir_op *op) {
  int64_t bytes = 0;
  opt_at(&x->e.rw, op);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *t;
    const sdy_sharding *s = fallback_sharding(x, op, i, &t);
    if (sdy_sharding_is_replicated(s)) continue;
    ir_value v = explicit_reshard(&x->e, opt_operand(op, i), fallback_whole(x, s, s->unreduced));
    if (x->e.status == 0 && !x->e.rw.failed) ir_set_operand(op, i, v);
    bytes += ir_type_bytes(t);
  }
  return bytes;
}

/* Partial sums are whole now: the all-reduces behind them go. */
static void fallback_drop_sums(fallback_pass *x, const ir_op *op) {
  for (ir_op *sum = fallback_find_sum(op); sum && !x->e.rw.failed; sum = fallback_find_sum(op)) {
    ir_value v = opt_operand(sum, 0);
    const sdy_sharding *s = sdy_get((ir_value){sum, 0});
    if (s && !sdy_get(v) && !sdy_set(v, s)) x->e.rw.failed = true; /* collectives that read it want one */
    opt_replace_one(&x->e.rw, sum, v);
  }
}

/* What the op would have left to add up is added up now: one device has it. */
static void fallback_part(fallback_pass *x, ir_value v, const sdy_sharding *s, sdy_axes parts) {
  const sdy_mesh *mesh = explicit_mesh(&x->e, s);
  sdy_axis *room = BASE_ARRAY(&x->e.rw.m->arena, sdy_axis, 2 * ((size_t)s->unreduced.n + parts.n) + 1);
  if (!room || !mesh) return explicit_fail(&x->e, base_oom(x->e.err, "an op that is computed whole"));
  sdy_axes more = {sdy_axes_minus(s->unreduced, parts, mesh, room), room};
  if (more.n == 0) return;
  explicit_after(&x->e, v);
  ir_value made = spmd_make_parts(&x->e, v, s, more);
  if (x->e.status == 0 && !x->e.rw.failed) explicit_replace(&x->e, v, made);
}

static void fallback_cut(fallback_pass *x, ir_op *op) {
  sdy_axes parts = fallback_parts(x, op);
  fallback_drop_sums(x, op);
  for (uint32_t i = 0; i < op->n_results; i++) {
    ir_value v = {op, i};
    const sdy_sharding *s = sdy_get(v);
    if (sdy_sharding_is_replicated(s)) continue;
    const sdy_sharding *whole = fallback_whole(x, s, parts);
    sdy_sharding to = *s;
    to.unreduced = parts;
    explicit_after(&x->e, v);
    ir_value cut = explicit_reshard(&x->e, v, &to);
    if (x->e.status || x->e.rw.failed) return;
    explicit_replace(&x->e, v, cut);
    if (!whole || !sdy_set(v, whole)) explicit_fail(&x->e, base_oom(x->e.err, "an op that is computed whole"));
    if (s->unreduced.n) fallback_part(x, cut, s, parts);
  }
}

static int fallback_op(fallback_pass *x, ir_op *op) {
  spmd_gather note = {.bytes = 0};
  bool whole = false;
  if (!fallback_is_known(op) || op->opcode == IR_OP_SDY_CONSTANT || op->opcode == IR_OP_CONSTANT ||
      op->opcode == IR_OP_IOTA)
    TRY(spmd_settle_parts(&x->e, op, fallback_rule(x, op), &whole));
  x->cause = SPMD_UNCOMBINED, x->tensor = x->dim = UINT32_MAX;
  if (!whole && fallback_is_local(x, op)) return x->e.status;
  note = (spmd_gather){.cause = x->cause, .tensor = x->tensor, .dim = x->dim};
  note.bytes = fallback_gather(x, op);
  fallback_cut(x, op);
  if (x->e.status == 0 &&
      !(spmd_place_of(x->p, op, &note.at) && BASE_VEC_PUSH(x->p->arena.alloc, &x->p->gathers, note)))
    explicit_fail(&x->e, base_oom(x->e.err, "a note"));
  return x->e.status;
}

static int fallback_list(void *ctx, ir_op *op) {
  fallback_pass *x = ctx;
  return BASE_VEC_PUSH(x->e.rw.m->alloc, &x->ops, op) ? 0 : base_oom(x->e.err, "the ops of a program");
}

/* Ops are listed first, since those that are computed whole take others away. */
int spmd_make_local(spmd_program *p, ir_module *m, xlac_error *err) {
  fallback_pass x = {.p = p};
  TRY(explicit_begin(&x.e, m, err));
  int status = shc_walk_module(m, true, fallback_list, &x);
  for (uint32_t i = 0; i < x.ops.n && status == 0; i++) status = fallback_op(&x, x.ops.items[i]);
  BASE_VEC_FREE(m->alloc, &x.ops);
  if (status) explicit_fail(&x.e, status);
  return explicit_end(&x.e);
}
