/* chlo.ragged_dot: a loop over the groups, each a dot_general of the left operand with zeros outside the group. What is
 * ragged decides: a dimension that stays (a sum of products with the group's part of the right operand), one that is
 * contracted (a result of each group), or a batch dimension (a plain dot_general). Static shapes only. */
#include "mlir_chlo.h"
#include "mlir_deprecated.h"

typedef struct ragged_parts {
  opt_rewriter *rw;
  ir_op *op;
  const ir_type *lhs, *rhs, *sizes;
  const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
  uint32_t n_batch, n_contract;
  int64_t ragged, group; /* dimensions: ragged of lhs, group of rhs or -1 */
  bool contracted;       /* the ragged dimension is */
} ragged_parts;

static const int64_t *ragged_ints(const ragged_parts *r, const char *field, uint32_t *n) {
  const ir_mattr *a = ir_m_field(ir_mattr_of(r->op, "ragged_dot_dimension_numbers"), field);
  return ir_m_ints(a, &r->rw->arena, n);
}

static bool ragged_has(const int64_t *v, uint32_t n, int64_t x) {
  for (uint32_t i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

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
  r->contracted = ragged_has(r->lhs_contract, r->n_contract, r->ragged);
  const ir_type *all[] = {r->lhs, r->rhs, r->sizes, op->type};
  for (int i = 0; i < 4; i++)
    if (!opt_is_static(all[i]) || all[i]->quant || all[i]->text) return false;
  return r->sizes->rank > 0;
}

/* The precision words are CHLO's. */
static const ir_mattr *ragged_precision(opt_rewriter *rw, const ir_mattr *a) {
  const ir_mattr *words[2] = {NULL, NULL};
  if (a->kind != IR_M_ARRAY || a->v.list->n > 2) return NULL;
  for (uint32_t i = 0; i < a->v.list->n; i++)
    words[i] = ir_m_enum(rw->m, "stablehlo", "precision", a->v.list->v[i]->str ? a->v.list->v[i]->str->s : "DEFAULT");
  return ir_m_array(rw->m, a->v.list->n, words);
}

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

static ir_value ragged_i64(const ragged_parts *r, int64_t v) {
  return opt_splat_int(r->rw, opt_tensor(r->rw, XLAC_S64, 0, NULL), v);
}

/* Part `at` of x along dimension d, without that dimension. */
static ir_value ragged_part(const ragged_parts *r, ir_value x, uint32_t d, ir_value at) {
  opt_rewriter *rw = r->rw;
  const ir_type *t = opt_type(x);
  int64_t sizes[IR_MAX_RANK], rest[IR_MAX_RANK];
  ir_value all[IR_MAX_RANK + 1] = {x}, zero = ragged_i64(r, 0);
  uint32_t n = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    sizes[i] = i == d ? 1 : t->dims[i];
    all[i + 1] = i == d ? at : zero;
    if (i != d) rest[n++] = t->dims[i];
  }
  ir_value v =
      opt_make(rw, IR_OP_DYNAMIC_SLICE, opt_tensor(rw, (base_dtype)t->dtype, t->rank, sizes), t->rank + 1, all);
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, t->rank, sizes));
  return opt_reshape(rw, v, opt_tensor(rw, (base_dtype)t->dtype, n, rest));
}

/* Where the dimensions of group_sizes but its last lie in lhs: its batch dimensions, then those of the ragged one's
 * kind that come before it. One vector of sizes serves all. */
static bool ragged_map(const ragged_parts *r, int64_t *map) {
  uint32_t n = 0, want = r->sizes->rank - 1;
  if (want == 0) return true;
  for (uint32_t i = 0; i < r->n_batch; i++) map[n++] = r->lhs_batch[i];
  for (int64_t d = 0; d < r->ragged && !r->contracted; d++)
    if (!ragged_has(r->lhs_batch, r->n_batch, d) && !ragged_has(r->lhs_contract, r->n_contract, d)) map[n++] = d;
  for (uint32_t i = 0; i < r->n_contract && r->contracted && r->lhs_contract[i] != r->ragged; i++)
    map[n++] = r->lhs_contract[i];
  bool fits = n == want;
  for (uint32_t i = 0; fits && i < n; i++) fits = r->sizes->dims[i] == r->lhs->dims[map[i]];
  return fits;
}

/* lhs with zeros where the place along the ragged dimension is not in [start, limit). */
static ir_value ragged_mask(const ragged_parts *r, ir_value start, ir_value limit, const int64_t *map) {
  opt_rewriter *rw = r->rw;
  const ir_type *places = opt_with_dtype(rw, r->lhs, XLAC_S64);
  ir_value lhs = opt_operand(r->op, 0), at = opt_make(rw, IR_OP_IOTA, places, 0, NULL);
  opt_set(rw, at, "iota_dimension", ir_m_i64(rw->m, r->ragged));
  ir_value from = opt_compare(rw, "GE", NULL, at, opt_broadcast_in_dim(rw, start, places, map));
  ir_value below = opt_compare(rw, "LT", NULL, at, opt_broadcast_in_dim(rw, limit, places, map));
  return opt_select(rw, opt_binary(rw, IR_OP_AND, from, below), lhs, opt_splat(rw, r->lhs, 0));
}

/* The group's part of the right operand, and how its dimensions are called then. */
static ir_value ragged_right(const ragged_parts *r, ir_value at, int64_t *batch, int64_t *contract) {
  for (uint32_t i = 0; i < r->n_batch; i++) batch[i] = r->rhs_batch[i] - (r->group >= 0 && r->rhs_batch[i] > r->group);
  for (uint32_t i = 0; i < r->n_contract; i++)
    contract[i] = r->rhs_contract[i] - (r->group >= 0 && r->rhs_contract[i] > r->group);
  ir_value rhs = opt_operand(r->op, 1);
  return r->group < 0 ? rhs : ragged_part(r, rhs, (uint32_t)r->group, at);
}

/* The results so far, with a group's product added to them or put at its place. */
static ir_value ragged_collect(const ragged_parts *r, ir_value so_far, ir_value product, ir_value at) {
  opt_rewriter *rw = r->rw;
  const ir_type *t = r->op->type;
  if (!r->contracted) return opt_binary(rw, IR_OP_ADD, so_far, product);
  int64_t dims[IR_MAX_RANK];
  ir_value all[IR_MAX_RANK + 2] = {so_far}, zero = ragged_i64(r, 0);
  for (uint32_t d = 0; d < t->rank; d++) {
    dims[d] = d == 0 ? 1 : t->dims[d];
    all[d + 2] = d == 0 ? at : zero;
  }
  all[1] = opt_reshape(rw, product, opt_tensor(rw, (base_dtype)t->dtype, t->rank, dims));
  return opt_make(rw, IR_OP_DYNAMIC_UPDATE_SLICE, t, t->rank + 2, all);
}

static void ragged_step(const ragged_parts *r, const opt_loop *loop, const int64_t *map, ir_value *next) {
  opt_rewriter *rw = r->rw;
  const ir_type *t = r->op->type;
  int64_t batch[IR_MAX_RANK], contract[IR_MAX_RANK];
  ir_value size = ragged_part(r, opt_operand(r->op, 2), r->sizes->rank - 1, loop->index);
  if (r->sizes->dtype != XLAC_S64) size = opt_convert(rw, size, XLAC_S64);
  size = opt_binary(rw, IR_OP_MAXIMUM, size, opt_splat_like(rw, size, 0));
  ir_value limit = opt_binary(rw, IR_OP_ADD, loop->state[0], size);
  ir_value lhs = ragged_mask(r, loop->state[0], limit, map);
  ir_value rhs = ragged_right(r, loop->index, batch, contract);
  const ir_type *type = r->contracted ? opt_tensor(rw, (base_dtype)t->dtype, t->rank - 1, t->dims + 1) : t;
  ir_value product = ragged_product_of(r, lhs, rhs, batch, contract, type);
  next[0] = limit;
  next[1] = ragged_collect(r, loop->state[1], product, loop->index);
}

int opt_chlo_ragged_dot(opt_rewriter *rw, ir_op *op, bool *changed) {
  ragged_parts r;
  int64_t map[IR_MAX_RANK] = {0};
  if (!ragged_parts_of(&r, rw, op)) return 0;
  *changed = true;
  if (ragged_has(r.lhs_batch, r.n_batch, r.ragged)) {
    ir_value v = ragged_product_of(&r, opt_operand(op, 0), opt_operand(op, 1), r.rhs_batch, r.rhs_contract, op->type);
    if (v.op) opt_replace_one(rw, op, v);
    return 0;
  }
  *changed = ragged_map(&r, map) && (!r.contracted || op->type->rank > 0);
  if (!*changed) return 0;
  ir_value state[2] = {opt_splat_int(rw, opt_tensor(rw, XLAC_S64, r.sizes->rank - 1, r.sizes->dims), 0),
                       opt_splat(rw, op->type, 0)};
  opt_loop loop;
  opt_loop_begin(rw, &loop, ragged_i64(&r, r.sizes->dims[r.sizes->rank - 1]), 2, state);
  if (!rw->failed) ragged_step(&r, &loop, map, state);
  opt_loop_end(rw, &loop, state, state);
  if (!rw->failed) opt_replace_one(rw, op, state[1]);
  return 0;
}
