/* Ops that find places by indices: gather, pad, dynamic-update-slice. A thread for each element, which takes its number
 * apart into indices. */
#include <stdio.h>

#include "routine.h"

/* Reads a place of type t, clamped to 0..last: "place_signed(((const int32_t *)in1)[at], last)". */
static void cu_index_put_place(cuda_routine *r, uint32_t buffer, base_dtype t, const char *at, int64_t last) {
  const char *place = base_dtype_is_signed(t) ? "place_signed" : "place_unsigned";
  cuda_print_needs(&r->print, place);
  base_putf(r->print.out, "%s(((const %s *)in%u)[%s], %lldll)", place, cuda_type(t), (unsigned)buffer, at,
            (long long)last);
}

/* --- gather --- */

/* What the attributes say of each dimension. */
typedef struct cu_index_gather {
  const ir_type *operand, *indices, *result;
  const ir_ints *offset, *collapsed, *map, *batching, *start_batching, *sizes;
  uint32_t vector;                 /* the indices' dimension that has the parts of an index */
  uint32_t batch_dim[IR_MAX_RANK]; /* by dimension of the indices: the result's */
} cu_index_gather;

static void cu_index_gather_make(const ir_op *op, cu_index_gather *x) {
  uint32_t used = 0;
  const ir_attr *vector = ir_attr_find(op, IR_ATTR_INDEX_VECTOR_DIM);
  *x = (cu_index_gather){.operand = ir_operand_type(op, 0),
                         .indices = ir_operand_type(op, 1),
                         .result = op->type,
                         .offset = ir_get_ints(op, IR_ATTR_OFFSET_DIMS),
                         .collapsed = ir_get_ints(op, IR_ATTR_COLLAPSED_SLICE_DIMS),
                         .map = ir_get_ints(op, IR_ATTR_START_INDEX_MAP),
                         .batching = ir_get_ints(op, IR_ATTR_OPERAND_BATCHING_DIMS),
                         .start_batching = ir_get_ints(op, IR_ATTR_START_INDICES_BATCHING_DIMS),
                         .sizes = ir_get_ints(op, IR_ATTR_SLICE_SIZES)};
  x->vector = vector ? (uint32_t)vector->v.i : x->indices->rank;
  for (uint32_t d = 0; d < x->indices->rank; d++) {
    if (d == x->vector) continue;
    while (used < x->result->rank && ir_ints_has(x->offset, used)) used++;
    x->batch_dim[d] = used++;
  }
}

/* "const idx first = ...;": where the index of this element lies in the indices. */
static void cu_index_put_first(cuda_routine *r, const cu_index_gather *x) {
  int64_t strides[IR_MAX_RANK];
  cuda_routine_strides(x->indices, strides);
  BASE_PUT(r->print.out, "  const idx first = 0");
  for (uint32_t d = 0; d < x->indices->rank; d++)
    if (d != x->vector) base_putf(r->print.out, " + o%u * %lld", (unsigned)x->batch_dim[d], (long long)strides[d]);
  BASE_PUT(r->print.out, ";\n");
}

/* " + place * stride" of the operand's dimension d. */
static void cu_index_put_dim(cuda_routine *r, const cu_index_gather *x, uint32_t d, int64_t stride, uint32_t *offset) {
  int64_t own[IR_MAX_RANK];
  char at[64];
  cuda_routine_strides(x->indices, own);
  int64_t entry = ir_ints_at(x->map, d), batch = ir_ints_at(x->batching, d);
  if (entry >= 0) {
    int64_t step = x->vector < x->indices->rank ? own[x->vector] : 0;
    snprintf(at, sizeof at, "first + %lld", (long long)entry * (long long)step);
    BASE_PUT(r->print.out, " + (idx)");
    cu_index_put_place(r, 1, (base_dtype)x->indices->dtype, at, x->operand->dims[d] - x->sizes->v[d]);
    base_putf(r->print.out, " * %lld", (long long)stride);
  }
  if (batch >= 0)
    base_putf(r->print.out, " + o%u * %lld", (unsigned)x->batch_dim[x->start_batching->v[batch]], (long long)stride);
  else if (!ir_ints_has(x->collapsed, d))
    base_putf(r->print.out, " + o%u * %lld", (unsigned)x->offset->v[(*offset)++], (long long)stride);
}

bool cuda_print_gather(cuda_routine *r) {
  cu_index_gather x;
  int64_t own[IR_MAX_RANK];
  uint32_t offset = 0;
  const char *c = cuda_type((base_dtype)r->op->type->dtype);
  cu_index_gather_make(r->op, &x);
  if (x.operand->count == 0) return false;
  if (base_dtype_is_complex((base_dtype)r->op->type->dtype)) cuda_print_needs(&r->print, c);
  cuda_routine_strides(x.operand, own);
  cuda_routine_open(r, 2, 1, x.result->count);
  cuda_routine_indexes(r, x.result, "o");
  cu_index_put_first(r, &x);
  base_putf(r->print.out, "  ((%s *)out0)[n] = ((const %s *)in0)[0", c, c);
  for (uint32_t d = 0; d < x.operand->rank; d++) cu_index_put_dim(r, &x, d, own[d], &offset);
  BASE_PUT(r->print.out, "];\n");
  cuda_routine_close(r, "a thread for each element");
  return true;
}

/* --- pad --- */

/* Between elements, and outside of them, is the padding's value. */
bool cuda_print_pad(cuda_routine *r) {
  const ir_type *t = ir_operand_type(r->op, 0), *result = r->op->type;
  const ir_padding *p = ir_attr_find(r->op, IR_ATTR_PADDING)->v.padding;
  const char *c = cuda_type((base_dtype)t->dtype);
  int64_t own[IR_MAX_RANK];
  if (base_dtype_is_complex((base_dtype)t->dtype)) cuda_print_needs(&r->print, c);
  cuda_routine_strides(t, own);
  cuda_routine_open(r, 2, 1, result->count);
  cuda_routine_indexes(r, result, "o");
  BASE_PUT(r->print.out, "  bool is_in = true;\n  idx from = 0;\n");
  for (uint32_t d = 0; d < t->rank; d++) {
    long long step = p->v[d].interior + 1;
    base_putf(r->print.out, "  { const idx at = o%u - (idx)%lld;\n", (unsigned)d, (long long)p->v[d].low);
    base_putf(r->print.out, "  is_in = is_in && at >= 0 && at %% %lld == 0 && at / %lld < %lld;\n", step, step,
              (long long)t->dims[d]);
    base_putf(r->print.out, "  from += at / %lld * %lld; }\n", step, (long long)own[d]);
  }
  base_putf(r->print.out, "  ((%s *)out0)[n] = is_in ? ((const %s *)in0)[from] : ((const %s *)in1)[0];\n", c, c, c);
  cuda_routine_close(r, "a thread for each element");
  return true;
}

/* --- dynamic-update-slice --- */

/* The rest of the operand is in the result's memory already. */
bool cuda_print_dynamic_update_slice(cuda_routine *r) {
  const ir_op *op = r->op;
  const ir_type *whole = op->type, *update = ir_operand_type(op, 1);
  const char *c = cuda_type((base_dtype)whole->dtype);
  int64_t own[IR_MAX_RANK];
  if (op->n_operands != whole->rank + 2u || update->count == 0) return false;
  if (base_dtype_is_complex((base_dtype)whole->dtype)) cuda_print_needs(&r->print, c);
  cuda_routine_strides(whole, own);
  cuda_routine_open(r, op->n_operands, 1, update->count);
  cuda_routine_indexes(r, update, "o");
  BASE_PUT(r->print.out, "  const idx to = 0");
  for (uint32_t d = 0; d < whole->rank; d++) {
    base_putf(r->print.out, " + (o%u + (idx)", (unsigned)d);
    cu_index_put_place(r, d + 2, (base_dtype)ir_operand_type(op, d + 2)->dtype, "0", whole->dims[d] - update->dims[d]);
    base_putf(r->print.out, ") * %lld", (long long)own[d]);
  }
  base_putf(r->print.out, ";\n  ((%s *)out0)[to] = ((const %s *)in1)[n];\n", c, c);
  r->launch->changes = true;
  cuda_routine_close(r, "a thread for each element of the update");
  return true;
}

/* --- bitcast-convert --- */

/* The same bytes, in units of the smaller type; less than a whole byte, or bits that must not be, is the host's. */
bool cuda_print_bitcast(cuda_routine *r) {
  const ir_type *from = ir_operand_type(r->op, 0), *to = r->op->type;
  const base_dtype_info *a = base_dtype_of((base_dtype)from->dtype), *b = base_dtype_of((base_dtype)to->dtype);
  if (a->bits < 8 || b->bits < 8 || a->kind == BASE_KIND_PRED || b->kind == BASE_KIND_PRED) return false;
  if (ir_type_bytes(from) != ir_type_bytes(to)) return false;
  unsigned bytes = a->bytes < b->bytes ? a->bytes : b->bytes;
  bytes = bytes > 8 ? 8 : bytes;
  cuda_routine_open(r, 1, 1, ir_type_bytes(to) / bytes);
  base_putf(r->print.out, "  ((uint%u_t *)out0)[n] = ((const uint%u_t *)in0)[n];\n", 8 * bytes, 8 * bytes);
  cuda_routine_close(r, "a thread for each element");
  return true;
}
