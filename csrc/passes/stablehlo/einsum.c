/* stablehlo.einsum and unary_einsum: diagonals and sums within an operand, a dot_general, a transpose.
 * "ab,bc->ac": letters name dimensions, "..." the leading ones that all share. Equations beyond that stay as they are.
 */
#include "legalize_deprecated_ops.h"

/* A value whose dimensions have labels: letters, or negative numbers for those of "...", counted from the last. */
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

static bool einsum_read(const ir_op *op, uint32_t n, einsum_term *terms, einsum_term *out) {
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

static void einsum_drop(einsum_term *t, uint32_t d) {
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

/* Keeps the diagonal of dimensions d and e, as d; their sizes are static. */
static void einsum_diagonal(opt_rewriter *rw, einsum_term *t, uint32_t d, uint32_t e) {
  const ir_type *type = opt_type(t->v);
  if (!type) return;
  const int64_t side[] = {type->dims[d], type->dims[e]}, at[] = {d, e};
  const ir_type *square = opt_tensor(rw, XLAC_S32, 2, side);
  ir_value place[2];
  for (int i = 0; i < 2; i++) {
    place[i] = opt_make(rw, IR_OP_IOTA, square, 0, NULL);
    opt_set(rw, place[i], "iota_dimension", ir_m_i64(rw->m, i));
  }
  ir_value same = opt_compare(rw, "EQ", NULL, place[0], place[1]);
  const ir_type *mask = opt_with_dtype(rw, type, XLAC_PRED);
  if (type->has_dynamic)
    same = opt_dynamic_broadcast(rw, same, opt_extents(rw, t->v), mask, at);
  else
    same = opt_broadcast_in_dim(rw, same, mask, at);
  ir_value zero = opt_splat(rw, opt_tensor(rw, (base_dtype)type->dtype, 0, NULL), 0);
  t->v = opt_select(rw, same, t->v, opt_spread_like(rw, zero, t->v));
  einsum_sum(rw, t, e);
}

/* Repeated labels become one; those that neither the result nor `other` has are summed over. */
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

/* The result's dimensions of `which` that meet a condition, appended with their sizes. */
typedef struct einsum_shape {
  int64_t dims[IR_MAX_RANK];
  bool dynamic[IR_MAX_RANK];
} einsum_shape;

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

int opt_einsum(opt_rewriter *rw, ir_op *op, bool *changed) {
  einsum_term terms[2], out, result;
  uint32_t n = op->n_operands;
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
  if (!rw->failed) opt_replace_one(rw, op, result.v);
  *changed = true;
  return 0;
}
