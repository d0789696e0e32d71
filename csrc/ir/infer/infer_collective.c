/* Inference of collectives, async pairs and host communication.
 *
 * Most collectives keep their operand's type. The size of the group counts for all-gather (a dimension times it),
 * reduce-scatter and all-to-all (a dimension divided by it). Where the module does not fix the group's size, the
 * declared type is believed, as in XLA: see check.h. */
#include "infer.h"

#include "../sdy/mesh_groups.h"

/* --- how many take part --- */

/* The size of the first replica group, 0 when there are no groups. Groups are of one size wherever the size matters;
 * the verifier sees to that. */
static int64_t first_group_size(const ir_groups *g) {
  if (!g) return 0;
  ir_mesh_groups mesh;
  if (g->mesh_text) return ir_mesh_groups_read(&mesh, g->mesh_text) ? mesh.group_size : 0;
  if (g->iota) return g->n_dims ? g->dims[g->n_dims - 1] : 0;
  return g->lists && g->lists->n ? g->lists->v[0]->n : 0;
}

ir_group_mode ir_group_mode_of(const ir_op *op) {
  if (!ir_attr_find(op, IR_ATTR_CHANNEL_ID)) return IR_GROUPS_OF_REPLICAS;
  if (!ir_opcode_takes(op->opcode, IR_ATTR_USE_GLOBAL_DEVICE_IDS, NULL)) return IR_GROUPS_OF_PARTITIONS;
  return ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false) ? IR_GROUPS_OF_DEVICES
                                                               : IR_GROUPS_OF_REPLICAS_IN_PARTITIONS;
}

/* Without groups there is one of all. */
int ir_infer_group_size(const ir_module *m, const ir_op *op, int64_t *out, xlac_error *err) {
  assert(m && op && out);
  const ir_attr *groups = ir_attr_find(op, IR_ATTR_REPLICA_GROUPS);
  int64_t size = first_group_size(groups ? groups->v.groups : NULL);
  ir_group_mode mode = ir_group_mode_of(op);
  if (mode == IR_GROUPS_OF_REPLICAS && ir_get_bool(op, IR_ATTR_USE_GLOBAL_DEVICE_IDS, false))
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "use_global_device_ids=true needs a channel_id");
  if (mode == IR_GROUPS_OF_DEVICES && size == 0)
    return base_fail(err, XLAC_E_VERIFY_ATTRIBUTE, "use_global_device_ids=true needs replica_groups");
  if (size == 0) size = mode == IR_GROUPS_OF_PARTITIONS ? m->config.num_partitions : m->config.replica_count;
  if (mode == IR_GROUPS_OF_REPLICAS_IN_PARTITIONS && !base_mul_i64(size, m->config.num_partitions, &size))
    return base_fail(err, XLAC_E_TOO_LARGE, "replicas times partitions overflow");
  if (size <= 0) return base_fail(err, XLAC_E_VERIFY_COLLECTIVE, "%s has no participants", ir_opcode_text(op->opcode));
  *out = size;
  return 0;
}

/* a/b rounded up, 0 where that means nothing. -1 and other marks of unknown sizes end at 0. */
static int64_t ratio_up(int64_t a, int64_t b) {
  return a <= 0 || b <= 0 ? 0 : a / b + (a % b != 0);
}

/* Element i of a declared result, or NULL. With one operand the result is not a tuple. */
static const ir_type *declared_at(const ir_op *op, const ir_type *t, uint32_t i) {
  if (t && op->n_operands > 1) t = ir_is_tuple(t) && i < t->n_elements ? t->elements[i] : NULL;
  return t && ir_is_tensor(t) ? t : NULL;
}

/* Groups of one mean that the module does not say how many run; XLA then believes the declared result, if there is
 * one. / `scatters`: the result is the part, else the operand is. */
static int shard_count(const ir_module *m, const ir_op *op, const ir_type *declared, bool scatters, int64_t dim,
                       int64_t *out, xlac_error *err) {
  TRY(ir_infer_group_size(m, op, out, err));
  const ir_type *in = ir_operand_type(op, 0), *result = declared_at(op, declared, 0);
  if (*out != 1 || !result || dim >= (int64_t)result->rank) return 0;
  assert(dim >= 0 && dim < in->rank);
  int64_t whole = scatters ? in->dims[dim] : result->dims[dim], part = scatters ? result->dims[dim] : in->dims[dim];
  int64_t ratio = ratio_up(whole, part);
  if (ratio > 0) *out = ratio;
  return 0;
}

/* --- all-gather, reduce-scatter --- */

/* All operands are gathered along one dimension, which each must have; *dim is it. */
static int check_collective_dim(const ir_op *op, int64_t *dim, xlac_error *err) {
  TRY(ir_check_at_least(op, 1, err));
  TRY(ir_check_all_tensors(op, err));
  const ir_ints *dims = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  for (uint32_t i = 0; i < op->n_operands; i++)
    TRY(ir_check_one_dim("dimensions", dims, ir_operand_type(op, i)->rank, dim, err));
  return 0;
}

/* What one dimension becomes when `shards` take part. */
typedef int resize_fn(int64_t size, bool dynamic, int64_t shards, int64_t *out, xlac_error *err);

/* An unbounded dimension stays so. */
static int gather_shards(int64_t size, bool dynamic, int64_t shards, int64_t *out, xlac_error *err) {
  (void)dynamic;
  *out = IR_UNBOUNDED;
  if (size == IR_UNBOUNDED || base_mul_i64(size, shards, out)) return 0;
  return base_fail(err, XLAC_E_TOO_LARGE, "the gathered dimension is larger than 2^63 - 1");
}

/* A bounded dynamic dimension loses its bound, as in XLA. */
static int scatter_shards(int64_t size, bool dynamic, int64_t shards, int64_t *out, xlac_error *err) {
  assert(shards > 0);
  *out = dynamic ? IR_UNBOUNDED : size / shards;
  if (size == IR_UNBOUNDED || size % shards == 0) return 0;
  return base_fail(err, XLAC_E_INFER, "a dimension of size %lld can't be scattered to %lld participants evenly",
                   (long long)size, (long long)shards);
}

typedef struct resized {
  const ir_op *op;
  int64_t dim, shards;
  resize_fn *resize;
} resized;

/* Operand i's type with the one dimension resized; its layout stays. */
static int resized_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  const resized *r = ctx;
  assert(r->shards > 0);
  const ir_type *t = ir_operand_type(r->op, i);
  ir_dims d;
  ir_dims_of(&d, t);
  TRY(r->resize(t->dims[r->dim], d.dynamic[r->dim], r->shards, &d.size[r->dim], err));
  d.dynamic[r->dim] = d.size[r->dim] == IR_UNBOUNDED;
  return ir_dims_tensor_in(m, t->dtype, &d, t->layout, out, err);
}

/* A tuple when there are several operands. */
static int resized_type(ir_module *m, const resized *r, const ir_type **out, xlac_error *err) {
  if (r->op->n_operands == 1) return resized_element(m, r, 0, out, err);
  return ir_infer_tuple_from(m, r->op->n_operands, resized_element, r, out, err);
}

int ir_infer_all_gather_by(ir_module *m, const ir_op *op, int64_t shards, const ir_type **out, xlac_error *err) {
  assert(shards > 0);
  int64_t dim;
  TRY(check_collective_dim(op, &dim, err));
  return resized_type(m, &(resized){op, dim, shards, gather_shards}, out, err);
}

int ir_infer_reduce_scatter_by(ir_module *m, const ir_op *op, int64_t shards, const ir_type **out, xlac_error *err) {
  assert(shards > 0);
  int64_t dim;
  TRY(check_collective_dim(op, &dim, err));
  return resized_type(m, &(resized){op, dim, shards, scatter_shards}, out, err);
}

/* `declared` is the type that the module gives the gathered result, or NULL. */
static int infer_gathered(ir_module *m, const ir_op *op, const ir_type *declared, const ir_type **out,
                          xlac_error *err) {
  int64_t dim, shards;
  TRY(check_collective_dim(op, &dim, err));
  TRY(shard_count(m, op, declared, false, dim, &shards, err));
  return ir_infer_all_gather_by(m, op, shards, out, err);
}

int ir_infer_all_gather(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return infer_gathered(m, op, op->type, out, err);
}

/* (operands, gathered): the declared type's element 1 counts. */
int ir_infer_all_gather_start(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *declared =
      op->type && ir_is_tuple(op->type) && op->type->n_elements == 2 ? op->type->elements[1] : NULL;
  const ir_type *elements[2];
  TRY(infer_gathered(m, op, declared, &elements[1], err));
  TRY(ir_infer_operands(m, op, &elements[0], err));
  return ir_infer_tuple_of(m, 2, elements, out, err);
}

/* The declared type says how many shards there are where the module does not. */
int ir_infer_reduce_scatter(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  int64_t dim, shards;
  TRY(check_collective_dim(op, &dim, err));
  TRY(shard_count(m, op, op->type, true, dim, &shards, err));
  return ir_infer_reduce_scatter_by(m, op, shards, out, err);
}

/* --- the other collectives --- */

/* INFER of all-reduce, whose result is its operands. */
int ir_infer_all_reduce(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  TRY(ir_check_all_tensors(op, err));
  return ir_infer_operands(m, op, out, err);
}

/* INFER of collectives that keep their one operand's type. */
int ir_infer_collective_same(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  return ir_check_tensor(op, 0, out, err);
}

/* One operand is split along `dim` into parts that are exchanged: dims as before, as split and concatenation meet. */
static int infer_split_all_to_all(ir_module *m, const ir_op *op, int64_t count, const ir_type **out, xlac_error *err) {
  const ir_type *t;
  int64_t dim;
  TRY(ir_check_tensor(op, 0, &t, err));
  TRY(ir_check_one_dim("dimensions", ir_get_ints(op, IR_ATTR_DIMENSIONS), t->rank, &dim, err));
  ir_dims d;
  ir_dims_of(&d, t);
  for (uint32_t i = 0; i < d.rank; i++)
    if (d.dynamic[i] && d.size[i] != IR_UNBOUNDED)
      return base_fail(err, XLAC_E_VERIFY_OPERANDS, "all-to-all can't split the bounded dynamic type %s", IR_SHOW(t));
  if (op->n_operands != 1 || (d.size[dim] != IR_UNBOUNDED && d.size[dim] % count != 0))
    return base_fail(err, XLAC_E_INFER,
                     "all-to-all along dimension %lld takes one operand whose size there is a multiple of %lld, "
                     "but has %u, the first %s",
                     (long long)dim, (long long)count, op->n_operands, IR_SHOW(t));
  return ir_dims_tensor(m, t->dtype, &d, out, err);
}

/* Two forms: one operand that is split along a dimension, or a tuple with a part for each participant. */
int ir_infer_all_to_all(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  int64_t count;
  TRY(ir_check_at_least(op, 1, err));
  TRY(ir_check_all_tensors(op, err));
  TRY(ir_infer_group_size(m, op, &count, err));
  if (ir_attr_find(op, IR_ATTR_DIMENSIONS)) return infer_split_all_to_all(m, op, count, out, err);
  if ((int64_t)op->n_operands != count)
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "all-to-all without dimensions takes one operand per participant, %lld, but has %u",
                     (long long)count, op->n_operands);
  const ir_type *first = ir_operand_type(op, 0);
  for (uint32_t i = 0; i < op->n_operands; i++) {
    const ir_type *t = ir_operand_type(op, i);
    bool unbounded = false;
    for (uint32_t k = 0; k < t->rank; k++) unbounded = unbounded || t->dims[k] == IR_UNBOUNDED;
    bool same_layout = t->layout == first->layout || !t->layout || !first->layout;
    if (unbounded || !ir_same_bare(t, first) || !same_layout)
      return base_fail(err, XLAC_E_INFER,
                       "the operands of all-to-all must have one bounded type and layout, but are %s and %s",
                       IR_SHOW(first), IR_SHOW(t));
  }
  return ir_infer_tuple(m, op, out, err);
}

/* The output operand is filled in place, so its type is the result's. */
int ir_infer_ragged_all_to_all(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  return ir_check_tensor(op, 1, out, err);
}

/* With slice_sizes the operands are source, destination and their offsets, and the destination is updated in place. */
static bool permutes_in_place(const ir_op *op) {
  const ir_attr *sizes = ir_attr_find(op, IR_ATTR_PERMUTE_SLICE_SIZES);
  return sizes && sizes->v.lists && sizes->v.lists->n > 0;
}

/* Operands: source, destination, offsets of both. */
static int check_in_place(const ir_op *op, xlac_error *err) {
  if (op->n_operands == 4) return 0;
  return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                   "%s with slice_sizes takes source, destination and their offsets, but has %u "
                   "operands",
                   ir_opcode_text(op->opcode), op->n_operands);
}

/* Devices that no pair names as a target get zeros, so the type does not depend on the pairs. */
int ir_infer_collective_permute(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  if (!permutes_in_place(op)) {
    TRY(ir_check_at_least(op, 1, err));
    TRY(ir_check_all_tensors(op, err));
    return ir_infer_operands(m, op, out, err);
  }
  TRY(check_in_place(op, err));
  *out = ir_operand_type(op, 1);
  return 0;
}

/* Element 0 and 1 follow from the operands, the rest from the declared type. */
typedef struct with_contexts {
  const ir_type *ends[2], *declared;
} with_contexts;

/* (source, destination, contexts...): how many contexts there are is only in a declared type. */
static int context_element(ir_module *m, const void *ctx, uint32_t i, const ir_type **out, xlac_error *err) {
  (void)m;
  (void)err;
  const with_contexts *w = ctx;
  assert(i < 2 || i < w->declared->n_elements);
  *out = i < 2 ? w->ends[i] : w->declared->elements[i];
  return 0;
}

/* (source, destination), and any contexts that the declared type has. */
int ir_infer_collective_permute_start(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  with_contexts w = {{NULL, NULL}, op->type};
  if (permutes_in_place(op)) {
    TRY(check_in_place(op, err));
    w.ends[0] = ir_operand_type(op, 0);
    w.ends[1] = ir_operand_type(op, 1);
  } else {
    TRY(ir_check_at_least(op, 1, err));
    if (op->n_operands == 1) TRY(ir_check_all_tensors(op, err));
    TRY(ir_infer_operands(m, op, &w.ends[0], err));
    w.ends[1] = w.ends[0];
  }
  uint32_t n = w.declared && ir_is_tuple(w.declared) && w.declared->n_elements > 2 ? w.declared->n_elements : 2;
  return ir_infer_tuple_from(m, n, context_element, &w, out, err);
}

/* --- async pairs --- */

/* INFER of generic async-done: the outputs. */
int ir_infer_async_done(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  return ir_infer_tuple_element_1(m, op, out, err);
}

/* (destination, source, context). */
int ir_infer_copy_start(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t = ir_operand_type(op, 0), *context;
  TRY(ir_infer_scalar(m, XLAC_U32, &context, err));
  const ir_type *elements[3] = {t, t, context};
  return ir_infer_tuple_of(m, 3, elements, out, err);
}

/* Element 0, the destination, which must be what the source is. */
int ir_infer_copy_done(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  (void)m;
  const ir_type *t;
  TRY(ir_check_tuple(op, 0, 2, &t, err));
  if (!ir_compatible(t->elements[0], t->elements[1]))
    return base_fail(err, XLAC_E_VERIFY_OPERANDS,
                     "source and destination of a copy must be of one type, but are %s and %s", IR_SHOW(t->elements[1]),
                     IR_SHOW(t->elements[0]));
  *out = t->elements[0];
  return 0;
}

/* --- host and channel communication --- */

/* (data, context, token). */
int ir_infer_send(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *elements[3] = {ir_operand_type(op, 0), NULL, NULL};
  TRY(ir_check_token(op, 1, err));
  TRY(ir_infer_scalar(m, XLAC_U32, &elements[1], err));
  TRY(ir_infer_token(m, op, &elements[2], err));
  return ir_infer_tuple_of(m, 3, elements, out, err);
}

/* (data, token). */
int ir_infer_recv_done(ir_module *m, const ir_op *op, const ir_type **out, xlac_error *err) {
  const ir_type *t, *elements[2];
  TRY(ir_check_tuple(op, 0, 1, &t, err));
  elements[0] = t->elements[0];
  TRY(ir_infer_token(m, op, &elements[1], err));
  return ir_infer_tuple_of(m, 2, elements, out, err);
}
