/* Dots and convolutions of stored integers. With l and r stored, and zero points zl and zr,
 *   sum (l - zl)(r - zr) = sum l r - zr sum l - zl sum r + n zl zr,
 * which is exact in 32 bits; it is scaled once, in floats, at the end. A convolution wants zr = 0, and edges of zl. */
#include "../../base/list.h"
#include "quant.h"

enum { MQP_MAX_TERMS = 33025 }; /* of products of 8-bit numbers that 32 bits hold: 2^31 / 255^2 */

/* One product: its operands' and result's quantisation, and which dimensions are summed, shared and kept. */
typedef struct mqp_run {
  opt_rewriter *rw;
  const ir_op *op;
  const ir_quant *lhs, *rhs, *result;
  const int64_t *lhs_batch, *rhs_batch, *lhs_sum,
      *rhs_sum; /* dimensions; rhs_sum: all but the features in a convolution */
  uint32_t n_batch, n_sum, n_rhs_sum;
  int64_t rhs_to[IR_MAX_RANK], lhs_to[IR_MAX_RANK]; /* the result's dimension that an operand's becomes, or -1 */
  ir_value shape;                                   /* of the sum, at run time */
} mqp_run;

/* Whether so many products fit; sizes that are not known are trusted. */
static bool mqp_sums_fit(const ir_type *t, const int64_t *dims, uint32_t n) {
  int64_t terms = 1;
  for (uint32_t i = 0; i < n; i++) {
    int64_t size = t->dims[dims[i]];
    if (size == IR_UNBOUNDED) continue;
    if (!base_mul_i64(terms, size, &terms) || terms > MQP_MAX_TERMS) return false;
  }
  return true;
}

/* 8 bits at most, expressed in f32: sums of products then fit 32 bits, and scale in f32. */
static bool mqp_is_byte(const ir_quant *q) {
  return base_dtype_of((base_dtype)q->storage)->bits <= 8 && q->expressed == XLAC_F32;
}

/* Storage of 4 bits is multiplied as 8: few machines have such products, and XLA:CPU fails on them. */
static base_dtype mqp_byte(const ir_quant *q) {
  return base_dtype_is_signed((base_dtype)q->storage) ? XLAC_S8 : XLAC_U8;
}

/* Scales for each feature only on the right side, and then without zero points. */
static bool mqp_types_fit(const mq_product *t) {
  const ir_quant *l = t->lhs->quant, *r = t->rhs->quant, *q = t->result->quant;
  if (!l || !r || !q || !ir_is_tensor(t->lhs) || !ir_is_tensor(t->rhs) || !ir_is_tensor(t->result)) return false;
  if (!mqp_is_byte(l) || !mqp_is_byte(r) || l->storage != r->storage || q->expressed != XLAC_F32) return false;
  if (l->axis != -1 || r->axis < -1 || q->axis < -1) return false;
  return r->axis < 0 || mq_is_centred(r);
}

/* Scales along one dimension of the result, or one for all. */
static bool mqp_axes_fit(const mqp_run *x) {
  int64_t axis = x->rhs->axis >= 0 ? x->rhs_to[x->rhs->axis] : -1;
  if (x->rhs->axis >= 0 && axis < 0) return false;
  if (x->rhs->axis < 0 || x->result->axis < 0) return true;
  return axis == x->result->axis && x->rhs->n == x->result->n;
}

/* --- dimensions --- */

/* The result of a dot_general: batch dimensions, the left side's others, the right side's others. */
static void mqp_dot_map(mqp_run *x, const ir_type *lhs, const ir_type *rhs) {
  int64_t next = x->n_batch;
  for (uint32_t d = 0; d < lhs->rank; d++) x->lhs_to[d] = base_list_has(x->lhs_sum, x->n_sum, d) ? -1 : 0;
  for (uint32_t d = 0; d < rhs->rank; d++) x->rhs_to[d] = base_list_has(x->rhs_sum, x->n_sum, d) ? -1 : 0;
  for (uint32_t d = 0; d < lhs->rank; d++)
    if (x->lhs_to[d] == 0 && !base_list_has(x->lhs_batch, x->n_batch, d)) x->lhs_to[d] = next++;
  for (uint32_t d = 0; d < rhs->rank; d++)
    if (x->rhs_to[d] == 0 && !base_list_has(x->rhs_batch, x->n_batch, d)) x->rhs_to[d] = next++;
  for (uint32_t i = 0; i < x->n_batch; i++) x->lhs_to[x->lhs_batch[i]] = x->rhs_to[x->rhs_batch[i]] = i;
}

/* A list of dimension numbers, in scratch memory. */
static const int64_t *mqp_field(const mqp_run *x, const ir_mattr *a, const char *key, uint32_t *n) {
  return ir_m_ints(ir_m_field(a, key), &x->rw->arena, n);
}

/* An explicit algorithm asks for another accumulation. */
static bool mqp_dot_dims(mqp_run *x, const mq_product *t) {
  const ir_mattr *a = ir_mattr_of(x->op, "dot_dimension_numbers");
  if (ir_mattr_of(x->op, "algorithm")) return false;
  if (x->op->opcode == IR_OP_STABLEHLO_DOT) {
    int64_t *sum = BASE_ARRAY(&x->rw->arena, int64_t, 2);
    if (!sum) return x->rw->failed = true, false;
    sum[0] = t->lhs->rank - 1;
    sum[1] = 0;
    x->lhs_sum = sum;
    x->rhs_sum = sum + 1;
    x->n_sum = x->n_rhs_sum = 1;
  } else {
    x->lhs_batch = mqp_field(x, a, "lhs_batching_dimensions", &x->n_batch);
    x->rhs_batch = mqp_field(x, a, "rhs_batching_dimensions", &x->n_batch);
    x->lhs_sum = mqp_field(x, a, "lhs_contracting_dimensions", &x->n_sum);
    x->rhs_sum = mqp_field(x, a, "rhs_contracting_dimensions", &x->n_rhs_sum);
  }
  mqp_dot_map(x, t->lhs, t->rhs);
  return mqp_sums_fit(t->lhs, x->lhs_sum, x->n_sum) && mqp_sums_fit(t->rhs, x->rhs_sum, x->n_sum);
}

/* One of a convolution's dimension numbers. */
static int64_t mqp_number(const mqp_run *x, const char *key) {
  const ir_mattr *a = ir_m_field(ir_mattr_of(x->op, "dimension_numbers"), key);
  return a && a->kind == IR_M_INTEGER ? a->v.i : 0;
}

/* Everything but output features is summed over. */
static bool mqp_convolution_dims(mqp_run *x, const mq_product *t) {
  assert(t->rhs->rank <= IR_MAX_RANK);
  int64_t feature = mqp_number(x, "kernel_output_feature_dimension");
  int64_t *sum = BASE_ARRAY(&x->rw->arena, int64_t, (size_t)t->rhs->rank + 1);
  if (!sum) return x->rw->failed = true, false;
  for (uint32_t d = 0; d < t->rhs->rank; d++) {
    x->rhs_to[d] = -1;
    if (d != feature) sum[x->n_rhs_sum++] = d;
  }
  x->rhs_to[feature] = mqp_number(x, "output_feature_dimension");
  x->rhs_sum = sum;
  return mq_is_centred(x->rhs) && mqp_sums_fit(t->rhs, sum, x->n_rhs_sum);
}

/* --- what zero points add --- */

/* A dynamic size, i32. */
static ir_value mqp_size(mqp_run *x, ir_value v, uint32_t d) {
  const ir_type *scalar = opt_tensor(x->rw, XLAC_S32, 0, NULL);
  ir_value size = opt_make(x->rw, IR_OP_GET_DIMENSION_SIZE, scalar, 1, &v);
  opt_set(x->rw, size, "dimension", ir_m_i64(x->rw->m, d));
  return size;
}

/* The shape of v as a tensor. */
static ir_value mqp_shape(mqp_run *x, ir_value v) {
  const ir_type *type = opt_type(v), *one = opt_tensor(x->rw, XLAC_S64, 1, &(int64_t){1});
  const ir_type *whole = type ? opt_tensor(x->rw, XLAC_S64, 1, &(int64_t){type->rank}) : NULL;
  ir_value parts[IR_MAX_RANK];
  if (x->shape.op || !type) return x->shape;
  for (uint32_t d = 0; d < type->rank; d++)
    parts[d] = ir_dim_is_dynamic(type, d) ? opt_reshape(x->rw, opt_convert(x->rw, mqp_size(x, v, d), XLAC_S64), one)
                                          : opt_i64s(x->rw, 1, &type->dims[d]);
  return x->shape = opt_concatenate(x->rw, type->rank, parts, 0, whole);
}

/* `a` in the shape of `like`; its dimension i is `dims[i]` of that. */
static ir_value mqp_spread(mqp_run *x, ir_value a, ir_value like, uint32_t n, const int64_t *dims) {
  const ir_type *type = opt_type(like);
  if (!type || !type->has_dynamic) return opt_broadcast_in_dim(x->rw, a, type, dims);
  ir_value both[] = {a, mqp_shape(x, like)};
  ir_value v = opt_make(x->rw, IR_OP_DYNAMIC_BROADCAST_IN_DIM, type, 2, both);
  opt_set(x->rw, v, "broadcast_dimensions", ir_m_i64s(x->rw->m, n, dims));
  return v;
}

/* zero * the sums of an operand, in the shape of the whole sum.
 * The operand's summed dimensions are reduced, the rest is spread along the result's dimensions. */
static ir_value mqp_sums(mqp_run *x, ir_value operand, uint32_t n_sum, const int64_t *sum, const int64_t *to,
                         double zero, ir_value like) {
  assert(zero != 0);
  const ir_type *type = opt_type(operand);
  int64_t sorted[IR_MAX_RANK], dims[IR_MAX_RANK];
  uint32_t n = 0, kept = 0;
  for (uint32_t d = 0; type && d < type->rank; d++) {
    if (base_list_has(sum, n_sum, d))
      sorted[n++] = d;
    else
      dims[kept++] = to[d];
  }
  ir_value v = opt_convert(x->rw, operand, XLAC_S32);
  ir_value nothing = opt_splat_int(x->rw, opt_tensor(x->rw, XLAC_S32, 0, NULL), 0);
  v = opt_reduce(x->rw, IR_OP_ADD, v, nothing, n, sorted);
  v = mq_apply(x->rw, IR_OP_MULTIPLY, v, -1, 1, &zero);
  return mqp_spread(x, v, like, kept, dims);
}

/* n zl zr, where n is a product of sizes. */
static ir_value mqp_terms(mqp_run *x, ir_value rhs, double zeros, ir_value like) {
  const ir_type *type = opt_type(rhs);
  ir_value v = {NULL, 0};
  for (uint32_t i = 0; type && i < x->n_sum; i++) {
    uint32_t d = (uint32_t)x->rhs_sum[i];
    if (!ir_dim_is_dynamic(type, d)) {
      zeros *= (double)type->dims[d];
      continue;
    }
    ir_value size = mqp_size(x, rhs, d);
    v = v.op ? opt_binary(x->rw, IR_OP_MULTIPLY, v, size) : size;
  }
  bool fixed = !v.op;
  if (fixed && opt_type(like) && !opt_type(like)->has_dynamic)
    return opt_splat_int(x->rw, opt_type(like), (int64_t)zeros);
  if (fixed)
    v = opt_splat_int(x->rw, opt_tensor(x->rw, XLAC_S32, 0, NULL), (int64_t)zeros);
  else
    v = mq_apply(x->rw, IR_OP_MULTIPLY, v, -1, 1, &zeros);
  return mqp_spread(x, v, like, 0, NULL);
}

/* Terms of zero points that are 0 are left out; two non-zero ones need the correction n zl zr. */
static ir_value mqp_centre(mqp_run *x, ir_value lhs, ir_value rhs, ir_value whole) {
  double zl = (double)x->lhs->zero_points[0], zr = x->rhs->axis < 0 ? (double)x->rhs->zero_points[0] : 0;
  ir_value v = whole;
  if (zr != 0) v = opt_binary(x->rw, IR_OP_SUBTRACT, v, mqp_sums(x, lhs, x->n_sum, x->lhs_sum, x->lhs_to, zr, whole));
  if (zl != 0)
    v = opt_binary(x->rw, IR_OP_SUBTRACT, v, mqp_sums(x, rhs, x->n_rhs_sum, x->rhs_sum, x->rhs_to, zl, whole));
  if (zl == 0 || zr == 0) return v;
  return opt_binary(x->rw, IR_OP_ADD, v, mqp_terms(x, rhs, zl * zr, whole));
}

/* --- a convolution's edges --- */

/* Padding of the left side written out: the convolution's own padding is 0, which is not the zero point. */
typedef struct mqp_edges {
  int64_t low[IR_MAX_RANK], high[IR_MAX_RANK], interior[IR_MAX_RANK];
  const ir_type *type; /* of lhs with its edges; NULL: there are none */
  bool fits;
} mqp_edges;

/* size + low + high + interior gaps; false: it overflows or is negative. */
static bool mqp_padded_size(int64_t size, int64_t low, int64_t high, int64_t interior, int64_t *out) {
  int64_t gaps = 0;
  if (size == IR_UNBOUNDED) return *out = size, true;
  return base_mul_i64(size > 0 ? size - 1 : 0, interior, &gaps) && base_add_i64(size, gaps, out) &&
         base_add_i64(*out, low, out) && base_add_i64(*out, high, out) && *out >= 0;
}

/* What padding and dilation make of lhs. */
static mqp_edges mqp_find_edges(mqp_run *x, const ir_type *lhs) {
  mqp_edges e = {.fits = true};
  uint32_t n = 0, n_padding = 0, n_dilation = 0;
  const int64_t *spatial = mqp_field(x, ir_mattr_of(x->op, "dimension_numbers"), "input_spatial_dimensions", &n);
  const int64_t *padding = ir_m_ints(ir_mattr_of(x->op, "padding"), &x->rw->arena, &n_padding);
  const int64_t *dilation = ir_m_ints(ir_mattr_of(x->op, "lhs_dilation"), &x->rw->arena, &n_dilation);
  int64_t dims[IR_MAX_RANK];
  bool any = false;
  memcpy(dims, lhs->dims, lhs->rank * sizeof *dims);
  for (uint32_t i = 0; i < n; i++) {
    int64_t d = spatial[i];
    if (2 * i + 1 < n_padding) e.low[d] = padding[2 * i], e.high[d] = padding[2 * i + 1];
    if (i < n_dilation) e.interior[d] = dilation[i] - 1;
    any = any || e.low[d] || e.high[d] || e.interior[d];
    e.fits = e.fits && mqp_padded_size(lhs->dims[d], e.low[d], e.high[d], e.interior[d], &dims[d]);
  }
  if (!any || !e.fits) return e;
  e.type = ir_tensor_mlir(x->rw->m, mqp_byte(x->lhs), NULL, NULL, lhs->rank, dims, lhs->dynamic, lhs->encoding, NULL);
  e.fits = e.type != NULL;
  return e;
}

/* Padded with the zero point. */
static ir_value mqp_pad(mqp_run *x, ir_value lhs, const mqp_edges *e) {
  const ir_type *scalar = opt_tensor(x->rw, mqp_byte(x->lhs), 0, NULL);
  ir_value both[] = {lhs, opt_splat_int(x->rw, scalar, x->lhs->zero_points[0])};
  ir_value v = opt_make(x->rw, IR_OP_PAD, e->type, 2, both);
  opt_set(x->rw, v, "edge_padding_low", ir_m_i64s(x->rw->m, e->type->rank, e->low));
  opt_set(x->rw, v, "edge_padding_high", ir_m_i64s(x->rw->m, e->type->rank, e->high));
  opt_set(x->rw, v, "interior_padding", ir_m_i64s(x->rw->m, e->type->rank, e->interior));
  return v;
}

/* The convolution afterwards has no padding and no dilation of its left side. */
static void mqp_without_edges(mqp_run *x, ir_value v, uint32_t rank) {
  int64_t dims[2] = {(int64_t)rank - 2, 2}, none[2 * IR_MAX_RANK] = {0};
  opt_set(x->rw, v, "padding", ir_m_dense_i64(x->rw->m, 2, dims, none));
  if (v.op && ir_mattr_of(v.op, "lhs_dilation")) x->rw->failed |= !ir_m_set(v.op, "lhs_dilation", NULL);
}

/* --- the op --- */

/* stablehlo.dot is a dot_general of what its operands' ranks say. */
static void mqp_general(mqp_run *x, ir_value v) {
  opt_rewriter *rw = x->rw;
  const ir_mattr *lhs = ir_m_i64s(rw->m, 1, x->lhs_sum), *rhs = ir_m_i64s(rw->m, 1, x->rhs_sum);
  const ir_mentry fields[] = {{ir_intern(rw->m, "lhs_contracting_dimensions", 26), lhs},
                              {ir_intern(rw->m, "rhs_contracting_dimensions", 26), rhs}};
  bool ok = lhs && rhs && fields[0].key && fields[1].key;
  opt_set(rw, v, "dot_dimension_numbers", ok ? ir_m_struct(rw->m, "stablehlo", "dot", 2, fields) : NULL);
}

/* On i8 with an i32 result; attributes are those of the op. */
static ir_value mqp_product(mqp_run *x, ir_value lhs, ir_value rhs, const ir_type *type) {
  bool plain = x->op->opcode == IR_OP_STABLEHLO_DOT;
  ir_value both[] = {lhs, rhs};
  ir_value v = opt_make(x->rw, plain ? IR_OP_DOT : (ir_opcode)x->op->opcode, type, 2, both);
  if (v.op) ir_set_mlir(v.op, x->op->mlir);
  if (plain) mqp_general(x, v);
  return v;
}

/* (sum * scales) + zero points. */
static ir_value mqp_scaled(mqp_run *x, ir_value v) {
  const ir_quant *l = x->lhs, *r = x->rhs, *q = x->result, *longer = r->axis >= 0 ? r : q;
  double *ratios = BASE_ARRAY(&x->rw->arena, double, (size_t)longer->n + 1);
  if (!ratios) return x->rw->failed = true, v;
  int32_t axis = r->axis >= 0 ? (int32_t)x->rhs_to[r->axis] : q->axis;
  for (uint32_t i = 0; i < longer->n; i++)
    ratios[i] = l->scales[0] * r->scales[r->axis >= 0 ? i : 0] / q->scales[q->axis >= 0 ? i : 0];
  bool same = mq_is_centred(q) && base_dtype_of((base_dtype)q->storage)->bits == 32;
  for (uint32_t i = 0; i < longer->n; i++) same = same && ratios[i] == 1;
  if (same && q->storage == XLAC_S32 && !q->has_range) return v;
  v = opt_convert(x->rw, v, XLAC_F32);
  v = mq_apply(x->rw, IR_OP_MULTIPLY, v, axis, longer->n, ratios);
  v = mq_apply(x->rw, IR_OP_ADD, v, q->axis, q->n, mq_zero_points(x->rw, q));
  return mq_store(x->rw, q, v);
}

/* 4-bit storage as 8-bit. */
static ir_value mqp_bytes(opt_rewriter *rw, ir_value v, const ir_quant *q) {
  return q->storage == mqp_byte(q) ? v : opt_convert(rw, v, mqp_byte(q));
}

/* The order of checks: types, dimensions, then whether edges can be written out. */
ir_value mq_multiply(opt_rewriter *rw, const ir_op *op, const mq_product *t) {
  ir_value none = {NULL, 0};
  mqp_edges edges = {.fits = true};
  if (!mqp_types_fit(t)) return none;
  mqp_run x = {.rw = rw, .op = op, .lhs = t->lhs->quant, .rhs = t->rhs->quant, .result = t->result->quant};
  bool convolution = op->opcode == IR_OP_CONVOLUTION, centred = mq_is_centred(x.lhs);
  assert(op->n_operands == 2);
  bool fits = convolution ? mqp_convolution_dims(&x, t) : mqp_dot_dims(&x, t);
  if (!fits || rw->failed || !mqp_axes_fit(&x)) return none;
  if (convolution && !centred) edges = mqp_find_edges(&x, t->lhs);
  const ir_type *type = opt_with_dtype(rw, t->result, XLAC_S32);
  if (!edges.fits || !type) return rw->failed = rw->failed || !type, none;
  ir_value lhs = mqp_bytes(rw, opt_operand(op, 0), x.lhs), rhs = mqp_bytes(rw, opt_operand(op, 1), x.rhs);
  ir_value v = mqp_product(&x, edges.type ? mqp_pad(&x, lhs, &edges) : lhs, rhs, type);
  if (edges.type) mqp_without_edges(&x, v, t->lhs->rank);
  return mqp_scaled(&x, mqp_centre(&x, lhs, rhs, v));
}
