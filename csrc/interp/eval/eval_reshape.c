/* Ops that see the same elements under other dimensions: bitcast, reshape, dynamic-reshape, and the sizes of dynamic
 * dimensions. */
#include "../../ir/check/check.h"
#include "../algorithm/arrays.h"
#include "../blocks.h"

/* v as it would be with every dimension d at dims[d]: cut, or zeros behind what is there. */
static interp_value *array_resized(interp_ctx *ctx, const interp_value *v, const int64_t *dims) {
  int64_t box[IR_MAX_RANK], to[IR_MAX_RANK], from[IR_MAX_RANK];
  interp_value *r = interp_array(ctx, v->dtype, v->rank, dims);
  if (!r) return NULL;
  for (uint32_t d = 0; d < v->rank; d++) box[d] = interp_min(dims[d], v->dims[d]);
  interp_strides(v->rank, dims, to);
  interp_strides(v->rank, v->dims, from);
  if (interp_zero_bytes(ctx, r->data, interp_bytes(r)) == 0 &&
      interp_strided_copy(ctx, base_dtype_bytes(v->dtype), v->rank, box, r->data, to, v->data, from) == 0)
    return r;
  interp_release(r);
  return NULL;
}

/* The actual sizes of a reshape of `x`, whose sizes are below its type's bounds. Dimensions are matched group by group:
 * the shortest runs of operand and result dimensions with equal products of bounds. In a group the elements that are
 * there must fit one dynamic dimension of the result. False where they do not. */
static bool reshape_dynamic_dims(const ir_type *from, const interp_value *x, const ir_type *to, int64_t *dims) {
  uint32_t i = 0, j = 0;
  while (i < from->rank || j < to->rank) {
    int64_t bound_in = 1, bound_out = 1, actual = 1, fixed = 1;
    uint32_t j0 = j, dynamic = UINT32_MAX;
    do {
      bool in = i < from->rank && (bound_in <= bound_out || j == to->rank);
      if (in) {
        bound_in *= from->dims[i];
        actual *= x->dims[i++];
      } else {
        bound_out *= to->dims[j++];
      }
    } while (bound_in != bound_out && (i < from->rank || j < to->rank));
    if (bound_in != bound_out) return false;
    for (uint32_t d = j0; d < j; d++) {
      dims[d] = to->dims[d];
      if (ir_dim_is_dynamic(to, d) && dynamic == UINT32_MAX)
        dynamic = d;
      else
        fixed *= dims[d];
    }
    if (actual == bound_out) continue;
    if (dynamic == UINT32_MAX || fixed == 0 || actual % fixed != 0) return false;
    dims[dynamic] = actual / fixed;
  }
  return true;
}

/* Where one size of the result is not known at all, the others and the count give it. */
static int reshape_unbounded(interp_ctx *ctx, const ir_op *op, interp_value *x, uint32_t unknown, interp_value **out) {
  int64_t dims[IR_MAX_RANK], known = 1;
  bool fits = true;
  for (uint32_t d = 0; d < op->type->rank; d++) {
    dims[d] = op->type->dims[d];
    if (d != unknown) fits = fits && dims[d] > 0 && base_mul_i64(known, dims[d], &known);
  }
  if (!fits || x->count % known != 0)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld elements can't take the result's dimensions", (long long)x->count);
  dims[unknown] = x->count / known;
  *out = interp_view(ctx, x, x->dtype, op->type->rank, dims);
  return *out ? 0 : interp_failed(ctx);
}

/* A view where the counts agree, which is the case in all static programs. */
int interp_eval_reshape(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_value *x = operands[0];
  const ir_type *to = op->type;
  int64_t dims[IR_MAX_RANK];
  for (uint32_t d = 0; d < to->rank; d++)
    if (to->dims[d] == IR_UNBOUNDED) return reshape_unbounded(ctx, op, x, d, out);
  if (x->count == to->count) {
    *out = interp_view(ctx, x, x->dtype, to->rank, to->dims);
    return *out ? 0 : interp_failed(ctx);
  }
  if (ir_is_unbounded(ir_operand_type(op, 0)))
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld elements can't take the dimensions of %s, which has %lld",
                       (long long)x->count, IR_SHOW(to), (long long)to->count);
  if (reshape_dynamic_dims(ir_operand_type(op, 0), x, to, dims) && interp_count(to->rank, dims) == x->count) {
    *out = interp_view(ctx, x, x->dtype, to->rank, dims);
    return *out ? 0 : interp_failed(ctx);
  }
  /* The result has no dynamic dimension to take the difference: it shows the whole bound, zeros where nothing is. */
  interp_value *whole = array_resized(ctx, x, ir_operand_type(op, 0)->dims), *r = NULL;
  if (!whole) return interp_failed(ctx);
  int status = 0;
  if (whole->count != to->count)
    status = interp_fail(ctx, op, XLAC_E_EVAL, "%lld elements can't take the result's dimensions", (long long)x->count);
  else if (!(r = interp_view(ctx, whole, x->dtype, to->rank, to->dims)))
    status = interp_failed(ctx);
  interp_release(whole);
  return interp_deliver(status, r, out);
}

/* XLA's op: the sizes are scalars, one operand each, below the type's bounds. */
int interp_eval_dynamic_reshape(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_value *x = operands[0];
  int64_t dims[IR_MAX_RANK], count = 1;
  assert(op->n_operands == op->type->rank + 1);
  for (uint32_t d = 0; d < op->type->rank; d++) {
    dims[d] = interp_element_index(operands[d + 1], 0);
    if (dims[d] < 0 || dims[d] > op->type->dims[d])
      return interp_fail(ctx, op, XLAC_E_EVAL, "size %lld of dimension %u is not within 0 and its bound %lld",
                         (long long)dims[d], d, (long long)op->type->dims[d]);
    count *= dims[d]; /* at most the type's count */
  }
  if (count != x->count)
    return interp_fail(ctx, op, XLAC_E_EVAL, "the sizes ask for %lld elements, the operand has %lld", (long long)count,
                       (long long)x->count);
  *out = interp_view(ctx, x, x->dtype, op->type->rank, dims);
  return *out ? 0 : interp_failed(ctx);
}

/* The one that the attribute names. */
static uint32_t the_dimension(const ir_op *op, const interp_value *x) {
  const ir_ints *list = ir_get_ints(op, IR_ATTR_DIMENSIONS);
  assert(list->n == 1 && list->v[0] >= 0 && list->v[0] < x->rank);
  (void)x;
  return (uint32_t)list->v[0];
}

/* The present size, not the bound. */
int interp_eval_get_dimension_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  interp_value *r = interp_array(ctx, op->type->dtype, 0, NULL);
  if (!r) return interp_failed(ctx);
  base_store_i64(r->dtype, r->data, operands[0]->dims[the_dimension(op, operands[0])]);
  *out = r;
  return 0;
}

/* Cuts, or shows zeros where nothing was. */
int interp_eval_set_dimension_size(interp_ctx *ctx, const ir_op *op, interp_value *const *operands,
                                   interp_value **out) {
  interp_value *x = operands[0];
  uint32_t d = the_dimension(op, x);
  int64_t dims[IR_MAX_RANK], size = interp_element_index(operands[1], 0), bound = op->type->dims[d];
  if (bound == IR_UNBOUNDED) bound = x->dims[d];
  if (size < 0 || size > bound)
    return interp_fail(ctx, op, XLAC_E_EVAL, "size %lld of dimension %u is not within 0 and its bound %lld",
                       (long long)size, d, (long long)bound);
  memcpy(dims, x->dims, x->rank * sizeof *dims);
  if (!ir_dim_is_dynamic(op->type, d)) size = bound;
  dims[d] = size;
  *out = size == x->dims[d] ? interp_retain(x) : array_resized(ctx, x, dims);
  return *out ? 0 : interp_failed(ctx);
}

/* Strides, by logical dimension, of an array of `dims` stored densely in the type's layout. */
static void layout_strides(const ir_type *t, const int64_t *dims, int64_t *strides) {
  int64_t stride = 1;
  if (!t->layout || t->layout->rank != t->rank) {
    interp_strides(t->rank, dims, strides);
    return;
  }
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t d = t->layout->minor_to_major[i];
    assert(d >= 0 && d < t->rank);
    strides[d] = stride;
    stride *= dims[d] > 0 ? dims[d] : 1;
  }
}

/* Bits one element takes in memory: narrow types are packed only where the layout says so, as E(bits). */
static int64_t stored_bits(const ir_type *t) {
  if (t->layout && t->layout->element_bits > 0) return t->layout->element_bits;
  return (int64_t)base_dtype_bytes(t->dtype) * 8;
}

/* The value of a narrow type from its low bits, kept as a byte: sign-extended where signed. */
static uint8_t narrow_value(const base_dtype_info *f, unsigned bits) {
  if (f->kind == BASE_KIND_PRED) return bits != 0;
  bits &= (1u << f->bits) - 1;
  if (f->kind == BASE_KIND_SINT && bits >> (f->bits - 1)) bits |= ~0u << f->bits;
  return (uint8_t)bits;
}

typedef struct bitcast_job {
  const ir_type *type;
  uint8_t *out;
  const uint8_t *in;
} bitcast_job;

/* Dense bytes, narrow elements packed lowest bits first as the types' layouts say, into elements. */
static void bitcast_unpack(void *ctx, int64_t begin, int64_t end) {
  const bitcast_job *j = ctx;
  const base_dtype_info *f = base_dtype_of(j->type->dtype);
  int64_t bits = stored_bits(j->type);
  for (int64_t i = begin; i < end; i++)
    j->out[i] = narrow_value(f, bits >= 8 ? j->in[i] : (unsigned)j->in[i * bits / 8] >> (i * bits % 8));
}

/* Blocks begin at whole bytes. */
static void bitcast_pack(void *ctx, int64_t begin, int64_t end) {
  const bitcast_job *j = ctx;
  int64_t bits = stored_bits(j->type), first = begin * bits / 8;
  assert(bits < 8 && begin * bits % 8 == 0);
  memset(j->out + first, 0, (size_t)((end * bits + 7) / 8 - first));
  for (int64_t i = begin; i < end; i++)
    j->out[i * bits / 8] |= (uint8_t)((j->in[i] & ((1u << bits) - 1)) << (i * bits % 8));
}

/* The operand's bytes in the order of its layout. */
static int bitcast_store(interp_ctx *ctx, const ir_type *from, const interp_value *x, uint8_t *stored,
                         uint8_t *scratch) {
  int64_t own[IR_MAX_RANK], physical[IR_MAX_RANK];
  bool packed = stored_bits(from) < 8;
  layout_strides(from, x->dims, physical);
  interp_strides(x->rank, x->dims, own);
  TRY(interp_strided_copy(ctx, base_dtype_bytes(x->dtype), x->rank, x->dims, packed ? scratch : stored, physical,
                          x->data, own));
  return packed ? interp_in_blocks(ctx, x->count, bitcast_pack, &(bitcast_job){from, stored, scratch}) : 0;
}

/* Elements out of the stored bytes, in the result's layout. */
static int bitcast_load(interp_ctx *ctx, const ir_type *to, interp_value *r, const uint8_t *stored, uint8_t *scratch) {
  int64_t own[IR_MAX_RANK], physical[IR_MAX_RANK];
  if (base_dtype_of(to->dtype)->bits < 8) {
    TRY(interp_in_blocks(ctx, r->count, bitcast_unpack, &(bitcast_job){to, scratch, stored}));
    stored = scratch;
  }
  layout_strides(to, r->dims, physical);
  interp_strides(r->rank, r->dims, own);
  return interp_strided_copy(ctx, base_dtype_bytes(r->dtype), r->rank, r->dims, r->data, own, stored, physical);
}

/* Through the bytes that XLA would have in memory: the operand stored in its layout, read in the result's. */
static int bitcast_copy(interp_ctx *ctx, const ir_op *op, const interp_value *x, interp_value *r) {
  assert(x->count > 0 && r->count > 0);
  const ir_type *from = ir_operand_type(op, 0);
  int64_t bits = x->count * stored_bits(from);
  if (bits != r->count * stored_bits(op->type) && (bits + 7) / 8 != (r->count * stored_bits(op->type) + 7) / 8)
    return interp_fail(ctx, op, XLAC_E_EVAL, "%lld bits can't be seen as %lld", (long long)bits,
                       (long long)(r->count * stored_bits(op->type)));
  int64_t room = (int64_t)interp_bytes(x) + (int64_t)interp_bytes(r) + 1;
  uint8_t *scratch = interp_scratch(ctx, room, 2);
  if (!scratch) return interp_failed(ctx);
  int status = bitcast_store(ctx, from, x, scratch, scratch + room);
  if (status == 0) status = bitcast_load(ctx, op->type, r, scratch, scratch + room);
  interp_scratch_free(ctx, scratch);
  return status;
}

/* Layouts differ in dimensions of size 1 without meaning anything. */
static bool is_row_major(const ir_type *t) {
  int64_t strides[IR_MAX_RANK], plain[IR_MAX_RANK];
  layout_strides(t, t->dims, strides);
  interp_strides(t->rank, t->dims, plain);
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] > 1 && strides[d] != plain[d]) return false;
  return true;
}

/* f32[2,3]{1,0} to f32[6] is a view; layouts that differ move elements. */
int interp_eval_bitcast(interp_ctx *ctx, const ir_op *op, interp_value *const *operands, interp_value **out) {
  interp_value *x = operands[0];
  if (!ir_is_tensor(op->type) || x->kind != INTERP_ARRAY) { /* tuples and buffers of the same shape */
    *out = interp_retain(x);
    return 0;
  }
  const ir_type *from = ir_operand_type(op, 0);
  if (x->dtype == op->type->dtype && x->count == op->type->count && is_row_major(from) && is_row_major(op->type)) {
    *out = interp_view(ctx, x, x->dtype, op->type->rank, op->type->dims);
    return *out ? 0 : interp_failed(ctx);
  }
  interp_value *r = interp_array_for(ctx, op);
  if (!r) return interp_failed(ctx);
  return interp_deliver(r->count == 0 || x->count == 0 ? 0 : bitcast_copy(ctx, op, x, r), r, out);
}
