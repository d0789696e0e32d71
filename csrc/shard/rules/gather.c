/* Rules of gather and scatter, which are one: `input` is what is read from or written to (an operand, and for a
 * scatter the result too), `slices` what is read or written (a gather's result, a scatter's updates). Dimensions of
 * the slices are either offsets into the input, whole or in part, or batch dimensions, which the indices have too. */
#include "../../base/list.h"
#include "rule.h"

/* Rows of an 8x4 by indices 5x1 give ([k, j], [i, l])->([i, j]) {i=5, j=4, k=8, l=1} reduction={k}
 * need_replication={l}: i counts the slices, j goes through them, k is indexed (a device finds the rows of its shard
 * and the rest is summed in), and l, the vector of an index, has to be whole. */
typedef struct shgather_shape {
  const ir_type *input, *slices, *indices;
  bool scatter;
  uint32_t n_inputs; /* scatter */
  int64_t vector_dim;
  const int64_t *offset, *collapsed, *batching, *indices_batching;
  uint32_t n_offset, n_collapsed, n_batching, n_indices_batching;
} shgather_shape;

/* A factor on a dimension of the input, the indices and the slices (SHARD_NO_DIM: not there). A variadic scatter has
 * n inputs, the indices, n updates and n results, which all get it alike. */
static void shgather_add(shard_maker *b, const shgather_shape *g, int64_t input, int64_t indices, int64_t slices,
                         int64_t size, shard_kind kind, bool blocked) {
  uint32_t f = shard_new_factor(b, size, kind, blocked);
  if (!g->scatter) {
    shard_map(b, 0, input, f);
    shard_map(b, 1, indices, f);
    shard_map(b, 2, slices, f);
    return;
  }
  uint32_t n = g->n_inputs;
  for (uint32_t i = 0; i < n; i++) shard_map(b, i, input, f);
  shard_map(b, n, indices, f);
  for (uint32_t i = 0; i < n; i++) shard_map(b, n + 1 + i, slices, f);
  for (uint32_t i = 0; i < n; i++) shard_map(b, b->op->n_operands + i, input, f);
}

/* A dimension of the slices that is one of the input's, whole or in part. */
static void shgather_offset(shard_maker *b, const shgather_shape *g, int64_t input, int64_t slices) {
  int64_t whole = shard_dim(g->input, input), part = shard_dim(g->slices, slices);
  if (whole == part) {
    shgather_add(b, g, input, SHARD_NO_DIM, slices, whole, SHARD_PASS, false);
  } else if (g->scatter || part == 1) {
    shgather_add(b, g, input, SHARD_NO_DIM, SHARD_NO_DIM, whole, g->scatter ? SHARD_REPLICATION : SHARD_REDUCTION,
                 false);
    shgather_add(b, g, SHARD_NO_DIM, SHARD_NO_DIM, slices, part, SHARD_REPLICATION, false);
  } else {
    shgather_add(b, g, input, SHARD_NO_DIM, slices, whole, SHARD_REPLICATION, true);
  }
}

/* A dimension of the slices that is one of the indices'. */
static void shgather_batch(shard_maker *b, const shgather_shape *g, int64_t indices, int64_t slices) {
  int64_t input = SHARD_NO_DIM;
  for (uint32_t i = 0; i < g->n_indices_batching && i < g->n_batching; i++)
    if (g->indices_batching[i] == indices && input == SHARD_NO_DIM) input = g->batching[i];
  /* Without batching dimensions several indices may write to the same element: shards add up if the body is a known
   * reduction, and must not be split otherwise. */
  shard_kind kind = SHARD_PASS;
  if (g->scatter && input == SHARD_NO_DIM)
    kind = shard_scatter_reduction(b->op) != IR_OP_INVALID ? SHARD_REDUCTION : SHARD_REPLICATION;
  shgather_add(b, g, input, indices, slices, shard_dim(g->slices, slices), kind, false);
}

/* `input` walks over the input's dimensions that the slices have, in order; `batch` over those of the indices but
 * index_vector_dim. The factors of collapsed (inserted) dimensions come last, then that of the index vector. */
static void shgather_factors(shard_maker *b, const shgather_shape *g) {
  assert(g->input && g->indices && g->slices);
  int64_t input = 0, batch = 0;
  for (uint32_t d = 0; d < shard_rank(g->slices); d++) {
    if (base_list_has(g->offset, g->n_offset, d)) {
      while (base_list_has(g->collapsed, g->n_collapsed, input) || base_list_has(g->batching, g->n_batching, input))
        input++;
      shgather_offset(b, g, input++, d);
    } else {
      shgather_batch(b, g, batch < g->vector_dim ? batch : batch + 1, d);
      batch++;
    }
  }
  for (uint32_t i = 0; i < g->n_collapsed; i++) {
    int64_t size = shard_dim(g->input, g->collapsed[i]);
    shard_kind kind = g->scatter ? SHARD_PASS : size == 1 ? SHARD_REPLICATION : SHARD_REDUCTION;
    shgather_add(b, g, g->collapsed[i], SHARD_NO_DIM, SHARD_NO_DIM, size, kind, false);
  }
  if (g->vector_dim < shard_rank(g->indices))
    shgather_add(b, g, SHARD_NO_DIM, g->vector_dim, SHARD_NO_DIM, shard_dim(g->indices, g->vector_dim),
                 SHARD_REPLICATION, false);
}

/* Scatter is its mirror, so both fill one description. */
bool shard_rule_gather(shard_maker *b) {
  const ir_mattr *dims = ir_mattr_of(b->op, "dimension_numbers");
  shgather_shape g = {.input = shard_tensor_type(b, 0),
                      .slices = shard_result_type(b, 0),
                      .indices = shard_tensor_type(b, 1),
                      .vector_dim = shard_field_int(dims, "index_vector_dim")};
  g.offset = shard_field_ints(b, dims, "offset_dims", &g.n_offset);
  g.collapsed = shard_field_ints(b, dims, "collapsed_slice_dims", &g.n_collapsed);
  g.batching = shard_field_ints(b, dims, "operand_batching_dims", &g.n_batching);
  g.indices_batching = shard_field_ints(b, dims, "start_indices_batching_dims", &g.n_indices_batching);
  shgather_factors(b, &g);
  return true;
}

/* Operands: inputs, indices, updates, as many updates as inputs. */
bool shard_rule_scatter(shard_maker *b) {
  uint32_t n = b->op->n_operands / 2;
  if (n == 0 || b->op->n_results < n) return false;
  assert(b->op->n_operands == 2 * n + 1);
  const ir_mattr *dims = ir_mattr_of(b->op, "scatter_dimension_numbers");
  shgather_shape g = {.scatter = true,
                      .n_inputs = n,
                      .input = shard_tensor_type(b, 0),
                      .indices = shard_tensor_type(b, n),
                      .slices = shard_tensor_type(b, n + 1),
                      .vector_dim = shard_field_int(dims, "index_vector_dim")};
  g.offset = shard_field_ints(b, dims, "update_window_dims", &g.n_offset);
  g.collapsed = shard_field_ints(b, dims, "inserted_window_dims", &g.n_collapsed);
  g.batching = shard_field_ints(b, dims, "input_batching_dims", &g.n_batching);
  g.indices_batching = shard_field_ints(b, dims, "scatter_indices_batching_dims", &g.n_indices_batching);
  shgather_factors(b, &g);
  return true;
}

/* The reductions that StableHLO's all_reduce can do again over shards; and/or only on booleans, as in Shardy. */
static bool shgather_combines(const ir_op *op, const ir_type *t) {
  switch (op->opcode) {
    case IR_OP_ADD:
    case IR_OP_MULTIPLY:
    case IR_OP_MAXIMUM:
    case IR_OP_MINIMUM:
      return true;
    case IR_OP_AND:
    case IR_OP_OR:
      return t->kind == IR_TYPE_TENSOR && t->dtype == XLAC_PRED;
    default:
      return false;
  }
}

static bool shgather_is_param(const ir_computation *c, const ir_use *use, uint32_t i) {
  return i < c->n_params && use->op == c->params[i];
}

/* The body must be result i = op(old i, new i) or op(new i, old i), with the same op for all i. */
ir_opcode shard_scatter_reduction(const ir_op *scatter) {
  uint32_t n = scatter->n_operands / 2;
  const ir_computation *c = scatter->n_called ? scatter->called[0] : NULL;
  if (!c || c->n_params != 2 * n || c->n_results != n || n == 0) return IR_OP_INVALID;
  assert(c->n_results == n);
  ir_opcode opcode = IR_OP_INVALID;
  for (uint32_t i = 0; i < n; i++) {
    const ir_op *op = c->results[i].op;
    if (op->n_operands != 2 || !shgather_combines(op, op->type)) return IR_OP_INVALID;
    if (opcode != IR_OP_INVALID && opcode != op->opcode) return IR_OP_INVALID;
    opcode = (ir_opcode)op->opcode;
    const ir_use *x = &op->operands[0], *y = &op->operands[1];
    bool forth = shgather_is_param(c, x, i) && shgather_is_param(c, y, i + n);
    bool back = shgather_is_param(c, x, i + n) && shgather_is_param(c, y, i);
    if (!forth && !back) return IR_OP_INVALID;
  }
  return opcode;
}
