/* Sorts and top-k along a dimension that is cut, without gathering it.
 *
 * A sort is Leighton's columnsort (IEEE Transactions on Computers C-34, 1985): n shards of `length` elements are the
 * columns of a matrix. They are sorted, dealt out to all columns in turn, sorted, collected again, sorted; what is now
 * out of place by half a column at most is put right by sorting windows that begin in the middle of the columns. That
 * is right where length >= 2 (n - 1)^2 and n divides length. Devices send each shard twice, and half of it twice.
 *
 * Columnsort is not stable, so elements carry their place, by which those that the comparator calls equal are told
 * apart: the result is that of a stable sort. Shards of other lengths are filled up with elements that come last. */
#include "../shard/common/common.h"
#include "forms.h"

typedef struct orders_sort {
  form_pass *x;
  const ir_computation *by;
  int64_t own, length;  /* elements of a shard, and with those that fill it up */
  uint32_t operands, n; /* of the op; with places and, where shards are filled up, a flag of what fills them */
  ir_value *v;          /* all of them */
} orders_sort;

/* --- what fits --- */

static int64_t orders_length(int64_t own, int64_t shards) {
  int64_t unit = shards % 2 ? 2 * shards : shards;
  return (own + unit - 1) / unit * unit;
}

static bool orders_has_room(const form_pass *x) {
  const sdy_mesh *mesh = sdy_mesh_of(x->rw->m, x->s);
  for (uint32_t d = 0; d < x->t->rank; d++)
    if (d != x->dim && x->t->dims[d] % (sdy_axes_size(x->s->dims[d].axes, mesh) * x->shards) == 0) return true;
  return false;
}

/* Nothing that the op reads or gives is in parts that are to be added up; sizes and elements are known. */
static bool orders_is_plain(const ir_op *op) {
  for (uint32_t i = 0; i < op->n_operands + op->n_results; i++) {
    ir_value v = i < op->n_operands ? opt_operand(op, i) : (ir_value){(ir_op *)(uintptr_t)op, i - op->n_operands};
    const sdy_sharding *s = sdy_get(v);
    if (!shc_is_static(opt_type(v)) || opt_type(v)->quant || (s && s->unreduced.n)) return false;
  }
  return true;
}

bool spmd_form_sort_fits(form_pass *x) {
  const ir_op *op = x->op;
  if (op->n_operands == 0 || !orders_is_plain(op)) return false;
  uint32_t rank = opt_type(opt_operand(op, 0))->rank;
  int64_t dim = ir_m_get_int(op, "dimension", -1);
  if (dim < 0) dim += rank;
  if (dim < 0 || dim >= rank || rank + 2 > IR_MAX_RANK || !spmd_form_begin(x, (uint32_t)dim)) return false;
  int64_t size = x->t->dims[dim], n = x->shards;
  if (size == 0 || size % n || orders_has_room(x)) return false;
  return size / n >= 2 * (n - 1) * (n - 1) && orders_length(size / n, n) <= INT32_MAX / n;
}

bool spmd_form_top_k_fits(form_pass *x) {
  const ir_op *op = x->op;
  if (op->n_operands != 1 || op->n_results != 2 || !orders_is_plain(op)) return false;
  uint32_t rank = op->types[0]->rank;
  if (rank == 0 || rank + 1 > IR_MAX_RANK || !spmd_form_begin(x, rank - 1)) return false;
  int64_t size = x->t->dims[x->dim], k = op->types[0]->dims[x->dim];
  int64_t bytes = (int64_t)base_dtype_bytes((base_dtype)x->t->dtype), own = size / x->shards;
  return size % x->shards == 0 && k > 0 && k * (bytes + 4) < own * bytes && size <= INT32_MAX;
}

/* --- parts of both --- */

/* v, which has shards and what is in them, cut by shards. */
static ir_value orders_cut(form_pass *x, ir_value v) {
  return spmd_form_give(x, v, spmd_form_spread(x, 2, 0));
}

static ir_value orders_iota(form_pass *x, const ir_type *t, uint32_t dim) {
  ir_value v = orders_cut(x, opt_make(x->rw, IR_OP_IOTA, t, 0, NULL));
  opt_set(x->rw, v, "iota_dimension", ir_m_i64(x->rw->m, dim));
  return v;
}

static ir_value orders_binary(form_pass *x, ir_opcode opcode, ir_value a, ir_value b) {
  return orders_cut(x, opt_binary(x->rw, opcode, a, b));
}

/* A number in every place of a tensor of that type, sharded so. */
static ir_value orders_splat(form_pass *x, const ir_type *t, int64_t value, const sdy_sharding *s) {
  if (!t || x->rw->failed) return (ir_value){NULL, 0};
  ir_value v = opt_splat_int(x->rw, opt_tensor(x->rw, (base_dtype)t->dtype, 0, NULL), value);
  return spmd_form_give(x, opt_broadcast_in_dim(x->rw, v, t, NULL), s);
}

/* As many as come before the element's shard, for a tensor of t's shape. */
static ir_value orders_before(form_pass *x, const ir_type *t, int64_t each) {
  ir_value count = orders_splat(x, t, each, spmd_form_spread(x, 2, 0));
  return orders_binary(x, IR_OP_MULTIPLY, orders_iota(x, t, x->dim), count);
}

/* The results have the shardings that the op's had. */
static void orders_done(form_pass *x, ir_value *v) {
  for (uint32_t i = 0; i < x->op->n_results && !x->rw->failed; i++) {
    const sdy_sharding *to = sdy_get((ir_value){x->op, i}), *has = sdy_get(v[i]);
    if (to && !(has && sdy_sharding_equivalent(has, to))) v[i] = spmd_form_reshard(x, v[i], to);
  }
  if (!x->rw->failed) opt_replace_op(x->rw, x->op, v);
}

/* --- the comparator --- */

/* Whether elements that are not less than one another are those that the same comparison calls equal. */
static bool orders_knows_equal(ir_value less) {
  if (less.op->opcode != IR_OP_COMPARE) return false;
  int direction = ir_m_get_word(less.op, "comparison_direction");
  base_dtype t = (base_dtype)opt_type(opt_operand(less.op, 0))->dtype;
  bool total = !base_dtype_is_float(t) || ir_m_get_word(less.op, "compare_type") == IR_COMPARISON_TOTALORDER;
  return total && !base_dtype_is_complex(t) && (direction == IR_DIRECTION_LT || direction == IR_DIRECTION_GT);
}

/* Whether neither comes before the other: args are pairs. */
static ir_value orders_ties(orders_sort *s, ir_value less, const ir_value *args) {
  opt_rewriter *rw = s->x->rw;
  ir_value tie = {NULL, 0}, *swapped = BASE_ARRAY(&rw->arena, ir_value, 2 * (size_t)s->operands + 1);
  if (!swapped || rw->failed) return rw->failed = true, tie;
  bool known = orders_knows_equal(less);
  for (uint32_t i = 0; i < 2 * s->operands; i++) swapped[i] = args[known ? i : i ^ 1];
  opt_inline(rw, s->by, swapped, &tie);
  if (!known) return opt_unary(rw, IR_OP_NOT, tie);
  opt_set(rw, tie, "comparison_direction", ir_m_enum(rw->m, "stablehlo", "comparison_direction", IR_DIRECTION_EQ));
  return tie;
}

static ir_value orders_then(opt_rewriter *rw, ir_value less, ir_value tie, ir_value rest) {
  return opt_binary(rw, IR_OP_OR, less, opt_binary(rw, IR_OP_AND, tie, rest));
}

static ir_value orders_compare(opt_rewriter *rw, ir_direction direction, const ir_value *pair) {
  return opt_compare(rw, direction, IR_COMPARISON_NONE, pair[0], pair[1]);
}

/* Fillers last; then by the op's comparator; then by places. */
static ir_value orders_less(orders_sort *s, const ir_value *args) {
  opt_rewriter *rw = s->x->rw;
  const ir_value *places = args + 2 * s->operands, *fillers = places + 2;
  ir_value less = {NULL, 0};
  opt_inline(rw, s->by, args, &less);
  if (rw->failed) return less;
  less = orders_then(rw, less, orders_ties(s, less, args), orders_compare(rw, IR_DIRECTION_LT, places));
  if (s->n == s->operands + 1) return less;
  return orders_then(rw, orders_compare(rw, IR_DIRECTION_LT, fillers), orders_compare(rw, IR_DIRECTION_EQ, fillers),
                     less);
}

static void orders_comparator(orders_sort *s, ir_op *op) {
  opt_rewriter *rw = s->x->rw, at = *rw;
  ir_computation *body = opt_region(rw, op, 0);
  ir_value *args = BASE_ARRAY(&rw->arena, ir_value, 2 * (size_t)s->n);
  rw->failed = rw->failed || !args;
  for (uint32_t i = 0; i < 2 * s->n && !rw->failed; i++) {
    const ir_type *t = opt_tensor(rw, (base_dtype)opt_type(s->v[i / 2])->dtype, 0, NULL);
    args[i] = opt_region_argument(rw, body, t);
  }
  if (rw->failed) return;
  opt_at_end(rw, body, at.origin);
  ir_value less = orders_less(s, args);
  if (!rw->failed) opt_set_results(rw, body, 1, &less);
  rw->into = at.into;
  rw->before = at.before;
  rw->origin = at.origin;
}

/* --- columnsort --- */

static void orders_columns(orders_sort *s) {
  form_pass *x = s->x;
  opt_rewriter *rw = x->rw;
  const ir_type **types = BASE_ARRAY(&rw->arena, const ir_type *, (size_t)s->n);
  rw->failed = rw->failed || !types;
  if (rw->failed) return;
  for (uint32_t i = 0; i < s->n; i++) types[i] = opt_type(s->v[i]);
  ir_op *op = opt_make_n(rw, IR_OP_SORT, s->n, types, s->n, s->v, 1);
  ir_value made = {op, 0};
  opt_set(rw, made, "dimension", ir_m_i64(rw->m, x->dim + 1));
  opt_set(rw, made, "is_stable", ir_m_bool(rw->m, false));
  orders_comparator(s, op);
  for (uint32_t i = 0; i < s->n && !rw->failed; i++) s->v[i] = orders_cut(x, (ir_value){op, i});
}

/* Columns are cut into three dimensions, of which number `lead`, of as many as there are columns, says which column an
 * element goes to. Where in it does not matter. */
static ir_value orders_deal(orders_sort *s, ir_value v, uint32_t lead) {
  form_pass *x = s->x;
  int64_t n = x->shards, most = s->length / n, order[IR_MAX_RANK];
  int64_t three[] = {n, lead == 1 ? n : most, lead == 1 ? most : n}, two[] = {n, s->length};
  assert((lead == 1 || lead == 2) && s->length % n == 0);
  v = spmd_form_reshape(x, v, 2, 3, three, 0);
  if (x->rw->failed) return v;
  for (uint32_t d = 0; d < opt_type(v)->rank; d++) order[d] = d;
  order[x->dim] = x->dim + lead;
  order[x->dim + lead] = x->dim;
  v = spmd_form_give(x, opt_transpose(x->rw, v, order), spmd_form_spread(x, 3, lead));
  v = spmd_form_reshard(x, v, spmd_form_spread(x, 3, 0));
  return spmd_form_reshape(x, v, 3, 2, two, 0);
}

/* Elements begin to end of v along x's dim + at, where v has `dims` dimensions in place of dim. */
static ir_value orders_slice(form_pass *x, ir_value v, uint32_t dims, uint32_t at, int64_t begin, int64_t end) {
  const ir_type *t = opt_type(v);
  int64_t starts[IR_MAX_RANK] = {0}, limits[IR_MAX_RANK], ones[IR_MAX_RANK];
  if (!t || x->rw->failed) return v;
  for (uint32_t d = 0; d < t->rank; d++) limits[d] = t->dims[d], ones[d] = 1;
  starts[x->dim + at] = begin;
  limits[x->dim + at] = end;
  return spmd_form_give(x, opt_slice(x->rw, v, starts, limits, ones), spmd_form_spread(x, dims, 0));
}

/* a, and behind it b, along x's dim + at; both have three dimensions in place of dim. */
static ir_value orders_join(form_pass *x, ir_value a, ir_value b, uint32_t at) {
  const ir_type *t = opt_type(a), *u = opt_type(b);
  int64_t dims[IR_MAX_RANK];
  ir_value both[] = {a, b};
  if (!t || !u || x->rw->failed) return a;
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = t->dims[d];
  dims[x->dim + at] += u->dims[x->dim + at];
  t = opt_tensor(x->rw, (base_dtype)t->dtype, t->rank, dims);
  return spmd_form_give(x, opt_concatenate(x->rw, 2, both, x->dim + at, t), spmd_form_spread(x, 3, 0));
}

/* Column i of the result is column i + first of v, the first one behind the last. */
static ir_value orders_roll(form_pass *x, ir_value v, int64_t first) {
  return orders_join(x, orders_slice(x, v, 3, 0, first, x->shards), orders_slice(x, v, 3, 0, 0, first), 0);
}

/* Columns' second halves, each with the next one's first half. The last one has that of column 0. */
static ir_value orders_between(orders_sort *s, ir_value v) {
  form_pass *x = s->x;
  int64_t halves[] = {x->shards, 2, s->length / 2}, two[] = {x->shards, s->length};
  v = spmd_form_reshape(x, v, 2, 3, halves, 0);
  ir_value next = orders_roll(x, orders_slice(x, v, 3, 1, 0, 1), 1);
  return spmd_form_reshape(x, orders_join(x, orders_slice(x, v, 3, 1, 1, 2), next, 1), 3, 2, two, 0);
}

/* Back again. In the last one the least elements came to be in front of the largest ones. */
static ir_value orders_back(orders_sort *s, ir_value v) {
  form_pass *x = s->x;
  opt_rewriter *rw = x->rw;
  int64_t n = x->shards, halves[] = {n, 2, s->length / 2}, two[] = {n, s->length};
  v = spmd_form_reshape(x, v, 2, 3, halves, 0);
  ir_value first = orders_slice(x, v, 3, 1, 0, 1), second = orders_slice(x, v, 3, 1, 1, 2);
  if (rw->failed) return v;
  const sdy_sharding *cut = spmd_form_spread(x, 3, 0);
  const ir_type *t = opt_with_dtype(rw, opt_type(first), XLAC_S32);
  ir_value at = spmd_form_give(x, opt_make(rw, IR_OP_IOTA, t, 0, NULL), cut);
  opt_set(rw, at, "iota_dimension", ir_m_i64(rw->m, x->dim));
  ir_value end = orders_splat(x, t, n - 1, cut);
  ir_value last = spmd_form_give(x, opt_compare(rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, at, end), cut);
  ir_value down = spmd_form_give(x, opt_select(rw, last, first, second), cut);
  ir_value stays = spmd_form_give(x, opt_select(rw, last, second, first), cut);
  return spmd_form_reshape(x, orders_join(x, orders_roll(x, down, n - 1), stays, 1), 3, 2, two, 0);
}

/* v, of shards of `own` elements, filled up. */
static ir_value orders_fill(orders_sort *s, ir_value v, int64_t with) {
  form_pass *x = s->x;
  opt_rewriter *rw = x->rw;
  const ir_type *t = opt_type(v);
  int64_t dims[IR_MAX_RANK], none[IR_MAX_RANK] = {0}, high[IR_MAX_RANK] = {0};
  if (!t || rw->failed || s->own == s->length) return v;
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = t->dims[d];
  dims[x->dim + 1] = s->length;
  high[x->dim + 1] = s->length - s->own;
  base_dtype dtype = (base_dtype)t->dtype;
  ir_value both[] = {v, opt_splat(rw, opt_tensor(rw, dtype, 0, NULL), (double)with)};
  v = orders_cut(x, opt_make(rw, IR_OP_PAD, opt_tensor(rw, dtype, t->rank, dims), 2, both));
  opt_set(rw, v, "edge_padding_low", ir_m_i64s(rw->m, t->rank, none));
  opt_set(rw, v, "edge_padding_high", ir_m_i64s(rw->m, t->rank, high));
  opt_set(rw, v, "interior_padding", ir_m_i64s(rw->m, t->rank, none));
  return v;
}

/* Operands as columns, all cut alike; places; and a flag of fillers. */
static void orders_begin(orders_sort *s) {
  form_pass *x = s->x;
  int64_t sizes[] = {x->shards, s->own};
  for (uint32_t i = 0; i < s->operands; i++) {
    ir_value v = opt_operand(x->op, i);
    const sdy_sharding *has = sdy_get(v);
    if (!has || !sdy_sharding_equivalent(has, x->s)) v = spmd_form_reshard(x, v, x->s);
    v = spmd_form_reshape(x, v, 1, 2, sizes, 0);
    if (i == 0 && !x->rw->failed && s->n > s->operands + 1) {
      const ir_type *t = opt_with_dtype(x->rw, opt_type(v), XLAC_S32);
      s->v[s->operands + 1] = orders_fill(s, orders_splat(x, t, 0, spmd_form_spread(x, 2, 0)), 1);
    }
    s->v[i] = orders_fill(s, v, 0);
  }
  const ir_type *t = x->rw->failed ? NULL : opt_with_dtype(x->rw, opt_type(s->v[0]), XLAC_S32);
  if (!t) return;
  s->v[s->operands] = orders_binary(x, IR_OP_ADD, orders_before(x, t, s->length), orders_iota(x, t, x->dim + 1));
}

void spmd_form_sort(form_pass *x) {
  orders_sort s = {
      .x = x, .by = x->op->called[0], .own = x->t->dims[x->dim] / x->shards, .operands = x->op->n_operands};
  s.length = orders_length(s.own, x->shards);
  s.n = s.operands + (s.own == s.length ? 1 : 2);
  s.v = BASE_ARRAY(&x->rw->arena, ir_value, (size_t)s.n);
  x->rw->failed = x->rw->failed || !s.v;
  if (x->rw->failed) return;
  orders_begin(&s);
  orders_columns(&s);
  for (uint32_t i = 0; i < s.n && !x->rw->failed; i++) s.v[i] = orders_deal(&s, s.v[i], 2);
  orders_columns(&s);
  for (uint32_t i = 0; i < s.n && !x->rw->failed; i++) s.v[i] = orders_deal(&s, s.v[i], 1);
  orders_columns(&s);
  for (uint32_t i = 0; i < s.n && !x->rw->failed; i++) s.v[i] = orders_between(&s, s.v[i]);
  orders_columns(&s);
  int64_t all = s.length * x->shards, size = s.own * x->shards;
  for (uint32_t i = 0; i < s.operands && !x->rw->failed; i++) {
    s.v[i] = spmd_form_reshape(x, orders_back(&s, s.v[i]), 2, 1, &all, 0);
    if (all != size) s.v[i] = orders_slice(x, s.v[i], 1, 0, 0, size);
  }
  orders_done(x, s.v);
}

/* --- top-k --- */

/* The k largest along v's last dimension, and where they are: both sharded as `s` says. */
static void orders_top_k(form_pass *x, ir_value v, int64_t k, const sdy_sharding *s, ir_value *out) {
  opt_rewriter *rw = x->rw;
  const ir_type *t = opt_type(v), *types[2];
  int64_t dims[IR_MAX_RANK];
  if (!t || rw->failed) return;
  for (uint32_t d = 0; d < t->rank; d++) dims[d] = t->dims[d];
  dims[t->rank - 1] = k;
  types[0] = opt_tensor(rw, (base_dtype)t->dtype, t->rank, dims);
  types[1] = opt_tensor(rw, XLAC_S32, t->rank, dims);
  ir_op *op = opt_make_n(rw, IR_OP_TOPK, 2, types, 1, &v, 0);
  for (uint32_t i = 0; i < 2; i++) out[i] = spmd_form_give(x, (ir_value){op, i}, s);
  opt_set(rw, out[0], "k", ir_m_i64(rw->m, k));
}

/* v[..., at[..., i]] for each row. */
static ir_value orders_take(form_pass *x, ir_value v, ir_value at) {
  opt_rewriter *rw = x->rw;
  ir_module *m = rw->m;
  int64_t rows[IR_MAX_RANK], ones[IR_MAX_RANK], dim = x->dim;
  if (rw->failed) return v;
  for (uint32_t d = 0; d <= x->dim; d++) rows[d] = d, ones[d] = 1;
  ir_mentry fields[] = {{ir_intern(m, "collapsed_slice_dims", 20), ir_m_i64s(m, 1, &dim)},
                        {ir_intern(m, "operand_batching_dims", 21), ir_m_i64s(m, x->dim, rows)},
                        {ir_intern(m, "start_indices_batching_dims", 27), ir_m_i64s(m, x->dim, rows)},
                        {ir_intern(m, "start_index_map", 15), ir_m_i64s(m, 1, &dim)},
                        {ir_intern(m, "index_vector_dim", 16), ir_m_i64(m, dim + 1)}};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
    rw->failed = rw->failed || !fields[i].key || !fields[i].value;
  if (rw->failed) return v;
  ir_value both[] = {v, at};
  v = spmd_form_give(x, opt_make(rw, IR_OP_GATHER, opt_type(at), 2, both), spmd_form_spread(x, 1, 1));
  opt_set(rw, v, "dimension_numbers", ir_m_struct(m, "stablehlo", "gather", 5, fields));
  opt_set(rw, v, "slice_sizes", ir_m_i64s(m, x->dim + 1, ones));
  return v;
}

/* Of the largest ones of each shard, in the order of the shards: so the first of equal ones is the first of all. */
void spmd_form_top_k(form_pass *x) {
  int64_t size = x->t->dims[x->dim], k = x->op->types[0]->dims[x->dim], own = size / x->shards, all = k * x->shards;
  int64_t sizes[] = {x->shards, own};
  ir_value each[2] = {{NULL, 0}}, best[2] = {{NULL, 0}};
  orders_top_k(x, spmd_form_reshape(x, opt_operand(x->op, 0), 1, 2, sizes, 0), k, spmd_form_spread(x, 2, 0), each);
  if (x->rw->failed) return;
  each[1] = orders_binary(x, IR_OP_ADD, each[1], orders_before(x, opt_type(each[1]), own));
  for (uint32_t i = 0; i < 2 && !x->rw->failed; i++)
    each[i] = spmd_form_reshape(x, spmd_form_reshard(x, each[i], spmd_form_spread(x, 2, 2)), 2, 1, &all, 1);
  orders_top_k(x, each[0], k, spmd_form_spread(x, 1, 1), best);
  best[1] = orders_take(x, each[1], best[1]);
  orders_done(x, best);
}
