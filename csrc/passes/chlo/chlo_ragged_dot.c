/* chlo.ragged_dot: a loop over the groups, each a dot_general of the left operand with zeros outside the group. What is
 * ragged decides: a dimension that stays (a sum of products with the group's part of the right operand), one that is
 * contracted (a result of each group), or a batch dimension (a plain dot_general). The number of groups is static. */
#include "chlo.h"
#include "../stablehlo/legalize_deprecated_ops.h"
#include "../../base/list.h"

/* lhs 5x2 with group sizes [2, 3] and rhs 2x2x4 (one 2x4 for each group): rows 0 and 1 of the result are those of lhs
 * times rhs[0], rows 2 to 4 times rhs[1]. In the loop lhs is taken whole, with zeros outside the group, so that
 * shapes are static whatever the sizes; the results add up. */
typedef struct ragged_parts {
  opt_rewriter *rw;
  ir_op *op;
  const ir_type *lhs, *rhs, *sizes;
  const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
  uint32_t n_batch, n_contract;
  int64_t ragged, group; /* dimensions: ragged of lhs, group of rhs or -1 */
  bool contracted;       /* the ragged dimension is */
} ragged_parts;

/* A list of the dimension numbers, in scratch memory. */
static const int64_t *ragged_ints(const ragged_parts *r, const char *field, uint32_t *n) {
  const ir_mattr *a = ir_m_field(ir_mattr_of(r->op, "ragged_dot_dimension_numbers"), field);
  return ir_m_ints(a, &r->rw->arena, n);
}

/* false: what the pattern does not know. */
static bool ragged_parts_of(ragged_parts *r, opt_rewriter *rw, ir_op *op) {
  uint32_t n[6];
  *r = (ragged_parts){.rw = rw, .op = op, .lhs = ir_operand_type(op, 0), .rhs = ir_operand_type(op, 1)};
  r->sizes = ir_operand_type(op, 2);
  if (!ir_mattr_of(op, "ragged_dot_dimension_numbers")) return false;
  r->lhs_batch = ragged_ints(r, "lhs_batching_dimensions", &n[0]);
  r->rhs_batch = ragged_ints(r, "rhs_batching_dimensions", &n[1]);
  r->lhs_contract = ragged_ints(r, "lhs_contracting_dimensions", &n[2]);
  r->rhs_contract = ragged_ints(r, "rhs_contracting_dimensions", &n[3]);
  const int64_t *ragged = ragged_ints(r, "lhs_ragged_dimensions", &n[4]);
  const int64_t *group = ragged_ints(r, "rhs_group_dimensions", &n[5]);
  if (n[0] != n[1] || n[2] != n[3] || n[4] != 1 || n[5] > 1) return false;
  r->n_batch = n[0];
  r->n_contract = n[2];
  r->ragged = ragged[0];
  r->group = n[5] ? group[0] : -1;
  r->contracted = base_list_has(r->lhs_contract, r->n_contract, r->ragged);
  const ir_type *all[] = {r->lhs, r->rhs, r->sizes, op->type};
  for (int i = 0; i < 4; i++)
    if (!ir_is_tensor(all[i]) || all[i]->quant || all[i]->text || opt_is_bounded(all[i])) return false;
  return r->sizes->rank > 0 && opt_is_static(r->sizes);
}

/* The precision words are CHLO's. */
static const ir_mattr *ragged_precision(opt_rewriter *rw, const ir_mattr *a) {
  const ir_mattr *words[2] = {NULL, NULL};
  if (a->kind != IR_M_ARRAY || a->v.list->n > 2) return NULL;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    words[i] = ir_m_enum(rw->m, "stablehlo", "precision", (int)a->v.list->v[i]->v.i);
  return ir_m_array(rw->m, a->v.list->n, words);
}

/* A plain dot_general with the op's batch and contracting dimensions. */
static ir_value ragged_product_of(const ragged_parts *r, ir_value lhs, ir_value rhs, const int64_t *rhs_batch,
                                  const int64_t *rhs_contract, const ir_type *type) {
  opt_rewriter *rw = r->rw;
  ir_value both[] = {lhs, rhs};
  ir_value v = opt_make(rw, IR_OP_DOT, type, 2, both);
  opt_set(rw, v, "dot_dimension_numbers",
          opt_dot_dims(rw, r->n_batch, r->lhs_batch, rhs_batch, r->n_contract, r->lhs_contract, rhs_contract));
  const ir_mattr *precision = ir_mattr_of(r->op, "precision_config");
  if (precision) opt_set(rw, v, "precision_config", ragged_precision(rw, precision));
  return v;
}

/* A scalar constant. */
static ir_value ragged_i64(const ragged_parts *r, int64_t v) {
  return opt_splat_int(r->rw, opt_tensor(r->rw, XLAC_S64, 0, NULL), v);
}

/* Where the dimensions of group_sizes but its last lie in lhs: its batch dimensions, then those of the ragged one's
 * kind that come before it. One vector of sizes serves all. */
static bool ragged_map(const ragged_parts *r, int64_t *map) {
  uint32_t n = 0, want = r->sizes->rank - 1;
  if (want == 0) return true;
  for (uint32_t i = 0; i < r->n_batch; i++) map[n++] = r->lhs_batch[i];
  for (int64_t d = 0; d < r->ragged && !r->contracted; d++)
    if (!base_list_has(r->lhs_batch, r->n_batch, d) && !base_list_has(r->lhs_contract, r->n_contract, d)) map[n++] = d;
  for (uint32_t i = 0; i < r->n_contract && r->contracted && r->lhs_contract[i] != r->ragged; i++)
    map[n++] = r->lhs_contract[i];
  bool fits = n == want;
  for (uint32_t i = 0; fits && i < n; i++)
    fits = ir_dim_is_dynamic(r->lhs, (uint32_t)map[i]) || r->sizes->dims[i] == r->lhs->dims[map[i]];
  return fits;
}

/* start, which lies along the dimensions `map` of lhs, in the shape of lhs. */
static ir_value ragged_spread(const ragged_parts *r, ir_value v, ir_value extents, const int64_t *map) {
  const ir_type *type = opt_with_dtype(r->rw, r->lhs, XLAC_S64);
  return extents.op ? opt_dynamic_broadcast(r->rw, v, extents, type, map) : opt_broadcast_in_dim(r->rw, v, type, map);
}

/* lhs with zeros where the place along the ragged dimension is not in [start, limit). */
static ir_value ragged_mask(const ragged_parts *r, ir_value start, ir_value limit, const int64_t *map) {
  opt_rewriter *rw = r->rw;
  ir_value lhs = opt_operand(r->op, 0), extents = {NULL, 0};
  const ir_type *places = opt_with_dtype(rw, r->lhs, XLAC_S64);
  if (!opt_is_static(r->lhs)) extents = opt_extents(rw, lhs);
  ir_value at =
      extents.op ? opt_make(rw, IR_OP_DYNAMIC_IOTA, places, 1, &extents) : opt_make(rw, IR_OP_IOTA, places, 0, NULL);
  opt_set(rw, at, "iota_dimension", ir_m_i64(rw->m, r->ragged));
  ir_value from = opt_compare(rw, IR_DIRECTION_GE, IR_COMPARISON_NONE, at, ragged_spread(r, start, extents, map));
  ir_value below = opt_compare(rw, IR_DIRECTION_LT, IR_COMPARISON_NONE, at, ragged_spread(r, limit, extents, map));
  ir_value zero = opt_splat(rw, opt_tensor(rw, (base_dtype)r->lhs->dtype, 0, NULL), 0);
  return opt_select(rw, opt_binary(rw, IR_OP_AND, from, below), lhs, opt_spread_like(rw, zero, lhs));
}

/* Zeros of the result's shape: a group's, when there is a result for each, then batches, then what stays of lhs and of
 * rhs. */
static ir_value ragged_blank(const ragged_parts *r) {
  opt_rewriter *rw = r->rw;
  const ir_type *t = r->op->type;
  ir_value sizes[2 * IR_MAX_RANK + 1];
  uint32_t n = 0;
  if (opt_is_static(t)) return opt_splat(rw, t, 0);
  if (r->contracted) sizes[n++] = opt_extent(rw, opt_operand(r->op, 2), r->sizes->rank - 1);
  for (uint32_t i = 0; i < r->n_batch; i++)
    sizes[n++] = opt_extent(rw, opt_operand(r->op, 0), (uint32_t)r->lhs_batch[i]);
  for (uint32_t d = 0; d < r->lhs->rank; d++)
    if (!base_list_has(r->lhs_batch, r->n_batch, d) && !base_list_has(r->lhs_contract, r->n_contract, d))
      sizes[n++] = opt_extent(rw, opt_operand(r->op, 0), d);
  for (uint32_t d = 0; d < r->rhs->rank; d++)
    if (!base_list_has(r->rhs_batch, r->n_batch, d) && !base_list_has(r->rhs_contract, r->n_contract, d) &&
        d != r->group)
      sizes[n++] = opt_extent(rw, opt_operand(r->op, 1), d);
  if (n != t->rank) return (ir_value){NULL, 0};
  ir_value zero = opt_splat(rw, opt_tensor(rw, (base_dtype)t->dtype, 0, NULL), 0);
  return opt_dynamic_broadcast(rw, zero, opt_join_extents(rw, n, sizes), t, NULL);
}

/* A group's product where the result has one for each: the result's type without its first dimension. */
static const ir_type *ragged_product_type(const ragged_parts *r) {
  const ir_type *t = r->op->type;
  if (!r->contracted) return t;
  return ir_tensor_mlir(r->rw->m, (base_dtype)t->dtype, NULL, NULL, t->rank - 1, t->dims + 1,
                        t->dynamic ? t->dynamic + 1 : NULL, NULL, NULL);
}

/* The group's part of the right operand, and how its dimensions are called then. */
static ir_value ragged_right(const ragged_parts *r, ir_value at, int64_t *batch, int64_t *contract) {
  for (uint32_t i = 0; i < r->n_batch; i++) batch[i] = r->rhs_batch[i] - (r->group >= 0 && r->rhs_batch[i] > r->group);
  for (uint32_t i = 0; i < r->n_contract; i++)
    contract[i] = r->rhs_contract[i] - (r->group >= 0 && r->rhs_contract[i] > r->group);
  ir_value rhs = opt_operand(r->op, 1);
  return r->group < 0 ? rhs : opt_take(r->rw, rhs, (uint32_t)r->group, at);
}

/* The results so far, with a group's product added to them or put at its place. */
static ir_value ragged_collect(const ragged_parts *r, ir_value so_far, ir_value product, ir_value at) {
  if (!r->contracted) return opt_binary(r->rw, IR_OP_ADD, so_far, product);
  return opt_put(r->rw, so_far, product, 0, at);
}

/* State: where the group begins, and the results so far. Negative sizes count as 0. */
static void ragged_step(const ragged_parts *r, const opt_loop *loop, const int64_t *map, ir_value *next) {
  opt_rewriter *rw = r->rw;
  int64_t batch[IR_MAX_RANK], contract[IR_MAX_RANK];
  ir_value size = opt_take(rw, opt_operand(r->op, 2), r->sizes->rank - 1, loop->index);
  if (r->sizes->dtype != XLAC_S64) size = opt_convert(rw, size, XLAC_S64);
  size = opt_binary(rw, IR_OP_MAXIMUM, size, opt_splat_like(rw, size, 0));
  ir_value limit = opt_binary(rw, IR_OP_ADD, loop->state[0], size);
  ir_value lhs = ragged_mask(r, loop->state[0], limit, map);
  ir_value rhs = ragged_right(r, loop->index, batch, contract);
  const ir_type *type = ragged_product_type(r);
  ir_value product = ragged_product_of(r, lhs, rhs, batch, contract, type);
  next[0] = limit;
  next[1] = ragged_collect(r, loop->state[1], product, loop->index);
}

/* A ragged batch dimension makes a plain product: groups do not matter then. Else a loop over the groups, in which
 * each adds its product, or writes its rows. */
int opt_chlo_ragged_dot(opt_rewriter *rw, ir_op *op, bool *changed) {
  ragged_parts r;
  int64_t map[IR_MAX_RANK] = {0};
  if (!ragged_parts_of(&r, rw, op)) return 0;
  *changed = true;
  if (base_list_has(r.lhs_batch, r.n_batch, r.ragged)) {
    ir_value v = ragged_product_of(&r, opt_operand(op, 0), opt_operand(op, 1), r.rhs_batch, r.rhs_contract, op->type);
    if (v.op) opt_replace_one(rw, op, v);
    return 0;
  }
  *changed = ragged_map(&r, map) && (!r.contracted || op->type->rank > 0);
  if (!*changed) return 0;
  /* Where the group begins (one for each batch), and the result so far. */
  ir_value state[2] = {opt_splat_int(rw, opt_tensor(rw, XLAC_S64, r.sizes->rank - 1, r.sizes->dims), 0),
                       ragged_blank(&r)};
  *changed = state[1].op != NULL;
  if (!*changed) return 0;
  opt_loop loop;
  opt_loop_begin(rw, &loop, ragged_i64(&r, r.sizes->dims[r.sizes->rank - 1]), 2, state);
  if (!rw->failed) ragged_step(&r, &loop, map, state);
  opt_loop_end(rw, &loop, state, state);
  if (!rw->failed) opt_replace_one(rw, op, state[1]);
  return 0;
}
