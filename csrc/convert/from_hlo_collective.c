/* From HLO form to MLIR form: collectives, and communication with the host.
 *
 * HLO's collectives take any number of operands and give a tuple; of StableHLO's only all_reduce and all_gather do.
 * Where an op of one operand does the same to each, it is made once for each (from_hlo_each). all-to-all of a tuple,
 * which HLO uses to send part i to participant i, has another meaning and its own translation. */
#include "from_hlo.h"

/* The opcode of the collective that an op starts, or itself. */
static ir_opcode from_hlo_sync(const ir_op *op) {
  return op->opcode == IR_OP_COLLECTIVE_PERMUTE_START ? IR_OP_COLLECTIVE_PERMUTE : (ir_opcode)op->opcode;
}

/* One op for each operand: StableHLO's takes one.
 *   %r = (f32[2], f32[4]) collective-permute(%a, %b), source_target_pairs={{0,1}}
 *
 *   %0 = "stablehlo.collective_permute"(%a) ... : tensor<2xf32>
 *   %1 = "stablehlo.collective_permute"(%b) ... : tensor<4xf32>
 *
 * A sharding is that of the whole, so it is only kept where the op stays one. */
int from_hlo_each(from_hlo_op *x) {
  uint32_t n = x->op->n_operands, n_types;
  const ir_type **types;
  if (ir_attr_find(x->op, IR_ATTR_PERMUTE_SLICE_SIZES))
    return base_hint(x->t->err,
                     from_hlo_fail(x->t, x->op, XLAC_E_VERIFY, "StableHLO has no collective-permute of slices"),
                     "slice, permute and update instead");
  TRY(from_hlo_leaf_types(x->t, x->op, x->type, &n_types, &types));
  if (n_types != n)
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY, "StableHLO has no %s of %u operands and %u results",
                         ir_opcode_text(x->op->opcode), n, n_types);
  ir_value *operands, *results = BASE_ARRAY(&x->t->to->arena, ir_value, n + 1u);
  uint32_t at = 0;
  if (!results) return from_hlo_no_memory(x->t);
  TRY(from_hlo_operands(x, &operands));
  for (uint32_t i = 0; i < n; i++) {
    ir_op *made = from_hlo_emit_n(x, from_hlo_sync(x->op), 1, &types[i], 1, &operands[i], x->op->n_called);
    if (!made) return from_hlo_no_memory(x->t);
    if (n == 1) TRY(from_hlo_common(x, made));
    TRY(from_hlo_attrs(x, made));
    for (uint32_t k = 0; k < x->op->n_called; k++) TRY(from_hlo_region(x->t, x->op->called[k], made, k));
    results[i] = (ir_value){made, 0};
  }
  return from_hlo_build(x->t, x->type, results, &at, &x->result);
}

/* --- all-to-all --- */

/* How many take part in each group: -1 where it is not said and does not follow. The first group speaks for all,
 * since StableHLO's rules want them of one size. */
static int from_hlo_group_size(from_hlo_op *x, int64_t *size) {
  const ir_int_lists *lists;
  TRY(from_hlo_groups(x, &lists));
  const ir_config *config = &x->t->from->config;
  bool channel = ir_get_int(x->op, IR_ATTR_CHANNEL_ID, 0) != 0;
  *size = lists && lists->n && lists->v[0]->n ? lists->v[0]->n
          : channel                           ? config->num_partitions
                                              : config->replica_count;
  return 0;
}

/* Replica groups that name nobody mean everybody; here they must be named.
 *   replica_groups={}, 4 replicas    dense<[[0, 1, 2, 3]]> : tensor<1x4xi64> */
static int from_hlo_name_everybody(from_hlo_op *x, ir_op *made, int64_t size) {
  const ir_mattr *groups = ir_mattr_of(made, "replica_groups");
  if (groups && groups->type->count) return 0;
  int64_t *ids = BASE_ARRAY(&x->t->to->arena, int64_t, (size_t)size + 1), dims[2] = {1, size};
  for (int64_t i = 0; ids && i < size; i++) ids[i] = i;
  return ids ? from_hlo_put(x, made, "replica_groups", ir_m_dense_i64(x->t->to, 2, dims, ids))
             : from_hlo_no_memory(x->t);
}

/* One all_to_all whose split and concatenated dimension is the same, over groups of `size`. */
static int from_hlo_exchange(from_hlo_op *x, const ir_type *type, ir_value operand, int64_t dimension, int64_t size,
                             ir_op **out) {
  assert(type && operand.op);
  ir_module *m = x->t->to;
  ir_op *made = *out = from_hlo_emit(x, IR_OP_ALL_TO_ALL, type, 1, &operand);
  if (!made) return from_hlo_no_memory(x->t);
  TRY(from_hlo_attrs(x, made));
  TRY(from_hlo_name_everybody(x, made, size));
  TRY(from_hlo_put(x, made, "split_dimension", ir_m_i64(m, dimension)));
  TRY(from_hlo_put(x, made, "concat_dimension", ir_m_i64(m, dimension)));
  return from_hlo_put(x, made, "split_count", ir_m_i64(m, size));
}

/* The i-th of what stands one after another along a new first dimension. slice, then reshape: `from` has the shape n
 * x type, `one` is 1 x type. */
static int from_hlo_take(from_hlo_op *x, ir_value from, const ir_type *one, const ir_type *type, int64_t i,
                         ir_value *out) {
  assert(one->rank == type->rank + 1u && i >= 0);
  ir_module *m = x->t->to;
  int64_t low[IR_MAX_RANK] = {0}, high[IR_MAX_RANK], stride[IR_MAX_RANK];
  for (uint32_t d = 0; d < one->rank; d++) high[d] = one->dims[d], stride[d] = 1;
  low[0] = i;
  high[0] = i + 1;
  ir_op *slice = from_hlo_emit(x, IR_OP_SLICE, one, 1, &from);
  if (!slice) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, slice, "start_indices", ir_m_i64s(m, one->rank, low)));
  TRY(from_hlo_put(x, slice, "limit_indices", ir_m_i64s(m, one->rank, high)));
  TRY(from_hlo_put(x, slice, "strides", ir_m_i64s(m, one->rank, stride)));
  ir_value part = {slice, 0};
  *out = (ir_value){from_hlo_emit(x, IR_OP_RESHAPE, type, 1, &part), 0};
  return out->op ? 0 : from_hlo_no_memory(x->t);
}

/* Operand i goes to the i-th of the group: the operands are put together, exchanged along that new dimension, and
 * taken apart.
 *   %r = (f32[3], f32[3]) all-to-all(%a, %b)
 *
 *   reshape each to 1x3, concatenate to 2x3, all_to_all with split = concat = 0, slice each, reshape to 3 */
static int from_hlo_exchange_tuple(from_hlo_op *x) {
  ir_module *m = x->t->to;
  uint32_t n = x->op->n_operands, at = 0;
  const ir_type *type;
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_type(x->t, x->op, ir_operand(x->op, 0)->type, &type));
  if (type->has_dynamic || type->rank + 1 > IR_MAX_RANK)
    return from_hlo_fail(x->t, x->op, XLAC_E_VERIFY, "StableHLO has no all-to-all of dynamic dimensions");
  TRY(from_hlo_operands(x, &operands));
  int64_t dims[IR_MAX_RANK + 1] = {1};
  if (type->rank) memcpy(dims + 1, type->dims, type->rank * sizeof *dims);
  const ir_type *one = ir_tensor(m, (base_dtype)type->dtype, type->rank + 1, dims, NULL, NULL, x->t->err);
  dims[0] = n;
  const ir_type *all = ir_tensor(m, (base_dtype)type->dtype, type->rank + 1, dims, NULL, NULL, x->t->err);
  if (!one || !all) return from_hlo_no_memory(x->t);
  for (uint32_t i = 0; i < n; i++)
    if (!(operands[i].op = from_hlo_emit(x, IR_OP_RESHAPE, one, 1, &operands[i])))
      return from_hlo_no_memory(x->t);
    else
      operands[i].index = 0;
  ir_op *joined = from_hlo_emit(x, IR_OP_CONCATENATE, all, n, operands);
  if (!joined) return from_hlo_no_memory(x->t);
  TRY(from_hlo_put(x, joined, "dimension", ir_m_i64(m, 0)));
  TRY(from_hlo_exchange(x, all, (ir_value){joined, 0}, 0, n, &made));
  for (uint32_t i = 0; i < n; i++) TRY(from_hlo_take(x, (ir_value){made, 0}, one, type, i, &operands[i]));
  return from_hlo_build(x->t, x->type, operands, &at, &x->result);
}

/* The array form splits along one dimension and concatenates along the same. */
int from_hlo_all_to_all(from_hlo_op *x) {
  if (ir_is_tuple(x->type)) return from_hlo_exchange_tuple(x);
  const ir_ints *dims = ir_get_ints(x->op, IR_ATTR_DIMENSIONS);
  const ir_type *type;
  int64_t size;
  ir_value operand;
  ir_op *made;
  TRY(from_hlo_type(x->t, x->op, x->type, &type));
  TRY(from_hlo_whole(x, x->operands[0], &operand));
  if (dims->n != 1) { /* one operand, one part: to oneself */
    x->result = x->operands[0];
    return 0;
  }
  TRY(from_hlo_group_size(x, &size));
  TRY(from_hlo_exchange(x, type, operand, dims->v[0], size, &made));
  TRY(from_hlo_common(x, made));
  return from_hlo_done(x, made);
}

/* --- the host --- */

/* Layouts of an infeed's leaves, minor to major: [[1, 0], [0]]. Tokens have none. */
static int from_hlo_layout_list(from_hlo *t, const ir_type *type, const ir_mattr **list, uint32_t *n) {
  const ir_mattr *dims[IR_MAX_RANK];
  for (uint32_t i = 0; i < type->n_elements; i++) TRY(from_hlo_layout_list(t, type->elements[i], list, n));
  if (!ir_is_tensor(type)) return 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    dims[d] = ir_m_i64(t->to, type->layout ? type->layout->minor_to_major[d] : type->rank - 1 - d);
    if (!dims[d]) return from_hlo_no_memory(t);
  }
  list[*n] = ir_m_array(t->to, type->rank, dims);
  return list[(*n)++] ? 0 : from_hlo_no_memory(t);
}

/*   %i = ((f32[2,3], s32[]), token[]) infeed(%token)    %i:3 = "stablehlo.infeed"(%token) -> f32, i32, token */
int from_hlo_infeed(from_hlo_op *x) {
  const char *config = ir_get_str(x->op, IR_ATTR_INFEED_CONFIG);
  const ir_mattr **layouts = BASE_ARRAY(&x->t->to->arena, const ir_mattr *, ir_type_leaves(x->op->type) + 1u);
  uint32_t n = 0;
  ir_value *operands;
  ir_op *made;
  if (!layouts) return from_hlo_no_memory(x->t);
  TRY(from_hlo_operands(x, &operands));
  TRY(from_hlo_make(x, IR_OP_INFEED, 1, operands, 0, &made));
  TRY(from_hlo_put(x, made, "infeed_config", ir_m_string(x->t->to, config, strlen(config))));
  TRY(from_hlo_layout_list(x->t, x->op->type, layouts, &n));
  TRY(from_hlo_put(x, made, "layout", ir_m_array(x->t->to, n, layouts)));
  return from_hlo_done(x, made);
}

/* The leaves of the first operand, then the token. */
static int from_hlo_sent(from_hlo_op *x, ir_opcode opcode, ir_op **made) {
  assert(x->op->n_operands == 2);
  from_hlo_values operands = {0};
  const ir_type *token = ir_token(x->t->to);
  int status = from_hlo_flatten(x, x->operands[0], &operands);
  if (status == 0) status = from_hlo_flatten(x, x->operands[1], &operands);
  if (status == 0) {
    *made = from_hlo_emit_n(x, opcode, 1, &token, operands.n, operands.items, 0);
    status = *made ? from_hlo_common(x, *made) : from_hlo_no_memory(x->t);
  }
  BASE_VEC_FREE(x->t->to->alloc, &operands);
  return status;
}

/* The data, a tuple or not, and the token: its leaves are operands of one op. */
int from_hlo_outfeed(from_hlo_op *x) {
  const char *config = ir_get_str(x->op, IR_ATTR_OUTFEED_CONFIG);
  ir_op *made;
  TRY(from_hlo_sent(x, IR_OP_OUTFEED, &made));
  TRY(from_hlo_put(x, made, "outfeed_config", ir_m_string(x->t->to, config, strlen(config))));
  return from_hlo_done(x, made);
}

/* Channel types of StableHLO: between devices 1, to the host 2, from it 3.
 *   channel_id=1, is_host_transfer=true    channel_handle = #stablehlo.channel_handle<handle = 1, type = 2> */
static int from_hlo_transfer(from_hlo_op *x, ir_op *made, int64_t host_type) {
  bool host = ir_get_bool(x->op, IR_ATTR_IS_HOST_TRANSFER, false);
  int64_t handle = ir_get_int(x->op, IR_ATTR_CHANNEL_ID, 0);
  TRY(from_hlo_put(x, made, "channel_handle", from_hlo_channel(x->t, handle, host ? host_type : 1)));
  return from_hlo_put(x, made, "is_host_transfer", ir_m_bool(x->t->to, host));
}

/* HLO's send gives (data, context, token); its end takes the token out. */
int from_hlo_send(from_hlo_op *x) {
  assert(x->op->type->n_elements == 3);
  const from_hlo_tree *parts[3];
  ir_op *made;
  TRY(from_hlo_sent(x, IR_OP_SEND, &made));
  TRY(from_hlo_transfer(x, made, 2));
  parts[0] = x->operands[0];
  parts[1] = from_hlo_of_context(x->t, x->op->type->elements[1]);
  parts[2] = from_hlo_of_value(x->t, (ir_value){made, 0});
  x->result = parts[1] && parts[2] ? from_hlo_of_parts(x->t, 3, parts) : NULL;
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* (data, context, token): the token, which is the third. */
int from_hlo_send_done(from_hlo_op *x) {
  return from_hlo_part(x, x->operands[0], 2, &x->result);
}

/* HLO gives (data, context, token) at the start and (data, token) at the end; StableHLO's one op gives the data's
 * leaves and the token. x->type is made the latter, so that the op is made of the right results, and the tree is
 * then given HLO's form. */
int from_hlo_recv(from_hlo_op *x) {
  const ir_type *bundle = x->op->type, *data[2] = {bundle->elements[0], bundle->elements[2]};
  const from_hlo_tree *parts[3];
  ir_value *operands;
  ir_op *made;
  TRY(from_hlo_operands(x, &operands));
  x->type = ir_tuple(x->t->from, 2, data);
  if (!x->type) return from_hlo_no_memory(x->t);
  TRY(from_hlo_make(x, IR_OP_RECV, 1, operands, 0, &made));
  TRY(from_hlo_transfer(x, made, 3));
  TRY(from_hlo_done(x, made));
  parts[0] = x->result->parts[0];
  parts[1] = from_hlo_of_context(x->t, bundle->elements[1]);
  parts[2] = x->result->parts[1];
  x->result = parts[1] ? from_hlo_of_parts(x->t, 3, parts) : NULL;
  return x->result ? 0 : from_hlo_no_memory(x->t);
}

/* The start has it all: the end picks the data and the token. */
int from_hlo_recv_done(from_hlo_op *x) {
  const from_hlo_tree *parts[2];
  TRY(from_hlo_part(x, x->operands[0], 0, &parts[0]));
  TRY(from_hlo_part(x, x->operands[0], 2, &parts[1]));
  x->result = from_hlo_of_parts(x->t, 2, parts);
  return x->result ? 0 : from_hlo_no_memory(x->t);
}
