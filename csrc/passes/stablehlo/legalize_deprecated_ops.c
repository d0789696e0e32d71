/* stablehlo-legalize-deprecated-ops: einsum and unary_einsum, torch_index_select, broadcast, create_token, dot and
 * cross-replica-sum become ops that stay.
 * stablehlo.einsum and unary_einsum: diagonals and sums within an operand, a dot_general, a transpose. "ab,bc->ac":
 * letters name dimensions, "..." the leading ones that all share. Equations beyond that stay as they are. */
#include "legalize_deprecated_ops.h"

/* op's sharding goes with its value, since others (sdy.reduce_scatter, a function's result) were written for it; a
 * value that has readers already is none that was made here. */
static void deprecated_replace(opt_rewriter *rw, ir_op *op, ir_value v) {
  if (rw->failed || !v.op) return;
  const ir_mattr *sharding = ir_mattr_of(op, "sdy.sharding");
  if (sharding && !v.op->uses) opt_set(rw, v, "sdy.sharding", sharding);
  opt_replace_one(rw, op, v);
}

/* A value whose dimensions have labels: letters, or negative numbers for those of "...", counted from the last.
 * "ab,bc->ca" of tensor<2x3xf32> and tensor<3x4xf32>: dot_general with contracting_dims = [1] x [0] gives "ac", and a
 * transpose with dims = [1, 0] "ca". */
typedef struct einsum_term {
  ir_value v;
  uint32_t rank;
  int labels[IR_MAX_RANK];
} einsum_term;

/* Reads labels up to the end, ',' or '-' for a value of that rank (rank IR_MAX_RANK + 1: as many as there are, with
 * `dots` of "..."). False where they don't fit. */
static bool einsum_labels(const char **p, const char *end, uint32_t rank, uint32_t dots, einsum_term *t) {
  uint32_t letters = 0;
  bool ellipsis = false;
  for (const char *q = *p; q < end && *q != ',' && *q != '-'; q++) letters += *q != '.' && *q != ' ';
  for (t->rank = 0; *p < end && **p != ',' && **p != '-'; (*p)++) {
    char c = **p;
    if (c == ' ') continue;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    uint32_t n = 1;
    if (!letter) {
      if (ellipsis || end - *p < 3 || memcmp(*p, "...", 3) != 0 || (rank <= IR_MAX_RANK && letters > rank))
        return false;
      *p += 2;
      ellipsis = true;
      n = rank <= IR_MAX_RANK ? rank - letters : dots;
    }
    if (t->rank + n > IR_MAX_RANK) return false;
    for (uint32_t i = 0; i < n; i++) t->labels[t->rank++] = letter ? c : -(int)(n - i);
  }
  return rank > IR_MAX_RANK || t->rank == rank;
}

/* The first dimension with that label, or -1. */
static int einsum_find(const einsum_term *t, int label) {
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->labels[d] == label) return (int)d;
  return -1;
}

/* The most dimensions that "..." stands for. */
static uint32_t einsum_dots(const einsum_term *t) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->labels[d] < 0 && (uint32_t)-t->labels[d] > n) n = (uint32_t)-t->labels[d];
  return n;
}

/* Reads einsum_config: as many terms as operands, "->", and the result's term. Types that arithmetic below does not
 * know (quantised, index) are left alone. */
static bool einsum_read(const ir_op *op, uint32_t n, einsum_term *terms, einsum_term *out) {
  assert(n >= 1 && n <= 2);
  const ir_mattr *a = ir_mattr_of(op, "einsum_config");
  if (!a || a->kind != IR_M_STRING) return false;
  const char *p = a->str->s, *end = p + a->str->n;
  uint32_t dots = 0;
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = ir_operand_type(op, i);
    if (!ir_is_tensor(t) || t->quant || t->text) return false;
    terms[i].v = (ir_value){op->operands[i].op, op->operands[i].index};
    if (i > 0 && (p >= end || *p++ != ',')) return false;
    if (!einsum_labels(&p, end, t->rank, 0, &terms[i])) return false;
    if (einsum_dots(&terms[i]) > dots) dots = einsum_dots(&terms[i]);
  }
  if (end - p < 2 || memcmp(p, "->", 2) != 0) return false;
  p += 2;
  if (!einsum_labels(&p, end, IR_MAX_RANK + 1, dots, out) || p != end) return false;
  return ir_is_tensor(op->type) && out->rank == op->type->rank && !op->type->quant && !op->type->text;
}

/* Every label of the result stands once there and in some operand, with one size wherever it is. */
static bool einsum_fits(const ir_op *op, uint32_t n, const einsum_term *terms, const einsum_term *out) {
  for (uint32_t d = 0; d < out->rank; d++) {
    bool found = false;
    for (uint32_t i = 0; i < n; i++) found = found || einsum_find(&terms[i], out->labels[d]) >= 0;
    if (!found || einsum_find(out, out->labels[d]) != (int)d) return false;
  }
  for (uint32_t i = 0; i < n; i++) {
    const ir_type *t = opt_type(terms[i].v);
    for (uint32_t d = 0; d < terms[i].rank; d++) {
      int first = einsum_find(&terms[0], terms[i].labels[d]), to = einsum_find(out, terms[i].labels[d]);
      int own = einsum_find(&terms[i], terms[i].labels[d]);
      bool dynamic = ir_dim_is_dynamic(t, d);
      if (own != (int)d && (dynamic || t->dims[own] != t->dims[d])) return false;
      if (!dynamic && first >= 0 && !ir_dim_is_dynamic(opt_type(terms[0].v), (uint32_t)first) &&
          opt_type(terms[0].v)->dims[first] != t->dims[d])
        return false;
      if (!dynamic && to >= 0 && !ir_dim_is_dynamic(op->type, (uint32_t)to) && op->type->dims[to] != t->dims[d])
        return false;
    }
  }
  return true;
}

/* Dimension d is not there any more. */
static void einsum_drop(einsum_term *t, uint32_t d) {
  assert(d < t->rank);
  t->rank--;
  for (uint32_t i = d; i < t->rank; i++) t->labels[i] = t->labels[i + 1];
}

/* Sums over dimension d. */
static void einsum_sum(opt_rewriter *rw, einsum_term *t, uint32_t d) {
  const ir_type *scalar = t->v.op ? opt_tensor(rw, (base_dtype)opt_type(t->v)->dtype, 0, NULL) : NULL;
  int64_t dim = d;
  t->v = opt_reduce(rw, IR_OP_ADD, t->v, opt_splat(rw, scalar, 0), 1, &dim);
  einsum_drop(t, d);
}

/* Keeps the diagonal of dimensions d and e, as d; their sizes are static and equal: everything off the diagonal
 * becomes zero (select by iota == iota), and e is summed over. */
static void einsum_diagonal(opt_rewriter *rw, einsum_term *t, uint32_t d, uint32_t e) {
  assert(d < e && e < t->rank);
  const ir_type *type = opt_type(t->v);
  if (!type) return;
  const int64_t side[] = {type->dims[d], type->dims[e]}, at[] = {d, e};
  const ir_type *square = opt_tensor(rw, XLAC_S32, 2, side);
  ir_value place[2];
  for (int i = 0; i < 2; i++) {
    place[i] = opt_make(rw, IR_OP_IOTA, square, 0, NULL);
    opt_set(rw, place[i], "iota_dimension", ir_m_i64(rw->m, i));
  }
  ir_value same = opt_compare(rw, IR_DIRECTION_EQ, IR_COMPARISON_NONE, place[0], place[1]);
  const ir_type *mask = opt_with_dtype(rw, type, XLAC_PRED);
  if (type->has_dynamic)
    same = opt_dynamic_broadcast(rw, same, opt_extents(rw, t->v), mask, at);
  else
    same = opt_broadcast_in_dim(rw, same, mask, at);
  ir_value zero = opt_splat(rw, opt_tensor(rw, (base_dtype)type->dtype, 0, NULL), 0);
  t->v = opt_select(rw, same, t->v, opt_spread_like(rw, zero, t->v));
  einsum_sum(rw, t, e);
}

/* Repeated labels become one; those that neither the result nor `other` has are summed over.
 * Sums are made in the result's element type, as a product's are. */
static void einsum_tidy(opt_rewriter *rw, einsum_term *t, const einsum_term *other, const einsum_term *out,
                        base_dtype dtype) {
  bool any = false;
  for (uint32_t d = t->rank; d-- > 0 && !rw->failed;) {
    int first = einsum_find(t, t->labels[d]);
    bool repeated = first != (int)d;
    bool alone = einsum_find(out, t->labels[d]) < 0 && (!other || einsum_find(other, t->labels[d]) < 0);
    if (!repeated && !alone) continue;
    if (!any && opt_type(t->v)->dtype != dtype) t->v = opt_convert(rw, t->v, dtype);
    any = true;
    if (repeated)
      einsum_diagonal(rw, t, (uint32_t)first, d);
    else
      einsum_sum(rw, t, d);
  }
}

/* The product's dimensions as they are appended, in the order that dot_general gives them: batch, free of the left
 * side, free of the right one. */
typedef struct einsum_shape {
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
} einsum_shape;

/* Dimension d of `from` becomes the last one of t, which has the shape s so far. */
static bool einsum_push(einsum_term *t, einsum_shape *s, const einsum_term *from, uint32_t d) {
  const ir_type *type = opt_type(from->v);
  if (t->rank == IR_MAX_RANK) return false;
  s->dims[t->rank] = type->dims[d];
  s->dynamic[t->rank] = ir_dim_is_dynamic(type, d);
  t->labels[t->rank++] = from->labels[d];
  return true;
}

/* a * b summed over the labels they share and the result has not. False where the product has too many dimensions. */
static bool einsum_product(opt_rewriter *rw, const ir_op *op, const einsum_term *a, const einsum_term *b,
                           const einsum_term *out, einsum_term *result) {
  int64_t batch[2][IR_MAX_RANK], contract[2][IR_MAX_RANK];
  uint32_t n_batch = 0, n_contract = 0;
  einsum_shape shape;
  bool fits = true;
  result->rank = 0;
  for (uint32_t d = 0; d < a->rank; d++) {
    int e = einsum_find(b, a->labels[d]);
    if (e < 0) continue;
    bool kept = einsum_find(out, a->labels[d]) >= 0;
    (kept ? batch : contract)[0][kept ? n_batch : n_contract] = d;
    (kept ? batch : contract)[1][kept ? n_batch++ : n_contract++] = e;
    if (kept) fits = einsum_push(result, &shape, a, d) && fits;
  }
  for (uint32_t d = 0; d < a->rank; d++)
    if (einsum_find(b, a->labels[d]) < 0) fits = einsum_push(result, &shape, a, d) && fits;
  for (uint32_t d = 0; d < b->rank; d++)
    if (einsum_find(a, b->labels[d]) < 0) fits = einsum_push(result, &shape, b, d) && fits;
  if (!fits) return false;
  const ir_type *type = ir_tensor_mlir(rw->m, (base_dtype)op->type->dtype, NULL, NULL, result->rank, shape.dims,
                                       shape.dynamic, NULL, NULL);
  ir_value both[] = {a->v, b->v};
  result->v = opt_make(rw, IR_OP_DOT, type, 2, both);
  opt_set(rw, result->v, "dot_dimension_numbers",
          opt_dot_dims(rw, n_batch, batch[0], batch[1], n_contract, contract[0], contract[1]));
  const ir_mattr *precision = ir_mattr_of(op, "precision_config");
  if (precision) opt_set(rw, result->v, "precision_config", precision);
  return true;
}

/* In the order of the result. */
static void einsum_arrange(opt_rewriter *rw, const ir_op *op, einsum_term *t, const einsum_term *out) {
  int64_t permutation[IR_MAX_RANK];
  bool moved = false;
  if (rw->failed) return;
  assert(t->rank == out->rank);
  if (opt_type(t->v)->dtype != op->type->dtype) t->v = opt_convert(rw, t->v, (base_dtype)op->type->dtype);
  for (uint32_t d = 0; d < out->rank; d++) {
    permutation[d] = einsum_find(t, out->labels[d]);
    moved = moved || permutation[d] != d;
  }
  if (moved) t->v = opt_transpose(rw, t->v, permutation);
  if (t->v.op && opt_type(t->v) != op->type) t->v = opt_make(rw, IR_OP_CONVERT, op->type, 1, &t->v);
}

/* The deprecated op goes in any case once its equation is understood. */
int opt_einsum(opt_rewriter *rw, ir_op *op, bool *changed) {
  einsum_term terms[2], out, result;
  uint32_t n = op->n_operands;
  assert(op->n_results == 1);
  base_dtype dtype = (base_dtype)op->type->dtype;
  assert(n <= 2);
  if (!einsum_read(op, n, terms, &out) || !einsum_fits(op, n, terms, &out)) return 0;
  for (uint32_t i = 0; i < n; i++) einsum_tidy(rw, &terms[i], n == 2 ? &terms[1 - i] : NULL, &out, dtype);
  if (rw->failed) return 0;
  if (n == 1)
    result = terms[0];
  else if (!einsum_product(rw, op, &terms[0], &terms[1], &out, &result))
    return 0;
  einsum_arrange(rw, op, &result, &out);
  deprecated_replace(rw, op, result.v);
  *changed = true;
  return 0;
}

/* stablehlo.torch_index_select: a gather of whole slices along one dimension. */

/* Of torch_index_select(x, index): the ranks of both, dim = the dimension of x that index picks from, batch = how
 * many leading dimensions both share. */
typedef struct select_plan {
  uint32_t rank, index_rank, dim, batch;
} select_plan;

/* #stablehlo.gather: dim is collapsed and indexed, leading dimensions are batching ones, all others offsets. The
 * index vector is one implicit number (index_vector_dim = its rank). */
static const ir_mattr *select_numbers(opt_rewriter *rw, const select_plan *s) {
  int64_t offset[IR_MAX_RANK], batch[IR_MAX_RANK], dim = s->dim, added = (int64_t)s->index_rank - s->batch;
  uint32_t n = 0;
  for (uint32_t d = 0; d < s->batch; d++) batch[d] = d;
  for (uint32_t d = s->batch; d < s->rank; d++)
    if (d != s->dim) offset[n++] = d < s->dim ? d : d - 1 + added;
  const struct {
    const char *name;
    const ir_mattr *value;
  } list[] = {{"offset_dims", ir_m_i64s(rw->m, n, offset)},
              {"collapsed_slice_dims", ir_m_i64s(rw->m, 1, &dim)},
              {"operand_batching_dims", ir_m_i64s(rw->m, s->batch, batch)},
              {"start_indices_batching_dims", ir_m_i64s(rw->m, s->batch, batch)},
              {"start_index_map", ir_m_i64s(rw->m, 1, &dim)},
              {"index_vector_dim", ir_m_i64(rw->m, s->index_rank)}};
  ir_mentry fields[6];
  uint32_t k = 0;
  for (int i = 0; i < 6; i++) {
    if ((i == 2 || i == 3) && s->batch == 0) continue;
    fields[k] = (ir_mentry){ir_intern(rw->m, list[i].name, strlen(list[i].name)), list[i].value};
    if (!fields[k].key || !fields[k].value) return NULL;
    k++;
  }
  return ir_m_struct(rw->m, "stablehlo", "gather", k, fields);
}

/* The attributes of ops written long ago are not verified: what does not fit stays. */
static bool select_start(const ir_op *op, select_plan *s) {
  const ir_type *x = ir_operand_type(op, 0), *index = ir_operand_type(op, 1), *to = op->type;
  if (!opt_is_static(x) || !opt_is_static(index) || !opt_is_static(to)) return false;
  int64_t dim = ir_m_get_int(op, "dim", 0), batch = ir_m_get_int(op, "batch_dims", 0);
  if (dim < 0) dim += x->rank;
  if (batch < 0) batch += index->rank;
  if (dim < 0 || dim >= x->rank || batch < 0 || batch > dim || batch > index->rank) return false;
  if (!base_dtype_is_integer((base_dtype)index->dtype) || to->dtype != x->dtype || index->quant) return false;
  *s = (select_plan){x->rank, index->rank, (uint32_t)dim, (uint32_t)batch};
  uint32_t n = 0;
  if (to->rank != x->rank - 1 + index->rank - s->batch) return false;
  for (uint32_t d = 0; d < s->batch; d++)
    if (x->dims[d] != index->dims[d]) return false;
  for (uint32_t d = 0; d < s->dim; d++)
    if (to->dims[n++] != x->dims[d]) return false;
  for (uint32_t d = s->batch; d < index->rank; d++)
    if (to->dims[n++] != index->dims[d]) return false;
  for (uint32_t d = s->dim + 1; d < x->rank; d++)
    if (to->dims[n++] != x->dims[d]) return false;
  return true;
}

/* Slices are whole but for the indexed and batching dimensions, of which one element is taken. */
int opt_torch_index_select(opt_rewriter *rw, ir_op *op, bool *changed) {
  select_plan s;
  int64_t sizes[IR_MAX_RANK];
  if (!select_start(op, &s)) return 0;
  const ir_type *x = ir_operand_type(op, 0);
  if (x->dims[s.dim] == 0) return 0; /* nothing to select from */
  for (uint32_t d = 0; d < s.rank; d++) sizes[d] = d < s.batch || d == s.dim ? 1 : x->dims[d];
  ir_value both[] = {opt_operand(op, 0), opt_operand(op, 1)};
  ir_value v = opt_make(rw, IR_OP_GATHER, op->type, 2, both);
  opt_set(rw, v, "dimension_numbers", select_numbers(rw, &s));
  opt_set(rw, v, "slice_sizes", ir_m_i64s(rw->m, s.rank, sizes));
  deprecated_replace(rw, op, v);
  *changed = true;
  return 0;
}

/* stablehlo-legalize-deprecated-ops: ops that StableHLO wants to lose become those that replace them.
 * Requires: nothing. Preserves: all other ops, and einsums whose equations are not understood. map and rng, which
 * nothing replaces, are errors unless fail-on-unused is off. */

/* Sizes that come before x's own, as the attribute says, and those. */
static ir_value deprecated_extents(opt_rewriter *rw, const ir_op *op, ir_value x) {
  uint32_t n, rank = opt_type(x)->rank;
  ir_value sizes[IR_MAX_RANK];
  const int64_t *more = ir_m_ints(ir_mattr_of(op, "broadcast_sizes"), &rw->arena, &n);
  if (!more || n + rank != op->type->rank) return (ir_value){NULL, 0};
  for (uint32_t i = 0; i < n; i++) {
    if (more[i] > INT32_MAX) return (ir_value){NULL, 0};
    sizes[i] = opt_splat_int(rw, opt_tensor(rw, XLAC_S32, 0, NULL), more[i]);
  }
  for (uint32_t d = 0; d < rank; d++) sizes[n + d] = opt_extent(rw, x, d);
  assert(n + rank <= IR_MAX_RANK);
  return opt_join_extents(rw, n + rank, sizes);
}

/* New dimensions come first, so the operand's are the last ones. */
static int deprecated_broadcast(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value x = opt_operand(op, 0);
  const ir_type *from = opt_type(x), *to = op->type;
  int64_t dims[IR_MAX_RANK];
  if (!ir_is_tensor(from) || !ir_is_tensor(to) || from->rank > to->rank) return 0;
  for (uint32_t d = 0; d < from->rank; d++) dims[d] = (int64_t)(to->rank - from->rank + d);
  ir_value extents = {NULL, 0};
  bool known = opt_is_static(to) || opt_is_bounded(to);
  if (!known) extents = deprecated_extents(rw, op, x);
  if (!known && !extents.op) return 0;
  ir_value v = known ? opt_broadcast_in_dim(rw, x, to, dims) : opt_dynamic_broadcast(rw, x, extents, to, dims);
  deprecated_replace(rw, op, v);
  *changed = true;
  return 0;
}

/* create_token is after_all of nothing. */
static int deprecated_token(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value v = opt_make(rw, IR_OP_AFTER_ALL, op->type, 0, NULL);
  deprecated_replace(rw, op, v);
  *changed = true;
  return 0;
}

/* #stablehlo.dot<...>, its fields in the order of the text. */
const ir_mattr *opt_dot_dims(opt_rewriter *rw, uint32_t n_batch, const int64_t *lhs_batch, const int64_t *rhs_batch,
                             uint32_t n_contract, const int64_t *lhs_contract, const int64_t *rhs_contract) {
  const struct {
    const char *name;
    uint32_t n;
    const int64_t *v;
  } lists[] = {{"lhs_batching_dimensions", n_batch, lhs_batch},
               {"rhs_batching_dimensions", n_batch, rhs_batch},
               {"lhs_contracting_dimensions", n_contract, lhs_contract},
               {"rhs_contracting_dimensions", n_contract, rhs_contract}};
  ir_mentry fields[4];
  for (int i = 0; i < 4; i++) {
    fields[i].key = ir_intern(rw->m, lists[i].name, strlen(lists[i].name));
    fields[i].value = ir_m_i64s(rw->m, lists[i].n, lists[i].v);
    if (!fields[i].key || !fields[i].value) return NULL;
  }
  return ir_m_struct(rw->m, "stablehlo", "dot", 4, fields);
}

/* dot_general is stricter about what it multiplies by (its C14, C15 and C16): zero points are zero, and what is
 * contracted has one scale. */
static bool deprecated_dot_fits(const ir_type *rhs) {
  const ir_quant *q = rhs->quant;
  if (!q) return true;
  for (uint32_t i = 0; i < q->n; i++)
    if (q->zero_points[i] != 0) return false;
  return q->axis == -1 || q->axis > 0;
}

/* dot contracts the last dimension of the left side with the first of the right. */
static int deprecated_dot(opt_rewriter *rw, ir_op *op, bool *changed) {
  ir_value both[] = {opt_operand(op, 0), opt_operand(op, 1)};
  const ir_type *lhs = opt_type(both[0]);
  if (!ir_is_tensor(lhs) || lhs->rank == 0 || !deprecated_dot_fits(opt_type(both[1]))) return 0;
  int64_t last = (int64_t)lhs->rank - 1, first = 0;
  ir_value v = opt_make(rw, IR_OP_DOT, op->type, 2, both);
  opt_set(rw, v, "dot_dimension_numbers", opt_dot_dims(rw, 0, NULL, NULL, 1, &last, &first));
  const ir_mattr *precision = ir_mattr_of(op, "precision_config");
  if (precision) opt_set(rw, v, "precision_config", precision);
  deprecated_replace(rw, op, v);
  *changed = true;
  return 0;
}

/* An op that no table has any more, and so is an unregistered one: an all_reduce that adds. */
static int deprecated_cross_replica_sum(opt_rewriter *rw, ir_op *op, bool *changed) {
  const ir_mattr *groups = ir_mattr_of(op, "replica_groups");
  if (strcmp(op->u.name->s, "stablehlo.cross-replica-sum") != 0 || !groups) return 0;
  if (op->n_operands != 1 || op->n_results != 1 || !ir_is_tensor(op->type)) return 0;
  ir_value x = opt_operand(op, 0);
  ir_op *reduce = opt_make_n(rw, IR_OP_ALL_REDUCE, 1, op->types, 1, &x, 1);
  ir_value v = {reduce, 0};
  opt_set(rw, v, "replica_groups", groups);
  if (reduce) opt_make_reducer(rw, reduce, IR_OP_ADD, opt_tensor(rw, (base_dtype)op->type->dtype, 0, NULL));
  deprecated_replace(rw, op, v);
  *changed = true;
  return 0;
}

/* Of the deprecated ops some must not be left; the words are MLIR's. */
static int deprecated_check(const opt_rewriter *rw, bool fail_on_unused) {
  IR_FOR_COMPUTATIONS(c, rw->m) {
    IR_FOR_OPS(op, c) {
      bool unused = fail_on_unused && (op->opcode == IR_OP_MAP || op->opcode == IR_OP_RNG);
      bool left = op->opcode == IR_OP_STABLEHLO_BROADCAST || op->opcode == IR_OP_STABLEHLO_DOT ||
                  op->opcode == IR_OP_UNARY_EINSUM;
      if (!unused && !left) continue;
      return opt_rewrite_fail(rw, op, XLAC_E_LEGALIZE,
                              "failed to legalize operation '%s' that was explicitly marked illegal",
                              ir_opcode_info(op->opcode)->mlir->name);
    }
  }
  return 0;
}

/* The driver runs the patterns to a fixed point, for einsum makes ops that others lower. */
int opt_legalize_deprecated(ir_module *m, bool fail_on_unused, xlac_error *err) {
  static const opt_pattern patterns[] = {{IR_OP_STABLEHLO_BROADCAST, deprecated_broadcast},
                                         {IR_OP_CREATE_TOKEN, deprecated_token},
                                         {IR_OP_STABLEHLO_DOT, deprecated_dot},
                                         {IR_OP_EINSUM, opt_einsum},
                                         {IR_OP_UNARY_EINSUM, opt_einsum},
                                         {IR_OP_TORCH_INDEX_SELECT, opt_torch_index_select},
                                         {IR_OP_UNREGISTERED, deprecated_cross_replica_sum}};
  opt_rewriter rw;
  TRY(opt_rewriter_init(&rw, m, err));
  int status = opt_rewrite(&rw, sizeof patterns / sizeof patterns[0], patterns);
  if (status == 0) status = deprecated_check(&rw, fail_on_unused);
  opt_rewriter_free(&rw);
  return status;
}

int opt_deprecated(ir_module *m, const opt_args *args, xlac_error *err) {
  return opt_legalize_deprecated(m, opt_get(args, "fail-on-unused") != 0, err);
}
