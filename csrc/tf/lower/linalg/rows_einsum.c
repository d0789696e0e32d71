/* Einsum of one or two operands: diagonals and sums of single operands first, then one product, then a
 * transposition. Dimensions behind "..." get labels of their own, from the right, which both operands share.
 *   "abi,bci->ca" : the product contracts b and i, leaves a and c, and is transposed */
#include "../row.h"

enum {
  EIN_MOST = 2 * TFL_MOST_DIMS,
  EIN_DOTS = 256
}; /* labels from EIN_DOTS on: behind "...", counted from the right */

/* An operand, or the result, with a label for each dimension. */
typedef struct ein_term {
  uint32_t n;
  int label[EIN_MOST];
  ir_value v; /* of an operand */
} ein_term;

/* The labels of "ab...c" for n dimensions in all; for the result, dots dimensions stand behind "...". */
static int ein_labels(tfl_op *x, base_slice text, int64_t n, uint32_t dots, ein_term *out) {
  assert(n <= TFL_MOST_DIMS);
  uint32_t letters = 0;
  bool ellipsis = false;
  out->n = 0;
  for (size_t i = 0; i < text.n; i++) letters += text.p[i] != '.' && text.p[i] != ' ';
  if (n >= 0 && letters <= n) dots = (uint32_t)(n - letters);
  for (size_t i = 0; i < text.n; i++) {
    if (text.p[i] == ' ') continue;
    if (letters + dots > TFL_MOST_DIMS) return tfl_fail(x, "its equation has too many dimensions");
    if (text.p[i] != '.') {
      out->label[out->n++] = (uint8_t)text.p[i];
      continue;
    }
    if (i + 2 >= text.n || text.p[i + 1] != '.' || text.p[i + 2] != '.' || ellipsis)
      return tfl_fail(x, "its equation is malformed at a '.'");
    ellipsis = true;
    i += 2;
    for (uint32_t k = dots; k > 0; k--) out->label[out->n++] = EIN_DOTS + (int)k - 1;
  }
  if (n >= 0 && out->n != n)
    return tfl_fail(x, "a term of its equation has %u labels, its operand %lld dimensions", out->n, (long long)n);
  return 0;
}

/* The place of a label from `from` on; -1 where it is not. */
static int ein_find(const ein_term *t, int label, uint32_t from) {
  for (uint32_t i = from; i < t->n; i++)
    if (t->label[i] == label) return (int)i;
  return -1;
}

static void ein_remove(ein_term *t, uint32_t at) {
  assert(at < t->n);
  for (uint32_t i = at + 1; i < t->n; i++) t->label[i - 1] = t->label[i];
  t->n--;
}

/* A label twice in one operand: only places where both indices are equal count, the second dimension goes. */
static int ein_diagonals(tfl_op *x, ein_term *t) {
  for (uint32_t i = 0; i < t->n; i++) {
    int again = 0;
    while (t->v.op && (again = ein_find(t, t->label[i], i + 1)) >= 0) {
      const ir_type *type = opt_type(t->v);
      int64_t dim = again;
      if (type->dims[i] != type->dims[again])
        return tfl_fail(x, "label '%c' stands for %lld and for %lld elements", t->label[i], (long long)type->dims[i],
                        (long long)type->dims[again]);
      ir_value on = tfl_compare(x, IR_DIRECTION_EQ, tfl_iota(x, XLAC_S32, type->rank, type->dims, i),
                                tfl_iota(x, XLAC_S32, type->rank, type->dims, (uint32_t)again));
      t->v = tfl_reduce(x, IR_OP_ADD, opt_select(x->rw, on, t->v, tfl_like(x, t->v, 0)), 0, 1, &dim);
      ein_remove(t, (uint32_t)again);
    }
  }
  return x->status;
}

/* What neither the result nor the other operand has is summed over. */
static void ein_sums(tfl_op *x, ein_term *t, const ein_term *other, const ein_term *out) {
  int64_t dims[TFL_MOST_DIMS];
  uint32_t n = 0, kept = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    bool stays = ein_find(out, t->label[i], 0) >= 0 || (other && ein_find(other, t->label[i], 0) >= 0);
    if (stays)
      t->label[kept++] = t->label[i];
    else
      dims[n++] = i;
  }
  t->n = kept;
  if (n) t->v = tfl_reduce(x, IR_OP_ADD, t->v, 0, n, dims);
}

/* Sizes of 1 that the other operand has more of: such dimensions go, as if the label were not there. numpy
 * broadcasts such dimensions; the other operand's dimension stays. */
static void ein_squeeze(tfl_op *x, ein_term *t, const ein_term *other) {
  int64_t dims[TFL_MOST_DIMS];
  uint32_t kept = 0;
  if (!t->v.op || !other->v.op) return;
  const ir_type *type = opt_type(t->v);
  for (uint32_t i = 0; i < t->n; i++) {
    int at = ein_find(other, t->label[i], 0);
    if (at >= 0 && type->dims[i] == 1 && opt_type(other->v)->dims[at] != 1) continue;
    dims[kept] = type->dims[i];
    t->label[kept++] = t->label[i];
  }
  t->n = kept;
  t->v = tfl_reshape(x, t->v, kept, dims);
}

/* The product; t gets its labels. */
static int ein_product(tfl_op *x, ein_term *a, const ein_term *b, const ein_term *out) {
  assert(a->n <= TFL_MOST_DIMS && b->n <= TFL_MOST_DIMS);
  tfl_dot d = {.n_batch = 0};
  ein_term result = {.n = 0};
  if (!a->v.op || !b->v.op) return x->status;
  for (uint32_t i = 0; i < a->n; i++) {
    int k = ein_find(b, a->label[i], 0);
    if (k < 0) continue;
    if (opt_type(a->v)->dims[i] != opt_type(b->v)->dims[k])
      return tfl_fail(x, "a label stands for %lld and for %lld elements", (long long)opt_type(a->v)->dims[i],
                      (long long)opt_type(b->v)->dims[k]);
    bool batch = ein_find(out, a->label[i], 0) >= 0;
    int64_t *to_a = batch ? &d.a_batch[d.n_batch] : &d.a_contract[d.n_contract];
    int64_t *to_b = batch ? &d.b_batch[d.n_batch] : &d.b_contract[d.n_contract];
    *to_a = i;
    *to_b = k;
    if (batch) result.label[result.n++] = a->label[i];
    *(batch ? &d.n_batch : &d.n_contract) += 1;
  }
  for (uint32_t i = 0; i < a->n; i++)
    if (ein_find(b, a->label[i], 0) < 0) result.label[result.n++] = a->label[i];
  for (uint32_t i = 0; i < b->n; i++)
    if (ein_find(a, b->label[i], 0) < 0) result.label[result.n++] = b->label[i];
  base_dtype own = tfl_out_dtype(x, 0);
  result.v = tfl_cast(x, tfl_dot_general(x, a->v, b->v, &d, tfl_sum_dtype(own)), own);
  *a = result;
  return x->status;
}

/* The result's order of dimensions. */
static int ein_order(tfl_op *x, const ein_term *t, const ein_term *out) {
  int64_t permutation[TFL_MOST_DIMS];
  if (t->n != out->n) return tfl_fail(x, "its equation has a label in the result that no operand has, or one twice");
  for (uint32_t i = 0; i < out->n; i++) {
    int at = ein_find(t, out->label[i], 0);
    if (at < 0 || ein_find(out, out->label[i], i + 1) >= 0)
      return tfl_fail(x, "its equation has a label in the result that no operand has, or one twice");
    permutation[i] = at;
  }
  tfl_out(x, 0, tfl_transpose(x, t->v, permutation));
  return x->status;
}

/* Cuts *rest at `at`, of which `skip` letters go. */
static base_slice ein_cut(base_slice *rest, const char *at, size_t skip) {
  assert(at >= rest->p && at + skip <= rest->p + rest->n);
  base_slice first = {rest->p, (size_t)(at - rest->p)};
  *rest = (base_slice){at + skip, rest->n - first.n - skip};
  return first;
}

/* The labels of "..." in the result are as many as the operand with most of them has. */
int tfl_row_einsum(tfl_op *x) {
  base_slice result = tfl_attr_str(x, "equation");
  const char *arrow = memchr(result.p, '-', result.n), *comma;
  ein_term terms[2], out;
  uint32_t dots = 0;
  if (x->n_in < 1 || x->n_in > 2) return tfl_fail(x, "it has %u operands: one or two work", x->n_in);
  if (!arrow || (size_t)(arrow - result.p) + 1 >= result.n || arrow[1] != '>')
    return tfl_fail(x, "its equation has no '->'");
  base_slice left = ein_cut(&result, arrow, 2), term;
  for (uint32_t i = 0; i < x->n_in; i++) {
    comma = memchr(left.p, ',', left.n);
    if ((comma != NULL) != (i + 1 < x->n_in)) return tfl_fail(x, "its equation is not for %u operands", x->n_in);
    term = comma ? ein_cut(&left, comma, 1) : left;
    TRY(ein_labels(x, term, tfl_in_type(x, i)->rank, 0, &terms[i]));
    terms[i].v = tfl_in(x, i);
    for (uint32_t k = 0; k < terms[i].n; k++)
      if (terms[i].label[k] >= EIN_DOTS && (uint32_t)(terms[i].label[k] - EIN_DOTS) >= dots)
        dots = (uint32_t)(terms[i].label[k] - EIN_DOTS) + 1;
    TRY(ein_diagonals(x, &terms[i]));
  }
  TRY(ein_labels(x, result, -1, dots, &out));
  ein_sums(x, &terms[0], x->n_in > 1 ? &terms[1] : NULL, &out);
  if (x->n_in == 1) return x->status ? x->status : ein_order(x, &terms[0], &out);
  ein_sums(x, &terms[1], &terms[0], &out);
  ein_squeeze(x, &terms[0], &terms[1]);
  ein_squeeze(x, &terms[1], &terms[0]);
  TRY(ein_product(x, &terms[0], &terms[1], &out));
  return ein_order(x, &terms[0], &out);
}
