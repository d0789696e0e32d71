/* Communication: collectives among devices (replica groups, channels, source-target pairs), and transfers to the host
 * and over channels. Inference has the shapes.
 *
 * replica_groups={{0,1},{2,3}} lets 0 talk to 1 and 2 to 3. What the ids count depends on two other attributes:
 * ir_group_mode. */
#include "../infer/infer.h"
#include "../sdy/mesh_groups.h"
#include "verify.h"

/* --- replica groups --- */

/* --- replica groups: explicit lists, iota form, or axes of a mesh --- */
static int fail_groups(const ir_op *op, xlac_error *err, const char *format, ...) BASE_PRINTF(3, 4);
static int fail_groups(const ir_op *op, xlac_error *err, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char message[sizeof err->message];
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err, "has replica_groups that don't fit: %s", message);
}

/* -1 on overflow or a size below 1. */
static int64_t groups_product(uint32_t n, const int64_t *v) {
  int64_t product = 1;
  for (uint32_t i = 0; i < n; i++)
    if (v[i] < 1 || !base_mul_i64(product, v[i], &product)) return -1;
  return product;
}

/* [groups,size]<=[reshape]T(perm): a permutation of 0..n-1 by construction if the sizes agree. */
static int check_iota_groups(const ir_op *op, const ir_groups *g, int64_t *ids, xlac_error *err) {
  *ids = groups_product(g->n_dims, g->dims);
  if (g->n_dims != 2 || *ids < 0)
    return fail_groups(op, err, "%s; expected [groups,size], both positive", IR_SHOW_INTS(g->n_dims, g->dims));
  if (groups_product(g->n_reshape, g->reshape) != *ids)
    return fail_groups(op, err, "%s and %s have different products", IR_SHOW_INTS(g->n_dims, g->dims),
                       IR_SHOW_INTS(g->n_reshape, g->reshape));
  if (!g->perm) return 0;
  return ir_check_permutation("the transposition of replica_groups", g->n_reshape, g->perm, g->n_reshape, err);
}

/* All devices of the mesh take part, by construction. */
static int check_mesh_groups(const ir_op *op, const ir_groups *g, int64_t *ids, xlac_error *err) {
  ir_mesh_groups mesh;
  if (!ir_mesh_groups_read(&mesh, g->mesh_text))
    return fail_groups(op, err, "%.200s; expected axes of the mesh, as in mesh['a'=2,'b'=4] {'b'}", g->mesh_text->s);
  *ids = mesh.n_devices;
  return 0;
}

/* Ids 0..n-1 each once, where n is how many there are. `seen` has a byte for each. */
static int check_ids(const ir_op *op, const ir_int_lists *lists, int64_t n, uint8_t *seen, xlac_error *err) {
  assert(n >= 0);
  for (uint32_t i = 0; i < lists->n; i++) {
    for (uint32_t k = 0; k < lists->v[i]->n; k++) {
      int64_t id = lists->v[i]->v[k];
      if (id < 0 || id >= n)
        return fail_groups(op, err,
                           "id %lld is not below %lld, the number of ids; they must be 0, 1, 2, ... in any order",
                           (long long)id, (long long)n);
      if (seen[id]) return fail_groups(op, err, "id %lld stands there twice", (long long)id);
      seen[id] = 1;
    }
  }
  return 0;
}

/* Every id from 0 to n-1 once: XLA refuses groups that leave somebody out. `uniform`: groups must be of one size, as
 * for ops that split or gather by the group's size. */
static int check_listed_groups(const ir_op *op, const ir_int_lists *lists, bool uniform, int64_t *ids,
                               xlac_error *err) {
  *ids = 0;
  for (uint32_t i = 0; i < lists->n; i++) {
    if (lists->v[i]->n == 0) return fail_groups(op, err, "group %u is empty", i);
    if (uniform && lists->v[i]->n != lists->v[0]->n)
      return fail_groups(op, err, "group %u has %u members, group 0 has %u; %s takes groups of one size", i,
                         lists->v[i]->n, lists->v[0]->n, ir_opcode_text(op->opcode));
    *ids += lists->v[i]->n;
  }
  base_alloc alloc = op->parent->module->alloc;
  uint8_t *seen = base_malloc(alloc, (size_t)*ids + 1);
  if (!seen) return base_oom(err, "a table of replica ids");
  memset(seen, 0, (size_t)*ids + 1);
  int status = check_ids(op, lists, *ids, seen, err);
  base_free(alloc, seen);
  return status;
}

/* Modules that leave replica_count and num_partitions at 1 are for any number of devices. */
static int check_participants(const ir_op *op, ir_group_mode mode, int64_t ids, xlac_error *err) {
  assert(ids >= 0);
  const ir_config *config = &op->parent->module->config;
  int64_t expected = mode == IR_GROUPS_OF_PARTITIONS ? config->num_partitions : config->replica_count;
  if (mode == IR_GROUPS_OF_DEVICES && !base_mul_i64(config->replica_count, config->num_partitions, &expected))
    expected = -1;
  if (expected == 1 || expected == ids) return 0;
  return fail_groups(op, err, "they name %lld %s, but the module runs %lld", (long long)ids,
                     mode == IR_GROUPS_OF_PARTITIONS ? "partitions"
                     : mode == IR_GROUPS_OF_DEVICES  ? "devices"
                                                     : "replicas",
                     (long long)expected);
}

/* No groups mean one group of all. */
static int check_groups(const ir_op *op, bool uniform, xlac_error *err) {
  assert(ir_opcode_has(op->opcode, IR_COLLECTIVE));
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *g = a ? a->v.groups : NULL;
  ir_group_mode mode = ir_group_mode_of(op);
  int64_t ids = 0;
  if (!g || (!g->iota && !g->mesh_text && (!g->lists || g->lists->n == 0))) {
    if (mode != IR_GROUPS_OF_DEVICES) return 0;
    return fail_groups(op, err, "there are none; with use_global_device_ids=true they must be listed");
  }
  if (g->mesh_text) {
    TRY(check_mesh_groups(op, g, &ids, err));
  } else if (g->iota) {
    TRY(check_iota_groups(op, g, &ids, err));
  } else {
    TRY(check_listed_groups(op, g->lists, uniform, &ids, err));
  }
  return check_participants(op, mode, ids, err);
}

/* Global ids number replicas and partitions, which only a channel brings together. */
static int check_global_ids(const ir_op *op, xlac_error *err) {
  if (!ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false) || ir_attr_find(op, IR_ATTR_CHANNEL_ID)) return 0;
  return base_hint(
      err, ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err, "has use_global_device_ids=true without a channel_id"),
      "add channel_id=1");
}

static int check_collective(const ir_op *op, bool uniform, xlac_error *err) {
  assert(ir_opcode_has(op->opcode, IR_COLLECTIVE));
  TRY(check_global_ids(op, err));
  return check_groups(op, uniform, err);
}

/* The result's size is the group's size times the operand's, so groups must be of one size. */
IR_VERIFY(all_gather) {
  return check_collective(op, true, err);
}
IR_VERIFY(all_to_all) {
  return check_collective(op, true, err);
}

/* What XLA lets pass as a reducer, no XLA backend can run. */
static int check_all_reducer(const ir_op *op, xlac_error *err) {
  assert(op->n_called == 1);
  const ir_computation *c = op->called[0];
  const ir_type *result = ir_result_type(c);
  bool fits = c->n_params == 2 && ir_is_scalar(result);
  for (uint32_t i = 0; fits && i < 2; i++) fits = ir_is_scalar_of(ir_param_type(c, i), result->dtype);
  if (fits) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_CALLED, err,
                        "combines by %s, which takes %u parameters and gives %s; expected two scalars to a "
                        "scalar of their type",
                        c->name->s, c->n_params, IR_SHOW(result));
}

/* As all-gather; each member gets an equal part of the sum. */
IR_VERIFY(reduce_scatter) {
  TRY(check_collective(op, true, err));
  return options->xla_compat ? 0 : check_all_reducer(op, err);
}

/* Groups may differ in size: the result has the operand's shape whatever the group. */
IR_VERIFY(all_reduce) {
  TRY(check_collective(op, false, err));
  if (options->xla_compat) return 0;
  TRY(check_all_reducer(op, err));
  const ir_attr *channel = ir_attr_find(op, IR_ATTR_CHANNEL_ID);
  if (!channel || channel->v.i > 0) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err, "has channel_id=%lld; expected a positive number",
                        (long long)channel->v.i);
}

/* XLA looks at no group here. Members must be distinct to mean something, but need not be all. */
IR_VERIFY(collective_broadcast) {
  const ir_attr *a = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  const ir_groups *g = a ? a->v.groups : NULL;
  if (options->xla_compat || !g) return 0;
  int64_t ids;
  if (g->mesh_text) return check_mesh_groups(op, g, &ids, err);
  if (g->iota) return check_iota_groups(op, g, &ids, err);
  base_map seen;
  base_map_init(&seen, op->parent->module->alloc);
  int status = 0;
  for (uint32_t i = 0; g->lists && status == 0 && i < g->lists->n; i++) {
    for (uint32_t k = 0; status == 0 && k < g->lists->v[i]->n; k++) {
      int64_t id = g->lists->v[i]->v[k];
      uint64_t other;
      if (id < 0 || base_map_get(&seen, (uint64_t)id, &other))
        status = fail_groups(op, err, "id %lld is %s", (long long)id, id < 0 ? "negative" : "there twice");
      else if (!base_map_set(&seen, (uint64_t)id, 1))
        status = base_oom(err, "a table of replica ids");
    }
  }
  base_map_free(&seen);
  return status;
}

/* Operands: input, output, input offsets, send sizes, output offsets, receive sizes. */
IR_VERIFY(ragged_all_to_all) {
  assert(op->n_operands == 6);
  TRY(check_groups(op, true, err));
  TRY(ir_check_all_tensors(op, err));
  const ir_type *in = ir_operand_type(op, 0), *out = ir_operand_type(op, 1), *first = ir_operand_type(op, 2);
  if (first->rank != 1 && first->rank != 2)
    return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                          "takes offsets and sizes of rank 1 or 2, but operand 2 is %s", IR_SHOW(first));
  for (uint32_t i = 3; i < 6; i++)
    if (!ir_same_bare(first, ir_operand_type(op, i)))
      return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                            "takes offsets and sizes of one type, but operands 2 and %u are %s and %s", i,
                            IR_SHOW(first), IR_SHOW(ir_operand_type(op, i)));
  if (options->xla_compat || (base_dtype_is_integer(first->dtype) && in->dtype == out->dtype)) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                        "sends %s to %s by offsets of %s; expected one element type and integers", IR_SHOW(in),
                        IR_SHOW(out), IR_SHOW(first));
}

/* --- collective-permute --- */

/* --- collective-permute: source_target_pairs={{0,1},{1,0}} --- */
static int fail_pair(const ir_op *op, const char *role, int64_t id, const char *what, int64_t n, xlac_error *err) {
  return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err, "has %s %lld in source_target_pairs, %s %lld", role,
                        (long long)id, what, (long long)n);
}

/* `allowed`: how often an id may be a source or a target, 1 but for in-place permutes with several places. limit 1
 * means a module for any number of devices. */
static int count_id(const ir_op *op, const char *role, int64_t id, int64_t limit, int64_t allowed, base_map *seen,
                    xlac_error *err) {
  assert(allowed >= 1);
  if (id < 0) return fail_pair(op, role, id, "below", 0, err);
  if (limit > 1 && id >= limit) return fail_pair(op, role, id, "but the module runs", limit, err);
  uint64_t times = 0;
  base_map_get(seen, (uint64_t)id, &times);
  if ((int64_t)times >= allowed) return fail_pair(op, role, id, "more often than", allowed, err);
  return base_map_set(seen, (uint64_t)id, times + 1) ? 0 : base_oom(err, "a table of pairs");
}

/* Ids are partitions when there is a channel, else replicas. */
static int check_pairs(const ir_op *op, const ir_int_lists *pairs, int64_t allowed, base_map *sources,
                       base_map *targets, xlac_error *err) {
  const ir_config *config = &op->parent->module->config;
  int64_t limit = ir_attr_find(op, IR_ATTR_CHANNEL_ID) ? config->num_partitions : config->replica_count;
  for (uint32_t i = 0; i < pairs->n; i++) {
    if (pairs->v[i]->n != 2)
      return ir_verify_fail(op, XLAC_E_VERIFY_COLLECTIVE, err,
                            "has %s in source_target_pairs; expected {source,target}",
                            IR_SHOW_INTS(pairs->v[i]->n, pairs->v[i]->v));
    TRY(count_id(op, "source", pairs->v[i]->v[0], limit, allowed, sources, err));
    TRY(count_id(op, "target", pairs->v[i]->v[1], limit, allowed, targets, err));
  }
  return 0;
}

/* Offsets of one buffer: a tuple of one scalar per dimension, or a tuple of such tuples. *places is how many.
 * In-place permutes read and write slices of buffers, several places of one where the offsets are a tuple of tuples. */
static int check_offset(const ir_op *op, const ir_type *buffer, const ir_type *offset, int64_t *places,
                        xlac_error *err) {
  bool ok = ir_is_tensor(buffer) && ir_is_tuple(offset) && offset->n_elements > 0;
  bool nested = ok && ir_is_tuple(offset->elements[0]);
  for (uint32_t i = 0; ok && i < offset->n_elements; i++)
    ok = nested ? ir_is_tuple(offset->elements[i]) && offset->elements[i]->n_elements == buffer->rank
                : ir_is_tensor(offset->elements[i]);
  if (ok && !nested) ok = offset->n_elements == buffer->rank;
  *places = ok ? (int64_t)offset->n_elements : 0;
  if (ok) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                        "has offsets %s for the buffer %s; expected one for each dimension", IR_SHOW(offset),
                        IR_SHOW(buffer));
}

/* Operands are source, destination and their offsets; each of them may be a tuple of several. */
static int check_in_place_permute(const ir_op *op, int64_t *places, xlac_error *err) {
  assert(op->n_operands == 4);
  for (uint32_t side = 0; side < 2; side++) {
    const ir_type *buffer = ir_operand_type(op, side), *offset = ir_operand_type(op, side + 2);
    int64_t n;
    if (ir_is_tuple(buffer) != ir_is_tuple(ir_operand_type(op, 0)) ||
        (ir_is_tuple(buffer) && (!ir_is_tuple(offset) || offset->n_elements != buffer->n_elements ||
                                 buffer->n_elements != ir_operand_type(op, 0)->n_elements)))
      return ir_verify_fail(op, XLAC_E_VERIFY_OPERANDS, err,
                            "has %s and offsets %s for source %s; expected as many of each", IR_SHOW(buffer),
                            IR_SHOW(offset), IR_SHOW(ir_operand_type(op, 0)));
    uint32_t parts = ir_is_tuple(buffer) ? buffer->n_elements : 1;
    for (uint32_t i = 0; i < parts; i++) {
      TRY(check_offset(op, ir_is_tuple(buffer) ? buffer->elements[i] : buffer,
                       ir_is_tuple(buffer) ? offset->elements[i] : offset, &n, err));
      if (side == 0 && i == 0) *places = n;
    }
  }
  return 0;
}

/* Slice sizes make it the in-place form, with 4 operands. */
IR_VERIFY(collective_permute) {
  assert(ir_attr_find(op, IR_ATTR_SOURCE_TARGET_PAIRS));
  const ir_attr *sizes = ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES),
                *pairs = ir_attr_find(op, IR_ATTR_SOURCE_TARGET_PAIRS);
  int64_t allowed = 1;
  if (sizes && sizes->v.lists->n > 0) TRY(check_in_place_permute(op, &allowed, err));
  base_map sources, targets;
  base_map_init(&sources, m->alloc);
  base_map_init(&targets, m->alloc);
  int status = check_pairs(op, pairs->v.lists, allowed, &sources, &targets, err);
  base_map_free(&sources);
  base_map_free(&targets);
  return status;
}

/* --- transfers to the host and over channels --- */
IR_VERIFY(infeed) {
  const ir_type *t = op->type;
  TRY(ir_check_token(op, 0, err));
  if (ir_is_tuple(t) && t->n_elements == 2 && ir_is_token(t->elements[1])) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected (data, token[])", IR_SHOW(t));
}

/* outfeed_shape repeats the operand's type; layouts may differ. */
IR_VERIFY(outfeed) {
  const ir_attr *declared = ir_attr_find(op, IR_ATTR_OUTFEED_SHAPE);
  TRY(ir_check_token(op, 1, err));
  if (!declared || ir_compatible(declared->v.type, ir_operand_type(op, 0))) return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_ATTRIBUTE, err, "has outfeed_shape=%s, but its operand is %s",
                        IR_SHOW(declared->v.type), IR_SHOW(ir_operand_type(op, 0)));
}

/* The result is (data, context, token); recv-done takes the data out of it. */
IR_VERIFY(recv) {
  const ir_type *t = op->type;
  TRY(ir_check_token(op, 0, err));
  if (ir_is_tuple(t) && t->n_elements == 3 && ir_is_scalar_of(t->elements[1], XLAC_U32) && ir_is_token(t->elements[2]))
    return 0;
  return ir_verify_fail(op, XLAC_E_VERIFY_SHAPE, err, "is declared as %s; expected (data, u32[], token[])", IR_SHOW(t));
}

/* -1 without a channel, on both sides the same. */
static int64_t channel_of(const ir_op *op) {
  return ir_get_int(op, IR_ATTR_CHANNEL_ID, -1);
}

/* A done that waits for a start directly names the same channel and kind of transfer. */
static int check_done(const ir_op *done, xlac_error *err) {
  assert(ir_opcode_has(done->opcode, IR_ASYNC_DONE));
  const ir_op *start = ir_operand(done, 0);
  if (start->opcode != ir_opcode_info(done->opcode)->start) return 0;
  if (channel_of(start) != channel_of(done))
    return ir_verify_fail(done, XLAC_E_VERIFY_COLLECTIVE, err, "waits on channel %lld for %s, which uses channel %lld",
                          (long long)channel_of(done), start->name->s, (long long)channel_of(start));
  if (ir_get_bool(start, IR_ATTR_IS_HOST_TRANSFER, false) == ir_get_bool(done, IR_ATTR_IS_HOST_TRANSFER, false))
    return 0;
  return ir_verify_fail(done, XLAC_E_VERIFY_COLLECTIVE, err, "waits for %s; is_host_transfer must be the same for both",
                        start->name->s);
}

IR_VERIFY(send_done) {
  return check_done(op, err);
}
IR_VERIFY(recv_done) {
  return check_done(op, err);
}
