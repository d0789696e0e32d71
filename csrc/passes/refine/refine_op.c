/* Result types of ops from what is known of their operands: sizes from constant shape operands, else StableHLO's own
 * inference. Types only ever become more specific, which bounds the work and keeps users valid. */
#include <stdio.h>

#include "../../ir/stablehlo/stablehlo.h"
#include "refine.h"

/* Booleans count as 0 and 1. */
bool opt_constant_ints(opt_rewriter *rw, ir_value v, const int64_t **out, uint32_t *n) {
  assert(out != NULL && n != NULL);
  bool splat = false;
  const ir_literal *l = opt_constant_of(v, &splat);
  const ir_type *t = opt_type(v);
  *n = 0;
  if (!l || t->count > 2 * IR_MAX_RANK || t->quant ||
      !(t->dtype == XLAC_PRED || base_dtype_is_integer((base_dtype)t->dtype)))
    return false;
  int64_t *ints = BASE_ARRAY(&rw->arena, int64_t, (size_t)t->count + 1);
  if (!ints) return (rw->failed = true), false;
  size_t size = base_dtype_bytes((base_dtype)t->dtype);
  for (int64_t i = 0; i < t->count; i++)
    ints[i] = base_load_i64((base_dtype)t->dtype, (const char *)l->data + (splat ? 0 : (size_t)i * size));
  *out = ints;
  *n = (uint32_t)t->count;
  return true;
}

/* Ops of StableHLO, CHLO and func take any refinement of their operands; of unregistered ops only Shardy's do: others
 * may insist on the type they have. */
static bool refine_user_takes(const ir_op *user) {
  return user->opcode != IR_OP_UNREGISTERED || strncmp(user->u.name->s, "sdy.", 4) == 0;
}

/* Users that demand the old type keep it. */
void opt_refine_value(opt_rewriter *rw, ir_value v, const ir_type *type, bool *changed) {
  const ir_type *now = opt_type(v), *most = stablehlo_most_specific(rw->m, v.op, now, type);
  if (!most || most == now) return;
  IR_FOR_USES(use, v.op)
  if (use->index == v.index && !refine_user_takes(use->user)) return;
  opt_set_type(rw, v, most);
  *changed = true;
}

/* --- shapes --- */

/* A result of these sizes; a negative one is unknown.
 * Only ops with one result say its sizes so. */
static void refine_by_dims(opt_rewriter *rw, ir_op *op, uint32_t rank, const int64_t *sizes, bool *changed) {
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
  if (rank > IR_MAX_RANK || op->n_results != 1) return;
  for (uint32_t i = 0; i < rank; i++) {
    dynamic[i] = sizes[i] < 0;
    dims[i] = dynamic[i] ? IR_UNBOUNDED : sizes[i];
  }
  const ir_type *t = op->type;
  const ir_type *by = ir_tensor_mlir(rw->m, (base_dtype)t->dtype, t->quant, t->text, rank, dims, dynamic, NULL, NULL);
  if (by) opt_refine_value(rw, opt_result(op, 0), by, changed);
}

/* The operand has one size for each dimension of the result. */
static void refine_by_constant(opt_rewriter *rw, ir_op *op, uint32_t operand, bool *changed) {
  assert(operand < op->n_operands);
  const int64_t *sizes = NULL;
  uint32_t n = 0;
  if (opt_constant_ints(rw, opt_operand(op, operand), &sizes, &n)) refine_by_dims(rw, op, n, sizes, changed);
}

/* -1 where it is not known, bounds do not count. */
static int64_t refine_size(const ir_type *t, uint32_t d) {
  assert(d < t->rank);
  return ir_dim_is_dynamic(t, d) ? -1 : t->dims[d];
}

/* The result has the operand's shape. */
static void refine_by_operand(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  int64_t sizes[IR_MAX_RANK];
  if (!ir_is_tensor(t)) return;
  for (uint32_t d = 0; d < t->rank; d++) sizes[d] = refine_size(t, d);
  refine_by_dims(rw, op, t->rank, sizes, changed);
}

/* Of a complex type, those of a part. */
static uint32_t refine_bits(const ir_type *t) {
  base_dtype dtype = (base_dtype)t->dtype;
  return base_dtype_of(base_dtype_real_part(dtype))->bits;
}

/* Of elements of other width the rank changes: upstream leaves those. */
static void refine_bitcast(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  if (!t->text && !op->type->text && refine_bits(t) == refine_bits(op->type)) refine_by_operand(rw, op, changed);
}

/* --- pads and slices --- */

/* size = low + size + high + interior * (size - 1). */
static void refine_pad(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  const int64_t *low = NULL, *high = NULL, *inner = NULL;
  uint32_t n[3] = {0};
  int64_t sizes[IR_MAX_RANK];
  if (!opt_constant_ints(rw, opt_operand(op, 2), &low, &n[0]) ||
      !opt_constant_ints(rw, opt_operand(op, 3), &high, &n[1]) ||
      !opt_constant_ints(rw, opt_operand(op, 4), &inner, &n[2]))
    return;
  if (n[0] != t->rank || n[1] != t->rank || n[2] != t->rank) return;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t size = refine_size(t, d), between = 0;
    sizes[d] = -1;
    if (size < 0) continue;
    if (!base_mul_i64(size > 1 ? size - 1 : 0, inner[d], &between) || !base_add_i64(size, between, &size) ||
        !base_add_i64(size, low[d], &size) || !base_add_i64(size, high[d], &size) || size < 0)
      return;
    sizes[d] = size;
  }
  refine_by_dims(rw, op, t->rank, sizes, changed);
}

/* Rounded up. Bounds that are out of range are left to the verifier. */
static void refine_known_slice(opt_rewriter *rw, ir_op *op, const int64_t *start, const int64_t *limit,
                               const int64_t *stride, bool *changed) {
  const ir_type *t = ir_operand_type(op, 0);
  int64_t sizes[IR_MAX_RANK];
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t size = refine_size(t, d);
    if (start[d] < 0 || limit[d] < start[d] || stride[d] <= 0 || (size >= 0 && limit[d] > size)) return;
    int64_t span = limit[d] - start[d];
    sizes[d] = span / stride[d] + (span % stride[d] != 0);
  }
  refine_by_dims(rw, op, t->rank, sizes, changed);
}

/* limit = start + constant, in either order: the constant. */
static bool refine_slice_sizes(opt_rewriter *rw, const ir_op *op, const int64_t **sizes, uint32_t *n) {
  const ir_op *add = ir_operand(op, 2);
  if (add->opcode != IR_OP_ADD) return false;
  ir_value start = opt_operand(op, 1);
  for (uint32_t i = 0; i < 2; i++) {
    ir_value one = opt_operand(add, i), other = opt_operand(add, 1 - i);
    if (one.op == start.op && one.index == start.index && opt_constant_ints(rw, other, sizes, n)) return true;
  }
  return false;
}

/* Either all three are known, or limits are starts plus constants with strides of 1. */
static void refine_slice(opt_rewriter *rw, ir_op *op, bool *changed) {
  const int64_t *ints[4] = {NULL};
  uint32_t n[4] = {0}, rank = ir_operand_type(op, 0)->rank;
  if (!opt_constant_ints(rw, opt_operand(op, 3), &ints[3], &n[3]) || n[3] != rank) return;
  bool start = opt_constant_ints(rw, opt_operand(op, 1), &ints[1], &n[1]) && n[1] == rank;
  bool limit = opt_constant_ints(rw, opt_operand(op, 2), &ints[2], &n[2]) && n[2] == rank;
  if (start && limit) {
    refine_known_slice(rw, op, ints[1], ints[2], ints[3], changed);
    return;
  }
  for (uint32_t d = 0; d < rank; d++)
    if (ints[3][d] != 1) return;
  if (refine_slice_sizes(rw, op, &ints[2], &n[2]) && n[2] == rank) refine_by_dims(rw, op, rank, ints[2], changed);
}

/* --- collectives --- */

/* How many take part in each group; 0 where that takes knowing the number of partitions. */
static int64_t refine_group_size(const ir_op *op) {
  const ir_mattr *groups = ir_mattr_of(op, "replica_groups");
  if (ir_mattr_of(op, "channel_handle") && !ir_m_get_bool(op, "use_global_device_ids")) return 0;
  bool listed = groups && groups->kind == IR_M_DENSE && groups->type->rank == 2;
  return listed ? groups->type->dims[1] : 0;
}

/* Gathered dimensions are multiplied by the group's size, scattered ones divided. */
static void refine_collective(opt_rewriter *rw, ir_op *op, const char *along, bool gather, bool *changed) {
  int64_t group = refine_group_size(op), dim = ir_m_get_int(op, along, 0);
  for (uint32_t i = 0; group > 0 && i < op->n_operands && i < op->n_results; i++) {
    const ir_type *t = ir_operand_type(op, i);
    int64_t dims[IR_MAX_RANK];
    if (!ir_is_tensor(t) || dim < 0 || dim >= t->rank) return;
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    if (!ir_dim_is_dynamic(t, (uint32_t)dim)) {
      if (!gather) dims[dim] /= group;
      if (gather && !base_mul_i64(dims[dim], group, &dims[dim])) return;
    }
    const ir_type *by =
        ir_tensor_mlir(rw->m, (base_dtype)t->dtype, t->quant, t->text, t->rank, dims, t->dynamic, NULL, NULL);
    if (by) opt_refine_value(rw, opt_result(op, i), by, changed);
  }
}

/* --- inference --- */

/* Errors of inference are not this pass's: the op keeps its types, and the verifier speaks up. */
static int refine_inferred(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, op->n_results + 1u);
  if (!types) return (rw->failed = true), 0;
  xlac_error own = {0};
  int status = op->n_results ? stablehlo_infer(rw->m, op, types, &own) : -XLAC_E_CANNOT_INFER;
  if (status == -XLAC_E_OUT_OF_MEMORY) rw->failed = true;
  for (uint32_t i = 0; status == 0 && i < op->n_results; i++)
    opt_refine_value(rw, opt_result(op, i), types[i], changed);
  return 0;
}

/* Ops whose sizes are operands have a rule of their own, since inference does not look at values. */
int opt_refine_op(opt_rewriter *rw, ir_op *op, bool *changed) {
  switch (op->opcode) {
    case IR_OP_PARAMETER:
    case IR_OP_UNREGISTERED:
    case IR_OP_CALL:
    case IR_OP_COMPOSITE:
      return 0;
    case IR_OP_CUSTOM_CALL:
      return opt_refine_custom_call(rw, op, changed);
    case IR_OP_DYNAMIC_BROADCAST_IN_DIM:
    case IR_OP_STABLEHLO_DYNAMIC_RESHAPE:
      refine_by_constant(rw, op, 1, changed);
      break;
    case IR_OP_DYNAMIC_IOTA:
      refine_by_constant(rw, op, 0, changed);
      break;
    case IR_OP_RNG:
      refine_by_constant(rw, op, 2, changed);
      break;
    case IR_OP_BITCAST_CONVERT:
      refine_bitcast(rw, op, changed);
      break;
    case IR_OP_UNIFORM_QUANTIZE:
      refine_by_operand(rw, op, changed);
      break;
    case IR_OP_DYNAMIC_PAD:
      refine_pad(rw, op, changed);
      break;
    case IR_OP_REAL_DYNAMIC_SLICE:
      refine_slice(rw, op, changed);
      break;
    case IR_OP_ALL_GATHER:
      refine_collective(rw, op, "all_gather_dim", true, changed);
      break;
    case IR_OP_REDUCE_SCATTER:
      refine_collective(rw, op, "scatter_dimension", false, changed);
      break;
    default:
      TRY(refine_inferred(rw, op, changed));
  }
  return opt_rewriter_status(rw);
}

/* Custom calls whose shapes are operands: indices_of_shape_operands says for each result which operand. */

/* Depth of tuple types is bounded by their maker.
 * Tensors of all results, tuples taken apart. */
static uint32_t shapes_count(uint32_t n, const ir_type *const *types) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < n; i++)
    count += ir_is_tuple(types[i]) ? shapes_count(types[i]->n_elements, types[i]->elements) : 1;
  return count;
}

/* The same tensors as a list; returns its end. */
static const ir_type **shapes_flatten(uint32_t n, const ir_type *const *types, const ir_type **out) {
  for (uint32_t i = 0; i < n; i++) {
    if (ir_is_tuple(types[i])) {
      out = shapes_flatten(types[i]->n_elements, types[i]->elements, out);
    } else {
      *out++ = types[i];
    }
  }
  return out;
}

/* Upstream's rule: both have a rank, it is one, and sizes known on both sides agree. */
static bool shapes_fit(uint32_t rank, const int64_t *sizes, const ir_type *t) {
  if (t->kind == IR_TYPE_UNRANKED) return true;
  if (!ir_is_tensor(t) || t->rank != rank) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (sizes[d] >= 0 && !ir_dim_is_dynamic(t, d) && t->dims[d] != sizes[d]) return false;
  return true;
}

/* One i64 for each tensor of the results. */
static int shapes_check_attribute(opt_rewriter *rw, const ir_op *op, const ir_mattr *a, uint32_t n) {
  const ir_type *t = a->type;
  if (!t || t->rank != 1 || t->dims[0] != n)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                            "indices_of_shape_operands is expected to have one element for each of the %u results", n);
  if (t->dtype != XLAC_S64 || t->text)
    return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE, "indices_of_shape_operands is expected to be of i64");
  return 0;
}

/* The shape is spelled out in the message. */
static int shapes_check_result(opt_rewriter *rw, const ir_op *op, uint32_t i, uint32_t rank, const int64_t *sizes,
                               const ir_type *t) {
  assert(rank == 0 || sizes != NULL);
  if (shapes_fit(rank, sizes, t)) return 0;
  char text[200];
  size_t n = 0;
  for (uint32_t d = 0; d < rank && n < sizeof text - 24; d++)
    n += (size_t)snprintf(text + n, sizeof text - n, d ? ", %lld" : "%lld", (long long)sizes[d]);
  text[n] = 0;
  return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_SHAPE,
                          "indices_of_shape_operands: the shape [%s] of result %u does not fit its type", text, i);
}

/* known only if every shape operand is a constant. */
static int shapes_read(opt_rewriter *rw, ir_op *op, const ir_type *const *types, opt_shapes *s, bool *known) {
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->operands[i] < 0 || s->operands[i] >= op->n_operands)
      return opt_rewrite_fail(rw, op, XLAC_E_VERIFY_ATTRIBUTE,
                              "indices_of_shape_operands has %lld; expected numbers of operands, in [0, %u)",
                              (long long)s->operands[i], op->n_operands);
    ir_value shape = opt_operand(op, (uint32_t)s->operands[i]);
    if (!opt_constant_ints(rw, shape, &s->dims[i], &s->ranks[i])) return opt_rewriter_status(rw);
    TRY(shapes_check_result(rw, op, i, s->ranks[i], s->dims[i], types[i]));
  }
  *known = true;
  return 0;
}

/* Ops without the attribute have no shape operands, which is no error. */
int opt_shapes_of(opt_rewriter *rw, ir_op *op, opt_shapes *s, bool *known) {
  const ir_mattr *a = ir_mattr_of(op, "indices_of_shape_operands");
  *known = false;
  if (!a || a->kind != IR_M_DENSE || !a->v.literal || a->v.literal->elided) return 0;
  s->n = shapes_count(op->n_results, op->types);
  TRY(shapes_check_attribute(rw, op, a, s->n));
  uint32_t n = 0;
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)s->n + 1);
  s->operands = ir_m_ints(a, &rw->arena, &n);
  s->dims = BASE_ARRAY(&rw->arena, const int64_t *, (size_t)s->n + 1);
  s->ranks = BASE_ARRAY(&rw->arena, uint32_t, (size_t)s->n + 1);
  rw->failed = rw->failed || !types || (s->n && !s->operands) || !s->dims || !s->ranks;
  TRY(opt_rewriter_status(rw));
  shapes_flatten(op->n_results, op->types, types);
  return shapes_read(rw, op, types, s, known);
}

/* --- refinement --- */

/* A walk over result types, in step with the list of shapes. */
typedef struct custom_refine {
  opt_rewriter *rw;
  const opt_shapes *shapes;
  uint32_t next;
} custom_refine;

static const ir_type *custom_type(custom_refine *x, const ir_type *t);

/* Elements one after the other. */
static const ir_type *custom_tuple(custom_refine *x, const ir_type *t) {
  const ir_type **parts = BASE_ARRAY(&x->rw->arena, const ir_type *, (size_t)t->n_elements + 1);
  for (uint32_t i = 0; parts && i < t->n_elements; i++)
    if (!(parts[i] = custom_type(x, t->elements[i]))) return NULL;
  return parts ? ir_tuple(x->rw->m, t->n_elements, parts) : NULL;
}

/* t with the next shape. */
static const ir_type *custom_type(custom_refine *x, const ir_type *t) {
  if (ir_is_tuple(t)) return custom_tuple(x, t);
  uint32_t i = x->next++, rank = x->shapes->ranks[i];
  assert(i < x->shapes->n);
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
  if (rank > IR_MAX_RANK) return NULL;
  if (ir_is_tensor(t) && (t->encoding || !t->has_dynamic)) return t;
  for (uint32_t d = 0; d < rank; d++) {
    bool unknown = x->shapes->dims[i][d] < 0;
    dims[d] = unknown ? ir_is_tensor(t) ? t->dims[d] : IR_UNBOUNDED : x->shapes->dims[i][d];
    dynamic[d] = unknown && (!ir_is_tensor(t) || ir_dim_is_dynamic(t, d));
  }
  return ir_tensor_mlir(x->rw->m, (base_dtype)t->dtype, t->quant, t->text, rank, dims, dynamic, NULL, NULL);
}

/* Tuples are refined as a whole: only get_tuple_element and StableHLO's own ops read them. */
static void custom_refine_result(opt_rewriter *rw, ir_value v, const ir_type *type, bool *changed) {
  if (!type || type == opt_type(v)) return;
  if (!ir_is_tuple(type)) {
    opt_refine_value(rw, v, type, changed);
    return;
  }
  opt_set_type(rw, v, type);
  *changed = true;
}

/* The wrapper that refine-arguments put between a parameter and its users goes once both sides have one type. */
int opt_refine_custom_call(opt_rewriter *rw, ir_op *op, bool *changed) {
  opt_shapes shapes;
  bool known = false;
  TRY(opt_shapes_of(rw, op, &shapes, &known));
  if (!known) return 0;
  custom_refine x = {.rw = rw, .shapes = &shapes};
  for (uint32_t i = 0; i < op->n_results; i++) {
    const ir_type *t = custom_type(&x, op->types[i]);
    custom_refine_result(rw, opt_result(op, i), t, changed);
  }
  if (strcmp(ir_m_get_str(op, "call_target_name"), OPT_REFINE_WRAPPER) == 0 && op->n_results == 1 &&
      op->n_operands > 0 && ir_operand_type(op, 0) == op->type) {
    opt_replace_one(rw, op, opt_operand(op, 0));
    *changed = true;
  }
  return opt_rewriter_status(rw);
}
