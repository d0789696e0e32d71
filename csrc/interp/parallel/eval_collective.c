/* Collectives of one participant: with a group of one, gathering, reducing and exchanging all give the operands back. A
 * group that names more is an error that says how many the program needs; the runtime runs those. */
#include "../blocks.h"
#include "../interp.h"

/* Who we are in the numbering that op's groups use, and how many there are in all. */
typedef struct collective_view {
  int64_t self, total;
  int64_t times; /* participants that one number in a group stands for */
} collective_view;

static bool collective_reduces_over_both(const ir_op *op) {
  switch (op->opcode) {
    case IR_OP_ALL_TO_ALL:
    case IR_OP_RAGGED_ALL_TO_ALL:
    case IR_OP_COLLECTIVE_BROADCAST:
    case IR_OP_COLLECTIVE_PERMUTE:
    case IR_OP_COLLECTIVE_PERMUTE_START:
      return false;
    default:
      return true;
  }
}

/* Without a channel the numbers are replicas. With one they are partitions, or replicas each with all their partitions
 * for the ops that reduce or gather, or devices counted through when use_global_device_ids is set. */
static collective_view collective_view_of(const interp_ctx *ctx, const ir_op *op) {
  assert(ir_opcode_has(op->opcode, IR_COLLECTIVE));
  const ir_config *config = &op->parent->module->config;
  int64_t replicas = config->replica_count > 0 ? config->replica_count : 1;
  int64_t partitions = config->num_partitions > 0 ? config->num_partitions : 1;
  int64_t replica = ctx->options.replica, partition = ctx->options.partition, devices;
  if (__builtin_mul_overflow(replicas, partitions, &devices)) devices = INT64_MAX;
  if (!ir_attr_find(op, IR_ATTR_CHANNEL_ID)) return (collective_view){replica, replicas, 1};
  if (ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false)) {
    int64_t self;
    if (__builtin_mul_overflow(replica, partitions, &self) || __builtin_add_overflow(self, partition, &self)) self = -1;
    return (collective_view){self, devices, 1};
  }
  if (collective_reduces_over_both(op)) return (collective_view){replica, replicas, partitions};
  return (collective_view){partition, partitions, 1};
}

/* The size of our group: everybody when no groups are given, 0 when no group names us. */
static int64_t collective_group_size(const ir_op *op, collective_view view) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *groups = a ? a->v.groups : NULL;
  if (groups && groups->iota) return groups->n_dims ? groups->dims[groups->n_dims - 1] : 1;
  if (!groups || groups->mesh_text || !groups->lists || groups->lists->n == 0) return view.total;
  for (uint32_t i = 0; i < groups->lists->n; i++)
    if (ir_ints_has(groups->lists->v[i], view.self)) return groups->lists->v[i]->n;
  return 0;
}

static int collective_too_many(interp_ctx *ctx, const ir_op *op, int64_t needed) {
  int status = interp_fail(ctx, op, XLAC_E_PARTICIPANTS, "%s needs %lld participants, but the interpreter runs one",
                           ir_opcode_text(op->opcode), (long long)needed);
  return base_hint(ctx->err, status, "give it groups of one, or set replica_count and num_partitions to 1");
}

/* Fails unless our group is us alone. *named: whether any group names us. */
static int collective_alone(interp_ctx *ctx, const ir_op *op, bool *named) {
  collective_view view = collective_view_of(ctx, op);
  int64_t size = collective_group_size(op, view), all;
  if (__builtin_mul_overflow(size, view.times, &all)) all = INT64_MAX;
  if (all > 1) return collective_too_many(ctx, op, all);
  *named = size != 0;
  return 0;
}

/* For ops that have no other way to say so. */
int interp_collective_alone(interp_ctx *ctx, const ir_op *op) {
  bool named;
  return collective_alone(ctx, op, &named);
}

/* n results as op's type wants them: the one value itself, or a tuple. */
static int collective_give(interp_ctx *ctx, const ir_type *t, uint32_t n, interp_value *const *values,
                           interp_value **out) {
  if (n == 1 && (!ir_is_tuple(t) || values[0]->kind == INTERP_TUPLE)) {
    *out = interp_retain(values[0]);
    return 0;
  }
  *out = interp_tuple(ctx, n, values);
  return *out ? 0 : base_oom(ctx->err, "a collective's results");
}

/* With one participant a reduction, gather or exchange gives its operands. */
static int collective_identity(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  bool named;
  if (ctx->options.hub || ctx->options.communicator) return interp_collective_many(ctx, op, op->type, operands, out);
  TRY(collective_alone(ctx, op, &named));
  return collective_give(ctx, op->type, op->n_operands, operands, out);
}

int interp_eval_all_gather(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return collective_identity(ctx, op, operands, out);
}

int interp_eval_all_reduce(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return collective_identity(ctx, op, operands, out);
}

int interp_eval_all_to_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return collective_identity(ctx, op, operands, out);
}

int interp_eval_reduce_scatter(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  return collective_identity(ctx, op, operands, out);
}

/* Zeros where no group names us. */
int interp_eval_collective_broadcast(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                     interp_value **out) {
  bool named;
  if (ctx->options.hub || ctx->options.communicator) return interp_collective_many(ctx, op, op->type, operands, out);
  TRY(collective_alone(ctx, op, &named));
  if (named) return collective_give(ctx, op->type, op->n_operands, operands, out);
  *out = interp_zeros(ctx, op->type);
  return *out ? 0 : interp_failed(ctx);
}

/* (operands, outputs): both sides are tuples where op's type says so. */
static int collective_start_pair(interp_ctx *ctx, const ir_op *op, uint32_t n, interp_value *const *operands,
                                 interp_value *result, interp_value **out) {
  if (!ir_is_tuple(op->type) || op->type->n_elements < 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the result of %s must be a tuple of at least two elements",
                       ir_opcode_text(op->opcode));
  interp_value *inputs = NULL;
  TRY(collective_give(ctx, op->type->elements[0], n, operands, &inputs));
  int status = interp_async_tuple(ctx, op, inputs, result, out);
  interp_release(inputs);
  return status;
}

/* Some programs have a start whose type is that of the result. */
int interp_eval_all_gather_start(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  bool named;
  if (!ir_is_tuple(op->type) || op->type->n_elements < 2) return collective_identity(ctx, op, operands, out);
  interp_value *result = NULL;
  if (ctx->options.hub || ctx->options.communicator) {
    TRY(interp_collective_many(ctx, op, op->type->elements[1], operands, &result));
  } else {
    TRY(collective_alone(ctx, op, &named));
    TRY(collective_give(ctx, op->type->elements[1], op->n_operands, operands, &result));
  }
  int status = collective_start_pair(ctx, op, op->n_operands, operands, result, out);
  interp_release(result);
  return status;
}

/* Whether our own pair is among op's pairs. Any other pair with us in it needs a peer. */
static int permute_self(interp_ctx *ctx, const ir_op *op, bool *passes) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_SOURCE_TARGET_PAIRS);
  int64_t self = collective_view_of(ctx, op).self;
  *passes = false;
  for (uint32_t i = 0; a && a->v.lists && i < a->v.lists->n; i++) {
    const ir_ints *pair = a->v.lists->v[i];
    if (pair->n != 2 || (pair->v[0] != self && pair->v[1] != self)) continue;
    if (pair->v[0] != pair->v[1]) return collective_too_many(ctx, op, 2);
    *passes = true;
  }
  return 0;
}

/* The scalars of a slice's start: a tuple of them, or one. */
static int permute_start_index(interp_ctx *ctx, const ir_op *op, const interp_value *v, uint32_t d, int64_t *start) {
  if (v->kind == INTERP_TUPLE && d < v->n_elements) v = v->elements[d];
  if (v->kind != INTERP_ARRAY || v->count != 1)
    return interp_fail(ctx, op, XLAC_E_EVAL, "slice starts must be tuples of one scalar per dimension");
  *start = base_load_i64(v->dtype, v->data);
  return 0;
}

typedef struct permute_slice {
  uint32_t rank;
  int64_t sizes[IR_MAX_RANK], from[IR_MAX_RANK], to[IR_MAX_RANK];
} permute_slice;

/* Starts are not clamped: a slice outside is an error. */
static int permute_slice_read(interp_ctx *ctx, const ir_op *op, const interp_value *const values[4],
                              const ir_ints *sizes, permute_slice *s) {
  if (values[0]->kind != INTERP_ARRAY || values[1]->kind != INTERP_ARRAY || values[0]->rank != sizes->n ||
      values[1]->rank != sizes->n || values[0]->dtype != values[1]->dtype || sizes->n > IR_MAX_RANK)
    return interp_fail(ctx, op, XLAC_E_EVAL, "slice_sizes must have one size per dimension of both operands");
  s->rank = sizes->n;
  for (uint32_t d = 0; d < s->rank; d++) {
    s->sizes[d] = sizes->v[d];
    TRY(permute_start_index(ctx, op, values[2], d, &s->from[d]));
    TRY(permute_start_index(ctx, op, values[3], d, &s->to[d]));
    int64_t from_room = values[0]->dims[d] - sizes->v[d], to_room = values[1]->dims[d] - sizes->v[d];
    if (sizes->v[d] < 0 || s->from[d] < 0 || s->to[d] < 0 || s->from[d] > from_room || s->to[d] > to_room)
      return interp_fail(ctx, op, XLAC_E_EVAL, "a slice of dimension %u lies outside its operand", d);
  }
  return 0;
}

/* Copies the slice row by row; dst is unique. */
static int permute_slice_copy(interp_ctx *ctx, const permute_slice *s, const interp_value *src, interp_value *dst) {
  assert(s->rank == src->rank && s->rank == dst->rank && src->dtype == dst->dtype);
  int64_t src_strides[IR_MAX_RANK], dst_strides[IR_MAX_RANK], at[IR_MAX_RANK] = {0};
  size_t bytes = base_dtype_bytes(src->dtype);
  interp_strides(s->rank, src->dims, src_strides);
  interp_strides(s->rank, dst->dims, dst_strides);
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->sizes[d] == 0) return 0;
  int64_t row = s->rank ? s->sizes[s->rank - 1] : 1;
  for (;;) {
    int64_t i = 0, j = 0;
    for (uint32_t d = 0; d < s->rank; d++) {
      i += (s->from[d] + at[d]) * src_strides[d];
      j += (s->to[d] + at[d]) * dst_strides[d];
    }
    TRY(interp_copy_bytes(ctx, (char *)dst->data + (size_t)j * bytes, (const char *)src->data + (size_t)i * bytes,
                          (size_t)row * bytes));
    int64_t d = (int64_t)s->rank - 2;
    while (d >= 0 && ++at[d] == s->sizes[d]) at[d--] = 0;
    if (d < 0) return 0;
  }
}

/* The form of four operands: slices of the first go into the second, at run-time starts. */
static int permute_in_place(interp_ctx *ctx, const ir_op *op, const ir_int_lists *sizes, interp_value *const *operands,
                            interp_value **out) {
  if (operands[0]->kind != INTERP_ARRAY || operands[1]->kind != INTERP_ARRAY)
    return interp_fail(ctx, op, XLAC_E_EVAL,
                       "collective-permute in place of tuples is not evaluated; permute their elements");
  interp_value *dst = interp_make_unique(ctx, interp_retain(operands[1]));
  if (!dst) return interp_failed(ctx);
  int status = 0;
  for (uint32_t i = 0; i < sizes->n && status == 0; i++) {
    const interp_value *values[4] = {operands[0], dst, operands[2], operands[3]};
    for (uint32_t k = 2; k < 4; k++) /* one tuple of starts per slice when there are several */
      if (values[k]->kind == INTERP_TUPLE && i < values[k]->n_elements && values[k]->elements[i]->kind == INTERP_TUPLE)
        values[k] = values[k]->elements[i];
    permute_slice slice = {.rank = 0};
    status = permute_slice_read(ctx, op, values, sizes->v[i], &slice);
    if (status == 0) status = permute_slice_copy(ctx, &slice, operands[0], dst);
  }
  if (status != 0) return interp_release(dst), status;
  *out = dst;
  return 0;
}

/* Of a start op, t is the result's part of its type. */
static int permute_result(interp_ctx *ctx, const ir_op *op, const ir_type *t, interp_value *const *operands,
                          interp_value **out) {
  const ir_attr *sizes = ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
  bool in_place = sizes && sizes->v.lists && op->n_operands == 4, passes;
  if ((ctx->options.hub || ctx->options.communicator) && !in_place)
    return interp_collective_many(ctx, op, t, operands, out);
  TRY(permute_self(ctx, op, &passes));
  if (passes && in_place) return permute_in_place(ctx, op, sizes->v.lists, operands, out);
  if (passes) return collective_give(ctx, t, op->n_operands, operands, out);
  if (in_place) return collective_give(ctx, t, 1, operands + 1, out);
  *out = interp_zeros(ctx, t);
  return *out ? 0 : interp_failed(ctx);
}

int interp_eval_collective_permute(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  return permute_result(ctx, op, op->type, operands, out);
}

int interp_eval_collective_permute_start(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                         interp_value **out) {
  if (!ir_is_tuple(op->type) || op->type->n_elements < 2)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the result of %s must be a tuple of at least two elements",
                       ir_opcode_text(op->opcode));
  interp_value *result = NULL;
  TRY(permute_result(ctx, op, op->type->elements[1], operands, &result));
  bool in_place = op->n_operands == 4 && ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
  int status = collective_start_pair(ctx, op, in_place ? 1 : op->n_operands, operands, result, out);
  interp_release(result);
  return status;
}

/* --- ragged-all-to-all of one participant: each update copies rows of the input into the output at run-time offsets.
 * --- */

/* operands: input, output, input offsets, send sizes, output offsets, receive sizes. */
static int ragged_update(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value *dst,
                         int64_t i) {
  assert(i >= 0 && i < operands[2]->count);
  int64_t at[4]; /* input offset, send size, output offset, receive size */
  for (uint32_t k = 0; k < 4; k++) {
    const interp_value *v = operands[2 + k];
    at[k] = base_load_i64(v->dtype, (const char *)v->data + (size_t)i * base_dtype_bytes(v->dtype));
  }
  const interp_value *src = operands[0];
  int64_t row = src->dims[0] ? src->count / src->dims[0] : 0, n = at[1];
  if (n < 0 || at[0] < 0 || at[2] < 0 || n > src->dims[0] || n > dst->dims[0] || at[0] > src->dims[0] - n ||
      at[2] > dst->dims[0] - n)
    return interp_fail(ctx, op, XLAC_E_EVAL,
                       "update %lld of %lld rows from row %lld to row %lld does not fit its operands", (long long)i,
                       (long long)n, (long long)at[0], (long long)at[2]);
  if (n != at[3])
    return interp_fail(ctx, op, XLAC_E_EVAL, "update %lld sends %lld rows but receives %lld", (long long)i,
                       (long long)n, (long long)at[3]);
  size_t row_bytes = (size_t)row * base_dtype_bytes(src->dtype);
  return interp_copy_bytes(ctx, (char *)dst->data + (size_t)at[2] * row_bytes,
                           (const char *)src->data + (size_t)at[0] * row_bytes, (size_t)n * row_bytes);
}

/* Rank, sizes but for the rows, and one length of offsets and sizes. */
static bool ragged_shapes_fit(interp_value *const *operands) {
  for (uint32_t k = 0; k < 6; k++)
    if (operands[k]->kind != INTERP_ARRAY || operands[k]->rank == 0) return false;
  for (uint32_t k = 3; k < 6; k++)
    if (operands[k]->count != operands[2]->count) return false;
  const interp_value *in = operands[0], *out = operands[1];
  if (in->dtype != out->dtype || in->rank != out->rank) return false;
  for (uint32_t d = 1; d < in->rank; d++)
    if (in->dims[d] != out->dims[d]) return false;
  return true;
}

/* Rows of the output that no update names keep operand 1's values. */
int interp_eval_ragged_all_to_all(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  assert(op->n_operands == 6);
  if (ctx->options.hub || ctx->options.communicator) return interp_collective_many(ctx, op, op->type, operands, out);
  TRY(interp_collective_alone(ctx, op));
  if (!ragged_shapes_fit(operands))
    return interp_fail(ctx, op, XLAC_E_EVAL,
                       "input and output must differ in rows only, offsets and sizes be of one length");
  interp_value *dst = interp_make_unique(ctx, interp_retain(operands[1]));
  if (!dst) return interp_failed(ctx);
  int status = 0;
  for (int64_t i = 0; i < operands[2]->count && status == 0; i++) status = ragged_update(ctx, op, operands, dst, i);
  if (status != 0) return interp_release(dst), status;
  *out = dst;
  return 0;
}
