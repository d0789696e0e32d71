/* Matrix products. */
#include "../row.h"

static ir_value product_conj(tfl_op *x, ir_value v, bool wanted) {
  if (!wanted || !v.op || !base_dtype_is_complex((base_dtype)opt_type(v)->dtype)) return v;
  return opt_unary(x->rw, IR_OP_CONJ, v);
}

/* The product of matrices in the last two dimensions; batch dimensions are equal. */
static ir_value product_matrices(tfl_op *x, ir_value a, ir_value b, bool transpose_a, bool transpose_b,
                                 base_dtype out) {
  if (!a.op || !b.op) return a.op ? b : a;
  uint32_t rank = opt_type(a)->rank;
  assert(rank >= 2 && opt_type(b)->rank == rank);
  tfl_dot d = {.n_batch = rank - 2, .n_contract = 1};
  for (uint32_t i = 0; i < d.n_batch; i++) d.a_batch[i] = d.b_batch[i] = i;
  d.a_contract[0] = transpose_a ? rank - 2 : rank - 1;
  d.b_contract[0] = transpose_b ? rank - 1 : rank - 2;
  int64_t m = opt_type(a)->dims[d.a_contract[0]], n = opt_type(b)->dims[d.b_contract[0]];
  if (m != n) {
    tfl_fail(x, "matrices of %lld columns and %lld rows can't be multiplied", (long long)m, (long long)n);
    return (ir_value){NULL, 0};
  }
  base_dtype wide = tfl_sum_dtype(out);
  return tfl_cast(x, tfl_dot_general(x, a, b, &d, wide), out);
}

int tfl_row_mat_mul(tfl_op *x) {
  const ir_type *s = tfl_in_type(x, 0), *t = tfl_in_type(x, 1);
  if (x->status) return x->status;
  if (s->rank != 2 || t->rank != 2)
    return tfl_fail(x, "it multiplies matrices, its inputs have %u and %u dimensions", s->rank, t->rank);
  tfl_out(x, 0,
          product_matrices(x, tfl_in(x, 0), tfl_in(x, 1), tfl_attr_bool(x, "transpose_a"),
                           tfl_attr_bool(x, "transpose_b"), tfl_out_dtype(x, 0)));
  return x->status;
}

/* All but the last two dimensions of v become those of the other operand as well. */
static ir_value product_broadcast(tfl_op *x, ir_value v, uint32_t rank, const int64_t *batch) {
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  memcpy(dims, batch, (rank - 2) * sizeof *dims);
  for (uint32_t i = 0; i < 2; i++) dims[rank - 2 + i] = t->dims[t->rank - 2 + i];
  return tfl_broadcast(x, v, rank, dims);
}

int tfl_row_batch_mat_mul(tfl_op *x) {
  const ir_type *s = tfl_in_type(x, 0), *t = tfl_in_type(x, 1);
  int64_t batch[TFL_MOST_DIMS];
  uint32_t rank = 0;
  if (x->status) return x->status;
  if (s->rank < 2 || t->rank < 2)
    return tfl_fail(x, "it multiplies matrices, its inputs have %u and %u dimensions", s->rank, t->rank);
  if (!x->row->arg && s->rank != t->rank) return tfl_fail(x, "its inputs have %u and %u dimensions", s->rank, t->rank);
  TRY(tfl_broadcast_dims(x, s->rank - 2, s->dims, t->rank - 2, t->dims, &rank, batch));
  bool adj_a = tfl_attr_bool(x, "adj_x"), adj_b = tfl_attr_bool(x, "adj_y");
  ir_value a = product_broadcast(x, product_conj(x, tfl_in(x, 0), adj_a), rank + 2, batch);
  ir_value b = product_broadcast(x, product_conj(x, tfl_in(x, 1), adj_b), rank + 2, batch);
  tfl_out(x, 0, product_matrices(x, a, b, adj_a, adj_b, tfl_out_dtype(x, 0)));
  return x->status;
}
