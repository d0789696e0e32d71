/* Makers that rows use: numpy's broadcasting, and ops of StableHLO that passes/rewrite/rewrite.h has no makers
 * for. All take values without op, which failures leave, and pass them on; all check what a user's graph can get
 * wrong, and assert what only a row can. */
#include <stdio.h>

#include "../../passes/stablehlo/legalize_deprecated_ops.h"
#include "build.h"

/* What a maker gives after a failure. Makers give it and take it: a row need not ask after each step whether it
 * has worked, since x->status says so in the end. */
static ir_value make_nothing(void) {
  return (ir_value){NULL, 0};
}

/* NULL after a failure, which the makers of rewrite.h take. Equal types are one object in a module, so that types
 * are compared as pointers. */
const ir_type *tfl_type(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims) {
  assert(rank == 0 || dims != NULL);
  xlac_error why = {.code = 0};
  const ir_type *t = rank <= TFL_MOST_DIMS && dtype != BASE_DTYPE_INVALID
                         ? ir_tensor(x->rw->m, dtype, rank, dims, NULL, NULL, &why)
                         : NULL;
  if (!t && rank > TFL_MOST_DIMS) tfl_fail(x, "a result has %u dimensions: at most %d work", rank, TFL_MOST_DIMS);
  if (!t && dtype == BASE_DTYPE_INVALID) tfl_fail(x, "a result is neither of numbers nor of truth values");
  if (!t && why.code == XLAC_E_OUT_OF_MEMORY && !x->status) x->status = base_oom(x->err, "lowering");
  if (!t) tfl_fail(x, "a result has no valid shape: %.200s", why.message);
  return t;
}

/* The double is rounded to the type; integers above 2^53 need opt_splat_int. A constant of rank 0. */
ir_value tfl_scalar(tfl_op *x, base_dtype dtype, double v) {
  return opt_splat(x->rw, tfl_type(x, dtype, 0, NULL), v);
}

/* A constant of the type of `like`, every element v. */
ir_value tfl_like(tfl_op *x, ir_value like, double v) {
  return opt_splat(x->rw, opt_type(like), v);
}

/* The same of any shape. */
ir_value tfl_full(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims, double v) {
  return opt_splat(x->rw, tfl_type(x, dtype, rank, dims), v);
}

/* TensorFlow's Cast, as a convert of StableHLO: floats to integers are cut off towards zero. */
ir_value tfl_cast(tfl_op *x, ir_value v, base_dtype dtype) {
  return !v.op || opt_type(v)->dtype == dtype ? v : opt_convert(x->rw, v, dtype);
}

/* Also a check: a row may ask for a shape that the user gave. The number of elements must stay; a shape that stays
 * as well gives v itself. */
ir_value tfl_reshape(tfl_op *x, ir_value v, uint32_t rank, const int64_t *dims) {
  if (!v.op) return v;
  const ir_type *t = tfl_type(x, (base_dtype)opt_type(v)->dtype, rank, dims);
  if (!t || t == opt_type(v)) return t ? v : make_nothing();
  if (t->count == opt_type(v)->count) return opt_reshape(x->rw, v, t);
  tfl_fail(x, "%lld elements can't get a shape of %lld", (long long)opt_type(v)->count, (long long)t->count);
  return make_nothing();
}

/* --- broadcasting --- */

/* "[2,3]", cut where it does not fit. */
static const char *make_dims_text(char *buf, size_t size, uint32_t rank, const int64_t *dims) {
  assert(size > 2);
  size_t n = 0;
  buf[n++] = '[';
  for (uint32_t d = 0; d < rank && n + 24 < size; d++)
    n += (size_t)snprintf(buf + n, size - n, d ? ",%lld" : "%lld", (long long)dims[d]);
  snprintf(buf + n, size - n, "]");
  return buf;
}

/* Fails with both shapes. */
static int make_misfit(tfl_op *x, uint32_t rank_a, const int64_t *a, uint32_t rank_b, const int64_t *b) {
  assert(rank_a == 0 || a != NULL);
  char one[120], other[120];
  return tfl_fail(x, "shapes %s and %s can't be broadcast to one", make_dims_text(one, sizeof one, rank_a, a),
                  make_dims_text(other, sizeof other, rank_b, b));
}

/* Sizes are compared from the last dimension on; 1 gives way, a missing one, too. dims has TFL_MOST_DIMS places. */
int tfl_broadcast_dims(tfl_op *x, uint32_t rank_a, const int64_t *a, uint32_t rank_b, const int64_t *b, uint32_t *rank,
                       int64_t *dims) {
  assert(rank && dims);
  *rank = rank_a > rank_b ? rank_a : rank_b;
  if (*rank > TFL_MOST_DIMS) return tfl_fail(x, "%u dimensions: at most %d work", *rank, TFL_MOST_DIMS);
  for (uint32_t d = 0; d < *rank; d++) {
    int64_t m = d + rank_a < *rank ? 1 : a[d + rank_a - *rank], n = d + rank_b < *rank ? 1 : b[d + rank_b - *rank];
    if (m != n && m != 1 && n != 1) return make_misfit(x, rank_a, a, rank_b, b);
    dims[d] = m == 1 ? n : m;
  }
  return 0;
}

/* Dimensions of size 1 that grow are dropped before: broadcast_in_dim may expand them, but what reads it is
 * simpler without. v's dimensions are the last ones of the result; each must be as large, or 1. */
ir_value tfl_broadcast(tfl_op *x, ir_value v, uint32_t rank, const int64_t *dims) {
  const ir_type *from = opt_type(v);
  int64_t kept[TFL_MOST_DIMS], map[TFL_MOST_DIMS];
  uint32_t n = 0;
  if (!from) return v;
  const ir_type *to = tfl_type(x, (base_dtype)from->dtype, rank, dims);
  if (!to || to == from) return to ? v : make_nothing();
  for (uint32_t d = 0; d < from->rank; d++) {
    if (from->rank > rank || (from->dims[d] != 1 && from->dims[d] != dims[d + rank - from->rank]))
      return make_misfit(x, from->rank, from->dims, rank, dims), make_nothing();
    if (from->dims[d] == 1 && dims[d + rank - from->rank] != 1) continue;
    kept[n] = from->dims[d];
    map[n++] = d + rank - from->rank;
  }
  return opt_broadcast_in_dim(x->rw, tfl_reshape(x, v, n, kept), to, map);
}

/* Both are without op after a failure. */
void tfl_broadcast_pair(tfl_op *x, ir_value *a, ir_value *b) {
  int64_t dims[TFL_MOST_DIMS];
  uint32_t rank = 0;
  if (!a->op || !b->op) return;
  const ir_type *s = opt_type(*a), *t = opt_type(*b);
  if (tfl_broadcast_dims(x, s->rank, s->dims, t->rank, t->dims, &rank, dims) != 0) {
    *a = *b = make_nothing();
    return;
  }
  *a = tfl_broadcast(x, *a, rank, dims);
  *b = tfl_broadcast(x, *b, rank, dims);
}

/* A list along dimension `dim` of `like`, the same everywhere else: biases, scales. */
ir_value tfl_along(tfl_op *x, ir_value v, ir_value like, uint32_t dim) {
  int64_t at = dim;
  if (!v.op || !like.op) return make_nothing();
  const ir_type *t = opt_type(like);
  if (opt_type(v)->rank != 1 || dim >= t->rank || opt_type(v)->dims[0] != t->dims[dim])
    return make_misfit(x, opt_type(v)->rank, opt_type(v)->dims, t->rank, t->dims), make_nothing();
  return opt_broadcast_in_dim(x->rw, v, opt_with_dtype(x->rw, t, (base_dtype)opt_type(v)->dtype), &at);
}

/* A scalar in every place of `like`. */
ir_value tfl_spread(tfl_op *x, ir_value scalar, ir_value like) {
  assert(!scalar.op || opt_type(scalar)->count == 1);
  if (!like.op) return make_nothing();
  return tfl_broadcast(x, scalar, opt_type(like)->rank, opt_type(like)->dims);
}

/* numpy's broadcasting, then the op of StableHLO, which has none. */
ir_value tfl_binary(tfl_op *x, ir_opcode opcode, ir_value a, ir_value b) {
  tfl_broadcast_pair(x, &a, &b);
  return opt_binary(x->rw, opcode, a, b);
}

ir_value tfl_with(tfl_op *x, ir_opcode opcode, ir_value a, double k) {
  return opt_binary(x->rw, opcode, a, tfl_like(x, a, k));
}

/* compare_type by the element type: FLOAT also for complex numbers, of which StableHLO allows EQ and NE. */
ir_value tfl_compare(tfl_op *x, ir_direction direction, ir_value a, ir_value b) {
  tfl_broadcast_pair(x, &a, &b);
  if (!a.op || !b.op) return make_nothing();
  base_dtype t = (base_dtype)opt_type(a)->dtype;
  bool is_float = base_dtype_is_float(t) || base_dtype_is_complex(t);
  return opt_compare(x->rw, direction,
                     is_float                  ? IR_COMPARISON_FLOAT
                     : base_dtype_is_signed(t) ? IR_COMPARISON_SIGNED
                                               : IR_COMPARISON_UNSIGNED,
                     a, b);
}

/* --- data --- */

/* 0, 1, 2, ... along dimension `dim`, the same along the others. */
ir_value tfl_iota(tfl_op *x, base_dtype dtype, uint32_t rank, const int64_t *dims, uint32_t dim) {
  assert(dim < rank);
  ir_value v = opt_make(x->rw, IR_OP_IOTA, tfl_type(x, dtype, rank, dims), 0, NULL);
  opt_set(x->rw, v, "iota_dimension", ir_m_i64(x->rw->m, dim));
  return v;
}

/* One dimension from `from` up to `to`, all of the others. */
ir_value tfl_slice(tfl_op *x, ir_value v, uint32_t dim, int64_t from, int64_t to) {
  int64_t starts[TFL_MOST_DIMS] = {0}, limits[TFL_MOST_DIMS], strides[TFL_MOST_DIMS];
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  assert(dim < t->rank && from >= 0 && from <= to && to <= t->dims[dim]);
  if (from == 0 && to == t->dims[dim]) return v;
  for (uint32_t d = 0; d < t->rank; d++) {
    limits[d] = t->dims[d];
    strides[d] = 1;
  }
  starts[dim] = from;
  limits[dim] = to;
  return opt_slice(x->rw, v, starts, limits, strides);
}

/* All parts must agree in every other dimension; one part is its own result. */
ir_value tfl_concat(tfl_op *x, uint32_t n, const ir_value *parts, uint32_t dim) {
  assert(!parts[0].op || dim < opt_type(parts[0])->rank || n == 1);
  int64_t dims[TFL_MOST_DIMS], size = 0;
  assert(n > 0);
  if (n == 1) return parts[0];
  for (uint32_t i = 0; i < n; i++) {
    if (!parts[i].op) return make_nothing();
    const ir_type *t = opt_type(parts[i]), *first = opt_type(parts[0]);
    for (uint32_t d = 0; d < first->rank; d++)
      if (t->rank != first->rank || (d != dim && t->dims[d] != first->dims[d]))
        return make_misfit(x, first->rank, first->dims, t->rank, t->dims), make_nothing();
    size += t->dims[dim];
  }
  const ir_type *t = opt_type(parts[0]);
  memcpy(dims, t->dims, t->rank * sizeof *dims);
  dims[dim] = size;
  return opt_concatenate(x->rw, n, parts, dim, tfl_type(x, (base_dtype)t->dtype, t->rank, dims));
}

/* permutation[d] is the dimension of v that becomes dimension d. Nothing is made where nothing moves. */
ir_value tfl_transpose(tfl_op *x, ir_value v, const int64_t *permutation) {
  bool moves = false;
  for (uint32_t d = 0; v.op && d < opt_type(v)->rank; d++) moves = moves || permutation[d] != d;
  return moves ? opt_transpose(x->rw, v, permutation) : v;
}

/* The order within these dimensions, each at most once. */
ir_value tfl_reverse(tfl_op *x, ir_value v, uint32_t n, const int64_t *dims) {
  assert(n == 0 || dims);
  if (n == 0) return v;
  ir_value r = opt_unary(x->rw, IR_OP_REVERSE, v);
  opt_set(x->rw, r, "dimensions", ir_m_i64s(x->rw->m, n, dims));
  return r;
}

/* Sizes are checked here, with overflow, since padding comes from attributes and inputs of the user's. `interior`
 * may be NULL. Negative paddings cut off; the scalar is what is put in. */
ir_value tfl_pad(tfl_op *x, ir_value v, ir_value scalar, const int64_t *low, const int64_t *high,
                 const int64_t *interior) {
  assert(low && high);
  static const int64_t none[TFL_MOST_DIMS] = {0};
  int64_t dims[TFL_MOST_DIMS];
  if (!v.op || !scalar.op) return make_nothing();
  const ir_type *t = opt_type(v);
  if (!interior) interior = none;
  for (uint32_t d = 0; d < t->rank; d++) {
    int64_t inside = 0;
    bool fits = t->dims[d] == 0 || base_mul_i64(t->dims[d] - 1, interior[d], &inside);
    fits = fits && base_add_i64(inside, t->dims[d], &inside) && base_add_i64(inside, low[d], &inside) &&
           base_add_i64(inside, high[d], &dims[d]);
    if (!fits || dims[d] < 0) {
      tfl_fail(x, "padding %lld and %lld of dimension %u, of size %lld, gives no valid size", (long long)low[d],
               (long long)high[d], d, (long long)t->dims[d]);
      return make_nothing();
    }
  }
  ir_value both[] = {v, scalar};
  ir_value p = opt_make(x->rw, IR_OP_PAD, tfl_type(x, (base_dtype)t->dtype, t->rank, dims), 2, both);
  opt_set(x->rw, p, "edge_padding_low", ir_m_i64s(x->rw->m, t->rank, low));
  opt_set(x->rw, p, "edge_padding_high", ir_m_i64s(x->rw->m, t->rank, high));
  opt_set(x->rw, p, "interior_padding", ir_m_i64s(x->rw->m, t->rank, interior));
  return p;
}

/* Over these dimensions, which go; init is the op's neutral element. */
ir_value tfl_reduce(tfl_op *x, ir_opcode opcode, ir_value v, double init, uint32_t n, const int64_t *dims) {
  assert(n == 0 || dims != NULL);
  if (!v.op) return v;
  return opt_reduce(x->rw, opcode, v, tfl_scalar(x, (base_dtype)opt_type(v)->dtype, init), n, dims);
}

/* Starts that are out of range are moved by the op itself, so that the slice fits. Sizes must be within v's;
 * starts are scalars of one integer type. */
ir_value tfl_dynamic_slice(tfl_op *x, ir_value v, const ir_value *starts, const int64_t *sizes) {
  assert(starts && sizes);
  ir_value all[TFL_MOST_DIMS + 1] = {v};
  if (!v.op) return v;
  const ir_type *t = opt_type(v);
  for (uint32_t d = 0; d < t->rank; d++) {
    assert(sizes[d] <= t->dims[d]);
    all[d + 1] = starts[d];
  }
  ir_value s =
      opt_make(x->rw, IR_OP_DYNAMIC_SLICE, tfl_type(x, (base_dtype)t->dtype, t->rank, sizes), t->rank + 1, all);
  opt_set(x->rw, s, "slice_sizes", ir_m_i64s(x->rw->m, t->rank, sizes));
  return s;
}

/* `part` has v's rank and is nowhere larger. Here too starts that are out of range are moved. */
ir_value tfl_dynamic_update(tfl_op *x, ir_value v, ir_value part, const ir_value *starts) {
  assert(starts);
  ir_value all[TFL_MOST_DIMS + 2] = {v, part};
  if (!v.op) return v;
  for (uint32_t d = 0; d < opt_type(v)->rank; d++) all[d + 2] = starts[d];
  return opt_make(x->rw, IR_OP_DYNAMIC_UPDATE_SLICE, opt_type(v), opt_type(v)->rank + 2, all);
}

/* Free dimensions: those of `t` that are in neither list, appended to dims. `rank`: how many dims has already;
 * gives how many it has then. */
static uint32_t make_free_dims(const ir_type *t, const int64_t *batch, uint32_t n_batch, const int64_t *contract,
                               uint32_t n_contract, int64_t *dims, uint32_t rank) {
  assert(dims && rank <= 2 * TFL_MOST_DIMS);
  for (uint32_t d = 0; d < t->rank; d++) {
    bool taken = false;
    for (uint32_t i = 0; i < n_batch; i++) taken = taken || batch[i] == d;
    for (uint32_t i = 0; i < n_contract; i++) taken = taken || contract[i] == d;
    if (!taken && rank < 2 * TFL_MOST_DIMS) dims[rank++] = t->dims[d];
  }
  return rank;
}

/* The result's dimensions: batch, a's free ones, b's free ones. Sizes of the pairs must agree; callers have
 * checked. dtype: of the sum, which may be wider than the elements. */
ir_value tfl_dot_general(tfl_op *x, ir_value a, ir_value b, const tfl_dot *d, base_dtype dtype) {
  assert(d->n_batch + d->n_contract <= TFL_MOST_DIMS);
  int64_t dims[2 * TFL_MOST_DIMS];
  uint32_t rank = 0;
  if (!a.op || !b.op) return make_nothing();
  const ir_type *s = opt_type(a), *t = opt_type(b);
  for (; rank < d->n_batch; rank++) dims[rank] = s->dims[d->a_batch[rank]];
  rank = make_free_dims(s, d->a_batch, d->n_batch, d->a_contract, d->n_contract, dims, rank);
  rank = make_free_dims(t, d->b_batch, d->n_batch, d->b_contract, d->n_contract, dims, rank);
  ir_value both[] = {a, b};
  ir_value v = opt_make(x->rw, IR_OP_DOT, tfl_type(x, dtype, rank, dims), 2, both);
  opt_set(x->rw, v, "dot_dimension_numbers",
          opt_dot_dims(x->rw, d->n_batch, d->a_batch, d->b_batch, d->n_contract, d->a_contract, d->b_contract));
  return v;
}

/* --- numbers --- */

/* PRED: false and true; integers: two's complement; floats: the infinities. The least or the greatest of a type,
 * for maxima and minima to begin with. */
static ir_value make_limit(tfl_op *x, base_dtype t, bool low) {
  const base_dtype_info *info = base_dtype_of(t);
  double infinity = low ? -__builtin_inf() : __builtin_inf();
  const ir_type *type = tfl_type(x, t, 0, NULL);
  if (t == XLAC_PRED) return opt_splat_int(x->rw, type, !low);
  if (base_dtype_is_signed(t)) {
    int64_t most = (int64_t)(UINT64_MAX >> (65 - info->bits));
    return opt_splat_int(x->rw, type, low ? -most - 1 : most);
  }
  if (base_dtype_is_unsigned(t)) return opt_splat_int(x->rw, type, low ? 0 : -1);
  return opt_splat(x->rw, type, infinity);
}

ir_value tfl_lowest(tfl_op *x, base_dtype dtype) {
  assert(dtype != BASE_DTYPE_INVALID);
  return make_limit(x, dtype, true);
}

ir_value tfl_highest(tfl_op *x, base_dtype dtype) {
  assert(dtype != BASE_DTYPE_INVALID);
  return make_limit(x, dtype, false);
}

/* TensorFlow's CPU kernels add half and bfloat16 in float. So sums are made in float and rounded once at the end. */
base_dtype tfl_sum_dtype(base_dtype dtype) {
  return base_dtype_is_float(dtype) && base_dtype_of(dtype)->bits < 32 ? XLAC_F32 : dtype;
}

/* A NULL region, after a failure, leaves the cursor where it is; tfl_leave works all the same. Ops are made at the
 * end of the region from now on, until tfl_leave puts the cursor back. */
tfl_cursor tfl_enter(tfl_op *x, ir_computation *region) {
  tfl_cursor back = {x->rw->into, x->rw->before};
  if (region) {
    x->rw->into = region;
    x->rw->before = NULL;
  }
  return back;
}

void tfl_leave(tfl_op *x, tfl_cursor back) {
  assert(x->rw);
  x->rw->into = back.into;
  x->rw->before = back.before;
}
